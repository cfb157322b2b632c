//! What people get wrong is said with its place and the way out; nothing of it is a crash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::house::{EDIT, House, Plan, teams};

/// What `teams run` says about a workspace whose file was changed.
async fn complaint(house: &House, file: &str, from: &str, to: &str) -> String {
    let path = house.root().join(file);
    let before = std::fs::read_to_string(&path).unwrap();
    assert!(before.contains(from), "{from:?} is not in {before}");
    std::fs::write(&path, before.replacen(from, to, 1)).unwrap();
    let (code, stdout, stderr) = house.teams(&["run", "--quiet"]).await;
    std::fs::write(&path, before).unwrap();
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    stderr.replace(house.root().to_str().unwrap(), "WORKSPACE")
}

#[tokio::test]
async fn a_bad_configuration_is_shown_with_its_place_and_the_nearest_key() {
    let house = House::built(Plan::default()).await;
    let cases = [
        ("unknown key", "team_runtime.yaml", "language: en", "langauge: en"),
        ("unknown key below", "team_runtime.yaml", "timeout_seconds:", "timeout:"),
        ("wrong word", "team_runtime.yaml", "language: en", "language: fr"),
        ("wrong kind", "team_runtime.yaml", "[sh, test.sh]", "sh test.sh"),
        ("out of range", "team_runtime.yaml", "timeout_seconds: 60", "timeout_seconds: 0"),
        ("no agent", "team_runtime.yaml", "default: rehearsal", "default: rehersal"),
        ("not closed", "team_runtime.yaml", "language: en", "language: [en"),
        ("not closed within", "team_runtime.yaml", "[sh, test.sh]", "[sh, test.sh"),
        ("not closed at all", "team_runtime.yaml", "language: en", "language: {a: [b, c]"),
        ("not YAML", "team_runtime.yaml", "language: en", "language: en: ko"),
        ("gone key", "team_runtime.yaml", "language: en", "approval: {}\nlanguage: en"),
        ("wrong voice", "discord_agents_config.yaml", "voice: personas", "voice: persona"),
        ("no token name", "discord_agents_config.yaml", "token_env: TEAMS_TEST_TEAMS\n", ""),
    ];
    let mut all = String::new();
    for (name, file, from, to) in cases {
        let text = complaint(&house, file, from, to).await;
        assert!(text.contains(file), "{name}: no file in {text}");
        // What is wrong is said once; the lines below show where.
        let (said, shown) = text.split_once('\n').unwrap();
        let what = said.rsplit_once(": ").map_or(said, |(_, what)| what);
        assert!(!shown.contains(what), "{name}: said twice: {text}");
        all.push_str(&format!("## {name}\n{text}\n"));
    }
    insta::assert_snapshot!(all);
}

#[tokio::test]
async fn a_missing_token_names_its_variable() {
    let house = House::built(Plan::default()).await;
    let root = house.root();
    let arguments = ["run", "--quiet", "--workspace-root", root.to_str().unwrap()];
    let (code, _, error) = teams(&arguments, &BTreeMap::new()).await;
    assert_eq!(code, 1);
    assert!(error.contains("TEAMS_TEST_TEAMS"), "{error}");
    let empty = BTreeMap::from([("TEAMS_TEST_TEAMS".to_owned(), String::new())]);
    let (code, _, error) = teams(&arguments, &empty).await;
    assert_eq!(code, 1);
    assert!(error.contains("TEAMS_TEST_TEAMS"), "{error}");
}

#[tokio::test]
async fn ids_that_are_paths_are_refused_at_the_command_line() {
    let house = House::built(Plan::default()).await;
    for id in ["../../etc/passwd", "a/b", "..", "a\u{7}b", "a\nb", "", "x;rm -rf /"] {
        for command in [&["why"][..], &["request", "cancel"], &["request", "retry"], &["approve"]] {
            let (code, stdout, error) = house.teams(&[command, &[id]].concat()).await;
            assert_eq!((code, stdout.as_str()), (2, ""), "{command:?} {id:?}: {error}");
            assert!(!error.contains('\u{7}'), "{error:?}");
        }
        let (code, _, error) = house.teams(&["status", "--request-id", id]).await;
        assert_eq!(code, 2, "{id:?}: {error}");
    }
}

