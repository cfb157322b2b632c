//! The hub owns the open records. Whatever happens comes here as an event, is decided by the engine,
//! made durable in one append, and only then answered and acted upon.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use tokio::sync::{mpsc, oneshot};

use super::signals::{InUse, Signals};
use crate::domain::change::Change;
use crate::domain::check_proposal::CheckProposal;
use crate::domain::event::Event;
use crate::domain::ids::{GuildId, IdSupply, UserId};
use crate::domain::policy::{GateTable, Holders, Policy, Right};
use crate::domain::record::{AnyRecord, RecordId, RecordKind};
use crate::domain::request::EventKind;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::{Answer, Decision, Input, Wake, decide};
use crate::git::CheckPlan;
use crate::platform::{clock, ids, tasks};
use crate::store::{PendingAppend, Store, StoreError};
use crate::workspace;

/// Events that may wait for the hub before whoever brings more has to wait.
const QUEUE: usize = 256;
/// Decisions whose append is under way.
const IN_FLIGHT: usize = 256;

/// Why an event was not taken in.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HubError {
    /// The disk is full; nothing was lost, nothing new is taken in.
    #[error("the disk is full: new work is refused until there is space")]
    NoSpace,
    /// The team is stopping.
    #[error("the team is stopping")]
    Closed,
}

struct Job {
    event: Event,
    reply: oneshot::Sender<Result<Answer, HubError>>,
}

/// The way to the hub. Cheap to clone.
#[derive(Clone)]
pub(super) struct Hub {
    jobs: mpsc::Sender<Job>,
    state: Arc<RwLock<State>>,
    policy: Arc<RwLock<Policy>>,
}

impl Hub {
    /// Starts the hub on an opened store. The receiver gets the one error that ends it.
    pub(super) fn start(
        store: Arc<Store>,
        state: State,
        policy: Policy,
        signals: Arc<Signals>,
        in_use: InUse,
    ) -> (Hub, oneshot::Receiver<StoreError>) {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let hub = Hub {
            jobs,
            state: Arc::new(RwLock::new(state)),
            policy: Arc::new(RwLock::new(policy)),
        };
        let (failed, failure) = oneshot::channel();
        let work =
            Work { store, state: Arc::clone(&hub.state), policy: Arc::clone(&hub.policy), signals };
        tasks::spawn("hub", async move {
            let _in_use = in_use;
            if let Err(error) = work.run(queue).await {
                // Nobody listens any more only where the team is going down anyway.
                let _ = failed.send(error);
            }
        });
        (hub, failure)
    }

