//! Keeps secrets out of logs, messages and files.
//!
//! Two nets: by value (every secret that the process was given is registered), and by shape (what
//! looks like a token although nobody registered it). Every sink passes its text through here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::{Captures, Regex, RegexSet, bytes};
use serde_json::Value;

/// What stands where a secret stood.
pub const MASK: &str = "[redacted]";
/// Shorter values are not registered: they would mask ordinary words.
const SHORTEST: usize = 8;

static KNOWN: RwLock<Secrets> = RwLock::new(Secrets::new());

/// The secrets that are registered, and the one automaton that looks for all of them at once.
struct Secrets {
    /// How often each is held; those for as long as the process lives are never let go.
    held: BTreeMap<String, usize>,
    search: Option<Search>,
}

/// Looks for every form of every secret in one pass.
struct Search {
    forms: Vec<String>,
    /// In texts.
    texts: AhoCorasick,
    /// In bytes that are no text, which are rare.
    bytes: OnceLock<Option<(AhoCorasick, Vec<Vec<u8>>)>>,
}

impl Secrets {
    const fn new() -> Secrets {
        Secrets { held: BTreeMap::new(), search: None }
    }

    fn hold(&mut self, secret: &str) {
        let count = self.held.entry(secret.to_owned()).or_default();
        *count += 1;
        if *count == 1 {
            self.search = Search::of(self.held.keys());
        }
    }

    fn release(&mut self, secret: &str) {
        if let Some(count) = self.held.get_mut(secret) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.held.remove(secret);
                self.search = Search::of(self.held.keys());
            }
        }
    }
}

impl Search {
    fn of<'a>(secrets: impl Iterator<Item = &'a String>) -> Option<Search> {
        let mut forms: Vec<String> = Vec::new();
        for secret in secrets {
            // As it stands, and as it stands in a JSON text or a debug line.
            let escaped = Value::from(secret.as_str()).to_string();
            let escaped = escaped.get(1..escaped.len() - 1).filter(|it| it != secret);
            forms.extend(escaped.map(str::to_owned));
            forms.push(secret.clone());
        }
        if forms.is_empty() {
            return None;
        }
        let texts = automaton(&forms)?;
        Some(Search { forms, texts, bytes: OnceLock::new() })
    }

    /// The bytes with every secret masked, also in the forms that a text of 16-bit characters has.
    fn masked(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let found = self.bytes.get_or_init(|| {
            let (mut forms, mut masks) = (Vec::new(), Vec::new());
            for form in &self.forms {
                forms.push(form.clone().into_bytes());
                masks.push(MASK.as_bytes().to_vec());
                for order in Order::BOTH {
                    forms.push(order.encode(form));
                    masks.push(order.encode(MASK));
                }
            }
            Some((automaton(&forms)?, masks))
        });
        let (automaton, masks) = found.as_ref()?;
        Some(automaton.replace_all_bytes(bytes, masks))
    }
}

/// Finds the longest first, so that a secret that contains another is masked whole. It is made anew with every
/// run, so it is one that is made quickly. `None` where there is more to find than the memory holds.
fn automaton<T: AsRef<[u8]>>(forms: &[T]) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(forms)
        .ok()
}

/// The order of the two bytes of a character of UTF-16.
#[derive(Debug, Clone, Copy)]
enum Order {
    LowFirst,
    HighFirst,
}

impl Order {
    const BOTH: [Order; 2] = [Order::LowFirst, Order::HighFirst];

    fn encode(self, text: &str) -> Vec<u8> {
        let units = text.encode_utf16();
        match self {
            Order::LowFirst => units.flat_map(u16::to_le_bytes).collect(),
            Order::HighFirst => units.flat_map(u16::to_be_bytes).collect(),
        }
    }

    /// The character of ASCII that two bytes are.
    fn ascii(self, pair: &[u8]) -> Option<u8> {
        let (low, high) = match (self, pair) {
            (Order::LowFirst, [low, high]) | (Order::HighFirst, [high, low]) => (*low, *high),
            _ => return None,
        };
        (high == 0 && (low.is_ascii_graphic() || low.is_ascii_whitespace())).then_some(low)
    }
}

/// Registers a secret by value, for as long as the process lives. Blank and very short values are ignored.
pub fn register(secret: &str) {
    // Never let go.
    std::mem::forget(MaskedSecret::new(secret));
}

