//! Test counts from the closing lines of common test runners.
//!
//! An exit code of 0 proves little when no test ran, so the runners' own sums are read. What is not
//! recognised gives no counts, and then the exit code alone decides.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// What a check's output says about its tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Tests that passed.
    pub(super) passed: u64,
    /// Tests that failed, errors included.
    pub(super) failed: u64,
}

impl Counts {
    /// Whether a runner said that it executed nothing.
    pub(super) const fn is_nothing(self) -> bool {
        self.passed == 0 && self.failed == 0
    }
}

/// One way in which runners sum up: a line that matches and the groups `passed`, `failed`, `errors`,
/// `total` in it. Where only `total` is known, passed is what is left.
struct Form {
    line: Option<Regex>,
}

/// Forms whose lines are added up, one a line; a runner of its own prints each.
static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    [
        // cargo test: one line a test binary
        r"^test result: (?:ok|FAILED)\. (?P<passed>\d+) passed; (?P<failed>\d+) failed;",
        // cargo nextest
        r"^\s*Summary \[.*\] +(?P<total>\d+) tests? run: \d+ passed(?:.*?, (?P<failed>\d+) failed)?",
        // ctest
        r"^\d+% tests passed, (?P<failed>\d+) tests? failed out of (?P<total>\d+)",
        // jest
        r"^Tests: +(?:(?P<failed>\d+) failed, )?(?:\d+ (?:skipped|todo), )*(?:(?P<passed>\d+) passed, )?\d+ total",
        // vitest
        r"^\s+Tests +(?:(?P<failed>\d+) failed(?: \| )?)?(?:(?P<passed>\d+) passed)?.*\(\d+\)\s*$",
        // mocha: a line each
        r"^  (?P<passed>\d+) passing \(\d+(?:ms|s|m)\)\s*$",
        r"^  (?P<failed>\d+) failing\s*$",
        // Maven: one line a module; those of its classes go on
        r"^(?:\[(?:INFO|WARNING|ERROR)\] )?Tests run: (?P<total>\d+), Failures: (?P<failed>\d+), Errors: (?P<errors>\d+), Skipped: (?P<skipped>\d+)\s*$",
        // dotnet test: one line an assembly
        r"^(?:Passed|Failed|Skipped)!\s+- Failed:\s+(?P<failed>\d+), Passed:\s+(?P<passed>\d+), ",
        // RSpec
        r"^(?P<total>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?(?:, (?P<errors>\d+) errors? occurred outside of examples)?\s*$",
        // PHPUnit
        r"^OK \((?P<total>\d+) tests?, \d+ assertions?\)\s*$",
        r"^Tests: (?P<total>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?(?:, Failures: (?P<failed>\d+))?[,.]",
        // a plain sum
        r"^\s*(?P<passed>\d+) (?:tests? )?passed[,;]? (?:and )?(?P<failed>\d+) (?:tests? )?failed\.?\s*$",
        // runners that say in words that there was nothing
        r"^(?:=+ )?no tests ran in ",
        r"^No tests were found!!!",
        r"^No test files found",
        r"^No tests found, exiting with code 0",
        r"^No tests executed!",
        r"^testing: warning: no tests to run",
    ]
    .iter()
    .map(|pattern| Form {
        line: Regex::new(pattern).ok(),
    })
    .collect()
});

static COLOURS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("\u{1b}\\[[0-9;?]*[A-Za-z]").ok());

/// Reads a whole output. `None` where no line is a runner's sum.
pub(super) fn read(output: &str) -> Option<Counts> {
    let plain = without_colours(output);
    let mut sum: Option<Counts> = None;
    let mut add = |found: Counts| {
        let total = sum.get_or_insert_default();
        total.passed = total.passed.saturating_add(found.passed);
        total.failed = total.failed.saturating_add(found.failed);
    };
    for line in plain.lines() {
        if let Some(found) = FORMS.iter().find_map(|form| form.read(line)) {
            add(found);
        } else if let Some(found) = pytest(line) {
            add(found);
        }
    }
    for found in [unittest(&plain), node(&plain), go(&plain)].into_iter().flatten() {
        add(found);
    }
    sum
}

