//! Samples of each format, and what is refused.

use std::fmt::Write as _;

use super::*;
use crate::domain::ids::{PlanItemId, RequirementId};
use crate::domain::plan::Severity;

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
fn names_of_blocks_may_be_plain_or_bold_and_words_after_dependencies_are_words() {
    for name in ["Acceptance Criteria:", "**Definition of Done**", "**Acceptance Criteria:**"] {
        let text = format!(
            "# P\n## EPIC-1: One\n- x\n## EPIC-2: Two\nObjective: say it.\ndepends_on: [EPIC-1]\n\nThis is second.\n\n{name}\n- one line\n"
        );
        let file = PlanFile::read(text.as_bytes()).unwrap();
        let item = &file.plan.items[1];
        assert_eq!(criteria(item), ["one line"], "{name}");
        assert!(item.scope.contains("This is second."), "{name}: {:?}", item.scope);
        assert_eq!(item.depends_on.len(), 1, "{name}");
        assert!(
            file.problems.iter().all(|it| !it.message.contains("no id")),
            "{:?}",
            file.problems
        );
    }
}

#[test]
fn a_comma_within_braces_belongs_to_the_glob() {
    let text = "# P\n## EPIC-1: One\nFiles: src/{a,b}/**, `docs/*.md`\n";
    let plan = PlanFile::read(text.as_bytes()).unwrap().plan;
    assert_eq!(plan.items[0].allowed_paths, ["src/{a,b}/**", "docs/*.md"]);
}

#[test]
fn the_paths_of_an_epic_may_be_a_list() {
    for text in [
        "# P\n## EPIC-1: One\nFiles:\n- src/a.py\n- `docs/*.md`: the guide\n\nPriority: high\n- not a path\n",
        "# P\n## EPIC-1: One\n### Files\n- src/a.py, `docs/*.md`\n### Tasks\n- not a path\n",
        "# P\n## EPIC-1: One\nFiles:\n- src/a.py\n- docs/*.md\n\nWhat to do for users:\n- not a path\n",
        "# P\n## EPIC-1: One\n- **Files:**\n  - src/a.py\n  - docs/*.md\n- **Priority:** high\n",
    ] {
        let item = first(text);
        assert_eq!(item.allowed_paths, ["src/a.py", "docs/*.md"], "{text}");
    }
}

#[test]
fn a_row_that_stands_outside_of_its_table_is_named() {
    let head = "ID | Priority | Task | Description | Estimate | Dependencies | Acceptance Criteria | Allowed Paths | Out of Scope";
    let row = |id: &str| format!("| {id} | high | A | B | 1d | none | it is there | src/ | none |");
    let rule = "|---".repeat(9);
    let text = format!("# P\n| {head} |\n{rule}|\n{}\n\nThen:\n\n{}\n", row("T-1"), row("T-2"));
    let file = PlanFile::read(text.as_bytes()).unwrap();
    assert_eq!(file.plan.items.len(), 1);
    let told: Vec<_> = file.problems.iter().map(|it| (it.line, it.message.as_str())).collect();
    assert_eq!(told, [(8, "this row stands outside of the table")]);
}

/// The first item of a plan.
fn first(text: &str) -> crate::domain::plan::PlanItem {
    PlanFile::read(text.as_bytes()).unwrap().plan.items[0].clone()
}

fn criteria(item: &crate::domain::plan::PlanItem) -> Vec<String> {
    item.criteria.iter().map(ToString::to_string).collect()
}

#[test]
fn criteria_that_begin_with_the_name_of_a_block_stay_criteria() {
    let item = first(
        "# P\n## User Stories\n### US-001: A\n**Acceptance Criteria:**\n- [ ] saved\n- [ ] **Files:** up to 20 MB\n\n#### Notes\n- Do not touch mobile\n",
    );
    assert_eq!(criteria(&item).len(), 2);
    assert!(item.allowed_paths.is_empty() && item.scope.contains("Do not touch mobile"));
    let listed = first(
        "# P\n## User Stories\n### US-001: A\n- **Acceptance Criteria:**\n  - saved\n- **Files:** src/\n",
    );
    assert_eq!(
        (criteria(&listed), listed.allowed_paths),
        (vec!["saved".to_owned()], vec!["src/".to_owned()])
    );
    let headed = first("# P\n## User Stories\n### US-001: A\n#### Acceptance Criteria\n- saved\n");
    assert_eq!(criteria(&headed), ["saved"]);
}

#[test]
fn headings_within_a_phase_are_its_blocks() {
    let item = first(
        "# Roadmap: P\n### Phase 1: Oven\n**Goal:** heat\n| Path | Does |\n|---|---|\n| `/heat` | it heats |\n#### Success Criteria (what is true)\n1. it is hot\n2. it is safe\n#### Notes\nKeep it small.\n### Later\nNothing of it.\n",
    );
    assert_eq!(criteria(&item), ["it is hot", "it is safe"]);
    for told in ["heat", "`/heat` | it heats", "Keep it small."] {
        assert!(item.scope.contains(told), "{told}: {}", item.scope);
    }
    assert!(!item.scope.contains("Nothing"));
}

