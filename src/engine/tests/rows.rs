//! Rows of `spec/teams.md` 14.3, 14.4, 14.6 and 14.7 that take a whole decision, each by its name.

use std::sync::Arc;

use serde_json::{Value, json};

use super::world::{GENERAL, Todo as Next, World, good, policy, result};
use crate::domain::attachment::Attachment;
use crate::domain::change::Change;
use crate::domain::criterion;
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::envelope::{EnvelopeFolder, EnvelopeKind};
use crate::domain::event::Event;
use crate::domain::finding::{Finding, Signal};
use crate::domain::ids::{
    ChannelId, EnvelopeId, IdSupply, ItemId, MessageId, RequestId, RunId, UserId,
};
use crate::domain::incoming::Message;
use crate::domain::item::{Item, ItemKind, ItemSource, ItemStatus};
use crate::domain::origin::Origin;
use crate::domain::outgoing::{NamedChannel, OutgoingOutcome, Target};
use crate::domain::policy::{Holders, Policy, Right, SprintPolicy};
use crate::domain::record::AnyRecord;
use crate::domain::request::{EventKind, Request, RequestStatus};
use crate::domain::result::{ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::routes::{Lane, Routes};
use crate::domain::run::{FailKind, Run, RunOutcome};
use crate::domain::sprint::Duty;
use crate::domain::time::Timestamp;
use crate::engine::{Answer, Input, decide};

const RELAY: ChannelId = ChannelId(11);
const BOT: UserId = UserId(200);

fn take(world: &mut World, message: Message) -> Answer {
    world.submit(Event::Message(message))
}

fn only(world: &World) -> Request {
    assert_eq!(world.state.requests.len(), 1);
    Request::clone(world.state.requests.values().next().expect("one request"))
}

fn file(name: &str, saved: bool) -> Attachment {
    Attachment {
        filename: name.to_owned(),
        size: 3,
        saved: saved.then(|| format!("shared_workspace/attachments/{name}")),
    }
}

#[test]
fn i07_in_the_relay_channel_a_trusted_bot_is_heard_without_a_mention_and_a_person_is_not() {
    let mut rules = policy();
    rules.trusted_bots.insert(BOT);
    rules.rights.values_mut().for_each(|holders| {
        holders.users.insert(BOT);
    });
    let mut world = World::new(rules);
    let mut words = world.words(RELAY, 1, "what is left?");
    words.addressed = false;
    assert!(matches!(take(&mut world, words), Answer::Ignored(_)));
    let mut words = world.words(RELAY, 2, "what is left?");
    words.addressed = false;
    words.author.id = BOT;
    words.author.is_bot = true;
    assert_eq!(take(&mut world, words), Answer::Accepted);
    assert_eq!(only(&world).scope, "what is left?");
}

#[test]
fn i08_files_alone_are_one_request_about_the_files() {
    let mut world = World::new(policy());
    let mut words = world.words(GENERAL, 1, " ");
    words.attachments = vec![file("a.txt", true), file("b.txt", true)];
    take(&mut world, words);
    let request = only(&world);
    assert!(request.scope.starts_with("2 file"), "{}", request.scope);
    assert_eq!(request.artifacts.len(), 2);
}

#[test]
fn i09_files_alone_that_could_not_be_saved_are_answered_and_no_request() {
    let mut world = World::new(policy());
    let mut words = world.words(GENERAL, 1, "");
    words.attachments = vec![file("a.txt", false)];
    take(&mut world, words);
    assert!(world.state.requests.is_empty());
    assert_eq!(world.said, ["attachments_failed"]);
}

#[test]
fn i10_the_line_of_a_hand_off_is_nobodys_request() {
    let mut rules = policy();
    rules.trusted_bots.insert(BOT);
    rules.rights.values_mut().for_each(|holders| {
        holders.users.insert(BOT);
    });
    let mut world = World::new(rules);
    for (number, line) in [
        "내부 relay 요약: planner -> developer",
        "Orchestrator → Planner · hand-off · first plan · `20260324-1a2b3c4d` · greet",
    ]
    .into_iter()
    .enumerate()
    {
        let mut words = world.words(RELAY, 1 + number as u64, line);
        (words.addressed, words.author.id, words.author.is_bot) = (false, BOT, true);
        assert!(matches!(take(&mut world, words), Answer::Ignored(_)), "{line}");
    }
    // Our own is known by its author, whatever it says.
    let mut words = world.words(RELAY, 3, "do task 1");
    (words.addressed, words.author.id, words.author.is_bot) = (false, UserId(1), true);
    assert!(matches!(take(&mut world, words), Answer::Ignored(_)));
    assert!(world.state.requests.is_empty());
}

#[test]
fn i11_i12_where_mentions_or_direct_messages_are_off_nobody_is_heard_that_way() {
    let mut world = World::new(Policy { mentions: false, dm: false, ..policy() });
    let words = world.words(GENERAL, 1, "do task 1");
    assert!(matches!(take(&mut world, words), Answer::Ignored(_)));
    let mut words = world.words(GENERAL, 2, "do task 1");
    words.guild_id = None;
    assert!(matches!(take(&mut world, words), Answer::Ignored(_)));
    assert!(world.state.requests.is_empty());
    assert!(world.said.is_empty(), "and no receipt");
}

#[test]
fn i21_the_same_words_while_it_is_under_way_are_the_same_request() {
    let mut world = World::new(policy());
    let id = world.message("do task 1");
    let again = world.words(GENERAL, 77, "do task 1");
    take(&mut world, again);
    assert_eq!(only(&world).request_id, id);
    assert!(world.said.iter().any(|key| key == "reused"));
    let reused =
        |change: &Change| matches!(change, Change::Event(_, it) if it.kind == EventKind::Reused);
    assert!(world.log.iter().any(reused));
}

#[test]
fn i23_the_same_words_while_the_orchestrator_is_stuck_try_it_again() {
    let mut world = World::new(policy());
    let id = world.message("do task 1");
    while world.request(&id).status != RequestStatus::Blocked {
        match world.todo().first().cloned().expect("something to do") {
            Next::Run(envelope) => world.run(&envelope, super::world::crash()),
            other @ (Next::Report(_) | Next::Effect(_)) => world.do_well(&other),
        }
    }
    let again = world.words(GENERAL, 78, "do task 1");
    take(&mut world, again);
    let request = only(&world);
    assert_eq!(request.status, RequestStatus::Delegated);
    assert_eq!(request.route.current_role, Some(Role::Orchestrator));
    assert!(world.said.iter().any(|key| key == "retried"));
}

#[test]
fn i27_the_orchestrator_asks_how_the_sprint_stands() {
    let mut world = World::new(policy());
    let id = world.message("how is the sprint?");
    let ask = json!({ "control_action": { "kind": "sprint_lifecycle", "command": "status" } });
    let Some(Next::Run(envelope)) = world.todo().first().cloned() else { panic!("no run") };
    world.run(&envelope, RunOutcome::Result(Arc::new(result(Role::Orchestrator, ask))));
    let Some(Next::Report(relay_id)) = world.todo().first().cloned() else { panic!("no report") };
    world.submit(Event::ReportReady { relay_id });
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
    assert!(world.said.iter().any(|key| key == "sprint.status"), "{:?}", world.said);
}

#[test]
fn what_others_wrote_is_not_done_with_the_rights_of_whoever_asked() {
    // Also not where the words are deleted once a role has read them.
    for (others, deleted) in [(false, false), (true, false), (true, true)] {
        let mut rules = policy();
        let members = Holders { users: [UserId(101)].into(), ..Holders::default() };
        rules.rights.insert(Right::Ask, members);
        let mut world = World::new(rules);
        let second = world.message("make it blue");
        let id = world.message("how is the sprint?");
        world.deliver();
        let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
        let mut words = world.words(room.expect("a room"), 90, "and withdraw the blue one");
        if others {
            words.author.id = UserId(101);
            words.author.name = "Mina".to_owned();
        }
        take(&mut world, words);
        let asked = json!({ "control_action": { "kind": "cancel_request", "request_id": second.as_str() } });
        let answer = RunOutcome::Result(Arc::new(result(Role::Orchestrator, asked)));
        let mine =
            |world: &World, run: &EnvelopeId| world.state.envelopes[run].envelope.request_id == id;
        if deleted {
            let (channel_id, message_id) = (room.expect("a room"), MessageId(90));
            world.submit(Event::MessageDeleted { channel_id, message_id });
            assert!(world.request(&id).params.followups.is_empty());
        }
        let todo = world.todo().into_iter();
        let run = todo.filter_map(|it| if let Next::Run(run) = it { Some(run) } else { None });
        let run = run.into_iter().find(|run| mine(&world, run)).expect("its run");
        world.run(&run, answer);
        let Some(Next::Report(report)) =
            world.todo().into_iter().find(|it| matches!(it, Next::Report(_)))
        else {
            panic!("no report")
        };
        world.submit(Event::ReportReady { relay_id: report });
        let status = world.request(&second).status;
        assert_eq!(status == RequestStatus::Cancelled, !others, "{status:?}");
        assert_eq!(world.said.contains(&"control.others_wrote".to_owned()), others);
    }
}

#[test]
fn i30_a_message_to_a_role_goes_to_the_orchestrator_which_knows_whom_it_was_for() {
    let mut world = World::new(policy());
    let mut words = world.words(GENERAL, 1, "add a test");
    words.role = Some(Role::Developer);
    take(&mut world, words);
    let request = only(&world);
    assert_eq!(request.route.current_role, Some(Role::Orchestrator));
    assert_eq!(request.params.user_requested_role, Some(Role::Developer));
}

#[test]
fn a_message_to_a_role_is_looked_at_by_it_and_goes_the_usual_way_where_that_cannot_answer() {
    let handling = |mode: &str| json!({ "request_handling": { "mode": mode } });
    for role in Role::ADDRESSED {
        let mut world = World::new(policy());
        let mut words = world.words(GENERAL, 1, "how is this tested?");
        words.role = Some(role);
        take(&mut world, words);
        let request = only(&world);
        assert_eq!(request.route.current_role, Some(role));
        let Some(Next::Run(run)) = world.todo().first().cloned() else { panic!("no run") };
        assert_eq!(world.state.envelopes[&run].step, None, "it reads, and changes nothing");
        world.run(&run, RunOutcome::Result(Arc::new(result(role, handling("complete")))));
        world.finish_well();
        let request = world.request(&request.request_id);
        assert_eq!((request.status, request.work.spent.turns), (RequestStatus::Completed, 1));
    }
    for (role, lane) in [(Role::Qa, Lane::Quick), (Role::Planner, Lane::Standard)] {
        let mut world = World::new(Policy { routes: Arc::clone(Routes::built_in()), ..policy() });
        let mut words = world.words(GENERAL, 1, "as discussed");
        words.role = Some(role);
        take(&mut world, words);
        let id = only(&world).request_id;
        for mode in ["route", "route"] {
            let Some(Next::Run(run)) = world.todo().first().cloned() else { panic!("no run") };
            let role = world.state.envelopes[&run].target_role;
            let intent =
                json!({"intent": "implementation_only", "confidence": 95, "size": "normal"});
            let mut said = handling(mode);
            if role == Role::Orchestrator {
                said["request_intent"] = intent;
            }
            world.run(&run, RunOutcome::Result(Arc::new(result(role, said))));
            while let Some(todo) =
                world.todo().first().cloned().filter(|it| !matches!(it, Next::Run(_)))
            {
                world.do_well(&todo);
            }
        }
        assert!(world.said.contains(&"room.passed_on".to_owned()));
        assert_eq!(world.request(&id).route.lane.map(|it| it.lane), Some(lane), "{role}");
        world.finish_well();
        assert_eq!(world.request(&id).status, RequestStatus::Committed);
    }
}

#[test]
fn a_criterion_that_is_bound_to_no_configured_check_is_qas_and_the_room_says_so() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    while let Some(todo) = world.todo().first().cloned() {
        if let Next::Run(run) = &todo
            && world.state.envelopes[run].target_role == Role::Planner
        {
            let step = world.state.envelopes[run].step;
            let mut said = RoleResult::clone(&good(Role::Planner, step));
            said.proposals.acceptance_criteria = Some(vec![
                "(check: unit) it adds".to_owned(),
                "(check: lint) it is tidy".to_owned(),
            ]);
            world.run(run, RunOutcome::Result(Arc::new(said)));
            break;
        }
        world.do_well(&todo);
    }
    let report = world.todo()[0].clone();
    world.do_well(&report);
    let criteria = world.request(&id).work.criteria;
    assert_eq!(criterion::written(&criteria), ["(check: unit) it adds", "it is tidy"]);
    assert!(world.said.contains(&"room.unknown_checks".to_owned()));
}

