//! `teams plan`: what is to be delivered, from a file that a person wrote.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::output::say_json;
use super::plain::plain;
use super::{Failure, Global, say};
use crate::domain::criterion::Judge;
use crate::domain::ids::PlanItemId;
use crate::domain::plan::{PlanItem, PlanPart, Severity};
use crate::engine::plan::graph::Graph;
use crate::import::plan::{LARGEST, LineProblem, PlanReadError};
use crate::platform::files;
use crate::service::CheckedPlan;

mod picture;

/// The name that stands for standard input.
const STDIN: &str = "-";

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Hold a plan against the rules, and say for each fault where it is and what to do
    Check {
        #[command(flatten)]
        file: File,
        /// JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Take a plan into the backlog of the running team; a newer version of it is shown first, and counts when approved
    Import {
        #[command(flatten)]
        file: File,
        /// The approval of exactly this version, as the difference told it
        #[arg(long, value_name = "DIGEST")]
        approve: Option<String>,
        /// Print the receipt as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the items of a plan
    Show {
        #[command(flatten)]
        file: File,
    },
    /// Show what depends on what: waves, and the longest chain
    Dag {
        #[command(flatten)]
        file: File,
        /// As a picture
        #[arg(long)]
        svg: bool,
    },
}

/// The file that is meant.
#[derive(Debug, clap::Args)]
pub(super) struct File {
    /// A requirement document, a PLAN.md, a backlog table, a roadmap, or the plan of a phase; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Reads a file and holds it against the rules.
pub(super) fn read(path: &Path) -> Result<CheckedPlan, Failure> {
    let (name, bytes) = bytes(path)?;
    CheckedPlan::of(&name, &bytes).map_err(|error| unusable(&name, &error))
}

fn unusable(name: &str, error: &PlanReadError) -> Failure {
    Failure::new(format!("cannot use {name}: {error}"))
}

/// A failure where the plan cannot be used.
pub(super) fn must_hold(plan: &CheckedPlan) -> Result<(), Failure> {
    if plan.faults().next().is_none() { Ok(()) } else { judge(plan) }
}

/// Says what is wrong; a failure where that is a fault.
fn judge(plan: &CheckedPlan) -> Result<(), Failure> {
    let said =
        |problem: &LineProblem| format!("{}:{}: {}", plan.name, problem.line, problem.message);
    for warning in plan.problems.iter().filter(|problem| problem.severity == Severity::Warning) {
        say(format_args!("{} (warning)\n  {}", said(warning), warning.hint));
    }
    let failure =
        |problem: &LineProblem| Failure::new(said(problem)).hint(Some(problem.hint.clone()));
    let faults: Vec<&LineProblem> = plan.faults().collect();
    // The last one is the failure of the command.
    let Some((last, rest)) = faults.split_last() else { return Ok(()) };
    for fault in rest {
        failure(fault).report();
    }
    Err(failure(last))
}

fn as_json(plan: &CheckedPlan) -> Value {
    let items = plan.file.plan.items.iter().enumerate();
    let items: Vec<Value> = items
        .map(|(at, item)| {
            let criteria = item.criteria.iter().zip(1..);
            let criteria = criteria.map(|(it, number)| {
                let (judge, check) = match &it.judge {
                    Judge::Qa => ("qa", None),
                    Judge::Check(name) => ("check", Some(name)),
                    Judge::Person => ("person", None),
                };
                json!({ "id": format!("C-{number}"), "text": it.text, "judge": judge, "check": check })
            });
            let mut value = json!(item);
            value["criteria"] = criteria.collect();
            value["depends_on"] = json!(item.depends_on);
            value["line"] = json!(plan.file.line(PlanPart::Item(at)));
            value
        })
        .collect();
    json!({
        "file": plan.name,
        "format": plan.file.format,
        "title": plan.file.plan.title,
        "digest": plan.file.plan.digest(),
        "ok": plan.faults().next().is_none(),
        "requirements": plan.file.plan.requirements,
        "items": items,
        "problems": plan.problems,
    })
}

fn bytes(path: &Path) -> Result<(String, Vec<u8>), Failure> {
    use std::io::Read as _;
    let limit = LARGEST as u64 + 1;
    if path == Path::new(STDIN) {
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
        return Ok(("standard input".to_owned(), bytes));
    }
    // It may be what another program writes: its size is known when it is read.
    let mut bytes = Vec::new();
    files::open(path)?
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    Ok((path.display().to_string(), bytes))
}

/// Runs it.
pub(super) fn run(global: &Global, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Check { file, json } => {
            let plan = read(&file.file)?;
            if *json {
                say_json(&as_json(&plan), true);
            }
            match plan.faults().count() {
                0 if *json => Ok(()),
                0 => {
                    judge(&plan)?;
                    let items = plan.file.plan.items.len();
                    say(format_args!("{} holds together: {}", plan.name, count(items, "item")));
                    Ok(())
                }
                faults if *json => {
                    Err(Failure::new(format!("{} has {}", plan.name, count(faults, "fault"))))
                }
                _ => judge(&plan),
            }
        }
        Command::Import { file, approve, json } => {
            if file.file == Path::new(STDIN) {
                let hint = "a plan is known by the name of its file".to_owned();
                return Err(Failure::usage("import takes a file").hint(Some(hint)));
            }
            let plan = read(&file.file)?;
            must_hold(&plan)?;
            let order = plan.command(approve.as_deref());
            let order = order.map_err(|error| unusable(&plan.name, &error))?;
            let reply = super::command::call(&global.workspace()?, order)?;
            if *json {
                let values = reply.content.map(|content| Value::Object(content.values));
                say_json(&values.unwrap_or_default(), false);
            } else {
                judge(&plan)?;
                say(plain(&reply.text));
            }
            Ok(())
        }
        Command::Show { file } => {
            let plan = read(&file.file)?;
            judge(&plan)?;
            show(&plan);
            Ok(())
        }
        Command::Dag { file, svg } => {
            let plan = read(&file.file)?;
            must_hold(&plan)?;
            let items: Vec<_> = plan.file.plan.items.iter().collect();
            let edges: Vec<_> =
                items.iter().map(|it| (it.id.clone(), it.depends_on.clone())).collect();
            // Without a fault there is no cycle.
            let Some(graph) = Graph::of(&edges) else { return judge(&plan) };
            if *svg {
                say(picture::svg(&plan.file.plan, &graph));
            } else {
                dag(&items, &graph);
            }
            Ok(())
        }
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn show(plan: &CheckedPlan) {
    let plan = &plan.file.plan;
    say(&plan.title);
    for requirement in &plan.requirements {
        let when = requirement.when.as_str().replace('_', " ");
        say(format_args!("  {} ({when}) {}", requirement.id, requirement.text));
    }
    for item in &plan.items {
        say(format_args!(
            "\n{}  {}{}",
            item.id,
            item.title,
            if item.done { "  (done)" } else { "" }
        ));
        for line in item.scope.lines() {
            say(format_args!("  {line}"));
        }
        for (criterion, number) in item.criteria.iter().zip(1..) {
            say(format_args!("  C-{number}  {criterion}"));
        }
        let list = |name: &str, all: Vec<&str>| {
            if !all.is_empty() {
                say(format_args!("  {name}: {}", all.join(", ")));
            }
        };
        list("after", item.depends_on.iter().map(PlanItemId::as_str).collect());
        list("changes", item.allowed_paths.iter().map(String::as_str).collect());
        list("leaves alone", item.excluded_paths.iter().map(String::as_str).collect());
    }
}

fn dag(items: &[&PlanItem], graph: &Graph) {
    let critical = graph.critical_path(|at| items[at].effort.max(1));
    for (wave, number) in graph.waves().iter().zip(1..) {
        say(format_args!("Wave {number}"));
        for at in wave {
            let item = items[*at];
            let mark = if critical.contains(at) { "*" } else { " " };
            let on: Vec<&str> = item.depends_on.iter().map(PlanItemId::as_str).collect();
            let after =
                if on.is_empty() { String::new() } else { format!("  (after {})", on.join(", ")) };
            say(format_args!("{mark} {}  {}{after}", item.id, item.title));
        }
    }
    let path: Vec<&str> = critical.iter().map(|at| items[*at].id.as_str()).collect();
    say(format_args!("Longest chain (*): {}", path.join(" → ")));
}
