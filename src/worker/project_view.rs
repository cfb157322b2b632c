//! The project as an agent sees it: its worktree at the project's own path, with what was prepared for checks, so that
//! it can run the tests that the team is going to run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::job::JobSpec;
use super::run_error::RunAgentError;
use super::worker::Worker;
use crate::agents::{Confinement, ProjectView, REPOSITORY, RunSpec};
use crate::git::{self, EnvironmentStore, PreparedEnvironment, Worktree};
use crate::platform::layers::{self, Layers, UpperLayer};
use crate::platform::{files, places, tasks};

/// Lets a run see its worktree so, where a sandbox can show it there. What it was lent is for the caller to hold until the
/// run is over.
pub(super) async fn show(
    worker: &Worker,
    job: &JobSpec,
    worktree: &Worktree,
    run: &mut RunSpec,
) -> Result<Vec<PreparedEnvironment>, RunAgentError> {
    let parts = &worker.parts;
    let confinement = parts.driver.confinement(job.run.agent.sandbox()).await;
    let project = parts.project.path();
    if !matches!(confinement, Some(Confinement::Bubblewrap(_))) || !is_free(project, run) {
        return Ok(Vec::new());
    }
    let store = EnvironmentStore::at(&job.environments.store);
    let (keys, apart) = (job.environments.keys.clone(), job.environments.apart.clone());
    let mut lent = tasks::blocking(move || store.find_all(&keys, &apart)).await??;
    let own = worktree.path();
    let is_layered = match own.parent() {
        Some(above) if !lent.is_empty() => layers::work_in(above).await,
        Some(_) | None => false,
    };
    // What several roles read is no place for a copy.
    if !is_layered && worktree.is_shared() {
        lent.clear();
    }
    if !lent.is_empty() {
        let (worktree, lent) = (worktree.clone(), lent.clone());
        tasks::blocking(move || git::checks::lend(&lent, &worktree, is_layered)).await??;
    }
    let git_link = run.run_dir.join("git-link");
    files::create_dir_all(&run.run_dir)?;
    files::write_private(&git_link, worktree.link_to(Path::new(REPOSITORY)))?;
    let mut layers = None;
    if is_layered {
        let mut lower: Vec<PathBuf> = lent.iter().map(PreparedEnvironment::files).collect();
        let upper = UpperLayer { folder: own.clone(), work: own.with_file_name("layers") };
        let upper = Some(upper).filter(|_| job.may_write);
        if upper.is_none() {
            lower.insert(0, own);
        }
        let all = Layers { merged: run.run_dir.join("project"), upper, lower };
        layers::make_way(std::slice::from_ref(&all))?;
        layers = Some(all);
    }
    let (prepared, readable) = homes(&lent);
    run.surroundings.prepared = prepared;
    let locks = lent.iter().map(|one| one.folder().to_owned()).collect();
    run.surroundings.project =
        Some(ProjectView { path: project.to_owned(), git_link, layers, readable, locks });
    Ok(lent)
}

/// Whether nothing of what a run needs lies where its worktree would be seen.
fn is_free(project: &Path, run: &RunSpec) -> bool {
    let taken = ["/", "/tmp", "/var/tmp", "/run", "/dev", "/proc"].map(PathBuf::from);
    let around = &run.surroundings;
    let needed = [&run.session_dir, &run.run_dir, &run.worktree];
    let needed = needed.into_iter().chain(&around.readable).chain(&around.shared);
    !taken.iter().any(|one| one == project)
        && !needed.clone().any(|path| path.starts_with(project) || project.starts_with(path))
        && !places::home().is_some_and(|home| home.starts_with(project))
}

/// Where in a home tools look for what they have downloaded, and how they are told of another place: the variable, and
/// what stands before the path in it.
const DOWNLOADS: [(&str, &str, &str); 4] = [
    (".cache/cargo", "CARGO_HOME", ""),
    ("go/pkg/mod", "GOMODCACHE", ""),
    (".m2/repository", "MAVEN_OPTS", "-Dmaven.repo.local="),
    (".gradle/caches", "GRADLE_RO_DEP_CACHE", ""),
];

/// What was prepared in a home, as tools are told of it.
fn homes(lent: &[PreparedEnvironment]) -> (BTreeMap<String, String>, Vec<PathBuf>) {
    let mut told = BTreeMap::new();
    let mut readable = Vec::new();
    for (below, name, before) in DOWNLOADS {
        let found = lent.iter().map(|one| one.home().join(below)).find(|path| files::exists(path));
        // Maven takes its words apart at blanks.
        let is_whole = |path: &PathBuf| {
            before.is_empty() || !path.to_string_lossy().contains(char::is_whitespace)
        };
        if let Some(path) = found.filter(is_whole) {
            told.insert(name.to_owned(), format!("{before}{}", path.display()));
            readable.push(path);
        }
    }
    (told, readable)
}
