//! The effect executor: commit, checks, merge, rebase, actions, release. Each is planned by a decision,
//! durably started with what a restart needs to know, done so that doing it again gives the same, and
//! finished by the decision that uses its outcome.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::assignment;
use super::busy::Busy;
use super::busy_git;
use super::checks;
use super::effect_error::EffectError;
use super::full_disk::DiskWait;
use super::prompts;
use super::proofs;
use super::sprint_effects;
use super::task;
use super::team::{Team, now};
use crate::domain::config::Commits;
use crate::domain::conflict::Conflict;
use crate::domain::criterion::Criterion;
use crate::domain::effect::{Effect, EffectKind, EffectOutcome, EffectState, LandingNotes};
use crate::domain::event::Event;
use crate::domain::evidence::Candidate;
use crate::domain::ids::{EffectId, OperationId, RequestId};
use crate::domain::request::{Car, RequestStatus};
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::engine::Answer;
use crate::git::{
    self, CheckedOut, CommitId, CommitRules, EnvironmentStore, GitError, MergeOutcome,
    MessageParts, PlannedCommit, PlannedMerge, Rebased, Worktree,
};
use crate::platform::plug::{self, Point};
use crate::platform::redact::redact;
use crate::platform::supervise::{self, EndedBy, RunFolderState, Spec};
use crate::platform::{files, full_disk, tasks};
use crate::store;
use crate::worker::RUNS;

/// Bytes of an action's log that people are shown.
const LOG_TAIL: usize = 3_000;

/// How long the files of a checkout are tried, once the branch has the commit and a git command is in the way of them.
const FILES_WAIT: Duration = Duration::from_secs(60);

/// Lines and characters of a difference that a card shows.
const EXCERPT_LINES: usize = 40;
const EXCERPT: usize = 1_200;

/// Does what is planned until the team closes.
pub(super) async fn execute(team: Arc<Team>) {
    let (busy, changing): (Busy<EffectId>, Busy<RequestId>) = (Busy::default(), Busy::default());
    while !team.closing.is_cancelled() {
        let next = team.hub.read(|state| {
            let (taken, changing) = (busy.keys(), changing.keys());
            let mut free = state.effects.values().filter(|it| !taken.contains(&it.effect_id));
            // One that was called off may still be at its end.
            let ends = |id: &RequestId| changing.contains(id);
            free.find(|it| !it.kind.request_id().is_some_and(ends) && may_begin(state, it)).cloned()
        });
        let Some(effect) = next else {
            tokio::select! {
                () = team.closing.cancelled() => return,
                () = team.signals.effects.notified() => {}
            }
            continue;
        };
        let signals = Arc::clone(&team.signals);
        let change = effect.kind.change_of().map(|id| changing.mark(id.clone(), || {}));
        let mark = busy.mark(effect.effect_id.clone(), move || signals.effects.notify_one());
        let team = Arc::clone(&team);
        tasks::spawn("effect", async move {
            let _marks = (change, mark);
            // It is there before the effect is durably begun: whatever ends its request later finds it.
            let stop = team.signals.stop_of_effect(&effect.effect_id);
            let outcome = match carried_out(&team, effect.clone(), &stop.token).await {
                Ok(outcome) => Some(outcome),
                Err(EffectError::Unwanted | EffectError::Hub(_)) => None,
                // Whoever called it off waits for no outcome.
                Err(_) if stop.token.is_cancelled() && is_gone(&team, &effect) => None,
                Err(trouble) => {
                    tracing::warn!(effect = effect.kind.name(), %trouble, "an effect failed");
                    Some(EffectOutcome::failed(redact(&trouble.to_string()).into_owned()))
                }
            };
            if let Some(outcome) = outcome {
                plug::point(Point::AfterEffect);
                let effect_id = effect.effect_id.clone();
                let done = Event::EffectFinished { effect_id, outcome: Box::new(outcome) };
                // A closed hub means that the next start finishes it.
                let _ = team.insist(done).await;
            }
        });
    }
}

