//! What holds together, and what is refused.

use super::*;
use crate::domain::config::Problem;

/// The built-in definition with texts replaced.
fn edited(pairs: &[(&str, &str)]) -> String {
    let mut text = BUILT_IN.to_owned();
    for (from, to) in pairs {
        assert!(text.contains(from), "{from:?} is not in the built-in lifecycle");
        text = text.replacen(from, to, 1);
    }
    text
}

/// The faults of a definition: each with the key and what to write.
fn faults(text: &str) -> Vec<String> {
    let problems = Lifecycle::compile(text).expect_err("a fault");
    let line = |it: &Problem| {
        assert!(it.hint.is_some(), "{it:?}");
        format!("{}: {} [{}]", it.key_path(), it.message, it.hint.clone().unwrap_or_default())
    };
    problems.iter().map(line).collect()
}

#[track_caller]
fn refused(pairs: &[(&str, &str)], key: &str, words: &str) {
    let found = faults(&edited(pairs));
    let told =
        found.iter().any(|line| line.starts_with(&format!("{key}: ")) && line.contains(words));
    assert!(told, "{key} {words}: {found:#?}");
}

#[test]
fn the_built_in_lifecycle_holds_together_and_is_its_text() {
    let built_in = Lifecycle::built_in();
    assert_eq!(built_in.steps().count(), 12);
    assert_eq!(built_in.landing(), StepName::of("closeout"));
    let written = serde_json::to_string(built_in).unwrap();
    let read: Lifecycle = serde_json::from_str(&written).unwrap();
    assert_eq!((read.digest(), &read), (built_in.digest(), &**built_in));
    assert!(serde_json::from_str::<Lifecycle>("\"lifecycle: request\"").is_err());
    let lines = BUILT_IN.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 150, "{lines} lines; it is to stay small");
}

