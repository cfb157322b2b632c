//! What a plan leaves to people is looked at by them after it has landed, in any order, whenever they like.

use serde_json::{Value, json};
use teams::domain::item::ItemStatus;
use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, House, Plan, button, words};
use crate::team_commands::told;

/// An edit with three things that only people can see.
fn asked() -> String {
    format!(
        "{EDIT}\n(manual) the greeting reads well on a phone\n(manual) it sounds friendly\n(manual) nobody is woken up"
    )
}

async fn form(house: &House) -> Value {
    house
        .until("the form", async |house: &House| {
            house
                .told("owner")
                .into_iter()
                .rfind(|it| it["t"] == "DIALOG")
                .map(|it| it["d"].clone())
        })
        .await
}

/// Fills in the newest form that the owner was shown, and sends it.
pub(crate) async fn fill(house: &House, words: &str) {
    let form = form(house).await;
    let filled = json!({
        "interaction": form["id"], "custom_id": form["data"]["custom_id"],
        "values": {"question": words},
    });
    house.owner.ok("POST", "/_local/modal", filled).await;
}

#[tokio::test]
async fn what_is_left_to_people_is_a_card_each_and_an_issue_becomes_an_item() {
    let mut house = House::open(Plan::default()).await;
    let message = house.ask(&asked()).await;
    let request = house.becomes(&message, RequestStatus::Committed).await;
    let manual: Vec<_> = request
        .work
        .criteria
        .iter()
        .filter(|it| it.is_manual())
        .map(|it| it.text.clone())
        .collect();
    assert_eq!(manual.len(), 3, "{manual:?}");
    let number = request.work.criteria.iter().position(|it| it.text == manual[0]).unwrap() + 1;
    let named = |at: usize| format!("{}.{}", request.request_id, number + at);
    let card = house.reads(&message, "reads well on a phone").await;
    assert!(words(&card).contains("Please look at it yourself"), "{}", words(&card));

    // Who may not approve decides nothing.
    let press = json!({
        "channel": message, "message": card["id"], "custom_id": button(&card, "It holds"),
    });
    house.guest.ok("POST", "/_local/click", press).await;
    told(&house, "guest", "You may not").await;

    // In any order: the last one by its button, the second one in the terminal, the first one with words in a form. A
    // restart in between takes nothing away.
    house.press(&house.owner, &message, "nobody is woken up", "Not now").await;
    told(&house, "owner", "It cannot be looked at now").await;
    house.stop().await;
    house.start();
    let said = house
        .until("the team answers again", async |house: &House| {
            let (code, said, _) = house.teams(&["verify"]).await;
            (code == 0).then_some(said)
        })
        .await;
    for at in 0..3 {
        assert!(said.contains(&named(at)), "{said}");
    }
    let (code, said, error) = house.teams(&["verify", &named(1), "pass"]).await;
    assert!(code == 0 && said.contains("It holds"), "{said}{error}");
    let (code, _, error) = house.teams(&["verify", &named(1), "skip"]).await;
    assert!(code == 1 && error.contains("said already"), "{error}");
    let (code, _, error) = house.teams(&["verify", &named(0), "issue"]).await;
    assert!(code == 2 && error.contains("what is wrong"), "{error}");
    let (code, _, error) = house.teams(&["verify", &named(9), "pass"]).await;
    assert!(code == 1 && error.contains("does not wait for a look"), "{error}");
    let (code, _, error) = house.teams(&["verify", "../../etc.1", "pass"]).await;
    assert!(code == 2 && error.contains("such as 20260324-1a2b3c4d.2"), "{error}");
    let slash = json!({"channel": "general", "command": "verify", "locale": "en-US"});
    house.owner.ok("POST", "/_local/slash", slash).await;
    told(&house, "owner", "These wait for a look").await;

    house.press(&house.owner, &message, "reads well on a phone", "Something is wrong").await;
    fill(&house, "the words run out of the screen").await;
    told(&house, "owner", "an item of the backlog now").await;
    let state = house.state().unwrap();
    let item =
        state.backlog.values().find(|it| it.title.contains("run out of the screen")).unwrap();
    assert_eq!(item.status, ItemStatus::Pending);
    assert!(item.scope.contains(request.request_id.as_str()), "{}", item.scope);
    // Whoever delivers it is held to the person's words, and to their look once more.
    let [words, look] = item.acceptance_criteria.as_slice() else { panic!("{item:?}") };
    assert!(words.text.contains("run out of the screen") && !words.is_manual());
    assert!(look.is_manual() && look.text == manual[0]);
    // What was said stays said.
    let (code, _, error) = house.teams(&["verify", &named(0), "pass"]).await;
    assert!(code == 1 && error.contains("said already"), "{error}");
    let (code, said, _) = house.teams(&["verify", &named(2), "skip"]).await;
    assert!(code == 0 && said.contains("Skipped"), "{said}");
    let (_, said, _) = house.teams(&["verify"]).await;
    assert!(said.contains("Nothing waits for a look"), "{said}");
    assert!(house.state().unwrap().verifications.is_empty());
    assert_eq!(house.times(&request, "verified"), 4);
    // However each was answered, its card asks no more.
    house
        .until("no card asks any more", async |house: &House| {
            let all = house.messages(&message).await;
            let mut cards = all.iter().filter(|it| {
                crate::support::house::words(it).contains("Please look at it yourself")
            });
            let is_closed = |it: &Value| it["components"].as_array().is_some_and(Vec::is_empty);
            cards.all(is_closed).then_some(())
        })
        .await;
    house.close().await;
}

