//! Reading without owning: the journal is replayed in memory and nothing is changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::StoreError;
use super::history::{self, is_written_since};
use super::index::Index;
use super::layout;
use super::load::{self, Tail, TailEnd};
use crate::domain::change::Change;
use crate::domain::envelope::EnvelopeFolder;
use crate::domain::ids::{EnvelopeId, RequestId};
use crate::domain::item::Item;
use crate::domain::record::{self, AnyRecord, RUNTIME, Record};
use crate::domain::request::{Request, RequestEvent};
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::platform::disk::{Disk, RealDisk};
use crate::platform::files;

/// How often reading begins anew where a running team made a checkpoint meanwhile.
const ATTEMPTS: usize = 5;

/// The state of a workspace, read without a lock. Changes nothing.
pub fn read_only(root: &Path) -> Result<State, StoreError> {
    read_only_from(&(Arc::new(RealDisk) as Arc<dyn Disk>), root)
}

pub(super) fn read_only_from(disk: &Arc<dyn Disk>, root: &Path) -> Result<State, StoreError> {
    Ok(steadily(&**disk, root, || load::load_state(disk, root))?.0)
}

/// Reads the state of a workspace again and again while its team goes on: of the journal no more than what is new is
/// decoded.
pub struct StateReader {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    last: Option<LastRead>,
}

/// What was read last.
struct LastRead {
    /// The checkpoint that it grew from.
    checkpoint: Option<u64>,
    state: State,
    end: Option<TailEnd>,
}

impl std::fmt::Debug for StateReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateReader").field("root", &self.root).finish_non_exhaustive()
    }
}

impl StateReader {
    /// Reads the workspace at `root`, once it is asked to.
    #[must_use]
    pub fn new(root: &Path) -> StateReader {
        StateReader::on(Arc::new(RealDisk), root)
    }

    pub(super) fn on(disk: Arc<dyn Disk>, root: &Path) -> StateReader {
        StateReader { disk, root: root.to_owned(), last: None }
    }

    /// The state as it is now, as [`read_only`] has it.
    ///
    /// # Errors
    /// Those of [`read_only`].
    pub fn read(&mut self) -> Result<&State, StoreError> {
        let mut last = self.last.take();
        let last = match last.take_if(|last| self.reads_on(last)) {
            Some(last) => last,
            None => self.whole()?,
        };
        Ok(&self.last.insert(last).state)
    }

    fn whole(&self) -> Result<LastRead, StoreError> {
        let (disk, root) = (&self.disk, &self.root);
        steadily(&**disk, root, || {
            let checkpoint = checkpoint(&**disk, root)?;
            let (state, end) = load::load_state(disk, root)?;
            Ok(LastRead { checkpoint, state, end })
        })
    }

    /// Brings what was read last up to now; whether that was possible.
    fn reads_on(&self, last: &mut LastRead) -> bool {
        let Some(end) = &mut last.end else { return false };
        let is_on =
            |now: Result<Option<u64>, StoreError>| now.is_ok_and(|it| it == last.checkpoint);
        let (disk, root) = (&*self.disk, &self.root);
        // Behind a checkpoint its segment may be another one of the same name.
        is_on(checkpoint(disk, root))
            && end.read_on(disk, root, &mut last.state).unwrap_or(false)
            && is_on(checkpoint(disk, root))
    }
}

/// The last entry that the checkpoint has.
fn checkpoint(disk: &dyn Disk, root: &Path) -> Result<Option<u64>, StoreError> {
    Ok(Index::read(disk, root)?.map(|index| index.seq))
}

/// Repeats a reading during which the checkpoint changed.
fn steadily<T>(
    disk: &dyn Disk,
    root: &Path,
    read: impl Fn() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let seq = || checkpoint(disk, root);
    let mut before = seq()?;
    for _ in 1..ATTEMPTS {
        let outcome = read();
        let after = seq()?;
        // What is being written while it is read may look broken.
        let is_torn = matches!(outcome, Err(StoreError::Corrupt { .. }));
        if before == after && !is_torn {
            return outcome;
        }
        before = after;
    }
    read()
}

