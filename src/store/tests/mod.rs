//! The promises of the store, on a disk that forgets and on a real one.

mod crash;
mod history;
mod journal_text;
mod life;
mod repair;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::index::checkpoint;
use super::journal::{Journal, PreparedAppend};
use super::open::{OpenReport, recover};
use super::views::Views;
use super::{StoreError, layout, prepare};
use crate::domain::change::{Change, ChannelMark};
use crate::domain::envelope::{
    Envelope, EnvelopeBody, EnvelopeFolder, EnvelopeKind, EnvelopeParams,
};
use crate::domain::ids::{
    ChannelId, EnvelopeId, ItemId, MessageId, OutgoingId, RequestId, RunId, SprintId, TodoId,
};
use crate::domain::item::{Item, ItemKind, ItemStatus};
use crate::domain::language::Language;
use crate::domain::lifecycle::Lifecycle;
use crate::domain::outgoing::{Act, Outgoing, OutgoingState, Priority, Target, Voice};
use crate::domain::record::{RUNTIME, RecordId, inside};
use crate::domain::request::{Request, RequestConversation, RequestEvent, RequestStatus, Room};
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::domain::schedule::{Scheduler, SprintSlots};
use crate::domain::session::Session;
use crate::domain::sprint::{
    Kickoff, Sprint, SprintEvent, SprintStatus, Todo, TodoStatus, Trigger,
};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::import::older::{self, ImportError};
use crate::platform::disk::Disk;
use crate::platform::sim_disk::SimDisk;

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(1_774_310_400_000).plus_seconds(second)
}

fn request_id(number: u64) -> RequestId {
    RequestId::parse(&format!("20260324-{number:08x}")).unwrap()
}

fn request(number: u64, status: RequestStatus, body: &str) -> Change {
    Change::save(Request {
        request_id: request_id(number),
        status,
        body: body.to_owned(),
        conversation: RequestConversation {
            room: Some(Room {
                thread_id: Some(ChannelId(900 + number)),
                card_id: None,
                card_digest: String::new(),
            }),
            ..RequestConversation::default()
        },
        ..Request::default()
    })
}

fn event(number: u64, summary: &str) -> Change {
    let event = RequestEvent {
        timestamp: at(number),
        kind: crate::domain::request::EventKind::Delegated,
        actor: "runtime".to_owned(),
        summary: summary.to_owned(),
        payload: Value::Null,
    };
    Change::Event(request_id(number), event)
}

fn envelope_id(number: u64) -> EnvelopeId {
    EnvelopeId::parse(&format!("019a0000-0000-7000-8000-{number:012x}")).unwrap()
}

fn envelope(number: u64, place: EnvelopeFolder) -> Change {
    Change::save(Envelope {
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
            params: EnvelopeParams::default(),
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
    })
}

fn run_id(number: u64) -> RunId {
    RunId::parse(&format!("run-{number}")).unwrap()
}

fn run(number: u64) -> Change {
    Change::save(Run {
        agent: crate::domain::config::AgentKind::Rehearsal,
        ..Run::new(
            run_id(number),
            request_id(number),
            (Role::Planner, None),
            envelope_id(number),
            at(number),
        )
    })
}

fn outgoing_id(number: u64) -> OutgoingId {
    OutgoingId::parse(&format!("o{number}")).unwrap()
}

/// A message that waits to be sent.
fn outgoing(number: u64) -> Change {
    Change::save(Outgoing {
        outgoing_id: outgoing_id(number),
        target: Target::Channel(ChannelId(1)),
        voice: Voice::Team,
        priority: Priority::Final,
        act: Act::React { message_id: MessageId(number), emoji: "👀".to_owned() },
        request_id: None,
        slot: None,
        state: OutgoingState::Queued,
        attempts: 0,
        own_failures: 0,
        not_before: None,
        refused: None,
        created_at: at(number),
    })
}

fn mark(channel: u64, message: u64) -> Change {
    Change::Channel(ChannelMark {
        channel_id: ChannelId(channel),
        guild_id: None,
        watermark: MessageId(message),
        recent: vec![MessageId(message)],
        idle: BTreeMap::new(),
        refused: Default::default(),
    })
}

fn session(number: u64) -> Change {
    Change::save(Session {
        role: Role::Planner,
        request_id: request_id(number),
        session_id: "s".to_owned(),
        agent: Default::default(),
        model: String::new(),
        command: String::new(),
        fill: None,
        room: Default::default(),
        put_back: false,
        created_at: at(number),
        last_used_at: at(number),
    })
}

fn backlog_id(number: u64) -> ItemId {
    ItemId::parse(&format!("backlog-20260324-{number:08x}")).unwrap()
}

fn item(number: u64, status: ItemStatus) -> Change {
    let mut item = Item::new(backlog_id(number), "greet", "", ItemKind::Feature, at(number));
    item.status = status;
    item.fingerprint = format!("print {number}");
    Change::save(item)
}

fn sprint_id(number: u64) -> SprintId {
    SprintId::parse(&format!("260324-Sprint-{number:02}:00")).unwrap()
}

