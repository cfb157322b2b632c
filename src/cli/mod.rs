//! The command line: one file a command. Exit codes: `docs/commands.md`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Effects};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::domain::commands::{COMMANDS, GROUPS, Question};
use crate::domain::routes::Lane;
use crate::platform::{bind, heap, inside, layers, panics, spawn, supervise};
use crate::rehearsal;

mod answer;
mod approve;
mod ask;
mod backlog;
mod board;
mod checks;
mod command;
mod config;
mod demo;
mod doctor;
mod global;
mod init;
mod lifecycle;
mod list;
mod local_guild;
mod mcp;
mod output;
mod plain;
mod plan;
mod prepare;
mod prompt;
mod records;
mod route;
mod run;
mod setup;
mod sprint;
mod status;
mod svg;
mod told;
mod verify;
mod why;

use global::{Global, runtime, until_interrupt};
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

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a workspace, or bring newer texts into one
    Init(init::Args),
    /// Make a Discord server ready for the team: token, invitation, channels, roles, voices; and undo it
    Setup(setup::Args),
    /// Check everything that the team needs, and say for each problem what to do
    Doctor(doctor::Args),
    /// Checks: what the project shows, and what they say about a commit
    #[command(subcommand)]
    Checks(checks::Command),
    Prepare(prepare::Args),
    /// Change the configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Run the team of a workspace, until it is told to stop
    Run(run::Args),
    Status(status::Args),
    /// List roles, backlog, schedule and open requests, a line each
    List(list::Args),
    Board(board::Args),
    Why(why::Args),
    Ask(ask::Args),
    Fast(ask::LaneArgs),
    Quick(ask::LaneArgs),
    Full(ask::LaneArgs),
    Route(route::Args),
    #[command(subcommand)]
    Request(command::Request),
    Approve(approve::Args),
    /// Answer what the planner asks before anything is built
    Answer(answer::Args),
    Verify(verify::Args),
    Revise(command::Revise),
    Models,
    Cost,
    Health,
    Settings,
    #[command(subcommand)]
    Sprint(sprint::Command),
    #[command(subcommand)]
    Backlog(backlog::Command),
    /// What is to be delivered: read from a file, checked, shown
    #[command(subcommand)]
    Plan(plan::Command),
    #[command(subcommand)]
    Outbox(command::Outbox),
    /// The steps of a request, and where each outcome leads
    #[command(subcommand)]
    Lifecycle(lifecycle::Command),
    /// What agents were told
    #[command(subcommand)]
    Prompt(prompt::Command),
    /// A whole team on this machine, to try it out: a page to chat on, a project, agents that rehearse
    Demo(demo::Args),
    /// Serve a Discord-like guild with a web page on this machine
    LocalGuild(local_guild::LocalGuildArgs),
    /// Serve the tools of its run to an agent (MCP, on standard input and output); agents start it
    Mcp,
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default());

/// The parser, with the help of the commands that stand in the table that Discord's are made from, too.
fn parser() -> clap::Command {
    let groups = GROUPS.iter().map(|(name, about)| (vec![name.en], about.en));
    let entries =
        COMMANDS.iter().map(|it| (it.path.iter().map(|name| name.en).collect(), it.about.en));
    groups
        .chain(entries)
        .fold(Cli::command(), |parser, (path, about)| described(parser, &path, about))
}

fn described(parser: clap::Command, path: &[&'static str], about: &'static str) -> clap::Command {
    match path {
        [] => parser.about(about),
        [name, rest @ ..] => {
            if parser.find_subcommand(name).is_none() {
                return parser;
            }
            parser.mut_subcommand(*name, |inner| described(inner, rest, about))
        }
    }
}

/// Parses the arguments of the process and runs the command.
pub fn main() -> ExitCode {
    heap::keep_together();
    panics::tell_cleanly();
    main_with(std::env::args_os())
}

/// The same with given arguments, the program's name first.
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(code) = helper(arguments.get(1..).unwrap_or_default()) {
        return code;
    }
    let parsed = parser()
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return written(output::usage(&error)),
    };
    // The hook for panics has told what went wrong.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| dispatch(cli)));
    written(done.unwrap_or(ExitCode::from(output::FAULT)))
}

