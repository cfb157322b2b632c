//! Trouble on demand: each fault strikes as ordered, looks as on the platform, and ends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use teams::local_guild::Running;

use crate::support::gateway::{self, Connection, Heard, Socket};
use crate::support::guild::{Caller, fresh, text};
use crate::support::until;

async fn order(running: &Running, order: Value) -> Value {
    Caller::person(&running.info, "owner").ok("POST", "/_local/faults", order).await
}

async fn say(running: &Running, content: &str) {
    let body = json!({"channel": "general", "content": content});
    Caller::person(&running.info, "owner").ok("POST", "/_local/say", body).await;
}

fn token(running: &Running) -> String {
    running.info.bots["teams"].token.clone()
}

#[tokio::test]
async fn every_close_code_strikes_open_connections_and_those_that_log_in() {
    let running = fresh().await;
    order(&running, json!({"login_spacing_ms": 0})).await;
    for code in [4000, 4003, 4004, 4007, 4008, 4009, 4010, 4011, 4012, 4013, 4014_u16] {
        let (mut open, ready) = Socket::login(&running.info, "teams").await;
        order(&running, json!({"gateway": {"close": {"code": code}}, "bot": "teams"})).await;
        assert_eq!(open.ended().await, Some(code));
        let trouble = json!({"close": {"code": code}});
        let faults =
            json!([{"at": "identify", "trouble": trouble}, {"at": "resume", "trouble": trouble}]);
        order(&running, json!({"login": faults, "bot": "teams"})).await;
        // Another bot is not meant.
        Socket::login(&running.info, "qa").await;
        let again = gateway::resume(&token(&running), &ready["session_id"], 1);
        for frame in [again, gateway::identify(&token(&running), gateway::ALL)] {
            let mut socket = Socket::connect(&running.info, "v=10").await;
            socket.send(&frame).await;
            assert_eq!(socket.ended().await, Some(code), "{frame}");
        }
        // Met once each; then logins go through again.
        Socket::login(&running.info, "teams").await;
    }
    running.shutdown().await;
}

#[tokio::test]
async fn what_a_client_does_wrong_closes_its_connection_with_the_right_code() {
    let running = fresh().await;
    let token = token(&running);
    let login = |intents: u64| gateway::identify(&token, intents);
    let sharded = |shard: Value| {
        let mut frame = login(1);
        frame["d"]["shard"] = shard;
        frame
    };
    for (frame, code) in [
        (json!({"op": 3, "d": {}}), 4003),
        (json!({"op": 99}), 4001),
        (json!({"op": 1, "d": "x".repeat(4096)}), 4002),
        (gateway::identify("wrong", 1), 4004),
        (gateway::resume("wrong", &json!("x"), 1), 4004),
        (sharded(json!([3, 1])), 4010),
        (login(1 << 40), 4013),
    ] {
        let mut socket = Socket::connect(&running.info, "v=10").await;
        socket.send(&frame).await;
        assert_eq!(socket.ended().await, Some(code), "{frame}");
    }
    let mut old = Socket::connect(&running.info, "v=5").await;
    assert_eq!(old.ended().await, Some(4012));
    let (mut twice, ready) = Socket::login(&running.info, "teams").await;
    twice.send(&login(1)).await;
    assert_eq!(twice.ended().await, Some(4005));
    let mut ahead = Socket::connect(&running.info, "v=10").await;
    ahead.send(&gateway::resume(&token, &ready["session_id"], 1_000)).await;
    assert_eq!(ahead.ended().await, Some(4007));
    let mut stranger = Socket::connect(&running.info, "v=10").await;
    stranger.send(&gateway::resume(&token, &json!("unknown"), 1)).await;
    assert_eq!(stranger.op(9).await, false);
    let mut flood = Socket::connect(&running.info, "v=10").await;
    for _ in 0..121 {
        flood.send(&json!({"op": 1, "d": null})).await;
    }
    assert_eq!(flood.ended().await, Some(4008));
    order(&running, json!({"heartbeat_ms": 100})).await;
    let mut silent = Socket::connect(&running.info, "v=10").await;
    assert_eq!(silent.op(10).await["heartbeat_interval"], 100);
    assert_eq!(silent.ended().await, Some(4009));
    running.shutdown().await;
}

