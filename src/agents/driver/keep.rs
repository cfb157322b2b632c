//! What a run and its session keep on disk.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::error::RunError;
use crate::agents::run::RunSpec;
use crate::domain::usage::Usage;
use crate::platform::beneath::Folder;
use crate::platform::files;

/// What a turn is for; `turn.json` in its folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::agents) struct TurnPurpose {
    /// Repairs asked for until then, with this one.
    pub(in crate::agents) repairs: u32,
    /// Whether this turn only says the answer again.
    pub(in crate::agents) repairing: bool,
    /// Whether the agent was told that it goes in circles.
    #[serde(default)]
    pub(in crate::agents) hinted: bool,
}

impl TurnPurpose {
    pub(in crate::agents) const FILE: &'static str = "turn.json";

    /// Of a turn that was begun. Before this file was, every turn but the first was a repair.
    pub(in crate::agents) fn of(folder: &Path, number: u32) -> Result<TurnPurpose, RunError> {
        let known = read_json(folder, TurnPurpose::FILE)?;
        Ok(known.unwrap_or(TurnPurpose { repairs: number, repairing: number > 0, hinted: false }))
    }

    pub(super) fn keep(self, folder: &Path) -> Result<(), RunError> {
        write_json(folder, TurnPurpose::FILE, &self)
    }
}

pub(super) fn write_json<T: Serialize>(
    folder: &Path,
    what: &'static str,
    value: &T,
) -> Result<(), RunError> {
    let text =
        serde_json::to_vec_pretty(value).map_err(|source| RunError::Json { what, source })?;
    Ok(files::write_private_durable(&folder.join(what), text)?)
}

pub(in crate::agents) fn read_json<T: DeserializeOwned>(
    folder: &Path,
    what: &'static str,
) -> Result<Option<T>, RunError> {
    files::read_text_if_present(&folder.join(what))?
        .map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|source| RunError::Json { what, source })
}

/// The result that the agent handed in by the tool, as it was accepted last.
const SUBMITTED: &str = "submitted.json";

/// Keeps a result that an agent hands in while it works: durable before it is told so, and the last one
/// counts. Whoever calls has judged it.
///
/// # Errors
/// Where it cannot be written; then it must not be acknowledged.
pub fn submit(run_dir: &Path, result: &Value) -> Result<(), RunError> {
    write_json(run_dir, SUBMITTED, result)
}

/// What was handed in.
pub(super) fn submitted(run_dir: &Path) -> Option<Value> {
    match read_json(run_dir, SUBMITTED) {
        Ok(result) => result,
        Err(error) => {
            tracing::warn!(%error, "what the agent handed in cannot be read");
            None
        }
    }
}

/// What was handed in is about less than the agent knows now.
pub(super) fn forget_submitted(run_dir: &Path) -> Result<(), RunError> {
    Ok(files::remove_file(&run_dir.join(SUBMITTED))?)
}

/// Where the totals of a conversation are kept, in the session's folder: agents count over its whole life.
const USAGE: &str = "usage.json";
/// Bytes of the largest file of ours in a session's folder.
const LARGEST: u64 = 1 << 20;

/// What is kept in the folder of a session. Its agent may write there as well: it is believed as little as
/// what the agent says, and nothing is read through a link.
pub(super) fn read_kept<T: DeserializeOwned>(spec: &RunSpec, what: &'static str) -> Option<T> {
    let folder = Folder::open(&spec.session_dir).ok()?;
    let text = folder.read_text_if_present(what, LARGEST).ok().flatten()?;
    serde_json::from_str(&text).ok()
}

/// Keeps something there.
pub(super) fn write_kept<T: Serialize>(
    spec: &RunSpec,
    what: &'static str,
    value: &T,
) -> Result<(), RunError> {
    let text = serde_json::to_vec(value).map_err(|source| RunError::Json { what, source })?;
    Ok(Folder::open(&spec.session_dir)?.write_private_durable(what, text)?)
}

pub(super) fn seen_usage(spec: &RunSpec, session: &str) -> Usage {
    let totals: BTreeMap<String, Usage> = read_kept(spec, USAGE).unwrap_or_default();
    totals.get(session).copied().unwrap_or_default()
}

pub(super) fn remember_usage(spec: &RunSpec, session: &str, total: Usage) {
    if let Err(error) = write_kept(spec, USAGE, &BTreeMap::from([(session, total)])) {
        tracing::warn!(%error, "cannot keep the token count; the next run will count too much");
    }
}
