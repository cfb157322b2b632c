//! The transport of one machine: files, put in place by tmp → sync → rename → sync of the folder
//! (`spec/rust.md` C8). It is how another program, or the CLI beside a running team, drops an envelope; the
//! team itself writes the same files as a view of its journal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check;
use super::transport::{Transport, TransportError};
use crate::domain::envelope::{Envelope, Place};
use crate::domain::ids::EnvelopeId;
use crate::domain::role::Role;
use crate::platform::disk::Disk;
use crate::store::{RELAY, relay_folder};

/// The queues of a workspace.
pub struct FileTransport {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    received: BTreeSet<EnvelopeId>,
}

impl FileTransport {
    /// The queues under a workspace's root; its folders are made where they are missing.
    ///
    /// # Errors
    /// Where a folder cannot be made.
    pub fn new(root: &Path, disk: Arc<dyn Disk>) -> Result<Self, TransportError> {
        disk.create_dir(&root.join(RELAY).join("tmp"))?;
        for role in Role::ALL {
            for place in [Place::Inbox, Place::Archive, Place::Dead] {
                disk.create_dir(&root.join(relay_folder(place, role)))?;
            }
        }
        Ok(Self { disk, root: root.to_owned(), received: BTreeSet::new() })
    }

    fn folder(&self, place: Place, role: Role) -> PathBuf {
        self.root.join(relay_folder(place, role))
    }

    fn is_archived(&self, role: Role, name: &str) -> Result<bool, TransportError> {
        let archive = self.folder(Place::Archive, role);
        if self.disk.len(&archive.join(name))?.is_some() {
            return Ok(true);
        }
        for day in self.disk.list(&archive)? {
            if !day.ends_with(".json") && self.disk.len(&archive.join(day).join(name))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Transport for FileTransport {
    fn deliver(&mut self, envelope: &Envelope) -> Result<(), TransportError> {
        let role = envelope.target_role;
        let name = format!("{}.json", envelope.relay_id);
        let inbox = self.folder(Place::Inbox, role);
        let target = inbox.join(&name);
        let mut bytes = serde_json::to_vec_pretty(envelope)?;
        bytes.push(b'\n');
        check::read(&bytes, role)?;
        if self.is_archived(role, &name)? {
            return Ok(());
        }
        if self.disk.len(&target)?.is_none() {
            let temp = self.root.join(RELAY).join("tmp").join(&name);
            self.disk.write(&temp, &bytes)?;
            self.disk.sync(&temp)?;
            self.disk.rename(&temp, &target)?;
        }
        // Also for one that is there already: an earlier try may have failed before this.
        self.disk.sync_dir(&inbox)?;
        Ok(())
    }

    fn receive(&mut self, role: Role) -> Result<Option<Envelope>, TransportError> {
        let inbox = self.folder(Place::Inbox, role);
        let mut oldest: Option<Envelope> = None;
        for name in self.disk.list(&inbox)? {
            let Some(stem) = name.strip_suffix(".json") else {
                continue;
            };
            if EnvelopeId::parse(stem).is_ok_and(|id| self.received.contains(&id)) {
                continue;
            }
            let bytes = match self.disk.read(&inbox.join(&name)) {
                Ok(bytes) => bytes,
                Err(error) if error.is_missing() => continue,
                Err(error) => return Err(error.into()),
            };
            // What is no envelope is the watcher's to bury.
            let Ok(envelope) = check::read(&bytes, role) else {
                continue;
            };
            let arrival = |envelope: &Envelope| (envelope.created_at, envelope.relay_id.clone());
            let known = self.received.contains(&envelope.relay_id);
            if !known && oldest.as_ref().is_none_or(|old| arrival(&envelope) < arrival(old)) {
                oldest = Some(envelope);
            }
        }
        if let Some(envelope) = &oldest {
            self.received.insert(envelope.relay_id.clone());
        }
        Ok(oldest)
    }

    fn ack(&mut self, role: Role, id: &EnvelopeId) -> Result<(), TransportError> {
        let name = format!("{id}.json");
        let inbox = self.folder(Place::Inbox, role);
        let from = inbox.join(&name);
        let bytes = match self.disk.read(&from) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let archive = self.folder(Place::Archive, role);
        let day = match check::read(&bytes, role) {
            Ok(envelope) => archive.join(envelope.created_at.archive_date()),
            Err(_) => archive.clone(),
        };
        self.disk.create_dir(&day)?;
        self.disk.rename(&from, &day.join(&name))?;
        // Lost by a crash it is received once more, which the receiver absorbs; but not kept nowhere.
        self.disk.sync_dir(&day)?;
        self.disk.sync_dir(&archive)?;
        self.disk.sync_dir(&inbox)?;
        Ok(())
    }
}
