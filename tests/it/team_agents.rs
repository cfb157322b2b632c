//! What agents do wrong is bounded, told in the room, and ends at a person.

use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, EDITED, FILES, House, Plan, words};

/// An agent that always misbehaves: as many attempts as the limit says, then a person is asked.
async fn ends_at_a_person(act: &str, more: &str, kind: &str) {
    let script = format!("- {{role: developer, do: {act}}}\n");
    let more = format!("limits: {{step_attempts: 2{more}}}\n");
    let house = House::open(Plan { more, ..Plan::script(&script) }).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code, "step_failed");
    let history = house.history(&blocked);
    let failures: Vec<_> = history.iter().filter(|it| it.kind == "attempt_failed").collect();
    assert_eq!(failures.len(), 2, "{failures:?}");
    for failure in failures {
        assert_eq!(failure.payload["kind"], kind, "{failure:?}");
    }
    house.quiet().await;
    let room = house.messages(&asked).await;
    let told = room.iter().filter(|it| words(it).contains("did not finish")).count();
    assert_eq!(told, 2);
    house.reads("general", "needs Owner").await;
    assert!(house.commits().is_empty());
    assert_eq!(house.on_branch("greet.sh"), FILES[1].1);
    house.close().await;
}

#[tokio::test]
async fn an_agent_that_crashes() {
    ends_at_a_person("crash", "", "crash").await;
}

#[tokio::test]
async fn an_agent_that_hangs() {
    ends_at_a_person("hang", ", idle_seconds: 1", "stuck").await;
}

#[tokio::test]
async fn an_agent_that_returns_rubbish() {
    ends_at_a_person("rubbish", "", "no_terminal").await;
}

#[tokio::test]
async fn an_agent_that_returns_prose() {
    ends_at_a_person("prose", "", "contract").await;
}

#[tokio::test]
async fn an_agent_that_floods() {
    ends_at_a_person("flood", "", "output_cap").await;
}

#[tokio::test]
async fn an_agent_that_crashes_once_is_tried_again() {
    let house = House::open(Plan::script("- {role: developer, times: 1, do: crash}\n")).await;
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&request, "attempt_failed"), 1);
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn a_role_that_may_not_write_and_does_is_refused_and_cleaned_up_after() {
    let script = "- {role: architect, step: architect_review, times: 1, do: write_outside}\n";
    // As it would be where nothing confines it.
    let agents = "{default: rehearsal, rehearsal: {script: script.yaml, sandbox: off}}".to_owned();
    let house = House::open(Plan { agents, ..Plan::script(script) }).await;
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    let history = house.history(&request);
    let failure = history.iter().find(|it| it.kind == "attempt_failed").unwrap();
    assert_eq!(failure.payload["kind"], "wrote_files");
    house.reads(&asked, "rehearsal-outside.txt").await;
    assert_eq!(request.candidate.unwrap().paths.len(), 1);
    let repository = git2::Repository::open(house.project()).unwrap();
    let tree = repository.revparse_single("main^{tree}").unwrap().peel_to_tree().unwrap();
    assert!(tree.get_name("rehearsal-outside.txt").is_none());
    house.close().await;
}

#[tokio::test]
async fn a_rehearsal_says_what_it_cannot_do() {
    let house = House::open(Plan::default()).await;
    let asked = house.ask("make the greeting friendlier").await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code, "needs_real_agent");
    house.reads("general", "needs Owner").await;
    // Words in the room, or an answer to the question, go on with it.
    house.say(&asked, EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn a_role_that_stopped_tries_again_at_a_press() {
    let script = "- {role: developer, times: 1, do: block}\n- {role: qa, times: 1, do: block}\n";
    let house = House::open(Plan::script(script)).await;
    let asked = house.ask(EDIT).await;
    for role in ["developer", "qa"] {
        let stopped = |request: &teams::domain::request::Request| {
            request.status == RequestStatus::Blocked
                && request.visited_roles.last().is_some_and(|last| last.as_str() == role)
        };
        let blocked = house.request(&asked, role, stopped).await;
        assert_eq!(blocked.blocked.as_ref().unwrap().code, "role_blocked");
        let (code, text, _) = house.teams(&["request", "retry", blocked.request_id.as_str()]).await;
        assert_eq!(code, 0, "{text}");
    }
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}
