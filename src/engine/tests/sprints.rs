//! Whole sprints, as people see them; rows of `spec/teams.md` 14.7 that take more than one decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::world::{GENERAL, Todo as Next, World, good, policy, result};
use crate::domain::config::CutoffTime;
use crate::domain::event::Event;
use crate::domain::gate::Stance;
use crate::domain::ids::{ItemId, SubjectId};
use crate::domain::incoming::{Command, Message};
use crate::domain::item::{Item, ItemKind, ItemSource, ItemStatus};
use crate::domain::modes::{SprintMode, StartMode};
use crate::domain::policy::{Policy, SprintPolicy};
use crate::domain::request::Request;
use crate::domain::result::{ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::sprint::{
    CloseoutStatus, Duty, Kickoff, PlanningStep, Sprint, SprintStatus, Todo, TodoStatus, Trigger,
};
use crate::domain::time::Timestamp;
use crate::engine::sprint::backlog::relevant;
use crate::engine::{Answer, why};

/// A result that does the duty well: three items, of which the last depends on the first.
pub(super) fn dutiful(world: &World, request: &Request, duty: Duty) -> RoleResult {
    let sprint = request.sprint_id.as_ref().and_then(|id| world.state.sprints.get(id));
    match duty {
        Duty::Planning => planned(world, request, sprint.expect("a sprint")),
        Duty::ClosingReport => {
            result(Role::Planner, json!({ "sprint_report": { "headline": "It went well." } }))
        }
        Duty::ResearchPrepass => result(
            Role::Research,
            json!({ "research_signal": { "needed": false, "reason_code": "not_needed_no_subject" } }),
        ),
        Duty::SourcerReview => {
            let Some(crate::domain::sprint::DutyDetails::SourcerReview { candidates, .. }) =
                &request.params.duty
            else {
                panic!("{request:?}")
            };
            result(Role::Planner, json!({ "backlog_items": candidates }))
        }
        Duty::Sourcing => result(Role::Sourcer, json!({})),
        Duty::PlanReview => result(Role::Architect, json!({ "plan_findings": [] })),
        Duty::OngoingReview | Duty::BlockedReview => result(Role::Planner, json!({})),
    }
}

fn planned(world: &World, request: &Request, sprint: &Sprint) -> RoleResult {
    let step = request.planning_step().expect("a step");
    let mine: Vec<&Item> = relevant(world.state.backlog.values().map(Arc::as_ref), sprint)
        .into_iter()
        .filter(|item| item.status != ItemStatus::Blocked)
        .collect();
    let origin = json!({
        "milestone_ref": sprint.milestone_title, "spec_refs": ["spec.md"], "requirement_refs": ["R-1"],
    });
    let items: Vec<Value> = match step {
        PlanningStep::MilestoneRefinement | PlanningStep::ArtifactSync => Vec::new(),
        PlanningStep::BacklogDefinition if mine.is_empty() => ["first", "second", "third"]
            .into_iter()
            .map(|title| {
                json!({
                    "title": title, "scope": format!("do the {title} thing"), "kind": "feature",
                    "acceptance_criteria": ["it works"], "origin": origin,
                    "milestone_title": sprint.milestone_title,
                    "depends_on": if title == "third" { json!(["first"]) } else { json!([]) },
                })
            })
            .collect(),
        PlanningStep::BacklogDefinition => mine
            .iter()
            .map(|item| {
                json!({
                    "backlog_id": item.backlog_id, "acceptance_criteria": ["it works"],
                    "origin": origin, "milestone_title": sprint.milestone_title,
                })
            })
            .collect(),
        PlanningStep::BacklogPrioritization => (1..)
            .zip(&mine)
            .map(|(rank, item)| {
                json!({
                    "backlog_id": item.backlog_id, "priority_rank": rank,
                    "milestone_title": if sprint.milestone_title.is_empty() { "what waits" }
                        else { &sprint.milestone_title },
                })
            })
            .collect(),
        PlanningStep::TodoFinalization => mine
            .iter()
            .map(|item| {
                json!({ "backlog_id": item.backlog_id, "planned_in_sprint_id": sprint.sprint_id })
            })
            .collect(),
    };
    result(Role::Planner, json!({ "backlog_items": items }))
}

pub(super) fn kickoff() -> Command {
    let kickoff = Kickoff {
        milestone: "Sign in".to_owned(),
        requirements: vec!["people sign in".to_owned()],
        ..Kickoff::default()
    };
    Command::SprintStart { kickoff: Box::new(kickoff) }
}

pub(super) fn key(answer: &Answer) -> &str {
    match answer {
        Answer::Say(content) | Answer::Refused(content) => &content.key,
        Answer::Accepted => "accepted",
        Answer::Ignored(why) => why,
    }
}

/// The newest image of the newest sprint.
pub(super) fn sprint(world: &World) -> Sprint {
    Sprint::clone(world.state.sprints.values().next_back().expect("a sprint"))
}

pub(super) fn statuses(world: &World) -> Vec<(String, TodoStatus)> {
    sprint(world).work.todos.iter().map(|todo| (todo.title.clone(), todo.progress.status)).collect()
}

pub(super) fn add(world: &mut World, title: &str) {
    let payload = json!({ "title": title, "scope": format!("do {title}") });
    let answer = world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    assert_eq!(key(&answer), "backlog.merged");
}

/// By itself nothing begins: people start sprints, in the morning.
pub(super) fn by_hand() -> Policy {
    Policy {
        sprint: SprintPolicy {
            start_mode: StartMode::ManualDaily,
            cutoff: CutoffTime::try_from("22:00".to_owned()).ok(),
            ..SprintPolicy::default()
        },
        ..policy()
    }
}

/// Plans well, then works the todos as `role` says, by the title of the todo.
pub(super) fn play(world: &mut World, mut outcome: impl FnMut(&str, Role) -> Option<RunOutcome>) {
    while let Some(next) = world.todo().first().cloned() {
        if let Next::Run(id) = &next {
            let envelope = world.state.envelopes[id].clone();
            let request = world.state.requests[&envelope.envelope.request_id].clone();
            if request.todo_id.is_some()
                && let Some(outcome) = outcome(&request.scope, envelope.target_role)
            {
                world.run(id, outcome);
                continue;
            }
        }
        world.do_well(&next);
        world.deliver();
    }
}

pub(super) fn negative(status: ResultStatus, text: &str) -> RunOutcome {
    let mut said = good(Role::Planner, Some(crate::engine::lifecycle::steps::DRAFT));
    said.status = status;
    said.error = text.to_owned();
    said.summary = text.to_owned();
    RunOutcome::Result(Arc::new(said))
}

#[test]
fn s11_s23_a_sprint_by_hand_from_kickoff_to_history() {
    let mut world = World::new(by_hand());
    let answer = world.command(kickoff());
    assert_eq!(key(&answer), "sprint.accepted");
    let begun = sprint(&world);
    assert_eq!((begun.status, begun.trigger), (SprintStatus::Planning, Trigger::ManualStart));
    assert_eq!(world.state.scheduler.active_sprint_id, Some(begun.sprint_id.clone()));
    assert_eq!(begun.sprint_id.as_str(), "260324-Sprint-09:00");
    play(&mut world, |_, _| None);
    let ended = sprint(&world);
    assert_eq!(ended.status, SprintStatus::Completed);
    assert_eq!(ended.closing.status, Some(CloseoutStatus::Verified));
    assert!(ended.work.todos.iter().all(|todo| todo.progress.status == TodoStatus::Committed));
    assert_eq!(ended.work.todos.len(), 3);
    assert!(world.state.backlog.is_empty(), "every item is done");
    assert_eq!(world.state.scheduler.active_sprint_id, None);
    assert!(world.state.requests.is_empty());
    for said in ["sprint.started", "sprint.step", "sprint.plan", "sprint.todo", "sprint.summary"] {
        assert!(world.said.iter().any(|key| key == said), "{said}: {:?}", world.said);
    }
    assert_eq!(world.said.iter().filter(|key| *key == "sprint.idle").count(), 1);
}

#[test]
fn s09_s10_a_second_start_and_a_blank_milestone_are_refused() {
    let mut world = World::new(by_hand());
    let blank = Kickoff { milestone: " \n ".to_owned(), ..Kickoff::default() };
    let answer = world.command(Command::SprintStart { kickoff: Box::new(blank) });
    assert_eq!(key(&answer), "sprint.refused.milestone");
    world.command(kickoff());
    assert_eq!(key(&world.command(kickoff())), "sprint.refused.active");
    assert_eq!(world.state.sprints.len(), 1);
}

#[test]
fn s12_s13_planning_that_brings_nothing_is_reopened_twice_and_then_blocks() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut asked = 0;
    while let Some(next) = world.todo().first().cloned() {
        if let Next::Run(id) = &next {
            let request = world.state.envelopes[id].envelope.request_id.clone();
            let request = world.state.requests[&request].clone();
            if request.planning_step() == Some(PlanningStep::BacklogDefinition) {
                asked += 1;
                world.run(id, RunOutcome::Result(Arc::new(result(Role::Planner, json!({})))));
                continue;
            }
        }
        world.do_well(&next);
    }
    assert_eq!(asked, 3);
    let ended = sprint(&world);
    assert_eq!(ended.status, SprintStatus::Blocked);
    assert_eq!(ended.closing.status, Some(CloseoutStatus::PlanningIncomplete));
    assert!(ended.closing.message.contains("0 backlog"), "{}", ended.closing.message);
    assert_eq!(world.state.scheduler.active_sprint_id, None, "the slot is free");
    assert!(world.said.iter().any(|key| key == "sprint.blocked"));
    // S26: it can be restarted, with the step where it stopped.
    assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.restarted");
    let again = sprint(&world);
    assert_eq!(again.sprint_id, ended.sprint_id);
    assert_eq!(again.planning.step, Some(PlanningStep::BacklogDefinition));
    play(&mut world, |_, _| None);
    assert_eq!(sprint(&world).status, SprintStatus::Completed);
    // … and a completed one cannot.
    assert_eq!(key(&world.command(Command::SprintRestart)), "sprint.refused.not_restartable");
}

