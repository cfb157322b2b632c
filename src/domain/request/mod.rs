//! A request: the unit that the workflow runs on (`spec/teams.md` 4.2).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::block::BlockCode;
use crate::domain::budget::{BudgetUse, Scope};
use crate::domain::ids::{ChannelId, ItemId, MessageId, RequestId, SprintId, TodoId, UserId};
use crate::domain::lifecycle::StepName;
use crate::domain::result::{ProposedItem, ResultStatus};
use crate::domain::role::Role;
use crate::domain::sprint::{Duty, DutyDetails, PlanningStep};
use crate::domain::text::flat;
use crate::domain::time::Timestamp;
use crate::domain::word::words;
use crate::domain::workflow::WorkflowState;

mod conversation;
mod event;
mod followup;
mod outcome;
mod route;
mod spent;
mod work;

pub use conversation::{ReplyRoute, RequestConversation, Room};
pub use event::{EventKind, RequestEvent};
pub use followup::Followup;
pub use outcome::{RequestOutcome, SkipDecision};
pub use route::{RequestRoute, RoutingContext, SelectionSource};
pub use spent::Spent;
pub use work::{Car, QaRemarks, RequestWork};

words! {
    /// Where a request stands.
    pub enum RequestStatus {
        /// Written down, nobody works on it yet.
        Queued = "queued",
        /// A role, the runtime or a gate has it.
        Delegated = "delegated",
        /// Answered or done without a commit.
        Completed = "completed",
        /// Waits for a person. What an older runtime could not bring to the branch does so too.
        #[serde(alias = "uncommitted")]
        Blocked = "blocked",
        /// Ended without success.
        Failed = "failed",
        /// Withdrawn by a person.
        Cancelled = "cancelled",
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
            Self::Queued | Self::Delegated | Self::Blocked => false,
        }
    }
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
    /// Who paused it; none where somebody is expected to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// The message that says so, with what may be pressed; none before it is posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<(ChannelId, MessageId)>,
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
    /// Whether somebody else than who asked has written to it, also where that was deleted: a role may have read it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub others_wrote: bool,
    /// Who of those has asked for something, also where that was deleted; a question asks for nothing.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub other_askers: BTreeSet<UserId>,
    /// Further words that no role has read yet, by [`Followup::key`]: nothing ends without them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread_words: Vec<MessageId>,
    /// The pieces of work that the person was asked about, or the one of them that it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// What people said, where the body is what the planner has made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persons_words: Option<String>,
    /// The same as items, where the planner proposed them.
    #[serde(deserialize_with = "ProposedItem::read_all", skip_serializing_if = "Vec::is_empty")]
    pub proposed_items: Vec<ProposedItem>,
    /// Whether a person has asked for a plan in several items, which nobody has made yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wants_items: bool,
    /// What people wrote into the room or as an answer since the request began, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub followups: Vec<Followup>,
    /// Who has written last that it is to end. Until somebody has answered, nobody begins to work on it, and nothing of it goes
    /// to the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_question: Option<EndQuestion>,
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

impl Params {
    /// Takes in further words, for the next run to read or the one at work to hear.
    pub fn take_in(&mut self, words: Followup) {
        self.unread(&words);
        self.others_wrote |= words.is_others;
        self.followups.push(words);
    }

    /// Nobody has read these words as they are now.
    pub fn unread(&mut self, words: &Followup) {
        if words.asks_for_something() && !self.unread_words.contains(&words.key()) {
            self.unread_words.push(words.key());
        }
    }

    /// Whether somebody wrote something that no role has read.
    #[must_use]
    pub const fn has_unread(&self) -> bool {
        self.unread_edit || !self.unread_words.is_empty()
    }

    /// Who has written that it is to end, where nobody has answered.
    #[must_use]
    pub fn open_end(&self) -> Option<&EndQuestion> {
        self.end_question.as_ref().filter(|it| !it.is_answered)
    }

    /// It goes on, and what was written besides is read.
    pub fn end_is_answered(&mut self) {
        let Some(asked) = self.end_question.as_mut().filter(|it| !it.is_answered) else { return };
        asked.is_answered = true;
        let message = Some(asked.message_id);
        let besides = self.followups.iter().find(|it| it.message_id == message);
        if let Some(words) = besides.filter(|it| it.heard_by.is_empty()).cloned() {
            self.unread(&words);
        }
    }

    /// Whoever reads on has all of it.
    pub fn all_read(&mut self) {
        self.unread_edit = false;
        self.unread_words.clear();
    }

    /// What a card that asks about these pieces is known by.
    #[must_use]
    pub fn parts_version(&self) -> u32 {
        use sha1::{Digest, Sha1};
        let digest = Sha1::digest(self.parts.join("\0"));
        digest.iter().take(4).fold(0, |all, byte| all << 8 | u32::from(*byte))
    }
}

/// Words that a request is to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndQuestion {
    /// Whose.
    pub author_id: UserId,
    /// The name that they went by.
    pub author_name: String,
    /// Where they stand.
    pub channel_id: ChannelId,
    /// The message.
    pub message_id: MessageId,
    /// Their beginning.
    pub words: String,
    /// By what an edit of them is told from none.
    pub digest: String,
    /// Whether somebody has said that it goes on.
    #[serde(default)]
    pub is_answered: bool,
    /// What would have begun meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldStep>,
}

/// A step that a role does not get before somebody has answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldStep {
    /// Whose.
    pub role: Role,
    /// Which; none for the orchestrator's intake.
    pub step: Option<StepName>,
    /// What the role is told about why.
    pub why: String,
}

