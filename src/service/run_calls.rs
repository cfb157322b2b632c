//! What a run says to the hub while it is under way: its agent uses a tool, or was refused something. Who speaks is
//! known from the run, never from what is said, and an agent holds no right of a person: the planner may change the
//! backlog, and that is all that any agent may do here.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::UnixStream;

use super::agent_command::{CommandRefusal, command};
use super::control::{self, Call, CallSubject, ControlError, Reply};
use super::refusals::Refusals;
use super::run_tools::{self, AtWork, ToolOutcome};
use super::team::Team;
use super::tool::Tool;
use crate::domain::assignment::{CallAnswer, KeptResult, Payload, RunCall};
use crate::domain::event::Event;
use crate::domain::ids::CallId;
use crate::domain::run::Run;
use crate::worker;

pub use crate::agents::RUN_SOCKET;

/// What is kept of the calls of one generation of a run.
#[derive(Debug, Default)]
pub(super) struct RunCalls {
    /// Times that its agent used a tool.
    uses: AtomicU32,
    /// Notes that it made.
    notes: AtomicU32,
    /// What it was refused.
    refusals: Refusals,
    /// The last answers, for calls that are said again.
    answered: VecDeque<(CallId, CallAnswer)>,
}

/// Answers that are kept.
const KEPT: usize = 64;

/// Times that the agent of one generation may use a tool: what it changes by that is kept for good.
const USES: u32 = 500;

impl RunCalls {
    /// Answers a call, once: said again, it has the same answer. `None` where it was not understood, and has to be said
    /// again.
    pub(super) async fn answer(
        &mut self,
        team: &Team,
        run: &Run,
        call: CallId,
        what: RunCall,
    ) -> Option<CallAnswer> {
        if let Some((_, answer)) = self.answered.iter().find(|(known, _)| *known == call) {
            return Some(answer.clone());
        }
        let heard = || CallAnswer { text: String::new(), keep: None };
        let answer = match what {
            RunCall::Tool(line) => self.tool(team, run, &call, line).await?,
            RunCall::Refused { refusal, what } => {
                self.refusals.note(team, &run.run_id, refusal, &what).await;
                heard()
            }
            RunCall::RateLimited { until } => {
                tell(team, Event::RateLimited { run_id: run.run_id.clone(), until }).await;
                heard()
            }
            RunCall::DiskFull { path } => {
                tell(team, Event::DiskFull { request_id: run.request_id.clone(), path }).await;
                heard()
            }
        };
        if self.answered.len() == KEPT {
            self.answered.pop_front();
        }
        self.answered.push_back((call, answer.clone()));
        Some(answer)
    }

    /// Whether this is once too often. What ends the run is taken all the same.
    fn is_enough(&self, wanted: &CallSubject) -> bool {
        let ends = match wanted {
            CallSubject::Use { tool, .. } => *tool == Tool::SubmitResult,
            CallSubject::Tools | CallSubject::Command(_) | CallSubject::Question(_) => false,
        };
        !ends && self.uses.fetch_add(1, Ordering::Relaxed) >= USES
    }

    async fn tool(
        &self,
        team: &Team,
        run: &Run,
        call: &CallId,
        line: Payload,
    ) -> Option<CallAnswer> {
        let line = match worker::unpack(&*team.transport, line).await {
            Ok(line) => line,
            Err(error) => {
                tracing::warn!(run = %run.run_id, %error, "a call cannot be read");
                return None;
            }
        };
        let (told, keep) = match control::call_of(&line) {
            Ok(asked) if self.is_enough(&asked.wanted) => {
                (Ok(Reply::no(format!("a run uses the team's tools at most {USES} times"))), None)
            }
            Err(why) => (Ok(Reply::no(why)), None),
            Ok(asked) => match asked.wanted {
                CallSubject::Tools => (Ok(run_tools::offer(team, run)), None),
                CallSubject::Use { tool, arguments } => {
                    let at_work = AtWork { team, run, call, notes: &self.notes };
                    match at_work.serve(tool, arguments).await {
                        Ok(ToolOutcome { reply, result }) => (Ok(reply), result),
                        Err(refused) => (Err(refused), None),
                    }
                }
                wanted @ (CallSubject::Command(_) | CallSubject::Question(_)) => {
                    (command(team, run, call, wanted).await, None)
                }
            },
        };
        let reply = match told {
            Ok(reply) => reply,
            Err(CommandRefusal { refusal, why }) => {
                if let Some((refusal, what)) = refusal {
                    self.refusals.note(team, &run.run_id, refusal, &what).await;
                }
                Reply::no(why)
            }
        };
        let keep = match keep {
            None => None,
            Some(result) => match worker::pack(&*team.transport, result).await {
                Ok(result) => Some(KeptResult { result, or_else: control::line(&not_kept()) }),
                Err(error) => {
                    tracing::warn!(run = %run.run_id, %error, "a result could not be kept");
                    return Some(CallAnswer { text: control::line(&not_kept()), keep: None });
                }
            },
        };
        Some(CallAnswer { text: control::line(&reply), keep })
    }
}

/// Tells the room of a run what is in its way.
async fn tell(team: &Team, event: Event) {
    if let Err(error) = team.hub.submit(event).await {
        tracing::warn!(%error, "what is in the way of a run is not told in its room");
    }
}

fn not_kept() -> Reply {
    Reply::no("it could not be kept; end with the result as your last message")
}

/// Calls the team over the socket of a run, from within that run.
///
/// # Errors
/// [`ControlError::Refused`] with the team's words where it says no.
pub async fn call(socket: &Path, wanted: CallSubject) -> Result<Reply, ControlError> {
    // Gone with its run, or kept away by a sandbox: the reason tells which.
    let stream = UnixStream::connect(socket).await.map_err(ControlError::NoTools)?;
    control::exchange(stream, &Call { secret: String::new(), wanted }).await
}
