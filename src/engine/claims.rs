//! What a role says against what was seen: git knows what changed, the runtime's own checks know what passed,
//! the disk knows which documents there are. A claim that does not hold decides nothing and is not dropped
//! quietly either: it stands in the history and in the room.

use serde_json::json;

use super::turn::Turn;
use super::{base, parse, say};
use crate::domain::evidence::CheckVerdict;
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::request::{EventKind, Request};
use crate::domain::result::{ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::run::RunReport;

/// Where documents of the team lie; other names in a report are files of the project.
const DOCUMENTS: &str = "shared_workspace/";

/// A claim that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claim {
    /// Something was built, and nothing differs.
    Built,
    /// This check passed, and it did not.
    Check(String),
    /// This document was written, and there is none.
    Document(String),
}

impl Claim {
    fn values(&self) -> (&'static str, &str) {
        match self {
            Self::Built => ("built", ""),
            Self::Check(name) => ("check", name),
            Self::Document(name) => ("document", name),
        }
    }
}

/// The claims of a result that do not hold.
fn unfounded(request: &Request, report: &RunReport, result: &RoleResult) -> Vec<Claim> {
    let mut claims = Vec::new();
    let builds = matches!(report.role, Role::Developer | Role::ConflictResolver);
    let builds = builds && report.step.is_some();
    if builds
        && result.status == ResultStatus::Completed
        && report.changed_paths.is_empty()
        && request.work.candidate.is_none()
    {
        claims.push(Claim::Built);
    }
    let named = result.proposals.qa_validation.iter().flat_map(|verdict| &verdict.passed_checks);
    let checks = request.work.evidence.iter().flat_map(|evidence| &evidence.checks);
    let red: Vec<&str> = checks
        .filter(|check| check.verdict != CheckVerdict::Passed)
        .map(|check| check.name.as_str())
        .collect();
    claims.extend(
        named
            .filter(|name| red.iter().any(|red| red.eq_ignore_ascii_case(name.trim())))
            .map(|name| Claim::Check(name.trim().to_owned())),
    );
    let documents = result.artifacts.iter().map(|name| parse::normalize_artifact_hint(name));
    claims.extend(
        documents
            .filter(|name| name.starts_with(DOCUMENTS) && !report.documents_present.contains(name))
            .map(Claim::Document),
    );
    claims
}

/// Notes and shows what a role claims against the evidence.
pub(super) fn hold_against(
    turn: &mut Turn<'_>,
    id: &RequestId,
    report: &RunReport,
    result: &RoleResult,
) {
    let Some(request) = turn.request(id) else { return };
    // Where nothing may have to change, whoever judges says so.
    let may_be_there = base::may_hold_all(turn, request);
    let claims = unfounded(request, report, result).into_iter();
    for claim in claims.filter(|claim| *claim != Claim::Built || !may_be_there) {
        let (kind, name) = claim.values();
        let payload = json!({ "claim": kind, "name": name });
        turn.record(id, EventKind::ClaimContradicted, report.role.as_str(), kind, payload);
        let values = json!({ "role": report.role, "claim": kind, "name": say::cut(name, 200) });
        say::in_room(turn, id, Voice::Team, Priority::Error, "room.contradicted", values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::evidence::{ChangeKind, ChangedPath};
    use crate::domain::result::{QaDecision, QaValidation};
    use crate::domain::role::Role;
    use crate::engine::lifecycle::steps;
    use crate::engine::tests::{evidence, report_of, verdict};

    fn result_of(role: Role) -> RoleResult {
        RoleResult::new(role, "r")
    }

    fn check(request: &Request, report: &RunReport, result: &RoleResult, expected: &[Claim]) {
        assert_eq!(unfounded(request, report, result), expected);
    }

    #[test]
    fn what_git_the_checks_and_the_disk_know_better() {
        let request = Request::default();
        let done = result_of(Role::Developer);
        let mut report = report_of(Role::Developer, Some(steps::BUILD));
        check(&request, &report, &done, &[Claim::Built]);
        let path = "a.rs".to_owned();
        report.changed_paths = vec![ChangedPath { path, kind: ChangeKind::Modified }];
        check(&request, &report, &done, &[]);

        let mut red = request.clone();
        red.work.evidence = Some(evidence("c1", CheckVerdict::Failed));
        let name =
            red.work.evidence.as_ref().map(|it| it.checks[0].name.clone()).unwrap_or_default();
        let mut judged = result_of(Role::Qa);
        let passed_checks = vec![name.clone(), "by eye".to_owned()];
        let passes = verdict(QaDecision::Pass, &[]);
        judged.proposals.qa_validation = Some(QaValidation { passed_checks, ..passes });
        let report = report_of(Role::Qa, Some(steps::QA));
        check(&red, &report, &judged, &[Claim::Check(name)]);
        check(&request, &report, &judged, &[]);

        let mut planned = result_of(Role::Planner);
        let document = "shared_workspace/sprints/s/spec.md".to_owned();
        planned.artifacts = vec![document.clone(), "src/a.rs".to_owned()];
        let mut report = report_of(Role::Planner, Some(steps::DRAFT));
        check(&request, &report, &planned, &[Claim::Document(document.clone())]);
        report.documents_present = vec![document];
        check(&request, &report, &planned, &[]);
    }
}