/// A text without terminal colour codes.
pub(super) fn without_colours(text: &str) -> Cow<'_, str> {
    match COLOURS.as_ref() {
        Some(colours) => colours.replace_all(text, ""),
        None => Cow::Borrowed(text),
    }
}

impl Form {
    fn read(&self, line: &str) -> Option<Counts> {
        let groups = self.line.as_ref()?.captures(line)?;
        let number = |name: &str| groups.name(name)?.as_str().parse::<u64>().ok();
        let failed = number("failed").unwrap_or(0) + number("errors").unwrap_or(0);
        let others = failed + number("skipped").unwrap_or(0);
        let passed =
            number("passed").or_else(|| Some(number("total")?.saturating_sub(others))).unwrap_or(0);
        Some(Counts { passed, failed })
    }
}

/// pytest: `=== 1 failed, 2 passed, 1 skipped in 0.12s ===`, in whatever order, with `-q` without the bars.
fn pytest(line: &str) -> Option<Counts> {
    let text = line.trim_matches(|c| c == '=' || c == ' ');
    let (sums, time) = text.rsplit_once(" in ")?;
    let seconds = time.split(' ').next()?;
    if !seconds.ends_with('s') || !seconds.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut counts = Counts::default();
    for part in sums.split(", ") {
        let (number, word) = part.split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match word {
            "passed" | "xpassed" => counts.passed += number,
            "failed" | "error" | "errors" => counts.failed += number,
            "skipped" | "deselected" | "xfailed" | "warning" | "warnings" | "rerun" => {}
            _ => return None,
        }
    }
    Some(counts)
}

/// Python's unittest: `Ran 5 tests in 0.1s`, then `OK` or `FAILED (failures=1, errors=1)`.
fn unittest(output: &str) -> Option<Counts> {
    let mut counts: Option<Counts> = None;
    for line in output.lines() {
        if let Some(rest) = line.strip_prefix("Ran ") {
            let (number, rest) = rest.split_once(' ')?;
            if rest.starts_with("test in ") || rest.starts_with("tests in ") {
                counts.get_or_insert_default().passed += number.parse::<u64>().ok()?;
            }
        } else if let (Some(counts), Some(rest)) = (counts.as_mut(), line.strip_prefix("FAILED ("))
        {
            for part in rest.trim_end_matches(')').split(", ") {
                if let Some(number) = part
                    .strip_prefix("failures=")
                    .or_else(|| part.strip_prefix("errors="))
                    .and_then(|number| number.parse::<u64>().ok())
                {
                    counts.failed += number;
                    counts.passed = counts.passed.saturating_sub(number);
                }
            }
        }
    }
    counts
}

/// Node's runner: `# pass 3`, `# fail 0` (TAP) or the same after `ℹ`.
fn node(output: &str) -> Option<Counts> {
    let sum = |word: &str| {
        let told = output.lines().filter_map(|line| {
            let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
            rest.strip_prefix(word)?.strip_prefix(' ')?.trim_start().parse::<u64>().ok()
        });
        told.fold(None, |sum: Option<u64>, one| Some(sum.unwrap_or(0).saturating_add(one)))
    };
    // Others that write so name only failures that there are.
    let (all, passed) = (sum("tests")?, sum("pass")?);
    Some(Counts { passed, failed: sum("fail").unwrap_or(all.saturating_sub(passed)) })
}