#[tokio::test]
async fn what_should_be_different_is_planned_anew_and_waits_for_approval() {
    let house = House::open(Plan::default()).await;
    let message = house.ask(EDIT).await;
    let first = house.becomes(&message, RequestStatus::Committed).await;
    house.quiet().await;
    house.press(&house.owner, "general", "good morning", "Request changes").await;
    let wanted = "in greet.sh replace \"good morning\" with \"good evening\"";
    fill(&house, &format!("- {wanted}\n- (manual) it reads well")).await;
    told(&house, "owner", "First comes a plan").await;
    let card = house.reads(&message, "May this plan be built?").await;
    assert!(words(&card).contains(wanted) && words(&card).contains("it reads well"), "{card}");
    let is_second = |it: &teams::domain::request::Request| it.request_id != first.request_id;
    let second = house.requests().into_iter().find(is_second).unwrap();
    assert_eq!(second.params.follows_request_id, Some(first.request_id.clone()));
    assert_eq!(house.commits().len(), 1, "nothing is built before somebody says so");
    house.press(&house.owner, &message, "May this plan be built?", "Approve").await;
    let second = house
        .until("the change lands", async |house: &House| {
            let all = house.requests();
            all.into_iter().find(|it| is_second(it) && it.status == RequestStatus::Committed)
        })
        .await;
    assert_eq!(house.on_branch("greet.sh"), "echo good evening\n");
    // What the person wrote comes first, whatever the planner added, and what is theirs to judge waits for them.
    assert_eq!(second.work.criteria[0].text, wanted);
    assert!(second.work.criteria[1].is_manual());
    let (_, said, _) = house.teams(&["verify"]).await;
    assert!(said.contains(&format!("{}.2", second.request_id)), "{said}");
    for (arguments, code, part) in [
        (&["revise", "20260101-00000000", "x"][..], 1, "20260101-00000000"),
        (&["revise", first.request_id.as_str(), " "][..], 1, ""),
        (&["revise", "../../etc", "x"][..], 2, ""),
        (&["revise", first.request_id.as_str()][..], 2, ""),
    ] {
        let (got, _, error) = house.teams(arguments).await;
        assert!(got == code && error.contains(part), "{arguments:?}: {error}");
    }
    house.close().await;
}
