//! The driver with the rehearsal agent as a real subprocess: every way in which a run can end, and
//! what the rehearsal agent does in each role.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use teams::agents::rehearsal::RehearsalSettings;
use teams::agents::{
    Agent, AgentOutcome, Driver, Event, Limits, PersonMessage, RunSpec, Task, TaskDocument,
    Upstream, Watch, WriteAccess,
};
use teams::domain::ids::RunId;
use teams::domain::lifecycle::{Lifecycle, StepName};
use teams::domain::result::{ResultStatus, RoleResult};
use teams::domain::role::Role;
use teams::domain::run::{FailKind, RunOutcome};
use teams::domain::workflow::Outcome;
use teams::platform::spawn::set_own_binary;
use teams::platform::supervise::{self, RunFolderState};

use crate::support::CONTRACT;

/// A generous bound: reached only by a failure.
const PATIENCE: Duration = Duration::from_secs(120);

const TASKS: &str = "# Tasks\n\n## 1. Say goodbye\n\nIn `greet.sh` replace:\n\n```sh\necho hello\n```\n\nwith:\n\n```sh\necho hello\necho goodbye\n```\n\n## 2. Explain it\n\nCreate `DOC.md`:\n\n```\nIt greets.\n```\n";

async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened")
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        set_own_binary(env!("CARGO_BIN_EXE_teams").into());
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        std::fs::write(tree.join("greet.sh"), "echo hello\n").unwrap();
        std::fs::write(tree.join("TASKS.md"), TASKS).unwrap();
        Place { folder }
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join("tree").join(name)).unwrap()
    }

    /// A run of a step on a request, with a script where it is not blank.
    fn spec(&self, step: Option<StepName>, text: &str, script: &str) -> RunSpec {
        let root = self.folder.path();
        let role =
            step.map_or(Role::Orchestrator, |name| Lifecycle::built_in().step(name).unwrap().role);
        let path = root.join("script.yaml");
        std::fs::write(&path, script).unwrap();
        let run = format!("run-{}", role.as_str());
        RunSpec {
            run_id: RunId::parse(&run).unwrap(),
            run_dir: root.join("runs").join(&run),
            session_dir: root.join("sessions").join(role.as_str()),
            worktree: root.join("tree"),
            access: if role == Role::Developer {
                WriteAccess::Worktree
            } else {
                WriteAccess::Documents(root.join("shared"))
            },
            agent: Agent::Rehearsal(RehearsalSettings {
                script: Some(path).filter(|_| !script.is_empty()),
                ..RehearsalSettings::default()
            }),
            task: Task {
                charter: "You work.".to_owned(),
                ..Task::first(role, step, "20260101-00000001", PersonMessage::new("Mina", text))
            },
            resume: None,
            limits: Limits::default(),
            socket: None,
            surroundings: Default::default(),
            templates: Default::default(),
        }
    }
}

async fn run(spec: &RunSpec) -> AgentOutcome {
    in_time(Driver::default().run(spec, &CONTRACT, &Watch::default())).await
}

fn result(outcome: &AgentOutcome) -> &RoleResult {
    match &outcome.outcome {
        RunOutcome::Result(result) => result,
        RunOutcome::Failed { kind, message, .. } => panic!("{kind:?}: {message}"),
    }
}

fn failure(outcome: &AgentOutcome) -> FailKind {
    match &outcome.outcome {
        RunOutcome::Failed { kind, .. } => *kind,
        RunOutcome::Result(result) => panic!("a result: {result:?}"),
    }
}

fn evidence(verdict: &str) -> Value {
    json!({"commit": "abc", "at": "2026-01-01T00:00:00+09:00", "checks": [{"name": "unit", "command": ["./test"],
        "exit_code": 1, "verdict": verdict, "log_digest": "", "log_tail": "", "duration_ms": 1}]})
}

