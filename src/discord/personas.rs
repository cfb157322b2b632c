//! Webhooks that let one bot speak as many: one a public role in each parent channel, and one that the
//! internal roles share, so at most eight of the fifteen that a channel may have.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::assets;
use crate::assets::catalog::Catalog;
use crate::discord::endpoints::Webhook;
use crate::discord::error::{RestError, code};
use crate::discord::problems::{LinkProblem, LinkProblems};
use crate::discord::speakers::Speaker;
use crate::domain::ids::{ChannelId, UserId};
use crate::domain::language::Language;
use crate::domain::role::Role;

/// How long a channel that refused a webhook is left alone, unless rights or channels change.
const REFUSED_FOR: Duration = Duration::from_secs(600);

/// A webhook that may be spoken through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) id: UserId,
    pub(crate) token: String,
}

/// What a channel refused.
#[derive(Debug, Clone, Copy)]
struct WebhookRefusal {
    until: Instant,
    /// The count of changes then.
    changes: u64,
}

#[derive(Debug, Default)]
struct Parent {
    /// Those of our application, by the name that they were made under.
    hooks: BTreeMap<String, Hook>,
    asked: bool,
    /// It makes no more webhooks for us.
    full: Option<WebhookRefusal>,
    /// Not even those that are there can be asked for.
    closed: Option<WebhookRefusal>,
}

impl Parent {
    /// The webhook of a role: by the name that it is made under, however that is written, or by the role's own
    /// name, under which earlier versions made them.
    fn own(&self, name: &str, role: Role) -> Option<&Hook> {
        let named = |wanted: &str| self.hooks.iter().find(|(it, _)| is_named(it, wanted));
        let found = named(name).or_else(|| named(role.as_str()).filter(|_| role.is_public()));
        found.map(|(_, hook)| hook)
    }

    /// A webhook that several roles speak through.
    fn shared(&self) -> Option<&Hook> {
        self.hooks.get(SHARED).or_else(|| self.hooks.values().next())
    }
}

/// The webhooks of one application.
#[derive(Debug)]
pub(crate) struct Personas {
    names: BTreeMap<Role, String>,
    parents: std::sync::Mutex<BTreeMap<ChannelId, Arc<Mutex<Parent>>>>,
    /// Counts the changes of rights and channels.
    changes: AtomicU64,
}

/// Whether two names of webhooks are one.
fn is_named(name: &str, wanted: &str) -> bool {
    let flat = |name: &str| name.trim().replace('_', " ").to_lowercase();
    flat(name) == flat(wanted)
}

/// Whether a webhook of that name is the voice of a role whose webhook is made under the name `wanted`.
pub(crate) fn is_voice(name: &str, wanted: &str, role: Option<Role>) -> bool {
    is_named(name, wanted) || role.is_some_and(|role| is_named(name, role.as_str()))
}

