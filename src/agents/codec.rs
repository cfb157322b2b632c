//! What agents say, in one vocabulary. Codecs are pure: a line in, events out (`spec/agents.md` 5.1).

use serde_json::Value;

use crate::agents::codex::CodexCodec;
use crate::agents::rehearsal::RehearsalCodec;
use crate::domain::run::{FailKind, Usage};

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
    /// Something that did not stop it.
    Warning(String),
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

/// Translates one agent's stream.
pub trait Codec {
    /// The events in a parsed line. Unknown types and fields are no events.
    fn line(&mut self, line: &Value) -> Vec<Event>;
    /// Why a process that ended without a terminal event did so, as far as its stderr tells.
    fn without_terminal(&self, stderr_tail: &str) -> FailKind;
}

/// The codecs there are.
#[derive(Debug)]
pub enum CodecKind {
    /// Codex CLI.
    Codex(CodexCodec),
    /// Our own agent without a model.
    Rehearsal(RehearsalCodec),
}

impl Codec for CodecKind {
    fn line(&mut self, line: &Value) -> Vec<Event> {
        match self {
            CodecKind::Codex(codec) => codec.line(line),
            CodecKind::Rehearsal(codec) => codec.line(line),
        }
    }

    fn without_terminal(&self, stderr_tail: &str) -> FailKind {
        match self {
            CodecKind::Codex(codec) => codec.without_terminal(stderr_tail),
            CodecKind::Rehearsal(codec) => codec.without_terminal(stderr_tail),
        }
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
