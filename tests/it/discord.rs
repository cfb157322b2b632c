//! The Discord link against the local guild: what people do comes in as facts, what the team says gets
//! there once, whatever the connection does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use teams::assets::catalog::Catalog;
use teams::discord::{Inbound, Link, LinkConfig, Place, VoiceMode};
use teams::domain::ids::{ChannelId, MessageId, OutgoingId, UserId};
use teams::domain::incoming::{Command, Message};
use teams::domain::outgoing::{
    Act, Button, ButtonAct, Content, Outgoing, OutgoingOutcome, OutgoingState, Priority, Target,
    Voice,
};
use teams::domain::request::Language;
use teams::domain::role::Role;
use teams::domain::time::Timestamp;
use teams::local_guild::Running;
use teams::platform::{clock, files, ids};
use tokio::sync::mpsc;

use crate::support::guild::{Caller, fresh};

/// How long a fact may take. Only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A guild with a team in it.
struct Scene {
    running: Running,
    link: Link,
    inbound: mpsc::Receiver<Inbound>,
    folder: tempfile::TempDir,
    owner: Caller,
    bot: Caller,
}

fn personas(running: &Running) -> VoiceMode {
    VoiceMode::Personas {
        token: running.info.bots["teams"].token.clone().into(),
    }
}

impl Scene {
    async fn with(running: Running, voice: VoiceMode, bot: &str) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let config = LinkConfig {
            voice,
            base_url: running.info.base_url.clone(),
            gateway_url: None,
            names: BTreeMap::new(),
            language: Language::En,
            workspace: folder.path().to_owned(),
            attachments: PathBuf::from("shared_workspace/attachments"),
        };
        let (link, inbound) = Link::start(config, Catalog::builtin().unwrap()).unwrap();
        let owner = Caller::person(&running.info, "owner");
        let bot = Caller::bot(&running.info, bot);
        Scene {
            running,
            link,
            inbound,
            folder,
            owner,
            bot,
        }
    }

    /// One bot for all, connected.
    async fn connected() -> Scene {
        let running = fresh().await;
        let voice = personas(&running);
        let mut scene = Scene::with(running, voice, "teams").await;
        scene.begin().await;
        scene
    }

    async fn begin(&mut self) {
        let connected = self
            .until(|it| matches!(it, Inbound::Connected { .. }))
            .await;
        assert!(matches!(connected, Inbound::Connected { fresh: true, .. }));
        self.link.catch_up(&BTreeMap::new()).await;
    }

    fn channel(&self, name: &str) -> ChannelId {
        self.running.info.channels[name].parse().unwrap()
    }

    fn place(&self, channel: &str) -> Place {
        Place {
            channel: self.channel(channel),
            card: None,
            parent: None,
        }
    }

    async fn until(&mut self, wanted: impl Fn(&Inbound) -> bool) -> Inbound {
        let inbound = &mut self.inbound;
        let found = async {
            loop {
                let fact = inbound.recv().await.expect("the link ended");
                if wanted(&fact) {
                    return fact;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found)
            .await
            .expect("the fact never came")
    }

    async fn message(&mut self) -> Message {
        match self.until(|it| matches!(it, Inbound::Message(_))).await {
            Inbound::Message(message) => message,
            other => panic!("{other:?}"),
        }
    }

    async fn say(&self, channel: &str, content: &str) -> MessageId {
        let body = json!({"channel": channel, "content": content});
        let said = self.owner.ok("POST", "/_local/say", body).await;
        said["id"].as_str().unwrap().parse().unwrap()
    }

    async fn faults(&self, order: Value) {
        self.owner.ok("POST", "/_local/faults", order).await;
    }

    async fn history(&self, channel: ChannelId) -> Vec<Value> {
        let path = format!("/channels/{channel}/messages?limit=100");
        let page = self.bot.ok("GET", &path, Value::Null).await;
        let mut list = page.as_array().unwrap().clone();
        list.reverse();
        list
    }

    async fn deliver(&self, outgoing: &Outgoing, place: &Place) -> OutgoingOutcome {
        self.link.deliver(outgoing, place, |_| async {}).await
    }

    /// Delivers and returns the ids of the messages.
    async fn posted(&self, outgoing: &Outgoing, place: &Place) -> Vec<MessageId> {
        match self.deliver(outgoing, place).await {
            OutgoingOutcome::Posted { message_ids, .. } => message_ids,
            other => panic!("{other:?}"),
        }
    }
}

fn now() -> Timestamp {
    Timestamp::new(clock::now())
}

fn content(key: &str, values: Value) -> Content {
    Content {
        key: key.to_owned(),
        values: values.as_object().unwrap().clone(),
        language: Language::En,
    }
}

fn outgoing(voice: Voice, act: Act) -> Outgoing {
    Outgoing {
        outgoing_id: OutgoingId::parse(&ids::uuid_v7().to_string()).unwrap(),
        target: Target::Channel(ChannelId(1)),
        voice,
        priority: Priority::Progress,
        act,
        request_id: None,
        slot: None,
        state: OutgoingState::Sending {
            since: now(),
            parts_done: 0,
        },
        attempts: 0,
        not_before: None,
        created_at: now(),
    }
}

fn post(voice: Voice, key: &str, values: Value) -> Outgoing {
    outgoing(
        voice,
        Act::Post {
            content: content(key, values),
            reply_to: None,
            mention: None,
            buttons: Vec::new(),
            gate_id: None,
            files: Vec::new(),
        },
    )
}

fn report(summary: &str) -> Value {
    json!({"role": "planner", "step": "planner_draft", "status": "completed", "summary": summary, "next_role": ""})
}

fn card(status: &str) -> Act {
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
    }
}

