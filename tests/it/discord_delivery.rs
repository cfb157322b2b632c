//! What the team says gets to the local guild once, whatever the connection does.

use serde_json::{Value, json};
use teams::discord::{Destination, Inbound};
use teams::domain::ids::{ChannelId, UserId};
use teams::domain::incoming::Command;
use teams::domain::outgoing::{
    Act, ButtonAct, Outgoing, OutgoingOutcome, OutgoingState, Post, Voice,
};
use teams::domain::role::Role;
use teams::domain::time::Timestamp;
use tokio::sync::mpsc;

use crate::support::team::{Scene, card, content, now, outgoing, post, report, second_link};

#[tokio::test]
async fn what_the_team_says_is_there_once() {
    let scene = Scene::connected().await;
    let (general, place) = (scene.channel("general"), scene.place("general"));

    // The same outgoing again, as after a crash: the nonce answers.
    let receipt = post(Voice::Team, "receipt", json!({"request_id": "20260324-1a2b3c4d"}));
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
    // The last part is told by the outcome, which has its id.
    assert_eq!(seen, [1, 2]);
    // Going on after a crash between parts sends only the rest.
    let mut rest = long.clone();
    rest.state = OutgoingState::Sending { since: now(), parts_done: 2 };
    assert_eq!(scene.posted(&rest, &place).await, message_ids[2..]);
    // After a crash behind the last part nothing is sent, and the message is still known: a card
    // without its id would be posted anew at its next change.
    rest.state = OutgoingState::Sending { since: now(), parts_done: 3 };
    assert_eq!(scene.posted(&rest, &place).await, message_ids[2..]);
    assert_eq!(scene.history(general).await.len(), 4);
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

    let room = Destination { channel: thread_id, card: None, parent: Some(general) };
    let words = post(Voice::Role(Role::Planner), "room.report", report("A plan."));
    scene.posted(&words, &room).await;
    // The same without knowing the parent, and another role.
    let unknown = Destination { parent: None, ..room.clone() };
    let words = post(Voice::Role(Role::Qa), "room.report", report("Looks right."));
    scene.posted(&words, &unknown).await;
    let said = scene.history(thread_id).await;
    let names: Vec<&str> =
        said.iter().map(|it| it["author"]["username"].as_str().unwrap()).collect();
    assert!(names.ends_with(&["Planner", "QA"]), "{names:?}");
    assert!(said.last().unwrap()["webhook_id"].is_string());
    let hooks = format!("/channels/{general}/webhooks");
    assert_eq!(scene.bot.ok("GET", &hooks, Value::Null).await.as_array().unwrap().len(), 2);

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
    assert!(matches!(outcome, OutgoingOutcome::Posted { .. }), "{outcome:?}");
    assert_eq!(scene.bot.ok("GET", &hooks, Value::Null).await.as_array().unwrap().len(), 2);
    other.close();

    // Somebody removes a webhook: made again at the next try.
    let all = scene.bot.ok("GET", &hooks, Value::Null).await;
    for hook in all.as_array().unwrap() {
        let path = format!("/webhooks/{}", hook["id"].as_str().unwrap());
        scene.bot.ok("DELETE", &path, Value::Null).await;
    }
    let mut words = post(Voice::Role(Role::Planner), "room.report", report("Still here."));
    let lost = scene.deliver(&words, &room).await;
    assert!(matches!(lost, OutgoingOutcome::Later { .. }), "{lost:?}");
    words.attempts = 1;
    scene.posted(&words, &room).await;

    // In a direct message the bot itself speaks for the role.
    let owner: UserId = scene.running.info.users["owner"].id.parse().unwrap();
    let dm = scene.link.dm_place(owner, &words).await.unwrap();
    let words = post(Voice::Role(Role::Planner), "room.report", report("For you."));
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
    let made = scene.posted(&outgoing(Voice::Team, card("working")), &place).await;
    place.card = Some(made[0]);
    let edited = scene.posted(&outgoing(Voice::Team, card("done")), &place).await;
    assert_eq!(edited, made);
    let said = scene.history(general).await;
    assert_eq!(said.len(), 1);
    let embed = &said[0]["embeds"][0];
    assert_eq!(embed["title"], "Greeting");
    assert!(embed["description"].as_str().unwrap().contains("Done"));

    // A press of its button comes in as a command and is answered to the person alone.
    let body = json!({"channel": "general", "message": made[0].to_string(), "custom_id": "t:cancel:20260324-1a2b3c4d:1"});
    scene.owner.ok("POST", "/_local/click", body).await;
    let pressed = scene.until(|it| matches!(it, Inbound::Command { .. })).await;
    let Inbound::Command { command, reply, .. } = pressed else { unreachable!() };
    let Command::Press { button, message_id, .. } = command else {
        panic!("{command:?}");
    };
    assert_eq!((button.act, message_id), (ButtonAct::Cancel, made[0]));
    reply.say(&content("cancel.done", json!({"request_id": "20260324-1a2b3c4d"}))).await;

    let path = format!("/channels/{general}/messages/{}", made[0]);
    scene.bot.ok("DELETE", &path, Value::Null).await;
    let again = scene.posted(&outgoing(Voice::Team, card("failed")), &place).await;
    assert_ne!(again, made);

    let react = outgoing(Voice::Team, Act::React { message_id: again[0], emoji: "👀".to_owned() });
    assert_eq!(scene.deliver(&react, &place).await, OutgoingOutcome::Done);
    let gone = outgoing(Voice::Team, Act::React { message_id: made[0], emoji: "👀".to_owned() });
    assert_eq!(scene.deliver(&gone, &place).await, OutgoingOutcome::Done);
}

