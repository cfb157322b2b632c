//! What the orchestrator may ask the runtime to do (`spec/teams.md` 5.9): cancel, run a registered
//! action, control a sprint. Names and parameters come from a model, so nothing here is believed.

use std::collections::BTreeMap;

use serde_json::json;

use super::authorize::{Resource, authorize};
use super::gates::action;
use super::turn::Turn;
use super::withdrawal::Withdrawal;
use super::{ending, parse, say, sprint, standing, withdrawal};
use crate::domain::effect::EffectKind;
use crate::domain::ids::RequestId;
use crate::domain::operation::{Operation, OperationStatus};
use crate::domain::request::{EventKind, Request, RequestStatus};
use crate::domain::result::{ControlAction, ControlKind, SprintCommand};
use crate::domain::role::Role;
use crate::domain::sprint::Kickoff;

/// Carries out a control action for the request that asked for it.
pub(super) fn control(turn: &mut Turn<'_>, id: &RequestId, action: &ControlAction) {
    let text = |field: &Option<String>| field.as_deref().unwrap_or_default().trim().to_owned();
    // It is done with the rights of whoever asked, and their words alone stand for that.
    let asked = turn.request(id);
    let others = asked.is_some_and(|it| {
        it.params.others_wrote || it.params.followups.iter().any(|words| words.is_others)
    });
    let takes_rights = match (action.kind, action.command) {
        (ControlKind::ExecuteAction, _) => false,
        (ControlKind::SprintLifecycle, command) => command != Some(SprintCommand::Status),
        (ControlKind::CancelRequest, _) => true,
    };
    if others && takes_rights {
        let who = asked.map(|it| it.conversation.reply_route.author_name.clone());
        let values = json!({ "kind": action.kind, "who": who });
        ending::end(turn, id, RequestStatus::Failed, "control.others_wrote", values);
        return;
    }
    // What it does cannot be undone.
    let is_harmless =
        action.kind == ControlKind::CancelRequest || action.command == Some(SprintCommand::Status);
    if !is_harmless && ending::hold_for_answer(turn, id) {
        return;
    }
    match action.kind {
        ControlKind::CancelRequest => cancel(turn, id, &text(&action.request_id)),
        ControlKind::ExecuteAction => {
            let params = action.params.iter().filter(|pair| !pair.name.is_empty());
            let params = params.map(|pair| (pair.name.clone(), pair.value.clone())).collect();
            execute(turn, id, &text(&action.action_name), &params);
        }
        ControlKind::SprintLifecycle => match action.command {
            Some(command) => sprint(turn, id, command, action),
            None => {
                let values = json!({ "kind": action.kind });
                ending::end(turn, id, RequestStatus::Failed, "control.unknown", values);
            }
        },
    }
}

/// Sprint control for whoever asked, who must have the right (`spec/teams.md` 5.9).
fn sprint(turn: &mut Turn<'_>, id: &RequestId, command: SprintCommand, action: &ControlAction) {
    let Some(request) = turn.request(id).cloned() else { return };
    let asker = request.conversation.reply_route.actor();
    let done = match command {
        SprintCommand::Start => sprint::commands::may(turn, &asker).and_then(|granted| {
            sprint::commands::started(turn, &granted, kickoff(&request, action))
        }),
        SprintCommand::Stop => sprint::commands::may(turn, &asker)
            .and_then(|granted| sprint::commands::stopped(turn, &granted, false)),
        SprintCommand::Restart => sprint::commands::may(turn, &asker)
            .and_then(|granted| sprint::commands::restarted(turn, &granted)),
        SprintCommand::Status => {
            Ok(("sprint.status", standing::sprint(turn.before(), turn.zone())))
        }
    };
    let (status, (key, values)) = match done {
        Ok(said) => (RequestStatus::Completed, said),
        Err(refused) => (RequestStatus::Failed, refused),
    };
    ending::end(turn, id, status, key, values);
}

fn kickoff(request: &Request, action: &ControlAction) -> Kickoff {
    let text = |field: &Option<String>| field.as_deref().unwrap_or_default().trim().to_owned();
    let written = parse::parse_kickoff(&request.body);
    let or = |said: String, written: String| if said.is_empty() { written } else { said };
    let said = parse::normalize_requirements(&json!(action.kickoff_requirements));
    Kickoff {
        milestone: or(text(&action.milestone_title), written.milestone),
        brief: or(text(&action.kickoff_brief), written.brief),
        requirements: if said.is_empty() { written.requirements } else { said },
        artifacts: request.artifacts.clone(),
        missing_files: 0,
        request_text: request.body.clone(),
        source_request_id: Some(request.request_id.clone()),
        reply_route: request.conversation.reply_route.clone(),
        language: Some(request.conversation.language),
    }
}

