//! Interactions: the application's answer, and what it sends after.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use chrono::Duration;
use serde_json::{Value, json};

use super::body::{At, Payload, QueryParameters};
use super::messages::{put, rendered};
use crate::local_guild::compose::ComposedMessage;
use crate::local_guild::error::{JsonReply, Refusal};
use crate::local_guild::event::Event;
use crate::local_guild::guild::{Draft, Guild, GuildState};
use crate::local_guild::ids::Id;
use crate::local_guild::limits::{check_dialog, check_suggestions};
use crate::local_guild::model::{
    Answer, Author, EPHEMERAL, Interaction, InteractionKind, LOADING, Message, MessageKind,
    TOKEN_MINUTES,
};
use crate::local_guild::state::{Change, State as World};
use crate::platform::{clock, ids, tasks};

/// How long an application has for its first answer.
const FIRST_ANSWER: std::time::Duration = std::time::Duration::from_secs(3);

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new().route("/interactions/{id}/{token}/callback", post(callback))
}

/// Who starts an interaction, and from where.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) user: Id,
    /// The language of their client.
    pub(crate) locale: String,
    /// Which of their clients it is, if it says so.
    pub(crate) session: Option<String>,
    /// What the client knows it by: said once more, because no answer came, it is the same one.
    pub(crate) nonce: Option<String>,
}

/// The interaction that a client has started before with the same nonce.
pub(crate) fn known(world: &World, asker: &Asker) -> Option<Id> {
    let same =
        |it: &&Interaction| it.nonce.is_some() && it.nonce == asker.nonce && it.user == asker.user;
    world.interactions.values().rev().find(same).map(|it| it.id)
}

/// Starts an interaction, and tells the page if its application lets the time pass.
pub(crate) fn start(
    guild: &Arc<Guild>,
    asker: Asker,
    channel: Id,
    application: Id,
    kind: InteractionKind,
) -> Result<Id, Refusal> {
    let (id, is_new) = guild.change(|draft| {
        draft.state.channel_for(channel, asker.user)?;
        draft.state.user(application)?;
        if let Some(id) = known(draft.state, &asker) {
            return Ok((id, false));
        }
        let Asker { user, locale, session, nonce } = asker;
        let id = draft.id();
        draft.put(Change::Interaction(Interaction {
            id,
            application,
            token: ids::secret(),
            channel,
            user,
            kind,
            answer: Answer::None,
            original: None,
            locale,
            session,
            nonce,
            dialog: None,
        }));
        draft.tell(Event::Interaction(id));
        Ok((id, true))
    })?;
    if !is_new {
        return Ok(id);
    }
    let watched = Arc::clone(guild);
    tasks::spawn("interaction-timer", async move {
        tokio::select! {
            () = tokio::time::sleep(FIRST_ANSWER) => {}
            () = watched.closing.cancelled() => return,
        }
        let told = watched.change(|draft| {
            let open = |it: &Interaction| it.answer == Answer::None;
            if draft.state.interactions.get(&id).is_some_and(open) {
                draft.tell(Event::InteractionFailed(id));
            }
            Ok(())
        });
        if let Err(error) = told {
            tracing::warn!(%error, "could not tell that an interaction timed out");
        }
    });
    Ok(id)
}

/// The interaction of that token, while the token is good.
fn by_token<'a>(
    world: &'a World,
    application: Id,
    token: &str,
) -> Result<&'a Interaction, Refusal> {
    let found = world
        .interactions
        .values()
        .rev()
        .find(|it| it.application == application && it.token == token)
        .ok_or(Refusal::UnknownWebhook)?;
    if clock::now() - found.id.time() > Duration::minutes(TOKEN_MINUTES) {
        return Err(Refusal::WebhookToken);
    }
    Ok(found)
}

/// What a callback asks for. The numbers are the protocol's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    DeferMessage,
    DeferUpdate,
    Update,
    Suggestions,
    Dialog,
}

impl Kind {
    fn new(number: Option<u64>) -> Result<Kind, Refusal> {
        match number {
            Some(4) => Ok(Kind::Message),
            Some(5) => Ok(Kind::DeferMessage),
            Some(6) => Ok(Kind::DeferUpdate),
            Some(7) => Ok(Kind::Update),
            Some(8) => Ok(Kind::Suggestions),
            Some(9) => Ok(Kind::Dialog),
            Some(_) | None => Err(Refusal::invalid(
                "type",
                "BASE_TYPE_CHOICES",
                "Value must be one of {4, 5, 6, 7, 8, 9}.",
            )),
        }
    }
}

