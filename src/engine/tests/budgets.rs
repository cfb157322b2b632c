//! Money and patience: what is spent, what waits for a plan, and how a step is gone about that fails.

use std::collections::BTreeSet;

use super::scenes::{report, work_until};
use super::world::{Todo, World, crash, policy, press};
use crate::domain::block::BlockCode;
use crate::domain::budget::{Allowance, Budgets, Price, PriceTable};
use crate::domain::change::Change;
use crate::domain::config::AgentKind;
use crate::domain::event::Event;
use crate::domain::gate::{Gate, GateKind};
use crate::domain::ids::{RequestId, RunId};
use crate::domain::incoming::Command;
use crate::domain::outgoing::ButtonAct;
use crate::domain::policy::{Limits, Policy};
use crate::domain::record::AnyRecord;
use crate::domain::request::RequestStatus;
use crate::domain::role::Role;
use crate::domain::run::{Approach, FailKind, Run, RunOutcome};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::engine::why::why;
use crate::engine::{Answer, Wake};
use serde_json::json;

fn usd(usd: f64) -> Allowance {
    Allowance { usd: Some(usd), tokens: None }
}

/// A world in which each run costs a dollar.
fn costly(budgets: Budgets) -> World {
    let mut world = World::new(Policy { budgets, ..policy() });
    world.usage = Usage { input_tokens: 1_000, output_tokens: 100, cost_usd: 1.0, ..world.usage };
    world
}

fn gate(world: &World) -> Option<Gate> {
    world.state.gates.values().next().map(|gate| Gate::clone(gate))
}

fn said(world: &World, key: &str) -> usize {
    world.said.iter().filter(|said| *said == key).count()
}

/// The runs that were let begin.
fn runs(world: &World) -> Vec<Run> {
    let runs = world.log.iter().filter_map(|change| {
        let Change::Save(AnyRecord::Run(run)) = change else { return None };
        // One that is claimed is saved once more.
        run.granted.is_none().then(|| Run::clone(run))
    });
    runs.collect()
}

fn failure(kind: FailKind, until: Option<Timestamp>) -> RunOutcome {
    RunOutcome::Failed { kind, message: "no".to_owned(), until, answer: None }
}

#[test]
fn a_budget_warns_at_four_fifths_and_then_no_run_begins_before_a_person_says_so() {
    let mut world = costly(Budgets { request: usd(5.0), ..Budgets::default() });
    let id = world.message("do it");
    world.finish_well();
    assert_eq!((runs(&world).len(), said(&world, "budget.nearly")), (5, 1));
    let waits = gate(&world).expect("a gate");
    assert_eq!(
        (waits.kind, world.request(&id).status),
        (GateKind::Budget, RequestStatus::Delegated)
    );
    let question = Command::AskBack {
        gate_id: waits.gate_id.clone(),
        version: waits.version,
        question: "why?".to_owned(),
    };
    let Answer::Refused(answer) = world.command(question) else { panic!("no answer") };
    assert_eq!(answer.key, "gate.no_question");
    world.command(press(&waits, ButtonAct::Approve));
    world.finish_well();
    let request = world.request(&id);
    assert_eq!((request.status, request.work.spent.budget_raised), (RequestStatus::Committed, 1));
    let Answer::Refused(late) = world.command(press(&waits, ButtonAct::Approve)) else { panic!() };
    assert_eq!(late.key, "gate.stale");
}

#[test]
fn a_run_that_is_cut_off_does_not_begin_anew_with_nothing_left() {
    let mut world = costly(Budgets { day: usd(2.0), ..Budgets::default() });
    let id = world.message("do it");
    let envelope = world.state.envelopes.keys().next().expect("one").clone();
    let run = world.begin_run(&envelope).expect("a run");
    let usage = Usage { cost_usd: 2.5, ..Usage::default() };
    world.submit(Event::RunTakenAway { run_id: run, generation: 1, usage });
    assert!(world.state.runs.is_empty() && world.state.envelopes.is_empty());
    let waits = gate(&world).expect("a gate");
    assert_eq!((waits.kind, &waits.request_id), (GateKind::Budget, &id));
    world.command(press(&waits, ButtonAct::Approve));
    assert_eq!(world.state.envelopes.len(), 1, "it goes on");
}

