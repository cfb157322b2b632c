//! The local guild as bots and people meet it: REST, gateway, restarts, injected faults.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use teams::local_guild::{Config, GuildError, GuildInfo, serve};

use crate::support::guild::{Caller, answer, fresh};

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[tokio::test]
async fn a_nonce_is_honoured_and_limits_are_discords() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let body = json!({"content": "once", "nonce": "job-1", "enforce_nonce": true});
    let first = bot.ok("POST", &send, body.clone()).await;
    let second = bot.ok("POST", &send, body).await;
    assert_eq!(first["id"], second["id"]);
    assert_eq!(
        bot.ok("GET", &send, Value::Null)
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );

    for (body, code) in [
        (json!({"content": ""}), 50006),
        (json!({"content": "x".repeat(2001)}), 50035),
        (json!({"embeds": [{"title": "x".repeat(257)}]}), 50035),
        (json!({"content": "x", "nonce": "n".repeat(26)}), 50035),
        (json!({"content": 1, "embeds": 5}), 50035),
    ] {
        let (status, refused) = bot.call("POST", &send, body).await;
        assert_eq!(
            (status, refused["code"].as_u64()),
            (400, Some(code)),
            "{refused}"
        );
    }
    let fits = bot
        .ok("POST", &send, json!({"content": "가".repeat(2000)}))
        .await;
    assert_eq!(text(&fits["content"]).chars().count(), 2000);
    for (path, expected) in [
        ("/channels/123/messages".to_owned(), (404, 10003)),
        (format!("{send}/123"), (404, 10008)),
        ("/users/123".to_owned(), (404, 10013)),
        ("/webhooks/123/abc".to_owned(), (404, 10015)),
        ("/guilds/123".to_owned(), (404, 10004)),
    ] {
        let (status, refused) = bot.call("GET", &path, Value::Null).await;
        assert_eq!(
            (status, refused["code"].as_u64().unwrap()),
            expected,
            "{path}"
        );
    }
    running.shutdown().await;
}

#[tokio::test]
async fn threads_webhooks_edits_and_backfill_work_as_on_the_platform() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let channel = format!("/channels/{}", running.info.channels["general"]);
    let start = bot
        .ok(
            "POST",
            &format!("{channel}/messages"),
            json!({"content": "start"}),
        )
        .await;
    let id = text(&start["id"]);
    let threads = format!("{channel}/messages/{id}/threads");
    let (status, thread) = bot.call("POST", &threads, json!({"name": "room"})).await;
    assert_eq!((status, text(&thread["id"])), (201, id));
    let (status, refused) = bot.call("POST", &threads, json!({"name": "room"})).await;
    assert_eq!((status, refused["code"].as_u64()), (400, Some(160_004)));

    let hook = bot
        .ok(
            "POST",
            &format!("{channel}/webhooks"),
            json!({"name": "voices"}),
        )
        .await;
    let hook_path = format!("/webhooks/{}/{}", text(&hook["id"]), text(&hook["token"]));
    let spoken = bot
        .ok(
            "POST",
            &format!("{hook_path}?&wait=1&thread_id={id}"),
            json!({"content": "plan", "username": "Planner"}),
        )
        .await;
    assert_eq!(spoken["author"]["username"], "Planner");
    assert_eq!(spoken["webhook_id"], hook["id"]);
    assert_eq!(spoken["channel_id"].as_str(), Some(id));
    let (status, _) = bot
        .call("POST", &hook_path, json!({"content": "quietly"}))
        .await;
    assert_eq!(status, 204);
    let (status, refused) = bot
        .call(
            "POST",
            &hook_path,
            json!({"content": "x", "username": "My Discord"}),
        )
        .await;
    assert_eq!((status, refused["code"].as_u64()), (400, Some(50035)));
    let at = format!(
        "{hook_path}/messages/{}?thread_id={id}",
        text(&spoken["id"])
    );
    let changed = bot.ok("PATCH", &at, json!({"content": "plan 2"})).await;
    assert_eq!(changed["content"], "plan 2");
    assert!(changed["edited_timestamp"].is_string());
    assert_eq!(bot.call("DELETE", &at, Value::Null).await.0, 204);

    // What was written after a message is found by asking for it.
    let owner = Caller::person(&running.info, "owner");
    for word in ["one", "two"] {
        owner
            .ok(
                "POST",
                "/_local/say",
                json!({"channel": id, "content": word}),
            )
            .await;
    }
    let missed = bot
        .ok(
            "GET",
            &format!("/channels/{id}/messages?after={id}&limit=100"),
            Value::Null,
        )
        .await;
    let contents: Vec<&str> = missed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| text(&it["content"]))
        .collect();
    assert_eq!(contents, ["two", "one"]);

    // Somebody else's message cannot be edited; an archived thread wakes when written to.
    let theirs = format!("/channels/{id}/messages/{}", text(&missed[0]["id"]));
    let (status, refused) = bot.call("PATCH", &theirs, json!({"content": "mine"})).await;
    assert_eq!((status, refused["code"].as_u64()), (403, Some(50005)));
    bot.ok(
        "PATCH",
        &format!("/channels/{id}"),
        json!({"archived": true}),
    )
    .await;
    bot.ok(
        "POST",
        &format!("/channels/{id}/messages"),
        json!({"content": "awake"}),
    )
    .await;
    let woken = bot.ok("GET", &format!("/channels/{id}"), Value::Null).await;
    assert_eq!(woken["thread_metadata"]["archived"], false);
    running.shutdown().await;
}

