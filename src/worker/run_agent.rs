//! Lets the agent of one generation work, or goes on with the one that an earlier start left, and says what came of
//! it.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::job::JobSpec;
use super::project_view;
use super::run_error::RunAgentError;
use super::run_socket;
use super::spool::Spool;
use super::worker::Worker;
use super::{rate_limits, refused_calls};
use crate::agents::{self, AgentOutcome, Confinement, Mailbox, RunSpec, Watch};
use crate::domain::assignment::RunCall;
use crate::domain::conversation::{Conversation, window_of};
use crate::domain::evidence::{ChangedPath, Isolation, ReportedWork};
use crate::domain::run::{FailKind, RunOutcome, RunReport};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::git::{GitError, TreeId, Worktree};
use crate::model_proxy::{self, ModelProxy, ProxyOptions, RunAllowance, socket_in};
use crate::platform::plug::{self, Point};
use crate::platform::{clock, full_disk, tasks};

/// What came of it.
pub(super) enum AgentEnd {
    /// This.
    Report(Box<RunReport>),
    /// Nothing that could be adopted.
    Lost,
}

/// The content of a worktree, where it is known, and what differs in it from before the run.
type WorktreeChange = (Option<TreeId>, Vec<ChangedPath>);

/// The agent of one generation.
pub(super) struct RunAgent {
    pub(super) worker: Arc<Worker>,
    pub(super) job: JobSpec,
    pub(super) spool: Spool,
    /// Whether an earlier start may have begun with it.
    pub(super) is_resumed: bool,
    pub(super) mailbox: Mailbox,
    pub(super) cancel: CancellationToken,
}

impl RunAgent {
    pub(super) async fn run(mut self) -> Result<AgentEnd, RunAgentError> {
        let worktree = self.open_worktree().await?;
        let dir = self.spool.folder().to_owned();
        if self.is_resumed {
            let _socket = run_socket::open(&self.worker, &self.job, &dir);
            let proxy = if model_proxy::is_kept(&dir) { self.open_proxy().await } else { None };
            let (used, told_used) = watch::channel(Usage::default());
            let (cancel, words) = (self.cancel.clone(), self.mailbox.clone());
            let watch = Watch { cancel, words, used: Some(used), ..Watch::default() };
            let parts = &self.worker.parts;
            let adopted = tokio::select! {
                adopted = parts.driver.adopt(&dir, &parts.contract, &watch) => adopted?,
                never = hold_to_budget(proxy.as_ref(), told_used, &watch.over_budget) => match never {},
            };
            let Some(outcome) = adopted else {
                self.keep_aside(&worktree).await?;
                return Ok(AgentEnd::Lost);
            };
            tracing::info!(run = %self.job.run_id, "the run of an earlier start was adopted");
            return self.report(&worktree, completed(proxy, outcome)).await;
        }
        self.after_earlier_generations(&worktree).await?;
        let outcome = self.work(&worktree).await?;
        self.report(&worktree, outcome).await
    }

    async fn open_worktree(&self) -> Result<Worktree, RunAgentError> {
        let parts = &self.worker.parts;
        let _one = parts.git.lock().await;
        let (project, job) = (parts.project.clone(), &self.job);
        let (id, root, writes) = (job.request_id.clone(), job.worktrees.clone(), job.may_write);
        Ok(tasks::blocking(move || project.tree_for(&id, &root, writes)).await??)
    }

    /// Nothing of an earlier generation is left in the worktree when this one begins, and its conversation goes on
    /// where the agent can.
    async fn after_earlier_generations(
        &mut self,
        worktree: &Worktree,
    ) -> Result<(), RunAgentError> {
        let earlier: Vec<_> = self.job.earlier_folders().collect();
        if earlier.is_empty() {
            return Ok(());
        }
        for folder in &earlier {
            agents::end(folder).await?;
        }
        self.keep_aside(worktree).await?;
        let agent = self.job.run.agent.clone();
        let session = tasks::blocking(move || {
            earlier.iter().find_map(|folder| agents::conversation(folder, &agent))
        });
        let run = &mut self.job.run;
        if let Some(session) = session.await? {
            // One that began after a hand-over has its summary, and what it had reported before.
            run.task.work.handover.take_if(|left| left.session != session);
            run.resume = Some(session);
        }
        // Whoever goes on with a conversation remembers edits that are not there any more.
        run.task.put_back |= run.resume.is_some();
        Ok(())
    }

