//! What `teams doctor --fix` makes of a damaged journal or index.

use super::*;
use crate::platform::sim_disk::Fault;
use crate::store::load::load_state;
use crate::store::repair::{StoreRepair, repair_on};

const ROOT: &str = "/w";
const INDEX: &str = "/w/.teams_runtime/checkpoint";

fn repaired(disk: &SimDisk) -> Result<Option<StoreRepair>, StoreError> {
    repair_on(&(Arc::new(disk.clone()) as Arc<dyn Disk>), Path::new(ROOT))
}

fn read(disk: &SimDisk) -> Result<State, StoreError> {
    Ok(load_state(&(Arc::new(disk.clone()) as Arc<dyn Disk>), Path::new(ROOT))?.0)
}

/// A disk with the script played on it: a checkpoint behind so many groups, then the rest, of which so many are in the
/// files as well.
fn played(checkpoint: usize, shown: usize) -> SimDisk {
    let disk = SimDisk::new();
    let mut life = Inline::open(&disk).unwrap();
    for (number, group) in script().iter().enumerate() {
        if number == checkpoint {
            life.checkpoint().unwrap();
        }
        life.append(group).unwrap();
        if number < shown {
            life.views.materialise().unwrap();
        }
    }
    drop(life);
    disk
}

fn segment(disk: &SimDisk) -> (PathBuf, Vec<u8>) {
    let is_segment = |path: &Path| path.extension().is_some_and(|it| it == "log");
    let all = disk.contents().into_iter().filter(|(path, _)| is_segment(path));
    let mut all: Vec<_> = all.filter(|(_, bytes)| bytes.iter().any(|byte| *byte != 0)).collect();
    assert_eq!(all.len(), 1, "one segment");
    all.pop().unwrap()
}

/// Where frames begin, by their number.
fn frames(bytes: &[u8]) -> Vec<usize> {
    let mut at = 0;
    let scan = crate::store::entry::scan(bytes);
    let begins = scan.frames.iter().map(|frame| {
        let begin = at;
        at += 20 + frame.lines.len();
        begin
    });
    begins.collect()
}

fn flip(disk: &SimDisk, path: &Path, at: usize) {
    let mut bytes = disk.contents()[path].clone();
    bytes[at] ^= 0x40;
    disk.place(path, bytes);
}

/// The same, but for what no record says and a damaged entry alone has: the count of ended requests, and how far
/// channels were read last, which is never further than they were.
#[track_caller]
fn same(found: &State, wanted: &State) {
    for (channel, mark) in &found.channels {
        assert!(mark.watermark <= wanted.channels[channel].watermark);
    }
    let recorded = |state: &State| {
        let mut state = state.clone();
        // What is over leaves memory when the decision says so, or afterwards.
        state.forget_ended_requests();
        state.sprints.retain(|_, sprint| !sprint.status.is_terminal());
        let requests = &state.requests;
        state.sessions.retain(|_, session| requests.contains_key(&session.request_id));
        State { ended_requests: 0, channels: BTreeMap::new(), ..state }
    };
    let (found, wanted) = (recorded(found), recorded(wanted));
    // A difference of two of them would fill pages.
    assert_eq!(keys(&found), keys(&wanted));
    assert!(found == wanted, "what is in the records");
}

/// What there is of each kind.
fn keys(state: &State) -> String {
    let records: Vec<String> = state.records().map(|record| record.path()).collect();
    let (rooms, settled, sprints) = (&state.rooms, &state.settled_items, &state.sprint_ids);
    format!("{records:#?} {rooms:?} {settled:?} {sprints:?}")
}

