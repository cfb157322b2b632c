//! Recorded streams of the real agents, replayed through the codecs.

use chrono::DateTime;
use serde_json::json;

use super::claude::{self, ClaudeCodec, ClaudeSettings};
use super::codec::Event;
use super::codec_kind::CodecKind;
use super::codex::{self, CodexCodec, CodexSettings};
use super::prompt::PersonMessage;
use super::rehearsal::RehearsalCodec;
use super::sandbox::WriteAccess;
use super::turn::Turn;
use super::words::Words;
use crate::domain::ids::MessageId;
use crate::domain::run::FailKind;
use crate::domain::usage::Usage;
use crate::platform::files;
use crate::platform::supervise::{EndedBy, Exit};

fn exit(ended_by: EndedBy, code: Option<i32>, signal: Option<i32>) -> Exit {
    Exit {
        ended_by,
        code,
        signal,
        started_at: DateTime::UNIX_EPOCH,
        ended_at: DateTime::UNIX_EPOCH,
        dropped_stdout: 0,
        dropped_stderr: 0,
        swept: 0,
        error: None,
    }
}

fn turn() -> Turn {
    Turn::new(CodecKind::Codex(CodexCodec::default()))
}

fn replay(name: &str) -> (Turn, Vec<Event>) {
    play(turn(), &format!("codex/{name}"))
}

fn replay_claude(name: &str) -> (Turn, Vec<Event>) {
    play(Turn::new(CodecKind::Claude(ClaudeCodec::default())), &format!("claude/{name}"))
}

