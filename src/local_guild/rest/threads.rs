//! Threads and who is in them.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::body::EmptyReply;
use super::body::{At, Bot, Payload, QueryParameters};
use crate::local_guild::error::{JsonReply, Refusal};
use crate::local_guild::event::Event;
use crate::local_guild::guild::{Guild, GuildState};
use crate::local_guild::ids::Id;
use crate::local_guild::model::{
    Author, Channel, ChannelKind, Message, MessageKind, Reference, Thread,
};
use crate::local_guild::right;
use crate::local_guild::state::Change;

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/channels/{channel}/messages/{message}/threads", post(from_message))
        .route("/channels/{channel}/threads", post(alone))
        .route("/channels/{channel}/thread-members", get(members))
        .route("/channels/{channel}/thread-members/{user}", put(join).delete(leave).get(member))
        .route("/guilds/{guild}/threads/active", get(active))
        .route("/channels/{channel}/threads/archived/public", get(archived))
        .route("/channels/{channel}/threads/archived/private", get(archived_private))
        .route("/channels/{channel}/users/@me/threads/archived/private", get(archived_joined))
}

/// Threads that go into the archive at once at the most: each is an event to everybody.
const ARCHIVED_AT_ONCE: usize = 100;

/// Puts threads in which nothing is written any more into the archive, so that what a login brings does not grow
/// with what has been talked about.
pub(crate) fn archive_silent(guild: &Guild) {
    let archived = guild.change(|draft| {
        let silent = draft.state.silent_threads(draft.now).take(ARCHIVED_AT_ONCE);
        for mut channel in silent.cloned().collect::<Vec<_>>() {
            let Some(thread) = channel.thread_mut() else { continue };
            thread.archived = true;
            thread.archive_changed = draft.now;
            draft.tell(Event::ThreadUpdate(channel.id));
            draft.put(Change::Channel(channel));
        }
        Ok(())
    });
    if let Err(error) = archived {
        tracing::warn!(%error, "threads stay open longer than they have to be");
    }
}

/// Minutes of silence after which a thread is archived.
pub(crate) fn auto_archive(payload: &Payload) -> Result<Option<u32>, Refusal> {
    let sent = payload.get("auto_archive_duration").filter(|it| !it.is_null());
    let Some(sent) = sent else { return Ok(None) };
    let minutes = sent.as_u64().and_then(|it| u32::try_from(it).ok());
    minutes.filter(|it| [60, 1440, 4320, 10_080].contains(it)).map(Some).ok_or_else(|| {
        let text = "Value must be one of {60, 1440, 4320, 10080}.";
        Refusal::invalid("auto_archive_duration", "BASE_TYPE_CHOICES", text)
    })
}

/// Starts a thread, from a message or on its own.
pub(crate) fn start(
    guild: &Guild,
    user: Id,
    parent: Id,
    message: Option<Id>,
    payload: &Payload,
) -> Result<Id, Refusal> {
    let name = payload.name("name", 100)?;
    let minutes = auto_archive(payload)?.unwrap_or(1440);
    archive_silent(guild);
    guild.change(|draft| {
        match draft.state.channel_for(parent, user)?.kind {
            ChannelKind::Text { .. } => {}
            ChannelKind::Category { .. } | ChannelKind::Dm { .. } | ChannelKind::Thread(_) => {
                return Err(Refusal::WrongChannelType);
            }
        }
        // By itself it is private where its type is not said.
        let private =
            message.is_none() && payload.get("type").and_then(Value::as_u64).unwrap_or(12) == 12;
        let needed =
            if private { right::CREATE_PRIVATE_THREADS } else { right::CREATE_PUBLIC_THREADS };
        draft.state.may(user, parent, needed)?;
        let id = match message {
            // A thread has the id of the message it starts from, so there is at most one.
            Some(message) => {
                draft.state.message(parent, message)?;
                if draft.state.channels.contains_key(&message) {
                    return Err(Refusal::ThreadExists);
                }
                message
            }
            None => draft.id(),
        };
        let thread = Thread {
            parent,
            owner: user,
            private,
            archived: false,
            locked: false,
            auto_archive: minutes,
            archive_changed: draft.now,
            members: BTreeSet::from([user]),
        };
        let announced = message.is_none() && !thread.private;
        draft.put(Change::Channel(Channel::new(id, name.clone(), ChannelKind::Thread(thread))));
        draft.tell(Event::ThreadCreate(id));
        if announced {
            let author = Author::User { id: user };
            let kind = MessageKind::ThreadCreated;
            let mut note = Message::blank(draft.id(), parent, author, kind);
            note.content = name;
            note.reference = Some(Reference { channel: id, message: None });
            let note_id = note.id;
            draft.put(Change::Message(Box::new(note)));
            draft.tell(Event::MessageCreate { channel: parent, id: note_id });
        } else if let Some(message) = message {
            // The message now says that it has a thread.
            draft.tell(Event::MessageUpdate { channel: parent, id: message });
        }
        Ok(id)
    })
}

