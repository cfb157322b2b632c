//! Real repositories: opening, worktrees, content as trees, commits.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use teams::domain::evidence::{ChangeKind, ReportedWork};
use teams::domain::ids::RunId;
use teams::git::commit::{CommitRules, apply_commit, plan_commit};
use teams::git::merge::{MergeOutcome, apply_merge, plan_merge};
use teams::git::{GitError, Project, Worktree};

use crate::git_repo::{Repo, at, git_in, modified, parts, put, request, set_mode};

fn names(worktree: &Worktree) -> Vec<(String, ChangeKind)> {
    let plan = plan_commit(worktree, None, &parts(), &CommitRules::default(), at(1)).unwrap();
    plan.map(|plan| plan.paths)
        .unwrap_or_default()
        .into_iter()
        .map(|changed| (changed.path, changed.kind))
        .collect()
}

#[test]
fn what_the_team_cannot_work_in_is_refused_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let open = |path: &Path, branch: &str| Project::open(path, branch).unwrap_err();
    assert!(matches!(open(temp.path(), "main"), GitError::NotARepository { .. }));

    let empty = temp.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    git_in(&empty, &["init", "-q", "-b", "main"]);
    assert!(matches!(open(&empty, "main"), GitError::UnbornBranch { .. }));
    assert!(matches!(open(&empty, "other"), GitError::MissingBranch { .. }));

    let bare = temp.path().join("bare");
    std::fs::create_dir(&bare).unwrap();
    git_in(&bare, &["init", "-q", "--bare"]);
    assert!(matches!(open(&bare, "main"), GitError::Bare { .. }));

    let repo = Repo::new();
    let within = repo.path.join("docs");
    std::fs::create_dir(&within).unwrap();
    let error = open(&within, "main").to_string();
    assert!(
        error.ends_with(&format!("{}/; set project.path to that", repo.path.display())),
        "{error}"
    );
    assert!(matches!(open(&repo.path, "nope"), GitError::MissingBranch { .. }));
    assert_eq!(Project::open(&repo.path, "").unwrap().branch(), "main");
    repo.git(&["checkout", "-q", "--detach"]);
    assert!(matches!(open(&repo.path, ""), GitError::Detached { .. }));
    assert_eq!(repo.project().head().unwrap().to_string(), repo.git(&["rev-parse", "main"]));

    let other = temp.path().join("other");
    std::fs::create_dir(&other).unwrap();
    git_in(&other, &["init", "-q", "-b", "main", "--object-format=sha256"]);
    let error = open(&other, "main");
    assert!(matches!(error, GitError::Sha256 { .. }), "{error}");
}

#[test]
fn a_worktree_is_made_once_and_repaired_after_a_crash() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    let tree = worktree.path();
    assert_eq!(git_in(&tree, &["status", "--porcelain"]), "");
    assert_eq!(git_in(&tree, &["branch", "--show-current"]), format!("teams/{}", request()));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    put(&tree.join("src/app.py"), "print(2)\n");
    // Reopening keeps the work, also when git's own side of it is gone or was tampered with.
    repo.write("README.md", "moved on\n");
    repo.git(&["commit", "-qam", "second"]);
    assert_eq!(repo.worktree().base(), worktree.base());
    let admin = repo.path.join(format!(".git/worktrees/teams-{}", request()));
    std::fs::remove_dir_all(&admin).unwrap();
    repo.worktree();
    // Git compares whole seconds, and reads what is as new as its index.
    assert!(modified(&admin.join("index")) <= modified(&tree.join("src/app.py")));
    assert_eq!(git_in(&tree, &["status", "--porcelain"]), " M src/app.py");
    std::fs::remove_file(tree.join(".git")).unwrap();
    git_in(&tree, &["init", "-q"]);
    assert_eq!(names(&repo.worktree()), [("src/app.py".to_owned(), ChangeKind::Modified)]);
    assert_eq!(git_in(&tree, &["status", "--porcelain"]), " M src/app.py");
    // Torn by a power failure: the next commit writes it anew.
    std::fs::write(admin.join("index"), "torn").unwrap();
    std::fs::write(admin.join("index.lock"), "").unwrap();
    repo.commit(&worktree);
    assert_eq!(git_in(&tree, &["status", "--porcelain"]), "");
    repo.git(&["update-ref", &format!("refs/heads/teams/{}", request()), "main"]);
    // Cut off before the note: made anew, at the branch's present head.
    std::fs::remove_file(repo.root.join(request().as_str()).join("worktree.json")).unwrap();
    let again = repo.worktree();
    assert_eq!(again.base(), repo.project().head().unwrap());
    assert_eq!(names(&again), []);
}

