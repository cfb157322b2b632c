//! The names of tests: from JUnit XML, and from what cargo test, `go test -v` and `pytest -rA` print. What is not
//! recognised gives no names, and then the check is judged as a whole.

use std::sync::LazyLock;

use regex::Regex;
use roxmltree::{Document, Node};

use crate::domain::test_report::{TestOutcome, TestOutcomes};

/// Reads a report. Document types, with which a report could grow without end, are refused.
///
/// # Errors
/// One line that says what is wrong with the text.
pub(super) fn junit(text: &str) -> Result<TestOutcomes, String> {
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    let root = document.root_element();
    if !matches!(root.tag_name().name(), "testsuites" | "testsuite") {
        return Err(format!("its root is <{}>", root.tag_name().name()));
    }
    let mut found = TestOutcomes::default();
    for case in root.descendants().filter(|node| node.has_tag_name("testcase")) {
        let has = |name: &str| case.children().any(|child| child.has_tag_name(name));
        let outcome = if has("failure") || has("error") {
            TestOutcome::Failed
        } else if has("skipped") {
            TestOutcome::Skipped
        } else {
            TestOutcome::Passed
        };
        found.add(junit_name(case), outcome);
    }
    Ok(found)
}

/// The class and the name; where there is no class, the suite.
fn junit_name(case: Node<'_, '_>) -> String {
    let name = case.attribute("name").unwrap_or_default();
    let class = case.attribute("classname").filter(|class| !class.is_empty());
    let suite = || case.parent().and_then(|suite| suite.attribute("name"));
    match class.or_else(suite).filter(|group| !group.is_empty()) {
        Some(group) => format!("{group}.{name}"),
        None => name.to_owned(),
    }
}

/// Reads an output without colours.
pub(super) fn printed(stdout: &str, stderr: &str) -> TestOutcomes {
    let mut found = TestOutcomes::default();
    cargo(stdout, stderr, &mut found);
    go(stdout, &mut found);
    pytest(stdout, &mut found);
    found
}

static CARGO_TEST: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^test (.+?) \.\.\. (ok|FAILED|ignored)(?:$|,)").ok());
static CARGO_SUITE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s+(?:Running (?:unittests )?(\S+) \((?:.*[/\\])?(\S+?)(?:-[0-9a-f]{16})?\)|(Doc-tests \S+))$").ok()
});
static LINE_NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r" \(line \d+\)").ok());

/// The suites stand on the other stream, in the same order.
fn cargo(stdout: &str, stderr: &str, found: &mut TestOutcomes) {
    let (Some(test), Some(suite), Some(number)) =
        (CARGO_TEST.as_ref(), CARGO_SUITE.as_ref(), LINE_NUMBER.as_ref())
    else {
        return;
    };
    // Packages of a workspace have files of the same name.
    let name_of = |groups: regex::Captures<'_>| match (groups.get(1), groups.get(2)) {
        (Some(file), Some(binary)) => Some(format!("{} {}", binary.as_str(), file.as_str())),
        _ => groups.get(3).map(|it| it.as_str().to_owned()),
    };
    let suites: Vec<String> =
        stderr.lines().filter_map(|line| suite.captures(line)).filter_map(name_of).collect();
    let begins = |line: &str| {
        line.strip_prefix("running ").is_some_and(|it| it.ends_with(" tests") || it == "1 test")
    };
    let told = stdout.lines().filter(|line| begins(line)).count() == suites.len();
    let mut at = None;
    for line in stdout.lines() {
        if begins(line) {
            at = Some(at.map_or(0, |at: usize| at + 1));
        }
        let Some(groups) = test.captures(line) else { continue };
        let outcome = match &groups[2] {
            "ok" => TestOutcome::Passed,
            "FAILED" => TestOutcome::Failed,
            _ => TestOutcome::Skipped,
        };
        // Documentation moves within its file.
        let name = number.replace_all(&groups[1], "").into_owned();
        let suite = at.and_then(|at| suites.get(at)).filter(|_| told);
        found.add(suite.map_or_else(|| name.clone(), |suite| format!("{suite}: {name}")), outcome);
    }
}

