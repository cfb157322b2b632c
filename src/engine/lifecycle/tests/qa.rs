//! What QA's report leads to.

use super::*;
use crate::domain::lifecycle::ReopenCategory;
use crate::domain::role::Role;
use crate::domain::workflow::Outcome;

#[test]
fn w18_to_w20_qa_sends_back() {
    for (category, step) in [
        // W18
        (ReopenCategory::Verification, steps::REVISION),
        (ReopenCategory::Implementation, steps::REVISION),
        // W19
        (ReopenCategory::Ux, steps::DESIGNER),
        // W20
        (ReopenCategory::Architecture, steps::REVIEW),
        (ReopenCategory::Scope, steps::FINALIZE),
    ] {
        let report = reopening(steps::QA, Some(category));
        let decision = decide(&at(steps::QA), &report);
        assert_eq!(next(&decision), step, "{category}");
        assert_eq!(decision.state().reopen_source_role, Some(Role::Qa));
        assert_eq!(used(&decision, counter::QA_REOPEN), 1);
    }
}

#[test]
fn w21_qa_finds_the_specification_at_fault() {
    let mut report = report(steps::QA, None);
    report.status = ResultStatus::Blocked;
    report.text = "the screen does not match spec.md".to_owned();
    let decision = decide(&at(steps::QA), &report);
    assert_eq!(next(&decision), steps::FINALIZE);
    assert_eq!(decision.state().reopen_category, Some(ReopenCategory::Scope));
    // A category that QA chose stands.
    report.transition.reopen_category = Some(ReopenCategory::Implementation);
    report.transition.outcome = Some(Outcome::Reopen);
    assert_eq!(next(&decide(&at(steps::QA), &report)), steps::REVISION);
}

#[test]
fn qa_gives_one_row_for_each_criterion_and_no_other() {
    let pass = |rows: &[&str]| {
        let mut report = qa_passes();
        report.criteria = vec!["it works".into(), "it is fast".into()];
        let rows: Vec<_> = rows.iter().map(|row| (*row, EvidenceResult::Pass)).collect();
        report.qa_validation = Some(crate::engine::tests::verdict(QaDecision::Pass, &rows));
        report
    };
    for right in [["C-1", "C-2"], ["it is fast", "it works"]] {
        let decision = decide(&at(steps::QA), &pass(&right));
        assert!(matches!(decision, WorkflowDecision::Closeout { .. }), "{right:?}");
    }
    for (wrong, why) in [
        (&["it works"][..], "missing: C-2"),
        (&["C-1", "C-1"][..], "missing: C-2; doubled: C-1"),
        (&["C-1", "C-2", "and more"][..], "unknown: \"and more\""),
    ] {
        let mut state = at(steps::QA);
        let WorkflowDecision::Next { step, notes, .. } = decide(&state, &pass(wrong)) else {
            panic!("{wrong:?}");
        };
        assert_eq!((step, notes), (steps::QA, vec![ReportChange::RowsDiffer(why.to_owned())]));
        // It is asked again as often as it may be, and then a person is.
        state.counters.insert(counter::QA_REOPEN, Allowance { used: 3, limit: 3 });
        assert_eq!(stopped(&decide(&state, &pass(wrong))), BlockReason::Spent(counter::QA_REOPEN));
    }
    // What fails, fails, whatever else is missing.
    let mut fails = pass(&["C-1"]);
    fails.qa_validation = Some(verdict(QaDecision::Fail, &[EvidenceResult::Fail]));
    assert_eq!(next(&decide(&at(steps::QA), &fails)), steps::REVISION);
}

#[test]
fn what_a_person_judges_needs_no_row_and_a_failed_check_counts_more_than_qa() {
    let mut report = qa_passes();
    report.criteria = vec!["it works".into(), "(manual) it looks calm".into()];
    report.qa_validation =
        Some(crate::engine::tests::verdict(QaDecision::Pass, &[("C-1", EvidenceResult::Pass)]));
    let passes = |report: &StepReport| {
        matches!(decide(&at(steps::QA), report), WorkflowDecision::Closeout { .. })
    };
    assert!(passes(&report));
    report.criteria[0] = "(check: unit) it works".into();
    report.failed_checks = vec!["lint".to_owned()];
    assert!(passes(&report), "it is another check that fails");
    report.failed_checks.push("unit".to_owned());
    let WorkflowDecision::Next { step, notes, .. } = decide(&at(steps::QA), &report) else {
        panic!("it passes");
    };
    let why = ReportChange::CriteriaFail(vec!["C-1: (check: unit) it works".to_owned()]);
    assert_eq!((step, notes), (steps::REVISION, vec![why]));
}

