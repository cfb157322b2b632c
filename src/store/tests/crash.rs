//! Crashes at every operation, damage at every byte.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::domain::record::{AnyRecord, RecordId};
use crate::platform::disk::is_full;
use crate::platform::files;
use crate::platform::sim_disk::Fault;
use crate::store::load;

/// What a history begins with.
struct Start {
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// After the first opening.
    state: State,
    /// The last entry then.
    seq: u64,
    /// Documents that were not there at the first opening.
    overridden: Vec<String>,
    /// What append-only files hold after it.
    histories: BTreeMap<String, Vec<String>>,
}

impl Start {
    fn with_nothing() -> Start {
        Start {
            files: BTreeMap::new(),
            state: State::default(),
            seq: 0,
            overridden: Vec::new(),
            histories: BTreeMap::new(),
        }
    }

    /// A workspace of the older runtime, with a sprint under way.
    fn with_an_older_workspace() -> Start {
        Self::with("legacy/state")
    }

    /// A workspace of the build before this version, killed at work: a journal, a sprint, an open gate.
    fn with_version_1() -> Start {
        Self::with("workspaces/1")
    }

    fn with(data: &str) -> Start {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(data);
        let mut files = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for path in files::list(&folder).unwrap() {
                if files::metadata(&path).unwrap().is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = Path::new("/w/.teams_runtime").join(path.strip_prefix(&root).unwrap());
                files.insert(name, files::read(&path).unwrap());
            }
        }
        let mut start = Start { files, ..Start::with_nothing() };
        let disk = start.disk();
        let opened = Inline::open(&disk).unwrap();
        (start.state, start.seq) = (opened.views.state, opened.report.seq);
        start.overridden = opened.report.overridden;
        assert!(
            start.overridden.iter().all(|path| path.ends_with("md") || path.ends_with("jsonl"))
        );
        assert!(start.state.active_sprint().is_some() && !start.state.backlog.is_empty());
        for path in disk.contents().into_keys() {
            let path = path.strip_prefix("/w").unwrap().to_str().unwrap().to_owned();
            if path.starts_with(".teams_runtime/") && path.ends_with(".events.jsonl") {
                let lines = history_on(&disk, Path::new("/w"), &path);
                start.histories.insert(path, lines);
            }
        }
        assert!(start.histories.len() > 1);
        start
    }

    fn disk(&self) -> SimDisk {
        let disk = SimDisk::new();
        for (path, bytes) in &self.files {
            disk.place(path, bytes.clone());
        }
        disk
    }

    /// Every file that was there before lies in one copy, whole.
    fn is_kept(&self, disk: &SimDisk, label: &str) {
        let contents = disk.contents();
        let whole = |path: &&PathBuf| path.ends_with("backup-is-whole");
        let marks: Vec<&PathBuf> = contents.keys().filter(whole).collect();
        assert_eq!(marks.len(), usize::from(!self.files.is_empty()), "{label}");
        for mark in marks {
            for (path, bytes) in &self.files {
                let inside = path.strip_prefix("/w/.teams_runtime").unwrap();
                let copy = mark.with_file_name(inside);
                assert_eq!(contents.get(&copy), Some(bytes), "{label}: {}", copy.display());
            }
        }
    }
}

/// Plays a script until the disk stops; how many appends were acknowledged.
fn play(disk: &SimDisk, script: &[Vec<Vec<Change>>], checkpoint_every: usize) -> usize {
    let mut acknowledged = 0;
    let Ok(mut store) = Inline::open(disk) else {
        return 0;
    };
    for (number, group) in script.iter().enumerate() {
        if store.append(group).is_err() {
            break;
        }
        acknowledged += group.len();
        // A full disk lets the files lie behind, and the next checkpoint catches up.
        if store.views.materialise().is_err_and(|error| !is_full(&error)) {
            break;
        }
        if (number + 1) % checkpoint_every == 0 {
            match store.checkpoint() {
                Ok(()) | Err(StoreError::NoSpace) => {}
                Err(_) => break,
            }
        }
    }
    acknowledged
}