#[test]
fn what_is_turned_down_stops_and_can_be_asked_again() {
    let mut world = costly(Budgets { request: usd(2.0), ..Budgets::default() });
    let id = world.message("do it");
    world.finish_well();
    world.command(press(&gate(&world).expect("a gate"), ButtonAct::Reject));
    let blocked = world.request(&id).blocked.expect("it stops");
    assert_eq!(blocked.code.word(), "budget_spent");
    world.command(Command::Retry { request_id: id.clone() });
    world.finish_well();
    let again = gate(&world).expect("asked once more");
    assert_eq!((again.kind, runs(&world).len()), (GateKind::Budget, 2));
}

#[test]
fn a_days_budget_is_granted_for_all_that_wait_or_is_new_tomorrow() {
    let mut world = costly(Budgets { day: usd(2.0), ..Budgets::default() });
    let (one, two) = (world.message("do it"), world.message("do something else"));
    world.finish_well();
    assert_eq!((world.state.gates.len(), runs(&world).len()), (2, 2));
    world.command(press(&gate(&world).expect("a gate"), ButtonAct::Approve));
    assert_eq!(world.state.gates.len(), 0, "both go on");
    world.finish_well();
    assert_eq!((world.state.gates.len(), runs(&world).len()), (2, 4));
    let day = |world: &World| Timestamp::from_millis(world.clock).date_in(chrono_tz::Asia::Seoul);
    let today = day(&world);
    assert!(world.wait_until_due());
    assert_ne!(day(&world), today);
    assert_eq!(world.state.gates.len(), 0, "a new day, a new budget");
    world.finish_well();
    assert_eq!(runs(&world).len(), 6);
    for id in [one, two] {
        assert_eq!(world.request(&id).status, RequestStatus::Delegated);
    }
}

#[test]
fn a_days_budget_is_granted_for_all_roles() {
    let mut world = costly(Budgets { day: usd(1.0), ..Budgets::default() });
    for text in ["do it", "do something else"] {
        world.message(text);
        world.finish_well();
    }
    let waits: BTreeSet<_> =
        world.state.requests.values().map(|it| it.route.current_role).collect();
    assert_eq!((world.state.gates.len(), waits.len()), (2, 2), "of two roles");
    world.command(press(&gate(&world).expect("a gate"), ButtonAct::Approve));
    assert_eq!(world.state.gates.len(), 0, "both go on");
}

#[test]
fn what_was_granted_meanwhile_is_gone_on_with() {
    let mut world = costly(Budgets { day: usd(9.0), ..Budgets::default() });
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    report(&mut world, &todo, failure(FailKind::Budget, None));
    let request = world.request(&id);
    assert_eq!((request.status, request.blocked), (RequestStatus::Delegated, None));
}

#[test]
fn a_role_has_its_own_budget_and_a_run_the_narrowest() {
    let roles = [(Role::Developer, usd(0.5))].into();
    let mut world = costly(Budgets { roles, day: usd(50.0), run: usd(3.0), ..Budgets::default() });
    world.message("do it");
    world.finish_well();
    let all = runs(&world);
    let developer = all.iter().find(|run| run.role == Role::Developer).expect("it built");
    assert_eq!(developer.allowance.usd, Some(0.5));
    let planner = all.iter().find(|run| run.role == Role::Planner).expect("it planned");
    assert_eq!(planner.allowance.usd, Some(3.0));
    world.message("do another thing");
    world.finish_well();
    let waits = gate(&world).expect("the developer has nothing left today");
    assert_eq!(waits.kind, GateKind::Budget);
}

#[test]
fn an_agent_that_spent_what_it_was_given_stops_for_a_person() {
    let mut world = costly(Budgets { run: usd(3.0), ..Budgets::default() });
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    report(&mut world, &todo, failure(FailKind::Budget, None));
    assert_eq!(world.request(&id).blocked.expect("it stops").code.word(), "run_budget");
}

