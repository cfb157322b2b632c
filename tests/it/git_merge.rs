//! Real repositories: the merge to the branch beside a person's own work, its repair, and the rebase.

use teams::domain::conflict::Conflict;
use teams::domain::evidence::Candidate;
use teams::domain::guard::ContentFact;
use teams::domain::ids::RequestId;
use teams::git::conflict::{sides, unsolved};
use teams::git::merge::{
    MergeOutcome, PlannedMerge, apply_merge, is_landing, plan_merge, verify_landed,
};
use teams::git::rebase::{Rebased, compose, rebase};
use teams::git::{CommitId, GitError, Worktree, diff, overwritten};

use crate::git_repo::{Repo, git_in, modified, put, request, set_mode};

const CLEAN: MergeOutcome = MergeOutcome::Merged { kept: Vec::new() };

/// A candidate that changes, adds, deletes, renames, and turns a file into a folder.
fn candidate(repo: &Repo) -> (Worktree, Candidate) {
    let worktree = repo.worktree();
    let tree = worktree.path();
    put(&tree.join("src/app.py"), "print(2)\n");
    std::fs::rename(tree.join("src/old.py"), tree.join("src/new -> 이름.py")).unwrap();
    std::fs::remove_file(tree.join("README.md")).unwrap();
    put(&tree.join("README.md/part.md"), "folder now\n");
    put(&tree.join("run.sh"), "#!/bin/sh\n");
    set_mode(&tree.join("run.sh"), 0o755);
    std::os::unix::fs::symlink("src/app.py", tree.join("link")).unwrap();
    let candidate = repo.commit(&worktree);
    (worktree, candidate)
}

fn plan(repo: &Repo, candidate: &Candidate) -> PlannedMerge {
    plan_merge(&repo.project(), std::slice::from_ref(candidate)).unwrap()
}

fn edits(repo: &Repo, plan: &PlannedMerge) -> Vec<String> {
    let before = repo.git(&["rev-parse", "main"]);
    let status = repo.git(&["status", "--porcelain"]);
    let MergeOutcome::PersonEdits { paths } = apply_merge(&repo.project(), plan).unwrap() else {
        panic!("not stopped");
    };
    assert_eq!(repo.git(&["rev-parse", "main"]), before);
    assert_eq!(repo.git(&["status", "--porcelain"]), status);
    assert!(!repo.path.join(".git/index.lock").exists());
    paths
}

#[test]
fn a_clean_checkout_moves_with_its_branch() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    let plan = plan(&repo, &candidate);
    let stored: PlannedMerge =
        serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    let index = repo.path.join(".git/index");
    for _ in 0..2 {
        let looked = modified(&index);
        assert_eq!(apply_merge(&repo.project(), &stored).unwrap(), CLEAN);
        // So git reads whatever was saved in the second of its entry.
        assert_eq!(modified(&index), looked);
        assert_eq!(repo.git(&["rev-parse", "main"]), candidate.commit);
        assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), "");
        assert_eq!(repo.git(&["diff-index", "HEAD"]), "");
    }
    assert_eq!(repo.read("README.md/part.md"), "folder now\n");
    assert_eq!(repo.git(&["reflog", "-1", "--format=%H", "main"]), candidate.commit);
    assert_eq!(std::fs::read_dir(repo.path.join(".git/teams")).unwrap().count(), 2);
    // A branch that nobody has checked out moves alone.
    repo.git(&["checkout", "-q", "-b", "elsewhere"]);
    repo.git(&["update-ref", "refs/heads/main", &candidate.base]);
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
    assert_eq!(repo.git(&["rev-parse", "main"]), candidate.commit);
}

// Row G07, as it should be: what a person staged is not swept in.
#[test]
fn unrelated_edits_and_staged_files_stay_as_they_are() {
    let repo = Repo::new();
    repo.write("tracked.txt", "1\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "second"]);
    // Dirty before the request begins, edited further afterwards; the team also works on its neighbours.
    repo.write("tracked.txt", "2\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("staged.txt", "staged, then edited\n");
    repo.write("untracked.txt", "mine\n");
    let (_worktree, candidate) = candidate(&repo);
    assert!(candidate.paths.iter().all(|changed| !changed.path.ends_with("ed.txt")));
    repo.write("tracked.txt", "3\n");
    let before = repo.git(&["status", "--porcelain", "-uall"]);
    assert_eq!(apply_merge(&repo.project(), &plan(&repo, &candidate)).unwrap(), CLEAN);
    assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), before);
    assert_eq!(repo.git(&["show", ":staged.txt"]), "staged");
    assert_eq!(repo.read("tracked.txt"), "3\n");
    assert!(
        repo.git(&["ls-tree", "-r", "--name-only", "main"])
            .lines()
            .all(|path| path != "staged.txt")
    );
}

#[test]
fn a_file_in_a_repository_of_the_persons_own_is_not_written_over() {
    let repo = Repo::new();
    put(&repo.path.join("vendor/lib/f"), "theirs\n");
    git_in(&repo.path.join("vendor/lib"), &["init", "-q"]);
    git_in(&repo.path.join("vendor/lib"), &["add", "-A"]);
    git_in(&repo.path.join("vendor/lib"), &["commit", "-qm", "theirs"]);
    put(&repo.path.join("vendor/lib/f"), "theirs, edited\n");
    let worktree = repo.worktree();
    put(&worktree.path().join("vendor/lib/f"), "the team's\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(edits(&repo, &plan(&repo, &candidate)), ["vendor/lib/f"]);
    assert_eq!(repo.read("vendor/lib/f"), "theirs, edited\n");
}

#[test]
fn a_link_that_becomes_a_folder_is_in_nobodys_way() {
    let repo = Repo::new();
    repo.write("dir/b", "1\n");
    std::os::unix::fs::symlink("dir", repo.path.join("a")).unwrap();
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "second"]);
    let worktree = repo.worktree();
    std::fs::remove_file(worktree.path().join("a")).unwrap();
    put(&worktree.path().join("a/b"), "2\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(apply_merge(&repo.project(), &plan(&repo, &candidate)).unwrap(), CLEAN);
    assert_eq!((repo.read("a/b"), repo.read("dir/b")), ("2\n".to_owned(), "1\n".to_owned()));
}

