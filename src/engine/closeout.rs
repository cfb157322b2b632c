//! What came of committing, checking and merging. "Done" is derived here from what the runtime saw: the commit,
//! the checks at exactly that commit, and the branch that took it.

use serde_json::{Value, json};

use super::lifecycle::{BlockReason, Observation, WorkflowDecision};
use super::progress::{begin, check, commit_then, deliver};
use super::turn::Turn;
use super::{
    attempts, base, contract, ending, handoff, lifecycle, progress, proof, say, train, verify,
};
use crate::domain::block::BlockCode;
use crate::domain::conflict::Conflict;
use crate::domain::effect::{EffectKind, LandingNotes, ProofMode};
use crate::domain::evidence::{Candidate, CheckRun, CheckVerdict, Evidence, Proof};
use crate::domain::ids::RequestId;
use crate::domain::lifecycle::{Prerequisite, StepKind, StepOutcome};
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::record::RecordId;
use crate::domain::request::{Car, EventKind, QaRemarks, RequestStatus};
use crate::domain::request_plan::RequestPlan;
use crate::domain::role::Role;
use crate::domain::run::FailKind;
use crate::domain::state::session_key;
use crate::domain::work_span::{self, WorkSpan};
use crate::domain::workflow::Allowance;

/// The worktree is this commit now.
pub(super) fn committed(turn: &mut Turn<'_>, id: &RequestId, candidate: Candidate) {
    let payload = json!({ "commit": candidate.commit, "paths": candidate.paths });
    turn.record(id, EventKind::Candidate, "runtime", &candidate.subject, payload);
    let Some(request) = turn.edit(id) else { return };
    let is_new = request.work.candidate.as_ref().is_none_or(|old| old.commit != candidate.commit);
    if is_new {
        request.work.accepted.clear();
        request.work.unjudged.clear();
        request.work.qa_remarks = QaRemarks::default();
    }
    request.work.uncommitted = false;
    request.work.candidate = Some(candidate);
    if let Some(conflict) = &mut request.work.conflict {
        for one in conflict.criteria.drain(..) {
            if !request.work.others_criteria.contains(&one) {
                request.work.others_criteria.push(one);
            }
        }
        conflict.solved = true;
        request.work.spent.solutions += u32::from(is_new);
        if conflict.answered {
            request.work.conflict = None;
        }
    }
    request.work.spent.rejected = 0;
    progress::proceed(turn, id, "");
}

/// The worktree equals its base. Whoever built it has built nothing, and there is nothing to judge but the base itself,
/// where that may have all of it already.
pub(super) fn nothing_changed(turn: &mut Turn<'_>, id: &RequestId, base: &str) {
    let may_be_there = turn.request(id).is_some_and(|request| base::may_hold_all(turn, request));
    let Some(request) = turn.edit(id) else { return };
    let title = say::title(&request.scope);
    request.work.evidence = None;
    request.work.uncommitted = false;
    request.work.candidate = may_be_there.then(|| Candidate::of_base(base, &title));
    if !may_be_there
        && turn.step(id).is_some_and(|it| it.kind.judges() || it.kind == StepKind::Land)
    {
        let message = "no file differs from the project's branch";
        attempts::rejected(turn, id, FailKind::NoChange, message);
    } else {
        progress::proceed(turn, id, "");
    }
}

/// The marks of a conflict still stand in the files.
pub(super) fn unsolved(turn: &mut Turn<'_>, id: &RequestId, paths: &[String]) {
    let message = format!("the marks of the conflict still stand in {}", paths.join(", "));
    attempts::rejected(turn, id, FailKind::UnsolvedConflict, &message);
}

/// Whoever solved a conflict has changed what neither side had.
pub(super) fn beyond_conflict(turn: &mut Turn<'_>, id: &RequestId, paths: &[String]) {
    let message = format!("neither side of the conflict changed {}", paths.join(", "));
    attempts::rejected(turn, id, FailKind::BeyondConflict, &message);
}

/// A person says: try the commit again.
pub(super) fn again(turn: &mut Turn<'_>, id: &RequestId) {
    let step = turn.step(id);
    let candidate = turn.request(id).and_then(|request| request.work.candidate.as_ref());
    let uncommitted = turn.request(id).is_some_and(|request| request.work.uncommitted);
    let is_its_base = candidate.is_some_and(Candidate::is_its_base) && !uncommitted;
    if let Some(request) = turn.edit(id)
        && request.work.evidence.as_ref().is_some_and(Evidence::is_inconclusive)
    {
        request.work.evidence = None;
    }
    match step {
        Some(step) if step.kind == StepKind::Land => begin(turn, id),
        // Whoever judges a base has no change to commit.
        Some(step) if step.kind.judges() && is_its_base => progress::proceed(turn, id, ""),
        Some(step) if step.needs(Prerequisite::Commit) => commit_then(turn, id, Some(step.role)),
        Some(_) | None => handoff::delegate_current(turn, id, "Try again."),
    }
}

