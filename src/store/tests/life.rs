//! The store with its threads, on a real folder where that is possible.

use std::sync::Arc;

use super::*;
use crate::domain::record::AnyRecord;
use crate::platform::disk::RealDisk;
use crate::platform::files;
use crate::platform::sim_disk::Fault;
use crate::store::work::Pace;
use crate::store::{OpenedStore, StateReader, Store, hold, read_events, read_only, read_request};

fn open(root: &Path) -> OpenedStore {
    Store::open(root, Arc::new(RealDisk)).unwrap()
}

fn open_sim(disk: &SimDisk) -> Result<OpenedStore, StoreError> {
    Store::open(Path::new("/w"), Arc::new(disk.clone()))
}

fn put_all(store: &Store, script: Vec<Vec<Vec<Change>>>) {
    for append in script.into_iter().flatten() {
        store.append(append).wait().unwrap();
    }
}

/// The state at the end of the script.
fn final_state() -> State {
    prefixes(&State::default(), &script()).pop().unwrap()
}

#[test]
fn a_clean_stop_leaves_an_empty_tail() {
    let root = tempfile::tempdir().unwrap();
    let opened = open(root.path());
    assert!(opened.report.first);
    put_all(&opened.store, script());
    opened.store.close().unwrap();
    let journal = root.path().join(layout::JOURNAL);
    assert_eq!(files::list(&journal).unwrap(), [] as [PathBuf; 0]);
    let again = open(root.path());
    assert_eq!(again.report.replayed, 0);
    assert!(!again.report.first);
    assert_eq!(again.state, final_state());
}

#[test]
fn without_a_clean_stop_the_tail_is_replayed() {
    let root = tempfile::tempdir().unwrap();
    let opened = open(root.path());
    put_all(&opened.store, script());
    drop(opened.store);
    assert_eq!(read_only(root.path()).unwrap(), final_state());
    let again = open(root.path());
    assert_eq!(again.report.replayed, script().iter().flatten().count());
    assert_eq!(again.report.overridden, [] as [String; 0]);
    assert_eq!(again.state, final_state());
    for (path, expected) in histories(&script(), 100) {
        assert_eq!(history_on(&RealDisk, root.path(), &path), expected, "{path}");
    }
}

#[test]
fn reading_changes_nothing_and_needs_no_lock() {
    let root = tempfile::tempdir().unwrap();
    let opened = open(root.path());
    put_all(&opened.store, script());
    assert_eq!(read_only(root.path()).unwrap(), final_state());
    let ended = read_request(root.path(), &request_id(1)).unwrap().unwrap();
    assert_eq!(ended.status, RequestStatus::Committed);
    assert!(read_request(root.path(), &request_id(9)).unwrap().is_none());
    let events = read_events(root.path(), &request_id(1)).unwrap();
    let words: Vec<&str> = events.iter().map(|event| event.summary.as_str()).collect();
    assert_eq!(words, ["a", "b", "c"]);
    drop(opened.store);

    let listing = |folder: &Path| {
        let mut all = Vec::new();
        let mut open = vec![folder.to_owned()];
        while let Some(next) = open.pop() {
            for path in files::list(&next).unwrap() {
                let metadata = files::metadata(&path).unwrap();
                if metadata.is_dir() {
                    open.push(path);
                } else {
                    all.push((path.clone(), files::read(&path).unwrap()));
                }
            }
        }
        all
    };
    let before = listing(root.path());
    assert_eq!(read_only(root.path()).unwrap(), final_state());
    assert_eq!(listing(root.path()), before);
}

#[test]
fn who_reads_again_and_again_sees_what_everybody_sees() {
    let root = tempfile::tempdir().unwrap();
    let mut opened = open(root.path());
    let mut reader = StateReader::new(root.path());
    for (number, batch) in script().into_iter().enumerate() {
        put_all(&opened.store, vec![batch]);
        assert_eq!(*reader.read().unwrap(), read_only(root.path()).unwrap(), "{number}");
        match number % 3 {
            0 => {}
            // Its checkpoint takes the journal's place.
            1 => {
                opened.store.close().unwrap();
                opened = open(root.path());
            }
            // The tail is replayed.
            _ => {
                drop(opened.store);
                opened = open(root.path());
            }
        }
    }
    assert_eq!(*reader.read().unwrap(), final_state());
    drop(opened.store);
    let again = open(root.path());
    assert_eq!(*reader.read().unwrap(), final_state());
    again.store.close().unwrap();
    assert_eq!(*reader.read().unwrap(), final_state());
}