#[test]
fn what_lies_where_a_worktree_was_is_in_nobodys_way() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    let plan = plan(&repo, &candidate);
    let (gone, other) = (repo.root.with_file_name("gone"), repo.root.with_file_name("other"));
    for (folder, branch) in [(&gone, "one"), (&other, "two")] {
        repo.git(&["worktree", "add", "-q", "-b", branch, folder.to_str().unwrap()]);
        std::fs::remove_dir_all(folder).unwrap();
    }
    // A dev server has made its own again, and a clone of something else has the branch checked out.
    put(&gone.join("node_modules/x"), "x\n");
    put(&other.join("src/app.py"), "print(1)\n");
    git_in(&other, &["init", "-q", "-b", "main"]);
    git_in(&other, &["add", "-A"]);
    git_in(&other, &["commit", "-qm", "another one"]);
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
    assert_eq!(repo.read("src/app.py"), "print(2)\n");
    assert_eq!(std::fs::read_to_string(other.join("src/app.py")).unwrap(), "print(1)\n");
}

#[test]
fn what_a_move_that_was_cut_off_left_is_named_where_somebody_has_gone_on() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    let plan = plan(&repo, &candidate);
    // Killed after the branch was moved; its lock was removed, and somebody committed on top.
    let stage = repo.path.join(".git/teams").join(format!("stage-{}", candidate.tree));
    std::fs::create_dir_all(&stage).unwrap();
    repo.git(&["update-ref", "refs/heads/main", &candidate.commit]);
    put(&repo.path.join("other.txt"), "x\n");
    repo.git(&["add", "other.txt"]);
    repo.git(&["commit", "-qm", "theirs", "other.txt"]);
    let error = apply_merge(&repo.project(), &plan).unwrap_err();
    let GitError::LeftBehind { paths } = &error else { panic!("{error}") };
    assert!(paths.iter().any(|path| path == "src/app.py"), "{paths:?}");
    assert!(!stage.exists());
}

#[test]
fn a_file_dirty_before_the_request_is_still_the_teams_to_change_in_its_worktree() {
    let repo = Repo::new();
    repo.write("src/app.py", "print('mine')\n");
    let (_worktree, candidate) = candidate(&repo);
    assert!(candidate.paths.iter().any(|changed| changed.path == "src/app.py"));
    let plan = plan(&repo, &candidate);
    assert_eq!(edits(&repo, &plan), ["src/app.py"]);
    assert_eq!(repo.read("src/app.py"), "print('mine')\n");
    // The person puts the edit aside, and the same plan goes through.
    repo.git(&["checkout", "-q", "src/app.py"]);
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
}

#[test]
fn whatever_a_person_has_in_the_way_stops_the_merge_untouched() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    let plan = plan(&repo, &candidate);
    let project = repo.path.clone();
    let restore = || {
        repo.git(&["reset", "-q", "--hard"]);
        repo.git(&["clean", "-qfdx"]);
    };
    repo.write("src/app.py", "print('staged')\n");
    repo.git(&["add", "src/app.py"]);
    repo.write("src/app.py", "print(1)\n");
    assert_eq!(edits(&repo, &plan), ["src/app.py"]);
    restore();
    repo.write("run.sh", "my own\n");
    assert_eq!(edits(&repo, &plan), ["run.sh"]);
    restore();
    repo.write(".git/info/exclude", "/run.sh\n");
    repo.write("run.sh", "my own, ignored\n");
    assert_eq!(edits(&repo, &plan), ["run.sh"]);
    restore();
    repo.write("link/inside.txt", "my own\n");
    assert_eq!(edits(&repo, &plan), ["link/inside.txt"]);
    restore();
    std::fs::remove_dir_all(project.join("src")).unwrap();
    std::os::unix::fs::symlink(&repo.root, project.join("src")).unwrap();
    let paths = edits(&repo, &plan);
    assert!(paths.contains(&"src".to_owned()), "{paths:?}");
    restore();
    set_mode(&project.join("src/app.py"), 0o755);
    assert_eq!(edits(&repo, &plan), ["src/app.py"]);
    restore();
    std::fs::remove_file(project.join("src/app.py")).unwrap();
    assert_eq!(edits(&repo, &plan), ["src/app.py"]);
    restore();
    // An identical edit is no obstacle.
    repo.write("src/app.py", "print(2)\n");
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_folder_becomes_a_file_only_where_nothing_else_is_in_it() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    std::fs::remove_dir_all(worktree.path().join("src")).unwrap();
    put(&worktree.path().join("src"), "a file now\n");
    let plan = plan(&repo, &repo.commit(&worktree));
    repo.write("src/mine.txt", "mine\n");
    assert_eq!(edits(&repo, &plan), ["src/mine.txt"]);
    repo.git(&["add", "src/mine.txt"]);
    std::fs::remove_file(repo.path.join("src/mine.txt")).unwrap();
    assert_eq!(edits(&repo, &plan), ["src/mine.txt"]);
    repo.git(&["reset", "-q"]);
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
    assert_eq!(repo.read("src"), "a file now\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_was_a_folder_of_folders_becomes_a_file_and_a_link_through_which_nothing_is_opened() {
    let repo = Repo::new();
    repo.write("tool/src/main.sh", "true\n");
    repo.write("data/deep/x", "x\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "Folders"]);
    let worktree = repo.worktree();
    for folder in ["tool", "data"] {
        std::fs::remove_dir_all(worktree.path().join(folder)).unwrap();
    }
    put(&worktree.path().join("tool"), "a file now\n");
    std::os::unix::fs::symlink("/proc/1/root", worktree.path().join("data")).unwrap();
    let plan = plan(&repo, &repo.commit(&worktree));
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
    assert_eq!(repo.read("tool"), "a file now\n");
    assert!(std::fs::symlink_metadata(repo.path.join("data")).unwrap().is_symlink());
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_persons_folder_where_we_only_delete_is_in_nobodys_way() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    std::fs::remove_file(repo.path.join("src/old.py")).unwrap();
    repo.write("src/old.py/x", "mine\n");
    assert_eq!(apply_merge(&repo.project(), &plan(&repo, &candidate)).unwrap(), CLEAN);
    assert_eq!(repo.read("src/old.py/x"), "mine\n");
    assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), "?? src/old.py/x");
}

