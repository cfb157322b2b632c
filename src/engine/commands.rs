//! Commands of people: buttons, slash commands, the command line. Every one passes the gate of
//! [`super::authorize`] first.

use serde_json::{Value, json};

use super::authorize::{Denied, Granted, Resource, act, authorize, denied, is_known};
use super::decision::Answer;
use super::gates::{self, ShownContent, Verdict};
use super::plan::import;
use super::request_changes::request_changes;
use super::turn::Turn;
use super::withdrawal::{Withdrawal, withdraw};
use super::{
    after_failure, followup, intake, outbox, question_answers, retry, routes, say, split, sprint,
    verify, words,
};
use crate::domain::actor::Actor;
use crate::domain::ids::{ChannelId, GateId, MessageId, RequestId};
use crate::domain::incoming::{Command, RouteChange};
use crate::domain::language::Language;
use crate::domain::outgoing::{Button, ButtonAct, Content};
use crate::domain::request::{EventKind, ReplyRoute, Request, RequestStatus};
use crate::domain::routes::Lane;
use crate::domain::verification::ManualVerdict;

/// Takes a command.
pub(super) fn command(turn: &mut Turn<'_>, actor: &Actor, command: Command) -> Answer {
    // Who may decide depends on what the card is about, which everybody in the channel sees.
    let decides = matches!(&command, Command::Press { button, .. }
        if matches!(button.act, ButtonAct::Approve | ButtonAct::Reject));
    if !decides && !is_known(turn.policy, actor) {
        return Answer::Refused(plain(turn.policy.language, "not_allowed", json!({})));
    }
    match command {
        Command::Press { button, message_id, channel_id } => {
            press(turn, actor, &button, channel_id, message_id)
        }
        Command::Decide { request_id, content, yes, reason, channel_id } => {
            let verdict = if yes { Verdict::Yes { reason } } else { Verdict::No };
            match gates::of_request(turn, &request_id) {
                Some(gate) => {
                    let shown = ShownContent::Content(&content, channel_id);
                    gates::decide(turn, actor, &gate, shown, verdict)
                }
                None => {
                    let values = json!({ "request_id": request_id.as_str() });
                    Answer::Refused(plain(turn.policy.language, "gate.none", values))
                }
            }
        }
        Command::ApproveAnyway { gate_id, version, reason } => {
            let verdict = Verdict::Yes { reason: Some(reason) };
            gates::decide(turn, actor, &gate_id, ShownContent::Form(version), verdict)
        }
        Command::AskBack { gate_id, version, question } => {
            if question.trim().is_empty() {
                return Answer::Refused(plain(turn.policy.language, "empty", json!({})));
            }
            gates::decide(
                turn,
                actor,
                &gate_id,
                ShownContent::Form(version),
                Verdict::Ask(question),
            )
        }
        Command::Ask { text, channel_id, parent_id, language, lane } => {
            // A thread has no threads: what is asked in a room is asked beside it.
            let in_room = channel_id.is_some_and(|channel| turn.before().is_room(channel));
            let channel_id = parent_id.filter(|_| in_room).or(channel_id);
            let Ok(granted) = authorize(turn.policy, actor, Resource::Team) else {
                return Answer::Refused(plain(language, "not_allowed", json!({})));
            };
            if text.trim().is_empty() {
                return Answer::Refused(plain(language, "empty", json!({})));
            }
            let limit = turn.policy.limits.message_chars;
            if text.chars().count() > limit {
                return Answer::Refused(plain(language, "too_long", json!({ "limit": limit })));
            }
            ask(turn, &granted, &text, channel_id, language, lane)
        }
        Command::AnswerQuestions { request_id, answers, rest, card } => {
            question_answers::answer(turn, actor, &request_id, (&answers, rest), card)
        }
        Command::Verify { criterion, verdict, words } => {
            verify::answer(turn, actor, &criterion, (verdict, &words), None)
        }
        Command::Route { request_id, change } => routes::change(turn, actor, &request_id, change),
        Command::RequestChanges { request_id, text, ended } => {
            match turn.request(&request_id).cloned().or(ended.map(|it| *it)) {
                Some(old) => request_changes(turn, actor, &old, &text),
                None => unknown(turn, &request_id),
            }
        }
        Command::Cancel { request_id } => cancel(turn, actor, &request_id),
        Command::Steer { request_id, text } => steer(turn, actor, &request_id, &text),
        Command::Retry { request_id } => retry(turn, actor, &request_id),
        Command::Split { request_id } => either(after_failure::split(turn, actor, &request_id)),
        Command::Pause { request_id } => either(after_failure::pause(turn, actor, &request_id)),
        Command::Skip { request_id, reason } => {
            either(after_failure::skip(turn, actor, &request_id, &reason))
        }
        Command::OutboxRetry => match authorize(turn.policy, actor, Resource::Team) {
            Ok(granted) => outbox::retry(turn, &granted),
            Err(_) => {
                Answer::Refused(plain(turn.policy.language, denied(turn.policy, actor), json!({})))
            }
        },
        Command::OutboxDismiss { message } => match authorize(turn.policy, actor, Resource::Team) {
            Ok(granted) => outbox::dismiss(turn, &granted, &message),
            Err(_) => {
                Answer::Refused(plain(turn.policy.language, denied(turn.policy, actor), json!({})))
            }
        },
        Command::SprintStart { kickoff } => sprint::commands::start(turn, actor, *kickoff),
        Command::SprintStop { now } => sprint::commands::stop(turn, actor, now),
        Command::SprintRestart => sprint::commands::restart(turn, actor),
        Command::PlanImport { plan_id, plan, approve } => {
            import::import(turn, actor, &plan_id, *plan, approve.as_deref())
        }
        Command::BacklogMerge { payload, source } => {
            sprint::commands::merge(turn, actor, &payload, source)
        }
    }
}

