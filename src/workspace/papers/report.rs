//! The final report of a sprint (`spec/teams.md` 9.9): for people, with the words of the planner where
//! it found some, and for programs as JSON, from the record alone.

use std::collections::{BTreeMap, BTreeSet};

use chrono_tz::Tz;
use serde::Serialize;
use serde_json::{Value, json};

use super::lanes::lane_order;
use super::reports::Reports;
use super::values::{record, todos};
use super::{fill, is_korean, nothing, sprint_folder};
use crate::assets::AssetError;
use crate::assets::catalog::duration;
use crate::domain::role::Role;
use crate::domain::sprint::{PrepassStatus, Sprint, Todo, TodoStatus};
use crate::domain::work_span::WorkSpan;

/// Entries of a list that is taken over from the planner.
const MOST: usize = 30;

/// The text of the final report. Facts come from the record; the planner's draft adds words to them and
/// can change none.
pub fn final_report(sprint: &Sprint, zone: Tz, reports: &Reports) -> Result<String, AssetError> {
    let todos = todos(sprint)?;
    let status = |todo: &Value| {
        let word = todo["status"].as_str().unwrap_or_default();
        word.parse::<TodoStatus>().ok()
    };
    let delivered = |todo: &&Value| status(todo).is_some_and(TodoStatus::is_success);
    let (delivered, open): (Vec<&Value>, Vec<&Value>) = todos.iter().partition(delivered);
    // What a person has skipped or had split is not open.
    let open: Vec<&Value> = open.into_iter().filter(|todo| todo["is_dropped"] != true).collect();
    let mut by_time: Vec<&Value> = todos
        .iter()
        .filter(|todo| todo["ended_at"].as_str().is_some_and(|at| !at.is_empty()))
        .collect();
    by_time.sort_by_key(|todo| todo["ended_at"].as_str().unwrap_or_default());
    let agents = agents(sprint, reports);
    let mut draft = Draft::read(&sprint.closing.report_draft);
    draft.agents.retain(|one| has_worked(sprint, &agents, &one.role));
    fill(
        "report",
        json!({
            "s": record(sprint)?,
            "ko": is_korean(sprint.language),
            "nothing": nothing(sprint.language),
            "artifacts": artifacts(sprint, &draft),
            "agents": agents,
            "done": delivered.len(),
            "total": todos.len(),
            "draft": draft,
            "delivered": delivered,
            "open": open,
            "by_time": by_time,
            "zone": zone.name(),
            "lanes": lanes(sprint),
            "chain": chain(sprint),
            "makespan": span(sprint.closing.makespan_seconds.cast_signed(), sprint),
            "chain_took": span(sprint.closing.chain_seconds.cast_signed(), sprint),
        }),
    )
}

/// Each todo that has begun, in the order of the lanes in the chart: how long it took and how long somebody worked on it.
fn lanes(sprint: &Sprint) -> Vec<Value> {
    // Rounded up, as in the sum of the longest chain: what was done took some time.
    let said = |millis: i64| span((millis + 999).div_euclid(1_000), sprint);
    let lane = |todo: &Todo| {
        let took = todo
            .progress
            .started_at
            .zip(todo.progress.ended_at)
            .map(|(from, to)| to.millis() - from.millis());
        let worked = todo.progress.spans.iter().map(WorkSpan::millis).sum();
        json!({ "title": todo.title, "took": took.map(said), "worked": said(worked) })
    };
    lane_order(sprint).into_iter().map(lane).collect()
}

/// A span of so many seconds in the sprint's language.
#[expect(clippy::cast_precision_loss, reason = "spans of years are exact")]
fn span(seconds: i64, sprint: &Sprint) -> String {
    duration(seconds as f64, sprint.language)
}

/// The titles of the longest chain.
fn chain(sprint: &Sprint) -> Vec<&str> {
    let todos = sprint.closing.chain.iter().filter_map(|id| sprint.todo(id));
    todos.map(|todo| todo.title.as_str()).collect()
}

/// The planner's closing words (`proposals.sprint_report`), read leniently.
#[derive(Debug, Default, Serialize)]
struct Draft {
    headline: String,
    changes: Vec<String>,
    timeline: Vec<String>,
    agents: Vec<Contribution>,
    issues: Vec<String>,
    achievements: Vec<String>,
    artifacts: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Contribution {
    role: String,
    what: String,
}

impl Draft {
    fn read(value: &Value) -> Draft {
        let list = |name: &str| value.get(name).map(lines).unwrap_or_default();
        let agents = match value.get("agent_contributions") {
            Some(Value::Array(entries)) => entries.iter().take(MOST).map(contribution).collect(),
            Some(Value::Object(fields)) => {
                let rows = fields.iter().take(MOST);
                rows.map(|(role, what)| Contribution { role: role.clone(), what: words(what) })
                    .collect()
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
                Vec::new()
            }
        };
        Draft {
            headline: value.get("headline").map(words).unwrap_or_default(),
            changes: list("changes"),
            timeline: list("timeline"),
            agents,
            issues: list("issues"),
            achievements: list("achievements"),
            artifacts: list("highlight_artifacts"),
        }
    }
}

fn contribution(entry: &Value) -> Contribution {
    let field = |names: [&str; 3]| {
        names.iter().find_map(|name| entry.get(name)).map(words).unwrap_or_default()
    };
    let role = field(["role", "agent", "name"]);
    let what = field(["what", "summary", "contribution"]);
    match entry.as_str().and_then(|text| text.split_once(':')) {
        Some((role, what)) => {
            Contribution { role: role.trim().to_owned(), what: what.trim().to_owned() }
        }
        None if what.is_empty() => Contribution { role, what: words(entry) },
        None => Contribution { role, what },
    }
}

/// A list of lines, whatever it was written as.
fn lines(value: &Value) -> Vec<String> {
    let all: Vec<String> = match value {
        Value::Array(entries) => entries.iter().map(words).collect(),
        Value::String(text) => {
            text.lines().map(|line| line.trim_start_matches(['-', '*', ' ']).to_owned()).collect()
        }
        Value::Null => Vec::new(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![words(value)],
    };
    all.into_iter().filter(|line| !line.trim().is_empty()).take(MOST).collect()
}

/// The words in a value: texts as they are, fields behind one another.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(entries) => entries.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let said: Vec<String> =
                fields.values().map(words).filter(|text| !text.is_empty()).collect();
            said.join(": ")
        }
    }
}

