//! Effects that begin and end.

use serde_json::{Value, json};

use super::decision::Answer;
use super::ending::outlives;
use super::turn::Turn;
use super::{base, closeout, ending, gates, handoff, say, sprint};
use crate::domain::block::BlockCode;
use crate::domain::effect::{
    Effect, EffectKind, EffectOutcome, EffectState, GitObstacle, LandingNotes,
};
use crate::domain::evidence::BaseStanding;
use crate::domain::ids::{EffectId, OperationId, RequestId};
use crate::domain::operation::{Operation, OperationStatus};
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::record::RecordId;
use crate::domain::request::{Car, RequestStatus};

/// The executor is about to touch the world.
pub(super) fn starting(turn: &mut Turn<'_>, id: &EffectId, pre_state: Value) -> Answer {
    let Some(effect) = turn.before().effects.get(id).cloned() else {
        return Answer::Ignored("the effect is gone");
    };
    let ended = effect
        .kind
        .request_id()
        .is_some_and(|id| turn.request(id).is_none_or(|request| request.status.is_terminal()));
    if ended && !outlives(turn.before(), &effect.kind) {
        turn.remove(RecordId::Effect(id.clone()));
        if let EffectKind::Action { operation_id, .. } = &effect.kind {
            close_operation(turn, operation_id, OperationStatus::Failed, None);
        }
        return Answer::Ignored("the request has ended");
    }
    let state = EffectState::Started { at: turn.now, pre_state };
    let attempts = effect.attempts + 1;
    turn.save(Effect { state, attempts, waits_for: None, ..Effect::clone(&effect) });
    Answer::Accepted
}

/// An effect waits for something that is in its way; whoever waits for the request reads so.
pub(super) fn waits(turn: &mut Turn<'_>, id: &RequestId, key: &str, values: Value) -> Answer {
    if turn.request(id).is_none_or(|request| request.status.is_terminal()) {
        return Answer::Ignored("the request has ended");
    }
    say::in_room(turn, id, Voice::Team, Priority::Error, key, values);
    Answer::Accepted
}

/// An effect of the request waits for a git command of a person.
pub(super) fn waits_for_git(turn: &mut Turn<'_>, id: &RequestId, obstacle: &GitObstacle) -> Answer {
    let mut effects = turn.before().effects.values();
    if let Some(effect) = effects.find(|effect| effect.kind.request_id() == Some(id)) {
        turn.save(Effect { waits_for: Some(obstacle.clone()), ..Effect::clone(effect) });
    }
    waits(turn, id, "room.git_busy", json!(obstacle))
}

