//! The guardrails of a report (`spec/teams.md` 7.5) and the budgets, around the mover.

use super::decision::{BlockReason, ReportChange, WorkflowDecision};
use super::mover::MoveResult;
use super::moves::{blocked, enter, entered, route, unknown_step};
use super::outcome::close_in_planning;
use super::report::{DocumentRule, StepReport};
use super::surfaces::{AFTER_QA_REOPEN, is_planner_document};
use crate::domain::lifecycle::{
    Edge, Lifecycle, Phase, ReopenCategory, Step, StepKind, StepOutcome, counter,
};
use crate::domain::result::{QaDecision, ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::workflow::{Outcome, PhaseStatus, Transition, WorkflowState};
use crate::engine::contract::numbered::{RowFaults, row_faults};
use crate::engine::parse::{normalize_artifact_hint, terms};

/// Words by which QA says that the specification is at fault.
const SPECIFICATION: [&str; 4] = ["spec.md", "acceptance criteria", "수용 기준", "수용기준"];

/// Applies one report to the state.
///
/// Rules: the lifecycle, after the guardrails (`spec/teams.md` 7.5). A negative verdict is never upgraded: only a
/// reviewer's "blocked" with an explicit continuation becomes a revision.
#[must_use]
pub fn decide(
    lifecycle: &Lifecycle,
    state: &WorkflowState,
    report: &StepReport,
) -> WorkflowDecision {
    let mut state = state.clone();
    if state.phase_status == PhaseStatus::Blocked {
        return blocked(state, BlockReason::AlreadyOver, report.words());
    }
    let Some(step) = lifecycle.step(state.step) else {
        return unknown_step(state);
    };
    if step.kind == StepKind::Land {
        return WorkflowDecision::Closeout { state };
    }
    if !state.take(counter::TURNS) {
        return blocked(state, BlockReason::Spent(counter::TURNS), report.words());
    }
    if report.role != step.role {
        let again = if step.kind == StepKind::Plan { lifecycle.resume } else { step.name };
        return enter(lifecycle, state, again, vec![ReportChange::WrongReporter(report.role)]);
    }
    let at = StepReportContext { lifecycle, step };
    let mut notes = Vec::new();
    if let Some(dropped) = foreign_documents(&state, report.role, &report.artifacts) {
        notes.push(ReportChange::PlannerDocumentsDropped(dropped));
    }
    if report.transition.outcome == Some(Outcome::Block) {
        return at.follow(state, report, report.transition.clone(), notes);
    }
    match step.kind {
        StepKind::Verdict => at.verdict(state, report, notes),
        StepKind::Research if report.is_negative() => {
            notes.push(ReportChange::WithoutResearch);
            at.follow(state, report, Transition::default(), notes)
        }
        StepKind::Review
            if report.status == ResultStatus::Blocked && report.transition.continues() =>
        {
            notes.push(ReportChange::RevisionInsteadOfBlock);
            let transition =
                Transition { target_phase: None, target_step: None, ..report.transition.clone() };
            at.follow(state, report, transition, notes)
        }
        StepKind::Plan => at.plan(state, report, notes),
        // What has to change is not passed, whatever else the reviewer says.
        StepKind::Review
            if report.has_findings && report.transition.outcome != Some(Outcome::Reopen) =>
        {
            if report.transition != Transition::default() {
                notes.push(ReportChange::Contradiction);
            }
            at.positive_or_reopen(
                state,
                &StepReport { transition: Transition::default(), ..report.clone() },
                notes,
            )
        }
        StepKind::Research
        | StepKind::Advice
        | StepKind::Guidance
        | StepKind::Change
        | StepKind::Review
        | StepKind::Land
        | StepKind::Sprint(_) => at.positive_or_reopen(state, report, notes),
    }
}

/// The step that a report is about.
#[derive(Clone, Copy)]
struct StepReportContext<'l> {
    lifecycle: &'l Lifecycle,
    step: &'l Step,
}