#[test]
fn a_running_git_command_and_an_open_merge_are_waited_for() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    let plan = plan(&repo, &candidate);
    let lock = repo.path.join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let error = apply_merge(&repo.project(), &plan).unwrap_err();
    assert!(matches!(error, GitError::IndexLocked { .. }), "{error}");
    assert!(lock.exists());
    std::fs::remove_file(&lock).unwrap();
    let ref_lock = repo.path.join(".git/refs/heads/main.lock");
    std::fs::write(&ref_lock, "").unwrap();
    let error = apply_merge(&repo.project(), &plan).unwrap_err();
    assert!(matches!(error, GitError::RefLocked { .. }), "{error}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    std::fs::remove_file(&ref_lock).unwrap();
    std::fs::write(repo.path.join(".git/MERGE_HEAD"), format!("{}\n", candidate.base)).unwrap();
    let error = apply_merge(&repo.project(), &plan).unwrap_err();
    assert!(matches!(error, GitError::OperationInProgress { .. }), "{error}");
    std::fs::remove_file(repo.path.join(".git/MERGE_HEAD")).unwrap();
    // In a rebase nothing is checked out, and its end moves the branch.
    repo.git(&["-c", "sequence.editor=sed -i 1ibreak", "rebase", "-qi", "--root"]);
    let error = apply_merge(&repo.project(), &plan).unwrap_err();
    assert!(matches!(error, GitError::OperationInProgress { .. }), "{error}");
    repo.git(&["rebase", "--abort"]);
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
}

/// Between the moment at which a `git checkout` has read the branch and its end, the branch stays where it is.
#[test]
fn a_checkout_of_the_branch_that_is_under_way_is_waited_for() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    let plan = plan(&repo, &candidate);
    repo.git(&["checkout", "-qb", "feature"]);
    let lock = repo.path.join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let error = apply_merge(&repo.project(), &plan).unwrap_err();
    assert!(matches!(error, GitError::IndexLocked { .. }), "{error}");
    assert_eq!(repo.git(&["rev-parse", "main"]), candidate.base);
    // What a command left that was killed long ago holds up nothing that lies elsewhere.
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    std::fs::File::options().write(true).open(&lock).unwrap().set_modified(long_ago).unwrap();
    assert!(!is_landing(&repo.project(), &plan).unwrap());
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
    assert!(is_landing(&repo.project(), &plan).unwrap());
    assert_eq!(repo.git(&["rev-parse", "main"]), candidate.commit);
}

/// Killed before anything moved, a landing has left a lock and nothing else: its proof is looked at again, and whoever has
/// begun a branch of their own since is not locked out of it.
#[test]
fn a_lock_that_a_landing_left_before_anything_moved_goes_and_says_nothing() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    let plan = plan(&repo, &candidate);
    let (own, lock) = (repo.path.join(".git/teams.lock"), repo.path.join(".git/index.lock"));
    for elsewhere in [false, true] {
        std::fs::write(&own, "").unwrap();
        std::fs::hard_link(&own, &lock).unwrap();
        if elsewhere {
            repo.git(&["switch", "-qc", "own"]);
        }
        assert!(!is_landing(&repo.project(), &plan).unwrap());
        assert!(!lock.exists() && !own.exists(), "elsewhere: {elsewhere}");
    }
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
    assert_eq!(repo.git(&["rev-parse", "main"]), candidate.commit);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn the_branch_does_not_leave_a_worktree_behind_that_is_away() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    let plan = plan(&repo, &candidate);
    repo.git(&["checkout", "-qb", "feature"]);
    let disk = repo.root.with_file_name("disk");
    repo.git(&["worktree", "add", "-q", disk.to_str().unwrap(), "main"]);
    repo.git(&["worktree", "lock", disk.to_str().unwrap()]);
    let away = disk.with_file_name("away");
    std::fs::rename(&disk, &away).unwrap();
    let error = apply_merge(&repo.project(), &plan).unwrap_err();
    assert!(matches!(error, GitError::WorktreeAway { .. }), "{error}");
    assert_eq!(repo.git(&["rev-parse", "main"]), candidate.base);
    std::fs::rename(&away, &disk).unwrap();
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
    assert_eq!(git_in(&disk, &["status", "--porcelain"]), "");
}

