//! The driver: starts an agent, follows it, judges its answer, asks for repairs, adopts runs of an
//! earlier team. All I/O of this room is here; what an agent's words mean is its codec's business.
//!
//! Each turn has a folder of its own in the run folder (`turn-0`, then for every repair, and for words that
//! the agent was interrupted for, `turn-1` and so on) with its supervisor's files, so that a restart can tell
//! how far the run had come.

use std::path::Path;
use std::sync::Arc;
use std::sync::PoisonError;

use serde_json::Value;

use crate::agents::contract::{ContractFns, SchemaOf, TurnAnswer};
use crate::agents::error::RunError;
use crate::agents::prompt::{self, PromptInput};
use crate::agents::rehearsal::{self, Brief, RehearsalSettings};
use crate::agents::run::{Agent, AgentOutcome, RunSpec};
use crate::agents::run_folder::{BASELINE, PROMPT, RESULT, SCHEMA, SECTIONS, SPEC};
use crate::agents::sandbox::WriteAccess;
use crate::agents::sent::PromptRecord;
use crate::agents::turn::{Answer, Failure};
use crate::agents::{Section, answer};
use crate::domain::result::RoleResult;
use crate::domain::run::{BadAnswer, FailKind, RunOutcome};
use crate::platform::files;
use crate::platform::supervise::{self, EndedBy, Exit, RunFolderState};
use crate::platform::tasks;

mod again;
mod folder;
mod follow;
mod hand_over;
mod keep;
mod launch;
mod memory;
mod outcome;
mod rollout;
mod usage_count;
mod watch;

use again::{EarlierTurn, read_again};
pub(super) use folder::turn_name;
use folder::{STDERR_TAIL, end_turn, keep, turn_dir, turns};
use follow::{CutOff, FinishedTurn, Start};
pub(super) use keep::{TurnPurpose, read_json};
use keep::{forget_submitted, remember_usage, submitted, write_json};
use launch::probe;
pub use memory::Driver;
pub use outcome::conversation;
use outcome::{Progress, contract_broken, failed, finish};
use usage_count::UsageCount;
pub use watch::Watch;

pub use keep::submit;

/// Repair turns at most (DESIGN.md "Agents, in short").
const REPAIRS: u32 = 2;

