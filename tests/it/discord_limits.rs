//! Rate limits, edits and answers as no well-behaved server gives them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use teams::discord::{Destination, Limits, Link};
use teams::domain::ids::{ChannelId, MessageId};
use teams::domain::outgoing::{Outgoing, OutgoingOutcome, Post, Voice};

use crate::support::team::{card, now, outgoing, post};
use crate::support::wire::{Answer, Wire};

fn place(channel: u64) -> Destination {
    Destination { channel: ChannelId(channel), card: None, parent: None }
}

fn words() -> Outgoing {
    post(Voice::Team, "followup_taken", json!({}))
}

async fn open() -> (Wire, tempfile::TempDir, Link) {
    let wire = Wire::open().await;
    let folder = tempfile::tempdir().unwrap();
    let (link, _facts) = wire.link(folder.path(), Limits::THIS_MACHINE);
    (wire, folder, link)
}

async fn posted(link: &Link, outgoing: &Outgoing, place: &Destination) {
    let outcome = link.deliver(outgoing, place, |_| async {}).await;
    assert!(matches!(outcome, OutgoingOutcome::Posted { .. }), "{outcome:?}");
}

/// A bucket of five in half a second for each channel, that says what it is and refuses what goes beyond.
fn bucket() -> (impl Fn(&crate::support::wire::Call) -> Option<Answer>, Arc<AtomicU32>) {
    let windows: Mutex<std::collections::BTreeMap<String, (Instant, u32)>> = Mutex::default();
    let refused = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&refused);
    let rule = move |call: &crate::support::wire::Call| {
        if call.method != "POST" || !call.path.ends_with("/messages") {
            return None;
        }
        let window = Duration::from_millis(500);
        let mut windows = windows.lock().unwrap();
        let entry = windows.entry(call.path.clone()).or_insert((Instant::now(), 0));
        if entry.0.elapsed() >= window {
            *entry = (Instant::now(), 0);
        }
        entry.1 += 1;
        let after = window.saturating_sub(entry.0.elapsed()).as_secs_f64();
        let headers = |remaining: u32| {
            vec![
                ("x-ratelimit-bucket", "abcd".to_owned()),
                ("x-ratelimit-limit", "5".to_owned()),
                ("x-ratelimit-remaining", remaining.to_string()),
                ("x-ratelimit-reset-after", format!("{after:.3}")),
            ]
        };
        if entry.1 > 5 {
            count.fetch_add(1, Ordering::Relaxed);
            return Some((429, headers(0), json!({"retry_after": after, "global": false})));
        }
        let id = 1_000_000 + windows.values().map(|(_, used)| u64::from(*used)).sum::<u64>();
        let left = 5 - windows[&call.path].1;
        Some((200, headers(left), json!({"id": id.to_string()})))
    };
    (rule, refused)
}

#[tokio::test]
async fn twelve_at_once_into_a_bucket_of_five_are_never_refused() {
    let (wire, _folder, link) = open().await;
    let (rule, refused) = bucket();
    wire.answer(rule);
    let each = (0..36).map(|n| {
        let link = link.clone();
        async move { posted(&link, &words(), &place(5 + n % 3)).await }
    });
    futures_util::future::join_all(each).await;
    assert_eq!(refused.load(Ordering::Relaxed), 0);
    assert_eq!(wire.calls("POST", "/messages").len(), 36);
}

#[tokio::test]
async fn a_limit_of_the_whole_bot_stops_every_route() {
    let (wire, _folder, link) = open().await;
    let once = AtomicU32::new(0);
    wire.answer(move |call| {
        let first = call.method == "POST" && once.fetch_add(1, Ordering::Relaxed) == 0;
        let headers = vec![("x-ratelimit-global", "true".to_owned())];
        first.then(|| (429, headers, json!({"retry_after": 0.7, "global": true})))
    });
    posted(&link, &words(), &place(5)).await;
    posted(&link, &words(), &place(6)).await;
    let calls = wire.calls("POST", "/messages");
    assert_eq!(calls.len(), 3, "{calls:?}");
    assert!(calls[1].at - calls[0].at >= Duration::from_millis(700));
}

#[tokio::test]
async fn strange_headers_on_a_success_do_not_repeat_it_and_5xx_repeats_with_the_same_nonce() {
    let (wire, _folder, link) = open().await;
    let seen = AtomicU32::new(0);
    wire.answer(move |call| {
        if call.method != "POST" || !call.path.ends_with("/messages") {
            return None;
        }
        let strange = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset-after"]
            .map(|name| (name, "many".to_owned()));
        match seen.fetch_add(1, Ordering::Relaxed) {
            0 => Some((200, strange.to_vec(), json!({"id": "21"}))),
            1 => Some((503, Vec::new(), json!("an html page"))),
            _ => None,
        }
    });
    posted(&link, &words(), &place(5)).await;
    assert_eq!(wire.calls("POST", "/messages").len(), 1);
    posted(&link, &words(), &place(5)).await;
    let calls = wire.calls("POST", "/messages");
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[1].body["nonce"], calls[2].body["nonce"]);
    assert_ne!(calls[0].body["nonce"], calls[1].body["nonce"]);
    for call in &calls {
        assert_eq!(call.body["enforce_nonce"], true);
        assert_eq!(call.body["allowed_mentions"], json!({"parse": []}));
    }
}

