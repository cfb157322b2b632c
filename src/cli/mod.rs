//! The command line: one file a command.

pub mod local_guild;

use std::process::ExitCode;

use clap::Parser as _;

#[derive(clap::Parser)]
#[command(name = "teams", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Serve a Discord-like guild with a web page on this machine.
    LocalGuild(local_guild::LocalGuildArgs),
}

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::LocalGuild(args) => local_guild::run(args),
    }
}
