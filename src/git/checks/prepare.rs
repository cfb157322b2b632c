//! What is made ready before checks run: `prepare:` commands, each run once for each state of the files that decide
//! about it, in a clean tree at the project's own path.
//!
//! A command that prepares runs the code of strangers: whatever a lock file names. So one is run only for files that
//! the project's branch has, in a tree of the branch, or where a person has agreed to the files that a change alters.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{ObjectType, Tree};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::command::{
    self, CheckFolders, Output, clear_outside, execute, last, milliseconds, off_thread, printable,
};
use super::environments::{EnvironmentRecord, EnvironmentStore, PreparedEnvironment, size};
use super::plan::{CheckPlan, CheckSpec, PrepareSpec};
use super::preparation_owner::{Consent, PreparationOwner};
use super::times::{is_behind_link, touch};
use super::view::{Folder, OWN};
use crate::domain::config::CheckNetwork;
use crate::domain::evidence::Isolation;
use crate::domain::preparation::PreparationQuestion;
use crate::domain::time::Timestamp;
use crate::git::trees::TreePool;
use crate::git::{CommitId, GitError, Project, Result, Worktree, content, submodules, tree_diff};
use crate::platform::ask::ask;
use crate::platform::confinement::Confinement;
use crate::platform::supervise::EndedBy;
use crate::platform::{clock, files, layers, places, spawn};

/// How long a tool may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(60);
/// Bytes of what a command said that are told where it failed.
const TOLD: usize = 1_500;
/// Bytes of output that are kept.
const OUTPUT: u64 = 1_024 * 1_024;

/// Tools by the words of a command, and what is asked for its version: what they make depends on all of these.
const TOOLS: [(&str, &[&str]); 27] = [
    ("uv", &["uv", "python3"]),
    ("pip", &["python3"]),
    ("pip3", &["python3"]),
    ("python", &["python"]),
    ("python3", &["python3"]),
    ("poetry", &["poetry", "python3"]),
    ("npm", &["npm", "node"]),
    ("npx", &["npm", "node"]),
    ("node", &["node"]),
    ("pnpm", &["pnpm", "node"]),
    ("yarn", &["yarn", "node"]),
    ("bun", &["bun"]),
    ("cargo", &["cargo", "rustc"]),
    ("rustc", &["rustc"]),
    ("go", &["go"]),
    ("mvn", &["mvn"]),
    ("mvnw", &["java"]),
    ("gradle", &["gradle"]),
    ("gradlew", &["java"]),
    ("just", &["just"]),
    ("java", &["java"]),
    ("bundle", &["bundle", "ruby"]),
    ("composer", &["composer", "php"]),
    ("dotnet", &["dotnet"]),
    ("cmake", &["cmake", "cc"]),
    ("make", &["make", "cc"]),
    ("cc", &["cc"]),
];

/// All that decides about an environment.
#[derive(Debug, Serialize)]
struct KeyParts<'a> {
    command: &'a [String],
    env: &'a BTreeMap<String, String>,
    secrets: Vec<&'a str>,
    read: &'a [PathBuf],
    network: CheckNetwork,
    inputs: &'a Inputs,
    versions: &'a [String],
    system: (&'a str, &'a str),
    project: &'a Path,
    isolation: Isolation,
}

/// The named files and folders as git has them in a tree.
type Inputs = BTreeMap<PathBuf, Option<String>>;

/// An entry of the configuration beside a commit.
#[derive(Debug)]
struct RequestedEnvironment<'a> {
    spec: &'a PrepareSpec,
    key: String,
    inputs: Inputs,
}

/// The keys of the environments that a commit asks for, in order.
///
/// # Errors
/// Where the repository cannot be read.
pub async fn keys(
    project: &Project,
    commit: CommitId,
    plan: &CheckPlan,
    isolation: Isolation,
) -> Result<Vec<String>> {
    Ok(wanted(project, commit, plan, isolation).await?.into_iter().map(|one| one.key).collect())
}

