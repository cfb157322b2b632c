//! The local guild's gateway, and the trouble that can be ordered.

use serde_json::{Value, json};

use crate::support::gateway::{self, Connection};
use crate::support::guild::{Caller, fresh, text};

#[tokio::test]
async fn a_bot_without_the_content_intent_reads_only_what_is_meant_for_it() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    let id = &running.info.bots["planner"].id;
    let mut reader = Connection::open(&running.info, "planner", gateway::ALL & !(1 << 15)).await;
    reader.until("GUILD_CREATE").await;
    owner.ok("POST", "/_local/say", json!({"channel": "general", "content": "secret"})).await;
    assert_eq!(reader.until("MESSAGE_CREATE").await["content"], "");
    let mention = format!("hello <@{id}>");
    owner.ok("POST", "/_local/say", json!({"channel": "general", "content": mention})).await;
    assert_eq!(reader.until("MESSAGE_CREATE").await["content"], mention.as_str());
    let dm = owner.ok("POST", "/_local/dm", json!({"bot": "planner"})).await;
    owner.ok("POST", "/_local/say", json!({"channel": dm["id"], "content": "between us"})).await;
    let direct = reader.until("MESSAGE_CREATE").await;
    assert_eq!((&direct["content"], &direct["guild_id"]), (&json!("between us"), &Value::Null));
    // Another bot has no part in it.
    let other = Caller::bot(&running.info, "qa");
    let (status, refused) =
        other.call("GET", &format!("/channels/{}/messages", text(&dm["id"])), Value::Null).await;
    assert_eq!((status, refused["code"].as_u64()), (403, Some(50001)));
    running.shutdown().await;
}

#[tokio::test]
async fn a_resumed_session_gets_what_it_missed() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    let mut first = Connection::open(&running.info, "teams", gateway::ALL).await;
    first.until("GUILD_CREATE").await;
    let fault = json!({"gateway": {"close": {"code": 4000}}});
    owner.ok("POST", "/_local/faults", fault).await;
    let session = first.lost().await;
    for word in ["one", "two"] {
        owner.ok("POST", "/_local/say", json!({"channel": "general", "content": word})).await;
    }
    let mut second = Connection::resume(&running.info, "teams", gateway::ALL, session).await;
    assert_eq!(second.until("MESSAGE_CREATE").await["content"], "one");
    assert_eq!(second.until("MESSAGE_CREATE").await["content"], "two");
    assert!(second.until("RESUMED").await.is_object());
    running.shutdown().await;
}

#[tokio::test]
async fn a_gateway_fault_for_one_bot_leaves_the_others_alone() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    let mut struck = Connection::open(&running.info, "qa", gateway::ALL).await;
    let mut spared = Connection::open(&running.info, "teams", gateway::ALL).await;
    struck.until("GUILD_CREATE").await;
    spared.until("GUILD_CREATE").await;
    owner.ok("POST", "/_local/faults", json!({"gateway": "reconnect", "bot": "qa"})).await;
    struck.until("RESUMED").await;
    let invalid = json!({"gateway": {"invalid_session": {"resumable": false}}, "bot": "qa"});
    owner.ok("POST", "/_local/faults", invalid).await;
    struck.until("READY").await;
    struck.until("GUILD_CREATE").await;
    // The spared connection goes on with the very next number: nothing came in between.
    let twice = json!({"duplicate_events": 1});
    owner.ok("POST", "/_local/faults", twice).await;
    owner.ok("POST", "/_local/say", json!({"channel": "general", "content": "twice"})).await;
    for bot in [&mut spared, &mut struck] {
        assert_eq!(bot.next_dispatch().await["content"], "twice");
        assert_eq!(bot.next_dispatch().await["content"], "twice");
    }
    owner.ok("POST", "/_local/faults", json!({"lose_events": 1})).await;
    for word in ["lost", "heard"] {
        owner.ok("POST", "/_local/say", json!({"channel": "general", "content": word})).await;
    }
    assert_eq!(spared.next_dispatch().await["content"], "heard");
    running.shutdown().await;
}

#[tokio::test]
async fn faults_strike_as_ordered_and_end() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let me = "/users/@me";
    let order = json!({"rest": [
        {"method": "GET", "path_contains": "/users/", "status": 429, "retry_after": 0.5, "global": true},
        {"path_contains": "/users/", "status": 502, "times": 2},
        {"path_contains": "/users/", "trouble": "drop"},
    ]});
    owner.ok("POST", "/_local/faults", order).await;
    let limited = bot.request("GET", me).send().await.unwrap();
    assert_eq!(limited.status(), 429);
    assert_eq!(limited.headers()["retry-after"], "1");
    assert_eq!(limited.headers()["x-ratelimit-scope"], "global");
    assert_eq!(limited.json::<Value>().await.unwrap()["retry_after"], 0.5);
    assert_eq!(bot.call("GET", me, Value::Null).await.0, 502);
    assert_eq!(bot.call("GET", me, Value::Null).await.0, 502);
    assert!(bot.request("GET", me).send().await.is_err());
    assert_eq!(bot.call("GET", me, Value::Null).await.0, 200);
    owner.ok("POST", "/_local/faults", json!({"down": true})).await;
    assert!(bot.request("GET", me).send().await.is_err());
    owner.ok("POST", "/_local/faults", json!({"clear": true})).await;
    assert_eq!(bot.call("GET", me, Value::Null).await.0, 200);
    // The work is done, but the answer is lost: the nonce finds it.
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let order = json!({"rest": [{"method": "POST", "path_contains": "/messages", "status": 500, "after": true}]});
    owner.ok("POST", "/_local/faults", order).await;
    let body = json!({"content": "once", "nonce": "n", "enforce_nonce": true});
    assert_eq!(bot.call("POST", &send, body.clone()).await.0, 500);
    assert_eq!(bot.call("POST", &send, body).await.0, 200);
    assert_eq!(bot.ok("GET", &send, Value::Null).await.as_array().unwrap().len(), 1);
    running.shutdown().await;
}