/// Registers a secret that is worth something for a time only, until what is given back is dropped.
#[must_use = "the secret is known for as long as this is kept"]
pub fn hold(secret: &str) -> MaskedSecret {
    MaskedSecret::new(secret)
}

/// A secret that is masked while this is kept.
#[derive(Debug)]
pub struct MaskedSecret(Option<String>);

impl MaskedSecret {
    fn new(secret: &str) -> MaskedSecret {
        let secret = secret.trim();
        if secret.len() < SHORTEST {
            return MaskedSecret(None);
        }
        // A poisoned lock still holds a whole list: what is done under it does not panic half-way.
        KNOWN.write().unwrap_or_else(PoisonError::into_inner).hold(secret);
        MaskedSecret(Some(secret.to_owned()))
    }
}

impl Drop for MaskedSecret {
    fn drop(&mut self) {
        if let Some(secret) = &self.0 {
            KNOWN.write().unwrap_or_else(PoisonError::into_inner).release(secret);
        }
    }
}

/// What begins like this: at the beginning of a word, or where the letter before it ends an escape of JSON, of an address
/// or of a terminal.
macro_rules! token {
    ($shape:literal) => {
        concat!(
            r#"(?P<keep>\\[nrtbf"/]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]*m|\b)"#,
            $shape
        )
    };
}

/// The shapes. The group `keep`, where there is one, stays; `doubted` is masked if it looks like a token.
const SHAPES: [&str; 11] = [
    // A private key block, also one that was cut off.
    r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)",
    // Discord bot tokens: id, time, signature.
    token!(r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    // Discord webhook addresses carry their secret in the path.
    r"(?P<keep>/webhooks/\d{5,}/)[A-Za-z0-9_-]{40,}",
    token!(r"sk-[A-Za-z0-9_-]{16,}"),
    token!(r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})"),
    token!(r"xox[abprs]-[A-Za-z0-9-]{10,}"),
    token!(r"(?:(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[A-Za-z0-9_-]{35})"),
    // A signed web token.
    token!(r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"),
    r"(?i)(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/=-]{20,}",
    // People write of bots as well: what follows has to look like a token.
    r"(?i)(?P<keep>\bbot\s+)(?P<doubted>[A-Za-z0-9._~+/=-]{20,})",
    // Credentials in an address.
    r"(?P<keep>\b[a-z][a-z0-9+.-]*://[^/\s:@]*:)[^/\s@]+(?P<after>@)",
];

/// The compiled shapes. A pattern that does not compile is caught by a test of this file.
static PATTERNS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| SHAPES.iter().filter_map(|shape| Regex::new(shape).ok()).collect());

/// All of them at once: which of them to try. Nearly every text holds none.
static ANY: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(SHAPES).ok());

/// The same for bytes that are no text.
static BYTES: LazyLock<Vec<bytes::Regex>> = LazyLock::new(|| {
    let build = |shape: &&str| bytes::RegexBuilder::new(shape).unicode(false).build().ok();
    SHAPES.iter().filter_map(build).collect()
});

/// The text with every secret masked.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(search) = &known.search
            && search.texts.is_match(text)
        {
            let mut masked = String::with_capacity(text.len());
            search.texts.replace_all_with(text, &mut masked, |_, _, into| {
                into.push_str(MASK);
                true
            });
            clean = Cow::Owned(masked);
        }
    }
    let any = ANY.as_ref().map(|set| set.matches(&clean));
    for (at, pattern) in PATTERNS.iter().enumerate() {
        if any.as_ref().is_none_or(|any| any.matched(at)) {
            let masked = pattern.replace_all(&clean, mask);
            // What was doubted and stays is no change.
            if *masked != *clean {
                clean = Cow::Owned(masked.into_owned());
            }
        }
    }
    clean
}

/// What is called a secret and given a value, such as `API_KEY = "…"`.
static ASSIGNED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let name = r"(?:secret|passwd|password|passphrase|token|credential|(?:api|access|private|auth|signing|encryption)[_-]?key)";
    Regex::new(&format!(
        r#"(?i)(?P<before>[a-z0-9_.-]*){name}s?["']?\s*(?::|:?=|=>)\s*["']?(?P<value>[A-Za-z0-9+/_.=-]{{20,}})["']?"#
    ))
    .ok()
});

