//! The connection to a Discord that misbehaves: what client libraries get wrong (`spec/discord.md` 0 and 5)
//! is a test of ours each.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use teams::discord::standing::{Report, Standing};
use teams::discord::{ConnectionLimits, Facts, Inbound, Limits, Link};
use teams::domain::outgoing::{OutgoingOutcome, Voice};

use crate::support::proxy::{Proxy, Trouble};
use crate::support::team::{PATIENCE, post};
use crate::support::until;
use crate::support::wire::{Line, UNLIMITED, Wire, link_by, message};

/// A link to a Discord of the test's own.
struct Talk {
    wire: Wire,
    folder: tempfile::TempDir,
    link: Link,
    facts: Facts,
}

impl Talk {
    async fn begin() -> Talk {
        let wire = Wire::open().await;
        let folder = tempfile::tempdir().unwrap();
        let (link, facts) = wire.link(folder.path(), UNLIMITED);
        Talk { wire, folder, link, facts }
    }

    /// Connected and caught up.
    async fn connected() -> (Talk, Line) {
        let mut talk = Talk::begin().await;
        let mut line = talk.wire.accept().await;
        let resume = talk.wire.resume_url("again");
        line.ready("s1", &resume).await;
        talk.live().await;
        (talk, line)
    }

    async fn live(&mut self) {
        self.until(|it| matches!(it, Inbound::Connected { fresh: true, .. })).await;
        self.link.catch_up(&BTreeMap::new(), &BTreeMap::new());
        self.until(|it| matches!(it, Inbound::Live)).await;
    }

    async fn until(&mut self, wanted: impl Fn(&Inbound) -> bool) -> Inbound {
        let found = async {
            loop {
                let fact = self.facts.recv().await.expect("the link goes on");
                if wanted(&fact) {
                    return fact;
                }
            }
        };
        tokio::time::timeout(PATIENCE * 2, found).await.expect("the fact never came")
    }

    async fn heard(&mut self) -> String {
        let fact = self.until(|it| matches!(it, Inbound::Message(_))).await;
        let Inbound::Message(message) = fact else { unreachable!() };
        message.content
    }

    async fn stands(&self, wanted: impl Fn(&Standing) -> bool) -> Standing {
        stands(self.folder.path(), wanted).await
    }

    /// A REST call gets through: the team works, whatever the connection does.
    async fn can_speak(&self) {
        let place = teams::discord::Destination {
            channel: teams::domain::ids::ChannelId(5),
            card: None,
            parent: None,
        };
        let words = post(Voice::Team, "followup_taken", json!({}));
        let outcome = self.link.deliver(&words, &place, |_| async {}).await;
        assert!(matches!(outcome, OutgoingOutcome::Posted { .. }), "{outcome:?}");
    }
}

/// Waits until the team's bot stands so, as `teams status` reads it.
async fn stands(workspace: &Path, wanted: impl Fn(&Standing) -> bool) -> Standing {
    until("the bot stands so", async || {
        let report = Report::read(workspace);
        let bot = report.bots.get("team").filter(|bot| wanted(&bot.standing))?;
        Some(bot.standing.clone())
    })
    .await
}

#[tokio::test]
async fn a_session_is_resumed_at_its_own_address_behind_the_last_event() {
    let (mut talk, mut line) = Talk::connected().await;
    line.event("MESSAGE_CREATE", message(11, "one")).await;
    assert_eq!(talk.heard().await, "one");
    for (code, behind, words) in [(4000, 2, "two"), (1001, 4, "three")] {
        line.close(code).await;
        line = talk.wire.accept().await;
        assert_eq!(line.path, "/again/");
        assert_eq!(line.resumed("s1").await, behind);
        line.event("MESSAGE_CREATE", message(10 + behind, words)).await;
        // One library never leaves the state of resuming when this holds nothing.
        line.event("RESUMED", Value::Null).await;
        assert_eq!(talk.heard().await, words);
        let back = talk.until(|it| matches!(it, Inbound::Connected { .. })).await;
        assert!(matches!(back, Inbound::Connected { fresh: false, .. }));
    }
    // Cut without a word, and asked to come again.
    drop(line);
    let mut line = talk.wire.accept().await;
    assert_eq!(line.resumed("s1").await, 6);
    line.event("RESUMED", json!({})).await;
    line.op(7, Value::Null).await;
    let mut line = talk.wire.accept().await;
    assert_eq!(line.resumed("s1").await, 7);
    line.event("RESUMED", json!({})).await;
    line.op(9, json!(true)).await;
    let mut line = talk.wire.accept().await;
    assert_eq!(line.resumed("s1").await, 8);
}

