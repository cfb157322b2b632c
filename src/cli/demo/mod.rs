//! `teams demo`: a whole team on a fresh machine, with nothing but this binary and git.

mod guild;
mod home;
mod person;
mod plan;
mod request;
mod sprint;
mod team;

use std::path::PathBuf;

use serde_json::{Value, json};

use super::init::AgentArgument;
use super::{Failure, Global, say, told};
use crate::domain::config::AgentKind;
use crate::domain::language::Language;
use crate::platform::plug;

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where everything goes; started again on the same folder, the demo goes on where it was
    #[arg(long, value_name = "FOLDER", default_value = "teams-demo")]
    dir: PathBuf,
    /// The page's port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Who works: `rehearsal` needs no model, `codex` and `claude` are the real CLIs, `acp:<command>` is any
    /// agent that speaks the Agent Client Protocol
    #[arg(long, value_parser = super::init::agent, default_value = "rehearsal")]
    agent: AgentArgument,
    /// The base address of another model server for the real agent
    #[arg(long, value_name = "URL")]
    model_url: Option<String>,
    /// Play one request, a whole sprint, or a plan file to its end and tell what happens
    #[arg(long, value_enum)]
    script: Option<Script>,
    /// For `--script plan`: the file, of any kind that `teams plan check` reads
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// For `--script plan`: how long each role takes (`step: 1.0`, `items: {EPIC-001: 2.5}`, `slots: 4`)
    #[arg(long, value_name = "FILE")]
    simulate: Option<PathBuf>,
    /// For `--script plan`: the figures as JSON
    #[arg(long)]
    json: bool,
    /// Kill the team with SIGKILL at its N-th durable append, start it again and go on
    #[arg(long, value_name = "N")]
    pull_plug: Option<u64>,
    /// Let this task of the team panic (`role`, `effects`, `outbox`, `clock`, …), start the team again and go on
    #[arg(long, value_name = "TASK", conflicts_with = "pull_plug")]
    panic: Option<String>,
}

impl Args {
    /// What goes wrong on purpose, as the team is told.
    fn plug(&self) -> Option<String> {
        let kill = self.pull_plug.map(|number| format!("after_sync:{number}"));
        kill.or_else(|| self.panic.as_deref().map(plug::panic_of))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Script {
    /// The first task of the project's task list
    Request,
    /// The items of a plan file, by agents that take given times and add a file each
    Plan,
    /// Everything on the list: planned, worked on todo by todo, reported and archived
    Sprint,
}

/// Runs it.
pub(super) fn run(_global: &Global, args: &Args) -> Result<(), Failure> {
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(play(args));
    runtime.shutdown_background();
    outcome
}

async fn play(args: &Args) -> Result<(), Failure> {
    let simulation = simulation(args)?;
    let tell = |words: String| {
        if !args.json {
            say(words);
        }
    };
    let home = home::Home::make(&args.dir)?;
    let mut guild = guild::Guild::start(&home, args.port).await?;
    let times = simulation.as_ref().map(|simulation| &simulation.times);
    home.write_workspace(&guild.info, &args.agent, args.model_url.as_deref(), times)?;
    let mut team = team::Team::start(&home, &guild.info, args.plug())?;
    let rehearses = match (&simulation, args.agent.kind) {
        (Some(_), _) => "plan",
        (None, AgentKind::Rehearsal) => "tasks",
        (None, _) => "",
    };
    tell(words(
        "demo.begun",
        json!({
            "page": guild.info.page_url,
            "project": home.project().display().to_string(),
            "rehearses": rehearses,
        }),
    )?);
    let outcome = match (args.script, &simulation) {
        (_, Some(simulation)) => {
            plan::play(&home, &guild.info, &mut team, simulation, args.json).await
        }
        (Some(Script::Request), None) => request::play(&home, &guild.info, &mut team).await,
        (Some(Script::Sprint), None) => sprint::play(&home, &guild.info, &mut team).await,
        (Some(Script::Plan) | None, None) => chat(&mut team).await,
    };
    team.stop().await;
    guild.stop().await;
    outcome
}

/// The plan that is to be played, where one is.
fn simulation(args: &Args) -> Result<Option<plan::Simulation>, Failure> {
    match (args.script, &args.plan, &args.simulate) {
        (Some(Script::Plan), Some(plan), Some(times)) => {
            if args.agent.kind != AgentKind::Rehearsal {
                return Err(Failure::usage("only the rehearsal agent takes given times"));
            }
            plan::Simulation::read(plan, times).map(Some)
        }
        (Some(Script::Plan), ..) => {
            Err(Failure::usage("`--script plan` needs `--plan FILE` and `--simulate TIMES`"))
        }
        (_, None, None) if !args.json => Ok(None),
        _ => Err(Failure::usage("`--plan`, `--simulate` and `--json` belong to `--script plan`")),
    }
}

/// A text in the language of this machine's person.
fn words(key: &str, values: Value) -> Result<String, Failure> {
    let printer = told::Printer::new(told::language(Language::En), false)?;
    Ok(printer.words(key, &told::object(values)))
}

/// Until the person says stop.
async fn chat(team: &mut team::Team) -> Result<(), Failure> {
    say(words("demo.write", json!({}))?);
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            _ = &mut stop => {
                say(words("demo.stops", json!({}))?);
                return Ok(());
            }
            ended = team.keep() => ended?,
        }
    }
}