/// Whether a line gives something that it calls a secret a value that looks like one. Such a value is masked nowhere, for
/// words of people may look like it; a person is asked about it before it is committed.
#[must_use]
pub fn assigns_secret(line: &str) -> bool {
    let Some(pattern) = ASSIGNED.as_ref() else { return false };
    let is_hash = |before: &str| before.to_lowercase().contains("hash");
    let mut found = pattern.captures_iter(line);
    found.any(|found| !is_hash(&found["before"]) && looks_random(&found["value"]))
}

/// Whether a value is what a program calls something by: a path, an address on a chain, `Module.function_of_it`.
fn is_named_thing(value: &str) -> bool {
    let is_identifier = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    value.starts_with(['/', '.'])
        || value.starts_with("0x")
        || value.contains('.') && value.split('.').all(is_identifier)
}

/// Letters of both cases and several digits in no order: no name, no path, no place to fill in.
fn looks_random(value: &str) -> bool {
    let count = |fits: fn(&char) -> bool| value.chars().filter(fits).count();
    let digits = count(char::is_ascii_digit);
    let changes = value.as_bytes().windows(2).filter(|two| kind(two[0]) != kind(two[1])).count();
    let is_hex = value.bytes().all(|c| c.is_ascii_hexdigit()) && value.len() >= 32;
    let is_mixed = count(char::is_ascii_uppercase) >= 2 && count(char::is_ascii_lowercase) >= 2;
    digits >= 3 && !is_named_thing(value) && (is_hex || is_mixed && changes * 3 >= value.len())
}

fn kind(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    }
}

/// The bytes of a file with every secret masked, whatever they are: text in UTF-8, in UTF-16, in another or no
/// known encoding.
#[must_use]
pub fn redact_bytes(bytes: Vec<u8>) -> Vec<u8> {
    // A text of 16-bit characters can be valid UTF-8, with zeros in it.
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => return redact(&text).into_owned().into_bytes(),
        Ok(text) => text.into_bytes(),
        Err(other) => other.into_bytes(),
    };
    let mut clean = {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        let masked = known.search.as_ref().and_then(|search| search.masked(&bytes));
        masked.unwrap_or(bytes)
    };
    for pattern in BYTES.iter() {
        if pattern.is_match(&clean) {
            clean = pattern.replace_all(&clean, mask_bytes).into_owned();
        }
    }
    Order::BOTH.into_iter().fold(clean, wide_shapes)
}

