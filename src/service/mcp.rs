//! The Model Context Protocol, our half of it: JSON-RPC 2.0, a message a line, tools and nothing else. It
//! holds no state and decides nothing; what a tool does is asked of the team by whoever serves.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

use super::control::CallSubject;
use super::tool::Tool;

/// The versions of the protocol that are spoken, the newest last. They differ in nothing that is used here.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Bytes of the longest message. The rest of a longer line is thrown away.
pub const LONGEST: usize = 4 << 20;
/// Messages of one batch.
const BATCH: usize = 100;

/// Error codes of JSON-RPC.
const PARSE: i64 = -32700;
const INVALID: i64 = -32600;
const NO_METHOD: i64 = -32601;
const PARAMS: i64 = -32602;

/// Serves until the input ends. `ask` brings something to the team and has its words, or its refusal.
///
/// # Errors
/// Where input or output break.
pub fn serve(
    input: impl BufRead,
    mut output: impl Write,
    mut ask: impl FnMut(CallSubject) -> Result<String, String>,
) -> std::io::Result<()> {
    let mut lines = Lines { input, over: false };
    while let Some(line) = lines.next()? {
        let answer = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => None,
            Line::Whole(line) => answer(&line, &mut ask),
            Line::TooLong => {
                let words = format!("a message has at most {LONGEST} bytes");
                Some(error(&Value::Null, INVALID, &words))
            }
        };
        if let Some(answer) = answer {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
    Ok(())
}

/// A line of the input.
enum Line {
    Whole(Vec<u8>),
    TooLong,
}

struct Lines<R> {
    input: R,
    over: bool,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> std::io::Result<Option<Line>> {
        if self.over {
            return Ok(None);
        }
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let piece = match self.input.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if piece.is_empty() {
                self.over = true;
                break;
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(piece.len(), |at| at + 1);
            if line.len() + taken > LONGEST {
                too_long = true;
                line = Vec::new();
            }
            if !too_long {
                line.extend_from_slice(piece.get(..taken).unwrap_or_default());
            }
            self.input.consume(taken);
            if end.is_some() {
                break;
            }
        }
        Ok(match (too_long, self.over && line.is_empty()) {
            (true, _) => Some(Line::TooLong),
            (false, true) => None,
            (false, false) => Some(Line::Whole(line)),
        })
    }
}

/// The answer to a message; none to a notification, nor to an answer.
fn answer(
    line: &[u8],
    ask: &mut impl FnMut(CallSubject) -> Result<String, String>,
) -> Option<Value> {
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(_) => return Some(error(&Value::Null, PARSE, "that is no JSON")),
    };
    let Value::Array(batch) = message else { return one(&message, ask) };
    if batch.is_empty() || batch.len() > BATCH {
        return Some(error(&Value::Null, INVALID, "a batch holds from 1 to 100 messages"));
    }
    let answers: Vec<Value> = batch.iter().filter_map(|message| one(message, ask)).collect();
    (!answers.is_empty()).then_some(Value::Array(answers))
}

fn one(
    message: &Value,
    ask: &mut impl FnMut(CallSubject) -> Result<String, String>,
) -> Option<Value> {
    let invalid = |id: &Value| Some(error(id, INVALID, "that is no request of JSON-RPC 2.0"));
    let Value::Object(fields) = message else { return invalid(&Value::Null) };
    let id = match fields.get("id") {
        Some(id @ (Value::String(_) | Value::Number(_))) => Some(id),
        None => None,
        Some(_) => return invalid(&Value::Null),
    };
    let method = match fields.get("method") {
        Some(Value::String(method)) => method.as_str(),
        // An answer to something: nothing was asked.
        None if fields.contains_key("result") || fields.contains_key("error") => return None,
        Some(_) | None => return invalid(id.unwrap_or(&Value::Null)),
    };
    let id = id?;
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id);
    }
    let params = fields.get("params").unwrap_or(&Value::Null);
    let outcome = match method {
        "initialize" => Ok(initialized(params)),
        "ping" => Ok(json!({})),
        "tools/list" => listed(ask),
        "tools/call" => called(params, ask),
        other => Err((NO_METHOD, format!("there is no method {}", short(other)))),
    };
    Some(match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, words)) => error(id, code, &words),
    })
}