#[test]
fn release_keeps_a_branch_only_for_its_commits() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    repo.project().release(&request(), &repo.root).unwrap();
    repo.project().release(&request(), &repo.root).unwrap();
    assert!(!worktree.path().exists());
    assert_eq!(repo.git(&["branch", "--list", "teams/*"]), "");
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);

    let worktree = repo.worktree();
    put(&worktree.path().join("new.txt"), "x\n");
    let candidate = repo.commit(&worktree);
    // Nor where somebody looks at it, though the branch has all of it.
    let own = format!("teams/{}", request());
    repo.git(&["update-ref", "refs/heads/main", &candidate.commit]);
    repo.project().release(&request(), &repo.root).unwrap();
    assert_eq!(repo.git(&["branch", "--list", "teams/*"]), "");
    repo.git(&["branch", &own, &candidate.commit]);
    let theirs = repo.root.with_file_name("theirs");
    repo.git(&["worktree", "add", "-q", theirs.to_str().unwrap(), &own]);
    repo.project().release(&request(), &repo.root).unwrap();
    assert_eq!(repo.git(&["rev-parse", &own]), candidate.commit);
    repo.git(&["worktree", "remove", "--force", theirs.to_str().unwrap()]);
    repo.git(&["update-ref", "refs/heads/main", &candidate.base]);
    repo.project().release(&request(), &repo.root).unwrap();
    assert_eq!(repo.git(&["rev-parse", &format!("teams/{}", request())]), candidate.commit);
    // Taken up again, the work is still there, on what it grew from.
    repo.write("README.md", "moved on\n");
    repo.git(&["commit", "-qam", "second"]);
    let again = repo.worktree();
    assert_eq!(again.base().to_string(), candidate.base);
    assert_eq!(names(&again), [("new.txt".to_owned(), ChangeKind::Added)]);
    assert_eq!(repo.commit(&again), candidate);
}

#[test]
fn ownership_is_by_content_whatever_the_names_and_kinds() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    let tree = worktree.path();
    assert_eq!(names(&worktree), []);
    put(&tree.join("한글 이름.py"), "x\n");
    put(&tree.join("a -> b"), "x\n");
    put(&tree.join("quote\"d\\\tname"), "x\n");
    put(&tree.join("noise.log"), "ignored\n");
    put(&tree.join("build/out"), "ignored\n");
    std::os::unix::fs::symlink("/nowhere", tree.join("link")).unwrap();
    std::fs::rename(tree.join("src/old.py"), tree.join("src/renamed.py")).unwrap();
    set_mode(&tree.join("src/app.py"), 0o755);
    // Same bytes and a newer time stamp are no change.
    put(&tree.join("README.md"), "hello\n");
    let plan =
        plan_commit(&worktree, None, &parts(), &CommitRules::default(), at(1)).unwrap().unwrap();
    let found: Vec<(&str, ChangeKind)> =
        plan.paths.iter().map(|changed| (changed.path.as_str(), changed.kind)).collect();
    assert_eq!(
        found,
        [
            ("a -> b", ChangeKind::Added),
            ("link", ChangeKind::Added),
            ("quote\"d\\\tname", ChangeKind::Added),
            ("src/app.py", ChangeKind::Modified),
            ("src/old.py", ChangeKind::Deleted),
            ("src/renamed.py", ChangeKind::Added),
            ("한글 이름.py", ChangeKind::Added),
        ]
    );
    let candidate = apply_commit(&worktree, &plan).unwrap();
    let listing = repo.git(&["-c", "core.quotePath=false", "ls-tree", "-r", &candidate.commit]);
    assert!(listing.contains("120000 blob") && listing.contains("\tlink"), "{listing}");
    assert!(listing.contains("100755 blob") && listing.contains("한글 이름.py"), "{listing}");
    assert_eq!(git_in(&tree, &["status", "--porcelain"]), "");
    let clean = repo.root.join("review");
    repo.project().checkout(candidate.commit.parse().unwrap(), &clean).unwrap();
    assert!(!clean.join(".git").exists() && !clean.join("noise.log").exists());
    assert_eq!(std::fs::read_link(clean.join("link")).unwrap(), Path::new("/nowhere"));
}

