//! Workspaces of the older runtime: every quirk of their records (`spec/teams.md` 4 and 13), one opening with
//! a backup, and a sprint that goes on by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use teams::domain::criterion::Criterion;
use teams::domain::ids::{ItemId, RequestId, SprintId};
use teams::domain::item::ItemStatus;
use teams::domain::request::RequestStatus;
use teams::domain::sprint::{
    CloseoutStatus, Phase, Sprint, SprintStatus, Todo, TodoStatus, WrapUp,
};
use teams::domain::state::State;
use teams::engine::sprint::consistent;
use teams::import::older::{self, Notes};
use teams::platform::disk::RealDisk;
use teams::store::{self, OpenedStore, Store};

use crate::support::copy_folder;
use crate::support::house::{House, Plan};

const S: &str = "260324-Sprint-09:00";

/// A workspace folder with records in it.
struct Older(tempfile::TempDir);

impl Older {
    fn new() -> Older {
        let older = Older(tempfile::tempdir().unwrap());
        std::fs::create_dir(older.state_folder()).unwrap();
        older
    }

    fn fixture() -> Older {
        let older = Older::new();
        copy_folder(&fixture(), &older.state_folder());
        older
    }

    fn state_folder(&self) -> PathBuf {
        self.0.path().join(".teams_runtime")
    }

    fn put(&self, path: &str, record: &Value) -> &Self {
        self.text(path, &serde_json::to_string_pretty(record).unwrap())
    }

    fn text(&self, path: &str, text: &str) -> &Self {
        let path = self.state_folder().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn item(&self, id: &str, fields: Value) -> &Self {
        let base = json!({"backlog_id": id, "title": id, "status": "pending",
            "created_at": "2026-03-24T09:00:00", "updated_at": "2026-03-24T09:00:00"});
        self.put(&format!("backlog/{id}.json"), &with(base, fields))
    }

    fn sprint(&self, id: &str, fields: Value) -> &Self {
        let base = json!({"sprint_id": id, "status": "running", "phase": "ongoing", "trigger": "manual_start",
            "started_at": "2026-03-24T09:00:00", "ended_at": "", "todos": []});
        self.put(&format!("sprints/{id}.json"), &with(base, fields))
    }

    fn active(&self, id: &str) -> &Self {
        self.put("sprint_scheduler.json", &json!({"active_sprint_id": id, "next_slot_at": ""}))
    }

    fn request(&self, id: &str, fields: Value) -> &Self {
        let base = json!({"request_id": id, "status": "delegated", "intent": "route", "scope": id,
            "created_at": "2026-03-24T09:00:00", "updated_at": "2026-03-24T09:00:00", "sprint_id": "",
            "backlog_id": "", "todo_id": "", "result": {}, "params": {}});
        self.put(&format!("requests/{id}.json"), &with(base, fields))
    }

    /// Looks at it, opens it, opens it again: every time the same, and consistent.
    fn taken_over(&self) -> (State, Notes) {
        let converted = older::preview(self.0.path()).unwrap().expect("it is of the older runtime");
        let seen = State::from_records(&converted.records);
        consistent(&seen).unwrap();
        let (opened, notes) = self.open();
        assert_eq!(opened.state, seen, "looking and opening come to the same");
        let notes = notes.expect("it is of the older runtime");
        opened.store.close().unwrap();
        let (again, none) = self.open();
        assert_eq!(none, None);
        assert!(again.report.set_aside.is_empty() && again.report.edited.is_empty());
        assert_eq!(again.state, seen);
        again.store.close().unwrap();
        assert_eq!(self.backups().len(), 1);
        assert!(older::preview(self.0.path()).unwrap().is_none());
        assert_eq!(older::notes(self.0.path()).unwrap().as_ref(), Some(&notes));
        (seen, notes)
    }

    /// Opens it as a start of the team does.
    fn open(&self) -> (OpenedStore, Option<Notes>) {
        let lock = store::hold(self.0.path(), &RealDisk).unwrap();
        let notes = older::take_over(&RealDisk, self.0.path()).unwrap();
        (Store::open_held(lock, self.0.path(), Arc::new(RealDisk)).unwrap(), notes)
    }

    fn backups(&self) -> Vec<PathBuf> {
        let names = std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|it| it.to_string_lossy().contains(".teams_runtime.backup-")).collect()
    }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/legacy/state")
}