#[test]
fn s17_two_pending_items_begin_a_sprint_by_themselves() {
    let mut world = World::new(policy());
    add(&mut world, "alpha");
    assert_eq!(sprint(&world).trigger, Trigger::BacklogReady);
    add(&mut world, "beta");
    play(&mut world, |_, _| None);
    // What came while the first was being planned gets a sprint of its own, or its place in that one.
    let done: usize = world.state.settled_items.len();
    assert_eq!(done, 2);
    assert!(world.state.backlog.is_empty());
    assert_eq!(sprint(&world).status, SprintStatus::Completed);
}

#[test]
fn s18_in_the_manual_mode_people_are_asked_once_and_nothing_begins() {
    let mut world = World::new(by_hand());
    add(&mut world, "alpha");
    for _ in 0..5 {
        assert!(world.wait_until_due());
    }
    assert!(world.state.sprints.is_empty());
    assert_eq!(world.said.iter().filter(|key| *key == "sprint.idle").count(), 1);
    let next = world.state.scheduler.slots.next_slot_at.expect("a slot");
    assert_eq!(next.format_in(chrono_tz::Asia::Seoul, "%H:%M"), "22:00");
}

#[test]
fn s19_s20_a_slot_waits_for_the_running_sprint_and_passes_where_nothing_is_to_do() {
    let mut world = World::new(policy());
    add(&mut world, "alpha");
    let slot = world.state.scheduler.slots.next_slot_at.expect("a slot");
    world.clock = slot.millis();
    world.submit(Event::Tick);
    assert_eq!(world.state.scheduler.slots.deferred_slot_at, Some(slot));
    play(&mut world, |_, _| None);
    assert_eq!(world.state.scheduler.slots.last_skip_reason, "no_actionable_backlog");
    assert_eq!(world.state.scheduler.slots.deferred_slot_at, None);
}

