//! What the runtime saw itself.

use serde::{Deserialize, Serialize};

use crate::domain::guard::ContentMark;
use crate::domain::lenient::is_zero;
use crate::domain::test_report::{ComparedRun, Comparison, TestNames, TestOutcomes};
use crate::domain::time::Timestamp;

/// What a step that may write left in its worktree: its commit is made of this, whatever is written there later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedWork {
    /// The content (git tree id).
    pub tree: String,
    /// The commit of the branch that it grew from.
    pub base: String,
}

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
    /// What else of its content a person may have to see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<ContentMark>,
}

impl Candidate {
    /// The commit `base` as it is: what a request comes to whose change the branch has already.
    #[must_use]
    pub fn of_base(base: &str, subject: &str) -> Candidate {
        Candidate {
            commit: base.to_owned(),
            base: base.to_owned(),
            paths: Vec::new(),
            subject: subject.to_owned(),
            added_lines: 0,
            removed_lines: 0,
            tree: String::new(),
            excerpt: String::new(),
            marks: Vec::new(),
        }
    }

    /// Whether nothing is to be brought to the branch.
    #[must_use]
    pub fn is_its_base(&self) -> bool {
        self.commit == self.base
    }
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
    /// Ended by somebody or something else before it was done.
    CutOff,
    /// Could not be started.
    NotStarted,
    /// It met the person's checkout, which it must not read, where the machine cannot put its own tree in
    /// that place: a fault of the machine and not of the change.
    EnvironmentFault,
}

/// What kept a check from everything but the tree that it proves, or an agent from what its run does not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Bubblewrap: a file system of its own, with the tree at the project's own path.
    Bubblewrap,
    /// The kernel's Landlock: the checkout cannot be opened; the tree lies at another path, and the network
    /// is the machine's. A check counts as not isolated by it.
    Landlock,
    /// Nothing.
    #[default]
    None,
}

impl Isolation {
    /// Whether the check could meet nothing but the tree that it proves.
    #[must_use]
    pub const fn is_isolated(self) -> bool {
        match self {
            Isolation::Bubblewrap => true,
            Isolation::Landlock | Isolation::None => false,
        }
    }
}

impl CheckVerdict {
    /// Whether the check began and was ended before it could say anything.
    #[must_use]
    pub const fn is_inconclusive(self) -> bool {
        match self {
            Self::TimedOut | Self::CutOff => true,
            Self::Passed | Self::Failed | Self::NotStarted | Self::EnvironmentFault => false,
        }
    }
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
    /// Its tests by name. They are many, so that no record has them.
    #[serde(skip)]
    pub tests: TestOutcomes,
    /// How it stands beside the same check at the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Comparison>,
}

impl CheckRun {
    /// Whether it fails, and nothing of it is newly red beside the base.
    #[must_use]
    pub fn is_red_before(&self) -> bool {
        self.verdict == CheckVerdict::Failed
            && self.compared.as_ref().is_some_and(Comparison::is_red_before)
    }

    /// As another run is held against it; none where it says nothing about its commit.
    #[must_use]
    pub const fn comparable(&self) -> Option<ComparedRun<'_>> {
        match self.verdict {
            CheckVerdict::Passed => Some(ComparedRun { failed: false, tests: &self.tests }),
            CheckVerdict::Failed => Some(ComparedRun { failed: true, tests: &self.tests }),
            CheckVerdict::TimedOut
            | CheckVerdict::CutOff
            | CheckVerdict::NotStarted
            | CheckVerdict::EnvironmentFault => None,
        }
    }
}

/// How the base of a change came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseVerdict {
    /// Every check passed.
    Green,
    /// One failed.
    Red,
    /// The checks said nothing, or could not be run.
    #[default]
    Unknown,
}

/// What is known of a commit that is to go to the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Every check passed.
    Green,
    /// Nothing fails but what fails at its base as well.
    RedBefore,
    /// Nothing that counts.
    None,
}