#[test]
fn one_process_owns_the_workspace() {
    let root = tempfile::tempdir().unwrap();
    let first = open(root.path());
    let refused = Store::open(root.path(), Arc::new(RealDisk)).err().unwrap();
    assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
    first.store.close().unwrap();
    open(root.path()).store.close().unwrap();

    let older = root.path().join(".teams_runtime/agents/qa/service.lock");
    let held = RealDisk.lock(&older).unwrap().unwrap();
    let refused = Store::open(root.path(), Arc::new(RealDisk)).err().unwrap();
    assert!(refused.to_string().contains("service.lock"), "{refused}");
    drop(held);
    open(root.path());
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_space() {
    for appends_before in [0, 2] {
        let disk = SimDisk::new();
        let opened = open_sim(&disk).unwrap();
        let store = opened.store;
        let mut expected = State::default();
        for append in script().into_iter().flatten().take(appends_before) {
            for change in &append {
                expected.apply(change);
            }
            store.append(append).wait().unwrap();
        }
        disk.set_full(true);
        let lost = request(7, RequestStatus::Queued, "lost");
        let refused = store.append(vec![lost.clone()]).wait().unwrap_err();
        assert!(matches!(refused, StoreError::NoSpace), "{refused}");
        disk.set_full(false);
        // It may build on what was lost.
        let refused = store.append(vec![lost]).wait().unwrap_err();
        assert!(matches!(refused, StoreError::NoSpace), "{refused}");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(store.reload()).unwrap(), expected);
        let kept = request(8, RequestStatus::Queued, "kept");
        expected.apply(&kept);
        store.append(vec![kept]).wait().unwrap();
        drop(store);
        for seed in 0..8 {
            let again = open_sim(&disk.after_crash(seed)).unwrap();
            assert_eq!(again.state, expected, "seed {seed}");
        }
    }
}

#[test]
fn a_failed_sync_stops_the_store_until_a_restart() {
    let disk = SimDisk::new();
    let opened = open_sim(&disk).unwrap();
    let store = opened.store;
    let mut state = State::default();
    let first = request(1, RequestStatus::Queued, "kept");
    state.apply(&first);
    store.append(vec![first]).wait().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.settled()).unwrap();
    // An append to an open segment is a write and a sync.
    disk.fail_at(disk.operations() + 2, Fault::Eio);
    let second = request(2, RequestStatus::Queued, "unknown");
    for _ in 0..2 {
        let failed = store.append(vec![second.clone()]).wait().unwrap_err();
        assert!(matches!(failed, StoreError::Poisoned { .. }), "{failed}");
    }
    assert!(matches!(store.close(), Err(StoreError::Poisoned { .. })));
    for seed in 0..8 {
        assert_eq!(open_sim(&disk.after_crash(seed)).unwrap().state, state);
    }
}

#[test]
fn an_edit_counts_after_a_clean_stop_and_not_after_a_crash() {
    let root = tempfile::tempdir().unwrap();
    let record = layout::request(&request_id(1));
    let path = root.path().join(&record);
    let edit = |from: &str, to: &str| {
        let text = files::read_text(&path).unwrap();
        assert!(text.contains(from));
        files::write(&path, text.replace(from, to)).unwrap();
    };
    let body = |state: &State| state.requests[&request_id(1)].body.clone();

    let opened = open(root.path());
    let first = request(1, RequestStatus::Queued, "as written");
    opened.store.append(vec![first]).wait().unwrap();
    opened.store.close().unwrap();
    edit("as written", "as edited");
    let opened = open(root.path());
    assert_eq!(body(&opened.state), "as edited");
    assert_eq!(opened.report.edited, std::slice::from_ref(&record));

    let second = request(1, RequestStatus::Queued, "as journaled");
    opened.store.append(vec![second]).wait().unwrap();
    drop(opened.store);
    edit("as journaled", "as edited again");
    let opened = open(root.path());
    assert_eq!(body(&opened.state), "as journaled");
    assert_eq!(opened.report.overridden, [record]);
    assert!(files::read_text(&path).unwrap().contains("as journaled"));
}

