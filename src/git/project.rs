//! The project: a repository and the branch that the team's work goes to.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;

use git2::{ConfigLevel, ErrorCode, Index, ObjectType, Oid, Repository, RepositoryState};
use serde::{Deserialize, Serialize};

use super::filter::{self, Filters};
use super::path_name::name_of;
use super::submodules::Submodules;
use super::tracked::{as_path, of_tree, open_index, read_tree};
use super::{GitError, Result, content};
use crate::platform::files;

macro_rules! object_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(pub(super) Oid);

        impl FromStr for $name {
            type Err = GitError;
            fn from_str(text: &str) -> Result<Self> {
                let bad = || GitError::BadId { text: text.to_owned() };
                if text.len() != 40 {
                    return Err(bad());
                }
                Oid::from_str(text).map(Self).map_err(|_| bad())
            }
        }

        impl TryFrom<String> for $name {
            type Error = GitError;
            fn try_from(text: String) -> Result<Self> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

object_id! {
    /// A commit's full id. Texts from records are parsed into it, so that no name or range gets through.
    CommitId
}
object_id! {
    /// The id of a tree: the content of all files that git would track, and nothing else.
    TreeId
}

/// What stands at a path in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTree {
    /// A file that may be executed, or a link.
    Program,
    /// Any other file.
    Text,
    /// No file.
    Absent,
}

/// A repository and its branch. Cheap to clone and to send: it holds paths and opens what it needs.
#[derive(Debug, Clone)]
pub struct Project {
    path: PathBuf,
    branch: String,
    common: PathBuf,
    filters: Filters,
}

/// What a person has checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckedOut {
    /// A branch, by its name.
    Branch(String),
    /// A commit, and no branch.
    Commit(CommitId),
}

impl Project {
    /// Checks that the team can work in the repository at `path` on `branch`; an empty `branch` means the
    /// one that is checked out there.
    ///
    /// # Errors
    /// [`GitError::NotARepository`], [`GitError::WithinRepository`], [`GitError::Bare`], [`GitError::MissingBranch`],
    /// [`GitError::UnbornBranch`], [`GitError::Detached`], [`GitError::Sha256`].
    pub fn open(path: &Path, branch: &str) -> Result<Self> {
        know_extensions()?;
        let repository = Repository::open(path).map_err(|error| {
            if error.code() == ErrorCode::NotFound {
                let path = path.to_owned();
                let around = Repository::discover(&path).ok();
                match around.as_ref().and_then(Repository::workdir) {
                    Some(root) => GitError::WithinRepository { path, root: root.to_owned() },
                    None => GitError::NotARepository { path },
                }
            } else if error.code() == ErrorCode::Owner {
                GitError::Owner { path: path.to_owned() }
            } else if error.message().contains("object format") {
                GitError::Sha256 { path: path.to_owned() }
            } else {
                GitError::Git(error)
            }
        })?;
        if repository.is_bare() {
            return Err(GitError::Bare { path: path.to_owned() });
        }
        let checked_out = checked_out_branch(&repository)?;
        let branch = match (branch, &checked_out) {
            ("", Some(current)) => current.clone(),
            ("", None) if repository.state() != RepositoryState::Clean => {
                return Err(GitError::OperationInProgress { path: path.to_owned() });
            }
            ("", None) => {
                return Err(GitError::Detached { path: path.to_owned() });
            }
            (named, _) => named.to_owned(),
        };
        let path = files::canonicalize(repository.workdir().unwrap_or(path))?;
        let common = files::canonicalize(repository.commondir())?;
        let filters = Filters::new(&common, BTreeSet::new());
        let project = Self { path, branch, common, filters };
        match project.branch_tip(&repository)? {
            Some(_) => {}
            None if checked_out.as_deref() == Some(project.branch.as_str()) => {
                return Err(GitError::UnbornBranch { branch: project.branch });
            }
            None => {
                return Err(GitError::MissingBranch { branch: project.branch });
            }
        }
        Ok(project)
    }

