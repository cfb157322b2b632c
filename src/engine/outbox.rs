//! What became of things to do in Discord.

use std::cmp::Reverse;

use serde_json::json;

use super::authorize::{Granted, act};
use super::decision::{Answer, Wake};
use super::turn::Turn;
use super::{questions, say, standing, verify};
use crate::domain::change::Change;
use crate::domain::gate::Gate;
use crate::domain::ids::{ChannelId, MessageId, OutgoingId, RequestId};
use crate::domain::outgoing::{
    Act, ButtonAct, DeliveryRefusal, Menu, NamedChannel, Outgoing, OutgoingOutcome, OutgoingState,
    Post, Priority, REFUSED_KEPT, SET_ASIDE, Target, Voice,
};
use crate::domain::record::RecordId;
use crate::domain::request::EventKind;

/// Delivery is about to send, or has had a part confirmed.
pub(super) fn starting(turn: &mut Turn<'_>, id: &OutgoingId, parts_done: u32) -> Answer {
    let Some(old) = turn.before().outgoing.get(id).cloned() else {
        return Answer::Ignored("it was superseded");
    };
    let (since, attempts, before) = match old.state {
        OutgoingState::Queued => (turn.now, old.attempts + 1, 0),
        OutgoingState::Sending { since, parts_done } => (since, old.attempts, parts_done),
    };
    let state = OutgoingState::Sending { since, parts_done: parts_done.max(before) };
    turn.save(Outgoing { state, attempts, ..Outgoing::clone(&old) });
    Answer::Accepted
}

