//! Rendering a template: strict about names, never escaping, because what is written is Markdown,
//! YAML or a prompt.

use chrono_tz::Tz;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::lookup::AssetError;
use crate::domain::time::Timestamp;

/// Renders a template text. `name` is for errors only.
pub fn render(name: &str, source: &str, context: impl Serialize) -> Result<String, AssetError> {
    fill(name, source, &Values::of(context), false)
}

/// What templates may show, made ready once for several of them.
#[derive(Debug, Clone)]
pub struct Values(Value);

impl Values {
    /// Takes over everything in it.
    #[must_use]
    pub fn of(context: impl Serialize) -> Values {
        Values(Value::from(Serde(&context)))
    }
}

/// Renders the text of a document: a line with nothing but a tag leaves no empty line behind, and there is
/// never more than one empty line. What people and roles wrote goes through one of the filters `line`,
/// `cell` and `quote`, so that it can forge neither a heading nor a mark.
pub fn render_document(name: &str, source: &str, values: &Values) -> Result<String, AssetError> {
    let text = fill(name, source, values, true)?;
    let mut lines: Vec<&str> = Vec::new();
    for line in text.trim().lines().map(str::trim_end) {
        let doubled = line.is_empty() && lines.last().is_some_and(|last| last.is_empty());
        if !doubled {
            lines.push(line);
        }
    }
    Ok(lines.join("\n"))
}

fn fill(name: &str, source: &str, values: &Values, trim: bool) -> Result<String, AssetError> {
    let failed = |error: minijinja::Error| AssetError::Template {
        name: name.to_owned(),
        message: format!("{error:#}"),
    };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .trim_blocks(trim)
        .lstrip_blocks(trim)
        .build()
        .map_err(failed)?;
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.add_filter("line", |text: String, most: Option<usize>| line(&text, most));
    environment.add_filter("cell", |text: String, most: Option<usize>| {
        line(&text, most).replace('|', "/")
    });
    environment.add_filter("clock", |time: String, zone: String| {
        let zone = zone.parse::<Tz>().unwrap_or(Tz::Asia__Seoul);
        // What has not happened yet has no time.
        Timestamp::parse(&time)
            .map_or_else(|_| String::new(), |at| at.format_in(zone, "%Y-%m-%d %H:%M"))
    });
    environment.add_filter("quote", |text: String| {
        let lines = text.trim().lines().map(|one| format!("> {}", harmless(one.trim_end())));
        lines.collect::<Vec<_>>().join("\n")
    });
    environment.render_named_str(name, source, values.0.clone()).map_err(failed)
}

/// On one line, without control characters, cut at so many characters.
fn line(text: &str, most: Option<usize>) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let flat = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let most = most.unwrap_or(600);
    if flat.chars().count() <= most {
        return harmless(&flat);
    }
    let cut: String = flat.chars().take(most.saturating_sub(1)).collect();
    harmless(&format!("{cut}…"))
}

/// A comment of HTML could be one of our own marks.
fn harmless(text: &str) -> String {
    text.replace("<!--", "&lt;!--")
}
