//! A request: the unit that the workflow runs on (`spec/teams.md` 4.2).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::actor::{Actor, Author};
use crate::domain::block::BlockCode;
use crate::domain::budget::{Purse, Scope};
use crate::domain::conflict::Conflict;
use crate::domain::evidence::{Candidate, Evidence};
use crate::domain::ids::{
    BacklogId, ChannelId, GateId, GuildId, MessageId, OperationId, RequestId, RunId, ServerRoleId,
    SprintId, TodoId, UserId,
};
use crate::domain::ingress::Ingress;
use crate::domain::language::Language;
use crate::domain::refusal::Refusal;
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::sprint::{Duty, DutyDetails, InitialStep};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::domain::word::words;
use crate::domain::workflow::WorkflowState;

mod event;
mod spent;

pub use event::{EventKind, RequestEvent};
pub use spent::Spent;

words! {
    /// Where a request stands.
    pub enum RequestStatus {
        /// Written down, nobody works on it yet.
        Queued = "queued",
        /// A role, the runtime or a gate has it.
        Delegated = "delegated",
        /// Answered or done without a commit.
        Completed = "completed",
        /// Waits for a person.
        Blocked = "blocked",
        /// Ended without success.
        Failed = "failed",
        /// Withdrawn by a person.
        Cancelled = "cancelled",
        /// Done, but its change could not be brought to the branch.
        Uncommitted = "uncommitted",
        /// Done, and its commit is on the branch.
        Committed = "committed",
    }
}

impl RequestStatus {
    /// Whether nothing more happens by itself or by an answer. Blocked is open: an answer resumes it.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Committed | Self::Failed | Self::Cancelled => true,
            Self::Queued | Self::Delegated | Self::Blocked | Self::Uncommitted => false,
        }
    }
}

/// Where the answer goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplyRoute {
    /// Who asked.
    pub author_id: Option<UserId>,
    /// The name of who asked, for people to read.
    pub author_name: String,
    /// The server roles of who asked, at that time: rights that what they asked for takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub author_roles: Vec<ServerRoleId>,
    /// Where it was asked; for a message in a room, the room.
    pub channel_id: Option<ChannelId>,
    /// The server; none for a direct message.
    pub guild_id: Option<GuildId>,
    /// Whether it was a direct message.
    pub is_dm: bool,
    /// The message that asked.
    pub message_id: Option<MessageId>,
}

impl ReplyRoute {
    /// To whoever acts; the place is still to be told.
    #[must_use]
    pub fn of(actor: &Actor) -> Self {
        let mut route = Self { author_name: actor.name(), ..Self::default() };
        if let Actor::Person { author, guild_id, .. } = actor {
            route.author_id = Some(author.id);
            route.author_roles.clone_from(&author.server_roles);
            route.guild_id = *guild_id;
            route.is_dm = guild_id.is_none();
        }
        route
    }

    /// Whoever asked, as they were when they asked: what is done in their name takes their rights.
    #[must_use]
    pub fn actor(&self) -> Actor {
        let Some(id) = self.author_id else { return Actor::Operator };
        let author = Author {
            id,
            name: self.author_name.clone(),
            is_bot: false,
            server_roles: self.author_roles.clone(),
        };
        let via = if self.is_dm { Ingress::DirectMessage } else { Ingress::Message };
        Actor::Person { author, guild_id: self.guild_id, via }
    }
}

/// The Discord thread in which a request happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// The thread once it exists; a direct message has none and stays in its channel.
    pub thread_id: Option<ChannelId>,
    /// The status card.
    pub card_id: Option<MessageId>,
    /// What the card said last (digest), so that equal cards are not edited.
    #[serde(default)]
    pub card_digest: String,
}

/// Why a blocked request does not move and who can move it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// What stopped it.
    pub code: BlockCode,
    /// What a role said about it, in its own words.
    #[serde(default)]
    pub detail: String,
    /// What would unblock it.
    #[serde(default)]
    pub required_inputs: Vec<String>,
    /// Since when.
    pub since: Timestamp,
}

/// What belongs to a request beside what every request has, with the keys of `spec/teams.md` 4.2.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Params {
    /// Absent for a person's request.
    #[serde(rename = "_teams_kind", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The governed workflow; absent until the orchestrator handed the request on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowState>,
    /// The role that the person addressed, if not the orchestrator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_requested_role: Option<Role>,
    /// The request that ended in the room in which this one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows_request_id: Option<RequestId>,
    /// What was asked before the message was edited and a role had begun on it, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier_bodies: Vec<String>,
    /// Whether the message was edited and no role has read it as it is now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unread_edit: bool,
    /// What people wrote into the room or as an answer since the request began, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub followups: Vec<Followup>,
    /// What it is for, where the sprint or the backlog made it and it does no todo.
    #[serde(flatten, deserialize_with = "known_duty")]
    pub duty: Option<DutyDetails>,
    /// The part of the sprint that it belongs to, for operators: `initial` or `ongoing_review`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sprint_phase: Option<String>,
    /// The request of the same todo before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_of_request_id: Option<RequestId>,
    /// The agent of the last run, in the words in which people are told.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// What the developer said that it built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<String>,
    /// Whether its sprint let go of it: its todo does not follow it any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// The registered action that waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_at_gate: Option<ActionAtGate>,
    /// The budget that waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_at_gate: Option<BudgetAtGate>,
}

