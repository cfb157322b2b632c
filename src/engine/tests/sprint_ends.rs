//! How sprints end, are stopped and go on (`spec/teams.md` 9.8 and 9.9), by the rows of 14.7 and 14.8.

use std::sync::Arc;

use serde_json::json;

use super::sprints::{add, by_hand, key, kickoff, negative, sprint};
use super::world::{
    Move, Todo as Next, World, candidate, crash, good_effect, policy, press, result,
};
use crate::domain::attachment::Attachment;
use crate::domain::effect::{
    Effect, EffectKind, EffectOutcome, EffectState, GitObstacle, Inspection, ProofMode,
};
use crate::domain::event::Event;
use crate::domain::gate::Stance;
use crate::domain::ids::RequestId;
use crate::domain::incoming::Command;
use crate::domain::item::{Item, ItemSource, ItemStatus};
use crate::domain::lifecycle::{Lifecycle, Subject};
use crate::domain::modes::SprintMode;
use crate::domain::outgoing::ButtonAct;
use crate::domain::policy::{GateTable, Policy, SprintPolicy};
use crate::domain::request::{Request, RequestRoute, RequestStatus, RequestWork};
use crate::domain::result::ResultStatus;
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::sprint::{
    CloseoutStatus, Kickoff, Sprint, SprintStatus, Todo, TodoStatus, Trigger, WrapUp,
};
use crate::engine::lifecycle::steps;

#[test]
fn a_stop_after_the_current_todo_releases_what_has_not_begun() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut stopped = false;
    while let Some(next) = world.todo().first().cloned() {
        let running = sprint(&world)
            .work
            .todos
            .iter()
            .any(|todo| todo.progress.status == TodoStatus::Running);
        if running && !stopped {
            stopped = true;
            world.command(Command::SprintStop { now: false });
        }
        world.do_well(&next);
    }
    let ended = sprint(&world);
    assert_eq!(ended.status, SprintStatus::Completed, "{}", ended.closing.message);
    let committed = ended
        .work
        .todos
        .iter()
        .filter(|todo| todo.progress.status == TodoStatus::Committed)
        .count();
    assert_eq!(committed, 1);
    let waiting =
        world.state.backlog.values().filter(|it| it.status == ItemStatus::Pending).count();
    assert_eq!(waiting, 2);
    world.deliver();
    assert!(world.state.requests.is_empty());
}

#[test]
fn items_that_are_gone_come_back_from_the_todos_that_need_them() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    until_at_work(&mut world);
    // One that waits depends on the one that is at work.
    let now = sprint(&world);
    let with = |status: TodoStatus| move |it: &&Todo| it.progress.status == status;
    let running = now.work.todos.iter().find(with(TodoStatus::Running)).expect("one is at work");
    let waits = now.work.todos.iter().find(with(TodoStatus::Queued)).expect("one waits");
    let on = [running.backlog_id.clone().expect("an item")];
    let payload = json!({ "backlog_id": waits.backlog_id, "depends_on": on, "origin": { "requirement_refs": ["R-1"] } });
    world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    let shown = sprint(&world).work.todos;
    let its = |it: &&Todo| it.progress.todo_id == waits.progress.todo_id;
    let depends_on = shown.iter().find(its).map(|it| &it.depends_on);
    assert_eq!(depends_on, Some(&vec![running.progress.todo_id.clone()]));
    // Somebody removed their records while the team was down.
    let before = std::mem::take(&mut world.state.backlog);
    world.submit(Event::Started { announce: false, serves: Role::ALL.into() });
    assert_eq!(world.state.backlog.len(), 3);
    assert_eq!(sprint(&world).work.todos, shown);
    for (id, item) in &world.state.backlog {
        assert_eq!((&item.title, item.status), (&before[id].title, ItemStatus::Selected));
        assert_eq!(item.selected_in_sprint_id, Some(sprint(&world).sprint_id));
    }
    world.finish_well();
    assert_eq!(sprint(&world).status, SprintStatus::Completed);
    assert!(world.state.backlog.is_empty(), "delivered");
}

#[test]
fn what_comes_late_for_an_ended_sprint_leaves_the_next_one_alone() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let late = world.state.effects.values().next().cloned().expect("the baseline");
    assert!(matches!(late.kind, EffectKind::Baseline { .. }));
    world.command(Command::SprintStop { now: true });
    while let Some(next) =
        world.todo().into_iter().find(|it| *it != Next::Effect(late.effect_id.clone()))
    {
        world.do_well(&next);
    }
    assert_eq!(sprint(&world).status, SprintStatus::Cancelled);
    world.command(kickoff());
    let second = world.state.scheduler.active_sprint_id.clone().expect("the next sprint");
    world.effect(&late.effect_id, EffectOutcome::failed("late"));
    assert_eq!(world.state.scheduler.active_sprint_id, Some(second));
}

