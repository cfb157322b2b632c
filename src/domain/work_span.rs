//! Who worked on something, and when.

use serde::{Deserialize, Serialize};

use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

/// Spans of one request that are kept; later ones are not.
const MOST: usize = 200;

words! {
    /// What kind of work it is, for people.
    pub enum WorkKind {
        /// Finding out what is to be done.
        Planning = "planning",
        /// Making the change.
        Building = "building",
        /// Judging it.
        Reviewing = "reviewing",
        /// The project's own checks.
        Checking = "checking",
    }
}

impl WorkKind {
    /// What a role does.
    #[must_use]
    pub const fn of(role: Role) -> WorkKind {
        match role {
            Role::Developer | Role::ConflictResolver => WorkKind::Building,
            Role::Architect | Role::Qa => WorkKind::Reviewing,
            Role::VersionController => WorkKind::Checking,
            Role::Orchestrator
            | Role::Research
            | Role::Planner
            | Role::Designer
            | Role::Parser
            | Role::Sourcer => WorkKind::Planning,
        }
    }
}

/// A time without a break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkSpan {
    /// What was done.
    pub kind: WorkKind,
    /// Who did it; the version controller runs the checks. Records of earlier builds do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Since when.
    pub from: Timestamp,
    /// Until when.
    pub to: Timestamp,
}

impl WorkSpan {
    /// Work that has just ended, after so many milliseconds.
    #[must_use]
    pub fn until(to: Timestamp, millis: u64, role: Role) -> WorkSpan {
        let millis = i64::try_from(millis).unwrap_or(i64::MAX);
        let from = Timestamp::from_millis(to.millis().saturating_sub(millis));
        WorkSpan { kind: WorkKind::of(role), role: Some(role), from, to }
    }

    /// Who worked; where that is not known, whoever mostly does such work.
    #[must_use]
    pub fn worker(&self) -> Role {
        self.role.unwrap_or(match self.kind {
            WorkKind::Planning => Role::Planner,
            WorkKind::Building => Role::Developer,
            WorkKind::Reviewing => Role::Qa,
            WorkKind::Checking => Role::VersionController,
        })
    }

    /// How long it took, in milliseconds.
    #[must_use]
    pub fn millis(&self) -> i64 {
        self.to.millis() - self.from.millis()
    }
}

/// Adds one, as long as there are not too many.
pub fn note(spans: &mut Vec<WorkSpan>, span: WorkSpan) {
    if spans.len() < MOST {
        spans.push(span);
    }
}
