//! What people press, type and fill in, and what their client then hears.

use serde_json::{Value, json};
use teams::local_guild::Running;

use crate::support::gateway::{self, Connection, Socket};
use crate::support::guild::{Caller, fresh, text};

fn callback(of: &Value) -> String {
    format!("/interactions/{}/{}/callback", text(&of["id"]), text(&of["token"]))
}

/// What a person's client hears: its feed of events.
struct Feed {
    response: reqwest::Response,
    heard: String,
}

impl Feed {
    async fn open(person: &Caller) -> Feed {
        let state = person.ok("GET", "/_local/state", Value::Null).await;
        let after = format!("{}.{}", text(&state["epoch"]), state["feed"]);
        let path = format!("/_local/events?after={after}");
        let response = person.request("GET", &path).send().await.unwrap();
        Feed { response, heard: String::new() }
    }

    /// The data of the next event of that name.
    async fn until(&mut self, name: &str) -> Value {
        loop {
            while let Some((line, rest)) = self.heard.split_once('\n') {
                let event = line.strip_prefix("data:").map(|text| text.trim().to_owned());
                self.heard = rest.to_owned();
                let event = event.map(|text| serde_json::from_str::<Value>(&text).unwrap());
                if let Some(event) = event.filter(|event| event["t"] == name) {
                    return event["d"].clone();
                }
            }
            let chunk = self.response.chunk().await.unwrap().expect("the feed goes on");
            self.heard.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

async fn card(running: &Running, bot: &Caller) -> Value {
    let rows = json!([
        {"type": 1, "components": [{"type": 3, "custom_id": "pick", "max_values": 2,
            "options": [{"label": "A", "value": "a"}, {"label": "B", "value": "b"}]}]},
        {"type": 1, "components": [{"type": 5, "custom_id": "who"}]},
        {"type": 1, "components": [{"type": 8, "custom_id": "where"}]},
        {"type": 1, "components": [{"type": 2, "style": 2, "label": "Off", "custom_id": "off", "disabled": true}]},
    ]);
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    bot.ok("POST", &send, json!({"content": "card", "components": rows})).await
}

#[tokio::test]
async fn menus_take_only_what_they_offer_and_say_what_was_meant() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let mut heard = Connection::open(&running.info, "teams", gateway::ALL).await;
    heard.until("GUILD_CREATE").await;
    let card = card(&running, &bot).await;
    let click = |custom_id: &str, values: Value| json!({"channel": "general", "message": card["id"], "custom_id": custom_id, "values": values});
    let guest = &running.info.users["guest"].id;
    for (custom_id, values) in [
        ("pick", json!([])),
        ("pick", json!(["c"])),
        ("pick", json!(["a", "b", "a"])),
        ("who", json!(["1"])),
        ("where", json!([guest])),
        ("off", Value::Null),
        ("unknown", Value::Null),
    ] {
        let (status, refused) = owner.call("POST", "/_local/click", click(custom_id, values)).await;
        assert_eq!((status, refused["code"].as_u64()), (400, Some(50035)), "{custom_id}");
    }
    // An attacker's client sends what it likes.
    let mut forged = click("off", json!(["x"]));
    forged["forged"] = json!(true);
    owner.ok("POST", "/_local/click", forged).await;
    let sent = heard.until("INTERACTION_CREATE").await;
    assert_eq!(
        (&sent["data"]["custom_id"], &sent["data"]["values"]),
        (&json!("off"), &json!(["x"]))
    );
    owner.ok("POST", "/_local/click", click("pick", json!(["b", "a"]))).await;
    let picked = heard.until("INTERACTION_CREATE").await;
    assert_eq!(
        (&picked["data"]["component_type"], &picked["data"]["values"]),
        (&json!(3), &json!(["b", "a"]))
    );
    owner.ok("POST", "/_local/click", click("who", json!([guest]))).await;
    let picked = heard.until("INTERACTION_CREATE").await;
    assert_eq!(picked["data"]["resolved"]["users"][guest]["username"], "guest");
    assert!(picked["data"]["resolved"]["members"][guest]["roles"].is_array());
    let relay = &running.info.channels["relay"];
    owner.ok("POST", "/_local/click", click("where", json!([relay]))).await;
    let picked = heard.until("INTERACTION_CREATE").await;
    assert_eq!(picked["data"]["resolved"]["channels"][relay]["name"], "relay");
    running.shutdown().await;
}

#[tokio::test]
async fn suggestions_come_while_a_command_is_typed() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let mut heard = Connection::open(&running.info, "teams", gateway::ALL).await;
    heard.until("GUILD_CREATE").await;
    let app = &running.info.bots["teams"].id;
    let command = json!([{"name": "status", "description": "How it is", "options": [
        {"type": 3, "name": "request", "description": "Which", "autocomplete": true},
        {"type": 6, "name": "whose", "description": "Whose"},
    ]}]);
    bot.ok("PUT", &format!("/applications/{app}/commands"), command).await;
    let mut feed = Feed::open(&owner).await;
    let typed = |options: Value| json!({"channel": "general", "command": "status", "options": options, "locale": "ko"});
    let half = json!([{"type": 3, "name": "request", "value": "R-", "focused": true}]);
    let typing = owner.ok("POST", "/_local/complete", typed(half)).await;
    let asked = heard.until("INTERACTION_CREATE").await;
    assert_eq!(
        (&asked["type"], &asked["locale"], &asked["id"]),
        (&json!(4), &json!("ko"), &typing["interaction"])
    );
    assert_eq!(asked["data"]["options"][0]["focused"], true);
    // Words are no answer to typing, and suggestions have limits.
    let many: Vec<Value> =
        (0..26).map(|it| json!({"name": it.to_string(), "value": "x"})).collect();
    for answer in [
        json!({"type": 4, "data": {"content": "x"}}),
        json!({"type": 8, "data": {"choices": many}}),
    ] {
        let (status, refused) = bot.call("POST", &callback(&asked), answer).await;
        assert_eq!((status, refused["code"].as_u64()), (400, Some(50035)));
    }
    let choices = json!([{"name": "R-1: a page", "value": "R-1"}]);
    bot.ok("POST", &callback(&asked), json!({"type": 8, "data": {"choices": choices}})).await;
    let shown = feed.until("CHOICES").await;
    assert_eq!((&shown["id"], &shown["data"]["choices"]), (&typing["interaction"], &choices));
    // A person in an option is looked up, and must exist.
    let guest = &running.info.users["guest"].id;
    let whose = |id: &str| typed(json!([{"type": 6, "name": "whose", "value": id}]));
    assert_eq!(owner.call("POST", "/_local/slash", whose("1")).await.0, 400);
    owner.ok("POST", "/_local/slash", whose(guest)).await;
    let given = heard.until("INTERACTION_CREATE").await;
    assert_eq!(given["data"]["resolved"]["users"][guest]["username"], "guest");
    running.shutdown().await;
}

#[tokio::test]
async fn a_dialog_is_filled_in_as_it_asks() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let mut heard = Connection::open(&running.info, "teams", gateway::ALL).await;
    heard.until("GUILD_CREATE").await;
    let mut feed = Feed::open(&owner).await;
    let row = json!([{"type": 1, "components": [{"type": 2, "style": 1, "label": "Ask", "custom_id": "ask"}]}]);
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let card = bot.ok("POST", &send, json!({"content": "card", "components": row})).await;
    let click = json!({"channel": "general", "message": card["id"], "custom_id": "ask"});
    let clicked = owner.ok("POST", "/_local/click", click).await;
    let asked = heard.until("INTERACTION_CREATE").await;
    let fill = |values: Value| json!({"interaction": clicked["interaction"], "values": values});
    // Nothing is open yet.
    assert_eq!(owner.call("POST", "/_local/modal", fill(json!({"why": "x"}))).await.0, 400);
    let dialog = |title: &str| {
        json!({"type": 9, "data": {"title": title, "custom_id": "reason", "components": [
            {"type": 1, "components": [{"type": 4, "custom_id": "why", "style": 1, "label": "Why", "min_length": 2, "max_length": 4}]},
            {"type": 18, "label": "How", "component": {"type": 3, "custom_id": "how", "required": false,
                "options": [{"label": "Fast", "value": "fast"}]}},
        ]}})
    };
    let (status, _) = bot.call("POST", &callback(&asked), dialog(&"x".repeat(46))).await;
    assert_eq!(status, 400);
    bot.ok("POST", &callback(&asked), dialog("A reason")).await;
    assert_eq!(feed.until("DIALOG").await["data"]["title"], "A reason");
    for values in [
        json!({}),
        json!({"why": "x"}),
        json!({"why": "xxxxx"}),
        json!({"why": "so", "stray": "x"}),
    ] {
        let (status, refused) = owner.call("POST", "/_local/modal", fill(values)).await;
        assert_eq!((status, refused["code"].as_u64()), (400, Some(50035)));
    }
    owner.ok("POST", "/_local/modal", fill(json!({"why": "so", "how": ["fast"]}))).await;
    let filled = heard.until("INTERACTION_CREATE").await;
    assert_eq!((&filled["type"], &filled["message"]["id"]), (&json!(5), &card["id"]));
    let rows = &filled["data"]["components"];
    assert_eq!(rows[0]["components"][0]["value"], "so");
    assert_eq!(rows[1]["component"]["values"], json!(["fast"]));
    // What answers a dialog says what led to it; a dialog never answers a dialog.
    let (status, _) = bot.call("POST", &callback(&filled), dialog("Again")).await;
    assert_eq!(status, 400);
    let path = format!("{}?with_response=true", callback(&filled));
    let made = bot.ok("POST", &path, json!({"type": 4, "data": {"content": "thanks"}})).await;
    let led =
        &made["resource"]["message"]["interaction_metadata"]["triggering_interaction_metadata"];
    assert_eq!((&led["id"], &led["interacted_message_id"]), (&clicked["interaction"], &card["id"]));
    running.shutdown().await;
}