fn with(mut base: Value, fields: Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        base[key] = value.clone();
    }
    base
}

fn files(folder: &Path, root: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, root, all);
        } else {
            all.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path).unwrap());
        }
    }
}

fn sprint_id(text: &str) -> SprintId {
    SprintId::parse(text).unwrap()
}

fn todos(state: &State) -> Vec<(&str, TodoStatus)> {
    state.sprints[&sprint_id(S)]
        .work
        .todos
        .iter()
        .map(|it| (it.progress.todo_id.as_str(), it.progress.status))
        .collect()
}

fn todo<'a>(state: &'a State, id: &str) -> &'a Todo {
    state.sprints[&sprint_id(S)]
        .work
        .todos
        .iter()
        .find(|todo| todo.progress.todo_id.as_str() == id)
        .unwrap()
}

fn status(state: &State, item: &str) -> Option<ItemStatus> {
    state.backlog.get(&ItemId::parse(item).unwrap()).map(|item| item.status)
}

fn one_todo(fields: Value) -> Value {
    json!({"todos": [with(json!({"todo_id": "t1", "backlog_id": "b1", "title": "one", "status": "queued",
        "priority_rank": 1, "request_id": ""}), fields)]})
}

#[test]
fn the_whole_folder_is_copied_once_before_anything_is_written() {
    let older = Older::fixture();
    let mut before = BTreeMap::new();
    files(&older.state_folder(), &older.state_folder(), &mut before);
    let (_, notes) = older.taken_over();
    let backups = older.backups();
    assert!(backups[0].ends_with(&notes.backup), "{notes:?}");
    let mut copied = BTreeMap::new();
    files(&backups[0], &backups[0], &mut copied);
    for (path, bytes) in &before {
        assert_eq!(copied.get(path), Some(bytes), "{}", path.display());
    }
    // Put back, it is the same copy that is found.
    std::fs::remove_dir_all(older.state_folder()).unwrap();
    copy_folder(&backups[0], &older.state_folder());
    older.taken_over();
}

#[test]
fn a_running_sprint_is_taken_over_with_everything_that_belongs_to_it() {
    let older = Older::fixture();
    let (state, notes) = older.taken_over();
    let sprint = state.active_sprint().unwrap();
    assert_eq!(sprint.sprint_folder, "shared_workspace/sprints/260324-Sprint-09-00", "13.A #25");
    assert_eq!(sprint.cutoff_at, None, "13.A #22");
    assert_eq!(sprint.started_at.unwrap().to_string(), "2026-03-24T09:00:00.000000+09:00");
    assert_eq!(sprint.planning.research, None);
    assert_eq!(sprint.work.git_baseline, None);
    assert_eq!(
        todos(&state),
        [("todo-090001-000001", TodoStatus::Running), ("todo-090002-000002", TodoStatus::Queued)],
        "13.A #1: the planner's own report is no end of the todo"
    );
    let items: Vec<_> = state.backlog.values().map(|it| (it.priority_rank, it.status)).collect();
    let (selected, pending) = (ItemStatus::Selected, ItemStatus::Pending);
    assert_eq!(items, [(1, selected), (2, selected), (3, pending)], "ranks as texts");
    assert_eq!(state.settled_items.len(), 1);
    assert!(state.settled_items.values().all(|print| print.len() == 40));
    assert_eq!(state.sprint_ids.len(), 2);
    assert_eq!(state.sprints.len(), 1, "what has ended is not kept");
    assert_eq!(state.ended_requests, 2, "one was committed, one is waited for by nobody");
    let request = &state.requests[&RequestId::parse("20260324-0000000a").unwrap()];
    assert_eq!(request.fingerprint.len(), 40);
    let left = notes.left.join("\n");
    assert!(left.contains("role_sessions"), "{left}");
    for part in ["kind was \"improvement\"", "sprint_folder was", "0000000b.json: it was delegated"]
    {
        assert!(notes.repaired.iter().any(|line| line.contains(part)), "{part}: {notes:#?}");
    }
    let events = store::read_events(older.0.path(), &request.request_id).unwrap();
    assert_eq!(events[0].summary, "begun");
}

