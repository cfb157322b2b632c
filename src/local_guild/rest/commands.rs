//! Application commands: registering and listing them.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use chrono::Duration;
use serde_json::{Map, Value};

use super::body::EmptyReply;
use super::body::{At, Bot, Payload, QueryParameters};
use crate::local_guild::error::{JsonReply, Refusal};
use crate::local_guild::event::Event;
use crate::local_guild::guild::{Draft, Guild, GuildState};
use crate::local_guild::ids::Id;
use crate::local_guild::limits::strip_nulls;
use crate::local_guild::model::Command;
use crate::local_guild::payload;
use crate::local_guild::state::{Change, Creates};

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/applications/{app}/commands", get(global_list).put(global_set).post(global_add))
        .route("/applications/{app}/commands/{command}", get(one).patch(change).delete(remove))
        .route(
            "/applications/{app}/guilds/{guild}/commands",
            get(guild_list).put(guild_set).post(guild_add),
        )
        .route("/applications/{app}/guilds/{guild}/commands/permissions", get(permissions))
        .route(
            "/applications/{app}/guilds/{guild}/commands/{command}",
            get(guild_one).patch(guild_change).delete(guild_remove),
        )
}

/// Where commands are registered: an application, and one guild or everywhere.
#[derive(Clone, Copy)]
struct Scope {
    app: Id,
    guild: Option<Id>,
}

impl Scope {
    fn new(guild: &Guild, bot: Id, app: Id, of: Option<Id>) -> Result<Scope, Refusal> {
        if bot != app {
            return Err(Refusal::MissingAccess);
        }
        if let Some(of) = of {
            // An application that is not in a guild has no commands there.
            guild.read(|state| match state.check_member(of, bot) {
                Ok(_) => Ok(()),
                Err(_) => Err(Refusal::MissingAccess),
            })?;
        }
        Ok(Scope { app, guild: of })
    }

    fn holds(self, command: &Command) -> bool {
        command.application == self.app && command.guild == self.guild
    }
}

impl Command {
    /// The type on the wire: 1 for a slash command, 2 and 3 in the menus of people and messages.
    pub(crate) fn kind(&self) -> u64 {
        kind_of(&self.body)
    }
}

fn kind_of(body: &Map<String, Value>) -> u64 {
    body.get("type").and_then(Value::as_u64).unwrap_or(1)
}

/// The command object that a client sent, with a name that Discord accepts.
fn checked(sent: &Value) -> Result<Map<String, Value>, Refusal> {
    let mut sent = sent.clone();
    strip_nulls(&mut sent);
    let Value::Object(mut body) = sent else {
        return Err(Refusal::BadJson);
    };
    for ours in ["id", "application_id", "guild_id", "version"] {
        body.remove(ours);
    }
    let sent = Value::Object(body.clone());
    let is_slash = kind_of(&body) == 1;
    check_names(&sent, "", is_slash)?;
    if is_slash {
        check_options(&sent, "")?;
    }
    Ok(body)
}

/// Options of a command, and choices of one, at most.
const MOST_OPTIONS: usize = 25;
/// The languages of the platform.
const LOCALES: [&str; 32] = [
    "id", "da", "de", "en-GB", "en-US", "es-ES", "es-419", "fr", "hr", "it", "lt", "hu", "nl",
    "no", "pl", "pt-BR", "ro", "fi", "sv-SE", "vi", "tr", "cs", "el", "bg", "ru", "uk", "hi", "th",
    "zh-CN", "ja", "zh-TW", "ko",
];

/// The name and the description of a command or an option, in every language.
fn check_names(sent: &Value, at: &str, is_slash: bool) -> Result<(), Refusal> {
    // Signs of Devanagari and Thai are no letters by themselves.
    let fits = |c: char| {
        c.is_alphanumeric() && !c.is_uppercase()
            || "-_'".contains(c)
            || matches!(c, '\u{900}'..='\u{97f}' | '\u{e00}'..='\u{e7f}')
    };
    let is_name = |name: &str| {
        (1..=32).contains(&name.chars().count()) && (!is_slash || name.chars().all(fits))
    };
    let is_described = |text: &str| !is_slash || (1..=100).contains(&text.chars().count());
    let check = |field: &str, is_good: &dyn Fn(&str) -> bool, code, text: &str| {
        if !is_good(sent[field].as_str().unwrap_or_default()) {
            return Err(Refusal::invalid(format!("{at}{field}"), code, text));
        }
        let all = format!("{field}_localizations");
        for (locale, there) in sent[&all].as_object().into_iter().flatten() {
            let field = format!("{at}{all}.{locale}");
            if !LOCALES.contains(&locale.as_str()) {
                return Err(Refusal::invalid(field, "BASE_TYPE_CHOICES", "Not a locale."));
            }
            if !there.as_str().is_some_and(is_good) {
                return Err(Refusal::invalid(field, code, text));
            }
        }
        Ok(())
    };
    let named = "Command name is invalid";
    check("name", &is_name, "APPLICATION_COMMAND_INVALID_NAME", named)?;
    let described = "Must be between 1 and 100 in length.";
    check("description", &is_described, "BASE_TYPE_BAD_LENGTH", described)
}

