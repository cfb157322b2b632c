//! Everything that a role is told about its step.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::work::{ConflictBrief, Work};
use crate::domain::attachment::Attachment;
use crate::domain::criterion::Criterion;
use crate::domain::evidence::Evidence;
use crate::domain::lifecycle::{Lifecycle, StepKind, StepName, StepOutcome};
use crate::domain::plan_review::PlanFinding;
use crate::domain::role::Role;
use crate::domain::run::{Approach, FailKind};

/// Something that a person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonMessage {
    /// Who, as people see them.
    pub author: String,
    /// What.
    pub text: String,
    /// Whether it takes the place of what was asked before.
    #[serde(default)]
    pub replaces: bool,
}

impl PersonMessage {
    /// Words that are said beside others.
    #[must_use]
    pub fn new(author: &str, text: &str) -> Self {
        Self { author: author.to_owned(), text: text.to_owned(), replaces: false }
    }
}

/// A request that ended in the room in which this one was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRequest {
    /// Its id.
    pub request_id: String,
    /// What was asked.
    pub request: PersonMessage,
    /// What people wrote to it later.
    #[serde(default)]
    pub followups: Vec<PersonMessage>,
    /// How it ended.
    pub status: String,
    /// What it was held against.
    pub criteria: Vec<Criterion>,
    /// What was decided about what it left open.
    #[serde(default)]
    pub decisions: Vec<String>,
    /// The team's last word on it.
    pub summary: String,
    /// The commit on the branch; blank where there is none.
    pub commit: String,
    /// The files of its change.
    pub files: Vec<String>,
    /// What was seen of its checks.
    pub evidence: Option<Evidence>,
}

/// What a role handed back earlier on this request; the latest of each role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Upstream {
    /// The role.
    pub role: Role,
    /// Its step.
    pub step: Option<StepName>,
    /// `completed`, `blocked`, `failed`.
    pub status: String,
    /// Its summary.
    pub summary: String,
    /// Its proposals.
    pub proposals: Value,
    /// Its documents.
    #[serde(default)]
    pub artifacts: Vec<String>,
}

/// A document that the role may want.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDocument {
    /// As results name it: relative to the workspace.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What it is for.
    pub purpose: String,
    /// Whether this role writes it.
    pub writable: bool,
}

/// Everything that a role is told about its step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The role.
    pub role: Role,
    /// The step; none for the orchestrator's intake and for internal work.
    pub step: Option<StepName>,
    /// What that step is for.
    #[serde(default)]
    pub kind: Option<StepKind>,
    /// The name of its template in `steps/`; blank for that of the step's own name.
    #[serde(default)]
    pub template: String,
    /// The steps to which its outcomes lead, by the words for those.
    #[serde(default)]
    pub ways: BTreeMap<StepOutcome, StepName>,
    /// The request.
    pub request_id: String,
    /// Attempt of the step, from 1.
    pub attempt: u32,
    /// What the role is, from `roles/` or its `AGENTS.md`.
    pub charter: String,
    /// The language of the people, `en` or `ko`.
    pub language: String,
    /// What was asked for.
    pub request: PersonMessage,
    /// What it asked for before it was edited, oldest first.
    #[serde(default)]
    pub earlier: Vec<String>,
    /// The role that the people wrote to, where they named one.
    #[serde(default)]
    pub addressed: Option<Role>,
    /// What ended in the room in which it was written.
    #[serde(default)]
    pub continues: Option<EndedRequest>,
    /// Files that came with it, where they are seen.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// What was added since, oldest first.
    #[serde(default)]
    pub followups: Vec<PersonMessage>,
    /// Why this step is done again: the reviewer's findings, the checks, QA's verdict, the failure of
    /// the attempt before.
    #[serde(default)]
    pub again: Vec<String>,
    /// Whether what its agent remembers to have changed was put back.
    #[serde(default)]
    pub put_back: bool,
    /// How the step is gone about this time.
    #[serde(default)]
    pub approach: Approach,
    /// Why the attempt before this one failed, where it did.
    #[serde(default)]
    pub failed: Option<FailKind>,
    /// What the other roles handed back.
    #[serde(default)]
    pub upstream: Vec<Upstream>,
    /// What the runtime saw itself.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// The acceptance criteria that it is held against, in the order in which they are numbered.
    #[serde(default)]
    pub criteria: Vec<Criterion>,
    /// What was decided about what the request leaves open, in the order in which that is numbered.
    #[serde(default)]
    pub decisions: Vec<String>,
    /// What was found in the plan, for whoever mends it and for whoever reads it next.
    #[serde(default)]
    pub plan_findings: Vec<PlanFinding>,
    /// Globs of the paths that the plan of the request names, where it is no item of a sprint.
    #[serde(default)]
    pub allowed_paths: Vec<String>,
    /// Globs of those that it leaves as they are.
    #[serde(default)]
    pub excluded_paths: Vec<String>,
    /// What the person wants that its plan leaves to others, or out.
    pub left_out: Vec<String>,
    /// The names of the configured checks.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Whether the planner may ask people about that now.
    #[serde(default)]
    pub may_ask: bool,
    /// What the branch changed in the same places, where that is to be solved.
    #[serde(default)]
    pub conflict: Option<ConflictBrief>,
    /// The change so far, as a diff.
    #[serde(default)]
    pub diff: String,
    /// Documents.
    #[serde(default)]
    pub documents: Vec<TaskDocument>,
    /// The end of the role's own history.
    #[serde(default)]
    pub history: String,
    /// The sprint and the backlog, where the step has to do with them.
    #[serde(default)]
    pub work: Work,
}

impl Task {
    /// The first attempt of a step of the lifecycle that is built in, with nothing to build on.
    #[must_use]
    pub fn first(
        role: Role,
        step: Option<StepName>,
        request_id: &str,
        request: PersonMessage,
    ) -> Self {
        Self {
            role,
            step,
            kind: step.and_then(|name| Lifecycle::built_in().step(name)).map(|step| step.kind),
            template: String::new(),
            ways: BTreeMap::new(),
            request_id: request_id.to_owned(),
            attempt: 1,
            charter: String::new(),
            language: "en".to_owned(),
            request,
            earlier: Vec::new(),
            addressed: None,
            continues: None,
            attachments: Vec::new(),
            followups: Vec::new(),
            again: Vec::new(),
            put_back: false,
            approach: Approach::Usual,
            failed: None,
            upstream: Vec::new(),
            evidence: None,
            criteria: Vec::new(),
            decisions: Vec::new(),
            plan_findings: Vec::new(),
            allowed_paths: Vec::new(),
            excluded_paths: Vec::new(),
            left_out: Vec::new(),
            checks: Vec::new(),
            may_ask: false,
            conflict: None,
            diff: String::new(),
            documents: Vec::new(),
            history: String::new(),
            work: Work::default(),
        }
    }
}
