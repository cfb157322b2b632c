//! Sprints that wait for somebody: for a restart, for a decision, for money, for the clock.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::sprint_ends::until_at_work;
use super::sprints::{add, by_hand, key, kickoff, play, sprint, statuses};
use super::world::{Todo as Next, World, policy, press, result};
use crate::domain::budget::{Allowance, Budgets};
use crate::domain::change::Change;
use crate::domain::envelope::Envelope;
use crate::domain::event::Event;
use crate::domain::gate::{Gate, GateKind, Stance};
use crate::domain::ids::{EnvelopeId, ItemId, SubjectId};
use crate::domain::incoming::Command;
use crate::domain::item::{Item, ItemKind, ItemSource, ItemStatus};
use crate::domain::modes::SprintMode;
use crate::domain::outgoing::{ButtonAct, Outgoing};
use crate::domain::policy::{GateTable, Policy, SprintPolicy};
use crate::domain::record::{AnyRecord, RecordId};
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::sprint::{PlanningStep, Sprint, SprintStatus, Todo, TodoStatus};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::engine::why::about;

fn of_title(world: &World, title: &str) -> Item {
    let mut items = world.state.backlog.values();
    Item::clone(items.find(|item| item.title == title).expect("an item"))
}

fn gates(world: &World) -> Vec<Gate> {
    world.state.gates.values().map(|gate| Gate::clone(gate)).collect()
}

fn active(world: &World) -> Option<Sprint> {
    world.state.active_sprint().cloned()
}

/// People are asked about the plan of each sprint.
fn asked(policy: Policy) -> Policy {
    let gates = GateTable { sprint_plan: Some(Stance::Ask), ..policy.gates };
    Policy { gates, ..policy }
}

/// A person turns the plan of the sprint down, and is asked about none from then on.
fn turned_down(world: &mut World) {
    world.finish_well();
    let [gate] = gates(world).try_into().expect("one card");
    world.command(press(&gate, ButtonAct::Reject));
    world.policy.gates.sprint_plan = None;
}

#[test]
fn a_sprint_that_begins_by_itself_takes_neither_the_place_nor_the_items_of_one_that_waits() {
    let mut world = World::new(asked(policy()));
    world.command(kickoff());
    turned_down(&mut world);
    let waiting = sprint(&world);
    assert_eq!(waiting.status, SprintStatus::Blocked, "{}", waiting.closing.message);
    let planned = |world: &World| {
        let items = world.state.backlog.values();
        let its = items.filter(|it| it.planned_in_sprint_id == Some(waiting.sprint_id.clone()));
        its.count()
    };
    assert_eq!(planned(&world), 3);
    // What depends on its items waits with them.
    world.clock += 1_000;
    let on = [of_title(&world, "first").backlog_id];
    let payload = json!({ "title": "after", "scope": "do after", "depends_on": on });
    world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    assert_eq!(active(&world), None);
    // What else comes at night begins a sprint of its own, whose planner leaves them alone.
    add(&mut world, "other");
    let other = active(&world).expect("a sprint");
    assert_ne!(other.sprint_id, waiting.sprint_id);
    assert_eq!(of_title(&world, "other").planned_in_sprint_id, Some(other.sprint_id));
    assert_eq!(planned(&world), 3);
    while let Some(next) = world.todo().first().cloned() {
        if let Next::Run(id) = &next
            && world.state.envelopes[id].target_role == Role::Planner
            && planned_by(&world, id) == Some(PlanningStep::TodoFinalization)
        {
            let all = ["other", "first"].map(|title| {
                let (id, sprint) = (of_title(&world, title).backlog_id, sprint(&world).sprint_id);
                json!({ "backlog_id": id, "planned_in_sprint_id": sprint })
            });
            let said = result(Role::Planner, json!({ "backlog_items": all }));
            world.run(id, RunOutcome::Result(Arc::new(said)));
            continue;
        }
        world.do_well(&next);
    }
    assert_eq!((world.landed(), planned(&world)), (1, 3));
    let restarted = world.command(Command::SprintRestart);
    assert_eq!(key(&restarted), "sprint.restarted");
    assert_eq!(active(&world).map(|it| it.sprint_id), Some(waiting.sprint_id));
    world.finish_well();
    assert!(world.landed() >= 4);
}

