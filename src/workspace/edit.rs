//! Setting one value in a YAML file that a person wrote: everything else, comments included, stays
//! as it is.

use std::path::{Path, PathBuf};

use serde_yaml::Value;

use super::RUNTIME_FILE;
use super::error::ConfigError;
use super::locate::{Line, block, flow, flow_parts, lines};
use super::open::{parse, read};
use crate::domain::config::{Reasoning, RuntimeConfig};
use crate::domain::role::Role;
use crate::platform::files;

/// Why a value was not set. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file is wrong already, or would be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file could not be written.
    #[error(transparent)]
    File(#[from] files::FileError),
    /// The place is written in a way that cannot be edited safely.
    #[error("`{key}` in {} cannot be set without rewriting the file: set it by hand", path.display())]
    Unsafe {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
    },
    /// Nothing was given to set.
    #[error("nothing to set: give a model or a reasoning")]
    Nothing,
    /// A value is empty.
    #[error("{0} cannot be empty")]
    Empty(&'static str),
}

/// Waits until nobody else edits the configuration, and keeps others from it until it is dropped.
///
/// # Errors
/// Where the lock cannot be opened.
pub fn alone(root: &Path) -> Result<std::fs::File, EditError> {
    let folder = root.join(".teams_runtime");
    files::create_dir_all(&folder)?;
    let path = folder.join("config.lock");
    let lock = files::open_append(&path)?;
    files::at("lock", &path, lock.lock())?;
    Ok(lock)
}

/// Sets model and reasoning of a role (`spec/teams.md` C17, C18).
pub fn set_role_defaults(
    root: &Path,
    role: Role,
    model: Option<&str>,
    reasoning: Option<Reasoning>,
) -> Result<(), EditError> {
    if model.is_none() && reasoning.is_none() {
        return Err(EditError::Nothing);
    }
    if model.is_some_and(|model| model.trim().is_empty()) {
        return Err(EditError::Empty("the model"));
    }
    let _alone = alone(root)?;
    let path = root.join(RUNTIME_FILE);
    read(&path, RuntimeConfig::check)?;
    let mut text = files::read_text(&path)?;
    let values = [("model", model), ("reasoning", reasoning.map(Reasoning::as_str))];
    for (name, value) in values {
        if let Some(value) = value {
            let key = ["role_defaults", role.as_str(), name];
            text = set_scalar(&text, &key, value)
                .ok_or_else(|| EditError::Unsafe { key: key.join("."), path: path.clone() })?;
        }
    }
    parse(&path, &text, RuntimeConfig::check)?;
    files::rewrite_durable(&path, &text)?;
    Ok(())
}

/// The text with the value at `key` set, or `None` where that cannot be done by touching that value
/// alone. The outcome is parsed again and compared with what was meant.
#[must_use]
pub fn set_scalar(text: &str, key: &[&str], value: &str) -> Option<String> {
    let edited = edit(text, key, &scalar(value))?;
    let mut meant: Value = serde_yaml::from_str(text).ok()?;
    put(&mut meant, key, Value::String(value.to_owned()))?;
    let got: Value = serde_yaml::from_str(&edited).ok()?;
    (got == meant).then_some(edited)
}

/// The same for a list of words.
#[must_use]
pub fn set_list(text: &str, key: &[&str], words: &[String]) -> Option<String> {
    let items: Vec<String> = words.iter().map(|word| scalar(word)).collect();
    let list = format!("[{}]", items.join(", "));
    if let ([key], None) = (key, words.first()) {
        // A block of entries may stand there.
        return replaced(text, key, &format!(" {list}"), &Value::Sequence(Vec::new()));
    }
    let edited = edit(text, key, &list)?;
    let mut meant: Value = serde_yaml::from_str(text).ok()?;
    put(&mut meant, key, Value::Sequence(words.iter().cloned().map(Value::String).collect()))?;
    let got: Value = serde_yaml::from_str(&edited).ok()?;
    (got == meant).then_some(edited)
}

/// The same for a list of mappings at the top level, written an entry below the other; what stood there is
/// replaced.
#[must_use]
pub fn set_entries(text: &str, key: &str, entries: &Value) -> Option<String> {
    let mut block = String::new();
    for entry in entries.as_sequence()? {
        let mut lead = "  - ";
        for (name, value) in entry.as_mapping()? {
            let value = match value.as_sequence() {
                Some(words) => {
                    let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
                    let words: Vec<String> = words?.into_iter().map(scalar).collect();
                    format!("[{}]", words.join(", "))
                }
                None => scalar(value.as_str()?),
            };
            block.push_str(&format!("\n{lead}{}: {value}", name.as_str()?));
            lead = "    ";
        }
    }
    replaced(text, key, &block, entries)
}

/// The text with the whole value of a key at the top level replaced by what follows its colon.
fn replaced(text: &str, key: &str, value: &str, wanted: &Value) -> Option<String> {
    let all = lines(text);
    let at = all
        .iter()
        .position(|line| line.indent == 0 && line.entry().is_some_and(|(name, _)| name == key));
    let edited = match at {
        None => format!("{}\n{key}:{value}\n", text.trim_end()),
        Some(at) => {
            let (_, span) = all[at].entry()?;
            let below = block(&all[at + 1..], 0).last().filter(|_| span.is_empty());
            let end = below.map_or(span.end, |last| last.start + last.text.len());
            let colon = all[at].start + text[all[at].start..].find(':')? + 1;
            splice(text, colon..end, value)
        }
    };
    let mut meant: Value = serde_yaml::from_str(text).ok()?;
    put(&mut meant, &[key], wanted.clone())?;
    let got: Value = serde_yaml::from_str(&edited).ok()?;
    (got == meant).then_some(edited)
}

/// The text without a key at the top level and its value. `None` where they cannot be taken out alone.
#[must_use]
pub fn unset(text: &str, key: &str) -> Option<String> {
    let all = lines(text);
    let is_it =
        |line: &Line<'_>| line.indent == 0 && line.entry().is_some_and(|(name, _)| name == key);
    let at = all.iter().position(is_it)?;
    let (_, span) = all[at].entry()?;
    let below = block(&all[at + 1..], 0).last().filter(|_| span.is_empty());
    let last = below.unwrap_or(&all[at]);
    let start = text[..all[at].start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[last.start..].find('\n').map_or(text.len(), |at| last.start + at + 1);
    let edited = splice(text, start..end, "");
    let mut meant: Value = serde_yaml::from_str(text).ok()?;
    meant.as_mapping_mut()?.remove(key)?;
    let got: Value = serde_yaml::from_str(&edited).ok()?;
    (got == meant).then_some(edited)
}

/// The text with the value at `key` cleared, where its key stays. `None` where that cannot be done.
#[must_use]
pub fn clear(text: &str, key: &[&str]) -> Option<String> {
    let edited = edit(text, key, "null")?;
    let mut meant: Value = serde_yaml::from_str(text).ok()?;
    put(&mut meant, key, Value::Null)?;
    let got: Value = serde_yaml::from_str(&edited).ok()?;
    (got == meant).then_some(edited)
}

/// The value as YAML: bare where that is a string for certain, else quoted.
fn scalar(value: &str) -> String {
    let bare = value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && matches!(serde_yaml::from_str(value), Ok(Value::String(same)) if same == value);
    if bare { value.to_owned() } else { serde_json::Value::String(value.to_owned()).to_string() }
}

fn put(root: &mut Value, key: &[&str], value: Value) -> Option<()> {
    let Some((word, rest)) = key.split_first() else {
        *root = value;
        return Some(());
    };
    if root.is_null() {
        *root = Value::Mapping(serde_yaml::Mapping::new());
    }
    let map = root.as_mapping_mut()?;
    let word = Value::String((*word).to_owned());
    if !map.contains_key(&word) {
        map.insert(word.clone(), Value::Null);
    }
    put(map.get_mut(&word)?, rest, value)
}

fn edit(text: &str, key: &[&str], value: &str) -> Option<String> {
    let all = lines(text);
    let mut scope: &[Line<'_>] = &all;
    let mut column = 0;
    for (depth, word) in key.iter().enumerate() {
        let rest = &key[depth + 1..];
        let indent = scope.first().map_or(column, |line| line.indent);
        let found = scope.iter().position(|line| {
            line.indent == indent && line.entry().is_some_and(|(name, _)| name == *word)
        });
        let Some(at) = found else {
            return insert_below(text, scope, indent, &key[depth..], value);
        };
        let line = &scope[at];
        let (_, span) = line.entry()?;
        if rest.is_empty() {
            let lead = if span.is_empty() { " " } else { "" };
            return Some(splice(text, span, &format!("{lead}{value}")));
        }
        if text[span.clone()].starts_with('{') {
            return edit_flow(text, span, rest, value);
        }
        if !span.is_empty() {
            return None;
        }
        scope = block(&scope[at + 1..], line.indent);
        column = line.indent + 2;
        if scope.is_empty() {
            let end = line.start + line.text.len();
            let end = text[end..].find('\n').map_or(text.len(), |at| end + at);
            return Some(splice(text, end..end, &nested(column, rest, value)));
        }
    }
    None
}

/// Adds the keys after the last line of a scope.
fn insert_below(
    text: &str,
    scope: &[Line<'_>],
    indent: usize,
    key: &[&str],
    value: &str,
) -> Option<String> {
    let last = scope.last()?;
    let end = last.start + last.text.len();
    let end = text[end..].find('\n').map_or(text.len(), |at| end + at);
    Some(splice(text, end..end, &nested(indent, key, value)))
}

/// `\n` and the keys, each on its line, two columns deeper than the one above.
fn nested(indent: usize, key: &[&str], value: &str) -> String {
    let mut out = String::new();
    for (depth, word) in key.iter().enumerate() {
        out.push('\n');
        out.push_str(&" ".repeat(indent + 2 * depth));
        out.push_str(word);
        out.push(':');
    }
    out.push(' ');
    out.push_str(value);
    out
}

fn edit_flow(
    text: &str,
    span: std::ops::Range<usize>,
    key: &[&str],
    value: &str,
) -> Option<String> {
    let (word, rest) = key.split_first()?;
    let owned = [(*word).to_owned()];
    if let Some(found) = flow(text, span.clone(), &owned) {
        return if rest.is_empty() {
            Some(splice(text, found, value))
        } else if text[found.clone()].starts_with('{') {
            edit_flow(text, found, rest, value)
        } else {
            None
        };
    }
    let mut entry = value.to_owned();
    for word in key.iter().rev().take(key.len() - 1) {
        entry = format!("{{{word}: {entry}}}");
    }
    let entry = format!("{word}: {entry}");
    match flow_parts(text, span.clone()).last() {
        Some(last) => Some(splice(text, last.end..last.end, &format!(", {entry}"))),
        None => Some(splice(text, span.start + 1..span.start + 1, &entry)),
    }
}

fn splice(text: &str, span: std::ops::Range<usize>, with: &str) -> String {
    let mut out = String::with_capacity(text.len() + with.len());
    out.push_str(&text[..span.start]);
    out.push_str(with);
    out.push_str(&text[span.end..]);
    out
}

/// Where a key stands, for tests of the pair.
#[cfg(test)]
pub(super) fn value_at<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let words: Vec<String> = key.split('.').map(str::to_owned).collect();
    super::locate::locate(text, &words).map(|span| &text[span])
}