#[tokio::test]
async fn a_dead_address_for_resuming_is_left_for_the_usual_one() {
    let mut talk = Talk::begin().await;
    let mut line = talk.wire.accept().await;
    line.ready("s1", "ws://127.0.0.1:9").await;
    talk.live().await;
    line.close(4000).await;
    let mut line = talk.wire.accept().await;
    assert_eq!(line.path, "/");
    assert_eq!(line.resumed("s1").await, 1);
}

#[tokio::test]
async fn a_session_that_is_over_is_begun_anew_and_never_resumed() {
    let (mut talk, mut line) = Talk::connected().await;
    for code in [4007, 4009, 4003] {
        line.close(code).await;
        line = talk.wire.accept().await;
        let resume = talk.wire.resume_url("again");
        line.ready("s2", &resume).await;
        talk.live().await;
    }
    line.op(9, json!(false)).await;
    let mut line = talk.wire.accept().await;
    // Too many at once: refused again, and asked again.
    assert_eq!(line.hello(41_250).await["op"], 2);
    line.op(9, json!(false)).await;
    let mut line = talk.wire.accept().await;
    line.ready("s3", "").await;
    talk.live().await;
}

#[tokio::test]
async fn resumes_that_are_closed_at_once_are_waited_for_and_then_given_up() {
    let (mut talk, line) = Talk::connected().await;
    let mut ends = vec![line.at];
    line.close(4000).await;
    let mut resumes = 0;
    let mut line = loop {
        let mut line = talk.wire.accept().await;
        ends.push(line.at);
        let begun = line.hello(41_250).await;
        if begun["op"] == 2 {
            break line;
        }
        resumes += 1;
        line.event("RESUMED", json!({})).await;
        line.close(4000).await;
    };
    assert_eq!(resumes, 3);
    let waits: Vec<Duration> = ends[1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, least) in waits.iter().zip([2, 4, 8]) {
        assert!(*wait >= Duration::from_secs(least), "{waits:?}");
    }
    line.welcome("s2", "").await;
    talk.live().await;
}

#[tokio::test]
async fn a_connection_that_answers_no_heartbeat_is_resumed_and_nothing_is_missed() {
    let mut talk = Talk::begin().await;
    let mut line = talk.wire.accept().await;
    assert_eq!(line.hello(150).await["op"], 2);
    let resume = talk.wire.resume_url("again");
    line.welcome("s1", &resume).await;
    talk.live().await;
    // Heartbeats come and are not answered; what is said meanwhile is told when the session goes on.
    let mut next = talk.wire.accept().await;
    assert_eq!(next.resumed("s1").await, 1);
    next.event("MESSAGE_CREATE", message(11, "meanwhile")).await;
    next.event("RESUMED", json!({})).await;
    assert_eq!(talk.heard().await, "meanwhile");
}

#[tokio::test]
async fn what_needs_a_person_is_said_and_not_tried_again() {
    let each = [4004, 4010, 4011, 4012, 4013, 4014].map(async |code: u16| {
        let mut talk = Talk::begin().await;
        let mut line = talk.wire.accept().await;
        assert_eq!(line.hello(41_250).await["op"], 2);
        line.close(code).await;
        if code == 4014 {
            // The first refusal is about the content of messages, and the team does without.
            talk.until(|it| matches!(it, Inbound::Degraded { .. })).await;
            let mut line = talk.wire.accept().await;
            let intents = line.hello(41_250).await["d"]["intents"].as_u64().unwrap();
            assert_eq!(intents & (1 << 15), 0);
            line.close(code).await;
        }
        let fatal = talk.until(|it| matches!(it, Inbound::Fatal { .. })).await;
        let Inbound::Fatal { role: None, reason } = fatal else { panic!("{fatal:?}") };
        assert!(reason.contains(&code.to_string()), "{reason}");
        let stands = talk.stands(|it| matches!(it, Standing::NeedsYou { .. })).await;
        assert_eq!(stands, Standing::NeedsYou { reason });
        // The thread of the connections does not spin, and the team can still speak.
        talk.can_speak().await;
        assert_eq!(talk.wire.unaccepted(), 0, "{code} was followed by another connection");
    });
    futures_util::future::join_all(each).await;
}

