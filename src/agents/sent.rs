//! What was sent to agents, as it lies in the folder of a run: for people who want to know what their agents
//! were told, word for word.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::agents::driver::{TurnPurpose, read_json, turn_name};
use crate::agents::error::RunError;
use crate::agents::prompt::Section;
use crate::agents::run::{Agent, RunSpec};
use crate::agents::run_folder::{PROMPT, SECTIONS, TOLD, TURN_PROMPT};
use crate::domain::lifecycle::StepName;
use crate::domain::role::Role;
use crate::platform::files;

/// The folder of the turn in which an earlier conversation hands over.
pub(super) const HAND_OVER: &str = "handover";

/// What stands beside a prompt: `prompt.json` in the folder of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptRecord {
    /// Who was told.
    pub role: Role,
    /// For which step.
    pub step: Option<StepName>,
    /// About which request.
    pub request_id: String,
    /// Which attempt that was.
    pub attempt: u32,
    /// The kind of agent: `codex`, `claude`, `acp`, `rehearsal`.
    pub agent: String,
    /// The conversation that it went on with.
    pub resumes: Option<String>,
    /// What the agent got as instructions of its own, beside the prompt; blank where it takes none.
    pub instructions: String,
    /// Bytes that the prompt might have had.
    pub budget: usize,
    /// Its sections in order.
    pub sections: Vec<Section>,
}

impl PromptRecord {
    pub(super) fn new(spec: &RunSpec, sections: Vec<Section>) -> PromptRecord {
        let (agent, instructed) = match &spec.agent {
            Agent::Codex(_) => ("codex", true),
            Agent::Claude(_) => ("claude", true),
            Agent::Acp(_) => ("acp", false),
            Agent::Rehearsal(_) => ("rehearsal", false),
        };
        let charter = spec.task.charter.clone();
        PromptRecord {
            role: spec.task.role,
            step: spec.task.step,
            request_id: spec.task.request_id.clone(),
            attempt: spec.task.attempt,
            agent: agent.to_owned(),
            resumes: spec.resume.clone(),
            instructions: if instructed { charter } else { String::new() },
            budget: spec.limits.prompt_bytes,
            sections,
        }
    }
}

/// Why something was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// An earlier conversation was asked to hand over.
    HandOver,
    /// It is the prompt of the run.
    Prompt,
    /// The answer did not follow the contract.
    Repair,
    /// Somebody said something, and the agent was interrupted for it.
    Words,
    /// Somebody said something, and the agent took it while it worked.
    ToldAtWork,
}

/// One text that an agent got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentText {
    /// The turn of the run; none before the first.
    pub turn: Option<u32>,
    /// Why.
    pub why: Why,
    /// The words.
    pub text: String,
}

/// Everything that the agent of a run was told, in order; `None` where the folder holds no prompt.
///
/// # Errors
/// Where a file of the run cannot be read.
pub fn sent(run_dir: &Path) -> Result<Option<(PromptRecord, Vec<SentText>)>, RunError> {
    let Some(record) = read_json::<PromptRecord>(run_dir, SECTIONS)? else { return Ok(None) };
    let mut all = Vec::new();
    let mut add = |turn, why, text: Option<String>| {
        all.extend(text.map(|text| SentText { turn, why, text }));
    };
    let read = |path: &Path| files::read_text_if_present(path);
    add(None, Why::HandOver, read(&run_dir.join(HAND_OVER).join(TURN_PROMPT))?);
    add(Some(0), Why::Prompt, read(&run_dir.join(PROMPT))?);
    for number in 0.. {
        let folder = run_dir.join(turn_name(number));
        if !files::exists(&folder) {
            break;
        }
        if number > 0 {
            let purpose = TurnPurpose::of(&folder, number)?;
            let why = if purpose.repairing { Why::Repair } else { Why::Words };
            add(Some(number), why, read(&folder.join(TURN_PROMPT))?);
        }
        let told = read(&folder.join(TOLD))?.unwrap_or_default();
        // The last line is torn where the team was killed while it wrote it.
        for text in told.lines().filter_map(|line| serde_json::from_str::<String>(line).ok()) {
            add(Some(number), Why::ToldAtWork, Some(text));
        }
    }
    Ok(Some((record, all)))
}
