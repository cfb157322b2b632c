//! The codecs there are.

use serde_json::Value;

use crate::agents::acp::AcpCodec;
use crate::agents::claude::ClaudeCodec;
use crate::agents::codec::{Codec, Event};
use crate::agents::codex::CodexCodec;
use crate::agents::rehearsal::RehearsalCodec;
use crate::agents::words::Words;
use crate::domain::run::FailKind;

/// The codecs there are.
#[derive(Debug)]
pub enum CodecKind {
    /// Codex CLI.
    Codex(CodexCodec),
    /// Claude Code.
    Claude(ClaudeCodec),
    /// The Agent Client Protocol.
    Acp(Box<AcpCodec>),
    /// Our own agent without a model.
    Rehearsal(RehearsalCodec),
}

/// Calls the method of whichever codec it is.
macro_rules! each {
    ($self:expr, $codec:ident => $call:expr) => {
        match $self {
            CodecKind::Codex($codec) => $call,
            CodecKind::Claude($codec) => $call,
            CodecKind::Acp($codec) => $call,
            CodecKind::Rehearsal($codec) => $call,
        }
    };
}

impl Codec for CodecKind {
    fn line(&mut self, line: &Value) -> Vec<Event> {
        each!(self, codec => codec.line(line))
    }

    fn without_terminal(&self, stderr_tail: &str) -> FailKind {
        each!(self, codec => codec.without_terminal(stderr_tail))
    }

    fn replies(&mut self) -> Vec<Value> {
        each!(self, codec => codec.replies())
    }

    fn hear(&mut self, words: &Words, text: &str) -> bool {
        each!(self, codec => codec.hear(words, text))
    }

    fn hint(&mut self, text: &str) -> bool {
        each!(self, codec => codec.hint(text))
    }

    fn stop(&mut self) -> bool {
        each!(self, codec => codec.stop())
    }
}
