//! Looking back: what was written while nobody listened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::inbound::tell;
use super::team::{LookBackState, Team};
use crate::discord::TakenMessage;
use crate::domain::event::Event;
use crate::domain::ids::{ChannelId, GuildId, MessageId, UserId};
use crate::domain::request::Request;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::standing;
use crate::platform::files::{self, FileError};
use crate::platform::tasks;
use crate::workspace::LOOK_BACK_FILE;

/// How long Discord is left alone that did not tell of all channels.
const LOOK_AGAIN: Duration = Duration::from_secs(120);

impl Team {
    /// Asks for what was missed.
    pub(super) async fn begin_look_back(self: Arc<Self>) {
        tokio::select! {
            () = catch_up(&self) => {}
            () = self.closing.cancelled() => {}
        }
    }

    /// Everything that was asked for was told. What Discord did not tell of is asked for again after a while.
    pub(super) async fn end_look_back(self: Arc<Self>) {
        let (is_whole, reads) = {
            let state = self.look_back_state();
            (state.is_whole, state.reads.clone())
        };
        let root = self.root().to_owned();
        let noted = tasks::blocking(move || match is_whole {
            true => files::remove_file(&root.join(LOOK_BACK_FILE)),
            false => LookBack::extend(&root, reads),
        });
        if !matches!(noted.await, Ok(Ok(()))) {
            tracing::warn!("the next look back goes further back than it has to");
        }
        if is_whole || std::mem::replace(&mut self.look_back_state().is_planned, true) {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => {
                self.look_back_state().is_planned = false;
                self.begin_look_back().await;
            }
            () = self.closing.cancelled() => {}
        }
    }

    fn look_back_state(&self) -> MutexGuard<'_, LookBackState> {
        self.look_back.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look back under way. Noted before anything is read, because what is read, or comes meanwhile, moves the marks that
/// the next one would go by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LookBack {
    /// From when on everything has to be looked for.
    since: Timestamp,
    /// The channels that were read before it, each up to its mark.
    known: BTreeSet<ChannelId>,
}

impl LookBack {
    /// What has to be looked for: this, and what one before it had to find that did not come to its end.
    fn noted(self, root: &Path) -> Result<LookBack, FileError> {
        let file = root.join(LOOK_BACK_FILE);
        let all = match LookBack::read(&file)? {
            Some(before) => LookBack { since: before.since.min(self.since), ..before },
            None => self,
        };
        all.write(&file)?;
        Ok(all)
    }

    /// These were read as well now, each up to its mark.
    fn extend(root: &Path, reads: BTreeSet<ChannelId>) -> Result<(), FileError> {
        let file = root.join(LOOK_BACK_FILE);
        let Some(mut noted) = LookBack::read(&file)? else { return Ok(()) };
        noted.known.extend(reads);
        noted.write(&file)
    }