#[test]
fn who_holds_the_slot() {
    let missing = Older::new();
    missing.active("260101-Sprint-09:00");
    let (state, notes) = missing.taken_over();
    assert_eq!(state.scheduler.active_sprint_id, None, "S28, 13.A #7");
    assert!(notes.repaired[0].contains("has no record"));

    for ended in ["completed", "failed", "blocked"] {
        let over = Older::new();
        over.active(S).sprint(S, json!({"status": ended, "ended_at": "2026-03-24T10:00:00"}));
        let (state, _) = over.taken_over();
        assert_eq!(state.scheduler.active_sprint_id, None, "13.A #8 {ended}");
        assert!(state.sprints.contains_key(&sprint_id(S)), "the last one can be restarted");
    }

    let lost = Older::new();
    lost.text("sprint_scheduler.json", "").sprint(S, json!({}));
    lost.sprint("260301-Sprint-09:00", json!({"started_at": "2026-03-01T09:00:00"}));
    // The record that says nothing stays in the copy, and a new one is written over it.
    let (state, notes) = lost.taken_over();
    assert!(lost.backups()[0].join("sprint_scheduler.json").exists());
    assert_eq!(state.scheduler.active_sprint_id, Some(sprint_id(S)), "13.B #35, #37");
    assert!(notes.left.iter().any(|line| line.contains("sprint_scheduler.json")));
    assert!(notes.repaired.iter().any(|line| line.contains("260301-Sprint-09:00")));
}

#[test]
fn a_todo_stands_where_its_request_stands() {
    for (word, request, wanted, item) in [
        ("completed", Some("delegated"), TodoStatus::Running, Some(ItemStatus::Selected)),
        ("queued", Some("delegated"), TodoStatus::Running, Some(ItemStatus::Selected)),
        ("running", Some("completed"), TodoStatus::Completed, None),
        ("running", Some("committed"), TodoStatus::Committed, None),
        ("running", Some("blocked"), TodoStatus::Blocked, Some(ItemStatus::Blocked)),
        ("uncommitted", Some("uncommitted"), TodoStatus::Blocked, Some(ItemStatus::Blocked)),
        ("running", Some("nonsense"), TodoStatus::Blocked, Some(ItemStatus::Blocked)),
        ("running", None, TodoStatus::Queued, Some(ItemStatus::Selected)),
        ("uncommitted", None, TodoStatus::Queued, Some(ItemStatus::Selected)),
        ("in progress", None, TodoStatus::Queued, Some(ItemStatus::Selected)),
        ("completed", None, TodoStatus::Completed, None),
    ] {
        let older = Older::new();
        let fields =
            json!({"status": word, "request_id": request.map_or("", |_| "20260324-00000001")});
        older.active(S).sprint(S, one_todo(fields));
        older.item("b1", json!({"status": "selected", "selected_in_sprint_id": S}));
        if let Some(request) = request {
            let kind = json!({"status": request, "sprint_id": S, "backlog_id": "b1", "todo_id": "t1",
                "params": {"_teams_kind": "sprint_internal"},
                "result": {"role": "planner", "status": "completed", "summary": "x"}});
            older.request("20260324-00000001", kind);
        }
        let (state, _) = older.taken_over();
        assert_eq!(todos(&state), [("t1", wanted)], "{word} {request:?}");
        assert_eq!(status(&state, "b1"), item, "{word} {request:?}");
    }
}

#[test]
fn lost_todos_come_back_from_their_requests() {
    let older = Older::new();
    older.active(S).sprint(S, json!({"todos": []}));
    older.item("b1", json!({"status": "done"}));
    let internal =
        json!({"sprint_id": S, "backlog_id": "b1", "params": {"_teams_kind": "sprint_internal"}});
    older.request("20260324-00000001", internal.clone());
    let (state, _) = older.taken_over();
    assert_eq!(todos(&state), [("recovered-20260324-00000001", TodoStatus::Running)], "4.5");
    assert_eq!(status(&state, "b1"), Some(ItemStatus::Selected));

    let retired = Older::new();
    let again = json!({"todo_id": "t1", "backlog_id": "b1", "status": "queued", "title": "again",
        "request_id": "", "retry_of_request_id": "20260324-00000001"});
    retired.active(S).sprint(S, json!({"todos": [again]})).item("b1", json!({}));
    retired.request("20260324-00000001", internal);
    let (state, _) = retired.taken_over();
    assert_eq!(todos(&state), [("t1", TodoStatus::Queued)], "4.5: a retired request is left out");
    assert!(state.requests.is_empty(), "and does not run beside its successor");
}

