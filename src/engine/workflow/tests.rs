//! The rows of `spec/teams.md` 14.5 that the workflow decides, and the rules of 13.A behind them.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::domain::result::{
    EvidenceResult, EvidenceRow, QaDecision, QaValidation, ResultStatus, RoleResult,
};
use crate::domain::workflow::{Allowance, Transition};
use crate::engine::contract::normalize;

mod qa;

const SPEC: &str = "shared_workspace/sprints/demo/spec.md";
const CURRENT: &str = "./shared_workspace/current_sprint.md";

fn at(step: Step) -> WorkflowState {
    WorkflowState::initial(step)
}

/// A completed report of the step's owner with a transition.
fn report(step: Step, outcome: Option<Outcome>) -> StepReport {
    let mut report = StepReport::from_result(&RoleResult::new(step.owner(), "r"));
    report.transition = Transition { outcome, ..Transition::default() };
    report.document_rule = DocumentRule::NotAsked;
    report
}

fn towards(step: Step, outcome: Outcome, target: Step) -> StepReport {
    let mut report = report(step, Some(outcome));
    report.transition.target_step = Some(target);
    report
}

fn reopening(step: Step, category: Option<ReopenCategory>) -> StepReport {
    let mut report = report(step, Some(Outcome::Reopen));
    report.transition.reopen_category = category;
    report
}

fn verdict(decision: QaDecision, results: &[EvidenceResult]) -> QaValidation {
    let row = |result: &EvidenceResult| EvidenceRow {
        criterion: "it works".to_owned(),
        result: Some(*result),
    };
    QaValidation { decision: Some(decision), evidence: results.iter().map(row).collect() }
}

fn qa_passes() -> StepReport {
    let mut report = report(Step::QaValidation, Some(Outcome::Complete));
    report.qa_validation = Some(verdict(QaDecision::Pass, &[EvidenceResult::Pass]));
    report
}

fn next(decision: &WorkflowDecision) -> Step {
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
    let mut failed = report(Step::ResearchInitial, None);
    assert_eq!(next(&decide(&at(Step::ResearchInitial), &failed)), Step::PlannerDraft);
    failed.status = ResultStatus::Failed;
    let decision = decide(&at(Step::ResearchInitial), &failed);
    assert_eq!(next(&decision), Step::PlannerDraft, "13.A #28");
    let WorkflowDecision::Next { notes, .. } = decision else { unreachable!() };
    assert_eq!(notes, [Note::WithoutResearch]);
}

#[test]
fn w02_w03_w04_advisories_share_a_cap() {
    let ask = towards(Step::PlannerDraft, Outcome::Continue, Step::DesignerAdvisory);
    let decision = decide(&at(Step::PlannerDraft), &ask);
    assert_eq!(next(&decision), Step::DesignerAdvisory);
    assert_eq!(decision.state().planning_pass_count, 1);
    let decision = decide(decision.state(), &report(Step::DesignerAdvisory, None));
    assert_eq!(next(&decision), Step::PlannerFinalize);
    assert_eq!(decision.state().phase_status, PhaseStatus::Finalizing);
    let mut spent = decision.state().clone();
    spent.planning_pass_count = 2;
    let ask = towards(Step::PlannerFinalize, Outcome::Continue, Step::ArchitectAdvisory);
    assert_eq!(stopped(&decide(&spent, &ask)), BlockReason::AdvisoryCap);
}

#[test]
fn w05_w06_w07_closing_in_planning() {
    let mut ask = towards(Step::PlannerDraft, Outcome::Advance, Step::ArchitectGuidance);
    ask.transition.target_phase = Some(Phase::Implementation);
    ask.transition.finalize_phase = true;
    ask.artifacts = vec![SPEC.to_owned()];
    assert_eq!(next(&decide(&at(Step::PlannerDraft), &ask)), Step::ArchitectGuidance);

    let mut close = report(Step::PlannerDraft, Some(Outcome::Complete));
    close.artifacts = vec![CURRENT.to_owned(), SPEC.to_owned()];
    close.planning_record = true;
    let decision = decide(&at(Step::PlannerDraft), &close);
    let WorkflowDecision::Closeout { state } = decision else { panic!("{decision:?}") };
    assert_eq!(state.phase_owner, Role::VersionController);
    assert_eq!(state.phase_status, PhaseStatus::Completed);

    let mut code = report(Step::PlannerFinalize, Some(Outcome::Complete));
    code.artifacts = vec!["src/x.py".to_owned()];
    assert_eq!(next(&decide(&at(Step::PlannerFinalize), &code)), Step::ArchitectGuidance);
}

