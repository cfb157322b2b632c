//! The guardrails of a report (`spec/teams.md` 7.5) and the budgets, around the decision table.

use super::report::{DocumentRule, StepReport};
use super::surfaces::{AFTER_QA_REOPEN, is_planner_document};
use super::table::{self, Routed};
use super::{
    BlockReason, Note, Outcome, Phase, PhaseStatus, ReopenCategory, Role, Step, WorkflowDecision,
    WorkflowState, blocked, enter,
};
use crate::domain::result::{EvidenceResult, QaDecision, ResultStatus, RoleResult};
use crate::domain::workflow::Transition;
use crate::engine::contract::numbered::{RowFaults, row_faults};
use crate::engine::parse::{normalize_artifact_hint, terms};

/// Words by which QA says that the specification is at fault.
const SPECIFICATION: [&str; 4] = ["spec.md", "acceptance criteria", "수용 기준", "수용기준"];

pub(super) fn decide(state: &WorkflowState, report: &StepReport) -> WorkflowDecision {
    let mut state = state.clone();
    if state.phase_status == PhaseStatus::Blocked {
        return blocked(state, BlockReason::AlreadyOver, report.words());
    }
    if state.step == Step::Closeout {
        return WorkflowDecision::Closeout { state };
    }
    if !state.budgets.turns.take() {
        return blocked(state, BlockReason::TurnBudget, report.words());
    }
    if report.role != worker(&state) {
        return match state.step {
            Step::PlannerDraft | Step::PlannerFinalize => {
                enter(state, Step::PlannerFinalize, vec![Note::WrongReporter(report.role)])
            }
            step @ (Step::ResearchInitial
            | Step::PlannerAdvisory
            | Step::DesignerAdvisory
            | Step::ArchitectAdvisory
            | Step::ArchitectGuidance
            | Step::DeveloperBuild
            | Step::ArchitectReview
            | Step::DeveloperRevision
            | Step::QaValidation
            | Step::Closeout) => enter(state, step, vec![Note::WrongReporter(report.role)]),
        };
    }
    let mut notes = Vec::new();
    if let Some(dropped) = foreign_documents(&state, report.role, &report.artifacts) {
        notes.push(Note::PlannerDocumentsDropped(dropped));
    }
    if report.transition.outcome == Some(Outcome::Block) {
        return follow(state, report, report.transition.clone(), notes);
    }
    match state.step {
        Step::QaValidation => qa(state, report, notes),
        Step::ResearchInitial if report.is_negative() => {
            notes.push(Note::WithoutResearch);
            follow(state, report, Transition::default(), notes)
        }
        Step::ArchitectReview
            if report.status == ResultStatus::Blocked && report.transition.continues() =>
        {
            notes.push(Note::RevisionInsteadOfBlock);
            let transition =
                Transition { target_phase: None, target_step: None, ..report.transition.clone() };
            follow(state, report, transition, notes)
        }
        Step::PlannerDraft | Step::PlannerFinalize => planner(state, report, notes),
        Step::ResearchInitial
        | Step::PlannerAdvisory
        | Step::DesignerAdvisory
        | Step::ArchitectAdvisory
        | Step::ArchitectGuidance
        | Step::DeveloperBuild
        | Step::ArchitectReview
        | Step::DeveloperRevision
        | Step::Closeout => positive_or_reopen(state, report, notes),
    }
}

/// Who works the step: its owner, for the older shared advisory the phase's owner.
fn worker(state: &WorkflowState) -> Role {
    state.step.advisor(Some(state.phase_owner)).unwrap_or(state.step.owner())
}

/// A report that is not negative goes on; a negative one only as the reopening it asks for.
fn positive_or_reopen(
    state: WorkflowState,
    report: &StepReport,
    notes: Vec<Note>,
) -> WorkflowDecision {
    if report.is_negative() && report.transition.outcome != Some(Outcome::Reopen) {
        return stopped(state, report);
    }
    follow(state, report, report.transition.clone(), notes)
}

fn stopped(state: WorkflowState, report: &StepReport) -> WorkflowDecision {
    let reason = match report.status {
        ResultStatus::Blocked => BlockReason::RoleBlocked,
        ResultStatus::Failed | ResultStatus::Completed => BlockReason::RoleFailed,
    };
    blocked(state, reason, report.words())
}

