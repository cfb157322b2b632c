//! The demo's folder: the project and the workspace. Making it can be cut off anywhere and begun again.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::agents::acp::known;
use crate::assets;
use crate::cli::Failure;
use crate::cli::init::AgentArgument;
use crate::cli::told;
use crate::domain::config::AgentKind;
use crate::domain::language::Language;
use crate::git;
use crate::local_guild::GuildInfo;
use crate::platform::files;
use crate::rehearsal::StepTimes;
use crate::workspace::init::{self, Options};
use crate::workspace::{self, edit};

/// The files of the project within the scaffold.
const PROJECT_FILES: &str = "demo/project/";
/// The times of a simulated plan, in the workspace.
const TIMES: &str = "times.yaml";
/// The branch of the project.
pub(super) const BRANCH: &str = "main";

/// The folder.
#[derive(Debug, Clone)]
pub(super) struct Home {
    dir: PathBuf,
}

impl Home {
    /// Makes the folder and its project where they are not there yet.
    pub(super) fn make(dir: &Path) -> Result<Home, Failure> {
        files::create_dir_all(dir)?;
        let home = Home { dir: files::canonicalize(dir)? };
        // The demo writes both settings files at each start, and made its guild before the first time.
        let workspace = home.workspace();
        if init::is_one(&workspace) && !files::exists(&home.guild()) {
            let said = format!(
                "{} is a workspace without the guild of a demo beside it, and stays",
                workspace.display()
            );
            let hint =
                "name another folder with --dir, or remove it where it is a demo's".to_owned();
            return Err(Failure::usage(said).hint(Some(hint)));
        }
        if files::exists(&home.project()) && !files::exists(&home.guild()) {
            let said = format!(
                "{} is there, and no guild of a demo beside it: the team would work in it",
                home.project().display()
            );
            let hint =
                "name another folder with --dir, or remove it where it is a demo's".to_owned();
            return Err(Failure::usage(said).hint(Some(hint)));
        }
        // Before the project, so that one that was cut off here is known as a demo's.
        files::create_dir_all(&home.guild())?;
        home.make_project()?;
        Ok(home)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.dir.join("project")
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.dir.join("workspace")
    }

    pub(super) fn guild(&self) -> PathBuf {
        self.dir.join("guild")
    }

    /// Where the script's own checks run.
    pub(super) fn scratch(&self) -> PathBuf {
        self.dir.join("scratch")
    }

    /// Builds the project aside and moves it into place whole.
    fn make_project(&self) -> Result<(), Failure> {
        let project = self.project();
        if files::exists(&project) {
            return Ok(());
        }
        let aside = self.dir.join(".project.demo");
        files::remove_dir_all(&aside)?;
        for name in assets::scaffold_files() {
            let Some(relative) = name.strip_prefix(PROJECT_FILES) else {
                continue;
            };
            let path = aside.join(relative);
            if let Some(folder) = path.parent() {
                files::create_dir_all(folder)?;
            }
            let text = assets::scaffold_text(&name).map_err(broken)?;
            files::write(&path, text)?;
        }
        git::create::create(&aside, BRANCH, "A greeting program, and what it lacks")
            .map_err(broken)?;
        files::rename(&aside, &project)?;
        files::sync_dir(&self.dir)?;
        Ok(())
    }

    /// Writes the workspace, or only where the guild is this time.
    pub(super) fn write_workspace(
        &self,
        guild: &GuildInfo,
        agent: &AgentArgument,
        model_url: Option<&str>,
        times: Option<&StepTimes>,
    ) -> Result<(), Failure> {
        let root = self.workspace();
        let runtime = with_logins(&root, self.runtime_yaml(guild, agent, model_url, times)?);
        let discord = discord_yaml(guild)?;
        let options = Options {
            agent: Some(agent.kind),
            runtime_yaml: Some(runtime.clone()),
            discord_yaml: Some(discord.clone()),
            ..Options::default()
        };
        init::init(&root, &options)?;
        if let Some(times) = times {
            let text = serde_json::to_string(times).map_err(broken)?;
            files::write_atomic(&root.join(TIMES), text)?;
        }
        // The guild's address is another one at each start, and so may the agent be.
        files::write_atomic(&root.join("discord_agents_config.yaml"), discord)?;
        files::write_atomic(&root.join("team_runtime.yaml"), runtime)?;
        Ok(())
    }

    fn runtime_yaml(
        &self,
        guild: &GuildInfo,
        agent: &AgentArgument,
        model_url: Option<&str>,
        times: Option<&StepTimes>,
    ) -> Result<String, Failure> {
        let owner = guild.users.get("owner").map(|account| account.id.clone()).unwrap_or_default();
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let language = told::language(Language::En);
        let unknown = agent.kind == AgentKind::Acp && known::api(&agent.command).is_none();
        if unknown && model_url.is_some() {
            let hint = "leave out --model-url and set what it asks for: agents.acp.env in team_runtime.yaml";
            return Err(Failure::new(
                "how this agent is told of another model server is not known",
            )
            .detail(Some(hint.to_owned())));
        }
        let values = json!({
            "project": quoted(&self.project().to_string_lossy()),
            "owner": quoted(&owner),
            "agent": agent.kind.as_str(),
            "command": json!(agent.command).to_string(),
            "model_url": model_url.map_or_else(|| "null".to_owned(), quoted),
            "script": if times.is_some() { TIMES } else { "null" },
            "slots": times.map(|times| times.slots),
            "language": language.as_str(),
        });
        template("demo/team_runtime.yaml", &values)
    }
}

/// The configuration with the logins of agents that somebody has written into the present one.
fn with_logins(root: &Path, mut text: String) -> String {
    let Ok(kept) = workspace::read_runtime(root) else { return text };
    let agents = &kept.agents;
    for (name, home) in [
        ("codex", &agents.codex.login_home),
        ("claude", &agents.claude.login_home),
        ("acp", &agents.acp.login_home),
    ] {
        let home = home.as_ref().and_then(|home| home.to_str());
        let key = ["agents", name, "login_home"];
        if let Some(with) = home.and_then(|home| edit::set_scalar(&text, &key, home)) {
            text = with;
        }
    }
    text
}

fn discord_yaml(guild: &GuildInfo) -> Result<String, Failure> {
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let channel = |name: &str| quoted(guild.channels.get(name).map_or("", String::as_str));
    let values = json!({
        "guild_id": quoted(&guild.guild_id),
        "relay_channel_id": channel("relay"),
        "startup_channel_id": channel("startup"),
        "report_channel_id": channel("report"),
        "base_url": quoted(&guild.base_url),
        "gateway_url": quoted(&guild.gateway_url),
    });
    template("demo/discord_agents_config.yaml", &values)
}

fn template(name: &str, values: &serde_json::Value) -> Result<String, Failure> {
    let source = assets::scaffold_text(name).map_err(broken)?;
    assets::render(name, &source, values).map_err(broken)
}

pub(super) fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}
