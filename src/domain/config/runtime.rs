//! `team_runtime.yaml` (`spec/teams.md` 2.2, and this team's own keys).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use super::limits::{self, LimitsConfig};
use super::values::{
    Argv, BranchName, CarriedFolder, CommitEmail, CommitName, CutoffTime, EnvName, FilterName,
    IntervalMinutes, JunitReport, OutsidePath, Positive, ProjectPath, TrailerName, TrailerText,
    Zone, names_a_secret,
};
use super::{AgentsConfig, ModelServer, Problem, ProfilesConfig, RoleDefaults, SandboxConfig};
use crate::domain::budget::{Budgets, PriceTable};
use crate::domain::gate::Stance;
use crate::domain::ids::{GuildId, ServerRoleId, UserId};
use crate::domain::language::Language;
use crate::domain::modes::{DiscoveryScope, PlanningMode, SprintMode, StartMode};
use crate::domain::path_glob;
use crate::domain::policy::{GateTable, PlanStances, Prove, RefusalForm, TrainPolicy};
use crate::domain::role::Role;

/// Author and committer of the team's commits. Dates are told in the zone of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Commits {
    /// The name.
    pub name: CommitName,
    /// The address.
    pub email: CommitEmail,
    /// By what they are signed.
    pub sign: Signing,
    /// Lines at the end of their messages.
    pub trailers: BTreeMap<TrailerName, TrailerText>,
}

/// How requests are planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Planning {
    /// Whether the planner asks what a request leaves open.
    pub mode: PlanningMode,
}

/// How changes come to the branch that are ready at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Train {
    /// Which of their commits are proven.
    pub prove: Prove,
    /// How many are composed one on the other at most.
    pub batch: Option<Positive>,
}

impl Train {
    /// The same for the engine.
    #[must_use]
    pub fn policy(self) -> TrainPolicy {
        let usual = TrainPolicy::default();
        let batch = self.batch.map(|it| usize::try_from(it.get()).unwrap_or(usize::MAX));
        TrainPolicy { prove: self.prove, batch: batch.unwrap_or(usual.batch) }
    }
}

/// By what commits are signed; git itself does it, with the key that its settings name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signing {
    /// They are not.
    #[default]
    Off,
    /// A key of SSH.
    Ssh,
    /// GnuPG.
    Gpg,
}

/// The whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeConfig {
    /// Sprints.
    pub sprint: Sprint,
    /// What is listened to.
    #[serde(default)]
    pub ingress: Ingress,
    /// How somebody who may not ask is told so.
    #[serde(default)]
    pub refusals: RefusalForm,
    /// Servers whose messages count; empty means the one of the Discord configuration, or any.
    #[serde(default)]
    pub allowed_guild_ids: BTreeSet<GuildId>,
    /// Model and reasoning of a role.
    #[serde(default)]
    pub role_defaults: BTreeMap<Role, RoleDefaults>,
    /// What research may do: `web` opens the network to it. The rest is of the older runtime, kept so that its files open.
    #[serde(default)]
    pub research_defaults: ResearchDefaults,
    /// Commands that people may ask for by name.
    #[serde(default)]
    pub actions: BTreeMap<String, Action>,
    /// The repository.
    #[serde(default)]
    pub project: Project,
    /// What must pass before work is done, in order.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Whether the checks are run at the base before a request begins, once a tree.
    #[serde(default = "yes")]
    pub prove_base: bool,
    /// What is made once for each state of a project's dependencies, and given to checks and agents.
    #[serde(default)]
    pub prepare: Vec<Prepare>,
    /// Folders of the person's checkout that git ignores and that checks may read: dependencies.
    #[serde(default)]
    pub carry: Vec<CarriedFolder>,
    /// Whether checks may run where this machine cannot give them a view of the files of their own.
    #[serde(default)]
    pub allow_unisolated_checks: bool,
    /// Who the author of the team's commits is.
    #[serde(default)]
    pub commits: Commits,
    /// Who may do what.
    #[serde(default)]
    pub people: People,
    /// What needs a person.
    #[serde(default)]
    pub gates: Gates,
    /// What becomes of what a request leaves open.
    #[serde(default)]
    pub planning: Planning,
    /// How changes come to the branch that are ready at the same time.
    #[serde(default)]
    pub train: Train,
    /// Which agents work.
    #[serde(default)]
    pub agents: AgentsConfig,
    /// Model servers, by name.
    #[serde(default)]
    pub models: BTreeMap<String, ModelServer>,
    /// How strong the models are.
    #[serde(default)]
    pub profiles: ProfilesConfig,
    /// What agents may see of this machine.
    #[serde(default)]
    pub sandbox: SandboxConfig,
    /// How often something is tried, and how long.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// How long what has ended is kept.
    #[serde(default)]
    pub retention: RetentionConfig,
    /// Money and tokens.
    #[serde(default)]
    pub budgets: Budgets,
    /// What models cost.
    #[serde(default)]
    pub prices: PriceTable,
    /// The language where a person's own is unknown.
    #[serde(default)]
    pub language: Language,
    /// Gone since approvals are bound to people: its presence is an error.
    #[serde(default, skip_serializing, deserialize_with = "approval_is_gone")]
    pub approval: (),
}