async fn wanted<'a>(
    project: &Project,
    commit: CommitId,
    plan: &'a CheckPlan,
    isolation: Isolation,
) -> Result<Vec<RequestedEnvironment<'a>>> {
    let mut all = Vec::new();
    for spec in &plan.prepare {
        let inputs = inputs(project, commit, spec).await?;
        let versions = versions(&spec.command).await;
        let parts = KeyParts {
            command: &spec.command,
            env: &spec.env,
            secrets: spec.secrets.keys().map(String::as_str).collect(),
            read: &spec.read,
            network: spec.network,
            inputs: &inputs,
            versions: &versions,
            system: (std::env::consts::OS, std::env::consts::ARCH),
            project: project.path(),
            isolation,
        };
        let text = serde_json::to_vec(&parts)
            .map_err(|error| GitError::Interrupted { reason: error.to_string() })?;
        all.push(RequestedEnvironment { spec, key: hex(&text), inputs });
    }
    Ok(all)
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn inputs(project: &Project, commit: CommitId, spec: &PrepareSpec) -> Result<Inputs> {
    let (project, paths) = (project.clone(), spec.files.clone());
    off_thread(move || {
        let repository = project.repository()?;
        let tree = repository.find_commit(commit.0)?.tree()?;
        let id = |path: &PathBuf| tree.get_path(path).ok().map(|entry| entry.id().to_string());
        Ok(paths.into_iter().map(|path| (path.clone(), id(&path))).collect())
    })
    .await
}

/// What the tools that a command names say of their versions.
async fn versions(command: &[String]) -> Vec<String> {
    let words = command
        .iter()
        .flat_map(|word| word.split(|c: char| c.is_whitespace() || ";&|()".contains(c)));
    let mut tools = BTreeSet::new();
    for word in words {
        let word = word.rsplit('/').next().unwrap_or(word);
        if let Some((_, asked)) = TOOLS.iter().find(|(name, _)| *name == word) {
            tools.extend(asked.iter().copied());
        }
    }
    let path = std::env::var_os("PATH");
    let mut env = places::tools_environment();
    for name in ["PATH", "HOME"] {
        if let Ok(value) = std::env::var(name) {
            env.insert(name.to_owned(), value);
        }
    }
    let mut all = Vec::new();
    for tool in tools {
        let Some(program) = spawn::find_program(tool, path.as_deref()) else { continue };
        let word = if tool == "go" { "version" } else { "--version" };
        let said = ask(&program, &[word], &env, VERSION_LIMIT).await;
        // One that says nothing is told by the command.
        let said = said.map(|said| said.stdout).unwrap_or_default();
        all.push(format!("{tool}: {}", said.trim()));
    }
    all
}

/// The environments that checks at a commit need, prepared where they are not there yet, one after the other.
///
/// # Errors
/// [`GitError::PreparationAsked`] where a person has to agree first, [`GitError::Prepare`] where a command fails.
pub(super) async fn ready(
    project: &Project,
    commit: CommitId,
    plan: &CheckPlan,
    confinement: &Confinement,
    whose: &PreparationOwner,
    stop: &CancellationToken,
) -> Result<Vec<PreparedEnvironment>> {
    if plan.prepare.is_empty() {
        return Ok(Vec::new());
    }
    // Who comes second finds what the first one made.
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _one = tokio::select! {
        one = ONE.lock() => one,
        () = stop.cancelled() => {
            return Err(GitError::Interrupted { reason: "the checks were stopped".to_owned() });
        }
    };
    let isolation = command::isolation(plan, confinement)?;
    let store = EnvironmentStore::at(&plan.environments);
    let mut found = Vec::new();
    let mut asked = Vec::new();
    for wanted in wanted(project, commit, plan, isolation).await? {
        let known = {
            let (store, key, whose) = (store.clone(), wanted.key.clone(), whose.clone());
            off_thread(move || store.find(&key, &whose.apart)).await?
        };
        let is_trusted = commit == whose.trusted
            || inputs(project, whose.trusted, wanted.spec).await? == wanted.inputs;
        match known {
            Some(environment) => found.push(Ok(environment)),
            None if is_trusted => found.push(Err((wanted, whose.trusted, false))),
            None => {
                asked.push(wanted.key.clone());
                found.push(Err((wanted, commit, true)));
            }
        }
    }
    let digest = hex(asked.join(" ").as_bytes());
    let agreed = match &whose.consent {
        Consent::None => false,
        Consent::To(to) => *to == digest,
        Consent::Operator => true,
    };
    if !asked.is_empty() && !agreed {
        let specs =
            found.iter().filter_map(|one| one.as_ref().err()).filter(|(_, _, is_apart)| *is_apart);
        let specs: Vec<&RequestedEnvironment<'_>> = specs.map(|(wanted, _, _)| wanted).collect();
        return Err(GitError::PreparationAsked(Box::new(
            question(project, &specs, digest, whose.trusted).await?,
        )));
    }
    let mut all = Vec::new();
    for one in found {
        all.push(match one {
            Ok(environment) => environment,
            Err((wanted, at, is_apart)) => {
                let making =
                    PreparationJob { project, plan, confinement, isolation, store: &store, stop };
                making.make(&wanted, at, is_apart.then_some(whose)).await?
            }
        });
    }
    Ok(all)
}