#[test]
fn a_commit_is_known_before_it_is_made_and_made_once() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    put(&worktree.path().join("src/app.py"), "print(2)\nprint(3)\n");
    let rules = CommitRules { zone: chrono_tz::Asia::Seoul, ..CommitRules::default() };
    let plan = plan_commit(&worktree, None, &parts(), &rules, at(1)).unwrap().unwrap();
    let branch = format!("teams/{}", request());
    assert_eq!(repo.git(&["rev-parse", &branch]), worktree.base().to_string());
    let stored = serde_json::to_string(&plan).unwrap();
    let plan = serde_json::from_str(&stored).unwrap();
    let candidate = apply_commit(&worktree, &plan).unwrap();
    assert_eq!(apply_commit(&worktree, &plan).unwrap(), candidate);
    assert_eq!(repo.git(&["rev-parse", &branch]), plan.commit.to_string());
    assert_eq!((candidate.added_lines, candidate.removed_lines), (2, 1));
    assert_eq!(candidate.subject, "20260324-0a1b2c3d app.py: say hello");
    assert_eq!(
        repo.git(&["log", "-1", "--format=%an <%ae> %aI%n%(trailers:key=Request)", &branch]).trim(),
        "teams <teams@localhost> 2026-03-24T06:06:41+09:00\nRequest: 20260324-0a1b2c3d"
    );
    repo.git(&["fsck", "--strict"]);
    // Nothing new: the same commit again. Something new: still one commit on the base.
    let same = plan_commit(&worktree, None, &parts(), &rules, at(9)).unwrap().unwrap();
    assert_eq!(same.commit, plan.commit);
    assert_eq!(apply_commit(&worktree, &same).unwrap(), candidate);
    put(&worktree.path().join("two.txt"), "2\n");
    let second = repo.commit(&worktree);
    assert_eq!(repo.git(&["rev-list", "--count", &format!("main..{branch}")]), "1");
    assert_eq!(second.paths.len(), 2);
    // Back to the base: nothing to commit.
    std::fs::remove_file(worktree.path().join("two.txt")).unwrap();
    put(&worktree.path().join("src/app.py"), "print(1)\n");
    assert!(plan_commit(&worktree, None, &parts(), &rules, at(9)).unwrap().is_none());
}

#[test]
fn a_commit_is_made_of_what_was_reported_while_that_is_known() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    let start = worktree.tree_id().unwrap();
    put(&worktree.path().join("done.txt"), "done\n");
    let (tree, changed) = worktree.changed_since(start).unwrap();
    assert_eq!(changed.len(), 1);
    put(&worktree.path().join("later.txt"), "written by something that stayed\n");
    let rules = CommitRules::default();
    let work = |tree: String, base: String| ReportedWork { tree, base };
    let paths = |work: &ReportedWork| {
        let plan = plan_commit(&worktree, Some(work), &parts(), &rules, at(1)).unwrap().unwrap();
        plan.paths.into_iter().map(|changed| changed.path).collect::<Vec<_>>()
    };
    let base = worktree.base().to_string();
    assert_eq!(paths(&work(tree.to_string(), base.clone())), ["done.txt"]);
    // Of another base, or cleaned up by git: then the files count.
    let all = ["done.txt", "later.txt"];
    assert_eq!(paths(&work(tree.to_string(), "0".repeat(40))), all);
    assert_eq!(paths(&work("0".repeat(40), base.clone())), all);
    assert_eq!(paths(&work("../x".to_owned(), base)), all);
    // A tree that is in the repository and leads where no commit may is refused whoever names it.
    let hooks = repo.git(&["hash-object", "-w", "README.md"]);
    let listing = format!("100644 blob {hooks}\thooks\n");
    let git = |listing: &str, args: &[&str]| {
        let mut git = Command::new("git");
        git.args(args).current_dir(repo.project().path()).stdin(Stdio::piped());
        let mut child = git.stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(listing.as_bytes()).unwrap();
        let said = child.wait_with_output().unwrap();
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    };
    let inner = git(&listing, &["mktree"]);
    let evil = git(&format!("040000 tree {inner}\t.GIT\n"), &["mktree"]);
    let evil = work(evil, worktree.base().to_string());
    let refused = plan_commit(&worktree, Some(&evil), &parts(), &rules, at(1)).unwrap_err();
    assert!(matches!(refused, GitError::ForbiddenPath { .. }), "{refused}");
}

