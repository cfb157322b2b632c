//! What a check says about its tests by name: in the report that it writes into its tree, else in its output.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::plan::CheckSpec;
use crate::domain::test_report::TestOutcomes;
use crate::git::{counts, test_names};
use crate::platform::beneath::Folder;

/// More of a report than this, in bytes, is not read.
const LARGEST: u64 = 64 << 20;

/// By what a report is told from one that was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// The report that lies there now: a commit may hold one, or an earlier check have left it.
pub(super) fn stamp(tree: &Path, check: &CheckSpec) -> Option<Stamp> {
    let found = Folder::open(tree).ok()?.metadata(check.report.as_ref()?).ok()?;
    let changed = (found.ctime(), found.ctime_nsec());
    Some(Stamp { inode: found.ino(), size: found.len(), changed })
}

/// Reads the report that a check wrote; none where it writes none. No link is followed: whatever a change holds
/// could have made it.
///
/// # Errors
/// One line that says why its report does not count.
pub(super) fn read(
    tree: &Path,
    check: &CheckSpec,
    earlier: Option<Stamp>,
) -> Result<Option<TestOutcomes>, String> {
    let Some(path) = &check.report else { return Ok(None) };
    let wrong =
        |why: &dyn std::fmt::Display| format!("no JUnit report at {}: {why}", path.display());
    if earlier.is_some() && stamp(tree, check) == earlier {
        return Err(wrong(&"what lies there was there before the check"));
    }
    let bytes = Folder::open(tree)
        .and_then(|folder| folder.file(path))
        .and_then(|file| file.read(LARGEST))
        .map_err(|error| wrong(&error))?;
    let text = String::from_utf8_lossy(&bytes);
    test_names::junit(&text).map(Some).map_err(|why| wrong(&why))
}

/// The tests that an output names.
pub(super) fn printed(stdout: &str, stderr: &str) -> TestOutcomes {
    let (stdout, stderr) = (counts::without_colours(stdout), counts::without_colours(stderr));
    test_names::printed(&stdout, &stderr)
}

/// How many tests passed and failed, where they have names.
pub(super) fn counts(tests: &TestOutcomes) -> Option<counts::Counts> {
    let count = |names: &std::collections::BTreeSet<String>| names.len() as u64;
    let found = counts::Counts { passed: count(&tests.passed), failed: count(&tests.failed) };
    (!tests.is_empty()).then_some(found)
}