impl StepReportContext<'_> {
    /// A report that is not negative goes on; a negative one only as the reopening it asks for.
    fn positive_or_reopen(
        self,
        state: WorkflowState,
        report: &StepReport,
        notes: Vec<ReportChange>,
    ) -> WorkflowDecision {
        if report.is_negative() && report.transition.outcome != Some(Outcome::Reopen) {
            return stopped(state, report);
        }
        self.follow(state, report, report.transition.clone(), notes)
    }

    /// A planner has to list its documents; how often it may forget is counted (`spec/teams.md` 13.A
    /// #17).
    fn plan(
        self,
        mut state: WorkflowState,
        report: &StepReport,
        mut notes: Vec<ReportChange>,
    ) -> WorkflowDecision {
        if report.is_negative() {
            return self.positive_or_reopen(state, report, notes);
        }
        let Some(missing) = missing_documents(&state, report) else {
            return self.follow(state, report, report.transition.clone(), notes);
        };
        if !state.take(counter::PLANNER_CONTRACT) {
            let reason = BlockReason::Spent(counter::PLANNER_CONTRACT);
            return blocked(state, reason, missing.join(", "));
        }
        state.reopen_category = Some(ReopenCategory::Scope);
        notes.push(ReportChange::DocumentsMissing(missing));
        enter(self.lifecycle, state, self.lifecycle.resume, notes)
    }

    /// Decision, evidence, status and outcome of QA have to agree; any of them negative means not
    /// passed (`spec/teams.md` 13.A #2 and #3).
    fn verdict(
        self,
        mut state: WorkflowState,
        report: &StepReport,
        mut notes: Vec<ReportChange>,
    ) -> WorkflowDecision {
        let transition = &report.transition;
        let verdict = report.qa_validation.as_ref();
        let decision = verdict.map(|verdict| verdict.decision);
        let evidence_fails = verdict.is_some_and(|verdict| {
            verdict.evidence_matrix.iter().any(|row| row.result.is_negative())
        });
        // A check that a criterion names counts more than QA's word for it.
        let failed = report.failed_criteria();
        let evidence_fails = evidence_fails || !failed.is_empty();
        let reopens = transition.outcome == Some(Outcome::Reopen);
        let rejects = matches!(decision, Some(QaDecision::Fail | QaDecision::Blocked));
        let negative = report.is_negative() || reopens || rejects || evidence_fails;
        if !negative {
            let faults = verdict.map(|verdict| {
                let rows = verdict.evidence_matrix.iter().map(|row| row.criterion.as_str());
                row_faults(&report.criteria, rows)
            });
            let usable = verdict.is_some_and(|verdict| {
                faults.as_ref().is_some_and(RowFaults::is_empty)
                    && !verdict.evidence_matrix.is_empty()
            });
            if usable {
                return self.follow(state, report, transition.clone(), notes);
            }
            let counter = self.step.reopen_counter;
            if !state.take(counter) {
                return blocked(state, BlockReason::Spent(counter), report.words());
            }
            notes.push(match faults.filter(|faults| !faults.is_empty()) {
                Some(faults) => ReportChange::RowsDiffer(faults.to_string()),
                None => ReportChange::VerdictMissing,
            });
            return enter(self.lifecycle, state, self.step.name, notes);
        }
        let mut transition = transition.clone();
        // Who says that it fails names the criteria that do, and nothing is wrong with those.
        let to_planner = transition.target_step == Some(self.lifecycle.resume)
            || (decision != Some(QaDecision::Fail) && cites_specification(report));
        if transition.reopen_category.is_none() && to_planner {
            notes.push(ReportChange::SpecificationAtFault);
            transition.outcome = Some(Outcome::Reopen);
            transition.reopen_category = Some(ReopenCategory::Scope);
        }
        if transition.outcome != Some(Outcome::Reopen) {
            let approves = decision == Some(QaDecision::Pass)
                || matches!(transition.outcome, Some(Outcome::Advance | Outcome::Complete));
            if !approves && !evidence_fails && decision != Some(QaDecision::Fail) {
                return match decision {
                    Some(QaDecision::Blocked) => {
                        blocked(state, BlockReason::RoleBlocked, report.words())
                    }
                    Some(QaDecision::Pass | QaDecision::Fail) | None => stopped(state, report),
                };
            }
            if !failed.is_empty() {
                notes.push(ReportChange::CriteriaFail(failed));
            } else if approves {
                notes.push(ReportChange::Contradiction);
            }
            transition.outcome = Some(Outcome::Reopen);
        }
        transition.reopen_category.get_or_insert(ReopenCategory::Verification);
        self.follow(state, report, transition, notes)
    }

    /// Follows the lifecycle, and charges what is sent back.
    fn follow(
        self,
        state: WorkflowState,
        report: &StepReport,
        transition: Transition,
        notes: Vec<ReportChange>,
    ) -> WorkflowDecision {
        let StepReportContext { lifecycle, step } = self;
        let close = close_in_planning(lifecycle, step, report);
        match route(lifecycle, &state, report.role, &transition, close) {
            // A definition that compiles has a way for it. Where there is none, nothing goes on, least of all to
            // the branch.
            MoveResult::Over => unknown_step(state),
            MoveResult::Stop(stopped, reason) => blocked(stopped, reason, report.words()),
            MoveResult::To(mut next) => {
                let to = lifecycle.step(next.step).map(|step| step.kind);
                // Advice and research always lead on, and the way from a review to the change has the limit of
                // reviews.
                let leads_on = matches!(step.kind, StepKind::Research | StepKind::Advice);
                let has_limit = |edge: Edge| edge.within.is_some() || edge.charge.is_some();
                let counts = step.kind == StepKind::Review
                    && step.on(StepOutcome::Revise).is_some_and(has_limit);
                let reviewed = counts && to == Some(StepKind::Change);
                let reopens = transition.outcome == Some(Outcome::Reopen);
                let charged = reopens && to != Some(StepKind::Land) && !leads_on && !reviewed;
                if charged && !next.take(step.reopen_counter) {
                    return blocked(state, BlockReason::Spent(step.reopen_counter), report.words());
                }
                entered(next, notes)
            }
        }
    }
}

