//! Words for an agent that is at work.

use std::sync::Arc;

use super::scenes::work_until;
use super::world::{Todo, World, good, policy};
use crate::domain::event::Event;
use crate::domain::ids::{MessageId, RunId};
use crate::domain::lifecycle::StepName;
use crate::domain::role::Role;
use crate::domain::run::{Run, RunOutcome, RunReport};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::engine::{Answer, Wake};

pub(super) fn run_of(world: &World, todo: &Todo, run_id: &str) -> Run {
    let Todo::Run(id) = todo else { panic!("not a run") };
    let envelope = &world.state.envelopes[id];
    Run {
        run_id: RunId::parse(run_id).expect("an id"),
        request_id: envelope.envelope.request_id.clone(),
        role: envelope.target_role,
        step: envelope.step,
        envelope_id: id.clone(),
        attempt: 1,
        generation: 1,
        started_at: Timestamp::from_millis(0),
        pre_tree: None,
        agent: crate::domain::config::AgentKind::Rehearsal,
        approach: crate::domain::run::Approach::Usual,
        allowance: crate::domain::budget::Allowance::default(),
        cut_off: false,
        told_of_limit: false,
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
        documents_present: Vec::new(),
        usage: Usage::default(),
        session_id: None,
        duration_ms: 1,
        repairs: 0,
        dropped_bytes: 0,
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
    let room = world.request(&id).room.and_then(|room| room.thread_id).expect("a room");
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
    // An edit is new words, and may say that they need not wait after all.
    let words = world.words(room, 81, "in red, now");
    assert!(steers(&mut world, Event::MessageEdited(words)));

    let mut report = finished(&run);
    report.heard = vec![MessageId(80)];
    world.submit(Event::RunFinished(Box::new(report)));
    let followups = world.request(&id).params.followups;
    let heard: Vec<bool> = followups.iter().map(|it| it.heard_by == [Role::Developer]).collect();
    assert_eq!(heard, [true, false, false]);
    let words = world.words(room, 80, "in light blue");
    assert!(!steers(&mut world, Event::MessageEdited(words)), "nobody is at work");
    assert!(world.request(&id).params.followups[0].heard_by.is_empty());
}
