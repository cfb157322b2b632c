//! A blocked request tries the same once more.

use super::authorize::{Granted, act};
use super::turn::Turn;
use super::{closeout, handoff, lifecycle, progress, question_answers};
use crate::domain::block::BlockCode;
use crate::domain::ids::RequestId;
use crate::domain::request::{HeldStep, SelectionSource};

/// A person lets a blocked request try again.
pub(super) fn retry(turn: &mut Turn<'_>, _granted: &Granted<act::Retry>, id: &RequestId) {
    if let Some(request) = turn.edit(id) {
        request.params.end_is_answered();
    }
    try_again(turn, id);
}

/// A blocked request tries the same thing again.
pub(super) fn try_again(turn: &mut Turn<'_>, id: &RequestId) {
    if question_answers::left_to_planner(turn, id) {
        return;
    }
    let Some(request) = turn.edit(id) else { return };
    let held = request.params.end_question.as_mut().and_then(|asked| asked.held.take());
    if let Some(HeldStep { role, step, why }) = held {
        return handoff::delegate(turn, id, role, step, &why, None);
    }
    request.work.spent.renew();
    // Its worktree may have been put in order by hand.
    request.work.reported = None;
    request.chosen_by(SelectionSource::BlockedRetry);
    let replans = |code: BlockCode| {
        code.is_a_spent_loop() || matches!(code, BlockCode::PlanRejected | BlockCode::Parts)
    };
    let replans = request.blocked.as_ref().is_some_and(|blocked| replans(blocked.code));
    let Some((lifecycle, state)) = turn.stands(id) else {
        handoff::delegate_current(turn, id, "Try again.");
        return;
    };
    if replans {
        // A spent budget is not given back by trying the same step again, nor does a plan get better by being built: the
        // planner reconsiders.
        progress::follow(turn, id, lifecycle::resume(&lifecycle, &state));
        return;
    }
    // A workflow that stays stopped would refuse the report of the step that is tried again.
    if let Some(request) = turn.edit(id) {
        request.params.workflow = Some(lifecycle::again(&lifecycle, &state));
    }
    closeout::again(turn, id);
}
