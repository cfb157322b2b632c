//! Plans that people wrote, read and checked by the command line, without a workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::house::{House, Plan, teams};

fn sample(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/plans");
    folder.join(name).display().to_string()
}

async fn plan(arguments: &[&str]) -> (i32, String, String) {
    let all: Vec<&str> = std::iter::once("plan").chain(arguments.iter().copied()).collect();
    teams(&all, &BTreeMap::new()).await
}

#[tokio::test]
async fn each_kind_of_plan_holds_together_and_lists_its_items() {
    for (name, format, ids) in [
        ("prd.md", "prd", "US-001 US-002 US-003"),
        ("plan.md", "epics", "EPIC-001 EPIC-002 EPIC-003 EPIC-004 TASK-010"),
        ("backlog.md", "backlog_table", "T-1 T-2"),
        ("roadmap.md", "roadmap", "phase-1 phase-2 phase-2.1"),
        ("02-01-PLAN.md", "phase_plan", "02-01"),
    ] {
        let (code, out, err) = plan(&["check", &sample(name), "--json"]).await;
        assert_eq!((code, err.as_str()), (0, ""), "{name}: {out}");
        let told: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(told["format"], format);
        let items = told["items"].as_array().unwrap();
        let found: Vec<&str> = items.iter().filter_map(|item| item["id"].as_str()).collect();
        assert_eq!(found.join(" "), ids);
        assert!(items.iter().all(|item| item["criteria"][0]["id"] == "C-1"), "{out}");
    }
}

#[tokio::test]
async fn each_fault_is_told_with_its_line_and_what_to_do() {
    for (name, faults) in [
        (
            "prd-faults.md",
            "5: a cycle: US-001 → US-003 → US-001\n10: US-001 stands twice (also line 5)\n14: US-003 has no \
             criterion\n16: US-003 depends on US-01, which is no item\n21: US-004: the path \"../other/**\" leaves\n21: \
             US-004: the path \"/etc/passwd\" is no path\n22: \"a b\" is no id\n23: the priority \"urgent\"",
        ),
        (
            "plan-faults.md",
            "3: a cycle: EPIC-001 → EPIC-002 → EPIC-001\n9: EPIC-002 depends on EPIC-020\n13: EPIC-002 stands \
             twice\n13: EPIC-002 has no criterion\n15: EPIC-002: the path\n17: EPIC-003 has no criterion",
        ),
        (
            "backlog-faults.md",
            "3: the priority \"soon\"\n3: the estimate \"-1d\" is negative\n3: T-1 has no criterion\n3: T-1 depends on T-9\n3: T-1: the path\n4: \"T 2\" is no \
             id\n5: 4 cells, where a row has 9\n7: these are not the columns",
        ),
        (
            "roadmap-faults.md",
            "3: a cycle: phase-1 → phase-2 → phase-1\n9: phase-2 has no criterion\n11: phase-2 depends on \
             phase-7\n13: phase-2 stands twice",
        ),
        (
            "02-02-PLAN-faults.md",
            "3: 02-02 has no criterion\n4: \"01 02\" is no id\n5: 02-02: the path",
        ),
    ] {
        let (code, out, err) = plan(&["check", &sample(name)]).await;
        assert_eq!(code, 1, "{out}{err}");
        let told: Vec<&str> = err.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
        let faults: Vec<&str> = faults.split('\n').collect();
        assert_eq!(told.len(), faults.len(), "{err}");
        for (told, fault) in told.iter().zip(faults) {
            assert!(told.starts_with(&format!("{}:{fault}", sample(name))), "{told}\n{fault}");
        }
        assert_eq!(err.matches("hint: ").count(), told.len(), "{err}");
        let (code, out, _) = plan(&["check", &sample(name), "--json"]).await;
        let json: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &json["ok"]), (1, &Value::Bool(false)));
        assert_eq!(plan(&["dag", &sample(name)]).await.0, 1);
    }
}

#[tokio::test]
async fn a_plan_is_shown_as_text_and_as_a_picture() {
    let (code, out, _) = plan(&["dag", &sample("plan.md")]).await;
    assert_eq!(code, 0);
    assert!(out.starts_with("Wave 1\n* EPIC-001  Sensors\n"), "{out}");
    assert!(out.ends_with("Longest chain (*): EPIC-001 → EPIC-002 → EPIC-003\n"), "{out}");
    let (code, out, _) = plan(&["dag", &sample("plan.md"), "--svg"]).await;
    assert_eq!(code, 0);
    let picture = roxmltree::Document::parse(&out).unwrap();
    let boxes = picture.descendants().filter(|node| node.has_tag_name("rect")).count();
    assert_eq!(boxes, 1 + 5, "the paper and one box an item");
    let (code, out, _) = plan(&["show", &sample("backlog.md")]).await;
    assert_eq!(code, 0);
    assert!(out.contains("\nT-2  Give it back\n") && out.contains("  after: T-1\n"), "{out}");
}

