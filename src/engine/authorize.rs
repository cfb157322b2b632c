//! The one rule about who may do what.

use crate::domain::ids::GuildId;
use crate::domain::incoming::{Actor, Author};
use crate::domain::policy::{Policy, Right};
use crate::domain::request::Request;

/// Proof that somebody may do something; only [`authorize`] makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted(());

/// Why somebody may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// Another server than the one that the team lives in. Stay silent.
    ForeignGuild,
    /// A bot that is not trusted. Stay silent.
    UntrustedBot,
    /// One of the team's own voices. Stay silent.
    OwnVoice,
    /// The right is missing. Say so.
    MissingRight(Right),
}

/// Decides whether `actor` may exercise `right`. Guild, bot and person lists all apply; who is on no
/// list may do nothing; server roles count only inside the server (`spec/teams.md` 13.D #59).
pub fn authorize(policy: &Policy, actor: &Actor, right: Right) -> Result<Granted, Denied> {
    match actor {
        Actor::Operator => Ok(Granted(())),
        // What an agent may do is told by its role, never by a person's right.
        Actor::Agent { .. } => Err(Denied::MissingRight(right)),
        Actor::Person { author, guild_id } => person(policy, author, *guild_id, right),
    }
}

/// Whether `actor` may act on a request of somebody: on their own with the right to ask, on others'
/// with the right to administer.
pub fn authorize_on(policy: &Policy, actor: &Actor, request: &Request) -> Result<Granted, Denied> {
    let own = match actor {
        Actor::Operator | Actor::Agent { .. } => false,
        Actor::Person { author, .. } => request.reply_route.author_id == Some(author.id),
    };
    authorize(policy, actor, if own { Right::Ask } else { Right::Administer })
}

fn person(
    policy: &Policy,
    author: &Author,
    guild: Option<GuildId>,
    right: Right,
) -> Result<Granted, Denied> {
    if policy.own_ids.contains(&author.id) {
        return Err(Denied::OwnVoice);
    }
    if let Some(guild) = guild
        && !policy.guilds.is_empty()
        && !policy.guilds.contains(&guild)
    {
        return Err(Denied::ForeignGuild);
    }
    if author.is_bot && !policy.trusted_bots.contains(&author.id) {
        return Err(Denied::UntrustedBot);
    }
    let holds = policy.rights.iter().filter(|(held, _)| **held >= right).any(|(_, holders)| {
        holders.users.contains(&author.id)
            || (guild.is_some() && author.server_roles.iter().any(|r| holders.roles.contains(r)))
    });
    if holds { Ok(Granted(())) } else { Err(Denied::MissingRight(right)) }
}
