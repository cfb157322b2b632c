//! One record of the older runtime in the making: reads that take what is nearest, and note what they changed.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::notes::Notes;
use crate::domain::language::Language;
use crate::domain::lenient;
use crate::domain::time::Timestamp;

/// One record in the making.
pub(super) struct Record<'a> {
    pub(super) map: Map<String, Value>,
    path: &'a str,
    notes: &'a mut Notes,
}

/// What was written, whatever the shape: the lines of a list, the words of an object.
fn words(value: &Value) -> String {
    match value {
        Value::Array(entries) => {
            let lines = entries.iter().map(words).filter(|line| !line.trim().is_empty());
            lines.collect::<Vec<_>>().join("\n")
        }
        Value::Object(map) if map.is_empty() => String::new(),
        Value::Object(map) => {
            let named = ["text", "title", "criterion", "description", "summary"];
            let text = named.iter().find_map(|key| map.get(*key).and_then(Value::as_str));
            text.map_or_else(|| value.to_string(), str::to_owned)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            lenient::scalar(Some(value))
        }
    }
}

impl<'a> Record<'a> {
    /// Reads a file; `Err` says why it is no record.
    pub(super) fn read(path: &'a str, bytes: &[u8], notes: &'a mut Notes) -> Result<Self, String> {
        match serde_json::from_slice(bytes).map_err(|error| error.to_string())? {
            Value::Object(map) if !map.is_empty() => Ok(Record { map, path, notes }),
            Value::Object(_) => Err("it is empty".to_owned()),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err("it is no object".to_owned()),
        }
    }

