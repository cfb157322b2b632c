//! Everything that is open, in memory: what the engine decides on and what the store brings back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::budget::Spending;
use crate::domain::change::{Change, ChannelMark};
use crate::domain::effect::Effect;
use crate::domain::envelope::Envelope;
use crate::domain::gate::Gate;
use crate::domain::ids::{
    ChannelId, EffectId, EnvelopeId, GateId, ItemId, MessageId, OperationId, OutgoingId, PlanId,
    RequestId, RunId, SprintId,
};
use crate::domain::interactions::Interactions;
use crate::domain::item::Item;
use crate::domain::lifecycle::{Lifecycle, Step, Subject};
use crate::domain::operation::Operation;
use crate::domain::outgoing::Outgoing;
use crate::domain::plan::StoredPlan;
use crate::domain::record::{AnyRecord, Record, RecordId};
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::domain::schedule::Scheduler;
use crate::domain::session::Session;
use crate::domain::sprint::Sprint;
use crate::domain::verification::Verification;

/// How many rooms of ended requests are remembered, so that a message there finds its request.
pub const ROOMS_KEPT: usize = 1_000;

/// How many channels are remembered with how far they were read: threads grow in number with time.
pub const CHANNELS_KEPT: usize = 4_000;

/// How many items that left the backlog are remembered by their fingerprint, so that the same thing found
/// again is known for what it is.
pub const SETTLED_ITEMS_KEPT: usize = 2_000;

/// How many ids of sprints are remembered, so that no two share one.
pub const SPRINT_IDS_KEPT: usize = 200;

/// The open records. Ended requests leave it; their files stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Open requests, and ended ones that something still refers to.
    pub requests: BTreeMap<RequestId, Arc<Request>>,
    /// Envelopes in an inbox.
    pub envelopes: BTreeMap<EnvelopeId, Arc<Envelope>>,
    /// Started runs.
    pub runs: BTreeMap<RunId, Arc<Run>>,
    /// Planned and started effects.
    pub effects: BTreeMap<EffectId, Arc<Effect>>,
    /// The outbox.
    pub outgoing: BTreeMap<OutgoingId, Arc<Outgoing>>,
    /// Open gates.
    pub gates: BTreeMap<GateId, Arc<Gate>>,
    /// What people look at themselves and have not answered yet, by its request.
    #[serde(default)]
    pub verifications: BTreeMap<RequestId, Arc<Verification>>,
    /// Running operations.
    pub operations: BTreeMap<OperationId, Arc<Operation>>,
    /// Sessions of open requests, keyed `role/request`.
    pub sessions: BTreeMap<String, Arc<Session>>,
    /// How far each channel has been read.
    pub channels: BTreeMap<ChannelId, ChannelMark>,
    /// Thread → request, for open and the most recent ended requests.
    pub rooms: BTreeMap<ChannelId, RequestId>,
    /// How many requests have ended and left memory, ever.
    pub ended_requests: u64,
    /// Plans that people brought.
    pub plans: BTreeMap<PlanId, Arc<StoredPlan>>,
    /// Backlog items that may still become work.
    pub backlog: BTreeMap<ItemId, Arc<Item>>,
    /// Fingerprints of the most recent items that were done, dropped or carried on.
    pub settled_items: BTreeMap<ItemId, String>,
    /// The active sprint and the last one that ended.
    pub sprints: BTreeMap<SprintId, Arc<Sprint>>,
    /// The ids of the most recent sprints.
    pub sprint_ids: BTreeSet<SprintId>,
    /// When the next sprint begins, and what was last looked for.
    pub scheduler: Arc<Scheduler>,
    /// The lifecycles that requests go by, by their digests: a request keeps the one that it began with.
    #[serde(default)]
    pub lifecycles: BTreeMap<String, Arc<Lifecycle>>,
    /// What was spent.
    #[serde(default)]
    pub spending: Arc<Spending>,
    /// The interactions that were dealt with.
    #[serde(default)]
    pub interactions: Arc<Interactions>,
}

/// The key of a session.
#[must_use]
pub fn session_key(role: Role, request_id: &RequestId) -> String {
    format!("{role}/{request_id}")
}