#[tokio::test]
async fn what_people_write_is_heard_once_and_verbatim() {
    let mut scene = Scene::connected().await;
    let us = scene.running.info.bots["teams"].id.clone();
    let general = scene.channel("general");

    let id = scene
        .say(
            "general",
            &format!("<@{us}>\n    indented\n  code <@{us}> here"),
        )
        .await;
    let heard = scene.message().await;
    assert_eq!(heard.message_id, id);
    assert_eq!(heard.channel_id, general);
    assert_eq!(heard.content, format!("    indented\n  code <@{us}> here"));
    assert!(heard.addressed && !heard.author.is_bot && heard.guild_id.is_some());
    assert_eq!(heard.role, None);

    scene.say("general", "just talking").await;
    assert!(!scene.message().await.addressed);

    let roles = scene
        .bot
        .ok(
            "GET",
            &format!("/guilds/{}/roles", scene.running.info.guild_id),
            Value::Null,
        )
        .await;
    let role = |name: &str| {
        let found = roles.as_array().unwrap().iter();
        let mut found = found.filter(|it| it["name"].as_str().unwrap().to_lowercase() == name);
        found.next().unwrap()["id"].as_str().unwrap().to_owned()
    };
    scene
        .say(
            "general",
            &format!("<@&{}> draw it <@{us}>", role("designer")),
        )
        .await;
    let heard = scene.message().await;
    assert_eq!(
        (heard.content.as_str(), heard.role),
        ("draw it", Some(Role::Designer))
    );
    assert!(heard.addressed);

    // In an answer to what a persona said, that persona is addressed.
    let words = post(Voice::Role(Role::Planner), "room.report", report("A plan."));
    let said = scene.posted(&words, &scene.place("general")).await;
    let body =
        json!({"channel": "general", "content": "and then?", "reply_to": said[0].to_string()});
    scene.owner.ok("POST", "/_local/say", body).await;
    let heard = scene.message().await;
    assert_eq!(
        (heard.content.as_str(), heard.role),
        ("and then?", Some(Role::Planner))
    );
    assert!(heard.addressed);

    let dm = scene
        .owner
        .ok("POST", "/_local/dm", json!({"bot": "teams"}))
        .await;
    scene.say(dm["id"].as_str().unwrap(), "psst").await;
    let heard = scene.message().await;
    assert!(heard.guild_id.is_none() && heard.addressed);

    // Events that come twice are told once.
    scene.faults(json!({"duplicate_events": 2})).await;
    scene.say("general", "echo").await;
    scene.say("general", "end").await;
    assert_eq!(scene.message().await.content, "echo");
    assert_eq!(scene.message().await.content, "end");

    // Edits and deletions.
    let body = json!({"channel": "general", "message": id.to_string(), "content": "changed"});
    scene.owner.ok("POST", "/_local/edit", body).await;
    let edited = scene.until(|it| matches!(it, Inbound::Edited(_))).await;
    assert!(
        matches!(edited, Inbound::Edited(it) if it.message_id == id && it.content == "changed")
    );
    let body = json!({"channel": "general", "message": id.to_string()});
    scene.owner.call("POST", "/_local/delete", body).await;
    let gone = scene
        .until(|it| matches!(it, Inbound::Deleted { .. }))
        .await;
    assert!(matches!(gone, Inbound::Deleted { message_id, .. } if message_id == id));
}