fn created(guild: &Guild, id: Id) -> Result<(StatusCode, Json<Value>), Refusal> {
    guild.render(None, |render| {
        Ok((StatusCode::CREATED, Json(render.channel(render.state.channel(id)?))))
    })
}

async fn from_message(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message)): At<(Id, Id)>,
    payload: Payload,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    created(&guild, start(&guild, bot, channel, Some(message), &payload)?)
}

async fn alone(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
    payload: Payload,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    created(&guild, start(&guild, bot, channel, None, &payload)?)
}

fn person(text: &str, me: Id) -> Result<Id, Refusal> {
    if text == "@me" { Ok(me) } else { text.parse().map_err(|_| Refusal::UnknownUser) }
}

/// Takes someone into a thread or out of it.
fn set_member(guild: &Guild, bot: Id, channel: Id, user: Id, inside: bool) -> EmptyReply {
    guild.change(|draft| {
        draft.state.user(user)?;
        // Taking somebody else out is for those who manage threads.
        let needed = if inside || user == bot { 0 } else { right::MANAGE_THREADS };
        let mut place = draft.state.may(bot, channel, needed)?.clone();
        let thread = place.thread_mut().ok_or(Refusal::WrongChannelType)?;
        if thread.archived {
            return Err(Refusal::ThreadArchived);
        }
        let changed =
            if inside { thread.members.insert(user) } else { thread.members.remove(&user) };
        if changed {
            draft.put(Change::Channel(place));
            let (added, removed) =
                if inside { (vec![user], Vec::new()) } else { (Vec::new(), vec![user]) };
            draft.tell(Event::ThreadMembers { thread: channel, added, removed });
        }
        Ok(StatusCode::NO_CONTENT)
    })
}

async fn join(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, user)): At<(Id, String)>,
) -> EmptyReply {
    set_member(&guild, bot, channel, person(&user, bot)?, true)
}

async fn leave(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, user)): At<(Id, String)>,
) -> EmptyReply {
    set_member(&guild, bot, channel, person(&user, bot)?, false)
}

async fn member(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, user)): At<(Id, String)>,
) -> JsonReply {
    let user = person(&user, bot)?;
    guild.render(None, |render| {
        let place = render.state.channel_for(channel, bot)?;
        let thread = place.thread().ok_or(Refusal::WrongChannelType)?;
        if !thread.members.contains(&user) {
            return Err(Refusal::UnknownMember);
        }
        Ok(Json(render.thread_member(channel, user)))
    })
}

async fn members(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
) -> Result<Json<Vec<Value>>, Refusal> {
    guild.render(None, |render| {
        let place = render.state.channel_for(channel, bot)?;
        let thread = place.thread().ok_or(Refusal::WrongChannelType)?;
        Ok(Json(thread.members.iter().map(|id| render.thread_member(channel, *id)).collect()))
    })
}

/// A page of threads, as every list of them is answered.
struct Page<'a> {
    parent: Option<Id>,
    wanted: &'a dyn Fn(&Thread) -> bool,
    /// Only what went into the archive, or was made, before this time.
    before: Option<DateTime<Utc>>,
    limit: usize,
}