/// The step of planning that a run is for.
fn planned_by(world: &World, envelope: &EnvelopeId) -> Option<PlanningStep> {
    let request = &world.state.envelopes[envelope].envelope.request_id;
    world.state.requests[request].planning_step()
}

#[test]
fn items_that_wait_for_each_other_begin_no_sprint() {
    let mut world = World::new(policy());
    add(&mut world, "alpha");
    let now = Timestamp::from_millis(world.clock);
    let ids = ["backlog-20260324-00000001", "backlog-20260324-00000002"];
    let ids = ids.map(|id| ItemId::parse(id).expect("an id"));
    for (own, other) in [(0, 1), (1, 0)] {
        let mut item = Item::new(ids[own].clone(), "around", "", ItemKind::Feature, now);
        item.depends_on = vec![ids[other].clone()];
        world.state.backlog.insert(ids[own].clone(), Arc::new(item));
    }
    world.finish_well();
    assert_eq!((world.landed(), world.state.sprint_ids.len()), (1, 1));
    assert_eq!(active(&world), None);
}

#[test]
fn a_sprint_whose_plan_cost_all_that_it_may_waits_for_its_restart() {
    let budgets =
        Budgets { sprint: Allowance { usd: Some(2.0), tokens: None }, ..Budgets::default() };
    let mut world = World::new(Policy { budgets, ..by_hand() });
    world.usage = Usage { cost_usd: 1.0, ..world.usage };
    world.command(kickoff());
    world.finish_well();
    let [gate] = gates(&world).try_into().expect("one card");
    assert_eq!(sprint(&world).status, SprintStatus::Planning);
    world.command(press(&gate, ButtonAct::Reject));
    world.finish_well();
    assert_eq!(sprint(&world).status, SprintStatus::Blocked);
    world.policy.budgets = Budgets::default();
    assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.restarted");
    world.finish_well();
    assert_eq!(world.landed(), 3);
}

#[test]
fn the_next_sprint_that_a_person_begins_takes_the_place_of_one_that_waits() {
    let mut world = World::new(asked(by_hand()));
    world.command(kickoff());
    turned_down(&mut world);
    let waiting = sprint(&world).sprint_id;
    world.clock += 60_000;
    assert_eq!(key(&world.command(kickoff())), "sprint.accepted");
    let items = world.state.backlog.values();
    assert!(items.clone().count() > 0);
    for item in items {
        assert_ne!(item.planned_in_sprint_id, Some(waiting.clone()), "{}", item.title);
    }
    world.finish_well();
    assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.refused.not_restartable");
}

#[test]
fn a_sprint_that_is_to_end_waits_for_no_decision() {
    for stop in [false, true] {
        let mut policy = by_hand();
        policy.gates.commit = Stance::Ask;
        let mut world = World::new(policy);
        world.command(kickoff());
        play(&mut world, |_, _| None);
        assert_eq!(gates(&world).len(), 2);
        match stop {
            true => drop(world.command(Command::SprintStop { now: false })),
            false => {
                world.clock = sprint(&world).cutoff_at.expect("a cutoff").millis();
                world.submit(Event::Tick);
            }
        }
        world.finish_well();
        assert!(sprint(&world).status.is_terminal(), "the slot is free");
        assert_eq!(active(&world), None);
        // What is built waits on, and lands when somebody says so.
        for gate in gates(&world) {
            world.command(press(&gate, ButtonAct::Approve));
        }
        world.finish_well();
        assert_eq!(world.landed(), 2);
        assert_eq!(of_title(&world, "third").status, ItemStatus::Pending);
    }
}

