//! Reading messages of which a part is unknown.

use serde_json::{Map, Value, json};
use serenity::model::channel::Message as Payload;

use crate::discord::endpoints::message_id;
use crate::domain::ids::MessageId;

/// What the model may stumble over and the team never reads.
const DECORATIONS: [&str; 10] = [
    "components",
    "poll",
    "reactions",
    "sticker_items",
    "interaction",
    "interaction_metadata",
    "thread",
    "activity",
    "application",
    "role_subscription_data",
];

/// The name that a file had with its sender. Discord makes underscores of letters that are not English, and
/// keeps the name, without its ending, as a title, which the model does not know.
pub(super) fn name_in_full(file: &mut Value) {
    let Some(title) = file["title"].as_str().filter(|it| !it.is_empty()) else { return };
    let ending = file["filename"].as_str().and_then(|name| name.rsplit_once('.'));
    let full = ending.map_or_else(|| title.to_owned(), |(_, ending)| format!("{title}.{ending}"));
    file["filename"] = Value::String(full);
}

/// Reads a message. What people write must not be lost because of something that the model does not know,
/// so a second look leaves decorations out, and a third takes nothing but what the team reads.
pub(super) fn read_message(data: &Value) -> Option<Payload> {
    let mut data = data.clone();
    let name_all = |message: &mut Value| {
        let files = message.get_mut("attachments").and_then(Value::as_array_mut);
        files.into_iter().flatten().for_each(name_in_full);
    };
    name_all(&mut data);
    let forwarded = data.get_mut("message_snapshots").and_then(Value::as_array_mut);
    forwarded.into_iter().flatten().filter_map(|it| it.get_mut("message")).for_each(name_all);
    let data = &data;
    if let Ok(message) = serde_json::from_value(data.clone()) {
        return Some(message);
    }
    let mut plain = data.clone();
    undecorate(&mut plain);
    let forwarded = plain.get_mut("message_snapshots").and_then(Value::as_array_mut);
    for snapshot in forwarded.into_iter().flatten() {
        if let Some(message) = snapshot.get_mut("message") {
            undecorate(message);
        }
    }
    if let Ok(message) = serde_json::from_value(plain) {
        return Some(message);
    }
    match serde_json::from_value(bare(data)) {
        Ok(message) => {
            tracing::warn!(message = message_id(data), "message read without most of its fields");
            Some(message)
        }
        Err(error) => {
            tracing::warn!(%error, message = message_id(data), "message does not parse");
            None
        }
    }
}

fn undecorate(message: &mut Value) {
    let Some(fields) = message.as_object_mut() else { return };
    for decoration in DECORATIONS {
        fields.remove(decoration);
    }
    fields.insert("embeds".to_owned(), Value::Array(Vec::new()));
}

pub(super) fn unreadable(kind: &str) {
    tracing::warn!(kind, "event does not parse");
}

