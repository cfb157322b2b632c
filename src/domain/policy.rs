//! What the configuration lets the engine decide, reduced to what the rules need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::budget::{Budgets, PriceTable};
use crate::domain::check_proposal::CheckProposal;
use crate::domain::config::{AgentKind, CutoffTime, Zone};
use crate::domain::gate::Stance;
use crate::domain::guard::Guard;
use crate::domain::ids::{ChannelId, GuildId, ServerRoleId, UserId};
use crate::domain::intent::Intent;
use crate::domain::language::Language;
use crate::domain::lifecycle::Lifecycle;
use crate::domain::modes::{DiscoveryScope, PlanningMode, SprintMode, StartMode};
use crate::domain::role::Role;
use crate::domain::routes::{LaneChoice, LaneSource, Routes};
use crate::domain::run_by::FilePart;

/// What a person may do. Later ones include earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// Write to the team.
    Ask,
    /// Decide gates.
    Approve,
    /// Cancel what others asked, and everything else.
    Administer,
}

/// Who holds a right: people, and server roles each within its own server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holders {
    /// People.
    pub users: BTreeSet<UserId>,
    /// Server roles.
    pub roles: BTreeSet<(GuildId, ServerRoleId)>,
}

impl Holders {
    /// Mentions of them all, for people to read.
    pub fn mentions(&self) -> impl Iterator<Item = String> {
        let users = self.users.iter().map(|id| format!("<@{id}>"));
        users.chain(self.roles.iter().map(|(_, role)| format!("<@&{role}>")))
    }
}

/// A registered action (`spec/teams.md` 2.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionPolicy {
    /// The command, with `{name}` for parameters.
    pub command: Vec<String>,
    /// Whether the request waits for its end.
    pub foreground: bool,
    /// The domain it is filed under.
    pub domain: String,
    /// The parameters that may be given.
    pub allowed_params: BTreeSet<String>,
}

/// Limits of the loops of one request. Every loop of the workflow has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Attempts of one step before a person is asked, instead of what its lifecycle says.
    pub step_attempts: Option<u32>,
    /// Times in a row that a step is tried again after a rate limit before a person is asked.
    pub rate_limit_retries: u32,
    /// Seconds that a rate limit may ask to wait at most; for more a person is asked.
    pub rate_limit_wait_seconds: u64,
    /// Agent runs of one request.
    pub turns: u32,
    /// Times that failing checks send a request back, instead of what its lifecycle says.
    pub check_failures: Option<u32>,
    /// Reviews of one request, instead of what its lifecycle says.
    pub review_cycles: Option<u32>,
    /// Characters of a message that are taken in.
    pub message_chars: usize,
    /// Open requests of one person.
    pub open_requests_per_person: usize,
    /// Further messages to one request: each run reads them all.
    pub followups: usize,
    /// Agents that run at the same time.
    pub parallel_runs: usize,
    /// Changes that are proven at the same time.
    pub check_runs: usize,
    /// Whether fewer runs of an agent begin at the same time after its model's server refused some; not where a
    /// person says how many.
    pub follows_plan: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            step_attempts: None,
            rate_limit_retries: 5,
            rate_limit_wait_seconds: 3_600,
            turns: 40,
            check_failures: None,
            review_cycles: None,
            message_chars: 16_000,
            open_requests_per_person: 20,
            followups: 50,
            parallel_runs: 2,
            check_runs: 2,
            follows_plan: true,
        }
    }
}

/// Which commits of a train are proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prove {
    /// Every one, at its own tree.
    #[default]
    Each,
    /// The last one; those before it are proven through it.
    Tip,
}

/// How changes come to the branch that are ready at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainPolicy {
    /// Which commits are proven.
    pub prove: Prove,
    /// Changes that are composed one on the other at most.
    pub batch: usize,
}

impl Default for TrainPolicy {
    fn default() -> Self {
        Self { prove: Prove::default(), batch: 8 }
    }
}

/// How sprints begin, run and end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SprintPolicy {
    /// Minutes between slots.
    pub interval_minutes: u32,
    /// The zone of the slots.
    pub zone: Zone,
    /// What begins a sprint.
    pub mode: SprintMode,
    /// Whether the team begins sprints by itself.
    pub start_mode: StartMode,
    /// The end of the working day, in that zone; none where there is no end.
    pub cutoff: Option<CutoffTime>,
    /// Todos that are worked on at the same time.
    pub wip_limit: u32,
    /// Where findings are looked for.
    pub discovery_scope: DiscoveryScope,
    /// Actions that look for findings.
    pub discovery_actions: Vec<String>,
    /// Whether the research role may read the web.
    pub research: bool,
    /// Whether an ended sprint is brought to the issue tracker.
    pub publish: bool,
}

impl SprintPolicy {
    /// Seconds between slots.
    #[must_use]
    pub fn interval_seconds(&self) -> u64 {
        u64::from(self.interval_minutes) * 60
    }
}

