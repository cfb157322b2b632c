//! One turn of an agent, followed to its end: what it says, what it is told, and how it is stopped.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::folder::turn_dir;
use super::keep::{TurnPurpose, forget_submitted, read_json, write_json};
use super::launch::{LaunchInput, access, launch};
use super::memory::Driver;
use super::rollout::Rollout;
use super::usage_count::UsageCount;
use super::watch::Watch;
use crate::agents::acp::{self, AcpCodec, TurnStart};
use crate::agents::claude::{self, ClaudeCodec};
use crate::agents::codec::Event;
use crate::agents::codec_kind::CodecKind;
use crate::agents::codex::CodexCodec;
use crate::agents::confine::RULES;
use crate::agents::error::RunError;
use crate::agents::prompt;
use crate::agents::rehearsal::RehearsalCodec;
use crate::agents::run::{Agent, RunSpec};
use crate::agents::run_folder::{HINT, STDIN, STUCK, TOLD, TURN_PROMPT, WORDS};
use crate::agents::sent::HAND_OVER;
use crate::agents::stuck::{Habits, Sign};
use crate::agents::tools::Tools;
use crate::agents::turn::{Failure, Turn};
use crate::agents::words::Words;
use crate::domain::ids::RunId;
use crate::domain::run::FailKind;
use crate::platform::confinement::Confinement;
use crate::platform::files;
use crate::platform::redact::redact;
use crate::platform::supervise::{EndedBy, Exit, SupervisedProgram};
use crate::platform::tasks;

/// How long words wait for the tool that is at work, where the agent has to be interrupted for them.
const TOOL_PATIENCE: Duration = Duration::from_secs(60);

/// How long an agent over its budget that has no tool at work may still say its last word: what its answer used can be
/// noted before it tells that it is done.
pub(super) const LAST_WORD: Duration = Duration::from_secs(1);

/// How often it is looked what an agent that says nothing has noted.
pub(super) const NOTED: Duration = Duration::from_secs(2);

/// Wall time of the turn that hands over, in milliseconds.
const HAND_OVER_MS: u64 = 3 * 60 * 1000;

/// How a turn begins.
pub(super) struct Start<'a> {
    pub(super) number: u32,
    pub(super) purpose: TurnPurpose,
    pub(super) resume: Option<&'a str>,
    pub(super) input: &'a str,
    /// Whether the conversation is asked to hand over, in a folder beside those of the run's turns.
    pub(super) hands_over: bool,
    /// What the run has used before.
    pub(super) usage: UsageCount,
}

/// A turn that is over.
pub(super) struct FinishedTurn {
    pub(super) number: u32,
    pub(super) purpose: TurnPurpose,
    pub(super) turn: Turn,
    pub(super) exit: Exit,
    /// What it was interrupted for.
    pub(super) words: Vec<Words>,
    /// The team's own word that it was interrupted for.
    pub(super) hint: Option<String>,
    /// Why it was ended, where it went in circles.
    pub(super) stuck: Option<Failure>,
}

/// What an agent goes on with that was interrupted for it.
pub(super) struct CutOff {
    pub(super) words: Vec<Words>,
    hint: Option<String>,
}

impl CutOff {
    /// What it is told.
    pub(super) fn input(&self, spec: &RunSpec) -> Result<String, RunError> {
        let mut parts = Vec::new();
        if !self.words.is_empty() {
            let said: Vec<_> = self.words.iter().map(|words| words.said.clone()).collect();
            parts.push(prompt::steer(&said, &spec.templates)?);
        }
        parts.extend(self.hint.clone());
        Ok(parts.join("\n\n"))
    }
}

/// Whether a turn was ended together with its team before it had said how it ends.
pub(super) fn is_cut_off(turn: &Turn, exit: &Exit) -> bool {
    exit.ended_by == EndedBy::ParentGone && !turn.is_over()
}

