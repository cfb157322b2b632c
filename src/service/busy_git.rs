//! A person's git command in the way of the team: what needs the project waits for it and goes on by itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::effect_error::EffectError;
use super::team::Team;
use crate::domain::event::Event;
use crate::domain::ids::RequestId;
use crate::git::GitError;

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_secs(1);
/// A lock that stands longer belongs to no usual command.
const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody who waits for a git command of a person.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    since: Option<Instant>,
    is_told: bool,
}

impl Waiting {
    /// Waits a while where this is what went wrong, and says whether it was. The room of a request is told once: of a
    /// merge or rebase at once, of a lock when it does not go away.
    pub(super) async fn was_for_git(
        &mut self,
        team: &Arc<Team>,
        request: Option<&RequestId>,
        trouble: &EffectError,
        stop: &CancellationToken,
    ) -> bool {
        let EffectError::Git(trouble) = trouble else { return false };
        let Some((path, is_lock)) = in_the_way(trouble).filter(|_| !team.closing.is_cancelled())
        else {
            return false;
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        let is_due = !is_lock || since.elapsed() >= PATIENCE;
        if let (false, true, Some(request_id)) = (self.is_told, is_due, request.cloned()) {
            let path = path.display().to_string();
            let told = Event::GitBusy { request_id, path, is_lock };
            self.is_told = team.hub.submit(told).await.is_ok();
        }
        tokio::select! {
            () = team.closing.cancelled() => {}
            () = stop.cancelled() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
        true
    }
}

/// What of a person's is in the way, and whether it is a lock file.
fn in_the_way(trouble: &GitError) -> Option<(&Path, bool)> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else ends by itself")]
    match trouble {
        GitError::IndexLocked { path } | GitError::RefLocked { path } => Some((path, true)),
        GitError::OperationInProgress { path } => Some((path, false)),
        _ => None,
    }
}