/// Goes on until a todo of the sprint is at work, and returns it.
pub(super) fn until_at_work(world: &mut World) -> Todo {
    loop {
        let mut todos = sprint(world).work.todos.into_iter();
        if let Some(todo) = todos.find(|it| it.progress.status == TodoStatus::Running) {
            return todo;
        }
        let next = world.todo().first().cloned().expect("something to do");
        world.do_well(&next);
    }
}

#[test]
fn what_a_stop_released_waits_for_the_next_slot() {
    for slot_came in [false, true] {
        let mut world = World::new(policy());
        add(&mut world, "alpha");
        add(&mut world, "beta");
        until_at_work(&mut world);
        if slot_came {
            let slot = world.state.scheduler.slots.next_slot_at.expect("a slot");
            world.clock = slot.millis();
            world.submit(Event::Tick);
            assert_eq!(world.state.scheduler.slots.deferred_slot_at, Some(slot));
        }
        world.command(Command::SprintStop { now: true });
        world.finish_well();
        assert_eq!(world.state.sprint_ids.len(), 1, "nothing begins against a person's word");
        let slot = world.state.scheduler.slots.next_slot_at.expect("a slot");
        world.clock = slot.millis();
        world.submit(Event::Tick);
        assert_eq!(sprint(&world).trigger, Trigger::ScheduledSlot);
        assert_eq!(world.state.sprint_ids.len(), 2);
    }
}

#[test]
fn what_was_to_end_when_its_sprint_was_stopped_waits_for_an_answer() {
    let mut world = World::new(policy());
    add(&mut world, "alpha");
    let todo = until_at_work(&mut world);
    world.deliver();
    let request = world.request(todo.progress.request_id.as_ref().expect("its request"));
    let room = request.conversation.thread().expect("its room");
    let words = world.words(room, 700, "stop");
    world.submit(Event::Message(words));
    world.command(Command::SprintStop { now: true });
    world.finish_well();
    let item = world.item(todo.backlog_id.as_ref().expect("its item"));
    assert_eq!((item.status, item.blocked_reason.as_str()), (ItemStatus::Blocked, "owner: stop"));
    let slot = world.state.scheduler.slots.next_slot_at.expect("a slot");
    world.clock = slot.millis();
    world.submit(Event::Tick);
    world.finish_well();
    assert_eq!(world.landed(), 0, "nobody has answered");
}

#[test]
fn a_rolling_team_with_nothing_to_do_sleeps_for_an_interval_and_begins_what_comes_at_once() {
    let rolling = SprintPolicy { mode: SprintMode::Rolling, ..SprintPolicy::default() };
    let mut world = World::new(Policy { sprint: rolling, ..policy() });
    add(&mut world, "alpha");
    let slot = world.state.scheduler.slots.next_slot_at.expect("a slot");
    world.clock = slot.millis();
    world.submit(Event::Tick);
    world.finish_well();
    assert_eq!(sprint(&world).status, SprintStatus::Completed);
    let interval = i64::from(world.policy.sprint.interval_minutes) * 60_000;
    world.clock += interval + 1;
    world.submit(Event::Tick);
    let next = world.state.scheduler.slots.next_slot_at.expect("a slot");
    assert_eq!(next.millis(), world.clock + interval, "not in a second, for ever");
    add(&mut world, "beta");
    assert_eq!(world.state.sprint_ids.len(), 2, "its interval is over");
}

#[test]
fn what_people_wrote_to_a_todo_is_read_by_whoever_does_it_again() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let todo = until_at_work(&mut world);
    world.deliver();
    let request = todo.progress.request_id.expect("its request");
    let room = world.request(&request).conversation.room.and_then(|room| room.thread_id);
    let room = room.expect("a room");
    let said = world.words(room, 900, "keep the old name");
    world.submit(Event::Message(said));
    world.command(Command::SprintStop { now: true });
    world.finish_well();
    world.deliver();
    let item = todo.backlog_id.expect("its item");
    assert_eq!(world.item(&item).answers, ["owner: keep the old name"]);
    // What is said in the room afterwards goes with it, and its file as well.
    let mut said = world.words(room, 901, "here is the logo");
    said.attachments.push(Attachment {
        filename: "logo.png".to_owned(),
        size: 4,
        saved: Some("shared_workspace/attachments/1/logo.png".to_owned()),
    });
    world.submit(Event::Message(said));
    assert!(world.state.requests.values().all(|it| it.status.is_terminal()), "no other work");
    assert!(world.said.contains(&"backlog.noted".to_owned()), "{:?}", world.said);
    world.command(kickoff());
    let again = loop {
        let mine = |it: &&Arc<Request>| it.backlog_id.as_ref() == Some(&item);
        let begun = world.state.requests.values().filter(|it| !it.status.is_terminal()).find(mine);
        if let Some(request) = begun {
            break Request::clone(request);
        }
        let next = world.todo().first().cloned().expect("something to do");
        world.do_well(&next);
    };
    for words in ["owner: keep the old name", "owner: here is the logo"] {
        assert!(again.body.contains(words), "{}", again.body);
    }
    assert!(again.artifacts.iter().any(|file| file.ends_with("logo.png")), "{again:#?}");
    assert_eq!(again.params.retry_of_request_id, Some(request));
}

