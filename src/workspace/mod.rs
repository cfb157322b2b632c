//! A workspace: the folder that `teams init` writes. Finding it, reading its configuration, writing
//! its scaffold and the documents that people read in it.

mod choice;
pub mod documents;
pub mod edit;
mod environment;
mod error;
pub mod init;
pub mod lifecycle;
mod locate;
mod open;
pub mod papers;
mod policy_file;
mod resolve;
pub mod routes;
pub mod secrets;
pub mod settings;
mod yaml;

pub use choice::Choice;
pub use environment::{Environment, Origin, Tokens};
pub use error::{ConfigError, Invalid};
pub use init::imagine;
pub use open::{Workspace, checks_digest, load, must_exist, read_runtime};
pub use resolve::{has_settings, is_workspace, project_default, resolve};

/// Configuration of the team's work.
pub const RUNTIME_FILE: &str = "team_runtime.yaml";
/// Configuration of the team's presence in Discord.
pub const DISCORD_FILE: &str = "discord_agents_config.yaml";
/// When the workspace was made; earlier messages are not for its team.
pub const BORN_FILE: &str = ".teams_runtime/born";
/// From when on a look back over what was missed has to find everything, while it is under way.
pub const LOOK_BACK_FILE: &str = ".teams_runtime/look_back";
/// What holds the token of a demo's bot, for the team that the demo starts and for nobody else.
pub const DEMO_TOKEN: &str = "TEAMS_DEMO_TOKEN";
/// Names the folder with what was there before, while a reset is under way.
pub(crate) const RESET_FILE: &str = ".reset";
/// What an older workspace says about its workflow.
pub const POLICY_FILE: &str = "orchestrator/.agents/skills/agent_utilization/policy.yaml";

#[cfg(test)]
mod tests;