#[test]
fn what_runs_under_way_have_spent_together_is_asked_about() {
    let mut world = costly(Budgets { day: usd(9.0), ..Budgets::default() });
    let ids = ["do it", "do another thing"].map(|text| world.message(text));
    let [first, second] = ids.clone().map(|id| {
        let mut all = world.state.envelopes.values();
        let its = all.find(|it| it.envelope.request_id == id).expect("its first run");
        let its = its.relay_id.clone();
        world.begin_run(&its).expect("it begins")
    });
    let shared = |world: &World, id: &RunId| {
        let shared = world.state.runs[id].shared_budgets.clone();
        (shared.left.into_values().collect::<Vec<_>>(), shared.beside)
    };
    assert_eq!(shared(&world, &first), (vec![usd(9.0)], [].into()));
    assert_eq!(shared(&world, &second), (vec![usd(9.0)], [(first.clone(), 1)].into()));

    // Its proxy knows what the other spends, and the books do not yet.
    world.end_run(&second, failure(FailKind::Budget, None));
    let is_report = |todo: &Todo| matches!(todo, Todo::Report(_));
    let told = world.todo().into_iter().find(is_report).expect("a report");
    world.do_well(&told);
    let asked = gate(&world).expect("a person is asked");
    assert_eq!((asked.kind, &asked.request_id), (GateKind::Budget, &ids[1]));
    world.command(press(&asked, ButtonAct::Approve));
    assert_eq!(world.request(&ids[1]).status, RequestStatus::Delegated);
}

#[test]
fn what_was_spent_since_a_run_began_is_taken_off_when_the_team_is_started_again() {
    let mut world = costly(Budgets { day: usd(9.0), ..Budgets::default() });
    let [run, other] = ["do it", "do another thing"].map(|text| {
        let id = world.message(text);
        let its = world.state.envelopes.values().find(|it| it.envelope.request_id == id);
        let its = its.expect("its first run").relay_id.clone();
        world.begin_run(&its).expect("it begins")
    });
    let left = |world: &World| -> Vec<_> {
        world.state.runs[&run].shared_budgets.left.values().copied().collect()
    };
    world.end_run(&other, crash());
    let told = world.todo().into_iter().find(|todo| matches!(todo, Todo::Report(_)));
    world.do_well(&told.expect("a report"));
    assert_eq!(left(&world), [usd(9.0)]);
    world.restart();
    assert_eq!(left(&world), [usd(9.0 - world.usage.cost_usd)]);
    assert!(world.usage.cost_usd > 0.0);
}

#[test]
fn what_a_model_costs_is_known_from_the_table_where_the_agent_does_not_say() {
    let price = Price { input: 2.0, cached: None, written: None, output: 10.0 };
    let prices = PriceTable([("*".to_owned(), price)].into());
    let mut world = World::new(Policy { prices, ..policy() });
    world.usage = Usage { input_tokens: 1_000_000, output_tokens: 100_000, ..world.usage };
    let id = world.message("hello");
    let todo = work_until(&mut world, |_, _| true);
    report(&mut world, &todo, crash());
    assert!((world.request(&id).work.usage.cost_usd - 3.0).abs() < 1e-9);
    assert!((world.state.spending.today.used.cost_usd - 3.0).abs() < 1e-9);
}

#[test]
fn a_plan_that_is_used_up_is_waited_for_and_counts_as_no_attempt() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    let until = Timestamp::from_millis(world.clock + 3_600_000);
    report(&mut world, &todo, failure(FailKind::Quota, Some(until)));
    let request = world.request(&id);
    assert_eq!((request.status, request.work.spent.step_failures), (RequestStatus::Delegated, 0));
    assert!(world.todo().is_empty(), "nothing runs before the plan is back");
    let other = world.message("do something else");
    world.finish_well();
    assert_eq!(world.request(&other).work.spent.turns, 0, "the same agent is not tried in vain");
    let waits: Vec<_> = world.state.envelopes.values().filter_map(|it| it.not_before).collect();
    assert_eq!(waits, [until, until]);
    assert!(world.wait_for_an_envelope());
    world.finish_well();
    for id in [id, other] {
        assert_eq!(world.request(&id).status, RequestStatus::Committed);
    }
}

#[test]
fn a_wait_for_a_plan_or_for_a_person_keeps_why_the_step_is_done_again() {
    let mut world = costly(Budgets { request: usd(2.0), ..Budgets::default() });
    let id = world.message("hello");
    let told = |world: &World| {
        let envelope = world.state.envelopes.values().next().expect("an envelope");
        envelope.envelope.body.clone()
    };
    let todo = work_until(&mut world, |_, _| true);
    report(&mut world, &todo, crash());
    let why = told(&world);
    assert!(why.contains("it died"), "{why}");
    let until = Timestamp::from_millis(world.clock + 3_600_000);
    let todo = work_until(&mut world, |_, _| true);
    report(&mut world, &todo, failure(FailKind::Quota, Some(until)));
    assert_eq!(told(&world), why);
    assert!(world.wait_for_an_envelope());
    let todo = work_until(&mut world, |_, _| true);
    world.do_well(&todo);
    world.command(press(&gate(&world).expect("the budget is used up"), ButtonAct::Approve));
    assert_eq!((told(&world), world.request(&id).work.spent.budget_raised), (why, 1));
}

