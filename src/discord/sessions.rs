//! The gateway sessions of our bots, kept in the workspace so that a restart takes them up again.
//!
//! A session is taken up behind the last event that the team has dealt with, never behind one that was
//! merely received: what was under way when the process died is then sent again by Discord, and its doubles
//! are found by their ids. So an event counts as dealt with when the team asks for the fact after it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, mpsc};

use crate::discord::bot::Bot;
use crate::discord::inbound::Inbound;
use crate::domain::ids::{GuildId, UserId};
use crate::domain::role::Role;
use crate::platform::files;

/// Where the sessions lie, below the workspace.
const FOLDER: &str = ".teams_runtime/discord";
/// While events come, the files are written this often at most.
const PAUSE: Duration = Duration::from_secs(2);
/// Interactions remembered; more than one session replays within the minutes that it lives on.
const INTERACTIONS: usize = 256;

/// What a session is taken up from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedSession {
    /// The server and the token it belongs to, see [`fingerprint`].
    pub(crate) of: String,
    /// What the bot asked to hear, as it was granted.
    pub(crate) intents: u64,
    pub(crate) session_id: String,
    /// The last event that the team has dealt with.
    pub(crate) sequence: u64,
    pub(crate) resume_url: Option<String>,
    pub(crate) user: UserId,
    pub(crate) application: u64,
    pub(crate) guilds: Vec<GuildId>,
}

/// One event of one session of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventPosition {
    /// Counts the sessions of a bot: numbers of events begin anew with each.
    pub(crate) life: u64,
    pub(crate) sequence: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    #[serde(default)]
    session: Option<SavedSession>,
    /// The interactions that an earlier build has dealt with.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    interactions: VecDeque<u64>,
    /// Those that this process has heard of.
    #[serde(skip)]
    heard: VecDeque<u64>,
    #[serde(skip)]
    life: u64,
}

#[derive(Debug, Default)]
struct Inner {
    bots: BTreeMap<Bot, Record>,
    changed: BTreeSet<Bot>,
    /// Facts that the team has dealt with.
    settled: u64,
    /// Events, each with the count of facts that had been told when it was through.
    waiting: VecDeque<(u64, Bot, EventPosition)>,
}

impl Inner {
    fn note(&mut self, bot: Bot, mark: EventPosition) {
        let Some(record) = self.bots.get_mut(&bot).filter(|it| it.life == mark.life) else {
            return;
        };
        if let Some(session) = &mut record.session
            && session.sequence < mark.sequence
        {
            session.sequence = mark.sequence;
            self.changed.insert(bot);
        }
    }

    fn settle(&mut self) {
        while let Some((told, bot, mark)) = self.waiting.front().copied()
            && told <= self.settled
        {
            self.waiting.pop_front();
            self.note(bot, mark);
        }
    }
}

/// The sessions of all bots of one team.
#[derive(Debug)]
pub(crate) struct Sessions {
    folder: PathBuf,
    inner: Mutex<Inner>,
    dirty: Notify,
}