#[tokio::test]
async fn new_sessions_are_saved_while_few_are_left_and_status_says_so() {
    let wire = Wire::open().await;
    wire.starts(12, 1_000);
    let folder = tempfile::tempdir().unwrap();
    let (link, facts) = wire.link(folder.path(), UNLIMITED);
    let mut talk = Talk { wire, folder, link, facts };
    let waits = talk.stands(|it| matches!(it, Standing::Waiting { .. })).await;
    let Standing::Waiting { reason, .. } = waits else { unreachable!() };
    assert!(reason.contains("only 12 new sessions"), "{reason}");
    assert_eq!(talk.wire.unaccepted(), 0);
    talk.wire.starts(900, 1_000);
    let mut line = talk.wire.accept().await;
    line.ready("s1", "").await;
    talk.live().await;
    talk.stands(|it| *it == Standing::Connected).await;
}

#[tokio::test]
async fn a_server_gets_so_many_connections_an_hour_whatever_it_does_and_health_says_so() {
    // It closes after the server's greeting and refuses to go on with the session: each connection worked
    // for a moment, so that no wait grows.
    let wire = Wire::open().await;
    let folder = tempfile::tempdir().unwrap();
    let connections = ConnectionLimits { in_ten_seconds: 1_000, an_hour: 5 };
    let limits = Limits { connections, ..UNLIMITED };
    let (link, facts) = wire.link(folder.path(), limits);
    let mut talk = Talk { wire, folder, link, facts };
    let mut wire = std::mem::replace(&mut talk.wire, Wire::open().await);
    let server = tokio::spawn(async move {
        let mut connections = 0;
        loop {
            let mut line = wire.accept().await;
            connections += 1;
            if line.hello(41_250).await["op"] == 6 {
                line.op(9, json!(false)).await;
                // Until it is gone.
                while line.frame().await.is_some() {}
            } else {
                line.welcome("s1", "").await;
                line.event("GUILD_CREATE", json!({"id": "6", "roles": []})).await;
                line.close(4000).await;
            }
            if connections == 5 {
                return (wire, connections);
            }
        }
    });
    let waits = talk.stands(|it| matches!(it, Standing::Waiting { .. })).await;
    let Standing::Waiting { reason, .. } = waits else { unreachable!() };
    assert!(reason.contains("5 connections"), "{reason}");
    let (mut wire, connections) = server.await.unwrap();
    assert_eq!((connections, wire.unaccepted()), (5, 0));
    let report = Report::read(talk.folder.path());
    let trouble = report.bots["team"].trouble.clone().unwrap();
    assert_eq!(trouble.times, 5, "{trouble:?}");
    // And a team that is started anew is held to it as well.
    talk.link.close();
    let (link, _facts) = wire.link(talk.folder.path(), limits);
    let waits = talk.stands(|it| matches!(it, Standing::Waiting { .. })).await;
    assert!(matches!(waits, Standing::Waiting { .. }));
    link.close();
    assert_eq!(wire.unaccepted(), 0);
}

#[tokio::test]
async fn no_trouble_on_the_way_makes_a_storm_and_every_one_is_told_and_got_over() {
    let each = Trouble::ALL.map(async |trouble| {
        let mut wire = Wire::open().await;
        let proxy = Proxy::open().await;
        proxy.leads_to(&wire.base);
        proxy.gateway(Some(trouble));
        let folder = tempfile::tempdir().unwrap();
        let way = Some(proxy.gateway_url());
        let (link, facts) = link_by(folder.path(), Limits::DISCORD, wire.base.clone(), way);
        if trouble != Trouble::Dribble {
            let told = until("it is told", async || {
                let report = Report::read(folder.path());
                let trouble = report.bots.get("team").and_then(|bot| bot.trouble.clone());
                trouble.filter(|it| it.times >= 2)
            })
            .await;
            assert!(!told.reason.is_empty());
            // Each is told once it has come to nothing, so that one at most is under way.
            let made = proxy.upgrades().len();
            let report = Report::read(folder.path());
            let told = report.bots["team"].trouble.clone().unwrap();
            assert!(made <= told.times as usize + 1, "{trouble:?}: {made} of {told:?}");
            while wire.unaccepted() > 0 {}
            proxy.gateway(None);
        }
        let mut line = loop {
            let mut line = wire.accept().await;
            // Some of before may have got here half.
            line.op(10, json!({"heartbeat_interval": 41_250})).await;
            if let Some(begun) = line.frame().await {
                assert_eq!(begun["op"], 2, "{trouble:?}");
                break line;
            }
        };
        line.welcome("s1", "").await;
        let mut talk = Talk { wire, folder, link, facts };
        talk.live().await;
        talk.stands(|it| *it == Standing::Connected).await;
        assert!(proxy.upgrades().iter().all(|head| head.contains("user-agent: discordbot (")));
        talk.link.close();
    });
    futures_util::future::join_all(each).await;
}

