//! What is found in a plan before it is built: it goes back to its planner while that helps, and then a person decides.

use std::sync::Arc;

use serde_json::{Value, json};

use super::scenes::{report, work_until};
use super::sprints::{key, negative};
use super::steering::{finished, run_of};
use super::world::{GUILD, OWNER, Todo, World, good, policy, press, result};
use crate::domain::actor::{Actor, Author};
use crate::domain::block::BlockCode;
use crate::domain::change::Change;
use crate::domain::event::Event;
use crate::domain::gate::{Gate, GateKind, Stance};
use crate::domain::guard::Guard;
use crate::domain::ids::{ItemId, RequestId, UserId};
use crate::domain::incoming::Command;
use crate::domain::ingress::Ingress;
use crate::domain::item::{Item, ItemSource};
use crate::domain::outgoing::{Act, ButtonAct, Post};
use crate::domain::plan_review::PlanReviewer;
use crate::domain::policy::{GateTable, Holders, Policy, Right};
use crate::domain::record::AnyRecord;
use crate::domain::request::{ReplyRoute, RequestStatus};
use crate::domain::result::ResultStatus;
use crate::domain::role::Role;
use crate::domain::routes::{Lane, Routes};
use crate::domain::run::RunOutcome;
use crate::domain::sprint::{Duty, DutyDetails, Kickoff, Sprint, SprintStatus, TodoStatus};
use crate::engine::Answer;
use crate::engine::lifecycle::steps;

/// Every request is planned, and nobody but the rules reads the plan.
fn standard() -> Policy {
    let mut routes = Routes::clone(Routes::built_in());
    routes.intents.values_mut().for_each(|lane| *lane = Lane::Standard);
    Policy { routes: Arc::new(routes), ..policy() }
}

fn planner(world: &mut World) -> Todo {
    work_until(world, |role, _| role == Role::Planner)
}

/// The planner's step ends with these criteria.
fn plans(world: &mut World, criteria: &[&str], more: Value) {
    let todo = planner(world);
    let mut plan = good(Role::Planner, Some(steps::DRAFT));
    plan.proposals.acceptance_criteria = Some(criteria.iter().map(ToString::to_string).collect());
    let paths = more["allowed_paths"].as_array();
    let paths = paths.map(|all| all.iter().filter_map(|it| it.as_str().map(str::to_owned)));
    plan.proposals.allowed_paths = paths.map(Iterator::collect);
    report(world, &todo, RunOutcome::Result(Arc::new(plan)));
}

/// The architect reads the plan and finds as much.
fn reads(world: &mut World, findings: usize, outcome: &str) {
    let todo = work_until(world, |_, step| step == Some(steps::GUIDANCE));
    let found =
        |at| json!({ "part": format!("C-{at}"), "problem": "too vague", "wanted": "a number" });
    let found: Vec<Value> = (1..=findings).map(found).collect();
    let transition = json!({
        "outcome": outcome, "target_phase": "", "target_step": "", "reason": "it cannot work",
        "reopen_category": if outcome == "reopen" { "scope" } else { "" }, "unresolved_items": [],
        "finalize_phase": false,
    });
    let said = json!({ "workflow_transition": transition, "plan_findings": found });
    report(world, &todo, RunOutcome::Result(Arc::new(result(Role::Architect, said))));
}

/// Who has the request.
fn has_it(world: &World) -> Option<Role> {
    world.state.envelopes.values().next().map(|it| it.target_role)
}

fn the_gate(world: &World) -> Gate {
    Gate::clone(world.state.gates.values().next().expect("a gate"))
}

fn findings(world: &World, id: &RequestId) -> Vec<String> {
    world.request(id).work.plan_review.findings.into_iter().map(|it| it.text).collect()
}

fn buttons(world: &World) -> Vec<ButtonAct> {
    let card = world.state.outgoing.values().find_map(|it| {
        let Act::Post(Post { gate_id: Some(_), buttons, .. }) = &it.act else { return None };
        Some(buttons)
    });
    card.expect("a card").iter().map(|it| it.act).collect()
}

