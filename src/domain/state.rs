//! Everything that is open, in memory: what the engine decides on and what the store brings back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::backlog::BacklogItem;
use crate::domain::budget::Spending;
use crate::domain::change::{Change, ChannelMark, Session};
use crate::domain::effect::Effect;
use crate::domain::envelope::{Envelope, Place};
use crate::domain::gate::{Gate, GateState};
use crate::domain::ids::{
    BacklogId, ChannelId, EffectId, EnvelopeId, GateId, OperationId, OutgoingId, RequestId, RunId,
    SprintId,
};
use crate::domain::lifecycle::Lifecycle;
use crate::domain::operation::{Operation, OperationStatus};
use crate::domain::outgoing::Outgoing;
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::domain::schedule::Scheduler;
use crate::domain::sprint::Sprint;

/// How many rooms of ended requests are remembered, so that a message there finds its request.
pub const ROOMS_KEPT: usize = 1_000;

/// How many items that left the backlog are remembered by their fingerprint, so that the same thing found
/// again is known for what it is.
pub const SETTLED_ITEMS_KEPT: usize = 2_000;

/// How many ids of sprints are remembered, so that no two share one.
pub const SPRINT_IDS_KEPT: usize = 200;

/// The open records. Ended requests leave it; their files stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Open requests, and ended ones that something still refers to.
    pub requests: BTreeMap<RequestId, Request>,
    /// Envelopes in an inbox.
    pub envelopes: BTreeMap<EnvelopeId, Envelope>,
    /// Started runs.
    pub runs: BTreeMap<RunId, Run>,
    /// Planned and started effects.
    pub effects: BTreeMap<EffectId, Effect>,
    /// The outbox.
    pub outgoing: BTreeMap<OutgoingId, Outgoing>,
    /// Open gates.
    pub gates: BTreeMap<GateId, Gate>,
    /// Running operations.
    pub operations: BTreeMap<OperationId, Operation>,
    /// Sessions of open requests, keyed `role/request`.
    pub sessions: BTreeMap<String, Session>,
    /// How far each channel has been read.
    pub channels: BTreeMap<ChannelId, ChannelMark>,
    /// Thread → request, for open and the most recent ended requests.
    pub rooms: BTreeMap<ChannelId, RequestId>,
    /// How many requests have ended, ever.
    pub ended_requests: u64,
    /// Backlog items that may still become work.
    pub backlog: BTreeMap<BacklogId, BacklogItem>,
    /// Fingerprints of the most recent items that were done, dropped or carried on.
    pub settled_items: BTreeMap<BacklogId, String>,
    /// The active sprint and the last one that ended.
    pub sprints: BTreeMap<SprintId, Sprint>,
    /// The ids of the most recent sprints.
    pub sprint_ids: BTreeSet<SprintId>,
    /// When the next sprint begins, and what was last looked for.
    pub scheduler: Scheduler,
    /// The lifecycles that requests go by, by their digests: a request keeps the one that it began with.
    #[serde(default)]
    pub lifecycles: BTreeMap<String, Arc<Lifecycle>>,
    /// What was spent.
    #[serde(default)]
    pub spending: Spending,
}

/// The key of a session.
#[must_use]
pub fn session_key(role: Role, request_id: &RequestId) -> String {
    format!("{role}/{request_id}")
}