fn play(mut turn: Turn, name: &str) -> (Turn, Vec<Event>) {
    let path = format!("{}/tests/data/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let bytes = files::read(path.as_ref()).unwrap();
    // In pieces that break lines and characters.
    let mut events: Vec<Event> = bytes.chunks(7).flat_map(|piece| turn.feed(piece)).collect();
    events.extend(turn.finish());
    (turn, events)
}

#[test]
fn a_recorded_success_is_read_whole() {
    let (turn, events) = replay("edit");
    assert!(turn.session.is_some());
    let usage =
        Usage { input_tokens: 3000, cached_tokens: 1200, output_tokens: 60, ..Usage::default() };
    assert_eq!(turn.usage_total, Some(usage));
    assert!(events.contains(&Event::Files(vec!["/run/tree/hello.txt".to_owned()])));
    let starts = events.iter().filter(|event| matches!(event, Event::ToolStart { .. }));
    let ends = events.iter().filter(|event| matches!(event, Event::ToolEnd { ok: true, .. }));
    assert_eq!((starts.count(), ends.count()), (2, 2));
    let answer = turn.conclude(&exit(EndedBy::Exit, Some(0), None), "").unwrap();
    assert!(answer.text.is_some_and(|text| text.contains("did it")));
}

#[test]
fn a_recorded_rehearsal_is_read_whole_and_one_that_needs_a_model_says_so() {
    let replay = |name| play(Turn::new(CodecKind::Rehearsal(RehearsalCodec::default())), name);
    let ended = exit(EndedBy::Exit, Some(0), None);
    let (turn, events) = replay("rehearsal/build");
    assert!(turn.session.as_deref().is_some_and(|id| id.starts_with("rehearsal-")));
    let wrote = Event::Files(vec!["greet.sh".to_owned()]);
    assert_eq!(events.iter().filter(|event| **event == wrote).count(), 2);
    let answer = turn.conclude(&ended, "").unwrap();
    assert!(answer.text.is_some_and(|text| text.contains("literal edits in greet.sh")));
    let failure = replay("rehearsal/no-model").0.conclude(&ended, "").unwrap_err();
    assert_eq!(failure.kind, FailKind::NeedsRealAgent);
}

#[test]
fn recorded_failures_have_their_kinds() {
    let table = [
        ("error-500", FailKind::Overloaded),
        ("overloaded", FailKind::Overloaded),
        ("quota", FailKind::Quota),
        ("cut", FailKind::Transport),
        ("unauthorized", FailKind::Auth),
        ("bad-request", FailKind::BadRequest),
        ("context", FailKind::Context),
    ];
    for (name, kind) in table {
        let (turn, _) = replay(name);
        let failure = turn.conclude(&exit(EndedBy::Exit, Some(1), None), "").unwrap_err();
        assert_eq!(failure.kind, kind, "{name}");
    }
}

#[test]
fn a_recorded_success_of_claude_is_read_whole() {
    let (turn, events) = replay_claude("edit");
    assert!(turn.session.is_some());
    assert_eq!(turn.agent.as_deref(), Some("claude 2.1.329"));
    let usage =
        Usage { input_tokens: 3000, cached_tokens: 1200, output_tokens: 60, ..Usage::default() };
    assert_eq!(Usage { cost_usd: 0.0, ..turn.usage }, usage);
    let command = "Bash sed -i s/hello/goodday/ hello.txt; env; cat hello.txt";
    let id = "toolu_1".to_owned();
    assert!(events.contains(&Event::ToolStart { id, name: command.to_owned() }));
    assert!(events.contains(&Event::ToolEnd { id: "toolu_1".to_owned(), ok: true }));
    assert!(turn.is_between_tools());
    let answer = turn.conclude(&exit(EndedBy::Exit, Some(0), None), "").unwrap();
    assert!(answer.text.is_some_and(|text| text.contains("did it")));
}

#[test]
fn recorded_failures_of_claude_have_their_kinds() {
    let table = [
        ("error-500", FailKind::Overloaded),
        ("overloaded", FailKind::Overloaded),
        ("rate-limit", FailKind::RateLimit),
        ("unauthorized", FailKind::Auth),
        ("bad-request", FailKind::BadRequest),
        ("context", FailKind::Context),
        ("refusal", FailKind::Refusal),
    ];
    for (name, kind) in table {
        let (turn, _) = replay_claude(name);
        let failure = turn.conclude(&exit(EndedBy::Exit, Some(1), None), "").unwrap_err();
        assert_eq!(failure.kind, kind, "{name}");
    }
}

#[test]
fn the_reset_of_a_plan_is_known_from_its_event() {
    let ends = |lines: &str| {
        let mut turn = Turn::new(CodecKind::Claude(ClaudeCodec::default()));
        turn.feed(lines.as_bytes());
        turn.feed(b"{\"type\":\"result\",\"is_error\":true,\"api_error_status\":429,\"result\":\"limit reached\"}\n");
        let failure = turn.conclude(&exit(EndedBy::Exit, Some(1), None), "").unwrap_err();
        assert_eq!(failure.kind, FailKind::Quota);
        failure.until.map(|at| at.millis())
    };
    let event = |status: &str| {
        format!(
            "{{\"type\":\"rate_limit_event\",\"rate_limit_info\":{{\"status\":\"{status}\",\"resetsAt\":86400,\"rateLimitType\":\"five_hour\"}}}}\n"
        )
    };
    assert_eq!(ends(&event("rejected")), Some(86_400_000));
    assert_eq!(ends(&event("allowed_warning")), None);
    assert_eq!(ends(&(event("rejected") + &event("allowed"))), None);
}

#[test]
fn claude_is_not_done_while_words_wait_for_it() {
    let words = |id| Words { id: MessageId(id), said: PersonMessage::new("Mina", "blue") };
    let mut turn = Turn::new(CodecKind::Claude(ClaudeCodec::default()));
    assert!(turn.hear(&words(7), "blue") && turn.hear(&words(7), "no, red"));
    let names: Vec<String> =
        turn.replies().iter().map(|line| line["uuid"].as_str().unwrap().to_owned()).collect();
    assert_ne!(names[0], names[1]);
    let done = b"{\"type\":\"result\",\"is_error\":false,\"result\":\"{}\"}\n";
    let echo =
        |name: &str| format!("{{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"{name}\"}}\n");
    turn.feed(done);
    assert!(!turn.is_over());
    turn.feed(echo(&names[0]).as_bytes());
    turn.feed(done);
    assert!(!turn.is_over());
    turn.feed(echo(&names[1]).as_bytes());
    turn.feed(done);
    assert!(turn.is_done());
    assert_eq!(turn.heard, [MessageId(7), MessageId(7)]);
}

#[test]
fn claude_without_a_sandbox_runs_no_commands_and_writes_where_its_role_may() {
    let arguments = |access: &WriteAccess, confined| {
        let schema = serde_json::json!({});
        let turn = claude::Turn {
            access,
            worktree: "/tree".as_ref(),
            has_servers: false,
            schema: &schema,
            charter: "x",
            resume: Some("ID"),
            web: false,
            confined,
            tools: None,
            pinned: false,
        };
        claude::arguments(&ClaudeSettings::default(), &turn)
    };
    let after = |args: &[String], flag: &str| {
        args.iter().position(|arg| arg == flag).map(|at| args[at + 1].clone())
    };
    let documents = WriteAccess::Documents("/docs".into());
    let table = [
        (&WriteAccess::ReadOnly, "Read,Grep,Glob", "Read,Grep,Glob"),
        (&WriteAccess::Worktree, "Read,Grep,Glob,Edit,Write", "Read,Grep,Glob,Edit(//tree/**)"),
        (&documents, "Read,Grep,Glob,Edit,Write", "Read,Grep,Glob,Edit(//docs/**)"),
    ];
    for (access, tools, allowed) in table {
        let args = arguments(access, false);
        assert_eq!(after(&args, "--tools").as_deref(), Some(tools));
        assert_eq!(after(&args, "--allowedTools").as_deref(), Some(allowed));
        assert_eq!(after(&args, "--resume").as_deref(), Some("ID"));
        assert!(!args.iter().any(|arg| arg.starts_with("--dangerously")));
        let args = arguments(access, true);
        assert_eq!(after(&args, "--tools"), Some(format!("{tools},Bash")));
    }
}

#[test]
fn only_a_terminal_event_is_success() {
    let said = br#"{"type":"item.completed","item":{"type":"agent_message","text":"{}"}}"#;
    let done = b"\n{\"type\":\"turn.completed\"}\n";
    let noise = b"\nwarning: x\n[1]\n{\"type\":\"turn.completed";
    let table = [
        (EndedBy::Exit, Some(0), None, FailKind::NoTerminal),
        (EndedBy::Exit, None, Some(9), FailKind::Crash),
        (EndedBy::Wall, None, Some(2), FailKind::WallTimeout),
        (EndedBy::Idle, None, Some(2), FailKind::Stuck),
        (EndedBy::OutputCap, None, Some(9), FailKind::OutputCap),
        (EndedBy::Cancelled, None, Some(2), FailKind::Cancelled),
        (EndedBy::ParentGone, None, Some(9), FailKind::Cancelled),
        (EndedBy::NotStarted, None, None, FailKind::Crash),
    ];
    for (ended_by, code, signal, kind) in table {
        let mut turn = turn();
        turn.feed(said);
        turn.feed(noise);
        turn.finish();
        let failure = turn.conclude(&exit(ended_by, code, signal), "").unwrap_err();
        assert_eq!(failure.kind, kind);
    }
    // Row K07: a complete turn whose process had to be ended is complete; a cancelled one is cancelled.
    for (ended_by, complete) in [(EndedBy::Wall, true), (EndedBy::Cancelled, false)] {
        let mut turn = turn();
        turn.feed(said);
        turn.feed(done);
        assert_eq!(turn.conclude(&exit(ended_by, None, Some(2)), "").is_ok(), complete);
    }
}

/// An hour after a connection broke and came back, another failure is not one of the connection.
#[test]
fn a_failure_is_not_named_after_one_that_was_overcome() {
    let line = |value: serde_json::Value| format!("{value}\n").into_bytes();
    let broke = json!({"type": "error", "message": "stream disconnected, retrying 1/5"});
    let works =
        json!({"type": "item.completed", "item": {"id": "1", "type": "reasoning", "text": "so"}});
    let failed = json!({"type": "turn.failed", "error": {"message": "unexpected status 404"}});
    let ended = exit(EndedBy::Exit, Some(1), None);
    let kind = |lines: &[&serde_json::Value]| {
        let mut turn = turn();
        lines.iter().for_each(|value| drop(turn.feed(&line((*value).clone()))));
        turn.conclude(&ended, "").unwrap_err().kind
    };
    assert_eq!(kind(&[&broke, &failed]), FailKind::Transport);
    assert_eq!(kind(&[&broke, &works, &failed]), FailKind::Other);
    assert_eq!(kind(&[&broke]), FailKind::Transport);
    assert_eq!(kind(&[&broke, &works]), FailKind::NoTerminal);

    let broke = json!({"type": "system", "subtype": "api_retry", "error_status": 529, "error": "overloaded"});
    let works =
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "so"}]}});
    let failed = json!({"type": "result", "subtype": "success", "is_error": true, "result": "odd"});
    let kind = |lines: &[&serde_json::Value]| {
        let mut turn = Turn::new(CodecKind::Claude(ClaudeCodec::default()));
        lines.iter().for_each(|value| drop(turn.feed(&line((*value).clone()))));
        turn.conclude(&ended, "").unwrap_err().kind
    };
    assert_eq!(kind(&[&broke, &failed]), FailKind::Overloaded);
    assert_eq!(kind(&[&broke, &works, &failed]), FailKind::Other);
}

