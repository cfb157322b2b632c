//! From what a client sends to a message: limits, mentions, files.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::error::Refusal;
use super::guild::{Draft, Guild};
use super::ids::Id;
use super::limits::{check_components, check_embeds};
use super::model::{Attachment, Author, Channel, EPHEMERAL, Message, MessageKind, Reference};
use super::permission::speaking;
use super::rest::body::Payload;
use super::right;
use super::state::State;
use super::upload::{number_of, store};

/// Characters in a message, for bots and people alike.
const CONTENT: usize = 2000;

/// The flags that a client may set: no link previews, ephemeral, silent.
const FLAGS: u64 = SUPPRESS_EMBEDS | EPHEMERAL | (1 << 12);

/// No link previews: the one flag that a change may set or take back.
const SUPPRESS_EMBEDS: u64 = 1 << 2;

/// What a client sends to make or change a message. Absent and null are the same, except where a
/// change clears something.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Body {
    #[serde(deserialize_with = "sent")]
    pub(crate) content: Option<Value>,
    pub(crate) embeds: Option<Vec<Value>>,
    pub(crate) components: Option<Vec<Value>>,
    pub(crate) attachments: Option<Vec<Value>>,
    pub(crate) nonce: Option<Value>,
    pub(crate) enforce_nonce: Option<bool>,
    pub(crate) message_reference: Option<RepliedMessage>,
    pub(crate) allowed_mentions: Option<AllowedMentions>,
    pub(crate) flags: Option<u64>,
    pub(crate) tts: Option<bool>,
    pub(crate) username: Option<String>,
    pub(crate) avatar_url: Option<String>,
    pub(crate) thread_name: Option<String>,
    pub(crate) sticker_ids: Option<Vec<Value>>,
}

/// A value that was sent, be it null: what it stands for is cleared.
fn sent<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// The message that a reply answers.
#[derive(Debug, Deserialize)]
pub(crate) struct RepliedMessage {
    message_id: Id,
    channel_id: Option<Id>,
    fail_if_not_exists: Option<bool>,
}

/// Which mentions in the text count. Absent, all do.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AllowedMentions {
    parse: Option<Vec<String>>,
    users: Option<Vec<Id>>,
    roles: Option<Vec<Id>>,
    replied_user: Option<bool>,
}

impl AllowedMentions {
    fn permits(&self, class: &str, list: Option<&Vec<Id>>, id: Id) -> bool {
        self.parse.as_ref().is_some_and(|parse| parse.iter().any(|it| it == class))
            || list.is_some_and(|list| list.contains(&id))
    }
}

/// A message body with its files, checked and stored.
#[derive(Debug)]
pub(crate) struct ComposedMessage {
    pub(crate) body: Body,
    pub(crate) content: Option<String>,
    files: Vec<Attachment>,
}

impl ComposedMessage {
    /// Checks a body against Discord's limits and stores its files.
    pub(crate) fn new(guild: &Guild, payload: &Payload) -> Result<ComposedMessage, Refusal> {
        let mut body: Body = payload.read()?;
        let content = body.content.take().map(text_of).transpose()?;
        if content.as_ref().is_some_and(|text| text.chars().count() > CONTENT) {
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
            let entry =
                described.iter().find(|entry| number_of(entry) == Some(upload.number as u64));
            files.push(store(guild, upload, entry)?);
        }
        Ok(ComposedMessage { body, content, files })
    }

    /// Adds a file that was stored before.
    pub(crate) fn attach(&mut self, file: Attachment) {
        self.files.push(file);
    }

    /// Whether there is anything to show.
    fn is_empty(&self) -> bool {
        self.content.as_ref().is_none_or(|text| text.trim().is_empty())
            && self.body.embeds.as_ref().is_none_or(Vec::is_empty)
            && self.body.components.as_ref().is_none_or(Vec::is_empty)
            && self.body.sticker_ids.as_ref().is_none_or(Vec::is_empty)
            && self.files.is_empty()
    }