/// A registered action that a role wants to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionAtGate {
    /// Its name in the configuration.
    pub name: String,
    /// The command line.
    pub command: Vec<String>,
}

/// A run that did not begin because a budget is used up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetAtGate {
    /// Which budget.
    pub scope: Scope,
    /// Whose run.
    pub role: Role,
    /// The values of the card: how much it is, what was used, how much more is asked for.
    pub card: Value,
    /// What the run is told about why its step is done again.
    pub why: String,
}

/// Why the role at work was chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoutingContext {
    /// The role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_role: Option<Role>,
    /// By what.
    pub selection_source: SelectionSource,
}

/// By what a role was chosen; the words are those of `spec/teams.md` 4.2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionSource {
    /// The orchestrator handed it on.
    AgentFirstIntake,
    /// A person let a blocked request try again.
    BlockedRetry,
    /// More input came for a blocked request.
    PlanningResume,
    /// Somebody asked something at a gate.
    GateQuestion,
    /// Its message was edited.
    Edited,
    /// The lifecycle led there.
    #[default]
    #[serde(other)]
    WorkflowContract,
}

/// A message that belongs to a running request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Followup {
    /// The message; editing it edits the text, deleting it withdraws it.
    pub message_id: Option<MessageId>,
    /// Who wrote it.
    pub author_name: String,
    /// What they wrote.
    pub body: String,
    /// Files that came with it, as workspace-relative hints.
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// When.
    pub at: Timestamp,
    /// The roles that took it into their conversation while they worked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard_by: Vec<Role>,
    /// A question that somebody had before deciding: it takes no place of those that people may write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_gate: bool,
}

/// Words by which somebody says that a message is not for the run under way.
const WAITS: [&str; 3] = ["later:", "wait:", "나중에:"];

impl Followup {
    /// Words that came by a command.
    #[must_use]
    pub fn command(author: &str, body: String, at: Timestamp) -> Self {
        Self {
            message_id: None,
            author_name: author.to_owned(),
            body,
            artifacts: Vec::new(),
            at,
            heard_by: Vec::new(),
            at_gate: false,
        }
    }

    /// What it is known by: its message, or, where it came by a command, its instant in milliseconds, which no
    /// message has for an id.
    #[must_use]
    pub fn key(&self) -> MessageId {
        let instant = || MessageId(u64::try_from(self.at.millis()).unwrap_or_default());
        self.message_id.unwrap_or_else(instant)
    }

    /// Whether its author wants it to wait until the step under way is over.
    #[must_use]
    pub fn waits(&self) -> bool {
        let words = self.body.trim_start().to_lowercase();
        WAITS.iter().any(|word| words.starts_with(word))
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// Its id.
    pub request_id: RequestId,
    /// Where it stands.
    pub status: RequestStatus,
    /// `route` for what people write; see `spec/teams.md` 4.2 for others.
    pub intent: String,
    /// `normal` unless said otherwise.
    pub urgency: String,
    /// What was asked, as one text.
    pub scope: String,
    /// The message, verbatim.
    pub body: String,
    /// Workspace-relative hints to files.
    pub artifacts: Vec<String>,
    /// Workflow state and further keys.
    pub params: Params,
    /// Who has it now; none at the ends.
    #[serde(deserialize_with = "role_or_empty")]
    pub current_role: Option<Role>,
    /// Who gets it next, where that is known.
    #[serde(deserialize_with = "role_or_empty")]
    pub next_role: Option<Role>,
    /// Always the orchestrator.
    pub owner_role: Role,
    /// The sprint that it belongs to, if any.
    #[serde(deserialize_with = "id_or_empty")]
    pub sprint_id: Option<SprintId>,
    /// The backlog item, if any.
    #[serde(deserialize_with = "id_or_empty")]
    pub backlog_id: Option<BacklogId>,
    /// The todo, if any.
    #[serde(deserialize_with = "id_or_empty")]
    pub todo_id: Option<TodoId>,
    /// When the message was written.
    pub source_message_created_at: Option<Timestamp>,
    /// When the record was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Sha-1 of who, where and what, for finding duplicates.
    pub fingerprint: String,
    /// Where the answer goes.
    pub reply_route: ReplyRoute,
    /// The last role result. It may be long, so that a decision that changes the request does not copy it.
    pub result: Option<Arc<RoleResult>>,
    /// Roles that have reported.
    pub visited_roles: Vec<Role>,
    /// Why the current role was chosen.
    #[serde(deserialize_with = "none_where_odd", skip_serializing_if = "Option::is_none")]
    pub routing_context: Option<RoutingContext>,
    /// The language of the request.
    pub language: Language,
    /// Its thread.
    pub room: Option<Room>,
    /// Set while status is blocked.
    pub blocked: Option<Blocked>,
    /// The run under way.
    pub active_run: Option<RunId>,
    /// The commit on `teams/<id>` with the work so far.
    pub candidate: Option<Candidate>,
    /// What the runtime saw when it checked the candidate.
    pub evidence: Option<Evidence>,
    /// The acceptance criteria of its own plan; those of an item stand in the item.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
    /// Since when it stands in the queue to the branch; none where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landing_since: Option<Timestamp>,
    /// What its change and the branch both changed, until that is solved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
    /// The gate that it waits for.
    pub gate_id: Option<GateId>,
    /// The registered action that it waits for.
    pub operation_id: Option<OperationId>,
    /// The commit on the branch, once there.
    pub commit_sha: Option<String>,
    /// Who withdrew it while its commit was on its way to the branch: it ends as that where the commit does
    /// not get there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn_by: Option<String>,
    /// Budgets used.
    pub spent: Spent,
    /// What its agents were refused and its room was told of.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub refusals: BTreeSet<Refusal>,
    /// Tokens and cost so far.
    pub usage: Usage,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The last word about it, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_answer: Option<FinalAnswer>,
}

/// The last word about a request: a text of the catalog with its values, in the language of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinalAnswer {
    /// The catalog's key.
    pub key: String,
    /// The values of its template.
    pub values: Map<String, Value>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            request_id: RequestId::unset(),
            status: RequestStatus::Queued,
            intent: "route".to_owned(),
            urgency: "normal".to_owned(),
            scope: String::new(),
            body: String::new(),
            artifacts: Vec::new(),
            params: Params::default(),
            current_role: None,
            next_role: None,
            owner_role: Role::Orchestrator,
            sprint_id: None,
            backlog_id: None,
            todo_id: None,
            source_message_created_at: None,
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
            fingerprint: String::new(),
            reply_route: ReplyRoute::default(),
            result: None,
            visited_roles: Vec::new(),
            routing_context: None,
            language: Language::default(),
            room: None,
            blocked: None,
            active_run: None,
            candidate: None,
            evidence: None,
            criteria: Vec::new(),
            landing_since: None,
            conflict: None,
            gate_id: None,
            operation_id: None,
            commit_sha: None,
            withdrawn_by: None,
            spent: Spent::default(),
            refusals: BTreeSet::new(),
            usage: Usage::default(),
            ended_at: None,
            final_answer: None,
        }
    }
}

