//! A repository for tests, made and examined with the git program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use teams::domain::evidence::Candidate;
use teams::domain::ids::RequestId;
use teams::domain::time::Timestamp;
use teams::git::commit::{CommitRules, apply_commit, plan_commit};
use teams::git::message::MessageParts;
use teams::git::{Project, Worktree};

/// A project with a first commit, and a folder for worktrees beside it.
pub(crate) struct Repo {
    _temp: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) root: PathBuf,
}

impl Repo {
    pub(crate) fn new() -> Self {
        // Some programs leave out what lies below a hidden folder.
        let temp = tempfile::Builder::new().prefix("teams-repo-").tempdir().unwrap();
        let path = temp.path().join("project");
        std::fs::create_dir_all(&path).unwrap();
        let repo = Self { root: temp.path().join("work"), path, _temp: temp };
        repo.git(&["init", "-q", "-b", "main"]);
        repo.write("README.md", "hello\n");
        repo.write("src/app.py", "print(1)\n");
        repo.write("src/old.py", "one\ntwo\nthree\nfour\n");
        repo.write(".gitignore", "*.log\n/build/\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "first"]);
        repo
    }

    /// The same with the worktrees in an ignored workspace inside the project, as `init` lays it out.
    pub(crate) fn with_workspace_inside() -> Self {
        let mut repo = Self::new();
        repo.write(".git/info/exclude", "/ws/\n");
        repo.root = repo.path.join("ws/.teams_runtime/worktrees");
        repo
    }

    /// A repository with a submodule at `vendor/lib` that has one itself at `deps/inner`, both fetched. The library
    /// lies beside it.
    pub(crate) fn with_submodules() -> (Repo, PathBuf) {
        let repo = Repo::new();
        let beside = |name: &str| repo.root.with_file_name(name);
        let fetch = ["-c", "protocol.file.allow=always", "submodule", "-q"];
        for (name, file) in [("inner", "deep.h"), ("lib", "lib.c")] {
            let dir = beside(name);
            std::fs::create_dir_all(&dir).unwrap();
            git_in(&dir, &["init", "-q", "-b", "main"]);
            put(&dir.join(file), &format!("{name} 1\n"));
            put(&dir.join(".gitignore"), "*.o\n");
            git_in(&dir, &["add", "-A"]);
            if name == "lib" {
                let inner = beside("inner");
                let add = ["add", inner.to_str().unwrap(), "deps/inner"];
                git_in(&dir, &[&fetch[..], &add].concat());
            }
            git_in(&dir, &["commit", "-qm", "first"]);
        }
        let lib = beside("lib");
        repo.git(
            &[&fetch[..], &["add", "--name", "a/name", lib.to_str().unwrap(), "vendor/lib"]]
                .concat(),
        );
        repo.git(&[&fetch[..], &["update", "--init", "--recursive"]].concat());
        repo.git(&["commit", "-qm", "submodules"]);
        (repo, lib)
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.path, args)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        put(&self.path.join(path), text);
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path.join(path)).unwrap()
    }

    pub(crate) fn project(&self) -> Project {
        Project::open(&self.path, "main").unwrap()
    }

    pub(crate) fn worktree(&self) -> Worktree {
        self.project().worktree(&request(), &self.root).unwrap()
    }

    /// Commits whatever the worktree holds.
    pub(crate) fn commit(&self, worktree: &Worktree) -> Candidate {
        let parts = MessageParts { request: Some(worktree.request().clone()), ..parts() };
        let plan = plan_commit(worktree, None, &parts, &CommitRules::default(), at(1)).unwrap();
        apply_commit(worktree, &plan.unwrap()).unwrap()
    }
}

pub(crate) fn git_in(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=P", "-c", "user.email=p@example.com"])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

pub(crate) fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(crate) fn modified(path: &Path) -> SystemTime {
    std::fs::metadata(path).unwrap().modified().unwrap()
}

pub(crate) fn request() -> RequestId {
    RequestId::parse("20260324-0a1b2c3d").unwrap()
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_774_300_000_000 + second * 1000)
}

pub(crate) fn parts() -> MessageParts {
    MessageParts { request: Some(request()), title: "say hello".into(), ..MessageParts::default() }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
