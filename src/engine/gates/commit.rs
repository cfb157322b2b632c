//! A commit is ready for the branch.

use std::collections::BTreeSet;

use serde_json::json;

use super::{card, guards, stance};
use crate::domain::block::BlockCode;
use crate::domain::evidence::{Candidate, Evidence, Proof};
use crate::domain::gate::{NoApproval, Stance};
use crate::domain::guard::GuardFinding;
use crate::domain::ids::{MessageId, RequestId};
use crate::domain::policy::GateTable;
use crate::domain::request::{Followup, RequestStatus};
use crate::engine::turn::Turn;
use crate::engine::{ending, say, train};

/// A commit is ready for the branch: it goes there, or a person is asked, or it stays aside.
pub(in crate::engine) fn ready(turn: &mut Turn<'_>, id: &RequestId, proof: Proof) {
    let Some(request) = turn.request(id) else { return };
    let Some(candidate) = request.work.candidate.as_ref() else { return };
    let by_name = request.work.evidence.as_ref().is_some_and(Evidence::is_red_by_name);
    let findings = guards::open_findings(turn, request);
    let (stance, kind) = stance::of_commit(&turn.policy.gates, &findings, proof, by_name);
    let (commit, artifact) = (candidate.commit.clone(), candidate.tree.clone());
    match stance {
        Stance::Allow => train::join(turn, id),
        Stance::Refuse => stay_on_side_branch(turn, id, NoApproval::Refused),
        Stance::Ask => card::open(turn, id, kind, commit, artifact, findings),
    }
}

/// Where the branch has all of it already, a person is asked about what QA leaves to one; whether that is so.
pub(in crate::engine) fn asks_about_base(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    let Some(request) = turn.request(id) else { return false };
    let Some(candidate) = request.work.candidate.as_ref() else { return false };
    let (commit, artifact) = (candidate.commit.clone(), candidate.tree.clone());
    let findings = guards::open_findings(turn, request);
    if findings.is_empty() {
        return false;
    }
    // Nothing is to be committed.
    let gates = GateTable { commit: Stance::Allow, ..turn.policy.gates.clone() };
    match stance::of_commit(&gates, &findings, Proof::Green, true) {
        (Stance::Refuse, _) => declined(turn, id, NoApproval::Refused),
        (Stance::Ask | Stance::Allow, kind) => {
            card::open(turn, id, kind, commit, artifact, findings);
        }
    }
    true
}

/// A person has said yes to the commit, and so to what guards found in it.
pub(super) fn accept(turn: &mut Turn<'_>, id: &RequestId, findings: Vec<GuardFinding>) {
    if let Some(request) = turn.edit(id) {
        request.work.accepted.extend(findings);
    }
}

/// Words that came this shortly before a decision were not on the screen of whoever decided, in seconds.
const UNSEEN: u64 = 2;

/// Whoever has decided has read what stands in the room of the request, where they had that before them.
pub(super) fn seen(turn: &mut Turn<'_>, id: &RequestId, sees_room: bool) {
    let now = turn.now;
    if let Some(request) = turn.edit(id).filter(|_| sees_room) {
        // They have not seen what was said elsewhere.
        let room = request.conversation.place();
        let is_elsewhere = |words: &Followup| match words.channel_id {
            Some(channel) => Some(channel) != room,
            None => words.message_id.is_none(),
        };
        let is_unseen =
            |words: &&Followup| is_elsewhere(words) || now.seconds_since(words.at) < UNSEEN;
        let params = &mut request.params;
        let unseen: BTreeSet<MessageId> =
            params.followups.iter().filter(is_unseen).map(Followup::key).collect();
        params.unread_words.retain(|key| unseen.contains(key));
    }
}

/// Nobody has said yes to the commit, or nobody would: it stays aside. What the branch has already cannot, and its
/// request waits for somebody to say what is wrong with it.
pub(super) fn declined(turn: &mut Turn<'_>, id: &RequestId, why: NoApproval) {
    if !is_base(turn, id) {
        return stay_on_side_branch(turn, id, why);
    }
    let unjudged = turn.request(id).map(|request| request.work.unjudged.as_slice());
    let lines = unjudged.unwrap_or_default().iter().map(|it| format!("{}: {}", it.path, it.detail));
    let detail = lines.collect::<Vec<_>>().join("\n");
    ending::block(turn, id, BlockCode::RoleBlocked, &detail, Vec::new());
}

/// Whether the branch has all of it already.
pub(super) fn is_base(turn: &Turn<'_>, id: &RequestId) -> bool {
    let candidate = turn.request(id).and_then(|request| request.work.candidate.as_ref());
    candidate.is_some_and(Candidate::is_its_base)
}

/// The commit stays where it is; the request is done.
pub(super) fn stay_on_side_branch(turn: &mut Turn<'_>, id: &RequestId, why: NoApproval) {
    let Some(request) = turn.edit(id) else {
        return;
    };
    request.outcome.not_approved = Some(why);
    let Some(request) = turn.request(id) else { return };
    let mut refused = guards::open_findings(turn, request);
    refused.retain(|it| turn.policy.gates.of_guard(it.guard) == Stance::Refuse);
    let summary = request.work.result.as_ref().map(|r| say::whole(&r.summary)).unwrap_or_default();
    let commit = request.work.candidate.as_ref().map(|c| say::short(&c.commit)).unwrap_or_default();
    let values = json!({
        "request_id": id.as_str(),
        "summary": summary,
        "commit": commit,
        "side_branch": format!("teams/{id}"),
        "files": say::files(request.work.candidate.as_ref()),
        "reason": why,
        "findings": card::by_guard(&refused),
        "not_checked": request.work.qa_remarks.not_checked,
        "risks": request.work.qa_remarks.risks,
    });
    ending::end(turn, id, RequestStatus::Completed, "final.on_side_branch", values);
}
