//! Looks at a worktree read what was touched, and trees that were given back are used again.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use teams::domain::ids::{RequestId, RunId};
use teams::git::{Project, TreeId, Worktree};

use crate::git_repo::{Repo, at, git_in, put, request, set_mode};

fn other(name: &str) -> RequestId {
    RequestId::parse(&format!("20260324-{name}")).unwrap()
}

/// The tree of the files as a repository that has never seen them has it.
fn by_git(repo: &Repo, tree: &Path) -> String {
    let index = repo.root.with_file_name("fresh-index");
    let _ = std::fs::remove_file(&index);
    let git = |args: &[&str]| {
        let output = std::process::Command::new("git")
            .args(args)
            .env("GIT_DIR", repo.path.join(".git"))
            .env("GIT_WORK_TREE", tree)
            .env("GIT_INDEX_FILE", &index)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["read-tree", "main"]);
    git(&["add", "-A"]);
    git(&["write-tree"])
}

fn same(repo: &Repo, worktree: &Worktree) -> TreeId {
    let found = worktree.tree_id().unwrap();
    assert_eq!(found.to_string(), by_git(repo, &worktree.path()));
    found
}

#[test]
fn no_time_that_a_program_can_set_hides_a_change() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    let file = worktree.path().join("src/app.py");
    let first = same(&repo, &worktree);
    let long_ago = SystemTime::now() - Duration::from_secs(86_400);
    // The same size, inode and time of modification, over and over, each within the tick of the look before it.
    let mut last = first;
    for round in 0..40 {
        std::fs::write(&file, format!("print({})\n", round % 10)).unwrap();
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
        let now = same(&repo, &worktree);
        assert_ne!(now, last, "round {round}");
        last = now;
    }
    // A file is swapped for another one of the same size and time.
    let twin = worktree.path().join("twin.log");
    std::fs::write(&twin, "print(z)\n").unwrap();
    std::fs::File::options().write(true).open(&twin).unwrap().set_modified(long_ago).unwrap();
    std::fs::rename(&twin, &file).unwrap();
    assert_ne!(same(&repo, &worktree), last);
    // Flags of the agents' own index say nothing.
    git_in(&worktree.path(), &["update-index", "--assume-unchanged", "README.md"]);
    put(&worktree.path().join("README.md"), "jello\n");
    let changed = worktree.changed_since(first).unwrap().1;
    assert!(changed.iter().any(|it| it.path == "README.md"), "{changed:?}");
}

#[test]
fn other_rules_for_line_ends_count_for_files_that_nobody_touched() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    put(&worktree.path().join("dos.txt"), "one\r\ntwo\r\n");
    let before = same(&repo, &worktree);
    put(&worktree.path().join(".gitattributes"), "*.txt text\n");
    let after = same(&repo, &worktree);
    let listing = |tree: TreeId| repo.git(&["ls-tree", &tree.to_string(), "dos.txt"]);
    assert_ne!(listing(before), listing(after));
    std::fs::remove_file(worktree.path().join(".gitattributes")).unwrap();
    assert_eq!(same(&repo, &worktree), before);
}

#[test]
fn an_index_that_is_gone_or_torn_only_costs_time() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    put(&worktree.path().join("new.txt"), "x\n");
    let tree = same(&repo, &worktree);
    let index = repo.root.join(request().as_str()).join("index");
    for text in [&b""[..], b"DIRC\0\0\0\x02\0\0\0\x09", b"no index"] {
        std::fs::write(&index, text).unwrap();
        assert_eq!(same(&repo, &worktree), tree);
    }
    std::fs::remove_file(&index).unwrap();
    assert_eq!(same(&repo, &worktree), tree);
    // What only our index knew of is gone.
    repo.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(same(&repo, &worktree), tree);
    repo.git(&["cat-file", "-e", &format!("{tree}:new.txt")]);
}

