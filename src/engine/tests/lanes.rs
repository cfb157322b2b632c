//! Which steps requests take: by lane, by what people change, and what no lane leaves out.

use std::sync::Arc;

use serde_json::json;

use super::scenes::work_until;
use super::steering::{finished, run_of};
use super::world::{OWNER, World, all_steps, candidate, evidence, good, policy, press, result};
use crate::domain::actor::{Actor, Author};
use crate::domain::conflict::Conflict;
use crate::domain::criterion::written;
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::event::Event;
use crate::domain::evidence::{Candidate, ChangeKind, ChangedPath, CheckVerdict, ReportedWork};
use crate::domain::gate::{GateKind, Stance};
use crate::domain::ids::{GuildId, MessageId, RequestId, UserId};
use crate::domain::incoming::{Command, RouteChange};
use crate::domain::ingress::Ingress;
use crate::domain::intent::Intent;
use crate::domain::language::Language;
use crate::domain::lifecycle::StepName;
use crate::domain::outgoing::{Act, Button, ButtonAct, LaneMenu, Menu, Post};
use crate::domain::policy::{GateTable, Holders, PlanStances, Policy, Right};
use crate::domain::request::RequestStatus;
use crate::domain::result::{RequestIntent, ResultStatus};
use crate::domain::role::Role;
use crate::domain::routes::{Lane, LaneSource, RouteSignal, Routes, WorkSize};
use crate::domain::run::{RunOutcome, RunReport};
use crate::domain::test_report::Comparison;
use crate::engine::choose_lane;
use crate::engine::decision::Answer;
use crate::engine::lifecycle::steps;

use super::world::Todo;

/// Everything that a request does, in the order in which roles are run; `first` is what the orchestrator says.
fn roles_of(world: &mut World, intent: serde_json::Value) -> Vec<Role> {
    let mut roles = Vec::new();
    while let Some(todo) = world.todo().first().cloned() {
        if let Todo::Run(id) = &todo {
            let role = world.state.envelopes[id].target_role;
            roles.push(role);
            if role == Role::Orchestrator {
                let said =
                    json!({ "request_handling": {"mode": "route"}, "request_intent": intent });
                let said = result(role, said);
                world.run(id, RunOutcome::Result(Arc::new(said)));
                continue;
            }
        }
        world.do_well(&todo);
    }
    roles
}

fn said(intent: Intent, confidence: u8, size: WorkSize) -> serde_json::Value {
    json!({ "intent": intent, "confidence": confidence, "size": size })
}

/// The orchestrator takes what was written for a bug, and is sure of that.
fn hand_on_a_bug(world: &mut World) {
    let todo = work_until(world, |role, _| role == Role::Orchestrator);
    let bug = said(Intent::BugFix, 90, WorkSize::Normal);
    let taken = json!({ "request_handling": { "mode": "route" }, "request_intent": bug });
    let outcome = RunOutcome::Result(Arc::new(result(Role::Orchestrator, taken)));
    super::scenes::report(world, &todo, outcome);
}

fn with_routes() -> Policy {
    Policy { routes: Arc::clone(Routes::built_in()), ..policy() }
}

/// By a command, with a lane named or not.
fn ask(world: &mut World, lane: Option<Lane>) -> RequestId {
    let text = "tidy up the greeting".to_owned();
    world.command(Command::Ask {
        text,
        channel_id: None,
        parent_id: None,
        language: Language::En,
        lane,
    });
    world.state.requests.keys().next_back().expect("a request").clone()
}

#[test]
fn each_lane_takes_its_steps_and_no_more_turns() {
    use Role::{Architect, Developer, Orchestrator, Planner, Qa, Research};
    for (lane, roles) in [
        (Lane::Fast, &[Developer][..]),
        (Lane::Quick, &[Developer, Architect]),
        (Lane::Standard, &[Planner, Developer, Architect, Qa]),
        (Lane::Full, &[Research, Planner, Architect, Developer, Architect, Qa]),
    ] {
        let mut world = World::new(with_routes());
        let id = ask(&mut world, Some(lane));
        assert_eq!(roles_of(&mut world, json!(null)), roles, "{lane}");
        let request = world.request(&id);
        assert_eq!(request.status, RequestStatus::Committed, "{lane}");
        assert_eq!(request.work.spent.turns as usize, roles.len(), "{lane}");
    }
    // What nobody named is asked about first.
    for (intent, size, roles) in [
        (Intent::BugFix, WorkSize::Small, &[Orchestrator, Developer][..]),
        (Intent::BugFix, WorkSize::Normal, &[Orchestrator, Developer, Architect]),
        (Intent::Feature, WorkSize::Normal, &[Orchestrator, Planner, Developer, Architect, Qa]),
    ] {
        let mut world = World::new(with_routes());
        world.message("qwertz");
        assert_eq!(roles_of(&mut world, said(intent, 90, size)), roles, "{intent} {size}");
        assert_eq!(world.landed(), 1);
    }
}

