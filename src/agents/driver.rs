//! The driver: starts an agent, follows it, judges its answer, asks for repairs, adopts runs of an
//! earlier team. All I/O of this room is here; what an agent's words mean is its codec's business.
//!
//! Each turn has a folder of its own in the run folder (`turn-0`, then a repair in `turn-1`, `turn-2`)
//! with its supervisor's files, so that a restart can tell how far the run had come.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agents::codec::Event;
use crate::agents::contract::ContractFns;
use crate::agents::prompt;
use crate::agents::rehearsal;
use crate::agents::run::{Agent, AgentOutcome, RunError, RunSpec};
use crate::agents::turn::{Failure, Turn};
use crate::domain::result::{ContractStatus, RoleResult};
use crate::domain::run::{FailKind, RunOutcome, Usage};
use crate::platform::files;
use crate::platform::redact::redact;
use crate::platform::supervise::{
    self, Adopted, Adoption, Exit, STDOUT_SPOOL, SpoolReader, SuperviseError, Supervised,
};

mod keep;
mod launch;

use keep::{minus, read_json, remember_usage, seen_usage, write_json};
use launch::{launch, probe};

/// Repair turns at most (DESIGN.md "Agents, in short").
const REPAIRS: u32 = 2;
/// Bytes of stderr that a failure may quote.
const STDERR_TAIL: usize = 8 << 10;

const SPEC: &str = "spec.json";
const PROMPT: &str = "prompt.md";
const RESULT: &str = "result.json";
const SCHEMA: &str = "schema.json";
const BASELINE: &str = "baseline.json";

/// How somebody outside follows a run and ends it.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Ends the run when cancelled.
    pub cancel: CancellationToken,
    /// Gets the events as they come; those for which there is no room are dropped.
    pub events: Option<mpsc::Sender<Event>>,
}

impl Watch {
    fn tell(&self, events: Vec<Event>) {
        if let Some(listener) = &self.events {
            for event in events {
                // A listener that does not keep up must not slow the agent down.
                let _ = listener.try_send(event);
            }
        }
    }
}

/// Runs agents. One for the whole team; it remembers the agents' versions.
#[derive(Debug, Default)]
pub struct Driver {
    versions: Mutex<BTreeMap<PathBuf, String>>,
}

/// A turn that is over.
struct Ended {
    number: u32,
    turn: Turn,
    exit: Exit,
}

/// What the driver knows about a run while it goes on.
struct Progress {
    session: Option<String>,
    baseline: Usage,
    usage_total: Option<Usage>,
    repairs: u32,
    dropped: u64,
    issues: Vec<String>,
}

impl Driver {
    /// Runs an agent to the end of its step. An agent's failure is an outcome, not an error.
    pub async fn run(&self, spec: &RunSpec, contract: &ContractFns, watch: &Watch) -> AgentOutcome {
        let label = self.label(spec).await;
        let outcome = match self.begin(spec, contract, watch).await {
            Ok((ended, cut)) => {
                let mut outcome = self.settle(spec, contract, watch, ended, label).await;
                outcome.prompt_cut = cut;
                outcome
            }
            Err(error) => failed(&error, label),
        };
        keep(spec, &outcome);
        outcome
    }

    /// Goes on with a run of an earlier team: waits for an agent that still works, or takes what it
    /// left, and then does what [`Driver::run`] would have done. `None` where there is no outcome to
    /// be had: the worktree has to be reset and the step begun anew.
    pub async fn adopt(
        &self,
        run_dir: &Path,
        contract: &ContractFns,
        watch: &Watch,
    ) -> Result<Option<AgentOutcome>, RunError> {
        if let Some(outcome) = read_json(run_dir, RESULT)? {
            return Ok(Some(outcome));
        }
        let Some(spec) = read_json::<RunSpec>(run_dir, SPEC)? else {
            return Ok(None);
        };
        let begun = (0..=REPAIRS).rev().find(|n| files::exists(&turn_dir(&spec, *n)));
        let Some(number) = begun else {
            return Ok(None);
        };
        let folder = turn_dir(&spec, number);
        let exit = match supervise::adopt(&folder)? {
            Adopted::Never => return Ok(None),
            Adopted::Finished(exit) => exit,
            Adopted::Running(adoption) => wait_for(&adoption, watch).await?,
        };
        let mut turn = Turn::new(spec.agent.codec());
        let mut spool = SpoolReader::new(folder.join(STDOUT_SPOOL));
        loop {
            let piece = spool.read()?;
            if piece.is_empty() {
                break;
            }
            watch.tell(turn.feed(&piece));
        }
        watch.tell(turn.finish());
        let label = self.label(&spec).await;
        let ended = Ended { number, turn, exit };
        let outcome = self.settle(&spec, contract, watch, ended, label).await;
        keep(&spec, &outcome);
        Ok(Some(outcome))
    }

