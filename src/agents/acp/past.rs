//! What was asked of an agent before the team was started again.

use std::collections::BTreeMap;

use serde_json::Value;

use super::pending_call::PendingCall;
use crate::agents::codec::text;

/// The requests in an agent's input.
#[derive(Debug, Default)]
pub(super) struct Past {
    asked: BTreeMap<u64, PendingCall>,
    /// The conversation that they were about; blank before there was one.
    pub(super) session: String,
}

impl Past {
    /// Reads an agent's input. Half a line at its end was not said.
    pub(super) fn read(input: &str) -> Past {
        let mut past = Past::default();
        for line in input.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if let Some(id) = line.pointer("/params/sessionId").and_then(Value::as_str) {
                id.clone_into(&mut past.session);
            }
            let asked = match text(&line, "method").as_str() {
                "initialize" => PendingCall::Initialize,
                "session/resume" | "session/load" => PendingCall::Earlier,
                "session/new" => PendingCall::New,
                "session/set_mode" | "session/set_config_option" => PendingCall::Mode,
                "session/prompt" => PendingCall::Prompt,
                _ => continue,
            };
            past.asked.extend(line.get("id").and_then(Value::as_u64).map(|id| (id, asked)));
        }
        past
    }

    /// What a request asked, and whether nothing was asked after it.
    pub(super) fn asked(&self, id: u64) -> Option<(PendingCall, bool)> {
        let asked = *self.asked.get(&id)?;
        Some((asked, self.asked.last_key_value().is_some_and(|(last, _)| *last == id)))
    }
}
