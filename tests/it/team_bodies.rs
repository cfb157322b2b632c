//! What a role wrote at length: a person reads its beginning in the room and has all of it as a file.

use serde_json::{Value, json};
use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, House, Plan, words};

/// The files of a message as a reader downloads them: name and text.
async fn files(message: &Value) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for file in message["attachments"].as_array().into_iter().flatten() {
        let answer = reqwest::get(file["url"].as_str().unwrap()).await.unwrap();
        let text = answer.error_for_status().unwrap().text().await.unwrap();
        files.push((file["filename"].as_str().unwrap().to_owned(), text));
    }
    files
}

/// What the script says, `times` over.
fn lines(words: &str, times: usize) -> String {
    (1..=times).map(|at| format!("{at}. {words}")).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn what_a_role_wrote_at_length_arrives_whole_as_a_file() {
    let (report, plan) = (
        "The greeting is read from the environment, and every caller says so.",
        "One more step of a plan that nobody reads in a row, but everybody can have as a file.",
    );
    let script = json!([
        {"role": "planner", "step": "planner_draft", "do": "say", "text": plan, "times_over": 2_200},
        {"role": "developer", "do": "say", "text": report, "times_over": 450},
    ]);
    let house = House::open(Plan::script(&script.to_string())).await;
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;

    let (report, plan) = (lines(report, 450), lines(plan, 2_200));
    assert!(report.len() > 30_000 && plan.len() > 100 * 1_900, "{} {}", report.len(), plan.len());
    for (step, name, text) in
        [("**Building**", "report.md", &report), ("**First plan**", "plan.md", &plan)]
    {
        let said = house.reads(&asked, step).await;
        let shown = words(&said);
        assert!(shown.chars().count() <= 2_000);
        assert!(shown.contains("\n1. ") && shown.contains(name), "{shown}");
        // Whole lines: what is shown is a beginning of the file, up to the end of a line.
        let part = shown.split_once('\n').unwrap().1.split_once("\n…").unwrap().0;
        assert!(part.len() > 700, "{part}");
        assert!(text.starts_with(&format!("{part}\n")), "{part}");
        assert_eq!(files(&said).await, [(name.to_owned(), text.clone())]);
    }
    // The outcome, where it was asked.
    let outcome = house.reads("general", "**Done.**").await;
    assert_eq!(files(&outcome).await, [("report.md".to_owned(), report)]);
    house.close().await;
}

#[tokio::test]
async fn who_decides_gets_the_whole_difference() {
    let plan = Plan { checks: "[]".to_owned(), ..Plan::default() };
    let house = House::open(plan).await;
    let poem: String = (1..=60).map(|at| format!("line {at} of a long poem\n")).collect();
    let asked = house.ask(&format!("Create `poem.txt`:\n```\n{poem}```")).await;
    let card = house.reads(&asked, "May this go to the branch?").await;
    assert!(words(&card).contains("+line 1 of") && !words(&card).contains("line 60"));
    let files = files(&card).await;
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].0, "change.diff");
    assert!(files[0].1.contains("+line 60 of a long poem"), "{}", files[0].1);
    house.press(&house.owner, &asked, "May this go", "Approve").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.close().await;
}

#[tokio::test]
async fn no_secret_that_a_role_writes_reaches_the_chat() {
    let mut house = House::built(Plan::script("[]")).await;
    let token = house.running.info.bots["teams"].token.clone();
    let text = format!("what I found: {token}");
    let script = json!([{"role": "developer", "do": "say", "text": text, "times_over": 100}]);
    std::fs::write(house.root().join("script.yaml"), script.to_string()).unwrap();
    house.start();
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    let report = house.reads(&asked, "**Building**").await;
    let all = files(&report).await;
    assert!(words(&report).contains("what I found") && all[0].1.contains("100. what I found"));
    assert!(!all[0].1.contains(&token) && !house.transcript().await.contains(&token));
    house.close().await;
}
