//! Checks at a commit, run by the real supervisor.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teams::domain::config::CheckNetwork;
use teams::domain::evidence::{CheckRun, CheckVerdict, Evidence};
use teams::git::checks::{CheckPlan, CheckSpec, PreparationOwner, run};
use teams::platform::confinement::{self, Confinement};
use tokio_util::sync::CancellationToken;

use crate::git_repo::{Repo, put, set_mode};
use crate::support::fifo;

pub(crate) fn check(name: &str, command: &[&str]) -> CheckSpec {
    CheckSpec {
        name: name.into(),
        command: command.iter().map(|&word| word.to_owned()).collect(),
        timeout: Duration::from_secs(60),
        output_limit: 1 << 20,
        env: BTreeMap::new(),
        read: Vec::new(),
        report: None,
        network: CheckNetwork::Off,
    }
}

pub(crate) fn shell(name: &str, script: &str) -> CheckSpec {
    check(name, &["sh", "-c", script])
}

pub(crate) fn plan(checks: &[CheckSpec]) -> CheckPlan {
    CheckPlan {
        checks: checks.to_vec(),
        prepare: Vec::new(),
        environments: PathBuf::new(),
        carry: Vec::new(),
        tools: None,
        hidden: Vec::new(),
        trees: PathBuf::new(),
        allow_unisolated: true,
        digest: "the digest".to_owned(),
    }
}

/// Commits a program and whatever else the worktree is given, and runs the checks there.
pub(crate) async fn checked_by(
    repo: &Repo,
    plan: &CheckPlan,
    confinement: &Confinement,
    change: impl FnOnce(&Path),
) -> teams::git::Result<Evidence> {
    teams::platform::spawn::set_own_binary(env!("CARGO_BIN_EXE_teams").into());
    let worktree = repo.worktree();
    put(&worktree.path().join("ok.sh"), "#!/bin/sh\ncat src/app.py\n");
    set_mode(&worktree.path().join("ok.sh"), 0o755);
    change(&worktree.path());
    let candidate = repo.commit(&worktree);
    // What is not in the commit must not be there.
    put(&worktree.path().join("uncommitted"), "x\n");
    let commit = candidate.commit.parse().unwrap();
    let (scratch, stop) = (repo.root.join("scratch"), CancellationToken::new());
    let plan = &CheckPlan { trees: repo.root.with_file_name("trees"), ..plan.clone() };
    let whose = PreparationOwner::trusting(commit);
    let evidence = run(&repo.project(), commit, plan, confinement, &scratch, &whose, &stop).await?;
    assert_eq!(evidence.commit, candidate.commit);
    assert_eq!(evidence.checks_digest, "the digest");
    Ok(evidence)
}

async fn checked(repo: &Repo, specs: &[CheckSpec]) -> Evidence {
    checked_by(repo, &plan(specs), &confinement::find().await, |_| {}).await.unwrap()
}

pub(crate) fn outcome<'a>(evidence: &'a Evidence, name: &str) -> &'a CheckRun {
    evidence.checks.iter().find(|run| run.name == name).unwrap()
}

/// Whether some process has this word among its arguments.
pub(crate) fn runs(word: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let arguments = |path: PathBuf| std::fs::read(path.join("cmdline")).unwrap_or_default();
    all.map(|entry| arguments(entry.path()))
        .any(|line| line.split(|byte| *byte == 0).any(|it| it == word.as_bytes()))
}

