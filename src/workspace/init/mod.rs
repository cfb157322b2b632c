//! Writing a workspace (`spec/teams.md` 3.1 and 3.3): fresh, refreshed, reset.
//!
//! Both configuration files are written last, so that a folder that has them is complete; a run that
//! was cut off is finished by the next one. Nothing that a person edited is destroyed.

mod history;
mod options;
mod plan;
mod written;

use std::path::{Path, PathBuf};

use super::error::{ConfigError, MAX_CONFIG_BYTES};
use super::open::{Workspace, with_texts};
use super::routes::ROUTES_FILE;
use super::{DISCORD_FILE, RESET_FILE, RUNTIME_FILE, is_workspace};
use crate::assets::AssetError;
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::platform::clock;
use crate::platform::files::{self, FileError};
pub use options::{Mode, Options};
use plan::{PlannedFile, plan};
use written::Written;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whether all files were written, or only newer prompt texts.
    pub refreshed: bool,
    /// How many files were written.
    pub written: usize,
    /// Edited files that stayed, with the newer text put beside them.
    pub beside: Vec<(PathBuf, PathBuf)>,
    /// Where a reset put what there was.
    pub backup: Option<PathBuf>,
}

/// Why a workspace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A built-in file is missing or wrong.
    #[error(transparent)]
    Asset(#[from] AssetError),
    /// The record of what was written is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A refresh or reset of something that is no workspace.
    #[error("{} is not a workspace", .0.display())]
    NotAWorkspace(PathBuf),
    /// A reset of what lies on several disks.
    #[error("{} is on another disk than the workspace, and cannot be moved aside", .0.display())]
    OtherDisk(PathBuf),
    /// A reset of settings of which nothing can be read.
    #[error("{} cannot be read, so that it is not known which project is meant", .0.display())]
    UnknownProject(PathBuf),
    /// The folder has a file that the scaffold would overwrite.
    #[error("{} is there already and is not ours", .0.display())]
    Conflict(PathBuf),
}

impl InitError {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            InitError::NotAWorkspace(_) => {
                Some("`teams init` without options makes one".to_owned())
            }
            InitError::Conflict(_) => {
                Some("move it away, or name another folder with `--workspace-root`".to_owned())
            }
            InitError::OtherDisk(_) => {
                Some("move it away by hand, or unmount it; then reset again".to_owned())
            }
            InitError::UnknownProject(_) => {
                Some("mend the file as far as `project:` goes, then reset again".to_owned())
            }
            InitError::Config(error) => error.hint(),
            InitError::File(_) | InitError::Asset(_) => None,
        }
    }
}

/// The texts of the two configuration files that `init` would write, Discord's first.
pub(super) fn config_texts(options: &Options) -> Result<[String; 2], InitError> {
    let mut files = plan(options)?;
    let mut text = |name: &str| {
        let found = files.iter_mut().find(|file| file.path == Path::new(name));
        found.map(|file| std::mem::take(&mut file.text)).unwrap_or_default()
    };
    Ok([text(DISCORD_FILE), text(RUNTIME_FILE)])
}

/// Whether there is a workspace at `root`, or a part of one.
#[must_use]
pub fn is_one(root: &Path) -> bool {
    [RUNTIME_FILE, DISCORD_FILE].iter().any(|file| files::exists(&root.join(file)))
}

/// Writes the workspace at `root`. Must not run while a team serves it; the caller holds the lock.
pub fn init(root: &Path, options: &Options) -> Result<Report, InitError> {
    let either = is_one(root);
    if options.mode != Mode::Reset && files::exists(&root.join(RESET_FILE)) {
        return Err(ConfigError::HalfReset { root: root.to_owned() }.into());
    }
    match options.mode {
        Mode::Refresh if !either => Err(InitError::NotAWorkspace(root.to_owned())),
        Mode::Refresh => refresh(root, options),
        Mode::Auto if is_workspace(root) => refresh(root, options),
        Mode::Auto => fresh(root, options),
        // Without this a mistyped folder would lose its `logs` and `internal`.
        Mode::Reset if !either => Err(InitError::NotAWorkspace(root.to_owned())),
        Mode::Reset => reset(root, options),
    }
}