#[tokio::test]
async fn files_come_back_as_they_were_sent_and_never_as_pages() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let part = |bytes: &'static [u8], name: &'static str| {
        reqwest::multipart::Part::bytes(bytes).file_name(name)
    };
    let form = reqwest::multipart::Form::new()
        .part("files[0]", part(b"<script>1</script>", "../a.html"))
        .text("payload_json", json!({"content": "", "attachments": [{"id": 0, "filename": "a.html", "description": null}]}).to_string());
    let (status, sent) = answer(
        bot.request("POST", &send)
            .multipart(form)
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(status, 200, "{sent}");
    let file = &sent["attachments"][0];
    assert_eq!(file["filename"], "a.html");
    let response = reqwest::get(text(&file["url"])).await.unwrap();
    assert_eq!(
        response.headers()["content-disposition"],
        "attachment; filename=\"a.html\""
    );
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(
        response.bytes().await.unwrap(),
        b"<script>1</script>".as_slice()
    );
    running.shutdown().await;
}

#[tokio::test]
async fn a_button_is_clicked_once_and_answered_once() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let row = json!([{"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go"}]}]);
    let card = bot
        .ok("POST", &send, json!({"content": "card", "components": row}))
        .await;
    let click = json!({"channel": "general", "message": card["id"], "custom_id": "go"});
    let wrong = json!({"channel": "general", "message": card["id"], "custom_id": "other"});
    assert_eq!(owner.call("POST", "/_local/click", wrong).await.0, 400);

    let mut gateway = gateway::Connection::open(&running.info, "teams", gateway::ALL).await;
    gateway.until("GUILD_CREATE").await;
    owner.ok("POST", "/_local/click", click).await;
    let interaction = gateway.until("INTERACTION_CREATE").await;
    assert_eq!(interaction["data"]["custom_id"], "go");
    assert_eq!(interaction["member"]["user"]["username"], "owner");
    let path = format!(
        "/interactions/{}/{}/callback",
        text(&interaction["id"]),
        text(&interaction["token"])
    );
    let (status, made) = bot
        .call(
            "POST",
            &format!("{path}?with_response=true"),
            json!({"type": 5}),
        )
        .await;
    assert_eq!(status, 200, "{made}");
    let (status, refused) = bot.call("POST", &path, json!({"type": 6})).await;
    assert_eq!((status, refused["code"].as_u64()), (400, Some(40060)));
    let hook = format!(
        "/webhooks/{}/{}",
        running.info.bots["teams"].id,
        text(&interaction["token"])
    );
    let shown = bot
        .ok(
            "PATCH",
            &format!("{hook}/messages/%40original"),
            json!({"content": "done"}),
        )
        .await;
    assert_eq!(shown["id"], made["resource"]["message"]["id"]);
    assert_eq!(shown["content"], "done");
    let more = bot
        .ok("POST", &hook, json!({"content": "and more", "flags": 64}))
        .await;
    assert_ne!(more["id"], shown["id"]);
    running.shutdown().await;
}

