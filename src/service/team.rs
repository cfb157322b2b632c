//! What the workers share.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::hub::{Hub, HubError};
use crate::agents::Driver;
use crate::assets::catalog::Catalog;
use crate::discord::Link;
use crate::domain::config::{Channels, Positive};
use crate::domain::event::Event;
use crate::domain::ids::{EffectId, MessageId, RunId};
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::engine::{Answer, Wake};
use crate::git::Project;
use crate::model_proxy::ModelServers;
use crate::platform::clock;
use crate::store::Store;
use crate::workspace::Workspace;

/// How long a full disk is left alone before the next try.
const FOR_SPACE: std::time::Duration = std::time::Duration::from_secs(5);
/// Agents that may work at the same time.
const PARALLEL_RUNS: usize = 2;

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
    /// A request has given back what it held.
    pub(super) ended: Notify,
    stops: Stops<RunId>,
    steers: Mutex<BTreeMap<RunId, Arc<Notify>>>,
    effect_stops: Stops<EffectId>,
}

/// Tokens by what they end.
type Stops<K> = Mutex<BTreeMap<K, CancellationToken>>;

fn locked<K>(stops: &Stops<K>) -> MutexGuard<'_, BTreeMap<K, CancellationToken>> {
    stops.lock().unwrap_or_else(PoisonError::into_inner)
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
                Wake::StopRun(run) => {
                    if let Some(token) = locked(&self.stops).get(&run) {
                        token.cancel();
                    }
                }
                Wake::SteerRun(run) => {
                    // A run that is not there yet looks for words when it begins.
                    if let Some(bell) = self.steers().get(&run) {
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

    /// The token that ends a run.
    pub(super) fn stop_of(&self, run: &RunId) -> CancellationToken {
        locked(&self.stops).entry(run.clone()).or_default().clone()
    }

    /// Rings when there are words for the agent of a run.
    pub(super) fn words_for(&self, run: &RunId) -> Arc<Notify> {
        Arc::clone(self.steers().entry(run.clone()).or_default())
    }

    fn steers(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<Notify>>> {
        self.steers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget(&self, run: &RunId) {
        locked(&self.stops).remove(run);
        self.steers().remove(run);
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

/// Everything that workers need.
pub(super) struct Team {
    pub(super) hub: Hub,
    pub(super) store: Arc<Store>,
    pub(super) signals: Arc<Signals>,
    pub(super) workspace: Workspace,
    pub(super) project: Project,
    pub(super) channels: Channels,
    pub(super) driver: Driver,
    pub(super) models: Arc<ModelServers>,
    pub(super) link: Link,
    pub(super) catalog: Catalog,
    /// The first message id that could be meant for this team: of the moment its workspace was made.
    pub(super) born: MessageId,
    pub(super) serves: BTreeSet<Role>,
    pub(super) slots: Arc<Semaphore>,
    /// Git calls that move refs or worktrees, one at a time.
    pub(super) git: tokio::sync::Mutex<()>,
    /// Ends every worker.
    pub(super) closing: CancellationToken,
    /// Held as long as somebody works with the team.
    pub(super) _in_use: InUse,
}

/// Held by whoever uses the store; when the last one is gone, it can be closed.
pub(super) type InUse = mpsc::Sender<Infallible>;

impl Team {
    /// A place for each agent that may work at the same time.
    pub(super) fn slots(workspace: &Workspace) -> Arc<Semaphore> {
        let said = workspace.runtime.limits.parallel_runs.map(Positive::as_usize);
        Arc::new(Semaphore::new(said.unwrap_or(PARALLEL_RUNS)))
    }

    pub(super) fn root(&self) -> &Path {
        &self.workspace.root
    }

    /// Brings what has happened already and must not be lost: on a full disk it waits for space.
    ///
    /// # Errors
    /// Only [`HubError::Closed`] while the team runs, and whatever came last once it stops.
    pub(super) async fn insist(&self, event: Event) -> Result<Answer, HubError> {
        loop {
            match self.hub.submit(event.clone()).await {
                Err(HubError::NoSpace) => tokio::select! {
                    () = self.closing.cancelled() => return Err(HubError::NoSpace),
                    () = tokio::time::sleep(FOR_SPACE) => {}
                },
                answer => return answer,
            }
        }
    }

    /// Where requests have their worktrees.
    pub(super) fn worktrees(&self) -> PathBuf {
        self.workspace.state_dir().join("worktrees")
    }
}

/// The present instant as the records write it.
pub(super) fn now() -> Timestamp {
    Timestamp::new(clock::now())
}

/// Waits until `due`, or for ever where there is nothing to wait for.
pub(super) async fn until(due: Option<Timestamp>) {
    match due {
        Some(due) => {
            let millis = u64::try_from(due.millis() - now().millis()).unwrap_or(0);
            tokio::time::sleep(std::time::Duration::from_millis(millis + 1)).await;
        }
        None => std::future::pending().await,
    }
}
