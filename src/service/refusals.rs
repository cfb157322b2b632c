//! What agents are refused at the team's sockets goes into the history of their request, and is told in its room
//! by the engine. Who it was follows from the run, or from the process that asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::team::Team;
use crate::domain::event::Event;
use crate::domain::ids::RunId;
use crate::domain::refusal::Refusal;
use crate::domain::run::Run;
use crate::platform::redact::redact;
use crate::platform::supervise;

/// Refusals of one run at one socket that are noted. Whoever goes on is refused all the same.
const MOST: u32 = 20;
/// Characters that say what was tried.
const WHAT: usize = 200;

/// Counts what one socket refused to one run.
#[derive(Debug, Default)]
pub(super) struct Refusals(AtomicU32);

impl Refusals {
    /// Notes one.
    pub(super) async fn note(&self, team: &Team, run: &RunId, refusal: Refusal, what: &str) {
        tracing::warn!(%run, refusal = refusal.as_str(), "an agent was refused something");
        if self.0.fetch_add(1, Ordering::Relaxed) < MOST {
            let what = redact(what).chars().filter(|c| !c.is_control()).take(WHAT).collect();
            let event = Event::Refused { run_id: run.clone(), refusal, what };
            if let Err(error) = team.hub.submit(event).await {
                tracing::warn!(%error, "what an agent was refused is not in its request's history");
            }
        }
    }
}

/// The run at work that a process belongs to, if any.
pub(super) fn run_of(team: &Team, pid: Option<i32>) -> Option<Arc<Run>> {
    let pid = pid?;
    let runs: Vec<Arc<Run>> = team.hub.read(|state| state.runs.values().cloned().collect());
    let mut runs = runs.into_iter();
    runs.find(|run| supervise::belongs_to(pid, &team.run_dir(run)))
}
