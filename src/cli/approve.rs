//! `teams approve`: decide what waits for a person. What is decided on has to be named, so that nothing is
//! approved that was not looked at.

use serde_json::{Map, json};

use super::told::Printer;
use super::{Failure, Global, command, records, say};
use crate::domain::gate::{Gate, GateKind, WayAhead};
use crate::domain::ids::RequestId;
use crate::domain::incoming::Command;
use crate::domain::language::Language;
use crate::domain::request::{ActionAtGate, Request};
use crate::domain::state::State;
use crate::engine::{
    budget_on_card, by_guard, command_lines, content_of, contract, needs_reason, red_before,
};

/// Letters of a commit that name it.
const NAMED: usize = 10;

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The request that waits; without one, everything that does is shown
    #[arg(value_name = "REQUEST")]
    request: Option<RequestId>,
    /// The commit, or the digest of the plan or the command, that is decided on; at least seven letters
    #[arg(long, value_name = "COMMIT", requires = "request")]
    content: Option<String>,
    /// Turn it down instead
    #[arg(long, requires = "content")]
    no: bool,
    /// Approve a plan in spite of what was found in it; the reason is kept
    #[arg(long, value_name = "REASON", requires = "content", conflicts_with = "no")]
    anyway: Option<String>,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let by_agent = std::env::var_os(crate::agents::RUN_SOCKET).is_some();
    // An agent's own try goes to the team, which notes it and tells of it; the records are not its business.
    if let (true, Some(id), Some(content)) = (by_agent, &args.request, &args.content) {
        return command::say_call(global, decision(args, id, content));
    }
    let root = global.existing()?;
    let state = records::state(&root)?;
    let Some(id) = &args.request else { return list(&state) };
    if !state.requests.contains_key(id) && records::request(&root, id)?.is_none() {
        return Err(command::unknown(id));
    }
    if let Some(content) = &args.content {
        return command::say_call(global, decision(args, id, content));
    }
    let waiting =
        state.requests.get(id).and_then(|request| Some((gate(&state, request)?, request)));
    let Some((gate, request)) = waiting else {
        return Err(Failure::new(format!("{id} waits for no decision"))
            .hint(Some("`teams approve` lists what does".to_owned())));
    };
    show(gate, request)
}

fn decision(args: &Args, id: &RequestId, content: &str) -> Command {
    Command::Decide {
        request_id: id.clone(),
        content: content.to_owned(),
        yes: !args.no,
        reason: args.anyway.clone(),
        channel_id: None,
    }
}

fn gate<'a>(state: &'a State, request: &Request) -> Option<&'a Gate> {
    state.gates.get(request.work.gate_id.as_ref()?).map(|gate| &**gate)
}

fn list(state: &State) -> Result<(), Failure> {
    let mut found = false;
    for request in state.requests.values() {
        if let Some(gate) = gate(state, request) {
            found = true;
            say(format_args!("{}  {}  {}", request.request_id, named(gate), title(request)));
        }
    }
    if !found {
        say("Nothing waits for a decision.");
    }
    Ok(())
}

fn show(gate: &Gate, request: &Request) -> Result<(), Failure> {
    say(title(request));
    let printer = Printer::new(Language::En, false)?;
    match (gate.kind, &request.work.candidate) {
        (GateKind::Budget, _) => {
            let values = budget_on_card(request).as_object().cloned().unwrap_or_default();
            say(printer.words("budget.spent", &values));
        }
        (GateKind::Plan, _) => {
            if let Some(plan) = &request.work.planned {
                say(&plan.summary);
                if !plan.allowed_paths.is_empty() {
                    say(format_args!("It changes: {}", plan.allowed_paths.join(", ")));
                }
            }
            for criterion in contract::criteria(request, None) {
                say(format_args!("  - {criterion}"));
            }
            for found in &request.work.plan_review.findings {
                let by = printer.words(&format!("reviewer.{}", found.by), &serde_json::Map::new());
                say(format_args!("  ! {} ({by})", found.line()));
            }
            if let Some(WayAhead { turns, usd }) = &gate.ahead {
                let cost = usd.as_ref().map(|usd| format!(", about ${usd}")).unwrap_or_default();
                let runs = if *turns == 1 { "run" } else { "runs" };
                say(format_args!("Still to come: {turns} agent {runs}{cost}."));
            }
        }
        (GateKind::Action, _) => {
            if let Some(ActionAtGate { name, command }) = &request.params.action_at_gate {
                say(format_args!("{name} would run: {}", command.join(" ")));
            }
        }
        (GateKind::Prepare, commit) => {
            if let Some(asked) = &request.work.preparation_asked {
                say(format_args!("It alters: {}", asked.files.join(", ")));
                say(
                    "They name code that others wrote. With a yes these commands run, and what they make is kept apart:",
                );
                asked.commands.iter().for_each(|command| say(format_args!("  {command}")));
                if asked.has_network {
                    say("It has this machine's network.");
                }
                if !asked.secrets.is_empty() {
                    say(format_args!("It is given {}.", asked.secrets.join(", ")));
                }
            }
            commit.iter().for_each(|commit| say(&commit.excerpt));
        }
        (_, None) => {}
        (
            GateKind::UnprovenCommit
            | GateKind::GuardedCommit
            | GateKind::RedBase
            | GateKind::Commit,
            Some(commit),
        ) => {
            let (added, removed) = (commit.added_lines, commit.removed_lines);
            say(format_args!("commit {} (+{added} -{removed}): {}", commit.commit, commit.subject));
            for changed in &commit.paths {
                say(format_args!("  {}", changed.path));
            }
            say(&commit.excerpt);
            if gate.kind == GateKind::RedBase {
                say("This fails at it, and failed before it:");
                red_before(request).iter().for_each(|line| say(format_args!("  {line}")));
            }
            if let Some(proposal) = &gate.shown_checks {
                say("No check has proven it. The project shows:");
                for command in command_lines(&[&proposal.prepare[..], &proposal.checks].concat()) {
                    say(format_args!("  {command}"));
                }
                say("To use these from now on: teams checks propose --accept");
            }
            let remarks = &request.work.qa_remarks;
            for (key, said) in
                [("qa.not_checked", &remarks.not_checked), ("qa.risks", &remarks.risks)]
            {
                if !said.is_empty() {
                    let values = Map::from_iter([("lines".to_owned(), json!(said))]);
                    say(printer.words(key, &values));
                }
            }
            for found in by_guard(&gate.findings).as_array().into_iter().flatten() {
                let values = found.as_object().cloned().unwrap_or_default();
                say(printer.words("gate.finding", &values));
            }
        }
    }
    let (id, content) = (&request.request_id, named(gate));
    let anyway = if needs_reason(gate, request) { " --anyway \"why\"" } else { "" };
    say(format_args!("To approve: teams approve {id} --content {content}{anyway}"));
    say(format_args!("To turn it down: teams approve {id} --content {content} --no"));
    Ok(())
}

fn named(gate: &Gate) -> String {
    content_of(gate).chars().take(NAMED).collect()
}

fn title(request: &Request) -> String {
    request.scope.lines().next().unwrap_or_default().chars().take(80).collect()
}