#[test]
fn a_signal_makes_the_way_longer_takes_its_steps_along_and_asks_about_the_plan() {
    use Role::{Architect, Designer, Developer, Orchestrator, Planner, Qa, Research};
    let steps = |names: &[&str]| names.iter().map(|it| StepName::parse(it).unwrap()).collect();
    let signal = |word: &str, lane, add: &[&str], plan| {
        (word.to_owned(), RouteSignal { words: vec![word.to_owned()], lane, add: steps(add), plan })
    };
    let mut routes = Routes::clone(Routes::built_in());
    routes.signals = [
        signal("payment", Some(Lane::Standard), &["research_initial", "designer_advisory"], None),
        signal("invoice", None, &[], Some(Stance::Ask)),
    ]
    .into();
    let with_signals = Policy { routes: Arc::new(routes), ..policy() };
    for (text, roles) in [
        ("qwertz", &[Orchestrator, Developer, Architect][..]),
        (
            "payment qwertz",
            &[Orchestrator, Research, Planner, Designer, Planner, Developer, Architect, Qa],
        ),
        ("invoice qwertz", &[Orchestrator, Planner]),
    ] {
        let mut world = World::new(with_signals.clone());
        world.message(text);
        let took = roles_of(&mut world, said(Intent::BugFix, 90, WorkSize::Normal));
        assert_eq!(took, roles, "{text}");
        let asked = world.state.gates.values().any(|gate| gate.kind == GateKind::Plan);
        assert_eq!(asked, text.starts_with("invoice"), "{text}");
    }
    // Who shortens the lane is asked about the plan and not overruled otherwise; any other lane is no shorter than it was.
    let named = |text: &str, lane| {
        let mut world = World::new(with_signals.clone());
        let (text, language) = (text.to_owned(), Language::En);
        world.command(Command::Ask {
            text,
            channel_id: None,
            parent_id: None,
            language,
            lane: Some(lane),
        });
        roles_of(&mut world, json!(null))
    };
    assert_eq!(named("payment qwertz", Lane::Quick), [Developer, Architect]);
    assert_eq!(named("payment invoice qwertz", Lane::Quick), [Planner]);
    let took = named("payment qwertz", Lane::Full);
    assert!(took.contains(&Designer), "{took:?}");
}

#[test]
fn who_makes_the_way_longer_has_not_shortened_it() {
    let mut routes = Routes::clone(Routes::built_in());
    let signal = RouteSignal {
        words: vec!["payment".to_owned()],
        lane: Some(Lane::Full),
        add: Vec::new(),
        plan: None,
    };
    routes.signals = [("money".to_owned(), signal)].into();
    let with_signal = Policy { routes: Arc::new(routes), ..policy() };
    for (lane, later) in [(Lane::Standard, Lane::Full), (Lane::Fast, Lane::Fast)] {
        let mut world = World::new(with_signal.clone());
        // The rules are not sure of it, and the orchestrator is.
        let id = world.message("qwertz");
        let first = world.request(&id).conversation.reply_route.message_id.expect("a message").0;
        hand_on_a_bug(&mut world);
        let change = RouteChange::Lane(lane);
        world.command(Command::Route { request_id: id.clone(), change });
        assert_eq!(world.request(&id).route.lane.map(|it| it.lane), Some(lane));
        let words = world.words(super::world::GENERAL, first, "payment qwertz");
        world.submit(Event::MessageEdited(words));
        assert_eq!(world.request(&id).route.lane.map(|it| it.lane), Some(later));
    }
}

#[test]
fn a_signal_of_words_that_were_edited_makes_the_way_ahead_longer() {
    let mut routes = Routes::clone(Routes::built_in());
    let signal = RouteSignal {
        words: vec!["payment".to_owned()],
        lane: Some(Lane::Standard),
        add: Vec::new(),
        plan: None,
    };
    routes.signals = [("money".to_owned(), signal)].into();
    let mut world = World::new(Policy { routes: Arc::new(routes), ..policy() });
    let id = world.message("qwertz");
    let first = world.request(&id).conversation.reply_route.message_id.expect("a message").0;
    hand_on_a_bug(&mut world);
    assert_eq!(world.request(&id).route.lane.map(|it| it.lane), Some(Lane::Quick));
    let words = world.words(super::world::GENERAL, first, "payment qwertz");
    world.submit(Event::MessageEdited(words));
    world.finish_well();
    let request = world.request(&id);
    assert_eq!(request.route.lane.map(|it| it.lane), Some(Lane::Standard), "{request:#?}");
    assert!(request.route.visited_roles.contains(&Role::Qa), "{request:#?}");
}

#[test]
fn a_signal_of_further_words_makes_the_way_ahead_longer_and_their_plan_is_asked_about() {
    for (plan, asked) in [(None, false), (Some(Stance::Ask), true)] {
        let mut routes = Routes::clone(Routes::built_in());
        let (words, lane) = (vec!["payment".to_owned()], Some(Lane::Standard));
        routes.signals =
            [("money".to_owned(), RouteSignal { words, lane, add: Vec::new(), plan })].into();
        let mut world = World::new(Policy { routes: Arc::new(routes), ..policy() });
        let id = world.message("qwertz");
        world.deliver();
        hand_on_a_bug(&mut world);
        assert_eq!(world.request(&id).route.lane.map(|it| it.lane), Some(Lane::Quick));
        let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
        let words = world.words(room.expect("a room"), 90, "and the payment, please");
        world.submit(Event::Message(words));
        world.finish_well();
        let request = world.request(&id);
        assert_eq!(request.route.lane.map(|it| it.lane), Some(Lane::Standard), "{request:#?}");
        let gate = world.state.gates.values().any(|gate| gate.kind == GateKind::Plan);
        assert_eq!(gate, asked);
        assert_eq!(request.status == RequestStatus::Committed, !asked, "{request:#?}");
    }
}