/// Writes what is missing; what is there must be ours, except for the configuration, which is kept.
fn fresh(root: &Path, options: &Options) -> Result<Report, InitError> {
    let plan = plan(options)?;
    let mut record = Written::read(root)?;
    let mut missing = Vec::new();
    for file in &plan {
        let path = root.join(&file.path);
        match files::read_settings(&path, MAX_CONFIG_BYTES)? {
            None => missing.push(file),
            Some(text)
                if text == file.text || file.is_config() || record.wrote(&file.path, &text) => {}
            Some(_) if file.path == Path::new("COMMIT_POLICY.md") => {}
            Some(_) => return Err(InitError::Conflict(path)),
        }
    }
    files::create_dir_all(&root.join(".teams_runtime"))?;
    let born = root.join(super::BORN_FILE);
    if !files::exists(&born) {
        files::write_durable(&born, Timestamp::new(clock::now()).to_string())?;
    }
    if super::project_default(root) != root {
        // The workspace lies inside its project: one file hides all of it from git.
        let ignore = root.join(".gitignore");
        if !files::exists(&ignore) {
            files::write_durable(&ignore, "*\n")?;
        }
    }
    for file in &plan {
        record.note(&file.path, &file.text);
    }
    record.save(root)?;
    for file in &missing {
        write(root, file)?;
    }
    Ok(Report { refreshed: false, written: missing.len(), beside: Vec::new(), backup: None })
}

/// Brings newer prompt texts. An edited one stays, and the newer text is put beside it.
fn refresh(root: &Path, options: &Options) -> Result<Report, InitError> {
    let mut record = Written::read(root)?;
    let mut report = Report { refreshed: true, written: 0, beside: Vec::new(), backup: None };
    for file in plan(options)?.iter().filter(|file| file.is_prompt) {
        let path = root.join(&file.path);
        match files::read_text_if_present(&path)? {
            Some(text) if text == file.text => {}
            Some(text) if !record.wrote(&file.path, &text) => {
                let beside = beside(&path);
                if files::read_text_if_present(&beside)?.as_deref() != Some(&file.text) {
                    files::write_durable(&beside, &file.text)?;
                }
                report.beside.push((path, beside));
                continue;
            }
            Some(_) | None => {
                write(root, file)?;
                report.written += 1;
            }
        }
        record.note(&file.path, &file.text);
    }
    record.save(root)?;
    Ok(report)
}

/// Begins again. What there was is moved into a folder beside, whole, and stays there. One that was cut off goes on: what
/// is in that folder already was moved by it, and what stands in its place is new.
fn reset(root: &Path, options: &Options) -> Result<Report, InitError> {
    let options = &with_project(root, options)?;
    let state = files::list(&root.join(STATE))?;
    let all = state.iter().cloned().chain(goes_aside().map(|name| root.join(name)));
    refuse_other_disks(root, all)?;
    let mark = root.join(RESET_FILE);
    let begun = files::read_text_if_present(&mark)?;
    let backup = match begun.as_deref().map(str::trim).filter(|name| is_backup(name)) {
        Some(begun) => root.join(begun),
        None => {
            let backup = backup_folder(root);
            let name = backup.file_name().unwrap_or_default();
            files::write_durable(&mark, name.as_encoded_bytes())?;
            backup
        }
    };
    files::create_dir_all(&backup.join(STATE))?;
    let runtime = root.join(RUNTIME_FILE);
    // A copy: until the folder is a workspace again, a second reset must find it to be one.
    if let Some(text) = files::read_if_present(&runtime)? {
        let kept = backup.join(RUNTIME_FILE);
        match files::read_if_present(&kept)? {
            None => files::write_private_durable(&kept, text)?,
            // Written since the first one was cut off, by it or by a person.
            Some(first) if first != text => files::write_private_durable(&beside(&kept), text)?,
            Some(_) => {}
        }
    }
    let kept = history::take(root)?;
    for name in goes_aside() {
        put_aside(&root.join(name), &backup.join(name))?;
    }
    for path in state {
        let name = path.file_name().unwrap_or_default();
        // The lock stays: whoever resets holds it until the new files are there.
        if name != LOCK_NAME {
            put_aside(&path, &backup.join(STATE).join(name))?;
        }
    }
    files::sync_dir(&backup.join(STATE))?;
    files::sync_dir(&backup)?;
    files::sync_dir(root)?;
    // Last, and only where the Discord file still marks the folder as ours: otherwise it is replaced.
    let fresh_runtime =
        plan(options)?.into_iter().find(|file| file.path == Path::new(RUNTIME_FILE));
    let replaces = files::exists(&runtime);
    let mut report = fresh(root, options)?;
    if let Some(file) = fresh_runtime {
        write(root, &file)?;
        report.written += usize::from(replaces);
    }
    history::put_back(root, &kept)?;
    files::remove_file(&mark)?;
    files::sync_dir(root)?;
    report.backup = Some(backup);
    Ok(report)
}