#[tokio::test]
async fn an_application_that_is_late_is_refused_and_the_person_is_told() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let body = json!([{"name": "plan", "description": "Make a plan"}]);
    let app = &running.info.bots["teams"].id;
    bot.ok("PUT", &format!("/applications/{app}/commands"), body)
        .await;
    let mut gateway = gateway::Connection::open(&running.info, "teams", gateway::ALL).await;
    gateway.until("GUILD_CREATE").await;
    let state = owner.ok("GET", "/_local/state", Value::Null).await;
    let after = format!("{}.{}", text(&state["epoch"]), state["feed"]);
    let mut feed = owner
        .request("GET", &format!("/_local/events?after={after}"))
        .send()
        .await
        .unwrap();
    let slash = json!({"channel": "general", "command": "plan"});
    let started = owner.ok("POST", "/_local/slash", slash).await;
    let interaction = gateway.until("INTERACTION_CREATE").await;
    assert_eq!(interaction["id"], started["interaction"]);
    let mut heard = String::new();
    while !heard.contains("INTERACTION_FAILED") {
        let chunk = feed.chunk().await.unwrap().expect("the feed goes on");
        heard.push_str(&String::from_utf8_lossy(&chunk));
    }
    let path = format!(
        "/interactions/{}/{}/callback",
        text(&interaction["id"]),
        text(&interaction["token"])
    );
    let (status, refused) = bot.call("POST", &path, json!({"type": 5})).await;
    assert_eq!((status, refused["code"].as_u64()), (404, Some(10062)));
    running.shutdown().await;
}

#[tokio::test]
async fn a_bot_without_the_content_intent_reads_only_what_is_meant_for_it() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    let id = &running.info.bots["planner"].id;
    let mut reader =
        gateway::Connection::open(&running.info, "planner", gateway::ALL & !(1 << 15)).await;
    reader.until("GUILD_CREATE").await;
    owner
        .ok(
            "POST",
            "/_local/say",
            json!({"channel": "general", "content": "secret"}),
        )
        .await;
    assert_eq!(reader.until("MESSAGE_CREATE").await["content"], "");
    let mention = format!("hello <@{id}>");
    owner
        .ok(
            "POST",
            "/_local/say",
            json!({"channel": "general", "content": mention}),
        )
        .await;
    assert_eq!(
        reader.until("MESSAGE_CREATE").await["content"],
        mention.as_str()
    );
    let dm = owner
        .ok("POST", "/_local/dm", json!({"bot": "planner"}))
        .await;
    owner
        .ok(
            "POST",
            "/_local/say",
            json!({"channel": dm["id"], "content": "between us"}),
        )
        .await;
    let direct = reader.until("MESSAGE_CREATE").await;
    assert_eq!(
        (&direct["content"], &direct["guild_id"]),
        (&json!("between us"), &Value::Null)
    );
    // Another bot has no part in it.
    let other = Caller::bot(&running.info, "qa");
    let (status, refused) = other
        .call(
            "GET",
            &format!("/channels/{}/messages", text(&dm["id"])),
            Value::Null,
        )
        .await;
    assert_eq!((status, refused["code"].as_u64()), (403, Some(50001)));
    running.shutdown().await;
}

