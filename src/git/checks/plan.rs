//! What the configuration says about checks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use crate::domain::config::CheckNetwork;

/// One check as the configuration describes it; never read from the commit that is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSpec {
    /// Its name, shown to people.
    pub name: String,
    /// The program and its arguments; no shell reads it. A program with a slash is relative to the project.
    pub command: Vec<String>,
    /// Wall time before the whole process tree is ended.
    pub timeout: Duration,
    /// Bytes of output that are kept, for stdout and stderr each, besides the last 64 KiB; what lies between
    /// is dropped and the log says so.
    pub output_limit: u64,
    /// Added to the scrubbed environment; from the configuration only.
    pub env: BTreeMap<String, String>,
    /// What it may read beside the system, the tools and its tree; absolute, or in the home (`~/…`).
    pub read: Vec<PathBuf>,
    /// Where it writes its JUnit report, relative to the project.
    pub report: Option<PathBuf>,
    /// Which network it has.
    pub network: CheckNetwork,
}

/// What is prepared for checks as the configuration describes it.
#[derive(Debug, Clone)]
pub struct PrepareSpec {
    /// Its name, shown to people.
    pub name: String,
    /// The program and its arguments; no shell reads it.
    pub command: Vec<String>,
    /// Files and folders of the project that decide what it makes.
    pub files: Vec<PathBuf>,
    /// Wall time before the whole process tree is ended.
    pub timeout: Duration,
    /// Added to the scrubbed environment.
    pub env: BTreeMap<String, String>,
    /// Added to it as well; their values stand in no key and no record.
    pub secrets: BTreeMap<String, SecretString>,
    /// What it may read beside the system, the tools and its tree.
    pub read: Vec<PathBuf>,
    /// Which network it has.
    pub network: CheckNetwork,
}

/// What the configuration says about checks.
#[derive(Debug, Clone)]
pub struct CheckPlan {
    /// The checks, in order.
    pub checks: Vec<CheckSpec>,
    /// What is prepared for them; none needs another.
    pub prepare: Vec<PrepareSpec>,
    /// Where what was prepared is kept, on the file system of the workspace.
    pub environments: PathBuf,
    /// Folders of the person's checkout, relative to it, that git ignores and checks may read.
    pub carry: Vec<PathBuf>,
    /// Files and folders of tools that checks may read beside the system's; the usual ones where absent.
    pub tools: Option<Vec<PathBuf>>,
    /// What checks never see, wherever it lies: the workspace.
    pub hidden: Vec<PathBuf>,
    /// Where trees are kept that nobody uses at the moment, on the file system of the workspace.
    pub trees: PathBuf,
    /// Whether they may run where this machine cannot isolate them.
    pub allow_unisolated: bool,
    /// SHA-256 of all this, as it goes into the evidence.
    pub digest: String,
}