#[test]
fn damage_in_the_journal_loses_nothing_that_is_in_the_record_files() {
    let script = script();
    let last = prefixes(&State::default(), &script).pop().unwrap();
    for checkpoint in 0..4 {
        let disk = played(checkpoint, usize::MAX);
        let (path, bytes) = segment(&disk);
        let begins = frames(&bytes);
        // The last one is torn where it is damaged, and cut.
        for begin in &begins[..begins.len() - 1] {
            let disk = disk.after_kill();
            flip(&disk, &path, begin + 30);
            assert!(matches!(read(&disk), Err(StoreError::Corrupt { .. })));
            let repair = repaired(&disk).unwrap().unwrap();
            assert_eq!(
                (repair.requests, repair.set_aside, repair.missing),
                (1, Vec::new(), Vec::new())
            );
            same(&read(&disk).unwrap(), &last);
            let kept = Path::new(ROOT).join(&repair.copy).join("journal");
            let copy = kept.join(path.file_name().unwrap());
            assert_ne!(disk.contents()[&copy], bytes, "the copy has it as it was found");
            for (file, lines) in histories(&script, script.iter().flatten().count()) {
                assert_eq!(history_on(&disk, Path::new(ROOT), &file), lines, "{file}");
            }
            assert_eq!(repaired(&disk).unwrap(), None, "and nothing is left to do");
            Inline::open(&disk).unwrap();
        }
    }
}

#[test]
fn where_the_files_are_behind_the_journal_counts_up_to_the_damage() {
    let script = script();
    let states = prefixes(&State::default(), &script);
    let groups: Vec<usize> = script.iter().map(Vec::len).collect();
    let disk = played(1, 1);
    let (path, bytes) = segment(&disk);
    let begins = frames(&bytes);
    for (frame, begin) in begins[..begins.len() - 1].iter().enumerate() {
        let disk = disk.after_kill();
        flip(&disk, &path, begin + 30);
        repaired(&disk).unwrap().unwrap();
        // The first group is in the checkpoint.
        let appends: usize = groups[..=frame].iter().sum();
        let (found, wanted) = (read(&disk).unwrap(), &states[appends]);
        // Nothing of what came behind it is known, so what was read then is read again.
        assert_eq!(found.channels, wanted.channels);
        same(&found, wanted);
        Inline::open(&disk).unwrap();
    }
}

#[test]
fn what_only_the_index_had_is_made_of_the_records_and_the_journal() {
    let last = prefixes(&State::default(), &script()).pop().unwrap();
    for (checkpoint, shown) in [(0, 0), (2, 2), (2, usize::MAX), (6, 7)] {
        let disk = played(checkpoint, shown);
        let size = disk.contents()[Path::new(INDEX)].len();
        flip(&disk, Path::new(INDEX), size - 3);
        assert!(matches!(read(&disk), Err(StoreError::CorruptIndex { .. })));
        repaired(&disk).unwrap().unwrap();
        let found = read(&disk).unwrap();
        same(&found, &last);
        assert_eq!(found.channels, last.channels);
    }
}

#[test]
fn a_message_that_became_a_request_is_not_taken_in_again() {
    let disk = SimDisk::new();
    let mut life = Inline::open(&disk).unwrap();
    life.append(&[vec![mark(1, 10)]]).unwrap();
    let Change::Save(crate::domain::record::AnyRecord::Request(asked)) =
        request(1, RequestStatus::Committed, "asked and done")
    else {
        panic!("a request")
    };
    let mut asked = Request::clone(&asked);
    asked.conversation.reply_route.channel_id = Some(ChannelId(1));
    asked.conversation.reply_route.message_id = Some(MessageId(12));
    life.append(&[vec![Change::save(asked), mark(1, 12)]]).unwrap();
    life.append(&[vec![request(2, RequestStatus::Delegated, "goes on")]]).unwrap();
    life.views.materialise().unwrap();
    drop(life);
    let disk = disk.after_kill();
    let (path, bytes) = segment(&disk);
    flip(&disk, &path, frames(&bytes)[1] + 30);
    repaired(&disk).unwrap().unwrap();
    let mark = &read(&disk).unwrap().channels[&ChannelId(1)];
    // What was written before it may wait still, and is read again.
    assert_eq!((mark.watermark, mark.recent.len()), (MessageId(10), 2));
    assert!(mark.recent.contains(&MessageId(12)));
}

