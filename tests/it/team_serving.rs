//! The queue between the roles, as operators use it: who serves what, drops, poison, dead letters.

use serde_json::{Value, json};
use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, EDITED, House, Plan, words};

#[tokio::test]
async fn one_role_alone_waits_for_the_others_and_why_says_so() {
    let plan = Plan { arguments: vec!["--agent".into(), "developer".into()], ..Plan::default() };
    let mut house = House::open(plan).await;
    let asked = house.ask(EDIT).await;
    let request = house.request(&asked, "it is taken in", |_| true).await;
    house.quiet().await;
    let (code, text, _) = house.teams(&["why", request.request_id.as_str()]).await;
    assert_eq!(code, 0);
    assert!(text.contains("waits for Orchestrator, which nobody serves"), "{text}");
    house.stop().await;
    house.arguments(&["--agent", "orchestrator"]);
    house.start();
    house
        .request(&asked, "research has it", |it| {
            it.route.current_role.is_some_and(|role| role.as_str() == "research")
        })
        .await;
    house.quiet().await;
    let (_, text, _) = house.teams(&["why", request.request_id.as_str()]).await;
    assert!(text.contains("waits for Research, which nobody serves"), "{text}");
    house.stop().await;
    house.arguments(&[]);
    house.start();
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn whole_envelopes_are_shown_when_asked_for() {
    let arguments = vec!["--relay-transport".into(), "discord".into()];
    let house = House::open(Plan { arguments, ..Plan::default() }).await;
    let asked = house.ask("what files are there?").await;
    let request = house.becomes(&asked, RequestStatus::Completed).await;
    house.quiet().await;
    let relay: Vec<String> = house.messages("relay").await.iter().map(words).collect();
    let shown = relay
        .iter()
        .any(|text| text.contains("\"relay_id\"") && text.contains(request.request_id.as_str()));
    let attached = house
        .messages("relay")
        .await
        .iter()
        .any(|it| it["attachments"].as_array().is_some_and(|files| !files.is_empty()));
    assert!(shown || attached, "{relay:#?}");
    house.close().await;
}

/// An envelope as another program would write it.
fn envelope(id: &str, kind: &str, from: &str, body: &str) -> Value {
    json!({
        "relay_id": id, "transport": "internal", "created_at": "2026-03-24T10:00:00+09:00",
        "sender_role": from, "target_role": "orchestrator", "kind": kind,
        "envelope": {
            "request_id": "20260324-1a2b3c4d", "intent": "route", "urgency": "normal",
            "scope": body, "artifacts": [], "params": {"author": "cron"}, "body": body,
            "from": from, "to": "orchestrator",
        },
    })
}

/// Puts a file into the orchestrator's inbox as the rule says: beside it first, then by a rename.
fn drop_file(house: &House, name: &str, bytes: &[u8]) {
    let relay = house.root().join(".teams_runtime/internal_relay");
    let aside = relay.join("tmp").join(name);
    std::fs::write(&aside, bytes).unwrap();
    std::fs::rename(aside, relay.join("inbox/orchestrator").join(name)).unwrap();
}

fn dead(house: &House) -> Vec<std::path::PathBuf> {
    let folder = house.root().join(".teams_runtime/internal_relay/dead/orchestrator");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[tokio::test]
async fn another_program_may_drop_words_and_nothing_else() {
    let mut house = House::open(Plan::default()).await;
    house.expects_complaints();
    house.reads("startup", "The team is up").await;
    let id = "01a1fc2e-c134-717f-9309-233387c832ec";
    let good = envelope(id, "forward", "research", "what files are there?");
    drop_file(&house, "any-name.json", good.to_string().as_bytes());
    house
        .until("the dropped words are answered", async |house: &House| {
            let all = house.requests();
            all.into_iter().find(|it| it.status == RequestStatus::Completed).map(|_| ())
        })
        .await;
    house.reads("report", "greet.sh").await;

    // What does not read, claims too much or leads elsewhere is dead, with a reason beside it.
    let mut evil = envelope("01a1fc2e-c134-717f-9309-233387c832ed", "forward", "research", "x");
    evil["envelope"]["request_id"] = json!("../../etc/passwd");
    drop_file(&house, "evil.json", evil.to_string().as_bytes());
    let mut odd = envelope("../../../x", "forward", "research", "x");
    drop_file(&house, "odd.json", odd.to_string().as_bytes());
    odd["relay_id"] = json!("a\u{7}b");
    drop_file(&house, "bell.json", odd.to_string().as_bytes());
    drop_file(&house, "rubbish.json", b"{\"relay_id\": ");
    let order = envelope("01a1fc2e-c134-717f-9309-233387c832ee", "delegate", "research", "x");
    drop_file(&house, "order.json", order.to_string().as_bytes());
    house
        .until("the five are dead", async |house: &House| {
            let reasons =
                dead(house).iter().filter(|it| it.extension().is_some_and(|e| e == "json")).count();
            (reasons == 5).then_some(())
        })
        .await;
    let reasons: Vec<String> = dead(&house)
        .iter()
        .filter(|it| it.to_str().unwrap().ends_with(".reason.txt"))
        .map(|it| std::fs::read_to_string(it).unwrap())
        .collect();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert_eq!(house.requests().len(), 1);
    house.close().await;
}

// Row R07, as it should be: what is behind a poisoned envelope goes on.
#[tokio::test]
async fn a_poisoned_envelope_dies_and_comes_back_when_it_is_moved_back() {
    let mut house = House::built(Plan::default()).await;
    house.expects_complaints();
    // Nobody can work an envelope while the worktrees' place is a file.
    let worktrees = house.root().join(".teams_runtime/worktrees");
    std::fs::write(&worktrees, "in the way").unwrap();
    house.start();
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "step_failed");
    let letter = house
        .until("it lies with the dead", async |house: &House| {
            let inbox = house.root().join(".teams_runtime/internal_relay/inbox/orchestrator");
            let moved = std::fs::read_dir(inbox).ok()?.next().is_none();
            let letter = dead(house).into_iter().find(|it| it.to_str().unwrap().ends_with(".json"));
            letter.filter(|_| moved)
        })
        .await;
    let text: Value = serde_json::from_slice(&std::fs::read(&letter).unwrap()).unwrap();
    assert!(!text["reason"].as_str().unwrap().is_empty());
    std::fs::remove_file(&worktrees).unwrap();
    let inbox = house.root().join(".teams_runtime/internal_relay/inbox/orchestrator");
    std::fs::rename(&letter, inbox.join(letter.file_name().unwrap())).unwrap();
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    assert!(dead(&house).is_empty(), "{:?}", dead(&house));
    house.close().await;
}
