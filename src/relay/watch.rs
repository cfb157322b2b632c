//! Files that other programs put into an inbox. Watching is a hint that a scan is due; the scan is the
//! truth, and it is due at the start and after an overflow as well (`spec/rust.md` C3).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{EventKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::check::{self, BadEnvelope, MAX_ENVELOPE_BYTES};
use crate::domain::envelope::{Envelope, EnvelopeFolder};
use crate::domain::ids::EnvelopeId;
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::platform::files;
use crate::store::{StoreError, relay_folder, was_consumed};

/// What a scan found.
#[derive(Debug, Clone, PartialEq)]
pub enum ScanResult {
    /// Another program dropped a valid envelope. It lies in the inbox under its own id, undecided.
    Dropped(Box<Envelope>),
    /// A file that is no envelope; it was moved to `dead/` with its reason beside it.
    Bad {
        /// Where it is now.
        path: PathBuf,
        /// Why.
        reason: BadEnvelope,
    },
    /// An operator moved a dead letter back. It is as it was written, with no attempts and no reason.
    Replayed(Box<Envelope>),
}

/// Why a scan could not be made.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] files::FileError),
    /// The archive could not be searched.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Watching is not possible; scans still are.
    #[error("cannot watch the inboxes: {0} (drops are found at the next start)")]
    Notify(#[from] notify::Error),
}

/// Tells when a scan is due.
pub struct Watcher {
    due: Arc<Notify>,
    _system: RecommendedWatcher,
}

impl Watcher {
    /// Watches the inboxes of a workspace, which an open store has made. The first [`Watcher::changed`]
    /// returns at once, for the scan at the start.
    ///
    /// # Errors
    /// [`WatchError::Notify`] where the system has no watch left.
    pub fn new(root: &Path) -> Result<Self, WatchError> {
        let due = Arc::new(Notify::new());
        due.notify_one();
        let hint = due.clone();
        let mut system =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                if event.map_or(true, |event| matters(&event)) {
                    hint.notify_one();
                }
            })?;
        for role in Role::ALL {
            let folder = root.join(relay_folder(EnvelopeFolder::Inbox, role));
            system.watch(&folder, RecursiveMode::NonRecursive)?;
        }
        Ok(Self { due, _system: system })
    }

    /// Waits until a scan is due. Several hints are one; none is lost between two calls.
    pub async fn changed(&self) {
        self.due.notified().await;
    }
}

/// Whether a file may have come in, or events were lost. Removals are our own doing.
fn matters(event: &notify::Event) -> bool {
    let arrives = matches!(
        event.kind,
        EventKind::Create(_)
            | EventKind::Modify(ModifyKind::Name(
                RenameMode::To | RenameMode::Both | RenameMode::Any
            ))
    );
    event.need_rescan() || (arrives && event.paths.iter().any(|path| is_letter(path)))
}

fn is_letter(path: &Path) -> bool {
    let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == "json")
}

/// Files in the inboxes that are not known, with the inbox that they lie in. What is known is
/// asked for after the look at the folders: one from before would not know what came in meanwhile.
///
/// Some of them may be our own: consumed in the state, and not yet moved on the disk. So: take the
/// candidates, wait for [`Store::settled`](crate::store::Store::settled), then [`examine`] them against
/// the state of that moment.
pub fn candidates(
    root: &Path,
    known: impl FnOnce() -> KnownEnvelopes,
) -> Result<Vec<(Role, PathBuf)>, WatchError> {
    let mut letters = Vec::new();
    for role in Role::ALL {
        let found = files::list(&root.join(relay_folder(EnvelopeFolder::Inbox, role)))?;
        letters.extend(found.into_iter().filter(|path| is_letter(path)).map(|path| (role, path)));
    }
    if !letters.is_empty() {
        let known = known();
        letters.retain(|(role, path)| !known.has(path, *role));
    }
    Ok(letters)
}

/// The open envelopes of a state, and whose inbox each is in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownEnvelopes(BTreeMap<EnvelopeId, Role>);

impl KnownEnvelopes {
    /// Those of a state.
    #[must_use]
    pub fn of(state: &State) -> KnownEnvelopes {
        let envelopes = state.envelopes.iter();
        KnownEnvelopes(envelopes.map(|(id, it)| (id.clone(), it.target_role)).collect())
    }

