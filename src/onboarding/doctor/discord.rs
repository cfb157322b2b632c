//! The bots: their tokens, what they may read, and the server that they are in.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::finding::{Check, Finding, Repair, safe};
use crate::discord::commands::unregistered;
use crate::discord::error::RestError;
use crate::discord::rest::{Pool, Rest};
use crate::discord::setup::{
    Application, GuildName, Journal, ServerRequirements, ServerSnapshot, intents, permissions,
};
use crate::domain::config::Voice;
use crate::domain::ids::{GuildId, UserId};
use crate::domain::role::Role;
use crate::onboarding::setup::{DISCORD, journal, requirements};
use crate::platform::redact;
use crate::workspace::{DEMO_TOKEN, Origin, Workspace};

/// Below so many new sessions a day, something restarts far too often (`spec/discord.md` 5).
const FEW_STARTS: u32 = 50;

/// What the server looks like to the team's bot and to the others.
pub(super) struct ServerView {
    pub(super) rest: Rest,
    pub(super) seen: ServerSnapshot,
    pub(super) wanted: ServerRequirements,
    pub(super) journal: Journal,
    /// In `voice: bots`, how the other bots see the server.
    pub(super) others: Vec<(Role, ServerSnapshot)>,
}

/// One bot that should log in.
struct Bot {
    role: Option<Role>,
    variable: String,
    id: Option<UserId>,
}

/// Looks; what cannot be looked at for want of something before is left out. Also how far Discord's clock
/// is before ours, in seconds.
pub(super) async fn look(
    workspace: &Workspace,
    found: &mut Vec<Finding>,
) -> (Option<ServerView>, Option<i64>) {
    let discord = &workspace.discord;
    let base_url = discord.base_url.clone().unwrap_or_else(|| DISCORD.to_owned());
    let pool = match Pool::new(&base_url) {
        Ok(pool) => pool,
        Err(error) => {
            let values = json!({"error": safe(&error), "url": base_url});
            found.push(Finding::problem(Check::Token, "doctor.token.unreachable", values));
            return (None, None);
        }
    };
    let mut main = None;
    let mut others = Vec::new();
    for bot in bots(workspace) {
        let Some(rest) = log_in(workspace, &pool, &base_url, &bot, found).await else { continue };
        match bot.role {
            None | Some(Role::Orchestrator) => main = Some(rest),
            Some(role) => others.push((role, rest)),
        }
    }
    let met = match main {
        Some((rest, me)) => meet(workspace, &base_url, rest, me, others, found).await,
        None => None,
    };
    (met, pool.skew_seconds())
}

fn bots(workspace: &Workspace) -> Vec<Bot> {
    let discord = &workspace.discord;
    let Ok(names) = discord.token_names() else {
        return Vec::new();
    };
    match discord.voice() {
        Voice::Personas => {
            let id = discord.agents.get(&Role::Orchestrator).map(|it| it.bot_id);
            vec![Bot { role: None, variable: names.main.to_string(), id }]
        }
        Voice::Bots => {
            let id = |role: &Role| {
                let internal = || discord.internal_agents.get(role.as_str());
                discord.agents.get(role).or_else(internal).map(|it| it.bot_id)
            };
            let bot = |(role, name): (&Role, &crate::domain::config::EnvName)| Bot {
                role: Some(*role),
                variable: name.to_string(),
                id: id(role),
            };
            names.roles.iter().map(bot).collect()
        }
    }
}

/// The token of a bot: there, accepted, and that of the bot that is meant.
async fn log_in(
    workspace: &Workspace,
    pool: &Pool,
    base_url: &str,
    bot: &Bot,
    found: &mut Vec<Finding>,
) -> Option<(Rest, UserId)> {
    let variable = bot.variable.as_str();
    let role = bot.role.map_or("", Role::as_str);
    let Some(token) = workspace.environment.get(variable).map(SecretString::from) else {
        if variable == DEMO_TOKEN {
            found.push(Finding::not_needed(Check::Token, "doctor.token.demo", json!({})));
            return None;
        }
        let values = json!({"variable": variable, "role": role});
        found.push(Finding::problem(Check::Token, "doctor.token.missing", values));
        return None;
    };
    redact::register(token.expose_secret());
    let origin = match workspace.environment.origin(variable) {
        Some(Origin::Process) | None => format!("${variable}"),
        Some(Origin::Kept) => {
            crate::workspace::secrets::tokens_file(&workspace.root).display().to_string()
        }
        Some(Origin::File(path)) => path.display().to_string(),
    };
    let rest = Rest::new(pool.clone(), token);
    match rest.me().await {
        Ok(me) => {
            if let Some(expected) = bot.id.filter(|id| *id != me.id) {
                let values = json!({
                    "role": role, "expected": expected.to_string(), "found": me.id.to_string(),
                    "bot": me.username,
                });
                found.push(Finding::problem(Check::Token, "doctor.token.other_bot", values));
            } else {
                let values = json!({"bot": me.username, "origin": origin, "role": role});
                found.push(Finding::ok(Check::Token, "doctor.token.ok", values));
            }
            Some((rest, me.id))
        }
        Err(RestError::Unauthorized) => {
            let values = json!({"origin": origin, "role": role, "variable": variable});
            found.push(Finding::problem(Check::Token, "doctor.token.refused", values));
            None
        }
        Err(error) => {
            let values = json!({"error": safe(&error), "url": base_url});
            found.push(Finding::problem(Check::Token, "doctor.token.unreachable", values));
            None
        }
    }
}