/// Delivery is done with it, for now or for good.
pub(super) fn finished(turn: &mut Turn<'_>, id: &OutgoingId, outcome: OutgoingOutcome) -> Answer {
    let Some(old) = turn.before().outgoing.get(id).cloned() else {
        return Answer::Ignored("it is gone");
    };
    let took = matches!(outcome, OutgoingOutcome::Posted { .. } | OutgoingOutcome::Done);
    match outcome {
        OutgoingOutcome::Later { at, reason, own } => {
            let own_failures = old.own_failures + u32::from(own);
            if own_failures < old.priority.patience() {
                // It stays in the state of being sent: whether Discord took it is not known.
                let not_before = Some(at);
                turn.wake(Wake::Outbox);
                turn.save(Outgoing { not_before, own_failures, ..Outgoing::clone(&old) });
                return Answer::Accepted;
            }
            // The board is shown anew by itself.
            if !matches!(old.act, Act::Board { .. } | Act::Pin { .. }) {
                set_aside(turn, &old, &reason, None);
            }
            elsewhere(turn, &old);
        }
        OutgoingOutcome::Refused { reason, place } => {
            if let Some(request) = &old.request_id
                && old.refused.is_none()
            {
                turn.record(request, EventKind::MessageRefused, "discord", &reason, json!(old.act));
            }
            if !elsewhere(turn, &old) && is_kept(&old) {
                keep_refused(turn, &old, reason, place);
                return Answer::Accepted;
            }
        }
        OutgoingOutcome::RoomOpened { thread_id } => {
            let room = old.request_id.as_ref().and_then(|request| turn.edit(request));
            if let Some(room) = room.and_then(|request| request.conversation.room.as_mut()) {
                room.thread_id = Some(thread_id);
            }
        }
        OutgoingOutcome::Posted { channel_id, message_ids } => {
            if let (Act::Post(Post { room_of: Some(request), .. }), Some(first)) =
                (&old.act, message_ids.first())
            {
                hang_room(turn, request, channel_id, *first);
            }
            let is_relay = old.target == Target::Named(NamedChannel::Relay);
            if matches!(old.act, Act::Post(_))
                && !is_relay
                && let Some(id) = &old.request_id
                && turn.request(id).is_some_and(|it| it.conversation.thread() != Some(channel_id))
                && let Some(request) = turn.edit(id)
            {
                request.conversation.note_said_outside(&message_ids);
            }
            match &old.act {
                Act::Card { .. } => {
                    let room = old.request_id.as_ref().and_then(|request| turn.edit(request));
                    if let Some(room) = room.and_then(|request| request.conversation.room.as_mut())
                    {
                        room.card_id = message_ids.first().copied();
                    }
                }
                Act::Post(Post { gate_id: Some(gate_id), .. }) => {
                    let card = message_ids.last().map(|message| (channel_id, *message));
                    match (turn.before().gates.get(gate_id), card) {
                        (Some(gate), _) => {
                            let gate = Gate { card, ..Gate::clone(gate) };
                            turn.save(gate.clone());
                            super::gates::card::point_to_card(turn, &gate.request_id, channel_id);
                        }
                        // It was decided before the card was there.
                        (None, Some(card)) => say::unbutton(turn, card, old.request_id.as_ref()),
                        (None, None) => {}
                    }
                }
                Act::Post(Post { gate_id: None, menus, .. })
                    if matches!(menus.first(), Some(Menu::Choice(_))) =>
                {
                    if let (Some(id), Some(message)) = (&old.request_id, message_ids.last()) {
                        let card = (channel_id, *message);
                        let is_asked = turn.request(id).is_some_and(questions::is_asked);
                        match turn.edit(id).filter(|_| is_asked) {
                            Some(request) => {
                                request.work.questions_card = Some(card);
                                // The card names whoever asked; the operator it cannot.
                                if request.conversation.reply_route.author_id.is_none() {
                                    super::gates::card::point_to_card(turn, id, channel_id);
                                }
                            }
                            // It was answered before the card was there.
                            None => say::unbutton(turn, card, Some(id)),
                        }
                    }
                }
                Act::Post(Post { gate_id: None, buttons, .. })
                    if buttons.first().is_some_and(|it| it.act == ButtonAct::Pass) =>
                {
                    if let (Some(button), Some(message)) = (buttons.first(), message_ids.last()) {
                        verify::posted(turn, &button.subject, (channel_id, *message));
                    }
                }
                Act::Post(Post { gate_id: None, buttons, .. })
                    if buttons.first().is_some_and(|it| {
                        matches!(it.act, ButtonAct::Retry | ButtonAct::TryWithWords)
                    }) =>
                {
                    if let (Some(id), Some(message)) = (&old.request_id, message_ids.last()) {
                        let card = (channel_id, *message);
                        let is_blocked = turn.request(id).is_some_and(|it| it.blocked.is_some());
                        let request = turn.edit(id).filter(|_| is_blocked);
                        match request.and_then(|it| it.blocked.as_mut()) {
                            Some(blocked) => blocked.card = Some(card),
                            // It went on before the message was there.
                            None => say::unbutton(turn, card, Some(id)),
                        }
                    }
                }
                Act::Board { sprint_id, .. } => {
                    if let Some(message) = message_ids.first() {
                        super::pinned_board::posted(turn, sprint_id, channel_id, *message);
                    }
                }
                Act::Post(Post { gate_id: None, .. })
                | Act::Pin { .. }
                | Act::OpenRoom { .. }
                | Act::React { .. }
                | Act::Unbutton { .. }
                | Act::Envelope { .. } => {}
            }
        }
        OutgoingOutcome::Done => {}
    }
    if took && old.refused.is_some() {
        follow_up(turn, &old);
    }
    turn.remove(RecordId::Outgoing(id.clone()));
    turn.wake(Wake::Outbox);
    Answer::Accepted
}

/// A message that Discord fails again and again while it takes others holds its lane no longer, nor does one
/// that a person gives up. It is kept, words and all, where `teams status` finds it.
fn set_aside(turn: &mut Turn<'_>, old: &Outgoing, reason: &str, dismissed_by: Option<&str>) {
    if let Some(request) = &old.request_id {
        let (kind, actor) = match dismissed_by {
            Some(person) => (EventKind::MessageDismissed, person),
            None => (EventKind::MessageSetAside, "discord"),
        };
        turn.record(request, kind, actor, reason, json!(old.act));
    }
    let line = json!({
        "dismissed_by": dismissed_by,
        "at": turn.now,
        "outgoing_id": old.outgoing_id,
        "request_id": old.request_id,
        "target": old.target,
        "reason": reason,
        "act": old.act,
    });
    turn.change(Change::Append { file: SET_ASIDE.to_owned(), text: format!("{line}\n") });
}

