//! What people decide where the team has tried all that it may, and about a plan of several items.

use std::sync::Arc;

use serde_json::{Value, json};

use super::scenes::{report, work_until};
use super::sprints::{by_hand, key, kickoff, negative, play, sprint, statuses};
use super::world::{GENERAL, Todo as Next, World, good, policy, result};
use crate::domain::block::BlockCode;
use crate::domain::event::Event;
use crate::domain::gate::Stance;
use crate::domain::ids::{MessageId, RequestId, SubjectId};
use crate::domain::incoming::Command;
use crate::domain::item::{GAVE_UP, Item, ItemStatus};
use crate::domain::outgoing::{Act, Button, ButtonAct, Post};
use crate::domain::policy::{GateTable, PlanStances, Policy};
use crate::domain::request::{Request, RequestStatus};
use crate::domain::result::{ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::sprint::{SprintStatus, TodoStatus};
use crate::domain::time::Timestamp;
use crate::engine::lifecycle::steps;
use crate::engine::{Answer, why};

fn press(id: &RequestId, act: ButtonAct) -> Command {
    let button = Button { act, subject: id.to_string(), version: 0 };
    Command::Press { button, message_id: MessageId(1), channel_id: GENERAL }
}

/// A press at the card that asks about the pieces that wait now.
fn press_pieces(world: &World, id: &RequestId, act: ButtonAct) -> Command {
    let version = world.request(id).params.parts_version();
    let button = Button { act, subject: id.to_string(), version };
    Command::Press { button, message_id: MessageId(1), channel_id: GENERAL }
}

fn of(world: &World, title: &str) -> Option<Request> {
    let mut all = world.state.requests.values().filter(|it| !it.status.is_terminal());
    all.find(|it| it.scope == title).map(|it| Request::clone(it))
}

fn item(world: &World, title: &str) -> Option<Item> {
    let mut items = world.state.backlog.values().filter(|item| item.title == title);
    items.next().map(|item| Item::clone(item))
}

/// A sprint of three, of which the third depends on the first, up to where the team has tried all that it may with that.
fn at_the_end_of_first() -> (World, RequestId) {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    loop {
        let next = world.todo().first().cloned().expect("something to do");
        let first = of(&world, "first");
        if let Some(first) = first.filter(Request::has_given_up) {
            return (world, first.request_id);
        }
        if let Next::Run(id) = &next {
            let request = world.state.envelopes[id].envelope.request_id.clone();
            if world.request(&request).scope == "first" {
                world.run(id, negative(ResultStatus::Failed, "cannot"));
                continue;
            }
        }
        // What is said about it is still to be read.
        world.deliver();
        world.do_well(&next);
    }
}

fn pieces(titles: &[&str]) -> RoleResult {
    let piece = |(at, title): (usize, &&str)| {
        let before: Vec<&str> = titles[..at].iter().rev().take(1).copied().collect();
        json!({
            "title": title, "summary": "", "scope": format!("do {title}"), "kind": "feature",
            "acceptance_criteria": ["it is there"], "depends_on": before,
        })
    };
    let items: Vec<Value> = titles.iter().enumerate().map(piece).collect();
    let items = result(Role::Planner, json!({ "backlog_items": items })).proposals.backlog_items;
    let mut said = good(Role::Planner, Some(steps::DRAFT));
    said.proposals.backlog_items = items;
    said.artifacts = vec!["shared_workspace/sprints/s/spec.md".to_owned()];
    said
}

#[test]
fn where_the_team_has_tried_all_that_it_may_a_card_offers_what_people_can_do() {
    let (world, id) = at_the_end_of_first();
    let buttons = world.state.outgoing.values().find_map(|it| {
        let Act::Post(Post { buttons, content, .. }) = &it.act else { return None };
        let is_it = content.key == "blocked" && it.request_id.as_ref() == Some(&id);
        is_it.then(|| buttons.iter().map(|it| it.act).collect::<Vec<_>>())
    });
    let all = [
        ButtonAct::TryWithWords,
        ButtonAct::SplitWork,
        ButtonAct::SkipRequest,
        ButtonAct::Pause,
        ButtonAct::Cancel,
    ];
    assert_eq!(buttons, Some(all.to_vec()));
    let stands = statuses(&world).into_iter().find(|(title, _)| title == "first");
    assert_eq!(stands.map(|it| it.1), Some(TodoStatus::Blocked));
}

#[test]
fn no_sprint_takes_up_by_itself_what_the_team_could_not_do_and_words_do() {
    let (mut world, id) = at_the_end_of_first();
    play(&mut world, |_, _| None);
    let ended = sprint(&world);
    assert_eq!(ended.status, SprintStatus::Completed);
    let stands = |title: &str| {
        let todo = ended.work.todos.iter().find(|todo| todo.title == title).expect("a todo");
        (todo.progress.status, todo.progress.started_at.is_some())
    };
    assert_eq!(stands("first"), (TodoStatus::Blocked, true));
    assert_eq!(stands("second"), (TodoStatus::Committed, true));
    assert_eq!(stands("third"), (TodoStatus::Cancelled, false), "it never began");
    let first = item(&world, "first").expect("it is kept");
    assert_eq!(first.status, ItemStatus::Blocked);
    assert!(first.origin.has(GAVE_UP), "only people make it possible again");
    assert_eq!(item(&world, "third").expect("it is kept").depends_on, [first.backlog_id]);
    // At the card of what was put aside it is brought back with a word.
    let text = "use the other file".to_owned();
    let said = world.command(Command::Steer { request_id: id.clone(), text: text.clone() });
    assert_eq!(key(&said), "backlog.reopened");
    assert_eq!(item(&world, "first").expect("an item").answers, [format!("operator: {text}")]);
    world.command(kickoff());
    play(&mut world, |_, _| None);
    let next = sprint(&world);
    let again = next.work.todos.iter().find(|todo| todo.title == "first").expect("a todo");
    assert_eq!(again.progress.status, TodoStatus::Committed);
    assert_eq!(
        again.progress.retry_of_request_id,
        Some(id),
        "whoever goes on reads what came of it"
    );
    let third = next.work.todos.iter().find(|todo| todo.title == "third").expect("a todo");
    assert!(
        third.progress.status == TodoStatus::Committed
            && third.progress.started_at >= again.progress.ended_at
    );
}

#[test]
fn what_is_split_is_done_in_pieces_and_what_waited_for_it_waits_for_all_of_them() {
    let (mut world, id) = at_the_end_of_first();
    let asked = world.command(press(&id, ButtonAct::SplitWork));
    assert_eq!(key(&asked), "split.asked");
    play(&mut world, |title, role| {
        (title == "first" && role == Role::Planner)
            .then(|| RunOutcome::Result(Arc::new(pieces(&["one half", "the other half"]))))
    });
    let mut all = statuses(&world);
    all.sort();
    let expected = [
        ("first", TodoStatus::Cancelled),
        ("one half", TodoStatus::Committed),
        ("second", TodoStatus::Committed),
        ("the other half", TodoStatus::Committed),
        ("third", TodoStatus::Committed),
    ];
    assert_eq!(all, expected.map(|(title, status)| (title.to_owned(), status)));
    let todos = sprint(&world).work.todos;
    let begun = |title: &str| todos.iter().find(|it| it.title == title).expect("a todo");
    assert!(begun("the other half").progress.started_at >= begun("one half").progress.ended_at);
    assert!(begun("third").progress.started_at >= begun("the other half").progress.ended_at);
    assert!(
        begun("first").progress.summary.starts_with("split into backlog-"),
        "{:?}",
        begun("first")
    );
    assert!(world.state.backlog.is_empty());
    assert_eq!(sprint(&world).status, SprintStatus::Completed);
}

#[test]
fn what_a_person_skips_is_over_for_a_reason_and_what_depends_on_it_is_asked_about() {
    for after_the_sprint in [false, true] {
        let (mut world, id) = at_the_end_of_first();
        if after_the_sprint {
            play(&mut world, |_, _| None);
        }
        let skip =
            |reason: &str| Command::Skip { request_id: id.clone(), reason: reason.to_owned() };
        let without = world.command(skip("  "));
        assert_eq!(key(&without), "no_skip_reason");
        assert_eq!(key(&world.command(skip("not worth it"))), "final.skipped");
        play(&mut world, |_, _| None);
        assert!(item(&world, "first").is_none(), "nobody does it");
        let third = item(&world, "third").expect("an item");
        assert_eq!(third.status, ItemStatus::Blocked);
        assert!(third.blocked_reason.contains("which was dropped: first"), "{third:?}");
        let twice = world.command(skip("once more"));
        assert!(matches!(twice, Answer::Refused(_)), "{twice:?}");
        if !after_the_sprint {
            let todos = sprint(&world).work.todos;
            let first = todos.iter().find(|it| it.title == "first").expect("a todo");
            assert_eq!(first.progress.status, TodoStatus::Cancelled);
            assert_eq!(first.progress.summary, "skipped by operator: not worth it");
        }
    }
}

#[test]
fn a_sprint_that_rests_begins_nothing_more_and_goes_on_with_what_failed() {
    let (mut world, id) = at_the_end_of_first();
    assert_eq!(key(&world.command(press(&id, ButtonAct::Pause))), "paused");
    assert_eq!(world.request(&id).blocked.and_then(|it| it.paused_by).as_deref(), Some("operator"));
    play(&mut world, |_, _| None);
    let rests = sprint(&world);
    assert_eq!(rests.status, SprintStatus::Running, "it is not over");
    let third = rests.work.todos.iter().find(|it| it.title == "third").expect("a todo");
    let subject = SubjectId::parse(third.progress.todo_id.as_str()).expect("an id");
    let now = Timestamp::from_millis(world.clock);
    let said = why::about(&world.state, &world.policy, &subject, now);
    assert_eq!(said.expect("it is known").key, "why.todo_paused");
    let subject = SubjectId::parse(rests.sprint_id.as_str()).expect("an id");
    let said = why::about(&world.state, &world.policy, &subject, now).expect("it is known");
    assert_eq!(said.values["paused_by"], "operator");
    assert!(third.progress.request_id.is_none());
    assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.restarted");
    let first = of(&world, "first").expect("it is begun again");
    assert_eq!(first.params.retry_of_request_id, Some(id));
    play(&mut world, |_, _| None);
    assert!(statuses(&world).iter().all(|(_, status)| *status == TodoStatus::Committed));
    assert_eq!(sprint(&world).status, SprintStatus::Completed);
}

/// A request of a person whose planner proposes two items.
fn planned_as_two(policy: Policy) -> (World, RequestId) {
    let mut world = World::new(policy);
    let id = world.message("do this and that");
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let said = pieces(&["do this", "do that"]);
    report(&mut world, &todo, RunOutcome::Result(Arc::new(said)));
    assert_eq!(world.request(&id).blocked.map(|it| it.code), Some(BlockCode::Parts));
    (world, id)
}

#[test]
fn a_plan_of_several_items_becomes_a_sprint_where_somebody_says_so() {
    let (mut world, id) = planned_as_two(by_hand());
    assert!(world.state.envelopes.is_empty(), "nobody works before");
    let other = Button { act: ButtonAct::AsSprint, subject: id.to_string(), version: 7 };
    let (message_id, channel_id) = (MessageId(1), GENERAL);
    let stale = world.command(Command::Press { button: other, message_id, channel_id });
    assert_eq!(key(&stale), "gate.stale", "a card about other pieces");
    let command = press_pieces(&world, &id, ButtonAct::AsSprint);
    world.command(command);
    let begun = sprint(&world);
    assert_eq!(begun.milestone_title, "do this and that");
    assert_eq!(begun.kickoff.source_request_id, Some(id.clone()));
    play(&mut world, |_, _| None);
    let done = |title: &str| (title.to_owned(), TodoStatus::Committed);
    let mut all = statuses(&world);
    all.sort();
    assert_eq!(all, [done("do that"), done("do this")]);
}

#[test]
fn a_plan_of_several_items_becomes_requests_where_somebody_says_so() {
    let (mut world, id) = planned_as_two(policy());
    let command = press_pieces(&world, &id, ButtonAct::Split);
    world.command(command);
    let open = world.state.requests.values().filter(|it| !it.status.is_terminal());
    let all: Vec<Request> = open.map(|it| Request::clone(it)).collect();
    let scopes: Vec<&str> = all.iter().filter_map(|it| it.scope.lines().next()).collect();
    assert_eq!(scopes, ["do this", "do that"]);
    assert!(all.iter().all(|it| it.params.workflow.is_none() && it.work.criteria.is_empty()));
    while let Some(todo) = world.todo().first().cloned() {
        world.do_well(&todo);
    }
    assert_eq!(world.landed(), 2);
}

/// Its plan is what was proposed: nothing is planned again, and it is asked about like any other.
#[test]
fn a_plan_of_several_items_is_one_request_where_somebody_says_so_and_its_plan_is_asked_about() {
    let gates = GateTable { plan: PlanStances::All(Stance::Ask), ..policy().gates };
    for (policy, asks) in [(policy(), false), (Policy { gates, ..policy() }, true)] {
        let (mut world, id) = planned_as_two(policy);
        let command = press_pieces(&world, &id, ButtonAct::Together);
        world.command(command);
        let next = work_until(&mut world, |_, _| true);
        let Next::Run(envelope) = &next else { panic!("nobody works") };
        // The architect reads it before anybody is asked.
        assert_eq!(world.state.envelopes[envelope].step, Some(steps::GUIDANCE));
        while world.request(&id).work.gate_id.is_none()
            && world.request(&id).work.candidate.is_none()
        {
            let todo = world.todo()[0].clone();
            world.do_well(&todo);
        }
        assert_eq!(world.request(&id).work.candidate.is_none(), asks, "it is asked about first");
    }
}

#[test]
fn a_request_that_rests_says_so_and_goes_on_with_words() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    world.deliver();
    while !world.request(&id).has_given_up() {
        let todo = work_until(&mut world, |_, _| true);
        let Next::Run(envelope) = &todo else { panic!("nobody works") };
        world.run(envelope, super::world::crash());
        while let Some(report) = world.todo().into_iter().find(|it| matches!(it, Next::Report(_))) {
            world.do_well(&report);
        }
    }
    assert_eq!(key(&world.command(press(&id, ButtonAct::Pause))), "paused");
    let blocked = world.request(&id).blocked.expect("it waits");
    assert_eq!(blocked.paused_by.as_deref(), Some("operator"));
    assert!(
        world.said.iter().any(|key| key == "room.paused")
            || world.state.outgoing.values().any(
                |it| matches!(&it.act, Act::Post(Post { content, .. }) if content.key == "room.paused"),
            )
    );
    let room = world.state.rooms.iter().find(|(_, it)| **it == id).map(|(room, _)| *room);
    let words = world.words(room.expect("a room"), 88_000, "try the other way");
    world.submit(Event::Message(words));
    let request = world.request(&id);
    assert_eq!((request.status, request.blocked), (RequestStatus::Delegated, None));
}
