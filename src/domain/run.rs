//! One attempt of one role on one step, and how it ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::assignment::Control;
use crate::domain::budget::{Allowance, SharedBudgets};
use crate::domain::config::AgentKind;
use crate::domain::conversation::Conversation;
use crate::domain::evidence::{ChangedPath, Isolation, ReportedWork};
use crate::domain::ids::{BootId, CallId, EnvelopeId, MessageId, RequestId, RunId};
use crate::domain::lifecycle::StepName;
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::domain::word::words;

/// A run that has been started and whose result is not applied yet. Durable before the agent starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its id; also the name of its folder.
    pub run_id: RunId,
    /// The request.
    pub request_id: RequestId,
    /// Who works.
    pub role: Role,
    /// The workflow step; none for the orchestrator's intake.
    pub step: Option<StepName>,
    /// The delegate envelope that it answers.
    pub envelope_id: EnvelopeId,
    /// Attempt of the step, from 1.
    pub attempt: u32,
    /// Bumped when a restart could not adopt the agent's output; results of older ones are refused.
    pub generation: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// The tree that the worktree had before (git tree id), for snapshot and reset.
    pub pre_tree: Option<String>,
    /// The agent that works.
    #[serde(default)]
    pub agent: AgentKind,
    /// How the step is gone about; set when the run is let begin.
    #[serde(default)]
    pub approach: Approach,
    /// What it may spend; set when the run is let begin.
    #[serde(default)]
    pub allowance: Allowance,
    /// What it may spend together with others; set when the run is let begin.
    #[serde(default, skip_serializing_if = "SharedBudgets::is_empty")]
    pub shared_budgets: SharedBudgets,
    /// Whether its room was told that the model's server refuses it for now.
    #[serde(default)]
    pub told_of_limit: bool,
    /// The start of the worker that holds its generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<BootId>,
    /// What was written to its request since its generation began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<Control>,
    /// Calls of its generation that changed something.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub calls: BTreeSet<CallId>,
}

impl Run {
    /// The first generation of a run.
    #[must_use]
    pub fn new(
        run_id: RunId,
        request_id: RequestId,
        (role, step): (Role, Option<StepName>),
        envelope_id: EnvelopeId,
        at: Timestamp,
    ) -> Run {
        Run {
            run_id,
            request_id,
            role,
            step,
            envelope_id,
            attempt: 1,
            generation: 1,
            started_at: at,
            pre_tree: None,
            agent: AgentKind::default(),
            approach: Approach::default(),
            allowance: Allowance::default(),
            shared_budgets: SharedBudgets::default(),
            told_of_limit: false,
            granted: None,
            controls: Vec::new(),
            calls: BTreeSet::new(),
        }
    }
}

words! {
    /// How a step is gone about, after what went before.
    #[derive(Default)]
    pub enum Approach {
        /// As usual.
        #[default]
        Usual = "usual",
        /// Once more, with a word about what went wrong.
        Hinted = "hinted",
        /// Another way: a new conversation, and a stronger model where there is one.
        Different = "different",
    }
}

words! {
    /// Why a run has no result.
    pub enum FailKind {
        /// The CLI is not logged in, or its key was refused.
        Auth = "auth",
        /// The plan or credit is used up.
        Quota = "quota",
        /// Too many requests.
        RateLimit = "rate_limit",
        /// The model's service is overloaded.
        Overloaded = "overloaded",
        /// The context window is full.
        Context = "context",
        /// The provider refused the request.
        BadRequest = "bad_request",
        /// The model declined.
        Refusal = "refusal",
        /// The agent's own turn limit.
        MaxTurns = "max_turns",
        /// A money or token limit.
        Budget = "budget",
        /// The network or the stream broke.
        Transport = "transport",
        /// No output and no work for too long.
        Stuck = "stuck",
        /// The wall-clock limit.
        WallTimeout = "wall_timeout",
        /// More output than allowed.
        OutputCap = "output_cap",
        /// Ended on purpose.
        Cancelled = "cancelled",
        /// The process ended without a terminal event.
        NoTerminal = "no_terminal",
        /// The process could not be started or died by a signal.
        Crash = "crash",
        /// The result did not follow the contract, also after the repair turns.
        Contract = "contract",
        /// A role that may not write has written.
        WroteFiles = "wrote_files",
        /// It was said to be built, and no file differs.
        NoChange = "no_change",
        /// The marks of a conflict still stand in the files.
        UnsolvedConflict = "unsolved_conflict",
        /// More was changed to solve a conflict than either side had.
        BeyondConflict = "beyond_conflict",
        /// The agent says that the task needs a real agent (rehearsal).
        NeedsRealAgent = "needs_real_agent",
        /// Nothing on the machine confines agents, and the operator has not allowed one without.
        NoSandbox = "no_sandbox",
        /// A disk was full.
        NoSpace = "no_space",
        /// Anything else.
        Other = "other",
    }
}

