//! The parts of an answer that sprints and the backlog are made of (`spec/teams.md` 8.1 and 9.4), as the
//! schema asks for them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::role::Role;
use crate::domain::sprint::Duty;

/// Whether facts from outside are needed.
#[derive(JsonSchema, Serialize)]
pub(super) struct Signal {
    needed: bool,
    /// The exact question.
    subject: String,
    /// What was, or would be, searched for.
    research_query: String,
    reason_code: ReasonCode,
}

/// Why facts from outside are needed, or not.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum ReasonCode {
    NeededExternalGrounding,
    NotNeededLocalEvidence,
    NotNeededNoSubject,
    BlockedDecisionFailed,
}

/// A source.
#[derive(JsonSchema, Serialize)]
struct Source {
    title: String,
    /// An http or https address that was read.
    url: String,
    /// The date it speaks of; null where it names none.
    published_at: Option<String>,
    /// What it means for this milestone.
    relevance: String,
    summary: String,
}

/// What was found.
#[derive(JsonSchema, Serialize)]
pub(super) struct Research {
    /// The document that holds the long version; null where there is none.
    report_artifact: Option<String>,
    headline: String,
    /// What the planner should make of it.
    planner_guidance: String,
    /// At least one.
    backing_sources: Vec<Source>,
    milestone_refinement_hints: Vec<String>,
    problem_framing_hints: Vec<String>,
    spec_implications: Vec<String>,
    todo_definition_hints: Vec<String>,
    /// How the guidance follows from the sources.
    backing_reasoning: Vec<String>,
    open_questions: Vec<String>,
}

/// How a sprint's milestone is framed.
#[derive(JsonSchema, Serialize)]
pub(super) struct PlanUpdate {
    /// The milestone as it should read; the same as before where it needs no change.
    revised_milestone_title: String,
    /// Why it reads so.
    refinement_rationale: String,
    /// Which problem it solves, for whom.
    problem_framing: String,
    /// Addresses of the research that this rests on.
    research_refs: Vec<String>,
}

/// Where an item came from.
#[derive(JsonSchema, Serialize)]
struct Origin {
    /// The milestone that it serves.
    milestone_ref: Option<String>,
    /// The requirements that it serves, by their numbers, such as R-1, or in their words.
    requirement_refs: Vec<String>,
    /// Places in the sprint's documents.
    spec_refs: Vec<String>,
    /// Addresses of research.
    research_refs: Vec<String>,
}

/// Candidate work.
#[derive(JsonSchema, Serialize)]
pub(super) struct Item {
    /// Of an existing item, to change it; null for a new one.
    backlog_id: Option<String>,
    title: String,
    summary: String,
    /// bug, feature, enhancement or chore.
    kind: String,
    /// What is to be done.
    scope: String,
    /// Each can be seen to pass or fail.
    acceptance_criteria: Vec<String>,
    /// 1 is first; null leaves it as it is.
    priority_rank: Option<i64>,
    /// Ids, or titles in this answer, of what has to be done before.
    depends_on: Vec<String>,
    /// pending, blocked or dropped; null leaves it as it is.
    status: Option<String>,
    /// The milestone that it serves; null leaves it as it is.
    milestone_title: Option<String>,
    origin: Option<Origin>,
    /// The sprint that should do it; null leaves it as it is.
    planned_in_sprint_id: Option<String>,
}

/// Where a candidate was found: copied from its finding.
#[derive(JsonSchema, Serialize)]
struct FoundAt {
    signal: Option<String>,
    trace: Option<String>,
    request_id: Option<String>,
    role: Option<String>,
    log_file: Option<String>,
}

/// Work that a finding suggests.
#[derive(JsonSchema, Serialize)]
pub(super) struct Candidate {
    title: String,
    summary: String,
    /// bug, feature, enhancement or chore.
    kind: String,
    /// What is to be done.
    scope: String,
    acceptance_criteria: Vec<String>,
    /// The milestone of the active sprint where it serves that; else null.
    milestone_title: Option<String>,
    origin: FoundAt,
}

/// What a role did.
#[derive(JsonSchema, Serialize)]
struct Contribution {
    role: Role,
    summary: String,
}

/// The closing words of a sprint.
#[derive(JsonSchema, Serialize)]
pub(super) struct Report {
    /// One line.
    headline: String,
    /// What people have now.
    changes: Vec<String>,
    /// How it went, from the beginning to the end.
    timeline: String,
    agent_contributions: Vec<Contribution>,
    /// What went wrong or stayed open.
    issues: Vec<String>,
    achievements: Vec<String>,
    /// Documents and files worth opening.
    highlight_artifacts: Vec<String>,
}

/// The parts that an answer to this duty does not have: what nobody will read is not asked for.
pub(super) const fn not_for(role: Role, duty: Option<Duty>) -> &'static [&'static str] {
    const WORK: &[&str] = &[
        "planning_note",
        "root_cause_contract",
        "todo_brief",
        "suggested_next_step",
        "sprint_report",
    ];
    const REPORT: &[&str] = &[
        "planning_note",
        "root_cause_contract",
        "todo_brief",
        "suggested_next_step",
        "backlog_items",
        "sprint_plan_update",
        "required_inputs",
    ];
    const ITEMS: &[&str] = &[
        "planning_note",
        "root_cause_contract",
        "todo_brief",
        "suggested_next_step",
        "sprint_report",
        "sprint_plan_update",
    ];
    match (role, duty) {
        (Role::Planner, Some(Duty::Planning)) => WORK,
        (Role::Planner, Some(Duty::ClosingReport)) => REPORT,
        (Role::Planner, Some(Duty::OngoingReview | Duty::SourcerReview | Duty::BlockedReview)) => {
            ITEMS
        }
        (Role::Planner, Some(Duty::ResearchPrepass | Duty::Sourcing) | None) => {
            &["sprint_plan_update", "sprint_report"]
        }
        (
            Role::Orchestrator
            | Role::Research
            | Role::Designer
            | Role::Architect
            | Role::Developer
            | Role::Qa
            | Role::Parser
            | Role::Sourcer
            | Role::VersionController,
            _,
        ) => &[],
    }
}