#[test]
fn a_plan_that_nobody_could_see_through_is_mended_before_it_is_built() {
    let mut world = World::new(standard());
    let id = world.message("make it faster");
    plans(&mut world, &["it works well", "for now the cache is a stub"], json!({}));
    assert_eq!(has_it(&world), Some(Role::Planner));
    assert_eq!(findings(&world, &id).len(), 2, "{:?}", findings(&world, &id));
    assert!(world.said.contains(&"room.plan_back".to_owned()));
    plans(&mut world, &["`bench` says less than 50 ms"], json!({}));
    assert_eq!(has_it(&world), Some(Role::Developer));
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
    assert_eq!(world.request(&id).work.planned.expect("a plan").version.number, 2);
}

#[test]
fn a_plan_that_planning_again_does_not_mend_is_a_persons_to_decide() {
    let waiting = || {
        let mut world = World::new(standard());
        let id = world.message("make it faster");
        for _ in 0..2 {
            plans(&mut world, &["it works well"], json!({}));
        }
        let gate = the_gate(&world);
        assert_eq!((gate.kind, has_it(&world)), (GateKind::Plan, None));
        (world, id, gate)
    };
    let (mut world, id, gate) = waiting();
    let acts = [ButtonAct::ApproveAnyway, ButtonAct::Guide, ButtonAct::Reject, ButtonAct::Cancel];
    assert_eq!(buttons(&world), acts);
    let bare = world.command(press(&gate, ButtonAct::Approve));
    let Answer::Refused(said) = bare else { panic!("{bare:?}") };
    assert_eq!(said.key, "gate.reason_needed");
    let anyway = |reason: &str| Command::ApproveAnyway {
        gate_id: gate.gate_id.clone(),
        version: gate.version,
        reason: reason.to_owned(),
    };
    assert!(matches!(world.command(anyway("  ")), Answer::Refused(_)));
    world.command(anyway("we measure it by hand"));
    let accepted = world.request(&id).work.plan_review.accepted.expect("it is kept");
    assert_eq!(
        (accepted.by.as_str(), accepted.reason.as_str()),
        ("operator", "we measure it by hand")
    );
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);

    let (mut world, id, gate) = waiting();
    let (gate_id, version) = (gate.gate_id, gate.version);
    world.command(Command::AskBack { gate_id, version, question: "name a number".to_owned() });
    assert_eq!(has_it(&world), Some(Role::Planner));
    let review = world.request(&id).work.plan_review;
    assert_eq!(
        (review.sent_back, review.findings.len()),
        (0, 1),
        "it begins anew, and is told what was found"
    );
    plans(&mut world, &["`bench` says less than 50 ms"], json!({}));
    assert_eq!(has_it(&world), Some(Role::Developer));

    let (mut world, id, _) = waiting();
    world.command(Command::Cancel { request_id: id.clone() });
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    assert!(world.state.gates.is_empty());
}

#[test]
fn the_architect_reads_the_plan_three_times_at_most_and_only_while_it_gets_better() {
    for (rounds, outcome) in
        [(vec![3, 2, 1], "advance"), (vec![2, 2], "advance"), (vec![0, 0], "reopen")]
    {
        let mut world = World::new(policy());
        let id = world.message("do it");
        let (last, before) = rounds.split_last().expect("some");
        for found in before {
            reads(&mut world, *found, outcome);
            assert_eq!(has_it(&world), Some(Role::Planner), "{rounds:?}");
        }
        reads(&mut world, *last, outcome);
        let gate = the_gate(&world);
        assert_eq!((gate.kind, has_it(&world)), (GateKind::Plan, None), "{rounds:?}");
        let review = world.request(&id).work.plan_review;
        assert!(review.findings.iter().all(|it| it.by == PlanReviewer::Architect));
        let reason = "good enough".to_owned();
        let (gate_id, version) = (gate.gate_id, gate.version);
        world.command(Command::ApproveAnyway { gate_id, version, reason });
        assert_eq!(has_it(&world), Some(Role::Developer), "{rounds:?}");
        world.finish_well();
        assert_eq!(world.request(&id).status, RequestStatus::Committed);
    }
}