/// A name for a token at a server that does not give the token away.
pub(crate) fn fingerprint(server: &str, token: &str) -> String {
    let digest = Sha256::digest(format!("{server}\n{token}"));
    digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

impl Sessions {
    /// The sessions of a workspace. Trouble with its folder costs the sessions and nothing else.
    pub(crate) fn of(workspace: &Path) -> Sessions {
        let folder = workspace.join(FOLDER);
        if let Err(error) = files::create_dir_all(&folder) {
            tracing::warn!(%error, "gateway sessions are not kept");
        }
        Sessions { folder, inner: Mutex::default(), dirty: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, bot: Bot) -> PathBuf {
        self.folder.join(format!("{}.json", bot.map_or("team", Role::as_str)))
    }

    /// Reads what an earlier process left, with the number of its life here.
    pub(crate) fn load(&self, bot: Bot) -> Option<(SavedSession, u64)> {
        let read = files::read_text_if_present(&self.path(bot));
        let text = read.ok().flatten().unwrap_or_default();
        let mut record: Record = serde_json::from_str(&text).unwrap_or_default();
        record.life = 1;
        let kept = record.session.clone();
        self.lock().bots.insert(bot, record);
        kept.map(|kept| (kept, 1))
    }

    /// A session begins; the number of its life.
    pub(crate) fn began(&self, bot: Bot, kept: SavedSession) -> u64 {
        let mut inner = self.lock();
        let record = inner.bots.entry(bot).or_default();
        record.life += 1;
        record.session = Some(kept);
        let life = record.life;
        inner.changed.insert(bot);
        drop(inner);
        self.dirty.notify_one();
        life
    }

    /// A session is over: nothing is taken up from it any more.
    pub(crate) fn ended(&self, bot: Bot) {
        let mut inner = self.lock();
        if let Some(record) = inner.bots.get_mut(&bot)
            && record.session.take().is_some()
        {
            record.life += 1;
            inner.changed.insert(bot);
            self.dirty.notify_one();
        }
    }

    /// An event is through, and these are the facts that were told until now, its own included.
    pub(crate) fn through(&self, told: u64, bot: Bot, mark: EventPosition) {
        let mut inner = self.lock();
        match inner.waiting.back_mut() {
            Some((before, of, newest)) if *before == told && *of == bot => *newest = mark,
            Some(_) | None => inner.waiting.push_back((told, bot, mark)),
        }
        inner.settle();
        if !inner.changed.is_empty() {
            self.dirty.notify_one();
        }
    }

    fn settled(&self, facts: u64) {
        let mut inner = self.lock();
        inner.settled = inner.settled.max(facts);
        inner.settle();
        if !inner.changed.is_empty() {
            self.dirty.notify_one();
        }
    }

    /// Whether an interaction is met for the first time by this process. The team's records say which an earlier one
    /// has carried out.
    pub(crate) fn is_new(&self, bot: Bot, interaction: u64) -> bool {
        let mut inner = self.lock();
        let record = inner.bots.entry(bot).or_default();
        if record.interactions.contains(&interaction) || record.heard.contains(&interaction) {
            return false;
        }
        record.heard.push_back(interaction);
        if record.heard.len() > INTERACTIONS {
            record.heard.pop_front();
        }
        true
    }

    /// Writes what has changed.
    pub(crate) fn flush(&self) {
        let mut inner = self.lock();
        for bot in std::mem::take(&mut inner.changed) {
            let Some(record) = inner.bots.get(&bot) else { continue };
            let text = serde_json::to_vec(record).unwrap_or_default();
            if let Err(error) = files::write_atomic(&self.path(bot), text) {
                tracing::warn!(%error, "a gateway session was not kept");
            }
        }
    }

    /// Writes what changes, for ever.
    pub(crate) async fn keep(&self) {
        loop {
            self.dirty.notified().await;
            self.flush();
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The facts of a link, in order.
#[derive(Debug)]
pub struct Facts {
    inner: mpsc::Receiver<Inbound>,
    sessions: Arc<Sessions>,
    received: u64,
}

impl Facts {
    pub(crate) fn new(inner: mpsc::Receiver<Inbound>, sessions: Arc<Sessions>) -> Facts {
        Facts { inner, sessions, received: 0 }
    }

    /// The next fact; `None` once the link is closed. Asking says that the facts before are dealt with:
    /// whatever they meant is durable.
    pub async fn recv(&mut self) -> Option<Inbound> {
        self.sessions.settled(self.received);
        let fact = self.inner.recv().await?;
        self.received += 1;
        Some(fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(sequence: u64) -> SavedSession {
        SavedSession {
            of: fingerprint("http://x", "t"),
            intents: 1,
            session_id: "s".to_owned(),
            sequence,
            resume_url: None,
            user: UserId(1),
            application: 1,
            guilds: vec![GuildId(2)],
        }
    }

    fn sequence(sessions: &Sessions) -> u64 {
        sessions.lock().bots[&None].session.as_ref().unwrap().sequence
    }

    #[test]
    fn a_session_is_taken_up_behind_what_was_dealt_with() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = Sessions::of(folder.path());
        assert_eq!(sessions.load(None), None);
        let life = sessions.began(None, kept(1));
        let mark = |sequence| EventPosition { life, sequence };
        // Events 2 and 3 mean nothing, 4 means two facts, 5 nothing, 6 one.
        sessions.through(0, None, mark(2));
        sessions.through(0, None, mark(3));
        assert_eq!(sequence(&sessions), 3);
        sessions.through(2, None, mark(4));
        sessions.through(2, None, mark(5));
        sessions.through(3, None, mark(6));
        sessions.settled(1);
        assert_eq!(sequence(&sessions), 3, "one of two facts is dealt with");
        sessions.settled(2);
        assert_eq!(sequence(&sessions), 5);
        sessions.flush();
        let again = Sessions::of(folder.path());
        assert_eq!(again.load(None), Some((kept(5), 1)));
        // What belonged to an earlier session moves nothing in the next.
        let next = sessions.began(None, kept(1));
        sessions.settled(3);
        assert_eq!(sequence(&sessions), 1);
        sessions.through(3, None, EventPosition { life: next, sequence: 2 });
        assert_eq!(sequence(&sessions), 2);
        sessions.ended(None);
        sessions.flush();
        assert_eq!(Sessions::of(folder.path()).load(None), None);
    }

    #[test]
    fn an_interaction_is_met_once_and_a_damaged_file_is_no_session() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = Sessions::of(folder.path());
        assert!(sessions.is_new(None, 7) && !sessions.is_new(None, 7));
        let again = Sessions::of(folder.path());
        assert_eq!(again.load(None), None);
        assert!(again.is_new(None, 7) && again.is_new(Some(Role::Qa), 7));
        files::write(&again.path(None), "{\"interactions\": [8]}").unwrap();
        assert_eq!(again.load(None), None);
        assert!(!again.is_new(None, 8), "an earlier build has dealt with it");
        files::write(&again.path(None), "{\"session\": 5").unwrap();
        assert_eq!(again.load(None), None);
    }

    #[test]
    fn a_fingerprint_tells_tokens_and_servers_apart_and_not_the_token() {
        let one = fingerprint("http://a", "token");
        assert_ne!(one, fingerprint("http://b", "token"));
        assert_ne!(one, fingerprint("http://a", "other"));
        assert!(one.len() == 24 && !one.contains("token"));
    }
}
