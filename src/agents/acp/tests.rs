//! Recorded streams of real agents, replayed through the codec (`tests/data/acp`).

use chrono::DateTime;
use serde_json::Value;

use super::*;
use crate::agents::codec_kind::CodecKind;
use crate::agents::prompt::PersonMessage;
use crate::agents::sandbox::WriteAccess;
use crate::agents::turn::{Failure, Turn};
use crate::domain::usage::Usage;
use crate::platform::files;
use crate::platform::supervise::{EndedBy, Exit};

/// What the team does when the agent has begun its first tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    Cancel,
    Speak,
}

/// A recording, how its run was begun, and how it ends: with these words in its answer, or as that failure.
pub(super) struct Recording {
    pub(super) name: &'static str,
    mode: Option<&'static str>,
    access: WriteAccess,
    resumes: bool,
    then: Then,
    ends: Result<&'static str, FailKind>,
}

fn recording(name: &'static str, ends: Result<&'static str, FailKind>) -> Recording {
    let mode = name.starts_with("codex-").then_some("agent-full-access");
    Recording {
        name,
        mode,
        access: WriteAccess::Worktree,
        resumes: false,
        then: Then::Nothing,
        ends,
    }
}

/// All there are; a test sees to that.
pub(super) fn recordings() -> Vec<Recording> {
    use FailKind as F;
    let done = |name| recording(name, Ok("did it"));
    let fails = |name, kind| recording(name, Err(kind));
    vec![
        done("claude-tool"),
        fails("claude-error-500", F::Overloaded),
        fails("claude-rate-limit", F::RateLimit),
        fails("claude-unauthorized", F::Auth),
        fails("claude-bad-request", F::BadRequest),
        done("codex-edit"),
        Recording { resumes: true, ..done("codex-edit-again") },
        Recording { mode: Some("workspace-write"), ..done("codex-permission") },
        Recording {
            mode: Some("read-only"),
            access: WriteAccess::ReadOnly,
            ..done("codex-refused")
        },
        Recording {
            mode: Some("workspace-write"),
            ..recording("codex-submit", Ok("It is handed in."))
        },
        Recording { then: Then::Cancel, ..fails("codex-cancelled", F::Cancelled) },
        Recording { then: Then::Speak, ..done("codex-steered") },
        recording("codex-repair", Ok("no transition")),
        Recording { resumes: true, ..done("codex-repair-again") },
        // It says nothing of what its model said then, and an empty answer is no result.
        recording("codex-refusal", Ok("")),
        fails("codex-quota", F::Quota),
        fails("codex-context", F::Context),
        fails("codex-error-500", F::Overloaded),
        fails("codex-rate-limit", F::RateLimit),
        fails("codex-unauthorized", F::Auth),
        fails("codex-bad-request", F::BadRequest),
        fails("codex-max-tokens", F::MaxTurns),
        fails("codex-cut", F::Transport),
        fails("codex-stalled", F::NoTerminal),
        done("gemini-tool"),
        fails("gemini-error-500", F::Overloaded),
        fails("gemini-unauthorized", F::Auth),
        fails("gemini-bad-request", F::BadRequest),
    ]
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/acp");

pub(super) fn lines(name: &str) -> Vec<String> {
    let text = files::read_text(format!("{FOLDER}/{name}.jsonl").as_ref()).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// The conversation that a recording is about.
fn session(name: &str) -> String {
    let mut ids = lines(name).into_iter().filter_map(|line| {
        let line: Value = serde_json::from_str(&line).unwrap();
        Some(line.pointer("/params/sessionId")?.as_str()?.to_owned())
    });
    ids.next_back().unwrap_or_default()
}

pub(super) fn opening(it: &Recording) -> TurnStart {
    TurnStart {
        worktree: "/run/tree".into(),
        access: it.access.clone(),
        prompt: "say good day".to_owned(),
        resume: it.resumes.then(|| session(it.name)),
        anew: true,
        mode: it.mode.map(str::to_owned),
        web: false,
        confined: true,
        servers: json!([{"name": "teams", "command": "/teams", "args": ["mcp"],
            "env": [{"name": "TEAMS_RUN_SOCKET", "value": "/run/run.sock"}]}]),
    }
}

/// A turn that is being read again, and what the agent was told in it.
pub(super) struct Replay {
    turn: Turn,
    then: Then,
    events: Vec<Event>,
    pub(super) told: Vec<Value>,
}

impl Replay {
    pub(super) fn of(it: &Recording) -> Replay {
        let codec = CodecKind::Acp(Box::new(AcpCodec::new(opening(it))));
        Replay { turn: Turn::new(codec), then: it.then, events: Vec::new(), told: vec![hello()] }
    }

    /// The events of these bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        let events = self.turn.feed(bytes);
        self.follow(&events);
        events
    }

    fn follow(&mut self, events: &[Event]) {
        self.events.extend_from_slice(events);
        if events.iter().any(|event| matches!(event, Event::ToolStart { .. })) {
            match std::mem::replace(&mut self.then, Then::Nothing) {
                Then::Nothing => {}
                Then::Cancel => assert!(self.turn.stop()),
                Then::Speak => {
                    let said = PersonMessage::new("Mina", "make it blue");
                    assert!(self.turn.hear(&Words { id: MessageId(7), said }, "make it blue"));
                }
            }
        }
        self.told.extend(self.turn.replies());
    }

    /// The answer that the turn has, as its process ended by itself.
    fn ended(mut self) -> Result<String, Failure> {
        let events = self.turn.finish();
        self.follow(&events);
        self.turn.conclude(&exit(), "").map(|answer| answer.text.unwrap_or_default())
    }
}

fn exit() -> Exit {
    Exit {
        ended_by: EndedBy::Exit,
        code: Some(0),
        signal: None,
        started_at: DateTime::UNIX_EPOCH,
        ended_at: DateTime::UNIX_EPOCH,
        dropped_stdout: 0,
        dropped_stderr: 0,
        swept: 0,
        error: None,
    }
}

pub(super) fn whole(it: &Recording) -> Replay {
    let mut replay = Replay::of(it);
    // In pieces that break lines and characters.
    for piece in lines(it.name).concat().as_bytes().chunks(7) {
        replay.feed(piece);
    }
    replay
}

fn named(name: &str) -> Replay {
    whole(recordings().iter().find(|it| it.name == name).unwrap())
}

fn is_as_recorded(it: &Recording, ended: &Result<String, Failure>) {
    match (ended, it.ends) {
        (Ok(text), Ok(words)) => assert!(text.contains(words), "{}: {text}", it.name),
        (Err(failure), Err(kind)) => assert_eq!(failure.kind, kind, "{}: {failure:?}", it.name),
        (ended, _) => panic!("{}: {ended:?}", it.name),
    }
}

#[test]
fn every_recording_ends_as_it_did() {
    let mut names: Vec<String> = files::list(FOLDER.as_ref())
        .unwrap()
        .iter()
        .filter_map(|path| path.to_string_lossy().strip_suffix(".jsonl").map(str::to_owned))
        .map(|path| path.rsplit('/').next().unwrap_or_default().to_owned())
        .collect();
    names.sort();
    let mut known: Vec<&str> = recordings().iter().map(|it| it.name).collect();
    known.sort_unstable();
    assert_eq!(names, known);
    for it in recordings() {
        is_as_recorded(&it, &whole(&it).ended());
    }
}

#[test]
fn a_recording_that_ends_early_is_no_success() {
    for it in recordings() {
        let lines = lines(it.name);
        let whole = lines.concat();
        let mut over = None;
        for end in 0..=lines.len() {
            let mut replay = Replay::of(&it);
            for line in &lines[..end] {
                replay.feed(line.as_bytes());
            }
            let is_over = replay.turn.is_over();
            over = over.or(is_over.then_some(end));
            let ended = replay.ended();
            match over {
                // What comes after the end changes nothing.
                Some(_) => is_as_recorded(&it, &ended),
                None => assert!(ended.is_err(), "{} after line {end}: {ended:?}", it.name),
            }
        }
        // In the middle of the line that ends it, too.
        if let Some(end) = over {
            let before: usize = lines[..end - 1].iter().map(String::len).sum();
            let cut = before + lines[end - 1].len() - 3;
            let mut replay = Replay::of(&it);
            replay.feed(&whole.as_bytes()[..cut]);
            assert!(replay.ended().is_err(), "{}", it.name);
        }
    }
}

#[test]
fn a_turn_that_an_earlier_team_began_is_read_as_it_was() {
    for it in recordings() {
        let first = whole(&it);
        let told: String = first.told.iter().map(|line| format!("{line}\n")).collect();
        let codec = AcpCodec::again(TurnStart { prompt: String::new(), ..opening(&it) }, &told);
        let codec = CodecKind::Acp(Box::new(codec));
        let mut again = Replay { turn: Turn::new(codec), then: Then::Nothing, ..Replay::of(&it) };
        again.feed(lines(it.name).concat().as_bytes());
        let facts = |it: &Replay| (it.turn.session.clone(), it.turn.usage, it.turn.usage_total);
        assert_eq!(facts(&again), facts(&first), "{}", it.name);
        // That it was told to stop is not in its input.
        if it.then != Then::Cancel {
            is_as_recorded(&it, &again.ended());
        }
    }
}

/// Agents tell how full a conversation is when an answer begins and again when it ends.
#[test]
fn an_answer_that_is_told_twice_is_counted_once() {
    let it = recording("claude-tool", Ok("did it"));
    let mut replay = Replay::of(&it);
    for line in lines(it.name) {
        replay.feed(line.as_bytes());
        if line.contains("usage_update") {
            replay.feed(line.replace("\"used\":105", "\"used\":112").as_bytes());
        }
    }
    let used = replay.events.iter().filter_map(|event| {
        let Event::Used(usage) = event else { return None };
        Some(usage.input_tokens)
    });
    assert_eq!(used.collect::<Vec<_>>(), [105, 112, 217, 224]);
}

/// An event in a line, without the ids of conversations.
fn shown(event: &Event) -> String {
    match event {
        Event::Session(_) => "session".to_owned(),
        Event::ToolStart { id, name } => format!("{id} begins: {name}"),
        Event::Call { name, .. } => format!("call: {name}"),
        Event::ToolEnd { id, ok } => format!("{id} ends: {ok}"),
        Event::Files(paths) => format!("files: {}", paths.join(" ")),
        Event::Context { used, size } => {
            format!("context: {} of {}", used.unwrap_or(0), size.unwrap_or(0))
        }
        Event::Usage(usage) => format!("spent: {}", tokens(*usage)),
        Event::Used(usage) => format!("so far: {}", tokens(*usage)),
        Event::UsageTotal(usage) => format!("in all: {} ${}", tokens(*usage), usage.cost_usd),
        Event::Text(text) | Event::Thought(text) => text.clone(),
        Event::Retry(text) => format!("retry: {text}"),
        Event::Warning(text) => format!("warning: {text}"),
        Event::LimitEnds(at) => format!("limit ends: {at:?}"),
        Event::Agent(name) => name.clone(),
        Event::Heard(id) => format!("heard {}", id.0),
        Event::Done => "done".to_owned(),
        Event::Failed { kind, message } => format!("{kind:?}: {message}"),
    }
}

fn tokens(usage: Usage) -> String {
    format!("{} ({}) + {}", usage.input_tokens, usage.cached_tokens, usage.output_tokens)
}

/// Compares all events of a recording.
fn tells(name: &str, wanted: &[&str]) {
    let told: Vec<String> = named(name).events.iter().map(shown).collect();
    assert_eq!(told, wanted, "{name}");
}

const ANSWER: &str =
    r#"{"status":"completed","summary":"did it","proposals":{"workflow_transition":{}}}"#;

#[test]
fn an_edit_and_a_command_of_codex_are_told_with_what_they_touch() {
    tells(
        "codex-edit",
        &[
            "codex-acp 2.6.0",
            "session",
            "call_0 begins: Editing files",
            "call: Editing files",
            "files: /run/tree/hello.txt",
            "call_0 ends: true",
            "context: 1020 of 258400",
            "so far: 1020 (0) + 0",
            "call: cat hello.txt; exit 3",
            "call_1 begins: cat hello.txt; exit 3",
            "call_1 ends: false",
            "context: 1020 of 258400",
            "so far: 2040 (0) + 0",
            "context: 1020 of 258400",
            "spent: 3000 (1200) + 60",
            ANSWER,
            "done",
        ],
    );
}

#[test]
fn a_refused_edit_ends_its_prompt_and_the_next_one_goes_on() {
    tells(
        "codex-refused",
        &[
            "codex-acp 2.6.0",
            "session",
            "call_0 begins: Editing files",
            "warning: refused: Editing files",
            "context: 1020 of 258400",
            "so far: 1020 (0) + 0",
            "call_0 ends: false",
            "spent: 1000 (400) + 20",
            "context: 1020 of 258400",
            "so far: 1020 (0) + 0",
            "spent: 1000 (400) + 20",
            ANSWER,
            "done",
        ],
    );
}

#[test]
fn a_request_that_is_too_long_to_be_read_is_answered() {
    let recordings = recordings();
    let it = recordings.iter().find(|it| it.then == Then::Nothing && it.ends.is_ok()).unwrap();
    let mut replay = Replay::of(it);
    let text = "x".repeat(100_000);
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"session/request_permission\",\"params\":{{\"toolCall\":{{\"oldText\":\"{text}\n"
    );
    let events = replay.feed(line.as_bytes());
    assert!(matches!(events.as_slice(), [Event::Warning(_)]), "{events:?}");
    let answer = replay.told.last().unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["outcome"]["outcome"]),
        (&json!(9), &json!("cancelled"))
    );
}

