//! Records of the older runtime in the shape of ours (`spec/teams.md` 4 and 13): blank ids, numbers and lists
//! written as texts, times without a zone, words that nobody knows. What is changed on the way is noted.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::record::Record;
use crate::domain::ids::{ItemId, OperationId, RequestId, SprintId, TodoId};
use crate::domain::lenient;
use crate::domain::role::Role;

const REQUEST_STATUSES: &[&str] =
    &["queued", "delegated", "completed", "blocked", "failed", "cancelled", "committed"];

/// A request (`spec/teams.md` 4.2). One whose status nobody knows waits for a person.
pub(super) fn request(record: &mut Record<'_>) {
    record.texts(&[
        "intent",
        "urgency",
        "scope",
        "body",
        "fingerprint",
        "current_role",
        "next_role",
    ]);
    for (key, word) in [("intent", "route"), ("urgency", "normal")] {
        if record.text(key).is_empty() {
            record.put(key, json!(word));
        }
    }
    record.word("status", REQUEST_STATUSES, "blocked");
    record.lists(&["artifacts"]);
    record.put("owner_role", json!("orchestrator"));
    let visited = lenient::list(record.map.get("visited_roles"));
    let visited: Vec<Role> = visited.iter().filter_map(|role| Role::parse(role)).collect();
    record.put("visited_roles", json!(visited));
    record.ids::<SprintId>(&["sprint_id"]);
    record.ids::<ItemId>(&["backlog_id"]);
    record.ids::<TodoId>(&["todo_id"]);
    record.ids::<OperationId>(&["operation_id"]);
    record.needed_times(&["created_at", "updated_at"]);
    record.times(&["source_message_created_at"]);
    for key in ["operation_id", "source_message_created_at"] {
        if record.text(key).is_empty() {
            record.map.remove(key);
        }
    }
    record.language(&["body", "scope"]);
    let mut route = record.object("reply_route").unwrap_or_default();
    if lenient::text(route.get("channel_id")).trim().is_empty() {
        // Older records name who asked beside the route (R14).
        let asked = record.map.get("params").and_then(|params| params.get("original_requester"));
        let asked = asked.and_then(Value::as_object);
        route.extend(asked.cloned().unwrap_or_default());
    }
    record.put("reply_route", Value::Object(reply_route(route)));
    if let Some(result) = record.object("result") {
        let mut inner = record.within(result);
        if role_result(&mut inner) {
            let result = inner.map;
            record.put("result", Value::Object(result));
        }
    }
    let params = record.object("params").unwrap_or_default();
    let mut inner = record.within(params);
    request_params(&mut inner);
    let params = inner.map;
    record.put("params", Value::Object(params));
    for key in ["version_control_sha", "task_commit_sha"] {
        let sha = record.text(key);
        if !sha.is_empty() && record.text("commit_sha").is_empty() {
            record.put("commit_sha", json!(sha));
        }
    }
}

fn reply_route(mut route: Map<String, Value>) -> Map<String, Value> {
    for key in ["author_id", "channel_id", "guild_id", "message_id"] {
        let id = lenient::text(route.get(key)).trim().parse::<u64>().ok();
        route.insert(key.to_owned(), id.map_or(Value::Null, |id| json!(id.to_string())));
    }
    let name = lenient::text(route.get("author_name"));
    route.insert("author_name".to_owned(), json!(name));
    let direct = lenient::truthy(route.get("is_dm"));
    route.insert("is_dm".to_owned(), json!(direct));
    route
}

/// Whether there is a result at all.
fn role_result(record: &mut Record<'_>) -> bool {
    if Role::parse(&record.text("role")).is_none() {
        let all = Value::Object(record.map.clone());
        record.note("result", &all, "which names no role");
        return false;
    }
    record.word("status", &["completed", "blocked", "failed"], "failed");
    record.texts(&["request_id", "summary", "next_role", "error"]);
    record.lists(&["insights", "artifacts", "validation_notes", "contract_issues"]);
    record.flags(&["contract_repair_attempted"]);
    record.word_or_none("contract_status", &["invalid", "repaired"]);
    let proposals = record.object("proposals").unwrap_or_default();
    record.put("proposals", Value::Object(proposals));
    true
}

fn request_params(record: &mut Record<'_>) {
    record.texts(&["_teams_kind"]);
    if record.text("_teams_kind").is_empty() {
        record.map.remove("_teams_kind");
    }
    if Role::parse(&record.text("user_requested_role")).is_none() {
        record.map.remove("user_requested_role");
    }
    if let Some(state) = record.object("workflow") {
        let state = crate::domain::workflow::WorkflowState::normalize(&Value::Object(state));
        record.put("workflow", json!(state));
    }
}

