//! Sends go through the outbox: a dead Discord stops no work and loses no word.

use std::sync::Arc;

use serde_json::{Value, json};
use serenity::all::{Context, EventHandler, GatewayIntents, HttpBuilder, Message, Ready};
use serenity::async_trait;
use teams::domain::outgoing::Outgoing;
use teams::domain::request::{Followup, Request, RequestStatus};
use tokio::sync::mpsc;

use crate::support::guild::Caller;
use crate::support::house::{EDIT, EDITED, House, Plan, words};
use crate::support::until;

#[tokio::test]
async fn discord_is_dead_for_the_whole_request_and_then_back() {
    // The request is taken in, and before anybody works on it Discord is gone.
    let plan = Plan { arguments: vec!["--agent".into(), "qa".into()], ..Plan::default() };
    let mut house = House::open(plan).await;
    let asked = house.ask(EDIT).await;
    house.request(&asked, "it is taken in", |_| true).await;
    house.quiet().await;
    house.stop().await;
    house.faults(json!({"down": true})).await;
    house.arguments(&[]);
    house.start();
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    let (code, text, _) = house.teams(&["why", request.request_id.as_str()]).await;
    assert_eq!(code, 0);
    assert!(text.contains("has not reached Discord yet"), "{text}");
    house.faults(json!({"clear": true})).await;
    house.quiet().await;

    // Everything came, once, and in the order in which it happened.
    let room: Vec<String> = house.messages(&asked).await.iter().map(words).collect();
    let order = [
        "**Intake**",
        "**Research**",
        "**First plan**",
        "**Guidance**",
        "**Building**",
        "The checks pass",
        "**Review**",
        "**QA**",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|part| {
            let found: Vec<usize> = (0..room.len()).filter(|at| room[*at].contains(part)).collect();
            assert_eq!(found.len(), 1, "{part} in {room:#?}");
            found[0]
        })
        .collect();
    assert!(places.is_sorted(), "{room:#?}");
    let general = house.messages("general").await;
    assert_eq!(general.iter().filter(|it| words(it).contains("**Done.**")).count(), 1);
    house.close().await;
}

#[tokio::test]
async fn an_answer_written_in_a_room_while_the_team_was_away_is_read() {
    let mut house = House::open(Plan::script("- {role: developer, times: 1, do: block}\n")).await;
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Blocked).await;
    house.reads("general", "needs Owner").await;
    house.quiet().await;
    house.stop().await;
    house.say(&asked, "go on").await;
    house.start();
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn a_first_direct_message_written_while_the_team_was_away_is_read() {
    let mut house = House::built(Plan::default()).await;
    let dm = house.owner.ok("POST", "/_local/dm", json!({"bot": "teams"})).await;
    let channel = dm["id"].as_str().unwrap();
    let asked = house.say(channel, EDIT).await;
    house.start();
    house.becomes(&asked, RequestStatus::Committed).await;
    house.reads(channel, "**Done.**").await;
    house.close().await;
}

#[tokio::test]
async fn what_was_edited_or_deleted_while_the_team_was_away_is_noticed() {
    let mut house = House::open(Plan { checks: "[]".to_owned(), ..Plan::default() }).await;
    let edited = house.ask(EDIT).await;
    house.reads(&edited, "May this go to the branch?").await;
    let deleted = house.ask("in greet.sh replace \"echo\" with \"printf\"").await;
    house.reads(&deleted, "May this go to the branch?").await;
    let more = house.say(&edited, "and thank you").await;
    house.quiet().await;
    house.stop().await;

    let content = "in greet.sh replace \"good morning\" with \"good evening\"";
    let change = json!({
        "channel": "general", "message": edited, "content": format!("{} {content}", house.mention()),
    });
    house.owner.ok("POST", "/_local/edit", change).await;
    for (channel, message) in [("general", &deleted), (edited.as_str(), &more)] {
        let body = json!({"channel": channel, "message": message});
        house.owner.ok("POST", "/_local/delete", body).await;
    }
    house.start();
    house.reads("general", "was deleted").await;
    house.reads(&edited, "The new words count instead of the old ones").await;
    // Where a role has read them before the deletion is noticed, it is told that they do not count.
    let gone = |words: &Followup| words.message_id.map(|id| id.to_string()).as_ref() != Some(&more);
    let taken_back = |request: &Request| request.params.followups.iter().all(gone);
    house.request(&edited, "its further words are gone", taken_back).await;
    house.press(&house.owner, &edited, "May this go to the branch?", "Approve").await;
    let ended = house.becomes(&edited, RequestStatus::Committed).await;
    assert_eq!(ended.body, content);
    assert_eq!(house.on_branch("greet.sh"), "echo good evening\n");
    house.close().await;
}

