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

/// The shapes. The group `keep`, where there is one, stays; `doubted` is masked if it looks like a token.
const SHAPES: [&str; 11] = [
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
    r"(?i)(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/=-]{20,}",
    // People write of bots as well: what follows has to look like a token.
    r"(?i)(?P<keep>\bbot\s+)(?P<doubted>[A-Za-z0-9._~+/=-]{20,})",
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
            let masked = pattern.replace_all(&clean, mask);
            // What was doubted and stays is no change.
            if *masked != *clean {
                clean = Cow::Owned(masked.into_owned());
            }
        }
    }
    clean
}

/// Whether a word is a token rather than prose, a path or an address: a bot's token in its three parts, or
/// letters of both cases and digits, as random bytes in base64 have them.
fn looks_like_a_token(word: &str) -> bool {
    let word = word.trim_end_matches(['.', '-', '~']);
    let parts: Vec<&str> = word.split('.').collect();
    let plain =
        |part: &str| part.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it));
    match parts.as_slice() {
        [id, time, signature] => {
            id.len() >= 16
                && time.len() >= 5
                && signature.len() >= 20
                && parts.iter().all(|part| plain(part))
        }
        [word] => {
            let has = |kind: fn(&u8) -> bool| word.bytes().any(|it| kind(&it));
            word.len() >= 20
                && has(u8::is_ascii_digit)
                && has(u8::is_ascii_lowercase)
                && has(u8::is_ascii_uppercase)
        }
        _ => false,
    }
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
    if let (Some(whole), Some(word)) = (found.get(0), found.name("doubted"))
        && !looks_like_a_token(word.as_str())
    {
        return whole.as_str().to_owned();
    }
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
    fn what_follows_the_word_bot_is_masked_only_if_it_is_a_token() {
        let parts = format!("{}.{}.{}", "7".repeat(18), "abc-_9", "f".repeat(38));
        for token in [parts.as_str(), "q83Tz1kLm0Xb2Yc4Vd6Wn8", "q83Tz1kLm0Xb2/Yc4+Vd6Wn8=="] {
            for before in ["Bot ", "bot ", "authorization: BOT  "] {
                let text = format!("{before}{token} end");
                assert_eq!(redact(&text), format!("{before}{MASK} end"));
            }
            // In a sentence, and in quotes.
            assert!(!redact(&format!("It was bot {token}.")).contains(token));
            assert!(!redact(&format!("\"Bot {token}\"")).contains(token));
        }
        for text in [
            "a bot internationalization layer",
            "the bot Internationalizations and more",
            "each bot responsible-for-one-role-only answers",
            "the bot docs.example.organization is down",
            "bot src/local_guild/rest/commands.rs",
            "a bot ====================",
            "bot version-20260324-nightly-build",
            "bot 0123456789abcdef0123456789abcdef01234567",
            "Robot Tz1kLm0Xb2Yc4Vd6Wn8q83",
        ] {
            assert!(matches!(redact(text), Cow::Borrowed(same) if same == text), "{text}");
        }
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
