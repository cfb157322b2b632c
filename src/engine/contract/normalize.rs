//! Reading a result: what a role wrote becomes what it should be, and a note says where not.

use serde_json::{Map, Value};

use super::{INSIGHT_PLACEHOLDER, STATUS_LITERAL, SUMMARY_PLACEHOLDER};
use crate::domain::lenient;
use crate::domain::result::{ContractStatus, Proposals, ResultStatus, RoleResult, shape};
use crate::domain::role::Role;
use crate::domain::workflow::Outcome;

const NO_APPROVALS: &str = "approvals are not part of the contract; the result counts as blocked";
const COPIED_STATUS: &str = "the status line of the prompt was copied instead of answered";

/// Reads what `role` wrote for `request_id`. Never refuses: an unknown status is a failure, what does not fit is blank
/// with a note, role and request are those of the run (`spec/teams.md` 8.1).
#[must_use]
pub fn normalize(value: &Value, role: Role, request_id: &str) -> RoleResult {
    read(value, role, request_id).0
}

/// The same, and what does not fit the schema, each with its place.
pub(super) fn read(value: &Value, role: Role, request_id: &str) -> (RoleResult, Vec<String>) {
    let empty = Map::new();
    let fields = value.as_object().unwrap_or(&empty);
    let mut result = RoleResult::new(role, request_id);
    let mut faults = Vec::new();
    result.error = text(fields, "error", &mut faults);
    result.summary = text(fields, "summary", &mut faults);
    result.insights = part(fields, "insights", &mut faults).unwrap_or_default();
    result.artifacts = part(fields, "artifacts", &mut faults).unwrap_or_default();
    let (proposals, more) = Proposals::read(fields.get("proposals"));
    result.proposals = proposals;
    faults.extend(more);
    result.validation_notes = lenient::list(fields.get("validation_notes"));
    faults.iter().for_each(|fault| note(&mut result, fault));
    read_status(fields, &mut result, &mut faults);
    if result.summary.to_lowercase() == SUMMARY_PLACEHOLDER {
        result.summary.clear();
        note(&mut result, "the summary was a placeholder and is dropped");
    }
    let before = result.insights.len();
    result.insights.retain(|insight| insight.to_lowercase() != INSIGHT_PLACEHOLDER);
    if result.insights.len() != before {
        note(&mut result, "placeholder insights are dropped");
    }
    result.contract_status = match lenient::text(fields.get("contract_status")).as_str() {
        "invalid" => Some(ContractStatus::Invalid),
        "repaired" => Some(ContractStatus::Repaired),
        _ => None,
    };
    result.contract_issues = lenient::list(fields.get("contract_issues"));
    result.contract_repair_attempted = lenient::truthy(fields.get("contract_repair_attempted"));
    (result, faults)
}

fn part<T: serde::de::DeserializeOwned>(
    fields: &Map<String, Value>,
    name: &str,
    faults: &mut Vec<String>,
) -> Option<T> {
    let schema = RoleResult::schema().get("properties").and_then(|parts| parts.get(name));
    shape::part(fields, name, schema.unwrap_or(&Value::Null), "", faults)
}

fn text(fields: &Map<String, Value>, name: &str, faults: &mut Vec<String>) -> String {
    part::<String>(fields, name, faults).unwrap_or_default().trim().to_owned()
}

fn read_status(fields: &Map<String, Value>, result: &mut RoleResult, faults: &mut Vec<String>) {
    let word = lenient::text(fields.get("status")).trim().to_lowercase();
    result.status = match word.as_str() {
        "" => {
            faults.push("/status is missing".to_owned());
            ResultStatus::Completed
        }
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
        _ => part(fields, "status", faults).unwrap_or(ResultStatus::Failed),
    };
    if lenient::truthy(fields.get("approval_needed")) {
        note(result, NO_APPROVALS);
        blame(result, NO_APPROVALS);
        result.status = ResultStatus::Blocked;
    }
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
