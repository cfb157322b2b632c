//! What Codex notes of a conversation while it works. Its stream tells what it used only at the end of a turn, and how
//! full the conversation is nowhere.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agents::codex::HOME;
use crate::agents::run::{Agent, RunSpec};
use crate::agents::turn::Turn;
use crate::domain::usage::Usage;
use crate::platform::beneath::{Folder, RegularFile};

/// Bytes that are read at a time, and how often at a look: an agent may write there as well.
const PIECE: u64 = 1 << 20;
const PIECES: usize = 4;
/// Looks at one that is over.
const LOOKS: usize = 256;
/// Bytes of the longest line that is kept.
const LONGEST: usize = 1 << 20;

/// The file of a conversation, which is read on.
#[derive(Debug, Default)]
pub(super) struct Rollout {
    file: Option<RegularFile>,
    /// The beginning of a line whose end is not there yet.
    line: Vec<u8>,
    /// Whether the last look did not come to the end.
    has_more: bool,
}

impl Rollout {
    /// Of agents that have such a file.
    pub(super) fn of(agent: &Agent) -> Option<Rollout> {
        match agent {
            Agent::Codex(_) => Some(Rollout::default()),
            Agent::Claude(_) | Agent::Acp(_) | Agent::Rehearsal(_) => None,
        }
    }

    /// Takes all that is noted of its conversation into a turn that is over. Blocks.
    pub(super) fn count_all(&mut self, spec: &RunSpec, turn: &mut Turn) {
        // Its agent may have written there as well.
        for _ in 0..LOOKS {
            self.count(spec, turn);
            if !self.has_more {
                break;
            }
        }
    }

    /// What a conversation that rests has used. Blocks.
    pub(super) fn total_of(mut self, session_dir: &Path, thread: &str) -> Option<Usage> {
        let mut last = None;
        for _ in 0..LOOKS {
            last = self.last_count(session_dir, thread).or(last);
            if !self.has_more {
                break;
            }
        }
        last.map(|count| count.total)
    }

    /// Takes what is noted of its conversation into a turn.
    pub(super) fn count(&mut self, spec: &RunSpec, turn: &mut Turn) {
        if let Some(thread) = &turn.session
            && let Some(count) = self.last_count(&spec.session_dir, thread)
        {
            // Its commands can write in that file: what is used does not become less.
            let before = turn.usage_total.filter(|it| it.tokens() > count.total.tokens());
            turn.usage_total = before.or(Some(count.total));
            turn.context = (count.held.or(turn.context.0), count.window.or(turn.context.1));
        }
    }

    /// What is noted last, where anything is since the last look. Nothing where there is no such file: then its stream
    /// tells what it used in the end.
    fn last_count(&mut self, session_dir: &Path, thread: &str) -> Option<TokenCount> {
        if self.file.is_none() {
            self.file = find(session_dir, thread);
        }
        let file = self.file.as_mut()?;
        let mut found = None;
        self.has_more = true;
        for _ in 0..PIECES {
            let piece = file.read_on(PIECE).ok().filter(|piece| !piece.is_empty());
            self.has_more = piece.is_some();
            let Some(piece) = piece else { break };
            for part in piece.split_inclusive(|byte| *byte == b'\n') {
                if self.line.len() + part.len() <= LONGEST {
                    self.line.extend_from_slice(part);
                }
                if part.ends_with(b"\n") {
                    found = TokenCount::of(&std::mem::take(&mut self.line)).or(found);
                }
            }
        }
        found
    }
}

