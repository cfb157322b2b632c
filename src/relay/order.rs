//! Which envelope comes next.

use std::collections::BTreeSet;

use crate::domain::envelope::{Envelope, EnvelopeFolder, EnvelopeKind};
use crate::domain::ids::{EnvelopeId, RequestId};
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::domain::time::Timestamp;

/// Arrival: ids of ours sort by it too, but those of other programs need not.
fn arrival(envelope: &Envelope) -> (Timestamp, &EnvelopeId) {
    (envelope.created_at, &envelope.relay_id)
}

fn is_ready(envelope: &Envelope, now: Timestamp) -> bool {
    envelope.place == EnvelopeFolder::Inbox && envelope.not_before.is_none_or(|at| at <= now)
}

/// The oldest delegation that the role can begin: of each request the oldest ready one, and none of a
/// request that the role is `busy` with, or of which another run is not over: both would work in one folder. One that
/// has to wait holds nobody back. Where no run `may_begin`, only what has one already.
#[must_use]
pub fn ready(
    state: &State,
    role: Role,
    now: Timestamp,
    busy: &BTreeSet<(Role, RequestId)>,
    may_begin: bool,
) -> Option<EnvelopeId> {
    let has_run =
        |envelope: &Envelope| state.runs.values().any(|run| run.envelope_id == envelope.relay_id);
    let is_alone = |envelope: &Envelope| {
        let mut runs = state.runs.values();
        runs.all(|run| {
            run.request_id != envelope.envelope.request_id || run.envelope_id == envelope.relay_id
        })
    };
    state
        .envelopes
        .values()
        .filter(|envelope| match envelope.kind {
            EnvelopeKind::Delegate => envelope.target_role == role,
            EnvelopeKind::Report | EnvelopeKind::Forward => false,
        })
        .filter(|envelope| is_ready(envelope, now))
        .filter(|envelope| !busy.contains(&(role, envelope.envelope.request_id.clone())))
        .filter(|envelope| has_run(envelope) || may_begin && is_alone(envelope))
        .min_by_key(|envelope| arrival(envelope))
        .map(|envelope| envelope.relay_id.clone())
}

/// The oldest report or forward in the orchestrator's inbox that may be handled now.
#[must_use]
pub fn next_report(state: &State, now: Timestamp) -> Option<EnvelopeId> {
    state
        .envelopes
        .values()
        .filter(|envelope| match envelope.kind {
            EnvelopeKind::Report | EnvelopeKind::Forward => {
                envelope.target_role == Role::Orchestrator
            }
            EnvelopeKind::Delegate => false,
        })
        .filter(|envelope| is_ready(envelope, now))
        .min_by_key(|envelope| arrival(envelope))
        .map(|envelope| envelope.relay_id.clone())
}

/// When the next envelope that waits becomes ready; none where nothing waits for a time to come.
#[must_use]
pub fn next_due(state: &State, now: Timestamp) -> Option<Timestamp> {
    state.envelopes.values().filter_map(|envelope| envelope.not_before).filter(|at| *at > now).min()
}