/// Group boundaries in appends: what may be durable is one of these.
fn boundaries(script: &[Vec<Vec<Change>>]) -> Vec<usize> {
    let mut sum = 0;
    let mut all = vec![0];
    for group in script {
        sum += group.len();
        all.push(sum);
    }
    all
}

/// Opens what a crash left and checks it against the script.
fn verify(
    start: &Start,
    disk: &SimDisk,
    script: &[Vec<Vec<Change>>],
    acknowledged: usize,
    label: &str,
) {
    let store = Inline::open(disk).unwrap_or_else(|error| panic!("{label}: {error}"));
    start.is_kept(disk, label);
    let states = prefixes(&start.state, script);
    let seq = usize::try_from(store.report.seq - start.seq).unwrap();
    assert!(seq >= acknowledged, "{label}: {seq} of {acknowledged} acknowledged");
    assert!(boundaries(script).contains(&seq), "{label}: half a group");
    assert_eq!(store.views.state, states[seq], "{label}");
    assert_eq!(store.report.set_aside, [], "{label}");
    let known = |path: &String| start.overridden.contains(path);
    assert!(store.report.overridden.iter().all(known), "{label}: {:?}", store.report.overridden);
    let mut expected = start.histories.clone();
    for (path, lines) in histories(script, seq) {
        expected.entry(path).or_default().extend(lines);
    }
    for (path, expected) in expected {
        let found = history_on(disk, &store.root, &path);
        assert_eq!(found, expected, "{label}: {path}");
    }
    // The files alone say the same: there is nothing left to replay.
    let again = Inline::open(disk).unwrap();
    assert_eq!(again.report.replayed, 0, "{label}");
    assert_eq!(again.views.state, states[seq], "{label}");
    for number in [1, 2] {
        let places = [EnvelopeFolder::Inbox, EnvelopeFolder::Archive, EnvelopeFolder::Dead]
            .into_iter()
            .filter(|place| {
                let Change::Save(AnyRecord::Envelope(envelope)) = envelope(number, *place) else {
                    return false;
                };
                let path = store.root.join(inside(&envelope.path_in(*place)));
                disk.len(&path).unwrap().is_some()
            })
            .count();
        assert!(places <= 1, "{label}: envelope {number} in {places} places");
    }
}

/// Crashes at every operation of the script's life.
fn crash_everywhere(
    start: &Start,
    script: &[Vec<Vec<Change>>],
    checkpoint_every: usize,
    seeds: u64,
) {
    let whole = start.disk();
    let all = play(&whole, script, checkpoint_every);
    assert_eq!(all, script.iter().flatten().count());
    assert!(whole.operations() > 40);
    for operation in 1..=whole.operations() + 1 {
        let disk = start.disk();
        disk.fail_at(operation, Fault::Crash);
        let acknowledged = play(&disk, script, checkpoint_every);
        for seed in 0..seeds {
            let label = format!("every {checkpoint_every}, operation {operation}, seed {seed}");
            verify(start, &disk.after_crash(seed), script, acknowledged, &label);
        }
        let label = format!("every {checkpoint_every}, operation {operation}, killed");
        verify(start, &disk.after_kill(), script, acknowledged, &label);
    }
}

#[test]
fn a_crash_at_every_operation_loses_nothing_acknowledged() {
    for checkpoint_every in [2, 3, 100] {
        crash_everywhere(&Start::with_nothing(), &script(), checkpoint_every, 6);
    }
}

#[test]
fn a_crash_while_an_older_workspace_is_taken_over_loses_nothing_of_it() {
    crash_everywhere(&Start::with_an_older_workspace(), &script()[..3], 2, 3);
}