#[test]
fn what_a_person_wrote_is_not_the_planners_to_mend() {
    let mut world = World::new(standard());
    world.message("add a placeholder to the search field\n- (manual) it looks good");
    plans(&mut world, &["the placeholder reads `Search`", "it works as expected"], json!({}));
    assert_eq!(has_it(&world), Some(Role::Planner));
    let told = world.state.requests.values().next().expect("one").work.plan_review.clone();
    assert_eq!(told.findings.len(), 1, "{told:?}");
    assert!(told.findings[0].text.contains("as expected"), "{told:?}");
}

#[test]
fn a_change_beside_the_paths_of_its_plan_is_asked_about() {
    let mut world = World::new(standard());
    let id = world.message("do it");
    plans(&mut world, &["`make` says ok"], json!({ "allowed_paths": ["../elsewhere/**"] }));
    assert_eq!(has_it(&world), Some(Role::Planner), "it leaves the project");
    plans(&mut world, &["`make` says ok"], json!({ "allowed_paths": ["src/**"] }));
    world.finish_well();
    let gate = the_gate(&world);
    let found: Vec<_> = gate.findings.iter().map(|it| (it.guard, it.path.as_str())).collect();
    assert_eq!(found, [(Guard::Scope, "a.py")]);
    world.command(press(&gate, ButtonAct::Reject));
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
}

#[test]
fn a_guided_step_that_is_tried_again_is_no_report_of_the_plan() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |_, step| step == Some(steps::GUIDANCE));
    let mut stuck = result(Role::Architect, json!({}));
    stuck.status = crate::domain::result::ResultStatus::Blocked;
    report(&mut world, &todo, RunOutcome::Result(Arc::new(stuck)));
    assert_eq!(world.request(&id).blocked.expect("a reason").code, BlockCode::RoleBlocked);
    world.command(Command::Retry { request_id: id.clone() });
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

/// A sprint whose plan has just been read by the architect, who found as much each time.
fn read_sprint(world: &mut World, findings: &[usize]) {
    let kickoff = Kickoff {
        milestone: "Faster search".to_owned(),
        requirements: vec!["It takes 50 ms".to_owned()],
        ..Kickoff::default()
    };
    world.command(Command::SprintStart { kickoff: Box::new(kickoff) });
    for number in findings {
        let todo = work_until(world, |role, _| role == Role::Architect);
        let found = json!({ "part": "R-1", "problem": "nobody measures it", "wanted": "a bench" });
        let said = json!({ "plan_findings": vec![found; *number] });
        report(world, &todo, RunOutcome::Result(Arc::new(result(Role::Architect, said))));
    }
}

fn the_sprint(world: &World) -> Sprint {
    Sprint::clone(world.state.sprints.values().next().expect("a sprint"))
}

fn step(world: &World) -> String {
    the_sprint(world).step.expect("a step").to_string()
}

#[test]
fn the_plan_of_a_sprint_is_read_before_its_todos_begin_and_goes_back_while_it_gets_better() {
    let mut world = World::new(policy());
    read_sprint(&mut world, &[2]);
    assert_eq!((step(&world).as_str(), has_it(&world)), ("todo_finalization", Some(Role::Planner)));
    let told = the_sprint(&world).planning.last_reopen_reason;
    assert!(told.contains("R-1: nobody measures it (a bench)"), "{told}");
    world.finish_well();
    let ended = the_sprint(&world);
    assert_eq!(ended.status, SprintStatus::Completed);
    assert!(ended.work.todos.iter().all(|todo| todo.progress.status == TodoStatus::Committed));
    assert!(ended.planning.review.findings.is_empty());
}

