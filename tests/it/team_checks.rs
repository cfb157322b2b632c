//! Done means proven: what checks, a missing check, a moved branch and a person's own edits do to a
//! commit.

use teams::domain::lifecycle::counter;
use teams::domain::request::RequestStatus;

use crate::git_checks::{begins, runs};
use crate::support::house::{EDIT, EDITED, FILES, House, Plan, words};

/// A check that is red until the file exists.
fn until_file(path: &std::path::Path) -> String {
    format!(
        "[{{name: tests, command: [sh, test.sh]}}, {{name: weather, command: [test, -e, {}], read: [{}]}}]",
        serde_json::json!(path),
        serde_json::json!(path.parent().unwrap())
    )
}

/// What is red is red, however it was before.
fn strict() -> String {
    "gates: {red_base: refuse}\n".to_owned()
}

#[tokio::test]
async fn failing_checks_keep_the_branch_clean_until_a_person_helps() {
    let folder = tempfile::tempdir().unwrap();
    let sun = folder.path().join("sun");
    let house =
        House::open(Plan { checks: until_file(&sun), more: strict(), ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "checks_failing");
    house.quiet().await;
    assert!(house.commits().is_empty());
    assert_eq!(house.on_branch("greet.sh"), FILES[1].1);
    let room = house.messages(&asked).await;
    let is_red =
        |it: &String| it.contains("**weather** fails") || it.contains("**weather** still fails");
    let red: Vec<String> = room.iter().map(words).filter(is_red).collect();
    assert_eq!(red.len(), house.times(&blocked, "checks"), "{red:?}");
    assert!(red.len() <= 4, "{red:?}");
    let question = house.reads("general", "needs Owner").await;
    assert!(words(&question).contains("weather"), "{}", words(&question));
    let owner = &house.running.info.users["owner"].id;
    assert!(question["mentions"].as_array().unwrap().iter().any(|it| it["id"] == owner.as_str()));

    std::fs::write(&sun, "").unwrap();
    // Nothing has to be said: it was the weather.
    house.press(&house.owner, "general", "needs Owner", "Try again with a word").await;
    crate::team_verify::fill(&house, "").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

/// Nobody does what the team cannot: a person says so, with a reason that is kept, or lets it rest.
#[tokio::test]
async fn what_the_team_cannot_do_rests_or_is_skipped_for_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let sun = folder.path().join("sun");
    let house =
        House::open(Plan { checks: until_file(&sun), more: strict(), ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    let id = blocked.request_id.to_string();
    house.press(&house.owner, "general", "needs Owner", "Pause").await;
    house.reads(&asked, "Owner paused this").await;
    let (_, why, _) = house.teams(&["why", &id]).await;
    assert!(why.contains("Owner paused it") && why.contains("Write in its room"), "{why}");
    let (code, _, error) = house.teams(&["request", "skip", &id]).await;
    assert!(code == 2 && error.contains("REASON"), "{error}");
    let (code, _, error) = house.teams(&["request", "skip", &id, " "]).await;
    assert!(code == 1 && error.contains("Say why"), "{error}");
    house.press(&house.owner, "general", "needs Owner", "Skip").await;
    crate::team_verify::fill(&house, "the weather has to change first").await;
    let ended = house.becomes(&asked, RequestStatus::Cancelled).await;
    let skipped = ended.outcome.skipped.unwrap();
    assert_eq!(
        (skipped.by.as_str(), skipped.reason.as_str()),
        ("Owner", "the weather has to change first")
    );
    let last = words(&house.reads("general", "Skipped by Owner").await);
    assert!(last.contains("the weather has to change first"), "{last}");
    let (code, _, error) = house.teams(&["request", "split", &id]).await;
    assert!(code == 1 && error.contains("has ended already"), "{error}");
    assert!(house.commits().is_empty());
    house.close().await;
}

#[tokio::test]
async fn checks_that_do_not_start_are_the_operators_business() {
    let checks = "[{name: tests, command: [no-such-program-here]}]".to_owned();
    let house = House::open(Plan { checks, ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "checks_not_started");
    assert!(house.commits().is_empty());
    house.close().await;
}

#[tokio::test]
async fn a_check_without_an_end_is_run_once_more_and_charged_to_nobody() {
    let checks = "[{name: slow, command: [sleep, '100000'], timeout_seconds: 1}]".to_owned();
    let house = House::open(Plan { checks, ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "checks_inconclusive");
    assert_eq!(house.times(&blocked, "checks"), 2);
    assert_eq!(blocked.params.workflow.as_ref().unwrap().counter(counter::CHECKS).used, 0);
    house.quiet().await;
    assert!(house.commits().is_empty());
    let room: Vec<String> = house.messages(&asked).await.iter().map(words).collect();
    let told = |part: &str| room.iter().filter(|it| it.contains(part)).count();
    assert_eq!((told("**slow** came to no end"), told("It runs once more")), (2, 1), "{room:#?}");
    assert_eq!(told("It goes back to the developer"), 0);
    let question = house.reads("general", "needs Owner").await;
    assert!(words(&question).contains("timeout_seconds"), "{}", words(&question));
    house.close().await;
}

#[tokio::test]
async fn a_build_that_changes_nothing_is_no_delivery() {
    let script = "- {role: developer, times: 1, do: idle}\n";
    let house = House::open(Plan::script(script)).await;
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&request, "attempt_failed"), 1);
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    let room = house.reads(&asked, "did not finish").await;
    assert!(words(&room).contains("no file differs"), "{}", words(&room));
    house.close().await;

    let house = House::open(Plan::script("- {role: developer, do: idle}\n")).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "no_change");
    assert_eq!(house.times(&blocked, "attempt_failed"), 3);
    assert_eq!(house.times(&blocked, "checks"), 0);
    house.reads("general", "needs Owner").await;
    house.quiet().await;
    assert!(house.commits().is_empty());
    house.close().await;
}

#[tokio::test]
async fn withdrawing_ends_checks_that_would_run_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let status = tokio::process::Command::new("mkfifo").arg(&begun).status().await.unwrap();
    assert!(status.success());
    let word = format!("{}.5", 1_000_000 + std::process::id());
    let command = format!("sleep {word} & echo up > {}; wait", begun.display());
    let checks = format!(
        "[{{name: tests, command: [sh, -c, '{command}'], timeout_seconds: 80000, read: [{}]}}]",
        folder.path().display()
    );
    let house = House::open(Plan { checks, ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    let sleeps = word.clone();
    tokio::task::spawn_blocking(move || begins(&begun, &sleeps)).await.unwrap();
    let request = house.request(&asked, "it is known", |_| true).await;
    let (code, _, error) = house.teams(&["request", "cancel", request.request_id.as_str()]).await;
    assert_eq!(code, 0, "{error}");
    house.becomes(&asked, RequestStatus::Cancelled).await;
    house.quiet().await;
    assert!(!runs(&word), "the check is still there");
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
    assert!(words(&last).contains(", without checks"), "{}", words(&last));
    house.close().await;
}

#[tokio::test]
async fn without_checks_a_person_uses_those_that_the_project_shows() {
    let house = House::open(no_checks()).await;
    house.commit_by_hand("Makefile", "test:\n\tsh test.sh\n", "A Makefile");
    let asked = house.ask(EDIT).await;
    let card = words(&house.reads(&asked, "May this go to the branch?").await);
    assert!(card.contains("- `make test`"), "{card}");
    let runtime = || std::fs::read_to_string(house.root().join("team_runtime.yaml")).unwrap();
    // Who may not decide changes nothing.
    house.press(&house.guest, &asked, "May this go to the branch?", "Use these checks").await;
    house.quiet().await;
    assert!(!runtime().contains("[make, test]"));
    house.press(&house.owner, &asked, "May this go to the branch?", "Use these checks").await;
    let done = house.becomes(&asked, RequestStatus::Committed).await;
    assert!(runtime().contains("[make, test]"), "{}", runtime());
    let evidence = done.work.evidence.unwrap();
    assert!(evidence.is_green() && evidence.checks[0].name == "make test", "{evidence:?}");
    house.reads(&asked, "Checks chosen by Owner").await;
    // The next change is proven without a word.
    let next = house.ask("in greet.sh replace \"good morning\" with \"good evening\"").await;
    house.becomes(&next, RequestStatus::Committed).await;
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
    assert_eq!(kept.id().to_string(), request.work.candidate.unwrap().commit);
    house.close().await;
}

#[tokio::test]
async fn a_moved_branch_is_followed_and_checked_again() {
    let house = House::open(no_checks()).await;
    let asked = house.ask(EDIT).await;
    house.reads(&asked, "May this go to the branch?").await;
    house.commit_by_hand("NEWS.md", "news\n", "By hand");
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
    let [begun, go, seen] = ["begun", "go", "seen"].map(|name| folder.path().join(name));
    // The check waits for the test: named pipes, so that nothing polls.
    for pipe in [&begun, &go] {
        let status = tokio::process::Command::new("mkfifo").arg(pipe).status().await.unwrap();
        assert!(status.success());
    }
    let wait = format!(
        "[ -e {seen} ] && exit 0; echo x > {begun}; cat {go}",
        seen = seen.display(),
        begun = begun.display(),
        go = go.display()
    );
    let checks = format!(
        "[{{name: tests, command: [sh, -c, {}], read: [{}]}}]",
        serde_json::json!(wait),
        folder.path().display()
    );
    let house = House::open(Plan { checks, ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    tokio::task::spawn_blocking(move || std::fs::read(begun).unwrap()).await.unwrap();
    house.commit_by_hand("NEWS.md", "news\n", "By hand");
    std::fs::write(seen, "").unwrap();
    tokio::task::spawn_blocking(move || std::fs::write(go, "go\n").unwrap()).await.unwrap();
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&request, "checks"), 2);
    assert_eq!(request.work.evidence.unwrap().commit, request.outcome.commit_sha.unwrap());
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
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "person_edits");
    assert!(house.commits().is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "echo mine\n");
    std::fs::write(&file, FILES[1].1).unwrap();
    house.press(&house.owner, "general", "needs Owner", "Try again").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), EDITED);
    house.close().await;
}

