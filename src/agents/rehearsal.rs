//! How the rehearsal agent (`crate::rehearsal`) is told its work and what its stream says.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::codec::{Codec, Event, text};
use crate::agents::prompt::{PersonMessage, Task};
use crate::agents::sandbox::Sandbox;
use crate::agents::words::Words;
use crate::domain::ids::MessageId;
use crate::domain::run::FailKind;

/// What people see as its name.
pub const LABEL: &str = "rehearsal";

/// Settings of the rehearsal agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RehearsalSettings {
    /// A YAML file that tells it to fail, absolute. Written for tests and for trying things out.
    pub script: Option<PathBuf>,
    /// Whether it is confined.
    pub sandbox: Sandbox,
}

/// What it gets on stdin.
#[derive(Debug, Serialize, Deserialize)]
pub struct Brief {
    /// What is to be done.
    pub task: Task,
    /// The conversation that this turn belongs to.
    pub session: String,
    /// Whether it may write no file.
    pub read_only: bool,
    /// What was wrong with its last answer, in a repair turn.
    pub issues: Vec<String>,
    /// The script of failures, absolute.
    pub script: Option<PathBuf>,
}

/// What people say while it works: the lines of stdin after the brief.
#[derive(Debug, Serialize, Deserialize)]
pub struct SteeringLine {
    /// The message.
    pub id: MessageId,
    /// Its words.
    pub said: PersonMessage,
}

/// What it says, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// First of all.
    Session {
        /// The conversation.
        id: String,
    },
    /// On the way.
    Text {
        /// What it says.
        text: String,
    },
    /// It took what somebody said meanwhile.
    Heard {
        /// The message.
        id: MessageId,
    },
    /// A file that it wrote.
    Wrote {
        /// Below the worktree.
        path: String,
    },
    /// Terminal: its answer.
    Result {
        /// JSON of the contract.
        text: String,
    },
    /// Terminal: it cannot do this.
    NeedsRealAgent {
        /// Why, for people.
        message: String,
    },
}

/// Reads the stream of the rehearsal agent.
#[derive(Debug, Default)]
pub struct RehearsalCodec {
    replies: Vec<Value>,
}

impl Codec for RehearsalCodec {
    fn line(&mut self, line: &Value) -> Vec<Event> {
        match text(line, "type").as_str() {
            "session" => vec![Event::Session(text(line, "id"))],
            "text" => vec![Event::Thought(text(line, "text"))],
            "heard" => {
                let id = text(line, "id").parse().ok();
                id.map(Event::Heard).into_iter().collect()
            }
            "wrote" => vec![Event::Files(vec![text(line, "path")])],
            "result" => vec![Event::Text(text(line, "text")), Event::Done],
            "needs_real_agent" => vec![Event::Failed {
                kind: FailKind::NeedsRealAgent,
                message: text(line, "message"),
            }],
            _ => Vec::new(),
        }
    }

    fn without_terminal(&self, _stderr_tail: &str) -> FailKind {
        FailKind::NoTerminal
    }

    fn replies(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.replies)
    }

    fn hear(&mut self, words: &Words, _text: &str) -> bool {
        let heard = SteeringLine { id: words.id, said: words.said.clone() };
        self.replies.extend(serde_json::to_value(heard));
        true
    }
}
