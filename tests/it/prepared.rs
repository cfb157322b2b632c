//! Prepared environments: made once for each state of the files that decide about them, given to every tree, and never
//! made of a change's own files before a person has agreed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use teams::domain::config::CheckNetwork;
use teams::domain::evidence::{CheckVerdict, Evidence};
use teams::domain::request::{Request, RequestStatus};
use teams::git::checks::{
    CheckPlan, CheckSpec, Consent, EnvironmentStore, PreparationOwner, PrepareSpec,
    PreparedEnvironment, forget_environments, lend, run,
};
use teams::git::{CommitId, GitError};
use teams::platform::confinement::{self, Confinement};
use teams::platform::layers;
use tokio_util::sync::CancellationToken;

use crate::git_checks::{outcome, plan, shell};
use crate::git_repo::{Repo, git_in, put};
use crate::support::house::{EDIT, EDITED, House, Plan, words};
use crate::support::terminal::typed;

fn prepare(name: &str, script: &str, files: &[&str]) -> PrepareSpec {
    PrepareSpec {
        name: name.to_owned(),
        command: ["sh", "-ec", script].map(str::to_owned).into(),
        files: files.iter().map(PathBuf::from).collect(),
        timeout: Duration::from_secs(120),
        env: BTreeMap::new(),
        secrets: BTreeMap::new(),
        read: Vec::new(),
        network: CheckNetwork::Off,
    }
}

/// A project whose dependencies are prepared, and where its trees and environments lie.
struct Prepared {
    repo: Repo,
    plan: CheckPlan,
    confinement: Confinement,
}

impl Prepared {
    async fn new(repo: Repo, prepare: &[PrepareSpec], checks: &[CheckSpec]) -> Prepared {
        teams::platform::spawn::set_own_binary(env!("CARGO_BIN_EXE_teams").into());
        let plan = CheckPlan {
            prepare: prepare.to_vec(),
            environments: repo.root.with_file_name("environments"),
            trees: repo.root.with_file_name("trees"),
            ..plan(checks)
        };
        Prepared { repo, plan, confinement: confinement::find().await }
    }

    fn commit(&self, path: &str, text: &str) -> CommitId {
        self.repo.write(path, text);
        self.repo.git(&["add", "-A"]);
        self.repo.git(&["commit", "-qm", "more"]);
        self.repo.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    async fn run(&self, commit: CommitId, whose: &PreparationOwner) -> Result<Evidence, GitError> {
        let (scratch, stop) = (self.repo.root.join("scratch"), CancellationToken::new());
        let (plan, confinement) = (&self.plan, &self.confinement);
        run(&self.repo.project(), commit, plan, confinement, &scratch, whose, &stop).await
    }

    async fn trusted(&self, commit: CommitId) -> Evidence {
        self.run(commit, &PreparationOwner::trusting(commit)).await.unwrap()
    }

    /// The environment that checks had.
    fn held(&self, evidence: &Evidence) -> Vec<PreparedEnvironment> {
        let keys: Vec<_> = evidence.environments.iter().map(|it| it.key.clone()).collect();
        let store = EnvironmentStore::at(&self.plan.environments);
        let found = store.find_all(&keys, "none").unwrap();
        assert_eq!(found.len(), keys.len());
        found
    }

    /// What lies where environments are kept, but for downloads.
    fn kept(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.plan.environments).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "cache").collect()
    }
}

fn is_green(evidence: &Evidence) {
    for check in &evidence.checks {
        assert_eq!(check.verdict, CheckVerdict::Passed, "{}: {}", check.name, check.log_tail);
    }
}

/// Fills `deps/` in the project and a folder of the home, and notes in the cache how often that was done.
const FILL: &str = "mkdir -p deps ~/lib; cp deps.lock deps/lib; cp deps.lock ~/lib/lib; \
                    mkdir src/made; echo made > src/made/by; echo once >> $UV_CACHE_DIR.log; cp $UV_CACHE_DIR.log deps/times; ln -s lib deps/link";

#[tokio::test]
async fn what_is_prepared_is_made_once_for_what_decides_about_it_and_private_to_each_run() {
    let repo = Repo::new();
    let checks = [
        shell(
            "in the tree",
            "grep -q made src/made/by && test -e src/app.py && grep -q one deps/link && grep -q one ~/lib/lib && test -s deps/times",
        ),
        shell("git knows nothing of it", "git status --porcelain | grep . && exit 1; true"),
        shell(
            "written to",
            "echo two > deps/lib; rm deps/times; rm -r src ~/lib; mkdir src; test ! -e src/made; mkdir deps/more; test ! -e ~/lib",
        ),
    ];
    let fill = prepare("deps", FILL, &["deps.lock"]);
    let mut at = Prepared::new(repo, &[fill], &checks).await;
    let first = at.commit("deps.lock", "one\n");
    let second = at.commit("src/app.py", "print(2)\n");
    let evidence = at.trusted(first).await;
    is_green(&evidence);
    assert!(evidence.environments[0].prepared_ms.is_some(), "{:?}", evidence.environments);
    // As it was, whatever the checks before did to it, and in another tree.
    let evidence = at.trusted(second).await;
    is_green(&evidence);
    assert_eq!(evidence.environments[0].prepared_ms, None);
    assert_eq!(at.kept().len(), 1);
    if matches!(at.confinement, Confinement::Bubblewrap(_)) {
        assert!(layers::work_in(&at.plan.environments).await, "layers are what is tried here");
    }
    // Without a sandbox it is copied, and the same.
    at.confinement = Confinement::Nothing("tried without".to_owned());
    let evidence = at.trusted(second).await;
    is_green(&evidence);
    assert!(evidence.environments[0].prepared_ms.is_some(), "another path is another environment");
    let evidence = at.trusted(first).await;
    is_green(&evidence);
    assert_eq!(evidence.environments[0].prepared_ms, None);
}

