//! What guards find in a green change is asked about once, and lands or stays aside as a person or the
//! configuration says.

use std::path::Path;

use serde_json::json;
use teams::domain::gate::GateKind;
use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, EDITED, House, Plan, words};

/// A developer that does these commands as well.
fn developer(commands: &[&str]) -> String {
    let commands: Vec<_> = commands.iter().map(|text| json!(["sh", "-c", text])).collect();
    json!([{"role": "developer", "do": "run", "commands": commands}]).to_string()
}

/// What looks like a key, made up, and nowhere in one piece.
fn key() -> String {
    format!("KEY=sk-{}", "a1B2c3D4".repeat(3))
}

fn git(project: &Path, arguments: &[&str]) {
    let status = std::process::Command::new("git").args(arguments).current_dir(project).status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

#[tokio::test]
async fn what_guards_find_is_shown_and_asked_about_once() {
    let write = format!("echo {} > app.env", key());
    let commands = [
        "rm README.md",
        "printf '{\"dependencies\": {\"left-pad\": \"1\"}}' > package.json",
        "echo back > old.txt; echo 1 > yarn.lock; head -c 1200000 /dev/zero > big.bin",
        "printf '[tool.pytest.ini_options]\naddopts = \"--ignore tests\"\n' > pyproject.toml",
        &write,
    ];
    let mut plan = Plan::script(&developer(&commands));
    plan.checks = "[{name: unit, command: [sh, -c, 'sh test.sh || pytest']}]".to_owned();
    let mut house = House::built(plan).await;
    house.commit_by_hand("pyproject.toml", "[project]\nname = \"a\"\n", "Python");
    house.commit_by_hand("old.txt", "once\n", "There");
    git(&house.project(), &["rm", "-q", "old.txt"]);
    git(&house.project(), &["commit", "-qm", "Gone"]);
    house.start();
    house.reads("startup", "The team is up").await;

    let asked = house.ask(EDIT).await;
    let card = words(&house.reads(&asked, "May this go to the branch?").await);
    for line in [
        "**Files that configure agents or checks:** `pyproject.toml (tool.pytest)`",
        "**Deleted, and nobody asked for that:** `README.md`",
        "**New dependencies:** `left-pad (package.json)`",
        "**Restored, though the branch had deleted it:** `old.txt (",
        "**Large binary files:** `big.bin (1171 kB)`",
        "**Looks like a secret:** `app.env:1`",
    ] {
        assert!(card.contains(line), "{line}\n{card}");
    }
    assert!(!card.contains("A lock file changed alone"), "its manifest changed as well: {card}");
    assert!(!card.contains(&key()), "{card}");
    let gates: Vec<_> = house.state().unwrap().gates.into_values().collect();
    assert_eq!((gates.len(), gates[0].kind), (1, GateKind::GuardedCommit));
    let id = gates[0].request_id.to_string();
    let (code, out, err) = house.teams(&["approve", &id]).await;
    assert!(code == 0 && out.contains("Large binary files: `big.bin (1171 kB)`"), "{out}{err}");
    let (_, out, _) = house.teams(&["why", &id]).await;
    assert!(out.contains("deletion") || out.contains("Deleted"), "{out}");

    // The same change on another head is what was approved.
    house.commit_by_hand("by_hand.txt", "mine\n", "By hand");
    house.press(&house.owner, &asked, "May this go to the branch?", "Approve").await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&request, "gate_opened"), 1);
    assert!(house.times(&request, "candidate") >= 1);
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    assert_eq!(house.on_branch("by_hand.txt"), "mine\n");
    house.close().await;
}

#[tokio::test]
async fn what_was_named_is_not_asked_about_and_what_is_refused_stays_aside() {
    let more = "gates: {secret: refuse}\n".to_owned();
    let script = Some(developer(&["rm -f README.md"]));
    let house = House::open(Plan { script, more: more.clone(), ..Plan::default() }).await;
    let asked = house.ask(&format!("{EDIT}, and remove README.md")).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&request, "gate_opened"), 0);
    house.close().await;

    let script = Some(developer(&[&format!("echo {} > app.env", key())]));
    let house = House::open(Plan { script, more, ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Completed).await;
    assert_eq!(house.times(&request, "gate_opened"), 0);
    let told = words(&house.reads("general", "Kept aside").await);
    assert!(told.contains("The configuration does not allow it"), "{told}");
    assert!(told.contains("Looks like a secret: `app.env:1`"), "{told}");
    assert!(house.commits().is_empty());
    house.close().await;
}

