//! Thousands of messages in bursts while the platform makes trouble: each is answered once and in
//! order, and no limit is overstepped. `TEAMS_BURST` says how many thousands (2).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use teams::domain::change::Change;
use teams::domain::ids::OutgoingId;
use teams::domain::language::Language;
use teams::domain::outgoing::{
    Act, Content, Outgoing, OutgoingState, Post, Priority, Target, Voice,
};
use teams::domain::time::Timestamp;
use teams::platform::disk::RealDisk;
use teams::store::Store;
use tokio::sync::watch;

use crate::support::guild::Caller;
use crate::support::house::{EDIT, House, Plan, words};

/// All of it takes less. Only a failure takes this long.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);
/// Channels that are written in at the same time.
const CHANNELS: usize = 8;

/// Every message of a channel, oldest first.
async fn all(house: &House, channel: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let before = all
            .last()
            .map_or(String::new(), |last| format!("&before={}", last["id"].as_str().unwrap()));
        let path = format!("/_local/messages?channel={channel}&limit=100{before}");
        let page = house.owner.ok("GET", &path, Value::Null).await;
        let page = page.as_array().unwrap();
        all.extend(page.iter().cloned());
        if page.len() < 100 {
            all.reverse();
            return all;
        }
    }
}

/// How often each message of the owner was answered.
fn answers(messages: &[Value], owner: &str) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for message in messages {
        let id = message["id"].as_str().unwrap().to_owned();
        if message["author"]["id"] == owner {
            count.insert(id, 0);
        } else if let Some(to) = message["message_reference"]["message_id"].as_str() {
            *count.entry(to.to_owned()).or_default() += 1;
        }
    }
    count
}

/// What the owner's page has shown: answers to messages, and outcomes of requests.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    answers: usize,
    outcomes: usize,
}

/// Counts from now on.
async fn count(house: &House) -> watch::Receiver<Seen> {
    let state = house.owner.ok("GET", "/_local/state", Value::Null).await;
    let after = format!("{}.{}", state["epoch"].as_str().unwrap(), state["feed"]);
    let path = format!("/_local/events?after={after}");
    let mut stream = house.owner.request("GET", &path).send().await.unwrap().bytes_stream();
    let (tell, seen) = watch::channel(Seen::default());
    tokio::spawn(async move {
        let mut text = Vec::new();
        while let Some(Ok(chunk)) = stream.next().await {
            text.extend_from_slice(&chunk);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                let line = String::from_utf8(line).unwrap();
                let Some(data) = line.strip_prefix("data:") else { continue };
                let event: Value = serde_json::from_str(data.trim()).unwrap();
                if event["t"] != "MESSAGE_CREATE" || event["d"]["author"]["bot"] != true {
                    continue;
                }
                let words = words(&event["d"]);
                tell.send_modify(|seen| {
                    seen.answers += usize::from(
                        words.starts_with("Nothing is open") || words.contains("request is open"),
                    );
                    seen.outcomes += usize::from(words.contains("**Done.**"));
                });
            }
        }
    });
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_messages_while_faults_fire_are_answered_once_each() {
    let thousands: usize =
        std::env::var("TEAMS_BURST").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let mut house = House::open(Plan::default()).await;
    house.expects_complaints();
    let bot = Caller::bot(&house.running.info, "teams");
    let owner = house.running.info.users["owner"].id.clone();
    let guild = format!("/guilds/{}/channels", house.running.info.guild_id);
    let mut channels = Vec::new();
    for number in 0..CHANNELS {
        let made = bot.ok("POST", &guild, json!({"name": format!("talk-{number}"), "type": 0}));
        channels.push(made.await["id"].as_str().unwrap().to_owned());
    }
    // Kept for the whole story, and told by headers as the platform does.
    house.faults(json!({"limits": {"per_route": 25, "seconds": 0.5, "global": 4_000}})).await;
    let mut seen = count(&house).await;
    let status = format!("{} status", house.mention());
    let each = thousands * 1_000 / CHANNELS;
    let trouble = [
        json!({"gateway": "drop"}),
        json!({"rest": [{"method": "POST", "path_contains": "/messages", "status": 502, "after": true, "times": 5}]}),
        json!({"gateway": {"invalid_session": {"resumable": false}}}),
        json!({"rest": [{"method": "POST", "path_contains": "/messages", "trouble": "drop", "after": true, "times": 5}]}),
        json!({"duplicate_events": 40}),
        json!({"gateway": {"close": {"code": 4007}}}),
        json!({"rest": [{"path_contains": "/messages", "status": 429, "retry_after": 0.2, "times": 5}]}),
        json!({"gateway": "reconnect"}),
        json!({"rest": [{"method": "POST", "path_contains": "/messages", "status": 500, "times": 5}]}),
    ];
    let bursts = trouble.len() + 1;
    for burst in 0..bursts {
        let many = each / bursts + usize::from(burst == 0) * (each % bursts);
        let writers = channels.iter().map(async |channel| {
            for _ in 0..many {
                house.say(channel, &status).await;
            }
        });
        futures_util::future::join_all(writers).await;
        if let Some(order) = trouble.get(burst) {
            house.faults(order.clone()).await;
        }
        if burst == bursts / 2 {
            house.ask(EDIT).await;
        }
    }
    let all_told = seen.wait_for(|it| it.answers >= each * CHANNELS && it.outcomes > 0);
    match tokio::time::timeout(PATIENCE, all_told).await {
        Ok(told) => drop(told.unwrap()),
        Err(_) => panic!("answers are missing\n{}", house.log()),
    }
    house.quiet().await;
    for channel in &channels {
        let messages = all(&house, channel).await;
        let answers = answers(&messages, &owner);
        assert_eq!(answers.len(), each, "{channel}");
        let wrong: Vec<_> = answers.iter().filter(|(_, count)| **count != 1).collect();
        assert!(wrong.is_empty(), "{channel}: {wrong:?}\n{}", house.log());
        // In the order in which they were asked.
        let asked: Vec<&str> = messages
            .iter()
            .filter_map(|it| it["message_reference"]["message_id"].as_str())
            .collect();
        assert!(asked.is_sorted(), "{channel}");
    }
    let general: Vec<String> = all(&house, "general").await.iter().map(words).collect();
    assert_eq!(general.iter().filter(|it| it.contains("**Done.**")).count(), 1);
    let counted = house.owner.ok("POST", "/_local/faults", json!({})).await;
    assert_eq!(counted["counted"]["limited"], 0, "a limit was overstepped: {counted}");
    house.close().await;
}

