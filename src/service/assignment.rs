//! What a role is told about the sprint and the backlog that its request belongs to.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agents::{Document, SprintBrief, Work};
use crate::domain::backlog::BacklogItem;
use crate::domain::request::Request;
use crate::domain::sprint::{Duty, Sprint};
use crate::domain::state::State;

/// Items of the backlog that a role is shown.
const ITEMS: usize = 60;
/// Findings, candidates or blocked items that a role is shown.
const FACTS: usize = 60;
/// Where sprints have their documents, in the workspace.
const SPRINTS: &str = "shared_workspace/sprints";

/// The sprint and the backlog as the request's role needs them; blank for a person's request outside a
/// sprint. `web` says whether the role may read the web.
pub(super) fn work(state: &State, request: &Request, web: bool) -> Work {
    let duty = request.duty();
    let sprint = request
        .sprint_id
        .as_ref()
        .and_then(|id| state.sprints.get(id))
        .or_else(|| state.active_sprint().filter(|_| duty.is_some()));
    let other = &request.params.other;
    let list = |key: &str| -> Vec<Value> {
        other
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .take(FACTS)
            .cloned()
            .collect()
    };
    let mut work = Work {
        duty,
        planning_step: request.planning_step(),
        reopens: reopens(request),
        sprint: sprint.map(brief),
        item: request.backlog_id.as_ref().and_then(|id| state.backlog.get(id)).cloned(),
        findings: list("findings"),
        candidates: list("candidates"),
        blocked_items: list("blocked_items"),
        web,
        ..Work::default()
    };
    if duty.is_some_and(wants_backlog) {
        let mut items: Vec<&BacklogItem> = state.backlog.values().collect();
        items.sort_by_key(|item| {
            let rank = if item.priority_rank == 0 { u32::MAX } else { item.priority_rank };
            (!work.is_of_the_sprint(item), rank, item.created_at, item.backlog_id.clone())
        });
        work.backlog_left_out = items.len().saturating_sub(ITEMS);
        work.backlog = items.into_iter().take(ITEMS).cloned().collect();
    }
    work
}

/// How often the step of planning was given back before this request.
pub(super) fn reopens(request: &Request) -> u32 {
    let count = request.params.other.get("initial_phase_reopen_count").and_then(Value::as_u64);
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or_default()
}

/// Why the step of planning was given back; blank where it was not.
pub(super) fn reopen_reason(request: &Request) -> &str {
    let reason = request.params.other.get("initial_phase_reopen_reason").and_then(Value::as_str);
    reason.unwrap_or_default().trim()
}

const fn wants_backlog(duty: Duty) -> bool {
    match duty {
        Duty::Planning
        | Duty::OngoingReview
        | Duty::Sourcing
        | Duty::SourcerReview
        | Duty::BlockedReview => true,
        Duty::ResearchPrepass | Duty::ClosingReport | Duty::Leftovers => false,
    }
}

fn brief(sprint: &Sprint) -> SprintBrief {
    SprintBrief {
        sprint_id: sprint.sprint_id.to_string(),
        folder: folder(sprint),
        status: sprint.status.as_str().to_owned(),
        requested_milestone: sprint.requested_milestone_title.clone(),
        milestone: sprint.milestone_title.clone(),
        brief: sprint.kickoff_brief.clone(),
        requirements: sprint.kickoff_requirements.clone(),
        request_text: sprint.kickoff_request_text.clone(),
        artifacts: sprint.kickoff_reference_artifacts.clone(),
        research: sprint.research_prepass.clone(),
        todos: sprint.todos.clone(),
        commits: sprint.commits.clone(),
        closeout: sprint.closeout_status.map(|it| it.as_str().to_owned()).unwrap_or_default(),
        uncommitted_paths: sprint.uncommitted_paths.clone(),
    }
}

/// The sprint's folder, relative to the workspace. Made of the name alone: a record of the older runtime
/// may hold a path of another machine.
pub(super) fn folder(sprint: &Sprint) -> String {
    format!("{SPRINTS}/{}", sprint.sprint_folder_name)
}

