//! The documents that people and agents read in a workspace (`spec/teams.md` 3.4), from records.
//! Pure: texts out of values; whoever calls decides when they are written.
//!
//! What roles and people wrote is untrusted: it is put on one line, so that it cannot forge an entry.

use std::sync::Arc;

use serde::Serialize;

use crate::assets::{self, AssetError};
use crate::domain::change::Change;
use crate::domain::ids::RequestId;
use crate::domain::request::{EventKind, Request, RequestEvent};
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::state::State;

/// Characters of one line of an entry.
const LINE_CHARS: usize = 600;

/// The entries that a decision adds to the append-only documents: for each role result, the role's
/// history and journal and the shared documents that the role writes to; for a role's note, its journal. The state is only asked for
/// requests that the decision did not change. All requests' roles read them: of what somebody asks in a direct message there
/// is only that it was.
pub fn documents_for(changes: &[Change], state: &State) -> Result<Vec<Change>, AssetError> {
    let mut out = Vec::new();
    for change in changes {
        let Change::Event(id, event) = change else {
            continue;
        };
        let request =
            changed_request(changes, id).or_else(|| state.requests.get(id).map(Arc::as_ref));
        let is_private = request.is_some_and(|it| it.conversation.reply_route.is_dm);
        if event.kind == EventKind::Decided {
            let insights = request.map(decisions).unwrap_or_default();
            let status = "decided before it is built".to_owned();
            let entry =
                Entry { insights, status, ..Entry::new(Role::Planner, id, event, request, None) };
            let entry = if is_private { entry.without_words() } else { entry };
            out.push(entry.append_shared("decision_log.md")?);
            continue;
        }
        if !matches!(event.kind, EventKind::RoleReport | EventKind::RoleNote) {
            continue;
        }
        let Some(role) = Role::parse(&event.actor) else {
            continue;
        };
        if event.kind == EventKind::RoleNote {
            if is_private {
                continue;
            }
            let insights = vec![one_line(&event.summary)];
            let entry = Entry { insights, ..Entry::new(role, id, event, None, None) };
            let folder = assets::role_folder(role);
            out.push(entry.append(format!("{}/journal.md", folder.display()), "journal")?);
            continue;
        }
        let result = request
            .and_then(|request| request.work.result.as_deref())
            .filter(|result| result.role == role);
        let entry = Entry::new(role, id, event, request, result);
        let entry = if is_private { entry.without_words() } else { entry };
        entry.append_all(result, &mut out)?;
    }
    Ok(out)
}

fn changed_request<'a>(changes: &'a [Change], id: &RequestId) -> Option<&'a Request> {
    let mut saved = changes.iter().rev().filter_map(Change::saved_request);
    saved.find(|request| request.request_id == *id).map(|request| &**request)
}

/// What was decided about what a request leaves open, a line each with its number.
fn decisions(request: &Request) -> Vec<String> {
    let lines = request.work.decisions.iter().zip(1..);
    let lines = lines.filter_map(|(decision, number)| Some((number, decision.line()?)));
    lines.map(|(number, line)| one_line(&format!("D-{number}: {line}"))).collect()
}

/// What the entry templates may show.
#[derive(Serialize)]
struct Entry {
    role: Role,
    at: String,
    kind: EventKind,
    request_id: String,
    scope: String,
    status: String,
    summary: String,
    insights: Vec<String>,
    proposals: Vec<String>,
    artifacts: Vec<String>,
}

