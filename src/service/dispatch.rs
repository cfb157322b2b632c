//! Each role's delegations: the next envelope of its inbox becomes a run, a worker is assigned to it, and the run is
//! followed until its report is applied.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::busy::Busy;
use super::checks;
use super::effect_error::EffectError;
use super::effects;
use super::full_disk::{DiskWait, refuse_without_room};
use super::job;
use super::run_calls::RunCalls;
use super::run_inboxes::WorkerNotice;
use super::task::{self, TaskError};
use super::team::{Team, now, until};
use crate::domain::assignment::{
    Assignment, Decision, EndReason, HubBody, HubMessage, HubSide, HubStep, Lease, Message, Millis,
    PROTOCOL, Payload, RunFacts, WorkerMessage,
};
use crate::domain::envelope::{Envelope, MAX_ENVELOPE_ATTEMPTS};
use crate::domain::event::Event;
use crate::domain::ids::{BootId, RequestId, RunId};
use crate::domain::role::Role;
use crate::domain::run::{Run, RunOutcome, RunReport};
use crate::domain::usage::Usage;
use crate::engine::{Answer, is_wanted, plan_is_full};
use crate::git::{GitError, TreeId};
use crate::model_proxy;
use crate::platform::beneath::Folder;
use crate::platform::files::FileError;
use crate::platform::{clock, ids, tasks};
use crate::relay;
use crate::store::{self, StoreError};
use crate::worker::{self, JobEnvironments, LOCAL_WORKER, MessageError};

/// The lease of the worker in this process. It cannot be cut off from its hub, and a machine that slept over the
/// holidays must not cost the turns that were under way; so it lasts longer than any of that.
const LEASE: Lease = Lease { lasts_ms: 365 * 24 * 60 * 60 * 1_000, renew_ms: 15_000 };

