//! The project's checks at an exact commit, run by the runtime itself: the evidence that "done" rests on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::trees::TreePool;
use super::{CommitId, GitError, Project, Result, counts};
use crate::domain::config::CheckNetwork;
use crate::domain::evidence::{CheckRun, CheckVerdict, Evidence, Isolation};
use crate::domain::time::Timestamp;
use crate::platform::confinement::Confinement;
use crate::platform::supervise::{self, EndedBy, Exit, OnCap, OnEof, RunFolderState, Spec};
use crate::platform::{clock, files, inside, machine, redact, spawn, tasks};
use carry::CarriedFolder;
pub use plan::{CheckPlan, CheckSpec};
use view::{Layout, View};

mod carry;
mod home;
mod plan;
mod report;
mod tree;
mod view;

/// Bytes of output that go into the evidence.
const TAIL_BYTES: usize = 4096;

/// Signals that come from outside of a program: SIGHUP, SIGINT, SIGKILL, SIGTERM.
const ENDED_FROM_OUTSIDE: [i32; 4] = [1, 2, 9, 15];

/// Runs all checks in one clean tree of `commit`, in order; a failure does not stop the next.
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
    stop: &CancellationToken,
) -> Result<Evidence> {
    end_earlier(scratch).await?;
    let isolation = isolation(plan, confinement)?;
    let begun = clock::now();
    let preparing = (project.clone(), plan.clone(), scratch.to_owned());
    let place = off_thread(move || {
        let (project, plan, scratch) = preparing;
        CheckFolders::prepare(&project, commit, &plan, isolation, &scratch)
    })
    .await?;
    let tree_ms = milliseconds(begun, clock::now());
    let mut checks = Vec::new();
    for (number, spec) in plan.checks.iter().enumerate() {
        if stop.is_cancelled() {
            break;
        }
        checks.push(one(plan, spec, number + 1, &place, confinement, stop).await?);
    }
    let (scratch, trees) = (scratch.to_owned(), plan.trees.clone());
    off_thread(move || {
        let layout = &place.layout;
        TreePool::at(&trees).keep(&layout.tree.lies, &layout.seen)?;
        clear(&scratch)
    })
    .await?;
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
    })
}

/// What keeps the checks of a plan from everything but their tree.
///
/// # Errors
/// [`GitError::NotIsolated`].
pub fn isolation(plan: &CheckPlan, confinement: &Confinement) -> Result<Isolation> {
    let (isolation, reason) = match confinement {
        Confinement::Bubblewrap(_) => return Ok(Isolation::Bubblewrap),
        Confinement::Landlock(_, reason) => (Isolation::Landlock, reason),
        Confinement::Nothing(reason) => (Isolation::None, reason),
    };
    if plan.allow_unisolated {
        Ok(isolation)
    } else {
        Err(GitError::NotIsolated { reason: reason.clone() })
    }
}

