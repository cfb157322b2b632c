//! The way into the engine: one event in, one decision out.

use serde_json::json;

use crate::domain::actor::Actor;
use crate::domain::change::Change;
use crate::domain::event::Event;
use crate::domain::ids::IdSupply;
use crate::domain::interactions::Interactions;
use crate::domain::policy::Policy;
use crate::domain::state::State;
use crate::domain::time::Timestamp;

use super::authorize::is_known;
use super::decision::{Answer, Decision};
use super::turn::Turn;
use super::{
    clock, commands, deleted_cards, effects, ending, intake, outbox, pinned_board, progress,
    recovery, reports, revise, runs, sprint, status_card, train,
};

/// What the engine is told.
#[derive(Debug, Clone)]
pub struct Input {
    /// What happened.
    pub event: Event,
    /// When.
    pub now: Timestamp,
    /// Fresh ids for what this decision creates.
    pub ids: IdSupply,
}

/// Decides. Never fails: what cannot be decided is ignored by name or becomes a question to a person.
#[must_use]
pub fn decide(state: &State, policy: &Policy, input: Input) -> Decision {
    let Input { event, now, ids } = input;
    let mut turn = Turn::new(state, policy, now, ids);
    let shows_board = pinned_board::may_be_shown(&event);
    let mut interaction_id = None;
    let answer = match event {
        Event::Started { announce, serves } => recovery::started(&mut turn, announce, &serves),
        Event::Message(message) => intake::message(&mut turn, message),
        Event::MessageEdited(message)
            if intake::is_addressed_by_edit(turn.before(), turn.now, &message) =>
        {
            intake::addressed_by_edit(&mut turn, message)
        }
        Event::MessageEdited(message) => revise::edited(&mut turn, message),
        Event::MessageDeleted { channel_id, message_id } => {
            let answer = revise::deleted(&mut turn, message_id);
            if matches!(answer, Answer::Ignored(_)) {
                deleted_cards::deleted(&mut turn, channel_id, message_id)
            } else {
                answer
            }
        }
        Event::ChannelDeleted { channel_id } => {
            deleted_cards::channel_deleted(&mut turn, channel_id)
        }
        Event::Tick => clock::tick(&mut turn),
        Event::Seen { channel_id, message_id } => {
            turn.mark_read(channel_id, message_id);
            Answer::Accepted
        }
        Event::ChannelsChanged => outbox::channels_changed(&mut turn),
        Event::Command { interaction: Some(id), .. } if state.interactions.knows(id) => {
            Answer::Ignored("it was done already")
        }
        Event::Command { actor, command, interaction } => match &actor {
            Actor::Agent { run_id, call, .. } if runs::has_called(&mut turn, run_id, call) => {
                Answer::Ignored("it was done already")
            }
            Actor::Agent { .. } | Actor::Person { .. } | Actor::Deleter | Actor::Operator => {
                interaction_id = interaction.map(|id| (id, is_known(policy, &actor)));
                commands::command(&mut turn, &actor, command)
            }
        },
        Event::RunStarting(run) => runs::starting(&mut turn, run),
        Event::RunClaimed { run_id, generation, boot } => {
            runs::claimed(&mut turn, &run_id, generation, boot)
        }
        Event::RunTakenAway { run_id, generation, usage } => {
            runs::taken_away(&mut turn, &run_id, generation, usage)
        }
        Event::Noted { run_id, call, text } => runs::noted(&mut turn, &run_id, call, &text),
        Event::Refused { run_id, refusal, what } => {
            runs::refused(&mut turn, &run_id, refusal, &what)
        }
        Event::RateLimited { run_id, until } => runs::rate_limited(&mut turn, &run_id, until),
        Event::RunFinished(report) => runs::finished(&mut turn, *report),
        Event::ReportReady { relay_id } => reports::ready(&mut turn, &relay_id),
        Event::EnvelopeFailed { relay_id, reason, agent_lives, usage } => {
            reports::failed(&mut turn, &relay_id, &reason, agent_lives, usage)
        }
        Event::EnvelopeDropped(envelope) => reports::dropped(&mut turn, *envelope),
        Event::EnvelopeReplayed(envelope) => reports::replayed(&mut turn, *envelope),
        Event::EffectStarting { effect_id, pre_state } => {
            effects::starting(&mut turn, &effect_id, pre_state)
        }
        Event::DiskFull { request_id, path } => {
            let values = json!({ "path": path });
            effects::waits(&mut turn, &request_id, "room.disk_full", values)
        }
        Event::GitBusy { request_id, obstacle } => {
            effects::waits_for_git(&mut turn, &request_id, &obstacle)
        }
        Event::EffectFinished { effect_id, outcome } => {
            effects::finished(&mut turn, &effect_id, *outcome)
        }
        Event::OutgoingStarting { outgoing_id, parts_done } => {
            outbox::starting(&mut turn, &outgoing_id, parts_done)
        }
        Event::OutgoingFinished { outgoing_id, outcome } => {
            outbox::finished(&mut turn, &outgoing_id, outcome)
        }
    };
    close(&mut turn);
    if shows_board {
        pinned_board::refresh(&mut turn);
    }
    let mut decision = turn.finish(answer);
    // What a stranger asks for costs nothing; that it was refused is decided the same way again.
    if let Some((id, is_known)) = interaction_id
        && (is_known || !decision.changes.is_empty())
    {
        let mut interactions = Interactions::clone(&state.interactions);
        interactions.note(id, now);
        decision.changes.push(Change::save(interactions));
    }
    decision
}

/// What follows from the event beyond the request that it was about: sprints get on, whoever is first in the queue
/// lands, and cards show it.
fn close(turn: &mut Turn<'_>) {
    hold_what_is_to_end(turn);
    sprint::follow(turn);
    for id in train::edited(turn) {
        progress::goes_back_for_words(turn, &id);
    }
    // A sprint may have put one back into the queue.
    if hold_what_is_to_end(turn) {
        sprint::follow(turn);
    }
    let mut cards = train::advance(turn);
    let touched = turn.touched();
    for id in &touched {
        ending::close_blocked(turn, id);
    }
    cards.extend(touched);
    for id in &cards {
        status_card::refresh(turn, id);
    }
}

/// What would go to the branch, and somebody has asked to end, waits for an answer; whether something does so now.
fn hold_what_is_to_end(turn: &mut Turn<'_>) -> bool {
    let held = train::held(turn);
    for id in &held {
        ending::hold_for_answer(turn, id);
    }
    !held.is_empty()
}