/// Each role with how often it reported and what it said last.
fn agents(sprint: &Sprint, reports: &Reports) -> Vec<Value> {
    let mut roles: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    let requests = sprint.work.todos.iter().filter_map(|todo| todo.progress.request_id.as_ref());
    for report in requests.filter_map(|id| reports.get(id)).flatten() {
        let entry = roles.entry(&report.role).or_insert((0, ""));
        *entry = (entry.0 + 1, &report.summary);
    }
    let rows = roles.into_iter();
    rows.map(|(role, (count, last))| json!({ "role": role, "reports": count, "last": last }))
        .collect()
}

/// Whether a role that somebody praises has done something in this sprint. What is no role of the team, such as
/// a person, is not judged.
fn has_worked(sprint: &Sprint, agents: &[Value], named: &str) -> bool {
    let Some(role) = Role::parse(&named.trim().to_lowercase().replace([' ', '-'], "_")) else {
        return true;
    };
    let reported = agents.iter().any(|one| one["role"] == role.as_str());
    match role {
        // It wrote the words themselves, and the plan before.
        Role::Planner => true,
        Role::Research => {
            let prepass = sprint.planning.research.as_ref();
            reported || prepass.is_some_and(|it| it.status == PrepassStatus::Completed)
        }
        Role::Orchestrator
        | Role::Designer
        | Role::Architect
        | Role::Developer
        | Role::Qa
        | Role::Parser
        | Role::Sourcer
        | Role::VersionController
        | Role::ConflictResolver => reported,
    }
}

/// The planner's choice first, then the sprint's own and those of its todos, each once.
fn artifacts(sprint: &Sprint, draft: &Draft) -> Vec<String> {
    let own = sprint.work.reference_artifacts.iter();
    let of_todos = sprint.work.todos.iter().flat_map(|todo| &todo.progress.artifacts);
    let mut seen = BTreeSet::new();
    let all = draft.artifacts.iter().chain(own).chain(of_todos);
    all.filter(|path| seen.insert(path.as_str())).take(MOST).cloned().collect()
}

/// The facts of an ended sprint for programs, under the names of `spec/teams.md` 9.9.
pub fn machine_summary(sprint: &Sprint) -> Result<String, AssetError> {
    let tagged: Vec<&str> = sprint
        .work
        .commits
        .iter()
        .filter(|commit| commit.sprint_tagged)
        .map(|commit| commit.sha.as_str())
        .collect();
    let todos: Vec<Value> = sprint
        .work
        .todos
        .iter()
        .map(|todo| {
            json!({
                "todo_id": todo.progress.todo_id,
                "backlog_id": todo.backlog_id,
                "title": todo.title,
                "status": todo.progress.status,
                "priority_rank": todo.priority_rank,
                "request_id": todo.progress.request_id,
                "started_at": todo.progress.started_at,
                "ended_at": todo.progress.ended_at,
                "commit_sha": todo.progress.commit_sha,
                "proven_through": todo.progress.proven_through,
                "carry_over_backlog_id": todo.progress.carry_over_backlog_id,
            })
        })
        .collect();
    let summary = json!({
        "sprint_id": sprint.sprint_id,
        "sprint_name": sprint.sprint_name,
        "phase": sprint.phase,
        "requested_milestone_title": sprint.kickoff.milestone,
        "milestone_title": sprint.milestone_title,
        "sprint_folder": sprint_folder(sprint),
        "status": sprint.status,
        "trigger": sprint.trigger,
        "started_at": sprint.started_at,
        "ended_at": sprint.ended_at,
        "closeout_status": sprint.closing.status,
        "closeout_message": sprint.closing.message,
        "version_control_status": sprint.closing.version_control_status,
        "version_control_sha": sprint.closing.version_control_sha,
        "version_control_paths": sprint.closing.version_control_paths,
        "makespan_seconds": sprint.closing.makespan_seconds,
        "critical_path": sprint.closing.chain,
        "critical_path_seconds": sprint.closing.chain_seconds,
        "commit_count": sprint.work.commit_count,
        "commit_sha": sprint.work.commit_sha,
        "commit_shas": sprint.work.commit_shas,
        "sprint_tagged_commit_count": tagged.len(),
        "sprint_tagged_commit_shas": tagged,
        "uncommitted_paths": sprint.closing.uncommitted_paths,
        "todo_status_counts": sprint.todo_counts(),
        "todos": todos,
    });
    let text = serde_json::to_string_pretty(&summary);
    text.map(|text| text + "\n").map_err(|error| AssetError::Template {
        name: "report.json".to_owned(),
        message: error.to_string(),
    })
}