/// A message for a channel.
fn waiting(number: usize, channel: &str, priority: Priority, text: &str) -> Change {
    let words = json!({
        "request_id": "20260324-1a2b3c4d", "summary": text, "seconds": 1, "agent": "rehearsal",
        "rehearsal": true,
    });
    Change::save(Outgoing {
        outgoing_id: OutgoingId::parse(&format!("019a3b7e-0000-7000-8000-{number:012}")).unwrap(),
        target: Target::Channel(channel.parse().unwrap()),
        voice: Voice::Team,
        priority,
        act: Act::Post(Post::new(Content {
            key: "final.answered".to_owned(),
            values: words.as_object().cloned().unwrap(),
            language: Language::En,
        })),
        request_id: None,
        slot: None,
        state: OutgoingState::Queued,
        attempts: 0,
        own_failures: 0,
        not_before: None,
        refused: None,
        created_at: Timestamp::from_millis(1_774_300_000_000),
    })
}

#[tokio::test]
async fn finals_and_approvals_leave_before_hundreds_of_lines_of_progress() {
    // Far more rooms than are written to at once, and fewer lines in each than its own budget.
    const ROOMS: usize = 48;
    const LINES: usize = 16;
    let mut house = House::open(Plan::default()).await;
    house.quiet().await;
    house.stop().await;
    let bot = Caller::bot(&house.running.info, "teams");
    let guild = format!("/guilds/{}/channels", house.running.info.guild_id);
    let mut rooms = Vec::new();
    for number in 0..ROOMS + 2 {
        let made = bot.ok("POST", &guild, json!({"name": format!("room-{number}"), "type": 0}));
        rooms.push(made.await["id"].as_str().unwrap().to_owned());
    }
    // What was written while Discord was away: progress everywhere, and last of all what people wait for.
    let lines = (0..ROOMS * LINES).map(|at| (&rooms[at % ROOMS], Priority::Progress, "a line"));
    let last = [
        (&rooms[ROOMS], Priority::Final, "the outcome"),
        (&rooms[ROOMS + 1], Priority::Approval, "the question"),
        (&rooms[ROOMS - 1], Priority::Final, "the outcome of a busy room"),
    ];
    let outbox = lines.chain(last).enumerate();
    let outbox = outbox.map(|(at, (room, priority, text))| waiting(at, room, priority, text));
    let outbox: Vec<Change> = outbox.collect();
    let root = house.root();
    let kept = tokio::task::spawn_blocking(move || {
        let opened = Store::open(&root, Arc::new(RealDisk)).unwrap();
        opened.store.append(outbox).wait().unwrap();
        opened.store.close().unwrap();
    });
    kept.await.unwrap();
    house.faults(json!({"limits": {"per_route": 25, "seconds": 0.5, "global": 4_000}})).await;
    house.start();
    house.reads(&rooms[ROOMS - 1], "a busy room").await;
    house.quiet().await;

    // Ids grow in the order in which Discord took the messages.
    let mut said = Vec::new();
    for room in &rooms {
        for message in all(&house, room).await {
            let id: u64 = message["id"].as_str().unwrap().parse().unwrap();
            said.push((id, room.as_str(), words(&message)));
        }
    }
    said.sort();
    assert_eq!(said.len(), ROOMS * LINES + 3);
    let place = |text: &str| said.iter().position(|(_, _, words)| words.starts_with(text)).unwrap();
    for text in ["the outcome\n", "the question"] {
        // Those that were begun at the same instant may overtake them; none of the hundreds that wait.
        assert!(place(text) < ROOMS, "{text}: {} of {}", place(text), said.len());
    }
    // Within its room an outcome keeps its place, and the whole room goes before the others.
    let busy = place("the outcome of a busy room");
    let room = &rooms[ROOMS - 1];
    assert_eq!(said[..busy].iter().filter(|it| it.1 == room).count(), LINES);
    let ended = |room: &&String| said.iter().rposition(|it| it.1 == room.as_str()).unwrap();
    let earlier = rooms[..ROOMS - 1].iter().filter(|room| ended(room) < busy).count();
    assert!(earlier < ROOMS / 2, "{earlier} rooms of progress ended before it");
    let counted = house.owner.ok("POST", "/_local/faults", json!({})).await;
    assert_eq!(counted["counted"]["limited"], 0, "a limit was overstepped: {counted}");
    house.close().await;
}