#[tokio::test]
async fn every_part_of_its_key_makes_another_environment() {
    let repo = Repo::new();
    let mut at =
        Prepared::new(repo, &[prepare("deps", "true", &["deps.lock", "no.such"])], &[]).await;
    at.plan.checks = vec![shell("nothing", "true")];
    let commit = at.commit("deps.lock", "one\n");
    let isolation = teams::git::checks::isolation(&at.plan, &at.confinement).unwrap();
    let project = at.repo.project();
    let mut seen = Vec::new();
    let mut key = async |plan: &CheckPlan, commit| {
        let keys =
            teams::git::checks::environment_keys(&project, commit, plan, isolation).await.unwrap();
        assert!(!seen.contains(&keys), "{keys:?}");
        seen.push(keys);
    };
    let with = |change: fn(&mut PrepareSpec)| {
        let mut plan = at.plan.clone();
        change(&mut plan.prepare[0]);
        plan
    };
    key(&at.plan, commit).await;
    key(&at.plan, at.commit("deps.lock", "two\n")).await;
    key(&at.plan, at.commit("no.such", "here\n")).await;
    key(&with(|it| it.command.push("x".to_owned())), commit).await;
    key(&with(|it| it.env = BTreeMap::from([("A".to_owned(), "1".to_owned())])), commit).await;
    key(&with(|it| it.network = CheckNetwork::Host), commit).await;
    key(&with(|it| it.read = vec!["/opt".into()]), commit).await;
    // A tool that the command names says another version.
    key(&with(|it| it.command = ["sh", "-c", "node -v; true"].map(str::to_owned).into()), commit)
        .await;
    assert_eq!(seen.len(), 8);
}

#[tokio::test]
async fn a_change_of_what_decides_is_not_prepared_before_a_person_agrees_and_stays_apart_until_it_lands()
 {
    let repo = Repo::new();
    // What a lock file could name: it reads and writes what it can reach.
    let secret = repo.path.with_file_name("secret");
    std::fs::write(&secret, "password").unwrap();
    let mark = repo.path.with_file_name("mark");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let home = || std::fs::read(std::env::home_dir().unwrap().join(".bashrc")).ok();
    let home_before = home();
    let script = format!(
        "mkdir deps; sh ./deps.lock; cat {secret} 2>/dev/null && exit 7; echo pwned 2>/dev/null > {mark} || true; \
         ls {environments} 2>/dev/null && exit 9; echo bad >> $UV_CACHE_DIR.log; cp $UV_CACHE_DIR.log deps/cache; \
         bash -c 'exec 3<> /dev/tcp/127.0.0.1/{port}' 2>/dev/null && exit 8; true",
        port = listener.local_addr().unwrap().port(),
        secret = secret.display(),
        mark = mark.display(),
        environments = repo.root.with_file_name("environments").display(),
    );
    let checks = [shell("deps", "cat deps/made")];
    let at = Prepared::new(repo, &[prepare("deps", &script, &["deps.lock"])], &checks).await;
    let base = at.commit("deps.lock", "echo good > deps/made\n");
    let change = at.commit("deps.lock", "echo other > deps/made; echo > ~/.bashrc\n");
    is_green(&at.trusted(base).await);
    let known = at.kept();

    let whose = |consent| PreparationOwner { trusted: base, consent, apart: "r1".to_owned() };
    let refused = at.run(change, &whose(Consent::None)).await.unwrap_err();
    let GitError::PreparationAsked(question) = refused else { panic!("{refused}") };
    assert_eq!(question.files, ["deps.lock"]);
    assert_eq!((question.commands.len(), question.has_network), (1, false));
    assert_eq!(at.kept(), known, "nothing of it was run");
    let other = at.run(change, &whose(Consent::To("another question".to_owned()))).await;
    assert!(matches!(other, Err(GitError::PreparationAsked(_))));
    assert!(!mark.exists());

    let evidence = at.run(change, &whose(Consent::To(question.digest.clone()))).await.unwrap();
    is_green(&evidence);
    assert!(outcome(&evidence, "deps").log_tail.contains("other"));
    assert!(!mark.exists() && std::fs::read_to_string(&secret).unwrap() == "password");
    assert_eq!(home(), home_before, "the home that it wrote to was its own");
    // Nobody else gets it, and what others have downloaded is as it was.
    let store = EnvironmentStore::at(&at.plan.environments);
    let apart: Vec<_> = store.list().unwrap().into_iter().filter_map(|it| it.apart).collect();
    assert_eq!(apart, ["r1"]);
    let theirs = PreparationOwner { apart: "r2".to_owned(), ..whose(Consent::None) };
    assert!(matches!(at.run(change, &theirs).await, Err(GitError::PreparationAsked(_))));
    let cache = std::fs::read_to_string(at.plan.environments.join("cache/uv.log")).unwrap();
    assert_eq!(cache, "bad\n", "one line by the base alone");

    // It has landed: now it is everybody's.
    store.settle("r1", true).unwrap();
    is_green(&at.run(change, &theirs).await.unwrap());
    assert!(store.list().unwrap().iter().all(|it| it.apart.is_none()));
    // Of what does not land nothing stays.
    let third = at.commit("deps.lock", "echo third > deps/made\n");
    let operator = PreparationOwner { apart: "r3".to_owned(), ..whose(Consent::Operator) };
    is_green(&at.run(third, &operator).await.unwrap());
    store.settle("r3", false).unwrap();
    assert_eq!(store.list().unwrap().len(), 2);
}