/// The names that roles speak under: those of the configuration, and the catalog's. What setup makes and what the
/// team looks for is made from these.
#[must_use]
pub fn persona_names(
    configured: BTreeMap<Role, String>,
    catalog: &Catalog,
    language: Language,
) -> BTreeMap<Role, String> {
    let mut names = configured;
    for role in Role::ALL {
        names.entry(role).or_insert_with(|| catalog.label(&format!("role.{role}"), language));
    }
    names
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
            parents: std::sync::Mutex::default(),
            changes: AtomicU64::new(0),
        }
    }

    /// Rights or channels are others than before: a channel that refused is asked again.
    pub(crate) fn look_again(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// The name that a role speaks under.
    pub(crate) fn name(&self, role: Role) -> &str {
        self.names.get(&role).map_or(role.as_str(), String::as_str)
    }

    fn hook_name(&self, role: Role) -> &str {
        if role.is_public() { self.name(role) } else { SHARED }
    }

    /// The webhook that a role speaks through in a parent channel: its own, found or made; where no more can be
    /// made, one that others speak through as well, since the name goes with each message. `None` where there
    /// is none at all: the bot then speaks itself. Trouble that another try may end is an error.
    pub(crate) async fn hook(
        &self,
        speaker: &Speaker,
        parent: ChannelId,
        role: Role,
        problems: &LinkProblems,
    ) -> Result<Option<Hook>, RestError> {
        let of_parent = Arc::clone(self.parents().entry(parent).or_default());
        // Held over the calls: two messages must not make the same webhook twice.
        let mut known = of_parent.lock().await;
        let known = &mut *known;
        if self.holds(known.closed) {
            return Ok(None);
        }
        if !known.asked {
            match ours(speaker, parent).await {
                Ok(hooks) => (known.hooks, known.asked) = (hooks, true),
                Err(error) if is_refusal(&error) => {
                    tracing::warn!(%parent, %error, "no webhooks here; roles speak through the bot");
                    problems.set(LinkProblem::Voices(parent), Some(error.to_string()));
                    known.closed = Some(self.refused_now());
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        let name = self.hook_name(role);
        if let Some(hook) = known.own(name, role) {
            if !self.holds(known.full) {
                problems.set(LinkProblem::Voices(parent), None);
            }
            return Ok(Some(hook.clone()));
        }
        if self.holds(known.full) {
            return Ok(known.shared().cloned());
        }
        match make(speaker, parent, name, role, problems).await {
            Ok(hook) => {
                known.hooks.insert(name.to_owned(), hook.clone());
                problems.set(LinkProblem::Voices(parent), None);
                Ok(Some(hook))
            }
            Err(error) if is_refusal(&error) => {
                tracing::warn!(%parent, %error, name, "no webhook for a role; it shares another's");
                problems.set(LinkProblem::Voices(parent), Some(error.to_string()));
                known.full = Some(self.refused_now());
                known.asked = !may_be_made(&error);
                Ok(known.shared().cloned())
            }
            Err(error) => {
                known.asked = !may_be_made(&error);
                Err(error)
            }
        }
    }

    fn refused_now(&self) -> WebhookRefusal {
        let changes = self.changes.load(Ordering::Relaxed);
        WebhookRefusal { until: Instant::now() + REFUSED_FOR, changes }
    }

    /// Whether a refusal still counts.
    fn holds(&self, refused: Option<WebhookRefusal>) -> bool {
        refused.is_some_and(|it| {
            it.until > Instant::now() && it.changes == self.changes.load(Ordering::Relaxed)
        })
    }

    /// Forgets a parent's webhooks: one of them is gone.
    pub(crate) fn forget(&self, parent: ChannelId) {
        self.parents().remove(&parent);
    }

    fn parents(&self) -> MutexGuard<'_, BTreeMap<ChannelId, Arc<Mutex<Parent>>>> {
        self.parents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The picture of a role as Discord takes it: a `data:` URI.
pub(crate) fn picture(role: Role) -> Option<String> {
    let bytes = assets::avatar(role)?;
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    Some(format!("data:image/png;base64,{text}"))
}

/// The webhooks of a channel that our application made.
async fn ours(speaker: &Speaker, parent: ChannelId) -> Result<BTreeMap<String, Hook>, RestError> {
    let application = speaker.application().await?.to_string();
    let mut hooks = BTreeMap::new();
    for webhook in speaker.rest.webhooks(parent).await? {
        if let Webhook {
            id, name: Some(name), token: Some(token), application_id: Some(owner), ..
        } = webhook
            && owner == application
        {
            hooks.entry(name).or_insert(Hook { id, token });
        }
    }
    Ok(hooks)
}

async fn make(
    speaker: &Speaker,
    parent: ChannelId,
    name: &str,
    role: Role,
    problems: &LinkProblems,
) -> Result<Hook, RestError> {
    let picture = picture(role);
    let made = match speaker.rest.create_webhook(parent, name, picture.as_deref()).await {
        // The picture may be what is refused, and a voice without one is a voice.
        Err(error) if picture.is_some() && may_be_the_picture(&error) => {
            let made = speaker.rest.create_webhook(parent, name, None).await;
            if made.is_ok() {
                tracing::warn!(%error, %role, "a role's picture was refused");
                problems.set(LinkProblem::Picture(role), Some(error.to_string()));
            }
            made?
        }
        made => made?,
    };
    let token = made.token;
    let token = token.ok_or_else(|| RestError::Unreadable("webhook without a token".to_owned()))?;
    Ok(Hook { id: made.id, token })
}

/// Whether a webhook that was refused may be taken without its picture.
pub(crate) fn may_be_the_picture(error: &RestError) -> bool {
    match error {
        RestError::Refused { code, .. } => {
            !matches!(*code, code::NO_PERMISSION | code::NO_ACCESS | code::WEBHOOKS_FULL)
        }
        // It may have been made all the same.
        RestError::Server { .. }
        | RestError::Network(_)
        | RestError::Limited { .. }
        | RestError::Breaker { .. }
        | RestError::Unauthorized
        | RestError::Gone { .. }
        | RestError::Unreadable(_) => false,
    }
}

/// Whether what a call was to make may be there, though the call has failed.
const fn may_be_made(error: &RestError) -> bool {
    matches!(error, RestError::Network(_) | RestError::Server { .. } | RestError::Unreadable(_))
}

/// Whether an error is an answer, so that another try would come to the same.
pub(crate) const fn is_refusal(error: &RestError) -> bool {
    match error {
        RestError::Refused { .. } | RestError::Gone { .. } | RestError::Unreadable(_) => true,
        RestError::Server { .. }
        | RestError::Network(_)
        | RestError::Limited { .. }
        | RestError::Breaker { .. }
        | RestError::Unauthorized => false,
    }
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
    use super::{allowed_name, is_voice, picture};
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
    fn a_voice_is_found_however_its_name_is_written() {
        for name in ["Version Controller", "version_controller", " VERSION controller "] {
            assert!(is_voice(name, "Version Controller", None), "{name}");
        }
        assert!(is_voice("orchestrator", "오케스트레이터", Some(Role::Orchestrator)));
        assert!(!is_voice("planner", "Orchestrator", Some(Role::Orchestrator)));
    }

    #[test]
    fn names_are_such_that_discord_takes_them() {
        assert_eq!(allowed_name(" Version  Controller "), "Version Controller");
        assert_eq!(allowed_name("My Discord Planner"), "Team");
        assert_eq!(allowed_name(""), "Team");
        assert_eq!(allowed_name(&"x".repeat(200)).len(), 80);
    }
}
