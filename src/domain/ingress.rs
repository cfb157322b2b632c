//! The ways in which somebody can want something of the team.

use serde::{Deserialize, Serialize};

/// One way in. Each leads through `engine::authorize`, and nothing else leads anywhere.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Ingress {
    /// A message in a channel.
    #[default]
    Message,
    /// A message that answers one of ours.
    Reply,
    /// A message in the room of a request.
    Thread,
    /// A direct message.
    DirectMessage,
    /// A message of somebody else's webhook.
    Webhook,
    /// An edited message.
    Edit,
    /// A deleted message.
    Delete,
    /// A reaction.
    Reaction,
    /// A slash command.
    Slash,
    /// What is typed into a slash command's option.
    Autocomplete,
    /// A button.
    Button,
    /// A choice from a list.
    Select,
    /// A filled-in form.
    Modal,
    /// The control socket: the command line.
    Operator,
    /// The socket of a run: an agent's tool.
    AgentTool,
}

impl Ingress {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Message,
        Self::Reply,
        Self::Thread,
        Self::DirectMessage,
        Self::Webhook,
        Self::Edit,
        Self::Delete,
        Self::Reaction,
        Self::Slash,
        Self::Autocomplete,
        Self::Button,
        Self::Select,
        Self::Modal,
        Self::Operator,
        Self::AgentTool,
    ];
}