impl Request {
    /// When it ended; older records only say when they last changed.
    #[must_use]
    pub fn ended(&self) -> Timestamp {
        self.ended_at.unwrap_or(self.updated_at)
    }

    /// What the words that began it are known by, among words to its agents: their message, or, where they came
    /// by a command, their instant in milliseconds.
    #[must_use]
    pub fn words_key(&self) -> MessageId {
        let instant = || MessageId(u64::try_from(self.created_at.millis()).unwrap_or_default());
        self.reply_route.message_id.unwrap_or_else(instant)
    }

    /// Notes by what the role at work was chosen.
    pub fn chosen_by(&mut self, selection_source: SelectionSource) {
        self.routing_context = Some(RoutingContext { selected_role: None, selection_source });
    }

    /// What was spent on it against its budget.
    #[must_use]
    pub const fn purse(&self) -> Purse {
        let Spent { budget_raised: raised, budget_warned: warned, .. } = self.spent;
        Purse { used: self.usage, raised, warned }
    }

    /// What the request is for, where the sprint or the backlog made it and it does no todo.
    #[must_use]
    pub fn duty(&self) -> Option<Duty> {
        self.params.duty.as_ref().map(DutyDetails::duty)
    }

    /// The planning step that the request is for.
    #[must_use]
    pub fn planning_step(&self) -> Option<InitialStep> {
        self.params.duty.as_ref().and_then(DutyDetails::planning_step)
    }
}

/// The fingerprint of a request (`spec/teams.md` 4.2): sha-1 of `author|channel|intent|scope`, the
/// last two lowercased with white space collapsed.
#[must_use]
pub fn fingerprint(author: &str, channel: &str, intent: &str, scope: &str) -> String {
    use sha1::{Digest, Sha1};
    let flat = |text: &str| text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let digest = Sha1::digest(format!("{author}|{channel}|{}|{}", flat(intent), flat(scope)));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A duty that is known has to read whole; a word of another build is none.
fn known_duty<'de, D>(deserializer: D) -> Result<Option<DutyDetails>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let fields = Map::<String, Value>::deserialize(deserializer)?;
    let word =
        fields.get("duty").and_then(Value::as_str).and_then(|word| word.parse::<Duty>().ok());
    match word {
        Some(_) => DutyDetails::deserialize(Value::Object(fields))
            .map(Some)
            .map_err(serde::de::Error::custom),
        None => Ok(None),
    }
}

fn none_where_odd<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

fn role_or_empty<'de, D>(deserializer: D) -> Result<Option<Role>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.as_deref().and_then(Role::parse))
}

fn id_or_empty<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    match Option::<String>::deserialize(deserializer)? {
        Some(text) if !text.is_empty() => text.parse().map(Some).map_err(serde::de::Error::custom),
        Some(_) | None => Ok(None),
    }
}