fn initialized(params: &Value) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let known = VERSIONS.iter().find(|version| **version == wanted);
    let newest = VERSIONS.last().copied().unwrap_or_default();
    json!({
        "protocolVersion": known.copied().unwrap_or(newest),
        "capabilities": {"tools": {"listChanged": false}},
        "serverInfo": {"name": "teams", "title": "The team", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn listed(
    ask: &mut impl FnMut(CallSubject) -> Result<String, String>,
) -> Result<Value, (i64, String)> {
    let tools = match ask(CallSubject::Tools) {
        Ok(text) => serde_json::from_str::<Value>(&text).unwrap_or_default(),
        // Without a team there are no tools; that is said when one is called.
        Err(_) => Value::Null,
    };
    let tools = if tools.is_array() { tools } else { json!([]) };
    Ok(json!({ "tools": tools }))
}

fn called(
    params: &Value,
    ask: &mut impl FnMut(CallSubject) -> Result<String, String>,
) -> Result<Value, (i64, String)> {
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let Some(tool) = Tool::named(name) else {
        return Err((PARAMS, format!("there is no tool {}", short(name))));
    };
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => json!({}),
        Some(arguments @ Value::Object(_)) => arguments.clone(),
        Some(_) => return Err((PARAMS, "`arguments` is no object".to_owned())),
    };
    let (text, failed) = match ask(CallSubject::Use { tool, arguments }) {
        Ok(text) => (text, false),
        Err(words) => (words, true),
    };
    Ok(json!({"content": [{"type": "text", "text": text}], "isError": failed}))
}

fn error(id: &Value, code: i64, words: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": words}})
}

/// A name that somebody sent, short enough to be said back.
fn short(name: &str) -> String {
    name.chars().filter(|char| !char.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the server says to these lines; the team knows one tool and refuses every second call.
    fn said(input: &[u8]) -> Vec<Value> {
        let mut output = Vec::new();
        let mut calls = 0;
        let ask = |wanted| match wanted {
            CallSubject::Tools => Ok(r#"[{"name": "status"}]"#.to_owned()),
            CallSubject::Use { tool, arguments } => {
                calls += 1;
                let words = format!("{} {arguments}", tool.as_str());
                if calls % 2 == 0 { Err(words) } else { Ok(words) }
            }
            CallSubject::Command(_) | CallSubject::Question(_) => Err("not that".to_owned()),
        };
        serve(input, &mut output, ask).unwrap();
        let text = String::from_utf8(output).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn asked(message: Value) -> Value {
        said(message.to_string().as_bytes()).remove(0)
    }

    fn request(method: &str, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    }

    #[test]
    fn a_version_that_is_known_is_spoken_and_else_the_newest() {
        for (wanted, spoken) in [
            (json!("2024-11-05"), "2024-11-05"),
            (json!("2025-06-18"), "2025-06-18"),
            (json!("1999-01-01"), "2025-11-25"),
            (Value::Null, "2025-11-25"),
        ] {
            let answer = asked(request("initialize", json!({"protocolVersion": wanted})));
            assert_eq!(answer["result"]["protocolVersion"], spoken);
            assert!(answer["result"]["capabilities"]["tools"].is_object());
        }
    }

    #[test]
    fn tools_are_listed_and_called_and_a_refusal_is_for_the_model() {
        assert_eq!(asked(request("tools/list", json!({})))["result"]["tools"][0]["name"], "status");
        let call = |arguments: Value| {
            request("tools/call", json!({"name": "memory", "arguments": arguments}))
        };
        let both = format!("{}\n\n{}\n", call(json!({"a": 1})), call(Value::Null));
        let answers = said(both.as_bytes());
        assert_eq!(answers[0]["result"]["content"][0]["text"], "memory {\"a\":1}");
        assert_eq!(answers[0]["result"]["isError"], false);
        assert_eq!(answers[1]["result"]["content"][0]["text"], "memory {}");
        assert_eq!(answers[1]["result"]["isError"], true);
        assert_eq!(asked(request("ping", Value::Null))["result"], json!({}));
    }

    #[test]
    fn what_makes_no_sense_is_answered_as_the_protocol_says() {
        let table = [
            ("{", Some(PARSE)),
            ("\u{0}\u{1}", Some(PARSE)),
            ("7", Some(INVALID)),
            ("[]", Some(INVALID)),
            ("{}", Some(INVALID)),
            (r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#, Some(INVALID)),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Some(INVALID)),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Some(INVALID)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, Some(NO_METHOD)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, Some(PARAMS)),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"approve"}}"#,
                Some(PARAMS),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"status","arguments":7}}"#,
                Some(PARAMS),
            ),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, None),
            (r#"{"jsonrpc":"2.0","method":"no/such"}"#, None),
            (r#"{"jsonrpc":"2.0","id":9,"result":{}}"#, None),
            ("", None),
        ];
        for (line, wanted) in table {
            let answers = said(line.as_bytes());
            let codes: Vec<_> = answers.iter().map(|it| it["error"]["code"].as_i64()).collect();
            let wanted: Vec<_> = wanted.into_iter().map(Some).collect();
            assert_eq!(codes, wanted, "{line}: {answers:?}");
        }
    }

    #[test]
    fn what_is_no_utf_8_or_too_long_is_refused_and_the_next_line_is_served() {
        let ping = request("ping", Value::Null).to_string();
        let mut input = b"\xff\xfe{\n".to_vec();
        input.extend(std::iter::repeat_n(b'x', LONGEST + 10));
        input.extend(format!("\n{ping}").bytes());
        let answers = said(&input);
        assert_eq!(answers[0]["error"]["code"], PARSE);
        assert_eq!(answers[1]["error"]["code"], INVALID);
        assert_eq!(answers[2]["id"], 7);
        assert_eq!(answers.len(), 3);
    }

    #[test]
    fn a_batch_is_answered_as_one_and_notifications_in_it_not_at_all() {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled"});
        let answer = asked(json!([request("ping", Value::Null), note, 7]));
        assert_eq!(answer.as_array().map(Vec::len), Some(2), "{answer}");
        assert_eq!(said(json!([note]).to_string().as_bytes()), [] as [Value; 0]);
    }
}
