//! Messages that are edited or deleted while the team works on what they asked for.

use std::sync::Arc;

use super::scenes::{report, work_until};
use super::steering::{finished, run_of};
use super::world::{GENERAL, Todo, World, policy, press, result};
use crate::domain::actor::Author;
use crate::domain::block::BlockCode;
use crate::domain::effect::{Effect, EffectKind};
use crate::domain::event::Event;
use crate::domain::gate::Stance;
use crate::domain::ids::{ChannelId, MessageId, RequestId, UserId};
use crate::domain::incoming::{Command, Message};
use crate::domain::outgoing::{Act, ButtonAct, Post};
use crate::domain::policy::{GateTable, PlanStances, Policy};
use crate::domain::request::{EventKind, Followup, RequestStatus};
use crate::domain::result::ResultStatus;
use crate::domain::role::Role;
use crate::domain::run::{FailKind, RunOutcome};
use crate::domain::time::Timestamp;
use crate::engine::lifecycle::steps;
use crate::engine::{Answer, Wake};

const FIRST: MessageId = MessageId(77);

/// A team that was asked for something, with the message that did.
fn asked(policy: Policy) -> (World, RequestId, Message) {
    let mut world = World::new(policy);
    let words = world.words(GENERAL, FIRST.0, "make it red");
    world.submit(Event::Message(words.clone()));
    let id = world.state.requests.keys().next().cloned().expect("a request");
    (world, id, words)
}

fn edited(words: &Message, text: &str) -> Event {
    Event::MessageEdited(Message { content: text.to_owned(), ..words.clone() })
}

#[test]
fn a_message_that_an_edit_addresses_to_the_team_is_taken_in_once() {
    let mut world = World::new(policy());
    let words = world.words(GENERAL, FIRST.0, "make it red");
    world.submit(Event::Message(Message { addressed: false, ..words.clone() }));
    world.submit(Event::Seen { channel_id: GENERAL, message_id: MessageId(FIRST.0 + 1) });
    assert!(world.state.requests.is_empty());
    let late = Timestamp::from_millis(words.created_at.millis() - 3_600_000);
    world.submit(edited(&Message { created_at: late, ..words.clone() }, "make it red"));
    assert!(world.state.requests.is_empty(), "one of long ago may have been taken in");
    for _ in 0..2 {
        world.submit(edited(&words, "make it red"));
        assert_eq!(world.state.requests.len(), 1);
    }
    let mark = world.state.channels[&GENERAL].watermark;
    assert_eq!(mark, MessageId(FIRST.0 + 1), "what comes before it may still wait");
    // It is over, and so much was written since that its message is not among the newest any more.
    world.finish_well();
    for number in 0..100 {
        let other = world.words(GENERAL, 100_000 + number, "good morning");
        world.submit(Event::Message(Message { addressed: true, ..other }));
    }
    assert!(!world.state.channels[&GENERAL].recent.contains(&words.message_id));
    let before = world.state.requests.len();
    world.submit(edited(&words, "make it red!"));
    assert_eq!(world.state.requests.len(), before);
}

#[test]
fn an_edit_takes_the_place_of_what_was_asked_and_reaches_the_agent_at_work() {
    let (mut world, id, words) = asked(policy());
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-edited");
    world.submit(Event::RunStarting(run.clone()));
    world.wakes.clear();
    assert_eq!(world.submit(edited(&words, "make it blue")), Answer::Accepted);
    assert!(world.wakes.contains(&Wake::SteerRun(run.run_id.clone())));
    assert!(world.said.contains(&"room.edited".to_owned()));
    let request = world.request(&id);
    assert_eq!((request.body.as_str(), request.scope.as_str()), ("make it blue", "make it blue"));
    assert_eq!(request.params.earlier_bodies, ["make it red"]);
    // The agent took the words while it worked: the work goes on as it would have.
    let mut report = finished(&run);
    report.heard = vec![FIRST];
    world.submit(Event::RunFinished(Box::new(report)));
    assert!(!world.request(&id).params.unread_edit);
    world.finish_well();
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Committed);
    assert_eq!(request.params.followups, [], "it was built once");
}

