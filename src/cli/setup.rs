//! `teams setup`: from a token to a server in which the team can work, and back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::init::AgentArgument;
use super::told::{Printer, language, object};
use super::{Failure, Global};
use crate::discord::setup::permissions::TABLE;
use crate::domain::check_proposal::CheckProposal;
use crate::domain::config::AgentKind;
use crate::domain::ids::{GuildId, UserId};
use crate::domain::language::Language;
use crate::domain::role::Role;
use crate::onboarding;
use crate::onboarding::setup::{self, Options, SetupDialog, SetupError, SetupStep};
use crate::platform::{files, plug, terminal};
use crate::workspace::{self, Workspace};

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// For a new workspace: the repository that it works on. The workspace then lies beside it, as <FOLDER>-team, or
    /// where `--workspace-root` says
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
    /// A file that holds the bot's token (with `voice: bots` a line `role=token` for each); without it, what is
    /// set already counts, and then you are asked
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A `teams local-guild` on this machine instead of Discord, by the whole address that it prints; it needs no
    /// token
    #[arg(long, value_name = "URL", conflicts_with_all = ["token_file", "base_url"])]
    local: Option<String>,
    /// Another server than Discord's that speaks its language
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The server, where the bot is in several
    #[arg(long, value_name = "SERVER_ID")]
    guild: Option<GuildId>,
    /// The Discord user id of the person who may do everything [default: whose the bot is]
    #[arg(long, value_name = "USER_ID")]
    owner: Option<UserId>,
    /// For a new workspace: the agent of all roles: codex, claude, rehearsal, or `acp:<command>` for any agent
    /// that speaks the Agent Client Protocol [default: rehearsal]
    #[arg(long, value_parser = super::init::agent)]
    agent: Option<AgentArgument>,
    /// For a new workspace: the language (en, ko) where a person's own is unknown
    #[arg(long, value_parser = super::init::language)]
    language: Option<Language>,
    /// How long to wait for you to open the invite link
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=86_400))]
    wait: u64,
    /// Tell what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Take away everything that setup made, and nothing else
    #[arg(long, conflicts_with_all = ["project", "token_file", "local", "guild", "owner", "agent", "language"])]
    undo: bool,
    /// Do not ask: accept the checks that the project shows; with `--undo`, take away
    #[arg(long)]
    yes: bool,
    /// A line of JSON for each step
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    plug::check().map_err(|error| Failure::usage(error.to_string()))?;
    let project = args.project.as_deref().map(files::canonicalize).transpose();
    let project = project.map_err(|error| Failure::new(error.to_string()))?;
    let root = match &project {
        Some(project) => global.workspace_or(|| onboarding::beside(project))?,
        None => global.workspace()?,
    };
    let there = workspace::load(&root).ok();
    if !workspace::is_workspace(&root) {
        let given = [
            ("--project", "project.path", project.is_some()),
            ("--agent", "agents", args.agent.is_some()),
            ("--language", "language", args.language.is_some()),
            ("--owner", "people.owner", args.owner.is_some()),
        ];
        super::init::refuse_given(&root, &given)?;
    }
    let own = there.as_ref().map(|workspace| workspace.runtime.language);
    let person = language(args.language.or(own).unwrap_or_default());
    if let Some(workspace) = &there {
        refuse_other(workspace, project.as_deref(), args)?;
    }
    let printer = Printer::new(person, args.json)?;
    let outcome = if args.undo {
        take_back(&printer, &root, args)
    } else {
        make(&printer, root, project, args)
    };
    plug::write_counts()?;
    outcome.map_err(|error| {
        let hint = if args.undo { error.undo_hint() } else { error.hint() };
        if printer.is_json() {
            let fields = vec![
                ("step", json!("stopped")),
                ("result", json!("problem")),
                ("text", json!(error.to_string())),
                ("hint", json!(hint)),
            ];
            printer.object(fields, &Map::new());
        }
        if let SetupError::Config(error) = error {
            // Shows the place in the file.
            return error.into();
        }
        Failure::new(error.to_string()).hint(hint)
    })
}

