//! Two changes that met in the same place.

use serde::{Deserialize, Serialize};

use crate::domain::criterion::Criterion;

/// A change that does not fit onto what came onto the branch meanwhile. It stands on the branch's head already,
/// and what both sides wrote is marked in the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The commit of the branch that the worktree stands on now.
    pub head: String,
    /// The change before, as a commit.
    pub commit: String,
    /// The commit of the branch that the change grew from.
    pub base: String,
    /// The paths that both sides changed in ways that do not fit together.
    pub paths: Vec<String>,
    /// The first place where they do not, as it is marked, for a person who has to decide.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
    /// Whether it is solved in the candidate. It is kept until that is on the branch: whoever mends the solution is held
    /// to the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub solved: bool,
    /// Whether a person has said something since: what they want may be more than either side had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
    /// The acceptance criteria of the requests on the other side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
}

impl Conflict {
    /// A text for a person who has to decide, with the place where the two do not fit together.
    #[must_use]
    pub fn with_place(&self, text: &str) -> String {
        // A card that is shown again has it already.
        if text.contains(&self.excerpt) {
            return text.to_owned();
        }
        format!("{text}\n{}", self.excerpt).trim_end().to_owned()
    }
}
