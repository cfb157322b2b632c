//! What an agent tried at the team's doors and may not.

use serde::{Deserialize, Serialize};

/// The kinds of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// To command what people command.
    Command,
    /// To use a tool of another role.
    Tool,
    /// To use the tools of another run.
    OtherRun,
    /// To get in by the control socket, which is the operator's.
    Control,
    /// To reach a place of the network that its role may not.
    Network,
    /// To reach a model server, or to pass the team's door, with nothing that opens it.
    Door,
}

impl Refusal {
    /// The word in values of the catalog.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Tool => "tool",
            Self::OtherRun => "other_run",
            Self::Control => "control",
            Self::Network => "network",
            Self::Door => "door",
        }
    }
}