    pub(super) fn within(&mut self, map: Map<String, Value>) -> Record<'_> {
        Record { map, path: self.path, notes: self.notes }
    }

    pub(super) fn note(&mut self, key: &str, value: &Value, became: &str) {
        let shown: String = value.to_string().chars().take(80).collect();
        self.notes.repaired(self.path, &format!("{key} was {shown}, {became}"));
    }

    pub(super) fn put(&mut self, key: &str, value: Value) {
        self.map.insert(key.to_owned(), value);
    }

    pub(super) fn text(&self, key: &str) -> String {
        lenient::scalar(self.map.get(key))
    }

    pub(super) fn texts(&mut self, keys: &[&str]) {
        for key in keys {
            let Some(value) = self.map.get(*key).filter(|value| !value.is_string()).cloned() else {
                continue;
            };
            let text = words(&value);
            if value.is_array() && !text.is_empty() || value.is_object() && !text.is_empty() {
                self.note(key, &value, "read as text");
            }
            self.put(key, json!(text));
        }
    }

    pub(super) fn lists(&mut self, keys: &[&str]) {
        for key in keys {
            let Some(value) = self.map.get(*key).cloned() else { continue };
            let list = match &value {
                Value::Array(entries) => entries.iter().map(words).collect(),
                Value::Object(_) => vec![words(&value)],
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    lenient::list(Some(&value))
                }
            };
            let list = lenient::list(Some(&json!(list)));
            if list.len() > lenient::list(Some(&value)).len() {
                self.note(key, &value, "read as text");
            }
            self.put(key, json!(list));
        }
    }

    pub(super) fn flags(&mut self, keys: &[&str]) {
        for key in keys {
            if let Some(value) = self.map.get(*key) {
                let flag = lenient::truthy(Some(value));
                self.put(key, json!(flag));
            }
        }
    }

    pub(super) fn numbers(&mut self, keys: &[&str]) {
        for key in keys {
            let Some(value) = self.map.get(*key).cloned() else { continue };
            let whole = lenient::integer(Some(&value));
            let number = whole.and_then(|number| u32::try_from(number).ok());
            if number.is_none() && lenient::truthy(Some(&value)) {
                self.note(key, &value, "read as 0");
            }
            self.put(key, json!(number.unwrap_or(0)));
        }
    }

    /// Times that may be absent.
    pub(super) fn times(&mut self, keys: &[&str]) {
        for key in keys {
            let Some(value) = self.map.get(*key).cloned() else { continue };
            let at = self.time(key, &value);
            self.put(key, at.map_or_else(|| json!(""), |at| json!(at)));
        }
    }

    pub(super) fn time(&mut self, key: &str, value: &Value) -> Option<Timestamp> {
        let text = lenient::text(Some(value));
        let at = Timestamp::parse(&text).ok();
        if at.is_none() && !text.trim().is_empty() {
            self.note(key, value, "which is no time");
        }
        at
    }

    /// Times that every record has: the first that reads stands for those that do not.
    pub(super) fn needed_times(&mut self, keys: &[&str]) {
        self.times(keys);
        let found = keys.iter().find_map(|key| Timestamp::parse(&self.text(key)).ok());
        for key in keys {
            if Timestamp::parse(&self.text(key)).is_err() {
                self.put(key, json!(found.unwrap_or(Timestamp::from_millis(0))));
            }
        }
    }

    pub(super) fn ids<T: std::str::FromStr>(&mut self, keys: &[&str]) {
        for key in keys {
            let Some(value) = self.map.get(*key).cloned() else { continue };
            let text = lenient::text(Some(&value)).trim().to_owned();
            let good = text.parse::<T>().is_ok();
            if !good && !text.is_empty() {
                self.note(key, &value, "which is no id");
            }
            self.put(key, json!(if good { text } else { String::new() }));
        }
    }

    /// The same for lists of ids.
    pub(super) fn id_lists<T: std::str::FromStr>(&mut self, keys: &[&str]) {
        self.lists(keys);
        for key in keys {
            let all = lenient::list(self.map.get(*key));
            let (good, bad): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|text| text.parse::<T>().is_ok());
            if !bad.is_empty() {
                self.note(key, &json!(bad), "which are no ids");
            }
            if self.map.contains_key(*key) {
                self.put(key, json!(good));
            }
        }
    }

    /// A word out of a few; one that nobody knows becomes `otherwise`.
    pub(super) fn word(&mut self, key: &str, known: &[&str], otherwise: &str) {
        let old = self.text(key);
        let flat = old.trim().to_lowercase().replace(['-', ' '], "_");
        let flat = match flat.as_str() {
            "canceled" | "cancelled" => {
                if known.contains(&"cancelled") {
                    "cancelled"
                } else {
                    "dropped"
                }
            }
            // Each kind of record has another word for what is over.
            "complete" | "completed" | "finished" | "closed" | "committed" | "done"
                if !known.contains(&flat.as_str()) =>
            {
                if known.contains(&"completed") {
                    "completed"
                } else {
                    "done"
                }
            }
            "in_progress" | "active" | "started" => {
                if known.contains(&"running") {
                    "running"
                } else {
                    "delegated"
                }
            }
            "open" | "todo" | "new" => {
                if known.contains(&"pending") {
                    "pending"
                } else {
                    "queued"
                }
            }
            other => other,
        };
        let word = if known.contains(&flat) { flat } else { otherwise };
        if !old.is_empty() && word != old {
            self.note(key, &json!(old), &format!("read as {word:?}"));
        }
        self.put(key, json!(word));
    }

    /// The same where there may be none.
    pub(super) fn word_or_none(&mut self, key: &str, known: &[&str]) {
        if self.text(key).trim().is_empty() {
            self.map.remove(key);
            return;
        }
        self.word(key, known, "");
        if self.text(key).is_empty() {
            self.map.remove(key);
        }
    }

    /// An object; nothing where it is none or empty.
    pub(super) fn object(&mut self, key: &str) -> Option<Map<String, Value>> {
        match self.map.remove(key) {
            Some(Value::Object(map)) if !map.is_empty() => Some(map),
            Some(Value::Object(_) | Value::Null) | None => None,
            Some(value) => {
                if lenient::truthy(Some(&value)) {
                    self.note(key, &value, "which is no object");
                }
                None
            }
        }
    }

    /// Shapes each object of a list; what is none is left out and named.
    pub(super) fn each(&mut self, key: &str, shape: impl Fn(&mut Record<'_>, usize)) {
        let all = match self.map.remove(key) {
            Some(Value::Array(all)) => all,
            Some(Value::Null) | None => Vec::new(),
            Some(other) => vec![other],
        };
        let mut shaped = Vec::new();
        for (number, value) in all.into_iter().enumerate() {
            match value {
                Value::Object(map) => {
                    let mut record = self.within(map);
                    shape(&mut record, number);
                    let map = record.map;
                    shaped.push(Value::Object(map));
                }
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)) => self.note(key, &other, "which is no object"),
            }
        }
        self.put(key, json!(shaped));
    }

    /// The paths below these keys, relative to the workspace (13.A #25).
    pub(super) fn paths(&mut self, root: &Path, keys: &[&str]) {
        for key in keys {
            match self.map.get(*key).cloned() {
                Some(Value::String(path)) => self.put(key, json!(relative(root, &path))),
                Some(Value::Array(all)) => {
                    let all: Vec<String> = lenient::list(Some(&Value::Array(all)))
                        .iter()
                        .map(|it| relative(root, it))
                        .collect();
                    self.put(key, json!(all));
                }
                Some(_) | None => {}
            }
        }
    }

    pub(super) fn language(&mut self, texts: &[&str]) {
        let known = self.text("language");
        if known == "en" || known == "ko" {
            return;
        }
        let said: String = texts.iter().map(|key| self.text(key)).collect();
        self.put("language", json!(Language::of(&said).unwrap_or_default()));
    }
}

/// A path as it stands in records: from the workspace on, wherever that lay when it was written.
pub(super) fn relative(root: &Path, path: &str) -> String {
    if !path.starts_with('/') {
        return path.to_owned();
    }
    if let Ok(inside) = Path::new(path).strip_prefix(root) {
        return inside.to_string_lossy().into_owned();
    }
    match path.find("/shared_workspace/") {
        Some(at) => path[at + 1..].to_owned(),
        None => path.to_owned(),
    }
}