#[tokio::test]
async fn a_reconnect_and_both_invalid_sessions_are_told_open_and_at_login() {
    let running = fresh().await;
    order(&running, json!({"login_spacing_ms": 0})).await;
    let (mut open, ready) = Socket::login(&running.info, "teams").await;
    order(&running, json!({"gateway": "reconnect"})).await;
    open.op(7).await;
    order(&running, json!({"gateway": {"invalid_session": {"resumable": true}}})).await;
    assert_eq!(open.op(9).await, true);
    // The session is still there.
    let again = gateway::resume(&token(&running), &ready["session_id"], 2);
    let mut second = Socket::connect(&running.info, "v=10").await;
    second.send(&again).await;
    second.event("RESUMED").await;
    order(&running, json!({"gateway": {"invalid_session": {"resumable": false}}})).await;
    assert_eq!(second.op(9).await, false);
    // Now it is gone; the connection takes a new one, from its first event on.
    let mut third = Socket::connect(&running.info, "v=10").await;
    third.send(&again).await;
    assert_eq!(third.op(9).await, false);
    second.send(&gateway::identify(&token(&running), gateway::ALL)).await;
    second.event("READY").await;
    second.event("GUILD_CREATE").await;

    let refused =
        json!({"at": "identify", "trouble": {"invalid_session": {"resumable": false}}, "times": 2});
    order(&running, json!({"login": [refused]})).await;
    let mut fourth = Socket::connect(&running.info, "v=10").await;
    for _ in 0..2 {
        fourth.send(&gateway::identify(&token(&running), 1)).await;
        assert_eq!(fourth.op(9).await, false);
    }
    fourth.send(&gateway::identify(&token(&running), 1)).await;
    fourth.event("READY").await;
    running.shutdown().await;
}

#[tokio::test]
async fn a_dropped_socket_has_no_closing_frame_and_a_zombie_stays_open_without_a_word() {
    let running = fresh().await;
    order(&running, json!({"login_spacing_ms": 0})).await;
    let (mut cut, _) = Socket::login(&running.info, "teams").await;
    order(&running, json!({"gateway": "drop"})).await;
    assert_eq!(cut.ended().await, None);

    let (mut zombie, ready) = Socket::login(&running.info, "teams").await;
    order(&running, json!({"gateway": "zombie"})).await;
    zombie.send(&json!({"op": 1, "d": null})).await;
    say(&running, "unheard").await;
    // Only its end is heard, when the session is taken over; the other connection has what it missed.
    let mut next = Socket::connect(&running.info, "v=10").await;
    next.send(&gateway::resume(&token(&running), &ready["session_id"], 2)).await;
    assert_eq!(next.event("MESSAGE_CREATE").await["content"], "unheard");
    assert!(matches!(zombie.hear().await, Heard::Closed(Some(4000))));

    order(&running, json!({"mute_acks": true})).await;
    next.send(&json!({"op": 1, "d": null})).await;
    say(&running, "heard").await;
    let Heard::Frame(frame) = next.hear().await else { panic!("closed") };
    assert_eq!(frame["t"], "RESUMED");
    let Heard::Frame(frame) = next.hear().await else { panic!("closed") };
    assert_eq!(frame["d"]["content"], "heard", "events come, acknowledgements do not");
    order(&running, json!({"clear": true})).await;
    next.send(&json!({"op": 1, "d": null})).await;
    next.op(11).await;
    running.shutdown().await;
}

#[tokio::test]
async fn events_are_lost_doubled_and_garbled_for_bots_alone() {
    let running = fresh().await;
    let (mut bot, _) = Socket::login(&running.info, "teams").await;
    order(&running, json!({"lose_events": 1})).await;
    say(&running, "lost").await;
    order(&running, json!({"duplicate_events": 1})).await;
    say(&running, "twice").await;
    assert_eq!(bot.event("MESSAGE_CREATE").await["content"], "twice");
    assert_eq!(bot.event("MESSAGE_CREATE").await["content"], "twice");
    order(&running, json!({"garble_events": 1})).await;
    say(&running, "garbled").await;
    let garbled = bot.event("MESSAGE_CREATE").await;
    assert_eq!(garbled, json!({"surprise": ["MESSAGE_CREATE"]}));
    say(&running, "clear").await;
    assert_eq!(bot.event("MESSAGE_CREATE").await["content"], "clear");
    let owner = Caller::person(&running.info, "owner");
    let all = owner.ok("GET", "/_local/messages?channel=general", Value::Null).await;
    assert_eq!(all.as_array().unwrap().len(), 4);
    running.shutdown().await;
}