fn tail(root: &Path) -> Result<Tail, StoreError> {
    let index = Index::read(&RealDisk, root)?;
    load::read_tail(&RealDisk, root, index.map(|index| index.seq))
}

/// A record of this version or an older one; `None` where it does not read.
fn record<R: Record + Clone>(bytes: &[u8]) -> Option<R> {
    let value = serde_json::from_slice(bytes).ok()?;
    record::decode(value).ok().map(Arc::unwrap_or_clone)
}

fn present(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match RealDisk.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// One request, open, ended or packed; `None` where there is none.
///
/// # Errors
/// [`StoreError::Encode`] where its file does not parse.
pub fn read_request(root: &Path, id: &RequestId) -> Result<Option<Request>, StoreError> {
    steadily(&RealDisk, root, || {
        if let Some(request) = load::last_image(&tail(root)?, id) {
            return Ok(Some(request));
        }
        let path = layout::request(id);
        let bytes = match present(&root.join(&path))? {
            Some(bytes) => Some(bytes),
            None => history::packed(&RealDisk, root, &path)?,
        };
        let decoded = bytes.map(|bytes| record::decode(serde_json::from_slice(&bytes)?));
        let request = decoded
            .transpose()
            .map_err(|error| StoreError::Encode { reason: error.to_string() })?;
        Ok(request.map(Arc::unwrap_or_clone))
    })
}

/// The ended requests whose record changed at `since` or later, oldest end first. Of the finished ones only
/// names and times of the files are looked at, and those that were written since are read.
///
/// # Errors
/// Whatever the disk reports; a file that does not parse is left out.
pub fn requests_ended_since(root: &Path, since: Timestamp) -> Result<Vec<Request>, StoreError> {
    steadily(&RealDisk, root, || ended_since(root, since))
}

fn ended_since(root: &Path, since: Timestamp) -> Result<Vec<Request>, StoreError> {
    let mut found = std::collections::BTreeMap::new();
    // First the journal: what leaves it meanwhile for a file is found there.
    for (_, entry) in tail(root)?.entries {
        for change in entry.changes {
            if let Some(request) = change.saved_request() {
                found.insert(request.request_id.clone(), Request::clone(request));
            }
        }
    }
    let folder = root.join(format!("{RUNTIME}/requests"));
    for path in files::list(&folder)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name.filter(|it| !it.starts_with('.') && it.ends_with(".json")) else {
            continue;
        };
        let known = name.strip_suffix(".json").and_then(|id| RequestId::parse(id).ok());
        if known.is_none_or(|id| found.contains_key(&id))
            || !is_written_since(&RealDisk, &path, since)?
        {
            continue;
        }
        if let Some(request) = present(&path)?.and_then(|bytes| record::<Request>(&bytes)) {
            found.insert(request.request_id.clone(), request);
        }
    }
    let mut all: Vec<Request> = found
        .into_values()
        .filter(|request| request.status.is_terminal() && request.ended() >= since)
        .collect();
    all.sort_by_key(|request| (request.ended(), request.request_id.clone()));
    Ok(all)
}

/// The history of a request, oldest first. Lines that do not parse are left out.
pub fn read_events(root: &Path, id: &RequestId) -> Result<Vec<RequestEvent>, StoreError> {
    steadily(&RealDisk, root, || {
        let path = layout::events(id);
        let mut content = lines_of(root, id)?.unwrap_or_default();
        let mut cut = false;
        let mut events = Vec::new();
        for (_, entry) in &tail(root)?.entries {
            if let Some(base) = entry.base.get(&path).filter(|_| !cut) {
                cut = true;
                content.truncate(usize::try_from(*base).unwrap_or(usize::MAX));
            }
            for change in &entry.changes {
                if let Change::Event(request, event) = change
                    && request == id
                {
                    events.push(event.clone());
                }
            }
        }
        let mut all = parsed(&content);
        all.append(&mut events);
        Ok(all)
    })
}