/// Why an envelope could not be worked at all. What an agent does wrong is an outcome instead.
#[derive(Debug, thiserror::Error)]
enum DispatchError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Hub(#[from] super::HubError),
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("the job cannot be written down: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the work was cut off: {0}")]
    Cut(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Release(#[from] EffectError),
    #[error("no id could be made: {0}")]
    Id(#[from] crate::domain::ids::IdError),
}

/// Serves one role until the team closes.
pub(super) async fn serve(team: Arc<Team>, role: Role) {
    let busy: Busy<(Role, RequestId)> = Busy::default();
    while !team.closing.is_cancelled() {
        let (next, due) = team.hub.consult(|state, policy| {
            let now = now();
            let agent = team.workspace.runtime.agents.of(role);
            let full = plan_is_full(state, policy, agent, now).map(|limit| limit.until);
            let next = relay::ready(state, role, now, &busy.keys(), full.is_none());
            let due = relay::next_due(state, now).into_iter().chain(full).min();
            (next.and_then(|id| state.envelopes.get(&id).cloned()), due)
        });
        let Some(envelope) = next else {
            tokio::select! {
                () = team.closing.cancelled() => return,
                () = team.signals.role(role) => {}
                () = until(due) => {}
            }
            continue;
        };
        let key = (role, envelope.envelope.request_id.clone());
        let signals = Arc::clone(&team.signals);
        let mark = busy.mark(key, move || signals.ring(role));
        let team = Arc::clone(&team);
        tasks::spawn("dispatch", async move {
            let _mark = mark;
            // An agent that outlived its team waits for nobody: its tools and its model are there when it is followed.
            let slot = match is_held(&team, &envelope) {
                true => team.slots.clone().try_acquire_owned().ok(),
                // The semaphore is never closed.
                false => team.slots.clone().acquire_owned().await.ok(),
            };
            if team.closing.is_cancelled() {
                return;
            }
            if let Err(trouble) = work(&team, &envelope, slot).await {
                // What waited for room is taken up by the next start, and nothing is counted.
                if team.closing.is_cancelled() {
                    return;
                }
                tracing::warn!(%role, envelope = %envelope.relay_id, %trouble, "an envelope could not be worked");
                fail(&team, &envelope, trouble.to_string(), false).await;
            }
        });
    }
}

/// Whether a worker has the run of an envelope already.
fn is_held(team: &Team, envelope: &Envelope) -> bool {
    team.hub.read(|state| {
        let mut runs = state.runs.values();
        runs.any(|run| run.envelope_id == envelope.relay_id && run.granted.is_some())
    })
}

/// Gives what workers say to whoever follows the run that it is about; on a stop, as long as a run is followed.
pub(super) async fn listen(team: Arc<Team>, mut messages: mpsc::Receiver<Vec<u8>>) {
    loop {
        let bytes = tokio::select! {
            () = team.inboxes.none_after(&team.closing) => return,
            bytes = messages.recv() => bytes,
        };
        let Some(bytes) = bytes else { return };
        let message: WorkerMessage = match worker::decode(&bytes) {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!(%error, "what a worker says cannot be read");
                continue;
            }
        };
        let WorkerMessage { run_id, generation, boot: Some(boot), body, v: _ } = message else {
            continue;
        };
        let late = body.refused(EndReason::Unknown);
        let said = WorkerNotice { generation, boot: boot.clone(), body };
        match team.inboxes.put(&run_id, said) {
            true => {}
            // It is followed soon, and the worker says it again.
            false if team.hub.read(|state| state.runs.contains_key(&run_id)) => {}
            false => send(&team, &run_id, generation, Some(boot), late).await,
        }
    }
}

async fn send(team: &Team, run_id: &RunId, generation: u32, boot: Option<BootId>, body: HubBody) {
    let message: HubMessage =
        Message { v: PROTOCOL, run_id: run_id.clone(), generation, boot, body };
    match worker::encode(&message) {
        // Whether it arrives shows in what the worker says.
        Ok(bytes) => {
            team.transport.send(LOCAL_WORKER, bytes).await;
        }
        Err(error) => tracing::error!(run = %run_id, %error, "a message cannot be sent"),
    }
}

/// What a run of which nobody reports has used, as far as it was counted.
async fn used_by(team: &Team, run: &Run) -> Result<Usage, tokio::task::JoinError> {
    let folder = team.run_dir(run);
    tasks::blocking(move || model_proxy::usage_in(&folder)).await
}

/// Counts a failed attempt of an envelope.
async fn fail(team: &Team, envelope: &Envelope, reason: String, agent_lives: bool) {
    let relay_id = envelope.relay_id.clone();
    let of_this = |run: &&Arc<Run>| run.envelope_id == relay_id;
    let run = team.hub.read(|state| state.runs.values().find(of_this).cloned());
    let usage = match run {
        Some(run) => used_by(team, &run).await.unwrap_or_default(),
        None => Usage::default(),
    };
    let failed = Event::EnvelopeFailed { relay_id, reason, agent_lives, usage };
    // Without a hub there is nobody to tell; the envelope stays where it is.
    let _ = team.insist(failed).await;
}

async fn work(
    team: &Arc<Team>,
    envelope: &Envelope,
    slot: Option<OwnedSemaphorePermit>,
) -> Result<(), DispatchError> {
    let request_id = &envelope.envelope.request_id;
    let (waits, earlier) = team.hub.read(|state| {
        let waits = state.envelopes.contains_key(&envelope.relay_id);
        let earlier = state.runs.values().find(|run| run.envelope_id == envelope.relay_id);
        (waits, earlier.map(|run| run.run_id.clone()))
    });
    // It was put away while it waited for a free place.
    if !waits {
        return Ok(());
    }
    let run_id = match earlier {
        Some(run_id) => run_id,
        None => {
            let mut waiting = DiskWait::default();
            let is_open = || team.request(request_id).is_some_and(|it| !it.status.is_terminal());
            let tree = loop {
                if !is_open() {
                    break None;
                }
                match tree_before(team, envelope).await {
                    Ok(tree) => break Some(tree),
                    Err(error)
                        if waiting
                            .was_for_room(team, Some(request_id), &error, &team.closing)
                            .await => {}
                    Err(error) => return Err(error),
                }
            };
            let run = new_run(team, envelope, tree)?;
            let run_id = run.run_id.clone();
            if team.insist(Event::RunStarting(run)).await? != Answer::Accepted {
                return tidy(team, request_id).await;
            }
            run_id
        }
    };
    let following = RunFollower {
        team,
        envelope,
        run_id: &run_id,
        slot,
        calls: RunCalls::default(),
        blobs: Vec::new(),
        results: VecDeque::new(),
    };
    following.follow().await?;
    tidy(team, request_id).await
}

/// What the worktree of a request holds before its next run.
async fn tree_before(team: &Arc<Team>, envelope: &Envelope) -> Result<TreeId, DispatchError> {
    refuse_without_room(team, &envelope.envelope.request_id)?;
    let _one = team.git.lock().await;
    let (team, id, step) = (Arc::clone(team), envelope.envelope.request_id.clone(), envelope.step);
    Ok(tasks::blocking(move || task::tree_for(&team, &id, step)?.settled_tree_id()).await??)
}

/// A run that nobody has begun.
fn new_run(team: &Team, envelope: &Envelope, tree: Option<TreeId>) -> Result<Run, DispatchError> {
    let run_id = RunId::parse(&ids::uuid_v7().to_string())?;
    let request_id = envelope.envelope.request_id.clone();
    let who = (envelope.target_role, envelope.step);
    Ok(Run {
        attempt: envelope.attempts + 1,
        pre_tree: tree.map(|tree| tree.to_string()),
        agent: team.workspace.runtime.agents.of(envelope.target_role),
        ..Run::new(run_id, request_id, who, envelope.relay_id.clone(), now())
    })
}

/// The request ended while its worktree was being opened: nothing of it may come back.
async fn tidy(team: &Arc<Team>, id: &RequestId) -> Result<(), DispatchError> {
    let (ended, is_worked_in) = team.hub.read(|state| {
        let ended = state.requests.get(id).map(|request| request.status.is_terminal());
        (ended, effects::is_worked_in(state, id))
    });
    let is_over = match ended {
        Some(ended) => ended,
        // One whose record could not be read is not over.
        None => {
            let (root, id) = (team.root().to_owned(), id.clone());
            let kept = tasks::blocking(move || store::read_request(&root, &id)).await?;
            kept.is_ok_and(|it| it.is_some_and(|request| request.status.is_terminal()))
        }
    };
    if is_over && !is_worked_in {
        effects::release(team, id).await?;
    }
    Ok(())
}

/// What a step of the protocol answers.
#[derive(Debug, Clone)]
struct RenewalRequest {
    generation: u32,
    boot: BootId,
    asked_ms: Millis,
}

/// A run that is followed.
struct RunFollower<'a> {
    team: &'a Arc<Team>,
    envelope: &'a Envelope,
    run_id: &'a RunId,
    /// Its place among the agents at work; none for one that went on at a start at which all were taken.
    slot: Option<OwnedSemaphorePermit>,
    calls: RunCalls,
    /// What was packed for the worker, which nobody needs once the run is over.
    blobs: Vec<Payload>,
    /// Results that its agent has handed in by its tool, the last ones: the worker has taken those before.
    results: VecDeque<Payload>,
}

