//! Reading JSON that agents and older files wrote: the nearest sensible value instead of a refusal.

use serde_json::Value;

/// A string, a number or a boolean as text; the empty string for anything that is not a scalar.
#[must_use]
pub fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => String::new(),
    }
}

/// The non-blank entries of a list, trimmed; a single string counts as a list of one.
#[must_use]
pub fn list(value: Option<&Value>) -> Vec<String> {
    let one = |value: &Value| {
        let entry = text(Some(value)).trim().to_owned();
        (!entry.is_empty()).then_some(entry)
    };
    match value {
        Some(Value::Array(entries)) => entries.iter().filter_map(one).collect(),
        Some(value @ Value::String(_)) => one(value).into_iter().collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    }
}

/// A flag; the words `false`, `no` and `off` are false, other non-empty values true.
#[must_use]
pub fn truthy(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| number != 0.0),
        Some(Value::String(text)) => !matches!(
            text.trim().to_lowercase().as_str(),
            "" | "false" | "no" | "off" | "0"
        ),
        Some(Value::Array(entries)) => !entries.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
    }
}

/// A whole number, also where it was written as a string; `None` for anything else.
#[must_use]
pub fn integer(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
    }
}
