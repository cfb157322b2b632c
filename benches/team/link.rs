//! The link to Discord: how fast a message is answered at fifty a second, what a hundred thousand of them
//! leave behind, and how long ten thousand missed ones take.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use serenity::all::{
    ClientBuilder, Context, EventHandler, GatewayIntents, HttpBuilder, Message, Ready,
};
use serenity::async_trait;

use super::{Guild, PATIENCE, Team, Voice, discord_yaml, setting, wait};

/// Between two messages: fifty a second.
const PACE: Duration = Duration::from_millis(20);
/// Messages of people that are written at the same time where it is not about time.
const WRITERS: usize = 16;

/// Answers every mention with a message: nothing kept, nothing decided.
struct Echo(u64);

#[async_trait]
impl EventHandler for Echo {
    async fn ready(&self, _: Context, _: Ready) {}

    async fn message(&self, context: Context, message: Message) {
        if message.mentions.iter().any(|user| user.id.get() == self.0) {
            let _ = message.reply(&context.http, "echo").await;
        }
    }
}

/// Everything about the link.
pub(crate) fn measure(runtime: &tokio::runtime::Runtime, guild: &Guild, place: &Path, team: Team) {
    runtime.block_on(answers(guild));
    let team = runtime.block_on(memory(guild, team));
    runtime.block_on(missed(guild, place, team));
}

async fn say(guild: &Guild, content: &str) -> Value {
    let said = guild.call("POST", "say").json(&json!({"channel": "general", "content": content}));
    guild.json(said).await
}

/// Writes messages that nobody is meant by.
async fn chat(guild: &Guild, many: u64) {
    let numbers = futures_util::stream::iter(0..many);
    numbers
        .for_each_concurrent(WRITERS, |number| async move {
            say(guild, &format!("we talk about this and that, {number}")).await;
        })
        .await;
}

/// From the call that writes a message to the answer in the channel, fifty messages a second.
async fn answers(guild: &Guild) {
    let events = setting("TEAMS_BENCH_EVENTS", 1_000);
    let echo = &guild.info.bots["designer"];
    let http = HttpBuilder::new(&echo.token).proxy(&guild.info.base_url).ratelimiter_disabled(true);
    let intents = GatewayIntents::non_privileged() | GatewayIntents::MESSAGE_CONTENT;
    let mut client = ClientBuilder::new_with_http(http.build(), intents)
        .event_handler(Echo(echo.id.parse().unwrap()))
        .await
        .unwrap();
    *client.ws_url.lock().await = guild.info.gateway_url.clone();
    let shards = client.shard_manager.clone();
    // On threads of its own, as the team is a process of its own.
    let beside = std::thread::spawn(move || {
        let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        threads.block_on(async move { client.start().await.unwrap() });
    });
    let ours = format!("<@{}> status", guild.info.bots["teams"].id);
    let theirs = format!("<@{}> status", echo.id);
    // Both once, so that each has connected and knows its channel.
    round(guild, &theirs, 5).await;
    round(guild, &ours, 5).await;
    let (mut team, mut bare) = (Vec::new(), Vec::new());
    let rounds = 4;
    for _ in 0..rounds {
        bare.extend(round(guild, &theirs, events / rounds).await);
        team.extend(round(guild, &ours, events / rounds).await);
    }
    for list in [&mut team, &mut bare] {
        list.sort();
    }
    let at = |list: &[Duration], part: f64| list[((list.len() - 1) as f64 * part) as usize];
    for (name, part) in [("median", 0.5), ("99 of 100", 0.99)] {
        let (team, bare) = (at(&team, part), at(&bare, part));
        println!(
            "{:<58} {team:>10.1?} / {bare:>10.1?} = {:>5.2}",
            format!("message in, answer out / serenity's echo, 50/s, {name}"),
            team.as_secs_f64() / bare.as_secs_f64()
        );
    }
    shards.shutdown_all().await;
    beside.join().unwrap();
}