#[test]
fn a_sprint_whose_plan_waits_at_the_end_of_the_day_goes_on_when_it_is_restarted() {
    let plain = Kickoff { milestone: "Letters".to_owned(), ..Kickoff::default() };
    for start in [kickoff(), Command::SprintStart { kickoff: Box::new(plain) }] {
        let gates = GateTable { sprint_plan: Some(Stance::Ask), ..GateTable::default() };
        let mut world = World::new(Policy { gates, ..by_hand() });
        let planned = |world: &World| {
            let todos = sprint(world).work.todos.into_iter();
            todos.filter(|todo| todo.progress.status == TodoStatus::Queued).count()
        };
        world.command(start);
        world.finish_well();
        assert_eq!((sprint(&world).status, world.state.gates.len()), (SprintStatus::Planning, 1));
        let (before, all) = (planned(&world), sprint(&world).work.todos.len());
        world.clock = sprint(&world).cutoff_at.expect("a cutoff").millis();
        world.submit(Event::Tick);
        world.finish_well();
        let ended = sprint(&world);
        assert_eq!(ended.status, SprintStatus::Blocked);
        assert_eq!(ended.closing.status, Some(CloseoutStatus::PlanningIncomplete));
        assert!(world.said.iter().any(|key| key == "sprint.put_off"), "{:?}", world.said);
        assert!(world.said.iter().all(|key| key != "sprint.wrap_up"));
        assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.restarted");
        world.finish_well();
        assert_eq!((sprint(&world).status, world.state.gates.len()), (SprintStatus::Planning, 1));
        assert_eq!((planned(&world), before > 0), (before, true), "what is asked about is there");
        assert_eq!(sprint(&world).work.todos.len(), all, "and nothing is listed twice");
    }
}

#[test]
fn a_stop_at_once_ends_what_runs_and_a_stop_before_anything_ran_is_a_cancelled_sprint() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    until_at_work(&mut world);
    world.command(Command::SprintStop { now: true });
    assert!(world.state.requests.values().all(|request| request.status.is_terminal()));
    world.finish_well();
    assert_eq!(sprint(&world).status, SprintStatus::Cancelled);
    assert!(world.state.backlog.values().all(|item| item.status == ItemStatus::Pending));

    let mut world = World::new(by_hand());
    world.command(kickoff());
    world.command(Command::SprintStop { now: false });
    world.finish_well();
    assert_eq!(sprint(&world).status, SprintStatus::Cancelled);
    assert_eq!(world.state.scheduler.active_sprint_id, None);
    assert_eq!(key(&world.command(kickoff())), "sprint.accepted");
}

#[test]
fn a_stop_at_once_leaves_what_is_built_to_whoever_is_asked_about_its_commit() {
    let gates = GateTable { commit: Stance::Ask, ..GateTable::default() };
    let mut world = World::new(Policy { gates, ..by_hand() });
    world.command(kickoff());
    while world.state.gates.is_empty() {
        let next = world.moves().first().cloned().expect("something to do");
        world.move_well(&next);
    }
    let gate = world.state.gates.values().next().cloned().expect("a gate");
    let id = gate.request_id.clone();
    world.command(Command::SprintStop { now: true });
    finish(&mut world);
    assert!(sprint(&world).status.is_terminal());
    assert!(world.state.gates.contains_key(&gate.gate_id), "somebody can still let it through");
    let item = world.item(world.request(&id).backlog_id.as_ref().expect("an item"));
    assert_eq!(item.status, ItemStatus::Blocked);
    world.command(press(&gate, ButtonAct::Approve));
    finish(&mut world);
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
    let item = world.item(world.request(&id).backlog_id.as_ref().expect("an item"));
    assert_eq!(item.status, ItemStatus::Done);
}

