//! The command line: one file a command. Exit codes: 0 done, 1 failed, 2 wrong usage.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Effects};
use clap::{Parser, Subcommand};

mod config;
mod init;
pub mod local_guild;
mod output;

use crate::platform::{spawn, supervise};

pub use output::{Failure, say};

/// A software team that lives in your Discord server.
#[derive(Debug, Parser)]
#[command(name = "teams", version, styles = STYLES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// The workspace; otherwise `.`, `./teams_generated` or `./workspace/teams_generated`
    #[arg(long, global = true, value_name = "FOLDER")]
    workspace_root: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a workspace, or bring newer texts into one
    Init(init::Args),
    /// Change the configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Serve a Discord-like guild with a web page on this machine
    LocalGuild(local_guild::LocalGuildArgs),
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default());

impl Global {
    /// The workspace that is meant (`spec/teams.md` 1.3); it need not exist.
    pub fn workspace(&self) -> Result<PathBuf, Failure> {
        let cwd = std::env::current_dir()
            .map_err(|error| Failure::new(format!("cannot find the current folder: {error}")))?;
        Ok(crate::workspace::resolve(
            self.workspace_root.as_deref(),
            &cwd,
        ))
    }
}

/// Parses the arguments of the process and runs the command.
pub fn main() -> ExitCode {
    if let Some(code) = hidden() {
        return code;
    }
    main_with(std::env::args_os())
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

/// The same with given arguments, the program's name first.
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing can be told to somebody who closed the pipe.
            let _ = error.print();
            let usage = error.use_stderr();
            return if usage {
                ExitCode::from(2)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let outcome = match cli.command {
        Command::Init(args) => init::run(&cli.global, &args).map(|()| ExitCode::SUCCESS),
        Command::Config(command) => config::run(&cli.global, &command).map(|()| ExitCode::SUCCESS),
        Command::LocalGuild(args) => Ok(local_guild::run(args)),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_make_sense_together() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn refresh_and_reset_exclude_each_other_c10() {
        let wrong = ["teams", "init", "--refresh-prompts", "--reset"];
        let error = Cli::try_parse_from(wrong).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
