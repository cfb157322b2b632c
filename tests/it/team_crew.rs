//! What roles and git do for a whole sprint: research in a web of one page, a plan that was given back,
//! todos after one another, and what a person left in the checkout.

use std::sync::Arc;

use teams::domain::lifecycle::CounterName;
use teams::domain::request::RequestStatus;
use teams::domain::sprint::{Duty, PrepassStatus, Sprint, SprintStatus, TodoStatus};

use crate::git_repo::git_in;
use crate::rehearsal_sprint::page;
use crate::support::house::{House, Plan};

const TASKS: &str = "# Tasks\n\n## 1. Say goodbye\n\nCreate `bye.sh`:\n\n```sh\necho bye\n```\n\n## 2. Explain it\n\nAfter 1.\n\nCreate `DOC.md`:\n\n```\nIt greets.\n```\n";

async fn house(script: &str, more: &str) -> House {
    house_with(script, more, "").await
}

async fn house_with(script: &str, more: &str, agents: &str) -> House {
    let (more, agents) = (more.to_owned(), agents.to_owned());
    let plan = Plan { more, agents, ..Plan::script(script) };
    let mut house = House::built(plan).await;
    std::fs::write(house.project().join("TASKS.md"), TASKS).unwrap();
    git_in(&house.project(), &["add", "TASKS.md"]);
    git_in(&house.project(), &["commit", "-qm", "What is to be done"]);
    house.start();
    house.reads("startup", "The team is up").await;
    house
}

async fn ended(house: &House) -> Sprint {
    house
        .until("the sprint ends", async |house: &House| {
            let sprints = house.state()?.sprints;
            let ended = sprints.into_values().find(|sprint| sprint.ended_at.is_some());
            ended.map(Arc::unwrap_or_clone)
        })
        .await
}

#[tokio::test]
async fn a_sprint_reads_the_web_plans_again_and_leaves_what_a_person_left() {
    let script =
        "- {duty: planning, planning_step: backlog_definition, reopens: 0, do: bad_plan}\n";
    // The web of this test is on this machine, which no proxy leads to.
    let agents = "{default: rehearsal, rehearsal: {script: script.yaml, sandbox: off}}";
    let house = house_with(script, "research_defaults: {web: true}\n", agents).await;
    let address = page().await;
    let brief = format!("As they do in {address}.");
    let start = ["sprint", "start", "--milestone", "Say more", "--brief", &brief];
    let (code, said, error) = house.teams(&start).await;
    assert_eq!(code, 0, "{said}{error}");
    // The baseline is older than the first planning step.
    house
        .until("planning", async |house: &House| {
            house.requests().iter().any(|request| request.planning_step().is_some()).then_some(())
        })
        .await;
    std::fs::write(house.project().join("left.txt"), "left by a person\n").unwrap();

    let sprint = ended(&house).await;
    assert_eq!(sprint.status, SprintStatus::Completed, "{}", house.log());
    let research = sprint.planning.research.unwrap();
    assert_eq!(research.status, PrepassStatus::Completed);
    assert_eq!(research.backing_sources[0].url, address);
    assert_eq!(research.backing_sources[0].title, "How people greet");
    let reopened = sprint.planning.reopen_counts.get(&CounterName::of("backlog_definition"));
    assert_eq!(reopened, Some(&1));
    assert!(sprint.work.todos.iter().all(|todo| todo.progress.status == TodoStatus::Committed));
    let commits = house.commits();
    assert_eq!(commits.len(), 3, "{commits:?}");
    assert!(commits[0].ends_with("DOC.md: Explain it"), "{commits:?}");
    assert!(commits[1].ends_with("bye.sh: Say goodbye"), "{commits:?}");
    assert_eq!(sprint.closing.uncommitted_paths, ["left.txt"]);
    assert_eq!(git_in(&house.project(), &["status", "--porcelain"]), "?? left.txt");
    let folder = house.root().join(&sprint.sprint_folder);
    for name in ["plan.md", "spec.md", "research.md"] {
        assert!(folder.join(name).exists(), "{name}");
    }
    for todo in &sprint.work.todos {
        assert!(folder.join(format!("todos/{}/spec.md", todo.progress.todo_id)).exists());
    }
    house.close().await;
}

#[tokio::test]
async fn a_sprint_whose_planner_never_plans_is_blocked_and_says_what_is_missing() {
    let script = "- {duty: planning, planning_step: backlog_definition, do: bad_plan}\n";
    let house = house(script, "").await;
    let (code, said, error) = house.teams(&["sprint", "start", "--milestone", "Say more"]).await;
    assert_eq!(code, 0, "{said}{error}");
    let sprint = ended(&house).await;
    assert_eq!(sprint.status, SprintStatus::Blocked);
    assert_eq!(sprint.planning.research.unwrap().status, PrepassStatus::NotConfigured);
    assert!(house.state().unwrap().scheduler.active_sprint_id.is_none());
    let open = house.requests();
    assert!(open.iter().all(|request| request.status != RequestStatus::Delegated));
    house.close().await;
}

/// Row S32 of `spec/teams.md` 14.7: the sourcer fails, one finding, one candidate all the
/// same.
#[tokio::test]
async fn s32_a_finding_becomes_an_item_also_when_the_sourcer_fails() {
    let mut house = House::built(Plan {
        sprint: "start_mode: manual_daily, discovery_actions: [lint]".to_owned(),
        more: "actions: {lint: {command: [\"true\"]}}\n".to_owned(),
        ..Plan::script("- {duty: sourcing, do: fail}\n")
    })
    .await;
    std::fs::write(house.project().join("left.txt"), "left by a person\n").unwrap();
    house.start();
    let item = house
        .until("an item", async |house: &House| house.state()?.backlog.into_values().next())
        .await;
    assert_eq!(item.title, "Uncommitted change: left.txt");
    assert_eq!(item.origin.text("signal"), Some("git_dirty"));
    house.quiet().await;
    let state = house.state().unwrap();
    assert_eq!(state.backlog.len(), 1);
    assert!(state.scheduler.sourcing.watermarks["git"].contains("left.txt"));
    let asked = |duty| house.requests().iter().filter(|it| it.duty() == Some(duty)).count();
    assert_eq!((asked(Duty::Sourcing), asked(Duty::SourcerReview)), (1, 1));
    house.close().await;
}