#[test]
fn a_blocked_request_is_resumed_by_its_id_from_any_channel_by_whoever_may() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let stuck = |world: &mut World| {
        let Some(Next::Run(run)) = world.todo().first().cloned() else { panic!("no run") };
        let mut said = result(Role::Orchestrator, json!({}));
        said.status = ResultStatus::Blocked;
        "which one?".clone_into(&mut said.error);
        world.run(&run, RunOutcome::Result(Arc::new(said)));
        let report = world.todo()[0].clone();
        world.do_well(&report);
    };
    stuck(&mut world);
    assert_eq!(world.request(&id).status, RequestStatus::Blocked);
    let words = world.words(ChannelId(4242), 9, &format!("Please resume {id}, the first one"));
    take(&mut world, words);
    assert_eq!(world.state.requests.len(), 1, "no other one");
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Delegated);
    assert!(request.params.followups[0].body.contains("the first one"));
    // Where nothing more is said, the same is tried again, and that is no answer.
    stuck(&mut world);
    for said in [format!("resume {id}"), format!("{id} 재개해 주세요.")] {
        let number = 20 + world.clock.unsigned_abs();
        let words = world.words(ChannelId(4242), number, &said);
        take(&mut world, words);
        let request = world.request(&id);
        assert_eq!((request.status, request.params.followups.len()), (RequestStatus::Delegated, 1));
        stuck(&mut world);
    }
    // What somebody told the team alone is resumed by nobody else.
    let mut dm = world.request(&id);
    dm.conversation.reply_route.is_dm = true;
    dm.conversation.reply_route.author_id = Some(BOT);
    world.state.requests.insert(id.clone(), Arc::new(dm));
    let words = world.words(GENERAL, 10, &format!("resume {id}"));
    take(&mut world, words);
    assert_eq!(world.request(&id).status, RequestStatus::Blocked);
    assert!(world.state.requests.values().all(|it| it.params.follows_request_id.is_none()));
}

