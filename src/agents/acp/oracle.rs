//! What others think of our half of the protocol: the types of `agent-client-protocol-schema`, which the agents'
//! side is written with as well, read what we say with nothing lost, and what agents said they read as we do.

use std::collections::{BTreeMap, BTreeSet};

use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::tests::{Recording, Replay, lines, opening, recordings};
use super::*;

/// What we say beyond the protocol, where it leaves room for that.
const VENDORS: [&str; 1] = ["/params/clientCapabilities/_meta/jetbrains/air"];

/// What the types say for a capability of which we say nothing.
const UNSAID: [&str; 1] = ["/params/clientCapabilities/auth"];

fn request<T: Serialize + DeserializeOwned>(line: &Value) -> Value {
    again::<acp::JsonRpcMessage<acp::Request<T>>>(line)
}

fn notification<T: Serialize + DeserializeOwned>(line: &Value) -> Value {
    again::<acp::JsonRpcMessage<acp::Notification<T>>>(line)
}

fn response<T: Serialize + DeserializeOwned>(line: &Value) -> Value {
    again::<acp::JsonRpcMessage<acp::Response<T>>>(line)
}

/// Reads a message as one of its types and writes it again.
fn again<T: Serialize + DeserializeOwned>(line: &Value) -> Value {
    let read: T = serde_json::from_value(line.clone()).unwrap_or_else(|it| panic!("{it}: {line}"));
    serde_json::to_value(read).unwrap()
}

/// What kind of message of ours a line is, and the line as it is written again.
fn ours(line: &Value) -> (&'static str, Value) {
    match line.get("method").and_then(Value::as_str) {
        Some("initialize") => ("initialize", request::<acp::InitializeRequest>(line)),
        Some("session/new") => ("new", request::<acp::NewSessionRequest>(line)),
        Some("session/load") => ("load", request::<acp::LoadSessionRequest>(line)),
        Some("session/resume") => ("resume", request::<acp::ResumeSessionRequest>(line)),
        Some("session/set_mode") => ("mode", request::<acp::SetSessionModeRequest>(line)),
        Some("session/set_config_option") => {
            ("option", request::<acp::SetSessionConfigOptionRequest>(line))
        }
        Some("session/prompt") => ("prompt", request::<acp::PromptRequest>(line)),
        Some("session/cancel") => ("cancel", notification::<acp::CancelNotification>(line)),
        None if line.get("error").is_some() => {
            ("not offered", response::<acp::RequestPermissionResponse>(line))
        }
        None => {
            let selected = line.pointer("/result/outcome/outcome") == Some(&json!("selected"));
            let kind = if selected { "permission selected" } else { "permission cancelled" };
            (kind, response::<acp::RequestPermissionResponse>(line))
        }
        Some(other) => panic!("nobody knows {other}"),
    }
}

/// Every place in a message that holds no further ones, with what it holds.
fn places(value: &Value, path: &str, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                places(field, &format!("{path}/{key}"), into);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{path}/{index}"), into);
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            into.insert(path.to_owned(), value.clone());
        }
    }
}

/// Compares two messages but for what is left unsaid; which vendors' places they hold.
fn same(ours: &Value, theirs: &Value) -> BTreeSet<&'static str> {
    let (mut one, mut two) = (BTreeMap::new(), BTreeMap::new());
    places(ours, "", &mut one);
    places(theirs, "", &mut two);
    two.retain(|path, _| !UNSAID.iter().any(|it| path.starts_with(it)));
    assert_eq!(one, two, "{ours}");
    let meta = one.keys().filter(|path| path.contains("/_meta"));
    meta.map(|path| {
        let known = VENDORS.iter().find(|vendor| path.starts_with(**vendor));
        *known.unwrap_or_else(|| panic!("{path} is no field of a vendor that we know"))
    })
    .collect()
}

/// What a codec says to an agent of ours.
fn played(opening: TurnStart, agent: &[Value], speaks: bool) -> Vec<Value> {
    let mut codec = AcpCodec::new(opening);
    let mut told = Vec::new();
    for line in agent {
        codec.line(line);
        told.extend(codec.replies());
    }
    if speaks {
        assert!(codec.stop());
        told.extend(codec.replies());
    }
    told
}