fn is_gone(team: &Team, effect: &Effect) -> bool {
    team.hub.read(|state| !state.effects.contains_key(&effect.effect_id))
}

/// A worktree is given back last: after its agent has ended, and after whatever else the runtime does
/// in it. The end of either rings the bell again.
fn may_begin(state: &State, effect: &Effect) -> bool {
    let EffectKind::Release { request_id } = &effect.kind else { return true };
    !is_worked_in(state, request_id)
}

/// Whether an agent or the runtime is at work in the worktree of a request.
pub(super) fn is_worked_in(state: &State, id: &RequestId) -> bool {
    state.runs.values().any(|run| run.request_id == *id)
        || state.effects.values().any(|effect| effect.kind.change_of() == Some(id))
}

/// Carries an effect out, as often as a disk turns out to be full or a person's git command is in the way.
async fn carried_out(
    team: &Arc<Team>,
    mut effect: Arc<Effect>,
    stop: &CancellationToken,
) -> Result<EffectOutcome, EffectError> {
    let (mut waiting, mut for_git) = (DiskWait::default(), busy_git::GitWait::default());
    loop {
        let trouble = match perform(team, &effect, stop).await {
            Err(trouble) => trouble,
            done @ Ok(_) => return done,
        };
        // What an action did before it met that is not known.
        let is_repeatable = !matches!(effect.kind, EffectKind::Action { .. });
        if is_repeatable && team.closing.is_cancelled() {
            // It stays begun, and the next start goes on with it.
            return Err(EffectError::Unwanted);
        }
        let request = effect.kind.request_id();
        if busy_git::is_withdrawn(team, &effect.kind, &trouble) {
            let project = team.project.clone();
            let head = tasks::blocking(move || project.head()).await??;
            // Whoever is left is composed anew.
            return Ok(EffectOutcome::BranchMoved { head: head.to_string() });
        }
        let waited = is_repeatable
            && (for_git.was_for_git(team, &effect.kind, &trouble, stop).await
                || waiting.was_for_room(team, request, &trouble, stop).await);
        if !waited {
            let Some(whose) = busy_git::gave_up(team, &effect.kind, &trouble) else {
                return Err(trouble);
            };
            let message = redact(&trouble.to_string()).into_owned();
            return Ok(EffectOutcome::Failed { message, request_id: Some(whose) });
        }
        if team.closing.is_cancelled() {
            return Err(EffectError::Unwanted);
        }
        // With what the try before has noted.
        let now = team.hub.read(|state| state.effects.get(&effect.effect_id).cloned());
        effect = now.ok_or(EffectError::Unwanted)?;
    }
}