#[test]
fn a_sprint_of_more_than_it_takes_is_refused_and_not_cut() {
    let mut world = World::new(by_hand());
    let requirements = (1..=41).map(|number| format!("R {number}")).collect();
    let kickoff = Kickoff { milestone: "Much".to_owned(), requirements, ..Kickoff::default() };
    let said = world.command(Command::SprintStart { kickoff: Box::new(kickoff) });
    assert_eq!(key(&said), "sprint.refused.too_much");
    assert!(world.state.sprints.is_empty());
}

/// A sprint whose first todo's commit is on its way to the branch, and the effect that brings it there.
fn landing() -> (World, crate::domain::ids::EffectId) {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    loop {
        let next = world.moves().first().cloned().expect("something to do");
        if let Move::BeginEffect(id) = &next
            && matches!(world.state.effects[id].kind, EffectKind::Merge { .. })
        {
            assert!(world.begin_effect(id));
            return (world, id.clone());
        }
        world.move_well(&next);
    }
}

/// The first todo and its item, as the item was last written.
fn first(world: &World) -> (crate::domain::sprint::Todo, ItemStatus) {
    let todo = sprint(world).work.todos.iter().find(|it| it.progress.started_at.is_some()).cloned();
    let todo = todo.expect("a todo that began");
    let item = world.item(todo.backlog_id.as_ref().expect("an item"));
    (todo, item.status)
}

#[test]
fn a_stop_at_once_waits_for_a_commit_that_is_on_its_way_to_the_branch() {
    // It gets there: the todo is delivered, and its item done.
    let (mut world, merge) = landing();
    let request = first(&world).0.progress.request_id.expect("a request");
    world.command(Command::SprintStop { now: true });
    assert_eq!(world.request(&request).status, RequestStatus::Delegated, "it may land yet");
    let waiting = |todo: &&crate::domain::sprint::Todo| todo.progress.status == TodoStatus::Queued;
    assert_eq!(
        sprint(&world).work.todos.iter().filter(waiting).count(),
        0,
        "the others are released"
    );
    world.land(&merge);
    // Neither the process nor the day matters in between.
    world.restart();
    world.submit(Event::Tick);
    finish(&mut world);
    let (todo, item) = first(&world);
    assert_eq!((todo.progress.status, item), (TodoStatus::Committed, ItemStatus::Done));
    assert_eq!(world.request(&request).status, RequestStatus::Committed);
    assert!(!world.said.contains(&"final.released".to_owned()), "{:?}", world.said);
    assert_eq!(sprint(&world).status, SprintStatus::Completed);

    // It does not, because a person was faster: the todo is released, and its item waits again.
    let (mut world, merge) = landing();
    let request = first(&world).0.progress.request_id.expect("a request");
    world.command(Command::SprintStop { now: true });
    world.person_commits();
    let moved = world.by_git(&merge, "").expect("an outcome");
    assert!(matches!(moved, EffectOutcome::BranchMoved { .. }), "{moved:?}");
    world.end_effect(&merge, moved);
    finish(&mut world);
    let (todo, item) = first(&world);
    assert_eq!((todo.progress.status, item), (TodoStatus::Cancelled, ItemStatus::Pending));
    assert_eq!(world.request(&request).status, RequestStatus::Cancelled);
    assert_eq!(sprint(&world).status, SprintStatus::Cancelled);
}

/// Everything that has begun ends, and what is left goes well.
fn finish(world: &mut World) {
    while let Some(next) = world.moves().first().cloned() {
        world.move_well(&next);
    }
}

#[test]
fn who_withdraws_while_a_commit_lands_is_told_so_and_it_ends_by_what_git_says() {
    for lands in [true, false] {
        let (mut world, merge) = landing();
        let request_id = first(&world).0.progress.request_id.expect("a request");
        let cancel = Command::Cancel { request_id: request_id.clone() };
        assert_eq!(key(&world.command(cancel)), "cancel.landing");
        let outcome = match lands {
            true => world.by_git(&merge, "").expect("it lands"),
            false => EffectOutcome::PersonEdits { paths: vec!["a.py".to_owned()] },
        };
        world.end_effect(&merge, outcome);
        // Another todo has begun by now.
        let mine = |it: &&crate::domain::sprint::Todo| {
            it.progress.request_id.as_ref() == Some(&request_id)
        };
        let todo = sprint(&world).work.todos.iter().find(mine).cloned().expect("the todo");
        let item = world.item(todo.backlog_id.as_ref().expect("an item")).status;
        let status = world.request(&request_id).status;
        if lands {
            assert_eq!((status, item), (RequestStatus::Committed, ItemStatus::Done));
            assert_eq!(todo.progress.status, TodoStatus::Committed);
        } else {
            assert_eq!((status, item), (RequestStatus::Cancelled, ItemStatus::Dropped));
            assert_eq!(todo.progress.status, TodoStatus::Cancelled);
        }
        let finals = world.said.iter().filter(|key| key.starts_with("final.")).count();
        assert_eq!(finals, 1, "{:?}", world.said);
    }
}