#[test]
fn s39_an_echo_of_the_teams_own_work_begins_no_sprint_and_leaves_the_backlog() {
    let mut world = World::new(policy());
    let id = ItemId::parse("backlog-20260324-echo0001").expect("an id");
    let now = crate::domain::time::Timestamp::from_millis(world.clock);
    let mut echo = Item::new(id.clone(), "Nightly check", "", ItemKind::Chore, now);
    echo.source = ItemSource::Discovery;
    world.state.backlog.insert(id.clone(), Arc::new(echo));
    add(&mut world, "alpha");
    assert!(!world.state.backlog.contains_key(&id), "S39");
    play(&mut world, |_, _| None);
    assert_eq!(statuses(&world), [("alpha".to_owned(), TodoStatus::Committed)]);
}

#[test]
fn the_three_modes_differ() {
    for (mode, trigger, begins_at) in [
        (SprintMode::Hybrid, Trigger::BacklogReady, "09:00"),
        (SprintMode::WallClock, Trigger::ScheduledSlot, "12:00"),
        (SprintMode::Rolling, Trigger::ScheduledSlot, "12:00"),
    ] {
        let sprint_policy = SprintPolicy { mode, ..SprintPolicy::default() };
        let mut world = World::new(Policy { sprint: sprint_policy, ..policy() });
        add(&mut world, "alpha");
        if world.state.sprints.is_empty() {
            world.wait_until_due();
        }
        let begun = sprint(&world);
        assert_eq!(begun.trigger, trigger, "{mode:?}");
        assert_eq!(
            begun.started_at.expect("begun").format_in(chrono_tz::Asia::Seoul, "%H:%M"),
            begins_at,
            "{mode:?}"
        );
    }
}

