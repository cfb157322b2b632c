//! Whether a value has the shape that a schema of ours asks for. Knows the words that
//! [`super::schema`] uses and no others.

use serde_json::Value;

/// Faults that are told at most; a model puts them right some at a time.
const MOST: usize = 12;
/// How deep a value is looked into.
const DEEPEST: usize = 32;

/// What is wrong with the shape of a value, each with its place; empty where nothing is. A key that may be
/// null may be absent, and keys that the schema does not know are nobody's business.
#[must_use]
pub fn misshapen(value: &Value, schema: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    walk(value, schema, "", 0, &mut faults);
    faults.truncate(MOST);
    faults
}

fn walk(value: &Value, schema: &Value, place: &str, depth: usize, faults: &mut Vec<String>) {
    let shown = if place.is_empty() { "the result" } else { place };
    if depth > DEEPEST || faults.len() >= MOST {
        return;
    }
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let mut least: Option<Vec<String>> = None;
        for one in any {
            let mut found = Vec::new();
            walk(value, one, place, depth + 1, &mut found);
            // What a null would have to be is no help to anybody.
            let fewer = least.as_ref().is_none_or(|least| found.len() < least.len());
            if found.is_empty() || (fewer && one.get("type").is_none_or(|kind| kind != "null")) {
                least = Some(found);
            }
        }
        faults.extend(least.unwrap_or_default());
        return;
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        if !words.contains(value) {
            let words: Vec<String> = words.iter().map(Value::to_string).collect();
            faults.push(format!("{shown} is none of {}", words.join(", ")));
        }
        return;
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => return,
    };
    if !kinds.iter().any(|kind| is(value, kind)) {
        faults.push(format!("{shown} is no {}", kinds.join(" or ")));
        return;
    }
    match value {
        Value::Object(fields) => {
            let known = schema.get("properties").and_then(Value::as_object);
            for (name, inner) in known.into_iter().flatten() {
                let place = format!("{place}/{name}");
                match fields.get(name) {
                    Some(field) => walk(field, inner, &place, depth + 1, faults),
                    None if may_be_null(inner) => {}
                    None => faults.push(format!("{place} is missing")),
                }
            }
        }
        Value::Array(items) => {
            let inner = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter().enumerate() {
                walk(item, inner, &format!("{place}/{index}"), depth + 1, faults);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn may_be_null(schema: &Value) -> bool {
    let mut found = Vec::new();
    walk(&Value::Null, schema, "", 0, &mut found);
    found.is_empty()
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::role::Role;
    use crate::engine::contract::schema;
    use crate::engine::lifecycle::steps;

    #[test]
    fn what_is_missing_or_wrong_is_named_with_its_place() {
        let schema = schema(Role::Developer, Some(steps::BUILD), None);
        let mut right = json!({"status": "completed", "summary": "x", "insights": [], "artifacts": [],
            "error": "", "proposals": {"workflow_transition": {"reason": "", "unresolved_items": [],
            "finalize_phase": false}, "implementation_report": "x", "more": 1}});
        assert_eq!(misshapen(&right, &schema), [] as [String; 0]);
        right["status"] = json!("finished");
        right["insights"] = json!(["a", 7]);
        right["proposals"]["workflow_transition"]["outcome"] = json!("maybe");
        right.as_object_mut().unwrap().remove("summary");
        let faults = misshapen(&right, &schema).join("\n");
        for wanted in [
            "/status is none of \"completed\"",
            "/summary is missing",
            "/insights/1 is no string",
            "/proposals/workflow_transition/outcome is none of",
        ] {
            assert!(faults.contains(wanted), "{wanted}: {faults}");
        }
        assert_eq!(misshapen(&json!([]), &schema), ["the result is no object"]);
        let many = json!({"insights": vec![1; 1000]});
        assert_eq!(misshapen(&many, &schema).len(), MOST);
    }
}
