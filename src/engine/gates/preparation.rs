//! A change alters the files by which dependencies are prepared: what they name is the code of strangers, so nothing of
//! it is run before somebody has agreed.

use super::card;
use super::commit::stay_on_side_branch;
use crate::domain::gate::{GateKind, NoApproval, Stance};
use crate::domain::ids::RequestId;
use crate::domain::preparation::PreparationQuestion;
use crate::engine::progress;
use crate::engine::turn::Turn;

/// The checks wait for an answer to this.
pub(in crate::engine) fn asked(turn: &mut Turn<'_>, id: &RequestId, question: PreparationQuestion) {
    let stance = turn.policy.gates.prepare;
    let Some(request) = turn.edit(id) else { return };
    let Some(commit) = request.work.candidate.as_ref().map(|it| it.commit.clone()) else { return };
    let digest = question.digest.clone();
    request.work.preparation_asked = Some(question);
    match stance {
        Stance::Allow => granted(turn, id),
        Stance::Refuse => {
            if !progress::goes_back_for_words(turn, id) {
                stay_on_side_branch(turn, id, NoApproval::Refused);
            }
        }
        Stance::Ask => card::open(turn, id, GateKind::Prepare, commit, digest, Vec::new()),
    }
}

/// Somebody has agreed, or nobody needs to: the checks run, with what that makes.
pub(super) fn granted(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.edit(id) else { return };
    request.work.preparation = request.work.preparation_asked.take().map(|it| it.digest);
    progress::check(turn, id);
}
