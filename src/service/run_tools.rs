//! The tools that an agent has at the team while it works, served over the socket of its run. Whose they
//! are, on which request and in which step follows from that socket; nothing that an agent says can
//! change it. They show what is the role's own, and change three things: the result of this run, the
//! role's journal, and, for the planner, the backlog.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::agent_command::{self, CommandRefusal};
use super::assignment;
use super::contract::CONTRACT;
use super::control::{CallSubject, Reply};
use super::team::Team;
use super::tool::Tool;
use crate::agents::prompt;
use crate::assets;
use crate::domain::event::Event;
use crate::domain::ids::CallId;
use crate::domain::incoming::Command;
use crate::domain::item::ItemSource;
use crate::domain::refusal::Refusal;
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::engine::Answer;
use crate::platform::files::{self, FileError};
use crate::platform::redact::{self, redact};
use crate::platform::tasks;

/// Bytes of the end of a history or a journal that are shown.
const PAGE: usize = 8 << 10;
/// Documents that are listed.
const DOCUMENTS: usize = 100;
/// Characters of a note.
const NOTE: usize = 500;
/// Notes of a run.
const NOTES: u32 = 20;
/// Characters of what was asked that the status shows.
const ASKED: usize = 2_000;

impl Tool {
    const fn is_offered_to(self, role: Role) -> bool {
        match (self, role) {
            (Tool::Backlog, Role::Planner) => true,
            (Tool::Backlog, _) => false,
            (Tool::SubmitResult | Tool::Memory | Tool::Status, _) => true,
        }
    }

    /// As MCP lists it; `result` is the schema of the step's result.
    fn listed(self, result: &Value) -> Value {
        let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let (title, schema, reads) = match self {
            Tool::SubmitResult => ("Hand in the result", result.clone(), false),
            Tool::Backlog => ("Change the backlog", items(), false),
            Tool::Memory => ("What the role remembers", remembered(), false),
            Tool::Status => ("Where the request stands", nothing, true),
        };
        json!({
            "name": self.as_str(),
            "title": title,
            "description": prompt::about_tool(self.as_str()),
            "inputSchema": schema,
            "annotations": {"readOnlyHint": reads, "destructiveHint": false, "idempotentHint": true,
                "openWorldHint": false},
        })
    }
}

fn items() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    json!({"type": "object", "required": ["items"], "additionalProperties": false, "properties": {
        "items": {"type": "array", "items": {"type": "object", "properties": {
            "backlog_id": text, "title": text, "scope": text, "summary": text,
            "kind": {"type": "string", "enum": ["bug", "feature", "enhancement", "chore"]},
            "status": text, "priority_rank": {"type": "integer"}, "milestone_title": text,
            "acceptance_criteria": texts, "depends_on": texts, "allowed_paths": texts,
            "effort": {"type": "integer"}, "blocked_reason": text, "dropped_reason": text,
        }}},
    }})
}

fn remembered() -> Value {
    json!({"type": "object", "required": ["action"], "additionalProperties": false, "properties": {
        "action": {"type": "string", "enum": ["read", "note"]},
        "what": {"type": "string", "enum": ["history", "journal", "documents"]},
        "text": {"type": "string"},
    }})
}

/// The tools of a run as MCP lists them, in JSON.
pub(super) fn offer(team: &Team, run: &Run) -> Reply {
    let result = schema(team, run);
    let offered = Tool::ALL.into_iter().filter(|tool| tool.is_offered_to(run.role));
    let tools: Vec<Value> = offered.map(|tool| tool.listed(&result)).collect();
    Reply::yes(Value::from(tools).to_string())
}

/// The schema of what the run has to hand in.
fn schema(team: &Team, run: &Run) -> Value {
    let duty = team.hub.read(|state| state.requests.get(&run.request_id).and_then(|it| it.duty()));
    (CONTRACT.schema)(run.role, run.step, duty)
}

/// What came of the use of a tool.
pub(super) struct ToolOutcome {
    pub(super) reply: Reply,
    /// A result that was accepted, for the worker to keep, in JSON.
    pub(super) result: Option<String>,
}

/// A run, as its tools see it.
pub(super) struct AtWork<'a> {
    pub(super) team: &'a Team,
    pub(super) run: &'a Run,
    pub(super) call: &'a CallId,
    /// Notes that it made.
    pub(super) notes: &'a AtomicU32,
}