/// The checks ran.
pub(super) fn checked(turn: &mut Turn<'_>, id: &RequestId, evidence: Evidence, how: ProofMode) {
    let proof = proof::of(&evidence, turn.policy);
    turn.record(
        id,
        EventKind::Checks,
        "runtime",
        match proof {
            Proof::Green => "passed",
            Proof::RedBefore => "red before",
            Proof::None => "failed",
        },
        json!(evidence),
    );
    let Some(request) = turn.edit(id) else { return };
    let current = request.work.candidate.as_ref().map(|c| c.commit.clone());
    if request.todo_id.is_some() {
        let span = WorkSpan::until(evidence.at, evidence.millis(), Role::VersionController);
        work_span::note(&mut request.work.spans, span);
    }
    let held = request.work.held.take();
    if current.as_deref() != Some(evidence.commit.as_str()) {
        // The candidate moved on while its older self was being checked.
        request.work.evidence = Some(evidence);
        check(turn, id);
        return;
    }
    if how == ProofMode::Once && (evidence.has_failed() || evidence.is_inconclusive()) {
        // It says nothing about this change alone.
        if request.work.landing_since.is_some() {
            request.work.held = Some(evidence);
        } else {
            check(turn, id);
        }
        return;
    }
    let before = request.work.evidence.replace(evidence.clone());
    let (Some((lifecycle, state)), Some(step)) = (turn.stands(id), turn.step(id)) else {
        return;
    };
    if proof != Proof::None {
        let values = json!({
            "red_before": evidence.compared(|it| &it.red_before).lines(),
            "mended": evidence.compared(|it| &it.mended).lines(),
            "flaky": evidence.compared(|it| &it.flaky).lines(),
            "stance": turn.policy.gates.red_base,
            "commit": say::short(&evidence.commit),
            "checks": say::checks(Some(&evidence)),
            "unisolated": !evidence.isolation.is_isolated(),
        });
        say::in_room(turn, id, Voice::Team, Priority::Progress, "room.checks_passed", values);
        if step.kind == StepKind::Land {
            deliver(turn, id, proof);
        } else {
            handoff::delegate_current(turn, id, "");
        }
        return;
    }
    let Some(failure) = evidence.first_failure() else {
        ending::block(turn, id, BlockCode::ChecksNotStarted, "no checks ran", Vec::new());
        return;
    };
    if matches!(failure.verdict, CheckVerdict::NotStarted | CheckVerdict::EnvironmentFault) {
        let detail = format!("{}: {}", failure.name, failure.log_tail);
        ending::block(turn, id, BlockCode::ChecksNotStarted, &detail, Vec::new());
        return;
    }
    if failure.verdict.is_inconclusive() {
        let was = |it: &Evidence| it.commit == evidence.commit && it.is_inconclusive();
        let again = !(before.as_ref().is_some_and(was) || held.as_ref().is_some_and(was));
        inconclusive(turn, id, &evidence, failure, again.then_some(how));
        return;
    }
    let charged = step.on(StepOutcome::Red).and_then(|edge| edge.charge);
    let budget = charged.map_or(Allowance::of(0), |counter| state.counter(counter));
    let exit = failure.exit_code.map_or_else(|| "signal".to_owned(), |code| code.to_string());
    let was_red = |it: &Evidence| it.commit == evidence.commit && it.first_failure().is_some();
    let values = json!({
        "commit": say::short(&evidence.commit),
        "check": failure.name,
        "unchanged": before.as_ref().is_some_and(was_red) || held.as_ref().is_some_and(was_red),
        "exit_code": exit,
        "tail": say::end_of(&failure.log_tail, 1_200),
        "broken": broken(failure),
        "red_before": evidence.compared(|it| &it.red_before).lines(),
        "flaky": evidence.compared(|it| &it.flaky).lines(),
        "attempt": budget.used + 1,
        "limit": budget.limit,
    });
    say::in_room(turn, id, Voice::Team, Priority::Error, "room.checks_failed", values);
    let mut decision = lifecycle::observed(&lifecycle, &state, Observation::Red);
    if let WorkflowDecision::Blocked { reason: BlockReason::Spent(_), text, .. } = &mut decision {
        *text = format!("{} ({exit})\n{}", failure.name, say::end_of(&failure.log_tail, 800));
    }
    progress::follow(turn, id, decision);
}