#[test]
fn a_crash_at_any_step_is_repaired_by_repeating() {
    // Each state is what a kill leaves: the lock, the moved ref, some files, all files, the index beside.
    for step in 0..6 {
        let repo = Repo::new();
        repo.write("staged.txt", "staged\n");
        repo.git(&["add", "staged.txt"]);
        let (worktree, candidate) = candidate(&repo);
        let plan = plan(&repo, &candidate);
        let git_dir = repo.path.join(".git");
        std::fs::write(git_dir.join("teams.lock"), "").unwrap();
        if step >= 1 {
            std::fs::hard_link(git_dir.join("teams.lock"), git_dir.join("index.lock")).unwrap();
            put(&git_dir.join("teams/stage-half/run.sh"), "half\n");
        }
        if step == 1 {
            let own = git_dir.join("teams/refs~heads~main");
            put(&own, "half");
            std::fs::hard_link(&own, git_dir.join("refs/heads/main.lock")).unwrap();
        }
        if step >= 2 {
            repo.git(&["update-ref", "refs/heads/main", &candidate.commit]);
        }
        if step >= 3 {
            std::fs::remove_file(repo.path.join("README.md")).unwrap();
            std::fs::remove_file(repo.path.join("src/old.py")).unwrap();
        }
        if step >= 4 {
            repo.write("src/app.py", "print(2)\n");
            std::os::unix::fs::symlink("src/app.py", repo.path.join("link")).unwrap();
        }
        if step >= 5 {
            std::fs::write(git_dir.join("index.teams"), "torn").unwrap();
        }
        assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN, "step {step}");
        assert_eq!(repo.git(&["rev-parse", "main"]), candidate.commit);
        assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), "A  staged.txt", "step {step}");
        assert!(!git_dir.join("index.lock").exists() && !git_dir.join("index.teams").exists());
        assert_eq!(worktree.base().to_string(), candidate.base);
    }
}

#[test]
fn an_edit_made_between_crash_and_repair_is_left_alone_and_named() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    let plan = plan(&repo, &candidate);
    repo.git(&["update-ref", "refs/heads/main", &candidate.commit]);
    repo.write("src/app.py", "print('mine')\n");
    let outcome = apply_merge(&repo.project(), &plan).unwrap();
    assert_eq!(outcome, MergeOutcome::Merged { kept: vec!["src/app.py".into()] });
    assert_eq!(repo.git(&["status", "--porcelain"]), " M src/app.py");
    assert_eq!(repo.read("src/app.py"), "print('mine')\n");
}

#[test]
fn a_moved_branch_is_reported_and_one_that_has_the_commit_is_merged() {
    let repo = Repo::new();
    let (_worktree, candidate) = candidate(&repo);
    let plan = plan(&repo, &candidate);
    repo.write("other.txt", "x\n");
    repo.git(&["add", "other.txt"]);
    repo.git(&["commit", "-qm", "a person's"]);
    let head = repo.project().head().unwrap();
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), MergeOutcome::BranchMoved { head });
    repo.git(&["reset", "-q", "--hard", &candidate.base]);
    repo.git(&["merge", "-q", "--ff-only", &candidate.commit]);
    repo.write("other.txt", "x\n");
    repo.git(&["add", "other.txt"]);
    repo.git(&["commit", "-qm", "on top"]);
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
}

#[test]
fn a_branch_checked_out_in_a_linked_worktree_moves_there() {
    let repo = Repo::new();
    repo.git(&["checkout", "-q", "-b", "mine"]);
    let linked = repo.root.join("linked");
    repo.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "main"]);
    let (_worktree, candidate) = candidate(&repo);
    assert_eq!(apply_merge(&repo.project(), &plan(&repo, &candidate)).unwrap(), CLEAN);
    assert_eq!(git_in(&linked, &["status", "--porcelain"]), "");
    assert_eq!(git_in(&linked, &["rev-parse", "HEAD"]), candidate.commit);
    assert_eq!(repo.read("src/app.py"), "print(1)\n");
}

#[test]
fn a_rebase_carries_the_change_over_and_the_same_way_twice() {
    let repo = Repo::new();
    let (worktree, candidate) = candidate(&repo);
    repo.write("other.txt", "x\n");
    repo.git(&["add", "other.txt"]);
    repo.git(&["commit", "-qm", "a person's"]);
    let head = repo.project().head().unwrap();
    put(&worktree.path().join("late.txt"), "written after the commit\n");
    let Rebased::Moved(moved) = rebased(&repo, &worktree, &candidate, head) else {
        panic!("not moved");
    };
    assert_eq!(rebased(&repo, &worktree, &candidate, head), Rebased::Moved(moved.clone()));
    assert_eq!(moved.base, head.to_string());
    assert_eq!((&moved.paths, &moved.subject), (&candidate.paths, &candidate.subject));
    assert_eq!(repo.worktree().base(), head);
    assert_eq!(git_in(&worktree.path(), &["status", "--porcelain"]), "");
    let kept = format!("refs/teams/lost/{}-rebase:late.txt", request());
    assert_eq!(repo.git(&["show", &kept]), "written after the commit");
    assert_eq!(apply_merge(&repo.project(), &plan(&repo, &moved)).unwrap(), CLEAN);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.git(&["fsck", "--strict"]);
}

/// The worktrees of two requests that grow from the same commit, and the id of the second.
fn side_by_side(repo: &Repo) -> (Worktree, Worktree, RequestId) {
    let other = RequestId::parse("20260324-0a1b2c3e").unwrap();
    let second = repo.project().worktree(&other, &repo.root).unwrap();
    (repo.worktree(), second, other)
}

fn rebased(repo: &Repo, worktree: &Worktree, candidate: &Candidate, onto: CommitId) -> Rebased {
    rebase(&repo.project(), (worktree.request(), &repo.root), candidate, onto).unwrap()
}

/// A person's commit that does not fit the candidate's, and the conflict that comes of it.
fn conflict(repo: &Repo, worktree: &Worktree, candidate: &Candidate) -> Conflict {
    let head = repo.project().head().unwrap();
    let Rebased::Conflict(conflict) = rebased(repo, worktree, candidate, head) else {
        panic!("no conflict");
    };
    assert_eq!(conflict.head, head.to_string());
    assert_eq!((&conflict.commit, &conflict.base), (&candidate.commit, &candidate.base));
    conflict
}