/// Whether what Discord refuses is words that somebody has to get, or at least give up.
fn is_kept(outgoing: &Outgoing) -> bool {
    let words = match &outgoing.act {
        Act::Post(_) | Act::Card { .. } | Act::Envelope { .. } => true,
        // The board is shown anew by itself, and without a thread of its own a request is answered where it was asked.
        Act::Board { .. }
        | Act::Pin { .. }
        | Act::OpenRoom { .. }
        | Act::React { .. }
        | Act::Unbutton { .. } => false,
    };
    words && outgoing.priority < Priority::Refusal
}

/// Keeps a message that Discord refused. Where there are too many, the oldest of those that matter least goes to
/// the file of those that were set aside.
fn keep_refused(turn: &mut Turn<'_>, old: &Outgoing, reason: String, place: bool) {
    let replaces = |it: &Outgoing| it.slot == old.slot && it.outgoing_id > old.outgoing_id;
    if old.slot.is_some() && turn.outbox().any(replaces) {
        // Told later, it would put what is new back.
        return turn.remove(RecordId::Outgoing(old.outgoing_id.clone()));
    }
    let now = turn.now;
    let before = old.refused.as_ref();
    let refused = DeliveryRefusal {
        reason,
        place,
        since: before.map_or(now, |it| it.since),
        last_at: now,
        times: before.map_or(0, |it| it.times) + 1,
    };
    if before.is_none() {
        let kept = turn.before().outgoing.values().filter(|it| it.refused.is_some());
        if kept.clone().count() >= REFUSED_KEPT
            // What matters least, and of that the oldest.
            && let Some(oldest) = kept.min_by_key(|it| (Reverse(it.priority), &it.outgoing_id))
        {
            let oldest = oldest.clone();
            let reason = oldest.refused.as_ref().map(|it| it.reason.clone()).unwrap_or_default();
            set_aside(turn, &oldest, &reason, None);
            turn.remove(RecordId::Outgoing(oldest.outgoing_id.clone()));
        }
    }
    let not_before = Some(now.plus_seconds(refused.pause()));
    turn.wake(Wake::Outbox);
    turn.save(Outgoing { not_before, refused: Some(refused), ..old.clone() });
}

/// A place takes messages again: those that it refused after this one need not wait.
fn follow_up(turn: &mut Turn<'_>, taken: &Outgoing) {
    for outgoing in refused(turn) {
        if outgoing.target == taken.target && outgoing.outgoing_id != taken.outgoing_id {
            let again = Outgoing { not_before: None, ..outgoing.clone() };
            turn.save(again);
        }
    }
}

/// What Discord refused.
fn refused<'a>(turn: &Turn<'a>) -> Vec<&'a Outgoing> {
    standing::refused(turn.before()).collect()
}

/// Tries everything again that Discord refused; how many that are.
pub(super) fn try_again(turn: &mut Turn<'_>) -> usize {
    let all = refused(turn);
    for outgoing in &all {
        let again = Outgoing { not_before: None, ..(*outgoing).clone() };
        turn.save(again);
    }
    turn.wake(Wake::Outbox);
    all.len()
}

/// Rights or channels have changed: what Discord refused is tried again soon, later where it has refused often.
pub(super) fn channels_changed(turn: &mut Turn<'_>) -> Answer {
    for outgoing in refused(turn) {
        let Some(refused) = &outgoing.refused else { continue };
        let at = refused.last_at.plus_seconds(refused.pause_after_changes());
        if outgoing.not_before.is_some_and(|planned| planned > at) {
            let again = Outgoing { not_before: Some(at), ..outgoing.clone() };
            turn.save(again);
        }
    }
    turn.wake(Wake::Outbox);
    Answer::Accepted
}

