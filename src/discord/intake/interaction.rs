//! Buttons and slash commands.

use serde_json::Value;
use serenity::model::application::Interaction;
use tokio::task::JoinHandle;

use super::{From, Gone, Intake, unreadable};
use crate::discord::error::RestError;
use crate::discord::ingress::{self, Commanded};
use crate::discord::link::{Inbound, InteractionReply};
use crate::domain::outgoing::Content;
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
        let Some(Commanded {
            actor,
            language,
            command,
        }) = commanded
        else {
            return Ok(());
        };
        let reply = InteractionReply {
            rest: self.rest(from).clone(),
            catalog: self.catalog.clone(),
            application: application.get(),
            token: token.clone(),
            language,
        };
        match command {
            Ok(command) => {
                self.tell(Inbound::Command {
                    actor,
                    command,
                    reply,
                })
                .await
            }
            Err(typed) => {
                let values = [("request_id".to_owned(), Value::String(typed))];
                let content = Content {
                    key: "unknown_request".to_owned(),
                    values: values.into_iter().collect(),
                    language,
                };
                tasks::spawn("discord-answer", async move { reply.say(&content).await });
                Ok(())
            }
        }
    }
}