async fn perform(
    team: &Arc<Team>,
    effect: &Effect,
    stop: &CancellationToken,
) -> Result<EffectOutcome, EffectError> {
    match &effect.kind {
        EffectKind::Commit { request_id, title } => {
            // Whether the commit is to be proven, and by what, is decided next.
            checks::refresh(team).await;
            commit(team, effect, request_id, title).await
        }
        EffectKind::Checks { request_id, commit, how } => {
            begin(team, effect, &Value::Null).await?;
            let commit = commit.parse()?;
            match proofs::prove(team, request_id, (commit, *how), stop).await {
                Err(EffectError::Git(GitError::PreparationAsked(question))) => {
                    Ok(EffectOutcome::PreparationAsked(*question))
                }
                proven => Ok(EffectOutcome::Checked(proven?)),
            }
        }
        EffectKind::UseChecks { shown, .. } => {
            begin(team, effect, &Value::Null).await?;
            checks::configure(team, shown.clone()).await?;
            Ok(EffectOutcome::ChecksChanged)
        }
        EffectKind::Base { request_id, .. } => {
            begin(team, effect, &Value::Null).await?;
            Ok(EffectOutcome::BaseProven(proofs::base(team, request_id, stop).await?))
        }
        EffectKind::Merge { request_id, .. } => {
            if !is_landing(team, effect).await? && checks::proof_is_old(team, request_id).await? {
                return Ok(EffectOutcome::ChecksChanged);
            }
            merge(team, effect).await
        }
        EffectKind::Rebase { request_id, onto, .. } => {
            begin(team, effect, &Value::Null).await?;
            checks::refresh(team).await;
            rebase(team, request_id, onto.as_ref()).await
        }
        EffectKind::Action { operation_id, .. } => {
            begin(team, effect, &Value::Null).await?;
            action(team, effect, operation_id, stop).await
        }
        EffectKind::Release { request_id } => {
            begin(team, effect, &Value::Null).await?;
            release(team, request_id).await
        }
        EffectKind::Baseline { sprint_id }
        | EffectKind::Inspect { sprint_id }
        | EffectKind::Archive { sprint_id }
        | EffectKind::Publish { sprint_id } => {
            begin(team, effect, &Value::Null).await?;
            sprint_effects::perform(team, &effect.kind, sprint_id).await
        }
        EffectKind::Discover { watermarks } => {
            begin(team, effect, &Value::Null).await?;
            sprint_effects::discover(team, watermarks).await
        }
    }
}

/// Makes it durable that the world is about to be touched, and how.
pub(super) async fn begin(
    team: &Team,
    effect: &Effect,
    plan: &impl Serialize,
) -> Result<(), EffectError> {
    let pre_state = serde_json::to_value(plan)?;
    let started = Event::EffectStarting { effect_id: effect.effect_id.clone(), pre_state };
    match team.insist(started).await? {
        Answer::Accepted => Ok(()),
        Answer::Ignored(_) | Answer::Say(_) | Answer::Refused(_) => Err(EffectError::Unwanted),
    }
}

/// The plan of an earlier start, where one got that far.
pub(super) fn begun<T: DeserializeOwned>(effect: &Effect) -> Result<Option<T>, EffectError> {
    match &effect.state {
        EffectState::Planned => Ok(None),
        EffectState::Started { pre_state, .. } if pre_state.is_null() => Ok(None),
        EffectState::Started { pre_state, .. } => {
            Ok(Some(serde_json::from_value(pre_state.clone())?))
        }
    }
}

pub(super) async fn worktree(team: &Arc<Team>, id: &RequestId) -> Result<Worktree, EffectError> {
    let (project, id, root) = (team.project.clone(), id.clone(), team.worktrees());
    Ok(tasks::blocking(move || project.worktree(&id, &root)).await??)
}

