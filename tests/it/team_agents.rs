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
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "step_failed");
    let history = house.history(&blocked);
    let failures: Vec<_> =
        history.iter().filter(|it| it.kind.as_str() == "attempt_failed").collect();
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
async fn what_a_model_said_instead_of_a_result_is_in_the_room_in_why_and_in_the_history() {
    let script = "- {role: developer, do: prose}\n";
    let more = "limits: {step_attempts: 1}\n".to_owned();
    let house = House::open(Plan { more, ..Plan::script(script) }).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    house.quiet().await;
    let said = "All done, everything works and all tests pass!";
    let room: Vec<String> = house.messages(&asked).await.iter().map(words).collect();
    let told = room.iter().find(|it| it.contains("did not finish")).unwrap();
    assert!(told.contains("answered in prose") && told.contains(said), "{told}");
    let (_, why, _) = house.teams(&["why", blocked.request_id.as_str()]).await;
    assert!(why.contains("All done, everything works"), "{why}");
    let history = house.history(&blocked);
    let failure = history.iter().find(|it| it.kind.as_str() == "attempt_failed").unwrap();
    assert_eq!(failure.payload["answer"]["fault"], "prose", "{failure:?}");
    assert_eq!(failure.payload["answer"]["beginning"], said, "{failure:?}");
    house.close().await;
}

/// A Codex whose model's server refuses: it tries again twice, waits for a word, and gives up.
const REFUSED: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo codex-cli 0.0.1; exit; fi
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"error","message":"stream error: 429 Too Many Requests; retrying 1/5"}'
echo '{"type":"error","message":"stream error: 429 Too Many Requests; retrying 2/5"}'
read -r _ < "$(dirname "$0")/go-on"
echo '{"type":"turn.failed","error":{"message":"Rate limit reached for gpt-5 on tokens per min (TPM). Please try again in 1s. See https://platform.openai.com/account/billing"}}'
"#;

#[tokio::test]
async fn a_rate_limit_is_told_while_it_is_met_tried_again_and_then_a_person_is_asked() {
    let mut house = House::built(Plan {
        more: "limits: {rate_limit_retries: 1, rate_limit_wait_seconds: 60}\n".to_owned(),
        ..Plan::default()
    })
    .await;
    let (agent, go_on) = (house.beside("codex"), house.beside("go-on"));
    std::fs::write(&agent, REFUSED).unwrap();
    crate::git_repo::set_mode(&agent, 0o755);
    rustix::fs::mkfifoat(rustix::fs::CWD, &go_on, 0o600.into()).unwrap();
    let agent = agent.to_str().unwrap();
    house.agents(&format!("{{default: codex, codex: {{binary: {agent}, sandbox: off}}}}"));
    house.start();
    let asked = house.ask(EDIT).await;
    // While the agent still tries by itself.
    house.reads(&asked, "tries again by itself (try 1 of 1)").await;
    let let_go = || {
        let go_on = go_on.clone();
        tokio::task::spawn_blocking(move || std::fs::write(go_on, "\n").unwrap())
    };
    let_go().await.unwrap();
    house.reads(&asked, "goes on").await;
    let_go().await.unwrap();
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "rate_limited");
    house.quiet().await;
    let room: Vec<String> = house.messages(&asked).await.iter().map(words).collect();
    assert!(!room.iter().any(|it| it.contains("used up")), "{room:#?}");
    house.close().await;
}

#[tokio::test]
async fn a_server_that_asks_for_longer_than_is_waited_is_a_persons_business_at_once() {
    let mut house = House::built(Plan {
        more: "limits: {rate_limit_wait_seconds: 60}\n".to_owned(),
        ..Plan::default()
    })
    .await;
    let agent = house.beside("codex");
    let refused = REFUSED.replace("try again in 1s", "try again in 90s");
    let refused: String =
        refused.lines().filter(|it| !it.contains("go-on")).map(|it| format!("{it}\n")).collect();
    std::fs::write(&agent, refused).unwrap();
    crate::git_repo::set_mode(&agent, 0o755);
    let agent = agent.to_str().unwrap();
    house.agents(&format!("{{default: codex, codex: {{binary: {agent}, sandbox: off}}}}"));
    house.start();
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "rate_limited");
    house.close().await;
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
    let failure = history.iter().find(|it| it.kind.as_str() == "attempt_failed").unwrap();
    assert_eq!(failure.payload["kind"], "wrote_files");
    house.reads(&asked, "rehearsal-outside.txt").await;
    assert_eq!(request.work.candidate.unwrap().paths.len(), 1);
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
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "needs_real_agent");
    house.reads("general", "needs whoever runs the team").await;
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
                && request.route.visited_roles.last().is_some_and(|last| last.as_str() == role)
        };
        let blocked = house.request(&asked, role, stopped).await;
        assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "role_blocked");
        let (code, text, _) = house.teams(&["request", "retry", blocked.request_id.as_str()]).await;
        assert_eq!(code, 0, "{text}");
    }
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}
