//! What the team says: one template a key in each language, filled in at delivery.
//!
//! A template is a text, or a mapping that yields an embed. It is strict: a value that it names and that
//! was not given is an error, so a typing mistake is found by a test and not by a reader.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use minijinja::value::Value as Jinja;
use minijinja::{Environment, UndefinedBehavior};
use serde::{Deserialize, Serialize};

use crate::domain::language::Language;
use crate::domain::outgoing::Content;

mod filters;

pub(crate) use filters::duration;

pub use filters::Whole;
use filters::{ShortenedTexts, shorten, tidy};

/// Characters of a whole embed (`spec/discord.md` 5, row "2000 chars").
pub const EMBED_LIMIT: usize = 6_000;
/// Fields of an embed.
pub const FIELD_LIMIT: usize = 25;
/// Characters of a field's value.
pub const FIELD_VALUE_LIMIT: usize = 1_024;
const TITLE_LIMIT: usize = 256;
const DESCRIPTION_LIMIT: usize = 4_096;
const FOOTER_LIMIT: usize = 2_048;

/// Why something cannot be said.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The built-in texts are broken.
    #[error("the {} texts do not load: {message}", language.as_str())]
    Broken {
        /// Whose.
        language: Language,
        /// Why.
        message: String,
    },
    /// There is no such text.
    #[error("no text named `{key}` in the {} catalog", language.as_str())]
    UnknownKey {
        /// The key asked for.
        key: String,
        /// In which language.
        language: Language,
    },
    /// The template needs a value that was not given, or fails otherwise.
    #[error("the text `{key}` cannot be filled in: {message}")]
    Unfilled {
        /// The key.
        key: String,
        /// What the template engine says.
        message: String,
    },
}

/// A message ready for Discord.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Rendered {
    /// The text; empty for a card.
    pub text: String,
    /// The card.
    pub embed: Option<Embed>,
    /// Texts of which only a part stands above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub whole: Vec<Whole>,
}

impl Rendered {
    /// The same with every text passed through `clean`.
    #[must_use]
    pub fn map(mut self, clean: impl Fn(&str) -> String) -> Rendered {
        self.text = clean(&self.text);
        if let Some(embed) = &mut self.embed {
            let values = embed.fields.iter_mut().map(|field| &mut field.value);
            for text in values.chain([&mut embed.title, &mut embed.description, &mut embed.footer])
            {
                *text = clean(text);
            }
        }
        for whole in &mut self.whole {
            whole.text = clean(&whole.text);
        }
        self
    }
}

/// A card, within Discord's limits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Embed {
    /// Its headline.
    pub title: String,
    /// The words below it.
    pub description: String,
    /// The colour of its edge, `0xRRGGBB`.
    pub color: u32,
    /// Named values.
    pub fields: Vec<Field>,
    /// The small print.
    pub footer: String,
}