#[test]
fn words_that_are_said_while_it_opens_stand_in_its_first_prompt() {
    let recordings = recordings();
    let it = recordings.iter().find(|it| it.then == Then::Nothing && it.ends.is_ok()).unwrap();
    let mut replay = Replay::of(it);
    let said = PersonMessage::new("Mina", "make it blue");
    assert!(replay.turn.hear(&Words { id: MessageId(7), said }, "make it blue"));
    replay.feed(lines(it.name).concat().as_bytes());
    let prompt = replay.told.iter().find(|it| it["method"] == "session/prompt").unwrap();
    assert_eq!(prompt["params"]["prompt"][0]["text"], "say good day\n\nmake it blue");
    assert!(replay.events.contains(&Event::Heard(MessageId(7))), "{:?}", replay.events);
}

#[test]
fn words_in_between_are_heard_with_the_first_thing_that_follows() {
    tells(
        "codex-steered",
        &[
            "codex-acp 2.6.0",
            "session",
            "call: echo made > made.txt",
            "call_0 begins: echo made > made.txt",
            "call_0 ends: true",
            "context: 105 of 258400",
            "so far: 105 (0) + 0",
            "spent: 100 (40) + 5",
            "heard 7",
            "context: 105 of 258400",
            "so far: 105 (0) + 0",
            "spent: 100 (40) + 5",
            ANSWER,
            "done",
        ],
    );
    tells(
        "codex-cancelled",
        &[
            "codex-acp 2.6.0",
            "session",
            "call: echo up; sleep 1000",
            "call_0 begins: echo up; sleep 1000",
            "context: 1020 of 258400",
            "so far: 1020 (0) + 0",
            "call_0 ends: false",
            "spent: 1000 (400) + 20",
            "Cancelled: it was cancelled",
        ],
    );
}

