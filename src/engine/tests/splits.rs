//! A message that holds several pieces of work: whoever asked says whether they are one request.

use std::sync::Arc;

use serde_json::json;

use super::scenes::{report, work_until};
use super::world::{GENERAL, World, policy, result};
use crate::domain::block::BlockCode;
use crate::domain::event::Event;
use crate::domain::ids::{MessageId, RequestId};
use crate::domain::incoming::{Command, Message};
use crate::domain::outgoing::{Act, Button, ButtonAct, Post};
use crate::domain::request::{Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::engine::Answer;

/// A message that the orchestrator hands on as these pieces.
fn handed_on(parts: &[&str]) -> (World, RequestId) {
    let mut world = World::new(policy());
    let id = world.message("say goodbye, and write a changelog");
    let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
    let said = json!({ "request_handling": {"mode": "route"}, "request_parts": parts });
    report(&mut world, &todo, RunOutcome::Result(Arc::new(result(Role::Orchestrator, said))));
    (world, id)
}

fn press(world: &World, id: &RequestId, act: ButtonAct) -> Command {
    let parts = world.state.requests.get(id).map(|it| it.params.parts_version());
    let button = Button { act, subject: id.to_string(), version: parts.unwrap_or_default() };
    Command::Press { button, message_id: MessageId(1), channel_id: GENERAL }
}

fn code(world: &World, id: &RequestId) -> Option<BlockCode> {
    world.request(id).blocked.map(|it| it.code)
}

const TWO: [&str; 2] = ["say goodbye", "write a changelog"];

#[test]
fn each_piece_is_a_request_where_somebody_says_so() {
    let (mut world, id) = handed_on(&TWO);
    assert_eq!(code(&world, &id), Some(BlockCode::Parts));
    assert!(world.state.envelopes.is_empty(), "nobody works before");
    {
        let command = press(&world, &id, ButtonAct::Split);
        world.command(command)
    };
    let all: Vec<Request> = world.state.requests.values().map(|it| Request::clone(it)).collect();
    let words: Vec<&str> = all.iter().map(|it| it.body.as_str()).collect();
    assert_eq!(all.len(), 2, "{words:?}");
    assert_eq!(world.request(&id).body, "say goodbye");
    let other = all.iter().find(|it| it.request_id != id).expect("another one");
    assert_eq!(other.body, "write a changelog");
    assert!(
        other.conversation.room.is_some() && other.conversation.reply_route.message_id.is_none()
    );
    let hangs = world.state.outgoing.values().any(
        |it| matches!(&it.act, Act::Post(Post { room_of: Some(room), .. }) if *room == other.request_id),
    );
    assert!(hangs, "it has a room of its own");
    let twice = {
        let command = press(&world, &id, ButtonAct::Split);
        world.command(command)
    };
    assert!(matches!(twice, Answer::Refused(_)), "{twice:?}");
    world.finish_well();
    for request in &all {
        assert_eq!(world.request(&request.request_id).status, RequestStatus::Committed);
    }
    assert_eq!(world.landed(), 2);
}

#[test]
fn together_they_are_one_and_nobody_is_asked_twice() {
    for by_retry in [false, true] {
        let (mut world, id) = handed_on(&TWO);
        if by_retry {
            world.command(Command::Retry { request_id: id.clone() });
            let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
            let said = json!({ "request_handling": {"mode": "route"}, "request_parts": TWO });
            let said = result(Role::Orchestrator, said);
            report(&mut world, &todo, RunOutcome::Result(Arc::new(said)));
        } else {
            {
                let command = press(&world, &id, ButtonAct::Together);
                world.command(command)
            };
        }
        assert_eq!(code(&world, &id), None);
        world.finish_well();
        assert_eq!(world.request(&id).status, RequestStatus::Committed);
        assert_eq!(
            (world.landed(), world.request(&id).body.as_str()),
            (1, "say goodbye, and write a changelog")
        );
    }
}

#[test]
fn one_piece_is_asked_about_by_nobody() {
    for parts in
        [&["say goodbye"][..], &["say goodbye", " Say goodbye "], &["", "say goodbye"], &[]]
    {
        let (mut world, id) = handed_on(parts);
        assert_eq!(code(&world, &id), None, "{parts:?}");
        world.finish_well();
        assert_eq!(world.request(&id).status, RequestStatus::Committed);
    }
}

#[test]
fn what_waits_for_that_answer_can_be_withdrawn() {
    let (mut world, id) = handed_on(&TWO);
    world.restart();
    world.command(Command::Cancel { request_id: id.clone() });
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    let late = {
        let command = press(&world, &id, ButtonAct::Together);
        world.command(command)
    };
    assert!(matches!(late, Answer::Refused(_)), "{late:?}");
}

#[test]
fn a_message_that_was_split_is_changed_in_the_rooms_of_its_requests() {
    let mut world = World::new(policy());
    let words =
        world.words(GENERAL, 900, "say goodbye, and write a changelog\n(manual) it is calm");
    world.submit(Event::Message(words.clone()));
    let id = world.state.requests.values().next().expect("one").request_id.clone();
    let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
    let said = json!({ "request_handling": {"mode": "route"}, "request_parts": TWO });
    report(&mut world, &todo, RunOutcome::Result(Arc::new(result(Role::Orchestrator, said))));
    {
        let command = press(&world, &id, ButtonAct::Split);
        world.command(command)
    };
    assert!(world.request(&id).work.persons_criteria.is_empty(), "that line is in neither piece");
    // Discord tells of it again as it shows a link.
    world.submit(Event::MessageEdited(words.clone()));
    assert_eq!(world.request(&id).body, "say goodbye");
    let other = "say farewell, and write a changelog".to_owned();
    world.submit(Event::MessageEdited(Message { content: other, ..words }));
    assert_eq!(world.request(&id).body, "say goodbye");
    assert!(world.said.contains(&"edited_after_split".to_owned()), "{:?}", world.said);
}

#[test]
fn words_to_one_that_was_split_are_changed_for_each_of_its_parts() {
    let mut world = World::new(policy());
    let id = world.message("say goodbye, and write a changelog");
    world.deliver();
    let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
    let room = world.request(&id).conversation.place().expect("a room");
    let words = world.words(room, 901, "use red");
    world.submit(Event::Message(words.clone()));
    let said = json!({ "request_handling": {"mode": "route"}, "request_parts": TWO });
    report(&mut world, &todo, RunOutcome::Result(Arc::new(result(Role::Orchestrator, said))));
    let command = press(&world, &id, ButtonAct::Split);
    world.command(command);
    let all = |world: &World| -> Vec<Vec<String>> {
        let of = |it: &Arc<Request>| it.params.followups.iter().map(|it| it.body.clone()).collect();
        world.state.requests.values().map(of).collect()
    };
    assert_eq!(all(&world), [["use red"], ["use red"]]);
    let blue = Message { content: "use blue".to_owned(), ..words.clone() };
    assert_eq!(world.submit(Event::MessageEdited(blue)), Answer::Accepted);
    assert_eq!(all(&world), [["use blue"], ["use blue"]]);
    let (channel_id, message_id) = (words.channel_id, words.message_id);
    world.submit(Event::MessageDeleted { channel_id, message_id });
    assert_eq!(all(&world), [[""; 0], [""; 0]]);
}

#[test]
fn words_instead_of_a_button_may_be_read_as_several_pieces_again() {
    let (mut world, id) = handed_on(&TWO);
    world.deliver();
    let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
    let words = world.words(room.expect("a room"), 901, "two requests, please");
    world.submit(Event::Message(words));
    let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
    let said = json!({ "request_handling": {"mode": "route"}, "request_parts": TWO });
    report(&mut world, &todo, RunOutcome::Result(Arc::new(result(Role::Orchestrator, said))));
    assert_eq!(code(&world, &id), Some(BlockCode::Parts));
}