/// What is for a new workspace is no way to change one: whoever asks for something else than is there is told.
fn refuse_other(workspace: &Workspace, project: Option<&Path>, args: &Args) -> Result<(), Failure> {
    let runtime = &workspace.runtime;
    let agents = &runtime.agents;
    let is_same = |one: &AgentArgument| {
        let is_command = one.kind != AgentKind::Acp || one.command == agents.acp.command;
        one.kind == agents.default && is_command
    };
    let root = workspace.project_root();
    let root = files::canonicalize(&root).unwrap_or(root);
    let differs = [
        ("--project", "project.path", project.is_some_and(|project| project != root)),
        ("--agent", "agents", args.agent.as_ref().is_some_and(|agent| !is_same(agent))),
        ("--language", "language", args.language.is_some_and(|one| one != runtime.language)),
        (
            "--owner",
            "people.owner",
            args.owner.zip(runtime.people.owner).is_some_and(|(new, own)| new != own),
        ),
    ];
    let Some((option, key, _)) = differs.into_iter().find(|(_, _, differs)| *differs) else {
        return Ok(());
    };
    let place = workspace.root.display();
    let said =
        format!("{option} is for a new workspace, and the one at {place} says something else");
    let hint = format!("set `{key}` in its team_runtime.yaml, or name another --workspace-root");
    Err(Failure::usage(said).hint(Some(hint)))
}

fn make(
    printer: &Printer,
    root: PathBuf,
    project: Option<PathBuf>,
    args: &Args,
) -> Result<(), SetupError> {
    let (token, tokens) = match &args.token_file {
        Some(path) => setup::tokens(&files::read_text(path)?)?,
        None => (None, BTreeMap::new()),
    };
    let options = Options {
        root,
        project,
        token,
        tokens,
        local: args.local.clone(),
        base_url: args.base_url.clone(),
        guild: args.guild,
        owner: args.owner,
        agent: args.agent.as_ref().map(|agent| agent.kind),
        acp_command: args.agent.as_ref().map(|agent| agent.command.clone()).unwrap_or_default(),
        language: args.language.unwrap_or_else(|| language(Language::default())),
        wait: Duration::from_secs(args.wait),
        accept_checks: args.yes,
        dry_run: args.dry_run,
    };
    let mut tell = |told: SetupStep| tell(printer, &told);
    let mut ask = |role: Option<Role>| {
        if printer.is_json() || !terminal::is_there() {
            return Ok(None);
        }
        let question = match role {
            None => printer.words("setup.ask.token", &Map::new()),
            Some(role) => {
                let values = [("role".to_owned(), json!(role))].into_iter().collect();
                printer.words("setup.ask.bot", &values)
            }
        };
        let said = terminal::hidden_line(&format!("{question} "))?;
        Ok(said)
    };
    let mut accept = |found: &CheckProposal| {
        if printer.is_json() || !terminal::is_there() {
            return Ok(None);
        }
        let question = printer.words("setup.checks.ask", &object(json!(found)));
        Ok(Some(terminal::line(&format!("{question} "))? == "yes"))
    };
    let dialog = SetupDialog { tell: &mut tell, ask: &mut ask, accept: &mut accept };
    converse(setup::setup(&options, dialog))
}

fn take_back(printer: &Printer, root: &Path, args: &Args) -> Result<(), SetupError> {
    if !args.yes && !args.dry_run {
        let things = setup::undoable(root)?.things;
        if !things.is_empty() && (printer.is_json() || !terminal::is_there()) {
            return Err(SetupError::UndoUnasked { things: things.len() });
        }
        if !things.is_empty() {
            let mut values = Map::new();
            values.insert("count".to_owned(), json!(things.len()));
            let question = printer.words("setup.ask.undo", &values);
            let said = terminal::line(&format!("{question} ")).map_err(SetupError::Terminal)?;
            if said != "yes" {
                return Err(SetupError::Declined);
            }
        }
    }
    let mut tell = |told: SetupStep| tell(printer, &told);
    let mut ask = |_| Ok(None);
    let mut accept = |_: &CheckProposal| Ok(None);
    let dialog = SetupDialog { tell: &mut tell, ask: &mut ask, accept: &mut accept };
    converse(setup::undo(root, args.dry_run, args.base_url.as_deref(), dialog))
}

fn converse(work: impl Future<Output = Result<(), SetupError>>) -> Result<(), SetupError> {
    let runtime = super::runtime()
        .map_err(|_| SetupError::Terminal(std::io::Error::other("the runtime cannot start")))?;
    runtime.block_on(work)
}

fn tell(printer: &Printer, told: &SetupStep) {
    let text = printer.words(told.key, &told.values);
    if printer.is_json() {
        let fields = vec![
            ("step", json!(told.step)),
            ("result", json!(told.outcome.as_str())),
            ("text", Value::String(text)),
        ];
        printer.object(fields, &told.values);
        return;
    }
    let mut text = text;
    if told.values.contains_key("permissions") {
        for permission in TABLE {
            let why = printer.words(permission.why, &Map::new());
            text.push_str(&format!("\n  {}: {why}", permission.name));
        }
    }
    printer.line(&format!("setup.mark.{}", told.outcome.as_str()), &text);
}