/// The file of a conversation, in the folder of its day.
fn find(session_dir: &Path, thread: &str) -> Option<RegularFile> {
    let home = Folder::open(session_dir).ok()?;
    let mut folders = vec![PathBuf::from(HOME).join("sessions")];
    for _ in ["year", "month", "day"] {
        let below = |folder: &PathBuf| {
            let names = home.folder(folder).ok().and_then(|it| it.list().ok());
            names.into_iter().flatten().map(|name| folder.join(name)).collect::<Vec<_>>()
        };
        folders = folders.iter().flat_map(below).collect();
    }
    let end = format!("-{thread}.jsonl");
    folders.iter().find_map(|folder| {
        let names = home.folder(folder).ok()?.list().ok()?;
        let name = names.into_iter().find(|name| name.to_string_lossy().ends_with(&end))?;
        home.file(folder.join(name)).ok()
    })
}

/// A count of tokens as Codex notes it after each answer of its model.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TokenCount {
    /// Of the whole conversation.
    total: Usage,
    /// What the last request and its answer held.
    held: Option<u64>,
    /// What the model's window holds.
    window: Option<u64>,
}

impl TokenCount {
    /// Of a line that has one.
    fn of(line: &[u8]) -> Option<TokenCount> {
        if !line.windows(COUNT.len()).any(|part| part == COUNT.as_bytes()) {
            return None;
        }
        let line: Value = serde_json::from_slice(line).ok()?;
        let payload = line.get("payload")?;
        let info = payload.get("type").filter(|it| *it == COUNT).and(payload.get("info"))?;
        let total = info.get("total_token_usage")?;
        let number = |name: &str| total.get(name).and_then(Value::as_u64).unwrap_or_default();
        let some = |place: &str| info.pointer(place).and_then(Value::as_u64).filter(|it| *it > 0);
        Some(TokenCount {
            total: Usage {
                input_tokens: number("input_tokens"),
                cached_tokens: number("cached_input_tokens"),
                output_tokens: number("output_tokens"),
                ..Usage::default()
            },
            held: some("/last_token_usage/total_tokens"),
            window: some("/model_context_window"),
        })
    }
}

const COUNT: &str = "token_count";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::files;

    #[test]
    fn it_is_read_on_and_through_no_link() {
        let temp = tempfile::tempdir().unwrap();
        let day = temp.path().join("codex/sessions/2026/11/29");
        files::create_dir_all(&day).unwrap();
        let mut rollout = Rollout::default();
        let mut last = |thread: &str| {
            let count = rollout.last_count(temp.path(), thread)?;
            Some((count.total.input_tokens, count.held, count.window))
        };
        assert_eq!(last("t-1"), None);
        let file = day.join("rollout-2026-11-29T02-34-18-t-1.jsonl");
        let count = |tokens: u64| {
            format!(
                r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{tokens},"cached_input_tokens":1,"output_tokens":2}},"last_token_usage":{{"total_tokens":{}}},"model_context_window":500}}}}}}"#,
                tokens / 2
            )
        };
        files::write(&file, format!("{{\"type\":\"session_meta\"}}\nnoise\n{}\n", count(7)))
            .unwrap();
        assert_eq!(last("t-1"), Some((7, Some(3), Some(500))));
        assert_eq!(last("t-1"), None, "nothing new");
        let (begun, rest) = (&count(9)[..40], &count(9)[40..]);
        files::append(&file, begun).unwrap();
        assert_eq!(last("t-1"), None);
        files::append(
            &file,
            format!("{rest}\n{}\n", r#"{"payload":{"type":"token_count","info":null}}"#),
        )
        .unwrap();
        assert_eq!(last("t-1"), Some((9, Some(4), Some(500))));
        let old = r#"{"payload":{"type":"token_count","info":{"total_token_usage":{},"model_context_window":0}}}"#;
        files::append(&file, format!("{old}\n")).unwrap();
        assert_eq!(last("t-1"), Some((0, None, None)), "by a version that says less");

        let other = temp.path().join("other.jsonl");
        files::write(&other, format!("{}\n", count(1_000))).unwrap();
        files::symlink(&other, &day.join("rollout-x-t-2.jsonl")).unwrap();
        assert_eq!(Rollout::default().last_count(temp.path(), "t-2"), None);
    }
}
