//! Agreement with recorded answers of an older runtime (`tests/data/conformance/README.md`).
//!
//! A case agrees, or a [`Rule`] says why it differs: a row of `spec/teams.md` 13 or 14, a predicate
//! on the arguments, and what the answer has to be. There are no lists of cases.

mod backlog;
mod contract;
mod parsing;
mod sprint;
mod workflow;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A reason to differ on purpose.
pub(crate) struct Rule {
    /// Row of the specification.
    pub(crate) row: &'static str,
    /// What we do instead.
    pub(crate) instead: &'static str,
    /// Whether it applies to the arguments.
    pub(crate) applies: fn(&Value) -> bool,
    /// Our answer, from the arguments and the recorded answer.
    pub(crate) expected: fn(&Value, &Value) -> Value,
}

/// A file of cases.
pub(crate) struct Subject {
    /// Name of the file and of the function.
    pub(crate) name: &'static str,
    /// Our answer.
    pub(crate) ours: fn(&Value) -> Value,
    /// The part of the recorded answer that is compared; `Null` where it raised.
    pub(crate) theirs: fn(&Value) -> Value,
    /// Reasons to differ.
    pub(crate) rules: &'static [Rule],
}

/// Compares the recorded answer as it is.
pub(crate) fn whole(value: &Value) -> Value {
    value.clone()
}

/// Some fields of an object.
pub(crate) fn fields(value: &Value, keys: &[&str]) -> Value {
    keys.iter().map(|key| ((*key).to_owned(), value[*key].clone())).collect()
}

/// A string argument; blank where it is none.
pub(crate) fn text<'a>(args: &'a Value, key: &str) -> &'a str {
    args[key].as_str().unwrap_or_default()
}

/// Numbers compare by value, objects by content.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => ours.as_f64() == theirs.as_f64(),
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .all(|(key, value)| theirs.get(key).is_some_and(|other| same(value, other)))
        }
        (ours, theirs) => ours == theirs,
    }
}

#[derive(Default)]
struct Tally {
    agreed: usize,
    ruled: BTreeMap<usize, usize>,
    failures: Vec<String>,
}

fn judge(subject: &Subject, line: &str, tally: &mut Tally) {
    let case: Value = serde_json::from_str(line).expect("a case is a JSON object");
    let args = &case["args"];
    let theirs = case.get("ok").map_or(Value::Null, subject.theirs);
    let ours = (subject.ours)(args);
    if same(&ours, &theirs) {
        tally.agreed += 1;
        return;
    }
    for (number, rule) in subject.rules.iter().enumerate() {
        if (rule.applies)(args) {
            let expected = (rule.expected)(args, &theirs);
            if same(&ours, &expected) {
                *tally.ruled.entry(number).or_default() += 1;
                return;
            }
        }
    }
    tally.failures.push(format!(
        "{} {}:\n  args   {args}\n  theirs {theirs}\n  ours   {ours}",
        subject.name, case["id"]
    ));
}

fn folders() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance");
    let further = std::env::var_os("TEAMS_CONFORMANCE").map(PathBuf::from);
    std::iter::once(own).chain(further).filter(|folder| folder.is_dir()).collect()
}

const SUBJECTS: [&[Subject]; 5] = [
    workflow::SUBJECTS,
    contract::SUBJECTS,
    parsing::SUBJECTS,
    sprint::SUBJECTS,
    backlog::SUBJECTS,
];

/// No answers lie about that nobody compares, and what is retired is not compared.
#[test]
fn every_recorded_function_is_compared_and_no_retired_one() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance");
    let readme = std::fs::read_to_string(own.join("README.md")).unwrap();
    let compared: Vec<&str> = SUBJECTS.into_iter().flatten().map(|subject| subject.name).collect();
    for entry in std::fs::read_dir(&own).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(function) = name.strip_suffix(".jsonl") {
            assert!(compared.contains(&function), "{function} is recorded and not compared");
        }
    }
    let retired = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let retired: Vec<&str> = retired.collect();
    assert!(!retired.is_empty());
    for name in retired {
        assert!(!compared.contains(&name), "{name} is retired and compared");
    }
}

#[test]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the counts are its report")]
fn conformance() {
    let folders = folders();
    if folders.is_empty() {
        eprintln!("skipped: no folder of conformance cases");
        return;
    }
    let mut failures = Vec::new();
    for subject in SUBJECTS.into_iter().flatten() {
        let mut tally = Tally::default();
        for folder in &folders {
            let file = folder.join(format!("{}.jsonl", subject.name));
            let Ok(cases) = std::fs::read_to_string(&file) else {
                continue;
            };
            for line in cases.split('\n').filter(|line| !line.trim().is_empty()) {
                judge(subject, line, &mut tally);
            }
        }
        let ruled: usize = tally.ruled.values().sum();
        println!("{}: {} agreed, {ruled} ruled", subject.name, tally.agreed);
        for (number, rule) in subject.rules.iter().enumerate() {
            let fired = tally.ruled.get(&number).copied().unwrap_or_default();
            println!("    {fired:4} {}: {}", rule.row, rule.instead);
            if fired == 0 {
                failures.push(format!("{}: rule {} never fired", subject.name, rule.row));
            }
        }
        assert!(tally.agreed + ruled + tally.failures.len() > 0, "no cases of {}", subject.name);
        failures.append(&mut tally.failures);
    }
    assert!(
        failures.is_empty(),
        "{} cases differ without a rule:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