    fn read(file: &Path) -> Result<Option<LookBack>, FileError> {
        let text = files::read_text_if_present(file)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    fn write(&self, file: &Path) -> Result<(), FileError> {
        files::write_durable(file, serde_json::to_string(self).unwrap_or_default())
    }
}

/// Asks for what was written while nobody listened: in the channels that were read before from where
/// that ended, in the others from when the team was last there. What is older was not said to it.
async fn catch_up(team: &Arc<Team>) {
    let mut marks: BTreeMap<ChannelId, MessageId> = team.hub.read(|state| {
        let read = state.channels.values().map(|mark| (mark.channel_id, mark.watermark));
        // A room in which nobody has written yet: a thread on a message has the message's id, so
        // everything in it comes after that.
        let open = state.rooms.iter().filter(|(_, id)| state.requests.contains_key(*id));
        let rooms = open.map(|(room, _)| (*room, MessageId(room.0)));
        rooms.chain(read).collect()
    });
    // The team was there when the latest of these was written. A look back may have been cut short: a day more.
    let latest = marks.values().max().map_or(team.born, |latest| team.born.max(*latest));
    let away = latest.written_at().day_before();
    let look_back = LookBack { since: away, known: marks.keys().copied().collect() };
    let (root, wanted) = (team.root().to_owned(), look_back.clone());
    let noted = tasks::blocking(move || wanted.noted(&root)).await;
    let LookBack { since: away, known } = match noted {
        Ok(Ok(all)) => all,
        failed => {
            tracing::warn!(?failed, "a look back that is cut short may not be made up for");
            look_back
        }
    };
    let unread = team.born.max(MessageId::at(away));
    let homes = team.hub.consult(|_, policy| policy.guilds.clone());
    let mut listed: BTreeSet<ChannelId> = BTreeSet::new();
    let (mut all, mut is_whole) = (!homes.is_empty(), true);
    for guild in &homes {
        let found = team.link.text_channels(*guild, away).await;
        all &= found.is_all;
        is_whole &= found.is_whole;
        listed.extend(found.channels);
    }
    for channel in &listed {
        marks.entry(*channel).or_insert(unread);
    }
    if all {
        for thread in team.hub.read(|state| archived(state, &homes, &listed, MessageId::at(away))) {
            marks.remove(&thread);
        }
    }
    // A first direct message: only of those who are named, because a bot can ask for nobody else's channel.
    let (takes_dms, people) = team.hub.consult(|_, policy| {
        let named = policy.rights.values().flat_map(|holders| holders.users.iter().copied());
        (policy.dm, named.collect::<BTreeSet<UserId>>())
    });
    if takes_dms {
        let found = team.link.direct_channels(&people).await;
        is_whole &= found.is_whole;
        for channel in found.channels {
            marks.entry(channel).or_insert(unread);
        }
        // Only now it is known whose bot writes in which of them.
        if team.hub.read(|state| standing::refused(state).next().is_some())
            && let Err(error) = tell(team, Event::ChannelsChanged).await
        {
            tracing::debug!(%error, "what was refused is tried again by the next start");
        }
    }
    // In the others somebody has written since, and what came before that was not read.
    for (_, mark) in marks.iter_mut().filter(|(channel, _)| !known.contains(channel)) {
        *mark = unread.min(*mark);
    }
    let taken = team.hub.read(|state| {
        let open = state.requests.values().filter(|it| !it.status.is_terminal());
        open.flat_map(|request| taken_by(request)).collect()
    });
    {
        let mut state = team.look_back_state();
        (state.is_whole, state.reads) = (is_whole, marks.keys().copied().collect());
    }
    team.link.catch_up(&marks, &taken);
}

/// The threads of these servers, rooms or not, that went into the archive before the team was last there, or are gone:
/// there is nothing new in them, and they grow in number with time.
fn archived(
    state: &State,
    homes: &BTreeSet<GuildId>,
    listed: &BTreeSet<ChannelId>,
    away: MessageId,
) -> Vec<ChannelId> {
    // A private one in which somebody wrote of late may be in the archive and not listed.
    let marked = state.channels.values().filter(|mark| mark.watermark < away);
    let marked = marked.filter(|mark| mark.guild_id.is_some_and(|guild| homes.contains(&guild)));
    let is_open =
        |room: &ChannelId| state.rooms.get(room).is_some_and(|id| state.requests.contains_key(id));
    let threads = state.rooms.keys().copied().chain(marked.map(|mark| mark.channel_id));
    threads.filter(|thread| !listed.contains(thread) && !is_open(thread)).collect()
}

/// The messages that a request hangs on.
fn taken_by(request: &Request) -> Vec<(MessageId, TakenMessage)> {
    let conversation = &request.conversation;
    let asked = conversation.reply_route.channel_id;
    // One that is several requests now is not one of them.
    let first = conversation.reply_route.message_id.filter(|_| request.params.parts.len() != 1);
    let first = asked.zip(first).map(|(channel, id)| (id, TakenMessage { channel, is_sure: true }));
    let room = conversation.place();
    let words = request.params.followups.iter().filter_map(|words| {
        let (id, is_sure) = (words.message_id?, words.channel_id.is_some());
        Some((id, TakenMessage { channel: words.channel_id.or(room)?, is_sure }))
    });
    // Words that only ask for its end are nothing that a role reads.
    let end = request.params.end_question.iter();
    let end = end.map(|it| (it.message_id, TakenMessage { channel: it.channel_id, is_sure: true }));
    words.chain(first).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::change::{Change, ChannelMark};

    #[test]
    fn a_look_back_that_did_not_end_is_made_up_for() {
        let root = tempfile::tempdir().unwrap();
        files::create_dir_all(&root.path().join(".teams_runtime")).unwrap();
        let note = |since, known: &[u64]| {
            let known = known.iter().map(|id| ChannelId(*id)).collect();
            LookBack { since: Timestamp::from_millis(since), known }
        };
        let first = note(5_000, &[1]);
        assert_eq!(first.clone().noted(root.path()).unwrap(), first);
        assert_eq!(note(9_000, &[1, 2]).noted(root.path()).unwrap(), first, "the marks have moved");
        assert_eq!(note(4_000, &[1, 2]).noted(root.path()).unwrap(), note(4_000, &[1]));
        LookBack::extend(root.path(), [ChannelId(2)].into()).unwrap();
        assert_eq!(note(9_000, &[]).noted(root.path()).unwrap(), note(4_000, &[1, 2]), "once");
        files::remove_file(&root.path().join(LOOK_BACK_FILE)).unwrap();
        assert_eq!(note(9_000, &[1, 2]).noted(root.path()).unwrap(), note(9_000, &[1, 2]));
    }

    #[test]
    fn threads_in_the_archive_are_not_read_and_direct_channels_are() {
        let mut state = State::default();
        for (channel, guild) in [(1, Some(7)), (2, Some(7)), (3, None), (4, Some(8))] {
            state.apply(&Change::Channel(ChannelMark {
                channel_id: ChannelId(channel),
                guild_id: guild.map(GuildId),
                watermark: MessageId(50),
                recent: Vec::new(),
                idle: BTreeMap::new(),
                refused: BTreeMap::new(),
            }));
        }
        let (homes, listed) = (BTreeSet::from([GuildId(7)]), BTreeSet::from([ChannelId(1)]));
        assert_eq!(archived(&state, &homes, &listed, MessageId(40)), []);
        assert_eq!(archived(&state, &homes, &listed, MessageId(60)), [ChannelId(2)]);
    }
}
