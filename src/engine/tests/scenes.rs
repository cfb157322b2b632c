//! What people see, one scene a test.

use serde_json::json;

use super::world::{GENERAL, OWNER, Todo, World, crash, evidence, policy, result};
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::event::Event;
use crate::domain::evidence::CheckVerdict;
use crate::domain::ids::{ChannelId, GuildId, MessageId, RequestId, UserId};
use crate::domain::incoming::Command;
use crate::domain::request::RequestStatus;
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::workflow::Step;
use crate::engine::Answer;

/// Works the request until `stop` says so of a role's step, which stays undone.
pub(super) fn work_until(world: &mut World, stop: impl Fn(Role, Option<Step>) -> bool) -> Todo {
    loop {
        let todo = world.todo().first().cloned().expect("something to do");
        if let Todo::Run(id) = &todo {
            let envelope = &world.state.envelopes[id];
            if stop(envelope.target_role, envelope.step) {
                return todo;
            }
        }
        world.do_well(&todo);
    }
}

pub(super) fn report(world: &mut World, todo: &Todo, outcome: RunOutcome) {
    let Todo::Run(id) = todo else { panic!("not a run") };
    world.run(id, outcome);
    let Some(Todo::Report(id)) = world.todo().into_iter().find(|t| matches!(t, Todo::Report(_)))
    else {
        panic!("no report")
    };
    world.submit(Event::ReportReady { relay_id: id });
}

#[test]
fn a_message_becomes_a_commit_and_one_final_answer() {
    let mut world = World::new(policy());
    let id = world.message("do the first task");
    world.finish_well();
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Committed);
    assert_eq!(request.commit_sha.as_deref(), Some("c1"));
    let finals = world.said.iter().filter(|key| key.starts_with("final.")).count();
    assert_eq!((world.said[0].as_str(), finals), ("receipt", 1));
    world.deliver();
    assert!(world.state.requests.is_empty(), "an ended request leaves memory");
    assert!(world.state.envelopes.is_empty() && world.state.effects.is_empty());
}

#[test]
fn failing_checks_go_back_to_the_developer_and_then_to_a_person() {
    let mut world = World::new(policy());
    let id = world.message("break it");
    let mut rounds = 0;
    world.finish_with(|kind| {
        let EffectKind::Checks { commit, .. } = kind else {
            return None;
        };
        rounds += 1;
        Some(EffectOutcome::Checked(evidence(commit, CheckVerdict::Failed)))
    });
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Blocked);
    assert_eq!(request.blocked.expect("why").code, "checks_failing");
    assert!(request.commit_sha.is_none());
    // The configuration says how often it goes back.
    assert_eq!(rounds, 1 + world.policy.limits.check_failures);
    assert!(world.said.contains(&"room.checks_failed".to_owned()));
}

#[test]
fn a_crashing_agent_is_tried_again_and_then_a_person_is_asked() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    for _ in 0..3 {
        let todo = work_until(&mut world, |role, _| role == Role::Research);
        report(&mut world, &todo, crash());
    }
    let request = world.request(&id);
    assert_eq!(request.blocked.expect("why").code, "step_failed");
    assert_eq!(world.said.iter().filter(|key| *key == "room.failed_attempt").count(), 3);
    world.command(Command::Retry { request_id: id.clone() });
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
    assert_eq!(world.dead_letters(), 0);
}

#[test]
fn an_answered_question_makes_no_commit() {
    let mut world = World::new(policy());
    let id = world.message("which tasks are left?");
    let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
    let answer = result(Role::Orchestrator, json!({ "request_handling": { "mode": "complete" } }));
    report(&mut world, &todo, RunOutcome::Result(Box::new(answer)));
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
    assert!(world.said.contains(&"final.answered".to_owned()));
}

#[test]
fn work_that_changes_no_file_is_answered() {
    let mut world = World::new(policy());
    let id = world.message("look around");
    world.finish_with(|kind| {
        matches!(kind, EffectKind::Commit { .. }).then_some(EffectOutcome::NothingChanged)
    });
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
    assert!(world.said.contains(&"final.answered".to_owned()));
}

#[test]
fn the_same_words_again_are_not_a_second_request() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    assert_eq!(world.message("do  IT"), id);
    assert!(world.said.contains(&"reused".to_owned()));
    world.finish_well();
    assert_ne!(world.message("do it"), id, "an ended request does not swallow a new one (I24)");
}

#[test]
fn a_doubled_message_is_taken_in_once() {
    let mut world = World::new(policy());
    let words = world.words(GENERAL, 77, "do it");
    world.submit(Event::Message(words.clone()));
    let before = world.log.len();
    assert_eq!(world.submit(Event::Message(words)), Answer::Ignored("already taken in"));
    assert_eq!(world.log.len(), before);
}

