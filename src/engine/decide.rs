//! The front door of the engine: one event in, one decision out.

use crate::domain::actor::Actor;
use crate::domain::change::Change;
use crate::domain::event::Event;
use crate::domain::ids::{EffectId, IdSupply, RunId};
use crate::domain::outgoing::Content;
use crate::domain::policy::Policy;
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::domain::time::Timestamp;

use super::turn::Turn;
use super::{clock, commands, effects, intake, outbox, recovery, reports, revise, runs};

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

/// What may begin once the changes are durable. Only a hint to look: what there is to do stands in
/// the changed records, so that a restart finds it there as well.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// A role's inbox has a delegate envelope.
    Role(Role),
    /// The orchestrator's inbox has a report.
    Reports,
    /// An effect is planned.
    Effect(EffectId),
    /// The outbox has something.
    Outbox,
    /// The agent of this run has to end.
    StopRun(RunId),
    /// There are words for the agent of this run.
    SteerRun(RunId),
    /// The processes of this effect have to end.
    StopEffect(EffectId),
}

/// What whoever submitted the event is told.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Answer {
    /// It was taken in.
    #[default]
    Accepted,
    /// It means nothing (any more) and changed nothing.
    Ignored(&'static str),
    /// Words for the person who commanded it.
    Say(Content),
}

/// What is to be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// One batch for the store: all of it or none.
    pub changes: Vec<Change>,
    /// What may begin afterwards.
    pub effects: Vec<Wake>,
    /// What the submitter is told afterwards.
    pub answer: Answer,
}

/// Decides. Never fails: what cannot be decided is ignored by name or becomes a question to a person.
#[must_use]
pub fn decide(state: &State, policy: &Policy, input: Input) -> Decision {
    let Input { event, now, ids } = input;
    let mut turn = Turn::new(state, policy, now, ids);
    let answer = match event {
        Event::Started { announce, serves } => recovery::started(&mut turn, announce, &serves),
        Event::Message(message) => intake::message(&mut turn, message),
        Event::MessageEdited(message) => revise::edited(&mut turn, message),
        Event::MessageDeleted { channel_id, message_id } => {
            revise::deleted(&mut turn, channel_id, message_id)
        }
        Event::Tick => clock::tick(&mut turn),
        Event::Seen { channel_id, message_id } => {
            turn.mark_read(channel_id, message_id);
            Answer::Accepted
        }
        Event::ChannelsChanged => outbox::channels_changed(&mut turn),
        Event::Command { actor, command } => match &actor {
            Actor::Agent { run_id, call, .. } if runs::has_called(&mut turn, run_id, call) => {
                Answer::Ignored("it was done already")
            }
            Actor::Agent { .. } | Actor::Person { .. } | Actor::Deleter | Actor::Operator => {
                commands::command(&mut turn, &actor, command)
            }
        },
        Event::RunStarting(run) => runs::starting(&mut turn, run),
        Event::RunClaimed { run_id, generation, boot } => {
            runs::claimed(&mut turn, &run_id, generation, boot)
        }
        Event::RunTakenAway { run_id, generation } => {
            runs::taken_away(&mut turn, &run_id, generation)
        }
        Event::Noted { run_id, call, text } => runs::noted(&mut turn, &run_id, call, &text),
        Event::Refused { run_id, refusal, what } => {
            runs::refused(&mut turn, &run_id, refusal, &what)
        }
        Event::RateLimited { run_id, until } => runs::rate_limited(&mut turn, &run_id, until),
        Event::RunFinished(report) => runs::finished(&mut turn, *report),
        Event::ReportReady { relay_id } => reports::ready(&mut turn, &relay_id),
        Event::EnvelopeFailed { relay_id, reason, agent_lives } => {
            reports::failed(&mut turn, &relay_id, &reason, agent_lives)
        }
        Event::EnvelopeDropped(envelope) => reports::dropped(&mut turn, *envelope),
        Event::EnvelopeReplayed(envelope) => reports::replayed(&mut turn, *envelope),
        Event::EffectStarting { effect_id, pre_state } => {
            effects::starting(&mut turn, &effect_id, pre_state)
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
    turn.finish(answer)
}