fn ask(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Ask>,
    text: &str,
    channel_id: Option<ChannelId>,
    language: Language,
    lane: Option<Lane>,
) -> Answer {
    let actor = granted.actor();
    let is_shorter = matches!(lane, Some(Lane::Fast | Lane::Quick | Lane::Standard));
    if let (Some(lane), true) = (lane, is_shorter) {
        let may: Result<Granted<act::Shorten>, _> = authorize(turn.policy, actor, Resource::Team);
        if may.is_err() {
            let values = json!({ "lane": lane });
            return Answer::Refused(plain(language, "route.shorter_not_yours", values));
        }
    }
    if let Some(word) = words::read(text) {
        let written = words::WrittenCommand {
            text,
            is_alone: true,
            artifacts: Vec::new(),
            missing_files: 0,
            reply_route: ReplyRoute { channel_id, ..ReplyRoute::of(actor) },
        };
        return match words::obey(turn, actor, written, word) {
            Ok((key, values)) => Answer::Say(plain(language, key, values)),
            Err((key, values)) => Answer::Refused(plain(language, key, values)),
        };
    }
    let resumed = words::resumed_request(text)
        .filter(|id| turn.request(id).is_some_and(|request| !request.status.is_terminal()));
    if let Some(id) = resumed {
        // Who names a request that is open means that one.
        return match words::only_resume(text) {
            true => retry(turn, actor, &id),
            false => steer(turn, actor, &id, text),
        };
    }
    let route = ReplyRoute { channel_id, ..ReplyRoute::of(actor) };
    let open = intake::open_of(turn, &route, text);
    if let Some(id) = open {
        let now = turn.request(&id).and_then(|request| request.route.lane);
        if let Some(lane) = lane.filter(|lane| now.is_some_and(|now| now.lane != *lane)) {
            let said = routes::change(turn, actor, &id, RouteChange::Lane(lane));
            let is_blocked = |it: &Request| it.status == RequestStatus::Blocked;
            let goes_on =
                matches!(said, Answer::Say(_)) && turn.request(&id).is_some_and(is_blocked);
            if !goes_on {
                return said;
            }
        }
        return match turn.request(&id).and_then(intake::asks_back) {
            Some((key, values)) => Answer::Say(plain(language, key, values)),
            None => retry(turn, actor, &id),
        };
    }
    if let Some(limit) = intake::too_many(turn, route.author_id, 1) {
        return Answer::Refused(plain(language, "too_many", json!({ "limit": limit })));
    }
    let id = intake::ask(turn, granted, text, route, language, lane);
    Answer::Say(plain(language, "receipt", json!({ "request_id": id.as_str() })))
}

