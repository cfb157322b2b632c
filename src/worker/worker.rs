//! What all runs of a worker share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::messages::{HUB, encode};
use crate::agents::{ContractFns, Driver};
use crate::domain::assignment::{HubBody, Message, PROTOCOL, RunCall, WorkerBody};
use crate::domain::ids::{BootId, RunId};
use crate::git::Project;
use crate::model_proxy::ModelServers;
use crate::platform::supervise;
use crate::platform::transport::Transport;

/// What a worker works with.
#[derive(Debug)]
pub struct WorkerParts {
    /// This start of it.
    pub boot: BootId,
    /// Runs agents.
    pub driver: Arc<Driver>,
    /// The way to the models.
    pub models: Arc<ModelServers>,
    /// How results are judged.
    pub contract: ContractFns,
    /// The project.
    pub project: Project,
    /// Git calls that move refs or worktrees, one at a time.
    pub git: Arc<tokio::sync::Mutex<()>>,
    /// The way to the hub.
    pub transport: Arc<dyn Transport>,
    /// Ends it.
    pub closing: CancellationToken,
}

/// Something that a run says to the hub, and where its answer goes.
#[derive(Debug)]
pub(super) struct RunWords {
    pub(super) what: RunCall,
    pub(super) answered: oneshot::Sender<String>,
}

/// A generation of a run that is here.
#[derive(Debug, Clone)]
pub(super) struct ActiveRun {
    pub(super) generation: u32,
    pub(super) folder: PathBuf,
    pub(super) from_hub: mpsc::Sender<HubBody>,
    pub(super) to_hub: mpsc::Sender<RunWords>,
}

/// A worker.
#[derive(Debug)]
pub struct Worker {
    pub(super) parts: WorkerParts,
    held: Mutex<BTreeMap<RunId, ActiveRun>>,
}

impl Worker {
    /// A worker that nothing was assigned to yet.
    #[must_use]
    pub fn new(parts: WorkerParts) -> Worker {
        Worker { parts, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<RunId, ActiveRun>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The generation of a run that is here.
    pub(super) fn find(&self, run_id: &RunId) -> Option<ActiveRun> {
        self.held().get(run_id).cloned()
    }

    pub(super) fn hold(&self, run_id: RunId, held: ActiveRun) {
        self.held().insert(run_id, held);
    }

    pub(super) fn let_go(&self, run_id: &RunId) {
        self.held().remove(run_id);
    }

    /// The run at work that a process belongs to.
    pub(super) fn run_of(&self, pid: i32) -> Option<RunId> {
        let mut folders: Vec<(RunId, PathBuf)> = Vec::new();
        folders.extend(self.held().iter().map(|(id, held)| (id.clone(), held.folder.clone())));
        let mut folders = folders.into_iter();
        folders.find(|(_, folder)| supervise::belongs_to(pid, folder)).map(|(id, _)| id)
    }

    /// Says something for a run and waits for the hub's answer; `None` where the run is over before.
    pub(super) async fn say_for(&self, run_id: &RunId, what: RunCall) -> Option<String> {
        let to_hub = self.find(run_id)?.to_hub;
        let (answered, answer) = oneshot::channel();
        to_hub.send(RunWords { what, answered }).await.ok()?;
        answer.await.ok()
    }

    /// Sends a message about a run. Whether it arrives shows in what the hub says.
    pub(super) async fn send(&self, run_id: &RunId, generation: u32, body: WorkerBody) {
        let boot = Some(self.parts.boot.clone());
        let message = Message { v: PROTOCOL, run_id: run_id.clone(), generation, boot, body };
        match encode(&message) {
            Ok(bytes) => {
                self.parts.transport.send(HUB, bytes).await;
            }
            Err(error) => tracing::error!(run = %run_id, %error, "a message cannot be sent"),
        }
    }
}