#[test]
fn what_two_records_claim_only_one_gets() {
    let one = |id: &str, request: &str| {
        json!({"todo_id": id, "backlog_id": "b1", "title": id,
        "status": "queued", "request_id": request})
    };
    for item_is_there in [true, false] {
        let older = Older::new();
        older.active(S).sprint(
            S,
            json!({"todos": [one("t1", ""), one("t1", ""), one("t2", ""), "rubbish",
                one("../x", "")]}),
        );
        if item_is_there {
            older.item("b1", json!({"status": "pending"}));
        }
        let (state, _) = older.taken_over();
        let statuses: Vec<_> = todos(&state).iter().map(|(_, status)| *status).collect();
        assert_eq!(statuses, [TodoStatus::Queued, TodoStatus::Cancelled, TodoStatus::Cancelled]);
        assert_eq!(status(&state, "b1"), Some(ItemStatus::Selected));
    }
}

#[test]
fn an_item_that_is_done_is_delivered_by_no_todo_beside_the_one_that_works_on_it() {
    let todo = |id: &str| json!({"todo_id": id, "backlog_id": "b1", "title": id, "status": "queued", "request_id": "r1"});
    let older = Older::new();
    older.active(S).sprint(S, json!({"todos": [todo("t1"), todo("t2")]}));
    older.item("b1", json!({"status": "done"}));
    older.request("r1", json!({"sprint_id": S, "params": {"_teams_kind": "sprint_internal"}}));
    let (state, _) = older.taken_over();
    assert_eq!(todos(&state), [("t1", TodoStatus::Running), ("t2", TodoStatus::Cancelled)]);
    assert_eq!(status(&state, "b1"), Some(ItemStatus::Selected));
}

#[test]
fn todos_without_their_items() {
    for (item, wanted, stands) in [
        (None, TodoStatus::Queued, Some(ItemStatus::Selected)),
        (Some("dropped"), TodoStatus::Cancelled, None),
        (Some("done"), TodoStatus::Completed, None),
        (Some("blocked"), TodoStatus::Queued, Some(ItemStatus::Selected)),
    ] {
        let older = Older::new();
        older.active(S).sprint(S, one_todo(json!({})));
        if let Some(word) = item {
            older.item("b1", json!({"status": word}));
        }
        let (state, _) = older.taken_over();
        assert_eq!(todos(&state), [("t1", wanted)], "{item:?}");
        assert!(todo(&state, "t1").backlog_id.is_some(), "{item:?}");
        assert_eq!(status(&state, "b1"), stands, "{item:?}");
    }
}

#[test]
fn an_item_whose_record_is_torn_comes_back_from_its_sprint_with_its_words() {
    let older = Older::new();
    let copy = json!({"backlog_id": "b1", "title": "one", "summary": "why", "scope": "add the total",
        "acceptance_criteria": [{"criterion": "it adds"}, "it prints"], "status": "selected"});
    let other = with(copy.clone(), json!({"backlog_id": "b2", "scope": ["first", "second"]}));
    let sprint = with(
        one_todo(json!({})),
        json!({"selected_items": [copy, other], "selected_backlog_ids": ["b1", "b2"]}),
    );
    older.active(S).sprint(S, sprint);
    older.text("backlog/b1.json", "{\"backlog_id\": \"b1\", \"sco");
    let (state, _) = older.taken_over();
    let item = |id: &str| &state.backlog[&ItemId::parse(id).unwrap()];
    assert_eq!((item("b1").scope.as_str(), item("b1").summary.as_str()), ("add the total", "why"));
    let criteria: Vec<&str> =
        item("b1").acceptance_criteria.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(criteria, ["it adds", "it prints"]);
    assert_eq!(item("b2").scope, "first\nsecond");
}

#[test]
fn what_is_over_by_another_word_is_not_begun_again() {
    let older = Older::new();
    for (id, word) in [("b1", "completed"), ("b2", "Closed"), ("b3", "canceled"), ("b4", "open")] {
        older.item(id, json!({"status": word}));
    }
    let (opened, _) = older.open();
    assert_eq!(opened.state.backlog.keys().map(ItemId::as_str).collect::<Vec<_>>(), ["b4"]);
}

