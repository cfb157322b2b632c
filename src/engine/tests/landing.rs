//! The queue to the branch: several requests, people who commit meanwhile, withdrawals and restarts, over a branch
//! that knows where it stands.

use std::collections::BTreeMap;

use super::histories::Dice;
use super::world::{GENERAL, Todo, World, candidate, evidence, good_effect, policy};
use crate::domain::conflict::Conflict;
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::event::Event;
use crate::domain::evidence::{Candidate, CheckVerdict};
use crate::domain::ids::{EffectId, RequestId};
use crate::domain::incoming::Command;
use crate::domain::request::RequestStatus;
use crate::domain::time::Timestamp;
use crate::engine::{Answer, place, why};

/// The branch, and what each request's worktree grew from.
#[derive(Default)]
struct Branch {
    head: String,
    landed: Vec<String>,
    bases: BTreeMap<RequestId, String>,
    commits: usize,
    rebases: usize,
}

impl Branch {
    fn fresh(&mut self, word: &str) -> String {
        self.commits += 1;
        format!("{word}{}", self.commits)
    }

    fn by_a_person(&mut self) {
        self.head = self.fresh("p");
    }

    fn grown(&mut self, id: &RequestId) -> Candidate {
        let base = self.bases.entry(id.clone()).or_insert_with(|| self.head.clone()).clone();
        Candidate { base, ..candidate(&self.fresh("c")) }
    }

    /// What comes of an effect, which is done whole or not at all.
    fn outcome(&mut self, world: &World, dice: &mut Dice, kind: &EffectKind) -> EffectOutcome {
        match kind {
            EffectKind::Commit { request_id, .. } => {
                EffectOutcome::Committed(self.grown(request_id))
            }
            EffectKind::Checks { commit, .. } => {
                let verdict = match dice.roll(20) {
                    0 => CheckVerdict::Failed,
                    1 => CheckVerdict::CutOff,
                    _ => CheckVerdict::Passed,
                };
                EffectOutcome::Checked(evidence(commit, verdict))
            }
            EffectKind::Merge { request_id, commit } => {
                let request = &world.state.requests[request_id];
                let candidate = request.work.candidate.as_ref().expect("a candidate");
                assert_eq!(&candidate.commit, commit);
                if candidate.base != self.head {
                    return EffectOutcome::BranchMoved { head: self.head.clone() };
                }
                assert!(!request.params.unread_edit, "what lands is not what is asked for now");
                let proof = request.work.evidence.as_ref().expect("a proof");
                assert!(proof.is_green() && proof.commit == *commit, "it lands unproven");
                self.head.clone_from(commit);
                self.landed.push(commit.clone());
                EffectOutcome::Merged { commit: commit.clone(), behind: None, elsewhere: None }
            }
            EffectKind::Rebase { request_id, commit } => {
                self.rebases += 1;
                let before = self.bases.insert(request_id.clone(), self.head.clone());
                if dice.roll(8) > 0 {
                    return EffectOutcome::Rebased(self.grown(request_id));
                }
                EffectOutcome::Conflict(Conflict {
                    head: self.head.clone(),
                    commit: commit.clone(),
                    base: before.unwrap_or_default(),
                    paths: vec!["a.py".to_owned()],
                })
            }
            EffectKind::Base { .. }
            | EffectKind::Action { .. }
            | EffectKind::Release { .. }
            | EffectKind::Baseline { .. }
            | EffectKind::Inspect { .. }
            | EffectKind::Archive { .. }
            | EffectKind::Publish { .. }
            | EffectKind::Discover { .. } => good_effect(kind, "c0"),
        }
    }
}

fn asked(world: &mut World, number: usize) -> Vec<RequestId> {
    (0..number).map(|number| world.message(&format!("do the thing {number}"))).collect()
}

/// One history of several requests. What an effect did is told at some later time.
fn history(seed: u64) {
    let mut dice = Dice(seed);
    let mut world = World::new(policy());
    let number = 2 + dice.roll(5);
    let ids = asked(&mut world, number);
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    let mut done: Vec<(EffectId, EffectOutcome)> = Vec::new();
    let mut helped = 0;
    for step in 0.. {
        assert!(step < 20_000, "seed {seed}: it never ends");
        let todo: Vec<Todo> = world
            .todo()
            .into_iter()
            .filter(|todo| {
                let waits = |id| done.iter().any(|(other, _)| other == id);
                !matches!(todo, Todo::Effect(id) if waits(id))
            })
            .collect();
        match dice.roll(100) {
            0..3 => branch.by_a_person(),
            3 => {
                let request_id = dice.pick(&ids).clone();
                world.command(Command::Cancel { request_id });
            }
            7 => {
                let serves = world.policy.serves.iter().copied().collect::<Vec<_>>();
                world.submit(Event::Started { announce: false, serves });
            }
            4..6 => {
                let request = world.request(dice.pick(&ids));
                if let Some(first) = request.conversation.reply_route.message_id {
                    let text = format!("do it so: {step}");
                    let words = world.words(GENERAL, first.0, &text);
                    world.submit(Event::MessageEdited(words));
                }
            }
            6..40 if !done.is_empty() => {
                let (effect_id, outcome) = done.swap_remove(dice.roll(done.len()));
                world.submit(Event::EffectFinished { effect_id, outcome: Box::new(outcome) });
            }
            _ if todo.is_empty() && done.is_empty() => {
                if world.wait_for_an_envelope() {
                    continue;
                }
                let blocked: Vec<RequestId> = ids
                    .iter()
                    .filter(|id| world.request(id).status == RequestStatus::Blocked)
                    .cloned()
                    .collect();
                if blocked.is_empty() || helped > 5 {
                    break;
                }
                helped += 1;
                let request_id = dice.pick(&blocked).clone();
                world.command(Command::Retry { request_id });
            }
            _ if todo.is_empty() => {}
            _ => match dice.pick(&todo).clone() {
                Todo::Effect(id) => {
                    let kind = world.state.effects[&id].kind.clone();
                    let started = Event::EffectStarting {
                        effect_id: id.clone(),
                        pre_state: serde_json::Value::Null,
                    };
                    if world.submit(started) == Answer::Accepted {
                        let outcome = branch.outcome(&world, &mut dice, &kind);
                        done.push((id, outcome));
                    }
                }
                other @ (Todo::Run(_) | Todo::Report(_)) => world.do_well(&other),
            },
        }
    }
    let committed =
        ids.iter().filter(|id| world.request(id).status == RequestStatus::Committed).count();
    assert_eq!(committed, branch.landed.len(), "seed {seed}: {:?}", branch.landed);
    for id in &ids {
        let request = world.request(id);
        assert!(
            request.status.is_terminal() || request.status == RequestStatus::Blocked,
            "seed {seed}: {request:#?}"
        );
    }
}

