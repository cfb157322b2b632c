//! What ended long ago makes room: it is packed, packs that are older still go, and so does work that was not used. Looked
//! for at the start, and then at most once a day, when a request has ended.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::team::{Team, now};
use crate::domain::attachment::ATTACHMENTS;
use crate::domain::effect::EffectKind;
use crate::domain::ids::RequestId;
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::git::{GitError, NOT_KEPT};
use crate::platform::files::{self, FileError};
use crate::platform::tasks;
use crate::store::{self, PackReport, Retention, StoreError};
use crate::workspace::documents::{SNAPSHOT, sources};

/// A day, in seconds.
const DAY: u64 = 86_400;

#[derive(Debug, thiserror::Error)]
enum RetentionError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    File(#[from] FileError),
}

/// Looks for what is old until the team closes.
pub(super) async fn keep(team: Arc<Team>) {
    loop {
        let looked = now();
        let (look, stop) = (Arc::clone(&team), team.closing.clone());
        match tasks::blocking(move || make_room(&look, looked, &|| !stop.is_cancelled())).await {
            Ok(Ok((PackReport { requests: 0, files: 0, packs_removed: 0 }, 0))) => {}
            Ok(Ok((PackReport { requests, files, packs_removed }, forgotten))) => {
                tracing::info!(requests, files, packs_removed, forgotten, "old history was packed");
            }
            Ok(Err(error)) => tracing::warn!(%error, "old history stays until the next look"),
            Err(error) => tracing::warn!(%error, "old history stays until the next look"),
        }
        loop {
            tokio::select! {
                () = team.closing.cancelled() => return,
                () = team.signals.ended.notified() => {}
            }
            // A clock that was set back looks like no time at all.
            if now().seconds_since(looked) >= DAY || now() < looked {
                break;
            }
        }
    }
}

/// Files and folders for one landing, and for one call of a filter, begin so; after so many days nobody needs them.
const LEFT_BY_GIT: [&str; 2] = ["stage-", "index-"];
const LEFT_DAYS: u64 = 14;

/// Folders of calls of programs that a stop has cut off begin so.
const CUT_OFF: [&str; 2] = ["gh-", "discover-"];
/// And those of registered actions end so.
const ACTION: &str = ".run";

/// Removes what nobody has written to since an instant.
fn remove_older(
    folder: &Path,
    before: Timestamp,
    is_meant: impl Fn(&str) -> bool,
) -> Result<(), FileError> {
    for path in files::list(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Another may have removed it, and a link may lead nowhere.
        let modified = files::symlink_metadata(&path).ok().and_then(|it| it.modified().ok());
        let is_old = modified.is_some_and(|at| Timestamp::new(at.into()) < before);
        if !is_old || !is_meant(&name) {
            continue;
        }
        match path.is_dir() && !path.is_symlink() {
            true => files::remove_dir_all(&path)?,
            false => files::remove_file(&path)?,
        }
    }
    Ok(())
}

/// The instant of the look before that was believed, and of the first one since that was not, in milliseconds.
const LOOKED: &str = "retention.looked";
/// Days without a look after which a clock is not believed at once, and hours after which it is.
const BELIEVED_DAYS: u64 = 30;
const DOUBT_HOURS: u64 = 20;

/// Whether an instant is near the look before, which it takes the place of. What goes does not come back, and a machine
/// may begin with a clock that is far ahead: then a look most of a day later decides.
fn is_believed(state_dir: &Path, now: Timestamp) -> Result<bool, FileError> {
    let file = state_dir.join(LOOKED);
    let text = files::read_text_if_present(&file)?.unwrap_or_default();
    let mut known = text.lines().map_while(|line| line.parse().ok().map(Timestamp::from_millis));
    let (before, doubted) = (known.next(), known.next());
    let is_near = before.is_none_or(|before| now.seconds_since(before) <= BELIEVED_DAYS * DAY);
    let lasts = |doubted: Timestamp| {
        (DOUBT_HOURS * 3_600..=BELIEVED_DAYS * DAY).contains(&now.seconds_since(doubted))
    };
    let believed = is_near || doubted.is_some_and(lasts);
    let next = match (before, doubted) {
        (Some(before), Some(doubted)) if !believed && now.seconds_since(doubted) < DAY => {
            format!("{}\n{}\n", before.millis(), doubted.min(now).millis())
        }
        (Some(before), _) if !believed => format!("{}\n{}\n", before.millis(), now.millis()),
        (_, _) => format!("{}\n", now.millis()),
    };
    files::write_durable(&file, next)?;
    Ok(believed)
}