#[tokio::test]
async fn a_discord_that_does_not_say_where_its_gateway_is_is_told_and_asked_again() {
    // The two that never answer end like the others, after a minute of tries.
    let slow = [Trouble::Silence, Trouble::HalfOpen, Trouble::Dribble];
    let each = Trouble::ALL.into_iter().filter(|it| !slow.contains(it)).map(async |trouble| {
        let mut wire = Wire::open().await;
        let proxy = Proxy::open().await;
        proxy.leads_to(&wire.base);
        proxy.rest(Some(trouble));
        let folder = tempfile::tempdir().unwrap();
        let way = Some(proxy.gateway_url());
        let (link, facts) = link_by(folder.path(), Limits::DISCORD, proxy.base_url(), way);
        let away = stands(folder.path(), |it| matches!(it, Standing::Away { .. })).await;
        let Standing::Away { reason, next: Some(_) } = away else { panic!("{away:?}") };
        assert!(reason.contains("discord"), "{trouble:?}: {reason}");
        assert!(proxy.upgrades().is_empty(), "{trouble:?}");
        proxy.rest(None);
        let mut line = wire.accept().await;
        line.ready("s1", "").await;
        let mut talk = Talk { wire, folder, link, facts };
        talk.live().await;
        talk.link.close();
    });
    futures_util::future::join_all(each).await;
}

#[tokio::test]
async fn an_address_without_tls_is_no_gateway_with_tls_and_is_said_so() {
    let wire = Wire::open().await;
    let proxy = Proxy::open().await;
    proxy.leads_to(&wire.base);
    let folder = tempfile::tempdir().unwrap();
    let way = Some(proxy.gateway_url().replace("ws://", "wss://"));
    let (link, _facts) = link_by(folder.path(), UNLIMITED, wire.base.clone(), way);
    let away = stands(folder.path(), |it| matches!(it, Standing::Away { .. })).await;
    let Standing::Away { reason, next: Some(_) } = away else { panic!("{away:?}") };
    assert!(reason.contains("cannot be reached"), "{reason}");
    link.close();
}

#[tokio::test]
async fn a_token_is_not_shown_at_an_address_that_a_greeting_made_up() {
    let mut talk = Talk::begin().await;
    let mut line = talk.wire.accept().await;
    line.ready("s1", "ws://gateway.example").await;
    talk.live().await;
    line.close(4000).await;
    let mut line = talk.wire.accept().await;
    assert_eq!(line.path, "/");
    assert_eq!(line.resumed("s1").await, 1);
}

