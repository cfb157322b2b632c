//! Commands to a running team: `ask`, `request …`, and what it is asked to show.

use std::path::Path;

use super::{Failure, Global, say};
use crate::domain::ids::RequestId;
use crate::domain::incoming::Command;
use crate::domain::request::Language;
use crate::service::{self, Reply, Wanted};

/// `teams ask`.
#[derive(Debug, clap::Args)]
pub(super) struct Ask {
    /// What to ask for
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
}

/// `teams request`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Request {
    Cancel(About),
    Retry(About),
    Steer {
        #[command(flatten)]
        about: About,
        /// What it should know
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
    },
}

/// Which request.
#[derive(Debug, clap::Args)]
pub(super) struct About {
    /// The request, such as 20260324-1a2b3c4d
    #[arg(value_name = "REQUEST")]
    request: RequestId,
}

/// Asks; the answer comes in the report channel.
pub(super) fn ask(global: &Global, args: &Ask) -> Result<(), Failure> {
    let text = args.words.join(" ");
    let language = Language::of(&text).unwrap_or_default();
    say_call(global, Command::Ask { text, channel_id: None, language })
}

/// Does something to a request.
pub(super) fn request(global: &Global, command: &Request) -> Result<(), Failure> {
    let command = match command {
        Request::Cancel(about) => Command::Cancel { request_id: about.request.clone() },
        Request::Retry(about) => Command::Retry { request_id: about.request.clone() },
        Request::Steer { about, words } => {
            Command::Steer { request_id: about.request.clone(), text: words.join(" ") }
        }
    };
    say_call(global, command)
}

/// Says what the running team says, or fails with its refusal.
pub(super) fn say_call(global: &Global, wanted: impl Into<Wanted>) -> Result<(), Failure> {
    say(call(&global.workspace()?, wanted)?.text);
    Ok(())
}

/// Brings a command to the team that runs in a workspace. Within an agent's run it goes to the socket of
/// that run, whatever it is: what is not for agents is refused there by name.
pub(super) fn call(root: &Path, wanted: impl Into<Wanted>) -> Result<Reply, Failure> {
    let wanted = wanted.into();
    let socket = std::env::var_os(service::RUN_SOCKET).filter(|path| !path.is_empty());
    let runtime = super::runtime()?;
    let outcome = match &socket {
        Some(socket) => runtime.block_on(service::call_of_run(Path::new(socket), wanted)),
        None => runtime.block_on(service::call(root, wanted)),
    };
    outcome.map_err(|error| {
        let gone = matches!(error, service::ControlError::NotRunning(_)) && socket.is_none();
        let hint = gone.then(|| "start it with `teams run`".to_owned());
        Failure::new(error.to_string()).hint(hint)
    })
}
