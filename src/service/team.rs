//! What the workers share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::hub::{Hub, HubError};
use super::proof_records::ProofRecords;
use super::run_inboxes::RunInboxes;
use super::signals::{InUse, Signals};
use crate::agents::Driver;
use crate::assets::catalog::Catalog;
use crate::discord::Link;
use crate::domain::config::Channels;
use crate::domain::event::Event;
use crate::domain::ids::{ChannelId, MessageId, RequestId};
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::engine::Answer;
use crate::git::Project;
use crate::model_proxy::ModelServers;
use crate::platform::files;
use crate::platform::full_disk;
use crate::platform::transport::Transport;
use crate::platform::{alarm, clock};
use crate::store::Store;
use crate::worker::{self, RUNS};
use crate::workspace::Workspace;

/// How a look back over what was missed stands.
#[derive(Debug, Default)]
pub(super) struct LookBackState {
    /// Whether Discord told of all channels that it has to read.
    pub(super) is_whole: bool,
    /// Whether another one is planned, because it is not.
    pub(super) is_planned: bool,
    /// The channels that it reads.
    pub(super) reads: BTreeSet<ChannelId>,
}

/// Everything that workers need.
pub(super) struct Team {
    pub(super) hub: Hub,
    pub(super) store: Arc<Store>,
    pub(super) signals: Arc<Signals>,
    pub(super) workspace: Workspace,
    pub(super) project: Project,
    pub(super) channels: Channels,
    pub(super) driver: Arc<Driver>,
    /// The way to the workers.
    pub(super) transport: Arc<dyn Transport>,
    pub(super) inboxes: RunInboxes,
    pub(super) models: Arc<ModelServers>,
    pub(super) link: Link,
    pub(super) catalog: Catalog,
    /// The first message id that could be meant for this team: of the moment its workspace was made.
    pub(super) born: MessageId,
    pub(super) look_back: Mutex<LookBackState>,
    pub(super) serves: BTreeSet<Role>,
    pub(super) slots: Arc<Semaphore>,
    /// A place for each change that may be proven at the same time.
    pub(super) check_slots: Semaphore,
    /// Git calls that move refs or worktrees, one at a time.
    pub(super) git: Arc<tokio::sync::Mutex<()>>,
    /// The other branch that people were last told about as checked out in the project.
    pub(super) elsewhere: tokio::sync::Mutex<Option<String>>,
    /// The base is proven for one request at a time: the next finds what is known then.
    pub(super) base: tokio::sync::Mutex<()>,
    pub(super) proofs: ProofRecords,
    /// Ends every worker.
    pub(super) closing: CancellationToken,
    /// Held as long as somebody works with the team.
    pub(super) _in_use: InUse,
}

impl Team {
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
                    () = tokio::time::sleep(full_disk::LOOK_AGAIN) => {}
                },
                answer => return answer,
            }
        }
    }

    /// A request that is open, or was just now.
    pub(super) fn request(&self, id: &RequestId) -> Option<Arc<Request>> {
        self.hub.read(|state| state.requests.get(id).cloned())
    }

    /// The workspace where it lies inside the project: nothing of it is ever committed.
    pub(super) fn workspace_inside(&self) -> Vec<PathBuf> {
        let root = files::canonicalize(self.root()).ok();
        let inside =
            root.and_then(|root| Some(root.strip_prefix(self.project.path()).ok()?.to_owned()));
        inside.filter(|path| !path.as_os_str().is_empty()).into_iter().collect()
    }

    /// Where requests have their worktrees.
    pub(super) fn worktrees(&self) -> PathBuf {
        self.workspace.state_dir().join("worktrees")
    }

    /// The folder of a generation of a run.
    pub(super) fn run_dir(&self, run: &Run) -> PathBuf {
        let runs = self.workspace.state_dir().join(RUNS).join(run.request_id.as_str());
        worker::run_folder(&runs, &run.run_id, run.generation)
    }
}

/// The present instant as the records write it.
pub(super) fn now() -> Timestamp {
    Timestamp::new(clock::now())
}

/// Waits until the clock of the wall has come to `due`, or for ever where there is nothing to wait for.
pub(super) async fn until(due: Option<Timestamp>) {
    let Some(due) = due else { return std::future::pending().await };
    if let Err(error) = alarm::at(due.utc()).await {
        tracing::warn!(%error, "the system gives no alarm; counting the time instead");
        let millis = u64::try_from(due.millis() - now().millis()).unwrap_or(0);
        tokio::time::sleep(std::time::Duration::from_millis(millis + 1)).await;
    }
}