impl Page<'_> {
    fn show(&self, guild: &Guild, bot: Id) -> Json<Value> {
        guild.render(None, |render| {
            let moment = |it: &Channel| it.thread().map(|thread| thread.archive_changed);
            let mut threads: Vec<&Channel> = render
                .state
                .threads(self.parent)
                .filter(|it| render.state.sees(bot, it))
                .filter(|it| it.thread().is_some_and(self.wanted))
                .filter(|it| self.before.is_none_or(|end| moment(it).is_some_and(|at| at < end)))
                .collect();
            threads.sort_by_key(|it| std::cmp::Reverse((moment(it), it.id)));
            let more = threads.len() > self.limit;
            threads.truncate(self.limit);
            let joined = |it: &&&Channel| it.thread().is_some_and(|it| it.members.contains(&bot));
            let members = threads.iter().filter(joined).map(|it| render.thread_member(it.id, bot));
            Json(json!({
                "threads": threads.iter().map(|it| render.channel(it)).collect::<Vec<_>>(),
                "members": members.collect::<Vec<_>>(), "has_more": more,
            }))
        })
    }
}

async fn active(State(guild): GuildState, Bot(bot): Bot, At(id): At<Id>) -> JsonReply {
    guild.read(|state| state.check_member(id, bot).map(|_| ()))?;
    let wanted = |thread: &Thread| !thread.archived;
    let page = Page { parent: None, wanted: &wanted, before: None, limit: usize::MAX };
    Ok(page.show(&guild, bot))
}

fn archive(
    guild: &Guild,
    bot: Id,
    channel: Id,
    asked: &QueryParameters,
    wanted: &dyn Fn(&Thread) -> bool,
) -> JsonReply {
    let wanted = |thread: &Thread| thread.archived && wanted(thread);
    let limit = asked.count("limit", 50, 100)?;
    let before = asked.time("before")?;
    Ok(Page { parent: Some(channel), wanted: &wanted, before, limit }.show(guild, bot))
}

async fn archived(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
    asked: QueryParameters,
) -> JsonReply {
    guild.read(|state| state.may(bot, channel, right::READ_MESSAGE_HISTORY).map(|_| ()))?;
    archive(&guild, bot, channel, &asked, &|thread| !thread.private)
}

async fn archived_private(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
    asked: QueryParameters,
) -> JsonReply {
    let needed = right::MANAGE_THREADS | right::READ_MESSAGE_HISTORY;
    guild.read(|state| state.may(bot, channel, needed).map(|_| ()))?;
    archive(&guild, bot, channel, &asked, &|thread| thread.private)
}

async fn archived_joined(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
    asked: QueryParameters,
) -> JsonReply {
    guild.read(|state| state.may(bot, channel, right::READ_MESSAGE_HISTORY).map(|_| ()))?;
    archive(&guild, bot, channel, &asked, &|thread| thread.private && thread.members.contains(&bot))
}

#[cfg(test)]
mod tests {
    use chrono::Duration;

    use super::*;

    #[test]
    fn what_is_silent_goes_into_the_archive_and_nothing_else() {
        let guild = Guild::open(None, 0, None).unwrap();
        let begin = |days_ago: i64| {
            let made = crate::platform::clock::now() - Duration::days(days_ago);
            let thread = Thread {
                parent: Id::at(made),
                owner: Id::at(made),
                private: false,
                archived: false,
                locked: false,
                auto_archive: 10_080,
                archive_changed: made,
                members: BTreeSet::new(),
            };
            let id = Id::at(made);
            let made = guild.change(|draft| {
                draft.put(Change::Channel(Channel::new(id, "x", ChannelKind::Thread(thread))));
                Ok(())
            });
            made.unwrap();
            id
        };
        let [silent, young, woken, written] = [8, 6, 9, 10].map(begin);
        guild
            .change(|draft| {
                let mut channel = draft.state.channel(woken)?.clone();
                channel.thread_mut().unwrap().archive_changed = draft.now;
                draft.put(Change::Channel(channel));
                let author = Author::User { id: woken };
                let kind = MessageKind::ThreadCreated;
                let message = Message::blank(draft.id(), written, author, kind);
                draft.put(Change::Message(Box::new(message)));
                Ok(())
            })
            .unwrap();
        let open = || {
            guild.read(|state| {
                let threads = state.threads(None);
                let open = threads.filter(|it| it.thread().is_some_and(|thread| !thread.archived));
                open.map(|it| it.id).collect::<BTreeSet<_>>()
            })
        };
        assert!(open().contains(&silent));
        archive_silent(&guild);
        assert_eq!(open(), BTreeSet::from([young, woken, written]));
    }
}
