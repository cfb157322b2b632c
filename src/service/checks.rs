//! The checks as they are configured at the moment: `team_runtime.yaml` is read again before each run of
//! them and before each merge, so that an edit counts without a restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::effect_error::EffectError;
use super::team::Team;
use crate::domain::config::{Check, RuntimeConfig};
use crate::domain::evidence::Evidence;
use crate::domain::ids::RequestId;
use crate::domain::record::RUNTIME;
use crate::git::{self, CheckPlan, CheckSpec, CommitId};
use crate::platform::{confinement, files, tasks};
use crate::workspace;

/// What the configuration of the workspace at `root` says about checks, as the git room runs them.
#[must_use]
pub fn check_plan(root: &Path, runtime: &RuntimeConfig) -> CheckPlan {
    CheckPlan {
        checks: runtime.checks.iter().map(check_spec).collect(),
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

/// The plan that is in force now; the engine knows it from here on.
///
/// # Errors
/// Where the file cannot be read or is wrong, with its line: nothing is proven by what it said before.
pub(super) async fn in_force(team: &Arc<Team>) -> Result<CheckPlan, EffectError> {
    let reading = Arc::clone(team);
    let (plan, guarded) = tasks::blocking(move || {
        let runtime = workspace::read_runtime(reading.root())?;
        let guarded = reading.workspace.guarded(&runtime);
        Ok::<_, EffectError>((check_plan(reading.root(), &runtime), guarded))
    })
    .await??;
    team.hub.know_checks(!plan.checks.is_empty(), plan.digest.clone(), guarded);
    Ok(plan)
}

/// Runs the checks that are configured now.
pub(super) async fn run(
    team: &Arc<Team>,
    id: &RequestId,
    commit: CommitId,
    stop: &CancellationToken,
) -> Result<Evidence, EffectError> {
    let plan = in_force(team).await?;
    let scratch = scratch(team, id);
    files::create_dir_all(&scratch)?;
    // What works here may have been installed, or allowed, since the team was started.
    let confinement = confinement::find().await;
    Ok(git::checks::run(&team.project, commit, &plan, &confinement, &scratch, stop).await?)
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