    /// Refuses a project in which the team could not begin, without touching it.
    ///
    /// # Errors
    /// [`GitError::OperationInProgress`] in the middle of a person's merge or rebase, [`GitError::ReadOnly`],
    /// [`GitError::IndexForm`], [`GitError::Unlisted`].
    pub fn refuse_unready(&self) -> Result<()> {
        if let Err(error) = rustix::fs::access(&self.common, rustix::fs::Access::WRITE_OK) {
            let reason = std::io::Error::from(error).to_string();
            return Err(GitError::ReadOnly { path: self.common.clone(), reason });
        }
        let repository = Repository::open(&self.path)?;
        if repository.state() != RepositoryState::Clean {
            return Err(GitError::OperationInProgress { path: self.path.clone() });
        }
        let index = repository.path().join("index");
        if files::exists(&index) {
            open_index(&index)?;
        }
        let Some(tip) = self.branch_tip(&repository)? else { return Ok(()) };
        let listed = || read_tree(&mut Index::new()?, &repository.find_commit(tip)?.tree()?);
        listed().map(|_| ()).map_err(|error| GitError::Unlisted {
            commit: tip.to_string(),
            reason: error.to_string(),
        })
    }

    /// The same with filters of git's attributes that may be run.
    #[must_use]
    pub fn with_filters(self, allowed: BTreeSet<String>) -> Self {
        Self { filters: Filters::new(&self.common, allowed), ..self }
    }

    /// The filters that may be run.
    pub(super) const fn filters(&self) -> &Filters {
        &self.filters
    }

    /// What a person has checked out in the project's folder.
    ///
    /// # Errors
    /// Where `HEAD` cannot be read.
    pub fn checked_out(&self) -> Result<CheckedOut> {
        let repository = Repository::open(&self.path)?;
        Ok(match checked_out_branch(&repository)? {
            Some(branch) => CheckedOut::Branch(branch),
            None => CheckedOut::Commit(CommitId(repository.head()?.peel_to_commit()?.id())),
        })
    }

    /// Where the project's own working files are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The branch that the team's work goes to.
    #[must_use]
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// The commit at the tip of the branch.
    ///
    /// # Errors
    /// [`GitError::MissingBranch`] where the branch was deleted since.
    pub fn head(&self) -> Result<CommitId> {
        let repository = self.repository()?;
        self.branch_tip(&repository)?
            .map(CommitId)
            .ok_or_else(|| GitError::MissingBranch { branch: self.branch.clone() })
    }

    /// The commit itself where the branch has it, else the tip of the branch.
    ///
    /// # Errors
    /// [`GitError::MissingBranch`] where the branch was deleted since.
    pub fn on_branch(&self, commit: CommitId) -> Result<CommitId> {
        let (head, repository) = (self.head()?, self.repository()?);
        let has_it = head == commit || repository.graph_descendant_of(head.0, commit.0)?;
        Ok(if has_it { commit } else { head })
    }

    /// Writes the files of an exact commit into `dir`, which is made anew: plain files without any link
    /// to the repository, for reviewers and checks.
    pub fn checkout(&self, commit: CommitId, dir: &Path) -> Result<()> {
        files::remove_dir_all(dir)?;
        files::create_dir_all(dir)?;
        let view = content::view(self.repository()?, dir)?;
        let tree = view.find_commit(commit.0)?.tree()?;
        content::write_all(&view, &self.filters, &tree, dir)
    }

    /// Where the submodules lie, at the tip of the branch, whose commits were not fetched: their folders are
    /// empty for the team.
    ///
    /// # Errors
    /// Where the branch or its tree cannot be read.
    pub fn submodules_missing(&self) -> Result<Vec<String>> {
        let repository = self.repository()?;
        let tree = repository.find_commit(self.head()?.0)?.tree()?;
        let tracked = read_tree(&mut Index::new()?, &tree)?;
        let missing = Submodules::of(&repository, &tracked).missing;
        Ok(missing.iter().map(|path| as_path(path).display().to_string()).collect())
    }

    /// What decides the files of a commit beside its tree, as one word: the filters that may run, and which submodules are
    /// not to be had.
    ///
    /// # Errors
    /// What git reports.
    pub fn files_key(&self, commit: CommitId) -> Result<String> {
        let repository = self.repository()?;
        let tracked = of_tree(&repository.find_commit(commit.0)?.tree()?)?;
        let missing = Submodules::of(&repository, &tracked).missing;
        let missing: Vec<String> = missing.iter().map(|path| name_of(path)).collect();
        Ok(format!("{:?} {missing:?}", self.filters.names()))
    }

