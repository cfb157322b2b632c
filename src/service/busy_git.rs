//! A person's git command in the way of the team: what needs the project waits for it and goes on by itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::effect_error::EffectError;
use super::team::Team;
use crate::domain::effect::{EffectKind, GitObstacle};
use crate::domain::event::Event;
use crate::domain::ids::RequestId;
use crate::domain::request::Request;
use crate::domain::state::State;
use crate::git::GitError;

/// How often it is looked whether a usual command has ended, and how often later on.
pub(super) const LOOK: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(5);
/// A lock that stands longer belongs to no usual command.
const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody who waits for a git command of a person.
#[derive(Debug, Default)]
pub(super) struct GitWait {
    since: Option<Instant>,
    is_told: bool,
}

impl GitWait {
    /// Waits a while where this is what went wrong, and says whether it was. The room of a request is told once: of a
    /// merge or rebase at once, of a lock when it does not go away.
    pub(super) async fn was_for_git(
        &mut self,
        team: &Arc<Team>,
        effect: &EffectKind,
        trouble: &EffectError,
        stop: &CancellationToken,
    ) -> bool {
        let EffectError::Git(trouble) = trouble else { return false };
        let Some((path, is_lock)) = in_the_way(trouble) else { return false };
        if stop.is_cancelled() {
            return false;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let is_due = !is_lock || since.elapsed() >= PATIENCE;
        if is_due && of_ending_sprint(team, effect).is_some() {
            return false;
        }
        if let (false, true, Some(request_id)) =
            (self.is_told, is_due, effect.request_id().cloned())
        {
            let obstacle = GitObstacle { path: path.display().to_string(), is_lock };
            let told = Event::GitBusy { request_id, obstacle };
            self.is_told = team.hub.submit(told).await.is_ok();
        }
        tokio::select! {
            () = team.closing.cancelled() => {}
            () = stop.cancelled() => {}
            () = tokio::time::sleep(if is_due { SELDOM } else { LOOK }) => {}
        }
        true
    }
}

/// Whether somebody has withdrawn one of the changes whose landing a git command is in the way of.
pub(super) fn is_withdrawn(team: &Team, effect: &EffectKind, trouble: &EffectError) -> bool {
    matches!(trouble, EffectError::Git(trouble) if in_the_way(trouble).is_some())
        && team.hub.read(|state| {
            let withdrawn = |it: &Request| it.outcome.withdrawn_by.is_some();
            landing(state, effect).any(withdrawn)
        })
}

/// A change on its way to the branch whose sprint is to end, and does not wait: people let it through later.
fn of_ending_sprint(team: &Team, effect: &EffectKind) -> Option<RequestId> {
    team.hub.read(|state| {
        let ends = |it: &Request| {
            let sprint = it.sprint_id.as_ref().and_then(|id| state.sprints.get(id));
            sprint.is_some_and(|it| it.is_to_end())
        };
        landing(state, effect).find(|it| ends(it)).map(|it| it.request_id.clone())
    })
}

/// Whose change it is that did not wait for a git command.
pub(super) fn gave_up(
    team: &Team,
    effect: &EffectKind,
    trouble: &EffectError,
) -> Option<RequestId> {
    let EffectError::Git(trouble) = trouble else { return None };
    in_the_way(trouble).and_then(|_| of_ending_sprint(team, effect))
}

/// The requests whose changes an effect brings to the branch.
fn landing<'s>(state: &'s State, effect: &EffectKind) -> impl Iterator<Item = &'s Request> {
    let requests = effect.lands().into_iter().map(|car| car.request_id);
    requests.filter_map(|id| state.requests.get(&id)).map(|request| &**request)
}

/// What of a person's is in the way, and whether it is a lock file.
pub(super) fn in_the_way(trouble: &GitError) -> Option<(&Path, bool)> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else ends by itself")]
    match trouble {
        GitError::IndexLocked { path } | GitError::RefLocked { path } => Some((path, true)),
        GitError::OperationInProgress { path } => Some((path, false)),
        _ => None,
    }
}
