//! One turn of an agent: its stream read through the codec, and what it amounts to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::answer;
use crate::agents::codec::{Codec as _, Event};
use crate::agents::codec_kind::CodecKind;
use crate::agents::tools::{hands_in, is_ours};
use crate::agents::until::{instant, until};
use crate::agents::words::Words;
use crate::domain::ids::MessageId;
use crate::domain::run::{BadAnswer, FailKind};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::platform::clock;
use crate::platform::redact::redact;
use crate::platform::supervise::{EndedBy, Exit};

/// A line that is longer than any line that the spool keeps is no line.
const LONGEST_LINE: usize = 8 << 20;
/// Characters of a failure's message that are kept.
const MESSAGE: usize = 600;
/// A line from so many bytes on that is no JSON was cut off; so much of its beginning is kept.
const CUT_OFF: usize = 64 << 10;
const BEGINNING: usize = 16 << 10;

/// Why a turn has no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) kind: FailKind,
    pub(super) message: String,
    /// When it can go on, where that was told.
    pub(super) until: Option<Timestamp>,
    /// What it answered instead of a result.
    #[serde(default)]
    pub(super) answer: Option<BadAnswer>,
}

impl Failure {
    pub(super) fn new(kind: FailKind, message: String) -> Failure {
        Failure { kind, message, until: None, answer: None }
    }
}

/// A turn that is complete.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// The last thing that the agent said.
    pub(super) text: Option<String>,
    /// How a line of it began that was too long to be kept whole.
    pub(super) too_long: Option<String>,
}

/// How a turn's stream ended.
#[derive(Debug, Clone, PartialEq)]
enum Terminal {
    Done,
    Failed(Failure),
}

/// Reads a turn's stdout.
#[derive(Debug)]
pub(super) struct Turn {
    codec: CodecKind,
    line: Vec<u8>,
    terminal: Option<Terminal>,
    answer: Option<String>,
    /// How the last line began that was too long to be kept whole.
    too_long: Option<String>,
    last_retry: Option<String>,
    /// The whole words of its failure, and the end of a limit that it told in a field: seconds since 1970.
    failed_with: String,
    limit_ends: Option<i64>,
    /// Each with its name.
    open_tools: BTreeMap<String, String>,
    /// How often it has begun to hand its result in.
    hand_ins: u32,
    pub(super) session: Option<String>,
    pub(super) usage_total: Option<Usage>,
    /// What this turn spent, where the agent says so rather than totals.
    pub(super) usage: Usage,
    /// See [`Event::Used`].
    pub(super) untold: Usage,
    /// The agent's own name and version.
    pub(super) agent: Option<String>,
    /// Messages that it took while it worked.
    pub(super) heard: Vec<MessageId>,
    /// See [`Event::Context`].
    pub(super) context: (Option<u64>, Option<u64>),
    /// Bytes that it wrote.
    pub(super) bytes: u64,
}

/// The request of JSON-RPC that a line was which is too long to be read: as far as it goes before what it asks for.
fn asked_in(beginning: &str) -> Option<Value> {
    let head = beginning.split_once("\"params\"")?.0.trim_end().strip_suffix(',')?;
    let asked: Value = serde_json::from_str(&format!("{head}}}")).ok()?;
    (asked.get("id").is_some() && asked.get("method").is_some()).then_some(asked)
}

impl Turn {
    pub(super) fn new(codec: CodecKind) -> Turn {
        Turn {
            codec,
            line: Vec::new(),
            terminal: None,
            answer: None,
            too_long: None,
            last_retry: None,
            failed_with: String::new(),
            limit_ends: None,
            open_tools: BTreeMap::new(),
            hand_ins: 0,
            session: None,
            usage_total: None,
            usage: Usage::default(),
            untold: Usage::default(),
            agent: None,
            heard: Vec::new(),
            context: (None, None),
            bytes: 0,
        }
    }

    /// Whether the agent has said that it is done or failed.
    pub(super) fn is_over(&self) -> bool {
        self.terminal.is_some()
    }

    /// Whether the agent has said that it is done.
    pub(super) fn is_done(&self) -> bool {
        self.terminal == Some(Terminal::Done)
    }

    /// Whether a tool is at work that may change something, or another result than the first one is being handed in.
    pub(super) fn is_at_work(&self) -> bool {
        let is_again = self.hand_ins > 1;
        self.open_tools.values().any(|name| !is_ours(name) || is_again && hands_in(name))
    }

