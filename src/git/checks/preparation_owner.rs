//! For whom checks are run, and who has agreed to what they need.

use crate::git::CommitId;

/// For whom something is prepared.
#[derive(Debug, Clone)]
pub struct PreparationOwner {
    /// A commit of the project's branch: people have agreed to what it asks for.
    pub trusted: CommitId,
    /// Who has agreed to what the commit at hand asks for otherwise.
    pub consent: Consent,
    /// The name of the folder for what that makes, until the change has landed.
    pub apart: String,
}

impl PreparationOwner {
    /// For a commit of the project's branch.
    #[must_use]
    pub fn trusting(commit: CommitId) -> PreparationOwner {
        PreparationOwner { trusted: commit, consent: Consent::None, apart: "none".to_owned() }
    }
}

/// Who has agreed that the dependencies of a change are prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// Nobody.
    None,
    /// A person, to the question with this digest.
    To(String),
    /// Whoever runs the checks by hand.
    Operator,
}