/// The executor is done.
pub(super) fn finished(turn: &mut Turn<'_>, id: &EffectId, outcome: EffectOutcome) -> Answer {
    let Some(effect) = turn.before().effects.get(id).cloned() else {
        return Answer::Ignored("the effect is gone");
    };
    turn.remove(RecordId::Effect(id.clone()));
    let Some(request_id) = effect.kind.request_id().cloned() else {
        sprint::effect_finished(turn, &effect.kind, outcome);
        return Answer::Accepted;
    };
    if let EffectKind::Action { operation_id, .. } = &effect.kind {
        action_ended(turn, &request_id, operation_id, outcome);
        return Answer::Accepted;
    }
    let ended = turn.request(&request_id).is_none_or(|request| request.status.is_terminal());
    if ended {
        return Answer::Accepted;
    }
    if !matches!(outcome, EffectOutcome::Merged { .. }) {
        for car in with(&effect.kind) {
            end_withdrawn(turn, &car.request_id);
        }
        if end_withdrawn(turn, &request_id) {
            return Answer::Accepted;
        }
    }
    match outcome {
        EffectOutcome::Committed(candidate) => closeout::committed(turn, &request_id, candidate),
        EffectOutcome::NothingChanged { base } => {
            closeout::nothing_changed(turn, &request_id, &base);
        }
        EffectOutcome::Unsolved { paths } => closeout::unsolved(turn, &request_id, &paths),
        EffectOutcome::BeyondConflict { paths } => {
            closeout::beyond_conflict(turn, &request_id, &paths);
        }
        EffectOutcome::Checked(evidence) => {
            closeout::checked(turn, &request_id, evidence, effect.kind.proving());
        }
        EffectOutcome::PreparationAsked(question) => {
            gates::preparation::asked(turn, &request_id, question);
        }
        EffectOutcome::BaseProven(standing) => {
            base_proven(turn, &request_id, &effect.kind, standing);
        }
        EffectOutcome::Merged { commit, notes } => {
            for car in with(&effect.kind) {
                let none = LandingNotes::default();
                closeout::merged(turn, &car.request_id, (&car.commit, &commit), none);
            }
            closeout::merged(turn, &request_id, (&commit, &commit), notes);
        }
        EffectOutcome::BranchMoved { .. } => {
            let cars = effect.kind.lands().into_iter().map(|car| car.request_id);
            let first = cars.into_iter().find(|id| is_open(turn, id));
            closeout::branch_moved(turn, &first.unwrap_or(request_id));
        }
        EffectOutcome::ChecksChanged => closeout::checks_changed(turn, &request_id),
        EffectOutcome::Rebased(candidate) => {
            closeout::rebased(turn, &request_id, effect.kind.onto(), candidate);
        }
        EffectOutcome::Clash => closeout::clashed(turn, &request_id, effect.kind.onto()),
        EffectOutcome::AlreadyOnBranch { head } => {
            closeout::already_there(turn, &request_id, &head);
        }
        EffectOutcome::Conflict(conflict) => closeout::conflicted(turn, &request_id, conflict),
        EffectOutcome::PersonEdits { paths } => {
            for id in writes(turn, &effect.kind, &paths) {
                ending::block(turn, &id, BlockCode::PersonEdits, &paths.join("\n"), Vec::new());
            }
        }
        // What is wrong shows again where a change is to be proven.
        EffectOutcome::Failed { .. } if matches!(effect.kind, EffectKind::Base { .. }) => {
            base_proven(turn, &request_id, &effect.kind, BaseStanding::default());
        }
        // It may be the change before it that cannot be read; if it is this one, its own turn tells.
        EffectOutcome::Failed { .. } if stands_on(turn, &effect.kind).is_some() => {
            closeout::clashed(turn, &request_id, stands_on(turn, &effect.kind));
        }
        EffectOutcome::Failed { message, request_id: whose } => {
            let whose = whose.filter(|id| effect.kind.is_merge_of(id) && is_open(turn, id));
            let request_id = whose.unwrap_or(request_id);
            let proves =
                matches!(effect.kind, EffectKind::Checks { .. } | EffectKind::UseChecks { .. });
            let code = if proves { BlockCode::ChecksNotStarted } else { BlockCode::CommitFailed };
            // What else was to land of a sprint that is to end waits for a person as well, and is not taken back.
            let others = effect.kind.lands().into_iter().map(|car| car.request_id);
            for id in others.filter(|id| *id != request_id) {
                if is_open(turn, &id) && is_of_ending_sprint(turn, &id) {
                    ending::block(turn, &id, code, &message, Vec::new());
                }
            }
            ending::block(turn, &request_id, code, &message, Vec::new());
        }
        EffectOutcome::Released
        | EffectOutcome::ActionEnded { .. }
        | EffectOutcome::Baselined(_)
        | EffectOutcome::Inspected(_)
        | EffectOutcome::Archived { .. }
        | EffectOutcome::Published { .. }
        | EffectOutcome::Discovered { .. } => {}
    }
    Answer::Accepted
}

/// The change in the train that this one is put onto, or proven on.
fn stands_on(turn: &Turn<'_>, kind: &EffectKind) -> Option<Car> {
    let EffectKind::Checks { request_id, .. } = kind else { return kind.onto() };
    let queued = turn.request(request_id).filter(|it| it.work.landing_since.is_some());
    queued?.work.behind.clone()
}

/// Whether a request belongs to a sprint that is to end.
fn is_of_ending_sprint(turn: &Turn<'_>, id: &RequestId) -> bool {
    let sprint = turn.request(id).and_then(|request| turn.sprint(request.sprint_id.as_ref()?));
    sprint.is_some_and(|it| it.is_to_end())
}