    /// Whether the conversation can be cut here: it can be resumed, and no tool is at work.
    pub(super) fn is_between_tools(&self) -> bool {
        self.session.is_some() && !self.has_open_tools()
    }

    /// Whether a tool is at work, of whatever kind.
    pub(super) fn has_open_tools(&self) -> bool {
        !self.open_tools.is_empty()
    }

    /// What the agent has to be told now.
    pub(super) fn replies(&mut self) -> Vec<Value> {
        self.codec.replies()
    }

    /// See [`Codec::hear`].
    pub(super) fn hear(&mut self, words: &Words, text: &str) -> bool {
        self.codec.hear(words, text)
    }

    /// See [`Codec::hint`].
    pub(super) fn hint(&mut self, text: &str) -> bool {
        self.codec.hint(text)
    }

    /// See [`Codec::stop`].
    pub(super) fn stop(&mut self) -> bool {
        self.codec.stop()
    }

    /// Takes the next bytes of stdout; the events that they complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        self.bytes += bytes.len() as u64;
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + part.len() <= LONGEST_LINE {
                self.line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                events.extend(self.one(&line));
            }
        }
        events
    }

    /// The last line may lack its newline.
    pub(super) fn finish(&mut self) -> Vec<Event> {
        let line = std::mem::take(&mut self.line);
        self.one(&line)
    }

    fn one(&mut self, line: &[u8]) -> Vec<Event> {
        // What is no JSON object is noise that agents and their tools print; it is never an event.
        let Ok(value @ Value::Object(_)) = serde_json::from_slice(line) else {
            if line.len() >= CUT_OFF && line.starts_with(b"{") {
                let beginning = &line[..BEGINNING.min(line.len())];
                let beginning = String::from_utf8_lossy(beginning).into_owned();
                let asked = asked_in(&beginning);
                self.too_long = Some(beginning);
                // It waits for an answer.
                return asked.map(|asked| self.value(&asked)).unwrap_or_default();
            }
            return Vec::new();
        };
        self.value(&value)
    }

    fn value(&mut self, value: &Value) -> Vec<Event> {
        let events = self.codec.line(value);
        events.iter().for_each(|event| self.note(event));
        events
    }

    fn note(&mut self, event: &Event) {
        if event.is_work() {
            // What it had tried again before is overcome.
            self.last_retry = None;
        }
        match event {
            Event::Session(id) => self.session = Some(id.clone()),
            Event::Text(text) => {
                if !text.trim().is_empty() {
                    self.too_long = None;
                }
                self.answer = Some(text.clone());
            }
            Event::Retry(reason) => self.last_retry = Some(reason.clone()),
            Event::UsageTotal(usage) => {
                self.usage_total = Some(*usage);
                if usage.tokens() > 0 {
                    self.untold = Usage::default();
                }
            }
            Event::Used(usage) => self.untold = *usage,
            Event::LimitEnds(at) => self.limit_ends = *at,
            Event::Done => self.terminal = Some(Terminal::Done),
            Event::Failed { kind, message } => {
                self.terminal = Some(Terminal::Failed(Failure::new(*kind, short(message))));
                self.failed_with.clone_from(message);
            }
            Event::ToolStart { id, name } => {
                self.hand_ins += u32::from(hands_in(name));
                self.open_tools.insert(id.clone(), name.clone());
            }
            Event::ToolEnd { id, .. } => {
                self.open_tools.remove(id);
            }
            Event::Usage(usage) => {
                self.usage = self.usage.plus(*usage);
                self.untold = Usage::default();
            }
            Event::Agent(name) => self.agent = Some(name.clone()),
            Event::Heard(id) => self.heard.push(*id),
            Event::Context { used, size } => {
                self.context.0 = used.or(self.context.0);
                self.context.1 = size.or(self.context.1);
            }
            Event::Thought(_) | Event::Call { .. } | Event::Files(_) | Event::Warning(_) => {}
        }
    }

    /// The agent's answer, or why there is none. Success is a parsed terminal event and nothing else
    /// (`spec/agents.md` 5.1): an exit code says nothing. A complete turn whose process then had to
    /// be ended is complete; one that we cancelled is not.
    pub(super) fn conclude(self, exit: &Exit, stderr_tail: &str) -> Result<Answer, Failure> {
        let said = Timestamp::new(exit.ended_at);
        let words = match (self.failed_with.as_str(), &self.last_retry) {
            ("", Some(retry)) => format!("{retry}\n{stderr_tail}"),
            ("", None) => stderr_tail.to_owned(),
            (words, _) => words.to_owned(),
        };
        let ends = self.limit_ends;
        self.ended(exit, stderr_tail).map_err(|failure| {
            let waits = matches!(
                failure.kind,
                FailKind::Quota | FailKind::RateLimit | FailKind::Overloaded
            );
            let told = || until(&words, said, &clock::zone());
            let until =
                if waits { ends.and_then(|at| instant(at, said)).or_else(told) } else { None };
            Failure { until, ..failure }
        })
    }

    fn ended(self, exit: &Exit, stderr_tail: &str) -> Result<Answer, Failure> {
        let fail = |kind, message: String| Err(Failure::new(kind, message));
        let last_words = || match (&self.last_retry, stderr_tail.trim()) {
            (Some(retry), _) => short(retry),
            (None, "") => "it wrote nothing to stderr".to_owned(),
            (None, tail) => short(tail),
        };
        match (exit.ended_by, self.terminal) {
            (EndedBy::Cancelled, _) => fail(FailKind::Cancelled, "it was cancelled".to_owned()),
            (_, Some(Terminal::Done)) => Ok(Answer { text: self.answer, too_long: self.too_long }),
            (EndedBy::Exit | EndedBy::ParentGone, Some(Terminal::Failed(failure))) => {
                let declined = failure.kind == FailKind::Refusal;
                // The model's own words, where the agent tells them apart from its own.
                let words = self.answer.filter(|words| !words.trim().is_empty());
                let words = words.unwrap_or(self.failed_with);
                let answer = declined.then(|| answer::refused(&words));
                Err(Failure { answer, ..failure })
            }
            (EndedBy::Wall, _) => fail(
                FailKind::WallTimeout,
                format!("it took longer than allowed; last: {}", last_words()),
            ),
            (EndedBy::Idle, _) => fail(
                FailKind::Stuck,
                format!(
                    "it said and did nothing for too long, and nothing came to it; last: {}",
                    last_words()
                ),
            ),
            (EndedBy::OutputCap, _) => Err(Failure {
                answer: self.too_long.as_deref().map(answer::too_large),
                ..Failure::new(FailKind::OutputCap, "it wrote more than allowed".to_owned())
            }),
            (EndedBy::ParentGone, _) => {
                fail(FailKind::Cancelled, "it was ended together with the team".to_owned())
            }
            (EndedBy::NotStarted, _) => fail(
                FailKind::Crash,
                short(exit.error.as_deref().unwrap_or("it could not be started")),
            ),
            (EndedBy::Exit, None) => match (exit.signal, &self.too_long) {
                (Some(signal), _) => {
                    fail(FailKind::Crash, format!("it died by signal {signal}: {}", last_words()))
                }
                // What it lacks is the line that was too long.
                (None, Some(line)) => {
                    let answer = answer::too_large(line);
                    let message = answer::describe(answer.fault, &[]);
                    let failure = Failure::new(FailKind::Contract, message);
                    Err(Failure { answer: Some(answer), ..failure })
                }
                (None, None) => fail(
                    self.codec.without_terminal(stderr_tail),
                    format!(
                        "it ended with code {} and without an answer: {}",
                        exit.code.unwrap_or(-1),
                        last_words()
                    ),
                ),
            },
        }
    }
}

/// One line of a message, its end kept, without secrets; of an answer of a model's service only its words.
fn short(text: &str) -> String {
    let body: Option<Value> = text.find('{').and_then(|at| serde_json::from_str(&text[at..]).ok());
    let words = body.as_ref().and_then(|body| {
        let places = ["/error/message", "/message", "/detail"];
        places.iter().find_map(|place| body.pointer(place)?.as_str())
    });
    let before = text.find('{').map_or("", |at| text[..at].trim_end());
    let clean = match words {
        Some(words) if before.is_empty() => {
            redact(&format!("the model's service says: {words}")).into_owned()
        }
        Some(words) => redact(&format!("{before} {words}")).into_owned(),
        None => redact(text).into_owned(),
    };
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    let count = line.chars().count();
    if count <= MESSAGE {
        return line;
    }
    let tail: String = line.chars().skip(count - MESSAGE).collect();
    format!("…{tail}")
}
