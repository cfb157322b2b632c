//! What a role proposes (`spec/teams.md` 8.1): each part is one type, which is read from what the role wrote, makes the
//! schema that the role is asked to follow, and is what the runtime acts on. The sentences at the fields are for the
//! roles: they stand in the schema.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::shape;
use crate::domain::intent::Intent;
use crate::domain::plan::RequirementTime;
use crate::domain::plan_decision::PlanDecision;
use crate::domain::role::Role;
use crate::domain::routes::WorkSize;
use crate::domain::word::words;
use crate::domain::workflow::Transition;

/// The parts that a result may have, their one list.
macro_rules! parts {
    ($($(#[$about:meta])* $name:ident: $part:ty,)+) => {
        /// What should follow.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
        pub struct Proposals {
            $($(#[$about])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$part>,)+
        }

        impl Proposals {
            /// Reads what a role wrote. A part that does not fit is left out, and a fault says why.
            #[must_use]
            pub fn read(value: Option<&Value>) -> (Self, Vec<String>) {
                let mut faults = Vec::new();
                let fields = match value {
                    Some(Value::Object(fields)) => fields,
                    None | Some(Value::Null) => return (Self::default(), faults),
                    Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                        return (Self::default(), vec!["/proposals is no object".to_owned()]);
                    }
                };
                let schemas = SCHEMA.get("properties").unwrap_or(&Value::Null);
                let mut read = Self {
                    $($name: {
                        let schema = schemas.get(stringify!($name)).unwrap_or(&Value::Null);
                        shape::part(fields, stringify!($name), schema, "/proposals", &mut faults)
                    },)+
                };
                // Also one that older roles wrote, whose words went by other rules.
                let transition = fields.get("workflow_transition").filter(|it| it.is_object());
                read.workflow_transition = transition.map(Transition::normalize);
                (read, faults)
            }
        }
    };
}

parts! {
    /// What should happen after this step.
    workflow_transition: Transition,
    /// How the request was handled.
    request_handling: Handling,
    /// Where the team has to work on it: what it is.
    request_intent: RequestIntent,
    /// Where the message holds pieces of work that have nothing to do with each other: each whole, in the person's words; five at most.
    /// Null where it is one.
    request_parts: Vec<String>,
    /// Only when the person asked for it.
    control_action: ControlAction,
    /// Whether facts from outside are needed, and which.
    research_signal: ResearchSignal,
    /// What was found; null where nothing had to be looked for.
    research_report: ResearchReport,
    /// When the plan itself answers the request: the answer.
    planning_note: String,
    /// When the cause of a problem was the question: the cause.
    root_cause_contract: String,
    /// What exactly is to be done.
    todo_brief: String,
    /// What can be seen to pass or fail when it is done, one thing each.
    acceptance_criteria: Vec<String>,
    /// What the person wants to hold, one thing each, and whether this plan brings it about; null where it all is one thing.
    requirements: Vec<ProposedRequirement>,
    /// Globs of all that the change touches, its tests with it, such as src/cache/**; null where you cannot tell.
    allowed_paths: Vec<String>,
    /// Globs of what it leaves as it is, where somebody might think otherwise.
    excluded_paths: Vec<String>,
    /// What the request leaves open and only the person can decide, where you are told that you may ask: four at most.
    questions: Vec<ProposedQuestion>,
    /// In a sprint's planning: how the milestone is framed.
    sprint_plan_update: SprintPlanUpdate,
    /// For the closing report of a sprint.
    sprint_report: SprintReport,
    /// Items to add, and items to change by their id.
    backlog_items: Vec<ProposedItem>,
    /// What a person has to provide before it can go on.
    required_inputs: Vec<String>,
    /// What the design has to be like.
    design_feedback: DesignFeedback,
    /// What is wrong with the plan itself, and keeps it from being built as it is; empty where nothing is.
    plan_findings: Vec<ProposedFinding>,
    /// How to build it.
    implementation_guidance: String,
    /// In a review: everything that has to change; empty when it passes.
    code_review: Vec<ReviewFinding>,
    /// What was changed and how it was tried.
    implementation_report: String,
    /// The verdict. It passes only if the decision and every row pass.
    qa_validation: QaValidation,
    /// Who should go on, and why.
    suggested_next_step: NextStep,
}

static SCHEMA: LazyLock<Value> = LazyLock::new(shape::schema_of::<Proposals>);

impl Proposals {
    /// The schema of all parts, each of which may be null.
    #[must_use]
    pub fn schema() -> &'static Value {
        &SCHEMA
    }

    /// The workflow transition; blank where there is none.
    #[must_use]
    pub fn transition(&self) -> Transition {
        self.workflow_transition.clone().unwrap_or_default()
    }

    /// Whether the orchestrator answered the request itself.
    #[must_use]
    pub fn handled_completely(&self) -> bool {
        self.request_handling.as_ref().is_some_and(|it| it.mode == HandlingMode::Complete)
    }

    /// The parts that say something, by their names.
    #[must_use]
    pub fn given(&self) -> Vec<(String, Value)> {
        let said = |value: &Value| match value {
            Value::Null => false,
            Value::String(text) => !text.trim().is_empty(),
            Value::Array(entries) => !entries.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => true,
        };
        match serde_json::to_value(self) {
            Ok(Value::Object(parts)) => parts.into_iter().filter(|(_, it)| said(it)).collect(),
            Ok(_) | Err(_) => Vec::new(),
        }
    }
}

/// Records of older builds hold what roles wrote, whether it fits or not.
impl<'de> Deserialize<'de> for Proposals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::read(Some(&Value::deserialize(deserializer)?)).0)
    }
}