#[test]
fn whoever_works_on_the_branch_of_a_request_is_asked_to_go_elsewhere() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    put(&worktree.path().join("src/app.py"), "print(2)\n");
    let candidate = repo.commit(&worktree);
    put(&worktree.path().join("src/app.py"), "print(3)\n");
    let branch = format!("teams/{}", request());
    let plan = || plan_commit(&worktree, None, &parts(), &CommitRules::default(), at(2));
    repo.git(&["worktree", "add", "-q", "--force", "../mine", &branch]);
    let mine = repo.path.parent().unwrap().join("mine");
    assert!(matches!(plan(), Err(GitError::TeamBranchInUse { .. })));
    // What they amend or add is theirs.
    for args in [
        &["commit", "-q", "--amend", "--allow-empty", "--no-edit"][..],
        &["commit", "-q", "--allow-empty", "-m", "mine"],
    ] {
        git_in(&mine, args);
        let theirs = repo.git(&["rev-parse", &branch]);
        let Err(GitError::CommitOfPerson { commit, .. }) = plan() else { panic!("{args:?}") };
        assert_eq!((commit, repo.git(&["rev-parse", &branch])), (theirs.clone(), theirs));
    }
    repo.git(&["worktree", "remove", "--force", "../mine"]);
    repo.git(&["branch", "-q", "mine", &branch]);
    let again = apply_commit(&worktree, &plan().unwrap().unwrap()).unwrap();
    assert_ne!(again.commit, candidate.commit);
}

#[test]
fn a_commit_of_somebody_else_on_the_team_branch_is_kept() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    put(&worktree.path().join("new.txt"), "x\n");
    let plan =
        plan_commit(&worktree, None, &parts(), &CommitRules::default(), at(1)).unwrap().unwrap();
    git_in(&worktree.path(), &["add", "-A"]);
    git_in(&worktree.path(), &["commit", "-qm", "by hand"]);
    let by_hand = git_in(&worktree.path(), &["rev-parse", "HEAD"]);
    let candidate = apply_commit(&worktree, &plan).unwrap();
    assert_eq!(repo.git(&["rev-parse", &format!("teams/{}", request())]), candidate.commit);
    assert_eq!(repo.git(&["rev-parse", &format!("refs/teams/lost/{by_hand}")]), by_hand);
}

