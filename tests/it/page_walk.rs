//! A person walks the page with a whole team behind it, at a desk and on a phone: asks, watches the room,
//! asks back in a form, approves by button, uploads, commands. What they see is kept as pictures in
//! `target/page-shots`, and has to be usable without eyes or mouse as well.

use fantoccini::Locator;
use fantoccini::key::Key;
use serde_json::{Value, json};
use teams::domain::request::RequestStatus;

use crate::support::axe::Axe;
use crate::support::chromium::Browser;
use crate::support::guild::{Caller, fresh};
use crate::support::house::{EDIT, EDITED, House, Plan};

const DESK: (u32, u32, &str) = (1280, 800, "desktop");
const PHONE: (u32, u32, &str) = (390, 844, "phone");

/// The text of everything on show.
const LOG: &str = "document.getElementById('log').innerText";

fn key(key: Key) -> String {
    char::from(key).to_string()
}

/// A button of a card that can be pressed, by its label.
fn button(label: &str) -> String {
    format!(
        "[...document.querySelectorAll('.message .row button')].findLast((it) => it.textContent === '{label}' && !it.disabled)"
    )
}

async fn press(browser: &Browser, label: &str) {
    browser.until(&button(label)).await;
    browser.run(&format!("{}.click()", button(label))).await;
}

/// Nothing sticks out at the side.
async fn fits(browser: &Browser) {
    let fits = browser.run("return document.documentElement.scrollWidth <= innerWidth").await;
    assert_eq!(fits, json!(true), "the page is wider than the window");
}