    fn has(&self, path: &Path, role: Role) -> bool {
        path.file_stem()
            .and_then(|stem| stem.to_str())
            .and_then(|stem| EnvelopeId::parse(stem).ok())
            .and_then(|id| self.0.get(&id))
            .is_some_and(|of| *of == role)
    }
}

/// Looks into the candidates that are still there and still unknown. A bad one is moved to `dead/`, a
/// valid one gets the name of its id.
pub fn examine(
    root: &Path,
    known: &KnownEnvelopes,
    candidates: &[(Role, PathBuf)],
) -> Result<Vec<ScanResult>, WatchError> {
    let mut found = Vec::new();
    for (role, path) in candidates {
        if known.has(path, *role) {
            continue;
        }
        // Whatever is wrong with one file, the others are envelopes all the same.
        let looked = look(root, known, *role, path).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "a file in an inbox cannot be looked at");
            None
        });
        match looked {
            None => {}
            Some(Ok(envelope)) if envelope.place == EnvelopeFolder::Dead => {
                found.push(ScanResult::Replayed(Box::new(fresh(envelope))));
            }
            Some(Ok(envelope)) => found.push(ScanResult::Dropped(Box::new(fresh(envelope)))),
            Some(Err(reason)) => {
                tracing::warn!(path = %path.display(), %reason, "a file in an inbox is no envelope");
                match bury(root, *role, path, &reason) {
                    Ok(path) => found.push(ScanResult::Bad { path, reason }),
                    Err(error) => tracing::warn!(%error, "it stays where it is"),
                }
            }
        }
    }
    Ok(found)
}

/// What the runtime says about an envelope does not come from outside.
fn fresh(envelope: Envelope) -> Envelope {
    Envelope {
        place: EnvelopeFolder::Inbox,
        attempts: 0,
        not_before: None,
        reason: None,
        ..envelope
    }
}

/// `None` where the file is gone by now.
fn look(
    root: &Path,
    known: &KnownEnvelopes,
    role: Role,
    path: &Path,
) -> Result<Option<Result<Envelope, BadEnvelope>>, WatchError> {
    let metadata = match files::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !metadata.is_file() {
        return Ok(Some(Err(BadEnvelope::NoFile)));
    }
    if metadata.len() > MAX_ENVELOPE_BYTES {
        return Ok(Some(Err(BadEnvelope::TooLarge(metadata.len()))));
    }
    let bytes = match files::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Ok(Some(Err(BadEnvelope::Unreadable(error.to_string())))),
    };
    let envelope = match check::read(&bytes, role) {
        Ok(envelope) => envelope,
        Err(reason) => return Ok(Some(Err(reason))),
    };
    let id = &envelope.relay_id;
    let doubled = || Ok(Some(Err(BadEnvelope::Doubled(id.to_string()))));
    if known.0.contains_key(id) || was_consumed(root, role, id)? {
        return doubled();
    }
    let own_name = path.with_file_name(format!("{id}.json"));
    if own_name != path {
        if files::exists(&own_name) {
            return doubled();
        }
        files::rename(path, &own_name)?;
    }
    Ok(Some(Ok(envelope)))
}

/// Moves a bad file to `dead/<role>/<name>-invalid.json`, its reason beside it; returns where it is.
fn bury(root: &Path, role: Role, path: &Path, reason: &BadEnvelope) -> Result<PathBuf, WatchError> {
    let dead = root.join(relay_folder(EnvelopeFolder::Dead, role));
    files::create_dir_all(&dead)?;
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push("-invalid");
    let mut number = 0;
    let (grave, epitaph) = loop {
        let mut free = name.clone();
        if number > 0 {
            free.push(format!("-{number}"));
        }
        let (mut grave, mut epitaph) = (free.clone(), free);
        grave.push(".json");
        epitaph.push(".reason.txt");
        let (grave, epitaph) = (dead.join(grave), dead.join(epitaph));
        if files::symlink_metadata(&grave).is_err() {
            break (grave, epitaph);
        }
        number += 1;
    };
    files::write(&epitaph, format!("{reason}\n"))?;
    files::rename(path, &grave)?;
    Ok(grave)
}
