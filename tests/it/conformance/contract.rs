//! The result contract: finding, reading and judging a result.

use serde_json::{Value, json};
use teams::domain::lifecycle::StepName;
use teams::domain::result::Proposals;
use teams::domain::role::Role;
use teams::engine::contract::{extract_json_object, normalize, validate};

use super::{Rule, Subject, text, whole};

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "extract_json_object",
        ours: |args| extract_json_object(text(args, "text")).map_or(Value::Null, Value::Object),
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "normalize_role_payload",
        ours: |args| {
            let role = Role::parse(text(&args["payload"], "role")).unwrap_or(Role::Developer);
            let result = normalize(&args["payload"], role, text(&args["payload"], "request_id"));
            read(&json!(result))
        },
        theirs: read,
        rules: &[Rule {
            row: "13.A #13",
            instead: "each part of the proposals is of its type, and what is none is left out",
            applies: |args| args["payload"]["proposals"].is_object(),
            expected: |args, theirs| {
                let (read, _) = Proposals::read(args["payload"].get("proposals"));
                let mut expected = theirs.clone();
                expected["proposals"] = json!(read);
                expected
            },
        }],
    },
    Subject {
        name: "validate_role_result_contract",
        ours: |args| {
            let step = args.pointer("/request_record/params/workflow/step").and_then(Value::as_str);
            let step = step.and_then(|name| StepName::parse(name).ok());
            let role = Role::parse(text(args, "role")).unwrap_or(Role::Orchestrator);
            let issues = validate(&args["payload"], role, step, &[]);
            json!(issues.iter().map(ToString::to_string).collect::<Vec<_>>())
        },
        theirs: whole,
        rules: &[Rule {
            row: "8.1",
            instead: "an answer says its status",
            applies: |args| args["payload"].is_object() && args["payload"].get("status").is_none(),
            expected: |_, theirs| {
                let mut expected = vec![json!("/status is missing")];
                expected.extend(theirs.as_array().cloned().unwrap_or_default());
                json!(expected)
            },
        }],
    },
];

/// The fields that decide; of texts that each runtime words itself, whether there is one.
fn read(result: &Value) -> Value {
    let mut read = super::fields(
        result,
        &["status", "summary", "insights", "proposals", "artifacts", "next_role"],
    );
    read["has_error"] = json!(!text(result, "error").is_empty());
    read["has_notes"] =
        json!(result["validation_notes"].as_array().is_some_and(|notes| !notes.is_empty()));
    read
}