#[tokio::test]
async fn what_is_missing_is_made_of_the_branchs_files_and_never_of_a_changes() {
    let repo = Repo::new();
    // It runs a file that it is not said to depend on.
    let checks = [shell("made of", "cat deps/made")];
    let fill = prepare("deps", "mkdir deps; sh setup.sh > deps/made", &["deps.lock"]);
    let at = Prepared::new(repo, &[fill], &checks).await;
    at.commit("deps.lock", "one\n");
    let base = at.commit("setup.sh", "echo of the base\n");
    let change = at.commit("setup.sh", "echo of the change\n");
    let whose = PreparationOwner { trusted: base, consent: Consent::None, apart: "r1".to_owned() };
    let evidence = at.run(change, &whose).await.unwrap();
    assert!(outcome(&evidence, "made of").log_tail.contains("of the base"));
}

#[tokio::test]
async fn a_preparation_that_fails_says_why_in_a_line_and_leaves_nothing() {
    let repo = Repo::new();
    let mut at = Prepared::new(repo, &[], &[shell("never", "true")]).await;
    let commit = at.commit("deps.lock", "one\n");
    let cases = [
        (
            "echo half > deps; echo 'no such package: left-pad' >&2; exit 3",
            "no input\nno such package: left-pad",
        ),
        ("read word || exit 1", "exit code 1; it has no terminal and no input"),
        ("echo 2 >> deps.lock", "it changed files of the project (deps.lock)"),
        ("kill -9 $$", "it was ended from outside"),
    ];
    for (script, expected) in cases {
        at.plan.prepare = vec![prepare("deps", script, &["deps.lock"])];
        let error =
            at.run(commit, &PreparationOwner::trusting(commit)).await.unwrap_err().to_string();
        assert!(error.starts_with("preparing deps failed: "), "{error}");
        assert!(error.contains(expected), "{script}: {error}");
        assert_eq!(at.kept(), Vec::<String>::new(), "{script}");
    }
    let slow = prepare("deps", "sleep 1000", &["deps.lock"]);
    at.plan.prepare = vec![PrepareSpec { timeout: Duration::from_millis(300), ..slow }];
    let error = at.run(commit, &PreparationOwner::trusting(commit)).await.unwrap_err().to_string();
    assert!(error.contains("did not end within") && error.contains("no terminal"), "{error}");
    let mut missing = prepare("deps", "", &["deps.lock"]);
    missing.command = vec!["no-such-program".to_owned()];
    at.plan.prepare = vec![missing];
    let error = at.run(commit, &PreparationOwner::trusting(commit)).await.unwrap_err().to_string();
    assert!(error.contains("could not be started"), "{error}");
    assert_eq!(at.kept(), Vec::<String>::new());
}

#[tokio::test]
async fn a_preparation_that_fails_is_told_in_the_terminal_and_in_the_room() {
    let more = "prepare: [{name: packages, command: [sh, -c, 'echo no such package >&2; exit 3'], \
                files: [deps.lock], network: off}]\n";
    let mut house = House::built(Plan { more: more.to_owned(), ..Plan::default() }).await;
    house.commit_by_hand("deps.lock", "1\n", "A dependency");
    house.start();
    let (code, _, error) = house.teams(&["prepare"]).await;
    assert!(
        code == 1 && error.contains("preparing packages failed: it ended with exit code 3"),
        "{error}"
    );
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await.blocked.unwrap();
    assert_eq!(blocked.code.word(), "checks_not_started");
    assert!(blocked.detail.contains("no such package"), "{}", blocked.detail);
    assert_eq!(house.commits().len(), 1);
    house.close().await;
}