#[tokio::test]
async fn what_qa_leaves_to_a_person_waits_for_one() {
    let house = House::open(Plan::script("- {role: qa, do: abstain}\n")).await;
    let asked = house.ask(EDIT).await;
    let card = words(&house.reads(&asked, "May this go to the branch?").await);
    let request = house.state().unwrap().requests.into_values().next().unwrap();
    let first = request.work.criteria[0].text.replace('`', "'");
    assert!(card.contains(&format!("**Left to you to judge:** `C-1: {first}: ")), "{card}");
    assert!(card.contains("only a person can see it"), "{card}");
    assert!(house.commits().is_empty());
    house.press(&house.owner, &asked, "May this go to the branch?", "Approve").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.close().await;
}

#[tokio::test]
async fn an_item_that_leaves_its_paths_is_asked_about() {
    let sprint = "wip_limit: 3".to_owned();
    let mut house = House::built(Plan { sprint, ..Plan::default() }).await;
    let plan = format!(
        "# Greeting\n\n## EPIC-001: Greet in the morning\nObjective: {EDIT}\nFiles: docs/**\n\
         #### Acceptance Criteria\n- [ ] it says good morning\n\n\
         ## EPIC-002: Greet in the evening\nObjective: in greet.sh replace \"good morning\" with \"good \
         evening\"\nFiles: greet.sh\ndepends_on: [EPIC-001]\n\
         #### Acceptance Criteria\n- [ ] it says good evening\n\n\
         ## EPIC-003: Say when\nObjective: create docs/hours.md with \"9 to 5\"\nFiles: docs/hours.md\n\
         #### Acceptance Criteria\n- [ ] it says when\n"
    );
    let file = house.beside("greeting.md");
    std::fs::write(&file, plan).unwrap();
    house.start();
    house.reads("startup", "The team is up").await;
    let (code, out, err) = house.teams(&["plan", "import", file.to_str().unwrap()]).await;
    assert_eq!(code, 0, "{out}{err}");
    let gate = house.until("a gate", async |house| house.state()?.gates.into_values().next()).await;
    let (_, shown, _) = house.teams(&["approve", gate.request_id.as_str()]).await;
    assert!(shown.contains("Outside the paths of its plan: `greet.sh`"), "{shown}");
    let sprint = house.state().unwrap().scheduler.active_sprint_id.clone().unwrap();
    for (id, words) in [
        ("EPIC-001", "Greet in the morning: "),
        ("EPIC-001", "Outside the paths of its plan: `greet.sh`"),
        (
            "EPIC-002",
            "Greet in the evening begins when this is on the branch: Greet in the morning (in work)",
        ),
        // The first one says that it changes all below docs/.
        ("EPIC-003", "Greet in the morning"),
        (gate.gate_id.as_str(), "waits for a person with the right to approve since "),
        (sprint.as_str(), "At work: `Greet in the morning`"),
    ] {
        let (code, out, err) = house.teams(&["why", id]).await;
        assert!(code == 0 && out.contains(words), "{id}: {out}{err}");
    }
    let (code, out, err) = house.teams(&["board"]).await;
    for line in [
        "- Greet in the morning · waits for a decision",
        "- Greet in the evening · after Greet in the morning",
        "- Say when · after Greet in the morning, which changes the same paths",
        "Longest chain: Greet in the morning → Greet in the evening",
    ] {
        assert!(code == 0 && out.contains(line), "{out}{err}");
    }
    let content = gate.commit.get(..10).unwrap();
    let (code, out, err) =
        house.teams(&["approve", gate.request_id.as_str(), "--content", content]).await;
    assert_eq!(code, 0, "{out}{err}");
    house
        .until("the end", async |house| {
            let state = house.state()?;
            let done =
                house.on_branch("greet.sh") == "echo good evening\n" && house.commits().len() == 3;
            (done && state.scheduler.active_sprint_id.is_none()).then_some(())
        })
        .await;
    house.quiet().await;
    house.close().await;
}