#[test]
fn s21_a_blocked_todo_leaves_a_blocked_item_and_an_answer_or_the_same_request_brings_it_back() {
    for way in ["in its room", "by its id", "by its title"] {
        brought_back(way);
    }
}

fn brought_back(way: &str) {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let blocked = |title: &str, role: Role| {
        (title == "second" && role == Role::Planner)
            .then(|| negative(ResultStatus::Blocked, "which colour?"))
    };
    play(&mut world, blocked);
    assert_eq!(sprint(&world).status, SprintStatus::Completed);
    assert!(statuses(&world).contains(&("second".to_owned(), TodoStatus::Blocked)));
    let item = world.state.backlog.values().next().cloned().expect("an item");
    assert_eq!((item.status, item.title.as_str()), (ItemStatus::Blocked, "second"));
    assert!(item.blocked_reason.contains("which colour?"), "{}", item.blocked_reason);
    let todo = sprint(&world).work.todos.iter().find(|todo| todo.title == "second").cloned();
    let request = todo.and_then(|todo| todo.progress.request_id).expect("its request");
    let room = world.state.rooms.iter().find(|(_, id)| **id == request).map(|(room, _)| *room);
    let number = 77_000;
    let (channel, said) = match way {
        "in its room" => (room.expect("a room"), "blue".to_owned()),
        "by its id" => (GENERAL, format!("resume {}, in blue", item.backlog_id)),
        _ => (GENERAL, " Second. ".to_owned()),
    };
    if let Some(room) = room {
        for (number, text) in [
            (76_000, "thanks!"),
            (76_001, "<@7> leave this for now"),
            (76_002, "Why did this fail?"),
            (76_003, "이건 왜 실패했나요?"),
        ] {
            let words = Message { addressed: false, ..world.words(room, number, text) };
            world.submit(Event::Message(words));
        }
        let item = world.state.backlog.values().next().cloned().expect("an item");
        assert_eq!(item.status, ItemStatus::Blocked, "that answers nothing");
    }
    let words = world.words(channel, number, &said);
    world.submit(Event::Message(words));
    let item = world.state.backlog.values().next().cloned().expect("an item");
    assert_eq!(item.status, ItemStatus::Pending, "{way}");
    assert_eq!(item.answers, [format!("owner: {}", said.trim())]);
    assert!(world.said.iter().any(|key| key == "backlog.reopened"));
}

