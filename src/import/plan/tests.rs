//! Samples of each format, and what is refused.

use std::fmt::Write as _;

use super::*;
use crate::domain::ids::{PlanItemId, RequirementId};

macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/plans/", $name))
    };
}

/// A plan as lines: each item with its line, and its parts below it.
fn told(bytes: &[u8]) -> String {
    let file = PlanFile::read(bytes).unwrap();
    let mut text = format!("{} \"{}\"\n", file.format, file.plan.title);
    for requirement in &file.plan.requirements {
        let _ = writeln!(text, "{} {} {}", requirement.id, requirement.when, requirement.text);
    }
    for (at, item) in file.plan.items.iter().enumerate() {
        let line = file.line(PlanPart::Item(at));
        let done = if item.done { " done" } else { "" };
        let _ = writeln!(
            text,
            "{line}: {} \"{}\" rank {}{done}",
            item.id, item.title, item.priority_rank
        );
        let _ = writeln!(text, "  scope {:?}", item.scope);
        for (number, criterion) in item.criteria.iter().enumerate() {
            let line = file.line(PlanPart::Criterion(at, number));
            let _ = writeln!(text, "  {line}: {criterion}");
        }
        let ids = |ids: Vec<&str>| ids.join(" ");
        let on = ids(item.depends_on.iter().map(PlanItemId::as_str).collect());
        let serves = ids(item.requirements.iter().map(RequirementId::as_str).collect());
        let _ = writeln!(text, "  after [{on}] serves [{serves}]");
        let _ =
            writeln!(text, "  allowed {:?} excluded {:?}", item.allowed_paths, item.excluded_paths);
    }
    for problem in &file.problems {
        let _ = writeln!(text, "{} at {}: {}", problem.severity, problem.line, problem.message);
    }
    text
}

#[test]
fn a_requirement_document() {
    insta::assert_snapshot!(told(sample!("prd.md")));
}

#[test]
fn epics() {
    insta::assert_snapshot!(told(sample!("plan.md")));
}

#[test]
fn a_backlog_table() {
    insta::assert_snapshot!(told(sample!("backlog.md")));
}

#[test]
fn a_roadmap() {
    insta::assert_snapshot!(told(sample!("roadmap.md")));
}

#[test]
fn the_plan_of_a_phase() {
    insta::assert_snapshot!(told(sample!("02-01-PLAN.md")));
}

#[test]
fn all_separators_and_both_forms_of_dependencies_are_the_same_epics() {
    let of = |separator: &str, on: &str| {
        let text = format!(
            "# P\n## EPIC-001{separator}One\n- x\n\n## EPIC-002{separator}Two\n{on}\n\n#### Acceptance Criteria\n- c\n"
        );
        PlanFile::read(text.as_bytes()).unwrap().plan
    };
    let first = of(" - ", "depends_on: [EPIC-001]");
    assert_eq!(first.items[1].depends_on[0].as_str(), "EPIC-001");
    for separator in [" - ", " – ", " — ", ": ", " : "] {
        for on in [
            "depends_on: [EPIC-001]",
            "depends_on:\n- EPIC-001",
            "Depends on: EPIC-001",
            "depends_on: ['EPIC-001']",
        ] {
            assert_eq!(of(separator, on), first, "{separator:?} {on:?}");
        }
    }
}

#[test]
fn a_comma_within_braces_belongs_to_the_glob() {
    let text = "# P\n## EPIC-1: One\nFiles: src/{a,b}/**, `docs/*.md`\n";
    let plan = PlanFile::read(text.as_bytes()).unwrap().plan;
    assert_eq!(plan.items[0].allowed_paths, ["src/{a,b}/**", "docs/*.md"]);
}

#[test]
fn windows_lines_and_a_byte_order_mark_change_nothing() {
    let plain = PlanFile::read(sample!("prd.md")).unwrap();
    let text = String::from_utf8_lossy(sample!("prd.md")).replace('\n', "\r\n");
    assert_eq!(PlanFile::read(format!("\u{feff}{text}").as_bytes()).unwrap(), plain);
}

#[test]
fn what_is_no_plan_is_refused_with_what_to_do() {
    let refused = |bytes: &[u8]| PlanFile::read(bytes).unwrap_err().to_string();
    assert!(refused(b"# A title\n\nand words\n").contains("## User Stories"));
    assert!(refused(b"").contains("no plan"));
    assert!(refused(b"ok\nok\n\xff\xfe").contains("line 3 is not UTF-8"));
    assert!(refused(&vec![b'a'; LARGEST + 1]).contains("3 MiB"));
    let many: String = (0..=MOST_ITEMS).map(|n| format!("## EPIC-{n}: x\n")).collect();
    assert!(refused(many.as_bytes()).contains("2001 items"));
}

#[test]
fn plans_are_named_by_their_files() {
    let name = |file: &str| plan_id(file).unwrap().to_string();
    assert_eq!(name("docs/My PRD (v2).md"), "my-prd-v2");
    assert_eq!(name("PLAN.md"), "plan");
    assert_ne!(name("계획.md"), name("기획.md"));
    // As other computers write the same letters.
    assert_eq!(name("\u{1100}\u{1161}.md"), name("가.md"));
    assert!(plan_id("...").is_err());
}
