//! Role workers: each takes the next envelope of its inbox, lets an agent work it, and reports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::busy::Busy;
use super::contract::CONTRACT;
use super::doors;
use super::effects;
use super::rate_limits;
use super::run_socket;
use super::steer::WordsGiven;
use super::task;
use super::team::{Team, now, until};
use crate::agents::{self, AgentOutcome, Mailbox, RunSpec, Watch};
use crate::domain::budget::Allowance;
use crate::domain::conversation::Conversation;
use crate::domain::envelope::{Envelope, MAX_ENVELOPE_ATTEMPTS};
use crate::domain::event::Event;
use crate::domain::evidence::ChangedPath;
use crate::domain::ids::{RequestId, RunId};
use crate::domain::lifecycle::Access;
use crate::domain::role::Role;
use crate::domain::run::{Approach, FailKind, Run, RunOutcome, RunReport};
use crate::engine::Answer;
use crate::git::{GitError, TreeId, Worktree};
use crate::model_proxy::{self, ModelProxy};
use crate::platform::beneath::Folder;
use crate::platform::plug::{self, Point};
use crate::platform::{ids, tasks};
use crate::relay;
use crate::store::StoreError;

/// Where runs have their folders, in the state's folder.
pub(super) const RUNS: &str = "runs";

/// Serves one role until the team closes.
pub(super) async fn serve(team: Arc<Team>, role: Role) {
    let busy: Busy<(Role, RequestId)> = Busy::default();
    while !team.closing.is_cancelled() {
        let (next, due) = team.hub.read(|state| {
            let next = relay::ready(state, role, now(), &busy.keys());
            (next.and_then(|id| state.envelopes.get(&id).cloned()), relay::next_due(state, now()))
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
        tasks::spawn("run", async move {
            let _mark = mark;
            // The semaphore is never closed.
            let _slot = team.slots.clone().acquire_owned().await;
            if let Err(trouble) = work(&team, role, &envelope).await {
                tracing::warn!(%role, envelope = %envelope.relay_id, %trouble, "an envelope could not be worked");
                let relay_id = envelope.relay_id.clone();
                let agent_lives = !agent_ended(&team, &envelope).await;
                let reason = trouble.to_string();
                let failed = Event::EnvelopeFailed { relay_id, reason, agent_lives };
                // Without a hub there is nobody to tell; the envelope stays where it is.
                let _ = team.insist(failed).await;
            }
        });
    }
}

/// What an agent is told that was ended with the team, and that remembers what it did.
const CUT_OFF: &str = "You were cut off in the middle of this step, and it begins anew. What you had changed in the worktree \
was put back: look at what is there before you go on.";

/// Why an envelope could not be worked at all. What an agent does wrong is an outcome instead.
#[derive(Debug, thiserror::Error)]
enum WorkerError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Task(#[from] task::TaskError),
    #[error(transparent)]
    Agent(#[from] crate::agents::RunError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Hub(#[from] super::HubError),
    #[error("the work was cut off: {0}")]
    Cut(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Release(#[from] effects::EffectError),
    #[error("no id could be made: {0}")]
    Id(#[from] crate::domain::ids::IdError),
}

async fn work(team: &Arc<Team>, role: Role, envelope: &Envelope) -> Result<(), WorkerError> {
    let request_id = envelope.envelope.request_id.clone();
    let (wanted, earlier) = team.hub.read(|state| {
        let waits = state.envelopes.contains_key(&envelope.relay_id);
        let open = state.requests.get(&request_id).is_some_and(|it| !it.status.is_terminal());
        let earlier = state.runs.values().find(|run| run.envelope_id == envelope.relay_id);
        (waits.then_some(open), earlier.map(|run| Run::clone(run)))
    });
    match wanted {
        // It was put away while it waited for a free place.
        None => return Ok(()),
        Some(false) => return let_go(team, envelope, earlier).await,
        Some(true) => {}
    }
    let worktree = open_worktree(team, &request_id).await?;
    let cut_off = earlier.clone();
    let (run, adopted) = match earlier {
        Some(run) => recover(team, &worktree, run).await?,
        None => {
            let tree = worktree.clone();
            let tree = tasks::blocking(move || tree.tree_id()).await??;
            (fresh(team, envelope, Some(tree))?, None)
        }
    };
    if let Some(outcome) = adopted {
        return report(team, &worktree, &run, outcome).await;
    }
    if team.insist(Event::RunStarting(run.clone())).await? != Answer::Accepted {
        return tidy(team, &request_id).await;
    }
    // What it may spend and how it goes about it was decided just now.
    let noted = team.hub.read(|state| state.runs.get(&run.run_id).cloned());
    let run = noted.map_or(run, Arc::unwrap_or_clone);
    let outcome = start(team, role, envelope, &worktree, (&run, cut_off.as_ref())).await?;
    report(team, &worktree, &run, outcome).await
}

/// Whether no agent works on the envelope any more. On what would be its last attempt an agent that still
/// does is ended; before that it may finish, and the next attempt adopts it.
async fn agent_ended(team: &Team, envelope: &Envelope) -> bool {
    let (attempts, run) = team.hub.read(|state| {
        let attempts = state.envelopes.get(&envelope.relay_id).map_or(0, |it| it.attempts);
        let run = state.runs.values().find(|run| run.envelope_id == envelope.relay_id);
        (attempts, run.cloned())
    });
    let Some(run) = run else { return true };
    if attempts + 1 < MAX_ENVELOPE_ATTEMPTS {
        return false;
    }
    match agents::end(&run_dir(team, &run)).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(run = %run.run_id, %error, "whether its agent has ended is not known");
            false
        }
    }
}

async fn open_worktree(team: &Arc<Team>, id: &RequestId) -> Result<Worktree, WorkerError> {
    let _one = team.git.lock().await;
    let (project, id, root) = (team.project.clone(), id.clone(), team.worktrees());
    Ok(tasks::blocking(move || project.worktree(&id, &root)).await??)
}

/// The request has ended, and its envelope is still here: an agent that an earlier start left behind is
/// ended before anything of the request is given back, and the envelope put away.
async fn let_go(
    team: &Arc<Team>,
    envelope: &Envelope,
    earlier: Option<Run>,
) -> Result<(), WorkerError> {
    let run = match earlier {
        Some(run) => {
            let cancel = team.signals.stop_of(&run.run_id);
            cancel.cancel();
            let watch = Watch { cancel, ..Watch::default() };
            // Whatever it did or said is not wanted any more.
            let _ = team.driver.adopt(&run_dir(team, &run), &CONTRACT, &watch).await?;
            team.signals.forget(&run.run_id);
            run
        }
        None => fresh(team, envelope, None)?,
    };
    team.insist(Event::RunStarting(run)).await?;
    Ok(())
}

/// The request ended while its worktree was being opened: nothing of it may come back.
async fn tidy(team: &Arc<Team>, id: &RequestId) -> Result<(), WorkerError> {
    let open = team
        .hub
        .read(|state| state.requests.get(id).is_some_and(|request| !request.status.is_terminal()));
    if !open {
        effects::release(team, id).await?;
    }
    Ok(())
}

/// A run that nobody has begun.
fn fresh(team: &Team, envelope: &Envelope, tree: Option<TreeId>) -> Result<Run, WorkerError> {
    Ok(Run {
        run_id: RunId::parse(&ids::uuid_v7().to_string())?,
        request_id: envelope.envelope.request_id.clone(),
        role: envelope.target_role,
        step: envelope.step,
        envelope_id: envelope.relay_id.clone(),
        attempt: envelope.attempts + 1,
        generation: 1,
        started_at: now(),
        pre_tree: tree.map(|tree| tree.to_string()),
        agent: team.workspace.runtime.agents.of(envelope.target_role),
        approach: Approach::default(),
        allowance: Allowance::default(),
        cut_off: false,
        told_of_limit: false,
    })
}

/// A run that an earlier process began: its agent's finished output is adopted; else what it left in
/// the worktree is kept aside and the same run begins again, one generation later.
async fn recover(
    team: &Arc<Team>,
    worktree: &Worktree,
    run: Run,
) -> Result<(Run, Option<AgentOutcome>), WorkerError> {
    let watch = Watch { cancel: team.signals.stop_of(&run.run_id), ..Watch::default() };
    let _tools = run_socket::open(team, &run, run_dir(team, &run));
    let dir = run_dir(team, &run);
    let door =
        if model_proxy::is_kept(&dir) { doors::open(team, &run, dir.clone()).await } else { None };
    let found = team.driver.adopt(&dir, &CONTRACT, &watch).await?;
    if let Some(outcome) = found {
        let outcome = match door {
            Some(door) => door.complete(outcome),
            None => outcome,
        };
        tracing::info!(run = %run.run_id, "the run of an earlier start was adopted");
        return Ok((run, Some(outcome)));
    }
    keep_aside(worktree, &run).await?;
    let generation = run.generation + 1;
    Ok((Run { generation, started_at: now(), ..run }, None))
}

/// Keeps what a run without a result left behind under `refs/teams/lost/<run>`, and puts the worktree
/// back to how it was before.
async fn keep_aside(worktree: &Worktree, run: &Run) -> Result<(), WorkerError> {
    let Some(before) = run.pre_tree.as_ref().and_then(|tree| tree.parse::<TreeId>().ok()) else {
        return Ok(());
    };
    let (worktree, run_id, at) = (worktree.clone(), run.run_id.clone(), now());
    tasks::blocking(move || -> Result<(), GitError> {
        if worktree.tree_id()? != before {
            worktree.snapshot_lost(&run_id, at)?;
            worktree.reset_to(before)?;
        }
        Ok(())
    })
    .await??;
    Ok(())
}

pub(super) fn run_dir(team: &Team, run: &Run) -> PathBuf {
    let runs = team.workspace.state_dir().join(RUNS);
    runs.join(run.request_id.as_str()).join(format!("{}.{}", run.run_id, run.generation))
}

async fn start(
    team: &Arc<Team>,
    role: Role,
    envelope: &Envelope,
    worktree: &Worktree,
    (run, cut_off): (&Run, Option<&Run>),
) -> Result<AgentOutcome, WorkerError> {
    let dir = run_dir(team, run);
    let earlier = cut_off.map(|run| run_dir(team, run));
    // Looked at before the prompt is made: what comes in between may be told twice, and is never lost.
    let mut given = WordsGiven::so_far(team, run);
    team.store.settled().await?;
    let mut spec: RunSpec = {
        let (team, envelope, worktree) = (Arc::clone(team), envelope.clone(), worktree.clone());
        let run = run.clone();
        tasks::blocking(move || {
            let mut spec = task::spec(&team, &envelope, &worktree, &run, dir)?;
            if let Some(earlier) = earlier {
                go_on_from(&mut spec, &earlier);
            }
            Ok::<_, task::TaskError>(spec)
        })
        .await??
    };
    show_typing(team, envelope).await;
    let cancel = team.signals.stop_of(&run.run_id);
    let mailbox = Mailbox::default();
    let (events, heard) = mpsc::channel(rate_limits::EVENTS);
    let watch = Watch { cancel, words: mailbox.clone(), events: Some(events) };
    tracing::info!(%role, request = %run.request_id, run = %run.run_id, "an agent begins");
    let _tools = run_socket::open(team, run, run_dir(team, run));
    let door = doors::open(team, run, run_dir(team, run)).await;
    spec.surroundings.door = door.as_ref().map(|door| door.door().clone());
    let limits = door.as_ref().map(ModelProxy::rate_limits);
    let mut outcome = tokio::select! {
        outcome = team.driver.run(&spec, &CONTRACT, &watch) => outcome,
        never = given.feed(team, run, &mailbox) => match never {},
        never = rate_limits::follow(team, run, limits, heard) => match never {},
    };
    outcome.heard = given.heard(team, run, outcome.heard);
    Ok(match door {
        Some(door) => door.complete(outcome),
        None => outcome,
    })
}

/// A run that begins anew after it was cut off goes on with its conversation, where its agent can.
fn go_on_from(spec: &mut RunSpec, earlier: &Path) {
    if let Some(session) = agents::conversation(earlier, &spec.agent) {
        spec.resume = Some(session);
        spec.task.again.push(CUT_OFF.to_owned());
    }
}

async fn show_typing(team: &Team, envelope: &Envelope) {
    let id = &envelope.envelope.request_id;
    let channel = team.hub.read(|state| {
        let request = state.requests.get(id)?;
        request.room.as_ref().and_then(|room| room.thread_id).or(request.reply_route.channel_id)
    });
    if let Some(channel) = channel {
        team.link.typing(channel).await;
    }
}

/// Takes the facts of a finished run from git and hands them in.
async fn report(
    team: &Arc<Team>,
    worktree: &Worktree,
    run: &Run,
    outcome: AgentOutcome,
) -> Result<(), WorkerError> {
    let mut outcome = outcome;
    let changed = changed(worktree, run).await?;
    let may_write = task::step_of(team, run).is_some_and(|step| step.access == Access::Write);
    if !may_write && !changed.is_empty() {
        let paths: Vec<_> = changed.iter().take(5).map(|path| path.path.as_str()).collect();
        let message = format!("{} may not write, and wrote {}", run.role, paths.join(", "));
        outcome.outcome = RunOutcome::failed(FailKind::WroteFiles, message);
    }
    if let RunOutcome::Failed { .. } = &outcome.outcome {
        keep_aside(worktree, run).await?;
    }
    let documents_present = match &outcome.outcome {
        RunOutcome::Result(result) => present(team.root(), &result.artifacts),
        RunOutcome::Failed { .. } => Vec::new(),
    };
    if let RunOutcome::Result(result) = &mut outcome.outcome {
        Arc::make_mut(result).request_id = run.request_id.to_string();
    }
    plug::point(Point::AfterEffect);
    let report = RunReport {
        run_id: run.run_id.clone(),
        request_id: run.request_id.clone(),
        role: run.role,
        step: run.step,
        generation: run.generation,
        outcome: outcome.outcome,
        changed_paths: changed,
        documents_present,
        usage: outcome.usage,
        session_id: outcome.session_id,
        duration_ms: u64::try_from(now().millis() - run.started_at.millis()).unwrap_or(0),
        repairs: outcome.repairs,
        dropped_bytes: outcome.dropped_bytes,
        agent: outcome.agent,
        agent_kind: run.agent,
        model: team
            .workspace
            .choice(run.role, run.step, run.approach)
            .map(|choice| choice.model)
            .unwrap_or_default(),
        heard: outcome.heard,
        conversation: Conversation {
            fill: outcome.fill,
            handed_over: outcome.handed_over,
            prompt_cut: outcome.prompt_cut,
        },
    };
    team.signals.forget(&run.run_id);
    team.insist(Event::RunFinished(Box::new(report))).await?;
    Ok(())
}

async fn changed(worktree: &Worktree, run: &Run) -> Result<Vec<ChangedPath>, WorkerError> {
    let Some(before) = run.pre_tree.as_ref().and_then(|tree| tree.parse::<TreeId>().ok()) else {
        return Ok(Vec::new());
    };
    let worktree = worktree.clone();
    Ok(tasks::blocking(move || worktree.changed_since(before)).await??)
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
