//! Changes to the world outside the store, other than agent runs and Discord.
//!
//! Planned (in the append of its decision) → Started (durable before the world is touched) → gone, in the
//! append of the decision that used its outcome. After a crash Planned runs and Started reconciles first.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::check_proposal::CheckProposal;
use crate::domain::conflict::Conflict;
use crate::domain::evidence::{BaseStanding, Candidate, Evidence};
use crate::domain::finding::Finding;
use crate::domain::ids::{EffectId, OperationId, RequestId, SprintId};
use crate::domain::preparation::PreparationQuestion;
use crate::domain::request::Car;
use crate::domain::role::Role;
use crate::domain::sprint::{CloseoutStatus, GitBaseline, SprintCommit};
use crate::domain::time::Timestamp;

/// How often checks are run before their verdict is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofMode {
    /// Red is held against the base and repeated once.
    #[default]
    Whole,
    /// Once: a change before it may be at fault.
    Once,
    /// After they were red once: this is the repetition.
    Again,
}

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
    /// Find out how the checks stand at the base, before a role gets the request.
    Base {
        /// The request.
        request_id: RequestId,
        /// Who gets it then, where it stands at no step.
        role: Role,
        /// What they are told.
        why: String,
    },
    /// Run the configured checks in a clean checkout of the candidate.
    Checks {
        /// The request.
        request_id: RequestId,
        /// The exact commit.
        commit: String,
        /// How much is asked of them.
        #[serde(default)]
        how: ProofMode,
    },
    /// Configure the checks that a person has accepted, where none are.
    UseChecks {
        /// The request that is to be proven by them.
        request_id: RequestId,
        /// As the person saw them.
        shown: CheckProposal,
    },
    /// Bring the candidate to the project's branch, fast-forward, by compare-and-set.
    Merge {
        /// The request.
        request_id: RequestId,
        /// The exact commit.
        commit: String,
        /// The changes between the branch and this commit, which come to it at once; the first one stands on the branch.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        with: Vec<Car>,
    },
    /// Put the candidate onto another commit, in the order of the train.
    Rebase {
        /// The request.
        request_id: RequestId,
        /// The commit to move.
        commit: String,
        /// The change before it; none for the branch's head.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        onto: Option<Car>,
    },
    /// Run a registered action.
    Action {
        /// The request that asked.
        request_id: RequestId,
        /// Its operation record.
        operation_id: OperationId,
    },
    /// End the agent of a withdrawn request and remove its worktree. `collect`, of older journals, would
    /// have taken a person's files for a closeout commit; its request only has its worktree removed.
    #[serde(alias = "collect")]
    Release {
        /// The request.
        request_id: RequestId,
    },
    /// Note how the project stands before a sprint.
    Baseline {
        /// The sprint.
        sprint_id: SprintId,
    },
    /// Look at the commits of a sprint, and at what lies uncommitted in the project.
    Inspect {
        /// The sprint.
        sprint_id: SprintId,
    },
    /// Write the final report and the history of an ended sprint.
    Archive {
        /// The sprint.
        sprint_id: SprintId,
    },
    /// Bring an ended sprint to the issue tracker.
    Publish {
        /// The sprint.
        sprint_id: SprintId,
    },
    /// Look for findings that could become work.
    Discover {
        /// Up to where each source was read before.
        watermarks: std::collections::BTreeMap<String, String>,
    },
}

impl EffectKind {
    /// The request that it serves; none for what is done for a sprint or for the team.
    #[must_use]
    pub fn request_id(&self) -> Option<&RequestId> {
        match self {
            Self::Commit { request_id, .. }
            | Self::Base { request_id, .. }
            | Self::Checks { request_id, .. }
            | Self::UseChecks { request_id, .. }
            | Self::Merge { request_id, .. }
            | Self::Rebase { request_id, .. }
            | Self::Action { request_id, .. }
            | Self::Release { request_id } => Some(request_id),
            Self::Baseline { .. }
            | Self::Inspect { .. }
            | Self::Archive { .. }
            | Self::Publish { .. }
            | Self::Discover { .. } => None,
        }
    }

    /// The request whose change or base it commits, proves or brings to the branch.
    #[must_use]
    pub const fn change_of(&self) -> Option<&RequestId> {
        match self {
            Self::Commit { request_id, .. }
            | Self::Base { request_id, .. }
            | Self::Checks { request_id, .. }
            | Self::Merge { request_id, .. }
            | Self::Rebase { request_id, .. } => Some(request_id),
            Self::UseChecks { .. }
            | Self::Action { .. }
            | Self::Release { .. }
            | Self::Baseline { .. }
            | Self::Inspect { .. }
            | Self::Archive { .. }
            | Self::Publish { .. }
            | Self::Discover { .. } => None,
        }
    }

    /// The changes that it brings to the branch, in order.
    #[must_use]
    pub fn lands(&self) -> Vec<Car> {
        let Self::Merge { request_id, commit, with } = self else { return Vec::new() };
        let last = Car { request_id: request_id.clone(), commit: commit.clone() };
        with.iter().cloned().chain([last]).collect()
    }