impl FinishedTurn {
    /// One of an earlier team, with what it was interrupted for.
    pub(super) fn again(
        folder: &Path,
        (number, purpose): (u32, TurnPurpose),
        turn: Turn,
        exit: Exit,
    ) -> Result<FinishedTurn, RunError> {
        let words = read_json(folder, WORDS)?.unwrap_or_default();
        let (hint, stuck) = (read_json(folder, HINT)?, read_json(folder, STUCK)?);
        Ok(FinishedTurn { number, purpose, turn, exit, words, hint, stuck })
    }

    /// What it was interrupted for, where that is why it ended, or where it was done anyway and has yet to
    /// hear people's words. A hint has nothing to say to one that is done.
    pub(super) fn to_go_on_with(&self) -> Option<CutOff> {
        let hint = self.hint.clone().filter(|_| !self.turn.is_done());
        let goes_on = match self.exit.ended_by {
            EndedBy::Cancelled => true,
            EndedBy::Exit => self.turn.is_done(),
            EndedBy::Wall
            | EndedBy::Idle
            | EndedBy::OutputCap
            | EndedBy::ParentGone
            | EndedBy::NotStarted => false,
        };
        let any = !self.words.is_empty() || hint.is_some();
        (goes_on && self.stuck.is_none() && any).then(|| CutOff { words: self.words.clone(), hint })
    }
}

/// The codec for a turn that is read again; `told` is what stood in its input.
pub(super) fn codec_again(spec: &RunSpec, purpose: TurnPurpose, told: &str) -> CodecKind {
    match &spec.agent {
        Agent::Acp(_) => {
            let opening = opening(spec, "", None, purpose);
            CodecKind::Acp(Box::new(AcpCodec::again(opening, told)))
        }
        Agent::Codex(_) | Agent::Claude(_) | Agent::Rehearsal(_) => codec(spec, "", None, purpose),
    }
}

/// The codec for a turn.
fn codec(spec: &RunSpec, input: &str, resume: Option<&str>, purpose: TurnPurpose) -> CodecKind {
    match &spec.agent {
        Agent::Codex(_) => CodecKind::Codex(CodexCodec::default()),
        Agent::Claude(_) => CodecKind::Claude(ClaudeCodec::default()),
        Agent::Rehearsal(_) => CodecKind::Rehearsal(RehearsalCodec::default()),
        Agent::Acp(_) => {
            CodecKind::Acp(Box::new(AcpCodec::new(opening(spec, input, resume, purpose))))
        }
    }
}

fn opening(spec: &RunSpec, input: &str, resume: Option<&str>, purpose: TurnPurpose) -> TurnStart {
    let mode = match &spec.agent {
        Agent::Acp(config) => config.mode.clone(),
        Agent::Codex(_) | Agent::Claude(_) | Agent::Rehearsal(_) => None,
    };
    TurnStart {
        worktree: spec.worktree_seen().to_owned(),
        access: access(spec, purpose).clone(),
        prompt: input.to_owned(),
        resume: resume.map(str::to_owned),
        anew: !purpose.repairing,
        mode,
        web: spec.task.work.web && !purpose.repairing,
        // Without a sandbox, or the operator's word that the machine is one, it is not started.
        confined: true,
        servers: servers(spec),
    }
}

/// The team's tools, as the protocol names them.
fn servers(spec: &RunSpec) -> Value {
    match Tools::of(spec.socket.as_deref()) {
        Ok(tools) => tools.map_or_else(|| json!([]), |tools| tools.acp()),
        Err(error) => {
            tracing::warn!(run = spec.run_id.as_str(), %error, "the run has no tools of the team");
            json!([])
        }
    }
}

/// What stands on standard input at first.
fn first_input(spec: &RunSpec, input: &str) -> String {
    match &spec.agent {
        Agent::Codex(_) => input.to_owned(),
        Agent::Claude(_) => format!("{}\n", claude::message(input)),
        Agent::Acp(_) => format!("{}\n", acp::hello()),
        Agent::Rehearsal(_) => format!("{input}\n"),
    }
}

