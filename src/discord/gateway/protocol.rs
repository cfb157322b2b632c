//! What is said on one gateway connection, and when: hello, identify or resume, heartbeats, and whether the
//! events that come are whole (`spec/discord.md` 5). Pure: frames and times go in, what to do comes out. Times
//! are milliseconds since the connection was made.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::{Value, json};

use super::ending::End;
use crate::domain::ids::{GuildId, UserId};

/// Waiting for hello.
const HELLO_MS: u64 = 10_000;
/// Waiting for READY or RESUMED.
const GREETING_MS: u64 = 60_000;
/// Heartbeats are never closer than this, nor further apart than that, whatever hello says.
const BEATS_MS: std::ops::RangeInclusive<u64> = 50..=600_000;
/// Discord takes 120 frames a minute; these are for what is no heartbeat.
const FRAMES: usize = 110;
const MINUTE_MS: u64 = 60_000;

/// Heartbeats without an event after which a question is asked whose answer is an event: five and a half
/// minutes at Discord's usual pace.
const QUIET: u32 = 8;
/// Heartbeats in which it is answered.
const PATIENCE: u32 = 2;
/// Silent connections in a row that are ended, the first for a resume, the second for a new session. After
/// that a connection is kept, because another one is no better, and the channels are read instead.
const SILENCES: u32 = 2;
/// Heartbeats without an event after which a silent connection is ended all the same.
const SILENT_FOR_LONG: u32 = 100;

/// Resumes within an hour because an event was missing or unreadable. Beyond, it is skipped at once.
const REPAIRS: usize = 3;
const HOUR_MS: u64 = 3_600_000;

/// The reason that is told while a connection is silent.
pub(super) const SILENT: &str =
    "discord answers heartbeats and sends no events, not even those that it was asked for";

/// How a connection begins.
pub(super) enum Begin {
    /// With a new session: the frame.
    Identify(String),
    /// With a session behind its last event: the frame, and that event.
    Resume { frame: String, sequence: u64 },
}

impl Begin {
    /// Begins a session.
    pub(super) fn identify(token: &str, intents: u64) -> Begin {
        let properties = json!({"os": "linux", "browser": "teams", "device": "teams"});
        let data = json!({
            "token": token, "intents": intents, "properties": properties, "compress": false,
            "shard": [0, 1],
        });
        Begin::Identify(json!({"op": 2, "d": data}).to_string())
    }

    /// Goes on with a session.
    pub(super) fn resume(token: &str, session_id: &str, sequence: u64) -> Begin {
        let data = json!({"token": token, "session_id": session_id, "seq": sequence});
        Begin::Resume { frame: json!({"op": 6, "d": data}).to_string(), sequence }
    }
}

/// An event, as it came.
#[derive(Debug, PartialEq)]
pub(super) struct Dispatch {
    pub(super) kind: String,
    pub(super) sequence: u64,
    pub(super) data: Value,
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(super) enum Output {
    /// This frame goes out.
    Send(String),
    /// This frame goes out; it begins a session, which is counted.
    Identify(String),
    /// An event is to be taken.
    Dispatch(Dispatch),
    /// Events up to this one were not to be had, also not by resuming: whoever listens has to look for
    /// what they said.
    Missed { through: u64, what: String },
    /// The connection lives and brings nothing.
    Silent,
    /// Events came again.
    Audible,
    /// The connection is over.
    End(End),
}

/// What is remembered from one connection to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The event for which the session was resumed last, because it was missing or unreadable.
    resumed_for: Option<u64>,
    /// When sessions were resumed for that, in milliseconds of a clock of the caller's.
    repairs: VecDeque<u64>,
    /// Silent connections in a row.
    silences: u32,
}

impl Memory {
    /// Whether the session is to be resumed because this event is missing or unreadable; not again for the
    /// same one, and not for ever.
    fn repairs(&mut self, missing: u64, now: u64) -> bool {
        while self.repairs.front().is_some_and(|at| at + HOUR_MS <= now) {
            self.repairs.pop_front();
        }
        if self.resumed_for == Some(missing) || self.repairs.len() >= REPAIRS {
            return false;
        }
        self.resumed_for = Some(missing);
        self.repairs.push_back(now);
        true
    }
}

/// Heartbeats.
#[derive(Debug)]
struct Beats {
    every: u64,
    next: u64,
    unanswered: u32,
    /// Whether anything was received since the last one was sent.
    heard: bool,
}

/// Whom to ask for, to get an event.
#[derive(Debug, Clone, Copy)]
struct MemberQuery {
    user: UserId,
    guild: GuildId,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Protocol<'a> {
    memory: &'a mut Memory,
    /// When the connection was made, by the clock of [`Memory`].
    began: u64,
    /// Said at hello.
    begin: Option<String>,
    resumes: bool,
    greeted: bool,
    /// The number of the last event.
    last: Option<u64>,
    beats: Option<Beats>,
    /// How far into the first interval the first heartbeat goes out, in thousandths.
    jitter: u64,
    /// Heartbeats since the last event.
    quiet: u32,
    ask_at: u32,
    ask: Option<MemberQuery>,
    /// When frames went out, within a minute.
    sent: VecDeque<u64>,
}