/// A build folder that is prepared at one commit, and a breaking edit whose file was written before that: builders that
/// compare times would take what they built of the old file.
async fn breaking_edit(files: &[(&str, &str)], build: &str, test: &str, broken: (&str, &str)) {
    let repo = Repo::new();
    for (path, text) in files {
        repo.write(path, text);
    }
    let at = Prepared::new(repo, &[], &[shell("test", test)]).await;
    let good = at.commit("made.lock", "1\n");
    let bad = at.commit(broken.0, broken.1);
    breaks(at, (good, bad), build).await;
}

/// A build of the good commit, brought to the bad one whose files were written before that.
async fn breaks(at: Prepared, (good, bad): (CommitId, CommitId), build: &str) {
    // A tree of the breaking commit is at hand, written before what is built next.
    assert_eq!(at.trusted(bad).await.checks[0].verdict, CheckVerdict::Failed, "by itself");
    let kept: Vec<_> =
        std::fs::read_dir(&at.plan.trees).unwrap().map(|it| it.unwrap().path()).collect();
    let [old] = kept.as_slice() else { panic!("{kept:?}") };
    let aside = at.plan.trees.with_file_name("aside");
    std::fs::rename(old, &aside).unwrap();

    let mut prepared = at;
    prepared.plan.prepare = vec![prepare("build", build, &["made.lock"])];
    let evidence = prepared.trusted(good).await;
    is_green(&evidence);
    for kept in std::fs::read_dir(&prepared.plan.trees).unwrap() {
        std::fs::remove_dir_all(kept.unwrap().path()).unwrap();
    }
    std::fs::rename(&aside, prepared.plan.trees.join("ffffffff-old")).unwrap();
    let evidence = prepared.trusted(bad).await;
    assert_eq!(evidence.environments[0].prepared_ms, None, "the build folder of the good commit");
    let test = &evidence.checks[0];
    assert_eq!(test.verdict, CheckVerdict::Failed, "{}", test.log_tail);
    is_green(&prepared.trusted(good).await);
}

#[tokio::test]
async fn a_stale_build_folder_turns_no_breaking_edit_green_in_python() {
    let code = |word: &str| format!("def greet():\n    return '{word}'\n");
    let (good, bad) = (code("hello"), code("jello"));
    breaking_edit(
        &[("app.py", &good), (".gitignore", "__pycache__/\n")],
        "python3 -m compileall -q app.py",
        "python3 -c 'import app; assert app.greet() == \"hello\"'",
        ("app.py", &bad),
    )
    .await;
}

#[tokio::test]
async fn a_stale_build_folder_turns_no_breaking_edit_green_in_make() {
    breaking_edit(
        &[
            ("Makefile", "test: out/word\n\tgrep -q hello out/word\nout/word: word\n\tmkdir -p out; cp word out/word\n"),
            ("word", "hello\n"),
            (".gitignore", "/out/\n"),
        ],
        "make out/word",
        "make test",
        ("word", "jello\n"),
    )
    .await;
}

/// What is gone is older than nothing, and what was built of it is still there.
#[tokio::test]
async fn a_stale_build_folder_turns_no_deletion_green_in_make() {
    let repo = Repo::new();
    let all = "test: out/all\n\tgrep -q hello out/all\nout/all: $(wildcard words/*)\n\tmkdir -p out; cat $^ > out/all\n";
    let files = [("Makefile", all), ("words/a", "hello\n"), ("words/b", "you\n")];
    for (path, text) in files.into_iter().chain([(".gitignore", "/out/\n")]) {
        repo.write(path, text);
    }
    let at = Prepared::new(repo, &[], &[shell("test", "make test")]).await;
    let good = at.commit("made.lock", "1\n");
    std::fs::remove_file(at.repo.path.join("words/a")).unwrap();
    let bad = at.commit("README.md", "without a\n");
    breaks(at, (good, bad), "make out/all").await;
}

/// `git add -f` takes into git what is ignored around it, and no run may lose that.
#[tokio::test]
async fn what_is_tracked_within_an_environments_folder_stays_where_that_is_lent() {
    let repo = Repo::new();
    let made = [prepare("deps", "mkdir -p data; echo 1 > data/made", &["made.lock"])];
    let at = Prepared::new(repo, &made, &[]).await;
    at.repo.write(".gitignore", "/data/\n");
    let base = at.commit("made.lock", "1\n");
    let held = at.held(&at.trusted(base).await);
    at.repo.write("data/deep/golden.json", "{}\n");
    at.repo.git(&["add", "-f", "data/deep/golden.json"]);
    at.repo.git(&["commit", "-qm", "a golden file"]);
    let worktree = at.repo.worktree();
    let before = worktree.tree_id().unwrap();
    put(&worktree.path().join("data/deep/left"), "by an earlier run\n");
    for is_layered in [true, false] {
        lend(&held, &worktree, is_layered).unwrap();
        assert_eq!(worktree.tree_id().unwrap(), before, "layered: {is_layered}");
        assert!(!worktree.path().join("data/deep/left").exists());
        assert_eq!(worktree.path().join("data/made").exists(), !is_layered);
    }
}