/// The configuration with other checks.
fn configure(house: &House, from: &str, to: &str) {
    let path = house.root().join("team_runtime.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(&path, text.replace(from, to)).unwrap();
}

#[tokio::test]
async fn edited_checks_count_for_the_next_run_and_a_broken_edit_proves_nothing() {
    const RED: &str = "[{name: tests, command: [sh, -c, 'exit 1']}]";
    let checks = "[{name: tests, command: [no-such-program-here]}]";
    let house =
        House::open(Plan { checks: checks.to_owned(), more: strict(), ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Blocked).await;
    house.reads("general", "no-such-program-here: No such file or directory").await;
    // An edit that cannot be read is named with its line, and stands in the way.
    configure(&house, checks, "[{name: tests, comand: [sh, test.sh]}]");
    house.press(&house.owner, "general", "needs whoever runs the team", "Try again").await;
    let told = house.reads("general", "comand").await;
    assert!(words(&told).contains("team_runtime.yaml:2:"), "{}", words(&told));
    house.quiet().await;
    assert!(house.commits().is_empty());
    // One that can be read counts at once.
    configure(&house, "[{name: tests, comand: [sh, test.sh]}]", crate::support::house::CHECKS);
    let button = "Try again";
    let card = house
        .heard("general", "the second question", |message| {
            words(message).contains("comand")
                && crate::support::house::button(message, button).is_some()
        })
        .await;
    let custom_id = crate::support::house::button(&card, button);
    let body =
        serde_json::json!({"channel": "general", "message": card["id"], "custom_id": custom_id});
    house.owner.ok("POST", "/_local/click", body).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    let evidence = request.work.evidence.unwrap();
    assert!(!evidence.checks_digest.is_empty());

    // The next request meets the next edit, and its evidence says that it was made by other checks.
    configure(&house, crate::support::house::CHECKS, RED);
    let again = house.ask("in greet.sh replace \"good morning\" with \"good evening\"").await;
    let blocked = house.becomes(&again, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "checks_failing");
    assert_ne!(blocked.work.evidence.unwrap().checks_digest, evidence.checks_digest);
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn what_other_checks_have_proven_does_not_land() {
    let plan =
        Plan { more: "gates: {commit: ask, red_base: refuse}\n".to_owned(), ..Plan::default() };
    let house = House::open(plan).await;
    let asked = house.ask(EDIT).await;
    house.reads(&asked, "May this go to the branch?").await;
    configure(
        &house,
        crate::support::house::CHECKS,
        "[{name: stricter, command: [sh, -c, 'echo stricter; exit 1']}]",
    );
    house.press(&house.owner, &asked, "May this go to the branch?", "Approve").await;
    house.reads(&asked, "The checks were configured anew").await;
    house.reads(&asked, "**stricter** fails").await;
    house.becomes(&asked, RequestStatus::Blocked).await;
    house.quiet().await;
    assert!(house.commits().is_empty());
    assert_eq!(house.on_branch("greet.sh"), FILES[1].1);
    house.close().await;
}

#[tokio::test]
async fn without_isolation_checks_wait_for_a_person_to_allow_them() {
    let mut house = House::built(Plan::default()).await;
    // A machine on which bubblewrap does not work.
    let programs = house.beside("programs");
    std::fs::create_dir_all(&programs).unwrap();
    std::fs::write(programs.join("bwrap"), "#!/bin/sh\necho 'no namespaces here' >&2\nexit 1\n")
        .unwrap();
    crate::git_repo::set_mode(&programs.join("bwrap"), 0o755);
    house.finds_programs_in(programs);
    configure(&house, "allow_unisolated_checks: true", "allow_unisolated_checks: false");
    house.start();
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "checks_not_started");
    let told = house.reads("general", "no namespaces here").await;
    assert!(words(&told).contains("allow_unisolated_checks: true"), "{}", words(&told));
    assert!(house.commits().is_empty());
    configure(&house, "allow_unisolated_checks: false", "allow_unisolated_checks: true");
    house.press(&house.owner, "general", "needs whoever runs the team", "Try again").await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert!(!request.work.evidence.unwrap().isolation.is_isolated());
    house.reads(&asked, "not isolated from this machine").await;
    house.reads("general", "all checks green (not isolated)").await;
    house.close().await;
}

#[tokio::test]
async fn a_check_that_forks_away_and_writes_outside_leaves_nothing_of_it() {
    let outside = tempfile::tempdir().unwrap();
    let mark = outside.path().join("mark");
    // A number that nobody else sleeps.
    let naps = format!("86399.{}", std::process::id());
    let script = serde_json::json!(format!(
        "setsid sleep {naps} & (sleep {naps} &); echo x > '{}' || true; echo 1 passed",
        mark.display()
    ));
    let checks = format!("[{{name: forks, command: [bash, -c, {script}]}}]");
    let house = House::open(Plan { checks, ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert!(!mark.exists());
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let commands = processes.filter_map(|path| std::fs::read(path.join("cmdline")).ok());
    let left = commands.filter(|it| it.windows(naps.len()).any(|at| at == naps.as_bytes()));
    assert_eq!(left.filter(|it| it.starts_with(b"sleep")).count(), 0);
    house.close().await;
}
