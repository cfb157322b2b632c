//! Texts: envelopes, kickoffs, sprint words, mentions, paths, long messages.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};
use teams::domain::role::Role;
use teams::engine::parse::{
    ParsedMessage, detect_target_role, discord_length, is_sprint_finalize_text,
    is_sprint_start_text, normalize_artifact_hint, normalize_requirements, parse_kickoff,
    parse_message_content, resolve_internal_relay_action, split_discord_chunks,
};

use super::{Rule, Subject, text, whole};

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "resolve_internal_relay_action",
        ours: |args| {
            let action = resolve_internal_relay_action(
                text(args, "current_role"),
                text(args, "kind"),
                text(args, "envelope_target"),
            );
            json!(action.as_str())
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "normalize_artifact_hint",
        ours: |args| json!(normalize_artifact_hint(text(args, "value"))),
        theirs: whole,
        rules: &[Rule {
            row: "W26",
            instead: "a prefixed path is accepted with blanks after the prefix as well",
            applies: |args| text(args, "value").contains("./ "),
            expected: |_, theirs| json!(theirs.as_str().unwrap().trim()),
        }],
    },
    Subject {
        name: "detect_target_role_from_mentions",
        ours: |args| json!(detect_target_role(text(args, "content"), &bots(args))),
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "is_manual_sprint_start_text",
        ours: |args| json!(is_sprint_start_text(text(args, "content"))),
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "is_manual_sprint_finalize_text",
        ours: |args| json!(is_sprint_finalize_text(text(args, "content"))),
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "normalize_kickoff_requirements",
        ours: |args| json!(normalize_requirements(&args["value"])),
        theirs: whole,
        rules: &[Rule {
            row: "I16",
            instead: "nothing is no requirement, and a flag is spelled as JSON spells it",
            applies: |args| {
                let entries = args["value"].as_array();
                entries.into_iter().flatten().any(|entry| entry.is_null() || entry.is_boolean())
            },
            expected: |_, theirs| {
                let entries =
                    theirs.as_array().unwrap().iter().map(|entry| entry.as_str().unwrap());
                let kept = entries.filter(|entry| *entry != "None");
                json!(
                    kept.map(|entry| match entry {
                        "True" => "true",
                        "False" => "false",
                        other => other,
                    })
                    .collect::<Vec<_>>()
                )
            },
        }],
    },
    Subject {
        name: "parse_kickoff_text_sections",
        ours: |args| {
            let kickoff = parse_kickoff(text(args, "text"));
            json!([kickoff.brief, kickoff.requirements])
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "parse_message_content",
        ours: |args| message(&parsed(args)),
        theirs: whole,
        rules: &[
            Rule {
                row: "13.A #11",
                instead: "the header ends at the first blank line, the first of a key counts",
                applies: |args| {
                    let (header, _, later) = oracle(args);
                    later
                        || (1..header.len()).any(|at| {
                            let (seen, rest) = header.split_at(at);
                            seen.iter().any(|(key, _)| *key == rest[0].0)
                        })
                },
                expected: |args, theirs| by_header(args, as_written(args, theirs)),
            },
            Rule {
                row: "13.A #12",
                instead: "a body keeps its blanks, its indentation and its blank lines",
                applies: |args| {
                    let (_, body, _) = oracle(args);
                    let whole = without_mentions(args);
                    let header_only = body.is_empty() && whole.contains('\n');
                    header_only || [body, whole].iter().any(|text| collapsed(text) != *text)
                },
                expected: as_written,
            },
        ],
    },
    Subject {
        name: "split_discord_chunks",
        ours: |args| json!(split_discord_chunks(text(args, "content"), limit(args))),
        theirs: whole,
        rules: &[
            Rule {
                row: "R01",
                instead: "cut anywhere that keeps the limit as Discord counts it, every code block \
                      closed in its chunk, and no word lost",
                applies: |args| discord_length(text(args, "content")) > limit(args),
                expected: |args, _| {
                    let chunks = split_discord_chunks(text(args, "content"), limit(args));
                    assert!(chunks.iter().all(|chunk| discord_length(chunk) <= limit(args)));
                    assert!(chunks.iter().all(|chunk| is_balanced(chunk)), "{chunks:#?}");
                    assert_eq!(letters(&chunks.join("\n")), letters(text(args, "content")));
                    json!(chunks)
                },
            },
            Rule {
                row: "I20",
                instead: "a text that fits is sent as it was written",
                applies: |args| discord_length(text(args, "content")) <= limit(args),
                expected: |args, _| json!([trimmed(text(args, "content"))]),
            },
        ],
    },
];

fn bots(args: &Value) -> Vec<(Role, String)> {
    let bots = args["bot_ids_by_role"].as_object();
    bots.into_iter()
        .flatten()
        .filter_map(|(role, id)| Some((Role::parse(role)?, id.as_str()?.to_owned())))
        .collect()
}

fn parsed(args: &Value) -> ParsedMessage {
    let sender = args["default_sender"].as_str().unwrap_or("user");
    let target = Role::parse(text(args, "default_target")).unwrap_or(Role::Orchestrator);
    parse_message_content(text(args, "content"), &bots(args), sender, target)
}

fn message(message: &ParsedMessage) -> Value {
    json!({
        "request_id": message.request_id,
        "sender": message.sender,
        "target": message.target,
        "intent": message.intent,
        "urgency": message.urgency,
        "scope": message.scope,
        "artifacts": message.artifacts,
        "params": message.params,
        "body": message.body,
    })
}