#[test]
fn a_rate_limit_is_waited_for_so_often_and_so_long_and_then_a_person_is_asked() {
    for until in [None, Some(20), Some(600)] {
        let mut world = World::new(policy());
        let id = world.message("hello");
        let most = Limits::default().rate_limit_retries;
        for attempt in 1..=most {
            let at =
                until.map(|seconds: i64| Timestamp::from_millis(world.clock + seconds * 1_000));
            let todo = work_until(&mut world, |_, _| true);
            report(&mut world, &todo, failure(FailKind::RateLimit, at));
            let spent = world.request(&id).work.spent;
            let counted = (spent.rate_limits, spent.step_failures, spent.counted_turns());
            assert_eq!(counted, (attempt, 0, 0), "{until:?}");
            let waits = world.state.envelopes.values().find_map(|it| it.not_before);
            assert!(waits.is_some_and(|waits| at.is_none_or(|at| waits == at)), "{until:?}");
            assert!(world.wait_for_an_envelope());
        }
        let todo = work_until(&mut world, |_, _| true);
        report(&mut world, &todo, failure(FailKind::RateLimit, None));
        assert_eq!(world.request(&id).blocked.expect("it stops").code.word(), "rate_limited");
    }
    let mut world = World::new(policy());
    let id = world.message("hello");
    let longest = i64::try_from(Limits::default().rate_limit_wait_seconds).unwrap();
    let until = Timestamp::from_millis(world.clock + (longest + 60) * 1_000);
    let todo = work_until(&mut world, |_, _| true);
    report(&mut world, &todo, failure(FailKind::RateLimit, Some(until)));
    assert_eq!(world.request(&id).blocked.expect("it stops").code.word(), "rate_limited");
}

#[test]
fn an_outage_is_waited_for_and_then_a_person_is_asked() {
    for kind in [FailKind::Overloaded, FailKind::Transport] {
        let mut world = World::new(policy());
        let id = world.message("hello");
        let mut times = 0;
        while world.request(&id).status == RequestStatus::Delegated {
            let Some(todo) = world.todo().first().cloned() else {
                assert!(world.wait_for_an_envelope());
                continue;
            };
            report(&mut world, &todo, failure(kind, None));
            times += usize::from(matches!(todo, Todo::Run(_)));
            let spent = world.request(&id).work.spent;
            assert_eq!(spent.counted_turns() > 0, spent.step_failures > 0, "{kind:?}");
        }
        // Eight that do not count, and then as many as the step has.
        assert_eq!(times, 11, "{kind:?}");
        assert_eq!(world.request(&id).blocked.expect("it stops").code.word(), "step_failed");
    }
}

#[test]
fn a_plan_that_never_comes_back_is_a_persons_business() {
    let mut world = World::new(policy());
    let id = world.message("hello");
    while world.request(&id).status == RequestStatus::Delegated {
        let until = Timestamp::from_millis(world.clock + 5_000);
        let todo = world.todo().first().cloned();
        match todo {
            Some(todo) => report(&mut world, &todo, failure(FailKind::Quota, Some(until))),
            None => assert!(world.wait_for_an_envelope()),
        }
    }
    assert_eq!(world.request(&id).blocked.expect("it stops").code.word(), "agent_quota");
}

#[test]
fn a_step_that_fails_is_hinted_at_then_gone_about_another_way_and_then_a_person_is_asked() {
    let mut world = World::new(policy());
    let id = world.message("hello");
    world.session = Some("s1".to_owned());
    for kind in [FailKind::Stuck, FailKind::Stuck, FailKind::Stuck] {
        let todo = work_until(&mut world, |_, _| true);
        report(&mut world, &todo, failure(kind, None));
    }
    let ways: Vec<Approach> = runs(&world).iter().map(|run| run.approach).collect();
    assert_eq!(ways, [Approach::Usual, Approach::Hinted, Approach::Different]);
    assert_eq!(world.request(&id).blocked.expect("a person is asked").code.word(), "step_failed");
}