#[test]
fn requirements_are_read_in_every_form() {
    let stories = "## User Stories\n### US-001: A\n**Acceptance Criteria:**\n- a\n";
    for listed in [
        "- FR-1: it adds\n- FR-2: it prints\n",
        "- **FR-1:** it adds\n  - to the cent\n- **FR-2:** it prints\n",
        "| Id | What |\n|---|---|\n| FR-1 | it adds |\n| FR-2 | it prints |\n",
        "Some words.\n\n**FR-1:** it adds\n\n**FR-2:** it prints\n",
        "FR-1: it adds\n\nFR-2 — it prints\n\nFR-3 and FR-4 come later.\n",
        "**FR-1** to **FR-2** are needed.\n\n- FR-1: it adds\n- FR-2: it prints\n",
        "**FR-1** it adds\n\n**FR-2** it prints\n### Where\n| FR-1 | US-001 |\n|---|---|\n| FR-2 | US-001 |\n",
    ] {
        let text = format!("# P\n{stories}## Functional Requirements\n{listed}");
        let plan = PlanFile::read(text.as_bytes()).unwrap().plan;
        let named: Vec<&str> = plan.requirements.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(named, ["FR-1", "FR-2"], "{listed}");
        assert!(plan.requirements[0].text.starts_with("it adds"), "{:?}", plan.requirements[0]);
        assert_eq!(plan.requirements[0].text.contains("to the cent"), listed.contains("cent"));
    }
}

#[test]
fn stories_below_a_heading_of_their_subject_are_stories() {
    let text = "# P\n## User Stories\n### Authentication\n#### US-001: Login\n**Acceptance Criteria:**\n- a\n#### US-002: Logout\n**Depends on:** US-001\n**Acceptance Criteria:**\n- b\n### Pages\n#### US-003: Home\n**Acceptance Criteria:**\n- c\n";
    let plan = PlanFile::read(text.as_bytes()).unwrap().plan;
    let ids: Vec<&str> = plan.items.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["US-001", "US-002", "US-003"]);
    assert_eq!(plan.items[1].depends_on[0].as_str(), "US-001");
}

#[test]
fn a_task_of_an_epic_may_begin_with_the_name_of_a_directive() {
    let item = first(
        "# P\n## EPIC-1: A\n- [ ] Role: add an admin role\n- [x] Skills: set up the page\n- role: qa\n",
    );
    assert!(
        item.scope.contains("- Role: add an admin role\n- [x] Skills: set up"),
        "{}",
        item.scope
    );
}

#[test]
fn phases_depend_on_all_that_is_named_and_are_done_where_their_plans_are() {
    let text = "# Roadmap: P\n### Phase 1: A\n**Goal**: g\nPlans:\n- [x] 01-01: a\n### Phase 2: B\n**Depends on**: Phase 1 (schema), Phase 4 (the API, all of it)\nPlans:\n- [x] 02-01: a\n- [ ] 02-02: b\n### Phase 3: C\n**Goal**: g\n### Phase 4: D\n**Goal**: g\n## Progress\n| Phase | Plans | Status |\n|---|---|---|\n| 3. C | 1/1 | Complete |\n| 4. D | 0/1 | Not started |\n## Milestones\n| Milestone | State |\n|---|---|\n| 2. First users | Complete |\n";
    let plan = PlanFile::read(text.as_bytes()).unwrap().plan;
    let done: Vec<bool> = plan.items.iter().map(|it| it.done).collect();
    assert_eq!(done, [true, false, true, false]);
    let on: Vec<&str> = plan.items[1].depends_on.iter().map(PlanItemId::as_str).collect();
    assert_eq!(on, ["phase-1", "phase-4"]);
    assert!(plan.items[1].scope.contains("- [x] 02-01: a"));
}

#[test]
fn windows_lines_and_a_byte_order_mark_change_nothing() {
    let plain = PlanFile::read(sample!("prd.md")).unwrap();
    let text = String::from_utf8_lossy(sample!("prd.md")).replace('\n', "\r\n");
    assert_eq!(PlanFile::read(format!("\u{feff}{text}").as_bytes()).unwrap(), plain);
}

#[test]
fn a_heading_that_is_meant_to_begin_an_item_and_does_not_is_a_fault() {
    let epics =
        "## EPIC-001: A\n### Epic notes\nwords\n## EPIC 002: B\n#### EPIC-005: E\n# EPIC-006: F\n";
    let roadmap = "# Roadmap: P\n### Phase 1: A\n#### Phase 1 in words\nwords\n### Phase 2a: B\n### phase 4: C\n### Phase 5\n### Phase 1..2: D\n### Phase 6 and later\n";
    let titled = "# Epic 12: Checkout\n## TASK-001: A\n### Epic 12 again\n";
    let named = "# Roadmap: P\n### Phase 1: A\n## Phase 1\nwords\n";
    for (text, lines) in
        [(epics, vec![4, 5, 6]), (roadmap, vec![5, 6, 7, 8]), (titled, vec![]), (named, vec![])]
    {
        let file = PlanFile::read(text.as_bytes()).unwrap();
        assert_eq!(file.plan.items.len(), 1);
        let faults = file.problems.iter().filter(|it| it.severity == Severity::Fault);
        assert_eq!(faults.map(|it| it.line).collect::<Vec<_>>(), lines, "{:?}", file.problems);
    }
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
    assert_eq!(name("Bu\u{308}ro.md"), name("Büro.md"));
    assert!(plan_id("...").is_err());
}