#[derive(Debug, Deserialize)]
struct Frame {
    op: u64,
    #[serde(default)]
    s: Option<u64>,
    #[serde(default)]
    t: Option<String>,
    #[serde(default)]
    d: Value,
}

impl<'a> Protocol<'a> {
    /// A connection that was made at `began` of the clock of [`Memory`]; `jitter` is below 1,000.
    pub(super) fn new(
        begin: Begin,
        memory: &'a mut Memory,
        began: u64,
        jitter: u64,
    ) -> Protocol<'a> {
        let (begin, last) = match begin {
            Begin::Identify(frame) => {
                memory.resumed_for = None;
                (frame, None)
            }
            Begin::Resume { frame, sequence } => (frame, Some(sequence)),
        };
        // A session that was silent is asked at once.
        let ask_at = if memory.silences > 0 { 1 } else { QUIET };
        Protocol {
            memory,
            began,
            begin: Some(begin),
            resumes: last.is_some(),
            greeted: false,
            last,
            beats: None,
            jitter,
            quiet: 0,
            ask_at,
            ask: None,
            sent: VecDeque::new(),
        }
    }

    /// The session is greeted: who the bot is, and a server that it is in.
    pub(super) fn greeted(&mut self, user: UserId, guild: Option<GuildId>) {
        self.greeted = true;
        self.ask = guild.map(|guild| MemberQuery { user, guild });
    }

    /// Whether the connection is taken for silent until an event shows otherwise.
    pub(super) fn is_silent(&self) -> bool {
        self.memory.silences > 0
    }

    /// When [`Protocol::timer`] is to be called.
    pub(super) fn due(&self) -> u64 {
        match &self.beats {
            None => HELLO_MS,
            Some(beats) if self.greeted => beats.next,
            Some(beats) => beats.next.min(GREETING_MS),
        }
    }

    /// Whether a frame that is no heartbeat may go out.
    pub(super) fn may_send(&mut self, now: u64) -> bool {
        while self.sent.front().is_some_and(|at| at + MINUTE_MS <= now) {
            self.sent.pop_front();
        }
        self.sent.len() < FRAMES
    }

    /// A frame goes out.
    pub(super) fn sends(&mut self, now: u64) {
        self.sent.push_back(now);
        if self.sent.len() > FRAMES {
            self.sent.pop_front();
        }
    }

    fn send(&mut self, frame: Value, now: u64) -> Output {
        self.sends(now);
        Output::Send(frame.to_string())
    }

    fn heartbeat(&mut self, now: u64) -> Output {
        let frame = json!({"op": 1, "d": self.last});
        self.send(frame, now)
    }

    /// It is that late.
    pub(super) fn timer(&mut self, now: u64) -> Vec<Output> {
        let again = |reason: &str| vec![Output::End(End::Again(reason.to_owned()))];
        let Some(beats) = &mut self.beats else {
            return match now >= HELLO_MS {
                true => again("discord accepted the connection and said nothing for ten seconds"),
                false => Vec::new(),
            };
        };
        if !self.greeted && now >= GREETING_MS {
            return again("discord did not greet within a minute");
        }
        if now < beats.next {
            return Vec::new();
        }
        // Where much comes in, the answer may stand behind it.
        if beats.unanswered > 1 || (beats.unanswered == 1 && !beats.heard) {
            return again("discord stopped answering heartbeats");
        }
        beats.unanswered += 1;
        beats.heard = false;
        beats.next = now + beats.every;
        let mut outputs = vec![self.heartbeat(now)];
        outputs.extend(self.listen_closer(now));
        outputs
    }

    /// A heartbeat without an event before it.
    fn listen_closer(&mut self, now: u64) -> Option<Output> {
        let ask = self.ask.filter(|_| self.greeted)?;
        self.quiet += 1;
        if self.quiet == self.ask_at && self.may_send(now) {
            // Who we are in that server: small, needs no intent, and is answered by an event.
            let data =
                json!({"guild_id": ask.guild, "user_ids": [ask.user], "limit": 1, "nonce": "here"});
            return Some(self.send(json!({"op": 8, "d": data}), now));
        }
        if self.quiet != self.ask_at + PATIENCE {
            return None;
        }
        self.memory.silences = self.memory.silences.saturating_add(1);
        self.ask_at = self.quiet * 2;
        Some(if self.memory.silences > SILENCES && self.quiet < SILENT_FOR_LONG {
            Output::Silent
        } else if self.memory.silences == 1 {
            Output::End(End::Again(SILENT.to_owned()))
        } else {
            Output::End(End::Anew(SILENT.to_owned()))
        })
    }

    /// A frame came.
    pub(super) fn received(&mut self, text: &str, now: u64) -> Vec<Output> {
        if let Some(beats) = &mut self.beats {
            beats.heard = true;
        }
        let Ok(frame) = serde_json::from_str::<Frame>(text) else {
            return self.unreadable(event_name(text), None, now);
        };
        match (frame.op, frame.d) {
            (0, data) => self.dispatch(frame.t, frame.s, data, now),
            (1, _) if self.may_send(now) => vec![self.heartbeat(now)],
            (7, _) => vec![Output::End(End::Again("discord asked to reconnect".to_owned()))],
            (9, Value::Bool(true)) => {
                vec![Output::End(End::Again("discord interrupted the session".to_owned()))]
            }
            (9, _) => vec![Output::End(End::Anew("discord ended the session".to_owned()))],
            (10, data) => self.hello(&data, now),
            (11, _) => {
                if let Some(beats) = &mut self.beats {
                    beats.unanswered = 0;
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Something came that is no text.
    pub(super) fn received_binary(&mut self, now: u64) -> Vec<Output> {
        self.unreadable(None, None, now)
    }

    fn hello(&mut self, data: &Value, now: u64) -> Vec<Output> {
        let Some(begin) = self.begin.take() else { return Vec::new() };
        let Some(every) = data["heartbeat_interval"].as_u64() else {
            return vec![Output::End(End::Again("discord's hello was not readable".to_owned()))];
        };
        let every = every.clamp(*BEATS_MS.start(), *BEATS_MS.end());
        let next = now + every * self.jitter.min(999) / 1_000;
        self.beats = Some(Beats { every, next, unanswered: 0, heard: false });
        self.sends(now);
        vec![if self.resumes { Output::Send(begin) } else { Output::Identify(begin) }]
    }

    fn dispatch(
        &mut self,
        kind: Option<String>,
        sequence: Option<u64>,
        data: Value,
        now: u64,
    ) -> Vec<Output> {
        let (Some(kind), Some(sequence)) = (kind.clone(), sequence) else {
            return self.unreadable(kind, sequence, now);
        };
        let mut outputs = Vec::new();
        let new_session = kind == "READY";
        if let Some(last) = self.last.filter(|_| !new_session)
            && sequence > last + 1
        {
            // What is not sent again when the session is resumed is not to be had by resuming.
            let replay = self.resumes && !self.greeted;
            if !replay && self.memory.repairs(last + 1, now + self.began) {
                let reason = format!("events {} to {} did not come", last + 1, sequence - 1);
                return vec![Output::End(End::Again(reason))];
            }
            let what = if sequence == last + 2 { "an event" } else { "events" };
            outputs.push(Output::Missed { through: sequence - 1, what: what.to_owned() });
        }
        if !new_session && !is_whole(&kind, &data) {
            self.last = self.last.max(Some(sequence - 1));
            outputs.extend(self.unreadable(Some(kind), Some(sequence), now));
            return outputs;
        }
        self.last = if new_session { Some(sequence) } else { self.last.max(Some(sequence)) };
        self.quiet = 0;
        if !matches!(kind.as_str(), "READY" | "RESUMED" | "GUILD_CREATE") {
            self.ask_at = QUIET;
            if std::mem::take(&mut self.memory.silences) > 0 {
                outputs.push(Output::Audible);
            }
        }
        outputs.push(Output::Dispatch(Dispatch { kind, sequence, data }));
        outputs
    }

    fn unreadable(&mut self, kind: Option<String>, sequence: Option<u64>, now: u64) -> Vec<Output> {
        let Some(last) = self.last else {
            // Before there is a session only its greeting can be lost.
            return vec![Output::End(End::Anew("discord's greeting was not readable".to_owned()))];
        };
        let what = kind.unwrap_or_else(|| "an event without a name".to_owned());
        if self.memory.repairs(last + 1, now + self.began) {
            return vec![Output::End(End::Again(format!("{what} was not readable")))];
        }
        if sequence.is_none() && self.memory.resumed_for != Some(last + 1) {
            // Whether it was an event at all shows in the number of the next one.
            return Vec::new();
        }
        let through = sequence.unwrap_or(last + 1);
        self.last = Some(through.max(last));
        vec![Output::Missed { through, what }]
    }
}

/// The event's name in a frame that does not parse.
fn event_name(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("\"t\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let is_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let name: String = rest.chars().take_while(|letter| is_name(*letter)).take(60).collect();
    (!name.is_empty()).then_some(name)
}

/// Whether an event says what the team cannot do without. Of the others every part may be missing.
fn is_whole(kind: &str, data: &Value) -> bool {
    let id = |at: &str| {
        let text = data.pointer(at).and_then(Value::as_str);
        text.is_some_and(|text| text.parse::<u64>().is_ok_and(|id| id > 0))
    };
    match kind {
        "MESSAGE_CREATE" => id("/id") && id("/channel_id") && id("/author/id"),
        "MESSAGE_UPDATE" | "MESSAGE_DELETE" => id("/id") && id("/channel_id"),
        "MESSAGE_DELETE_BULK" => data["ids"].is_array() && id("/channel_id"),
        "INTERACTION_CREATE" => id("/id") && data["token"].is_string(),
        _ => true,
    }
}

#[cfg(test)]
#[path = "protocol_tests.rs"]
mod tests;
