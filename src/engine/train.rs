//! The train: changes on their way to the branch, in the order in which they came. The first one stands on the
//! branch's head and each other one on the commit of the one before it, so that all are proven at the same time, each
//! at its own tree and in its own place. Whoever is first lands as soon as it is proven there; where one leaves, those
//! behind it are composed anew.
//!
//! Everything here follows from the records at the end of each decision; no other place says what a car waits for.

use std::sync::Arc;

use serde_json::Value;

use super::decision::Wake;
use super::proof;
use super::turn::Turn;
use crate::domain::effect::{Effect, EffectKind, EffectState, ProofMode};
use crate::domain::evidence::Proof;
use crate::domain::gate::Stance;
use crate::domain::ids::{EffectId, RequestId};
use crate::domain::lifecycle::StepOutcome;
use crate::domain::policy::{Policy, Prove};
use crate::domain::record::RecordId;
use crate::domain::request::{Car, EventKind, Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::domain::time::Timestamp;

/// The requests in the queue, the first one first.
fn queue<'r>(requests: impl Iterator<Item = &'r Request>) -> Vec<RequestId> {
    let mut all: Vec<(Timestamp, &RequestId)> = requests
        .filter_map(|request| Some((request.work.landing_since?, &request.request_id)))
        .collect();
    all.sort_unstable();
    all.into_iter().map(|(_, id)| id.clone()).collect()
}

fn place_in(queue: &[RequestId], id: &RequestId) -> Option<usize> {
    queue.iter().position(|other| other == id).map(|at| at + 1)
}

/// The requests in the queue to the branch, the first one first.
#[must_use]
pub(super) fn in_order(state: &State) -> Vec<RequestId> {
    queue(state.requests.values().map(Arc::as_ref))
}

/// The place of a request in the queue to the branch, from 1; `None` where it does not stand in it.
#[must_use]
pub fn place(state: &State, id: &RequestId) -> Option<usize> {
    state.requests.get(id)?.work.landing_since?;
    place_in(&queue(state.requests.values().map(Arc::as_ref)), id)
}

/// The same with what this turn has changed so far.
pub(super) fn place_now(turn: &Turn<'_>, id: &RequestId) -> Option<usize> {
    turn.request(id)?.work.landing_since?;
    place_in(&queue(turn.requests()), id)
}

/// The changes that are expected on the branch next, the first one first: those in the queue, and behind them those that
/// are proven and that only the last judgement keeps from it, with whether they are such. Nothing is expected where each
/// is composed by itself, or only the last one of a chain is proven.
#[must_use]
pub fn expected(state: &State, policy: &Policy) -> Vec<(Arc<Request>, bool)> {
    if policy.train.prove == Prove::Tip || !composes(policy) {
        return Vec::new();
    }
    let queued = in_order(state).into_iter().filter_map(|id| state.requests.get(&id));
    let mut judged: Vec<&Arc<Request>> =
        state.requests.values().filter(|request| is_judged_last(state, policy, request)).collect();
    judged.sort_by_key(|it| (it.work.evidence.as_ref().map(|it| it.at), it.request_id.clone()));
    let all = queued.map(|it| (it, false)).chain(judged.into_iter().map(|it| (it, true)));
    // What one prepares is nobody else's until it is on the branch.
    let shared = all.take_while(|(request, _)| request.work.preparation.is_none());
    shared.take(policy.train.batch).map(|(request, judged)| (Arc::clone(request), judged)).collect()
}

/// Whether a proven change is at the step whose pass brings it to the branch.
fn is_judged_last(state: &State, policy: &Policy, request: &Request) -> bool {
    let Some(workflow) = &request.params.workflow else { return false };
    let lifecycle = state.lifecycle(&workflow.lifecycle);
    let passed = lifecycle.step(workflow.step).and_then(|step| step.on(StepOutcome::Pass));
    passed.is_some_and(|edge| edge.to == lifecycle.landing())
        && request.status == RequestStatus::Delegated
        && request.work.landing_since.is_none()
        && proof::of_candidate(request, policy) == Proof::Green
}

/// Puts a request at the end of the queue; one that stands in it keeps its place.
pub(super) fn join(turn: &mut Turn<'_>, id: &RequestId) {
    let last = turn.requests().filter_map(|request| request.work.landing_since).max();
    // Nobody comes before one who was there in the same millisecond.
    let now = last.map_or(turn.now, |last| turn.now.max(Timestamp::from_millis(last.millis() + 1)));
    let Some(request) = turn.edit(id) else { return };
    request.status = RequestStatus::Delegated;
    request.route.current_role = Some(Role::VersionController);
    request.work.landing_since.get_or_insert(now);
}

