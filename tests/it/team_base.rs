//! Red before: what fails at the base is told, a change is judged beside it test by test, and what is red and
//! green without a change is flaky.

use teams::domain::evidence::BaseVerdict;
use teams::domain::request::RequestStatus;

use crate::support::fifo;
use crate::support::house::{EDIT, EDITED, House, Plan, words};

/// Writes a JUnit report in which `one` fails always, and `two` where `greet.sh` holds the word.
fn reports(word: &str) -> String {
    let script = format!(
        "mkdir -p out; grep -q {word} greet.sh && two='<failure/>' || two=; \
         echo \"<testsuite name='s'><testcase name='one'><failure/></testcase>\
         <testcase name='two'>$two</testcase></testsuite>\" > out/report.xml; exit 1"
    );
    let script = serde_json::json!(script);
    format!("[{{name: unit, command: [sh, -c, {script}], report: junit out/report.xml}}]")
}

fn plan(checks: String, red_base: &str) -> Plan {
    let more = format!("prove_base: true\ngates: {{red_base: {red_base}}}\n");
    Plan { checks, more, ..Plan::default() }
}

#[tokio::test]
async fn what_failed_before_is_told_first_and_lands_when_a_person_says_so() {
    let house = House::open(plan(reports("never"), "ask")).await;
    let asked = house.ask(EDIT).await;
    let told = house.reads(&asked, "is red before anything is done").await;
    assert!(words(&told).contains("s.one") && !words(&told).contains("s.two"), "{}", words(&told));
    let card = house.reads(&asked, "failed before it").await;
    assert!(words(&card).contains("s.one"), "{}", words(&card));
    assert!(house.commits().is_empty());
    house.press(&house.owner, &asked, "May this go to the branch?", "Approve").await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    let base = request.work.base.clone().unwrap();
    assert_eq!((base.verdict, base.red.first), (BaseVerdict::Red, vec!["s.one".to_owned()]));
    let history = house.history(&request);
    let at = |kind: &str| history.iter().position(|it| it.kind.as_str() == kind).unwrap();
    assert!(at("base") < at("role_report"), "the base comes first");
    assert_eq!(house.on_branch("greet.sh"), EDITED);

    // The tree that landed is the next base, and nobody runs it again.
    let next = house.ask("in greet.sh replace \"good morning\" with \"good evening\"").await;
    house.press(&house.owner, &next, "May this go to the branch?", "Approve").await;
    house.becomes(&next, RequestStatus::Committed).await;
    let kept = house.root().join(".teams_runtime/proofs/trees");
    assert_eq!(std::fs::read_dir(kept).unwrap().count(), 3, "a record a tree");
    house.close().await;
}

#[tokio::test]
async fn what_is_newly_red_goes_back_although_the_base_is_red() {
    // `two` breaks with the edit.
    let house = House::open(plan(reports("morning"), "allow")).await;
    let asked = house.ask(EDIT).await;
    let red = house.reads(&asked, "Newly red").await;
    assert!(words(&red).contains("s.two") && words(&red).contains("Red before"), "{}", words(&red));
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "checks_failing");
    house.quiet().await;
    assert!(house.commits().is_empty());
    house.close().await;
}

#[tokio::test]
async fn red_and_then_green_is_flaky_told_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (begun, go) = (folder.path().join("begun"), folder.path().join("go"));
    fifo(&begun);
    fifo(&go);
    // Green at the base; at the change it is as it is told.
    let script = format!(
        "grep -q hello greet.sh && exit 0; echo up > {}; read line < {}; test $line = ok",
        begun.display(),
        go.display()
    );
    let script = serde_json::json!(script);
    let path = folder.path().display();
    let checks = format!("[{{name: net, command: [sh, -c, {script}], read: [{path}]}}]");
    let house = House::open(plan(checks, "ask")).await;
    let asked = house.ask(EDIT).await;
    for line in ["no\n", "ok\n"] {
        let (begun, go) = (begun.clone(), go.clone());
        let answered = tokio::task::spawn_blocking(move || {
            assert_eq!(std::fs::read_to_string(begun).unwrap(), "up\n");
            std::fs::write(go, line).unwrap();
        });
        answered.await.unwrap();
    }
    let told = house.reads(&asked, "**Flaky**").await;
    assert!(words(&told).contains("net"), "{}", words(&told));
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    let evidence = request.work.evidence.clone().unwrap();
    assert_eq!(evidence.checks[0].compared.as_ref().unwrap().flaky.first, ["net"]);
    house.reads("general", "Flaky: ").await;
    let (code, said, error) = house.teams(&["checks", "flaky", "--json"]).await;
    assert_eq!(code, 0, "{error}");
    let counted: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(counted["net: net"]["times"], 1, "{said}");
    house.close().await;
}