/// Waits until a shell that has started `sleep <word>` beside itself says so through the fifo, and until its child,
/// which is still a copy of the shell then, has become that program.
pub(crate) fn begins(fifo: &Path, word: &str) {
    assert_eq!(std::fs::read_to_string(fifo).unwrap(), "up\n");
    while !runs(word) {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn every_check_runs_in_order_at_the_exact_commit_and_failures_do_not_stop_the_rest() {
    // Inside the project, so that looking for a repository upwards would find the real one.
    let repo = Repo::with_workspace_inside();
    let specs = [
        check("program of the project", &["./ok.sh"]),
        shell("red", "echo out; echo 'err \x1b[31mred' >&2; exit 3"),
        shell(
            "clean",
            "test ! -e uncommitted && test ! -e ws && test -z \"$(git status --porcelain)\"",
        ),
        shell(
            "scrubbed",
            "env; test -z \"$CARGO_MANIFEST_DIR\" && cd \"$HOME\" && touch x && cd \"$TMPDIR\" && ! read line",
        ),
        check("missing", &["no-such-program-anywhere"]),
        check("empty", &[]),
        shell("zero", "echo 'test result: ok. 0 passed; 0 failed; 0 ignored'"),
        shell("counted", "echo '2 passed, 0 failed'"),
        shell("contradicts", "echo '=== 1 failed, 2 passed in 0.1s ==='"),
        check("no shell", &["echo", "$(touch /tmp/never)", ";", "false"]),
        CheckSpec {
            report: Some("report.xml".into()),
            ..shell("names no test", "echo '<testsuites></testsuites>' > report.xml")
        },
    ];
    let evidence = checked(&repo, &specs).await;
    let found: Vec<(&str, CheckVerdict)> =
        evidence.checks.iter().map(|run| (run.name.as_str(), run.verdict)).collect();
    assert_eq!(
        found,
        [
            ("program of the project", CheckVerdict::Passed),
            ("red", CheckVerdict::Failed),
            ("clean", CheckVerdict::Passed),
            ("scrubbed", CheckVerdict::Passed),
            ("missing", CheckVerdict::NotStarted),
            ("empty", CheckVerdict::NotStarted),
            ("zero", CheckVerdict::Failed),
            ("counted", CheckVerdict::Passed),
            ("contradicts", CheckVerdict::Failed),
            ("no shell", CheckVerdict::Passed),
            ("names no test", CheckVerdict::Failed),
        ],
        "{:#?}",
        evidence.checks
    );
    assert!(!evidence.is_green());
    assert_eq!(evidence.first_failure().unwrap().name, "red");
    let red = &evidence.checks[1];
    assert_eq!(red.exit_code, Some(3));
    assert!(red.log_tail.contains("out") && red.log_tail.contains("err red"), "{:?}", red.log_tail);
    assert_eq!(evidence.checks[0].log_tail, "print(1)");
    assert_eq!(evidence.checks[7].tests_passed, Some(2));
    assert_eq!(evidence.checks[9].log_tail, "$(touch /tmp/never) ; false");
    // The log stays and is the one that the digest names; everything else is gone.
    let scratch = repo.root.join("scratch");
    let log = std::fs::read(scratch.join("2-red.log")).unwrap();
    use sha2::Digest as _;
    let digest: String =
        sha2::Sha256::digest(&log).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, red.log_digest);
    let left: Vec<_> = std::fs::read_dir(&scratch).unwrap().collect();
    assert_eq!(left.len(), specs.len());
}

#[tokio::test]
async fn no_check_is_judged_by_what_another_wrote_into_the_commits_files() {
    let repo = Repo::new();
    let shared = repo.root.join("shared/sub");
    std::fs::create_dir_all(&shared).unwrap();
    set_mode(&shared, 0o2770);
    fifo(&repo.root.join("shared/.gitignore"));
    let link = format!("rm -r pkg; ln -s '{}' pkg", repo.root.join("shared").display());
    let specs = [
        shell("leads away", &link),
        shell(
            "writes",
            "mkfifo src/.gitattributes; echo ok > state.txt; rm src/old.py; ln -sf /etc/passwd README.md; chmod +x src/app.py; \
             mkdir build; touch build/x new.txt; touch -d 2001-01-01 .gitignore; cp -r docs build/docs; \
             rm -r docs; ln -s build/docs docs",
        ),
        shell(
            "reads",
            "grep -q bad state.txt && test -f src/old.py && test ! -L README.md -a ! -L docs && test -f pkg/sub/f",
        ),
        shell("status", "test \"$(git status --porcelain)\" = '?? new.txt' && test -e build/x"),
    ];
    let (plan, confinement) = (plan(&specs), confinement::find().await);
    let bad = |tree: &Path| {
        put(&tree.join("state.txt"), "bad\n");
        put(&tree.join("docs/page.md"), "words\n");
        put(&tree.join("pkg/sub/f"), "words\n");
    };
    let evidence = checked_by(&repo, &plan, &confinement, bad).await.unwrap();
    let mode = std::fs::metadata(&shared).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o2770, "what a link leads to is not the project's");
    assert!(repo.root.join("shared/.gitignore").exists(), "nor is what lies there");
    let passed = evidence.checks.iter().all(|run| run.verdict == CheckVerdict::Passed);
    assert!(passed, "{:#?}", evidence.checks);
    let log = std::fs::read_to_string(repo.root.join("scratch/2-writes.log")).unwrap();
    assert!(log.contains("it changed 5 of the project's files"), "{log}");
    let log = std::fs::read_to_string(repo.root.join("scratch/3-reads.log")).unwrap();
    assert!(!log.contains("it changed"), "{log}");
}

