//! A scripted agent that speaks the Agent Client Protocol, to be run as a process.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// The test that plays it.
pub(crate) const ENTRY: &str = "support::acp_agent::plays_its_part";
/// The environment variable that says what it does.
pub(crate) const MODE: &str = "TEAMS_TEST_ACP";

struct Agent {
    mode: String,
    prompts: u32,
    asked: u64,
}

/// Not a test of its own: without the variable it does nothing.
#[test]
fn plays_its_part() {
    if let Ok(mode) = std::env::var(MODE) {
        // The harness has begun a line of its own.
        std::io::stdout().write_all(b"\n").unwrap();
        let mut agent = Agent { mode, prompts: 0, asked: 100 };
        while let Some(line) = heard() {
            if !agent.hears(&line) {
                return;
            }
        }
    }
}

fn heard() -> Option<Value> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).unwrap();
    (read > 0).then(|| serde_json::from_str(&line).unwrap())
}

fn say(line: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

fn update(update: Value) {
    let params = json!({"sessionId": "s-1", "update": update});
    say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
}

fn message(id: &str, text: &str) {
    update(json!({"sessionUpdate": "agent_message_chunk", "messageId": id,
        "content": {"type": "text", "text": text}}));
}

fn answer(summary: &str) -> String {
    json!({"status": "completed", "summary": summary, "proposals": {"workflow_transition": {}}})
        .to_string()
}

impl Agent {
    /// Whether it goes on.
    fn hears(&mut self, line: &Value) -> bool {
        let reply =
            |result: Value| say(&json!({"jsonrpc": "2.0", "id": line["id"], "result": result}));
        let fail = |code: i64, message: &str| {
            let error = json!({"code": code, "message": message});
            say(&json!({"jsonrpc": "2.0", "id": line["id"], "error": error}));
        };
        match line["method"].as_str().unwrap_or_default() {
            "initialize" => {
                let version = if self.mode == "version" { 9 } else { 1 };
                reply(
                    json!({"protocolVersion": version, "agentCapabilities": {"loadSession": true},
                    "agentInfo": {"name": "@test/scripted", "version": "1.0"}}),
                );
            }
            "session/new" => match self.mode.as_str() {
                "auth" => fail(-32000, "Authentication required"),
                _ => reply(json!({"sessionId": "s-1", "modes": {"currentModeId": "default",
                    "availableModes": [{"id": "read-only"}, {"id": "workspace-write"}]}})),
            },
            "session/load" if line["params"]["sessionId"] == "unknown" => {
                fail(-32602, "no such session");
            }
            "session/load" => {
                message("old", "this was said long ago");
                reply(json!({"modes": null}));
            }
            "session/set_mode" => reply(json!({})),
            "session/prompt" => return self.prompted(line),
            _ => {}
        }
        true
    }

    fn prompted(&mut self, line: &Value) -> bool {
        self.prompts += 1;
        let end = |reason: &str| {
            let usage = json!({"inputTokens": 100, "cachedReadTokens": 50, "outputTokens": 7});
            let result = json!({"stopReason": reason, "usage": usage});
            say(&json!({"jsonrpc": "2.0", "id": line["id"], "result": result}));
        };
        let text = line["params"]["prompt"][0]["text"].as_str().unwrap();
        match self.mode.as_str() {
            "429" => {
                let error = json!({"code": -32603, "message": "429 Too Many Requests"});
                say(&json!({"jsonrpc": "2.0", "id": line["id"], "error": error}));
            }
            "refusal" => end("refusal"),
            "max_tokens" => end("max_tokens"),
            "stopped" => end("cancelled"),
            "gone" => return false,
            "prose" if !text.contains("could not be taken") => {
                message("m", "All done!");
                end("end_turn");
            }
            "nearly_full" => {
                update(json!({"sessionUpdate": "usage_update", "used": 80_000, "size": 100_000}));
                message("m", &answer("did it"));
                end("end_turn");
            }
            "waits" | "thinks" if self.prompts == 1 => {
                update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "think",
                    "title": "thinking", "status": "in_progress"}));
                if self.mode == "thinks" {
                    update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t",
                        "status": "completed"}));
                }
                while let Some(line) = heard() {
                    if line["method"] == "session/cancel" {
                        break;
                    }
                }
                end("cancelled");
            }
            "waits" => {
                let summary =
                    if text.contains("make it blue") { "it is blue" } else { "it is not" };
                message("m", &answer(summary));
                end("end_turn");
            }
            _ => {
                self.works();
                end("end_turn");
            }
        }
        true
    }

    fn works(&mut self) {
        let tree = std::env::current_dir().unwrap();
        update(
            json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}),
        );
        for (path, name) in
            [(tree.join("made.txt"), "made.txt"), (tree.join("../beside.txt"), "beside.txt")]
        {
            let call = json!({"toolCallId": name, "kind": "edit", "title": name,
                "locations": [{"path": path}]});
            let allowed = self.asks(
                "session/request_permission",
                json!({"toolCall": call, "options": [{"optionId": "yes", "kind": "allow_once"},
                    {"optionId": "no", "kind": "reject_once"}]}),
            );
            if allowed["result"]["outcome"]["optionId"] == "yes" {
                std::fs::write(path, "made\n").unwrap();
            }
        }
        let read = self.asks("fs/read_text_file", json!({"path": "/etc/passwd"}));
        assert!(read["error"].is_object(), "{read}");
        update(
            json!({"sessionUpdate": "usage_update", "cost": {"amount": 0.25, "currency": "USD"}}),
        );
        update(json!({"sessionUpdate": "something_new"}));
        let answer = answer("did it");
        let (one, two) = answer.split_at(9);
        message("m", one);
        message("m", two);
    }

    fn asks(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = heard().unwrap();
            if line["id"] == id {
                return line;
            }
        }
    }
}
