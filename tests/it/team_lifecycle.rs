//! A workspace's own lifecycle: a step more is an edit of a file, and what is under way keeps what it began with.

use teams::domain::lifecycle::{BUILT_IN, CounterName, Lifecycle};
use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, EDITED, House, Plan, words};

const STEP: &str = "  security_review:
    role: architect
    result: review
    needs: [commit]
    counts: security
    on:
      pass: qa_validation
      revise: {to: developer_revision, within: security}
      no_change: developer_build

";
const RULES: &str =
    "Look for what a stranger could misuse: words that reach a shell, paths, secrets.\n";

/// The built-in lifecycle with a review for security between the review and QA, of which there are two at most.
fn with_security() -> String {
    let review =
        "      pass: qa_validation\n      revise: {to: developer_revision, within: review}";
    for part in [review, "  conflicts: 3\n", "{done: qa_validation, review", "  qa_validation:\n"] {
        assert!(BUILT_IN.contains(part), "{part}");
    }
    BUILT_IN
        .replace(review, &review.replace("qa_validation", "security_review"))
        .replace("  conflicts: 3\n", "  conflicts: 3\n  security: 2\n")
        .replace("{done: qa_validation, review", "{done: security_review, review")
        .replace("  qa_validation:\n", &format!("{STEP}  qa_validation:\n"))
}

fn write_lifecycle(house: &House) {
    let root = house.root();
    for folder in ["lifecycles", "prompts/steps"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::fs::write(root.join("lifecycles/request.yaml"), with_security()).unwrap();
    std::fs::write(root.join("prompts/steps/security_review.md"), RULES).unwrap();
}

#[tokio::test]
async fn the_file_that_is_named_is_the_one_that_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let here = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_teams"));
        let output = command.current_dir(folder.path()).args(arguments).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (holds, said) = here(&["lifecycle", "check", "lifecycles/request.yaml"]);
    assert!(!holds && said.contains("lifecycles/request.yaml"), "{said}");
    std::fs::create_dir(folder.path().join("lifecycles")).unwrap();
    std::fs::write(
        folder.path().join("lifecycles/request.yaml"),
        "lifecycle: request\ngarbage: 1\n",
    )
    .unwrap();
    for command in ["check", "show"] {
        let (holds, said) = here(&["lifecycle", command, "lifecycles/request.yaml"]);
        assert!(!holds && said.contains("garbage"), "{said}");
    }
}

#[tokio::test]
async fn a_step_more_is_an_edit_of_the_workspaces_file_and_a_prompt() {
    let script = "- {role: architect, step: security_review, times: 1, do: revise}\n";
    let mut house = House::built(Plan::script(script)).await;
    write_lifecycle(&house);
    let (code, text, _) = house.teams(&["lifecycle", "check"]).await;
    assert_eq!((code, text.trim()), (0, "lifecycles/request.yaml holds together: 13 steps"));
    house.start();
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    let room = house.messages(&asked).await;
    let said = |part: &str| room.iter().filter(|it| words(it).contains(part)).count();
    // It is sent back once, and the revision comes by it again.
    assert_eq!((said("**security_review**"), said("**Review**")), (2, 2));
    assert_eq!((said("**Revision**"), said("**QA**")), (1, 1));
    let state = request.params.workflow.as_ref().unwrap();
    assert_eq!(state.counter(CounterName::of("security")).used, 2);
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    let (_, runs, _) = house.teams(&["prompt", "show", request.request_id.as_str()]).await;
    let run = runs.lines().find(|line| line.contains("step=security_review")).unwrap();
    let run = run.split('.').next().unwrap();
    let (code, told, _) = house.teams(&["prompt", "show", run]).await;
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("words that reach a shell"), "{told}");
    house.close().await;
}

#[tokio::test]
async fn a_reviewer_of_the_workspaces_own_has_the_budget_that_its_step_says() {
    let script = "- {role: architect, step: security_review, do: revise}\n";
    let mut house = House::built(Plan::script(script)).await;
    write_lifecycle(&house);
    house.start();
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    let why = blocked.blocked.as_ref().unwrap();
    assert_eq!(why.code.word(), "counter_limit");
    assert!(why.detail.starts_with("security\n"), "{}", why.detail);
    house.reads("general", "A limit of this workspace's lifecycle is used up").await;
    assert!(house.commits().is_empty());
    house.close().await;
}

#[tokio::test]
async fn what_is_under_way_keeps_the_lifecycle_that_it_began_with() {
    let script = "- {role: architect, step: architect_review, times: 1, do: block}\n";
    let mut house = House::open(Plan::script(script)).await;
    let older = house.ask(EDIT).await;
    let blocked = house.becomes(&older, RequestStatus::Blocked).await;
    let pinned = blocked.params.workflow.as_ref().unwrap().lifecycle.clone();
    assert_eq!(pinned, Lifecycle::built_in().digest());
    house.stop().await;
    write_lifecycle(&house);
    house.start();
    house.logs("the team is up", 2).await;
    let (code, _, error) = house.teams(&["request", "retry", blocked.request_id.as_str()]).await;
    assert_eq!(code, 0, "{error}");
    let done = house.becomes(&older, RequestStatus::Committed).await;
    assert_eq!(done.params.workflow.as_ref().unwrap().lifecycle, pinned);
    let newer = house.ask("in greet.sh replace \"morning\" with \"evening\"").await;
    let request = house.becomes(&newer, RequestStatus::Blocked).await;
    house.teams(&["request", "retry", request.request_id.as_str()]).await;
    house.becomes(&newer, RequestStatus::Committed).await;
    house.quiet().await;
    let passed = |room: &[serde_json::Value]| {
        room.iter().filter(|it| words(it).contains("**security_review**")).count()
    };
    assert_eq!(passed(&house.messages(&older).await), 0, "it knows of no such step");
    assert_eq!(passed(&house.messages(&newer).await), 1);
    assert_ne!(request.params.workflow.as_ref().unwrap().lifecycle, pinned);
    // A file that is wrong is told before anything runs, with its place.
    house.stop().await;
    let path = house.root().join("lifecycles/request.yaml");
    std::fs::write(path, with_security().replace("pass: closeout", "pass: comitted")).unwrap();
    for command in ["run", "doctor"] {
        let (code, text, error) = house.teams(&[command]).await;
        assert_eq!(code, 1, "{command}");
        let told = format!("{text}{error}");
        assert!(told.contains("request.yaml:") && told.contains("`comitted`"), "{told}");
    }
    write_lifecycle(&house);
    house.start();
    house.close().await;
}
