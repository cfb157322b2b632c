//! Takes what the hub says and gives it to the run that it is about.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::carry_out::{CarryOutError, carry_out};
use super::job::run_folder;
use super::messages::decode;
use super::worker::{ActiveRun, Worker};
use crate::domain::assignment::{Assignment, EndReason, HubBody, HubMessage, RunEnd, WorkerBody};
use crate::domain::ids::RunId;
use crate::platform::redact::redact;
use crate::platform::{files, tasks};

/// Messages that wait for one run.
const WAITING: usize = 256;

/// Serves as long as there is a way to the hub: what is at work when the team stops may still end.
pub async fn serve(worker: Arc<Worker>, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = messages.recv().await {
        match decode(&bytes) {
            Ok(message) => receive(&worker, message),
            Err(error) => tracing::warn!(%error, "what the hub says cannot be read"),
        }
    }
}

fn receive(worker: &Arc<Worker>, message: HubMessage) {
    let HubMessage { run_id, generation, boot, body, v: _ } = message;
    if boot.is_some_and(|boot| boot != worker.parts.boot) {
        return;
    }
    let body = match (worker.find(&run_id), body) {
        (None, HubBody::Assignment(assignment)) => {
            return start(worker, run_id, generation, assignment);
        }
        (None, _) => return,
        (Some(held), HubBody::Assignment(Assignment { job: None, .. }))
            if held.generation == generation =>
        {
            HubBody::Ended { reason: EndReason::MovedOn }
        }
        (Some(held), body) if held.generation == generation => body,
        // The older one is ended first; the hub says it again.
        (Some(held), HubBody::Assignment(_)) if held.generation < generation => {
            HubBody::Ended { reason: EndReason::Stale }
        }
        (Some(_), _) => return,
    };
    if let Some(held) = worker.find(&run_id) {
        // What finds no room is said again.
        let _ = held.from_hub.try_send(body);
    }
}

fn start(worker: &Arc<Worker>, run_id: RunId, generation: u32, assignment: Assignment) {
    let runs = assignment.folder.parent();
    if runs.is_some_and(|runs| files::exists(&run_folder(runs, &run_id, generation + 1))) {
        // An assignment of long ago.
        return;
    }
    let (from_hub, hub_says) = mpsc::channel(WAITING);
    let (to_hub, run_says) = mpsc::channel(WAITING);
    let folder = assignment.folder.clone();
    worker.hold(run_id.clone(), ActiveRun { generation, folder, from_hub, to_hub });
    let worker = Arc::clone(worker);
    tasks::spawn("run", async move {
        let run = (&run_id, generation);
        let carried = carry_out(&worker, run, assignment, hub_says, run_says).await;
        worker.let_go(&run_id);
        match carried {
            Ok(()) => {}
            Err(error @ CarryOutError::NoJob(_)) => {
                tracing::warn!(run = %run_id, %error, "an assignment cannot be taken");
            }
            Err(error) => {
                let reason = redact(&error.to_string()).into_owned();
                let unable = WorkerBody::Over(RunEnd::Unable(reason));
                worker.send(&run_id, generation, unable).await;
            }
        }
    });
}
