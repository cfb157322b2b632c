//! Why there is no prompt.

/// Why there is no prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// A template does not render; an override of the workspace usually.
    #[error("the prompt template {name} does not render: {source}")]
    Template {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: minijinja::Error,
    },
    /// What must not be cut is too much already.
    #[error(
        "the request and the rules take {needed} bytes and the limit is {budget}; raise `limits.prompt_bytes`"
    )]
    TooLong {
        /// What would be needed.
        needed: usize,
        /// The limit.
        budget: usize,
    },
}