/// The fields that the team reads, each as the model wants it, or left out.
fn bare(data: &Value) -> Value {
    let mut bare = Map::new();
    for key in ["id", "channel_id", "guild_id", "webhook_id", "application_id"] {
        if let Some(id) = id(data, key) {
            bare.insert(key.to_owned(), json!(id));
        }
    }
    let timestamp = |key: &str| {
        let text = data.get(key).and_then(Value::as_str)?;
        chrono::DateTime::parse_from_rfc3339(text).ok().map(|_| json!(text))
    };
    let written = MessageId(message_id(data)).written_at().to_string();
    bare.insert("timestamp".to_owned(), timestamp("timestamp").unwrap_or(json!(written)));
    if let Some(edited) = timestamp("edited_timestamp") {
        bare.insert("edited_timestamp".to_owned(), edited);
    }
    bare.insert("author".to_owned(), person(data.get("author").unwrap_or(&Value::Null)));
    let content = data.get("content").and_then(Value::as_str).unwrap_or_default();
    bare.insert("content".to_owned(), json!(content));
    let list = |key: &str| data.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let people: Vec<Value> =
        list("mentions").iter().map(person).filter(|it| it["id"].is_string()).collect();
    bare.insert("mentions".to_owned(), json!(people));
    let roles = |list: Vec<Value>| list.into_iter().filter(Value::is_string).collect::<Vec<_>>();
    bare.insert("mention_roles".to_owned(), json!(roles(list("mention_roles"))));
    let files: Vec<Value> = list("attachments").iter().filter_map(file).collect();
    bare.insert("attachments".to_owned(), json!(files));
    if let Some(member) = data.get("member") {
        let had = member.get("roles").and_then(Value::as_array).cloned().unwrap_or_default();
        let nick = member.get("nick").and_then(Value::as_str);
        let member =
            json!({"roles": roles(had), "nick": nick, "deaf": false, "mute": false, "flags": 0});
        bare.insert("member".to_owned(), member);
    }
    let kind = data.get("type").and_then(Value::as_u64).filter(|kind| *kind < 256).unwrap_or(0);
    bare.insert("type".to_owned(), json!(kind));
    for (key, value) in [
        ("tts", json!(false)),
        ("mention_everyone", json!(false)),
        ("pinned", json!(false)),
        ("embeds", json!([])),
    ] {
        bare.insert(key.to_owned(), value);
    }
    Value::Object(bare)
}

fn id(data: &Value, key: &str) -> Option<String> {
    let text = data.get(key)?.as_str()?;
    text.parse::<u64>().is_ok_and(|id| id > 0).then(|| text.to_owned())
}

fn person(data: &Value) -> Value {
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    json!({
        "id": id(data, "id"), "username": text("username").unwrap_or_default(),
        "global_name": text("global_name"), "discriminator": "0000", "avatar": null,
        "bot": data.get("bot").and_then(Value::as_bool) == Some(true),
    })
}

fn file(data: &Value) -> Option<Value> {
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let url = text("url")?;
    let size = data.get("size").and_then(Value::as_u64).filter(|size| *size <= u64::from(u32::MAX));
    Some(json!({
        "id": id(data, "id")?, "filename": text("filename")?, "size": size?, "url": url,
        "proxy_url": url,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Value {
        json!({
            "id": "1034567890123456789", "channel_id": "5", "guild_id": "6", "type": 0,
            "author": {"id": "7", "username": "mina", "discriminator": "0", "avatar": null},
            "content": "please", "timestamp": "2026-03-24T00:00:00Z", "edited_timestamp": null,
            "tts": false, "mention_everyone": false, "mentions": [], "mention_roles": ["8"],
            "attachments": [], "embeds": [], "pinned": false,
        })
    }

    #[test]
    fn whatever_part_is_unknown_the_words_are_read() {
        let strange = [json!(null), json!(-1), json!("x"), json!({"a": 1}), json!([[1]])];
        let keys: Vec<String> = message().as_object().unwrap().keys().cloned().collect();
        for key in keys {
            for value in &strange {
                let mut data = message();
                data[&key] = value.clone();
                let read = read_message(&data);
                if matches!(key.as_str(), "id" | "channel_id" | "author") {
                    assert!(read.is_none(), "{key} = {value} says not who wrote what where");
                    continue;
                }
                let read = read.unwrap_or_else(|| panic!("{key} = {value}"));
                assert!(key == "content" || read.content == "please", "{key} = {value}");
                assert_eq!(read.author.id.get(), 7);
            }
        }
        let mut more = message();
        for key in ["components", "poll", "thread", "from_tomorrow", "member", "reactions"] {
            more[key] = json!({"strange": [1, {"type": 99}]});
        }
        more["attachments"] =
            json!([{"id": "9"}, {"id": "9", "filename": "a", "size": 1, "url": "u"}]);
        let read = read_message(&more).unwrap();
        assert_eq!((read.content.as_str(), read.attachments.len()), ("please", 1));
        assert_eq!(read.mention_roles.len(), 1);
    }
}
