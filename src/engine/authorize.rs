//! The one gate between people and the team: who may do what, to what, and by which way in. Every handler of
//! the engine takes a [`Granted`], and only [`authorize`] makes one.

use std::marker::PhantomData;

use super::intent;
use crate::domain::actor::{Actor, Author};
use crate::domain::ids::GuildId;
use crate::domain::ingress::Ingress;
use crate::domain::intent::Intent;
use crate::domain::policy::{Policy, Right};
use crate::domain::request::{Followup, Request};
use crate::domain::role::Role;

/// A thing to do, as a type: a handler says by its parameter what must have been granted.
pub trait Act {
    /// The same as a value.
    const ACTION: Action;
}

macro_rules! actions {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// What somebody can want.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Action {
            $($(#[$doc])+ $name,)+
        }

        impl Action {
            /// All of them.
            pub const ALL: &[Action] = &[$(Action::$name,)+];
        }

        /// The actions as types.
        pub mod act {
            $(
                $(#[$doc])+
                #[derive(Debug)]
                pub enum $name {}

                impl super::Act for $name {
                    const ACTION: super::Action = super::Action::$name;
                }
            )+
        }
    };
}

actions! {
    /// Ask for something new.
    Ask,
    /// Say something to a request under way.
    Say,
    /// Change or withdraw one's own words.
    Revise,
    /// See what the team is doing.
    Look,
    /// Say what should be different about what was delivered.
    RequestChanges,
    /// Withdraw a request.
    Cancel,
    /// Try a blocked request again.
    Retry,
    /// Let a request take more steps.
    Lengthen,
    /// Let a request take fewer steps.
    Shorten,
    /// Decide what waits for a person.
    Decide,
    /// Answer what the planner asks.
    Answer,
    /// Judge a criterion that is left to people.
    Verify,
    /// Begin, end or continue a sprint.
    ControlSprint,
    /// Change the backlog.
    KeepBacklog,
    /// Deal with messages that Discord refused.
    KeepOutbox,
}

/// What it is done to.
#[derive(Debug, Clone, Copy)]
pub enum Resource<'a> {
    /// The team itself.
    Team,
    /// A request of somebody's.
    Request(&'a Request),
}

/// Proof that somebody may do `A`.
#[derive(Debug)]
pub struct Granted<A> {
    actor: Actor,
    action: PhantomData<A>,
}

impl<A> Granted<A> {
    /// Who may.
    #[must_use]
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The name of who may, for people.
    #[must_use]
    pub fn name(&self) -> String {
        self.actor.name()
    }
}

/// Why somebody may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// Another server than the one that the team lives in. Stay silent.
    ForeignGuild,
    /// A bot that is not trusted. Stay silent.
    UntrustedBot,
    /// One of the team's own voices. Stay silent.
    OwnVoice,
    /// This cannot be done by this way in, whoever does it.
    NotThisWay,
    /// Somebody else has to decide what this person asked for or added to.
    OwnRequest,
    /// It was said to the team alone, and stays between the two.
    Private,
    /// The right is missing. Say so.
    MissingRight(Right),
}

/// Decides whether `actor` may do `A` to `resource`. Way in, guild, bot and person lists all apply; who is on
/// no list may do nothing; a server role counts only in the server that it belongs to (`spec/teams.md`
/// 13.D #59).
///
/// # Errors
/// Why not.
pub fn authorize<A: Act>(
    policy: &Policy,
    actor: &Actor,
    resource: Resource<'_>,
) -> Result<Granted<A>, Denied> {
    check(policy, actor, A::ACTION, resource)?;
    Ok(Granted { actor: actor.clone(), action: PhantomData })
}

fn check(
    policy: &Policy,
    actor: &Actor,
    action: Action,
    resource: Resource<'_>,
) -> Result<(), Denied> {
    if !carried_by(actor.ingress()).contains(&action) {
        return Err(Denied::NotThisWay);
    }
    let (author, guild) = match actor {
        Actor::Operator | Actor::Deleter => return Ok(()),
        // An agent holds no right of a person: what it may do is told by its role.
        Actor::Agent { role: Role::Planner, .. } => return Ok(()),
        Actor::Agent { .. } => return Err(Denied::MissingRight(right_for(action, false))),
        Actor::Person { author, guild_id, .. } => (author, *guild_id),
    };
    let (own, asked_for_part) = match resource {
        Resource::Team => (false, false),
        Resource::Request(request) => (
            request.conversation.reply_route.author_id == Some(author.id),
            request.params.other_askers.contains(&author.id),
        ),
    };
    person(policy, author, guild, right_for(action, own))?;
    let is_private = |request: &Request| request.conversation.reply_route.is_dm && !own;
    if matches!((action, resource), (Action::Say, Resource::Request(it)) if is_private(it)) {
        return Err(Denied::Private);
    }
    if action == Action::Decide && (own || asked_for_part) && policy.four_eyes {
        return Err(Denied::OwnRequest);
    }
    Ok(())
}