/// Whether the request still waits for the branch and for nothing else.
fn stays(request: &Request) -> bool {
    request.status == RequestStatus::Delegated
        && request.route.current_role == Some(Role::VersionController)
        && request.work.gate_id.is_none()
        && request.work.candidate.is_some()
}

/// Whether the branch may be moving for this request just now.
pub(super) fn is_merging(turn: &Turn<'_>, id: &RequestId) -> bool {
    turn.is_under_way(|kind| kind.is_merge_of(id))
}

/// Takes a request that waits for nothing but the branch, and whose merge has not begun, out of the queue; whether
/// it stood there. One that is being moved or proven stays: it comes by the gate before it lands.
pub(super) fn leave(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    if turn.request(id).is_none_or(|request| request.work.landing_since.is_none()) {
        return false;
    }
    if is_merging(turn, id) {
        return false;
    }
    if turn.has_effect(|kind| kind.change_of() == Some(id) && !kind.is_merge_of(id)) {
        return false;
    }
    let merge = turn.effects().find(|it| it.kind.is_merge_of(id)).map(|it| it.effect_id.clone());
    if let Some(merge) = merge {
        turn.remove(RecordId::Effect(merge));
    }
    true
}

/// How often its checks run before their verdict is told: what is red in the queue may be so by changes before it that
/// are not on the branch, or not proven.
pub(super) fn proving(turn: &Turn<'_>, id: &RequestId) -> ProofMode {
    let shares = |request: &Request| {
        let queued = request.work.landing_since.is_some();
        queued && (turn.policy.train.prove == Prove::Tip || request.work.behind.is_some())
    };
    if turn.request(id).is_some_and(shares) { ProofMode::Once } else { ProofMode::Whole }
}

/// The branch has this commit: what was composed on it stands on the branch.
pub(super) fn landed(turn: &mut Turn<'_>, id: &RequestId, commit: &str) {
    let is_it = |ahead: &Car| ahead.request_id == *id && ahead.commit == commit;
    let behind = turn.requests().filter(|it| it.work.behind.as_ref().is_some_and(is_it));
    let behind: Vec<RequestId> = behind.map(|request| request.request_id.clone()).collect();
    for id in behind {
        if let Some(request) = turn.edit(&id) {
            request.work.behind = None;
        }
    }
}

/// Those in the queue that are something else now than what was built, and for whom nothing is under way that would
/// look at that before they land.
pub(super) fn edited(turn: &Turn<'_>) -> Vec<RequestId> {
    let waits = |it: &&Request| it.work.landing_since.is_some() && stays(it);
    let queued = turn.requests().filter(waits).filter(|it| it.params.has_unread());
    queued.map(|request| request.request_id.clone()).filter(|id| is_free(turn, id)).collect()
}

/// Those in the queue of which somebody has written that they are to end, in the same state.
pub(super) fn held(turn: &Turn<'_>) -> Vec<RequestId> {
    let waits = turn.requests().filter(|it| it.work.landing_since.is_some() && stays(it));
    let asked =
        waits.filter_map(|request| request.params.open_end().map(|_| request.request_id.clone()));
    asked.filter(|id| is_free(turn, id)).collect()
}

fn is_free(turn: &Turn<'_>, id: &RequestId) -> bool {
    !turn.has_effect(|kind| kind.change_of() == Some(id) || kind.is_merge_of(id))
}

/// Whether the branch has this change, as far as its request is still known.
pub(super) fn has_landed(turn: &Turn<'_>, car: &Car) -> bool {
    let request = turn.request(&car.request_id);
    request.is_some_and(|it| it.outcome.commit_sha.as_ref() == Some(&car.commit))
}

/// Whether the request stands in a queue that decides which of its commits are proven.
pub(super) fn proves(turn: &Turn<'_>, id: &RequestId) -> bool {
    turn.policy.train.prove == Prove::Tip && place_now(turn, id).is_some()
}

/// Closes a decision: whoever no longer waits for the branch gives up its place; the others are composed, proven and
/// brought to the branch as far as nothing is under way for them. Returns whose place is another one now.
pub(super) fn advance(turn: &mut Turn<'_>) -> Vec<RequestId> {
    drop_out(turn);
    let now = queue(turn.requests());
    let (chain, composed) = compose(turn, &now);
    drop_merge(turn, &chain);
    match turn.policy.train.prove {
        Prove::Each => each(turn, &chain),
        Prove::Tip => tip(turn, &chain, composed),
    }
    let before = queue(turn.before().requests.values().map(Arc::as_ref));
    let other = |id: &&RequestId| place_in(&before, id) != place_in(&now, id);
    now.iter().filter(other).cloned().collect()
}

