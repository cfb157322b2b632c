//! An unmodified serenity client at home in the local guild: the strictest reader of payloads.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use serenity::all::{
    ActionRowComponent, ButtonStyle, ChannelId, CommandInteraction, ComponentInteraction, Context,
    CreateActionRow, CreateAttachment, CreateButton, CreateCommand, CreateInputText,
    CreateInteractionResponse, CreateInteractionResponseMessage, CreateMessage, CreateModal,
    CreateThread, CreateWebhook, EditMessage, EventHandler, ExecuteWebhook, GatewayIntents, Guild,
    GuildChannel, GuildId, Http, HttpBuilder, InputTextStyle, Interaction, Message, MessageId,
    MessageUpdateEvent, ModalInteraction, Ready,
};
use serenity::async_trait;
use serenity::gateway::ActivityData;
use tokio::sync::mpsc;

use crate::support::guild::{Caller, fresh};

/// What the client saw, in order.
#[derive(Debug)]
enum Seen {
    Ready(String),
    Guild { channels: usize, roles: usize },
    Answered,
    Thread(String),
    Clicked(String),
    Command(String),
    Filled(String),
    Edited(String),
    Deleted(MessageId),
    Spoken(String),
    Unknown(String),
}

struct Handler(mpsc::UnboundedSender<Seen>);

impl Handler {
    fn saw(&self, what: Seen) {
        // The test may have ended already.
        let _ = self.0.send(what);
    }

    async fn click(&self, context: &Context, click: ComponentInteraction) {
        let text = format!("{} pressed {}", click.user.name, click.data.custom_id);
        let message = CreateInteractionResponseMessage::new().content(text).components(Vec::new());
        let response = CreateInteractionResponse::UpdateMessage(message);
        click.create_response(&context.http, response).await.unwrap();
        self.saw(Seen::Clicked(click.data.custom_id));
    }

    /// Answers a command with words, or with a dialog.
    async fn command(&self, context: &Context, command: CommandInteraction) {
        let response = if command.data.name == "reason" {
            let why = CreateInputText::new(InputTextStyle::Short, "Why?", "why");
            let dialog = CreateModal::new("reason", "A reason")
                .components(vec![CreateActionRow::InputText(why)]);
            CreateInteractionResponse::Modal(dialog)
        } else {
            let message = CreateInteractionResponseMessage::new().content("all is well");
            CreateInteractionResponse::Message(message)
        };
        command.create_response(&context.http, response).await.unwrap();
        self.saw(Seen::Command(command.data.name));
    }

    async fn filled(&self, context: &Context, modal: ModalInteraction) {
        let ActionRowComponent::InputText(input) = &modal.data.components[0].components[0] else {
            panic!("a text was asked for");
        };
        let why = input.value.clone().unwrap();
        let message = CreateInteractionResponseMessage::new().content(format!("because {why}"));
        let response = CreateInteractionResponse::Message(message);
        modal.create_response(&context.http, response).await.unwrap();
        self.saw(Seen::Filled(why));
    }
}

#[async_trait]
impl EventHandler for Handler {
    async fn ready(&self, _: Context, ready: Ready) {
        self.saw(Seen::Ready(ready.user.name.clone()));
    }

    async fn guild_create(&self, _: Context, guild: Guild, _: Option<bool>) {
        self.saw(Seen::Guild { channels: guild.channels.len(), roles: guild.roles.len() });
    }

    async fn thread_create(&self, _: Context, thread: GuildChannel) {
        self.saw(Seen::Thread(thread.name));
    }

    async fn message_update(
        &self,
        _: Context,
        _: Option<Message>,
        _: Option<Message>,
        event: MessageUpdateEvent,
    ) {
        self.saw(Seen::Edited(event.content.unwrap_or_default()));
    }

    async fn message_delete(
        &self,
        _: Context,
        _: ChannelId,
        message: MessageId,
        _: Option<GuildId>,
    ) {
        self.saw(Seen::Deleted(message));
    }

