//! Making what is missing, and undoing it.
//!
//! A thing is made by a call that Discord may carry out although we never hear of it. So before the call the
//! journal keeps which things of that name were there; after being cut off, one that was not is ours.

use serde_json::{Value, json};

use crate::discord::endpoints::Webhook;
use crate::discord::error::RestError;
use crate::discord::personas;
use crate::discord::rest::Rest;
use crate::discord::setup::journal::{Journal, JournalError};
use crate::discord::setup::object::ServerObject;
use crate::discord::setup::plan::{ServerRequirements, Standing};
use crate::discord::setup::snapshot::{ServerChannel, ServerRole, ServerSnapshot};
use crate::domain::ids::{ChannelId, ServerRoleId};
use crate::domain::role::Role;
use crate::platform::plug::{self, Point};

/// Why a thing was not made or undone.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Discord said no, or nothing.
    #[error("{thing}: {source}")]
    Rest {
        /// What it was about.
        thing: ServerObject,
        /// What Discord said.
        #[source]
        source: RestError,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl BuildError {
    /// What Discord said to a thing that the team gets along without: a voice, or a role that is only there to be
    /// mentioned.
    #[must_use]
    pub const fn dispensable(&self) -> Option<&RestError> {
        match self {
            Self::Rest { thing, source } if personas::is_refusal(source) => match thing {
                ServerObject::Hook(_) | ServerObject::SharedHook | ServerObject::Role(_) => {
                    Some(source)
                }
                ServerObject::Category | ServerObject::Channel(_) | ServerObject::Approver => None,
            },
            Self::Rest { .. } | Self::Journal(_) => None,
        }
    }
}

/// What became of a thing that was to be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    /// It is removed.
    Removed(u64),
    /// Somebody removed it before.
    Gone,
}

/// Makes and undoes in one server.
#[derive(Debug)]
pub struct Builder<'a> {
    /// The bot.
    pub rest: &'a Rest,
    /// What is wanted.
    pub wanted: &'a ServerRequirements,
    /// What is there; kept up to date.
    pub seen: &'a mut ServerSnapshot,
    /// What was made.
    pub journal: &'a mut Journal,
}