/// Results that an agent handed in whose bytes are kept for the worker.
const RESULTS: usize = 4;

/// Whether a run is followed on.
enum Follow {
    On,
    Done,
}

impl RunFollower<'_> {
    async fn follow(mut self) -> Result<(), DispatchError> {
        let followed = self.until_over().await;
        for blob in self.blobs.iter().chain(&self.results) {
            worker::remove(&*self.team.transport, blob).await;
        }
        self.team.signals.forget(self.run_id);
        followed
    }

    async fn until_over(&mut self) -> Result<(), DispatchError> {
        let team = self.team;
        let mut inbox = team.inboxes.open(self.run_id);
        let news = team.signals.news_of(self.run_id);
        let mut kept: Option<(u32, HubSide)> = None;
        while let Some((run, wanted)) = self.run() {
            let side = match &mut kept {
                Some((generation, side)) if *generation == run.generation => side,
                other => {
                    let side = HubSide::new(&facts(&run, wanted), LEASE, clock::uptime_ms());
                    self.calls = RunCalls::default();
                    &mut other.insert((run.generation, side)).1
                }
            };
            let wait = side.due().saturating_sub(clock::uptime_ms());
            let held = side.is_held();
            let said = tokio::select! {
                // The next start assigns it.
                () = team.closing.cancelled(), if !held => return Ok(()),
                said = inbox.said.recv() => said.map(Some),
                () = news.notified() => Some(None),
                () = tokio::time::sleep(Duration::from_millis(wait)) => None,
            };
            // While it was waited, the records may have gone on.
            let Some((run, wanted)) = self.run() else { return Ok(()) };
            if run.generation != kept.as_ref().map_or(0, |(generation, _)| *generation) {
                continue;
            }
            let Some((_, side)) = &mut kept else { continue };
            let (facts, at) = (facts(&run, wanted), clock::uptime_ms());
            let (steps, asked) = match said {
                None => (side.tick(&facts, at), None),
                Some(None) => (side.news(&facts), None),
                Some(Some(WorkerNotice { generation, boot, body })) => {
                    let asked_ms = body.asked_ms();
                    let asked = RenewalRequest { generation, boot: boot.clone(), asked_ms };
                    (side.receive(&facts, (generation, boot), body, at), Some(asked))
                }
            };
            for step in steps {
                match self.act(&run, side, step, asked.as_ref()).await? {
                    Follow::On => {}
                    Follow::Done => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// Its generation is over without an outcome; what it has cost it has cost.
    async fn take_away(&self, run: &Run) -> Result<(), DispatchError> {
        let usage = used_by(self.team, run).await?;
        let (run_id, generation) = (run.run_id.clone(), run.generation);
        self.team.insist(Event::RunTakenAway { run_id, generation, usage }).await?;
        Ok(())
    }

    /// The run as it is, and whether its request waits for it.
    fn run(&self) -> Option<(Arc<Run>, bool)> {
        self.team.hub.read(|state| {
            let run = state.runs.get(self.run_id)?;
            Some((Arc::clone(run), is_wanted(state, run)))
        })
    }

    async fn act(
        &mut self,
        run: &Arc<Run>,
        side: &mut HubSide,
        step: HubStep,
        asked: Option<&RenewalRequest>,
    ) -> Result<Follow, DispatchError> {
        match step {
            HubStep::Send(boot, body) => {
                // An older generation is told about itself.
                let generation = asked.map_or(run.generation, |asked| asked.generation);
                send(self.team, self.run_id, generation, Some(boot), body).await;
                Ok(Follow::On)
            }
            HubStep::Assign { only_end } => self.assign(run, side, only_end).await,
            HubStep::Decide(decision) => self.decide(run, side, decision, asked).await,
        }
    }

    async fn assign(
        &mut self,
        run: &Arc<Run>,
        side: &mut HubSide,
        only_end: bool,
    ) -> Result<Follow, DispatchError> {
        if self.slot.is_none() && run.granted.is_none() && !only_end {
            // Its agent is lost, and another one begins.
            self.slot = self.team.slots.clone().acquire_owned().await.ok();
        }
        let mut waiting = DiskWait::default();
        let (job, given) = loop {
            // Where nobody waits for it any more, what there is of it is ended, and makes room.
            if only_end || self.run().is_none_or(|(_, wanted)| !wanted) {
                break (None, 0);
            }
            let (team, id) = (self.team, Some(&run.request_id));
            match self.job(run).await {
                // The next start assigns it, with what is prepared.
                Ok(_) if team.closing.is_cancelled() => return Ok(Follow::Done),
                Ok((job, given)) => {
                    break (self.run().filter(|(_, wanted)| *wanted).map(|_| job), given);
                }
                Err(error) if waiting.was_for_room(team, id, &error, &team.closing).await => {}
                Err(error) if team.closing.is_cancelled() => return Err(error),
                Err(error) => return self.failed(run, side, error.to_string()).await,
            }
        };
        let assignment = Assignment { folder: self.team.run_dir(run), job, given };
        let body = HubBody::Assignment(assignment);
        send(self.team, self.run_id, run.generation, None, body).await;
        Ok(Follow::On)
    }

    /// What the worker is to do, made of the records as they are, and the number of the last control that stands in it.
    async fn job(&mut self, run: &Arc<Run>) -> Result<(Payload, u32), DispatchError> {
        self.team.store.settled().await?;
        let (team, envelope) = (Arc::clone(self.team), self.envelope.clone());
        let run = Arc::clone(run);
        let environments = self.environments(&run).await;
        let (job, given) = {
            let _one = self.team.git.lock().await;
            // Before the request is read, of which the prompt is made: nothing is taken for told that is not.
            let controls = self.run().map(|(run, _)| run.controls.clone()).unwrap_or_default();
            let given = controls.last().map_or(0, |control| control.number);
            let make = move || job::job(&team, &envelope, &run, &controls, environments);
            (tasks::blocking(make).await??, given)
        };
        let job = worker::pack(&*self.team.transport, serde_json::to_string(&job)?).await?;
        self.blobs.push(job.clone());
        Ok((job, given))
    }

    /// What is prepared for a run. That is ended where nobody waits for the run any more, or the team ends.
    async fn environments(&self, run: &Run) -> JobEnvironments {
        if run.granted.is_some() {
            // Its worker goes on by the job that it has, with what was prepared for that.
            return JobEnvironments::default();
        }
        let (stop, news) =
            (self.team.closing.child_token(), self.team.signals.news_of(self.run_id));
        let preparing = checks::environments_for(self.team, run, &stop);
        tokio::pin!(preparing);
        let made = loop {
            tokio::select! {
                made = &mut preparing => break made,
                () = news.notified() => {
                    if self.run().is_none_or(|(_, wanted)| !wanted) {
                        stop.cancel();
                    }
                }
            }
        };
        // What was told meanwhile is for whoever follows the run.
        news.notify_one();
        made
    }

    /// The run cannot be carried out for now. On what would be the last attempt an agent that may still be at work is
    /// ended first; before that it may finish, and the next attempt adopts it.
    async fn failed(
        &mut self,
        run: &Run,
        side: &mut HubSide,
        reason: String,
    ) -> Result<Follow, DispatchError> {
        let attempts = self
            .team
            .hub
            .read(|state| state.envelopes.get(&self.envelope.relay_id).map_or(0, |it| it.attempts));
        match &run.granted {
            Some(boot) if attempts + 1 >= MAX_ENVELOPE_ATTEMPTS => {
                for step in side.end(boot.clone(), reason, clock::uptime_ms()) {
                    if let HubStep::Send(boot, body) = step {
                        send(self.team, self.run_id, run.generation, Some(boot), body).await;
                    }
                }
                Ok(Follow::On)
            }
            granted => {
                fail(self.team, self.envelope, reason, granted.is_some()).await;
                Ok(Follow::Done)
            }
        }
    }

    async fn decide(
        &mut self,
        run: &Arc<Run>,
        side: &mut HubSide,
        decision: Decision,
        asked: Option<&RenewalRequest>,
    ) -> Result<Follow, DispatchError> {
        let (run_id, generation) = (self.run_id.clone(), run.generation);
        match decision {
            Decision::Grant(boot) => {
                let claimed = Event::RunClaimed { run_id, generation, boot: boot.clone() };
                let body = match self.team.insist(claimed).await? {
                    Answer::Accepted => {
                        // Discord may be away; the agent is not to wait for it.
                        let (team, envelope) = (Arc::clone(self.team), self.envelope.clone());
                        tasks::spawn("typing", async move {
                            tokio::select! {
                                () = show_typing(&team, &envelope) => {}
                                () = team.closing.cancelled() => {}
                            }
                        });
                        let asked_ms = asked.map_or(0, |asked| asked.asked_ms);
                        side.granted(asked_ms, clock::uptime_ms())
                    }
                    Answer::Ignored(_) | Answer::Say(_) | Answer::Refused(_) => {
                        HubBody::Ended { reason: EndReason::MovedOn }
                    }
                };
                send(self.team, self.run_id, generation, Some(boot), body).await;
                Ok(Follow::On)
            }
            Decision::TakeAway => {
                self.take_away(run).await?;
                self.settle(asked, false, None).await;
                Ok(Follow::On)
            }
            Decision::Finish(payload) => self.finish(run, payload, asked).await,
            Decision::Fail { reason, agent_lives: true } => {
                let followed = self.failed(run, side, reason).await?;
                if matches!(followed, Follow::Done) {
                    self.settle(asked, true, None).await;
                }
                Ok(followed)
            }
            Decision::Fail { reason, agent_lives: false } => {
                fail(self.team, self.envelope, reason, false).await;
                self.settle(asked, false, None).await;
                Ok(Follow::Done)
            }
            Decision::Answer { call, what } => {
                let answer = self.calls.answer(self.team, run, call.clone(), what).await;
                let kept = answer.as_ref().and_then(|answer| answer.keep.as_ref());
                self.results.extend(kept.map(|kept| kept.result.clone()));
                if self.results.len() > RESULTS
                    && let Some(taken) = self.results.pop_front()
                    && !self.results.contains(&taken)
                {
                    worker::remove(&*self.team.transport, &taken).await;
                }
                if let (Some(RenewalRequest { boot, .. }), Some(answer)) = (asked, answer) {
                    let body = HubBody::Answer { call, answer };
                    send(self.team, self.run_id, generation, Some(boot.clone()), body).await;
                }
                Ok(Follow::On)
            }
        }
    }

    /// The worker need not say again what came of it.
    async fn settle(
        &self,
        asked: Option<&RenewalRequest>,
        unable: bool,
        refused: Option<EndReason>,
    ) {
        if let Some(RenewalRequest { generation, boot, asked_ms: _ }) = asked {
            let body = HubBody::Settled { unable, refused };
            send(self.team, self.run_id, *generation, Some(boot.clone()), body).await;
        }
    }

    async fn finish(
        &mut self,
        run: &Arc<Run>,
        payload: Payload,
        asked: Option<&RenewalRequest>,
    ) -> Result<Follow, DispatchError> {
        let text = match worker::unpack(&*self.team.transport, payload).await {
            Ok(text) => text,
            Err(error) => {
                // The worker sends it again.
                tracing::warn!(run = %self.run_id, %error, "a report cannot be read");
                return Ok(Follow::On);
            }
        };
        let report = serde_json::from_str::<RunReport>(&text);
        let own = |it: &RunReport| it.run_id == run.run_id && it.generation == run.generation;
        let Some(mut report) = report.ok().filter(own) else {
            tracing::warn!(run = %self.run_id, "a report is not one of this run");
            self.settle(asked, false, Some(EndReason::Invalid)).await;
            self.take_away(run).await?;
            return Ok(Follow::On);
        };
        report.documents_present = match &report.outcome {
            RunOutcome::Result(result) => present(self.team.root(), &result.artifacts),
            RunOutcome::Failed { .. } => Vec::new(),
        };
        self.team.insist(Event::RunFinished(Box::new(report))).await?;
        self.settle(asked, false, None).await;
        Ok(Follow::On)
    }
}

/// What the protocol has to know of a run.
fn facts(run: &Run, wanted: bool) -> RunFacts<'_> {
    RunFacts {
        generation: run.generation,
        granted: run.granted.as_ref(),
        controls: &run.controls,
        wanted,
    }
}

async fn show_typing(team: &Team, envelope: &Envelope) {
    let id = &envelope.envelope.request_id;
    let channel = team.hub.read(|state| state.requests.get(id)?.conversation.place());
    if let Some(channel) = channel {
        team.link.typing(channel).await;
    }
}

/// The listed files that exist in the workspace, as results name them. A link is none of them, wherever it
/// leads: the agent may have made it.
fn present(root: &Path, artifacts: &[String]) -> Vec<String> {
    let Ok(root) = Folder::open(root) else { return Vec::new() };
    artifacts
        .iter()
        .map(|name| crate::engine::parse::normalize_artifact_hint(name))
        .filter(|name| root.has_file(name))
        .collect()
}
