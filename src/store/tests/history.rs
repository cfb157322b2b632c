//! What ended long ago is packed, and found again.

use std::collections::BTreeSet;

use super::*;
use crate::platform::disk::RealDisk;
use crate::platform::sim_disk::Fault;
use crate::store::history::{PackReport, Retention, pack, packed, was_consumed};
use crate::store::{Store, read_events, read_request};

const ROOT: &str = "/w";

fn rules() -> Retention {
    Retention {
        ended_before: at(1_000),
        packs_before: Timestamp::from_millis(0),
        packs_bytes: u64::MAX,
        unmerged: BTreeSet::new(),
    }
}

/// A life in which three requests have ended and one goes on; the second is a todo of the sprint, the third has work that
/// is on no branch.
fn life(disk: &SimDisk) -> Inline {
    let mut store = Inline::open(disk).unwrap();
    let done = RequestStatus::Committed;
    for number in 1..=3 {
        let life = [
            vec![request(number, RequestStatus::Delegated, "first"), event(number, "a")],
            vec![envelope(number, EnvelopeFolder::Inbox)],
            vec![envelope(number, EnvelopeFolder::Archive), event(number, "b")],
            vec![request(number, done, "done")],
            vec![Change::Remove(RecordId::Request(request_id(number)))],
        ];
        store.append(&life).unwrap();
    }
    let mut with_todo = sprint(1, SprintStatus::Running, TodoStatus::Committed);
    if let Change::Save(crate::domain::record::AnyRecord::Sprint(sprint)) = &mut with_todo {
        Arc::make_mut(sprint).work.todos[0].progress.request_id = Some(request_id(2));
    }
    let open = [request(4, RequestStatus::Delegated, "open"), envelope(4, EnvelopeFolder::Archive)];
    store.append(&[open.to_vec(), vec![with_todo, event(4, "c")]]).unwrap();
    store.checkpoint().unwrap();
    store
}

/// The files that are packed, with what they hold.
fn old_files(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let id = request_id(1);
    let archive = layout::relay_folder(EnvelopeFolder::Archive, Role::Planner);
    let name = format!("{}.json", envelope_id(1));
    let all = disk.contents();
    let found = all.into_iter().map(|(path, bytes)| {
        (path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned(), bytes)
    });
    let is_old = |path: &str| {
        path == layout::request(&id)
            || path == layout::events(&id)
            || (path.starts_with(&archive) && path.ends_with(&name))
    };
    let found: BTreeMap<_, _> = found.filter(|(path, _)| is_old(path)).collect();
    assert_eq!(found.len(), 3);
    found
}

fn pack_all(store: &Inline, rules: &Retention) -> Result<PackReport, StoreError> {
    pack(&*store.disk, &store.root, &store.views.state, at(2_000), rules, &|| true)
}

#[test]
fn what_ended_is_packed_and_what_is_open_unmerged_or_of_a_sprint_stays() {
    let disk = SimDisk::new();
    let store = life(&disk);
    let old = old_files(&disk);
    // An action that was cut off has left a folder beside its record.
    let left = format!("{ROOT}/{}/operations/op-1.run", crate::domain::record::RUNTIME);
    disk.write(&Path::new(&left).join("stdout"), b"half").unwrap();
    disk.write(Path::new(&left.replace(".run", ".json")), b"{}").unwrap();
    let rules = Retention { unmerged: BTreeSet::from([request_id(3)]), ..rules() };
    let before = disk.contents();
    let young = Retention { ended_before: Timestamp::from_millis(0), ..rules.clone() };
    assert_eq!(pack_all(&store, &young).unwrap(), PackReport::default());
    assert_eq!(disk.contents(), before);

    let report = pack_all(&store, &rules).unwrap();
    assert_eq!(report, PackReport { requests: 1, files: 3, packs_removed: 0 });
    let root = Path::new(ROOT);
    for (path, content) in &old {
        assert_eq!(disk.len(&root.join(path)).unwrap(), None, "{path}");
        assert_eq!(packed(&disk, root, path).unwrap().as_ref(), Some(content), "{path}");
    }
    let after = disk.contents();
    for (path, bytes) in before {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        assert!(old.contains_key(name) || after.get(&path) == Some(&bytes), "{name}");
    }
    let archive = layout::relay_folder(EnvelopeFolder::Archive, Role::Planner);
    let consumed = |number, written| {
        let name = format!("{}.json", envelope_id(number));
        was_consumed(&disk, root, &archive, &name, written).unwrap()
    };
    assert!(consumed(1, None) && consumed(1, Some(Timestamp::from_millis(0))));
    assert!(!consumed(2, None), "it is still in its folder");
    assert!(!consumed(1, Some(at(0))), "no pack is younger than the message");
    assert_eq!(pack_all(&store, &rules).unwrap(), PackReport::default(), "nothing is left");
    assert_eq!(Inline::open(&disk).unwrap().views.state, store.views.state);
}

