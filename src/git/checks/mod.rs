//! The project's checks at an exact commit, run by the runtime itself: the evidence that "done" rests on.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::trees::TreePool;
use super::{CommitId, GitError, Project, Result, counts};
use crate::domain::config::CheckNetwork;
use crate::domain::evidence::{CheckRun, CheckVerdict, Evidence, UsedEnvironment};
use crate::domain::test_report::TestOutcomes;
use crate::domain::time::Timestamp;
use crate::platform::confinement::Confinement;
use crate::platform::supervise::{self, EndedBy, Exit, RunFolderState};
use crate::platform::{clock, files, full_disk, layers};
pub use command::isolation;
use command::{CheckFolders, Output, clear, clear_outside, execute, milliseconds, off_thread};
pub use environments::{EnvironmentStore, KeptEnvironment, PreparedEnvironment};
pub use plan::{CheckPlan, CheckSpec, PrepareSpec};
pub use preparation_owner::{Consent, PreparationOwner};
pub use prepare::{forget as forget_environments, keys as environment_keys, lend};

mod carry;
mod command;
mod environments;
mod home;
mod plan;
mod preparation_owner;
mod prepare;
mod report;
mod times;
mod tree;
mod view;

/// Signals that come from outside of a program: SIGHUP, SIGINT, SIGKILL, SIGTERM.
const ENDED_FROM_OUTSIDE: [i32; 4] = [1, 2, 9, 15];

/// Runs all checks in one clean tree of `commit`, in order; a failure does not stop the next. The files of the commit
/// are put back after each, so that none is judged by what another wrote there; what a check makes beside them stays.
///
/// With bubblewrap they see the tree at the project's own path, the system, tools, what is lent to them and
/// nothing else. Under Landlock, or under nothing, the tree lies in a folder of the machine's temporary ones.
/// It is cleaned and used again afterwards; `<n>-<name>.log` files stay in `scratch` until it is used again. Where the
/// future is dropped, or the team dies, the checks are ended; what is left of an earlier run in the same
/// `scratch` is ended first. Where `stop` is cancelled, nothing of them is left when this returns.
///
/// # Errors
/// [`GitError::NotIsolated`], [`GitError::Carry`], [`GitError::Readable`]; else only where the checks could
/// not be run at all, or were stopped. A check that cannot be started is evidence.
pub async fn run(
    project: &Project,
    commit: CommitId,
    plan: &CheckPlan,
    confinement: &Confinement,
    scratch: &Path,
    whose: &PreparationOwner,
    stop: &CancellationToken,
) -> Result<Evidence> {
    end_earlier(scratch).await?;
    let isolation = isolation(plan, confinement)?;
    let environments = prepare::ready(project, commit, plan, confinement, whose, stop).await?;
    let used = environments.iter().map(used).collect();
    let begun = clock::now();
    let is_layered = !environments.is_empty()
        && isolation.is_isolated()
        && layers::work_in(&plan.environments).await;
    let making = (project.clone(), plan.clone(), scratch.to_owned(), environments.clone());
    let place = off_thread(move || {
        let (project, plan, scratch, environments) = making;
        let mut place =
            CheckFolders::make(&project, commit, &plan, isolation, &scratch, &environments)?;
        place.bring(&environments, commit, is_layered)?;
        Ok(place)
    })
    .await?;
    let tree_ms = milliseconds(begun, clock::now());
    let checks = all(plan, &place, confinement, stop).await;
    drop(environments);
    let (scratch, trees) = (scratch.to_owned(), plan.trees.clone());
    let is_cut_off = checks.is_err();
    off_thread(move || {
        let layout = &place.layout;
        // What kept them from their end may be what they wrote.
        if is_cut_off {
            files::remove_dir_all(&layout.tree.lies)?;
        }
        TreePool::at(&trees).keep(&layout.tree.lies, &layout.seen)?;
        clear(&scratch)
    })
    .await?;
    let checks = checks?;
    if stop.is_cancelled() {
        return Err(GitError::Interrupted { reason: "the checks were stopped".to_owned() });
    }
    Ok(Evidence {
        commit: commit.to_string(),
        checks,
        at: Timestamp::new(clock::now()),
        isolation,
        checks_digest: plan.digest.clone(),
        tree_ms,
        environments: used,
        repetitions: 0,
    })
}

