//! The gate: every way in, what it can carry, and that nobody without a right changes anything by any of them.

use std::collections::BTreeSet;

use super::world::{GENERAL, GUILD, OWNER, World, policy};
use crate::domain::actor::{Actor, Author};
use crate::domain::change::Change;
use crate::domain::event::Event;
use crate::domain::ids::{
    CallId, ChannelId, GuildId, MessageId, RequestId, RunId, ServerRoleId, UserId,
};
use crate::domain::incoming::{Command, Message};
use crate::domain::ingress::Ingress;
use crate::domain::item::ItemSource;
use crate::domain::language::Language;
use crate::domain::outgoing::{Button, ButtonAct};
use crate::domain::policy::{Holders, Policy, Right};
use crate::domain::record::AnyRecord;
use crate::domain::request::{Followup, ReplyRoute, Request, RequestConversation};
use crate::domain::role::Role;
use crate::domain::sprint::Kickoff;
use crate::domain::time::Timestamp;
use crate::engine::Answer;
use crate::engine::authorize::{
    Act, Action, Denied, Granted, Resource, act, authorize, carried_by, note_asker,
};

const STRANGER: UserId = UserId(666);
const ROLE: ServerRoleId = ServerRoleId(77);

fn author(id: UserId, roles: &[ServerRoleId]) -> Author {
    Author { id, name: "somebody".to_owned(), is_bot: false, server_roles: roles.to_vec() }
}

fn person(id: UserId, via: Ingress) -> Actor {
    Actor::Person { author: author(id, &[]), guild_id: Some(GUILD), via }
}

/// An agent at work on a request.
fn agent(role: Role, request_id: RequestId) -> Actor {
    let run_id = RunId::parse("run-a").expect("an id");
    Actor::Agent { role, request_id, run_id, call: CallId::parse("call-a").expect("an id") }
}

#[test]
fn what_each_way_in_can_carry() {
    use Action::{
        Ask, Cancel, ControlSprint, Decide, KeepBacklog, Lengthen, Look, RequestChanges, Retry,
        Revise, Say, Shorten, Verify,
    };
    // Named by its path: the answer of the engine has the same name.
    let answer = Action::Answer;
    let words = BTreeSet::from([Ask, Say, Look, Cancel, Retry, ControlSprint]);
    for ingress in Ingress::ALL {
        let expected = match ingress {
            Ingress::Message
            | Ingress::Reply
            | Ingress::Thread
            | Ingress::DirectMessage
            | Ingress::Webhook => words.clone(),
            Ingress::Edit | Ingress::Delete => [Revise].into(),
            Ingress::Reaction => BTreeSet::new(),
            Ingress::Select => [answer, Lengthen, Shorten].into(),
            Ingress::Autocomplete => [Look].into(),
            Ingress::Button => {
                [answer, Cancel, Retry, Decide, Lengthen, Verify, ControlSprint, KeepBacklog].into()
            }
            Ingress::Modal => {
                [Say, Cancel, Retry, ControlSprint, Decide, Verify, RequestChanges, KeepBacklog]
                    .into()
            }
            Ingress::Slash | Ingress::Operator => {
                let mut all: BTreeSet<Action> = Action::ALL.iter().copied().collect();
                all.remove(&Revise);
                all
            }
            Ingress::AgentTool => [KeepBacklog].into(),
        };
        let carried: BTreeSet<Action> = carried_by(ingress).iter().copied().collect();
        assert_eq!(carried, expected, "{ingress:?}");
    }
}

