//! What the planner asks before anything is built, and what becomes of the answers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::scenes::{report, work_until};
use super::world::{GENERAL, GUILD, OWNER, Todo, World, good, policy};
use crate::domain::actor::{Actor, Author};
use crate::domain::attachment::Attachment;
use crate::domain::block::BlockCode;
use crate::domain::change::Change;
use crate::domain::event::Event;
use crate::domain::gate::{GateKind, Stance};
use crate::domain::ids::{MessageId, RequestId, UserId};
use crate::domain::incoming::{Command, Message, RouteChange};
use crate::domain::ingress::Ingress;
use crate::domain::language::Language;
use crate::domain::modes::PlanningMode;
use crate::domain::outgoing::{Act, Button, ButtonAct, Menu, OutgoingOutcome, Post};
use crate::domain::plan_decision::NumberedAnswer;
use crate::domain::policy::{GateTable, Holders, PlanStances, Policy, Right};
use crate::domain::record::AnyRecord;
use crate::domain::request::RequestStatus;
use crate::domain::result::{Proposals, ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::routes::Lane;
use crate::domain::run::RunOutcome;
use crate::engine::Answer;
use crate::engine::lifecycle::steps;

const FEATURE: &str = "add a command that greets people in Korean";

/// A planner that has planned, and asks two things.
fn asks() -> RoleResult {
    let mut result = good(Role::Planner, Some(steps::DRAFT));
    let questions = json!({ "questions": [
        { "question": "Which form?", "options": ["polite", "casual"], "assumption": "polite" },
        { "question": "Where?", "options": ["beside it", "instead of it"], "assumption": "beside it" },
    ]});
    result.proposals.questions = Proposals::read(Some(&questions)).0.questions;
    assert_eq!(result.proposals.questions.as_ref().map(Vec::len), Some(2));
    result
}

/// A request whose planner has just asked.
fn asked(policy: Policy, words: &str) -> (World, RequestId) {
    let mut world = World::new(policy);
    let id = world.message(words);
    let todo = planning(&mut world);
    report(&mut world, &todo, RunOutcome::Result(Arc::new(asks())));
    (world, id)
}

fn planning(world: &mut World) -> Todo {
    work_until(world, |role, _| role == Role::Planner)
}

fn answers(id: &RequestId, given: &[&str], rest: bool) -> Command {
    let answers = given.iter().map(|it| it.parse::<NumberedAnswer>().expect("an answer")).collect();
    Command::AnswerQuestions { request_id: id.clone(), answers, rest, card: None }
}

fn said(answer: &Answer) -> &str {
    &answer.content().expect("words").key
}

fn decided(world: &World, id: &RequestId) -> Vec<String> {
    world.request(id).work.decisions.iter().filter_map(|it| it.line()).collect()
}

fn code(world: &World, id: &RequestId) -> Option<BlockCode> {
    world.request(id).blocked.map(|it| it.code)
}

/// The role whose turn it is.
fn has_it(world: &World) -> Role {
    world.state.envelopes.values().next().expect("somebody has it").target_role
}

#[test]
fn a_plan_that_the_answers_agree_with_stands_and_another_one_is_made_else() {
    for (given, rest, planned_again) in [
        (&["1=1", "2=1"][..], false, false),
        (&["1=you-decide"], true, false),
        (&[], true, false),
        (&["1=2"], true, true),
        (&["2=in a file of its own"], true, true),
    ] {
        let (mut world, id) = asked(policy(), FEATURE);
        assert_eq!(code(&world, &id), Some(BlockCode::Questions));
        assert!(world.state.envelopes.is_empty(), "nobody works");
        assert_eq!(said(&world.command(answers(&id, given, rest))), "questions.all_answered");
        assert_eq!(has_it(&world) == Role::Planner, planned_again, "{given:?}");
        let lines = decided(&world, &id);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines.iter().any(|it| it.ends_with("(assumed)")), rest, "{lines:?}");
        world.finish_well();
        assert_eq!(world.request(&id).status, RequestStatus::Committed, "{given:?}");
    }
}