const fn yes() -> bool {
    true
}

fn approval_is_gone<'de, D: Deserializer<'de>>(_: D) -> Result<(), D::Error> {
    Err(serde::de::Error::custom(
        "`approval` is no longer read; who may decide stands under `people.approve`",
    ))
}

fn approval_required_is_gone<'de, D: Deserializer<'de>>(_: D) -> Result<(), D::Error> {
    Err(serde::de::Error::custom(
        "`approval_required` is no longer read; who may decide stands under `people.approve`",
    ))
}

/// `retention:`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Days that ended requests, their histories, gates and operations, and messages that the roles have read have files
    /// of their own. Then they are packed.
    pub files_days: Positive,
    /// Days that packs are kept.
    pub packs_days: Positive,
    /// Megabytes that packs may have together; beyond, the oldest go.
    pub packs_mb: Positive,
    /// Days that work which was not used is kept under `refs/teams/lost/` in the project.
    pub lost_days: Positive,
    /// Days that branches of ended requests are kept of which nothing is left to bring to the project's branch.
    pub branches_days: Positive,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            files_days: Positive::new(30),
            packs_days: Positive::new(365),
            packs_mb: Positive::new(500),
            lost_days: Positive::new(30),
            branches_days: Positive::new(30),
        }
    }
}

/// What happens when a slot comes in a running sprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// It waits.
    #[default]
    NoOverlap,
}

/// Where requests go first; read, and without effect (`spec/teams.md` 13.F #75).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IngressMode {
    /// Into the backlog.
    #[default]
    BacklogFirst,
    /// To work when nothing else runs.
    ImmediateIfIdle,
    /// Both.
    DualPath,
}

/// `sprint:`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sprint {
    /// The scope of agent sessions outside a sprint; not empty.
    pub id: String,
    /// The slot grid; an absent or empty value means 180.
    #[serde(default, deserialize_with = "null_is_default")]
    pub interval_minutes: IntervalMinutes,
    /// The zone of the slot grid.
    #[serde(default)]
    pub timezone: Zone,
    /// How sprints begin.
    #[serde(default)]
    pub mode: SprintMode,
    /// Who starts them.
    #[serde(default)]
    pub start_mode: StartMode,
    /// The end of the working day, in `timezone`.
    #[serde(default = "ten_in_the_evening")]
    pub cutoff_time: Option<CutoffTime>,
    /// What happens to a slot in a running sprint.
    #[serde(default)]
    pub overlap_policy: OverlapPolicy,
    /// Where requests go first.
    #[serde(default)]
    pub ingress_mode: IngressMode,
    /// Where candidate work is looked for.
    #[serde(default)]
    pub discovery_scope: DiscoveryScope,
    /// Actions that look for it.
    #[serde(default)]
    pub discovery_actions: Vec<String>,
    /// Todos that are worked on at the same time; what the machine bears where absent.
    #[serde(default)]
    pub wip_limit: Option<Positive>,
    /// Whether an ended sprint is brought to GitHub issues by `gh`.
    #[serde(default)]
    pub publish_issues: bool,
}

fn ten_in_the_evening() -> Option<CutoffTime> {
    CutoffTime::try_from("22:00".to_owned()).ok()
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// `ingress:`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ingress {
    /// Direct messages.
    pub dm: bool,
    /// Mentions in channels.
    pub mentions: bool,
}