// Row G06, as it should be: neither side of a conflict is taken by itself.
#[test]
fn a_conflict_puts_both_versions_onto_the_new_head_and_the_next_commit_fits() {
    let repo = Repo::new();
    let (worktree, candidate) = candidate(&repo);
    repo.write("src/app.py", "print('theirs')\n");
    repo.git(&["commit", "-qam", "a person's"]);
    let found = conflict(&repo, &worktree, &candidate);
    let own = format!("teams/{}", request());
    let marked =
        format!("<<<<<<< main\nprint('theirs')\n=======\nprint(2)\n>>>>>>> {}\n", request());
    let path = worktree.path().join("src/app.py");
    assert_eq!(found.paths, ["src/app.py"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), marked);
    assert_eq!(repo.worktree().base().to_string(), found.head);
    assert_eq!(repo.git(&["rev-parse", &format!("{own}^")]), found.head);
    assert_eq!(git_in(&worktree.path(), &["status", "--porcelain"]), "");
    // Cut off before it was noted, it comes to the same once more; and a lost worktree comes back with its marks.
    let marked_commit = repo.git(&["rev-parse", &own]);
    assert_eq!(conflict(&repo, &worktree, &candidate), found);
    assert_eq!(repo.git(&["rev-parse", &own]), marked_commit);
    std::fs::remove_dir_all(worktree.path()).unwrap();
    let worktree = repo.worktree();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), marked);
    assert_eq!(worktree.base().to_string(), found.head);
    // The change as it was is kept.
    let lost = format!("refs/teams/lost/{}", candidate.commit);
    assert_eq!(repo.git(&["rev-parse", &lost]), candidate.commit);
    // Both sides can be told.
    let sides = sides(&repo.project(), &found, 100).unwrap();
    assert!(sides.own.contains("+print(2)") && sides.branch.contains("+print('theirs')"));
    assert_eq!(sides.commits.len(), 1);
    assert_eq!(
        (sides.commits[0].message.as_str(), &sides.commits[0].request),
        ("a person's", &None)
    );
    // Solved, it lands on the head that it stands on, with nothing in the way.
    let unsolved_in = |worktree: &Worktree| {
        unsolved(&repo.project(), &found, worktree.tree_id().unwrap()).unwrap()
    };
    assert_eq!(unsolved_in(&worktree), ["src/app.py"]);
    put(&path, "print('theirs')\nprint(2)\n");
    assert_eq!(unsolved_in(&worktree), [""; 0]);
    let solved = repo.commit(&worktree);
    assert_eq!(solved.base, found.head);
    assert_eq!(apply_merge(&repo.project(), &plan(&repo, &solved)).unwrap(), CLEAN);
    assert_eq!(repo.read("src/app.py"), "print('theirs')\nprint(2)\n");
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn a_conflict_that_cannot_be_marked_leaves_the_branchs_side_and_takes_nothing_from_anybody() {
    let repo = Repo::new();
    for (name, text) in [("gone.txt", "1\n"), ("kept.txt", "1\n"), ("blob.bin", "\0\u{1}")] {
        repo.write(name, text);
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "more files"]);
    let worktree = repo.worktree();
    let tree = worktree.path();
    std::fs::remove_file(tree.join("kept.txt")).unwrap();
    put(&tree.join("gone.txt"), "mine\n");
    put(&tree.join("blob.bin"), "\0mine");
    put(&tree.join("new.txt"), "mine\n");
    put(&tree.join("folder/inside.txt"), "mine\n");
    put(&tree.join("free.txt"), "mine\n");
    let candidate = repo.commit(&worktree);
    repo.git(&["rm", "-q", "gone.txt"]);
    repo.write("kept.txt", "theirs\n");
    repo.write("blob.bin", "\0theirs");
    repo.write("new.txt", "theirs\n");
    repo.write("folder", "a file now\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "a person's"]);
    let found = conflict(&repo, &worktree, &candidate);
    let read = |name: &str| std::fs::read_to_string(tree.join(name)).ok();
    assert_eq!(read("gone.txt"), None);
    assert_eq!(read("kept.txt").as_deref(), Some("theirs\n"));
    assert_eq!(read("blob.bin").as_deref(), Some("\0theirs"));
    assert_eq!(read("folder").as_deref(), Some("a file now\n"));
    assert_eq!(read("free.txt").as_deref(), Some("mine\n"));
    let both = read("new.txt").unwrap();
    assert!(both.contains("theirs\n=======\nmine\n"), "{both}");
    for path in ["blob.bin", "gone.txt", "kept.txt", "new.txt"] {
        assert!(found.paths.iter().any(|it| it == path), "{:?}", found.paths);
    }
    let sides = sides(&repo.project(), &found, 1_000).unwrap();
    assert!(sides.own.contains("+mine") && sides.branch.contains("+theirs"));
    let tree_id = worktree.tree_id().unwrap();
    assert_eq!(unsolved(&repo.project(), &found, tree_id).unwrap(), ["new.txt"]);
}

