//! A local guild with a team in it, for tests of the Discord link.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use teams::assets::catalog::Catalog;
use teams::discord::{Access, Destination, Facts, Form, Inbound, Link, LinkConfig, VoiceMode};
use teams::domain::actor::Actor;
use teams::domain::ids::{ChannelId, MessageId, OutgoingId};
use teams::domain::incoming::Message;
use teams::domain::language::Language;
use teams::domain::outgoing::{
    Act, Button, ButtonAct, Content, Outgoing, OutgoingOutcome, OutgoingState, Post, Priority,
    Target, Voice,
};
use teams::domain::time::Timestamp;
use teams::local_guild::Running;
use teams::platform::{clock, ids};

use super::guild::{Caller, fresh};

/// How long a fact may take. Only a failure takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Everybody may do everything.
#[derive(Debug)]
pub(crate) struct Everybody;

impl Access for Everybody {
    fn takes_in(&self, _: &Message) -> bool {
        true
    }

    fn is_addressed_by_edit(&self, message: &Message) -> bool {
        message.addressed
    }

    fn depends_on_roles(&self, _: &Message) -> bool {
        true
    }

    fn is_room(&self, _: ChannelId) -> bool {
        false
    }

    fn is_known(&self, _: &Actor) -> bool {
        true
    }

    fn opens(&self, _: &Actor, _: Form) -> bool {
        true
    }
}

/// A guild with a team in it.
pub(crate) struct Scene {
    pub(crate) running: Running,
    pub(crate) link: Link,
    pub(crate) inbound: Facts,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) owner: Caller,
    pub(crate) bot: Caller,
}

pub(crate) fn personas(running: &Running) -> VoiceMode {
    VoiceMode::Personas { token: running.info.bots["teams"].token.clone().into() }
}