impl State {
    /// The state of a workspace of which only the files of its records are known.
    #[must_use]
    pub fn from_records(records: &[AnyRecord]) -> State {
        let mut state = State::default();
        records.iter().for_each(|record| state.save(record));
        state.forget_ended_requests();
        // The active sprint stays, else the last one, which a person can restart.
        let last = || state.sprints.values().max_by_key(|it| (it.started_at, it.sprint_id.clone()));
        let active = state.scheduler.active_sprint_id.as_ref();
        let stays = active.or_else(|| last().map(|sprint| &sprint.sprint_id));
        let others = state.sprints.keys().filter(|id| stays != Some(*id)).cloned();
        let gone: Vec<RecordId> = others.map(RecordId::Sprint).collect();
        gone.iter().for_each(|id| state.remove(id));
        state
    }

    /// How many requests have ended, those that are still in memory among them.
    #[must_use]
    pub fn all_ended(&self) -> u64 {
        let here = self.requests.values().filter(|it| it.status.is_terminal()).count();
        self.ended_requests.saturating_add(here as u64)
    }

    /// Lets go of ended requests to which nothing open refers.
    pub fn forget_ended_requests(&mut self) {
        let held: BTreeSet<RequestId> = (self.records())
            .filter_map(|record| record.holds().and_then(|(_, about)| about.cloned()))
            .collect();
        let over = self.requests.values().filter(|it| it.status.is_terminal());
        let over = over.filter(|it| !held.contains(&it.request_id));
        let over: Vec<RecordId> = over.map(|it| RecordId::Request(it.request_id.clone())).collect();
        over.iter().for_each(|id| self.remove(id));
    }