#[test]
fn a_paused_sprint_is_not_closed_by_the_end_of_the_day() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let todo = until_at_work(&mut world);
    let sprint_id = sprint(&world).sprint_id;
    let mut paused = sprint(&world);
    paused.work.paused_by = Some("Mina".to_owned());
    world.state.sprints.insert(sprint_id.clone(), std::sync::Arc::new(paused));
    world.clock = sprint(&world).cutoff_at.expect("a cutoff").millis() + 1;
    world.submit(Event::Tick);
    assert_eq!(sprint(&world).closing.wrap_up, None);
    let due = crate::engine::due(&world.state, &world.policy);
    assert!(due.iter().all(|at| at.millis() > world.clock), "{due:?}");
    world.command(Command::SprintRestart);
    world.finish_well();
    let ended = sprint(&world);
    assert_eq!((ended.sprint_id, ended.status), (sprint_id, SprintStatus::Completed));
    let now = ended.work.todos.iter().find(|it| it.progress.todo_id == todo.progress.todo_id);
    assert_eq!(now.expect("its todo").progress.status, TodoStatus::Committed);
}

#[test]
fn a_day_that_ended_unheard_ends_the_sprint_with_whatever_is_heard_first() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    until_at_work(&mut world);
    // The machine slept over it, and what an agent said comes before the alarm.
    world.clock = sprint(&world).cutoff_at.expect("a cutoff").millis() + 60_000;
    world.finish_well();
    let ended = sprint(&world);
    let begun = ended.work.todos.iter().filter(|todo| todo.progress.started_at.is_some()).count();
    assert_eq!(begun, 1, "no todo begins after the cutoff");
}

#[test]
fn a_clock_that_was_ahead_holds_nothing_up_when_it_is_put_right() {
    let month = 30 * 24 * 3_600_000;
    for mode in [SprintMode::WallClock, SprintMode::Rolling] {
        let sprint_policy = SprintPolicy { mode, ..SprintPolicy::default() };
        let mut world = World::new(Policy { sprint: sprint_policy, ..policy() });
        add(&mut world, "alpha");
        let before = world.clock;
        world.clock += month;
        world.submit(Event::Tick);
        world.finish_well();
        add(&mut world, "beta");
        world.clock = before + 1_000;
        world.submit(Event::Tick);
        let due = world.state.scheduler.slots.next_slot_at.expect("a slot");
        assert!(due.millis() <= world.clock + 3 * 3_600_000, "{mode:?}");
    }
    let mut world = World::new(by_hand());
    let before = world.clock;
    world.clock += month;
    world.command(kickoff());
    until_at_work(&mut world);
    world.clock = before;
    world.submit(Event::Tick);
    let now = sprint(&world);
    assert!(now.cutoff_at.expect("a cutoff").millis() < before + 24 * 3_600_000);
    assert!(now.planning.last_review_at.expect("a review").millis() <= world.clock);
}

#[test]
fn a_todo_whose_requests_record_is_gone_is_blocked_and_the_sprint_goes_on() {
    for comes_back in [false, true] {
        let mut world = World::new(by_hand());
        add(&mut world, "alpha");
        world.command(kickoff());
        let todo = until_at_work(&mut world);
        let id = todo.progress.request_id.expect("a request");
        let request = world.request(&id);
        // Somebody removed the file while the team was down, and may have put it back since.
        world.state.apply(&Change::Remove(RecordId::Request(id.clone())));
        let started = || Event::Started { serves: Role::ALL.to_vec(), announce: false };
        world.submit(started());
        let own = |it: &Todo| it.progress.todo_id == todo.progress.todo_id;
        let now = sprint(&world).work.todos.into_iter().find(own).expect("its todo");
        assert_eq!(now.progress.status, TodoStatus::Blocked);
        assert!(world.said.contains(&"sprint.request_gone".to_owned()));
        let sprint_id = sprint(&world).sprint_id;
        if comes_back {
            world.state.apply(&Change::save(request));
            world.submit(started());
        }
        world.finish_well();
        assert!(active(&world).is_none_or(|it| it.sprint_id != sprint_id), "{:#?}", active(&world));
        // What is done is no open item any more.
        let left = world.state.backlog.values().find(|item| item.title == todo.title);
        assert_eq!(left.map(|item| item.status), (!comes_back).then_some(ItemStatus::Blocked));
    }
}