#[tokio::test]
async fn a_tree_that_was_green_is_not_proven_again_for_another_change_that_makes_it() {
    let checks = "[{name: all, command: [cat, /proc/sys/kernel/random/uuid]}]".to_owned();
    let house = House::open(Plan { checks, ..Plan::default() }).await;
    let mut ran = Vec::new();
    for words in [EDIT, "in greet.sh replace \"good morning\" with \"hello\"", EDIT] {
        let asked = house.ask(words).await;
        let request = house.becomes(&asked, RequestStatus::Committed).await;
        let evidence = request.work.evidence.clone().unwrap();
        assert_eq!(request.outcome.commit_sha.as_ref(), Some(&evidence.commit));
        ran.push(evidence.checks[0].log_digest.clone());
    }
    assert!(ran[0] != ran[1] && ran[0] == ran[2], "{ran:?}");
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn tests_are_known_by_the_names_that_cargo_go_and_pytest_print() {
    // `one` was red before, `two` breaks with the edit, `three` is mended by it.
    let now = "grep -q morning greet.sh && two=$bad three=$good || two=$good three=$bad";
    let printed = [
        (
            "bad=FAILED good=ok",
            "printf 'running 3 tests\\ntest one ... FAILED\\ntest two ... %s\\ntest three ... %s\\n\\n\
             test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\\n'",
            ["one", "two", "three"],
        ),
        (
            "bad=FAIL good=PASS",
            "printf '=== RUN   TestOne\\n--- FAIL: TestOne (0.00s)\\n--- %s: TestTwo (0.00s)\\n\
             --- %s: TestThree (0.00s)\\nFAIL\\nFAIL\\tgreet\\t0.1s\\n'",
            ["greet.TestOne", "greet.TestTwo", "greet.TestThree"],
        ),
        (
            "bad=FAILED good=PASSED",
            "printf '==== short test summary info ====\\nFAILED test_a.py::one - no\\n%s test_a.py::two\\n\
             %s test_a.py::three\\n==== 2 failed, 1 passed in 0.01s ====\\n'",
            ["test_a.py::one", "test_a.py::two", "test_a.py::three"],
        ),
    ];
    for (words, prints, [one, two, three]) in printed {
        let script = serde_json::json!(format!("{words}; {now}; {prints} $two $three; exit 1"));
        let checks = format!("[{{name: unit, command: [sh, -c, {script}]}}]");
        let house = House::open(plan(checks, "allow")).await;
        let asked = house.ask(EDIT).await;
        let red = words_of(&house, &asked, "Newly red").await;
        let (newly, others) =
            red.split_once("Newly red").unwrap().1.split_once("Red before").unwrap();
        assert!(
            newly.contains(&format!("`{two}`")) && others.contains(&format!("`{one}`")),
            "{red}"
        );
        assert!(
            !newly.contains(&format!("`{one}`")) && !newly.contains(&format!("`{three}`")),
            "{red}"
        );
        assert!(!others.contains(&format!("`{three}`")), "it is mended: {red}");
        house.becomes(&asked, RequestStatus::Blocked).await;
        house.quiet().await;
        assert!(house.commits().is_empty());
        house.close().await;
    }
}

async fn words_of(house: &House, asked: &str, part: &str) -> String {
    words(&house.reads(asked, part).await)
}

#[tokio::test]
async fn what_failed_before_lands_by_itself_where_that_is_allowed_and_tests_have_names() {
    let house = House::open(plan(reports("never"), "allow")).await;
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
    // Tests that are gone are broken, whether any still passes or not.
    let script = serde_json::json!(
        "mkdir -p out; grep -q morning greet.sh && two= || two=\"<testcase name='two'/>\"; \
         echo \"<testsuite name='s'><testcase name='one'><failure/></testcase>$two</testsuite>\" > out/report.xml; exit 1"
    );
    let gone =
        format!("[{{name: unit, command: [sh, -c, {script}], report: junit out/report.xml}}]");
    let house = House::open(plan(gone, "allow")).await;
    let asked = house.ask(EDIT).await;
    let red = words_of(&house, &asked, "Newly red").await;
    assert!(red.contains("s.two"), "{red}");
    house.becomes(&asked, RequestStatus::Blocked).await;
    assert!(house.commits().is_empty());
    house.close().await;
}
