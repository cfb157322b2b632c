//! Reading a result tolerantly: every field becomes what it should be, and a note says where not.

use serde_json::{Map, Value};

use super::{INSIGHT_PLACEHOLDER, STATUS_LITERAL, SUMMARY_PLACEHOLDER};
use crate::domain::lenient;
use crate::domain::result::{ContractStatus, Proposals, ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::workflow::Outcome;

const NO_APPROVALS: &str = "approvals are not part of the contract; the result counts as blocked";
const COPIED_STATUS: &str = "the status line of the prompt was copied instead of answered";

/// Reads what `role` wrote for `request_id`. Never refuses: an unknown status is a failure, a field
/// of the wrong kind is blank with a note, role and request are those of the run (`spec/teams.md`
/// 8.1).
#[must_use]
pub fn normalize(value: &Value, role: Role, request_id: &str) -> RoleResult {
    let empty = Map::new();
    let fields = value.as_object().unwrap_or(&empty);
    let mut result = RoleResult::new(role, request_id);
    result.error = lenient::text(fields.get("error")).trim().to_owned();
    result.validation_notes = lenient::list(fields.get("validation_notes"));
    read_proposals(fields, &mut result);
    read_status(fields, &mut result);
    result.summary = lenient::text(fields.get("summary")).trim().to_owned();
    if result.summary.to_lowercase() == SUMMARY_PLACEHOLDER {
        result.summary.clear();
        note(&mut result, "the summary was a placeholder and is dropped");
    }
    result.insights = read_list(fields, "insights", &mut result);
    let before = result.insights.len();
    result.insights.retain(|insight| insight.to_lowercase() != INSIGHT_PLACEHOLDER);
    if result.insights.len() != before {
        note(&mut result, "placeholder insights are dropped");
    }
    result.artifacts = read_list(fields, "artifacts", &mut result);
    result.contract_status = match lenient::text(fields.get("contract_status")).as_str() {
        "invalid" => Some(ContractStatus::Invalid),
        "repaired" => Some(ContractStatus::Repaired),
        _ => None,
    };
    result.contract_issues = lenient::list(fields.get("contract_issues"));
    result.contract_repair_attempted = lenient::truthy(fields.get("contract_repair_attempted"));
    result.extra = fields
        .iter()
        .filter(|(key, _)| !KNOWN.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    result
}

/// Fields that are read above, and `approval_needed`, which is answered and dropped.
const KNOWN: [&str; 14] = [
    "approval_needed",
    "request_id",
    "role",
    "status",
    "summary",
    "insights",
    "proposals",
    "artifacts",
    "next_role",
    "error",
    "validation_notes",
    "contract_status",
    "contract_issues",
    "contract_repair_attempted",
];

fn read_status(fields: &Map<String, Value>, result: &mut RoleResult) {
    let word = lenient::text(fields.get("status")).trim().to_lowercase();
    result.status = match word.as_str() {
        "" | "completed" => ResultStatus::Completed,
        "blocked" => ResultStatus::Blocked,
        "failed" => ResultStatus::Failed,
        "awaiting_approval" => {
            note(result, NO_APPROVALS);
            blame(result, NO_APPROVALS);
            ResultStatus::Blocked
        }
        STATUS_LITERAL => {
            note(result, COPIED_STATUS);
            match result.proposals.transition().outcome {
                Some(Outcome::Reopen | Outcome::Block) => ResultStatus::Blocked,
                Some(Outcome::Continue | Outcome::Advance | Outcome::Complete) | None => {
                    if result.error.is_empty() {
                        blame(result, COPIED_STATUS);
                    }
                    ResultStatus::Failed
                }
            }
        }
        _ => ResultStatus::Failed,
    };
    if lenient::truthy(fields.get("approval_needed")) {
        note(result, NO_APPROVALS);
        blame(result, NO_APPROVALS);
        result.status = ResultStatus::Blocked;
    }
}

fn read_proposals(fields: &Map<String, Value>, result: &mut RoleResult) {
    result.proposals = match fields.get("proposals") {
        Some(Value::Object(proposals)) => Proposals(proposals.clone()),
        None | Some(Value::Null) => Proposals::default(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            note(result, "proposals are not an object and are dropped");
            Proposals::default()
        }
    };
    // Routing is central: a role may give reasons, not the next role.
    if let Some(Value::Object(routing)) = result.proposals.0.get_mut("routing") {
        routing.shift_remove("recommended_next_role");
    }
}

fn read_list(fields: &Map<String, Value>, key: &str, result: &mut RoleResult) -> Vec<String> {
    let value = fields.get(key);
    if matches!(value, Some(Value::Bool(_) | Value::Number(_) | Value::Object(_))) {
        note(result, &format!("{key} is not a list of texts and is dropped"));
    }
    lenient::list(value)
}

fn note(result: &mut RoleResult, text: &str) {
    if !result.validation_notes.iter().any(|known| known == text) {
        result.validation_notes.push(text.to_owned());
    }
}

fn blame(result: &mut RoleResult, text: &str) {
    if result.error.is_empty() {
        result.error = text.to_owned();
    } else if !result.error.contains(text) {
        result.error = format!("{} | {text}", result.error);
    }
}
