//! Words for an agent that is at work.

use std::sync::Arc;

use super::scenes::work_until;
use super::world::{Todo, World, good, policy};
use crate::domain::attachment::Attachment;
use crate::domain::change::Change;
use crate::domain::event::Event;
use crate::domain::ids::{BootId, CallId, MessageId, RunId};
use crate::domain::incoming::Command;
use crate::domain::lifecycle::StepName;
use crate::domain::request::EventKind;
use crate::domain::role::Role;
use crate::domain::run::{Run, RunOutcome, RunReport};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::engine::{Answer, Wake};

pub(super) fn run_of(world: &World, todo: &Todo, run_id: &str) -> Run {
    let Todo::Run(id) = todo else { panic!("not a run") };
    let envelope = &world.state.envelopes[id];
    Run {
        agent: crate::domain::config::AgentKind::Rehearsal,
        ..Run::new(
            RunId::parse(run_id).expect("an id"),
            envelope.envelope.request_id.clone(),
            (envelope.target_role, envelope.step),
            id.clone(),
            Timestamp::from_millis(0),
        )
    }
}

/// The report of a role at a step that changed nothing.
pub(in crate::engine) fn report_of(role: Role, step: Option<StepName>) -> RunReport {
    let mut world = World::new(policy());
    world.message("do it");
    let todo = work_until(&mut world, |_, _| true);
    let run = run_of(&world, &todo, "run-report");
    RunReport { role, step, ..finished(&run) }
}

pub(super) fn finished(run: &Run) -> RunReport {
    RunReport {
        run_id: run.run_id.clone(),
        request_id: run.request_id.clone(),
        role: run.role,
        step: run.step,
        generation: run.generation,
        outcome: RunOutcome::Result(Arc::new(good(run.role, run.step))),
        changed_paths: Vec::new(),
        work: None,
        documents_present: Vec::new(),
        usage: Usage::default(),
        session_id: None,
        duration_ms: 1,
        repairs: 0,
        dropped_bytes: 0,
        isolation: None,
        agent: "rehearsal".to_owned(),
        agent_kind: crate::domain::config::AgentKind::Rehearsal,
        model: String::new(),
        heard: Vec::new(),
        conversation: Default::default(),
    }
}

#[test]
fn words_go_to_the_agent_at_work_unless_they_are_to_wait() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    world.deliver();
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-steered");
    world.submit(Event::RunStarting(run.clone()));
    let room =
        world.request(&id).conversation.room.and_then(|room| room.thread_id).expect("a room");
    let steers = |world: &mut World, event| {
        world.wakes.clear();
        assert_eq!(world.submit(event), Answer::Accepted);
        world.wakes.contains(&Wake::SteerRun(run.run_id.clone()))
    };
    let table = [("in blue", true), ("later: in red", false), ("나중에: 초록", false)];
    for (number, (text, wanted)) in (80..).zip(table) {
        let words = world.words(room, number, text);
        assert_eq!(steers(&mut world, Event::Message(words)), wanted, "{text}");
    }
    // The sandbox of the run at work does not have the file.
    let saved = Some("shared_workspace/attachments/83/picture.png".to_owned());
    let mut words = world.words(room, 83, "like this");
    words.attachments = vec![Attachment { filename: "picture.png".to_owned(), size: 1, saved }];
    assert!(!steers(&mut world, Event::Message(words)));
    // An edit is new words, and may say that they need not wait after all.
    let words = world.words(room, 81, "in red, now");
    assert!(steers(&mut world, Event::MessageEdited(words)));

    let mut report = finished(&run);
    report.heard = vec![MessageId(80)];
    world.submit(Event::RunFinished(Box::new(report)));
    let followups = world.request(&id).params.followups;
    let heard: Vec<bool> = followups.iter().map(|it| it.heard_by == [Role::Developer]).collect();
    assert_eq!(heard, [true, false, false, false]);
    let words = world.words(room, 80, "in light blue");
    assert!(!steers(&mut world, Event::MessageEdited(words)), "nobody is at work");
    assert!(world.request(&id).params.followups[0].heard_by.is_empty());
}

#[test]
fn what_is_written_to_a_run_is_numbered_in_its_order_and_an_older_wording_is_not_heard() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    world.deliver();
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-steered");
    world.submit(Event::RunStarting(run.clone()));
    let room =
        world.request(&id).conversation.room.and_then(|room| room.thread_id).expect("a room");
    let words = [(80, "in blue"), (81, "and louder")].map(|(at, text)| world.words(room, at, text));
    for words in words {
        world.submit(Event::Message(words));
    }
    let edit = world.words(room, 80, "in green");
    world.submit(Event::MessageEdited(edit));
    let controls = &world.state.runs[&run.run_id].controls;
    let said: Vec<_> = controls.iter().map(|it| (it.number, it.text.as_str())).collect();
    assert_eq!(said, [(1, "in blue"), (2, "and louder"), (3, "in green")]);
    // It took the older wording, and ended before the newer one came.
    let mut report = finished(&run);
    report.heard = vec![MessageId(80), MessageId(81)];
    world.submit(Event::RunFinished(Box::new(report)));
    let followups = world.request(&id).params.followups;
    let heard: Vec<bool> = followups.iter().map(|it| it.heard_by == [Role::Developer]).collect();
    assert_eq!(heard, [false, true]);
}

#[test]
fn a_generation_that_is_over_holds_nothing_and_a_call_counts_once() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-a");
    world.submit(Event::RunStarting(run.clone()));
    let (run_id, boot) = (run.run_id.clone(), BootId::parse("boot-a").expect("an id"));
    let claim =
        |generation| Event::RunClaimed { run_id: run_id.clone(), generation, boot: boot.clone() };
    assert_eq!(world.submit(claim(1)), Answer::Accepted);
    assert_eq!(world.submit(claim(1)), Answer::Accepted, "it is said again");
    let note = Event::Noted {
        run_id: run_id.clone(),
        call: CallId::parse("call-a").expect("an id"),
        text: "the tests are slow".to_owned(),
    };
    for _ in 0..2 {
        assert_eq!(world.submit(note.clone()), Answer::Accepted);
    }
    let notes = world.log.iter().filter(
        |change| matches!(change, Change::Event(_, event) if event.kind == EventKind::RoleNote),
    );
    assert_eq!(notes.count(), 1);
    world.submit(Event::RunTakenAway {
        run_id: run_id.clone(),
        generation: 1,
        usage: Default::default(),
    });
    let now = &world.state.runs[&run_id];
    assert_eq!((now.generation, &now.granted, now.controls.len()), (2, &None, 0));
    assert_eq!(world.submit(claim(1)), Answer::Ignored("the run is gone"));
    assert_eq!(world.submit(claim(2)), Answer::Accepted);
    world.command(Command::Cancel { request_id: id });
    assert_eq!(world.submit(claim(2)), Answer::Ignored("the request has moved on"));
    let over =
        Event::RunTakenAway { run_id: run_id.clone(), generation: 2, usage: Default::default() };
    assert_eq!(world.submit(over), Answer::Accepted);
    assert!(world.state.runs.is_empty() && world.state.envelopes.is_empty());
}