#[test]
fn answers_come_one_by_one_and_can_be_changed_until_the_last() {
    let (mut world, id) = asked(policy(), FEATURE);
    let left = world.command(answers(&id, &["2=2"], false));
    assert_eq!(said(&left), "questions.left");
    assert_eq!(left.content().expect("words").values["open"], json!(["D-1"]));
    world.restart();
    assert_eq!(said(&world.command(answers(&id, &["2=1"], false))), "questions.left");
    for (wrong, key) in [
        ("3=1", "questions.unknown"),
        ("0=1", "questions.unknown"),
        ("1=3", "questions.no_option"),
        ("1=0", "questions.no_option"),
    ] {
        // Nothing of a command with a fault counts.
        let refused = world.command(answers(&id, &["2=2", wrong], true));
        assert_eq!(said(&refused), key, "{wrong}");
    }
    let long = format!("1={}", "x".repeat(301));
    assert_eq!(said(&world.command(answers(&id, &[&long], false))), "too_long");
    world.command(answers(&id, &["1=1"], false));
    assert_eq!(
        decided(&world, &id),
        ["Which form? polite (decided by operator)", "Where? beside it (decided by operator)"]
    );
    assert_eq!(said(&world.command(answers(&id, &["1=2"], false))), "questions.closed");
}