#[tokio::test]
async fn a_resumed_session_gets_what_it_missed() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    let mut first = gateway::Connection::open(&running.info, "teams", gateway::ALL).await;
    first.until("GUILD_CREATE").await;
    let fault = json!({"gateway": {"close": {"code": 4000}}});
    owner.ok("POST", "/_local/faults", fault).await;
    let session = first.lost().await;
    for word in ["one", "two"] {
        owner
            .ok(
                "POST",
                "/_local/say",
                json!({"channel": "general", "content": word}),
            )
            .await;
    }
    let mut second =
        gateway::Connection::resume(&running.info, "teams", gateway::ALL, session).await;
    assert_eq!(second.until("MESSAGE_CREATE").await["content"], "one");
    assert_eq!(second.until("MESSAGE_CREATE").await["content"], "two");
    assert!(second.until("RESUMED").await.is_object());
    running.shutdown().await;
}

#[tokio::test]
async fn a_gateway_fault_for_one_bot_leaves_the_others_alone() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    let mut struck = gateway::Connection::open(&running.info, "qa", gateway::ALL).await;
    let mut spared = gateway::Connection::open(&running.info, "teams", gateway::ALL).await;
    struck.until("GUILD_CREATE").await;
    spared.until("GUILD_CREATE").await;
    owner
        .ok(
            "POST",
            "/_local/faults",
            json!({"gateway": "reconnect", "bot": "qa"}),
        )
        .await;
    struck.until("RESUMED").await;
    let invalid = json!({"gateway": {"invalid_session": {"resumable": false}}, "bot": "qa"});
    owner.ok("POST", "/_local/faults", invalid).await;
    struck.until("READY").await;
    struck.until("GUILD_CREATE").await;
    // The spared connection goes on with the very next number: nothing came in between.
    let twice = json!({"duplicate_events": 1});
    owner.ok("POST", "/_local/faults", twice).await;
    owner
        .ok(
            "POST",
            "/_local/say",
            json!({"channel": "general", "content": "twice"}),
        )
        .await;
    for bot in [&mut spared, &mut struck] {
        assert_eq!(bot.next_dispatch().await["content"], "twice");
        assert_eq!(bot.next_dispatch().await["content"], "twice");
    }
    owner
        .ok("POST", "/_local/faults", json!({"lose_events": 1}))
        .await;
    for word in ["lost", "heard"] {
        owner
            .ok(
                "POST",
                "/_local/say",
                json!({"channel": "general", "content": word}),
            )
            .await;
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
    owner
        .ok("POST", "/_local/faults", json!({"down": true}))
        .await;
    assert!(bot.request("GET", me).send().await.is_err());
    owner
        .ok("POST", "/_local/faults", json!({"clear": true}))
        .await;
    assert_eq!(bot.call("GET", me, Value::Null).await.0, 200);
    // The work is done, but the answer is lost: the nonce finds it.
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let order = json!({"rest": [{"method": "POST", "path_contains": "/messages", "status": 500, "after": true}]});
    owner.ok("POST", "/_local/faults", order).await;
    let body = json!({"content": "once", "nonce": "n", "enforce_nonce": true});
    assert_eq!(bot.call("POST", &send, body.clone()).await.0, 500);
    assert_eq!(bot.call("POST", &send, body).await.0, 200);
    assert_eq!(
        bot.ok("GET", &send, Value::Null)
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
    running.shutdown().await;
}

#[tokio::test]
async fn strangers_are_turned_away() {
    let running = fresh().await;
    let http = reqwest::Client::new();
    let say = format!("{}/_local/say", running.info.base_url);
    let body = json!({"user": "owner", "channel": "general", "content": "x"});
    let bare = http.post(&say).json(&body).send().await.unwrap();
    assert_eq!(bare.status(), 401);
    let foreign = http
        .post(&say)
        .header("origin", "http://evil.example")
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(foreign.status(), 403);
    let rebound = http
        .post(&say)
        .header("host", "evil.example")
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(rebound.status(), 403);
    let page = http
        .post(&say)
        .header("origin", &running.info.base_url)
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(page.status(), 200);
    // A guest cannot speak as the owner, and a bot's token is not a person's.
    let guest = Caller::person(&running.info, "guest");
    assert_eq!(guest.call("POST", "/_local/say", body.clone()).await.0, 403);
    let bot = Caller::bot(&running.info, "teams");
    assert_eq!(bot.call("POST", "/_local/say", body).await.0, 401);
    let nobody = http
        .get(format!("{}/api/v10/users/@me", running.info.base_url))
        .send()
        .await
        .unwrap();
    assert_eq!(nobody.status(), 401);
    running.shutdown().await;
}

/// The real binary, so that it can be killed.
struct Process {
    child: Child,
    info: GuildInfo,
}

impl Process {
    fn start(dir: &Path) -> Process {
        let mut child = Command::new(env!("CARGO_BIN_EXE_teams"))
            .args(["local-guild", "--json", "--parent-pipe", "--dir"])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Process {
            child,
            info: serde_json::from_str(&line).unwrap(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn what_was_answered_outlives_kill_and_a_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    let first = Process::start(dir.path());
    let bot = Caller::bot(&first.info, "teams");
    let channel = format!("/channels/{}", first.info.channels["general"]);
    let send = format!("{channel}/messages");
    let body = json!({"content": "kept", "nonce": "n-1", "enforce_nonce": true});
    let kept = bot.ok("POST", &send, body.clone()).await;
    bot.ok(
        "POST",
        &format!("{send}/{}/threads", text(&kept["id"])),
        json!({"name": "room"}),
    )
    .await;
    let hook = bot
        .ok(
            "POST",
            &format!("{channel}/webhooks"),
            json!({"name": "voices"}),
        )
        .await;
    let part = reqwest::multipart::Part::bytes(b"bytes".as_slice()).file_name("a.txt");
    let form = reqwest::multipart::Form::new().part("files[0]", part);
    let (_, filed) = answer(
        bot.request("POST", &send)
            .multipart(form)
            .send()
            .await
            .unwrap(),
    )
    .await;
    let before = first.info.clone();
    drop(first);

    let log = dir.path().join("guild.jsonl");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes.extend_from_slice(b"[{\"c\":\"message\",\"v\":{\"id\":\"1");
    std::fs::write(&log, bytes).unwrap();

    let second = Process::start(dir.path());
    assert_eq!(second.info.guild_id, before.guild_id);
    assert_eq!(second.info.channels, before.channels);
    assert_eq!(second.info.bots["qa"].token, before.bots["qa"].token);
    let bot = Caller::bot(&second.info, "teams");
    assert_eq!(bot.ok("POST", &send, body).await["id"], kept["id"]);
    let thread = bot
        .ok(
            "GET",
            &format!("/channels/{}", text(&kept["id"])),
            Value::Null,
        )
        .await;
    assert_eq!(thread["name"], "room");
    let hook = format!(
        "/webhooks/{}/{}?wait=true",
        text(&hook["id"]),
        text(&hook["token"])
    );
    let later = bot
        .ok("POST", &hook, json!({"content": "still here"}))
        .await;
    let number = |value: &Value| text(value).parse::<u64>().unwrap();
    assert!(number(&later["id"]) > number(&filed["id"]));
    let found = bot
        .ok(
            "GET",
            &format!("{send}/{}", text(&filed["id"])),
            Value::Null,
        )
        .await;
    let file = reqwest::get(text(&found["attachments"][0]["url"]))
        .await
        .unwrap();
    assert_eq!(file.bytes().await.unwrap(), b"bytes".as_slice());
    // A second server on the folder is refused.
    let busy = serve(Config {
        port: 0,
        dir: Some(dir.path().to_owned()),
    })
    .await;
    assert!(matches!(busy, Err(GuildError::Busy { .. })));
}

#[tokio::test]
async fn a_clean_end_frees_the_folder_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let config = || Config {
        port: 0,
        dir: Some(dir.path().to_owned()),
    };
    let first = serve(config()).await.unwrap();
    let owner = Caller::person(&first.info, "owner");
    owner
        .ok(
            "POST",
            "/_local/say",
            json!({"channel": "general", "content": "kept"}),
        )
        .await;
    // An open gateway connection and an open feed must not hold the end up.
    let mut gateway = gateway::Connection::open(&first.info, "teams", gateway::ALL).await;
    gateway.until("GUILD_CREATE").await;
    let feed = owner.request("GET", "/_local/events").send().await.unwrap();
    assert_eq!(feed.status(), 200);
    first.shutdown().await;
    let second = serve(config()).await.unwrap();
    let owner = Caller::person(&second.info, "owner");
    let messages = owner
        .ok("GET", "/_local/messages?channel=general", Value::Null)
        .await;
    assert_eq!(messages[0]["content"], "kept");
    second.shutdown().await;
}

#[test]
fn it_ends_with_the_process_that_started_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::start(dir.path());
    drop(process.child.stdin.take());
    assert!(process.child.wait().unwrap().success());
}

mod gateway {
    //! A gateway client that keeps its session: twilight's.

    use futures_util::StreamExt as _;
    use serde_json::Value;
    use teams::local_guild::GuildInfo;
    use tokio::time::{Duration, timeout};
    use twilight_gateway::{ConfigBuilder, Intents, Message, Session, Shard, ShardId};

    /// Everything that is not about voice, automation or polls.
    pub(super) const ALL: u64 = 0xFE23;

    pub(super) struct Connection(Shard);

    impl Connection {
        pub(super) async fn open(info: &GuildInfo, bot: &str, intents: u64) -> Connection {
            Connection(Shard::with_config(
                ShardId::ONE,
                config(info, bot, intents).build(),
            ))
        }

        pub(super) async fn resume(
            info: &GuildInfo,
            bot: &str,
            intents: u64,
            session: Session,
        ) -> Connection {
            let config = config(info, bot, intents).session(session);
            Connection(Shard::with_config(ShardId::ONE, config.build()))
        }

        async fn next(&mut self) -> Message {
            let next = timeout(Duration::from_secs(30), self.0.next()).await;
            next.expect("an event comes")
                .expect("the connection goes on")
                .expect("it is readable")
        }

        /// The data of the next event, whatever its name.
        pub(super) async fn next_dispatch(&mut self) -> Value {
            loop {
                if let Message::Text(text) = self.next().await {
                    let event: Value = serde_json::from_str(&text).unwrap();
                    if event["op"] == 0 {
                        return event["d"].clone();
                    }
                }
            }
        }

        /// The data of the next event of that name.
        pub(super) async fn until(&mut self, name: &str) -> Value {
            loop {
                if let Message::Text(text) = self.next().await {
                    let event: Value = serde_json::from_str(&text).unwrap();
                    if event["t"] == name {
                        return event["d"].clone();
                    }
                }
            }
        }

        /// Waits for the end of the connection; what is left is the session.
        pub(super) async fn lost(mut self) -> Session {
            while !matches!(self.next().await, Message::Close(_)) {}
            self.0.session().expect("a session is open").clone()
        }
    }

    fn config(info: &GuildInfo, bot: &str, intents: u64) -> ConfigBuilder {
        let intents = Intents::from_bits_truncate(intents);
        ConfigBuilder::new(info.bots[bot].token.clone(), intents)
            .proxy_url(info.gateway_url.clone())
    }
}