#[tokio::test]
async fn what_the_team_says_is_there_once() {
    let scene = Scene::connected().await;
    let (general, place) = (scene.channel("general"), scene.place("general"));

    // The same outgoing again, as after a crash: the nonce answers.
    let receipt = post(
        Voice::Team,
        "receipt",
        json!({"request_id": "20260324-1a2b3c4d"}),
    );
    let first = scene.posted(&receipt, &place).await;
    assert_eq!(scene.posted(&receipt, &place).await, first);
    assert_eq!(scene.history(general).await.len(), 1);

    // Beyond the nonce's life the channel itself answers, for a process that knows of nothing.
    let mut old = receipt.clone();
    old.attempts = 1;
    old.created_at = Timestamp::from_millis(now().millis() - 600_000);
    let later = second_link(&scene);
    let outcome = later.deliver(&old, &place, |_| async {}).await;
    assert!(
        matches!(outcome, OutgoingOutcome::Posted { ref message_ids, .. } if *message_ids == first),
        "{outcome:?}"
    );
    assert_eq!(scene.history(general).await.len(), 1);
    later.close();

    // A long text comes in numbered parts, and each is reported before the next.
    let long = post(
        Voice::Team,
        "final.answered",
        json!({
            "request_id": "20260324-1a2b3c4d", "summary": "word ".repeat(1_100), "seconds": 3,
            "agent": "codex", "rehearsal": false,
        }),
    );
    let (told, mut counts) = mpsc::unbounded_channel();
    let outcome = scene
        .link
        .deliver(&long, &place, |done| {
            told.send(done).unwrap();
            async {}
        })
        .await;
    let OutgoingOutcome::Posted { message_ids, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(message_ids.len(), 3);
    let mut seen = Vec::new();
    while let Ok(count) = counts.try_recv() {
        seen.push(count);
    }
    assert_eq!(seen, [1, 2, 3]);
    // Going on after a crash between parts sends only the rest.
    let mut rest = long.clone();
    rest.state = OutgoingState::Sending {
        since: now(),
        parts_done: 2,
    };
    assert_eq!(scene.posted(&rest, &place).await, message_ids[2..]);
    assert_eq!(scene.history(general).await.len(), 4);
}

/// Another process of the same team.
fn second_link(scene: &Scene) -> Link {
    let config = LinkConfig {
        voice: personas(&scene.running),
        base_url: scene.running.info.base_url.clone(),
        gateway_url: None,
        names: BTreeMap::new(),
        language: Language::En,
        workspace: scene.folder.path().to_owned(),
        attachments: PathBuf::from("shared_workspace/attachments"),
    };
    Link::start(config, Catalog::builtin().unwrap()).unwrap().0
}

#[tokio::test]
async fn personas_speak_in_rooms_and_are_not_doubled() {
    let scene = Scene::connected().await;
    let general = scene.channel("general");
    let asked = scene.say("general", "please").await;

    let open = outgoing(
        Voice::Team,
        Act::OpenRoom {
            channel_id: general,
            message_id: asked,
            name: "  Greeting\nroom ".to_owned(),
        },
    );
    let opened = scene.deliver(&open, &scene.place("general")).await;
    let OutgoingOutcome::RoomOpened { thread_id } = opened else {
        panic!("{opened:?}");
    };
    assert_eq!(thread_id, ChannelId(asked.0));
    assert_eq!(scene.deliver(&open, &scene.place("general")).await, opened);

    let room = Place {
        channel: thread_id,
        card: None,
        parent: Some(general),
    };
    let words = post(Voice::Role(Role::Planner), "room.report", report("A plan."));
    scene.posted(&words, &room).await;
    // The same without knowing the parent, and another role.
    let unknown = Place {
        parent: None,
        ..room.clone()
    };
    let words = post(Voice::Role(Role::Qa), "room.report", report("Looks right."));
    scene.posted(&words, &unknown).await;
    let said = scene.history(thread_id).await;
    let names: Vec<&str> = said
        .iter()
        .map(|it| it["author"]["username"].as_str().unwrap())
        .collect();
    assert!(names.ends_with(&["Planner", "QA"]), "{names:?}");
    assert!(said.last().unwrap()["webhook_id"].is_string());
    let hooks = format!("/channels/{general}/webhooks");
    assert_eq!(
        scene
            .bot
            .ok("GET", &hooks, Value::Null)
            .await
            .as_array()
            .unwrap()
            .len(),
        2
    );

    // The answer is lost on the way; the next try finds the message in the channel.
    let count = said.len();
    let mut words = post(Voice::Role(Role::Qa), "room.report", report("Once only."));
    let fault =
        json!({"path_contains": "/webhooks/", "method": "POST", "trouble": "drop", "after": true});
    scene.faults(json!({"rest": [fault]})).await;
    let lost = scene.deliver(&words, &room).await;
    assert!(matches!(lost, OutgoingOutcome::Later { .. }), "{lost:?}");
    words.attempts = 1;
    let found = scene.posted(&words, &room).await;
    let said = scene.history(thread_id).await;
    assert_eq!(said.len(), count + 1);
    assert_eq!(said.last().unwrap()["id"], found[0].to_string());

    // Another process uses the same webhooks.
    let other = second_link(&scene);
    let words = post(Voice::Role(Role::Planner), "room.report", report("Again."));
    let outcome = other.deliver(&words, &room, |_| async {}).await;
    assert!(
        matches!(outcome, OutgoingOutcome::Posted { .. }),
        "{outcome:?}"
    );
    assert_eq!(
        scene
            .bot
            .ok("GET", &hooks, Value::Null)
            .await
            .as_array()
            .unwrap()
            .len(),
        2
    );
    other.close();

    // Somebody removes a webhook: made again at the next try.
    let all = scene.bot.ok("GET", &hooks, Value::Null).await;
    for hook in all.as_array().unwrap() {
        let path = format!("/webhooks/{}", hook["id"].as_str().unwrap());
        scene.bot.ok("DELETE", &path, Value::Null).await;
    }
    let mut words = post(
        Voice::Role(Role::Planner),
        "room.report",
        report("Still here."),
    );
    let lost = scene.deliver(&words, &room).await;
    assert!(matches!(lost, OutgoingOutcome::Later { .. }), "{lost:?}");
    words.attempts = 1;
    scene.posted(&words, &room).await;

    // In a direct message the bot itself speaks for the role.
    let owner: UserId = scene.running.info.users["owner"].id.parse().unwrap();
    let dm = scene.link.dm_place(owner, 0).await.unwrap();
    let words = post(
        Voice::Role(Role::Planner),
        "room.report",
        report("For you."),
    );
    scene.posted(&words, &dm).await;
    let said = scene.history(dm.channel).await;
    let text = said[0]["content"].as_str().unwrap();
    assert!(text.starts_with("**Planner**\n"), "{text}");
}

#[tokio::test]
async fn a_card_is_edited_in_place_and_comes_back_when_removed() {
    let mut scene = Scene::connected().await;
    let general = scene.channel("general");
    let mut place = scene.place("general");
    let made = scene
        .posted(&outgoing(Voice::Team, card("working")), &place)
        .await;
    place.card = Some(made[0]);
    let edited = scene
        .posted(&outgoing(Voice::Team, card("done")), &place)
        .await;
    assert_eq!(edited, made);
    let said = scene.history(general).await;
    assert_eq!(said.len(), 1);
    let embed = &said[0]["embeds"][0];
    assert_eq!(embed["title"], "Greeting");
    assert!(embed["description"].as_str().unwrap().contains("Done"));

    // A press of its button comes in as a command and is answered to the person alone.
    let body = json!({"channel": "general", "message": made[0].to_string(), "custom_id": "t:cancel:20260324-1a2b3c4d:1"});
    scene.owner.ok("POST", "/_local/click", body).await;
    let pressed = scene
        .until(|it| matches!(it, Inbound::Command { .. }))
        .await;
    let Inbound::Command { command, reply, .. } = pressed else {
        unreachable!()
    };
    let Command::Press {
        button, message_id, ..
    } = command
    else {
        panic!("{command:?}");
    };
    assert_eq!((button.act, message_id), (ButtonAct::Cancel, made[0]));
    reply
        .say(&content(
            "cancel.done",
            json!({"request_id": "20260324-1a2b3c4d"}),
        ))
        .await;

    let path = format!("/channels/{general}/messages/{}", made[0]);
    scene.bot.ok("DELETE", &path, Value::Null).await;
    let again = scene
        .posted(&outgoing(Voice::Team, card("failed")), &place)
        .await;
    assert_ne!(again, made);

    let react = outgoing(
        Voice::Team,
        Act::React {
            message_id: again[0],
            emoji: "👀".to_owned(),
        },
    );
    assert_eq!(scene.deliver(&react, &place).await, OutgoingOutcome::Done);
    let gone = outgoing(
        Voice::Team,
        Act::React {
            message_id: made[0],
            emoji: "👀".to_owned(),
        },
    );
    assert_eq!(scene.deliver(&gone, &place).await, OutgoingOutcome::Done);
}

#[tokio::test]
async fn slash_commands_are_registered_once_and_heard() {
    let mut scene = Scene::connected().await;
    let application = scene.running.info.bots["teams"].id.clone();
    let path = format!(
        "/applications/{application}/guilds/{}/commands",
        scene.running.info.guild_id
    );
    let end = tokio::time::Instant::now() + PATIENCE;
    while scene
        .bot
        .ok("GET", &path, Value::Null)
        .await
        .as_array()
        .unwrap()
        .len()
        < 3
    {
        assert!(tokio::time::Instant::now() < end, "never registered");
        tokio::task::yield_now().await;
    }
    let ask = json!({
        "channel": "general", "command": "ask",
        "options": [{"type": 3, "name": "text", "value": "인사말을 바꿔 주세요"}],
    });
    scene.owner.ok("POST", "/_local/slash", ask).await;
    let heard = scene
        .until(|it| matches!(it, Inbound::Command { .. }))
        .await;
    let Inbound::Command { command, .. } = heard else {
        unreachable!()
    };
    let general = scene.channel("general");
    assert_eq!(
        command,
        Command::Ask {
            text: "인사말을 바꿔 주세요".to_owned(),
            channel_id: Some(general),
            language: Language::Ko,
        }
    );
    // What is no id is answered here; the next command comes through.
    for (command, request) in [("cancel", "../x"), ("retry", "20260324-1a2b3c4d")] {
        let body = json!({
            "channel": "general", "command": command,
            "options": [{"type": 3, "name": "request", "value": request}],
        });
        scene.owner.ok("POST", "/_local/slash", body).await;
    }
    let heard = scene
        .until(|it| matches!(it, Inbound::Command { .. }))
        .await;
    assert!(matches!(
        heard,
        Inbound::Command {
            command: Command::Retry { .. },
            ..
        }
    ));
}

#[tokio::test]
async fn files_come_in_and_go_out() {
    let mut scene = Scene::connected().await;
    let upload = scene
        .owner
        .request("POST", "/_local/upload?filename=..%2Fno%20tes.md")
        .body("hello file")
        .send()
        .await
        .unwrap();
    let file: Value = upload.json().await.unwrap();
    let body = json!({"channel": "general", "content": "", "attachments": [file["id"]]});
    scene.owner.ok("POST", "/_local/say", body).await;
    let heard = scene.message().await;
    assert_eq!(heard.attachments.len(), 1);
    let saved = heard.attachments[0].saved.clone().unwrap();
    assert!(
        saved.starts_with("shared_workspace/attachments/"),
        "{saved}"
    );
    let path = scene.folder.path().join(&saved);
    assert_eq!(files::read_text(&path).unwrap(), "hello file");

    let mut words = post(Voice::Team, "followup_taken", json!({}));
    if let Act::Post { files, .. } = &mut words.act {
        *files = vec![saved, "../outside".to_owned(), "missing.md".to_owned()];
    }
    scene.posted(&words, &scene.place("general")).await;
    let said = scene.history(scene.channel("general")).await;
    let attached = said.last().unwrap()["attachments"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(attached.len(), 1);
    let bytes = reqwest::get(attached[0]["url"].as_str().unwrap())
        .await
        .unwrap();
    assert_eq!(bytes.text().await.unwrap(), "hello file");

    // A file that cannot be fetched leaves its message without it.
    scene
        .faults(json!({"rest": [{"path_contains": "/attachments/", "status": 500, "times": 9}]}))
        .await;
    let upload = scene
        .owner
        .request("POST", "/_local/upload?filename=a.txt")
        .body("x");
    let file: Value = upload.send().await.unwrap().json().await.unwrap();
    let body = json!({"channel": "general", "content": "look", "attachments": [file["id"]]});
    scene.owner.ok("POST", "/_local/say", body).await;
    assert_eq!(scene.message().await.attachments[0].saved, None);
}

#[tokio::test]
async fn what_was_missed_is_told_before_what_is_new() {
    let mut scene = Scene::connected().await;
    let general = scene.channel("general");
    let first = scene.say("general", "first").await;
    assert_eq!(scene.message().await.content, "first");

    // A resumed session misses nothing.
    scene.faults(json!({"gateway": "drop"})).await;
    scene.say("general", "while away").await;
    assert_eq!(scene.message().await.content, "while away");

    // Lost events and a lost session: only the history has them.
    scene.faults(json!({"lose_events": 2})).await;
    let us = scene.running.info.bots["teams"].id.clone();
    scene.say("general", &format!("<@{us}> lost one")).await;
    scene.say("general", "lost two").await;
    scene
        .faults(json!({"gateway": {"invalid_session": {"resumable": false}}}))
        .await;
    let back = scene
        .until(|it| matches!(it, Inbound::Connected { fresh: true, .. }))
        .await;
    assert!(matches!(back, Inbound::Connected { .. }));
    scene.say("general", "new").await;
    let (link, mut marks) = (scene.link.clone(), BTreeMap::from([(general, first)]));
    marks.insert(ChannelId(12_345), MessageId(1));
    let catching = tokio::spawn(async move { link.catch_up(&marks).await });
    let mut told = Vec::new();
    while told.len() < 3 {
        let message = scene.message().await;
        assert!(message.guild_id.is_some());
        told.push((message.content, message.addressed));
    }
    let expected = [("lost one", true), ("lost two", false), ("new", false)];
    assert_eq!(
        told,
        expected.map(|(text, addressed)| (text.to_owned(), addressed))
    );
    catching.await.unwrap();
}

#[tokio::test]
async fn a_dead_discord_means_later_and_is_reached_again() {
    let mut scene = Scene::connected().await;
    let place = scene.place("general");
    scene.faults(json!({"down": true})).await;
    let lost = scene
        .until(|it| matches!(it, Inbound::Disconnected { .. }))
        .await;
    assert!(matches!(lost, Inbound::Disconnected { .. }));
    let mut receipt = post(
        Voice::Team,
        "receipt",
        json!({"request_id": "20260324-1a2b3c4d"}),
    );
    let outcome = scene.deliver(&receipt, &place).await;
    let OutgoingOutcome::Later { at, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(at > now());
    let owner: UserId = scene.running.info.users["owner"].id.parse().unwrap();
    let dm = scene.link.dm_place(owner, 0).await;
    assert!(matches!(dm, Err(OutgoingOutcome::Later { .. })), "{dm:?}");
    scene.faults(json!({"down": false})).await;
    scene
        .until(|it| matches!(it, Inbound::Connected { .. }))
        .await;
    receipt.attempts = 1;
    scene.posted(&receipt, &place).await;
    assert_eq!(scene.history(place.channel).await.len(), 1);

    // Limits are heeded without the caller noticing; refusals are final.
    let fault =
        json!({"path_contains": "/messages", "method": "POST", "status": 429, "retry_after": 0.05});
    scene.faults(json!({"rest": [fault]})).await;
    scene
        .posted(&post(Voice::Team, "followup_taken", json!({})), &place)
        .await;
    let nowhere = Place {
        channel: ChannelId(12_345),
        card: None,
        parent: None,
    };
    let refused = scene
        .deliver(&post(Voice::Team, "followup_taken", json!({})), &nowhere)
        .await;
    assert!(
        matches!(refused, OutgoingOutcome::Refused { .. }),
        "{refused:?}"
    );
    let unsayable = scene
        .deliver(&post(Voice::Team, "no.such", json!({})), &place)
        .await;
    assert!(
        matches!(unsayable, OutgoingOutcome::Refused { .. }),
        "{unsayable:?}"
    );
}

#[tokio::test]
async fn without_the_content_intent_the_team_goes_on_and_says_so() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    owner
        .ok(
            "POST",
            "/_local/faults",
            json!({"deny_message_content": true}),
        )
        .await;
    let voice = personas(&running);
    let mut scene = Scene::with(running, voice, "teams").await;
    let told = scene
        .until(|it| matches!(it, Inbound::Degraded { .. }))
        .await;
    assert!(matches!(told, Inbound::Degraded { reason } if reason.contains("4014")));
    scene.begin().await;
    let us = scene.running.info.bots["teams"].id.clone();
    scene.say("general", &format!("<@{us}> hello")).await;
    assert_eq!(scene.message().await.content, "hello");
}

#[tokio::test]
async fn a_refused_token_ends_with_a_reason() {
    let running = fresh().await;
    let voice = VoiceMode::Personas {
        token: "no.such.token".to_owned().into(),
    };
    let mut scene = Scene::with(running, voice, "teams").await;
    let end = scene.until(|it| matches!(it, Inbound::Fatal { .. })).await;
    assert!(matches!(end, Inbound::Fatal { role: None, reason } if reason.contains("token")));
}

#[tokio::test]
async fn with_a_bot_a_role_each_speaks_and_listens_for_itself() {
    let running = fresh().await;
    let tokens = Role::PUBLIC
        .into_iter()
        .map(|role| (role, running.info.bots[role.as_str()].token.clone().into()))
        .collect();
    let mut scene = Scene::with(running, VoiceMode::Bots { tokens }, "orchestrator").await;
    scene.begin().await;
    let end = tokio::time::Instant::now() + PATIENCE;
    while scene.link.identity().bots.len() < 7 {
        assert!(tokio::time::Instant::now() < end, "not all bots came");
        tokio::task::yield_now().await;
    }
    let developer = scene.running.info.bots["developer"].id.clone();
    scene
        .say("general", &format!("<@{developer}> build it"))
        .await;
    scene.say("general", "end").await;
    let heard = scene.message().await;
    assert_eq!(
        (heard.content.as_str(), heard.role),
        ("build it", Some(Role::Developer))
    );
    assert_eq!(scene.message().await.content, "end");

    let place = scene.place("general");
    let words = post(
        Voice::Role(Role::Developer),
        "room.report",
        report("Built."),
    );
    scene.posted(&words, &place).await;
    assert_eq!(scene.posted(&words, &place).await.len(), 1);
    let internal = post(
        Voice::Role(Role::VersionController),
        "room.report",
        report("Merged."),
    );
    scene.posted(&internal, &place).await;
    let said = scene.history(place.channel).await;
    assert_eq!(said.len(), 4);
    assert_eq!(said[2]["author"]["id"].as_str(), Some(developer.as_str()));
    let text = said[3]["content"].as_str().unwrap();
    assert!(text.starts_with("**Version Controller**\n"), "{text}");
}