#[test]
fn the_workspace_and_nested_repositories_are_never_committed() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    put(&worktree.path().join("ws/state.json"), "{}\n");
    let rules = CommitRules { forbidden: vec![PathBuf::from("ws")], ..CommitRules::default() };
    let error = plan_commit(&worktree, None, &parts(), &rules, at(1)).unwrap_err();
    assert!(error.to_string().contains("ws/state.json"), "{error}");
    std::fs::remove_dir_all(worktree.path().join("ws")).unwrap();
    let start = worktree.tree_id().unwrap();
    for with_commit in [false, true] {
        let nested = worktree.path().join("sub/nested");
        put(&nested.join("file"), "x\n");
        git_in(&nested, &["init", "-q"]);
        if with_commit {
            git_in(&nested, &["add", "-A"]);
            git_in(&nested, &["commit", "-qm", "inner"]);
        }
        let error = worktree.tree_id().unwrap_err();
        assert!(
            matches!(&error, GitError::NestedRepository { path } if path == Path::new("sub/nested")),
            "{error}"
        );
        worktree.reset_to(start).unwrap();
        assert!(!nested.exists());
    }
    // A file that takes no room on the disk, and would take all of the memory.
    for (name, bytes) in [("large.bin", 40 << 30), ("sub/.gitattributes", 2 << 20)] {
        let large = worktree.path().join(name);
        std::fs::create_dir_all(large.parent().unwrap()).unwrap();
        std::fs::File::create(&large).unwrap().set_len(bytes).unwrap();
        let error = worktree.tree_id().unwrap_err();
        assert!(matches!(&error, GitError::FileTooLarge { path, .. } if path == Path::new(name)));
        assert_eq!(worktree.settled_tree_id().unwrap(), start, "it goes");
    }
    // Names that git takes nowhere, as they are folders of its own on other systems.
    for name in ["GIT~1", ".GIT/config"] {
        put(&worktree.path().join(name), "x\n");
        let error = worktree.tree_id().unwrap_err();
        assert!(
            matches!(&error, GitError::NotTaken { path, .. } if path == Path::new(name)),
            "{error}"
        );
        assert_eq!(worktree.settled_tree_id().unwrap(), start, "it goes");
    }
    // What git itself would read for ever, directly or through a link.
    let pipe = repo.root.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for name in [".gitignore", "sub/.gitattributes", "sub/deep/.gitignore"] {
        let at = worktree.path().join(name);
        put(&at.with_file_name("new.txt"), "x\n");
        let _ = std::fs::remove_file(&at);
        if name == ".gitignore" {
            assert!(Command::new("mkfifo").arg(&at).status().unwrap().success());
        } else {
            std::os::unix::fs::symlink(&pipe, &at).unwrap();
        }
        let error = worktree.tree_id().unwrap_err();
        assert!(
            matches!(&error, GitError::NotTaken { path, .. } if path == Path::new(name)),
            "{error}"
        );
        worktree.reset_to(start).unwrap();
        assert_eq!(worktree.tree_id().unwrap(), start);
    }
    // More folders in each other than a stack has room for, and than a path can name.
    for levels in [1_500, 6_000] {
        make_deep(&worktree.path().join("deep"), levels);
        assert!(matches!(worktree.tree_id(), Err(GitError::NotTaken { .. })));
        worktree.reset_to(start).unwrap();
        std::fs::remove_dir_all(worktree.path().join("deep")).unwrap();
    }
    // In an ignored folder it is build output like any other.
    git_in(&worktree.path(), &["init", "-q", "build/dep"]);
    assert_eq!(worktree.tree_id().unwrap(), start);
}

