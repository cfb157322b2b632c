//! A disk without room: what needed it waits and goes on by itself.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::team::Team;
use crate::domain::event::Event;
use crate::domain::ids::RequestId;
use crate::platform::files::FileError;
use crate::platform::full_disk::{LOOK_AGAIN, full_path, is_nearly_full, no_room};
use crate::platform::machine;

/// How often something is done again that itself fills a disk which has room; then a person is asked.
const FILLS: u32 = 4;

/// Somebody who waits for room.
#[derive(Debug, Default)]
pub(super) struct DiskWait {
    is_told: bool,
    /// How often it was waited.
    times: u32,
    /// How often there was room again as soon as it had failed: then it is what fills the disk itself.
    fills: u32,
}

impl DiskWait {
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
        self.fills += u32::from(!is_nearly_full(&path));
        if self.fills > FILLS {
            return false;
        }
        // Soon where there is room again, and less and less often where what is left may be enough.
        for _ in 0..2_u32.pow(self.times.min(6)) {
            tokio::select! {
                () = team.closing.cancelled() => break,
                () = stop.cancelled() => break,
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
            if !is_nearly_full(&path) {
                break;
            }
        }
        self.times += 1;
        true
    }
}

/// Bytes without which no agent begins: it would only come to a full disk.
const TO_BEGIN: u64 = 8 * 1024 * 1024;

/// Refuses where there is too little room for an agent of a request to begin: more is wanted after it has met a full
/// disk.
///
/// # Errors
/// With the path that has the least.
pub(super) fn refuse_without_room(team: &Team, id: &RequestId) -> Result<(), FileError> {
    let path = fullest(team);
    let met = team.request(id).is_some_and(|request| request.work.spent.full_disks > 0);
    let is_full = machine::free_bytes(&path).is_ok_and(|free| free < TO_BEGIN);
    if is_full || (met && is_nearly_full(&path)) {
        return Err(no_room(&path));
    }
    Ok(())
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
