//! What the roles reported while they worked on a todo, out of the history of its request.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::domain::ids::RequestId;
use crate::domain::request::RequestEvent;
use crate::domain::result::RoleResult;

/// The reports of requests, oldest first.
pub type Reports = BTreeMap<RequestId, Vec<RoleReport>>;

/// One report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleReport {
    /// When.
    pub at: String,
    /// Who.
    pub role: String,
    /// Who, and for which time: `developer [#2]`.
    pub name: String,
    /// The step; blank outside of the workflow.
    pub step: String,
    /// How it ended.
    pub status: &'static str,
    /// In a few lines.
    pub summary: String,
    /// What the role wants to remember.
    pub insights: Vec<String>,
    /// What it proposed.
    pub outputs: Vec<Output>,
    /// Where it wanted the work to go; blank where it did not say.
    pub transition: String,
    /// Files.
    pub artifacts: Vec<String>,
}

/// A part of what a role proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its content, as text or JSON.
    pub value: String,
}

/// The key of the transition among what a role proposes.
const TRANSITION: &str = "workflow_transition";

/// The reports in a history. Events that are no report, or not one that can be read, are left out.
#[must_use]
pub fn role_reports(events: &[RequestEvent]) -> Vec<RoleReport> {
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    let mut reports = Vec::new();
    for event in events {
        let Some(result) = event.result() else { continue };
        let time = times.entry(event.actor.clone()).or_insert(0);
        *time += 1;
        let name = match time {
            1 => event.actor.clone(),
            time => format!("{} [#{time}]", event.actor),
        };
        let step = event.payload.get("step").and_then(Value::as_str).unwrap_or_default();
        reports.push(RoleReport {
            at: event.timestamp.to_string(),
            role: event.actor.clone(),
            name,
            step: step.to_owned(),
            status: result.status.as_str(),
            summary: result.summary.clone(),
            insights: result.insights.clone(),
            outputs: outputs(&result),
            transition: (result.proposals.workflow_transition.as_ref())
                .map(|it| transition(&serde_json::json!(it)))
                .unwrap_or_default(),
            artifacts: result.artifacts.clone(),
        });
    }
    reports
}

fn outputs(result: &RoleResult) -> Vec<Output> {
    let parts = result.proposals.given().into_iter();
    parts
        .filter(|(name, _)| name != TRANSITION)
        .map(|(name, value)| Output { value: text(&value), name })
        .collect()
}

fn transition(value: &Value) -> String {
    let fields = ["outcome", "target_step", "target_phase", "reopen_category", "reason"];
    let said = fields.iter().filter_map(|name| value.get(name)).map(text);
    said.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join(", ")
}

/// A value as people read it: a text as it is, everything else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
