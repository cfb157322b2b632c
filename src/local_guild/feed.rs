//! What the page reads: the whole picture once, then events as they come.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event as Sse, KeepAlive, Sse as Stream};
use futures_util::stream;
use serde_json::{Value, json};

use super::caller::Caller;
use super::error::{JsonReply, Refusal};
use super::guild::{Guild, GuildState};
use super::ids::Id;
use super::model::ChannelKind;
use super::payload;
use super::rest::body::QueryParameters;

/// Everything but messages, as one person sees it. `feed` is where to go on following.
pub(crate) async fn state(
    State(guild): GuildState,
    caller: Caller,
    asked: QueryParameters,
) -> JsonReply {
    let epoch = guild.sessions.epoch.clone();
    guild.with_feed(|mut render, number| {
        let state = render.state;
        let me = caller.person(state, asked.text("user"))?;
        render.viewer = Some(me);
        let people: Vec<Value> = state
            .members()
            .map(|user| {
                let mut value = payload::user(user);
                value["roles"] = json!(user.roles);
                value
            })
            .collect();
        let reachable = |it: &&super::model::Channel| state.sees(me, it);
        let channels: Vec<Value> = state
            .channels
            .values()
            .filter(reachable)
            .filter(|it| match &it.kind {
                ChannelKind::Dm { recipients } => {
                    recipients.iter().filter_map(|id| state.users.get(id)).any(|it| it.bot)
                }
                ChannelKind::Text { .. }
                | ChannelKind::Category { .. }
                | ChannelKind::Thread(_) => true,
            })
            .map(|it| render.channel(it))
            .collect();
        let presences = guild.sessions.presences().into_iter();
        let presences: serde_json::Map<String, Value> =
            presences.map(|(user, shown)| (user.to_string(), shown)).collect();
        let commands: Vec<Value> = state.commands.values().map(payload::command).collect();
        Ok(Json(json!({
            "epoch": epoch, "feed": number, "me": me, "guild": render.guild(), "users": people,
            "channels": channels, "commands": commands, "presences": presences,
        })))
    })
}

/// Events after `after`, as server-sent events. `RESET` tells the page to read the picture again:
/// the server was restarted, or the page was away for too long.
pub(crate) async fn events(
    State(guild): GuildState,
    caller: Caller,
    headers: axum::http::HeaderMap,
    asked: QueryParameters,
) -> Result<Stream<impl stream::Stream<Item = Result<Sse, Infallible>>>, Refusal> {
    let me = guild.read(|state| caller.person(state, asked.text("user")))?;
    let epoch = guild.sessions.epoch.clone();
    // A browser that reconnects names the last event it saw, which is further than its address says.
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let position = |text: &str| {
        let (run, number) = text.split_once('.')?;
        (run == epoch).then(|| number.parse::<u64>().ok())?
    };
    let from = last.or(asked.text("after")).and_then(position);
    let followed = stream::unfold(Follow { guild, me, from, epoch, ended: false }, next);
    Ok(Stream::new(stream::StreamExt::flat_map(followed, stream::iter))
        .keep_alive(KeepAlive::default()))
}

struct Follow {
    guild: Arc<Guild>,
    me: Id,
    /// The number seen last; `None` asks for a reset.
    from: Option<u64>,
    epoch: String,
    ended: bool,
}

async fn next(mut follow: Follow) -> Option<(Vec<Result<Sse, Infallible>>, Follow)> {
    if follow.ended {
        return None;
    }
    let guild = Arc::clone(&follow.guild);
    let mut head = guild.sessions.feed.watch();
    loop {
        head.mark_unchanged();
        let found = match follow.from {
            Some(from) => guild.sessions.feed.after(from).ok(),
            None => None,
        };
        let Some(found) = found else {
            follow.ended = true;
            return Some((vec![Ok(Sse::default().data("{\"t\":\"RESET\"}"))], follow));
        };
        if let Some((number, _)) = found.last() {
            follow.from = Some(*number);
            let mine = found.iter().filter(|(_, text)| meant_for(follow.me, &guild, text));
            let events = mine
                .map(|(number, text)| {
                    Ok(Sse::default().id(format!("{}.{number}", follow.epoch)).data(&**text))
                })
                .collect();
            return Some((events, follow));
        }
        tokio::select! {
            changed = head.changed() => changed.ok()?,
            () = guild.closing.cancelled() => return None,
        }
    }
}

/// Whether one person may see an event: others' private answers and direct conversations are not
/// theirs.
fn meant_for(me: Id, guild: &Guild, text: &str) -> bool {
    let Ok(event) = serde_json::from_str::<Value>(text) else {
        return false;
    };
    if let Some(only) = event["only"].as_str() {
        return only == me.to_string();
    }
    let place = match event["t"].as_str() {
        // The page has no use for these, and a token stands in some.
        Some("INTERACTION_CREATE" | "WEBHOOKS_UPDATE" | "THREAD_LIST_SYNC") => return false,
        Some("THREAD_DELETE") => &event["d"]["parent_id"],
        Some(name) if name.starts_with("CHANNEL_") || name.starts_with("THREAD_") => {
            let own = &event["d"]["channel_id"];
            if own.is_null() { &event["d"]["id"] } else { own }
        }
        Some(_) | None => &event["d"]["channel_id"],
    };
    let channel = serde_json::from_value::<Id>(place.clone());
    guild.read(|state| match channel.ok().and_then(|id| state.channels.get(&id)) {
        Some(found) => state.sees(me, found),
        None => true,
    })
}