#[tokio::test]
async fn what_a_request_changed_before_something_was_built_is_younger_than_it_for_its_agent() {
    let repo = Repo::new();
    let at = Prepared::new(repo, &[prepare("deps", "mkdir deps", &["made.lock"])], &[]).await;
    let base = at.commit("made.lock", "1\n");
    let worktree = at.repo.worktree();
    let file = |path: &str| std::fs::metadata(worktree.path().join(path)).unwrap().modified();
    put(&worktree.path().join("src/app.py"), "print(2)\n");
    let (edited, other) = (file("src/app.py").unwrap(), file("README.md").unwrap());
    let evidence = at.trusted(base).await;
    let store = EnvironmentStore::at(&at.plan.environments);
    lend(&at.held(&evidence), &worktree, true).unwrap();
    let made = u64::try_from(store.list().unwrap()[0].record.made_at.millis()).unwrap();
    let made = std::time::UNIX_EPOCH + Duration::from_millis(made);
    assert!(edited < made && file("src/app.py").unwrap() > made);
    assert_eq!(file("README.md").unwrap(), other, "what did not change is as old as it was");
}

#[tokio::test]
async fn an_agent_gets_copies_where_the_kernel_lays_nothing_below_its_files() {
    let repo = Repo::new();
    let fill = "mkdir -p build/in seen; cp made.lock build/in/lib; ln -s in/lib build/link; touch seen/by-git";
    let at = Prepared::new(repo, &[prepare("deps", fill, &["made.lock"])], &[]).await;
    let base = at.commit("made.lock", "1\n");
    let worktree = at.repo.worktree();
    let before = worktree.tree_id().unwrap();
    let held = at.held(&at.trusted(base).await);
    let lib = worktree.path().join("build/link");
    for _ in 0..2 {
        lend(&held, &worktree, false).unwrap();
        assert_eq!(std::fs::read_to_string(&lib).unwrap(), "1\n");
        // Not what would be part of the change.
        assert!(!worktree.path().join("seen").exists());
        assert_eq!(worktree.tree_id().unwrap(), before);
        put(&lib, "written to by the agent\n");
    }
    assert_eq!(std::fs::read_to_string(held[0].files().join("build/link")).unwrap(), "1\n");
}

#[tokio::test]
async fn no_more_than_twelve_environments_are_kept_and_none_goes_that_somebody_uses() {
    let repo = Repo::new();
    let at = Prepared::new(repo, &[prepare("deps", "true", &["deps.lock"])], &[]).await;
    let first = at.commit("deps.lock", "0\n");
    let used = at.trusted(first).await;
    let held = at.held(&used);
    let next = async |number: i32| at.trusted(at.commit("deps.lock", &format!("{number}\n"))).await;
    for number in 1..14 {
        next(number).await;
    }
    assert_eq!(at.kept().len(), 13);
    // Nor is it made anew below whoever uses it.
    let again = forget_environments(&at.repo.project(), first, &at.plan, &at.confinement).await;
    assert!(matches!(again, Err(GitError::EnvironmentUsed { .. })));
    assert!(at.kept().contains(&used.environments[0].key));
    drop(held);
    next(14).await;
    assert_eq!(at.kept().len(), 12);
    assert!(!at.kept().contains(&used.environments[0].key));
    assert!(at.trusted(first).await.environments[0].prepared_ms.is_some(), "it is made anew");
}

#[tokio::test]
async fn a_stale_build_folder_turns_no_breaking_submodule_green() {
    let (repo, lib) = Repo::with_submodules();
    let copied = "test: out/word\n\tgrep -q 'lib 1' out/word\nout/word: vendor/lib/lib.c\n\tmkdir -p out; cp $< $@\n";
    repo.write("Makefile", copied);
    repo.write(".gitignore", "/out/\n");
    let at = Prepared::new(repo, &[], &[shell("test", "make test")]).await;
    let good = at.commit("made.lock", "1\n");
    put(&lib.join("lib.c"), "lib 2\n");
    git_in(&lib, &["commit", "-qam", "second"]);
    at.repo.git(&["-C", "vendor/lib", "-c", "protocol.file.allow=always", "pull", "-q"]);
    let bad = at.commit("README.md", "a newer library\n");
    breaks(at, (good, bad), "make out/word").await;
}

#[tokio::test]
async fn a_stale_build_folder_turns_no_breaking_edit_green_in_cargo() {
    let code = |word: &str| {
        format!(
            "pub fn greet() -> &'static str {{ \"{word}\" }}\n#[test]\nfn greets() {{ assert_eq!(greet(), \"hello\"); }}\n"
        )
    };
    let (good, bad) = (code("hello"), code("jello"));
    breaking_edit(
        &[
            ("Cargo.toml", "[package]\nname = \"greet\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[lib]\npath = \"greet.rs\"\n"),
            ("Cargo.lock", "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 3\n\n[[package]]\nname = \"greet\"\nversion = \"0.1.0\"\n"),
            ("greet.rs", &good),
            (".gitignore", "/target/\n"),
        ],
        "cargo test --offline --no-run",
        "cargo test --offline",
        ("greet.rs", &bad),
    )
    .await;
}