/// Messages and hand-offs that were to be tried again wait by it as well; what a model's server has told is waited for.
#[test]
fn what_is_tried_again_does_not_wait_for_a_clock_that_was_ahead() {
    for is_told in [false, true] {
        for event in [Event::Tick, Event::Started { serves: Role::ALL.to_vec(), announce: false }] {
            let mut world = World::new(by_hand());
            world.message("do it");
            let ahead = Timestamp::from_millis(world.clock + 9 * 3_600_000);
            let later = Some(ahead);
            let outgoing = world.state.outgoing.values().next().expect("a receipt").clone();
            let changed = Outgoing { not_before: later, ..Outgoing::clone(&outgoing) };
            world.state.apply(&Change::save(changed));
            let envelope = world.state.envelopes.values().next().expect("a hand-off").clone();
            let created_at = if is_told { envelope.created_at } else { ahead };
            let changed = Envelope { created_at, not_before: later, ..Envelope::clone(&envelope) };
            world.state.apply(&Change::save(changed));
            world.submit(event);
            assert_eq!(world.state.outgoing[&outgoing.outgoing_id].not_before, None);
            let waits = world.state.envelopes[&envelope.relay_id].not_before;
            assert_eq!(waits, later.filter(|_| is_told));
        }
    }
}

#[test]
fn who_grants_a_sprint_no_more_money_is_asked_once() {
    let budgets = Budgets { sprint: dollars(9.0), ..Budgets::default() };
    let world = out_of_budget(Policy { budgets, ..by_hand() });
    assert!(sprint(&world).status.is_terminal(), "{:?}", statuses(&world));
    assert_eq!(cards(&world), 1);
    assert!(world.said.iter().any(|key| key == "sprint.out_of_budget"));
}

#[test]
fn a_budget_that_is_turned_down_while_a_sprint_is_planned_stops_it_once_and_by_name() {
    let day = Budgets { day: dollars(2.0), ..Budgets::default() };
    let by_role = Budgets { roles: [(Role::Planner, dollars(1.0))].into(), ..Budgets::default() };
    for budgets in [day, by_role] {
        let mut world = World::new(Policy { budgets, ..by_hand() });
        world.usage = Usage { cost_usd: 1.0, ..world.usage };
        world.command(kickoff());
        for _ in 0..8 {
            world.finish_well();
            let Some(gate) = gates(&world).first().cloned() else { break };
            assert_eq!(gate.kind, GateKind::Budget);
            world.command(press(&gate, ButtonAct::Reject));
        }
        assert_eq!(cards(&world), 1, "{:?}", world.said);
        assert!(
            active(&world).is_none() && world.said.iter().any(|it| it == "sprint.out_of_budget")
        );
        assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.restarted");
    }
}

/// How many cards there were.
fn cards(world: &World) -> usize {
    let opened = world.log.iter().filter_map(|change| {
        let Change::Save(AnyRecord::Gate(gate)) = change else { return None };
        Some(gate.gate_id.clone())
    });
    opened.collect::<BTreeSet<_>>().len()
}