async fn round(guild: &Guild, content: &str, many: u64) -> Vec<Duration> {
    let mut events = guild.events().await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let writer = async {
        let mut next = tokio::time::interval(PACE);
        let mut calls = futures_util::stream::FuturesUnordered::new();
        for _ in 0..many {
            // What is written is not waited for: the pace stays.
            loop {
                tokio::select! {
                    _ = next.tick() => break,
                    Some(()) = calls.next(), if !calls.is_empty() => {}
                }
            }
            let tell = tell.clone();
            let begun = Instant::now();
            calls.push(async move {
                let id = say(guild, content).await["id"].as_str().unwrap().to_owned();
                tell.send((id, begun)).unwrap();
            });
        }
        while calls.next().await.is_some() {}
    };
    let reader = async {
        let mut begun: HashMap<String, Instant> = HashMap::new();
        let mut ended: HashMap<String, Instant> = HashMap::new();
        let mut took = Vec::new();
        while took.len() < many as usize {
            tokio::select! {
                Some((id, at)) = told.recv() => match ended.remove(&id) {
                    Some(end) => took.push(end - at),
                    None => { begun.insert(id, at); }
                },
                event = events.next() => {
                    let event = event.expect("the feed goes on");
                    let to = event["d"]["message_reference"]["message_id"].as_str();
                    let Some(to) = to.filter(|_| event["t"] == "MESSAGE_CREATE") else { continue };
                    match begun.remove(to) {
                        Some(at) => took.push(at.elapsed()),
                        None => { ended.insert(to.to_owned(), Instant::now()); }
                    }
                }
            }
        }
        took
    };
    let both = async { tokio::join!(writer, reader) };
    let ((), took) = tokio::time::timeout(PATIENCE * 5, both).await.expect("answers were lost");
    took
}

/// The team's answer to one more message says that it has dealt with all before.
async fn answered(guild: &Guild) {
    let mut events = guild.events().await;
    let said = say(guild, &format!("<@{}> status", guild.info.bots["teams"].id)).await;
    let answer =
        wait(&mut events, |event| event["d"]["message_reference"]["message_id"] == said["id"]);
    answer.await;
}

async fn memory(guild: &Guild, team: Team) -> Team {
    let flood = setting("TEAMS_BENCH_FLOOD", 100_000);
    let few = (flood / 100).max(1);
    let rss = || Team::field(&team.proc("status"), "VmRSS") as f64 / 1024.0;
    chat(guild, few).await;
    answered(guild).await;
    let before = rss();
    let begun = Instant::now();
    chat(guild, flood - few).await;
    answered(guild).await;
    let after = rss();
    println!(
        "{:<58} {after:>7.1} MB / {before:>7.1} MB = {:>5.2}   ({:.0} messages a second)",
        format!("memory after {flood} messages / after {few}"),
        after / before,
        (flood - few) as f64 / begun.elapsed().as_secs_f64()
    );
    team
}

async fn missed(guild: &Guild, place: &Path, team: Team) {
    let missed = setting("TEAMS_BENCH_MISSED", 10_000);
    let (_, env) = discord_yaml(&guild.info, Voice::Personas);
    let ask = format!("<@{}> status", guild.info.bots["teams"].id);
    let mut team = Some(team);
    let mut took = Vec::new();
    for many in [0, missed] {
        drop(team.take());
        chat(guild, many).await;
        let said = say(guild, &ask).await;
        let mut events = guild.events().await;
        let begun = Instant::now();
        team = Some(Team::again(place, &env, Some("qa")));
        wait(&mut events, |event| event["d"]["message_reference"]["message_id"] == said["id"])
            .await;
        took.push(begun.elapsed());
    }
    println!(
        "{:<58} {:>10.1?} / {:>10.1?}   ({:.0} messages a second)",
        format!("start until all of {missed} missed are read / of none"),
        took[1],
        took[0],
        missed as f64 / (took[1].saturating_sub(took[0])).as_secs_f64().max(0.001)
    );
}
