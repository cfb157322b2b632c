//! Lifecycles that nobody wrote: what holds in every lifecycle holds in any that compiles.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use super::histories::{Dice, live, named};
use super::world::{World, all_steps, policy};
use crate::domain::lifecycle::Lifecycle;
use crate::domain::policy::Policy;
use crate::domain::routes::{Lane, LaneSteps, Routes};

/// A definition with some of the usual steps, up to three reviews, and ways of which some lead anywhere.
fn definition(dice: &mut Dice) -> String {
    let reviews = dice.roll(4);
    let mut names = Vec::new();
    if dice.roll(2) == 0 {
        names.push("research_initial".to_owned());
    }
    names.push("planner_finalize".to_owned());
    for name in ["designer_advisory", "architect_guidance"] {
        if dice.roll(2) == 0 {
            names.push(name.to_owned());
        }
    }
    names.push("developer_build".to_owned());
    names.extend((1..=reviews).map(|number| format!("review_{number}")));
    if dice.roll(4) > 0 {
        names.push("qa_validation".to_owned());
    }
    names.push("closeout".to_owned());
    let mut text = format!(
        "lifecycle: request\nbegin: {}\nbegin_todo: planner_finalize\nresume: planner_finalize\n\
         attempts: {}\ntimeout: 5m\n\
         counters: {{turns: {}, planner_contract: 2, one: {}, two: {}}}\n\
         reopen: {{counter: one, scope: planner_finalize, ux: planner_finalize, \
         architecture: planner_finalize, implementation: developer_build, \
         verification: developer_build}}\nsteps:\n",
        names[0],
        1 + dice.roll(3),
        10 + dice.roll(40),
        1 + dice.roll(5),
        1 + dice.roll(5),
    );
    for (at, name) in names.iter().enumerate() {
        // The next one that does not only give advice.
        let next = names[at + 1..].iter().find(|name| name.as_str() != "designer_advisory");
        let next = next.map_or("closeout", String::as_str);
        let mut to = |usual: &str| match dice.roll(12) {
            0 => dice.pick(&names).clone(),
            _ => usual.to_owned(),
        };
        let (next, build) = (to(next), to("developer_build"));
        let again = match dice.roll(12) {
            0 => build.clone(),
            1 => format!("{{to: {build}, charge: two, else: {}}}", dice.pick(&names)),
            _ => format!("{{to: {build}, charge: {}}}", dice.pick(&["one", "two"])),
        };
        let optional = match name.as_str() {
            "planner_finalize" | "designer_advisory" | "developer_build" | "closeout" => "",
            _ if dice.roll(2) == 0 => ", only_if: [route]",
            _ => "",
        };
        let body = match name.as_str() {
            "research_initial" => format!("role: research, result: research, on: {{done: {next}}}"),
            "designer_advisory" => {
                "role: designer, result: advice, on: {done: planner_finalize}".to_owned()
            }
            "planner_finalize" => {
                let advised = names.iter().any(|name| name == "designer_advisory");
                let ask = ", ask_designer: {to: designer_advisory, charge: one}";
                format!(
                    "role: planner, result: plan, on: {{done: {next}, again: planner_finalize, \
                     answered: closeout{}}}",
                    if advised { ask } else { "" }
                )
            }
            "architect_guidance" => {
                format!("role: architect, result: guidance, on: {{done: {next}}}")
            }
            "developer_build" => {
                format!("role: developer, result: change, access: write, on: {{done: {next}}}")
            }
            "qa_validation" => format!(
                "role: qa, result: verdict, needs: [commit, evidence], on: {{pass: {next}, red: \
                 {again}, no_change: {build}}}"
            ),
            "closeout" => format!(
                "runtime: land, needs: [commit, evidence], on: {{red: {again}, conflict: {again}, \
                 no_change: {build}}}"
            ),
            _ => format!(
                "role: architect, result: review, needs: [commit], on: {{pass: {next}, revise: \
                 {again}, no_change: {build}}}"
            ),
        };
        let _ = writeln!(text, "  {name}: {{{body}{optional}}}");
    }
    text
}

/// Routes that leave out some of the steps that a lifecycle may do without.
fn routes(dice: &mut Dice, lifecycle: &Lifecycle) -> Arc<Routes> {
    let mut routes = Routes::clone(&all_steps());
    let taken = routes.steps(Lane::Full, lifecycle).into_iter().filter(|_| dice.roll(2) == 0);
    let taken = LaneSteps::These(taken.collect());
    routes.lanes.insert(Lane::Standard, taken.clone());
    routes.lanes.insert(Lane::Full, taken);
    Arc::new(routes)
}

#[test]
fn whatever_compiles_ends_proven_or_waits_for_a_person() {
    let rounds: u64 =
        std::env::var("TEAMS_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    let (mut refused, mut lived, mut landed) = (0, 0, 0);
    let mut reasons = BTreeSet::new();
    for seed in 0..rounds {
        let mut dice = Dice(seed);
        let lifecycle = match Lifecycle::compile(&definition(&mut dice)) {
            Ok(lifecycle) => Arc::new(lifecycle),
            Err(problems) => {
                refused += 1;
                reasons.extend(problems.into_iter().map(|problem| problem.message));
                continue;
            }
        };
        lived += 1;
        let check_names = if dice.roll(4) > 0 { policy().check_names } else { Vec::new() };
        let routes = routes(&mut dice, &lifecycle);
        let policy = Policy { lifecycle, check_names, routes, ..policy() };
        named(seed, || {
            let mut world = World::new(policy.clone());
            live(&mut world, &mut dice, seed, &mut BTreeSet::new());
            // And where every role does well.
            let mut world = World::new(policy);
            world.message("do it");
            world.finish_well();
            landed += world.landed();
        });
    }
    // Both happen, and what is refused is refused for each of these reasons.
    assert!(refused > 100 && lived > 100 && landed > 20, "{refused} {lived} {landed}");
    for reason in ["nothing leads here", "this loop has no end", "judged again"] {
        assert!(reasons.iter().any(|it| it.contains(reason)), "{reason}: {reasons:#?}");
    }
}
