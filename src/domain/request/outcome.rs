//! What came of a request.

use serde::{Deserialize, Serialize};

use crate::domain::gate::NoApproval;
use crate::domain::ids::ItemId;
use crate::domain::outgoing::Content;
use crate::domain::time::Timestamp;

/// A person's decision that nobody does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipDecision {
    /// Whose.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl SkipDecision {
    /// In one line, for records and lists.
    #[must_use]
    pub fn line(&self) -> String {
        format!("skipped by {}: {}", self.by, self.reason)
    }
}

/// The end of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestOutcome {
    /// The commit on the branch, once there.
    pub commit_sha: Option<String>,
    /// The commit that was proven in its place, where it came to the branch inside of a train.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proven_through: Option<String>,
    /// Who withdrew it while its commit was on its way to the branch: it ends as that where the commit does
    /// not get there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn_by: Option<String>,
    /// Who skipped it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkipDecision>,
    /// Why its commit did not go to the branch, where nobody has let it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_approved: Option<NoApproval>,
    /// The items that took the place of its one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub split_into: Vec<ItemId>,
    /// Whether what was asked for goes on elsewhere as well, as requests for its other parts or as a sprint: then it is
    /// not done when this has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub goes_on_elsewhere: bool,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The last word about it, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_answer: Option<Content>,
}
