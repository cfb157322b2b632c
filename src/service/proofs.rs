//! Proof: the checks at a change beside those at its base, told apart test by test, and the checks run by hand.
//!
//! What the checks say about a tree is kept by its key: the tree, what is configured about checks, what was prepared,
//! and the isolation. It is used again for the base of other requests, and where it is green for another commit with
//! the same tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::checks::{self, check_plan};
use super::effect_error::EffectError;
use super::proof_records::{FlakyCount, ProofRecords, TreeKey, TreeProof};
use super::team::{Team, now};
use crate::domain::comparison::{self, CheckRecord};
use crate::domain::config::CheckNetwork;
use crate::domain::effect::ProofMode;
use crate::domain::evidence::{BaseStanding, CheckVerdict, Evidence, Isolation, UsedEnvironment};
use crate::domain::ids::RequestId;
use crate::domain::test_report::TestOutcomes;
use crate::git::{
    self, CheckPlan, CheckSpec, CommitId, Consent, GitError, PreparationOwner, Project,
};
use crate::onboarding::open_project;
use crate::platform::disk::{Disk as _, FileLock, RealDisk};
use crate::platform::files::{self, FileError};
use crate::platform::{confinement, tasks};
use crate::workspace::{self, ConfigError};

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The repository, or the checks could not be run at all.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is nothing to run.
    #[error("no checks are configured in {}", .0.display())]
    NoChecks(PathBuf),
    /// There is nothing to prepare.
    #[error("nothing is configured under `prepare` in {}", .0.display())]
    NothingToPrepare(PathBuf),
    /// Somebody else runs them.
    #[error("another `teams checks run` or `teams prepare` is under way in {}", .0.display())]
    Busy(PathBuf),
    /// Blocking work broke off.
    #[error("the work broke off: {0}")]
    Cut(#[from] tokio::task::JoinError),
}

/// What the checks say, and where their logs lie until they are run by hand again.
#[derive(Debug)]
pub struct ManualRun {
    /// What would be evidence.
    pub evidence: Evidence,
    /// The folder with a log a check.
    pub logs: PathBuf,
}

/// What is needed to run checks by hand.
struct Manual {
    project: Project,
    plan: CheckPlan,
    commit: CommitId,
    whose: PreparationOwner,
    /// The folder of the runtime.
    state: PathBuf,
    /// Where they run.
    folder: PathBuf,
    /// Held as long as they run.
    _alone: Box<dyn FileLock>,
}

impl Manual {
    async fn of(
        root: &Path,
        commit: Option<String>,
        consent: Consent,
    ) -> Result<Manual, ProofError> {
        let root = root.to_owned();
        tasks::blocking(move || {
            let workspace = workspace::load(&root)?;
            let project = open_project(&workspace)?;
            let trusted = project.head()?;
            let commit = commit.map_or(Ok(trusted), |name| project.resolve(&name))?;
            let folder = workspace.state_dir().join("checks");
            files::create_dir_all(&folder)?;
            let alone = RealDisk.lock(&folder.join("by-hand.lock"))?;
            Ok(Manual {
                project,
                plan: check_plan(&root, &workspace.runtime, &workspace.environment),
                commit,
                whose: PreparationOwner { trusted, consent, apart: "by-hand".to_owned() },
                state: workspace.state_dir(),
                folder,
                _alone: alone.ok_or(ProofError::Busy(root))?,
            })
        })
        .await?
    }
}

/// Runs the checks at a commit, by default the tip of the branch, until `stop` is cancelled. `consent` is to what the
/// commit lets be prepared that the branch does not.
///
/// # Errors
/// Where they could not be run, with [`GitError::PreparationAsked`] where nobody has agreed yet; a red check is none.
pub async fn by_hand(
    root: &Path,
    commit: Option<String>,
    consent: Consent,
    stop: &CancellationToken,
) -> Result<ManualRun, ProofError> {
    let manual = Manual::of(root, commit, consent).await?;
    if manual.plan.checks.is_empty() {
        return Err(ProofError::NoChecks(root.join(workspace::RUNTIME_FILE)));
    }
    let logs = manual.folder.join("by-hand");
    files::create_dir_all(&logs)?;
    let Manual { project, plan, commit, whose, .. } = &manual;
    let confinement = confinement::find().await;
    let evidence =
        git::checks::run(project, *commit, plan, &confinement, &logs, whose, stop).await?;
    Ok(ManualRun { evidence, logs })
}

/// Prepares what checks at the tip of the branch need, anew where it is there already and `fresh` says so.
///
/// # Errors
/// Where that fails, or nothing is configured.
pub async fn prepare(
    root: &Path,
    fresh: bool,
    stop: &CancellationToken,
) -> Result<Vec<UsedEnvironment>, ProofError> {
    let manual = Manual::of(root, None, Consent::None).await?;
    if manual.plan.prepare.is_empty() {
        return Err(ProofError::NothingToPrepare(root.join(workspace::RUNTIME_FILE)));
    }
    let Manual { project, plan, commit, whose, .. } = &manual;
    let confinement = confinement::find().await;
    if fresh {
        git::checks::forget_environments(project, *commit, plan, &confinement).await?;
        ProofRecords::of(&manual.state).forget()?;
    }
    Ok(git::checks::prepare(project, *commit, plan, &confinement, whose, stop).await?)
}

