//! The journal of a real life, cut and flipped: what is read is right, or reading refuses by name, and then it is put
//! right and the life goes on.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use teams::domain::change::Change;
use teams::domain::record::AnyRecord;
use teams::domain::state::State;
use teams::platform::disk::RealDisk;
use teams::platform::plug::PLUG_VARIABLE;
use teams::store::{Store, StoreError, read_only};

use super::support::life::{FREE, Life, Went};

/// Bytes before the lines of a frame: mark, length, checksum, number.
const HEADER: usize = 20;
/// Of the bytes inside a frame every so many is damaged; of its header each one.
const STRIDE: usize = 61;

/// A workspace whose team was killed before any checkpoint of its work, and its journal.
struct Recorded {
    life: Life,
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where each frame ends, beginning with 0.
    ends: Vec<usize>,
    /// The state at each of these.
    states: Vec<State>,
}

/// Records a life, and reads its journal in a way of its own.
async fn recorded() -> Recorded {
    let life = Life::new(FREE).await;
    assert_eq!(life.live(&[(PLUG_VARIABLE, "after_sync:20".to_owned())]).await, Went::Killed);
    let journal = life.workspace().join(".teams_runtime/journal");
    let segments: Vec<_> = std::fs::read_dir(journal).unwrap().collect();
    assert_eq!(segments.len(), 1);
    let path = segments[0].as_ref().unwrap().path();
    let mut bytes = std::fs::read(&path).unwrap();
    let mut said = Said::default();
    let (mut ends, mut states) = (vec![0], vec![State::default()]);
    let mut at = 0;
    while bytes[at..].starts_with(b"TJ5\n") {
        let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        let mut state = states.last().unwrap().clone();
        let first = u64::from_le_bytes(bytes[at + 12..at + 20].try_into().unwrap());
        let lines = bytes[at + HEADER..at + HEADER + length].split_inclusive(|byte| *byte == b'\n');
        for (seq, line) in (first..).zip(lines) {
            let mut entry: Value = serde_json::from_slice(line).unwrap();
            let changes: Vec<Value> = serde_json::from_value(entry["changes"].take()).unwrap();
            for change in changes {
                if let Some(change) = said.read(seq, change) {
                    state.apply(&change);
                }
            }
        }
        at += HEADER + length;
        ends.push(at);
        states.push(state);
    }
    assert!(states.len() > 15, "{} frames", states.len());
    // A little of the zeros that fill the segment.
    bytes.truncate(at + 50);
    Recorded { life, path, bytes, ends, states }
}

/// What the journal said so far.
#[derive(Default)]
struct Said {
    images: BTreeMap<String, Value>,
    /// The first whole result of an entry, by its sequence.
    results: BTreeMap<u64, Value>,
}

impl Said {
    /// What a change of an entry does to the state.
    fn read(&mut self, seq: u64, change: Value) -> Option<Change> {
        let (word, content) = change.as_object().unwrap().iter().next().unwrap();
        let of = |at: usize| content[at].clone();
        match word.as_str() {
            "save" => Some(Change::Save(self.record(seq, None, of(0), of(1)))),
            "edit" => {
                let key = content[1].as_str().unwrap().to_owned();
                let mut image = self.images[&key].clone();
                let patch: json_patch::Patch = serde_json::from_value(of(2)).unwrap();
                json_patch::patch(&mut image, &patch).unwrap();
                Some(Change::Save(self.record(seq, Some(key), of(0), image)))
            }
            "remove" => Some(Change::Remove(serde_json::from_value(content.clone()).unwrap())),
            "channel" => Some(Change::Channel(serde_json::from_value(content.clone()).unwrap())),
            "event" => {
                let event = &content[1];
                if event["type"] == "role_report" {
                    self.result(seq, &mut event["payload"]["result"].clone());
                }
                None
            }
            "sprint_event" | "append" => None,
            other => panic!("{other}"),
        }
    }

    fn record(
        &mut self,
        seq: u64,
        key: Option<String>,
        kind: Value,
        mut image: Value,
    ) -> AnyRecord {
        let place = match kind.as_str().unwrap() {
            "request" => "/result",
            "envelope" => "/report/outcome/result",
            _ => "/none",
        };
        let mut whole = image.clone();
        if let Some(result) = image.pointer_mut(place).filter(|result| result.is_object()) {
            *whole.pointer_mut(place).unwrap() = self.result(seq, result);
        }
        let record = AnyRecord::decode(serde_json::from_value(kind).unwrap(), whole).unwrap();
        self.images.insert(key.unwrap_or_else(|| record.key()), image);
        record
    }