async fn commit(
    team: &Arc<Team>,
    effect: &Effect,
    id: &RequestId,
    title: &str,
) -> Result<EffectOutcome, EffectError> {
    let one = team.git.lock().await;
    let worktree = worktree(team, id).await?;
    let plan: PlannedCommit = match begun(effect)? {
        Some(plan) => plan,
        None => {
            let request = Arc::unwrap_or_clone(team.request(id).ok_or(EffectError::Gone)?);
            let (conflict, reported) = (request.work.conflict, request.work.reported);
            let parts = MessageParts {
                sprint: request.sprint_id,
                todo: request.todo_id,
                backlog: request.backlog_id,
                request: Some(id.clone()),
                title: title.to_owned(),
                trailers: trailers(&team.workspace.runtime.commits),
                ..MessageParts::default()
            };
            let config = &team.workspace.runtime;
            let rules = CommitRules {
                name: config.commits.name.to_string(),
                email: config.commits.email.to_string(),
                sign: config.commits.sign,
                zone: config.sprint.timezone.0,
                forbidden: team.workspace_inside(),
            };
            let (tree, base) = (worktree.clone(), worktree.base().to_string());
            let plan = move || git::plan_commit(&tree, reported.as_ref(), &parts, &rules, now());
            let planned = tasks::blocking(plan).await??;
            let Some(plan) = planned else {
                begin(team, effect, &Value::Null).await?;
                return Ok(EffectOutcome::NothingChanged { base });
            };
            if let Some(conflict) = conflict {
                let (project, tree) = (team.project.clone(), plan.tree);
                let (base, paths) = (plan.base, plan.paths.clone());
                let solution = request.work.candidate.map(|it| it.paths).unwrap_or_default();
                let look = move || -> Result<_, GitError> {
                    let unsolved = git::conflict::unsolved(&project, &conflict, tree)?;
                    Ok((
                        unsolved,
                        git::conflict::beyond(&project, &conflict, (base, &paths), &solution)?,
                    ))
                };
                let (unsolved, beyond) = tasks::blocking(look).await??;
                if !unsolved.is_empty() {
                    begin(team, effect, &Value::Null).await?;
                    return Ok(EffectOutcome::Unsolved { paths: unsolved });
                }
                if !beyond.is_empty() {
                    begin(team, effect, &Value::Null).await?;
                    return Ok(EffectOutcome::BeyondConflict { paths: beyond });
                }
            }
            begin(team, effect, &plan).await?;
            plan
        }
    };
    let candidate = tasks::blocking(move || git::apply_commit(&worktree, &plan)).await??;
    drop(one);
    Ok(EffectOutcome::Committed(for_deciders(team, id, candidate).await?))
}

/// Lines that the configuration wants at the end of each message.
fn trailers(commits: &Commits) -> Vec<String> {
    commits.trailers.iter().map(|(name, text)| format!("{name}: {text}")).collect()
}

/// With the beginning of its difference and what else they have to see, for people who decide about it.
async fn for_deciders(
    team: &Arc<Team>,
    id: &RequestId,
    candidate: Candidate,
) -> Result<Candidate, EffectError> {
    let (team, project) = (Arc::clone(team), team.project.clone());
    let conflicts_since = team.request(id).and_then(|request| request.work.conflicts_since.clone());
    tasks::blocking(move || {
        let excerpt = git::diff_excerpt(&project, &candidate, EXCERPT_LINES)?;
        let excerpt = excerpt.chars().take(EXCERPT).collect();
        let mut marks = git::content_marks(&project, &candidate)?;
        if let Some(since) = conflicts_since {
            // What somebody has amended since is another commit, whatever its message says.
            let is_of_team = |request: &RequestId, commit: &str| {
                let request = team
                    .request(request)
                    .map(Arc::unwrap_or_clone)
                    .or_else(|| store::read_request(team.root(), request).ok().flatten());
                request.is_some_and(|it| it.outcome.commit_sha.as_deref() == Some(commit))
            };
            marks.extend(git::overwritten(&project, since.parse()?, &candidate, is_of_team)?);
        }
        Ok(Candidate { excerpt, marks, ..candidate })
    })
    .await?
}

/// Whether a merge has come so far that it is brought to its end, by whatever checks.
async fn is_landing(team: &Arc<Team>, effect: &Effect) -> Result<bool, EffectError> {
    let Some(plan) = begun::<PlannedMerge>(effect)? else { return Ok(false) };
    let project = team.project.clone();
    Ok(tasks::blocking(move || git::is_landing(&project, &plan)).await??)
}