/// A planner has to list its documents; how often it may forget is counted (`spec/teams.md` 13.A
/// #17).
fn planner(
    mut state: WorkflowState,
    report: &StepReport,
    mut notes: Vec<Note>,
) -> WorkflowDecision {
    if report.is_negative() {
        return positive_or_reopen(state, report, notes);
    }
    let Some(missing) = missing_documents(&state, report) else {
        return follow(state, report, report.transition.clone(), notes);
    };
    if !state.budgets.planner_contract.take() {
        return blocked(state, BlockReason::PlannerContract, missing.join(", "));
    }
    state.reopen_category = Some(ReopenCategory::Scope);
    notes.push(Note::DocumentsMissing(missing));
    enter(state, Step::PlannerFinalize, notes)
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
    let implements =
        state.phase == Phase::Implementation && matches!(role, Role::Architect | Role::Developer);
    let found: Vec<String> =
        artifacts.iter().filter(|path| implements && is_planner_document(path)).cloned().collect();
    (!found.is_empty()).then_some(found)
}

/// Decision, evidence, status and outcome of QA have to agree; any of them negative means not
/// passed (`spec/teams.md` 13.A #2 and #3).
fn qa(mut state: WorkflowState, report: &StepReport, mut notes: Vec<Note>) -> WorkflowDecision {
    let transition = &report.transition;
    let verdict = report.qa_validation.as_ref();
    let decision = verdict.and_then(|verdict| verdict.decision);
    let evidence_fails = verdict.is_some_and(|verdict| {
        verdict.evidence.iter().any(|row| match row.result {
            Some(EvidenceResult::Fail | EvidenceResult::NotChecked) => true,
            Some(EvidenceResult::Pass) | None => false,
        })
    });
    let reopens = transition.outcome == Some(Outcome::Reopen);
    let rejects = matches!(decision, Some(QaDecision::Fail | QaDecision::Blocked));
    let negative = report.is_negative() || reopens || rejects || evidence_fails;
    if !negative {
        let faults = verdict.map(|verdict| {
            let rows = verdict.evidence.iter().map(|row| row.criterion.as_str());
            row_faults(&report.criteria, rows)
        });
        let usable = verdict.is_some_and(|verdict| {
            faults.as_ref().is_some_and(RowFaults::is_empty)
                && verdict.decision.is_some()
                && !verdict.evidence.is_empty()
                && verdict.evidence.iter().all(|row| row.result.is_some())
        });
        if usable {
            return follow(state, report, transition.clone(), notes);
        }
        if !state.budgets.qa_reopen.take() {
            return blocked(state, BlockReason::QaBudget, report.words());
        }
        notes.push(match faults.filter(|faults| !faults.is_empty()) {
            Some(faults) => Note::RowsDiffer(faults.to_string()),
            None => Note::VerdictMissing,
        });
        return enter(state, Step::QaValidation, notes);
    }
    let mut transition = transition.clone();
    let to_planner =
        transition.target_step == Some(Step::PlannerFinalize) || cites_specification(report);
    if transition.reopen_category.is_none() && to_planner {
        notes.push(Note::SpecificationAtFault);
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
        if approves {
            notes.push(Note::Contradiction);
        }
        transition.outcome = Some(Outcome::Reopen);
    }
    transition.reopen_category.get_or_insert(ReopenCategory::Verification);
    follow(state, report, transition, notes)
}

/// Whether QA's words point at the specification; terms match as words.
fn cites_specification(report: &StepReport) -> bool {
    [&report.text, &report.transition.reason].into_iter().any(|words| {
        let words = terms::Text::new(words);
        SPECIFICATION.iter().any(|term| words.has(term))
    })
}

/// Follows the table and charges the loop that is entered.
fn follow(
    state: WorkflowState,
    report: &StepReport,
    transition: Transition,
    notes: Vec<Note>,
) -> WorkflowDecision {
    let close = table::close_in_planning(&state, report);
    let reopens = transition.outcome == Some(Outcome::Reopen);
    let from = state.step;
    match table::route(&state, Some(worker(&state)), &transition, close) {
        Routed::Over => WorkflowDecision::Closeout { state },
        Routed::Stop(stopped, reason) => blocked(stopped, reason, report.words()),
        Routed::To(mut next) => {
            // Advice and research always lead on, and the way from the review to the revision has
            // the review limit.
            let leads_on = from == Step::ResearchInitial || from.advisor(None).is_some();
            let reviewed = from == Step::ArchitectReview && next.step == Step::DeveloperRevision;
            let charged = reopens && next.step != Step::Closeout && !leads_on && !reviewed;
            if charged {
                let (purse, reason) = if from == Step::QaValidation {
                    (&mut next.budgets.qa_reopen, BlockReason::QaBudget)
                } else {
                    (&mut next.budgets.reopen, BlockReason::ReopenBudget)
                };
                if !purse.take() {
                    return blocked(state, reason, report.words());
                }
            }
            let step = next.step;
            enter(next, step, notes)
        }
    }
}
