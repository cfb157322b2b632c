//! Judging a result before it is applied (`spec/teams.md` 8.2).

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::normalize::{normalize, read};
use super::numbered::{RowFaults, row_faults};
use super::{INSIGHT_PLACEHOLDER, STATUS_LITERAL, SUMMARY_PLACEHOLDER};
use crate::domain::criterion::{Criterion, LONGEST_CRITERION, MOST_CRITERIA};
use crate::domain::lenient;
use crate::domain::lifecycle::StepName;
use crate::domain::plan_decision::{LONGEST_OPTION, LONGEST_QUESTION, MOST_QUESTIONS, OPTIONS};
use crate::domain::result::{EvidenceResult, ProposedQuestion, RoleResult};
use crate::domain::role::Role;
use crate::domain::word::Word;
use crate::domain::workflow::{Outcome, Transition};

/// What is wrong with a result. `Display` gives the code that records keep and repair turns quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContractIssue {
    /// The result is not a JSON object.
    PayloadNotDict,
    /// The status line of the prompt was copied.
    CopiedStatusLiteral,
    /// The summary is a placeholder.
    CopiedPlaceholderSummary,
    /// An insight is a placeholder.
    CopiedPlaceholderInsight,
    /// No workflow transition on a workflow request.
    MissingTransition,
    /// Keys that the transition lacks.
    TransitionMissingKeys(Vec<&'static str>),
    /// An outcome that does not exist.
    InvalidOutcome(String),
    /// `unresolved_items` is not a list.
    InvalidUnresolvedItems,
    /// `finalize_phase` is not a flag.
    InvalidFinalizePhase,
    /// No verdict from QA.
    MissingQaValidation,
    /// Keys that the verdict lacks.
    QaMissingKeys(Vec<&'static str>),
    /// The method is not the evidence matrix.
    InvalidQaMethodology,
    /// A decision that does not exist.
    InvalidQaDecision(String),
    /// No evidence.
    EmptyEvidenceMatrix,
    /// Keys that a row of evidence lacks.
    EvidenceMissingKeys(Vec<&'static str>),
    /// Rows that are not one for each criterion.
    EvidenceRows(RowFaults),
    /// A result of a row that does not exist.
    InvalidEvidenceResult(String),
    /// A field of the verdict that is not a list.
    InvalidQaListField(&'static str),
    /// Something that does not fit the schema, with its place.
    Misshapen(String),
}

impl fmt::Display for ContractIssue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContractIssue::PayloadNotDict => f.write_str("payload_not_dict"),
            ContractIssue::CopiedStatusLiteral => f.write_str("copied_prompt_status_enum_literal"),
            ContractIssue::CopiedPlaceholderSummary => f.write_str("copied_placeholder_summary"),
            ContractIssue::CopiedPlaceholderInsight => f.write_str("copied_placeholder_insight"),
            ContractIssue::MissingTransition => f.write_str("missing_workflow_transition"),
            ContractIssue::TransitionMissingKeys(keys) => {
                write!(f, "workflow_transition_missing_keys:{}", keys.join(","))
            }
            ContractIssue::InvalidOutcome(word) => {
                write!(f, "invalid_workflow_transition_outcome:{word}")
            }
            ContractIssue::InvalidUnresolvedItems => {
                f.write_str("invalid_workflow_transition_unresolved_items")
            }
            ContractIssue::InvalidFinalizePhase => {
                f.write_str("invalid_workflow_transition_finalize_phase")
            }
            ContractIssue::MissingQaValidation => f.write_str("missing_qa_validation"),
            ContractIssue::QaMissingKeys(keys) => {
                write!(f, "qa_validation_missing_keys:{}", keys.join(","))
            }
            ContractIssue::InvalidQaMethodology => f.write_str("invalid_qa_validation_methodology"),
            ContractIssue::InvalidQaDecision(word) => {
                write!(f, "invalid_qa_validation_decision:{word}")
            }
            ContractIssue::EmptyEvidenceMatrix => {
                f.write_str("empty_qa_validation_evidence_matrix")
            }
            ContractIssue::EvidenceMissingKeys(keys) => {
                write!(f, "qa_validation_evidence_missing_keys:{}", keys.join(","))
            }
            ContractIssue::EvidenceRows(faults) => {
                write!(f, "qa_validation_rows_are_not_the_criteria ({faults})")
            }
            ContractIssue::InvalidEvidenceResult(word) => {
                write!(f, "invalid_qa_validation_evidence_result:{word}")
            }
            ContractIssue::InvalidQaListField(key) => {
                write!(f, "invalid_qa_validation_list_field:{key}")
            }
            ContractIssue::Misshapen(fault) => f.write_str(fault),
        }
    }
}

