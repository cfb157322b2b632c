//! `teams route`: what way a message would take, and another way for a request.

use super::{Failure, Global, command, say};
use crate::assets::catalog::Catalog;
use crate::domain::ids::RequestId;
use crate::domain::incoming::{Command, RouteChange};
use crate::domain::language::Language;
use crate::domain::lifecycle::{Lifecycle, StepKind, StepName};
use crate::domain::routes::{BUILT_IN_ROUTES, Lane, Routes};
use crate::engine::{advice_of, choose_lane, intent, with_signals};
use crate::platform::files;
use crate::workspace;

/// Its options.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(false)))]
#[command(group(clap::ArgGroup::new("how").multiple(false)))]
pub(super) struct Args {
    /// The request whose route is changed, such as 20260324-1a2b3c4d
    #[arg(value_name = "REQUEST", group = "what", requires = "how")]
    request: Option<RequestId>,
    /// The lane that it takes from here on
    #[arg(long, value_name = "LANE", group = "how", requires = "request", conflicts_with_all = ["text", "show"])]
    lane: Option<Lane>,
    /// A step more: its name, or a part of only one name, such as qa
    #[arg(long, value_name = "STEP", group = "how", requires = "request", conflicts_with_all = ["text", "show"])]
    add: Option<String>,
    /// Say what would be chosen for a message by the rules alone, and why; nothing is done
    #[arg(long, value_name = "WORDS", group = "what")]
    text: Option<String>,
    /// Print the routes of the workspace, to begin with
    #[arg(long, group = "what")]
    show: bool,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    if let Some(text) = &args.text {
        return explain(global, text);
    }
    if args.show {
        return show(global);
    }
    let change = (args.lane.map(RouteChange::Lane)).or(args.add.clone().map(RouteChange::Add));
    match (args.request.clone(), change) {
        (Some(request_id), Some(change)) => {
            command::say_call(global, Command::Route { request_id, change })
        }
        // The parser lets none of these through.
        (_, _) => Ok(()),
    }
}

fn show(global: &Global) -> Result<(), Failure> {
    let path = global.workspace()?.join(workspace::routes::ROUTES_FILE);
    let own = files::read_text_if_present(&path).map_err(workspace::ConfigError::from)?;
    say(own.as_deref().unwrap_or(BUILT_IN_ROUTES).trim_end());
    Ok(())
}

/// The lifecycle and the routes of the workspace, or those that are built in where there is none.
fn rules(global: &Global) -> Result<(std::sync::Arc<Lifecycle>, std::sync::Arc<Routes>), Failure> {
    let root = global.workspace()?;
    let lifecycle = match workspace::lifecycle::check(&root)? {
        Ok(lifecycle) => lifecycle,
        Err(mut faults) => return Err(faults.swap_remove(0).into()),
    };
    match workspace::routes::check(&root, &lifecycle)? {
        Ok(routes) => Ok((lifecycle, routes)),
        Err(mut faults) => Err(faults.swap_remove(0).into()),
    }
}

fn explain(global: &Global, text: &str) -> Result<(), Failure> {
    let (lifecycle, routes) = rules(global)?;
    let catalog = Catalog::builtin()?;
    let word = |key: String| catalog.label(&key, Language::En);
    let reading = intent::read(text);
    let parts = reading.parts.len();
    match reading.intent {
        Some(intent) => {
            let found = reading.why.iter().take(6);
            let why: Vec<String> =
                found.map(|it| format!("{} in \"{}\"", it.sign, it.words.trim())).collect();
            say(format_args!("The rules take this for: {intent} ({})", why.join(", ")));
        }
        None => say("The rules are not sure what this asks for."),
    }
    if parts > 1 {
        say(format_args!("It holds {parts} pieces of work."));
    }
    let signals = routes.signals_in(text);
    let usual = reading.intent.and_then(|intent| routes.intents.get(&intent));
    let asks = routes.signals_of(&signals).any(|signal| signal.plan.is_some());
    let lane = match usual {
        Some(Lane::Answer) => Lane::Answer,
        Some(_) | None => {
            let choice = choose_lane(&routes, reading.intent, None);
            let lane = with_signals(&routes, &signals, choice).lane;
            if asks { lane.max(Lane::Standard) } else { lane }
        }
    };
    if lane != Lane::Answer && !signals.is_empty() {
        let plan = if asks { "; its plan is asked about" } else { "" };
        say(format_args!("Signals of routes.yaml: {}{plan}.", signals.join(", ")));
    }
    let wanted = advice_of(&routes, &signals, &lifecycle);
    let left_out = routes.left_out_with(lane, &signals, &lifecycle);
    if lane == Lane::Answer {
        say("Lane: answer. The orchestrator answers; nothing is built.");
    } else {
        say(format_args!("Lane: {lane}. {}", word(format!("lane_about.{lane}"))));
        let mut way = lifecycle.straight_way();
        way.retain(|name| !left_out.contains(name));
        let kind = |name: &StepName| lifecycle.step(*name).map(|step| step.kind);
        let builds = way.iter().position(|name| kind(name) == Some(StepKind::Change));
        let at = builds.unwrap_or(way.len());
        way.splice(at..at, wanted);
        let names: Vec<String> = way.into_iter().map(|name| word(format!("step.{name}"))).collect();
        say(format_args!("Steps: {}", names.join(" → ")));
    }
    if reading.intent.is_none() {
        say(format_args!(
            "The orchestrator is asked first; where it is sure ({} % and more), its answer counts.",
            routes.confidence
        ));
    } else if lane != Lane::Answer {
        say(
            "Where the orchestrator takes it for something else, the longer of the two ways is taken.",
        );
    }
    Ok(())
}
