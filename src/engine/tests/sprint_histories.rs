//! Random histories of sprints: whatever roles, checks, git, the clock and people do, backlog, todos and
//! sprint agree after every step ([`crate::engine::sprint::consistent`], asked by the world), every sprint
//! ends, and nothing is done twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use super::histories::{Dice, begin_run, interrupt, named, random_effect, random_result};
use super::sprints::kickoff;
use super::world::{Move, World, crash, policy, press, result};
use crate::domain::change::Change;
use crate::domain::config::CutoffTime;
use crate::domain::effect::{EffectKind, EffectOutcome, Inspection};
use crate::domain::event::Event;
use crate::domain::ids::ItemId;
use crate::domain::incoming::Command;
use crate::domain::item::{ItemSource, ItemStatus};
use crate::domain::modes::{SprintMode, StartMode};
use crate::domain::outgoing::ButtonAct;
use crate::domain::policy::{Policy, SprintPolicy};
use crate::domain::record::AnyRecord;
use crate::domain::request::RequestStatus;
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::sprint::{CloseoutStatus, SprintStatus, TodoStatus, WrapUp};

/// What was visited over all histories.
#[derive(Default)]
struct Seen {
    sprints: BTreeSet<SprintStatus>,
    todos: BTreeSet<TodoStatus>,
    items: BTreeSet<ItemStatus>,
    closeouts: BTreeSet<CloseoutStatus>,
    wrap_ups: BTreeSet<WrapUp>,
    /// Times that something came while a commit was on its way to the branch.
    landings_met: usize,
}

impl Seen {
    fn look(&mut self, world: &World) {
        for change in &world.log {
            if let Change::Save(AnyRecord::Sprint(sprint)) = change {
                self.sprints.insert(sprint.status);
                self.todos.extend(sprint.work.todos.iter().map(|todo| todo.progress.status));
                self.closeouts.extend(sprint.closing.status);
                self.wrap_ups.extend(sprint.closing.wrap_up);
            } else if let Change::Save(AnyRecord::Backlog(item)) = change {
                self.items.insert(item.status);
            }
        }
    }
}

fn random_policy(dice: &mut Dice) -> Policy {
    let modes = [SprintMode::Hybrid, SprintMode::Rolling, SprintMode::WallClock];
    Policy {
        check_names: if dice.roll(4) > 0 { policy().check_names } else { Vec::new() },
        sprint: SprintPolicy {
            mode: *dice.pick(&modes),
            start_mode: *dice.pick(&[StartMode::Auto, StartMode::Auto, StartMode::ManualDaily]),
            wip_limit: *dice.pick(&[1, 1, 2, 3]),
            cutoff: CutoffTime::try_from("22:00".to_owned()).ok(),
            research: dice.roll(3) == 0,
            ..SprintPolicy::default()
        },
        ..policy()
    }
}

fn person(world: &mut World, dice: &mut Dice) {
    let command = match dice.roll(10) {
        0 => kickoff(),
        9 => {
            let gates: Vec<_> = world.state.gates.values().cloned().collect();
            if gates.is_empty() {
                return;
            }
            let acts = [ButtonAct::Approve, ButtonAct::Reject];
            press(dice.pick(&gates).as_ref(), *dice.pick(&acts))
        }
        1 => Command::SprintStop { now: dice.roll(2) == 0 },
        2 => Command::SprintRestart,
        3 => {
            let title = dice.pick(&["alpha", "beta", "gamma", "delta"]);
            let payload = json!({ "title": title, "scope": format!("do {title}") });
            Command::BacklogMerge { payload, source: ItemSource::User }
        }
        4 => {
            let items: Vec<_> = world.state.backlog.keys().cloned().collect();
            if items.is_empty() {
                return;
            }
            let status = dice.pick(&["pending", "blocked", "dropped", "done", "selected"]);
            let payload = json!({ "backlog_id": dice.pick(&items), "status": status });
            Command::BacklogMerge { payload, source: ItemSource::User }
        }
        choice => {
            let want = |status| if choice < 7 { status == RequestStatus::Blocked } else { true };
            let ids: Vec<_> = world
                .state
                .requests
                .values()
                .filter(|request| want(request.status))
                .map(|request| request.request_id.clone())
                .collect();
            if ids.is_empty() {
                return;
            }
            let request_id = dice.pick(&ids).clone();
            let has_given_up = world.request(&request_id).has_given_up();
            match dice.roll(8) {
                0 if has_given_up => {
                    Command::Skip { request_id, reason: "not worth it".to_owned() }
                }
                1 if has_given_up => Command::Pause { request_id },
                2..=5 if has_given_up => Command::Split { request_id },
                _ if choice == 8 => Command::Cancel { request_id },
                _ => Command::Retry { request_id },
            }
        }
    };
    world.command(command);
}

fn inspected(dice: &mut Dice) -> EffectOutcome {
    let status = *dice.pick(&[
        CloseoutStatus::Verified,
        CloseoutStatus::Verified,
        CloseoutStatus::NoNewCommits,
        CloseoutStatus::NoRepo,
        CloseoutStatus::WarningMissingSprintTag,
    ]);
    let theirs = dice.roll(3) == 0;
    EffectOutcome::Inspected(Inspection {
        status,
        commits: Vec::new(),
        uncommitted_paths: if theirs { vec!["left.txt".to_owned()] } else { Vec::new() },
        message: String::new(),
    })
}