/// A sprint with the todo of one item.
fn sprint(number: u64, status: SprintStatus, todo: TodoStatus) -> Change {
    let kickoff = Kickoff { milestone: "Greet".to_owned(), ..Kickoff::default() };
    let mut sprint =
        Sprint::new(sprint_id(number), Trigger::ManualStart, kickoff, Language::default());
    sprint.status = status;
    let id = TodoId::parse(&format!("todo-{number}")).unwrap();
    let mut shown = Todo::new(id, "greet", at(number));
    shown.backlog_id = Some(backlog_id(number));
    shown.progress.status = todo;
    sprint.work.todos.push(shown);
    Change::save(sprint)
}

fn sprint_event(number: u64, summary: &str) -> Change {
    let event = SprintEvent {
        timestamp: at(number),
        kind: crate::domain::sprint::SprintEventKind::TodoCompleted,
        summary: summary.to_owned(),
        payload: Value::Null,
    };
    Change::SprintEvent(sprint_id(number), event)
}

fn slot(sprint: Option<u64>) -> Change {
    let active_sprint_id = sprint.map(sprint_id);
    let slots = SprintSlots { last_started_at: Some(at(9)), ..SprintSlots::default() };
    let scheduler = Scheduler { active_sprint_id, slots, ..Scheduler::default() };
    Change::save(scheduler)
}

const DOCUMENT: &str = "shared_workspace/decision_log.md";

fn document(text: &str) -> Change {
    Change::Append { file: DOCUMENT.to_owned(), text: format!("{text}\n") }
}

fn lifecycle() -> Change {
    Change::save(Arc::clone(Lifecycle::built_in()))
}

/// The life of two requests and a sprint, as groups of appends.
fn script() -> Vec<Vec<Vec<Change>>> {
    let open = RequestStatus::Delegated;
    let (pending, selected) = (ItemStatus::Pending, ItemStatus::Selected);
    vec![
        vec![vec![lifecycle(), request(1, open, "first"), event(1, "a"), mark(1, 10)]],
        vec![
            vec![envelope(1, EnvelopeFolder::Inbox), document("one")],
            vec![run(1), event(1, "b"), session(1), item(1, pending), item(2, pending)],
        ],
        vec![
            vec![request(2, open, "second"), envelope(2, EnvelopeFolder::Inbox)],
            vec![
                sprint(1, SprintStatus::Planning, TodoStatus::Queued),
                slot(Some(1)),
                item(1, selected),
                sprint_event(1, "planned"),
            ],
        ],
        vec![
            vec![Change::Remove(RecordId::Run(run_id(1))), envelope(1, EnvelopeFolder::Archive)],
            vec![request(1, RequestStatus::Committed, "first, done"), event(1, "c")],
            vec![
                document("two"),
                mark(1, 11),
                mark(2, 4),
                sprint(1, SprintStatus::Running, TodoStatus::Committed),
                item(1, ItemStatus::Done),
                sprint_event(1, "delivered"),
            ],
        ],
        vec![vec![Change::Remove(RecordId::Request(request_id(1)))]],
        vec![
            vec![envelope(2, EnvelopeFolder::Dead), event(2, "d")],
            vec![
                sprint(1, SprintStatus::Completed, TodoStatus::Committed),
                slot(None),
                sprint_event(1, "ended"),
            ],
        ],
        vec![
            vec![envelope(2, EnvelopeFolder::Inbox), event(2, "e"), item(1, ItemStatus::Blocked)],
            vec![
                sprint(2, SprintStatus::Planning, TodoStatus::Queued),
                slot(Some(2)),
                Change::Remove(RecordId::Sprint(sprint_id(1))),
            ],
        ],
    ]
}

/// The states after each append of a script, the one before it first.
fn prefixes(before: &State, script: &[Vec<Vec<Change>>]) -> Vec<State> {
    let mut states = vec![before.clone()];
    let mut state = before.clone();
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
        } else if let Change::SprintEvent(id, event) = change {
            let lines = files.entry(layout::sprint_events(id)).or_default();
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
        .map(|line| {
            let event = serde_json::from_str::<Value>(line).ok();
            let summary = event.as_ref().and_then(|event| event["summary"].as_str());
            summary.unwrap_or(line).to_owned()
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
        older::take_over(&*disk, &root).map_err(|error| match error {
            ImportError::File(error) => StoreError::from(error),
            ImportError::Encode(error) => StoreError::from(error),
            ImportError::NoCopy(_) | ImportError::Link(_) => panic!("{error}"),
        })?;
        let (mut journal, views, report) = recover(&disk, &root)?;
        // Small, so that the script meets the end of the zeros often and copies of the disk are cheap.
        journal.growth = 2_000;
        Ok(Self { disk, root, journal, views, report, good: true })
    }

    fn append(&mut self, group: &[Vec<Change>]) -> Result<(), StoreError> {
        let pending: Vec<PreparedAppend> =
            group.iter().map(|changes| prepare(changes.clone()).unwrap()).collect();
        let (first, entries) = self.journal.commit(pending)?;
        for (seq, entry) in (first..).zip(entries) {
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
