//! What apps offer on the page, and that nothing of it is lost while the page is drawn again.

use fantoccini::Locator;
use fantoccini::actions::{InputSource as _, MouseActions, PointerAction};
use fantoccini::key::Key;
use serde_json::{Value, json};
use teams::local_guild::Running;

use crate::support::axe::Axe;
use crate::support::chromium::Browser;
use crate::support::gateway::{self, Connection};
use crate::support::guild::{Caller, fresh, text};

/// Where an application answers.
fn callback(of: &Value) -> String {
    format!("/interactions/{}/{}/callback", text(&of["id"]), text(&of["token"]))
}

async fn heard(running: &Running) -> Connection {
    let mut heard = Connection::open(&running.info, "teams", gateway::ALL).await;
    heard.until("GUILD_CREATE").await;
    heard
}

fn card(text: &str) -> Value {
    json!({"content": text, "components": [{"type": 1, "components": [
        {"type": 2, "style": 3, "label": "Approve", "custom_id": "yes"},
        {"type": 2, "style": 2, "label": "Ask first", "custom_id": "ask"}]}]})
}

fn form() -> Value {
    json!({"type": 9, "data": {"title": "Ask first", "custom_id": "form", "components": [
        {"type": 1, "components": [{"type": 4, "style": 2, "label": "Question", "custom_id": "question"}]}]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_is_pressed_while_everything_changes_is_still_pressed() {
    let Some(browser) = Browser::open(1280, 800).await else { return };
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let mut heard = heard(&running).await;
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let posted = bot.ok("POST", &send, card("first")).await;
    let message = format!("{send}/{}", text(&posted["id"]));
    browser.client.goto(&running.info.page_url).await.unwrap();
    let yes = browser.wait("[data-testid=button-yes]").await;

    // A change of the card leaves its elements where they are.
    browser.run("window.kept = document.querySelector('[data-testid=button-yes]'); window.kept.focus(); window.link = document.querySelector('[data-testid=channel-relay]')").await;
    bot.ok("PATCH", &message, json!({"content": "second"})).await;
    let relay = format!("/channels/{}/messages", running.info.channels["relay"]);
    bot.ok("POST", &relay, json!({"content": "elsewhere"})).await;
    browser.until("document.getElementById('log').innerText.includes('second')").await;
    browser.wait("[data-testid=channel-relay].unread").await;
    let same = "return window.kept.isConnected && window.link.isConnected && document.activeElement === window.kept";
    assert_eq!(browser.run(same).await, json!(true));

    // Between press and release the card changes and the end of the list moves on: nothing moves under the
    // pointer, the click arrives, and then what came is drawn.
    let mouse = |actions: MouseActions| browser.client.perform_actions(actions);
    let over =
        PointerAction::MoveToElement { element: yes.clone(), duration: None, x: 0.0, y: 0.0 };
    let down = PointerAction::Down { button: 0 };
    mouse(MouseActions::new("mouse".to_owned()).then(over).then(down)).await.unwrap();
    bot.ok("PATCH", &message, json!({"content": "third\n\nwith\n\nmore\n\nlines"})).await;
    for at in 0..30 {
        bot.ok("POST", &send, json!({"content": format!("line {at}")})).await;
    }
    browser.until("document.getElementById('said').textContent.includes('line 29')").await;
    let log = browser.run("return document.getElementById('log').innerText").await;
    assert!(!text(&log).contains("third") && !text(&log).contains("line"), "{log}");
    let up = PointerAction::Up { button: 0 };
    mouse(MouseActions::new("mouse".to_owned()).then(up)).await.unwrap();
    let pressed = heard.until("INTERACTION_CREATE").await;
    assert_eq!(pressed["data"]["custom_id"], "yes");
    bot.ok("POST", &callback(&pressed), json!({"type": 6})).await;
    browser.until("document.getElementById('log').innerText.includes('line 29')").await;
    browser.until("document.getElementById('log').innerText.includes('third')").await;
    browser.until("document.querySelector('[data-testid=button-yes]').ariaBusy !== 'true'").await;

    // A tool that stays does what it says of the newest text.
    let owner = Caller::person(&running.info, "owner");
    let slip = json!({"channel": "general", "content": "a slip"});
    let slip = owner.ok("POST", "/_local/say", slip).await;
    let edit = "document.querySelector('[data-author=Owner] .toolbar button[aria-label=Edit]')";
    browser.until(edit).await;
    browser.run(&format!("window.tool = {edit}")).await;
    let better = json!({"channel": "general", "message": slip["id"], "content": "put right"});
    owner.ok("POST", "/_local/edit", better).await;
    browser.until("document.getElementById('log').innerText.includes('put right')").await;
    assert_eq!(
        browser.run("window.tool.click(); return window.tool.isConnected").await,
        json!(true)
    );
    browser.until("document.getElementById('composer').value === 'put right'").await;
    browser.close().await;
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_opens_on_the_page_that_asked_for_it_and_on_no_other() {
    let Some(browser) = Browser::open(1280, 800).await else { return };
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let mut heard = heard(&running).await;
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    bot.ok("POST", &send, card("May this go?")).await;
    let asked = browser.client.window().await.unwrap();
    browser.client.goto(&running.info.page_url).await.unwrap();
    browser.wait("[data-testid=button-ask]").await;
    let other = browser.client.new_window(true).await.unwrap().handle;
    browser.client.switch_to_window(other.clone()).await.unwrap();
    browser.client.goto(&running.info.page_url).await.unwrap();
    browser.wait("[data-testid=button-ask]").await;

    browser.client.switch_to_window(asked).await.unwrap();
    browser.wait("[data-testid=button-ask]").await.click().await.unwrap();
    let pressed = heard.until("INTERACTION_CREATE").await;
    bot.ok("POST", &callback(&pressed), form()).await;
    browser.wait("#dialog[open] textarea[name=question]").await;
    // What came after the form has reached the other page, and the form has not.
    bot.ok("POST", &send, json!({"content": "after the form"})).await;
    browser.client.switch_to_window(other).await.unwrap();
    browser.until("document.getElementById('log').innerText.includes('after the form')").await;
    let open = browser.run("return document.getElementById('dialog').open").await;
    assert_eq!(open, json!(false));
    browser.close().await;
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn menus_of_messages_and_people_run_the_commands_of_apps() {
    let Some(browser) = Browser::open(1280, 800).await else { return };
    let Some(axe) = Axe::installed() else { return };
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let mut heard = heard(&running).await;
    let send = format!("/channels/{}/messages", running.info.channels["general"]);
    let said = bot.ok("POST", &send, json!({"content": "look at this"})).await;
    browser.client.goto(&running.info.page_url).await.unwrap();
    browser.wait("[data-testid=message]").await;
    let none = "document.querySelector('[data-testid=apps]') === null";
    browser.until(none).await;
    // They come while the page is open.
    let (app, home) = (&running.info.bots["teams"].id, &running.info.guild_id);
    let list = json!([
        {"name": "Who is this", "type": 2}, {"name": "Explain", "type": 3},
        {"name": "ask", "description": "Ask"},
    ]);
    bot.ok("PUT", &format!("/applications/{app}/guilds/{home}/commands"), list).await;

    // By keyboard: from the message to its tools, down the menu, and run.
    browser.wait("[data-testid=apps]").await;
    browser.run("document.querySelector('[data-testid=apps]').focus()").await;
    let apps = browser.client.find(Locator::Css("[data-testid=apps]")).await.unwrap();
    apps.send_keys(&char::from(Key::Enter).to_string()).await.unwrap();
    let first = browser.wait("#menu-box:not([hidden]) [role=menuitem]:focus").await;
    assert!(first.text().await.unwrap().contains("Explain"));
    axe.sound(&browser, "the menu of a message").await;
    browser.keep("desktop-menu.png").await;
    first.send_keys(&char::from(Key::Down).to_string()).await.unwrap();
    let second = browser.wait("[data-testid='context-Who is this']:focus").await;
    second.send_keys(&char::from(Key::Escape).to_string()).await.unwrap();
    browser.until("document.getElementById('menu-box').hidden").await;
    browser.until("document.activeElement?.dataset.testid === 'apps'").await;

    // By the other button of the mouse: the message, and its author.
    let pointed = |css: &str| {
        format!(
            "const it = document.querySelector('{css}'); const at = it.getBoundingClientRect(); it.dispatchEvent(new MouseEvent('contextmenu', {{bubbles: true, cancelable: true, button: 2, clientX: at.left + 2, clientY: at.top + 2}}))"
        )
    };
    browser.run(&pointed(".message .prose")).await;
    browser.wait("[data-testid=context-Explain]").await.click().await.unwrap();
    let asked = heard.until("INTERACTION_CREATE").await;
    assert_eq!((&asked["data"]["type"], &asked["data"]["target_id"]), (&json!(3), &said["id"]));
    assert_eq!(asked["data"]["resolved"]["messages"][text(&said["id"])]["content"], "look at this");
    bot.ok("POST", &callback(&asked), json!({"type": 4, "data": {"content": "It says look."}}))
        .await;
    browser.until("[...document.querySelectorAll('.reference')].some((it) => it.innerText.includes('used Explain'))").await;

    browser.run(&pointed(".message .byline .author")).await;
    let person = browser.wait("[data-testid='context-Who is this']").await;
    browser.until("document.querySelector('[data-testid=context-Explain]') === null").await;
    person.click().await.unwrap();
    let asked = heard.until("INTERACTION_CREATE").await;
    assert_eq!((&asked["data"]["type"], &asked["data"]["target_id"]), (&json!(2), &json!(app)));
    bot.ok("POST", &callback(&asked), form()).await;
    browser.wait("#dialog[open] textarea[name=question]").await;
    browser.close().await;
    running.shutdown().await;
}