#[test]
fn w22_a_pass_is_a_pass_whatever_it_mentions() {
    let mut report = qa_passes();
    report.text = "current_sprint is out of sync".to_owned();
    let decision = decide(&at(steps::QA), &report);
    assert!(matches!(decision, WorkflowDecision::Closeout { .. }), "{decision:?}");
}

#[test]
fn w23_a_failed_report_about_async_code_is_not_a_pass() {
    let mut report = reopening(steps::QA, Some(ReopenCategory::Implementation));
    report.status = ResultStatus::Failed;
    report.text = "the async handler crashes; todo_backlog is out of sync".to_owned();
    assert_eq!(next(&decide(&at(steps::QA), &report)), steps::REVISION);
}

#[test]
fn qa_passes_only_when_everything_agrees_13a_3() {
    let qa = at(steps::QA);
    let cases: [(QaDecision, &[EvidenceResult], Option<Outcome>, ResultStatus); 6] = [
        (
            QaDecision::Fail,
            &[EvidenceResult::Pass],
            Some(Outcome::Complete),
            ResultStatus::Completed,
        ),
        (
            QaDecision::Blocked,
            &[EvidenceResult::Pass],
            Some(Outcome::Advance),
            ResultStatus::Completed,
        ),
        (
            QaDecision::Pass,
            &[EvidenceResult::Fail],
            Some(Outcome::Complete),
            ResultStatus::Completed,
        ),
        (QaDecision::Pass, &[EvidenceResult::NotChecked], None, ResultStatus::Completed),
        (QaDecision::Pass, &[EvidenceResult::Pass], None, ResultStatus::Failed),
        (QaDecision::Pass, &[EvidenceResult::Pass], Some(Outcome::Reopen), ResultStatus::Completed),
    ];
    for (decision, evidence, outcome, status) in cases {
        let mut report = report(steps::QA, outcome);
        report.qa_validation = Some(verdict(decision, evidence));
        report.status = status;
        let decided = decide(&qa, &report);
        assert_eq!(next(&decided), steps::REVISION, "{decision:?} {evidence:?} {status:?}");
        assert_eq!(decided.state().reopen_category, Some(ReopenCategory::Verification));
    }
    // QA that cannot decide waits for a person, QA without a verdict is asked again.
    let mut report = report(steps::QA, None);
    report.qa_validation = Some(verdict(QaDecision::Blocked, &[EvidenceResult::Pass]));
    report.status = ResultStatus::Blocked;
    assert_eq!(stopped(&decide(&qa, &report)), BlockReason::RoleBlocked);
    let mut silent = qa_passes();
    silent.qa_validation = None;
    assert_eq!(next(&decide(&qa, &silent)), steps::QA);
    let mut empty = qa_passes();
    empty.qa_validation = Some(verdict(QaDecision::Pass, &[]));
    assert_eq!(next(&decide(&qa, &empty)), steps::QA);
}

#[test]
fn the_qa_loop_is_bounded_13a_18() {
    let mut state = at(steps::QA);
    let mut rounds = 0;
    loop {
        let back = reopening(steps::QA, Some(ReopenCategory::Implementation));
        let decision = decide(&state, &back);
        if !matches!(decision, WorkflowDecision::Next { .. }) {
            assert_eq!(stopped(&decision), BlockReason::Spent(counter::QA_REOPEN));
            break;
        }
        state = decision.state().clone();
        rounds += 1;
        let revised = report(steps::REVISION, Some(Outcome::Advance));
        state = decide(&state, &revised).state().clone();
        assert_eq!(state.step, steps::QA);
    }
    assert_eq!(rounds, 3);
}