/// What the bot is told, how often it may still start, and the server.
async fn meet(
    workspace: &Workspace,
    base_url: &str,
    rest: Rest,
    me: UserId,
    others: Vec<(Role, (Rest, UserId))>,
    found: &mut Vec<Finding>,
) -> Option<ServerView> {
    let application = match rest.whole_application().await {
        Ok(application) => application,
        Err(error) => {
            let values = json!({"error": safe(&error), "url": base_url});
            found.push(Finding::problem(Check::Token, "doctor.token.unreachable", values));
            return None;
        }
    };
    starts(&rest, found).await;
    if intents::reads_messages(application.flags) {
        found.push(Finding::ok(Check::Intents, "doctor.intents.ok", json!({})));
    } else {
        let values = json!({"page": intents::page(application.id.0)});
        let finding = Finding::problem(Check::Intents, "doctor.intents.off", values);
        found.push(finding.repaired_by(Repair::Intents));
    }
    let guilds = match rest.own_guilds().await {
        Ok(guilds) => guilds,
        Err(error) => {
            let values = json!({"error": safe(&error), "url": base_url});
            found.push(Finding::problem(Check::Server, "doctor.token.unreachable", values));
            return None;
        }
    };
    let guild = choose(workspace, base_url, &application, guilds, found)?;
    let journal = match journal(&workspace.root) {
        Ok(journal) => journal,
        Err(error) => {
            let values = json!({"error": safe(&error), "hint": ""});
            found.push(Finding::problem(Check::Config, "doctor.config.wrong", values));
            return None;
        }
    };
    let seen = ServerSnapshot::look(&rest, guild.id, me).await;
    let seen = seen.map_err(|error| unseen(found, &error)).ok()?;
    let wanted = requirements::present(workspace, application.id.0, &seen, &journal);
    commands(workspace, &rest, (application.id.0, guild.id), found).await;
    let mut looks = Vec::new();
    for (role, (rest, me)) in others {
        match ServerSnapshot::look(&rest, guild.id, me).await {
            Ok(seen) => looks.push((role, seen)),
            Err(_) => {
                let values = json!({"role": role.as_str(), "name": guild.name});
                found.push(Finding::problem(Check::Server, "doctor.server.role_absent", values));
            }
        }
    }
    Some(ServerView { rest, seen, wanted, journal, others: looks })
}

/// The slash commands, where the team has registered some: those that the server does not have as they are now.
async fn commands(
    workspace: &Workspace,
    rest: &Rest,
    (application, guild): (u64, GuildId),
    found: &mut Vec<Finding>,
) {
    // They are registered when the team is up, so before that none is missed.
    if !crate::store::is_owned(&workspace.root) {
        return;
    }
    match unregistered(rest, application, guild).await {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => {
            let values = json!({"names": missing});
            // A team that is just starting has them soon; one that is refused costs only itself.
            found.push(Finding::not_needed(Check::Server, "doctor.commands.missing", values));
        }
        Err(error) => unseen(found, &error),
    }
}

fn unseen(found: &mut Vec<Finding>, error: &RestError) {
    let values = json!({"error": safe(error)});
    found.push(Finding::problem(Check::Server, "doctor.server.unseen", values));
}

async fn starts(rest: &Rest, found: &mut Vec<Finding>) {
    if let Ok(address) = rest.gateway().await {
        let left = address.session_start_limit.remaining;
        if left < FEW_STARTS {
            let hours = address.session_start_limit.reset_after.div_ceil(3_600_000);
            let values = json!({"left": left, "hours": hours});
            found.push(Finding::problem(Check::Token, "doctor.token.few_starts", values));
        }
    }
}

/// The server of the configuration, and the lock on it.
fn choose(
    workspace: &Workspace,
    base_url: &str,
    application: &Application,
    guilds: Vec<GuildName>,
    found: &mut Vec<Finding>,
) -> Option<GuildName> {
    let Some(named) = requirements::guild(&workspace.discord) else {
        let names: Vec<_> = guilds.iter().map(|it| format!("{} ({})", it.name, it.id)).collect();
        let values = json!({"servers": names});
        found.push(Finding::problem(Check::Server, "doctor.server.unnamed", values));
        return None;
    };
    let elsewhere: Vec<_> =
        guilds.iter().filter(|it| it.id != named).map(|it| it.name.clone()).collect();
    let Some(guild) = guilds.into_iter().find(|it| it.id == named) else {
        let link =
            permissions::invite(base_url, application.id.0, requirements::asked_for(), Some(named));
        let values = json!({"id": named.to_string(), "link": link});
        found.push(Finding::problem(Check::Server, "doctor.server.absent", values));
        return None;
    };
    let allowed = &workspace.runtime.allowed_guild_ids;
    if !allowed.is_empty() && !allowed.contains(&named) {
        let values = json!({"name": guild.name, "id": named.to_string()});
        found.push(Finding::problem(Check::Server, "doctor.server.locked_out", values));
    } else {
        let values = json!({"name": guild.name, "id": named.to_string(), "elsewhere": elsewhere});
        found.push(Finding::ok(Check::Server, "doctor.server.ok", values));
    }
    Some(guild)
}