/// A backlog item (`spec/teams.md` 4.3).
pub(super) fn backlog(record: &mut Record<'_>) {
    record.texts(&[
        "title",
        "summary",
        "scope",
        "milestone_title",
        "blocked_reason",
        "blocked_by_role",
        "recommended_next_step",
        "fingerprint",
        "dropped_reason",
    ]);
    if record.text("title").trim().is_empty() {
        let named = [record.text("summary"), record.text("scope")];
        let title = named.iter().find(|text| !text.trim().is_empty());
        let line = title.and_then(|text| text.lines().next()).unwrap_or("Untitled backlog item");
        record.put("title", json!(line.trim()));
    }
    record.word(
        "status",
        &["pending", "selected", "blocked", "done", "carried_over", "dropped"],
        "pending",
    );
    record.word("kind", &["bug", "feature", "enhancement", "chore"], "enhancement");
    record.word("source", &["user", "planner", "sourcer", "discovery", "carry_over"], "planner");
    record.lists(&["acceptance_criteria", "required_inputs"]);
    record.numbers(&["priority_rank"]);
    record.flags(&["added_during_active_sprint"]);
    record.ids::<SprintId>(&[
        "planned_in_sprint_id",
        "selected_in_sprint_id",
        "completed_in_sprint_id",
    ]);
    record.ids::<ItemId>(&["carry_over_of"]);
    record.id_lists::<ItemId>(&["depends_on"]);
    record.needed_times(&["created_at", "updated_at"]);
    let origin = record.object("origin").unwrap_or_default();
    record.put("origin", Value::Object(origin));
}

const STEPS: &[&str] = &[
    "milestone_refinement",
    "artifact_sync",
    "backlog_definition",
    "backlog_prioritization",
    "todo_finalization",
];

/// A sprint (`spec/teams.md` 4.5).
pub(super) fn sprint(record: &mut Record<'_>, root: &Path) {
    record.texts(&[
        "sprint_name",
        "sprint_folder",
        "sprint_folder_name",
        "requested_milestone_title",
        "milestone_title",
        "kickoff_brief",
        "kickoff_request_text",
        "last_initial_phase_reopen_reason",
        "commit_sha",
        "closeout_message",
        "version_control_status",
        "version_control_sha",
        "report_body",
        "report_path",
        "last_resume_checkpoint_status",
    ]);
    record.lists(&[
        "kickoff_requirements",
        "kickoff_reference_artifacts",
        "reference_artifacts",
        "commit_shas",
        "uncommitted_paths",
        "version_control_paths",
    ]);
    if record.text("sprint_name").is_empty() {
        let name = record.text("sprint_display_name");
        record.put("sprint_name", json!(name));
    }
    let name = record.text("sprint_folder_name");
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', ':', '\0']) {
        let name = record.text("sprint_id").replace(':', "-");
        record.put("sprint_folder_name", json!(name));
    }
    let folder = format!("shared_workspace/sprints/{}", record.text("sprint_folder_name"));
    if record.text("sprint_folder") != folder {
        let old = json!(record.text("sprint_folder"));
        record.note("sprint_folder", &old, &format!("and is {folder}"));
        record.put("sprint_folder", json!(folder));
    }
    let paths = ["kickoff_reference_artifacts", "reference_artifacts", "report_path"];
    record.paths(root, &paths);
    sprint_words(record);
    record.ids::<RequestId>(&[
        "kickoff_source_request_id",
        "last_initial_phase_reopen_request_id",
        "planning_request_id",
    ]);
    record.ids::<TodoId>(&["last_resume_checkpoint_todo_id"]);
    record.id_lists::<ItemId>(&["selected_backlog_ids"]);
    record.times(&[
        "started_at",
        "ended_at",
        "cutoff_at",
        "initial_phase_ready_at",
        "last_planner_review_at",
        "wrap_up_requested_at",
        "last_activity_at",
        "resume_from_checkpoint_requested_at",
        "updated_at",
    ]);
    record.numbers(&["commit_count"]);
    record.language(&["milestone_title", "requested_milestone_title", "kickoff_request_text"]);
    let counts = record.object("initial_phase_reopen_counts").unwrap_or_default();
    let counts: Map<String, Value> = (counts.into_iter())
        .filter(|(step, _)| STEPS.contains(&step.as_str()))
        .map(|(step, n)| (step, json!(lenient::integer(Some(&n)).unwrap_or(0).clamp(0, 100))))
        .collect();
    record.put("initial_phase_reopen_counts", Value::Object(counts));
    record.each("todos", todo);
    sprint_parts(record);
}

fn sprint_words(record: &mut Record<'_>) {
    let ended = !record.text("ended_at").is_empty();
    record.word(
        "status",
        &["planning", "running", "closeout", "completed", "failed", "blocked", "cancelled"],
        if ended { "failed" } else { "running" },
    );
    let phase = match record.text("status").as_str() {
        "planning" | "blocked" => "initial",
        "running" => "ongoing",
        _ => "wrap_up",
    };
    record.word("phase", &["initial", "ongoing", "wrap_up"], phase);
    record.word("execution_mode", &["manual", "auto"], "manual");
    let auto = record.text("execution_mode") == "auto";
    record.word(
        "trigger",
        &["manual_start", "backlog_ready", "scheduled_slot", "deferred_slot", "manual_restart"],
        if auto { "backlog_ready" } else { "manual_start" },
    );
    record.word_or_none("wrap_up", &["after_current", "now", "cutoff"]);
    record.word_or_none("initial_phase_step", STEPS);
    record.word_or_none("last_initial_phase_reopen_step", STEPS);
    record.word_or_none(
        "closeout_status",
        &[
            "verified",
            "no_new_commits",
            "no_repo",
            "warning_missing_sprint_tag",
            "pending_changes",
            "version_control_failed",
            "planning_incomplete",
            "failed",
            "no_backlog_selected",
            "no_selected_backlog",
            "restart_required",
            "stopped",
        ],
    );
}