async fn merge(team: &Arc<Team>, effect: &Effect) -> Result<EffectOutcome, EffectError> {
    let _one = team.git.lock().await;
    let lands = effect.kind.lands();
    let cars: Result<Vec<Candidate>, _> =
        lands.iter().map(|car| candidate(team, &car.request_id)).collect();
    let (project, cars) = (team.project.clone(), cars?);
    let plan: PlannedMerge = match begun(effect)? {
        Some(plan) => plan,
        None => {
            let (planning, cars) = (project.clone(), cars.clone());
            let planned = tasks::blocking(move || {
                git::plan_merge(&planning, &cars).map_err(|error| {
                    let fits = |most: &usize| git::plan_merge(&planning, &cars[..*most]).is_ok();
                    (error, (1..cars.len()).take_while(fits).count())
                })
            });
            let plan = match planned.await? {
                Ok(plan) => plan,
                // Those before it land without it.
                Err((error, at)) => {
                    tracing::warn!(%error, "a change cannot be brought to the branch");
                    return Ok(EffectOutcome::Failed {
                        message: redact(&error.to_string()).into_owned(),
                        request_id: lands.get(at).map(|car| car.request_id.clone()),
                    });
                }
            };
            begin(team, effect, &plan).await?;
            plan
        }
    };
    let commit = plan.new.to_string();
    let (outcome, behind) = land(team, plan).await?;
    let lost = match outcome {
        MergeOutcome::Merged { .. } => {
            tasks::blocking(move || git::verify_landed(&project, &cars).err()).await?
        }
        MergeOutcome::BranchMoved { .. } | MergeOutcome::PersonEdits { .. } => None,
    };
    if let Some(error) = &lost {
        tracing::error!(%error, "the branch has not all that has landed");
    }
    // What has landed has landed, whatever is checked out.
    let elsewhere = elsewhere(team).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "what is checked out in the project cannot be read");
        None
    });
    let lost = lost.map(|error| redact(&error.to_string()).into_owned());
    let kept = match &outcome {
        MergeOutcome::Merged { kept } => kept.clone(),
        MergeOutcome::BranchMoved { .. } | MergeOutcome::PersonEdits { .. } => Vec::new(),
    };
    let notes = LandingNotes { behind, kept, elsewhere, lost };
    Ok(match outcome {
        MergeOutcome::Merged { .. } => EffectOutcome::Merged { commit, notes },
        MergeOutcome::BranchMoved { head } => EffectOutcome::BranchMoved { head: head.to_string() },
        MergeOutcome::PersonEdits { paths } => EffectOutcome::PersonEdits { paths },
    })
}

/// Brings the planned commit to the branch, and says what of it the checkout does not have, where it is so. Once the branch
/// was moved, that is what counts: what is in the way of the files is waited for a while.
async fn land(
    team: &Arc<Team>,
    plan: PlannedMerge,
) -> Result<(MergeOutcome, Option<String>), EffectError> {
    let until = tokio::time::Instant::now() + FILES_WAIT;
    loop {
        let (project, plan) = (team.project.clone(), plan.clone());
        let landing = move || -> Result<_, GitError> {
            match git::apply_merge(&project, &plan) {
                Err(error) if git::has_landed(&project, &plan)? => Ok(Err(error)),
                done => done.map(Ok),
            }
        };
        let error = match tasks::blocking(landing).await?? {
            Ok(outcome) => return Ok((outcome, None)),
            Err(error) => error,
        };
        // A merge or rebase of theirs may take long, and others wait for this.
        let passes = busy_git::in_the_way(&error).is_some_and(|(_, is_lock)| is_lock);
        if passes && tokio::time::Instant::now() < until {
            tokio::select! {
                // It stays begun, and the next start goes on with it.
                () = team.closing.cancelled() => return Err(EffectError::Unwanted),
                () = tokio::time::sleep(busy_git::LOOK) => continue,
            }
        }
        if full_disk::full_path(&error, || team.project.path().to_owned()).is_some() {
            // It stays begun, and goes on where there is room.
            return Err(error.into());
        }
        tracing::warn!(%error, "the branch has the commit, and its checkout not all of the files");
        return Ok((MergeOutcome::Merged { kept: Vec::new() }, Some(error.to_string())));
    }
}