#[tokio::test]
async fn what_a_bot_shows_is_seen_by_people_and_by_bots_that_ask() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    let order = json!({"bot": "qa", "flags": 1 << 13});
    owner.ok("POST", "/_local/flags", order).await;
    let mut watcher = Socket::connect(&running.info, "v=10").await;
    watcher.send(&gateway::identify(&running.info.bots["qa"].token, 1 | (1 << 8))).await;
    watcher.event("GUILD_CREATE").await;
    let (mut shown, ready) = Socket::login(&running.info, "teams").await;
    let id = &running.info.bots["teams"].id;
    // Its own comes first.
    while watcher.event("PRESENCE_UPDATE").await["user"]["id"] != id.as_str() {}
    let working = json!({"status": "dnd", "since": null, "afk": false,
        "activities": [{"name": "R-1", "type": 3, "state": "testing"}]});
    shown.send(&json!({"op": 3, "d": working})).await;
    let seen = watcher.event("PRESENCE_UPDATE").await;
    assert_eq!(
        (&seen["status"], &seen["activities"][0]["state"]),
        (&json!("dnd"), &json!("testing"))
    );
    let state = owner.ok("GET", "/_local/state", Value::Null).await;
    assert_eq!(state["presences"][id]["activities"][0]["name"], "R-1");
    // It goes with the connection, and comes back with a resume.
    drop(shown);
    assert_eq!(watcher.event("PRESENCE_UPDATE").await["status"], "offline");
    let mut back = Socket::connect(&running.info, "v=10").await;
    back.send(&gateway::resume(&running.info.bots["teams"].token, &ready["session_id"], 2)).await;
    back.event("RESUMED").await;
    let seen = watcher.event("PRESENCE_UPDATE").await;
    assert_eq!(
        (&seen["status"], &seen["activities"][0]["state"]),
        (&json!("dnd"), &json!("testing"))
    );
    running.shutdown().await;
}

