//! From work in a worktree to a commit on the branch. "Done" is derived here from what the runtime
//! saw: the commit, the checks at exactly that commit, and the branch that took it.

use serde_json::{Value, json};

use super::turn::Turn;
use super::workflow::{BlockReason, WorkflowDecision};
use super::{gates, handoff, reports, say, workflow};
use crate::domain::effect::{EffectKind, EffectState};
use crate::domain::evidence::{Candidate, CheckVerdict, Evidence};
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::request::RequestStatus;
use crate::domain::role::Role;
use crate::domain::workflow::Step;

/// Commits the worktree to the request's own branch, before `role` looks at it.
pub(super) fn commit_then(turn: &mut Turn<'_>, id: &RequestId, role: Role) {
    let Some(request) = turn.edit(id) else { return };
    request.status = RequestStatus::Delegated;
    request.blocked = None;
    request.current_role = Some(Role::VersionController);
    request.next_role = Some(role);
    let title = say::title(&request.scope);
    turn.plan(EffectKind::Commit { request_id: id.clone(), title });
}

/// The worktree is this commit now.
pub(super) fn committed(turn: &mut Turn<'_>, id: &RequestId, candidate: Candidate) {
    let payload = json!({ "commit": candidate.commit, "paths": candidate.paths });
    turn.record(id, "candidate", "runtime", &candidate.subject, payload);
    let Some(request) = turn.edit(id) else { return };
    request.candidate = Some(candidate);
    proceed(turn, id);
}

/// The worktree equals its base.
pub(super) fn nothing_changed(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.edit(id) else { return };
    request.candidate = None;
    request.evidence = None;
    proceed(turn, id);
}

/// Goes on with the step for which the commit was made.
fn proceed(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.request(id) else {
        return;
    };
    let Some(state) = request.params.workflow.as_ref() else {
        return;
    };
    let unproven = request.candidate.is_some() && !is_proven(request);
    let step = state.step;
    if step == Step::QaValidation && unproven && turn.policy.has_checks {
        check(turn, id);
    } else if step == Step::Closeout {
        begin(turn, id);
    } else {
        handoff::delegate_current(turn, id, "");
    }
}

fn is_proven(request: &crate::domain::request::Request) -> bool {
    match (&request.candidate, &request.evidence) {
        (Some(candidate), Some(evidence)) => {
            candidate.commit == evidence.commit && evidence.is_green()
        }
        (Some(_) | None, _) => false,
    }
}

fn check(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.edit(id) else { return };
    let Some(commit) = request.candidate.as_ref().map(|c| c.commit.clone()) else {
        return;
    };
    request.current_role = Some(Role::VersionController);
    turn.plan(EffectKind::Checks { request_id: id.clone(), commit });
}

/// The workflow is through: prove, then commit to the branch, or ask, or answer.
pub(super) fn begin(turn: &mut Turn<'_>, id: &RequestId) {
    let has_checks = turn.policy.has_checks;
    let Some(request) = turn.edit(id) else { return };
    request.status = RequestStatus::Delegated;
    request.blocked = None;
    request.current_role = Some(Role::VersionController);
    request.next_role = None;
    if request.candidate.is_none() {
        let summary = request.result.as_ref().map(|r| r.summary.clone()).unwrap_or_default();
        reports::answered(turn, id, &summary);
        return;
    }
    if is_proven(request) {
        gates::commit(turn, id, true);
    } else if has_checks {
        check(turn, id);
    } else {
        gates::commit(turn, id, false);
    }
}

/// Plans the move of the branch.
pub(super) fn merge(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.edit(id) else { return };
    let Some(commit) = request.candidate.as_ref().map(|c| c.commit.clone()) else {
        return;
    };
    request.status = RequestStatus::Delegated;
    request.current_role = Some(Role::VersionController);
    turn.plan(EffectKind::Merge { request_id: id.clone(), commit });
}

/// Whether the branch may be moving for this request just now.
pub(super) fn is_merging(turn: &Turn<'_>, id: &RequestId) -> bool {
    turn.before().effects.values().any(|effect| {
        matches!(&effect.kind, EffectKind::Merge { request_id, .. } if request_id == id)
            && matches!(effect.state, EffectState::Started { .. })
    })
}

/// A person says: try the commit again.
pub(super) fn again(turn: &mut Turn<'_>, id: &RequestId) {
    let step = turn.request(id).and_then(|r| r.params.workflow.as_ref().map(|state| state.step));
    match step {
        Some(Step::Closeout) => begin(turn, id),
        Some(step) if step.judges_a_commit() => commit_then(turn, id, step.owner()),
        Some(_) | None => handoff::delegate_current(turn, id, "Try again."),
    }
}

