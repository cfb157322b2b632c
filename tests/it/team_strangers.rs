//! People who may not ask: they delay nobody, see no form and no id, and are told so once an hour.

use serde_json::{Value, json};

use crate::support::house::{House, Plan, words};

/// The reaction by which somebody is refused.
const REFUSED: &str = "🚫";

/// The bots' messages in #general, oldest first, with the message that each answers.
async fn answers(house: &House) -> Vec<(String, String)> {
    let messages = house.messages("general").await;
    let ours = messages.iter().filter(|it| it["author"]["bot"] == true);
    ours.map(|it| {
        let to = it["message_reference"]["message_id"].as_str().unwrap_or_default();
        (to.to_owned(), words(it))
    })
    .collect()
}

#[tokio::test]
async fn sixty_mentions_of_a_stranger_are_refused_once_after_everything_that_the_owner_waits_for() {
    let mut house = House::open(Plan::default()).await;
    house.quiet().await;
    house.stop().await;
    let mention = house.mention();
    for number in 0..60 {
        let body = json!({"channel": "general", "content": format!("{mention} do this {number}")});
        house.write(&house.guest, body).await;
    }
    let asked = house.ask("which tasks are left?").await;
    house.start();
    house.reads("general", "You may not ask").await;
    house.quiet().await;
    let said = answers(&house).await;
    let refusals: Vec<usize> =
        (0..said.len()).filter(|at| said[*at].1.contains("You may not ask")).collect();
    assert_eq!(refusals, [said.len() - 1], "one, and the last of all: {said:#?}");
    let owners = said.iter().filter(|(to, _)| *to == asked).count();
    assert!(owners >= 2, "the receipt and the answer: {said:#?}");

    // A restart is no new hour, nor is another channel.
    house.stop().await;
    house.start();
    for channel in ["general", "report"] {
        let body = json!({"channel": channel, "content": format!("{mention} and now?")});
        house.write(&house.guest, body).await;
    }
    let again = house.ask("status").await;
    house
        .heard("general", "the owner's answer", |it| it["message_reference"]["message_id"] == again)
        .await;
    house.quiet().await;
    let refused = |said: &[(String, String)]| {
        said.iter().filter(|(_, words)| words.contains("You may not ask")).count()
    };
    assert_eq!(refused(&answers(&house).await), 1);
    let reports = house.messages("report").await;
    assert!(!reports.iter().any(|it| words(it).contains("You may not ask")));
    house.close().await;
}

#[tokio::test]
async fn the_configuration_says_how_a_stranger_is_refused() {
    let reacts = Plan { more: "refusals: reaction\n".to_owned(), ..Plan::default() };
    let house = House::open(reacts).await;
    let mention = house.mention();
    let asked = json!({"channel": "general", "content": format!("{mention} hello")});
    let asked = house.write(&house.guest, asked).await;
    house
        .heard("general", "the reaction", |it| {
            let mut reactions = it["reactions"].as_array().into_iter().flatten();
            it["id"] == asked && reactions.any(|one| one["emoji"]["name"] == REFUSED)
        })
        .await;
    assert_eq!(answers(&house).await, []);
    house.close().await;

    let silent = Plan { more: "refusals: silent\n".to_owned(), ..Plan::default() };
    let house = House::open(silent).await;
    let mention = house.mention();
    let asked = json!({"channel": "general", "content": format!("{mention} hello")});
    house.write(&house.guest, asked).await;
    house.ask("status").await;
    house.reads("general", "Nothing is open").await;
    house.quiet().await;
    let said = house.messages("general").await;
    assert!(!said.iter().any(|it| words(it).contains("You may not ask")), "{said:#?}");
    assert!(said.iter().all(|it| it["reactions"].as_array().is_none_or(Vec::is_empty)));
    house.close().await;
}

#[tokio::test]
async fn a_stranger_sees_no_form_no_id_and_no_suggestion() {
    let house = House::open(Plan { checks: "[]".to_owned(), ..Plan::default() }).await;
    house
        .until("the commands are there", async |house: &House| {
            let state = house.owner.ok("GET", "/_local/state", Value::Null).await;
            let commands = state["commands"].as_array()?.clone();
            commands.iter().any(|it| it["name"] == "settings").then_some(())
        })
        .await;
    let asked = house.ask(crate::support::house::EDIT).await;
    house.reads(&asked, "May this go to the branch?").await;
    let request = house.request(&asked, "the request", |_| true).await.request_id.to_string();
    let text = |name: &str, value: &str| json!({"type": 3, "name": name, "value": value});
    let calls = [
        ("sprint", json!([{"type": 1, "name": "start", "options": []}])),
        ("why", json!([text("what", &request)])),
        ("why", json!([text("what", "20260324-1a2b3c4d")])),
        ("why", json!([text("what", "no id at all")])),
        ("approve", json!([text("what", &request), text("decision", "approve")])),
        ("approve", json!([text("what", "20260324-1a2b3c4d@1"), text("decision", "approve")])),
        ("request", json!([{"type": 1, "name": "cancel", "options": [text("request", &request)]}])),
        ("outbox", json!([{"type": 1, "name": "dismiss", "options": [text("message", "all")]}])),
    ];
    let count = calls.len();
    for (command, options) in calls {
        let body = json!({"channel": "general", "command": command, "options": options});
        house.guest.ok("POST", "/_local/slash", body).await;
    }
    let typing = json!([{"type": 3, "name": "what", "value": "", "focused": true}]);
    let body = json!({"channel": "general", "command": "why", "options": typing});
    let typing = house.guest.ok("POST", "/_local/complete", body).await;
    let private = |house: &House| {
        let told = house.told("guest");
        let mine = told.iter().filter(|it| it["d"]["flags"].as_u64().unwrap_or(0) & 64 != 0);
        mine.map(|it| words(&it["d"])).filter(|text| !text.is_empty()).collect::<Vec<String>>()
    };
    let choices = house
        .until("every command is refused", async |house: &House| {
            let refused = private(house).iter().filter(|it| it.contains("You may not ask")).count();
            let told = house.told("guest");
            let mut choices = told.iter().filter(|it| it["t"] == "CHOICES");
            let choices = choices.find(|it| it["d"]["id"] == typing["interaction"])?;
            (refused >= count).then(|| choices["d"]["data"]["choices"].clone())
        })
        .await;
    assert_eq!(choices.as_array().map_or(0, Vec::len), 0, "{choices}");
    for said in private(&house) {
        assert!(said.contains("You may not ask") && !said.contains("20260324"), "{said}");
    }
    assert!(!house.told("guest").iter().any(|it| it["t"] == "DIALOG"), "no form opens");
    house.press(&house.owner, &asked, "May this go to the branch?", "Approve").await;
    house.close().await;
}
