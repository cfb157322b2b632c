//! `--script request`: one request to its end, as a person would do it, and the proof.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::home::{BRANCH, Home, broken};
use super::team::Team;
use crate::cli::{Failure, say};
use crate::domain::evidence::Evidence;
use crate::domain::request::Request;
use crate::git::{self, CheckSpec, CommitId, Project};
use crate::local_guild::GuildInfo;
use crate::platform::files;
use crate::store;
use crate::workspace;

/// What the person writes.
const WORDS: &str = "do task 1";
/// How long the request may take in all.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// How long nothing may be heard before the records are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Plays it. `Ok` only with exactly one commit more and the checks, red before, green there.
pub(super) async fn request(
    home: &Home,
    guild: &GuildInfo,
    team: &mut Team,
) -> Result<(), Failure> {
    let person = Person::new(guild)?;
    let (message, said_before) = person.ask().await?;
    if said_before && ended(home, &message)?.is_some() {
        say("The request was finished before.");
    } else {
        if said_before {
            say("The request was begun before; going on.");
        } else {
            say(format_args!("owner: @Teams {WORDS}"));
        }
        let watched = person.watch(home, &message, team);
        tokio::time::timeout(PATIENCE, watched)
            .await
            .map_err(|_| Failure::new("the request did not end in time"))??;
        person.last_answer(&message).await?;
    }
    prove(home, &message).await
}

/// The owner at the page.
struct Person<'a> {
    http: reqwest::Client,
    guild: &'a GuildInfo,
    token: String,
}

