//! What must not happen at the edges: words lost or said twice, work that nobody stops, rights that
//! nobody has.

use std::sync::Arc;

use serde_json::json;

use super::scenes::{report, work_until};
use super::steering::{finished, run_of};
use super::world::{GENERAL, OWNER, Todo, World, good, policy, result};
use crate::domain::actor::{Actor, Author};
use crate::domain::change::Change;
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::envelope::{
    Envelope, EnvelopeBody, EnvelopeFolder, EnvelopeKind, EnvelopeParams, MAX_ENVELOPE_ATTEMPTS,
};
use crate::domain::event::Event;
use crate::domain::ids::{
    ChannelId, EnvelopeId, InteractionId, MessageId, OutgoingId, RequestId, RunId, UserId,
};
use crate::domain::incoming::Command;
use crate::domain::ingress::Ingress;
use crate::domain::language::Language;
use crate::domain::lifecycle::StepName;
use crate::domain::outgoing::{
    Act, NamedChannel, Outgoing, OutgoingOutcome, Post, Priority, REFUSED_KEPT, SET_ASIDE, Target,
};
use crate::domain::policy::{ActionPolicy, Holders, Limits, Policy, Right};
use crate::domain::record::AnyRecord;
use crate::domain::request::{RequestStatus, Room};
use crate::domain::role::Role;
use crate::domain::run::{Run, RunOutcome};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::engine::lifecycle::steps;
use crate::engine::{Answer, Input, Wake, decide};

#[test]
fn a_message_that_was_missed_is_taken_in_after_newer_ones() {
    let mut world = World::new(policy());
    for number in 1_000..1_100 {
        let words = world.words(GENERAL, number, &format!("question {number}"));
        world.submit(Event::Message(words));
    }
    let mut missed = world.words(GENERAL, 500, "the one that was missed");
    missed.author.id = UserId(101);
    world
        .policy
        .rights
        .insert(Right::Ask, Holders { users: [UserId(101)].into(), ..Holders::default() });
    assert_eq!(world.submit(Event::Message(missed.clone())), Answer::Accepted);
    assert_eq!(world.submit(Event::Message(missed)), Answer::Ignored("already taken in"));
}

#[test]
fn going_on_after_a_block_keeps_count_of_the_work() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let mut stuck = result(Role::Planner, json!({}));
    stuck.status = crate::domain::result::ResultStatus::Blocked;
    report(&mut world, &todo, RunOutcome::Result(Arc::new(stuck)));
    world.command(Command::Retry { request_id: id.clone() });
    assert_eq!(world.request(&id).work.spent.turns, 3, "runs that were made stay counted");
    // Nobody has begun anew yet, and still the worktree has to be given back.
    world.command(Command::Cancel { request_id: id });
    let mut effects = world.state.effects.values();
    assert!(effects.any(|effect| matches!(effect.kind, EffectKind::Release { .. })));
}

#[test]
fn deleting_the_first_words_of_resumed_work_does_not_cancel_it() {
    let mut world = World::new(policy());
    let words = world.words(GENERAL, 77, "do it");
    world.submit(Event::Message(words));
    let id = world.state.requests.keys().next().cloned().expect("a request");
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let mut stuck = result(Role::Planner, json!({}));
    stuck.status = crate::domain::result::ResultStatus::Blocked;
    report(&mut world, &todo, RunOutcome::Result(Arc::new(stuck)));
    world.command(Command::Retry { request_id: id.clone() });
    world.submit(Event::MessageDeleted { channel_id: GENERAL, message_id: MessageId(77) });
    assert_eq!(world.request(&id).status, RequestStatus::Delegated);
}

#[test]
fn an_edit_needs_the_right_to_ask_and_does_not_pile_up() {
    let mut world = World::new(policy());
    let words = world.words(GENERAL, 77, "do it");
    world.submit(Event::Message(words.clone()));
    let id = world.state.requests.keys().next().cloned().expect("a request");
    work_until(&mut world, |role, _| role == Role::Research);
    let mut edit = words;
    for text in ["do it now", "do it at once"] {
        edit.content = text.to_owned();
        world.submit(Event::MessageEdited(edit.clone()));
    }
    let request = world.request(&id);
    assert_eq!(request.body, "do it at once", "the last words are what is asked");
    assert_eq!(request.params.earlier_bodies, ["do it", "do it now"]);
    assert_eq!(request.params.followups, []);
    world.policy.rights.clear();
    edit.content = "delete everything".to_owned();
    assert_eq!(world.submit(Event::MessageEdited(edit)), Answer::Ignored("may not ask"));
    assert_eq!(world.request(&id).body, "do it at once");
}

