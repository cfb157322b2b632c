//! What people do in the local guild comes in as facts, once, whatever the connection does.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use teams::assets::catalog::Catalog;
use teams::discord::standing::{BotStanding, Standing};
use teams::discord::{Destination, Inbound, VoiceMode};
use teams::domain::ids::{ChannelId, MessageId};
use teams::domain::incoming::Command;
use teams::domain::language::Language;
use teams::domain::outgoing::{Act, Content, OutgoingOutcome, Post, Voice};
use teams::domain::role::Role;
use teams::engine::parse::is_hand_off;
use teams::platform::files;

use crate::support::guild::{Caller, fresh};
use crate::support::team::{Scene, outgoing, personas, post, report};
use crate::support::until;

#[test]
fn i10_the_line_of_a_hand_off_is_known_for_one_in_every_language() {
    let catalog = Catalog::builtin().unwrap();
    let values = json!({"from": "orchestrator", "to": "developer", "kind": "delegate",
        "request_id": "20260324-1a2b3c4d", "step": "developer_build", "summary": "greet"});
    for language in [Language::En, Language::Ko] {
        let values = values.as_object().cloned().unwrap();
        let content = Content { key: "relay.summary".to_owned(), values, language };
        let line = catalog.render(&content).unwrap().text;
        assert!(is_hand_off(&line), "{line}");
    }
    for words in
        ["status", "a → b · c", "planner → qa · look at `src/a.rs`", "내부 relay 요약이 뭐야?"]
    {
        assert!(!is_hand_off(words), "{words}");
    }
}

#[tokio::test]
async fn what_people_write_is_heard_once_and_verbatim() {
    let mut scene = Scene::connected().await;
    let us = scene.running.info.bots["teams"].id.clone();
    let general = scene.channel("general");

    let id = scene.say("general", &format!("<@{us}>\n    indented\n  code <@{us}> here")).await;
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
        .ok("GET", &format!("/guilds/{}/roles", scene.running.info.guild_id), Value::Null)
        .await;
    let role = |name: &str| {
        let found = roles.as_array().unwrap().iter();
        let mut found = found.filter(|it| it["name"].as_str().unwrap().to_lowercase() == name);
        found.next().unwrap()["id"].as_str().unwrap().to_owned()
    };
    scene.say("general", &format!("<@&{}> draw it <@{us}>", role("designer"))).await;
    let heard = scene.message().await;
    assert_eq!((heard.content.as_str(), heard.role), ("draw it", Some(Role::Designer)));
    assert!(heard.addressed);

    // In an answer to what a persona said, that persona is addressed.
    let words = post(Voice::Role(Role::Planner), "room.report", report("A plan."));
    let said = scene.posted(&words, &scene.place("general")).await;
    let body =
        json!({"channel": "general", "content": "and then?", "reply_to": said[0].to_string()});
    scene.owner.ok("POST", "/_local/say", body).await;
    let heard = scene.message().await;
    assert_eq!((heard.content.as_str(), heard.role), ("and then?", Some(Role::Planner)));
    assert!(heard.addressed);

    let dm = scene.owner.ok("POST", "/_local/dm", json!({"bot": "teams"})).await;
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
    let gone = scene.until(|it| matches!(it, Inbound::Deleted { .. })).await;
    assert!(matches!(gone, Inbound::Deleted { message_id, .. } if message_id == id));
}