#[test]
fn a_record_that_does_not_parse_is_set_aside_unless_the_tail_has_it() {
    let root = tempfile::tempdir().unwrap();
    let opened = open(root.path());
    let store = &opened.store;
    for number in [1, 2] {
        let change = request(number, RequestStatus::Queued, "b");
        store.append(vec![change]).wait().unwrap();
    }
    opened.store.close().unwrap();
    let opened = open(root.path());
    let newer = request(2, RequestStatus::Queued, "newer");
    opened.store.append(vec![newer]).wait().unwrap();
    drop(opened.store);
    for number in [1, 2] {
        let path = root.path().join(layout::request(&request_id(number)));
        files::write(&path, "{ half").unwrap();
    }
    let opened = open(root.path());
    assert_eq!(opened.state.requests.len(), 1);
    assert_eq!(opened.state.requests[&request_id(2)].body, "newer");
    let [aside] = &opened.report.set_aside[..] else {
        panic!("{:?}", opened.report);
    };
    assert_eq!(aside.path, layout::request(&request_id(1)));
    let text = files::read_text(&root.path().join(&aside.now)).unwrap();
    assert_eq!(text, "{ half");
    drop(opened.store);
    assert_eq!(open(root.path()).report.set_aside, []);
}

/// Whoever makes a slip in a record, or removes one, has it back by putting its file right.
#[test]
fn a_record_that_was_set_aside_or_removed_is_taken_in_again_once_its_file_is_right() {
    for removed in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let first = open(root.path());
        first.store.append(vec![request(1, RequestStatus::Queued, "x")]).wait().unwrap();
        first.store.append(vec![request(2, RequestStatus::Queued, "y")]).wait().unwrap();
        first.store.close().unwrap();
        let path = root.path().join(layout::request(&request_id(1)));
        let right = files::read(&path).unwrap();
        match removed {
            true => files::remove_file(&path).unwrap(),
            false => files::write(&path, b"{,").unwrap(),
        }
        // It is remembered over further starts, and what was said meanwhile is kept.
        for _ in 0..2 {
            let without = open(root.path());
            assert_eq!(without.state.requests.len(), 1);
            without.store.append(vec![request(2, RequestStatus::Queued, "z")]).wait().unwrap();
            without.store.close().unwrap();
        }
        files::write(&path, &right).unwrap();
        let again = open(root.path());
        assert_eq!(again.state.requests.len(), 2, "removed: {removed}");
        assert_eq!(again.report.edited.len(), 1);
        again.store.close().unwrap();
        assert_eq!(open(root.path()).report.edited, [] as [String; 0]);
    }
}

/// A document is for people: one that is not the team's to write stops nothing.
#[test]
fn a_document_that_cannot_be_written_is_put_aside_and_goes_on_as_a_copy() {
    let root = tempfile::tempdir().unwrap();
    let add = |store: &Store, line: &str| {
        let change = Change::Append {
            file: "shared_workspace/decision_log.md".to_owned(),
            text: line.to_owned(),
        };
        store.append(vec![change]).wait().unwrap();
    };
    let path = root.path().join("shared_workspace/decision_log.md");
    let opened = open(root.path());
    add(&opened.store, "one\n");
    opened.store.close().unwrap();
    let aside = root.path().join("shared_workspace/decision_log.md.bad-1");
    files::rename(&path, &aside).unwrap();
    files::create_dir_all(&path).unwrap();
    files::remove_file(&aside).unwrap();
    let opened = open(root.path());
    add(&opened.store, "two\n");
    opened.store.close().unwrap();
    assert_eq!(files::read(&path).unwrap(), b"two\n");
    assert!(files::metadata(&aside).unwrap().is_dir());
}