words! {
    /// QA's verdict.
    #[derive(JsonSchema)]
    pub enum QaDecision {
        /// Every criterion is met.
        Pass = "pass",
        /// A criterion is not met.
        Fail = "fail",
        /// It could not be decided.
        Blocked = "blocked",
    }
    /// What QA saw for one criterion.
    #[derive(JsonSchema)]
    pub enum EvidenceResult {
        /// Met.
        Pass = "pass",
        /// Not met.
        Fail = "fail",
        /// Not looked at.
        NotChecked = "not_checked",
        /// Looked at, and only a person can tell.
        Abstain = "abstain",
    }
    /// The only method there is.
    #[derive(Default, JsonSchema)]
    pub enum Methodology {
        /// Each criterion has a row.
        #[default]
        EvidenceMatrix = "evidence_matrix",
    }
    /// How the request was handled.
    #[derive(JsonSchema)]
    pub enum HandlingMode {
        /// It was answered.
        Complete = "complete",
        /// The team has to work on it.
        Route = "route",
    }
    /// What the runtime should do.
    #[derive(JsonSchema)]
    pub enum ControlKind {
        /// Begin, end or tell about a sprint.
        SprintLifecycle = "sprint_lifecycle",
        /// Withdraw a request.
        CancelRequest = "cancel_request",
        /// Run an action that the operator registered.
        ExecuteAction = "execute_action",
    }
    /// What `sprint_lifecycle` may ask for.
    #[derive(JsonSchema)]
    pub enum SprintCommand {
        /// Begin a sprint.
        Start = "start",
        /// Wrap up after the running todo.
        Stop = "stop",
        /// Begin again.
        Restart = "restart",
        /// Say how it stands.
        Status = "status",
    }
    /// Why facts from outside are needed, or not.
    #[derive(JsonSchema)]
    pub enum ReasonCode {
        /// They are, and were found.
        NeededExternalGrounding = "needed_external_grounding",
        /// What lies here is enough.
        NotNeededLocalEvidence = "not_needed_local_evidence",
        /// There is nothing to look for.
        NotNeededNoSubject = "not_needed_no_subject",
        /// It could not be said.
        BlockedDecisionFailed = "blocked_decision_failed",
    }
    /// What advice on design is about.
    #[derive(JsonSchema)]
    pub enum DesignEntry {
        /// The plan.
        PlanningRoute = "planning_route",
        /// How a message reads.
        MessageReadability = "message_readability",
        /// What comes first.
        InfoPrioritization = "info_prioritization",
        /// What was sent back.
        UxReopen = "ux_reopen",
    }
}