impl EndQuestion {
    /// Who said what, in one line.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}: {}", self.author_name, self.words)
    }
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
    /// The sprint that it belongs to, if any.
    #[serde(deserialize_with = "id_or_empty")]
    pub sprint_id: Option<SprintId>,
    /// The backlog item, if any.
    #[serde(deserialize_with = "id_or_empty")]
    pub backlog_id: Option<ItemId>,
    /// The todo, if any.
    #[serde(deserialize_with = "id_or_empty")]
    pub todo_id: Option<TodoId>,
    /// When the record was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Sha-1 of who, where and what, for finding duplicates.
    pub fingerprint: String,
    /// Set while status is blocked.
    pub blocked: Option<Blocked>,
    /// Where it is talked about.
    #[serde(flatten)]
    pub conversation: RequestConversation,
    /// Who has it, and who had it.
    #[serde(flatten)]
    pub route: RequestRoute,
    /// What is being made, and what was spent on it.
    #[serde(flatten)]
    pub work: RequestWork,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: RequestOutcome,
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
            sprint_id: None,
            backlog_id: None,
            todo_id: None,
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
            fingerprint: String::new(),
            blocked: None,
            conversation: RequestConversation::default(),
            route: RequestRoute::default(),
            work: RequestWork::default(),
            outcome: RequestOutcome::default(),
        }
    }
}

impl Request {
    /// When it ended; older records only say when they last changed.
    #[must_use]
    pub fn ended(&self) -> Timestamp {
        self.outcome.ended_at.unwrap_or(self.updated_at)
    }

    /// What the words that began it are known by, among words to its agents: their message, or, where they came
    /// by a command, their instant in milliseconds.
    #[must_use]
    pub fn words_key(&self) -> MessageId {
        let instant = || MessageId(u64::try_from(self.created_at.millis()).unwrap_or_default());
        self.conversation.reply_route.message_id.unwrap_or_else(instant)
    }

    /// Notes by what the role at work was chosen.
    pub fn chosen_by(&mut self, selection_source: SelectionSource) {
        self.route.routing_context = Some(RoutingContext { selected_role: None, selection_source });
    }

    /// What was spent on it against its budget.
    #[must_use]
    pub const fn budget_use(&self) -> BudgetUse {
        let Spent { budget_raised: raised, budget_warned: warned, .. } = self.work.spent;
        BudgetUse { used: self.work.usage, raised, warned, declined: None }
    }

    /// Whether its change and the branch have not been brought together yet.
    #[must_use]
    pub fn has_open_conflict(&self) -> bool {
        let about = self.blocked.as_ref().is_some_and(|it| it.code.is_about_a_conflict());
        about || self.work.conflict.as_ref().is_some_and(|conflict| !conflict.solved)
    }

    /// Whether a change is made that does not come to the branch before a person acts.
    #[must_use]
    pub fn waits_with_its_change(&self) -> bool {
        let blocked = self.blocked.as_ref();
        let is_held = |it: &Blocked| it.code == BlockCode::EndQuestion && self.is_built();
        let waits = |it: &Blocked| it.code.is_about_the_commit() || is_held(it);
        blocked.is_some_and(|it| waits(it) || self.has_open_conflict())
    }

    /// Whether something was built that is to come to the branch. A change that the branch is in the way of has no commit
    /// until that is solved.
    #[must_use]
    pub const fn is_built(&self) -> bool {
        self.work.candidate.is_some() || self.work.conflict.is_some() || self.work.uncommitted
    }

    /// Whether people want something of the whole, so that it is not made several requests.
    #[must_use]
    pub const fn is_one_plan(&self) -> bool {
        self.todo_id.is_none()
            && (!self.work.persons_criteria.is_empty() || self.work.wants_changes)
    }

    /// Whether it waits, and nobody is expected to decide about it now.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.blocked.as_ref().is_some_and(|it| it.paused_by.is_some())
    }

    /// Whether its change was kept off the branch: it was made, and is not there.
    #[must_use]
    pub fn was_refused(&self) -> bool {
        self.status == RequestStatus::Completed
            && self.work.candidate.is_some()
            && self.outcome.commit_sha.is_none()
    }

    /// Whether the team has tried all that it may, and nothing is missing that a person could bring: people decide what
    /// becomes of it.
    #[must_use]
    pub fn has_given_up(&self) -> bool {
        let failed =
            || self.work.result.as_ref().is_some_and(|it| it.status == ResultStatus::Failed);
        self.status == RequestStatus::Blocked
            && self.blocked.as_ref().is_some_and(|blocked| {
                blocked.code.ends_all_attempts()
                    || (blocked.code == BlockCode::RoleBlocked && failed())
            })
    }

    /// What the request is for, where the sprint or the backlog made it and it does no todo.
    #[must_use]
    pub fn duty(&self) -> Option<Duty> {
        self.params.duty.as_ref().map(DutyDetails::duty)
    }

    /// The planning step that the request is for.
    #[must_use]
    pub fn planning_step(&self) -> Option<PlanningStep> {
        self.params.duty.as_ref().and_then(DutyDetails::planning_step)
    }
}

/// The fingerprint of a request (`spec/teams.md` 4.2): sha-1 of `author|channel|intent|scope`, the
/// last two lowercased with white space collapsed.
#[must_use]
pub fn fingerprint(author: &str, channel: &str, intent: &str, scope: &str) -> String {
    use sha1::{Digest, Sha1};
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