#[tokio::test]
async fn a_thread_that_was_opened_and_archived_while_the_team_was_away_is_read() {
    let mut house = House::open(Plan::default()).await;
    let here = house.ask("what files are there?").await;
    house.becomes(&here, RequestStatus::Completed).await;
    house.quiet().await;
    house.stop().await;
    let body = json!({"channel": "general", "name": "while you were out"});
    let thread = house.owner.ok("POST", "/_local/thread", body).await;
    let thread = thread["id"].as_str().unwrap();
    let asked = house.say(thread, &format!("{} {EDIT}", house.mention())).await;
    let bot = Caller::bot(&house.running.info, "teams");
    bot.ok("PATCH", &format!("/channels/{thread}"), json!({"archived": true})).await;
    house.start();
    house.becomes(&asked, RequestStatus::Committed).await;
    house.reads(thread, "**Done.**").await;
    house.close().await;
}

/// What the team keeps of what Discord refused.
fn refused(house: &House) -> Option<Vec<Outgoing>> {
    let state = house.state()?;
    let all = state.outgoing.into_values().map(Arc::unwrap_or_clone);
    Some(all.filter(|it| it.refused.is_some()).collect())
}

#[tokio::test]
async fn what_a_channel_refused_is_shown_kept_over_a_restart_and_said_once_when_rights_change() {
    let mut house = House::open(Plan::default()).await;
    house.expects_complaints();
    house.reads("startup", "The team is up").await;
    let rights =
        |what: &str| json!({"bot": "teams", "channel": "general", what: ["SEND_MESSAGES"]});
    house.owner.ok("POST", "/_local/rights", rights("take")).await;
    let asked = house.ask("status").await;
    let kept = house
        .until("the refusal is kept", async |house: &House| {
            refused(house).filter(|all| !all.is_empty())
        })
        .await;
    assert_eq!(kept.len(), 1, "{kept:#?}");
    let (code, status, _) = house.teams(&["status"]).await;
    assert_eq!(code, 0);
    assert!(status.contains("messages that Discord refused: 1"), "{status}");
    assert!(status.contains(&kept[0].short_id()) && status.contains("403"), "{status}");
    let (_, health, _) = house.teams(&["health"]).await;
    assert!(health.contains("Discord refused 1 message"), "{health}");
    assert!(!health.contains("Every message has reached"), "{health}");
    // It holds no other place up.
    let elsewhere = house.say("report", &format!("{} status", house.mention())).await;
    house
        .heard("report", "an answer", |it| it["message_reference"]["message_id"] == elsewhere)
        .await;
    house.stop().await;
    house.start();
    let times = |all: &[Outgoing]| all[0].refused.as_ref().map_or(0, |it| it.times);
    house
        .until("a start tries again", async |house: &House| {
            refused(house).filter(|all| !all.is_empty() && times(all) > times(&kept))
        })
        .await;
    house.owner.ok("POST", "/_local/rights", rights("give")).await;
    let answers = |it: &Value| it["message_reference"]["message_id"] == asked;
    house.heard("general", "the answer", answers).await;
    house
        .until("nothing is refused", async |house: &House| refused(house)?.is_empty().then_some(()))
        .await;
    house.quiet().await;
    let said = house.messages("general").await;
    assert_eq!(said.iter().filter(|it| answers(it)).count(), 1, "{said:#?}");
    let (_, health, _) = house.teams(&["health"]).await;
    assert!(health.contains("Every message has reached"), "{health}");
    house.close().await;
}

