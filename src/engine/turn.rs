//! One decision in the making: the open records, and over them what this decision has changed so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono_tz::Tz;
use serde_json::Value;

use super::decide::{Answer, Decision, Wake};
use super::sprint::plans::Plans;
use super::{budget, landing, say, sprint};
use crate::domain::budget::Spending;
use crate::domain::change::{Change, ChannelMark};
use crate::domain::effect::{Effect, EffectKind, EffectState};
use crate::domain::envelope::{Envelope, Place};
use crate::domain::ids::{ChannelId, EffectId, IdSupply, MessageId, RequestId};
use crate::domain::incoming::Message;
use crate::domain::lifecycle::{Lifecycle, Step, StepName};
use crate::domain::outgoing::{Act, Outgoing, OutgoingState};
use crate::domain::policy::Policy;
use crate::domain::request::{Request, RequestEvent};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::domain::workflow::WorkflowState;

/// Attempts of what is no step of a lifecycle.
const ATTEMPTS: u32 = 3;
/// How many message ids of a channel are remembered for those that arrive doubled.
const RECENT_MESSAGES: usize = 64;
/// A person who may not ask is told so once in this time.
const REFUSAL_SECONDS: u64 = 3_600;
/// People of one channel who are told so within it.
const REFUSALS_REMEMBERED: usize = 100;

