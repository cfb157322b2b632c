//! Changes to the world outside the store, other than agent runs and Discord.
//!
//! Planned (in the append of its decision) → Started (durable before the world is touched) → gone, in the
//! append of the decision that used its outcome. After a crash Planned runs and Started reconciles first.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::evidence::{Candidate, Evidence};
use crate::domain::ids::{EffectId, OperationId, RequestId};
use crate::domain::time::Timestamp;

/// What to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum EffectKind {
    /// Make the worktree's content a commit on `teams/<request>`.
    Commit {
        /// The request.
        request_id: RequestId,
        /// The title for the commit message (`spec/teams.md` 11.4 adds id and file name).
        title: String,
    },
    /// Run the configured checks in a clean checkout of the candidate.
    Checks {
        /// The request.
        request_id: RequestId,
        /// The exact commit.
        commit: String,
    },
    /// Bring the candidate to the project's branch, fast-forward, by compare-and-set.
    Merge {
        /// The request.
        request_id: RequestId,
        /// The exact commit.
        commit: String,
    },
    /// Put the candidate onto the branch's new head, because the branch moved.
    Rebase {
        /// The request.
        request_id: RequestId,
        /// The commit to move.
        commit: String,
    },
    /// Run a registered action.
    Action {
        /// The request that asked.
        request_id: RequestId,
        /// Its operation record.
        operation_id: OperationId,
    },
    /// End the agent of a withdrawn request and remove its worktree.
    Release {
        /// The request.
        request_id: RequestId,
    },
}

impl EffectKind {
    /// The request that it serves.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        match self {
            Self::Commit { request_id, .. }
            | Self::Checks { request_id, .. }
            | Self::Merge { request_id, .. }
            | Self::Rebase { request_id, .. }
            | Self::Action { request_id, .. }
            | Self::Release { request_id } => request_id,
        }
    }

    /// A word for logs and `why`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Commit { .. } => "commit",
            Self::Checks { .. } => "checks",
            Self::Merge { .. } => "merge",
            Self::Rebase { .. } => "rebase",
            Self::Action { .. } => "action",
            Self::Release { .. } => "release",
        }
    }
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectState {
    /// Decided, the world is untouched.
    Planned,
    /// About to touch the world; what is needed to find out afterwards whether it did.
    Started {
        /// When.
        at: Timestamp,
        /// Whatever the executor needs for reconciling: ref, tree, commit id, process.
        pre_state: Value,
    },
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Its id.
    pub effect_id: EffectId,
    /// What to do.
    pub kind: EffectKind,
    /// How far it is.
    pub state: EffectState,
    /// Times begun.
    pub attempts: u32,
    /// When it was decided.
    pub planned_at: Timestamp,
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectOutcome {
    /// The worktree's content is this commit.
    Committed(Candidate),
    /// The worktree equals its base.
    NothingChanged,
    /// The checks ran.
    Checked(Evidence),
    /// The branch is at this commit.
    Merged {
        /// The commit.
        commit: String,
    },
    /// The branch is no longer where the candidate grew from.
    BranchMoved {
        /// Where it is now.
        head: String,
    },
    /// The candidate stands on the branch's new head.
    Rebased(Candidate),
    /// Rebasing met conflicts.
    Conflict {
        /// In these paths.
        paths: Vec<String>,
    },
    /// A person's uncommitted edits in the checked-out branch stand in the way.
    PersonEdits {
        /// In these paths.
        paths: Vec<String>,
    },
    /// The action ended.
    ActionEnded {
        /// Its exit code; none where a signal ended it.
        exit_code: Option<i32>,
        /// The last lines of its log.
        log_tail: String,
    },
    /// The worktree is gone and no process is left.
    Released,
    /// It could not be done; one line, redacted.
    Failed {
        /// Why.
        message: String,
    },
}
