//! The local guild's REST side and its people's side.

use serde_json::{Value, json};
use teams::local_guild::PAGE_KEY;

use crate::support::gateway::{self, Connection};
use crate::support::guild::{Caller, answer, fresh, key_of, text};

#[tokio::test]
async fn a_nonce_is_honoured_and_limits_are_discords() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let body = json!({"content": "once", "nonce": "job-1", "enforce_nonce": true});
    let first = bot.ok("POST", &send, body.clone()).await;
    let second = bot.ok("POST", &send, body).await;
    assert_eq!(first["id"], second["id"]);
    assert_eq!(bot.ok("GET", &send, Value::Null).await.as_array().unwrap().len(), 1);

    for (body, code) in [
        (json!({"content": ""}), 50006),
        (json!({"content": "x".repeat(2001)}), 50035),
        (json!({"embeds": [{"title": "x".repeat(257)}]}), 50035),
        (json!({"content": "x", "nonce": "n".repeat(26)}), 50035),
        (json!({"content": 1, "embeds": 5}), 50035),
        (json!({"embeds": [{"description": 5}]}), 50035),
        (json!({"embeds": [{"title": "x", "fields": {}}]}), 50035),
        (json!({"embeds": [{"title": "x", "timestamp": "yesterday"}]}), 50035),
        (json!({"embeds": [{"title": "x", "color": -1}]}), 50035),
        (json!({"embeds": [{"title": "x", "footer": "y"}]}), 50035),
    ] {
        let (status, refused) = bot.call("POST", &send, body).await;
        assert_eq!((status, refused["code"].as_u64()), (400, Some(code)), "{refused}");
    }
    let body = json!({"embeds": [{"title": "x", "timestamp": "2026-11-28T01:02:03.000Z"}]});
    bot.ok("POST", &send, body).await;
    let everyone = format!("/channels/{}/permissions/1", running.info.channels["general"]);
    let (status, refused) = bot.call("PUT", &everyone, json!([])).await;
    assert_eq!((status, refused["code"].as_u64()), (400, Some(50109)), "{refused}");
    let fits = bot.ok("POST", &send, json!({"content": "가".repeat(2000)})).await;
    assert_eq!(text(&fits["content"]).chars().count(), 2000);
    for (path, expected) in [
        ("/channels/123/messages".to_owned(), (404, 10003)),
        (format!("{send}/123"), (404, 10008)),
        ("/users/123".to_owned(), (404, 10013)),
        ("/webhooks/123/abc".to_owned(), (404, 10015)),
        ("/guilds/123".to_owned(), (404, 10004)),
    ] {
        let (status, refused) = bot.call("GET", &path, Value::Null).await;
        assert_eq!((status, refused["code"].as_u64().unwrap()), expected, "{path}");
    }
    running.shutdown().await;
}

#[tokio::test]
async fn threads_webhooks_edits_and_backfill_work_as_on_the_platform() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let channel = format!("/channels/{}", running.info.channels["general"]);
    let start = bot.ok("POST", &format!("{channel}/messages"), json!({"content": "start"})).await;
    let id = text(&start["id"]);
    let threads = format!("{channel}/messages/{id}/threads");
    let (status, thread) = bot.call("POST", &threads, json!({"name": "room"})).await;
    assert_eq!((status, text(&thread["id"])), (201, id));
    let (status, refused) = bot.call("POST", &threads, json!({"name": "room"})).await;
    assert_eq!((status, refused["code"].as_u64()), (400, Some(160_004)));

    let hook = bot.ok("POST", &format!("{channel}/webhooks"), json!({"name": "voices"})).await;
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
    let (status, _) = bot.call("POST", &hook_path, json!({"content": "quietly"})).await;
    assert_eq!(status, 204);
    let (status, refused) =
        bot.call("POST", &hook_path, json!({"content": "x", "username": "My Discord"})).await;
    assert_eq!((status, refused["code"].as_u64()), (400, Some(50035)));
    let at = format!("{hook_path}/messages/{}?thread_id={id}", text(&spoken["id"]));
    let changed = bot.ok("PATCH", &at, json!({"content": "plan 2"})).await;
    assert_eq!(changed["content"], "plan 2");
    assert!(changed["edited_timestamp"].is_string());
    let body = json!({"content": null, "embeds": [{"title": "a card"}], "flags": 4});
    let changed = bot.ok("PATCH", &at, body).await;
    assert_eq!((text(&changed["content"]), changed["flags"].as_u64()), ("", Some(4)));
    assert_eq!(bot.call("DELETE", &at, Value::Null).await.0, 204);

    // What was written after a message is found by asking for it.
    let owner = Caller::person(&running.info, "owner");
    for word in ["one", "two"] {
        owner.ok("POST", "/_local/say", json!({"channel": id, "content": word})).await;
    }
    let missed =
        bot.ok("GET", &format!("/channels/{id}/messages?after={id}&limit=100"), Value::Null).await;
    let contents: Vec<&str> =
        missed.as_array().unwrap().iter().map(|it| text(&it["content"])).collect();
    assert_eq!(contents, ["two", "one"]);

    // Somebody else's message cannot be edited; an archived thread wakes when written to.
    let theirs = format!("/channels/{id}/messages/{}", text(&missed[0]["id"]));
    let (status, refused) = bot.call("PATCH", &theirs, json!({"content": "mine"})).await;
    assert_eq!((status, refused["code"].as_u64()), (403, Some(50005)));
    bot.ok("PATCH", &format!("/channels/{id}"), json!({"archived": true})).await;
    bot.ok("POST", &format!("/channels/{id}/messages"), json!({"content": "awake"})).await;
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
    let (status, sent) =
        answer(bot.request("POST", &send).multipart(form).send().await.unwrap()).await;
    assert_eq!(status, 200, "{sent}");
    let file = &sent["attachments"][0];
    assert_eq!((text(&file["filename"]), file.get("title")), ("a.html", None));
    let form = reqwest::multipart::Form::new().part("files[0]", part(b"plan", "계획.md"));
    let (_, named) = answer(bot.request("POST", &send).multipart(form).send().await.unwrap()).await;
    let named = &named["attachments"][0];
    assert_eq!((text(&named["filename"]), text(&named["title"])), ("__.md", "계획"));
    let response = reqwest::get(text(&file["url"])).await.unwrap();
    assert_eq!(response.headers()["content-disposition"], "attachment; filename=\"a.html\"");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(response.bytes().await.unwrap(), b"<script>1</script>".as_slice());
    running.shutdown().await;
}