/// What somebody wants, by each way in that leads to the engine. What else arrives by one way is refused
/// there as here, since the rule is the same.
fn wants(world: &World, id: UserId, ingress: Ingress, open: &RequestId) -> Option<Event> {
    let message = |channel: ChannelId, via: Ingress| Message {
        author: author(id, &[]),
        via,
        ..world.words(channel, 4_000, "please do something else")
    };
    let command = |command: Command| {
        Some(Event::Command { actor: person(id, ingress), command, interaction: None })
    };
    let press = |act: ButtonAct| Command::Press {
        button: Button { act, subject: open.to_string(), version: 1 },
        message_id: MessageId(1),
        channel_id: GENERAL,
    };
    match ingress {
        Ingress::Message | Ingress::Reply | Ingress::Webhook => {
            Some(Event::Message(message(GENERAL, ingress)))
        }
        Ingress::Thread => {
            let room = world.state.rooms.keys().next().copied().expect("a room");
            Some(Event::Message(message(room, Ingress::Message)))
        }
        Ingress::DirectMessage => {
            let direct = message(ChannelId(66), ingress);
            Some(Event::Message(Message { guild_id: None, ..direct }))
        }
        Ingress::Edit => {
            let first =
                world.state.requests[open].conversation.reply_route.message_id.expect("a message");
            let edited = message(GENERAL, Ingress::Message);
            Some(Event::MessageEdited(Message { message_id: first, ..edited }))
        }
        Ingress::Slash => command(Command::Cancel { request_id: open.clone() }),
        Ingress::Button => command(press(ButtonAct::Cancel)),
        Ingress::Select => command(press(ButtonAct::Cancel)),
        Ingress::Modal => command(Command::SprintStart {
            kickoff: Box::new(Kickoff { milestone: "theirs".to_owned(), ..Kickoff::default() }),
        }),
        Ingress::AgentTool => {
            let actor = agent(Role::Developer, open.clone());
            let payload = serde_json::json!({ "title": "mine", "scope": "mine" });
            let source = ItemSource::Planner;
            Some(Event::Command {
                actor,
                command: Command::BacklogMerge { payload, source },
                interaction: None,
            })
        }
        // Whoever deletes is not told by Discord; nobody holds less than the operator; reactions and what
        // is typed into options change nothing by themselves.
        Ingress::Delete | Ingress::Operator | Ingress::Reaction | Ingress::Autocomplete => None,
    }
}

#[test]
fn nobody_without_a_right_changes_anything_by_any_way_in() {
    for ingress in Ingress::ALL {
        let mut world = World::new(policy());
        let open = world.message("do it");
        world.deliver();
        let Some(event) = wants(&world, STRANGER, ingress, &open) else { continue };
        let before = world.log.len();
        world.submit(event);
        for change in &world.log[before..] {
            let harmless =
                matches!(change, Change::Save(AnyRecord::Outgoing(_)) | Change::Channel(_));
            assert!(harmless, "{ingress:?} changed {change:?}");
        }
    }
}

#[test]
fn whoever_has_the_right_is_heard_by_every_way_in_that_carries_it() {
    for ingress in Ingress::ALL {
        let mut world = World::new(policy());
        let open = world.message("do it");
        world.deliver();
        if ingress == Ingress::Webhook {
            world.policy.trusted_bots.insert(OWNER);
        }
        let Some(event) = wants(&world, OWNER, ingress, &open) else { continue };
        let before = world.log.len();
        world.submit(event);
        let heard = world.log[before..].iter().any(|change| {
            matches!(
                change,
                Change::Save(AnyRecord::Request(_)) | Change::Save(AnyRecord::Sprint(_))
            )
        });
        let refused = matches!(ingress, Ingress::Select | Ingress::AgentTool);
        assert_eq!(heard, !refused, "{ingress:?}");
    }
}

fn may<A: Act>(policy: &Policy, actor: &Actor) -> Result<(), Denied> {
    authorize(policy, actor, Resource::Team).map(|_: Granted<A>| ())
}

