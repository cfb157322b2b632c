//! Commands to a running team: `request …`, and what it is asked to show.

use std::path::Path;

use super::plain::plain;
use super::{Failure, Global, say};
use crate::domain::ids::RequestId;
use crate::domain::incoming::Command;
use crate::domain::item::ItemStatus;
use crate::service::{self, CallSubject, Reply};
use crate::workspace;

/// `teams request`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Request {
    Cancel(About),
    Retry(About),
    Split(About),
    Pause(About),
    Skip {
        #[command(flatten)]
        about: About,
        /// Why nobody does it
        #[arg(required = true, value_name = "REASON")]
        words: Vec<String>,
    },
    Steer {
        #[command(flatten)]
        about: About,
        /// What it should know
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
    },
}

/// `teams outbox`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Outbox {
    Retry,
    Dismiss {
        /// The id that `teams status` shows, or `all`
        #[arg(value_name = "MESSAGE")]
        message: String,
    },
}

/// `teams revise`.
#[derive(Debug, clap::Args)]
pub(super) struct Revise {
    #[command(flatten)]
    about: About,
    /// What should be different
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Another thing that should be; may be given several times
    #[arg(long, value_name = "WORDS")]
    also: Vec<String>,
}

/// Which request.
#[derive(Debug, clap::Args)]
pub(super) struct About {
    /// The request, such as 20260324-1a2b3c4d
    #[arg(value_name = "REQUEST")]
    request: RequestId,
}

/// Does something to a request.
pub(super) fn request(global: &Global, command: &Request) -> Result<(), Failure> {
    let (Request::Cancel(about)
    | Request::Retry(about)
    | Request::Split(about)
    | Request::Pause(about)
    | Request::Skip { about, .. }
    | Request::Steer { about, .. }) = command;
    if !in_a_run() {
        let root = global.existing()?;
        // What a sprint has put aside is decided about in the same way when its request has ended.
        let may_be_put_aside = !matches!(command, Request::Cancel(_) | Request::Pause(_));
        if !(may_be_put_aside && is_put_aside(&root, &about.request)?) {
            must_be_open(&root, &about.request)?;
        }
    }
    let command = match command {
        Request::Cancel(about) => Command::Cancel { request_id: about.request.clone() },
        Request::Retry(about) => Command::Retry { request_id: about.request.clone() },
        Request::Split(about) => Command::Split { request_id: about.request.clone() },
        Request::Pause(about) => Command::Pause { request_id: about.request.clone() },
        Request::Skip { about, words } => {
            Command::Skip { request_id: about.request.clone(), reason: words.join(" ") }
        }
        Request::Steer { about, words } => {
            Command::Steer { request_id: about.request.clone(), text: words.join(" ") }
        }
    };
    say_call(global, command)
}

/// Says what should be different about what a request delivered.
pub(super) fn revise(global: &Global, args: &Revise) -> Result<(), Failure> {
    let all: Vec<String> = [vec![args.words.join(" ")], args.also.clone()].concat();
    let (request_id, text) = (args.about.request.clone(), all.join("\n"));
    say_call(global, Command::RequestChanges { request_id, text, ended: None })
}

/// Whether the item of a request waits for a person, put aside by the sprint in which that was done.
fn is_put_aside(root: &Path, id: &RequestId) -> Result<bool, Failure> {
    let items = super::records::backlog_items(root)?;
    Ok(items.iter().any(|item| item.status == ItemStatus::Blocked && item.is_of_ended(id)))
}

/// The running team knows open requests only: whether there is one with this id, and it has not ended.
fn must_be_open(root: &Path, id: &RequestId) -> Result<(), Failure> {
    match super::records::request(root, id)? {
        Some(request) if request.status.is_terminal() => {
            let status = request.status.as_str();
            Err(Failure::new(format!("request {id} has ended already: {status}")))
        }
        Some(_) => Ok(()),
        None => Err(unknown(id)),
    }
}

/// There is no such request.
pub(super) fn unknown(id: &RequestId) -> Failure {
    Failure::new(format!("there is no request {id}"))
        .hint(Some("`teams status` lists the open ones".to_owned()))
}

/// Deals with what Discord refused.
pub(super) fn outbox(global: &Global, command: &Outbox) -> Result<(), Failure> {
    let command = match command {
        Outbox::Retry => Command::OutboxRetry,
        Outbox::Dismiss { message } => Command::OutboxDismiss { message: message.clone() },
    };
    say_call(global, command)
}

/// Says what the running team says, or fails with its refusal.
pub(super) fn say_call(global: &Global, wanted: impl Into<CallSubject>) -> Result<(), Failure> {
    say(plain(&call(&global.workspace()?, wanted)?.text));
    Ok(())
}

/// Whether this is called by an agent at work.
fn in_a_run() -> bool {
    std::env::var_os(service::RUN_SOCKET).is_some_and(|path| !path.is_empty())
}

/// Brings a command to the team that runs in a workspace. Within an agent's run it goes to the socket of
/// that run, whatever it is: what is not for agents is refused there by name.
pub(super) fn call(root: &Path, wanted: impl Into<CallSubject>) -> Result<Reply, Failure> {
    let wanted = wanted.into();
    let socket = std::env::var_os(service::RUN_SOCKET).filter(|path| !path.is_empty());
    if socket.is_none() {
        workspace::must_exist(root)?;
    }
    let runtime = super::runtime()?;
    let outcome = match &socket {
        Some(socket) => runtime.block_on(service::call_of_run(Path::new(socket), wanted)),
        None => runtime.block_on(service::call(root, wanted)),
    };
    outcome.map_err(|error| {
        let gone = matches!(error, service::ControlError::NotRunning(_)) && socket.is_none();
        let hint = gone.then(|| "start it with `teams run`".to_owned());
        Failure::new(plain(&error.to_string())).hint(hint)
    })
}
