//! Where an item of the backlog or a finding comes from (`spec/teams.md` 4.3, `origin`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::domain::lenient;

/// What is known by name of where something comes from: the request, sprint or file, and the milestone, requirements
/// and specification that ask for it. Planners and people add names of their own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, Value>")]
pub struct Origin(BTreeMap<String, OriginValue>);

/// One thing that is known of an origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OriginValue {
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// Texts.
    List(Vec<String>),
}

impl OriginValue {
    /// What JSON says. Null is nothing; an object, and what is no scalar in a list, is its JSON as a text.
    #[must_use]
    pub fn of(value: &Value) -> Option<Self> {
        let text = |value: &Value| match value {
            Value::Array(_) | Value::Object(_) => value.to_string(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                lenient::scalar(Some(value))
            }
        };
        Some(match value {
            Value::Null => return None,
            Value::Bool(flag) => Self::Flag(*flag),
            Value::Number(number) => Self::Number(number.clone()),
            Value::Array(entries) => {
                Self::List(entries.iter().filter(|entry| !entry.is_null()).map(text).collect())
            }
            Value::String(_) | Value::Object(_) => Self::Text(text(value)),
        })
    }

    /// The non-blank texts in it, trimmed; those of a scalar as [`lenient::text`] reads it.
    fn texts(&self) -> Vec<String> {
        let texts = match self {
            Self::Flag(flag) => vec![lenient::text(Some(&Value::Bool(*flag)))],
            Self::Number(number) => vec![lenient::text(Some(&Value::Number(number.clone())))],
            Self::Text(text) => vec![text.clone()],
            Self::List(texts) => texts.clone(),
        };
        let trimmed = texts.iter().map(|text| text.trim().to_owned());
        trimmed.filter(|text| !text.is_empty()).collect()
    }
}

impl From<&str> for OriginValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for OriginValue {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl From<Vec<String>> for OriginValue {
    fn from(texts: Vec<String>) -> Self {
        Self::List(texts)
    }
}

impl From<BTreeMap<String, Value>> for Origin {
    fn from(fields: BTreeMap<String, Value>) -> Self {
        let known = fields.into_iter();
        Self(known.filter_map(|(name, value)| Some((name, OriginValue::of(&value)?))).collect())
    }
}

impl Origin {
    /// Adds or replaces what is known by a name.
    pub fn set(&mut self, name: &str, value: impl Into<OriginValue>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The same for an origin that is being made.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OriginValue>) -> Self {
        self.set(name, value);
        self
    }

    /// Forgets what is known by a name.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// The text by a name; none where there is another value, or nothing.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            OriginValue::Text(text) => Some(text),
            OriginValue::Flag(_) | OriginValue::Number(_) | OriginValue::List(_) => None,
        }
    }

    /// Whether there is a value by a name, also a blank one.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether anything but blanks is known by a name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        !self.texts(name).is_empty()
    }

    /// The non-blank texts by a name, trimmed: of a list, or of a scalar.
    #[must_use]
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.0.get(name).map(OriginValue::texts).unwrap_or_default()
    }

    /// How many things are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What it was made of, the same each time the same thing is found (`spec/teams.md` 4.11): sorted `name=value`
    /// parts of the names that say so.
    #[must_use]
    pub fn trace(&self) -> String {
        const NAMES: [&str; 7] =
            ["request_id", "action_name", "log_file", "operation_id", "role", "signal", "status"];
        let named = self
            .0
            .iter()
            .filter(|(name, _)| NAMES.contains(&name.as_str()) || name.ends_with("_request_id"));
        let mut parts: Vec<String> = named
            .filter_map(|(name, value)| {
                let mut texts = value.texts();
                texts.sort();
                (!texts.is_empty()).then(|| format!("{name}={}", texts.join(",")))
            })
            .collect();
        parts.sort();
        parts.join("|")
    }
}