impl Entry {
    fn new(
        role: Role,
        id: &RequestId,
        event: &RequestEvent,
        request: Option<&Request>,
        result: Option<&RoleResult>,
    ) -> Entry {
        let lines = |texts: &[String]| -> Vec<String> {
            let texts = texts.iter().map(|text| one_line(text));
            texts.filter(|text| !text.is_empty()).collect()
        };
        let summary = result
            .map(|result| one_line(&result.summary))
            .filter(|summary| !summary.is_empty())
            .unwrap_or_else(|| one_line(&event.summary));
        Entry {
            role,
            at: event.timestamp.to_string(),
            kind: event.kind,
            request_id: id.to_string(),
            scope: request.map_or_else(String::new, |request| one_line(&request.scope)),
            status: result.map_or("no result", |result| result.status.as_str()).to_owned(),
            summary,
            insights: result.map_or_else(Vec::new, |result| lines(&result.insights)),
            proposals: result.map_or_else(Vec::new, proposal_names),
            artifacts: result.map_or_else(Vec::new, |result| lines(&result.artifacts)),
        }
    }

    fn without_words(self) -> Entry {
        let scope = "a direct message".to_owned();
        let summary = "what was said stays there".to_owned();
        Entry { scope, summary, insights: Vec::new(), artifacts: Vec::new(), ..self }
    }

    fn append_all(
        &self,
        result: Option<&RoleResult>,
        out: &mut Vec<Change>,
    ) -> Result<(), AssetError> {
        let folder = assets::role_folder(self.role);
        let folder = folder.display();
        out.push(self.append(format!("{folder}/history.md"), "history")?);
        if !self.insights.is_empty() || !self.proposals.is_empty() {
            out.push(self.append(format!("{folder}/journal.md"), "journal")?);
        }
        if result.is_none() {
            return Ok(());
        }
        match self.role {
            Role::Planner => out.push(self.append_shared("planning.md")?),
            Role::Architect => out.push(self.append_shared("decision_log.md")?),
            Role::Orchestrator
            | Role::Research
            | Role::Designer
            | Role::Developer
            | Role::Qa
            | Role::Parser
            | Role::Sourcer
            | Role::VersionController
            | Role::ConflictResolver => {}
        }
        out.push(self.append_shared("shared_history.md")?);
        Ok(())
    }

    fn append_shared(&self, name: &str) -> Result<Change, AssetError> {
        self.append(format!("shared_workspace/{name}"), "shared")
    }

    fn append(&self, file: String, template: &str) -> Result<Change, AssetError> {
        let mut text = document(template, self)?;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(Change::Append { file, text })
    }
}

/// The names of what a result proposes.
fn proposal_names(result: &RoleResult) -> Vec<String> {
    result.proposals.given().into_iter().map(|(name, _)| one_line(&name)).collect()
}

/// `<role>/todo.md`: what is open for a role, from all open requests.
pub fn role_todo(role: Role, state: &State) -> Result<String, AssetError> {
    #[derive(Serialize)]
    struct Item {
        request_id: String,
        status: &'static str,
        step: String,
        scope: String,
        waits_for: String,
    }
    let items: Vec<Item> = state
        .requests
        .values()
        .filter(|request| !request.status.is_terminal() && request.route.current_role == Some(role))
        .map(|request| Item {
            request_id: request.request_id.to_string(),
            status: request.status.as_str(),
            step: request
                .params
                .workflow
                .as_ref()
                .map_or_else(String::new, |workflow| workflow.step.as_str().to_owned()),
            scope: one_line(&request.scope),
            waits_for: request
                .blocked
                .as_ref()
                .map_or_else(String::new, |blocked| one_line(&blocked.required_inputs.join("; "))),
        })
        .collect();
    document("todo", serde_json::json!({ "role": role, "items": items }))
}

/// How the name of a request's snapshot ends, behind the request's id.
pub const SNAPSHOT: &str = ".request.md";

/// The folder of the snapshots that a role is given, relative to the workspace.
#[must_use]
pub fn sources(role: Role) -> String {
    format!("{}/sources", assets::role_folder(role).display())
}

/// The path of the snapshot that a role is given of a request, relative to the workspace.
#[must_use]
pub fn request_snapshot_path(role: Role, id: &RequestId) -> String {
    format!("{}/{id}{SNAPSHOT}", sources(role))
}

