//! Plans that people bring: taken in once, changed only when exactly the change was approved, and never under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::sprints::{by_hand, key, sprint};
use super::world::{Todo as Next, World};
use crate::domain::change::Change;
use crate::domain::criterion::Criterion;
use crate::domain::ids::{ItemId, PlanId, PlanItemId};
use crate::domain::incoming::Command;
use crate::domain::item::{Item, ItemSource, ItemStatus};
use crate::domain::plan::{Plan, PlanItem};
use crate::domain::sprint::{Kickoff, TodoStatus};
use crate::engine::Answer;

fn item(id: &str, on: &[&str]) -> PlanItem {
    let mut item = PlanItem::new(PlanItemId::parse(id).unwrap(), &format!("The {id}"));
    item.scope = format!("do {id}");
    item.criteria = vec![format!("`{id}` is there").into()];
    item.allowed_paths = vec![format!("src/{id}/**")];
    item.depends_on = on.iter().map(|id| PlanItemId::parse(id).unwrap()).collect();
    item
}

fn plan(items: Vec<PlanItem>) -> Plan {
    Plan { title: "Letters".to_owned(), requirements: Vec::new(), items }
}

fn import(world: &mut World, plan: &Plan, approve: Option<&str>) -> Answer {
    world.command(Command::PlanImport {
        plan_id: PlanId::parse("letters").unwrap(),
        plan: Box::new(plan.clone()),
        approve: approve.map(str::to_owned),
    })
}

/// What approves the difference of a version to the one that is stored.
fn approval(world: &World, plan: &Plan) -> String {
    let stored = world.state.plans.values().next().expect("a plan");
    stored.approval_of(&plan.digest())
}

/// Takes in another version, with its approval.
fn import_approved(world: &mut World, plan: &Plan) -> Answer {
    let approved = approval(world, plan);
    import(world, plan, Some(&approved))
}

/// The open items of the backlog by what they are called in the plan.
fn backlog(world: &World) -> BTreeMap<String, Item> {
    let items = world.state.backlog.values();
    let named = |item: &Item| item.plan.as_ref().map(|plan| plan.item_id.to_string());
    items.filter_map(|item| Some((named(item)?, Item::clone(item)))).collect()
}

#[test]
fn a_plan_becomes_items_once() {
    let mut world = World::new(by_hand());
    let mut letters = plan(vec![item("US-1", &[]), item("US-2", &["US-1"])]);
    letters.items[0].criteria.push("(check: untis) it adds".into());
    let approved = Some(letters.digest());
    assert_eq!(key(&import(&mut world, &letters, approved.as_deref())), "plan.not_known");
    let answer = import(&mut world, &letters, None);
    let Answer::Say(said) = &answer else { panic!("{answer:?}") };
    assert_eq!(
        (said.key.as_str(), &said.values["unknown_checks"]),
        ("plan.imported", &json!(["untis"]))
    );
    let first = backlog(&world);
    assert_eq!(first["US-2"].depends_on, [first["US-1"].backlog_id.clone()]);
    assert_eq!(first["US-1"].acceptance_criteria[0], Criterion::from("`US-1` is there"));
    assert_eq!(
        (first["US-1"].status, first["US-1"].milestone_title.as_str()),
        (ItemStatus::Pending, "Letters")
    );
    assert_eq!(key(&import(&mut world, &letters, None)), "plan.unchanged");
    world.restart();
    assert_eq!(key(&import(&mut world, &letters, None)), "plan.unchanged");
    assert_eq!(backlog(&world), first);
}

#[test]
fn what_is_wrong_with_a_plan_changes_nothing() {
    let mut world = World::new(by_hand());
    let mut bare = item("US-2", &["US-9"]);
    bare.criteria.clear();
    assert_eq!(
        key(&import(&mut world, &plan(vec![item("US-1", &[]), bare]), None)),
        "plan.refused"
    );
    assert!(world.state.backlog.is_empty() && world.state.plans.is_empty());
}