#[tokio::test]
async fn a_plan_waits_for_a_person_whose_no_takes_a_word_that_the_planner_reads() {
    let more = "gates: {plan: ask}\n";
    let mut house = House::open(Plan { more: more.to_owned(), ..Plan::default() }).await;
    let asked = house.ask(EDIT).await;
    let card = words(&house.reads(&asked, "May this plan be built?").await);
    assert!(card.contains("Done when:") && card.contains("Still to come:"), "{card}");
    let id = house.requests().remove(0).request_id.to_string();
    let (_, out, _) = house.teams(&["why", &id]).await;
    assert!(out.contains("may its plan be built?"), "{out}");
    house.press(&house.owner, &asked, "May this plan be built?", "Turn down").await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "plan_rejected");
    assert_eq!(house.times(&blocked, "candidate"), 0);
    house.say(&asked, "and keep the comment above it").await;
    let next = house.until("another gate", async |house| house.state()?.gates.into_values().next());
    let next = next.await;
    assert_eq!(next.kind, GateKind::Plan);
    let (_, runs, _) = house.teams(&["prompt", "show", &id]).await;
    let last = runs.lines().find(|line| line.contains("step=planner_finalize")).unwrap();
    let run = last.split(' ').next().unwrap();
    let (code, told, err) = house.teams(&["prompt", "show", run]).await;
    assert!(code == 0 && told.contains("and keep the comment above it"), "{told}{err}");
    let content = next.artifact.get(..10).unwrap();
    let (code, out, err) = house.teams(&["approve", &id, "--content", content]).await;
    assert_eq!(code, 0, "{out}{err}");
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    // What was settled is kept under the digest that was approved. The same plan once more is no other version.
    house.stop().await;
    let path = house.root().join(format!("shared_workspace/requests/{id}/plan.md"));
    let plan = std::fs::read_to_string(path).unwrap();
    let digest = next.artifact.get(..12).unwrap();
    assert!(plan.contains("Version 1 ") && plan.contains(digest), "{plan}");
    assert!(plan.contains("- C-1 (QA): ") && !plan.contains("Earlier versions"), "{plan}");
    house.start();
    house.close().await;
}

#[tokio::test]
async fn a_plan_that_nobody_could_see_through_is_planned_again_and_then_approved_with_a_reason() {
    let script = json!([{"role": "planner", "do": "propose", "proposals": {
        "acceptance_criteria": ["it works well"], "allowed_paths": ["greet.sh"],
    }}]);
    let mut house = House::open(Plan::script(&script.to_string())).await;
    let asked = house.ask(EDIT).await;
    let back = words(&house.reads(&asked, "The plan goes back to the planner").await);
    assert!(back.contains("works well"), "{back}");
    let card = words(&house.reads(&asked, "May this plan be built?").await);
    assert!(
        card.contains("Something in it does not hold") && card.contains("`greet.sh`"),
        "{card}"
    );
    let request = house.requests().remove(0);
    let id = request.request_id.to_string();
    // The planner was told what was found, and how it is approved is said in the terminal.
    let (_, runs, _) = house.teams(&["prompt", "show", &id]).await;
    let last = runs.lines().find(|line| line.contains("step=planner_finalize")).unwrap();
    let (_, told, _) = house.teams(&["prompt", "show", last.split(' ').next().unwrap()]).await;
    assert!(told.contains("What was found in the plan") && told.contains("works well"), "{told}");
    let (_, shown, _) = house.teams(&["approve", &id]).await;
    assert!(shown.contains("--anyway \"why\"") && shown.contains("works well"), "{shown}");
    assert!(shown.contains("Still to come: ") && shown.contains(" agent runs"), "{shown}");
    let gate = house.state().unwrap().gates.into_values().next().unwrap();
    let content = gate.artifact.get(..10).unwrap();
    let (code, _, err) = house.teams(&["approve", &id, "--content", content]).await;
    assert!(code == 1 && err.contains("Say why it is to be built all the same"), "{err}");

    house.press(&house.owner, &asked, "May this plan be built?", "Approve anyway").await;
    crate::team_verify::fill(&house, "I look at it myself").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.stop().await;
    let path = house.root().join(format!("shared_workspace/requests/{id}/plan.md"));
    let plan = std::fs::read_to_string(path).unwrap();
    assert!(plan.contains("I look at it myself") && plan.contains("- greet.sh"), "{plan}");
    house.start();
    house.close().await;
}
