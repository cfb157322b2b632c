//! The open part of a result: what a role proposes, read on demand (`spec/teams.md` 8.1).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::lenient;
use crate::domain::role::Role;
use crate::domain::workflow::Transition;

/// What a role proposes, as it wrote it. Typed readers give the parts that the runtime acts on;
/// the rest stays for people and for the next role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Proposals(pub Map<String, Value>);

/// QA's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QaDecision {
    /// Every criterion is met.
    Pass,
    /// A criterion is not met.
    Fail,
    /// It could not be decided.
    Blocked,
}

/// What QA saw for one criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceResult {
    /// Met.
    Pass,
    /// Not met.
    Fail,
    /// Not looked at.
    NotChecked,
}

/// One criterion and what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRow {
    /// The criterion.
    pub criterion: String,
    /// What was seen; `None` where the word is unknown.
    pub result: Option<EvidenceResult>,
}

/// QA's verdict with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QaValidation {
    /// The verdict; `None` where the word is unknown.
    pub decision: Option<QaDecision>,
    /// One row a criterion.
    pub evidence: Vec<EvidenceRow>,
}

/// What `sprint_lifecycle` may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SprintCommand {
    /// Begin a sprint; details stand in the control action's fields.
    Start,
    /// Wrap up after the running todo.
    Stop,
    /// Begin again.
    Restart,
    /// Say how it stands.
    Status,
}

/// What the orchestrator may ask the runtime to do (`spec/teams.md` 5.9).
#[derive(Debug, Clone, PartialEq)]
pub enum ControlAction {
    /// Sprint control; `fields` holds the kickoff fields of a start.
    SprintLifecycle {
        /// What to do.
        command: SprintCommand,
        /// The action as written.
        fields: Map<String, Value>,
    },
    /// Cancel a request.
    CancelRequest {
        /// The request to cancel.
        request_id: String,
    },
    /// Run an action that the operator registered.
    ExecuteAction {
        /// Its registered name.
        action_name: String,
        /// Its parameters, as text.
        params: BTreeMap<String, String>,
    },
    /// Anything else; refused by name.
    Unknown {
        /// What was asked for.
        kind: String,
    },
}

/// A document that unblocks requests waiting for it (`spec/teams.md` 5.9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationResult {
    /// Whether planning may go on.
    pub ready_for_planning: bool,
    /// Where the document stands.
    pub location: String,
    /// Requests that it unblocks; empty means: find it by author and channel.
    pub related_request_ids: Vec<String>,
}

impl Proposals {
    /// A part by name; `None` where it is absent or null.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// Whether a part is there at all: not null and not a blank text.
    #[must_use]
    pub fn is_given(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.as_str().is_none_or(|text| !text.trim().is_empty()))
    }

    /// Whether a part is there and says something: not null, blank, empty or false.
    #[must_use]
    pub fn has_content(&self, key: &str) -> bool {
        match self.0.get(key) {
            Some(Value::String(text)) => !text.trim().is_empty(),
            value => lenient::truthy(value),
        }
    }

    /// The workflow transition; blank where there is none.
    #[must_use]
    pub fn transition(&self) -> Transition {
        self.get("workflow_transition").map(Transition::normalize).unwrap_or_default()
    }

    /// QA's verdict, if one was given.
    #[must_use]
    pub fn qa_validation(&self) -> Option<QaValidation> {
        let value = self.get("qa_validation").filter(|value| value.is_object())?;
        let word = |value: Option<&Value>| lenient::text(value).trim().to_lowercase();
        let decision = match word(value.get("decision")).as_str() {
            "pass" => Some(QaDecision::Pass),
            "fail" => Some(QaDecision::Fail),
            "blocked" => Some(QaDecision::Blocked),
            _ => None,
        };
        let rows = value.get("evidence_matrix").and_then(Value::as_array);
        let evidence = rows
            .into_iter()
            .flatten()
            .map(|row| EvidenceRow {
                criterion: lenient::text(row.get("criterion")),
                result: match word(row.get("result")).as_str() {
                    "pass" => Some(EvidenceResult::Pass),
                    "fail" => Some(EvidenceResult::Fail),
                    "not_checked" => Some(EvidenceResult::NotChecked),
                    _ => None,
                },
            })
            .collect();
        Some(QaValidation { decision, evidence })
    }

    /// Whether the orchestrator answered the request itself.
    #[must_use]
    pub fn handled_completely(&self) -> bool {
        let mode = self.get("request_handling").and_then(|value| value.get("mode"));
        lenient::text(mode).trim().eq_ignore_ascii_case("complete")
    }

    /// What the orchestrator asks the runtime to do, if anything.
    #[must_use]
    pub fn control_action(&self) -> Option<ControlAction> {
        let fields = self.get("control_action")?.as_object()?;
        let word = |key: &str| lenient::text(fields.get(key)).trim().to_owned();
        let kind = word("kind").to_lowercase();
        Some(match kind.as_str() {
            "sprint_lifecycle" => {
                let command = match word("command").to_lowercase().as_str() {
                    "start" => SprintCommand::Start,
                    "stop" => SprintCommand::Stop,
                    "restart" => SprintCommand::Restart,
                    "status" => SprintCommand::Status,
                    other => {
                        return Some(ControlAction::Unknown { kind: format!("{kind} {other}") });
                    }
                };
                ControlAction::SprintLifecycle { command, fields: fields.clone() }
            }
            "cancel_request" => ControlAction::CancelRequest { request_id: word("request_id") },
            "execute_action" => ControlAction::ExecuteAction {
                action_name: word("action_name"),
                params: action_params(fields.get("params")),
            },
            _ => ControlAction::Unknown { kind },
        })
    }

    /// A document reported as ready, if one was.
    #[must_use]
    pub fn verification_result(&self) -> Option<VerificationResult> {
        let value = self.get("verification_result").filter(|value| value.is_object())?;
        Some(VerificationResult {
            ready_for_planning: lenient::truthy(value.get("ready_for_planning")),
            location: lenient::text(value.get("location")).trim().to_owned(),
            related_request_ids: lenient::list(value.get("related_request_ids")),
        })
    }

    /// The role that should go on, in the writer's opinion.
    #[must_use]
    pub fn suggested_owner(&self) -> Option<Role> {
        let owner = self.get("suggested_next_step")?.get("owner");
        Role::parse(lenient::text(owner).trim().to_lowercase().as_str())
    }

    /// Every string in the proposals, for matching terms.
    #[must_use]
    pub fn text(&self) -> String {
        let mut words = Vec::new();
        self.0.values().for_each(|value| collect(value, &mut words));
        words.join(" ")
    }
}

/// Parameters as an object, or as the list of name and value pairs that a strict schema needs.
fn action_params(value: Option<&Value>) -> BTreeMap<String, String> {
    match value {
        Some(Value::Object(fields)) => {
            fields.iter().map(|(key, value)| (key.clone(), lenient::scalar(Some(value)))).collect()
        }
        Some(Value::Array(pairs)) => pairs
            .iter()
            .map(|pair| (lenient::text(pair.get("name")), lenient::scalar(pair.get("value"))))
            .filter(|(name, _)| !name.is_empty())
            .collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            BTreeMap::new()
        }
    }
}

fn collect<'a>(value: &'a Value, words: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => words.push(text),
        Value::Array(entries) => entries.iter().for_each(|entry| collect(entry, words)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
