//! The people's side of interactions: what a person presses, types and fills in. Under `/_local`:
//!
//! | path | JSON sent |
//! |---|---|
//! | `POST click` | `channel, message, custom_id, [values]` for a button or a menu |
//! | `POST slash` | `channel, command, [options, bot, nonce]`; files by upload id |
//! | `POST complete` | as `slash`, one option with `focused`; suggestions come as `CHOICES` on the feed |
//! | `POST context` | `channel, command, type, target, [bot]`: 2 for a person, 3 for a message there |
//! | `POST modal` | `interaction, values` by custom id, and `custom_id` of the dialog if wished |
//!
//! Each answers `{"interaction": id}`, and takes the person's `locale` as well, and the `session` of their client,
//! which comes back with what opens there. With `forged`, `click`
//! and `modal` send what an attacker's own client would: custom ids and values that nobody offered.

use std::sync::{Arc, PoisonError};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::caller::Caller;
use super::error::{JsonReply, Refusal};
use super::guild::{Guild, GuildState};
use super::ids::Id;
use super::limits::inputs;
use super::model::{Attachment, Command, EPHEMERAL, InteractionKind};
use super::payload::{self, Render};
use super::people::{needed, place};
use super::rest::body::Payload;
use super::rest::interactions::{self, Asker};
use super::state::State as World;

/// The routes of this file, below `/_local`.
pub(crate) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/click", post(click))
        .route("/slash", post(slash))
        .route("/complete", post(complete))
        .route("/context", post(context))
        .route("/modal", post(modal))
}

/// Whether the person's client is an attacker's.
fn forged(payload: &Payload) -> bool {
    payload.get("forged").and_then(Value::as_bool) == Some(true)
}

/// Who does it, with the language and the name of their client.
fn person(user: Id, payload: &Payload) -> Asker {
    let locale = payload.text("locale").unwrap_or("en-US").to_owned();
    let session = payload.text("session").filter(|it| it.len() <= 100).map(str::to_owned);
    let nonce = payload.text("nonce").filter(|it| it.len() <= 100).map(str::to_owned);
    Asker { user, locale, session, nonce }
}

/// The objects behind chosen ids, each kind under its name, as clients look them up.
struct ResolvedObjects<'a> {
    render: Render<'a>,
    found: Map<String, Value>,
}

impl ResolvedObjects<'_> {
    fn put(&mut self, kind: &str, id: Id, value: Value) {
        let kind = self.found.entry(kind).or_insert_with(|| json!({}));
        kind[id.to_string()] = value;
    }

    /// A person, with their membership beside them.
    fn user(&mut self, id: Id) -> bool {
        let Some(user) = self.render.state.users.get(&id) else {
            return false;
        };
        let mut member = self.render.member(user, false);
        member["permissions"] = json!(self.render.state.rights(id, None).to_string());
        self.put("users", id, payload::user(user));
        self.put("members", id, member);
        true
    }

    fn role(&mut self, id: Id) -> bool {
        let Some(role) = self.render.state.roles.get(&id) else {
            return false;
        };
        self.put("roles", id, payload::role(role));
        true
    }

    fn channel(&mut self, id: Id, viewer: Id) -> bool {
        let Some(channel) = self.render.state.channels.get(&id) else {
            return false;
        };
        let mut value = self.render.channel(channel);
        let rights = self.render.state.rights(viewer, Some(channel));
        value["permissions"] = json!(rights.to_string());
        self.put("channels", id, value);
        true
    }
}

fn unknown(field: &str) -> Refusal {
    Refusal::invalid(field, "UNKNOWN", "There is no such thing to choose.")
}

