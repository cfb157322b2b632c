//! What the checks said about trees, and how often each of them was flaky: files in the workspace, bounded in number.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::domain::comparison::CheckRecord;
use crate::domain::evidence::{Evidence, Isolation};
use crate::domain::time::Timestamp;
use crate::git::TreeId;
use crate::platform::clock;
use crate::platform::files::{self, FileError};

/// What was seen longer ago than this says nothing about a tree of today.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);
/// How tests are named; records of another way say nothing about them.
const FORM: u32 = 2;
/// Trees whose records are kept; the oldest go.
const TREES: usize = 32;
/// Tests and checks whose flakiness is counted; those that were seen longest ago go.
const COUNTED: usize = 500;

/// How often something was red and green without a change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FlakyCount {
    /// So often.
    pub times: u64,
    /// When last.
    pub last: Timestamp,
}

/// What the checks said about a tree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TreeProof {
    pub(super) checks: Vec<CheckRecord>,
    /// All of it, where every check passed.
    pub(super) green: Option<Evidence>,
    /// Whether it is of another day: tools, certificates and dates have gone on since.
    #[serde(skip)]
    pub(super) is_old: bool,
}

impl TreeProof {
    /// Of a run of the checks.
    pub(super) fn of(evidence: &Evidence) -> TreeProof {
        // What was red at first is not known to be green the next time.
        let is_sure = evidence.is_green() && evidence.repetitions == 0;
        let mut green = is_sure.then(|| evidence.clone());
        for check in green.iter_mut().flat_map(|it| &mut it.checks) {
            // That is said beside the base of one change.
            check.compared = None;
        }
        let checks = evidence.checks.iter().map(CheckRecord::of).collect();
        TreeProof { checks, green, is_old: false }
    }

    /// As the evidence of a commit with this tree, where it is green.
    pub(super) fn evidence_of(self, commit: String) -> Option<Evidence> {
        let mut evidence = Evidence { commit, tree_ms: 0, ..self.green? };
        for check in &mut evidence.checks {
            // That time was spent on another commit.
            check.duration_ms = 0;
            let record = self.checks.iter().find(|record| record.name == check.name);
            check.tests = record.map(|record| record.tests.clone()).unwrap_or_default();
        }
        Some(evidence)
    }
}

/// What has to be the same for the records of a tree to be used again.
pub(super) struct TreeKey<'a> {
    pub(super) tree: TreeId,
    /// Of what is configured about checks.
    pub(super) checks: &'a str,
    pub(super) isolation: Isolation,
    /// The keys of the prepared environments.
    pub(super) environments: &'a [String],
    /// What else decides the files ([`crate::git::Project::files_key`]).
    pub(super) files: &'a str,
}

/// The files.
pub(super) struct ProofRecords {
    folder: PathBuf,
    /// Whoever writes: several changes are proven at the same time.
    writing: Mutex<()>,
}

impl ProofRecords {
    /// Those of a workspace.
    pub(super) fn of(state_dir: &Path) -> ProofRecords {
        ProofRecords { folder: state_dir.join("proofs"), writing: Mutex::default() }
    }

    fn trees(&self) -> PathBuf {
        self.folder.join("trees")
    }

    fn file_of(&self, key: &TreeKey<'_>) -> PathBuf {
        let environments = key.environments.join(" ");
        let TreeKey { tree, checks, isolation, files, .. } = key;
        let parts = format!("{FORM} {tree} {checks} {isolation:?} {environments} {files}");
        let name = Sha256::digest(parts);
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        self.trees().join(format!("{name}.json"))
    }

    /// What the checks said about a tree. What cannot be read as that is as good as absent.
    pub(super) fn read(&self, key: &TreeKey<'_>) -> Result<Option<TreeProof>, FileError> {
        let path = self.file_of(key);
        let text = files::read_text_if_present(&path)?;
        let Some(proof) = text.and_then(|text| serde_json::from_str::<TreeProof>(&text).ok())
        else {
            return Ok(None);
        };
        let modified = files::metadata(&path).ok().and_then(|it| it.modified().ok());
        let age = modified.and_then(|at| SystemTime::from(clock::now()).duration_since(at).ok());
        Ok(Some(TreeProof { is_old: age.is_some_and(|age| age > OLD), ..proof }))
    }

    /// Keeps what the checks said about a tree.
    pub(super) fn keep(&self, key: &TreeKey<'_>, proof: &TreeProof) -> Result<(), FileError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        files::create_dir_all(&self.trees())?;
        let own = self.file_of(key);
        write(&own, proof)?;
        files::keep_newest(&self.trees(), &own, TREES)
    }

    /// Forgets what was said about trees: what they were prepared with is made anew.
    pub(super) fn forget(&self) -> Result<(), FileError> {
        files::remove_dir_all(&self.trees())
    }

    /// Counts what was flaky once more.
    pub(super) fn count_flaky(&self, seen: Vec<String>, now: Timestamp) -> Result<(), FileError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.flaky()?;
        for name in seen {
            let count = all.entry(name).or_insert(FlakyCount { times: 0, last: now });
            count.times += 1;
            count.last = now;
        }
        let mut oldest: Vec<_> = all.iter().map(|(name, it)| (it.last, name.clone())).collect();
        oldest.sort();
        for (_, name) in oldest.iter().rev().skip(COUNTED) {
            all.remove(name);
        }
        files::create_dir_all(&self.folder)?;
        write(&self.folder.join("flaky.json"), &all)
    }

    /// What was red and green without a change, and how often.
    pub(super) fn flaky(&self) -> Result<BTreeMap<String, FlakyCount>, FileError> {
        let text = files::read_text_if_present(&self.folder.join("flaky.json"))?;
        Ok(serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default())
    }
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), FileError> {
    // Names and counts always have a JSON form.
    files::write_atomic(path, serde_json::to_vec(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_may_write_at_once_and_nothing_is_lost_or_left() {
        let home = tempfile::tempdir().unwrap();
        let records = ProofRecords::of(home.path());
        let tree = |number: u32| format!("{number:040x}").parse::<TreeId>().unwrap();
        let key = |number: u32| TreeKey {
            tree: tree(number),
            checks: "",
            isolation: Isolation::Bubblewrap,
            environments: &[],
            files: "",
        };
        let begun = Timestamp::from_millis(0);
        let nothing = TreeProof { checks: Vec::new(), green: None, is_old: false };
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let (records, key, nothing) = (&records, &key, &nothing);
                threads.spawn(move || {
                    for number in 0..40 {
                        records.keep(&key(thread * 20 + number), nothing).unwrap();
                        let seen = vec![format!("{thread}"), "all".to_owned()];
                        records.count_flaky(seen, begun).unwrap();
                    }
                });
            }
        });
        assert_eq!(files::list(&records.trees()).unwrap().len(), TREES);
        let counted = records.flaky().unwrap();
        assert_eq!(counted["all"].times, 160);
        assert_eq!(counted["3"].times, 40);
    }
}
