//! What a prepared environment costs each check, by its size: 10 MB, and 1 GB in 10,000 files. The tenth check is held
//! against the second. `TEAMS_BENCH_MB` names other sizes.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use teams::domain::config::CheckNetwork;
use teams::git::{CheckPlan, CheckSpec, PreparationOwner, PrepareSpec, Project, checks, create};
use teams::platform::{confinement, spawn};
use tokio_util::sync::CancellationToken;

/// Bytes of each file of an environment.
const FILE: usize = 100_000;

#[tokio::main]
async fn main() {
    spawn::set_own_binary(env!("CARGO_BIN_EXE_teams").into());
    let sizes = std::env::var("TEAMS_BENCH_MB").unwrap_or_else(|_| "10,1000".to_owned());
    for size in sizes.split(',').map(|text| text.trim().parse().unwrap()) {
        measure(size).await;
    }
}

async fn measure(megabytes: usize) {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = place.path().join("project");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("deps.lock"), "1\n").unwrap();
    std::fs::write(path.join(".gitignore"), "/deps/\n").unwrap();
    create::create(&path, "main", "A project").unwrap();
    let project = Project::open(&path, "main").unwrap();
    let files = megabytes * 1_000_000 / FILE;
    let script = format!(
        "mkdir deps && cd deps && for n in $(seq {files}); do \
         mkdir -p d$((n / 100)) && head -c {FILE} /dev/zero > d$((n / 100))/f$n; done"
    );
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let plan = CheckPlan {
        checks: vec![CheckSpec {
            name: "true".to_owned(),
            command: words(&["test", "-e", "deps/d0/f1"]),
            timeout: Duration::from_secs(600),
            output_limit: 1 << 20,
            env: [].into(),
            read: Vec::new(),
            report: None,
            network: CheckNetwork::Off,
        }],
        prepare: vec![PrepareSpec {
            name: "deps".to_owned(),
            command: words(&["sh", "-c", &script]),
            files: vec![PathBuf::from("deps.lock")],
            timeout: Duration::from_secs(600),
            env: [].into(),
            secrets: [].into(),
            read: Vec::new(),
            network: CheckNetwork::Off,
        }],
        environments: place.path().join("environments"),
        carry: Vec::new(),
        tools: None,
        hidden: Vec::new(),
        trees: place.path().join("trees"),
        allow_unisolated: true,
        digest: String::new(),
    };
    let confinement = confinement::find().await;
    let commit = project.head().unwrap();
    let (scratch, stop) = (place.path().join("scratch"), CancellationToken::new());
    let mut took = Vec::new();
    for _ in 0..10 {
        let begun = Instant::now();
        let whose = PreparationOwner::trusting(commit);
        let evidence = checks::run(&project, commit, &plan, &confinement, &scratch, &whose, &stop);
        let evidence = evidence.await.unwrap();
        assert!(evidence.is_green(), "{evidence:?}");
        took.push(begun.elapsed());
    }
    let ms: Vec<u128> = took.iter().map(Duration::as_millis).collect();
    println!("{megabytes} MB in {files} files: the ten checks took {ms:?} ms");
    let (second, tenth) = (took[1], took[9]);
    println!("  the tenth is {:.2} of the second", tenth.as_secs_f64() / second.as_secs_f64());
    assert!(tenth < second * 3 / 2 + Duration::from_millis(50), "the tenth costs more: {ms:?}");
}