/// What the checks said at the base before anything was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BaseStanding {
    /// The commit.
    pub commit: String,
    /// How it came out.
    pub verdict: BaseVerdict,
    /// What fails there: tests where they have names, else checks.
    pub red: TestNames,
    /// What was red and green without a change.
    pub flaky: TestNames,
    /// The checks that passed there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<String>,
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
    /// What the checks were confined by.
    #[serde(default)]
    pub isolation: Isolation,
    /// SHA-256 of the configuration that they were run by: evidence of other checks proves nothing.
    #[serde(default)]
    pub checks_digest: String,
    /// Milliseconds until the tree that they were run in was ready.
    #[serde(default)]
    pub tree_ms: u64,
    /// What was prepared for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<UsedEnvironment>,
    /// How often they ran once more at the same commit before that was known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repetitions: u32,
}

/// A prepared environment that checks were run in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedEnvironment {
    /// The name of its entry in the configuration.
    pub name: String,
    /// The digest of all that decides about it.
    pub key: String,
    /// Milliseconds that preparing it took; none where it was there.
    pub prepared_ms: Option<u64>,
}

impl Evidence {
    /// How long it took to know this, in milliseconds.
    #[must_use]
    pub fn millis(&self) -> u64 {
        self.tree_ms + self.checks.iter().map(|check| check.duration_ms).sum::<u64>()
    }

    /// Whether every check passed. No checks at all is not green.
    #[must_use]
    pub fn is_green(&self) -> bool {
        !self.checks.is_empty()
            && self.checks.iter().all(|check| check.verdict == CheckVerdict::Passed)
    }

    /// The checks that did not pass, by their names, less those that the change has mended in part.
    #[must_use]
    pub fn failed(&self) -> Vec<String> {
        let mends = |it: &CheckRun| it.compared.as_ref().is_some_and(|it| !it.mended.is_empty());
        let is_partly_mended = |it: &CheckRun| it.is_red_before() && mends(it);
        let fails = |it: &&CheckRun| it.verdict != CheckVerdict::Passed && !is_partly_mended(it);
        self.checks.iter().filter(fails).map(|it| it.name.clone()).collect()
    }

    /// Whether something fails, and all of it failed at the base as well.
    #[must_use]
    pub fn is_red_before(&self) -> bool {
        let mut red = self.checks.iter().filter(|it| it.verdict != CheckVerdict::Passed).peekable();
        red.peek().is_some() && red.all(CheckRun::is_red_before)
    }

    /// Whether all that fails failed at the base by the same names of tests. Without names it may fail for another
    /// reason than before.
    #[must_use]
    pub fn is_red_by_name(&self) -> bool {
        let mut red = self.checks.iter().filter(|it| it.verdict != CheckVerdict::Passed);
        red.all(|it| it.compared.as_ref().is_some_and(|compared| compared.by_test))
    }

    /// What is said of all checks together beside the base: what `part` picks.
    #[must_use]
    pub fn compared(&self, part: impl Fn(&Comparison) -> &TestNames) -> TestNames {
        let mut all = TestNames::default();
        self.checks
            .iter()
            .filter_map(|check| check.compared.as_ref())
            .for_each(|it| all.extend(part(it)));
        all
    }

    /// The check that decides what becomes of the commit, where not all passed: one that failed before one
    /// that could not be started, and both before one that never came to its end.
    #[must_use]
    pub fn first_failure(&self) -> Option<&CheckRun> {
        let rank = |check: &&CheckRun| match check.verdict {
            CheckVerdict::Failed => Some(0),
            CheckVerdict::NotStarted | CheckVerdict::EnvironmentFault => Some(1),
            CheckVerdict::TimedOut | CheckVerdict::CutOff => Some(2),
            CheckVerdict::Passed => None,
        };
        self.checks.iter().filter(|check| rank(check).is_some()).min_by_key(rank)
    }

    /// Whether a check came to its end and failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.first_failure().is_some_and(|check| check.verdict == CheckVerdict::Failed)
    }

    /// Whether the checks say nothing about the commit: none failed, and one never came to its end.
    #[must_use]
    pub fn is_inconclusive(&self) -> bool {
        self.first_failure().is_some_and(|check| check.verdict.is_inconclusive())
    }
}