impl Driver {
    /// One turn of the agent.
    pub(super) async fn turn(
        &self,
        spec: &RunSpec,
        start: &Start<'_>,
        schema: &Value,
        watch: &Watch,
    ) -> Result<FinishedTurn, RunError> {
        let folder = match start.hands_over {
            true => spec.run_dir.join(HAND_OVER),
            false => turn_dir(spec, start.number),
        };
        let stdin = folder.join(STDIN);
        let first = first_input(spec, start.input);
        let prompt = (start.number > 0 || start.hands_over).then(|| start.input.to_owned());
        let (purpose, place, input) = (start.purpose, folder.clone(), stdin.clone());
        tasks::blocking(move || {
            files::create_dir_all(&place)?;
            purpose.keep(&place)?;
            files::write_private(&input, first)?;
            if let Some(prompt) = prompt {
                files::write_private(&place.join(TURN_PROMPT), prompt)?;
            }
            Ok::<_, RunError>(())
        })
        .await??;
        let confinement = self.confinement(spec.agent.sandbox()).await;
        if let (Some(Confinement::Nothing(reason)), Some(setting)) =
            (confinement, spec.agent.unconfined_by())
        {
            return Err(RunError::NoSandbox { reason: reason.clone(), setting });
        }
        let rules = folder.join(RULES);
        let launching = LaunchInput {
            purpose: start.purpose,
            resume: start.resume,
            schema,
            confinement,
            rules: &rules,
        };
        let mut launch = launch(spec, &launching, stdin.clone())?;
        if start.hands_over {
            launch.wall_ms =
                Some(launch.wall_ms.map_or(HAND_OVER_MS, |wall| wall.min(HAND_OVER_MS)));
        }
        let program = SupervisedProgram::start(&launch, &folder)?;
        let codec = codec(spec, start.input, start.resume, start.purpose);
        let followed = RunningTurn {
            spec,
            watch,
            folder: &folder,
            stdin: &stdin,
            program,
            turn: Turn::new(codec),
            words: Vec::new(),
            purpose: start.purpose,
            hint: None,
            stuck: None,
            habits: Habits::new(spec.limits.patience),
            begun: Instant::now(),
            speaks: launch.live_stdin,
            listens: !start.purpose.repairing,
            resumes: start.resume.is_some(),
            usage: start.usage,
            rollout: Rollout::of(&spec.agent),
        };
        followed.until_its_end(start).await
    }
}

/// What ends a run that has used its budget up.
pub(super) fn over_budget() -> Failure {
    Failure::new(FailKind::Budget, "the budget of this run is used up".to_owned())
}

/// Notes why an agent is stopped: on disk before it is, so that a restart knows.
pub(super) fn note_failure(
    spec: &RunSpec,
    folder: &Path,
    failure: &Failure,
) -> Result<(), RunError> {
    tracing::warn!(run = spec.run_id.as_str(), why = failure.message, "the agent is stopped");
    write_json(folder, STUCK, failure)
}

/// A turn under way.
struct RunningTurn<'a> {
    spec: &'a RunSpec,
    watch: &'a Watch,
    folder: &'a Path,
    stdin: &'a Path,
    program: SupervisedProgram,
    turn: Turn,
    /// What it is interrupted for.
    words: Vec<Words>,
    purpose: TurnPurpose,
    /// See [`FinishedTurn`].
    hint: Option<String>,
    stuck: Option<Failure>,
    /// What it does over and over.
    habits: Habits,
    begun: Instant,
    /// Whether its input is live.
    speaks: bool,
    /// Whether it takes words at all.
    listens: bool,
    /// Whether it goes on with a conversation.
    resumes: bool,
    /// What the run had used before this turn.
    usage: UsageCount,
    /// What it notes beside its stream.
    rollout: Option<Rollout>,
}