#[test]
fn a_run_of_a_withdrawn_request_leaves_nothing_behind_after_a_restart() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-a");
    world.submit(Event::RunStarting(run.clone()));
    world.command(Command::Cancel { request_id: id });
    // The process was killed meanwhile; the next one finds no output and would begin again.
    let again =
        Event::RunTakenAway { run_id: run.run_id, generation: 1, usage: Default::default() };
    assert_eq!(world.submit(again), Answer::Accepted);
    assert!(world.state.runs.is_empty(), "a run that never ends would hold the request for ever");
    world.finish_well();
    world.deliver();
    assert!(world.state.requests.is_empty());
}

#[test]
fn a_run_that_cannot_be_adopted_is_neither_doubled_nor_forgotten() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-a");
    let relay_id = run.envelope_id.clone();
    world.submit(Event::RunStarting(run.clone()));
    let turns = world.request(&id).work.spent.turns;
    let failed = |world: &mut World, agent_lives| {
        let (relay_id, reason) = (relay_id.clone(), "cannot read exit.json".to_owned());
        let usage = Usage { output_tokens: 7, ..Usage::default() };
        world.submit(Event::EnvelopeFailed { relay_id, reason, agent_lives, usage });
    };
    for _ in 0..2 * MAX_ENVELOPE_ATTEMPTS {
        failed(&mut world, true);
        assert!(world.state.runs.contains_key(&run.run_id), "its agent may still be at work");
        assert_eq!(world.state.envelopes[&relay_id].place, EnvelopeFolder::Inbox);
    }
    let again =
        Event::RunTakenAway { run_id: run.run_id.clone(), generation: 1, usage: Usage::default() };
    assert_eq!(world.submit(again.clone()), Answer::Accepted);
    assert_eq!(world.submit(again), Answer::Ignored("the run is gone"));
    assert_eq!(world.state.runs[&run.run_id].generation, 2);
    assert_eq!(world.request(&id).work.spent.turns, turns, "it is the same run");
    assert_eq!(world.request(&id).work.usage, Usage::default());
    failed(&mut world, false);
    assert_eq!(world.request(&id).work.usage.output_tokens, 7, "it is in nobody's report");
    assert!(world.state.runs.is_empty() && !world.state.envelopes.contains_key(&relay_id));
    assert_eq!(world.request(&id).status, RequestStatus::Blocked);
}

#[test]
fn who_withdraws_while_a_disk_is_waited_for_ends_the_agent_at_once() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-a");
    world.submit(Event::RunStarting(run.clone()));
    let relay_id = run.envelope_id.clone();
    let mut waits = Vec::new();
    for _ in 1..MAX_ENVELOPE_ATTEMPTS {
        let (relay_id, reason) = (relay_id.clone(), "the disk is away".to_owned());
        let usage = Usage::default();
        world.submit(Event::EnvelopeFailed { relay_id, reason, agent_lives: true, usage });
        let at = world.state.envelopes[&run.envelope_id].not_before.expect("it waits");
        waits.push(at.seconds_since(Timestamp::from_millis(world.clock)));
    }
    assert_eq!(waits, [10, 50, 250, 250], "what an agent has done is not given up in seconds");
    world.command(Command::Cancel { request_id: id });
    assert_eq!(world.state.envelopes[&relay_id].not_before, None);
}