#[tokio::test]
async fn slash_commands_are_registered_once_and_heard() {
    let mut scene = Scene::connected().await;
    let application = scene.running.info.bots["teams"].id.clone();
    let path =
        format!("/applications/{application}/guilds/{}/commands", scene.running.info.guild_id);
    until("the commands are registered", async || {
        let commands = scene.bot.ok("GET", &path, Value::Null).await;
        let all = commands.as_array().unwrap();
        let is_there = |name| all.iter().any(|it| it["name"] == name);
        ["ask", "request"].into_iter().all(is_there).then_some(())
    })
    .await;
    let ask = json!({
        "channel": "general", "command": "ask",
        "options": [{"type": 3, "name": "text", "value": "인사말을 바꿔 주세요"}],
    });
    scene.owner.ok("POST", "/_local/slash", ask).await;
    let heard = scene.until(|it| matches!(it, Inbound::Command { .. })).await;
    let Inbound::Command { command, .. } = heard else { unreachable!() };
    let general = scene.channel("general");
    assert_eq!(
        command,
        Command::Ask {
            text: "인사말을 바꿔 주세요".to_owned(),
            channel_id: Some(general),
            parent_id: None,
            language: Language::Ko,
            lane: None,
        }
    );
    // What is no id is answered here; the next command comes through.
    for (command, request) in [("cancel", "../x"), ("retry", "20260324-1a2b3c4d")] {
        let body = json!({
            "channel": "general", "command": "request",
            "options": [{"type": 1, "name": command, "options": [
                {"type": 3, "name": "request", "value": request},
            ]}],
        });
        scene.owner.ok("POST", "/_local/slash", body).await;
    }
    let heard = scene.until(|it| matches!(it, Inbound::Command { .. })).await;
    assert!(matches!(heard, Inbound::Command { command: Command::Retry { .. }, .. }));
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
    assert!(saved.starts_with("shared_workspace/attachments/"), "{saved}");
    let path = scene.folder.path().join(&saved);
    assert_eq!(files::read_text(&path).unwrap(), "hello file");

    let mut words = post(Voice::Team, "followup_taken", json!({}));
    let report = "shared_workspace/report.md";
    files::write(&scene.folder.path().join(report), "hello file").unwrap();
    if let Act::Post(Post { files, .. }) = &mut words.act {
        // What people attached is not sent anywhere.
        *files = [&saved, report, "../outside", "missing.md"].map(str::to_owned).to_vec();
    }
    scene.posted(&words, &scene.place("general")).await;
    let said = scene.history(scene.channel("general")).await;
    let attached = said.last().unwrap()["attachments"].as_array().unwrap().clone();
    assert_eq!(attached.len(), 1);
    let bytes = reqwest::get(attached[0]["url"].as_str().unwrap()).await.unwrap();
    assert_eq!(bytes.text().await.unwrap(), "hello file");

    // A file that cannot be fetched leaves its message without it.
    scene
        .faults(json!({"rest": [{"path_contains": "/attachments/", "status": 500, "times": 9}]}))
        .await;
    let upload = scene.owner.request("POST", "/_local/upload?filename=a.txt").body("x");
    let file: Value = upload.send().await.unwrap().json().await.unwrap();
    let body = json!({"channel": "general", "content": "look", "attachments": [file["id"]]});
    scene.owner.ok("POST", "/_local/say", body).await;
    assert_eq!(scene.message().await.attachments[0].saved, None);
}

#[tokio::test]
async fn what_was_missed_is_told_before_what_is_new() {
    let mut scene = Scene::connected().await;
    // It logs in twice within a moment.
    scene.faults(json!({"login_spacing_ms": 0})).await;
    let general = scene.channel("general");
    let first = scene.say("general", "first").await;
    assert_eq!(scene.message().await.content, "first");

    // A resumed session misses nothing.
    scene.faults(json!({"gateway": "drop"})).await;
    scene.say("general", "while away").await;
    assert_eq!(scene.message().await.content, "while away");

    // What else the return brought along is through with this one, and none of it is lost below.
    scene.say("general", "back").await;
    assert_eq!(scene.message().await.content, "back");

    // Lost events and a lost session: only the history has them.
    scene.faults(json!({"lose_events": 1000})).await;
    let us = scene.running.info.bots["teams"].id.clone();
    scene.say("general", &format!("<@{us}> lost one")).await;
    scene.say("general", "lost two").await;
    // Somebody adds a mention to a message that was read before.
    let content = format!("<@{us}> first, all the same");
    let body = json!({"channel": "general", "message": first.to_string(), "content": content});
    scene.owner.ok("POST", "/_local/edit", body).await;
    let anew = json!({"lose_events": 0, "gateway": {"invalid_session": {"resumable": false}}});
    scene.faults(anew).await;
    let back = scene.until(|it| matches!(it, Inbound::Connected { fresh: true, .. })).await;
    assert!(matches!(back, Inbound::Connected { .. }));
    scene.say("general", "new").await;
    let unknown = (ChannelId(12_345), MessageId(1));
    scene.link.catch_up(&BTreeMap::from([(general, first), unknown]), &BTreeMap::new());
    let edited = scene.until(|it| matches!(it, Inbound::Edited(_))).await;
    let Inbound::Edited(edited) = edited else { panic!("{edited:?}") };
    assert_eq!((edited.content.as_str(), edited.addressed), ("first, all the same", true));
    assert!(edited.guild_id.is_some());
    let mut told = Vec::new();
    while told.len() < 3 {
        let message = scene.message().await;
        assert!(message.guild_id.is_some());
        told.push((message.content, message.addressed));
    }
    let expected = [("lost one", true), ("lost two", false), ("new", false)];
    assert_eq!(told, expected.map(|(text, addressed)| (text.to_owned(), addressed)));
    scene.until(|it| matches!(it, Inbound::Live)).await;
}