    /// The first turn.
    async fn begin(
        &self,
        spec: &RunSpec,
        contract: &ContractFns,
        watch: &Watch,
    ) -> Result<(Ended, Vec<String>), RunError> {
        files::create_dir_all(&spec.run_dir)?;
        files::set_mode(&spec.run_dir, 0o700)?;
        let schema = (contract.schema)(spec.task.role, spec.task.step, spec.task.work.duty);
        let prompt = prompt::assemble(
            &spec.task,
            &spec.worktree.to_string_lossy(),
            &schema,
            spec.limits.prompt_bytes,
            &spec.templates,
        )?;
        write_json(&spec.run_dir, SCHEMA, &schema)?;
        files::write_private(&spec.run_dir.join(PROMPT), &prompt.text)?;
        // What the conversation had used before is noted with the run, so that settling it a second
        // time, after a kill, counts the same.
        let baseline = spec.resume.as_deref().map(|id| seen_usage(spec, id));
        write_json(&spec.run_dir, BASELINE, &baseline.unwrap_or_default())?;
        write_json(&spec.run_dir, SPEC, spec)?;
        let input = match &spec.agent {
            Agent::Codex(_) => prompt.text,
            Agent::Rehearsal(config) => rehearsal::brief(spec, config, &[])?,
        };
        let ended = self.turn(spec, 0, spec.resume.as_deref(), &input, watch).await?;
        Ok((ended, prompt.cut))
    }

    /// Judges a turn, and asks for repairs while the answer does not follow the contract.
    async fn settle(
        &self,
        spec: &RunSpec,
        contract: &ContractFns,
        watch: &Watch,
        mut ended: Ended,
        label: String,
    ) -> AgentOutcome {
        let mut progress = Progress {
            session: spec.resume.clone(),
            baseline: read_json(&spec.run_dir, BASELINE).ok().flatten().unwrap_or_default(),
            usage_total: None,
            repairs: ended.number,
            dropped: 0,
            issues: Vec::new(),
        };
        let outcome = loop {
            let number = ended.number;
            progress.repairs = number;
            match self.judge(spec, contract, ended, &mut progress) {
                Ok(result) => break RunOutcome::Result(Box::new(finish(spec, *result, &progress))),
                Err(Judged::Failed(failure)) => break failure.into_outcome(),
                Err(Judged::Broken(issues)) => {
                    progress.issues = issues;
                    if number == REPAIRS || progress.session.is_none() {
                        break contract_broken(&progress.issues);
                    }
                }
            }
            match self.repair(spec, contract, watch, number + 1, &progress).await {
                Ok(next) => ended = next,
                Err(error) => break failed(&error, label.clone()).outcome,
            }
        };
        let usage = progress.usage_total.map_or_else(Usage::default, |total| {
            if let Some(id) = &progress.session {
                remember_usage(spec, id, total);
            }
            minus(total, progress.baseline)
        });
        AgentOutcome {
            outcome,
            usage,
            session_id: progress.session,
            repairs: progress.repairs,
            dropped_bytes: progress.dropped,
            agent: label,
            prompt_cut: Vec::new(),
        }
    }

    fn judge(
        &self,
        spec: &RunSpec,
        contract: &ContractFns,
        ended: Ended,
        progress: &mut Progress,
    ) -> Result<Box<RoleResult>, Judged> {
        let Ended { number, turn, exit } = ended;
        progress.dropped += exit.dropped_stdout + exit.dropped_stderr;
        if turn.session.is_some() {
            progress.session.clone_from(&turn.session);
        }
        progress.usage_total = turn.usage_total.or(progress.usage_total);
        let stderr = supervise::stderr_tail(&turn_dir(spec, number), STDERR_TAIL);
        let answer = turn.conclude(&exit, &stderr).map_err(Judged::Failed)?;
        contract
            .judge(answer.as_deref(), spec.task.role, spec.task.step)
            .map(Box::new)
            .map_err(Judged::Broken)
    }

    async fn repair(
        &self,
        spec: &RunSpec,
        contract: &ContractFns,
        watch: &Watch,
        number: u32,
        progress: &Progress,
    ) -> Result<Ended, RunError> {
        tracing::info!(
            run = spec.run_id.as_str(),
            turn = number,
            issues = progress.issues.join(", "),
            "asking the agent to repair its answer"
        );
        let schema = (contract.schema)(spec.task.role, spec.task.step, spec.task.work.duty);
        let input = match &spec.agent {
            Agent::Codex(_) => prompt::repair(&progress.issues, &schema, &spec.templates)?,
            Agent::Rehearsal(config) => rehearsal::brief(spec, config, &progress.issues)?,
        };
        self.turn(spec, number, progress.session.as_deref(), &input, watch).await
    }