#[test]
fn what_is_left_in_the_plan_of_a_sprint_is_a_persons_to_decide() {
    for (decide, status, goes_on) in [
        ("anyway", SprintStatus::Completed, true),
        ("guide", SprintStatus::Completed, true),
        ("reject", SprintStatus::Blocked, false),
        ("late", SprintStatus::Blocked, false),
    ] {
        let mut world = World::new(policy());
        read_sprint(&mut world, &[1, 1]);
        let gate = the_gate(&world);
        let (gate_id, version) = (gate.gate_id.clone(), gate.version);
        assert_eq!((gate.kind, has_it(&world)), (GateKind::Plan, None));
        let acts = [ButtonAct::ApproveAnyway, ButtonAct::Guide, ButtonAct::Reject];
        assert_eq!(buttons(&world), acts);
        match decide {
            "anyway" => {
                let reason = "it is measured elsewhere".to_owned();
                world.command(Command::ApproveAnyway { gate_id, version, reason });
                let accepted = the_sprint(&world).planning.review.accepted.expect("it is kept");
                assert_eq!(accepted.reason, "it is measured elsewhere");
            }
            "guide" => {
                let question = "leave the cache out".to_owned();
                world.command(Command::AskBack { gate_id, version, question });
                let told = the_sprint(&world).planning.last_reopen_reason;
                assert_eq!(told, "R-1: nobody measures it (a bench)\nleave the cache out");
                assert_eq!(has_it(&world), Some(Role::Planner));
            }
            "reject" => drop(world.command(press(&gate, ButtonAct::Reject))),
            // Nobody decides, which means no.
            _ => {
                while !the_sprint(&world).status.is_terminal() {
                    assert!(world.wait_until_due());
                    world.finish_well();
                }
            }
        }
        world.finish_well();
        let ended = the_sprint(&world);
        assert_eq!(ended.status, status, "{decide}");
        assert_eq!(world.landed() > 0, goes_on, "{decide}");
        assert!(world.state.gates.is_empty(), "{decide}");
    }
}

#[test]
fn what_a_person_said_about_a_plan_is_told_until_its_step_is_through() {
    let mut world = World::new(policy());
    read_sprint(&mut world, &[1, 1]);
    let gate = the_gate(&world);
    let (gate_id, version) = (gate.gate_id, gate.version);
    world.command(Command::AskBack {
        gate_id,
        version,
        question: "leave the cache out".to_owned(),
    });
    let told = |world: &World, todo: &Todo| {
        let Todo::Run(id) = todo else { panic!("{todo:?}") };
        let asked = &world.state.envelopes[id].envelope.request_id;
        match &world.request(asked).params.duty {
            Some(DutyDetails::Planning { initial_phase_reopen_reason, .. }) => {
                initial_phase_reopen_reason.clone()
            }
            other => panic!("{other:?}"),
        }
    };
    for problem in ["no id", "no rank", "no time"] {
        let todo = planner(&mut world);
        let said = told(&world, &todo);
        assert!(said.contains("leave the cache out"), "{problem}: {said}");
        report(&mut world, &todo, negative(ResultStatus::Failed, problem));
    }
    assert_eq!(the_sprint(&world).status, SprintStatus::Blocked);
    world.command(Command::SprintRestart);
    let todo = planner(&mut world);
    let said = told(&world, &todo);
    assert!(said.contains("leave the cache out") && said.contains("no time"), "{said}");
    world.finish_well();
    assert_eq!(the_sprint(&world).planning.sent_back_with, "");
}