impl Default for SprintPolicy {
    fn default() -> Self {
        Self {
            interval_minutes: 180,
            zone: Zone::default(),
            mode: SprintMode::default(),
            start_mode: StartMode::default(),
            cutoff: None,
            wip_limit: 1,
            discovery_scope: DiscoveryScope::default(),
            discovery_actions: Vec::new(),
            research: false,
            publish: false,
        }
    }
}

/// What needs a person, by what it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateTable {
    /// A commit that no check has proven.
    pub unproven_commit: Stance,
    /// A commit at which nothing fails but what fails at its base as well.
    pub red_base: Stance,
    /// A commit that touches what agents or checks run by.
    pub guarded_commit: Stance,
    /// A commit that touches paths that its item does not allow.
    #[serde(default)]
    pub scope: Stance,
    /// A commit that deletes a file that nobody spoke of.
    #[serde(default)]
    pub deletion: Stance,
    /// A commit that brings a file back that the branch has deleted.
    #[serde(default)]
    pub restored: Stance,
    /// A commit that undoes what a person committed meanwhile.
    #[serde(default)]
    pub overwritten: Stance,
    /// A commit that takes in a dependency that nobody spoke of.
    #[serde(default)]
    pub dependency: Stance,
    /// A commit that changes a lock file, and nothing that it follows from.
    #[serde(default)]
    pub lock_file: Stance,
    /// A commit with a binary file of more than `binary_kb`.
    #[serde(default)]
    pub binary: Stance,
    /// A commit that holds what looks like a secret.
    #[serde(default)]
    pub secret: Stance,
    /// A commit after which tests do not run that ran at its base.
    #[serde(default)]
    pub tests: Stance,
    /// A commit of which QA left a criterion to a person.
    #[serde(default)]
    pub unjudged: Stance,
    /// Preparing the dependencies of a change that alters what decides about them.
    #[serde(default)]
    pub prepare: Stance,
    /// Building what was planned for a request.
    #[serde(default)]
    pub plan: PlanStances,
    /// Building what was planned for a sprint; none where that goes by `plan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sprint_plan: Option<Stance>,
    /// Any other commit.
    pub commit: Stance,
    /// A registered action.
    pub action: Stance,
    /// Paths, folders and globs that are guarded besides what always is.
    pub guarded: Vec<String>,
    /// The words of the commands of checks and of `prepare`: a file that one of them names is guarded as well, in any folder
    /// where it begins with `./`.
    #[serde(default)]
    pub command_words: Vec<String>,
    /// Names of files by which these commands run, in any folder; a star stands for anything.
    #[serde(default)]
    pub guarded_names: BTreeSet<String>,
    /// Parts of files by which they run.
    #[serde(default)]
    pub guarded_parts: BTreeSet<FilePart>,
    /// The size from which a binary file is large.
    #[serde(default = "one_mebibyte")]
    pub binary_kb: u32,
    /// Hours after which no decision means no.
    pub wait_hours: u32,
}

/// Which plans wait for a person before anything of them is built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected `ask`, `allow` or `refuse`, or one of these for each intent, such as {feature: ask}"
)]
pub enum PlanStances {
    /// All alike.
    All(Stance),
    /// By the intent of their request; what is not named needs no person.
    ByIntent(BTreeMap<Intent, Stance>),
}

impl Default for PlanStances {
    fn default() -> Self {
        Self::All(Stance::Allow)
    }
}

impl PlanStances {
    /// What is settled for a request of this intent; for one of which nobody knows it, the strictest of all.
    #[must_use]
    pub fn of(&self, intent: Option<Intent>) -> Stance {
        match (self, intent) {
            (Self::All(stance), _) => *stance,
            (Self::ByIntent(all), Some(intent)) => {
                all.get(&intent).copied().unwrap_or(Stance::Allow)
            }
            (Self::ByIntent(all), None) => all
                .values()
                .copied()
                .min_by_key(|stance| stance.strictness())
                .unwrap_or(Stance::Allow),
        }
    }
}

const fn one_mebibyte() -> u32 {
    1_024
}

impl GateTable {
    /// What is settled about the plan of a request: by the stricter of what the rules and the orchestrator take it for,
    /// and of all where nobody is sure of that.
    #[must_use]
    pub fn of_plan(&self, lane: Option<LaneChoice>) -> Stance {
        let read = lane.map(|lane| [lane.by_rules, lane.by_orchestrator]).unwrap_or_default();
        let known = read.iter().flatten().map(|intent| self.plan.of(Some(*intent)));
        let is_unsure = lane.is_some_and(|lane| lane.source == LaneSource::Unsure);
        let known = known.chain(is_unsure.then(|| self.plan.of(None)));
        known.min_by_key(|stance| stance.strictness()).unwrap_or_else(|| self.plan.of(None))
    }