#[test]
fn what_the_agent_quotes_holds_no_secret() {
    let key = format!("sk-{}", "a1".repeat(20));
    let stderr = format!("401 for key {key}");
    let failure = turn().conclude(&exit(EndedBy::Exit, Some(1), None), &stderr).unwrap_err();
    assert_eq!(failure.kind, FailKind::Auth);
    assert!(!failure.message.contains(&key));
}

#[test]
fn k10_a_resumed_turn_is_told_everything_again() {
    // A resume remembers neither folder nor sandbox, so unlike in the row they are said again; and what an
    // earlier turn put out lies in a spool of its own.
    let config = CodexSettings::default();
    let args = |resume| {
        codex::arguments(
            &config,
            &codex::Turn {
                worktree: "/tree".as_ref(),
                access: &WriteAccess::Worktree,
                schema: "/schema.json".as_ref(),
                env: &std::collections::BTreeMap::new(),
                prepared: &std::collections::BTreeMap::new(),
                tools: None,
                pinned: false,
                charter: "x",
                resume,
                web: false,
                confined: false,
                proxy: None,
            },
        )
    };
    let (fresh, resumed) = (args(None), args(Some("ID")));
    let (options, tail) = resumed.split_at(resumed.len() - 3);
    assert_eq!(tail, ["resume", "ID", "-"]);
    assert_eq!(fresh, [options, &["-".to_owned()]].concat());
    assert!(options.windows(2).any(|pair| pair == ["-C", "/tree"]), "{options:?}");
}

