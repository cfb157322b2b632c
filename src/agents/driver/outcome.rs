//! What a run comes to, as the records keep it.

use std::path::Path;

use super::again::read_again;
use super::folder::{input_bytes, interrupted_for, turn_dir, turns};
use super::follow::FinishedTurn;
use super::hand_over::{self, Weight};
use super::keep::{TurnPurpose, read_json, remember_usage};
use super::usage_count::UsageCount;
use crate::agents::answer;
use crate::agents::error::RunError;
use crate::agents::run::{Agent, AgentOutcome, RunSpec};
use crate::agents::run_folder::{BASELINE, SPEC};
use crate::agents::turn::{Failure, Turn};
use crate::domain::ids::MessageId;
use crate::domain::result::{ContractStatus, RoleResult};
use crate::domain::run::{BadAnswer, FailKind, RunOutcome};
use crate::domain::usage::Usage;
use crate::platform::redact::{self, redact};

/// What the driver knows about a run while it goes on.
pub(super) struct Progress {
    pub(super) session: Option<String>,
    pub(super) usage: UsageCount,
    pub(super) repairs: u32,
    pub(super) dropped: u64,
    pub(super) issues: Vec<String>,
    pub(super) agent: Option<String>,
    pub(super) heard: Vec<MessageId>,
    pub(super) weight: Weight,
}

impl Progress {
    pub(super) fn begun(spec: &RunSpec) -> Progress {
        Progress {
            session: spec.resume.clone(),
            usage: UsageCount::since(
                read_json(&spec.run_dir, BASELINE).ok().flatten().unwrap_or_default(),
                hand_over::done(spec).map(|(_, used)| used).unwrap_or_default(),
            ),
            repairs: 0,
            dropped: 0,
            issues: Vec::new(),
            agent: None,
            heard: Vec::new(),
            weight: Weight::default(),
        }
    }

    /// What came of the turns before this one, in an earlier team. Blocks.
    pub(super) fn of_turns_before(spec: &RunSpec, number: u32) -> Result<Progress, RunError> {
        let mut progress = Progress::begun(spec);
        for earlier in 0..number {
            let folder = turn_dir(spec, earlier);
            let purpose = TurnPurpose::of(&folder, earlier)?;
            let turn = read_again(spec, folder, purpose)?;
            progress.add(spec, earlier, &turn);
        }
        progress.heard.extend(interrupted_for(spec, number));
        Ok(progress)
    }

    /// Takes in a turn that is over.
    pub(super) fn take_in(&mut self, spec: &RunSpec, ended: &FinishedTurn) {
        self.dropped += ended.exit.dropped();
        self.add(spec, ended.number, &ended.turn);
    }

    /// Takes in what a turn came to.
    pub(super) fn add(&mut self, spec: &RunSpec, number: u32, turn: &Turn) {
        if turn.session.is_some() {
            self.session.clone_from(&turn.session);
        }
        self.usage.add(spec, turn);
        self.heard.extend(&turn.heard);
        self.weight.add(turn, input_bytes(spec, number));
        if turn.agent.is_some() {
            self.agent.clone_from(&turn.agent);
        }
    }
}

/// The conversation of a run that was cut off and that nobody works on any more, for the same agent to go on with; what it
/// has used until then is noted, and none of the next one's. Only of agents that take a new one where it is lost. Blocks.
#[must_use]
pub fn conversation(run_dir: &Path, agent: &Agent) -> Option<String> {
    let spec =
        read_json::<RunSpec>(run_dir, SPEC).ok().flatten().filter(|it| it.agent == *agent)?;
    match &spec.agent {
        Agent::Acp(_) => {}
        Agent::Codex(_) | Agent::Claude(_) | Agent::Rehearsal(_) => return None,
    }
    let Progress { session, usage, .. } = Progress::of_turns_before(&spec, turns(run_dir)).ok()?;
    let session = session?;
    if let Some(total) = usage.of_conversation() {
        remember_usage(&spec, &session, total);
    }
    Some(session)
}

impl Failure {
    pub(super) fn into_outcome(self) -> RunOutcome {
        let Failure { kind, message, until, answer } = self;
        RunOutcome::Failed { kind, message, until, answer }
    }
}

/// The result as the records keep it.
pub(super) fn finish(spec: &RunSpec, result: RoleResult, progress: &Progress) -> RoleResult {
    let mut result = clean(result);
    result.request_id.clone_from(&spec.task.request_id);
    result.role = spec.task.role;
    if progress.repairs > 0 {
        result.contract_status = Some(ContractStatus::Repaired);
        result.contract_repair_attempted = true;
        result.contract_issues.clone_from(&progress.issues);
    }
    result
}

/// Without what an agent wrote down and should not know: records, documents and other agents get it from
/// here. What cannot be taken apart would not have been read either.
fn clean(result: RoleResult) -> RoleResult {
    let value = serde_json::to_value(&result).map(redact::value);
    value.and_then(serde_json::from_value).unwrap_or(result)
}

pub(super) fn contract_broken(issues: &[String], answer: BadAnswer) -> RunOutcome {
    RunOutcome::Failed {
        kind: FailKind::Contract,
        message: answer::describe(answer.fault, issues),
        until: None,
        answer: Some(answer),
    }
}

pub(super) fn failed(error: &RunError, agent: String) -> AgentOutcome {
    AgentOutcome {
        outcome: RunOutcome::failed(
            match error {
                RunError::NotInstalled { .. } => FailKind::Auth,
                RunError::NoSandbox { .. } => FailKind::NoSandbox,
                RunError::Prompt(_) => FailKind::BadRequest,
                RunError::File(_)
                | RunError::Supervise(_)
                | RunError::Json { .. }
                | RunError::Cut(_)
                | RunError::OwnBinary(_) => FailKind::Crash,
            },
            redact(&error.to_string()).into_owned(),
        ),
        usage: Usage::default(),
        session_id: None,
        repairs: 0,
        dropped_bytes: 0,
        agent,
        prompt_cut: Vec::new(),
        heard: Vec::new(),
        fill: None,
        handed_over: None,
    }
}
