//! What the journal says of records is what reading it gives back.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::json;

use super::*;
use crate::domain::record::AnyRecord;
use crate::domain::request::EventKind;
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::store::entry::{VERSION, push_line, read_line};
use crate::store::images::{ReadRecords, WrittenRecords};

fn result(number: u64) -> Arc<RoleResult> {
    let mut result = RoleResult::new(Role::Planner, "r");
    result.summary = format!("result {number}: \"quoted\", 한국어");
    result.insights = vec!["the same".to_owned()];
    Arc::new(result)
}

/// An envelope with a report of this result.
fn report(number: u64, place: EnvelopeFolder, result: &Arc<RoleResult>) -> Change {
    let mut change = envelope(number, place);
    let Change::Save(AnyRecord::Envelope(envelope)) = &mut change else { unreachable!() };
    let report = json!({
        "run_id": run_id(number), "request_id": request_id(number), "role": "planner", "step": null,
        "generation": 1, "outcome": {"result": result}, "changed_paths": [], "usage": {},
        "session_id": null, "duration_ms": 0, "repairs": 0, "dropped_bytes": 0, "agent": "a",
    });
    Arc::make_mut(envelope).report = Some(serde_json::from_value(report).unwrap());
    change
}

/// A request that has this result.
fn reported(number: u64, body: &str, result: &Arc<RoleResult>) -> Change {
    let mut change = request(number, RequestStatus::Delegated, body);
    let Change::Save(AnyRecord::Request(request)) = &mut change else { unreachable!() };
    Arc::make_mut(request).work.result = Some(result.clone());
    change
}

fn told(number: u64, result: &Arc<RoleResult>) -> Change {
    let mut change = event(number, "told");
    let Change::Event(_, event) = &mut change else { unreachable!() };
    event.kind = EventKind::RoleReport;
    event.payload = json!({ "step": null, "result": result });
    change
}

/// A journal that is written line by line.
#[derive(Default)]
struct Text {
    written: WrittenRecords,
    lines: Vec<String>,
}

impl Text {
    fn append(&mut self, changes: &[Change]) {
        let drafts = prepare(changes.to_vec()).unwrap().drafts;
        let mut line = Vec::new();
        let seq = self.lines.len() as u64 + 1;
        push_line(&mut line, seq, &BTreeMap::new(), drafts, &mut self.written).unwrap();
        self.lines.push(String::from_utf8(line).unwrap());
    }

    fn read(&self) -> Result<Vec<Vec<Change>>, String> {
        let mut records = ReadRecords::default();
        let read = |(seq, line): (u64, &String)| {
            let line = read_line(VERSION, line.trim_end().as_bytes()).unwrap();
            line.changes.into_iter().map(|it| records.read(VERSION, seq, it)).collect()
        };
        (1..).zip(&self.lines).map(read).collect()
    }
}

#[test]
fn a_result_is_written_once_and_read_wherever_it_is() {
    let (first, second) = (result(1), result(2));
    let entries = [
        vec![request(1, RequestStatus::Delegated, "please")],
        vec![report(1, EnvelopeFolder::Inbox, &first)],
        vec![
            reported(1, "please", &first),
            told(1, &first),
            report(1, EnvelopeFolder::Archive, &first),
        ],
        // The request changes and keeps its result; another one comes with it, and a third for another request.
        vec![reported(1, "edited", &first), report(2, EnvelopeFolder::Inbox, &second)],
        vec![reported(1, "edited", &second), told(1, &second), reported(2, "other", &first)],
        vec![reported(3, "at once", &result(3)), told(3, &result(3)), told(3, &result(4))],
        vec![told(3, &result(4)), reported(3, "at once", &result(4))],
    ];
    let mut text = Text::default();
    for entry in &entries {
        text.append(entry);
    }
    assert_eq!(text.read().unwrap(), entries);
    let times = |number: u64| {
        let words = format!("result {number}:");
        text.lines.iter().map(|line| line.matches(&words).count()).sum::<usize>()
    };
    assert_eq!([times(1), times(2), times(3)], [1, 1, 1]);
    // An entry gives one result only; the next that comes in the same is whole until another entry has it.
    assert_eq!(times(4), 2);
}

#[test]
fn a_result_that_no_entry_gives_is_refused_by_name() {
    let mut text = Text::default();
    text.append(&[report(1, EnvelopeFolder::Inbox, &result(1))]);
    text.append(&[told(1, &result(1))]);
    text.lines[0] = text.lines[0].replace("\"report\":{", "\"unknown\":{");
    let refused = text.read().unwrap_err();
    assert_eq!(refused, "it names the result of entry 1, which has none");
}

#[derive(Debug, Clone)]
enum Step {
    Request(u64, &'static str, Option<u64>),
    Report(u64, u64, bool),
    Told(u64, u64),
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    let words = prop::sample::select(vec!["", "short", "한 \"quoted\" \\ line\n", "x"]);
    prop_oneof![
        4 => (1..4_u64, words, prop::option::of(1..5_u64))
            .prop_map(|(number, body, result)| Step::Request(number, body, result)),
        3 => (1..4_u64, 1..5_u64, any::<bool>())
            .prop_map(|(number, result, open)| Step::Report(number, result, open)),
        3 => (1..4_u64, 1..5_u64).prop_map(|(number, result)| Step::Told(number, result)),
        1 => Just(Step::Forget),
    ]
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_back(
        entries in prop::collection::vec(prop::collection::vec(step(), 1..5), 1..12)
    ) {
        let mut text = Text::default();
        let mut all = Vec::new();
        for steps in entries {
            let mut changes = Vec::new();
            for step in steps {
                match step {
                    Step::Request(number, body, None) => {
                        changes.push(request(number, RequestStatus::Delegated, body));
                    }
                    Step::Request(number, body, Some(of)) => {
                        changes.push(reported(number, body, &result(of)));
                    }
                    Step::Report(number, of, open) => {
                        let place = if open { EnvelopeFolder::Inbox } else { EnvelopeFolder::Archive };
                        changes.push(report(number, place, &result(of)));
                    }
                    Step::Told(number, of) => changes.push(told(number, &result(of))),
                    // A checkpoint, or a group that could not be written.
                    Step::Forget => text.written.clear(),
                }
            }
            text.append(&changes);
            all.push(changes);
        }
        prop_assert_eq!(text.read().map_err(TestCaseError::fail)?, all);
    }
}
