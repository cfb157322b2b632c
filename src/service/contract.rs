//! The engine's result contract in the form in which the agents' room takes it.

use serde_json::Value;

use crate::agents::ContractFns;
use crate::domain::criterion::Criterion;
use crate::domain::lifecycle::StepName;
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::engine::contract;

/// The contract of `spec/teams.md` 8.
pub(super) const CONTRACT: ContractFns = ContractFns { extract, check, schema: contract::schema };

fn extract(text: &str) -> Option<Value> {
    contract::extract_json_object(text).ok().map(Value::Object)
}

fn check(
    value: &Value,
    role: Role,
    step: Option<StepName>,
    criteria: &[Criterion],
) -> Result<RoleResult, Vec<String>> {
    let checked = contract::check(value, role, step, criteria);
    checked.map_err(|issues| issues.iter().map(ToString::to_string).collect())
}
