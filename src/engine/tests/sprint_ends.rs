//! How sprints end, are stopped and go on (`spec/teams.md` 9.8 and 9.9), by the rows of 14.7 and 14.8.

use super::sprints::{add, by_hand, key, kickoff, negative, sprint};
use super::world::{Todo as Next, World, crash, policy};
use crate::domain::backlog::BacklogStatus;
use crate::domain::effect::{EffectKind, EffectOutcome, Inspection};
use crate::domain::event::Event;
use crate::domain::incoming::Command;
use crate::domain::request::RequestStatus;
use crate::domain::result::ResultStatus;
use crate::domain::role::Role;
use crate::domain::sprint::{CloseoutStatus, SprintStatus, TodoStatus, Trigger};

#[test]
fn a_stop_after_the_current_todo_releases_what_has_not_begun() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut stopped = false;
    while let Some(next) = world.todo().first().cloned() {
        let running = sprint(&world).todos.iter().any(|todo| todo.status == TodoStatus::Running);
        if running && !stopped {
            stopped = true;
            world.command(Command::SprintStop { now: false });
        }
        world.do_well(&next);
    }
    let ended = sprint(&world);
    assert_eq!(ended.status, SprintStatus::Completed, "{}", ended.closeout_message);
    let committed = ended.todos.iter().filter(|todo| todo.status == TodoStatus::Committed).count();
    assert_eq!(committed, 1);
    let waiting =
        world.state.backlog.values().filter(|it| it.status == BacklogStatus::Pending).count();
    assert_eq!(waiting, 2);
    world.deliver();
    assert!(world.state.requests.is_empty());
}

#[test]
fn items_that_are_gone_come_back_from_the_todos_that_need_them() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let at_work =
        |world: &World| sprint(world).todos.iter().any(|it| it.status == TodoStatus::Running);
    while !at_work(&world) {
        let next = world.todo().first().cloned().expect("something to do");
        world.do_well(&next);
    }
    // Somebody removed their records while the team was down.
    let before = std::mem::take(&mut world.state.backlog);
    world.submit(Event::Started { announce: false, serves: Role::ALL.into() });
    assert_eq!(world.state.backlog.len(), 3);
    for (id, item) in &world.state.backlog {
        assert_eq!((&item.title, item.status), (&before[id].title, BacklogStatus::Selected));
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
    world.effect(&late.effect_id, EffectOutcome::Failed { message: "late".to_owned() });
    assert_eq!(world.state.scheduler.active_sprint_id, Some(second));
}

#[test]
fn what_a_stop_released_waits_for_the_next_slot() {
    let mut world = World::new(policy());
    add(&mut world, "alpha");
    add(&mut world, "beta");
    while !sprint(&world).todos.iter().any(|todo| todo.status == TodoStatus::Running) {
        let next = world.todo().first().cloned().expect("something to do");
        world.do_well(&next);
    }
    world.command(Command::SprintStop { now: true });
    world.finish_well();
    assert_eq!(world.state.sprint_ids.len(), 1, "nothing begins against a person's word");
    assert!(world.wait_until_due());
    assert_eq!(sprint(&world).trigger, Trigger::ScheduledSlot);
}

#[test]
fn a_stop_at_once_ends_what_runs_and_a_stop_before_anything_ran_is_a_cancelled_sprint() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    while !sprint(&world).todos.iter().any(|todo| todo.status == TodoStatus::Running) {
        let next = world.todo().first().cloned().expect("something to do");
        world.do_well(&next);
    }
    world.command(Command::SprintStop { now: true });
    assert!(world.state.requests.values().all(|request| request.status.is_terminal()));
    world.finish_well();
    assert_eq!(sprint(&world).status, SprintStatus::Cancelled);
    assert!(world.state.backlog.values().all(|item| item.status == BacklogStatus::Pending));

    let mut world = World::new(by_hand());
    world.command(kickoff());
    world.command(Command::SprintStop { now: false });
    world.finish_well();
    assert_eq!(sprint(&world).status, SprintStatus::Cancelled);
    assert_eq!(world.state.scheduler.active_sprint_id, None);
    assert_eq!(key(&world.command(kickoff())), "sprint.accepted");
}

