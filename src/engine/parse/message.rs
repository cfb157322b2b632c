//! Envelope text of the relay channel and plain text of people (`spec/teams.md` 5.6 and 5.7).

use serde_json::{Map, Value};

use super::{detect_target_role, lines, strip_mentions};
use crate::domain::role::Role;

/// What a text asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedMessage {
    /// The request it belongs to.
    pub request_id: Option<String>,
    /// Who wrote it, as far as the text says.
    pub sender: String,
    /// Who it is for.
    pub target: Role,
    /// What is wanted.
    pub intent: String,
    /// How urgent it is.
    pub urgency: String,
    /// What it is about, in short.
    pub scope: String,
    /// Files that it names.
    pub artifacts: Vec<String>,
    /// Parameters.
    pub params: Map<String, Value>,
    /// The text itself, as it was written.
    pub body: String,
}

const KEYS: [&str; 9] =
    ["request_id", "from", "to", "intent", "action", "urgency", "scope", "artifacts", "params"];

/// Reads an envelope. Header lines (`key: value`) stand before the first blank line and the first of
/// a key counts, so that a body cannot change the header (`spec/teams.md` 13.A #11). The body is
/// kept as written (#12).
#[must_use]
pub fn parse_message_content(
    content: &str,
    bots: &[(Role, String)],
    default_sender: &str,
    default_target: Role,
) -> ParsedMessage {
    let mentioned = detect_target_role(content, bots);
    let text = strip_mentions(content, bots);
    let whole = trim_blank_lines(&text);
    let (header, body) = split_header(&whole);
    let value =
        |key: &str| header.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str());
    let filled = |key: &str| value(key).filter(|value| !value.is_empty());
    let target = match filled("to") {
        Some(name) => Role::parse(name).unwrap_or(Role::Orchestrator),
        None => mentioned.unwrap_or(default_target),
    };
    let mut message = ParsedMessage {
        request_id: filled("request_id").map(str::to_owned),
        sender: filled("from").unwrap_or(default_sender).to_owned(),
        target,
        intent: filled("intent").or(filled("action")).unwrap_or("route").to_lowercase(),
        urgency: filled("urgency").unwrap_or("normal").to_lowercase(),
        scope: String::new(),
        artifacts: filled("artifacts").map(artifacts).unwrap_or_default(),
        params: filled("params").map(params).unwrap_or_default(),
        body,
    };
    let scope = filled("scope").map(str::to_owned);
    message.scope = scope.unwrap_or_else(|| {
        let text = if message.body.trim().is_empty() { &whole } else { &message.body };
        text.trim().to_owned()
    });
    if header.is_empty() {
        read_command(&mut message);
    }
    message
}

/// Reads what a person wrote: nothing in it is a header, the intent is always `route`, the body is
/// the text itself (`spec/teams.md` 5.7).
#[must_use]
pub fn parse_user_text(content: &str, bots: &[(Role, String)], sender: &str) -> ParsedMessage {
    let body = trim_blank_lines(&strip_mentions(content, bots));
    ParsedMessage {
        request_id: None,
        sender: sender.to_owned(),
        target: detect_target_role(content, bots).unwrap_or(Role::Orchestrator),
        intent: "route".to_owned(),
        urgency: "normal".to_owned(),
        scope: body.trim().to_owned(),
        artifacts: Vec::new(),
        params: Map::new(),
        body,
    }
}

/// Header fields (first of a key counts) and the rest as text.
fn split_header(text: &str) -> (Vec<(&'static str, String)>, String) {
    let mut fields: Vec<(&'static str, String)> = Vec::new();
    let mut body = Vec::new();
    let mut open = true;
    for line in lines(text) {
        open = open && !line.trim().is_empty();
        match header_line(line).filter(|_| open) {
            Some((key, value)) => {
                if fields.iter().all(|(known, _)| *known != key) {
                    fields.push((key, value));
                }
            }
            None => body.push(line),
        }
    }
    (fields, trim_blank_lines(&body.join("\n")))
}

fn header_line(line: &str) -> Option<(&'static str, String)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim().to_lowercase();
    let key = KEYS.into_iter().find(|known| *known == key)?;
    Some((key, value.trim().to_owned()))
}

/// Without blank lines before and after, and without blanks at the end.
pub(super) fn trim_blank_lines(text: &str) -> String {
    let all = lines(text);
    let first = all.iter().position(|line| !line.trim().is_empty()).unwrap_or(all.len());
    all.get(first..).unwrap_or_default().join("\n").trim_end().to_owned()
}

fn artifacts(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

fn params(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// `approve`, `cancel` and `status` as the first word of a text without header.
fn read_command(message: &mut ParsedMessage) {
    let body = message.body.clone();
    let mut words = body.split_whitespace();
    let Some(first) = words.next().map(str::to_lowercase) else {
        return;
    };
    if !matches!(first.as_str(), "approve" | "cancel" | "status") {
        return;
    }
    message.request_id = request_id_in(&body);
    if first == "status"
        && let Some(what @ ("sprint" | "backlog")) = words.next().map(str::to_lowercase).as_deref()
    {
        message.scope = what.to_owned();
    }
    message.intent = first;
}

/// The id after `request_id:` somewhere in a text.
fn request_id_in(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let at = lower.find("request_id")?;
    let rest = text.get(at + "request_id".len()..)?.trim_start().strip_prefix(':')?.trim_start();
    let id: String = rest
        .chars()
        .take_while(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-'))
        .collect();
    (!id.is_empty()).then_some(id)
}