#[test]
fn whoever_commits_withdraws_or_restarts_meanwhile_one_lands_at_a_time_and_proven() {
    for seed in 0..120 {
        history(seed);
    }
}

#[test]
fn a_branch_that_moves_a_hundred_times_is_followed_a_hundred_times() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let mut moves = 100;
    world.finish_with(|kind| {
        let moved = matches!(kind, EffectKind::Merge { .. }) && moves > 0;
        moved.then(|| {
            moves -= 1;
            EffectOutcome::BranchMoved { head: format!("h{moves}") }
        })
    });
    let request = world.request(&id);
    assert_eq!((request.status, request.work.spent.rebases), (RequestStatus::Committed, 100));
}

#[test]
fn ten_at_once_land_one_after_the_other_and_each_knows_its_place() {
    let mut world = World::new(policy());
    let ids = asked(&mut world, 10);
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    let lands = |kind: &EffectKind| matches!(kind, EffectKind::Merge { .. });
    // Each is built, judged and proven on the same head.
    while let Some(todo) = world
        .todo()
        .into_iter()
        .find(|todo| !matches!(todo, Todo::Effect(id) if lands(&world.state.effects[id].kind)))
    {
        match &todo {
            Todo::Effect(id) => {
                let kind = world.state.effects[id].kind.clone();
                let outcome = branch.outcome(&world, &mut Dice(2), &kind);
                let outcome = match (kind, outcome) {
                    (EffectKind::Checks { commit, .. }, _) => {
                        EffectOutcome::Checked(evidence(&commit, CheckVerdict::Passed))
                    }
                    (_, outcome) => outcome,
                };
                world.effect(id, outcome);
            }
            Todo::Run(_) | Todo::Report(_) => world.do_well(&todo),
        }
    }
    let mut places: Vec<usize> = ids.iter().filter_map(|id| place(&world.state, id)).collect();
    places.sort_unstable();
    assert_eq!(places, (1..=10).collect::<Vec<_>>());
    let (order, now) = (by_place(&world, &ids), Timestamp::from_millis(world.clock));
    for (at, id) in order.iter().enumerate() {
        let told = why::why(&world.state, &world.policy, &world.state.requests[id], now);
        let key = if at == 0 { "why.effect" } else { "why.landing" };
        assert_eq!(told.key, key);
        if at > 0 {
            assert_eq!(told.values["place"], at + 1);
        }
    }
    // The second one gives up its place, and so does nobody else.
    world.command(Command::Cancel { request_id: order[1].clone() });
    assert_eq!(place(&world.state, &order[2]), Some(2));
    let mut landed = Vec::new();
    while let Some(Todo::Effect(id)) =
        world.todo().into_iter().find(|todo| matches!(todo, Todo::Effect(_)))
    {
        let kind = world.state.effects[&id].kind.clone();
        let outcome = match &kind {
            EffectKind::Rebase { request_id, .. } => {
                branch.rebases += 1;
                branch.bases.insert(request_id.clone(), branch.head.clone());
                EffectOutcome::Rebased(branch.grown(request_id))
            }
            EffectKind::Checks { commit, .. } => {
                EffectOutcome::Checked(evidence(commit, CheckVerdict::Passed))
            }
            EffectKind::Commit { .. }
            | EffectKind::Base { .. }
            | EffectKind::Merge { .. }
            | EffectKind::Action { .. }
            | EffectKind::Release { .. }
            | EffectKind::Baseline { .. }
            | EffectKind::Inspect { .. }
            | EffectKind::Archive { .. }
            | EffectKind::Publish { .. }
            | EffectKind::Discover { .. } => branch.outcome(&world, &mut Dice(1), &kind),
        };
        if let (EffectKind::Merge { request_id, .. }, EffectOutcome::Merged { .. }) =
            (&kind, &outcome)
        {
            landed.push(request_id.clone());
        }
        world.effect(&id, outcome);
    }
    let mut expected = order;
    expected.remove(1);
    assert_eq!(landed, expected, "in the order in which they came");
    // The first one stood on the head; each of the others is composed anew exactly once.
    assert_eq!(branch.rebases, 8);
}

fn by_place(world: &World, ids: &[RequestId]) -> Vec<RequestId> {
    let mut order = ids.to_vec();
    order.sort_by_key(|id| place(&world.state, id));
    order
}
