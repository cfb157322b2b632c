//! The checks as they are configured at the moment: `team_runtime.yaml` is read again before each run of
//! them and before each merge, so that an edit counts without a restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::effect_error::EffectError;
use super::task;
use super::team::Team;
use crate::domain::check_proposal::CheckProposal;
use crate::domain::config::{Check, EnvName, Prepare, RuntimeConfig};
use crate::domain::evidence::{Evidence, UsedEnvironment};
use crate::domain::ids::RequestId;
use crate::domain::record::RUNTIME;
use crate::domain::run::Run;
use crate::git::{
    self, CheckPlan, CheckSpec, CommitId, Consent, GitError, PreparationOwner, PrepareSpec,
};
use crate::onboarding::proposals;
use crate::platform::{confinement, files, redact, tasks};
use crate::worker::JobEnvironments;
use crate::workspace::settings::{self, ConfigFile};
use crate::workspace::{self, Environment};

/// What the configuration of the workspace at `root` says about checks, as the git room runs them.
#[must_use]
pub fn check_plan(root: &Path, runtime: &RuntimeConfig, environment: &Environment) -> CheckPlan {
    CheckPlan {
        checks: runtime.checks.iter().map(check_spec).collect(),
        prepare: runtime.prepare.iter().map(|it| prepare_spec(it, environment)).collect(),
        environments: environments(root),
        carry: runtime.carry.iter().map(|folder| PathBuf::from(folder.as_str())).collect(),
        tools: runtime.sandbox.readable.clone(),
        hidden: vec![root.to_owned()],
        trees: root.join(RUNTIME).join("trees"),
        allow_unisolated: runtime.allow_unisolated_checks,
        digest: workspace::checks_digest(runtime),
    }
}

fn check_spec(check: &Check) -> CheckSpec {
    CheckSpec {
        name: check.name.clone(),
        command: check.command.as_slice().to_vec(),
        timeout: Duration::from_secs(check.timeout_seconds.get()),
        output_limit: check.output_limit_kb.get() * 1_024,
        env: check.env.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        read: check.read.iter().map(|path| PathBuf::from(path.as_str())).collect(),
        report: check.report.as_ref().map(|report| PathBuf::from(report.path())),
        network: check.network,
    }
}

fn prepare_spec(prepare: &Prepare, environment: &Environment) -> PrepareSpec {
    let secret = |name: &EnvName| {
        let value = environment.get(name.as_str())?;
        redact::register(&value);
        Some((name.to_string(), SecretString::from(value)))
    };
    PrepareSpec {
        name: prepare.name.clone(),
        command: prepare.command.as_slice().to_vec(),
        files: prepare.files.iter().map(|path| PathBuf::from(path.as_str())).collect(),
        timeout: Duration::from_secs(prepare.timeout_seconds.get()),
        env: prepare.env.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        secrets: prepare.secrets.iter().filter_map(secret).collect(),
        read: prepare.read.iter().map(|path| PathBuf::from(path.as_str())).collect(),
        network: prepare.network,
    }
}

/// Where the prepared environments of a workspace are kept.
#[must_use]
pub fn environments(root: &Path) -> PathBuf {
    root.join(RUNTIME).join("environments")
}

/// The plan that is in force now; the engine knows it from here on.
///
/// # Errors
/// Where the file cannot be read or is wrong, with its line: nothing is proven by what it said before.
pub(super) async fn in_force(team: &Arc<Team>) -> Result<CheckPlan, EffectError> {
    let reading = Arc::clone(team);
    let (plan, gates) = tasks::blocking(move || {
        let runtime = workspace::read_runtime(reading.root())?;
        let gates = reading.workspace.gates(&runtime);
        let plan = check_plan(reading.root(), &runtime, &reading.workspace.environment);
        Ok::<_, EffectError>((plan, gates))
    })
    .await??;
    team.hub.know_checks(&plan, gates);
    Ok(plan)
}

/// Lets the engine know the checks in force, or, where none are, those that the project shows, before a commit is decided
/// on. What cannot be read is told where checks are to run by it.
pub(super) async fn refresh(team: &Arc<Team>) {
    let has_checks = match in_force(team).await {
        Ok(plan) => !plan.checks.is_empty(),
        Err(trouble) => return tracing::warn!(%trouble, "team_runtime.yaml cannot be read again"),
    };
    let mut shown = CheckProposal::default();
    if !has_checks {
        let project = team.project.clone();
        match tasks::blocking(move || proposals::propose(&project)).await {
            Ok(Ok(found)) => shown = found,
            Ok(Err(trouble)) => tracing::debug!(%trouble, "what the project shows cannot be read"),
            Err(trouble) => tracing::debug!(%trouble, "what the project shows was not looked at"),
        }
    }
    team.hub.know_shown(shown);
}

/// Writes the checks into the configuration that a person has accepted. Where some are configured by now, these stay.
pub(super) async fn configure(
    team: &Arc<Team>,
    accepted: CheckProposal,
) -> Result<(), EffectError> {
    let root = team.root().to_owned();
    tasks::blocking(move || {
        let _alone = workspace::edit::alone(&root)?;
        let runtime = workspace::read_runtime(&root)?;
        if runtime.checks.is_empty() {
            let chosen = proposals::settings(&proposals::missing(&accepted, &runtime));
            if let Some(change) = settings::plan(&root, ConfigFile::Runtime, &chosen, None)? {
                change.write(&root)?;
            }
        }
        Ok::<_, EffectError>(())
    })
    .await??;
    in_force(team).await.map(|_| ())
}

