//! The command line: one file a command.

pub mod local_guild;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::platform::{spawn, supervise};

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
    if let Some(code) = hidden() {
        return code;
    }
    match Cli::parse().command {
        Command::LocalGuild(args) => local_guild::run(args),
    }
}

/// The subcommands by which our binary is its own helper process; no part of the public command line.
fn hidden() -> Option<ExitCode> {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (name, rest) = args.split_first()?;
    match name.to_str()? {
        spawn::SUPERVISE => Some(supervise::main(rest)),
        _ => None,
    }
}
