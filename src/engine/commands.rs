//! Commands of people: buttons, slash commands, the command line. Every one passes the gate of
//! [`super::authorize`] first.

use serde_json::{Value, json};

use super::authorize::{Granted, Resource, act, authorize, is_known};
use super::decide::Answer;
use super::gates::{self, ShownContent, Verdict};
use super::turn::Turn;
use super::{followup, handoff, intake, outbox, say, sprint};
use crate::domain::actor::Actor;
use crate::domain::ids::{ChannelId, GateId, MessageId, RequestId};
use crate::domain::incoming::Command;
use crate::domain::language::Language;
use crate::domain::outgoing::{Button, ButtonAct, Content};
use crate::domain::request::{EventKind, ReplyRoute, Request, RequestStatus};

/// Takes a command.
pub(super) fn command(turn: &mut Turn<'_>, actor: &Actor, command: Command) -> Answer {
    // Who may decide depends on what the card is about, which everybody in the channel sees.
    let decides = matches!(&command, Command::Press { button, .. }
        if matches!(button.act, ButtonAct::Approve | ButtonAct::Reject));
    if !decides && !is_known(turn.policy, actor) {
        return Answer::Say(plain(turn.policy.language, "not_allowed", json!({})));
    }
    match command {
        Command::Press { button, message_id, channel_id } => {
            press(turn, actor, &button, channel_id, message_id)
        }
        Command::Decide { request_id, content, yes } => {
            let verdict = if yes { Verdict::Yes } else { Verdict::No };
            match gates::of_request(turn, &request_id) {
                Some(gate) => {
                    gates::decide(turn, actor, &gate, ShownContent::Content(&content), verdict)
                }
                None => {
                    let values = json!({ "request_id": request_id.as_str() });
                    Answer::Say(plain(turn.policy.language, "gate.none", values))
                }
            }
        }
        Command::AskBack { gate_id, version, question } => {
            if question.trim().is_empty() {
                return Answer::Say(plain(turn.policy.language, "empty", json!({})));
            }
            gates::decide(
                turn,
                actor,
                &gate_id,
                ShownContent::Form(version),
                Verdict::Ask(question),
            )
        }
        Command::Ask { text, channel_id, language } => {
            let Ok(granted) = authorize(turn.policy, actor, Resource::Team) else {
                return Answer::Say(plain(language, "not_allowed", json!({})));
            };
            if text.trim().is_empty() {
                return Answer::Say(plain(language, "empty", json!({})));
            }
            let limit = turn.policy.limits.message_chars;
            if text.chars().count() > limit {
                return Answer::Say(plain(language, "too_long", json!({ "limit": limit })));
            }
            ask(turn, &granted, &text, channel_id, language)
        }
        Command::Cancel { request_id } => cancel(turn, actor, &request_id),
        Command::Steer { request_id, text } => steer(turn, actor, &request_id, &text),
        Command::Retry { request_id } => retry(turn, actor, &request_id),
        Command::OutboxRetry => match authorize(turn.policy, actor, Resource::Team) {
            Ok(granted) => outbox::retry(turn, &granted),
            Err(_) => Answer::Say(plain(turn.policy.language, "not_allowed", json!({}))),
        },
        Command::OutboxDismiss { message } => match authorize(turn.policy, actor, Resource::Team) {
            Ok(granted) => outbox::dismiss(turn, &granted, &message),
            Err(_) => Answer::Say(plain(turn.policy.language, "not_allowed", json!({}))),
        },
        Command::SprintStart { kickoff } => sprint::commands::start(turn, actor, *kickoff),
        Command::SprintStop { now } => sprint::commands::stop(turn, actor, now),
        Command::SprintRestart => sprint::commands::restart(turn, actor),
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
) -> Answer {
    let actor = granted.actor();
    let route = ReplyRoute { channel_id, ..ReplyRoute::of(actor) };
    let open = intake::open_of(turn, &route, text);
    if let Some(id) = open {
        return retry(turn, actor, &id);
    }
    if let Some(limit) = intake::too_many(turn, route.author_id) {
        return Answer::Say(plain(language, "too_many", json!({ "limit": limit })));
    }
    let id = intake::ask(turn, granted, text, route, language);
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
    match button.act {
        ButtonAct::Approve | ButtonAct::Reject => {
            let Ok(gate_id) = GateId::parse(&button.subject) else {
                return Answer::Ignored("not a gate");
            };
            let approves = button.act == ButtonAct::Approve;
            let verdict = if approves { Verdict::Yes } else { Verdict::No };
            let seen = ShownContent::Card(button.version, channel, message);
            gates::decide(turn, actor, &gate_id, seen, verdict)
        }
        // Opens a form, and that decides nothing.
        ButtonAct::Question => Answer::Accepted,
        ButtonAct::Cancel | ButtonAct::Retry => {
            let Ok(id) = RequestId::parse(&button.subject) else {
                return Answer::Ignored("not a request");
            };
            if button.act == ButtonAct::Cancel {
                cancel(turn, actor, &id)
            } else {
                retry(turn, actor, &id)
            }
        }
    }
}

fn about(turn: &Turn<'_>, id: &RequestId) -> Result<Request, Answer> {
    turn.request(id).cloned().ok_or_else(|| {
        let values = json!({ "request_id": id.as_str() });
        Answer::Say(plain(turn.policy.language, "unknown_request", values))
    })
}

fn cancel(turn: &mut Turn<'_>, actor: &Actor, id: &RequestId) -> Answer {
    let request = match about(turn, id) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let values = json!({ "request_id": id.as_str() });
    let Ok(granted) = authorize(turn.policy, actor, Resource::Request(&request)) else {
        return Answer::Say(plain(request.language, "cancel.not_yours", values));
    };
    let (became, values) = withdraw(turn, &granted, &request);
    Answer::Say(plain(request.language, became.key(), values))
}

/// What becomes of a request that somebody withdraws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withdrawal {
    /// It is over.
    Done,
    /// Its commit is on the way to the branch: that ends first.
    Landing,
    /// It had ended before.
    Ended,
    /// Its work lies in the project without a commit, as an older runtime left it.
    Uncommitted,
}

