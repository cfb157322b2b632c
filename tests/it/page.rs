//! The local guild's page in a real browser.

use fantoccini::Locator;
use fantoccini::key::Key;
use serde_json::{Value, json};
use teams::local_guild::{Config, GuildInfo, serve};

use crate::support::chromium::{Browser, free_port};
use crate::support::guild::{Caller, fresh};

/// A conversation as the team has it: receipt, room, personas, card, answer.
struct Scene {
    room: String,
    card: String,
}

async fn play(info: &GuildInfo) -> Scene {
    let owner = Caller::person(info, "owner");
    let bot = Caller::bot(info, "teams");
    let general = &info.channels["general"];
    let send = format!("/channels/{general}/messages");
    bot.ok(
        "POST",
        &send,
        json!({"content":
        "The team is here. Write what you need, or address a role, for example <@&ROLE>."
            .replace("ROLE", &role(info, "planner").await)}),
    )
    .await;
    let asked = owner
        .ok("POST", "/_local/say", json!({"channel": "general", "content":
            "Please make `slugify` keep digits, and drop trailing hyphens. The test is in `tests/slug.rs`."}))
        .await;
    let receipt = bot
        .ok(
            "POST",
            &send,
            json!({"content": "Got it. I am opening a room for this.",
            "message_reference": {"message_id": asked["id"]}}),
        )
        .await;
    let thread = format!("{send}/{}/threads", receipt["id"].as_str().unwrap());
    let room = bot.ok("POST", &thread, json!({"name": "slugify keeps digits"})).await;
    let room = room["id"].as_str().unwrap().to_owned();
    let card = bot
        .ok(
            "POST",
            &format!("/channels/{room}/messages"),
            json!({
            "embeds": [{
                "title": "R-0007 · slugify keeps digits", "color": 0x00C4_762B,
                "description": "Waiting for your approval of the plan.",
                "fields": [
                    {"name": "State", "value": "planning → **approval**", "inline": true},
                    {"name": "Owner", "value": "planner", "inline": true},
                    {"name": "Cost", "value": "12k tokens", "inline": true},
                    {"name": "Next step", "value": "Implementation by developer"}],
                "footer": {"text": "budget: 3 of 12 runs"}}],
            "components": [{"type": 1, "components": [
                {"type": 2, "style": 3, "label": "Approve", "custom_id": "a:7:1"},
                {"type": 2, "style": 2, "label": "Ask for changes", "custom_id": "c:7:1"},
                {"type": 2, "style": 4, "label": "Cancel request", "custom_id": "x:7:1"}]}]}),
        )
        .await;
    let hook =
        bot.ok("POST", &format!("/channels/{general}/webhooks"), json!({"name": "personas"})).await;
    let speak = format!(
        "/webhooks/{}/{}?wait=true&thread_id={room}",
        hook["id"].as_str().unwrap(),
        hook["token"].as_str().unwrap()
    );
    for (name, text) in [
        (
            "Planner",
            "Two changes, one commit:\n1. `slugify` keeps ASCII digits\n2. a run of separators becomes one hyphen, none at the end\n\n> Done when `tests/slug.rs` is green and no other test changes.",
        ),
        (
            "Developer",
            "The filter looked at letters only:\n```rust\nlet keep = c.is_ascii_alphanumeric();\nslug.push(if keep { c.to_ascii_lowercase() } else { '-' });\n```\nTrimmed the end as well. **4 lines** in `src/slug.rs`.",
        ),
        ("Developer", "Ready for review."),
        (
            "QA",
            "Ran the checks at `3f9c2ab`:\n- `cargo test` 24 passed\n- `cargo clippy` no warnings\n\nAll acceptance criteria hold. ✓",
        ),
    ] {
        bot.ok("POST", &speak, json!({"username": name, "content": text})).await;
    }
    let last = bot
        .ok(
            "POST",
            &format!("/channels/{room}/messages"),
            json!({
            "embeds": [{
                "title": "Done: slugify keeps digits", "color": 0x002E_9B62,
                "description": "Committed to `main` after the checks went from red to green.",
                "fields": [
                    {"name": "Commit", "value": "`3f9c2ab`", "inline": true},
                    {"name": "Files", "value": "`src/slug.rs`", "inline": true},
                    {"name": "Checks", "value": "24 passed", "inline": true},
                    {"name": "Time", "value": "3 min 12 s", "inline": true}]}]}),
        )
        .await;
    let yes = format!(
        "/channels/{room}/messages/{}/reactions/%E2%9C%94/@me",
        last["id"].as_str().unwrap()
    );
    bot.ok("PUT", &yes, Value::Null).await;
    owner
        .ok(
            "POST",
            "/_local/say",
            json!({"channel": room, "content": "Thank you, that was quick."}),
        )
        .await;
    bot.ok(
        "POST",
        &send,
        json!({"content": format!("Done, see <#{room}>."),
        "message_reference": {"message_id": asked["id"]}}),
    )
    .await;
    Scene { room, card: card["id"].as_str().unwrap().to_owned() }
}