#[tokio::test]
async fn a_dead_discord_means_later_and_is_reached_again() {
    let mut scene = Scene::connected().await;
    let place = scene.place("general");
    scene.faults(json!({"down": true})).await;
    let lost = scene.until(|it| matches!(it, Inbound::Disconnected { .. })).await;
    assert!(matches!(lost, Inbound::Disconnected { .. }));
    let mut receipt = post(Voice::Team, "receipt", json!({"request_id": "20260324-1a2b3c4d"}));
    let outcome = scene.deliver(&receipt, &place).await;
    let OutgoingOutcome::Later { at, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(at > now());
    let owner: UserId = scene.running.info.users["owner"].id.parse().unwrap();
    let dm = scene.link.dm_place(owner, &receipt).await;
    assert!(matches!(dm, Err(OutgoingOutcome::Later { .. })), "{dm:?}");
    scene.faults(json!({"down": false})).await;
    scene.until(|it| matches!(it, Inbound::Connected { .. })).await;
    receipt.attempts = 1;
    scene.posted(&receipt, &place).await;
    assert_eq!(scene.history(place.channel).await.len(), 1);

    // Limits are heeded without the caller noticing; refusals are final.
    let fault =
        json!({"path_contains": "/messages", "method": "POST", "status": 429, "retry_after": 0.05});
    scene.faults(json!({"rest": [fault]})).await;
    scene.posted(&post(Voice::Team, "followup_taken", json!({})), &place).await;
    let nowhere = Destination { channel: ChannelId(12_345), card: None, parent: None };
    let refused = scene.deliver(&post(Voice::Team, "followup_taken", json!({})), &nowhere).await;
    assert!(matches!(refused, OutgoingOutcome::Refused { .. }), "{refused:?}");
    let unsayable = scene.deliver(&post(Voice::Team, "no.such", json!({})), &place).await;
    assert!(matches!(unsayable, OutgoingOutcome::Refused { .. }), "{unsayable:?}");
}

#[tokio::test]
async fn r02_a_send_that_fails_twice_on_the_way_is_one_message() {
    let scene = Scene::connected().await;
    let place = scene.place("general");
    for after in [false, true] {
        let drop = json!({"path_contains": "/messages", "method": "POST", "trouble": "drop",
            "after": after, "times": 2});
        scene.faults(json!({"rest": [drop]})).await;
        let before = scene.history(place.channel).await.len();
        scene.posted(&post(Voice::Team, "followup_taken", json!({})), &place).await;
        assert_eq!(scene.history(place.channel).await.len(), before + 1, "lost after: {after}");
    }
}

#[tokio::test]
async fn r03_what_discord_forbids_is_not_tried_again() {
    let scene = Scene::connected().await;
    let place = scene.place("general");
    let forbid = json!({"path_contains": "/messages", "method": "POST", "status": 403, "times": 1});
    scene.faults(json!({"rest": [forbid]})).await;
    // A second try of this call would get through.
    let outcome = scene.deliver(&post(Voice::Team, "followup_taken", json!({})), &place).await;
    let OutgoingOutcome::Refused { reason, .. } = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("403"), "{reason}");
    assert!(scene.history(place.channel).await.is_empty());
}

#[tokio::test]
async fn a_failure_is_a_messages_own_only_where_others_of_its_kind_got_through() {
    let scene = Scene::connected().await;
    let place = scene.place("general");
    let stuck = post(Voice::Team, "receipt", json!({"request_id": "20260324-1a2b3c4d"}));
    let fails = async |outgoing: &Outgoing| {
        let fault =
            json!({"path_contains": "/messages", "method": "POST", "status": 500, "times": 3});
        scene.faults(json!({"rest": [fault]})).await;
        let outcome = scene.deliver(outgoing, &place).await;
        scene.faults(json!({"clear": true})).await;
        let OutgoingOutcome::Later { own, .. } = outcome else { panic!("{outcome:?}") };
        own
    };
    assert!(!fails(&stuck).await, "the first failure says nothing");
    assert!(!fails(&stuck).await, "nothing else got through");
    let words = post(Voice::Team, "followup_taken", json!({}));
    let message_id = scene.posted(&words, &place).await[0];
    assert!(fails(&stuck).await, "another message got through");
    assert!(!fails(&stuck).await, "nothing else since");
    let react = outgoing(Voice::Team, Act::React { message_id, emoji: "👀".to_owned() });
    assert_eq!(scene.deliver(&react, &place).await, OutgoingOutcome::Done);
    assert!(!fails(&stuck).await, "posting may be what does not work");
}