/// The line of a package follows those of its tests.
fn go(stdout: &str, found: &mut TestOutcomes) {
    let mut open: Vec<(String, TestOutcome)> = Vec::new();
    for line in stdout.lines() {
        let trimmed = line.trim_start();
        let outcomes = [
            ("--- PASS: ", TestOutcome::Passed),
            ("--- FAIL: ", TestOutcome::Failed),
            ("--- SKIP: ", TestOutcome::Skipped),
        ];
        let test = outcomes.iter().find_map(|(begin, outcome)| {
            let name = trimmed.strip_prefix(begin)?.split(' ').next()?;
            Some((name.to_owned(), *outcome))
        });
        open.extend(test);
        let package = line.strip_prefix("ok  \t").or_else(|| line.strip_prefix("FAIL\t"));
        let Some(package) = package.and_then(|it| it.split(['\t', ' ']).next()) else { continue };
        let failed = open.iter().any(|(_, outcome)| *outcome == TestOutcome::Failed);
        // A build that broke, or a panic outside of a test.
        if line.starts_with("FAIL\t") && !failed {
            found.add(package.to_owned(), TestOutcome::Failed);
        }
        for (name, outcome) in open.drain(..) {
            found.add(format!("{package}.{name}"), outcome);
        }
    }
}

/// The short summary at the end.
fn pytest(stdout: &str, found: &mut TestOutcomes) {
    let summary = stdout.lines().skip_while(|line| !line.contains(" short test summary info "));
    for line in summary {
        let Some((word, rest)) = line.split_once(' ') else { continue };
        let outcome = match word {
            "PASSED" | "XPASS" => TestOutcome::Passed,
            "FAILED" | "ERROR" => TestOutcome::Failed,
            // What is expected to fail proves nothing, as what is left out does not.
            "SKIPPED" | "XFAIL" => TestOutcome::Skipped,
            _ => continue,
        };
        // Why it failed follows the name.
        let name = rest.split(" - ").next().unwrap_or(rest).trim();
        found.add(name.to_owned(), outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: &TestOutcomes, passed: &[&str], failed: &[&str]) {
        let all = |names: &std::collections::BTreeSet<String>| {
            names.iter().map(String::as_str).collect::<Vec<_>>().join("|")
        };
        assert_eq!((all(&found.passed), all(&found.failed)), (passed.join("|"), failed.join("|")));
    }

    #[test]
    fn junit_reports_of_several_runners() {
        let report = r#"<?xml version="1.0"?><testsuites><testsuite name="pytest">
            <testcase classname="tests.test_a" name="test_ok" time="0.1"/>
            <testcase classname="tests.test_a" name="test_twice"/>
            <testcase classname="tests.test_a" name="test_twice"><error message="x">tear</error></testcase>
            <testcase classname="tests.test_a" name="test_no"><failure>assert &lt;</failure></testcase>
            <testcase classname="tests.test_a" name="test_off"><skipped/></testcase>
            </testsuite><testsuite name="Suite"><testcase name="without a class"/></testsuite></testsuites>"#;
        let found = junit(report).unwrap();
        check(
            &found,
            &["Suite.without a class", "tests.test_a.test_ok"],
            &["tests.test_a.test_no", "tests.test_a.test_twice"],
        );
        assert_eq!(found.skipped.len(), 1);
        for wrong in ["", "<html/>", "<testsuite>", "<!DOCTYPE a [<!ENTITY b 'c'>]><testsuite/>"] {
            assert!(junit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_runners_print() {
        let stdout = "\nrunning 2 tests\ntest a::one ... ok\ntest a::two ... FAILED\n\nrunning 1 test\n\
                      test src/lib.rs - f (line 12) ... ok\ntest a::three ... ignored, slow\n";
        let stderr = "     Running unittests src/lib.rs (target/debug/deps/x-0123456789abcdef)\n   Doc-tests x\n";
        let found = printed(stdout, stderr);
        check(
            &found,
            &["Doc-tests x: src/lib.rs - f", "x src/lib.rs: a::one"],
            &["x src/lib.rs: a::two"],
        );
        check(&printed(stdout, ""), &["a::one", "src/lib.rs - f"], &["a::two"]);

        let go = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    --- FAIL: TestB/sub (0.00s)\n\
                  --- FAIL: TestB (0.00s)\nFAIL\nFAIL\texample.org/a\t0.1s\n--- PASS: TestA (0.00s)\n\
                  ok  \texample.org/b\t0.1s\nFAIL\texample.org/c [build failed]\n";
        check(
            &printed(go, ""),
            &["example.org/a.TestA", "example.org/b.TestA"],
            &["example.org/a.TestB", "example.org/a.TestB/sub", "example.org/c"],
        );

        let pytest = "tests/test_a.py .F\nPASSED is no name here\n=== short test summary info ===\n\
                      PASSED tests/test_a.py::test_ok\nSKIPPED [1] tests/test_a.py:9: why\n\
                      FAILED tests/test_a.py::test_no[1 2] - assert 1 == 2\nERROR tests/test_b.py\n";
        check(
            &printed(&pytest.replace("===", "=========="), ""),
            &["tests/test_a.py::test_ok"],
            &["tests/test_a.py::test_no[1 2]", "tests/test_b.py"],
        );
        assert!(printed("1 passed, 0 failed\nall is well", "").is_empty());
    }
}