impl EvidenceResult {
    /// Whether the criterion does not hold, as far as QA saw. What only a person can tell is left to one.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        match self {
            Self::Fail | Self::NotChecked => true,
            Self::Pass | Self::Abstain => false,
        }
    }
}

/// How the request was handled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Handling {
    /// complete: the summary answers it. route: the team has to work on it.
    pub mode: HandlingMode,
}

/// What a request is, as the orchestrator reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestIntent {
    /// What it asks for.
    pub intent: Intent,
    /// How sure that is, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub confidence: u8,
    /// How much work it is.
    pub size: WorkSize,
}

/// What the runtime should do (`spec/teams.md` 5.9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlAction {
    /// The kind of action.
    pub kind: ControlKind,
    /// For sprint_lifecycle.
    pub command: Option<SprintCommand>,
    /// For cancel_request.
    pub request_id: Option<String>,
    /// For execute_action: its registered name.
    pub action_name: Option<String>,
    /// For execute_action.
    pub params: Vec<Pair>,
    /// For a sprint start.
    pub milestone_title: Option<String>,
    /// For a sprint start.
    pub kickoff_brief: Option<String>,
    /// For a sprint start.
    pub kickoff_requirements: Vec<String>,
}

/// A name and a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// Whether facts from outside are needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it, and a role needs no sentence")]
pub struct ResearchSignal {
    pub needed: bool,
    /// The exact question.
    pub subject: String,
    /// What was, or would be, searched for.
    pub research_query: String,
    pub reason_code: Option<ReasonCode>,
}

/// A source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it, and a role needs no sentence")]
pub struct ResearchSource {
    pub title: String,
    /// An http or https address that was read.
    pub url: String,
    /// The date it speaks of; null where it names none.
    pub published_at: Option<String>,
    /// What it means for this milestone.
    pub relevance: String,
    pub summary: String,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it, and a role needs no sentence")]
pub struct ResearchReport {
    /// The document that holds the long version; null where there is none.
    pub report_artifact: Option<String>,
    pub headline: String,
    /// What the planner should make of it.
    pub planner_guidance: String,
    /// At least one.
    pub backing_sources: Vec<ResearchSource>,
    pub milestone_refinement_hints: Vec<String>,
    pub problem_framing_hints: Vec<String>,
    pub spec_implications: Vec<String>,
    pub todo_definition_hints: Vec<String>,
    /// How the guidance follows from the sources.
    pub backing_reasoning: Vec<String>,
    pub open_questions: Vec<String>,
}

/// How a sprint's milestone is framed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SprintPlanUpdate {
    /// The milestone as it should read; the same as before where it needs no change.
    pub revised_milestone_title: String,
    /// Why it reads so.
    pub refinement_rationale: String,
    /// Which problem it solves, for whom.
    pub problem_framing: String,
    /// Addresses of the research that this rests on.
    pub research_refs: Vec<String>,
}

/// A question to the person who asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedQuestion {
    /// In one sentence.
    pub question: String,
    /// Two to five answers that exclude each other, each in a few words.
    pub options: Vec<String>,
    /// The one of them that the plan is made by.
    pub assumption: String,
}

impl ProposedQuestion {
    /// Nobody has decided it.
    #[must_use]
    pub fn undecided(self) -> PlanDecision {
        let Self { question, options, assumption } = self;
        PlanDecision { question, options, assumption, answer: None }
    }
}

/// Something that the person wants to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedRequirement {
    /// In the person's terms.
    pub text: String,
    /// now: by this plan. later: by another request. out_of_scope: not at all.
    pub when: RequirementTime,
}