    /// Whether a user may write this in a channel: to speak at all, with embeds, files, as a reply.
    pub(crate) fn permitted(
        &self,
        state: &State,
        user: Id,
        place: &Channel,
    ) -> Result<(), Refusal> {
        if !place.is_text() {
            return Err(Refusal::NonText);
        }
        let held = state.rights(user, Some(place));
        if place.recipients().is_some() {
            return Ok(());
        }
        let mut needed = speaking(place);
        if self.body.embeds.as_ref().is_some_and(|it| !it.is_empty()) {
            needed |= right::EMBED_LINKS;
        }
        if !self.files.is_empty() {
            needed |= right::ATTACH_FILES;
        }
        if held & needed != needed {
            return Err(Refusal::MissingPermissions);
        }
        if self.body.message_reference.is_some() && held & right::READ_MESSAGE_HISTORY == 0 {
            return Err(Refusal::NoHistory);
        }
        Ok(())
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
        let kind = if reference.is_some() { MessageKind::Reply } else { MessageKind::Default };
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
                    entry.get("id").and_then(|id| serde_json::from_value::<Id>(id.clone()).ok())
                        == Some(file.id)
                })
            };
            message.attachments.retain(keeps);
        }
        message.attachments.extend(self.files.iter().cloned());
        if let Some(flags) = self.body.flags {
            message.flags = message.flags & !SUPPRESS_EMBEDS | flags & SUPPRESS_EMBEDS;
        }
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
            Ok(Some(Reference { channel: at, message: Some(answered.message_id) }))
        } else if answered.fail_if_not_exists == Some(false) {
            Ok(None)
        } else {
            Err(Refusal::invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message"))
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
        let loud = state.channels.get(&message.channel).is_some_and(|place| {
            let rights = state.rights(message.author.id(), Some(place));
            // A webhook may, whoever made it.
            rights & right::MENTION_EVERYONE != 0
                || matches!(message.author, Author::Webhook { .. })
        });
        message.mention_roles = found.roles;
        message.mention_roles.retain(|id| {
            state.roles.get(id).is_some_and(|role| role.mentionable || loud)
                && allowed.is_none_or(|it| it.permits("roles", it.roles.as_ref(), *id))
        });
        let everyone = |it: &AllowedMentions| {
            it.parse.as_ref().is_some_and(|parse| parse.iter().any(|it| it == "everyone"))
        };
        message.mention_everyone = loud && found.everyone && allowed.is_none_or(everyone);
        // A reply is meant for the author of what it answers, unless the sender says otherwise.
        let told = allowed.is_none_or(|it| it.replied_user == Some(true));
        if let Some(Reference { channel, message: Some(id) }) = message.reference
            && told
            && let Ok(Message { author: Author::User { id: author }, .. }) =
                state.message(channel, id)
            && *author != message.author.id()
            && !message.mentions.contains(author)
        {
            message.mentions.push(*author);
        }
    }
}

/// Text, or the number and null that some clients send.
fn text_of(value: Value) -> Result<String, Refusal> {
    match value {
        Value::String(text) => Ok(text.trim_matches(['\0', ' ', '\n', '\r', '\t']).to_owned()),
        Value::Null => Ok(String::new()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(Refusal::invalid("content", "BASE_TYPE_BAD", "Text is expected."))
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Mentions {
    users: Vec<Id>,
    roles: Vec<Id>,
    everyone: bool,
}

/// A text without its code, in which nobody is mentioned: what stands between two runs of as many backticks.
fn outside_code(text: &str) -> String {
    let run = |text: &str| text.len() - text.trim_start_matches('`').len();
    let (mut made, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('`') {
        let fence = run(&rest[at..]);
        let (before, inside) = (&rest[..at], &rest[at + fence..]);
        let mut from = 0;
        let end = loop {
            let Some(next) = inside[from..].find('`').map(|next| from + next) else { break None };
            let length = run(&inside[next..]);
            if length == fence {
                break Some(next + length);
            }
            from = next + length;
        };
        made.push_str(before);
        // The marks keep apart what stands before and behind.
        made.push('`');
        rest = &inside[end.unwrap_or(0)..];
    }
    made + rest
}

fn find_mentions(text: &str) -> Mentions {
    let mut found = Mentions::default();
    let text = outside_code(text);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_found_once_and_only_when_whole() {
        let found = find_mentions("<@1> <@!2> <@&3> <@1> <#4> <@x> <@5");
        assert_eq!(found.users, ["1".parse().unwrap(), "2".parse().unwrap()]);
        assert_eq!(found.roles, ["3".parse().unwrap()]);
        assert!(!found.everyone);
        let found = find_mentions("`<@1>` ``a ` <@2>`` ```\n@everyone\n``` <@&3> ` <@4>");
        assert_eq!((found.users, found.everyone), (vec!["4".parse().unwrap()], false));
        assert_eq!(found.roles, ["3".parse().unwrap()]);
    }
}
