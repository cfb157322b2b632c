//! Buttons, slash commands and forms.

use serde_json::Value;
use serenity::model::application::Interaction;
use tokio::task::JoinHandle;

use super::{From, Gone, Intake, unreadable};
use crate::discord::asked::{self, Commanded, Wanted};
use crate::discord::error::RestError;
use crate::discord::ingress::{Heard, Remote};
use crate::discord::link::{Inbound, InteractionReply, Suggest};
use crate::domain::ids::{ChannelId, MessageId, UserId};
use crate::domain::incoming::{Actor, Attachment, Author, Command, Message};
use crate::domain::outgoing::Content;
use crate::domain::request::Language;
use crate::domain::time::Timestamp;
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
            Interaction::Component(it) => (asked::press(it), it.application_id, &it.token),
            Interaction::Command(it) => (asked::slash(it), it.application_id, &it.token),
            Interaction::Modal(it) => (asked::form(it), it.application_id, &it.token),
            Interaction::Autocomplete(it) => {
                let Some(typing) = asked::typing(it) else { return Ok(()) };
                let suggest = Suggest {
                    rest: self.rest(from).clone(),
                    interaction: it.id.get(),
                    token: it.token.clone(),
                };
                return self.tell(Inbound::Typing { typing, suggest }).await;
            }
            Interaction::Ping(_) | _ => return Ok(()),
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
        let Some(Commanded { actor, channel_id, wanted, .. }) = commanded else {
            answer(reply, "gate.stale", &[]);
            return Ok(());
        };
        match wanted {
            Wanted::Command(command) => self.tell(Inbound::Command { actor, command, reply }).await,
            Wanted::Look(question) => self.tell(Inbound::Question { actor, question, reply }).await,
            Wanted::NoRequest(typed) => {
                answer(reply, "unknown_request", &[("request_id", typed.into())]);
                Ok(())
            }
            Wanted::Form(files) => {
                self.keep_files(&as_message(&actor, channel_id), files).await;
                Ok(())
            }
            Wanted::Kickoff(mut kickoff, files) => {
                kickoff.artifacts = self.shelf.find(&files).await;
                let missing = files.len() - kickoff.artifacts.len();
                if missing > 0 {
                    answer(reply, "attachments_failed", &[("count", missing.into())]);
                    return Ok(());
                }
                let command = Command::SprintStart { kickoff };
                self.tell(Inbound::Command { actor, command, reply }).await
            }
        }
    }

    /// Fetches the files of a command while its form is being filled in.
    async fn keep_files(&self, message: &Message, files: Vec<(Attachment, Remote)>) {
        if files.is_empty() || !self.wants_files.of(message) {
            return;
        }
        let (attachments, files) = files.into_iter().unzip();
        let message = Message { attachments, ..message.clone() };
        let http = self.rest(None).pool().http().clone();
        self.shelf.fill(&http, &mut Heard { message, files }).await;
    }
}

/// A command as the message that it might have been: whether files are wanted is one question.
fn as_message(actor: &Actor, channel_id: ChannelId) -> Message {
    let (author, guild_id) = match actor {
        Actor::Person { author, guild_id, .. } => (author.clone(), *guild_id),
        Actor::Operator | Actor::Deleter | Actor::Agent { .. } => {
            let name = String::new();
            let nobody = Author { id: UserId(0), name, is_bot: true, server_roles: Vec::new() };
            (nobody, None)
        }
    };
    Message {
        message_id: MessageId(0),
        channel_id,
        guild_id,
        author,
        content: "sprint".to_owned(),
        addressed: true,
        role: None,
        attachments: Vec::new(),
        created_at: Timestamp::from_millis(0),
        via: actor.ingress(),
    }
}

/// Answers beside the stream of facts.
fn answer(reply: InteractionReply, key: &str, values: &[(&str, Value)]) {
    let content = Content {
        key: key.to_owned(),
        values: values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        language: reply.language(),
    };
    tasks::spawn("discord-answer", async move { reply.say(&content).await });
}
