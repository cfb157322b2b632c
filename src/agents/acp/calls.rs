//! What is known of an agent's tool calls. What it says about one later, be it an update or a request for
//! permission, tells only what is new: Codex asks for an edit by its id and its places, and has told before that
//! it is one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::agents::codec::{Event, text};
use crate::agents::stuck::digest;

/// One call, as far as it was told.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// `edit`, `execute` and so on; blank where nobody said.
    pub(super) kind: String,
    pub(super) title: String,
    /// Every file that was ever named for it: what it asks to be allowed does not get less.
    pub(super) paths: BTreeSet<String>,
    /// Whether it is a call of a tool server, in the agent's own words and not in the model's (codex-acp).
    pub(super) served: bool,
    diffs: BTreeSet<String>,
    /// It is known what it is made with.
    made: bool,
    /// What it was begun with beside its title, for agents that never say what a call is made with.
    looks: Option<u64>,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Known,
    Begun,
    Ended,
}

/// The calls of a conversation.
#[derive(Debug, Default)]
pub(super) struct Calls(BTreeMap<String, Call>);

impl Calls {
    /// Takes what is said about a call; all that is known of it then.
    pub(super) fn learn(&mut self, said: &Value) -> &Call {
        self.known(said)
    }

    fn known(&mut self, said: &Value) -> &mut Call {
        let id = text(said, "toolCallId");
        if id.is_empty() {
            // Nothing that was told before is about it.
            self.0.remove(&id);
        }
        let call = self.0.entry(id).or_default();
        for (known, key) in [(&mut call.kind, "kind"), (&mut call.title, "title")] {
            let new = text(said, key);
            if !new.is_empty() {
                *known = new;
            }
        }
        let list = |key: &str| said.get(key).and_then(Value::as_array).into_iter().flatten();
        let named = |part: &Value| Some(text(part, "path")).filter(|path| !path.is_empty());
        call.paths.extend(list("locations").chain(list("content")).filter_map(named));
        let diffs = list("content").filter(|part| text(part, "type") == "diff");
        call.diffs.extend(diffs.filter_map(named));
        call.served |= said.pointer("/_meta/is_mcp_tool_call") == Some(&Value::Bool(true));
        call
    }

    /// A call is begun, or was allowed to. Agents that ask first may never say the former.
    pub(super) fn begin(&mut self, said: &Value) -> Vec<Event> {
        let id = text(said, "toolCallId");
        if self.0.get(&id).is_some_and(|call| call.state == State::Ended) {
            // Another one by the same id.
            self.0.remove(&id);
        }
        let mut events: Vec<Event> = self.made(said).into_iter().collect();
        let call = self.known(said);
        if call.state == State::Known {
            call.state = State::Begun;
            let with: Vec<&Value> = ["content", "locations"]
                .iter()
                .filter_map(|key| said.get(key)?.as_array())
                .flatten()
                .collect();
            call.looks = (!with.is_empty()).then(|| digest(&call.title, &json!(with)));
            events.push(Event::ToolStart { id, name: call.title.clone() });
        }
        events
    }

    /// More is told about a call.
    pub(super) fn update(&mut self, said: &Value) -> Vec<Event> {
        self.made(said).into_iter().chain(self.ended(said)).collect()
    }

    /// What a call is made with counts once, whenever it is told.
    fn made(&mut self, said: &Value) -> Option<Event> {
        let input = said.get("rawInput").filter(|input| match input {
            Value::Object(fields) => !fields.is_empty(),
            Value::String(text) => !text.is_empty(),
            Value::Array(_) => true,
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        })?;
        let call = self.known(said);
        if std::mem::replace(&mut call.made, true) {
            return None;
        }
        let title = text(said, "title");
        let name = if title.is_empty() { input.to_string() } else { title };
        Some(Event::Call { name, digest: digest("", input) })
    }

    /// What is said about a call's end. The files that it changed may have been told at its beginning.
    pub(super) fn ended(&mut self, said: &Value) -> Vec<Event> {
        let call = self.known(said);
        let ok = match text(said, "status").as_str() {
            "completed" => true,
            "failed" => false,
            _ => return Vec::new(),
        };
        call.state = State::Ended;
        let made = std::mem::replace(&mut call.made, true);
        let unsaid = call.looks.filter(|_| !made);
        let unsaid = unsaid.map(|digest| Event::Call { name: call.title.clone(), digest });
        let paths: Vec<String> = call.diffs.iter().cloned().collect();
        let files = (ok && !paths.is_empty()).then_some(Event::Files(paths));
        let end = Event::ToolEnd { id: text(said, "toolCallId"), ok };
        unsaid.into_iter().chain(files).chain([end]).collect()
    }

    /// A prompt is over, and with it the calls whose end nobody told: refused or cancelled ones.
    pub(super) fn over(&mut self) -> Vec<Event> {
        let open = self.0.iter_mut().filter(|(_, call)| call.state == State::Begun);
        open.map(|(id, call)| {
            call.state = State::Ended;
            Event::ToolEnd { id: id.clone(), ok: false }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_by_the_id_of_an_earlier_one_or_by_none_is_another_one() {
        let mut calls = Calls::default();
        let edit = json!({"toolCallId": "1", "kind": "edit", "title": "a", "status": "completed"});
        let again = json!({"toolCallId": "1", "title": "b"});
        let start = |name: &str| Event::ToolStart { id: "1".to_owned(), name: name.to_owned() };
        assert_eq!(calls.begin(&edit), [start("a")]);
        calls.ended(&edit);
        assert_eq!(calls.begin(&again), [start("b")]);
        assert_eq!((calls.begin(&again), calls.learn(&again).kind.as_str()), (vec![], ""));
        calls.learn(&json!({"kind": "read"}));
        assert_eq!(calls.learn(&json!({"title": "c"})).kind, "");
    }

    #[test]
    fn calls_of_which_nothing_but_a_title_is_told_are_not_taken_for_the_same_one() {
        let mut calls = Calls::default();
        let mut made = |id: &str, content: Value| {
            let call = json!({"toolCallId": id, "title": "Edit", "content": content, "status": "completed"});
            calls.begin(&call);
            let ended = calls.ended(&call);
            ended.into_iter().find_map(|it| {
                if let Event::Call { digest, .. } = it { Some(digest) } else { None }
            })
        };
        assert_eq!(made("1", json!([])), None);
        let one = made("2", json!([{"type": "diff", "path": "a", "newText": "x"}]));
        assert_eq!(one, made("3", json!([{"type": "diff", "path": "a", "newText": "x"}])));
        assert_ne!(one, made("4", json!([{"type": "diff", "path": "a", "newText": "y"}])));
    }
}