    async fn message(&self, context: Context, message: Message) {
        if message.webhook_id.is_some() {
            self.saw(Seen::Spoken(message.author.name.clone()));
        }
        if message.author.bot {
            return;
        }
        let button = CreateButton::new("ok").label("OK").style(ButtonStyle::Success);
        let reply = CreateMessage::new()
            .content(format!("heard: {}", message.content))
            .reference_message(&message)
            .components(vec![CreateActionRow::Buttons(vec![button])]);
        let sent = message.channel_id.send_message(&context.http, reply).await.unwrap();
        sent.react(&context.http, '👀').await.unwrap();
        if message.guild_id.is_none() {
            self.saw(Seen::Answered);
            return;
        }
        let thread = CreateThread::new("room");
        message
            .channel_id
            .create_thread_from_message(&context.http, message.id, thread)
            .await
            .unwrap();
        self.saw(Seen::Answered);
    }

    async fn interaction_create(&self, context: Context, interaction: Interaction) {
        match interaction {
            Interaction::Component(click) => self.click(&context, click).await,
            Interaction::Command(command) => self.command(&context, command).await,
            Interaction::Modal(modal) => self.filled(&context, modal).await,
            other @ (Interaction::Ping(_) | Interaction::Autocomplete(_) | _) => {
                self.saw(Seen::Unknown(format!("{other:?}")));
            }
        }
    }
}

/// Counts what serenity could not read: it drops such events without a word.
struct Raw(mpsc::UnboundedSender<Seen>);

#[async_trait]
impl serenity::all::RawEventHandler for Raw {
    async fn raw_event(&self, _: Context, event: serenity::all::Event) {
        if let serenity::all::Event::Unknown(unknown) = event {
            let _ = self.0.send(Seen::Unknown(unknown.kind));
        }
    }
}

/// What the client saw. serenity handles each event in a task of its own, so that a later one may be seen
/// first: what is not waited for yet is kept.
struct Watch {
    seen: mpsc::UnboundedReceiver<Seen>,
    earlier: Vec<Seen>,
}

impl Watch {
    async fn next(&mut self, wanted: impl Fn(&Seen) -> bool) -> Seen {
        if let Some(at) = self.earlier.iter().position(&wanted) {
            return self.earlier.remove(at);
        }
        loop {
            let next = tokio::time::timeout(Duration::from_secs(120), self.seen.recv()).await;
            let next = next.unwrap_or_else(|_| panic!("only {:?} came", self.earlier));
            let next = next.expect("the client is there");
            if let Seen::Unknown(what) = &next {
                panic!("serenity could not read {what}");
            }
            if wanted(&next) {
                return next;
            }
            self.earlier.push(next);
        }
    }
}

