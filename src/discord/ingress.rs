//! From Discord's payloads to facts of [`crate::domain::incoming`]. Pure.

use serenity::model::channel::{Message as Payload, MessageType};
use serenity::model::user::User;

use crate::discord::identity::Identity;
use crate::domain::actor::Author;
use crate::domain::attachment::Attachment;
use crate::domain::ids::{ChannelId, GuildId, MessageId, ServerRoleId, UserId};
use crate::domain::incoming::Message;
use crate::domain::ingress::Ingress;
use crate::domain::role::Role;
use crate::domain::time::Timestamp;

/// A file to fetch before its message is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Remote {
    /// Discord's id of the file.
    pub id: u64,
    /// Where it is; signed links expire within a day.
    pub url: String,
}

/// A message with the files that are still to be fetched; `files[n]` belongs to `attachments[n]`.
#[derive(Debug, Clone, PartialEq)]
pub struct InboundMessage {
    /// The message.
    pub message: Message,
    /// Its files.
    pub files: Vec<Remote>,
}

/// Where a message was found, as far as the payload does not say (REST answers lack both).
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The server.
    pub guild_id: Option<GuildId>,
    /// The author's server roles.
    pub server_roles: Vec<ServerRoleId>,
}

/// Why a message is nothing to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotForUs {
    /// We wrote it.
    Own,
    /// Discord wrote it: somebody joined, a thread began, a message was pinned.
    System,
}

/// Reads a message.
pub fn message(
    payload: &Payload,
    origin: &Origin,
    us: &Identity,
) -> Result<InboundMessage, NotForUs> {
    let author_id = UserId(payload.author.id.get());
    let our_webhook = by_our_webhook(payload, us);
    if us.bots.contains_key(&author_id) || our_webhook {
        return Err(NotForUs::Own);
    }
    if !matches!(payload.kind, MessageType::Regular | MessageType::InlineReply) {
        return Err(NotForUs::System);
    }
    let guild_id = payload.guild_id.map(|id| GuildId(id.get())).or(origin.guild_id);
    let member = payload.member.as_deref();
    let server_roles = match member {
        Some(member) => member.roles.iter().map(|id| ServerRoleId(id.get())).collect(),
        None => origin.server_roles.clone(),
    };
    let name = member
        .and_then(|member| member.nick.clone())
        .unwrap_or_else(|| shown_name(&payload.author));
    let mentions = Mentions::of(payload, us);
    let answered = answered(payload, us);
    let via = match (payload.webhook_id, guild_id) {
        (Some(_), _) => Ingress::Webhook,
        (None, None) => Ingress::DirectMessage,
        (None, Some(_)) if answered.is_some() => Ingress::Reply,
        (None, Some(_)) => Ingress::Message,
    };
    let forwarded = || payload.message_snapshots.iter();
    let sent = || payload.attachments.iter().chain(forwarded().flat_map(|it| &it.attachments));
    let attachments = sent()
        .map(|file| Attachment {
            filename: file.filename.clone(),
            size: u64::from(file.size),
            saved: None,
        })
        .collect();
    let files = sent().map(|file| Remote { id: file.id.get(), url: file.url.clone() }).collect();
    let own = mentions.strip(&payload.content).to_owned();
    let quoted = forwarded().filter_map(|it| quotation(&it.content));
    let content = std::iter::once(own).filter(|own| !own.is_empty()).chain(quoted);
    let content = content.collect::<Vec<_>>().join("\n\n");
    Ok(InboundMessage {
        message: Message {
            message_id: MessageId(payload.id.get()),
            channel_id: ChannelId(payload.channel_id.get()),
            guild_id,
            author: Author {
                id: author_id,
                name,
                is_bot: payload.author.bot || payload.webhook_id.is_some(),
                server_roles,
            },
            content,
            addressed: guild_id.is_none() || mentions.any || answered.is_some(),
            reply_to: payload.referenced_message.as_deref().map(|it| MessageId(it.id.get())),
            role: mentions.role.or(answered.flatten()),
            attachments,
            created_at: Timestamp::from_millis(payload.timestamp.timestamp_millis()),
            via,
            read_up_to: None,
        },
        files,
    })
}

/// The words of a message that somebody forwards: they are not the words of whoever does.
fn quotation(words: &str) -> Option<String> {
    let words = words.trim();
    let quoted = || words.lines().map(|line| format!("> {line}")).collect::<Vec<_>>();
    (!words.is_empty()).then(|| quoted().join("\n"))
}