#[test]
fn the_end_of_the_day_ends_the_sprint() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let cutoff = sprint(&world).cutoff_at.expect("a cutoff");
    assert_eq!(cutoff.format_in(chrono_tz::Asia::Seoul, "%H:%M"), "22:00");
    until_at_work(&mut world);
    world.clock = cutoff.millis();
    world.submit(Event::Tick);
    world.finish_well();
    let ended = sprint(&world);
    let begun = ended.work.todos.iter().filter(|todo| todo.progress.started_at.is_some()).count();
    assert_eq!(begun, 1, "no todo begins after the cutoff");
    assert_eq!(ended.status, SprintStatus::Completed);
}

#[test]
fn s24_s25_g11_how_closing_goes() {
    let inspected = |status: CloseoutStatus, paths: &[&str]| {
        EffectOutcome::Inspected(Inspection {
            status,
            commits: Vec::new(),
            uncommitted_paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            message: String::new(),
        })
    };
    // Commits without the sprint's name are told about, and the sprint is complete.
    let mut world = World::new(by_hand());
    world.command(kickoff());
    world.finish_with(|kind| {
        matches!(kind, EffectKind::Inspect { .. })
            .then(|| inspected(CloseoutStatus::WarningMissingSprintTag, &[]))
    });
    assert_eq!(sprint(&world).status, SprintStatus::Completed);
    // What people have uncommitted in the project is named, and nothing becomes of it.
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut looks = 0;
    world.finish_with(|kind| {
        matches!(kind, EffectKind::Inspect { .. }).then(|| {
            looks += 1;
            inspected(CloseoutStatus::Verified, &["notes.txt"])
        })
    });
    let ended = sprint(&world);
    assert_eq!((looks, ended.status), (1, SprintStatus::Completed));
    assert_eq!(ended.closing.uncommitted_paths, ["notes.txt"]);
    assert_eq!(ended.closing.version_control_status, "not_needed");
    // Where git cannot say, the sprint has failed, and the slot is free all the same.
    let mut world = World::new(by_hand());
    world.command(kickoff());
    world.finish_with(|kind| {
        matches!(kind, EffectKind::Inspect { .. }).then(|| EffectOutcome::failed("no disk"))
    });
    let ended = sprint(&world);
    assert_eq!(ended.status, SprintStatus::Failed);
    assert_eq!(ended.closing.status, Some(CloseoutStatus::Failed));
    assert_eq!(world.state.scheduler.active_sprint_id, None);
}

#[test]
fn what_an_older_build_would_have_committed_of_a_person_is_withdrawn() {
    let effect = json!({ "do": "collect", "request_id": "20260324-0a1b2c3d", "paths": [".env"] });
    let kind: EffectKind = serde_json::from_value(effect).expect("an older record");
    assert!(matches!(kind, EffectKind::Release { .. }), "nothing is collected: {kind:?}");

    let mut world = World::new(by_hand());
    world.command(kickoff());
    let closing = |world: &World| sprint(world).status == SprintStatus::Closeout;
    while !closing(&world) {
        let next = world.todo().first().cloned().expect("something to do");
        world.do_well(&next);
    }
    // The records as an older build left them: its request has a commit of the person's files to prove.
    let inspect = world.state.effects.keys().next().cloned().expect("the look at the project");
    world.state.effects.remove(&inspect);
    let id = RequestId::parse("20260324-0a1b2c3d").expect("an id");
    let mut sprint_then = sprint(&world);
    sprint_then.closing.status = Some(CloseoutStatus::PendingChanges);
    sprint_then.planning_request_id = Some(id.clone());
    let request = Request {
        request_id: id.clone(),
        status: RequestStatus::Delegated,
        sprint_id: Some(sprint_then.sprint_id.clone()),
        route: RequestRoute {
            current_role: Some(Role::VersionController),
            ..RequestRoute::default()
        },
        work: RequestWork { candidate: Some(candidate("theirs")), ..RequestWork::default() },
        ..Request::default()
    };
    let checks = Effect {
        effect_id: inspect,
        kind: EffectKind::Checks {
            request_id: id.clone(),
            commit: "theirs".to_owned(),
            how: ProofMode::Whole,
        },
        state: EffectState::Planned,
        attempts: 0,
        told: None,
        planned_at: request.created_at,
        waits_for: None,
    };
    world.state.effects.insert(checks.effect_id.clone(), Arc::new(checks));
    world.state.requests.insert(id.clone(), Arc::new(request));
    world.state.sprints.insert(sprint_then.sprint_id.clone(), Arc::new(sprint_then));
    world.submit(Event::Started { announce: false, serves: Role::ALL.to_vec() });
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    world.finish_well();
    assert_eq!(sprint(&world).status, SprintStatus::Completed);
    assert_eq!(world.request(&id).outcome.commit_sha, None);
}

