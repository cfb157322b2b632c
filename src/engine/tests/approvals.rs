//! What waits for a person: bound to what the person saw, used once, and no when nobody decides.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::scenes::{report, work_until};
use super::world::{GUILD, OWNER, Todo, World, good, make_test, policy, press, result};
use crate::domain::actor::{Actor, Author};
use crate::domain::block::BlockCode;
use crate::domain::change::Change;
use crate::domain::criterion::{Criterion, Judge};
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::event::Event;
use crate::domain::evidence::{ChangeKind, ChangedPath};
use crate::domain::gate::{Decider, Gate, GateKind, GateState, Stance};
use crate::domain::guard::{ContentFact, ContentMark, Guard};
use crate::domain::ids::{ChannelId, MessageId, RequestId, UserId};
use crate::domain::incoming::{Command, Message};
use crate::domain::ingress::Ingress;
use crate::domain::intent::Intent;
use crate::domain::item::Item;
use crate::domain::language::Language;
use crate::domain::outgoing::{Act, ButtonAct, Outgoing, Post};
use crate::domain::policy::{ActionPolicy, GateTable, Holders, PlanStances, Policy, Right};
use crate::domain::record::AnyRecord;
use crate::domain::request::{Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::time::Timestamp;
use crate::domain::verification::{CriterionRef, ManualVerdict, Verification};
use crate::engine::standing::overview;
use crate::engine::{Answer, verify};

fn unproven() -> Policy {
    Policy { check_names: Vec::new(), ..policy() }
}

/// A request whose commit waits for a person, with the gate.
fn waiting(policy: Policy) -> (World, RequestId, Gate) {
    let mut world = World::new(policy);
    let id = world.message("do it");
    world.finish_well();
    let gate = the_gate(&world);
    (world, id, gate)
}

fn the_gate(world: &World) -> Gate {
    Gate::clone(world.state.gates.values().next().expect("a gate"))
}

fn by(id: UserId, via: Ingress, command: Command) -> Event {
    let author = Author { id, name: "mina".to_owned(), is_bot: false, server_roles: Vec::new() };
    Event::Command {
        actor: Actor::Person { author, guild_id: Some(GUILD), via },
        command,
        interaction: None,
    }
}

fn said(answer: Answer) -> String {
    answer.content().expect("words").key.clone()
}

/// Where the gate stands at last.
fn end_of(world: &World, gate: &Gate) -> GateState {
    let mut states = world.log.iter().rev().filter_map(|change| {
        let Change::Save(AnyRecord::Gate(it)) = change else { return None };
        (it.gate_id == gate.gate_id).then_some(it.state)
    });
    states.next().expect("the gate was written")
}

#[test]
fn without_checks_a_person_decides_once_and_for_that_content() {
    let (mut world, id, gate) = waiting(unproven());
    assert_eq!((gate.kind, gate.commit.as_str()), (GateKind::UnprovenCommit, "c1"));
    let old = Gate { version: 7, ..gate.clone() };
    assert_eq!(said(world.command(press(&old, ButtonAct::Approve))), "gate.stale");
    world.command(press(&gate, ButtonAct::Approve));
    let decided = end_of(&world, &gate);
    assert!(matches!(decided, GateState::Approved { by: Decider::Operator, .. }), "{decided:?}");
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
    assert_eq!(said(world.command(press(&gate, ButtonAct::Reject))), "gate.stale");
}

#[test]
fn checks_that_the_project_shows_are_used_by_a_press_and_prove_the_commit_first() {
    let (mut world, _, plain) = waiting(unproven());
    assert_eq!(plain.shown_checks, None);
    assert_eq!(said(world.command(press(&plain, ButtonAct::UseChecks))), "gate.stale");
    assert!(world.state.gates.contains_key(&plain.gate_id), "it waits as before");

    let shows = Policy { shown_checks: make_test(), ..unproven() };
    let (mut world, id, gate) = waiting(shows);
    assert_eq!(gate.shown_checks, Some(make_test()));
    let stranger = UserId(999);
    let press = press(&gate, ButtonAct::UseChecks);
    let forged = world.submit(by(stranger, Ingress::Button, press.clone()));
    assert_eq!(said(forged), "not_allowed");
    let list = world.submit(by(OWNER, Ingress::Select, press.clone()));
    assert_eq!(said(list), "gate.not_yours", "a list with a button's id");
    world.command(press);
    assert_eq!(end_of(&world, &gate), GateState::Void);
    let effect = world.state.effects.values().next().unwrap().clone();
    let accepted = EffectKind::UseChecks { request_id: id.clone(), shown: make_test() };
    assert_eq!(effect.kind, accepted, "what is written is what was shown");
    // They are configured from here on.
    world.policy = policy();
    world.finish_well();
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Committed);
    assert!(request.work.evidence.is_some_and(|evidence| evidence.is_green()));
}