#[test]
fn words_in_the_room_of_a_blocked_request_resume_it() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    world.deliver();
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let mut stuck = result(Role::Planner, json!({ "required_inputs": ["the deadline"] }));
    stuck.status = crate::domain::result::ResultStatus::Blocked;
    report(&mut world, &todo, RunOutcome::Result(Box::new(stuck)));
    let request = world.request(&id);
    assert_eq!(request.blocked.expect("why").required_inputs, ["the deadline"]);
    let room = request.room.and_then(|room| room.thread_id).expect("a room");
    let mut words = world.words(room, 9_000_000_000_000, "next Friday");
    words.addressed = false;
    world.submit(Event::Message(words));
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Delegated);
    assert_eq!(request.params.followups[0].body, "next Friday");
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn who_is_on_no_list_gets_a_refusal_and_no_request() {
    let mut world = World::new(policy());
    let mut words = world.words(GENERAL, 5, "do it");
    words.author.id = UserId(999);
    world.submit(Event::Message(words.clone()));
    assert_eq!(world.said, ["not_allowed"]);
    words.message_id = MessageId(6);
    words.author.id = OWNER;
    words.guild_id = Some(GuildId(2));
    world.submit(Event::Message(words.clone()));
    words.message_id = MessageId(7);
    words.author.id = UserId(1);
    world.submit(Event::Message(words.clone()));
    words.author.id = UserId(55);
    words.author.is_bot = true;
    world.submit(Event::Message(words));
    assert_eq!((world.said.len(), world.state.requests.len()), (1, 0));
}

#[test]
fn odd_messages_get_a_clear_word() {
    let mut world = World::new(policy());
    for (number, text, key) in [(1, "   ".to_owned(), "empty"), (2, "x".repeat(16_001), "too_long")]
    {
        let words = world.words(GENERAL, number, &text);
        world.submit(Event::Message(words));
        assert_eq!(world.said.last().map(String::as_str), Some(key));
    }
    assert!(world.state.requests.is_empty());
}

#[test]
fn a_cancelled_request_leaves_nothing_behind() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    work_until(&mut world, |role, _| role == Role::Developer);
    world.command(Command::Cancel { request_id: id.clone() });
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    world.finish_well();
    world.deliver();
    assert!(world.state.requests.is_empty() && world.state.envelopes.is_empty());
    let Answer::Say(unknown) = world.command(Command::Cancel { request_id: id }) else { panic!() };
    assert_eq!(unknown.key, "unknown_request");
}

/// Everything goes well but the first merge, which ends like this.
fn finish_with_first_merge(world: &mut World, outcome: EffectOutcome) {
    let mut first = Some(outcome);
    world.finish_with(
        |kind| {
            if matches!(kind, EffectKind::Merge { .. }) { first.take() } else { None }
        },
    );
}

#[test]
fn a_moved_branch_is_followed_and_proven_again() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let moved = EffectOutcome::BranchMoved { head: "h1".to_owned() };
    finish_with_first_merge(&mut world, moved);
    assert_eq!(world.request(&id).commit_sha.as_deref(), Some("c2"));
    let checks = world.said.iter().filter(|key| *key == "room.checks_passed").count();
    assert_eq!(checks, 2, "the rebased commit is another commit");
}

#[test]
fn a_persons_edits_stop_the_merge_and_retry_goes_on() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let edits = EffectOutcome::PersonEdits { paths: vec!["a.py".to_owned()] };
    finish_with_first_merge(&mut world, edits);
    assert_eq!(world.request(&id).blocked.expect("why").code, "person_edits");
    world.command(Command::Retry { request_id: id.clone() });
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn ids_of_nowhere_are_answered() {
    let mut world = World::new(policy());
    let id = RequestId::parse("20260101-00000000").expect("an id");
    let Answer::Say(content) = world.command(Command::Retry { request_id: id }) else { panic!() };
    assert_eq!(content.key, "unknown_request");
    let foreign = Event::MessageDeleted { channel_id: ChannelId(1), message_id: MessageId(1) };
    assert!(matches!(world.submit(foreign), Answer::Ignored(_)));
}

#[test]
fn status_and_cancel_in_words_cost_no_run() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    for (number, text, key) in [
        (9_001, "status".to_owned(), "overview"),
        (9_002, format!("status {id}"), "overview"),
        (9_003, format!("cancel {id}"), "cancel.done"),
        (9_004, "cancel 20200101-00000000".to_owned(), "unknown_request"),
    ] {
        let words = world.words(GENERAL, number, &text);
        world.submit(Event::Message(words));
        assert_eq!(world.said.last().map(String::as_str), Some(key), "{text}");
    }
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    assert_eq!(world.request(&id).spent.turns, 0);
}