async fn question(
    project: &Project,
    asked: &[&RequestedEnvironment<'_>],
    digest: String,
    trusted: CommitId,
) -> Result<PreparationQuestion> {
    let mut changed = BTreeSet::new();
    let mut secrets = BTreeSet::new();
    for wanted in asked {
        let before = inputs(project, trusted, wanted.spec).await?;
        let differs = wanted.inputs.iter().filter(|(path, id)| before.get(*path) != Some(*id));
        changed.extend(differs.map(|(path, _)| path.to_string_lossy().into_owned()));
        secrets.extend(wanted.spec.secrets.keys().cloned());
    }
    Ok(PreparationQuestion {
        digest,
        files: changed.into_iter().collect(),
        commands: asked.iter().map(|wanted| wanted.spec.command.join(" ")).collect(),
        has_network: asked.iter().any(|wanted| wanted.spec.network == CheckNetwork::Host),
        secrets: secrets.into_iter().collect(),
    })
}

/// Forgets what was prepared for a commit, so that it is made anew.
///
/// # Errors
/// Where the disk does.
pub async fn forget(
    project: &Project,
    commit: CommitId,
    plan: &CheckPlan,
    confinement: &Confinement,
) -> Result<()> {
    let store = EnvironmentStore::at(&plan.environments);
    for key in keys(project, commit, plan, command::isolation(plan, confinement)?).await? {
        store.forget(&key)?;
    }
    Ok(())
}

/// Where and by what something is prepared.
struct PreparationJob<'a> {
    project: &'a Project,
    plan: &'a CheckPlan,
    confinement: &'a Confinement,
    isolation: Isolation,
    store: &'a EnvironmentStore,
    stop: &'a CancellationToken,
}

impl PreparationJob<'_> {
    /// Runs the command in the files of a commit, and keeps what it leaves; apart where somebody is named.
    async fn make(
        &self,
        wanted: &RequestedEnvironment<'_>,
        commit: CommitId,
        apart: Option<&PreparationOwner>,
    ) -> Result<PreparedEnvironment> {
        let store = self.store.clone();
        let (part, _lock) = off_thread(move || store.begin()).await?;
        let made = self.make_in(&part, wanted, commit, apart).await;
        off_thread(move || {
            clear_outside(&part.join("run"))?;
            Ok(files::remove_dir_all(&part)?)
        })
        .await?;
        made
    }

    async fn make_in(
        &self,
        part: &Path,
        wanted: &RequestedEnvironment<'_>,
        commit: CommitId,
        apart: Option<&PreparationOwner>,
    ) -> Result<PreparedEnvironment> {
        let begun = clock::now();
        let spec = wanted.spec;
        let place = {
            let (project, plan, isolation) =
                (self.project.clone(), self.plan.clone(), self.isolation);
            let (store, part, is_apart) = (self.store.clone(), part.to_owned(), apart.is_some());
            off_thread(move || {
                let cache = store.cache(&part, is_apart)?;
                let seen = if isolation.is_isolated() {
                    Path::new(OWN).join("cache")
                } else {
                    cache.clone()
                };
                let mut place =
                    CheckFolders::make(&project, commit, &plan, isolation, &part.join("run"), &[])?;
                place.env.extend(caches(&seen));
                place.layout.cache = Some(Folder { lies: cache, seen });
                Ok(place)
            })
            .await?
        };
        let mut env = spec.env.clone();
        env.extend(
            spec.secrets.iter().map(|(name, it)| (name.clone(), it.expose_secret().to_owned())),
        );
        let command = CheckSpec {
            name: spec.name.clone(),
            command: spec.command.clone(),
            timeout: spec.timeout,
            output_limit: OUTPUT,
            env,
            read: spec.read.clone(),
            report: None,
            network: spec.network,
        };
        let (run_dir, exit) =
            execute(self.plan, &command, 1, &place, self.confinement, self.stop).await?;
        if self.stop.is_cancelled() {
            return Err(GitError::Interrupted { reason: "the preparation was stopped".to_owned() });
        }
        let (plan, spec) = (self.plan.clone(), spec.clone());
        let (key, apart, part, store) =
            (wanted.key.clone(), apart.cloned(), part.to_owned(), self.store.clone());
        off_thread(move || {
            let output = Output::read(&run_dir)?;
            let failed = |reason: String| GitError::Prepare { name: spec.name.clone(), reason };
            if exit.ended_by != EndedBy::Exit || exit.code != Some(0) {
                return Err(failed(why(&exit, &output, &spec, isolation_of(&place))));
            }
            let made = collect(&place, &part, commit).map_err(|error| match error {
                CollectError::Tracked(paths) => failed(format!(
                    "it changed files of the project ({}); use a command that keeps to its lock file",
                    paths.join(", ")
                )),
                CollectError::Git(error) => error,
            })?;
            let secrets: Vec<&str> = spec.secrets.values().map(|it| it.expose_secret()).collect();
            let (to_files, to_home) = EnvironmentStore::result(&part);
            for made in [&to_files, &to_home] {
                if let Some(path) = holds_secret(made, &secrets)? {
                    let path = path.strip_prefix(made).unwrap_or(&path).display().to_string();
                    return Err(failed(format!(
                        "it left a secret in {path}, which checks and agents would be given; remove it at the end of the command"
                    )));
                }
            }
            let layout = &place.layout;
            TreePool::at(&plan.trees).keep(&layout.tree.lies, &layout.seen)?;
            let record = EnvironmentRecord {
                name: spec.name.clone(),
                command: spec.command.clone(),
                commit: commit.to_string(),
                made_at: Timestamp::new(clock::now()),
                duration_ms: milliseconds(begun, clock::now()),
                bytes: size(&to_files)?.saturating_add(size(&to_home)?),
                made,
            };
            store.keep(&part, &key, record, apart.as_ref().map(|whose| whose.apart.as_str()))
        })
        .await
    }
}