const QA_KEYS: [&str; 7] = [
    "methodology",
    "decision",
    "evidence_matrix",
    "passed_checks",
    "findings",
    "residual_risks",
    "not_checked",
];
const QA_LISTS: [&str; 4] = ["passed_checks", "findings", "residual_risks", "not_checked"];
const EVIDENCE_KEYS: [&str; 4] = ["criterion", "source", "evidence", "result"];

/// Where a verdict stands.
const VERDICT: &str = "/proposals/qa_validation";

/// Reads what a role answered, whatever way it came, where it follows the contract.
///
/// # Errors
/// What is wrong with it.
pub fn check(
    raw: &Value,
    role: Role,
    step: Option<StepName>,
    criteria: &[Criterion],
) -> Result<RoleResult, Vec<ContractIssue>> {
    match validate(raw, role, step, criteria) {
        issues if issues.is_empty() => Ok(normalize(raw, role, "")),
        issues => Err(issues),
    }
}

/// Judges what `role` wrote, before [`super::normalize`] puts it right. `step` is the workflow step
/// of the request, `None` where it has no workflow; `criteria` are what QA judges, none where it finds them itself.
#[must_use]
pub fn validate(
    raw: &Value,
    role: Role,
    step: Option<StepName>,
    criteria: &[Criterion],
) -> Vec<ContractIssue> {
    let Some(fields) = raw.as_object() else {
        return vec![ContractIssue::PayloadNotDict];
    };
    let mut issues = Vec::new();
    let word = |key: &str| lenient::text(fields.get(key)).trim().to_lowercase();
    if word("status") == STATUS_LITERAL {
        issues.push(ContractIssue::CopiedStatusLiteral);
    }
    if word("summary") == SUMMARY_PLACEHOLDER {
        issues.push(ContractIssue::CopiedPlaceholderSummary);
    }
    let insights = lenient::list(fields.get("insights"));
    if insights.iter().any(|insight| insight.to_lowercase() == INSIGHT_PLACEHOLDER) {
        issues.push(ContractIssue::CopiedPlaceholderInsight);
    }
    let (result, faults) = read(raw, role, "");
    issues.extend(question_faults(result.proposals.questions.as_deref().unwrap_or_default()));
    issues.extend(criteria_faults(
        result.proposals.acceptance_criteria.as_deref().unwrap_or_default(),
    ));
    let (mut of_verdict, mut others) = (Vec::new(), Vec::new());
    for fault in faults {
        if fault.starts_with(VERDICT) {
            of_verdict.push(ContractIssue::Misshapen(fault));
        } else if !fault.starts_with("/proposals/workflow_transition") {
            // These two have codes of their own.
            others.push(ContractIssue::Misshapen(fault));
        }
    }
    issues.extend(others);
    if step.is_none() || !works_in_workflow(role) {
        return issues;
    }
    let proposals = fields.get("proposals");
    let part = |key: &str| proposals.and_then(|proposals| proposals.get(key)?.as_object());
    match part("workflow_transition") {
        None => issues.push(ContractIssue::MissingTransition),
        Some(transition) => judge_transition(transition, &mut issues),
    }
    if role == Role::Qa {
        match part("qa_validation") {
            None => issues.push(ContractIssue::MissingQaValidation),
            Some(verdict) => {
                let before = issues.len();
                judge_verdict(verdict, criteria, &mut issues);
                if result.proposals.qa_validation.is_none() && issues.len() == before {
                    issues.extend(of_verdict);
                }
            }
        }
    }
    issues
}

/// What is wrong with acceptance criteria: each is held against the change, and none may be cut.
fn criteria_faults(criteria: &[String]) -> Vec<ContractIssue> {
    let mut faults = Vec::new();
    let place = "/proposals/acceptance_criteria";
    if criteria.len() > MOST_CRITERIA {
        let many = criteria.len();
        faults.push(format!("{place} has {many} entries, where {MOST_CRITERIA} are allowed"));
    }
    let is_wrong =
        |text: &String| text.trim().is_empty() || text.chars().count() > LONGEST_CRITERION;
    let wrong = criteria.iter().position(is_wrong);
    faults.extend(
        wrong.map(|at| format!("{place}/{at} is blank or over {LONGEST_CRITERION} characters")),
    );
    faults.into_iter().map(ContractIssue::Misshapen).collect()
}