fn answer(id: u64, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn greeting(can: Value) -> Value {
    answer(0, json!({"protocolVersion": 1, "agentCapabilities": can}))
}

/// What the recorded agents did not make us say.
fn rare() -> Vec<Value> {
    let it = || recordings().into_iter().find(|it| it.name == "codex-edit-again").unwrap();
    let load = [greeting(json!({"loadSession": true}))];
    let option = json!({"id": "m", "name": "Mode", "category": "mode", "type": "select",
        "currentValue": "ask", "options": [{"name": "All", "group": "g", "options": [
            {"value": "agent-full-access", "name": "All of it"}]}]});
    let option = answer(1, json!({"sessionId": "s", "configOptions": [option]}));
    let ask = |options: Value| {
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": options});
        json!({"jsonrpc": "2.0", "id": "a", "method": "session/request_permission", "params": params})
    };
    let files = json!({"jsonrpc": "2.0", "id": 7, "method": "fs/read_text_file",
        "params": {"sessionId": "s", "path": "/etc/passwd"}});
    let asking = [
        greeting(json!({})),
        option,
        answer(2, json!({"configOptions": []})),
        ask(json!([])),
        files,
    ];
    let mut all = played(opening(&it()), &load, false);
    all.extend(played(opening(&it()), &asking, true));
    all
}

#[test]
fn all_that_we_say_is_what_the_protocol_says() {
    let mut kinds = BTreeSet::new();
    let mut vendors = BTreeSet::new();
    let told = recordings().into_iter().flat_map(|it| super::tests::whole(&it).told);
    for line in told.chain(rare()) {
        let (kind, theirs) = ours(&line);
        kinds.insert(kind);
        vendors.extend(same(&line, &theirs));
    }
    let all = [
        "cancel",
        "initialize",
        "load",
        "mode",
        "new",
        "not offered",
        "option",
        "permission cancelled",
        "permission selected",
        "prompt",
        "resume",
    ];
    assert_eq!(kinds, BTreeSet::from(all));
    assert_eq!(vendors, BTreeSet::from(VENDORS));
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|it| panic!("{it}: {value}"))
}

/// Compares our reading of what an agent said with that of the types.
struct AnswerComparison {
    /// What each of our requests asked.
    asked: BTreeMap<u64, String>,
    session: String,
    working: bool,
    /// The answer so far, as the types read it.
    said: String,
    begun: BTreeSet<String>,
    kinds: BTreeSet<&'static str>,
}

impl AnswerComparison {
    fn line(&mut self, line: &Value, events: &[Event], replies: &[Value]) {
        for reply in replies {
            if let (Some(id), Some(method)) = (reply["id"].as_u64(), reply["method"].as_str()) {
                self.asked.insert(id, method.to_owned());
            }
        }
        match (line["method"].as_str(), line["id"].as_u64()) {
            (Some("session/update"), None) => {
                let said: acp::SessionNotification = read(&line["params"]);
                assert_eq!(said.session_id.0.as_ref(), self.session);
                if self.working {
                    self.update(said.update, events);
                } else {
                    assert!(events.is_empty(), "{line}");
                }
            }
            (Some("session/request_permission"), Some(_)) => {
                let asked: acp::RequestPermissionRequest = read(&line["params"]);
                assert_eq!(asked.session_id.0.as_ref(), self.session);
                let answer: acp::RequestPermissionResponse = read(&replies[0]["result"]);
                self.permitted(&asked, &answer.outcome, events);
            }
            (Some(method), id) => {
                assert!(method.starts_with('_') && id.is_none(), "a message of its own: {line}");
                assert!(events.is_empty() && replies.is_empty(), "{line}");
            }
            (None, Some(id)) => {
                let asked = self.asked.get(&id).cloned().unwrap_or_default();
                self.answered(&asked, line, events);
                self.working = replies.iter().any(|reply| reply["method"] == "session/prompt");
            }
            (None, None) => panic!("no message: {line}"),
        }
    }