/// Proves a change: runs the checks at its commit, holds what fails against its base, and runs them once more where
/// something is newly red. In the train both may come later, or have come before.
pub(super) async fn prove(
    team: &Arc<Team>,
    id: &RequestId,
    (commit, how): (CommitId, ProofMode),
    stop: &CancellationToken,
) -> Result<Evidence, EffectError> {
    let base = base_of(team, id, commit)?;
    let trusted = checks::trusted(team, base.unwrap_or(commit)).await?;
    let before = match how {
        ProofMode::Again => None,
        ProofMode::Once | ProofMode::Whole => {
            let project = team.project.clone();
            let tree = tasks::blocking(move || project.tree_of(commit)).await??;
            team.signals.early.wait(tree, stop).await;
            green(team, commit, trusted).await?
        }
    };
    let is_known = before.is_some();
    let ran = match before {
        Some(evidence) => evidence,
        None => checks::run(team, id, commit, trusted, stop).await?,
    };
    if how == ProofMode::Once && ran.has_failed() {
        return finish(team, ran).await;
    }
    let request = team.request(id).ok_or(EffectError::Gone)?;
    let held = request.work.held.clone().filter(|it| it.commit == ran.commit);
    let held = held.filter(|before| how == ProofMode::Again && before.has_failed());
    let is_repetition = held.is_some();
    let mut evidence = ran;
    if let Some(mut before) = held.filter(|_| !evidence.has_failed()) {
        comparison::repeated(&mut before, &evidence);
        comparison::take_flaky(&mut evidence, before);
        // It was red once, and is no sure proof of its tree.
        evidence.repetitions += 1;
    }
    let is_red = evidence.has_failed();
    let records = match base {
        Some(base) if is_red => Some(look(team, id, base, stop).await?),
        Some(base) => {
            let plan = checks::in_force(team).await?;
            match read(team, base, &plan, evidence.isolation).await? {
                Some(proof) => Some(proof.checks),
                // What ran there says which tests this change has lost.
                None if team.hub.consult(|_, policy| policy.proves_base) => {
                    match look(team, id, base, stop).await {
                        // This change may be what mends that.
                        Err(EffectError::Git(error @ GitError::Prepare { .. })) => {
                            tracing::warn!(%error, "nothing can be said of the base");
                            None
                        }
                        records => Some(records?),
                    }
                }
                None => None,
            }
        }
        None => None,
    };
    comparison::hold_against(&mut evidence, records.as_deref());
    if is_red && !evidence.is_red_before() && !is_repetition {
        let again = checks::run(team, id, commit, trusted, stop).await?;
        comparison::repeated(&mut evidence, &again);
        comparison::hold_against(&mut evidence, records.as_deref());
    }
    // What is known does not get younger by being used.
    if !is_known && (evidence.is_green() || evidence.is_red_before()) {
        keep(team, commit, &evidence).await?;
    }
    finish(team, evidence).await
}

/// What is known already of a commit that has the same tree as one whose checks all passed. What was prepared for that
/// one alone, since somebody agreed to it, counts for nobody else.
async fn green(
    team: &Arc<Team>,
    commit: CommitId,
    trusted: CommitId,
) -> Result<Option<Evidence>, EffectError> {
    let plan = checks::in_force(team).await?;
    let isolation = git::checks::isolation(&plan, &confinement::find().await)?;
    if !is_known_by_tree(team, &plan, isolation, (commit, trusted)).await? {
        return Ok(None);
    }
    let proof = read(team, commit, &plan, isolation).await?;
    Ok(proof.and_then(|proof| proof.evidence_of(commit.to_string())))
}

/// Whether checks see something beside the tree, which is no part of what their records are found by: what was red may
/// have been so by that.
fn sees_more(plan: &CheckPlan) -> bool {
    let sees_more = |it: &CheckSpec| it.network == CheckNetwork::Host || !it.read.is_empty();
    !plan.carry.is_empty() || plan.checks.iter().any(sees_more)
}

/// Whether what checks say of a commit counts for every other one with its tree.
async fn is_known_by_tree(
    team: &Arc<Team>,
    plan: &CheckPlan,
    isolation: Isolation,
    (commit, trusted): (CommitId, CommitId),
) -> Result<bool, EffectError> {
    if sees_more(plan) {
        return Ok(false);
    }
    let keys = |commit| git::checks::environment_keys(&team.project, commit, plan, isolation);
    Ok(plan.prepare.is_empty() || keys(commit).await? == keys(trusted).await?)
}