#[test]
fn a_run_whose_envelope_was_removed_is_followed_again() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-a");
    world.submit(Event::RunStarting(run.clone()));
    let removed = world.state.envelopes.remove(&run.envelope_id).expect("its envelope");
    world.restart();
    let again = &world.state.envelopes[&run.envelope_id];
    assert_eq!((again.target_role, again.step), (removed.target_role, removed.step));
    assert_eq!(world.submit(Event::RunFinished(Box::new(finished(&run)))), Answer::Accepted);
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn the_result_of_a_run_survives_an_error_on_the_way() {
    let mut world = World::new(policy());
    world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-a");
    world.submit(Event::RunStarting(run.clone()));
    let (relay_id, reason) = (run.envelope_id.clone(), "git is away".to_owned());
    world.submit(Event::EnvelopeFailed {
        relay_id,
        reason,
        agent_lives: false,
        usage: Usage::default(),
    });
    assert_eq!(world.submit(Event::RunFinished(Box::new(finished(&run)))), Answer::Accepted);
}

#[test]
fn the_end_of_an_agent_wakes_the_release_that_waited_for_it() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-a");
    world.submit(Event::RunStarting(run.clone()));
    world.command(Command::Cancel { request_id: id });
    let release = world.state.effects.keys().next().cloned().expect("a release");
    let input = Input {
        event: Event::RunFinished(Box::new(finished(&run))),
        now: Timestamp::from_millis(1),
        ids: crate::domain::ids::IdSupply::new(uuid::Uuid::from_u128(7)),
    };
    let decision = decide(&world.state, &world.policy, input);
    assert!(decision.effects.contains(&Wake::Effect(release)), "{:?}", decision.effects);
}

#[test]
fn a_dead_letter_of_another_step_gives_nobody_the_request() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Research);
    let Todo::Run(old) = todo else { panic!("not a run") };
    let letter = Envelope::clone(&world.state.envelopes[&old]);
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let mut stuck = result(Role::Planner, json!({}));
    stuck.status = crate::domain::result::ResultStatus::Blocked;
    report(&mut world, &todo, RunOutcome::Result(Arc::new(stuck)));
    let back = Envelope { place: EnvelopeFolder::Inbox, ..letter };
    // A letter of a step that is over must not unblock: its run is refused, and nobody would move on.
    let input = Input {
        event: Event::EnvelopeReplayed(Box::new(back)),
        now: Timestamp::from_millis(1),
        ids: crate::domain::ids::IdSupply::new(uuid::Uuid::from_u128(7)),
    };
    for change in decide(&world.state, &world.policy, input).changes {
        world.state.apply(&change);
    }
    assert_eq!(world.state.requests[&id].status, RequestStatus::Blocked);
    let run = run_of(&world, &Todo::Run(old), "run-a");
    assert!(matches!(world.submit(Event::RunStarting(run)), Answer::Ignored(_)));
    assert!(world.state.envelopes.is_empty());
}

pub(super) fn dropped(
    world: &World,
    request: &RequestId,
    from: Role,
    step: Option<StepName>,
) -> Envelope {
    let result = good(from, Some(steps::DRAFT));
    let run = Run {
        agent: crate::domain::config::AgentKind::Rehearsal,
        ..Run::new(
            RunId::parse("forged").expect("an id"),
            request.clone(),
            (from, None),
            EnvelopeId::parse("e").expect("an id"),
            Timestamp::from_millis(0),
        )
    };
    Envelope {
        relay_id: EnvelopeId::parse("drop-1").expect("an id"),
        transport: "internal".to_owned(),
        created_at: world.state.requests[request].created_at,
        sender_role: from,
        target_role: Role::Orchestrator,
        kind: EnvelopeKind::Report,
        envelope: EnvelopeBody {
            request_id: request.clone(),
            intent: "report".to_owned(),
            urgency: "normal".to_owned(),
            scope: String::new(),
            artifacts: Vec::new(),
            params: EnvelopeParams { result: Some(json!(result)), ..EnvelopeParams::default() },
            body: String::new(),
            from,
            to: Role::Orchestrator,
        },
        place: EnvelopeFolder::Inbox,
        attempts: 0,
        not_before: None,
        step,
        report: Some(Box::new(finished(&run))),
        reason: None,
    }
}

