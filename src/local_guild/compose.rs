//! From what a client sends to a message: limits, mentions, files.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::Refusal;
use super::guild::{Draft, Guild};
use super::ids::Id;
use super::model::{Attachment, Author, Channel, EPHEMERAL, Message, MessageKind, Reference};
use super::payload::ATTACHMENT_LIMIT;
use super::rest::body::{Payload, Upload};
use super::state::State;

/// Characters in a message, for bots and people alike.
const CONTENT: usize = 2000;

/// The flags that a client may set: no link previews, ephemeral, silent.
const FLAGS: u64 = (1 << 2) | EPHEMERAL | (1 << 12);

/// What a client sends to make or change a message. Absent and null are the same, except where a
/// change clears something.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Body {
    pub(crate) content: Option<Value>,
    pub(crate) embeds: Option<Vec<Value>>,
    pub(crate) components: Option<Vec<Value>>,
    pub(crate) attachments: Option<Vec<Value>>,
    pub(crate) nonce: Option<Value>,
    pub(crate) enforce_nonce: Option<bool>,
    pub(crate) message_reference: Option<Answered>,
    pub(crate) allowed_mentions: Option<Allowed>,
    pub(crate) flags: Option<u64>,
    pub(crate) tts: Option<bool>,
    pub(crate) username: Option<String>,
    pub(crate) avatar_url: Option<String>,
    pub(crate) thread_name: Option<String>,
    pub(crate) sticker_ids: Option<Vec<Value>>,
}

/// The message that a reply answers.
#[derive(Debug, Deserialize)]
pub(crate) struct Answered {
    message_id: Id,
    channel_id: Option<Id>,
    fail_if_not_exists: Option<bool>,
}

/// Which mentions in the text count. Absent, all do.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Allowed {
    parse: Option<Vec<String>>,
    users: Option<Vec<Id>>,
    roles: Option<Vec<Id>>,
}

impl Allowed {
    fn permits(&self, class: &str, list: Option<&Vec<Id>>, id: Id) -> bool {
        self.parse
            .as_ref()
            .is_some_and(|parse| parse.iter().any(|it| it == class))
            || list.is_some_and(|list| list.contains(&id))
    }
}

/// A message body with its files, checked and stored.
#[derive(Debug)]
pub(crate) struct Composed {
    pub(crate) body: Body,
    pub(crate) content: Option<String>,
    files: Vec<Attachment>,
}

impl Composed {
    /// Checks a body against Discord's limits and stores its files.
    pub(crate) fn new(guild: &Guild, payload: &Payload) -> Result<Composed, Refusal> {
        let mut body: Body = payload.read()?;
        let content = body.content.take().map(text_of).transpose()?;
        if content
            .as_ref()
            .is_some_and(|text| text.chars().count() > CONTENT)
        {
            return Err(Refusal::too_long("content", CONTENT));
        }
        if let Some(embeds) = &mut body.embeds {
            check_embeds(embeds)?;
        }
        if let Some(components) = &mut body.components {
            check_components(components)?;
        }
        if let Some(nonce) = &body.nonce {
            let length = nonce.as_str().map_or(0, |text| text.chars().count());
            if length > 25 {
                return Err(Refusal::too_long("nonce", 25));
            }
        }
        if payload.files.len() > 10 {
            return Err(Refusal::invalid(
                "attachments",
                "BASE_TYPE_MAX_LENGTH",
                "Must be 10 or fewer.",
            ));
        }
        let described = body.attachments.as_deref().unwrap_or_default();
        let mut files = Vec::new();
        for upload in &payload.files {
            let entry = described
                .iter()
                .find(|entry| number_of(entry) == Some(upload.number as u64));
            files.push(store(guild, upload, entry)?);
        }
        Ok(Composed {
            body,
            content,
            files,
        })
    }

    /// Adds a file that was stored before.
    pub(crate) fn attach(&mut self, file: Attachment) {
        self.files.push(file);
    }

    /// Whether there is anything to show.
    fn is_empty(&self) -> bool {
        self.content
            .as_ref()
            .is_none_or(|text| text.trim().is_empty())
            && self.body.embeds.as_ref().is_none_or(Vec::is_empty)
            && self.body.components.as_ref().is_none_or(Vec::is_empty)
            && self.body.sticker_ids.as_ref().is_none_or(Vec::is_empty)
            && self.files.is_empty()
    }

