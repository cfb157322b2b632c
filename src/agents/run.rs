//! What a run is given and what it hands back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agents::acp::AcpSettings;
use crate::agents::claude::ClaudeSettings;
use crate::agents::codex::CodexSettings;
use crate::agents::prompt::Task;
use crate::agents::rehearsal::RehearsalSettings;
use crate::agents::sandbox::{ProxyAddress, Sandbox, WriteAccess};
use crate::agents::stuck::Patience;
use crate::domain::conversation::{Fill, HandedOver};
use crate::domain::ids::{MessageId, RunId};
use crate::domain::run::RunOutcome;
use crate::domain::usage::Usage;
use crate::platform::layers::Layers;

/// Which agent works, with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agent {
    /// Codex CLI.
    Codex(CodexSettings),
    /// Claude Code.
    Claude(ClaudeSettings),
    /// An agent that speaks the Agent Client Protocol.
    Acp(AcpSettings),
    /// Our own agent without a model.
    Rehearsal(RehearsalSettings),
}

impl RunSpec {
    /// Where the agent sees its worktree.
    #[must_use]
    pub fn worktree_seen(&self) -> &Path {
        self.surroundings.project.as_ref().map_or(&self.worktree, |project| &project.path)
    }
}

impl Agent {
    /// Whether its commands are to be confined.
    #[must_use]
    pub const fn sandbox(&self) -> Sandbox {
        match self {
            Agent::Codex(config) => config.sandbox,
            Agent::Claude(config) => config.sandbox,
            Agent::Acp(config) => config.sandbox,
            Agent::Rehearsal(config) => config.sandbox,
        }
    }

    /// The command of one that speaks the protocol, by which it differs from the others that do; else blank.
    #[must_use]
    pub fn command(&self) -> String {
        match self {
            Agent::Acp(config) => config.command.join(" "),
            Agent::Codex(_) | Agent::Claude(_) | Agent::Rehearsal(_) => String::new(),
        }
    }

    /// The key of the configuration that lets it work unconfined; none for the rehearsal, which runs nothing
    /// that a model made up.
    #[must_use]
    pub(super) const fn unconfined_by(&self) -> Option<&'static str> {
        match self {
            Agent::Codex(_) => Some("agents.codex.sandbox"),
            Agent::Claude(_) => Some("agents.claude.sandbox"),
            Agent::Acp(_) => Some("agents.acp.sandbox"),
            Agent::Rehearsal(_) => None,
        }
    }
}

/// The worktree at the project's own path, where the team's checks see their tree as well, with what was prepared for
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectView {
    /// The project's own path.
    pub path: PathBuf,
    /// A file that says to git where the repository is that the run sees; in place of the worktree's own.
    pub git_link: PathBuf,
    /// The worktree with what was prepared below it, where something was.
    pub layers: Option<Layers>,
    /// What else of what was prepared it reads.
    pub readable: Vec<PathBuf>,
    /// The folders of what was prepared, locked as long as its agent runs.
    #[serde(default)]
    pub locks: Vec<PathBuf>,
}

/// What of the world around it a run has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Surroundings {
    /// Files and folders that its role reads besides: shared documents, its sources, attachments.
    pub readable: Vec<PathBuf>,
    /// The folder of the documents that all runs share. Agents write in parts of it, so that nothing below it
    /// is shown or opened through a link.
    pub shared: Option<PathBuf>,
    /// Folders within what it may write that it only reads: other runs write there.
    pub read_only: Vec<PathBuf>,
    /// The data of the project's repository, for reading.
    pub repository: Option<PathBuf>,
    /// Folders of which it sees nothing else: the workspace, the project.
    pub hidden: Vec<PathBuf>,
    /// Folders of tools that it may read; the usual ones in the operator's home where absent.
    pub tools: Option<Vec<PathBuf>>,
    /// The project as it sees it, where a sandbox can show the worktree at another place than its own.
    pub project: Option<ProjectView>,
    /// Variables that tell its tools where prepared dependencies are.
    pub prepared: BTreeMap<String, String>,
    /// The team's proxy: the only way out, and the way to the models.
    pub proxy: Option<ProxyAddress>,
    /// The settings for agents in the project that may be read, by the hash of each ([`super::project_settings`]).
    pub pinned: BTreeMap<String, String>,
}

/// Limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Milliseconds of wall time of one turn.
    pub wall_ms: u64,
    /// Milliseconds without output, processor time or anything that comes through the proxy.
    pub idle_ms: u64,
    /// Milliseconds between an interrupt and the kill.
    pub grace_ms: u64,
    /// Bytes of the prompt.
    pub prompt_bytes: usize,
    /// Bytes kept of one line of output.
    pub line_bytes: u64,
    /// Bytes of output in all.
    pub output_bytes: u64,
    /// When it is taken to be stuck.
    #[serde(default)]
    pub patience: Patience,
    /// Tokens of the model's window, where the operator says so; else the agent's word, else the model's name.
    #[serde(default)]
    pub context_window: Option<u64>,
}

impl Default for Limits {
    /// An hour of wall time, ten idle minutes, and the caps of `spec/agents.md` 5.7.
    fn default() -> Limits {
        Limits {
            wall_ms: 60 * 60 * 1000,
            idle_ms: 10 * 60 * 1000,
            grace_ms: 4000,
            prompt_bytes: 160 << 10,
            line_bytes: 4 << 20,
            output_bytes: 64 << 20,
            patience: Patience::default(),
            context_window: None,
        }
    }
}

/// One run: everything that a restarted team needs to go on with it stands here, and this is what
/// `spec.json` in the run folder holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The run.
    pub run_id: RunId,
    /// Its folder, `.teams_runtime/runs/<run_id>`, absolute.
    pub run_dir: PathBuf,
    /// The folder of the role's session: private home, temporary folder, the agent's own state.
    pub session_dir: PathBuf,
    /// The worktree or read-only checkout, absolute.
    pub worktree: PathBuf,
    /// What may be written.
    pub access: WriteAccess,
    /// Who works.
    pub agent: Agent,
    /// On what.
    pub task: Task,
    /// The role's earlier conversation on this request, to be continued.
    pub resume: Option<String>,
    /// Limits.
    pub limits: Limits,
    /// The socket on which the team serves the tools of this run.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// What of the world around it it has.
    #[serde(default)]
    pub surroundings: Surroundings,
    /// Prompt templates that replace the built-in ones, by name (`steps/developer_build.md`).
    #[serde(default)]
    pub templates: BTreeMap<String, String>,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentOutcome {
    /// A result that follows the contract, or why there is none.
    pub outcome: RunOutcome,
    /// Tokens of this run alone.
    pub usage: Usage,
    /// The conversation, to be continued by the same role.
    pub session_id: Option<String>,
    /// Repair turns that were spent.
    pub repairs: u32,
    /// Output over the caps, in bytes.
    pub dropped_bytes: u64,
    /// The agent for people: `codex 0.169.0`, `rehearsal`.
    pub agent: String,
    /// Sections of the prompt that were cut to fit.
    #[serde(default)]
    pub prompt_cut: Vec<String>,
    /// Messages that the agent took while it worked.
    #[serde(default)]
    pub heard: Vec<MessageId>,
    /// How full its conversation is.
    #[serde(default)]
    pub fill: Option<Fill>,
    /// An earlier conversation was handed over to this run's.
    #[serde(default)]
    pub handed_over: Option<HandedOver>,
}
