//! Workspaces as earlier builds of teams left them, kept in `tests/data/workspaces/<version>`: each was killed at
//! work, with a sprint, an open gate, messages on their way and a journal behind its checkpoint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use teams::domain::gate::GateKind;
use teams::domain::record::RecordKind;
use teams::domain::request::{Request, RequestStatus};
use teams::domain::role::Role;
use teams::domain::sprint::{SprintStatus, TodoStatus};
use teams::domain::state::State;
use teams::platform::disk::RealDisk;
use teams::store::{self, OpenedStore, Store, StoreError};

use super::support::copy_folder;

struct Workspace(tempfile::TempDir);

impl Workspace {
    fn of(version: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/workspaces").join(version);
        copy_folder(&data, &folder.path().join(".teams_runtime"));
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(".teams_runtime").join(name)
    }

    fn open(&self) -> Result<OpenedStore, StoreError> {
        Store::open(self.0.path(), Arc::new(RealDisk))
    }

    fn journal(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(self.path("journal")).unwrap();
        entries.next().unwrap().unwrap().path()
    }

    /// Every file of the state folder, but for what opening itself makes.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        collect(&self.path(""), Path::new(""), &mut all);
        all
    }
}

fn collect(root: &Path, inside: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(root.join(inside)).unwrap() {
        let entry = entry.unwrap();
        let path = inside.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            collect(root, &path, all);
        } else {
            all.insert(path.clone(), std::fs::read(root.join(&path)).unwrap());
        }
    }
}

/// What the workspaces of every version hold.
fn check(state: &State) {
    teams::engine::sprint::consistent(state).unwrap();
    let blocked = |it: &&Arc<Request>| it.status == RequestStatus::Blocked;
    assert_eq!(state.requests.values().filter(blocked).count(), 1);
    let gates: Vec<_> = state.gates.values().collect();
    assert_eq!(gates.len(), 1);
    assert_eq!(gates[0].kind, GateKind::GuardedCommit);
    let gated = &state.requests[&gates[0].request_id];
    assert_eq!(gated.work.gate_id.as_ref(), Some(&gates[0].gate_id));
    assert_eq!(gated.status, RequestStatus::Delegated);
    assert_eq!(gated.work.result.as_ref().map(|result| result.role), Some(Role::Qa));
    let sprint = state.active_sprint().expect("the sprint goes on");
    assert_eq!(sprint.milestone_title, "Finish the list");
    assert_eq!(sprint.status, SprintStatus::Running);
    assert!(sprint.work.todos.iter().any(|todo| todo.progress.status == TodoStatus::Committed));
    assert!(sprint.work.todos.iter().any(|todo| todo.progress.status == TodoStatus::Blocked));
    assert!(!state.backlog.is_empty() && !state.sessions.is_empty());
    assert!(!state.lifecycles.is_empty());
    assert!(!state.spending.date.is_empty());
}

#[test]
fn a_workspace_of_an_older_version_is_copied_and_brought_up_to_date_once() {
    for version in ["1", "2", "3", "4"] {
        is_brought_up_to_date(&Workspace::of(version));
    }
}

fn is_brought_up_to_date(workspace: &Workspace) {
    let before = workspace.files();
    let read = store::read_only(workspace.0.path()).unwrap();
    check(&read);
    assert_eq!(workspace.files(), before, "looking changes nothing");

    let opened = workspace.open().unwrap();
    assert_eq!(opened.state, read);
    let copied = opened.report.migrated.clone().expect("it is migrated");
    let mut copies = BTreeMap::new();
    collect(&workspace.0.path().join(copied), Path::new(""), &mut copies);
    for (path, bytes) in &before {
        assert_eq!(copies.get(path), Some(bytes), "{}", path.display());
    }
    opened.store.close().unwrap();

    let after = workspace.files();
    assert!(after[Path::new("checkpoint")].starts_with(b"teams-checkpoint 5 "));
    for record in read.records() {
        let bytes = &after[Path::new(&record.path())];
        if let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) {
            let is_third = matches!(record.kind(), RecordKind::Backlog | RecordKind::Spending);
            let version = if is_third { 3 } else { 2 };
            assert_eq!(value["record_version"], version, "{}", record.path());
        }
    }
    let again = workspace.open().unwrap();
    assert_eq!((again.report.migrated, again.report.replayed), (None, 0));
    assert_eq!(again.state, read);
}

