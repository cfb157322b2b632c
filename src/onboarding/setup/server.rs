//! The server: the one that is meant, with the permissions that are needed, waited for while a person opens
//! a link.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::flow::{Steps, names, planned_key};
use super::requirements::{self, asked_for};
use super::{DISCORD, Outcome, SetupError};
use crate::discord::setup::permissions::{MANAGE_CHANNELS, MANAGE_ROLES, MANAGE_WEBHOOKS};
use crate::discord::setup::{
    GuildName, ServerObject, ServerRequirements, ServerSnapshot, permissions,
};
use crate::domain::ids::GuildId;

/// The first and the longest time between two looks whether a person came.
const LOOKS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

impl Steps<'_> {
    /// The one server, waited for while a person opens the link. `None` ends a dry run.
    pub(super) async fn server(&mut self) -> Result<Option<GuildId>, SetupError> {
        let config = &self.workspace.discord;
        // An id of another place than this one says nothing here.
        let here = config.base_url.as_deref().unwrap_or(DISCORD) == self.base_url;
        let configured = requirements::guild(config).filter(|_| here);
        let named = self.options.guild.or(configured);
        let mut wait = Wait::new(self.options.wait);
        loop {
            let guilds = self.rest.own_guilds().await?;
            if let Some(found) = choose(guilds, named, self.options.guild.is_some())? {
                if let Some(made) = self.journal.other_guild(found.id) {
                    return Err(SetupError::OtherServer { made, wanted: found.id });
                }
                let values = json!({"name": found.name, "id": found.id.to_string()});
                self.tell("server", Outcome::Kept, "setup.server.found", values);
                if !self.options.dry_run {
                    self.journal.begin(self.application.id.0, found.id)?;
                }
                return Ok(Some(found.id));
            }
            if wait.is_new() {
                let link =
                    permissions::invite(&self.base_url, self.application.id.0, asked_for(), named);
                let names: Vec<_> = permissions::TABLE.iter().map(|it| it.name).collect();
                let values = json!({"link": link, "permissions": names});
                if self.options.dry_run {
                    self.tell("server", Outcome::Planned, "setup.server.would_invite", values);
                    self.plan_from_nothing();
                    return Ok(None);
                }
                self.tell("server", Outcome::Waiting, "setup.server.invite", values);
            }
            wait.next().await?;
        }
    }

    /// For a dry run without a server: everything would be made.
    fn plan_from_nothing(&mut self) {
        let application = self.application.id.0;
        let wanted = requirements::everything(&self.workspace, application, None, &self.journal);
        for thing in ServerObject::all() {
            let values = json!({"name": wanted.name(thing)});
            self.tell(thing.kind(), Outcome::Planned, planned_key(thing), values);
        }
    }

    /// Looks at the server until the bot may do there what it has to. `None` ends a dry run.
    pub(super) async fn permissions(
        &mut self,
        guild: GuildId,
    ) -> Result<Option<(ServerSnapshot, ServerRequirements)>, SetupError> {
        let mut wait = Wait::new(self.options.wait);
        loop {
            let seen = ServerSnapshot::look(&self.rest, guild, self.me).await?;
            let wanted = requirements::everything(
                &self.workspace,
                self.application.id.0,
                Some(&seen),
                &self.journal,
            );
            let needed = requirements::needed(&wanted, &seen, &self.journal);
            let missing = permissions::missing(seen.may(), needed);
            if missing.is_empty() {
                self.tell("permissions", Outcome::Kept, "setup.permissions.there", json!({}));
                return Ok(Some((seen, wanted)));
            }
            if wait.is_new() {
                let link = permissions::invite(
                    &self.base_url,
                    self.application.id.0,
                    asked_for(),
                    Some(guild),
                );
                let values = json!({"missing": names(&missing), "link": link});
                if self.options.dry_run {
                    self.tell(
                        "permissions",
                        Outcome::Planned,
                        "setup.permissions.would_ask",
                        values,
                    );
                    return Ok(Some((seen, wanted)));
                }
                self.tell("permissions", Outcome::Waiting, "setup.permissions.missing", values);
            }
            if wait.next().await.is_ok() {
                continue;
            }
            // Nobody came. What makes things pleasant may be refused; the team says less well then.
            if missing.iter().any(|it| it.bit & ESSENTIAL != 0) {
                return Err(SetupError::Late);
            }
            let values = json!({"missing": names(&missing)});
            self.tell("permissions", Outcome::Open, "setup.permissions.without", values);
            let mut wanted = wanted;
            wanted.hooks &= !missing.iter().any(|it| it.bit == MANAGE_WEBHOOKS);
            return Ok(Some((seen, wanted)));
        }
    }
}

/// Without these nothing can be made, or nobody answered.
const ESSENTIAL: u64 = MANAGE_CHANNELS | MANAGE_ROLES | (1 << 10) | (1 << 11);

/// The server that is meant; `None` while the bot is not there.
fn choose(
    guilds: Vec<GuildName>,
    named: Option<GuildId>,
    explicit: bool,
) -> Result<Option<GuildName>, SetupError> {
    let list = |guilds: &[GuildName]| {
        let line = |guild: &GuildName| format!("{} ({})", guild.name, guild.id);
        SetupError::WhichServer(guilds.iter().map(line).collect())
    };
    if let Some(found) = guilds.iter().find(|it| Some(it.id) == named) {
        return Ok(Some(found.clone()));
    }
    match guilds.as_slice() {
        // Where another server is configured, the bot being elsewhere is for a person to sort out.
        [_, ..] if named.is_some() && !explicit => Err(list(&guilds)),
        _ if named.is_some() => Ok(None),
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        [..] => Err(list(&guilds)),
    }
}

/// Looking again, later each time.
pub(super) struct Wait {
    until: Instant,
    pause: Duration,
    new: bool,
}

impl Wait {
    pub(super) fn new(patience: Duration) -> Wait {
        Wait { until: Instant::now() + patience, pause: LOOKS.0, new: true }
    }

    /// Whether nothing was waited for yet; once.
    pub(super) fn is_new(&mut self) -> bool {
        std::mem::take(&mut self.new)
    }

    pub(super) async fn next(&mut self) -> Result<(), SetupError> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(SetupError::Late);
        }
        tokio::time::sleep(self.pause.min(left)).await;
        self.pause = (self.pause * 3 / 2).min(LOOKS.1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_that_is_meant() {
        let guild = |id: u64| GuildName { id: GuildId(id), name: format!("g{id}") };
        let found = |guilds: &[u64], named: Option<u64>, explicit| {
            let guilds = guilds.iter().map(|id| guild(*id)).collect();
            choose(guilds, named.map(GuildId), explicit)
                .map(|found| found.map(|it| it.id.0))
                .map_err(|error| error.to_string())
        };
        assert_eq!(found(&[], None, false), Ok(None));
        assert_eq!(found(&[5], None, false), Ok(Some(5)));
        assert_eq!(found(&[5, 6], Some(6), false), Ok(Some(6)));
        // The named one is waited for; another one is never taken in its place.
        assert_eq!(found(&[5], Some(6), true), Ok(None));
        assert_eq!(found(&[], Some(6), false), Ok(None));
        assert!(found(&[5], Some(6), false).unwrap_err().contains("g5 (5)"));
        assert!(found(&[5, 6], None, false).unwrap_err().contains("g5 (5), g6 (6)"));
    }
}
