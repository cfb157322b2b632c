//! The history of a request (`spec/teams.md` 4.2).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestStatus;
use crate::domain::result::RoleResult;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

words! {
    /// What a line of a request's history tells.
    pub enum EventKind {
        /// A registered action begins.
        ActionExecute = "action_execute",
        /// Its change is on the branch already.
        AlreadyOnBranch = "already_on_branch",
        /// An attempt of a step failed.
        AttemptFailed = "attempt_failed",
        /// The runtime checked its base.
        Base = "base",
        /// It waits for a person.
        Blocked = "blocked",
        /// Somebody withdraws it while its commit is on its way.
        CancelRequested = "cancel_requested",
        /// A person withdrew it.
        Cancelled = "cancelled",
        /// Its work is a commit.
        Candidate = "candidate",
        /// The runtime checked its commit.
        Checks = "checks",
        /// A role says what the runtime did not see.
        ClaimContradicted = "claim_contradicted",
        /// Its commit is on the branch.
        Committed = "committed",
        /// It is answered, or done without a commit.
        Completed = "completed",
        /// The branch changed the same places.
        Conflict = "conflict",
        /// A conversation has no room left.
        ConversationFull = "conversation_full",
        /// A fresh conversation goes on.
        ConversationHandedOver = "conversation_handed_over",
        /// A conversation has little room left.
        ConversationLow = "conversation_low",
        /// It begins.
        Created = "created",
        /// A role gets it.
        Delegated = "delegated",
        /// Its message was edited.
        Edited = "edited",
        /// It ended without success.
        Failed = "failed",
        /// Words came for it.
        Followup = "followup",
        /// Words came that could not be taken.
        FollowupRefused = "followup_refused",
        /// A person decided.
        GateDecided = "gate_decided",
        /// A person answered questions of the planner.
        Decided = "decided",
        /// A person has to decide.
        GateOpened = "gate_opened",
        /// A person judged a criterion that was left to people.
        Verified = "verified",
        /// A step of planning is given back; older records have it.
        InitialPhaseStepReopened = "initial_phase_step_reopened",
        /// It left the queue to the branch without having landed.
        LeftQueue = "left_queue",
        /// Its message was deleted.
        MessageDeleted = "message_deleted",
        /// A person gave a message of the team up.
        MessageDismissed = "message_dismissed",
        /// Discord refused a message of the team.
        MessageRefused = "message_refused",
        /// A message of the team is tried again.
        MessageRetried = "message_retried",
        /// A message of the team was set aside.
        MessageSetAside = "message_set_aside",
        /// Its planner settled a plan.
        Planned = "planned",
        /// Something was found in a plan.
        PlanReviewed = "plan_reviewed",
        /// A prompt left something out.
        PromptCut = "prompt_cut",
        /// The model's server asks to wait.
        RateLimited = "rate_limited",
        /// Nobody had it after a start.
        Recovered = "recovered",
        /// Something is not allowed.
        Refused = "refused",
        /// A hand-off was not written; older records have it.
        RelaySendFailed = "relay_send_failed",
        /// An operator moved a dead letter back.
        Replayed = "replayed",
        /// It goes on.
        Resumed = "resumed",
        /// It tries again.
        Retried = "retried",
        /// A person paused it.
        Paused = "paused",
        /// It was split into several items.
        Split = "split",
        /// It was asked for again.
        Reused = "reused",
        /// Its way was chosen or changed.
        Routed = "routed",
        /// A role wants to remember something.
        RoleNote = "role_note",
        /// A role reported.
        RoleReport = "role_report",
        /// The run at work was told something.
        Steered = "steered",
        /// It came from an older workspace.
        TakenOver = "taken_over",
        /// A commit was made; older records have it.
        VersionControlCompleted = "version_control_completed",
        /// A commit was asked for; older records have it.
        VersionControlRequested = "version_control_requested",
        /// It waits for its agent.
        Waits = "waits",
        /// It is withdrawn.
        Withdrawn = "withdrawn",
        /// Something that this build does not know.
        #[serde(other)]
        Other = "other",
    }
}

impl EventKind {
    /// The line that tells how a request stands now.
    #[must_use]
    pub const fn of(status: RequestStatus) -> Self {
        match status {
            RequestStatus::Queued => Self::Created,
            RequestStatus::Delegated => Self::Delegated,
            RequestStatus::Completed => Self::Completed,
            RequestStatus::Blocked => Self::Blocked,
            RequestStatus::Failed => Self::Failed,
            RequestStatus::Cancelled => Self::Cancelled,
            RequestStatus::Committed => Self::Committed,
        }
    }
}

/// One line of a request's history, in `<request>.events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestEvent {
    /// When.
    pub timestamp: Timestamp,
    /// What it tells.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// Who did it: a role, `runtime`, or a person's name.
    pub actor: String,
    /// One line for people.
    pub summary: String,
    /// Details for machines.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub payload: Value,
}

impl RequestEvent {
    /// What a role reported; none where the line is no report, or not one that can be read.
    #[must_use]
    pub fn result(&self) -> Option<RoleResult> {
        let result = self.payload.get("result").filter(|_| self.kind == EventKind::RoleReport)?;
        serde_json::from_value(result.clone()).ok()
    }
}
