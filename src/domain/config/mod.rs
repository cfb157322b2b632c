//! The two configuration files of a workspace as types. What serde cannot say about one value alone
//! is said by `check`, which names the key; reading, line numbers and defaults from the environment
//! belong to the `workspace` room.

mod agents;
mod discord;
mod limits;
mod models;
mod profiles;
mod runtime;
mod values;

pub use agents::{
    AcpConfig, AgentKind, AgentsConfig, ClaudeConfig, CodexConfig, Reasoning, RehearsalConfig,
    RoleDefaults, Sandbox, SandboxConfig,
};
pub use discord::{Channels, DiscordConfig, Identity, PLACEHOLDER_IDS, TokenNames, Voice};
pub use limits::{Capacity, LimitsConfig};
pub use models::{ModelApi, ModelServer};
pub use profiles::{Profile, ProfilesConfig, Wish};
pub use runtime::{
    Action, ActionMode, Check, CheckNetwork, Commits, Gates, Ingress, IngressMode, OverlapPolicy,
    People, Prepare, Project, ResearchDefaults, RightHolders, RuntimeConfig, Seconds, Signing,
    Sprint, Train,
};
pub use values::{
    Argv, BranchName, CarriedFolder, ContentHash, CutoffTime, EnvName, FilterName, IntervalMinutes,
    JunitReport, OutsidePath, Positive, ProjectPath, Zone, is_build_folder, names_a_secret,
};

/// A value that is wrong only beside others, or only for what is about to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, from the top of the file; an index stands as its number.
    pub key: Vec<String>,
    /// What is wrong, as a lowercase fragment.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem with the value at `key`, a path separated by dots.
    #[must_use]
    pub fn at(key: &str, message: impl Into<String>) -> Problem {
        Problem {
            key: key.split('.').map(str::to_owned).collect(),
            message: message.into(),
            hint: None,
        }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// The key path with dots.
    #[must_use]
    pub fn key_path(&self) -> String {
        self.key.join(".")
    }
}
