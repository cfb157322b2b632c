//! JSON that a role wrote, held against a schema of ours. This is the one place that says what may be put right
//! without asking the role again: the form of a value, never what it says.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Faults that are told at most; a model puts them right some at a time.
pub const MOST_FAULTS: usize = 12;
/// How deep a value is looked into.
const DEEPEST: usize = 32;

/// The schema of a type, strict in the sense of structured outputs: every object lists all of its properties as
/// required and allows no others, and what may be absent is nullable instead.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    strict(&mut schema);
    schema
}

/// All properties required, no others, enums as one list, no annotations that structured outputs refuse.
fn strict(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    for key in ["title", "format", "minimum", "default"] {
        // Inside "properties" these would be names, but properties are walked one by one below.
        fields.shift_remove(key);
    }
    if let Some(words) = fields.get("oneOf").and_then(constants) {
        fields.shift_remove("oneOf");
        fields.insert("type".to_owned(), json!("string"));
        fields.insert("enum".to_owned(), words);
    }
    if let Some(word) = fields.shift_remove("const") {
        fields.insert("enum".to_owned(), json!([word]));
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(strict);
    }
    close(fields);
    for key in ["items", "additionalItems"] {
        fields.get_mut(key).into_iter().for_each(strict);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        let entries = fields.get_mut(key).and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            strict(entry);
            // The property says what it is for; its type's own words are for programmers.
            if let Value::Object(entry) = entry {
                entry.shift_remove("description");
            }
        }
    }
}

/// Requires all properties of an object's schema, and allows no others.
pub fn close(schema: &mut Map<String, Value>) {
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let names: Vec<String> = properties.keys().cloned().collect();
        schema.insert("required".to_owned(), json!(names));
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// The words of an enum that is written as one alternative a word.
fn constants(alternatives: &Value) -> Option<Value> {
    let words = alternatives
        .as_array()?
        .iter()
        .map(|alternative: &Value| alternative.as_object()?.get("const").cloned())
        .collect::<Option<Vec<Value>>>()?;
    Some(Value::Array(words))
}

/// The schema without null, where it allows null.
pub fn without_null(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    if let Some(Value::Array(kinds)) = fields.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            fields.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(any)) = fields.shift_remove("anyOf") {
        let some = any.into_iter().find(|one| one.get("type").is_none_or(|kind| kind != "null"));
        if let Some(Value::Object(some)) = some {
            fields.extend(some);
        }
    }
}

/// Reads one part of an object; `None` where it is absent, null or does not fit, and then a fault says why.
pub fn part<T: DeserializeOwned>(
    fields: &Map<String, Value>,
    name: &str,
    schema: &Value,
    place: &str,
    faults: &mut Vec<String>,
) -> Option<T> {
    let mut value = fields.get(name).filter(|value| !value.is_null())?.clone();
    let mut found = Vec::new();
    walk(&mut value, schema, &format!("{place}/{name}"), 0, &mut found);
    if found.is_empty() {
        match serde_json::from_value(value) {
            Ok(part) => return Some(part),
            Err(error) => found.push(format!("{place}/{name}: {error}")),
        }
    }
    faults.append(&mut found);
    faults.truncate(MOST_FAULTS);
    None
}