#[test]
fn a_crash_at_any_operation_of_a_repair_loses_nothing() {
    let last = prefixes(&State::default(), &script()).pop().unwrap();
    for is_index in [false, true] {
        let disk = played(2, usize::MAX);
        let (path, bytes) = segment(&disk);
        match is_index {
            true => flip(&disk, Path::new(INDEX), 60),
            false => flip(&disk, &path, frames(&bytes)[1] + 30),
        }
        let operations = {
            let whole = disk.after_kill();
            repaired(&whole).unwrap().unwrap();
            whole.operations()
        };
        for operation in 1..=operations {
            for seed in 0..3 {
                let disk = disk.after_kill();
                disk.fail_at(operation, Fault::Crash);
                assert!(repaired(&disk).is_err());
                let disk = disk.after_crash(seed);
                repaired(&disk).unwrap();
                same(&read(&disk).unwrap(), &last);
            }
        }
        repaired(&disk).unwrap().unwrap();
        for seed in 0..8 {
            same(&read(&disk.after_crash(seed)).unwrap(), &last);
        }
    }
}

#[test]
fn what_a_newer_build_wrote_is_no_damage() {
    let disk = played(2, usize::MAX);
    let index = disk.contents()[Path::new(INDEX)].clone();
    let text = String::from_utf8(index).unwrap();
    let (header, body) = text.split_once('\n').unwrap();
    let mut digest = crc32fast::Hasher::new();
    digest.update(&9_u32.to_le_bytes());
    digest.update(body.as_bytes());
    assert!(header.starts_with("teams-checkpoint "));
    let newer = format!("teams-checkpoint 9 {:08x}\n{body}", digest.finalize());
    disk.place(Path::new(INDEX), newer.into_bytes());
    let before = disk.contents();
    assert!(matches!(repaired(&disk), Err(StoreError::Newer { .. })));
    let after = disk.contents();
    assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)));
}

/// A disk with these groups of one append each, of which so many are in the files, with the entry of one damaged.
fn damaged(groups: Vec<Vec<Change>>, shown: usize, bad: usize) -> SimDisk {
    let disk = SimDisk::new();
    let mut life = Inline::open(&disk).unwrap();
    for (number, changes) in groups.into_iter().enumerate() {
        life.append(&[changes]).unwrap();
        if number < shown {
            life.views.materialise().unwrap();
        }
    }
    drop(life);
    let disk = disk.after_kill();
    let (path, bytes) = segment(&disk);
    flip(&disk, &path, frames(&bytes)[bad] + 30);
    disk
}

#[test]
fn a_file_that_is_ahead_says_nothing_about_the_others() {
    let open = RequestStatus::Delegated;
    let groups = vec![
        vec![request(1, open, "one")],
        vec![request(2, open, "two"), run(2), envelope(2, EnvelopeFolder::Inbox)],
        vec![request(1, open, "one, edited")],
        vec![request(1, open, "one, edited twice")],
    ];
    // The journal's second entry was not in the files, and somebody has edited a record.
    let disk = damaged(groups, 1, 2);
    let path = Path::new(ROOT).join(layout::request(&request_id(1)));
    let edited = String::from_utf8(disk.contents()[&path].clone()).unwrap();
    disk.place(&path, edited.replace("one", "uno").into_bytes());
    repaired(&disk).unwrap().unwrap();
    let state = read(&disk).unwrap();
    assert_eq!(state.requests[&request_id(1)].body, "uno");
    assert_eq!(state.requests[&request_id(2)].body, "two");
    assert!(state.runs.contains_key(&run_id(2)) && state.envelopes.len() == 1);
}

#[test]
fn what_is_over_by_the_files_is_not_done_again() {
    let open = RequestStatus::Delegated;
    let groups = vec![
        vec![request(1, open, "asked"), run(1), envelope(1, EnvelopeFolder::Inbox), outgoing(1)],
        vec![request(1, open, "goes on"), Change::Remove(RecordId::Run(run_id(1)))],
        vec![envelope(1, EnvelopeFolder::Archive)],
        vec![Change::Remove(RecordId::Outgoing(outgoing_id(1)))],
    ];
    let disk = damaged(groups, usize::MAX, 1);
    repaired(&disk).unwrap().unwrap();
    let state = read(&disk).unwrap();
    assert_eq!(state.requests[&request_id(1)].body, "goes on");
    assert!(state.runs.is_empty() && state.envelopes.is_empty());
    // Nobody can tell whether it was sent: what is there is looked at first.
    assert_eq!(state.outgoing[&outgoing_id(1)].attempts, 1);
}