impl Scene {
    pub(crate) async fn with(running: Running, voice: VoiceMode, bot: &str) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let config = LinkConfig {
            voice,
            base_url: running.info.base_url.clone(),
            gateway_url: None,
            names: BTreeMap::new(),
            language: Language::En,
            zone: teams::domain::config::Zone::default(),
            workspace: folder.path().to_owned(),
            guilds: std::collections::BTreeSet::new(),
            limits: None,
            attachments: PathBuf::from("shared_workspace/attachments"),
            access: std::sync::Arc::new(Everybody),
        };
        let (link, inbound) = Link::start(config, Catalog::builtin().unwrap()).unwrap();
        let owner = Caller::person(&running.info, "owner");
        let bot = Caller::bot(&running.info, bot);
        Scene { running, link, inbound, folder, owner, bot }
    }

    /// One bot for all, connected.
    pub(crate) async fn connected() -> Scene {
        let running = fresh().await;
        let voice = personas(&running);
        let mut scene = Scene::with(running, voice, "teams").await;
        scene.begin().await;
        scene
    }

    pub(crate) async fn begin(&mut self) {
        let connected = self.until(|it| matches!(it, Inbound::Connected { .. })).await;
        assert!(matches!(connected, Inbound::Connected { fresh: true, .. }));
        self.link.catch_up(&BTreeMap::new(), &BTreeMap::new());
        self.until(|it| matches!(it, Inbound::Live)).await;
    }

    pub(crate) fn channel(&self, name: &str) -> ChannelId {
        self.running.info.channels[name].parse().unwrap()
    }

    pub(crate) fn place(&self, channel: &str) -> Destination {
        Destination { channel: self.channel(channel), card: None, parent: None }
    }

    pub(crate) async fn until(&mut self, wanted: impl Fn(&Inbound) -> bool) -> Inbound {
        let (inbound, link) = (&mut self.inbound, &self.link);
        let found = async {
            loop {
                let fact = inbound.recv().await.expect("the link ended");
                if wanted(&fact) {
                    return fact;
                }
                // A role's bot came after the listener.
                if matches!(fact, Inbound::Connected { fresh: true, .. }) {
                    link.catch_up(&BTreeMap::new(), &BTreeMap::new());
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("the fact never came")
    }

    pub(crate) async fn message(&mut self) -> Message {
        let fact = self.until(|it| matches!(it, Inbound::Message(_))).await;
        let Inbound::Message(message) = fact else { unreachable!("{fact:?}") };
        message
    }

    pub(crate) async fn say(&self, channel: &str, content: &str) -> MessageId {
        let body = json!({"channel": channel, "content": content});
        let said = self.owner.ok("POST", "/_local/say", body).await;
        said["id"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) async fn faults(&self, order: Value) {
        self.owner.ok("POST", "/_local/faults", order).await;
    }

    pub(crate) async fn history(&self, channel: ChannelId) -> Vec<Value> {
        let path = format!("/channels/{channel}/messages?limit=100");
        let page = self.bot.ok("GET", &path, Value::Null).await;
        let mut list = page.as_array().unwrap().clone();
        list.reverse();
        list
    }

    pub(crate) async fn deliver(
        &self,
        outgoing: &Outgoing,
        place: &Destination,
    ) -> OutgoingOutcome {
        self.link.deliver(outgoing, place, |_| async {}).await
    }

    /// Delivers and returns the ids of the messages.
    pub(crate) async fn posted(&self, outgoing: &Outgoing, place: &Destination) -> Vec<MessageId> {
        let outcome = self.deliver(outgoing, place).await;
        let OutgoingOutcome::Posted { message_ids, .. } = outcome else {
            panic!("{outcome:?}");
        };
        message_ids
    }
}

pub(crate) fn now() -> Timestamp {
    Timestamp::new(clock::now())
}

pub(crate) fn content(key: &str, values: Value) -> Content {
    Content {
        key: key.to_owned(),
        values: values.as_object().unwrap().clone(),
        language: Language::En,
    }
}

pub(crate) fn outgoing(voice: Voice, act: Act) -> Outgoing {
    Outgoing {
        outgoing_id: OutgoingId::parse(&ids::uuid_v7().to_string()).unwrap(),
        target: Target::Channel(ChannelId(1)),
        voice,
        priority: Priority::Progress,
        act,
        request_id: None,
        slot: None,
        state: OutgoingState::Sending { since: now(), parts_done: 0 },
        attempts: 0,
        own_failures: 0,
        not_before: None,
        refused: None,
        created_at: now(),
    }
}

pub(crate) fn post(voice: Voice, key: &str, values: Value) -> Outgoing {
    outgoing(voice, Act::Post(Post::new(content(key, values))))
}

pub(crate) fn report(summary: &str) -> Value {
    json!({"role": "planner", "step": "planner_draft", "status": "completed", "summary": summary, "next_role": ""})
}

pub(crate) fn card(status: &str) -> Act {
    let values = json!({
        "request_id": "20260324-1a2b3c4d", "title": "Greeting", "status": status, "owner": "planner",
        "step": "planner_draft", "next": "", "files": [], "checks": "", "commit": "", "turns": 1,
        "tokens": 10, "cost": "", "agent": "rehearsal", "rehearsal": true, "updated": "",
    });
    Act::Card {
        content: content("card", values),
        buttons: vec![Button {
            act: ButtonAct::Cancel,
            subject: "20260324-1a2b3c4d".to_owned(),
            version: 1,
        }],
        menu: None,
    }
}

/// Another process of the same team.
pub(crate) fn second_link(scene: &Scene) -> Link {
    let config = LinkConfig {
        voice: personas(&scene.running),
        base_url: scene.running.info.base_url.clone(),
        gateway_url: None,
        names: BTreeMap::new(),
        language: Language::En,
        zone: teams::domain::config::Zone::default(),
        workspace: scene.folder.path().to_owned(),
        guilds: std::collections::BTreeSet::new(),
        limits: None,
        attachments: PathBuf::from("shared_workspace/attachments"),
        access: std::sync::Arc::new(Everybody),
    };
    Link::start(config, Catalog::builtin().unwrap()).unwrap().0
}