impl FailKind {
    /// Whether the model's service, or the way to it, was the trouble: the attempt itself may have been right.
    #[must_use]
    pub const fn is_of_the_service(self) -> bool {
        match self {
            Self::RateLimit | Self::Overloaded | Self::Transport => true,
            Self::Auth
            | Self::Quota
            | Self::Context
            | Self::BadRequest
            | Self::Refusal
            | Self::MaxTurns
            | Self::Budget
            | Self::Stuck
            | Self::WallTimeout
            | Self::OutputCap
            | Self::Cancelled
            | Self::NoTerminal
            | Self::Crash
            | Self::Contract
            | Self::WroteFiles
            | Self::NoChange
            | Self::UnsolvedConflict
            | Self::BeyondConflict
            | Self::NeedsRealAgent
            | Self::NoSandbox
            | Self::NoSpace
            | Self::Other => false,
        }
    }

    /// Whether another attempt can help without a person.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::RateLimit
            | Self::Overloaded
            | Self::Context
            | Self::Transport
            | Self::Stuck
            | Self::WallTimeout
            | Self::OutputCap
            | Self::NoTerminal
            | Self::Crash
            | Self::Contract
            | Self::WroteFiles
            | Self::NoChange
            | Self::UnsolvedConflict
            | Self::BeyondConflict
            | Self::MaxTurns
            | Self::NoSpace
            | Self::Other => true,
            Self::Auth
            | Self::Quota
            | Self::BadRequest
            | Self::Refusal
            | Self::Budget
            | Self::Cancelled
            | Self::NeedsRealAgent
            | Self::NoSandbox => false,
        }
    }
}

words! {
    /// What an agent's last answer was where it is no result.
    pub enum AnswerFault {
        /// The model declined, in the field that its server has for that.
        Refused = "refused",
        /// Words and no JSON.
        Prose = "prose",
        /// Nothing.
        Empty = "empty",
        /// More than is read as a result.
        TooLarge = "too_large",
        /// JSON that does not parse: cut off, or with a slip in it.
        NotJson = "not_json",
        /// An object that does not follow the contract.
        WrongSchema = "wrong_schema",
    }
}

/// An answer that is no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadAnswer {
    /// What it is.
    pub fault: AnswerFault,
    /// Its first lines, at most a few hundred characters, printable and without secrets.
    pub beginning: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// A result that follows the contract. It may itself say blocked or failed.
    Result(Arc<RoleResult>),
    /// No result.
    Failed {
        /// Why.
        kind: FailKind,
        /// One line, already redacted.
        message: String,
        /// When it can go on, where the agent or its model's service told: the reset of a usage limit, the
        /// end of a rate limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// What the agent answered instead of a result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<BadAnswer>,
    },
}

impl RunOutcome {
    /// No result, for a reason that is not what the agent answered, and without a time when it can go on.
    #[must_use]
    pub const fn failed(kind: FailKind, message: String) -> Self {
        Self::Failed { kind, message, until: None, answer: None }
    }