/// Runs the checks that are configured now, for a change that grew from `trusted`.
pub(super) async fn run(
    team: &Arc<Team>,
    id: &RequestId,
    commit: CommitId,
    trusted: CommitId,
    stop: &CancellationToken,
) -> Result<Evidence, EffectError> {
    let plan = in_force(team).await?;
    let scratch = scratch(team, id);
    files::create_dir_all(&scratch)?;
    // What works here may have been installed, or allowed, since the team was started.
    let confinement = confinement::find().await;
    let agreed = team.request(id).and_then(|request| request.work.preparation.clone());
    let whose = PreparationOwner {
        trusted,
        consent: agreed.map_or(Consent::None, Consent::To),
        apart: id.to_string(),
    };
    let project = &team.project;
    // Whoever is called off does not wait for a place; an early proof leaves one to whoever waits for it.
    let slot = tokio::select! {
        biased;
        slot = team.check_slots.acquire() => slot.ok(),
        () = stop.cancelled() => None,
        never = team.signals.early.give_way() => match never {},
    };
    let ran = git::checks::run(project, commit, &plan, &confinement, &scratch, &whose, stop).await;
    drop(slot);
    team.signals.expected.notify_one();
    Ok(ran?)
}

/// Runs them at a commit that nobody has asked about yet. Whoever calls has a place for it.
pub(super) async fn run_early(
    team: &Team,
    plan: &CheckPlan,
    (commit, head): (CommitId, CommitId),
    stop: &CancellationToken,
) -> Result<Evidence, EffectError> {
    let scratch = early_scratch(team);
    files::create_dir_all(&scratch)?;
    let (confinement, whose) = (confinement::find().await, PreparationOwner::trusting(head));
    let project = &team.project;
    Ok(git::checks::run(project, commit, plan, &confinement, &scratch, &whose, stop).await?)
}

fn early_scratch(team: &Team) -> PathBuf {
    team.workspace.state_dir().join("checks").join("early")
}

/// Removes what an early proof of an earlier start left behind.
pub(super) async fn end_early(team: &Team) -> Result<(), EffectError> {
    let scratch = early_scratch(team);
    git::checks::end_earlier(&scratch).await?;
    Ok(tasks::blocking(move || files::remove_dir_all(&scratch)).await??)
}

/// What was prepared for the commit that a run's worktree grew from, and is made now where it is not there; for the change
/// of its request instead, where a person has agreed to what that asks for. Without it an agent works all the same.
pub(super) async fn environments_for(
    team: &Arc<Team>,
    run: &Run,
    stop: &CancellationToken,
) -> JobEnvironments {
    let store = environments(team.root());
    match prepared(team, run, stop).await {
        Ok(keys) => JobEnvironments { store, keys, apart: run.request_id.to_string() },
        Err(error) => {
            tracing::warn!(run = %run.run_id, %error, "an agent works without what is prepared for checks");
            JobEnvironments::default()
        }
    }
}

/// The commit by whose preparations what grew from another one is worked and proven: what that stands on in the train may
/// never land.
pub(super) async fn trusted(team: &Team, grew_from: CommitId) -> Result<CommitId, EffectError> {
    let project = team.project.clone();
    Ok(tasks::blocking(move || project.on_branch(grew_from)).await??)
}

async fn prepared(
    team: &Arc<Team>,
    run: &Run,
    stop: &CancellationToken,
) -> Result<Vec<String>, EffectError> {
    let plan = in_force(team).await?;
    if plan.prepare.is_empty() {
        return Ok(Vec::new());
    }
    let (reading, id, step) = (Arc::clone(team), run.request_id.clone(), run.step);
    let base = {
        let _one = team.git.lock().await;
        tasks::blocking(move || task::tree_for(&reading, &id, step).map(|tree| tree.base())).await?
    };
    let base = base.map_err(|error| EffectError::Worktree(error.to_string()))?;
    let base = trusted(team, base).await?;
    let confinement = confinement::find().await;
    let keys = |used: Vec<UsedEnvironment>| used.into_iter().map(|one| one.key).collect();
    if let Some((commit, agreed)) = agreed(team, &run.request_id) {
        let (consent, apart) = (Consent::To(agreed), run.request_id.to_string());
        let whose = PreparationOwner { trusted: base, consent, apart };
        let of_change =
            git::checks::prepare(&team.project, commit, &plan, &confinement, &whose, stop).await;
        match of_change {
            // It asks for something else by now.
            Err(GitError::PreparationAsked(_)) => {}
            used => return Ok(keys(used?)),
        }
    }
    let whose = PreparationOwner::trusting(base);
    let used = git::checks::prepare(&team.project, base, &plan, &confinement, &whose, stop).await?;
    Ok(keys(used))
}

/// The commit of a request, with what a person has agreed to prepare for it.
fn agreed(team: &Team, id: &RequestId) -> Option<(CommitId, String)> {
    let work = &team.request(id)?.work;
    Some((work.candidate.as_ref()?.commit.parse().ok()?, work.preparation.clone()?))
}

/// Where the checks of a request run, and leave their logs.
pub(super) fn scratch(team: &Team, id: &RequestId) -> PathBuf {
    team.workspace.state_dir().join("checks").join(id.as_str())
}

/// Whether a request rests on evidence of other checks than those that are configured now.
pub(super) async fn proof_is_old(team: &Arc<Team>, id: &RequestId) -> Result<bool, EffectError> {
    let plan = in_force(team).await?;
    let request = team.request(id).ok_or(EffectError::Gone)?;
    Ok(request.work.evidence.as_ref().is_some_and(|evidence| evidence.checks_digest != plan.digest))
}
