//! The owner at the page, as a script plays them: writes, and reads what is posted.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::home::broken;
use super::team::Team;
use crate::cli::plain::plain;
use crate::cli::{Failure, say};
use crate::local_guild::GuildInfo;

/// How long the records are not looked at, at least.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// The pause after a look is at least so many times what the look took.
const PAUSE_FACTOR: u32 = 10;

/// The owner at the page.
pub(super) struct Person<'a> {
    http: reqwest::Client,
    guild: &'a GuildInfo,
    token: String,
    quiet: bool,
}

impl<'a> Person<'a> {
    pub(super) fn new(guild: &'a GuildInfo) -> Result<Person<'a>, Failure> {
        let token = guild.users.get("owner").map(|account| account.token.clone());
        let token = token.ok_or_else(|| Failure::new("the guild has no owner"))?;
        Ok(Person { http: reqwest::Client::new(), guild, token, quiet: false })
    }

    /// The same without a word on the terminal.
    pub(super) fn quiet(self, quiet: bool) -> Self {
        Person { quiet, ..self }
    }

    /// Says something on the terminal.
    pub(super) fn tell(&self, words: &str) {
        if !self.quiet {
            say(words);
        }
    }

    async fn get(&self, path: &str) -> Result<Value, Failure> {
        let url = format!("{}/_local/{path}", self.guild.base_url);
        let call = self.http.get(url).header("Authorization", &self.token);
        let answer = call.send().await.and_then(reqwest::Response::error_for_status);
        answer.map_err(broken)?.json().await.map_err(broken)
    }

    /// Writes the words to the team unless they stand there already. The message's id, and whether they did.
    pub(super) async fn ask(&self, words: &str) -> Result<(String, bool), Failure> {
        let bot = self.guild.bots.get("teams").map(|bot| bot.id.clone()).unwrap_or_default();
        let words = format!("<@{bot}> {words}");
        let old = self.get("messages?channel=general&limit=100").await?;
        let mine = old.as_array().into_iter().flatten().find(|message| message["content"] == words);
        if let Some(id) = mine.and_then(|message| message["id"].as_str()) {
            return Ok((id.to_owned(), true));
        }
        let url = format!("{}/_local/say", self.guild.base_url);
        let body = json!({ "user": "owner", "channel": "general", "content": words });
        let call = self.http.post(url).header("Authorization", &self.token).json(&body);
        let answer = call.send().await.and_then(reqwest::Response::error_for_status);
        let said: Value = answer.map_err(broken)?.json().await.map_err(broken)?;
        let id = said["id"].as_str().ok_or_else(|| Failure::new("the message has no id"))?;
        Ok((id.to_owned(), false))
    }

    /// Tells the newest answer to the message in full: what the person would read.
    pub(super) async fn last_answer(&self, message: &str) -> Result<(), Failure> {
        let page = self.get("messages?channel=general&limit=100").await?;
        let answers = page.as_array().into_iter().flatten();
        let mut ours =
            answers.filter(|answer| answer["message_reference"]["message_id"] == message);
        let newest = ours.next().and_then(|answer| answer["content"].as_str());
        say("");
        for line in newest.unwrap_or_default().lines() {
            say(format_args!("    {}", plain(line)));
        }
        say("");
        Ok(())
    }

    /// Tells what is posted until `is_over` says so, and what was said last.
    pub(super) async fn watch(
        &self,
        team: &mut Team,
        mut is_over: impl FnMut() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let state = self.get("state").await?;
        let after = format!("{}.{}", state["epoch"].as_str().unwrap_or_default(), state["feed"]);
        let url = format!("{}/_local/events?after={after}", self.guild.base_url);
        let call = self.http.get(url).header("Authorization", &self.token);
        let mut stream = call.send().await.map_err(broken)?.bytes_stream();
        let mut text = Vec::new();
        let mut next_look = Instant::now() + LOOK_AGAIN;
        loop {
            tokio::select! {
                chunk = stream.next() => {
                    let Some(chunk) = chunk else {
                        return Err(Failure::new("the local guild closed"));
                    };
                    self.show(&mut text, &chunk.map_err(broken)?);
                }
                ended = team.keep() => ended?,
                () = tokio::time::sleep_until(next_look) => {
                    let begun = Instant::now();
                    if is_over()? {
                        break;
                    }
                    // Reading the records is much work, and whoever watches slows down nobody who works.
                    next_look = Instant::now() + LOOK_AGAIN.max(begun.elapsed() * PAUSE_FACTOR);
                }
            }
        }
        // What was said last is still on its way here.
        while let Ok(Some(Ok(chunk))) = tokio::time::timeout(LOOK_AGAIN, stream.next()).await {
            self.show(&mut text, &chunk);
        }
        Ok(())
    }

    /// Takes in a piece of the stream; each message in it becomes a line on the terminal.
    fn show(&self, text: &mut Vec<u8>, chunk: &[u8]) {
        text.extend_from_slice(chunk);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            if !self.quiet {
                show_line(&String::from_utf8_lossy(&line));
            }
        }
    }
}

fn show_line(line: &str) {
    let Some(data) = line.strip_prefix("data:") else { return };
    let Ok(event) = serde_json::from_str::<Value>(data.trim()) else {
        return;
    };
    if event["t"] != "MESSAGE_CREATE" {
        return;
    }
    let message = &event["d"];
    let author = message["author"]["global_name"]
        .as_str()
        .or(message["author"]["username"].as_str())
        .unwrap_or_default();
    let embed = &message["embeds"][0];
    let words = [message["content"].as_str(), embed["title"].as_str()]
        .into_iter()
        .flatten()
        .find(|words| !words.is_empty())
        .unwrap_or_default();
    let first = words.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let first: String = first.chars().take(140).collect();
    say(format_args!("{author}: {}", plain(&first)));
}