#[test]
fn a_second_crash_while_an_older_workspace_is_taken_over_loses_nothing_either() {
    let start = Start::with_an_older_workspace();
    let whole = start.disk();
    Inline::open(&whole).unwrap();
    for first in (1..=whole.operations()).step_by(7) {
        let disk = start.disk();
        disk.fail_at(first, Fault::Crash);
        assert!(Inline::open(&disk).is_err());
        let again = disk.after_crash(first);
        Inline::open(&again).unwrap();
        for second in (1 + first % 3..=again.operations()).step_by(5) {
            let disk = disk.after_crash(first);
            disk.fail_at(second, Fault::Crash);
            assert!(Inline::open(&disk).is_err());
            let label = format!("operation {first}, then {second}");
            verify(&start, &disk.after_crash(second), &[], 0, &label);
        }
    }
}

#[test]
fn a_crash_at_any_operation_of_a_migration_loses_nothing() {
    let start = Start::with_version_1();
    let whole = start.disk();
    Inline::open(&whole).unwrap();
    // Most of them copy one file after the other; with the last ones it is this version's.
    let last = whole.operations() - 24;
    for operation in (1..last).step_by(9).chain(last..=whole.operations()) {
        let disk = start.disk();
        disk.fail_at(operation, Fault::Crash);
        assert!(Inline::open(&disk).is_err());
        let label = format!("operation {operation}");
        verify(&start, &disk.after_crash(operation), &[], 0, &label);
    }
}

#[test]
fn a_crash_during_recovery_is_recovered_from() {
    let start = Start::with_nothing();
    let script = script();
    let disk = SimDisk::new();
    let acknowledged = play(&disk, &script, 3);
    for seed in 0..4 {
        let operations = {
            let trial = disk.after_crash(seed);
            Inline::open(&trial).unwrap();
            trial.operations()
        };
        for operation in 1..=operations {
            let second = disk.after_crash(seed);
            second.fail_at(operation, Fault::Crash);
            assert!(Inline::open(&second).is_err());
            for again in 0..3 {
                let label = format!("seed {seed}, operation {operation}, again {again}");
                verify(&start, &second.after_crash(again), &script, acknowledged, &label);
            }
        }
    }
}

#[test]
fn a_failed_operation_is_never_a_wrong_state() {
    let start = Start::with_nothing();
    let script = script();
    for checkpoint_every in [1, 2] {
        let whole = SimDisk::new();
        play(&whole, &script, checkpoint_every);
        for fault in [Fault::Eio, Fault::Full] {
            for operation in 1..=whole.operations() {
                let disk = SimDisk::new();
                disk.fail_at(operation, fault);
                let acknowledged = play(&disk, &script, checkpoint_every);
                for seed in 0..3 {
                    let label = format!("{fault:?} at {operation}, seed {seed}");
                    verify(&start, &disk.after_crash(seed), &script, acknowledged, &label);
                }
                let label = format!("{fault:?} at {operation}, killed");
                verify(&start, &disk.after_kill(), &script, acknowledged, &label);
            }
        }
    }
}

/// A shorter life: each byte of its journal is cut and flipped, and a sprint's image has thousands.
fn short() -> Vec<Vec<Vec<Change>>> {
    script().into_iter().take(3).chain([vec![vec![event(1, "last"), slot(None)]]]).collect()
}

/// A disk whose journal is one segment with the short script, and that segment's bytes, cut short
/// behind the last frame.
fn one_segment() -> (SimDisk, PathBuf, Vec<u8>, usize) {
    let disk = SimDisk::new();
    play(&disk, &short(), 100);
    let path = PathBuf::from("/w").join(super::super::journal::segment_path(1));
    let mut bytes = disk.read(&path).unwrap();
    let end = super::super::entry::scan(&bytes).end;
    bytes.truncate(end + 40);
    (disk, path, bytes, end)
}

fn state_with(disk: &SimDisk, path: &Path, bytes: &[u8]) -> Result<State, StoreError> {
    let disk = disk.after_kill();
    disk.write(path, bytes).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(disk);
    load::load(&disk, Path::new("/w")).map(|loaded| loaded.views.state)
}