/// A link to a disk that is away, in the place of a document or of the folder that it lies in.
#[test]
fn a_document_on_a_disk_that_is_away_stops_nothing() {
    for linked in ["shared_workspace/decision_log.md", "shared_workspace"] {
        let root = tempfile::tempdir().unwrap();
        let add = |store: &Store, line: &str| {
            let file = "shared_workspace/decision_log.md".to_owned();
            store.append(vec![Change::Append { file, text: line.to_owned() }]).wait().unwrap();
        };
        let opened = open(root.path());
        add(&opened.store, "one\n");
        opened.store.close().unwrap();
        let link = root.path().join(linked);
        files::remove_any(&link).unwrap();
        files::symlink(&root.path().join("away/there"), &link).unwrap();
        for line in ["two\n", "three\n"] {
            let opened = open(root.path());
            add(&opened.store, line);
            opened.store.close().unwrap();
        }
        let document = root.path().join("shared_workspace/decision_log.md");
        assert_eq!(files::read_text(&document).unwrap(), "two\nthree\n", "{linked}");
        let aside = root.path().join(format!("{linked}.bad-1"));
        assert_eq!(files::read_link(&aside).unwrap(), root.path().join("away/there"));
    }
}

/// In the encoding of another editor.
#[test]
fn what_somebody_writes_into_a_document_in_another_encoding_is_kept() {
    let disk = SimDisk::new();
    let file = "shared_workspace/planning.md";
    let path = Path::new("/w").join(file);
    let mut store = Inline::open(&disk).unwrap();
    let mut add = |line: &str| {
        let change = Change::Append { file: file.to_owned(), text: line.to_owned() };
        store.append(&[vec![change]]).unwrap();
        store.views.materialise().unwrap();
    };
    add("one\n");
    disk.append(&path, b"\xc7\xd1\xb1\xdb\n").unwrap();
    let theirs = disk.read(&path).unwrap();
    add("two\n");
    assert_eq!(disk.read(&path).unwrap(), b"one\ntwo\n");
    assert_eq!(disk.read(&Path::new("/w").join(format!("{file}.bad-1"))).unwrap(), theirs);
}

#[test]
fn an_index_that_is_gone_while_the_journal_is_there_is_damage_and_no_new_workspace() {
    let root = tempfile::tempdir().unwrap();
    let opened = open(root.path());
    opened.store.append(vec![request(1, RequestStatus::Queued, "x"), mark(7, 90)]).wait().unwrap();
    drop(opened.store);
    files::remove_file(&root.path().join(layout::INDEX)).unwrap();
    let refused = Store::open(root.path(), Arc::new(RealDisk)).map(|_| ()).unwrap_err();
    assert!(matches!(refused, StoreError::CorruptIndex { .. }), "{refused}");
    assert!(crate::store::repair(root.path()).unwrap().is_some());
    let opened = open(root.path());
    assert!(opened.state.requests.contains_key(&request_id(1)));
    assert_eq!(opened.state.channels[&ChannelId(7)].watermark, MessageId(90));
}

#[test]
fn a_dead_letter_that_is_put_back_while_the_team_is_down_stays_where_it_was_put() {
    let disk = SimDisk::new();
    let mut store = Inline::open(&disk).unwrap();
    store.append(&[vec![envelope(1, EnvelopeFolder::Inbox)]]).unwrap();
    store.append(&[vec![envelope(1, EnvelopeFolder::Dead)]]).unwrap();
    store.views.materialise().unwrap();
    drop(store);
    let (inbox, dead) = (letter(EnvelopeFolder::Inbox), letter(EnvelopeFolder::Dead));
    let mended = String::from_utf8(disk.read(&dead).unwrap()).unwrap().replace("please", "do it");
    disk.write(&inbox, mended.as_bytes()).unwrap();
    disk.remove(&dead).unwrap();
    Inline::open(&disk).unwrap();
    assert_eq!(disk.read(&inbox).unwrap(), mended.as_bytes());
    assert_eq!(disk.len(&dead).unwrap(), None);
}