impl Default for Ingress {
    fn default() -> Self {
        Self { dm: true, mentions: true }
    }
}

/// `research_defaults:`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResearchDefaults {
    /// Label of the browser app.
    pub app: Option<String>,
    /// Notebook.
    pub notebook: Option<String>,
    /// Files to give along.
    pub files: Vec<String>,
    /// Mode; may be empty.
    pub mode: Option<String>,
    /// Browser profile; may be empty.
    pub profile_path: Option<String>,
    /// Seconds until the report must be complete.
    pub completion_timeout: Seconds,
    /// Seconds until an answer must come back.
    pub callback_timeout: Seconds,
    /// Whether to clean up afterwards.
    pub cleanup: bool,
    /// Whether the research role may read the web.
    pub web: bool,
}

impl Default for ResearchDefaults {
    fn default() -> Self {
        Self {
            app: None,
            notebook: None,
            files: Vec::new(),
            mode: None,
            profile_path: None,
            completion_timeout: Seconds(600.0),
            callback_timeout: Seconds(1_200.0),
            cleanup: false,
            web: false,
        }
    }
}

/// Seconds above zero; older files may have fractions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Seconds(f64);

impl TryFrom<f64> for Seconds {
    type Error = String;
    fn try_from(seconds: f64) -> Result<Self, String> {
        if seconds.is_finite() && seconds > 0.0 {
            Ok(Self(seconds))
        } else {
            Err(format!("expected seconds above 0, found {seconds}"))
        }
    }
}

impl From<Seconds> for f64 {
    fn from(seconds: Seconds) -> f64 {
        seconds.0
    }
}

/// Whether a request waits for the end of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionMode {
    /// It waits.
    #[default]
    Foreground,
    /// It does not.
    Managed,
}

/// `actions.<name>`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// The command; `{name}` stands for a parameter.
    pub command: Argv,
    /// Whether the request waits.
    #[serde(default)]
    pub lifecycle: ActionMode,
    /// What it is filed under.
    #[serde(default = "other_domain")]
    pub domain: String,
    /// Parameters that may be given.
    #[serde(default)]
    pub allowed_params: BTreeSet<String>,
    /// Gone: its presence is an error.
    #[serde(default, skip_serializing, deserialize_with = "approval_required_is_gone")]
    pub approval_required: (),
}

fn other_domain() -> String {
    // The word that existing records of the older runtime are filed under.
    "기타".to_owned()
}

/// `project:`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Project {
    /// The repository; relative to the workspace. Absent: `spec/teams.md` 1.3.
    pub path: Option<PathBuf>,
    /// The branch that finished work goes to. Absent: the one that is checked out.
    pub branch: Option<BranchName>,
    /// Filters of git's attributes that may be run. Paths with others are left as git stores them.
    pub filters: BTreeSet<FilterName>,
}

/// Which network a check has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckNetwork {
    /// A loopback of its own.
    #[default]
    Off,
    /// The machine's.
    Host,
}

impl CheckNetwork {
    const fn host() -> Self {
        Self::Host
    }
}

/// One entry of `checks:`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its name, for people.
    pub name: String,
    /// The command, run at the top of a clean checkout.
    pub command: Argv,
    /// Seconds until it is ended.
    #[serde(default = "ten_minutes")]
    pub timeout_seconds: Positive,
    /// Kilobytes of output that are kept.
    #[serde(default = "one_megabyte")]
    pub output_limit_kb: Positive,
    /// Which network it has.
    #[serde(default)]
    pub network: CheckNetwork,
    /// Added to its environment. No secrets: whatever the change holds can read them.
    #[serde(default)]
    pub env: BTreeMap<EnvName, String>,
    /// What it may read beside the system, the tools and its tree.
    #[serde(default)]
    pub read: Vec<OutsidePath>,
    /// The report that it writes about its tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<JunitReport>,
}

fn ten_minutes() -> Positive {
    Positive::new(600)
}

fn one_megabyte() -> Positive {
    Positive::new(1_024)
}

