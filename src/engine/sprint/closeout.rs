//! How a sprint ends, and which ended sprint can go on (`spec/teams.md` 9.8, 9.9).

use crate::domain::sprint::{CloseoutStatus, Phase, Sprint, SprintStatus};

/// The status of a sprint that was closed like this.
#[must_use]
pub const fn status_of(closeout: CloseoutStatus) -> SprintStatus {
    match closeout {
        CloseoutStatus::Verified
        | CloseoutStatus::NoNewCommits
        | CloseoutStatus::NoRepo
        | CloseoutStatus::WarningMissingSprintTag => SprintStatus::Completed,
        CloseoutStatus::PlanningIncomplete | CloseoutStatus::RestartRequired => {
            SprintStatus::Blocked
        }
        CloseoutStatus::Stopped => SprintStatus::Cancelled,
        CloseoutStatus::PendingChanges
        | CloseoutStatus::VersionControlFailed
        | CloseoutStatus::Failed
        | CloseoutStatus::NoBacklogSelected
        | CloseoutStatus::NoSelectedBacklog => SprintStatus::Failed,
    }
}

/// Whether a sprint that came to no plan can go on under its id: it is blocked, and says so in its closeout
/// status or, in older records that have none, in the words of its report.
#[must_use]
pub fn is_resumable(sprint: &Sprint) -> bool {
    if sprint.status != SprintStatus::Blocked {
        return false;
    }
    match sprint.closeout_status {
        Some(CloseoutStatus::PlanningIncomplete | CloseoutStatus::RestartRequired) => true,
        Some(
            CloseoutStatus::Verified
            | CloseoutStatus::NoNewCommits
            | CloseoutStatus::NoRepo
            | CloseoutStatus::WarningMissingSprintTag
            | CloseoutStatus::PendingChanges
            | CloseoutStatus::VersionControlFailed
            | CloseoutStatus::Failed
            | CloseoutStatus::NoBacklogSelected
            | CloseoutStatus::NoSelectedBacklog
            | CloseoutStatus::Stopped,
        ) => false,
        None => sprint.phase == Phase::Initial && sprint.report_body.contains("initial phase"),
    }
}