#[test]
fn what_cannot_be_copied_is_not_taken_over_in_part() {
    let older = Older::new();
    older.item("b1", json!({"scope": "add the total"}));
    let (requests, elsewhere) =
        (older.state_folder().join("requests"), older.0.path().join("elsewhere"));
    let _ = std::fs::remove_dir_all(&requests);
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &requests).unwrap();
    let taken = |older: &Older| teams::import::older::take_over(&RealDisk, older.0.path());
    let error = taken(&older).err().unwrap().to_string();
    assert!(error.contains("requests is a link"), "{error}");
    std::fs::remove_file(&requests).unwrap();
    // It was cut off, and then somebody made room.
    let notes = json!({"unfinished": true, "backup": ".teams_runtime.backup-gone"});
    std::fs::write(older.state_folder().join("import.json"), notes.to_string()).unwrap();
    let error = taken(&older).err().unwrap().to_string();
    assert!(error.contains(".teams_runtime.backup-gone is gone"), "{error}");
}

#[test]
fn where_a_sprint_goes_on() {
    let planned = json!([{"created_at": "2026-03-24T09:00:00", "phase": "initial", "step": "artifact_sync",
        "phase_ready": true}]);
    for (fields, status, phase, step, wrap_up) in [
        (json!({"status": "planning", "phase": "initial"}), "planning", Phase::Initial, None, None),
        (
            json!({"status": "planning", "planning_iterations": planned}),
            "planning",
            Phase::Initial,
            Some("backlog_definition"),
            None,
        ),
        (
            json!({"status": "closeout", "phase": "wrap_up", "closeout_status": "pending_changes"}),
            "running",
            Phase::WrapUp,
            None,
            Some(WrapUp::AfterCurrent),
        ),
        (
            json!({"wrap_up_requested_at": "2026-03-24T09:30:00"}),
            "running",
            Phase::WrapUp,
            None,
            Some(WrapUp::AfterCurrent),
        ),
        (
            json!({"status": "weird", "phase": "?", "trigger": "moon"}),
            "running",
            Phase::Ongoing,
            None,
            None,
        ),
    ] {
        let older = Older::new();
        older.active(S).sprint(S, fields.clone());
        let (state, _) = older.taken_over();
        let sprint = state.active_sprint().unwrap();
        assert_eq!(sprint.status.as_str(), status, "{fields}");
        assert_eq!((sprint.phase, sprint.closing.wrap_up), (phase, wrap_up), "{fields}");
        let found = sprint.planning.step.map(|step| step.as_str());
        assert_eq!(found, step, "13.A #29 {fields}");
    }
}

#[test]
fn items_of_no_active_sprint_are_free_again() {
    let older = Older::new();
    older
        .item("b1", json!({"status": "selected", "selected_in_sprint_id": "260301-Sprint-09:00"}))
        .item("b2", json!({"status": "pending", "planned_in_sprint_id": "260301-Sprint-09:00"}))
        .item("b3", json!({"status": "ready?", "kind": 7, "source": "moon", "priority_rank": "2"}))
        .item("b4", json!({"priority_rank": "soon", "title": "", "summary": "from the summary"}))
        .item("b5", json!({"status": "Done", "fingerprint": ""}))
        .item(
            "b6",
            json!({"status": "blocked", "acceptance_criteria": "one line", "origin": [],
            "updated_at": "2026-03-24 09:00:00", "created_at": "yesterday"}),
        );
    let (state, notes) = older.taken_over();
    assert_eq!(state.backlog.len(), 5, "13.A #6");
    for item in state.backlog.values() {
        assert!(item.selected_in_sprint_id.is_none() && item.planned_in_sprint_id.is_none());
        assert!(!item.title.is_empty() && item.fingerprint.len() == 40);
    }
    let rank = |id: &str| state.backlog[&ItemId::parse(id).unwrap()].priority_rank;
    assert_eq!((rank("b3"), rank("b4")), (2, 0));
    let blocked = &state.backlog[&ItemId::parse("b6").unwrap()];
    assert_eq!(blocked.acceptance_criteria, [Criterion::from("one line")]);
    assert_eq!(blocked.created_at, blocked.updated_at);
    assert_eq!(state.settled_items.len(), 1);
    for part in ["\"ready?\"", "\"moon\"", "\"soon\"", "\"yesterday\""] {
        assert!(notes.repaired.iter().any(|line| line.contains(part)), "{part}: {notes:#?}");
    }
}

