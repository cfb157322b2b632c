//! The rows of `spec/teams.md` 14.5 that the workflow decides, and the rules of 13.A behind them.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::domain::lifecycle::{CounterName, Lifecycle, Phase, ReopenCategory, StepName, counter};
use crate::domain::result::{EvidenceResult, QaDecision, QaValidation, ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::workflow::{Allowance, Outcome, PhaseStatus, Transition, WorkflowState};
use crate::engine::contract::normalize;

mod qa;

const SPEC: &str = "shared_workspace/sprints/demo/spec.md";
const CURRENT: &str = "./shared_workspace/current_sprint.md";

fn lifecycle() -> &'static Lifecycle {
    Lifecycle::built_in()
}

fn decide(state: &WorkflowState, report: &StepReport) -> WorkflowDecision {
    super::decide(lifecycle(), state, report)
}

fn at(step: StepName) -> WorkflowState {
    WorkflowState::begin(lifecycle(), step)
}

fn used(decision: &WorkflowDecision, name: CounterName) -> u32 {
    decision.state().counter(name).used
}

/// A completed report of the step's owner with a transition.
fn report(step: StepName, outcome: Option<Outcome>) -> StepReport {
    let mut report = StepReport::from_result(&RoleResult::new(steps::step(step).role, "r"));
    report.transition = Transition { outcome, ..Transition::default() };
    report.document_rule = DocumentRule::NotAsked;
    report
}

fn towards(step: StepName, outcome: Outcome, target: StepName) -> StepReport {
    let mut report = report(step, Some(outcome));
    report.transition.target_step = Some(target);
    report
}

fn reopening(step: StepName, category: Option<ReopenCategory>) -> StepReport {
    let mut report = report(step, Some(Outcome::Reopen));
    report.transition.reopen_category = category;
    report
}

fn verdict(decision: QaDecision, results: &[EvidenceResult]) -> QaValidation {
    let rows: Vec<_> = results.iter().map(|result| ("it works", *result)).collect();
    crate::engine::tests::verdict(decision, &rows)
}

fn qa_passes() -> StepReport {
    let mut report = report(steps::QA, Some(Outcome::Complete));
    report.qa_validation = Some(verdict(QaDecision::Pass, &[EvidenceResult::Pass]));
    report
}

fn next(decision: &WorkflowDecision) -> StepName {
    match decision {
        WorkflowDecision::Next { step, role, state, .. } => {
            assert_eq!((state.step, state.phase_owner), (*step, *role));
            *step
        }
        WorkflowDecision::Closeout { .. } | WorkflowDecision::Blocked { .. } => {
            panic!("not a next step: {decision:?}")
        }
    }
}

fn stopped(decision: &WorkflowDecision) -> BlockReason {
    match decision {
        WorkflowDecision::Blocked { reason, state, .. } => {
            assert_eq!(state.phase_status, PhaseStatus::Blocked);
            *reason
        }
        WorkflowDecision::Next { .. } | WorkflowDecision::Closeout { .. } => {
            panic!("not blocked: {decision:?}")
        }
    }
}

#[test]
fn w01_research_leads_to_the_draft_even_when_it_fails() {
    let mut failed = report(steps::RESEARCH, None);
    assert_eq!(next(&decide(&at(steps::RESEARCH), &failed)), steps::DRAFT);
    failed.status = ResultStatus::Failed;
    let decision = decide(&at(steps::RESEARCH), &failed);
    assert_eq!(next(&decision), steps::DRAFT, "13.A #28");
    let WorkflowDecision::Next { notes, .. } = decision else { unreachable!() };
    assert_eq!(notes, [ReportChange::WithoutResearch]);
}

#[test]
fn w02_w03_w04_advisories_share_a_cap() {
    let ask = towards(steps::DRAFT, Outcome::Continue, steps::DESIGNER);
    let decision = decide(&at(steps::DRAFT), &ask);
    assert_eq!(next(&decision), steps::DESIGNER);
    assert_eq!(used(&decision, counter::ADVICE), 1);
    let decision = decide(decision.state(), &report(steps::DESIGNER, None));
    assert_eq!(next(&decision), steps::FINALIZE);
    assert_eq!(decision.state().phase_status, PhaseStatus::Finalizing);
    let mut spent = decision.state().clone();
    spent.counters.insert(counter::ADVICE, Allowance { used: 2, limit: 2 });
    let ask = towards(steps::FINALIZE, Outcome::Continue, steps::ARCHITECT);
    assert_eq!(stopped(&decide(&spent, &ask)), BlockReason::Spent(counter::ADVICE));
}