/// Whether a webhook of ours wrote it.
fn by_our_webhook(payload: &Payload, us: &Identity) -> bool {
    let application = payload.application_id.map(|id| id.get());
    payload.webhook_id.is_some_and(|id| {
        us.webhooks.contains(&id.get())
            || application.is_some_and(|it| us.applications.contains(&it))
    })
}

pub(crate) fn shown_name(user: &User) -> String {
    user.global_name.clone().unwrap_or_else(|| user.name.clone())
}

/// `Some` where the message answers one of ours, with the role that spoke if one did.
#[expect(
    clippy::option_option,
    reason = "not an answer to us, an answer to nobody in particular, an answer to a role"
)]
fn answered(payload: &Payload, us: &Identity) -> Option<Option<Role>> {
    let original = payload.referenced_message.as_deref()?;
    if let Some(role) = us.bots.get(&UserId(original.author.id.get())) {
        return Some(*role);
    }
    if by_our_webhook(original, us) {
        let name = original.author.name.to_lowercase();
        return Some(us.persona_names.get(&name).copied());
    }
    None
}

/// The team's name at the beginning of a text, as somebody writes it who does not choose it from the list, with
/// the comma or colon behind it.
fn written_name(text: &str) -> Option<&str> {
    const NAME: &str = "@teams";
    let rest = text.get(..NAME.len()).filter(|name| name.eq_ignore_ascii_case(NAME));
    let rest = rest.map(|name| &text[name.len()..])?;
    match rest.chars().next() {
        Some(',' | ':') => text.get(..NAME.len() + 1),
        Some(c) if c.is_alphanumeric() || "_-.".contains(c) => None,
        Some(_) | None => text.get(..NAME.len()),
    }
}

/// The mentions in a message that address the team. What merely looks like one (in a code block)
/// does not count: Discord's own list of mentions decides.
#[derive(Debug, Default)]
struct Mentions {
    tokens: Vec<String>,
    any: bool,
    role: Option<Role>,
}

impl Mentions {
    fn of(payload: &Payload, us: &Identity) -> Mentions {
        let mut found: Vec<(usize, Option<Role>)> = Vec::new();
        let mut tokens = Vec::new();
        let mut note = |token: String, role: Option<Role>| {
            if let Some(at) = payload.content.find(&token) {
                found.push((at, role));
            } else {
                // Mentioned without a token that we see: content is withheld.
                found.push((usize::MAX, role));
            }
            tokens.push(token);
        };
        for user in &payload.mentions {
            let id = user.id.get();
            if let Some(role) = us.bots.get(&UserId(id)) {
                let token = format!("<@!{id}>");
                if payload.content.contains(&token) {
                    note(token, *role);
                } else {
                    note(format!("<@{id}>"), *role);
                }
            }
        }
        for id in &payload.mention_roles {
            if let Some(role) = us.addressed_by(ServerRoleId(id.get())) {
                note(format!("<@&{id}>"), role);
            }
        }
        // Written out and not chosen from the list, it is no mention to Discord, and means the same.
        let written = written_name(payload.content.trim_start());
        tokens.extend(written.map(str::to_owned));
        // A reply that pings counts its author among the mentions: that is an answer, not a mention.
        let replied = payload
            .referenced_message
            .as_deref()
            .map(|original| format!("<@{}>", original.author.id));
        let any = written.is_some()
            || tokens
                .iter()
                .any(|token| payload.content.contains(token) || replied.as_ref() != Some(token));
        found.sort_by_key(|(at, _)| *at);
        Mentions { any, role: found.iter().find_map(|(_, role)| *role), tokens }
    }

    /// The text without the addressing mentions at its edges, otherwise verbatim (`spec/teams.md` 14.3,
    /// row I20): an indented block below a mention keeps its indentation.
    fn strip<'a>(&self, text: &'a str) -> &'a str {
        let mut rest = text;
        while let Some(after) =
            self.tokens.iter().find_map(|token| rest.trim_start().strip_prefix(token.as_str()))
        {
            let after = after.trim_start_matches([' ', '\t']);
            rest = after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n')).unwrap_or(after);
        }
        while let Some(before) =
            self.tokens.iter().find_map(|token| rest.trim_end().strip_suffix(token.as_str()))
        {
            rest = before.trim_end();
        }
        rest
    }
}

#[cfg(test)]
#[path = "ingress_tests.rs"]
mod tests;