#[test]
fn a_workspace_of_this_version_goes_on_as_it_was() {
    let workspace = Workspace::of("5");
    let read = store::read_only(workspace.0.path()).unwrap();
    check(&read);
    let opened = workspace.open().unwrap();
    assert!(opened.report.migrated.is_none() && opened.report.replayed > 0, "{:?}", opened.report);
    assert_eq!(opened.report.set_aside, []);
    assert_eq!(opened.state, read);
    opened.store.close().unwrap();
    let again = workspace.open().unwrap();
    assert_eq!((again.report.replayed, again.state), (0, read));
}

#[test]
fn what_a_newer_build_wrote_is_refused_by_name_and_left_as_it_is() {
    let refused = |workspace: &Workspace, name: &str| {
        let before = workspace.files();
        for error in [store::read_only(workspace.0.path()).err(), workspace.open().err()] {
            let said = error.expect("refused").to_string();
            assert!(
                said.contains(name) && said.contains("newer build") && said.contains("version 6"),
                "{said}"
            );
        }
        let after = workspace.files();
        assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)));
    };
    let workspace = Workspace::of("1");
    let index = std::fs::read_to_string(workspace.path("checkpoint")).unwrap();
    let body = index.split_once('\n').unwrap().1;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&6_u32.to_le_bytes());
    crc.update(body.as_bytes());
    let newer = format!("teams-checkpoint 6 {:08x}\n{body}", crc.finalize());
    std::fs::write(workspace.path("checkpoint"), newer).unwrap();
    refused(&workspace, "checkpoint");

    let workspace = Workspace::of("1");
    let lines = b"{\"changes\":[{\"of tomorrow\":1}]}\n";
    let length = lines.len() as u32;
    let first = 486_u64;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&6_u32.to_le_bytes());
    crc.update(&first.to_le_bytes());
    crc.update(&u64::from(length).to_le_bytes());
    crc.update(lines);
    let mut bytes = b"TJ6\n".to_vec();
    bytes.extend(length.to_le_bytes());
    bytes.extend(crc.finalize().to_le_bytes());
    bytes.extend(first.to_le_bytes());
    bytes.extend(lines);
    std::fs::write(workspace.journal(), bytes).unwrap();
    refused(&workspace, ".log");
}

#[test]
fn one_record_of_a_newer_build_is_set_aside_by_name_and_the_rest_goes_on() {
    let workspace = Workspace::of("1");
    workspace.open().unwrap().store.close().unwrap();
    let id = "20261123-76408a5e";
    let path = workspace.path(&format!("requests/{id}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    let newer = text.replacen("\"record_version\": 2", "\"record_version\": 7", 1);
    assert_ne!(newer, text);
    std::fs::write(&path, &newer).unwrap();
    let opened = workspace.open().unwrap();
    let [aside] = opened.report.set_aside.as_slice() else { panic!("{:?}", opened.report) };
    assert!(aside.path.contains(id) && aside.reason.contains("version 7"), "{aside:?}");
    assert_eq!(std::fs::read_to_string(workspace.0.path().join(&aside.now)).unwrap(), newer);
    assert!(!opened.state.requests.contains_key(&id.parse().unwrap()));
    assert!(opened.state.active_sprint().is_some());
}

#[test]
fn a_request_whose_duty_lacks_its_details_is_set_aside_and_not_taken_for_another() {
    let workspace = Workspace::of("5");
    workspace.open().unwrap().store.close().unwrap();
    let state = store::read_only(workspace.0.path()).unwrap();
    let request = state.requests.values().find(|it| it.status == RequestStatus::Blocked).unwrap();
    let path = workspace.path(&format!("requests/{}.json", request.request_id));
    let mut record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    record["params"]["duty"] = "planning".into();
    std::fs::write(&path, record.to_string()).unwrap();
    let opened = workspace.open().unwrap();
    let [aside] = opened.report.set_aside.as_slice() else { panic!("{:?}", opened.report) };
    assert!(aside.reason.contains("initial_phase_step"), "{aside:?}");
}