fn step(world: &mut World, dice: &mut Dice, next: &Move) {
    match next {
        Move::BeginRun(envelope) => begin_run(world, dice, envelope),
        Move::EndRun(id) => {
            let run = world.agent(id).clone();
            let request = world.request(&run.request_id);
            let outcome = match (request.duty(), dice.roll(10)) {
                (_, 0) => crash(),
                (Some(_), 1) => RunOutcome::Result(Arc::new(result(run.role, json!({})))),
                // Half of the todos' runs as well, so that many come as far as the branch.
                (Some(_), _) | (None, 1..=5) => {
                    let result = world.good_result(&run.request_id, run.role, run.step);
                    RunOutcome::Result(Arc::new(result))
                }
                (None, _) => {
                    let mut seen = BTreeSet::new();
                    let mut said = random_result(dice, run.role, run.step, &mut seen);
                    if run.role == Role::Planner {
                        said.artifacts = vec!["shared_workspace/sprints/s/spec.md".to_owned()];
                    }
                    RunOutcome::Result(Arc::new(said))
                }
            };
            world.end_run(id, outcome);
        }
        Move::Report(relay_id) => {
            world.submit(Event::ReportReady { relay_id: relay_id.clone() });
        }
        Move::BeginEffect(effect) => {
            world.begin_effect(effect);
        }
        Move::Land(effect) => world.land(effect),
        Move::EndEffect(effect) => {
            let inspects = matches!(world.state.effects[effect].kind, EffectKind::Inspect { .. });
            let outcome = if inspects && dice.roll(6) > 0 {
                inspected(dice)
            } else {
                random_effect(dice, world, effect)
            };
            world.end_effect(effect, outcome);
        }
    }
}

/// Nothing is done twice: an item is delivered at most once.
fn delivered_once(world: &World, seed: u64) {
    let mut done: BTreeMap<ItemId, usize> = BTreeMap::new();
    let mut before: BTreeMap<ItemId, ItemStatus> = BTreeMap::new();
    for change in &world.log {
        if let Change::Save(AnyRecord::Backlog(item)) = change {
            let old = before.insert(item.backlog_id.clone(), item.status);
            if item.status == ItemStatus::Done && old != Some(ItemStatus::Done) {
                *done.entry(item.backlog_id.clone()).or_insert(0) += 1;
            }
        }
    }
    assert!(done.values().all(|times| *times == 1), "seed {seed}: {done:?}");
}

fn history(seed: u64, seen: &mut Seen) {
    let mut dice = Dice(seed);
    let mut world = World::new(random_policy(&mut dice));
    world.command(kickoff());
    for _ in 0..300 {
        let lands = world.lands();
        let commanded = dice.roll(14) == 0;
        if commanded {
            person(&mut world, &mut dice);
        }
        let interrupted = interrupt(&mut world, &mut dice);
        seen.landings_met += usize::from(lands && (commanded || interrupted));
        let moves = world.moves();
        if moves.is_empty() {
            if dice.roll(3) == 0 {
                person(&mut world, &mut dice);
            }
            world.wait_for_an_envelope();
            continue;
        }
        let next = dice.pick(&moves).clone();
        step(&mut world, &mut dice, &next);
        if dice.roll(3) == 0 {
            world.deliver();
        }
    }
    // From here on everything goes well: whatever the sprint had come to, it ends.
    world.command(Command::SprintStop { now: true });
    for _ in 0..800 {
        let gate = world.state.gates.values().next().cloned();
        if let Some(gate) = gate {
            world.command(press(&gate, ButtonAct::Approve));
        }
        let Some(next) = world.moves().first().cloned() else { break };
        world.move_well(&next);
        if world.state.scheduler.active_sprint_id.is_none() {
            break;
        }
    }
    let stuck =
        world.state.active_sprint().filter(|sprint| sprint.closing.wrap_up == Some(WrapUp::Now));
    assert!(stuck.is_none(), "seed {seed}: {stuck:#?}");
    delivered_once(&world, seed);
    seen.look(&world);
}

#[test]
fn every_sprint_ends_and_everything_agrees_after_every_step() {
    let rounds: u64 =
        std::env::var("TEAMS_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(120);
    let mut seen = Seen::default();
    for seed in 0..rounds {
        named(seed, || history(seed, &mut seen));
    }
    assert_eq!(seen.sprints.len(), SprintStatus::ALL.len(), "{:?}", seen.sprints);
    // What the team could not do waits for a person: todos that have failed, and items that carry those on, are of
    // older builds.
    assert_eq!(seen.todos.len(), TodoStatus::ALL.len() - 1, "{:?}", seen.todos);
    assert!(!seen.todos.contains(&TodoStatus::Failed));
    assert!(!seen.items.contains(&ItemStatus::CarriedOver));
    assert_eq!(seen.wrap_ups.len(), WrapUp::ALL.len(), "{:?}", seen.wrap_ups);
    assert_eq!(seen.items.len(), ItemStatus::ALL.len() - 1, "{:?}", seen.items);
    assert!(seen.landings_met > 0, "nothing met a commit on its way to the branch");
    // The others are words of older files.
    assert!(seen.closeouts.len() >= 7, "{:?}", seen.closeouts);
}
