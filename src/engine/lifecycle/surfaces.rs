//! Which files are planning, not product (`spec/teams.md` 7.4).

use crate::engine::parse::normalize_artifact_hint;

const SHARED: [&str; 3] = ["backlog.md", "completed_backlog.md", "current_sprint.md"];
const SPRINT: [&str; 6] =
    ["kickoff.md", "milestone.md", "plan.md", "spec.md", "todo_backlog.md", "iteration_log.md"];

/// The documents that a planner has to list after QA sent a sprint request back.
pub(super) const AFTER_QA_REOPEN: [&str; 4] =
    ["spec.md", "todo_backlog.md", "iteration_log.md", "current_sprint.md"];

/// Whether a path is a document that the planner owns, whatever its case.
#[must_use]
pub fn is_planner_document(path: &str) -> bool {
    let path = spelled(path);
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["shared_workspace", name] => SHARED.contains(name),
        ["shared_workspace", "sprints", .., name] => SPRINT.contains(name),
        _ => false,
    }
}

/// Whether a path is a planning surface: a planner's document, the sprint history, or a request or
/// backlog record.
#[must_use]
pub fn is_planning_surface(path: &str) -> bool {
    let path = spelled(path);
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["shared_workspace", "sprint_history", name] => name.ends_with(".md"),
        [".teams_runtime", "requests" | "backlog", name] => name.ends_with(".json"),
        _ => is_planner_document(&path),
    }
}

fn spelled(path: &str) -> String {
    normalize_artifact_hint(path).trim_end_matches('/').to_lowercase()
}