#[tokio::test]
async fn a_request_goes_through_every_role() {
    let place = Place::new();
    let text = "please do the next task";
    let intake = run(&place.spec(None, text, "")).await;
    assert_eq!(intake.agent, "rehearsal");
    assert!(!result(&intake).proposals.handled_completely());

    let mut spec = place.spec(Some(StepName::of("planner_draft")), text, "");
    let plan_path = place.folder.path().join("shared/plan.md");
    std::fs::create_dir(plan_path.parent().unwrap()).unwrap();
    std::fs::write(&plan_path, "written by others\n").unwrap();
    spec.task.documents.push(TaskDocument {
        name: "shared/plan.md".to_owned(),
        path: plan_path.clone(),
        purpose: "the plan".to_owned(),
        writable: true,
    });
    let planned = run(&spec).await;
    let plan = result(&planned).clone();
    assert_eq!(plan.artifacts, ["shared/plan.md"]);
    assert!(std::fs::read_to_string(plan_path).unwrap().contains("task 1: Say goodbye"));
    let upstream = Upstream {
        role: Role::Planner,
        step: Some(StepName::of("planner_draft")),
        status: "completed".to_owned(),
        summary: plan.summary,
        proposals: json!(plan.proposals),
        artifacts: plan.artifacts,
    };

    let mut spec = place.spec(Some(StepName::of("developer_build")), text, "");
    spec.task.upstream.push(upstream.clone());
    let built = run(&spec).await;
    assert_eq!(result(&built).status, ResultStatus::Completed);
    assert_eq!(place.file("greet.sh"), "echo hello\necho goodbye\n");

    let mut spec = place.spec(Some(StepName::of("architect_review")), text, "");
    spec.task.upstream.push(upstream.clone());
    spec.task.diff = "+echo goodbye".to_owned();
    let reviewed = run(&spec).await;
    assert_eq!(
        result(&reviewed).proposals.transition().target_step,
        Some(StepName::of("qa_validation"))
    );

    for (verdict, outcome) in [("failed", Outcome::Reopen), ("passed", Outcome::Advance)] {
        let mut spec = place.spec(Some(StepName::of("qa_validation")), text, "");
        spec.run_dir = place.folder.path().join(verdict);
        spec.task.upstream.push(upstream.clone());
        spec.task.evidence = Some(serde_json::from_value(evidence(verdict)).unwrap());
        let judged = run(&spec).await;
        assert_eq!(result(&judged).proposals.transition().outcome, Some(outcome));
        let verdict = result(&judged).proposals.qa_validation.clone().unwrap();
        assert_eq!(verdict.evidence_matrix.len(), 2);
    }
}

#[tokio::test]
async fn questions_are_answered_and_what_takes_understanding_is_not_pretended() {
    for (text, wanted) in [
        ("what tasks remain?", "1. Say goodbye; 2. Explain it"),
        ("which files are there", "greet.sh"),
        ("너는 누구야?", "rehearsal agent"),
        ("do task 9", "no such task"),
    ] {
        let outcome = run(&Place::new().spec(None, text, "")).await;
        let answer = result(&outcome);
        assert!(answer.proposals.handled_completely(), "{text}");
        assert!(answer.summary.contains(wanted), "{}", answer.summary);
    }
    for (step, text) in [
        (None, "why is the sky blue?"),
        (Some(StepName::of("planner_draft")), "make it faster"),
        (Some(StepName::of("developer_build")), "make it faster"),
    ] {
        let outcome = run(&Place::new().spec(step, text, "")).await;
        assert_eq!(failure(&outcome), FailKind::NeedsRealAgent);
    }
}

#[tokio::test]
async fn literal_edits_are_done_in_both_languages() {
    for text in [
        "in greet.sh replace \"hello\" with \"good day\"",
        "greet.sh에서 \"hello\"를 \"good day\"로 바꿔줘",
    ] {
        let place = Place::new();
        let outcome = run(&place.spec(Some(StepName::of("developer_build")), text, "")).await;
        assert_eq!(result(&outcome).status, ResultStatus::Completed);
        assert_eq!(place.file("greet.sh"), "echo good day\n");
    }
    let place = Place::new();
    let text = "in greet.sh replace \"absent\" with \"x\"";
    let outcome = run(&place.spec(Some(StepName::of("developer_build")), text, "")).await;
    assert_eq!(result(&outcome).status, ResultStatus::Blocked);
}

#[tokio::test]
async fn every_failure_has_its_kind() {
    let table = [
        ("crash", FailKind::Crash, 0),
        ("hang", FailKind::Stuck, 0),
        ("rubbish", FailKind::NoTerminal, 0),
        ("flood", FailKind::OutputCap, 0),
        ("prose", FailKind::Contract, 2),
        ("wrong_contract", FailKind::Contract, 2),
    ];
    for (act, kind, repairs) in table {
        let place = Place::new();
        let script = format!("- {{role: developer, do: {act}}}");
        let mut spec = place.spec(Some(StepName::of("developer_build")), "do task 1", &script);
        spec.limits.output_bytes = 1 << 20;
        spec.limits.idle_ms = 3000;
        spec.limits.grace_ms = 100;
        let outcome = run(&spec).await;
        assert_eq!((failure(&outcome), outcome.repairs), (kind, repairs), "{act}");
        assert_eq!(outcome.dropped_bytes > 0, act == "flood", "{act}");
    }
}

