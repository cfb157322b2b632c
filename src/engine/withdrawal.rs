//! A request is withdrawn.

use serde_json::{Value, json};

use super::authorize::{Granted, act};
use super::turn::Turn;
use super::{ending, train};
use crate::domain::request::{EventKind, Request, RequestStatus};

/// What becomes of a request that somebody withdraws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withdrawal {
    /// It is over.
    Done,
    /// Its commit is on the way to the branch: that ends first.
    Landing,
    /// It had ended before.
    Ended,
}

impl Withdrawal {
    /// The words for it.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Done => "cancel.done",
            Self::Landing => "cancel.landing",
            Self::Ended => "cancel.ended",
        }
    }
}

/// Withdraws a request where that is still possible, and says what became of it.
pub(super) fn withdraw(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Cancel>,
    request: &Request,
) -> (Withdrawal, Value) {
    let id = &request.request_id;
    if request.status.is_terminal() {
        let values = json!({ "request_id": id.as_str(), "status": request.status });
        return (Withdrawal::Ended, values);
    }
    if train::is_merging(turn, id) {
        if let Some(request) = turn.edit(id) {
            request.outcome.withdrawn_by = Some(granted.name());
        }
        turn.record(id, EventKind::CancelRequested, &granted.name(), "while it lands", Value::Null);
        return (Withdrawal::Landing, json!({ "request_id": id.as_str() }));
    }
    let values = json!({ "request_id": id.as_str(), "by": granted.name() });
    ending::end(turn, id, RequestStatus::Cancelled, "final.cancelled", values);
    (Withdrawal::Done, json!({ "request_id": id.as_str() }))
}