#[test]
fn w05_w06_w07_closing_in_planning() {
    let mut ask = towards(steps::DRAFT, Outcome::Advance, steps::GUIDANCE);
    ask.transition.target_phase = Some(Phase::Implementation);
    ask.transition.finalize_phase = true;
    ask.artifacts = vec![SPEC.to_owned()];
    assert_eq!(next(&decide(&at(steps::DRAFT), &ask)), steps::GUIDANCE);

    let mut close = report(steps::DRAFT, Some(Outcome::Complete));
    close.artifacts = vec![CURRENT.to_owned(), SPEC.to_owned()];
    close.planning_record = true;
    let decision = decide(&at(steps::DRAFT), &close);
    let WorkflowDecision::Closeout { state } = decision else { panic!("{decision:?}") };
    assert_eq!(state.phase_owner, Role::VersionController);
    assert_eq!(state.phase_status, PhaseStatus::Completed);

    // Who says that it goes on has not answered what is to be carried out.
    let mut on = report(steps::DRAFT, Some(Outcome::Advance));
    on.planning_record = true;
    assert_eq!(next(&decide(&at(steps::DRAFT), &on)), steps::GUIDANCE);
    on.wants_execution = false;
    let decision = decide(&at(steps::DRAFT), &on);
    assert!(matches!(decision, WorkflowDecision::Closeout { .. }), "{decision:?}");

    // A plan that says nothing of that, or names who builds next, is built.
    let mut plan = report(steps::DRAFT, None);
    plan.planning_record = true;
    assert_eq!(next(&decide(&at(steps::DRAFT), &plan)), steps::GUIDANCE);
    let mut done = towards(steps::DRAFT, Outcome::Complete, steps::BUILD);
    done.planning_record = true;
    assert_eq!(next(&decide(&at(steps::DRAFT), &done)), steps::GUIDANCE);

    let mut code = report(steps::FINALIZE, Some(Outcome::Complete));
    code.artifacts = vec!["src/x.py".to_owned()];
    assert_eq!(next(&decide(&at(steps::FINALIZE), &code)), steps::GUIDANCE);
}

#[test]
fn w08_to_w11_the_way_to_the_review() {
    let scope = reopening(steps::FINALIZE, Some(ReopenCategory::Scope));
    let decision = decide(&at(steps::FINALIZE), &scope);
    assert_eq!(next(&decision), steps::FINALIZE);
    assert_eq!(decision.state().reopen_category, Some(ReopenCategory::Scope));
    assert_eq!(used(&decision, counter::REOPEN), 1);

    let guidance = at(steps::GUIDANCE);
    let advance = report(steps::GUIDANCE, Some(Outcome::Advance));
    assert_eq!(next(&decide(&guidance, &advance)), steps::BUILD, "W09");
    let again = reopening(steps::GUIDANCE, Some(ReopenCategory::Architecture));
    let decision = decide(&guidance, &again);
    assert_eq!(next(&decision), steps::GUIDANCE, "W10");
    assert_eq!(decision.state().reopen_category, Some(ReopenCategory::Architecture), "W10");

    let built = report(steps::BUILD, Some(Outcome::Advance));
    let decision = decide(&at(steps::BUILD), &built);
    assert_eq!(next(&decision), steps::REVIEW);
    assert_eq!(used(&decision, counter::REVIEW), 1);
}