    /// The filters that files at the tip of the branch are stored through and that may not be run here: those files lie
    /// as git stores them for the team.
    ///
    /// # Errors
    /// Where the branch or its tree cannot be read.
    pub fn filters_missing(&self) -> Result<BTreeSet<String>> {
        let repository = self.repository()?;
        let tree = repository.find_commit(self.head()?.0)?.tree_id();
        let view = content::view(repository, &self.path)?;
        let tracked = read_tree(&mut view.index()?, &view.find_tree(tree)?)?;
        let has_attributes = |path: &&Vec<u8>| as_path(path).ends_with(".gitattributes");
        let own = self.common.join("info/attributes");
        let mut found = BTreeSet::new();
        if tracked.keys().find(has_attributes).is_none() && !files::exists(&own) {
            return Ok(found);
        }
        for path in tracked.keys() {
            found
                .extend(filter::of(&view, as_path(path))?.filter(|name| !self.filters.allow(name)));
        }
        Ok(found)
    }

    /// What stands at a path, relative to the project, in the commit at the tip of the branch.
    ///
    /// # Errors
    /// Where the branch or its tree cannot be read.
    pub fn in_tree(&self, path: &Path) -> Result<InTree> {
        let repository = self.repository()?;
        let tip = self.head()?;
        match repository.find_commit(tip.0)?.tree()?.get_path(&without_dots(path)) {
            Ok(entry) if entry.kind() != Some(ObjectType::Blob) => Ok(InTree::Absent),
            // A link may lead to a program.
            Ok(entry) if matches!(entry.filemode(), 0o100_755 | 0o120_000) => Ok(InTree::Program),
            Ok(_) => Ok(InTree::Text),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(InTree::Absent),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether git ignores a path, relative to the project.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn is_ignored(&self, path: &Path) -> Result<bool> {
        Ok(self.repository()?.is_path_ignored(without_dots(path))?)
    }

    /// Whether git ignores a folder, relative to the project, also where there is none.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn is_ignored_folder(&self, path: &Path) -> Result<bool> {
        // Patterns that end with a slash fit what is named as a folder alone.
        Ok(self.repository()?.is_path_ignored(format!("{}/", without_dots(path).display()))?)
    }

    /// The full name of the branch's ref.
    pub(super) fn branch_ref(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// The repository's shared folder (`.git`).
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        &self.common
    }

    /// A folder of ours beside the objects: staging on the same file system, never part of a commit.
    pub(super) fn private_dir(&self) -> Result<PathBuf> {
        let dir = self.common.join("teams");
        files::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Opens the repository so that every object and ref it writes is synced before the call returns.
    ///
    /// libgit2 reads `core.fsyncObjectFiles`; the key stands in a file of ours, because the git program
    /// warns about it when it finds it in the repository's own configuration. What `core.safecrlf` would refuse is a
    /// warning to a person at their keyboard; agents' files are taken as the rules for line ends make them.
    pub(super) fn repository(&self) -> Result<Repository> {
        let repository = Repository::open(&self.path)?;
        let settings = self.private_dir()?.join("sync.config");
        if files::read_text_if_present(&settings)?.as_deref() != Some(OWN_SETTINGS) {
            files::write_durable(&settings, OWN_SETTINGS)?;
        }
        repository.config()?.add_file(&settings, ConfigLevel::App, true)?;
        Ok(repository)
    }

    /// The commit of the branch, where it exists.
    pub(super) fn branch_tip(&self, repository: &Repository) -> Result<Option<Oid>> {
        tip(repository, &self.branch_ref())
    }
}

/// What holds for git where the team uses it, whatever the repository says.
const OWN_SETTINGS: &str = "[core]\n\tfsyncObjectFiles = true\n\tsafecrlf = false\n";

/// Tells libgit2 about partial clones: nothing has to be fetched for what is there.
fn know_extensions() -> Result<()> {
    static KNOWN: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        #[expect(unsafe_code, reason = "a setting of the whole process, made once")]
        let set = unsafe { git2::opts::set_extensions(&["partialclone"]) };
        set.map_err(|error| error.message().to_owned())
    });
    known.clone().map_err(|error| GitError::Git(git2::Error::from_str(&error)))
}

/// The path as git knows it, which takes `./x` for another one than `x`.
fn without_dots(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

/// The commit that a ref names; none where the ref does not exist.
pub(super) fn tip(repository: &Repository, name: &str) -> Result<Option<Oid>> {
    match repository.find_reference(name) {
        Ok(reference) => Ok(Some(reference.peel_to_commit()?.id())),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The branch that `HEAD` names, born or not; none where it is detached.
pub(super) fn checked_out_branch(repository: &Repository) -> Result<Option<String>> {
    let head = repository.find_reference("HEAD")?;
    let target = head.symbolic_target().ok().flatten();
    Ok(target.and_then(|target| target.strip_prefix("refs/heads/")).map(str::to_owned))
}