#[tokio::test]
async fn a_check_at_its_limit_ends_with_all_that_came_from_it() {
    let repo = Repo::new();
    let word = format!("{}.25", 1_000_000 + std::process::id());
    let script = format!(
        "setsid sh -c 'trap \"\" INT TERM HUP; echo begun; while :; do sleep {word}; done' & wait"
    );
    let mut spec = shell("hangs", &script);
    spec.timeout = Duration::from_secs(10);
    let evidence = checked(&repo, &[spec, shell("after", "true")]).await;
    assert_eq!(evidence.checks[0].verdict, CheckVerdict::TimedOut);
    assert_eq!(evidence.checks[0].log_tail, "begun");
    assert_eq!(evidence.checks[1].verdict, CheckVerdict::Passed);
    assert!(!runs(&word));
}

#[tokio::test]
async fn a_flood_is_cut_and_said_so() {
    let repo = Repo::new();
    let mut spec = shell("flood", "yes flood | head -c 5000000; echo the end");
    spec.output_limit = 100_000;
    let evidence = checked(&repo, &[spec]).await;
    let run = &evidence.checks[0];
    assert_eq!(run.verdict, CheckVerdict::Passed);
    assert!(run.log_tail.len() <= 4096);
    assert!(
        run.log_tail.contains("the end") && run.log_tail.contains("bytes of output were dropped"),
        "{}",
        run.log_tail
    );
    let log = std::fs::metadata(repo.root.join("scratch/1-flood.log")).unwrap();
    assert!(log.len() < 170_000, "{}", log.len());
}

#[tokio::test]
async fn checks_that_were_cut_off_are_over_before_the_next_begin() {
    let repo = Repo::new();
    let says = repo.root.join("fifo");
    fifo(&says);
    let word = format!("{}.75", 1_000_000 + std::process::id());
    let script = format!("trap '' INT TERM; sleep {word} & echo up > {}; wait", says.display());
    let cut_off = [CheckSpec { read: vec![says.clone()], ..shell("long", &script) }];
    let sleeps = word.clone();
    let begun = tokio::task::spawn_blocking(move || begins(&says, &sleeps));
    tokio::select! {
        evidence = checked(&repo, &cut_off) => panic!("ended by itself: {evidence:#?}"),
        // From here on nobody waits for the check, and its supervisor ends it whenever it gets there.
        begun = begun => begun.unwrap(),
    };
    let evidence = checked(&repo, &[shell("next", "true")]).await;
    assert!(evidence.is_green());
    assert!(!runs(&word));
}