#[test]
fn what_is_no_record_is_set_aside_and_named() {
    let older = Older::new();
    older
        .item("b1", json!({}))
        .text("backlog/b2.json", "")
        .text("backlog/b3.json", "[1]")
        .text("sprints/260324-Sprint-09:00.json", "{\"sprint_id\": \"260324-")
        .item("b4", json!({"backlog_id": "../../evil"}))
        .text("requests/20260324-00000001.json", "{}");
    let (opened, notes) = older.open();
    consistent(&opened.state).unwrap();
    assert_eq!(opened.state.backlog.len(), 1);
    assert_eq!(opened.report.set_aside.len(), 5);
    let left = notes.unwrap().left;
    assert_eq!(left.len(), 5, "{left:?}");
    opened.store.close().unwrap();
    assert!(!older.0.path().parent().unwrap().join("evil.json").exists(), "13.D #61");
}

#[test]
fn requests_in_every_odd_shape() {
    let older = Older::new();
    older
        .request("20260324-00000001", json!({"status": "blocked", "source_message_created_at": "",
            "operation_id": "", "owner_role": "", "visited_roles": ["planner", "nobody"],
            "result": {"role": "planner", "status": "blocked", "summary": "which colour?",
                "proposals": {"required_inputs": ["a colour"]}},
            "reply_route": {"author_id": "77", "channel_id": 88, "guild_id": "", "is_dm": ""}}))
        .request("20260324-00000002", json!({"status": "queued", "fingerprint": "", "params": null,
            "artifacts": "a.md", "body": "한국어로"}))
        .request("20260324-00000003", json!({"status": "delegated", "current_role": "qa", "reply_route": {},
            "params": {"original_requester": {"channel_id": "4711"}, "workflow": {"step": "qa_validation", "phase": "validation", "phase_owner": "qa", "phase_status": "active"}}}))
        .request("20260324-00000004", json!({"status": "completed", "result": {"role": "nobody"}}))
        .request("260324-Sprint-09:00:closeout", json!({"params": {"_teams_kind": "sprint_closeout_report"}}));
    let (state, notes) = older.taken_over();
    let request = |id: &str| &state.requests[&RequestId::parse(id).unwrap()];
    assert_eq!(state.requests.len(), 3);
    assert_eq!(state.ended_requests, 2);
    let blocked = request("20260324-00000001");
    assert_eq!(blocked.blocked.as_ref().unwrap().required_inputs, ["a colour"]);
    assert_eq!(blocked.conversation.reply_route.author_id.unwrap().0, 77);
    assert_eq!(blocked.conversation.reply_route.guild_id, None);
    assert_eq!(request("20260324-00000002").fingerprint.len(), 40);
    assert_eq!(request("20260324-00000002").conversation.language.as_str(), "ko");
    let route = &request("20260324-00000003").conversation.reply_route;
    assert_eq!(route.channel_id.unwrap().0, 4711, "R14");
    let built = request("20260324-00000003").params.workflow.as_ref().unwrap();
    assert_eq!(
        built.step,
        teams::domain::lifecycle::StepName::of("developer_build"),
        "nothing lies in a worktree yet"
    );
    assert!(
        notes
            .repaired
            .iter()
            .any(|line| line.contains("Sprint-09:00:closeout.json: it was delegated"))
    );
    let closing = store::read_request(
        older.0.path(),
        &RequestId::parse("260324-Sprint-09:00:closeout").unwrap(),
    );
    assert_eq!(closing.unwrap().unwrap().status, RequestStatus::Cancelled);
}

#[test]
fn ended_requests_that_an_earlier_build_left_as_they_were_are_brought_into_our_shape() {
    let older = Older::fixture();
    let (before, notes) = older.taken_over();
    // An earlier build left them so, and noted no version.
    let noted = json!({"backup": notes.backup, "repaired": notes.repaired, "left": notes.left});
    older
        .put("import.json", &noted)
        .request("20260101-00000001", json!({"status": "canceled", "artifacts": "a.md", "result": {"role": "qa",
            "status": "completed"}, "events": [{"timestamp": "2026-01-01T09:00:00", "type": "created",
            "actor": "orchestrator", "summary": "begun"}]}))
        .text("requests/20260101-00000002.json", "{\"request_id\": ");
    let (opened, none) = older.open();
    assert_eq!((opened.state, none), (before, None));
    opened.store.close().unwrap();
    let id = RequestId::parse("20260101-00000001").unwrap();
    let request = store::read_request(older.0.path(), &id).unwrap().unwrap();
    assert_eq!(request.status, RequestStatus::Cancelled);
    assert_eq!(store::read_events(older.0.path(), &id).unwrap()[0].summary, "begun");
    assert_eq!(older::notes(older.0.path()).unwrap(), Some(notes), "what was noted stays");
    let torn = older.state_folder().join("requests/20260101-00000002.json");
    assert_eq!(std::fs::read_to_string(torn).unwrap(), "{\"request_id\": ");
}