/// Prepares what checks at a commit need, where it is not there yet.
///
/// # Errors
/// [`GitError::PreparationAsked`], [`GitError::Prepare`], [`GitError::NotIsolated`].
pub async fn prepare(
    project: &Project,
    commit: CommitId,
    plan: &CheckPlan,
    confinement: &Confinement,
    whose: &PreparationOwner,
    stop: &CancellationToken,
) -> Result<Vec<UsedEnvironment>> {
    let ready = prepare::ready(project, commit, plan, confinement, whose, stop).await?;
    Ok(ready.iter().map(used).collect())
}

fn used(environment: &PreparedEnvironment) -> UsedEnvironment {
    UsedEnvironment {
        name: environment.record.name.clone(),
        key: environment.key.clone(),
        prepared_ms: environment.is_new.then_some(environment.record.duration_ms),
    }
}

/// Runs all checks in their order, until they are to stop.
async fn all(
    plan: &CheckPlan,
    place: &CheckFolders,
    confinement: &Confinement,
    stop: &CancellationToken,
) -> Result<Vec<CheckRun>> {
    let mut checks = Vec::new();
    for (number, spec) in plan.checks.iter().enumerate() {
        if stop.is_cancelled() {
            break;
        }
        checks.push(one(plan, spec, number + 1, place, confinement, stop).await?);
    }
    Ok(checks)
}

async fn one(
    plan: &CheckPlan,
    check: &CheckSpec,
    number: usize,
    place: &CheckFolders,
    confinement: &Confinement,
    stop: &CancellationToken,
) -> Result<CheckRun> {
    let earlier = report::stamp(&place.layout.tree.lies, check);
    let (run_dir, exit) = execute(plan, check, number, place, confinement, stop).await?;
    let (place, check) = (place.clone(), check.clone());
    off_thread(move || judge(&place, &check, number, &run_dir, exit, earlier)).await
}

