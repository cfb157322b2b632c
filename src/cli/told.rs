//! Steps and findings as people and programs read them: a line of words, or a line of JSON.

use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr as _;

use super::output::say_json;
use super::plain::plain;
use super::{Failure, say};
use crate::assets::catalog::Catalog;
use crate::domain::language::Language;
use crate::domain::outgoing::Content;
use crate::platform::redact;

/// The column at which lines begin, after the word for how it came out.
const COLUMN: usize = 11;

/// Says lines in one language, or as JSON.
pub(super) struct Printer {
    catalog: Catalog,
    language: Language,
    json: bool,
}

impl Printer {
    pub(super) fn new(language: Language, json: bool) -> Result<Printer, Failure> {
        Ok(Printer { catalog: Catalog::builtin()?, language, json })
    }

    pub(super) const fn is_json(&self) -> bool {
        self.json
    }

    /// A text of the catalog; the key where it cannot be filled in.
    pub(super) fn words(&self, key: &str, values: &Map<String, Value>) -> String {
        let content =
            Content { key: key.to_owned(), values: values.clone(), language: self.language };
        let text = match self.catalog.render(&content) {
            Ok(rendered) => rendered.text,
            Err(error) => {
                tracing::warn!(%error, key, "a text cannot be said");
                key.to_owned()
            }
        };
        redact::redact(plain(text.trim_end()).trim_end()).into_owned()
    }

    /// One line of words behind its mark; further lines stand below its beginning.
    pub(super) fn line(&self, mark: &str, text: &str) {
        let mark = self.catalog.label(mark, self.language);
        let gap = " ".repeat(COLUMN.saturating_sub(mark.width()).max(1));
        let below = format!("\n{}", " ".repeat(COLUMN));
        say(format_args!("{mark}{gap}{}", text.replace('\n', &below)));
    }

    /// One object on a line: the fields first, then the values that they do not name.
    pub(super) fn object(&self, fields: Vec<(&str, Value)>, values: &Map<String, Value>) {
        let mut object = Map::new();
        for (name, value) in fields {
            object.insert(name.to_owned(), value);
        }
        for (name, value) in values {
            object.entry(name.clone()).or_insert_with(|| value.clone());
        }
        say_json(&Value::Object(object), false);
    }
}

/// The values of a text.
pub(super) fn object(values: Value) -> Map<String, Value> {
    if let Value::Object(values) = values { values } else { Map::new() }
}

/// The language of this machine's person; `else_` where the machine does not say.
pub(super) fn language(else_: Language) -> Language {
    let set = ["LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    match set.as_deref() {
        Some(value) if value.starts_with("ko") => Language::Ko,
        Some(value) if value.starts_with("en") => Language::En,
        // `C` and `POSIX` say nothing, and the team speaks no other language.
        Some(_) | None => else_,
    }
}