/// A server role gives its right in its own server, and nowhere else.
#[test]
fn a_server_role_counts_only_in_its_server() {
    let mut policy = policy();
    policy.guilds.insert(GuildId(2));
    let holders = Holders { roles: [(GUILD, ROLE)].into(), ..Holders::default() };
    policy.rights.insert(Right::Approve, holders);
    let member = |guild_id: Option<GuildId>| Actor::Person {
        author: author(STRANGER, &[ROLE]),
        guild_id,
        via: if guild_id.is_some() { Ingress::Slash } else { Ingress::DirectMessage },
    };
    assert_eq!(may::<act::ControlSprint>(&policy, &member(Some(GUILD))), Ok(()));
    let missing = |right| Err(Denied::MissingRight(right));
    assert_eq!(may::<act::Ask>(&policy, &member(Some(GuildId(2)))), missing(Right::Ask));
    assert_eq!(may::<act::Ask>(&policy, &member(None)), missing(Right::Ask));
    assert_eq!(may::<act::Ask>(&policy, &member(Some(GuildId(3)))), Err(Denied::ForeignGuild));
}

#[test]
fn deciding_takes_a_button_its_form_a_command_or_the_operator() {
    let policy = policy();
    for ingress in Ingress::ALL {
        let request_id = RequestId::parse("20260324-1a2b3c4d").expect("an id");
        let nobody = [Actor::Operator, Actor::Deleter, agent(Role::Planner, request_id)];
        let nobody = nobody.into_iter().find(|actor| actor.ingress() == ingress);
        let actor = nobody.unwrap_or_else(|| person(OWNER, ingress));
        let decides = matches!(
            ingress,
            Ingress::Button | Ingress::Modal | Ingress::Slash | Ingress::Operator
        );
        assert_eq!(may::<act::Decide>(&policy, &actor).is_ok(), decides, "{ingress:?}");
    }
}

#[test]
fn with_four_eyes_nobody_approves_what_they_asked_for_or_added_to() {
    let request = |by: UserId| Request {
        conversation: RequestConversation {
            reply_route: ReplyRoute { author_id: Some(by), ..ReplyRoute::default() },
            ..RequestConversation::default()
        },
        ..Request::default()
    };
    let decide = |policy: &Policy, request: &Request| {
        let actor = person(OWNER, Ingress::Button);
        authorize(policy, &actor, Resource::Request(request)).map(|_: Granted<act::Decide>| ())
    };
    let relaxed = policy();
    let strict = Policy { four_eyes: true, ..policy() };
    assert_eq!(decide(&relaxed, &request(OWNER)), Ok(()));
    assert_eq!(decide(&strict, &request(OWNER)), Err(Denied::OwnRequest));
    assert_eq!(decide(&strict, &request(STRANGER)), Ok(()));
    // Nor what they added to it.
    for (words, counts) in [
        ("nice work, thanks", false),
        ("did the tests run?", false),
        ("and make the button blue", true),
    ] {
        let mut asked = request(STRANGER);
        let words = Followup {
            is_others: true,
            author_id: Some(OWNER),
            ..Followup::command("Mina", words.to_owned(), Timestamp::from_millis(1))
        };
        note_asker(&mut asked, &words);
        let words = &words.body;
        let refused = if counts { Err(Denied::OwnRequest) } else { Ok(()) };
        assert_eq!(decide(&strict, &asked), refused, "{words}");
        assert_eq!(decide(&relaxed, &asked), Ok(()));
    }
}

/// A role may turn words into a sprint command: it is done with the rights of whoever wrote them, also with
/// those that they hold by a server role.
#[test]
fn a_request_keeps_the_server_roles_of_who_asked() {
    let mut world = World::new(policy());
    let holders = Holders { roles: [(GUILD, ROLE)].into(), ..Holders::default() };
    world.policy.rights.insert(Right::Approve, holders);
    let words = Message {
        author: author(STRANGER, &[ROLE]),
        created_at: Timestamp::from_millis(world.clock),
        ..world.words(GENERAL, 4_000, "begin a sprint about sign in, please")
    };
    assert_eq!(world.submit(Event::Message(words)), Answer::Accepted);
    let request = world.state.requests.values().next().expect("a request");
    let asker = request.conversation.reply_route.actor();
    assert_eq!(may::<act::ControlSprint>(&world.policy, &asker), Ok(()));
    assert_eq!(request.conversation.language, Language::En);
}
