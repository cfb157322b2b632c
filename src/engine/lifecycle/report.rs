//! The facts of one report that the workflow decides on.

use std::collections::BTreeSet;

use crate::domain::criterion::{Criterion, Judge};
use crate::domain::result::{QaValidation, ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::workflow::Transition;

/// Which documents a planner has to list (`spec/teams.md` 7.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentRule {
    /// None: the runtime writes them itself.
    NotAsked,
    /// At least one of its own that exists.
    #[default]
    OneOfItsOwn,
    /// At least one, and after QA sent it back the four that describe the sprint.
    Sprint,
}

/// What a role reported, and what the runtime knows about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// Who reported.
    pub role: Role,
    /// How it ended.
    pub status: ResultStatus,
    /// Why it failed; non-blank is negative whatever the status says.
    pub error: String,
    /// What it proposes next.
    pub transition: Transition,
    /// The files it listed.
    pub artifacts: Vec<String>,
    /// Summary, insights and reasons, for matching terms.
    pub text: String,
    /// The acceptance criteria that QA judges; none where it finds them itself.
    pub criteria: Vec<Criterion>,
    /// The checks that the runtime saw fail at what QA judged.
    pub failed_checks: Vec<String>,
    /// QA's verdict.
    pub qa_validation: Option<QaValidation>,
    /// Whether a review lists something that has to change.
    pub has_findings: bool,
    /// Whether it carries a root cause contract, a todo brief or a planning note.
    pub planning_record: bool,
    /// Whether the request asks for something to be carried out, not only planned.
    pub wants_execution: bool,
    /// Whether nothing but a change delivers it: a todo of a sprint, or what was built and judged already.
    pub is_to_be_built: bool,
    /// Which documents are asked of a planner.
    pub document_rule: DocumentRule,
    /// The listed files that exist, as [`crate::engine::parse::normalize_artifact_hint`] writes them.
    pub documents_present: BTreeSet<String>,
}

impl StepReport {
    /// The report of a result. What the runtime knows beside it (`wants_execution`, `is_to_be_built`,
    /// `criteria`, `failed_checks`, `document_rule`, `documents_present`) is set by the caller.
    #[must_use]
    pub fn from_result(result: &RoleResult) -> StepReport {
        let transition = result.proposals.transition();
        let mut words = vec![result.summary.as_str(), result.error.as_str()];
        words.extend(result.insights.iter().map(String::as_str));
        words.push(transition.reason.as_str());
        words.extend(transition.unresolved_items.iter().map(String::as_str));
        let text = words.join("\n");
        StepReport {
            role: result.role,
            status: result.status,
            error: result.error.clone(),
            artifacts: result.artifacts.clone(),
            text,
            criteria: Vec::new(),
            failed_checks: Vec::new(),
            qa_validation: result.proposals.qa_validation.clone(),
            has_findings: (result.proposals.code_review.iter().flatten())
                .any(|finding| !finding.problem.trim().is_empty()),
            planning_record: [
                &result.proposals.root_cause_contract,
                &result.proposals.todo_brief,
                &result.proposals.planning_note,
            ]
            .into_iter()
            .flatten()
            .any(|text| !text.trim().is_empty()),
            wants_execution: true,
            is_to_be_built: false,
            document_rule: DocumentRule::default(),
            documents_present: BTreeSet::new(),
            transition,
        }
    }

    /// Whether the role itself says that it did not get through.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.status != ResultStatus::Completed || !self.error.trim().is_empty()
    }

    /// The criteria, by their numbers, whose own checks fail.
    pub(super) fn failed_criteria(&self) -> Vec<String> {
        let fails = |criterion: &Criterion| match &criterion.judge {
            Judge::Check(name) => self.failed_checks.contains(name),
            Judge::Qa | Judge::Person => false,
        };
        let all = self.criteria.iter().zip(1..).filter(|(criterion, _)| fails(criterion));
        all.map(|(criterion, number)| format!("C-{number}: {criterion}")).collect()
    }

    /// The role's own words about why it stopped.
    pub(super) fn words(&self) -> String {
        [self.error.as_str(), self.transition.reason.as_str()]
            .into_iter()
            .map(str::trim)
            .find(|words| !words.is_empty())
            .unwrap_or_default()
            .to_owned()
    }
}
