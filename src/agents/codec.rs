//! What agents say, in one vocabulary. Codecs are pure: a line in, events out (`spec/agents.md` 5.1).

use serde_json::Value;

use crate::agents::words::Words;
use crate::domain::ids::MessageId;
use crate::domain::run::FailKind;
use crate::domain::usage::Usage;

/// Something that happened in an agent's turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The conversation has this id; a later turn may resume it.
    Session(String),
    /// The agent said something; the last one is its answer.
    Text(String),
    /// The agent thought aloud.
    Thought(String),
    /// A tool was begun.
    ToolStart {
        /// Pairs it with its end.
        id: String,
        /// Its name or command.
        name: String,
    },
    /// What a tool was begun with is known. Apart from its start, because some agents tell it later.
    Call {
        /// The tool with what it is used on, for people.
        name: String,
        /// Of its name and whole input: two calls with the same one are the same call.
        digest: u64,
    },
    /// A tool is done.
    ToolEnd {
        /// Pairs it with its start.
        id: String,
        /// Whether it worked.
        ok: bool,
    },
    /// The agent says that it changed these files. A hint for people: git knows better.
    Files(Vec<String>),
    /// The agent tries its model again.
    Retry(String),
    /// The usage limit that it has reached ends then, in seconds since 1970; none where it has not.
    LimitEnds(Option<i64>),
    /// Something that did not stop it.
    Warning(String),
    /// How full the conversation is, as the agent says: tokens that the last request to the model took, and
    /// what its window holds.
    Context {
        /// Taken up.
        used: Option<u64>,
        /// What the window holds.
        size: Option<u64>,
    },
    /// Tokens of this turn alone.
    Usage(Usage),
    /// Tokens that the turn under way has used so far, where no `Usage` or `UsageTotal` tells them yet.
    Used(Usage),
    /// The agent's name and version.
    Agent(String),
    /// It took the words of this message into its conversation.
    Heard(MessageId),
    /// Tokens of the whole conversation so far.
    UsageTotal(Usage),
    /// Terminal: the turn is complete.
    Done,
    /// Terminal: the turn failed.
    Failed {
        /// Why.
        kind: FailKind,
        /// In the agent's words.
        message: String,
    },
}

impl Event {
    /// Whether an agent does this because its model has answered.
    pub(super) const fn is_work(&self) -> bool {
        match self {
            Self::Text(_)
            | Self::Thought(_)
            | Self::ToolStart { .. }
            | Self::Call { .. }
            | Self::ToolEnd { .. }
            | Self::Files(_) => true,
            Self::Session(_)
            | Self::Retry(_)
            | Self::LimitEnds(_)
            | Self::Warning(_)
            | Self::Context { .. }
            | Self::Usage(_)
            | Self::Used(_)
            | Self::Agent(_)
            | Self::Heard(_)
            | Self::UsageTotal(_)
            | Self::Done
            | Self::Failed { .. } => false,
        }
    }
}

/// Translates one agent's stream.
pub trait Codec {
    /// The events in a parsed line. Unknown types and fields are no events.
    fn line(&mut self, line: &Value) -> Vec<Event>;
    /// Why a process that ended without a terminal event did so, as far as its stderr tells.
    fn without_terminal(&self, stderr_tail: &str) -> FailKind;
    /// What the agent has to be told now, a JSON value a line. Only for agents with a live input.
    fn replies(&mut self) -> Vec<Value> {
        Vec::new()
    }
    /// Takes words for an agent at work; they are told with [`Codec::replies`]. False where the agent
    /// hears nothing before its turn is over: it has to be interrupted and resumed.
    fn hear(&mut self, _words: &Words, _text: &str) -> bool {
        false
    }
    /// Takes a word of the team's own for an agent at work, as [`Codec::hear`] does those of people.
    fn hint(&mut self, _text: &str) -> bool {
        false
    }
    /// Asks the agent to stop, with [`Codec::replies`]; false where it only knows signals.
    fn stop(&mut self) -> bool {
        false
    }
}

/// A string field, blank where it is absent.
pub(crate) fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A whole-number field, 0 where it is absent.
pub(crate) fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}
