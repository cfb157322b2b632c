//! What an assignment asks for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agents::RunSpec;
use crate::domain::budget::{Allowance, SharedBudgets};
use crate::domain::config::AgentKind;
use crate::domain::ids::{MessageId, RequestId, RunId};
use crate::domain::lifecycle::StepName;
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::model_proxy::AllowedHosts;

/// One generation of a run, as it is to be carried out. No secret stands in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The run.
    pub run_id: RunId,
    /// Its generation.
    pub generation: u32,
    /// The request.
    pub request_id: RequestId,
    /// Who works.
    pub role: Role,
    /// On which step; none for the orchestrator's intake.
    pub step: Option<StepName>,
    /// When it began.
    pub started_at: Timestamp,
    /// Where requests have their worktrees.
    pub worktrees: PathBuf,
    /// The tree that the worktree has before (git tree id), for what changed and for putting it back.
    pub pre_tree: Option<String>,
    /// Whether the step may change files.
    pub may_write: bool,
    /// The agent, for rules.
    pub agent_kind: AgentKind,
    /// The model that is asked for.
    pub model: String,
    /// What the agent's driver needs.
    pub run: RunSpec,
    /// The messages, written since the generation began, that stand in its prompt.
    #[serde(default)]
    pub in_prompt: Vec<MessageId>,
    /// What was prepared for the commit that the worktree grew from, or for the change of its request.
    #[serde(default)]
    pub environments: JobEnvironments,
    /// What the agent's way out leads to; none for one that needs no way out.
    pub proxy: Option<JobProxy>,
}

/// Prepared environments that a run is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnvironments {
    /// Where they are kept.
    pub store: PathBuf,
    /// Their keys, in the order of the configuration.
    pub keys: Vec<String>,
    /// The folder of those that a person has agreed to for this request alone.
    #[serde(default)]
    pub apart: String,
}

/// What the proxy of a run leads to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobProxy {
    /// The model servers by name.
    pub servers: BTreeSet<String>,
    /// What else.
    pub outside: AllowedHosts,
    /// What the run may spend.
    pub allowance: Allowance,
    /// What it may spend together with others.
    #[serde(default)]
    pub shared_budgets: SharedBudgets,
}

impl JobSpec {
    /// The folders of the generations before this one, latest first.
    pub(super) fn earlier_folders(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let runs = self.run.run_dir.parent().unwrap_or(Path::new(""));
        (1..self.generation).rev().map(move |generation| run_folder(runs, &self.run_id, generation))
    }
}

/// Where runs have their folders, in the state's folder: one a request, and in it one a generation.
pub const RUNS: &str = "runs";

/// The folder of a generation among those of its request's runs.
#[must_use]
pub fn run_folder(runs: &Path, run_id: &RunId, generation: u32) -> PathBuf {
    runs.join(format!("{run_id}.{generation}"))
}
