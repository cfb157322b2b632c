//! Every answer of the local guild's REST side, judged by Discord's OpenAPI document.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use teams::local_guild::Running;

use crate::support::gateway::{self, Connection, Heard, Socket};
use crate::support::guild::{Caller, answer, fresh, text};
use crate::support::openapi::{Document, Operation};

const EMOJI: &str = "%E2%9C%85";

/// A caller whose every answer is judged.
struct Judged<'a> {
    bot: Caller,
    document: &'a mut Document,
    /// Operations that have succeeded.
    seen: BTreeSet<Operation>,
    faults: Vec<String>,
}

impl Judged<'_> {
    fn judge(&mut self, method: &str, path: &str, status: u16, body: &Value) {
        let Some(operation) = self.document.operation(method, path) else {
            self.faults.push(format!("{method} {path}: not in the document"));
            return;
        };
        for fault in self.document.judge(&operation, status, body) {
            self.faults.push(format!("{method} {} {status}: {fault}", operation.1));
        }
        if (200..300).contains(&status) {
            self.seen.insert(operation);
        }
    }

    /// A call that succeeds.
    async fn ok(&mut self, method: &str, path: &str, body: Value) -> Value {
        let (status, value) = self.bot.call(method, path, body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {value}");
        self.judge(method, path, status, &value);
        value
    }

    /// A call that is refused with a status and a code.
    async fn refused(&mut self, method: &str, path: &str, body: Value, expected: (u16, u64)) {
        let (status, value) = self.bot.call(method, path, body).await;
        assert_eq!(
            (status, value["code"].as_u64()),
            (expected.0, Some(expected.1)),
            "{method} {path}: {value}"
        );
        self.judge(method, path, status, &value);
    }
}

/// Everything that the local guild answers, found by asking: what it does not know is 404 with code 0.
async fn served(document: &Document, running: &Running) -> BTreeSet<Operation> {
    let bot = Caller::bot(&running.info, "qa");
    let mut all = BTreeSet::new();
    for (method, template) in document.operations() {
        let parts = template.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        let body = if method == "GET" { Value::Null } else { json!({}) };
        let (status, value) = bot.call(&method, &path, body).await;
        if status != 405 && !(status == 404 && value["code"] == 0) {
            all.insert((method, template));
        }
    }
    all
}

async fn who_and_where(it: &mut Judged<'_>, running: &Running) {
    let app = running.info.bots["teams"].id.clone();
    for path in
        ["/gateway", "/gateway/bot", "/users/@me", "/applications/@me", "/oauth2/applications/@me"]
    {
        it.ok("GET", path, Value::Null).await;
    }
    it.ok("GET", &format!("/applications/{app}"), Value::Null).await;
    it.ok("PATCH", "/applications/@me", json!({"description": "A team"})).await;
    it.ok("PATCH", &format!("/applications/{app}"), json!({"tags": ["team"]})).await;
    it.ok("PATCH", "/users/@me", json!({})).await;
    it.ok("GET", &format!("/users/{}", running.info.users["guest"].id), Value::Null).await;
    it.ok("GET", "/users/@me/guilds", Value::Null).await;
    it.refused("GET", "/users/1", Value::Null, (404, 10013)).await;
    it.refused("PATCH", "/applications/@me", json!({"flags": 1}), (400, 50035)).await;
    it.ok("POST", "/users/@me/channels", json!({"recipient_id": running.info.users["owner"].id}))
        .await;
}

async fn guild_and_roles(it: &mut Judged<'_>, running: &Running) {
    let guild = format!("/guilds/{}", running.info.guild_id);
    let guest = &running.info.users["guest"].id;
    for path in [
        "",
        "/members?limit=100",
        "/members/search?query=g",
        "/roles",
        "/roles/member-counts",
        "/emojis",
        "/stickers",
        "/webhooks",
    ] {
        it.ok("GET", &format!("{guild}{path}"), Value::Null).await;
    }
    it.ok("GET", &format!("{guild}/members/{guest}"), Value::Null).await;
    it.ok("PATCH", &format!("{guild}/members/@me"), json!({"nick": "The team"})).await;
    it.ok("PATCH", &format!("{guild}/members/{guest}"), json!({"nick": "Visitor"})).await;
    let role = json!({"name": "approver", "color": 255, "mentionable": true});
    let role = it.ok("POST", &format!("{guild}/roles"), role).await;
    let at = format!("{guild}/roles/{}", text(&role["id"]));
    it.ok("GET", &at, Value::Null).await;
    it.ok("PATCH", &at, json!({"hoist": true})).await;
    it.ok("PATCH", &format!("{guild}/roles"), json!([{"id": role["id"], "position": 2}])).await;
    let given = format!("{guild}/members/{guest}/roles/{}", text(&role["id"]));
    it.ok("PUT", &given, Value::Null).await;
    it.ok("DELETE", &given, Value::Null).await;
    it.ok("DELETE", &at, Value::Null).await;
    it.refused("GET", &at, Value::Null, (404, 10011)).await;
    it.refused("GET", "/guilds/1", Value::Null, (404, 10004)).await;
}