#[tokio::test]
async fn an_event_that_was_lost_or_broken_is_had_by_resuming_and_otherwise_by_reading() {
    let (mut talk, mut line) = Talk::connected().await;
    line.event("MESSAGE_CREATE", message(11, "one")).await;
    assert_eq!(talk.heard().await, "one");
    // Number 3 is cut off in the middle.
    line.raw("{\"t\":\"MESSAGE_CREATE\",\"s\":3,\"op\":0,\"d\":{\"id\":\"1").await;
    let mut line = talk.wire.accept().await;
    assert_eq!(line.resumed("s1").await, 2);
    line.event("MESSAGE_CREATE", message(12, "two")).await;
    line.event("RESUMED", json!({})).await;
    assert_eq!(talk.heard().await, "two");
    // Number 5 is not there.
    line.skip();
    line.event("MESSAGE_CREATE", message(14, "four")).await;
    let mut line = talk.wire.accept().await;
    assert_eq!(line.resumed("s1").await, 4);
    line.event("MESSAGE_CREATE", message(13, "three")).await;
    line.event("MESSAGE_CREATE", message(14, "four")).await;
    line.event("RESUMED", json!({})).await;
    assert_eq!(talk.heard().await, "three");
    assert_eq!(talk.heard().await, "four");
    // Number 8 says nothing, however often it is asked for: it is left out, and its channel is read.
    line.event("MESSAGE_CREATE", json!({"surprise": 1})).await;
    let mut line = talk.wire.accept().await;
    assert_eq!(line.resumed("s1").await, 7);
    talk.wire.answer(|call| {
        let history = call.method == "GET" && call.path == "/channels/5/messages";
        let page = if history { json!([message(15, "five")]) } else { json!([]) };
        history.then(|| (200, Vec::new(), page))
    });
    line.event("MESSAGE_CREATE", json!({"surprise": 1})).await;
    line.event("MESSAGE_CREATE", message(16, "six")).await;
    line.event("RESUMED", json!({})).await;
    talk.until(|it| matches!(it, Inbound::Connected { fresh: true, .. })).await;
    let read =
        BTreeMap::from([(teams::domain::ids::ChannelId(5), teams::domain::ids::MessageId(14))]);
    talk.link.catch_up(&read, &BTreeMap::new());
    assert_eq!(talk.heard().await, "five");
    assert_eq!(talk.heard().await, "six");
    let report = Report::read(talk.folder.path());
    let missed = report.bots["team"].missed.clone().unwrap();
    assert_eq!((missed.times, missed.what.as_str()), (1, "MESSAGE_CREATE"));
    assert_eq!(talk.wire.unaccepted(), 0);
}

#[tokio::test]
async fn a_restart_takes_the_session_up_behind_what_was_dealt_with() {
    let (mut talk, mut line) = Talk::connected().await;
    line.event("MESSAGE_CREATE", message(11, "dealt with")).await;
    line.event("TYPING_START", json!({})).await;
    line.event("MESSAGE_CREATE", message(12, "under way")).await;
    assert_eq!(talk.heard().await, "dealt with");
    // Asking for the next says that the first is durable; the second is given out, and then we are gone.
    assert_eq!(talk.heard().await, "under way");
    talk.link.close();
    let (link, facts) = talk.wire.link(talk.folder.path(), UNLIMITED);
    (talk.link, talk.facts) = (link, facts);
    let mut line = talk.wire.accept().await;
    assert_eq!(line.resumed("s1").await, 3);
    line.event("MESSAGE_CREATE", message(12, "under way")).await;
    line.event("RESUMED", json!({})).await;
    talk.live_after_restart(&["under way"]).await;
    // What the new process hears moves the session on; a damaged file costs the session alone.
    line.event("MESSAGE_CREATE", message(13, "more")).await;
    assert_eq!(talk.heard().await, "more");
    talk.link.close();
    let path = talk.folder.path().join(".teams_runtime/discord/team.json");
    std::fs::write(path, "{").unwrap();
    let (link, facts) = talk.wire.link(talk.folder.path(), UNLIMITED);
    (talk.link, talk.facts) = (link, facts);
    let mut line = talk.wire.accept().await;
    line.ready("s2", "").await;
    talk.live().await;
}

impl Talk {
    /// After a restart the first connection is told as fresh, and what came meanwhile waits.
    async fn live_after_restart(&mut self, waited: &[&str]) {
        let up = self.until(|it| matches!(it, Inbound::Connected { .. })).await;
        assert!(matches!(up, Inbound::Connected { fresh: true, .. }), "{up:?}");
        self.link.catch_up(&BTreeMap::new(), &BTreeMap::new());
        for words in waited {
            assert_eq!(self.heard().await, *words);
        }
        self.until(|it| matches!(it, Inbound::Live)).await;
    }
}

#[tokio::test]
async fn a_token_has_one_live_session() {
    let (mut talk, line) = Talk::connected().await;
    let other = tempfile::tempdir().unwrap();
    let (second, _facts) = talk.wire.link(other.path(), UNLIMITED);
    let stands = stands(other.path(), |it| matches!(it, Standing::NeedsYou { .. })).await;
    assert!(format!("{stands:?}").contains("another team on this machine"), "{stands:?}");
    assert_eq!(talk.wire.unaccepted(), 0);
    talk.link.close();
    drop(line);
    let mut line = talk.wire.accept().await;
    line.ready("s2", "").await;
    second.close();
}

