//! Worktrees, ownership by content, commits, checks at a commit, and the merge to the branch.
//!
//! Everything here blocks, except [`checks::run`]; the service calls it off the async threads. No hook and no
//! file monitor of the project is run: libgit2 reads the repository's data and nothing in it is a command. The git
//! program is started for filters that the configuration allows and for signatures that it wants, and for nothing
//! else.
//!
//! An effect comes in two halves: `plan_…` looks and computes, so that every id is known and can be stored
//! before the world is touched; `apply_…` acts, and may be repeated after a crash at any instruction.

pub mod checks;
pub mod commit;
pub mod conflict;
mod content;
mod counts;
pub mod create;
pub mod diff;
mod error;
mod file_parts;
mod filter;
mod kept;
mod links;
mod listing;
mod lock;
mod lost;
mod manifest;
mod marks;
pub mod merge;
pub mod message;
mod overwritten;
mod path_name;
mod program;
mod project;
mod put_away;
pub mod rebase;
mod refs;
mod replace;
mod sign;
pub mod sprint;
mod stat_index;
mod submodules;
mod test_names;
mod tracked;
mod tree_diff;
mod trees;
mod walk;
mod worktree;

pub use checks::{
    CheckPlan, CheckSpec, Consent, EnvironmentStore, KeptEnvironment, PreparationOwner,
    PrepareSpec, PreparedEnvironment,
};
pub use commit::{CommitRules, PlannedCommit, apply_commit, plan_commit};
pub use diff::diff_excerpt;
pub use error::GitError;
pub use listing::CommitFiles;
pub use marks::content_marks;
pub use merge::{
    MergeOutcome, PlannedMerge, apply_merge, has_landed, is_landing, plan_merge, verify_landed,
};
pub use message::MessageParts;
pub use overwritten::overwritten;
pub use project::{CheckedOut, CommitId, InTree, Project, TreeId};
pub use rebase::Rebased;
pub use worktree::{NOT_KEPT, Worktree};

/// The result of a git operation.
pub type Result<T> = std::result::Result<T, GitError>;