#[test]
fn a_tool_that_is_only_asked_for_is_told_like_any_other() {
    let id = "run_shell_command__run_shell_command_1795275317331_0";
    tells(
        "gemini-tool",
        &[
            "gemini-cli 0.61.0",
            "session",
            &format!("{id} begins: echo made > made.txt"),
            "call: echo made > made.txt",
            &format!("{id} ends: true"),
            "spent: 200 (0) + 10",
            ANSWER,
            "done",
        ],
    );
}

#[test]
fn claude_tells_a_call_in_pieces_and_what_everything_cost() {
    tells(
        "claude-tool",
        &[
            "claude-agent-acp 0.100.0",
            "session",
            "context: 105 of 1000000",
            "so far: 105 (0) + 0",
            "toolu_1 begins: Terminal",
            "call: echo made > made.txt",
            "toolu_1 ends: true",
            "in all: 0 (0) + 0 $0.0015",
            "context: 105 of 1000000",
            "so far: 210 (0) + 0",
            "spent: 200 (0) + 10",
            ANSWER,
            "done",
        ],
    );
    tells(
        "claude-error-500",
        &[
            "claude-agent-acp 0.100.0",
            "session",
            "retry: Retrying Claude, attempt 1 of 1.",
            "spent: 0 (0) + 0",
            "Overloaded: API Error: 500 oops. This is a server-side issue, usually temporary — try again in a \
             moment. If it persists, check your inference gateway (127.0.0.1:9).",
        ],
    );
}

#[test]
fn once_it_is_cancelled_nothing_is_allowed_and_nothing_is_refused() {
    let it = recordings().into_iter().find(|it| it.name == "codex-permission").unwrap();
    let mut replay = Replay::of(&Recording { then: Then::Cancel, ..it });
    for line in lines("codex-permission") {
        replay.feed(line.as_bytes());
    }
    let answer = replay.told.iter().find(|line| line.pointer("/result/outcome").is_some());
    assert_eq!(answer.unwrap()["result"]["outcome"], json!({"outcome": "cancelled"}));
    assert!(!replay.events.iter().any(|event| matches!(event, Event::Warning(_))));
}

#[test]
fn words_before_and_after_a_tool_that_was_only_asked_for_are_two_messages() {
    let mut replay = Replay::of(&recording("gemini-tool", Ok("")));
    for line in lines("gemini-tool") {
        if line.contains("session/request_permission") {
            let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "I go."}});
            let params = json!({"sessionId": "x", "update": update});
            let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
            replay.feed(format!("{line}\n").as_bytes());
        }
        replay.feed(line.as_bytes());
    }
    assert_eq!(replay.ended().unwrap(), ANSWER);
}