#[test]
fn what_is_written_to_a_plan_that_was_let_through_is_planned_and_asked_about_before_it_lands() {
    let gates = GateTable { plan: PlanStances::All(Stance::Ask), ..GateTable::default() };
    let mut world = World::new(Policy { gates, ..policy() });
    let id = world.message("make it so");
    world.deliver();
    world.finish_well();
    let approve = |world: &mut World| {
        let gate = world.state.gates.values().find(|gate| gate.kind == GateKind::Plan);
        let button = press(&gate.cloned().expect("a plan is asked about"), ButtonAct::Approve);
        world.command(button);
    };
    approve(&mut world);
    let todo = super::scenes::work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-built");
    world.submit(Event::RunStarting(run.clone()));
    let room = world.request(&id).conversation.room.and_then(|room| room.thread_id);
    let words = world.words(room.expect("a room"), 90, "also switch off the audit log");
    world.submit(Event::Message(words));
    let report = RunReport { heard: vec![MessageId(90)], ..finished(&run) };
    world.submit(Event::RunFinished(Box::new(report)));
    // The agent has heard it, and whoever let the plan through has not.
    let Todo::Run(planner) = work_until(&mut world, |role, _| role == Role::Planner) else {
        panic!("no run")
    };
    let mut plan = good(Role::Planner, world.state.envelopes[&planner].step);
    plan.proposals.acceptance_criteria = Some(vec!["nothing is logged".to_owned()]);
    world.run(&planner, RunOutcome::Result(Arc::new(plan)));
    world.finish_well();
    assert_ne!(world.request(&id).status, RequestStatus::Committed);
    approve(&mut world);
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn just_an_answer_makes_nobodys_work_shorter_who_may_not() {
    let mut world = World::new(may_ask(GUEST));
    let (text, language) = ("make it so".to_owned(), Language::En);
    let lane = Some(Lane::Full);
    let actor = || person(GUEST, Ingress::Slash);
    let command = Command::Ask { text, channel_id: None, parent_id: None, language, lane };
    world.submit(Event::Command { actor: actor(), command, interaction: None });
    let id = world.state.requests.keys().next().expect("a request").clone();
    for (lane, taken) in [(Lane::Answer, true), (Lane::Fast, false), (Lane::Full, true)] {
        let command = Command::Route { request_id: id.clone(), change: RouteChange::Lane(lane) };
        let answer = world.submit(Event::Command { actor: actor(), command, interaction: None });
        assert_eq!(matches!(answer, Answer::Say(_)), taken, "{lane}: {answer:?}");
    }
}

#[test]
fn what_comes_of_a_conflict_is_judged_by_qa_on_every_route() {
    use Role::{Architect, ConflictResolver, Developer, Planner, Qa};
    for (lane, later, wanted) in [
        (Lane::Fast, None, &[Developer, ConflictResolver, Qa][..]),
        // A lane without QA that is named meanwhile takes it from nobody.
        (Lane::Fast, Some(Lane::Quick), &[Developer, ConflictResolver, Qa]),
        (Lane::Quick, None, &[Developer, Architect, ConflictResolver, Qa]),
        (Lane::Standard, None, &[Planner, Developer, Architect, Qa, ConflictResolver, Qa]),
    ] {
        let mut world = World::new(with_routes());
        let id = ask(&mut world, Some(lane));
        let (mut roles, mut moved) = (Vec::new(), false);
        while let Some(todo) = world.todo().first().cloned() {
            let Todo::Effect(effect) = &todo else {
                if let Todo::Run(envelope) = &todo {
                    roles.push(world.state.envelopes[envelope].target_role);
                }
                world.do_well(&todo);
                continue;
            };
            let head = "h1".to_owned();
            let kind = world.state.effects[effect].kind.clone();
            if matches!(kind, EffectKind::Merge { .. }) && !moved {
                moved = true;
                world.effect(effect, EffectOutcome::BranchMoved { head });
            } else if let EffectKind::Rebase { commit, .. } = kind {
                let paths = vec!["a.py".to_owned()];
                let conflict = Conflict { head, commit, paths, ..Conflict::default() };
                world.effect(effect, EffectOutcome::Conflict(conflict));
                if let Some(lane) = later {
                    let change = RouteChange::Lane(lane);
                    world.command(Command::Route { request_id: id.clone(), change });
                }
            } else {
                world.do_well(&todo);
            }
        }
        assert_eq!(roles, wanted, "{lane}");
        assert_eq!(world.request(&id).status, RequestStatus::Committed, "{lane}");
    }
}

#[test]
fn where_rules_and_orchestrator_differ_the_longer_way_is_taken_and_where_nobody_is_sure_the_longest()
 {
    let routes = Routes::built_in();
    let told =
        |intent, confidence| Some(RequestIntent { intent, confidence, size: WorkSize::Normal });
    let small =
        |intent, confidence| Some(RequestIntent { intent, confidence, size: WorkSize::Small });
    for (by_rules, said, lane, source) in [
        (Some(Intent::BugFix), told(Intent::BugFix, 10), Lane::Quick, LaneSource::Both),
        (Some(Intent::BugFix), small(Intent::BugFix, 10), Lane::Quick, LaneSource::Both),
        (Some(Intent::BugFix), small(Intent::BugFix, 99), Lane::Fast, LaneSource::Both),
        (Some(Intent::BugFix), told(Intent::Feature, 99), Lane::Standard, LaneSource::Longer),
        (Some(Intent::SpecRevision), told(Intent::BugFix, 99), Lane::Full, LaneSource::Longer),
        (Some(Intent::Refactor), None, Lane::Standard, LaneSource::Rules),
        (None, told(Intent::BugFix, 70), Lane::Quick, LaneSource::Orchestrator),
        (None, told(Intent::BugFix, 69), Lane::Full, LaneSource::Unsure),
        (None, None, Lane::Full, LaneSource::Unsure),
        // Who is not sure makes no work of a question by the shortest lane.
        (Some(Intent::Question), small(Intent::BugFix, 10), Lane::Full, LaneSource::Unsure),
        (Some(Intent::Question), small(Intent::BugFix, 99), Lane::Fast, LaneSource::Longer),
        // It is handed on as work: an answer is not what is meant.
        (Some(Intent::Question), told(Intent::Question, 99), Lane::Full, LaneSource::Unsure),
    ] {
        let choice = choose_lane(routes, by_rules, said);
        assert_eq!((choice.lane, choice.source), (lane, source), "{by_rules:?} {said:?}");
    }
}

/// The change of a commit effect.
fn grown(paths: &[&str], added: u64) -> impl FnMut(&EffectKind) -> Option<EffectOutcome> {
    let changed =
        |path: &&str| ChangedPath { path: (*path).to_owned(), kind: ChangeKind::Modified };
    let paths: Vec<ChangedPath> = paths.iter().map(changed).collect();
    move |kind| {
        let EffectKind::Commit { .. } = kind else { return None };
        let paths = paths.clone();
        Some(EffectOutcome::Committed(Candidate { paths, added_lines: added, ..candidate("c1") }))
    }
}

#[test]
fn what_is_more_than_the_fast_lane_is_for_is_reviewed_with_its_work_kept() {
    for (paths, added, is_more) in [
        (&["a.py"][..], 80, false),
        (&["a.py"], 81, true),
        (&["a", "b", "c"], 1, false),
        (&["a", "b", "c", "d"], 1, true),
        (&["sub/Cargo.lock"], 1, true),
        (&[".github/ci.yml"], 1, true),
    ] {
        let mut world = World::new(with_routes());
        let id = ask(&mut world, Some(Lane::Fast));
        world.finish_with(grown(paths, added));
        let request = world.request(&id);
        let reviewed = request.route.visited_roles.contains(&Role::Architect);
        assert_eq!(reviewed, is_more, "{paths:?} {added}");
        assert_eq!(world.said.iter().any(|it| it == "room.outgrown"), is_more, "{paths:?}");
        let lane = request.route.lane.expect("a lane").lane;
        assert_eq!(lane, if is_more { Lane::Quick } else { Lane::Fast });
        // Built once; a guarded path is asked about in any lane.
        assert_eq!(request.work.spent.turns, if is_more { 2 } else { 1 });
        assert!(request.work.gate_id.is_some() || request.status == RequestStatus::Committed);
    }
}

#[test]
fn what_no_executed_test_proves_does_not_go_the_fast_lane() {
    let mut world = World::new(with_routes());
    let id = ask(&mut world, Some(Lane::Fast));
    world.finish_with(|kind| {
        let EffectKind::Checks { commit, .. } = kind else { return None };
        let mut proof = evidence(commit, CheckVerdict::Passed);
        proof.checks[0].tests_passed = None;
        Some(EffectOutcome::Checked(proof))
    });
    let request = world.request(&id);
    assert!(request.route.visited_roles.contains(&Role::Architect), "{request:#?}");
    assert_eq!(request.status, RequestStatus::Committed);
    // Nor does what was red before.
    let gates = GateTable { red_base: Stance::Allow, ..GateTable::default() };
    let mut world = World::new(Policy { gates, ..with_routes() });
    let id = ask(&mut world, Some(Lane::Fast));
    world.finish_with(|kind| {
        let EffectKind::Checks { commit, .. } = kind else { return None };
        let mut proof = evidence(commit, CheckVerdict::Failed);
        let red_before = ["t"].into_iter().collect();
        proof.checks[0].compared =
            Some(Comparison { by_test: true, red_before, ..Comparison::default() });
        assert!(proof.is_red_before());
        Some(EffectOutcome::Checked(proof))
    });
    assert!(world.request(&id).route.visited_roles.contains(&Role::Architect));
    // Without checks nothing proves it at all.
    let mut world = World::new(Policy { check_names: Vec::new(), ..with_routes() });
    let id = ask(&mut world, Some(Lane::Fast));
    world.finish_well();
    assert!(world.request(&id).route.visited_roles.contains(&Role::Architect));
}

#[test]
fn a_build_that_changes_nothing_is_no_answer_on_a_short_lane_either() {
    let mut world = World::new(with_routes());
    let id = ask(&mut world, Some(Lane::Fast));
    world.finish_with(|kind| {
        matches!(kind, EffectKind::Commit { .. })
            .then_some(EffectOutcome::NothingChanged { base: "b0".to_owned() })
    });
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Blocked, "{request:#?}");
    assert_eq!(request.blocked.map(|it| it.code.word()), Some("no_change"));
}