    /// Applies one change. Applying the same changes in the same order always gives the same state.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Save(record) => self.save(record),
            Change::Remove(id) => self.remove(id),
            Change::Channel(mark) => {
                self.channels.insert(mark.channel_id, mark.clone());
                if self.channels.len() > CHANNELS_KEPT {
                    self.forget_channel(mark.channel_id);
                }
            }
            Change::Event(..) | Change::SprintEvent(..) | Change::Append { .. } => {}
        }
    }

    fn save(&mut self, record: &AnyRecord) {
        match record {
            AnyRecord::Request(it) => {
                if let Some(thread) = it.conversation.room.as_ref().and_then(|room| room.thread_id)
                {
                    self.remember_room(thread, &it.request_id);
                }
                keep(&mut self.requests, it.request_id.clone(), it);
            }
            AnyRecord::Envelope(it) => keep(&mut self.envelopes, it.relay_id.clone(), it),
            AnyRecord::Run(it) => keep(&mut self.runs, it.run_id.clone(), it),
            AnyRecord::Effect(it) => keep(&mut self.effects, it.effect_id.clone(), it),
            AnyRecord::Outgoing(it) => keep(&mut self.outgoing, it.outgoing_id.clone(), it),
            AnyRecord::Gate(it) => keep(&mut self.gates, it.gate_id.clone(), it),
            AnyRecord::Verification(it) => {
                keep(&mut self.verifications, it.request_id.clone(), it);
            }
            AnyRecord::Operation(it) => keep(&mut self.operations, it.operation_id.clone(), it),
            AnyRecord::Session(it) => {
                keep(&mut self.sessions, session_key(it.role, &it.request_id), it);
            }
            AnyRecord::Backlog(it) => {
                let id = it.backlog_id.clone();
                keep(&mut self.backlog, id.clone(), it);
                if it.is_open() {
                    self.settled_items.remove(&id);
                } else {
                    self.settled_items.insert(id.clone(), it.fingerprint.clone());
                    // Ids begin with the date: the first is the oldest, unless it has settled just now.
                    if self.settled_items.len() > SETTLED_ITEMS_KEPT
                        && let Some(oldest) =
                            self.settled_items.keys().find(|it| **it != id).cloned()
                    {
                        self.settled_items.remove(&oldest);
                    }
                }
            }
            AnyRecord::Plan(it) => drop(self.plans.insert(it.plan_id.clone(), Arc::clone(it))),
            AnyRecord::Sprint(it) => {
                self.sprint_ids.insert(it.sprint_id.clone());
                if self.sprint_ids.len() > SPRINT_IDS_KEPT {
                    self.sprint_ids.pop_first();
                }
                keep(&mut self.sprints, it.sprint_id.clone(), it);
            }
            AnyRecord::Lifecycle(it) => keep(&mut self.lifecycles, it.digest().to_owned(), it),
            AnyRecord::Scheduler(it) => self.scheduler = Arc::clone(it),
            AnyRecord::Spending(it) => self.spending = Arc::clone(it),
            AnyRecord::Interactions(it) => self.interactions = Arc::clone(it),
        }
    }

    fn remove(&mut self, id: &RecordId) {
        match id {
            RecordId::Request(id) => {
                if self.requests.remove(id).is_some() {
                    self.ended_requests += 1;
                }
                self.sessions.retain(|_, session| session.request_id != *id);
            }
            RecordId::Run(id) => drop(self.runs.remove(id)),
            RecordId::Effect(id) => drop(self.effects.remove(id)),
            RecordId::Outgoing(id) => drop(self.outgoing.remove(id)),
            RecordId::Session(role, id) => drop(self.sessions.remove(&session_key(*role, id))),
            RecordId::Sprint(id) => drop(self.sprints.remove(id)),
            RecordId::Lifecycle(digest) => drop(self.lifecycles.remove(digest)),
        }
    }

    /// Every record in memory.
    pub fn records(&self) -> impl Iterator<Item = AnyRecord> {
        let requests = self.requests.values().cloned().map(AnyRecord::Request);
        let rest = (self.envelopes.values().cloned().map(AnyRecord::Envelope))
            .chain(self.runs.values().cloned().map(AnyRecord::Run))
            .chain(self.effects.values().cloned().map(AnyRecord::Effect))
            .chain(self.outgoing.values().cloned().map(AnyRecord::Outgoing))
            .chain(self.gates.values().cloned().map(AnyRecord::Gate))
            .chain(self.verifications.values().cloned().map(AnyRecord::Verification))
            .chain(self.operations.values().cloned().map(AnyRecord::Operation))
            .chain(self.sessions.values().cloned().map(AnyRecord::Session))
            .chain(self.backlog.values().cloned().map(AnyRecord::Backlog))
            .chain(self.plans.values().cloned().map(AnyRecord::Plan))
            .chain(self.sprints.values().cloned().map(AnyRecord::Sprint))
            .chain(self.lifecycles.values().cloned().map(AnyRecord::Lifecycle));
        let scheduler = (*self.scheduler != Scheduler::default()).then_some(&self.scheduler);
        let spending = (*self.spending != Spending::default()).then_some(&self.spending);
        let interactions = &self.interactions;
        let interactions = (**interactions != Interactions::default()).then_some(interactions);
        requests
            .chain(rest)
            .chain(scheduler.cloned().map(AnyRecord::Scheduler))
            .chain(spending.cloned().map(AnyRecord::Spending))
            .chain(interactions.cloned().map(AnyRecord::Interactions))
    }

    /// The lifecycle of a digest; the one that is built in where none is known.
    #[must_use]
    pub fn lifecycle(&self, digest: &str) -> &Arc<Lifecycle> {
        self.lifecycles.get(digest).unwrap_or_else(|| Lifecycle::built_in())
    }

    /// The lifecycle of a sprint; the one that is built in where none is known.
    #[must_use]
    pub fn sprint_lifecycle(&self, sprint: &Sprint) -> &Arc<Lifecycle> {
        let own = self.lifecycles.get(&sprint.lifecycle);
        own.unwrap_or_else(|| Lifecycle::of(Subject::Sprint))
    }

    /// The step that a request is for which a sprint or sourcing made; `None` of all others.
    #[must_use]
    pub fn duty_step(&self, request: &Request) -> Option<&Step> {
        let kind = request.params.duty.as_ref()?.kind();
        let sprint = request.sprint_id.as_ref().and_then(|id| self.sprints.get(id));
        let lifecycle = match sprint {
            Some(sprint) => self.sprint_lifecycle(sprint),
            None => Lifecycle::of(kind.subject()),
        };
        lifecycle.step_of(kind)
    }

    /// The request whose room the channel is.
    #[must_use]
    pub fn request_in_room(&self, channel: ChannelId) -> Option<&Request> {
        let known = self.rooms.get(&channel).and_then(|id| self.requests.get(id));
        known.map(Arc::as_ref).or_else(|| self.room_to_come(channel))
    }

    /// Whether the channel is the room of a request, open or ended.
    #[must_use]
    pub fn is_room(&self, channel: ChannelId) -> bool {
        self.rooms.contains_key(&channel) || self.room_to_come(channel).is_some()
    }

    /// The open request whose room the channel is, where Discord has not told of it yet: a thread on a message has the
    /// id of the message.
    fn room_to_come(&self, channel: ChannelId) -> Option<&Request> {
        let message = MessageId(channel.0);
        let opening = self.outgoing.values().find(|it| it.act.opens_room_on(message));
        let opened = opening.and_then(|it| it.request_id.as_ref());
        let is_its = |request: &&Arc<Request>| {
            let conversation = &request.conversation;
            conversation.room.as_ref().is_some_and(|room| room.thread_id.is_none())
                && (conversation.reply_route.message_id == Some(message)
                    || opened == Some(&request.request_id))
                && !request.status.is_terminal()
        };
        self.requests.values().find(is_its).map(Arc::as_ref)
    }

    /// The sprint that holds the slot.
    #[must_use]
    pub fn active_sprint(&self) -> Option<&Sprint> {
        let id = self.scheduler.active_sprint_id.as_ref()?;
        self.sprints.get(id).map(Arc::as_ref)
    }

    /// The sprint that began last.
    #[must_use]
    pub fn last_sprint(&self) -> Option<&Sprint> {
        self.sprints.values().map(Arc::as_ref).max_by_key(|sprint| sprint.started_at)
    }

    /// Lets go of the mark of the channel in which nothing was written for the longest time, and which is no room.
    fn forget_channel(&mut self, but: ChannelId) {
        let marks = self.channels.values();
        let others =
            marks.filter(|it| it.channel_id != but && !self.rooms.contains_key(&it.channel_id));
        let oldest = others.min_by_key(|mark| (mark.watermark, mark.channel_id));
        if let Some(oldest) = oldest.map(|mark| mark.channel_id) {
            self.channels.remove(&oldest);
        }
    }

    fn remember_room(&mut self, thread: ChannelId, request: &RequestId) {
        self.rooms.insert(thread, request.clone());
        while self.rooms.len() > ROOMS_KEPT {
            // Ids of threads and messages grow with time. Of the rooms whose request has ended, the one goes whose last
            // message is the oldest; where none was read, its thread counts.
            let ended = self.rooms.iter().filter(|(_, id)| !self.requests.contains_key(*id));
            let last_use = |key: &ChannelId| {
                self.channels.get(key).map_or(key.0, |mark| mark.watermark.0.max(key.0))
            };
            match ended.map(|(key, _)| *key).min_by_key(last_use) {
                Some(key) => {
                    self.rooms.remove(&key);
                    self.channels.remove(&key);
                }
                None => break,
            }
        }
    }
}

