//! Carries out one generation of a run: from its assignment until the hub has settled what came of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, OptionFuture};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::job::JobSpec;
use super::messages::{MessageError, pack, remove, unpack};
use super::run_agent::{AgentEnd, RunAgent};
use super::run_error::RunAgentError;
use super::spool::{KeptJob, Spool, SpoolError};
use super::worker::{RunWords, Worker};
use crate::agents::{self, Mailbox, PersonMessage, Words};
use crate::domain::assignment::{
    Assignment, CallAnswer, Control, HubBody, Payload, RunEnd, WorkerSide, WorkerStep,
};
use crate::domain::ids::{CallId, IdError, RunId};
use crate::platform::redact::redact;
use crate::platform::{clock, full_disk, ids, tasks};

/// Why an assignment cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum CarryOutError {
    /// The job did not come whole; the hub sends it again.
    #[error("the job did not come: {0}")]
    NoJob(MessageError),
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("the job does not parse: {0}")]
    Job(#[from] serde_json::Error),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Id(#[from] IdError),
    #[error("it was cut off: {0}")]
    Cut(#[from] tokio::task::JoinError),
}

type Agent = BoxFuture<'static, Result<AgentEnd, RunAgentError>>;

/// A generation under way.
struct ActiveRun<'a> {
    worker: &'a Arc<Worker>,
    run_id: &'a RunId,
    generation: u32,
    spool: Spool,
    job: Option<Box<KeptJob>>,
    side: WorkerSide,
    agent: OptionFuture<Agent>,
    mailbox: Mailbox,
    cancel: CancellationToken,
    /// Who waits for the answers to calls.
    waiting: BTreeMap<CallId, oneshot::Sender<String>>,
}

pub(super) async fn carry_out(
    worker: &Arc<Worker>,
    (run_id, generation): (&RunId, u32),
    assignment: Assignment,
    mut hub_says: mpsc::Receiver<HubBody>,
    mut run_says: mpsc::Receiver<RunWords>,
) -> Result<(), CarryOutError> {
    let Assignment { folder, job, given } = assignment;
    let spool = Spool::new(folder);
    let job: Option<JobSpec> = match job {
        Some(job) => {
            let job = unpack(&*worker.parts.transport, job).await;
            serde_json::from_str(&job.map_err(CarryOutError::NoJob)?)?
        }
        None => None,
    };
    let kept = match job {
        Some(job) => {
            let spool = spool.clone();
            Some(tasks::blocking(move || spool.keep_job(job, given)).await??)
        }
        None => None,
    };
    let now = clock::uptime_ms();
    let (side, first) = match &kept {
        Some(kept) => WorkerSide::claim(kept.applied, now),
        None => WorkerSide::was_over(end_agent(run_id, spool.folder()).await, now),
    };
    let mut carrying = ActiveRun {
        worker,
        run_id,
        generation,
        spool,
        job: kept.map(Box::new),
        side,
        agent: None.into(),
        mailbox: Mailbox::default(),
        cancel: CancellationToken::new(),
        waiting: BTreeMap::new(),
    };
    let mut steps = first;
    loop {
        if carrying.act(steps).await? {
            return Ok(());
        }
        let due = carrying.side.due().saturating_sub(clock::uptime_ms());
        let wait = std::time::Duration::from_millis(due);
        steps = tokio::select! {
            Some(ended) = &mut carrying.agent => carrying.agent_ended(ended).await?,
            body = hub_says.recv() => match body {
                Some(body) => carrying.side.receive(body, clock::uptime_ms()),
                None => return Ok(()),
            },
            Some(words) = run_says.recv() => carrying.say(words)?,
            () = tokio::time::sleep(wait) => carrying.side.tick(clock::uptime_ms()),
        };
    }
}