/// A named value of a card.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether it may stand beside others.
    pub inline: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Entry {
    Text(String),
    Card(CardEntry),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CardEntry {
    title: String,
    #[serde(default)]
    description: String,
    color: String,
    #[serde(default)]
    fields: Vec<FieldEntry>,
    #[serde(default)]
    footer: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldEntry {
    name: String,
    value: String,
    #[serde(default)]
    inline: bool,
}

impl Entry {
    /// The templates of the entry with the names that they are kept under.
    fn templates(&self, key: &str) -> Vec<(String, String)> {
        match self {
            Entry::Text(text) => vec![(key.to_owned(), text.trim_end().to_owned())],
            Entry::Card(card) => {
                let mut all = vec![
                    (format!("{key}#title"), card.title.clone()),
                    (format!("{key}#description"), card.description.clone()),
                    (format!("{key}#color"), card.color.clone()),
                    (format!("{key}#footer"), card.footer.clone()),
                ];
                for (at, field) in card.fields.iter().enumerate() {
                    all.push((format!("{key}#{at}.name"), field.name.clone()));
                    all.push((format!("{key}#{at}.value"), field.value.clone()));
                }
                all
            }
        }
    }
}

/// The texts of one language.
#[derive(Debug)]
struct Texts {
    entries: BTreeMap<String, Entry>,
    templates: Environment<'static>,
}

/// All texts.
#[derive(Debug, Clone)]
pub struct Catalog {
    en: Arc<Texts>,
    ko: Arc<Texts>,
}

impl Catalog {
    /// The texts that come with the program, read once.
    pub fn builtin() -> Result<Catalog, CatalogError> {
        static READ: OnceLock<Catalog> = OnceLock::new();
        if let Some(read) = READ.get() {
            return Ok(read.clone());
        }
        let read = Catalog {
            en: Arc::new(load(
                Language::En,
                &[include_str!("en.yaml"), include_str!("setup.en.yaml")],
            )?),
            ko: Arc::new(load(
                Language::Ko,
                &[include_str!("ko.yaml"), include_str!("setup.ko.yaml")],
            )?),
        };
        Ok(READ.get_or_init(|| read).clone())
    }

    fn texts(&self, language: Language) -> &Texts {
        match language {
            Language::En => &self.en,
            Language::Ko => &self.ko,
        }
    }

    /// The keys of a language.
    #[must_use]
    pub fn keys(&self, language: Language) -> BTreeSet<&str> {
        let entries = &self.texts(language).entries;
        entries.keys().map(String::as_str).collect()
    }

    /// Fills in a text. A card comes out within Discord's limits: what is too long ends with "…".
    pub fn render(&self, content: &Content) -> Result<Rendered, CatalogError> {
        let texts = self.texts(content.language);
        if content.values.get("line").is_some_and(|line| line.get("key").is_some()) {
            return self.quoting(content);
        }
        if let Some(code) = blocked_code(content) {
            return self.blocked(content, code);
        }
        self.entry(content, texts)
    }

    /// A text that quotes another one as its `line`.
    fn quoting(&self, content: &Content) -> Result<Rendered, CatalogError> {
        let mut whole = content.clone();
        if let Some(serde_json::Value::Object(line)) = content.values.get("line") {
            let of = |key: &str| line.get(key).cloned().unwrap_or_default();
            let line = Content {
                key: of("key").as_str().unwrap_or_default().to_owned(),
                values: of("values").as_object().cloned().unwrap_or_default(),
                language: content.language,
            };
            whole.values.insert("line".to_owned(), self.render(&line)?.text.into());
        }
        self.entry(&whole, self.texts(content.language))
    }

    /// A blocked request: the common text around the reason's own.
    fn blocked(&self, content: &Content, code: &str) -> Result<Rendered, CatalogError> {
        let texts = self.texts(content.language);
        let mut reason = content.clone();
        reason.key = format!("blocked.{code}");
        if !texts.entries.contains_key(&reason.key) {
            reason.key = "blocked.other".to_owned();
        }
        let why = self.entry(&reason, texts)?.text;
        let mut whole = content.clone();
        if whole.key != WHY_BLOCKED {
            whole.key = "blocked".to_owned();
        }
        whole.values.insert("why".to_owned(), why.into());
        self.entry(&whole, texts)
    }

    fn entry(&self, content: &Content, texts: &Texts) -> Result<Rendered, CatalogError> {
        let Some(entry) = texts.entries.get(&content.key) else {
            return Err(CatalogError::UnknownKey {
                key: content.key.clone(),
                language: content.language,
            });
        };
        let values = Jinja::from(minijinja::value::Serde(&content.values));
        let mut whole = Vec::new();
        let mut fill = |name: String| -> Result<String, CatalogError> {
            let template = texts.templates.get_template(&name);
            match template.and_then(|template| template.render_captured(&values)) {
                Ok(filled) => {
                    if let Some(ShortenedTexts(shown)) = filled.state().get_extension() {
                        whole.extend_from_slice(shown);
                    }
                    Ok(tidy(filled.output()))
                }
                Err(error) => Err(CatalogError::Unfilled {
                    key: content.key.clone(),
                    message: error.to_string(),
                }),
            }
        };
        let key = &content.key;
        match entry {
            Entry::Text(_) => {
                let text = fill(key.clone())?;
                Ok(Rendered { text, embed: None, whole })
            }
            Entry::Card(card) => {
                let mut fields = Vec::new();
                for (at, field) in card.fields.iter().enumerate() {
                    fields.push(Field {
                        name: fill(format!("{key}#{at}.name"))?,
                        value: fill(format!("{key}#{at}.value"))?,
                        inline: field.inline,
                    });
                }
                let color = fill(format!("{key}#color"))?;
                let embed = Embed {
                    title: fill(format!("{key}#title"))?,
                    description: fill(format!("{key}#description"))?,
                    color: u32::from_str_radix(&color, 16).map_err(|_| CatalogError::Unfilled {
                        key: key.clone(),
                        message: format!("{color:?} is not a colour such as 4f8a5b"),
                    })?,
                    fields,
                    footer: fill(format!("{key}#footer"))?,
                };
                Ok(Rendered { text: String::new(), embed: Some(within_limits(embed)), whole })
            }
        }
    }

    /// A short text without values, such as a button's label; the key itself where it is missing.
    #[must_use]
    pub fn label(&self, key: &str, language: Language) -> String {
        match self.texts(language).entries.get(key) {
            Some(Entry::Text(text)) => text.trim().to_owned(),
            Some(Entry::Card(_)) | None => key.to_owned(),
        }
    }
}

/// The line of `teams why` about a blocked request; it quotes the reason's text as well.
const WHY_BLOCKED: &str = "why.blocked";

/// The reason of a blocked request, from the key `blocked.<code>` or the value `code`.
fn blocked_code(content: &Content) -> Option<&str> {
    if content.key == WHY_BLOCKED {
        return content.values.get("code")?.as_str();
    }
    match content.key.strip_prefix("blocked") {
        Some("") => Some(content.values.get("code")?.as_str()?),
        Some(rest) => rest.strip_prefix('.'),
        None => None,
    }
}

fn load(language: Language, files: &[&'static str]) -> Result<Texts, CatalogError> {
    let broken = |message: String| CatalogError::Broken { language, message };
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for yaml in files {
        let more: BTreeMap<String, Entry> =
            serde_yaml::from_str(yaml).map_err(|error| broken(error.to_string()))?;
        entries.extend(more);
    }
    let syntax = minijinja::syntax::SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .map_err(|error| broken(error.to_string()))?;
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    templates.set_syntax(syntax);
    filters::add(&mut templates, language, words(&entries));
    // Read when they are first filled in: a start needs few of them, and a test fills in each.
    let sources: HashMap<String, String> =
        entries.iter().flat_map(|(key, entry)| entry.templates(key)).collect();
    templates.set_loader(move |name| Ok(sources.get(name).cloned()));
    Ok(Texts { entries, templates })
}

/// The texts that are words of a kind, such as `role.planner`.
fn words(entries: &BTreeMap<String, Entry>) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for (key, entry) in entries {
        if let Entry::Text(text) = entry
            && let Some((kind, _)) = key.split_once('.')
            && filters::WORDS.contains(&kind)
        {
            words.insert(key.clone(), text.trim().to_owned());
        }
    }
    words
}

/// Cuts a card to Discord's limits. Fields without a value are left out: Discord refuses them.
fn within_limits(mut embed: Embed) -> Embed {
    embed.title = shorten(&embed.title, TITLE_LIMIT);
    embed.description = shorten(&embed.description, DESCRIPTION_LIMIT);
    embed.footer = shorten(&embed.footer, FOOTER_LIMIT);
    embed.fields.retain(|field| !field.name.trim().is_empty() && !field.value.trim().is_empty());
    embed.fields.truncate(FIELD_LIMIT);
    let count = |text: &str| text.chars().count();
    let mut left =
        EMBED_LIMIT.saturating_sub(count(&embed.title)).saturating_sub(count(&embed.footer));
    // The description gives way to the fields: they hold the state.
    let mut fields = Vec::new();
    for mut field in std::mem::take(&mut embed.fields) {
        field.name = shorten(&field.name, TITLE_LIMIT);
        field.value = shorten(&field.value, FIELD_VALUE_LIMIT);
        let size = count(&field.name) + count(&field.value);
        if size > left {
            break;
        }
        left -= size;
        fields.push(field);
    }
    embed.fields = fields;
    embed.description = if left == 0 { String::new() } else { shorten(&embed.description, left) };
    embed
}

#[cfg(test)]
mod tests;
