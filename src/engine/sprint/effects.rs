//! What was done for a sprint or for the team.

use serde_json::json;

use super::{closing, say, sourcing};
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::ids::SprintId;
use crate::domain::sprint::{CloseoutStatus, SprintEventKind, SprintStatus};
use crate::engine::turn::Turn;

/// Something was done for a sprint or for the team.
pub(in crate::engine) fn effect_finished(
    turn: &mut Turn<'_>,
    kind: &EffectKind,
    outcome: EffectOutcome,
) {
    match (kind, outcome) {
        (EffectKind::Baseline { sprint_id }, EffectOutcome::Baselined(baseline)) => {
            if let Some(sprint) = turn.edit_sprint(sprint_id) {
                sprint.work.git_baseline = Some(baseline);
                // The files of its kickoff lie in its folder now.
                for (old, new) in sprint.kickoff.attachments(&sprint.sprint_folder) {
                    let lists =
                        [&mut sprint.kickoff.artifacts, &mut sprint.work.reference_artifacts];
                    for path in lists.into_iter().flatten().filter(|path| **path == old) {
                        path.clone_from(&new);
                    }
                }
            }
        }
        (EffectKind::Baseline { sprint_id }, EffectOutcome::Failed { message, .. }) => {
            not_begun(turn, sprint_id, &message);
        }
        (EffectKind::Inspect { sprint_id }, EffectOutcome::Inspected(found)) => {
            closing::inspected(turn, sprint_id, found);
        }
        (EffectKind::Inspect { sprint_id }, EffectOutcome::Failed { message, .. }) => {
            closing::not_inspected(turn, sprint_id, &message);
        }
        (EffectKind::Archive { sprint_id }, EffectOutcome::Archived { report_path }) => {
            closing::archived(turn, sprint_id, Some(report_path));
        }
        (EffectKind::Archive { sprint_id }, EffectOutcome::Failed { message, .. }) => {
            turn.sprint_event(sprint_id, SprintEventKind::ArchiveFailed, &message, json!({}));
            closing::archived(turn, sprint_id, None);
        }
        (EffectKind::Publish { sprint_id }, EffectOutcome::Published { url }) => {
            let values = json!({ "sprint_id": sprint_id.as_str(), "url": url });
            say::report(turn, Some(sprint_id), "sprint.published", values, Vec::new());
        }
        (EffectKind::Publish { sprint_id }, EffectOutcome::Failed { message, .. }) => {
            let (stage, message) = message.split_once(": ").unwrap_or(("", &message));
            let values =
                json!({ "sprint_id": sprint_id.as_str(), "stage": stage, "message": message });
            say::report(turn, Some(sprint_id), "sprint.publish_failed", values, Vec::new());
        }
        (EffectKind::Discover { .. }, EffectOutcome::Discovered { findings, watermarks }) => {
            sourcing::discovered(turn, findings, watermarks);
        }
        // An executor that answers something else than it was asked has done nothing.
        (_, _) => {}
    }
}

/// The project could not be looked at, so nothing can be built in it.
fn not_begun(turn: &mut Turn<'_>, id: &SprintId, message: &str) {
    closing::end(turn, id, SprintStatus::Blocked, CloseoutStatus::PlanningIncomplete, message);
}