impl Builder<'_> {
    /// Whether a thing is there.
    #[must_use]
    pub fn standing(&self, thing: ServerObject) -> Standing {
        self.wanted.standing(thing, self.seen, self.journal)
    }

    /// Makes a thing, or finds the one that an earlier, cut-off attempt made. Its id.
    pub async fn make(&mut self, thing: ServerObject) -> Result<u64, BuildError> {
        if let Some(id) = self.resolve(thing)? {
            return Ok(id);
        }
        let before = self.same(thing);
        self.journal.intend(thing, before)?;
        let id = match self.create(thing).await {
            Ok(id) => id,
            Err(source) => {
                // What Discord refused outright it has not made, and a person may make one like it.
                if matches!(source, RestError::Refused { .. } | RestError::Gone { .. }) {
                    self.journal.forget(thing)?;
                }
                return Err(BuildError::Rest { thing, source });
            }
        };
        plug::point(Point::AfterEffect);
        self.journal.note(thing, id)?;
        Ok(id)
    }

    /// Undoes a thing of the journal.
    pub async fn undo(&mut self, thing: ServerObject) -> Result<Undone, BuildError> {
        let id = match self.journal.made(thing) {
            Some(id) => Some(id),
            None => self.resolve(thing)?,
        };
        let mut undone = Undone::Gone;
        if let Some(id) = id {
            match self.remove(thing, id).await {
                Ok(()) => undone = Undone::Removed(id),
                Err(RestError::Gone { .. }) => {}
                Err(source) => return Err(BuildError::Rest { thing, source }),
            }
            plug::point(Point::AfterEffect);
        }
        self.journal.forget(thing)?;
        Ok(undone)
    }

    /// What a cut-off attempt made, if it came that far.
    fn resolve(&mut self, thing: ServerObject) -> Result<Option<u64>, BuildError> {
        let Some(before) = self.journal.intended(thing) else {
            return Ok(None);
        };
        let found = self.same(thing).into_iter().find(|id| !before.contains(id));
        if let Some(id) = found {
            self.journal.note(thing, id)?;
        }
        Ok(found)
    }

    /// The ids of everything that the thing, once made, would look like.
    fn same(&self, thing: ServerObject) -> Vec<u64> {
        let name = self.wanted.name(thing);
        let channels = |fits: &dyn Fn(&ServerChannel) -> bool| {
            let all = self.seen.channels.values().filter(|it| it.name == name);
            all.filter(|it| fits(it)).map(|it| it.id.0).collect::<Vec<_>>()
        };
        match thing {
            ServerObject::Category => channels(&ServerChannel::is_category),
            ServerObject::Channel(_) => {
                let parent = self.category();
                channels(&|it: &ServerChannel| it.is_text() && it.parent_id == parent)
            }
            ServerObject::Role(_) | ServerObject::Approver => {
                let all = self.seen.roles.values().filter(|it| it.name == name && !it.managed);
                all.map(|it| it.id.0).collect()
            }
            ServerObject::Hook(_) | ServerObject::SharedHook => {
                let channel = self.wanted.hook_channel(self.seen, self.journal);
                let all = channel
                    .into_iter()
                    .flat_map(|channel| self.seen.hooks_of(channel, self.wanted.application));
                all.filter(|it| it.name.as_deref() == Some(name.as_str()))
                    .map(|it| it.id.0)
                    .collect()
            }
        }
    }

    /// The category, if it is there.
    fn category(&self) -> Option<ChannelId> {
        self.journal
            .made(ServerObject::Category)
            .map(ChannelId)
            .filter(|id| self.seen.channels.contains_key(id))
    }

    async fn create(&mut self, thing: ServerObject) -> Result<u64, RestError> {
        let name = self.wanted.name(thing);
        let guild = self.seen.guild;
        match thing {
            ServerObject::Category => self.create_channel(4, name, json!({})).await,
            ServerObject::Channel(place) => {
                let mut more = json!({});
                if let Some(parent) = self.category() {
                    more["parent_id"] = json!(parent.to_string());
                }
                if let Some(topic) = self.wanted.topics.get(&place) {
                    more["topic"] = json!(topic);
                }
                self.create_channel(0, name, more).await
            }
            ServerObject::Role(_) | ServerObject::Approver => {
                let color = match thing {
                    ServerObject::Role(role) => color(role),
                    ServerObject::Category
                    | ServerObject::Channel(_)
                    | ServerObject::Approver
                    | ServerObject::Hook(_)
                    | ServerObject::SharedHook => 0,
                };
                // Only to be mentioned: a role gives its holders nothing.
                let mentionable = matches!(thing, ServerObject::Role(_));
                let body = json!({
                    "name": name, "permissions": "0", "color": color, "hoist": false,
                    "mentionable": mentionable,
                });
                let id = self.rest.create_role(guild, body).await?;
                let made = ServerRole { id, name, permissions: 0, mentionable, managed: false };
                self.seen.roles.insert(id, made);
                Ok(id.0)
            }
            ServerObject::Hook(_) | ServerObject::SharedHook => {
                let channel =
                    self.wanted.hook_channel(self.seen, self.journal).ok_or_else(|| {
                        RestError::Unreadable("the channel of the webhooks".to_owned())
                    })?;
                let avatar = match thing {
                    ServerObject::Hook(role) => personas::picture(role),
                    ServerObject::Category
                    | ServerObject::Channel(_)
                    | ServerObject::Role(_)
                    | ServerObject::Approver
                    | ServerObject::SharedHook => None,
                };
                let made = self.rest.create_webhook(channel, &name, avatar.as_deref()).await;
                let made = match made {
                    // A voice without a picture is a voice; the checks name it.
                    Err(error) if avatar.is_some() && personas::may_be_the_picture(&error) => {
                        self.rest.create_webhook(channel, &name, None).await?
                    }
                    made => made?,
                };
                let id = made.id;
                let made = Webhook {
                    token: None,
                    application_id: Some(self.wanted.application.to_string()),
                    channel_id: Some(channel),
                    ..made
                };
                self.seen.hooks.get_or_insert_default().push(made);
                Ok(id.0)
            }
        }
    }

    async fn create_channel(
        &mut self,
        kind: u8,
        name: String,
        mut body: Value,
    ) -> Result<u64, RestError> {
        body["name"] = json!(name);
        body["type"] = json!(kind);
        let parent_id = body["parent_id"].as_str().and_then(|id| id.parse().ok());
        let id = self.rest.create_channel(self.seen.guild, body).await?;
        let made = ServerChannel { id, kind, name, parent_id, permission_overwrites: Vec::new() };
        self.seen.channels.insert(id, made);
        Ok(id.0)
    }

    async fn remove(&mut self, thing: ServerObject, id: u64) -> Result<(), RestError> {
        match thing {
            ServerObject::Category | ServerObject::Channel(_) => {
                self.rest.delete_channel(ChannelId(id)).await?;
                self.seen.channels.remove(&ChannelId(id));
            }
            ServerObject::Role(_) | ServerObject::Approver => {
                self.rest.delete_role(self.seen.guild, ServerRoleId(id)).await?;
                self.seen.roles.remove(&ServerRoleId(id));
            }
            ServerObject::Hook(_) | ServerObject::SharedHook => {
                self.rest.delete_webhook(id).await?
            }
        }
        Ok(())
    }
}

/// The colour of a role's name, near that of its picture.
const fn color(role: Role) -> u32 {
    match role {
        Role::Orchestrator => 0x7C_5C_E0,
        Role::Research => 0x2B_8C_C4,
        Role::Planner => 0xC4_76_2B,
        Role::Designer => 0xC4_4B_8A,
        Role::Architect => 0x55_70_C9,
        Role::Developer => 0x2E_9B_62,
        Role::Qa => 0xC2_54_50,
        Role::Parser | Role::Sourcer | Role::VersionController | Role::ConflictResolver => 0,
    }
}