#[test]
fn a_newer_version_counts_when_exactly_it_is_approved() {
    let mut world = World::new(by_hand());
    let first = plan(vec![item("US-1", &[]), item("US-2", &["US-1"]), item("US-3", &[])]);
    import(&mut world, &first, None);
    let before = backlog(&world);
    let mut second = plan(vec![item("US-1", &[]), item("US-2", &[]), item("US-4", &["US-2"])]);
    for approve in [None, Some("abc"), Some(&first.digest()[..12])] {
        let expected = if approve.is_none() { "plan.difference" } else { "plan.other_digest" };
        assert_eq!(key(&import(&mut world, &second, approve)), expected);
        assert_eq!(backlog(&world), before);
    }
    // What was approved and was edited since is another version.
    let approved = approval(&world, &second);
    second.items[0].scope.push('!');
    assert_eq!(key(&import(&mut world, &second, Some(&approved))), "plan.other_digest");
    let answer = import(&mut world, &second, None);
    let Answer::Say(said) = &answer else { panic!("{answer:?}") };
    let first_told = &said.values["differences"][0];
    assert_eq!((&first_told["how"], &first_told["item_id"]), (&json!("removed"), &json!("US-3")));
    assert_eq!(key(&import_approved(&mut world, &second)), "plan.imported");
    let after = backlog(&world);
    assert_eq!(after.keys().collect::<Vec<_>>(), ["US-1", "US-2", "US-4"], "US-3 was left out");
    for id in ["US-1", "US-2"] {
        assert_eq!(after[id].backlog_id, before[id].backlog_id, "the same item, changed");
    }
    assert_eq!(after["US-1"].scope, "do US-1!");
    assert!(after["US-2"].depends_on.is_empty());
    assert_eq!(world.item(&before["US-3"].backlog_id).status, ItemStatus::Dropped);
    assert_eq!(world.state.plans.values().next().map(|plan| plan.version), Some(2));
    // What its author ticks off is delivered.
    second.items[0].done = true;
    assert_eq!(key(&import_approved(&mut world, &second)), "plan.imported");
    assert_eq!(world.item(&before["US-1"].backlog_id).status, ItemStatus::Done);
}

#[test]
fn a_difference_that_nobody_has_seen_is_not_approved() {
    let mut world = World::new(by_hand());
    import(&mut world, &plan(vec![item("US-1", &[])]), None);
    let mine = plan(vec![item("US-1", &[]), item("US-2", &[])]);
    let approved = approval(&world, &mine);
    // Somebody takes in a version of their own meanwhile.
    import_approved(&mut world, &plan(vec![item("US-1", &[]), item("US-3", &[])]));
    assert_eq!(key(&import(&mut world, &mine, Some(&approved))), "plan.other_digest");
    assert!(backlog(&world).contains_key("US-3"));
}

#[test]
fn what_did_not_change_waits_for_what_is_done_anew() {
    let mut world = World::new(by_hand());
    let mut letters = plan(vec![item("US-1", &[]), item("US-2", &["US-1"])]);
    import(&mut world, &letters, None);
    let first = backlog(&world)["US-1"].backlog_id.clone();
    letters.items[0].done = true;
    import_approved(&mut world, &letters);
    assert_eq!(world.item(&first).status, ItemStatus::Done);
    letters.items[0].done = false;
    letters.items[0].criteria.push("and more".into());
    import_approved(&mut world, &letters);
    let all = backlog(&world);
    assert_ne!(all["US-1"].backlog_id, first, "what is delivered is done anew");
    assert!(all["US-2"].depends_on.contains(&all["US-1"].backlog_id), "{:?}", all["US-2"]);
}

#[test]
fn what_an_agent_says_of_a_persons_plan_changes_nothing_and_is_no_news() {
    let mut world = World::new(by_hand());
    import(&mut world, &plan(vec![item("US-1", &[])]), None);
    let before = backlog(&world);
    let id = before["US-1"].backlog_id.clone();
    let said = |effort: u32| json!([{"backlog_id": id, "scope": "less", "allowed_paths": ["**"], "effort": effort}]);
    let (payload, source) = (said(2), ItemSource::Planner);
    let answer = world.command(Command::BacklogMerge { payload, source });
    assert!(!matches!(answer, Answer::Refused(_)), "{answer:?}");
    assert_eq!(backlog(&world), before, "nor when it changed");
    let origin = json!({"requirement_refs": ["R-9"]});
    let payload =
        json!([{"backlog_id": id, "status": "dropped", "dropped_reason": "no", "origin": origin}]);
    world.command(Command::BacklogMerge { payload, source: ItemSource::Planner });
    assert_eq!(backlog(&world), before, "nor is it dropped, or called what serves something else");
    let (payload, source) = (said(2), ItemSource::User);
    world.command(Command::BacklogMerge { payload, source });
    assert_eq!(backlog(&world)["US-1"].effort, 2, "a person may");
}