#[test]
fn discords_own_edits_change_nothing() {
    let (mut world, id, words) = asked(policy());
    work_until(&mut world, |role, _| role == Role::Developer);
    assert!(matches!(world.submit(edited(&words, "make it red")), Answer::Ignored(_)));
    let request = world.request(&id);
    assert!(request.params.earlier_bodies.is_empty() && request.params.followups.is_empty());
}

#[test]
fn an_edit_that_no_role_has_read_goes_back_to_the_planner_instead_of_to_the_branch() {
    let (mut world, id, words) = asked(policy());
    let todo = work_until(&mut world, |_, step| step == Some(steps::QA));
    let run = run_of(&world, &todo, "run-qa");
    world.submit(Event::RunStarting(run.clone()));
    world.submit(edited(&words, "make it blue"));
    // It could not be told any more.
    world.submit(Event::RunFinished(Box::new(finished(&run))));
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    assert_eq!(world.request(&id).status, RequestStatus::Delegated);
    assert_eq!(world.request(&id).outcome.commit_sha, None);
    world.do_well(&todo);
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn nobody_is_asked_about_a_plan_by_words_that_are_not_wanted_any_more() {
    let gates = GateTable { plan: PlanStances::All(Stance::Ask), ..GateTable::default() };
    for later in [false, true] {
        let (mut world, id, words) = asked(Policy { gates: gates.clone(), ..policy() });
        let todo = work_until(&mut world, |role, _| role == Role::Planner);
        world.deliver();
        let run = run_of(&world, &todo, "run-plan");
        world.submit(Event::RunStarting(run.clone()));
        // Nobody who is at work hears this.
        if later {
            let (request_id, text) = (id.clone(), "later: and make it round".to_owned());
            world.command(Command::Steer { request_id, text });
        } else {
            world.submit(edited(&words, "make it blue"));
        }
        world.submit(Event::RunFinished(Box::new(finished(&run))));
        let Some(Todo::Report(relay_id)) = world.todo().first().cloned() else { panic!("none") };
        world.submit(Event::ReportReady { relay_id });
        assert!(world.state.gates.is_empty(), "later: {later}");
        work_until(&mut world, |role, _| role == Role::Planner);
        world.finish_well();
        assert_eq!(world.state.gates.len(), 1, "the plan by the new words");
    }
}

#[test]
fn an_edit_in_the_queue_to_the_branch_goes_back_to_the_planner_and_the_next_one_lands() {
    for begun in [false, true] {
        let (mut world, id, words) = asked(policy());
        let is_merge = |it: &Effect| matches!(it.kind, EffectKind::Merge { .. });
        let merge = loop {
            if let Some(merge) = world.state.effects.values().find(|it| is_merge(it)) {
                break merge.clone();
            }
            let todo = world.todo().first().cloned().expect("something to do");
            world.do_well(&todo);
        };
        if begun {
            let pre_state = serde_json::Value::Null;
            world.submit(Event::EffectStarting { effect_id: merge.effect_id.clone(), pre_state });
        }
        world.submit(edited(&words, "make it blue"));
        assert_eq!(world.said.contains(&"room.edited".to_owned()), !begun);
        assert_eq!(world.said.contains(&"words_too_late".to_owned()), begun);
        assert_eq!(world.state.effects.contains_key(&merge.effect_id), begun);
        assert_eq!(world.request(&id).work.landing_since.is_some(), begun);
        world.finish_well();
        let request = world.request(&id);
        assert_eq!(request.status, RequestStatus::Committed);
        assert!(!request.params.unread_edit);
        assert_eq!(request.body, if begun { "make it red" } else { "make it blue" });
    }
}

#[test]
fn an_answer_to_the_old_words_is_not_given() {
    let (mut world, id, words) = asked(policy());
    let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
    let run = run_of(&world, &todo, "run-intake");
    world.submit(Event::RunStarting(run.clone()));
    world.submit(edited(&words, "how red is it?"));
    let handled = serde_json::json!({ "request_handling": { "mode": "complete" } });
    let answered = result(Role::Orchestrator, handled);
    let mut done = finished(&run);
    done.outcome = RunOutcome::Result(Arc::new(answered));
    world.submit(Event::RunFinished(Box::new(done)));
    let again = work_until(&mut world, |role, _| role == Role::Orchestrator);
    assert!(matches!(again, Todo::Run(_)));
    assert_eq!(world.request(&id).status, RequestStatus::Delegated);
}

#[test]
fn an_edit_voids_what_waits_for_a_decision_and_answers_what_is_blocked() {
    let (mut world, id, words) = asked(Policy { check_names: Vec::new(), ..policy() });
    world.finish_well();
    let gate = world.state.gates.values().next().cloned().expect("a gate");
    world.submit(edited(&words, "make it blue"));
    assert!(!world.state.gates.contains_key(&gate.gate_id), "it was about the old words");
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let mut stuck = result(Role::Planner, serde_json::json!({}));
    stuck.status = ResultStatus::Blocked;
    report(&mut world, &todo, RunOutcome::Result(Arc::new(stuck)));
    assert_eq!(world.request(&id).status, RequestStatus::Blocked);
    world.submit(edited(&words, "make it green"));
    assert_eq!(world.request(&id).status, RequestStatus::Delegated);
    assert_eq!(world.request(&id).params.earlier_bodies, ["make it red", "make it blue"]);
}

#[test]
fn an_edit_of_many_is_bounded_and_the_history_has_all() {
    let (mut world, id, words) = asked(policy());
    work_until(&mut world, |role, _| role == Role::Developer);
    for number in 0..20 {
        world.submit(edited(&words, &format!("make it colour {number}")));
    }
    let request = world.request(&id);
    assert_eq!(request.body, "make it colour 19");
    assert_eq!(request.params.earlier_bodies.len(), 5);
    let edits = world.log.iter().filter(|change| {
        matches!(change, crate::domain::change::Change::Event(_, event) if event.kind == EventKind::Edited)
    });
    assert_eq!(edits.count(), 20);
}

#[test]
fn deleting_what_is_under_way_asks_whether_to_withdraw_it() {
    let (mut world, id, _) = asked(policy());
    work_until(&mut world, |role, _| role == Role::Developer);
    let gone = Event::MessageDeleted { channel_id: GENERAL, message_id: FIRST };
    assert_eq!(world.submit(gone.clone()), Answer::Accepted);
    assert_eq!(world.request(&id).status, RequestStatus::Delegated, "it goes on meanwhile");
    let asks = world.state.outgoing.values().find_map(|it| {
        let Act::Post(Post { content, buttons, reply_to, .. }) = &it.act else { return None };
        (content.key == "message_deleted").then(|| (buttons.clone(), *reply_to))
    });
    let (buttons, reply_to) = asks.expect("a question");
    assert_eq!(reply_to, None, "what is gone cannot be answered to");
    assert_eq!((buttons.len(), buttons[0].act), (1, ButtonAct::Cancel));
    assert!(matches!(world.submit(gone), Answer::Ignored(_)), "asked once");
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

/// A team at work in a room of its own, one step before something.
fn in_a_room(ready: impl Fn(&World) -> bool) -> (World, RequestId, ChannelId) {
    let mut world = World::new(policy());
    let id = world.message("make it red");
    world.deliver();
    while !ready(&world) {
        let todo = world.todo().first().cloned().expect("something to do");
        world.do_well(&todo);
    }
    let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
    (world, id, room.expect("a room"))
}

fn is_queued(world: &World) -> bool {
    world.state.effects.values().any(|it| matches!(it.kind, EffectKind::Merge { .. }))
}

#[test]
fn what_people_write_while_it_is_in_the_queue_is_read_before_it_lands() {
    for (text, goes_back) in [("leave config.py as it is", true), ("Great, thanks!", false)] {
        let (mut world, id, room) = in_a_room(is_queued);
        let turns = world.request(&id).work.spent.turns;
        let words = world.words(room, 90, text);
        assert_eq!(world.submit(Event::Message(words)), Answer::Accepted);
        world.finish_well();
        let request = world.request(&id);
        assert_eq!(request.status, RequestStatus::Committed, "{text}");
        assert!(request.params.unread_words.is_empty(), "{text}");
        assert_eq!(request.work.spent.turns > turns, goes_back, "{text}");
        let said = world.said.contains(&"room.goes_back_for_words".to_owned());
        assert_eq!(said, goes_back, "{text}");
    }
}

#[test]
fn words_for_a_later_step_are_read_although_there_is_none() {
    let mut world = World::new(policy());
    let id = world.message("make it red");
    world.deliver();
    let todo = work_until(&mut world, |_, step| step == Some(steps::QA));
    let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
    let run = run_of(&world, &todo, "run-qa");
    world.submit(Event::RunStarting(run.clone()));
    let words = |world: &World, number, text| world.words(room.expect("a room"), number, text);
    let late = words(&world, 90, "later: leave config.py as it is");
    let taken_back = words(&world, 91, "later: and call it rouge");
    world.submit(Event::Message(late));
    world.submit(Event::Message(taken_back));
    let channel_id = room.expect("a room");
    world.submit(Event::MessageDeleted { channel_id, message_id: MessageId(91) });
    assert_eq!(world.request(&id).params.unread_words, [MessageId(90)]);
    world.submit(Event::RunFinished(Box::new(finished(&run))));
    world.finish_well();
    assert!(world.said.contains(&"room.goes_back_for_words".to_owned()));
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn words_that_come_when_it_lands_are_not_taken_for_read() {
    let (mut world, id, room) = in_a_room(is_queued);
    let merge = world.state.effects.keys().next().cloned().expect("a merge");
    world.submit(Event::EffectStarting { effect_id: merge, pre_state: serde_json::Value::Null });
    let words = world.words(room, 90, "leave config.py as it is");
    world.submit(Event::Message(words));
    assert!(world.said.contains(&"words_too_late".to_owned()));
    assert!(world.request(&id).params.followups.is_empty());
}

#[test]
fn an_edit_of_further_words_when_it_lands_leaves_the_merge_alone() {
    let mut world = World::new(policy());
    let id = world.message("make it red");
    world.deliver();
    let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
    let room = room.expect("a room");
    let words = world.words(room, 90, "and name it rouge");
    world.submit(Event::Message(words.clone()));
    while !is_queued(&world) {
        let todo = world.todo().first().cloned().expect("something to do");
        world.do_well(&todo);
    }
    let merge = world.state.effects.keys().next().cloned().expect("a merge");
    let pre_state = serde_json::Value::Null;
    world.submit(Event::EffectStarting { effect_id: merge.clone(), pre_state });
    world.submit(edited(&words, "and name it bleu"));
    assert!(world.said.contains(&"words_too_late".to_owned()));
    assert!(world.state.effects.contains_key(&merge), "the branch moves, and nobody would know");
    assert_eq!(world.request(&id).params.followups[0].body, "and name it rouge");
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn a_run_that_begins_anew_has_read_what_was_written_unless_it_judges_what_was_made_before() {
    for (role, is_read) in [(Role::Developer, true), (Role::Qa, false)] {
        begins_anew(role, is_read);
    }
}

fn begins_anew(role: Role, is_read: bool) {
    let mut world = World::new(policy());
    let id = world.message("make it red");
    world.deliver();
    let todo = work_until(&mut world, |it, step| it == role && step.is_some());
    let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
    let run = run_of(&world, &todo, "run-qa");
    world.submit(Event::RunStarting(run.clone()));
    let words = world.words(room.expect("a room"), 90, "leave config.py as it is");
    world.submit(Event::Message(words));
    assert_eq!(world.request(&id).params.unread_words, [MessageId(90)]);
    world.submit(Event::RunTakenAway {
        run_id: run.run_id,
        generation: 1,
        usage: Default::default(),
    });
    assert_eq!(world.request(&id).params.unread_words.is_empty(), is_read);
}

#[test]
fn what_is_taken_back_after_an_agent_has_it_is_taken_back_for_everybody() {
    let (mut world, id, room) = in_a_room(|_| true);
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-a");
    world.submit(Event::RunStarting(run.clone()));
    let words = world.words(room, 90, "also drop the table of users");
    world.submit(Event::Message(words));
    world.submit(Event::MessageDeleted { channel_id: room, message_id: MessageId(90) });
    let controls = &world.state.runs[&run.run_id].controls;
    let told: Vec<&str> = controls.iter().map(|it| it.text.as_str()).collect();
    assert!(matches!(told[..], [_, taken] if taken.contains("took back")), "{told:?}");
    assert!(world.said.contains(&"room.taken_back".to_owned()));
    let params = world.request(&id).params;
    assert_eq!((params.followups.len(), params.unread_words.len()), (1, 1), "nothing ends before");
    // What nobody has read is gone without a word.
    let (mut world, id, room) = in_a_room(|_| true);
    work_until(&mut world, |role, _| role == Role::Developer);
    let words = world.words(room, 90, "also drop the table of users");
    world.submit(Event::Message(words));
    world.submit(Event::MessageDeleted { channel_id: room, message_id: MessageId(90) });
    let params = world.request(&id).params;
    assert!(params.followups.is_empty() && !params.has_unread());
    assert!(!world.said.contains(&"room.taken_back".to_owned()));
}

#[test]
fn only_words_that_are_meant_for_it_let_a_blocked_request_go_on_and_an_ended_room_begin_another() {
    let mut world = World::new(policy());
    let id = world.message("make it red");
    world.deliver();
    for _ in 0..3 {
        let todo = work_until(&mut world, |_, _| true);
        report(
            &mut world,
            &todo,
            RunOutcome::failed(FailKind::Stuck, "it went in circles".to_owned()),
        );
    }
    let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
    let room = room.expect("a room");
    let say = |world: &mut World, number, text: &str| {
        let words = Message { addressed: false, ..world.words(room, number, text) };
        world.submit(Event::Message(words))
    };
    for (number, text) in [(90, "ok thanks"), (91, "<@7> what do you think?")] {
        say(&mut world, number, text);
        assert_eq!(world.request(&id).status, RequestStatus::Blocked, "{text}");
    }
    say(&mut world, 92, "use the palette of the logo");
    assert_eq!(world.request(&id).status, RequestStatus::Delegated);
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
    for (number, text) in [(93, "thanks!"), (94, "<@7> look at that")] {
        let answer = say(&mut world, number, text);
        assert_eq!(answer, Answer::Ignored("it asks for nothing"), "{text}");
    }
    let thanks = Message { addressed: false, ..world.words(room, 93, "thanks!") };
    assert_eq!(world.submit(edited(&thanks, "ok thanks!")), Answer::Ignored("it asks for nothing"));
    let mended = edited(&thanks, "thanks! but the button is grey on the phone, please fix it");
    assert_eq!(world.submit(mended.clone()), Answer::Accepted);
    let open =
        |world: &World| world.state.requests.values().filter(|it| !it.status.is_terminal()).count();
    assert_eq!(open(&world), 1);
    world.submit(mended);
    assert_eq!(open(&world), 1, "once");
    world.finish_well();
    assert_eq!(say(&mut world, 95, "now make it blue"), Answer::Accepted);
}

#[test]
fn words_in_a_thread_that_discord_has_made_and_not_told_of_are_heard() {
    let (mut world, id, words) = asked(policy());
    assert_eq!(world.request(&id).conversation.thread(), None);
    let thread = ChannelId(words.message_id.0);
    let more = Message { addressed: false, ..world.words(thread, 90, "and make it blue, too") };
    assert_eq!(world.submit(Event::Message(more)), Answer::Accepted);
    assert_eq!(world.request(&id).params.followups.len(), 1);
    let other = Message { addressed: false, ..world.words(ChannelId(5), 91, "and green") };
    assert!(matches!(world.submit(Event::Message(other)), Answer::Ignored(_)));
}

/// A request whose planner asks something, with its room.
fn blocked_in_a_room() -> (World, RequestId, ChannelId) {
    let (mut world, id, room) = in_a_room(|world| !world.state.envelopes.is_empty());
    world.deliver();
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let mut said = result(Role::Planner, serde_json::json!({}));
    (said.status, said.error) = (ResultStatus::Blocked, "which red?".to_owned());
    report(&mut world, &todo, RunOutcome::Result(Arc::new(said)));
    (world, id, room)
}

#[test]
fn the_message_of_a_blocked_request_loses_its_buttons_when_it_goes_on_or_ends() {
    for goes_on in [true, false] {
        let (mut world, id, room) = blocked_in_a_room();
        world.deliver();
        let (_, card) = world.request(&id).blocked.and_then(|it| it.card).expect("it is posted");
        let is_bare = |world: &World| {
            let acts = world.state.outgoing.values().map(|it| &it.act);
            let mut bare = acts
                .filter(|act| matches!(act, Act::Unbutton { message_id } if *message_id == card));
            bare.next().is_some()
        };
        assert!(!is_bare(&world));
        let command = match goes_on {
            true => Command::Retry { request_id: id.clone() },
            false => Command::Cancel { request_id: id.clone() },
        };
        world.command(command);
        assert!(is_bare(&world), "goes on: {goes_on}, {room}");
    }
}

#[test]
fn who_wants_a_blocked_request_to_end_is_asked_and_nothing_goes_on() {
    for (words, answer) in [
        ("cancel it please", "the dark one"),
        ("withdraw this", "approved"),
        ("cancel this, we don't need it any more", "주문 취소"),
        ("ok, cancel my request", "취소선으로 해 주세요"),
        ("취소해 주세요", "네, 배포해 주세요"),
        ("취소하겠습니다", "취소 문제를 해결해 주세요"),
        ("그 요청 취소해 주십시오", "취소하지 마세요"),
        ("이 요청은 취소해 주세요", "cancel the old one and take the dark one"),
        ("never mind, thanks", "never mind the typo"),
        ("그만해 주세요", "취소는 하지 마세요"),
        ("하지 마세요", "don't stop, take the dark one"),
        ("중단해 주세요", "취소 하지 마세요"),
        ("하지 마세요. 취소해 주세요", "그거 하지 말고 이거 해주세요"),
        ("no, stop it right now", "하지 말고 그냥 해 줘"),
    ] {
        let (mut world, id, room) = blocked_in_a_room();
        assert_eq!(world.request(&id).status, RequestStatus::Blocked);
        let message = world.words(room, 700, words);
        world.submit(Event::Message(message));
        assert_eq!(world.request(&id).status, RequestStatus::Blocked, "{words}");
        assert!(world.said.contains(&"end_asked".to_owned()), "{words}: {:?}", world.said);
        let message = world.words(room, 701, answer);
        world.submit(Event::Message(message));
        assert_eq!(world.request(&id).status, RequestStatus::Delegated, "{answer}");
        // While it is worked on it is asked as well, and whoever works reads only what says more.
        let (told, asked) = (world.request(&id).params.followups.len(), world.said.len());
        let message = world.words(room, 702, words);
        world.submit(Event::Message(message));
        assert!(world.said[asked..].contains(&"end_asked".to_owned()), "{words}");
        let says_more = words.contains("any more");
        let heard = world.request(&id).params.followups.len() - told;
        assert_eq!(heard, usize::from(says_more), "{words}");
        assert_eq!(world.request(&id).status, RequestStatus::Delegated, "{words}");
        // Also where words that were about the work are changed to that.
        let asked = world.said.len();
        let message = world.words(room, 703, "in red");
        world.submit(Event::Message(message.clone()));
        assert!(!world.said[asked..].contains(&"end_asked".to_owned()), "{words}");
        world.submit(edited(&message, words));
        assert!(world.said[asked..].contains(&"end_asked".to_owned()), "{words}");
    }
}

/// A request that somebody has written "stop" to, and that would be on the branch now.
fn held(ready: impl Fn(&World) -> bool) -> (World, RequestId, ChannelId) {
    let (mut world, id, room) = in_a_room(ready);
    let stop = world.words(room, 800, "stop");
    world.submit(Event::Message(stop));
    world.finish_well();
    let blocked = world.request(&id).blocked.expect("it waits");
    assert_eq!((blocked.code, world.landed()), (BlockCode::EndQuestion, 0));
    assert_eq!(blocked.detail, "owner: stop");
    (world, id, room)
}

#[test]
fn nothing_goes_to_the_branch_while_nobody_has_said_whether_it_is_to_end() {
    for is_ready in [is_queued, |world: &World| !world.state.envelopes.is_empty()] {
        let (world, id, room) = held(is_ready);
        let turns = world.request(&id).work.spent.turns;
        let all = {
            let (world, id, _) = in_a_room(is_queued);
            world.request(&id).work.spent.turns
        };
        assert_eq!(turns == all, world.request(&id).work.candidate.is_some(), "no run more");
        let hears = |text: &str| {
            let (mut world, _, _) = held(is_ready);
            let words = world.words(room, 900, text);
            world.submit(Event::Message(words));
            world
        };
        // Nobody has to do more where no more is wanted.
        for text in
            ["go on", "계속해 주세요", "no", "아니요, 계속 진행해 주세요", "no, don't cancel it"]
        {
            let mut world = hears(text);
            world.finish_well();
            let request = world.request(&id);
            let stands = (request.status, request.work.spent.turns);
            assert_eq!(stands, (RequestStatus::Committed, all), "{text}");
        }
        // A yes to the question is none to the change.
        for text in ["yes", "네", "ok", "now, please", "해 주세요", "thanks", "stop it, please"]
        {
            let mut world = hears(text);
            world.finish_well();
            assert_eq!((world.request(&id).status, world.landed()), (RequestStatus::Blocked, 0));
            let asked = world.said.iter().filter(|key| *key == "end_asked").count();
            assert_eq!(asked, 2, "{text}");
        }
        // Words are kept, and are no answer: they are heeded once there is one.
        let mut world = hears("it breaks production, in blue then");
        world.finish_well();
        let request = world.request(&id);
        assert_eq!((request.status, request.work.spent.turns), (RequestStatus::Blocked, turns));
        world.command(Command::Retry { request_id: id.clone() });
        world.finish_well();
        let request = world.request(&id);
        assert_eq!(request.status, RequestStatus::Committed);
        assert!(request.work.spent.turns > turns, "they are heeded");
        let (mut world, _, _) = held(is_ready);
        world.command(Command::Cancel { request_id: id.clone() });
        world.finish_well();
        assert_eq!((world.request(&id).status, world.landed()), (RequestStatus::Cancelled, 0));
    }
}

#[test]
fn words_that_wanted_an_end_can_be_changed_and_taken_back() {
    // Who deletes a message is not known.
    let (mut world, id, channel_id) = held(is_queued);
    world.submit(Event::MessageDeleted { channel_id, message_id: MessageId(800) });
    world.finish_well();
    assert_eq!((world.request(&id).status, world.landed()), (RequestStatus::Blocked, 0));
    // Sent too early: the rest of it is what was meant.
    let (mut world, id, room) = held(is_queued);
    let stop = world.words(room, 800, "stop");
    world.submit(edited(&stop, "stop the spinner when it is loaded"));
    assert_eq!(world.request(&id).status, RequestStatus::Delegated);
    world.finish_well();
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Committed);
    assert_eq!(request.params.followups[0].body, "stop the spinner when it is loaded");
    // What stands below the first line is heard as well.
    let (mut world, id, room) = held(is_queued);
    let stop = world.words(room, 800, "stop");
    world.submit(edited(&stop, "stop\nuse port 8080 instead"));
    assert_eq!(world.request(&id).params.followups[0].body, "stop\nuse port 8080 instead");
    // The message that began it says so now: what was asked stays known, and is asked about once.
    let (mut world, id, words) = asked(policy());
    for _ in 0..2 {
        world.submit(edited(&words, "never mind"));
        assert_eq!(world.said.iter().filter(|key| *key == "end_asked").count(), 1);
    }
    assert_eq!(world.request(&id).body, "make it red");
    world.finish_well();
    assert_eq!((world.request(&id).status, world.landed()), (RequestStatus::Blocked, 0));
    world.submit(edited(&words, "make it red"));
    world.submit(edited(&words, "never mind"));
    world.finish_well();
    assert_eq!((world.request(&id).status, world.landed()), (RequestStatus::Blocked, 0));
    world.submit(edited(&words, "make it red"));
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn whoever_may_not_let_it_try_again_does_not_say_that_it_goes_on() {
    let (mut world, id, room) = held(is_queued);
    let words = world.words(room, 900, "go on");
    let author = Author { id: UserId(5), name: "Joon".to_owned(), ..words.author.clone() };
    world.submit(Event::Message(Message { author, ..words }));
    world.finish_well();
    assert_eq!((world.request(&id).status, world.landed()), (RequestStatus::Blocked, 0));
}

#[test]
fn stop_in_a_direct_message_is_no_request_of_its_own() {
    let mut world = World::new(policy());
    let dm = ChannelId(55);
    let direct = |world: &World, number, text: &str| Message {
        guild_id: None,
        ..world.words(dm, number, text)
    };
    let words = direct(&world, 700, "make it red");
    world.submit(Event::Message(words));
    let id = world.state.requests.keys().next().cloned().expect("a request");
    let words = direct(&world, 701, "stop");
    world.submit(Event::Message(words));
    assert_eq!(world.state.requests.len(), 1);
    world.finish_well();
    let blocked = world.request(&id).blocked.map(|it| it.code);
    assert_eq!((blocked, world.landed()), (Some(BlockCode::EndQuestion), 0));
    let words = direct(&world, 702, "go on");
    world.submit(Event::Message(words));
    world.finish_well();
    assert_eq!((world.state.requests.len(), world.landed()), (1, 1));
}

#[test]
fn nobody_approves_what_somebody_else_wants_to_end() {
    let gates = GateTable { commit: Stance::Ask, ..GateTable::default() };
    let mut world = World::new(Policy { gates, ..policy() });
    let id = world.message("make it red");
    world.finish_well();
    world.deliver();
    let room = world.request(&id).conversation.thread().expect("a room");
    let stop = world.words(room, 800, "stop");
    world.submit(Event::Message(stop));
    let gate = world.state.gates.values().next().cloned().expect("a gate");
    let said = world.command(press(&gate, ButtonAct::Approve));
    assert!(matches!(said, Answer::Refused(it) if it.key == "gate.end_question"));
    assert!(world.state.gates.contains_key(&gate.gate_id), "it stays open");
    let words = world.words(room, 801, "go on");
    world.submit(Event::Message(words));
    world.command(press(&gate, ButtonAct::Approve));
    world.finish_well();
    assert_eq!(world.landed(), 1);
}

#[test]
fn what_only_thanks_asks_for_nothing() {
    let asks = |text: &str| {
        let words = Followup::command("Mina", text.to_owned(), Timestamp::from_millis(0));
        words.asks_for_something()
    };
    for text in [
        "thanks!",
        "Thank you so much!",
        "looks good to me",
        "<:tada:123> great job, team",
        "👍",
        "<@42> 감사합니다",
        "정말 고생하셨습니다",
        "네, 좋아요",
    ] {
        assert!(!asks(text), "{text}");
    }
    for text in ["stop", "thanks, but leave config.py", "no thanks", "좋아요, 파란색으로", "to me"]
    {
        assert!(asks(text), "{text}");
    }
}
