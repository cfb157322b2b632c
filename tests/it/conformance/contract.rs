//! The result contract: finding, reading and judging a result.

use serde_json::{Value, json};
use teams::domain::lifecycle::StepName;
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
            instead: "backlog proposals are patches and stay as written",
            applies: |args| {
                let proposals = &args["payload"]["proposals"];
                ["backlog_item", "backlog_items", "planned_backlog_updates"]
                    .iter()
                    .any(|key| proposals.get(key).is_some())
            },
            expected: |args, theirs| {
                let mut expected = theirs.clone();
                expected["proposals"] = args["payload"]["proposals"].clone();
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
        rules: &[],
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
    for key in ["session_id", "session_workspace", "commit_sha", "commit_status"] {
        read[key] = result[key].clone();
    }
    read
}