#[tokio::test]
async fn without_the_content_intent_the_team_goes_on_and_says_so() {
    let running = fresh().await;
    let owner = Caller::person(&running.info, "owner");
    owner.ok("POST", "/_local/faults", json!({"deny_message_content": true})).await;
    let voice = personas(&running);
    let mut scene = Scene::with(running, voice, "teams").await;
    let told = scene.until(|it| matches!(it, Inbound::Degraded { .. })).await;
    assert!(matches!(told, Inbound::Degraded { reason } if reason.contains("4014")));
    scene.begin().await;
    let us = scene.running.info.bots["teams"].id.clone();
    scene.say("general", &format!("<@{us}> hello")).await;
    assert_eq!(scene.message().await.content, "hello");
}

#[tokio::test]
async fn a_refused_token_ends_with_a_reason() {
    let running = fresh().await;
    let voice = VoiceMode::Personas { token: "no.such.token".to_owned().into() };
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
    until("all bots came", async || (scene.link.identity().bots.len() == 7).then_some(())).await;
    let developer = scene.running.info.bots["developer"].id.clone();
    scene.say("general", &format!("<@{developer}> build it")).await;
    scene.say("general", "end").await;
    let heard = scene.message().await;
    assert_eq!((heard.content.as_str(), heard.role), ("build it", Some(Role::Developer)));
    assert_eq!(scene.message().await.content, "end");

    let place = scene.place("general");
    let words = post(Voice::Role(Role::Developer), "room.report", report("Built."));
    scene.posted(&words, &place).await;
    assert_eq!(scene.posted(&words, &place).await.len(), 1);
    let internal = post(Voice::Role(Role::VersionController), "room.report", report("Merged."));
    scene.posted(&internal, &place).await;
    let said = scene.history(place.channel).await;
    assert_eq!(said.len(), 4);
    assert_eq!(said[2]["author"]["id"].as_str(), Some(developer.as_str()));
    let text = said[3]["content"].as_str().unwrap();
    assert!(text.starts_with("**Version Controller**\n"), "{text}");

    // A direct message is answered by the bot that was written to: no other can write there.
    let is_there = |it: &BotStanding| it.standing == Standing::Connected;
    until("the developer came", async || {
        scene.link.standing().bots.get("developer").is_some_and(is_there).then_some(())
    })
    .await;
    let dm = scene.owner.ok("POST", "/_local/dm", json!({"bot": "developer"})).await;
    let channel: ChannelId = dm["id"].as_str().unwrap().parse().unwrap();
    scene.say(&channel.to_string(), "are you there?").await;
    let heard = scene.message().await;
    assert_eq!((heard.channel_id, heard.guild_id), (channel, None));
    let place = Destination { channel, card: None, parent: None };
    let react = Act::React { message_id: heard.message_id, emoji: "👀".to_owned() };
    let outcome = scene.deliver(&outgoing(Voice::Team, react), &place).await;
    assert!(matches!(outcome, OutgoingOutcome::Done), "{outcome:?}");
    scene.posted(&post(Voice::Team, "room.report", report("Yes.")), &place).await;
    let path = format!("/channels/{channel}/messages");
    let mine = Caller::bot(&scene.running.info, "developer").ok("GET", &path, Value::Null).await;
    assert_eq!(mine[0]["author"]["id"].as_str(), Some(developer.as_str()), "{mine}");
}
