//! The team behind a gateway that misbehaves, as operators and people see it: no storm, nothing lost, and
//! `teams status` says what is going on.

use serde_json::{Value, json};
use teams::domain::request::RequestStatus;

use crate::support::guild::Caller;
use crate::support::house::{House, Plan};
use crate::support::proxy::{Proxy, Trouble};

/// What a request asks that changes nothing.
const QUESTION: &str = "what files are there?";

/// What the team wrote down about its bot's connection.
fn standing(house: &House) -> Value {
    let path = house.root().join(".teams_runtime/discord/standing.json");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let report: Value = serde_json::from_str(&text).unwrap_or_default();
    report["bots"]["team"].clone()
}

/// Waits until it is so.
async fn stands(house: &House, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    house.until(what, async |house: &House| Some(standing(house)).filter(&wanted)).await
}

async fn status(house: &House) -> String {
    let (code, text, errors) = house.teams(&["status"]).await;
    assert_eq!(code, 0, "{errors}");
    text
}

#[tokio::test]
async fn connections_that_end_without_a_word_are_spaced_and_told_and_nothing_is_lost() {
    let proxy = Proxy::open().await;
    let plan = Plan { gateway_url: Some(proxy.gateway_url()), ..Plan::default() };
    let mut house = House::built(plan).await;
    proxy.leads_to(&house.running.info.base_url);
    house.start();
    let asked = house.ask(QUESTION).await;
    house.becomes(&asked, RequestStatus::Completed).await;
    house.quiet().await;
    let before = proxy.upgrades().len();
    proxy.gateway(Some(Trouble::Fin));
    house.faults(json!({"gateway": "drop"})).await;
    let told = stands(&house, "trouble", |it| it["trouble"]["times"].as_u64() >= Some(3));
    tokio::select! {
        _ = told => {}
        () = proxy.made_more_than(before + 20) => panic!("a storm: {}", standing(&house)),
    }
    let made = proxy.upgrades().len() - before;
    let told = standing(&house)["trouble"]["times"].as_u64().unwrap();
    assert!(made as u64 <= told + 1, "{made} connections, and {told} are told");
    let text = status(&house).await;
    let line = text.lines().find(|line| line.starts_with("Discord: ")).unwrap().to_owned();
    for part in ["not connected since ", " tries", "without a word", "the next try is at "] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let while_away = house.ask(QUESTION).await;
    proxy.gateway(None);
    house.becomes(&while_away, RequestStatus::Completed).await;
    for head in proxy.upgrades() {
        assert!(head.contains("user-agent: discordbot ("), "{head}");
    }
    house.close().await;
}

#[tokio::test]
async fn the_last_hundred_sessions_of_the_day_are_left_alone_and_status_says_until_when() {
    let mut house = House::built(Plan::default()).await;
    house.faults(json!({"logins_left": 100})).await;
    house.start();
    let bot = Caller::bot(&house.running.info, "teams");
    stands(&house, "it waits or is connected", |it| {
        it["state"] == "waiting" || it["state"] == "connected"
    })
    .await;
    let gateway = bot.ok("GET", "/gateway/bot", Value::Null).await;
    assert_eq!(gateway["session_start_limit"]["remaining"], 100);
    let text = status(&house).await;
    let line = text.lines().find(|line| line.starts_with("Discord: ")).unwrap();
    assert!(line.contains("waiting until") && line.contains("only 100 new sessions"), "{line}");
    house.close().await;
}

#[tokio::test]
async fn an_event_that_is_broken_lost_or_strange_costs_no_request() {
    let house = House::open(Plan::default()).await;
    let first = house.ask(QUESTION).await;
    house.becomes(&first, RequestStatus::Completed).await;
    house.quiet().await;
    // Broken on the way: the session is gone on with before it.
    house.faults(json!({"break_frames": 1})).await;
    let broken = house.ask(QUESTION).await;
    house.becomes(&broken, RequestStatus::Completed).await;
    house.quiet().await;
    // Lost on the way: the number of the next one shows it.
    house.faults(json!({"lose_frames": 1})).await;
    let lost = house.ask(QUESTION).await;
    house.say("general", "nobody in particular").await;
    house.becomes(&lost, RequestStatus::Completed).await;
    house.quiet().await;
    assert!(standing(&house)["missed"].is_null());
    // Strange however often it is sent: the channel is read.
    house.faults(json!({"garble_events": 1})).await;
    let strange = house.ask(QUESTION).await;
    house.becomes(&strange, RequestStatus::Completed).await;
    let text = status(&house).await;
    assert!(text.contains("1 time an event did not come or was not readable"), "{text}");
    assert!(text.contains("MESSAGE_CREATE"), "{text}");
    house.close().await;
}

#[tokio::test]
async fn a_connection_that_lives_and_says_nothing_is_told_and_its_channels_are_read() {
    let house = House::open(Plan::default()).await;
    let first = house.ask(QUESTION).await;
    house.becomes(&first, RequestStatus::Completed).await;
    house.quiet().await;
    house.faults(json!({"heartbeat_ms": 600, "mute_events": true, "gateway": "drop"})).await;
    let unheard = house.ask(QUESTION).await;
    stands(&house, "silence", |it| it["state"] == "silent").await;
    let text = status(&house).await;
    assert!(text.contains("sends no events"), "{text}");
    house.becomes(&unheard, RequestStatus::Completed).await;
    // Events come again: all is well.
    house.faults(json!({"clear": true})).await;
    let heard = house.ask(QUESTION).await;
    house.becomes(&heard, RequestStatus::Completed).await;
    stands(&house, "it is heard again", |it| it["state"] == "connected").await;
    house.close().await;
}