/// What hangs below a sprint beside its todos.
fn sprint_parts(record: &mut Record<'_>) {
    record.each("planning_iterations", |part, _| {
        part.needed_times(&["created_at"]);
        part.texts(&["phase", "step", "summary"]);
        part.ids::<RequestId>(&["request_id"]);
        part.lists(&["insights", "artifacts"]);
        part.flags(&["phase_ready"]);
    });
    record.each("recent_activity", |part, _| {
        part.needed_times(&["timestamp"]);
        let kind = part.text("type");
        part.put("type", json!(kind));
        part.texts(&["role", "request_id", "summary"]);
    });
    record.each("commits", |part, _| {
        part.texts(&["sha", "short_sha", "subject"]);
        part.flags(&["sprint_tagged"]);
    });
    if let Some(prepass) = record.object("research_prepass") {
        let mut part = record.within(prepass);
        part.word("status", &["completed", "blocked", "failed", "not_configured"], "failed");
        part.ids::<RequestId>(&["request_id"]);
        part.texts(&["reason_code", "subject", "report_artifact", "headline"]);
        let guidance = lenient::list(part.map.get("planner_guidance")).join("\n");
        part.put("planner_guidance", json!(guidance));
        part.each("backing_sources", |source, _| source.texts(&["title", "url", "relevance"]));
        let prepass = part.map;
        record.put("research_prepass", Value::Object(prepass));
    }
    if let Some(baseline) = record.object("git_baseline") {
        let mut part = record.within(baseline);
        part.texts(&["repo_root", "head_sha"]);
        part.lists(&["dirty_paths"]);
        // An empty repository's head was written as the word itself (13.D #63).
        if part.text("head_sha") == "HEAD" {
            part.put("head_sha", json!(""));
        }
        let baseline = part.map;
        record.put("git_baseline", Value::Object(baseline));
    }
    let route = record.object("reply_route").unwrap_or_default();
    record.put("reply_route", Value::Object(reply_route(route)));
}

/// A todo (`spec/teams.md` 4.4).
fn todo(record: &mut Record<'_>, number: usize) {
    record.ids::<RequestId>(&["request_id", "retry_of_request_id"]);
    record.ids::<ItemId>(&["backlog_id", "carry_over_backlog_id"]);
    record.ids::<TodoId>(&["todo_id"]);
    if record.text("todo_id").is_empty() {
        let request = record.text("request_id");
        let id = if request.is_empty() {
            format!("recovered-{}", number + 1)
        } else {
            format!("recovered-{request}")
        };
        record.put("todo_id", json!(id));
    }
    record.texts(&[
        "title",
        "milestone_title",
        "summary",
        "dependency_gate_bypass",
        "commit_sha",
        "version_control_message",
    ]);
    record.lists(&["acceptance_criteria", "artifacts"]);
    record.id_lists::<TodoId>(&["depends_on"]);
    record.numbers(&["priority_rank", "commit_retries"]);
    record.times(&["created_at", "started_at", "ended_at", "updated_at"]);
    record.word(
        "status",
        &[
            "queued",
            "running",
            "uncommitted",
            "committed",
            "completed",
            "blocked",
            "failed",
            "cancelled",
        ],
        "queued",
    );
    if Role::parse(&record.text("owner_role")).is_none() {
        record.put("owner_role", json!("planner"));
    }
}

/// The scheduler (`spec/teams.md` 4.6).
pub(super) fn scheduler(record: &mut Record<'_>) {
    record.texts(&[
        "last_skip_reason",
        "last_sourcing_status",
        "last_sourcing_fingerprint",
        "last_sourcing_review_status",
        "last_blocked_review_status",
        "last_blocked_review_fingerprint",
        "milestone_request_reason",
    ]);
    record.ids::<SprintId>(&["active_sprint_id"]);
    record.ids::<RequestId>(&[
        "last_sourcing_request_id",
        "last_sourcing_review_request_id",
        "last_blocked_review_request_id",
    ]);
    record.ids::<crate::domain::ids::ChannelId>(&["milestone_request_channel_id"]);
    record.times(&[
        "last_started_at",
        "last_completed_at",
        "last_skipped_at",
        "last_sourced_at",
        "next_slot_at",
        "deferred_slot_at",
        "last_blocked_review_at",
        "milestone_request_sent_at",
    ]);
    record.flags(&["milestone_request_pending"]);
    record.word_or_none(
        "last_trigger",
        &["manual_start", "backlog_ready", "scheduled_slot", "deferred_slot", "manual_restart"],
    );
    if !record.map.get("watermarks").is_some_and(Value::is_object) {
        record.map.remove("watermarks");
    }
}
