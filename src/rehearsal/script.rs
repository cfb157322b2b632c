//! The script that makes the rehearsal agent misbehave, for tests and for trying things out.
//!
//! A YAML list; the first entry that fits is played:
//! `- {role: developer, step: developer_build, attempt: 1, times: 1, do: crash}`, or for what a sprint wants
//! `- {duty: planning, planning_step: backlog_definition, reopens: 0, do: bad_plan}`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agents::prompt::Task;
use crate::domain::lifecycle::StepName;
use crate::domain::role::Role;
use crate::domain::sprint::{Duty, PlanningStep};
use crate::platform::files;

/// What to do instead of the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Act {
    /// Do the work, then die by a signal without a result.
    Crash,
    /// Do nothing, for ever.
    Hang,
    /// Print what is no JSON, and end.
    Rubbish,
    /// Do the work, then answer in prose.
    Prose,
    /// Do the work, then answer with an object of another shape.
    WrongContract,
    /// Send the work back.
    Revise,
    /// Say that it did not work.
    Fail,
    /// Say that a person has to decide.
    Block,
    /// As QA: leave every criterion to a person.
    Abstain,
    /// Write where it may not, then go on.
    WriteOutside,
    /// Print without end.
    Flood,
    /// Wait `ms`, then go on.
    Sleep,
    /// Wait until somebody says something to it that contains `text`, then go on.
    Listen,
    /// Do the work, and report in the words of `text`, which go on for `times_over` times.
    Say,
    /// Say that it is done, with nothing in it.
    BadPlan,
    /// Say that it is done, and touch no file: a developer that builds nothing.
    Idle,
    /// Run the `commands` one after the other in its own sandbox, then do the work and report what came of
    /// them: what could an agent do here?
    Run,
    /// Ask the runtime for `control`, as only the orchestrator may.
    Control,
    /// As the planner: plan, and ask the `questions`.
    Ask,
    /// Do the work, and propose the `proposals` instead of its own of the same names.
    Propose,
}

/// What to play now.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptedAction {
    pub(super) act: Act,
    /// For `sleep`.
    pub(super) ms: u64,
    /// For `control`: the proposal.
    pub(super) control: Value,
    /// For `say` and `listen`.
    pub(super) text: String,
    /// For `run`.
    pub(super) commands: Vec<Vec<String>>,
    /// For `run`: files that it names beside its own.
    pub(super) artifacts: Vec<String>,
    /// For `ask`.
    pub(super) questions: Value,
    /// For `propose`.
    pub(super) proposals: Map<String, Value>,
}

/// One line of the script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    role: Option<Role>,
    step: Option<StepName>,
    /// Only for this duty of a sprint or of the backlog.
    duty: Option<Duty>,
    /// Only in this step of planning.
    planning_step: Option<PlanningStep>,
    /// Only where that step was given back this often before.
    reopens: Option<u32>,
    /// Only where what the request asks for contains this.
    contains: Option<String>,
    /// Only in this attempt of the step.
    attempt: Option<u32>,
    /// At most this often in one session.
    times: Option<u32>,
    #[serde(rename = "do")]
    act: Act,
    /// For `sleep`.
    #[serde(default)]
    ms: u64,
    /// For `say`: the words. For `listen`: what has to be among the words.
    #[serde(default)]
    text: String,
    /// For `say`: how often the words are said, each time as a numbered line.
    #[serde(default)]
    times_over: usize,
    /// For `run`: each a program with its arguments.
    #[serde(default)]
    commands: Vec<Vec<String>>,
    /// For `run`: files that it names beside its own.
    #[serde(default)]
    artifacts: Vec<String>,
    /// For `control`: a `control_action` (`spec/teams.md` 8.1).
    #[serde(default)]
    control: Value,
    /// For `ask`: each with its `question`, `options` and `assumption`.
    #[serde(default)]
    questions: Value,
    /// For `propose`: parts of a result (`spec/teams.md` 8.1) by their names.
    #[serde(default)]
    proposals: Map<String, Value>,
}

/// What to play now. How often each entry was played is kept in the private
/// home, which lives as long as the session.
pub(super) fn next(
    script: &str,
    task: &Task,
    home: &Path,
) -> Result<Option<ScriptedAction>, String> {
    let entries: Vec<Entry> =
        serde_yaml::from_str(script).map_err(|error| format!("cannot read the script: {error}"))?;
    let path: PathBuf = home.join("rehearsal-script.json");
    let mut played: BTreeMap<usize, u32> = files::read_text_if_present(&path)
        .ok()
        .flatten()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let fits = |index: usize, entry: &Entry| {
        entry.role.is_none_or(|role| role == task.role)
            && entry.step.is_none_or(|step| Some(step) == task.step)
            && entry.duty.is_none_or(|duty| Some(duty) == task.work.duty)
            && entry.planning_step.is_none_or(|step| Some(step) == task.work.planning_step)
            && entry.reopens.is_none_or(|reopens| reopens == task.work.reopens)
            && entry.contains.as_ref().is_none_or(|text| task.request.text.contains(text.as_str()))
            && entry.attempt.is_none_or(|attempt| attempt == task.attempt)
            && entry.times.is_none_or(|times| played.get(&index).copied().unwrap_or(0) < times)
    };
    let found = entries.iter().enumerate().find(|(index, entry)| fits(*index, entry));
    let Some((index, entry)) = found else {
        return Ok(None);
    };
    *played.entry(index).or_default() += 1;
    let text = serde_json::to_vec(&played).map_err(|error| error.to_string())?;
    files::write_durable(&path, text).map_err(|error| error.to_string())?;
    let text = match entry.times_over {
        0 => entry.text.clone(),
        times => {
            let lines = (1..=times).map(|at| format!("{at}. {}", entry.text));
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    let (control, commands) = (entry.control.clone(), entry.commands.clone());
    let (artifacts, questions) = (entry.artifacts.clone(), entry.questions.clone());
    let (act, ms, proposals) = (entry.act, entry.ms, entry.proposals.clone());
    Ok(Some(ScriptedAction { act, ms, control, text, commands, artifacts, questions, proposals }))
}