    /// With what the model's server said and the agent did not. A refusal that stands in no text, of which
    /// `refusal` is the beginning, leaves an agent without a result; a limit is what a silent agent waited for;
    /// `limited_until` is when it ends.
    #[must_use]
    pub fn by_server(self, refusal: Option<&str>, limited_until: Option<Timestamp>) -> Self {
        match (self, refusal, limited_until) {
            (Self::Failed { kind: FailKind::Contract, .. }, Some(refusal), _) => Self::Failed {
                kind: FailKind::Refusal,
                message: "the model declined to answer".to_owned(),
                until: None,
                answer: Some(BadAnswer {
                    fault: AnswerFault::Refused,
                    beginning: refusal.to_owned(),
                }),
            },
            (Self::Failed { kind, message, until: None, answer }, _, Some(until)) => {
                let silent = matches!(kind, FailKind::Stuck | FailKind::WallTimeout);
                let kind = if silent { FailKind::RateLimit } else { kind };
                let limit = matches!(kind, FailKind::Quota | FailKind::RateLimit);
                Self::Failed { kind, message, until: limit.then_some(until), answer }
            }
            (other, _, _) => other,
        }
    }

    /// Of a run that asked for more than it may spend and was refused, which agents tell in words of their own: as
    /// a connection that was cut, or a server's fault.
    #[must_use]
    pub fn beyond_budget(self, words: &str) -> Self {
        match self {
            Self::Failed { kind, answer, .. } if kind != FailKind::Cancelled => Self::Failed {
                kind: FailKind::Budget,
                message: words.to_owned(),
                until: None,
                answer,
            },
            other @ (Self::Result(_) | Self::Failed { .. }) => other,
        }
    }
}

/// Days that a limit lasts at most; what lies further ahead is not believed.
const LONGEST_LIMIT: u64 = 400;

/// The end of a limit that was told at `said`, where it lies ahead and can be meant.
#[must_use]
pub fn limit_end(at: Timestamp, said: Timestamp) -> Option<Timestamp> {
    (at > said && at < said.plus_seconds(LONGEST_LIMIT * 86_400)).then_some(at)
}

/// The folder of the ledger of runs, in the workspace.
pub const USAGE: &str = "logs/usage";

/// The file in which the runs of a month of the workspace's zone stand with what they cost, a line each.
#[must_use]
pub fn ledger_of(at: Timestamp, zone: chrono_tz::Tz) -> String {
    format!("{USAGE}/{}.jsonl", at.format_in(zone, "%Y-%m"))
}

/// Everything that the runtime knows about a finished run. Rides in the report envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run.
    pub run_id: RunId,
    /// The request.
    pub request_id: RequestId,
    /// Who worked.
    pub role: Role,
    /// On which step; none for the orchestrator's intake.
    pub step: Option<StepName>,
    /// The generation that produced it.
    pub generation: u32,
    /// How it ended.
    pub outcome: RunOutcome,
    /// What differs in the worktree from before the run, from git.
    pub changed_paths: Vec<ChangedPath>,
    /// What it left, where it might write and has a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<ReportedWork>,
    /// Shared documents (workspace-relative) that exist and that the result names.
    #[serde(default)]
    pub documents_present: Vec<String>,
    /// Tokens and money of this run.
    pub usage: Usage,
    /// The agent's session, for the next turn of the same role.
    pub session_id: Option<String>,
    /// Wall time.
    pub duration_ms: u64,
    /// Repair turns used.
    pub repairs: u32,
    /// Output bytes that were over the caps and cut.
    pub dropped_bytes: u64,
    /// What confined its agent; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The agent, for people: `codex 0.169.0`, `rehearsal`.
    pub agent: String,
    /// The same for rules.
    #[serde(default)]
    pub agent_kind: AgentKind,
    /// The model that was asked for; a session goes on only with the model that it was begun with.
    #[serde(default)]
    pub model: String,
    /// Messages that the agent took while it worked.
    #[serde(default)]
    pub heard: Vec<MessageId>,
    /// The agent's conversation, and what its prompt was.
    #[serde(default)]
    pub conversation: Conversation,
}