#[tokio::test]
async fn a_bot_that_gets_in_hears_of_the_threads_there() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    let thread = json!({"channel": "general", "name": "room"});
    let thread = owner.ok("POST", "/_local/thread", thread).await;
    let take = json!({"bot": "qa", "channel": "general", "take": ["VIEW_CHANNEL"]});
    owner.ok("POST", "/_local/rights", take).await;
    let (mut outside, _) = Socket::login(&running.info, "qa").await;
    owner.ok("POST", "/_local/say", json!({"channel": thread["id"], "content": "unheard"})).await;
    let give = json!({"bot": "qa", "channel": "general", "give": ["VIEW_CHANNEL"]});
    owner.ok("POST", "/_local/rights", give).await;
    let synced = outside.event("THREAD_LIST_SYNC").await;
    assert_eq!(synced["threads"][0]["id"], thread["id"]);
    owner.ok("POST", "/_local/say", json!({"channel": thread["id"], "content": "heard"})).await;
    assert_eq!(outside.event("MESSAGE_CREATE").await["content"], "heard");
    running.shutdown().await;
}

#[tokio::test]
async fn reactions_go_one_by_one_by_emoji_and_all_at_once() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let (mut heard, _) = Socket::login(&running.info, "teams").await;
    let said = owner.ok("POST", "/_local/say", json!({"channel": "general", "content": "x"})).await;
    for emoji in ["✅", "👀", "🎉"] {
        let body = json!({"channel": "general", "message": said["id"], "emoji": emoji});
        owner.ok("POST", "/_local/react", body).await;
    }
    let at =
        format!("/channels/{}/messages/{}", running.info.channels["general"], text(&said["id"]));
    let guest = &running.info.users["owner"].id;
    bot.ok("DELETE", &format!("{at}/reactions/%E2%9C%85/{guest}"), Value::Null).await;
    assert_eq!(heard.event("MESSAGE_REACTION_REMOVE").await["emoji"]["name"], "✅");
    bot.ok("DELETE", &format!("{at}/reactions/%F0%9F%91%80"), Value::Null).await;
    assert_eq!(heard.event("MESSAGE_REACTION_REMOVE_EMOJI").await["emoji"]["name"], "👀");
    bot.ok("DELETE", &format!("{at}/reactions"), Value::Null).await;
    heard.event("MESSAGE_REACTION_REMOVE_ALL").await;
    assert_eq!(bot.ok("GET", &at, Value::Null).await.get("reactions"), None);
    running.shutdown().await;
}

