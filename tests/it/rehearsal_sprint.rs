//! The rehearsal agent as a real process in everything that a sprint and the backlog want of a role.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use teams::agents::rehearsal::RehearsalSettings;
use teams::agents::{
    Agent, Driver, Limits, PersonMessage, RunSpec, Sandbox, SprintBrief, Task, TaskDocument, Watch,
    Work, WriteAccess,
};
use teams::domain::ids::{ItemId, RunId, SprintId};
use teams::domain::item::{Item, ItemKind, ItemStatus};
use teams::domain::lifecycle::StepName;
use teams::domain::result::{ReasonCode, ResultStatus, RoleResult};
use teams::domain::role::Role;
use teams::domain::run::RunOutcome;
use teams::domain::sprint::{Duty, PlanningStep};
use teams::domain::time::Timestamp;
use teams::platform::spawn::set_own_binary;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::CONTRACT;

const PATIENCE: Duration = Duration::from_secs(120);
const SPRINT: &str = "260324-Sprint-09:00";
const FOLDER: &str = "shared_workspace/sprints/260324-Sprint-09-00";

/// The demo's project and a workspace folder beside it.
struct Place {
    folder: tempfile::TempDir,
    runs: u32,
}

impl Place {
    fn new() -> Place {
        set_own_binary(env!("CARGO_BIN_EXE_teams").into());
        let folder = tempfile::tempdir().unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("scaffold/demo/project");
        copy(&from, &folder.path().join("tree"));
        std::fs::create_dir_all(folder.path().join(FOLDER)).unwrap();
        Place { folder, runs: 0 }
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    async fn run(
        &mut self,
        role: Role,
        step: Option<StepName>,
        work: Work,
        script: &str,
    ) -> RoleResult {
        self.runs += 1;
        let root = self.folder.path();
        let path = root.join("script.yaml");
        std::fs::write(&path, script).unwrap();
        let run = format!("run-{}", self.runs);
        let documents = ["plan.md", "spec.md", "research.md"].map(|name| TaskDocument {
            name: format!("{FOLDER}/{name}"),
            path: root.join(FOLDER).join(name),
            purpose: "a document".to_owned(),
            writable: true,
        });
        let spec = RunSpec {
            run_id: RunId::parse(&run).unwrap(),
            run_dir: root.join("runs").join(&run),
            session_dir: root.join("sessions").join(&run),
            worktree: root.join("tree"),
            access: if role == Role::Developer {
                WriteAccess::Worktree
            } else {
                WriteAccess::Documents(root.join(FOLDER))
            },
            agent: Agent::Rehearsal(RehearsalSettings {
                script: Some(path).filter(|_| !script.is_empty()),
                // The web of these tests is on this machine, which no proxy leads to.
                sandbox: if work.web { Sandbox::Off } else { Sandbox::Auto },
            }),
            socket: None,
            surroundings: Default::default(),
            task: Task {
                charter: "You work.".to_owned(),
                documents: documents.to_vec(),
                work,
                ..Task::first(
                    role,
                    step,
                    "20260324-00000001",
                    PersonMessage::new("Mina", "the sprint asks"),
                )
            },
            resume: None,
            limits: Limits::default(),
            templates: BTreeMap::new(),
        };
        let watch = Watch::default();
        let driver = Driver::default();
        let outcome = tokio::time::timeout(PATIENCE, driver.run(&spec, &CONTRACT, &watch)).await;
        match outcome.expect("the run did not end").outcome {
            RunOutcome::Result(result) => std::sync::Arc::unwrap_or_clone(result),
            RunOutcome::Failed { kind, message, .. } => panic!("{kind:?}: {message}"),
        }
    }

    async fn duty(&mut self, role: Role, work: Work) -> RoleResult {
        self.run(role, None, work, "").await
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn sprint(milestone: &str) -> SprintBrief {
    SprintBrief {
        sprint_id: SPRINT.to_owned(),
        folder: FOLDER.to_owned(),
        requested_milestone: milestone.to_owned(),
        milestone: milestone.to_owned(),
        ..SprintBrief::default()
    }
}

fn planning(step: PlanningStep, sprint: &SprintBrief, backlog: &[Item]) -> Work {
    Work {
        duty: Some(Duty::Planning),
        planning_step: Some(step),
        sprint: Some(sprint.clone()),
        backlog: backlog.to_vec(),
        ..Work::default()
    }
}

fn items(result: &RoleResult) -> Vec<Value> {
    result.proposals.backlog_items.iter().flatten().map(|item| json!(item)).collect()
}

/// Stores what was proposed, as far as these tests need it.
fn merge(backlog: &mut Vec<Item>, proposed: &[Value]) {
    for one in proposed {
        let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let stored = backlog.iter().position(|item| item.backlog_id.as_str() == text("backlog_id"));
        let at = stored.unwrap_or_else(|| {
            let id = ItemId::parse(&format!("backlog-{}", backlog.len())).unwrap();
            let at = Timestamp::from_millis(0);
            backlog.push(Item::new(id, "", "", ItemKind::Feature, at));
            backlog.len() - 1
        });
        let before: Vec<ItemId> = one["depends_on"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|name| backlog.iter().find(|item| name == item.title.as_str()).unwrap())
            .map(|item| item.backlog_id.clone())
            .collect();
        let item = &mut backlog[at];
        item.title = text("title");
        item.summary = text("summary");
        item.scope = text("scope");
        if one.get("depends_on").is_some() {
            item.depends_on = before;
        }
        if let Some(rank) = one["priority_rank"].as_u64() {
            item.priority_rank = u32::try_from(rank).unwrap();
        }
        if let Some(title) = one["milestone_title"].as_str() {
            item.milestone_title = title.to_owned();
        }
        if let Some(id) = one["planned_in_sprint_id"].as_str() {
            item.planned_in_sprint_id = Some(SprintId::parse(id).unwrap());
        }
    }
}

/// The five steps; the items that they leave.
async fn plan(place: &mut Place, sprint: &SprintBrief) -> Vec<Item> {
    let mut backlog = Vec::new();
    for step in PlanningStep::ALL {
        let result = place.duty(Role::Planner, planning(step, sprint, &backlog)).await;
        assert_eq!(result.status, ResultStatus::Completed, "{step}");
        merge(&mut backlog, &items(&result));
    }
    backlog
}

#[tokio::test]
async fn six_todos_are_planned_and_stay_green_one_by_one() {
    let mut place = Place::new();
    let sprint = sprint("Greet everybody");
    let spec = place.folder.path().join(FOLDER).join("spec.md");
    std::fs::write(&spec, "<!-- teams:generated x -->\nours\n<!-- /teams:generated -->\n").unwrap();
    let backlog = plan(&mut place, &sprint).await;
    let text = std::fs::read_to_string(&spec).unwrap();
    assert!(text.starts_with("<!-- teams:generated x -->\nours\n<!-- /teams:generated -->\n"));
    assert!(text.contains("S6: Write down what changed"), "{text}");
    let planned: Vec<_> = backlog.iter().map(|item| (item.priority_rank, &item.title)).collect();
    assert_eq!(planned.len(), 6, "{planned:?}");
    assert_eq!(planned.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(backlog[5].depends_on.len(), 3);
    for item in &backlog {
        assert_eq!(item.planned_in_sprint_id.as_ref().unwrap().as_str(), SPRINT);
    }
    for (done, item) in backlog.iter().enumerate() {
        let work =
            Work { sprint: Some(sprint.clone()), item: Some(item.clone()), ..Work::default() };
        let built =
            place.run(Role::Developer, Some(StepName::of("developer_build")), work, "").await;
        assert_eq!(built.status, ResultStatus::Completed, "{}: {}", item.title, built.summary);
        let checks = Command::new("sh").arg("test.sh").current_dir(place.tree()).output().unwrap();
        let said = String::from_utf8_lossy(&checks.stdout).into_owned();
        assert!(checks.status.success(), "{}: {said}", item.title);
        // What is done stays done, so that nobody plans it a second time.
        let again = planning(PlanningStep::BacklogDefinition, &sprint, &[]);
        let left = items(&place.duty(Role::Planner, again).await).len();
        assert_eq!(left, 5 - done, "after {}", item.title);
    }
}

#[tokio::test]
async fn a_kickoff_that_names_tasks_gets_these_and_what_comes_before_them() {
    let mut place = Place::new();
    let mut named = sprint("Greet in more ways");
    named.requirements = vec!["task 4 is done".to_owned()];
    let backlog = plan(&mut place, &named).await;
    let titles: Vec<&str> = backlog.iter().map(|item| item.title.as_str()).collect();
    assert_eq!(titles, ["Add --shout", "Take the name from the environment"]);
}

#[tokio::test]
async fn every_item_meets_what_the_steps_ask_for() {
    let mut place = Place::new();
    let mut sprint = sprint("Greet everybody");
    sprint.requirements = vec!["it shouts".to_owned()];
    let frame = planning(PlanningStep::MilestoneRefinement, &sprint, &[]);
    let framed = place.duty(Role::Planner, frame).await;
    let update = json!(framed.proposals.sprint_plan_update.unwrap());
    for key in ["revised_milestone_title", "refinement_rationale", "problem_framing"] {
        assert!(!update[key].as_str().unwrap().is_empty(), "{key}");
    }
    let define = planning(PlanningStep::BacklogDefinition, &sprint, &[]);
    for item in items(&place.duty(Role::Planner, define).await) {
        assert!(!item["acceptance_criteria"].as_array().unwrap().is_empty());
        assert_eq!(item["milestone_title"], "Greet everybody");
        let origin = &item["origin"];
        assert_eq!(origin["milestone_ref"], "Greet everybody");
        assert_eq!(origin["requirement_refs"], json!(["it shouts"]));
        assert_eq!(origin["spec_refs"], json!([format!("{FOLDER}/spec.md")]));
    }
}

#[tokio::test]
async fn a_sprint_that_the_team_began_takes_what_waits_in_the_backlog() {
    let mut place = Place::new();
    let at = Timestamp::from_millis(0);
    let id = ItemId::parse("backlog-w").unwrap();
    let waiting = Item::new(id, "Say how it is used", "do task 3", ItemKind::Bug, at);
    let define = planning(PlanningStep::BacklogDefinition, &sprint(""), &[waiting]);
    let found = items(&place.duty(Role::Planner, define).await);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["backlog_id"], "backlog-w");
    assert_eq!(found[0]["milestone_title"], "Say how it is used");
}

#[tokio::test]
async fn a_script_makes_any_step_fail_block_or_plan_badly() {
    let mut place = Place::new();
    let script = "- {duty: planning, planning_step: backlog_definition, reopens: 0, do: bad_plan}\n- {duty: planning, planning_step: artifact_sync, do: fail}\n- {duty: closing_report, do: block}\n";
    let sprint = sprint("Greet everybody");
    for (step, reopens, status, count) in [
        (PlanningStep::BacklogDefinition, 0, ResultStatus::Completed, 0),
        (PlanningStep::BacklogDefinition, 1, ResultStatus::Completed, 6),
        (PlanningStep::ArtifactSync, 0, ResultStatus::Failed, 0),
    ] {
        let work = Work { reopens, ..planning(step, &sprint, &[]) };
        let result = place.run(Role::Planner, None, work, script).await;
        assert_eq!((result.status, items(&result).len()), (status, count), "{step} {reopens}");
    }
    let work = Work { duty: Some(Duty::ClosingReport), sprint: Some(sprint), ..Work::default() };
    let result = place.run(Role::Planner, None, work, script).await;
    assert_eq!(result.status, ResultStatus::Blocked);
}

#[tokio::test]
async fn findings_become_candidates_and_candidates_items() {
    let mut place = Place::new();
    let finding = json!({"signal": "git_dirty", "trace": "git:abc", "title": "Uncommitted changes",
        "summary": "a.txt", "origin": {"paths": ["a.txt"]}});
    let work =
        Work { duty: Some(Duty::Sourcing), findings: vec![finding.clone()], ..Work::default() };
    let candidates = items(&place.duty(Role::Sourcer, work).await);
    assert_eq!(candidates.len(), 1);
    assert_eq!(candidates[0]["origin"]["trace"], "git:abc");
    assert_eq!(candidates[0]["origin"]["signal"], "git_dirty");
    let review = |backlog: Vec<Item>| Work {
        duty: Some(Duty::SourcerReview),
        candidates: candidates.clone(),
        backlog,
        ..Work::default()
    };
    assert_eq!(items(&place.duty(Role::Planner, review(Vec::new())).await), candidates);
    let id = ItemId::parse("backlog-k").unwrap();
    let at = Timestamp::from_millis(0);
    let known = Item::new(id, "Uncommitted changes", "", ItemKind::Chore, at);
    assert!(items(&place.duty(Role::Planner, review(vec![known.clone()])).await).is_empty());

    let mut blocked = known;
    blocked.status = ItemStatus::Blocked;
    let mut answered = blocked.clone();
    answered.answers = vec!["here it is".to_owned()];
    let work = Work {
        duty: Some(Duty::BlockedReview),
        blocked_items: vec![json!(blocked), json!(answered)],
        ..Work::default()
    };
    let freed = items(&place.duty(Role::Planner, work).await);
    assert_eq!(freed.len(), 1);
    assert_eq!(freed[0]["status"], "pending");
}

/// A web of one page.
pub(crate) async fn page() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/greetings", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 2048];
            let _ = stream.read(&mut asked).await;
            let body = "<title>How people greet</title><p>They say hello.</p>";
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn research_reads_what_the_kickoff_names_and_only_where_it_may() {
    let mut place = Place::new();
    let address = page().await;
    let mut sprint = sprint("Greet everybody");
    sprint.brief = format!("As in {address}.");
    let work = |sprint: &SprintBrief, web| Work {
        duty: Some(Duty::ResearchPrepass),
        sprint: Some(sprint.clone()),
        web,
        ..Work::default()
    };
    let found = place.duty(Role::Research, work(&sprint, true)).await;
    let report = json!(found.proposals.research_report.unwrap());
    assert_eq!(report["backing_sources"][0]["url"], address);
    assert_eq!(report["backing_sources"][0]["title"], "How people greet");
    for key in ["planner_guidance", "headline"] {
        assert!(!report[key].as_str().unwrap().is_empty(), "{key}");
    }
    assert!(!report["backing_reasoning"].as_array().unwrap().is_empty());
    assert!(!report["milestone_refinement_hints"].as_array().unwrap().is_empty());
    assert_eq!(found.artifacts, [format!("{FOLDER}/research.md")]);

    let closed = place.duty(Role::Research, work(&sprint, false)).await;
    let signal = closed.proposals.research_signal.unwrap();
    assert_eq!(signal.reason_code, Some(ReasonCode::NotNeededLocalEvidence));
    assert!(closed.proposals.research_report.is_none());

    sprint.brief = "As in http://127.0.0.1:1/nothing".to_owned();
    let failed = place.duty(Role::Research, work(&sprint, true)).await;
    assert_eq!(failed.status, ResultStatus::Failed);
    assert!(failed.error.contains("127.0.0.1:1"), "{}", failed.error);
}
