//! What ended long ago makes room, is packed, and is still known.

use std::path::Path;
use std::time::{Duration, SystemTime};

use teams::domain::request::RequestStatus;

use crate::git_repo::git_in;
use crate::support::house::{EDIT, House, Plan};

/// Days after which things count as old where nothing else is configured, and some.
const LONG_AGO: Duration = Duration::from_secs(40 * 86_400);

const EDIT_AGAIN: &str = "in greet.sh replace \"good morning\" with \"good night\"";

/// Lets every file below a folder look as if nobody had written to it for long.
fn age(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            age(&path);
            continue;
        }
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - LONG_AGO).unwrap();
    }
}

fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

#[tokio::test]
async fn what_ended_long_ago_is_packed_and_can_still_be_continued() {
    let script = "- {role: developer, times: 1, contains: second, do: block}\n";
    let mut house = House::open(Plan::script(script)).await;
    let asked = house.ask(EDIT).await;
    let ended = house.becomes(&asked, RequestStatus::Committed).await;
    house.reads("general", "**Done.**").await;
    let open = house.ask("in greet.sh replace \"good morning\" with \"good second\"").await;
    let open = house.becomes(&open, RequestStatus::Blocked).await;
    house.quiet().await;
    house.stop().await;

    let runtime = house.root().join(".teams_runtime");
    let record = runtime.join("requests").join(format!("{}.json", ended.request_id));
    let mut long_ago: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    long_ago["ended_at"] = "2026-01-02T03:04:05+09:00".into();
    std::fs::write(&record, serde_json::to_vec_pretty(&long_ago).unwrap()).unwrap();
    for folder in ["requests", "internal_relay/archive"] {
        age(&runtime.join(folder));
    }
    let sources = house.root().join("developer/sources");
    age(&sources);
    let snapshots = || {
        let mut names = files(&sources);
        names.retain(|name| name.ends_with(".request.md"));
        names
    };
    assert_eq!(snapshots().len(), 2, "one of each request");
    // Files that people sent: an old one, an old one that an open request names, and a young one.
    let attachments = house.root().join("shared_workspace/attachments");
    std::fs::create_dir_all(&attachments).unwrap();
    for (name, age) in [("1_old.png", 400), ("2_named.png", 400), ("3_young.png", 300)] {
        let file = std::fs::File::create(attachments.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age * 86_400)).unwrap();
    }
    let named = runtime.join("requests").join(format!("{}.json", open.request_id));
    let mut naming: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&named).unwrap()).unwrap();
    naming["artifacts"] = serde_json::json!(["shared_workspace/attachments/2_named.png"]);
    std::fs::write(&named, serde_json::to_vec_pretty(&naming).unwrap()).unwrap();
    let history = house.history(&ended);
    let project = house.project();
    let commit = |name: &str, date: &str| {
        let head = git_in(&project, &["rev-parse", "HEAD^{tree}"]);
        let made = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-m", name, &head])
            .env("GIT_COMMITTER_DATE", date)
            .current_dir(&project)
            .output()
            .unwrap();
        let commit = String::from_utf8(made.stdout).unwrap();
        let name = format!("refs/teams/lost/{name}");
        git_in(&project, &["update-ref", &name, commit.trim()]);
        // It is there as long as its commit.
        let file = std::fs::File::options().write(true).open(project.join(".git").join(name));
        file.unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    };
    // Branches of ended requests: one that brought nothing, and one whose work has not landed.
    let branch = |name: &str, tree: &str| {
        let made = std::process::Command::new("git")
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "commit-tree",
                "-p",
                "HEAD",
                "-m",
                "x",
                tree,
            ])
            .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
            .current_dir(&project)
            .output()
            .unwrap();
        let commit = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        git_in(&project, &["update-ref", &format!("refs/heads/teams/{name}"), &commit]);
        commit
    };
    branch("20260101-00000001", "HEAD^{tree}");
    let empty = git_in(&project, &["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let unmerged = branch("20260101-00000002", &empty);
    commit("old", "2026-01-02T03:04:05Z");
    commit(&format!("{}-rebase", open.request_id), "2026-01-02T03:04:05Z");
    commit("young", &"@NOW +0000".replace("NOW", &unix_now().to_string()));

    house.start();
    house.logs("old history was packed", 1).await;
    assert!(!record.exists());
    assert_eq!(files(&runtime.join("history")).len(), 1);
    let mut sent = files(&attachments);
    sent.sort();
    assert_eq!(sent, ["2_named.png", "3_young.png"]);
    let left = files(&runtime.join("requests"));
    assert!(left.iter().all(|name| name.starts_with(open.request_id.as_str())), "{left:?}");
    assert_eq!(snapshots(), [format!("{}.request.md", open.request_id)]);
    assert_eq!(house.history(&ended), history);
    let kept = git_in(&project, &["for-each-ref", "--format=%(refname)", "refs/teams/lost"]);
    assert!(!kept.contains("lost/old") && kept.contains("lost/young"), "{kept}");
    assert!(kept.contains(open.request_id.as_str()), "{kept}");
    assert_eq!(git_in(&project, &["branch", "--list", "teams/20260101-*"]), "");
    let kept = git_in(
        &project,
        &["for-each-ref", "--format=%(refname) %(objectname)", "refs/teams/unmerged"],
    );
    assert_eq!(kept, format!("refs/teams/unmerged/20260101-00000002 {unmerged}"));
    let (code, text, _) = house.teams(&["why", ended.request_id.as_str()]).await;
    assert_eq!(code, 0, "{text}");

    // Words in its room go on with it.
    let further = house.say(&asked, EDIT_AGAIN).await;
    let further = house.becomes(&further, RequestStatus::Committed).await;
    let (_, runs, _) = house.teams(&["prompt", "show", further.request_id.as_str()]).await;
    let intake = runs.split(' ').next().unwrap();
    let (_, prompt, _) = house.teams(&["prompt", "show", intake]).await;
    assert!(prompt.contains(ended.request_id.as_str()), "{prompt}");
    house.close().await;
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}