#[test]
fn g11_a_commit_that_a_person_stands_in_the_way_of_is_tried_again_alone() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut refused = 0;
    let mut runs = 0;
    while let Some(next) = world.todo().first().cloned() {
        if let Next::Effect(id) = &next
            && matches!(world.state.effects[id].kind, EffectKind::Merge { .. })
            && refused < 1
        {
            refused += 1;
            world.effect(id, EffectOutcome::PersonEdits { paths: vec!["a.py".to_owned()] });
            let uncommitted = |todo: &&crate::domain::sprint::Todo| {
                todo.progress.status == TodoStatus::Uncommitted
            };
            let todo = sprint(&world).work.todos.iter().find(uncommitted).cloned().expect("a todo");
            let item = &world.state.backlog[todo.backlog_id.as_ref().expect("an item")];
            assert_eq!(item.status, ItemStatus::Blocked);
            assert_eq!(item.blocked_by_role, "version_controller");
            runs = world.state.requests[todo.progress.request_id.as_ref().expect("one")]
                .work
                .spent
                .turns;
            continue;
        }
        world.do_well(&next);
    }
    let ended = sprint(&world);
    assert!(
        ended.work.todos.iter().all(|todo| todo.progress.status == TodoStatus::Committed),
        "{ended:#?}"
    );
    let id =
        ended.work.todos.iter().find(|todo| todo.progress.commit_retries == 1).expect("the one");
    assert_eq!(world.request(id.progress.request_id.as_ref().expect("one")).work.spent.turns, runs);
}

#[test]
fn a_sprint_that_is_to_end_waits_for_a_landing_that_waits_for_git() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut waited = false;
    while let Some(next) = world.todo().first().cloned() {
        if let Next::Effect(id) = &next
            && let EffectKind::Merge { request_id, .. } = world.state.effects[id].kind.clone()
            && !waited
        {
            waited = true;
            let pre_state = json!(null);
            world.submit(Event::EffectStarting { effect_id: id.clone(), pre_state });
            let obstacle = GitObstacle { path: "/project".to_owned(), is_lock: false };
            world.submit(Event::GitBusy { request_id: request_id.clone(), obstacle });
            world.command(Command::SprintStop { now: true });
            assert!(!sprint(&world).status.is_terminal());
            assert!(!world.request(&request_id).status.is_terminal(), "its landing has begun");
            world.effect(id, good_effect(&world.state.effects[id].kind.clone(), "c0"));
            assert_eq!(world.request(&request_id).status, RequestStatus::Committed);
            continue;
        }
        world.do_well(&next);
    }
    assert!(waited);
    let ended = sprint(&world);
    let committed =
        ended.work.todos.iter().filter(|it| it.progress.status == TodoStatus::Committed).count();
    assert_eq!((ended.status, committed), (SprintStatus::Completed, 1));
}

#[test]
fn a_todo_whose_conflict_nobody_solved_outlives_its_sprint_and_lands_when_a_person_says_how() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut conflicted: Option<RequestId> = None;
    let mut unsolved = 0;
    while let Some(next) = world.todo().first().cloned() {
        if let Next::Run(id) = &next
            && world.state.envelopes[id].target_role == Role::ConflictResolver
        {
            unsolved += 1;
            let mut stuck = result(Role::ConflictResolver, json!({}));
            stuck.status = ResultStatus::Blocked;
            "which of both is meant?".clone_into(&mut stuck.error);
            world.run(id, RunOutcome::Result(Arc::new(stuck)));
            continue;
        }
        let Next::Effect(id) = &next else {
            world.do_well(&next);
            continue;
        };
        let kind = world.state.effects[id].kind.clone();
        let is_its = kind.change_of().is_some() && kind.change_of() == conflicted.as_ref();
        if matches!(kind, EffectKind::Merge { .. }) && conflicted.is_none() {
            conflicted = kind.request_id().cloned();
            world.effect(id, EffectOutcome::BranchMoved { head: "h9".to_owned() });
            continue;
        }
        if matches!(kind, EffectKind::Rebase { .. }) && is_its {
            let conflict = world.conflict(id);
            world.effect(id, EffectOutcome::Conflict(conflict));
            continue;
        }
        world.do_well(&next);
    }
    assert!(unsolved > 0);
    let id = conflicted.expect("a landing");
    let ended = sprint(&world);
    assert!(ended.status.is_terminal());
    let todo = ended.work.todos.iter().find(|it| it.progress.request_id.as_ref() == Some(&id));
    assert_eq!(todo.expect("its todo").progress.status, TodoStatus::Uncommitted);
    assert_eq!(world.request(&id).status, RequestStatus::Blocked, "its room takes the answer");
    let item = world.request(&id).backlog_id.clone().expect("an item");
    assert_eq!(world.state.backlog[&item].status, ItemStatus::Blocked);
    world.command(Command::Retry { request_id: id.clone() });
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
    let done = |item: &Arc<Item>| item.status == ItemStatus::Done;
    assert!(world.state.backlog.get(&item).is_none_or(done), "it may have left already");
}

