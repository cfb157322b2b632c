//! `teams init`: write a workspace, or bring newer texts into one.

use super::{Failure, Global, say};
use crate::domain::config::AgentKind;
use crate::domain::ids::UserId;
use crate::domain::request::Language;
use crate::workspace::init::{self, Mode, Options};

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The Discord user id of the person who may do everything
    #[arg(long, value_name = "USER_ID")]
    owner: Option<UserId>,
    /// The agent of all roles [default: rehearsal]
    #[arg(long, value_parser = agent)]
    agent: Option<AgentKind>,
    /// The language (en, ko) where a person's own is unknown
    #[arg(long, default_value = "en", value_parser = language)]
    language: Language,
    /// Only bring newer texts of prompts and skills; an edited one stays
    #[arg(long, conflicts_with = "reset")]
    refresh_prompts: bool,
    /// Begin again: requests, sprints and role files are lost, sprint history stays
    #[arg(long)]
    reset: bool,
}

pub(super) fn agent(word: &str) -> Result<AgentKind, String> {
    match word {
        "codex" => Ok(AgentKind::Codex),
        "claude" => Ok(AgentKind::Claude),
        "rehearsal" => Ok(AgentKind::Rehearsal),
        // Its command has to be written down in any case.
        "acp" => {
            Err("set `agents: {default: acp, acp: {command: […]}}` in team_runtime.yaml".to_owned())
        }
        _ => Err("expected codex, claude or rehearsal".to_owned()),
    }
}

pub(super) fn language(word: &str) -> Result<Language, String> {
    match word {
        "en" => Ok(Language::En),
        "ko" => Ok(Language::Ko),
        _ => Err("expected en or ko".to_owned()),
    }
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let root = global.workspace()?;
    let options = Options {
        mode: match (args.refresh_prompts, args.reset) {
            (true, _) => Mode::Refresh,
            (false, true) => Mode::Reset,
            (false, false) => Mode::Auto,
        },
        owner: args.owner,
        agent: args.agent,
        language: args.language,
        ..Options::default()
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
    for aside in &report.aside {
        say(format_args!("  the former configuration is {}", aside.display()));
    }
    if !report.refreshed {
        say(
            "Next: `teams setup` connects it with your Discord server, and `teams run` starts the team.",
        );
        if args.owner.is_none() {
            say(
                "Nobody may do anything yet: set `people.owner`, or run `teams init --owner <id>` at first.",
            );
        }
    }
    Ok(())
}