#[tokio::test]
async fn commands_of_menus_name_the_person_or_message_they_are_for() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let mut heard = Connection::open(&running.info, "teams", gateway::ALL).await;
    heard.until("GUILD_CREATE").await;
    let app = &running.info.bots["teams"].id;
    let home = &running.info.guild_id;
    let list = json!([
        {"name": "Who is this", "type": 2}, {"name": "Ask about this", "type": 3},
        {"name": "ask", "description": "Ask"},
    ]);
    bot.ok("PUT", &format!("/applications/{app}/guilds/{home}/commands"), list).await;
    let guest = &running.info.users["guest"].id;
    let said = json!({"channel": "general", "content": "look at this"});
    let said = owner.ok("POST", "/_local/say", said).await;
    let mut feed = Feed::open(&owner).await;
    let on = |kind: u64, command: &str, target: &Value| json!({"channel": "general", "command": command, "type": kind, "target": target, "session": "tab-1"});
    owner.ok("POST", "/_local/context", on(2, "Who is this", &json!(guest))).await;
    let asked = heard.until("INTERACTION_CREATE").await;
    let data = &asked["data"];
    assert_eq!(
        (&asked["type"], &data["type"], &data["target_id"]),
        (&json!(2), &json!(2), &json!(guest))
    );
    assert_eq!(data["resolved"]["users"][guest]["username"], "guest");
    assert!(data["resolved"]["members"][guest]["roles"].is_array());
    assert_eq!((&data["guild_id"], &data["options"]), (&json!(home), &Value::Null));
    let text_of = json!({"type": 4, "data": {"content": "A guest."}});
    bot.ok("POST", &callback(&asked), text_of).await;
    let answer = feed.until("MESSAGE_CREATE").await["interaction_metadata"].clone();
    assert_eq!((&answer["command_type"], &answer["target_user"]["id"]), (&json!(2), &json!(guest)));

    owner.ok("POST", "/_local/context", on(3, "Ask about this", &said["id"])).await;
    let asked = heard.until("INTERACTION_CREATE").await;
    let data = &asked["data"];
    assert_eq!(data["target_id"], said["id"]);
    assert_eq!(data["resolved"]["messages"][text(&said["id"])]["content"], "look at this");
    // A dialog opens where it was asked for: the person's client gets its own name back.
    let dialog = json!({"type": 9, "data": {"title": "About", "custom_id": "about", "components": [
        {"type": 1, "components": [{"type": 4, "style": 1, "label": "What", "custom_id": "what"}]}]}});
    bot.ok("POST", &callback(&asked), dialog).await;
    let shown = feed.until("DIALOG").await;
    assert_eq!((&shown["id"], &shown["session"]), (&asked["id"], &json!("tab-1")));
    let filled =
        json!({"interaction": shown["id"], "custom_id": "about", "values": {"what": "all"}});
    owner.ok("POST", "/_local/modal", filled).await;
    let sent = heard.until("INTERACTION_CREATE").await;
    bot.ok(
        "POST",
        &callback(&sent),
        json!({"type": 4, "data": {"content": "Noted.", "flags": 64}}),
    )
    .await;
    let private = feed.until("MESSAGE_CREATE").await;

    // Names and targets have to fit together, and the message has to be one that all can see.
    for (kind, command, target, code) in [
        (3, "Who is this", &said["id"], 10063),
        (2, "Ask about this", &json!(guest), 10063),
        (1, "ask", &json!(guest), 50035),
        (2, "Who is this", &said["id"], 50035),
        (2, "Who is this", &json!("nobody"), 50035),
        (3, "Ask about this", &json!(guest), 10008),
        (3, "Ask about this", &private["id"], 10008),
    ] {
        let (_, refused) = owner.call("POST", "/_local/context", on(kind, command, target)).await;
        assert_eq!(refused["code"], code, "{kind} {command} {target}");
    }
    let slash = json!({"channel": "general", "command": "Who is this"});
    let (_, refused) = owner.call("POST", "/_local/slash", slash).await;
    assert_eq!(refused["code"], 10063, "it is no slash command");
    running.shutdown().await;
}