#[test]
fn a_dropped_report_counts_for_the_step_at_hand_and_brings_no_facts() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    work_until(&mut world, |_, step| step == Some(steps::DRAFT));
    let other = dropped(&world, &id, Role::Planner, Some(steps::FINALIZE));
    let relay_id = other.relay_id.clone();
    let decide_one = |world: &World, event: Event| {
        let ids = crate::domain::ids::IdSupply::new(uuid::Uuid::from_u128(9));
        decide(&world.state, &world.policy, Input { event, now: Timestamp::from_millis(1), ids })
    };
    for change in decide_one(&world, Event::EnvelopeDropped(Box::new(other))).changes {
        world.state.apply(&change);
    }
    assert!(world.state.envelopes[&relay_id].report.is_none(), "a run report is ours alone");
    let late = decide_one(&world, Event::ReportReady { relay_id: relay_id.clone() });
    assert_eq!(late.answer, Answer::Ignored("the request is at another step"));
    // Without a step it is about the step that the sender has.
    let plain = dropped(&world, &id, Role::Planner, None);
    for change in decide_one(&world, Event::EnvelopeDropped(Box::new(plain))).changes {
        world.state.apply(&change);
    }
    for change in decide_one(&world, Event::ReportReady { relay_id }).changes {
        world.state.apply(&change);
    }
    let state = world.state.requests[&id].params.workflow.clone().expect("a workflow");
    assert_eq!(state.step, steps::GUIDANCE);
}

#[test]
fn a_dropped_result_that_does_not_follow_the_contract_is_a_dead_letter_that_says_why() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    work_until(&mut world, |_, step| step == Some(steps::DRAFT));
    let mut letter = dropped(&world, &id, Role::Planner, None);
    letter.report = None;
    letter.envelope.params.result =
        Some(json!({ "status": "finished", "proposals": { "backlog_items": [7] } }));
    let relay_id = letter.relay_id.clone();
    world.state.apply(&Change::save(letter));
    let ids = crate::domain::ids::IdSupply::new(uuid::Uuid::from_u128(9));
    let dropped_id = relay_id.clone();
    let event = Event::ReportReady { relay_id };
    let input = Input { event, now: Timestamp::from_millis(1), ids };
    let decided = decide(&world.state, &world.policy, input);
    for change in &decided.changes {
        world.state.apply(change);
    }
    assert!(!world.state.envelopes.contains_key(&dropped_id));
    let reason = decided.changes.iter().find_map(|change| {
        let Change::Save(AnyRecord::Envelope(letter)) = change else { return None };
        letter.reason.clone().filter(|_| letter.place == EnvelopeFolder::Dead)
    });
    let reason = reason.expect("a dead letter");
    for code in
        ["/status is none of", "/backlog_items/0 is no object", "missing_workflow_transition"]
    {
        assert!(reason.contains(code), "{reason}");
    }
}

#[test]
fn a_request_that_cancels_itself_says_so_once() {
    let mut world = World::new(policy());
    let id = world.message("forget it");
    let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
    let cancel = json!({ "control_action": { "kind": "cancel_request", "request_id": id } });
    let cancel = result(Role::Orchestrator, cancel);
    report(&mut world, &todo, RunOutcome::Result(Arc::new(cancel)));
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    let last: Vec<_> = world.said.iter().filter(|key| !key.starts_with("re")).collect();
    assert_eq!(last, ["final.cancelled"]);
}

/// A request for which the orchestrator has an action run.
fn with_an_action() -> (World, RequestId) {
    let action = ActionPolicy {
        command: vec!["make".to_owned()],
        foreground: true,
        domain: String::new(),
        allowed_params: std::collections::BTreeSet::new(),
    };
    let mut world =
        World::new(Policy { actions: [("build".to_owned(), action)].into(), ..policy() });
    let id = world.message("build it");
    let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
    let execute = json!({ "control_action": { "kind": "execute_action", "action_name": "build" } });
    let execute = result(Role::Orchestrator, execute);
    report(&mut world, &todo, RunOutcome::Result(Arc::new(execute)));
    (world, id)
}

#[test]
fn an_action_that_ends_after_its_request_was_cancelled_says_nothing_more() {
    let (mut world, id) = with_an_action();
    world.command(Command::Cancel { request_id: id.clone() });
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    let started = world.log.iter().any(|change| {
        matches!(change, Change::Save(AnyRecord::Effect(effect))
            if matches!(effect.kind, EffectKind::Action { .. }) && effect.attempts > 0)
    });
    assert!(!started, "nothing begins for a withdrawn request");
    assert!(world.state.operations.is_empty(), "its operation is closed all the same");
    assert!(!world.said.contains(&"action.done".to_owned()), "{:?}", world.said);
}