#[test]
fn a_workspace_inside_the_project_changes_nothing() {
    let repo = Repo::with_workspace_inside();
    let worktree = repo.worktree();
    put(&worktree.path().join("src/app.py"), "print(2)\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(candidate.paths.len(), 1);
    assert_eq!(git_in(&worktree.path(), &["status", "--porcelain"]), "");
    let plan = plan_merge(&repo.project(), std::slice::from_ref(&candidate)).unwrap();
    apply_merge(&repo.project(), &plan).unwrap();
    assert_eq!(repo.read("src/app.py"), "print(2)\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn reset_is_exact_and_lost_work_is_kept() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    let tree = worktree.path();
    let start = worktree.tree_id().unwrap();
    put(&tree.join("deep/er/new.txt"), "x\n");
    put(&tree.join("build/cache"), "kept\n");
    put(&tree.join(".gitignore"), "/build/\n*.secret\n");
    put(&tree.join("a.secret"), "hidden by the agent's own rule\n");
    std::fs::remove_file(tree.join("README.md")).unwrap();
    std::fs::remove_dir_all(tree.join("src")).unwrap();
    put(&tree.join("src"), "a file where a folder was\n");
    let changed = worktree.changed_since(start).unwrap().1;
    assert!(changed.iter().any(|c| c.path == "src" && c.kind == ChangeKind::Added), "{changed:?}");
    let run = RunId::parse("run-1").unwrap();
    let lost = worktree.snapshot_lost(&run, at(2)).unwrap();
    assert_eq!(worktree.snapshot_lost(&run, at(3)).unwrap(), lost);
    worktree.reset_to(start).unwrap();
    assert_eq!(worktree.tree_id().unwrap(), start);
    assert_eq!(git_in(&tree, &["status", "--porcelain"]), "");
    assert!(!tree.join("deep").exists() && !tree.join("a.secret").exists());
    assert_eq!(std::fs::read_to_string(tree.join("build/cache")).unwrap(), "kept\n");
    assert_eq!(repo.git(&["show", "refs/teams/lost/run-1:deep/er/new.txt"]), "x");
}

/// A person is asked about what runs by a file, whatever name leads to it, and where it goes.
#[test]
fn a_change_tells_what_runs_by_a_link_and_by_a_file_that_moved() {
    let repo = Repo::new();
    repo.write("setup.cfg", "[flake8]\nmax-line-length = 79\n");
    repo.write("config/py.toml", "[tool.ruff]\nselect = [\"E\"]\n");
    repo.write("docs/team.md", "Be kind.\n");
    for (target, link) in [("docs/team.md", "CLAUDE.md"), ("config/py.toml", "pyproject.toml")] {
        std::os::unix::fs::symlink(target, repo.path.join(link)).unwrap();
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "settings"]);
    let worktree = repo.worktree();
    let at = |path: &str| worktree.path().join(path);
    std::fs::rename(at("setup.cfg"), at("docs/setup.cfg.txt")).unwrap();
    put(&at("config/py.toml"), "[tool.ruff]\nselect = []\n");
    put(&at("docs/team.md"), "Be quick.\n");
    let marks = teams::git::content_marks(&repo.project(), &repo.commit(&worktree)).unwrap();
    let told: Vec<String> = marks.iter().map(|it| serde_json::to_string(it).unwrap()).collect();
    assert_eq!(
        told,
        [
            r#"{"path":"config/py.toml","what":"linked","name":"pyproject.toml"}"#,
            r#"{"path":"docs/team.md","what":"linked","name":"CLAUDE.md"}"#,
            r#"{"path":"pyproject.toml","what":"part","name":"tool.ruff"}"#,
            r#"{"path":"setup.cfg","what":"part","name":"flake8"}"#,
        ]
    );
}

fn make_deep(top: &Path, levels: usize) {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    std::fs::create_dir(top).unwrap();
    let open = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = openat(CWD, top, open, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&here, "a", Mode::RWXU).unwrap();
        here = openat(&here, "a", open, Mode::empty()).unwrap();
    }
}