#[test]
fn what_a_person_adds_to_an_item_of_a_plan_stays_in_newer_versions_of_it() {
    let mut world = World::new(by_hand());
    let mut letters = plan(vec![item("US-1", &[])]);
    import(&mut world, &letters, None);
    let id = backlog(&world)["US-1"].backlog_id.clone();
    let criteria = ["`US-1` is there", "(manual) it prints in Korean"];
    let payload = json!([{"backlog_id": id, "acceptance_criteria": criteria}]);
    world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    letters.items[0].priority_rank = 7;
    letters.items[0].criteria = vec!["`US-1` is found".into()];
    import_approved(&mut world, &letters);
    let now = &backlog(&world)["US-1"];
    let told: Vec<&str> = now.acceptance_criteria.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(told, ["`US-1` is found", "it prints in Korean"]);
    assert_eq!((now.priority_rank, now.persons_criteria.len()), (7, 1));
}

#[test]
fn what_is_under_way_stays_as_it_is_and_what_changed_of_it_is_queued_again() {
    let mut world = World::new(by_hand());
    let mut letters = plan(vec![item("US-1", &[]), item("US-2", &["US-1"]), item("US-3", &[])]);
    import(&mut world, &letters, None);
    world.command(Command::SprintStart {
        kickoff: Box::new(Kickoff { milestone: "Letters".to_owned(), ..Kickoff::default() }),
    });
    let todo = loop {
        let mut todos = sprint(&world).work.todos.into_iter();
        if let Some(todo) = todos.find(|todo| todo.progress.status == TodoStatus::Running) {
            break todo;
        }
        let next: Next = world.todo().first().cloned().expect("something to do");
        world.do_well(&next);
    };
    let id = todo.backlog_id.expect("an item");
    let held = world.item(&id);
    let running = held.plan.clone().expect("an item of the plan");
    // The planner proposed other criteria, ranks and no dependencies: what the person wrote stands.
    let said = Criterion::from(format!("`{}` is there", running.item_id));
    assert_eq!((held.acceptance_criteria.clone(), held.priority_rank > 0), (vec![said], true));
    // Another estimate or rank is told to what waits, and begins nothing anew.
    for (rank, item) in (7..).zip(&mut letters.items) {
        (item.effort, item.priority_rank) = (3, rank);
        item.scope.push_str("\nEstimate: 1.5d");
    }
    import_approved(&mut world, &letters);
    let of_plan = |world: &World| -> Vec<(bool, u32)> {
        let all = world.state.backlog.values().filter(|item| item.plan.is_some());
        all.map(|item| (item.backlog_id == id, item.effort)).collect()
    };
    let efforts = of_plan(&world);
    assert_eq!((efforts.len(), efforts.contains(&(true, 0))), (3, true), "{efforts:?}");
    for item in &mut letters.items {
        item.criteria.push("and more".into());
    }
    import_approved(&mut world, &letters);
    assert_eq!(world.item(&id), held, "what is under way");
    let all = world.state.backlog.values().filter(|item| item.plan.as_ref() == Some(&running));
    assert_eq!(all.count(), 2, "the one at work, and the one that is queued");
    // What waits in the sprint is one item, with the new words, and its todo says them.
    let is_other = |it: &&Arc<Item>| {
        it.depends_on.is_empty() && it.plan.as_ref().is_some_and(|of| *of != running)
    };
    let waits = world.state.backlog.values().find(is_other);
    let waits = Item::clone(waits.expect("the other one"));
    assert_eq!((waits.status, waits.effort), (ItemStatus::Selected, 3));
    let of_it = |world: &World| {
        let mut todos = sprint(world).work.todos.into_iter();
        todos.find(|todo| todo.backlog_id.as_ref() == Some(&waits.backlog_id)).expect("its todo")
    };
    let criteria = of_it(&world).acceptance_criteria;
    assert!(criteria.iter().any(|it| it.text == "and more"), "{criteria:?}");
    // A person takes it out of the sprint, and nobody builds it.
    let payload =
        json!([{"backlog_id": waits.backlog_id, "status": "dropped", "dropped_reason": "no"}]);
    world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    assert_eq!(of_it(&world).progress.status, TodoStatus::Cancelled);
    assert_eq!(world.item(&waits.backlog_id).status, ItemStatus::Dropped);
}