#[test]
fn w12_to_w15_the_review() {
    let mut spent = at(steps::REVIEW);
    spent.counters.insert(counter::REVIEW, Allowance { used: 3, limit: 3 });
    let pass = towards(steps::REVIEW, Outcome::Advance, steps::QA);
    assert_eq!(next(&decide(&spent, &pass)), steps::QA);
    let more = towards(steps::REVIEW, Outcome::Advance, steps::REVISION);
    let decision = decide(&spent, &more);
    assert_eq!(stopped(&decision), BlockReason::Spent(counter::REVIEW));
    assert_eq!(decision.state().reopen_category, Some(ReopenCategory::Implementation));
    let silent = report(steps::REVIEW, None);
    assert_eq!(stopped(&decide(&spent, &silent)), BlockReason::Spent(counter::REVIEW), "13.A #18");

    let open = at(steps::REVIEW);
    let mut torn = pass;
    torn.has_findings = true;
    let decision = decide(&open, &torn);
    let WorkflowDecision::Next { step, notes, .. } = &decision else { panic!("{decision:?}") };
    assert_eq!((*step, &notes[..]), (steps::REVISION, &[ReportChange::Contradiction][..]));
    assert_eq!(next(&decide(&open, &reopening(steps::REVIEW, None))), steps::REVISION, "W14");
    let mut blocked = more;
    blocked.status = ResultStatus::Blocked;
    blocked.error = "the review found problems".to_owned();
    assert_eq!(next(&decide(&open, &blocked)), steps::REVISION);
}

#[test]
fn a_negative_verdict_is_never_upgraded() {
    // A blocked reviewer who points at QA gets a revision, a failed one nothing.
    let mut report = towards(steps::REVIEW, Outcome::Advance, steps::QA);
    report.status = ResultStatus::Blocked;
    assert_eq!(next(&decide(&at(steps::REVIEW), &report)), steps::REVISION);
    report.status = ResultStatus::Failed;
    assert_eq!(stopped(&decide(&at(steps::REVIEW), &report)), BlockReason::RoleFailed);
    // An error counts although the status says completed (8.1).
    report.status = ResultStatus::Completed;
    report.error = "boom".to_owned();
    assert_eq!(stopped(&decide(&at(steps::REVIEW), &report)), BlockReason::RoleFailed);
    // Nobody else gets on with a continuation.
    for step in [steps::DRAFT, steps::GUIDANCE, steps::BUILD] {
        let mut report = self::report(step, Some(Outcome::Advance));
        report.status = ResultStatus::Blocked;
        assert_eq!(stopped(&decide(&at(step), &report)), BlockReason::RoleBlocked, "{step}");
    }
}

#[test]
fn w16_w17_the_revision() {
    let review = towards(steps::REVISION, Outcome::Advance, steps::REVIEW);
    let decision = decide(&at(steps::REVISION), &review);
    assert_eq!(next(&decision), steps::REVIEW);
    assert_eq!(used(&decision, counter::REVIEW), 1);
    let advance = report(steps::REVISION, Some(Outcome::Advance));
    assert_eq!(next(&decide(&at(steps::REVISION), &advance)), steps::QA);
}

#[test]
fn w24_block_stops_where_it_is() {
    for step in steps::of_roles() {
        let report = report(step, Some(Outcome::Block));
        let decision = decide(&at(step), &report);
        assert_eq!(stopped(&decision), BlockReason::RoleAsked);
        assert_eq!(decision.state().step, step);
    }
}

#[test]
fn w25_a_planner_without_documents_is_asked_twice_then_a_person_13a_17() {
    let mut state = at(steps::DRAFT);
    let mut report = report(steps::DRAFT, Some(Outcome::Advance));
    report.document_rule = DocumentRule::OneOfItsOwn;
    report.artifacts = vec![CURRENT.to_owned()];
    for _ in 0..2 {
        let decision = decide(&state, &report);
        assert_eq!(next(&decision), steps::FINALIZE);
        assert_eq!(decision.state().reopen_category, Some(ReopenCategory::Scope));
        state = decision.state().clone();
    }
    let decision = decide(&state, &report);
    assert_eq!(stopped(&decision), BlockReason::Spent(counter::PLANNER_CONTRACT));
    // The file has to exist, then it goes on.
    report.documents_present = BTreeSet::from(["shared_workspace/current_sprint.md".to_owned()]);
    assert_eq!(next(&decide(&state, &report)), steps::GUIDANCE);
}