fn house_plan(gate: &str) -> Plan {
    let homes = "for at in go/pkg/mod .m2/repository .gradle/caches; do \
                 mkdir -p $HOME/$at && echo $at > $HOME/$at/kept; done";
    let script = format!("mkdir -p deps && cp deps.lock deps/lib && {homes} && echo prepared");
    let script = serde_json::json!(script);
    let more = format!(
        "prepare: [{{name: packages, command: [sh, -c, {script}], files: [deps.lock], network: off}}]\n\
         gates: {{prepare: {gate}}}\n"
    );
    let checks = serde_json::json!("cmp deps.lock deps/lib && echo 1 passed");
    Plan {
        checks: format!("[{{name: deps, command: [sh, -c, {checks}]}}]"),
        more,
        ..Plan::default()
    }
}

const BUMP: &str = "in deps.lock replace \"1.0\" with \"2.0\"";

async fn house(gate: &str) -> House {
    let looks = json!([{"role": "qa", "contains": "deps.lock", "do": "run", "commands": [["cat", "deps/lib"]]}]);
    let plan = Plan { script: Some(looks.to_string()), ..house_plan(gate) };
    let mut house = House::built(plan).await;
    house.commit_by_hand("deps.lock", "parser 1.0\n", "A dependency");
    house.commit_by_hand(".gitignore", "/deps/\n", "Dependencies are no part of it");
    house.start();
    house
}

#[tokio::test]
async fn a_request_that_changes_dependencies_waits_for_a_yes_and_is_proven_with_them() {
    let house = house("ask").await;
    let asked = house.ask(BUMP).await;
    let card = house.reads(&asked, "May the dependencies of this change be prepared?").await;
    let id = house.state().unwrap().gates.into_values().next().unwrap().request_id.to_string();
    let (_, shown, error) = house.teams(&["approve", &id]).await;
    assert!(shown.contains("It alters: ") && shown.contains("kept apart"), "{shown}{error}");
    let commit = house.state().unwrap().requests.into_values().next().unwrap();
    let commit = commit.work.candidate.as_ref().unwrap().commit.clone();
    assert!(
        !shown.contains(&format!("--content {}", &commit[..7])),
        "that is asked later: {shown}"
    );
    let (_, why, _) = house.teams(&["why", &id]).await;
    assert!(why.contains("may the dependencies of commit"), "{why}");
    assert!(
        words(&card).contains("deps.lock") && words(&card).contains("cp deps.lock"),
        "{}",
        words(&card)
    );
    let (code, said, error) = house.teams(&["status"]).await;
    assert_eq!(code, 0, "{error}");
    assert!(said.contains("prepared: packages") && !said.contains("not landed"), "{said}");
    house.press(&house.owner, &asked, "May the dependencies", "Approve").await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    let used = &request.work.evidence.as_ref().unwrap().environments;
    assert_eq!(used.len(), 1);
    assert_eq!(house.on_branch("deps.lock"), "parser 2.0\n");
    // Whoever judges it has what was agreed to.
    let seen = told(&house, &request, "qa");
    assert!(seen[0].contains("parser 2.0"), "{seen:?}");
    house.quiet().await;
    // Both are there, and prepared for everybody.
    let (_, said, _) = house.teams(&["status", "--json"]).await;
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    let kept = told["environments"].as_array().unwrap();
    assert_eq!(kept.len(), 2, "{said}");
    assert!(kept.iter().all(|one| one["not_landed"].is_null()), "{said}");
    let (code, said, error) = house.teams(&["prepare"]).await;
    assert_eq!((code, said.trim()), (0, "prepared   packages: there already"), "{error}");
    let (code, said, error) = house.teams(&["prepare", "--fresh", "--json"]).await;
    assert_eq!(code, 0, "{error}");
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(told[0]["prepared_ms"].is_u64(), "{said}");
    let (code, said, error) = house.teams(&["checks", "run", "--commit", "main~1"]).await;
    assert_eq!(code, 0, "{said}{error}");
    assert!(said.contains("packages"), "{said}");
    house.close().await;
}

#[tokio::test]
async fn without_a_yes_nothing_of_it_is_run_and_the_change_stays_aside() {
    let no = house("refuse").await;
    let asked = no.ask(BUMP).await;
    no.becomes(&asked, RequestStatus::Completed).await;
    no.quiet().await;
    assert_eq!(no.on_branch("deps.lock"), "parser 1.0\n");
    let kept = EnvironmentStore::at(&no.root().join(".teams_runtime/environments")).list().unwrap();
    assert_eq!(kept.len(), 1, "that of the base");
    // By hand it is asked as well, and who cannot be asked says so beforehand.
    let request = no.requests().remove(0);
    let branch = format!("teams/{}", request.request_id);
    let by_hand = ["checks", "run", "--commit", &branch];
    let (code, _, error) = no.teams(&by_hand).await;
    assert!(code == 1 && error.contains("deps.lock") && error.contains("--prepare"), "{error}");
    // So does who ends the question.
    let root = no.root();
    let at_a_terminal = format!("{} --workspace-root {}", by_hand.join(" "), root.display());
    let (shown, well) = typed(&at_a_terminal, &root, "Type yes", "\x03").await;
    assert!(!well && shown.contains("deps.lock") && shown.contains("--prepare"), "{shown}");
    let (shown, well) = typed(&at_a_terminal, &root, "Type yes", "yes\r").await;
    assert!(well, "{shown}");
    let (code, said, error) = no.teams(&[&by_hand[..], &["--prepare"]].concat()).await;
    assert_eq!(code, 0, "{said}{error}");
    no.close().await;

    let asks = house("ask").await;
    let asked = asks.ask(BUMP).await;
    asks.press(&asks.owner, &asked, "May the dependencies", "Turn down").await;
    asks.becomes(&asked, RequestStatus::Completed).await;
    assert_eq!(asks.on_branch("deps.lock"), "parser 1.0\n");
    asks.close().await;
}

