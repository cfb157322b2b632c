//! What templates can do with values: cut, list, put into code blocks, say in words.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::value::Value as Jinja;
use minijinja::{Environment, Error, ErrorKind, State};
use serde::Serialize;

use crate::domain::language::Language;
use crate::domain::markdown::{self, FENCE, Piece};
use crate::platform::hidden;

/// Kinds of words: the filter `role` says `role.planner` for `planner`.
pub(super) const WORDS: [&str; 25] = [
    "intent",
    "plan_rule",
    "reviewer",
    "role",
    "step",
    "status",
    "agent",
    "decision",
    "kind",
    "planning_step",
    "phase",
    "sprint_status",
    "todo_status",
    "trigger",
    "closeout",
    "wrap",
    "prepass",
    "work",
    "right",
    "stance",
    "sprint_mode",
    "start_mode",
    "lane",
    "lane_about",
    "guard",
];

/// The whole of a text that is shown in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Whole {
    /// A plain file name.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// Texts that were shown in part while a template was filled in.
#[derive(Debug, Default)]
pub(super) struct ShortenedTexts(pub(super) Vec<Whole>);

/// Makes the filters known.
pub(super) fn add(
    templates: &mut Environment<'static>,
    language: Language,
    words: BTreeMap<String, String>,
) {
    templates.add_filter("cut", |text: String, limit: usize| shorten(&text, limit));
    templates.add_filter("tail", tail);
    templates.add_filter("whole", whole);
    templates.add_filter("fence", fence);
    templates.add_filter("contained", contained);
    templates.add_filter("code", |text: String| name(&text));
    templates.add_filter("line", |text: String| {
        markdown::without_blocks(&text).split_whitespace().collect::<Vec<_>>().join(" ")
    });
    templates.add_filter("short", |text: String| text.chars().take(10).collect::<String>());
    templates.add_filter("duration", move |seconds: f64| duration(seconds, language));
    templates.add_filter("amount", move |amount: Jinja| money(&amount, language));
    templates.add_filter("color", color);
    templates.add_filter("mark", mark);
    templates.add_filter("clock", |time: String| {
        // Minutes are enough, and the zone is the team's own.
        time.chars().take(16).collect::<String>().replace('T', " ")
    });
    templates.add_filter("items", move |list: Jinja, most: usize, inline: Option<bool>| {
        items(&list, most, inline, language)
    });
    let words = Arc::new(words);
    for kind in WORDS {
        let words = Arc::clone(&words);
        // A word that the catalog does not know is shown as it is.
        templates.add_filter(kind, move |name: String| {
            // An agent's name may have its version behind it.
            let (first, rest) = name.split_at(name.find(' ').unwrap_or(name.len()));
            words
                .get(&format!("{kind}.{first}"))
                .map_or(name.clone(), |word| format!("{word}{rest}"))
        });
    }
}

/// Without empty lines at the ends and more than one between, as optional parts leave them behind.
/// Code blocks are left as they are.
pub(super) fn tidy(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut open = None;
    for line in text.trim().lines() {
        let in_code = open.is_some();
        let blank = line.trim().is_empty();
        let before = lines.last().is_some_and(|last| last.trim().is_empty());
        if in_code || !(blank && before) {
            lines.push(if in_code { line } else { line.trim_end() });
        }
        open = markdown::open_after(open, line);
    }
    lines.join("\n")
}

pub(super) fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let short: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", short.trim_end())
}

/// The last `limit` characters, from the beginning of a line where there is one.
fn tail(text: String, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text;
    }
    let end: String = text.chars().skip(count - limit.saturating_sub(1)).collect();
    match end.split_once('\n') {
        Some((_, rest)) if !rest.trim().is_empty() => format!("…\n{rest}"),
        Some(_) | None => format!("…{end}"),
    }
}

