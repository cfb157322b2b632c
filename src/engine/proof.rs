//! What evidence is worth: whether a change may go on by what the checks said of it.

use crate::domain::evidence::{Evidence, Proof};
use crate::domain::gate::Stance;
use crate::domain::policy::Policy;
use crate::domain::request::Request;

/// What evidence says of the commit that it is about.
pub(super) fn of(evidence: &Evidence, policy: &Policy) -> Proof {
    if evidence.is_green() {
        Proof::Green
    } else if evidence.is_red_before() && policy.gates.red_base != Stance::Refuse {
        Proof::RedBefore
    } else {
        Proof::None
    }
}

/// What the checks that are configured now say about the candidate.
pub(super) fn of_candidate(request: &Request, policy: &Policy) -> Proof {
    let (Some(candidate), Some(evidence)) = (&request.work.candidate, &request.work.evidence)
    else {
        return Proof::None;
    };
    if candidate.commit != evidence.commit || evidence.checks_digest != policy.checks_digest {
        return Proof::None;
    }
    of(evidence, policy)
}
