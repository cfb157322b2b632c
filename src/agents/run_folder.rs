//! The files of a run's folder, and of a turn's folder in it.

pub(super) const SPEC: &str = "spec.json";
pub(super) const PROMPT: &str = "prompt.md";
/// In a turn's folder: what it was begun with, but for the first.
pub(super) const TURN_PROMPT: &str = "prompt.md";
/// In a turn's folder: what it was told on the way, a JSON string a line.
pub(super) const TOLD: &str = "told.jsonl";
pub(super) const SECTIONS: &str = "prompt.json";
/// In a turn's folder: what the agent reads.
pub(super) const STDIN: &str = "stdin";
pub(super) const RESULT: &str = "result.json";
pub(super) const SCHEMA: &str = "schema.json";
pub(super) const BASELINE: &str = "baseline.json";
/// In a turn's folder: what it was interrupted for, the team's own hint that it was interrupted for, and why it
/// was ended as stuck.
pub(super) const WORDS: &str = "words.json";
pub(super) const HINT: &str = "hint.json";
pub(super) const STUCK: &str = "stuck.json";
