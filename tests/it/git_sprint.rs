//! What a sprint finds and leaves in the project's own checkout: rows G05, G08 and G09 of `spec/teams.md`
//! 14.8 and the states of 11.2, with the better result where a row is marked as a defect.

use std::path::PathBuf;

use teams::domain::ids::SprintId;
use teams::domain::sprint::{CloseoutStatus, GitBaseline};
use teams::git::sprint::{baseline, collect, dirty, inspect, left_over, pick};
use teams::git::{GitError, MergeOutcome, apply_merge, plan_merge};

use crate::git_repo::{Repo, git_in, set_mode};

fn sprint() -> SprintId {
    SprintId::parse("260324-Sprint-09:00").unwrap()
}

fn paths(repo: &Repo, before: &GitBaseline) -> Vec<String> {
    left_over(&repo.project(), before, &[]).unwrap().into_keys().collect()
}

/// A checkout in which a person has changed, added, deleted and staged things.
fn busy() -> Repo {
    let repo = Repo::new();
    repo.write("README.md", "edited before\n");
    repo.write("notes/한 글.txt", "untracked before\n");
    repo.write("staged.txt", "staged before\n");
    repo.git(&["add", "staged.txt"]);
    std::fs::remove_file(repo.path.join("src/old.py")).unwrap();
    repo.write("noise.log", "ignored\n");
    repo
}

#[test]
fn a_baseline_knows_what_differs_by_content() {
    let repo = busy();
    let found = baseline(&repo.project(), &[]).unwrap();
    assert_eq!(found.head_sha, repo.git(&["rev-parse", "HEAD"]));
    let wanted = ["README.md", "notes/한 글.txt", "src/old.py", "staged.txt"];
    assert_eq!(found.dirty_paths, wanted);
    assert_eq!(found.dirty["src/old.py"], "");
    assert!(found.dirty["README.md"].starts_with("100644 "));
    // What was staged and put back again is as it was.
    repo.write("README.md", "other\n");
    repo.git(&["add", "README.md"]);
    repo.write("README.md", "hello\n");
    assert!(!dirty(&repo.project(), &[]).unwrap().contains_key("README.md"));
}

#[test]
fn g05_nothing_beyond_the_baseline_is_nothing_left() {
    let repo = busy();
    let before = baseline(&repo.project(), &[]).unwrap();
    let found = inspect(&repo.project(), Some(&before), &sprint(), &[]);
    assert_eq!(found.status, CloseoutStatus::NoNewCommits);
    assert!(found.uncommitted_paths.is_empty() && found.commits.is_empty());
}

#[test]
fn g08_a_further_edit_of_a_file_that_was_dirty_is_left_over() {
    let repo = busy();
    let before = baseline(&repo.project(), &[]).unwrap();
    repo.write("README.md", "edited again\n");
    repo.write("src/old.py", "back, and new\n");
    repo.write("new.txt", "new\n");
    set_mode(&repo.path.join("src/app.py"), 0o755);
    std::fs::remove_file(repo.path.join("notes/한 글.txt")).unwrap();
    let wanted = ["README.md", "new.txt", "src/app.py", "src/old.py"];
    assert_eq!(paths(&repo, &before), wanted);
    let found = inspect(&repo.project(), Some(&before), &sprint(), &[]);
    assert_eq!(found.status, CloseoutStatus::PendingChanges);
    assert_eq!(found.uncommitted_paths, wanted);
    // A baseline of the older runtime has names alone: those stay the person's.
    let older = GitBaseline { dirty: Default::default(), ..before };
    assert_eq!(paths(&repo, &older), ["new.txt", "src/app.py"]);
}