#[test]
fn words_beside_a_running_action_are_answered_because_nobody_reads_them() {
    let (mut world, id) = with_an_action();
    world.deliver();
    let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
    let words = world.words(room.expect("a room"), 90, "and without the tests");
    world.submit(Event::Message(words));
    assert!(world.said.contains(&"words_beside_action".to_owned()), "{:?}", world.said);
    assert!(world.request(&id).params.followups.is_empty());
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
}

#[test]
fn an_action_whose_record_is_gone_ends_and_is_told_of() {
    let (mut world, id) = with_an_action();
    world.state.operations.clear();
    let effect = world.state.effects.keys().next().cloned().expect("its effect");
    world.begin_effect(&effect);
    world.end_effect(&effect, EffectOutcome::failed("its record is gone"));
    assert_eq!(world.request(&id).status, RequestStatus::Failed);
    assert!(world.said.contains(&"action.failed".to_owned()), "{:?}", world.said);
    let mut left = world.state.effects.values();
    assert!(!left.any(|effect| matches!(effect.kind, EffectKind::Action { .. })));
}

fn refuse(world: &mut World, outgoing: &Outgoing) {
    let outgoing_id = outgoing.outgoing_id.clone();
    let outcome = OutgoingOutcome::Refused { reason: "unknown channel".to_owned(), place: true };
    world.submit(Event::OutgoingFinished { outgoing_id, outcome });
}

// Row R13, better: sends are tried for ever, and one that alone is failed is put aside and named in status.
#[test]
fn a_message_that_discord_fails_alone_is_set_aside_and_a_dead_discord_drops_nothing() {
    let mut world = World::new(policy());
    world.message("do it");
    let ids: Vec<_> = world.state.outgoing.keys().cloned().collect();
    let later = |world: &mut World, id: &OutgoingId, own| {
        let at = Timestamp::from_millis(world.clock);
        let outcome = OutgoingOutcome::Later { at, reason: "discord answered 500".into(), own };
        world.submit(Event::OutgoingFinished { outgoing_id: id.clone(), outcome });
    };
    for id in &ids {
        for _ in 0..100 {
            later(&mut world, id, false);
        }
        assert!(world.state.outgoing.contains_key(id), "Discord is away");
    }
    for id in &ids {
        let patience = world.state.outgoing[id].priority.patience();
        for _ in 1..patience {
            later(&mut world, id, true);
        }
        assert!(world.state.outgoing.contains_key(id));
        later(&mut world, id, true);
        assert!(!world.state.outgoing.contains_key(id), "its lane is free");
    }
    let kept =
        |change: &&Change| matches!(change, Change::Append { file, .. } if file == SET_ASIDE);
    assert_eq!(world.log.iter().filter(kept).count(), ids.len(), "each is kept with its words");
    assert!(Priority::Progress.patience() < Priority::Error.patience());
    assert!(Priority::Error.patience() < Priority::Final.patience());
}

#[test]
fn a_gate_card_that_its_room_refuses_is_posted_elsewhere() {
    let mut world = World::new(Policy { check_names: Vec::new(), ..policy() });
    world.message("do it");
    world.deliver();
    world.finish_well();
    let is_card = |outgoing: &&Arc<Outgoing>| {
        matches!(outgoing.act, Act::Post(Post { gate_id: Some(_), .. }))
    };
    for target in [Target::Channel(GENERAL), Target::Named(NamedChannel::Report)] {
        let card = world.state.outgoing.values().find(is_card).cloned().expect("a card");
        refuse(&mut world, &card);
        let again = world.state.outgoing.values().find(is_card).cloned().expect("a card again");
        assert_eq!((&again.target, again.priority), (&target, Priority::Approval));
    }
    let card = world.state.outgoing.values().find(is_card).cloned().expect("a card");
    refuse(&mut world, &card);
    let kept = world.state.outgoing.values().find(is_card).expect("nowhere is left, so it stays");
    assert_eq!(kept.refused.as_ref().map(|it| it.times), Some(1));
}

