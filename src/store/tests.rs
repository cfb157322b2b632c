//! The promises of the store, on a disk that forgets and on a real one.

mod crash;
mod life;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::index::checkpoint;
use super::journal::{Journal, Pending};
use super::open::{OpenReport, recover};
use super::views::Views;
use super::{StoreError, layout, prepare};
use crate::domain::change::{Change, ChannelMark, Session};
use crate::domain::envelope::{Envelope, EnvelopeBody, EnvelopeKind, Place};
use crate::domain::ids::{ChannelId, EnvelopeId, MessageId, RequestId, RunId};
use crate::domain::request::{Request, RequestEvent, RequestStatus, Room};
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::platform::disk::Disk;
use crate::platform::sim_disk::SimDisk;

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(1_774_310_400_000).plus_seconds(second)
}

fn request_id(number: u64) -> RequestId {
    RequestId::parse(&format!("20260324-{number:08x}")).unwrap()
}

fn request(number: u64, status: RequestStatus, body: &str) -> Change {
    Change::Request(Box::new(Request {
        request_id: request_id(number),
        status,
        body: body.to_owned(),
        room: Some(Room {
            thread_id: Some(ChannelId(900 + number)),
            card_id: None,
            card_digest: String::new(),
        }),
        ..Request::default()
    }))
}

fn event(number: u64, summary: &str) -> Change {
    let event = RequestEvent {
        timestamp: at(number),
        kind: "delegated".to_owned(),
        actor: "runtime".to_owned(),
        summary: summary.to_owned(),
        payload: Value::Null,
    };
    Change::Event(request_id(number), event)
}

fn envelope_id(number: u64) -> EnvelopeId {
    EnvelopeId::parse(&format!("019a0000-0000-7000-8000-{number:012x}")).unwrap()
}

fn envelope(number: u64, place: Place) -> Change {
    Change::Envelope(Box::new(Envelope {
        relay_id: envelope_id(number),
        transport: "internal".to_owned(),
        created_at: at(number),
        sender_role: Role::Orchestrator,
        target_role: Role::Planner,
        kind: EnvelopeKind::Delegate,
        envelope: EnvelopeBody {
            request_id: request_id(number),
            intent: "plan".to_owned(),
            urgency: String::new(),
            scope: String::new(),
            artifacts: Vec::new(),
            params: Map::new(),
            body: "please".to_owned(),
            from: Role::Orchestrator,
            to: Role::Planner,
        },
        place,
        attempts: 0,
        not_before: None,
        step: None,
        report: None,
        reason: None,
    }))
}

fn run_id(number: u64) -> RunId {
    RunId::parse(&format!("run-{number}")).unwrap()
}

fn run(number: u64) -> Change {
    Change::Run(Run {
        run_id: run_id(number),
        request_id: request_id(number),
        role: Role::Planner,
        step: None,
        envelope_id: envelope_id(number),
        attempt: 1,
        generation: 0,
        started_at: at(number),
        pre_tree: None,
    })
}

fn mark(channel: u64, message: u64) -> Change {
    Change::Channel(ChannelMark {
        channel_id: ChannelId(channel),
        watermark: MessageId(message),
        recent: vec![MessageId(message)],
    })
}

fn session(number: u64) -> Change {
    Change::Session(Session {
        role: Role::Planner,
        request_id: request_id(number),
        session_id: "s".to_owned(),
        model: String::new(),
        created_at: at(number),
        last_used_at: at(number),
    })
}

const DOCUMENT: &str = "shared_workspace/decision_log.md";

fn document(text: &str) -> Change {
    Change::Append { file: DOCUMENT.to_owned(), text: format!("{text}\n") }
}

/// The life of two requests, as groups of appends.
fn script() -> Vec<Vec<Vec<Change>>> {
    let open = RequestStatus::Delegated;
    vec![
        vec![vec![request(1, open, "first"), event(1, "a"), mark(1, 10)]],
        vec![
            vec![envelope(1, Place::Inbox), document("one")],
            vec![run(1), event(1, "b"), session(1)],
        ],
        vec![vec![request(2, open, "second"), envelope(2, Place::Inbox)]],
        vec![
            vec![Change::RunGone(run_id(1)), envelope(1, Place::Archive)],
            vec![request(1, RequestStatus::Committed, "first, done"), event(1, "c")],
            vec![document("two"), mark(1, 11), mark(2, 4)],
        ],
        vec![vec![Change::RetireRequest(request_id(1))]],
        vec![vec![envelope(2, Place::Dead), event(2, "d")]],
        vec![vec![envelope(2, Place::Inbox), event(2, "e")]],
    ]
}

/// The states after each append of a script, the empty one first.
fn prefixes(script: &[Vec<Vec<Change>>]) -> Vec<State> {
    let mut states = vec![State::default()];
    let mut state = State::default();
    for append in script.iter().flatten() {
        for change in append {
            state.apply(change);
        }
        states.push(state.clone());
    }
    states
}

/// What the append-only files hold after so many appends: the texts of the events, the document.
fn histories(script: &[Vec<Vec<Change>>], appends: usize) -> BTreeMap<String, Vec<String>> {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for change in script.iter().flatten().take(appends).flatten() {
        if let Change::Event(id, event) = change {
            let lines = files.entry(layout::events(id)).or_default();
            lines.push(event.summary.clone());
        } else if let Change::Append { file, text } = change {
            let lines = files.entry(file.clone()).or_default();
            lines.push(text.trim_end().to_owned());
        }
    }
    files
}

fn history_on(disk: &dyn Disk, root: &Path, path: &str) -> Vec<String> {
    let Ok(bytes) = disk.read(&root.join(path)) else {
        return Vec::new();
    };
    let text = String::from_utf8(bytes).unwrap();
    text.lines()
        .map(|line| match serde_json::from_str::<RequestEvent>(line) {
            Ok(event) => event.summary,
            Err(_) => line.to_owned(),
        })
        .collect()
}

/// The two threads of the store as one, so that a test knows the order of operations.
struct Inline {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    journal: Journal,
    views: Views,
    report: OpenReport,
    good: bool,
}

impl Inline {
    fn open(disk: &SimDisk) -> Result<Self, StoreError> {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        let root = PathBuf::from("/w");
        let (mut journal, views, report) = recover(&disk, &root)?;
        // Small, so that the script meets the end of the zeros often and copies of the disk are cheap.
        journal.growth = 2_000;
        Ok(Self { disk, root, journal, views, report, good: true })
    }

    fn append(&mut self, group: &[Vec<Change>]) -> Result<(), StoreError> {
        let pending: Vec<Pending> =
            group.iter().map(|changes| prepare(changes.clone()).unwrap()).collect();
        let (first, bases) = self.journal.commit(&pending)?;
        for (seq, (pending, base)) in (first..).zip(pending.into_iter().zip(bases)) {
            let entry = super::entry::Entry { base, changes: pending.changes };
            self.views.apply(seq, &entry)?;
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), StoreError> {
        self.journal.rotate(self.good);
        let seq = self.journal.next_seq() - 1;
        let outcome = checkpoint(&*self.disk, &self.root, &mut self.views, seq);
        self.good = outcome.is_ok();
        outcome
    }
}