#[tokio::test]
async fn a_429_has_the_headers_of_its_scope() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let faults = json!({"rest": [
        {"status": 429, "retry_after": 0.25},
        {"status": 429, "retry_after": 1.5, "scope": "shared", "code": 20028},
        {"status": 429, "retry_after": 2, "scope": "global"},
        {"status": 429, "retry_after": 3, "html": true},
    ]});
    order(&running, faults).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let response = bot.request("GET", "/users/@me").send().await.unwrap();
        assert_eq!(response.status(), 429);
        let header =
            |name: &str| response.headers().get(name).map(|it| it.to_str().unwrap().to_owned());
        let told =
            ["retry-after", "x-ratelimit-scope", "x-ratelimit-reset-after", "x-ratelimit-global"]
                .map(header);
        let bucket =
            header("x-ratelimit-bucket").is_some() && header("x-ratelimit-reset").is_some();
        seen.push((told, bucket, response.text().await.unwrap()));
    }
    let told = |at: usize| seen[at].0.each_ref().map(|it| it.as_deref());
    assert_eq!(told(0), [Some("1"), Some("user"), Some("0.250"), None]);
    assert_eq!(told(1), [Some("2"), Some("shared"), Some("1.500"), None]);
    assert_eq!(told(2), [Some("2"), Some("global"), None, Some("true")]);
    assert_eq!(told(3), [Some("3"), None, None, None]);
    assert_eq!([seen[0].1, seen[1].1, seen[2].1, seen[3].1], [true, true, false, false]);
    let body = |at: usize| serde_json::from_str::<Value>(&seen[at].2).unwrap_or_default();
    assert_eq!(
        body(0),
        json!({"message": "You are being rate limited.", "retry_after": 0.25, "global": false})
    );
    assert_eq!((&body(1)["code"], &body(1)["retry_after"]), (&json!(20028), &json!(1.5)));
    assert_eq!(body(2)["global"], true);
    assert!(seen[3].2.starts_with("<!doctype html>"));
    assert_eq!(bot.call("GET", "/users/@me", Value::Null).await.0, 200);
    running.shutdown().await;
}

#[tokio::test]
async fn answers_are_late_missing_or_wrong_as_ordered() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let me = "/users/@me";
    order(&running, json!({"rest": [{"trouble": "slow", "delay_ms": 300}]})).await;
    let began = Instant::now();
    assert_eq!(bot.call("GET", me, Value::Null).await.0, 200);
    assert!(began.elapsed() >= Duration::from_millis(300));
    order(&running, json!({"rest": [{"status": 503}, {"status": 400, "code": 50035}]})).await;
    assert_eq!(bot.call("GET", me, Value::Null).await.0, 503);
    let (status, body) = bot.call("GET", me, Value::Null).await;
    assert_eq!((status, body["code"].as_u64()), (400, Some(50035)));
    order(&running, json!({"rest": [{"trouble": "drop"}]})).await;
    assert!(bot.request("GET", me).send().await.is_err());
    // One that hangs is let go, without an answer, by the next order.
    order(&running, json!({"rest": [{"trouble": "hang"}]})).await;
    let hanging = bot.request("GET", me).send();
    let freeing = async {
        // The fault is met once it is not in force any more.
        until("the fault is met", async || {
            (order(&running, json!({})).await["rest"] == json!([])).then_some(())
        })
        .await;
        order(&running, json!({"clear": true})).await;
    };
    let (hung, ()) = tokio::join!(hanging, freeing);
    assert!(hung.is_err());
    assert_eq!(bot.call("GET", me, Value::Null).await.0, 200);
    running.shutdown().await;
}

#[tokio::test]
async fn limits_are_told_by_headers_and_kept() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    order(&running, json!({"limits": {"per_route": 2, "seconds": 60, "global": 5}})).await;
    let channel = |name: &str| format!("/channels/{}", running.info.channels[name]);
    let mut buckets = Vec::new();
    for (path, remaining) in
        [(channel("general"), "1"), (channel("general"), "0"), (channel("relay"), "1")]
    {
        let response = bot.request("GET", &path).send().await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(
            (response.status().as_u16(), header("x-ratelimit-remaining").as_str()),
            (200, remaining)
        );
        assert_eq!(header("x-ratelimit-limit"), "2");
        assert!(header("x-ratelimit-reset-after").parse::<f64>().unwrap() > 1.0);
        buckets.push(header("x-ratelimit-bucket"));
    }
    assert_eq!(buckets[0], buckets[2], "one bucket, kept apart by channel");
    let over = bot.request("GET", &channel("general")).send().await.unwrap();
    assert_eq!(
        (over.status().as_u16(), &over.headers()["x-ratelimit-scope"]),
        (429, &"user".parse().unwrap())
    );
    // One in a second over all routes; the window may end meanwhile, so more are asked for.
    let mut global = false;
    for number in 0..200 {
        let path = format!("/users/{}", number + 1);
        let response = bot.request("GET", &format!("{path}?{number}")).send().await.unwrap();
        if response.headers().contains_key("x-ratelimit-global") {
            global = true;
            break;
        }
        order(&running, json!({"limits": {"per_route": 1000, "seconds": 60, "global": 1}})).await;
    }
    assert!(global);
    let counted = order(&running, json!({})).await["counted"].clone();
    assert!(counted["limited"].as_u64().unwrap() >= 2, "{counted}");
    order(&running, json!({"clear": true})).await;
    let free = bot.request("GET", &channel("general")).send().await.unwrap();
    assert!(!free.headers().contains_key("x-ratelimit-limit"));
    running.shutdown().await;
}