#[test]
fn whoever_decides_about_a_conflict_reads_the_beginning_of_both_sides_and_how_much_more_there_is() {
    let repo = Repo::new();
    let text = |first: &str, last: &str| {
        let long: Vec<String> = (1..=30).map(|number| format!("{first} {number}")).collect();
        let (long, between) = (long.join("\n"), "between\n".repeat(12));
        format!("<<<<<<< ours\nan example\n{long}\n{between}{last}\n")
    };
    repo.write("long.txt", &text("old", "old"));
    repo.write("blob.bin", "\0\u{1}");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "more files"]);
    let worktree = repo.worktree();
    put(&worktree.path().join("long.txt"), &text("mine", "mine"));
    put(&worktree.path().join("blob.bin"), "\0mine");
    let candidate = repo.commit(&worktree);
    repo.write("long.txt", &text("theirs", "theirs"));
    repo.write("blob.bin", "\0theirs");
    repo.git(&["commit", "-qam", "a person's"]);
    let found = conflict(&repo, &worktree, &candidate);
    let eight = |word: &str| {
        (1..=8).map(|number| format!("{word} {number}\n")).collect::<String>() + "… +22\n"
    };
    let expected = format!(
        "long.txt:3\n<<<<<<< main\n{}=======\n{}>>>>>>> {}\nand one more place like this\n\
         blob.bin: no text on both sides; the branch's version stands there",
        eight("theirs"),
        eight("mine"),
        request()
    );
    assert_eq!(found.excerpt, expected);
}

