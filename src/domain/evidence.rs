//! What the runtime saw itself.

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;

/// The work so far as a commit on `teams/<request>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The commit id.
    pub commit: String,
    /// The commit of the branch that it grew from.
    pub base: String,
    /// What differs from the base, by content.
    pub paths: Vec<ChangedPath>,
    /// The commit's subject line.
    pub subject: String,
    /// How much was added and removed, in lines.
    #[serde(default)]
    pub added_lines: u64,
    /// Lines removed.
    #[serde(default)]
    pub removed_lines: u64,
    /// The id of the commit's tree: the content alone, whatever the commit says about it.
    #[serde(default)]
    pub tree: String,
    /// The beginning of the difference to the base, for people who decide.
    #[serde(default)]
    pub excerpt: String,
}

/// How a path differs from the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Not in the base.
    Added,
    /// Other content or mode.
    Modified,
    /// Gone.
    Deleted,
}

/// One path of a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChangedPath {
    /// Relative to the project's root, with `/`.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// How one check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// Exit code 0, and not zero tests where tests were counted.
    Passed,
    /// Another exit code, or a test runner that ran nothing.
    Failed,
    /// Ended at its time limit.
    TimedOut,
    /// Could not be started.
    NotStarted,
}

/// One check as it was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRun {
    /// Its name in the configuration.
    pub name: String,
    /// The command, as an argument list.
    pub command: Vec<String>,
    /// The exit code; none where a signal ended it.
    pub exit_code: Option<i32>,
    /// The verdict.
    pub verdict: CheckVerdict,
    /// Passed tests, where the output says so.
    #[serde(default)]
    pub tests_passed: Option<u64>,
    /// Failed tests, where the output says so.
    #[serde(default)]
    pub tests_failed: Option<u64>,
    /// Sha-256 of the whole output.
    pub log_digest: String,
    /// The last lines of the output, for people and for the next attempt.
    pub log_tail: String,
    /// Wall time.
    pub duration_ms: u64,
}

/// The checks of one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The exact commit that was checked out.
    pub commit: String,
    /// Each check in the order of the configuration.
    pub checks: Vec<CheckRun>,
    /// When the last one ended.
    pub at: Timestamp,
}

impl Evidence {
    /// Whether every check passed. No checks at all is not green.
    #[must_use]
    pub fn is_green(&self) -> bool {
        !self.checks.is_empty()
            && self.checks.iter().all(|check| check.verdict == CheckVerdict::Passed)
    }

    /// The first check that did not pass.
    #[must_use]
    pub fn first_failure(&self) -> Option<&CheckRun> {
        self.checks.iter().find(|check| check.verdict != CheckVerdict::Passed)
    }
}