/// The documents of a sprint that its planner or research writes, and the folder that may be written for
/// it; `None` where the request's role writes none.
pub(super) fn documents(
    root: &Path,
    sprint: &Sprint,
    duty: Duty,
) -> Option<(PathBuf, Vec<Document>)> {
    let names: &[(&str, &str)] = match duty {
        Duty::Planning => &[
            ("milestone.md", "the milestone and its framing"),
            ("plan.md", "the plan of the sprint"),
            ("spec.md", "what the sprint has to bring about, in numbered parts"),
        ],
        Duty::OngoingReview => &[("plan.md", "the plan of the sprint")],
        Duty::ResearchPrepass => &[("research.md", "the long version of the research")],
        Duty::ClosingReport
        | Duty::Leftovers
        | Duty::Sourcing
        | Duty::SourcerReview
        | Duty::BlockedReview => return None,
    };
    let name = sprint.sprint_folder_name.as_str();
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        return None;
    }
    let folder = folder(sprint);
    let documents = names
        .iter()
        .map(|(name, purpose)| Document {
            name: format!("{folder}/{name}"),
            path: root.join(&folder).join(name),
            purpose: format!("{purpose}."),
            writable: true,
        })
        .collect();
    Some((root.join(&folder), documents))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::backlog::BacklogKind;
    use crate::domain::change::Change;
    use crate::domain::ids::{BacklogId, SprintId};
    use crate::domain::request::Language;
    use crate::domain::sprint::{InitialStep, Kickoff, Trigger};
    use crate::domain::time::Timestamp;

    fn sprint() -> Sprint {
        let id = SprintId::parse("260324-Sprint-09:00").unwrap();
        let kickoff = Kickoff { milestone: "Greet everybody".to_owned(), ..Kickoff::default() };
        let mut sprint = Sprint::new(id, Trigger::ManualStart, kickoff, Language::En);
        sprint.sprint_folder_name = "260324-Sprint-09-00".to_owned();
        sprint
    }

    fn planning() -> Request {
        let mut request = Request { sprint_id: Some(sprint().sprint_id), ..Request::default() };
        request.params.other = json!({
            "duty": "planning", "initial_phase_step": "backlog_definition",
            "initial_phase_reopen_count": 1, "initial_phase_reopen_reason": "no items",
            "findings": [{"trace": "a"}],
        })
        .as_object()
        .cloned()
        .unwrap();
        request
    }

    #[test]
    fn a_planning_request_knows_its_sprint_and_the_backlog_with_the_own_items_first() {
        let mut state = State::default();
        state.apply(&Change::Sprint(Box::new(sprint())));
        for (id, milestone, rank) in [("backlog-a", "", 1), ("backlog-b", "Greet everybody", 0)] {
            let at = Timestamp::from_millis(0);
            let id = BacklogId::parse(id).unwrap();
            let mut item = BacklogItem::new(id, "x", "y", BacklogKind::Chore, at);
            item.milestone_title = milestone.to_owned();
            item.priority_rank = rank;
            state.apply(&Change::Backlog(Box::new(item)));
        }
        let request = planning();
        let work = work(&state, &request, false);
        assert_eq!(work.planning_step, Some(InitialStep::BacklogDefinition));
        assert_eq!((work.reopens, reopen_reason(&request)), (1, "no items"));
        assert_eq!(work.findings.len(), 1);
        let names: Vec<&str> = work.backlog.iter().map(|item| item.backlog_id.as_str()).collect();
        assert_eq!(names, ["backlog-b", "backlog-a"]);
        let brief = work.sprint.unwrap();
        assert_eq!(brief.folder, "shared_workspace/sprints/260324-Sprint-09-00");
        assert_eq!(brief.milestone, "Greet everybody");
        let outside = super::work(&state, &Request::default(), false);
        assert_eq!(outside, Work::default());
    }

    #[test]
    fn only_a_plain_folder_name_is_written_to() {
        let mut sprint = sprint();
        let root = Path::new("/w");
        let (folder, documents) = documents(root, &sprint, Duty::Planning).unwrap();
        assert_eq!(folder, Path::new("/w/shared_workspace/sprints/260324-Sprint-09-00"));
        assert!(documents.iter().all(|document| document.path.starts_with(&folder)));
        assert!(super::documents(root, &sprint, Duty::ClosingReport).is_none());
        for bad in ["", "../x", "/etc", ".hidden", "a/b"] {
            sprint.sprint_folder_name = bad.to_owned();
            assert!(super::documents(root, &sprint, Duty::Planning).is_none(), "{bad}");
        }
    }
}