/// Masks what looks like a token in the parts that are ASCII in 16-bit characters, wherever those begin.
fn wide_shapes(bytes: Vec<u8>, order: Order) -> Vec<u8> {
    let mut clean = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let run: Vec<u8> = rest.chunks_exact(2).map_while(|pair| order.ascii(pair)).collect();
        let text = String::from_utf8(run).unwrap_or_default();
        if text.len() < SHORTEST {
            clean.extend(rest.first());
            at += 1;
            continue;
        }
        clean.extend(order.encode(&redact(&text)));
        at += 2 * text.len();
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

fn mask_bytes(found: &bytes::Captures<'_>) -> Vec<u8> {
    if let (Some(whole), Some(word)) = (found.get(0), found.name("doubted"))
        && !looks_like_a_token(&String::from_utf8_lossy(word.as_bytes()))
    {
        return whole.as_bytes().to_vec();
    }
    let group = |name| found.name(name).map_or(&b""[..], |part| part.as_bytes());
    [group("keep"), MASK.as_bytes(), group("after")].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_compiles() {
        assert_eq!(PATTERNS.len(), SHAPES.len());
        assert_eq!(BYTES.len(), SHAPES.len());
        assert_eq!(ANY.as_ref().map(RegexSet::len), Some(SHAPES.len()));
    }

    #[test]
    fn a_token_is_seen_behind_the_escape_before_it() {
        let token = format!("ghp_{}", "A1b2".repeat(6));
        for before in ["\\n", "\\t", "\\\"", "\\u001b", "token%3D", "\u{1b}[32m", "\n", "=", ""] {
            let text = format!("{before}{token} end");
            assert_eq!(redact(&text), format!("{before}{MASK} end"), "{text:?}");
            let bytes = redact_bytes(text.into_bytes());
            assert_eq!(String::from_utf8(bytes).unwrap(), format!("{before}{MASK} end"));
        }
        for text in ["a risk-assessment-of-everything", "task-0123456789abcdef0123", "xeyJab"] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn what_is_called_a_secret_and_looks_like_one_is_seen() {
        for line in [
            "AWS_SECRET_ACCESS_KEY=q8Zt3LmN0aYw7RkXc2VbHs5JpDf9GuTe1QiOx4Wv",
            "  \"api_key\": \"9fK2mQ7xLp4Rv8Tz1Bn6\",",
            "password: Xy7-pQ2_zR9.aB4kL8mN",
            "const TOKEN = '0123456789abcdef0123456789abcdef';",
        ] {
            assert!(assigns_secret(line), "{line}");
        }
        for line in [
            "AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY}",
            "password = getpass.getpass(prompt_for_the_user)",
            "token: secrets.GITHUB_TOKEN_OF_RELEASE",
            "api_key = \"your-api-key-goes-here-please\"",
            "cache_key = 0123456789abcdef0123456789abcdef",
            "  \"hashed_secret\": \"0123456789abcdef0123456789abcdef01234567\",",
            "USDC_TOKEN = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'",
            "TOKEN_PROGRAM_ID = \"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA\"",
            "private_key = Ed25519PrivateKey.from_private_bytes(raw)",
            "token_sha256 = \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
            "tokenURL: /api/v1/A2b/C3d/E4f/G5h",
            "SecretName: My-App-Secret-2024-AB-CD",
            "\"https://deno.land/x/mod/token.ts\": \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",",
            "let token = RequestToken::from_parts(header1, body2, trailer3);",
        ] {
            assert!(!assigns_secret(line), "{line}");
        }
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
    fn a_secret_that_is_held_is_forgotten_with_its_last_holder() {
        let secret = "teams-run-0123456789abcdef-of-this-test";
        let text = format!("x {secret} y");
        let before = KNOWN.read().unwrap().held.len();
        let (one, other) = (hold(secret), hold(secret));
        assert_eq!(redact(&text), format!("x {MASK} y"));
        drop(one);
        assert_eq!(redact(&text), format!("x {MASK} y"));
        drop(other);
        assert_eq!(redact(&text), text);
        // Other tests of this process register as well, and few.
        for number in 0..500 {
            drop(hold(&format!("{secret}-{number}")));
        }
        assert!(KNOWN.read().unwrap().held.len() < before + 50);
        // One that is registered for good stays, however often it is held besides.
        register("for-good-0123456789");
        drop(hold("for-good-0123456789"));
        assert_eq!(redact("for-good-0123456789"), MASK);
    }

    #[test]
    fn bytes_that_are_no_text_are_masked_as_bytes() {
        let secret = "Geheimnis-\u{e4}\"0815";
        register(secret);
        let shaped = format!("sk-{}", "x1".repeat(12));
        let address = "https://user:hunter2@host/x";
        let wide = |order: Order, text: &str| [&[0xff][..], &order.encode(text)].concat();
        let plain = format!("\u{c4} {secret} and {shaped} and {address} \u{c4}");
        let masked = format!("\u{c4} {MASK} and {MASK} and https://user:{MASK}@host/x \u{c4}");
        assert_eq!(redact_bytes(plain.clone().into_bytes()), masked.as_bytes());
        // A byte that is no UTF-8 before, after and within an address.
        let torn = |text: &str| [b"\xff\xfe\0", text.as_bytes(), b"\xc3"].concat();
        assert_eq!(redact_bytes(torn(&plain)), torn(&masked));
        assert_eq!(
            redact_bytes(b"ftp://user:p\xe4ss@host".to_vec()),
            format!("ftp://user:{MASK}@host").into_bytes()
        );
        for order in Order::BOTH {
            // Also where the characters do not begin at an even place.
            assert_eq!(redact_bytes(order.encode(&plain)), order.encode(&masked));
            assert_eq!(redact_bytes(wide(order, &plain)), wide(order, &masked));
        }
        let picture: Vec<u8> = (0..=255).cycle().take(4_000).collect();
        assert_eq!(redact_bytes(picture.clone()), picture);
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