/// The text of that snapshot.
pub fn request_snapshot(request: &Request) -> Result<String, AssetError> {
    let followups: Vec<serde_json::Value> = request
        .params
        .followups
        .iter()
        .map(|followup| {
            serde_json::json!({
                "at": followup.at,
                "author": one_line(&followup.author_name),
                "body": followup.body,
            })
        })
        .collect();
    let result = request.work.result.as_ref().map(|result| {
        serde_json::json!({
            "role": result.role,
            "status": result.status.as_str(),
            "summary": one_line(&result.summary),
        })
    });
    let author = one_line(&request.conversation.reply_route.author_name);
    let artifacts: Vec<String> = request.artifacts.iter().map(|hint| one_line(hint)).collect();
    document(
        "request",
        serde_json::json!({
            "request_id": request.request_id,
            "status": request.status.as_str(),
            "author": if author.is_empty() { "unknown".to_owned() } else { author },
            "created_at": request.created_at,
            "current_role": request.route.current_role.map_or("nobody", Role::as_str),
            "scope": one_line(&request.scope),
            "body": request.body,
            "followups": followups,
            "artifacts": artifacts,
            "decisions": decisions(request),
            "result": result,
        }),
    )
}

fn document(name: &str, context: impl Serialize) -> Result<String, AssetError> {
    let name = format!("documents/{name}.md");
    assets::render(&name, &assets::scaffold_text(&name)?, context)
}