    /// The message, not yet put anywhere.
    pub(crate) fn message(
        &self,
        draft: &mut Draft<'_>,
        channel: &Channel,
        author: Author,
    ) -> Result<Message, Refusal> {
        if self.is_empty() {
            return Err(Refusal::EmptyMessage);
        }
        let reference = self.reference(draft.state, channel.id)?;
        let kind = if reference.is_some() {
            MessageKind::Reply
        } else {
            MessageKind::Default
        };
        let mut message = Message::blank(draft.id(), channel.id, author, kind);
        message.content = self.content.clone().unwrap_or_default();
        message.embeds = self.body.embeds.clone().unwrap_or_default();
        message.components = self.body.components.clone().unwrap_or_default();
        message.attachments = self.files.clone();
        message.reference = reference;
        message.nonce.clone_from(&self.body.nonce);
        message.flags = self.body.flags.unwrap_or(0) & FLAGS;
        message.tts = self.body.tts.unwrap_or(false);
        self.mention(draft.state, &mut message);
        Ok(message)
    }

    /// Changes a message as `PATCH` does: what is absent stays.
    pub(crate) fn change(&self, draft: &Draft<'_>, message: &mut Message) -> Result<(), Refusal> {
        if let Some(content) = &self.content {
            message.content.clone_from(content);
            self.mention(draft.state, message);
        }
        if let Some(embeds) = &self.body.embeds {
            message.embeds.clone_from(embeds);
        }
        if let Some(components) = &self.body.components {
            message.components.clone_from(components);
        }
        if let Some(kept) = &self.body.attachments {
            let keeps = |file: &Attachment| {
                kept.iter().any(|entry| {
                    entry
                        .get("id")
                        .and_then(|id| serde_json::from_value::<Id>(id.clone()).ok())
                        == Some(file.id)
                })
            };
            message.attachments.retain(keeps);
        }
        message.attachments.extend(self.files.iter().cloned());
        if message.content.trim().is_empty()
            && message.embeds.is_empty()
            && message.components.is_empty()
            && message.attachments.is_empty()
        {
            return Err(Refusal::EmptyMessage);
        }
        message.edited = Some(draft.now);
        Ok(())
    }

    fn reference(&self, state: &State, channel: Id) -> Result<Option<Reference>, Refusal> {
        let Some(answered) = &self.body.message_reference else {
            return Ok(None);
        };
        let at = answered.channel_id.unwrap_or(channel);
        let exists = state.message(at, answered.message_id).is_ok();
        if exists {
            Ok(Some(Reference {
                channel: at,
                message: Some(answered.message_id),
            }))
        } else if answered.fail_if_not_exists == Some(false) {
            Ok(None)
        } else {
            Err(Refusal::invalid(
                "message_reference",
                "REPLIES_UNKNOWN_MESSAGE",
                "Unknown message",
            ))
        }
    }

    /// Finds out whom the text mentions and who of them is to be told.
    fn mention(&self, state: &State, message: &mut Message) {
        let found = find_mentions(&message.content);
        let allowed = self.body.allowed_mentions.as_ref();
        message.mentions = found.users;
        message.mentions.retain(|id| {
            state.users.contains_key(id)
                && allowed.is_none_or(|it| it.permits("users", it.users.as_ref(), *id))
        });
        message.mention_roles = found.roles;
        message.mention_roles.retain(|id| {
            state.roles.get(id).is_some_and(|role| role.mentionable)
                && allowed.is_none_or(|it| it.permits("roles", it.roles.as_ref(), *id))
        });
        let everyone = |it: &Allowed| {
            it.parse
                .as_ref()
                .is_some_and(|parse| parse.iter().any(|it| it == "everyone"))
        };
        message.mention_everyone = found.everyone && allowed.is_none_or(everyone);
    }
}