#[tokio::test]
async fn a_person_whose_channel_cannot_be_opened_or_written_to_holds_nobody_up_for_ever() {
    let scene = Scene::connected().await;
    let place = scene.place("general");
    let owner: UserId = scene.running.info.users["owner"].id.parse().unwrap();
    let direct = post(Voice::Team, "receipt", json!({"request_id": "20260324-1a2b3c4d"}));
    let fault = json!({"path_contains": "/users/@me/channels", "status": 500, "times": 1_000_000});
    scene.faults(json!({"rest": [fault]})).await;
    let mut own = Vec::new();
    for _ in 0..4 {
        let failed = scene.link.dm_place(owner, &direct).await.unwrap_err();
        let OutgoingOutcome::Later { own: it, .. } = failed else { panic!("{failed:?}") };
        own.push(it);
        scene.posted(&post(Voice::Team, "followup_taken", json!({})), &place).await;
    }
    // The engine sets a message aside after so many failures of its own.
    assert_eq!(own, [false, true, true, true]);
    // Opened once, it is known; but every post into it fails.
    scene.faults(json!({"clear": true})).await;
    let dm = scene.link.dm_place(owner, &direct).await.unwrap();
    let path = format!("/channels/{}/messages", dm.channel);
    let faults = [500, 502]
        .map(|status| json!({"path_contains": path, "status": status, "times": 1_000_000}));
    scene.faults(json!({"rest": faults})).await;
    for _ in 0..2 {
        let failed = scene.deliver(&direct, &dm).await;
        assert!(matches!(failed, OutgoingOutcome::Later { own: true, .. }), "{failed:?}");
        scene.posted(&post(Voice::Team, "followup_taken", json!({})), &place).await;
    }
}

#[tokio::test]
async fn a_text_of_a_hundred_parts_and_many_files_arrive_whole() {
    let scene = Scene::connected().await;
    let place = scene.place("general");
    let lines: Vec<String> = (0..1_000).map(|n| format!("{n} {}", "word ".repeat(39))).collect();
    let lines: String = lines.iter().map(|line| format!("- {}\n", line.trim())).collect();
    let long = post(
        Voice::Team,
        "blocked",
        json!({
            "request_id": "20260324-1a2b3c4d", "code": "role_blocked", "detail": lines,
            "required_inputs": [], "who": "",
        }),
    );
    let posted = scene.posted(&long, &place).await;
    assert_eq!(posted.len(), 1);
    assert_eq!(scene.posted(&long, &place).await, posted, "and once");
    let said = scene.history(place.channel).await;
    assert_eq!(said.len(), 1);
    let file = &said[0]["attachments"][0];
    assert_eq!(file["filename"], "details.md");
    let whole = reqwest::get(file["url"].as_str().unwrap()).await.unwrap().text().await.unwrap();
    assert!(whole.len() > 190_000 && whole.contains("- 999 word word"), "{} bytes", whole.len());

    let mut words = post(Voice::Role(Role::Planner), "room.report", report("Thirteen files."));
    let Act::Post(Post { files, .. }) = &mut words.act else { panic!() };
    for number in 0..13 {
        let name = format!("f{number}.txt");
        std::fs::write(scene.folder.path().join(&name), name.repeat(3)).unwrap();
        files.push(name);
    }
    let huge = std::fs::File::create(scene.folder.path().join("film.mp4")).unwrap();
    huge.set_len(500 * 1024 * 1024).unwrap();
    files.extend(["film.mp4".to_owned(), "../../secret".to_owned()]);
    assert_eq!(scene.posted(&words, &place).await.len(), 2);
    let said = scene.history(place.channel).await;
    let counts: Vec<usize> =
        said[1..].iter().map(|it| it["attachments"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [10, 3]);
    let text = said[1]["content"].as_str().unwrap();
    assert!(text.contains("`film.mp4 (500 MiB)`") && text.contains("`../../secret`"), "{text}");
    // Hostile words neither break off nor call anybody; nothing but invisible ones is refused, not retried.
    for words in ["@everyone @here <@1> <@&2>", "\u{202e}gnp.exe\u{0000}", "``` unclosed"] {
        scene.posted(&post(Voice::Team, "room.report", report(words)), &place).await;
    }
    let said = scene.history(place.channel).await;
    assert!(said.iter().all(|it| it["mention_everyone"] == false));
}