/// A sprint that has come to the one card for a budget, which a person has turned down.
fn out_of_budget(policy: Policy) -> World {
    let mut world = World::new(policy);
    world.usage = Usage { cost_usd: 1.0, ..world.usage };
    world.command(kickoff());
    world.finish_well();
    let [gate] = gates(&world).try_into().expect("one card");
    assert_eq!(gate.kind, GateKind::Budget);
    world.command(press(&gate, ButtonAct::Reject));
    world.finish_well();
    world
}

/// The same of a budget of the day, in a workspace whose working day has no end.
fn out_of_todays_budget(budgets: Budgets) -> World {
    let sprint = SprintPolicy { cutoff: None, ..by_hand().sprint };
    out_of_budget(Policy { budgets, sprint, ..policy() })
}

fn dollars(usd: f64) -> Allowance {
    Allowance { usd: Some(usd), tokens: None }
}

fn day(world: &World) -> String {
    Timestamp::from_millis(world.clock).budget_day(world.policy.sprint.zone.0)
}

fn waits_for_next_day(world: &World) -> bool {
    let now = Timestamp::from_millis(world.clock);
    let todos = sprint(world).work.todos;
    let is_said = |todo: &Todo| {
        let id = SubjectId::parse(todo.progress.todo_id.as_str()).expect("an id");
        about(&world.state, &world.policy, &id, now).is_some_and(|it| it.key == "why.todo_next_day")
    };
    todos.iter().any(is_said)
}

#[test]
fn todays_budget_that_is_turned_down_is_asked_about_once_and_its_todos_wait_for_the_next_day() {
    let by_role = Budgets { roles: [(Role::Developer, dollars(1.0))].into(), ..Budgets::default() };
    for budgets in [Budgets { day: dollars(9.0), ..Budgets::default() }, by_role] {
        let mut world = out_of_todays_budget(budgets);
        assert_eq!((cards(&world), world.state.gates.len()), (1, 0));
        assert!(active(&world).is_some(), "{:?}", statuses(&world));
        assert!(world.said.iter().any(|key| key == "sprint.next_day"));
        assert!(waits_for_next_day(&world));
        let queued = |world: &World| {
            statuses(world).iter().filter(|(_, status)| *status == TodoStatus::Queued).count()
        };
        let subject = SubjectId::parse(sprint(&world).sprint_id.as_str()).expect("an id");
        let now = Timestamp::from_millis(world.clock);
        let said = about(&world.state, &world.policy, &subject, now).expect("it is known");
        assert!(said.values["declined"].is_object(), "{said:?}");
        let waiting = queued(&world);
        let today = day(&world);
        while day(&world) == today {
            assert_eq!(queued(&world), waiting);
            assert!(world.wait_until_due());
        }
        assert!(queued(&world) < waiting, "a new day, a new budget: {:?}", statuses(&world));
    }
}

#[test]
fn whoever_asks_for_more_of_todays_budget_gets_a_card_and_the_todos_go_on_with_it() {
    let mut world = out_of_todays_budget(Budgets { day: dollars(9.0), ..Budgets::default() });
    let stopped = world.state.requests.values().find(|it| it.blocked.is_some()).expect("one");
    let request_id = stopped.request_id.clone();
    world.command(Command::Retry { request_id });
    world.finish_well();
    assert_eq!(cards(&world), 2);
    let [gate] = gates(&world).try_into().expect("one card");
    world.command(press(&gate, ButtonAct::Approve));
    assert!(!waits_for_next_day(&world));
}

#[test]
fn a_restart_goes_on_today_and_asks_again() {
    let mut world = out_of_todays_budget(Budgets { day: dollars(9.0), ..Budgets::default() });
    let blocked = world.state.requests.values().find(|it| it.blocked.is_some()).expect("one");
    let stopped = blocked.request_id.clone();
    assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.restarted");
    assert!(!waits_for_next_day(&world));
    world.finish_well();
    let [gate] = gates(&world).try_into().expect("one card");
    assert_eq!((gate.kind, cards(&world)), (GateKind::Budget, 2));
    // What was built so far is not built again.
    assert_eq!(gate.request_id, stopped);
}