/// Proves a commit that nobody has asked about yet, on the branch as it is: green is kept by its tree, and red is for
/// whoever comes to stand there.
pub(super) async fn early(
    team: &Arc<Team>,
    commit: CommitId,
    head: CommitId,
    stop: &CancellationToken,
) -> Result<(), EffectError> {
    let plan = checks::in_force(team).await?;
    let isolation = git::checks::isolation(&plan, &confinement::find().await)?;
    if plan.checks.is_empty()
        || !is_known_by_tree(team, &plan, isolation, (commit, head)).await?
        || read(team, commit, &plan, isolation).await?.is_some()
        || stop.is_cancelled()
    {
        return Ok(());
    }
    let evidence = checks::run_early(team, &plan, (commit, head), stop).await?;
    if evidence.is_green() {
        keep(team, commit, &evidence).await?;
    }
    Ok(())
}

/// How the checks stand at the tip of the branch, which a request is about to grow from.
pub(super) async fn base(
    team: &Arc<Team>,
    id: &RequestId,
    stop: &CancellationToken,
) -> Result<BaseStanding, EffectError> {
    let project = team.project.clone();
    let head = tasks::blocking(move || project.head()).await??;
    let records = look(team, id, head, stop).await?;
    Ok(comparison::base_standing(head.to_string(), &records))
}

/// The commit that a change grew from; none where it is that commit.
fn base_of(team: &Team, id: &RequestId, commit: CommitId) -> Result<Option<CommitId>, EffectError> {
    let request = team.request(id).ok_or(EffectError::Gone)?;
    let candidate = request.work.candidate.as_ref();
    let base: Option<CommitId> = candidate.map(|it| it.base.parse()).transpose()?;
    Ok(base.filter(|base| *base != commit))
}

/// What the checks say about the tree of a commit: as it was seen before, else by running them, one request at a time.
async fn look(
    team: &Arc<Team>,
    id: &RequestId,
    commit: CommitId,
    stop: &CancellationToken,
) -> Result<Vec<CheckRecord>, EffectError> {
    let _one = tokio::select! {
        one = team.base.lock() => one,
        () = stop.cancelled() => return Err(EffectError::Unwanted),
    };
    let plan = checks::in_force(team).await?;
    let isolation = git::checks::isolation(&plan, &confinement::find().await)?;
    if let Some(proof) = read(team, commit, &plan, isolation).await?
        && !proof.is_old
        && (!sees_more(&plan) || proof.checks.iter().all(|it| it.verdict == CheckVerdict::Passed))
    {
        return Ok(proof.checks);
    }
    let mut evidence = checks::run(team, id, commit, commit, stop).await?;
    if evidence.has_failed() {
        let again = checks::run(team, id, commit, commit, stop).await?;
        comparison::repeated(&mut evidence, &again);
    }
    if evidence.is_green() || evidence.has_failed() {
        keep(team, commit, &evidence).await?;
    }
    let records = evidence.checks.iter().map(CheckRecord::of).collect();
    finish(team, evidence).await?;
    Ok(records)
}

async fn read(
    team: &Arc<Team>,
    commit: CommitId,
    plan: &CheckPlan,
    isolation: Isolation,
) -> Result<Option<TreeProof>, EffectError> {
    let environments =
        git::checks::environment_keys(&team.project, commit, plan, isolation).await?;
    let (team, checks) = (Arc::clone(team), plan.digest.clone());
    tasks::blocking(move || {
        let tree = team.project.tree_of(commit)?;
        let files = team.project.files_key(commit)?;
        let (environments, files) = (environments.as_slice(), files.as_str());
        let key = TreeKey { tree, checks: &checks, isolation, environments, files };
        Ok(team.proofs.read(&key)?)
    })
    .await?
}

/// Keeps what the checks say about the tree of a commit.
async fn keep(team: &Arc<Team>, commit: CommitId, evidence: &Evidence) -> Result<(), EffectError> {
    let (checks, isolation) = (evidence.checks_digest.clone(), evidence.isolation);
    let environments: Vec<_> = evidence.environments.iter().map(|it| it.key.clone()).collect();
    let proof = TreeProof::of(evidence);
    let team = Arc::clone(team);
    tasks::blocking(move || {
        let tree = team.project.tree_of(commit)?;
        let files = team.project.files_key(commit)?;
        let (environments, files) = (environments.as_slice(), files.as_str());
        let key = TreeKey { tree, checks: &checks, isolation, environments, files };
        Ok(team.proofs.keep(&key, &proof)?)
    })
    .await?
}

/// Counts what was flaky, and leaves to the record what people are shown.
async fn finish(team: &Arc<Team>, mut evidence: Evidence) -> Result<Evidence, EffectError> {
    let mut seen = Vec::new();
    for check in &mut evidence.checks {
        check.tests = TestOutcomes::default();
        let flaky = check.compared.iter().flat_map(|it| &it.flaky.first);
        seen.extend(flaky.map(|name| format!("{}: {name}", check.name)));
    }
    if !seen.is_empty() {
        let team = Arc::clone(team);
        tasks::blocking(move || team.proofs.count_flaky(seen, now())).await??;
    }
    Ok(evidence)
}

/// What was red and green without a change in a workspace, and how often.
///
/// # Errors
/// Where the counts cannot be read.
pub fn flaky(workspace: &workspace::Workspace) -> Result<BTreeMap<String, FlakyCount>, FileError> {
    ProofRecords::of(&workspace.state_dir()).flaky()
}
