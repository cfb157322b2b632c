//! `--script plan`: a plan file delivered by agents that take given times, through the whole real service, and its
//! figures.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::home::{Home, broken};
use super::person::Person;
use super::sprint;
use super::team::Team;
use crate::cli::output::say_json;
use crate::cli::plan as plan_file;
use crate::cli::{Failure, say};
use crate::domain::ids::TodoId;
use crate::domain::record::{inside, request_events_path};
use crate::domain::request::{EventKind, RequestEvent};
use crate::domain::run::USAGE;
use crate::domain::sprint::{Sprint, TodoStatus};
use crate::domain::time::Timestamp;
use crate::engine::plan::graph::Graph;
use crate::local_guild::GuildInfo;
use crate::platform::files;
use crate::rehearsal::StepTimes;
use crate::service::{self, CheckedPlan, ControlError};

/// How long the team may take until it answers, and how often it is asked.
const STARTING: Duration = Duration::from_secs(60);
const ASKED: Duration = Duration::from_millis(100);

/// What is played.
pub(super) struct Simulation {
    plan: CheckedPlan,
    pub(super) times: StepTimes,
}

impl Simulation {
    /// Reads the plan and the times before anything is made.
    pub(super) fn read(plan: &Path, times: &Path) -> Result<Simulation, Failure> {
        let plan = plan_file::read(plan)?;
        plan_file::must_hold(&plan)?;
        let wrong =
            |error: String| Failure::new(format!("cannot use {}: {error}", times.display()));
        let read = StepTimes::read(&files::read_text(times)?).map_err(wrong)?;
        let unknown = read.items.keys().find(|id| plan.file.plan.item(id).is_none());
        if let Some(id) = unknown {
            return Err(wrong(format!("`items.{id}` is no item of {}", plan.name)));
        }
        Ok(Simulation { plan, times: read })
    }
}

/// Plays it. `Ok` only with every item delivered.
pub(super) async fn play(
    home: &Home,
    guild: &GuildInfo,
    team: &mut Team,
    simulation: &Simulation,
    json: bool,
) -> Result<(), Failure> {
    let plan = &simulation.plan;
    take_in(home, team, plan).await?;
    let person = Person::new(guild)?.quiet(json);
    let title = plan.file.plan.title.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = format!("start sprint\nmilestone: {title}");
    let sprint = sprint::deliver(home, team, &person, &words).await?;
    let (todos, items) = (sprint.work.todos.len(), plan.file.plan.items.iter());
    let items = items.filter(|item| !item.done).count();
    if todos != items {
        return Err(Failure::new(format!(
            "the sprint has {todos} todos, and the plan {items} items"
        ))
        .hint(Some(
            "another plan was played in this folder: name a new one with --dir".to_owned(),
        )));
    }
    let figures = Figures::of(home, &sprint)?;
    if json {
        say_json(&figures.json(), true);
    } else {
        figures.tell();
    }
    let open = sprint.work.todos.iter().find(|todo| todo.progress.status != TodoStatus::Committed);
    match open {
        Some(open) => Err(Failure::new(format!("{} is {}", open.title, open.progress.status))),
        None => Ok(()),
    }
}

/// Hands the plan to the team, as soon as it answers.
async fn take_in(home: &Home, team: &mut Team, plan: &CheckedPlan) -> Result<(), Failure> {
    let digest = plan.file.plan.digest();
    let ask = async |approve| {
        let order = plan.command(approve).map_err(broken)?;
        loop {
            match service::call(&home.workspace(), order.clone().into()).await {
                Err(ControlError::NotRunning(_)) => tokio::time::sleep(ASKED).await,
                answered => return answered.map(|_| ()).map_err(broken),
            }
        }
    };
    let asked = async {
        ask(None).await?;
        // Where the folder knows another version, the person of the demo approves the one that they bring.
        ask(Some(&digest)).await
    };
    tokio::select! {
        answered = tokio::time::timeout(STARTING, asked) => {
            answered.map_err(|_| Failure::new("the team did not answer in time"))?
        }
        ended = team.keep() => ended,
    }
}

/// A run in the ledger.
#[derive(Debug, Deserialize)]
struct LedgerEntry {
    at: Timestamp,
    ms: i64,
    #[serde(default)]
    todo_id: Option<TodoId>,
}

/// What a played plan comes to.
#[derive(Debug, PartialEq)]
struct Figures {
    makespan_s: f64,
    critical_path_s: f64,
    critical_path: Vec<String>,
    peak_runs: usize,
    check_runs: usize,
    landed: usize,
    ejected: usize,
}

