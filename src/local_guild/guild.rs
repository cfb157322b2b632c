//! The one guild: its state behind a lock, and the only way to change it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use super::error::{GuildError, Refusal};
use super::event::Event;
use super::faults::Faults;
use super::ids::{Id, Snowflakes};
use super::log::{Blobs, Log};
use super::model::{Attachment, Channel};
use super::payload::Render;
use super::session::Sessions;
use super::state::{Change, State};
use crate::platform::clock;

/// The guild and everything around it that handlers share.
#[derive(Debug)]
pub(crate) struct Guild {
    inner: Mutex<Inner>,
    /// `http://127.0.0.1:port`, without a path.
    pub(crate) base: String,
    /// `ws://127.0.0.1:port`.
    pub(crate) gateway: String,
    pub(crate) blobs: Blobs,
    pub(crate) sessions: Sessions,
    pub(crate) faults: Faults,
    /// Files that people have uploaded and not yet sent.
    pub(crate) uploads: Mutex<HashMap<Id, Attachment>>,
    /// Ends connections that would otherwise stay open.
    pub(crate) closing: CancellationToken,
}

/// The guild, as the handlers of routes are given it.
pub(crate) type GuildState = axum::extract::State<Arc<Guild>>;

#[derive(Debug)]
struct Inner {
    state: State,
    ids: Snowflakes,
    log: Log,
}

/// A change in the making: what it sees, and what it collects.
pub(crate) struct Draft<'a> {
    pub(crate) state: &'a State,
    pub(crate) now: DateTime<Utc>,
    ids: &'a mut Snowflakes,
    changes: Vec<Change>,
    events: Vec<Event>,
}

impl Draft<'_> {
    /// A fresh identifier.
    pub(crate) fn id(&mut self) -> Id {
        self.ids.next(self.now)
    }

    /// Adds an after-image. It is in force once the whole draft is durable.
    pub(crate) fn put(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Changes a channel, and tells those who see it; those who see it only now hear of its threads.
    pub(crate) fn put_channel(&mut self, after: Channel) {
        let id = after.id;
        let newly = |before: &Channel| -> Vec<Id> {
            let bots = self.state.member_bots().into_iter();
            bots.filter(|bot| self.state.sees(*bot, &after) && !self.state.sees(*bot, before))
                .collect()
        };
        let bots = self.state.channels.get(&id).map(newly).unwrap_or_default();
        self.put(Change::Channel(after));
        self.tell(Event::ChannelUpdate(id));
        if !bots.is_empty() {
            self.tell(Event::ThreadSync { channel: id, bots });
        }
    }

    /// Adds something to tell clients.
    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push(event);
    }
}

impl Guild {
    /// Opens the guild, from a folder or empty.
    pub(crate) fn open(
        dir: Option<&Path>,
        port: u16,
        gateway: Option<String>,
    ) -> Result<Guild, GuildError> {
        let mut ids = Snowflakes::default();
        let (log, state) = Log::open(dir, &mut ids)?;
        let blobs = Blobs::open(dir)?;
        // Files of what is gone, and such as were uploaded and never sent. Without a log nothing is known of any.
        if state.guild.is_some() {
            blobs.keep(&state.blobs());
        }
        Ok(Guild {
            inner: Mutex::new(Inner { state, ids, log }),
            base: format!("http://127.0.0.1:{port}"),
            gateway: gateway.unwrap_or_else(|| format!("ws://127.0.0.1:{port}")),
            blobs,
            sessions: Sessions::new(),
            faults: Faults::default(),
            uploads: Mutex::default(),
            closing: CancellationToken::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the state.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock().state)
    }

    /// Renders something from the state, as one viewer sees it.
    pub(crate) fn render<T>(&self, viewer: Option<Id>, make: impl FnOnce(Render<'_>) -> T) -> T {
        let inner = self.lock();
        make(Render { state: &inner.state, base: &self.base, viewer })
    }

    /// Changes the state: all of what `make` collects becomes durable, then takes force, then is
    /// told; or, if it refuses, none of it. The lock is held over the sync (a quarter of a
    /// millisecond), so that the order on disk, in memory and on every wire is one.
    pub(crate) fn change<T>(
        &self,
        make: impl FnOnce(&mut Draft<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut guard = self.lock();
        let Inner { state, ids, log } = &mut *guard;
        let mut draft =
            Draft { state, now: clock::now(), ids, changes: Vec::new(), events: Vec::new() };
        let made = make(&mut draft)?;
        let Draft { changes, events, .. } = draft;
        if !changes.is_empty() {
            log.append(&changes).map_err(Refusal::unkept)?;
        }
        for change in changes {
            state.apply(change, ids);
        }
        if log.is_long() {
            state.forget_interactions(clock::now());
            if let Err(error) = log.rewrite(state) {
                tracing::warn!(%error, "the guild's log stays longer than it has to be");
            }
        }
        for event in events {
            let render = Render { state, base: &self.base, viewer: None };
            if let Some(frame) = event.render(render) {
                self.faults.publish(&self.sessions, &frame);
            }
        }
        Ok(made)
    }

    /// Gives the folder free. A connection that still lingers can change nothing any more.
    pub(crate) fn close(&self) {
        self.lock().log.close();
    }

    /// The state and the feed's newest number, taken at one instant.
    pub(crate) fn with_feed<T>(&self, make: impl FnOnce(Render<'_>, u64) -> T) -> T {
        let inner = self.lock();
        let render = Render { state: &inner.state, base: &self.base, viewer: None };
        make(render, self.sessions.feed.last())
    }
}
