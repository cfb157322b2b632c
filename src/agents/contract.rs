//! The result contract, as the driver needs it. The rules themselves are the engine's; the service
//! hands them in, because this room may not reach there.

use serde_json::Value;

use crate::domain::criterion::Criterion;
use crate::domain::lifecycle::StepName;
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::sprint::Duty;

/// The code for an object that names another request than the one that it would be a result of.
const OF_ANOTHER: &str = "request_id_of_another_request";

/// Reads an object as a result of the role and step, held against the acceptance criteria that it judges; else
/// the codes of what is wrong with it.
pub type Check =
    fn(&Value, Role, Option<StepName>, &[Criterion]) -> Result<RoleResult, Vec<String>>;

/// Gives the JSON schema that the result of a role at a step, or of a duty, has to follow.
pub(super) type SchemaOf = fn(Role, Option<StepName>, Option<Duty>) -> Value;

/// The three functions of the contract (`spec/teams.md` 8.1 and 8.2).
#[derive(Debug, Clone, Copy)]
pub struct ContractFns {
    /// Finds the JSON object in an agent's last message.
    pub extract: fn(&str) -> Option<Value>,
    /// Judges the object.
    pub check: Check,
    /// The JSON schema that the object has to follow.
    pub schema: SchemaOf,
}

/// What came of a turn.
#[derive(Debug, Default)]
pub(crate) struct TurnAnswer<'a> {
    /// The agent's last message.
    pub(crate) text: Option<&'a str>,
    /// Whether the agent holds its model to the schema, so that the message itself is the result.
    pub(crate) by_schema: bool,
    /// What it handed in by the tool for it.
    pub(crate) submitted: Option<Value>,
    /// The request that it was about.
    pub(crate) request: &'a str,
    /// The acceptance criteria that it judges, where it judges any.
    pub(crate) criteria: &'a [Criterion],
}

impl ContractFns {
    /// Judges what came of a turn. The message of an agent that knows the schema comes first, then what was
    /// handed in, then whatever a message holds (`spec/agents.md` 5.4). Nothing is guessed.
    pub(crate) fn judge(
        &self,
        answered: &TurnAnswer<'_>,
        role: Role,
        step: Option<StepName>,
    ) -> Result<RoleResult, Vec<String>> {
        let check = |value: &Value| match value.get("request_id").and_then(Value::as_str) {
            // A result of something else is none of this, however well it reads.
            Some(named) if !["", answered.request].contains(&named.trim()) => {
                Err(vec![OF_ANOTHER.to_owned()])
            }
            Some(_) | None => (self.check)(value, role, step, answered.criteria),
        };
        let whole = answered.text.filter(|_| answered.by_schema).and_then(object);
        for value in whole.iter().chain(&answered.submitted) {
            if let Ok(result) = check(value) {
                return Ok(result);
            }
        }
        match answered.text.and_then(self.extract) {
            Some(value) => check(&value),
            None => Err(vec!["missing_json_object".to_owned()]),
        }
    }
}

/// A text that is one JSON object and nothing else.
fn object(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A contract that takes whatever says `ok`.
    fn contract() -> ContractFns {
        ContractFns {
            extract: |text| object(text.get(text.find('{')?..=text.rfind('}')?)?),
            check: |value, role, _, _| match value["summary"].as_str() {
                Some(summary) if summary.starts_with("ok") => {
                    let mut result = RoleResult::new(role, "r");
                    result.summary = summary.to_owned();
                    Ok(result)
                }
                _ => Err(vec!["wrong".to_owned()]),
            },
            schema: |_, _, _| Value::Null,
        }
    }

    #[test]
    fn the_answer_by_schema_comes_first_then_what_was_handed_in_then_what_a_message_holds() {
        let own = r#"{"summary": "ok own"}"#;
        let bad = r#"{"summary": "bad"}"#;
        let mine = r#"{"summary": "ok mine", "request_id": "r-1"}"#;
        let other = r#"{"summary": "ok other", "request_id": "r-2"}"#;
        let held = r#"It is {"summary": "ok held"}."#;
        let tool = Some(json!({"summary": "ok tool"}));
        let old = Some(json!({"summary": "of another contract"}));
        let table = [
            (true, Some(own), tool.clone(), Ok("ok own")),
            (true, Some(bad), tool.clone(), Ok("ok tool")),
            (true, Some(held), tool.clone(), Ok("ok tool")),
            (true, None, tool.clone(), Ok("ok tool")),
            (true, Some(mine), None, Ok("ok mine")),
            (true, Some(other), tool.clone(), Ok("ok tool")),
            (true, Some(other), None, Err(OF_ANOTHER)),
            (false, Some(other), None, Err(OF_ANOTHER)),
            (false, Some(own), tool.clone(), Ok("ok tool")),
            (false, Some(held), None, Ok("ok held")),
            (false, Some(held), old.clone(), Ok("ok held")),
            (true, Some(own), None, Ok("ok own")),
            (true, Some(bad), old.clone(), Err("wrong")),
            (false, Some("It is done."), old, Err("missing_json_object")),
            (false, None, None, Err("missing_json_object")),
        ];
        for (by_schema, text, submitted, wanted) in table {
            let answered = TurnAnswer { text, by_schema, submitted, request: "r-1", criteria: &[] };
            let judged = contract().judge(&answered, Role::Developer, None);
            let judged = judged.map(|result| result.summary).map_err(|issues| issues.join(" "));
            let wanted = wanted.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(judged, wanted, "{answered:?}");
        }
    }
}