#[test]
fn codex_confines_itself_by_the_access_where_nothing_else_does() {
    let mode = |confined, access: &WriteAccess| {
        let config = CodexSettings::default();
        let turn = codex::Turn {
            worktree: "/tree".as_ref(),
            access,
            schema: "/schema.json".as_ref(),
            env: &[
                ("GOMODCACHE", "/kept/mod"),
                ("HTTPS_PROXY", "http://run:secret@here:1"),
                ("X", "x"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
            prepared: &[("GOMODCACHE".to_owned(), "/kept/mod".to_owned())].into(),
            tools: None,
            pinned: false,
            charter: "x",
            resume: Some("ID"),
            web: *access == WriteAccess::ReadOnly,
            confined,
            proxy: None,
        };
        let args = codex::arguments(&config, &turn);
        let told = "shell_environment_policy.include_only=[\"GOMODCACHE\",\"HTTPS_PROXY\"]";
        assert!(args.iter().any(|arg| arg == told), "{args:?}");
        assert!(!args.iter().any(|arg| arg.contains("secret")), "{args:?}");
        let after = |flag: &str| args[args.iter().position(|arg| arg == flag).unwrap() + 1].clone();
        assert_eq!(args[args.len() - 3..], ["resume", "ID", "-"]);
        let search = if turn.web { "web_search=live" } else { "web_search=disabled" };
        assert!(args.iter().any(|arg| arg == search));
        (after("-s"), after("-C"))
    };
    let pair = |mode: &str, folder: &str| (mode.to_owned(), folder.to_owned());
    assert_eq!(mode(false, &WriteAccess::ReadOnly), pair("read-only", "/tree"));
    assert_eq!(mode(false, &WriteAccess::Worktree), pair("workspace-write", "/tree"));
    let documents = WriteAccess::Documents("/docs".into());
    assert_eq!(mode(false, &documents), pair("workspace-write", "/docs"));
    assert_eq!(mode(true, &WriteAccess::ReadOnly), pair("danger-full-access", "/tree"));
}