#[test]
fn words_in_the_room_answer_what_is_open_and_the_planner_reads_them() {
    let (mut world, id) = asked(policy(), FEATURE);
    world.command(answers(&id, &["1=2"], false));
    world.command(Command::Steer { request_id: id.clone(), text: "ask  the\ndesigner".to_owned() });
    assert_eq!(
        decided(&world, &id),
        [
            "Which form? casual (decided by operator)",
            "Where? ask the designer (decided by operator)"
        ]
    );
    assert_eq!(has_it(&world), Role::Planner);
    // What the planner asks again is assumed, and said.
    let todo = planning(&mut world);
    let mut again = asks();
    let more = json!({ "questions": [
        { "question": "Which form?", "options": ["polite", "casual"], "assumption": "casual" },
        { "question": "How loud?", "options": ["loud", "quiet"], "assumption": "quiet" },
    ]});
    again.proposals.questions = Proposals::read(Some(&more)).0.questions;
    report(&mut world, &todo, RunOutcome::Result(Arc::new(again)));
    assert_eq!(code(&world, &id), None);
    assert_eq!(decided(&world, &id)[2..], ["How loud? quiet (assumed)"]);
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn who_asks_once_more_or_asks_back_has_decided_nothing() {
    let (mut world, id) = asked(policy(), FEATURE);
    world.deliver();
    let again = world.words(GENERAL, 6_000, FEATURE);
    world.submit(Event::Message(again));
    assert!(world.said.contains(&"reused_asked".to_owned()), "{:?}", world.said);
    assert_eq!(code(&world, &id), Some(BlockCode::Questions));
    let back = in_room(&world, &id, "What would casual mean for the users that we have?");
    world.submit(Event::Message(back));
    assert!(decided(&world, &id).is_empty(), "{:?}", decided(&world, &id));
    // The planner has read it, and may ask anew.
    let todo = planning(&mut world);
    report(&mut world, &todo, RunOutcome::Result(Arc::new(asks())));
    assert_eq!(code(&world, &id), Some(BlockCode::Questions));
    world.submit(Event::Message(Message {
        message_id: MessageId(6_001),
        ..in_room(&world, &id, "casual")
    }));
    assert_eq!(decided(&world, &id)[0], "Which form? casual (decided by owner)");
}

#[test]
fn who_asks_back_about_one_of_them_has_decided_nothing_about_it() {
    let (mut world, id) = asked(policy(), FEATURE);
    world.deliver();
    assert_eq!(said(&world.command(answers(&id, &["1=2"], false))), "questions.left");
    world.submit(Event::Message(in_room(&world, &id, "What does beside it mean for our users?")));
    assert_eq!(decided(&world, &id), ["Which form? casual (decided by operator)"]);
    // The planner has read it, and asks the other one again.
    let todo = planning(&mut world);
    report(&mut world, &todo, RunOutcome::Result(Arc::new(asks())));
    assert_eq!(code(&world, &id), Some(BlockCode::Questions));
    assert_eq!(world.request(&id).work.decisions.len(), 2);
    // The card shows what is open, under its number.
    let card = world.log.iter().rev().find_map(|change| {
        let Change::Save(AnyRecord::Outgoing(it)) = change else { return None };
        let Act::Post(post) = &it.act else { return None };
        (post.content.key == "questions.card").then(|| post.clone())
    });
    let card = card.expect("a card");
    let subjects: Vec<String> = card
        .menus
        .iter()
        .filter_map(|it| match it {
            Menu::Choice(menu) => Some(menu.subject.clone()),
            Menu::Lane(_) => None,
        })
        .collect();
    assert_eq!(subjects, [format!("{id}.2")]);
    assert_eq!(said(&world.command(answers(&id, &["2=2"], false))), "questions.all_answered");
    // What it asks then is assumed.
    let todo = planning(&mut world);
    let mut more = asks();
    let third = json!({ "questions": [
        { "question": "How loud?", "options": ["soft", "loud"], "assumption": "soft" },
    ]});
    more.proposals.questions = Proposals::read(Some(&third)).0.questions;
    report(&mut world, &todo, RunOutcome::Result(Arc::new(more)));
    assert_eq!(code(&world, &id), None);
    assert_eq!(decided(&world, &id)[2], "How loud? soft (assumed)");
}

#[test]
fn who_answers_later_has_not_answered() {
    for words in [
        "I'll answer tomorrow",
        "I’ll get back to you",
        "let me think",
        "later",
        "thanks!",
        "내일 답할게요",
        "생각해 볼게요",
        "잠시만요",
        "I'll let you know tomorrow",
        "ok, I'll decide tomorrow",
        "나중에 답변 드릴게요",
        "내일 확인할게요, 감사합니다",
    ] {
        let (mut world, id) = asked(policy(), FEATURE);
        world.deliver();
        world.submit(Event::Message(in_room(&world, &id, words)));
        assert_eq!(code(&world, &id), Some(BlockCode::Questions), "{words}");
        assert!(decided(&world, &id).is_empty(), "{words}");
    }
    // What promises nothing but a choice is one, and so is what an option says.
    for words in [
        "I'll take the first one",
        "첫 번째로 할게요",
        "내일 배포하는 걸로 할게요",
        "tomorrow",
        "casual, later both",
        "We'll respond with a 404",
        "I'll check both of them at login and log out who fails",
    ] {
        let (mut world, id) = asked(policy(), FEATURE);
        world.deliver();
        world.submit(Event::Message(in_room(&world, &id, words)));
        assert_eq!(decided(&world, &id).len(), 2, "{words}");
    }
    // The same message may answer after all.
    let (mut world, id) = asked(policy(), FEATURE);
    world.deliver();
    let words = in_room(&world, &id, "I'll get back to you");
    let words = Message { message_id: MessageId(u64::MAX / 2), ..words };
    world.submit(Event::Message(words.clone()));
    world.submit(Event::MessageEdited(Message { content: "casual".to_owned(), ..words }));
    assert_eq!(decided(&world, &id)[0], "Which form? casual (decided by owner)");
}

#[test]
fn an_answer_that_is_taken_back_voids_the_plan_that_was_made_by_it() {
    let gates = GateTable { plan: PlanStances::All(Stance::Ask), ..GateTable::default() };
    let (mut world, id) = asked(Policy { gates, ..policy() }, FEATURE);
    world.deliver();
    let words = Message { message_id: MessageId(6_002), ..in_room(&world, &id, "casual") };
    let channel_id = words.channel_id;
    world.submit(Event::Message(words));
    world.finish_well();
    assert!(!world.state.gates.is_empty(), "its plan waits");
    world.submit(Event::MessageDeleted { channel_id, message_id: MessageId(6_002) });
    assert_eq!(decided(&world, &id)[0], "Which form? polite (assumed)");
    assert!(world.state.gates.is_empty());
    assert_eq!(has_it(&world), Role::Planner);
}

#[test]
fn people_are_asked_about_features_only_and_nowhere_where_assumptions_are_enough() {
    let assumes = Policy { planning: PlanningMode::Assume, ..policy() };
    for (policy, words) in [(assumes, FEATURE), (policy(), "fix the typo in the greeting")] {
        let (mut world, id) = asked(policy, words);
        assert_eq!(code(&world, &id), None, "{words}");
        assert_eq!(
            decided(&world, &id),
            ["Which form? polite (assumed)", "Where? beside it (assumed)"]
        );
        assert_eq!(world.said.iter().filter(|key| *key == "questions.decided").count(), 1);
        world.finish_well();
        assert_eq!(world.request(&id).status, RequestStatus::Committed);
    }
}

#[test]
fn trying_again_leaves_the_rest_to_the_planner_and_withdrawing_ends_it() {
    let (mut world, id) = asked(policy(), FEATURE);
    world.command(Command::Retry { request_id: id.clone() });
    assert!(decided(&world, &id).iter().all(|it| it.ends_with("(assumed)")));
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);

    let (mut world, id) = asked(policy(), FEATURE);
    world.command(Command::Cancel { request_id: id.clone() });
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    assert_eq!(said(&world.command(answers(&id, &["1=1"], true))), "questions.closed");
}