/// The changes that a merge brings to the branch before its last one.
fn with(kind: &EffectKind) -> &[Car] {
    if let EffectKind::Merge { with, .. } = kind { with } else { &[] }
}

/// Ends a request that was withdrawn while it was on its way to the branch; whether it was.
fn end_withdrawn(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    let Some(request) = turn.request(id).filter(|it| !it.status.is_terminal()) else {
        return false;
    };
    let Some(by) = request.outcome.withdrawn_by.clone() else { return false };
    let values = json!({ "request_id": id.as_str(), "by": by });
    ending::end(turn, id, RequestStatus::Cancelled, "final.cancelled", values);
    true
}

fn is_open(turn: &Turn<'_>, id: &RequestId) -> bool {
    turn.request(id).is_some_and(|request| !request.status.is_terminal())
}

/// Those of the changes on their way that write one of these paths; the last one where none does.
fn writes(turn: &Turn<'_>, kind: &EffectKind, paths: &[String]) -> Vec<RequestId> {
    let touches = |id: &RequestId| {
        let candidate = turn.request(id).and_then(|request| request.work.candidate.as_ref());
        candidate.is_some_and(|it| it.paths.iter().any(|changed| paths.contains(&changed.path)))
    };
    let cars = kind.lands().into_iter().map(|car| car.request_id);
    let cars: Vec<RequestId> = cars.filter(|id| is_open(turn, id)).collect();
    let found: Vec<RequestId> = cars.iter().filter(|id| touches(id)).cloned().collect();
    if found.is_empty() { cars.into_iter().next_back().into_iter().collect() } else { found }
}

/// Whoever waited for what is known of the base now gets the request.
fn base_proven(turn: &mut Turn<'_>, id: &RequestId, kind: &EffectKind, standing: BaseStanding) {
    base::note(turn, id, standing);
    let EffectKind::Base { role, why, .. } = kind else { return };
    let Some(request) = turn.request(id) else { return };
    if request.status != RequestStatus::Delegated {
        return;
    }
    if request.params.workflow.is_some() {
        handoff::delegate_current(turn, id, why);
    } else {
        handoff::delegate(turn, id, *role, None, why, None);
    }
}

fn action_ended(
    turn: &mut Turn<'_>,
    request_id: &RequestId,
    operation_id: &OperationId,
    outcome: EffectOutcome,
) {
    let (returncode, tail) = if let EffectOutcome::ActionEnded { exit_code, log_tail } = outcome {
        (exit_code, log_tail)
    } else if let EffectOutcome::Failed { message, .. } = outcome {
        (None, message)
    } else {
        return;
    };
    let operation = turn.before().operations.get(operation_id);
    // Of one whose record is gone a person hears at least that.
    let (action, foreground) =
        operation.map_or((operation_id.to_string(), true), |it| (it.action.clone(), it.foreground));
    let ok = returncode == Some(0);
    let status = if ok { OperationStatus::Completed } else { OperationStatus::Failed };
    close_operation(turn, operation_id, status, returncode);
    let values = json!({
        "action": action,
        "exit_code": returncode.map_or_else(String::new, |code| code.to_string()),
        "tail": say::cut(&tail, 1_500),
    });
    let open = turn.request(request_id).is_some_and(|request| !request.status.is_terminal());
    if foreground && open {
        let (status, key) = if ok {
            (RequestStatus::Completed, "action.done")
        } else {
            (RequestStatus::Failed, "action.failed")
        };
        ending::end(turn, request_id, status, key, values);
    }
}

/// Notes that an operation is over; one that ended before stays as it is.
fn close_operation(
    turn: &mut Turn<'_>,
    id: &OperationId,
    status: OperationStatus,
    returncode: Option<i32>,
) {
    let Some(operation) = turn.before().operations.get(id).cloned() else { return };
    let updated_at = turn.now;
    turn.save(Operation { status, returncode, updated_at, ..Operation::clone(&operation) });
}
