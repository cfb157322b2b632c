//! `teams run`: the team of a workspace in the foreground.

use super::{Failure, Global};
use crate::domain::role::Role;
use crate::service::{self, RunOptions, logs};

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Serve only this role; what is for others waits
    #[arg(long, value_name = "ROLE", value_parser = role)]
    agent: Option<Role>,
    /// Where whole hand-offs are shown; the file queue stays the transport either way
    #[arg(long, value_enum, default_value_t = Relay::Internal)]
    relay_transport: Relay,
    /// Log to the workspace only, not to the terminal
    #[arg(long)]
    quiet: bool,
    /// Stop when standard input ends: then the team never outlives the process that started it
    #[arg(long, hide = true)]
    parent_pipe: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Relay {
    /// A readable line of each hand-off in the relay channel
    Internal,
    /// The whole envelope in the relay channel as well, for debugging
    Discord,
}

pub(super) fn role(word: &str) -> Result<Role, String> {
    Role::parse(word).ok_or_else(|| {
        let names: Vec<_> = Role::ALL.iter().map(|role| role.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let root = global.workspace()?;
    // Before the log file would make a folder of whatever was named.
    crate::workspace::load(&root)?;
    logs::init(&root, args.quiet)?;
    crate::platform::plug::check().map_err(|error| Failure::usage(error.to_string()))?;
    let options = RunOptions {
        root,
        only: args.agent,
        relay_debug: args.relay_transport == Relay::Discord,
        parent_pipe: args.parent_pipe,
    };
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(service::run(options));
    // An agent under way finishes by itself and is adopted at the next start.
    runtime.shutdown_background();
    outcome.map_err(Failure::from)
}
