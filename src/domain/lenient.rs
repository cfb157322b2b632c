//! Reading JSON that agents and older files wrote: the nearest sensible value instead of a refusal.

use serde_json::Value;

/// Whether a number is one that a record leaves out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(crate) const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A scalar as text; blank for zero, false and everything that is not a scalar, because older
/// runtimes wrote those for "nothing".
#[must_use]
pub fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::Bool(false)) => String::new(),
        Some(Value::Number(number)) if number.as_f64() == Some(0.0) => String::new(),
        value => scalar(value),
    }
}

/// A string, a number or a boolean as text; the empty string for anything that is not a scalar.
#[must_use]
pub fn scalar(value: Option<&Value>) -> String {
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
        let entry = scalar(Some(value)).trim().to_owned();
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

/// A flag; a text is true unless it is blank, as older runtimes read it.
#[must_use]
pub fn truthy(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| number != 0.0),
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Array(entries)) => !entries.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
    }
}

/// A whole number, also where it was written as a string or with a fraction (which is cut off);
/// `None` for anything else.
#[must_use]
pub fn integer(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::Number(number)) => number.as_i64().or_else(|| {
            let whole = number.as_f64()?.trunc();
            format!("{whole:.0}").parse().ok()
        }),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
    }
}

/// Ids that older files write as an empty text where there is none.
pub(crate) mod blank_is_none {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer, T: Serialize>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => value.serialize(serializer),
            None => serializer.serialize_str(""),
        }
    }

    pub(crate) fn deserialize<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        D: Deserializer<'de>,
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        match Option::<String>::deserialize(deserializer)? {
            Some(text) if !text.trim().is_empty() => {
                text.parse().map(Some).map_err(serde::de::Error::custom)
            }
            Some(_) | None => Ok(None),
        }
    }
}