/// What a menu's chosen values stand for; refuses values that are not its own.
fn chosen(
    render: Render<'_>,
    menu: &Value,
    values: &[String],
    viewer: Id,
) -> Result<Value, Refusal> {
    let bound = |name: &str| menu[name].as_u64().unwrap_or(1);
    let count = values.len() as u64;
    if count < bound("min_values") || count > bound("max_values") {
        let text =
            format!("{} to {} values are expected.", bound("min_values"), bound("max_values"));
        return Err(Refusal::invalid("values", "BASE_TYPE_BAD_LENGTH", text));
    }
    let mut resolved = ResolvedObjects { render, found: Map::new() };
    for value in values {
        let id = value.parse::<Id>();
        let known = match (menu["type"].as_u64(), id) {
            (Some(3), _) => {
                let mut options = menu["options"].as_array().into_iter().flatten();
                options.any(|option| option["value"] == value.as_str())
            }
            (Some(5), Ok(id)) => resolved.user(id),
            (Some(6), Ok(id)) => resolved.role(id),
            (Some(7), Ok(id)) => resolved.user(id) || resolved.role(id),
            (Some(8), Ok(id)) => resolved.channel(id, viewer),
            (_, _) => false,
        };
        if !known {
            return Err(unknown("values"));
        }
    }
    Ok(Value::Object(resolved.found))
}

async fn click(State(guild): GuildState, caller: Caller, payload: Payload) -> JsonReply {
    let (user, channel, message) = place(&guild, &caller, &payload)?;
    let message = needed(message)?;
    let custom_id = payload.name("custom_id", 100)?;
    let values: Option<Vec<String>> = match payload.get("values").filter(|it| !it.is_null()) {
        None => None,
        Some(list) => Some(serde_json::from_value(list.clone()).map_err(|_| unknown("values"))?),
    };
    let (application, data) = guild.render(None, |render| {
        let found = render.state.message(channel, message)?;
        if forged(&payload) {
            let application = found.author.application().ok_or(Refusal::UnknownUser)?;
            let mut data = json!({"component_type": 2, "custom_id": custom_id, "id": 1});
            if let Some(values) = &values {
                data["component_type"] = json!(3);
                data["values"] = json!(values);
            }
            return Ok((application, data));
        }
        let rows = found.components.iter().filter_map(|row| row["components"].as_array());
        let component = rows
            .flatten()
            .find(|it| it["custom_id"] == custom_id.as_str() && it["disabled"] != true)
            .ok_or_else(|| Refusal::invalid("custom_id", "UNKNOWN", "No such button."))?;
        let application = found.author.application().ok_or(Refusal::UnknownUser)?;
        let mut data = json!({
            "component_type": component["type"], "custom_id": custom_id, "id": component["id"],
        });
        if component["type"] != 2 {
            let values = values.unwrap_or_default();
            let resolved = chosen(render, component, &values, user)?;
            data["values"] = json!(values);
            if resolved != json!({}) {
                data["resolved"] = resolved;
            }
        }
        Ok::<_, Refusal>((application, data))
    })?;
    let kind = InteractionKind::Component { data, message };
    let id = interactions::start(&guild, person(user, &payload), channel, application, kind)?;
    Ok(Json(json!({"interaction": id})))
}

/// The uploaded files that the options of a command name, also those of its subcommands.
fn files_of(guild: &Guild, options: &Value) -> Result<Vec<Attachment>, Refusal> {
    let mut found = Vec::new();
    for option in options.as_array().into_iter().flatten() {
        if option["type"] == 11 {
            let id = option["value"].as_str().and_then(|id| id.parse::<Id>().ok());
            let uploads = guild.uploads.lock().unwrap_or_else(PoisonError::into_inner);
            let file = id.and_then(|id| uploads.get(&id).cloned());
            found.push(file.ok_or_else(|| {
                Refusal::invalid("options", "UNKNOWN_FILE", "Upload the file first.")
            })?);
        }
        found.extend(files_of(guild, &option["options"])?);
    }
    Ok(found)
}

/// Looks up what options name: people, roles, channels. What is half typed may name nothing yet.
fn look_up(resolved: &mut ResolvedObjects<'_>, options: &Value, viewer: Id) -> Result<(), Refusal> {
    for option in options.as_array().into_iter().flatten() {
        look_up(resolved, &option["options"], viewer)?;
        let id = option["value"].as_str().and_then(|id| id.parse::<Id>().ok());
        let known = match (option["type"].as_u64(), id) {
            (Some(6), Some(id)) => resolved.user(id),
            (Some(7), Some(id)) => resolved.channel(id, viewer),
            (Some(8), Some(id)) => resolved.role(id),
            (Some(9), Some(id)) => resolved.user(id) || resolved.role(id),
            (Some(6..=9), None) => false,
            (_, _) => true,
        };
        if !known && option["focused"] != true {
            return Err(unknown("options"));
        }
    }
    Ok(())
}

