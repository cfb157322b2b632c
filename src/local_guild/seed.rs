//! What a new guild starts with, and the summary that the outside gets.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde::{Deserialize, Serialize};

use super::caller;
use super::error::Refusal;
use super::guild::Guild;
use super::ids::Id;
use super::model::{Channel, ChannelKind, Role, User};
use super::right;
use super::state::{Change, Meta};
use crate::platform::ids;

/// The channels, with what stands in their head line.
const CHANNELS: [(&str, &str); 4] = [
    ("general", "Ask the team for something"),
    ("relay", "Hand-offs between the roles, for operators"),
    ("startup", "Who came up, and when"),
    ("report", "Summaries of finished work"),
];

/// The team's roles with their colours. Each is a bot, and a server role that can be mentioned.
const TEAM: [(&str, &str, u32); 7] = [
    ("orchestrator", "Orchestrator", 0x7C5CE0),
    ("research", "Research", 0x2B8CC4),
    ("planner", "Planner", 0xC4762B),
    ("designer", "Designer", 0xC44B8A),
    ("architect", "Architect", 0x5570C9),
    ("developer", "Developer", 0x2E9B62),
    ("qa", "QA", 0xC25450),
];

/// The name of the one bot that can speak for everybody.
const APP: &str = "teams";

/// A bot that can log in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Account {
    /// The user id; for a bot, its application id as well.
    pub id: String,
    /// The token, without the `Bot ` that the header wants.
    pub token: String,
}

/// Where the guild is and who is in it: what `teams local-guild --json` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GuildInfo {
    /// `http://127.0.0.1:port`; REST lies under `/api/v10`.
    pub base_url: String,
    /// `ws://127.0.0.1:port`.
    pub gateway_url: String,
    /// Where a person opens the page, with its key.
    pub page_url: String,
    /// The one guild.
    pub guild_id: String,
    /// Text channels by name.
    pub channels: BTreeMap<String, String>,
    /// Bots by name: `teams`, and one a role.
    pub bots: BTreeMap<String, Account>,
    /// People by name: `owner` and `guest`.
    pub users: BTreeMap<String, Account>,
}

/// A token in the shape of Discord's: three parts, the first being the id.
pub(crate) fn token(id: Id) -> String {
    let head = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(id.to_string());
    format!("{head}.{}.{}", ids::random_hex(6), &ids::secret()[..38])
}

/// Fills an empty guild; one that has content stays as it is.
pub(crate) fn fill(guild: &Guild) -> Result<(), Refusal> {
    if guild.read(|state| state.guild.is_some()) {
        return Ok(());
    }
    guild.change(|draft| {
        let id = draft.id();
        let owner = draft.id();
        draft.put(Change::Guild(Meta { id, name: "teams".to_owned(), owner }));
        // The role of everyone has the guild's id.
        draft.put(Change::Role(Role {
            id,
            name: "@everyone".to_owned(),
            color: 0,
            position: 0,
            mentionable: false,
            hoist: false,
            permissions: right::EVERYONE,
            managed: None,
        }));
        let guest = draft.id();
        let app = draft.id();
        for (id, name, display) in [(owner, "owner", "Owner"), (guest, "guest", "Guest")] {
            draft.put(Change::User(User::new(id, name, display, false, token(id))));
        }
        for (position, (name, display, color)) in (1..).zip(TEAM) {
            let role = draft.id();
            draft.put(Change::Role(Role {
                id: role,
                name: name.to_owned(),
                color,
                position,
                mentionable: true,
                hoist: false,
                permissions: right::ALL & !right::ADMINISTRATOR,
                managed: None,
            }));
            let bot = draft.id();
            let mut user = User::new(bot, name, display, true, token(bot));
            user.roles.push(role);
            draft.put(Change::User(user));
        }
        // As if the app had been invited: a role of its own, above those it is to manage.
        let role = draft.id();
        draft.put(Change::Role(Role {
            id: role,
            name: "Teams".to_owned(),
            color: 0,
            position: u32::try_from(TEAM.len()).unwrap_or(0) + 1,
            mentionable: false,
            hoist: false,
            permissions: right::ALL & !right::ADMINISTRATOR,
            managed: Some(app),
        }));
        let mut user = User::new(app, APP, "Teams", true, token(app));
        user.roles.push(role);
        draft.put(Change::User(user));
        for (position, (name, topic)) in (0..).zip(CHANNELS) {
            let id = draft.id();
            let topic = Some(topic.to_owned());
            let kind = ChannelKind::Text { topic, position, parent: None };
            draft.put(Change::Channel(Channel::new(id, name, kind)));
        }
        Ok(())
    })
}

/// The summary of a running guild.
pub(crate) fn info(guild: &Guild) -> Result<GuildInfo, Refusal> {
    guild.read(|state| {
        let accounts = |bots: bool| {
            let chosen = state.users.values().filter(move |user| user.bot == bots);
            chosen
                .map(|user| {
                    let account = Account { id: user.id.to_string(), token: user.token.clone() };
                    (user.name.clone(), account)
                })
                .collect()
        };
        let texts = state
            .channels
            .values()
            .filter(|channel| matches!(channel.kind, ChannelKind::Text { .. }));
        Ok(GuildInfo {
            base_url: guild.base.clone(),
            gateway_url: guild.gateway.clone(),
            page_url: format!("{}/?key={}", guild.base, caller::key(state)?),
            guild_id: state.meta()?.id.to_string(),
            channels: texts.map(|it| (it.name.clone(), it.id.to_string())).collect(),
            bots: accounts(true),
            users: accounts(false),
        })
    })
}
