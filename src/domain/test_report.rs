//! Tests by name: how they came out in one run of a check, and beside another run of it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// So many names are kept of a list; the rest is counted.
const FIRST: usize = 12;

/// How a test came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestOutcome {
    /// It passed.
    Passed,
    /// It failed, or broke off.
    Failed,
    /// It was not run.
    Skipped,
}

/// The tests of one run of a check; empty where its output names none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestOutcomes {
    /// Those that passed.
    pub passed: BTreeSet<String>,
    /// Those that failed.
    pub failed: BTreeSet<String>,
    /// Those that were not run.
    pub skipped: BTreeSet<String>,
    /// Whether output was dropped, so that it is not known which ran.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl TestOutcomes {
    /// How many tests are left out by their place alone, as `[2] tests/test_a.py:9: why` says.
    fn left_out(&self) -> usize {
        let count =
            |name: &String| name.strip_prefix('[')?.split_once(']')?.0.parse::<usize>().ok();
        self.skipped.iter().filter_map(count).sum()
    }

    /// Notes a test. Runners may tell one twice, as where it passes and cannot be taken down: a failure counts.
    pub fn add(&mut self, name: String, outcome: TestOutcome) {
        match outcome {
            TestOutcome::Failed => {
                self.passed.remove(&name);
                self.failed.insert(name);
            }
            TestOutcome::Passed if !self.failed.contains(&name) => {
                self.passed.insert(name);
            }
            TestOutcome::Skipped => {
                self.skipped.insert(name);
            }
            TestOutcome::Passed => {}
        }
    }

    /// Whether nothing is known by name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.passed.is_empty() && self.failed.is_empty() && self.skipped.is_empty()
    }
}

/// Names, of which the first are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestNames {
    /// How many there are.
    pub count: usize,
    /// The first of them.
    pub first: Vec<String>,
}

impl TestNames {
    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of both.
    pub fn extend(&mut self, more: &TestNames) {
        self.count += more.count;
        let room = FIRST.saturating_sub(self.first.len());
        self.first.extend(more.first.iter().take(room).cloned());
    }

    /// The names that are kept, and a last line that counts the others.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.first.clone();
        if self.count > lines.len() {
            lines.push(format!("… +{}", self.count - lines.len()));
        }
        lines
    }
}

impl<T: Into<String>> FromIterator<T> for TestNames {
    fn from_iter<I: IntoIterator<Item = T>>(names: I) -> TestNames {
        let mut all = TestNames::default();
        for name in names {
            if all.count < FIRST {
                all.first.push(name.into());
            }
            all.count += 1;
        }
        all
    }
}

/// A run of a check, as far as another one is held against it.
#[derive(Debug, Clone, Copy)]
pub struct ComparedRun<'a> {
    /// Whether the check failed.
    pub failed: bool,
    /// Its tests.
    pub tests: &'a TestOutcomes,
}

/// A check at a change beside the same check at the change's base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Comparison {
    /// Whether both name their tests; else the check as a whole is meant.
    pub by_test: bool,
    /// Red now, and not at the base.
    pub broken: TestNames,
    /// Green now, and red at the base.
    pub mended: TestNames,
    /// Red in both.
    pub red_before: TestNames,
    /// Green at the base, and not there any more.
    pub vanished: TestNames,
    /// It ran at the base and does not run any more: left out now, or gone without another in its place.
    pub lost: TestNames,
    /// Red, and green when the same was run once more.
    pub flaky: TestNames,
}

impl Comparison {
    /// Whether what fails failed at the base as well, and nothing that could fail is missing.
    #[must_use]
    pub const fn is_red_before(&self) -> bool {
        self.broken.is_empty() && self.vanished.is_empty() && !self.red_before.is_empty()
    }
}

/// Holds a run of the check `name` against that at the base, where the base is known.
#[must_use]
pub fn compare(name: &str, base: Option<ComparedRun<'_>>, now: ComparedRun<'_>) -> Comparison {
    let mut found = Comparison::default();
    let whole = || [name].into_iter().collect::<TestNames>();
    let Some(base) = base else {
        if now.failed {
            found.broken = failures(name, now);
        }
        return found;
    };
    found.by_test = !base.tests.is_empty() && !now.tests.is_empty();
    let (before, after) = (base.tests, now.tests);
    if found.by_test {
        let names = |wanted: &dyn Fn(&&String) -> bool, of: &BTreeSet<String>| {
            of.iter().filter(wanted).cloned().collect::<TestNames>()
        };
        found.broken = names(&|it| !before.failed.contains(*it), &after.failed);
        found.red_before = names(&|it| before.failed.contains(*it), &after.failed);
        found.mended = names(&|it| after.passed.contains(*it), &before.failed);
        let is_there = |it: &&String| {
            [&after.passed, &after.failed, &after.skipped].iter().any(|all| all.contains(*it))
        };
        found.vanished = names(&|it| !is_there(it), &before.passed);
        // Some runners name what fails and nothing else: then only that is known to be gone.
        let failed = before.failed.iter().filter(|_| !after.passed.is_empty());
        let ran: BTreeSet<String> = before.passed.iter().chain(failed).cloned().collect();
        let is_known =
            |it: &&String| [&ran, &before.skipped].into_iter().any(|all| all.contains(*it));
        let is_gone = |it: &&String| !is_there(it);
        let came = after.passed.iter().filter(|it| !is_known(it)).count();
        // One that was renamed is gone and came. What pytest leaves out it names by its place alone, and counts there.
        let left_out = after.left_out().saturating_sub(before.left_out());
        let came = came.saturating_sub(left_out);
        let is_less = ran.iter().filter(is_gone).count() > came;
        found.lost = names(&|it| after.skipped.contains(*it) || (is_less && is_gone(it)), &ran);
        // It fails by something that no test names.
        if now.failed && after.failed.is_empty() {
            found.broken = whole();
        }
        return found;
    }
    match (base.failed, now.failed) {
        (true, false) => found.mended = failures(name, base),
        // Where tests had names and have none now, they did not come to run.
        (true, true) if before.is_empty() => found.red_before = whole(),
        (true | false, true) => found.broken = failures(name, now),
        (false, false) => {}
    }
    if !now.failed && !after.is_cut {
        // Tests had names and have none: whether one of them ran nobody knows.
        found.lost = before.passed.iter().cloned().collect();
    }
    found
}