/// Files above this are what was fetched, and no settings, in bytes.
const SETTINGS: u64 = 256 << 10;

/// The first small file below a folder that holds one of the secrets.
fn holds_secret(folder: &Path, secrets: &[&str]) -> Result<Option<PathBuf>> {
    let secrets: Vec<&str> = secrets.iter().copied().filter(|it| it.len() >= 6).collect();
    let Ok(finder) = aho_corasick::AhoCorasick::new(&secrets) else { return Ok(None) };
    if secrets.is_empty() {
        return Ok(None);
    }
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for path in files::list(&folder)? {
            let found = files::symlink_metadata(&path)?;
            if found.is_dir() {
                left.push(path);
            } else if found.is_file()
                && found.len() <= SETTINGS
                && files::read(&path).is_ok_and(|text| finder.is_match(&text))
            {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

fn isolation_of(place: &CheckFolders) -> Isolation {
    place.layout.isolation
}

/// Where tools keep what they have downloaded, from one preparation to the next. What they make is never linked to it:
/// a write there would change what others were given.
fn caches(seen: &Path) -> BTreeMap<String, String> {
    let at = |name: &str| seen.join(name).to_string_lossy().into_owned();
    [
        ("npm_config_cache", at("npm")),
        ("npm_config_store_dir", at("pnpm")),
        ("npm_config_package_import_method", "copy".to_owned()),
        ("UV_CACHE_DIR", at("uv")),
        ("UV_LINK_MODE", "copy".to_owned()),
        ("PIP_CACHE_DIR", at("pip")),
        ("POETRY_CACHE_DIR", at("poetry")),
        ("POETRY_VIRTUALENVS_IN_PROJECT", "true".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Why a command did not prepare anything, in a few lines.
fn why(
    exit: &crate::platform::supervise::Exit,
    output: &Output,
    spec: &PrepareSpec,
    isolation: Isolation,
) -> String {
    if let Some(error) = output.not_started(exit, isolation).or_else(|| exit.error.clone()) {
        return format!("it could not be started: {error}");
    }
    let how = match (exit.ended_by, exit.code) {
        (EndedBy::Wall, _) => format!(
            "it did not end within {} s; it has no terminal to ask at, and `timeout_seconds` gives it longer",
            spec.timeout.as_secs()
        ),
        (_, Some(code)) => {
            format!("it ended with exit code {code}; it has no terminal and no input")
        }
        (_, None) => "it was ended from outside".to_owned(),
    };
    let said = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
    let said = printable(said);
    let said = last(said.trim(), TOLD);
    if said.is_empty() { how } else { format!("{how}\n{said}") }
}

/// Why what a command made could not be taken.
enum CollectError {
    /// It changed these files of the project.
    Tracked(Vec<String>),
    /// Something else.
    Git(GitError),
}

impl<E: Into<GitError>> From<E> for CollectError {
    fn from(error: E) -> Self {
        CollectError::Git(error.into())
    }
}

/// Moves what a command left beside the files of its commit, and in its home, to where it is kept from; tells the
/// outermost paths.
fn collect(
    place: &CheckFolders,
    part: &Path,
    commit: CommitId,
) -> std::result::Result<Vec<PathBuf>, CollectError> {
    let (to_files, to_home) = EnvironmentStore::result(part);
    files::create_dir_all(&to_files)?;
    let layout = &place.layout;
    let dir = &layout.tree.lies;
    let view = content::view(place.project.repository()?, dir)?;
    let tree = view.find_commit(commit.0)?.tree()?;
    let made = content::beside(&tree, dir)?;
    for path in &made {
        let target = to_files.join(path);
        if let Some(above) = target.parent() {
            files::create_dir_all(above)?;
        }
        take(&dir.join(path), &target)?;
    }
    let now = match content::write_tree(&view, place.project.filters(), &tree, &layout.seen) {
        Err(GitError::InsideSubmodule { file, .. }) => {
            return Err(CollectError::Tracked(vec![file.display().to_string()]));
        }
        Err(GitError::SubmoduleList { .. }) => {
            return Err(CollectError::Tracked(vec![submodules::LIST.to_owned()]));
        }
        now => now?,
    };
    if now != tree.id() {
        let changed = tree_diff::changes(&view, &tree, &view.find_tree(now)?)?;
        return Err(CollectError::Tracked(changed.into_iter().map(|it| it.path).take(5).collect()));
    }
    take(&layout.home.lies, &to_home)?;
    Ok(made)
}

/// Moves a file or folder, to another file system as well.
fn take(from: &Path, to: &Path) -> Result<()> {
    if files::rename(from, to).is_ok() {
        return Ok(());
    }
    layers::copy(from, to)?;
    Ok(files::remove_any(from)?)
}

/// Removes what lies at a path, but for what a tree has there.
fn remove_untracked(base: &Tree<'_>, dir: &Path, path: &Path) -> Result<()> {
    let target = dir.join(path);
    let is_folder = files::symlink_metadata(&target).is_ok_and(|found| found.is_dir());
    match base.get_path(path).map(|entry| entry.kind()) {
        Ok(Some(ObjectType::Tree)) if is_folder => {
            for inside in files::list(&target)? {
                let name = inside.file_name().unwrap_or_default();
                remove_untracked(base, dir, &path.join(name))?;
            }
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(_) => Ok(files::remove_any(&target)?),
    }
}

/// Copies what lies at a path, but for what a tree has there.
fn copy_untracked(base: &Tree<'_>, from: &Path, dir: &Path, path: &Path) -> Result<()> {
    let (source, target) = (from.join(path), dir.join(path));
    let is_folder = files::symlink_metadata(&source).is_ok_and(|found| found.is_dir());
    if files::symlink_metadata(&target).is_ok_and(|found| !found.is_dir()) {
        // An agent may have put a link there, or a file: nothing is written through or into that.
        return Ok(());
    }
    match base.get_path(path).map(|entry| entry.kind()) {
        Ok(Some(ObjectType::Tree)) if is_folder => {
            for inside in files::list(&source)? {
                let name = inside.file_name().unwrap_or_default();
                copy_untracked(base, from, dir, &path.join(name))?;
            }
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(_) => {
            if let Some(above) = target.parent() {
                files::create_dir_all(above)?;
            }
            Ok(layers::copy(&source, &target)?)
        }
    }
}

/// Makes way for environments in the worktree of an agent that nobody is at work in, or, where the kernel does not lay
/// them below it, puts copies there. What an earlier run did to them in there is gone.
///
/// # Errors
/// Where the repository or the disk does.
pub fn lend(
    environments: &[PreparedEnvironment],
    worktree: &Worktree,
    is_layered: bool,
) -> Result<()> {
    let (project, dir, view) = (worktree.project(), worktree.path(), worktree.view()?);
    let base = view.find_commit(worktree.base().0)?.tree()?;
    for environment in environments {
        for path in &environment.record.made {
            // What git does not ignore may be part of the change.
            let is_ignored = view.is_path_ignored(path)? || view.is_path_ignored(path.join(""))?;
            if !is_ignored || is_behind_link(&dir, path) {
                continue;
            }
            let target = dir.join(path);
            // Somebody may have taken into git what is ignored around it.
            let holds_tracked = base.get_path(path).is_ok();
            if holds_tracked {
                remove_untracked(&base, &dir, path)?;
            } else {
                files::remove_any(&target)?;
                layers::show_through(&dir, path);
            }
            if !is_layered && holds_tracked {
                copy_untracked(&base, &environment.files(), &dir, path)?;
            } else if !is_layered {
                if let Some(above) = target.parent() {
                    files::create_dir_all(above)?;
                }
                layers::copy(&environment.files().join(path), &target)?;
            }
        }
    }
    // What was built is older than what the request has changed by now; what several read is as at their base.
    let tree = worktree.settled_tree_id()?;
    environments.iter().try_for_each(|environment| touch(project, environment, tree, &dir))
}