#[test]
fn the_end_of_the_day_ends_the_sprint() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let cutoff = sprint(&world).cutoff_at.expect("a cutoff");
    assert_eq!(cutoff.kst("%H:%M"), "22:00");
    while !sprint(&world).todos.iter().any(|todo| todo.status == TodoStatus::Running) {
        let next = world.todo().first().cloned().expect("something to do");
        world.do_well(&next);
    }
    world.clock = cutoff.millis();
    world.submit(Event::Tick);
    world.finish_well();
    let ended = sprint(&world);
    let begun = ended.todos.iter().filter(|todo| todo.started_at.is_some()).count();
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
    // What is left becomes one commit, and then git is asked again.
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut looks = 0;
    world.finish_with(|kind| {
        if !matches!(kind, EffectKind::Inspect { .. }) {
            return None;
        }
        looks += 1;
        let left: &[&str] = if looks == 1 { &["notes.txt"] } else { &[] };
        let status =
            if looks == 1 { CloseoutStatus::PendingChanges } else { CloseoutStatus::Verified };
        Some(inspected(status, left))
    });
    let ended = sprint(&world);
    assert_eq!((looks, ended.status), (2, SprintStatus::Completed));
    assert_eq!(ended.version_control_status, "committed");
    assert_eq!(ended.version_control_paths, ["notes.txt"]);
    // Where that does not work, the sprint has failed, and the slot is free all the same.
    let mut world = World::new(by_hand());
    world.command(kickoff());
    world.finish_with(|kind| {
        if matches!(kind, EffectKind::Inspect { .. }) {
            Some(inspected(CloseoutStatus::PendingChanges, &["notes.txt"]))
        } else if matches!(kind, EffectKind::Collect { .. }) {
            Some(EffectOutcome::Failed { message: "it changed meanwhile".to_owned() })
        } else {
            None
        }
    });
    let ended = sprint(&world);
    assert_eq!(ended.status, SprintStatus::Failed);
    assert_eq!(ended.closeout_status, Some(CloseoutStatus::VersionControlFailed));
    assert_eq!(world.state.scheduler.active_sprint_id, None);
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
            let uncommitted =
                |todo: &&crate::domain::sprint::Todo| todo.status == TodoStatus::Uncommitted;
            let todo = sprint(&world).todos.iter().find(uncommitted).cloned().expect("a todo");
            let item = &world.state.backlog[todo.backlog_id.as_ref().expect("an item")];
            assert_eq!(item.status, BacklogStatus::Blocked);
            assert_eq!(item.blocked_by_role, "version_controller");
            runs = world.state.requests[todo.request_id.as_ref().expect("one")].spent.turns;
            continue;
        }
        world.do_well(&next);
    }
    let ended = sprint(&world);
    assert!(ended.todos.iter().all(|todo| todo.status == TodoStatus::Committed), "{ended:#?}");
    let id = ended.todos.iter().find(|todo| todo.commit_retries == 1).expect("the one");
    assert_eq!(world.request(id.request_id.as_ref().expect("one")).spent.turns, runs);
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
        let blocked = sprint(&world).todos.iter().position(|t| t.status == TodoStatus::Blocked);
        if let Some(at) = blocked
            && !restarted
        {
            restarted = true;
            let old = sprint(&world).todos[at].request_id.clone().expect("a request");
            assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.restarted");
            let todo = sprint(&world).todos[at].clone();
            assert_eq!(todo.retry_of_request_id, Some(old.clone()));
            assert_eq!(world.request(&old).status, RequestStatus::Cancelled);
        }
    }
    assert!(restarted);
    let ended = sprint(&world);
    assert!(ended.todos.iter().all(|todo| todo.status == TodoStatus::Committed), "{ended:#?}");
    assert_eq!(ended.todos.len(), 3);
}

#[test]
fn s28_a_slot_held_by_a_sprint_that_is_not_there_is_free() {
    let mut world = World::new(by_hand());
    let scheduler = crate::domain::schedule::Scheduler {
        active_sprint_id: Some("260101-Sprint-09:00".parse().expect("an id")),
        ..Default::default()
    };
    world.state.scheduler = scheduler;
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
    assert_eq!(ended.initial_phase_reopen_counts.values().sum::<u32>(), 1);
}
