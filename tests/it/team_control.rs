//! The command line and the team's own control: status, why, ask, cancel, retry, registered actions.

use serde_json::{Value, json};
use teams::domain::request::{EventKind, Request, RequestStatus};

use crate::support::house::{EDIT, EDITED, House, Plan, words};

#[tokio::test]
async fn an_operator_asks_looks_and_withdraws() {
    let script = "- {role: developer, do: hang}\n";
    let mut house = House::open(Plan::script(script)).await;
    house.reads("startup", "The team is up").await;
    let (code, text, error) = house.teams(&["ask", EDIT]).await;
    assert_eq!(code, 0, "{error}");
    let request = house
        .until("the developer works", async |house: &House| {
            let all = house.requests();
            all.into_iter().find(|it| {
                it.work.active_run.is_some()
                    && it.route.current_role.is_some_and(|r| r.as_str() == "developer")
            })
        })
        .await;
    let id = request.request_id.as_str();
    assert!(text.contains(id), "{text}");
    let (_, status, _) = house.teams(&["status"]).await;
    assert!(status.contains("team: running") && status.contains(id), "{status}");
    let (_, json, _) = house.teams(&["status", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["running"], true);
    assert_eq!(json["open_requests"].as_array().unwrap().len(), 1);
    let (_, why, _) = house.teams(&["why", id]).await;
    assert!(why.contains("Developer has worked on Building"), "{why}");
    let (code, text, _) = house.teams(&["request", "retry", id]).await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("already being worked on"), "{text}");
    let (code, text, _) = house.teams(&["request", "cancel", id]).await;
    assert_eq!(code, 0);
    assert!(text.contains("withdrawn"), "{text}");
    house.reads("report", "was withdrawn by operator").await;
    house.quiet().await;
    let (_, why, _) = house.teams(&["why", id]).await;
    assert!(why.contains("has ended: Withdrawn"), "{why}");
    let (code, _, error) = house.teams(&["why", "20200101-deadbeef"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("there is no request"), "{error}");
    assert!(house.commits().is_empty());
    house.stop().await;
    let (code, _, error) = house.teams(&["ask", "hello"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("teams run"), "{error}");
    house.start();
    house.close().await;
}

/// It has no message of a person for its room to hang on: that is posted, where it was asked, or where the team reports.
#[tokio::test]
async fn what_is_asked_by_a_command_has_a_room() {
    let house = House::open(Plan::script("- {role: developer, do: hang}\n")).await;
    house.reads("startup", "The team is up").await;
    let question = "which tasks are left?";
    let options = json!([{"type": 3, "name": "text", "value": question}]);
    let slash = async |channel: &str| {
        let body =
            json!({"channel": channel, "command": "ask", "options": options, "locale": "en-US"});
        house.owner.ok("POST", "/_local/slash", body).await;
    };
    let (code, _, error) = house.teams(&["ask", question]).await;
    assert_eq!(code, 0, "{error}");
    let post = in_its_room(&house, "report", question).await;
    // The operator cannot be named: the answer answers what was posted.
    let answers = |it: &Value| it["message_reference"]["message_id"] == post;
    house.heard("report", "the answer", answers).await;
    slash("general").await;
    in_its_room(&house, "general", question).await;
    house
        .heard("general", "the answer", |it| {
            words(it).contains("<@") && words(it).contains("no task list")
        })
        .await;
    // A thread has no threads: in a room it is asked beside it.
    let asked = house.ask(EDIT).await;
    let has_room = |it: &Request| it.conversation.thread().is_some();
    let at_work = house.request(&asked, "it has a room", has_room).await;
    slash(&at_work.conversation.thread().unwrap().to_string()).await;
    house
        .until("it is posted beside", async |house: &House| {
            let posts = house.messages("general").await;
            let posts = posts.iter().filter(|it| words(it).contains("**Owner**: which tasks"));
            (posts.count() == 2).then_some(())
        })
        .await;
    house.press(&house.owner, &asked, "Working", "Withdraw").await;
    house.becomes(&asked, RequestStatus::Cancelled).await;
    house.close().await;
}

/// It stands in a room of which nobody at the terminal hears.
#[tokio::test]
async fn where_the_card_about_a_request_of_the_operator_stands_is_told_in_the_report_channel() {
    let house = House::open(Plan { checks: "[]".to_owned(), ..Plan::default() }).await;
    house.reads("startup", "The team is up").await;
    let (code, _, error) = house.teams(&["ask", EDIT]).await;
    assert_eq!(code, 0, "{error}");
    let room = in_its_room(&house, "report", "**operator**").await;
    house.reads(&room, "May this go to the branch?").await;
    house.reads("report", &format!("its card is in <#{room}>")).await;
    let open = house.requests();
    let (code, _, error) = house.teams(&["request", "cancel", open[0].request_id.as_str()]).await;
    assert_eq!(code, 0, "{error}");
    house.close().await;
}

/// Its card stands in a thread on what was posted of it, which has the same id.
async fn in_its_room(house: &House, channel: &str, part: &str) -> String {
    let post = house.reads(channel, part).await;
    let thread = post["id"].as_str().unwrap().to_owned();
    house.heard(&thread, "its card", |_| true).await;
    thread
}

#[tokio::test]
async fn the_cancel_button_ends_the_work_under_way() {
    let house = House::open(Plan::script("- {role: developer, do: hang}\n")).await;
    let asked = house.ask(EDIT).await;
    house
        .request(&asked, "the developer works", |it| {
            it.work.active_run.is_some()
                && it.route.current_role.is_some_and(|r| r.as_str() == "developer")
        })
        .await;
    house.press(&house.guest, &asked, "Working", "Withdraw").await;
    house
        .until("the guest is told no", async |house: &House| {
            let told = house.told("guest");
            told.iter().any(|it| words(&it["d"]).contains("You may not ask")).then_some(())
        })
        .await;
    house.press(&house.owner, &asked, "Working", "Withdraw").await;
    house.becomes(&asked, RequestStatus::Cancelled).await;
    house.reads("general", "was withdrawn by Owner").await;
    house.close().await;
}

fn with_actions(control: &str) -> Plan {
    let more = "actions:\n  greet:\n    command: [sh, -c, 'printf \"%s\" \"$1\" > greeted.txt; echo greeted', greet, '{name}']\n    allowed_params: [name]\n  broken: {command: [sh, -c, 'echo it broke; exit 4']}\n".to_owned();
    let script = format!("- {{role: orchestrator, times: 1, do: control, control: {control}}}\n");
    Plan { more, ..Plan::script(&script) }
}

#[tokio::test]
async fn a_registered_action_runs_with_its_parameters_as_words() {
    let control =
        "{kind: execute_action, action_name: greet, params: {name: 'Mina; rm -rf $HOME'}}";
    let house = House::open(with_actions(control)).await;
    let asked = house.ask("greet Mina").await;
    let request = house.becomes(&asked, RequestStatus::Completed).await;
    house.reads("general", "`greet` is done").await;
    let written = std::fs::read_to_string(house.root().join("greeted.txt")).unwrap();
    assert_eq!(written, "Mina; rm -rf $HOME");
    let operation = request.work.operation_id.unwrap();
    let log = house.root().join(format!("logs/operations/{operation}.log"));
    assert_eq!(std::fs::read_to_string(log).unwrap(), "greeted\n");
    house.close().await;
}

#[tokio::test]
async fn withdrawing_ends_the_action_that_its_request_waits_for() {
    let command = "sleep 1000000 & echo $! > .teams_runtime/operations/action.pid; wait";
    let more = format!("actions:\n  forever: {{command: [sh, -c, '{command}']}}\n");
    let control = "{kind: execute_action, action_name: forever}";
    let plan = Plan { more, ..with_actions(control) };
    let house = House::open(plan).await;
    let asked = house.ask("wait for ever").await;
    let sleeper = house.pid("action.pid").await;
    let request = house.request(&asked, "it is known", |_| true).await;
    let (code, _, error) = house.teams(&["request", "cancel", request.request_id.as_str()]).await;
    assert_eq!(code, 0, "{error}");
    house.becomes(&asked, RequestStatus::Cancelled).await;
    house.quiet().await;
    assert!(!sleeper.exists(), "the action is still there");
    house.close().await;
}

/// A control action that comes to nothing, and the words for it.
async fn is_refused(control: &str, word: &str) {
    let house = House::open(with_actions(control)).await;
    let asked = house.ask("do something to yourself").await;
    house.becomes(&asked, RequestStatus::Failed).await;
    house.reads("general", word).await;
    assert!(!house.root().join("greeted.txt").exists());
    house.close().await;
}

#[tokio::test]
async fn an_action_that_fails() {
    is_refused("{kind: execute_action, action_name: broken}", "exit code 4").await;
}

#[tokio::test]
async fn an_action_that_nobody_registered() {
    is_refused("{kind: execute_action, action_name: format_disk}", "There is no action").await;
}

#[tokio::test]
async fn an_action_with_other_parameters_than_its_own() {
    let control = "{kind: execute_action, action_name: greet, params: {path: /etc}}";
    is_refused(control, "path is not a parameter of it").await;
}

#[tokio::test]
async fn a_control_action_that_does_not_exist() {
    // The agent is told that there is none such, and hands the request on instead.
    let house = House::open(with_actions("{kind: self_destruct}")).await;
    let asked = house.ask("do something to yourself").await;
    let request = house.becomes(&asked, RequestStatus::Blocked).await;
    let history = house.history(&request);
    let intake = history.iter().find(|it| it.kind == EventKind::RoleReport).unwrap();
    assert_eq!(intake.actor, "orchestrator");
    assert_eq!(intake.payload["repairs"], 1);
    assert_eq!(intake.payload["result"]["proposals"]["control_action"], serde_json::Value::Null);
    house.close().await;
}

#[tokio::test]
async fn an_answer_in_the_room_resumes_a_blocked_request() {
    let house = House::open(Plan::script("- {role: developer, times: 1, do: block}\n")).await;
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Blocked).await;
    house.reads("general", "needs Owner").await;
    house.say(&asked, "go on as you think best").await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(request.params.followups[0].body, "go on as you think best");
    assert_eq!(house.times(&request, "resumed"), 1);
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}
