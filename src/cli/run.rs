//! `teams run`: the team of a workspace in the foreground.

use super::{Failure, Global};
use crate::domain::role::Role;
use crate::platform::terminal;
use crate::service::{self, RunError, RunOptions, logs};

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Serve only this role; what is for others waits
    #[arg(long, value_name = "ROLE", value_parser = role)]
    agent: Option<Role>,
    /// Where whole hand-offs are shown; `discord` posts them as JSON to the relay channel, for everybody who reads it.
    /// The file queue stays the transport either way
    #[arg(long, value_enum, default_value_t = Relay::Internal)]
    relay_transport: Relay,
    /// Log to the workspace only, not to the terminal
    #[arg(long)]
    quiet: bool,
    /// Take over the records of an older runtime without asking; they are copied first
    #[arg(long)]
    yes: bool,
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
        take_over: args.yes,
    };
    let runtime = super::runtime()?;
    let mut outcome = runtime.block_on(service::run(options.clone()));
    if let Err(error @ RunError::Older { .. }) = &outcome
        && may_take_over(error)?
    {
        let options = RunOptions { take_over: true, ..options.clone() };
        outcome = runtime.block_on(service::run(options));
    }
    // An agent under way finishes by itself and is adopted at the next start.
    runtime.shutdown_background();
    let hint = matches!(outcome, Err(RunError::Older { .. })).then(|| {
        let place = options.root.display();
        format!(
            "`teams run --yes --workspace-root '{place}'` copies .teams_runtime and takes them over; \
             `teams status` names them"
        )
    });
    outcome.map_err(|error| Failure::from(error).hint(hint))
}

/// Asks, where somebody is there to answer.
fn may_take_over(error: &RunError) -> Result<bool, Failure> {
    if !terminal::is_there() {
        return Ok(false);
    }
    let question = format!("{error}. The folder .teams_runtime is copied first. Go on? (yes/no) ");
    let answer = terminal::line(&question);
    let answer =
        answer.map_err(|error| Failure::new(format!("the terminal cannot be read: {error}")))?;
    Ok(answer == "yes")
}
