//! What a research result is worth to a sprint (`spec/teams.md` 8.6). What is not good enough degrades to
//! local evidence, by name.

use crate::domain::result::{ReasonCode, ResearchReport, RoleResult};
use crate::domain::sprint::{BackingSource, PrepassStatus, ResearchPrepass};

/// Sources that are kept.
const MOST_SOURCES: usize = 40;

/// Reads a result.
pub(super) fn prepass(result: &RoleResult) -> ResearchPrepass {
    let signal = result.proposals.research_signal.as_ref();
    let report = result.proposals.research_report.as_ref();
    let code = signal.and_then(|signal| signal.reason_code);
    let sources = report.map(sources).unwrap_or_default();
    let needed = signal.is_some_and(|signal| signal.needed) || !sources.is_empty();
    let problem = if needed { problem(report, &sources) } else { None };
    let (status, reason_code) = match (problem, code) {
        (Some(problem), _) => (PrepassStatus::Failed, problem),
        (None, Some(code @ ReasonCode::BlockedDecisionFailed)) => {
            (PrepassStatus::Blocked, code.as_str())
        }
        (None, Some(code)) => (PrepassStatus::Completed, code.as_str()),
        (None, None) if needed => {
            (PrepassStatus::Completed, ReasonCode::NeededExternalGrounding.as_str())
        }
        (None, None) => (PrepassStatus::Completed, ReasonCode::NotNeededLocalEvidence.as_str()),
    };
    let text = |text: Option<&str>| text.unwrap_or_default().trim().to_owned();
    let guidance = text(report.map(|report| report.planner_guidance.as_str()));
    ResearchPrepass {
        request_id: None,
        status,
        reason_code: reason_code.to_owned(),
        subject: text(signal.map(|signal| signal.subject.as_str())),
        report_artifact: text(report.and_then(|report| report.report_artifact.as_deref())),
        headline: text(report.map(|report| report.headline.as_str())),
        planner_guidance: if guidance.is_empty() { result.summary.clone() } else { guidance },
        backing_sources: if status == PrepassStatus::Completed { sources } else { Vec::new() },
    }
}

/// Why a report cannot be built on.
fn problem(report: Option<&ResearchReport>, sources: &[BackingSource]) -> Option<&'static str> {
    let is_web = |source: &BackingSource| {
        source.url.starts_with("http://") || source.url.starts_with("https://")
    };
    let Some(report) = report.filter(|_| sources.iter().any(is_web)) else {
        return Some("no_web_source");
    };
    let hints = [
        &report.milestone_refinement_hints,
        &report.problem_framing_hints,
        &report.spec_implications,
        &report.todo_definition_hints,
    ];
    if report.planner_guidance.trim().is_empty() {
        Some("no_planner_guidance")
    } else if report.backing_reasoning.is_empty() {
        Some("no_reasoning")
    } else if hints.iter().all(|hints| hints.is_empty()) {
        Some("no_hints")
    } else {
        None
    }
}

/// The sources of a report.
fn sources(report: &ResearchReport) -> Vec<BackingSource> {
    let sources = report.backing_sources.iter().filter(|source| !source.url.trim().is_empty());
    sources
        .map(|source| BackingSource {
            title: source.title.trim().to_owned(),
            url: source.url.trim().to_owned(),
            relevance: [source.relevance.trim(), source.summary.trim()]
                .into_iter()
                .find(|it| !it.is_empty())
                .unwrap_or_default()
                .to_owned(),
        })
        .take(MOST_SOURCES)
        .collect()
}