#[tokio::test]
async fn a_refused_token_is_not_shown_again_and_again() {
    let (wire, _folder, link) = open().await;
    wire.answer(|call| {
        (call.method == "POST").then(|| (401, Vec::new(), json!({"message": "no", "code": 0})))
    });
    for channel in 5..15 {
        let outcome = link.deliver(&words(), &place(channel), |_| async {}).await;
        assert!(matches!(outcome, OutgoingOutcome::Later { .. }), "{outcome:?}");
    }
    assert_eq!(wire.calls("POST", "/messages").len(), 1, "each would count against the address");
}

#[tokio::test]
async fn a_card_is_posted_anew_before_its_edits_are_refused() {
    let (wire, _folder, link) = open().await;
    let old = MessageId::at(teams::domain::time::Timestamp::from_millis(
        now().millis() - 2 * 60 * 60 * 1_000,
    ));
    let mut room = Destination { card: Some(old), ..place(5) };
    for turn in 0..6 {
        let update = outgoing(Voice::Team, card(if turn % 2 == 0 { "working" } else { "done" }));
        let outcome = link.deliver(&update, &room, |_| async {}).await;
        let OutgoingOutcome::Posted { message_ids, .. } = outcome else { panic!("{outcome:?}") };
        room.card = Some(message_ids[0]);
    }
    assert_ne!(room.card, Some(old));
    let path = format!("/channels/5/messages/{old}");
    assert_eq!(wire.calls("PATCH", &path).len(), 5);
    assert_eq!(wire.calls("DELETE", &path).len(), 1);
    assert_eq!(wire.calls("POST", "/messages").len(), 1);

    // The answer to such a post was lost with the process: the next one finds it and deletes the old card.
    let mut update = outgoing(Voice::Team, card("done"));
    update.attempts = 1;
    let room = Destination { card: Some(old), ..room };
    let id = update.outgoing_id.clone();
    let nonce = wire.calls("POST", "/messages")[0].body["nonce"].clone();
    assert!(nonce.is_string() && !id.as_str().is_empty());
    let embed = wire.calls("PATCH", &path)[1].body["embeds"].clone();
    wire.answer(move |call| {
        let list = call.method == "GET" && call.path.ends_with("/messages");
        let there = json!([{"id": "99", "content": "", "author": {"id": "90"}, "embeds": embed}]);
        list.then(|| (200, Vec::new(), there))
    });
    let before = wire.calls("POST", "/messages").len();
    posted(&link, &update, &room).await;
    assert_eq!(wire.calls("DELETE", &path).len(), 2);
    // The nonce makes of the repeated post the message that is there.
    assert_eq!(wire.calls("POST", "/messages").len(), before + 1);
    assert_eq!(wire.calls("PATCH", &path).len(), 5, "the old card is not edited once more");
}

#[tokio::test]
async fn files_that_are_too_large_after_all_are_named_instead() {
    let (wire, folder, link) = open().await;
    std::fs::write(folder.path().join("plan.md"), "a plan").unwrap();
    let mut words = words();
    let teams::domain::outgoing::Act::Post(Post { files, .. }) = &mut words.act else { panic!() };
    *files = vec!["plan.md".to_owned()];
    let first = AtomicU32::new(0);
    wire.answer(move |call| {
        let refuse = call.path.ends_with("/messages")
            && call.method == "POST"
            && first.fetch_add(1, Ordering::Relaxed) == 0;
        refuse.then(|| (413, Vec::new(), json!({"message": "too large", "code": 40005})))
    });
    posted(&link, &words, &place(5)).await;
    let calls = wire.calls("POST", "/messages");
    assert_eq!(calls.len(), 2);
    let text = calls[1].body["content"].as_str().unwrap();
    assert!(text.contains("did not take") && text.contains("`plan.md`"), "{text}");
}

#[tokio::test]
async fn a_room_in_the_archive_is_taken_out_of_it_for_a_reaction() {
    let (wire, _folder, link) = open().await;
    let first = AtomicU32::new(0);
    wire.answer(move |call| {
        let refuse = call.method == "PUT"
            && call.path.contains("/reactions/")
            && first.fetch_add(1, Ordering::Relaxed) == 0;
        refuse.then(|| (400, Vec::new(), json!({"message": "archived", "code": 50083})))
    });
    let act =
        teams::domain::outgoing::Act::React { message_id: MessageId(9), emoji: "👀".to_owned() };
    let outcome = link.deliver(&outgoing(Voice::Team, act), &place(5), |_| async {}).await;
    assert_eq!(outcome, OutgoingOutcome::Done);
    let reopened = wire.calls("PATCH", "/channels/5");
    assert_eq!(reopened[0].body, json!({"archived": false}));
    assert_eq!(wire.calls("PUT", "/reactions/").len(), 2);
    assert!(wire.calls("PUT", "").iter().all(|call| call.body == Value::Null));
}
