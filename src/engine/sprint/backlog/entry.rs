//! Reading what a payload for the backlog says, entry by entry, and why it is refused.

use serde_json::{Map, Value};

use crate::domain::lenient;
use crate::domain::origin::OriginValue;
use crate::domain::path_glob::fault;
use crate::domain::plan::MOST_EFFORT;
use std::str::FromStr;

/// The most entries of one payload.
pub const MAX_ITEMS: usize = 200;
/// Open items of the backlog beyond which agents add none.
pub(super) const MAX_OPEN: usize = 2_000;

/// The highest rank.
const MAX_RANK: i64 = 1_000_000;

/// Characters that are kept of a title, of a reason, and of names and what an origin says.
pub(super) const MAX_TITLE: usize = 200;
pub(super) const MAX_TEXT: usize = 4_000;
pub(super) const MAX_LINE: usize = 500;

/// Characters beyond which what is to be done is refused, as a text and as an entry of a list: nobody builds what was
/// cut off.
const MAX_SCOPE: usize = 16_000;
const MAX_ENTRY: usize = 2_000;

/// Entries beyond which a list is refused; and keys that are kept of an origin.
pub(super) const MAX_ENTRIES: usize = 50;

/// Why a payload is refused as a whole. `item` is an id, a title, or the entry's number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// An entry of another kind.
    #[error("item {item}: expected an object with a title or a backlog_id, found {found}")]
    NotAnItem {
        /// Which.
        item: String,
        /// What stands there.
        found: String,
    },
    /// Too much at once.
    #[error("{count} items in one payload, at most {MAX_ITEMS} are taken; send them in parts")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// The backlog has more than anybody can look through.
    #[error(
        "the backlog has {MAX_OPEN} open items or nearly so, and takes no more from agents; change or drop some instead"
    )]
    Full,
    /// A field of another kind.
    #[error("item {item}: {field}: expected {expected}, found {found}")]
    Field {
        /// Which item.
        item: String,
        /// Which field.
        field: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// More than anybody reads.
    #[error(
        "item {item}: {field}: {count} {what}, and at most {most} are taken; say less, or put it in a file and name that"
    )]
    TooLong {
        /// Which item.
        item: String,
        /// Which field.
        field: &'static str,
        /// How much.
        count: usize,
        /// Of what.
        what: &'static str,
        /// How much is taken.
        most: usize,
    },
    /// A new item has to say what it is.
    #[error("item {item}: title: blank, and there is no backlog_id of a known item")]
    NoTitle {
        /// Which.
        item: String,
    },
    /// Somebody works on it.
    #[error(
        "item {item}: somebody is at work on it; say in its room what is to be different, or withdraw it first"
    )]
    UnderWay {
        /// Its title.
        item: String,
    },
    /// No open item has the id.
    #[error("item {item}: backlog_id: no open item has this id; leave it out to add a new item")]
    UnknownItem {
        /// The id.
        item: String,
    },
    /// A dependency that is neither known nor in the payload.
    #[error(
        "item {item}: depends_on: {found:?} is neither a known item nor the title of one in this payload"
    )]
    UnknownDependency {
        /// Which item.
        item: String,
        /// What it names.
        found: String,
    },
    /// A glob that leaves the project.
    #[error(
        "item {item}: allowed_paths: {path:?} {fault}; paths are relative to the project's root, such as src/**"
    )]
    Path {
        /// Which item.
        item: String,
        /// The glob.
        path: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Items that wait for each other.
    #[error("depends_on: these items wait for each other: {}", .path.join(" → "))]
    Cycle {
        /// Around, the first again at the end.
        path: Vec<String>,
    },
}

/// One entry of a payload.
pub(super) struct Entry {
    /// Its id, its title, or its number, for errors.
    pub(super) name: String,
    /// As it was written.
    pub(super) fields: Map<String, Value>,
}