#[tokio::test]
async fn a_button_is_clicked_once_and_answered_once() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let row = json!([{"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go"}]}]);
    let card = bot.ok("POST", &send, json!({"content": "card", "components": row})).await;
    let click = json!({"channel": "general", "message": card["id"], "custom_id": "go"});
    let wrong = json!({"channel": "general", "message": card["id"], "custom_id": "other"});
    assert_eq!(owner.call("POST", "/_local/click", wrong).await.0, 400);

    let mut gateway = Connection::open(&running.info, "teams", gateway::ALL).await;
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
    let (status, made) =
        bot.call("POST", &format!("{path}?with_response=true"), json!({"type": 5})).await;
    assert_eq!(status, 200, "{made}");
    let (status, refused) = bot.call("POST", &path, json!({"type": 6})).await;
    assert_eq!((status, refused["code"].as_u64()), (400, Some(40060)));
    let hook =
        format!("/webhooks/{}/{}", running.info.bots["teams"].id, text(&interaction["token"]));
    let shown =
        bot.ok("PATCH", &format!("{hook}/messages/%40original"), json!({"content": "done"})).await;
    assert_eq!(shown["id"], made["resource"]["message"]["id"]);
    assert_eq!(shown["content"], "done");
    let more = bot.ok("POST", &hook, json!({"content": "and more", "flags": 64})).await;
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
    bot.ok("PUT", &format!("/applications/{app}/commands"), body).await;
    let mut gateway = Connection::open(&running.info, "teams", gateway::ALL).await;
    gateway.until("GUILD_CREATE").await;
    let state = owner.ok("GET", "/_local/state", Value::Null).await;
    let after = format!("{}.{}", text(&state["epoch"]), state["feed"]);
    let mut feed =
        owner.request("GET", &format!("/_local/events?after={after}")).send().await.unwrap();
    let slash = json!({"channel": "general", "command": "plan", "nonce": "n-1"});
    let started = owner.ok("POST", "/_local/slash", slash.clone()).await;
    // Said once more, because the answer did not come, it is the same one.
    assert_eq!(owner.ok("POST", "/_local/slash", slash).await, started);
    let interaction = gateway.until("INTERACTION_CREATE").await;
    assert_eq!(interaction["id"], started["interaction"]);
    let other = json!({"channel": "general", "command": "plan", "nonce": "n-2"});
    let other = owner.ok("POST", "/_local/slash", other).await;
    assert_eq!(gateway.until("INTERACTION_CREATE").await["id"], other["interaction"]);
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
async fn strangers_are_turned_away() {
    let running = fresh().await;
    let http = reqwest::Client::new();
    let say = format!("{}/_local/say", running.info.base_url);
    let body = json!({"user": "owner", "channel": "general", "content": "x"});
    let bare = http.post(&say).json(&body).send().await.unwrap();
    assert_eq!(bare.status(), 401);
    let foreign =
        http.post(&say).header("origin", "http://evil.example").json(&body).send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    let rebound = http.post(&say).header("host", "evil.example").json(&body).send().await.unwrap();
    assert_eq!(rebound.status(), 403);
    let own = || http.post(&say).header("origin", &running.info.base_url).json(&body);
    // Any program can say where it comes from; the key is told to whoever opens the page.
    assert_eq!(own().send().await.unwrap().status(), 401);
    let wrong = "0123456789abcdef0123456789abcdef";
    assert_eq!(own().header(PAGE_KEY, wrong).send().await.unwrap().status(), 401);
    let page = own().header(PAGE_KEY, key_of(&running.info)).send().await.unwrap();
    assert_eq!(page.status(), 200);
    // A guest cannot speak as the owner, and a bot's token is not a person's.
    let guest = Caller::person(&running.info, "guest");
    assert_eq!(guest.call("POST", "/_local/say", body.clone()).await.0, 403);
    let bot = Caller::bot(&running.info, "teams");
    assert_eq!(bot.call("POST", "/_local/say", body).await.0, 401);
    let nobody =
        http.get(format!("{}/api/v10/users/@me", running.info.base_url)).send().await.unwrap();
    assert_eq!(nobody.status(), 401);
    running.shutdown().await;
}