/// A decision in the making.
pub(super) struct Turn<'a> {
    /// The records as they are, with the changes of this turn already applied where they are read
    /// through the methods here.
    state: &'a State,
    /// The rules of this workspace.
    pub(super) policy: &'a Policy,
    /// The time.
    pub(super) now: Timestamp,
    /// Fresh ids.
    pub(super) ids: IdSupply,
    requests: BTreeMap<RequestId, Request>,
    /// Sprints, backlog items and the scheduler as this turn leaves them.
    pub(super) plans: Plans,
    /// What was spent, as this turn leaves it.
    spending: Option<Spending>,
    changes: Vec<Change>,
    wakes: Vec<Wake>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        state: &'a State,
        policy: &'a Policy,
        now: Timestamp,
        ids: IdSupply,
    ) -> Turn<'a> {
        Turn {
            state,
            policy,
            now,
            ids,
            requests: BTreeMap::new(),
            plans: Plans::default(),
            spending: None,
            changes: Vec::new(),
            wakes: Vec::new(),
        }
    }

    /// The zone of the workspace.
    pub(super) fn zone(&self) -> Tz {
        self.policy.sprint.zone.0
    }

    /// Today's date in the zone of the workspace, as ids have it.
    pub(super) fn today(&self) -> String {
        self.now.date_in(self.zone())
    }

    /// The lifecycle that a request goes by, and where it stands in it; `None` before it has begun.
    pub(super) fn stands(&self, id: &RequestId) -> Option<(Arc<Lifecycle>, WorkflowState)> {
        let state = self.request(id)?.params.workflow.clone()?;
        let current = &self.policy.lifecycle;
        let lifecycle = match state.lifecycle == current.digest() {
            true => current,
            false => self.state.lifecycle(&state.lifecycle),
        };
        Some((Arc::clone(lifecycle), state))
    }

    /// The step at which a request stands.
    pub(super) fn step(&self, id: &RequestId) -> Option<Step> {
        let (lifecycle, state) = self.stands(id)?;
        lifecycle.step(state.step).cloned()
    }

    /// Attempts that the step of a request has before a person is asked.
    pub(super) fn attempts(&self, id: &RequestId) -> u32 {
        let own = self.step(id).map_or(ATTEMPTS, |step| step.attempts);
        self.policy.limits.step_attempts.unwrap_or(own)
    }

    /// The beginning of a person's request.
    pub(super) fn begin_request(&mut self) -> WorkflowState {
        self.begin(self.policy.lifecycle.begin)
    }

    /// The beginning of a todo's request.
    pub(super) fn begin_todo(&mut self) -> WorkflowState {
        self.begin(self.policy.lifecycle.begin_todo)
    }

    /// A request keeps the lifecycle that it begins with, so that is kept as well.
    fn begin(&mut self, step: StepName) -> WorkflowState {
        let lifecycle = &self.policy.lifecycle;
        if !self.state.lifecycles.contains_key(lifecycle.digest()) {
            self.changes.push(Change::Lifecycle(Arc::clone(lifecycle)));
        }
        WorkflowState::begin(lifecycle, step).within(&self.policy.limits)
    }

    /// The records as they were before this turn.
    pub(super) fn before(&self) -> &'a State {
        self.state
    }

    /// The request as it is now.
    pub(super) fn request(&self, id: &RequestId) -> Option<&Request> {
        self.requests.get(id).or_else(|| self.state.requests.get(id))
    }

    /// The request for changing; what is changed becomes part of the decision.
    pub(super) fn edit(&mut self, id: &RequestId) -> Option<&mut Request> {
        if !self.requests.contains_key(id) {
            let request = self.state.requests.get(id)?.clone();
            self.requests.insert(id.clone(), request);
        }
        let now = self.now;
        let request = self.requests.get_mut(id)?;
        request.updated_at = now;
        Some(request)
    }

    /// A new request.
    pub(super) fn create(&mut self, request: Request) {
        self.requests.insert(request.request_id.clone(), request);
    }

    /// The requests that this turn has changed or made.
    pub(super) fn touched(&self) -> Vec<RequestId> {
        self.requests.keys().cloned().collect()
    }

    /// The requests as they are now, ended ones that are still in memory among them.
    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        let old = self.state.requests.iter().filter(|(id, _)| !self.requests.contains_key(*id));
        old.map(|(_, request)| request).chain(self.requests.values())
    }

    /// The effects that are planned or under way, this turn's included.
    pub(super) fn effects(&self) -> impl Iterator<Item = &Effect> {
        let mut effects: BTreeMap<&EffectId, &Effect> = self.state.effects.iter().collect();
        for change in &self.changes {
            if let Change::Effect(effect) = change {
                effects.insert(&effect.effect_id, effect);
            } else if let Change::EffectGone(id) = change {
                effects.remove(id);
            }
        }
        effects.into_values()
    }

    /// Whether such an effect is planned or under way.
    pub(super) fn has_effect(&self, which: impl Fn(&EffectKind) -> bool) -> bool {
        self.effects().any(|effect| which(&effect.kind))
    }

    /// Whether such an effect has started and its outcome has not come.
    pub(super) fn is_under_way(&self, which: impl Fn(&EffectKind) -> bool) -> bool {
        let mut started =
            self.effects().filter(|it| matches!(it.state, EffectState::Started { .. }));
        started.any(|effect| which(&effect.kind))
    }

    /// What was spent, as of today.
    pub(super) fn spending(&self) -> Spending {
        let now = self.spending.as_ref().unwrap_or(&self.state.spending);
        budget::opened(now, self.now, self.zone())
    }

    /// The same for changing.
    pub(super) fn edit_spending(&mut self) -> &mut Spending {
        let spending = self.spending();
        self.spending.insert(spending)
    }

    /// Adds a change.
    pub(super) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Adds something that may begin afterwards.
    pub(super) fn wake(&mut self, wake: Wake) {
        self.wakes.push(wake);
    }

    /// Adds a line to a request's history.
    pub(super) fn record(
        &mut self,
        id: &RequestId,
        kind: &str,
        actor: &str,
        summary: &str,
        payload: Value,
    ) {
        let event = RequestEvent {
            timestamp: self.now,
            kind: kind.to_owned(),
            actor: actor.to_owned(),
            summary: summary.to_owned(),
            payload,
        };
        self.change(Change::Event(id.clone(), event));
    }

    /// Notes that a message was taken in, and that its channel was read up to it, or as far as it says.
    pub(super) fn mark_taken(&mut self, message: &Message) {
        let up_to = message.read_up_to.unwrap_or(message.message_id);
        let mark = self.marked(message.channel_id, up_to, message.message_id);
        self.change(Change::Channel(mark));
    }

    /// Notes that a channel was read up to a message.
    pub(super) fn mark_read(&mut self, channel_id: ChannelId, message_id: MessageId) {
        let mark = self.marked(channel_id, message_id, message_id);
        self.change(Change::Channel(mark));
    }

    /// Notes that a message of somebody who may not ask was looked at. Whether they are to be told so: once an
    /// hour, wherever they write, and nobody new while a whole crowd is told in this channel.
    pub(super) fn mark_refused(&mut self, message: &Message) -> bool {
        let up_to = message.read_up_to.unwrap_or(message.message_id);
        let mut mark = self.marked(message.channel_id, up_to, message.message_id);
        let (now, who) = (self.now, message.author.id);
        let told = |at: &Timestamp| now.seconds_since(*at) < REFUSAL_SECONDS;
        let again = self.state.channels.values().any(|it| it.refused.get(&who).is_some_and(told));
        let tell = !again && mark.refused.len() < REFUSALS_REMEMBERED;
        if tell {
            mark.refused.insert(who, now);
        }
        self.change(Change::Channel(mark));
        tell
    }

    fn marked(&self, channel_id: ChannelId, up_to: MessageId, taken: MessageId) -> ChannelMark {
        let old = self.state.channels.get(&channel_id);
        let mut recent = old.map(|mark| mark.recent.clone()).unwrap_or_default();
        recent.push(taken);
        if recent.len() > RECENT_MESSAGES {
            recent.remove(0);
        }
        let watermark = old.map_or(up_to, |mark| mark.watermark.max(up_to));
        let mut refused = old.map(|mark| mark.refused.clone()).unwrap_or_default();
        refused.retain(|_, at| self.now.seconds_since(*at) < REFUSAL_SECONDS);
        ChannelMark { channel_id, watermark, recent, refused }
    }

    /// Puts an envelope away.
    pub(super) fn put_away(&mut self, envelope: &Envelope, place: Place, reason: &str) {
        let mut envelope = envelope.clone();
        envelope.place = place;
        envelope.reason = Some(reason.to_owned());
        self.change(Change::Envelope(Box::new(envelope)));
    }

    /// Plans an effect.
    pub(super) fn plan(&mut self, kind: EffectKind) {
        let effect = Effect {
            effect_id: self.ids.effect(),
            kind,
            state: EffectState::Planned,
            attempts: 0,
            told: None,
            planned_at: self.now,
        };
        self.wake(Wake::Effect(effect.effect_id.clone()));
        self.change(Change::Effect(effect));
    }

    /// Puts something into the outbox. What it supersedes leaves it, unless it is being sent; what Discord
    /// refused is not.
    pub(super) fn send(&mut self, outgoing: Outgoing) {
        if let Some(slot) = outgoing.slot.clone() {
            let old: Vec<_> = self
                .outbox()
                .filter(|old| old.slot.as_ref() == Some(&slot))
                .filter(|old| old.state == OutgoingState::Queued || old.refused.is_some())
                .map(|old| old.outgoing_id.clone())
                .collect();
            for id in old {
                self.change(Change::OutgoingGone(id));
            }
        }
        self.wake(Wake::Outbox);
        self.change(Change::Outgoing(Box::new(outgoing)));
    }

    /// Takes back what this turn would have said about a request by this key.
    pub(super) fn unsay(&mut self, id: &RequestId, key: &str) {
        self.changes.retain(|change| {
            let Change::Outgoing(outgoing) = change else { return true };
            let says = matches!(&outgoing.act, Act::Post { content, .. } if content.key == key);
            !says || outgoing.request_id.as_ref() != Some(id)
        });
    }

    /// The outbox as it is now, in no particular order.
    fn outbox(&self) -> impl Iterator<Item = &Outgoing> {
        let mut now: BTreeMap<_, _> = self.state.outgoing.iter().collect();
        for change in &self.changes {
            if let Change::Outgoing(outgoing) = change {
                now.insert(&outgoing.outgoing_id, &**outgoing);
            } else if let Change::OutgoingGone(id) = change {
                now.remove(id);
            }
        }
        now.into_values()
    }

    /// Closes the turn: changed requests are written, their cards brought up to date, and ended ones
    /// that nothing refers to any more leave memory.
    pub(super) fn finish(mut self, answer: Answer) -> Decision {
        sprint::follow(&mut self);
        let mut cards = landing::advance(&mut self);
        cards.extend(self.touched());
        for id in &cards {
            say::refresh_card(&mut self, id);
        }
        let plans = std::mem::take(&mut self.plans);
        plans.close(&mut self.changes);
        if let Some(spending) = self.spending.take() {
            self.changes.push(Change::Spending(Box::new(spending)));
        }
        let requests = std::mem::take(&mut self.requests);
        let mut state_changes: Vec<Change> =
            requests.values().map(|request| Change::Request(Box::new(request.clone()))).collect();
        let mut ended: Vec<RequestId> = requests
            .values()
            .filter(|request| request.status.is_terminal())
            .map(|request| request.request_id.clone())
            .collect();
        for change in &self.changes {
            // Whatever was about an ended request may have been the last thing that held it.
            if let Some(id) = self.about(change)
                && self.state.requests.get(&id).is_some_and(|r| r.status.is_terminal())
                && !requests.contains_key(&id)
            {
                ended.push(id);
            }
        }
        ended.sort();
        ended.dedup();
        state_changes.append(&mut self.changes);
        self.changes = state_changes;
        for id in ended {
            if !self.is_held(&id) {
                self.changes.push(Change::RetireRequest(id));
            }
        }
        self.wakes.sort();
        self.wakes.dedup();
        Decision { changes: self.changes, effects: self.wakes, answer }
    }

    fn about(&self, change: &Change) -> Option<RequestId> {
        match change {
            Change::OutgoingGone(id) => {
                self.state.outgoing.get(id).and_then(|outgoing| outgoing.request_id.clone())
            }
            Change::EffectGone(id) => {
                self.state.effects.get(id).and_then(|effect| effect.kind.request_id().cloned())
            }
            Change::Envelope(envelope) => Some(envelope.envelope.request_id.clone()),
            Change::Operation(operation) => Some(operation.request_id.clone()),
            Change::RunGone(id) => self.state.runs.get(id).map(|run| run.request_id.clone()),
            Change::Request(_)
            | Change::RetireRequest(_)
            | Change::Event(..)
            | Change::Run(_)
            | Change::Effect(_)
            | Change::Outgoing(_)
            | Change::Gate(_)
            | Change::Session(_)
            | Change::Channel(_)
            | Change::Backlog(_)
            | Change::Sprint(_)
            | Change::RetireSprint(_)
            | Change::SprintEvent(..)
            | Change::Scheduler(_)
            | Change::Lifecycle(_)
            | Change::Spending(_)
            | Change::Append { .. } => None,
        }
    }

    /// Whether anything open still refers to the request, after the changes of this turn.
    fn is_held(&self, id: &RequestId) -> bool {
        let mut held: BTreeMap<String, bool> = BTreeMap::new();
        let mut set = |key: String, is: bool| {
            held.insert(key, is);
        };
        for (key, outgoing) in &self.state.outgoing {
            set(key.to_string(), outgoing.request_id.as_ref() == Some(id));
        }
        for (key, effect) in &self.state.effects {
            set(key.to_string(), effect.kind.request_id() == Some(id));
        }
        for (key, envelope) in &self.state.envelopes {
            set(key.to_string(), envelope.envelope.request_id == *id);
        }
        for (key, run) in &self.state.runs {
            set(key.to_string(), run.request_id == *id);
        }
        for (key, operation) in &self.state.operations {
            set(key.to_string(), operation.request_id == *id);
        }
        for change in &self.changes {
            match change {
                Change::Outgoing(outgoing) => {
                    set(outgoing.outgoing_id.to_string(), outgoing.request_id.as_ref() == Some(id));
                }
                Change::OutgoingGone(key) => set(key.to_string(), false),
                Change::Effect(effect) => {
                    set(effect.effect_id.to_string(), effect.kind.request_id() == Some(id));
                }
                Change::EffectGone(key) => set(key.to_string(), false),
                Change::Envelope(envelope) => set(
                    envelope.relay_id.to_string(),
                    envelope.place == Place::Inbox && envelope.envelope.request_id == *id,
                ),
                Change::Run(run) => set(run.run_id.to_string(), run.request_id == *id),
                Change::RunGone(key) => set(key.to_string(), false),
                Change::Operation(operation) => set(
                    operation.operation_id.to_string(),
                    operation.status == crate::domain::operation::OperationStatus::Running
                        && operation.request_id == *id,
                ),
                Change::Request(_)
                | Change::RetireRequest(_)
                | Change::Event(..)
                | Change::Gate(_)
                | Change::Session(_)
                | Change::Channel(_)
                | Change::Backlog(_)
                | Change::Sprint(_)
                | Change::RetireSprint(_)
                | Change::SprintEvent(..)
                | Change::Scheduler(_)
                | Change::Lifecycle(_)
                | Change::Spending(_)
                | Change::Append { .. } => {}
            }
        }
        held.values().any(|is| *is)
    }
}
