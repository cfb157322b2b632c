//! What the proxy of a run refuses to its agent is told to the hub before the agent has its answer.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::worker::Worker;
use crate::domain::assignment::RunCall;
use crate::domain::ids::RunId;
use crate::model_proxy::RefusedCall;
use crate::platform::tasks;

/// Where the proxy of a run says what it refused.
pub(super) fn of(worker: &Arc<Worker>, run_id: &RunId) -> mpsc::Sender<RefusedCall> {
    let (sender, mut refused) = mpsc::channel::<RefusedCall>(8);
    let (worker, run_id) = (Arc::clone(worker), run_id.clone());
    tasks::spawn("refusals", async move {
        while let Some(RefusedCall { refusal, what, noted }) = refused.recv().await {
            worker.say_for(&run_id, RunCall::Refused { refusal, what }).await;
            // Whoever asked may be gone meanwhile.
            let _ = noted.send(());
        }
    });
    sender
}