#[test]
fn a_rejected_commit_stays_on_its_own_branch() {
    let (mut world, id, gate) = waiting(unproven());
    world.command(press(&gate, ButtonAct::Reject));
    world.finish_well();
    let request = world.request(&id);
    assert_eq!((request.status, request.outcome.commit_sha), (RequestStatus::Completed, None));
    assert!(world.said.contains(&"final.on_side_branch".to_owned()));
}

#[test]
fn a_button_counts_on_its_own_card_only() {
    let (mut world, id, _) = waiting(unproven());
    world.deliver();
    let gate = the_gate(&world);
    let (channel, card) = gate.card.expect("posted");
    let elsewhere = Gate { card: Some((channel, MessageId(card.0 + 1))), ..gate.clone() };
    let forged = by(OWNER, Ingress::Button, press(&elsewhere, ButtonAct::Approve));
    assert_eq!(said(world.submit(forged)), "gate.stale");
    let list = by(OWNER, Ingress::Select, press(&gate, ButtonAct::Approve));
    assert_eq!(said(world.submit(list)), "gate.not_yours", "a list with a button's id");
    let true_one = by(OWNER, Ingress::Button, press(&gate, ButtonAct::Approve));
    assert_eq!(world.submit(true_one), Answer::Accepted, "what came of it stands in the room");
    let bare = Act::Unbutton { message_id: card };
    let goes = world.state.outgoing.values().any(|it| it.act == bare);
    assert!(goes, "what was decided cannot be pressed again");
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn nobody_decides_means_no_and_the_team_is_told() {
    let (mut world, id, gate) = waiting(unproven());
    let until = gate.expires_at.expect("an end");
    assert_eq!(until, gate.created_at.plus_seconds(168 * 3_600));
    assert!(world.wait_until_due());
    while world.state.gates.contains_key(&gate.gate_id) {
        assert!(world.wait_until_due());
    }
    assert!(world.clock >= until.millis());
    assert!(matches!(end_of(&world, &gate), GateState::Expired { .. }));
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
    assert!(world.said.contains(&"final.on_side_branch".to_owned()));
    assert_eq!(said(world.command(press(&gate, ButtonAct::Approve))), "gate.stale", "too late");
}

#[test]
fn a_question_goes_to_the_team_and_the_gate_opens_anew() {
    let (mut world, id, gate) = waiting(unproven());
    let asked = |question: &str| Command::AskBack {
        gate_id: gate.gate_id.clone(),
        version: gate.version,
        question: question.to_owned(),
    };
    let blank = by(OWNER, Ingress::Modal, asked("  "));
    assert_eq!(said(world.submit(blank)), "empty");
    let stranger = by(UserId(666), Ingress::Modal, asked("why?"));
    assert_eq!(said(world.submit(stranger)), "not_allowed");
    let question = by(OWNER, Ingress::Modal, asked("why this file?"));
    assert_eq!(world.submit(question), Answer::Accepted);
    let decided = |it: &&Arc<Outgoing>| matches!(&it.act, Act::Post(Post { content, .. }) if content.key == "gate.decided");
    assert_eq!(world.state.outgoing.values().filter(decided).count(), 1, "said once, in the room");
    let words = world.request(&id).params.followups.pop().expect("the question");
    assert!(words.at_gate, "it takes no place of further messages");
    assert_eq!((words.author_name.as_str(), words.body.as_str()), ("mina", "why this file?"));
    assert_eq!(said(world.command(press(&gate, ButtonAct::Approve))), "gate.stale");
    world.finish_well();
    let again = the_gate(&world);
    assert_ne!(again.gate_id, gate.gate_id);
    world.command(press(&again, ButtonAct::Approve));
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn other_content_takes_another_decision() {
    let (mut world, id, gate) = waiting(unproven());
    world.command(press(&gate, ButtonAct::Approve));
    let mut moved = false;
    world.finish_with(|kind| {
        let first = matches!(kind, EffectKind::Merge { .. }) && !moved;
        moved |= first;
        first.then(|| EffectOutcome::BranchMoved { head: "h2".to_owned() })
    });
    let again = the_gate(&world);
    assert_ne!(again.commit, gate.commit, "the branch moved, and so did the commit");
    assert_eq!(said(world.command(press(&gate, ButtonAct::Approve))), "gate.stale");
    world.command(press(&again, ButtonAct::Approve));
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

/// Commits have names of forty letters; the world's have two.
fn name_at_length(world: &mut World, id: &RequestId, gate: &Gate) {
    let mut record = world.request(id);
    let long = "0123456789abcdef0123456789abcdef01234567";
    record.work.candidate.as_mut().expect("a commit").commit = long.to_owned();
    world.state.apply(&Change::save(record));
    world.state.apply(&Change::save(Gate { commit: long.to_owned(), ..gate.clone() }));
}

#[test]
fn a_command_decides_by_naming_the_content() {
    let (mut world, id, gate) = waiting(unproven());
    name_at_length(&mut world, &id, &gate);
    let decide = |content: &str| Command::Decide {
        request_id: id.clone(),
        content: content.to_owned(),
        yes: true,
        reason: None,
        channel_id: None,
    };
    assert_eq!(said(world.command(decide(""))), "gate.choose");
    for wrong in ["0123", "fedcba9", "0123456789abcdef0123456789abcdef012345678"] {
        assert_eq!(said(world.command(decide(wrong))), "gate.stale", "{wrong}");
    }
    assert_eq!(said(world.command(decide("0123456"))), "gate.decided");
}

#[test]
fn what_stands_in_the_room_was_read_by_who_decides_there_and_by_nobody_else() {
    let first = ChannelId(4_711);
    // Where `/approve` is typed, milliseconds after the words, and whether it lands without a look at them.
    for (elsewhere, after, lands) in
        [(None, 60_000, true), (None, 500, false), (Some(first), 60_000, false)]
    {
        let mut world = World::new(unproven());
        let id = world.message("do it");
        world.deliver();
        world.finish_well();
        let gate = the_gate(&world);
        name_at_length(&mut world, &id, &gate);
        let room = world.request(&id).conversation.place().expect("a room");
        let words = world.words(room, 90, "leave config.py as it is");
        world.submit(Event::Message(words));
        world.clock += after;
        let decide = Command::Decide {
            request_id: id.clone(),
            content: "0123456".to_owned(),
            yes: true,
            reason: None,
            channel_id: Some(elsewhere.unwrap_or(room)),
        };
        world.submit(by(OWNER, Ingress::Slash, decide));
        let merges =
            world.state.effects.values().any(|it| matches!(it.kind, EffectKind::Merge { .. }));
        assert_eq!(merges, lands, "{elsewhere:?} {after:?}");
    }
}

#[test]
fn a_card_that_is_deleted_while_it_waits_is_posted_again() {
    let mut world = World::new(unproven());
    let id = world.message("do it");
    world.deliver();
    world.finish_well();
    world.deliver();
    let gate = the_gate(&world);
    let (channel_id, message_id) = gate.card.expect("it is posted");
    assert_eq!(
        world.submit(Event::MessageDeleted { channel_id, message_id: MessageId(1) }),
        Answer::Ignored("no card that waits")
    );
    world.submit(Event::MessageDeleted { channel_id, message_id });
    world.deliver();
    let again = the_gate(&world);
    assert_eq!((again.version, &again.gate_id), (gate.version + 1, &gate.gate_id));
    assert!(again.card.is_some_and(|card| card != (channel_id, message_id)));
    assert_eq!(said(world.command(press(&gate, ButtonAct::Approve))), "gate.stale");
    world.submit(Event::ChannelDeleted { channel_id });
    world.deliver();
    let last = the_gate(&world);
    assert_eq!(last.version, again.version + 1);
    world.command(press(&last, ButtonAct::Approve));
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

/// Work with this file among its paths.
fn touching(world: &mut World, path: &str) {
    world.finish_with(|kind| {
        let EffectKind::Commit { .. } = kind else { return None };
        let mut candidate = super::world::candidate("c1");
        candidate.paths.push(ChangedPath { path: path.to_owned(), kind: ChangeKind::Added });
        Some(EffectOutcome::Committed(candidate))
    });
}

/// All goes well, and each commit takes a file away.
fn without(world: &mut World, path: &str) {
    world.finish_with(|kind| {
        let EffectKind::Commit { .. } = kind else { return None };
        let mut candidate = super::world::candidate("c1");
        candidate.marks = vec![ContentMark { path: path.to_owned(), what: ContentFact::Gone }];
        Some(EffectOutcome::Committed(candidate))
    });
}

#[test]
fn what_agents_run_by_is_never_changed_without_a_person() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    touching(&mut world, ".github/workflows/ci.yml");
    let gate = the_gate(&world);
    assert_eq!(gate.kind, GateKind::GuardedCommit, "its checks are green, and still it waits");
    let card = world.state.outgoing.values().find_map(|it| {
        let Act::Post(Post { gate_id: Some(_), content, .. }) = &it.act else { return None };
        Some(content.clone())
    });
    assert_eq!(
        card.expect("a card").values["findings"],
        json!([{ "guard": "guarded_commit", "what": [".github/workflows/ci.yml"] }])
    );
    world.command(press(&gate, ButtonAct::Approve));
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn what_qa_has_not_checked_and_the_risks_it_sees_are_told_with_the_change() {
    let mut world = World::new(unproven());
    let id = world.message("do it");
    while let Some(todo) = world.todo().first().cloned() {
        match &todo {
            Todo::Run(run) if world.state.envelopes[run].target_role == Role::Qa => {
                let mut said = good(Role::Qa, world.state.envelopes[run].step);
                let verdict = said.proposals.qa_validation.as_mut().expect("a verdict");
                verdict.not_checked = vec!["a narrow window".to_owned(), " ".to_owned()];
                verdict.residual_risks = vec!["it is never emptied".to_owned()];
                world.run(run, RunOutcome::Result(Arc::new(said)));
            }
            Todo::Run(_) | Todo::Report(_) | Todo::Effect(_) => world.do_well(&todo),
        }
    }
    let told =
        |values: &Map<String, Value>| [values["not_checked"].clone(), values["risks"].clone()];
    let remarks = [json!(["a narrow window"]), json!(["it is never emptied"])];
    let card = world.state.outgoing.values().find_map(|it| {
        let Act::Post(Post { gate_id: Some(_), content, .. }) = &it.act else { return None };
        Some(told(&content.values))
    });
    assert_eq!(card, Some(remarks.clone()));
    world.command(press(&the_gate(&world), ButtonAct::Approve));
    world.finish_well();
    let answer = world.request(&id).outcome.final_answer.expect("an answer");
    assert_eq!(told(&answer.values), remarks);
}

#[test]
fn what_is_asked_about_a_finding_does_not_answer_it() {
    let by_room = |world: &mut World, gate: &Gate, text: &str| {
        let (request_id, text) = (gate.request_id.clone(), text.to_owned());
        world.command(Command::Steer { request_id, text });
        // What is not yet read sends the request back.
        world.command(press(gate, ButtonAct::Reject));
    };
    let at_card = |world: &mut World, gate: &Gate, text: &str| {
        let (gate_id, version, question) = (gate.gate_id.clone(), gate.version, text.to_owned());
        let command = Command::AskBack { gate_id, version, question };
        assert_eq!(world.submit(by(OWNER, Ingress::Modal, command)), Answer::Accepted);
    };
    type Ask<'a> = &'a dyn Fn(&mut World, &Gate, &str);
    let cases: [(Ask<'_>, &str, bool); 4] = [
        (&at_card, "please delete src/old.rs", false),
        (&by_room, "why does src/old.rs go?", false),
        (&by_room, "should src/old.rs be removed?", false),
        (&by_room, "yes, remove src/old.rs", true),
    ];
    for (ask, words, is_told) in cases {
        let mut world = World::new(policy());
        let id = world.message("do it");
        without(&mut world, "src/old.rs");
        let gate = the_gate(&world);
        assert_eq!(gate.findings[0].guard, Guard::Deletion);
        ask(&mut world, &gate, words);
        without(&mut world, "src/old.rs");
        let lands = world.request(&id).status == RequestStatus::Committed;
        assert_eq!((lands, world.state.gates.is_empty()), (is_told, is_told), "{words}");
    }
}

#[test]
fn a_no_does_not_end_a_request_to_which_something_was_written() {
    let (mut world, id, gate) = waiting(unproven());
    world.command(Command::Steer { request_id: id.clone(), text: "not so, use X".to_owned() });
    world.command(press(&gate, ButtonAct::Reject));
    assert_eq!(world.request(&id).status, RequestStatus::Delegated);
    world.finish_well();
    let again = the_gate(&world);
    world.command(press(&again, ButtonAct::Reject));
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
}

#[test]
fn a_start_with_stricter_guards_asks_anew() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    touching(&mut world, ".github/workflows/ci.yml");
    let gate = the_gate(&world);
    world.submit(Event::Started { announce: false, serves: Role::ALL.to_vec() });
    assert_eq!(the_gate(&world), gate, "the guards are the same");
    world.policy.gates.guarded_commit = Stance::Refuse;
    world.submit(Event::Started { announce: false, serves: Role::ALL.to_vec() });
    assert_eq!(said(world.command(press(&gate, ButtonAct::Approve))), "gate.stale");
    touching(&mut world, ".github/workflows/ci.yml");
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
    assert!(world.said.contains(&"final.on_side_branch".to_owned()));
}

#[test]
fn what_the_table_refuses_is_not_asked_about() {
    let gates = GateTable { guarded_commit: Stance::Refuse, ..GateTable::default() };
    let mut world = World::new(Policy { gates, ..policy() });
    let id = world.message("do it");
    touching(&mut world, "AGENTS.md");
    assert!(world.state.gates.is_empty());
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
    assert!(world.said.contains(&"final.on_side_branch".to_owned()));
}

fn deploys(stance: Stance) -> (World, RequestId) {
    let action = ActionPolicy {
        command: vec!["make".to_owned(), "deploy".to_owned()],
        foreground: true,
        domain: String::new(),
        allowed_params: std::collections::BTreeSet::new(),
    };
    let gates = GateTable { action: stance, ..GateTable::default() };
    let actions = [("deploy".to_owned(), action)].into();
    let mut world = World::new(Policy { actions, gates, ..policy() });
    let id = world.message("deploy it");
    let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
    let wanted = json!({ "control_action": { "kind": "execute_action", "action_name": "deploy" } });
    let wanted = result(Role::Orchestrator, wanted);
    report(&mut world, &todo, RunOutcome::Result(Arc::new(wanted)));
    world.finish_with(|_| None);
    (world, id)
}

#[test]
fn an_action_waits_for_a_person_where_the_table_says_so() {
    let runs = |world: &World| {
        world.log.iter().any(|change| matches!(change, Change::Save(AnyRecord::Operation(_))))
    };
    let (world, id) = deploys(Stance::Allow);
    assert!(runs(&world));
    assert_eq!(world.request(&id).status, RequestStatus::Completed);

    let (mut world, id) = deploys(Stance::Ask);
    assert!(!runs(&world));
    let gate = the_gate(&world);
    world.command(press(&gate, ButtonAct::Reject));
    assert!(!runs(&world));
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    assert!(world.said.contains(&"action.not_run".to_owned()));

    let (mut world, id) = deploys(Stance::Ask);
    let gate = the_gate(&world);
    world.command(press(&gate, ButtonAct::Approve));
    world.finish_well();
    assert!(runs(&world));
    assert_eq!(world.request(&id).status, RequestStatus::Completed);

    let (world, id) = deploys(Stance::Refuse);
    assert!(!runs(&world) && world.state.gates.is_empty());
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
}

fn planned(plan: PlanStances) -> Policy {
    Policy { gates: GateTable { plan, ..GateTable::default() }, ..policy() }
}

fn builds(world: &World) -> bool {
    world.state.runs.values().any(|run| run.role == Role::Developer || run.role == Role::Architect)
}

#[test]
fn a_plan_is_built_when_a_person_says_so_and_only_that_plan() {
    let (mut world, id, gate) = waiting(planned(PlanStances::All(Stance::Ask)));
    assert_eq!((gate.kind, gate.commit.as_str()), (GateKind::Plan, ""));
    world.command(Command::Retry { request_id: id.clone() });
    world.restart();
    world.finish_well();
    assert!(!builds(&world) && world.request(&id).work.gate_id.is_some());

    // Words go to the planner, and the plan that comes of them is asked about anew.
    let (gate_id, version) = (gate.gate_id.clone(), gate.version);
    let question = "shorter, please".to_owned();
    world.command(Command::AskBack { gate_id, version, question });
    world.finish_well();
    let again = the_gate(&world);
    assert_ne!(again.gate_id, gate.gate_id);
    assert_eq!(again.kind, GateKind::Plan);
    let words: Vec<String> =
        world.request(&id).params.followups.into_iter().map(|it| it.body).collect();
    assert_eq!(words, ["shorter, please"]);
    assert_eq!(said(world.command(press(&gate, ButtonAct::Approve))), "gate.stale");

    world.command(press(&again, ButtonAct::Approve));
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn a_plan_that_is_turned_down_is_not_built_by_trying_again() {
    for decide in [true, false] {
        let (mut world, id, gate) = waiting(planned(PlanStances::All(Stance::Ask)));
        if decide {
            world.command(press(&gate, ButtonAct::Reject));
        } else {
            assert!(world.wait_until_due());
        }
        let blocked = world.request(&id);
        assert_eq!(blocked.blocked.expect("a reason").code, BlockCode::PlanRejected);
        world.command(Command::Retry { request_id: id.clone() });
        world.finish_well();
        assert_eq!(the_gate(&world).kind, GateKind::Plan, "planned again, and asked again");
        assert!(!builds(&world));
    }
}

#[test]
fn words_to_a_plan_that_is_turned_down_make_another_plan() {
    let (mut world, id, gate) = waiting(planned(PlanStances::All(Stance::Ask)));
    world.command(Command::Steer { request_id: id.clone(), text: "use X instead".to_owned() });
    world.command(press(&gate, ButtonAct::Reject));
    let request = world.request(&id);
    assert_eq!((request.status, request.blocked), (RequestStatus::Delegated, None));
    world.finish_well();
    assert_eq!(the_gate(&world).kind, GateKind::Plan, "planned anew, and asked again");
    assert!(!builds(&world));
}

#[test]
fn plans_are_asked_about_by_the_intent_of_their_request() {
    let by = |intent: Intent, stance| PlanStances::ByIntent([(intent, stance)].into());
    assert_eq!(by(Intent::Feature, Stance::Ask).of(Some(Intent::Hotfix)), Stance::Allow);
    assert_eq!(by(Intent::Feature, Stance::Ask).of(Some(Intent::Feature)), Stance::Ask);
    assert_eq!(by(Intent::Feature, Stance::Ask).of(None), Stance::Ask, "nobody knows it");
    let mut world = World::new(planned(PlanStances::All(Stance::Refuse)));
    let id = world.message("do it");
    world.finish_well();
    let blocked = world.request(&id);
    assert_eq!(blocked.blocked.expect("a reason").code, BlockCode::PlanRejected);
    assert!(world.state.gates.is_empty());
}

#[test]
fn what_was_asked_directly_is_looked_at_by_nobody_else() {
    let mut world = World::new(policy());
    let id = RequestId::parse("20260324-00000001").expect("an id");
    let criterion = Criterion { text: "it looks calm".to_owned(), judge: Judge::Person };
    world.state.apply(&Change::save(Verification {
        request_id: id.clone(),
        title: "a hushed wish".to_owned(),
        private_to: Some(OWNER),
        commit: "c1".to_owned(),
        sprint_id: None,
        language: Language::En,
        landed_at: Timestamp::from_millis(0),
        criteria: Verification::manual(&[criterion]),
    }));
    let person = |id| Actor::Person {
        author: Author { id, name: "one".to_owned(), is_bot: false, server_roles: Vec::new() },
        guild_id: Some(GUILD),
        via: Ingress::Slash,
    };
    let seen = |reader: &Actor| verify::waiting(&world.state, reader).len();
    assert_eq!([seen(&person(OWNER)), seen(&Actor::Operator), seen(&person(UserId(5)))], [1, 1, 0]);
    let criterion = CriterionRef { request_id: id.clone(), number: 1 };
    let command = Command::Verify { criterion, verdict: ManualVerdict::Pass, words: String::new() };
    let guest = Holders { users: [UserId(5)].into(), ..Holders::default() };
    world.policy.rights.insert(Right::Approve, guest);
    let other = Event::Command { actor: person(UserId(5)), command, interaction: None };
    assert_eq!(said(world.submit(other)), "verify.unknown");
    let count = |reader: &Actor| overview(&world.state, Some(reader))["verify"].clone();
    assert_eq!([count(&person(OWNER)), count(&person(UserId(5)))], [json!(1), json!(0)]);

    // What they say is wrong is everybody's to mend, what they asked for is not.
    let criterion = CriterionRef { request_id: id.clone(), number: 1 };
    let words = "the button is grey".to_owned();
    let command = Command::Verify { criterion, verdict: ManualVerdict::Issue, words };
    world.submit(Event::Command { actor: person(OWNER), command, interaction: None });
    let items: Vec<&Item> = world.state.backlog.values().map(AsRef::as_ref).collect();
    let text = serde_json::to_string(&items).expect("JSON");
    assert!(text.contains("the button is grey") && text.contains(id.as_str()), "{text}");
    assert!(!text.contains("hushed") && !text.contains("looks calm"), "{text}");
}

#[test]
fn what_goes_on_from_what_was_asked_directly_stays_between_the_same() {
    let place = ChannelId(77);
    let author =
        Author { id: OWNER, name: "owner".to_owned(), is_bot: false, server_roles: Vec::new() };
    let in_server = Actor::Person { author, guild_id: Some(GUILD), via: Ingress::Slash };
    for actor in [in_server, Actor::Operator] {
        let mut world = World::new(Policy { dm: true, ..policy() });
        let direct = Message { guild_id: None, ..world.words(place, 9_001, "do it") };
        world.submit(Event::Message(direct));
        let id = world.state.requests.keys().next().cloned().expect("a request");
        world.finish_well();
        let ended = Some(Box::new(world.request(&id)));
        let text = "make it blue".to_owned();
        let command = Command::RequestChanges { request_id: id.clone(), text, ended };
        world.submit(Event::Command { actor, command, interaction: None });
        let follows = |it: &&Arc<Request>| it.params.follows_request_id.as_ref() == Some(&id);
        let next = world.state.requests.values().find(follows).expect("it goes on");
        let route = &next.conversation.reply_route;
        let shown = (route.is_dm, route.author_id, route.channel_id, route.message_id);
        assert_eq!(shown, (true, Some(OWNER), Some(place), None));
    }
}
