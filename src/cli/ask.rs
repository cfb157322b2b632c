//! `teams ask`: asks the running team for something and says where the answer will be, or waits for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::output::fit;
use super::plain::plain;
use super::{Failure, Global, command, say};
use crate::assets::catalog::Catalog;
use crate::domain::commands::Question;
use crate::domain::ids::RequestId;
use crate::domain::incoming::Command;
use crate::domain::language::Language;
use crate::domain::outgoing::Content;
use crate::domain::request::{EventKind, Request, RequestEvent, RequestStatus};
use crate::domain::routes::Lane;
use crate::platform::redact::redact;
use crate::platform::terminal::LiveLine;
use crate::service::{self, ControlError, Reply};
use crate::{engine, store, workspace};

/// How often the running team is asked how the request stands.
const PACE: Duration = Duration::from_millis(300);
/// The exit code of somebody who does not wait for the end: as after any Ctrl-C.
const LEFT: u8 = 130;

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to ask for
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Tell each step, and then the answer; the exit code is 0 where it is done, else 1
    #[arg(long)]
    wait: bool,
    /// Which way it takes: answer, fast, quick, standard or full; no model is asked about it
    #[arg(long, value_name = "LANE")]
    lane: Option<Lane>,
}

/// Its options where the command names the lane.
#[derive(Debug, clap::Args)]
pub(super) struct LaneArgs {
    /// What to ask for
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Tell each step, and then the answer; the exit code is 0 where it is done, else 1
    #[arg(long)]
    wait: bool,
}

