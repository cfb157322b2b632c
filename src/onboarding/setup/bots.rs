//! `voice: bots`: a token, what it may read and an invite link for the bot of each role. The orchestrator's is
//! the one that everything else is set up with.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::flow::{BotLogin, RoleBot, Steps, clean, enter, names};
use super::server::Wait;
use super::{Outcome, SetupError};
use crate::discord::rest::Pool;
use crate::discord::setup::permissions::{self, Use};
use crate::discord::setup::{BotPages, ServerSnapshot, intents};
use crate::domain::config::Voice;
use crate::domain::ids::GuildId;
use crate::domain::role::Role;
use crate::workspace::secrets;
use crate::workspace::settings::Setting;

/// Without these a role is not seen: it has to read the room and write there.
const ESSENTIAL: u64 = (1 << 10) | (1 << 11);

impl Steps<'_> {
    /// The tokens of the other roles, each accepted by Discord, kept, and of a bot of its own.
    pub(super) async fn bots(&mut self) -> Result<(), SetupError> {
        if self.workspace.discord.voice() != Voice::Bots {
            return Ok(());
        }
        let tokens = self.workspace.discord.token_names();
        let tokens = tokens.map_err(crate::workspace::ConfigError::problem)?;
        for (role, variable) in tokens.roles {
            if role == Role::Orchestrator {
                continue;
            }
            let bot = self.bot(role, variable.as_str()).await?;
            let Some(mut bot) = bot else { continue };
            let others = self.bots.iter().map(|other| (other.me, other.role));
            let mut others = others.chain([(self.me, Role::Orchestrator)]);
            if let Some((_, other)) = others.find(|(id, _)| *id == bot.me) {
                return Err(SetupError::SameBot { one: other, other: role });
            }
            self.bot_reads(&mut bot).await?;
            self.bots.push(bot);
        }
        Ok(())
    }

    /// One of them; `None` where a dry run would ask for it.
    async fn bot(&mut self, role: Role, variable: &str) -> Result<Option<RoleBot>, SetupError> {
        let options = self.options;
        let own = self.here.as_ref().and_then(|info| info.bots.get(role.as_str()));
        let handed = match own {
            Some(bot) => Some(SecretString::from(bot.token.clone())),
            None => options.tokens.get(&role).map(clean).transpose()?,
        };
        let set = self.workspace.environment.get(variable);
        if options.dry_run && handed.is_none() && set.is_none() {
            let values = json!({ "role": role });
            self.tell("token", Outcome::Planned, "setup.bot.would_ask", values);
            return Ok(None);
        }
        let pool = Pool::new(&self.base_url)?;
        let known = set.as_deref().map(SecretString::from);
        let BotLogin { rest, me, handed } =
            enter(&mut self.dialog, &pool, (Some(role), variable), handed, known).await?;
        let application = rest.whole_application().await?;
        let values = json!({
            "role": role, "bot": me.username, "application": application.id.to_string(),
        });
        let new = handed.filter(|token| set.as_deref() != Some(token.expose_secret()));
        match new {
            Some(token) if !options.dry_run => {
                let pages = self.pages(role);
                self.journal.note_bot(role, BotPages { token: true, ..pages })?;
                secrets::keep(&options.root, variable, &token)?;
                self.tell("token", Outcome::Done, "setup.bot.stored", values);
            }
            Some(_) | None => self.tell("token", Outcome::Kept, "setup.bot.accepted", values),
        }
        Ok(Some(RoleBot { role, rest, me: me.id, name: me.username, application }))
    }

    fn pages(&self, role: Role) -> BotPages {
        self.journal.bots().get(&role).copied().unwrap_or_default()
    }

    /// What the bot may read: switched on by itself where Discord lets it.
    async fn bot_reads(&mut self, bot: &mut RoleBot) -> Result<(), SetupError> {
        let flags = bot.application.flags;
        if intents::reads_messages(flags) {
            return Ok(());
        }
        let values = json!({ "role": bot.role, "page": intents::page(bot.application.id.0) });
        if self.options.dry_run {
            self.tell("intents", Outcome::Planned, "setup.bot.would_switch", values);
            return Ok(());
        }
        let (switch, pages) = (intents::MESSAGE_CONTENT_LIMITED, self.pages(bot.role));
        self.journal.note_bot(bot.role, BotPages { flags: pages.flags | switch, ..pages })?;
        let tried = bot.rest.set_flags(flags | switch).await;
        bot.application = bot.rest.whole_application().await?;
        if intents::reads_messages(bot.application.flags) {
            self.tell("intents", Outcome::Done, "setup.bot.switched", values);
            return Ok(());
        }
        self.journal.note_bot(bot.role, BotPages { flags: pages.flags & !switch, ..pages })?;
        if let Err(error) = tried {
            tracing::debug!(%error, role = %bot.role, "the message content intent was not switched on");
        }
        self.tell("intents", Outcome::Open, "setup.bot.by_hand", values);
        Ok(())
    }

    /// Waits until a person has let every bot into the server, with what it needs there.
    pub(super) async fn bots_join(&mut self, guild: GuildId) -> Result<(), SetupError> {
        let mut wait = Wait::new(self.options.wait);
        let needed = permissions::bits(&[Use::Always]);
        while !self.bots.is_empty() {
            let (mut outside, mut lacking) = (Vec::new(), Vec::new());
            for bot in &self.bots {
                let there = bot.rest.own_guilds().await?.iter().any(|it| it.id == guild);
                let missing = if there {
                    let seen = ServerSnapshot::look(&bot.rest, guild, bot.me).await?;
                    permissions::missing(seen.may(), needed)
                } else {
                    Vec::new()
                };
                let id = bot.application.id.0;
                let link = permissions::invite(&self.base_url, id, needed, Some(guild));
                let line = json!({
                    "role": bot.role, "bot": bot.name, "link": link, "missing": names(&missing),
                });
                if !there || missing.iter().any(|it| it.bit & ESSENTIAL != 0) {
                    outside.push(line);
                } else if !missing.is_empty() {
                    lacking.push(line);
                }
            }
            if outside.is_empty() {
                for line in lacking {
                    self.tell("permissions", Outcome::Open, "setup.bot.lacks", line);
                }
                self.tell("server", Outcome::Kept, "setup.bots.there", json!({}));
                return Ok(());
            }
            let first = wait.is_new();
            if self.options.dry_run {
                let values = json!({ "bots": outside });
                self.tell("server", Outcome::Planned, "setup.bots.would_invite", values);
                return Ok(());
            }
            if first {
                let values = json!({ "bots": outside });
                self.tell("server", Outcome::Waiting, "setup.bots.invite", values);
            }
            wait.next().await?;
        }
        Ok(())
    }

    /// The keys of the configuration that name the bots, with who they are.
    pub(super) fn bot_ids(&self) -> Vec<(String, Setting)> {
        let config = &self.workspace.discord;
        if config.voice() != Voice::Bots {
            return Vec::new();
        }
        let key = |role: Role| {
            let public = config.agents.contains_key(&role);
            let folder = if public { "agents" } else { "internal_agents" };
            format!("{folder}.{role}.bot_id")
        };
        let others = self.bots.iter().map(|bot| (bot.role, bot.me));
        let all = [(Role::Orchestrator, self.me)].into_iter().chain(others);
        all.map(|(role, id)| (key(role), Setting::Word(id.to_string()))).collect()
    }
}

/// What undo needs to know of the bot of a role: its variable.
pub(super) fn variable_of(
    workspace: &crate::workspace::Workspace,
    role: Role,
) -> Result<Option<String>, SetupError> {
    let names = workspace.discord.token_names();
    let names = names.map_err(crate::workspace::ConfigError::problem)?;
    Ok(names.roles.get(&role).map(ToString::to_string))
}