/// Cancels another request for whoever asked, who must own it or administer (I25, I26).
fn cancel(turn: &mut Turn<'_>, id: &RequestId, target: &str) {
    let values = json!({ "request_id": say::cut(target, 60) });
    let found = RequestId::parse(target).ok().and_then(|target| turn.request(&target).cloned());
    let Some(found) = found else {
        ending::end(turn, id, RequestStatus::Failed, "cancel.unknown", values);
        return;
    };
    let Some(asker) = turn.request(id).map(|request| request.conversation.reply_route.clone())
    else {
        return;
    };
    if found.request_id == *id {
        let values = json!({ "request_id": id.as_str(), "by": asker.author_name });
        ending::end(turn, id, RequestStatus::Cancelled, "final.cancelled", values);
        return;
    }
    let Ok(granted) = authorize(turn.policy, &asker.actor(), Resource::Request(&found)) else {
        ending::end(turn, id, RequestStatus::Failed, "cancel.not_yours", values);
        return;
    };
    let (became, values) = withdrawal::withdraw(turn, &granted, &found);
    let status = match became {
        Withdrawal::Done => RequestStatus::Cancelled,
        Withdrawal::Landing => RequestStatus::Completed,
        Withdrawal::Ended => RequestStatus::Failed,
    };
    ending::end(turn, id, status, became.key(), values);
}

/// Runs a registered action: a command that the operator wrote, with the parameters that it allows.
fn execute(turn: &mut Turn<'_>, id: &RequestId, name: &str, params: &BTreeMap<String, String>) {
    let Some(action) = turn.policy.actions.get(name).cloned() else {
        let known: Vec<_> = turn.policy.actions.keys().cloned().collect();
        let values = json!({ "action": say::cut(name, 60), "known": known });
        ending::end(turn, id, RequestStatus::Failed, "action.unknown", values);
        return;
    };
    let command = match fill(&action.command, &action.allowed_params, params) {
        Ok(command) => command,
        Err(reason) => {
            let values = json!({ "action": name, "reason": reason });
            ending::end(turn, id, RequestStatus::Failed, "action.bad_params", values);
            return;
        }
    };
    if action::wanted(turn, id, name, &command) {
        turn.record(
            id,
            EventKind::ActionExecute,
            "orchestrator",
            name,
            json!({ "params": params }),
        );
        run(turn, id, name, command);
    }
}

/// Runs a registered action by its command line.
pub(super) fn run(turn: &mut Turn<'_>, id: &RequestId, name: &str, command: Vec<String>) {
    let Some(action) = turn.policy.actions.get(name).cloned() else {
        let values = json!({ "action": say::cut(name, 60), "known": [] });
        ending::end(turn, id, RequestStatus::Failed, "action.unknown", values);
        return;
    };
    let operation_id = turn.ids.operation(id, name);
    let operation = Operation {
        operation_id: operation_id.clone(),
        request_id: id.clone(),
        action: name.to_owned(),
        command,
        status: OperationStatus::Running,
        returncode: None,
        domain: action.domain.clone(),
        foreground: action.foreground,
        created_at: turn.now,
        updated_at: turn.now,
        log_file: format!("logs/operations/{operation_id}.log"),
    };
    turn.save(operation);
    turn.plan(EffectKind::Action { request_id: id.clone(), operation_id: operation_id.clone() });
    if action.foreground {
        if let Some(request) = turn.edit(id) {
            request.route.current_role = Some(Role::VersionController);
            request.work.operation_id = Some(operation_id);
        }
    } else {
        let values = json!({ "action": name, "operation_id": operation_id.as_str() });
        ending::end(turn, id, RequestStatus::Completed, "action.running", values);
    }
}

/// Fills `{name}` in a command's words. A word stays one word: nothing is split, quoted or expanded.
fn fill(
    command: &[String],
    allowed: &std::collections::BTreeSet<String>,
    params: &BTreeMap<String, String>,
) -> Result<Vec<String>, String> {
    if let Some(extra) = params.keys().find(|key| !allowed.contains(*key)) {
        return Err(format!("{extra} is not a parameter of it"));
    }
    if params.values().any(|value| value.chars().any(char::is_control)) {
        return Err("a parameter has control characters".to_owned());
    }
    let mut filled = Vec::with_capacity(command.len());
    for word in command {
        let mut rest = word.as_str();
        let mut out = String::new();
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, tail)) = after.split_once('}') else {
                break;
            };
            out.push_str(before);
            match params.get(name) {
                // A word that is only a parameter could otherwise become an option of the command.
                Some(value) if before.is_empty() && out.is_empty() && value.starts_with('-') => {
                    return Err(format!("{name} may not begin with a dash"));
                }
                Some(value) => out.push_str(value),
                None => return Err(format!("{name} is missing")),
            }
            rest = tail;
        }
        out.push_str(rest);
        filled.push(out);
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &[&str], params: &[(&str, &str)], expect: Result<&[&str], &str>) {
        let command: Vec<_> = command.iter().map(|word| (*word).to_owned()).collect();
        let params = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let allowed = ["target".to_owned()].into_iter().collect();
        let expect = expect
            .map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
            .map_err(str::to_owned);
        assert_eq!(fill(&command, &allowed, &params), expect);
    }

    #[test]
    fn parameters_fill_words_and_nothing_else() {
        check(&["make", "{target}"], &[("target", "a b; rm")], Ok(&["make", "a b; rm"]));
        check(&["make", "-C{target}"], &[("target", "-x")], Ok(&["make", "-C-x"]));
        check(&["make", "{target}"], &[("target", "-x")], Err("target may not begin with a dash"));
        check(&["make", "{target}"], &[], Err("target is missing"));
        check(&["make"], &[("other", "x")], Err("other is not a parameter of it"));
        check(
            &["make", "{target}"],
            &[("target", "a\nb")],
            Err("a parameter has control characters"),
        );
    }
}