impl<'a> Person<'a> {
    fn new(guild: &'a GuildInfo) -> Result<Person<'a>, Failure> {
        let token = guild.users.get("owner").map(|account| account.token.clone());
        let token = token.ok_or_else(|| Failure::new("the guild has no owner"))?;
        Ok(Person { http: reqwest::Client::new(), guild, token })
    }

    async fn get(&self, path: &str) -> Result<Value, Failure> {
        let url = format!("{}/_local/{path}", self.guild.base_url);
        let call = self.http.get(url).header("Authorization", &self.token);
        let answer = call.send().await.and_then(reqwest::Response::error_for_status);
        answer.map_err(broken)?.json().await.map_err(broken)
    }

    /// Writes the words unless they stand there already. The message's id, and whether they did.
    async fn ask(&self) -> Result<(String, bool), Failure> {
        let bot = self.guild.bots.get("teams").map(|bot| bot.id.clone()).unwrap_or_default();
        let words = format!("<@{bot}> {WORDS}");
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
    async fn last_answer(&self, message: &str) -> Result<(), Failure> {
        let page = self.get("messages?channel=general&limit=100").await?;
        let answers = page.as_array().into_iter().flatten();
        let mut ours =
            answers.filter(|answer| answer["message_reference"]["message_id"] == message);
        let newest = ours.next().and_then(|answer| answer["content"].as_str());
        say("");
        for line in newest.unwrap_or_default().lines() {
            say(format_args!("    {line}"));
        }
        say("");
        Ok(())
    }

    /// Tells what is posted until the request has ended and everything about it was said.
    async fn watch(&self, home: &Home, message: &str, team: &mut Team) -> Result<(), Failure> {
        let state = self.get("state").await?;
        let after = format!("{}.{}", state["epoch"].as_str().unwrap_or_default(), state["feed"]);
        let url = format!("{}/_local/events?after={after}", self.guild.base_url);
        let call = self.http.get(url).header("Authorization", &self.token);
        let mut stream = call.send().await.map_err(broken)?.bytes_stream();
        let mut text = Vec::new();
        // The last word may have been said between the question and the first event.
        while ended(home, message)?.is_none() {
            tokio::select! {
                chunk = stream.next() => {
                    let Some(chunk) = chunk else {
                        return Err(Failure::new("the local guild closed"));
                    };
                    show(&mut text, &chunk.map_err(broken)?);
                }
                ended = team.keep() => ended?,
                // The record is closed a moment after the last message: look again.
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
        // What was said last is still on its way here.
        while let Ok(Some(Ok(chunk))) = tokio::time::timeout(LOOK_AGAIN, stream.next()).await {
            show(&mut text, &chunk);
        }
        Ok(())
    }
}

/// Takes in a piece of the stream; each message in it becomes a line on the terminal.
fn show(text: &mut Vec<u8>, chunk: &[u8]) {
    text.extend_from_slice(chunk);
    while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = text.drain(..=end).collect();
        show_line(&String::from_utf8_lossy(&line));
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
    say(format_args!("{author}: {first}"));
}

/// The request of the message, once it has ended and nothing about it waits any more.
fn ended(home: &Home, message: &str) -> Result<Option<Request>, Failure> {
    let root = home.workspace();
    if !files::exists(&root.join(store::RUNTIME)) {
        return Ok(None);
    }
    let asked = |request: &Request| {
        request.reply_route.message_id.is_some_and(|id| id.to_string() == message)
    };
    // A team that opens or stops moves files under a reader; the next look is complete.
    let Ok(state) = store::read_only(&root) else {
        return Ok(None);
    };
    if let Some(open) = state.requests.values().find(|request| asked(request)) {
        use crate::domain::request::RequestStatus;
        if open.status == RequestStatus::Blocked {
            let why = open.blocked.as_ref();
            let code = why.map(|blocked| blocked.code.as_str()).unwrap_or_default();
            let detail = why.map(|blocked| blocked.detail.as_str()).unwrap_or_default();
            return Err(Failure::new(format!("the request waits for a person: {code}"))
                .detail(Some(detail.to_owned())));
        }
        return Ok(None);
    }
    for path in files::list(&root.join(".teams_runtime/requests"))? {
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let text = files::read_text_if_present(&path)?.unwrap_or_default();
        if let Ok(request) = serde_json::from_str::<Request>(&text)
            && asked(&request)
            && request.status.is_terminal()
        {
            return Ok(Some(request));
        }
    }
    Ok(None)
}

/// What the script promises: one commit more, red before it, green at it.
async fn prove(home: &Home, message: &str) -> Result<(), Failure> {
    let request = ended(home, message)?.ok_or_else(|| Failure::new("the request has not ended"))?;
    let commits = git::create::first_parents(&home.project(), BRANCH).map_err(broken)?;
    let [head, base] = commits.as_slice() else {
        return Err(Failure::new(format!(
            "expected exactly one commit on {BRANCH} after the first, found {}",
            commits.len().saturating_sub(1)
        )));
    };
    if request.commit_sha.as_deref() != Some(head.to_string().as_str()) {
        return Err(Failure::new(format!("the record names {:?}, not {head}", request.commit_sha)));
    }
    let before = checks(home, *base).await?;
    let after = checks(home, *head).await?;
    let word = |evidence: &Evidence| if evidence.is_green() { "green" } else { "red" };
    say(format_args!(
        "checks before: {}   at {}: {}",
        word(&before),
        &head.to_string()[..10],
        word(&after)
    ));
    if before.is_green() || !after.is_green() {
        return Err(Failure::new("the checks do not prove the commit"));
    }
    say(format_args!("Done: one commit on {BRANCH}, and the checks are green at it."));
    Ok(())
}

async fn checks(home: &Home, commit: CommitId) -> Result<Evidence, Failure> {
    let workspace = workspace::load(&home.workspace())?;
    let specs: Vec<CheckSpec> =
        workspace.runtime.checks.iter().map(crate::service::check_spec).collect();
    let project = Project::open(&home.project(), BRANCH).map_err(broken)?;
    files::create_dir_all(&home.scratch())?;
    let never = CancellationToken::new();
    git::checks::run(&project, commit, &specs, &home.scratch(), &never).await.map_err(broken)
}
