//! Rights, roles, channels and applications in the local guild: what setting up a server needs, and
//! what may be missing.

use serde_json::{Value, json};
use teams::local_guild::PAGE_KEY;

use crate::support::gateway::{self, Connection};
use crate::support::guild::{Caller, fresh, key_of, text};

/// Status and code of a call.
async fn refused(caller: &Caller, method: &str, path: &str, body: Value) -> (u16, Option<u64>) {
    let (status, value) = caller.call(method, path, body).await;
    (status, value["code"].as_u64())
}

#[tokio::test]
async fn a_new_bot_is_outside_until_its_invite_link_is_opened() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    let guild = format!("/guilds/{}", running.info.guild_id);
    let made = owner.ok("POST", "/_local/bot", json!({"name": "newcomer"})).await;
    let bot = Caller::token(&running.info, text(&made["token"]));
    let mut connection = Connection::login(&running.info, text(&made["token"]), 1).await;
    let ready = connection.until("READY").await;
    assert_eq!(ready["guilds"], json!([]));
    assert_eq!(bot.ok("GET", "/users/@me/guilds", Value::Null).await, json!([]));
    assert_eq!(refused(&bot, "GET", &guild, Value::Null).await, (404, Some(10004)));
    let general = format!("/channels/{}/messages", running.info.channels["general"]);
    let hello = json!({"content": "hello"});
    assert_eq!(refused(&bot, "POST", &general, hello.clone()).await, (403, Some(50001)));

    // Privileged intents are switched on by the application itself, for small applications.
    let application = bot.ok("GET", "/applications/@me", Value::Null).await;
    assert_eq!(application["flags"], 0);
    let me = "/applications/@me";
    assert_eq!(refused(&bot, "PATCH", me, json!({"flags": 1 << 18})).await, (400, Some(50035)));
    let flags = (1 << 15) | (1 << 19);
    assert_eq!(bot.ok("PATCH", me, json!({"flags": flags})).await["flags"], flags);
    assert_eq!(bot.ok("GET", "/oauth2/applications/@me", Value::Null).await["flags"], flags);

    // A person opens the link and presses the button on its page.
    let link = format!("{}&permissions={}", text(&made["invite"]), (1 << 10) | (1 << 4));
    let page = reqwest::get(&link).await.unwrap().text().await.unwrap();
    assert!(page.contains("newcomer") && page.contains("manage channels"), "{page}");
    let http = reqwest::Client::new();
    let stranger = http.post(&link).send().await.unwrap();
    assert_eq!(stranger.status(), 401);
    let origin = &running.info.base_url;
    let pressed = http.post(&link).header("origin", origin);
    let pressed = pressed.header(PAGE_KEY, key_of(&running.info)).send().await.unwrap();
    assert_eq!(pressed.status(), 204);
    assert_eq!(connection.until("GUILD_CREATE").await["id"], running.info.guild_id.as_str());
    let guilds = bot.ok("GET", "/users/@me/guilds", Value::Null).await;
    let rights: u64 = text(&guilds[0]["permissions"]).parse().unwrap();
    assert!(rights & (1 << 4) != 0 && rights & (1 << 29) == 0, "{guilds}");
    bot.ok("POST", &general, hello).await;
    let member =
        bot.ok("GET", &format!("{guild}/members/{}", text(&made["id"])), Value::Null).await;
    let roles = bot.ok("GET", &format!("{guild}/roles"), Value::Null).await;
    let own = roles.as_array().unwrap().iter().find(|it| it["id"] == member["roles"][0]).unwrap();
    assert_eq!((&own["managed"], &own["tags"]["bot_id"]), (&json!(true), &made["id"]));
    owner.ok("POST", "/_local/kick", json!({"bot": "newcomer"})).await;
    connection.until("GUILD_DELETE").await;
    assert_eq!(bot.ok("GET", "/users/@me/guilds", Value::Null).await, json!([]));
    running.shutdown().await;
}

#[tokio::test]
async fn privileged_intents_need_their_switch() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    let made = owner.ok("POST", "/_local/bot", json!({"name": "newcomer"})).await;
    for (intent, flag) in [(1_u64 << 15, 1_u64 << 19), (1 << 1, 1 << 15), (1 << 8, 1 << 13)] {
        owner.ok("POST", "/_local/flags", json!({"bot": "newcomer", "flags": 0})).await;
        let token = text(&made["token"]);
        let refused = Connection::login(&running.info, token, 1 | intent).await;
        assert_eq!(refused.closed().await, Some(4014), "intent {intent}");
        owner.ok("POST", "/_local/flags", json!({"bot": "newcomer", "flags": flag})).await;
        let mut taken = Connection::login(&running.info, token, 1 | intent).await;
        assert_eq!(taken.until("READY").await["application"]["flags"], flag);
    }
    running.shutdown().await;
}

