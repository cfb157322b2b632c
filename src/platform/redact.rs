//! Keeps secrets out of logs, messages and files.
//!
//! Two nets: by value (every secret that the process was given is registered), and by shape (what
//! looks like a token although nobody registered it). Every sink passes its text through here.

use std::borrow::Cow;
use std::sync::{LazyLock, RwLock};

use regex::{Captures, Regex};
use serde_json::Value;

/// What stands where a secret stood.
pub const MASK: &str = "[redacted]";
/// Shorter values are not registered: they would mask ordinary words.
const SHORTEST: usize = 8;

static KNOWN: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Registers a secret by value. Blank and very short values are ignored.
pub fn register(secret: &str) {
    let secret = secret.trim();
    if secret.len() < SHORTEST {
        return;
    }
    // A poisoned lock still holds a whole list: pushes cannot be half done.
    let mut known = KNOWN.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    // As it stands, and as it stands in a JSON text or a debug line.
    let escaped = Value::from(secret).to_string();
    let escaped = escaped.get(1..escaped.len() - 1).unwrap_or(secret);
    for form in [secret, escaped] {
        if !known.iter().any(|value| value == form) {
            known.push(form.to_owned());
        }
    }
    // Longest first, so that a secret that contains another is masked whole.
    known.sort_by_key(|value| std::cmp::Reverse(value.len()));
}

/// The shapes; the group `keep`, where there is one, stays.
const SHAPES: [&str; 10] = [
    // A private key block, also one that was cut off.
    r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)",
    // Discord bot tokens: id, time, signature.
    r"\b[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    // Discord webhook addresses carry their secret in the path.
    r"(?P<keep>/webhooks/\d{5,}/)[A-Za-z0-9_-]{40,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}",
    // A signed web token.
    r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",
    r"(?i)(?P<keep>\b(?:bearer|bot)\s+)[A-Za-z0-9._~+/=-]{20,}",
    // Credentials in an address.
    r"(?P<keep>\b[a-z][a-z0-9+.-]*://[^/\s:@]*:)[^/\s@]+(?P<after>@)",
];

/// The compiled shapes. A pattern that does not compile is caught by a test of this file.
static PATTERNS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| SHAPES.iter().filter_map(|shape| Regex::new(shape).ok()).collect());

/// The text with every secret masked.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    {
        let known = KNOWN.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        for secret in known.iter() {
            if clean.contains(secret.as_str()) {
                clean = Cow::Owned(clean.replace(secret.as_str(), MASK));
            }
        }
    }
    for pattern in PATTERNS.iter() {
        if pattern.is_match(&clean) {
            clean = Cow::Owned(pattern.replace_all(&clean, mask).into_owned());
        }
    }
    clean
}

/// A value with every secret in its texts masked, names of fields included.
#[must_use]
pub fn value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(self::value).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, inner)| (redact(&name).into_owned(), self::value(inner)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

fn mask(found: &Captures<'_>) -> String {
    let group = |name| found.name(name).map_or("", |part| part.as_str());
    format!("{}{MASK}{}", group("keep"), group("after"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_compiles() {
        assert_eq!(PATTERNS.len(), SHAPES.len());
    }

    #[test]
    fn registered_values_are_masked_wherever_they_stand() {
        register("correct-horse-battery");
        register("correct-horse-battery-staple");
        register("short");
        assert_eq!(
            redact("a=correct-horse-battery-staple b=correct-horse-battery short"),
            format!("a={MASK} b={MASK} short")
        );
    }

    #[test]
    fn shapes_are_masked_and_ordinary_text_is_not() {
        let discord = format!("M{}.{}.{}", "a".repeat(23), "b".repeat(6), "c".repeat(38));
        let table = [
            (format!("token {discord} end"), format!("token {MASK} end")),
            (format!("key sk-{}", "x1".repeat(12)), format!("key {MASK}")),
            (format!("ghp_{}", "Z9".repeat(18)), MASK.to_owned()),
            (
                format!("Authorization: Bearer {}", "q".repeat(24)),
                format!("Authorization: Bearer {MASK}"),
            ),
            ("https://user:hunter2@host/x".to_owned(), format!("https://user:{MASK}@host/x")),
            (
                format!("-----BEGIN {k}-----\nabc\n-----END {k}-----\nrest", k = "EC PRIVATE KEY"),
                format!("{MASK}\nrest"),
            ),
        ];
        for (text, expected) in table {
            assert_eq!(redact(&text), expected);
        }
        for text in [
            "a sk-short one",
            "the bearer of news",
            "commit 0123456789abcdef0123456789abcdef01234567",
            "see https://example.org:8080/path",
        ] {
            assert!(matches!(redact(text), Cow::Borrowed(same) if same == text));
        }
    }
}