#[tokio::test]
async fn negative_results_are_results() {
    for (act, step, status) in [
        ("fail", StepName::of("developer_build"), ResultStatus::Failed),
        ("block", StepName::of("developer_build"), ResultStatus::Blocked),
        ("revise", StepName::of("architect_review"), ResultStatus::Completed),
    ] {
        let script = format!("- {{do: {act}}}");
        let outcome = run(&Place::new().spec(Some(step), "do task 1", &script)).await;
        assert_eq!(result(&outcome).status, status, "{act}");
    }
}

#[tokio::test]
async fn a_repair_turn_may_save_the_run() {
    for act in ["prose", "wrong_contract"] {
        let place = Place::new();
        let script = format!("- {{role: developer, times: 1, do: {act}}}");
        let outcome =
            run(&place.spec(Some(StepName::of("developer_build")), "do task 2", &script)).await;
        assert_eq!(outcome.repairs, 1);
        assert!(result(&outcome).contract_repair_attempted);
        assert_eq!(place.file("DOC.md"), "It greets.\n");
    }
}

#[tokio::test]
async fn a_cancelled_run_ends() {
    let spec = Place::new();
    let spec = spec.spec(Some(StepName::of("developer_build")), "do task 1", "- {do: hang}");
    let (events, mut seen) = tokio::sync::mpsc::channel(16);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let driver = Driver::default();
    let cancel = watch.cancel.clone();
    let (outcome, ()) = tokio::join!(in_time(driver.run(&spec, &CONTRACT, &watch)), async {
        assert!(matches!(in_time(seen.recv()).await, Some(Event::Session(_))));
        cancel.cancel();
    });
    assert_eq!(failure(&outcome), FailKind::Cancelled);
}

/// Starts a run, and drops it as soon as the agent has said something: what a killed team does.
async fn abandoned(spec: &RunSpec) {
    let (events, mut seen) = tokio::sync::mpsc::channel(16);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let driver = Driver::default();
    tokio::select! {
        // On a machine that is too busy to kill it in time there is still its outcome to be adopted.
        _ = driver.run(spec, &CONTRACT, &watch) => {}
        event = in_time(seen.recv()) => assert!(event.is_some()),
    }
}

async fn adopt(run_dir: &Path) -> Option<AgentOutcome> {
    let driver = Driver::default();
    let watch = Watch::default();
    in_time(driver.adopt(run_dir, &CONTRACT, &watch)).await.unwrap()
}

#[tokio::test]
async fn a_run_of_an_earlier_team_is_adopted_once_it_is_over() {
    for (script, repairs) in [
        ("- {do: sleep, ms: 300}", 0),
        ("- {do: sleep, ms: 300, times: 1}\n- {do: prose, times: 1}", 0),
        ("- {do: prose, times: 1}", 1),
    ] {
        let place = Place::new();
        let spec = place.spec(Some(StepName::of("developer_build")), "do task 2", script);
        abandoned(&spec).await;
        let outcome = adopt(&spec.run_dir).await.expect("an outcome");
        assert_eq!((result(&outcome).status, outcome.repairs), (ResultStatus::Completed, repairs));
        assert_eq!(place.file("DOC.md"), "It greets.\n");
        assert_eq!(adopt(&spec.run_dir).await, Some(outcome));
    }
}

#[tokio::test]
async fn an_agent_of_an_earlier_team_can_be_ended_for_good() {
    let place = Place::new();
    let spec = place.spec(Some(StepName::of("developer_build")), "do task 2", "- {do: hang}");
    abandoned(&spec).await;
    in_time(teams::agents::end(&spec.run_dir)).await.unwrap();
    match supervise::adopt(&spec.run_dir.join("turn-0")).unwrap() {
        // A program that is being started somewhere else in this process has its files, and so its lock, for an
        // instant. An agent that still hangs would never be over.
        RunFolderState::Running(left) => drop(in_time(left.wait()).await),
        RunFolderState::Finished(_) | RunFolderState::Never => {}
    }
    in_time(teams::agents::end(&place.folder.path().join("nowhere"))).await.unwrap();
}

#[tokio::test]
async fn a_run_that_never_began_has_no_outcome() {
    let place = Place::new();
    assert_eq!(adopt(&place.folder.path().join("nowhere")).await, None);
}

#[tokio::test]
async fn an_agent_that_is_not_installed_is_named() {
    let place = Place::new();
    let mut spec = place.spec(Some(StepName::of("developer_build")), "do task 1", "");
    spec.agent = Agent::Codex(teams::agents::codex::CodexSettings {
        binary: Some(PathBuf::from("/no/such/codex")),
        ..Default::default()
    });
    let outcome = run(&spec).await;
    let RunOutcome::Failed { kind, message, .. } = outcome.outcome else {
        panic!("it cannot run");
    };
    assert_eq!(kind, FailKind::Auth);
    assert!(message.contains("/no/such/codex") && message.contains("TEAMS_CODEX"));
}
