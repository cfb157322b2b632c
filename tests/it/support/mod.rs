//! What several subjects share.

pub(crate) mod acp_agent;
pub(crate) mod agent_run;
pub(crate) mod axe;
pub(crate) mod chromium;
pub(crate) mod gateway;
pub(crate) mod guild;
pub(crate) mod house;
pub(crate) mod life;
pub(crate) mod model_server;
pub(crate) mod openapi;
pub(crate) mod sound;
pub(crate) mod team;
pub(crate) mod whole;
pub(crate) mod wire;
pub(crate) mod yard;

use std::path::PathBuf;

use serde_json::{Value, json};
use teams::agents::ContractFns;
use teams::domain::result::{Proposals, ResultStatus, RoleResult};
use teams::domain::role::Role;
use teams::domain::sprint::Duty;
use teams::domain::workflow::Step;

/// A small contract: enough to judge an answer, not the engine's rules.
pub(crate) const CONTRACT: ContractFns = ContractFns { extract, check, schema };

fn extract(text: &str) -> Option<Value> {
    let from = text.find('{')?;
    let value = serde_json::Deserializer::from_str(&text[from..]).into_iter().next()?.ok()?;
    Some(value)
}

fn check(value: &Value, role: Role, step: Option<Step>) -> Result<RoleResult, Vec<String>> {
    let status = match value["status"].as_str() {
        Some("completed") => ResultStatus::Completed,
        Some("blocked") => ResultStatus::Blocked,
        Some("failed") => ResultStatus::Failed,
        _ => return Err(vec!["invalid_status".to_owned()]),
    };
    let proposals = value["proposals"].as_object().cloned().unwrap_or_default();
    if step.is_some() && !proposals.contains_key("workflow_transition") {
        return Err(vec!["missing_workflow_transition".to_owned()]);
    }
    let mut result = RoleResult::new(role, "");
    result.status = status;
    result.summary = value["summary"].as_str().unwrap_or_default().to_owned();
    result.error = value["error"].as_str().unwrap_or_default().to_owned();
    result.artifacts = serde_json::from_value(value["artifacts"].clone()).unwrap_or_default();
    result.proposals = Proposals(proposals);
    Ok(result)
}

fn schema(_role: Role, _step: Option<Step>, _duty: Option<Duty>) -> Value {
    json!({
        "type": "object",
        "properties": {"status": {"type": "string"}, "summary": {"type": "string"}, "proposals": {"type": "object"}},
        "required": ["status", "summary"],
        "additionalProperties": false
    })
}

/// The path in a variable. `None` skips the test, unless `TEAMS_NO_SKIP` forbids skipping.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub(crate) fn installed(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    if found.is_none() {
        let text = format!("{variable} names nothing that is there (.ci/run installs it)");
        assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "{text}");
        eprintln!("skipped: {text}");
    }
    found
}