    /// One turn of the agent, followed to its end.
    async fn turn(
        &self,
        spec: &RunSpec,
        number: u32,
        resume: Option<&str>,
        input: &str,
        watch: &Watch,
    ) -> Result<Ended, RunError> {
        let folder = turn_dir(spec, number);
        files::create_dir_all(&folder)?;
        let stdin = folder.join("stdin");
        files::write_private(&stdin, input)?;
        let launch = launch(spec, number, resume, stdin)?;
        let mut supervised = Supervised::start(&launch, &folder)?;
        let mut turn = Turn::new(spec.agent.codec());
        let mut cancelled = false;
        loop {
            tokio::select! {
                biased;
                () = watch.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    // Reading goes on: what the agent still says belongs to the record.
                    supervised.interrupt().await;
                }
                piece = supervised.read() => match piece {
                    Ok(Some(piece)) => watch.tell(turn.feed(&piece)),
                    Ok(None) => break,
                    Err(error) => {
                        // It cannot be followed, so it is ended: whoever comes next gets its worktree.
                        supervised.kill().await;
                        supervised.wait().await?;
                        return Err(error.into());
                    }
                },
            }
        }
        watch.tell(turn.finish());
        let exit = supervised.wait().await?;
        Ok(Ended { number, turn, exit })
    }

    /// The agent's name and version for people.
    async fn label(&self, spec: &RunSpec) -> String {
        match &spec.agent {
            Agent::Rehearsal(_) => rehearsal::LABEL.to_owned(),
            Agent::Codex(config) => {
                let Ok(program) = config.program() else {
                    return "codex".to_owned();
                };
                let known = {
                    let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
                    versions.get(&program).cloned()
                };
                if let Some(version) = known {
                    return version;
                }
                let version = probe(spec, &program).await.unwrap_or_else(|| "codex".to_owned());
                let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
                versions.insert(program, version.clone());
                version
            }
        }
    }
}

/// Why an answer is not a result.
enum Judged {
    Failed(Failure),
    Broken(Vec<String>),
}

impl Failure {
    fn into_outcome(self) -> RunOutcome {
        RunOutcome::Failed { kind: self.kind, message: self.message }
    }
}

/// Ends whatever agent an earlier start left in a run folder, and waits until nothing of it is left.
///
/// # Errors
/// Where that cannot be found out: then it may still be there.
pub async fn end(run_dir: &Path) -> Result<(), RunError> {
    for number in 0..=REPAIRS {
        match supervise::adopt(&run_dir.join(turn_name(number)))? {
            Adopted::Running(adoption) => {
                adoption.kill()?;
                match adoption.wait().await {
                    // Without an outcome it is over all the same: its lock is free.
                    Ok(_) | Err(SuperviseError::Lost { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Adopted::Finished(_) | Adopted::Never => {}
        }
    }
    Ok(())
}

async fn wait_for(adoption: &Adoption, watch: &Watch) -> Result<Exit, RunError> {
    tokio::select! {
        exit = adoption.wait() => return Ok(exit?),
        () = watch.cancel.cancelled() => {}
    }
    adoption.interrupt()?;
    Ok(Exit { ended_by: supervise::EndedBy::Cancelled, ..adoption.wait().await? })
}

/// The result as the records keep it.
fn finish(spec: &RunSpec, mut result: RoleResult, progress: &Progress) -> RoleResult {
    result.request_id.clone_from(&spec.task.request_id);
    result.role = spec.task.role;
    if progress.repairs > 0 {
        result.contract_status = Some(ContractStatus::Repaired);
        result.contract_repair_attempted = true;
        result.contract_issues.clone_from(&progress.issues);
    }
    result
}

fn contract_broken(issues: &[String]) -> RunOutcome {
    RunOutcome::Failed {
        kind: FailKind::Contract,
        message: format!("its answer is no valid result: {}", issues.join(", ")),
    }
}

fn failed(error: &RunError, agent: String) -> AgentOutcome {
    AgentOutcome {
        outcome: RunOutcome::Failed {
            kind: match error {
                RunError::NotInstalled { .. } => FailKind::Auth,
                RunError::Prompt(_) => FailKind::BadRequest,
                RunError::File(_)
                | RunError::Supervise(_)
                | RunError::Json { .. }
                | RunError::OwnBinary(_) => FailKind::Crash,
            },
            message: redact(&error.to_string()).into_owned(),
        },
        usage: Usage::default(),
        session_id: None,
        repairs: 0,
        dropped_bytes: 0,
        agent,
        prompt_cut: Vec::new(),
    }
}

fn turn_dir(spec: &RunSpec, number: u32) -> PathBuf {
    spec.run_dir.join(turn_name(number))
}

fn turn_name(number: u32) -> String {
    format!("turn-{number}")
}

/// Keeps the outcome for a team that is killed before it has applied it.
fn keep(spec: &RunSpec, outcome: &AgentOutcome) {
    if let Err(error) = write_json(&spec.run_dir, RESULT, outcome) {
        tracing::warn!(run = spec.run_id.as_str(), %error, "cannot keep the result");
    }
}
