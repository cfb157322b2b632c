//! `teams lifecycle check|show`: the steps of a request, of a sprint or of sourcing, held against the rules, as text or as a picture.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Failure, Global, say};
use crate::domain::lifecycle::{Edge, Lifecycle, Prerequisite, Step, Subject};
use crate::workspace::ConfigError;
use crate::workspace::lifecycle::{self, LIFECYCLE_FILE};
use crate::workspace::routes::{self, ROUTES_FILE};

mod picture;

/// Its commands.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Hold a definition against the rules, and say for each fault where it is and what to write
    Check(Which),
    /// Show the steps, and where each outcome leads
    Show {
        #[command(flatten)]
        which: Which,
        /// As a picture
        #[arg(long)]
        svg: bool,
        /// As the definition itself, to begin one of your own with
        #[arg(long, conflicts_with = "svg")]
        yaml: bool,
    },
}

/// The definition that is meant.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// `request`, `sprint` or `sourcing`, or a file; without it the lifecycle of requests of the workspace
    #[arg(value_name = "LIFECYCLE")]
    which: Option<PathBuf>,
}

/// Runs one.
pub(super) fn run(global: &Global, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Check(which) => {
            let (lifecycle, origin) = find(global, which)?;
            if which.which.is_none() {
                // The team begins with neither without the other.
                report(routes::check(&global.workspace()?, &lifecycle)?, ROUTES_FILE)?;
            }
            say(format_args!("{origin} holds together: {} steps", lifecycle.steps().count()));
        }
        Command::Show { which, svg, yaml } => {
            let (lifecycle, origin) = find(global, which)?;
            match (svg, yaml) {
                (true, _) => say(picture::svg(&lifecycle)),
                (_, true) => say(lifecycle.text().trim_end()),
                (false, false) => show(&lifecycle, &origin),
            }
        }
    }
    Ok(())
}

/// Where a lifecycle comes from.
enum LifecycleSource {
    /// The workspace's own file.
    Workspace,
    /// This program.
    BuiltIn(Subject),
    /// A file that was named.
    File(PathBuf),
}

impl fmt::Display for LifecycleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace => f.write_str(LIFECYCLE_FILE),
            Self::BuiltIn(subject) => write!(f, "The {subject} lifecycle that is built in"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The lifecycle that is meant: a named file, the workspace's own, or the one that is built in.
fn find(global: &Global, which: &Which) -> Result<(Arc<Lifecycle>, LifecycleSource), Failure> {
    let root = global.workspace()?;
    let has_own = crate::platform::files::is_there(&root.join(LIFECYCLE_FILE))?;
    let named = which.which.as_deref().and_then(Path::to_str);
    let subject = named.map_or(Ok(Subject::Request), str::parse);
    let origin = match (subject, &which.which) {
        (Ok(Subject::Request), _) if has_own => LifecycleSource::Workspace,
        (Ok(subject), _) => LifecycleSource::BuiltIn(subject),
        (Err(_), file) => LifecycleSource::File(file.clone().unwrap_or_default()),
    };
    let checked = match &origin {
        LifecycleSource::Workspace => lifecycle::check(&root)?,
        LifecycleSource::BuiltIn(subject) => Ok(Arc::clone(Lifecycle::of(*subject))),
        LifecycleSource::File(path) => lifecycle::check_file(path, &root)?,
    };
    Ok((report(checked, &origin.to_string())?, origin))
}

/// What was checked, or each of its faults, of which the last is the failure of the command.
fn report<T>(checked: Result<T, Vec<ConfigError>>, origin: &str) -> Result<T, Failure> {
    checked.map_err(|mut faults| {
        let last = faults.pop();
        for fault in faults {
            Failure::from(fault).report();
        }
        last.map_or_else(|| Failure::new(format!("{origin} does not hold")), Failure::from)
    })
}

fn show(lifecycle: &Lifecycle, origin: &LifecycleSource) {
    say(format_args!("{origin} (sha256 {}…)", &lifecycle.digest()[..12]));
    say(match lifecycle.subject {
        Subject::Request => format!(
            "A request begins at {}, a todo at {}; an answer of a person leads to {}.",
            lifecycle.begin, lifecycle.begin_todo, lifecycle.resume
        ),
        Subject::Sprint => format!(
            "A sprint begins at {}; where it is to end before its time, that leads to {}.",
            lifecycle.begin, lifecycle.stop
        ),
        Subject::Sourcing => format!(
            "What was found begins at {}, what is blocked at {}.",
            lifecycle.begin, lifecycle.begin_blocked
        ),
    });
    let counters = lifecycle.counters.iter().map(|(name, most)| format!("{name} {most}"));
    let counters: Vec<String> = counters.collect();
    if !counters.is_empty() {
        say(format_args!("Counters: {}", counters.join(", ")));
    }
    for step in lifecycle.steps() {
        say(format_args!("\n{}  {}", step.name, about(step)));
        for (outcome, edge) in step.edges() {
            say(format_args!("  {:<22} {}", outcome.as_str(), leads(edge)));
        }
        for (category, edge) in lifecycle.ways_back(step) {
            say(format_args!("  {:<22} {}", format!("reopen {category}"), leads(edge)));
        }
    }
}

fn about(step: &Step) -> String {
    let (_, who) = picture::look(step.kind, step.role.as_str());
    let mut who = who.to_owned();
    if !step.kind.roles().is_empty() {
        let minutes = step.timeout_seconds / 60;
        who.push_str(&format!(", {} attempts of {minutes} min", step.attempts));
    }
    who.push_str(&picture::conditions(step));
    let needs = match (step.needs(Prerequisite::Commit), step.needs(Prerequisite::Evidence)) {
        (_, true) => ", at a commit whose checks are green",
        (true, false) => ", at a commit",
        (false, false) => "",
    };
    format!("{who}{needs}")
}

fn leads(edge: Edge) -> String {
    let mut text = format!("-> {}", edge.to);
    if let Some(counter) = edge.charge {
        text.push_str(&format!(", costs one of {counter}"));
    }
    if let Some(counter) = edge.within {
        text.push_str(&format!(", while {counter} is not used up"));
    }
    if edge.charge.is_some() || edge.within.is_some() {
        match edge.otherwise {
            Some(otherwise) => text.push_str(&format!(", else {otherwise}")),
            None => text.push_str(", else a person is asked"),
        }
    }
    text
}