impl Kind {
    /// Whether an interaction may be answered in this way.
    fn answers(self, asked: &InteractionKind) -> bool {
        let typing = matches!(asked, InteractionKind::Autocomplete { .. });
        match self {
            Kind::Suggestions => typing,
            Kind::Message | Kind::DeferMessage => !typing,
            Kind::DeferUpdate | Kind::Update => asked.message().is_some(),
            Kind::Dialog => match asked {
                InteractionKind::Command { .. } | InteractionKind::Component { .. } => true,
                InteractionKind::Autocomplete { .. } | InteractionKind::Modal { .. } => false,
            },
        }
    }
}

/// The open interaction of a callback.
fn open(world: &World, id: Id, token: &str) -> Result<Interaction, Refusal> {
    let found = world.interactions.get(&id).filter(|it| it.token == token);
    let found = found.ok_or(Refusal::UnknownInteraction)?;
    match found.answer {
        Answer::None => {}
        Answer::Deferred | Answer::Given => return Err(Refusal::Acknowledged),
    }
    let limit = Duration::from_std(FIRST_ANSWER).unwrap_or(Duration::seconds(3));
    if clock::now() - id.time() > limit {
        return Err(Refusal::UnknownInteraction);
    }
    Ok(found.clone())
}

/// The message that answers, not yet put.
fn answer(
    draft: &mut Draft<'_>,
    interaction: &Interaction,
    composed: &ComposedMessage,
) -> Result<Message, Refusal> {
    let place = draft.state.channel(interaction.channel)?;
    let author = Author::User { id: interaction.application };
    let mut message = composed.message(draft, place, author)?;
    message.nonce = None;
    adorn(&mut message, interaction);
    Ok(message)
}

/// Marks a message as the answer to an interaction.
fn adorn(message: &mut Message, interaction: &Interaction) {
    message.interaction = Some(interaction.id);
    match &interaction.kind {
        InteractionKind::Command { .. } => message.kind = MessageKind::Command,
        InteractionKind::Component { message: from, .. }
        | InteractionKind::Modal { message: Some(from), .. } => {
            message.kind = MessageKind::Reply;
            message.reference = Some(crate::local_guild::model::Reference {
                channel: interaction.channel,
                message: Some(*from),
            });
        }
        InteractionKind::Modal { message: None, .. } | InteractionKind::Autocomplete { .. } => {}
    }
    if message.flags & EPHEMERAL != 0 {
        message.only_for = Some(interaction.user);
    }
}