impl AtWork<'_> {
    /// Serves one call. What is said no to is said in words that the model can act on.
    pub(super) async fn serve(
        &self,
        tool: Tool,
        arguments: Value,
    ) -> Result<ToolOutcome, CommandRefusal> {
        let (role, run) = (self.run.role, &self.run.run_id);
        tracing::info!(%role, %run, tool = tool.as_str(), "an agent uses a tool");
        let reply = match tool {
            Tool::SubmitResult => return self.submit(arguments),
            Tool::Backlog => {
                let payload = arguments.get("items").cloned().unwrap_or(arguments);
                let source = ItemSource::Planner;
                let merge = CallSubject::Command(Command::BacklogMerge { payload, source });
                agent_command::command(self.team, self.run, self.call, merge).await?
            }
            Tool::Memory => self.memory(&arguments).await,
            Tool::Status => self.status(),
        };
        Ok(ToolOutcome { reply, result: None })
    }

    /// Judges a result, which the worker keeps.
    fn submit(&self, result: Value) -> Result<ToolOutcome, CommandRefusal> {
        self.is_its_own(&result)?;
        Ok(self.judge(result))
    }

    /// A result is of this run, whatever it says. One that says something else was meant for somebody else.
    fn is_its_own(&self, result: &Value) -> Result<(), CommandRefusal> {
        let run = self.run;
        for (key, own) in [("request_id", run.request_id.as_str()), ("run_id", run.run_id.as_str())]
        {
            let named = result.get(key).and_then(Value::as_str).unwrap_or_default().trim();
            if named.is_empty() || named == own {
                continue;
            }
            let others = self.team.hub.read(|state| {
                state.requests.keys().any(|id| id.as_str() == named)
                    || state.runs.keys().any(|id| id.as_str() == named)
            });
            let why =
                format!("not accepted: this is the run of {}; leave `{key}` out", run.request_id);
            let what = format!("a result for {named}");
            return Err(CommandRefusal::of_a_kind(others.then_some(Refusal::OtherRun), &what, why));
        }
        Ok(())
    }

    fn judge(&self, result: Value) -> ToolOutcome {
        let criteria = self.team.hub.read(|state| {
            let request = state.requests.get(&self.run.request_id);
            request.map(|request| assignment::criteria(state, request)).unwrap_or_default()
        });
        if let Err(issues) = (CONTRACT.check)(&result, self.run.role, self.run.step, &criteria) {
            let reply = Reply::no(format!(
                "not accepted: {}. Put it right and call submit_result again.",
                issues.join("; ")
            ));
            return ToolOutcome { reply, result: None };
        }
        let reply = Reply::yes("accepted: end your turn now with one short sentence");
        ToolOutcome { reply, result: Some(redact::value(result).to_string()) }
    }

    async fn memory(&self, arguments: &Value) -> Reply {
        let word = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        match (word("action"), word("what")) {
            ("read", "history") => self.page("history.md").await,
            ("read", "journal") => self.page("journal.md").await,
            ("read", "documents") => self.documents().await,
            ("read", _) => Reply::no("`what` is one of history, journal, documents"),
            ("note", _) => self.note(word("text")).await,
            _ => Reply::no("`action` is read or note"),
        }
    }

    /// The end of a file of the role's own.
    async fn page(&self, name: &str) -> Reply {
        let path = self.team.root().join(assets::role_folder(self.run.role)).join(name);
        let read = tasks::blocking(move || files::read_end(&path, PAGE)).await;
        match read.map_err(|error| error.to_string()).and_then(|it| it.map_err(|e| e.to_string())) {
            Ok(None) => Reply::yes("nothing yet"),
            Ok(Some(text)) if text.trim().is_empty() => Reply::yes("nothing yet"),
            Ok(Some(text)) => Reply::yes(redact(&text)),
            Err(error) => Reply::no(redact(&error)),
        }
    }

    /// The documents that the whole team shares.
    async fn documents(&self) -> Reply {
        let folder = self.team.root().join("shared_workspace");
        let listed = tasks::blocking(move || -> Result<Vec<String>, FileError> {
            let paths = files::list(&folder)?;
            let mut lines = Vec::new();
            for path in paths.iter().take(DOCUMENTS) {
                let Some(name) = path.file_name() else { continue };
                let size = match files::symlink_metadata(path)? {
                    meta if meta.is_file() => format!("{} bytes", meta.len()),
                    meta if meta.is_dir() => "a folder".to_owned(),
                    _ => continue,
                };
                lines.push(format!("shared_workspace/{}: {size}", name.to_string_lossy()));
            }
            Ok(lines)
        });
        match listed.await.map_err(|e| e.to_string()).and_then(|it| it.map_err(|e| e.to_string())) {
            Ok(lines) => Reply::yes(lines.join("\n")),
            Err(error) => Reply::no(redact(&error)),
        }
    }

    /// Adds a line to the role's journal.
    async fn note(&self, text: &str) -> Reply {
        let count = text.chars().count();
        if text.trim().is_empty() {
            return Reply::no("`text` is blank");
        }
        if count > NOTE {
            return Reply::no(format!(
                "a note has at most {NOTE} characters; this one has {count}"
            ));
        }
        if self.notes.fetch_add(1, Ordering::Relaxed) >= NOTES {
            return Reply::no(format!("a run makes at most {NOTES} notes"));
        }
        let text = redact(text).into_owned();
        let (run_id, call) = (self.run.run_id.clone(), self.call.clone());
        let noted = Event::Noted { run_id, call, text };
        match self.team.hub.submit(noted).await {
            Ok(Answer::Accepted) => Reply::yes("noted"),
            Ok(Answer::Ignored(why)) => Reply::no(why),
            Ok(Answer::Say(_) | Answer::Refused(_)) => Reply::no("it was not noted"),
            Err(error) => Reply::no(error.to_string()),
        }
    }

    /// The run's own request, and nothing of anybody else's.
    fn status(&self) -> Reply {
        let shown = self.team.hub.read(|state| {
            let request = state.requests.get(&self.run.request_id)?;
            let sprint = request.sprint_id.as_ref().and_then(|id| state.sprints.get(id));
            let todos = sprint.into_iter().flat_map(|sprint| &sprint.work.todos);
            let todo = todos
                .into_iter()
                .find(|todo| Some(&todo.progress.todo_id) == request.todo_id.as_ref());
            Some(status(request, self.run, todo.map(|todo| todo.title.as_str())))
        });
        match shown {
            Some(shown) => {
                let text = serde_json::to_string_pretty(&shown).unwrap_or_default();
                Reply::yes(redact(&text))
            }
            None => Reply::no("the request is gone"),
        }
    }
}

