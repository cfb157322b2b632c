//! A negative verdict sends the work back, and only a later positive one lets it through.

use teams::domain::lifecycle::counter;
use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, EDITED, House, Plan, words};

#[tokio::test]
async fn a_reviewer_sends_the_work_back_once() {
    let script = "- {role: architect, step: architect_review, times: 1, do: revise}\n";
    let house = House::open(Plan::script(script)).await;
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    let room = house.messages(&asked).await;
    let said = |part: &str| room.iter().filter(|it| words(it).contains(part)).count();
    assert_eq!(said("**Review**"), 2);
    assert_eq!(said("**Revision**"), 1);
    assert_eq!(said("**QA**"), 1);
    assert_eq!(request.params.workflow.unwrap().counter(counter::REVIEW).used, 2);
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn a_reviewer_who_is_never_content_ends_at_a_person() {
    let script = "- {role: architect, step: architect_review, do: revise}\n";
    let house = House::open(Plan::script(script)).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "review_limit");
    house.reads("general", "needs Owner").await;
    assert!(house.commits().is_empty());
    house.close().await;
}

#[tokio::test]
async fn qa_turns_the_work_down_once() {
    let script = "- {role: qa, times: 1, do: revise}\n";
    let house = House::open(Plan::script(script)).await;
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    let room = house.messages(&asked).await;
    let said = |part: &str| room.iter().filter(|it| words(it).contains(part)).count();
    assert_eq!(said("**QA**"), 2);
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn qa_that_never_passes_ends_at_a_person() {
    let script = "- {role: qa, do: fail}\n";
    let house = House::open(Plan::script(script)).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert!(blocked.blocked.as_ref().unwrap().code.is_a_spent_loop(), "{:?}", blocked.blocked);
    assert!(house.commits().is_empty());
    house.close().await;
}