/// Something that is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedFinding {
    /// The part that it is about, by its id where it has one: C-2, D-1; in a sprint an item's id before it.
    pub part: String,
    /// What is wrong with it.
    pub problem: String,
    /// What the plan should say instead.
    pub wanted: String,
}

/// Where an item came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of what a finding says are its own")]
pub struct ProposedOrigin {
    /// The milestone that it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milestone_ref: Option<String>,
    /// The requirements that it serves, by their numbers, such as R-1, or in their words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requirement_refs: Vec<String>,
    /// Places in the sprint's documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spec_refs: Vec<String>,
    /// Addresses of research.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub research_refs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_file: Option<String>,
}

/// Candidate work: a new item, or what changes of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(missing_docs, reason = "the names say it, and a role needs no sentence")]
pub struct ProposedItem {
    /// Of an existing item, to change it; null for a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_id: Option<String>,
    pub title: String,
    pub summary: String,
    /// bug, feature, enhancement or chore.
    pub kind: String,
    /// What is to be done.
    pub scope: String,
    /// Each can be seen to pass or fail.
    pub acceptance_criteria: Vec<String>,
    /// 1 is first; null leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_rank: Option<i64>,
    /// How much work, where 1 is the least that an item takes; null leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<i64>,
    /// Globs of all that it changes, such as src/cache/**; null leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_paths: Option<Vec<String>>,
    /// Ids, or titles in this answer, of what has to be done before; null leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<String>>,
    /// pending, blocked or dropped; null leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Why it is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_reason: Option<String>,
    /// The milestone that it serves; null leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milestone_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<ProposedOrigin>,
    /// The sprint that should do it; null leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_in_sprint_id: Option<String>,
}

impl ProposedItem {
    /// Reads the items of a record; those of older builds are as roles wrote them, and what does not fit is left out.
    pub(crate) fn read_all<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Self>, D::Error> {
        let items = serde_json::json!({ "backlog_items": Value::deserialize(deserializer)? });
        Ok(Proposals::read(Some(&items)).0.backlog_items.unwrap_or_default())
    }
}

/// What a role did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it, and a role needs no sentence")]
pub struct Contribution {
    pub role: Role,
    pub summary: String,
}

/// The closing words of a sprint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it, and a role needs no sentence")]
pub struct SprintReport {
    /// One line.
    pub headline: String,
    /// What people have now.
    pub changes: Vec<String>,
    /// How it went, from the beginning to the end.
    pub timeline: String,
    pub agent_contributions: Vec<Contribution>,
    /// What went wrong or stayed open.
    pub issues: Vec<String>,
    pub achievements: Vec<String>,
    /// Documents and files worth opening.
    pub highlight_artifacts: Vec<String>,
}

/// Advice on what people see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it, and a role needs no sentence")]
pub struct DesignFeedback {
    /// What the advice is about.
    pub entry_point: DesignEntry,
    pub user_judgment: Vec<String>,
    pub routing_rationale: String,
    pub acceptance_criteria: Vec<String>,
}

/// A finding of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it, and a role needs no sentence")]
pub struct ReviewFinding {
    pub file: String,
    pub problem: String,
    pub wanted: String,
}

/// One criterion and what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it, and a role needs no sentence")]
pub struct EvidenceRow {
    /// Its number, such as C-1; its words where it has no number.
    pub criterion: String,
    /// Where the criterion stands.
    pub source: String,
    /// What was seen.
    pub evidence: String,
    pub result: EvidenceResult,
}

/// QA's verdict with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it, and a role needs no sentence")]
pub struct QaValidation {
    pub methodology: Methodology,
    pub decision: QaDecision,
    /// One row for each acceptance criterion, no more and no fewer.
    pub evidence_matrix: Vec<EvidenceRow>,
    pub passed_checks: Vec<String>,
    pub findings: Vec<String>,
    pub residual_risks: Vec<String>,
    pub not_checked: Vec<String>,
}

/// Who should go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextStep {
    /// The role.
    pub owner: Option<Role>,
    /// Why.
    pub reason: String,
}