async fn channels(it: &mut Judged<'_>, running: &Running) {
    let guild = format!("/guilds/{}", running.info.guild_id);
    let category =
        it.ok("POST", &format!("{guild}/channels"), json!({"name": "Team", "type": 4})).await;
    let body = json!({"name": "room", "parent_id": category["id"], "topic": "t"});
    let made = it.ok("POST", &format!("{guild}/channels"), body).await;
    it.ok("GET", &format!("{guild}/channels"), Value::Null).await;
    it.ok("PATCH", &format!("{guild}/channels"), json!([{"id": made["id"], "position": 9}])).await;
    let at = format!("/channels/{}", text(&made["id"]));
    it.ok("GET", &at, Value::Null).await;
    it.ok("PATCH", &at, json!({"topic": "other"})).await;
    let overwrite = format!("{at}/permissions/{}", running.info.guild_id);
    it.ok("PUT", &overwrite, json!({"type": 0, "deny": "2048"})).await;
    it.ok("DELETE", &overwrite, Value::Null).await;
    it.ok("POST", &format!("{at}/typing"), Value::Null).await;
    it.ok("DELETE", &at, Value::Null).await;
    it.refused("GET", &at, Value::Null, (404, 10003)).await;
}

async fn messages(it: &mut Judged<'_>, running: &Running) {
    let general = format!("/channels/{}", running.info.channels["general"]);
    let send = format!("{general}/messages");
    let row = json!([{"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go"}]},
        {"type": 1, "components": [{"type": 3, "custom_id": "pick", "options": [{"label": "A", "value": "a"}]}]}]);
    let full = json!({
        "content": format!("hello <@{}>", running.info.users["owner"].id), "nonce": "1",
        "embeds": [{"title": "t", "description": "d", "fields": [{"name": "n", "value": "v"}],
            "footer": {"text": "f"}, "author": {"name": "a"}, "color": 255}],
        "components": row,
    });
    let first = it.ok("POST", &send, full).await;
    let part = reqwest::multipart::Part::bytes(b"bytes".as_slice()).file_name("a.txt");
    let form = reqwest::multipart::Form::new()
        .part("files[0]", part)
        .text("payload_json", json!({"attachments": [{"id": 0, "description": "d"}]}).to_string());
    let (status, filed) =
        answer(it.bot.request("POST", &send).multipart(form).send().await.unwrap()).await;
    it.judge("POST", &send, status, &filed);
    let reply = json!({"content": "re", "message_reference": {"message_id": first["id"]}});
    let reply = it.ok("POST", &send, reply).await;
    let at = |message: &Value| format!("{send}/{}", text(&message["id"]));
    it.ok("PATCH", &at(&first), json!({"content": "changed"})).await;
    it.ok("PUT", &format!("{}/reactions/{EMOJI}/@me", at(&first)), Value::Null).await;
    it.ok("GET", &at(&first), Value::Null).await;
    it.ok("GET", &format!("{}/reactions/{EMOJI}", at(&first)), Value::Null).await;
    it.ok("GET", &format!("{send}?limit=10"), Value::Null).await;
    it.ok("DELETE", &format!("{}/reactions/{EMOJI}/@me", at(&first)), Value::Null).await;
    let me = &running.info.bots["teams"].id;
    it.ok("PUT", &format!("{}/reactions/{EMOJI}/@me", at(&first)), Value::Null).await;
    it.ok("DELETE", &format!("{}/reactions/{EMOJI}/{me}", at(&first)), Value::Null).await;
    it.ok("DELETE", &format!("{}/reactions/{EMOJI}", at(&first)), Value::Null).await;
    it.ok("DELETE", &format!("{}/reactions", at(&first)), Value::Null).await;
    for pins in ["pins", "messages/pins"] {
        let pin = format!("{general}/{pins}/{}", text(&first["id"]));
        it.ok("PUT", &pin, Value::Null).await;
        it.ok("GET", &format!("{general}/{pins}"), Value::Null).await;
        it.ok("DELETE", &pin, Value::Null).await;
    }
    it.ok("DELETE", &at(&reply), Value::Null).await;
    let mut two = Vec::new();
    for _ in 0..2 {
        two.push(it.ok("POST", &send, json!({"content": "x"})).await["id"].clone());
    }
    it.ok("POST", &format!("{send}/bulk-delete"), json!({"messages": two})).await;
    it.refused("GET", &at(&reply), Value::Null, (404, 10008)).await;
    it.refused("POST", &send, json!({}), (400, 50006)).await;
    it.refused("POST", &send, json!({"content": "x".repeat(2001)}), (400, 50035)).await;
    let broken = it.bot.request("POST", &send).header("content-type", "application/json").body("{");
    let (status, body) = answer(broken.send().await.unwrap()).await;
    assert_eq!((status, body["code"].as_u64()), (400, Some(50109)));
    it.judge("POST", &send, status, &body);
    let stray = it.ok("POST", &send, json!({"content": "x", "no_such_field": {"a": 1}})).await;
    assert_eq!(stray["content"], "x");
}

