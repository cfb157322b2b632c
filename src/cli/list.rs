//! `teams list`: the roles, the backlog, the schedule and the open requests, for scripts
//! (`spec/teams.md` 1.2).

use std::path::Path;

use super::{Failure, Global, backlog, records, say};
use crate::domain::config::AgentKind;
use crate::domain::ids::RequestId;
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::run::Approach;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::store;
use crate::workspace::{self, Workspace};

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this request
    #[arg(long, value_name = "REQUEST")]
    request_id: Option<RequestId>,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let root = global.existing()?;
    // What needs no configuration is listed also where it is broken; that is told at the end.
    let workspace = workspace::load(&root);
    let state = records::state(&root)?;
    if let Some(id) = &args.request_id {
        let request = match state.requests.get(id) {
            Some(request) => Some(Request::clone(request)),
            None => records::request(&root, id)?,
        };
        let request = request.ok_or_else(|| super::command::unknown(id))?;
        say(request_line(&request));
        return Ok(());
    }
    for role in Role::ALL {
        say(role_line(&root, workspace.as_ref().ok(), &state, role));
    }
    say(backlog::totals(&root)?);
    let scheduler = &state.scheduler;
    let active = scheduler.active_sprint_id.as_ref().map_or("N/A", |id| id.as_str());
    say(format_args!(
        "active_sprint_id={active} next_slot_at={}",
        time(scheduler.slots.next_slot_at)
    ));
    for request in state.requests.values() {
        say(request_line(request));
    }
    say(format_args!("ended_requests={}", state.all_ended()));
    workspace.map(|_| ()).map_err(Failure::from)
}

/// One role in a line; without a configuration its model is not known. Whoever rehearses asks none.
pub(super) fn role_line(
    root: &Path,
    workspace: Option<&Workspace>,
    state: &State,
    role: Role,
) -> String {
    let running = store::is_owned(root);
    let status = if running { "running" } else { "stopped" };
    let sprint = state.scheduler.active_sprint_id.as_ref().map_or("N/A", |id| id.as_str());
    let mut sessions: Vec<_> = state.sessions.values().filter(|it| it.role == role).collect();
    sessions.sort_by_key(|session| session.last_used_at);
    let session = sessions.last().map_or("N/A", |session| session.session_id.as_str());
    let thinks =
        |it: &&Workspace| role.is_public() && it.runtime.agents.of(role) != AgentKind::Rehearsal;
    let choice = workspace
        .filter(thinks)
        .and_then(|workspace| workspace.choice(role, None, Approach::Usual).ok());
    let model = choice.as_ref().map_or("N/A", |choice| choice.model.as_str());
    let reasoning = match &choice {
        None => "N/A",
        // Such models take no such setting (row C22).
        Some(choice) if choice.model.contains("gemini") => "None",
        Some(choice) => choice.reasoning.as_str(),
    };
    format!(
        "{role}: status={status} sprint_id={sprint} session={session} model={model} reasoning={reasoning}"
    )
}

fn request_line(request: &Request) -> String {
    let role = request.route.current_role.map_or("N/A", Role::as_str);
    let status = request.status.as_str();
    format!("request_id={} status={status} current_role={role}", request.request_id)
}

fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "N/A".to_owned(), |at| at.to_string())
}