impl Withdrawal {
    /// The words for it.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Done => "cancel.done",
            Self::Landing => "cancel.landing",
            Self::Ended => "cancel.ended",
            Self::Uncommitted => "cancel.uncommitted",
        }
    }
}

/// Withdraws a request where that is still possible, and says what became of it.
pub(super) fn withdraw(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Cancel>,
    request: &Request,
) -> (Withdrawal, Value) {
    let id = &request.request_id;
    if request.status == RequestStatus::Uncommitted {
        let paths = say::files(request.candidate.as_ref());
        return (Withdrawal::Uncommitted, json!({ "request_id": id.as_str(), "paths": paths }));
    }
    if request.status.is_terminal() {
        let values = json!({ "request_id": id.as_str(), "status": request.status });
        return (Withdrawal::Ended, values);
    }
    if super::closeout::is_merging(turn, id) {
        if let Some(request) = turn.edit(id) {
            request.withdrawn_by = Some(granted.name());
        }
        turn.record(id, EventKind::CancelRequested, &granted.name(), "while it lands", Value::Null);
        return (Withdrawal::Landing, json!({ "request_id": id.as_str() }));
    }
    let values = json!({ "request_id": id.as_str(), "by": granted.name() });
    handoff::end(turn, id, RequestStatus::Cancelled, "final.cancelled", values);
    (Withdrawal::Done, json!({ "request_id": id.as_str() }))
}

/// Words for a request under way, as if they were written in its room.
fn steer(turn: &mut Turn<'_>, actor: &Actor, id: &RequestId, text: &str) -> Answer {
    let request = match about(turn, id) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let language = request.language;
    let values = json!({ "request_id": id.as_str(), "status": request.status });
    let Ok(granted) = authorize(turn.policy, actor, Resource::Request(&request)) else {
        return Answer::Say(plain(language, "not_allowed", json!({})));
    };
    let limit = turn.policy.limits.message_chars;
    if text.trim().is_empty() {
        return Answer::Say(plain(language, "empty", json!({})));
    }
    if text.chars().count() > limit {
        return Answer::Say(plain(language, "too_long", json!({ "limit": limit })));
    }
    if request.status.is_terminal() {
        return Answer::Say(plain(language, "cancel.ended", values));
    }
    let (key, values) = followup::steer(turn, &granted, id, text);
    Answer::Say(plain(language, key, values))
}

fn retry(turn: &mut Turn<'_>, actor: &Actor, id: &RequestId) -> Answer {
    let request = match about(turn, id) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let values = json!({ "request_id": id.as_str() });
    let Ok(granted) = authorize(turn.policy, actor, Resource::Request(&request)) else {
        return Answer::Say(plain(request.language, "cancel.not_yours", values));
    };
    if request.status != RequestStatus::Blocked {
        let values = json!({
            "request_id": id.as_str(),
            "status": request.status,
            "role": request.current_role,
        });
        return Answer::Say(plain(request.language, "reused", values));
    }
    turn.record(id, EventKind::Retried, &granted.name(), "asked to try again", Value::Null);
    intake::retry(turn, &granted, id);
    Answer::Say(plain(request.language, "retried", values))
}