/// A person wants everything tried again that Discord refused.
pub(super) fn retry(turn: &mut Turn<'_>, granted: &Granted<act::KeepOutbox>) -> Answer {
    for outgoing in refused(turn) {
        if let Some(request) = &outgoing.request_id {
            let words = "messages that Discord refused are tried again";
            turn.record(request, EventKind::MessageRetried, &granted.name(), words, json!(null));
        }
    }
    let count = try_again(turn);
    Answer::Say(say::content("outbox.retried", turn.policy.language, json!({ "count": count })))
}

/// A person gives up messages that Discord refused: one, by the end of its id, or all.
pub(super) fn dismiss(
    turn: &mut Turn<'_>,
    granted: &Granted<act::KeepOutbox>,
    message: &str,
) -> Answer {
    let language = turn.policy.language;
    let wanted = message.trim().to_lowercase();
    let mut all = refused(turn);
    if wanted != "all" {
        all.retain(|it| wanted.len() >= 6 && it.outgoing_id.as_str().ends_with(&wanted));
        if all.len() != 1 {
            let values = json!({ "message": message, "count": all.len() });
            return Answer::Refused(say::content("outbox.refused.unknown", language, values));
        }
    }
    for outgoing in &all {
        let reason = outgoing.refused.as_ref().map(|it| it.reason.clone()).unwrap_or_default();
        set_aside(turn, outgoing, &reason, Some(&granted.name()));
        turn.remove(RecordId::Outgoing(outgoing.outgoing_id.clone()));
    }
    turn.wake(Wake::Outbox);
    Answer::Say(say::content("outbox.dismissed", language, json!({ "count": all.len() })))
}

/// The message that the room of a request was to hang on is there: the room is opened on it.
fn hang_room(turn: &mut Turn<'_>, id: &RequestId, channel_id: ChannelId, message_id: MessageId) {
    let Some(request) = turn.request(id) else {
        return;
    };
    if request.conversation.room.as_ref().is_none_or(|room| room.thread_id.is_some()) {
        return;
    }
    let title = if request.scope.trim().is_empty() { &request.body } else { &request.scope };
    let name = say::cut(&say::title(title), 90);
    let act = Act::OpenRoom { channel_id, message_id, name };
    let target = Target::Room(id.clone());
    let mut room = say::outgoing(turn, target, Voice::Team, Priority::Progress, act);
    room.request_id = Some(id.clone());
    turn.send(room);
}

/// What a person has to see and Discord refuses where it belongs (a room that was deleted, a channel
/// that was closed to the bot) is said one place further: where it was asked, then in the report
/// channel. Words of a direct message are nobody else's. Whether there is such a place.
fn elsewhere(turn: &mut Turn<'_>, refused: &Outgoing) -> bool {
    let act = match (&refused.act, refused.priority) {
        // Discord shows no answer to a message of another channel, and names nobody by it: the mention does.
        (Act::Post(post), Priority::Final | Priority::Approval | Priority::Error) => {
            Act::Post(Post { reply_to: None, ..post.clone() })
        }
        (
            Act::Post(_)
            | Act::Card { .. }
            | Act::Board { .. }
            | Act::Pin { .. }
            | Act::OpenRoom { .. }
            | Act::React { .. }
            | Act::Unbutton { .. }
            | Act::Envelope { .. },
            _,
        ) => return false,
    };
    let Some(request) = refused.request_id.as_ref().and_then(|id| turn.request(id)) else {
        return false;
    };
    let route = &request.conversation.reply_route;
    let has_room = request.conversation.thread().is_some();
    let target = match (&refused.target, route.channel_id) {
        (Target::Room(_), Some(channel)) if has_room => Target::Channel(channel),
        (Target::Room(_) | Target::Channel(_), _) if !route.is_dm => {
            Target::Named(NamedChannel::Report)
        }
        (Target::Room(_) | Target::Channel(_) | Target::Named(_) | Target::Dm(_), _) => {
            return false;
        }
    };
    let mut again = say::outgoing(turn, target, refused.voice, refused.priority, act);
    again.request_id.clone_from(&refused.request_id);
    turn.send(again);
    true
}