#[test]
fn r04_a_hand_off_is_one_envelope_whatever_becomes_of_its_line() {
    // A record of the journal and no send: there is no status of sending that could be anything but done.
    let mut world = World::new(policy());
    let id = world.message("do task 1");
    let lines: Vec<_> = (world.state.outgoing.values())
        .filter(|it| it.target == Target::Named(NamedChannel::Relay))
        .map(|it| it.outgoing_id.clone())
        .collect();
    assert_eq!(lines.len(), 1);
    for outgoing_id in lines {
        let outcome =
            OutgoingOutcome::Refused { reason: "no such channel".to_owned(), place: true };
        world.submit(Event::OutgoingFinished { outgoing_id, outcome });
    }
    let waiting: Vec<_> = world.state.envelopes.values().collect();
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        (waiting[0].kind, waiting[0].place),
        (EnvelopeKind::Delegate, EnvelopeFolder::Inbox)
    );
    assert_eq!(waiting[0].target_role, Role::Orchestrator);
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn r10_a_report_without_a_result_is_a_dead_letter() {
    // The result of an earlier step is not taken for this one's: the sender's envelope is still there.
    let mut world = World::new(policy());
    let id = world.message("do task 1");
    let Some(Next::Run(first)) = world.todo().first().cloned() else { panic!("no run") };
    let answer = result(Role::Orchestrator, json!({ "workflow_transition": {} }));
    world.run(&first, RunOutcome::Result(Arc::new(answer)));
    let Some(Next::Report(report)) = world.todo().first().cloned() else { panic!("no report") };
    world.submit(Event::ReportReady { relay_id: report });
    let request = world.state.requests[&id].clone();
    assert!(request.work.result.is_some() && request.route.current_role == Some(Role::Research));
    let mut empty = super::edges::dropped(&world, &id, Role::Research, None);
    (empty.report, empty.envelope.body) = (None, "done, see above".to_owned());
    empty.envelope.params.result = None;
    let relay_id = empty.relay_id.clone();
    world.state.apply(&Change::save(empty));
    let answer = world.submit(Event::ReportReady { relay_id });
    assert_eq!(answer, Answer::Ignored("the report has no result that counts"));
    assert_eq!(world.dead_letters(), 1);
    assert_eq!(world.state.requests[&id], request);
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn k09_a_role_keeps_its_conversation_for_a_request_and_begins_another_for_the_next() {
    // For a request and not for a sprint: what was said about one todo is nothing to another.
    let mut world = World::new(policy());
    let talk = |world: &mut World, id: &RequestId, session: &str| {
        world.session = Some(session.to_owned());
        let mine = |todo: &&Next| matches!(todo, Next::Run(it) if world.state.envelopes[it].envelope.request_id == *id);
        let next = world.todo().iter().find(mine).cloned().expect("a run");
        world.do_well(&next);
        world.session = None;
    };
    let known = |world: &World, id: &RequestId| {
        let key = crate::domain::state::session_key(Role::Orchestrator, id);
        world.state.sessions.get(&key).map(|it| (it.session_id.clone(), it.created_at))
    };
    let (one, two) = (world.message("do task 1"), world.message("do task 2"));
    talk(&mut world, &one, "first");
    talk(&mut world, &two, "second");
    let begun = known(&world, &one).expect("a conversation");
    assert_eq!(begun.0, "first");
    assert_eq!(known(&world, &two).expect("another").0, "second");
    world.finish_well();
    world.deliver();
    assert!(world.state.sessions.is_empty(), "they end with their requests");
}

#[test]
fn a_conversation_that_fills_up_is_told_of_once_and_then_handed_over() {
    use crate::domain::conversation::{ContextLevel, Conversation, Fill, FillUnit, HandedOver};
    use crate::domain::run::FailKind;

    // What a run of the orchestrator tells, and how the record stands then.
    let mut world = World::new(policy());
    let id = world.message("do task 1");
    let next = world.todo().first().cloned().expect("a run");
    let run = super::steering::run_of(&world, &next, "run-full");
    world.submit(Event::RunStarting(run.clone()));
    let fill = |used| Some(Fill { used, size: 200_000, measured: FillUnit::Tokens });
    let handed = HandedOver { from: "older".to_owned(), by_itself: true };
    let report = |conversation: Conversation, full: bool| {
        let mut report = super::steering::finished(&run);
        report.session_id = Some("first".to_owned());
        report.conversation = conversation;
        if full {
            let (kind, message) = (FailKind::Context, "full".to_owned());
            report.outcome = RunOutcome::Failed { kind, message, until: None, answer: None };
        }
        report
    };
    let tell = |conversation: Conversation, full: bool, room: ContextLevel| {
        let input = Input {
            event: Event::RunFinished(Box::new(report(conversation, full))),
            now: Timestamp::from_millis(1),
            ids: IdSupply::new(uuid::Uuid::from_u128(77)),
        };
        let decision = decide(&world.state, &world.policy, input);
        let kinds = decision.changes.iter().filter_map(|change| {
            let Change::Event(_, event) = change else { return None };
            Some(event.kind)
        });
        let kinds: Vec<&str> = kinds.map(EventKind::as_str).collect();
        let session = decision.changes.iter().find_map(|change| {
            let Change::Save(AnyRecord::Session(session)) = change else { return None };
            Some(session.clone())
        });
        assert_eq!(session.expect("a session").room, room);
        kinds
    };
    let with = |used| Conversation { fill: fill(used), ..Conversation::default() };
    let none = [] as [&str; 0];
    assert_eq!(tell(with(10_000), false, ContextLevel::Plenty), none);
    assert_eq!(tell(with(131_000), false, ContextLevel::Low), ["conversation_low"]);
    assert_eq!(tell(with(151_000), false, ContextLevel::HandOver), ["conversation_full"]);
    assert_eq!(tell(Conversation::default(), true, ContextLevel::Full), ["conversation_full"]);
    assert_eq!(tell(Conversation::default(), false, ContextLevel::Plenty), none);
    let begun = Conversation {
        handed_over: Some(handed),
        prompt_cut: vec!["diff".to_owned()],
        fill: fill(9_000),
        ..Conversation::default()
    };
    assert_eq!(
        tell(begun, false, ContextLevel::Plenty),
        ["conversation_handed_over", "prompt_cut"]
    );

    // What was told once is not told again, and what is known does not get better by itself.
    let mut report = report(with(131_000), false);
    world.submit(Event::RunFinished(Box::new(report.clone())));
    let key = crate::domain::state::session_key(Role::Orchestrator, &id);
    assert_eq!(world.state.sessions[&key].room, ContextLevel::Low);
    let mut state = world.state.clone();
    state.runs.insert(run.run_id.clone(), Arc::new(run.clone()));
    let request = state.requests.get_mut(&id).expect("open");
    Arc::make_mut(request).work.active_run = Some(run.run_id.clone());
    report.conversation = Conversation::default();
    let input = Input {
        event: Event::RunFinished(Box::new(report)),
        now: Timestamp::from_millis(2),
        ids: IdSupply::new(uuid::Uuid::from_u128(78)),
    };
    let decision = decide(&state, &world.policy, input);
    let session = decision.changes.iter().find_map(|change| {
        let Change::Save(AnyRecord::Session(session)) = change else { return None };
        Some(session.clone())
    });
    assert_eq!(session.map(|it| (it.room, it.fill)), Some((ContextLevel::Low, fill(131_000))));
}

#[test]
fn k10_what_an_earlier_life_of_a_run_says_counts_for_nothing() {
    let mut world = World::new(policy());
    world.message("do task 1");
    let Some(Next::Run(envelope)) = world.todo().first().cloned() else { panic!("no run") };
    let run = |generation: u32| Run {
        generation,
        agent: crate::domain::config::AgentKind::Rehearsal,
        ..Run::new(
            RunId::parse("run-a").expect("an id"),
            world.state.envelopes[&envelope].envelope.request_id.clone(),
            (Role::Orchestrator, None),
            envelope.clone(),
            Timestamp::from_millis(0),
        )
    };
    let (old, new) = (run(1), run(2));
    world.submit(Event::RunStarting(old.clone()));
    let (run_id, generation) = (old.run_id.clone(), old.generation);
    world.submit(Event::RunTakenAway { run_id, generation, usage: Default::default() });
    let stale = world.submit(Event::RunFinished(Box::new(super::steering::finished(&old))));
    assert_eq!(stale, Answer::Ignored("a result of an older generation"));
    let fresh = world.submit(Event::RunFinished(Box::new(super::steering::finished(&new))));
    assert_eq!(fresh, Answer::Accepted);
}

fn blocked_item(world: &mut World) {
    let id = ItemId::parse("backlog-20260324-00000001").expect("an id");
    let now = Timestamp::from_millis(1);
    let mut item = Item::new(id, "stuck", "do it", ItemKind::Feature, now);
    item.status = ItemStatus::Blocked;
    world.state.apply(&Change::save(item));
    let id = ItemId::parse("backlog-20260324-00000002").expect("an id");
    let item = Item::new(id, "free", "do that", ItemKind::Feature, now);
    world.state.apply(&Change::save(item));
}

fn with_duty(world: &World, duty: Duty) -> usize {
    let made = |change: &&Change| {
        let Change::Save(AnyRecord::Request(request)) = change else { return false };
        request.duty() == Some(duty) && request.created_at == request.updated_at
    };
    world.log.iter().filter(made).count()
}

#[test]
fn s29_what_is_blocked_is_reviewed_once() {
    let mut world = World::new(policy());
    blocked_item(&mut world);
    for _ in 0..3 {
        world.submit(Event::Tick);
    }
    assert_eq!(with_duty(&world, Duty::BlockedReview), 1);
    assert!(world.state.sprints.is_empty(), "the sprint waits for it");
    world.finish_well();
    assert_eq!(with_duty(&world, Duty::BlockedReview), 1);
    assert!(!world.state.sprints.is_empty());
}

#[test]
fn s30_the_same_findings_are_not_looked_at_twice() {
    let look =
        SprintPolicy { discovery_actions: vec!["tests".to_owned()], ..SprintPolicy::default() };
    let mut world = World::new(Policy { sprint: look, ..policy() });
    for round in 0..3 {
        assert!(world.wait_until_due(), "round {round}");
        let found = EffectOutcome::Discovered {
            findings: vec![uncommitted()],
            watermarks: std::collections::BTreeMap::new(),
        };
        let look =
            world.state.effects.values().find(|it| matches!(it.kind, EffectKind::Discover { .. }));
        let look = look.map(|it| it.effect_id.clone()).expect("a look");
        world.effect(&look, found);
        world.finish_with(|_| None);
    }
    assert_eq!(with_duty(&world, Duty::Sourcing), 1, "one model call for one finding");
    assert_eq!(with_duty(&world, Duty::SourcerReview), 1);
}

fn uncommitted() -> Finding {
    Finding {
        signal: Signal::GitDirty,
        trace: "git_dirty=a.py".to_owned(),
        title: "a.py is not committed".to_owned(),
        summary: "a.py".to_owned(),
        origin: Origin::default(),
    }
}

/// A look that finds something.
fn found(world: &mut World) {
    let look = loop {
        let mut looks = world.state.effects.values();
        if let Some(look) = looks.find(|it| matches!(it.kind, EffectKind::Discover { .. })) {
            break look.effect_id.clone();
        }
        assert!(world.wait_until_due());
    };
    let watermarks = std::collections::BTreeMap::new();
    world.effect(&look, EffectOutcome::Discovered { findings: vec![uncommitted()], watermarks });
}

/// The role that has the next step answers this.
fn answers(world: &mut World, role: Role, proposals: Value) {
    let next = world.todo().into_iter().find_map(|next| match next {
        Next::Run(id) if world.state.envelopes[&id].target_role == role => Some(id),
        Next::Run(_) | Next::Report(_) | Next::Effect(_) => None,
    });
    world.run(&next.expect("it is asked"), RunOutcome::Result(Arc::new(result(role, proposals))));
    while let Some(report) = world.todo().into_iter().find(|next| matches!(next, Next::Report(_))) {
        world.do_well(&report);
    }
}

fn looks() -> World {
    let look =
        SprintPolicy { discovery_actions: vec!["tests".to_owned()], ..SprintPolicy::default() };
    World::new(Policy { sprint: look, ..policy() })
}

#[test]
fn a_sourcer_that_finds_nothing_worth_it_is_believed() {
    let mut world = looks();
    found(&mut world);
    answers(&mut world, Role::Sourcer, json!({ "backlog_items": [] }));
    assert_eq!(with_duty(&world, Duty::SourcerReview), 0);
    assert_eq!(
        world.state.scheduler.sourcing.status,
        Some(crate::domain::schedule::SourcingStatus::NoChanges)
    );
}

#[test]
fn s31_candidates_of_another_milestone_wait_for_the_end_of_the_sprint() {
    let mut own = super::sprints::by_hand();
    own.sprint.discovery_actions = vec!["tests".to_owned()];
    let mut world = World::new(own);
    world.command(super::sprints::kickoff());
    super::sprint_ends::until_at_work(&mut world);
    found(&mut world);
    let candidate = |title: &str, milestone: &str| json!({ "title": title, "scope": "s", "milestone_title": milestone });
    let items = json!([candidate("Remember me", "Sign in"), candidate("Send it", "Postcards")]);
    answers(&mut world, Role::Sourcer, json!({ "backlog_items": items }));
    let judged = |world: &World| {
        let mut reviews: Vec<_> = world.state.requests.values().collect();
        reviews.retain(|it| it.duty() == Some(Duty::SourcerReview) && !it.status.is_terminal());
        let duty = reviews.last().and_then(|it| it.params.duty.clone());
        let candidates = duty.iter().flat_map(|duty| duty.candidates());
        candidates.map(|it| it.title.clone()).collect::<Vec<_>>()
    };
    assert_eq!(judged(&world), ["Remember me"]);
    world.finish_with(|_| None);
    assert!(world.state.active_sprint().is_none());
    assert_eq!(world.state.scheduler.sourcing.for_later.len(), 1);
    // The planner cannot judge it, once.
    found(&mut world);
    assert_eq!(judged(&world), ["Send it"], "the finding itself is no news");
    let failed = |world: &mut World| {
        while judged(world) == ["Send it"] {
            let next = world.todo().into_iter().next().expect("it is asked");
            match next {
                Next::Run(id) => {
                    world.run(&id, RunOutcome::failed(FailKind::Other, "no".to_owned()))
                }
                other @ (Next::Report(_) | Next::Effect(_)) => world.do_well(&other),
            }
        }
    };
    failed(&mut world);
    assert_eq!(world.state.scheduler.sourcing.for_later.len(), 1);
    found(&mut world);
    assert_eq!(judged(&world), ["Send it"]);
    failed(&mut world);
    assert!(world.said.contains(&"sourcing.left".to_owned()), "{:?}", world.said);
    assert!(world.state.scheduler.sourcing.for_later.is_empty(), "it is told instead");
}

#[test]
fn of_a_review_what_is_wrong_is_told_and_the_rest_is_taken() {
    let mut world = looks();
    found(&mut world);
    answers(&mut world, Role::Sourcer, json!({}));
    let items = json!([
        { "title": "Greet", "scope": "greet", "depends_on": ["Commit a.py"] },
        { "title": "Commit a.py", "scope": "commit it" },
        { "title": "Tidy up", "scope": "tidy", "kind": "improvement" },
        { "title": "Pass it off", "scope": "mine", "source": "user" },
    ]);
    answers(&mut world, Role::Planner, json!({ "backlog_items": items }));
    let titles: Vec<_> =
        world.state.backlog.values().map(|it| (it.title.as_str(), it.source)).collect();
    let agents = titles.iter().all(|(_, source)| *source == ItemSource::Sourcer);
    assert_eq!((titles.len(), agents), (3, true), "{titles:?}");
    assert!(world.said.contains(&"backlog.not_taken".to_owned()), "{:?}", world.said);
}

/// An item of an older workspace says what it was found by in the keys of its origin only.
#[test]
fn s33_what_an_older_item_was_made_of_is_not_found_again() {
    let origin =
        Origin::default().with("signal", "open_request").with("request_id", "20260324-1a2b3c4d");
    let look =
        SprintPolicy { discovery_actions: vec!["tests".to_owned()], ..SprintPolicy::default() };
    let mut world = World::new(Policy { sprint: look, ..policy() });
    let id = ItemId::parse("backlog-20260324-0a1b2c3d").expect("an id");
    let now = Timestamp::from_millis(world.clock);
    let kind = ItemKind::Bug;
    let mut item = Item::new(id.clone(), "It failed", "", kind, now);
    item.origin = origin.clone();
    item.status = ItemStatus::Blocked;
    world.state.backlog.insert(id, Arc::new(item));
    assert!(world.wait_until_due());
    let finding = Finding {
        signal: Signal::OpenRequest,
        trace: "request:20260324-1a2b3c4d".to_owned(),
        title: "20260324-1a2b3c4d failed".to_owned(),
        summary: String::new(),
        origin,
    };
    let found = EffectOutcome::Discovered {
        findings: vec![finding],
        watermarks: std::collections::BTreeMap::new(),
    };
    let look =
        world.state.effects.values().find(|it| matches!(it.kind, EffectKind::Discover { .. }));
    let look = look.map(|it| it.effect_id.clone()).expect("a look");
    world.effect(&look, found);
    assert_eq!(
        world.state.scheduler.sourcing.status,
        Some(crate::domain::schedule::SourcingStatus::NoChanges)
    );
    assert_eq!(with_duty(&world, Duty::Sourcing), 0);
}

#[test]
fn k12_k13_research_without_a_source_or_without_a_decision_degrades_by_name() {
    let prepass = |proposals: Value| {
        let mut world = World::new(Policy {
            sprint: SprintPolicy { research: true, ..SprintPolicy::default() },
            ..policy()
        });
        world.command(super::sprints::kickoff());
        while let Some(next) = world.todo().first().cloned() {
            if let Next::Run(id) = &next
                && world.state.envelopes[id].target_role == Role::Research
            {
                let said = result(Role::Research, proposals.clone());
                world.run(id, RunOutcome::Result(Arc::new(said)));
                continue;
            }
            world.do_well(&next);
        }
        let sprint = world.state.sprints.values().next().cloned().expect("a sprint");
        let prepass = sprint.planning.research.clone().expect("it was asked");
        (prepass.status.as_str(), prepass.reason_code, sprint.status.as_str())
    };
    let report = json!({
        "research_signal": { "needed": true, "reason_code": "needed_external_grounding" },
        "research_report": { "headline": "h", "planner_guidance": "g", "backing_sources": [],
            "backing_reasoning": ["r"], "spec_implications": ["s"] },
    });
    assert_eq!(prepass(report), ("failed", "no_web_source".to_owned(), "completed"));
    let undecided = json!({ "research_signal": { "reason_code": "blocked_decision_failed" } });
    assert_eq!(prepass(undecided), ("blocked", "blocked_decision_failed".to_owned(), "completed"));
}