impl Figures {
    fn of(home: &Home, sprint: &Sprint) -> Result<Figures, Failure> {
        let todos = &sprint.work.todos;
        let runs = runs(home)?;
        let mut worked: BTreeMap<&TodoId, i64> = BTreeMap::new();
        for run in &runs {
            if let Some(todo) = &run.todo_id {
                *worked.entry(todo).or_default() += run.ms;
            }
        }
        let edges: Vec<_> =
            todos.iter().map(|it| (&it.progress.todo_id, it.depends_on.iter().collect())).collect();
        let weight = |at: usize| worked.get(&todos[at].progress.todo_id).copied().unwrap_or(0);
        let graph =
            Graph::of(&edges).ok_or_else(|| Failure::new("the todos wait for each other"))?;
        let path = graph.critical_path(weight);
        let begun = todos.iter().filter_map(|todo| todo.progress.started_at).min();
        let ended = todos.iter().filter_map(|todo| todo.progress.ended_at).max();
        let span = begun.zip(ended).map_or(0, |(from, to)| to.millis() - from.millis());
        let requests = todos.iter().filter_map(|todo| todo.progress.request_id.as_ref());
        let (mut check_runs, mut ejected) = (0, 0);
        for id in requests {
            let path = home.workspace().join(inside(&request_events_path(id)));
            let text = files::read_text_if_present(&path)?.unwrap_or_default();
            let events = text.lines().filter_map(|line| serde_json::from_str(line).ok());
            for event in events {
                let RequestEvent { kind, payload, .. } = event;
                ejected += usize::from(kind == EventKind::LeftQueue);
                // What was known of the same tree took no time.
                let mut checks = payload["checks"].as_array().into_iter().flatten();
                let ran = checks.any(|check| check["duration_ms"].as_u64() > Some(0));
                if kind == EventKind::Checks && ran {
                    check_runs += 1 + payload["repetitions"].as_u64().unwrap_or(0);
                }
            }
        }
        Ok(Figures {
            makespan_s: seconds(span),
            critical_path_s: seconds(path.iter().map(|at| weight(*at)).sum()),
            critical_path: path.iter().map(|at| todos[*at].title.clone()).collect(),
            peak_runs: peak(&runs),
            check_runs: usize::try_from(check_runs).unwrap_or(usize::MAX),
            landed: todos
                .iter()
                .filter(|todo| todo.progress.status == TodoStatus::Committed)
                .count(),
            ejected,
        })
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "makespan_s": self.makespan_s,
            "critical_path_s": self.critical_path_s,
            "critical_path": self.critical_path,
            "peak_runs": self.peak_runs,
            "check_runs": self.check_runs,
            "landed": self.landed,
            "ejected": self.ejected,
        })
    }

    fn tell(&self) {
        say(format_args!("From the first todo to the last commit:  {:.1} s", self.makespan_s));
        let ratio = self.makespan_s / self.critical_path_s.max(0.001);
        let path = self.critical_path.join(" → ");
        say(format_args!(
            "The longest chain of the roles' own time: {:.1} s ({path})",
            self.critical_path_s
        ));
        say(format_args!("The first is {ratio:.2} times the second."));
        say(format_args!(
            "{} landed, {} left the queue to the branch; {} runs at once at most; the checks ran {} times at changes.",
            self.landed, self.ejected, self.peak_runs, self.check_runs
        ));
    }
}

#[expect(clippy::cast_precision_loss, reason = "spans of hours are exact")]
fn seconds(millis: i64) -> f64 {
    millis as f64 / 1_000.0
}

/// The runs for todos.
fn runs(home: &Home) -> Result<Vec<LedgerEntry>, Failure> {
    let mut runs = Vec::new();
    for path in files::list(&home.workspace().join(USAGE))? {
        let text = files::read_text(&path)?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<LedgerEntry>(line).ok());
        runs.extend(lines.filter(|run| run.todo_id.is_some()));
    }
    Ok(runs)
}

/// The most runs that went on at the same time.
fn peak(runs: &[LedgerEntry]) -> usize {
    let begins = |run: &LedgerEntry| run.at.millis() - run.ms;
    let at =
        |time: i64| runs.iter().filter(|run| begins(run) <= time && time < run.at.millis()).count();
    runs.iter().map(|run| at(begins(run))).max().unwrap_or(0)
}