fn plain(language: Language, key: &str, values: Value) -> Content {
    say::content(key, language, values)
}

fn press(
    turn: &mut Turn<'_>,
    actor: &Actor,
    button: &Button,
    channel: ChannelId,
    message: MessageId,
) -> Answer {
    let (at, parts_card) = ((channel, message), (channel, message, button.version));
    match button.act {
        ButtonAct::Approve => {
            decide_by_card(turn, actor, button, Verdict::Yes { reason: None }, at)
        }
        ButtonAct::Reject => decide_by_card(turn, actor, button, Verdict::No, at),
        ButtonAct::UseChecks => decide_by_card(turn, actor, button, Verdict::UseChecks, at),
        // Opens a form, and that decides nothing.
        ButtonAct::Question
        | ButtonAct::ApproveAnyway
        | ButtonAct::Guide
        | ButtonAct::Issue
        | ButtonAct::TryWithWords
        | ButtonAct::SkipRequest
        | ButtonAct::RequestChanges => Answer::Accepted,
        ButtonAct::Pass => verify_by_card(turn, actor, button, ManualVerdict::Pass, at),
        ButtonAct::Skip => verify_by_card(turn, actor, button, ManualVerdict::Skip, at),
        ButtonAct::Blocked => verify_by_card(turn, actor, button, ManualVerdict::Blocked, at),
        // A list of choices comes as what was chosen.
        ButtonAct::Lane | ButtonAct::Choose => Answer::Ignored("nothing was chosen"),
        ButtonAct::YouDecide => about_request(button, |id| {
            question_answers::answer(turn, actor, id, (&[], true), Some(at))
        }),
        ButtonAct::Answer => about_request(button, |id| {
            routes::change(turn, actor, id, RouteChange::Lane(Lane::Answer))
        }),
        ButtonAct::Split => {
            about_request(button, |id| either(split::split(turn, actor, id, parts_card)))
        }
        ButtonAct::Together => {
            about_request(button, |id| either(split::together(turn, actor, id, parts_card)))
        }
        ButtonAct::AsSprint => {
            about_request(button, |id| either(split::as_sprint(turn, actor, id, parts_card)))
        }
        ButtonAct::SplitWork => {
            about_request(button, |id| either(after_failure::split(turn, actor, id)))
        }
        ButtonAct::Pause => {
            about_request(button, |id| either(after_failure::pause(turn, actor, id)))
        }
        ButtonAct::Cancel => about_request(button, |id| cancel(turn, actor, id)),
        ButtonAct::Retry => about_request(button, |id| retry(turn, actor, id)),
    }
}

fn decide_by_card(
    turn: &mut Turn<'_>,
    actor: &Actor,
    button: &Button,
    verdict: Verdict,
    (channel, message): (ChannelId, MessageId),
) -> Answer {
    let Ok(gate_id) = GateId::parse(&button.subject) else {
        return Answer::Ignored("not a gate");
    };
    let seen = ShownContent::Card(button.version, channel, message);
    gates::decide(turn, actor, &gate_id, seen, verdict)
}

/// What somebody is told, whether it was done or not.
fn either(answer: Result<Answer, Answer>) -> Answer {
    answer.unwrap_or_else(|refused| refused)
}