#[test]
fn plans_may_use_the_same_ids_and_name_items_of_each_other() {
    let mut world = World::new(by_hand());
    let mut bring = |name: &str, items: Vec<PlanItem>| {
        let plan_id = PlanId::parse(name).unwrap();
        let answer = world.command(Command::PlanImport {
            plan_id,
            plan: Box::new(plan(items)),
            approve: None,
        });
        assert_eq!(key(&answer), "plan.imported");
    };
    bring("first", vec![item("US-1", &[]), item("01-01", &[])]);
    let mut delivered = item("US-1", &[]);
    delivered.done = true;
    bring("second", vec![delivered, item("US-2", &["US-1", "01-01"])]);
    let items = world.state.backlog.values();
    let named = |id: &str| {
        let mine = |it: &&std::sync::Arc<Item>| it.plan.as_ref().unwrap().item_id.as_str() == id;
        items.clone().find(mine).unwrap()
    };
    assert_eq!(
        named("US-2").depends_on,
        [named("01-01").backlog_id.clone()],
        "its own US-1 is delivered"
    );
}

#[test]
fn a_newer_version_takes_the_place_of_the_pieces_that_an_item_was_split_into() {
    let mut world = World::new(by_hand());
    let mut letters = plan(vec![item("US-1", &[]), item("US-2", &["US-1"])]);
    import(&mut world, &letters, None);
    // As a split leaves it: two pieces of US-1, and US-2 waits for both.
    let first = backlog(&world)["US-1"].clone();
    let backlog_id = ItemId::parse("backlog-20991231-ffffffff").unwrap();
    let half = Item {
        backlog_id: backlog_id.clone(),
        title: "the other half".to_owned(),
        depends_on: vec![first.backlog_id.clone()],
        piece_of: first.plan.clone(),
        plan: None,
        persons_criteria: vec!["`US-1` is there".into(), "it prints".into()],
        ..first.clone()
    };
    world.state.apply(&Change::save(half));
    let mut second = backlog(&world)["US-2"].clone();
    second.depends_on = vec![first.backlog_id.clone(), backlog_id.clone()];
    let second_id = second.backlog_id.clone();
    world.state.apply(&Change::save(second));
    (letters.items[0].effort, letters.items[0].priority_rank) = (5, 9);
    letters.items[0].scope.insert_str(0, "Effort: 2.5d\n");
    import_approved(&mut world, &letters);
    let status = |world: &World, id: &ItemId| world.item(id).status;
    let kept = &world.state.backlog[&backlog_id];
    assert_eq!(kept.status, ItemStatus::Pending, "an estimate or a rank changes no piece");
    let plan_is = |text: &str| world.item(&first.backlog_id).scope == text;
    assert!(plan_is("do US-1"));
    letters.items[0].scope.push('!');
    import_approved(&mut world, &letters);
    let now = world.item(&first.backlog_id);
    assert_eq!((now.scope.as_str(), now.depends_on.len()), ("Effort: 2.5d\ndo US-1!", 0));
    assert_eq!(status(&world, &backlog_id), ItemStatus::Dropped);
    let told: Vec<&str> = now.acceptance_criteria.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(told, ["`US-1` is there", "it prints"], "what a person wrote for the whole stays");
    let waits = world.item(&second_id);
    assert_eq!(
        (waits.status, waits.depends_on),
        (ItemStatus::Pending, vec![first.backlog_id.clone()])
    );
    // What is not in the plan any more goes with all its pieces.
    letters.items = vec![item("US-2", &[])];
    import_approved(&mut world, &letters);
    assert_eq!(status(&world, &first.backlog_id), ItemStatus::Dropped);
    assert_eq!(status(&world, &second_id), ItemStatus::Pending);
}