#[test]
fn an_older_sprint_that_could_not_be_planned_can_be_restarted() {
    let older = Older::new();
    older.active(S).sprint(S, json!({"status": "blocked", "phase": "initial", "closeout_status": "planning_incomplete",
        "ended_at": "2026-03-24T09:30:00", "commits": ["0123"], "git_baseline": {"repo_root": "/x", "head_sha": "HEAD",
        "dirty_paths": ["a"]}}));
    let (state, _) = older.taken_over();
    let sprint = &state.sprints[&sprint_id(S)];
    assert_eq!(sprint.status, SprintStatus::Blocked);
    assert_eq!(sprint.closing.status, Some(CloseoutStatus::PlanningIncomplete));
    assert_eq!(sprint.work.git_baseline.as_ref().unwrap().head_sha, "", "13.D #63");
}

/// What lies in the workspace but for logs and locks.
fn records(house: &House) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    files(&house.root(), &house.root(), &mut all);
    all.retain(|path, _| !path.starts_with("logs") && !path.to_string_lossy().ends_with("lock"));
    all
}

#[tokio::test]
async fn an_older_sprint_goes_on_to_its_end() {
    let mut house = House::built(Plan::default()).await;
    copy_folder(&fixture(), &house.root().join(".teams_runtime"));
    let (code, out, error) = house.teams(&["status"]).await;
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    assert!(out.contains("written by an older runtime"), "{out}");
    let (code, out, error) = house.teams(&["status", "--sprint"]).await;
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    assert!(out.contains(S), "{out}");
    let (code, out, error) = house.teams(&["backlog", "list"]).await;
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    assert!(out.contains("Left over"), "{out}");
    // A start that cannot succeed takes nothing over, and none does before somebody said so.
    let before = records(&house);
    let root = house.root();
    let run = ["run", "--quiet", "--yes", "--workspace-root", root.to_str().unwrap()];
    let (code, _, error) = crate::support::house::teams(&run, &BTreeMap::new()).await;
    assert_eq!((code, error.contains("TEAMS_TEST_TEAMS is not set")), (1, true), "{error}");
    assert_eq!(records(&house), before);
    let (code, _, error) = house.teams(&["run", "--quiet"]).await;
    assert_eq!((code, error.contains("of an older runtime")), (1, true), "{error}");
    let command = format!("`teams run --yes --workspace-root '{}'`", root.display());
    assert!(error.contains(&command), "{error}");
    assert_eq!(records(&house), before);
    house.arguments(&["--yes"]);
    house.start();
    let sprint = house
        .until("the sprint ends", async |house| {
            // By its file: a newer sprint may have taken its place in memory.
            let path = house.root().join(format!(".teams_runtime/sprints/{S}.json"));
            let sprint: Sprint = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
            sprint.status.is_terminal().then_some(sprint)
        })
        .await;
    consistent(&house.state().unwrap()).unwrap();
    assert!(sprint.ended_at.is_some() && sprint.work.git_baseline.is_some());
    assert!(
        sprint.work.todos.iter().all(|todo| todo.progress.status.is_terminal()),
        "{:#?}",
        sprint.work.todos
    );
    let committed =
        sprint.work.todos.iter().filter(|todo| todo.progress.status == TodoStatus::Committed);
    assert!(committed.count() >= 2, "{:#?}", sprint.work.todos);
    assert_eq!(sprint.status, SprintStatus::Completed, "{}", sprint.closing.message);
    let first = RequestId::parse("20260324-0000000a").unwrap();
    let events = store::read_events(&house.root(), &first).unwrap();
    assert!(
        events.iter().any(|event| event.kind.as_str() == "role_report"),
        "it was worked on: {events:#?}"
    );
    house.stop().await;
    assert!(house.log().contains("taken over"), "{}", house.log());
    let (_, out, _) = house.teams(&["status"]).await;
    assert!(out.contains("taken over from an older runtime"), "{out}");
    house.arguments(&[]);
    house.start();
    house.until("it is up again", async |house| store::is_owned(&house.root()).then_some(())).await;
    let names = std::fs::read_dir(house.root()).unwrap().map(|entry| entry.unwrap().file_name());
    let backups = names.filter(|it| it.to_string_lossy().contains(".backup-")).count();
    assert_eq!(backups, 1, "the second opening takes nothing over");
    house.close().await;
}