/// One entry of `prepare:`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// Its name, for people.
    pub name: String,
    /// The command, run at the top of a clean checkout.
    pub command: Argv,
    /// The files and folders of the project that decide what it makes: lock files and manifests.
    pub files: Vec<ProjectPath>,
    /// Seconds until it is ended.
    #[serde(default = "half_an_hour")]
    pub timeout_seconds: Positive,
    /// Which network it has.
    #[serde(default = "CheckNetwork::host")]
    pub network: CheckNetwork,
    /// Added to its environment. No secrets.
    #[serde(default)]
    pub env: BTreeMap<EnvName, String>,
    /// Variables of the team's environment or of its `.env` that it alone is given: keys of private registries.
    #[serde(default)]
    pub secrets: BTreeSet<EnvName>,
    /// What it may read beside the system, the tools and its tree.
    #[serde(default)]
    pub read: Vec<OutsidePath>,
}

fn half_an_hour() -> Positive {
    Positive::new(1_800)
}

/// `people:`. Nobody may do anything until named here; the owner may do everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct People {
    /// Set by `teams init --owner`.
    pub owner: Option<UserId>,
    /// Who may write to the team.
    pub ask: RightHolders,
    /// Who may decide gates.
    pub approve: RightHolders,
    /// Who may cancel what others asked.
    pub administer: RightHolders,
    /// Whether somebody else has to approve what a person asked for.
    pub four_eyes: bool,
}

/// `gates:`. What is absent has the engine's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gates {
    /// A commit that no check has proven.
    pub unproven_commit: Option<Stance>,
    /// A commit at which nothing fails but what fails at its base as well.
    pub red_base: Option<Stance>,
    /// A commit that touches what agents or checks run by.
    pub guarded_commit: Option<Stance>,
    /// A commit that touches paths that its item does not allow.
    pub scope: Option<Stance>,
    /// A commit that deletes a file that nobody spoke of.
    pub deletion: Option<Stance>,
    /// A commit that brings a file back that the branch has deleted.
    pub restored: Option<Stance>,
    /// A commit that undoes what a person committed meanwhile.
    pub overwritten: Option<Stance>,
    /// A commit that takes in a dependency that nobody spoke of.
    pub dependency: Option<Stance>,
    /// A commit that changes a lock file, and nothing that it follows from.
    pub lock_file: Option<Stance>,
    /// A commit with a binary file of more than `binary_kb`.
    pub binary: Option<Stance>,
    /// A commit that holds what looks like a secret.
    pub secret: Option<Stance>,
    /// A commit after which tests do not run that ran at its base.
    pub tests: Option<Stance>,
    /// A commit of which QA left a criterion to a person.
    pub unjudged: Option<Stance>,
    /// Preparing the dependencies of a change that alters what `prepare` depends on.
    pub prepare: Option<Stance>,
    /// Building what was planned for a request: one word, or one for each intent.
    pub plan: Option<PlanStances>,
    /// Building what was planned for a sprint; where it is not said, `plan` counts, if that is one word.
    pub sprint_plan: Option<Stance>,
    /// Any other commit.
    pub commit: Option<Stance>,
    /// A registered action.
    pub action: Option<Stance>,
    /// Paths, folders and globs that are guarded besides what always is.
    pub guarded: Vec<String>,
    /// The size from which a binary file is large.
    pub binary_kb: Option<Positive>,
    /// Hours after which no decision means no.
    pub wait_hours: Option<Positive>,
}

impl Gates {
    /// The whole table.
    #[must_use]
    pub fn table(&self) -> GateTable {
        let usual = GateTable::default();
        GateTable {
            unproven_commit: self.unproven_commit.unwrap_or(usual.unproven_commit),
            red_base: self.red_base.unwrap_or(usual.red_base),
            guarded_commit: self.guarded_commit.unwrap_or(usual.guarded_commit),
            scope: self.scope.unwrap_or(usual.scope),
            deletion: self.deletion.unwrap_or(usual.deletion),
            restored: self.restored.unwrap_or(usual.restored),
            overwritten: self.overwritten.unwrap_or(usual.overwritten),
            dependency: self.dependency.unwrap_or(usual.dependency),
            lock_file: self.lock_file.unwrap_or(usual.lock_file),
            binary: self.binary.unwrap_or(usual.binary),
            secret: self.secret.unwrap_or(usual.secret),
            tests: self.tests.unwrap_or(usual.tests),
            unjudged: self.unjudged.unwrap_or(usual.unjudged),
            prepare: self.prepare.unwrap_or(usual.prepare),
            plan: self.plan.clone().unwrap_or(usual.plan),
            sprint_plan: self.sprint_plan,
            commit: self.commit.unwrap_or(usual.commit),
            action: self.action.unwrap_or(usual.action),
            guarded: self.guarded.clone(),
            command_words: usual.command_words,
            guarded_names: usual.guarded_names,
            guarded_parts: usual.guarded_parts,
            binary_kb: self.binary_kb.map_or(usual.binary_kb, Positive::as_u32),
            wait_hours: self.wait_hours.map_or(usual.wait_hours, Positive::as_u32),
        }
    }
}