#[test]
fn what_a_person_committed_meanwhile_and_the_change_undoes_is_marked() {
    let repo = Repo::new();
    repo.write("prod.yaml", "one: 1\ndebug: true\ntimeout: 30\n");
    repo.write("dev.yaml", "timeout: 10\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "settings"]);
    let since = repo.project().head().unwrap();
    repo.write("prod.yaml", "one: 1\ntimeout: 60\n");
    // As one that was amended: its last line is of the team.
    repo.git(&["commit", "-qam", &format!("a person's\n\nRequest: {}", request())]);
    let worktree = repo.worktree();
    // The line stands in another file, and counts for nothing there.
    put(&worktree.path().join("dev.yaml"), "timeout: 60\n");
    put(&worktree.path().join("prod.yaml"), "one: 2\ndebug: true\ntimeout: 30\n");
    let candidate = repo.commit(&worktree);
    let found = |is_of_team: bool| {
        overwritten(&repo.project(), since, &candidate, |_, _| is_of_team).unwrap()
    };
    assert_eq!(found(true), []);
    let found = found(false);
    assert_eq!((found.len(), found[0].path.as_str()), (1, "prod.yaml"));
    let ContentFact::Overwritten { line, more, .. } = &found[0].what else { panic!("{found:?}") };
    assert_eq!((line.as_str(), *more), ("- timeout: 60", 2));
    // What both have is undone by nobody.
    put(&worktree.path().join("prod.yaml"), "one: 2\ntimeout: 60\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(overwritten(&repo.project(), since, &candidate, |_, _| false).unwrap(), []);
}

#[test]
fn lines_that_only_read_like_marks_are_none() {
    let repo = Repo::new();
    let guide = "How git marks a conflict:\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n";
    repo.write("guide.md", guide);
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "a guide"]);
    let worktree = repo.worktree();
    let path = worktree.path().join("guide.md");
    put(&path, &guide.replace("How git", "How our git"));
    let candidate = repo.commit(&worktree);
    repo.write("guide.md", &guide.replace("How git", "How every git"));
    repo.git(&["commit", "-qam", "a person's"]);
    let found = conflict(&repo, &worktree, &candidate);
    let unsolved_now = |worktree: &Worktree| {
        unsolved(&repo.project(), &found, worktree.tree_id().unwrap()).unwrap()
    };
    assert_eq!(unsolved_now(&worktree), ["guide.md"]);
    for (text, left) in [
        (guide.replace("How git", "How our git and every git"), false),
        // Half-solved, with other line endings, or with the file gone.
        (format!("{guide}>>>>>>> {}\r\n", request()), true),
        (format!("<<<<<<< main\r\n{guide}"), true),
        (guide.replace("<<<<<<< ours\n", ""), false),
    ] {
        put(&path, &text);
        assert_eq!(!unsolved_now(&worktree).is_empty(), left, "{text}");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(unsolved_now(&worktree), [""; 0]);
}

#[test]
fn what_the_branch_has_already_is_left_out() {
    let repo = Repo::new();
    let (worktree, candidate) = candidate(&repo);
    // The person has done the very same already.
    repo.git(&["merge", "-q", "--squash", &candidate.commit]);
    repo.git(&["commit", "-qm", "took it over"]);
    let head = repo.project().head().unwrap();
    assert_eq!(rebased(&repo, &worktree, &candidate, head), Rebased::NothingLeft);
    assert_eq!(repo.worktree().base(), head);
}

#[test]
fn line_endings_follow_the_projects_attributes_everywhere() {
    let repo = Repo::new();
    repo.write("kept.txt", "crlf in the repository\r\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "before there were attributes"]);
    repo.write(".gitattributes", "* text=auto\n*.bat text eol=crlf\n");
    repo.write("run.bat", "one\r\n");
    repo.git(&["add", ".gitattributes", "run.bat"]);
    repo.git(&["commit", "-qm", "attributes"]);
    let worktree = repo.worktree();
    let bat = worktree.path().join("run.bat");
    assert_eq!(std::fs::read_to_string(&bat).unwrap(), "one\r\n");
    let start = worktree.tree_id().unwrap();
    assert_eq!(worktree.changed_since(start).unwrap().1, []);
    put(&bat, "one\r\ntwo\r\n");
    put(&worktree.path().join("kept.txt"), "crlf in the repository\r\nstill\r\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(candidate.paths.len(), 2);
    assert_eq!((candidate.added_lines, candidate.removed_lines), (2, 0));
    let plan = plan(&repo, &candidate);
    assert_eq!(apply_merge(&repo.project(), &plan).unwrap(), CLEAN);
    assert_eq!(repo.read("run.bat"), "one\r\ntwo\r\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    worktree.reset_to(start).unwrap();
    assert_eq!(std::fs::read_to_string(&bat).unwrap(), "one\r\n");
}

#[test]
fn an_excerpt_is_cut_and_says_so() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    let many: String = (0..50).map(|n| format!("line {n} \u{1b}[31m\n")).collect();
    put(&worktree.path().join("src/app.py"), &many);
    let candidate = repo.commit(&worktree);
    let text = diff::diff_excerpt(&repo.project(), &candidate, 10).unwrap();
    assert_eq!(text.lines().count(), 11, "{text}");
    assert!(text.contains("-print(1)") && text.contains("+line 0 \u{fffd}[31m"), "{text}");
    assert!(text.ends_with("more lines]\n"), "{text}");
}

#[test]
fn what_is_composed_without_files_has_them_as_soon_as_somebody_looks() {
    let repo = Repo::new();
    let (first, second, other) = side_by_side(&repo);
    let project = repo.project();
    put(&first.path().join("README.md"), "hello all\n");
    put(&second.path().join("src/app.py"), "print(2)\n");
    let (ahead, own) = (repo.commit(&first), repo.commit(&second));
    let onto = ahead.commit.parse().unwrap();
    let composed = || compose(&project, (&other, &repo.root), &own, onto).unwrap();
    let Rebased::Moved(moved) = composed() else { panic!("not moved") };
    assert_eq!(composed(), Rebased::Moved(moved.clone()), "the same again after a crash");
    assert_eq!((&moved.base, moved.paths.len()), (&ahead.commit, 1));
    let read = |path: &str| std::fs::read_to_string(second.path().join(path)).unwrap();
    assert_eq!(read("README.md"), "hello\n");
    let opened = project.worktree(&other, &repo.root).unwrap();
    assert_eq!(
        (read("README.md"), read("src/app.py")),
        ("hello all\n".into(), "print(2)\n".into())
    );
    assert_eq!(opened.base(), onto);
    assert_eq!(git_in(&second.path(), &["status", "--porcelain"]), "");
    // What does not fit leaves everything as it is.
    put(&opened.path().join("README.md"), "hello you\n");
    let clashing = repo.commit(&opened);
    let before = repo.git(&["rev-parse", "main"]).parse().unwrap();
    let found = compose(&project, (&other, &repo.root), &clashing, before).unwrap();
    assert_eq!(found, Rebased::Clash);
    assert_eq!(read("README.md"), "hello you\n");
}

#[test]
fn a_chain_that_undoes_what_is_before_it_does_not_land() {
    let repo = Repo::new();
    let (first, second, other) = side_by_side(&repo);
    let project = repo.project();
    put(&first.path().join("README.md"), "hello all\n");
    put(&second.path().join("src/app.py"), "print(2)\n");
    let (ahead, own) = (repo.commit(&first), repo.commit(&second));
    let before = repo.git(&["rev-parse", "main"]);
    // Its files as they were built, on top of the first one: a queue that took the wrong base would make this.
    let tree = format!("{}^{{tree}}", own.commit);
    let forged = repo.git(&["commit-tree", &tree, "-p", &ahead.commit, "-m", "second"]);
    let forged = Candidate { commit: forged, base: ahead.commit.clone(), ..own.clone() };
    let lost = |error: GitError| {
        let GitError::Lost { commit, paths } = error else { panic!("{error}") };
        (commit, paths)
    };
    let all = [ahead.clone(), forged.clone()];
    let wanted = (ahead.commit.clone(), vec!["README.md".to_owned()]);
    assert_eq!(lost(plan_merge(&project, &all).unwrap_err()), wanted);
    // By itself as well: it does what it does not say.
    let alone = plan_merge(&project, &all[1..]).unwrap_err();
    assert!(matches!(&alone, GitError::Foreign { paths, .. } if paths == &wanted.1), "{alone}");
    // Whoever has it on the branch all the same is told.
    repo.git(&["update-ref", "refs/heads/main", &forged.commit]);
    assert!(verify_landed(&project, &all[1..]).is_err());
    assert_eq!(lost(verify_landed(&project, &all).unwrap_err()), wanted);
    repo.git(&["update-ref", "refs/heads/main", &ahead.commit]);
    verify_landed(&project, &all[..1]).unwrap();
    assert_eq!(lost(verify_landed(&project, &all).unwrap_err()).0, forged.commit);
    repo.git(&["update-ref", "refs/heads/main", &before]);
    // Nor is it made: a change does on its new base what it did on its old one.
    let mistaken = Candidate { base: ahead.commit.clone(), ..own };
    let onto = ahead.commit.parse().unwrap();
    match compose(&project, (&other, &repo.root), &mistaken, onto) {
        Err(GitError::Foreign { paths, .. }) => assert_eq!(paths, ["README.md"]),
        made => panic!("{made:?}"),
    }
    assert_eq!(repo.git(&["rev-parse", "main"]), before);
}

#[test]
fn a_chain_that_undoes_lines_of_a_file_that_both_change_does_not_land() {
    let repo = Repo::new();
    let long: String = (0..40).map(|line| format!("line {line}\n")).collect();
    repo.write("src/app.py", &long);
    repo.git(&["commit", "-qam", "long"]);
    let (first, second, other) = side_by_side(&repo);
    let project = repo.project();
    put(&first.path().join("src/app.py"), &long.replace("line 3\n", "line three\n"));
    put(&second.path().join("src/app.py"), &long.replace("line 30\n", "line thirty\n"));
    let (ahead, own) = (repo.commit(&first), repo.commit(&second));
    let tree = format!("{}^{{tree}}", own.commit);
    let forged = repo.git(&["commit-tree", &tree, "-p", &ahead.commit, "-m", "second"]);
    let forged = Candidate { commit: forged, base: ahead.commit.clone(), ..own.clone() };
    let Err(GitError::Lost { commit, paths }) = plan_merge(&project, &[ahead.clone(), forged])
    else {
        panic!("it lands");
    };
    assert_eq!((commit, paths), (ahead.commit.clone(), vec!["src/app.py".to_owned()]));
    let onto = ahead.commit.parse().unwrap();
    let Rebased::Moved(moved) = compose(&project, (&other, &repo.root), &own, onto).unwrap() else {
        panic!("not moved");
    };
    let all = [ahead, moved];
    apply_merge(&project, &plan_merge(&project, &all).unwrap()).unwrap();
    verify_landed(&project, &all).unwrap();
}

#[test]
fn a_change_follows_a_file_that_the_branch_has_renamed() {
    let repo = Repo::new();
    let long: String = (0..40).map(|line| format!("line {line}\n")).collect();
    repo.write("src/app.py", &long);
    repo.git(&["commit", "-qam", "long"]);
    let worktree = repo.worktree();
    put(&worktree.path().join("src/app.py"), &long.replace("line 7\n", "line seven\n"));
    let candidate = repo.commit(&worktree);
    repo.git(&["mv", "src/app.py", "src/main.py"]);
    repo.git(&["commit", "-qm", "renamed by hand"]);
    let head = repo.project().head().unwrap();
    let Rebased::Moved(moved) = rebased(&repo, &worktree, &candidate, head) else {
        panic!("not moved");
    };
    assert_eq!(moved.paths.len(), 1);
    assert_eq!(moved.paths[0].path, "src/main.py");
    let text = repo.git(&["show", &format!("{}:src/main.py", moved.commit)]);
    assert!(text.contains("line seven"), "{text}");
}

#[test]
fn what_two_changes_both_do_is_not_composed_and_not_lost() {
    let repo = Repo::new();
    let (first, second, other) = side_by_side(&repo);
    let project = repo.project();
    for tree in [&first, &second] {
        put(&tree.path().join("pkg/__init__.py"), "");
    }
    put(&second.path().join("pkg/b.py"), "B = 1\n");
    let (ahead, own) = (repo.commit(&first), repo.commit(&second));
    let onto = ahead.commit.parse().unwrap();
    // Composed, it would be without the file that both add, also when the first one has left.
    let found = compose(&project, (&other, &repo.root), &own, onto).unwrap();
    assert_eq!(found, Rebased::Clash);
    // On the branch it may be absorbed.
    assert_eq!(apply_merge(&project, &plan(&repo, &ahead)).unwrap(), CLEAN);
    // And what the branch has is nobody's: it is composed onto a third one.
    let third = RequestId::parse("20260324-0a1b2c3f").unwrap();
    let third = project.worktree(&third, &repo.root).unwrap();
    put(&third.path().join("other.md"), "other\n");
    let third = repo.commit(&third).commit.parse().unwrap();
    let composed = compose(&project, (&other, &repo.root), &own, third).unwrap();
    let Rebased::Moved(own) = composed else { panic!("{composed:?}") };
    let second = project.worktree(&other, &repo.root).unwrap();
    let Rebased::Moved(moved) = rebased(&repo, &second, &own, onto) else {
        panic!("not moved");
    };
    assert_eq!(moved.paths.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["pkg/b.py"]);
}

/// What lies apart is not merged as a whole, and is what a merge would give.
#[test]
fn a_change_apart_from_the_others_is_on_their_commit_what_git_merges() {
    type Change = fn(&std::path::Path);
    let kinds: [(&str, Change); 7] = [
        ("nested", |tree| put(&tree.join("a/b/c/new.txt"), "new\n")),
        ("an emptied folder", |tree| std::fs::remove_dir_all(tree.join("lib/one")).unwrap()),
        ("a rename across folders", |tree| {
            std::fs::rename(tree.join("src/old.py"), tree.join("lib/old.py")).unwrap();
        }),
        ("a mode", |tree| set_mode(&tree.join("src/app.py"), 0o755)),
        ("a link for a file", |tree| {
            std::fs::remove_file(tree.join("src/app.py")).unwrap();
            std::os::unix::fs::symlink("old.py", tree.join("src/app.py")).unwrap();
        }),
        ("a file for a folder", |tree| {
            std::fs::remove_dir_all(tree.join("lib/one")).unwrap();
            put(&tree.join("lib/one"), "a file\n");
        }),
        ("beside and under names that begin alike", |tree| {
            put(&tree.join("src-x/app.py"), "1\n");
            put(&tree.join("src.txt"), "2\n");
            put(&tree.join("src/app.py"), "3\n");
        }),
    ];
    let repo = Repo::new();
    repo.write("lib/one/f.txt", "f\n");
    repo.write("lib/two.txt", "2\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "a library"]);
    let project = repo.project();
    let own: Vec<(&str, RequestId, Candidate)> = kinds
        .iter()
        .enumerate()
        .map(|(number, (what, change))| {
            let id = RequestId::parse(&format!("20260324-0a1b2d{number:02x}")).unwrap();
            let worktree = project.worktree(&id, &repo.root).unwrap();
            change(&worktree.path());
            let candidate = repo.commit(&worktree);
            (*what, id, candidate)
        })
        .collect();
    // In the same folders, and in none of the same paths.
    repo.write("lib/three.txt", "3\n");
    repo.write("src/deep/er.py", "er\n");
    repo.git(&["rm", "-q", "lib/two.txt"]);
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "a person's"]);
    let head = project.head().unwrap();
    for (what, id, candidate) in own {
        let wanted =
            repo.git(&["merge-tree", "--write-tree", &head.to_string(), &candidate.commit]);
        let moved = compose(&project, (&id, &repo.root), &candidate, head).unwrap();
        let Rebased::Moved(moved) = moved else { panic!("{what}: {moved:?}") };
        assert_eq!(moved.tree, wanted, "{what}");
        assert_eq!(moved.paths, candidate.paths, "{what}");
    }
    repo.git(&["fsck", "--strict"]);
}