#[tokio::test]
async fn without_configuration_there_is_nothing_to_prepare() {
    let house = House::open(Plan::default()).await;
    let (code, _, error) = house.teams(&["prepare"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("nothing is configured under `prepare`"), "{error}");
    house.close().await;
}

/// What a role's report says of each command of its script.
fn told(house: &House, request: &Request, role: &str) -> Vec<String> {
    let history = house.history(request);
    let report = history.iter().find(|it| it.kind.as_str() == "role_report" && it.actor == role);
    let summary = report.unwrap().payload["result"]["summary"].as_str().unwrap().to_owned();
    summary.lines().filter(|line| line.starts_with('`')).map(str::to_owned).collect()
}

#[tokio::test]
async fn agents_see_the_project_at_its_own_path_with_what_was_prepared_and_can_run_its_tests() {
    let script = |role: &str, commands: &[&str]| {
        let commands: Vec<_> = commands.iter().map(|text| json!(["bash", "-c", text])).collect();
        json!({"role": role, "contains": "greet.sh", "times": 1, "do": "run", "commands": commands})
    };
    let check = "cmp deps.lock deps/lib && echo as the check does";
    let builds = [
        check,
        "echo $(pwd) $(git rev-parse --show-toplevel)",
        "echo new > notes.txt; git status --porcelain",
        "echo $(git log --oneline | wc -l) $(git branch --show-current)",
        "echo mine > deps/lib; rm deps/lib; mkdir deps/more; ls deps",
        "echo 'gitdir: /elsewhere' > .git",
        "cat $GOMODCACHE/kept $GRADLE_RO_DEP_CACHE/kept \
         ${MAVEN_OPTS#-Dmaven.repo.local=}/kept | tr '\\n' ' '",
    ];
    let judges = [check, "pwd", "echo mine > deps/lib", "echo mine > greet.sh", "cat greet.sh"];
    // The developer writes a file of its own.
    let plans = json!({"role": "planner", "do": "propose", "proposals": {"allowed_paths": null}});
    let entries = json!([plans, script("developer", &builds), script("qa", &judges)]);
    let mut house =
        House::built(Plan { script: Some(entries.to_string()), ..house_plan("ask") }).await;
    house.commit_by_hand("deps.lock", "parser 1.0\n", "A dependency");
    house.commit_by_hand(".gitignore", "/deps/\n", "Dependencies are no part of it");
    house.start();
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    let project = house.project().canonicalize().unwrap().to_str().unwrap().to_owned();
    let built = told(&house, &request, "developer");
    let has = |lines: &[String], at: usize, words: &str, works: bool| {
        let line = &lines[at];
        assert!(line.contains(words), "{at}: {words}: {lines:#?}");
        assert_eq!(line.contains(": exit code 0:"), works, "{lines:#?}");
    };
    has(&built, 0, "as the check does", true);
    has(&built, 1, &format!("{project} {project}"), true);
    has(&built, 2, "?? notes.txt", true);
    has(&built, 3, &format!("3 teams/{}", request.request_id), true);
    has(&built, 4, "more", true);
    has(&built, 5, "", false);
    let homes = "go/pkg/mod .gradle/caches .m2/repository";
    has(&built, 6, homes, true);
    let judged = told(&house, &request, "qa");
    has(&judged, 0, "as the check does", true);
    has(&judged, 1, &project, true);
    has(&judged, 2, "", false);
    has(&judged, 3, "", false);
    has(&judged, 4, "echo good morning", true);
    // It is private: neither the next check nor the commit has anything of it.
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    let files = request.work.candidate.as_ref().unwrap().paths.len();
    assert_eq!(files, 2);
    let store = house.root().join(".teams_runtime/environments");
    let kept: Vec<_> = std::fs::read_dir(&store).unwrap().map(|it| it.unwrap().path()).collect();
    let lib = kept.iter().map(|it| it.join("files/deps/lib")).find(|it| it.exists()).unwrap();
    assert_eq!(std::fs::read_to_string(lib).unwrap(), "parser 1.0\n");
    house.close().await;
}

#[tokio::test]
async fn secrets_of_registries_reach_the_preparation_alone_and_are_masked() {
    const KEY: &str = "canary-registry-key-7f31c09a";
    let script = json!(format!(
        "test \"$REGISTRY_KEY\" = {KEY} || exit 9; mkdir -p deps; echo ok > deps/lib; test -e good && exit; \
         echo key $REGISTRY_KEY >&2; exit 3"
    ));
    let checks = json!("env | grep -q canary && exit 1; test -e deps/lib && echo 1 passed");
    let more = format!(
        "prepare: [{{name: packages, command: [sh, -c, {script}], files: [deps.lock, good], network: off, \
         secrets: [REGISTRY_KEY]}}]\n"
    );
    let checks = format!("[{{name: deps, command: [sh, -c, {checks}]}}]");
    let looks = json!([{"role": "developer", "contains": "greet.sh", "do": "run", "commands": [
        ["sh", "-c", "env | grep canary || echo no canary"]
    ]}]);
    let script = Some(looks.to_string());
    let mut house = House::built(Plan { checks, more, script, ..Plan::default() }).await;
    std::fs::write(house.root().join(".env"), format!("REGISTRY_KEY={KEY}\n")).unwrap();
    house.commit_by_hand("deps.lock", "parser 1.0\n", "A dependency");
    house.start();
    let (code, _, error) = house.teams(&["prepare"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("exit code 3") && error.contains("key "), "{error}");
    assert!(!error.contains(KEY), "{error}");
    house.commit_by_hand("good", "", "Now it works");
    let (code, said, error) = house.teams(&["checks", "run"]).await;
    assert_eq!(code, 0, "{said}{error}");
    // Nor does an agent get it.
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    let seen = told(&house, &request, "developer");
    assert!(seen[0].ends_with(": no canary"), "{seen:?}");
    house.close().await;
}

#[tokio::test]
async fn twelve_environments_are_kept_and_shown() {
    let more = "prepare: [{name: packages, command: ['true'], files: [deps.lock], network: off}]\n";
    let mut house = House::built(Plan { more: more.to_owned(), ..Plan::default() }).await;
    for number in 0..14 {
        house.commit_by_hand("deps.lock", &format!("{number}\n"), "A dependency");
        let (code, said, error) = house.teams(&["prepare"]).await;
        assert_eq!(code, 0, "{said}{error}");
    }
    let (_, said, _) = house.teams(&["status", "--json"]).await;
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(told["environments"].as_array().unwrap().len(), 12, "{said}");
    house.start();
    house.close().await;
}

/// A lock file whose code looks for what is not its own: nothing of it is run before a yes, and with one it finds nothing.
#[tokio::test]
async fn a_hostile_lock_file_does_nothing_without_a_person_and_harms_nothing_with_one() {
    let more = "prepare: [{name: packages, command: [sh, deps.lock], files: [deps.lock], network: off}]\n\
                gates: {prepare: ask}\n";
    let check = json!("cat deps/seen; grep -q . deps/seen && exit 1; echo 1 passed");
    let script = json!([
        {"role": "planner", "do": "propose", "proposals": {"allowed_paths": null}},
        {"role": "developer", "do": "run", "commands": [["cp", "hostile", "deps.lock"]]}
    ]);
    let mut house = House::built(Plan {
        checks: format!("[{{name: seen, command: [sh, -c, {check}]}}]"),
        script: Some(script.to_string()),
        more: more.to_owned(),
        ..Plan::default()
    })
    .await;
    let (secret, mark) = (house.beside("secret"), house.beside("mark"));
    std::fs::write(&secret, "password\n").unwrap();
    let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listening.set_nonblocking(true).unwrap();
    let hostile = format!(
        "mkdir -p deps; exec > deps/seen 2>/dev/null\n\
         cat '{secret}'; cat '{root}/.teams_runtime/environments/'*/environment.json\n\
         cat '{root}/.env'; env | grep -i token; echo pwned > '{mark}'\n\
         bash -c 'echo hello > /dev/tcp/127.0.0.1/{port} && echo connected'\ntrue\n",
        secret = secret.display(),
        root = house.root().display(),
        mark = mark.display(),
        port = listening.local_addr().unwrap().port(),
    );
    house.commit_by_hand(".gitignore", "/deps/\n", "Dependencies are no part of it");
    house.commit_by_hand("hostile", &hostile, "What somebody else wrote");
    house.commit_by_hand("deps.lock", "mkdir -p deps; : > deps/seen\n", "A dependency");
    house.start();
    let asked = house.ask(EDIT).await;
    house.reads(&asked, "May the dependencies of this change be prepared?").await;
    let store = house.root().join(".teams_runtime/environments");
    assert!(!store.join("apart").exists(), "nothing of it was run");
    house.press(&house.owner, &asked, "May the dependencies", "Approve").await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    let log = &request.work.evidence.as_ref().unwrap().checks[0].log_tail;
    assert!(log.contains("1 passed"), "{log}");
    assert!(!mark.exists() && std::fs::read_to_string(&secret).unwrap() == "password\n");
    assert!(listening.accept().is_err(), "it has no network");
    house.close().await;
}