async fn threads(it: &mut Judged<'_>, running: &Running) {
    let general = format!("/channels/{}", running.info.channels["general"]);
    let start = it.ok("POST", &format!("{general}/messages"), json!({"content": "start"})).await;
    let path = format!("{general}/messages/{}/threads", text(&start["id"]));
    let thread = it.ok("POST", &path, json!({"name": "room"})).await;
    it.refused("POST", &path, json!({"name": "room"}), (400, 160_004)).await;
    it.ok("GET", &format!("{general}/messages/{}", text(&start["id"])), Value::Null).await;
    let private =
        it.ok("POST", &format!("{general}/threads"), json!({"name": "p", "type": 12})).await;
    it.ok("POST", &format!("{general}/threads"), json!({"name": "q", "type": 11})).await;
    let at = format!("/channels/{}", text(&thread["id"]));
    let guest = &running.info.users["guest"].id;
    for who in ["@me", guest.as_str()] {
        it.ok("PUT", &format!("{at}/thread-members/{who}"), Value::Null).await;
    }
    it.ok("GET", &format!("{at}/thread-members"), Value::Null).await;
    it.ok("GET", &format!("{at}/thread-members/{guest}"), Value::Null).await;
    for who in ["@me", guest.as_str()] {
        it.ok("DELETE", &format!("{at}/thread-members/{who}"), Value::Null).await;
    }
    it.ok("GET", &format!("/guilds/{}/threads/active", running.info.guild_id), Value::Null).await;
    it.ok("PATCH", &at, json!({"archived": true, "locked": true})).await;
    let private = format!("/channels/{}", text(&private["id"]));
    it.ok("PATCH", &private, json!({"archived": true})).await;
    for list in [
        "threads/archived/public",
        "threads/archived/private",
        "users/@me/threads/archived/private",
    ] {
        let found = it.ok("GET", &format!("{general}/{list}?limit=5"), Value::Null).await;
        assert_eq!(found["threads"].as_array().unwrap().len(), 1, "{list}");
    }
    it.ok("DELETE", &private, Value::Null).await;
}

async fn webhooks(it: &mut Judged<'_>, running: &Running) {
    let general = format!("/channels/{}", running.info.channels["general"]);
    let pixel = "data:image/png;base64,iVBORw0KGgo=";
    let body = json!({"name": "voices", "avatar": pixel});
    let hook = it.ok("POST", &format!("{general}/webhooks"), body).await;
    it.ok("GET", &format!("{general}/webhooks"), Value::Null).await;
    let by_id = format!("/webhooks/{}", text(&hook["id"]));
    let by_token = format!("{by_id}/{}", text(&hook["token"]));
    for path in [&by_id, &by_token] {
        it.ok("GET", path, Value::Null).await;
        it.ok("PATCH", path, json!({"name": "other"})).await;
    }
    it.ok("POST", &by_token, json!({"content": "quiet"})).await;
    let body = json!({"content": "hello", "username": "Planner", "embeds": [{"title": "t"}]});
    let said = it.ok("POST", &format!("{by_token}?wait=true"), body).await;
    let message = format!("{by_token}/messages/{}", text(&said["id"]));
    it.ok("GET", &message, Value::Null).await;
    it.ok("PATCH", &message, json!({"content": "changed"})).await;
    it.ok("DELETE", &message, Value::Null).await;
    it.refused("GET", &format!("{by_id}/wrong"), Value::Null, (401, 50027)).await;
    it.ok("DELETE", &by_token, Value::Null).await;
    let hook = it.ok("POST", &format!("{general}/webhooks"), json!({"name": "second"})).await;
    it.ok("DELETE", &format!("/webhooks/{}", text(&hook["id"])), Value::Null).await;
    it.refused("GET", &by_id, Value::Null, (404, 10015)).await;
}

