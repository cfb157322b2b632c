//! The checks of a commit beside those of its base, and beside a repetition of themselves.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::domain::evidence::{BaseStanding, BaseVerdict, CheckRun, CheckVerdict, Evidence};
use crate::domain::test_report::{ComparedRun, TestNames, TestOutcomes, compare, failures};

/// What a check said about a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// Its name in the configuration.
    pub name: String,
    /// How it ended.
    pub verdict: CheckVerdict,
    /// Its tests by name.
    pub tests: TestOutcomes,
    /// What was red and green without a change.
    pub flaky: TestNames,
}

impl CheckRecord {
    /// Of a run of it.
    #[must_use]
    pub fn of(run: &CheckRun) -> CheckRecord {
        CheckRecord {
            name: run.name.clone(),
            verdict: run.verdict,
            tests: run.tests.clone(),
            flaky: run.compared.as_ref().map(|it| it.flaky.clone()).unwrap_or_default(),
        }
    }

    fn run(&self) -> ComparedRun<'_> {
        ComparedRun { failed: self.verdict == CheckVerdict::Failed, tests: &self.tests }
    }
}

/// How a commit stands of which the checks said this.
#[must_use]
pub fn base_standing(commit: String, checks: &[CheckRecord]) -> BaseStanding {
    let mut standing = BaseStanding { commit, ..BaseStanding::default() };
    for check in checks {
        standing.flaky.extend(&check.flaky);
        if check.verdict == CheckVerdict::Failed {
            standing.red.extend(&failures(&check.name, check.run()));
        }
    }
    let passed = checks.iter().filter(|it| it.verdict == CheckVerdict::Passed);
    standing.passed = passed.map(|it| it.name.clone()).collect();
    let all_pass = standing.passed.len() == checks.len();
    standing.verdict = match (standing.red.is_empty(), all_pass) {
        (false, _) => BaseVerdict::Red,
        (true, true) => BaseVerdict::Green,
        (true, false) => BaseVerdict::Unknown,
    };
    standing
}

/// Holds each check against that of the base.
pub fn hold_against(evidence: &mut Evidence, base: Option<&[CheckRecord]>) {
    for check in &mut evidence.checks {
        let flaky = check.compared.take().map(|it| it.flaky).unwrap_or_default();
        let Some(run) = check.comparable() else { continue };
        let before = base.and_then(|base| base.iter().find(|it| it.name == check.name));
        let mut found = compare(&check.name, before.map(CheckRecord::run), run);
        found.flaky = flaky;
        check.compared = Some(found);
    }
}

/// What one repetition without a change says: what was red and is green, or the other way round, is flaky.
pub fn repeated(evidence: &mut Evidence, again: &Evidence) {
    evidence.repetitions += 1;
    for check in &mut evidence.checks {
        let second = again.checks.iter().find(|it| it.name == check.name);
        let Some(second) = second else { continue };
        let (Some(first), Some(repeated)) = (check.comparable(), second.comparable()) else {
            continue;
        };
        let (one, two) = (&check.tests, &second.tests);
        let flaky: TestNames = match (first.failed, repeated.failed) {
            (true, false) => {
                let flaky = failures(&check.name, first);
                *check = second.clone();
                flaky
            }
            (true, true) => {
                let (cured, still): (BTreeSet<String>, BTreeSet<String>) =
                    one.failed.iter().cloned().partition(|it| two.passed.contains(it));
                let caught = two.failed.iter().filter(|it| one.passed.contains(*it));
                let flaky = cured.iter().chain(caught).cloned().collect();
                // Where each time something else fails, there is no more to tell them by.
                if !still.is_empty() {
                    check.tests.passed.extend(cured);
                    check.tests.failed = still;
                }
                flaky
            }
            (false, true) => failures(&check.name, repeated),
            (false, false) => TestNames::default(),
        };
        check.compared.get_or_insert_default().flaky = flaky;
    }
}

/// What was found flaky beside an earlier run is so of a later one as well.
pub fn take_flaky(evidence: &mut Evidence, earlier: Evidence) {
    for before in earlier.checks {
        let check = evidence.checks.iter_mut().find(|check| check.name == before.name);
        if let (Some(check), Some(compared)) = (check, before.compared) {
            check.compared.get_or_insert_default().flaky = compared.flaky;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::evidence::Isolation;
    use crate::domain::time::Timestamp;

    fn evidence(verdict: CheckVerdict, passed: &[&str], failed: &[&str]) -> Evidence {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let check = CheckRun {
            name: "all".to_owned(),
            command: Vec::new(),
            exit_code: None,
            verdict,
            tests_passed: None,
            tests_failed: None,
            log_digest: String::new(),
            log_tail: String::new(),
            duration_ms: 0,
            tests: TestOutcomes { passed: all(passed), failed: all(failed), ..Default::default() },
            compared: None,
        };
        Evidence {
            commit: String::new(),
            checks: vec![check],
            at: Timestamp::from_millis(0),
            isolation: Isolation::None,
            checks_digest: String::new(),
            tree_ms: 0,
            environments: Vec::new(),
            repetitions: 0,
        }
    }

    /// What is red, and what is flaky, after a run and its repetition.
    fn told(mut first: Evidence, again: &Evidence) -> (String, String) {
        repeated(&mut first, again);
        hold_against(&mut first, None);
        let [check] = first.checks.as_slice() else { unreachable!("one check") };
        let found = check.compared.as_ref().expect("a comparison");
        (found.broken.first.join(" "), found.flaky.first.join(" "))
    }

    #[test]
    fn what_one_repetition_cures_or_catches_is_flaky_and_the_rest_stays_red() {
        use CheckVerdict::{CutOff, Failed, Passed};
        let red = || evidence(Failed, &["a"], &["b", "c"]);
        for (again, broken, flaky) in [
            (evidence(Passed, &["a", "b", "c"], &[]), "", "b c"),
            (evidence(Failed, &["a", "b"], &["c"]), "c", "b"),
            (evidence(Failed, &["b"], &["a", "c"]), "c", "b a"),
            // Each time something else.
            (evidence(Failed, &["b", "c"], &["a"]), "b c", "b c a"),
            (evidence(CutOff, &[], &[]), "b c", ""),
        ] {
            assert_eq!(told(red(), &again), (broken.to_owned(), flaky.to_owned()), "{again:?}");
        }
        let green = evidence(Passed, &["a"], &[]);
        assert_eq!(told(green, &evidence(Failed, &[], &["a"])), (String::new(), "a".to_owned()));
    }

    #[test]
    fn a_base_is_red_by_what_fails_and_unknown_where_a_check_says_nothing() {
        use CheckVerdict::{Failed, Passed, TimedOut};
        for (verdict, failed, stands, red) in [
            (Passed, &[][..], BaseVerdict::Green, ""),
            (Failed, &["b"][..], BaseVerdict::Red, "b"),
            (Failed, &[][..], BaseVerdict::Red, "all"),
            (TimedOut, &[][..], BaseVerdict::Unknown, ""),
        ] {
            let records: Vec<CheckRecord> =
                evidence(verdict, &["a"], failed).checks.iter().map(CheckRecord::of).collect();
            let standing = base_standing("c0ffee".to_owned(), &records);
            assert_eq!((standing.verdict, standing.red.first.join(" ").as_str()), (stands, red));
        }
    }
}
