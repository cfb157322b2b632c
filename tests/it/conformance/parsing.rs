//! Texts: kickoffs, sprint words, paths.

use serde_json::json;
use teams::engine::parse::{
    is_sprint_start_text, normalize_artifact_hint, normalize_requirements, parse_kickoff,
};

use super::{Rule, Subject, text, whole};

pub(crate) const SUBJECTS: &[Subject] = &[
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
        name: "is_manual_sprint_start_text",
        ours: |args| json!(is_sprint_start_text(text(args, "content"))),
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
];