    async fn work(&self, worktree: &Worktree) -> Result<AgentOutcome, RunAgentError> {
        let JobSpec { run_id, run, .. } = &self.job;
        let (events, told) = mpsc::channel(rate_limits::EVENTS);
        let (cancel, words) = (self.cancel.clone(), self.mailbox.clone());
        let (used, told_used) = watch::channel(Usage::default());
        let (events, used) = (Some(events), Some(used));
        let watch = Watch { cancel, words, events, used, ..Watch::default() };
        tracing::info!(role = %self.job.role, request = %self.job.request_id, run = %run_id, "an agent begins");
        let socket = run_socket::open(&self.worker, &self.job, self.spool.folder());
        let proxy = self.open_proxy().await;
        let mut run =
            RunSpec { socket: socket.as_ref().map(|it| it.path().to_owned()), ..run.clone() };
        let _lent = project_view::show(&self.worker, &self.job, worktree, &mut run).await?;
        run.surroundings.proxy = proxy.as_ref().map(|proxy| proxy.address().clone());
        let limits = proxy.as_ref().map(ModelProxy::rate_limits);
        let parts = &self.worker.parts;
        let outcome = tokio::select! {
            outcome = parts.driver.run(&run, &parts.contract, &watch) => outcome,
            never = rate_limits::follow(&self.worker, run_id, limits, told) => match never {},
            never = hold_to_budget(proxy.as_ref(), told_used, &watch.over_budget) => match never {},
        };
        Ok(completed(proxy, outcome))
    }

    /// Opens the way of the agent to its model; again where an earlier start had opened it. A run without one has no
    /// model and no way out, which is logged and what its agent will say.
    async fn open_proxy(&self) -> Option<ModelProxy> {
        let (parts, job) = (&self.worker.parts, &self.job);
        let proxy = job.proxy.clone()?;
        let dir = self.spool.folder();
        let confinement = parts.driver.confinement(job.run.agent.sandbox()).await;
        let options = ProxyOptions {
            socket: socket_in(&run_socket::folder_of(dir)),
            port: !confinement.is_some_and(Confinement::has_own_network),
            run_dir: dir.to_owned(),
            servers: proxy.servers,
            outside: proxy.outside,
            run: RunAllowance {
                run_id: job.run_id.clone(),
                generation: job.generation,
                began: job.started_at,
                model: job.model.clone(),
                window: job.run.limits.context_window.unwrap_or_else(|| window_of(&job.model)),
                allowance: proxy.allowance,
                shared: proxy.shared_budgets,
            },
            refused: refused_calls::of(&self.worker, &job.run_id),
        };
        let opened = match run_socket::make_folder(dir) {
            Ok(()) => parts.models.open(options).await,
            Err(error) => Err(error.into()),
        };
        match opened {
            Ok(proxy) => Some(proxy),
            Err(error) => {
                tracing::warn!(run = %job.run_id, %error, "the run has no way to its model");
                None
            }
        }
    }

    /// What this machine confines its agent by.
    async fn isolation(&self) -> Isolation {
        match self.worker.parts.driver.confinement(self.job.run.agent.sandbox()).await {
            Some(Confinement::Bubblewrap(_)) => Isolation::Bubblewrap,
            Some(Confinement::Landlock(..)) => Isolation::Landlock,
            Some(Confinement::Nothing(_)) | None => Isolation::None,
        }
    }

    fn tree_before(&self) -> Option<TreeId> {
        self.job.pre_tree.as_ref().and_then(|tree| tree.parse().ok())
    }

    /// Keeps what a run without a result left behind under `refs/teams/lost/<run>`, and puts the worktree back to how
    /// it was before.
    async fn keep_aside(&self, worktree: &Worktree) -> Result<(), RunAgentError> {
        let Some(before) = self.tree_before() else { return Ok(()) };
        let (worktree, run_id) = (worktree.clone(), self.job.run_id.clone());
        tasks::blocking(move || -> Result<(), GitError> {
            if worktree.settled_tree_id()? != before {
                worktree.snapshot_lost(&run_id, Timestamp::new(clock::now()))?;
                worktree.reset_to(before)?;
            }
            Ok(())
        })
        .await??;
        Ok(())
    }

    /// What the worktree holds, and what of that is new.
    async fn changed(&self, worktree: &Worktree) -> Result<WorktreeChange, RunAgentError> {
        let Some(before) = self.tree_before() else { return Ok((None, Vec::new())) };
        let worktree = worktree.clone();
        let (tree, paths) = tasks::blocking(move || worktree.changed_since(before)).await??;
        Ok((Some(tree), paths))
    }

    /// Waits a while where a full disk was in the way, and says whether it was. The room is told once.
    async fn waited_for_room(
        &self,
        worktree: &Worktree,
        error: &RunAgentError,
        is_told: &mut bool,
    ) -> bool {
        let Some(path) = full_disk::full_path(error, || worktree.path()) else { return false };
        tracing::error!(path = %path.display(), "the disk is full; the run waits for room");
        let tell_and_wait = async {
            if !std::mem::replace(is_told, true) {
                let full = RunCall::DiskFull { path: path.display().to_string() };
                self.worker.say_for(&self.job.run_id, full).await;
            }
            tokio::time::sleep(full_disk::LOOK_AGAIN).await;
        };
        tokio::select! {
            () = self.cancel.cancelled() => false,
            () = tell_and_wait => true,
        }
    }

