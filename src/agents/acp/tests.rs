//! Recorded streams of real agents, replayed through the codec.

use chrono::DateTime;
use serde_json::Value;

use super::*;
use crate::agents::codec::CodecKind;
use crate::agents::prompt::Said;
use crate::agents::turn::{Failure, Turn};
use crate::domain::run::Usage;
use crate::platform::files;
use crate::platform::supervise::{EndedBy, Exit};

/// What somebody does when the agent begins its first tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    Cancel,
    Speak,
}

/// A recording, and how its run was begun.
pub(super) struct Recording {
    pub(super) name: &'static str,
    mode: Option<&'static str>,
    access: Access,
    resume: Option<&'static str>,
    then: Then,
}

const fn of(name: &'static str) -> Recording {
    Recording { name, mode: None, access: Access::Worktree, resume: None, then: Then::Nothing }
}

/// As the tests of codex-acp begin it.
const fn codex(name: &'static str) -> Recording {
    Recording { mode: Some("agent-full-access"), ..of(name) }
}

/// The conversation that `codex-edit-again` goes on with is the one of `codex-edit`.
const EARLIER: &str = "";

/// Every recording, with how it ends.
pub(super) fn recordings() -> Vec<(Recording, Result<&'static str, FailKind>)> {
    use FailKind as F;
    vec![
        (codex("codex-edit"), Ok("did it")),
        (Recording { resume: Some(EARLIER), ..codex("codex-edit-again") }, Ok("did it")),
    ]
}

pub(super) fn lines(name: &str) -> Vec<String> {
    let path = format!("{}/tests/data/acp/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = files::read_text(path.as_ref()).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}
