//! Crashes at every operation, damage at every byte.

use proptest::prelude::*;

use super::*;
use crate::platform::disk::is_full;
use crate::platform::sim_disk::Fault;
use crate::store::load;

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
fn verify(disk: &SimDisk, script: &[Vec<Vec<Change>>], acknowledged: usize, label: &str) {
    let store = Inline::open(disk).unwrap_or_else(|error| panic!("{label}: {error}"));
    let states = prefixes(script);
    let seq = usize::try_from(store.report.seq).unwrap();
    assert!(seq >= acknowledged, "{label}: {seq} of {acknowledged} acknowledged");
    assert!(boundaries(script).contains(&seq), "{label}: half a group");
    assert_eq!(store.views.state, states[seq], "{label}");
    assert_eq!(store.report.set_aside, [], "{label}");
    assert_eq!(store.report.overridden, [] as [String; 0], "{label}");
    for (path, expected) in histories(script, seq) {
        let found = history_on(disk, &store.root, &path);
        assert_eq!(found, expected, "{label}: {path}");
    }
    // The files alone say the same: there is nothing left to replay.
    let again = Inline::open(disk).unwrap();
    assert_eq!(again.report.replayed, 0, "{label}");
    assert_eq!(again.views.state, states[seq], "{label}");
    for number in [1, 2] {
        let places = [Place::Inbox, Place::Archive, Place::Dead]
            .into_iter()
            .filter(|place| {
                let Change::Envelope(envelope) = envelope(number, *place) else {
                    return false;
                };
                let path = store.root.join(layout::envelope(&envelope, *place));
                disk.len(&path).unwrap().is_some()
            })
            .count();
        assert!(places <= 1, "{label}: envelope {number} in {places} places");
    }
}

#[test]
fn a_crash_at_every_operation_loses_nothing_acknowledged() {
    let script = script();
    for checkpoint_every in [2, 3, 100] {
        let whole = SimDisk::new();
        let all = play(&whole, &script, checkpoint_every);
        assert_eq!(all, script.iter().flatten().count());
        assert!(whole.operations() > 40);
        for operation in 1..=whole.operations() + 1 {
            let disk = SimDisk::new();
            disk.fail_at(operation, Fault::Crash);
            let acknowledged = play(&disk, &script, checkpoint_every);
            for seed in 0..6 {
                let label = format!("every {checkpoint_every}, operation {operation}, seed {seed}");
                verify(&disk.after_crash(seed), &script, acknowledged, &label);
            }
            let label = format!("every {checkpoint_every}, operation {operation}, killed");
            verify(&disk.after_kill(), &script, acknowledged, &label);
        }
    }
}

#[test]
fn a_crash_during_recovery_is_recovered_from() {
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
                verify(&second.after_crash(again), &script, acknowledged, &label);
            }
        }
    }
}

#[test]
fn a_failed_operation_is_never_a_wrong_state() {
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
                    verify(&disk.after_crash(seed), &script, acknowledged, &label);
                }
                let label = format!("{fault:?} at {operation}, killed");
                verify(&disk.after_kill(), &script, acknowledged, &label);
            }
        }
    }
}

/// A disk whose journal is one segment with the whole script, and that segment's bytes, cut short
/// behind the last frame.
fn one_segment() -> (SimDisk, PathBuf, Vec<u8>, usize) {
    let disk = SimDisk::new();
    play(&disk, &script(), 100);
    let path = PathBuf::from("/w").join(super::super::journal::segment_path(1));
    let mut bytes = disk.read(&path).unwrap();
    let end = super::super::entry::scan(&bytes).unwrap().end;
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
    let script = script();
    let states = prefixes(&script);
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
    let script = script();
    let states = prefixes(&script);
    let before_last = boundaries(&script)[script.len() - 1];
    let last_frame = {
        let found = super::super::entry::scan(&bytes).unwrap();
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
    (0..9_u8, 1..4_u64, 0..50_u64).prop_map(|(kind, number, salt)| match kind {
        0 => request(number, RequestStatus::Delegated, &format!("body {salt}")),
        1 => event(number, &format!("event {salt}")),
        2 => envelope(number, Place::Inbox),
        3 => envelope(number, Place::Archive),
        4 => run(number),
        5 => Change::RunGone(run_id(number)),
        6 => mark(number, salt),
        7 => document(&format!("line {salt}")),
        _ => Change::RetireRequest(request_id(number)),
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
        verify(&disk.after_crash(seed), &script, acknowledged, "random history");
    }
}