/// Sends, edits, deletes, uploads, and speaks through a webhook, by what the client's objects say.
async fn messages_and_webhooks(http: &Arc<Http>, general: ChannelId, seen: &mut Watch) {
    let mut sent = general.say(http, "draft").await.unwrap();
    sent.edit(http, EditMessage::new().content("final")).await.unwrap();
    assert_eq!(sent.content, "final");
    assert!(sent.edited_timestamp.is_some());
    seen.next(|it| matches!(it, Seen::Edited(content) if content == "final")).await;
    sent.delete(http).await.unwrap();
    seen.next(|it| matches!(it, Seen::Deleted(id) if *id == sent.id)).await;
    assert!(general.message(http, sent.id).await.is_err());
    let file = CreateAttachment::bytes(b"bytes".as_slice(), "a.txt");
    let filed = general.send_files(http, [file], CreateMessage::new()).await.unwrap();
    assert_eq!(filed.attachments[0].size, 5);
    let bytes = reqwest::get(&filed.attachments[0].url).await.unwrap().bytes().await.unwrap();
    assert_eq!(bytes, b"bytes".as_slice());
    let hook = general.create_webhook(http, CreateWebhook::new("voices")).await.unwrap();
    let words = ExecuteWebhook::new().content("a plan").username("Planner");
    let spoken = hook.execute(http, true, words).await.unwrap().unwrap();
    assert_eq!((spoken.author.name.as_str(), spoken.webhook_id), ("Planner", Some(hook.id)));
    seen.next(|it| matches!(it, Seen::Spoken(name) if name == "Planner")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unmodified_client_logs_in_reads_answers_and_is_clicked() {
    let running = fresh().await;
    let info = &running.info;
    let http: Http = HttpBuilder::new(&info.bots["teams"].token)
        .proxy(&info.base_url)
        .ratelimiter_disabled(true)
        .application_id(info.bots["teams"].id.parse().unwrap())
        .build();
    let (sender, seen) = mpsc::unbounded_channel();
    let mut seen = Watch { seen, earlier: Vec::new() };
    let intents = GatewayIntents::non_privileged() | GatewayIntents::MESSAGE_CONTENT;
    let mut client = serenity::client::ClientBuilder::new_with_http(http, intents)
        .event_handler(Handler(sender.clone()))
        .raw_event_handler(Raw(sender))
        .activity(ActivityData::watching("the tests"))
        .await
        .unwrap();
    *client.ws_url.lock().await = info.gateway_url.clone();
    let http = Arc::clone(&client.http);
    let shards = Arc::clone(&client.shard_manager);
    let task = tokio::spawn(async move { client.start().await });

    let Seen::Ready(name) = seen.next(|it| matches!(it, Seen::Ready(_))).await else {
        unreachable!()
    };
    assert_eq!(name, "teams");
    let guild = seen.next(|it| matches!(it, Seen::Guild { .. })).await;
    assert!(matches!(guild, Seen::Guild { channels: 4, roles: 9 }), "{guild:?}");

    let owner = Caller::person(info, "owner");
    owner.ok("POST", "/_local/say", json!({"channel": "general", "content": "hello"})).await;
    seen.next(|it| matches!(it, Seen::Answered)).await;
    seen.next(|it| matches!(it, Seen::Thread(name) if name == "room")).await;
    // The message now says that it has a room.
    seen.next(|it| matches!(it, Seen::Edited(content) if content == "hello")).await;
    let list = format!("/_local/messages?channel={}", info.channels["general"]);
    let messages = owner.ok("GET", &list, Value::Null).await;
    let reply = &messages[0];
    assert_eq!(reply["content"], "heard: hello");
    assert_eq!(reply["referenced_message"]["content"], "hello");
    assert_eq!(reply["reactions"][0]["emoji"]["name"], "👀");

    let click = json!({"channel": "general", "message": reply["id"], "custom_id": "ok"});
    owner.ok("POST", "/_local/click", click).await;
    seen.next(|it| matches!(it, Seen::Clicked(id) if id == "ok")).await;
    let messages = owner.ok("GET", &list, Value::Null).await;
    assert_eq!(messages[0]["content"], "owner pressed ok");
    assert_eq!(messages[0]["components"], json!([]));

    // A direct conversation, with a button in it.
    let dm = owner.ok("POST", "/_local/dm", json!({"bot": "teams"})).await;
    owner.ok("POST", "/_local/say", json!({"channel": dm["id"], "content": "psst"})).await;
    seen.next(|it| matches!(it, Seen::Answered)).await;
    let private = format!("/_local/messages?channel={}", dm["id"].as_str().unwrap());
    let private = owner.ok("GET", &private, Value::Null).await;
    let click = json!({"channel": dm["id"], "message": private[0]["id"], "custom_id": "ok"});
    owner.ok("POST", "/_local/click", click).await;
    seen.next(|it| matches!(it, Seen::Clicked(_))).await;

    let guild = serenity::all::GuildId::new(info.guild_id.parse().unwrap());
    let commands = [("status", "How things stand"), ("reason", "Why so")];
    let commands = commands.map(|(name, text)| CreateCommand::new(name).description(text));
    guild.set_commands(&http, commands.to_vec()).await.unwrap();
    owner.ok("POST", "/_local/slash", json!({"channel": "general", "command": "status"})).await;
    seen.next(|it| matches!(it, Seen::Command(name) if name == "status")).await;
    let asked = json!({"channel": "general", "command": "reason"});
    let asked = owner.ok("POST", "/_local/slash", asked).await;
    seen.next(|it| matches!(it, Seen::Command(name) if name == "reason")).await;
    let filled = json!({"interaction": asked["interaction"], "values": {"why": "it is so"}});
    owner.ok("POST", "/_local/modal", filled).await;
    seen.next(|it| matches!(it, Seen::Filled(why) if why == "it is so")).await;
    messages_and_webhooks(&http, info.channels["general"].parse().unwrap(), &mut seen).await;

    // Calls whose answers serenity reads strictly.
    http.get_current_application_info().await.unwrap();
    http.get_current_user().await.unwrap();
    http.get_bot_gateway().await.unwrap();
    guild.channels(&http).await.unwrap();
    guild.roles(&http).await.unwrap();
    guild.members(&http, None, None).await.unwrap();
    guild.get_active_threads(&http).await.unwrap();
    guild.to_partial_guild(&http).await.unwrap();
    shards.shutdown_all().await;
    task.await.unwrap().unwrap();
    running.shutdown().await;
}
