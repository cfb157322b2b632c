//! What a research result is worth to a sprint (`spec/teams.md` 8.6). What is not good enough degrades to
//! local evidence, by name.

use serde_json::Value;

use crate::domain::lenient;
use crate::domain::result::RoleResult;
use crate::domain::sprint::{BackingSource, PrepassStatus, ResearchPrepass};

/// Lists of hints, of which a report needs at least one.
const HINTS: [&str; 4] = [
    "milestone_refinement_hints",
    "problem_framing_hints",
    "spec_implications",
    "todo_definition_hints",
];

/// Reads a result.
pub(super) fn prepass(result: &RoleResult) -> ResearchPrepass {
    let nothing = Value::Null;
    let signal = result.proposals.get("research_signal").unwrap_or(&nothing);
    let report = result.proposals.get("research_report").unwrap_or(&nothing);
    let word = |value: &Value, key: &str| lenient::text(value.get(key)).trim().to_owned();
    let code = word(signal, "reason_code");
    let sources = sources(report);
    let needed = lenient::truthy(signal.get("needed")) || !sources.is_empty();
    let problem = if needed { problem(report, &sources) } else { None };
    let (status, reason_code) = match problem {
        Some(problem) => (PrepassStatus::Failed, problem.to_owned()),
        None if code == "blocked_decision_failed" => (PrepassStatus::Blocked, code),
        None if needed && code.is_empty() => {
            (PrepassStatus::Completed, "needed_external_grounding".to_owned())
        }
        None if code.is_empty() => {
            (PrepassStatus::Completed, "not_needed_local_evidence".to_owned())
        }
        None => (PrepassStatus::Completed, code),
    };
    ResearchPrepass {
        request_id: None,
        status,
        reason_code,
        subject: word(signal, "subject"),
        report_artifact: word(report, "report_artifact"),
        headline: word(report, "headline"),
        planner_guidance: [word(report, "planner_guidance"), result.summary.clone()]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default(),
        backing_sources: if status == PrepassStatus::Completed { sources } else { Vec::new() },
    }
}

/// Why a report cannot be built on.
fn problem(report: &Value, sources: &[BackingSource]) -> Option<&'static str> {
    let is_web = |source: &BackingSource| {
        source.url.starts_with("http://") || source.url.starts_with("https://")
    };
    let listed = |key: &str| !lenient::list(report.get(key)).is_empty();
    if !sources.iter().any(is_web) {
        Some("no_web_source")
    } else if lenient::text(report.get("planner_guidance")).trim().is_empty() {
        Some("no_planner_guidance")
    } else if !listed("backing_reasoning") {
        Some("no_reasoning")
    } else if !HINTS.iter().any(|key| listed(key)) {
        Some("no_hints")
    } else {
        None
    }
}

/// The sources of a report.
fn sources(report: &Value) -> Vec<BackingSource> {
    let list = report.get("backing_sources").and_then(Value::as_array);
    let text = |source: &Value, key: &str| lenient::text(source.get(key)).trim().to_owned();
    list.into_iter()
        .flatten()
        .map(|source| BackingSource {
            title: text(source, "title"),
            url: text(source, "url"),
            relevance: [text(source, "relevance"), text(source, "summary")]
                .into_iter()
                .find(|it| !it.is_empty())
                .unwrap_or_default(),
        })
        .filter(|source| !source.url.is_empty())
        .take(40)
        .collect()
}