#[tokio::test]
async fn what_cannot_be_read_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.md");
    for (bytes, words) in [
        (b"# only words\n".to_vec(), "no plan is seen in it"),
        (b"ok\n\xff".to_vec(), "line 2 is not UTF-8"),
        (vec![b'x'; (3 << 20) + 1], "3 MiB"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let (code, out, err) = plan(&["check", path.to_str().unwrap()]).await;
        assert_eq!((code, out.as_str()), (1, ""));
        assert!(err.contains(words) && err.lines().count() <= 2, "{err}");
    }
    let (code, _, err) = plan(&["import", "-"]).await;
    assert!(code == 2 && err.contains("takes a file"), "{err}");
    let (code, _, err) = plan(&["check", "/nowhere/plan.md"]).await;
    assert!(code == 1 && err.contains("/nowhere/plan.md"), "{err}");
}

#[tokio::test]
async fn a_plan_is_taken_in_once_and_a_newer_version_by_its_approval() {
    let house = House::open(Plan::default()).await;
    house.reads("startup", "The team is up").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letters.md");
    let path = file.to_str().unwrap();
    let text = "# Letters\n\n## EPIC-001: Write\nFiles: a/**\n#### Acceptance Criteria\n- [ ] `a` is there\n";
    std::fs::write(&file, text).unwrap();
    let (code, out, err) = house.teams(&["plan", "import", path]).await;
    assert!(code == 0 && out.contains("EPIC-001 · Write"), "{out}{err}");
    let (_, out, _) = house.teams(&["plan", "import", path]).await;
    assert!(out.contains("Nothing was changed"), "{out}");
    std::fs::write(&file, format!("{text}\n## EPIC-002: Send\ndepends_on: [EPIC-001]\n#### Acceptance Criteria\n- [ ] `b`\n"))
        .unwrap();
    let (code, out, _) = house.teams(&["plan", "import", path, "--json"]).await;
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["differences"][0]["how"]), (0, &Value::from("added")), "{out}");
    assert_eq!(house.teams(&["plan", "import", path, "--approve", "0123456"]).await.0, 1);
    let (_, before, _) = house.teams(&["backlog", "list"]).await;
    assert!(before.contains("Write") && !before.contains("Send"), "{before}");
    let digest = told["digest"].as_str().unwrap();
    let (code, out, err) = house.teams(&["plan", "import", path, "--approve", digest]).await;
    assert_eq!(code, 0, "{out}{err}");
    let (_, after, _) = house.teams(&["backlog", "list", "--json"]).await;
    let items: Value = serde_json::from_str(&after).unwrap();
    let items = items.as_array().unwrap();
    assert_eq!(items.len(), 2, "{after}");
    let send = items.iter().find(|item| item["title"] == "Send").unwrap();
    assert_eq!(send["plan"]["plan_id"], "letters");
    assert_eq!(send["depends_on"].as_array().map(Vec::len), Some(1));
    house.close().await;
}

/// Plays a plan by the demo.
async fn simulate(plan: &str, times: &str) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (plan, times) = (write("plan.md", plan), write("times.yaml", times));
    let dir = folder.path().join("demo").display().to_string();
    let arguments = [
        "demo",
        "--dir",
        &dir,
        "--script",
        "plan",
        "--plan",
        &plan,
        "--simulate",
        &times,
        "--json",
    ];
    teams(&arguments, &BTreeMap::new()).await
}

#[tokio::test]
async fn a_simulated_plan_is_delivered_side_by_side_and_tells_its_figures() {
    let epic = |number: u32, on: &str| {
        format!(
            "## EPIC-00{number}: Part {number}\ndepends_on: [{on}]\n#### Acceptance Criteria\n- [ ] its file is there\n\n"
        )
    };
    let plan =
        ["# Parts\n\n".to_owned(), epic(1, ""), epic(2, ""), epic(3, "EPIC-001"), epic(4, "")]
            .concat();
    let (code, out, err) = simulate(&plan, "step: 0.2\nitems: {EPIC-003: 0.1}\nslots: 2\n").await;
    assert_eq!(code, 0, "{out}{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&told["landed"], &told["ejected"], &told["peak_runs"]),
        (&4.into(), &0.into(), &2.into()),
        "{out}"
    );
    assert_eq!(told["critical_path"], serde_json::json!(["Part 1", "Part 3"]), "{out}");
    let seconds = |name: &str| told[name].as_f64().unwrap();
    assert!(
        seconds("makespan_s") > seconds("critical_path_s") && seconds("critical_path_s") > 0.5,
        "{out}"
    );
    assert!(told["check_runs"].as_u64() >= Some(4), "{out}");
}

#[tokio::test]
async fn times_and_plans_that_cannot_be_played_are_one_line() {
    let plan = "# P\n## EPIC-1: a\n#### Acceptance Criteria\n- c\n";
    let cycle = "# P\n## EPIC-1: a\ndepends_on: [EPIC-1]\n\n#### Acceptance Criteria\n- c\n";
    for (plan, times, words) in [
        (plan, "step: -1\n", "`step` is -1"),
        (plan, "step: 1\nslots: 0\n", "`slots` is 0"),
        (plan, "step: 1\nitems: {EPIC-9: 1}\n", "`items.EPIC-9` is no item"),
        (cycle, "step: 1\n", "a cycle: EPIC-1 → EPIC-1"),
    ] {
        let (code, out, err) = simulate(plan, times).await;
        assert!(code == 1 && err.contains(words), "{out}{err}");
    }
    let (code, _, err) = teams(&["demo", "--script", "plan"], &BTreeMap::new()).await;
    assert!(code == 2 && err.contains("--plan FILE"), "{err}");
}