#[test]
fn w26_after_a_qa_reopen_four_documents_are_asked_for() {
    let mut state = at(steps::FINALIZE);
    state.reopen_source_role = Some(Role::Qa);
    let mut report = report(steps::FINALIZE, Some(Outcome::Advance));
    report.document_rule = DocumentRule::Sprint;
    let folder = "./shared_workspace/sprints/demo";
    report.artifacts = ["spec.md", "todo_backlog.md"].map(|name| format!("{folder}/{name}")).into();
    report.artifacts.push(CURRENT.to_owned());
    let present = |report: &StepReport| {
        report
            .artifacts
            .iter()
            .map(|path| crate::engine::parse::normalize_artifact_hint(path))
            .collect::<BTreeSet<_>>()
    };
    report.documents_present = present(&report);
    let WorkflowDecision::Next { step, notes, .. } = decide(&state, &report) else { panic!() };
    assert_eq!(step, steps::FINALIZE);
    assert_eq!(notes, [ReportChange::DocumentsMissing(vec!["iteration_log.md".to_owned()])]);
    report.artifacts.push(format!("{folder}/iteration_log.md"));
    report.documents_present = present(&report);
    assert_eq!(next(&decide(&state, &report)), steps::GUIDANCE);
}

#[test]
fn w27_planner_documents_are_taken_off_an_implementer() {
    let state = at(steps::BUILD);
    let mut result = normalize(&json!({"artifacts": [SPEC, "a.py"]}), Role::Developer, "r");
    let report = StepReport::from_result(&result);
    let WorkflowDecision::Next { notes, .. } = decide(&state, &report) else { panic!() };
    assert_eq!(notes, [ReportChange::PlannerDocumentsDropped(vec![SPEC.to_owned()])]);
    assert_eq!(drop_foreign_documents(&state, &mut result), [SPEC]);
    assert_eq!(result.artifacts, ["a.py"]);
}

#[test]
fn failed_checks_go_back_within_their_budget() {
    let mut state = decide(&at(steps::QA), &qa_passes()).state().clone();
    for _ in 0..2 {
        let decision = observed(lifecycle(), &state, Observation::Red);
        assert_eq!(next(&decision), steps::REVISION);
        state = decision.state().clone();
        state.place(steps::step(steps::QA), lifecycle());
    }
    assert_eq!(
        stopped(&observed(lifecycle(), &state, Observation::Red)),
        BlockReason::Spent(counter::CHECKS)
    );
}

#[test]
fn red_checks_before_a_review_take_none_of_the_reviews() {
    let built = decide(&at(steps::BUILD), &report(steps::BUILD, Some(Outcome::Advance)));
    assert_eq!(next(&built), steps::REVIEW);
    assert_eq!(built.state().counter(counter::REVIEW).used, 1);
    let red = observed(lifecycle(), built.state(), Observation::Red);
    assert_eq!(red.state().counter(counter::REVIEW).used, 0);
    assert_eq!(red.state().counter(counter::CHECKS).used, 1);
}

#[test]
fn a_person_can_go_on_with_a_blocked_request() {
    let blocked = decide(&at(steps::BUILD), &report(steps::BUILD, Some(Outcome::Block)));
    let late = report(steps::BUILD, Some(Outcome::Advance));
    assert_eq!(stopped(&decide(blocked.state(), &late)), BlockReason::AlreadyOver);
    let mut spent = blocked.state().clone();
    spent.counters.insert(counter::TURNS, Allowance { used: 48, limit: 48 });
    let decision = resume(lifecycle(), &spent);
    assert_eq!(next(&decision), steps::FINALIZE);
    assert!(!decision.state().counter(counter::TURNS).is_spent());
}

#[test]
fn states_of_older_files_get_the_counters() {
    let old = json!({"step": "developer_build", "phase": "implementation"});
    let read = WorkflowState::normalize(&old);
    assert_eq!(read.counters, at(steps::BUILD).counters);
    assert_eq!((read.step, read.lifecycle.as_str()), (steps::BUILD, ""));
    let state = at(steps::QA);
    let written = json!(state);
    assert_eq!(written["reopen_category"], json!(""));
    let unpinned = WorkflowState { lifecycle: String::new(), ..state.clone() };
    assert_eq!(WorkflowState::normalize(&written), unpinned);
    assert_eq!(serde_json::from_value::<WorkflowState>(written).unwrap(), state);
}
