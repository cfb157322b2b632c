//! A request on a base that is red: told before a turn, judged beside it, and landed as the operator has settled.

use std::sync::Arc;

use super::scenes::work_until;
use super::world::{GENERAL, Todo, World, evidence, good, policy, press, verdict};
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::event::Event;
use crate::domain::evidence::{BaseStanding, BaseVerdict, CheckVerdict, Evidence};
use crate::domain::gate::{GateKind, Stance};
use crate::domain::ids::RequestId;
use crate::domain::incoming::Command;
use crate::domain::outgoing::ButtonAct;
use crate::domain::policy::{GateTable, Policy};
use crate::domain::request::RequestStatus;
use crate::domain::result::{EvidenceResult, QaDecision, RoleResult};
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::test_report::{Comparison, TestNames};

fn with(red_base: Stance) -> Policy {
    let gates = GateTable { red_base, ..GateTable::default() };
    Policy { proves_base: true, gates, ..policy() }
}

fn names(all: &[&str]) -> TestNames {
    all.iter().copied().collect()
}

fn red_base() -> EffectOutcome {
    let red = names(&["t1"]);
    let verdict = BaseVerdict::Red;
    let commit = "b0".to_owned();
    EffectOutcome::BaseProven(BaseStanding { commit, verdict, red, ..BaseStanding::default() })
}

fn checked(commit: &str, compared: Comparison) -> EffectOutcome {
    let mut evidence: Evidence = evidence(commit, CheckVerdict::Failed);
    evidence.checks[0].compared = Some(compared);
    EffectOutcome::Checked(evidence)
}

/// A world in which the base is red, and the checks at each change say this beside it.
fn on_a_red_base(stance: Stance, compared: &Comparison) -> (World, RequestStatus) {
    let mut world = World::new(with(stance));
    let id = world.message("do it");
    let mut base_first = false;
    world.finish_with(|kind| {
        if let EffectKind::Base { .. } = kind {
            base_first = true;
            return Some(red_base());
        }
        let EffectKind::Checks { commit, .. } = kind else { return None };
        Some(checked(commit, compared.clone()))
    });
    assert!(base_first);
    let status = world.request(&id).status;
    (world, status)
}

#[test]
fn a_red_base_is_told_before_a_turn_is_spent() {
    let mut world = World::new(with(Stance::Ask));
    let id = world.message("do it");
    let effects: Vec<_> = world.state.effects.values().collect();
    assert!(matches!(effects[0].kind, EffectKind::Base { .. }) && world.state.envelopes.is_empty());
    let effect = effects[0].effect_id.clone();
    world.effect(&effect, red_base());
    assert_eq!(world.request(&id).work.spent.turns, 0);
    assert!(world.said.iter().any(|key| key == "room.base_red"), "{:?}", world.said);
    assert_eq!(world.state.envelopes.len(), 1, "the role has it now");
    assert_eq!(world.request(&id).work.base.unwrap().red.first, ["t1"]);
}

#[test]
fn what_was_red_before_lands_as_it_is_settled() {
    let before = Comparison { by_test: true, red_before: names(&["t1"]), ..Comparison::default() };
    let (world, status) = on_a_red_base(Stance::Allow, &before);
    assert_eq!((status, world.landed()), (RequestStatus::Committed, 1));
    let (mut world, status) = on_a_red_base(Stance::Ask, &before);
    assert_eq!((status, world.landed()), (RequestStatus::Delegated, 0));
    let gate = world.state.gates.values().next().expect("a gate").as_ref().clone();
    assert_eq!(gate.kind, GateKind::RedBase);
    world.command(press(&gate, ButtonAct::Approve));
    world.finish_well();
    assert_eq!(world.landed(), 1);
    let (world, status) = on_a_red_base(Stance::Refuse, &before);
    assert_eq!((status, world.landed()), (RequestStatus::Blocked, 0));
}

#[test]
fn what_is_newly_red_or_gone_never_lands() {
    let red_before = names(&["t1"]);
    for compared in [
        Comparison {
            broken: names(&["t2"]),
            red_before: red_before.clone(),
            ..Comparison::default()
        },
        Comparison { vanished: names(&["t3"]), red_before, ..Comparison::default() },
        Comparison::default(),
    ] {
        let (world, status) = on_a_red_base(Stance::Allow, &compared);
        assert_eq!((status, world.landed()), (RequestStatus::Blocked, 0), "{compared:?}");
    }
}

#[test]
fn nobody_looks_at_a_base_where_that_is_off_or_there_are_no_checks() {
    for policy in [policy(), Policy { check_names: Vec::new(), ..with(Stance::Ask) }] {
        let mut world = World::new(policy);
        world.message("do it");
        assert!(world.state.effects.is_empty() && !world.state.envelopes.is_empty());
    }
}