/// What a reset moves away, beside the state.
fn goes_aside() -> impl Iterator<Item = &'static str> {
    ["README.md", "communication_protocol.md", "file_contracts.md", ROUTES_FILE]
        .into_iter()
        .chain([".agents", "internal", "lifecycles", "logs", "shared_workspace"])
        .chain(Role::PUBLIC.map(Role::as_str))
}

/// What lies on another disk cannot be moved into the workspace's: seen before anything is.
fn refuse_other_disks(root: &Path, all: impl Iterator<Item = PathBuf>) -> Result<(), InitError> {
    let own = files::disk_of(&files::canonicalize(root)?)?;
    for path in all {
        match files::disk_of(&path) {
            Ok(disk) if disk != own => return Err(InitError::OtherDisk(path)),
            Ok(_) => {}
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The workspace that would be written at `root`, without writing it.
pub fn imagine(root: &Path, options: &Options) -> Result<Workspace, InitError> {
    let [discord, runtime] = config_texts(options)?;
    // What is there stays.
    let text = |name: &str, new: String| -> Result<String, FileError> {
        Ok(files::read_text_if_present(&root.join(name))?.unwrap_or(new))
    };
    Ok(with_texts(root, &text(DISCORD_FILE, discord)?, &text(RUNTIME_FILE, runtime)?)?)
}

/// The settings begin again, and the project stays the one that it was, also where something else in them cannot be
/// read.
fn with_project(root: &Path, options: &Options) -> Result<Options, InitError> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Settings {
        project: Place,
    }
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Place {
        path: Option<PathBuf>,
        branch: Option<String>,
    }
    let path = root.join(RUNTIME_FILE);
    let Some(text) = files::read_text_if_present(&path)? else { return Ok(options.clone()) };
    let Ok(settings) = serde_yaml::from_str::<Settings>(&text) else {
        return match options.project.is_some() {
            true => Ok(options.clone()),
            false => Err(InitError::UnknownProject(path)),
        };
    };
    let (options, was) = (options.clone(), settings.project);
    Ok(Options {
        project: options.project.or(was.path),
        branch: options.branch.or(was.branch),
        ..options
    })
}

/// The folder of the state, and its lock.
const STATE: &str = ".teams_runtime";
const LOCK_NAME: &str = "lock";

/// A folder in the workspace for what a reset takes away; it lies within, so that git does not see it either.
fn backup_folder(root: &Path) -> PathBuf {
    let stamp = Timestamp::new(clock::now()).format_in(chrono_tz::Tz::UTC, "%Y%m%d-%H%M%SZ");
    let mut name = format!("{BACKUP}{stamp}");
    let mut number = 1;
    while files::exists(&root.join(&name)) {
        number += 1;
        name = format!("{BACKUP}{stamp}-{number}");
    }
    root.join(name)
}

/// What the name of such a folder begins with.
const BACKUP: &str = "before-reset-";

fn is_backup(name: &str) -> bool {
    name.starts_with(BACKUP) && !name.contains('/')
}

/// Moves what is there, where that was not done already.
fn put_aside(from: &Path, to: &Path) -> Result<(), FileError> {
    if files::exists(to) {
        return Ok(());
    }
    match files::rename(from, to) {
        Err(error) if error.is_missing() => Ok(()),
        moved => moved,
    }
}

fn write(root: &Path, file: &PlannedFile) -> Result<(), InitError> {
    let path = root.join(&file.path);
    if let Some(folder) = path.parent() {
        files::create_dir_all(folder)?;
    }
    match file.is_config() {
        // People keep their settings from others' eyes, or behind a link.
        true => files::rewrite_durable(&path, &file.text)?,
        false => files::write_durable(&path, &file.text)?,
    }
    if path.extension().is_some_and(|extension| extension == "sh") {
        files::set_mode(&path, 0o755)?;
    }
    Ok(())
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests;