#[test]
fn a_commit_is_made_of_what_was_reported_until_a_person_tries_it_again() {
    let mut world = World::new(with_routes());
    let id = ask(&mut world, Some(Lane::Fast));
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let run = run_of(&world, &todo, "run-built");
    world.submit(Event::RunStarting(run.clone()));
    let work = ReportedWork { tree: "t1".to_owned(), base: "b0".to_owned() };
    let outcome = RunOutcome::Result(Arc::new(good(run.role, run.step)));
    let report = RunReport { outcome, work: Some(work.clone()), ..finished(&run) };
    world.submit(Event::RunFinished(Box::new(report)));
    world.finish_with(|kind| {
        let message = "it may not be committed".to_owned();
        matches!(kind, EffectKind::Commit { .. })
            .then_some(EffectOutcome::Failed { message, request_id: None })
    });
    let request = world.request(&id);
    assert_eq!((request.status, request.work.reported), (RequestStatus::Blocked, Some(work)));
    world.command(Command::Retry { request_id: id.clone() });
    assert_eq!(world.request(&id).work.reported, None);
    world.finish_well();
    assert_eq!((world.request(&id).status, world.landed()), (RequestStatus::Committed, 1));
}

#[test]
fn what_was_sent_back_is_judged_again_before_it_lands() {
    let mut world = World::new(with_routes());
    let id = ask(&mut world, Some(Lane::Quick));
    let (mut reviews, mut order) = (0, Vec::new());
    while let Some(todo) = world.todo().first().cloned() {
        if let Todo::Run(envelope) = &todo {
            let (role, step) = {
                let envelope = &world.state.envelopes[envelope];
                (envelope.target_role, envelope.step)
            };
            order.push(role);
            if role == Role::Architect && reviews == 0 {
                reviews += 1;
                let transition =
                    json!({ "outcome": "reopen", "reopen_category": "implementation" });
                let said = result(role, json!({ "workflow_transition": transition }));
                world.run(envelope, RunOutcome::Result(Arc::new(said)));
                continue;
            }
            if step == Some(steps::REVISION) {
                let said = good(role, step);
                world.run(envelope, RunOutcome::Result(Arc::new(said)));
                continue;
            }
        }
        world.do_well(&todo);
    }
    use Role::{Architect, Developer};
    assert_eq!(order, [Developer, Architect, Developer, Architect]);
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

/// QA sends the change back, once.
fn qa_refuses(world: &mut World) {
    let todo = work_until(world, |_, step| step == Some(steps::QA));
    let transition = json!({ "outcome": "reopen", "reopen_category": "implementation" });
    let said = result(Role::Qa, json!({ "workflow_transition": transition }));
    super::scenes::report(world, &todo, RunOutcome::Result(Arc::new(said)));
}

#[test]
fn what_qa_refused_is_judged_by_qa_on_a_way_that_was_made_shorter_since() {
    for lane in [Lane::Fast, Lane::Quick] {
        refused_and_shortened(lane);
    }
}

fn refused_and_shortened(lane: Lane) {
    let mut world = World::new(with_routes());
    let id = ask(&mut world, Some(Lane::Standard));
    qa_refuses(&mut world);
    let change = RouteChange::Lane(lane);
    let answer = world.command(Command::Route { request_id: id.clone(), change });
    assert!(matches!(answer, Answer::Say(_)), "{answer:?}");
    let roles = roles_of(&mut world, json!({}));
    assert_eq!(roles, [Role::Developer, Role::Qa], "{lane:?}");
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn a_workspaces_own_way_on_after_a_refusal_does_not_pass_qa() {
    let text = include_str!("../../../lifecycles/request.yaml");
    let resume = text.lines().find(|line| line.starts_with("resume:")).expect("its resume");
    let text = text.replace(resume, "resume: answer_plan");
    let more = "\n  answer_plan:\n    role: planner\n    result: plan\n    prompt: planner_finalize\n    \
                on: {done: quick_fix, again: answer_plan, answered: closeout}\n\n  quick_fix:\n    role: developer\n    \
                result: change\n    prompt: developer_build\n    access: write\n    on: {done: closeout}\n";
    let text = format!("{}\n{more}", text.trim_end());
    let lifecycle = crate::domain::lifecycle::Lifecycle::compile(&text);
    let lifecycle = lifecycle.unwrap_or_else(|found| panic!("{found:#?}"));
    let mut world = World::new(Policy { lifecycle: Arc::new(lifecycle), ..with_routes() });
    let id = ask(&mut world, Some(Lane::Full));
    qa_refuses(&mut world);
    // Words bring it to the step at which it goes on.
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    world.do_well(&todo);
    let (request_id, text) = (id.clone(), "and in blue".to_owned());
    world.command(Command::Steer { request_id, text });
    let roles = roles_of(&mut world, json!({}));
    assert_eq!(roles.last(), Some(&Role::Qa), "{roles:?}");
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn the_same_words_with_a_longer_lane_take_the_longer_way() {
    let mut world = World::new(with_routes());
    let id = ask(&mut world, Some(Lane::Fast));
    assert_eq!(ask(&mut world, Some(Lane::Full)), id);
    assert_eq!(world.request(&id).route.lane.map(|choice| choice.lane), Some(Lane::Full));
}

const GUEST: UserId = UserId(300);

fn person(id: UserId, via: Ingress) -> Actor {
    let author =
        Author { id, name: "somebody".to_owned(), is_bot: false, server_roles: Vec::new() };
    Actor::Person { author, guild_id: Some(GuildId(1)), via }
}

fn may_ask(id: UserId) -> Policy {
    let guest = Holders { users: [id].into(), ..Holders::default() };
    let mut policy = with_routes();
    policy.rights.insert(Right::Ask, guest);
    policy
}

#[test]
fn a_route_grows_by_whoever_asked_and_shrinks_by_those_who_may_approve() {
    let mut world = World::new(may_ask(GUEST));
    let id = world.message("make it so");
    let change = |change| Command::Route { request_id: id.clone(), change };
    let by = |world: &mut World, who, via, it| {
        let answer = world.submit(Event::Command {
            actor: person(who, via),
            command: it,
            interaction: None,
        });
        match answer {
            Answer::Say(said) | Answer::Refused(said) => said.key,
            Answer::Accepted | Answer::Ignored(_) => String::new(),
        }
    };
    // Before the orchestrator has said anything, and by the menu of the card.
    let named = change(RouteChange::Lane(Lane::Quick));
    assert_eq!(by(&mut world, GUEST, Ingress::Select, named.clone()), "route.shorter_not_yours");
    assert_eq!(by(&mut world, OWNER, Ingress::Select, named), "route.lane");
    let longer = change(RouteChange::Lane(Lane::Standard));
    assert_eq!(by(&mut world, GUEST, Ingress::Select, longer.clone()), "route.not_yours");
    assert_eq!(by(&mut world, OWNER, Ingress::Slash, longer), "route.lane");
    // Once it is under way a step more, by a part of its name.
    let todo = world.todo()[0].clone();
    world.do_well(&todo);
    let todo = world.todo()[0].clone();
    world.do_well(&todo);
    assert_eq!(world.request(&id).route.current_role, Some(Role::Planner));
    let add = |word: &str| change(RouteChange::Add(word.to_owned()));
    assert_eq!(by(&mut world, OWNER, Ingress::Slash, add("paint")), "route.no_step");
    assert_eq!(by(&mut world, OWNER, Ingress::Slash, add("research")), "route.no_step");
    assert_eq!(by(&mut world, OWNER, Ingress::Slash, add("design")), "route.added");
    assert_eq!(by(&mut world, OWNER, Ingress::Slash, add("guidance")), "route.added");
    use Role::{Architect, Designer, Developer, Planner, Qa};
    let rest = roles_of(&mut world, json!(null));
    assert_eq!(rest, [Planner, Designer, Planner, Architect, Developer, Architect, Qa]);
    let late = change(RouteChange::Lane(Lane::Full));
    assert_eq!(by(&mut world, OWNER, Ingress::Slash, late), "cancel.ended");
}

#[test]
fn a_longer_way_that_is_named_at_the_end_is_gone_before_it_lands_and_drops_no_step_that_somebody_added()
 {
    use Role::{Architect, Developer, Planner, Qa};
    let mut world = World::new(with_routes());
    let id = ask(&mut world, Some(Lane::Quick));
    let change = |change| Command::Route { request_id: id.clone(), change };
    while world.request(&id).params.workflow.is_none() {
        let todo = world.todo()[0].clone();
        world.do_well(&todo);
    }
    world.command(change(RouteChange::Add("qa".to_owned())));
    // The same lane once more.
    world.command(change(RouteChange::Lane(Lane::Quick)));
    assert_eq!(roles_of(&mut world, json!(null)), [Developer, Architect, Qa]);

    for lane in [Lane::Standard, Lane::Full] {
        let mut world = World::new(with_routes());
        let id = ask(&mut world, Some(Lane::Fast));
        let is_queued = |world: &World| {
            world.state.effects.values().any(|it| matches!(it.kind, EffectKind::Merge { .. }))
        };
        while !is_queued(&world) {
            let todo = world.todo()[0].clone();
            world.do_well(&todo);
        }
        let longer = RouteChange::Lane(lane);
        world.command(Command::Route { request_id: id.clone(), change: longer });
        assert!(!is_queued(&world), "nobody has judged it");
        let rest = roles_of(&mut world, json!(null));
        assert_eq!(rest, [Architect, Qa], "{lane}");
        assert!(!rest.contains(&Planner));
        assert_eq!(world.request(&id).status, RequestStatus::Committed);
        assert_eq!(world.request(&id).work.landing_since, None);
    }

    // One that brings nobody who has not judged it changes nothing at the end.
    for lane in [Lane::Standard, Lane::Quick] {
        let mut world = World::new(with_routes());
        let id = ask(&mut world, Some(Lane::Standard));
        while !world.state.effects.values().any(|it| matches!(it.kind, EffectKind::Merge { .. })) {
            let todo = world.todo()[0].clone();
            world.do_well(&todo);
        }
        let change = RouteChange::Lane(lane);
        world.command(Command::Route { request_id: id.clone(), change });
        assert_eq!(roles_of(&mut world, json!(null)), [], "{lane}");
        assert_eq!(world.request(&id).status, RequestStatus::Committed);
    }
}

#[test]
fn a_shorter_lane_is_no_way_around_a_plan_that_is_asked_about() {
    let gates = GateTable { plan: PlanStances::All(Stance::Ask), ..policy().gates };
    let mut world = World::new(Policy { gates, ..with_routes() });
    let id = ask(&mut world, Some(Lane::Full));
    let shorter = || {
        let change = RouteChange::Lane(Lane::Quick);
        Command::Route { request_id: id.clone(), change }
    };
    let Answer::Say(said) = world.command(shorter()) else { panic!("not said") };
    assert_eq!(
        (&said.values["lane"], &said.values["wanted"]),
        (&json!("standard"), &json!("quick"))
    );
    while world.state.gates.is_empty() {
        let todo = world.todo()[0].clone();
        world.do_well(&todo);
    }
    let gate = world.state.gates.values().next().map(|it| (**it).clone()).expect("a gate");
    assert_eq!(gate.kind, GateKind::Plan);
    // Once it is accepted, what is built by it may be judged by fewer.
    world.command(press(&gate, ButtonAct::Approve));
    while world.request(&id).work.candidate.is_none() {
        let todo = world.todo()[0].clone();
        world.do_well(&todo);
    }
    let Answer::Say(said) = world.command(shorter()) else { panic!("not said") };
    assert_eq!(said.values["lane"], json!("quick"));
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn words_for_a_blocked_request_bring_no_planner_to_a_lane_without_one() {
    let mut world = World::new(with_routes());
    let id = ask(&mut world, Some(Lane::Quick));
    let mut roles = Vec::new();
    let mut stuck = true;
    loop {
        let Some(todo) = world.todo().first().cloned() else {
            if world.request(&id).status.is_terminal() {
                break;
            }
            let text = "the first one".to_owned();
            world.command(Command::Steer { request_id: id.clone(), text });
            continue;
        };
        let Todo::Run(envelope) = &todo else {
            world.do_well(&todo);
            continue;
        };
        roles.push(world.state.envelopes[envelope].target_role);
        if !std::mem::take(&mut stuck) {
            world.do_well(&todo);
            continue;
        }
        let mut said = result(Role::Developer, json!({}));
        said.status = ResultStatus::Blocked;
        "which greeting?".clone_into(&mut said.error);
        world.run(envelope, RunOutcome::Result(Arc::new(said)));
    }
    use Role::{Architect, Developer};
    assert_eq!(roles, [Developer, Developer, Architect]);
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn a_question_at_a_gate_is_the_planners_on_every_lane() {
    let gates = GateTable { commit: Stance::Ask, ..policy().gates };
    let mut world = World::new(Policy { gates, ..with_routes() });
    let id = ask(&mut world, Some(Lane::Quick));
    while world.state.gates.is_empty() {
        let todo = world.todo()[0].clone();
        world.do_well(&todo);
    }
    let gate = world.state.gates.values().next().map(|it| (**it).clone()).expect("a gate");
    let question = "why this way?".to_owned();
    world.command(Command::AskBack { gate_id: gate.gate_id, version: gate.version, question });
    assert_eq!(world.request(&id).route.current_role, Some(Role::Planner));
}

#[test]
fn criteria_that_are_taken_back_after_the_build_are_told() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let (mut plans, mut reviews) = (0, 0);
    while let Some(todo) = world.todo().first().cloned() {
        let Todo::Run(envelope) = &todo else {
            world.do_well(&todo);
            continue;
        };
        let (role, step) = {
            let envelope = &world.state.envelopes[envelope];
            (envelope.target_role, envelope.step)
        };
        let mut said = good(role, step);
        if role == Role::Planner {
            plans += 1;
            let second = if reviews == 0 { "it shouts" } else { "it whispers" };
            said.proposals.acceptance_criteria = Some(vec!["it greets".into(), second.into()]);
        }
        if step == Some(steps::REVIEW) && reviews == 0 {
            reviews += 1;
            let transition = json!({ "outcome": "reopen", "reopen_category": "scope" });
            said = result(role, json!({ "workflow_transition": transition }));
        }
        world.run(envelope, RunOutcome::Result(Arc::new(said)));
    }
    let told = world.said.iter().filter(|key| *key == "room.criteria_changed").count();
    let criteria = written(&world.request(&id).work.criteria);
    assert_eq!((plans, told, criteria), (2, 1, vec!["it greets".into(), "it whispers".into()]));
}

/// Nothing waits for the answer: who asked may take another lane, or want nothing but an answer, at the card.
#[test]
fn where_nobody_is_sure_of_the_lane_a_card_offers_the_others_and_the_work_goes_on() {
    let said = |confidence| {
        json!({
            "request_handling": { "mode": "route" },
            "request_intent": { "intent": "bug_fix", "confidence": confidence, "size": "normal" },
        })
    };
    for (confidence, is_asked) in [(95, false), (20, true)] {
        let mut world = World::new(with_routes());
        let id = world.message("hmm, that thing");
        let Some(Todo::Run(envelope)) = world.todo().first().cloned() else { panic!("no run") };
        let answer = result(Role::Orchestrator, said(confidence));
        world.run(&envelope, RunOutcome::Result(Arc::new(answer)));
        let report = world.todo()[0].clone();
        world.do_well(&report);
        let card = world.state.outgoing.values().find_map(|it| {
            let Act::Post(Post { content, menus, buttons, .. }) = &it.act else { return None };
            let is_it = content.key == "room.which_lane";
            is_it.then(|| (menus.clone(), buttons.clone()))
        });
        let lane = world.request(&id).route.lane.expect("a lane").lane;
        assert_eq!(card.is_some(), is_asked);
        let Some((menus, buttons)) = card else { continue };
        assert_eq!(menus, [Menu::Lane(LaneMenu { request_id: id.clone(), chosen: lane })]);
        assert_eq!(buttons.iter().map(|it| it.act).collect::<Vec<_>>(), [ButtonAct::Answer]);
        assert_eq!(world.request(&id).status, RequestStatus::Delegated, "it goes on");
    }
}

#[test]
fn just_answer_calls_back_whoever_works_on_it_and_the_orchestrator_answers() {
    let mut world = World::new(with_routes());
    let id = world.message("how would you make it so?");
    // The orchestrator hands it on, the planner begins, and then a person says what they meant.
    for _ in 0..2 {
        let todo = world.todo()[0].clone();
        world.do_well(&todo);
    }
    let envelope = match &world.todo()[0] {
        Todo::Run(id) => id.clone(),
        Todo::Report(_) | Todo::Effect(_) => panic!("nobody works"),
    };
    let run = world.begin_run(&envelope).expect("a run");
    let card = world.state.outgoing.values().find_map(|it| match &it.act {
        Act::Card { buttons, menu, .. } => Some((buttons.clone(), menu.clone())),
        Act::Post(_)
        | Act::Board { .. }
        | Act::Pin { .. }
        | Act::OpenRoom { .. }
        | Act::React { .. }
        | Act::Unbutton { .. }
        | Act::Envelope { .. } => None,
    });
    let (buttons, menu) = card.expect("a card");
    assert!(menu.is_some() && buttons.iter().any(|it| it.act == ButtonAct::Answer));
    let button = Button { act: ButtonAct::Answer, subject: id.to_string(), version: 0 };
    let (channel_id, message_id) = (super::world::GENERAL, crate::domain::ids::MessageId(1));
    world.submit(Event::Command {
        actor: person(OWNER, Ingress::Button),
        command: Command::Press { button, message_id, channel_id },
        interaction: None,
    });
    // Both would work in one folder: the one begins when the other is over.
    let next = world.state.envelopes.values().find(|it| it.target_role == Role::Orchestrator);
    let next = next.expect("the orchestrator is asked").relay_id.clone();
    assert!(world.begin_run(&next).is_none());
    assert!(world.state.envelopes.contains_key(&next));
    // What the planner comes to is nobody's any more; and what the orchestrator says is the answer, whatever it calls it.
    let stale = good(Role::Planner, Some(steps::DRAFT));
    world.end_run(&run, RunOutcome::Result(Arc::new(stale)));
    assert_eq!(roles_of(&mut world, json!(null)), [Role::Orchestrator]);
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Completed, "{request:#?}");
    assert!(request.work.candidate.is_none());
}

#[test]
fn a_short_lane_is_named_only_by_somebody_who_may_approve() {
    for (who, lane, is_taken) in [
        (GUEST, Lane::Fast, false),
        (GUEST, Lane::Quick, false),
        (GUEST, Lane::Full, true),
        (OWNER, Lane::Fast, true),
    ] {
        let mut world = World::new(may_ask(GUEST));
        let (text, language) = ("tidy up".to_owned(), Language::En);
        let command =
            Command::Ask { text, channel_id: None, parent_id: None, language, lane: Some(lane) };
        world.submit(Event::Command {
            actor: person(who, Ingress::Slash),
            command,
            interaction: None,
        });
        assert_eq!(world.state.requests.len(), usize::from(is_taken), "{lane}");
    }
}

#[test]
fn routes_by_which_everything_is_full_take_every_step() {
    let mut world = World::new(Policy { routes: all_steps(), ..policy() });
    world.message("make it so");
    let roles = roles_of(&mut world, said(Intent::BugFix, 99, WorkSize::Normal));
    assert_eq!(roles.len(), 7);
}