#[test]
fn who_chooses_anew_leaves_out_what_is_not_named_any_more() {
    let mut world = World::new(policy());
    read_sprint(&mut world, &[2]);
    assert_eq!((step(&world).as_str(), has_it(&world)), ("todo_finalization", Some(Role::Planner)));
    let planned = |world: &World| -> Vec<ItemId> {
        let items = world.state.backlog.values();
        let mine = items.filter(|item| item.planned_in_sprint_id.is_some());
        mine.map(|item| item.backlog_id.clone()).collect()
    };
    assert_eq!(planned(&world).len(), 3);
    // What nothing else has to be there for.
    let first = world.state.backlog.values().find(|item| item.title == "first");
    let first = [first.expect("an item").backlog_id.clone()];
    let kept =
        json!({ "backlog_id": first[0], "planned_in_sprint_id": the_sprint(&world).sprint_id });
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let said = json!({ "backlog_items": [kept] });
    report(&mut world, &todo, RunOutcome::Result(Arc::new(result(Role::Planner, said))));
    assert_eq!(planned(&world), first);
    let todos = the_sprint(&world).work.todos;
    let waiting = todos.iter().filter(|todo| todo.progress.status == TodoStatus::Queued);
    assert_eq!(waiting.count(), 1);
    // Nobody asks for the others again before the first one is built.
    work_until(&mut world, |role, _| role == Role::Developer);
    assert_eq!(planned(&world), first);
}

#[test]
fn the_plan_of_a_sprint_that_changes_while_it_is_asked_about_is_read_anew() {
    let gates = GateTable { sprint_plan: Some(Stance::Ask), ..GateTable::default() };
    let mut world = World::new(Policy { gates, ..policy() });
    read_sprint(&mut world, &[0]);
    let gate = the_gate(&world);
    assert_eq!(buttons(&world), [ButtonAct::Approve, ButtonAct::Reject, ButtonAct::Guide]);
    let item = world.state.backlog.values().next().expect("an item").backlog_id.clone();
    let payload = json!([{ "backlog_id": item, "scope": "do something else" }]);
    world.command(Command::BacklogMerge { payload, source: ItemSource::User });
    assert_eq!(has_it(&world), Some(Role::Architect));
    let stale = world.command(press(&gate, ButtonAct::Approve));
    assert!(matches!(stale, Answer::Refused(_)), "{stale:?}");
    while world.state.gates.is_empty() {
        let todo = world.todo().first().cloned().expect("something to do");
        world.do_well(&todo);
    }
    world.command(press(&the_gate(&world), ButtonAct::Approve));
    world.finish_well();
    assert_eq!(the_sprint(&world).status, SprintStatus::Completed);
}

#[test]
fn what_a_person_has_approved_for_a_sprint_stays_so_whatever_its_planner_says_later() {
    for stance in [Stance::Ask, Stance::Allow] {
        let gates = GateTable { sprint_plan: Some(stance), ..GateTable::default() };
        let mut world = World::new(Policy { gates, ..policy() });
        read_sprint(&mut world, &[0]);
        if stance == Stance::Ask {
            world.command(press(&the_gate(&world), ButtonAct::Approve));
        }
        let approved = the_sprint(&world).work.todos;
        let mut reviewed = false;
        while let Some(todo) = world.todo().first().cloned() {
            let is_review = |run| {
                let request = &world.state.envelopes[run].envelope.request_id;
                world.state.requests[request].duty() == Some(Duty::OngoingReview)
            };
            let is_asked = matches!(&todo, Todo::Run(run) if is_review(run));
            if reviewed || !is_asked {
                world.do_well(&todo);
                continue;
            }
            reviewed = true;
            let last = the_sprint(&world).work.todos.pop().and_then(|it| it.backlog_id);
            let items = json!([
                { "backlog_id": last, "acceptance_criteria": ["something easier"] },
                { "title": "a fourth", "scope": "more", "kind": "feature",
                  "acceptance_criteria": ["it is there"], "priority_rank": 1,
                  "planned_in_sprint_id": the_sprint(&world).sprint_id },
            ]);
            let said = result(Role::Planner, json!({ "backlog_items": items }));
            report(&mut world, &todo, RunOutcome::Result(Arc::new(said)));
        }
        let ended = the_sprint(&world);
        assert_eq!((reviewed, ended.status), (true, SprintStatus::Completed), "{stance:?}");
        let (titles, criteria): (Vec<_>, Vec<_>) =
            ended.work.todos.iter().map(|it| (&it.title, &it.acceptance_criteria)).unzip();
        let (old, agreed): (Vec<_>, Vec<_>) =
            approved.iter().map(|it| (&it.title, &it.acceptance_criteria)).unzip();
        assert_eq!(titles == old && criteria == agreed, stance == Stance::Ask, "{titles:?}");
        let fourth = world.state.backlog.values().find(|item| item.title == "a fourth");
        let in_others =
            |item: &Arc<Item>| item.planned_in_sprint_id.as_ref() != Some(&ended.sprint_id);
        assert_eq!(
            fourth.is_some_and(in_others),
            stance == Stance::Ask,
            "it is not of this sprint"
        );
        assert!(world.said.contains(&"sprint.review".to_owned()));
    }
}

