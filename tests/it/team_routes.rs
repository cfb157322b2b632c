//! The way that requests take, as people see and change it.

use serde_json::{Value, json};
use teams::domain::request::{Request, RequestStatus};
use teams::domain::sprint::TodoStatus;

use crate::support::house::{EDIT, EDITED, House, Plan, words};

fn with_lanes() -> Plan {
    Plan { lanes: true, ..Plan::default() }
}

/// The roles that reported, in their order.
fn roles(house: &House, request: &Request) -> Vec<String> {
    let history = house.history(request).into_iter();
    let reports = history.filter(|event| event.kind.as_str() == "role_report");
    reports.map(|event| event.actor).collect()
}

/// Waits until the ledger of runs has this many model turns of a request.
async fn takes(house: &mut House, request: &Request, turns: usize) {
    house.watch("logs/usage");
    let folder = house.root().join("logs/usage");
    house
        .until("the ledger has its turns", async |_: &House| {
            let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            let text: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
            let of_it = text.lines().filter(|line| line.contains(request.request_id.as_str()));
            (of_it.count() == turns).then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_small_edit_takes_two_turns_and_one_where_a_person_names_the_lane() {
    let mut house = House::open(with_lanes()).await;
    let message = house.ask(EDIT).await;
    let request = house.becomes(&message, RequestStatus::Committed).await;
    assert_eq!(roles(&house, &request), ["orchestrator", "developer"]);
    takes(&mut house, &request, 2).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    let again = "in greet.sh replace \"good morning\" with \"good night\"";
    let (code, said, error) = house.teams(&["fast", "--wait", again]).await;
    assert_eq!(code, 0, "{said}{error}");
    let last = house.requests().into_iter().find(|it| it.body == again).unwrap();
    assert_eq!(roles(&house, &last), ["developer"]);
    takes(&mut house, &last, 1).await;
    assert_eq!(house.on_branch("greet.sh"), "echo good night\n");
    // A question is answered by one.
    let message = house.ask("what files are there?").await;
    let asked = house.becomes(&message, RequestStatus::Completed).await;
    takes(&mut house, &asked, 1).await;
    house.close().await;
}

#[tokio::test]
async fn what_is_more_than_the_fast_lane_is_for_goes_on_in_the_next_and_the_room_says_why() {
    let house = House::open(with_lanes()).await;
    house.reads("startup", "The team is up").await;
    let edits: Vec<String> =
        (1..=4).map(|n| format!("create `n{n}.txt`:\n```\n{n}\n```")).collect();
    let (code, said, error) = house.teams(&["fast", "--wait", &edits.join("\n")]).await;
    assert_eq!(code, 0, "{said}{error}");
    let request = house.requests().pop().unwrap();
    assert_eq!(roles(&house, &request), ["developer", "architect"]);
    let routed: Vec<String> = (house.history(&request).into_iter())
        .filter(|event| event.kind.as_str() == "routed")
        .map(|event| event.summary)
        .collect();
    assert_eq!(routed, ["fast", "quick"]);
    house.close().await;
}

/// The card in a room, once it shows this and has a list to choose from.
async fn card(house: &House, room: &str, part: &str) -> (Value, String) {
    house
        .until(part, async |house: &House| {
            house.messages(room).await.into_iter().find_map(|message| {
                let rows = message["components"].as_array()?.clone();
                let menu = rows.iter().find(|row| row["components"][0]["type"] == 3)?;
                let id = menu["components"][0]["custom_id"].as_str()?.to_owned();
                message["embeds"].to_string().contains(part).then(|| (message.clone(), id))
            })
        })
        .await
}

#[tokio::test]
async fn a_card_shows_the_way_and_its_menu_changes_it_for_whoever_may() {
    let mut plan = with_lanes();
    plan.script = Some("- {role: developer, times: 1, do: block}\n".to_owned());
    let house = House::open(plan).await;
    let message = house.ask(EDIT).await;
    let request = house.becomes(&message, RequestStatus::Blocked).await;
    let room = request.conversation.room.and_then(|room| room.thread_id).unwrap().to_string();
    let (shown, menu) = card(&house, &room, "Fast: ").await;
    let line = shown["embeds"][0]["description"].as_str().unwrap();
    assert!(line.contains("~~Research~~ → ~~First plan~~"), "{line}");
    assert!(line.contains("**Building**") && line.contains("~~QA~~"), "{line}");
    let choose = |lane: &str| json!({"channel": room, "message": shown["id"], "custom_id": menu, "values": [lane]});
    // A guest holds no right at all.
    house.guest.ok("POST", "/_local/click", choose("quick")).await;
    house.owner.ok("POST", "/_local/click", choose("standard")).await;
    let (shown, _) = card(&house, &room, "Standard: ").await;
    let line = shown["embeds"][0]["description"].as_str().unwrap();
    // What is behind it stays left out; what is ahead is taken.
    assert!(line.contains("~~First plan~~") && !line.contains("~~QA~~"), "{line}");
    house.press(&house.owner, &room, "Standard: ", "Try again").await;
    let request = house.becomes(&message, RequestStatus::Committed).await;
    let worked = roles(&house, &request);
    assert_eq!(worked, ["orchestrator", "developer", "developer", "architect", "qa"]);
    house.close().await;
}

#[tokio::test]
async fn the_way_of_words_is_told_before_anything_is_done() {
    let house = House::built(with_lanes()).await;
    for (text, lane) in [
        ("how does the greeting work?", "Lane: answer"),
        ("do not add a cache, just tell me how the greeting works", "Lane: answer"),
        ("qwertz", "Lane: full"),
    ] {
        let (code, said, error) = house.teams(&["route", "--text", text]).await;
        assert_eq!(code, 0, "{error}");
        assert!(said.contains(lane), "{text}: {said}");
    }
    for wrong in [
        &["route"][..],
        &["route", "no-id"],
        &["route", "20260324-1a2b3c4d", "--lane", "slow"],
        &["route", "--text", "x", "--lane", "full"],
        &["ask", "--lane", "", "x"],
        &["fast"],
    ] {
        let (code, _, error) = house.teams(wrong).await;
        assert_eq!(code, 2, "{wrong:?}: {error}");
    }
    // A file that is wrong is named with its line, and nothing starts.
    let path = house.root().join("routes.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("[architect_review]", "[architect_revue]")).unwrap();
    let (code, _, error) = house.teams(&["route", "--text", "x"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("routes.yaml") && error.contains("architect_revue"), "{error}");
}

#[tokio::test]
async fn a_message_with_two_pieces_of_work_is_two_requests_where_somebody_says_so() {
    let piece = |name: &str| format!("create {name}.md with \"{name}\"");
    let said = format!("{} — and, unrelated: {}", piece("north"), piece("south"));
    let script = json!([{"role": "orchestrator", "contains": "unrelated", "do": "propose",
        "proposals": {"request_handling": {"mode": "route"}, "request_parts": [piece("north"), piece("south")]}}]);
    let house = House::open(Plan::script(&script.to_string())).await;
    let message = house.ask(&said).await;
    let card = words(&house.reads(&message, "2 pieces of work").await);
    assert!(card.contains("1. create north.md") && card.contains("2. create south.md"), "{card}");
    house.becomes(&message, RequestStatus::Blocked).await;
    house.press(&house.owner, &message, "2 pieces of work", "Split").await;
    house
        .until("both land", async |house: &House| {
            let all = house.requests();
            let landed = all.iter().filter(|it| it.status == RequestStatus::Committed);
            (landed.count() == 2).then_some(())
        })
        .await;
    let files = (house.on_branch("north.md"), house.on_branch("south.md"));
    assert_eq!(files, ("north\n".to_owned(), "south\n".to_owned()));
    assert_eq!(house.commits().len(), 2);
    house.close().await;
}

/// The planner finds that the request is several changes, and whoever asked has them brought as a sprint.
#[tokio::test]
async fn a_plan_of_several_items_is_a_sprint_where_somebody_says_so() {
    let piece = |name: &str, after: &[&str]| {
        json!({
            "title": format!("create {name}.md with \"{name}\""), "summary": "", "kind": "feature",
            "scope": format!("create {name}.md with \"{name}\""), "depends_on": after,
            "acceptance_criteria": [format!("{name}.md says it")],
        })
    };
    let items = [piece("north", &[]), piece("south", &["create north.md with \"north\""])];
    let script = json!([{"role": "planner", "step": "planner_draft", "times": 1, "do": "propose", "proposals": {
        "backlog_items": items, "acceptance_criteria": ["both are there"],
        "allowed_paths": ["*.md"],
    }}]);
    let house = House::open(Plan::script(&script.to_string())).await;
    let message = house.ask("create pages.md with \"pages\"").await;
    let card = words(&house.reads(&message, "The plan has 2 items").await);
    assert!(card.contains("1. create north.md") && card.contains("2. create south.md"), "{card}");
    let id = house.requests()[0].request_id.to_string();
    let (_, why, _) = house.teams(&["why", &id]).await;
    assert!(why.contains("waits for Owner"), "{why}");
    house.press(&house.owner, &message, "The plan has 2 items", "A sprint").await;
    house.becomes(&message, RequestStatus::Completed).await;
    let todos = house
        .until("both are brought", async |house: &House| {
            let state = house.state()?;
            let sprint = state.sprints.values().next()?;
            (!sprint.closing.report_path.is_empty()).then(|| sprint.work.todos.clone())
        })
        .await;
    let all: Vec<_> =
        todos.iter().map(|todo| (todo.title.as_str(), todo.progress.status)).collect();
    assert!(all.iter().all(|(_, status)| *status == TodoStatus::Committed), "{all:#?}");
    let files = (house.on_branch("north.md"), house.on_branch("south.md"));
    assert_eq!(files, ("north\n".to_owned(), "south\n".to_owned()));
    house.close().await;
}
