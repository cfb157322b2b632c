//! The train to the branch: several requests, people who commit meanwhile, withdrawals and restarts, over a branch that
//! knows where it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use super::histories::Dice;
use super::world::{GENERAL, Todo, World, candidate, evidence, good_effect, policy, press, result};
use crate::domain::block::BlockCode;
use crate::domain::conflict::Conflict;
use crate::domain::effect::{EffectKind, EffectOutcome, GitObstacle, LandingNotes, ProofMode};
use crate::domain::event::Event;
use crate::domain::evidence::{Candidate, CheckVerdict};
use crate::domain::gate::Stance;
use crate::domain::ids::{EffectId, RequestId};
use crate::domain::incoming::Command;
use crate::domain::outgoing::ButtonAct;
use crate::domain::policy::{GateTable, Limits, Policy, Prove, TrainPolicy};
use crate::domain::request::{Car, Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::time::Timestamp;
use crate::engine::{Answer, board, expected, place, why};

/// The branch, and what each request's worktree grew from.
#[derive(Default)]
struct Branch {
    head: String,
    landed: Vec<String>,
    bases: BTreeMap<RequestId, String>,
    commits: usize,
    rebases: usize,
    /// What each commit was made of: a request's change on another commit.
    made: BTreeMap<String, (RequestId, String)>,
    /// How often each request was passed by later ones, since it joined the queue.
    passed: BTreeMap<(RequestId, Timestamp), usize>,
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
        let commit = self.fresh("c");
        self.made.insert(commit.clone(), (id.clone(), base.clone()));
        Candidate { base, ..candidate(&commit) }
    }

    /// The requests whose changes a commit has, the newest first.
    fn members(&self, commit: &str) -> Vec<RequestId> {
        let mut all = Vec::new();
        let mut at = commit;
        while let Some((id, base)) = self.made.get(at) {
            all.push(id.clone());
            at = base;
        }
        all
    }

    /// While a change waits in the queue for nothing but its turn, later ones land before it once at most.
    fn nobody_is_passed_twice(&mut self, world: &World, cars: &[Car]) {
        let joined = |id: &RequestId| world.state.requests[id].work.landing_since;
        let last = cars.iter().filter_map(|car| joined(&car.request_id)).max();
        for (id, request) in &world.state.requests {
            let Some(since) = request.work.landing_since else { continue };
            if Some(since) < last && cars.iter().all(|car| car.request_id != *id) {
                let count = self.passed.entry((id.clone(), since)).or_default();
                *count += 1;
                assert_eq!(*count, 1, "{id} is passed again");
            }
        }
    }

    /// What comes of composing and proving, where nothing is in the way.
    fn well(&mut self, kind: &EffectKind) -> EffectOutcome {
        let EffectKind::Rebase { request_id, onto, .. } = kind else {
            return good_effect(kind, "c0");
        };
        self.rebases += 1;
        let base = onto.as_ref().map_or(&self.head, |car| &car.commit).clone();
        self.bases.insert(request_id.clone(), base);
        EffectOutcome::Rebased(self.grown(request_id))
    }

    /// What comes of an effect, which is done whole or not at all.
    fn outcome(&mut self, world: &World, dice: &mut Dice, kind: &EffectKind) -> EffectOutcome {
        match kind {
            EffectKind::Commit { request_id, .. } => {
                EffectOutcome::Committed(self.grown(request_id))
            }
            EffectKind::Checks { commit, .. } => {
                let verdict = match dice.roll(20) {
                    2 => return EffectOutcome::failed("no room on the disk"),
                    0 => CheckVerdict::Failed,
                    1 => CheckVerdict::CutOff,
                    _ => CheckVerdict::Passed,
                };
                EffectOutcome::Checked(evidence(commit, verdict))
            }
            EffectKind::Merge { commit, .. } => {
                let cars = kind.lands();
                let requests = cars.iter().map(|car| &world.state.requests[&car.request_id]);
                let mut at = self.head.clone();
                for (car, request) in cars.iter().zip(requests) {
                    let candidate = request.work.candidate.as_ref().expect("a candidate");
                    assert_eq!(candidate.commit, car.commit);
                    if candidate.base != at {
                        assert_eq!(at, self.head, "the train is one chain");
                        return EffectOutcome::BranchMoved { head: self.head.clone() };
                    }
                    at.clone_from(&car.commit);
                    assert!(!request.params.unread_edit, "what lands is not what is asked for now");
                    let proof = request.work.evidence.as_ref();
                    let proven = proof.is_some_and(|it| it.is_green() && it.commit == car.commit);
                    let inner = world.policy.train.prove == Prove::Tip && car.commit != *commit;
                    assert!(proven || inner, "it lands unproven");
                }
                match dice.roll(24) {
                    0 => return EffectOutcome::PersonEdits { paths: vec!["a.py".to_owned()] },
                    1 => return EffectOutcome::failed("a file could not be read"),
                    _ => {}
                }
                self.nobody_is_passed_twice(world, &cars);
                self.head.clone_from(commit);
                self.landed.extend(cars.into_iter().map(|car| car.commit));
                EffectOutcome::Merged { commit: commit.clone(), notes: LandingNotes::default() }
            }
            EffectKind::Rebase { .. } if dice.roll(24) == 0 => {
                EffectOutcome::failed("an object is missing")
            }
            EffectKind::Rebase { onto: Some(_), .. } if dice.roll(8) == 0 => EffectOutcome::Clash,
            EffectKind::Rebase { request_id, commit, onto } => {
                self.rebases += 1;
                let base = onto.as_ref().map_or(&self.head, |car| &car.commit).clone();
                let before = self.bases.insert(request_id.clone(), base);
                if onto.is_some() || dice.roll(8) > 0 {
                    return EffectOutcome::Rebased(self.grown(request_id));
                }
                EffectOutcome::Conflict(Conflict {
                    head: self.head.clone(),
                    commit: commit.clone(),
                    base: before.unwrap_or_default(),
                    paths: vec!["a.py".to_owned()],
                    ..Conflict::default()
                })
            }
            EffectKind::Base { .. }
            | EffectKind::UseChecks { .. }
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

/// Does well whatever there is to do, but for effects that wait.
fn do_all_but(world: &mut World, branch: &mut Branch, waits: impl Fn(&EffectKind) -> bool) {
    while let Some(todo) = world
        .todo()
        .into_iter()
        .find(|todo| !matches!(todo, Todo::Effect(id) if waits(&world.state.effects[id].kind)))
    {
        let Todo::Effect(id) = &todo else {
            world.do_well(&todo);
            continue;
        };
        let kind = world.state.effects[id].kind.clone();
        let outcome = match matches!(kind, EffectKind::Commit { .. }) {
            true => branch.outcome(world, &mut Dice(2), &kind),
            false => branch.well(&kind),
        };
        world.effect(id, outcome);
    }
}

fn asked(world: &mut World, number: usize) -> Vec<RequestId> {
    (0..number).map(|number| world.message(&format!("do the thing {number}"))).collect()
}

/// One history of several requests. What an effect did is told at some later time.
fn history(seed: u64) {
    let mut dice = Dice(seed);
    let prove = *dice.pick(&[Prove::Each, Prove::Tip]);
    let train = TrainPolicy { prove, batch: 1 + dice.roll(8) };
    let commit = if dice.roll(4) == 0 { Stance::Ask } else { Stance::Allow };
    let gates = GateTable { commit, ..policy().gates };
    let mut world = World::new(Policy { train, gates, ..policy() });
    let number = 2 + dice.roll(5);
    let ids = asked(&mut world, number);
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    let mut done: Vec<(EffectId, EffectOutcome)> = Vec::new();
    let mut helped = 0;
    let mut by_a_person: BTreeSet<RequestId> = BTreeSet::new();
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
                by_a_person.insert(request_id.clone());
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
            8..10 if !world.state.gates.is_empty() => {
                let gates: Vec<_> = world.state.gates.values().map(|it| (**it).clone()).collect();
                let act = if dice.roll(6) == 0 { ButtonAct::Reject } else { ButtonAct::Approve };
                let gate = dice.pick(&gates);
                by_a_person.extend((act == ButtonAct::Reject).then(|| gate.request_id.clone()));
                world.command(press(gate, act));
            }
            // Whoever has ended and been told so leaves memory.
            40..44 => world.deliver(),
            6..40 if !done.is_empty() => {
                let (effect_id, outcome) = done.swap_remove(dice.roll(done.len()));
                world.submit(Event::EffectFinished { effect_id, outcome: Box::new(outcome) });
            }
            _ if todo.is_empty() && done.is_empty() => {
                if world.wait_for_an_envelope() {
                    continue;
                }
                if let Some(gate) = world.state.gates.values().next().cloned() {
                    world.command(press(&gate, ButtonAct::Approve));
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
        let waits = request.status == RequestStatus::Blocked
            && request.blocked.is_some()
            && !request.conversation.reply_route.author_name.is_empty();
        assert!(
            request.status == RequestStatus::Committed || waits || by_a_person.contains(id),
            "seed {seed}: neither landed nor with a person: {request:#?}"
        );
        assert!(request.status.is_terminal() || waits, "seed {seed}: {request:#?}");
    }
}

#[test]
fn whoever_commits_withdraws_or_restarts_meanwhile_what_lands_is_proven() {
    for seed in 0..240 {
        history(seed);
    }
}

#[test]
fn whoever_waits_for_a_free_check_run_is_told_so() {
    let limits = Limits { check_runs: 1, ..policy().limits };
    let train = TrainPolicy { prove: Prove::Each, batch: 10 };
    let mut world = World::new(Policy { train, limits, ..policy() });
    let ids = asked(&mut world, 3);
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    do_all_but(&mut world, &mut branch, |kind| matches!(kind, EffectKind::Checks { .. }));
    let now = Timestamp::from_millis(world.clock);
    let waits = ids.iter().filter(|id| {
        let told = why::why(&world.state, &world.policy, &world.state.requests[*id], now);
        assert_eq!((told.key.as_str(), &told.values["effect"]), ("why.effect", &json!("checks")));
        told.values["in_line"] == json!(1)
    });
    assert_eq!(waits.count(), 2, "one of three is proven");
    // All are ready, and the branch is not: they stand in the queue.
    let merges = |kind: &EffectKind| !kind.lands().is_empty();
    do_all_but(&mut world, &mut branch, merges);
    let proven_again =
        |kind: &EffectKind| matches!(kind, EffectKind::Checks { .. }) || merges(kind);
    branch.by_a_person();
    let merge = world.state.effects.values().find(|it| merges(&it.kind)).expect("one").clone();
    let head = branch.head.clone();
    world.effect(&merge.effect_id, EffectOutcome::BranchMoved { head });
    do_all_but(&mut world, &mut branch, proven_again);
    let board = board::board(&world.state, &world.policy, now);
    let queue = board["queue"].as_array().expect("a queue");
    let in_line = queue.iter().filter(|car| car["is_in_line"] == json!(true)).count();
    assert_eq!((queue.len(), in_line), (3, 2), "{queue:#?}");
}

#[test]
fn what_the_branch_has_not_after_a_landing_is_in_the_answer() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let lost = "commit c1 is on main, but not its change of a.py";
    world.finish_with(|kind| {
        let EffectKind::Merge { commit, .. } = kind else { return None };
        let notes = LandingNotes { lost: Some(lost.to_owned()), ..LandingNotes::default() };
        Some(EffectOutcome::Merged { commit: commit.clone(), notes })
    });
    let answer = world.request(&id).outcome.final_answer.expect("an answer");
    assert_eq!((answer.key.as_str(), &answer.values["lost"]), ("final.committed", &json!(lost)));
}

/// A person's merge is in the way of all that lands together.
#[test]
fn each_change_of_a_train_says_what_of_git_it_waits_for() {
    let train = TrainPolicy { prove: Prove::Tip, batch: 10 };
    let mut world = World::new(Policy { train, ..policy() });
    asked(&mut world, 3);
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    let mut most = 0;
    // The first one lands by itself, those that were composed meanwhile together.
    while let Some(merge) = {
        do_all_but(&mut world, &mut branch, |kind| !kind.lands().is_empty());
        let mut effects = world.state.effects.values();
        effects.find(|it| !it.kind.lands().is_empty()).cloned()
    } {
        let request_id = merge.kind.request_id().expect("a request").clone();
        let obstacle = GitObstacle { path: "/project".to_owned(), is_lock: false };
        world.submit(Event::GitBusy { request_id, obstacle });
        let now = Timestamp::from_millis(world.clock);
        for car in merge.kind.lands() {
            let request = &world.state.requests[&car.request_id];
            let told = why::why(&world.state, &world.policy, request, now);
            assert_eq!(
                (told.key.as_str(), &told.values["waits_for"]["path"]),
                ("why.effect", &json!("/project"))
            );
        }
        most = most.max(merge.kind.lands().len());
        let EffectKind::Merge { commit, .. } = &merge.kind else { panic!("{merge:?}") };
        let (commit, notes) = (commit.clone(), LandingNotes::default());
        branch.head.clone_from(&commit);
        world.effect(&merge.effect_id, EffectOutcome::Merged { commit, notes });
    }
    assert!(most > 1, "no two of them landed together");
}

#[test]
fn a_branch_that_moves_a_hundred_times_is_followed_a_hundred_times() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let (mut moves, mut rebases) = (100, 0);
    world.finish_with(|kind| {
        rebases += usize::from(matches!(kind, EffectKind::Rebase { .. }));
        let moved = matches!(kind, EffectKind::Merge { .. }) && moves > 0;
        moved.then(|| {
            moves -= 1;
            EffectOutcome::BranchMoved { head: format!("h{moves}") }
        })
    });
    assert_eq!((world.request(&id).status, rebases), (RequestStatus::Committed, 100));
}

#[test]
fn ten_at_once_land_one_after_the_other_and_each_knows_its_place() {
    let train = TrainPolicy { batch: 10, ..TrainPolicy::default() };
    let mut world = World::new(Policy { train, ..policy() });
    let ids = asked(&mut world, 10);
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    // Each is built, judged and proven on the same head.
    do_all_but(&mut world, &mut branch, |kind| !kind.lands().is_empty());
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
        let outcome = match matches!(kind, EffectKind::Rebase { .. } | EffectKind::Checks { .. }) {
            true => branch.well(&kind),
            false => branch.outcome(&world, &mut Dice(1), &kind),
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
    // The first one stood on the head. Each of the others is composed once, and those behind the second once more.
    assert_eq!(branch.rebases, 9 + 8);
}

fn by_place(world: &World, ids: &[RequestId]) -> Vec<RequestId> {
    let mut order = ids.to_vec();
    order.sort_by_key(|id| place(&world.state, id));
    order
}

/// Requests that are ready at the same time, and whose commits are red where `red` says so of the numbers of the
/// requests that they hold. Returns who landed, in order, and how often checks ran in the train.
fn train_of(
    prove: Prove,
    number: usize,
    red: impl Fn(&[usize]) -> bool,
) -> (Vec<usize>, usize, World) {
    train_with(prove, number, |commit| ended(commit, CheckVerdict::Failed), red)
}

fn ended(commit: &str, verdict: CheckVerdict) -> EffectOutcome {
    EffectOutcome::Checked(evidence(commit, verdict))
}

/// The same where checks end otherwise.
fn train_with(
    prove: Prove,
    number: usize,
    bad: impl Fn(&str) -> EffectOutcome,
    is_bad: impl Fn(&[usize]) -> bool,
) -> (Vec<usize>, usize, World) {
    let train = TrainPolicy { prove, batch: number };
    let mut world = World::new(Policy { train, ..policy() });
    let ids = asked(&mut world, number);
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    let mut ready = false;
    let (mut landed, mut runs) = (Vec::new(), 0);
    let number_of = |id: &RequestId| ids.iter().position(|other| other == id).expect("a number");
    loop {
        let lands = |todo: &Todo| {
            let Todo::Effect(id) = todo else { return false };
            let kind = &world.state.effects[id].kind;
            kind.change_of().is_some_and(|id| place(&world.state, id).is_some())
        };
        let todo = world.todo();
        let first = todo.iter().find(|todo| ready || !lands(todo)).cloned();
        let Some(todo) = first else {
            if ready {
                break;
            }
            ready = true;
            continue;
        };
        let Todo::Effect(id) = &todo else {
            world.do_well(&todo);
            continue;
        };
        let kind = world.state.effects[id].kind.clone();
        let outcome = if let EffectKind::Checks { request_id, commit, .. } = &kind {
            let in_train = place(&world.state, request_id).is_some();
            runs += usize::from(in_train);
            let members: Vec<usize> = branch.members(commit).iter().map(number_of).collect();
            if ready && is_bad(&members) {
                bad(commit)
            } else {
                ended(commit, CheckVerdict::Passed)
            }
        } else if matches!(kind, EffectKind::Merge { .. } | EffectKind::Commit { .. }) {
            branch.outcome(&world, &mut Dice(1), &kind)
        } else {
            branch.well(&kind)
        };
        if let EffectOutcome::Merged { .. } = outcome {
            landed.extend(kind.lands().iter().map(|car| number_of(&car.request_id)));
        }
        world.effect(id, outcome);
    }
    (landed, runs, world)
}

#[test]
fn a_red_car_leaves_and_all_others_land_in_their_order() {
    // The first one is proven on the branch already, and the repetition of the red one is a run.
    let (landed, runs, world) = train_of(Prove::Each, 8, |members| members.contains(&4));
    assert_eq!(landed, [0, 1, 2, 3, 5, 6, 7]);
    let blocked = |it: &&std::sync::Arc<Request>| it.status == RequestStatus::Blocked;
    assert_eq!(world.state.requests.values().filter(blocked).count(), 1, "a person is asked");
    // Each but the first, the repetition, and at most those behind the red one anew.
    assert!((7..=7 + 1 + 3).contains(&runs), "{runs}");
}

#[test]
fn checks_that_never_end_are_waited_for_twice_where_the_change_stands_first() {
    for prove in [Prove::Each, Prove::Tip] {
        for hangs in [1, 4, 7] {
            let is_bad = |members: &[usize]| members.contains(&hangs);
            let times_out = |commit: &str| ended(commit, CheckVerdict::TimedOut);
            let (landed, runs, world) = train_with(prove, 8, times_out, is_bad);
            assert_eq!(landed, (0..8).filter(|it| *it != hangs).collect::<Vec<_>>());
            let (red, of_red, _) = train_of(prove, 8, is_bad);
            assert_eq!(landed, red);
            assert!(runs <= of_red + 1, "{prove:?} {hangs}: {runs}, and {of_red} for a red one");
            let mut blocked = world.state.requests.values().filter_map(|it| it.blocked.as_ref());
            assert_eq!(blocked.next().map(|it| it.code), Some(BlockCode::ChecksInconclusive));
        }
    }
}

#[test]
fn checks_that_cannot_begin_stop_the_change_that_is_to_blame_and_none_behind_it() {
    for prove in [Prove::Each, Prove::Tip] {
        for damaged in [1, 4, 7] {
            let unreadable = |_: &str| EffectOutcome::failed("an object cannot be read");
            let is_bad = |members: &[usize]| members.contains(&damaged);
            let (landed, _, world) = train_with(prove, 8, unreadable, is_bad);
            assert_eq!(landed, (0..8).filter(|it| *it != damaged).collect::<Vec<_>>());
            let blocked = world.state.requests.values().filter_map(|it| it.blocked.as_ref());
            let codes: Vec<BlockCode> = blocked.map(|it| it.code).collect();
            assert_eq!(codes, [BlockCode::ChecksNotStarted], "{prove:?} {damaged}");
        }
    }
}

#[test]
fn the_longest_green_beginning_is_found_by_halving() {
    let bound = |n: usize| 1 + n.next_power_of_two().ilog2() as usize;
    for bad in 1..8 {
        let (landed, runs, _) = train_of(Prove::Tip, 8, |members| members.contains(&bad));
        let expected: Vec<usize> = (0..8).filter(|it| *it != bad).collect();
        assert_eq!(landed, expected);
        // The first one is proven before. Then the search, the repetition, and those behind the red one.
        assert!(runs <= bound(7) + 1 + 1, "{bad}: {runs}");
    }
    for number in [2, 3, 5, 8, 13, 20] {
        let (landed, runs, _) = train_of(Prove::Tip, number, |_| false);
        assert_eq!((landed.len(), runs), (number, 1), "one run for all");
        // Several red ones: a search and a repetition for each, and a run for those that are left.
        for bad in [vec![1], vec![1, number - 1], vec![number / 2, number / 3 + 1, number - 1]] {
            let bad: BTreeSet<usize> =
                bad.into_iter().filter(|it| (1..number).contains(it)).collect();
            let red = |members: &[usize]| members.iter().any(|it| bad.contains(it));
            let (landed, runs, _) = train_of(Prove::Tip, number, red);
            let expected: Vec<usize> = (0..number).filter(|it| !bad.contains(it)).collect();
            assert_eq!(landed, expected);
            assert!(runs <= bad.len() * (bound(number) + 1) + 1, "{number} {bad:?}: {runs}");
        }
    }
}

/// Three changes on their way to the branch, and a person's commit after so many moves; whether it came in time.
fn moved_after(prove: Prove, moves: usize) -> bool {
    let train = TrainPolicy { prove, ..TrainPolicy::default() };
    let mut world = World::new(Policy { train, ..policy() });
    let ids = asked(&mut world, 3);
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    let mut made = 0;
    while let Some(todo) = world.todo().first().cloned() {
        if made == moves {
            branch.by_a_person();
        }
        made += 1;
        let Todo::Effect(id) = &todo else {
            world.do_well(&todo);
            continue;
        };
        let kind = world.state.effects[id].kind.clone();
        #[expect(clippy::wildcard_enum_match_arm, reason = "all else goes well")]
        let outcome = match kind {
            EffectKind::Merge { .. } | EffectKind::Commit { .. } => {
                branch.outcome(&world, &mut Dice(1), &kind)
            }
            _ => branch.well(&kind),
        };
        world.effect(id, outcome);
    }
    let landed = |id: &&RequestId| world.request(id).status == RequestStatus::Committed;
    assert_eq!((ids.iter().filter(landed).count(), branch.landed.len()), (3, 3), "after {moves}");
    moves < made
}

#[test]
fn a_person_may_commit_at_every_moment_of_a_train() {
    for prove in [Prove::Each, Prove::Tip] {
        let mut moves = 0;
        while moved_after(prove, moves) {
            moves += 1;
        }
        assert!(moves > 40, "{moves}");
    }
}

#[test]
fn of_two_that_are_red_only_together_the_later_one_leaves() {
    for prove in [Prove::Each, Prove::Tip] {
        let both = |members: &[usize]| members.contains(&2) && members.contains(&5);
        let (landed, ..) = train_of(prove, 8, both);
        assert_eq!(landed, [0, 1, 2, 3, 4, 6, 7], "{prove:?}");
    }
}

#[test]
fn a_verdict_that_comes_when_the_one_before_has_landed_is_repeated() {
    let mut world = World::new(policy());
    asked(&mut world, 2);
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    let waits = |kind: &EffectKind| !kind.lands().is_empty() || kind.proving() == ProofMode::Once;
    do_all_but(&mut world, &mut branch, waits);
    let find = |world: &World, which: &dyn Fn(&EffectKind) -> bool| {
        let mut all = world.state.effects.iter();
        all.find(|(_, effect)| which(&effect.kind))
            .map(|(id, effect)| (id.clone(), effect.kind.clone()))
    };
    let (merge, kind) = find(&world, &|it| !it.lands().is_empty()).expect("a merge");
    let (checks, proof) = find(&world, &|it| it.proving() == ProofMode::Once).expect("checks");
    assert!(world.begin_effect(&checks));
    let outcome = branch.outcome(&world, &mut Dice(1), &kind);
    world.effect(&merge, outcome);
    // Its worktree is given back, and everything is told: it leaves memory.
    let (release, _) = find(&world, &|it| matches!(it, EffectKind::Release { .. })).expect("it");
    world.effect(&release, EffectOutcome::Released);
    world.deliver();
    assert_eq!(world.state.requests.len(), 1);
    assert!(world.state.effects.contains_key(&checks), "its place is still right");
    let EffectKind::Checks { request_id, commit, .. } = proof else { panic!("checks") };
    world.end_effect(&checks, EffectOutcome::Checked(evidence(&commit, CheckVerdict::Failed)));
    let again = find(&world, &|it| it.proving() == ProofMode::Again).expect("a repetition").0;
    assert_eq!(place(&world.state, &request_id), Some(1));
    world.effect(&again, EffectOutcome::Checked(evidence(&commit, CheckVerdict::Passed)));
    assert!(find(&world, &|it| !it.lands().is_empty()).is_some(), "it lands");
}

#[test]
fn expected_is_what_is_in_the_queue_and_behind_it_what_is_proven_and_judged_last() {
    let mut world = World::new(policy());
    let ids = asked(&mut world, 3);
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    let is_for_qa = |world: &World, todo: &Todo| matches!(todo, Todo::Run(id) if world.state.envelopes[id].target_role == Role::Qa);
    let mut until_qa = |world: &mut World| {
        let lands = |kind: &EffectKind| !kind.lands().is_empty();
        let waits = |world: &World, todo: &Todo| match todo {
            Todo::Effect(id) => lands(&world.state.effects[id].kind),
            Todo::Run(_) | Todo::Report(_) => is_for_qa(world, todo),
        };
        while let Some(todo) = world.todo().into_iter().find(|todo| !waits(world, todo)) {
            let Todo::Effect(id) = &todo else {
                world.do_well(&todo);
                continue;
            };
            let kind = world.state.effects[id].kind.clone();
            let outcome = branch.outcome(world, &mut Dice(2), &kind);
            world.effect(id, outcome);
        }
    };
    let of = |world: &World, policy: &Policy| -> Vec<(RequestId, bool)> {
        let all = expected(&world.state, policy).into_iter();
        all.map(|(request, judged)| (request.request_id.clone(), judged)).collect()
    };
    assert_eq!(of(&world, &world.policy), []);
    until_qa(&mut world);
    let judged: Vec<_> = ids.iter().map(|id| (id.clone(), true)).collect();
    assert_eq!(
        of(&world, &world.policy).into_iter().collect::<BTreeSet<_>>(),
        judged.iter().cloned().collect()
    );
    let of_request = |world: &World, id: &RequestId| {
        let envelopes = &world.state.envelopes;
        let is_its =
            |todo: &Todo| matches!(todo, Todo::Run(it) if envelopes[it].envelope.request_id == *id);
        world.todo().into_iter().find(is_its).expect("its QA")
    };
    let qa = of_request(&world, &ids[1]);
    world.do_well(&qa);
    until_qa(&mut world);
    let now = of(&world, &world.policy);
    assert_eq!(now[0], (ids[1].clone(), false));
    assert!(now.len() == 3 && now[1..].iter().all(|(_, judged)| *judged), "{now:?}");
    let two = TrainPolicy { batch: 2, ..TrainPolicy::default() };
    assert_eq!(of(&world, &Policy { train: two, ..policy() }), now[..2]);
    // Where each is composed by itself, only the last one is proven, or nothing is, there is nothing to prove early.
    let gates = GateTable { commit: Stance::Ask, ..policy().gates };
    let tip = TrainPolicy { prove: Prove::Tip, ..TrainPolicy::default() };
    for other in [
        Policy { gates, ..policy() },
        Policy { train: tip, ..policy() },
        Policy { check_names: Vec::new(), ..policy() },
        Policy { checks_digest: "others".to_owned(), ..policy() },
    ] {
        assert_eq!(of(&world, &other).into_iter().filter(|(_, judged)| *judged).count(), 0);
    }
    // What QA sends back is not expected any more.
    let Todo::Run(qa) = of_request(&world, &ids[0]) else { panic!("a run") };
    let row = json!({"criterion": "C-1", "source": "s", "evidence": "e", "result": "fail"});
    let no = result(
        Role::Qa,
        json!({
            "workflow_transition": {"outcome": "reopen", "reopen_category": "scope", "reason": "no"},
            "qa_validation": {
                "methodology": "evidence_matrix", "decision": "fail", "evidence_matrix": [row],
                "passed_checks": [], "findings": ["no"], "residual_risks": [], "not_checked": [],
            },
        }),
    );
    world.run(&qa, RunOutcome::Result(Arc::new(no)));
    let forward = world.todo().into_iter().find(|todo| matches!(todo, Todo::Report(_)));
    world.do_well(&forward.expect("its report"));
    assert!(!of(&world, &world.policy).contains(&(ids[0].clone(), true)));
}

#[test]
fn what_has_the_same_tree_on_another_base_is_not_proven_again() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let mut branch = Branch { head: "b0".to_owned(), ..Branch::default() };
    do_all_but(&mut world, &mut branch, |kind| !kind.lands().is_empty());
    let Todo::Effect(merge) = world.todo()[0].clone() else { panic!("a merge") };
    world.effect(&merge, EffectOutcome::BranchMoved { head: "p1".to_owned() });
    let Todo::Effect(rebase) = world.todo()[0].clone() else { panic!("a rebase") };
    let tree = world.request(&id).work.candidate.expect("a candidate").tree;
    let moved = Candidate { base: "p1".to_owned(), tree, ..candidate("c9") };
    world.effect(&rebase, EffectOutcome::Rebased(moved));
    let kinds: Vec<_> = world.state.effects.values().map(|it| it.kind.lands()).collect();
    assert_eq!(kinds.len(), 1, "no checks");
    assert_eq!(kinds[0][0].commit, "c9");
    assert_eq!(world.request(&id).work.evidence.expect("what was proven").commit, "c9");
}