#[test]
fn w08_to_w11_the_way_to_the_review() {
    let scope = reopening(Step::PlannerFinalize, Some(ReopenCategory::Scope));
    let decision = decide(&at(Step::PlannerFinalize), &scope);
    assert_eq!(next(&decision), Step::PlannerFinalize);
    assert_eq!(decision.state().reopen_category, Some(ReopenCategory::Scope));
    assert_eq!(decision.state().budgets.reopen.used, 1);

    let guidance = at(Step::ArchitectGuidance);
    let advance = report(Step::ArchitectGuidance, Some(Outcome::Advance));
    assert_eq!(next(&decide(&guidance, &advance)), Step::DeveloperBuild, "W09");
    let again = reopening(Step::ArchitectGuidance, Some(ReopenCategory::Architecture));
    let decision = decide(&guidance, &again);
    assert_eq!(next(&decision), Step::ArchitectGuidance, "W10");
    assert_eq!(decision.state().reopen_category, Some(ReopenCategory::Architecture), "W10");

    let built = report(Step::DeveloperBuild, Some(Outcome::Advance));
    let decision = decide(&at(Step::DeveloperBuild), &built);
    assert_eq!(next(&decision), Step::ArchitectReview);
    assert_eq!(decision.state().review_cycle_count, 1);
}

#[test]
fn w12_to_w15_the_review() {
    let mut spent = at(Step::ArchitectReview);
    spent.review_cycle_count = 3;
    let pass = towards(Step::ArchitectReview, Outcome::Advance, Step::QaValidation);
    assert_eq!(next(&decide(&spent, &pass)), Step::QaValidation);
    let more = towards(Step::ArchitectReview, Outcome::Advance, Step::DeveloperRevision);
    let decision = decide(&spent, &more);
    assert_eq!(stopped(&decision), BlockReason::ReviewBudget);
    assert_eq!(decision.state().reopen_category, Some(ReopenCategory::Implementation));
    let silent = report(Step::ArchitectReview, None);
    assert_eq!(stopped(&decide(&spent, &silent)), BlockReason::ReviewBudget, "13.A #18");

    let open = at(Step::ArchitectReview);
    assert_eq!(
        next(&decide(&open, &reopening(Step::ArchitectReview, None))),
        Step::DeveloperRevision,
        "W14"
    );
    let mut blocked = more;
    blocked.status = ResultStatus::Blocked;
    blocked.error = "the review found problems".to_owned();
    assert_eq!(next(&decide(&open, &blocked)), Step::DeveloperRevision);
}

#[test]
fn a_negative_verdict_is_never_upgraded() {
    // A blocked reviewer who points at QA gets a revision, a failed one nothing.
    let mut report = towards(Step::ArchitectReview, Outcome::Advance, Step::QaValidation);
    report.status = ResultStatus::Blocked;
    assert_eq!(next(&decide(&at(Step::ArchitectReview), &report)), Step::DeveloperRevision);
    report.status = ResultStatus::Failed;
    assert_eq!(stopped(&decide(&at(Step::ArchitectReview), &report)), BlockReason::RoleFailed);
    // An error counts although the status says completed (8.1).
    report.status = ResultStatus::Completed;
    report.error = "boom".to_owned();
    assert_eq!(stopped(&decide(&at(Step::ArchitectReview), &report)), BlockReason::RoleFailed);
    // Nobody else gets on with a continuation.
    for step in [Step::PlannerDraft, Step::ArchitectGuidance, Step::DeveloperBuild] {
        let mut report = self::report(step, Some(Outcome::Advance));
        report.status = ResultStatus::Blocked;
        assert_eq!(stopped(&decide(&at(step), &report)), BlockReason::RoleBlocked, "{step}");
    }
}

#[test]
fn w16_w17_the_revision() {
    let review = towards(Step::DeveloperRevision, Outcome::Advance, Step::ArchitectReview);
    let decision = decide(&at(Step::DeveloperRevision), &review);
    assert_eq!(next(&decision), Step::ArchitectReview);
    assert_eq!(decision.state().review_cycle_count, 1);
    let advance = report(Step::DeveloperRevision, Some(Outcome::Advance));
    assert_eq!(next(&decide(&at(Step::DeveloperRevision), &advance)), Step::QaValidation);
}