/// A word out of a few, or rubbish.
fn word(known: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => prop::sample::select(known).prop_map(|word| json!(word)),
        1 => prop::sample::select(vec![json!(null), json!(3), json!("?"), json!([]), json!({"a": 1})]),
    ]
}

const STATUSES: &[&str] =
    &["queued", "running", "uncommitted", "committed", "completed", "blocked", "failed"];

fn any_todo() -> impl Strategy<Value = Value> {
    (
        word(&["t1", "t2", "t3", ""]),
        word(&["b1", "b2", "b3", ""]),
        word(&["r1", "r2", "r3", ""]),
        word(&["r1", "r2", ""]),
        word(STATUSES),
    )
        .prop_map(|(todo_id, backlog_id, request_id, retry, status)| {
            json!({"todo_id": todo_id, "backlog_id": backlog_id, "request_id": request_id,
                "retry_of_request_id": retry, "status": status})
        })
}

fn any_sprint() -> impl Strategy<Value = Value> {
    (
        word(&["planning", "running", "closeout", "completed", "failed", "blocked"]),
        word(&["initial", "ongoing", "wrap_up"]),
        word(&["", "", "2026-03-24T10:00:00"]),
        prop::collection::vec(any_todo(), 0..4),
    )
        .prop_map(|(status, phase, ended_at, todos)| {
            json!({"status": status, "phase": phase, "ended_at": ended_at, "todos": todos})
        })
}

fn any_item() -> impl Strategy<Value = Value> {
    (
        word(&["pending", "selected", "blocked", "done", "carried_over", "dropped"]),
        word(&["s1", "s2", ""]),
        word(&["s1", "s2", ""]),
        word(&["b1", "b2", ""]),
    )
        .prop_map(|(status, selected, planned, on)| {
            json!({"status": status, "selected_in_sprint_id": selected, "planned_in_sprint_id": planned,
                "depends_on": on})
        })
}

fn any_request() -> impl Strategy<Value = Value> {
    (
        word(&["queued", "delegated", "completed", "blocked", "failed", "cancelled", "uncommitted", "committed"]),
        word(&["s1", "s2", ""]),
        word(&["b1", "b2", "b3", ""]),
        word(&["t1", "t2", ""]),
        word(&["sprint_internal", "sprint_internal", "sourcer_review", ""]),
    )
        .prop_map(|(status, sprint_id, backlog_id, todo_id, kind)| {
            json!({"status": status, "sprint_id": sprint_id, "backlog_id": backlog_id, "todo_id": todo_id,
                "params": {"_teams_kind": kind}})
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_lay_there_agrees_afterwards(
        active in word(&["s1", "s2", "s3", ""]),
        sprints in prop::collection::vec(any_sprint(), 0..3),
        items in prop::collection::vec(any_item(), 0..4),
        requests in prop::collection::vec(any_request(), 0..4),
    ) {
        let older = Older::new();
        older.put("sprint_scheduler.json", &json!({"active_sprint_id": active}));
        for (at, sprint) in sprints.into_iter().enumerate() {
            older.sprint(&format!("s{}", at + 1), sprint);
        }
        for (at, item) in items.into_iter().enumerate() {
            older.item(&format!("b{}", at + 1), item);
        }
        for (at, request) in requests.into_iter().enumerate() {
            older.request(&format!("r{}", at + 1), request);
        }
        let converted = older::preview(older.0.path()).unwrap().unwrap();
        let state = State::from_records(&converted.records);
        prop_assert_eq!(consistent(&state), Ok(()));
        prop_assert!(state.requests.values().all(|request| !request.status.is_terminal()));
        let (opened, _) = older.open();
        prop_assert_eq!(&opened.state, &state);
        prop_assert!(opened.report.set_aside.is_empty(), "{:?}", opened.report.set_aside);
        opened.store.close().unwrap();
        let (again, _) = older.open();
        prop_assert_eq!(&again.state, &state);
        again.store.close().unwrap();
    }
}