/// Tells once that a person has something else than the branch checked out in the project.
async fn elsewhere(team: &Arc<Team>) -> Result<Option<String>, EffectError> {
    let project = team.project.clone();
    let now = tasks::blocking(move || project.checked_out()).await??;
    let mut told = team.elsewhere.lock().await;
    let other = match now {
        CheckedOut::Branch(branch) if branch == team.project.branch() => None,
        CheckedOut::Branch(branch) => Some(branch),
        CheckedOut::Commit(commit) => Some(commit.to_string().chars().take(10).collect()),
    };
    let is_new = *told != other;
    told.clone_from(&other);
    Ok(other.filter(|_| is_new))
}

fn candidate(team: &Team, id: &RequestId) -> Result<Candidate, EffectError> {
    let request = team.request(id).ok_or(EffectError::Gone)?;
    request.work.candidate.clone().ok_or(EffectError::NoCandidate)
}

/// Puts the candidate onto the change before it in the train, else onto the branch's head.
async fn rebase(
    team: &Arc<Team>,
    id: &RequestId,
    onto: Option<&Car>,
) -> Result<EffectOutcome, EffectError> {
    let one = team.git.lock().await;
    let onto: Option<CommitId> = onto.map(|car| car.commit.parse()).transpose()?;
    let candidate = candidate(team, id)?;
    let (project, request, root) = (team.project.clone(), id.clone(), team.worktrees());
    let rebased = tasks::blocking(move || {
        let place = (&request, root.as_path());
        let Some(onto) = onto else {
            let head = project.head()?;
            return Ok((head, git::rebase::rebase(&project, place, &candidate, head)?));
        };
        Ok::<_, GitError>((onto, git::rebase::compose(&project, place, &candidate, onto)?))
    })
    .await??;
    drop(one);
    plug::point(Point::AfterRebase);
    let (head, rebased) = rebased;
    Ok(match rebased {
        Rebased::Moved(candidate) => {
            EffectOutcome::Rebased(for_deciders(team, id, candidate).await?)
        }
        Rebased::NothingLeft => EffectOutcome::AlreadyOnBranch { head: head.to_string() },
        Rebased::Clash => EffectOutcome::Clash,
        Rebased::Conflict(conflict) => {
            let criteria = criteria_of_others(team, conflict.clone()).await?;
            EffectOutcome::Conflict(Conflict { criteria, ..conflict })
        }
    })
}

/// What the requests on the other side of a conflict are held against.
async fn criteria_of_others(
    team: &Arc<Team>,
    conflict: Conflict,
) -> Result<Vec<Criterion>, EffectError> {
    let team = Arc::clone(team);
    tasks::blocking(move || {
        let mut criteria = Vec::new();
        for commit in git::conflict::sides(&team.project, &conflict, 0)?.commits {
            let Some(id) = commit.request else { continue };
            let Some(other) = store::read_request(team.root(), &id)? else { continue };
            criteria.extend(team.hub.read(|state| assignment::criteria(state, &other)));
        }
        Ok(criteria)
    })
    .await?
}

