//! A change that alters what its dependencies are made of: nothing of it is run before somebody has agreed.

use super::world::{World, policy, press, question};
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::gate::{GateKind, Stance};
use crate::domain::ids::RequestId;
use crate::domain::outgoing::ButtonAct;
use crate::domain::policy::{GateTable, Policy};
use crate::domain::request::RequestStatus;

/// A world with a request whose checks ask first, and how often they were asked to run.
fn asks(stance: Stance) -> (World, RequestId, usize) {
    let gates = GateTable { prepare: stance, ..GateTable::default() };
    let mut world = World::new(Policy { gates, ..policy() });
    let id = world.message("do it");
    let times = goes_on(&mut world, &id);
    (world, id, times)
}

/// Goes on as long as nobody is asked; checks run where the question was agreed to.
fn goes_on(world: &mut World, id: &RequestId) -> usize {
    let mut times = 0;
    let agreed = world.request(id).work.preparation;
    world.finish_with(|kind| {
        let EffectKind::Checks { .. } = kind else { return None };
        times += 1;
        let is_agreed = agreed.is_some() || times > 1;
        (!is_agreed).then(|| EffectOutcome::PreparationAsked(question("one")))
    });
    times
}

#[test]
fn what_decides_about_dependencies_is_prepared_as_it_is_settled() {
    let (world, _, times) = asks(Stance::Allow);
    assert_eq!((world.landed(), times), (1, 2), "the checks run once they may");
    let (world, id, times) = asks(Stance::Refuse);
    assert_eq!((world.request(&id).status, times), (RequestStatus::Completed, 1));
    assert!(world.said.contains(&"final.on_side_branch".to_owned()));

    let (mut world, id, _) = asks(Stance::Ask);
    let gate = world.state.gates.values().next().expect("a gate").as_ref().clone();
    assert_eq!((gate.kind, gate.artifact.as_str()), (GateKind::Prepare, "one"));
    assert!(world.said.contains(&"gate.prepare".to_owned()), "{:?}", world.said);
    world.command(press(&gate, ButtonAct::Approve));
    assert_eq!(world.request(&id).work.preparation.as_deref(), Some("one"));
    goes_on(&mut world, &id);
    assert_eq!(world.landed(), 1);

    let (mut world, id, _) = asks(Stance::Ask);
    let gate = world.state.gates.values().next().expect("a gate").as_ref().clone();
    world.command(press(&gate, ButtonAct::Reject));
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
    assert_eq!(world.landed(), 0);
}