/// What is wrong with questions to a person: each has to fit a list on a phone.
fn question_faults(questions: &[ProposedQuestion]) -> Vec<ContractIssue> {
    let mut faults = Vec::new();
    if questions.len() > MOST_QUESTIONS {
        let many = questions.len();
        faults.push(format!(
            "/proposals/questions has {many} entries, where {MOST_QUESTIONS} are allowed"
        ));
    }
    for (at, ProposedQuestion { question, options, assumption }) in questions.iter().enumerate() {
        let place = format!("/proposals/questions/{at}");
        let too_long =
            |text: &str, most: usize| text.trim().is_empty() || text.chars().count() > most;
        if too_long(question, LONGEST_QUESTION) {
            faults.push(format!("{place}/question is blank or over {LONGEST_QUESTION} characters"));
        }
        if options.iter().any(|option| too_long(option, LONGEST_OPTION)) {
            faults.push(format!(
                "{place}/options has one that is blank or over {LONGEST_OPTION} characters"
            ));
        }
        let each: BTreeSet<&str> = options.iter().map(|option| option.trim()).collect();
        if each.len() != options.len() || !OPTIONS.contains(&options.len()) {
            let (least, most) = (OPTIONS.start(), OPTIONS.end());
            faults.push(format!("{place}/options are not {least} to {most} different ones"));
        }
        if !options.contains(assumption) {
            faults.push(format!("{place}/assumption is none of the options"));
        }
    }
    faults.into_iter().map(ContractIssue::Misshapen).collect()
}

/// Whether the contract asks the role for a transition (`spec/teams.md` 7.2).
fn works_in_workflow(role: Role) -> bool {
    matches!(
        role,
        Role::Planner
            | Role::Designer
            | Role::Architect
            | Role::Developer
            | Role::ConflictResolver
            | Role::Qa
    )
}

fn missing(fields: &Map<String, Value>, keys: &[&'static str]) -> Vec<&'static str> {
    keys.iter().copied().filter(|key| !fields.contains_key(*key)).collect()
}

fn judge_transition(transition: &Map<String, Value>, issues: &mut Vec<ContractIssue>) {
    let keys = missing(transition, &Transition::KEYS);
    if !keys.is_empty() {
        issues.push(ContractIssue::TransitionMissingKeys(keys));
    }
    let outcome = lenient::text(transition.get("outcome")).trim().to_lowercase();
    if !outcome.is_empty() && Outcome::read(&outcome).is_none() {
        issues.push(ContractIssue::InvalidOutcome(outcome));
    }
    if transition.get("unresolved_items").is_some_and(|items| !items.is_array()) {
        issues.push(ContractIssue::InvalidUnresolvedItems);
    }
    let flag = |value: &Value| value.is_boolean() || matches!(value.as_i64(), Some(0 | 1));
    if transition.get("finalize_phase").is_some_and(|value| !flag(value)) {
        issues.push(ContractIssue::InvalidFinalizePhase);
    }
}

fn judge_verdict(
    verdict: &Map<String, Value>,
    criteria: &[Criterion],
    issues: &mut Vec<ContractIssue>,
) {
    let word = |value: Option<&Value>| lenient::text(value).trim().to_lowercase();
    let keys = missing(verdict, &QA_KEYS);
    if !keys.is_empty() {
        issues.push(ContractIssue::QaMissingKeys(keys));
    }
    if verdict.contains_key("methodology") && word(verdict.get("methodology")) != "evidence_matrix"
    {
        issues.push(ContractIssue::InvalidQaMethodology);
    }
    let decision = word(verdict.get("decision"));
    if verdict.contains_key("decision") && !matches!(decision.as_str(), "pass" | "fail" | "blocked")
    {
        issues.push(ContractIssue::InvalidQaDecision(decision));
    }
    let rows = verdict.get("evidence_matrix").and_then(Value::as_array);
    match rows.filter(|rows| !rows.is_empty()) {
        None => issues.push(ContractIssue::EmptyEvidenceMatrix),
        Some(rows) => {
            for row in rows {
                let empty = Map::new();
                let row = row.as_object().unwrap_or(&empty);
                let keys = missing(row, &EVIDENCE_KEYS);
                if !keys.is_empty() {
                    issues.push(ContractIssue::EvidenceMissingKeys(keys));
                }
                let result = word(row.get("result"));
                if row.contains_key("result") && EvidenceResult::read(&result).is_none() {
                    issues.push(ContractIssue::InvalidEvidenceResult(result));
                }
            }
            let named: Vec<String> =
                rows.iter().map(|row| lenient::text(row.get("criterion"))).collect();
            let faults = row_faults(criteria, named.iter().map(String::as_str));
            if !faults.is_empty() {
                issues.push(ContractIssue::EvidenceRows(faults));
            }
        }
    }
    for key in QA_LISTS {
        if verdict.get(key).is_some_and(|value| !value.is_array()) {
            issues.push(ContractIssue::InvalidQaListField(key));
        }
    }
}
