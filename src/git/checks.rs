//! The project's checks at an exact commit, run by the runtime itself: the evidence that "done" rests on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::{CommitId, GitError, Project, Result, counts};
use crate::domain::evidence::{CheckRun, CheckVerdict, Evidence};
use crate::domain::time::Timestamp;
use crate::platform::supervise::{self, Adopted, EndedBy, Exit, OnCap, OnEof, Spec};
use crate::platform::{clock, files, redact, tasks};

/// Bytes of output that go into the evidence.
const TAIL_BYTES: usize = 4096;

/// One check as the configuration describes it; never read from the commit that is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSpec {
    /// Its name, shown to people.
    pub name: String,
    /// The program and its arguments; no shell reads it. A program with a slash is relative to the project.
    pub command: Vec<String>,
    /// Wall time before the whole process tree is ended.
    pub timeout: Duration,
    /// Bytes of output that are kept, for stdout and stderr each, besides the last 64 KiB; what lies between
    /// is dropped and the log says so.
    pub output_limit: u64,
    /// Added to the scrubbed environment, for instance `RUSTUP_HOME`; from the configuration only.
    pub env: BTreeMap<String, String>,
}

/// Runs all checks in one clean checkout of `commit` below `scratch`, in order; a failure does not stop the
/// next. The checkout and the private `HOME` are removed afterwards, `<n>-<name>.log` files stay in
/// `scratch` until it is used again. Where the future is dropped, or the team dies, the checks are ended;
/// what is left of an earlier run in the same `scratch` is ended first. Where `stop` is cancelled, nothing
/// of them is left when this returns.
///
/// # Errors
/// Only where the checks could not be run at all, or were stopped; a check that cannot be started is
/// evidence.
pub async fn run(
    project: &Project,
    commit: CommitId,
    specs: &[CheckSpec],
    scratch: &Path,
    stop: &CancellationToken,
) -> Result<Evidence> {
    end_earlier(scratch).await?;
    let place = Place::new(scratch);
    let prepared = (project.clone(), place.clone());
    off_thread(move || prepared.1.prepare(&prepared.0, commit)).await?;
    let mut checks = Vec::new();
    for (number, spec) in specs.iter().enumerate() {
        if stop.is_cancelled() {
            break;
        }
        checks.push(one(spec, number + 1, &place, stop).await?);
    }
    off_thread(move || place.clear()).await?;
    if stop.is_cancelled() {
        return Err(GitError::Interrupted { reason: "the checks were stopped".to_owned() });
    }
    Ok(Evidence { commit: commit.to_string(), checks, at: Timestamp::new(clock::now()) })
}

async fn one(
    check: &CheckSpec,
    number: usize,
    place: &Place,
    stop: &CancellationToken,
) -> Result<CheckRun> {
    let started = clock::now();
    let run_dir = place.root.join(format!("run-{number}"));
    let exit = match check.command.split_first() {
        Some((program, args)) => {
            let spec = place.spec(check, program, args);
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
    let log = place.root.join(format!("{number}-{}.log", file_name(&check.name)));
    let output = {
        let exit = exit.clone();
        off_thread(move || Output::collect(&run_dir, &log, &exit)).await?
    };
    let counts = counts::read(&output.text);
    Ok(CheckRun {
        name: check.name.clone(),
        command: check.command.clone(),
        exit_code: exit.code,
        verdict: verdict(&exit, counts),
        tests_passed: counts.map(|counts| counts.passed),
        tests_failed: counts.map(|counts| counts.failed),
        log_digest: output.digest,
        log_tail: output.tail,
        duration_ms: u64::try_from((exit.ended_at - exit.started_at).num_milliseconds())
            .unwrap_or(0),
    })
}

/// Green needs exit code 0 and no runner that says otherwise or ran nothing.
fn verdict(exit: &Exit, counts: Option<counts::Counts>) -> CheckVerdict {
    match exit.ended_by {
        EndedBy::NotStarted => CheckVerdict::NotStarted,
        EndedBy::Wall => CheckVerdict::TimedOut,
        EndedBy::Idle | EndedBy::OutputCap | EndedBy::Cancelled | EndedBy::ParentGone => {
            CheckVerdict::Failed
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
struct Place {
    root: PathBuf,
}

impl Place {
    fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn prepare(&self, project: &Project, commit: CommitId) -> Result<()> {
        files::remove_dir_all_forced(&self.root)?;
        for folder in ["home", "tmp"] {
            files::create_dir_all(&self.root.join(folder))?;
        }
        project.checkout(commit, &self.root.join("tree"))
    }

    fn clear(&self) -> Result<()> {
        for path in files::list(&self.root)? {
            if path.extension().is_none_or(|extension| extension != "log") {
                files::remove_any(&path)?;
            }
        }
        Ok(())
    }

    fn spec(&self, check: &CheckSpec, program: &str, args: &[String]) -> Spec {
        let tree = self.root.join("tree");
        let program =
            if program.contains('/') { tree.join(program) } else { PathBuf::from(program) };
        let text = |name: &str| self.root.join(name).to_string_lossy().into_owned();
        let mut env = BTreeMap::from([
            (
                "PATH".to_owned(),
                std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned()),
            ),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("TERM".to_owned(), "dumb".to_owned()),
            // Runners that would watch for changes end instead.
            ("CI".to_owned(), "1".to_owned()),
            ("HOME".to_owned(), text("home")),
            ("TMPDIR".to_owned(), text("tmp")),
            // The checkout may lie inside the project, whose repository is none of its business.
            ("GIT_CEILING_DIRECTORIES".to_owned(), text("")),
        ]);
        env.extend(check.env.clone());
        Spec {
            args: args.to_vec(),
            env,
            wall_ms: Some(u64::try_from(check.timeout.as_millis()).unwrap_or(u64::MAX)),
            max_stdout_bytes: check.output_limit,
            max_stderr_bytes: check.output_limit,
            on_cap: OnCap::Drop,
            on_eof: OnEof::Kill,
            ..Spec::new(program, tree)
        }
    }
}

/// What a check wrote.
struct Output {
    text: String,
    digest: String,
    tail: String,
}

impl Output {
    /// Writes the log beside the run folder: stdout, then stderr, then what was dropped.
    fn collect(run_dir: &Path, log: &Path, exit: &Exit) -> Result<Self> {
        let spool = |name: &str| -> Result<String> {
            let path = run_dir.join(name);
            let bytes = if files::exists(&path) { files::read(&path)? } else { Vec::new() };
            Ok(redact::redact(&String::from_utf8_lossy(&bytes)).into_owned())
        };
        let stdout = spool(supervise::STDOUT_SPOOL)?;
        let stderr = spool(supervise::STDERR_SPOOL)?;
        let mut notes = String::new();
        let dropped = exit.dropped_stdout + exit.dropped_stderr;
        if dropped > 0 {
            notes.push_str(&format!("[{dropped} bytes of output were dropped]\n"));
        }
        if let Some(error) = &exit.error {
            notes.push_str(&format!("[could not be started: {error}]\n"));
        }
        let text = format!("{stdout}\n[stderr]\n{stderr}\n{notes}");
        files::write(log, &text)?;
        let digest =
            Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let tail = tail(&[&printable(&stdout), &printable(&stderr), &notes]);
        Ok(Self { digest, tail, text })
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

/// Ends checks that a killed team left behind in the same folder.
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
            Adopted::Running(run) => {
                run.kill()?;
                if let Err(error) = run.wait().await {
                    tracing::debug!(%error, "a check of an earlier team left no outcome");
                }
            }
            Adopted::Finished(_) | Adopted::Never => {}
        }
    }
    Ok(())
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