#[test]
fn what_discord_refused_is_bounded_and_what_leaves_is_written_down() {
    let mut world = World::new(policy());
    for number in 0..REFUSED_KEPT as u64 + 3 {
        // Other words each time, or it would be the same request again.
        let mut words = world.words(GENERAL, 5_000 + number, "status");
        words.message_id = MessageId(5_000 + number);
        world.submit(Event::Message(words));
        let new = world.state.outgoing.values().find(|it| it.refused.is_none()).cloned();
        refuse(&mut world, &new.expect("an answer"));
    }
    assert_eq!(world.state.outgoing.len(), REFUSED_KEPT);
    let kept =
        |change: &&Change| matches!(change, Change::Append { file, .. } if file == SET_ASIDE);
    assert_eq!(world.log.iter().filter(kept).count(), 3);
    // When rights change, each is tried, and no earlier than is good for the machine.
    world.submit(Event::ChannelsChanged);
    let soon = |it: &Arc<Outgoing>| {
        let refused = it.refused.as_ref().expect("refused");
        it.not_before == Some(refused.last_at.plus_seconds(refused.pause_after_changes()))
    };
    assert!(world.state.outgoing.values().all(soon));
    world.submit(Event::Started { announce: false, serves: Vec::new() });
    assert!(world.state.outgoing.values().all(|it| it.not_before.is_none()));
}

#[test]
fn a_person_without_rights_is_told_so_once_an_hour_and_in_nobodys_way() {
    let mut world = World::new(policy());
    let stranger = |world: &mut World, channel: ChannelId, number: u64| {
        let mut words = world.words(channel, number, "do it");
        words.author.id = UserId(999);
        world.submit(Event::Message(words));
        world.said.iter().filter(|key| *key == "not_allowed").count()
    };
    for number in 0..60 {
        assert_eq!(stranger(&mut world, GENERAL, 6_000 + number), 1);
    }
    assert_eq!(stranger(&mut world, ChannelId(77), 7_000), 1, "wherever they write");
    let courtesy = world.state.outgoing.values().next().expect("the refusal");
    assert_eq!(courtesy.priority, Priority::Refusal);
    assert!(courtesy.not_before.is_some_and(|at| at > courtesy.created_at));
    world.clock += 3_600_000;
    assert_eq!(stranger(&mut world, ChannelId(77), 7_001), 2, "an hour later");
}

#[test]
fn parts_that_discord_has_are_not_forgotten_by_another_try() {
    let mut world = World::new(policy());
    world.message("do it");
    let id = world.state.outgoing.keys().next().cloned().expect("a receipt");
    for parts_done in [0, 2, 0] {
        world.submit(Event::OutgoingStarting { outgoing_id: id.clone(), parts_done });
    }
    let state = &world.state.outgoing[&id].state;
    assert!(
        matches!(state, crate::domain::outgoing::OutgoingState::Sending { parts_done: 2, .. }),
        "{state:?}"
    );
}

#[test]
fn a_slash_command_is_no_way_around_the_limits() {
    let limits = Limits { open_requests_per_person: 1, ..Limits::default() };
    let mut world = World::new(Policy { limits, ..policy() });
    let author =
        Author { id: OWNER, name: "owner".to_owned(), is_bot: false, server_roles: Vec::new() };
    let mut ask = |text: &str| {
        let actor = Actor::Person {
            author: author.clone(),
            guild_id: Some(super::world::GUILD),
            via: Ingress::Slash,
        };
        let command = Command::Ask {
            text: text.to_owned(),
            channel_id: Some(ChannelId(10)),
            parent_id: None,
            language: Language::En,
            lane: None,
        };
        let answer = world.submit(Event::Command { actor, command, interaction: None });
        answer.content().expect("words").key.clone()
    };
    assert_eq!(ask("do it"), "receipt");
    assert_eq!(ask("do  IT"), "reused");
    assert_eq!(ask("and that"), "too_many");
}