/// As much of a text as is read here; where that is not all of it, the whole goes along as a file.
fn whole(
    state: &mut State<'_, '_>,
    text: String,
    limit: usize,
    name: String,
    from_end: Option<bool>,
) -> String {
    let text = text.trim();
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let shown = match from_end {
        Some(true) => tail(text.to_owned(), limit),
        Some(false) | None => beginning(text, limit),
    };
    let file = Whole { name: safe_name(&name), text: text.to_owned() };
    state.get_or_insert_extension(ShortenedTexts::default()).0.push(file);
    shown
}

/// A name that is one on every machine.
fn safe_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = name.chars().filter(|c| plain(*c)).take(60).collect();
    match name.trim_start_matches('.') {
        "" => "text.md".to_owned(),
        name => name.to_owned(),
    }
}

/// The beginning of a text in whole paragraphs, lines, sentences or words, whichever comes closest to the
/// limit without losing more than half of what fits. An open code block is closed.
pub(super) fn beginning(text: &str, limit: usize) -> String {
    let end = text.char_indices().nth(limit.saturating_sub(6)).map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    let sentence = || {
        let ends = |(at, c): (usize, char)| {
            let after = head[at + c.len_utf8()..].chars().next();
            let over = matches!(c, '。' | '！' | '？')
                || matches!(c, '.' | '!' | '?') && after.is_none_or(char::is_whitespace);
            over.then_some(at + c.len_utf8())
        };
        head.char_indices().filter_map(ends).next_back()
    };
    let places =
        [head.rfind("\n\n"), head.rfind('\n'), sentence(), head.rfind(char::is_whitespace)];
    let enough = |at: &usize| *at * 2 >= head.len();
    let at = places.into_iter().flatten().find(enough).unwrap_or(head.len());
    let mut shown = head[..at].trim_end().to_owned();
    if markdown::pieces(&shown).1.is_some() {
        shown.push('\n');
        shown.push_str(FENCE);
    }
    shown.push_str("\n…");
    shown
}

/// The edge of a card, by status.
fn color(status: String) -> &'static str {
    match status.as_str() {
        "working" | "delegated" => "4a7ebb",
        "checking" => "7a6bb5",
        "waiting" | "deciding" | "uncommitted" => "c9a227",
        "blocked" => "d9822b",
        "done" | "answered" | "completed" | "committed" => "3d8b5f",
        "failed" => "b5423a",
        _ => "8a8f98",
    }
}

/// The sign beside a status (`spec/teams.md` 12).
fn mark(status: String) -> &'static str {
    match status.as_str() {
        "completed" | "committed" | "done" => "✅",
        "running" | "delegated" | "selected" => "⏳",
        "queued" | "pending" | "uncommitted" => "⏸️",
        "blocked" => "⛔",
        "failed" => "⚠️",
        _ => "ℹ️",
    }
}

/// A list for people: lines, or words with commas where `inline`; names as code unless `inline` is
/// false. What is beyond `most` is counted. A value that is no list is shown as it is.
fn items(
    list: &Jinja,
    most: usize,
    inline: Option<bool>,
    language: Language,
) -> Result<String, Error> {
    if list.kind() != minijinja::value::ValueKind::Seq {
        return Ok(list.to_string());
    }
    let all: Vec<Jinja> = list.try_iter()?.collect();
    let mut shown = Vec::new();
    for item in all.iter().take(most) {
        shown.push(match (item.kind(), inline) {
            (minijinja::value::ValueKind::Map, _) => check(item, language)?,
            (_, Some(false)) => shorten(&item.to_string(), 300),
            (_, Some(true) | None) => name(&item.to_string()),
        });
    }
    if all.len() > most {
        let rest = all.len() - most;
        shown.push(match language {
            Language::En => format!("and {rest} more"),
            Language::Ko => format!("외 {rest}개"),
        });
    }
    Ok(match inline {
        Some(true) => shown.join(", "),
        Some(false) | None => {
            shown.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
        }
    })
}

/// A name as code, whatever stands in it: one of a file may have line breaks, backquotes and what nobody sees.
fn name(text: &str) -> String {
    let (text, _) = hidden::shown(text);
    format!("`{}`", shorten(&text.replace(['\n', '\t'], " ").replace('`', "'"), 200))
}