fn drop_out(turn: &mut Turn<'_>) {
    let left: Vec<RequestId> = turn
        .requests()
        .filter(|request| request.work.landing_since.is_some() && !stays(request))
        .map(|request| request.request_id.clone())
        .collect();
    for id in &left {
        let landed = turn.request(id).is_some_and(|it| it.outcome.commit_sha.is_some());
        // One that a person is asked about comes back as it is.
        let asks = turn.request(id).is_some_and(|it| it.work.gate_id.is_some());
        if !landed && !asks {
            turn.record(id, EventKind::LeftQueue, "runtime", "", Value::Null);
        }
        if let Some(request) = turn.edit(id) {
            request.work.leave_queue();
        }
    }
}

/// Whether several changes are composed at once. Where a person is asked about each commit, or nothing proves one,
/// composing ahead would only ask more often.
fn composes(policy: &Policy) -> bool {
    policy.has_checks() && policy.gates.commit == Stance::Allow
}

/// The cars that stand each on the one before it, the first one on the branch, as far as they are composed; and
/// whether nothing else is to be composed now. What is in its way is set in motion, one at a time.
fn compose(turn: &mut Turn<'_>, queue: &[RequestId]) -> (Vec<Car>, bool) {
    let batch = if composes(turn.policy) { turn.policy.train.batch } else { 1 };
    let mut chain: Vec<Car> = Vec::new();
    for (at, id) in queue.iter().enumerate() {
        let behind = queue.get(at + 1..).unwrap_or_default();
        let ahead = chain.last().cloned();
        match place_of(turn, id, ahead.as_ref()) {
            _ if chain.len() >= batch => return (chain, true),
            Place::LeftOut => stop(turn, std::slice::from_ref(id)),
            Place::Moving => {
                stop(turn, behind);
                return (chain, false);
            }
            Place::Elsewhere(commit) => {
                stop(turn, queue.get(at..).unwrap_or_default());
                let request_id = id.clone();
                turn.plan(EffectKind::Rebase { request_id, commit, onto: ahead });
                return (chain, false);
            }
            Place::Right(commit) => {
                chain.push(Car { request_id: id.clone(), commit });
                // What it prepares is nobody else's until it is on the branch.
                if turn.request(id).is_some_and(|it| it.work.preparation.is_some()) {
                    stop(turn, behind);
                    return (chain, true);
                }
            }
        }
    }
    (chain, true)
}

/// How a change stands to what is to be before it.
enum Place {
    /// On it, as this commit.
    Right(String),
    /// On something else, as this commit.
    Elsewhere(String),
    /// It is being moved.
    Moving,
    /// It does not fit onto it. Its turn comes when that is on the branch, or gone.
    LeftOut,
}

fn place_of(turn: &Turn<'_>, id: &RequestId, ahead: Option<&Car>) -> Place {
    let request = turn.request(id);
    let candidate = request.and_then(|request| Some((request, request.work.candidate.as_ref()?)));
    let Some((request, candidate)) = candidate else { return Place::LeftOut };
    let moves = |kind: &EffectKind| {
        kind.change_of() == Some(id)
            && !matches!(kind, EffectKind::Checks { .. } | EffectKind::Merge { .. })
    };
    let clash = request.work.clashes_with.as_ref();
    let is_right = match ahead {
        Some(ahead) if clash == Some(&ahead.commit) => return Place::LeftOut,
        Some(ahead) => candidate.base == ahead.commit,
        // One that the branch is moving for is not moved itself.
        None => is_merging(turn, id) || clash.is_none() && request.work.behind.is_none(),
    };
    match (turn.has_effect(moves), is_right) {
        (true, _) => Place::Moving,
        (false, true) => Place::Right(candidate.commit.clone()),
        (false, false) => Place::Elsewhere(candidate.commit.clone()),
    }
}

/// Calls off the checks, and what is not begun of composing, of those that have no place in the train any more.
fn stop(turn: &mut Turn<'_>, ids: &[RequestId]) {
    let is_theirs = |effect: &&Effect| {
        let composes = matches!(effect.kind, EffectKind::Rebase { onto: Some(_), .. });
        let is_vain = matches!(effect.kind, EffectKind::Checks { .. })
            || composes && effect.state == EffectState::Planned;
        is_vain && effect.kind.change_of().is_some_and(|id| ids.contains(id))
    };
    let stopped: Vec<EffectId> =
        turn.effects().filter(is_theirs).map(|it| it.effect_id.clone()).collect();
    for effect in stopped {
        turn.wake(Wake::StopEffect(effect.clone()));
        turn.remove(RecordId::Effect(effect));
    }
}