/// What came of a check.
fn judge(
    place: &CheckFolders,
    check: &CheckSpec,
    number: usize,
    run_dir: &Path,
    mut exit: Exit,
    earlier: Option<report::Stamp>,
) -> Result<CheckRun> {
    let output = Output::read(run_dir)?;
    if let Some(error) = output.not_started(&exit, place.layout.isolation) {
        exit.ended_by = EndedBy::NotStarted;
        exit.code = None;
        exit.error = Some(error);
    }
    let text = format!("{}\n[stderr]\n{}\n", output.stdout, output.stderr);
    let mut notes = Vec::new();
    let mut has_report = true;
    // A report that names no test says that none ran.
    let mut names_none = None;
    let mut tests = match report::read(&place.layout.tree.lies, check, earlier) {
        Ok(Some(tests)) => {
            names_none = tests.is_empty().then(counts::Counts::default);
            tests
        }
        Ok(None) => report::printed(&output.stdout, &output.stderr),
        Err(why) => {
            notes.push(why);
            has_report = false;
            report::printed(&output.stdout, &output.stderr)
        }
    };
    let counts = names_none.or_else(|| counts::read(&text)).or_else(|| report::counts(&tests));
    let mut verdict = verdict(&exit, counts);
    if verdict == CheckVerdict::Passed && !has_report {
        // What is to say which tests ran says nothing.
        verdict = CheckVerdict::Failed;
    }
    if verdict == CheckVerdict::Passed && !tests.failed.is_empty() {
        verdict = CheckVerdict::Failed;
        notes.push(format!("its exit code is 0, and {} of its tests failed", tests.failed.len()));
    }
    let dropped = exit.dropped_stdout + exit.dropped_stderr;
    if dropped > 0 && (check.report.is_none() || !has_report) {
        // Of what is not named it is not known whether it ran.
        tests = TestOutcomes { is_cut: true, ..TestOutcomes::default() };
    }
    if dropped > 0 {
        notes.push(format!("{dropped} bytes of output were dropped"));
    }
    if let Some(error) = &exit.error {
        notes.push(format!("could not be started: {error}"));
        let is_missing = error.contains("No such file");
        if let Some(program) = check.command.first().filter(|_| {
            is_missing
                || (!place.layout.isolation.is_isolated() && error.contains("ermission denied"))
        }) {
            let tree = &place.layout.tree.lies;
            let why =
                carry::why_missing(&place.project, &place.carried, tree, program, is_missing)?;
            notes.extend(why);
        }
    }
    let says_full = match verdict {
        CheckVerdict::Failed => full_disk::says_full(&text),
        CheckVerdict::NotStarted => exit.error.as_deref().is_some_and(full_disk::says_full),
        CheckVerdict::Passed
        | CheckVerdict::TimedOut
        | CheckVerdict::CutOff
        | CheckVerdict::EnvironmentFault => false,
    };
    let folders = [&place.layout.tree.lies, &place.scratch];
    if let Some(path) = folders.into_iter().find(|it| says_full && full_disk::is_nearly_full(it)) {
        return Err(full_disk::no_room(path).into());
    }
    if verdict == CheckVerdict::Failed
        && let Some(met) = met_the_checkout(place, &text)
    {
        verdict = CheckVerdict::EnvironmentFault;
        notes.push(format!(
            "{} leads to the checkout, which checks must not read: without bubblewrap the tree that is checked \
             cannot be put in its place",
            met.display()
        ));
    }
    if verdict != CheckVerdict::Passed
        && check.network == CheckNetwork::Off
        && place.layout.isolation.is_isolated()
        && NETWORK_MISSED.iter().any(|words| text.contains(words))
    {
        notes.push(
            "it has no network; `network: host` under the check in team_runtime.yaml gives it the machine's"
                .to_owned(),
        );
    }
    let changed = place.put_back()?;
    if !changed.is_empty() {
        notes.push(format!(
            "it changed {} of the project's files, which are put back before the next check: {}",
            changed.len(),
            changed
                .iter()
                .take(5)
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(", "),
        ));
    }
    let log = place.scratch.join(format!("{number}-{}.log", file_name(&check.name)));
    let (digest, tail) = output.keep(&log, &text, &notes)?;
    Ok(CheckRun {
        name: check.name.clone(),
        command: check.command.clone(),
        exit_code: exit.code,
        verdict,
        tests_passed: counts.map(|counts| counts.passed),
        tests_failed: counts.map(|counts| counts.failed),
        log_digest: digest,
        log_tail: tail,
        duration_ms: milliseconds(exit.started_at, exit.ended_at),
        tests,
        compared: None,
    })
}

/// Words of programs that wanted a network.
const NETWORK_MISSED: [&str; 12] = [
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "No address associated with hostname",
    "Network is unreachable",
    "failed to lookup address information",
    "no such host",
    "getaddrinfo",
    "ENOTFOUND",
    "ENETUNREACH",
    "EAI_AGAIN",
    "but --offline was specified",
];