/// Puts a record where it is kept while it is open.
fn keep<K: Ord, R: Record>(records: &mut BTreeMap<K, Arc<R>>, id: K, record: &Arc<R>) {
    if record.is_open() {
        records.insert(id, Arc::clone(record));
    } else {
        records.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::change::ChannelMark;
    use crate::domain::request::{RequestConversation, Room};

    #[test]
    fn the_room_that_rests_for_longest_is_forgotten() {
        let mut state = State::default();
        let mark = |channel: u64, message: u64| {
            Change::Channel(ChannelMark {
                channel_id: ChannelId(channel),
                guild_id: None,
                watermark: MessageId(message),
                recent: Vec::new(),
                idle: BTreeMap::new(),
                refused: BTreeMap::new(),
            })
        };
        let ended = RequestId::parse("20260324-00000001").expect("an id");
        let last = ROOMS_KEPT as u64;
        state.rooms.extend((1..=last).map(|room| (ChannelId(room), ended.clone())));
        state.apply(&mark(1, last + 1));
        state.apply(&mark(2, 5));
        let room = Room {
            thread_id: Some(ChannelId(last + 2)),
            card_id: None,
            card_digest: String::new(),
        };
        let conversation = RequestConversation { room: Some(room), ..Default::default() };
        let request_id = RequestId::parse("20260325-00000001").expect("an id");
        state.apply(&Change::save(Request { request_id, conversation, ..Request::default() }));
        let kept = [1, 2, 3, last + 2].map(|room| state.rooms.contains_key(&ChannelId(room)));
        assert_eq!(kept, [true, true, false, true]);
        assert_eq!((state.rooms.len(), state.channels.len()), (ROOMS_KEPT, 2));
        // Of the channels too, but for rooms, the one in which nothing was written for the longest time.
        for channel in 1..CHANNELS_KEPT as u64 {
            state.apply(&mark(10_000 + channel, 20_000 + channel));
        }
        let known = [1, 2, 10_001, 10_002].map(|it| state.channels.contains_key(&ChannelId(it)));
        assert_eq!(known, [true, true, false, true]);
        assert_eq!(state.channels.len(), CHANNELS_KEPT);
    }
}
