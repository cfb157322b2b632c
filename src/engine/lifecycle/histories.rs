//! Random histories: whatever roles report, the workflow ends, within its budgets, and says who is
//! next.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::domain::lifecycle::{Lifecycle, ReopenCategory, StepKind, StepName, counter};
use crate::domain::result::{EvidenceResult, QaDecision, ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::workflow::{Outcome, PhaseStatus, Transition, WorkflowState};

/// What one report is made of; the role is whoever is at work.
#[derive(Debug, Clone)]
struct Move {
    status: ResultStatus,
    outcome: Option<Outcome>,
    target: Option<StepName>,
    category: Option<ReopenCategory>,
    decision: Option<QaDecision>,
    evidence: Option<EvidenceResult>,
    documents: bool,
    note: bool,
    foreign: bool,
    resume: bool,
}

fn some<T: Copy + std::fmt::Debug + 'static>(
    all: &'static [T],
) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(proptest::sample::select(all))
}

fn moves() -> impl Strategy<Value = Move> {
    let status = proptest::sample::select(
        &[
            ResultStatus::Completed,
            ResultStatus::Completed,
            ResultStatus::Completed,
            ResultStatus::Blocked,
            ResultStatus::Failed,
        ][..],
    );
    (
        status,
        some(&Outcome::ALL),
        proptest::option::of(proptest::sample::select(steps::of_roles())),
        some(&ReopenCategory::ALL),
        some(&[QaDecision::Pass, QaDecision::Pass, QaDecision::Fail, QaDecision::Blocked]),
        some(&[EvidenceResult::Pass, EvidenceResult::Pass, EvidenceResult::Fail]),
        (any::<bool>(), any::<bool>(), proptest::bool::weighted(0.05), any::<bool>()),
    )
        .prop_map(|(status, outcome, target, category, decision, evidence, flags)| Move {
            status,
            outcome,
            target,
            category,
            decision,
            evidence,
            documents: flags.0,
            note: flags.1,
            foreign: flags.2,
            resume: flags.3,
        })
}

fn report(role: Role, step: Move) -> StepReport {
    let mut report = StepReport::from_result(&RoleResult::new(role, "r"));
    report.status = step.status;
    report.transition = Transition {
        outcome: step.outcome,
        target_phase: step.target.map(|name| steps::step(name).kind.phase()),
        target_step: step.target,
        reopen_category: step.category,
        ..Transition::default()
    };
    report.qa_validation = step.decision.map(|decision| {
        let rows: Vec<_> = step.evidence.map(|result| ("c", result)).into_iter().collect();
        crate::engine::tests::verdict(decision, &rows)
    });
    report.planning_record = step.note;
    let document = "shared_workspace/current_sprint.md".to_owned();
    report.artifacts = vec![document.clone()];
    report.documents_present = step.documents.then_some(document).into_iter().collect();
    report
}

/// Whether everything that QA said passes.
fn passes(report: &StepReport) -> bool {
    let verdict = report.qa_validation.as_ref();
    !report.is_negative()
        && !matches!(report.transition.outcome, Some(Outcome::Reopen | Outcome::Block))
        && verdict.is_some_and(|verdict| {
            verdict.decision == QaDecision::Pass
                && !verdict.evidence_matrix.is_empty()
                && !verdict.evidence_matrix.iter().any(|row| row.result.is_negative())
        })
}

fn within_budgets(state: &WorkflowState) -> bool {
    // Reviews are counted beyond their limit: then only a pass goes on.
    let mut bounded = state.counters.iter().filter(|(name, _)| **name != counter::REVIEW);
    bounded.all(|(_, allowance)| allowance.used <= allowance.limit)
}

