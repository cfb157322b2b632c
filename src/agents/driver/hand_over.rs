//! When a conversation is nearly full: how full it is, and how it hands over to a fresh one.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::folder::{STDERR_TAIL, end_turn};
use super::follow::Start;
use super::keep::{TurnPurpose, forget_submitted, read_json, read_kept, write_json, write_kept};
use super::memory::Driver;
use super::usage_count::UsageCount;
use super::watch::Watch;
use crate::agents::error::RunError;
use crate::agents::prompt;
use crate::agents::run::{Agent, RunSpec};
use crate::agents::run_folder::SCHEMA;
use crate::agents::sent::HAND_OVER;
use crate::agents::turn::Turn;
use crate::domain::conversation::{ContextLevel, Fill, FillUnit, HandedOver, window_of};
use crate::domain::usage::Usage;
use crate::platform::files;
use crate::platform::supervise;
use crate::platform::tasks;

/// Bytes of a summary.
const SUMMARY: usize = 8 << 10;
/// Bytes that a token takes, roughly.
const TOKEN: u64 = 4;

/// In the run's folder: what came of a hand-over.
const FILE: &str = "handover.json";
/// In the session's folder: how full its conversation was seen last.
const FILL: &str = "context.json";

/// What came of a hand-over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct HandOverResult {
    from: String,
    summary: String,
    usage: Usage,
}

/// What is known of a run's hand-over, and what it spent.
pub(super) fn done(spec: &RunSpec) -> Option<(HandedOver, Usage)> {
    let done: HandOverResult = read_json(&spec.run_dir, FILE).ok().flatten()?;
    let by_itself = !done.summary.is_empty();
    Some((HandedOver { from: done.from, by_itself }, done.usage))
}

/// Ends whatever a hand-over of an earlier start left.
pub(super) async fn end(run_dir: &std::path::Path) -> Result<(), RunError> {
    end_turn(&run_dir.join(HAND_OVER)).await
}

impl Driver {
    /// The run with a fresh conversation, where the earlier one is to be handed over: it is asked for a
    /// summary in a last turn that reads nothing and writes nothing. What it does not say, the records
    /// have to.
    pub(super) async fn handed_over(
        &self,
        spec: &RunSpec,
        watch: &Watch,
    ) -> Result<Option<RunSpec>, RunError> {
        let (Some(left), Some(earlier)) = (&spec.task.work.handover, &spec.resume) else {
            return Ok(None);
        };
        let mut done = HandOverResult { from: earlier.clone(), ..HandOverResult::default() };
        let asks = match &spec.agent {
            Agent::Codex(_) | Agent::Claude(_) | Agent::Acp(_) => left.can_answer,
            Agent::Rehearsal(_) => false,
        };
        if asks {
            match self.summary(spec, earlier, watch, &mut done.usage).await {
                Ok(summary) => done.summary = summary,
                // It may be gone, or full after all.
                Err(why) => {
                    tracing::info!(
                        run = spec.run_id.as_str(),
                        why,
                        "no summary by the agent itself"
                    );
                }
            }
        }
        files::create_dir_all(&spec.run_dir)?;
        // What the old conversation handed in as a result is none of the fresh one.
        forget_submitted(&spec.run_dir)?;
        write_json(&spec.run_dir, FILE, &done)?;
        let mut fresh = spec.clone();
        fresh.resume = None;
        if let Some(left) = &mut fresh.task.work.handover {
            left.summary = done.summary;
        }
        Ok(Some(fresh))
    }

