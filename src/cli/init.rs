//! `teams init`: write a workspace, or bring newer texts into one.

use std::path::Path;

use super::{Failure, Global, records, say};
use crate::domain::config::AgentKind;
use crate::domain::ids::UserId;
use crate::domain::language::Language;
use crate::platform::disk::RealDisk;
use crate::platform::terminal;
use crate::store;
use crate::workspace;
use crate::workspace::init::{self, Mode, Options};

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// For a new workspace: the Discord user id of the person who may do everything
    #[arg(long, value_name = "USER_ID")]
    owner: Option<UserId>,
    /// For a new workspace: the agent of all roles: codex, claude, rehearsal, or `acp:<command>` for any agent that speaks the Agent
    /// Client Protocol [default: rehearsal]
    #[arg(long, value_parser = agent)]
    agent: Option<AgentArgument>,
    /// For a new workspace: the language (en, ko) where a person's own is unknown [default: en]
    #[arg(long, value_parser = language)]
    language: Option<Language>,
    /// Only bring newer texts of prompts and skills; an edited one stays
    #[arg(long, conflicts_with = "reset")]
    refresh_prompts: bool,
    /// Begin again: requests, sprints, logs, role files and your team_runtime.yaml and routes.yaml go into a folder
    /// of the workspace; sprint history and the settings for Discord stay
    #[arg(long)]
    reset: bool,
    /// With `--reset`: do not ask
    #[arg(long, requires = "reset")]
    yes: bool,
}

/// An agent, as it is named on the command line.
#[derive(Debug, Clone)]
pub(super) struct AgentArgument {
    pub(super) kind: AgentKind,
    /// For the Agent Client Protocol: the program with its arguments.
    pub(super) command: Vec<String>,
}

pub(super) fn agent(word: &str) -> Result<AgentArgument, String> {
    let built_in = |kind| Ok(AgentArgument { kind, command: Vec::new() });
    match word {
        "codex" => return built_in(AgentKind::Codex),
        "claude" => return built_in(AgentKind::Claude),
        "rehearsal" => return built_in(AgentKind::Rehearsal),
        _ => {}
    }
    let command = match word.strip_prefix("acp:") {
        Some(command) => command,
        None if word == "acp" => "",
        None => return Err("expected codex, claude, rehearsal or acp:<command>".to_owned()),
    };
    let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    if command.is_empty() {
        return Err("expected `acp:` with a command, as in `acp:opencode acp`".to_owned());
    }
    Ok(AgentArgument { kind: AgentKind::Acp, command })
}

pub(super) fn language(word: &str) -> Result<Language, String> {
    match word {
        "en" => Ok(Language::En),
        "ko" => Ok(Language::Ko),
        _ => Err("expected en or ko".to_owned()),
    }
}

/// Takes the workspace for a reset, which nobody may be in the middle of, and asks.
fn alone(root: &Path, yes: bool) -> Result<store::WorkspaceLock, Failure> {
    let hold = store::hold(root, &RealDisk)?;
    if yes {
        return Ok(hold);
    }
    let place = root.display();
    // What cannot be read is kept all the same.
    let open = records::state(root)
        .map_or(0, |state| state.requests.values().filter(|it| !it.status.is_terminal()).count());
    let refused = format!("the workspace {place} was not reset: {open} open requests would end");
    if !terminal::is_there() {
        let command = format!("teams init --reset --yes --workspace-root '{place}'");
        return Err(Failure::new(refused)
            .hint(Some(format!("`{command}` does it; what is there, your team_runtime.yaml among it, is kept in a folder \
                 of the workspace"))));
    }
    let question = format!(
        "The workspace {place} begins again: {open} open requests, sprints, logs, role files and your settings \
         (team_runtime.yaml, routes.yaml) go into a folder of the workspace. Go on? (yes/no) "
    );
    match terminal::line(&question) {
        Ok(answer) if answer == "yes" => Ok(hold),
        Ok(_) => Err(Failure::new("nothing was changed")),
        Err(error) => Err(Failure::new(format!("the terminal cannot be read: {error}"))),
    }
}

/// Refuses options for new settings, each with its key and whether it is given, where there are settings.
pub(super) fn refuse_given(root: &Path, options: &[(&str, &str, bool)]) -> Result<(), Failure> {
    let given = options.iter().find(|(_, _, is_given)| *is_given);
    let Some((option, key, _)) = given.filter(|_| workspace::has_settings(root)) else {
        return Ok(());
    };
    let said = format!("{option} is for a new workspace, and there is one at {}", root.display());
    let hint = format!("set `{key}` in team_runtime.yaml");
    Err(Failure::usage(said).hint(Some(hint)))
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let root = global.workspace()?;
    if args.owner == Some(UserId(0)) {
        return Err(Failure::usage("--owner: no Discord account has the id 0").hint(Some(
            "Discord shows your id by `Copy User ID`, in its developer mode".to_owned(),
        )));
    }
    let options = Options {
        mode: match (args.refresh_prompts, args.reset) {
            (true, _) => Mode::Refresh,
            (false, true) => Mode::Reset,
            (false, false) => Mode::Auto,
        },
        owner: args.owner,
        agent: args.agent.as_ref().map(|agent| agent.kind),
        acp_command: args.agent.as_ref().map(|agent| agent.command.clone()).unwrap_or_default(),
        language: args.language.unwrap_or_default(),
        ..Options::default()
    };
    let given = [
        ("--owner", "people.owner", options.owner.is_some()),
        ("--agent", "agents", options.agent.is_some()),
        ("--language", "language", args.language.is_some()),
    ];
    if options.mode != Mode::Reset {
        refuse_given(&root, &given)?;
    }
    // What is no workspace is refused by name before anything is made there.
    let _alone = match options.mode {
        Mode::Reset if init::is_one(&root) => Some(alone(&root, args.yes)?),
        Mode::Reset | Mode::Refresh | Mode::Auto => None,
    };
    let report = init::init(&root, &options)?;
    let place = root.display();
    if report.refreshed {
        say(format_args!("Refreshed {} workspace prompt files at {place}", report.written));
    } else {
        say(format_args!("Scaffolded {} workspace files at {place}", report.written));
    }
    for (kept, beside) in &report.beside {
        let (kept, beside) = (kept.display(), beside.display());
        say(format_args!("  {kept} has your edits and stays; the newer text is {beside}"));
    }
    if let Some(backup) = &report.backup {
        say(format_args!("  what was there before is in {}", backup.display()));
        say(
            "  team_runtime.yaml and routes.yaml are new: copy the old ones back to keep your settings",
        );
    }
    if !report.refreshed {
        say(
            "Next: `teams setup` connects it with your Discord server, and `teams run` starts the team.",
        );
        if args.owner.is_none() {
            say(
                "Nobody may do anything yet: set `people.owner` in team_runtime.yaml, or let `teams setup` do it.",
            );
        }
    }
    Ok(())
}
