//! Done means proven: what checks, a missing check, a moved branch and a person's own edits do to a
//! commit.

use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, EDITED, FILES, House, Plan, words};

/// A check that is red until the file exists.
fn until_file(path: &std::path::Path) -> String {
    format!(
        "[{{name: tests, command: [sh, test.sh]}}, {{name: weather, command: [test, -e, {}]}}]",
        serde_json::to_string(path.to_str().unwrap()).unwrap()
    )
}

#[tokio::test]
async fn failing_checks_keep_the_branch_clean_until_a_person_helps() {
    let folder = tempfile::tempdir().unwrap();
    let sun = folder.path().join("sun");
    let house = House::open(Plan { checks: until_file(&sun), ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code, "checks_failing");
    house.quiet().await;
    assert!(house.commits().is_empty());
    assert_eq!(house.on_branch("greet.sh"), FILES[1].1);
    let room = house.messages(&asked).await;
    let red: Vec<String> =
        room.iter().map(words).filter(|it| it.contains("**weather** fails")).collect();
    assert_eq!(red.len(), house.times(&blocked, "checks"), "{red:?}");
    assert!(red.len() <= 4, "{red:?}");
    let question = house.reads("general", "needs Owner").await;
    assert!(words(&question).contains("weather"), "{}", words(&question));
    let owner = &house.running.info.users["owner"].id;
    assert!(question["mentions"].as_array().unwrap().iter().any(|it| it["id"] == owner.as_str()));

    std::fs::write(&sun, "").unwrap();
    house.press(&house.owner, "general", "needs Owner", "Try again").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn checks_that_do_not_start_are_the_operators_business() {
    let checks = "[{name: tests, command: [no-such-program-here]}]".to_owned();
    let house = House::open(Plan { checks, ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code, "checks_not_started");
    assert!(house.commits().is_empty());
    house.close().await;
}

#[tokio::test]
async fn withdrawing_ends_checks_that_would_run_for_ever() {
    let command = "sleep 1000000 & echo $! > ../../../operations/check.pid; wait";
    let checks =
        format!("[{{name: tests, command: [sh, -c, '{command}'], timeout_seconds: 80000}}]");
    let house = House::open(Plan { checks, ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    let sleeper = house.pid("check.pid").await;
    let request = house.request(&asked, "it is known", |_| true).await;
    let (code, _, error) = house.teams(&["request", "cancel", request.request_id.as_str()]).await;
    assert_eq!(code, 0, "{error}");
    house.becomes(&asked, RequestStatus::Cancelled).await;
    house.quiet().await;
    assert!(!sleeper.exists(), "the check is still there");
    assert!(house.commits().is_empty());
    house.close().await;
}

fn no_checks() -> Plan {
    Plan { checks: "[]".to_owned(), ..Plan::default() }
}

#[tokio::test]
async fn without_checks_a_person_approves() {
    let house = House::open(no_checks()).await;
    let asked = house.ask(EDIT).await;
    let question = "May this go to the branch?";
    house.press(&house.guest, &asked, question, "Approve").await;
    house
        .until("the guest is told no", async |house: &House| {
            let told = house.told("guest");
            told.iter()
                .any(|it| words(&it["d"]).contains("Only people with the right"))
                .then_some(())
        })
        .await;
    assert!(house.commits().is_empty());
    house.press(&house.owner, &asked, question, "Approve").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    let last = house.reads("general", "**Done.**").await;
    assert!(words(&last).contains("approved without checks"), "{}", words(&last));
    house.close().await;
}

#[tokio::test]
async fn without_checks_a_person_turns_down() {
    let house = House::open(no_checks()).await;
    let asked = house.ask(EDIT).await;
    house.press(&house.owner, &asked, "May this go to the branch?", "Turn down").await;
    let request = house.becomes(&asked, RequestStatus::Completed).await;
    house.reads("general", "**Kept aside.**").await;
    house.quiet().await;
    assert!(house.commits().is_empty());
    let repository = git2::Repository::open(house.project()).unwrap();
    let name = format!("refs/heads/teams/{}", request.request_id);
    let kept = repository.find_reference(&name).unwrap().peel_to_commit().unwrap();
    assert_eq!(kept.id().to_string(), request.candidate.unwrap().commit);
    house.close().await;
}

/// Commits a file to the branch as a person at the project would.
fn commit_by_hand(house: &House, path: &str, text: &str) {
    std::fs::write(house.project().join(path), text).unwrap();
    let repository = git2::Repository::open(house.project()).unwrap();
    let mut index = repository.index().unwrap();
    index.add_path(std::path::Path::new(path)).unwrap();
    index.write().unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let parent = repository.head().unwrap().peel_to_commit().unwrap();
    let me = git2::Signature::now("Mina", "mina@example.org").unwrap();
    repository.commit(Some("HEAD"), &me, &me, "By hand", &tree, &[&parent]).unwrap();
}

#[tokio::test]
async fn a_moved_branch_is_followed_and_checked_again() {
    let house = House::open(no_checks()).await;
    let asked = house.ask(EDIT).await;
    house.reads(&asked, "May this go to the branch?").await;
    commit_by_hand(&house, "NEWS.md", "news\n");
    house.press(&house.owner, &asked, "May this go to the branch?", "Approve").await;
    // It stands on other ground now, so what was approved is not what is there: asked again.
    house.reads(&asked, "The branch moved meanwhile").await;
    let again = house
        .until("the second question", async |house: &House| {
            let room = house.messages(&asked).await;
            let mut asks =
                room.into_iter().filter(|it| words(it).contains("May this go to the branch?"));
            asks.next()?;
            asks.next()
        })
        .await;
    let custom_id = crate::support::house::button(&again, "Approve").unwrap();
    let body =
        serde_json::json!({"channel": asked, "message": again["id"], "custom_id": custom_id});
    house.owner.ok("POST", "/_local/click", body).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("NEWS.md"), "news\n");
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    assert_eq!(house.commits().len(), 2);
    house.close().await;
}

#[tokio::test]
async fn a_branch_that_moves_under_the_checks_is_proven_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (begun, go) = (folder.path().join("begun"), folder.path().join("go"));
    // The check waits for the test: named pipes, so that nothing polls.
    for pipe in [&begun, &go] {
        let status = tokio::process::Command::new("mkfifo").arg(pipe).status().await.unwrap();
        assert!(status.success());
    }
    let wait = format!(
        "[ -e {seen} ] && exit 0; : > {seen}; echo x > {begun}; cat {go}",
        seen = folder.path().join("seen").display(),
        begun = begun.display(),
        go = go.display()
    );
    let checks = format!("[{{name: tests, command: [sh, -c, {}]}}]", serde_json::json!(wait));
    let house = House::open(Plan { checks, ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    tokio::task::spawn_blocking(move || std::fs::read(begun).unwrap()).await.unwrap();
    commit_by_hand(&house, "NEWS.md", "news\n");
    tokio::task::spawn_blocking(move || std::fs::write(go, "go\n").unwrap()).await.unwrap();
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&request, "checks"), 2);
    assert_eq!(request.evidence.unwrap().commit, request.commit_sha.unwrap());
    assert_eq!(house.on_branch("NEWS.md"), "news\n");
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn a_persons_own_edits_are_never_overwritten() {
    let house = House::open(Plan::default()).await;
    let file = house.project().join("greet.sh");
    std::fs::write(&file, "echo mine\n").unwrap();
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code, "person_edits");
    assert!(house.commits().is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "echo mine\n");
    std::fs::write(&file, FILES[1].1).unwrap();
    house.press(&house.owner, "general", "needs Owner", "Try again").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), EDITED);
    house.close().await;
}