/// The command that a person means, of the wire's type: 1 is a slash command, 2 and 3 stand in the menus
/// of people and messages. Several bots may have one of one name; `bot` then says whose is meant.
fn named<'a>(world: &'a World, payload: &Payload, kind: u64) -> Result<&'a Command, Refusal> {
    let name = payload.name("command", 32)?;
    let bot = payload.text("bot");
    let meant = |id: Id| match (bot, world.users.get(&id)) {
        (None, _) => true,
        (Some(name), Some(user)) => user.name == name,
        (Some(_), None) => false,
    };
    let found = world.commands.values().find(|it| {
        it.body.get("name").and_then(Value::as_str) == Some(name.as_str())
            && it.kind() == kind
            && meant(it.application)
    });
    found.ok_or(Refusal::UnknownCommand)
}

/// What every command tells of itself.
fn told(command: &Command, resolved: ResolvedObjects<'_>) -> Value {
    let mut data =
        json!({"id": command.id, "name": command.body.get("name"), "type": command.kind()});
    if !resolved.found.is_empty() {
        data["resolved"] = Value::Object(resolved.found);
    }
    if let Some(guild) = command.guild {
        data["guild_id"] = json!(guild);
    }
    data
}

/// The application and data of a command that a person gives or types.
fn command(
    guild: &Guild,
    user: Id,
    channel: Id,
    payload: &Payload,
    files: &[Attachment],
) -> Result<(Id, Value), Refusal> {
    let options = payload.get("options").cloned().unwrap_or_else(|| json!([]));
    guild.render(None, |render| {
        let command = named(render.state, payload, 1)?;
        let mut resolved = ResolvedObjects { render, found: Map::new() };
        look_up(&mut resolved, &options, user)?;
        for file in files {
            let shown = render.attachment(channel, file);
            resolved.put("attachments", file.id, shown);
        }
        let mut data = told(command, resolved);
        data["options"] = options;
        Ok((command.application, data))
    })
}

/// The application and data of a command on a person, or on a message of the channel.
fn on_target(guild: &Guild, channel: Id, payload: &Payload) -> Result<(Id, Value), Refusal> {
    let kind = payload.get("type").and_then(Value::as_u64).unwrap_or(0);
    let target = payload.text("target").and_then(|id| id.parse::<Id>().ok());
    let target = target.ok_or_else(|| unknown("target"))?;
    guild.render(None, |render| {
        let command = named(render.state, payload, kind)?;
        let mut resolved = ResolvedObjects { render, found: Map::new() };
        match kind {
            2 if resolved.user(target) => {}
            3 => {
                let message = render.state.message(channel, target)?;
                // An answer for one person belongs to its application; nobody else can be sent it.
                if message.flags & EPHEMERAL != 0 {
                    return Err(Refusal::UnknownMessage);
                }
                resolved.put("messages", target, render.message(message));
            }
            _ => return Err(unknown("target")),
        }
        let mut data = told(command, resolved);
        data["target_id"] = json!(target);
        Ok((command.application, data))
    })
}

async fn context(State(guild): GuildState, caller: Caller, payload: Payload) -> JsonReply {
    let (user, channel, _) = place(&guild, &caller, &payload)?;
    let (application, data) = on_target(&guild, channel, &payload)?;
    let kind = InteractionKind::Command { data };
    let id = interactions::start(&guild, person(user, &payload), channel, application, kind)?;
    Ok(Json(json!({"interaction": id})))
}

async fn slash(State(guild): GuildState, caller: Caller, payload: Payload) -> JsonReply {
    let (user, channel, _) = place(&guild, &caller, &payload)?;
    let person = person(user, &payload);
    if let Some(id) = guild.read(|state| interactions::known(state, &person)) {
        return Ok(Json(json!({"interaction": id})));
    }
    let files = files_of(&guild, payload.get("options").unwrap_or(&Value::Null))?;
    let (application, data) = command(&guild, user, channel, &payload, &files)?;
    let kind = InteractionKind::Command { data };
    let id = interactions::start(&guild, person, channel, application, kind)?;
    let mut uploads = guild.uploads.lock().unwrap_or_else(PoisonError::into_inner);
    uploads.retain(|id, _| files.iter().all(|file| file.id != *id));
    Ok(Json(json!({"interaction": id})))
}