/// A request whose plan has these criteria, whose developer changes nothing, on a base where the check `tests` passes;
/// QA judges so.
/// The checks cannot be started at first, and somebody has it tried again.
fn without_a_change(criteria: &[&str], judged_as: EvidenceResult) -> (World, RequestId, usize) {
    let mut world = World::new(with(Stance::Ask));
    let id = world.message("do it");
    let (mut judged, mut starts) = (0, false);
    while let Some(todo) = world.todo().first().cloned() {
        if let Todo::Run(run) = &todo {
            let (role, step) =
                (world.state.envelopes[run].target_role, world.state.envelopes[run].step);
            let mut said = RoleResult::clone(&good(role, step));
            judged += usize::from(role == Role::Qa);
            if role == Role::Planner {
                let written = criteria.iter().map(|it| (*it).to_owned()).collect();
                said.proposals.acceptance_criteria = Some(written);
            } else if role == Role::Qa && judged_as != EvidenceResult::Pass {
                let fails = judged_as == EvidenceResult::Fail;
                let decision = if fails { QaDecision::Fail } else { QaDecision::Pass };
                said.proposals.qa_validation = Some(verdict(decision, &[("C-1", judged_as)]));
            }
            world.run(run, RunOutcome::Result(Arc::new(said)));
            continue;
        }
        let Todo::Effect(effect) = &todo else {
            world.do_well(&todo);
            continue;
        };
        let kind = &world.state.effects[effect].kind;
        if matches!(kind, EffectKind::Base { .. }) {
            let passed = vec!["tests".to_owned()];
            let (commit, verdict) = ("b0".to_owned(), BaseVerdict::Green);
            let base = BaseStanding { commit, verdict, passed, ..BaseStanding::default() };
            world.effect(effect, EffectOutcome::BaseProven(base));
        } else if matches!(kind, EffectKind::Checks { .. }) && !std::mem::replace(&mut starts, true)
        {
            world.effect(effect, EffectOutcome::failed("no such program"));
            assert_eq!(world.request(&id).status, RequestStatus::Blocked);
            world.command(Command::Retry { request_id: id.clone() });
            assert_eq!(world.request(&id).status, RequestStatus::Delegated);
        } else if matches!(kind, EffectKind::Commit { .. }) {
            world.effect(effect, EffectOutcome::NothingChanged { base: "b0".to_owned() });
        } else {
            world.do_well(&todo);
        }
    }
    (world, id, judged)
}

#[test]
fn nothing_has_to_change_where_the_check_of_every_criterion_passes_at_the_base_and_qa_agrees() {
    let bound = "(check: tests) it adds";
    let (world, id, _) = without_a_change(&[bound], EvidenceResult::Pass);
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Completed, "{request:#?}");
    assert!(request.outcome.commit_sha.is_none() && world.landed() == 0);
    assert!(world.said.contains(&"final.already_there".to_owned()));
    // The base was proven and judged as a change would have been.
    assert_eq!(request.work.evidence.as_ref().map(|it| it.commit.as_str()), Some("b0"));
    assert!(request.route.visited_roles.contains(&Role::Qa));
    assert_eq!(request.work.spent.rejected, 0);
    // What QA judges, or a check that is not configured, proves nothing; and what QA sends back has to change.
    for (criteria, judged_as) in [
        (&[bound, "it is readable"][..], EvidenceResult::Pass),
        (&[bound, "(check: lint) it is tidy"], EvidenceResult::Pass),
        (&[bound], EvidenceResult::Fail),
    ] {
        let (world, id, judged) = without_a_change(criteria, judged_as);
        let request = world.request(&id);
        let code = request.blocked.as_ref().map(|it| it.code.word());
        assert_eq!(code, Some("no_change"), "{criteria:?}: {request:#?}");
        assert_eq!(
            judged,
            usize::from(judged_as == EvidenceResult::Fail),
            "QA is asked about the same base once"
        );
    }
}

#[test]
fn a_person_decides_what_qa_leaves_open_about_a_base_that_may_have_it_already() {
    for act in [ButtonAct::Approve, ButtonAct::Reject] {
        let (mut world, id, _) =
            without_a_change(&["(check: tests) it adds"], EvidenceResult::Abstain);
        let gate = world.request(&id).work.gate_id.expect("a gate");
        let gate = world.state.gates[&gate].clone();
        assert_eq!(gate.findings.len(), 1, "{gate:#?}");
        world.command(press(&gate, act));
        let request = world.request(&id);
        if act == ButtonAct::Approve {
            assert_eq!(request.status, RequestStatus::Completed, "{request:#?}");
            assert!(world.said.contains(&"final.already_there".to_owned()));
        } else {
            let code = request.blocked.as_ref().map(|it| it.code.word());
            assert_eq!(code, Some("role_blocked"), "{request:#?}");
            // What is wrong is for whoever plans, and no card comes a second time.
            let said = format!("resume {id}: it adds, and prints nothing");
            let words = world.words(GENERAL, 90, &said);
            world.submit(Event::Message(words));
            let Todo::Run(next) = work_until(&mut world, |_, _| true) else { panic!("no run") };
            assert_eq!(world.state.envelopes[&next].target_role, Role::Planner);
        }
        assert_eq!(world.landed(), 0);
    }
}