/// On one line, without control characters, cut at [`LINE_CHARS`].
fn one_line(text: &str) -> String {
    let flat = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    if flat.chars().count() <= LINE_CHARS {
        return flat;
    }
    let mut cut: String = flat.chars().take(LINE_CHARS - 1).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::plan_decision::{DecidedAnswer, DecidedBy, PlanDecision};
    use crate::domain::request::{RequestRoute, RequestStatus, RequestWork};
    use crate::domain::time::Timestamp;

    fn request(role: Role) -> Request {
        let mut result = RoleResult::new(role, "20260324-00000001");
        result.summary = "It is planned.\n\n## forged".to_owned();
        result.insights = vec!["keep it small".to_owned(), " \n".to_owned()];
        result.artifacts = vec!["shared_workspace/plan.md".to_owned()];
        Request {
            request_id: RequestId::parse("20260324-00000001").unwrap(),
            status: RequestStatus::Delegated,
            scope: "add --shout".to_owned(),
            body: "please add --shout".to_owned(),
            created_at: Timestamp::parse("2026-03-24T09:00:00").unwrap(),
            route: RequestRoute { current_role: Some(role), ..RequestRoute::default() },
            work: RequestWork { result: Some(Arc::new(result)), ..RequestWork::default() },
            ..Request::default()
        }
    }

    fn report(role: Role) -> Vec<Change> {
        let request = request(role);
        let event = RequestEvent {
            timestamp: request.created_at,
            kind: EventKind::RoleReport,
            actor: role.as_str().to_owned(),
            summary: String::new(),
            payload: serde_json::Value::Null,
        };
        let id = request.request_id.clone();
        vec![Change::save(request), Change::Event(id, event)]
    }

    #[test]
    fn a_result_goes_to_the_documents_of_its_role() {
        for (role, files) in [
            (
                Role::Planner,
                "planner/history.md planner/journal.md shared_workspace/planning.md shared_workspace/shared_history.md",
            ),
            (
                Role::Architect,
                "architect/history.md architect/journal.md shared_workspace/decision_log.md shared_workspace/shared_history.md",
            ),
            (
                Role::Sourcer,
                "internal/sourcer/history.md internal/sourcer/journal.md shared_workspace/shared_history.md",
            ),
        ] {
            let appended = documents_for(&report(role), &State::default()).unwrap();
            let names: Vec<_> = appended
                .iter()
                .filter_map(|change| {
                    if let Change::Append { file, .. } = change {
                        Some(file.as_str())
                    } else {
                        None
                    }
                })
                .collect();
            assert_eq!(names.join(" "), files);
        }
        let created = [report(Role::Qa).remove(0)];
        assert!(documents_for(&created, &State::default()).unwrap().is_empty());
    }

    #[test]
    fn what_a_person_decides_goes_to_the_decision_log_with_its_number() {
        let mut decided = report(Role::Planner);
        let by = DecidedBy::Person { name: "Mina".to_owned(), message_id: None };
        let decision = |question: &str, answer| PlanDecision {
            question: question.to_owned(),
            options: vec!["loud".to_owned(), "quiet".to_owned()],
            assumption: "loud".to_owned(),
            answer,
        };
        let quiet = DecidedAnswer { text: "quiet\n## forged".to_owned(), by };
        let mut request = request(Role::Planner);
        request.work.decisions = vec![decision("Where?", None), decision("How loud?", Some(quiet))];
        decided[0] = Change::save(request.clone());
        if let Change::Event(_, event) = &mut decided[1] {
            event.kind = EventKind::Decided;
            event.actor = "Mina".to_owned();
        }
        let appended = documents_for(&decided, &State::default()).unwrap();
        let [Change::Append { file, text }] = appended.as_slice() else { panic!("{appended:?}") };
        assert_eq!(file, "shared_workspace/decision_log.md");
        let line = "- D-2: How loud? quiet ## forged (decided by Mina)\n";
        assert!(text.contains(line) && !text.contains("D-1"), "{text}");
        assert!(request_snapshot(&request).unwrap().contains(line));
    }

    #[test]
    fn a_note_goes_to_the_journal_of_its_role_on_one_line() {
        let mut note = report(Role::Qa).remove(1);
        if let Change::Event(_, event) = &mut note {
            event.kind = EventKind::RoleNote;
            event.summary = "the tests are slow\n\n## forged".to_owned();
        }
        let appended = documents_for(&[note], &State::default()).unwrap();
        let [Change::Append { file, text }] = appended.as_slice() else { panic!("{appended:?}") };
        assert_eq!(file, "qa/journal.md");
        assert!(text.contains("- the tests are slow ## forged\n"), "{text}");
    }

    #[test]
    fn what_is_said_in_a_direct_message_is_in_no_document_of_all() {
        let mut asked = request(Role::Planner);
        asked.conversation.reply_route.is_dm = true;
        let mut changes = report(Role::Planner);
        changes[0] = Change::save(asked);
        let mut note = changes[1].clone();
        if let Change::Event(_, event) = &mut note {
            event.kind = EventKind::RoleNote;
            event.summary = "Mina wants it small".to_owned();
        }
        changes.push(note);
        let mut files = Vec::new();
        for change in documents_for(&changes, &State::default()).unwrap() {
            let Change::Append { file, text } = change else { continue };
            for words in ["--shout", "planned", "small", "plan.md"] {
                assert!(!text.contains(words), "{file}: {text}");
            }
            assert!(text.contains("20260324-00000001"), "{text}");
            files.push(file);
        }
        assert_eq!(
            files.join(" "),
            "planner/history.md shared_workspace/planning.md shared_workspace/shared_history.md"
        );
    }

    #[test]
    fn documents_as_they_read() {
        let mut state = State::default();
        state.apply(&Change::save(request(Role::Planner)));
        let mut all = String::new();
        for change in documents_for(&report(Role::Planner), &state).unwrap() {
            if let Change::Append { file, text } = change {
                all.push_str(&format!("--- {file}\n{text}"));
            }
        }
        let snapshot = request_snapshot(&request(Role::Planner)).unwrap();
        all.push_str(&format!("--- request\n{snapshot}"));
        for role in [Role::Planner, Role::Qa] {
            all.push_str(&format!("--- todo\n{}", role_todo(role, &state).unwrap()));
        }
        insta::assert_snapshot!("documents", all);
        assert!(!all.contains("\n## forged"));
    }
}