#[test]
fn an_interaction_that_is_told_again_is_carried_out_once() {
    let mut world = World::new(policy());
    let mut commanded = |id: u64, command: Command| {
        let interaction = Some(InteractionId(id << 32));
        world.submit(Event::Command { actor: Actor::Operator, command, interaction })
    };
    let ask = |text: &str| Command::Ask {
        text: text.to_owned(),
        channel_id: Some(ChannelId(10)),
        parent_id: None,
        language: Language::En,
        lane: None,
    };
    assert!(commanded(1, ask("do it")).content().is_some());
    assert!(matches!(commanded(1, ask("do it")), Answer::Ignored(_)), "its answer was lost");
    assert!(commanded(2, ask("do that")).content().is_some());
    // Somebody was told no, whatever would be said now.
    let nothing = || Command::Cancel { request_id: "20260324-00000000".parse().expect("an id") };
    assert!(commanded(3, nothing()).content().is_some());
    assert!(matches!(commanded(3, nothing()), Answer::Ignored(_)));
    assert_eq!(world.state.requests.len(), 2);
    assert!(world.state.interactions.knows(InteractionId(2 << 32)));
}

#[test]
fn a_request_takes_so_many_follow_ups_and_then_says_so() {
    let limits = Limits { followups: 2, ..Limits::default() };
    let mut world = World::new(Policy { limits, ..policy() });
    let id = world.message("do it");
    world.deliver();
    let room =
        world.request(&id).conversation.room.and_then(|room| room.thread_id).expect("a room");
    for number in 0..4 {
        let words = world.words(room, 900 + number, &format!("also {number}"));
        let answer = world.submit(Event::Message(words));
        assert_eq!(answer == Answer::Accepted, number < 2, "{number}: {answer:?}");
    }
    assert_eq!(world.request(&id).params.followups.len(), 2);
    let told = world.said.iter().filter(|key| *key == "too_many_followups").count();
    assert_eq!(told, 2, "whoever wrote them knows: {:?}", world.said);
}

#[test]
fn a_restart_proves_a_lost_closeout_instead_of_asking_an_agent() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    while !world.state.effects.values().any(|e| matches!(e.kind, EffectKind::Merge { .. })) {
        let todo = world.todo().first().cloned().expect("something to do");
        world.do_well(&todo);
    }
    // A record edited by hand: the effect is gone.
    world.state.effects.clear();
    world.submit(Event::Started { announce: false, serves: Vec::new() });
    let kinds: Vec<_> = world.state.effects.values().map(|effect| effect.kind.name()).collect();
    assert_eq!(kinds, ["merge"]);
    assert!(world.state.envelopes.is_empty());
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn the_room_of_a_request_hangs_on_its_message_once_that_is_posted() {
    let mut world = World::new(policy());
    let language = Language::En;
    let text = "tidy up".to_owned();
    world.command(Command::Ask { text, channel_id: None, parent_id: None, language, lane: None });
    let id = world.state.requests.keys().next().expect("a request").clone();
    let mut request = world.request(&id);
    request.conversation.room = Some(Room::default());
    world.state.apply(&Change::save(request));
    let waiting = world.state.outgoing.values().find(|it| matches!(it.act, Act::Post(_)));
    let mut hook = Outgoing::clone(waiting.expect("a message"));
    let Act::Post(Post { room_of, .. }) = &mut hook.act else { panic!("{hook:?}") };
    *room_of = Some(id.clone());
    world.state.apply(&Change::save(hook.clone()));
    let message_ids = vec![MessageId(71), MessageId(72)];
    let outcome = OutgoingOutcome::Posted { channel_id: ChannelId(7), message_ids };
    world.submit(Event::OutgoingFinished { outgoing_id: hook.outgoing_id.clone(), outcome });
    let opening = world.state.outgoing.values().find(|it| matches!(it.act, Act::OpenRoom { .. }));
    let opening = opening.expect("a room is opened").clone();
    assert_eq!(opening.target, Target::Room(id.clone()));
    let name = "tidy up".to_owned();
    let act = Act::OpenRoom { channel_id: ChannelId(7), message_id: MessageId(71), name };
    assert_eq!(opening.act, act);
    let outcome = OutgoingOutcome::RoomOpened { thread_id: ChannelId(71) };
    world.submit(Event::OutgoingFinished { outgoing_id: opening.outgoing_id.clone(), outcome });
    assert_eq!(
        world.request(&id).conversation.room.and_then(|room| room.thread_id),
        Some(ChannelId(71))
    );
    assert_eq!(world.state.rooms.get(&ChannelId(71)), Some(&id));
}