async fn role(info: &GuildInfo, name: &str) -> String {
    let roles = Caller::bot(info, "teams")
        .ok("GET", &format!("/guilds/{}/roles", info.guild_id), Value::Null)
        .await;
    let found = roles.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_writes_addresses_a_role_and_sees_the_room_the_personas_and_the_card() {
    let Some(browser) = Browser::open(1280, 800).await else {
        return;
    };
    let running = fresh().await;
    let info = &running.info;
    browser.client.goto(&info.page_url).await.unwrap();
    browser.wait("[data-testid=channel-general]").await;

    // A message with a name chosen from the suggestions, sent by Enter.
    let composer = browser.wait("[data-testid=composer]").await;
    composer.send_keys("hello @pla").await.unwrap();
    browser.wait("[data-testid=choice-planner]").await;
    browser.picture("desktop-suggestions-light.png").await;
    composer.send_keys(&char::from(Key::Tab).to_string()).await.unwrap();
    composer.send_keys("are you <b>there</b>?").await.unwrap();
    composer.send_keys(&char::from(Key::Enter).to_string()).await.unwrap();
    let mine = browser.wait("[data-testid=message][data-author=Owner]").await;
    let text = mine.text().await.unwrap();
    assert!(text.contains("@planner are you <b>there</b>?"), "{text}");
    let bot = Caller::bot(info, "teams");
    let list = format!("/channels/{}/messages", info.channels["general"]);
    let newest = bot.ok("GET", &format!("{list}?limit=1"), Value::Null).await;
    assert_eq!(newest[0]["mention_roles"][0], role(info, "planner").await.as_str());

    // Typing, a room, personas, a card.
    bot.ok("POST", &format!("/channels/{}/typing", info.channels["general"]), Value::Null).await;
    browser
        .until("document.querySelector('[data-testid=typing]').textContent.includes('Teams')")
        .await;
    let scene = play(info).await;
    let Scene { room, card } = &scene;
    browser.picture("desktop-channel-light.png").await;
    browser.wait(&format!("[data-testid=thread-{room}]")).await.click().await.unwrap();
    for name in ["Planner", "Developer", "QA", "Teams", "Owner"] {
        browser.wait(&format!("[data-testid=message][data-author={name}]")).await;
    }
    browser.picture("desktop-room-light.png").await;

    // An edit changes the card in place; the view stays.
    browser.run(&format!("window.kept = document.querySelector('[data-author=Planner]'); document.querySelector('[data-id=\"{card}\"]').scrollIntoView()")).await;
    browser.picture("desktop-card-light.png").await;
    let edited = format!("/channels/{room}/messages/{card}");
    bot.ok(
        "PATCH",
        &edited,
        json!({"embeds": [{"title": "R-0007 is done", "color": 0x002E_9B62}]}),
    )
    .await;
    browser
        .until(&format!(
            "document.querySelector('[data-id=\"{card}\"]').innerText.includes('is done')"
        ))
        .await;
    assert_eq!(browser.run("return window.kept.isConnected").await, json!(true));

    // A click reaches the application, which answers only the person who clicked.
    browser.wait("[data-testid=\"button-a:7:1\"]").await.click().await.unwrap();
    browser
        .until("document.querySelector('[data-testid=\"button-a:7:1\"]').ariaBusy === 'true'")
        .await;

    browser.wait("[data-testid=theme]").await.click().await.unwrap();
    browser.until("document.documentElement.dataset.theme === 'dark'").await;
    browser.run("document.getElementById('jump').click()").await;
    browser.picture("desktop-room-dark.png").await;
    browser.run(&format!("location.hash = '{}'", info.channels["general"])).await;
    browser.until("document.getElementById('title').textContent === 'general'").await;
    browser.until("document.querySelectorAll('[data-testid=message]').length > 3").await;
    browser.picture("desktop-channel-dark.png").await;
    browser.close().await;
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_replies_edits_unread_marks_and_a_restart_are_handled_in_place() {
    let Some(browser) = Browser::open(1280, 800).await else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    // It comes back there, where nobody else is given its place meanwhile.
    let running =
        serve(Config { port: free_port(), dir: Some(dir.path().to_owned()), ..Config::default() })
            .await
            .unwrap();
    let info = running.info.clone();
    let bot = Caller::bot(&info, "teams");
    let general = &info.channels["general"];
    let send = format!("/channels/{general}/messages");
    bot.ok("POST", &send, json!({"content": "first"})).await;
    browser.client.goto(&info.page_url).await.unwrap();
    browser.wait("[data-author=Teams]").await;

    // A file goes along.
    let file = dir.path().join("notes.txt");
    std::fs::write(&file, "notes").unwrap();
    let picker = browser.client.find(Locator::Id("file")).await.unwrap();
    picker.send_keys(file.to_str().unwrap()).await.unwrap();
    let composer = browser.wait("[data-testid=composer]").await;
    composer.send_keys("with notes").await.unwrap();
    browser.wait("[data-testid=send]").await.click().await.unwrap();
    browser.wait("[data-author=Owner] .file").await;

    // What is too long is refused with its length, and stays where it was written.
    browser
        .run("const box = document.getElementById('composer'); box.value = 'x'.repeat(2001)")
        .await;
    browser.wait("[data-testid=send]").await.click().await.unwrap();
    browser.until("document.getElementById('toast').innerText.includes('2001')").await;
    browser.until("document.getElementById('composer').value.length === 2001").await;
    composer.clear().await.unwrap();

    // A reply, then an edit of it by the arrow key.
    browser.run("document.querySelector('[data-author=Teams] .toolbar button[aria-label=Reply]').click()").await;
    composer.send_keys("anser").await.unwrap();
    composer.send_keys(&char::from(Key::Enter).to_string()).await.unwrap();
    browser.wait("[data-author=Owner] .reference").await;
    composer.send_keys(&char::from(Key::Up).to_string()).await.unwrap();
    browser.until("document.getElementById('composer').value === 'anser'").await;
    composer.clear().await.unwrap();
    composer.send_keys("answer").await.unwrap();
    composer.send_keys(&char::from(Key::Enter).to_string()).await.unwrap();
    browser.wait("[data-author=Owner] .edited").await;
    browser.run("document.querySelector('[data-author=Owner] .toolbar button').focus()").await;
    browser.picture("desktop-files-light.png").await;
    let newest = bot.ok("GET", &format!("{send}?limit=1"), Value::Null).await;
    assert_eq!(newest[0]["content"], "answer");
    assert_eq!(newest[0]["mentions"][0]["username"], "teams");

    // What is begun in one channel stays there: a file, and a message that is being changed.
    picker.send_keys(file.to_str().unwrap()).await.unwrap();
    composer.send_keys(&char::from(Key::Up).to_string()).await.unwrap();
    composer.send_keys(" or two").await.unwrap();
    browser.run(&format!("location.hash = '{}'", info.channels["relay"])).await;
    browser.until("document.getElementById('title').textContent === 'relay'").await;
    let here = "document.getElementById('composer').value === '' && document.getElementById('files').hidden";
    browser.until(here).await;
    browser.run(&format!("location.hash = '{general}'")).await;
    browser.until("document.getElementById('composer').value === 'answer or two'").await;
    browser.until("!document.getElementById('context').hidden").await;
    composer.send_keys(&char::from(Key::Escape).to_string()).await.unwrap();
    browser.until("document.getElementById('composer').value === ''").await;
    browser.run("document.querySelector('#files button').click()").await;

    // Elsewhere something happens: the channel is marked until it is opened.
    let relay = format!("/channels/{}/messages", info.channels["relay"]);
    bot.ok("POST", &relay, json!({"content": format!("<@{}> look", info.users["owner"].id)})).await;
    browser.wait("[data-testid=channel-relay].unread .badge").await;
    browser.wait("[data-testid=channel-relay]").await.click().await.unwrap();
    browser.wait("[data-testid=channel-relay]:not(.unread)").await;
    browser.wait(".message.mentioned").await;
    browser.picture("desktop-mention-light.png").await;

    // An address that comes before its place: the page stays, and goes there when the place is made.
    let sent = bot.ok("POST", &relay, json!({"content": "a room follows"})).await;
    let place = sent["id"].as_str().unwrap();
    browser.run(&format!("location.hash = '{place}'")).await;
    browser.until("document.getElementById('title').textContent === 'relay'").await;
    bot.ok("POST", &format!("{relay}/{place}/threads"), json!({"name": "the room"})).await;
    browser.until("document.getElementById('title').textContent === 'the room'").await;

    // A private conversation is seen by its two sides only.
    browser.wait("[data-testid=dm-planner]").await.click().await.unwrap();
    browser.until("document.getElementById('title').textContent === 'Planner'").await;
    browser.wait("[data-testid=composer]").await.send_keys("psst\u{e007}").await.unwrap();
    browser.wait("[data-author=Owner]").await;
    browser.run("const s = document.getElementById('me-select'); s.value = [...s.options].find((o) => o.text === 'Guest').value; s.onchange()").await;
    browser.until("document.querySelector('a[data-testid=dm-planner]') === null").await;

    // The guild is restarted: the page comes back by itself and shows what is new, and what was begun stays.
    browser.run(&format!("location.hash = '{general}'")).await;
    browser.until("document.getElementById('title').textContent === 'general'").await;
    browser.run("document.querySelector('[data-author=Teams] .toolbar button[aria-label=Reply]').click()").await;
    browser.wait("[data-testid=composer]").await.send_keys("half said").await.unwrap();
    let port = info.base_url.rsplit(':').next().unwrap().parse().unwrap();
    running.shutdown().await;
    browser.until("!document.getElementById('offline').hidden").await;
    let running = serve(Config { port, dir: Some(dir.path().to_owned()), ..Config::default() })
        .await
        .unwrap();
    let bot = Caller::bot(&running.info, "teams");
    bot.ok("POST", &send, json!({"content": "back again"})).await;
    browser.run(&format!("location.hash = '{general}'")).await;
    browser.until("document.getElementById('log').innerText.includes('back again')").await;
    browser.until("document.getElementById('offline').hidden").await;
    browser.until("document.getElementById('composer').value === 'half said'").await;
    browser.until("!document.getElementById('context').hidden").await;
    browser.client.refresh().await.unwrap();
    browser.until("document.getElementById('composer').value === 'half said'").await;

    // A room that was opened while nobody looked is new to whoever comes back.
    browser.client.goto("about:blank").await.unwrap();
    let sent = bot.ok("POST", &send, json!({"content": "a room for the night"})).await;
    let night = sent["id"].as_str().unwrap();
    bot.ok("POST", &format!("{send}/{night}/threads"), json!({"name": "the night"})).await;
    let body = json!({"content": "may I?"});
    bot.ok("POST", &format!("/channels/{night}/messages"), body).await;
    browser.client.goto(&running.info.page_url).await.unwrap();
    browser.wait(&format!("[data-testid=thread-{night}].unread")).await;
    browser.close().await;
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_channels_are_in_a_drawer_and_nothing_overflows() {
    let Some(browser) = Browser::open(390, 844).await else {
        return;
    };
    let running = fresh().await;
    let scene = play(&running.info).await;
    browser.client.goto(&format!("{}#{}", running.info.page_url, scene.room)).await.unwrap();
    browser.wait("[data-author=QA]").await;
    assert_eq!(
        browser.run("return document.documentElement.scrollWidth <= innerWidth").await,
        json!(true)
    );
    browser.picture("phone-room-light.png").await;
    browser.client.find(Locator::Id("menu")).await.unwrap().click().await.unwrap();
    let channel = browser.wait("[data-testid=channel-general]").await;
    browser.until("document.getElementById('sidebar').getBoundingClientRect().left === 0").await;
    browser.picture("phone-drawer-light.png").await;
    channel.click().await.unwrap();
    browser.until("!document.body.classList.contains('drawer')").await;
    browser.until("document.getElementById('title').textContent === 'general'").await;
    browser.run("document.getElementById('theme').click()").await;
    browser.until("document.querySelectorAll('[data-testid=message]').length > 3").await;
    browser.until("document.getElementById('sidebar').getBoundingClientRect().right <= 0").await;
    browser.picture("phone-channel-dark.png").await;
    browser.close().await;
    running.shutdown().await;
}