async fn commands(it: &mut Judged<'_>, running: &Running) {
    let app = format!("/applications/{}", running.info.bots["teams"].id);
    let command = json!({
        "name": "plan", "description": "Make a plan", "name_localizations": {"ko": "계획"},
        "options": [{"type": 3, "name": "goal", "description": "What for", "autocomplete": true}],
    });
    for base in
        [format!("{app}/commands"), format!("{app}/guilds/{}/commands", running.info.guild_id)]
    {
        it.ok("PUT", &base, json!([command])).await;
        let made =
            it.ok("POST", &base, json!({"name": "status", "description": "How it is"})).await;
        let listed = it.ok("GET", &base, Value::Null).await;
        assert_eq!(listed[0].get("name_localizations"), None);
        let listed = it.ok("GET", &format!("{base}?with_localizations=true"), Value::Null).await;
        assert_eq!(listed[0]["name_localizations"]["ko"], "계획");
        let one = format!("{base}/{}", text(&made["id"]));
        it.ok("GET", &one, Value::Null).await;
        it.ok("PATCH", &one, json!({"description": "How it goes"})).await;
        if base.contains("/guilds/") {
            it.ok("GET", &format!("{base}/permissions"), Value::Null).await;
        }
        it.ok("DELETE", &one, Value::Null).await;
        it.refused("POST", &base, json!({"name": "No Spaces", "description": "x"}), (400, 50035))
            .await;
    }
}