impl LaneArgs {
    /// The same of `teams ask --lane`.
    pub(super) fn on(self, lane: Lane) -> Args {
        Args { words: self.words, wait: self.wait, lane: Some(lane) }
    }
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> ExitCode {
    match ask(global, args) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

fn ask(global: &Global, args: &Args) -> Result<u8, Failure> {
    let root = global.workspace()?;
    let text = args.words.join(" ");
    let language = Language::of(&text).unwrap_or_default();
    let is_command = engine::are_a_command(&text);
    let ask = Command::Ask { text, channel_id: None, parent_id: None, language, lane: args.lane };
    let reply = command::call(&root, ask)?;
    let Some(id) = request_of(&reply).filter(|_| !is_command) else {
        say(plain(&reply.text));
        return Ok(0);
    };
    let words = Words { catalog: Catalog::builtin()?, language };
    if reply.content.as_ref().is_some_and(|content| content.key != RECEIPT) {
        // It is worked on already, or tried again.
        say(plain(&reply.text));
    }
    if args.wait {
        say(words.of("ask.waiting", json!({ "request_id": id.as_str() })));
        return super::runtime()?.block_on(follow(&root, &id, &words));
    }
    let place = place(&root);
    say(words.of("ask.where", json!({ "request_id": id.as_str(), "place": place })));
    Ok(0)
}

/// What the team answers to a request that is new.
const RECEIPT: &str = "receipt";

fn request_of(reply: &Reply) -> Option<RequestId> {
    let id = reply.content.as_ref()?.values.get("request_id")?.as_str()?;
    RequestId::parse(id).ok()
}

/// Where the room of a request of the operator opens: the address of the report channel, or its id where the
/// server is not Discord's; blank where the configuration does not say.
fn place(root: &Path) -> String {
    let Ok(workspace) = workspace::load(root) else { return String::new() };
    let Ok(channels) = workspace.channels() else { return String::new() };
    let guilds = workspace.guilds();
    match (guilds.first(), &workspace.discord.base_url) {
        (Some(guild), None) => format!("https://discord.com/channels/{guild}/{}", channels.report),
        (_, _) => channels.report.to_string(),
    }
}

/// The words of the catalog for a terminal.
struct Words {
    catalog: Catalog,
    language: Language,
}

impl Words {
    fn of(&self, key: &str, values: Value) -> String {
        self.in_language(key, values.as_object().cloned().unwrap_or_default(), self.language)
    }

    fn in_language(&self, key: &str, values: Map<String, Value>, language: Language) -> String {
        let content = Content { key: key.to_owned(), values, language };
        let text = match self.catalog.render(&content) {
            // What a message shows in part and attaches is shown whole here.
            Ok(rendered) => {
                rendered.whole.into_iter().fold(plain(&rendered.text), |text, whole| {
                    format!("{text}\n\n{}\n{}", whole.name, whole.text)
                })
            }
            Err(error) => {
                tracing::warn!(%error, key, "a text cannot be said");
                key.to_owned()
            }
        };
        redact(text.trim_end()).into_owned()
    }
}

/// How a request stands, as far as it is worth a look into its records.
type Standing = BTreeMap<&'static str, String>;

/// Tells what comes until the request has ended, and then its answer; the exit code.
async fn follow(root: &Path, id: &RequestId, words: &Words) -> Result<u8, Failure> {
    let mut told = 0;
    let mut before = Standing::new();
    let mut live = LiveLine::new();
    let leave = tokio::signal::ctrl_c();
    tokio::pin!(leave);
    loop {
        let asked = service::call(root, Question::Why(id.clone().into()).into()).await;
        let running = !matches!(asked, Err(ControlError::NotRunning(_)));
        let why = asked.map_err(|error| error.to_string());
        let now = standing(why.as_ref().ok());
        if now != before || why.is_err() {
            live.clear();
            told = tell_news(root, id, words, told)?;
            if let Some(ended) = store::read_request(root, id)?.filter(|it| it.status.is_terminal())
            {
                return Ok(tell_end(words, &ended));
            }
            if let Some(line) = why.as_ref().ok().filter(|_| waits_for_a_person(&now)) {
                say(plain(&line.text));
                let here = match now.get("key").map(String::as_str) {
                    Some("why.gate") => Some("ask.gate"),
                    Some("why.blocked") => Some("ask.blocked"),
                    _ => None,
                };
                if let Some(key) = here {
                    say(words.of(key, json!({ "request_id": id.as_str() })));
                }
            }
            before = now;
        }
        if !running {
            let text = words.of("ask.stopped", json!({ "request_id": id.as_str() }));
            return Err(Failure::new(text));
        }
        if let Ok(reply) = &why {
            let line = plain(&reply.text);
            live.show(fit(&redact(&line.replace('\n', " ")), live.columns()));
        }
        tokio::select! {
            () = tokio::time::sleep(PACE) => {}
            _ = &mut leave => {
                live.clear();
                say(words.of("ask.left", json!({ "request_id": id.as_str() })));
                return Ok(LEFT);
            }
        }
    }
}

fn standing(why: Option<&Reply>) -> Standing {
    let Some(content) = why.and_then(|reply| reply.content.as_ref()) else {
        return Standing::new();
    };
    let text = |name: &str| content.values.get(name).map(ToString::to_string).unwrap_or_default();
    let of = ["role", "step", "code", "effect", "at"].map(|name| (name, text(name)));
    of.into_iter().chain([("key", content.key.clone())]).collect()
}

fn waits_for_a_person(standing: &Standing) -> bool {
    let key = standing.get("key").map(String::as_str);
    matches!(key, Some("why.gate" | "why.blocked" | "why.not_served"))
}

/// Tells the steps that are new in its history; how many lines it has now.
fn tell_news(root: &Path, id: &RequestId, words: &Words, told: usize) -> Result<usize, Failure> {
    let events = store::read_events(root, id)?;
    for event in events.iter().skip(told) {
        if let Some(line) = line_of(event, words) {
            say(line);
        }
    }
    Ok(events.len().max(told))
}

/// A step in a line; `None` for what nobody outside waits for.
fn line_of(event: &RequestEvent, words: &Words) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if event.kind == EventKind::RoleReport {
        let (step, status) = (&event.payload["step"], &event.payload["result"]["status"]);
        let values = json!({
            "role": event.actor, "step": text(step), "status": text(status), "summary": event.summary,
        });
        return Some(words.of("ask.step", values));
    }
    let passed = (event.kind == EventKind::Checks).then_some(event.summary == "passed")?;
    Some(words.of("ask.checks", json!({ "passed": passed })))
}

/// Tells what came of it: 0 where it is done.
fn tell_end(words: &Words, request: &Request) -> u8 {
    say("");
    match &request.outcome.final_answer {
        Some(answer) => {
            let (key, values) = (&answer.key, answer.values.clone());
            say(words.in_language(key, values, request.conversation.language));
        }
        // A record of before answers were kept.
        None => {
            let summary = request.work.result.as_ref().map(|result| result.summary.clone());
            say(redact(&summary.unwrap_or_else(|| request.status.as_str().to_owned())));
        }
    }
    if request.outcome.goes_on_elsewhere {
        say(words.of("ask.goes_on", Value::Null));
        return 1;
    }
    match request.status {
        RequestStatus::Completed | RequestStatus::Committed => 0,
        RequestStatus::Failed
        | RequestStatus::Cancelled
        | RequestStatus::Queued
        | RequestStatus::Delegated
        | RequestStatus::Blocked => 1,
    }
}