impl ActiveRun<'_> {
    /// Does what is to be done; whether the run can be forgotten.
    async fn act(&mut self, steps: Vec<WorkerStep>) -> Result<bool, CarryOutError> {
        let mut steps = std::collections::VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                WorkerStep::Send(body) => {
                    self.worker.send(self.run_id, self.generation, body).await;
                }
                WorkerStep::Begin => {
                    if let Some(kept) = self.job.take() {
                        let agent = RunAgent {
                            worker: Arc::clone(self.worker),
                            job: kept.job,
                            is_resumed: kept.is_resumed,
                            spool: self.spool.clone(),
                            mailbox: self.mailbox.clone(),
                            cancel: self.cancel.clone(),
                        };
                        self.agent = Some(agent.run().boxed()).into();
                    }
                }
                WorkerStep::Apply(control) => self.apply(control).await?,
                WorkerStep::Stop => {
                    self.cancel.cancel();
                    let none: OptionFuture<Agent> = None.into();
                    let at_work = std::mem::replace(&mut self.agent, none);
                    match at_work.await {
                        Some(ended) => steps.extend(self.agent_ended(ended).await?),
                        None => {
                            let over = end_agent(self.run_id, self.spool.folder()).await;
                            steps.extend(self.side.over(over, clock::uptime_ms()));
                        }
                    }
                }
                WorkerStep::Answer { call, answer } => self.answer(&call, answer).await,
                WorkerStep::Forget => {
                    if let Some(RunEnd::Report(report)) = self.side.is_over() {
                        remove(&*self.worker.parts.transport, report).await;
                    }
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    async fn apply(&mut self, control: Control) -> Result<(), CarryOutError> {
        let (spool, number) = (self.spool.clone(), control.number);
        match tasks::blocking(move || spool.keep_applied(number)).await? {
            // After a restart its agent may be told twice, which is better than not at all.
            Err(error) if full_disk::full_path(&error, PathBuf::new).is_some() => {
                tracing::warn!(run = %self.run_id, %error, "what the agent is told is not noted");
            }
            kept => kept?,
        }
        let Control { number: _, message_id: id, author, text, replaces } = control;
        self.mailbox.put(Words {
            id,
            said: PersonMessage { replaces, ..PersonMessage::new(&author, &text) },
        });
        Ok(())
    }

    /// The agent is over. What it said is kept in its folder.
    async fn agent_ended(
        &mut self,
        ended: Result<AgentEnd, RunAgentError>,
    ) -> Result<Vec<WorkerStep>, CarryOutError> {
        self.agent = None.into();
        let over = match (self.side.ends_as(), ended) {
            (Some(RunEnd::Lost), _) | (None, Ok(AgentEnd::Lost)) => RunEnd::Lost,
            (Some(over), Ok(_)) => over,
            (Some(_), Err(_)) => RunEnd::Ended { agent_lives: true },
            (None, Ok(AgentEnd::Report(report))) => {
                let transport = &*self.worker.parts.transport;
                RunEnd::Report(pack(transport, serde_json::to_string(&report)?).await?)
            }
            (None, Err(error)) => RunEnd::Unable(redact(&error.to_string()).into_owned()),
        };
        Ok(self.side.over(over, clock::uptime_ms()))
    }

    /// The run says something to the hub.
    fn say(&mut self, words: RunWords) -> Result<Vec<WorkerStep>, CarryOutError> {
        let RunWords { what, answered } = words;
        let call = CallId::parse(&ids::uuid_v7().to_string())?;
        self.waiting.retain(|_, waiting| !waiting.is_closed());
        self.waiting.insert(call.clone(), answered);
        Ok(self.side.call(call, what, clock::uptime_ms()))
    }

    async fn answer(&mut self, call: &CallId, answer: CallAnswer) {
        let Some(waiting) = self.waiting.remove(call) else { return };
        let CallAnswer { text, keep } = answer;
        let text = match keep {
            None => text,
            Some(keep) => match keep_result(self.worker, self.spool.folder(), keep.result).await {
                Ok(()) => text,
                Err(error) => {
                    tracing::warn!(run = %self.run_id, error, "a result could not be kept");
                    keep.or_else
                }
            },
        };
        // Whoever asked may be gone meanwhile.
        let _ = waiting.send(text);
    }
}

/// Keeps a result that the hub has accepted, before the agent has its answer.
async fn keep_result(worker: &Worker, folder: &Path, result: Payload) -> Result<(), String> {
    let text = unpack(&*worker.parts.transport, result).await.map_err(|it| it.to_string())?;
    let result = serde_json::from_str(&text).map_err(|it| it.to_string())?;
    let folder = folder.to_owned();
    let kept = tasks::blocking(move || agents::submit(&folder, &result)).await;
    kept.map_err(|it| it.to_string())?.map_err(|it| it.to_string())
}

/// Ends whatever agent an earlier start left in a folder.
async fn end_agent(run_id: &RunId, folder: &Path) -> RunEnd {
    let ended = agents::end(folder).await;
    if let Err(error) = &ended {
        tracing::warn!(run = %run_id, %error, "whether its agent has ended is not known");
    }
    RunEnd::Ended { agent_lives: ended.is_err() }
}