#[tokio::test]
async fn roles_are_made_given_and_removed_below_ones_own() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let mut heard = Connection::open(&running.info, "teams", gateway::ALL).await;
    heard.until("GUILD_CREATE").await;
    let guild = format!("/guilds/{}", running.info.guild_id);
    let body =
        json!({"name": "approver", "mentionable": true, "color": 0xFF_00FF, "permissions": "0"});
    let role = bot.ok("POST", &format!("{guild}/roles"), body).await;
    assert_eq!((&role["name"], &role["permissions"]), (&json!("approver"), &json!("0")));
    assert_eq!(heard.until("GUILD_ROLE_CREATE").await["role"]["id"], role["id"]);
    let at = format!("{guild}/roles/{}", text(&role["id"]));
    assert_eq!(bot.ok("PATCH", &at, json!({"name": "approvers"})).await["name"], "approvers");
    let whole = json!({"permissions": (1_u64 << 3).to_string()});
    assert_eq!(refused(&bot, "PATCH", &at, whole).await, (403, Some(50013)));
    let guest = &running.info.users["guest"].id;
    let given = format!("{guild}/members/{guest}/roles/{}", text(&role["id"]));
    assert_eq!(bot.call("PUT", &given, Value::Null).await.0, 204);
    let roles = |member: Value| member["roles"].clone();
    let member = format!("{guild}/members/{guest}");
    assert_eq!(roles(bot.ok("GET", &member, Value::Null).await), json!([role["id"]]));
    let update = heard.until("GUILD_MEMBER_UPDATE").await;
    assert_eq!(update["user"]["id"], guest.as_str());
    assert_eq!(bot.call("DELETE", &given, Value::Null).await.0, 204);
    bot.ok("PUT", &given, Value::Null).await;
    assert_eq!(bot.call("DELETE", &at, Value::Null).await.0, 204);
    assert_eq!(roles(bot.ok("GET", &member, Value::Null).await), json!([]));
    assert_eq!(refused(&bot, "GET", &at, Value::Null).await, (404, Some(10011)));

    // Its own role and what stands above are out of reach, and so is everything without the right.
    let me = bot.ok("GET", &format!("{guild}/members/@me"), Value::Null).await;
    let own = format!("{guild}/roles/{}", text(&me["roles"][0]));
    assert_eq!(refused(&bot, "DELETE", &own, Value::Null).await, (403, Some(50013)));
    let take = json!({"bot": "teams", "take": ["MANAGE_ROLES"]});
    owner.ok("POST", "/_local/rights", take).await;
    let body = json!({"name": "more"});
    let path = format!("{guild}/roles");
    assert_eq!(refused(&bot, "POST", &path, body.clone()).await, (403, Some(50013)));
    owner.ok("POST", "/_local/rights", json!({"bot": "teams", "give": ["MANAGE_ROLES"]})).await;
    let last = bot.ok("POST", &path, body).await;
    owner.ok("POST", "/_local/remove", json!({"role": last["id"]})).await;
    running.shutdown().await;
}

#[tokio::test]
async fn channels_stand_in_categories_and_carry_overwrites() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let guild = format!("/guilds/{}/channels", running.info.guild_id);
    let hidden = json!([
        {"id": running.info.guild_id, "type": 0, "allow": "0", "deny": "1024"},
        {"id": running.info.bots["teams"].id, "type": 1, "allow": "1024", "deny": "0"},
    ]);
    let body = json!({"name": "The Team", "type": 4, "permission_overwrites": hidden});
    let (status, category) = bot.call("POST", &guild, body).await;
    assert_eq!(
        (status, &category["type"], &category["name"]),
        (201, &json!(4), &json!("The Team"))
    );
    let body = json!({"name": "Relay Two", "topic": "hand-offs", "parent_id": category["id"]});
    let made = bot.ok("POST", &guild, body).await;
    assert_eq!((&made["name"], &made["parent_id"]), (&json!("relay-two"), &category["id"]));
    assert_eq!(made["permission_overwrites"], hidden, "a channel takes over its category's");
    let inside = format!("/channels/{}", text(&made["id"]));
    let hello = json!({"content": "hello"});
    bot.ok("POST", &format!("{inside}/messages"), hello.clone()).await;

    // Who is shut out neither reads nor hears nor sees it on the page.
    let other = Caller::bot(&running.info, "qa");
    let mut deaf = Connection::open(&running.info, "qa", gateway::ALL).await;
    let listed = deaf.until("GUILD_CREATE").await["channels"].as_array().unwrap().len();
    assert_eq!(listed, 4);
    assert_eq!(refused(&other, "GET", &inside, Value::Null).await, (403, Some(50001)));
    bot.ok("POST", &format!("{inside}/messages"), hello.clone()).await;
    let guest = Caller::person(&running.info, "guest");
    let seen = guest.ok("GET", "/_local/state", Value::Null).await;
    assert!(!seen["channels"].as_array().unwrap().iter().any(|it| it["id"] == made["id"]));
    let general = format!("/channels/{}", running.info.channels["general"]);
    bot.ok("POST", &format!("{general}/messages"), json!({"content": "for all"})).await;
    assert_eq!(deaf.until("MESSAGE_CREATE").await["content"], "for all");

    let moved = bot.ok("PATCH", &inside, json!({"parent_id": null, "topic": "new"})).await;
    assert_eq!((&moved["parent_id"], &moved["topic"]), (&Value::Null, &json!("new")));
    let own = format!("{inside}/permissions/{}", running.info.guild_id);
    assert_eq!(bot.call("DELETE", &own, Value::Null).await.0, 204);
    other.ok("GET", &inside, Value::Null).await;
    let into = format!("/channels/{}/messages", text(&category["id"]));
    assert_eq!(refused(&bot, "POST", &into, hello.clone()).await, (400, Some(50008)));
    bot.ok("PATCH", &inside, json!({"parent_id": category["id"]})).await;
    let category_path = format!("/channels/{}", text(&category["id"]));
    bot.ok("DELETE", &category_path, Value::Null).await;
    assert_eq!(bot.ok("GET", &inside, Value::Null).await["parent_id"], Value::Null);
    owner.ok("POST", "/_local/remove", json!({"channel": made["id"]})).await;
    assert_eq!(refused(&bot, "GET", &inside, Value::Null).await, (404, Some(10003)));
    running.shutdown().await;
}