/// The options of a command or a subcommand.
fn check_options(sent: &Value, at: &str) -> Result<(), Refusal> {
    let options = sent["options"].as_array().map_or(&[][..], Vec::as_slice);
    let bad = |field: String, code, text: &str| Err(Refusal::invalid(field, code, text));
    if options.len() > MOST_OPTIONS {
        return bad(
            format!("{at}options"),
            "BASE_TYPE_BAD_LENGTH",
            "Must be 25 or fewer in length.",
        );
    }
    let (mut names, mut was_optional) = (BTreeSet::new(), false);
    for (place, option) in options.iter().enumerate() {
        let at = format!("{at}options.{place}.");
        check_names(option, &at, true)?;
        if !names.insert(option["name"].as_str()) {
            let text = "Option names must be unique.";
            return bad(format!("{at}name"), "APPLICATION_COMMAND_OPTIONS_NAME_DUPLICATED", text);
        }
        let kind = option["type"].as_u64().unwrap_or_default();
        if !(1..=11).contains(&kind) {
            return bad(format!("{at}type"), "BASE_TYPE_CHOICES", "Not an option type.");
        }
        if kind <= 2 {
            check_options(option, &at)?;
            continue;
        }
        let is_required = option["required"] == true;
        if is_required && was_optional {
            let text = "Required options must be placed before non-required options";
            return bad(
                format!("{at}required"),
                "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
                text,
            );
        }
        was_optional |= !is_required;
        let choices = option["choices"].as_array().map_or(&[][..], Vec::as_slice);
        if choices.len() > MOST_OPTIONS {
            let text = "Must be 25 or fewer in length.";
            return bad(format!("{at}choices"), "BASE_TYPE_BAD_LENGTH", text);
        }
        if !choices.is_empty() && option["autocomplete"] == true {
            let text = "Autocomplete cannot be enabled with choices.";
            return bad(
                format!("{at}autocomplete"),
                "APPLICATION_COMMAND_AUTOCOMPLETE_NOT_SUPPORTED",
                text,
            );
        }
        for (number, choice) in choices.iter().enumerate() {
            let name = choice["name"].as_str().unwrap_or_default();
            if !(1..=100).contains(&name.chars().count()) {
                let text = "Must be between 1 and 100 in length.";
                return bad(format!("{at}choices.{number}.name"), "BASE_TYPE_BAD_LENGTH", text);
            }
        }
    }
    Ok(())
}

/// Commands that an application may create in a day, in each guild and everywhere. One that takes the
/// place of another of its name is not created.
const CREATES: usize = 200;

/// Counts what is created now; refuses all of it where the day's share does not suffice.
fn count(draft: &mut Draft<'_>, scope: Scope, created: usize) -> Result<(), Refusal> {
    if created == 0 {
        return Ok(());
    }
    let day = |it: &&Creates| draft.now - it.since < Duration::days(1);
    let before = draft.state.creates.get(&(scope.app, scope.guild)).filter(day);
    let (since, used) = before.map_or((draft.now, 0), |it| (it.since, it.count));
    let count = used + created;
    if count > CREATES {
        return Err(Refusal::TooManyCommands);
    }
    let (application, guild) = (scope.app, scope.guild);
    draft.put(Change::Creates(Creates { application, guild, since, count }));
    Ok(())
}

/// Puts a command in place of the one of the same name; tells whether it is new.
fn put(draft: &mut Draft<'_>, scope: Scope, body: Map<String, Value>) -> (Id, bool) {
    let same = draft.state.commands.values().find(|it| {
        scope.holds(it) && it.body.get("name") == body.get("name") && it.kind() == kind_of(&body)
    });
    let known = same.map(|it| it.id);
    let id = known.unwrap_or_else(|| draft.id());
    let version = draft.id();
    let command = Command { id, application: scope.app, guild: scope.guild, version, body };
    draft.put(Change::Command(command));
    (id, known.is_none())
}

fn list(guild: &Guild, scope: Scope, localized: bool) -> Json<Vec<Value>> {
    guild.read(|state| {
        let found = state.commands.values().filter(|it| scope.holds(it));
        let mut all: Vec<Value> = found.map(payload::command).collect();
        if !localized {
            all.iter_mut().for_each(without_translations);
        }
        Json(all)
    })
}