/// Notes who adds to what somebody else asked for, in words that are no question, no command and no thanks: with four
/// eyes they approve nothing of it.
pub(super) fn note_asker(request: &mut Request, words: &Followup) {
    let reads_as = intent::read(&words.body).intent;
    let adds = !matches!(reads_as, Some(Intent::Question | Intent::Control | Intent::Resume));
    if words.is_others && adds && words.asks_for_something() {
        request.params.other_askers.extend(words.author_id);
    }
}

/// What a way in can carry at all. Decisions come from buttons, the forms that those open, commands and the
/// operator: no text, no reaction and no agent reaches them.
#[must_use]
pub const fn carried_by(ingress: Ingress) -> &'static [Action] {
    use Action::{
        Answer, Ask, Cancel, ControlSprint, Decide, KeepBacklog, KeepOutbox, Lengthen, Look,
        RequestChanges, Retry, Revise, Say, Shorten, Verify,
    };
    match ingress {
        Ingress::Message
        | Ingress::Reply
        | Ingress::Thread
        | Ingress::DirectMessage
        | Ingress::Webhook => &[Ask, Say, Look, Cancel, Retry, ControlSprint],
        Ingress::Edit | Ingress::Delete => &[Revise],
        Ingress::Reaction => &[],
        Ingress::Select => &[Answer, Lengthen, Shorten],
        Ingress::Autocomplete => &[Look],
        Ingress::Button => {
            &[Answer, Cancel, Retry, Decide, Lengthen, Verify, ControlSprint, KeepBacklog]
        }
        Ingress::Modal => {
            &[Say, Cancel, Retry, ControlSprint, Decide, Verify, RequestChanges, KeepBacklog]
        }
        Ingress::Slash | Ingress::Operator => &[
            Ask,
            Say,
            Look,
            Cancel,
            Retry,
            Lengthen,
            Shorten,
            Decide,
            Answer,
            Verify,
            RequestChanges,
            ControlSprint,
            KeepBacklog,
            KeepOutbox,
        ],
        Ingress::AgentTool => &[KeepBacklog],
    }
}

/// The right that an action takes; what one asked for oneself takes less.
const fn right_for(action: Action, own: bool) -> Right {
    match action {
        Action::Ask | Action::Say | Action::Answer | Action::Revise | Action::Look => Right::Ask,
        Action::Cancel | Action::Retry | Action::Lengthen | Action::RequestChanges if own => {
            Right::Ask
        }
        Action::Cancel | Action::Retry => Right::Administer,
        Action::Lengthen
        | Action::Shorten
        | Action::Decide
        | Action::RequestChanges
        | Action::Verify
        | Action::ControlSprint
        | Action::KeepBacklog
        | Action::KeepOutbox => Right::Approve,
    }
}

/// Whether somebody holds any right at all. Who holds none is told nothing but that: not which requests there
/// are, and not what waits for a person.
#[must_use]
pub fn is_known(policy: &Policy, actor: &Actor) -> bool {
    match actor {
        Actor::Person { author, guild_id, .. } => {
            person(policy, author, *guild_id, Right::Ask).is_ok()
        }
        // They are judged by what they do.
        Actor::Operator | Actor::Deleter | Actor::Agent { .. } => true,
    }
}

/// The words for somebody who may not: who may ask for work lacks a right, and others are not known here.
#[must_use]
pub fn denied(policy: &Policy, actor: &Actor) -> &'static str {
    if is_known(policy, actor) { "needs_right" } else { "not_allowed" }
}

fn person(
    policy: &Policy,
    author: &Author,
    guild: Option<GuildId>,
    right: Right,
) -> Result<(), Denied> {
    if policy.own_ids.contains(&author.id) {
        return Err(Denied::OwnVoice);
    }
    if guild.is_some_and(|guild| !policy.guilds.contains(&guild)) {
        return Err(Denied::ForeignGuild);
    }
    if author.is_bot && !policy.trusted_bots.contains(&author.id) {
        return Err(Denied::UntrustedBot);
    }
    let has = |holders: &crate::domain::policy::Holders| {
        let by_role =
            |guild| author.server_roles.iter().any(|role| holders.roles.contains(&(guild, *role)));
        holders.users.contains(&author.id) || guild.is_some_and(by_role)
    };
    let holds = policy.rights.iter().any(|(held, holders)| *held >= right && has(holders));
    if holds { Ok(()) } else { Err(Denied::MissingRight(right)) }
}
