//! Webhooks that let one bot speak as many: one a public role in each parent channel, and one that the
//! internal roles share, so at most eight of the fifteen that a channel may have.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::assets;
use crate::discord::endpoints::Webhook;
use crate::discord::error::{RestError, code};
use crate::discord::speakers::Speaker;
use crate::domain::ids::{ChannelId, UserId};
use crate::domain::role::Role;

/// How long a channel that refused a webhook is left alone.
const SULK: Duration = Duration::from_secs(600);

/// A webhook that may be spoken through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) id: UserId,
    pub(crate) token: String,
}

#[derive(Debug, Default)]
struct Parent {
    /// By name; empty until the channel was asked.
    hooks: BTreeMap<String, Hook>,
    asked: bool,
    refused_until: Option<Instant>,
}

/// The webhooks of one application.
#[derive(Debug)]
pub(crate) struct Personas {
    names: BTreeMap<Role, String>,
    parents: Mutex<BTreeMap<ChannelId, Parent>>,
}

/// A name that Discord accepts for a webhook: 1 to 80 characters, without its own name in it.
pub(crate) fn allowed_name(name: &str) -> String {
    let flat: String = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = flat.chars().take(80).collect();
    let lower = short.to_lowercase();
    if short.is_empty() || lower.contains("discord") || lower.contains("clyde") {
        "Team".to_owned()
    } else {
        short
    }
}

/// The name of the webhook that internal roles share.
pub(crate) const SHARED: &str = "Team";

impl Personas {
    pub(crate) fn new(names: &BTreeMap<Role, String>) -> Personas {
        Personas {
            names: names.iter().map(|(role, name)| (*role, allowed_name(name))).collect(),
            parents: Mutex::default(),
        }
    }

    /// The name that a role speaks under.
    pub(crate) fn name(&self, role: Role) -> &str {
        self.names.get(&role).map_or(role.as_str(), String::as_str)
    }

    fn hook_name(&self, role: Role) -> &str {
        if role.is_public() { self.name(role) } else { SHARED }
    }

    /// The webhook of a role in a parent channel, found or made. `None` where the channel refuses
    /// webhooks: the bot then speaks itself.
    pub(crate) async fn hook(
        &self,
        speaker: &Speaker,
        parent: ChannelId,
        role: Role,
    ) -> Result<Option<Hook>, RestError> {
        // Held over the calls: two messages must not make the same webhook twice.
        let mut parents = self.parents.lock().await;
        let known = parents.entry(parent).or_default();
        if known.refused_until.is_some_and(|until| until > Instant::now()) {
            return Ok(None);
        }
        let name = self.hook_name(role);
        let found = Self::find_or_make(speaker, parent, name, role, known).await;
        match found {
            Ok(hook) => Ok(Some(hook)),
            Err(error) if refuses_webhooks(&error) => {
                tracing::warn!(%parent, %error, "no webhook here; roles speak through the bot");
                known.refused_until = Some(Instant::now() + SULK);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn find_or_make(
        speaker: &Speaker,
        parent: ChannelId,
        name: &str,
        role: Role,
        known: &mut Parent,
    ) -> Result<Hook, RestError> {
        if !known.asked {
            let application = speaker.application().await?.to_string();
            for webhook in speaker.rest.webhooks(parent).await? {
                let Webhook {
                    id,
                    name: Some(name),
                    token: Some(token),
                    application_id: Some(owner),
                    channel_id: _,
                } = webhook
                else {
                    continue;
                };
                if owner == application {
                    known.hooks.entry(name).or_insert(Hook { id, token });
                }
            }
            known.asked = true;
        }
        if let Some(hook) = known.hooks.get(name) {
            return Ok(hook.clone());
        }
        let made = speaker.rest.create_webhook(parent, name, picture(role).as_deref()).await?;
        let Some(token) = made.token else {
            return Err(RestError::Unreadable("webhook without a token".to_owned()));
        };
        let hook = Hook { id: made.id, token };
        known.hooks.insert(name.to_owned(), hook.clone());
        Ok(hook)
    }

    /// Forgets a parent's webhooks: one of them is gone.
    pub(crate) async fn forget(&self, parent: ChannelId) {
        self.parents.lock().await.remove(&parent);
    }
}

/// The picture of a role as Discord takes it: a `data:` URI.
pub(crate) fn picture(role: Role) -> Option<String> {
    let bytes = assets::avatar(role)?;
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    Some(format!("data:image/png;base64,{text}"))
}

/// Whether the error means that the bot may not use webhooks in the channel.
fn refuses_webhooks(error: &RestError) -> bool {
    matches!(
        error.code(),
        Some(code::NO_PERMISSION | code::NO_ACCESS | code::WEBHOOKS_FULL | code::INVALID_FORM)
    )
}

/// Whether the error means that the webhook is gone.
pub(crate) fn hook_is_gone(error: &RestError) -> bool {
    match error {
        RestError::Gone { code, .. } => *code == code::UNKNOWN_WEBHOOK || *code == 0,
        RestError::Unauthorized => true,
        RestError::Network(_)
        | RestError::Server { .. }
        | RestError::Limited { .. }
        | RestError::Breaker { .. }
        | RestError::Refused { .. }
        | RestError::Unreadable(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{allowed_name, picture};
    use crate::domain::role::Role;

    #[test]
    fn every_public_role_has_a_picture_of_its_own() {
        let pictures: Vec<_> = Role::PUBLIC.into_iter().filter_map(picture).collect();
        let different: std::collections::BTreeSet<_> = pictures.iter().collect();
        assert_eq!((pictures.len(), different.len()), (7, 7));
        // A webhook's picture may have 256 KiB; these go out with every new one.
        assert!(
            pictures
                .iter()
                .all(|one| one.starts_with("data:image/png;base64,iVBOR") && one.len() < 4096)
        );
        assert_eq!(picture(Role::Parser), None);
    }

    #[test]
    fn names_are_such_that_discord_takes_them() {
        assert_eq!(allowed_name(" Version  Controller "), "Version Controller");
        assert_eq!(allowed_name("My Discord Planner"), "Team");
        assert_eq!(allowed_name(""), "Team");
        assert_eq!(allowed_name(&"x".repeat(200)).len(), 80);
    }
}
