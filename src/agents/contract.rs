//! The result contract, as the driver needs it. The rules themselves are the engine's; the service
//! hands them in, because this room may not reach there.

use serde_json::Value;

use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::sprint::Duty;
use crate::domain::workflow::Step;

/// Reads an object as a result of the role and step; else the codes of what is wrong with it.
pub type Check = fn(&Value, Role, Option<Step>) -> Result<RoleResult, Vec<String>>;

/// The three functions of the contract (`spec/teams.md` 8.1 and 8.2).
#[derive(Debug, Clone, Copy)]
pub struct ContractFns {
    /// Finds the JSON object in an agent's last message.
    pub extract: fn(&str) -> Option<Value>,
    /// Judges the object.
    pub check: Check,
    /// The JSON schema that the object has to follow.
    pub schema: fn(Role, Option<Step>, Option<Duty>) -> Value,
}

impl ContractFns {
    /// Judges an agent's last message.
    pub(crate) fn judge(
        &self,
        text: Option<&str>,
        role: Role,
        step: Option<Step>,
    ) -> Result<RoleResult, Vec<String>> {
        match text.and_then(self.extract) {
            Some(value) => (self.check)(&value, role, step),
            None => Err(vec!["missing_json_object".to_owned()]),
        }
    }
}