fn status(request: &Request, run: &Run, todo: Option<&str>) -> Value {
    let asked: String = request.body.chars().take(ASKED).collect();
    let checks = request.work.evidence.as_ref().map(|evidence| {
        let lines: Vec<Value> = evidence
            .checks
            .iter()
            .map(|check| json!({"check": check.name, "verdict": check.verdict}))
            .collect();
        json!({"commit": evidence.commit, "checks": lines})
    });
    json!({
        "request_id": request.request_id,
        "asked": asked,
        "status": request.status.as_str(),
        "your_role": run.role,
        "your_step": run.step,
        "attempt": run.attempt,
        "evidence": checks,
        "sprint": request.sprint_id,
        "todo": todo,
        "waits_for": request.blocked.as_ref().map(|blocked| &blocked.required_inputs),
        "follow_ups": request.params.followups.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_says_what_it_is_for_and_has_its_name() {
        for tool in Tool::ALL {
            assert_eq!(Tool::named(tool.as_str()), Some(tool));
            assert_eq!(serde_json::to_value(tool).unwrap(), tool.as_str());
            let listed = tool.listed(&json!({"type": "object"}));
            assert!(listed["description"].as_str().unwrap().len() > 60, "{listed}");
            assert_eq!(listed["inputSchema"]["type"], "object");
        }
        assert_eq!(Tool::named("approve"), None);
    }

    #[test]
    fn only_the_planner_is_offered_the_backlog() {
        for role in Role::ALL {
            assert_eq!(Tool::Backlog.is_offered_to(role), role == Role::Planner);
            assert!(Tool::SubmitResult.is_offered_to(role));
        }
    }
}
