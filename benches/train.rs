//! The team's own part of the train: composing changes one on the other, and bringing one to the branch, in
//! projects of 10,000 and 50,000 files, beside `git merge-tree` and `git commit-tree` of the same changes.
//! `TEAMS_BENCH_FILES` names other sizes.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods
)]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use teams::domain::evidence::Candidate;
use teams::domain::ids::RequestId;
use teams::domain::time::Timestamp;
use teams::git::{
    self, CommitId, CommitRules, MergeOutcome, MessageParts, Project, Worktree, create,
};

/// Changes that are composed.
const CARS: usize = 32;
/// Files in one folder.
const FOLDER: usize = 100;

fn main() {
    let sizes = std::env::var("TEAMS_BENCH_FILES").unwrap_or_else(|_| "10000,50000".to_owned());
    for files in sizes.split(',').map(|text| text.trim().parse().unwrap()) {
        measure(files);
    }
}

fn measure(files: usize) {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = place.path().join("project");
    for number in 0..files {
        let folder = path.join(format!("d{}", number / FOLDER));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("f{number}.txt")), format!("file {number}\n")).unwrap();
    }
    create::create(&path, "main", "A project").unwrap();
    let project = Project::open(&path, "main").unwrap();
    let work = place.path().join("work");
    let mut ready: Vec<(Worktree, Candidate)> =
        (0..CARS).map(|number| change(&project, &work, number)).collect();
    // What was written so far is not what is measured: each durable write would wait for all of it.
    assert!(Command::new("sync").status().unwrap().success());
    let git = beside(&path, &ready);

    let mut base = project.head().unwrap();
    let begun = Instant::now();
    for (worktree, candidate) in &mut ready[1..] {
        let request = (worktree.request(), work.as_path());
        let moved = git::rebase::compose(&project, request, candidate, base).unwrap();
        let git::Rebased::Moved(moved) = moved else { panic!("{moved:?}") };
        base = moved.commit.parse::<CommitId>().unwrap();
        *candidate = moved;
    }
    let composed = begun.elapsed();
    let candidate = &ready[1].1;
    let begun = Instant::now();
    let plan = git::plan_merge(&project, std::slice::from_ref(candidate)).unwrap();
    let outcome = git::apply_merge(&project, &plan).unwrap();
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
    assert!(git::verify_landed(&project, std::slice::from_ref(candidate)).is_ok());
    let landed = begun.elapsed();
    let limit = if files > 20_000 { 1_000 } else { 300 };
    println!("{files} files: composing {CARS} changes {:.0} ms   (goal <= 1000)", ms(composed));
    println!("{files} files: git, a process for each step {:.0} ms", ms(git));
    println!("{files} files: landing one {:.0} ms   (goal <= {limit})", ms(landed));
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn change(project: &Project, root: &Path, number: usize) -> (Worktree, Candidate) {
    let id = RequestId::parse(&format!("20260324-{number:08x}")).unwrap();
    let worktree = project.worktree(&id, root).unwrap();
    let file = worktree.path().join(format!("d{number}/f{}.txt", number * FOLDER));
    std::fs::write(file, format!("changed {number}\n")).unwrap();
    let parts =
        MessageParts { request: Some(id), title: "a change".to_owned(), ..MessageParts::default() };
    let at = Timestamp::from_millis(1_774_300_000_000);
    let plan =
        git::plan_commit(&worktree, None, &parts, &CommitRules::default(), at).unwrap().unwrap();
    let candidate = git::apply_commit(&worktree, &plan).unwrap();
    (worktree, candidate)
}

/// The same with the git program.
fn beside(path: &Path, ready: &[(Worktree, Candidate)]) -> Duration {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let begun = Instant::now();
    let mut at = ready[0].1.commit.clone();
    for (_, candidate) in ready.iter().skip(1) {
        let tree = git(&["merge-tree", "--write-tree", &at, &candidate.commit]);
        let name = ["-c", "user.name=T", "-c", "user.email=t@localhost"];
        let commit = ["commit-tree", &tree, "-p", &at, "-m", "a change"];
        at = git(&[&name[..], &commit[..]].concat());
    }
    begun.elapsed()
}