/// Runs a registered action under the supervisor, in the workspace, with its output in its log.
async fn action(
    team: &Arc<Team>,
    effect: &Effect,
    id: &OperationId,
    stop: &CancellationToken,
) -> Result<EffectOutcome, EffectError> {
    let Some(operation) = team.hub.read(|state| state.operations.get(id).cloned()) else {
        return Ok(EffectOutcome::failed("its record is gone; whether it ran is not known"));
    };
    let log = team.root().join(&operation.log_file);
    if let Some(folder) = log.parent() {
        files::create_dir_all(folder)?;
    }
    let dir = team.workspace.state_dir().join("operations").join(format!("{id}.run"));
    // An action is not repeatable by nature: one that an earlier start began is not begun again.
    if effect.attempts > 0 {
        let ended = match supervise::adopt(&dir)? {
            // Its supervisor ends it, as the team before is gone.
            RunFolderState::Running(ending) => ending.wait().await.ok(),
            RunFolderState::Finished(exit) => Some(exit),
            RunFolderState::Never => None,
        };
        let log_tail = tasks::blocking(move || keep_log(&dir, &log)).await?;
        return Ok(match ended.filter(|exit| exit.ended_by != EndedBy::ParentGone) {
            Some(exit) => EffectOutcome::ActionEnded { exit_code: exit.code, log_tail },
            None => EffectOutcome::failed(
                "the team was restarted while it ran; whether it finished is not known",
            ),
        });
    }
    let Some((program, args)) = operation.command.split_first() else {
        return Ok(EffectOutcome::failed("the command is empty"));
    };
    let mut spec = Spec::new(program, team.root());
    spec.args = args.to_vec();
    for name in ["PATH", "HOME", "LANG"] {
        if let Some(value) = team.workspace.environment.get(name) {
            spec.env.insert(name.to_owned(), value);
        }
    }
    let hour = 60 * 60 * 1_000;
    spec.wall_ms = operation.foreground.then_some(hour);
    let exit = supervise::run_until(&spec, &dir, stop.cancelled()).await?;
    let log_tail = tasks::blocking(move || keep_log(&dir, &log)).await?;
    Ok(EffectOutcome::ActionEnded { exit_code: exit.code, log_tail })
}

/// Puts what an action printed into its log, without secrets, once, and returns the end of it. Blocks: it may be much.
/// How it ended stays in its folder for a day: what is told of it may be lost with the team. Where the log cannot be
/// kept, that is its last line: how the action ended is known all the same.
fn keep_log(dir: &Path, log: &Path) -> String {
    let [out, err] = [supervise::STDOUT_SPOOL, supervise::STDERR_SPOOL].map(|name| dir.join(name));
    let printed = || -> files::Result<String> {
        let mut text = files::read(&out)?;
        if files::exists(&err) {
            text.extend(files::read(&err)?);
        }
        Ok(redact(&String::from_utf8_lossy(&text)).into_owned())
    };
    let keep = || -> files::Result<String> {
        if files::exists(&out) {
            files::write_durable(log, printed()?.as_bytes())?;
            files::remove_file(&out)?;
        }
        files::remove_file(&err)?;
        Ok(files::read_text_if_present(log)?.unwrap_or_default())
    };
    let text = keep().unwrap_or_else(|error| {
        tracing::warn!(%error, "the log of an action was not kept");
        format!("{}\n({error})", printed().unwrap_or_default().trim_end())
    });
    let from = text.len().saturating_sub(LOG_TAIL);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[from..].to_owned()
}

/// Gives back what an ended request held: its worktree, its roles' conversations, the folders of its
/// runs and checks. Repeating it is fine.
pub(super) async fn release(
    team: &Arc<Team>,
    id: &RequestId,
) -> Result<EffectOutcome, EffectError> {
    let _one = team.git.lock().await;
    let (project, root, request) = (team.project.clone(), team.worktrees(), id.clone());
    let state = team.workspace.state_dir();
    // A restart may find checks of the team before it still ending.
    git::checks::end_earlier(&checks::scratch(team, id)).await?;
    let mut folders: Vec<_> =
        Role::ALL.iter().map(|role| task::session_dir(team, *role, id)).collect();
    folders.extend(["checks", RUNS].map(|folder| state.join(folder).join(id.as_str())));
    let environments = EnvironmentStore::at(&checks::environments(team.root()));
    let has_landed = team.request(id).is_some_and(|it| it.status == RequestStatus::Committed);
    tasks::blocking(move || -> Result<(), EffectError> {
        project.release(&request, &root)?;
        environments.settle(request.as_str(), has_landed)?;
        // Nobody's work waits for it.
        if let Err(error) = prompts::keep(&state, &request) {
            tracing::warn!(%request, %error, "what its agents were told is not kept");
        }
        for folder in folders {
            files::remove_dir_all(&folder)?;
        }
        Ok(())
    })
    .await??;
    team.signals.ended.notify_one();
    Ok(EffectOutcome::Released)
}