fn about_request(button: &Button, then: impl FnOnce(&RequestId) -> Answer) -> Answer {
    match RequestId::parse(&button.subject) {
        Ok(id) => then(&id),
        Err(_) => Answer::Ignored("not a request"),
    }
}

fn verify_by_card(
    turn: &mut Turn<'_>,
    actor: &Actor,
    button: &Button,
    verdict: ManualVerdict,
    card: (ChannelId, MessageId),
) -> Answer {
    match button.subject.parse() {
        Ok(criterion) => verify::answer(turn, actor, &criterion, (verdict, ""), Some(card)),
        Err(_) => Answer::Ignored("not a criterion"),
    }
}

fn about(turn: &Turn<'_>, id: &RequestId) -> Result<Request, Answer> {
    turn.request(id).cloned().ok_or_else(|| unknown(turn, id))
}

fn unknown(turn: &Turn<'_>, id: &RequestId) -> Answer {
    let values = json!({ "request_id": id.as_str() });
    Answer::Refused(plain(turn.policy.language, "unknown_request", values))
}

fn cancel(turn: &mut Turn<'_>, actor: &Actor, id: &RequestId) -> Answer {
    let request = match about(turn, id) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let values = json!({ "request_id": id.as_str() });
    let Ok(granted) = authorize(turn.policy, actor, Resource::Request(&request)) else {
        return Answer::Refused(plain(request.conversation.language, "cancel.not_yours", values));
    };
    let (became, values) = withdraw(turn, &granted, &request);
    let words = plain(request.conversation.language, became.key(), values);
    match became {
        Withdrawal::Done | Withdrawal::Landing => Answer::Say(words),
        Withdrawal::Ended => Answer::Refused(words),
    }
}

/// Words for a request under way, as if they were written in its room.
fn steer(turn: &mut Turn<'_>, actor: &Actor, id: &RequestId, text: &str) -> Answer {
    if !text.trim().is_empty()
        && let Some(answer) = after_failure::with_words(turn, actor, id, text)
    {
        return answer;
    }
    let request = match about(turn, id) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let language = request.conversation.language;
    let values = json!({ "request_id": id.as_str(), "status": request.status });
    let granted = match authorize(turn.policy, actor, Resource::Request(&request)) {
        Ok(granted) => granted,
        Err(Denied::Private) => {
            return Answer::Refused(plain(language, "request_private", values));
        }
        Err(_) => return Answer::Refused(plain(language, "not_allowed", json!({}))),
    };
    let limit = turn.policy.limits.message_chars;
    if text.trim().is_empty() {
        return Answer::Refused(plain(language, "empty", json!({})));
    }
    if text.chars().count() > limit {
        return Answer::Refused(plain(language, "too_long", json!({ "limit": limit })));
    }
    if request.status.is_terminal() {
        return Answer::Refused(plain(language, "cancel.ended", values));
    }
    match followup::steer(turn, &granted, id, text) {
        Ok((key, values)) => Answer::Say(plain(language, key, values)),
        Err((key, values)) => Answer::Refused(plain(language, key, values)),
    }
}

fn retry(turn: &mut Turn<'_>, actor: &Actor, id: &RequestId) -> Answer {
    if let Some(answer) = after_failure::with_words(turn, actor, id, "") {
        return answer;
    }
    let request = match about(turn, id) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let values = json!({ "request_id": id.as_str() });
    let Ok(granted) = authorize(turn.policy, actor, Resource::Request(&request)) else {
        return Answer::Refused(plain(request.conversation.language, "cancel.not_yours", values));
    };
    if request.status != RequestStatus::Blocked {
        let values = json!({
            "request_id": id.as_str(),
            "status": request.status,
            "role": request.route.current_role,
        });
        return Answer::Say(plain(request.conversation.language, "reused", values));
    }
    turn.record(id, EventKind::Retried, &granted.name(), "asked to try again", Value::Null);
    retry::retry(turn, &granted, id);
    Answer::Say(plain(request.conversation.language, "retried", values))
}