/// Takes back a merge that has not begun and is not the beginning of the train any more.
fn drop_merge(turn: &mut Turn<'_>, chain: &[Car]) {
    let is_old = |effect: &&Effect| {
        let lands = effect.kind.lands();
        let fits = chain.starts_with(&lands);
        let at_once = turn.policy.train.prove == Prove::Tip || lands.len() <= 1;
        effect.state == EffectState::Planned && !(fits && at_once)
    };
    let old = turn.effects().find(is_old).map(|it| it.effect_id.clone());
    if let Some(old) = old {
        turn.remove(RecordId::Effect(old));
    }
}

/// How the checks came out for a car where it stands.
fn proof_of(turn: &Turn<'_>, car: &Car) -> Proof {
    let request = turn.request(&car.request_id);
    request.map_or(Proof::None, |it| proof::of_candidate(it, turn.policy))
}

fn is_held(turn: &Turn<'_>, car: &Car) -> bool {
    let held = turn.request(&car.request_id).and_then(|request| request.work.held.as_ref());
    held.is_some_and(|evidence| evidence.commit == car.commit)
}

fn has_effect(turn: &Turn<'_>, car: &Car) -> bool {
    turn.has_effect(|kind| kind.change_of() == Some(&car.request_id))
}

/// Each car is proven where it stands, and the first one lands. A verdict against one whose turn was not yet is looked
/// at again when all before it are on the branch.
fn each(turn: &mut Turn<'_>, chain: &[Car]) {
    let lands = turn.has_effect(|kind| !kind.lands().is_empty());
    for (at, car) in chain.iter().enumerate() {
        let is_open = turn.policy.has_checks() && proof_of(turn, car) == Proof::None;
        if has_effect(turn, car) || at == 0 && lands {
            continue;
        }
        match (at, is_held(turn, car)) {
            (0, true) => prove(turn, car, ProofMode::Again),
            (0, false) if is_open => prove(turn, car, ProofMode::Whole),
            (0, false) => land(turn, chain.iter().take(1)),
            (_, false) if is_open => prove(turn, car, ProofMode::Once),
            (_, _) => {}
        }
    }
}

/// Only the last car is proven. Where that is red, the longest green beginning is searched for by halving what is
/// between the last one known green and the first one known red.
fn tip(turn: &mut Turn<'_>, chain: &[Car], composed: bool) {
    // Whoever is asked for something else now, or to end, does not land, and nothing behind it.
    let is_asked = |car: &Car| {
        let request = turn.request(&car.request_id);
        request.is_some_and(|it| it.params.has_unread() || it.params.open_end().is_some())
    };
    let known = chain.iter().position(is_asked).unwrap_or(chain.len());
    let proven = chain.iter().enumerate().take(known).rev().find(|(at, car)| {
        let proof = proof_of(turn, car);
        proof == Proof::Green || (*at == 0 && (proof != Proof::None || !turn.policy.has_checks()))
    });
    let green = proven.map_or(0, |(at, _)| at + 1);
    let lands = turn.has_effect(|kind| !kind.lands().is_empty());
    if green > 0 && !lands && !has_effect(turn, &chain[0]) {
        land(turn, chain.iter().take(green));
    }
    let open = chain.get(green..).unwrap_or_default();
    let proves = open.iter().any(|car| has_effect(turn, car));
    if open.is_empty() || !composed || proves || !turn.policy.has_checks() {
        return;
    }
    let red = open.iter().position(|car| is_held(turn, car));
    match red {
        None => prove(turn, &open[open.len() - 1], ProofMode::Once),
        // Its own turn is when all before it are on the branch.
        Some(0) if green == 0 => prove(turn, &open[0], ProofMode::Again),
        Some(0) => {}
        Some(red) => prove(turn, &open[(red - 1) / 2], ProofMode::Once),
    }
}

fn prove(turn: &mut Turn<'_>, car: &Car, how: ProofMode) {
    let Car { request_id, commit } = car.clone();
    turn.plan(EffectKind::Checks { request_id, commit, how });
}

fn land<'c>(turn: &mut Turn<'_>, cars: impl Iterator<Item = &'c Car>) {
    let mut with: Vec<Car> = cars.cloned().collect();
    let Some(Car { request_id, commit }) = with.pop() else { return };
    turn.plan(EffectKind::Merge { request_id, commit, with });
}