#[test]
fn a_lifecycle_that_this_build_cannot_read_is_set_aside_by_name_and_its_requests_stay() {
    let root = tempfile::tempdir().unwrap();
    let opened = open(root.path());
    let begun = vec![lifecycle(), request(1, RequestStatus::Delegated, "b")];
    opened.store.append(begun).wait().unwrap();
    opened.store.close().unwrap();
    let digest = Lifecycle::built_in().digest();
    let path = format!("{}/lifecycles/{digest}.yaml", RUNTIME);
    let opened = open(root.path());
    assert_eq!(opened.state.lifecycles[digest], *Lifecycle::built_in());
    opened.store.close().unwrap();
    // What a newer build wrote, an edit of what requests have begun with, and rubbish.
    let text = Lifecycle::built_in().text();
    for other in [
        text.replace("lifecycle: request", "lifecycle: request2"),
        format!("{text}#\n"),
        "{".to_owned(),
    ] {
        let path = root.path().join(&path);
        let before = files::read_text(&path).unwrap();
        files::write(&path, &other).unwrap();
        let opened = open(root.path());
        let [aside] = &opened.report.set_aside[..] else { panic!("{:?}", opened.report) };
        assert_eq!(aside.path, format!("{}/lifecycles/{digest}.yaml", RUNTIME));
        assert_eq!(files::read_text(&root.path().join(&aside.now)).unwrap(), other);
        assert!(opened.state.requests.contains_key(&request_id(1)));
        // Until it is there again, what is built in stands in for it.
        assert_eq!(opened.state.lifecycle(digest).digest(), digest);
        opened.store.append(vec![lifecycle()]).wait().unwrap();
        opened.store.close().unwrap();
        assert_eq!(files::read_text(&path).unwrap(), before);
    }
}

#[test]
fn what_somebody_writes_into_an_append_only_document_stays() {
    let root = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let opened = open(root.path());
    opened.store.append(vec![document("one")]).wait().unwrap();
    opened.store.close().unwrap();
    let path = root.path().join(DOCUMENT);
    files::append(&path, "by hand\n").unwrap();
    let opened = open(root.path());
    opened.store.append(vec![document("two")]).wait().unwrap();
    drop(opened.store);
    assert_eq!(files::read_text(&path).unwrap(), "one\nby hand\ntwo\n");
    // After a crash, with a line of ours that was cut off.
    files::write(&path, "one\nby hand\nmore by hand\ntw").unwrap();
    let opened = open(root.path());
    assert_eq!(files::read_text(&path).unwrap(), "one\nby hand\nmore by hand\ntwo\n");
    assert_eq!(opened.report.overridden, [""; 0]);
    // While it is open: behind, before and instead of what is there, with and without an end of the line.
    files::append(&path, "a thought\n").unwrap();
    opened.store.append(vec![document("three")]).wait().unwrap();
    runtime.block_on(opened.store.settled()).unwrap();
    let before = "one\nby hand\nmore by hand\ntwo\na thought\nthree\n";
    assert_eq!(files::read_text(&path).unwrap(), before);
    files::write(&path, format!("# 제목\n{before}and")).unwrap();
    opened.store.append(vec![document("four")]).wait().unwrap();
    runtime.block_on(opened.store.settled()).unwrap();
    assert_eq!(files::read_text(&path).unwrap(), format!("# 제목\n{before}and\nfour\n"));
    files::write(&path, "short\n").unwrap();
    opened.store.append(vec![document("five")]).wait().unwrap();
    drop(opened.store);
    let opened = open(root.path());
    let text = files::read_text(&path).unwrap();
    assert!(text.starts_with("short\n") && text.ends_with("five\n"), "{text}");
    opened.store.append(vec![document("six")]).wait().unwrap();
    opened.store.close().unwrap();
    let text = files::read_text(&path).unwrap();
    assert!(text.starts_with("short\n") && text.ends_with("five\nsix\n"), "{text}");
}

#[test]
fn a_document_path_stays_in_the_workspace() {
    let root = tempfile::tempdir().unwrap();
    let opened = open(root.path());
    for file in ["../x", "/etc/x", "", "a/../../x", ".teams_runtime/lock", "a\0b"] {
        let change = Change::Append { file: file.to_owned(), text: "x\n".to_owned() };
        let refused = opened.store.append(vec![change]).wait().unwrap_err();
        assert!(matches!(refused, StoreError::BadPath { .. }), "{file:?}");
    }
}