#[test]
fn a_name_is_short_and_plain() {
    assert_eq!(StepName::parse(" Security_Review2 ").unwrap().as_str(), "security_review2");
    for wrong in ["", "2fa", "a-b", "a/b", "../x", "a b", "\u{e4}", &"a".repeat(33)] {
        assert!(StepName::parse(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(StepName::parse(&"a".repeat(32)).unwrap().as_str().len(), 32);
}

#[test]
fn names_that_are_not_there_are_told_with_the_nearest() {
    refused(
        &[("begin: research_initial", "begin: reserch_initial")],
        "begin",
        "did you mean `research_initial`?",
    );
    refused(
        &[("within: review", "within: revue")],
        "steps.architect_review.on.revise",
        "no counter `revue`",
    );
    refused(
        &[("    role: qa\n", "    role: tester\n")],
        "steps.qa_validation.role",
        "unknown variant",
    );
    refused(
        &[("    on: {done: planner_draft}", "    on: {finished: planner_draft}")],
        "steps.research_initial.on.?",
        "unknown variant",
    );
    refused(
        &[("    on: {done: planner_draft}", "    on: {pass: planner_draft}")],
        "steps.research_initial.on.pass",
        "nothing like that",
    );
    refused(
        &[("resume: planner_finalize", "resume: developer_build")],
        "resume",
        "has to lead to a plan",
    );
    refused(
        &[("    counts: review\n", "    count: review\n")],
        "steps.architect_review.count",
        "unknown field",
    );
    refused(&[("attempts: 3 ", "# ")], "steps.research_initial.attempts", "no end");
    refused(&[("timeout: 60m ", "timeout: soon ")], "steps.qa_validation.timeout", "no end");
    refused(&[("  turns: 48 ", "  turnz: 48 ")], "counters.turns", "every lifecycle needs it");
    refused(&[("  advice: 2\n", "  advice: 100000\n")], "counters.advice", "not between");
    assert!(!faults("").is_empty() && !faults("[]").is_empty() && !faults("a: [").is_empty());
    assert!(!faults(&"a".repeat(70_000)).is_empty());
    let twice = edited(&[("  closeout:\n", "  qa_validation:\n    runtime: land\n  closeout:\n")]);
    assert!(faults(&twice)[0].contains("twice"), "{:?}", faults(&twice));
}

#[test]
fn every_step_is_reached_and_reaches_the_end() {
    let nowhere =
        "  lonely:\n    role: architect\n    result: guidance\n    on: {done: developer_build}\n";
    refused(
        &[("  closeout:\n", &format!("{nowhere}  closeout:\n"))],
        "steps.lonely",
        "nothing leads here",
    );
    // QA passes only to the developer: nothing ever lands.
    refused(
        &[
            ("      pass: closeout\n", "      pass: developer_revision\n"),
            ("      answered: closeout\n", ""),
            ("      answered: closeout\n", ""),
        ],
        "steps.qa_validation",
        "no way leads",
    );
}

#[test]
fn a_loop_without_a_counter_is_refused() {
    let free = ("{to: designer_advisory, charge: advice}", "designer_advisory");
    let ux = (
        "ux: {to: designer_advisory, charge: advice, else: planner_finalize}",
        "ux: planner_finalize",
    );
    refused(&[ux, free, free], "steps.planner_finalize.on.ask_designer", "no end");
    refused(
        &[("revise: {to: developer_revision, within: review}", "revise: developer_revision")],
        "steps.architect_review.on.revise",
        "no end",
    );
    // Nobody counts what the edge asks for, or the way that is left when it is used up goes round as well.
    refused(
        &[("    counts: review\n", "")],
        "steps.architect_review.on.revise",
        "nothing counts `review`",
    );
    refused(
        &[(
            "revise: {to: developer_revision, within: review}",
            "revise: {to: developer_revision, within: review, else: developer_build}",
        )],
        "steps.architect_review.on.revise",
        "no end",
    );
}

/// What data cannot switch off: each way around it that a definition could try.
#[test]
fn nothing_lands_unproven() {
    // No second way to the branch, no landing without evidence, no verdict on what was not proven.
    refused(
        &[("      pass: closeout\n", "      pass: committed\n")],
        "steps.qa_validation.on.pass",
        "no step `committed`",
    );
    refused(
        &[(
            "    runtime: land\n    needs: [commit, evidence]",
            "    runtime: land\n    needs: [commit]",
        )],
        "steps.closeout.needs",
        "not proven",
    );
    refused(
        &[(
            "    result: verdict\n    only_if: [route]\n    needs: [commit, evidence]",
            "    result: verdict",
        )],
        "steps.qa_validation.needs",
        "not proven",
    );
    refused(
        &[(
            "    result: review\n    only_if: [route]\n    needs: [commit, evidence]",
            "    result: review",
        )],
        "steps.architect_review.needs",
        "exact commit",
    );
    let second = "  shortcut:\n    runtime: land\n    needs: [commit, evidence]\n    on: {red: {to: developer_revision, charge: checks}, conflict: developer_revision, no_change: developer_build}\n";
    refused(
        &[("  closeout:\n", &format!("{second}  closeout:\n"))],
        "steps",
        "2 of the steps land",
    );
    refused(
        &[("    runtime: land\n", "    runtime: land\n    role: developer\n")],
        "steps.closeout.role",
        "no role lands",
    );
}

#[test]
fn gates_are_not_the_business_of_a_lifecycle() {
    // Guarded paths and approvals are asked about by the engine, whatever a definition says.
    refused(
        &[("lifecycle: request\n", "lifecycle: request\ngates: {guarded_commit: allow}\n")],
        "gates",
        "unknown field `gates`",
    );
    refused(
        &[("    runtime: land\n", "    runtime: land\n    approve: true\n")],
        "steps.closeout.approve",
        "unknown field `approve`",
    );
}

#[test]
fn only_qa_gives_the_verdict_and_only_the_developer_writes() {
    refused(
        &[("    role: qa\n", "    role: developer\n")],
        "steps.qa_validation.role",
        "cannot give this result",
    );
    refused(
        &[("    result: review\n", "    result: review\n    access: write\n")],
        "steps.architect_review.access",
        "only who makes the change",
    );
    refused(
        &[("    access: write\n", "")],
        "steps.developer_build.access",
        "write `access: write`",
    );
}

#[test]
fn a_negative_judgement_never_leads_past_the_next_one() {
    refused(
        &[(
            "revise: {to: developer_revision, within: review}",
            "revise: {to: closeout, within: review}",
        )],
        "steps.architect_review.on.revise",
        "without being judged again",
    );
    refused(
        &[(
            "      red: {to: developer_revision, charge: checks}\n",
            "      red: {to: closeout, charge: checks}\n",
        )],
        "steps.qa_validation.on.red",
        "without being judged again",
    );
    // Also not by a detour.
    refused(
        &[(
            "    on: {done: qa_validation, review: architect_review}",
            "    on: {done: closeout, review: architect_review}",
        )],
        "steps.qa_validation.reopen.implementation",
        "without being judged again",
    );
}

#[test]
fn what_qa_has_refused_comes_to_qa_again() {
    assert_eq!(Lifecycle::built_in().problems_of_new(), []);
    // QA before the review.
    let text = BUILT_IN
        .replace("    on: {done: architect_review}\n", "    on: {done: qa_validation}\n")
        .replace("      pass: qa_validation\n", "      pass: closeout\n")
        .replacen(
            "      pass: closeout\n      red: {to: developer_revision",
            "      pass: architect_review\n      red: {to: developer_revision",
            1,
        );
    let swapped = Lifecycle::compile(&text).expect("a lifecycle");
    let problems: Vec<String> =
        swapped.problems_of_new().into_iter().map(|problem| problem.key.join(".")).collect();
    assert!(
        problems.contains(&"steps.qa_validation.reopen.architecture".to_owned()),
        "{problems:?}"
    );
}

#[test]
fn what_is_sent_back_is_counted_and_what_is_no_change_is_built_again() {
    let problems = |from: &str, to: &str| -> Vec<String> {
        assert!(BUILT_IN.contains(from), "{from}");
        let lifecycle = Lifecycle::compile(&BUILT_IN.replacen(from, to, 1)).expect("a lifecycle");
        lifecycle.problems_of_new().into_iter().map(|problem| problem.key.join(".")).collect()
    };
    // A second review, copied without the line that counts.
    let second = "  security_review:\n    role: architect\n    result: review\n    prompt: architect_review\n    \
                  needs: [commit]\n    on:\n      pass: qa_validation\n      revise: {to: developer_revision, within: review}\n      \
                  no_change: developer_revision\n\n  developer_revision:\n";
    let text = BUILT_IN.replacen("  developer_revision:\n", second, 1);
    let text = text.replacen("on: {done: qa_validation, ", "on: {done: security_review, ", 1);
    let lifecycle = Lifecycle::compile(&text).unwrap_or_else(|found| panic!("{found:#?}\n{text}"));
    let found: Vec<String> =
        lifecycle.problems_of_new().into_iter().map(|problem| problem.key.join(".")).collect();
    assert_eq!(found, ["steps.security_review.on.revise"]);
    let found = problems("      no_change: developer_build\n", "      no_change: qa_validation\n");
    assert_eq!(found.len(), 1, "{found:?}");
    let advice = "    result: advice\n    on: {done: planner_finalize}";
    let found = problems(advice, "    result: advice\n    on: {done: developer_build}");
    assert_eq!(found, ["steps.designer_advisory.on.done"]);
}

#[test]
fn every_attempt_has_an_end_and_an_owner() {
    refused(
        &[("    role: research\n", "    role: research\n    timeout: 25h\n")],
        "steps.research_initial.timeout",
        "no end",
    );
    refused(
        &[("    role: research\n", "    role: research\n    attempts: 0\n")],
        "steps.research_initial.attempts",
        "no end",
    );
    refused(&[("    role: research\n", "")], "steps.research_initial.role", "has to be named");
}

#[test]
fn the_lifecycles_of_sprints_and_sourcing_hold_together() {
    let sprint = Lifecycle::of(Subject::Sprint);
    assert_eq!((sprint.subject, sprint.begin.as_str()), (Subject::Sprint, "baseline"));
    assert_eq!(sprint.stop.as_str(), "inspection");
    let sourcing = Lifecycle::of(Subject::Sourcing);
    assert_eq!(sourcing.begin_blocked.as_str(), "blocked_backlog_review");
    for lifecycle in [sprint, sourcing] {
        let read: Lifecycle =
            serde_json::from_str(&serde_json::to_string(lifecycle).unwrap()).unwrap();
        assert_eq!(&read, &**lifecycle);
    }
}

/// What a definition of a sprint could get wrong.
#[test]
fn a_sprint_ends_and_asks_people_where_it_cannot_be_planned() {
    let edited = |from: &str, to: &str| {
        assert!(SPRINT.contains(from), "{from:?} is not in the lifecycle of sprints");
        SPRINT.replacen(from, to, 1)
    };
    for (from, to, key, words) in [
        // A step that the planner gets back for ever, one that nothing leads to, and no end.
        (
            "again: {to: artifact_sync, charge: artifact_sync}",
            "again: artifact_sync",
            "steps.artifact_sync.on.again",
            "this loop has no end",
        ),
        ("on: {done: research}", "on: {done: work}", "steps.research", "nothing leads here"),
        ("on: {done: archive}", "on: {done: inspection}", "steps.archive", "nothing leads here"),
        ("stop: inspection", "stop: end", "stop", "no step `end`"),
        ("stop: inspection ", "# ", "stop", "it is not there"),
        // A request's steps and keys, and a role for what the runtime does.
        (
            "result: ongoing_review",
            "result: verdict",
            "steps.ongoing_review",
            "no sprint has such a step",
        ),
        ("lifecycle: sprint", "lifecycle: sprint\nresume: work", "resume", "nothing of a sprint"),
        (
            "runtime: inspect ",
            "runtime: inspect\n    role: qa ",
            "steps.inspection.role",
            "does this itself",
        ),
        ("role: research", "role: developer", "steps.research.role", "cannot give this result"),
        (
            "runtime: archive",
            "runtime: baseline",
            "steps",
            "2 of the steps have `runtime: baseline`",
        ),
        (
            "only_if: [worked]",
            "only_if: [rained]",
            "steps.closing_report.only_if[0]",
            "unknown variant",
        ),
        ("timeout: 60m ", "# ", "steps.research.timeout", "no end"),
    ] {
        let found = faults(&edited(from, to));
        let told =
            found.iter().any(|line| line.starts_with(&format!("{key}: ")) && line.contains(words));
        assert!(told, "{key} {words}: {found:#?}");
    }
    // A request knows no condition but its route, building and landing are on every one, and it has no step of a sprint.
    refused(
        &[("    only_if: [route]\n", "    only_if: [research]\n")],
        "steps.research_initial.only_if",
        "nothing of a request",
    );
    for step in ["developer_build", "closeout", "planner_finalize"] {
        let head = format!("  {step}:\n");
        let optional = format!("{head}    only_if: [route]\n");
        refused(&[(&head, &optional)], &format!("steps.{step}.only_if"), "on every route");
    }
    refused(
        &[("    result: guidance\n", "    result: ongoing_review\n")],
        "steps.architect_guidance",
        "no request has such a step",
    );
}

#[test]
fn the_straight_way_ends_where_a_request_lands() {
    let way = Lifecycle::built_in().straight_way();
    let names: Vec<&str> = way.iter().map(StepName::as_str).collect();
    let wanted = [
        "research_initial",
        "planner_draft",
        "architect_guidance",
        "developer_build",
        "architect_review",
        "qa_validation",
        "closeout",
    ];
    assert_eq!(names, wanted);
}