/// The entries of a payload.
pub(super) fn entries(payload: &Value) -> Result<Vec<Entry>, MergeError> {
    let mut found: Vec<&Value> = Vec::new();
    match payload {
        Value::Array(entries) => found.extend(entries),
        Value::Object(fields) => {
            let many = fields.get("backlog_items").filter(|value| !value.is_null());
            let one = fields.get("backlog_item").filter(|value| !value.is_null());
            match many {
                Some(Value::Array(entries)) => found.extend(entries),
                Some(other) => found.push(other),
                None => {}
            }
            found.extend(one);
            let is_entry = ["backlog_id", "title", "scope", "summary"]
                .iter()
                .any(|key| !lenient::scalar(fields.get(*key)).trim().is_empty());
            if many.is_none() && one.is_none() && is_entry {
                found.push(payload);
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => found.push(payload),
    }
    if found.len() > MAX_ITEMS {
        return Err(MergeError::TooMany { count: found.len() });
    }
    let read = |(index, value): (usize, &Value)| {
        let number = format!("{}", index + 1);
        match value {
            Value::Object(fields) => {
                let named = ["backlog_id", "title"]
                    .iter()
                    .map(|key| lenient::scalar(fields.get(*key)))
                    .find(|text| !text.trim().is_empty());
                let name = named.map_or(number, |text| cut(&text, MAX_TITLE));
                Ok(Entry { name, fields: fields.clone() })
            }
            Value::String(title) if !title.trim().is_empty() => {
                let fields = Map::from_iter([("title".to_owned(), value.clone())]);
                Ok(Entry { name: cut(title, MAX_TITLE), fields })
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(MergeError::NotAnItem { item: number, found: shown(value) }),
        }
    };
    found.into_iter().enumerate().map(read).collect()
}

impl Entry {
    pub(super) fn wrong(&self, field: &'static str, expected: &'static str) -> MergeError {
        let found = shown(self.fields.get(field).unwrap_or(&Value::Null));
        MergeError::Field { item: self.name.clone(), field, expected, found }
    }

    /// A text; none where it is absent, null or blank.
    pub(super) fn text(
        &self,
        field: &'static str,
        limit: usize,
    ) -> Result<Option<String>, MergeError> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            value @ Some(Value::String(_) | Value::Number(_)) => {
                let text = lenient::scalar(value);
                Ok(Some(cut(text.trim(), limit)).filter(|text| !text.is_empty()))
            }
            Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                Err(self.wrong(field, "a text"))
            }
        }
    }

    fn within(
        &self,
        field: &'static str,
        count: usize,
        (most, what): (usize, &'static str),
    ) -> Result<(), MergeError> {
        if count <= most {
            return Ok(());
        }
        Err(MergeError::TooLong { item: self.name.clone(), field, count, what, most })
    }

    /// What is to be done, of which nothing is cut off; none where it is absent, null or blank.
    pub(super) fn whole_text(&self, field: &'static str) -> Result<Option<String>, MergeError> {
        let text = self.text(field, usize::MAX)?;
        let count = text.as_deref().map_or(0, |text| text.chars().count());
        self.within(field, count, (MAX_SCOPE, "characters"))?;
        Ok(text)
    }

    /// A list of texts; none where it is absent or null.
    pub(super) fn list(&self, field: &'static str) -> Result<Option<Vec<String>>, MergeError> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            value @ Some(Value::String(_) | Value::Array(_)) => {
                let entries = lenient::list(value);
                self.within(field, entries.len(), (MAX_ENTRIES, "entries"))?;
                let longest = entries.iter().map(|entry| entry.chars().count()).max();
                self.within(field, longest.unwrap_or(0), (MAX_ENTRY, "characters in one entry"))?;
                Ok(Some(entries))
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
                Err(self.wrong(field, "a list of texts"))
            }
        }
    }

    /// One of our words; none where it is absent, null or blank.
    pub(super) fn word<T: FromStr>(
        &self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, MergeError> {
        let Some(text) = self.text(field, MAX_LINE)? else { return Ok(None) };
        text.to_lowercase().parse().map(Some).map_err(|_| self.wrong(field, expected))
    }

    pub(super) fn rank(&self) -> Result<Option<u32>, MergeError> {
        self.number("priority_rank", MAX_RANK, "a whole number from 1 to 1000000, or 0 for none")
    }

    pub(super) fn effort(&self) -> Result<Option<u32>, MergeError> {
        let most = i64::from(MOST_EFFORT);
        self.number("effort", most, "a whole number from 1 to 1000, or 0 for none")
    }

    /// A whole number from 0; none where it is absent, null or blank.
    fn number(
        &self,
        field: &'static str,
        most: i64,
        expected: &'static str,
    ) -> Result<Option<u32>, MergeError> {
        let value = match self.fields.get(field) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(value) => value,
        };
        let whole = match value {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.trim().parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        whole
            .filter(|number| (0..=most).contains(number))
            .and_then(|number| u32::try_from(number).ok())
            .map(Some)
            .ok_or_else(|| self.wrong(field, expected))
    }

    /// The globs that an item declares; each stays in the project.
    pub(super) fn paths(&self) -> Result<Option<Vec<String>>, MergeError> {
        let paths = self.list("allowed_paths")?;
        match paths.iter().flatten().find_map(|path| Some((path, fault(path)?))) {
            Some((path, fault)) => {
                Err(MergeError::Path { item: self.name.clone(), path: path.clone(), fault })
            }
            None => Ok(paths),
        }
    }
}

/// White space collapsed.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first characters of a text.
pub(super) fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect::<String>().trim_end().to_owned()
}

fn shown(value: &Value) -> String {
    cut(&value.to_string(), 120)
}

/// What is kept of a value of an origin: texts are cut, and lists are.
pub(super) fn kept(value: &Value) -> Option<OriginValue> {
    Some(match OriginValue::of(value)? {
        OriginValue::Text(text) => OriginValue::Text(cut(&text, MAX_LINE)),
        OriginValue::List(texts) => OriginValue::List(
            texts.iter().take(MAX_ENTRIES).map(|text| cut(text, MAX_LINE)).collect(),
        ),
        value @ (OriginValue::Flag(_) | OriginValue::Number(_)) => value,
    })
}
