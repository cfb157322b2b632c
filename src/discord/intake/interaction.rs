//! Buttons, slash commands and forms.

use serde_json::Value;
use serenity::model::application::Interaction;
use tokio::task::JoinHandle;

use super::reading::name_in_full;
use super::{From, Reader, unreadable};
use crate::discord::error::{RestError, code};
use crate::discord::inbound::{DroppedPlan, Inbound, InteractionReply, Suggest};
use crate::discord::ingress::{InboundMessage, Remote};
use crate::discord::person_request::{self, PersonCommand, PersonRequest};
use crate::domain::actor::{Actor, Author};
use crate::domain::attachment::Attachment;
use crate::domain::ids::{ChannelId, InteractionId, MessageId, UserId};
use crate::domain::incoming::{Command, Message};
use crate::domain::language::Language;
use crate::domain::outgoing::Content;
use crate::domain::time::Timestamp;
use crate::platform::tasks;

/// Who did it; nobody where the payload does not say.
pub(super) fn who(data: &Value) -> UserId {
    let id = data.pointer("/member/user/id").or_else(|| data.pointer("/user/id"));
    id.and_then(Value::as_str).and_then(|id| id.parse().ok()).unwrap_or(UserId(0))
}

impl Reader {
    /// What an interaction comes to, once Discord was told that we heard. Rights are looked at first: who holds
    /// none learns nothing but that.
    pub(super) async fn interaction(
        &self,
        from: From,
        mut data: Value,
        acknowledged: JoinHandle<Result<(), RestError>>,
    ) -> Option<Inbound> {
        let files = data.pointer_mut("/data/resolved/attachments").and_then(Value::as_object_mut);
        files.into_iter().flatten().for_each(|(_, file)| name_in_full(file));
        let Ok(interaction) = serde_json::from_value::<Interaction>(data) else {
            unreadable("INTERACTION_CREATE");
            return None;
        };
        let (id, commanded, application, token) = match &interaction {
            Interaction::Component(it) => {
                (it.id, person_request::press(it), it.application_id, &it.token)
            }
            Interaction::Command(it) => {
                (it.id, person_request::slash(it), it.application_id, &it.token)
            }
            Interaction::Modal(it) => {
                (it.id, person_request::form(it), it.application_id, &it.token)
            }
            Interaction::Autocomplete(it) => {
                let typing = person_request::typing(it)?;
                let suggest = Suggest {
                    rest: self.rest(from).clone(),
                    interaction: it.id.get(),
                    token: it.token.clone(),
                };
                return Some(Inbound::Typing { typing, suggest });
            }
            Interaction::Ping(_) | _ => return None,
        };
        match acknowledged.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.code() == Some(code::UNKNOWN_INTERACTION) => {
                // It came too late: the person was told that it failed.
                tracing::warn!("a command came after its time and was not carried out");
                return None;
            }
            Ok(Err(error)) => tracing::warn!(%error, "a command was not acknowledged"),
            Err(error) => tracing::warn!(%error, "a command was not acknowledged"),
        }
        let reply = InteractionReply {
            interaction: InteractionId(id.get()),
            rest: self.rest(from).clone(),
            catalog: self.catalog.clone(),
            application: application.get(),
            token: token.clone(),
            language: commanded.as_ref().map_or(Language::En, |it| it.language),
        };
        let Some(PersonCommand { actor, channel_id, wanted, .. }) = commanded else {
            answer(reply, "gate.stale", &[]);
            return None;
        };
        let form = person_request::opens(&wanted);
        // Who may press a button depends on what it is about, which the card shows to everybody: the team says so.
        let presses = matches!(&wanted, PersonRequest::Command(Command::Press { .. }));
        if (!presses && !self.access.is_known(&actor))
            || form.is_some_and(|form| !self.access.opens(&actor, form))
        {
            let key = if self.access.is_known(&actor) { "needs_right" } else { "not_allowed" };
            answer(reply, key, &[]);
            return None;
        }
        match wanted {
            PersonRequest::Command(command) => Some(Inbound::Command { actor, command, reply }),
            PersonRequest::Look(question) => Some(Inbound::Question { actor, question, reply }),
            PersonRequest::NoRequest(typed) => {
                answer(reply, "unknown_subject", &[("id", typed.into())]);
                None
            }
            PersonRequest::NoVerdict(words) => {
                answer(reply, "verify.no_verdict", &[("words", words.into())]);
                None
            }
            PersonRequest::LaneAndStep => {
                answer(reply, "route.lane_and_step", &[]);
                None
            }
            PersonRequest::Form(files) => {
                self.keep_files(&as_message(&actor, channel_id), files).await;
                None
            }
            PersonRequest::Plan(files, approve) => {
                let name = files.first().map(|(file, _)| file.filename.clone()).unwrap_or_default();
                let ids: Vec<u64> = files.iter().map(|(_, remote)| remote.id).collect();
                self.keep_files(&as_message(&actor, channel_id), files).await;
                let Some(path) = self.attachments.find(&ids).await.pop() else {
                    answer(reply, "attachments_failed", &[("count", 1.into())]);
                    return None;
                };
                let dropped = DroppedPlan { name, path, approve };
                Some(Inbound::Plan { actor, dropped, reply })
            }
            PersonRequest::Kickoff(mut kickoff, files) => {
                kickoff.artifacts = self.attachments.find(&files).await;
                let missing = files.len() - kickoff.artifacts.len();
                kickoff.missing_files = u32::try_from(missing).unwrap_or(u32::MAX);
                let command = Command::SprintStart { kickoff };
                Some(Inbound::Command { actor, command, reply })
            }
        }
    }

    /// Fetches the files of a command while its form is being filled in.
    async fn keep_files(&self, message: &Message, files: Vec<(Attachment, Remote)>) {
        if files.is_empty() || !self.access.takes_in(message) {
            return;
        }
        let (attachments, files) = files.into_iter().unzip();
        let message = Message { attachments, ..message.clone() };
        let http = self.rest(None).pool().http().clone();
        self.attachments.fill(&http, &mut InboundMessage { message, files }).await;
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
        reply_to: None,
        read_up_to: None,
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