/// The tests that a change broke or lost; none where the check has no names.
fn broken(check: &CheckRun) -> Vec<String> {
    let Some(compared) = check.compared.as_ref() else { return Vec::new() };
    let mut all = compared.broken.clone();
    all.extend(&compared.vanished);
    if all.first == [check.name.as_str()] { Vec::new() } else { all.lines() }
}

/// The checks came to no end, which says nothing about the change: they are run once more, and then a person
/// decides.
fn inconclusive(
    turn: &mut Turn<'_>,
    id: &RequestId,
    evidence: &Evidence,
    check: &CheckRun,
    again: Option<ProofMode>,
) {
    let values = json!({
        "commit": say::short(&evidence.commit),
        "check": check.name,
        "timed_out": check.verdict == CheckVerdict::TimedOut,
        "seconds": check.duration_ms / 1_000,
        "tail": say::end_of(&check.log_tail, 1_200),
        "again": again.is_some(),
    });
    say::in_room(turn, id, Voice::Team, Priority::Error, "room.checks_inconclusive", values);
    if let Some(how) = again {
        let commit = evidence.commit.clone();
        turn.plan(EffectKind::Checks { request_id: id.clone(), commit, how });
        return;
    }
    let how = if check.verdict == CheckVerdict::TimedOut { "time limit" } else { "cut off" };
    let detail = format!("{} ({how})\n{}", check.name, say::end_of(&check.log_tail, 800));
    ending::block(turn, id, BlockCode::ChecksInconclusive, &detail, Vec::new());
}

/// The branch has the commit: the request is done. Where it came there with others of the train, only the last one may
/// have been proven.
pub(super) fn merged(
    turn: &mut Turn<'_>,
    id: &RequestId,
    (commit, last): (&str, &str),
    notes: LandingNotes,
) {
    let now = turn.now;
    let branch = turn.policy.branch.clone();
    let policy = turn.policy;
    train::landed(turn, id, commit);
    let criteria = turn.request(id).map(|request| {
        contract::criteria(request, request.backlog_id.as_ref().and_then(|id| turn.item(id)))
    });
    let Some(request) = turn.edit(id) else { return };
    // Its item leaves the backlog; whoever meets this change later is told what it was held against.
    request.work.criteria = criteria.unwrap_or_default();
    request.work.conflict = None;
    request.work.conflicts_since = None;
    request.outcome.commit_sha = Some(commit.to_owned());
    let is_inner = commit != last && proof::of_candidate(request, policy) == Proof::None;
    request.outcome.proven_through = is_inner.then(|| last.to_owned());
    let delivered = request.params.delivered.as_deref();
    let fallback = request.work.result.as_ref().map(|result| result.summary.as_str());
    let summary = delivered.or(fallback).unwrap_or_default();
    let agent = request.params.agent.as_str();
    let values = json!({
        "request_id": id.as_str(),
        "summary": say::whole(summary),
        "commit": say::short(commit),
        "branch": branch,
        "files": say::files(request.work.candidate.as_ref()),
        "checks": say::checks(request.work.evidence.as_ref().filter(|_| !is_inner)),
        "through": is_inner.then(|| say::short(last)),
        "unisolated": request.work.evidence.as_ref().is_some_and(|it| !it.isolation.is_isolated()),
        "red_before": say::red_before(request),
        "flaky": request.work.evidence.as_ref().map(|it| it.compared(|it| &it.flaky).lines()),
        "seconds": now.seconds_since(request.created_at),
        "turns": request.work.spent.turns,
        "agent": agent,
        "rehearsal": agent.contains("rehearsal"),
        "behind": notes.behind,
        "kept": notes.kept,
        "elsewhere": notes.elsewhere,
        "lost": notes.lost,
        "left_out": request.work.planned.as_ref().map(RequestPlan::left_out),
        "not_checked": request.work.qa_remarks.not_checked,
        "risks": request.work.qa_remarks.risks,
    });
    ending::end(turn, id, RequestStatus::Committed, "final.committed", values);
    verify::landed(turn, id, commit);
}

/// The branch moved on meanwhile: the candidate follows it, however often, and is proven again.
pub(super) fn branch_moved(turn: &mut Turn<'_>, id: &RequestId) {
    let candidate = turn.request(id).and_then(|request| request.work.candidate.as_ref());
    let Some(commit) = candidate.map(|it| it.commit.clone()) else { return };
    turn.plan(EffectKind::Rebase { request_id: id.clone(), commit, onto: None });
}

