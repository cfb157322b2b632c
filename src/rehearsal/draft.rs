//! An answer of the rehearsal agent, and what every role's answers have in common.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::agents::prompt::Task;
use crate::domain::lifecycle::{Lifecycle, StepName};
use crate::platform::files;

/// What came out.
#[derive(Debug)]
pub(super) enum Answer {
    /// A result by the contract.
    Result(Value),
    /// This takes a real agent.
    NeedsRealAgent(String),
}

/// A result in the making.
pub(super) struct Draft<'a> {
    pub(super) task: &'a Task,
    status: &'static str,
    pub(super) summary: String,
    error: String,
    pub(super) artifacts: Vec<String>,
    proposals: Map<String, Value>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(task: &'a Task, summary: String) -> Draft<'a> {
        Draft {
            task,
            status: "completed",
            summary,
            error: String::new(),
            artifacts: Vec::new(),
            proposals: Map::new(),
        }
    }

    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        self.proposals.insert(key.to_owned(), value);
        self
    }

    /// Lists a document that was written.
    pub(super) fn artifact(mut self, name: &str) -> Self {
        self.artifacts.push(name.to_owned());
        self
    }

    pub(super) fn status(mut self, status: &'static str, error: String) -> Self {
        self.status = status;
        self.error = error;
        self
    }

    /// The transition; every key of `spec/teams.md` 7.2 is always there.
    pub(super) fn moves(
        self,
        outcome: &str,
        to: Option<StepName>,
        category: Option<&str>,
        reason: &str,
    ) -> Self {
        let open: Vec<&str> = if category.is_some() { vec![reason] } else { Vec::new() };
        self.with(
            "workflow_transition",
            json!({
                "outcome": outcome,
                "target_phase": to.map(phase_of),
                "target_step": to,
                "reopen_category": category,
                "reason": reason,
                "unresolved_items": open,
                "finalize_phase": outcome == "complete",
            }),
        )
    }

    pub(super) fn done(self) -> Answer {
        Answer::Result(json!({
            "request_id": self.task.request_id,
            "role": self.task.role.as_str(),
            "status": self.status,
            "summary": self.summary,
            "insights": [],
            "proposals": self.proposals,
            "artifacts": self.artifacts,
            "error": self.error,
        }))
    }
}

fn phase_of(step: StepName) -> Option<&'static str> {
    Lifecycle::built_in().step(step).map(|step| step.kind.phase().as_str())
}

pub(super) fn say(task: &Task, en: impl Into<String>, ko: impl Into<String>) -> String {
    if task.language == "ko" { ko.into() } else { en.into() }
}

/// Everything that the person said, oldest first.
pub(super) fn words(task: &Task) -> String {
    let said = std::iter::once(&task.request).chain(&task.followups);
    said.map(|said| said.text.as_str()).collect::<Vec<_>>().join("\n")
}

pub(super) fn nothing_to_add(task: &Task) -> Draft<'_> {
    Draft::new(task, say(task, "Rehearsed: nothing to add.", "리허설: 덧붙일 것이 없습니다."))
}

pub(super) fn needs_real_agent(task: &Task) -> Answer {
    Answer::NeedsRealAgent(say(
        task,
        "This needs a real agent: the rehearsal agent only does tasks of TASKS.md and literal edits (in FILE replace \"a\" with \"b\").",
        "실제 에이전트가 필요합니다: 리허설 에이전트는 TASKS.md의 작업과 글자 그대로의 수정(FILE에서 \"a\"를 \"b\"로 바꿔)만 할 수 있습니다.",
    ))
}

/// Puts a text into a document. What others wrote there stays, and a second time changes nothing.
pub(super) fn write_plan(path: &Path, text: &str) -> files::Result<()> {
    if let Some(folder) = path.parent() {
        files::create_dir_all(folder)?;
    }
    match files::read_text_if_present(path)? {
        Some(before) if before.contains(text) => Ok(()),
        Some(before) if !before.trim().is_empty() => {
            files::write_atomic(path, format!("{}\n\n{text}", before.trim_end()))
        }
        Some(_) | None => files::write_atomic(path, text),
    }
}