#[tokio::test]
async fn g10_a_payload_that_is_none_is_refused_by_name() {
    // Better than a helper that says `failed` and exits 0: there is no helper program, and scripts see the code.
    let house = House::open(Plan::default()).await;
    house.reads("startup", "The team is up").await;
    let file = house.beside("items.json");
    let path = file.to_str().unwrap();
    let merge = ["backlog", "merge", "--input-file", path];
    for (text, part) in [
        (None, "items.json"),
        (Some("{ half"), "is not JSON"),
        (Some("5"), "item 1: expected an object"),
        (Some("[{\"title\": \"a\", \"kind\": \"epic\"}]"), "item a: kind"),
    ] {
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let (code, said, error) = house.teams(&merge).await;
        assert_eq!((code, said.as_str()), (1, ""), "{text:?}: {error}");
        assert!(error.contains(part), "{text:?}: {error}");
    }
    let (code, _, error) = house.teams(&["backlog", "polish"]).await;
    assert_eq!(code, 2, "{error}");
    assert!(house.state().unwrap().backlog.is_empty(), "and nothing is half-applied");
    house.close().await;
}

#[tokio::test]
async fn a_folder_that_is_no_workspace_is_named_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    for command in ["run", "status"] {
        let arguments = [command, "--workspace-root", nowhere.to_str().unwrap()];
        let (code, _, error) = teams(&arguments, &BTreeMap::new()).await;
        assert_eq!(code, 1, "{error}");
        assert!(error.contains("nowhere"), "{error}");
    }
    assert!(!nowhere.exists());
}

/// Everything below a folder, by its path.
fn files(root: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(root, &path, all);
        } else if path.is_file() && !path.ends_with("lock") && !path.ends_with("service.lock") {
            all.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path).unwrap());
        }
    }
}

fn everything(house: &House) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    files(&house.root(), &house.root(), &mut all);
    all
}

#[tokio::test]
async fn a_reset_asks_and_keeps_what_was_there() {
    let plan = Plan { checks: "[]".to_owned(), ..Plan::default() };
    let mut house = House::open(plan).await;
    let asked = house.ask(EDIT).await;
    house.reads(&asked, "May this go to the branch?").await;
    let (code, out, error) = house.teams(&["init", "--reset", "--yes"]).await;
    assert_eq!((code, out.as_str()), (1, ""), "{error}");
    let holder = format!("(process {})", house.team_pid());
    assert!(
        error.contains("another process owns the workspace") && error.contains(&holder),
        "{error}"
    );
    house.quiet().await;
    house.stop().await;

    let before = everything(&house);
    let (code, out, error) = house.teams(&["init", "--reset"]).await;
    assert_eq!((code, out.as_str()), (1, ""), "nobody can be asked here: {error}");
    let command =
        format!("`teams init --reset --yes --workspace-root '{}'`", house.root().display());
    assert!(error.contains("1 open requests") && error.contains(&command), "{error}");
    assert_eq!(everything(&house), before);

    let (code, out, error) = house.teams(&["init", "--reset", "--yes"]).await;
    assert_eq!(code, 0, "{error}");
    let kept =
        out.lines().find_map(|line| line.trim().strip_prefix("what was there before is in "));
    let kept = PathBuf::from(kept.expect("the folder is named"));
    let after = everything(&house);
    assert!(!after.keys().any(|path| path.starts_with(".teams_runtime/requests")));
    let below = kept.strip_prefix(house.root()).unwrap();
    for (path, bytes) in &before {
        let found =
            [path.clone(), below.join(path)].iter().any(|path| after.get(path) == Some(bytes));
        assert!(found, "{} is lost", path.display());
    }
    for part in [
        ".teams_runtime/requests",
        ".teams_runtime/checkpoint",
        "logs/teams.log",
        "team_runtime.yaml",
    ] {
        assert!(after.keys().any(|path| path.starts_with(below.join(part))), "{part} is not kept");
    }
}