async fn complete(State(guild): GuildState, caller: Caller, payload: Payload) -> JsonReply {
    let (user, channel, _) = place(&guild, &caller, &payload)?;
    let (application, data) = command(&guild, user, channel, &payload, &[])?;
    let kind = InteractionKind::Autocomplete { data };
    let id = interactions::start(&guild, person(user, &payload), channel, application, kind)?;
    Ok(Json(json!({"interaction": id})))
}

#[derive(Deserialize)]
struct FilledForm {
    user: Option<String>,
    interaction: Id,
    custom_id: Option<String>,
    /// By the custom id of the input: a text, or a list of chosen values.
    values: Map<String, Value>,
}

/// What a person filled into one input, in the form that its application reads.
fn filled(input: &Value, values: &Map<String, Value>) -> Result<Value, Refusal> {
    let name = input["custom_id"].as_str().unwrap_or_default();
    let sent = values.get(name);
    let mut answer = json!({"type": input["type"], "id": input["id"], "custom_id": name});
    let required = input["required"] != false;
    if input["type"] != 4 {
        let list: Vec<&Value> = sent.and_then(Value::as_array).into_iter().flatten().collect();
        if required && list.is_empty() {
            return Err(Refusal::invalid(name, "BASE_TYPE_REQUIRED", "This field is required"));
        }
        answer["values"] = json!(list);
        return Ok(answer);
    }
    let text = sent.and_then(Value::as_str).unwrap_or_default();
    let length = text.chars().count() as u64;
    let least = input["min_length"].as_u64().unwrap_or(u64::from(required));
    let most = input["max_length"].as_u64().unwrap_or(4000);
    if (required || length > 0) && (length < least || length > most) {
        let text = format!("Must be between {least} and {most} in length.");
        return Err(Refusal::invalid(name, "BASE_TYPE_BAD_LENGTH", text));
    }
    answer["value"] = json!(text);
    Ok(answer)
}

/// The dialog's rows with what was filled in.
fn rows(dialog: &Value, values: &Map<String, Value>) -> Result<Vec<Value>, Refusal> {
    let known: Vec<&Value> = inputs(dialog).map(|input| &input["custom_id"]).collect();
    if let Some(stray) = values.keys().find(|name| !known.contains(&&json!(name))) {
        return Err(unknown(stray));
    }
    let mut rows = Vec::new();
    for row in dialog["components"].as_array().into_iter().flatten() {
        let mut answer = json!({"type": row["type"], "id": row["id"]});
        match row["type"].as_u64() {
            Some(1) => {
                answer["components"] = json!([filled(&row["components"][0], values)?]);
            }
            Some(18) => answer["component"] = filled(&row["component"], values)?,
            _ => {}
        }
        rows.push(answer);
    }
    Ok(rows)
}

async fn modal(State(guild): GuildState, caller: Caller, payload: Payload) -> JsonReply {
    let sent: FilledForm = payload.read()?;
    let (user, from) = guild.read(|state| {
        let user = caller.person(state, sent.user.as_deref())?;
        let from = state.interactions.get(&sent.interaction).ok_or(Refusal::UnknownInteraction)?;
        if from.user == user { Ok((user, from.clone())) } else { Err(Refusal::MissingAccess) }
    })?;
    let closed = || Refusal::invalid("interaction", "UNKNOWN", "No such dialog is open.");
    let dialog = from.dialog.as_ref().ok_or_else(closed)?;
    let wrong = sent.custom_id.as_ref().is_some_and(|id| dialog["custom_id"] != id.as_str());
    let data = if forged(&payload) {
        let rows = sent.values.iter().map(|(id, value)| {
            json!({"type": 1, "components": [{"type": 4, "custom_id": id, "value": value}]})
        });
        json!({"custom_id": sent.custom_id, "components": rows.collect::<Vec<_>>()})
    } else if wrong {
        return Err(closed());
    } else {
        json!({"custom_id": dialog["custom_id"], "components": rows(dialog, &sent.values)?})
    };
    let kind = InteractionKind::Modal { data, message: from.kind.message(), from: Some(from.id) };
    let person = person(user, &payload);
    let id = interactions::start(&guild, person, from.channel, from.application, kind)?;
    Ok(Json(json!({"interaction": id})))
}