    /// Brings an event; the answer comes when what it decided is durable.
    pub(super) async fn submit(&self, event: Event) -> Result<Answer, HubError> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job { event, reply }).await.map_err(|_| HubError::Closed)?;
        answer.await.map_err(|_| HubError::Closed)?
    }

    /// Looks at the open records. They may be ahead of the disk, so what follows from a look has to
    /// go through [`Hub::submit`] before it leaves the process.
    pub(super) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at the open records and the rules. The records come first, as in every decision: two
    /// locks that are taken in two orders can wait for each other.
    pub(super) fn consult<T>(&self, look: impl FnOnce(&State, &Policy) -> T) -> T {
        self.read(|state| look(state, &self.policy.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Learns which bot users are our own.
    pub(super) fn know_ourselves(&self, own: impl IntoIterator<Item = UserId>) {
        let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        policy.own_ids.extend(own);
    }

    /// Learns which checks are configured now, and what is guarded because they run by it.
    pub(super) fn know_checks(&self, plan: &CheckPlan, gates: GateTable) {
        let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        policy.check_names = plan.checks.iter().map(|check| check.name.clone()).collect();
        policy.checks_digest.clone_from(&plan.digest);
        (policy.gates.guarded, policy.gates.command_words) = (gates.guarded, gates.command_words);
        (policy.gates.guarded_names, policy.gates.guarded_parts) =
            (gates.guarded_names, gates.guarded_parts);
    }

    /// Learns which checks the project shows, where none are configured.
    pub(super) fn know_shown(&self, shown: CheckProposal) {
        self.policy.write().unwrap_or_else(PoisonError::into_inner).shown_checks = shown;
    }

    /// Learns which server the team lives in, where the configuration names none.
    pub(super) fn live_in(&self, guild: GuildId, rights: BTreeMap<Right, Holders>) {
        let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        policy.guilds = [guild].into();
        policy.rights = rights;
    }
}

struct Work {
    store: Arc<Store>,
    state: Arc<RwLock<State>>,
    policy: Arc<RwLock<Policy>>,
    signals: Arc<Signals>,
}

/// A decision whose append is under way.
struct PendingDecision {
    result: Result<(), StoreError>,
    wakes: Vec<Wake>,
    reply: oneshot::Sender<Result<Answer, HubError>>,
    answer: Answer,
}

impl Work {
    async fn run(self, mut queue: mpsc::Receiver<Job>) -> Result<(), StoreError> {
        let mut in_flight = FuturesOrdered::new();
        loop {
            tokio::select! {
                biased;
                Some(pending) = in_flight.next(), if !in_flight.is_empty() => {
                    let PendingDecision { result, wakes, reply, answer }: PendingDecision = pending;
                    match result {
                        Ok(()) => {
                            self.signals.raise(wakes);
                            // The submitter may have gone; the decision stands all the same.
                            let _ = reply.send(Ok(answer));
                        }
                        Err(StoreError::NoSpace) => {
                            tracing::error!(path = %self.store.root().display(), "the disk is full; new work is refused");
                            let _ = reply.send(Err(HubError::NoSpace));
                            while let Some(next) = in_flight.next().await {
                                let _ = next.reply.send(Err(HubError::NoSpace));
                            }
                            let state = self.store.reload().await?;
                            *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
                        }
                        Err(error) => return Err(error),
                    }
                }
                job = queue.recv(), if in_flight.len() < IN_FLIGHT => {
                    let Some(Job { event, reply }) = job else { break };
                    let (appended, effects, answer) = self.decide(event);
                    in_flight.push_back(async move {
                        let result = match appended {
                            Some(appended) => appended.await.map(|_| ()),
                            None => Ok(()),
                        };
                        PendingDecision { result, wakes: effects, reply, answer }
                    });
                }
            }
        }
        Ok(())
    }

    /// Decides and lets memory run ahead. The append is in order before anybody can see the records
    /// that it makes durable, so that whoever looks and then waits for the store to settle finds the
    /// files as the records were.
    fn decide(&self, event: Event) -> (Option<PendingAppend>, Vec<Wake>, Answer) {
        let input =
            Input { event, now: Timestamp::new(clock::now()), ids: IdSupply::new(ids::uuid_v7()) };
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        let Decision { mut changes, effects, answer } = decide(&state, &policy, input);
        let delivered = workspace::papers::completed(&changes, &state);
        for change in &changes {
            state.apply(change);
        }
        let entries = workspace::documents::documents_for(&changes, &state);
        for documents in [entries, delivered] {
            match documents {
                Ok(documents) => changes.extend(documents),
                // A template that is broken must not stop the team.
                Err(error) => tracing::warn!(%error, "a document was not written"),
            }
        }
        let mut told = Vec::new();
        let (mut requests, mut papers) = (false, false);
        let mut times = false;
        for change in &changes {
            if let Change::Event(id, event) = change {
                told.push((id.clone(), event.kind, event.actor.clone(), event.summary.clone()));
                papers |= event.kind == EventKind::Planned;
            }
            let kind = change.saved().map(AnyRecord::kind);
            requests |= kind == Some(RecordKind::Request);
            papers |= matches!(
                kind,
                Some(RecordKind::Backlog | RecordKind::Sprint | RecordKind::Scheduler)
            );
            times |= moves_the_clock(change);
        }
        let appended = (!changes.is_empty()).then(|| self.store.append(changes));
        drop(state);
        if requests {
            self.signals.todos.notify_one();
            self.signals.presence.notify_one();
            self.signals.waiting.notify_one();
            self.signals.expected.notify_one();
        }
        if papers {
            self.signals.papers.notify_one();
        }
        if times {
            self.signals.clock.notify_one();
        }
        for (request, kind, actor, summary) in told {
            tracing::info!(%request, %kind, %actor, "{summary}");
        }
        (appended, effects, answer)
    }
}

/// Whether the next instant that the engine waits for may be another one after this change.
fn moves_the_clock(change: &Change) -> bool {
    use RecordKind::{Backlog, Effect, Lifecycle, Request, Scheduler, Sprint};
    match change {
        Change::Save(record) => {
            matches!(record.kind(), Request | Effect | Backlog | Sprint | Lifecycle | Scheduler)
        }
        Change::Remove(id) => {
            matches!(id, RecordId::Request(_) | RecordId::Effect(_) | RecordId::Sprint(_))
        }
        Change::Event(..)
        | Change::SprintEvent(..)
        | Change::Channel(_)
        | Change::Append { .. } => false,
    }
}