#[tokio::test]
async fn a_flood_costs_nothing_but_time_and_every_message_comes_once() {
    const ALL: u64 = 4_000;
    let (mut talk, mut line) = Talk::connected().await;
    let (stop, mut stopped) = tokio::sync::oneshot::channel();
    let (hung_up, has_hung_up) = tokio::sync::oneshot::channel();
    // The server sends again what comes after the number that it is asked for, as fast as it can.
    let mut wire = std::mem::replace(&mut talk.wire, Wire::open().await);
    let server = tokio::spawn(async move {
        let mut connections = 1;
        let mut next = 0;
        let mut hung_up = Some(hung_up);
        loop {
            let mut there = true;
            while there && next < ALL {
                let words = format!("flood {next}");
                there = line.event("MESSAGE_CREATE", message(1_000 + next, &words)).await;
                next += 1;
                if next % 100 == 0 {
                    // Nothing that anybody knows.
                    line.raw("garbage").await;
                    line.raw("{\"op\": 77, \"d\": {\"from\": \"tomorrow\"}}").await;
                    line.raw("{\"op\": \"x\"}").await;
                }
            }
            if let Some(hung_up) = hung_up.take() {
                while line.frame().await.is_some() {}
                hung_up.send(()).unwrap();
            }
            let again = tokio::select! {
                line = wire.accept() => line,
                _ = &mut stopped => return connections,
            };
            line = again;
            connections += 1;
            // READY was the first event, so message n is event n + 2.
            next = line.resumed("s1").await - 1;
        }
    });
    // Nobody takes the facts, and the team works all the same.
    let place = |channel| teams::discord::Destination {
        channel: teams::domain::ids::ChannelId(channel),
        card: None,
        parent: None,
    };
    let quiet = Wire::open().await;
    let folder = tempfile::tempdir().unwrap();
    let (elsewhere, _facts) = quiet.link(folder.path(), UNLIMITED);
    for channel in 0..20 {
        let words = post(Voice::Team, "followup_taken", json!({}));
        let outcome = elsewhere.deliver(&words, &place(channel), |_| async {}).await;
        assert!(matches!(outcome, OutgoingOutcome::Posted { .. }), "{outcome:?}");
    }
    // More than there is room for.
    has_hung_up.await.unwrap();
    for number in 0..ALL {
        assert_eq!(talk.heard().await, format!("flood {number}"));
    }
    stop.send(()).unwrap();
    let connections = server.await.unwrap();
    assert!(connections > 1, "the flood was no flood");
}

#[tokio::test]
async fn an_interaction_is_heard_once_and_again_by_a_next_start_until_it_is_carried_out() {
    let (mut talk, mut line) = Talk::connected().await;
    let press = json!({
        "id": "77", "application_id": "90", "type": 3, "token": "secret", "version": 1,
        "guild_id": "6", "channel_id": "5", "locale": "en-US", "entitlements": [],
        "attachment_size_limit": 1, "data": {"component_type": 2, "custom_id": "t:cancel:20260324-1a2b3c4d:1"},
        "member": {"user": {"id": "7", "username": "mina", "discriminator": "0", "avatar": null},
            "roles": [], "flags": 0, "deaf": false, "mute": false, "permissions": "0"},
        "message": message(11, "card"),
    });
    line.event("INTERACTION_CREATE", press.clone()).await;
    line.event("INTERACTION_CREATE", press.clone()).await;
    line.event("MESSAGE_CREATE", message(12, "after")).await;
    // One of each, in whichever order: neither waits for the other.
    let mut commands = 0;
    for _ in 0..2 {
        let told = |it: &Inbound| matches!(it, Inbound::Command { .. } | Inbound::Message(_));
        let fact = talk.until(told).await;
        commands += u32::from(matches!(fact, Inbound::Command { .. }));
    }
    assert_eq!(commands, 1);
    talk.link.close();
    // Nobody asked for more, so that nobody has said that it is carried out: the session goes on before it.
    let (link, facts) = talk.wire.link(talk.folder.path(), UNLIMITED);
    (talk.link, talk.facts) = (link, facts);
    let mut line = talk.wire.accept().await;
    line.resumed("s1").await;
    line.event("INTERACTION_CREATE", press).await;
    line.event("RESUMED", json!({})).await;
    line.event("MESSAGE_CREATE", message(13, "end")).await;
    let fact = talk.until(|it| matches!(it, Inbound::Command { .. })).await;
    let Inbound::Command { reply, .. } = fact else { panic!("{fact:?}") };
    assert_eq!(reply.interaction().0, 77);
}