    /// What is settled about the plan of a sprint. What is settled for requests of some intent says nothing of it.
    #[must_use]
    pub const fn of_sprint_plan(&self) -> Stance {
        match (self.sprint_plan, &self.plan) {
            (Some(stance), _) => stance,
            (None, PlanStances::All(stance)) => *stance,
            (None, PlanStances::ByIntent(_)) => Stance::Allow,
        }
    }

    /// What is settled about what a guard finds.
    #[must_use]
    pub const fn of_guard(&self, guard: Guard) -> Stance {
        match guard {
            Guard::Machinery => self.guarded_commit,
            Guard::Scope => self.scope,
            Guard::Deletion => self.deletion,
            Guard::Restored => self.restored,
            Guard::Overwritten => self.overwritten,
            Guard::Dependency => self.dependency,
            Guard::LockFile => self.lock_file,
            Guard::Binary => self.binary,
            Guard::Secret => self.secret,
            Guard::Tests => self.tests,
            Guard::Unjudged => self.unjudged,
        }
    }
}

impl Default for GateTable {
    fn default() -> Self {
        Self {
            unproven_commit: Stance::Ask,
            red_base: Stance::Ask,
            guarded_commit: Stance::Ask,
            scope: Stance::Ask,
            deletion: Stance::Ask,
            restored: Stance::Ask,
            overwritten: Stance::Ask,
            dependency: Stance::Ask,
            lock_file: Stance::Ask,
            binary: Stance::Ask,
            secret: Stance::Ask,
            tests: Stance::Ask,
            unjudged: Stance::Ask,
            prepare: Stance::Ask,
            plan: PlanStances::default(),
            sprint_plan: None,
            commit: Stance::Allow,
            action: Stance::Allow,
            guarded: Vec::new(),
            command_words: Vec::new(),
            guarded_names: BTreeSet::new(),
            guarded_parts: BTreeSet::new(),
            binary_kb: one_mebibyte(),
            wait_hours: 168,
        }
    }
}

/// How somebody who may not ask is told so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalForm {
    /// By an answer in words.
    #[default]
    Reply,
    /// By a reaction to the message.
    Reaction,
    /// Not at all.
    Silent,
}

/// The engine's view of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The servers that the team lives in: what comes from another one counts for nothing.
    pub guilds: BTreeSet<GuildId>,
    /// Whether direct messages are taken.
    pub dm: bool,
    /// Whether mentions in channels are taken.
    pub mentions: bool,
    /// How somebody who may not ask is told so.
    pub refusals: RefusalForm,
    /// Who may do what.
    pub rights: BTreeMap<Right, Holders>,
    /// Whether somebody else has to decide what a person asked for.
    pub four_eyes: bool,
    /// What needs a person.
    pub gates: GateTable,
    /// Bots whose messages in the relay channel or to the team are heard.
    pub trusted_bots: BTreeSet<UserId>,
    /// The team's own bot users: never heard.
    pub own_ids: BTreeSet<UserId>,
    /// The relay channel.
    pub relay_channel: Option<ChannelId>,
    /// Registered actions by name.
    pub actions: BTreeMap<String, ActionPolicy>,
    /// The names of the configured checks.
    pub check_names: Vec<String>,
    /// What the project shows where none are configured.
    pub shown_checks: CheckProposal,
    /// SHA-256 of what is configured about them; evidence of others proves nothing.
    pub checks_digest: String,
    /// Whether the base is proven before a role gets a request.
    pub proves_base: bool,
    /// The project's name, for people.
    pub project: String,
    /// The agent of each role.
    pub agents: BTreeMap<Role, AgentKind>,
    /// The branch that finished work goes to.
    pub branch: String,
    /// The roles that this process serves.
    pub serves: BTreeSet<Role>,
    /// Whether whole envelopes are posted to the relay channel as well.
    pub relay_debug: bool,
    /// The language where a person's own is unknown.
    pub language: Language,
    /// How often something is tried.
    pub limits: Limits,
    /// Money and tokens.
    pub budgets: Budgets,
    /// What models cost.
    pub prices: PriceTable,
    /// Whether the planner asks.
    pub planning: PlanningMode,
    /// What requests go by that begin now.
    pub lifecycle: Arc<Lifecycle>,
    /// Which of its steps a request takes.
    pub routes: Arc<Routes>,
    /// How changes come to the branch.
    pub train: TrainPolicy,
    /// Sprints (`spec/teams.md` 9).
    pub sprint: SprintPolicy,
}

impl Policy {
    /// Whether checks are configured.
    #[must_use]
    pub const fn has_checks(&self) -> bool {
        !self.check_names.is_empty()
    }

    /// The agents in use, for people: `claude, codex`.
    #[must_use]
    pub fn agent_names(&self) -> String {
        let roles = Role::PUBLIC.into_iter();
        let kinds: BTreeSet<&str> =
            roles.filter_map(|role| Some(self.agents.get(&role)?.as_str())).collect();
        kinds.into_iter().collect::<Vec<_>>().join(", ")
    }
}
