//! Random histories of a request: whatever roles, checks, git and people do, and whenever the process dies, it
//! ends or waits for a named person, within its budgets.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::world::{
    GENERAL, Move, World, crash, evidence, good, good_effect, make_test, policy, press, question,
    result,
};
use crate::domain::block::BlockCode;
use crate::domain::budget::{Allowance, Budgets};
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::event::Event;
use crate::domain::evidence::CheckVerdict;
use crate::domain::gate::{GateKind, Stance};
use crate::domain::ids::{EffectId, EnvelopeId, MessageId, RequestId};
use crate::domain::incoming::{Command, RouteChange};
use crate::domain::lifecycle::StepName;
use crate::domain::outgoing::{Button, ButtonAct};
use crate::domain::plan_decision::{GivenAnswer, NumberedAnswer};
use crate::domain::policy::{GateTable, PlanStances, Policy};
use crate::domain::request::RequestStatus;
use crate::domain::result::{Proposals, ProposedItem, ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::routes::{Lane, Routes};
use crate::domain::run::{FailKind, RunOutcome};
use crate::domain::time::Timestamp;
use crate::engine::lifecycle::steps;

/// A small seeded generator (splitmix64), so that a failing seed can be run again.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % sides as u64).expect("small")
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

const OUTCOMES: [&str; 6] = ["", "continue", "advance", "reopen", "block", "complete"];
const CATEGORIES: [&str; 6] = ["", "scope", "ux", "architecture", "implementation", "verification"];
const STATUSES: [ResultStatus; 3] =
    [ResultStatus::Completed, ResultStatus::Blocked, ResultStatus::Failed];

pub(super) fn random_result(
    dice: &mut Dice,
    role: Role,
    step: Option<StepName>,
    seen: &mut BTreeSet<(StepName, usize, usize)>,
) -> RoleResult {
    if dice.roll(2) > 0 {
        return good(role, step);
    }
    let (outcome, status) = (dice.roll(OUTCOMES.len()), dice.roll(STATUSES.len()));
    let target = match dice.roll(3) {
        0 => serde_json::to_value(dice.pick(&steps::of_roles())).expect("a step"),
        1 => json!(dice.pick(&["designer_advisory", "architect_advisory"])),
        _ => json!(""),
    };
    // Advice is asked for only by a planner that says so; without help it would be rare.
    let advice = *dice.pick(&["designer_advisory", "architect_advisory"]);
    let planning = matches!(step, Some(steps::DRAFT | steps::FINALIZE));
    let ask = planning && dice.roll(2) == 0;
    let decision = dice.pick(&[Some("pass"), Some("fail"), Some("blocked"), None]);
    let mut result = result(
        role,
        json!({
            "workflow_transition": {
                "outcome": if ask { "advance" } else { OUTCOMES[outcome] },
                "target_phase": "",
                "target_step": if ask { json!(advice) } else { target },
                "reopen_category": dice.pick(&CATEGORIES), "reason": "because",
                "unresolved_items": [], "finalize_phase": dice.roll(2) == 0,
            },
            // A verdict that cannot be read is none.
            "qa_validation": decision.map(|decision| json!({
                "methodology": "evidence_matrix", "decision": decision,
                "evidence_matrix": [{ "criterion": "C-1", "source": "s", "evidence": "e",
                                      "result": dice.pick(&["pass", "fail", "not_checked"]) }],
                "passed_checks": [], "findings": [], "residual_risks": [], "not_checked": [],
            })),
        }),
    );
    if let Some(step) = step
        && !ask
    {
        seen.insert((step, outcome, status));
    }
    if planning && dice.roll(3) == 0 {
        let number = dice.roll(3);
        let question = json!({
            "question": format!("Which {number}?"), "options": ["one", "other"], "assumption": "one",
        });
        let questions = json!({ "questions": [question] });
        result.proposals.questions = Proposals::read(Some(&questions)).0.questions;
    }
    if planning && dice.roll(4) == 0 {
        result.proposals.backlog_items = two_items(dice);
    }
    result.status = if ask { ResultStatus::Completed } else { STATUSES[status] };
    result
}

/// A plan of two items, of which the second may wait for the first.
fn two_items(dice: &mut Dice) -> Option<Vec<ProposedItem>> {
    let number = dice.roll(1_000);
    let title = |part: &str| format!("{part} part {number}");
    let after = if dice.roll(2) == 0 { vec![title("first")] } else { Vec::new() };
    let item = |part: &str, after: &[String]| {
        json!({
            "title": title(part), "summary": "", "kind": "feature", "scope": title(part),
            "acceptance_criteria": ["it is there"], "depends_on": after,
        })
    };
    let items = json!({ "backlog_items": [item("first", &[]), item("second", &after)] });
    Proposals::read(Some(&items)).0.backlog_items
}

pub(super) fn random_effect(dice: &mut Dice, world: &mut World, id: &EffectId) -> EffectOutcome {
    let fresh = format!("c{}-{}", id, world.clock);
    let kind = world.state.effects[id].kind.clone();
    // What is on the branch is told as that, whatever else went wrong.
    if dice.roll(12) == 0 && !world.has_landed(id) {
        return EffectOutcome::failed("no luck");
    }
    match &kind {
        EffectKind::Commit { .. } if dice.roll(6) == 0 => {
            EffectOutcome::NothingChanged { base: "b0".to_owned() }
        }
        EffectKind::Commit { .. } if dice.roll(12) == 0 => {
            EffectOutcome::Unsolved { paths: vec!["a.py".to_owned()] }
        }
        EffectKind::Checks { request_id, .. } if dice.roll(8) == 0 => {
            let question = question(if dice.roll(2) == 0 { "one" } else { "two" });
            // What was agreed to is not asked again.
            match world.request(request_id).work.preparation {
                Some(agreed) if agreed == question.digest => good_effect(&kind, &fresh),
                Some(_) | None => EffectOutcome::PreparationAsked(question),
            }
        }
        EffectKind::Checks { commit, .. } => {
            let verdict = *dice.pick(&[
                CheckVerdict::Passed,
                CheckVerdict::Passed,
                CheckVerdict::Failed,
                CheckVerdict::TimedOut,
                CheckVerdict::CutOff,
            ]);
            EffectOutcome::Checked(evidence(commit, verdict))
        }
        EffectKind::UseChecks { .. } => {
            world.policy.check_names = policy().check_names;
            EffectOutcome::ChecksChanged
        }
        EffectKind::Merge { .. } if !world.has_landed(id) && dice.roll(4) == 0 => {
            EffectOutcome::PersonEdits { paths: vec!["a.py".to_owned()] }
        }
        EffectKind::Merge { .. } if !world.has_landed(id) && dice.roll(5) == 0 => {
            EffectOutcome::ChecksChanged
        }
        EffectKind::Rebase { onto: Some(_), .. } if dice.roll(3) == 0 => EffectOutcome::Clash,
        EffectKind::Rebase { onto: None, .. } if world.restless || dice.roll(3) == 0 => {
            EffectOutcome::Conflict(world.conflict(id))
        }
        EffectKind::Rebase { onto: None, .. } if dice.roll(3) == 0 => {
            EffectOutcome::AlreadyOnBranch { head: world.head() }
        }
        EffectKind::Commit { .. }
        | EffectKind::Base { .. }
        | EffectKind::Merge { .. }
        | EffectKind::Rebase { .. }
        | EffectKind::Action { .. }
        | EffectKind::Release { .. }
        | EffectKind::Baseline { .. }
        | EffectKind::Inspect { .. }
        | EffectKind::Archive { .. }
        | EffectKind::Publish { .. }
        | EffectKind::Discover { .. } => {
            world.by_git(id, &fresh).unwrap_or_else(|| good_effect(&kind, &fresh))
        }
    }
}

/// A history whose number is told where it fails.
pub(super) fn named<T>(seed: u64, history: impl FnOnce() -> T) -> T {
    let history = std::panic::AssertUnwindSafe(history);
    std::panic::catch_unwind(history).unwrap_or_else(|_| panic!("the history of seed {seed}"))
}

/// What may come at any moment, whatever is under way: the process dies, a run is lost, the clock, a person at
/// the project's branch. Whether something did.
pub(super) fn interrupt(world: &mut World, dice: &mut Dice) -> bool {
    match dice.roll(60) {
        0 | 1 => world.restart(),
        2 | 5 | 6 => world.person_commits(),
        3 => {
            world.wait_until_due();
        }
        4 => {
            let agents = world.agents();
            if agents.is_empty() {
                return false;
            }
            let lives = dice.roll(2) == 0;
            world.lose_run(dice.pick(&agents), lives);
        }
        _ => return false,
    }
    true
}

/// Begins a run, or finds the agent of an earlier start.
pub(super) fn begin_run(world: &mut World, dice: &mut Dice, envelope: &EnvelopeId) {
    if dice.roll(2) == 0 && world.adopt_run(envelope).is_some() {
        return;
    }
    world.begin_run(envelope);
}

/// One history with plans that are asked about or not. Returns the steps that it took.
fn history(seed: u64, plans: Stance, seen: &mut BTreeSet<(StepName, usize, usize)>) -> usize {
    let mut dice = Dice(seed);
    let budgets = match dice.roll(3) {
        0 => Budgets { request: usd(1.0), day: usd(2.0), ..Budgets::default() },
        1 => Budgets { roles: [(Role::Planner, usd(0.5))].into(), ..Budgets::default() },
        _ => Budgets::default(),
    };
    let check_names = if dice.roll(4) > 0 { policy().check_names } else { Vec::new() };
    let gates = GateTable { plan: PlanStances::All(plans), ..GateTable::default() };
    let routes = if dice.roll(2) == 0 { Arc::clone(Routes::built_in()) } else { policy().routes };
    let mut world =
        World::new(Policy { check_names, proves_base: true, budgets, gates, routes, ..policy() });
    world.policy.shown_checks = if dice.roll(2) == 0 { make_test() } else { Default::default() };
    world.usage.cost_usd = 0.3;
    world.restless = dice.roll(8) == 0;
    live(&mut world, &mut dice, seed, seen)
}

/// The life of one request, until it ends or nobody helps any more. Returns the steps that it took.
pub(super) fn live(
    world: &mut World,
    dice: &mut Dice,
    seed: u64,
    seen: &mut BTreeSet<(StepName, usize, usize)>,
) -> usize {
    let words = *dice.pick(&["do it", "add a command that greets people"]);
    let id = world.message(words);
    live_on(world, &id, dice, seed, seen)
}

/// The life of a request whose change is on its way to the branch, and meets what people wrote there meanwhile.
fn conflict(seed: u64, seen: &mut BTreeSet<(StepName, usize, usize)>) -> usize {
    let mut world = World::new(policy());
    let id = world.message("do it");
    while !world.state.effects.values().any(|it| !it.kind.lands().is_empty()) {
        let todo = world.todo().first().cloned().expect("something to do");
        world.do_well(&todo);
    }
    world.restless = true;
    world.person_commits();
    live_on(&mut world, &id, &mut Dice(seed), seed, seen)
}

fn live_on(
    world: &mut World,
    id: &RequestId,
    dice: &mut Dice,
    seed: u64,
    seen: &mut BTreeSet<(StepName, usize, usize)>,
) -> usize {
    let id = id.clone();
    let mut steps = 0;
    let mut helped = 0;
    loop {
        steps += 1;
        assert!(steps < 4_000, "seed {seed}: it never ends");
        let moves = world.moves();
        if moves.is_empty() && world.wait_for_an_envelope() {
            continue;
        }
        if moves.is_empty() {
            let request = world.request(&id);
            if request.status.is_terminal() {
                break;
            }
            // It waits for a person; now and then one comes.
            if helped >= 3 {
                break;
            }
            helped += 1;
            help(world, dice, &id, request.status);
            continue;
        }
        match dice.roll(60) {
            0 => {
                world.command(Command::Cancel { request_id: id.clone() });
                continue;
            }
            1 => {
                let text = "and one more thing".to_owned();
                world.command(Command::Steer { request_id: id.clone(), text });
                continue;
            }
            2 => {
                let change = RouteChange::Lane(*dice.pick(&Lane::ALL));
                world.command(Command::Route { request_id: id.clone(), change });
                continue;
            }
            3 => {
                let open = world.state.requests.get(&id).filter(|it| !it.status.is_terminal());
                if let Some(room) = open.and_then(|it| it.conversation.thread()) {
                    let text = *dice.pick(&["stop", "stop", "go on"]);
                    let words = world.words(room, 1_000_000 + steps as u64, text);
                    world.submit(Event::Message(words));
                    continue;
                }
            }
            _ => {}
        }
        if interrupt(world, dice) {
            continue;
        }
        if world.restless && dice.roll(4) == 0 {
            world.person_commits();
        }
        match dice.pick(&moves).clone() {
            Move::BeginRun(envelope) => begin_run(world, dice, &envelope),
            Move::EndRun(run) => {
                let outcome = match dice.roll(14) {
                    0 => crash(),
                    1 => RunOutcome::Failed {
                        kind: *dice.pick(&[FailKind::Quota, FailKind::RateLimit, FailKind::Budget]),
                        message: "empty".to_owned(),
                        until: (dice.roll(2) == 0)
                            .then(|| Timestamp::from_millis(world.clock + 7_200_000)),
                        answer: None,
                    },
                    _ => {
                        let (role, step) = (world.agent(&run).role, world.agent(&run).step);
                        RunOutcome::Result(Arc::new(random_result(dice, role, step, seen)))
                    }
                };
                world.end_run(&run, outcome);
            }
            Move::Report(relay_id) => {
                world.submit(Event::ReportReady { relay_id });
            }
            Move::BeginEffect(effect) => {
                world.begin_effect(&effect);
            }
            Move::Land(effect) => {
                let asked =
                    world.state.requests.get(&id).and_then(|it| it.params.open_end().cloned());
                assert_eq!(asked, None, "seed {seed}: it lands, and nobody has answered");
                world.land(&effect);
            }
            Move::EndEffect(effect) => {
                let outcome = random_effect(dice, world, &effect);
                world.end_effect(&effect, outcome);
            }
        }
        if dice.roll(3) == 0 {
            world.deliver();
        }
    }
    world.deliver();
    if world.request(&id).status.is_terminal() {
        assert!(world.state.requests.is_empty(), "seed {seed}: it stays in memory");
        assert!(world.state.effects.is_empty() && world.state.gates.is_empty());
        let finals = world
            .said
            .iter()
            .filter(|key| key.starts_with("final.") || key.starts_with("sprint."))
            .count();
        assert_eq!(finals, 1, "seed {seed}: {:?}", world.said);
    }
    steps
}

fn usd(usd: f64) -> Allowance {
    Allowance { usd: Some(usd), tokens: None }
}

fn help(world: &mut World, dice: &mut Dice, id: &RequestId, status: RequestStatus) {
    if let Some(gate) = world.state.gates.values().next().cloned() {
        let command = match *dice.pick(&["yes", "no", "ask", "nobody"]) {
            "yes" if gate.shown_checks.is_some() && dice.roll(2) == 0 => {
                press(&gate, ButtonAct::UseChecks)
            }
            "yes" => press(&gate, ButtonAct::Approve),
            "no" => press(&gate, ButtonAct::Reject),
            "ask" if gate.kind == GateKind::Budget => press(&gate, ButtonAct::Reject),
            "ask" => Command::AskBack {
                gate_id: gate.gate_id.clone(),
                version: gate.version,
                question: "why?".to_owned(),
            },
            _ => {
                while world.state.gates.contains_key(&gate.gate_id) && world.wait_until_due() {}
                return;
            }
        };
        world.command(command);
        return;
    }
    assert_eq!(status, RequestStatus::Blocked);
    let code = world.request(id).blocked.map(|it| it.code);
    let is_asked = code == Some(BlockCode::Questions);
    let request_id = id.clone();
    if code == Some(BlockCode::Parts) && dice.roll(3) > 0 {
        let version = world.request(id).params.parts_version();
        let button = Button { act: ButtonAct::Together, subject: id.to_string(), version };
        let (message_id, channel_id) = (MessageId(1), GENERAL);
        world.command(Command::Press { button, message_id, channel_id });
        return;
    }
    if world.request(id).has_given_up() && dice.roll(2) == 0 {
        world.command(match dice.roll(6) {
            0 => Command::Skip { request_id, reason: "not worth it".to_owned() },
            1 => Command::Pause { request_id },
            2 | 3 => Command::Split { request_id },
            _ => Command::Steer { request_id, text: "another way".to_owned() },
        });
        return;
    }
    world.command(match dice.roll(3) {
        0 if is_asked => {
            let answer = NumberedAnswer { number: 1, answer: GivenAnswer::Option(2) };
            Command::AnswerQuestions { request_id, answers: vec![answer], rest: true, card: None }
        }
        1 if is_asked => Command::Steer { request_id, text: "the other one".to_owned() },
        _ => Command::Retry { request_id },
    });
}

#[test]
fn every_history_ends_or_waits_for_a_person() {
    let mut seen = BTreeSet::new();
    let rounds: u64 =
        std::env::var("TEAMS_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_500);
    let mut steps = 0;
    for seed in 0..rounds {
        steps += named(seed, || history(seed, Stance::Allow, &mut seen));
    }
    for seed in rounds..rounds + rounds / 5 {
        steps += named(seed, || history(seed, Stance::Ask, &mut seen));
    }
    for seed in 0..rounds / 5 {
        steps += named(seed, || conflict(seed, &mut seen));
    }
    let mut missing = Vec::new();
    for step in steps::of_roles() {
        for (outcome, word) in OUTCOMES.into_iter().enumerate() {
            for (status, name) in STATUSES.into_iter().enumerate() {
                if !seen.contains(&(step, outcome, status)) {
                    missing.push((step, word, name.as_str()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{rounds} histories, {steps} steps, never visited: {missing:?}");
}
