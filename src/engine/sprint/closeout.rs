//! How a sprint ends, and which ended sprint can go on (`spec/teams.md` 9.8, 9.9).

use crate::domain::ids::SprintId;
use crate::domain::sprint::{CloseoutStatus, ExecutionMode, Phase, Sprint, SprintStatus};
use crate::engine::turn::Turn;

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
    match sprint.closing.status {
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
        None => {
            sprint.phase == Phase::Initial && sprint.closing.report_body.contains("initial phase")
        }
    }
}

/// The sprint that a person began and that waits for somebody to restart it. One that begins by itself takes neither its
/// place nor its items; the next one that a person begins does.
pub(super) fn waits_for_restart(turn: &Turn<'_>) -> Option<SprintId> {
    let sprints = turn.before().sprints.keys().filter_map(|id| turn.sprint(id));
    let by_people = sprints.filter(|sprint| sprint.execution_mode == ExecutionMode::Manual);
    let last = by_people.max_by_key(|sprint| sprint.started_at)?;
    is_resumable(last).then(|| last.sprint_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::SprintId;
    use crate::domain::language::Language;
    use crate::domain::sprint::{Kickoff, Trigger};

    #[test]
    fn s23_s24_g09_every_closeout_has_its_end() {
        for closeout in CloseoutStatus::ALL {
            let status = status_of(closeout);
            assert!(status.is_terminal(), "{closeout}: every end frees the slot");
            assert_eq!(status == SprintStatus::Completed, closeout.is_success(), "{closeout}");
        }
        assert_eq!(status_of(CloseoutStatus::Stopped), SprintStatus::Cancelled, "13.A #8");
    }

    #[test]
    fn s26_what_can_go_on() {
        let id = SprintId::parse("260324-Sprint-09:00").unwrap();
        let mut sprint = Sprint::new(id, Trigger::ManualStart, Kickoff::default(), Language::En);
        for status in SprintStatus::ALL {
            for closeout in CloseoutStatus::ALL {
                (sprint.status, sprint.closing.status) = (status, Some(closeout));
                let expected = status == SprintStatus::Blocked
                    && matches!(
                        closeout,
                        CloseoutStatus::PlanningIncomplete | CloseoutStatus::RestartRequired
                    );
                assert_eq!(is_resumable(&sprint), expected, "S26 {status} {closeout}");
            }
        }
        (sprint.status, sprint.closing.status) = (SprintStatus::Blocked, None);
        assert!(!is_resumable(&sprint));
        "stopped in the initial phase".clone_into(&mut sprint.closing.report_body);
        assert!(is_resumable(&sprint), "as older records say it");
    }
}
