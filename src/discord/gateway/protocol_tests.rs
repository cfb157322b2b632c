//! What a connection says and does, frame by frame.

use super::*;

const EVERY: u64 = 41_250;

fn identify() -> Begin {
    Begin::identify("a.token", 5)
}

fn resume(sequence: u64) -> Begin {
    Begin::resume("a.token", "s1", sequence)
}

/// A connection with its clock.
struct Line<'a> {
    protocol: Protocol<'a>,
    now: u64,
}

impl<'a> Line<'a> {
    fn new(begin: Begin, memory: &'a mut Memory) -> Line<'a> {
        Line { protocol: Protocol::new(begin, memory, 0, 500), now: 0 }
    }

    /// Greeted: a new session up to event 1, or a session that goes on with the next event.
    fn greeted(begin: Begin, memory: &'a mut Memory) -> Line<'a> {
        let mut line = Line::new(begin, memory);
        line.hello();
        let (kind, number) = match line.protocol.last {
            None => ("READY", 1),
            Some(last) => ("RESUMED", last + 1),
        };
        assert_eq!(line.event(kind, number), [kind]);
        line.protocol.greeted(UserId(90), Some(GuildId(6)));
        line
    }

    fn hello(&mut self) -> Vec<Output> {
        self.op(10, json!({"heartbeat_interval": EVERY}))
    }

    fn raw(&mut self, text: &str) -> Vec<Output> {
        self.protocol.received(text, self.now)
    }

    fn op(&mut self, op: u64, data: Value) -> Vec<Output> {
        self.raw(&json!({"op": op, "d": data}).to_string())
    }

    fn dispatch(&mut self, kind: &str, number: u64, data: Value) -> Vec<Output> {
        self.raw(&json!({"op": 0, "t": kind, "s": number, "d": data}).to_string())
    }

    /// The same, in short.
    fn event(&mut self, kind: &str, number: u64) -> Vec<String> {
        let data = json!({"id": "11", "channel_id": "5", "author": {"id": "7"}});
        short(self.dispatch(kind, number, data))
    }

    /// Until the next timer, in short.
    fn tick(&mut self) -> Vec<String> {
        self.now = self.protocol.due();
        short(self.protocol.timer(self.now))
    }

    /// The same, and every heartbeat is answered.
    fn beat(&mut self) -> Vec<String> {
        let outputs = self.tick();
        assert!(self.op(11, Value::Null).is_empty());
        outputs
    }
}

fn short(outputs: Vec<Output>) -> Vec<String> {
    let one = |output| match output {
        Output::Send(frame) | Output::Identify(frame) => {
            let frame: Value = serde_json::from_str(&frame).unwrap();
            format!("op {}", frame["op"])
        }
        Output::Dispatch(event) => event.kind,
        Output::Missed { through, what } => format!("missed {what} up to {through}"),
        Output::Silent => "silent".to_owned(),
        Output::Audible => "audible".to_owned(),
        Output::End(End::Again(reason)) => format!("again: {reason}"),
        Output::End(End::Anew(reason)) => format!("anew: {reason}"),
        Output::End(end) => format!("{end:?}"),
    };
    outputs.into_iter().map(one).collect()
}

#[test]
fn a_session_is_begun_or_gone_on_with_at_hello() {
    let mut memory = Memory::default();
    let mut line = Line::new(identify(), &mut memory);
    let outputs = line.hello();
    let [Output::Identify(frame)] = &outputs[..] else { panic!("{outputs:?}") };
    let frame: Value = serde_json::from_str(frame).unwrap();
    assert_eq!((&frame["op"], &frame["d"]["token"]), (&json!(2), &json!("a.token")));
    assert_eq!(frame["d"]["intents"], 5);
    assert!(line.hello().is_empty(), "once");
    let mut line = Line::new(resume(7), &mut memory);
    let outputs = line.hello();
    let [Output::Send(frame)] = &outputs[..] else { panic!("{outputs:?}") };
    let frame: Value = serde_json::from_str(frame).unwrap();
    assert_eq!(frame["d"], json!({"token": "a.token", "session_id": "s1", "seq": 7}));
}

#[test]
fn whatever_does_not_come_in_time_ends_the_connection() {
    let mut memory = Memory::default();
    // No hello.
    let mut line = Line::new(identify(), &mut memory);
    assert_eq!(line.protocol.due(), HELLO_MS);
    assert_eq!(
        line.tick(),
        ["again: discord accepted the connection and said nothing for ten seconds"]
    );
    // No greeting, while heartbeats are answered.
    for begin in [identify(), resume(7)] {
        let mut line = Line::new(begin, &mut memory);
        line.hello();
        assert_eq!(line.beat(), ["op 1"]);
        assert_eq!(line.tick(), ["again: discord did not greet within a minute"]);
        assert_eq!(line.now, GREETING_MS);
    }
    // No answer to a heartbeat.
    let mut line = Line::greeted(identify(), &mut memory);
    assert_eq!(line.tick(), ["op 1"]);
    assert_eq!(line.now, EVERY / 2);
    assert_eq!(line.tick(), ["again: discord stopped answering heartbeats"]);
    assert_eq!(line.now, EVERY / 2 + EVERY);
    // Where events come, the answer may stand behind them; for a while.
    let mut line = Line::greeted(identify(), &mut memory);
    line.tick();
    line.event("TYPING_START", 2);
    assert_eq!(line.tick(), ["op 1"]);
    line.event("TYPING_START", 3);
    assert_eq!(line.tick(), ["again: discord stopped answering heartbeats"]);
    // A hello without sense.
    for data in [json!(null), json!({"heartbeat_interval": "soon"}), json!([])] {
        let mut line = Line::new(identify(), &mut memory);
        assert_eq!(short(line.op(10, data)), ["again: discord's hello was not readable"]);
    }
    let mut line = Line::new(identify(), &mut memory);
    line.op(10, json!({"heartbeat_interval": 0}));
    line.beat();
    assert_eq!(line.protocol.due(), line.now + 50, "never faster than that");
}

#[test]
fn heartbeats_name_the_last_event_and_are_sent_when_asked_for_within_the_limit() {
    let mut memory = Memory::default();
    let mut line = Line::greeted(identify(), &mut memory);
    line.event("TYPING_START", 2);
    assert_eq!(line.op(1, Value::Null), [Output::Send("{\"op\":1,\"d\":2}".to_owned())]);
    let answered = (0..500).filter(|_| !line.op(1, Value::Null).is_empty()).count();
    assert_eq!(answered, FRAMES - 2, "identify and one heartbeat went out before");
    assert!(!line.protocol.may_send(line.now));
    // The heartbeat itself goes out all the same.
    assert_eq!(line.beat(), ["op 1"]);
    assert!(line.protocol.may_send(MINUTE_MS));
}

#[test]
fn orders_of_the_server_end_the_connection_as_documented() {
    let mut memory = Memory::default();
    for (op, data, end) in [
        (7, Value::Null, "again: discord asked to reconnect"),
        (9, json!(true), "again: discord interrupted the session"),
        (9, json!(false), "anew: discord ended the session"),
        (9, Value::Null, "anew: discord ended the session"),
    ] {
        let mut line = Line::greeted(identify(), &mut memory);
        assert_eq!(short(line.op(op, data)), [end]);
    }
    let mut line = Line::greeted(identify(), &mut memory);
    assert!(line.op(77, json!({"from": "tomorrow"})).is_empty());
}

#[test]
fn an_event_that_is_missing_or_unreadable_is_asked_for_again_once_and_then_looked_for_elsewhere() {
    let broken = "{\"t\":\"MESSAGE_CREATE\",\"s\":2,\"op\":0,\"d\":{\"id\":";
    let strange = json!({"op": 0, "t": "MESSAGE_CREATE", "s": 2, "d": {"surprise": 1}}).to_string();
    let gap = json!({"op": 0, "t": "TYPING_START", "s": 3, "d": {}}).to_string();
    let nameless = json!({"op": 0, "s": 2, "d": {}}).to_string();
    for (text, again, then) in [
        (broken, "MESSAGE_CREATE was not readable", vec!["missed MESSAGE_CREATE up to 2"]),
        (&strange, "MESSAGE_CREATE was not readable", vec!["missed MESSAGE_CREATE up to 2"]),
        (&gap, "events 2 to 2 did not come", vec!["missed an event up to 2", "TYPING_START"]),
        (
            &nameless,
            "an event without a name was not readable",
            vec!["missed an event without a name up to 2"],
        ),
        (
            "garbage",
            "an event without a name was not readable",
            vec!["missed an event without a name up to 2"],
        ),
    ] {
        let mut memory = Memory::default();
        let mut line = Line::greeted(identify(), &mut memory);
        assert_eq!(short(line.raw(text)), [format!("again: {again}")], "{text}");
        // It comes again when the session is gone on with: nothing was lost.
        let mut line = Line::new(resume(1), &mut memory);
        line.hello();
        assert_eq!(line.event("MESSAGE_CREATE", 2), ["MESSAGE_CREATE"], "{text}");
        // Or it does not, and the session goes on behind it.
        let mut line = Line::new(resume(1), &mut memory);
        line.hello();
        assert_eq!(short(line.raw(text)), then, "{text}");
        let next = line.protocol.last.unwrap() + 1;
        assert_eq!(line.event("MESSAGE_CREATE", next), ["MESSAGE_CREATE"], "{text}");
    }
}

#[test]
fn a_server_that_is_never_readable_makes_no_loop() {
    let mut memory = Memory::default();
    let mut last = 1;
    let mut ends = 0;
    let mut missed = 0;
    let mut line = Line::greeted(identify(), &mut memory);
    for _ in 0..100 {
        match &short(line.dispatch("MESSAGE_CREATE", last + 1, Value::Null))[..] {
            [end] if end.starts_with("again") => {
                ends += 1;
                line = Line::new(resume(last), line.protocol.memory);
                line.hello();
            }
            [miss] if miss.starts_with("missed") => {
                missed += 1;
                last += 1;
            }
            outputs => panic!("{outputs:?}"),
        }
    }
    assert_eq!((ends, missed), (REPAIRS, 100 - REPAIRS));
    // What has no number is nothing where the next event shows that none is missing.
    assert!(line.raw("garbage").is_empty());
    assert_eq!(line.event("MESSAGE_CREATE", last + 1), ["MESSAGE_CREATE"]);
    // An hour later the session is worth a resume again.
    line.now += HOUR_MS;
    let again = short(line.dispatch("MESSAGE_CREATE", last + 2, Value::Null));
    assert!(again[0].starts_with("again"), "{again:?}");
}

#[test]
fn a_gap_in_what_is_sent_again_is_no_reason_to_ask_again() {
    let mut memory = Memory::default();
    let mut line = Line::new(resume(7), &mut memory);
    line.hello();
    assert_eq!(line.event("MESSAGE_CREATE", 10), ["missed events up to 9", "MESSAGE_CREATE"]);
    assert_eq!(line.event("RESUMED", 11), ["RESUMED"]);
    // What comes twice is passed on: whoever listens finds doubles by their ids.
    assert_eq!(line.event("MESSAGE_CREATE", 10), ["MESSAGE_CREATE"]);
    assert_eq!(line.event("MESSAGE_CREATE", 12), ["MESSAGE_CREATE"]);
}

#[test]
fn a_greeting_that_cannot_be_read_is_asked_for_anew() {
    let mut memory = Memory::default();
    let mut line = Line::new(identify(), &mut memory);
    line.hello();
    let end = short(line.raw("{\"op\":0,\"t\":\"READY\",\"s\":1,\"d\":{"));
    assert_eq!(end, ["anew: discord's greeting was not readable"]);
}

#[test]
fn a_connection_without_events_is_asked_and_one_that_answers_goes_on() {
    let mut memory = Memory::default();
    let mut line = Line::greeted(identify(), &mut memory);
    for round in 0..5 {
        for _ in 1..QUIET {
            assert_eq!(line.beat(), ["op 1"]);
        }
        assert_eq!(line.beat(), ["op 1", "op 8"]);
        let number = line.protocol.last.unwrap() + 1;
        assert_eq!(line.event("GUILD_MEMBERS_CHUNK", number), ["GUILD_MEMBERS_CHUNK"], "{round}");
    }
    // A bot in no server has nobody to ask.
    line.protocol.greeted(UserId(90), None);
    for _ in 0..50 {
        assert_eq!(line.beat(), ["op 1"]);
    }
}

#[test]
fn a_silent_connection_is_resumed_then_begun_anew_then_kept_while_the_channels_are_read() {
    let silent = |word: &str| format!("{word}: {SILENT}");
    let mut memory = Memory::default();
    let mut line = Line::greeted(identify(), &mut memory);
    let until = |line: &mut Line<'_>| {
        for beats in 1.. {
            let outputs = line.beat();
            if let Some(end) = outputs.into_iter().find(|it| !it.starts_with("op ")) {
                return (beats, end);
            }
        }
        unreachable!()
    };
    assert_eq!(until(&mut line), (QUIET + PATIENCE, silent("again")));
    let mut line = Line::greeted(resume(5), &mut memory);
    assert!(line.protocol.is_silent());
    assert_eq!(until(&mut line), (1 + PATIENCE, silent("anew")));
    let mut line = Line::greeted(identify(), &mut memory);
    // What belongs to the greeting proves nothing.
    assert_eq!(line.event("GUILD_CREATE", 2), ["GUILD_CREATE"]);
    assert_eq!(until(&mut line), (1 + PATIENCE, "silent".to_owned()));
    let mut waits = Vec::new();
    let end = loop {
        match until(&mut line) {
            (beats, outcome) if outcome == "silent" => waits.push(beats),
            (_, end) => break end,
        }
    };
    assert!(waits.is_sorted() && waits.len() < 8, "{waits:?}");
    assert_eq!(end, silent("anew"));
    let mut line = Line::greeted(identify(), &mut memory);
    line.beat();
    assert_eq!(line.event("GUILD_MEMBERS_CHUNK", 2), ["audible", "GUILD_MEMBERS_CHUNK"]);
    assert!(!line.protocol.is_silent());
    assert_eq!(line.event("MESSAGE_CREATE", 3), ["MESSAGE_CREATE"]);
}
