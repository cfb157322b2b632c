//! What a bot asks for over its open connection: a list of members, another presence.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::event::Event;
use super::guild::Guild;
use super::ids::Id;
use super::session::Session;

/// Activities that one bot may show.
const ACTIVITIES: usize = 5;

/// A connection has ended; with a session's last one its bot is not seen any more.
pub(super) fn gone(guild: &Guild, session: &Session) {
    if session.connected.fetch_sub(1, Ordering::SeqCst) == 1 {
        show(guild, session.user, &json!({"status": "offline"}));
    }
}

/// What a bot shows from now on; `sent` is what it asked for, and nothing means that it is there.
pub(super) fn presence(guild: &Guild, session: &Session, sent: Value) {
    show(guild, session.user, &sent);
    *session.shown.lock().unwrap_or_else(PoisonError::into_inner) = sent;
}

fn show(guild: &Guild, user: Id, sent: &Value) {
    let status = match sent["status"].as_str() {
        Some(status @ ("idle" | "dnd")) => status,
        Some("invisible" | "offline") => "offline",
        Some(_) | None => "online",
    };
    let sent = sent["activities"].as_array().into_iter().flatten().take(ACTIVITIES);
    let activities: Vec<Value> = sent
        .filter(|it| it["name"].is_string())
        .enumerate()
        .map(|(at, it)| {
            let short = |name: &str| {
                let text = it[name].as_str().map(|text| text.chars().take(128).collect::<String>());
                json!(text)
            };
            json!({
                "id": at.to_string(), "name": short("name"), "state": short("state"),
                "type": it["type"].as_u64().unwrap_or(0), "created_at": user.time().timestamp_millis(),
            })
        })
        .collect();
    let shown = json!({
        "status": status, "activities": activities,
        "client_status": if status == "offline" { json!({}) } else { json!({"web": status}) },
    });
    guild.sessions.show(user, shown.clone());
    let told = guild.change(|draft| {
        draft.tell(Event::Presence { user, shown });
        Ok(())
    });
    if let Err(error) = told {
        tracing::warn!(%error, "could not tell what a bot shows");
    }
}

/// Answers a request for members with one chunk.
pub(super) fn members(guild: &Guild, session: &Session, data: &Value) {
    guild.render(None, |render| {
        let wanted: Option<Vec<Id>> = match &data["user_ids"] {
            Value::Null => None,
            one @ (Value::String(_) | Value::Number(_)) => {
                serde_json::from_value(one.clone()).ok().map(|id| vec![id])
            }
            list @ (Value::Array(_) | Value::Bool(_) | Value::Object(_)) => {
                serde_json::from_value(list.clone()).ok()
            }
        };
        let prefix = data["query"].as_str().unwrap_or_default();
        let limit = match data["limit"].as_u64() {
            Some(0) | None => usize::MAX,
            Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        let found: Vec<Value> = render
            .state
            .members()
            .filter(|user| match &wanted {
                Some(ids) => ids.contains(&user.id),
                None => user.name.starts_with(prefix),
            })
            .take(limit)
            .map(|user| render.member(user, true))
            .collect();
        let missing: Vec<Id> = wanted
            .unwrap_or_default()
            .into_iter()
            .filter(|id| !render.state.members().any(|it| it.id == *id))
            .collect();
        let mut chunk = json!({
            "guild_id": render.state.guild.as_ref().map(|meta| meta.id), "members": found,
            "chunk_index": 0, "chunk_count": 1, "not_found": missing,
        });
        if data["nonce"].is_string() {
            chunk["nonce"] = data["nonce"].clone();
        }
        session.send("GUILD_MEMBERS_CHUNK", &chunk);
    });
}