    /// What came of the run, with the facts from git.
    async fn report(
        &self,
        worktree: &Worktree,
        outcome: AgentOutcome,
    ) -> Result<AgentEnd, RunAgentError> {
        let (job, mut outcome) = (&self.job, outcome);
        // Before anything makes room.
        let full = met_full_disk(&outcome.outcome, [&worktree.path(), self.spool.folder()])
            .map(|path| format!("no room was left on the disk of {}", path.display()));
        let mut is_told = false;
        let (tree, changed) = loop {
            match self.changed(worktree).await {
                Err(RunAgentError::Git(
                    error @ (GitError::InsideSubmodule { .. }
                    | GitError::SubmoduleList { .. }
                    | GitError::NestedRepository { .. }
                    | GitError::FileTooLarge { .. }
                    | GitError::NotTaken { .. }),
                )) => {
                    outcome.outcome = RunOutcome::failed(FailKind::Other, error.to_string());
                    break (None, Vec::new());
                }
                Err(error) if self.waited_for_room(worktree, &error, &mut is_told).await => {}
                changed => break changed?,
            }
        };
        if !job.may_write && !changed.is_empty() {
            let paths: Vec<_> = changed.iter().take(5).map(|path| path.path.as_str()).collect();
            let message = format!("{} may not write, and wrote {}", job.role, paths.join(", "));
            outcome.outcome = RunOutcome::failed(FailKind::WroteFiles, message);
        }
        if let Some(message) = full {
            outcome.outcome = RunOutcome::failed(FailKind::NoSpace, message);
        }
        let work = match &mut outcome.outcome {
            RunOutcome::Failed { .. } => loop {
                match self.keep_aside(worktree).await {
                    Err(error) if self.waited_for_room(worktree, &error, &mut is_told).await => {}
                    kept => {
                        kept?;
                        break None;
                    }
                }
            },
            RunOutcome::Result(result) => {
                Arc::make_mut(result).request_id = job.request_id.to_string();
                let base = worktree.base().to_string();
                let tree = tree.filter(|_| job.may_write);
                tree.map(|tree| ReportedWork { tree: tree.to_string(), base })
            }
        };
        plug::point(Point::AfterEffect);
        let took = Timestamp::new(clock::now()).millis() - job.started_at.millis();
        Ok(AgentEnd::Report(Box::new(RunReport {
            run_id: job.run_id.clone(),
            request_id: job.request_id.clone(),
            role: job.role,
            step: job.step,
            generation: job.generation,
            outcome: outcome.outcome,
            changed_paths: changed,
            work,
            documents_present: Vec::new(),
            usage: outcome.usage,
            session_id: outcome.session_id,
            duration_ms: u64::try_from(took).unwrap_or(0),
            repairs: outcome.repairs,
            dropped_bytes: outcome.dropped_bytes,
            isolation: Some(self.isolation().await),
            agent: outcome.agent,
            agent_kind: job.agent_kind,
            model: job.model.clone(),
            heard: job.in_prompt.iter().copied().chain(outcome.heard).collect(),
            conversation: Conversation {
                fill: outcome.fill,
                handed_over: outcome.handed_over,
                prompt_cut: outcome.prompt_cut,
                command: job.run.agent.command(),
            },
        })))
    }
}

/// The folder whose full disk kept an agent from what it was to do, by what it said of it.
fn met_full_disk<'a>(outcome: &RunOutcome, folders: [&'a Path; 2]) -> Option<&'a Path> {
    let met = match outcome {
        RunOutcome::Failed { message, answer, .. } => {
            let beginning = answer.as_ref().map(|answer| answer.beginning.as_str());
            full_disk::says_full(message) || beginning.is_some_and(full_disk::says_full)
        }
        RunOutcome::Result(result) => {
            let said = [&result.summary, &result.error];
            result.is_negative() && said.iter().any(|said| full_disk::says_full(said))
        }
    };
    folders.into_iter().find(|folder| met && full_disk::is_nearly_full(folder))
}

/// Ends a run that has spent what it may by what its agent tells. With a login no call to a model comes by the proxy.
async fn hold_to_budget(
    proxy: Option<&ModelProxy>,
    mut used: watch::Receiver<Usage>,
    over_budget: &CancellationToken,
) -> Infallible {
    while used.changed().await.is_ok() {
        let used = *used.borrow_and_update();
        if proxy.is_some_and(|proxy| proxy.tell(used)) {
            over_budget.cancel();
        }
    }
    std::future::pending().await
}

/// The outcome with what the proxy counted.
fn completed(proxy: Option<ModelProxy>, outcome: AgentOutcome) -> AgentOutcome {
    match proxy {
        Some(proxy) => proxy.complete(outcome),
        None => outcome,
    }
}
