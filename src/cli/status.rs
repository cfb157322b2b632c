//! `teams status`: what is going on, read from the records without changing any.

use std::path::Path;

use serde_json::{Value, json};

use super::output::say_json;
use super::plain::plain;
use super::{Failure, Global, records, say};
use crate::domain::ids::RequestId;
use crate::domain::language::Language;
use crate::domain::outgoing::{Content, SET_ASIDE};
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::{standing, why};
use crate::git::EnvironmentStore;
use crate::import::older::{self, Notes};
use crate::platform::{clock, files};
use crate::service;
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
    #[arg(long, conflicts_with_all = ["sprint", "backlog", "agent"])]
    json: bool,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let root = global.existing()?;
    let state = records::state(&root)?;
    if let Some(id) = &args.request_id {
        return one(&root, &state, id);
    }
    // What is asked for most precisely wins (`spec/teams.md` 1.1).
    if args.sprint {
        return super::sprint::show(&state);
    }
    if args.backlog {
        say(super::backlog::totals(&root)?);
        return Ok(());
    }
    // A configuration that is broken is told beside what needs none; the team goes on with what it read.
    let workspace = workspace::load(&root);
    if let Some(role) = args.agent {
        say(super::list::role_line(&root, workspace.as_ref().ok(), &state, role));
        return workspace.map(|_| ()).map_err(Failure::from);
    }
    if args.json {
        let value = json!({
            "running": service_runs(&root),
            "open_requests": state.requests.values().collect::<Vec<_>>(),
            "ended_requests": state.all_ended(),
            "waiting_for_discord": state.outgoing.len(),
            "refused_by_discord": standing::refusals(&state, standing::refused(&state)),
            "set_aside": set_aside(&root)?,
            "discord": crate::discord::standing::Report::read(&root),
            "open_gates": state.gates.values().collect::<Vec<_>>(),
            "environments": environments(&root)?,
        });
        say_json(&value, true);
        return workspace.map(|_| ()).map_err(Failure::from);
    }
    match workspace {
        Ok(workspace) => overview(&root, Some(&workspace), &state),
        Err(error) => {
            overview(&root, None, &state)?;
            Err(error.into())
        }
    }
}

fn one(root: &Path, state: &State, id: &RequestId) -> Result<(), Failure> {
    let request = match state.requests.get(id) {
        Some(request) => Some(Request::clone(request)),
        None => records::request(root, id)?,
    };
    let Some(request) = request else {
        return Err(super::command::unknown(id));
    };
    say_json(&json!(request), true);
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

/// What is prepared for checks and agents, the one that was used last first.
fn environments(root: &Path) -> Result<Vec<Value>, Failure> {
    let kept = EnvironmentStore::at(&service::environments(root)).list();
    let kept = kept.map_err(|error| Failure::new(plain(&error.to_string())))?;
    let now = Timestamp::new(clock::now());
    let told = kept.iter().map(|one| {
        json!({
            "name": one.record.name,
            "bytes": one.record.bytes,
            "age_seconds": now.seconds_since(one.record.made_at),
            "commit": one.record.commit,
            "not_landed": one.apart,
        })
    });
    Ok(told.collect())
}

/// What became, or will become, of the records of an older runtime.
fn taken_over(older: &Notes) -> String {
    let (changed, left) = (older.repaired.len(), older.left.len());
    if older.backup.is_empty() {
        return format!(
            "written by an older runtime: `teams run --yes` copies .teams_runtime and takes it over \
             ({changed} changes, {left} not carried over)"
        );
    }
    format!(
        "taken over from an older runtime: {changed} changes, {left} not carried over, named in \
         .teams_runtime/import.json; as it was: {}",
        older.backup
    )
}

fn overview(root: &Path, workspace: Option<&Workspace>, state: &State) -> Result<(), Failure> {
    let running = if service_runs(root) { "running" } else { "stopped" };
    // What is open is told in any case.
    let (policy, problem) = match workspace.map(|it| it.policy(Role::ALL.into(), false)).transpose()
    {
        Ok(policy) => (policy, None),
        Err(problem) => (None, Some(problem)),
    };
    match &policy {
        Some(policy) => {
            let (project, agent) = (&policy.project, policy.agent_names());
            say(format_args!("team: {running}   project: {project}   agents: {agent}"));
        }
        None => say(format_args!("team: {running}   its configuration cannot be read now")),
    }
    let preview = older::preview(root)?.map(|converted| converted.notes);
    if let Some(notes) = preview.map_or_else(|| older::notes(root), |it| Ok(Some(it)))? {
        say(taken_over(&notes));
    }
    let open: Vec<_> =
        state.requests.values().filter(|request| !request.status.is_terminal()).collect();
    say(format_args!(
        "requests: {} open, {} ended   waiting for Discord: {}",
        open.len(),
        state.all_ended(),
        state.outgoing.len()
    ));
    let items = standing::blocked_items(state);
    let looks: usize = state.verifications.values().map(|it| it.open().count()).sum();
    if items + looks > 0 {
        say(format_args!(
            "waiting for somebody: {items} of the backlog (`teams backlog list`), {looks} to look at (`teams verify`)"
        ));
    }
    let refused = standing::refused(state);
    if refused.clone().next().is_some() {
        say(format_args!(
            "messages that Discord refused: {}; they are tried again when rights or channels change, or by \
             `teams outbox retry`; `teams outbox dismiss` gives one up",
            refused.clone().count()
        ));
        for outgoing in refused.take(standing::LINES) {
            let reason = standing::refusal(state, outgoing);
            let reason = super::output::fit(&reason, 100);
            say(format_args!("  {}  {reason}", outgoing.short_id()));
        }
    }
    let now = Timestamp::new(clock::now());
    if running == "running" {
        let catalog = crate::assets::catalog::Catalog::builtin()?;
        for line in crate::discord::standing::Report::read(root).lines(now) {
            let values = [("line".to_owned(), line)].into_iter().collect();
            let key = "discord.standing".to_owned();
            say(plain(&catalog.render(&Content { key, values, language: Language::En })?.text));
        }
    }
    let aside = set_aside(root)?;
    if let Some(last) = aside.last() {
        say(format_args!(
            "messages set aside: {} (last: {}); their words stand in {SET_ASIDE}",
            aside.len(),
            last["reason"].as_str().unwrap_or_default()
        ));
    }
    for one in environments(root)? {
        let number = |name: &str| one[name].as_u64().unwrap_or_default();
        say(format_args!(
            "prepared: {}  {} MB, {} h old{}",
            plain(one["name"].as_str().unwrap_or_default()),
            number("bytes") / 1_000_000,
            number("age_seconds") / 3_600,
            one["not_landed"]
                .as_str()
                .map(|it| format!("  (asked for by {it}, not landed)"))
                .unwrap_or_default()
        ));
    }
    let catalog = crate::assets::catalog::Catalog::builtin()?;
    for request in open {
        let title = super::output::fit(request.scope.lines().next().unwrap_or(""), 60);
        say(format_args!("  {}  {title}", request.request_id));
        let Some(policy) = &policy else { continue };
        let why = why::why(state, policy, request, now);
        let line = catalog.render(&why).map(|rendered| plain(&rendered.text));
        say(format_args!("    {}", line.unwrap_or(why.key)));
    }
    problem.map_or(Ok(()), |problem| Err(problem.into()))
}