/// By what a check came upon the person's checkout where the machine cannot put another tree there: an
/// editable installation among what it was lent, or its own words.
fn met_the_checkout(place: &CheckFolders, text: &str) -> Option<PathBuf> {
    const REFUSALS: [&str; 4] = ["ermission denied", "PermissionError", "EACCES", "EPERM"];
    // What cannot be opened is not there for those who look for modules.
    const MISSING: [&str; 3] = ["No module named", "cannot import name", "Cannot find module"];
    if place.layout.isolation.is_isolated() {
        return None;
    }
    let path = place.project.path();
    let holds = |words: &[&str]| words.iter().any(|words| text.contains(words));
    if let Some(lent) = carry::leads_back(path, &place.carried)
        && (holds(&REFUSALS) || holds(&MISSING))
    {
        return Some(lent);
    }
    let project = path.to_string_lossy();
    let mut refused = false;
    let mut named = false;
    for line in text.lines() {
        refused |= REFUSALS.iter().any(|words| line.contains(words));
        named |= line.contains(project.as_ref());
    }
    (refused && named).then(|| path.to_owned())
}

/// The signal that ended a check. Within bubblewrap, and where a shell began the program, it is in the exit code.
fn signal(exit: &Exit) -> Option<i32> {
    exit.signal.or_else(|| exit.code?.checked_sub(128))
}

/// Green needs exit code 0 and no runner that says otherwise or ran nothing.
fn verdict(exit: &Exit, counts: Option<counts::Counts>) -> CheckVerdict {
    match exit.ended_by {
        EndedBy::NotStarted => CheckVerdict::NotStarted,
        EndedBy::Wall => CheckVerdict::TimedOut,
        EndedBy::Idle | EndedBy::OutputCap | EndedBy::Cancelled | EndedBy::ParentGone => {
            CheckVerdict::CutOff
        }
        // Nobody's program does that to itself: the kernel was out of memory, or somebody ended it.
        EndedBy::Exit if signal(exit).is_some_and(|it| ENDED_FROM_OUTSIDE.contains(&it)) => {
            CheckVerdict::CutOff
        }
        EndedBy::Exit => {
            let doubted = counts.is_some_and(|counts| counts.is_nothing() || counts.failed > 0);
            if exit.code == Some(0) && !doubted {
                CheckVerdict::Passed
            } else {
                CheckVerdict::Failed
            }
        }
    }
}

fn file_name(name: &str) -> String {
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    if safe.is_empty() { "check".to_owned() } else { safe }
}

/// Ends checks that a killed team left behind in the same folder, and removes what they had elsewhere.
///
/// # Errors
/// Where a folder cannot be read.
pub async fn end_earlier(scratch: &Path) -> Result<()> {
    for run_dir in files::list(scratch)? {
        let is_run =
            run_dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run-"));
        if !is_run {
            continue;
        }
        match supervise::adopt(&run_dir)? {
            RunFolderState::Running(run) => {
                run.kill()?;
                if let Err(error) = run.wait().await {
                    tracing::debug!(%error, "a check of an earlier team left no outcome");
                }
            }
            RunFolderState::Finished(_) | RunFolderState::Never => {}
        }
    }
    let scratch = scratch.to_owned();
    off_thread(move || clear_outside(&scratch)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ended_from_outside_proves_nothing_however_it_is_told() {
        let ended = |code: Option<i32>, signal: Option<i32>| {
            let now = crate::platform::clock::now();
            let exit = Exit {
                ended_by: EndedBy::Exit,
                code,
                signal,
                started_at: now,
                ended_at: now,
                dropped_stdout: 0,
                dropped_stderr: 0,
                swept: 0,
                error: None,
            };
            verdict(&exit, None)
        };
        assert_eq!(ended(None, Some(9)), CheckVerdict::CutOff);
        // Within bubblewrap the signal comes as an exit code.
        for code in [129, 130, 137, 143] {
            assert_eq!(ended(Some(code), None), CheckVerdict::CutOff, "{code}");
        }
        // What a program does to itself is its own fault: an abort, a bad address, no such command.
        for code in [1, 2, 9, 127, 134, 139, 255] {
            assert_eq!(ended(Some(code), None), CheckVerdict::Failed, "{code}");
        }
        assert_eq!(ended(Some(0), None), CheckVerdict::Passed);
    }
}