/// go test: with `-v` a line a test, else a line a package.
fn go(output: &str) -> Option<Counts> {
    let lines_with =
        |start: &str| output.lines().filter(|line| line.trim_start().starts_with(start)).count();
    let packages = |start: &str| {
        output
            .lines()
            .filter(|line| line.starts_with(start) && line.split('\t').count() >= 3)
            .count()
    };
    let (ok, failing) = (packages("ok  \t"), packages("FAIL\t"));
    let empty = output
        .lines()
        .filter(|line| line.starts_with("?   \t") && line.ends_with("[no test files]"))
        .count();
    if ok + failing + empty == 0 {
        return None;
    }
    let nothing_run = output
        .lines()
        .filter(|line| line.starts_with("ok  \t") && line.ends_with("[no tests to run]"))
        .count();
    let (passed, failed) = (lines_with("--- PASS: "), lines_with("--- FAIL: "));
    let (passed, failed) = if passed > 0 {
        (passed, failed)
    } else {
        (ok.saturating_sub(nothing_run), failed.max(failing))
    };
    Some(Counts { passed: passed as u64, failed: failed as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_compiles() {
        assert!(FORMS.iter().all(|form| form.line.is_some()));
        assert!(COLOURS.is_some());
    }

    #[test]
    fn sums_of_common_runners() {
        let table: [(&str, Option<(u64, u64)>); 35] = [
            (
                "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in A\n[INFO] \n\
                 [INFO] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1\n",
                Some((2, 2)),
            ),
            (
                "Passed!  - Failed:     0, Passed:     5, Skipped:     1, Total:     6, Duration: 10 ms - A.dll (net8.0)",
                Some((5, 0)),
            ),
            ("5 examples, 1 failure, 1 pending", Some((3, 1))),
            ("OK (5 tests, 10 assertions)", Some((5, 0))),
            ("Tests: 5, Assertions: 10, Errors: 1, Failures: 1.", Some((3, 2))),
            ("No tests found, exiting with code 0", Some((0, 0))),
            ("ℹ tests 50\nℹ pass 50\nℹ fail 0\n\nℹ tests 0\nℹ pass 0\nℹ fail 0\n", Some((50, 0))),
            (
                "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored;",
                Some((7, 1)),
            ),
            (
                "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
                Some((0, 0)),
            ),
            ("     Summary [   0.1s] 4 tests run: 3 passed, 1 failed, 0 skipped", Some((3, 1))),
            ("==== 1 failed, 2 passed, 1 warning in 0.12s ====", Some((2, 1))),
            ("3 passed in 0.01s", Some((3, 0))),
            ("===== 2 skipped in 0.01s =====", Some((0, 0))),
            ("===== no tests ran in 0.01s =====", Some((0, 0))),
            ("Ran 5 tests in 0.001s\n\nOK", Some((5, 0))),
            ("Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=2)", Some((2, 3))),
            ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", Some((0, 0))),
            ("ok  \texample.com/a\t0.01s\nok  \texample.com/b\t0.02s", Some((2, 0))),
            ("--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.com/a\t0.01s", Some((0, 1))),
            (
                "--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\nPASS\nok  \texample.com/a\t0.01s",
                Some((2, 0)),
            ),
            ("?   \texample.com/a\t[no test files]", Some((0, 0))),
            ("ok  \texample.com/a\t0.01s [no tests to run]", Some((0, 0))),
            ("1..3\n# tests 3\n# pass  3\n\n# ok", Some((3, 0))),
            ("1..3\n# tests 3\n# pass  2\n# fail  1", Some((2, 1))),
            ("# tests 4\n# suites 0\n# pass 3\n# fail 1\n# cancelled 0", Some((3, 1))),
            ("ℹ tests 0\nℹ pass 0\nℹ fail 0", Some((0, 0))),
            ("100% tests passed, 0 tests failed out of 7", Some((7, 0))),
            ("No tests were found!!!", Some((0, 0))),
            (
                "\u{1b}[1mTests:\u{1b}[22m       1 failed, 2 skipped, 5 passed, 8 total",
                Some((5, 1)),
            ),
            ("      Tests  1 failed | 4 passed (5)", Some((4, 1))),
            ("      Tests  5 passed (5)", Some((5, 0))),
            ("  3 passing (22ms)\n  1 failing\n", Some((3, 1))),
            ("  0 passing (1ms)\n", Some((0, 0))),
            ("4 passed, 2 failed", Some((4, 2))),
            ("compiled 3 files in 2s\nall fine", None),
        ];
        for (output, expected) in table {
            let found = read(output).map(|counts| (counts.passed, counts.failed));
            assert_eq!(found, expected, "{output}");
        }
    }
}