/// The card has a list for each question, and what is chosen there is taken from whoever may write to the team.
#[test]
fn the_card_is_answered_by_whoever_may_ask_and_closed_with_the_last_answer() {
    let (mut world, id) = asked(policy(), FEATURE);
    let menus = world.state.outgoing.values().find_map(|it| {
        let Act::Post(Post { menus, buttons, .. }) = &it.act else { return None };
        (!menus.is_empty()).then(|| (menus.clone(), buttons.clone()))
    });
    let (menus, buttons) = menus.expect("a card");
    assert_eq!(
        menus
            .iter()
            .map(|it| match it {
                Menu::Choice(choice) => choice.subject.clone(),
                Menu::Lane(lanes) => panic!("{lanes:?}"),
            })
            .collect::<Vec<_>>(),
        [format!("{id}.1"), format!("{id}.2")]
    );
    assert_eq!(
        buttons.iter().map(|it| it.act).collect::<Vec<_>>(),
        [ButtonAct::YouDecide, ButtonAct::Cancel]
    );
    world.deliver();
    let card = world.request(&id).work.questions_card.expect("it is posted");
    let by = |user: UserId, via, command| {
        let author =
            Author { id: user, name: "mina".to_owned(), is_bot: false, server_roles: Vec::new() };
        Event::Command {
            actor: Actor::Person { author, guild_id: Some(GUILD), via },
            command,
            interaction: None,
        }
    };
    let chosen = |given: &str| Command::AnswerQuestions {
        request_id: id.clone(),
        answers: vec![given.parse().expect("an answer")],
        rest: false,
        card: Some(card),
    };
    let stranger = world.submit(by(UserId(666), Ingress::Select, chosen("1=2")));
    assert_eq!(said(&stranger), "not_allowed");
    assert_eq!(world.submit(by(OWNER, Ingress::Select, chosen("1=2"))), Answer::Accepted);
    let button = Button { act: ButtonAct::YouDecide, subject: id.to_string(), version: 0 };
    let press = Command::Press { button, message_id: card.1, channel_id: card.0 };
    assert_eq!(world.submit(by(OWNER, Ingress::Button, press)), Answer::Accepted);
    assert_eq!(
        decided(&world, &id),
        ["Which form? casual (decided by mina)", "Where? beside it (assumed)"]
    );
    let bare = world
        .state
        .outgoing
        .values()
        .any(|it| matches!(&it.act, Act::Unbutton { message_id } if *message_id == card.1));
    assert!(bare && world.request(&id).work.questions_card.is_none());
}