#[test]
fn the_workspace_and_another_branch_are_no_part_of_it() {
    let repo = Repo::new();
    let before = baseline(&repo.project(), &[]).unwrap();
    repo.write("ws/state.json", "{}\n");
    repo.write("ws2/x", "x\n");
    let excluded = [PathBuf::from("ws")];
    let left = left_over(&repo.project(), &before, &excluded).unwrap();
    assert_eq!(left.into_keys().collect::<Vec<_>>(), ["ws2/x"]);
    repo.git(&["checkout", "-qb", "theirs"]);
    assert!(dirty(&repo.project(), &[]).unwrap().is_empty());
}

#[test]
fn every_commit_since_is_counted_and_its_subject_says_whose_it_is() {
    let repo = Repo::new();
    let project = repo.project();
    let before = baseline(&project, &[]).unwrap();
    repo.write("a", "a");
    repo.git(&["add", "a"]);
    repo.git(&["commit", "-qm", "by a person\n\n[260324-Sprint-09:00] not here"]);
    let found = inspect(&project, Some(&before), &sprint(), &[]);
    assert_eq!(found.status, CloseoutStatus::WarningMissingSprintTag);
    repo.write("b", "b");
    repo.git(&["add", "b"]);
    repo.git(&["commit", "-qm", "[260324-Sprint-09:00] todo-1 b: say b"]);
    let found = inspect(&project, Some(&before), &sprint(), &[]);
    assert_eq!(found.status, CloseoutStatus::Verified);
    let tagged: Vec<bool> = found.commits.iter().map(|commit| commit.sprint_tagged).collect();
    assert_eq!(tagged, [false, true]);
    assert_eq!(found.commits[1].sha, repo.git(&["rev-parse", "HEAD"]));
    assert!(found.commits[1].sha.starts_with(&found.commits[1].short_sha));
    // Where the older runtime found no commit, all of them came since.
    let unborn = GitBaseline { head_sha: "HEAD".to_owned(), ..before.clone() };
    assert_eq!(inspect(&project, Some(&unborn), &sprint(), &[]).commits.len(), 3);
    let wrong = GitBaseline { head_sha: "f".repeat(40), ..before };
    let found = inspect(&project, Some(&wrong), &sprint(), &[]);
    assert_eq!(found.status, CloseoutStatus::Failed);
    assert!(!found.message.is_empty());
    assert_eq!(inspect(&project, None, &sprint(), &[]).status, CloseoutStatus::Failed);
}

#[test]
fn g09_a_project_that_is_no_repository_any_more_can_be_closed() {
    let repo = Repo::new();
    let project = repo.project();
    let before = baseline(&project, &[]).unwrap();
    std::fs::remove_dir_all(repo.path.join(".git")).unwrap();
    let found = inspect(&project, Some(&before), &sprint(), &[]);
    assert_eq!(found.status, CloseoutStatus::NoRepo);
    let blank = baseline(&project, &[]).unwrap();
    assert_eq!(blank, GitBaseline::default());
    assert_eq!(inspect(&project, Some(&blank), &sprint(), &[]).status, CloseoutStatus::NoRepo);
    // A todo's work has nowhere to go there.
    assert!(project.worktree(&crate::git_repo::request(), &repo.root).is_err());
}

#[test]
fn leftovers_and_nothing_else_are_collected_committed_and_brought_to_the_branch() {
    let repo = busy();
    let project = repo.project();
    let before = baseline(&project, &[]).unwrap();
    repo.write("deep/er/new.txt", "new\n");
    repo.write("run.sh", "#!/bin/sh\n");
    set_mode(&repo.path.join("run.sh"), 0o755);
    std::os::unix::fs::symlink("run.sh", repo.path.join("link")).unwrap();
    std::fs::remove_file(repo.path.join("src/app.py")).unwrap();
    let left = paths(&repo, &before);
    assert_eq!(left, ["deep/er/new.txt", "link", "run.sh", "src/app.py"]);
    let seen = pick(&project, &before, &left, &[]).unwrap();
    let worktree = repo.worktree();
    // The rest of an earlier try is no part of it.
    std::fs::write(worktree.path().join("stray.txt"), "stray").unwrap();
    for _ in 0..2 {
        collect(&worktree, &seen, &[]).unwrap();
    }
    let candidate = repo.commit(&worktree);
    let committed: Vec<&str> = candidate.paths.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(committed, left);
    let listed = repo.git(&["ls-tree", &candidate.commit, "run.sh", "link"]);
    assert!(listed.contains("120000 blob") && listed.contains("100755 blob"), "{listed}");
    let merged = apply_merge(&project, &plan_merge(&project, &candidate).unwrap()).unwrap();
    assert!(matches!(merged, MergeOutcome::Merged { .. }), "{merged:?}");
    // What was the person's before is the person's still.
    assert!(paths(&repo, &before).is_empty());
    assert_eq!(repo.read("README.md"), "edited before\n");
    assert_eq!(dirty(&project, &[]).unwrap(), before.dirty);
    assert!(repo.git(&["diff", "--cached", "--name-only"]).contains("staged.txt"));
}