/// Text, or the number and null that some clients send.
fn text_of(value: Value) -> Result<String, Refusal> {
    match value {
        Value::String(text) => Ok(text.trim_matches(['\0', ' ', '\n', '\r', '\t']).to_owned()),
        Value::Null => Ok(String::new()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(Refusal::invalid(
            "content",
            "BASE_TYPE_BAD",
            "Text is expected.",
        )),
    }
}

fn number_of(entry: &Value) -> Option<u64> {
    let id = entry.get("id")?;
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

/// Stores a file and describes it.
pub(crate) fn store(
    guild: &Guild,
    upload: &Upload,
    entry: Option<&Value>,
) -> Result<Attachment, Refusal> {
    if upload.bytes.len() as u64 > ATTACHMENT_LIMIT {
        return Err(Refusal::TooLarge);
    }
    let id = guild.change(|draft| Ok(draft.id()))?;
    guild
        .blobs
        .put(&id.to_string(), upload.bytes.clone())
        .map_err(|error| {
            tracing::error!(%error, "a file could not be kept");
            Refusal::Storage
        })?;
    let renamed = entry.and_then(|entry| entry["filename"].as_str());
    let filename = plain_name(renamed.unwrap_or(&upload.filename));
    let content_type = match upload.content_type.as_deref() {
        None | Some("application/octet-stream") => guess_type(&filename).to_owned(),
        Some(kind) => kind.to_owned(),
    };
    Ok(Attachment {
        id,
        content_type,
        description: entry
            .and_then(|it| it["description"].as_str())
            .map(str::to_owned),
        size: upload.bytes.len() as u64,
        pixels: png_size(&upload.bytes),
        filename,
    })
}

/// A file name without anything that a path or a header could stumble over.
fn plain_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .take(100)
        .collect();
    let plain = plain.trim_start_matches('.');
    if plain.is_empty() {
        "file".to_owned()
    } else {
        plain.to_owned()
    }
}

fn guess_type(name: &str) -> &'static str {
    let extension = Path::new(name)
        .extension()
        .and_then(|it| it.to_str())
        .unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "md" | "txt" | "log" | "rs" | "py" | "js" | "ts" | "toml" | "yaml" | "yml" | "diff"
        | "patch" | "csv" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.get(..24)?;
    if !header.starts_with(b"\x89PNG\r\n\x1a\n") {
        return None;
    }
    let number = |at: usize| {
        header
            .get(at..at + 4)?
            .try_into()
            .ok()
            .map(u32::from_be_bytes)
    };
    Some((number(16)?, number(20)?))
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Mentions {
    users: Vec<Id>,
    roles: Vec<Id>,
    everyone: bool,
}

fn find_mentions(text: &str) -> Mentions {
    let mut found = Mentions::default();
    for part in text.split('<').skip(1) {
        let Some((inside, _)) = part.split_once('>') else {
            continue;
        };
        let (list, id) = if let Some(id) = inside.strip_prefix("@&") {
            (&mut found.roles, id)
        } else if let Some(id) = inside.strip_prefix("@!").or(inside.strip_prefix('@')) {
            (&mut found.users, id)
        } else {
            continue;
        };
        if let Ok(id) = id.parse()
            && !list.contains(&id)
        {
            list.push(id);
        }
    }
    found.everyone = text.contains("@everyone") || text.contains("@here");
    found
}

/// Embeds within Discord's limits, with the defaults that clients rely on.
fn check_embeds(embeds: &mut [Value]) -> Result<(), Refusal> {
    if embeds.len() > 10 {
        return Err(Refusal::invalid(
            "embeds",
            "BASE_TYPE_MAX_LENGTH",
            "Must be 10 or fewer.",
        ));
    }
    let mut total = 0;
    for (at, embed) in embeds.iter_mut().enumerate() {
        strip_nulls(embed);
        let Some(object) = embed.as_object_mut() else {
            return Err(Refusal::invalid(
                format!("embeds.{at}"),
                "MODEL_TYPE_CONVERT",
                "An object is expected.",
            ));
        };
        object.insert("type".to_owned(), json!("rich"));
        let fields = object.get_mut("fields").and_then(Value::as_array_mut);
        for (place, field) in fields.into_iter().flatten().enumerate() {
            if place >= 25 {
                return Err(Refusal::invalid(
                    format!("embeds.{at}.fields"),
                    "BASE_TYPE_MAX_LENGTH",
                    "Must be 25 or fewer.",
                ));
            }
            for (name, limit) in [("name", 256), ("value", 1024)] {
                let path = || format!("embeds.{at}.fields.{place}.{name}");
                match field[name].as_str().map(|text| text.chars().count()) {
                    None | Some(0) => {
                        return Err(Refusal::invalid(
                            path(),
                            "BASE_TYPE_REQUIRED",
                            "This field is required",
                        ));
                    }
                    Some(length) if length > limit => return Err(Refusal::too_long(path(), limit)),
                    Some(length) => total += length,
                }
            }
            if !field["inline"].is_boolean() {
                field["inline"] = json!(false);
            }
        }
        for (path, limit) in [
            ("/title", 256),
            ("/description", 4096),
            ("/footer/text", 2048),
            ("/author/name", 256),
        ] {
            let length = embed
                .pointer(path)
                .and_then(Value::as_str)
                .map_or(0, |it| it.chars().count());
            if length > limit {
                return Err(Refusal::too_long(
                    format!("embeds.{at}{}", path.replace('/', ".")),
                    limit,
                ));
            }
            total += length;
        }
    }
    if total > 6000 {
        return Err(Refusal::invalid(
            "embeds",
            "MAX_EMBED_SIZE_EXCEEDED",
            "Embed size exceeds maximum size of 6000",
        ));
    }
    Ok(())
}

/// Rows of buttons and menus within Discord's limits.
fn check_components(rows: &mut [Value]) -> Result<(), Refusal> {
    if rows.len() > 5 {
        return Err(Refusal::invalid(
            "components",
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 1 and 5 in length.",
        ));
    }
    let mut seen = Vec::new();
    for (at, row) in rows.iter_mut().enumerate() {
        strip_nulls(row);
        if row["type"] != 1 {
            return Err(Refusal::invalid(
                format!("components.{at}.type"),
                "UNION_TYPE_CHOICES",
                "Value of field \"type\" must be 1.",
            ));
        }
        let Some(inner) = row["components"]
            .as_array()
            .filter(|it| (1..=5).contains(&it.len()))
        else {
            return Err(Refusal::invalid(
                format!("components.{at}.components"),
                "BASE_TYPE_BAD_LENGTH",
                "Must be between 1 and 5 in length.",
            ));
        };
        for (place, component) in inner.iter().enumerate() {
            let path = |name: &str| format!("components.{at}.components.{place}.{name}");
            if component["label"]
                .as_str()
                .is_some_and(|it| it.chars().count() > 80)
            {
                return Err(Refusal::too_long(path("label"), 80));
            }
            match (component["type"].as_u64(), component["style"].as_u64()) {
                (Some(2), Some(5)) if component["url"].is_string() => continue,
                (Some(2), Some(5)) => {
                    return Err(Refusal::invalid(
                        path("url"),
                        "BASE_TYPE_REQUIRED",
                        "This field is required",
                    ));
                }
                (Some(2), Some(1..=4)) | (Some(3..=8), _) => {}
                (Some(2), _) => {
                    return Err(Refusal::invalid(
                        path("style"),
                        "BASE_TYPE_CHOICES",
                        "Not a button style.",
                    ));
                }
                (_, _) => {
                    return Err(Refusal::invalid(
                        path("type"),
                        "UNION_TYPE_CHOICES",
                        "Not a component of a row.",
                    ));
                }
            }
            let id = component["custom_id"].as_str().unwrap_or_default();
            if id.is_empty() {
                return Err(Refusal::invalid(
                    path("custom_id"),
                    "BASE_TYPE_REQUIRED",
                    "A custom id is required",
                ));
            }
            if id.chars().count() > 100 {
                return Err(Refusal::too_long(path("custom_id"), 100));
            }
            if seen.contains(&id.to_owned()) {
                return Err(Refusal::invalid(
                    path("custom_id"),
                    "COMPONENT_CUSTOM_ID_DUPLICATED",
                    "Component custom id cannot be duplicated",
                ));
            }
            seen.push(id.to_owned());
        }
    }
    Ok(())
}

/// Removes null members at every depth: clients write them, and stumble over reading them.
pub(crate) fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let kept: Map<String, Value> = std::mem::take(object)
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect();
            *object = kept;
            object.values_mut().for_each(strip_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(strip_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_found_once_and_only_when_whole() {
        let found = find_mentions("<@1> <@!2> <@&3> <@1> <#4> <@x> <@5");
        assert_eq!(found.users, ["1".parse().unwrap(), "2".parse().unwrap()]);
        assert_eq!(found.roles, ["3".parse().unwrap()]);
        assert!(!found.everyone);
    }

    #[test]
    fn file_names_lose_paths_and_odd_characters() {
        assert_eq!(plain_name("../../etc/passwd"), "passwd");
        assert_eq!(plain_name("a b\"c.png"), "a_b_c.png");
        assert_eq!(plain_name("..."), "file");
    }

    #[test]
    fn limits_of_embeds_and_components_are_kept() {
        let mut long = vec![json!({"title": "x".repeat(257)})];
        assert!(
            matches!(check_embeds(&mut long), Err(Refusal::Invalid { field, .. }) if field == "embeds.0.title")
        );
        let mut sum = vec![json!({"description": "x".repeat(4000)}); 2];
        assert!(check_embeds(&mut sum).is_err());
        let button = json!({"type": 2, "style": 1, "label": "Go", "custom_id": "a"});
        let mut twice = vec![json!({"type": 1, "components": [button, button]})];
        assert!(check_components(&mut twice).is_err());
    }
}