#[test]
fn a_crash_at_any_operation_of_packing_leaves_each_file_in_its_place_or_in_a_pack() {
    let start = SimDisk::new();
    drop(life(&start));
    let old = old_files(&start);
    let whole = start.after_kill();
    let store = Inline::open(&whole).unwrap();
    let opened = whole.operations();
    assert_eq!(pack_all(&store, &rules()).unwrap().requests, 2);
    assert!(whole.operations() > opened + 8);
    let root = Path::new(ROOT);
    for operation in opened + 1..=whole.operations() {
        for fault in [Fault::Crash, Fault::Eio, Fault::Full] {
            let disk = start.after_kill();
            let store = Inline::open(&disk).unwrap();
            disk.fail_at(operation, fault);
            // A full disk still removes.
            let outcome = pack_all(&store, &rules());
            assert!(outcome.is_err() || fault == Fault::Full, "{operation} {fault:?}");
            drop(store);
            for (seed, disk) in (0..4).map(|seed| (seed, disk.after_crash(seed))) {
                let label = format!("{fault:?} at {operation}, seed {seed}");
                for (path, content) in &old {
                    let there = disk.read(&root.join(path)).ok();
                    let found = match there {
                        Some(bytes) => Some(bytes),
                        None => packed(&disk, root, path).unwrap(),
                    };
                    assert_eq!(found.as_ref(), Some(content), "{label}: {path}");
                }
                let store = Inline::open(&disk).unwrap();
                pack_all(&store, &rules()).unwrap();
                for (path, content) in &old {
                    assert_eq!(disk.len(&root.join(path)).unwrap(), None, "{label}: {path}");
                    let found = packed(&disk, root, path).unwrap();
                    assert_eq!(found.as_ref(), Some(content), "{label}: {path}");
                }
            }
        }
    }
}

#[test]
fn packs_go_by_age_and_by_size_and_the_newest_stays() {
    let disk = SimDisk::new();
    let store = life(&disk);
    pack_all(&store, &rules()).unwrap();
    let small = Retention { packs_bytes: 1, ..rules() };
    assert_eq!(pack_all(&store, &small).unwrap().packs_removed, 0);
    let older = PathBuf::from("/w/.teams_runtime/history/20200101T000000000Z-0.tar.gz");
    disk.place(&older, vec![0; 10]);
    let torn = PathBuf::from("/w/.teams_runtime/history/.20200101T000000000Z-1.tar.gz.tmp");
    disk.place(&torn, vec![0; 10]);
    assert_eq!(pack_all(&store, &small).unwrap().packs_removed, 1);
    assert!(!disk.contents().contains_key(&older));
    let old = Retention { packs_before: at(0), ..rules() };
    assert_eq!(pack_all(&store, &old).unwrap().packs_removed, 1);
}

#[test]
fn people_and_the_team_read_what_was_packed() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path();
    let opened = Store::open(root, Arc::new(RealDisk)).unwrap();
    let store = opened.store;
    let id = request_id(1);
    let done = request(1, RequestStatus::Committed, "done");
    store.append(vec![done, event(1, "a"), event(1, "b")]).wait().unwrap();
    let gone = Change::Remove(RecordId::Request(id.clone()));
    store.append(vec![gone]).wait().unwrap();
    // What is old shows by the files.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.settled()).unwrap();
    let now = Timestamp::from_millis(crate::platform::clock::now().timestamp_millis());
    let soon = now.plus_seconds(3_600);
    let rules = Retention { ended_before: soon, ..rules() };
    let read = || (read_request(root, &id).unwrap(), read_events(root, &id).unwrap());
    let before = read();
    assert_eq!(before.1.len(), 2);
    let report = store.pack_history(soon, &rules, &|| true).unwrap();
    assert_eq!((report.requests, report.files), (1, 2));
    assert!(!root.join(layout::request(&id)).exists());
    assert_eq!(read(), before);
    store.append(vec![request(2, RequestStatus::Delegated, "next")]).wait().unwrap();
    store.close().unwrap();
    let again = Store::open(root, Arc::new(RealDisk)).unwrap();
    assert_eq!(again.state.requests.len(), 1);
    assert_eq!(again.report.set_aside, []);
    assert_eq!(read(), before);
}