#[tokio::test]
async fn what_a_channel_that_is_gone_refused_waits_until_a_person_dismisses_it() {
    let mut house = House::open(Plan::default()).await;
    house.expects_complaints();
    house.reads("startup", "The team is up").await;
    house.quiet().await;
    let report = house.running.info.channels["report"].clone();
    house.owner.ok("POST", "/_local/remove", json!({"channel": report})).await;
    let (code, _, error) = house.teams(&["ask", "which tasks are left?"]).await;
    assert_eq!(code, 0, "{error}");
    let request = house
        .until("the request ends", async |house: &House| {
            house.requests().into_iter().find(|it| it.status.is_terminal())
        })
        .await;
    house.quiet().await;
    let kept = refused(&house).unwrap();
    let last = kept.iter().find(|it| it.request_id.as_ref() == Some(&request.request_id));
    let last = last.expect("its answer is kept");
    let id = request.request_id.as_str();
    let (_, why, _) = house.teams(&["why", id]).await;
    assert!(why.contains("Discord refused") && why.contains(&last.short_id()), "{why}");
    assert!(why.contains("Unknown Channel"), "{why}");

    let (code, _, error) = house.teams(&["outbox", "dismiss", "abc"]).await;
    assert_eq!((code, error.contains("has refused no message")), (1, true), "{error}");
    let (code, said, error) = house.teams(&["outbox", "retry"]).await;
    assert_eq!(code, 0, "{error}");
    assert!(said.contains("tried again"), "{said}");
    house
        .until("it was tried again", async |house: &House| {
            let again =
                refused(house)?.into_iter().find(|it| it.outgoing_id == last.outgoing_id)?;
            (again.refused?.times > last.refused.as_ref()?.times).then_some(())
        })
        .await;
    let (code, said, error) = house.teams(&["outbox", "dismiss", &last.short_id()]).await;
    assert_eq!(code, 0, "{error}");
    assert!(said.contains("given up"), "{said}");
    let left = refused(&house).unwrap();
    assert!(!left.iter().any(|it| it.outgoing_id == last.outgoing_id));
    house.file("logs/set_aside.jsonl", "\"dismissed_by\":\"operator\"").await;
    assert_eq!(house.times(&request, "message_dismissed"), 1);
    house.teams(&["outbox", "dismiss", "all"]).await;
    assert!(refused(&house).unwrap().is_empty());
    let (_, why, _) = house.teams(&["why", id]).await;
    assert!(!why.contains("Discord refused"), "{why}");
    house.close().await;
}

#[tokio::test]
async fn a_refused_command_costs_only_itself_and_is_named() {
    let mut house = House::built(Plan::default()).await;
    let refused = json!({"rest": [{
        "method": "POST", "path_contains": "/commands", "status": 400, "code": 50035, "times": 1,
    }]});
    house.faults(refused).await;
    house.start();
    house
        .until("the others are there", async |house: &House| {
            let state = house.owner.ok("GET", "/_local/state", Value::Null).await;
            let commands = state["commands"].as_array()?.clone();
            commands.iter().any(|it| it["name"] == "settings").then_some(())
        })
        .await;
    until("its health names it", async || {
        let (_, health, _) = house.teams(&["health"]).await;
        health.contains("/ask: ").then_some(())
    })
    .await;
    let (_, doctor, _) = house.teams(&["doctor"]).await;
    assert!(doctor.contains("does not have as they are now: /ask"), "{doctor}");
    house.close().await;
}

struct Listener(mpsc::UnboundedSender<String>);

#[async_trait]
impl EventHandler for Listener {
    async fn ready(&self, _: Context, _: Ready) {
        let _ = self.0.send("ready".to_owned());
    }

    async fn message(&self, _: Context, message: Message) {
        let embed = message.embeds.first().and_then(|embed| embed.title.clone());
        let text =
            format!("{}: {}{}", message.author.name, message.content, embed.unwrap_or_default());
        let _ = self.0.send(text);
    }
}

#[tokio::test]
async fn an_unmodified_client_beside_sees_the_conversation() {
    let house = House::open(Plan::default()).await;
    let info = &house.running.info;
    let token = info.bots["designer"].token.clone();
    let http = HttpBuilder::new(&token).proxy(&info.base_url).ratelimiter_disabled(true).build();
    let intents = GatewayIntents::non_privileged() | GatewayIntents::MESSAGE_CONTENT;
    let (tell, mut heard) = mpsc::unbounded_channel();
    let mut client = serenity::client::ClientBuilder::new_with_http(http, intents)
        .event_handler(Listener(tell))
        .await
        .unwrap();
    *client.ws_url.lock().await = info.gateway_url.clone();
    let shards = client.shard_manager.clone();
    let beside = tokio::spawn(async move { client.start().await });
    let mut next = async |part: &str| {
        let wait = async {
            loop {
                let text = heard.recv().await.unwrap();
                if text.contains(part) {
                    return text;
                }
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(120), wait).await.unwrap_or_else(|_| {
            panic!("the client never heard {part:?}\n{}", house.log());
        })
    };
    next("ready").await;
    let asked = house.ask(EDIT).await;
    for part in ["Got it", "**Intake**", "**Building**", "**QA**"] {
        next(part).await;
    }
    house.becomes(&asked, RequestStatus::Committed).await;
    shards.shutdown_all().await;
    beside.await.unwrap().unwrap();
    house.close().await;
}
