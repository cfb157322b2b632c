//! What a sprint finds and leaves in the project's own checkout: rows G05, G08 and G09 of `spec/teams.md`
//! 14.8 and the states of 11.2, with the better result where a row is marked as a defect.

use std::path::PathBuf;

use teams::domain::ids::SprintId;
use teams::domain::sprint::{CloseoutStatus, GitBaseline};
use teams::git::sprint::{baseline, inspect, uncommitted};

use crate::git_repo::{Repo, set_mode};

fn sprint() -> SprintId {
    SprintId::parse("260324-Sprint-09:00").unwrap()
}

fn paths(repo: &Repo) -> Vec<String> {
    uncommitted(&repo.project(), &[]).unwrap().into_iter().collect()
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
    // What was staged and put back again is as it was.
    repo.write("README.md", "other\n");
    repo.git(&["add", "README.md"]);
    repo.write("README.md", "hello\n");
    assert!(!paths(&repo).contains(&"README.md".to_owned()));
}

#[test]
fn g05_g08_what_lies_uncommitted_is_named_and_changes_nothing_of_how_it_ended() {
    let repo = busy();
    let before = baseline(&repo.project(), &[]).unwrap();
    let found = inspect(&repo.project(), Some(&before), &sprint(), &[]);
    assert_eq!(found.status, CloseoutStatus::NoNewCommits);
    assert_eq!(found.uncommitted_paths, before.dirty_paths);
    // Also what became of it meanwhile, and what is new.
    repo.write("README.md", "edited again\n");
    repo.write("new.txt", "new\n");
    set_mode(&repo.path.join("src/app.py"), 0o755);
    std::fs::remove_file(repo.path.join("notes/한 글.txt")).unwrap();
    let found = inspect(&repo.project(), Some(&before), &sprint(), &[]);
    assert_eq!(found.status, CloseoutStatus::NoNewCommits);
    let wanted = ["README.md", "new.txt", "src/app.py", "src/old.py", "staged.txt"];
    assert_eq!(found.uncommitted_paths, wanted);
    assert_eq!(paths(&repo), wanted);
}

#[test]
fn the_workspace_and_another_branch_are_no_part_of_it() {
    let repo = Repo::new();
    repo.write("ws/state.json", "{}\n");
    repo.write("ws2/x", "x\n");
    let excluded = [PathBuf::from("ws")];
    let found = uncommitted(&repo.project(), &excluded).unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["ws2/x"]);
    repo.git(&["checkout", "-qb", "theirs"]);
    assert!(paths(&repo).is_empty());
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
fn what_is_no_part_of_the_project_is_named_and_not_read() {
    let repo = Repo::new();
    let huge = std::fs::File::create(repo.path.join("disk.img")).unwrap();
    huge.set_len(1 << 42).unwrap();
    assert_eq!(uncommitted(&repo.project(), &[]).unwrap(), ["disk.img".to_owned()].into());
}