#[test]
fn a_path_that_changed_meanwhile_is_named_and_nothing_is_taken() {
    let repo = Repo::new();
    let project = repo.project();
    let before = baseline(&project, &[]).unwrap();
    repo.write("a.txt", "one\n");
    repo.write("b.txt", "one\n");
    let names = ["a.txt", "b.txt"].map(str::to_owned);
    let seen = pick(&project, &before, &names, &[]).unwrap();
    let worktree = repo.worktree();
    repo.write("b.txt", "two\n");
    let named = |error: GitError| {
        let GitError::ChangedMeanwhile { path } = error else { panic!("{error}") };
        path
    };
    assert_eq!(named(collect(&worktree, &seen, &[]).unwrap_err()), "b.txt");
    assert_eq!(git_in(&worktree.path(), &["status", "--porcelain"]), "");
    std::fs::remove_file(repo.path.join("a.txt")).unwrap();
    assert_eq!(named(pick(&project, &before, &names, &[]).unwrap_err()), "a.txt");
    let outside = ["../x".to_owned()];
    assert_eq!(named(pick(&project, &before, &outside, &[]).unwrap_err()), "../x");
}

#[test]
fn a_file_may_become_a_folder_and_a_link_leads_nowhere() {
    let repo = Repo::new();
    let project = repo.project();
    let before = baseline(&project, &[]).unwrap();
    std::fs::remove_file(repo.path.join("README.md")).unwrap();
    repo.write("README.md/inside.txt", "now a folder\n");
    let left = paths(&repo, &before);
    assert_eq!(left, ["README.md", "README.md/inside.txt"]);
    let worktree = repo.worktree();
    let seen = pick(&project, &before, &left, &[]).unwrap();
    collect(&worktree, &seen, &[]).unwrap();
    let copied = worktree.path().join("README.md/inside.txt");
    assert_eq!(std::fs::read_to_string(copied).unwrap(), "now a folder\n");

    // A link of the branch that is a folder now: nothing is written to where it pointed.
    let repo = Repo::new();
    std::os::unix::fs::symlink("/tmp", repo.path.join("out")).unwrap();
    repo.git(&["add", "out"]);
    repo.git(&["commit", "-qm", "a link"]);
    let project = repo.project();
    let before = baseline(&project, &[]).unwrap();
    std::fs::remove_file(repo.path.join("out")).unwrap();
    repo.write("out/teams-test-inside.txt", "inside\n");
    let seen = pick(&project, &before, &paths(&repo, &before), &[]).unwrap();
    let worktree = repo.worktree();
    collect(&worktree, &seen, &[]).unwrap();
    assert!(worktree.path().join("out/teams-test-inside.txt").exists());
    assert!(!std::path::Path::new("/tmp/teams-test-inside.txt").exists());
    // Without the link's end among what is taken, the path is refused.
    let mut part = seen;
    part.remove("out");
    let refused = collect(&worktree, &part, &[]).unwrap_err();
    assert!(matches!(refused, GitError::ForbiddenPath { .. }), "{refused}");
}