    fn answered(&mut self, asked: &str, line: &Value, events: &[Event]) {
        let result = &line["result"];
        if line.get("error").is_some() {
            let error: acp::Error = read(&line["error"]);
            let Some(Event::Failed { kind, message }) = events.last() else {
                panic!("{line}: {events:?}")
            };
            assert!(message.starts_with(&error.message), "{message}");
            if error.code == acp::ErrorCode::AuthRequired {
                assert_eq!(*kind, FailKind::Auth);
            }
            self.kinds.insert("error");
            return;
        }
        match asked {
            "initialize" => {
                let said: acp::InitializeResponse = read(result);
                assert_eq!(said.protocol_version, acp_version());
                let info = said.agent_info.unwrap();
                let name = info.name.rsplit('/').next().unwrap();
                assert_eq!(events, [Event::Agent(format!("{name} {}", info.version))]);
                assert!(said.agent_capabilities.load_session);
            }
            "session/new" => {
                let said: acp::NewSessionResponse = read(result);
                self.session = said.session_id.0.to_string();
                assert_eq!(events, [Event::Session(self.session.clone())]);
                let modes = said.modes.unwrap().available_modes;
                assert!(!modes.is_empty());
            }
            "session/resume" => {
                let _: acp::ResumeSessionResponse = read(result);
                assert_eq!(events, [Event::Session(self.session.clone())]);
            }
            "session/set_mode" => {
                let _: acp::SetSessionModeResponse = read(result);
                assert!(events.is_empty(), "{events:?}");
            }
            "session/prompt" => self.prompted(&read(result), events),
            other => panic!("{other} was not asked"),
        }
    }

    fn prompted(&mut self, said: &acp::PromptResponse, events: &[Event]) {
        let spent = events
            .iter()
            .find_map(|event| if let Event::Usage(usage) = event { Some(*usage) } else { None });
        if let Some(theirs) = &said.usage {
            let cached = theirs.cached_read_tokens.unwrap_or(0);
            let ours = spent.unwrap();
            assert_eq!(ours.input_tokens, theirs.input_tokens + cached);
            assert_eq!((ours.cached_tokens, ours.output_tokens), (cached, theirs.output_tokens));
        }
        let is_failure = said.meta.as_ref().is_some_and(|meta| {
            meta.get("jetbrains").and_then(|it| it.pointer("/air/sessionFailure")).is_some()
        });
        match (said.stop_reason, events.last()) {
            (acp::StopReason::EndTurn, Some(Event::Done)) if !is_failure => {
                assert!(events.contains(&Event::Text(self.said.clone())), "{events:?}");
                self.kinds.insert("end of a turn");
            }
            (acp::StopReason::EndTurn, Some(Event::Failed { .. })) if is_failure => {
                self.kinds.insert("failure of a vendor's");
            }
            // We cancelled it, or it ended itself because it was refused something.
            (acp::StopReason::Cancelled, last) => {
                assert_ne!(last, Some(&Event::Done));
                self.kinds.insert("cancelled");
            }
            (reason, last) => panic!("{reason:?} is no {last:?}"),
        }
        self.said.clear();
    }

    fn permitted(
        &mut self,
        asked: &acp::RequestPermissionRequest,
        outcome: &acp::RequestPermissionOutcome,
        events: &[Event],
    ) {
        let acp::RequestPermissionOutcome::Selected(selected) = outcome else {
            panic!("nothing was chosen")
        };
        let option = asked.options.iter().find(|it| it.option_id == selected.option_id).unwrap();
        let id = asked.tool_call.tool_call_id.0.to_string();
        if option.kind == acp::PermissionOptionKind::AllowOnce {
            self.begins(&id, events);
            self.kinds.insert("allowed");
        } else {
            // Never anything for more than once.
            assert_eq!(option.kind, acp::PermissionOptionKind::RejectOnce);
            assert!(matches!(events, [Event::Warning(_)]), "{events:?}");
            self.kinds.insert("refused");
        }
    }

    /// A call is begun once, whoever tells it first.
    fn begins(&mut self, id: &str, events: &[Event]) {
        let is_start =
            |event: &&Event| matches!(event, Event::ToolStart { id: it, .. } if it == id);
        let begins = events.iter().filter(is_start).count();
        assert_eq!(begins, usize::from(self.begun.insert(id.to_owned())), "{id}: {events:?}");
    }