/// The same by the owner of the workspace, once its store has settled: then the files show everything, and the
/// journal need not be read.
pub fn read_settled_events(root: &Path, id: &RequestId) -> Result<Vec<RequestEvent>, StoreError> {
    Ok(parsed(&lines_of(root, id)?.unwrap_or_default()))
}

/// The record whose file lies here below the folder of the runtime, by the owner of the workspace once its store has
/// settled; `None` where there is none.
///
/// # Errors
/// [`StoreError::Encode`] where its file does not parse.
pub fn read_settled<R: Record + Clone>(root: &Path, path: &str) -> Result<Option<R>, StoreError> {
    let path = format!("{RUNTIME}/{path}");
    let bytes = match present(&root.join(&path))? {
        Some(bytes) => Some(bytes),
        None => history::packed(&RealDisk, root, &path)?,
    };
    let decoded = bytes.map(|bytes| record::decode(serde_json::from_slice(&bytes)?)).transpose();
    let decoded = decoded.map_err(|error| StoreError::Encode { reason: error.to_string() })?;
    Ok(decoded.map(Arc::unwrap_or_clone))
}

/// The file of a request's history, packed or not.
fn lines_of(root: &Path, id: &RequestId) -> Result<Option<Vec<u8>>, StoreError> {
    let path = layout::events(id);
    match present(&root.join(&path))? {
        Some(lines) => Ok(Some(lines)),
        None => history::packed(&RealDisk, root, &path),
    }
}

fn parsed(lines: &[u8]) -> Vec<RequestEvent> {
    let lines = lines.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Whether an envelope with this id was consumed by this role before.
pub fn was_consumed(root: &Path, role: Role, id: &EnvelopeId) -> Result<bool, StoreError> {
    let archive = root.join(layout::relay_folder(EnvelopeFolder::Archive, role));
    let name = format!("{id}.json");
    // Older workspaces have no folder a day.
    if RealDisk.len(&archive.join(&name))?.is_some() {
        return Ok(true);
    }
    for day in RealDisk.list(&archive)? {
        if RealDisk.len(&archive.join(day).join(&name))?.is_some() {
            return Ok(true);
        }
    }
    let folder = layout::relay_folder(EnvelopeFolder::Archive, role);
    history::was_consumed(&RealDisk, root, &folder, &name, id.written_at())
}

/// Every backlog item, also those that are done, dropped or carried on, in the order of their ids.
/// Records that do not parse are left out. This reads all of them: it is for people who ask.
pub fn backlog_items(root: &Path) -> Result<Vec<Item>, StoreError> {
    steadily(&RealDisk, root, || {
        let folder = root.join(format!("{RUNTIME}/backlog"));
        let mut found = std::collections::BTreeMap::new();
        for name in RealDisk.list(&folder)? {
            if name.starts_with('.') || !name.ends_with(".json") {
                continue;
            }
            let bytes = present(&folder.join(name))?;
            let item = bytes.and_then(|bytes| record::<Item>(&bytes));
            found.extend(item.map(|item| (item.backlog_id.clone(), item)));
        }
        for (_, entry) in tail(root)?.entries {
            for change in entry.changes {
                if let Change::Save(AnyRecord::Backlog(item)) = change {
                    found.insert(item.backlog_id.clone(), Arc::unwrap_or_clone(item));
                }
            }
        }
        Ok(found.into_values().collect())
    })
}

/// Whether a process owns the workspace just now.
#[must_use]
pub fn is_owned(root: &Path) -> bool {
    files::is_locked(&root.join(layout::LOCK))
}

/// Whether a service of the older runtime holds the workspace.
#[must_use]
pub fn is_owned_by_older(root: &Path) -> bool {
    let agents = root.join(RUNTIME).join("agents");
    let held = |role: Role| files::is_locked(&agents.join(role.as_str()).join("service.lock"));
    !is_owned(root) && Role::ALL.into_iter().any(held)
}
