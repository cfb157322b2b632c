//! One command of the checks: the folders that it has, how it is started in them, and what it wrote.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::carry::{self, CarriedFolder};
use super::environments::PreparedEnvironment;
use super::plan::{CheckPlan, CheckSpec};
use super::view::{Layout, View};
use super::{home, times, tree};
use crate::domain::config::CheckNetwork;
use crate::domain::evidence::Isolation;
use crate::git::trees::TreePool;
use crate::git::{CommitId, GitError, Project, Result, TreeId, content, counts};
use crate::platform::confinement::Confinement;
use crate::platform::layers::{Layers, UpperLayer};
use crate::platform::supervise::{self, EndedBy, Exit, OnCap, OnEof, Spec};
use crate::platform::{clock, files, inside, layers, machine, places, redact, spawn, tasks};

/// Bytes of output that go into the evidence.
const TAIL_BYTES: usize = 4096;

/// The folders of one run of the checks.
#[derive(Debug, Clone)]
pub(super) struct CheckFolders {
    pub(super) project: Project,
    pub(super) commit: CommitId,
    /// Logs, and what the supervisor needs; no check sees it.
    pub(super) scratch: PathBuf,
    pub(super) layout: Layout,
    pub(super) carried: Vec<CarriedFolder>,
    /// What tools must be told.
    pub(super) env: BTreeMap<String, String>,
}

impl CheckFolders {
    pub(super) fn make(
        project: &Project,
        commit: CommitId,
        plan: &CheckPlan,
        isolation: Isolation,
        scratch: &Path,
        environments: &[PreparedEnvironment],
    ) -> Result<CheckFolders> {
        files::remove_dir_all(scratch)?;
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
        let made = environments.iter().flat_map(|it| &it.record.made).cloned();
        let ignored: Vec<PathBuf> =
            carried.iter().map(|one| one.path.clone()).chain(made).collect();
        let objects = layout.objects(project)?;
        let tree = (layout.tree.lies.as_path(), layout.seen.as_path());
        let has_crates =
            tree::write(project, commit, tree, &TreePool::at(&plan.trees), &objects, &ignored)?;
        if !isolation.is_isolated() {
            for one in &carried {
                let link = layout.tree.lies.join(&one.path);
                if times::is_behind_link(&layout.tree.lies, &one.path) {
                    continue;
                }
                if let Some(folder) = link.parent() {
                    files::create_dir_all(folder)?;
                }
                files::symlink(&one.lies, &link)?;
            }
        }
        let env = home::furnish(&layout.home.lies, &layout.home.seen, has_crates)?;
        Ok(CheckFolders {
            project: project.clone(),
            commit,
            scratch: scratch.to_owned(),
            layout,
            carried,
            env,
        })
    }

    /// Puts the files of the commit back that a check has changed, and says which.
    pub(super) fn put_back(&self) -> Result<Vec<PathBuf>> {
        let (tree, seen) = (&self.layout.tree.lies, &self.layout.seen);
        let view = content::view(self.project.repository()?, tree)?;
        let target = view.find_commit(self.commit.0)?.tree()?;
        content::put_back(&view, self.project.filters(), &target, tree, seen)
    }

    /// Puts what was prepared below what lies in the tree and in the home, or, where the kernel does not let us, into
    /// them.
    pub(super) fn bring(
        &mut self,
        environments: &[PreparedEnvironment],
        commit: CommitId,
        is_layered: bool,
    ) -> Result<()> {
        let layout = &mut self.layout;
        let part = |folder: &Path, name: &str, lower: Vec<PathBuf>| Layers {
            merged: self.scratch.join(format!("{name}-merged")),
            upper: Some(UpperLayer {
                folder: folder.to_owned(),
                work: folder.with_file_name(format!("{name}-work")),
            }),
            lower,
        };
        let tree = TreeId(self.project.repository()?.find_commit(commit.0)?.tree_id());
        for environment in environments {
            layout.has_modules |= files::exists(&environment.home().join(places::GO_MODULES));
            times::touch(&self.project, environment, tree, &layout.tree.lies)?;
            for path in &environment.record.made {
                layers::show_through(&layout.tree.lies, path);
            }
            if !is_layered {
                layers::copy(&environment.files(), &layout.tree.lies)?;
                layers::copy(&environment.home(), &layout.home.lies)?;
            }
        }
        if is_layered && !environments.is_empty() {
            let files = environments.iter().map(PreparedEnvironment::files).collect();
            let homes = environments.iter().map(PreparedEnvironment::home).collect();
            layout.layers = vec![
                part(&layout.tree.lies, "project", files),
                part(&layout.home.lies, "home", homes),
            ];
            layers::make_way(&layout.layers)?;
        }
        Ok(())
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
                let layers = &self.layout.layers;
                if layers.is_empty() {
                    (bwrap.clone(), all, self.scratch.clone())
                } else {
                    let bwrap = bwrap.to_string_lossy().into_owned();
                    let all = layers::arguments(layers).into_iter().chain([bwrap]).chain(all);
                    (own, all.collect(), self.scratch.clone())
                }
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
            is_repeated: true,
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
pub(super) fn clear(scratch: &Path) -> Result<()> {
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
    files::remove_dir_all(&run)?;
    files::create_private_dir(&run)?;
    Ok(run)
}

pub(super) fn clear_outside(scratch: &Path) -> Result<()> {
    let Ok(scratch) = files::canonicalize(scratch) else { return Ok(()) };
    let [own, run] = outside(&scratch);
    if !files::exists(&own) {
        return Ok(());
    }
    // Somebody else's has nothing of ours.
    if files::create_private_dir(&own).is_err() {
        return Ok(());
    }
    files::remove_dir_all(&run)?;
    // Gone meanwhile, or used by another run.
    let _ = files::remove_dir_if_empty(&own);
    Ok(())
}

/// Runs a command in its folders, with what it says in a folder of its own.
pub(super) async fn execute(
    plan: &CheckPlan,
    check: &CheckSpec,
    number: usize,
    place: &CheckFolders,
    confinement: &Confinement,
    stop: &CancellationToken,
) -> Result<(PathBuf, Exit)> {
    let started = clock::now();
    let run_dir = place.scratch.join(format!("run-{number}"));
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
    Ok((run_dir, exit))
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

/// What a check wrote.
pub(super) struct Output {
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Output {
    pub(super) fn read(run_dir: &Path) -> Result<Self> {
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
    pub(super) fn not_started(&self, exit: &Exit, isolation: Isolation) -> Option<String> {
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
    pub(super) fn keep(
        &self,
        log: &Path,
        text: &str,
        notes: &[String],
    ) -> Result<(String, String)> {
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
pub(super) fn printable(text: &str) -> String {
    counts::without_colours(text)
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

/// The last bytes of a text, cut between characters.
pub(super) fn last(text: &str, bytes: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tasks::blocking(work)
        .await
        .map_err(|error| GitError::Interrupted { reason: error.to_string() })?
}

pub(super) fn milliseconds(from: DateTime<Utc>, to: DateTime<Utc>) -> u64 {
    u64::try_from((to - from).num_milliseconds()).unwrap_or(0)
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