#[test]
fn no_sprint_begins_by_itself_while_todays_budget_is_turned_down() {
    let budgets = Budgets { day: dollars(2.0), ..Budgets::default() };
    let mut world = World::new(Policy { budgets, ..policy() });
    world.usage = Usage { cost_usd: 1.0, ..world.usage };
    world.message("do it");
    world.finish_well();
    let [gate] = gates(&world).try_into().expect("one card");
    world.command(press(&gate, ButtonAct::Reject));
    add(&mut world, "alpha");
    let today = day(&world);
    while day(&world) == today {
        assert_eq!((active(&world), cards(&world)), (None, 1));
        assert!(world.wait_until_due());
        world.finish_well();
    }
    assert!(active(&world).is_some());
}

#[test]
fn who_orders_the_backlog_after_a_stop_begins_nothing() {
    let mut world = World::new(policy());
    add(&mut world, "alpha");
    add(&mut world, "beta");
    add(&mut world, "gamma");
    let status = |world: &mut World, title: &str, status: &str| {
        let payload = json!({ "backlog_id": of_title(world, title).backlog_id, "status": status });
        let said = world.command(Command::BacklogMerge { payload, source: ItemSource::User });
        assert_eq!(key(&said), "backlog.merged");
    };
    until_at_work(&mut world);
    status(&mut world, "gamma", "blocked");
    world.command(Command::SprintStop { now: true });
    world.finish_well();
    world.clock += 60_000;
    let payload = json!({ "backlog_id": of_title(&world, "beta").backlog_id, "priority_rank": 1 });
    world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    assert_eq!(active(&world), None);
    // What became possible since does.
    world.clock += 60_000;
    status(&mut world, "gamma", "pending");
    assert!(active(&world).is_some());
}

#[test]
fn what_a_person_did_instead_frees_what_waits_for_it() {
    let mut policy = by_hand();
    policy.gates.commit = Stance::Ask;
    let mut world = World::new(policy);
    world.command(kickoff());
    play(&mut world, |_, _| None);
    let first = of_title(&world, "first").backlog_id;
    let is_its =
        |gate: &&Gate| world.state.requests[&gate.request_id].backlog_id.as_ref() == Some(&first);
    let gate = gates(&world).iter().find(is_its).cloned().expect("its card");
    world.command(press(&gate, ButtonAct::Reject));
    let waits = |world: &World| {
        let all = statuses(world);
        all.iter().find(|it| it.0 == "third").map(|it| it.1) == Some(TodoStatus::Queued)
    };
    assert!(waits(&world));
    let payload = json!({ "backlog_id": first, "status": "done" });
    let said = world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    assert_eq!(key(&said), "backlog.merged");
    assert!(!waits(&world), "{:?}", statuses(&world));
}

#[test]
fn words_in_the_room_of_a_change_that_was_turned_down_are_about_its_item() {
    let mut policy = by_hand();
    policy.gates.commit = Stance::Ask;
    let mut world = World::new(policy);
    world.command(kickoff());
    world.finish_well();
    world.deliver();
    let gate = gates(&world).first().cloned().expect("a card");
    let item = world.state.requests[&gate.request_id].backlog_id.clone().expect("an item");
    let room = world.state.rooms.iter().find(|(_, id)| **id == gate.request_id);
    let room = *room.expect("a room").0;
    world.command(press(&gate, ButtonAct::Reject));
    world.deliver();
    assert_eq!(world.item(&item).status, ItemStatus::Blocked);
    let requests = world.state.requests.len();
    let words = world.words(room, 77_000, "do it without the cache");
    world.submit(Event::Message(words));
    assert_eq!(world.item(&item).status, ItemStatus::Pending);
    assert_eq!(world.item(&item).answers, ["owner: do it without the cache"]);
    assert!(world.state.requests.len() <= requests, "no request of its own");
}