async fn one(
    plan: &CheckPlan,
    check: &CheckSpec,
    number: usize,
    place: &CheckFolders,
    confinement: &Confinement,
    stop: &CancellationToken,
) -> Result<CheckRun> {
    let started = clock::now();
    let run_dir = place.scratch.join(format!("run-{number}"));
    let earlier = report::stamp(&place.layout.tree.lies, check);
    let exit = match check.command.split_first() {
        Some((program, args)) => {
            let spec = {
                let (place, plan, check) = (place.clone(), plan.clone(), check.clone());
                let confinement = confinement.clone();
                let (program, args) = (program.clone(), args.to_vec());
                let rules = place.scratch.join(format!("run-{number}.json"));
                off_thread(move || place.spec(&plan, &check, &confinement, &rules, &program, args))
                    .await?
            };
            supervise::run_until(&spec, &run_dir, stop.cancelled()).await?
        }
        None => Exit {
            ended_by: EndedBy::NotStarted,
            code: None,
            signal: None,
            started_at: started,
            ended_at: started,
            dropped_stdout: 0,
            dropped_stderr: 0,
            swept: 0,
            error: Some("the command is empty".to_owned()),
        },
    };
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
    let tests = match report::read(&place.layout.tree.lies, check, earlier) {
        Ok(Some(tests)) => tests,
        Ok(None) => report::printed(&output.stdout, &output.stderr),
        Err(why) => {
            notes.push(why);
            report::printed(&output.stdout, &output.stderr)
        }
    };
    let counts = counts::read(&text).or_else(|| report::counts(&tests));
    let mut verdict = verdict(&exit, counts);
    if verdict == CheckVerdict::Passed && !tests.failed.is_empty() {
        verdict = CheckVerdict::Failed;
        notes.push(format!("its exit code is 0, and {} of its tests failed", tests.failed.len()));
    }
    let dropped = exit.dropped_stdout + exit.dropped_stderr;
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

fn milliseconds(from: DateTime<Utc>, to: DateTime<Utc>) -> u64 {
    u64::try_from((to - from).num_milliseconds()).unwrap_or(0)
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

/// The folders of one run of the checks.
#[derive(Debug, Clone)]
struct CheckFolders {
    project: Project,
    /// Logs, and what the supervisor needs; no check sees it.
    scratch: PathBuf,
    layout: Layout,
    carried: Vec<CarriedFolder>,
    /// What tools must be told.
    env: BTreeMap<String, String>,
}

impl CheckFolders {
    fn prepare(
        project: &Project,
        commit: CommitId,
        plan: &CheckPlan,
        isolation: Isolation,
        scratch: &Path,
    ) -> Result<CheckFolders> {
        files::remove_dir_all_forced(scratch)?;
        files::create_dir_all(scratch)?;
        let root = if isolation.is_isolated() {
            scratch.to_owned()
        } else {
            make_outside(&files::canonicalize(scratch)?)?
        };
        let layout = Layout::new(isolation, project.path(), &root);
        for folder in [&layout.home.lies, &layout.tmp.lies, &layout.var_tmp] {
            files::create_dir_all(folder)?;
        }
        let carried = carry::carried(project, commit, &plan.carry, &plan.hidden)?;
        let ignored: Vec<PathBuf> = carried.iter().map(|one| one.path.clone()).collect();
        let objects = layout.objects(project)?;
        let tree = (layout.tree.lies.as_path(), layout.seen.as_path());
        tree::write(project, commit, tree, &TreePool::at(&plan.trees), &objects, &ignored)?;
        if !isolation.is_isolated() {
            for one in &carried {
                let link = layout.tree.lies.join(&one.path);
                if let Some(folder) = link.parent() {
                    files::create_dir_all(folder)?;
                }
                files::symlink(&one.lies, &link)?;
            }
        }
        let env = home::furnish(&layout.home.lies, &layout.home.seen)?;
        Ok(CheckFolders {
            project: project.clone(),
            scratch: scratch.to_owned(),
            layout,
            carried,
            env,
        })
    }

    /// How a check is run. `rules` is where rules can be written for it.
    fn spec(
        &self,
        plan: &CheckPlan,
        check: &CheckSpec,
        confinement: &Confinement,
        rules: &Path,
        program: &str,
        args: Vec<String>,
    ) -> Result<Spec> {
        let view = View::of(&self.project, plan, check, &self.carried, &self.layout)?;
        let own = spawn::own_binary().map_err(supervise::SuperviseError::Spawn)?;
        let program = self.program(program);
        let inner = || [vec![program.to_string_lossy().into_owned()], args.clone()].concat();
        let (program, args, cwd) = match confinement {
            Confinement::Bubblewrap(bwrap) => {
                view.make_way()?;
                let mut all = view.bubblewrap(&own);
                all.extend(inside::arguments(None, None, true));
                all.extend(inner());
                (bwrap.clone(), all, self.scratch.clone())
            }
            Confinement::Landlock(..) => {
                let text = serde_json::to_vec(&view.landlock())
                    .map_err(|error| GitError::Interrupted { reason: error.to_string() })?;
                files::write_private(rules, text)?;
                let mut all = inside::arguments(None, Some(rules), false);
                all.extend(inner());
                (own, all, self.layout.tree.lies.clone())
            }
            Confinement::Nothing(_) => (program, args, self.layout.tree.lies.clone()),
        };
        let mut env = self.env.clone();
        env.extend([
            (
                "PATH".to_owned(),
                std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned()),
            ),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("TERM".to_owned(), "dumb".to_owned()),
            // Runners that would watch for changes end instead.
            ("CI".to_owned(), "1".to_owned()),
            ("TMPDIR".to_owned(), self.layout.tmp.seen.to_string_lossy().into_owned()),
        ]);
        if check.network == CheckNetwork::Off && self.layout.isolation.is_isolated() {
            // It would ask a registry again and again that it cannot reach.
            env.insert("CARGO_NET_OFFLINE".to_owned(), "true".to_owned());
        }
        env.extend(check.env.clone());
        Ok(Spec {
            args,
            env,
            holds_inside: self.layout.isolation.is_isolated(),
            wall_ms: Some(u64::try_from(check.timeout.as_millis()).unwrap_or(u64::MAX)),
            max_stdout_bytes: check.output_limit,
            max_stderr_bytes: check.output_limit,
            on_cap: OnCap::Drop,
            on_eof: OnEof::Kill,
            ..Spec::new(program, cwd)
        })
    }

    /// A program with a slash is relative to the project, and one in the project is the tree's.
    fn program(&self, program: &str) -> PathBuf {
        if !program.contains('/') {
            return PathBuf::from(program);
        }
        let path = Path::new(program);
        let within = path.strip_prefix(self.project.path()).unwrap_or(path);
        self.layout.tree.seen.join(within.strip_prefix(".").unwrap_or(within))
    }
}

/// Removes all of a run of the checks but its logs.
fn clear(scratch: &Path) -> Result<()> {
    for path in files::list(scratch)? {
        if path.extension().is_none_or(|extension| extension != "log") {
            files::remove_any(&path)?;
        }
    }
    clear_outside(scratch)
}

/// Where the folders of a run lie that checks see where they lie: neither in the project nor below a hidden
/// folder, which some programs leave out. The same for the same `scratch`, so that it can be removed after
/// a crash.
fn outside(scratch: &Path) -> [PathBuf; 2] {
    let digest = Sha256::digest(scratch.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let all = Path::new("/var/tmp");
    let all = if machine::may_write(all) { all.to_owned() } else { PathBuf::from("/tmp") };
    let own = all.join(format!("teams-checks-{}", machine::user_id()));
    let run = own.join(name);
    [own, run]
}

fn make_outside(scratch: &Path) -> Result<PathBuf> {
    let [own, run] = outside(scratch);
    files::create_private_dir(&own)?;
    files::remove_dir_all_forced(&run)?;
    files::create_private_dir(&run)?;
    Ok(run)
}

fn clear_outside(scratch: &Path) -> Result<()> {
    let Ok(scratch) = files::canonicalize(scratch) else { return Ok(()) };
    let [own, run] = outside(&scratch);
    if !files::exists(&own) {
        return Ok(());
    }
    // Somebody else's has nothing of ours.
    if files::create_private_dir(&own).is_err() {
        return Ok(());
    }
    files::remove_dir_all_forced(&run)?;
    // Gone meanwhile, or used by another run.
    let _ = files::remove_dir_if_empty(&own);
    Ok(())
}

/// What a check wrote.
struct Output {
    stdout: String,
    stderr: String,
}

impl Output {
    fn read(run_dir: &Path) -> Result<Self> {
        let spool = |name: &str| -> Result<String> {
            let path = run_dir.join(name);
            let bytes = if files::exists(&path) { files::read(&path)? } else { Vec::new() };
            Ok(redact::redact(&String::from_utf8_lossy(&bytes)).into_owned())
        };
        Ok(Self {
            stdout: spool(supervise::STDOUT_SPOOL)?,
            stderr: spool(supervise::STDERR_SPOOL)?,
        })
    }

    /// What the sandbox says where it could not start the check. A check that pretends it is asked about and
    /// not believed to be green, so nothing is won by that.
    fn not_started(&self, exit: &Exit, isolation: Isolation) -> Option<String> {
        let said = self.stderr.trim();
        let is_silent = exit.ended_by == EndedBy::Exit && self.stdout.is_empty();
        let whole = |begin: &str| said.starts_with(begin).then(|| said.to_owned());
        match (isolation, exit.code) {
            (Isolation::Bubblewrap | Isolation::Landlock, Some(code))
                if is_silent && code == i32::from(inside::NOT_STARTED) =>
            {
                whole(inside::CANNOT_START).or_else(|| whole(inside::NO_SANDBOX))
            }
            (Isolation::Bubblewrap, Some(1)) if is_silent => whole("bwrap: "),
            (Isolation::Bubblewrap | Isolation::Landlock | Isolation::None, _) => None,
        }
    }

    /// Writes the log: stdout, then stderr, then the notes. Gives its digest and its tail.
    fn keep(&self, log: &Path, text: &str, notes: &[String]) -> Result<(String, String)> {
        let notes: String = notes.iter().map(|note| format!("[{note}]\n")).collect();
        let text = format!("{text}{notes}");
        files::write(log, &text)?;
        let digest =
            Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((digest, tail(&[&printable(&self.stdout), &printable(&self.stderr), &notes])))
    }
}

/// The ends of the parts in at most [`TAIL_BYTES`]. Test runners report on stdout, compilers on stderr, so
/// each part may use what the others leave, and no less than its share.
fn tail(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    let share = TAIL_BYTES / parts.len().max(1);
    let spare: usize = parts.iter().map(|part| share.saturating_sub(part.len() + 1)).sum();
    let mut text = String::new();
    let mut spare = spare;
    for part in parts {
        let room = if part.len() < share { share } else { share + std::mem::take(&mut spare) };
        let end = last(part, room.saturating_sub(1));
        if !end.is_empty() {
            text.push_str(end);
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Without colour codes and control characters.
fn printable(text: &str) -> String {
    counts::without_colours(text)
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

/// The last bytes of a text, cut between characters.
fn last(text: &str, bytes: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
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

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tasks::blocking(work)
        .await
        .map_err(|error| GitError::Interrupted { reason: error.to_string() })?
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

    #[test]
    fn a_tail_shows_the_end_of_each_part_within_its_limit() {
        assert_eq!(tail(&["out\n", "", "note\n"]), "out\nnote");
        let (long, short) = ("가나다 ".repeat(2000), "error: here");
        for parts in [[&long, short, "n"], [short, &long, "n"], [&long, &long, "n"]] {
            let text = tail(&parts);
            assert!(text.len() <= TAIL_BYTES && text.len() > TAIL_BYTES - 32, "{}", text.len());
            assert!(text.ends_with("\nn"));
        }
        assert!(tail(&[&long, short, ""]).ends_with(short));
    }
}