async fn callback(
    State(guild): GuildState,
    At((id, token)): At<(Id, String)>,
    asked: QueryParameters,
    payload: Payload,
) -> Result<Response, Refusal> {
    let asked_by = guild.read(|state| open(state, id, &token).map(|it| it.kind))?;
    let number = payload.get("type").and_then(Value::as_u64);
    let kind = Kind::new(number)?;
    if !kind.answers(&asked_by) {
        let text = "This interaction cannot be answered so.";
        return Err(Refusal::invalid("type", "INTERACTION_TYPE_INVALID", text));
    }
    let mut data = payload.get("data").cloned().unwrap_or_else(|| json!({}));
    let inner = Payload { json: data.clone(), files: payload.files };
    let composed = match kind {
        Kind::Message | Kind::Update => Some(ComposedMessage::new(&guild, &inner)?),
        Kind::Suggestions => {
            check_suggestions(&data)?;
            None
        }
        Kind::Dialog => {
            check_dialog(&mut data)?;
            None
        }
        Kind::DeferMessage | Kind::DeferUpdate => None,
    };
    let made = guild.change(|draft| {
        let mut interaction = open(draft.state, id, &token)?;
        let place = draft.state.channel(interaction.channel)?;
        interaction.answer = Answer::Given;
        let mut updated = None;
        match (kind, &composed) {
            (Kind::Message, Some(composed)) => {
                let message = answer(draft, &interaction, composed)?;
                interaction.original = Some(put(draft, place, message)?);
            }
            (Kind::DeferMessage, _) => {
                let author = Author::User { id: interaction.application };
                let mut message =
                    Message::blank(draft.id(), place.id, author, MessageKind::Default);
                message.flags = LOADING | (data["flags"].as_u64().unwrap_or(0) & EPHEMERAL);
                adorn(&mut message, &interaction);
                interaction.original = Some(put(draft, place, message)?);
                interaction.answer = Answer::Deferred;
            }
            (Kind::DeferUpdate, _) => interaction.original = interaction.kind.message(),
            (Kind::Update, Some(composed)) => {
                let from = interaction.kind.message().ok_or(Refusal::UnknownMessage)?;
                let mut message = draft.state.message(interaction.channel, from)?.clone();
                composed.change(draft, &mut message)?;
                draft.put(Change::Message(Box::new(message)));
                updated = Some(from);
                interaction.original = Some(from);
            }
            (Kind::Suggestions, _) => {
                draft.tell(Event::Suggested { interaction: id, data: data.clone() });
            }
            (Kind::Dialog, _) => {
                interaction.dialog = Some(data.clone());
                draft.tell(Event::Dialog { interaction: id, data: data.clone() });
            }
            (Kind::Message | Kind::Update, None) => return Err(Refusal::BadJson),
        }
        let (channel, original) = (interaction.channel, interaction.original);
        draft.put(Change::Interaction(interaction));
        if let Some(from) = updated {
            draft.tell(Event::MessageUpdate { channel, id: from });
        }
        draft.tell(Event::InteractionDone(id));
        Ok((channel, original))
    })?;
    if !asked.yes("with_response") {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (channel, original) = made;
    Ok(guild.render(None, |render| {
        let found = original.and_then(|id| render.state.message(channel, id).ok());
        let shown = matches!(kind, Kind::Message | Kind::DeferMessage | Kind::Update);
        let mut resource = json!({"type": number});
        if let Some(message) = found.filter(|_| shown) {
            resource["message"] = render.message(message);
        }
        let interaction = render.state.interactions.get(&id);
        let mut value = json!({
            "interaction": {
                "id": id, "type": interaction.map(|it| it.kind.number()),
                "response_message_loading": kind == Kind::DeferMessage,
                "response_message_ephemeral": found.is_some_and(|it| it.flags & EPHEMERAL != 0),
                "channel_id": channel,
            },
            "resource": resource,
        });
        if shown {
            value["interaction"]["response_message_id"] = json!(original);
        }
        Json(value).into_response()
    }))
}

/// A message sent after the first answer. The first one after a deferral takes the place of the
/// message that shows work going on.
pub(super) fn follow_up(
    guild: &Guild,
    application: Id,
    token: &str,
    payload: &Payload,
) -> JsonReply {
    guild.read(|state| by_token(state, application, token).map(|_| ()))?;
    let composed = ComposedMessage::new(guild, payload)?;
    let (channel, id) = guild.change(|draft| {
        let mut interaction = by_token(draft.state, application, token)?.clone();
        let channel = interaction.channel;
        let place = draft.state.channel(channel)?;
        let waiting = match (interaction.answer, interaction.original) {
            (Answer::Deferred, Some(original)) => draft.state.message(channel, original).ok(),
            (Answer::None, _) => return Err(Refusal::UnknownWebhook),
            (Answer::Deferred | Answer::Given, _) => None,
        };
        if let Some(waiting) = waiting {
            let mut message = waiting.clone();
            composed.change(draft, &mut message)?;
            message.flags &= !LOADING;
            let id = message.id;
            draft.put(Change::Message(Box::new(message)));
            interaction.answer = Answer::Given;
            draft.put(Change::Interaction(interaction));
            draft.tell(Event::MessageUpdate { channel, id });
            return Ok((channel, id));
        }
        let message = answer(draft, &interaction, &composed)?;
        Ok((channel, put(draft, place, message)?))
    })?;
    rendered(guild, None, channel, id)
}

/// Where a message of an interaction stands; `@original` is its first answer.
pub(super) fn find_message(
    guild: &Guild,
    application: Id,
    token: &str,
    message: &str,
) -> Result<(Id, Id), Refusal> {
    guild.read(|state| {
        let interaction = by_token(state, application, token)?;
        let id = if message == "@original" {
            interaction.original.ok_or(Refusal::UnknownMessage)?
        } else {
            message.parse().map_err(|_| Refusal::UnknownMessage)?
        };
        let found = state.message(interaction.channel, id)?;
        let ours = Some(id) == interaction.original || found.interaction == Some(interaction.id);
        if ours { Ok((interaction.channel, id)) } else { Err(Refusal::UnknownMessage) }
    })
}

/// After an edit of `@original`, a deferred answer is given. Nothing happens for plain webhooks.
pub(super) fn settled(
    guild: &Guild,
    application: Id,
    token: &str,
    message: Id,
) -> Result<(), Refusal> {
    guild.change(|draft| {
        let Ok(found) = by_token(draft.state, application, token) else {
            return Ok(());
        };
        if found.answer != Answer::Deferred || found.original != Some(message) {
            return Ok(());
        }
        let mut interaction = found.clone();
        interaction.answer = Answer::Given;
        let channel = interaction.channel;
        let mut shown = draft.state.message(channel, message)?.clone();
        shown.flags &= !LOADING;
        draft.put(Change::Interaction(interaction));
        draft.put(Change::Message(Box::new(shown)));
        draft.tell(Event::MessageUpdate { channel, id: message });
        Ok(())
    })
}
