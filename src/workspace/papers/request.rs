//! The plan of one request, as people read it.

use chrono_tz::Tz;
use serde_json::{Value, json};

use super::values::as_value;
use super::{Keep, Paper, is_korean, nothing};
use crate::assets::catalog::Catalog;
use crate::assets::{self, AssetError, Values};
use crate::domain::criterion::{Criterion, Judge};
use crate::domain::language::Language;
use crate::domain::plan_review::PlanFinding;
use crate::domain::request::Request;

/// The plan in the request's folder of the shared workspace; none where nothing was planned.
pub fn request_plan(request: &Request, zone: Tz) -> Result<Option<Paper>, AssetError> {
    let Some(plan) = &request.work.planned else { return Ok(None) };
    let (language, review) = (request.conversation.language, &request.work.plan_review);
    // What somebody said to the team alone stays there.
    let is_dm = request.conversation.reply_route.is_dm;
    let criteria: Vec<Value> = plan
        .criteria
        .iter()
        .zip(1..)
        .map(|(criterion, number)| {
            let judge = judge(criterion, language);
            json!({ "id": format!("C-{number}"), "judge": judge, "text": criterion.text })
        })
        .collect();
    let values = Values::of(json!({
        "ko": is_korean(language),
        "nothing": nothing(language),
        "zone": zone.name(),
        "id": request.request_id,
        "author": if is_dm { "" } else { &request.conversation.reply_route.author_name },
        "text": if is_dm { "" } else { &request.body },
        "plan": as_value(plan)?,
        "criteria": criteria,
        "requirements": plan.requirements,
        "earlier": plan.earlier,
        "paths": plan.allowed_paths,
        "kept": plan.excluded_paths,
        "findings": in_words(&review.findings, language),
        "accepted": review.accepted,
    }));
    let name = "documents/request/plan.md";
    Ok(Some(Paper {
        path: format!("shared_workspace/requests/{}/plan.md", request.request_id),
        heading: "Plan",
        name: "plan",
        text: assets::render_document(name, &assets::scaffold_text(name)?, &values)?,
        keep: Keep::Part,
    }))
}

/// What was found, as it is read in a language: what rules say of it is in English elsewhere.
fn in_words(findings: &[PlanFinding], language: Language) -> Vec<PlanFinding> {
    let is_said = |one: &PlanFinding| language == Language::En || one.rule.is_none();
    let mut findings = findings.to_vec();
    if findings.iter().all(is_said) {
        return findings;
    }
    let Ok(catalog) = Catalog::builtin() else { return findings };
    for one in findings.iter_mut().filter(|one| !is_said(one)) {
        let Some(rule) = one.rule else { continue };
        one.text = catalog.label(&format!("plan_rule.{rule}"), language);
        if !one.phrase.is_empty() {
            one.text = format!("{} (“{}”)", one.text, one.phrase);
        }
        one.advice.clear();
    }
    findings
}

fn judge(criterion: &Criterion, language: Language) -> String {
    match (&criterion.judge, language) {
        (Judge::Qa, _) => "QA".to_owned(),
        (Judge::Check(name), Language::En) => format!("check {name}"),
        (Judge::Check(name), Language::Ko) => format!("검사 {name}"),
        (Judge::Person, Language::En) => "a person".to_owned(),
        (Judge::Person, Language::Ko) => "사람".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RequestId;
    use crate::domain::plan::{PlanRule, Requirement, RequirementTime};
    use crate::domain::plan_review::{AcceptedFindings, PlanReview, PlanReviewer};
    use crate::domain::request::RequestWork;
    use crate::domain::request_plan::RequestPlan;
    use crate::domain::time::Timestamp;

    #[test]
    fn a_plan_reads_the_same_in_both_languages() {
        let at = |minutes: u64| {
            Timestamp::parse("2026-03-24T09:00:00").unwrap().plus_seconds(minutes * 60)
        };
        let plan = RequestPlan::after(None, "a".repeat(64), at(0));
        let first = Request {
            work: RequestWork { planned: Some(plan.clone()), ..RequestWork::default() },
            ..Request::default()
        };
        let paper = request_plan(&first, Tz::Asia__Seoul).unwrap().unwrap();
        assert!(
            paper.text.contains("Version 1") && paper.text.contains("- none"),
            "{}",
            paper.text
        );
        let plan = RequestPlan {
            summary: "One line of greet.sh.\n<!-- teams:generated plan -->".to_owned(),
            criteria: vec![
                "(check: unit) it greets".into(),
                "it is | calm\n# forged".into(),
                "(manual) it reads well".into(),
            ],
            decisions: vec!["Which form? casual (decided by Mina)".to_owned()],
            requirements: Requirement::numbered([
                ("it greets".to_owned(), RequirementTime::Now),
                ("in Thai\n# too".to_owned(), RequirementTime::Later),
                ("by mail".to_owned(), RequirementTime::OutOfScope),
            ]),
            allowed_paths: vec!["greet.sh".to_owned()],
            excluded_paths: vec!["docs/**".to_owned()],
            ..RequestPlan::after(Some(plan), "b".repeat(64), at(7))
        };
        let mut request = Request {
            request_id: RequestId::parse("20260324-0000000a").unwrap(),
            body: "make it friendlier\n## please".to_owned(),
            ..Request::default()
        };
        assert_eq!(request_plan(&request, Tz::Asia__Seoul).unwrap(), None);
        request.work.planned = Some(plan);
        let found = PlanFinding {
            by: PlanReviewer::Architect,
            rule: None,
            part: "C-2".to_owned(),
            phrase: String::new(),
            text: "nobody sees\n## whether".to_owned(),
            advice: "name what is seen".to_owned(),
        };
        let by_rule = PlanFinding {
            by: PlanReviewer::Rules,
            rule: Some(PlanRule::Unseen),
            phrase: "works well".to_owned(),
            text: "\"works well\" is nothing that anybody can see".to_owned(),
            ..found.clone()
        };
        request.work.plan_review = PlanReview {
            findings: vec![found, by_rule],
            accepted: Some(AcceptedFindings {
                by: "Mina".to_owned(),
                reason: "I look at it myself".to_owned(),
                at: at(9),
            }),
            ..PlanReview::default()
        };
        "Mina".clone_into(&mut request.conversation.reply_route.author_name);
        for language in [Language::En, Language::Ko] {
            request.conversation.language = language;
            let paper = request_plan(&request, Tz::Asia__Seoul).unwrap().unwrap();
            assert_eq!(paper.path, "shared_workspace/requests/20260324-0000000a/plan.md");
            insta::assert_snapshot!(format!("request_plan_{}", language.as_str()), paper.text);
        }
    }
}
