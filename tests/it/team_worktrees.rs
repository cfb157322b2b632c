//! What a team holds of a repository while it works, waits and when it has ended.

use serde_json::json;
use teams::domain::request::RequestStatus;

use crate::git_repo::git_in;
use crate::support::house::{EDIT, EDITED, House, Plan, words};

const EDIT_AGAIN: &str = "in greet.sh replace \"good morning\" with \"good night\"";

fn names(folder: &std::path::Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_blocked_request_gives_its_worktree_back_and_goes_on_with_what_it_held() {
    // The developer's work fails QA for good: there is a worktree with a commit when the request blocks.
    let script = "- {role: qa, times: 1, do: block}\n";
    let mut house = House::open(Plan::script(script)).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    house.logs("its worktree was put away", 1).await;
    let runtime = house.root().join(".teams_runtime");
    assert_eq!(names(&runtime.join("worktrees")), Vec::<String>::new());
    assert!(names(&runtime.join("trees")).len() <= 3);
    let project = house.project();
    let kept = git_in(&project, &["for-each-ref", "--format=%(refname)", "refs/teams/kept"]);
    assert!(kept.ends_with(blocked.request_id.as_str()), "{kept}");
    assert_eq!(git_in(&project, &["worktree", "list"]).lines().count(), 1);
    // Also after another start.
    house.stop().await;
    house.start();
    house.say(&asked, "go on, it is fine").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    assert_eq!(git_in(&project, &["for-each-ref", "refs/teams"]), "");
    assert_eq!(names(&runtime.join("worktrees")), Vec::<String>::new());
    house.close().await;
}

#[tokio::test]
async fn another_branch_in_the_checkout_changes_nothing_and_is_told_once() {
    let house = House::open(Plan::default()).await;
    let project = house.project();
    git_in(&project, &["checkout", "-q", "-b", "persons-own"]);
    let before = std::fs::read_to_string(project.join("greet.sh")).unwrap();
    let mut told = Vec::new();
    for edit in [EDIT, EDIT_AGAIN] {
        let asked = house.ask(edit).await;
        house.becomes(&asked, RequestStatus::Committed).await;
        house.quiet().await;
        let general = house.messages("general").await;
        let answers = general.iter().filter(|it| it["message_reference"]["message_id"] == asked);
        told.push(answers.filter(|it| words(it).contains("persons-own")).count());
    }
    assert_eq!(told, [1, 0]);
    assert_eq!(house.commits().len(), 2);
    // Nor does no branch at all.
    git_in(&project, &["checkout", "-q", "--detach"]);
    let asked = house.ask("in greet.sh replace \"good night\" with \"good evening\"").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    let commit = git_in(&project, &["rev-parse", "HEAD"]);
    house.reads("general", &format!("`{}` checked out", &commit[..10])).await;
    assert_eq!(std::fs::read_to_string(project.join("greet.sh")).unwrap(), before);
    assert_eq!(git_in(&project, &["status", "--porcelain"]), "");
    house.close().await;
}

#[tokio::test]
async fn commits_carry_the_configured_trailers_and_settings_say_that_hooks_are_not_run() {
    let house = House::open(Plan {
        more: "commits: {trailers: {Reviewed-by: Nobody <n@example.org>}}\n".to_owned(),
        ..Plan::default()
    })
    .await;
    let hook = house.project().join(".git/hooks/post-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\ntouch ran\n").unwrap();
    crate::git_repo::set_mode(&hook, 0o755);
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    let message = git_in(&house.project(), &["log", "-1", "--format=%B", "main"]);
    let end = format!("Reviewed-by: Nobody <n@example.org>\nRequest: {}", request.request_id);
    assert!(message.ends_with(&end), "{message}");
    assert!(!message.contains("ook"), "{message}");
    assert!(!house.project().join("ran").exists());
    let (_, settings, _) = house.teams(&["settings"]).await;
    assert!(settings.contains("Hooks of the project are not run"), "{settings}");
    house.close().await;
}

#[tokio::test]
async fn a_change_in_a_submodule_is_put_back_and_the_developer_is_told_why() {
    let (library, _) = crate::git_repo::Repo::with_submodules();
    let edits = json!({"role": "developer", "contains": "greet.sh", "times": 1, "do": "run", "commands": [
        ["bash", "-c", "cat vendor/lib/vendor/lib/lib.c && echo mine > vendor/lib/vendor/lib/lib.c"]
    ]});
    let mut house = House::built(Plan::script(&json!([edits]).to_string())).await;
    let from = library.path.to_str().unwrap();
    let fetch = ["-c", "protocol.file.allow=always", "submodule", "-q"];
    git_in(&house.project(), &[&fetch[..], &["add", from, "vendor/lib"]].concat());
    git_in(&house.project(), &[&fetch[..], &["update", "--init", "--recursive"]].concat());
    git_in(&house.project(), &["commit", "-qm", "A library"]);
    house.start();
    let asked = house.ask(EDIT).await;
    let done = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&done, "attempt_failed"), 1);
    let room = house.transcript().await;
    let why = "vendor/lib/vendor/lib/lib.c lies in the submodule vendor/lib/vendor/lib";
    assert!(room.contains(why), "{room}");
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}