#[test]
fn a_sprint_that_is_stopped_does_not_wait_for_its_plan() {
    let gates = GateTable { sprint_plan: Some(Stance::Ask), ..GateTable::default() };
    let mut world = World::new(Policy { gates, ..policy() });
    read_sprint(&mut world, &[0]);
    world.restart();
    world.command(Command::SprintStop { now: false });
    world.finish_well();
    assert!(the_sprint(&world).status.is_terminal() && world.state.gates.is_empty());
    assert_eq!(world.landed(), 0);
}

#[test]
fn a_sprint_whose_plan_was_turned_down_goes_on_with_todos_that_are_chosen_anew() {
    let mut world = World::new(policy());
    read_sprint(&mut world, &[1, 1]);
    let gate = the_gate(&world);
    // Words for the request at the card guide nobody: whoever may only ask overturns no decision.
    let (request_id, text) = (gate.request_id.clone(), "one more thing".to_owned());
    let said = world.command(Command::Steer { request_id, text });
    assert_eq!(key(&said), "words_at_plan", "who writes them is told");
    world.command(press(&gate, ButtonAct::Reject));
    world.finish_well();
    assert_eq!(the_sprint(&world).status, SprintStatus::Blocked);
    world.command(Command::SprintRestart);
    world.finish_well();
    let ended = the_sprint(&world);
    assert_eq!(ended.status, SprintStatus::Completed);
    let done = ended.work.todos.iter().filter(|it| it.progress.status == TodoStatus::Committed);
    assert_eq!((done.count(), world.landed()), (3, 3));
}

#[test]
fn a_plan_that_nobody_decided_about_is_turned_down_by_no_person() {
    let gates = GateTable { sprint_plan: Some(Stance::Ask), ..GateTable::default() };
    for (gates, by) in [
        (gates.clone(), "time"),
        (GateTable { sprint_plan: Some(Stance::Refuse), ..gates }, "rules"),
    ] {
        let mut world = World::new(Policy { gates, ..policy() });
        read_sprint(&mut world, &[0]);
        while !world.state.gates.is_empty() {
            assert!(world.wait_until_due());
        }
        let told = world.log.iter().find_map(|change| {
            let Change::Save(AnyRecord::Outgoing(it)) = change else { return None };
            let Act::Post(Post { content, .. }) = &it.act else { return None };
            (content.key == "sprint.plan_rejected").then(|| content.values["by"].clone())
        });
        assert_eq!(told.expect("words"), by);
        let reason = the_sprint(&world).planning.last_reopen_reason;
        assert!(!reason.contains("person"), "{reason}");
    }
}

#[test]
fn words_that_no_planner_of_a_sprint_has_read_are_read_before_its_step_is_over() {
    let mut world = World::new(policy());
    world.command(Command::SprintStart {
        kickoff: Box::new(Kickoff { milestone: "Faster".to_owned(), ..Kickoff::default() }),
    });
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let run = run_of(&world, &todo, "run-plan");
    world.submit(Event::RunStarting(run.clone()));
    let request_id = run.request_id.clone();
    world.command(Command::Steer { request_id, text: "leave payments out".to_owned() });
    world.submit(Event::RunFinished(Box::new(finished(&run))));
    let next = work_until(&mut world, |role, _| role == Role::Planner);
    let again = run_of(&world, &next, "run-again");
    assert_eq!(again.request_id, run.request_id, "the same step, with the words");
    world.submit(Event::RunStarting(again.clone()));
    assert!(!world.request(&run.request_id).params.has_unread());
}