/// What fails in a run: its tests, else the check as a whole.
#[must_use]
pub fn failures(name: &str, run: ComparedRun<'_>) -> TestNames {
    if run.tests.failed.is_empty() {
        [name].into_iter().collect()
    } else {
        run.tests.failed.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(passed: &[&str], failed: &[&str]) -> TestOutcomes {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        TestOutcomes { passed: all(passed), failed: all(failed), ..TestOutcomes::default() }
    }

    fn beside(base: Option<(bool, &TestOutcomes)>, now: (bool, &TestOutcomes)) -> Comparison {
        let run = |(failed, tests)| ComparedRun { failed, tests };
        compare("all", base.map(run), run(now))
    }

    #[test]
    fn test_by_test_where_both_have_names() {
        let base = tests(&["a", "b", "gone"], &["red", "cured"]);
        let now = tests(&["a", "cured", "new"], &["red", "b"]);
        let found = beside(Some((true, &base)), (true, &now));
        let told = [&found.broken, &found.mended, &found.red_before, &found.vanished];
        assert_eq!(told.map(|it| it.first.join(" ")), ["b", "cured", "red", "gone"]);
        assert!(found.by_test && !found.is_red_before());
        let same = tests(&["a", "b", "gone", "cured"], &["red"]);
        assert!(beside(Some((true, &base)), (true, &same)).is_red_before());
        let fewer = tests(&["a"], &["red"]);
        assert!(!beside(Some((true, &base)), (true, &fewer)).is_red_before(), "some are missing");
        let none = tests(&[], &["red"]);
        assert!(!beside(Some((true, &base)), (true, &none)).is_red_before(), "all others are");
        // The build breaks behind the last test.
        let green = tests(&["a", "b", "gone"], &[]);
        assert_eq!(beside(Some((true, &base)), (true, &green)).broken.first, ["all"]);
    }

    #[test]
    fn tests_that_do_not_run_any_more() {
        let base = tests(&["a", "b", "c"], &["red"]);
        let lost = |now: &TestOutcomes| beside(Some((true, &base)), (false, now)).lost.first;
        assert_eq!(lost(&tests(&["a", "b", "c", "red"], &[])), [""; 0]);
        // One more than before makes no good for one that is left out.
        let left_out = TestOutcomes {
            skipped: BTreeSet::from(["red".to_owned()]),
            ..tests(&["a", "b", "c", "new"], &[])
        };
        assert_eq!(lost(&left_out), ["red"]);
        assert_eq!(lost(&tests(&["a", "b"], &[])), ["c", "red"]);
        // What names no test has run none, unless its output was dropped; what only ever names failures runs all the same.
        assert_eq!(lost(&tests(&[], &[])), ["a", "b", "c"]);
        assert_eq!(lost(&TestOutcomes { is_cut: true, ..tests(&[], &[]) }), [""; 0]);
        let only_failures = tests(&[], &["red"]);
        let mended = beside(Some((true, &only_failures)), (false, &tests(&[], &[])));
        assert_eq!((mended.lost.first, mended.mended.first), (vec![], vec!["red".to_owned()]));
        // As pytest names what is left out.
        let by_place = |place: &str, passed: &[&str]| TestOutcomes {
            skipped: BTreeSet::from([place.to_owned()]),
            ..tests(passed, &[])
        };
        assert_eq!(lost(&by_place("[1] test_a.py:9: why", &["b", "c", "new", "red"])), ["a"]);
        let three = by_place("[3] test_a.py:9: why", &["red", "n1", "n2", "n3", "n4"]);
        assert_eq!(lost(&three), ["a", "b", "c"]);
        let (was, is) =
            (by_place("[1] t.py:9: why", &["a"]), by_place("[1] t.py:10: why", &["renamed"]));
        assert!(beside(Some((false, &was)), (false, &is)).lost.is_empty());
        // As runners that name failures alone.
        let (two, one) = (tests(&[], &["x", "z"]), tests(&[], &["z"]));
        assert!(beside(Some((true, &two)), (true, &one)).lost.is_empty());
        // Renamed.
        assert_eq!(lost(&tests(&["a", "b", "see", "green"], &[])), [""; 0]);
    }

    #[test]
    fn check_by_check_where_one_has_none() {
        let (none, named) = (TestOutcomes::default(), tests(&[], &["t"]));
        assert!(beside(Some((true, &none)), (true, &none)).is_red_before());
        assert_eq!(beside(Some((true, &none)), (false, &none)).mended.first, ["all"]);
        assert_eq!(beside(Some((false, &none)), (true, &named)).broken.first, ["t"]);
        assert!(!beside(Some((true, &named)), (true, &none)).is_red_before(), "nothing ran");
        assert_eq!(beside(None, (true, &none)).broken.first, ["all"]);
        assert_eq!(beside(None, (false, &none)), Comparison::default());
    }

    #[test]
    fn long_lists_are_counted() {
        let names: TestNames = (0..40).map(|n| n.to_string()).collect();
        assert_eq!((names.count, names.first.len()), (40, FIRST));
        assert_eq!(names.lines().last().unwrap(), "… +28");
    }
}