/// Names with a backslash, as systemd has them.
#[test]
fn a_backslash_in_a_name_is_part_of_it() {
    let repo = Repo::new();
    let name = r"units/mnt-my\x2ddisk.mount";
    repo.write(name, "Where=/mnt/my-disk\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "unit"]);
    let worktree = repo.worktree();
    let start = worktree.tree_id().unwrap();
    put(&worktree.path().join(name), "Where=/mnt/other\n");
    worktree.reset_to(start).unwrap();
    assert_eq!(worktree.tree_id().unwrap(), start);
    put(&worktree.path().join(name), "Where=/mnt/my disk\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(candidate.paths.len(), 1);
    repo.write(name, "a person's\n");
    let merge = || {
        let plan = plan_merge(&repo.project(), std::slice::from_ref(&candidate)).unwrap();
        apply_merge(&repo.project(), &plan).unwrap()
    };
    let paths = vec![candidate.paths[0].path.clone()];
    assert_eq!(merge(), MergeOutcome::PersonEdits { paths });
    repo.git(&["checkout", "-q", "."]);
    assert_eq!(merge(), MergeOutcome::Merged { kept: Vec::new() });
    assert_eq!(repo.read(name), "Where=/mnt/my disk\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn odd_files_of_an_agent_neither_count_nor_block_the_reset() {
    use std::os::unix::ffi::OsStrExt as _;
    let repo = Repo::new();
    let worktree = repo.worktree();
    let start = worktree.tree_id().unwrap();
    let fifo = worktree.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    assert_eq!(worktree.tree_id().unwrap(), start);
    let odd = worktree.path().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::write(&odd, "x").unwrap();
    let plan =
        plan_commit(&worktree, None, &parts(), &CommitRules::default(), at(1)).unwrap().unwrap();
    assert_eq!(plan.paths[0].path, "odd\\xFF", "a name in text for what is none");
    worktree.snapshot_lost(&RunId::parse("run-2").unwrap(), at(1)).unwrap();
    worktree.reset_to(start).unwrap();
    assert!(!odd.exists());
}

#[test]
fn no_program_of_the_project_is_run() {
    let repo = Repo::new();
    let trap = repo.path.join("trap.sh");
    put(&trap, "#!/bin/sh\ntouch \"$(dirname \"$0\")/SPRUNG\"\ncat\n");
    set_mode(&trap, 0o755);
    let trap = trap.display().to_string();
    for hook in
        ["pre-commit", "post-commit", "post-checkout", "reference-transaction", "post-index-change"]
    {
        let path = repo.path.join(".git/hooks").join(hook);
        std::fs::copy(&trap, &path).unwrap();
    }
    repo.write(".gitattributes", "* diff=evil merge=evil\n*.md filter=evil\n");
    repo.git(&["-c", "core.hooksPath=/dev/null", "add", "-A"]);
    repo.git(&["-c", "core.hooksPath=/dev/null", "commit", "-qm", "attributes"]);
    for (key, value) in [
        ("core.fsmonitor", trap.as_str()),
        ("core.hooksPath", ".git/hooks"),
        ("filter.evil.clean", trap.as_str()),
        ("filter.evil.smudge", trap.as_str()),
        ("filter.evil.process", trap.as_str()),
        ("diff.evil.textconv", trap.as_str()),
        ("diff.external", trap.as_str()),
        ("merge.evil.driver", trap.as_str()),
        ("gpg.program", trap.as_str()),
        ("commit.gpgSign", "true"),
    ] {
        let config = repo.path.join(".git/config");
        let (section, name) = key.rsplit_once('.').unwrap();
        let header = section
            .split_once('.')
            .map_or(format!("[{section}]"), |(one, two)| format!("[{one} \"{two}\"]"));
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, format!("{text}{header}\n\t{name} = {value}\n")).unwrap();
    }
    let sprung = || repo.path.join("SPRUNG").exists();
    let worktree = repo.worktree();
    put(&worktree.path().join("src/app.py"), "print(5)\n");
    let candidate = repo.commit(&worktree);
    let project = repo.project();
    project.checkout(candidate.commit.parse().unwrap(), &repo.root.join("x")).unwrap();
    teams::git::diff::diff_excerpt(&project, &candidate, 100).unwrap();
    let base = worktree.base();
    teams::git::rebase::rebase(&repo.project(), (worktree.request(), &repo.root), &candidate, base)
        .unwrap();
    let plan = teams::git::merge::plan_merge(&project, std::slice::from_ref(&candidate)).unwrap();
    teams::git::merge::apply_merge(&project, &plan).unwrap();
    assert_eq!(repo.read("src/app.py"), "print(5)\n");
    project.release(&request(), &repo.root).unwrap();
    assert!(!sprung());
}

#[test]
fn through_a_link_in_an_ignored_place_nothing_is_read_or_written() {
    let repo = Repo::new();
    // Tracked although it is ignored.
    repo.write(".gitignore", "out\n");
    repo.write("out/deep/kept.txt", "kept\n");
    repo.git(&["add", "-f", ".gitignore", "out/deep/kept.txt"]);
    repo.git(&["commit", "-qm", "with a result of the build"]);
    let worktree = repo.worktree();
    let (start, tree) = (worktree.tree_id().unwrap(), worktree.path());
    let outside = tempfile::tempdir().unwrap();
    let secrets = ["kept.txt", "deep/kept.txt"].map(|name| outside.path().join(name));
    secrets.iter().for_each(|path| put(path, "secret\n"));
    let secret = repo.git(&["hash-object", secrets[0].to_str().unwrap()]);
    for place in ["out/deep", "out"] {
        std::fs::remove_dir_all(tree.join(place)).unwrap();
        std::os::unix::fs::symlink(outside.path(), tree.join(place)).unwrap();
        let found = repo.git(&["ls-tree", "-r", &worktree.tree_id().unwrap().to_string()]);
        assert!(!found.contains(&secret), "{found}");
        worktree.reset_to(start).unwrap();
        assert_eq!(std::fs::read_to_string(tree.join("out/deep/kept.txt")).unwrap(), "kept\n");
        assert!(tree.join(place).symlink_metadata().unwrap().is_dir(), "{place}");
        for path in &secrets {
            assert_eq!(std::fs::read_to_string(path).unwrap(), "secret\n", "{place}");
        }
    }
}