/// People and server roles that are named for a right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RightHolders {
    /// People.
    pub users: BTreeSet<UserId>,
    /// Roles of the server that the team lives in.
    pub roles: BTreeSet<ServerRoleId>,
}

impl RuntimeConfig {
    /// What is wrong only beside other values.
    pub fn check(&self) -> Result<(), Problem> {
        if self.sprint.id.trim().is_empty() {
            return Err(Problem::at("sprint.id", "is empty")
                .hint("any short name will do, such as \"main\""));
        }
        for (index, name) in self.sprint.discovery_actions.iter().enumerate() {
            if !self.actions.contains_key(name) {
                let key = format!("sprint.discovery_actions.{index}");
                return Err(Problem::at(&key, format!("no action is called {name:?}"))
                    .hint("add it under `actions`, or take it out of the list"));
            }
        }
        for (index, entry) in self.gates.guarded.iter().enumerate() {
            if let Some(fault) = path_glob::fault(entry) {
                return Err(Problem::at(&format!("gates.guarded.{index}"), fault).hint(
                    "name a path, a folder or a glob in the project, such as deploy/ or *.tf",
                ));
            }
        }
        let acp = &self.agents.acp;
        let is_told = acp.env.values().any(|value| value.contains("{model}"));
        if acp.model.is_some() && acp.server.is_none() && acp.model_url.is_none() && !is_told {
            return Err(Problem::at(
                "agents.acp.model",
                "no server is named that could be asked for it",
            )
            .hint(
                "name an entry of `models` in agents.acp.server, put {model} into agents.acp.env, or leave the model to the agent",
            ));
        }
        limits::check_limits(&self.limits)?;
        limits::check_money(&self.budgets, &self.prices)?;
        for name in self.models.keys() {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                let key = format!("models.{name}");
                return Err(Problem::at(&key, "its name is more than letters, digits, - and _"));
            }
        }
        let mut names = BTreeSet::new();
        for (index, check) in self.checks.iter().enumerate() {
            let key = format!("checks.{index}.name");
            if check.name.trim().is_empty() {
                return Err(Problem::at(&key, "is empty"));
            }
            if !names.insert(check.name.as_str()) {
                let message = format!("another check is called {:?} already", check.name);
                return Err(Problem::at(&key, message));
            }
            if let Some(name) = check.env.keys().find(|name| names_a_secret(name.as_str())) {
                let key = format!("checks.{index}.env.{name}");
                let message = "is named like a secret, and whatever a change holds could read it";
                return Err(Problem::at(&key, message)
                    .hint("let the check do without it, or give it a value made up for tests under another name"));
            }
        }
        let mut prepared = BTreeSet::new();
        for (index, prepare) in self.prepare.iter().enumerate() {
            let key = format!("prepare.{index}");
            if prepare.name.trim().is_empty() {
                return Err(Problem::at(&format!("{key}.name"), "is empty"));
            }
            if !prepared.insert(prepare.name.as_str()) {
                let message = format!("another entry is called {:?} already", prepare.name);
                return Err(Problem::at(&format!("{key}.name"), message));
            }
            if prepare.files.is_empty() {
                return Err(Problem::at(&format!("{key}.files"), "is empty")
                    .hint("name the lock file and the manifest that decide what it makes, such as uv.lock"));
            }
            if let Some(name) = prepare.env.keys().find(|name| names_a_secret(name.as_str())) {
                let message = "is named like a secret";
                return Err(Problem::at(&format!("{key}.env.{name}"), message)
                    .hint("put its value into the team's .env, and its name under `secrets`"));
            }
        }
        for (index, folder) in self.carry.iter().enumerate() {
            if self.carry[..index].contains(folder) {
                let key = format!("carry.{index}");
                return Err(Problem::at(&key, format!("{folder} is in the list already")));
            }
        }
        Ok(())
    }
}
