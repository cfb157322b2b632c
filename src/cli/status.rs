//! `teams status`: what is going on, read from the records without changing any.

use serde_json::{Value, json};

use super::{Failure, Global, say};
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{Content, SET_ASIDE};
use crate::domain::request::Language;
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::why;
use crate::platform::{clock, files};
use crate::store;
use crate::workspace::{self, Workspace};

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this request, with its record
    #[arg(long, value_name = "REQUEST")]
    request_id: Option<RequestId>,
    /// The active sprint, or the last one
    #[arg(long)]
    sprint: bool,
    /// How many backlog items stand in each status
    #[arg(long)]
    backlog: bool,
    /// Only this role, in a line
    #[arg(long, value_name = "ROLE", value_parser = super::run::role)]
    agent: Option<Role>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let root = global.workspace()?;
    let workspace = workspace::load(&root)?;
    let state = store::read_only(&root)?;
    if let Some(id) = &args.request_id {
        return one(&workspace, &state, id);
    }
    // What is asked for most precisely wins (`spec/teams.md` 1.1).
    if args.sprint {
        return super::sprint::show(&state);
    }
    if args.backlog {
        say(super::backlog::totals(&root)?);
        return Ok(());
    }
    if let Some(role) = args.agent {
        say(super::list::role_line(&workspace, &state, role));
        return Ok(());
    }
    if args.json {
        let value = json!({
            "running": service_runs(&root),
            "open_requests": state.requests.values().collect::<Vec<_>>(),
            "ended_requests": state.ended_requests,
            "waiting_for_discord": state.outgoing.len(),
            "set_aside": set_aside(&root)?,
            "discord": crate::discord::standing::Report::read(&root),
            "open_gates": state.gates.values().collect::<Vec<_>>(),
        });
        say(serde_json::to_string_pretty(&value).unwrap_or_default());
        return Ok(());
    }
    overview(&workspace, &state)
}

fn one(workspace: &Workspace, state: &State, id: &RequestId) -> Result<(), Failure> {
    let request = match state.requests.get(id) {
        Some(request) => Some(request.clone()),
        None => store::read_request(&workspace.root, id)?,
    };
    let Some(request) = request else {
        return Err(Failure::new(format!("there is no request {id}"))
            .hint(Some("`teams status` lists the open ones".to_owned())));
    };
    say(serde_json::to_string_pretty(&request).unwrap_or_default());
    Ok(())
}

fn service_runs(root: &std::path::Path) -> bool {
    store::is_owned(root)
}

/// The messages that Discord failed for good while it took others; a line that is no JSON is shown as it is.
fn set_aside(root: &std::path::Path) -> Result<Vec<Value>, Failure> {
    let text = files::read_text_if_present(&root.join(SET_ASIDE))?.unwrap_or_default();
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| json!(line));
    Ok(text.lines().map(line).collect())
}

/// What became, or will become, of the records of an older runtime.
fn taken_over(older: &store::Imported) -> String {
    let (changed, left) = (older.repaired.len(), older.left.len());
    if older.backup.is_empty() {
        return format!(
            "written by an older runtime: the first `teams run` copies .teams_runtime and takes it over \
             ({changed} changes, {left} not carried over)"
        );
    }
    format!(
        "taken over from an older runtime: {changed} changes, {left} not carried over, named in \
         .teams_runtime/import.json; as it was: {}",
        older.backup
    )
}

fn overview(workspace: &Workspace, state: &State) -> Result<(), Failure> {
    let running = if service_runs(&workspace.root) { "running" } else { "stopped" };
    let policy = workspace.policy(Role::ALL.into(), false)?;
    say(format_args!("team: {running}   project: {}   agents: {}", policy.project, policy.agent));
    if let Some(older) = store::imported(&workspace.root)? {
        say(taken_over(&older));
    }
    let open: Vec<_> =
        state.requests.values().filter(|request| !request.status.is_terminal()).collect();
    say(format_args!(
        "requests: {} open, {} ended   waiting for Discord: {}",
        open.len(),
        state.ended_requests,
        state.outgoing.len()
    ));
    let now = Timestamp::new(clock::now());
    if running == "running" {
        let catalog = crate::assets::catalog::Catalog::builtin()?;
        for line in crate::discord::standing::Report::read(&workspace.root).lines(now) {
            let values = [("line".to_owned(), line)].into_iter().collect();
            let key = "discord.standing".to_owned();
            say(catalog.render(&Content { key, values, language: Language::En })?.text);
        }
    }
    let aside = set_aside(&workspace.root)?;
    if let Some(last) = aside.last() {
        say(format_args!(
            "messages set aside: {} (last: {}); their words stand in {SET_ASIDE}",
            aside.len(),
            last["reason"].as_str().unwrap_or_default()
        ));
    }
    let catalog = crate::assets::catalog::Catalog::builtin()?;
    for request in open {
        let why = why::why(state, &policy, request, now);
        let line = catalog.render(&why).map(|rendered| rendered.text);
        let title = super::output::fit(request.scope.lines().next().unwrap_or(""), 60);
        say(format_args!("  {}  {title}", request.request_id));
        say(format_args!("    {}", line.unwrap_or(why.key)));
    }
    Ok(())
}
