//! Commands to a running team: `ask`, `cancel`, `retry`.

use std::path::Path;

use super::{Failure, Global, say};
use crate::domain::ids::RequestId;
use crate::domain::incoming::Command;
use crate::domain::request::Language;
use crate::service::{self, Reply};

/// `teams ask`.
#[derive(Debug, clap::Args)]
pub(super) struct Ask {
    /// What to ask for
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
}

/// A command about a request.
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

/// Withdraws.
pub(super) fn cancel(global: &Global, args: &About) -> Result<(), Failure> {
    say_call(global, Command::Cancel { request_id: args.request.clone() })
}

/// Tries again.
pub(super) fn retry(global: &Global, args: &About) -> Result<(), Failure> {
    say_call(global, Command::Retry { request_id: args.request.clone() })
}

fn say_call(global: &Global, command: Command) -> Result<(), Failure> {
    say(call(&global.workspace()?, command)?.text);
    Ok(())
}

/// Brings a command to the team that runs in a workspace. Within an agent's run it goes to the socket of
/// that run, whatever it is: what is not for agents is refused there by name.
pub(super) fn call(root: &Path, command: Command) -> Result<Reply, Failure> {
    let socket = std::env::var_os(service::RUN_SOCKET).filter(|path| !path.is_empty());
    let runtime = super::runtime()?;
    let outcome = match &socket {
        Some(socket) => runtime.block_on(service::call_of_run(Path::new(socket), command)),
        None => runtime.block_on(service::call(root, command)),
    };
    outcome.map_err(|error| {
        let gone = matches!(error, service::ControlError::NotRunning(_)) && socket.is_none();
        let hint = gone.then(|| "start it with `teams run`".to_owned());
        Failure::new(error.to_string()).hint(hint)
    })
}
