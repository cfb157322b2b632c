//! The Agent Client Protocol: our half of it, by hand (`spec/agents.md` section 4).
//!
//! Lines of JSON-RPC 2.0 over standard input and output. We offer neither files nor terminals: an agent
//! works with its own tools, in the sandbox that we put around it, and asks for what it wants to do.

use serde_json::{Value, json};

use crate::agents::blame::classify;
use crate::agents::codec::{Codec, Event, number, text};
use crate::agents::words::Words;
use crate::domain::ids::MessageId;
use crate::domain::run::FailKind;
use crate::domain::usage::{Usage, told_usd};

mod calls;
pub mod known;
mod mode;
mod past;
mod pending_call;
mod permission;
mod settings;
mod told;
mod turn_start;

use calls::Calls;
use past::Past;
use pending_call::PendingCall;
use permission::Policy;
pub use settings::AcpSettings;
use told::{failed, reason, spent, trouble};
pub(super) use turn_start::TurnStart;

/// The version of the protocol.
pub(super) const VERSION: u64 = 1;
/// How often an agent that stops because it was refused something is told to go on without it.
const GO_ON: u32 = 3;
/// What it is told then.
const REFUSED: &str =
    "Your role may not do that. Go on without it, and end your step as you were told.";

/// What is written before the agent has said anything.
pub(super) fn hello() -> Value {
    request(
        0,
        "initialize",
        json!({
            "protocolVersion": VERSION,
            "clientInfo": {"name": "teams", "version": env!("CARGO_PKG_VERSION")},
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false,
                // Else codex-acp tells what went wrong with the model as if the model had said it.
                "_meta": {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionFailure"]}}}},
        }),
    )
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Speaks the protocol.
#[derive(Debug)]
pub struct AcpCodec {
    opening: TurnStart,
    replies: Vec<Value>,
    asked: PendingCall,
    id: u64,
    session: String,
    resumes: bool,
    loads: bool,
    messages: Vec<(Option<String>, String)>,
    /// A tool was used since the last piece of a message.
    cut: bool,
    waiting: Vec<(Option<MessageId>, String)>,
    /// Words in the prompt under way, until the agent answers to it.
    told: Vec<MessageId>,
    cancelling: bool,
    stopping: bool,
    refused: bool,
    gone_on: u32,
    /// What its requests to the model have used in the prompt under way, and what the last one took.
    used: Usage,
    held: u64,
    /// Whether what is told next is of another request.
    asks_anew: bool,
    /// What went wrong with the model in the prompt under way.
    trouble: Option<Event>,
    /// What was asked by which request, where a stream is read again.
    past: Option<Past>,
    calls: Calls,
}

impl AcpCodec {
    pub(super) fn new(opening: TurnStart) -> AcpCodec {
        AcpCodec {
            opening,
            replies: Vec::new(),
            asked: PendingCall::Initialize,
            id: 0,
            session: String::new(),
            resumes: false,
            loads: false,
            messages: Vec::new(),
            cut: false,
            waiting: Vec::new(),
            told: Vec::new(),
            cancelling: false,
            stopping: false,
            refused: false,
            gone_on: 0,
            used: Usage::default(),
            held: 0,
            asks_anew: true,
            trouble: None,
            past: None,
            calls: Calls::default(),
        }
    }

    /// The same for a stream that is read again, of which it is known what stood in its input: answers are told
    /// apart by that, because nobody answers anew.
    pub(super) fn again(opening: TurnStart, input: &str) -> AcpCodec {
        let past = Past::read(input);
        AcpCodec { session: past.session.clone(), past: Some(past), ..AcpCodec::new(opening) }
    }

    fn ask(&mut self, asked: PendingCall, method: &str, params: Value) {
        self.id += 1;
        self.asked = asked;
        self.replies.push(request(self.id, method, params));
    }

    fn prompt(&mut self, words: &str) {
        self.messages.clear();
        self.trouble = None;
        self.refused = false;
        self.cancelling = false;
        let prompt = json!([{"type": "text", "text": words}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        self.ask(PendingCall::Prompt, "session/prompt", params);
    }

    fn cancel(&mut self) {
        if self.asked == PendingCall::Prompt && !self.cancelling {
            self.cancelling = true;
            self.replies.push(json!({"jsonrpc": "2.0", "method": "session/cancel",
                "params": {"sessionId": self.session}}));
        }
    }

    fn open(&mut self, earlier: bool) {
        let cwd = self.opening.worktree.to_string_lossy().into_owned();
        let mut params = json!({"cwd": cwd, "mcpServers": self.opening.servers});
        match (self.opening.resume.clone(), self.resumes, self.loads) {
            (Some(id), true, _) if earlier => {
                params["sessionId"] = Value::from(id.as_str());
                self.session = id;
                self.ask(PendingCall::Earlier, "session/resume", params);
            }
            (Some(id), false, true) if earlier => {
                params["sessionId"] = Value::from(id.as_str());
                self.session = id;
                self.ask(PendingCall::Earlier, "session/load", params);
            }
            (_, _, _) => self.ask(PendingCall::New, "session/new", params),
        }
    }

    /// The conversation is there.
    fn opened(&mut self, result: &Value) -> Vec<Event> {
        let id = text(result, "sessionId");
        if !id.is_empty() {
            self.session = id;
        }
        // What cannot be gone on with is no conversation that anybody could keep.
        let kept = self.resumes || self.loads;
        let session = kept.then(|| Event::Session(self.session.clone()));
        match mode::setting(&self.opening, result) {
            Some((method, mut params)) => {
                params["sessionId"] = Value::from(self.session.as_str());
                self.ask(PendingCall::Mode, method, params);
            }
            None => self.begin(),
        }
        session.into_iter().collect()
    }

    fn begin(&mut self) {
        let prompt = std::mem::take(&mut self.opening.prompt);
        // What was said while it opened, it hears with the first prompt.
        self.prompt_with_words(vec![prompt]);
    }

    /// Goes on with a prompt, and with what was said meanwhile.
    fn prompt_with_words(&mut self, mut prompt: Vec<String>) {
        let (ids, words): (Vec<_>, Vec<_>) = self.waiting.drain(..).unzip();
        prompt.extend(words);
        self.prompt(&prompt.join("\n\n"));
        self.told = ids.into_iter().flatten().collect();
    }

    /// An answer to what we asked.
    fn answered(&mut self, answer: &Value) -> Vec<Event> {
        let error = answer.get("error");
        let result = answer.get("result").unwrap_or(&Value::Null);
        let asked = std::mem::replace(&mut self.asked, PendingCall::Nothing);
        match (asked, error) {
            (PendingCall::Initialize, None) => self.initialized(result),
            (PendingCall::Earlier | PendingCall::New, None) => self.opened(result),
            (PendingCall::Earlier, Some(_)) if self.opening.anew => {
                self.open(false);
                Vec::new()
            }
            // A mode that the agent does not take is said, and no reason not to work.
            (PendingCall::Mode, error) => {
                self.begin();
                error.map(|error| Event::Warning(reason(error))).into_iter().collect()
            }
            (PendingCall::Prompt, error) => self.prompted(result, error),
            (PendingCall::Nothing, _) => Vec::new(),
            (PendingCall::Initialize | PendingCall::Earlier | PendingCall::New, Some(error)) => {
                vec![failed(error)]
            }
        }
    }

    /// An answer to what an earlier team asked. After a prompt that was not the last one it was told more.
    fn answered_before(&mut self, answer: &Value, asked: PendingCall, last: bool) -> Vec<Event> {
        self.asked = asked;
        if asked == PendingCall::Prompt && !last {
            self.messages.clear();
            self.trouble = None;
            let spent = spent(answer.get("result").unwrap_or(&Value::Null));
            return self.calls.over().into_iter().chain([Event::Usage(spent)]).collect();
        }
        self.answered(answer)
    }

    fn initialized(&mut self, result: &Value) -> Vec<Event> {
        let version = number(result, "protocolVersion");
        if version != VERSION {
            let message = format!("it speaks version {version} of the protocol, not {VERSION}");
            return vec![Event::Failed { kind: FailKind::BadRequest, message }];
        }
        let can = |path: &str| {
            result.pointer(path).is_some_and(|it| !it.is_null() && *it != Value::Bool(false))
        };
        self.resumes = can("/agentCapabilities/sessionCapabilities/resume");
        self.loads = can("/agentCapabilities/loadSession");
        self.open(true);
        let info = result.get("agentInfo").unwrap_or(&Value::Null);
        let name = [text(info, "name"), text(info, "version")].join(" ");
        let short = name.rsplit('/').next().unwrap_or_default().trim().to_owned();
        Some(short).filter(|name| !name.is_empty()).map(Event::Agent).into_iter().collect()
    }

    /// A prompt is over.
    fn prompted(&mut self, result: &Value, error: Option<&Value>) -> Vec<Event> {
        let mut events: Vec<Event> = self.told.drain(..).map(Event::Heard).collect();
        events.extend(self.calls.over());
        let told = spent(result);
        let seen = std::mem::take(&mut self.used);
        self.asks_anew = true;
        let is_told = told.tokens() > 0 || result.get("usage").is_some_and(|it| !it.is_null());
        events.push(Event::Usage(if is_told { told } else { seen }));
        if !self.waiting.is_empty() && !self.stopping {
            self.prompt_with_words(Vec::new());
            return events;
        }
        if let Some(error) = error {
            events.push(failed(error));
            return events;
        }
        if let Some(trouble) = trouble(result, true).or(self.trouble.take())
            && !self.stopping
        {
            events.push(trouble);
            return events;
        }
        let fail = |kind, message: &str| Event::Failed { kind, message: message.to_owned() };
        let end = match text(result, "stopReason").as_str() {
            "end_turn" => {
                events.push(Event::Text(self.answer()));
                Event::Done
            }
            "cancelled" if self.refused && !self.stopping && self.gone_on < GO_ON => {
                self.gone_on += 1;
                self.prompt(REFUSED);
                return events;
            }
            "cancelled" if self.stopping => fail(FailKind::Cancelled, "it was cancelled"),
            "cancelled" => fail(FailKind::Other, "it stopped by itself before it was done"),
            "refusal" => {
                events.push(Event::Text(self.answer()));
                fail(FailKind::Refusal, "it declined")
            }
            "max_tokens" => fail(FailKind::MaxTurns, "its answer was longer than it may be"),
            "max_turn_requests" => fail(FailKind::MaxTurns, "it used all its turns"),
            other => fail(FailKind::Other, &format!("it ended with `{other}`")),
        };
        events.push(end);
        events
    }

    /// The last message. Pieces without a name are notes where others have one.
    fn answer(&self) -> String {
        let named = self.messages.iter().rev().find(|(id, _)| id.is_some());
        named.or_else(|| self.messages.last()).map(|(_, text)| text.clone()).unwrap_or_default()
    }

    fn update(&mut self, update: &Value) -> Vec<Event> {
        if self.asked != PendingCall::Prompt {
            // An earlier conversation is being played back.
            return Vec::new();
        }
        let mut events: Vec<Event> = self.told.drain(..).map(Event::Heard).collect();
        match text(update, "sessionUpdate").as_str() {
            "agent_message_chunk" => {
                let id = Some(text(update, "messageId")).filter(|id| !id.is_empty());
                let piece = update.pointer("/content/text").and_then(Value::as_str);
                let piece = piece.unwrap_or_default();
                match self.messages.last_mut() {
                    Some((last, text)) if *last == id && (id.is_some() || !self.cut) => {
                        text.push_str(piece);
                    }
                    Some(_) | None => self.messages.push((id, piece.to_owned())),
                }
                self.cut = false;
            }
            "agent_thought_chunk" => {
                let piece = update.pointer("/content/text").and_then(Value::as_str);
                events.push(Event::Thought(piece.unwrap_or_default().to_owned()));
            }
            "tool_call" => {
                self.cut = true;
                events.extend(self.calls.begin(update));
                events.extend(self.calls.ended(update));
            }
            "tool_call_update" => {
                self.cut = true;
                events.extend(self.calls.update(update));
            }
            "session_info_update" => match trouble(update, false) {
                Some(failed @ Event::Failed { .. }) => self.trouble = Some(failed),
                other => events.extend(other),
            },
            "usage_update" => {
                let cost_usd = told_usd(update.pointer("/cost/amount").and_then(Value::as_f64));
                if cost_usd > 0.0 {
                    events.push(Event::UsageTotal(Usage { cost_usd, ..Usage::default() }));
                }
                let count = |key: &str| update.get(key).and_then(Value::as_u64);
                let (used, size) = (count("used"), count("size").filter(|size| *size > 0));
                events.push(Event::Context { used, size });
                // Each request to the model takes what the conversation holds. Many agents tell it when the answer
                // begins and again when it ends.
                if let Some(used) = used {
                    let before = if std::mem::take(&mut self.asks_anew) { 0 } else { self.held };
                    let input_tokens = used.saturating_sub(before);
                    self.held = used;
                    self.used = self.used.plus(Usage { input_tokens, ..Usage::default() });
                    events.extend((input_tokens > 0).then_some(Event::Used(self.used)));
                }
            }
            _ => {}
        }
        self.asks_anew |= events.iter().any(|event| matches!(event, Event::ToolEnd { .. }));
        events
    }

    /// Something that the agent asks of us.
    fn asks(&mut self, id: &Value, method: &str, params: &Value) -> Vec<Event> {
        if method != "session/request_permission" {
            self.replies.push(json!({"jsonrpc": "2.0", "id": id,
                "error": {"code": -32601, "message": format!("{method} is not offered")}}));
            return vec![Event::Warning(format!("it asked for {method}, which is not offered"))];
        }
        let said = params.get("toolCall").unwrap_or(&Value::Null);
        if self.cancelling {
            self.permit(id, &permission::cancelled());
            return Vec::new();
        }
        let policy = Policy {
            access: &self.opening.access,
            worktree: &self.opening.worktree,
            web: self.opening.web,
            confined: self.opening.confined,
        };
        let call = self.calls.learn(said);
        let allowed = policy.allows(call);
        let title = call.title.clone();
        let (outcome, chosen) = permission::choose(params, allowed);
        self.permit(id, &outcome);
        if allowed && chosen {
            return self.calls.begin(said);
        }
        self.refused = true;
        vec![Event::Warning(format!("refused: {title}"))]
    }

    fn permit(&mut self, id: &Value, outcome: &Value) {
        self.replies.push(json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}));
    }
}

impl Codec for AcpCodec {
    fn line(&mut self, line: &Value) -> Vec<Event> {
        let params = line.get("params").unwrap_or(&Value::Null);
        match (line.get("method").and_then(Value::as_str), line.get("id")) {
            (Some(method), Some(id)) => self.asks(id, method, params),
            (Some("session/update"), None) => {
                self.update(params.get("update").unwrap_or(&Value::Null))
            }
            (Some(_), None) => Vec::new(),
            (None, Some(id)) => match (&self.past, id.as_u64()) {
                (None, id) if id == Some(self.id) => self.answered(line),
                (Some(past), Some(id)) => match past.asked(id) {
                    Some((asked, last)) => self.answered_before(line, asked, last),
                    None => Vec::new(),
                },
                (_, _) => Vec::new(),
            },
            (None, _) => Vec::new(),
        }
    }

    fn without_terminal(&self, stderr_tail: &str) -> FailKind {
        classify(stderr_tail).unwrap_or(FailKind::NoTerminal)
    }

    fn replies(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.replies)
    }

    fn hear(&mut self, words: &Words, text: &str) -> bool {
        self.waiting.push((Some(words.id), text.to_owned()));
        self.cancel();
        true
    }

    fn hint(&mut self, text: &str) -> bool {
        self.waiting.push((None, text.to_owned()));
        self.cancel();
        true
    }

    fn stop(&mut self) -> bool {
        self.stopping = true;
        self.cancel();
        self.cancelling
    }
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