#[test]
fn you_decide_is_about_the_questions_of_now_wherever_it_is_pressed() {
    let (mut world, id) = asked(policy(), FEATURE);
    world.deliver();
    let status = world.request(&id).conversation.room.and_then(|room| room.card_id);
    let button = Button { act: ButtonAct::YouDecide, subject: id.to_string(), version: 0 };
    let mut press = |message_id| {
        let button = button.clone();
        world.command(Command::Press { button, message_id, channel_id: GENERAL })
    };
    assert_eq!(said(&press(MessageId(1))), "gate.stale", "a card of earlier questions");
    assert_eq!(press(status.expect("a status card")), Answer::Accepted);
    assert_eq!(decided(&world, &id).len(), 2);
}

#[test]
fn a_plan_that_is_to_be_approved_is_asked_about_after_its_questions() {
    let gates = GateTable { plan: PlanStances::All(Stance::Ask), ..GateTable::default() };
    let (mut world, id) = asked(Policy { gates, ..policy() }, FEATURE);
    assert!(world.state.gates.is_empty());
    world.command(answers(&id, &[], true));
    // The architect reads it first.
    world.finish_well();
    let gate = world.state.gates.values().next().expect("a gate").clone();
    assert_eq!(gate.kind, GateKind::Plan);
    assert!(world.request(&id).blocked.is_none() && world.state.envelopes.is_empty());
    let shown: Option<Value> = world.state.outgoing.values().find_map(|it| {
        let Act::Post(Post { gate_id: Some(_), content, .. }) = &it.act else { return None };
        content.values.get("decisions").cloned()
    });
    assert_eq!(shown.expect("a card")[0]["answer"], "polite");
}

/// What somebody writes in the room of a request.
fn in_room(world: &World, id: &RequestId, text: &str) -> Message {
    let room = world.request(id).conversation.room.and_then(|room| room.thread_id);
    world.words(room.expect("a room"), 5_000, text)
}

#[test]
fn where_a_request_gets_no_room_its_card_is_answered_by_a_reply_to_it() {
    for (is_reply, is_author) in [(true, false), (false, true), (false, false)] {
        let mut own = policy();
        let asks = Holders { users: [UserId(77)].into(), ..Holders::default() };
        own.rights.insert(Right::Ask, asks);
        let (mut world, id) = asked(own, FEATURE);
        let mut card = None;
        // Threads do not nest.
        while let Some(outgoing) = world.state.outgoing.values().next().cloned() {
            let message_ids = vec![MessageId(world.state.outgoing.len() as u64 + 600)];
            let outcome = match &outgoing.act {
                Act::Post(Post { menus, content, .. }) if !menus.is_empty() => {
                    assert_eq!(
                        (&content.values["has_room"], &content.values["by_reply"]),
                        (&json!(false), &json!(true))
                    );
                    card = message_ids.last().copied();
                    OutgoingOutcome::Posted { channel_id: GENERAL, message_ids }
                }
                Act::Post(_) | Act::Card { .. } => {
                    OutgoingOutcome::Posted { channel_id: GENERAL, message_ids }
                }
                Act::Board { .. }
                | Act::Pin { .. }
                | Act::OpenRoom { .. }
                | Act::React { .. }
                | Act::Unbutton { .. }
                | Act::Envelope { .. } => OutgoingOutcome::Done,
            };
            let outgoing_id = outgoing.outgoing_id.clone();
            world.submit(Event::OutgoingFinished { outgoing_id, outcome });
        }
        let card = card.expect("a card");
        assert!(world.request(&id).conversation.thread().is_none());
        if !is_reply && is_author {
            // What reads as another piece of work is one.
            let other = world.words(GENERAL, 4_000, "fix the footer, it is cut off");
            world.submit(Event::Message(other));
            assert_eq!((decided(&world, &id).len(), world.state.requests.len()), (0, 2));
        }
        let words = world.words(GENERAL, 5_000, "casual");
        let author = match is_author {
            true => words.author.clone(),
            false => Author { id: UserId(77), ..words.author.clone() },
        };
        let reply_to = is_reply.then_some(card);
        world.submit(Event::Message(Message { reply_to, author, ..words }));
        if !is_reply && !is_author {
            // Somebody else's words are none to it unless they answer it.
            assert_eq!((decided(&world, &id).len(), world.state.requests.len()), (0, 2));
            continue;
        }
        assert_eq!(decided(&world, &id).len(), 2, "{is_reply}");
        assert_eq!(world.state.requests.len(), if is_author { 2 } else { 1 });
        world.finish_well();
        assert_eq!(world.request(&id).status, RequestStatus::Committed);
    }
}