type Seen = BTreeSet<(StepName, Option<Outcome>, &'static str)>;

/// Plays a history until it is over; gives the decisions.
fn play(
    lifecycle: &Lifecycle,
    start: StepName,
    history: &[Move],
    seen: &RefCell<Seen>,
) -> Vec<WorkflowDecision> {
    let mut state = WorkflowState::begin(lifecycle, start);
    let mut decisions = Vec::new();
    for step in history {
        let at = lifecycle.step(state.step).expect("a step");
        let owner = at.role;
        let role = if step.foreign { Role::Orchestrator } else { owner };
        let report = report(role, step.clone());
        seen.borrow_mut().insert((state.step, step.outcome, step.status.as_str()));
        let decision = decide(lifecycle, &state, &report);
        assert!(within_budgets(decision.state()), "{decision:?}");
        match &decision {
            WorkflowDecision::Next { state: next, role, step, .. } => {
                let works = [PhaseStatus::Active, PhaseStatus::Finalizing];
                assert!(works.contains(&next.phase_status), "{next:?}");
                let to = lifecycle.step(*step).expect("a step");
                assert_eq!((next.step, next.phase_owner, to.role), (*step, *role, *role));
                assert_eq!(next.phase, to.kind.phase());
                let turns = |state: &WorkflowState| state.counter(counter::TURNS).used;
                assert_eq!(turns(next), turns(&state) + 1);
            }
            WorkflowDecision::Closeout { state: closed } => {
                assert_eq!(closed.step, lifecycle.landing());
                let proven = at.kind == StepKind::Verdict && passes(&report);
                let planned = close_in_planning(lifecycle, at, &report) && !report.is_negative();
                assert!(proven || planned, "{state:?} {report:?}");
            }
            WorkflowDecision::Blocked { state: stopped, .. } => {
                assert_eq!(stopped.phase_status, PhaseStatus::Blocked);
                assert_eq!(stopped.step, state.step);
            }
        }
        decisions.push(decision.clone());
        state = match decision {
            WorkflowDecision::Next { state, .. } => state,
            // The checks of the runtime fail now and then; a person answers a block.
            WorkflowDecision::Closeout { state } if step.resume => {
                match super::observed(lifecycle, &state, Observation::Red) {
                    WorkflowDecision::Next { state, .. } => state,
                    WorkflowDecision::Blocked { .. } | WorkflowDecision::Closeout { .. } => break,
                }
            }
            WorkflowDecision::Blocked { state, .. } if step.resume => {
                resume(lifecycle, &state).state().clone()
            }
            WorkflowDecision::Closeout { .. } | WorkflowDecision::Blocked { .. } => break,
        };
    }
    decisions
}

/// The same cases in every run, so that what was visited does not depend on luck.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn random_histories_end_within_budgets() {
    let seen = RefCell::new(Seen::new());
    let start = proptest::sample::select(steps::of_roles());
    let mut runner = runner(3000);
    runner
        .run(&(start, vec(moves(), 1..70)), |(start, history)| {
            let once = play(Lifecycle::built_in(), start, &history, &seen);
            let twice = play(Lifecycle::built_in(), start, &history, &seen);
            prop_assert_eq!(once, twice, "the same history decides the same");
            Ok(())
        })
        .unwrap();
    let seen = seen.into_inner();
    for step in steps::of_roles() {
        let outcomes = Outcome::ALL.iter().copied().map(Some).chain([None]);
        for outcome in outcomes {
            for status in ["completed", "blocked", "failed"] {
                assert!(seen.contains(&(step, outcome, status)), "{step} {outcome:?} {status}");
            }
        }
    }
}

#[test]
fn a_history_without_people_is_shorter_than_its_turn_budget() {
    let strategy = vec(moves(), 120);
    let mut runner = runner(500);
    runner
        .run(&strategy, |history| {
            let alone: Vec<Move> =
                history.into_iter().map(|step| Move { resume: false, ..step }).collect();
            let decisions =
                play(Lifecycle::built_in(), steps::RESEARCH, &alone, &RefCell::new(Seen::new()));
            prop_assert!(decisions.len() <= 49, "{}", decisions.len());
            Ok(())
        })
        .unwrap();
}