impl RunningTurn<'_> {
    async fn until_its_end(mut self, start: &Start<'_>) -> Result<FinishedTurn, RunError> {
        if let Err(error) = self.follow().await {
            // It cannot be followed, so it is ended: whoever comes next gets its worktree.
            self.program.kill().await;
            self.program.wait().await?;
            return Err(error);
        }
        self.watch.tell(self.turn.finish());
        let exit = self.program.wait().await?;
        if let Some(mut rollout) = self.rollout.take() {
            let (spec, mut turn) = (self.spec.clone(), self.turn);
            self.turn = tasks::blocking(move || {
                rollout.count_all(&spec, &mut turn);
                turn
            })
            .await?;
        }
        self.count();
        let RunningTurn { turn, words, purpose, hint, stuck, .. } = self;
        Ok(FinishedTurn { number: start.number, purpose, turn, exit, words, hint, stuck })
    }

    /// Reads and answers it until it says no more.
    async fn follow(&mut self) -> Result<(), RunError> {
        let (mut cancelled, mut interrupted, mut input_ended) = (false, false, false);
        // When patience with a tool, or with an agent that was asked to stop, is over.
        let mut at_last: Option<Instant> = None;
        let watch = self.watch;
        // One that begins over its budget gets no last word.
        let was_spent = watch.over_budget.is_cancelled();
        loop {
            let now = Instant::now();
            tokio::select! {
                biased;
                () = watch.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    // Reading goes on: what the agent still says belongs to the record.
                    (interrupted, at_last) = self.stop(now).await?;
                }
                () = watch.over_budget.cancelled(), if !cancelled && self.stuck.is_none() && !self.turn.is_over() => {
                    self.give_up(over_budget())?;
                    if !interrupted {
                        let at_once = was_spent || self.speaks || self.turn.has_open_tools();
                        (interrupted, at_last) = match at_once {
                            true => self.stop(now).await?,
                            false => (false, Some(now + LAST_WORD)),
                        };
                    }
                }
                words = watch.words.take(), if self.listens && !cancelled && !interrupted && self.stuck.is_none() && !self.turn.is_over() => {
                    if self.tell(words).await? {
                        at_last.get_or_insert(now + TOOL_PATIENCE);
                    }
                }
                () = sleep_until(at_last.unwrap_or(now)), if at_last.is_some() && (cancelled || self.may_be_cut()) => {
                    at_last = None;
                    interrupted = true;
                    self.program.interrupt().await;
                }
                // It notes an answer of its model when the tools that this wanted have ended, perhaps without a word.
                () = tokio::time::sleep(NOTED), if self.rollout.is_some() && !self.turn.is_over() => self.count(),
                piece = self.program.read() => {
                    let Some(piece) = piece? else { return Ok(()) };
                    let events = self.turn.feed(&piece);
                    let sign = self.sign(&events, now);
                    let begins_tool =
                        events.iter().any(|event| matches!(event, Event::ToolStart { .. }));
                    watch.tell(events);
                    self.count();
                    self.reply().await?;
                    if self.stuck.is_some() && !self.speaks && begins_tool {
                        // That was not its last word.
                        at_last = at_last.map(|at| at.min(now));
                    }
                    let at_work = !cancelled && !interrupted && !self.turn.is_over();
                    if let Some(sign) = sign.filter(|_| at_work && self.stuck.is_none()) {
                        if self.purpose.hinted || !sign.is_for_the_agent() {
                            self.give_up(self.stuck_by(&sign))?;
                            (interrupted, at_last) = self.stop(now).await?;
                        } else if self.tell_of(&sign).await? {
                            at_last.get_or_insert(now + TOOL_PATIENCE);
                        }
                    }
                }
            }
            if self.turn.is_over() {
                at_last = None;
                if cancelled && !interrupted {
                    interrupted = true;
                    self.program.interrupt().await;
                } else if !input_ended {
                    // One that has no more to say has the grace time to end, whether it reads its input or not.
                    input_ended = true;
                    self.program.end_input().await;
                }
            } else if (!self.words.is_empty() || self.hint.is_some())
                && !interrupted
                && self.turn.is_between_tools()
            {
                at_last = None;
                interrupted = true;
                self.program.interrupt().await;
            }
        }
    }

    /// Whether it may be interrupted while a tool is at work: it is given up, or has a conversation that goes on. Words to
    /// one that has not said a thing yet wait; whether it says anything is for its idle limit.
    fn may_be_cut(&self) -> bool {
        self.stuck.is_some() || self.resumes || self.turn.session.is_some()
    }

    /// Asks it to stop: by its own means where it has them, with a limit, else by a signal. Whether it got the
    /// signal, and when it will.
    async fn stop(&mut self, now: Instant) -> Result<(bool, Option<Instant>), RunError> {
        if self.speaks && !self.turn.is_over() && self.turn.stop() {
            self.reply().await?;
            return Ok((false, Some(now + Duration::from_millis(self.spec.limits.grace_ms))));
        }
        self.program.interrupt().await;
        Ok((true, None))
    }

    /// Counts what it has used, and tells that to whoever holds it to its budget.
    fn count(&mut self) {
        if let Some(rollout) = &mut self.rollout {
            rollout.count(self.spec, &mut self.turn);
        }
        self.watch.tell_used(self.usage.with(self.spec, &self.turn));
    }

    /// Counts what it does.
    fn sign(&mut self, events: &[Event], now: Instant) -> Option<Sign> {
        let millis = u64::try_from((now - self.begun).as_millis()).unwrap_or(u64::MAX);
        events.iter().filter_map(|event| self.habits.note(event, millis)).last()
    }

    /// It was told, and goes on as before, or nobody can tell it.
    fn stuck_by(&self, sign: &Sign) -> Failure {
        let told = if self.purpose.hinted { ", also after it was told so" } else { "" };
        Failure::new(sign.kind(), redact(&format!("it {}{told}", sign.words())).into_owned())
    }

    /// It is ended for this.
    fn give_up(&mut self, failure: Failure) -> Result<(), RunError> {
        note_failure(self.spec, self.folder, &failure)?;
        self.stuck = Some(failure);
        Ok(())
    }

    /// Tells it once that it goes in circles; whether it has to be interrupted for that.
    async fn tell_of(&mut self, sign: &Sign) -> Result<bool, RunError> {
        let what = sign.words();
        tracing::info!(
            run = self.spec.run_id.as_str(),
            what,
            "the agent is told that it goes in circles"
        );
        let text = prompt::hint(&what, &self.spec.templates)?;
        self.purpose.hinted = true;
        self.purpose.keep(self.folder)?;
        self.habits.forget();
        if self.turn.hint(&text) {
            self.told(text).await?;
            return Ok(false);
        }
        write_json(self.folder, HINT, &text)?;
        self.hint = Some(text);
        Ok(true)
    }

    /// Keeps what it is told on the way, and tells it.
    async fn told(&mut self, text: String) -> Result<(), RunError> {
        let path = self.folder.join(TOLD);
        files::append(&path, format!("{}\n", Value::from(text)))?;
        files::set_mode(&path, 0o600)?;
        self.reply().await
    }

    /// Gives words to the agent; whether it has to be interrupted for them.
    async fn tell(&mut self, words: Words) -> Result<bool, RunError> {
        let run: &RunId = &self.spec.run_id;
        let text = prompt::steer(std::slice::from_ref(&words.said), &self.spec.templates)?;
        if self.turn.hear(&words, &text) {
            tracing::info!(run = run.as_str(), "words reach the agent at work");
            // What it handed in before them does not count any more.
            forget_submitted(&self.spec.run_dir)?;
            self.told(text).await?;
            return Ok(false);
        }
        tracing::info!(run = run.as_str(), "the agent is interrupted for words");
        self.words.push(words);
        // On disk before the interrupt: a restart then knows why the turn ended.
        write_json(self.folder, WORDS, &self.words)?;
        Ok(true)
    }

    /// Tells the agent what its codec has for it.
    async fn reply(&mut self) -> Result<(), RunError> {
        let mut lines = String::new();
        for reply in self.turn.replies() {
            lines.push_str(&reply.to_string());
            lines.push('\n');
        }
        if !lines.is_empty() {
            self.program.say(self.stdin, lines.as_bytes()).await?;
        }
        Ok(())
    }
}
