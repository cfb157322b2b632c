//! From a message to a commit: what the person and the operators see on the way.

use serde_json::Value;
use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, EDITED, House, Plan, author, words};

/// The names under which roles spoke in a channel, in order, each once in a row.
fn speakers(messages: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = messages
        .iter()
        .filter(|message| !message["webhook_id"].is_null())
        .map(|message| author(message).to_lowercase())
        .collect();
    names.dedup();
    names
}

#[tokio::test]
async fn a_message_becomes_a_commit() {
    let house = House::open(Plan::default()).await;
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;

    assert_eq!(house.on_branch("greet.sh"), EDITED);
    assert_eq!(std::fs::read_to_string(house.project().join("greet.sh")).unwrap(), EDITED);
    let commits = house.commits();
    assert_eq!(commits.len(), 1);
    assert!(commits[0].contains(request.request_id.as_str()), "{commits:?}");

    // Where it was asked: a receipt and the outcome, both as answers to the message.
    let general = house.messages("general").await;
    let answers: Vec<&Value> =
        general.iter().filter(|it| it["message_reference"]["message_id"] == asked).collect();
    assert_eq!(answers.len(), 2, "{general:#?}");
    assert!(words(answers[0]).contains(request.request_id.as_str()));
    let last = words(answers[1]);
    let sha = request.outcome.commit_sha.clone().unwrap();
    for part in ["**Done.**", &sha[..10], "`main`", "greet.sh", "tests", "rehearsal"] {
        assert!(last.contains(part), "{part:?} is missing in {last}");
    }

    // In the room: every role by its name, the checks, and one card that was edited in place.
    let room = house.messages(&asked).await;
    assert_eq!(
        speakers(&room),
        ["orchestrator", "research", "planner", "architect", "developer", "architect", "qa"]
    );
    assert!(room.iter().any(|it| words(it).contains("The checks pass")));
    let cards: Vec<&Value> =
        room.iter().filter(|it| it["embeds"].as_array().is_some_and(|e| !e.is_empty())).collect();
    assert_eq!(cards.len(), 1, "{cards:#?}");
    assert!(words(cards[0]).contains("Done"), "{}", words(cards[0]));
    let edits = house.told("owner");
    let edits = edits
        .iter()
        .filter(|it| it["t"] == "MESSAGE_UPDATE" && it["d"]["id"] == cards[0]["id"])
        .count();
    assert!(edits > 0, "the card was never edited");

    // For operators: a line for each hand-off.
    let handed = house.times(&request, "delegated");
    let relay = house.messages("relay").await;
    let lines = relay.iter().filter(|it| words(it).contains(request.request_id.as_str())).count();
    assert_eq!(lines, handed);
    house.close().await;
}

#[tokio::test]
async fn each_role_can_be_a_bot_of_its_own() {
    let house = House::open(Plan { bots: true, ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    let room = house.messages(&asked).await;
    for role in ["research", "planner", "architect", "developer", "qa"] {
        let id = &house.running.info.bots[role].id;
        assert!(room.iter().any(|it| it["author"]["id"] == id.as_str()), "{role} never spoke");
    }
    let general = house.messages("general").await;
    let answers = general.iter().filter(|it| it["message_reference"]["message_id"] == asked);
    assert_eq!(answers.count(), 2);
    house.close().await;
}

#[tokio::test]
async fn commits_have_the_configured_author_and_everything_counts_in_the_zone_of_the_workspace() {
    // Where it is another day than in Korea for most of the time, and never the same hour.
    let zone = chrono_tz::Pacific::Pago_Pago;
    let mut house = House::open(Plan {
        more: "commits: {name: Build Team, email: build@example.org}\n".to_owned(),
        sprint: "timezone: Pacific/Pago_Pago".to_owned(),
        ..Plan::default()
    })
    .await;
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    let repository = git2::Repository::open(house.project()).unwrap();
    let commit = repository.revparse_single("main").unwrap().peel_to_commit().unwrap();
    for who in [commit.author(), commit.committer()] {
        assert_eq!(
            (who.name().unwrap(), who.email().unwrap()),
            ("Build Team", "build@example.org")
        );
        assert_eq!(who.when().offset_minutes(), -11 * 60);
    }
    // It is made of what its developer's run reported.
    let (work, candidate) = (request.work.reported.unwrap(), request.work.candidate.unwrap());
    assert_eq!((work.tree, work.base), (candidate.tree, candidate.base));
    let begun = request.created_at;
    let id = request.request_id.as_str();
    assert!(id.starts_with(&begun.date_in(zone)), "{id}, begun {begun}");
    let month = begun.format_in(zone, "%Y-%m");
    let ledger = format!("logs/usage/{month}.jsonl");
    house.file(&ledger, id).await;
    // What confined the agent of each run stands there, whatever this machine has.
    let text = std::fs::read_to_string(house.root().join(&ledger)).unwrap();
    let confined = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(confined.into_iter().all(|line| line["isolation"].is_string()), "{text}");
    house.close().await;
}