fn inodes(tree: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if path.file_name().unwrap() == ".git" {
            } else if meta.is_dir() {
                folders.push(path);
            } else {
                found.push((path.strip_prefix(tree).unwrap().to_owned(), meta.ino()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_next_request_begins_with_the_files_of_the_one_before_and_with_nothing_else_of_it() {
    let repo = Repo::new();
    let project = repo.project();
    let worktree = repo.worktree();
    let tree = worktree.path();
    let first = inodes(&tree);
    // Everything that can be left behind, of it what git ignores, and what hinders removal.
    put(&tree.join("build/cache"), "of another commit\n");
    put(&tree.join("left/behind"), "x\n");
    put(&tree.join("src/app.py"), "print(9)\n");
    std::fs::remove_file(tree.join("README.md")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", tree.join("README.md")).unwrap();
    std::fs::hard_link(tree.join("src/old.py"), tree.join("twin.log")).unwrap();
    git_in(&tree, &["init", "-q", "nested"]);
    set_mode(&tree.join("left"), 0o555);
    set_mode(&tree.join("src"), 0o555);
    project.release(&request(), &repo.root).unwrap();
    assert!(!tree.exists());

    repo.write("src/more.py", "print(3)\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "second"]);
    let next = project.worktree(&other("next"), &repo.root).unwrap();
    let now = inodes(&next.path());
    let names: Vec<String> =
        now.iter().map(|(path, _)| path.to_str().unwrap().to_owned()).collect();
    assert_eq!(names, [".gitignore", "README.md", "src/app.py", "src/more.py", "src/old.py"]);
    assert_eq!(next.tree_id().unwrap().to_string(), repo.git(&["rev-parse", "main^{tree}"]));
    for file in [".gitignore", "README.md", "src/app.py", "src/more.py", "src/old.py"] {
        let text = std::fs::read_to_string(next.path().join(file)).unwrap();
        assert_eq!(text, repo.read(file), "{file}");
        assert_eq!(std::fs::metadata(next.path().join(file)).unwrap().nlink(), 1, "{file}");
    }
    // What nobody touched was not written again, and what no commit had is kept a while.
    assert_eq!(now[0], first[0]);
    let lost = format!("refs/teams/lost/{}-ended:left/behind", request());
    assert_eq!(repo.git(&["show", &lost]), "x");
    assert_eq!(git_in(&next.path(), &["status", "--porcelain", "--ignored"]), "");
}

#[test]
fn what_has_another_name_elsewhere_is_not_handed_on() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    let outside = repo.root.with_file_name("outside");
    std::fs::hard_link(worktree.path().join("src/app.py"), &outside).unwrap();
    same(&repo, &worktree);
    repo.project().release(&request(), &repo.root).unwrap();
    let next = repo.project().worktree(&other("0a1b2c99"), &repo.root).unwrap();
    std::fs::write(&outside, "print('not proven')\n").unwrap();
    let read = std::fs::read_to_string(next.path().join("src/app.py")).unwrap();
    assert_eq!(read, repo.read("src/app.py"));
}

#[test]
fn requests_that_only_read_share_the_files_of_their_base() {
    let repo = Repo::new();
    let project = repo.project();
    let [one, two] = [other("one"), other("two")];
    let reads = |id: &RequestId| project.reading_tree(id, &repo.root).unwrap();
    let base = project.head().unwrap();
    let shared = reads(&one).path();
    assert_eq!(reads(&two).path(), shared);
    assert_eq!(git_in(&shared, &["rev-parse", "HEAD"]), base.to_string());
    assert_eq!(git_in(&shared, &["status", "--porcelain"]), "");
    assert_eq!(repo.git(&["branch", "--list", "teams/*"]), "");
    // Whoever began reading goes on there, and writes on top of what was read.
    repo.write("README.md", "moved on\n");
    repo.git(&["commit", "-qam", "second"]);
    assert_eq!(reads(&one).path(), shared);
    let three = reads(&other("three"));
    assert_ne!(three.path(), shared);
    let own = project.worktree(&one, &repo.root).unwrap();
    assert_eq!((own.base(), own.path() == shared), (base, false));
    assert!(own.own_since().is_some());
    put(&own.path().join("new.txt"), "x\n");
    assert_eq!(reads(&one).path(), own.path());
    assert!(!shared.join("new.txt").exists());
    // What a role wrote that may not is seen and put back.
    let two_reads = reads(&two);
    let before = two_reads.tree_id().unwrap();
    put(&shared.join("mark"), "x\n");
    assert_eq!(two_reads.changed_since(before).unwrap().1.len(), 1);
    two_reads.snapshot_lost(&RunId::parse("run-1").unwrap(), at(1)).unwrap();
    two_reads.reset_to(before).unwrap();
    assert_eq!(two_reads.tree_id().unwrap(), before);
    // The last reader takes the files along.
    let node = std::fs::metadata(shared.join(".gitignore")).unwrap().ino();
    let own = project.worktree(&two, &repo.root).unwrap();
    assert_eq!(std::fs::metadata(own.path().join(".gitignore")).unwrap().ino(), node);
    assert!(!shared.exists());
    for id in [&one, &two, &other("three")] {
        project.release(id, &repo.root).unwrap();
    }
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(std::fs::read_dir(&repo.root).unwrap().count(), 0);
    assert!(std::fs::read_dir(repo.root.with_file_name("trees")).unwrap().count() <= 3);
}

#[test]
fn a_worktree_that_was_put_away_comes_back_as_it_was() {
    let repo = Repo::new();
    repo.write(".gitattributes", "*.txt text eol=lf\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "attributes"]);
    let project = repo.project();
    let worktree = repo.worktree();
    put(&worktree.path().join("committed.py"), "x\n");
    let candidate = repo.commit(&worktree);
    let (base, tree) = (worktree.base(), worktree.path());
    put(&tree.join("mixed.txt"), "one\r\ntwo\nthree\r\n");
    put(&tree.join("new\nline 한글"), "x\n");
    put(&tree.join("run.sh"), "#!/bin/sh\n");
    set_mode(&tree.join("run.sh"), 0o755);
    std::os::unix::fs::symlink("nowhere", tree.join("link")).unwrap();
    std::fs::remove_file(tree.join("src/app.py")).unwrap();
    std::fs::remove_file(tree.join("README.md")).unwrap();
    put(&tree.join("README.md/now/a folder"), "x\n");
    put(&tree.join("build/cache"), "ignored\n");
    let before = worktree.tree_id().unwrap();
    let contents = |tree: &Path| {
        let read = |(path, _): &(PathBuf, u64)| {
            let full = tree.join(path);
            let link = std::fs::read_link(&full).ok();
            let mode = full.symlink_metadata().unwrap().mode() & 0o111;
            let bytes = if link.is_none() { std::fs::read(&full).unwrap() } else { Vec::new() };
            (path.clone(), link, mode, bytes)
        };
        let all: Vec<_> = inodes(tree).iter().map(read).collect();
        all.into_iter().filter(|(path, ..)| !path.starts_with("build")).collect::<Vec<_>>()
    };
    let was = contents(&tree);
    for round in 0..2 {
        project.worktree(&request(), &repo.root).unwrap().put_away(at(round)).unwrap();
        assert!(!repo.root.join(request().as_str()).exists());
        assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
        repo.write("README.md", &format!("moved on {round}\n"));
        repo.git(&["commit", "-qam", "meanwhile"]);
        repo.git(&["gc", "-q", "--prune=now"]);
        // A role that only reads sees it as well.
        let back = project.reading_tree(&request(), &repo.root).unwrap();
        assert_eq!(
            (back.base(), back.path(), back.tree_id().unwrap()),
            (base, tree.clone(), before)
        );
        assert_eq!(contents(&back.path()), was);
        assert_eq!(repo.git(&["for-each-ref", "refs/teams/kept"]), "");
    }
    assert_eq!(repo.git(&["rev-parse", &format!("teams/{}", request())]), candidate.commit);
    project.worktree(&request(), &repo.root).unwrap().put_away(at(9)).unwrap();
    project.release(&request(), &repo.root).unwrap();
    assert_eq!(repo.git(&["for-each-ref", "refs/teams/kept"]), "");
    let lost = format!("refs/teams/lost/{}-ended", request());
    assert_eq!(repo.git(&["show", &format!("{lost}:run.sh")]), "#!/bin/sh");
    // It is of long ago, and kept since now, which its file does not say once git has packed it.
    repo.git(&["pack-refs", "--all"]);
    assert_eq!(project.forget_lost(at(1_000_000), &Default::default()).unwrap(), 0);
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)", "refs/teams/lost"]), lost);
}

#[test]
fn what_lies_there_at_the_end_is_kept_whatever_was_kept_before_or_holds_the_refs() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    std::fs::write(worktree.path().join("new.txt"), "now\n").unwrap();
    // Kept of an earlier wait; somebody's git held it when it was to go.
    let kept = format!("refs/teams/kept/{}", request());
    let before = repo.git(&["commit-tree", "-p", "HEAD", "-m", "kept", "HEAD^{tree}"]);
    repo.git(&["update-ref", &kept, before.trim()]);
    repo.git(&["pack-refs", "--all"]);
    let lock = repo.path.join(".git/packed-refs.lock");
    std::fs::write(&lock, "").unwrap();
    let project = repo.project();
    project.release(&request(), &repo.root).unwrap();
    let lost = format!("refs/teams/lost/{}-ended:new.txt", request());
    assert_eq!(repo.git(&["show", &lost]), "now");
    assert!(!worktree.path().exists());
}

#[test]
fn what_cannot_be_read_is_named_wherever_it_is_needed() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    std::fs::write(worktree.path().join("new.txt"), "new\n").unwrap();
    let candidate = repo.commit(&worktree);
    let tree = worktree.tree_id().unwrap();
    let blob = repo.git(&["rev-parse", &format!("{}:new.txt", candidate.commit)]);
    let (folder, name) = blob.trim().split_at(2);
    let object = repo.path.join(".git/objects").join(folder).join(name);
    set_mode(&object, 0o644);
    std::fs::write(&object, "no object\n").unwrap();
    let named = format!("the object {} cannot be read, which is new.txt of", blob.trim());
    // Its files are to be written.
    std::fs::remove_file(worktree.path().join("new.txt")).unwrap();
    let put_back = worktree.reset_to(tree).unwrap_err().to_string();
    assert!(put_back.starts_with(&named), "{put_back}");
    // It is to be put onto another commit.
    repo.write("other.txt", "other\n");
    repo.git(&["add", "other.txt"]);
    repo.git(&["commit", "-qm", "Other"]);
    let project = repo.project();
    let head = project.head().unwrap();
    let moved = teams::git::rebase::rebase(&project, (&request(), &repo.root), &candidate, head);
    let moved = moved.unwrap_err().to_string();
    assert!(moved.starts_with(&named), "{moved}");
}

#[test]
fn line_ends_that_no_checkout_writes_are_not_handed_on() {
    let repo = Repo::new();
    repo.write(".gitattributes", "* text=auto\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "attributes"]);
    let (project, worktree) = (repo.project(), repo.worktree());
    put(&worktree.path().join("run.sh"), "#!/bin/sh\r\ntrue\r\n");
    let candidate = repo.commit(&worktree);
    let before = inodes(&worktree.path());
    worktree.tree_id().unwrap();
    repo.git(&["merge", "-q", "--ff-only", &candidate.commit]);
    project.release(&request(), &repo.root).unwrap();
    let next = project.worktree(&other("next"), &repo.root).unwrap();
    assert_eq!(std::fs::read(next.path().join("run.sh")).unwrap(), b"#!/bin/sh\ntrue\n");
    let same = inodes(&next.path()).iter().filter(|it| before.contains(it)).count();
    assert_eq!(same, before.len() - 1, "what lies as it would be written stays");
    assert_eq!(repo.git(&["for-each-ref", "refs/teams/lost"]), "");
}

#[test]
fn branches_go_after_their_time_and_their_commits_once_the_project_has_them() {
    let repo = Repo::new();
    let project: Project = repo.project();
    let worktree = repo.worktree();
    put(&worktree.path().join("new.txt"), "x\n");
    let candidate = repo.commit(&worktree);
    project.release(&request(), &repo.root).unwrap();
    let kept = || repo.git(&["for-each-ref", "--format=%(objectname)", "refs/teams/unmerged"]);
    // A branch of a person's own, and one whose name is no text.
    repo.git(&["branch", "teams/payments", "main"]);
    repo.git(&["pack-refs", "--all"]);
    let packed = repo.path.join(".git/packed-refs");
    let mut names = std::fs::read(&packed).unwrap();
    names.extend(format!("{} refs/heads/teams/", candidate.base).bytes().chain(*b"\xc7\xd1\n"));
    std::fs::write(&packed, names).unwrap();
    let branches = || repo.git(&["for-each-ref", "refs/heads/teams/2*"]);
    let (nobody, open) = (Default::default(), [request()].into());
    let later = at(1_000_000);
    let forget = |open| project.forget_branches(later, open).unwrap();
    // Not while it is open, checked out by a person, or young.
    assert_eq!(forget(&open), 0);
    let theirs = repo.root.with_file_name("teams-theirs");
    let own = format!("teams/{}", request());
    repo.git(&["worktree", "add", "-q", theirs.to_str().unwrap(), &own]);
    assert_eq!(forget(&nobody), 0);
    repo.git(&["worktree", "remove", theirs.to_str().unwrap()]);
    assert_eq!(project.forget_branches(at(-1_000), &nobody).unwrap(), 0);
    assert!(!branches().is_empty() && kept().is_empty());
    // What has not landed is kept without a branch.
    assert_eq!(forget(&nobody), 1);
    assert_eq!((branches(), kept()), (String::new(), candidate.commit.clone()));
    assert_eq!(forget(&nobody), 0);
    assert_eq!(project.requests_with_commits().unwrap(), [request()].into());
    assert_eq!(project.resolve(&own).unwrap().to_string(), candidate.commit);
    // The same change by another commit.
    repo.write("README.md", "moved on\n");
    repo.git(&["commit", "-qam", "second"]);
    repo.git(&["cherry-pick", &candidate.commit]);
    assert_eq!(forget(&nobody), 1);
    assert_eq!((branches(), kept()), (String::new(), String::new()));
}

#[test]
fn what_the_team_writes_does_not_lie_loose_for_ever() {
    let repo = Repo::new();
    let count = || repo.git(&["count-objects"]);
    let number = |said: String| said.split(' ').next().unwrap().parse::<usize>().unwrap();
    repo.git(&["config", "gc.auto", "0"]);
    for at in 0..2_500 {
        repo.write(&format!("many/{at}.txt"), &format!("{at}\n"));
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "Many"]);
    repo.project().pack_loose().unwrap();
    assert!(number(count()) > 2_500, "whoever wants none gets none");
    repo.git(&["config", "gc.auto", "100"]);
    repo.project().pack_loose().unwrap();
    assert_eq!(number(count()), 0);
    assert_eq!(repo.git(&["show", "HEAD:many/7.txt"]), "7");
}