#[test]
fn what_was_handled_is_handled_again_only_where_nothing_came_of_it_in_the_files() {
    let open = RequestStatus::Delegated;
    let groups = |then: &str| {
        vec![
            vec![request(1, open, "asked"), envelope(1, EnvelopeFolder::Inbox)],
            vec![request(1, open, then), envelope(1, EnvelopeFolder::Archive)],
            vec![event(1, "later")],
        ]
    };
    for (then, is_again) in [("asked", true), ("goes on", false)] {
        let disk = damaged(groups(then), usize::MAX, 1);
        let Change::Save(record) = envelope(1, EnvelopeFolder::Inbox) else { panic!("one") };
        // The removal of its file was not done yet.
        let path = Path::new(ROOT).join(inside(&record.path()));
        disk.place(&path, record.bytes().unwrap());
        repaired(&disk).unwrap().unwrap();
        assert_eq!(read(&disk).unwrap().envelopes.len(), usize::from(is_again), "{then}");
        assert_eq!(disk.contents().contains_key(&path), is_again);
    }
}

#[test]
fn where_both_are_damaged_the_journal_counts_unless_a_file_is_younger() {
    let request_at = |second: u64, body: &str| {
        let Change::Save(crate::domain::record::AnyRecord::Request(made)) =
            request(1, RequestStatus::Delegated, body)
        else {
            panic!("a request")
        };
        Change::save(Request { updated_at: at(second), ..Request::clone(&made) })
    };
    for (shown, wanted) in [(1, "newer"), (usize::MAX, "newest")] {
        let groups = vec![
            vec![request_at(1, "old")],
            vec![request_at(2, "newer")],
            vec![request_at(3, "newest")],
            vec![mark(1, 5)],
        ];
        let disk = damaged(groups, shown, 2);
        flip(&disk, Path::new(INDEX), 60);
        repaired(&disk).unwrap().unwrap();
        assert_eq!(read(&disk).unwrap().requests[&request_id(1)].body, wanted);
    }
}

#[test]
fn what_others_dropped_into_the_queue_is_left_to_its_watcher() {
    let disk = damaged(script().concat(), usize::MAX, 1);
    let inbox = layout::relay_folder(EnvelopeFolder::Inbox, Role::Planner);
    let Change::Save(dropped) = envelope(7, EnvelopeFolder::Inbox) else { panic!("an envelope") };
    let (bytes, name) = (serde_json::to_vec(&dropped.encode().unwrap()).unwrap(), envelope_id(7));
    let path = Path::new(ROOT).join(inbox).join(format!("{name}.json"));
    disk.place(&path, bytes);
    // And what ended long ago stays as it was written.
    let Change::Save(over) = request(9, RequestStatus::Committed, "long ago") else {
        panic!("a request")
    };
    let (over, ended) =
        (Path::new(ROOT).join(inside(&over.path())), serde_json::to_vec(&over.encode().unwrap()));
    disk.place(&over, ended.as_ref().unwrap().clone());
    repaired(&disk).unwrap().unwrap();
    assert_eq!(disk.contents()[&over], ended.unwrap());
    assert!(!read(&disk).unwrap().envelopes.contains_key(&name));
    assert!(disk.contents().contains_key(&path));
}

#[test]
fn a_record_that_does_not_parse_lies_aside_and_comes_back_when_it_is_mended() {
    let disk = played(6, usize::MAX);
    let path = Path::new(ROOT).join(layout::request(&request_id(2)));
    let whole = disk.contents()[&path].clone();
    disk.place(&path, b"{".to_vec());
    flip(&disk, Path::new(INDEX), 60);
    let repair = repaired(&disk).unwrap().unwrap();
    assert_eq!(repair.set_aside.len(), 1);
    assert!(read(&disk).unwrap().requests.is_empty());
    disk.place(&path, whole);
    assert_eq!(read(&disk).unwrap().requests.len(), 1);
}
