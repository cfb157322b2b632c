//! Words of people to a request under way: from Discord through the team to the agent at work.

use serde_json::{Value, json};
use teams::domain::lifecycle::StepName;
use teams::domain::request::{Request, RequestStatus};
use teams::domain::role::Role;

use crate::support::house::{EDIT, House, Plan, words};

/// The developer waits for words, twice; in between the review sends the work back.
const SCRIPT: &str = "\
- {role: developer, step: developer_build, do: listen, text: Porter}
- {role: architect, step: architect_review, times: 1, do: revise}
- {role: developer, step: developer_revision, do: listen, text: evening}
";

/// Waits until the developer is at work on a step, with its prompt in its hands.
async fn at_work(house: &House, asked: &str, step: StepName) -> Request {
    let runs = if step == StepName::of("developer_build") { 1 } else { 2 };
    house.logs("an agent begins role=developer", runs).await;
    house
        .request(asked, "the developer is at work", |request| {
            let at = request.params.workflow.as_ref().map(|state| state.step);
            let busy = request.work.active_run.is_some();
            busy && request.route.current_role == Some(Role::Developer) && at == Some(step)
        })
        .await
}

/// Writes in a room and waits until the team has shown that it saw it.
async fn said(house: &House, room: &str, text: &str) -> String {
    let id = house.say(room, text).await;
    house
        .heard(room, "it is acknowledged", |message| {
            let reactions = message["reactions"].as_array();
            let eyes = |it: &Value| it["emoji"]["name"] == "👀";
            message["id"] == id.as_str() && reactions.is_some_and(|all| all.iter().any(eyes))
        })
        .await;
    id
}

/// Steers by the command, and waits for the answer to it.
async fn steer(house: &House, request: &Request, text: &str) {
    let options = json!([
        {"name": "request", "type": 3, "value": request.request_id.as_str()},
        {"name": "text", "type": 3, "value": text},
    ]);
    let options = json!([{"name": "steer", "type": 1, "options": options}]);
    let count = || {
        let told = house.told("owner").into_iter();
        told.filter(|event| words(&event["d"]).starts_with("Noted.")).count()
    };
    let before = count();
    let body = json!({"channel": "general", "command": "request", "options": options});
    house.owner.ok("POST", "/_local/slash", body).await;
    house
        .until("the command is answered", async |_: &House| (count() > before).then_some(()))
        .await;
}

#[tokio::test]
async fn words_from_discord_reach_the_agent_at_work_or_wait_are_changed_and_withdrawn() {
    // Its words change what the check runs, which would wait for a person.
    let more = "gates: {guarded_commit: allow}\n".to_owned();
    let house = House::open(Plan { more, ..Plan::script(SCRIPT) }).await;
    let asked = house.ask(EDIT).await;
    let request = at_work(&house, &asked, StepName::of("developer_build")).await;
    let room = asked.as_str();

    // These wait for the next run: one is worded anew meanwhile, one is withdrawn.
    let waits = said(&house, room, "later: in test.sh replace \"1 failed\" with \"many\"").await;
    let gone = said(&house, room, "later: in test.sh replace \"exit 1\" with \"exit 7\"").await;
    let content = "later: in test.sh replace \"1 failed\" with \"one failed\"";
    let body = json!({"channel": room, "message": waits, "content": content});
    house.owner.ok("POST", "/_local/edit", body).await;
    house.owner.ok("POST", "/_local/delete", json!({"channel": room, "message": gone})).await;
    house
        .request(&asked, "it waits in its new wording, and alone", |request| {
            let bodies: Vec<&str> =
                request.params.followups.iter().map(|it| it.body.as_str()).collect();
            bodies == [content]
        })
        .await;
    // These go to the agent at once; by the command they may wait as well.
    steer(&house, &request, "wait: in README.md replace \"Porter\" with \"Porter, Doorman\"").await;
    let heard =
        said(&house, room, "in README.md replace \"Greeter\" with \"Greeter, Porter\"").await;

    at_work(&house, &asked, StepName::of("developer_revision")).await;
    let steered = |request: &Request| {
        let events = house.history(request).into_iter();
        let events = events.filter(|event| event.kind.as_str() == "steered");
        events.map(|event| event.payload).collect::<Vec<Value>>()
    };
    // The agent took the one message, and it alone.
    assert_eq!(steered(&request), [json!([heard])]);
    steer(
        &house,
        &request,
        "in greet.sh replace \"good morning\" with \"good morning, good evening\"",
    )
    .await;

    house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    assert_eq!(steered(&request).len(), 2, "{:?}", steered(&request));
    assert_eq!(house.on_branch("greet.sh"), "echo good morning, good evening\n");
    assert_eq!(house.on_branch("README.md"), "# Greeter, Porter, Doorman\n");
    let test = house.on_branch("test.sh");
    assert!(test.contains("one failed") && test.contains("exit 1"), "{test}");
    house.close().await;
}

/// The developer waits for the words to come.
const EDITED_UNDER_WAY: &str =
    "- {role: developer, step: developer_build, do: listen, text: evening}\n";

#[tokio::test]
async fn an_edited_message_is_built_as_it_reads_now_and_once() {
    let house = House::open(Plan::script(EDITED_UNDER_WAY)).await;
    let asked = house.ask(EDIT).await;
    let request = at_work(&house, &asked, StepName::of("developer_build")).await;
    let content = "in greet.sh replace \"hello\" with \"good evening\"";
    let body = json!({
        "channel": "general", "message": asked, "content": format!("{} {content}", house.mention()),
    });
    house.owner.ok("POST", "/_local/edit", body).await;
    let ended = house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    assert_eq!(house.on_branch("greet.sh"), "echo good evening\n");
    assert_eq!((ended.body.as_str(), ended.params.followups.len()), (content, 0));
    house.reads(&asked, "The new words count instead of the old ones").await;

    // Whoever works later is told of both, and which counts.
    let (code, text, error) =
        house.teams(&["prompt", "show", request.request_id.as_str(), "--json"]).await;
    assert_eq!(code, 0, "{text}\n{error}");
    let runs: Vec<Value> = serde_json::from_str(&text).unwrap();
    let told = |role: &str| {
        let run = runs.iter().find(|run| run["prompt"]["role"] == role).unwrap();
        run["sent"][0]["text"].as_str().unwrap().to_owned()
    };
    let (before, after) = (told("developer"), told("qa"));
    assert!(!before.contains("# Edited since"), "{before}");
    let (now, earlier) = after.split_once("# Edited since").expect("that it was edited");
    assert!(now.contains(content) && !now.contains(EDIT), "{now}");
    assert!(earlier.contains(EDIT), "{earlier}");
    house.close().await;
}

#[tokio::test]
async fn who_deletes_the_message_of_work_under_way_is_asked_whether_to_withdraw_it() {
    let house = House::open(Plan::script(EDITED_UNDER_WAY)).await;
    let asked = house.ask(EDIT).await;
    at_work(&house, &asked, StepName::of("developer_build")).await;
    let id = house.request(&asked, "it is under way", |_| true).await.request_id;
    house.owner.ok("POST", "/_local/delete", json!({"channel": "general", "message": asked})).await;
    house.press(&house.owner, "general", "was deleted", "Withdraw").await;
    house
        .until("it is withdrawn", async |house: &House| {
            let found = house.requests().into_iter().find(|it| it.request_id == id)?;
            (found.status == RequestStatus::Cancelled).then_some(())
        })
        .await;
    assert!(house.commits().is_empty());
    house.close().await;
}