    fn ends(status: Option<acp::ToolCallStatus>, id: &str, events: &[Event]) {
        let ok = match status {
            Some(acp::ToolCallStatus::Completed) => Some(true),
            Some(acp::ToolCallStatus::Failed) => Some(false),
            _ => None,
        };
        let end = |ok| Event::ToolEnd { id: id.to_owned(), ok };
        let ends = [true, false].into_iter().find(|ok| events.contains(&end(*ok)));
        assert_eq!(ends, ok, "{id}: {events:?}");
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "an enum of others, which grows; what is not recorded has no rule"
    )]
    fn update(&mut self, update: acp::SessionUpdate, events: &[Event]) {
        let heard = events.iter().filter(|event| matches!(event, Event::Heard(_))).count();
        let rest = &events[heard..];
        match update {
            acp::SessionUpdate::AgentMessageChunk(chunk) => {
                assert!(rest.is_empty(), "{rest:?}");
                let acp::ContentBlock::Text(text) = chunk.content else { panic!("no text") };
                self.said.push_str(&text.text);
                self.kinds.insert("message");
            }
            acp::SessionUpdate::ToolCall(call) => {
                let id = call.tool_call_id.0.to_string();
                self.begins(&id, rest);
                let start = Event::ToolStart { id: id.clone(), name: call.title };
                assert!(rest.contains(&start), "{rest:?}");
                Self::ends(Some(call.status), &id, rest);
                self.said.clear();
                self.kinds.insert("call");
            }
            acp::SessionUpdate::ToolCallUpdate(call) => {
                let id = call.tool_call_id.0.to_string();
                Self::ends(call.fields.status, &id, rest);
                self.said.clear();
                self.kinds.insert("update of a call");
            }
            acp::SessionUpdate::UsageUpdate(usage) => {
                let (used, size) = (Some(usage.used), Some(usage.size));
                assert!(rest.contains(&Event::Context { used, size }), "{rest:?}");
                let counts = |event: &&Event| {
                    matches!(event, Event::Context { .. } | Event::Used(_) | Event::UsageTotal(_))
                };
                assert_eq!(rest.iter().filter(counts).count(), rest.len(), "{rest:?}");
                self.kinds.insert("usage");
            }
            acp::SessionUpdate::SessionInfoUpdate(_) => {
                // Where a vendor puts what went wrong.
                assert!(rest.iter().all(|event| matches!(event, Event::Retry(_))), "{rest:?}");
            }
            acp::SessionUpdate::AvailableCommandsUpdate(_)
            | acp::SessionUpdate::ConfigOptionUpdate(_) => assert!(rest.is_empty(), "{rest:?}"),
            other => panic!("nothing recorded says {other:?}"),
        }
    }
}

fn acp_version() -> agent_client_protocol_schema::ProtocolVersion {
    serde_json::from_value(json!(VERSION)).unwrap()
}

fn compare(it: &Recording) -> BTreeSet<&'static str> {
    let mut replay = Replay::of(it);
    let mut compared = AnswerComparison {
        asked: BTreeMap::from([(0, "initialize".to_owned())]),
        session: opening(it).resume.unwrap_or_default(),
        working: false,
        said: String::new(),
        begun: BTreeSet::new(),
        kinds: BTreeSet::new(),
    };
    for line in lines(it.name) {
        let before = replay.told.len();
        let events = replay.feed(line.as_bytes());
        let value: Value = serde_json::from_str(&line).unwrap();
        compared.line(&value, &events, &replay.told[before..]);
    }
    compared.kinds
}

#[test]
fn what_agents_say_is_read_as_the_protocol_says() {
    let kinds: BTreeSet<_> = recordings().iter().flat_map(compare).collect();
    let all = [
        "allowed",
        "call",
        "cancelled",
        "end of a turn",
        "error",
        "failure of a vendor's",
        "message",
        "refused",
        "update of a call",
        "usage",
    ];
    assert_eq!(kinds, BTreeSet::from(all));
}
