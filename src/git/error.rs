//! What can go wrong with a repository, in words that say what to do.

use std::path::PathBuf;

use crate::domain::preparation::PreparationQuestion;
use crate::platform::files::FileError;

/// Why a git operation could not be done. None of these has half-done anything: the operation can be
/// repeated when the cause is gone.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No repository at the configured path.
    #[error("{} is not a git repository; run `git init` there or correct project.path", path.display())]
    NotARepository {
        /// The configured path.
        path: PathBuf,
    },
    /// A folder within a repository.
    #[error(
        "{} is a folder of the git repository {}; set project.path to that", path.display(), root.display()
    )]
    WithinRepository {
        /// The configured path.
        path: PathBuf,
        /// Where the repository has its working files.
        root: PathBuf,
    },
    /// A repository without working files.
    #[error("{} is a bare repository; project.path must name one with working files", path.display())]
    Bare {
        /// The configured path.
        path: PathBuf,
    },
    /// The configured branch does not exist, others do.
    #[error("the repository has no branch {branch}; create it or correct project.branch")]
    MissingBranch {
        /// The configured branch.
        branch: String,
    },
    /// The configured branch is checked out but has no commit yet.
    #[error("branch {branch} has no commit yet; make a first commit")]
    UnbornBranch {
        /// The configured branch.
        branch: String,
    },
    /// No branch was configured and none is checked out.
    #[error("{} is on no branch (detached HEAD); check one out or set project.branch", path.display())]
    Detached {
        /// The configured path.
        path: PathBuf,
    },
    /// A repository was made inside the worktree.
    #[error("{} is a git repository inside the worktree; remove its .git folder", path.display())]
    NestedRepository {
        /// Relative to the project's root.
        path: PathBuf,
    },
    /// A file was made that is larger than anything that is taken in.
    #[error(
        "{path:?} has {bytes} bytes, more than the team takes in of one file; leave it out, or let git ignore it"
    )]
    FileTooLarge {
        /// Relative to the project's root.
        path: PathBuf,
        /// How large it is.
        bytes: u64,
    },
    /// A file was made that git does not take, by its name, or by what a rule of the repository says of it; or something
    /// that nobody could read to its end.
    #[error("git does not take {path:?}: {reason}; remove it, or give it another name")]
    NotTaken {
        /// Relative to the project's root.
        path: PathBuf,
        /// Why, in git's own words or in ours.
        reason: String,
        /// Others of which the same look found such a thing.
        others: Vec<PathBuf>,
    },
    /// A file was changed where the project has a submodule.
    #[error(
        "{} lies in the submodule {}, which stays at its commit; change it in its own repository, and ask for its new \
         commit here", file.display(), path.display()
    )]
    InsideSubmodule {
        /// The submodule, relative to the project's root.
        path: PathBuf,
        /// The file, likewise.
        file: PathBuf,
    },
    /// The list of submodules was changed, and their commits stay as they are.
    #[error(
        "`.gitmodules` was changed for {path:?}, and submodules are added, moved and removed by people: leave it as it is, and \
         say what should be done"
    )]
    SubmoduleList {
        /// A submodule, relative to the project's root.
        path: String,
    },
    /// A file was changed that git stores through a filter which may not be run.
    #[error(
        "{path:?} is stored through the filter {filter:?}, which the team may not run; write `filters: [{filter}]` under \
         `project` in team_runtime.yaml, or leave the file as it is"
    )]
    Filtered {
        /// Relative to the project's root.
        path: String,
        /// The name in git's attributes.
        filter: String,
    },
    /// The git program did not do what only it can do.
    #[error("git {what} failed: {reason}")]
    Program {
        /// Its subcommand.
        what: String,
        /// Its own words.
        reason: String,
    },
    /// Object ids of another kind.
    #[error("{} names its objects by SHA-256, which the team cannot read; it needs a repository with SHA-1", path.display())]
    Sha256 {
        /// The project.
        path: PathBuf,
    },
    /// A changed path that must never be committed.
    #[error("{path:?} may not be committed: {reason}")]
    ForbiddenPath {
        /// Relative to the project's root.
        path: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The request's id cannot be part of a branch name.
    #[error("{name} is no branch name; the request's id has characters that git refuses")]
    BranchName {
        /// The name that was tried.
        name: String,
    },
    /// Another branch occupies the team's name space.
    #[error("a branch named `teams` is in the way of teams/<request>; rename it")]
    NameTaken,
    /// Another git process works on the same index.
    #[error("{} exists: another git command is running; try again when it has ended", path.display())]
    IndexLocked {
        /// The lock file.
        path: PathBuf,
    },
    /// Another git process moves the same ref.
    #[error("{} exists: another git command is running; try again when it has ended", path.display())]
    RefLocked {
        /// The lock file.
        path: PathBuf,
    },
    /// A branch that only points to another name.
    #[error("{name} is a symbolic ref; name the branch that it points to")]
    SymbolicRef {
        /// The full name.
        name: String,
    },
    /// A person is in the middle of a merge, rebase or the like on the branch.
    #[error("a merge or rebase is in progress in {}; finish it or abort it", path.display())]
    OperationInProgress {
        /// The checkout.
        path: PathBuf,
    },
    /// The branch is checked out in a worktree that is locked and not there.
    #[error(
        "the branch is checked out in {}, which is not there: bring it back, or let go of it with `git worktree unlock` \
         and `git worktree prune`",
        path.display()
    )]
    WorktreeAway {
        /// Where it would be.
        path: PathBuf,
    },
    /// A text that is no commit or tree id.
    #[error("{text:?} is not an object id of 40 hexadecimal digits")]
    BadId {
        /// What was given.
        text: String,
    },
    /// A name that stands for no commit.
    #[error("{name:?} names no commit of the project; give an id, a branch or a tag")]
    NoSuchCommit {
        /// What was given.
        name: String,
    },
    /// The plan and what git computed from it differ.
    #[error("the planned commit {planned} came out as {actual}; plan it again")]
    PlanMismatch {
        /// What the plan says.
        planned: String,
        /// What the data says.
        actual: String,
    },
    /// There is no candidate to bring to the branch.
    #[error("nothing was to be brought to the branch; try again")]
    NothingToMerge,
    /// Where a landing ends, the branch has not all of a change that belongs to it.
    #[error("not all of the change of {commit} is on the branch where this landing ends: {}; look at the branch before you go on", paths.join(", "))]
    Lost {
        /// The commit.
        commit: String,
        /// What is missing.
        paths: Vec<String>,
    },
    /// What a change holds cannot be read from the repository.
    #[error(
        "the object {object} cannot be read, which is {path} of {commit} ({reason}); `git fsck` tells what is damaged, bring it back from a clone and try again"
    )]
    Damaged {
        /// The commit, or its tree.
        commit: String,
        /// The file.
        path: String,
        /// The object.
        object: String,
        /// What git says.
        reason: String,
    },
    /// A change that was put onto another base would do there what it did not do before.
    #[error("on its new base {commit} would also change what it did not change before: {}; nothing was moved; look at both", paths.join(", "))]
    Foreign {
        /// The commit.
        commit: String,
        /// What else it would change.
        paths: Vec<String>,
    },
    /// Somebody else has committed to the branch of a request.
    #[error(
        "{branch} has commit {commit}, which the team did not make; keep it with `git branch mine {commit}`, and try again"
    )]
    CommitOfPerson {
        /// The branch.
        branch: String,
        /// The commit.
        commit: String,
    },
    /// Somebody has the branch of a request checked out.
    #[error(
        "{branch} is checked out, and its files would be of another commit; check out another branch there, and try again"
    )]
    TeamBranchInUse {
        /// The branch.
        branch: String,
    },
    /// The files of the branch cannot be listed.
    #[error("the files of {commit} cannot be listed ({reason}); `git fsck` tells what is damaged")]
    Unlisted {
        /// The commit.
        commit: String,
        /// What git says.
        reason: String,
    },
    /// A move of the checkout was cut off, and somebody has gone on from its commit since.
    #[error("the landing was cut off and left these as they were: {paths:?}")]
    LeftBehind {
        /// What was not moved.
        paths: Vec<String>,
    },
    /// The index of a checkout is of a form that is not read here.
    #[error(
        "{} cannot be read ({reason}); `git sparse-checkout reapply --no-sparse-index` and `git update-index \
         --no-split-index` write it so that it can", path.display()
    )]
    IndexForm {
        /// The index.
        path: PathBuf,
        /// What git's library says.
        reason: String,
    },
    /// The repository is somebody else's.
    #[error(
        "{0} belongs to another user, so git does not trust it; run `git config --global --add safe.directory {0}`, or \
         let its owner run teams", path.display()
    )]
    Owner {
        /// The project.
        path: PathBuf,
    },
    /// Nothing can be written in the repository.
    #[error(
        "{} cannot be written: {reason}; let teams run as a user who may, on a disk that is not read-only", path.display()
    )]
    ReadOnly {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The worktree's own note cannot be read.
    #[error("the note {} of a worktree cannot be read: {reason}", path.display())]
    BadNote {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Files kept changing while they were put back.
    #[error("{} keeps changing while it is reset; end what writes there", path.display())]
    Unsteady {
        /// The worktree.
        path: PathBuf,
    },
    /// A folder that cannot be lent to checks.
    #[error("`carry` in team_runtime.yaml names {}, which cannot be lent to checks: {reason}", folder.display())]
    Carry {
        /// Relative to the project's root.
        folder: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A prepared environment is to be made anew that somebody uses.
    #[error("{name} is used by checks or an agent; try again when they are done")]
    EnvironmentUsed {
        /// Its name in the configuration.
        name: String,
    },
    /// What is prepared for checks could not be prepared.
    #[error("preparing {name} failed: {reason}")]
    Prepare {
        /// Its name in the configuration.
        name: String,
        /// What its command said, and what to do.
        reason: String,
    },
    /// A person has to agree first, since the change decides what would be run.
    #[error(
        "the change alters {}, by which dependencies are prepared; a person has to agree first", .0.files.join(", ")
    )]
    PreparationAsked(Box<PreparationQuestion>),
    /// A path that checks cannot be shown.
    #[error("`read` of a check in team_runtime.yaml names {}, which checks cannot be shown: {reason}", path.display())]
    Readable {
        /// As it was configured.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The machine cannot isolate checks, and nobody has allowed them to run all the same.
    #[error(
        "checks cannot be isolated on this machine ({reason}): they would see more than the commit that they are \
         to prove. Install bubblewrap, or write `allow_unisolated_checks: true` in team_runtime.yaml"
    )]
    NotIsolated {
        /// Why not.
        reason: String,
    },
    /// Blocking work that did not come to its end.
    #[error("git work was interrupted: {reason}")]
    Interrupted {
        /// Why.
        reason: String,
    },
    /// The supervisor of a check.
    #[error(transparent)]
    Supervise(#[from] crate::platform::supervise::SuperviseError),
    /// A file operation.
    #[error(transparent)]
    File(#[from] FileError),
    /// What libgit2 says.
    #[error("git: {}", .0.message())]
    Git(#[from] git2::Error),
}
