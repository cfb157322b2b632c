//! Who speaks with which token, under which name.

use std::collections::BTreeMap;

use secrecy::SecretString;
use tokio::sync::OnceCell;

use crate::discord::endpoints::SeenUser;
use crate::discord::error::RestError;
use crate::discord::rest::{Pool, Rest};
use crate::domain::ids::UserId;
use crate::domain::role::Role;

/// The two ways to give the roles a voice (`DESIGN.md`, "Discord, in short").
#[derive(Debug, Clone)]
pub enum VoiceMode {
    /// One bot; roles speak through webhooks of its application.
    Personas {
        /// Its token.
        token: SecretString,
    },
    /// A bot a role. The orchestrator's listens and speaks for the team.
    Bots {
        /// A token for each role that has a bot; the orchestrator's must be there.
        tokens: BTreeMap<Role, SecretString>,
    },
}

/// One bot user.
#[derive(Debug)]
pub(crate) struct Speaker {
    pub(crate) rest: Rest,
    /// The role that the bot is; none for the one bot of all.
    pub(crate) role: Option<Role>,
    me: OnceCell<UserId>,
    application: OnceCell<u64>,
}

impl Speaker {
    fn new(rest: Rest, role: Option<Role>) -> Speaker {
        Speaker { rest, role, me: OnceCell::new(), application: OnceCell::new() }
    }

    /// Our user id, asked for once.
    pub(crate) async fn me(&self) -> Result<UserId, RestError> {
        let ask = async || self.rest.me().await.map(|SeenUser { id, .. }| id);
        self.me.get_or_try_init(ask).await.copied()
    }

    /// Our application's id, asked for once.
    pub(crate) async fn application(&self) -> Result<u64, RestError> {
        let ask = async || self.rest.application().await;
        self.application.get_or_try_init(ask).await.copied()
    }
}

/// All bot users.
#[derive(Debug)]
pub(crate) struct Speakers {
    pub(crate) team: Speaker,
    /// In `voice: bots`, the bots of the other roles.
    pub(crate) roles: BTreeMap<Role, Speaker>,
    /// Whether roles without a bot of their own speak through webhooks.
    pub(crate) personas: bool,
}

impl Speakers {
    /// `None` where the orchestrator has no token.
    pub(crate) fn new(pool: &Pool, mode: VoiceMode) -> Option<Speakers> {
        match mode {
            VoiceMode::Personas { token } => Some(Speakers {
                team: Speaker::new(Rest::new(pool.clone(), token), None),
                roles: BTreeMap::new(),
                personas: true,
            }),
            VoiceMode::Bots { mut tokens } => {
                let token = tokens.remove(&Role::Orchestrator)?;
                let bot = |role, token| Speaker::new(Rest::new(pool.clone(), token), Some(role));
                Some(Speakers {
                    team: bot(Role::Orchestrator, token),
                    roles: tokens
                        .into_iter()
                        .map(|(role, token)| (role, bot(role, token)))
                        .collect(),
                    personas: false,
                })
            }
        }
    }

    /// The bot user of a role, if it has one.
    pub(crate) fn of(&self, role: Role) -> Option<&Speaker> {
        if self.team.role == Some(role) {
            return Some(&self.team);
        }
        self.roles.get(&role)
    }
}