/// The code of a command whose words were taken; 1 where standard output refused some.
fn written(code: ExitCode) -> ExitCode {
    match output::all_written() {
        Ok(()) => code,
        Err(failure) => failure.report(),
    }
}

fn dispatch(cli: Cli) -> ExitCode {
    let outcome = match cli.command {
        Command::Init(args) => init::run(&cli.global, &args),
        Command::Setup(args) => setup::run(&cli.global, &args),
        Command::Doctor(args) => return doctor::run(&cli.global, &args),
        Command::Prepare(args) => prepare::run(&cli.global, &args),
        Command::Checks(command) => return checks::run(&cli.global, &command),
        Command::Config(command) => config::run(&cli.global, &command),
        Command::Run(args) => run::run(&cli.global, &args),
        Command::Status(args) => status::run(&cli.global, &args),
        Command::List(args) => list::run(&cli.global, &args),
        Command::Sprint(command) => sprint::run(&cli.global, &command),
        Command::Backlog(command) => backlog::run(&cli.global, &command),
        Command::Board(args) => board::run(&cli.global, &args),
        Command::Why(args) => why::run(&cli.global, &args),
        Command::Ask(args) => return ask::run(&cli.global, &args),
        Command::Fast(args) => return ask::run(&cli.global, &args.on(Lane::Fast)),
        Command::Quick(args) => return ask::run(&cli.global, &args.on(Lane::Quick)),
        Command::Full(args) => return ask::run(&cli.global, &args.on(Lane::Full)),
        Command::Route(args) => route::run(&cli.global, &args),
        Command::Request(args) => command::request(&cli.global, &args),
        Command::Approve(args) => approve::run(&cli.global, &args),
        Command::Answer(args) => answer::run(&cli.global, &args),
        Command::Verify(args) => verify::run(&cli.global, &args),
        Command::Revise(args) => command::revise(&cli.global, &args),
        Command::Lifecycle(command) => lifecycle::run(&cli.global, &command),
        Command::Models => command::say_call(&cli.global, Question::Models),
        Command::Cost => command::say_call(&cli.global, Question::Cost),
        Command::Health => command::say_call(&cli.global, Question::Health),
        Command::Settings => command::say_call(&cli.global, Question::Settings),
        Command::Plan(command) => plan::run(&cli.global, &command),
        Command::Outbox(command) => command::outbox(&cli.global, &command),
        Command::Prompt(command) => prompt::run(&cli.global, &command),
        Command::Demo(args) => demo::run(&cli.global, &args),
        Command::Mcp => mcp::run(),
        Command::LocalGuild(args) => return local_guild::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The subcommands by which our binary is its own helper process; no part of the public command line.
fn helper(arguments: &[OsString]) -> Option<ExitCode> {
    let (name, rest) = arguments.split_first()?;
    match name.to_str()? {
        spawn::SUPERVISE => Some(supervise::main(rest)),
        spawn::INSIDE => Some(inside::main(rest)),
        spawn::BIND => Some(bind::main(rest)),
        spawn::LAYERS => Some(layers::main(rest)),
        spawn::REHEARSE => Some(rehearsal::main(rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_make_sense_together() {
        parser().debug_assert();
    }

    #[test]
    fn every_command_of_the_table_is_one_here_with_its_text() {
        let parser = parser();
        for entry in &COMMANDS {
            let mut found = &parser;
            for name in entry.path {
                found = found.find_subcommand(name.en).unwrap_or_else(|| panic!("{}", name.en));
            }
            assert_eq!(found.get_about().map(ToString::to_string).as_deref(), Some(entry.about.en));
        }
        for command in parser.get_subcommands().flat_map(|it| it.get_subcommands().chain([it])) {
            assert!(command.get_about().is_some(), "{} says nothing", command.get_name());
        }
    }

    #[test]
    fn the_page_of_commands_is_made_from_the_table() {
        assert_eq!(crate::domain::commands::page(), include_str!("../../docs/commands.md"));
    }

    #[test]
    fn refresh_and_reset_exclude_each_other_c10() {
        let wrong = ["teams", "init", "--refresh-prompts", "--reset"];
        let error = Cli::try_parse_from(wrong).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
