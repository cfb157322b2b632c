//! The tools that an agent has at the team while it works.

use crate::domain::word::words;

words! {
    /// The tools.
    pub enum Tool {
        /// Hands in the result of the step.
        SubmitResult = "submit_result",
        /// Changes the backlog.
        Backlog = "backlog",
        /// Shows what the role remembers, and adds to it.
        Memory = "memory",
        /// Shows where the request stands.
        Status = "status",
    }
}

impl Tool {
    /// The tool of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.as_str() == name)
    }
}