#[test]
fn a_file_alone_answers_nothing_and_other_words_of_an_answer_take_its_place() {
    let (mut world, id) = asked(policy(), FEATURE);
    world.deliver();
    let file =
        Attachment { filename: "a.png".to_owned(), size: 1, saved: Some("a.png".to_owned()) };
    let alone = Message { attachments: vec![file], ..in_room(&world, &id, "") };
    world.submit(Event::Message(alone));
    assert_eq!((code(&world, &id), decided(&world, &id).len()), (Some(BlockCode::Questions), 0));

    let words = Message { message_id: MessageId(77_001), ..in_room(&world, &id, "casual") };
    world.submit(Event::Message(words.clone()));
    assert_eq!(decided(&world, &id)[0], "Which form? casual (decided by owner)");
    world.submit(Event::MessageEdited(Message { content: "very casual".to_owned(), ..words }));
    assert_eq!(decided(&world, &id)[0], "Which form? very casual (decided by owner)");
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn a_request_that_is_asked_anew_while_people_are_asked_keeps_the_numbers_of_what_was_answered() {
    for is_answered in [false, true] {
        let mut world = World::new(policy());
        let words = world.words(GENERAL, 900, FEATURE);
        world.submit(Event::Message(words.clone()));
        let id = world.state.requests.keys().next().cloned().expect("a request");
        let todo = planning(&mut world);
        report(&mut world, &todo, RunOutcome::Result(Arc::new(asks())));
        if is_answered {
            world.command(answers(&id, &["2=2"], false));
        }
        let content = "add a command that greets people in Japanese".to_owned();
        world.submit(Event::MessageEdited(Message { content, ..words }));
        assert_eq!(code(&world, &id), None, "the planner has it");
        let expected: &[&str] = match is_answered {
            true => &["Which form? polite (assumed)", "Where? instead of it (decided by operator)"],
            false => &[],
        };
        assert_eq!(decided(&world, &id), expected);
        let todo = planning(&mut world);
        report(&mut world, &todo, RunOutcome::Result(Arc::new(asks())));
        let again = (!is_answered).then_some(BlockCode::Questions);
        assert_eq!(code(&world, &id), again, "asked again where nobody had answered");
    }
}

#[test]
fn a_card_that_asks_nothing_any_more_keeps_no_buttons_whenever_it_comes() {
    let bare = |world: &World, message: MessageId| {
        let mut all = world.state.outgoing.values();
        all.any(|it| matches!(&it.act, Act::Unbutton { message_id } if *message_id == message))
    };
    // Withdrawn, and answered by nothing but an answer.
    for change in [true, false] {
        let (mut world, id) = asked(policy(), FEATURE);
        world.deliver();
        let card = world.request(&id).work.questions_card.expect("a card");
        let request_id = id.clone();
        world.command(match change {
            true => Command::Cancel { request_id },
            false => Command::Route { request_id, change: RouteChange::Lane(Lane::Answer) },
        });
        assert!(bare(&world, card.1), "{change}");
        assert!(decided(&world, &id).is_empty());
    }
    // It was slow, and is about questions that were answered in the terminal.
    let (mut world, id) = asked(policy(), FEATURE);
    let slow = world
        .state
        .outgoing
        .values()
        .find(|it| matches!(&it.act, Act::Post(Post { menus, .. }) if !menus.is_empty()));
    let slow = slow.expect("a card").outgoing_id.clone();
    world.command(answers(&id, &[], true));
    let posted = OutgoingOutcome::Posted { channel_id: GENERAL, message_ids: vec![MessageId(77)] };
    world.submit(Event::OutgoingFinished { outgoing_id: slow, outcome: posted });
    assert!(bare(&world, MessageId(77)) && world.request(&id).work.questions_card.is_none());

    // An older card says nothing about the questions of a newer one.
    let (mut world, id) = asked(policy(), FEATURE);
    world.deliver();
    let Command::AnswerQuestions { request_id, answers, rest, .. } = answers(&id, &["1=2"], false)
    else {
        panic!("not an answer")
    };
    let card = Some((GENERAL, MessageId(1)));
    let stale = world.command(Command::AnswerQuestions { request_id, answers, rest, card });
    assert_eq!(said(&stale), "gate.stale");
}

#[test]
fn whoever_names_the_lane_of_a_feature_is_asked_as_well() {
    let mut world = World::new(policy());
    let (text, lane) = (FEATURE.to_owned(), Some(Lane::Full));
    world.command(Command::Ask {
        text,
        channel_id: None,
        parent_id: None,
        language: Language::En,
        lane,
    });
    let id = world.state.requests.keys().next().cloned().expect("a request");
    let todo = planning(&mut world);
    report(&mut world, &todo, RunOutcome::Result(Arc::new(asks())));
    assert_eq!(code(&world, &id), Some(BlockCode::Questions));
    let has_room = world.state.outgoing.values().find_map(|it| {
        let Act::Post(Post { menus, content, .. }) = &it.act else { return None };
        (!menus.is_empty()).then(|| content.values["has_room"].clone())
    });
    assert_eq!(has_room, Some(json!(false)), "words would not be heard where there is no room");
}

#[test]
fn other_words_of_an_answer_void_the_plan_that_was_made_by_the_earlier_ones() {
    let gates = GateTable { plan: PlanStances::All(Stance::Ask), ..GateTable::default() };
    let (mut world, id) = asked(Policy { gates, ..policy() }, FEATURE);
    world.deliver();
    let words = Message { message_id: MessageId(77_001), ..in_room(&world, &id, "casual") };
    world.submit(Event::Message(words.clone()));
    world.finish_well();
    let gate = world.request(&id).work.gate_id.expect("a gate");
    world.submit(Event::MessageEdited(Message { content: "very casual".to_owned(), ..words }));
    assert_eq!((world.request(&id).work.gate_id, has_it(&world)), (None, Role::Planner));
    world.finish_well();
    let again = world.request(&id).work.gate_id.expect("another gate");
    assert_ne!(again, gate);
    // A plan that was turned down waits for words, and other words of an answer are some.
    let gate = world.state.gates[&again].clone();
    world.command(super::world::press(&gate, ButtonAct::Reject));
    assert_eq!(code(&world, &id), Some(BlockCode::PlanRejected));
    let others = Message { message_id: MessageId(77_001), ..in_room(&world, &id, "quite casual") };
    world.submit(Event::MessageEdited(others));
    assert_eq!((code(&world, &id), has_it(&world)), (None, Role::Planner));
    world.finish_well();
    assert_eq!(decided(&world, &id)[0], "Which form? quite casual (decided by owner)");
}

#[test]
fn an_answer_goes_back_to_the_step_that_asked() {
    for (role, step) in [(Role::Architect, steps::GUIDANCE), (Role::Developer, steps::BUILD)] {
        let mut world = World::new(policy());
        let id = world.message("make it so");
        world.deliver();
        let todo = work_until(&mut world, |_, at| at == Some(step));
        let mut asks = good(role, Some(step));
        asks.status = ResultStatus::Blocked;
        "which of the two?".clone_into(&mut asks.summary);
        report(&mut world, &todo, RunOutcome::Result(Arc::new(asks)));
        assert_eq!(world.request(&id).blocked.expect("a reason").code, BlockCode::RoleBlocked);
        let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
        let words = world.words(room.expect("a room"), 90, "the second");
        world.submit(Event::Message(words));
        let Todo::Run(next) = work_until(&mut world, |_, _| true) else { panic!("no run") };
        let next = &world.state.envelopes[&next];
        assert_eq!((next.target_role, next.step), (role, Some(step)));
        assert_eq!(world.request(&id).params.followups[0].body, "the second");
        world.finish_well();
        assert_eq!(world.request(&id).status, RequestStatus::Committed, "{step}");
    }
}