async fn interactions(it: &mut Judged<'_>, running: &Running) {
    let owner = Caller::person(&running.info, "owner");
    let app = running.info.bots["teams"].id.clone();
    let mut heard = Connection::open(&running.info, "teams", gateway::ALL).await;
    heard.until("GUILD_CREATE").await;
    let option = json!([{"type": 3, "name": "goal", "value": "a", "focused": true}]);
    let body = json!({"channel": "general", "command": "plan", "options": option, "locale": "ko"});
    owner.ok("POST", "/_local/complete", body.clone()).await;
    let typing = heard.until("INTERACTION_CREATE").await;
    assert_eq!((&typing["type"], &typing["locale"]), (&json!(4), &json!("ko")));
    let callback =
        |of: &Value| format!("/interactions/{}/{}/callback", text(&of["id"]), text(&of["token"]));
    let choices = json!({"type": 8, "data": {"choices": [{"name": "A", "value": "a"}]}});
    it.ok("POST", &callback(&typing), choices).await;
    // Every way to answer a command, each with the response that the client asks for.
    let dialog = json!({"title": "More", "custom_id": "more", "components": [
        {"type": 1, "components": [{"type": 4, "custom_id": "why", "style": 1, "label": "Why"}]}]});
    for (kind, data) in [(4, json!({"content": "now"})), (5, json!({"flags": 64})), (9, dialog)] {
        owner.ok("POST", "/_local/slash", body.clone()).await;
        let slash = heard.until("INTERACTION_CREATE").await;
        let path = format!("{}?with_response=true", callback(&slash));
        it.ok("POST", &path, json!({"type": kind, "data": data})).await;
        it.refused("POST", &path, json!({"type": 4}), (400, 40060)).await;
        let hook = format!("/webhooks/{app}/{}", text(&slash["token"]));
        if kind == 9 {
            continue;
        }
        it.ok("PATCH", &format!("{hook}/messages/@original"), json!({"content": "changed"})).await;
        it.ok("GET", &format!("{hook}/messages/@original"), Value::Null).await;
        let more = it.ok("POST", &hook, json!({"content": "more"})).await;
        it.ok("DELETE", &format!("{hook}/messages/{}", text(&more["id"])), Value::Null).await;
        it.ok("DELETE", &format!("{hook}/messages/@original"), Value::Null).await;
    }
    it.refused("POST", "/interactions/1/x/callback", json!({"type": 4}), (404, 10062)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_as_the_document_says() {
    let Some(mut document) = Document::open() else { return };
    let running = fresh().await;
    let served = served(&document, &running).await;
    let (mut socket, _) = Socket::login(&running.info, "teams").await;
    let bot = Caller::bot(&running.info, "teams");
    let mut it = Judged { bot, document: &mut document, seen: BTreeSet::new(), faults: Vec::new() };
    who_and_where(&mut it, &running).await;
    guild_and_roles(&mut it, &running).await;
    channels(&mut it, &running).await;
    messages(&mut it, &running).await;
    threads(&mut it, &running).await;
    webhooks(&mut it, &running).await;
    commands(&mut it, &running).await;
    interactions(&mut it, &running).await;
    events(&mut it, &running, &mut socket).await;
    // A bot that leaves is outside afterwards.
    let guild = running.info.guild_id.clone();
    it.bot = Caller::bot(&running.info, "qa");
    it.ok("DELETE", &format!("/users/@me/guilds/{guild}"), Value::Null).await;
    it.refused("GET", &format!("/guilds/{guild}"), Value::Null, (404, 10004)).await;
    it.faults.sort();
    it.faults.dedup();
    assert!(it.faults.is_empty(), "{} faults:\n{}", it.faults.len(), it.faults.join("\n"));
    let missing: Vec<_> = served.difference(&it.seen).collect();
    assert!(missing.is_empty(), "served and not walked: {missing:#?}");
    it.refused_outside().await;
    running.shutdown().await;
}

/// Every event that the contract names has come, and those whose data is what REST answers look like it.
async fn events(it: &mut Judged<'_>, running: &Running, socket: &mut Socket) {
    let owner = Caller::person(&running.info, "owner");
    for what in ["take", "give"] {
        let mut order = json!({"bot": "teams", "channel": "general"});
        order[what] = json!(["VIEW_CHANNEL"]);
        owner.ok("POST", "/_local/rights", order).await;
    }
    owner.ok("POST", "/_local/say", json!({"channel": "general", "content": "the end"})).await;
    let mut names = BTreeSet::new();
    loop {
        let Heard::Frame(frame) = socket.hear().await else { panic!("closed") };
        let (Some(name), data) = (frame["t"].as_str(), &frame["d"]) else { continue };
        let judged = match name {
            "MESSAGE_CREATE" | "MESSAGE_UPDATE" => Some(("MessageResponse", data)),
            "THREAD_CREATE" | "THREAD_UPDATE" => Some(("ThreadResponse", data)),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" => Some(("GuildChannelResponse", data)),
            "GUILD_MEMBER_UPDATE" => Some(("GuildMemberResponse", data)),
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => Some(("GuildRoleResponse", &data["role"])),
            _ => None,
        };
        if let Some((schema, object)) = judged {
            let faults = it.document.judge_object(schema, object);
            it.faults.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
        }
        names.insert(name.to_owned());
        if data["content"] == "the end" {
            break;
        }
    }
    for name in [
        "CHANNEL_CREATE",
        "CHANNEL_UPDATE",
        "CHANNEL_DELETE",
        "CHANNEL_PINS_UPDATE",
        "THREAD_CREATE",
        "THREAD_UPDATE",
        "THREAD_DELETE",
        "THREAD_LIST_SYNC",
        "THREAD_MEMBERS_UPDATE",
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_DELETE",
        "MESSAGE_DELETE_BULK",
        "MESSAGE_REACTION_ADD",
        "MESSAGE_REACTION_REMOVE",
        "MESSAGE_REACTION_REMOVE_ALL",
        "MESSAGE_REACTION_REMOVE_EMOJI",
        "TYPING_START",
        "INTERACTION_CREATE",
        "WEBHOOKS_UPDATE",
        "GUILD_ROLE_CREATE",
        "GUILD_ROLE_UPDATE",
        "GUILD_ROLE_DELETE",
        "GUILD_MEMBER_UPDATE",
    ] {
        assert!(names.contains(name), "{name} did not come: {names:?}");
    }
}

impl Judged<'_> {
    /// What is not served says so, whatever the document names.
    async fn refused_outside(&mut self) {
        self.refused("GET", "/voice/regions", Value::Null, (404, 0)).await;
        let (status, body) = self.bot.call("GET", "/no/such/route", Value::Null).await;
        assert_eq!(
            (status, &body["code"], &body["message"]),
            (404, &json!(0), &json!("404: Not Found"))
        );
        let (status, body) = self.bot.call("PUT", "/users/@me", Value::Null).await;
        assert_eq!((status, &body["code"]), (405, &json!(0)));
    }
}
