//! Sends go through the outbox: a dead Discord stops no work and loses no word.

use serde_json::json;
use serenity::all::{Context, EventHandler, GatewayIntents, HttpBuilder, Message, Ready};
use serenity::async_trait;
use teams::domain::request::RequestStatus;
use tokio::sync::mpsc;

use crate::support::guild::Caller;
use crate::support::house::{EDIT, EDITED, House, Plan, words};

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
    assert!(text.contains("wait for Discord"), "{text}");
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
        "**Review**",
        "The checks pass",
        "**Validation**",
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
    for part in ["Got it", "**Intake**", "**Building**", "**Validation**"] {
        next(part).await;
    }
    house.becomes(&asked, RequestStatus::Committed).await;
    shards.shutdown_all().await;
    beside.await.unwrap().unwrap();
    house.close().await;
}