fn stopped(state: WorkflowState, report: &StepReport) -> WorkflowDecision {
    let reason = match report.status {
        ResultStatus::Blocked => BlockReason::RoleBlocked,
        ResultStatus::Failed | ResultStatus::Completed => BlockReason::RoleFailed,
    };
    blocked(state, reason, report.words())
}

/// The documents that are asked for and not there; `None` when all is well.
pub(super) fn missing_documents(state: &WorkflowState, report: &StepReport) -> Option<Vec<String>> {
    let listed: Vec<String> = report
        .artifacts
        .iter()
        .map(|path| normalize_artifact_hint(path))
        .filter(|path| is_planner_document(path) && report.documents_present.contains(path))
        .collect();
    let wanted: &[&str] = match report.document_rule {
        DocumentRule::NotAsked => return None,
        DocumentRule::Sprint if state.reopen_source_role == Some(Role::Qa) => &AFTER_QA_REOPEN,
        DocumentRule::OneOfItsOwn | DocumentRule::Sprint => &[],
    };
    let missing: Vec<String> = wanted
        .iter()
        .filter(|name| !listed.iter().any(|path| path.rsplit('/').next() == Some(**name)))
        .map(|name| (*name).to_owned())
        .collect();
    (listed.is_empty() || !missing.is_empty()).then_some(missing)
}

/// Takes the planner's documents off an implementer's artifacts and gives what it took (`spec/teams.md`
/// 7.5, W27). The caller says so in the record.
pub fn drop_foreign_documents(state: &WorkflowState, result: &mut RoleResult) -> Vec<String> {
    let dropped = foreign_documents(state, result.role, &result.artifacts).unwrap_or_default();
    result.artifacts.retain(|path| !dropped.contains(path));
    dropped
}

/// Documents of the planner among the artifacts of an implementer.
pub(super) fn foreign_documents(
    state: &WorkflowState,
    role: Role,
    artifacts: &[String],
) -> Option<Vec<String>> {
    let implements = state.phase == Phase::Implementation
        && matches!(role, Role::Architect | Role::Developer | Role::ConflictResolver);
    let found: Vec<String> =
        artifacts.iter().filter(|path| implements && is_planner_document(path)).cloned().collect();
    (!found.is_empty()).then_some(found)
}

/// Whether QA's words point at the specification; terms match as words.
fn cites_specification(report: &StepReport) -> bool {
    [&report.text, &report.transition.reason].into_iter().any(|words| {
        let words = terms::Text::new(words);
        SPECIFICATION.iter().any(|term| words.has(term))
    })
}