/// Takes one right from the bot, in one channel, and expects the call to be refused for it; then
/// gives it back, and expects the call to be granted.
async fn needs(
    running: &teams::local_guild::Running,
    right: &str,
    method: &str,
    path: &str,
    body: Value,
) {
    let owner = Caller::person(&running.info, "owner");
    let bot = Caller::bot(&running.info, "teams");
    let order = |what: &str| {
        let mut order = json!({"bot": "teams", "channel": "general"});
        order[what] = json!([right]);
        order
    };
    owner.ok("POST", "/_local/rights", order("take")).await;
    let expected = if right == "VIEW_CHANNEL" { 50001 } else { 50013 };
    let found = refused(&bot, method, path, body.clone()).await;
    assert_eq!(found, (403, Some(expected)), "{right}: {method} {path}");
    owner.ok("POST", "/_local/rights", order("give")).await;
    let (status, answer) = bot.call(method, path, body).await;
    assert!((200..300).contains(&status), "{right}: {status} {answer}");
}

#[tokio::test]
async fn every_right_that_the_team_uses_is_missed_where_it_is_missing() {
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let owner = Caller::person(&running.info, "owner");
    let general = format!("/channels/{}", running.info.channels["general"]);
    let messages = format!("{general}/messages");
    let theirs = json!({"channel": "general", "content": "theirs"});
    let theirs = owner.ok("POST", "/_local/say", theirs).await;
    let theirs = format!("{messages}/{}", text(&theirs["id"]));
    let hello = json!({"content": "hello"});
    needs(&running, "VIEW_CHANNEL", "GET", &general, Value::Null).await;
    needs(&running, "SEND_MESSAGES", "POST", &messages, hello.clone()).await;
    needs(&running, "EMBED_LINKS", "POST", &messages, json!({"embeds": [{"title": "t"}]})).await;
    needs(
        &running,
        "MANAGE_WEBHOOKS",
        "POST",
        &format!("{general}/webhooks"),
        json!({"name": "v"}),
    )
    .await;
    needs(&running, "MANAGE_CHANNELS", "PATCH", &general, json!({"topic": "t"})).await;
    needs(
        &running,
        "CREATE_PUBLIC_THREADS",
        "POST",
        &format!("{theirs}/threads"),
        json!({"name": "r"}),
    )
    .await;
    needs(
        &running,
        "ADD_REACTIONS",
        "PUT",
        &format!("{theirs}/reactions/%E2%9C%85/@me"),
        Value::Null,
    )
    .await;
    needs(&running, "MANAGE_MESSAGES", "DELETE", &theirs, Value::Null).await;
    let thread = json!({"channel": "general", "name": "room"});
    let thread = owner.ok("POST", "/_local/thread", thread).await;
    let thread = format!("/channels/{}", text(&thread["id"]));
    let said = format!("{thread}/messages");
    needs(&running, "SEND_MESSAGES_IN_THREADS", "POST", &said, hello).await;
    needs(&running, "MANAGE_THREADS", "PATCH", &thread, json!({"name": "renamed"})).await;

    // Files.
    let take = json!({"bot": "teams", "channel": "general", "take": ["ATTACH_FILES"]});
    owner.ok("POST", "/_local/rights", take).await;
    let form = || {
        let part = reqwest::multipart::Part::bytes(b"x".as_slice()).file_name("a.txt");
        reqwest::multipart::Form::new().part("files[0]", part)
    };
    let sent = bot.request("POST", &messages).multipart(form()).send().await.unwrap();
    assert_eq!(sent.status(), 403);
    let give = json!({"bot": "teams", "channel": "general", "give": ["ATTACH_FILES"]});
    owner.ok("POST", "/_local/rights", give).await;
    let sent = bot.request("POST", &messages).multipart(form()).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    running.shutdown().await;
}