#[test]
fn w24_block_stops_where_it_is() {
    for step in Step::ALL.into_iter().filter(|step| *step != Step::Closeout) {
        let mut report = report(step, Some(Outcome::Block));
        if step == Step::PlannerAdvisory {
            report.role = Role::Planner;
        }
        let decision = decide(&at(step), &report);
        assert_eq!(stopped(&decision), BlockReason::RoleAsked);
        assert_eq!(decision.state().step, step);
    }
}

#[test]
fn w25_a_planner_without_documents_is_asked_twice_then_a_person_13a_17() {
    let mut state = at(Step::PlannerDraft);
    let mut report = report(Step::PlannerDraft, Some(Outcome::Advance));
    report.document_rule = DocumentRule::OneOfItsOwn;
    report.artifacts = vec![CURRENT.to_owned()];
    for _ in 0..2 {
        let decision = decide(&state, &report);
        assert_eq!(next(&decision), Step::PlannerFinalize);
        assert_eq!(decision.state().reopen_category, Some(ReopenCategory::Scope));
        state = decision.state().clone();
    }
    let decision = decide(&state, &report);
    assert_eq!(stopped(&decision), BlockReason::PlannerContract);
    // The file has to exist, then it goes on.
    report.documents_present = BTreeSet::from(["shared_workspace/current_sprint.md".to_owned()]);
    assert_eq!(next(&decide(&state, &report)), Step::ArchitectGuidance);
}

#[test]
fn w26_after_a_qa_reopen_four_documents_are_asked_for() {
    let mut state = at(Step::PlannerFinalize);
    state.reopen_source_role = Some(Role::Qa);
    let mut report = report(Step::PlannerFinalize, Some(Outcome::Advance));
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
    assert_eq!(step, Step::PlannerFinalize);
    assert_eq!(notes, [Note::DocumentsMissing(vec!["iteration_log.md".to_owned()])]);
    report.artifacts.push(format!("{folder}/iteration_log.md"));
    report.documents_present = present(&report);
    assert_eq!(next(&decide(&state, &report)), Step::ArchitectGuidance);
}

#[test]
fn w27_planner_documents_are_taken_off_an_implementer() {
    let state = at(Step::DeveloperBuild);
    let mut result = normalize(&json!({"artifacts": [SPEC, "a.py"]}), Role::Developer, "r");
    let report = StepReport::from_result(&result);
    let WorkflowDecision::Next { notes, .. } = decide(&state, &report) else { panic!() };
    assert_eq!(notes, [Note::PlannerDocumentsDropped(vec![SPEC.to_owned()])]);
    assert_eq!(drop_foreign_documents(&state, &mut result), [SPEC]);
    assert_eq!(result.artifacts, ["a.py"]);
}

#[test]
fn failed_checks_go_back_within_their_budget() {
    let mut state = decide(&at(Step::QaValidation), &qa_passes()).state().clone();
    for _ in 0..3 {
        let decision = checks_failed(&state);
        assert_eq!(next(&decision), Step::DeveloperRevision);
        state = decision.state().clone();
    }
    assert_eq!(stopped(&checks_failed(&state)), BlockReason::ChecksBudget);
}

#[test]
fn a_person_can_go_on_with_a_blocked_request() {
    let blocked =
        decide(&at(Step::DeveloperBuild), &report(Step::DeveloperBuild, Some(Outcome::Block)));
    let late = report(Step::DeveloperBuild, Some(Outcome::Advance));
    assert_eq!(stopped(&decide(blocked.state(), &late)), BlockReason::AlreadyOver);
    let mut spent = blocked.state().clone();
    spent.budgets.turns = Allowance { used: 48, limit: 48 };
    let decision = resume(&spent);
    assert_eq!(next(&decision), Step::PlannerFinalize);
    assert!(!decision.state().budgets.turns.is_spent());
}

#[test]
fn states_of_older_files_get_the_budgets() {
    let old = json!({"step": "developer_build", "phase": "implementation"});
    assert_eq!(WorkflowState::normalize(&old).budgets, crate::domain::workflow::Budgets::default());
    let state = at(Step::QaValidation);
    let written = json!(state);
    assert_eq!(written["reopen_category"], json!(""));
    assert_eq!(WorkflowState::normalize(&written), state);
    assert_eq!(serde_json::from_value::<WorkflowState>(written).unwrap(), state);
}
