//! Repositories as people have them, each made here with the git program.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use teams::domain::config::Signing;
use teams::domain::evidence::Candidate;
use teams::git::commit::{CommitRules, apply_commit, plan_commit};
use teams::git::merge::{MergeOutcome, apply_merge, plan_merge};
use teams::git::rebase::{Rebased, rebase};
use teams::git::sprint::uncommitted;
use teams::git::{CheckedOut, GitError, MessageParts, Project};

use crate::git_repo::{Repo, at, git_in, parts, put, request, set_mode};

const CLEAN: MergeOutcome = MergeOutcome::Merged { kept: Vec::new() };

fn land(project: &Project, candidate: &Candidate) -> MergeOutcome {
    apply_merge(project, &plan_merge(project, std::slice::from_ref(candidate)).unwrap()).unwrap()
}

/// A repository whose pictures git stores through a filter that swaps two words, with one committed. Each use of the
/// filter leaves a line.
fn filtered() -> Repo {
    let repo = Repo::new();
    let uses = repo.root.with_file_name("uses");
    let swap = |from: &str, to: &str| {
        format!("sh -c 'echo {to} >> {}; sed s/{from}/{to}/'", uses.display())
    };
    repo.git(&["config", "filter.swap.clean", &swap("plain", "stored")]);
    repo.git(&["config", "filter.swap.smudge", &swap("stored", "plain")]);
    repo.git(&["config", "filter.swap.required", "true"]);
    repo.write(".gitattributes", "*.pic filter=swap\n");
    repo.write("a.pic", "plain one\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "pictures"]);
    assert_eq!(repo.git(&["cat-file", "blob", "main:a.pic"]), "stored one");
    std::fs::remove_file(&uses).unwrap();
    repo
}

#[test]
fn files_behind_a_filter_that_may_not_run_are_left_alone_and_never_called_edited() {
    let repo = filtered();
    let project = repo.project();
    assert!(uncommitted(&project, &[]).unwrap().is_empty());
    let worktree = repo.worktree();
    put(&worktree.path().join("src/app.py"), "print(2)\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(candidate.paths.len(), 1);
    assert_eq!(land(&project, &candidate), CLEAN);
    assert_eq!(repo.read("a.pic"), "plain one\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    // One that was written would be stored as it lies there.
    put(&worktree.path().join("b.pic"), "plain two\n");
    let error = plan_commit(&worktree, None, &parts(), &CommitRules::default(), at(2)).unwrap_err();
    assert!(matches!(error, GitError::Filtered { .. }), "{error}");
    assert!(error.to_string().contains("filters: [swap]"), "{error}");
}

#[test]
fn a_filter_that_may_run_is_run_by_git_both_ways() {
    let repo = filtered();
    let project = repo.project().with_filters(["swap".to_owned()].into());
    let worktree = project.worktree(&request(), &repo.root).unwrap();
    let read = |path: &str| std::fs::read_to_string(worktree.path().join(path)).unwrap();
    assert_eq!(read("a.pic"), "plain one\n");
    let start = worktree.tree_id().unwrap();
    assert_eq!(start.to_string(), repo.git(&["rev-parse", "main^{tree}"]));
    put(&worktree.path().join("a.pic"), "plain more\n");
    put(&worktree.path().join("new\n.pic"), "plain two\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(
        repo.git(&["cat-file", "blob", &format!("{}:a.pic", candidate.commit)]),
        "stored more"
    );
    assert_eq!(land(&project, &candidate), CLEAN);
    assert_eq!(repo.read("a.pic"), "plain more\n");
    assert_eq!(repo.read("new\n.pic"), "plain two\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    worktree.reset_to(start).unwrap();
    assert_eq!(read("a.pic"), "plain one\n");
    // A person's own edit of such a file is one.
    repo.write("a.pic", "plain mine\n");
    assert_eq!(uncommitted(&project, &[]).unwrap(), ["a.pic".to_owned()].into());
}

#[test]
fn an_edit_behind_a_filter_that_git_would_not_see_by_its_times_is_one() {
    let repo = filtered();
    repo.git(&["config", "core.trustctime", "false"]);
    let project = repo.project().with_filters(["swap".to_owned()].into());
    let worktree = project.worktree(&request(), &repo.root).unwrap();
    let file = worktree.path().join("a.pic");
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let dated = |text: &str| {
        put(&file, text);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
    };
    dated("plain one\n");
    let start = worktree.tree_id().unwrap();
    assert_eq!(worktree.tree_id().unwrap(), start);
    dated("plain two\n");
    let candidate = repo.commit(&worktree);
    let stored = repo.git(&["cat-file", "blob", &format!("{}:a.pic", candidate.commit)]);
    assert_eq!(stored, "stored two");
}

#[test]
fn submodules_stay_at_their_commit_and_nothing_is_written_in_them() {
    let repo = Repo::new();
    let head = repo.git(&["rev-parse", "main"]);
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},vendor/lib")]);
    repo.git(&["commit", "-qm", "submodule"]);
    repo.git(&["reset", "-q", "--hard"]);
    let worktree = repo.worktree();
    let start = worktree.tree_id().unwrap();
    assert_eq!(start.to_string(), repo.git(&["rev-parse", "main^{tree}"]));
    put(&worktree.path().join("src/app.py"), "print(2)\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(candidate.paths.len(), 1);
    assert_eq!(land(&repo.project(), &candidate), CLEAN);
    assert!(repo.git(&["ls-tree", "main", "vendor/"]).contains(&head));
    put(&worktree.path().join("vendor/lib/inside.c"), "x\n");
    let error = worktree.tree_id().unwrap_err();
    assert!(matches!(error, GitError::InsideSubmodule { .. }), "{error}");
    assert!(error.to_string().contains("vendor/lib"), "{error}");
    worktree.reset_to(start).unwrap();
    assert_eq!(worktree.tree_id().unwrap(), start);
    // A file may stand where its folder's folder was.
    std::fs::remove_dir_all(worktree.path().join("vendor")).unwrap();
    put(&worktree.path().join("vendor"), "x\n");
    let changed = worktree.changed_since(start).unwrap().1;
    let changed: Vec<_> = changed.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(changed, ["vendor", "vendor/lib"]);
    worktree.reset_to(start).unwrap();
    assert_eq!(worktree.tree_id().unwrap(), start);
    assert!(worktree.path().join("vendor/lib").is_dir());
}

#[test]
fn a_submodule_that_was_fetched_lies_in_every_tree_and_stays_as_it_is() {
    let (repo, _) = Repo::with_submodules();
    let worktree = repo.worktree();
    let file = |path: &str| worktree.path().join("vendor/lib").join(path);
    let read = |path: &str| std::fs::read_to_string(file(path)).unwrap();
    let all = || [read("lib.c"), read("deps/inner/deep.h")];
    assert_eq!(all(), ["lib 1\n", "inner 1\n"]);
    let start = worktree.tree_id().unwrap();
    assert_eq!(start.to_string(), repo.git(&["rev-parse", "main^{tree}"]));
    // What is built in there is nobody's change, and git there says nothing of it.
    put(&file("lib.o"), "built\n");
    assert_eq!(worktree.tree_id().unwrap(), start);
    assert_eq!(git_in(&worktree.path(), &["status", "--porcelain"]), "");
    // One that is touched is read and found to be the same.
    put(&file("lib.c"), "lib 1\n");
    assert_eq!(worktree.tree_id().unwrap(), start);
    let refused = |path: &str, inside: &str| {
        let error = worktree.tree_id().unwrap_err();
        assert!(matches!(error, GitError::InsideSubmodule { .. }), "{error}");
        assert!(
            error.to_string().starts_with(&format!("{path} lies in the submodule {inside},")),
            "{error}"
        );
        worktree.reset_to(start).unwrap();
        assert_eq!(
            (worktree.tree_id().unwrap(), all()),
            (start, ["lib 1\n".to_owned(), "inner 1\n".to_owned()])
        );
    };
    put(&file("lib.c"), "lib X\n");
    refused("vendor/lib/lib.c", "vendor/lib");
    put(&file("new.c"), "new\n");
    refused("vendor/lib/new.c", "vendor/lib");
    std::fs::remove_file(file("lib.c")).unwrap();
    refused("vendor/lib/lib.c", "vendor/lib");
    put(&file("deps/inner/deep.h"), "inner X\n");
    refused("vendor/lib/deps/inner/deep.h", "vendor/lib/deps/inner");
    std::fs::remove_file(file("lib.c")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", file("lib.c")).unwrap();
    refused("vendor/lib/lib.c", "vendor/lib");
    // A build that hides the folder from git, and leads elsewhere, is not followed.
    let elsewhere = repo.root.with_file_name("elsewhere");
    put(&elsewhere.join("lib/precious"), "mine\n");
    put(&worktree.path().join(".gitignore"), "/vendor\n");
    std::fs::remove_dir_all(worktree.path().join("vendor")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, worktree.path().join("vendor")).unwrap();
    assert_ne!(worktree.settled_tree_id().unwrap(), start, "the ignore file");
    worktree.reset_to(start).unwrap();
    assert_eq!(std::fs::read_to_string(elsewhere.join("lib/precious")).unwrap(), "mine\n");
    assert_eq!(
        (worktree.tree_id().unwrap(), all()),
        (start, ["lib 1\n".to_owned(), "inner 1\n".to_owned()])
    );
    // One that was emptied comes back when nobody is at work, and a repository made inside becomes a folder of files.
    std::fs::remove_dir_all(file("")).unwrap();
    put(&worktree.path().join("own/file.txt"), "work\n");
    git_in(&worktree.path().join("own"), &["init", "-q"]);
    assert_ne!(worktree.settled_tree_id().unwrap(), start);
    assert_eq!(all(), ["lib 1\n", "inner 1\n"]);
    assert_eq!(std::fs::read_to_string(worktree.path().join("own/file.txt")).unwrap(), "work\n");
    worktree.reset_to(start).unwrap();
    // Taken out of the list, or put there under another path: its commit would stay where it is.
    let list = worktree.path().join(".gitmodules");
    let written = std::fs::read_to_string(&list).unwrap();
    for changed in [String::new(), written.replace("vendor/lib", "vendor/other")] {
        std::fs::write(&list, changed).unwrap();
        std::fs::remove_dir_all(file("")).unwrap();
        let error = worktree.tree_id().unwrap_err();
        assert!(
            error.to_string().starts_with("`.gitmodules` was changed for \"vendor/"),
            "{error}"
        );
        assert_eq!(worktree.settled_tree_id().unwrap(), start);
        assert_eq!(
            (std::fs::read_to_string(&list).unwrap(), all()[0].as_str()),
            (written.clone(), "lib 1\n")
        );
    }
    // Another word of it is a change like any other.
    std::fs::write(&list, format!("{written}\tignore = dirty\n")).unwrap();
    assert_ne!(worktree.tree_id().unwrap(), start);
    worktree.reset_to(start).unwrap();
    // Where nobody is at work any more it is put back by itself, and what is beside it stays.
    put(&file("lib.c"), "lib X\n");
    put(&worktree.path().join("beside.txt"), "kept\n");
    let settled = worktree.settled_tree_id().unwrap();
    assert_ne!(settled, start);
    assert_eq!(
        (worktree.tree_id().unwrap(), all()),
        (settled, ["lib 1\n".to_owned(), "inner 1\n".to_owned()])
    );
    worktree.reset_to(start).unwrap();
    // A change beside it goes its way, and the next request begins with what this one leaves.
    put(&worktree.path().join("src/app.py"), "print(2)\n");
    assert_eq!(land(&repo.project(), &repo.commit(&worktree)), CLEAN);
    put(&file("lib.c"), "left behind\n");
    repo.project().release(&request(), &repo.root).unwrap();
    let next = repo.project().worktree(&request(), &repo.root).unwrap();
    assert_eq!(next.path(), worktree.path());
    assert_eq!(all(), ["lib 1\n", "inner 1\n"]);
    assert!(!file("lib.o").exists());
    assert_eq!(next.tree_id().unwrap().to_string(), repo.git(&["rev-parse", "main^{tree}"]));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(repo.git(&["-C", "vendor/lib", "status", "--porcelain"]), "");
}

#[test]
fn what_an_agent_may_not_read_any_more_is_committed_all_the_same() {
    let repo = Repo::new();
    let worktree = repo.worktree();
    let path = |name: &str| worktree.path().join(name);
    put(&path("src/app.py"), "print(2)\n");
    put(&path("locked/new.txt"), "new\n");
    set_mode(&path("src/app.py"), 0o000);
    set_mode(&path("locked/new.txt"), 0o000);
    set_mode(&path("locked"), 0o000);
    let candidate = repo.commit(&worktree);
    let changed: Vec<_> = candidate.paths.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(changed, ["locked/new.txt", "src/app.py"]);
    let mode = |name: &str| std::fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("src/app.py"), mode("locked"), mode("locked/new.txt")], [0o400, 0o500, 0o400]);
}

#[test]
fn a_submodule_goes_along_with_its_commit() {
    let (repo, lib) = Repo::with_submodules();
    let worktree = repo.worktree();
    put(&worktree.path().join("src/app.py"), "print(2)\n");
    let candidate = repo.commit(&worktree);
    put(&worktree.path().join("vendor/lib/lib.o"), "built\n");
    put(&lib.join("lib.c"), "lib 2\n");
    git_in(&lib, &["rm", "-q", "deps/inner"]);
    git_in(&lib, &["commit", "-qam", "second"]);
    repo.git(&["-C", "vendor/lib", "-c", "protocol.file.allow=always", "pull", "-q"]);
    repo.git(&["commit", "-qam", "a newer library"]);
    let project = repo.project();
    let head = project.head().unwrap();
    let moved = rebase(&project, (worktree.request(), &repo.root), &candidate, head).unwrap();
    assert!(matches!(moved, Rebased::Moved(_)), "{moved:?}");
    let worktree = repo.worktree();
    let read = |path: &str| std::fs::read_to_string(worktree.path().join(path)).ok();
    assert_eq!(read("vendor/lib/lib.c").as_deref(), Some("lib 2\n"));
    assert_eq!(read("src/app.py").as_deref(), Some("print(2)\n"));
    assert_eq!(read("vendor/lib/deps/inner/deep.h"), None);
    let start = worktree.tree_id().unwrap();
    // It goes out of the project, and another request does not find it.
    repo.git(&["rm", "-qf", "vendor/lib"]);
    repo.git(&["commit", "-qm", "without"]);
    let other = teams::domain::ids::RequestId::parse("20260324-other").unwrap();
    let next = project.worktree(&other, &repo.root).unwrap();
    assert!(!next.path().join("vendor").exists());
    worktree.reset_to(start).unwrap();
    assert_eq!(read("vendor/lib/lib.c").as_deref(), Some("lib 2\n"));
}

#[test]
fn an_index_that_cannot_be_read_is_refused_before_anything_begins() {
    let repo = Repo::new();
    assert!(repo.project().refuse_unready().is_ok());
    repo.git(&["update-index", "--split-index"]);
    let error = repo.project().refuse_unready().unwrap_err();
    assert!(matches!(error, GitError::IndexForm { .. }), "{error}");
    repo.git(&["update-index", "--no-split-index"]);
    assert!(repo.project().refuse_unready().is_ok());
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_nobodys_edit_and_stays_left_out() {
    let repo = Repo::new();
    repo.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/src/"]);
    assert!(!repo.path.join("src/app.py").exists());
    let project = repo.project();
    assert!(uncommitted(&project, &[]).unwrap().is_empty());
    let worktree = repo.worktree();
    put(&worktree.path().join("src/app.py"), "print(2)\n");
    put(&worktree.path().join("src/more/new.py"), "print(3)\n");
    put(&worktree.path().join("README.md"), "changed\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(land(&project, &candidate), CLEAN);
    assert_eq!(repo.read("README.md"), "changed\n");
    assert!(!repo.path.join("src").exists());
    assert!(repo.git(&["ls-files", "-t"]).contains("S src/more/new.py"));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(repo.git(&["show", "main:src/app.py"]), "print(2)");
}

#[test]
fn in_a_partial_clone_the_team_works_on_what_is_there() {
    let repo = Repo::new();
    repo.write("README.md", "second\n");
    repo.git(&["commit", "-qam", "second"]);
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    let clone = repo.root.with_file_name("clone");
    let from = format!("file://{}", repo.path.display());
    repo.git(&["clone", "-q", "--filter=blob:none", &from, clone.to_str().unwrap()]);
    let project = Project::open(&clone, "main").unwrap();
    let worktree = project.worktree(&request(), &repo.root).unwrap();
    put(&worktree.path().join("src/app.py"), "print(2)\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(land(&project, &candidate), CLEAN);
    assert_eq!(git_in(&clone, &["status", "--porcelain"]), "");
}

#[test]
fn names_differ_by_case_and_by_bytes_that_are_no_text() {
    let repo = Repo::new();
    let odd = repo.path.join(OsStr::from_bytes(b"odd\xff name"));
    std::fs::write(&odd, "x\n").unwrap();
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "odd"]);
    let worktree = repo.worktree();
    let tree = worktree.path();
    assert_eq!(worktree.tree_id().unwrap().to_string(), repo.git(&["rev-parse", "main^{tree}"]));
    std::fs::rename(tree.join("README.md"), tree.join("readme.md")).unwrap();
    put(&tree.join("a\nnew line"), "x\n");
    put(&tree.join(" blank "), "x\n");
    put(&tree.join(OsStr::from_bytes(b"caf\xe9/new")), "x\n");
    put(&tree.join(OsStr::from_bytes(b"odd\xff name")), "y\n");
    let candidate = repo.commit(&worktree);
    let names: Vec<_> = candidate.paths.iter().map(|it| it.path.as_str()).collect();
    assert!(names.contains(&r"caf\xE9/new") && names.contains(&r"odd\xFF name"), "{names:?}");
    assert_eq!(land(&repo.project(), &candidate), CLEAN);
    assert!(repo.path.join("readme.md").exists() && !repo.path.join("README.md").exists());
    assert_eq!(std::fs::read_to_string(&odd).unwrap(), "y\n");
    assert!(repo.path.join(OsStr::from_bytes(b"caf\xe9/new")).exists());
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    // A person's own edit of such a file is seen and kept.
    std::fs::write(&odd, "mine\n").unwrap();
    assert!(uncommitted(&repo.project(), &[]).unwrap().contains(r"odd\xFF name"));
    repo.project().release(&request(), &repo.root).unwrap();
    let worktree = repo.worktree();
    std::fs::remove_file(worktree.path().join(OsStr::from_bytes(b"odd\xff name"))).unwrap();
    let candidate = repo.commit(&worktree);
    let in_the_way = land(&repo.project(), &candidate);
    assert!(format!("{in_the_way:?}").contains(r"odd\\xFF name"), "{in_the_way:?}");
    assert_eq!(std::fs::read_to_string(&odd).unwrap(), "mine\n");
}

#[test]
fn a_person_may_have_anything_checked_out_and_worktrees_of_their_own() {
    let repo = Repo::new();
    let project = repo.project();
    let own = repo.root.with_file_name("persons");
    repo.git(&["worktree", "add", "-q", "-b", "theirs", own.to_str().unwrap()]);
    for (second, checked_out) in [(1, "--detach"), (2, "-bfeature")] {
        repo.git(&["checkout", "-q", checked_out]);
        let before = repo.read("src/app.py");
        let worktree = repo.worktree();
        put(&worktree.path().join("src/app.py"), &format!("print({second}0)\n"));
        let candidate = repo.commit(&worktree);
        assert_eq!(land(&project, &candidate), CLEAN);
        assert_eq!(repo.git(&["rev-parse", "main"]), candidate.commit);
        assert_eq!(repo.read("src/app.py"), before);
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
        assert_eq!(git_in(&own, &["status", "--porcelain"]), "");
        project.release(&request(), &repo.root).unwrap();
    }
    assert_eq!(project.checked_out().unwrap(), CheckedOut::Branch("feature".to_owned()));
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn line_ends_of_the_persons_settings_are_those_of_the_worktree() {
    let repo = Repo::new();
    repo.git(&["config", "core.autocrlf", "true"]);
    let worktree = repo.worktree();
    let file = worktree.path().join("src/app.py");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "print(1)\r\n");
    let start = worktree.tree_id().unwrap();
    assert_eq!(start.to_string(), repo.git(&["rev-parse", "main^{tree}"]));
    put(&file, "print(1)\n");
    assert_eq!(worktree.tree_id().unwrap(), start);
    put(&file, "print(2)\r\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(repo.git(&["cat-file", "-s", &format!("{}:src/app.py", candidate.commit)]), "9");
}

/// Whether `ssh-keygen` can make a key here, which git then signs with.
fn signs(repo: &Repo) -> bool {
    let key = repo.root.with_file_name("key");
    let mut keygen = Command::new("ssh-keygen");
    let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    if !made.is_ok_and(|status| status.success()) {
        crate::support::skipped("there is no ssh-keygen");
        return false;
    }
    repo.git(&["config", "user.signingKey", &format!("{}.pub", key.display())]);
    let text = std::fs::read_to_string(format!("{}.pub", key.display())).unwrap();
    let allowed = repo.root.with_file_name("allowed");
    put(&allowed, &format!("teams@localhost {text}"));
    repo.git(&["config", "gpg.ssh.allowedSignersFile", allowed.to_str().unwrap()]);
    true
}

#[test]
fn commits_are_signed_by_git_and_stay_so_on_a_new_base() {
    let repo = Repo::new();
    if !signs(&repo) {
        return;
    }
    let worktree = repo.worktree();
    put(&worktree.path().join("new.txt"), "x\n");
    let rules = CommitRules { sign: Signing::Ssh, ..CommitRules::default() };
    let trailers = vec!["Reviewed-by: Nobody <n@example.org>".to_owned()];
    let parts = MessageParts { trailers, ..parts() };
    let plan = plan_commit(&worktree, None, &parts, &rules, at(1)).unwrap().unwrap();
    let candidate = apply_commit(&worktree, &plan).unwrap();
    assert_eq!(apply_commit(&worktree, &plan).unwrap(), candidate);
    repo.git(&["verify-commit", &candidate.commit]);
    let message = repo.git(&["log", "-1", "--format=%B", &candidate.commit]);
    assert!(message.contains("\n\nReviewed-by: Nobody <n@example.org>\nRequest: "), "{message}");
    let who = repo.git(&["log", "-1", "--format=%an %ae %at %cn", &candidate.commit]);
    assert_eq!(who, format!("teams teams@localhost {} teams", at(1).millis() / 1000));
    // Nothing new: the same commit, which need not be signed again.
    let again = plan_commit(&worktree, None, &parts, &rules, at(9)).unwrap().unwrap();
    assert_eq!(again.commit, plan.commit);
    repo.write("README.md", "moved on\n");
    repo.git(&["commit", "-qam", "second"]);
    let head = repo.project().head().unwrap();
    let Rebased::Moved(moved) =
        rebase(&repo.project(), (worktree.request(), &repo.root), &candidate, head).unwrap()
    else {
        panic!("a conflict");
    };
    repo.git(&["verify-commit", &moved.commit]);
    repo.git(&["fsck", "--strict"]);
    // Without a key nothing is committed unsigned.
    repo.git(&["config", "user.signingKey", "/nowhere.pub"]);
    put(&worktree.path().join("new.txt"), "y\n");
    let error = plan_commit(&worktree, None, &parts, &rules, at(9)).unwrap_err();
    assert!(matches!(error, GitError::Program { .. }), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
}

#[test]
fn large_files_of_git_lfs_come_and_go_through_it() {
    let has_lfs =
        Command::new("git-lfs").arg("version").output().is_ok_and(|it| it.status.success());
    if !has_lfs {
        crate::support::skipped("there is no git-lfs");
        return;
    }
    let repo = Repo::new();
    for (key, value) in [
        ("filter.lfs.clean", "git-lfs clean -- %f"),
        ("filter.lfs.smudge", "git-lfs smudge -- %f"),
        ("filter.lfs.process", "git-lfs filter-process"),
        ("filter.lfs.required", "true"),
    ] {
        repo.git(&["config", key, value]);
    }
    repo.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    repo.write("a.bin", "one\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "large"]);
    assert!(repo.git(&["show", "main:a.bin"]).contains("git-lfs"));
    assert!(uncommitted(&repo.project(), &[]).unwrap().is_empty());
    let project = repo.project().with_filters(["lfs".to_owned()].into());
    let worktree = project.worktree(&request(), &repo.root).unwrap();
    let file = worktree.path().join("a.bin");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
    put(Path::new(&file), "two\n");
    let candidate = repo.commit(&worktree);
    assert!(repo.git(&["show", &format!("{}:a.bin", candidate.commit)]).contains("git-lfs"));
    assert_eq!(land(&project, &candidate), CLEAN);
    assert_eq!(repo.read("a.bin"), "two\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    // One that was not fetched lies there as git stores it, and the others as they are.
    repo.write("b.bin", "three\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "another"]);
    let pointer = repo.git(&["show", "main:b.bin"]);
    let id = pointer.lines().find_map(|line| line.strip_prefix("oid sha256:")).unwrap();
    let object = format!(".git/lfs/objects/{}/{}/{id}", &id[..2], &id[2..4]);
    std::fs::remove_file(repo.path.join(object)).unwrap();
    project.release(&request(), &repo.root).unwrap();
    let worktree = project.worktree(&request(), &repo.root).unwrap();
    let read = |path: &str| std::fs::read_to_string(worktree.path().join(path)).unwrap();
    assert_eq!((read("a.bin").as_str(), read("b.bin").trim()), ("two\n", pointer.trim()));
    assert_eq!(worktree.tree_id().unwrap().to_string(), repo.git(&["rev-parse", "main^{tree}"]));
    // And when it was, it is what it is.
    repo.write("c.bin", "three\n");
    repo.git(&["add", "c.bin"]);
    project.release(&request(), &repo.root).unwrap();
    let worktree = project.worktree(&request(), &repo.root).unwrap();
    assert_eq!(std::fs::read_to_string(worktree.path().join("b.bin")).unwrap(), "three\n");
}

/// `git switch -c` asks for no lock. Whoever begins a branch of their own while a change lands keeps their files, and has
/// nothing of the team's staged on it.
#[test]
fn a_branch_that_somebody_begins_while_a_change_lands_has_nothing_of_it() {
    let repo = filtered();
    let project = repo.project().with_filters(["swap".to_owned()].into());
    let worktree = project.worktree(&request(), &repo.root).unwrap();
    put(&worktree.path().join("a.pic"), "plain more\n");
    let candidate = repo.commit(&worktree);
    let begin = format!(
        "sh -c 'env -i PATH=\"$PATH\" git -C {} switch -qc own >&2; sed s/stored/plain/'",
        repo.path.display()
    );
    repo.git(&["config", "filter.swap.smudge", &begin]);
    assert_eq!(land(&project, &candidate), CLEAN);
    assert_eq!(repo.git(&["rev-parse", "main"]), candidate.commit);
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "own");
    assert_eq!(repo.git(&["rev-parse", "own"]), candidate.base);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(repo.read("a.pic"), "plain one\n");
    assert!(!repo.path.join(".git/index.lock").exists());
}

/// A warning for people is no reason to lose what an agent made.
#[test]
fn line_ends_that_safecrlf_would_refuse_are_taken_as_the_rules_make_them() {
    let repo = Repo::new();
    repo.git(&["config", "core.autocrlf", "input"]);
    repo.git(&["config", "core.safecrlf", "true"]);
    let worktree = repo.worktree();
    put(&worktree.path().join("src/app.py"), "print(2)\r\n");
    let candidate = repo.commit(&worktree);
    assert_eq!(
        repo.git(&["cat-file", "blob", &format!("{}:src/app.py", candidate.commit)]),
        "print(2)"
    );
}

#[test]
fn what_a_filter_cannot_write_lies_as_git_stores_it_and_is_no_edit() {
    // As with a repository whose key is not at hand: neither way works.
    let repo = filtered();
    repo.git(&["config", "filter.swap.clean", "false"]);
    repo.git(&["config", "filter.swap.smudge", "false"]);
    let project = repo.project().with_filters(["swap".to_owned()].into());
    let worktree = project.worktree(&request(), &repo.root).unwrap();
    let file = worktree.path().join("a.pic");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "stored one\n");
    let start = worktree.tree_id().unwrap();
    assert_eq!(start.to_string(), repo.git(&["rev-parse", "main^{tree}"]));
    put(&worktree.path().join("src/app.py"), "print(2)\n");
    assert_eq!(repo.commit(&worktree).paths.len(), 1);
    // A change to it cannot be stored.
    put(&file, "changed\n");
    assert!(matches!(worktree.tree_id().unwrap_err(), GitError::Program { .. }));
}