#[test]
fn what_the_architect_finds_after_a_plan_was_approved_is_decided_about_again() {
    for outcome in ["advance", "reopen"] {
        let mut world = World::new(policy());
        let id = world.message("do it");
        for _ in 0..2 {
            reads(&mut world, 1, "advance");
        }
        let gate = the_gate(&world);
        let reason = "good enough".to_owned();
        let (gate_id, version) = (gate.gate_id, gate.version);
        world.command(Command::ApproveAnyway { gate_id, version, reason });
        // The review sends it back to whoever says how it is built.
        let todo = work_until(&mut world, |_, step| step == Some(steps::REVIEW));
        let transition = json!({
            "outcome": "reopen", "target_phase": "", "target_step": "", "reason": "wrong place",
            "reopen_category": "architecture", "unresolved_items": [], "finalize_phase": false,
        });
        let said = json!({ "workflow_transition": transition });
        report(&mut world, &todo, RunOutcome::Result(Arc::new(result(Role::Architect, said))));
        reads(&mut world, 2, outcome);
        let again = the_gate(&world);
        assert_eq!((again.kind, has_it(&world)), (GateKind::Plan, None), "{outcome}");
        assert!(world.request(&id).work.plan_review.is_open());
    }
}

#[test]
fn nobody_approves_the_plan_of_their_own_sprint_where_four_eyes_are_wanted() {
    const OTHER: UserId = UserId(101);
    let gates = GateTable { sprint_plan: Some(Stance::Ask), ..GateTable::default() };
    let both = Holders { users: [OWNER, OTHER].into(), ..Holders::default() };
    let rights = [(Right::Administer, both)].into();
    let mut world = World::new(Policy { gates, four_eyes: true, rights, ..policy() });
    let reply_route = ReplyRoute { author_id: Some(OWNER), ..ReplyRoute::default() };
    let kickoff = Kickoff { milestone: "Faster".to_owned(), reply_route, ..Kickoff::default() };
    world.command(Command::SprintStart { kickoff: Box::new(kickoff) });
    while world.state.gates.is_empty() {
        let todo = world.todo().first().cloned().expect("something to do");
        world.do_well(&todo);
    }
    let by = |id, command, via| {
        let author =
            Author { id, name: "mina".to_owned(), is_bot: false, server_roles: Vec::new() };
        let actor = Actor::Person { author, guild_id: Some(GUILD), via };
        Event::Command { actor, command, interaction: None }
    };
    let refuses = |world: &mut World, id| {
        let press = press(&the_gate(world), ButtonAct::Approve);
        let Answer::Refused(said) = world.submit(by(id, press, Ingress::Button)) else { panic!() };
        assert_eq!(said.key, "gate.four_eyes");
    };
    refuses(&mut world, OWNER);
    // Who guides the next plan has a part in it.
    let gate = the_gate(&world);
    let guide = Command::AskBack {
        gate_id: gate.gate_id.clone(),
        version: gate.version,
        question: "also add a page for admins".to_owned(),
    };
    world.submit(by(OTHER, guide, Ingress::Modal));
    while world.state.gates.is_empty() {
        let todo = world.todo().first().cloned().expect("something to do");
        world.do_well(&todo);
    }
    assert_ne!(the_gate(&world).gate_id, gate.gate_id);
    refuses(&mut world, OTHER);
    world.command(press(&the_gate(&world), ButtonAct::Approve));
    while world.state.requests.values().all(|it| it.todo_id.is_none()) {
        let todo = world.todo().first().cloned().expect("something to do");
        world.do_well(&todo);
    }
    let mut todos = world.state.requests.values().filter(|it| it.todo_id.is_some());
    assert!(todos.all(|it| it.params.other_askers.contains(&OTHER)));
}