fn limit(args: &Value) -> usize {
    usize::try_from(args["limit"].as_u64().unwrap_or(2000)).unwrap()
}

/// Whether every code block that a chunk opens ends in it, as Discord pairs fences.
fn is_balanced(chunk: &str) -> bool {
    chunk.matches("```").count().is_multiple_of(2)
}

/// What must not be lost: everything but blanks and fences (which are repeated at cuts).
fn letters(text: &str) -> String {
    static FENCES: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"```(python|py|json|rust)?").unwrap());
    let text = FENCES.replace_all(text, "");
    text.chars().filter(|letter| !letter.is_whitespace() && *letter != '`').collect()
}

const BREAKS: &str = r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x{85}\x{2028}\x{2029}]";

/// The text without the mentions of known bots, its line breaks spelled alike, and no blank lines
/// around it.
fn without_mentions(args: &Value) -> String {
    let mut content = text(args, "content").to_owned();
    static MENTION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"<@!?(\d+)>").unwrap());
    let known = bots(args);
    let mut at = 0;
    while let Some(found) = MENTION.captures_at(&content, at) {
        let (range, id) = (found.get(0).unwrap().range(), found[1].to_owned());
        at = range.end;
        if known.iter().any(|(_, bot)| *bot == id) {
            let before = &content[..range.start];
            let line = before.rsplit('\n').next().unwrap();
            let blanks = content[range.end..].len()
                - content[range.end..].trim_start_matches([' ', '\t']).len();
            let end = if line.trim().is_empty() { range.end + blanks } else { range.end };
            at = range.start;
            content.replace_range(range.start..end, "");
        }
    }
    static BREAK: LazyLock<Regex> = LazyLock::new(|| Regex::new(BREAKS).unwrap());
    trimmed(&BREAK.replace_all(&content, "\n"))
}

/// Without blank lines before, and blanks after.
fn trimmed(text: &str) -> String {
    static BLANK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\A(\s*\n)+").unwrap());
    BLANK.replace(text, "").trim_end().to_owned()
}

/// Header lines before the first blank line, the rest, and whether a header line stands later.
fn oracle(args: &Value) -> (Vec<(String, String)>, String, bool) {
    static KEY: LazyLock<Regex> = LazyLock::new(|| {
        let keys = "request_id|from|to|intent|action|urgency|scope|artifacts|params";
        Regex::new(&format!(r"(?i)^\s*({keys})\s*:(.*)$")).unwrap()
    });
    let (mut header, mut body, mut later) = (Vec::new(), Vec::new(), false);
    let mut open = true;
    let content = without_mentions(args);
    for line in content.split('\n') {
        open = open && !line.trim().is_empty();
        match KEY.captures(line) {
            Some(found) if open => {
                header.push((found[1].to_lowercase(), found[2].trim().to_owned()));
            }
            found => {
                later = later || found.is_some();
                body.push(line);
            }
        }
    }
    (header, trimmed(&body.join("\n")), later)
}

/// What the older runtime made of a text: no blank lines, single blanks.
fn collapsed(text: &str) -> String {
    let lines = text.split('\n').map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The recorded message with its texts as they were written.
fn as_written(args: &Value, theirs: &Value) -> Value {
    let mut expected = theirs.clone();
    let (header, body, _) = oracle(args);
    let value = |wanted: &str| {
        let found = header.iter().find(|(key, _)| key == wanted);
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    let whole = without_mentions(args);
    let fallback = if body.trim().is_empty() { &whole } else { &body };
    // `status sprint` names its scope by itself.
    let command = header.is_empty() && matches!(text(theirs, "scope"), "sprint" | "backlog");
    if !command {
        expected["scope"] = json!(value("scope").unwrap_or(fallback.trim().to_owned()));
    }
    for key in ["intent", "urgency", "request_id"] {
        if let Some(value) = value(key) {
            let value = if key == "request_id" { value } else { value.to_lowercase() };
            expected[key] = json!(value);
        }
    }
    if let Some(sender) = value("from") {
        expected["sender"] = json!(sender);
    }
    expected["body"] = json!(body);
    expected
}

/// The fields as the header alone gives them.
fn by_header(args: &Value, mut expected: Value) -> Value {
    let (header, _, _) = oracle(args);
    let value = |wanted: &str| {
        let found = header.iter().find(|(key, _)| key == wanted);
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    expected["request_id"] = json!(value("request_id"));
    expected["sender"] = json!(value("from").unwrap_or("user".to_owned()));
    let intent = value("intent").or(value("action")).unwrap_or("route".to_owned());
    expected["intent"] = json!(intent.to_lowercase());
    expected["urgency"] = json!(value("urgency").unwrap_or("normal".to_owned()).to_lowercase());
    let params = value("params").and_then(|text| serde_json::from_str::<Value>(&text).ok());
    expected["params"] = params.filter(Value::is_object).unwrap_or(json!({}));
    let artifacts = value("artifacts").unwrap_or_default();
    let artifacts = artifacts.split(',').map(str::trim).filter(|path| !path.is_empty());
    expected["artifacts"] = json!(artifacts.collect::<Vec<_>>());
    let default = Role::parse(text(args, "default_target")).unwrap_or(Role::Orchestrator);
    let mentioned = bots(args)
        .into_iter()
        .find(|(_, id)| Regex::new(&format!("<@!?{id}>")).unwrap().is_match(text(args, "content")));
    let target = match value("to") {
        Some(name) => Role::parse(&name).unwrap_or(Role::Orchestrator),
        None => mentioned.map_or(default, |(role, _)| role),
    };
    expected["target"] = json!(target);
    expected
}
