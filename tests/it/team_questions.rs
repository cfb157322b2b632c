//! What the planner asks before anything is built, as people see and answer it.

use serde_json::{Value, json};
use teams::domain::request::{Request, RequestStatus};

use crate::support::house::{House, Plan, words};
use crate::team_landing::prompts;

const FEATURE: &str = "Add a new command: create hello.sh with \"echo hello\"";
const ASKS: &str = "- {role: planner, times: 1, do: ask, questions: [\
    {question: \"Which form of address?\", options: [polite, casual], assumption: polite}, \
    {question: \"Where does it stand?\", options: [beside it, instead of it], assumption: beside it}]}\n";

fn asking(more: &str) -> Plan {
    Plan { more: more.to_owned(), ..Plan::script(ASKS) }
}

/// The roles that reported, in their order.
fn roles(house: &House, request: &Request) -> Vec<String> {
    let reports = house.history(request).into_iter();
    reports.filter(|event| event.kind.as_str() == "role_report").map(|event| event.actor).collect()
}

fn decisions(request: &Request) -> Vec<String> {
    request.work.decisions.iter().filter_map(|decision| decision.line()).collect()
}

async fn is_asked(house: &House) -> (Request, String, Value) {
    let asked = house.ask(FEATURE).await;
    let request = house.becomes(&asked, RequestStatus::Blocked).await;
    let room = request.conversation.room.clone().and_then(|room| room.thread_id).unwrap();
    let card = house.reads(&room.to_string(), "Before this is built, the planner asks").await;
    (request, asked, card)
}

/// Chooses in a list of the card.
async fn choose(house: &House, request: &Request, card: &Value, number: usize, value: &str) {
    let room = request.conversation.room.clone().and_then(|room| room.thread_id).unwrap();
    let click = json!({
        "channel": room.to_string(), "message": card["id"],
        "custom_id": format!("t:choose:{}.{number}:0", request.request_id), "values": [value],
    });
    house.owner.ok("POST", "/_local/click", click).await;
}

#[tokio::test]
async fn a_card_asks_with_lists_and_another_answer_is_planned_anew() {
    let mut house = House::open(asking("")).await;
    let (request, asked, card) = is_asked(&house).await;
    let rows = card["components"].as_array().unwrap();
    let lists: Vec<&Value> =
        rows.iter().map(|row| &row["components"][0]).filter(|it| it["type"] == 3).collect();
    assert_eq!((rows.len(), lists.len()), (3, 2), "{card:#}");
    let labels = lists[0]["options"].as_array().unwrap().iter().map(|it| it["label"].clone());
    assert_eq!(labels.collect::<Vec<_>>(), ["polite", "casual", "You decide"]);
    let text = words(&card);
    assert!(text.contains("**D-2** Where does it stand?") && text.contains("casual"), "{text}");
    choose(&house, &request, &card, 1, "2").await;
    house
        .request(&asked, "an answer is kept", |it| {
            it.work.decisions.first().is_some_and(|one| !one.is_open())
        })
        .await;
    // Nothing is lost with the process, and the terminal gives the other answer.
    house.stop().await;
    house.start();
    let id = request.request_id.to_string();
    let (_, why, _) = house.teams(&["why", &id]).await;
    assert!(why.contains("The planner asks what the request leaves open"), "{why}");
    house
        .until("the team is up again, and there is no such option", async |house: &House| {
            let (code, _, error) = house.teams(&["answer", &id, "2=9"]).await;
            (code == 1 && error.contains("D-2 has 2 options")).then_some(())
        })
        .await;
    let (code, said, error) = house.teams(&["answer", &id, "2=you-decide"]).await;
    assert_eq!(code, 0, "{said}{error}");
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(
        decisions(&request),
        [
            "Which form of address? casual (decided by Owner)",
            "Where does it stand? beside it (assumed)"
        ]
    );
    let planners = roles(&house, &request).iter().filter(|role| *role == "planner").count();
    assert_eq!(planners, 2, "{:?}", roles(&house, &request));
    let room = request.conversation.room.clone().and_then(|room| room.thread_id).unwrap();
    let told = house.reads(&room.to_string(), "Decided before it is built").await;
    assert!(words(&told).contains("**casual** (Owner)"), "{}", words(&told));
    house
        .until("the card asks nothing any more", async |house: &House| {
            let all = house.messages(&room.to_string()).await;
            let card = all.into_iter().find(|it| it["id"] == card["id"])?;
            card["components"].as_array()?.is_empty().then_some(())
        })
        .await;
    // What was decided stands in the prompts of those after it.
    let built = prompts(&house, &request, "developer").await.concat();
    assert!(built.contains("D-1: Which form of address? casual (decided by Owner)"), "{built}");
    let planned = prompts(&house, &request, "planner").await;
    assert!(planned[0].contains("ask it in `questions`"), "{}", planned[0]);
    assert!(!planned[1].contains("ask it in `questions`"), "{}", planned[1]);
    house.close().await;
}

#[tokio::test]
async fn you_decide_takes_the_plan_as_it_is_and_assume_asks_nobody() {
    let house = House::open(asking("")).await;
    let (request, asked, card) = is_asked(&house).await;
    let room = request.conversation.room.clone().and_then(|room| room.thread_id).unwrap();
    choose(&house, &request, &card, 1, "1").await;
    house.press(&house.owner, &room.to_string(), "the planner asks", "You decide").await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    let planners = roles(&house, &request).iter().filter(|role| *role == "planner").count();
    assert_eq!(planners, 1, "its plan stands");
    house.close().await;

    let house = House::open(asking("planning: {mode: assume}\n")).await;
    let asked = house.ask(FEATURE).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(
        decisions(&request),
        ["Which form of address? polite (assumed)", "Where does it stand? beside it (assumed)"]
    );
    let room = request.conversation.room.clone().and_then(|room| room.thread_id).unwrap();
    house.reads(&room.to_string(), "**polite** (assumed)").await;
    house.close().await;
}