#[test]
fn a_full_conversation_is_left_at_once_and_a_busy_service_changes_nothing() {
    for (kind, way) in
        [(FailKind::Context, Approach::Different), (FailKind::Overloaded, Approach::Usual)]
    {
        let mut world = World::new(policy());
        let _: RequestId = world.message("hello");
        let todo = work_until(&mut world, |_, _| true);
        report(&mut world, &todo, failure(kind, None));
        world.wait_for_an_envelope();
        let todo = work_until(&mut world, |_, _| true);
        report(&mut world, &todo, crash());
        assert_eq!(runs(&world).last().map(|run| run.approach), Some(way), "{kind:?}");
    }
}

#[test]
fn after_a_refusal_fewer_runs_of_the_agent_begin_until_one_is_over_or_an_hour_has_passed() {
    let mut world = World::new(policy());
    let asked: Vec<RequestId> =
        (0..4).map(|number| world.message(&format!("do {number}"))).collect();
    let waiting = |world: &World| {
        let todo = world.todo().into_iter();
        todo.filter_map(|it| match it {
            Todo::Run(id) => {
                Some(id).filter(|id| !world.state.runs.values().any(|run| run.envelope_id == *id))
            }
            Todo::Report(_) | Todo::Effect(_) => None,
        })
        .collect::<Vec<_>>()
    };
    let three: Vec<RunId> =
        waiting(&world)[..3].iter().filter_map(|id| world.begin_run(id)).collect();
    assert_eq!(waiting(&world).len(), 1);
    world.submit(Event::RateLimited { run_id: three[0].clone(), until: None });
    world.submit(Event::RateLimited { run_id: three[0].clone(), until: None });
    assert_eq!(world.state.spending.plan_limits[&AgentKind::Rehearsal].runs, 2, "told once");
    let last = world.state.envelopes.values().find(|it| it.envelope.request_id == asked[3]);
    let last = last.expect("it waits").relay_id.clone();
    assert_eq!(waiting(&world), []);
    let now = Timestamp::from_millis(world.clock);
    let line = why(&world.state, &world.policy, &world.request(&asked[3]), now);
    assert_eq!(line.values["full"], json!({"agent": "rehearsal", "runs": 2}));
    assert!(world.begin_run(&last).is_none(), "a worker that comes too late is sent away");
    assert!(
        world.state.envelopes.contains_key(&last) && world.request(&asked[3]).blocked.is_none()
    );

    // Two are at work still: it goes on waiting. Then one.
    for (run, begins) in three[..2].iter().zip([false, true]) {
        world.wakes.clear();
        world.end_run(run, failure(FailKind::Crash, None));
        assert!(world.wakes.contains(&Wake::Role(Role::Orchestrator)), "whoever waits is woken");
        assert_eq!(waiting(&world).contains(&last), begins, "{:?}", world.state.spending);
    }
    assert!(world.begin_run(&last).is_some());
    world.message("do one more");
    let until = world.state.spending.plan_limits[&AgentKind::Rehearsal].until;
    world.clock = until.millis() - 1;
    assert_eq!(waiting(&world), []);
    world.clock = until.millis();
    assert!(!waiting(&world).is_empty(), "more are tried again");

    // Where a person said how many, it is so many.
    world.clock = now.millis();
    world.policy.limits.follows_plan = false;
    assert!(!waiting(&world).is_empty());
}

#[test]
fn a_run_that_a_rate_limit_ends_shows_what_the_plan_bears() {
    let mut world = World::new(policy());
    world.message("hello");
    let todo = work_until(&mut world, |_, _| true);
    report(&mut world, &todo, failure(FailKind::RateLimit, None));
    assert_eq!(world.state.spending.plan_limits[&AgentKind::Rehearsal].runs, 1);
}

#[test]
fn a_full_disk_counts_as_no_attempt_and_is_waited_for_so_often() {
    let mut world = World::new(policy());
    let id = world.message("hello");
    let mut waited = Vec::new();
    while world.request(&id).status == RequestStatus::Delegated {
        let todo = work_until(&mut world, |_, _| true);
        report(&mut world, &todo, failure(FailKind::NoSpace, None));
        let next = world.state.envelopes.values().find_map(|it| it.not_before);
        waited.extend(next.map(|at| (at.millis() - world.clock) / 1_000));
        world.wait_for_an_envelope();
    }
    assert_eq!(waited[..6], [5, 10, 20, 40, 80, 160]);
    let request = world.request(&id);
    assert_eq!(request.blocked.as_ref().unwrap().code, BlockCode::StepFailed);
    assert_eq!((said(&world, "room.no_space"), request.work.spent.counted_turns()), (1, 3));
}