#[test]
fn an_answer_while_the_sprint_runs_lets_the_todo_go_on() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut asked = false;
    while let Some(next) = world.todo().first().cloned() {
        if let Next::Run(id) = &next {
            let envelope = world.state.envelopes[id].clone();
            let request = world.state.requests[&envelope.envelope.request_id].clone();
            if request.scope == "first" && !asked {
                asked = true;
                world.run(id, negative(ResultStatus::Blocked, "which colour?"));
                // The report is applied, and before anything else happens the person answers.
                while let Some(Next::Report(report)) =
                    world.todo().into_iter().find(|it| matches!(it, Next::Report(_)))
                {
                    world.submit(Event::ReportReady { relay_id: report });
                }
                assert!(statuses(&world).contains(&("first".to_owned(), TodoStatus::Blocked)));
                world.deliver();
                world.command(Command::Retry { request_id: request.request_id.clone() });
                assert!(statuses(&world).contains(&("first".to_owned(), TodoStatus::Running)));
                continue;
            }
        }
        world.do_well(&next);
        world.deliver();
    }
    assert!(statuses(&world).iter().all(|(_, status)| *status == TodoStatus::Committed));
}

#[test]
fn what_depends_on_an_item_that_was_dropped_is_blocked_and_says_by_what() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    // "third" depends on "first", whose work a person withdraws.
    let mut withdrawn = false;
    while let Some(next) = world.todo().first().cloned() {
        let first = world.state.requests.values().find(|it| it.scope == "first").cloned();
        if let (Some(first), false) = (first, withdrawn) {
            withdrawn = true;
            world.command(Command::Cancel { request_id: first.request_id.clone() });
            continue;
        }
        world.do_well(&next);
        world.deliver();
    }
    let item = |title: &str| world.state.backlog.values().find(|item| item.title == title);
    assert!(withdrawn && item("first").is_none());
    let third = item("third").expect("the item");
    assert_eq!(third.status, ItemStatus::Blocked);
    assert!(third.blocked_reason.ends_with("was dropped: first"), "{}", third.blocked_reason);
    assert!(third.depends_on.is_empty(), "whoever lets it go on does without");
    let statuses = statuses(&world);
    assert!(statuses.contains(&("second".to_owned(), TodoStatus::Committed)), "{statuses:?}");
    assert!(statuses.contains(&("third".to_owned(), TodoStatus::Cancelled)), "{statuses:?}");
}

#[test]
fn what_depends_on_an_item_that_is_no_todo_of_the_sprint_does_not_begin_in_it() {
    let mut world = World::new(by_hand());
    let merge = |world: &mut World, item: Value| {
        let payload = json!(item);
        let answer = world.command(Command::BacklogMerge { payload, source: ItemSource::User });
        assert_eq!(key(&answer), "backlog.merged");
    };
    merge(&mut world, json!({ "title": "below", "scope": "s", "milestone_title": "Later" }));
    let by_title = |world: &World, title: &str| {
        let item = world.state.backlog.values().find(|it| it.title == title);
        item.map(|item| Item::clone(item))
    };
    let below = by_title(&world, "below").expect("an item").backlog_id;
    let above = |title: &str, on: Value| json!({ "title": title, "scope": "s", "milestone_title": "Sign in", "depends_on": on });
    merge(&mut world, above("free", json!([])));
    merge(&mut world, above("above", json!([below])));
    let middle = by_title(&world, "above").expect("an item").backlog_id;
    merge(&mut world, above("top", json!([middle])));
    world.command(kickoff());
    play(&mut world, |_, _| None);
    assert_eq!(statuses(&world), [("free".to_owned(), TodoStatus::Committed)]);
    for title in ["below", "above", "top"] {
        let item = by_title(&world, title).expect("it is there");
        assert_eq!((item.status, item.selected_in_sprint_id), (ItemStatus::Pending, None));
    }
}

