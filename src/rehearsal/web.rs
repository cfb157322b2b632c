//! Reading a page of the web, for the rehearsal of research.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

/// Bytes of a page that are read.
const PAGE_BYTES: usize = 1 << 20;
/// Characters of a title, and of a page's beginning, that are kept.
const TITLE_CHARS: usize = 120;
const BEGINNING_CHARS: usize = 300;
/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// A page.
pub(super) struct Page {
    pub(super) title: String,
    pub(super) beginning: String,
}

static ADDRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"https?://[^\s<>()\[\]"'`]+"#).ok());
static TITLE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?is)<title[^>]*>(.*?)</title>").ok());
static HIDDEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?is)<(?:head|script|style)\b.*?</(?:head|script|style)>|<[^>]*>").ok()
});

/// The addresses in a text, each once, in its order.
pub(super) fn addresses(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for one in ADDRESS.iter().flat_map(|address| address.find_iter(text)) {
        let one = one.as_str().trim_end_matches(['.', ',', ';', ':', '!', '?']);
        if !found.iter().any(|known| known == one) {
            found.push(one.to_owned());
        }
    }
    found
}

/// Reads a page.
pub(super) fn read(address: &str) -> Result<Page, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let text = runtime.block_on(fetch(address)).map_err(|error| error.to_string())?;
    Ok(page(&text, address))
}

async fn fetch(address: &str) -> reqwest::Result<String> {
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::limited(5))
        .build()?;
    let mut answer = client.get(address).send().await?.error_for_status()?;
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        bytes.extend_from_slice(&piece);
        if bytes.len() >= PAGE_BYTES {
            bytes.truncate(PAGE_BYTES);
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn page(text: &str, address: &str) -> Page {
    let flat = |text: &str, chars: usize| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        line.chars().take(chars).collect::<String>()
    };
    let named = TITLE.as_ref().and_then(|title| title.captures(text));
    let plain = HIDDEN
        .as_ref()
        .map_or_else(|| text.to_owned(), |hidden| hidden.replace_all(text, " ").into_owned());
    let first = plain.lines().map(|line| line.trim_start_matches('#').trim());
    let title = named
        .map(|found| flat(&found[1], TITLE_CHARS))
        .filter(|title| !title.is_empty())
        .or_else(|| first.clone().find(|line| !line.is_empty()).map(|it| flat(it, TITLE_CHARS)))
        .unwrap_or_else(|| address.to_owned());
    Page { title, beginning: flat(&plain, BEGINNING_CHARS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_end_where_the_sentence_does() {
        let text = "See https://a.example/x?y=1, (http://b.example) and https://a.example/x?y=1.";
        assert_eq!(addresses(text), ["https://a.example/x?y=1", "http://b.example"]);
        assert!(addresses("ftp://c.example and nothing").is_empty());
    }

    #[test]
    fn a_page_is_known_by_its_title_or_its_first_line() {
        let html = "<html><head><title> How\n to greet </title></head><body><p>Say hello.</p>";
        let found = page(html, "http://a");
        assert_eq!(
            (found.title.as_str(), found.beginning.as_str()),
            ("How to greet", "Say hello.")
        );
        assert_eq!(page("\n# Greeting\ntext", "http://a").title, "Greeting");
        assert_eq!(page("", "http://a").title, "http://a");
    }
}