    /// Whether it brings the change of this request to the branch.
    #[must_use]
    pub fn is_merge_of(&self, id: &RequestId) -> bool {
        let Self::Merge { request_id, with, .. } = self else { return false };
        request_id == id || with.iter().any(|car| car.request_id == *id)
    }

    /// How often the checks that it runs are run.
    #[must_use]
    pub fn proving(&self) -> ProofMode {
        if let Self::Checks { how, .. } = self { *how } else { ProofMode::Whole }
    }

    /// The change in the train that it puts its own onto.
    #[must_use]
    pub fn onto(&self) -> Option<Car> {
        if let Self::Rebase { onto, .. } = self { onto.clone() } else { None }
    }

    /// A word for logs and `why`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Commit { .. } => "commit",
            Self::Base { .. } => "base",
            Self::Checks { .. } => "checks",
            Self::UseChecks { .. } => "use_checks",
            Self::Merge { .. } => "merge",
            Self::Rebase { .. } => "rebase",
            Self::Action { .. } => "action",
            Self::Release { .. } => "release",
            Self::Baseline { .. } => "baseline",
            Self::Inspect { .. } => "inspect",
            Self::Archive { .. } => "archive",
            Self::Publish { .. } => "publish",
            Self::Discover { .. } => "discover",
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
    /// The time that was told to have been cut off, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<u32>,
    /// When it was decided.
    pub planned_at: Timestamp,
    /// What of a person's it was told to wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<GitObstacle>,
}

/// A person's git command that is in the way of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitObstacle {
    /// The lock file, or the checkout in which a merge or rebase is under way.
    pub path: String,
    /// Whether it is a lock file.
    pub is_lock: bool,
}

/// How the project stands when a sprint is closed (`spec/teams.md` 11.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// How it stands.
    pub status: CloseoutStatus,
    /// Commits since the baseline, oldest first.
    pub commits: Vec<SprintCommit>,
    /// What lies uncommitted in the project's checkout: it is people's, and stays there.
    pub uncommitted_paths: Vec<String>,
    /// One line, where something is to be said.
    pub message: String,
}

/// What a person has to know of a commit that has come to the branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LandingNotes {
    /// Why files of the checkout are not all as the branch has them, where they could not be written.
    pub behind: Option<String>,
    /// Files that somebody changed while it landed, which lack the change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// The other branch that is checked out in the project, where nobody was told so yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// What of the changes that have just landed the branch has not, where it was looked for in vain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectOutcome {
    /// The worktree's content is this commit.
    Committed(Candidate),
    /// The worktree equals its base.
    NothingChanged {
        /// The commit that it stands on.
        base: String,
    },
    /// The checks ran.
    Checked(Evidence),
    /// They did not run: a person is asked first whether the dependencies of the change may be prepared.
    PreparationAsked(PreparationQuestion),
    /// This is how they stand at the base.
    BaseProven(BaseStanding),
    /// The branch is at this commit.
    Merged {
        /// The commit.
        commit: String,
        /// What a person has to know of it.
        #[serde(flatten)]
        notes: LandingNotes,
    },
    /// The branch is no longer where the candidate grew from.
    BranchMoved {
        /// Where it is now.
        head: String,
    },
    /// The checks were configured anew since they ran: what they saw proves nothing any more.
    ChecksChanged,
    /// The candidate stands on the branch's new head.
    Rebased(Candidate),
    /// The candidate does not fit onto the change before it, or that has all of it; nothing was touched.
    Clash,
    /// The branch's new head has all of the candidate already, by another commit.
    AlreadyOnBranch {
        /// Where the branch is.
        head: String,
    },
    /// The branch's new head and the candidate do not fit together: the worktree stands on that head, with
    /// what both sides wrote marked in it.
    Conflict(Conflict),
    /// Nothing was committed: the marks of a conflict still stand in the files.
    Unsolved {
        /// In these paths.
        paths: Vec<String>,
    },
    /// Nothing was committed: to solve the conflict, more was changed than either side had.
    BeyondConflict {
        /// These paths.
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
    /// The project stands like this.
    Baselined(GitBaseline),
    /// A sprint left this.
    Inspected(Inspection),
    /// The report and the history of the sprint are written.
    Archived {
        /// Where the report lies, workspace-relative.
        report_path: String,
    },
    /// The issue tracker has the sprint.
    Published {
        /// The address of its issue.
        url: String,
    },
    /// This was found.
    Discovered {
        /// Everything new.
        findings: Vec<Finding>,
        /// Up to where each source was read.
        watermarks: std::collections::BTreeMap<String, String>,
    },
    /// It could not be done; one line, redacted.
    Failed {
        /// Why.
        message: String,
        /// Whose change it is, where an effect is about several; that of the effect where not named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<RequestId>,
    },
}

impl EffectOutcome {
    /// It could not be done; the message is one line, redacted.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), request_id: None }
    }
}
