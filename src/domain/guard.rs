//! What of a change a person may have to see before it lands, whether it is proven or not.

use serde::{Deserialize, Serialize};

use crate::domain::word::words;

words! {
    /// A rule that may hold a change back for a person; `gates.<its word>` says what happens.
    pub enum Guard {
        /// It changes what agents or checks run by.
        Machinery = "guarded_commit",
        /// It touches paths that its item does not allow, or excludes.
        Scope = "scope",
        /// It deletes a file that nobody spoke of.
        Deletion = "deletion",
        /// It brings a file back that the branch has deleted.
        Restored = "restored",
        /// It undoes what a person committed while it was under way, after the two did not fit together.
        Overwritten = "overwritten",
        /// It takes in a dependency.
        Dependency = "dependency",
        /// It changes a lock file, and nothing that the lock file follows from.
        LockFile = "lock_file",
        /// It brings a large binary file.
        Binary = "binary",
        /// It holds what looks like a secret.
        Secret = "secret",
        /// Tests that ran at its base do not run any more.
        Tests = "tests",
        /// QA left a criterion to a person.
        Unjudged = "unjudged",
    }
}

/// One thing that a guard found in a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GuardFinding {
    /// The rule.
    pub guard: Guard,
    /// The path, relative to the project's root; for a criterion, its number.
    pub path: String,
    /// What of it: a dependency's name, a line, a size; blank where the path says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// What a look at the content of one changed path found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentMark {
    /// Relative to the project's root.
    pub path: String,
    /// What.
    #[serde(flatten)]
    pub what: ContentFact,
}

/// A fact about the content of a changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum ContentFact {
    /// It is gone, and its content lies at no other path.
    Gone,
    /// It is new, and was in the branch before until that commit took it away.
    Restored {
        /// The commit.
        commit: String,
    },
    /// What a person committed while the change was under way is undone: lines are gone, or there again.
    Overwritten {
        /// The first of them as in a diff, as a person may read it; blank where it is no text.
        line: String,
        /// How many there are besides.
        more: usize,
        /// The last commit that wrote one of them.
        commit: String,
    },
    /// A manifest names a dependency that it did not name before.
    Dependency {
        /// Its name.
        name: String,
    },
    /// A script of a `package.json` says something else now, or is gone.
    Script {
        /// Its name.
        name: String,
    },
    /// A part of it by which checks may run, among others (`domain::run_by::PROGRAMS`), says something else now, is new or is
    /// gone.
    Part {
        /// Its name.
        name: String,
    },
    /// It is reached by another path as well, or was, through links of the project.
    Linked {
        /// The path.
        name: String,
    },
    /// So many that nobody has held them against what is guarded.
    LinkedOften,
    /// It is no text.
    Binary {
        /// Its size.
        bytes: u64,
    },
    /// A line that was added looks like a secret.
    Secret {
        /// From 1.
        line: u32,
    },
}
