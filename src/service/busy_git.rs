//! A person's git command in the way of the team: what needs the project waits for it and goes on by itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::effect_error::EffectError;
use super::team::Team;
use crate::domain::effect::EffectKind;
use crate::domain::event::Event;
use crate::domain::request::Request;
use crate::domain::state::State;
use crate::git::GitError;

/// How often it is looked whether a usual command has ended, and how often later on.
const LOOK: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(5);
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
        // A sprint that is to end does not wait; people let the commit through later.
        let ends = |state: &State| {
            let mut sprints = landing(state, effect).filter_map(|it| it.sprint_id.as_ref());
            sprints.any(|id| state.sprints.get(id).is_some_and(|it| it.closing.wrap_up.is_some()))
        };
        if is_due && team.hub.read(ends) {
            return false;
        }
        if let (false, true, Some(request_id)) =
            (self.is_told, is_due, effect.request_id().cloned())
        {
            let path = path.display().to_string();
            let told = Event::GitBusy { request_id, path, is_lock };
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

/// The requests whose changes an effect brings to the branch.
fn landing<'s>(state: &'s State, effect: &EffectKind) -> impl Iterator<Item = &'s Request> {
    let requests = effect.lands().into_iter().map(|car| car.request_id);
    requests.filter_map(|id| state.requests.get(&id)).map(|request| &**request)
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