async fn walk((width, height, size): (u32, u32, &str)) {
    let Some(browser) = Browser::open(width, height).await else { return };
    let Some(axe) = Axe::installed() else { return };
    let house = House::open(Plan { checks: "[]".to_owned(), ..Plan::default() }).await;
    let shot = |name: &str| format!("{size}-{name}.png");
    browser.client.goto(&house.running.info.page_url).await.unwrap();
    browser.until("document.querySelector('[data-testid=title]').textContent === 'general'").await;
    axe.sound(&browser, "an empty channel").await;

    // Ask, with a picture that goes along.
    let picker = browser.client.find(Locator::Id("file")).await.unwrap();
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/roles/avatars/qa.png");
    picker.send_keys(picture).await.unwrap();
    let composer = browser.wait("[data-testid=composer]").await;
    composer.send_keys("@tea").await.unwrap();
    browser.wait("[data-testid=choice-teams]").await;
    composer.send_keys(&key(Key::Tab)).await.unwrap();
    composer.send_keys(&format!("{EDIT}{}", key(Key::Enter))).await.unwrap();
    browser.wait("[data-author=Owner] .picture img").await;
    let asked =
        browser.run("return document.querySelector('[data-author=Owner]').dataset.id").await;
    let asked = asked.as_str().unwrap();

    // Watch: the room opens, and the team speaks in it.
    // The count of its messages changes under the pointer; the link stays the same.
    browser.wait("[data-testid^=open-]").await.click().await.unwrap();
    for name in ["Orchestrator", "Developer"] {
        browser.wait(&format!("[data-testid=message][data-author={name}]")).await;
    }

    // The question before the branch: ask back first, in a form that the keyboard opens and fills.
    browser.until(&format!("{LOG}.includes('May this go to the branch?')")).await;
    browser.until(&button("Ask first")).await;
    browser.keep(&shot("gate")).await;
    fits(&browser).await;
    axe.sound(&browser, "a room with a question").await;
    suggestions(&browser, &axe, &shot("command")).await;
    press(&browser, "Ask first").await;
    let question = browser.wait("#dialog[open] textarea[name=question]").await;
    question.send_keys("Why in greet.sh?").await.unwrap();
    browser.keep(&shot("form")).await;
    fits(&browser).await;
    axe.sound(&browser, "an open form").await;
    browser.wait("#dialog[open] button[type=submit]").await.click().await.unwrap();
    browser.until("!document.getElementById('dialog').open").await;
    browser.until(&format!("{LOG}.includes('Why in greet.sh?')")).await;

    // Asked again, it is approved by button.
    browser.until("[...document.querySelectorAll('.body > .prose')].filter((it) => it.innerText.includes('May this go to the branch?')).length === 2").await;
    press(&browser, "Approve").await;
    house.becomes(asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    browser
        .run("location.hash = document.querySelector('[data-testid=channel-general]').hash")
        .await;
    browser.until(&format!("{LOG}.includes('Done.')")).await;
    browser.keep(&shot("done")).await;
    fits(&browser).await;

    // The picture is looked at, large.
    browser.run("document.querySelector('[data-author=Owner] .picture').click()").await;
    browser.wait("#dialog[open].image img").await;
    axe.sound(&browser, "a picture").await;
    browser.wait("#dialog[open] button.primary").await.click().await.unwrap();

    // A command without options, and an answer for one pair of eyes.
    let composer = browser.wait("[data-testid=composer]").await;
    composer.send_keys("/status").await.unwrap();
    browser.wait("[data-testid='choice-/status']").await;
    composer.send_keys(&key(Key::Enter)).await.unwrap();
    composer.send_keys(&key(Key::Enter)).await.unwrap();
    // First it says that the team is at it, then what it is.
    let answered = ".message.private:not(:has(.loading)) [data-testid=dismiss]";
    let dismiss = browser.wait(answered).await;
    axe.sound(&browser, "an answer for one person").await;
    dismiss.click().await.unwrap();
    browser.until("document.querySelector('.message.private') === null").await;

    // The same in Korean.
    browser.run("document.querySelector('[data-testid=language]').click()").await;
    browser.until("document.documentElement.lang === 'ko'").await;
    let composer = browser.wait("[data-testid=composer]").await;
    composer.send_keys("/상").await.unwrap();
    let choice = browser.wait("[data-testid='choice-/status']").await;
    assert!(choice.text().await.unwrap().contains("/상태"));
    browser.close().await;
    house.close().await;
}

/// A command is found by its beginning, and what waits is suggested by the team itself.
async fn suggestions(browser: &Browser, axe: &Axe, shot: &str) {
    let composer = browser.wait("[data-testid=composer]").await;
    composer.send_keys("/app").await.unwrap();
    browser.wait("[data-testid='choice-/approve']").await;
    axe.sound(browser, "the choice of commands").await;
    composer.send_keys(&key(Key::Enter)).await.unwrap();
    let what = browser.wait("[data-testid=option-what]").await;
    browser.wait("#command-choices li[aria-selected=true]").await;
    axe.sound(browser, "the fields of a command").await;
    browser.keep(shot).await;
    fits(browser).await;
    what.send_keys(&key(Key::Enter)).await.unwrap();
    browser.until("document.querySelector('[data-testid=option-what]').value !== ''").await;
    // The next field has the focus, and its choices are there.
    let decision = browser.wait("[data-testid=option-decision]:focus").await;
    browser.wait("[data-testid=value-reject]").await;
    decision.send_keys("neither").await.unwrap();
    decision.send_keys(&key(Key::Enter)).await.unwrap();
    browser.wait("[data-testid=option-decision][aria-invalid=true]").await;
    decision.send_keys(&key(Key::Escape)).await.unwrap();
    browser.until("document.getElementById('command').hidden").await;
    browser.wait("[data-testid=composer]").await.clear().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_desk_a_person_asks_watches_asks_back_approves_and_commands() {
    walk(DESK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_a_person_asks_watches_asks_back_approves_and_commands() {
    walk(PHONE).await;
}

/// What bots can send that the team's own cards do not show all at once.
async fn sampler(bot: &Caller, channel: &str) -> Value {
    let send = format!("/channels/{channel}/messages");
    for at in 0..60 {
        bot.ok("POST", &send, json!({"content": format!("line {at}")})).await;
    }
    let all = bot.ok("GET", &format!("{send}?limit=60"), Value::Null).await;
    let first = all.as_array().unwrap().last().unwrap()["id"].clone();
    let options = |names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| json!({"label": name, "value": name})).collect()
    };
    let sent = bot
        .ok(
            "POST",
            &send,
            json!({
                "content": "# Choose\nuntil <t:1700000000:D>, which was <t:1700000000:R>\n> quoted\n- `one`\n- ||two||\n```sh\nls\n```",
                "message_reference": {"message_id": first},
                "embeds": [{"title": "A card", "color": 0x002E_9B62, "fields": [{"name": "State", "value": "**open**", "inline": true}]}],
                "components": [
                    {"type": 1, "components": [{"type": 3, "custom_id": "one", "placeholder": "Which", "options": options(&["red", "blue"])}]},
                    {"type": 1, "components": [{"type": 3, "custom_id": "some", "max_values": 2, "options": options(&["x", "y", "z"])}]},
                    {"type": 1, "components": [
                        {"type": 2, "style": 1, "label": "Primary", "custom_id": "p"}, {"type": 2, "style": 2, "label": "Secondary", "custom_id": "s"},
                        {"type": 2, "style": 3, "label": "Success", "custom_id": "g"}, {"type": 2, "style": 4, "label": "Danger", "custom_id": "d"},
                        {"type": 2, "style": 5, "label": "Link", "url": "https://example.org/"}]}]
            }),
        )
        .await;
    let path = format!("{send}/{}/reactions/%E2%9C%85/@me", sent["id"].as_str().unwrap());
    bot.ok("PUT", &path, Value::Null).await;
    first
}

async fn sample((width, height, size): (u32, u32, &str)) {
    let Some(browser) = Browser::open(width, height).await else { return };
    let Some(axe) = Axe::installed() else { return };
    let running = fresh().await;
    let bot = Caller::bot(&running.info, "teams");
    let first = sampler(&bot, &running.info.channels["general"]).await;
    browser.client.goto(&running.info.page_url).await.unwrap();
    let moment = browser.wait(".stamp[datetime='2023-11-14T22:13:20.000Z']:not([data-from])").await;
    assert_eq!(moment.text().await.unwrap(), "November 14, 2023");
    browser.until("document.querySelector('.stamp[data-from]').textContent.includes('ago')").await;
    browser.wait(".reaction[aria-label='✅, 1']").await;
    browser.keep(&format!("{size}-sampler.png")).await;
    fits(&browser).await;
    axe.sound(&browser, "menus, buttons, a card").await;

    // One choice goes at once, several when they are sent; an app that says nothing is told of.
    browser.run("const menu = document.querySelector('[data-testid=menu-one]'); menu.value = 'blue'; menu.dispatchEvent(new Event('change'))").await;
    browser.until("document.getElementById('toast').innerText.includes('did not answer')").await;

    // A reply leads to what it answers, although that is further back than what is on show.
    browser.run("document.querySelector('.reference button').click()").await;
    browser.wait(&format!(".message.flash[data-id='{}']", first.as_str().unwrap())).await;

    // One stop for Tab in the list; arrows walk, and the tools of that message follow it.
    let stops = "document.querySelectorAll('.message[tabindex=\"0\"]').length === 1";
    browser.until(stops).await;
    let stop = browser.wait(".message[tabindex='0']").await;
    stop.send_keys(&key(Key::End)).await.unwrap();
    browser.until("document.activeElement === document.querySelector('.message:last-child')").await;
    browser.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp', bubbles: true}))").await;
    browser
        .until("document.activeElement === document.querySelector('.message:nth-last-child(2)')")
        .await;
    browser.until(stops).await;

    // Deleting asks first; what was deleted is gone.
    let composer = browser.wait("[data-testid=composer]").await;
    composer.send_keys(&format!("a slip{}", key(Key::Enter))).await.unwrap();
    browser.wait("[data-author=Owner] .toolbar button[aria-label=Delete]").await;
    browser.run("document.querySelector('[data-author=Owner] .toolbar button[aria-label=Delete]').click()").await;
    let sure = browser.wait("#dialog[open] [data-testid=sure]").await;
    axe.sound(&browser, "a question of the page").await;
    sure.click().await.unwrap();
    browser.until("document.querySelector('[data-author=Owner]') === null").await;

    if size == "phone" {
        browser.client.find(Locator::Id("menu")).await.unwrap().click().await.unwrap();
        browser.wait("[data-testid=channel-general]:focus").await;
        axe.sound(&browser, "the drawer").await;
    }
    browser.close().await;
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_desk_menus_moments_replies_and_the_keyboard_work() {
    sample(DESK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_menus_moments_replies_and_the_drawer_work() {
    sample(PHONE).await;
}
