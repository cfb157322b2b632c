//! A person at the page with the whole team behind it: asks, watches the room, reads the answer.
//!
//! With `TEAMS_SCREENSHOTS` set to a folder, the pictures of the README come from here.

use serde_json::json;
use teams::git::create;

use crate::support::chromium::Browser;
use crate::support::whole::Whole;

/// The text of the newest message of an author on show.
fn last_of(author: &str) -> String {
    format!(
        "([...document.querySelectorAll('[data-testid=message][data-author={author}]')].at(-1)?.innerText ?? '')"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_asks_on_the_page_and_reads_the_outcome_there() {
    let Some(browser) = Browser::open(1280, 800).await else {
        return;
    };
    let mut team = Whole::start("  default: rehearsal", &[]).await;
    let page = team.running.info.page_url.clone();
    browser.client.goto(&page).await.unwrap();
    browser.wait("[data-testid=channel-general]").await;

    // The mention is chosen from the suggestions, as a person does it.
    let composer = browser.wait("[data-testid=composer]").await;
    composer.send_keys("@tea").await.unwrap();
    browser.wait("[data-testid=choice-teams]").await;
    composer.send_keys("\u{e004}").await.unwrap();
    composer.send_keys("do task 1\u{e007}").await.unwrap();
    browser.wait("[data-testid=message][data-author=Owner] .mention").await;

    // The receipt, and the room that hangs on the person's own message.
    browser.until(&format!("{}.includes('Got it.')", last_of("Teams"))).await;
    let room = browser.wait("[data-testid^=thread-] .channel-name").await;
    assert_eq!(room.text().await.unwrap(), "do task 1");

    // The answer where it was asked: commit, files, checks.
    browser.until(&format!("{}.includes('Done.')", last_of("Teams"))).await;
    let commits = create::first_parents(&team.project(), "main").unwrap();
    assert_eq!(commits.len(), 2);
    let short = commits[0].to_string()[..10].to_owned();
    for part in
        [short.as_str(), "all checks green", "greet.sh", "tests 4 passed", "no model was asked"]
    {
        browser.until(&format!("{}.includes('{part}')", last_of("Teams"))).await;
    }
    browser.picture("page-answer.png").await;

    // The room: everybody spoke under their own name and picture, the card is in its last state.
    browser.wait("[data-testid^=thread-]").await.click().await.unwrap();
    browser
        .until("document.querySelector('[data-testid=title]').textContent === 'do task 1'")
        .await;
    for name in ["Orchestrator", "Research", "Planner", "Architect", "Developer", "QA"] {
        browser.wait(&format!("[data-testid=message][data-author={name}] .avatar img")).await;
    }
    browser
        .until("[...document.querySelectorAll('.avatar img')].every((it) => it.complete && it.naturalWidth === 128)")
        .await;
    browser
        .until(&format!("document.querySelector('.embed')?.innerText.includes('{short}')"))
        .await;
    let card = browser.run("return document.querySelector('.embed').innerText").await;
    let card = card.as_str().unwrap();
    for part in ["Done", "Rehearsal, no model", "tests 4 passed", "greet.sh", "7 runs"] {
        assert!(card.contains(part), "{card}");
    }
    assert_eq!(
        browser.run("return document.querySelector('.embed + * button, .embed button')").await,
        json!(null)
    );
    browser
        .run("document.getElementById('scroll').scrollTop = document.querySelector('[data-testid=message]').offsetTop - 16")
        .await;
    browser.picture("page.png").await;
    browser.run("document.getElementById('theme').click()").await;
    browser.picture("page-dark.png").await;
    browser.close().await;

    // The same on a phone.
    let Some(phone) = Browser::open(390, 844).await else {
        return;
    };
    phone.client.goto(&page).await.unwrap();
    phone.until(&format!("{}.includes('Done.')", last_of("Teams"))).await;
    assert_eq!(
        phone.run("return document.documentElement.scrollWidth <= innerWidth").await,
        json!(true)
    );
    phone.picture("page-phone.png").await;
    phone.close().await;
    team.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_begins_a_sprint_with_the_form_and_a_file() {
    let Some(browser) = Browser::open(1280, 800).await else {
        return;
    };
    let mut team = Whole::start("  default: rehearsal", &[]).await;
    // They come one by one, and this is the last.
    team.feed
        .event(|event| event["t"] == "COMMANDS" && event.to_string().contains("\"settings\""))
        .await;
    browser.client.goto(&team.running.info.page_url).await.unwrap();
    browser.wait("[data-testid=channel-general]").await;
    let composer = browser.wait("[data-testid=composer]").await;

    // Subcommands are offered by their whole names.
    composer.send_keys("/sprint st").await.unwrap();
    for name in ["start", "stop", "status"] {
        browser.wait(&format!("[data-testid='choice-/sprint {name}']")).await;
    }
    composer.send_keys("a").await.unwrap();
    browser.until("document.querySelector(\"[data-testid='choice-/sprint stop']\") === null").await;
    composer.clear().await.unwrap();

    // A command without its subcommand is asked back, and what was written stays.
    composer.send_keys("/backlog ".to_owned().as_str()).await.unwrap();
    composer.send_keys("nothing\u{e007}").await.unwrap();
    browser.until("document.getElementById('toast').innerText.includes('/backlog add')").await;
    assert_eq!(
        browser.run("return document.getElementById('composer').value").await,
        json!("/backlog nothing")
    );
    composer.clear().await.unwrap();

    // Nothing that was written after a command is left out.
    let given = browser
        .run(
            "return import('./commands.js').then(({ commands, optionsIn }) => {
               const options = (name, text) =>
                 optionsIn(commands().find((it) => it.plain === name), text).map((it) => it.value);
               return [
                 options('ask', 'text:which tasks are left'),
                 options('ask', 'which text: is it'),
                 options('ask', 'text:\"two words\"'),
                 options('ask', 'text:from text:left to text:right'),
                 options('revise', 'request:r-1 text:make it louder please'),
               ];
             });",
        )
        .await;
    assert_eq!(
        given,
        json!([
            ["which tasks are left"],
            ["which text: is it"],
            ["two words"],
            ["from text:left to text:right"],
            ["r-1", "make it louder please"],
        ])
    );

    let file = team.folder.path().join("spec.md");
    std::fs::write(&file, "the spec").unwrap();
    let picker = browser.wait("#file").await;
    picker.send_keys(file.to_str().unwrap()).await.unwrap();
    composer.send_keys("/sprint start\u{e00c}\u{e007}").await.unwrap();
    let milestone = browser.wait("#dialog[open] input[name=milestone]").await;
    milestone.send_keys("Greet in Korean").await.unwrap();
    let requirements = browser.wait("#dialog[open] textarea[name=requirements]").await;
    requirements.send_keys("says 안녕하세요").await.unwrap();
    browser.picture("page-form.png").await;
    browser.wait("#dialog[open] button[type=submit]").await.click().await.unwrap();
    browser.until("!document.getElementById('dialog').open").await;
    // The answer, which only this person sees.
    browser
        .until("document.getElementById('log').innerText.includes('Only you can see this')")
        .await;
    browser.until(&format!("{}.length > 30", last_of("Teams"))).await;
    let attachments = team.folder.path().join("workspace/shared_workspace/attachments");
    let kept = std::fs::read_dir(attachments).unwrap().map(|it| it.unwrap().path());
    let kept: Vec<_> = kept.filter(|it| it.to_string_lossy().ends_with("_spec.md")).collect();
    assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), "the spec");
    browser.close().await;
    team.stop().await;
}