#[test]
fn a_todo_whose_planner_calls_it_done_is_built_and_proven_all_the_same() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut called_done = 0;
    while let Some(next) = world.todo().first().cloned() {
        if let Next::Run(id) = &next
            && world.state.envelopes[id].step == Some(steps::DRAFT)
        {
            let transition = json!({ "outcome": "complete", "target_step": "closeout" });
            let note = json!({ "workflow_transition": transition, "planning_note": "it is there" });
            called_done += 1;
            world.run(id, RunOutcome::Result(Arc::new(result(Role::Planner, note))));
            continue;
        }
        world.do_well(&next);
    }
    assert_eq!(called_done, 3);
    let ended = sprint(&world);
    assert!(
        ended.work.todos.iter().all(|todo| todo.progress.status == TodoStatus::Committed),
        "{ended:#?}"
    );
}

#[test]
fn s27_a_restart_begins_the_blocked_todo_anew_before_all_others() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut restarted = false;
    while let Some(next) = world.todo().first().cloned() {
        if let Next::Run(id) = &next {
            let envelope = world.state.envelopes[id].clone();
            let request = world.state.requests[&envelope.envelope.request_id].clone();
            if request.scope == "first" && !restarted {
                world.run(id, negative(ResultStatus::Blocked, "stuck"));
                continue;
            }
        }
        world.do_well(&next);
        let blocked =
            sprint(&world).work.todos.iter().position(|t| t.progress.status == TodoStatus::Blocked);
        if let Some(at) = blocked
            && !restarted
        {
            restarted = true;
            let old = sprint(&world).work.todos[at].progress.request_id.clone().expect("a request");
            assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.restarted");
            let todo = sprint(&world).work.todos[at].clone();
            assert_eq!(todo.progress.retry_of_request_id, Some(old.clone()));
            assert_eq!(world.request(&old).status, RequestStatus::Cancelled);
        }
    }
    assert!(restarted);
    let ended = sprint(&world);
    assert!(
        ended.work.todos.iter().all(|todo| todo.progress.status == TodoStatus::Committed),
        "{ended:#?}"
    );
    assert_eq!(ended.work.todos.len(), 3);
}

#[test]
fn a_restart_leaves_alone_a_todo_whose_item_is_settled() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let is_blocked = |todo: &Todo| todo.progress.status == TodoStatus::Blocked;
    let blocked = loop {
        if let Some(blocked) = sprint(&world).work.todos.into_iter().find(is_blocked) {
            break blocked;
        }
        match world.todo().first().cloned().expect("something to do") {
            Next::Run(id) if world.state.envelopes[&id].envelope.scope == "first" => {
                world.run(&id, negative(ResultStatus::Blocked, "stuck"));
            }
            next @ (Next::Run(_) | Next::Report(_) | Next::Effect(_)) => world.do_well(&next),
        }
    };
    // A person has said at its card that nobody is to do it.
    let id = blocked.backlog_id.expect("an item");
    let item = world.state.backlog.remove(&id).expect("it is there");
    world.state.settled_items.insert(id, item.fingerprint.clone());
    world.command(Command::SprintRestart);
    let todos = sprint(&world).work.todos;
    let its = todos.iter().find(|it| it.progress.todo_id == blocked.progress.todo_id);
    assert!(its.is_some_and(is_blocked), "{its:?}");
}