#[tokio::test]
async fn edits_of_old_messages_run_out() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let card = bot.ok("POST", &send, json!({"content": "card"})).await;
    let card = format!("{send}/{}", text(&card["id"]));
    order(&running, json!({"edits": {"older_than_seconds": 0, "most": 2}})).await;
    for number in 0..2 {
        bot.ok("PATCH", &card, json!({"content": format!("edit {number}")})).await;
    }
    let (status, refused) = bot.call("PATCH", &card, json!({"content": "more"})).await;
    assert_eq!((status, refused["code"].as_u64()), (429, Some(30046)));
    assert!(refused["retry_after"].is_number());
    assert_eq!(bot.ok("GET", &card, Value::Null).await["content"], "edit 1");
    // With the platform's own age, this message is young.
    order(&running, json!({"edits": {"most": 0}})).await;
    bot.ok("PATCH", &card, json!({"content": "young"})).await;
    running.shutdown().await;
}

#[tokio::test]
async fn too_many_invalid_requests_shut_this_machine_out() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let wrong = Caller::token(&running.info, "wrong");
    order(
        &running,
        json!({"invalid_limit": 4, "rest": [
            {"status": 429, "scope": "shared", "retry_after": 0.1},
            {"status": 429, "retry_after": 0.1},
        ]}),
    )
    .await;
    let me = "/users/@me";
    // What is shared does not count; the other 429 and the refusals do. What is not found does not.
    for expected in [429, 429] {
        assert_eq!(bot.call("GET", me, Value::Null).await.0, expected);
    }
    assert_eq!(bot.call("GET", "/users/1", Value::Null).await.0, 404);
    for _ in 0..2 {
        assert_eq!(wrong.call("GET", me, Value::Null).await.0, 401);
    }
    let counted = order(&running, json!({})).await["counted"].clone();
    assert_eq!((&counted["invalid"], &counted["banned"]), (&json!(3), &json!(false)));
    assert_eq!(bot.call("GET", me, Value::Null).await.0, 200);
    assert_eq!(wrong.call("GET", me, Value::Null).await.0, 401);
    let banned = bot.request("GET", me).send().await.unwrap();
    assert_eq!(banned.status(), 429);
    assert!(!banned.headers().contains_key("x-ratelimit-scope"));
    assert!(banned.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() > 60);
    order(&running, json!({"clear": true})).await;
    assert_eq!(bot.call("GET", me, Value::Null).await.0, 200);
    running.shutdown().await;
}

#[tokio::test]
async fn a_second_login_in_five_seconds_meets_an_invalid_session_and_one_in_time_does_not() {
    let running = fresh().await;
    let (mut first, ready) = Socket::login(&running.info, "teams").await;
    let mut early = Socket::connect(&running.info, "v=10").await;
    for _ in 0..2 {
        early.send(&gateway::identify(&token(&running), gateway::ALL)).await;
        assert_eq!(early.op(9).await, false);
    }
    // Neither another bot nor a resume waits for a turn, and the first session goes on.
    Socket::login(&running.info, "qa").await;
    say(&running, "still here").await;
    assert_eq!(first.event("MESSAGE_CREATE").await["content"], "still here");
    let mut resumed = Socket::connect(&running.info, "v=10").await;
    resumed.send(&gateway::resume(&token(&running), &ready["session_id"], 2)).await;
    resumed.event("RESUMED").await;
    // A real client waits five seconds and is let in, on a new session.
    let mut patient = Connection::open(&running.info, "teams", gateway::ALL).await;
    assert_ne!(patient.until("READY").await["session_id"], ready["session_id"]);
    let bot = Caller::bot(&running.info, "teams");
    let limit = bot.ok("GET", "/gateway/bot", Value::Null).await["session_start_limit"].clone();
    assert_eq!((&limit["max_concurrency"], &limit["remaining"]), (&json!(1), &json!(998)));
    running.shutdown().await;
}

#[tokio::test]
async fn logins_run_out_and_the_gateway_says_how_many_are_left() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let left = async || {
        let gateway = bot.ok("GET", "/gateway/bot", Value::Null).await;
        gateway["session_start_limit"]["remaining"].as_u64().unwrap()
    };
    assert_eq!(left().await, 1000);
    Socket::login(&running.info, "teams").await;
    assert_eq!(left().await, 999);
    order(&running, json!({"logins_left": 1, "login_spacing_ms": 0})).await;
    assert_eq!(left().await, 1);
    Socket::login(&running.info, "teams").await;
    assert_eq!(left().await, 0);
    let mut over = Socket::connect(&running.info, "v=10").await;
    over.send(&gateway::identify(&token(&running), 1)).await;
    assert_eq!(over.ended().await, Some(4004));
    running.shutdown().await;
}