    /// The whole result; what stands there becomes a reference where the entry gives it.
    fn result(&mut self, seq: u64, there: &mut Value) -> Value {
        if let Some(entry) = there.get("result_of_entry") {
            return self.results[&entry.as_u64().unwrap()].clone();
        }
        let whole = there.clone();
        if let Entry::Vacant(place) = self.results.entry(seq) {
            place.insert(whole.clone());
            *there = serde_json::json!({ "result_of_entry": seq });
        }
        whole
    }
}

impl Recorded {
    fn read(&self, bytes: &[u8]) -> Result<State, StoreError> {
        std::fs::write(&self.path, bytes).unwrap();
        read_only(&self.life.workspace())
    }

    /// The number of whole frames before a byte.
    fn frames_before(&self, at: usize) -> usize {
        self.ends.iter().rposition(|end| *end <= at).unwrap()
    }

    /// Every byte of each header and some of each frame's lines.
    fn places(&self) -> Vec<usize> {
        let near = |at: usize| self.ends.iter().any(|end| (*end..*end + HEADER + 1).contains(&at));
        (0..self.bytes.len()).filter(|at| at % STRIDE == 0 || near(*at)).collect()
    }

    /// What a damaged byte may lead to.
    fn check(&self, at: usize, found: Result<State, StoreError>) {
        let last = self.states.len() - 2;
        match found {
            Ok(state) if at >= self.ends[last + 1] => {
                assert_eq!(Some(&state), self.states.last(), "behind the end, at {at}");
            }
            Ok(state) => {
                assert!(at >= self.ends[last], "byte {at} went unnoticed");
                assert_eq!(state, self.states[last], "byte {at}");
            }
            Err(StoreError::Corrupt { path, .. }) => {
                assert!(at < self.ends[last], "the last frame may be half written, byte {at}");
                assert_eq!(path, self.path);
            }
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else if path.is_file() {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_journal_reads_right_or_is_refused_by_name() {
    let recorded = recorded().await;
    for cut in recorded.places() {
        let state = recorded.read(&recorded.bytes[..cut]).unwrap();
        assert_eq!(state, recorded.states[recorded.frames_before(cut)], "cut at {cut}");
    }
    for at in recorded.places() {
        let mut damaged = recorded.bytes.clone();
        damaged[at] ^= 0x20;
        recorded.check(at, recorded.read(&damaged));
    }
    // Opening to write agrees, on a copy each, because it brings the files up to date.
    let frames = recorded.states.len();
    for at in [3, recorded.ends[4] + 9, recorded.ends[frames - 2] + 30, recorded.bytes.len() - 5] {
        let mut damaged = recorded.bytes.clone();
        damaged[at] ^= 0x20;
        std::fs::write(&recorded.path, &damaged).unwrap();
        let other = tempfile::tempdir().unwrap();
        copy(
            &recorded.life.workspace().join(".teams_runtime"),
            &other.path().join(".teams_runtime"),
        );
        let opened = Store::open(other.path(), Arc::new(RealDisk)).map(|opened| opened.state);
        let opened = opened.map_err(|error| {
            let StoreError::Corrupt { path, offset, reason } = error else { return error };
            let inside = path.strip_prefix(other.path()).unwrap();
            StoreError::Corrupt { path: recorded.life.workspace().join(inside), offset, reason }
        });
        recorded.check(at, opened);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_journal_is_put_right_and_its_request_ends_with_one_commit_and_one_answer() {
    let whole = Life::new(FREE).await;
    assert_eq!(whole.live(&[]).await, Went::Done);
    let whole = whole.outcome().await;
    for part in [1, 2, 4] {
        let recorded = recorded().await;
        let frame = (recorded.ends.len() - 3) * part / 4;
        let mut damaged = recorded.bytes.clone();
        damaged[recorded.ends[frame] + 30] ^= 0x20;
        assert!(matches!(recorded.read(&damaged), Err(StoreError::Corrupt { .. })));
        let (code, _, said) = recorded.life.teams(&["run"]).await;
        assert_ne!(code, 0);
        assert!(said.contains("is damaged at byte") && said.contains("doctor --fix"), "{said}");
        let (_, said, _) = recorded.life.teams(&["doctor", "--fix"]).await;
        assert!(said.contains("The records can be read again: 1 open request."), "{said}");
        assert_eq!(recorded.life.live(&[]).await, Went::Done, "frame {frame}");
        let outcome = recorded.life.outcome().await;
        // The files lie some instants behind the journal, and a step of which only what is damaged told is done again.
        let answers = |all: &[String]| {
            let told = all.iter().filter(|text| text.starts_with("general: "));
            told.cloned().collect::<Vec<_>>()
        };
        assert_eq!(answers(&outcome.messages), answers(&whole.messages), "frame {frame}");
        let once = |all: &[String]| {
            let told = all.iter().filter(|text| !text.starts_with("relay: "));
            told.cloned().collect::<BTreeSet<_>>()
        };
        assert_eq!(once(&outcome.messages), once(&whole.messages), "frame {frame}");
    }
}