/// The checks were edited after they had proven the candidate, or are configured for the first time: what is
/// configured now counts.
pub(super) fn checks_changed(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.edit(id) else { return };
    let Some(commit) = request.work.candidate.as_ref().map(|candidate| candidate.commit.clone())
    else {
        return;
    };
    let was_proven = request.work.evidence.take().is_some();
    let values = json!({ "commit": say::short(&commit), "was_proven": was_proven });
    say::in_room(turn, id, Voice::Team, Priority::Progress, "room.checks_changed", values);
    begin(turn, id);
}

/// The candidate stands on the branch's new head, or on the change before it in the train. Other content is proven or
/// asked about anew; the same content is not proven again.
pub(super) fn rebased(
    turn: &mut Turn<'_>,
    id: &RequestId,
    behind: Option<Car>,
    candidate: Candidate,
) {
    // It may have landed since it was named.
    let behind = behind.filter(|ahead| !train::has_landed(turn, ahead));
    let Some(request) = turn.edit(id) else { return };
    let old = request.work.candidate.replace(candidate.clone());
    let evidence = request.work.evidence.take();
    request.work.evidence = evidence
        .filter(|evidence| {
            let same = |old: Candidate| evidence.commit == old.commit && old.tree == candidate.tree;
            // What was green on a repetition is no evidence for another commit.
            let is_sure = evidence.is_green() && evidence.repetitions == 0;
            is_sure && !candidate.tree.is_empty() && old.is_some_and(same)
        })
        .map(|evidence| Evidence { commit: candidate.commit.clone(), ..evidence });
    request.work.held = None;
    request.work.clashes_with = None;
    let tells = behind.is_none() && request.work.evidence.is_none();
    request.work.behind = behind;
    if tells {
        let values = json!({ "head": say::short(&candidate.base) });
        say::in_room(turn, id, Voice::Team, Priority::Progress, "room.rebased", values);
    }
    begin(turn, id);
}

/// The candidate does not fit onto the change before it: it waits until that is on the branch, or gone.
pub(super) fn clashed(turn: &mut Turn<'_>, id: &RequestId, onto: Option<Car>) {
    if let (Some(request), Some(onto)) = (turn.edit(id), onto) {
        request.work.clashes_with = Some(onto.commit);
    }
}

/// The branch has all of the change already, by somebody else's commit. That commit is proven as the request's own
/// would be.
pub(super) fn already_there(turn: &mut Turn<'_>, id: &RequestId, head: &str) {
    turn.record(id, EventKind::AlreadyOnBranch, "runtime", head, Value::Null);
    let Some(request) = turn.edit(id) else { return };
    let Some(candidate) = request.work.candidate.take() else { return };
    request.work.candidate = Some(Candidate::of_base(head, &candidate.subject));
    request.work.evidence = None;
    request.work.landing_since = None;
    request.work.behind = None;
    begin(turn, id);
}

/// The branch changed the same places. The worktree stands on its head with both sides marked; whoever solves it is
/// told both.
pub(super) fn conflicted(turn: &mut Turn<'_>, id: &RequestId, conflict: Conflict) {
    let paths = conflict.paths.join("\n");
    turn.record(id, EventKind::Conflict, "runtime", &paths, json!(conflict));
    let Some(request) = turn.edit(id) else { return };
    let solves = request.duty().is_none();
    let Some((lifecycle, state)) = turn.stands(id).filter(|_| solves) else {
        // There is no role to ask.
        if let Some(request) = turn.edit(id) {
            request.work.conflict = Some(conflict);
        }
        ending::block(turn, id, BlockCode::RebaseConflict, &paths, Vec::new());
        return;
    };
    // Whoever solved an earlier one of this request has written a side of this one.
    let before = Role::ConflictResolver;
    if turn.before().sessions.contains_key(&session_key(before, id)) {
        turn.remove(RecordId::Session(before, id.clone()));
    }
    let values = json!({ "head": say::short(&conflict.head), "paths": conflict.paths });
    let Some(request) = turn.edit(id) else { return };
    request.work.conflicts_since.get_or_insert_with(|| conflict.base.clone());
    request.work.candidate = None;
    request.work.evidence = None;
    request.work.behind = None;
    request.work.spent.solutions = 0;
    request.work.conflict = Some(conflict);
    let mut decision = lifecycle::observed(&lifecycle, &state, Observation::Conflict);
    if let WorkflowDecision::Blocked { text, .. } = &mut decision {
        *text = paths;
    }
    say::in_room(turn, id, Voice::Team, Priority::Error, "room.conflict", values);
    progress::follow(turn, id, decision);
}
