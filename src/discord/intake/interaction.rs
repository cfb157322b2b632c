//! Buttons and slash commands.

use serde_json::Value;
use serenity::model::application::Interaction;
use tokio::task::JoinHandle;

use super::{From, Gone, Intake, unreadable};
use crate::discord::error::RestError;
use crate::discord::ingress::{self, Commanded};
use crate::discord::link::{Inbound, InteractionReply};
use crate::domain::outgoing::Content;
use crate::domain::request::Language;
use crate::platform::tasks;

impl Intake {
    pub(super) async fn interaction(
        &self,
        from: From,
        data: Value,
        acknowledged: JoinHandle<Result<(), RestError>>,
    ) -> Result<(), Gone> {
        let Ok(interaction) = serde_json::from_value::<Interaction>(data) else {
            unreadable("INTERACTION_CREATE");
            return Ok(());
        };
        let (commanded, application, token) = match &interaction {
            Interaction::Component(it) => (ingress::press(it), it.application_id, &it.token),
            Interaction::Command(it) => (ingress::slash(it), it.application_id, &it.token),
            Interaction::Ping(_) | Interaction::Autocomplete(_) | Interaction::Modal(_) | _ => {
                return Ok(());
            }
        };
        match acknowledged.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a command was not acknowledged"),
            Err(error) => tracing::warn!(%error, "a command was not acknowledged"),
        }
        let reply = InteractionReply {
            rest: self.rest(from).clone(),
            catalog: self.catalog.clone(),
            application: application.get(),
            token: token.clone(),
            language: commanded.as_ref().map_or(Language::En, |it| it.language),
        };
        let Some(Commanded { actor, command, .. }) = commanded else {
            answer(reply, "gate.stale", &[]);
            return Ok(());
        };
        match command {
            Ok(command) => self.tell(Inbound::Command { actor, command, reply }).await,
            Err(typed) => {
                answer(reply, "unknown_request", &[("request_id", typed)]);
                Ok(())
            }
        }
    }
}

/// Answers beside the stream of facts.
fn answer(reply: InteractionReply, key: &str, values: &[(&str, String)]) {
    let content = Content {
        key: key.to_owned(),
        values: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::String(value.clone())))
            .collect(),
        language: reply.language(),
    };
    tasks::spawn("discord-answer", async move { reply.say(&content).await });
}