fn walk(value: &mut Value, schema: &Value, place: &str, depth: usize, faults: &mut Vec<String>) {
    if depth > DEEPEST || faults.len() >= MOST_FAULTS {
        return;
    }
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        if value.is_null() {
            return;
        }
        // Ours have one alternative beside null.
        let some = any.iter().find(|one| one.get("type").is_none_or(|kind| kind != "null"));
        let nullable = any.len() > 1;
        if nullable && value.as_str().is_some_and(|text| text.trim().is_empty()) {
            *value = Value::Null;
        } else if let Some(some) = some {
            walk(value, some, place, depth + 1, faults);
        }
        return;
    }
    put_right(value, schema);
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        if !words.contains(value) {
            let words: Vec<String> = words.iter().map(Value::to_string).collect();
            let found: String = value.to_string().chars().take(60).collect();
            faults.push(format!("{place} is none of {}: {found}", words.join(", ")));
        }
        return;
    }
    let kinds = kinds(schema);
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(value, kind)) {
        faults.push(format!("{place} is no {}", kinds.join(" or ")));
        return;
    }
    match value {
        Value::Object(fields) => {
            let Some(known) = schema.get("properties").and_then(Value::as_object) else { return };
            fields.retain(|name, _| known.contains_key(name));
            for (name, inner) in known {
                let place = format!("{place}/{name}");
                if !fields.contains_key(name)
                    && let Some(blank) = blank(inner)
                {
                    fields.insert(name.clone(), blank);
                }
                match fields.get_mut(name) {
                    Some(field) => walk(field, inner, &place, depth + 1, faults),
                    None => faults.push(format!("{place} is missing")),
                }
            }
        }
        Value::Array(items) => {
            let inner = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, inner, &format!("{place}/{index}"), depth + 1, faults);
            }
            for item in items.iter_mut() {
                if let Value::String(text) = item {
                    *text = text.trim().to_owned();
                }
            }
            items.retain(|item| *item != json!(""));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What stands for a value that was left out.
fn blank(schema: &Value) -> Option<Value> {
    if schema.get("anyOf").is_some() {
        return Some(Value::Null);
    }
    let words = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    match (words, kinds(schema).as_slice()) {
        (_, [.., "null"]) => Some(Value::Null),
        // A word without a choice.
        (Some([word]), _) => Some(word.clone()),
        (Some(_), _) => None,
        (None, ["array"]) => Some(json!([])),
        (None, ["string"]) => Some(json!("")),
        (None, ["boolean"]) => Some(json!(false)),
        (None, _) => None,
    }
}

/// Gives a value the form that is asked for, where it says the same in another one.
fn put_right(value: &mut Value, schema: &Value) {
    let kinds = kinds(schema);
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        if let Some(text) = value.as_str() {
            let word = json!(text.trim().to_lowercase());
            match words.contains(&word) {
                true => *value = word,
                false if text.trim().is_empty() && kinds.contains(&"null") => *value = Value::Null,
                false => {}
            }
        }
        return;
    }
    if kinds.is_empty() || kinds.iter().any(|kind| is(value, kind)) {
        return;
    }
    let right = match (kinds[0], &*value) {
        ("string", Value::Number(_) | Value::Bool(_)) => Some(json!(value.to_string())),
        ("string", Value::Array(lines)) if lines.iter().all(Value::is_string) => {
            let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
            Some(json!(lines.join("\n")))
        }
        // Nothing of it is lost, and people can read it.
        ("string", Value::Object(_)) => Some(json!(value.to_string())),
        ("string" | "array" | "boolean", Value::Null) => blank(schema),
        ("array", Value::String(_)) => Some(json!([value.clone()])),
        ("array", Value::Object(fields)) if is_of_pairs(schema) => {
            let pair = |(name, value)| json!({ "name": name, "value": value });
            Some(fields.iter().map(pair).collect())
        }
        ("array", Value::Object(_)) if schema.pointer("/items/type") == Some(&json!("object")) => {
            Some(json!([value.clone()]))
        }
        ("integer", Value::String(text)) if text.trim().is_empty() && kinds.contains(&"null") => {
            Some(Value::Null)
        }
        ("integer", Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
        ("integer", Value::Number(number)) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            whole.and_then(|number| format!("{number:.0}").parse::<i64>().ok()).map(Value::from)
        }
        ("boolean", Value::Number(number)) => match number.as_i64() {
            Some(0) => Some(json!(false)),
            Some(1) => Some(json!(true)),
            Some(_) | None => None,
        },
        ("boolean", Value::String(text)) => {
            text.trim().to_lowercase().parse().ok().map(Value::Bool)
        }
        (_, _) => None,
    };
    if let Some(right) = right {
        *value = right;
    }
}

/// Whether a list is of names with values, which models like to write as one object.
fn is_of_pairs(schema: &Value) -> bool {
    let properties = schema.pointer("/items/properties").and_then(Value::as_object);
    properties
        .is_some_and(|it| it.len() == 2 && it.contains_key("name") && it.contains_key("value"))
}

fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    }
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