impl Driver {
    /// Runs an agent to the end of its step. An agent's failure is an outcome, not an error.
    pub async fn run(&self, spec: &RunSpec, contract: &ContractFns, watch: &Watch) -> AgentOutcome {
        let label = self.label(spec).await;
        let fresh = match self.handed_over(spec, watch).await {
            Ok(fresh) => fresh,
            Err(error) => return failed(&error, label),
        };
        let spec = fresh.as_ref().unwrap_or(spec);
        let outcome = match self.begin(spec, contract, watch).await {
            Ok(ended) => {
                let mut progress = Progress::begun(spec);
                progress.take_in(spec, &ended);
                self.settle(spec, contract, watch, ended, progress, label).await
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
        hand_over::end(run_dir).await?;
        let Some(spec) = read_json::<RunSpec>(run_dir, SPEC)? else {
            return Ok(None);
        };
        let Some(number) = turns(run_dir).checked_sub(1) else {
            return Ok(None);
        };
        let folder = turn_dir(&spec, number);
        let state = supervise::adopt(&folder)?;
        let purpose = TurnPurpose::of(&folder, number)?;
        if matches!(state, RunFolderState::Never) && !purpose.repairing {
            return Ok(None);
        }
        let spec = Arc::new(spec);
        let (mut progress, turn) = {
            // It may be much.
            let (spec, folder) = (Arc::clone(&spec), folder.clone());
            tasks::blocking(move || {
                let earlier = Progress::of_turns_before(&spec, number)?;
                Ok::<_, RunError>((earlier, EarlierTurn::open(spec, folder, purpose)?))
            })
            .await??
        };
        let (turn, exit) = match state {
            RunFolderState::Never => (turn, None),
            RunFolderState::Finished(exit) => (turn, Some(exit)),
            RunFolderState::Running(adoption) => {
                let (turn, exit) = turn.until_its_end(&adoption, progress.usage, watch).await?;
                (turn, Some(exit))
            }
        };
        let turn = {
            let watch = watch.clone();
            tasks::blocking(move || turn.finish(&watch)).await??
        };
        progress.dropped += exit.as_ref().map_or(0, Exit::dropped);
        progress.add(&spec, number, &turn);
        // It could not go on without somebody to talk to. What it had handed in counts, unless it was changing something
        // again.
        let has_result = !turn.is_at_work() && submitted(run_dir).is_some();
        let ended = match exit.filter(|exit| has_result || !follow::is_cut_off(&turn, exit)) {
            Some(exit) => Some(FinishedTurn::again(&folder, (number, purpose), turn, exit)?),
            None => {
                let spec = Arc::clone(&spec);
                tasks::blocking(move || repaired_turn(&spec, (number, purpose))).await??
            }
        };
        let Some(ended) = ended else { return Ok(None) };
        let label = self.label(&spec).await;
        let outcome = self.settle(&spec, contract, watch, ended, progress, label).await;
        keep(&spec, &outcome);
        Ok(Some(outcome))
    }

    /// The first turn.
    async fn begin(
        &self,
        spec: &RunSpec,
        contract: &ContractFns,
        watch: &Watch,
    ) -> Result<FinishedTurn, RunError> {
        let (own, schema_of) = (spec.clone(), contract.schema);
        let (input, schema) = tasks::blocking(move || lay_out(&own, schema_of)).await??;
        let resume = spec.resume.as_deref();
        let start = Start {
            number: 0,
            purpose: TurnPurpose::default(),
            resume,
            input: &input,
            hands_over: false,
            usage: Progress::begun(spec).usage,
        };
        self.turn(spec, &start, &schema, watch).await
    }

    /// Judges a turn that `progress` knows of, and asks for repairs while the answer does not follow the contract.
    async fn settle(
        &self,
        spec: &RunSpec,
        contract: &ContractFns,
        watch: &Watch,
        mut ended: FinishedTurn,
        mut progress: Progress,
        label: String,
    ) -> AgentOutcome {
        let outcome = loop {
            // Not the one after the judged one, where a repair of that was cut off before.
            let (number, purpose) = (turns(&spec.run_dir), ended.purpose);
            progress.repairs = purpose.repairs;
            let cut_off = ended.to_go_on_with();
            let judged = self.judge(spec, contract, ended);
            let next = match (judged, cut_off) {
                // It was interrupted for words, and goes on with them.
                (_, Some(cut)) if progress.session.is_some() && !watch.cancel.is_cancelled() => {
                    self.go_on(spec, contract, watch, (number, purpose), &cut, &mut progress).await
                }
                (Ok(result), _) => {
                    break RunOutcome::Result(Arc::new(finish(spec, *result, &progress)));
                }
                (Err(RejectedAnswer::Failed(failure)), _) => break failure.into_outcome(),
                (Err(RejectedAnswer::Broken(issues, answer)), _) => {
                    progress.issues = issues;
                    if purpose.repairs == REPAIRS || progress.session.is_none() {
                        break contract_broken(&progress.issues, answer);
                    }
                    let purpose =
                        TurnPurpose { repairs: purpose.repairs + 1, repairing: true, ..purpose };
                    self.repair(spec, contract, watch, (number, purpose), &progress).await
                }
            };
            match next {
                Ok(next) => {
                    progress.take_in(spec, &next);
                    ended = next;
                }
                Err(error) => break failed(&error, label.clone()).outcome,
            }
        };
        if let (Some(id), Some(total)) = (&progress.session, progress.usage.of_conversation()) {
            remember_usage(spec, id, total);
        }
        let handed_over = hand_over::done(spec).map(|(handed_over, _)| handed_over);
        AgentOutcome {
            outcome,
            fill: progress.weight.fill(spec, progress.session.as_deref(), progress.usage.used()),
            handed_over,
            usage: progress.usage.in_all(),
            session_id: progress.session,
            repairs: progress.repairs,
            dropped_bytes: progress.dropped,
            agent: progress.agent.unwrap_or(label),
            prompt_cut: prompt_cut(spec),
            heard: progress.heard,
        }
    }

    fn judge(
        &self,
        spec: &RunSpec,
        contract: &ContractFns,
        ended: FinishedTurn,
    ) -> Result<Box<RoleResult>, RejectedAnswer> {
        let FinishedTurn { number, turn, exit, stuck, .. } = ended;
        let submitted = submitted(&spec.run_dir);
        let is_over_budget = stuck.as_ref().is_some_and(|it| it.kind == FailKind::Budget);
        let is_cut_off = follow::is_cut_off(&turn, &exit);
        // A result that was taken counts, whatever came of the agent's last words. Not where it was changing something again,
        // or was told something in this turn: that may have come after the result.
        let is_handed_in = submitted.is_some() && !turn.is_at_work() && turn.heard.is_empty();
        // What was done when the budget was used up is done.
        let is_done = is_over_budget && (turn.is_done() || submitted.is_some());
        if let Some(stuck) = stuck.filter(|_| !is_done) {
            return Err(RejectedAnswer::Failed(stuck));
        }
        let exit = if is_done { Exit { ended_by: EndedBy::Exit, ..exit } } else { exit };
        let stderr = supervise::stderr_tail(&turn_dir(spec, number), STDERR_TAIL);
        let answer = match turn.conclude(&exit, &stderr) {
            Ok(answer) => answer,
            Err(failure)
                if is_handed_in && failure.kind != FailKind::Cancelled
                    || submitted.is_some()
                        && (failure.kind.is_of_the_service() || is_over_budget || is_cut_off) =>
            {
                Answer::default()
            }
            Err(failure) => return Err(RejectedAnswer::Failed(failure)),
        };
        let answered = TurnAnswer {
            text: answer.text.as_deref(),
            // These two are held to the schema by their own CLI.
            by_schema: match &spec.agent {
                Agent::Codex(_) | Agent::Claude(_) => true,
                Agent::Acp(_) | Agent::Rehearsal(_) => false,
            },
            submitted,
            request: &spec.task.request_id,
            criteria: &spec.task.criteria,
        };
        contract.judge(&answered, spec.task.role, spec.task.step).map(Box::new).map_err(|issues| {
            let has_object = answered.text.is_some_and(|text| (contract.extract)(text).is_some());
            let too_long = answer.too_long.as_deref();
            RejectedAnswer::Broken(issues, answer::of(answered.text, too_long, has_object))
        })
    }

    /// Goes on with words that the agent was interrupted for.
    async fn go_on(
        &self,
        spec: &RunSpec,
        contract: &ContractFns,
        watch: &Watch,
        (number, purpose): (u32, TurnPurpose),
        cut: &CutOff,
        progress: &mut Progress,
    ) -> Result<FinishedTurn, RunError> {
        tracing::info!(
            run = spec.run_id.as_str(),
            turn = number,
            "the agent is told what was said"
        );
        forget_submitted(&spec.run_dir)?;
        let schema = (contract.schema)(spec.task.role, spec.task.step, spec.task.work.duty);
        let input = cut.input(spec)?;
        let resume = progress.session.as_deref();
        let usage = progress.usage;
        let start = Start { number, purpose, resume, input: &input, hands_over: false, usage };
        let ended = self.turn(spec, &start, &schema, watch).await?;
        if ended.turn.session.is_some() {
            progress.heard.extend(cut.words.iter().map(|words| words.id));
        }
        Ok(ended)
    }

    async fn repair(
        &self,
        spec: &RunSpec,
        contract: &ContractFns,
        watch: &Watch,
        (number, purpose): (u32, TurnPurpose),
        progress: &Progress,
    ) -> Result<FinishedTurn, RunError> {
        tracing::info!(
            run = spec.run_id.as_str(),
            turn = number,
            issues = progress.issues.join(", "),
            "asking the agent to repair its answer"
        );
        let schema = (contract.schema)(spec.task.role, spec.task.step, spec.task.work.duty);
        let input = match &spec.agent {
            Agent::Codex(_) | Agent::Claude(_) | Agent::Acp(_) => {
                prompt::repair(&progress.issues, &schema, submits(spec), &spec.templates)?
            }
            Agent::Rehearsal(config) => brief(spec, config, &progress.issues)?,
        };
        let resume = progress.session.as_deref();
        let usage = progress.usage;
        let start = Start { number, purpose, resume, input: &input, hands_over: false, usage };
        self.turn(spec, &start, &schema, watch).await
    }

    /// The agent's name and version for people.
    async fn label(&self, spec: &RunSpec) -> String {
        match &spec.agent {
            Agent::Rehearsal(_) => rehearsal::LABEL.to_owned(),
            // These two say in their stream who they are.
            Agent::Claude(_) => "claude".to_owned(),
            Agent::Acp(config) => config.name(),
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

/// Ends whatever agent an earlier start left in a run folder, and waits until nothing of it is left.
///
/// # Errors
/// Where that cannot be found out: then it may still be there.
pub async fn end(run_dir: &Path) -> Result<(), RunError> {
    hand_over::end(run_dir).await?;
    for number in 0..turns(run_dir) {
        end_turn(&run_dir.join(turn_name(number))).await?;
    }
    Ok(())
}

/// The turn that ended last of an earlier team, where whatever was begun after it only was to say its answer again and
/// was cut off. Blocks.
fn repaired_turn(
    spec: &RunSpec,
    (mut number, mut purpose): (u32, TurnPurpose),
) -> Result<Option<FinishedTurn>, RunError> {
    while let Some(before) = number.checked_sub(1).filter(|_| purpose.repairing) {
        let folder = turn_dir(spec, before);
        (number, purpose) = (before, TurnPurpose::of(&folder, before)?);
        if let RunFolderState::Finished(exit) = supervise::adopt(&folder)? {
            let turn = read_again(spec, folder.clone(), purpose)?;
            if !follow::is_cut_off(&turn, &exit) {
                return FinishedTurn::again(&folder, (number, purpose), turn, exit).map(Some);
            }
        }
    }
    Ok(None)
}

/// The sections of the run's prompt that were cut.
fn prompt_cut(spec: &RunSpec) -> Vec<String> {
    let record = read_json::<PromptRecord>(&spec.run_dir, SECTIONS).ok().flatten();
    let sections = record.into_iter().flat_map(|record| record.sections);
    sections.filter(Section::is_cut).map(|section| section.name).collect()
}

/// Puts the run's folder in order: prompt, schema and what they were made of, durable. Returns what the agent reads
/// first, and the schema. Blocks.
fn lay_out(spec: &RunSpec, schema_of: SchemaOf) -> Result<(String, Value), RunError> {
    files::create_dir_all(&spec.run_dir)?;
    files::set_mode(&spec.run_dir, 0o700)?;
    let schema = schema_of(spec.task.role, spec.task.step, spec.task.work.duty);
    let prompt = prompt::assemble(&PromptInput {
        task: &spec.task,
        worktree: &spec.worktree_seen().to_string_lossy(),
        schema: &schema,
        budget: spec.limits.prompt_bytes,
        templates: &spec.templates,
        submit: submits(spec),
    })?;
    write_json(&spec.run_dir, SCHEMA, &schema)?;
    write_json(&spec.run_dir, SECTIONS, &PromptRecord::new(spec, prompt.sections))?;
    files::write_private(&spec.run_dir.join(PROMPT), &prompt.text)?;
    // What the conversation had used before is noted with the run, so that settling it a second time, after a
    // kill, counts the same.
    let baseline = spec.resume.as_deref().map(|id| UsageCount::before(spec, id));
    write_json(&spec.run_dir, BASELINE, &baseline.unwrap_or_default())?;
    write_json(&spec.run_dir, SPEC, spec)?;
    let input = match &spec.agent {
        Agent::Codex(_) | Agent::Claude(_) | Agent::Acp(_) => prompt.text,
        Agent::Rehearsal(config) => brief(spec, config, &[])?,
    };
    Ok((input, schema))
}

/// Whether the agent is told to hand its result in by the tool: where it knows no schema of its own.
fn submits(spec: &RunSpec) -> bool {
    match &spec.agent {
        Agent::Acp(_) => spec.socket.is_some(),
        Agent::Codex(_) | Agent::Claude(_) | Agent::Rehearsal(_) => false,
    }
}

/// Why an answer is not a result.
enum RejectedAnswer {
    Failed(Failure),
    /// The codes of what is wrong with it, and what it is.
    Broken(Vec<String>, BadAnswer),
}

/// The rehearsal's input for a turn; `issues` are those of the last answer in a repair turn.
fn brief(
    spec: &RunSpec,
    config: &RehearsalSettings,
    issues: &[String],
) -> Result<String, RunError> {
    let session = spec.resume.clone();
    let brief = Brief {
        task: spec.task.clone(),
        session: session.unwrap_or_else(|| format!("rehearsal-{}", spec.run_id.as_str())),
        read_only: match spec.access {
            WriteAccess::ReadOnly | WriteAccess::Documents(_) => true,
            WriteAccess::Worktree => false,
        },
        issues: issues.to_vec(),
        script: config.script.clone(),
    };
    serde_json::to_string(&brief).map_err(|source| RunError::Json { what: "the brief", source })
}
