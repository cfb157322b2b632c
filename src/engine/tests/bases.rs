//! A request on a base that is red: told before a turn, judged beside it, and landed as the operator has settled.

use super::world::{World, evidence, policy, press};
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::evidence::{BaseStanding, BaseVerdict, CheckVerdict, Evidence};
use crate::domain::gate::{GateKind, Stance};
use crate::domain::outgoing::ButtonAct;
use crate::domain::policy::{GateTable, Policy};
use crate::domain::request::RequestStatus;
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
    EffectOutcome::BaseProven(BaseStanding { commit, verdict, red, flaky: TestNames::default() })
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
