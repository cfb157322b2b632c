//! A disk without room: what needed it waits and goes on by itself.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::team::{FOR_SPACE, Team};
use crate::domain::event::Event;
use crate::domain::ids::RequestId;
use crate::platform::disk::is_full;
use crate::platform::files::FileError;
use crate::platform::machine;

/// Somebody who waits for room.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    is_told: bool,
}

impl Waiting {
    /// Waits a while where this is what went wrong, and says whether it was. The room of a request is told once.
    pub(super) async fn was_for_room(
        &mut self,
        team: &Arc<Team>,
        request: Option<&RequestId>,
        trouble: &(dyn Error + Send + Sync + 'static),
        stop: &CancellationToken,
    ) -> bool {
        if team.closing.is_cancelled() || stop.is_cancelled() {
            return false;
        }
        let Some(path) = full_path(trouble, || fullest(team)) else { return false };
        if !self.is_told {
            tracing::error!(path = %path.display(), "the disk is full; the work waits for room");
            self.is_told = match request.cloned() {
                // On the journal's own disk nothing can be told before there is room.
                Some(request_id) => {
                    let path = path.display().to_string();
                    team.hub.submit(Event::DiskFull { request_id, path }).await.is_ok()
                }
                None => true,
            };
        }
        tokio::select! {
            () = team.closing.cancelled() => {}
            () = stop.cancelled() => {}
            () = tokio::time::sleep(FOR_SPACE) => {}
        }
        true
    }
}

/// Where the team writes with the least room.
fn fullest(team: &Team) -> PathBuf {
    let state = team.workspace.state_dir();
    let own = ["worktrees", "bases", "checks", "trees", "environments", "runs"];
    let own = own.map(|name| state.join(name)).into_iter();
    let all = own.chain([team.project.common_dir().to_owned()]);
    let room = |path: &PathBuf| machine::free_bytes(path).unwrap_or(u64::MAX);
    all.min_by_key(room).unwrap_or(state)
}

/// The path that there was no room for, where that is what went wrong; where the error does not name it, what
/// `otherwise` says.
fn full_path(
    trouble: &(dyn Error + 'static),
    otherwise: impl FnOnce() -> PathBuf,
) -> Option<PathBuf> {
    let mut error = trouble;
    loop {
        if let Some(file) = error.downcast_ref::<FileError>() {
            return is_full(file).then(|| file.path.clone());
        }
        // Of an error that passes on what is below it, only that is seen.
        if let Some(io) = error.downcast_ref::<io::Error>() {
            let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
            return full.contains(&io.kind()).then(otherwise);
        }
        match error.source() {
            Some(source) => error = source,
            None => break,
        }
    }
    let said = trouble.to_string();
    let words = ["No space left on device", "Disk quota exceeded"];
    words.iter().any(|words| said.contains(words)).then(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::GitError;

    #[test]
    fn a_full_disk_is_found_below_whatever_was_done_and_named_by_its_path() {
        let failed = |kind: io::ErrorKind| {
            let path = PathBuf::from("/srv/x");
            FileError { action: "write", path, source: kind.into() }
        };
        let found = |error: &(dyn Error + 'static)| full_path(error, || PathBuf::from("/work"));
        for full in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert_eq!(found(&failed(full)), Some(PathBuf::from("/srv/x")));
            assert_eq!(found(&GitError::File(failed(full))), Some(PathBuf::from("/work")));
        }
        let refused = io::ErrorKind::PermissionDenied;
        assert_eq!(found(&GitError::File(failed(refused))), None);
        let git = GitError::Git(git2::Error::from_str("could not write: No space left on device"));
        assert_eq!(found(&git), Some(PathBuf::from("/work")));
    }
}