#[test]
fn a_sprint_that_is_restarted_after_its_cutoff_runs_until_the_next_one() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    until_at_work(&mut world);
    let cutoff = sprint(&world).cutoff_at.expect("a cutoff");
    world.clock = cutoff.millis();
    world.submit(Event::Tick);
    assert_eq!(sprint(&world).closing.wrap_up, Some(WrapUp::Cutoff));
    assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.restarted");
    world.submit(Event::Tick);
    let goes_on = sprint(&world);
    assert_eq!(goes_on.closing.wrap_up, None, "a cutoff that is over ends nothing");
    assert!(goes_on.cutoff_at.is_some_and(|at| at > cutoff), "{:?}", goes_on.cutoff_at);
    world.finish_well();
    let ended = sprint(&world);
    assert_eq!(ended.status, SprintStatus::Completed);
    assert!(
        ended.work.todos.iter().all(|todo| todo.progress.status == TodoStatus::Committed),
        "{ended:#?}"
    );
}

#[test]
fn s28_a_slot_held_by_a_sprint_that_is_not_there_is_free() {
    let mut world = World::new(by_hand());
    let scheduler = crate::domain::schedule::Scheduler {
        active_sprint_id: Some("260101-Sprint-09:00".parse().expect("an id")),
        ..Default::default()
    };
    world.state.scheduler = Arc::new(scheduler);
    world.submit(Event::Started { announce: false, serves: Role::ALL.to_vec() });
    assert_eq!(world.state.scheduler.active_sprint_id, None);
}

#[test]
fn a_planner_that_crashes_is_a_step_reopened() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut crashes = 0;
    while let Some(next) = world.todo().first().cloned() {
        if let Next::Run(id) = &next
            && crashes < 3
        {
            crashes += 1;
            world.run(id, crash());
            continue;
        }
        world.do_well(&next);
    }
    let ended = sprint(&world);
    assert_eq!(ended.status, SprintStatus::Completed);
    assert_eq!(ended.planning.reopen_counts.values().sum::<u32>(), 1);
}

/// Plays a sprint to its end; `between` may change what is stored before each move. The steps of planning in the
/// order in which they were asked for.
fn played(between: impl Fn(&mut World)) -> (Sprint, Vec<String>) {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    between(&mut world);
    while let Some(next) = world.todo().first().cloned() {
        world.do_well(&next);
        between(&mut world);
    }
    let sprint = sprint(&world);
    let steps = sprint.planning.iterations.iter().map(|it| it.step.clone());
    (sprint.clone(), steps.filter(|step| !step.is_empty()).collect())
}

fn edit(world: &mut World, change: impl Fn(&mut Sprint)) {
    for sprint in world.state.sprints.values_mut() {
        change(Arc::make_mut(sprint));
    }
}

#[test]
fn a_record_of_before_sprints_had_a_lifecycle_goes_on_where_it_stands() {
    let (now, steps) = played(|_| ());
    let (older, again) = played(|world| {
        edit(world, |sprint| {
            // Those builds knew no such step.
            if sprint.step.is_none_or(|step| step.as_str() != "plan_review") {
                (sprint.step, sprint.lifecycle) = (None, String::new());
            }
        });
    });
    assert_eq!(older.status, SprintStatus::Completed);
    assert_eq!((steps.len(), &steps), (5, &again));
    assert_eq!(older.work.todos.len(), now.work.todos.len());
    assert!(
        older.work.todos.iter().all(|todo| todo.progress.status == TodoStatus::Committed),
        "{older:#?}"
    );
    let events = |sprint: &Sprint| -> Vec<_> {
        sprint.work.recent_activity.iter().map(|it| it.kind).collect()
    };
    assert_eq!(events(&older), events(&now));
}

#[test]
fn a_sprint_keeps_the_lifecycle_with_which_it_began() {
    // The definition of another build: its planner does not write documents first.
    let text = Lifecycle::of(Subject::Sprint).text();
    let (from, to) = (
        text.find("  artifact_sync:\n    role").unwrap(),
        text.find("  backlog_definition:\n    role").unwrap(),
    );
    let text = format!("{}{}", &text[..from], &text[to..])
        .replace("done: artifact_sync,", "done: backlog_definition,");
    let other = Arc::new(Lifecycle::compile(&text).expect("a lifecycle"));
    let (ended, steps) = played(|world| {
        world.state.lifecycles.insert(other.digest().to_owned(), Arc::clone(&other));
        edit(world, |sprint| other.digest().clone_into(&mut sprint.lifecycle));
    });
    assert_eq!(ended.status, SprintStatus::Completed);
    assert!(steps.len() == 4 && !steps.iter().any(|step| step == "artifact_sync"), "{steps:?}");
    // What begins afterwards goes by the one that is built in, and says so.
    let (now, _) = played(|_| ());
    assert_eq!(now.lifecycle, Lifecycle::of(Subject::Sprint).digest());
    assert_eq!(now.step.map(|step| step.to_string()).as_deref(), Some("archive"));
}