#[test]
fn a_journal_cut_at_any_byte_opens_at_an_acknowledged_state() {
    let (disk, path, bytes, end) = one_segment();
    let script = short();
    let states = prefixes(&State::default(), &script);
    let allowed: Vec<&State> = boundaries(&script).into_iter().map(|n| &states[n]).collect();
    for cut in 0..bytes.len() {
        let state = state_with(&disk, &path, &bytes[..cut]).unwrap();
        assert!(allowed.contains(&&state), "cut at {cut}");
        if cut >= end {
            assert_eq!(Some(&state), states.last(), "cut at {cut}");
        }
    }
}

#[test]
fn a_journal_with_any_byte_flipped_opens_right_or_refuses_by_name() {
    let (disk, path, bytes, end) = one_segment();
    let script = short();
    let states = prefixes(&State::default(), &script);
    let before_last = boundaries(&script)[script.len() - 1];
    let last_frame = {
        let found = super::super::entry::scan(&bytes);
        let last = found.frames.last().unwrap();
        end - super::super::entry::HEADER - last.lines.len()
    };
    for place in 0..bytes.len() {
        for mask in [0x01, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] ^= mask;
            match state_with(&disk, &path, &damaged) {
                Ok(state) if place >= end => assert_eq!(Some(&state), states.last()),
                Ok(state) => {
                    // Damage to the last entry cannot be told from one that was being written.
                    assert!(place >= last_frame, "byte {place} went unnoticed");
                    assert_eq!(state, states[before_last]);
                }
                Err(StoreError::Corrupt { path: named, .. }) => {
                    assert!(place < last_frame, "byte {place}");
                    assert_eq!(named, path);
                }
                Err(other) => panic!("byte {place}: {other}"),
            }
        }
    }
}

#[test]
fn an_index_with_any_byte_flipped_refuses_by_name() {
    let disk = SimDisk::new();
    play(&disk, &script(), 3);
    let path = Path::new("/w").join(layout::INDEX);
    let bytes = disk.read(&path).unwrap();
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x01;
        let error = state_with(&disk, &path, &damaged).unwrap_err();
        assert!(matches!(error, StoreError::CorruptIndex { .. }), "byte {place}: {error}");
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    (0..15_u8, 1..4_u64, 0..50_u64).prop_map(|(kind, number, salt)| match kind {
        0 => request(number, RequestStatus::Delegated, &format!("body {salt}")),
        1 => event(number, &format!("event {salt}")),
        2 => envelope(number, EnvelopeFolder::Inbox),
        3 => envelope(number, EnvelopeFolder::Archive),
        4 => run(number),
        5 => Change::Remove(RecordId::Run(run_id(number))),
        6 => mark(number, salt),
        7 => document(&format!("line {salt}")),
        8 => item(number, ItemStatus::Pending),
        9 => item(number, ItemStatus::Done),
        10 => sprint(number, SprintStatus::Running, TodoStatus::Running),
        11 => slot((salt % 2 == 0).then_some(number)),
        12 => sprint_event(number, &format!("event {salt}")),
        13 => Change::Remove(RecordId::Sprint(sprint_id(number))),
        _ => Change::Remove(RecordId::Request(request_id(number))),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_survives_a_crash_anywhere(
        script in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any_change(), 1..4), 1..3),
            1..12,
        ),
        checkpoint_every in 1..6_usize,
        fraction in 0.0..1.0_f64,
        seed in any::<u64>(),
    ) {
        let whole = SimDisk::new();
        play(&whole, &script, checkpoint_every);
        let operation = 1 + (whole.operations() as f64 * fraction) as u64;
        let disk = SimDisk::new();
        disk.fail_at(operation, Fault::Crash);
        let acknowledged = play(&disk, &script, checkpoint_every);
        verify(&Start::with_nothing(), &disk.after_crash(seed), &script, acknowledged, "random history");
    }
}