fn make_room(
    team: &Team,
    now: Timestamp,
    goes_on: &dyn Fn() -> bool,
) -> Result<(PackReport, usize), RetentionError> {
    if !is_believed(&team.workspace.state_dir(), now)? {
        tracing::warn!(
            "nobody has looked for old history for over {BELIEVED_DAYS} days by the clock: what is old goes at the next look"
        );
        return Ok((PackReport::default(), 0));
    }
    let rules = &team.workspace.runtime.retention;
    let ago = |days: u64| {
        let millis = i64::try_from(days.saturating_mul(DAY * 1_000)).unwrap_or(i64::MAX);
        Timestamp::from_millis(now.millis().saturating_sub(millis))
    };
    // Held as those are who move refs: what ends meanwhile is looked at the next time.
    let one = team.git.blocking_lock();
    let mut open: BTreeSet<RequestId> =
        team.hub.read(|state| state.requests.keys().cloned().collect());
    let branches = team.project.forget_branches(ago(rules.branches_days.get()), &open);
    let branches = branches.unwrap_or_else(|error| {
        // Such as a branch of the project that is gone; the rest has its time all the same.
        tracing::warn!(%error, "old branches stay until the next look");
        0
    });
    let unmerged = team.project.requests_with_commits()?;
    open.extend(unmerged.iter().cloned());
    let forgotten = team.project.forget_lost(ago(rules.lost_days.get()), &open)?;
    // What a landing or a filter that was cut off has left, and what could not be kept in git.
    let is_of_git = |name: &str| LEFT_BY_GIT.iter().any(|it| name.starts_with(it));
    let (own, lost) = (team.project.common_dir().join("teams"), team.worktrees().join(NOT_KEPT));
    let left = remove_older(&own, ago(LEFT_DAYS), is_of_git)
        .and_then(|()| remove_older(&lost, ago(rules.lost_days.get()), |_| true));
    if let Err(error) = left {
        tracing::warn!(%error, "what was left behind stays until the next look");
    }
    // What is packed has ended, and moves no ref.
    drop(one);
    if let Err(error) = team.project.pack_loose() {
        tracing::warn!(%error, "git packs nothing of the project");
    }
    let operations = team.workspace.state_dir().join("operations");
    let state = team.hub.read(State::clone);
    let is_told = |id: &str| {
        let is_it = |kind: &EffectKind| matches!(kind, EffectKind::Action { operation_id, .. } if operation_id.as_str() == id);
        !state.effects.values().any(|effect| is_it(&effect.kind))
    };
    let is_left = |name: &str| {
        CUT_OFF.iter().any(|it| name.starts_with(it))
            || name.strip_suffix(ACTION).is_some_and(is_told)
    };
    remove_older(&operations, ago(1), is_left)?;
    let logs = team.root().join("logs/operations");
    remove_older(&logs, ago(rules.packs_days.get()), |name| name.ends_with(".log"))?;
    let is_over = |name: &str| {
        let id = name.strip_suffix(SNAPSHOT).and_then(|id| id.parse::<RequestId>().ok());
        id.is_some_and(|id| !open.contains(&id))
    };
    for role in Role::ALL {
        remove_older(&team.root().join(sources(role)), ago(rules.files_days.get()), is_over)?;
    }
    let attachments = team.root().join(ATTACHMENTS);
    match named(team, &state, ago(rules.files_days.get()), &unmerged) {
        Ok(named) => {
            remove_older(&attachments, ago(rules.packs_days.get()), |it| !named.contains(it))?;
        }
        Err(error) => tracing::warn!(%error, "the files that people sent stay"),
    }
    let rules = Retention {
        ended_before: ago(rules.files_days.get()),
        packs_before: ago(rules.packs_days.get()),
        packs_bytes: rules.packs_mb.get().saturating_mul(1_000_000),
        unmerged,
    };
    Ok((team.store.pack_history(now, &rules, goes_on)?, branches + forgotten))
}

/// All that names files of people which are still wanted: what is open, what ended after an instant, and whose work has not
/// landed.
fn named(
    team: &Team,
    open: &State,
    since: Timestamp,
    unmerged: &BTreeSet<RequestId>,
) -> Result<String, RetentionError> {
    let mut ended = store::requests_ended_since(team.root(), since)?;
    for id in unmerged {
        ended.extend(store::read_request(team.root(), id)?);
    }
    let mut named = serde_json::to_string(open).map_err(StoreError::from)?;
    named.extend(ended.iter().flat_map(|request| &request.artifacts).map(String::as_str));
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_far_ahead_of_the_look_before_is_not_believed_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let hour = |hour: i64| Timestamp::from_millis(hour * 3_600_000);
        for (now, believed) in [
            (2_400, true),
            (3_100, true),
            (90_000, false),
            // Also not by starting again.
            (90_001, false),
            // It was put right.
            (3_110, true),
            // Nobody looked for two months.
            (4_600, false),
            (4_624, true),
            (4_625, true),
        ] {
            assert_eq!(is_believed(folder.path(), hour(now)).unwrap(), believed, "{now}");
        }
    }

    #[test]
    fn only_what_is_meant_and_old_goes() {
        let folder = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000);
        for name in ["a.log", "b.log", "c.json"] {
            let path = folder.path().join(name);
            files::write(&path, "x").unwrap();
            if name != "b.log" {
                files::set_modified(&path, old).unwrap();
            }
        }
        let before = Timestamp::from_millis(2_000_000);
        remove_older(folder.path(), before, |name| name.ends_with(".log")).unwrap();
        let left: Vec<_> = files::list(folder.path()).unwrap();
        let left: Vec<_> = left.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(left, ["b.log", "c.json"]);
        remove_older(&folder.path().join("none"), before, |_| true).unwrap();
    }
}