    /// The last turn of a conversation: what it says for the one that follows.
    async fn summary(
        &self,
        spec: &RunSpec,
        earlier: &str,
        watch: &Watch,
        usage: &mut Usage,
    ) -> Result<String, String> {
        tracing::info!(run = spec.run_id.as_str(), "the conversation is asked to hand over");
        let schema = json!({
            "type": "object", "properties": {"summary": {"type": "string"}},
            "required": ["summary"], "additionalProperties": false,
        });
        let before = {
            let (spec, earlier) = (spec.clone(), earlier.to_owned());
            tasks::blocking(move || UsageCount::before(&spec, &earlier)).await
        };
        let before = before.map_err(|error| error.to_string())?;
        let mut count = UsageCount::since(before, Usage::default());
        let turn = async {
            files::create_dir_all(&spec.run_dir)?;
            files::set_mode(&spec.run_dir, 0o700)?;
            write_json(&spec.run_dir, SCHEMA, &schema)?;
            let input = prompt::hand_over(&spec.templates)?;
            let purpose = TurnPurpose { repairs: 0, repairing: true, hinted: false };
            let start = Start {
                number: 0,
                purpose,
                resume: Some(earlier),
                input: &input,
                hands_over: true,
                usage: count,
            };
            self.turn(spec, &start, &schema, watch).await
        };
        let ended = turn.await.map_err(|error: RunError| error.to_string())?;
        let folder = spec.run_dir.join(HAND_OVER);
        count.add(spec, &ended.turn);
        *usage = count.used();
        let stderr = supervise::stderr_tail(&folder, STDERR_TAIL);
        let said = ended.turn.conclude(&ended.exit, &stderr).map_err(|failure| failure.message)?;
        let said = said.text.unwrap_or_default();
        let structured = serde_json::from_str::<Value>(&said).ok();
        let summary = structured.as_ref().and_then(|it| it.get("summary")).and_then(Value::as_str);
        let summary = summary.unwrap_or(&said).trim();
        let end = (0..=summary.len().min(SUMMARY)).rev().find(|at| summary.is_char_boundary(*at));
        match summary.get(..end.unwrap_or(0)).unwrap_or_default() {
            "" => Err("it said nothing".to_owned()),
            summary => Ok(summary.to_owned()),
        }
    }
}

/// How full the conversations of a session's folder were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ContextUse {
    session: String,
    used: u64,
}

/// What a turn adds to what is known of a conversation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weight {
    /// As the agent counts, the last time.
    context: (Option<u64>, Option<u64>),
    /// Bytes in and out.
    bytes: u64,
}

impl Weight {
    pub(super) fn add(&mut self, turn: &Turn, input: u64) {
        self.context.0 = turn.context.0.or(self.context.0);
        self.context.1 = turn.context.1.or(self.context.1);
        self.bytes += turn.bytes + input;
    }

    /// How full the conversation is after a run that took these tokens.
    pub(super) fn fill(self, spec: &RunSpec, session: Option<&str>, spent: Usage) -> Option<Fill> {
        let model = match &spec.agent {
            Agent::Codex(config) => config.model.as_str(),
            Agent::Claude(config) => config.model.as_str(),
            Agent::Acp(config) => config.model.as_deref().unwrap_or_default(),
            // It has no model.
            Agent::Rehearsal(_) => return None,
        };
        let size = spec.limits.context_window.or(self.context.1);
        let size = size.unwrap_or_else(|| window_of(model));
        let (used, measured) = match self.context.0 {
            Some(used) => (used, FillUnit::Tokens),
            None => {
                let seen: ContextUse = read_kept(spec, FILL).unwrap_or_default();
                let before = if session == Some(seen.session.as_str()) { seen.used } else { 0 };
                // The last request was no larger than all of them together.
                let all = spent.input_tokens + spent.output_tokens;
                let guess = before + self.bytes / TOKEN;
                (if all > 0 { guess.min(all) } else { guess }, FillUnit::Bytes)
            }
        };
        let fill = Fill { used, size, measured };
        if let Some(session) = session {
            let seen = ContextUse { session: session.to_owned(), used };
            if let Err(error) = write_kept(spec, FILL, &seen) {
                tracing::warn!(%error, "how full the conversation is will be guessed too low");
            }
        }
        if ContextLevel::after(Some(fill), false) > ContextLevel::Plenty {
            let (run, left) = (spec.run_id.as_str(), fill.left());
            tracing::warn!(
                run,
                left,
                used,
                size,
                ?measured,
                "little room is left in a conversation"
            );
        }
        Some(fill)
    }
}