/// One check: `{name, passed, seconds, tests}`.
fn check(item: &Jinja, language: Language) -> Result<String, Error> {
    let mut text = format!("`{}`", item.get_attr("name")?);
    let (passed, tests) = (item.get_attr("passed")?, item.get_attr("tests")?);
    if !passed.is_undefined() && !passed.is_true() {
        // How many passed nevertheless would read as a success.
        text.push_str(match language {
            Language::En => " failed",
            Language::Ko => " 실패",
        });
    } else if tests.is_true() {
        text.push_str(&match language {
            Language::En => format!(" {tests} passed"),
            Language::Ko => format!(" {tests}개 통과"),
        });
    }
    // Below a second the time tells nothing.
    if let Some(seconds) = f64::try_from(item.get_attr("seconds")?).ok().filter(|time| *time >= 1.0)
    {
        text.push_str(&format!(" ({})", duration(seconds, language)));
    }
    Ok(text)
}

/// A text whose markup ends where it does, for a card about which somebody decides: it covers nothing behind it, and
/// takes nothing into a block of code.
fn contained(text: String) -> String {
    let (pieces, open) = markdown::pieces(&text);
    let pieces = pieces.into_iter().map(|piece| match piece {
        // A backquote that closes nothing here would open what stands behind.
        Piece::Plain(text) => text.replace("||", "\\|\\|").replace('`', "\\`"),
        Piece::Code(code) => code.to_owned(),
    });
    let mut text: String = pieces.collect();
    if open.is_some() {
        text.push('\n');
        text.push_str(FENCE);
    }
    text
}

/// A code block that its content cannot end, and in which nothing is hidden.
pub(super) fn fence(text: String, kind: Option<String>) -> Result<String, Error> {
    let kind = kind.unwrap_or_default();
    if kind.chars().any(|c| !c.is_ascii_alphanumeric()) {
        let message = "a code block's kind is a word such as `diff`";
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    let (text, _) = hidden::shown(&text.replace("\r\n", "\n").replace('\r', "\n"));
    let body = text.trim_end().replace(FENCE, "`\u{200b}`\u{200b}`");
    Ok(format!("```{kind}\n{body}\n```"))
}

/// Dollars, tokens, or both: `{usd: "4.10", tokens: "120000"}` is `$4.10, 120k tokens`.
fn money(amount: &Jinja, language: Language) -> String {
    let part = |key: &str| {
        let text = amount.get_attr(key).map(|it| it.to_string()).unwrap_or_default();
        Some(text).filter(|text| !text.is_empty())
    };
    let tokens = part("tokens").and_then(|text| text.parse::<u64>().ok()).map(|count| {
        let short = match count {
            0..=9_999 => count.to_string(),
            10_000..=9_999_999 => format!("{}k", count / 1_000),
            _ => format!("{}M", count / 1_000_000),
        };
        match language {
            Language::En => format!("{short} tokens"),
            Language::Ko => format!("{short} 토큰"),
        }
    });
    let all = part("usd").map(|usd| format!("${usd}")).into_iter().chain(tokens);
    all.collect::<Vec<_>>().join(", ")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded seconds of a piece of work; a cast of anything else saturates"
)]
pub(crate) fn duration(seconds: f64, language: Language) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let (h, m, s) = match language {
        Language::En => (" h", " min", " s"),
        Language::Ko => ("시간", "분", "초"),
    };
    match (hours, minutes) {
        (0, 0) => format!("{rest}{s}"),
        (0, _) if rest == 0 => format!("{minutes}{m}"),
        (0, _) => format!("{minutes}{m} {rest}{s}"),
        (_, 0) => format!("{hours}{h}"),
        (_, _) => format!("{hours}{h} {minutes}{m}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_ends_with_the_text_that_it_is_in() {
        for (text, shown) in [
            ("see `a.py` and ||this||", "see `a.py` and \\|\\|this\\|\\|"),
            // Cut within a name.
            ("not run: `tests/a", "not run: \\`tests/a"),
        ] {
            assert_eq!(contained(text.to_owned()), shown);
        }
    }
}