#[test]
fn checkpoints_while_running_keep_the_order() {
    let root = tempfile::tempdir().unwrap();
    let pace = Pace { entries: 16, bytes: u64::MAX };
    let lock = hold(root.path(), &RealDisk).unwrap();
    let opened = Store::open_with(lock, root.path(), Arc::new(RealDisk), pace).unwrap();
    let mut expected = State::default();
    let mut waiting = Vec::new();
    for number in 0..500 {
        let changes = vec![
            request(number % 7, RequestStatus::Delegated, &format!("{number}")),
            event(number % 7, &format!("{number}")),
        ];
        for change in &changes {
            expected.apply(change);
        }
        waiting.push(opened.store.append(changes));
    }
    for (appended, seq) in waiting.into_iter().zip(1..) {
        assert_eq!(appended.wait().unwrap(), seq);
    }
    drop(opened.store);
    let again = open(root.path());
    assert!(again.report.replayed < 500, "{:?}", again.report);
    assert_eq!(again.state, expected);
    for number in 0..7 {
        let words: Vec<u64> = read_events(root.path(), &request_id(number))
            .unwrap()
            .iter()
            .map(|event| event.summary.parse().unwrap())
            .collect();
        let all: Vec<u64> = (0..500).filter(|n| n % 7 == number).collect();
        assert_eq!(words, all, "request {number}");
    }
}

#[test]
fn an_older_workspace_opens() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join(".teams_runtime/requests");
    files::create_dir_all(&folder).unwrap();
    let older = |number: u64, status: &str| {
        format!(
            r#"{{"request_id": "{}", "status": "{status}", "intent": "route", "scope": "s",
               "current_role": "", "sprint_id": "", "events": [{{"timestamp": "2026-03-24T09:00:00+09:00",
               "type": "created", "actor": "orchestrator", "summary": "begun"}}], "relay_send_status": "sent"}}"#,
            request_id(number)
        )
    };
    for (number, status) in [(1, "delegated"), (2, "completed")] {
        let path = root.path().join(layout::request(&request_id(number)));
        files::write(&path, older(number, status)).unwrap();
    }
    assert!(older::take_over(&RealDisk, root.path()).unwrap().is_some());
    let opened = open(root.path());
    assert!(opened.report.first);
    assert_eq!(opened.state.requests.len(), 1);
    assert_eq!(opened.state.ended_requests, 1);
    opened.store.close().unwrap();
    let again = open(root.path());
    assert!(!again.report.first);
    assert_eq!(again.state.requests.len(), 1);
    let more = event(1, "went on");
    again.store.append(vec![more]).wait().unwrap();
    let taken_over = "from an older workspace: delegated";
    for (number, expected) in [(1, vec!["begun", taken_over, "went on"]), (2, vec!["begun"])] {
        let events = read_events(root.path(), &request_id(number)).unwrap();
        let words: Vec<&str> = events.iter().map(|event| event.summary.as_str()).collect();
        assert_eq!(words, expected);
    }
}

/// Where the letter lies in a place of the queue.
fn letter(place: EnvelopeFolder) -> PathBuf {
    let Change::Save(AnyRecord::Envelope(envelope)) = envelope(1, place) else { unreachable!() };
    Path::new("/w").join(inside(&envelope.path_in(place)))
}

#[test]
fn a_dead_letter_that_is_moved_back_at_any_instant_is_kept() {
    let (inbox, dead) = (letter(EnvelopeFolder::Inbox), letter(EnvelopeFolder::Dead));
    let die = |disk: &SimDisk| {
        let mut store = Inline::open(disk).unwrap();
        store.append(&[vec![envelope(1, EnvelopeFolder::Inbox)]]).unwrap();
        store.views.materialise().unwrap();
        store.append(&[vec![envelope(1, EnvelopeFolder::Dead)]]).unwrap();
        (store, disk.operations())
    };
    let whole = SimDisk::new();
    let (mut store, before) = die(&whole);
    store.views.materialise().unwrap();
    assert!(whole.operations() > before);
    for operation in before + 1..=whole.operations() + 1 {
        let disk = SimDisk::new();
        let (mut store, _) = die(&disk);
        // The instant: what was to come next waits until the operator has looked.
        if operation <= whole.operations() {
            disk.fail_at(operation, Fault::Eio);
        }
        let finished = store.views.materialise().is_ok();
        let moved = disk.len(&dead).unwrap().is_some();
        if moved {
            disk.rename(&dead, &inbox).unwrap();
        }
        store.views.materialise().unwrap();
        let place = |path| disk.len(path).unwrap().is_some();
        let at = (place(&inbox), place(&dead));
        assert_eq!(at, (moved, !moved), "operation {operation}, finished: {finished}");
    }
}