#[test]
fn what_a_change_touches_is_held_beside_what_its_item_declares_before_it_is_judged() {
    let mut world = World::new(by_hand());
    let payload = json!({
        "title": "alone", "scope": "s", "milestone_title": "Sign in",
        "allowed_paths": ["src/**", "a.py", "docs/"],
    });
    world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    world.command(kickoff());
    let mut seen = Vec::new();
    while let Some(next) = world.todo().first().cloned() {
        world.do_well(&next);
        world.deliver();
        if world.state.sprints.is_empty() {
            continue;
        }
        let todos = sprint(&world).work.todos;
        let Some(todo) = todos.iter().find(|it| it.progress.status == TodoStatus::Running) else {
            continue;
        };
        seen = vec![todo.progress.artifacts.clone(), todo.progress.undeclared_paths.clone()];
        seen.push(todo.progress.untouched_paths.clone());
    }
    let texts = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    assert_eq!(seen, [texts(&["a.py"]), texts(&[]), texts(&["src/**", "docs/"])]);
    let over = &sprint(&world).work.todos[0].progress;
    assert_eq!((over.status, over.updated_at), (TodoStatus::Committed, over.ended_at));
    assert_eq!(over.untouched_paths, seen[2], "the closing words are asked with it");
}

#[test]
fn a_todo_that_comes_to_depend_on_an_item_that_is_no_todo_waits_in_the_backlog() {
    let mut world = World::new(by_hand());
    let merge = |world: &mut World, item: Value| {
        let payload = json!(item);
        let answer = world.command(Command::BacklogMerge { payload, source: ItemSource::User });
        assert_eq!(key(&answer), "backlog.merged");
    };
    let of = |title: &str, milestone: &str| json!({ "title": title, "scope": "s", "milestone_title": milestone });
    merge(&mut world, of("below", "Later"));
    merge(&mut world, of("first", "Sign in"));
    merge(&mut world, of("second", "Sign in"));
    world.command(kickoff());
    let begun = |world: &World| {
        let mut todos = sprint(world).work.todos.into_iter();
        todos.any(|it| it.progress.status == TodoStatus::Running)
    };
    while world.state.sprints.is_empty() || !begun(&world) {
        let next = world.todo().first().cloned().expect("something to do");
        world.do_well(&next);
    }
    let waits = |todo: &&Todo| todo.progress.status == TodoStatus::Queued;
    let queued = sprint(&world).work.todos.iter().find(waits).cloned().expect("one waits");
    let below = world.state.backlog.values().find(|it| it.title == "below").expect("an item");
    let payload = json!({ "backlog_id": queued.backlog_id, "depends_on": [below.backlog_id] });
    merge(&mut world, payload);
    play(&mut world, |_, _| None);
    let over = sprint(&world).work.todos.into_iter();
    let over = over.map(|it| (it.title, it.progress.status)).collect::<BTreeMap<_, _>>();
    assert_eq!(over[&queued.title], TodoStatus::Cancelled, "{over:?}");
    let item = &world.state.backlog[&queued.backlog_id.expect("an item")];
    assert_eq!((item.status, &item.todo), (ItemStatus::Pending, &None));
}

#[test]
fn todos_begin_while_the_planner_looks_after_another_one() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    let mut reviewed = false;
    let is_review = |world: &World, next: &Next| {
        let Next::Run(id) = next else { return false };
        let request = &world.state.requests[&world.state.envelopes[id].envelope.request_id];
        request.duty() == Some(Duty::OngoingReview)
    };
    loop {
        let todo = world.todo();
        let other = todo.iter().find(|next| !is_review(&world, next)).cloned();
        let Some(next) = other.or_else(|| todo.first().cloned()) else { break };
        if is_review(&world, &next) {
            // It has waited until now. What waited for the first todo was begun and done meanwhile.
            let done = |(title, status): &(String, TodoStatus)| {
                title == "third" && *status == TodoStatus::Committed
            };
            reviewed |= statuses(&world).iter().any(done);
        }
        world.do_well(&next);
        world.deliver();
    }
    assert!(reviewed, "{:?}", statuses(&world));
}

