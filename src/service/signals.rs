//! What wakes the tasks of the team, and what ends its processes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::domain::ids::{EffectId, RunId};
use crate::domain::role::Role;
use crate::engine::Wake;
use crate::git::TreeId;

/// Bells that wake workers. A worker looks at the records when its bell rings, and once at the start;
/// a bell says nothing by itself.
#[derive(Debug, Default)]
pub(super) struct Signals {
    roles: BTreeMap<Role, Notify>,
    pub(super) reports: Notify,
    pub(super) effects: Notify,
    pub(super) outbox: Notify,
    pub(super) todos: Notify,
    pub(super) papers: Notify,
    pub(super) clock: Notify,
    pub(super) presence: Notify,
    /// Another change may be expected on the branch.
    pub(super) expected: Notify,
    pub(super) early: EarlyProof,
    /// A request may wait for somebody.
    pub(super) waiting: Notify,
    /// A request has given back what it held.
    pub(super) ended: Notify,
    runs: Mutex<BTreeMap<RunId, Arc<Notify>>>,
    effect_stops: Stops<EffectId>,
}

/// Tokens by what they end.
type Stops<K> = Mutex<BTreeMap<K, CancellationToken>>;

fn locked<K>(stops: &Stops<K>) -> MutexGuard<'_, BTreeMap<K, CancellationToken>> {
    stops.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The early proof that is under way.
#[derive(Debug, Default)]
pub(super) struct EarlyProof {
    /// Ends it.
    stop: Mutex<CancellationToken>,
    tree: watch::Sender<Option<TreeId>>,
}

impl EarlyProof {
    /// Begins one; what this returns ends it.
    pub(super) fn begin(&self, closing: &CancellationToken) -> CancellationToken {
        let stop = closing.child_token();
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = stop.clone();
        stop
    }

    /// Says which tree it is about, or that it is over.
    pub(super) fn is_about(&self, tree: Option<TreeId>) {
        self.tree.send_replace(tree);
    }

    /// Ends it, for somebody who waits for its place.
    pub(super) async fn give_way(&self) -> Infallible {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).cancel();
        std::future::pending().await
    }

    /// Waits for one about this tree.
    pub(super) async fn wait(&self, tree: TreeId, stop: &CancellationToken) {
        let mut under_way = self.tree.subscribe();
        tokio::select! {
            // An error says that nobody proves anything any more.
            _ = under_way.wait_for(|now| *now != Some(tree)) => {}
            () = stop.cancelled() => {}
        }
    }
}

impl Signals {
    pub(super) fn new() -> Signals {
        Signals {
            roles: Role::ALL.into_iter().map(|role| (role, Notify::new())).collect(),
            ..Signals::default()
        }
    }

    /// Rings for what a decision made possible.
    pub(super) fn raise(&self, wakes: Vec<Wake>) {
        for wake in wakes {
            match wake {
                Wake::Role(role) => self.ring(role),
                Wake::Reports => self.reports.notify_one(),
                Wake::Effect(_) => self.effects.notify_one(),
                Wake::Outbox => self.outbox.notify_one(),
                Wake::StopRun(run) | Wake::SteerRun(run) => {
                    // A run that nobody follows yet is looked at when that begins.
                    if let Some(bell) = self.runs().get(&run) {
                        bell.notify_one();
                    }
                }
                Wake::StopEffect(effect) => {
                    if let Some(token) = locked(&self.effect_stops).get(&effect) {
                        token.cancel();
                    }
                }
            }
        }
    }

    pub(super) fn ring(&self, role: Role) {
        if let Some(bell) = self.roles.get(&role) {
            bell.notify_one();
        }
    }

    /// Waits for the role's bell.
    pub(super) async fn role(&self, role: Role) {
        match self.roles.get(&role) {
            Some(bell) => bell.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Rings when there are words for the agent of a run, or nobody wants its result any more.
    pub(super) fn news_of(&self, run: &RunId) -> Arc<Notify> {
        Arc::clone(self.runs().entry(run.clone()).or_default())
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<Notify>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget(&self, run: &RunId) {
        self.runs().remove(run);
    }

    /// The token that ends the processes of an effect.
    pub(super) fn stop_of_effect(self: &Arc<Self>, effect: &EffectId) -> EffectStop {
        let token = locked(&self.effect_stops).entry(effect.clone()).or_default().clone();
        EffectStop { token, effect: effect.clone(), signals: Arc::clone(self) }
    }
}

/// Ends the processes of an effect when somebody wants it; forgotten when the effect is over.
pub(super) struct EffectStop {
    pub(super) token: CancellationToken,
    effect: EffectId,
    signals: Arc<Signals>,
}

impl Drop for EffectStop {
    fn drop(&mut self) {
        locked(&self.signals.effect_stops).remove(&self.effect);
    }
}

/// Held by whoever uses the store; when the last one is gone, it can be closed.
pub(super) type InUse = mpsc::Sender<Infallible>;