/// Lists leave the dictionaries of translations out, unless they are asked for.
fn without_translations(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("name_localizations");
            object.remove("description_localizations");
            object.values_mut().for_each(without_translations);
        }
        Value::Array(list) => list.iter_mut().for_each(without_translations),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn set(guild: &Guild, scope: Scope, payload: &Payload) -> Result<Json<Vec<Value>>, Refusal> {
    let sent = payload.json.as_array().ok_or(Refusal::BadJson)?;
    if sent.len() > 100 {
        return Err(Refusal::invalid("body", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer."));
    }
    let bodies = sent.iter().map(checked).collect::<Result<Vec<_>, _>>()?;
    guild.change(|draft| {
        let before: Vec<Id> =
            draft.state.commands.values().filter(|it| scope.holds(it)).map(|it| it.id).collect();
        let mut kept = Vec::new();
        let mut created = 0;
        for body in bodies {
            let (id, new) = put(draft, scope, body);
            kept.push(id);
            created += usize::from(new);
        }
        count(draft, scope, created)?;
        for id in before {
            if !kept.contains(&id) {
                draft.put(Change::CommandGone(id));
            }
        }
        draft.tell(Event::Commands);
        Ok(())
    })?;
    Ok(list(guild, scope, true))
}

fn add(
    guild: &Guild,
    scope: Scope,
    payload: &Payload,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let body = checked(&payload.json)?;
    let (id, new) = guild.change(|draft| {
        draft.tell(Event::Commands);
        let (id, new) = put(draft, scope, body);
        count(draft, scope, usize::from(new))?;
        Ok((id, new))
    })?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, show(guild, scope, id)?))
}

fn show(guild: &Guild, scope: Scope, id: Id) -> JsonReply {
    guild.read(|state| {
        let found = state.commands.get(&id).filter(|it| scope.holds(it));
        found.map(|it| Json(payload::command(it))).ok_or(Refusal::UnknownCommand)
    })
}

fn merge(guild: &Guild, scope: Scope, id: Id, payload: &Payload) -> JsonReply {
    let sent = payload.json.as_object().ok_or(Refusal::BadJson)?;
    guild.change(|draft| {
        let found = draft.state.commands.get(&id).filter(|it| scope.holds(it));
        let mut command = found.ok_or(Refusal::UnknownCommand)?.clone();
        let mut body = command.body.clone();
        body.extend(sent.clone());
        command.body = checked(&Value::Object(body))?;
        command.version = draft.id();
        draft.put(Change::Command(command));
        draft.tell(Event::Commands);
        Ok(())
    })?;
    show(guild, scope, id)
}

fn discard(guild: &Guild, scope: Scope, id: Id) -> EmptyReply {
    guild.change(|draft| {
        let found = draft.state.commands.get(&id).filter(|it| scope.holds(it));
        found.ok_or(Refusal::UnknownCommand)?;
        draft.put(Change::CommandGone(id));
        draft.tell(Event::Commands);
        Ok(StatusCode::NO_CONTENT)
    })
}

type CreatedReply = Result<(StatusCode, Json<Value>), Refusal>;

async fn global_list(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(app): At<Id>,
    asked: QueryParameters,
) -> Result<Json<Vec<Value>>, Refusal> {
    Ok(list(&guild, Scope::new(&guild, bot, app, None)?, asked.yes("with_localizations")))
}

async fn global_set(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(app): At<Id>,
    payload: Payload,
) -> Result<Json<Vec<Value>>, Refusal> {
    set(&guild, Scope::new(&guild, bot, app, None)?, &payload)
}

async fn global_add(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(app): At<Id>,
    payload: Payload,
) -> CreatedReply {
    add(&guild, Scope::new(&guild, bot, app, None)?, &payload)
}

async fn one(State(guild): GuildState, Bot(bot): Bot, At((app, id)): At<(Id, Id)>) -> JsonReply {
    show(&guild, Scope::new(&guild, bot, app, None)?, id)
}

async fn change(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((app, id)): At<(Id, Id)>,
    payload: Payload,
) -> JsonReply {
    merge(&guild, Scope::new(&guild, bot, app, None)?, id, &payload)
}

async fn remove(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((app, id)): At<(Id, Id)>,
) -> EmptyReply {
    discard(&guild, Scope::new(&guild, bot, app, None)?, id)
}

async fn guild_list(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((app, of)): At<(Id, Id)>,
    asked: QueryParameters,
) -> Result<Json<Vec<Value>>, Refusal> {
    Ok(list(&guild, Scope::new(&guild, bot, app, Some(of))?, asked.yes("with_localizations")))
}

/// Who may use which command: nobody has changed that here.
async fn permissions(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((app, of)): At<(Id, Id)>,
) -> Result<Json<Vec<Value>>, Refusal> {
    Scope::new(&guild, bot, app, Some(of))?;
    Ok(Json(Vec::new()))
}

async fn guild_set(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((app, of)): At<(Id, Id)>,
    payload: Payload,
) -> Result<Json<Vec<Value>>, Refusal> {
    set(&guild, Scope::new(&guild, bot, app, Some(of))?, &payload)
}

async fn guild_add(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((app, of)): At<(Id, Id)>,
    payload: Payload,
) -> CreatedReply {
    add(&guild, Scope::new(&guild, bot, app, Some(of))?, &payload)
}

async fn guild_one(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((app, of, id)): At<(Id, Id, Id)>,
) -> JsonReply {
    show(&guild, Scope::new(&guild, bot, app, Some(of))?, id)
}

async fn guild_change(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((app, of, id)): At<(Id, Id, Id)>,
    payload: Payload,
) -> JsonReply {
    merge(&guild, Scope::new(&guild, bot, app, Some(of))?, id, &payload)
}

async fn guild_remove(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((app, of, id)): At<(Id, Id, Id)>,
) -> EmptyReply {
    discard(&guild, Scope::new(&guild, bot, app, Some(of))?, id)
}