#[test]
fn a_todo_that_waits_for_a_person_leaves_its_slot_to_another_one() {
    let mut policy = by_hand();
    policy.sprint.wip_limit = 1;
    policy.gates.commit = Stance::Ask;
    let mut world = World::new(policy);
    world.command(kickoff());
    let told = |world: &World| {
        let sprint = sprint(world);
        let todo = sprint.work.todos.iter().find(|todo| todo.title == "second").cloned();
        let now = Timestamp::from_millis(world.clock);
        let id = SubjectId::parse(todo?.progress.todo_id.as_str()).expect("an id");
        Some(why::about(&world.state, &world.policy, &id, now).expect("it is known").key)
    };
    let mut waited = false;
    while let Some(next) = world.todo().first().cloned() {
        world.do_well(&next);
        world.deliver();
        let has_sprint = !world.state.sprints.is_empty();
        waited |= has_sprint && told(&world).as_deref() == Some("why.todo_slot");
    }
    assert!(waited, "there is one slot");
    // Each stands at its gate, but for what waits for the first one.
    assert_eq!(world.state.gates.len(), 2);
    let running = |it: &(String, TodoStatus)| it.1 == TodoStatus::Running;
    assert_eq!(statuses(&world).iter().filter(|it| running(it)).count(), 2);
}

#[test]
fn what_is_under_way_stays_what_it_was_when_it_began_and_what_waits_may_change() {
    let mut world = World::new(by_hand());
    world.command(kickoff());
    while !statuses_of(&world).contains(&("first".to_owned(), TodoStatus::Running)) {
        let next = world.todo().first().cloned().expect("something to do");
        world.do_well(&next);
        world.deliver();
    }
    for title in ["first", "third"] {
        let item = world.state.backlog.values().find(|it| it.title == title).expect("an item");
        let payload = json!({
            "backlog_id": item.backlog_id, "scope": "something else",
            "acceptance_criteria": ["another one"],
        });
        world.command(Command::BacklogMerge { payload, source: ItemSource::Planner });
    }
    // A person is told, and nothing of what they send is taken.
    let first = world.state.backlog.values().find(|it| it.title == "first").expect("an item");
    let same = json!({ "backlog_id": first.backlog_id, "scope": first.scope });
    let payload = json!({ "backlog_id": first.backlog_id, "scope": "something else" });
    let answer = world.command(Command::BacklogMerge { payload: same, source: ItemSource::User });
    assert_eq!(key(&answer), "backlog.merged", "it says nothing else");
    let answer = world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    assert_eq!(key(&answer), "backlog.refused");
    let item = |title: &str| {
        let item = world.state.backlog.values().find(|it| it.title == title).expect("an item");
        (item.scope.as_str(), item.acceptance_criteria.clone())
    };
    assert_eq!(item("first"), ("do the first thing", vec!["it works".into()]));
    assert_eq!(item("third"), ("something else", vec!["another one".into()]));
    // Who changes something else of it has not made its criteria their own.
    let third = world.state.backlog.values().find(|it| it.title == "third").expect("an item");
    let (id, payload) =
        (third.backlog_id.clone(), json!({ "backlog_id": third.backlog_id, "priority_rank": 1 }));
    world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    let third = world.item(&id);
    assert_eq!((third.priority_rank, third.persons_criteria.len()), (1, 0));
}

fn statuses_of(world: &World) -> Vec<(String, TodoStatus)> {
    if world.state.sprints.is_empty() { Vec::new() } else { statuses(world) }
}