/// The checks ran.
pub(super) fn checked(turn: &mut Turn<'_>, id: &RequestId, evidence: Evidence) {
    let green = evidence.is_green();
    turn.record(id, "checks", "runtime", if green { "passed" } else { "failed" }, json!(evidence));
    let Some(request) = turn.edit(id) else { return };
    let current = request.candidate.as_ref().map(|c| c.commit.clone());
    request.evidence = Some(evidence.clone());
    if current.as_deref() != Some(evidence.commit.as_str()) {
        // The candidate moved on while its older self was being checked.
        check(turn, id);
        return;
    }
    let Some(state) = request.params.workflow.clone() else {
        return;
    };
    if green {
        let values = json!({
            "commit": say::short(&evidence.commit),
            "checks": say::checks(Some(&evidence)),
        });
        say::in_room(turn, id, Voice::Team, Priority::Progress, "room.checks_passed", values);
        if state.step == Step::Closeout {
            gates::commit(turn, id, true);
        } else {
            handoff::delegate_current(turn, id, "");
        }
        return;
    }
    let Some(failure) = evidence.first_failure() else {
        handoff::block(turn, id, "checks_not_started", "no checks ran", Vec::new());
        return;
    };
    if failure.verdict == CheckVerdict::NotStarted {
        let detail = format!("{}: {}", failure.name, failure.log_tail);
        handoff::block(turn, id, "checks_not_started", &detail, Vec::new());
        return;
    }
    let budget = state.budgets.checks;
    let exit = failure.exit_code.map_or_else(
        || {
            if failure.verdict == CheckVerdict::TimedOut { "time limit" } else { "signal" }
                .to_owned()
        },
        |code| code.to_string(),
    );
    let values = json!({
        "commit": say::short(&evidence.commit),
        "check": failure.name,
        "exit_code": exit,
        "tail": say::cut(&failure.log_tail, 1_200),
        "attempt": budget.used + 1,
        "limit": budget.limit,
    });
    say::in_room(turn, id, Voice::Team, Priority::Error, "room.checks_failed", values);
    let mut decision = workflow::checks_failed(&state);
    if let WorkflowDecision::Blocked { reason: BlockReason::ChecksBudget, text, .. } = &mut decision
    {
        *text = format!("{} ({exit})\n{}", failure.name, say::cut(&failure.log_tail, 800));
    }
    handoff::follow(turn, id, decision);
}

/// The branch has the commit: the request is done.
pub(super) fn merged(turn: &mut Turn<'_>, id: &RequestId, commit: String) {
    let now = turn.now;
    let branch = turn.policy.branch.clone();
    let Some(request) = turn.edit(id) else { return };
    request.commit_sha = Some(commit.clone());
    let delivered = request.params.other.get("delivered").and_then(Value::as_str);
    let fallback = request.result.as_ref().map(|result| result.summary.as_str());
    let summary = delivered.or(fallback).unwrap_or_default();
    let agent = request.params.other.get("agent").and_then(Value::as_str).unwrap_or_default();
    let values = json!({
        "request_id": id.as_str(),
        "summary": say::whole(summary),
        "commit": say::short(&commit),
        "branch": branch,
        "files": say::files(request.candidate.as_ref()),
        "checks": say::checks(request.evidence.as_ref()),
        "seconds": now.seconds_since(request.created_at),
        "turns": request.spent.turns,
        "agent": agent,
        "rehearsal": agent.contains("rehearsal"),
    });
    turn.record(id, "committed", "runtime", &commit, Value::Null);
    handoff::end(turn, id, RequestStatus::Committed, "final.committed", values);
}

/// The branch moved on meanwhile: follow it, within the budget, and prove again.
pub(super) fn branch_moved(turn: &mut Turn<'_>, id: &RequestId, head: &str) {
    let limit = turn.policy.limits.rebases;
    let Some(request) = turn.edit(id) else { return };
    request.spent.rebases += 1;
    if request.spent.rebases > limit {
        handoff::block(turn, id, "rebase_limit", &say::short(head), Vec::new());
        return;
    }
    let Some(commit) = request.candidate.as_ref().map(|c| c.commit.clone()) else {
        return;
    };
    let values = json!({ "head": say::short(head) });
    say::in_room(turn, id, Voice::Team, Priority::Progress, "room.rebased", values);
    turn.plan(EffectKind::Rebase { request_id: id.clone(), commit });
}

/// The candidate stands on the branch's new head: other content, so it is proven or asked anew.
pub(super) fn rebased(turn: &mut Turn<'_>, id: &RequestId, candidate: Candidate) {
    let Some(request) = turn.edit(id) else { return };
    request.candidate = Some(candidate);
    request.evidence = None;
    begin(turn, id);
}