impl State {
    /// Applies one change. Applying the same changes in the same order always gives the same state.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Request(request) => {
                if let Some(thread) = request.room.as_ref().and_then(|room| room.thread_id) {
                    self.remember_room(thread, &request.request_id);
                }
                self.requests.insert(request.request_id.clone(), (**request).clone());
            }
            Change::RetireRequest(id) => {
                if self.requests.remove(id).is_some() {
                    self.ended_requests += 1;
                }
                self.sessions.retain(|_, session| session.request_id != *id);
            }
            Change::Event(..) | Change::SprintEvent(..) | Change::Append { .. } => {}
            Change::Envelope(envelope) => match envelope.place {
                Place::Inbox => {
                    self.envelopes.insert(envelope.relay_id.clone(), (**envelope).clone());
                }
                Place::Archive | Place::Dead => {
                    self.envelopes.remove(&envelope.relay_id);
                }
            },
            Change::Run(run) => {
                self.runs.insert(run.run_id.clone(), run.clone());
            }
            Change::RunGone(id) => {
                self.runs.remove(id);
            }
            Change::Effect(effect) => {
                self.effects.insert(effect.effect_id.clone(), effect.clone());
            }
            Change::EffectGone(id) => {
                self.effects.remove(id);
            }
            Change::Outgoing(outgoing) => {
                self.outgoing.insert(outgoing.outgoing_id.clone(), (**outgoing).clone());
            }
            Change::OutgoingGone(id) => {
                self.outgoing.remove(id);
            }
            Change::Gate(gate) => match gate.state {
                GateState::Open => {
                    self.gates.insert(gate.gate_id.clone(), gate.clone());
                }
                GateState::Approved { .. }
                | GateState::Rejected { .. }
                | GateState::Expired { .. }
                | GateState::Void => {
                    self.gates.remove(&gate.gate_id);
                }
            },
            Change::Operation(operation) => match operation.status {
                OperationStatus::Running => {
                    self.operations.insert(operation.operation_id.clone(), operation.clone());
                }
                OperationStatus::Completed | OperationStatus::Failed => {
                    self.operations.remove(&operation.operation_id);
                }
            },
            Change::Session(session) => {
                let key = session_key(session.role, &session.request_id);
                self.sessions.insert(key, session.clone());
            }
            Change::Channel(mark) => {
                self.channels.insert(mark.channel_id, mark.clone());
            }
            Change::Backlog(item) => {
                let id = item.backlog_id.clone();
                if item.status.is_active() {
                    self.settled_items.remove(&id);
                    self.backlog.insert(id, (**item).clone());
                } else {
                    self.backlog.remove(&id);
                    self.settled_items.insert(id, item.fingerprint.clone());
                    if self.settled_items.len() > SETTLED_ITEMS_KEPT {
                        // Ids begin with the date: the first is the oldest.
                        self.settled_items.pop_first();
                    }
                }
            }
            Change::Sprint(sprint) => {
                self.sprint_ids.insert(sprint.sprint_id.clone());
                if self.sprint_ids.len() > SPRINT_IDS_KEPT {
                    self.sprint_ids.pop_first();
                }
                self.sprints.insert(sprint.sprint_id.clone(), (**sprint).clone());
            }
            Change::RetireSprint(id) => {
                self.sprints.remove(id);
            }
            Change::Lifecycle(lifecycle) => {
                self.lifecycles.insert(lifecycle.digest().to_owned(), Arc::clone(lifecycle));
            }
            Change::Scheduler(scheduler) => self.scheduler = (**scheduler).clone(),
            Change::Spending(spending) => self.spending = (**spending).clone(),
        }
    }

    /// The lifecycle of a digest; the one that is built in where none is known.
    #[must_use]
    pub fn lifecycle(&self, digest: &str) -> &Arc<Lifecycle> {
        self.lifecycles.get(digest).unwrap_or_else(|| Lifecycle::built_in())
    }

    /// The request whose room the channel is.
    #[must_use]
    pub fn request_in_room(&self, channel: ChannelId) -> Option<&Request> {
        self.rooms.get(&channel).and_then(|id| self.requests.get(id))
    }

    /// The sprint that holds the slot.
    #[must_use]
    pub fn active_sprint(&self) -> Option<&Sprint> {
        self.scheduler.active_sprint_id.as_ref().and_then(|id| self.sprints.get(id))
    }

    fn remember_room(&mut self, thread: ChannelId, request: &RequestId) {
        self.rooms.insert(thread, request.clone());
        while self.rooms.len() > ROOMS_KEPT {
            // Thread ids grow with time: the smallest whose request has ended is the oldest.
            let oldest =
                self.rooms.iter().find(|(_, id)| !self.requests.contains_key(*id)).map(|(k, _)| *k);
            match oldest {
                Some(key) => {
                    self.rooms.remove(&key);
                    self.channels.remove(&key);
                }
                None => break,
            }
        }
    }
}
