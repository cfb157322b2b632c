//! What evidence is worth: whether a change may go on by what the checks said of it.

use super::contract;
use crate::domain::backlog::BacklogItem;
use crate::domain::criterion::Judge;
use crate::domain::evidence::{BaseVerdict, Evidence, Proof};
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

/// The base of a request at which all that it is held against holds already: checks decide every criterion, and each of
/// them was green there.
pub(super) fn holds_at_base(
    request: &Request,
    item: Option<&BacklogItem>,
    policy: &Policy,
) -> Option<String> {
    let base = request.work.base.as_ref().filter(|base| base.verdict == BaseVerdict::Green)?;
    let criteria = contract::criteria(request, item);
    let checked = criteria.iter().all(|criterion| match &criterion.judge {
        Judge::Check(name) => policy.checks.contains(name),
        Judge::Qa | Judge::Person => false,
    });
    (checked && !criteria.is_empty()).then(|| base.commit.clone())
}
