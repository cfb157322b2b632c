//! Reading a workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::environment::{Environment, Tokens};
use super::error::ConfigError;
use super::yaml::{self, from_yaml};
use super::{
    DISCORD_FILE, POLICY_FILE, RESET_FILE, RUNTIME_FILE, lifecycle, policy_file, resolve, routes,
};
use crate::assets::{Lookup, RoleSpec};
use crate::domain::check_proposal::CheckProposal;
use crate::domain::config::{
    ActionMode, Capacity, Channels, DiscordConfig, Positive, Problem, RightHolders, RuntimeConfig,
};
use crate::domain::gate::Stance;
use crate::domain::ids::GuildId;
use crate::domain::lifecycle::Lifecycle;
use crate::domain::policy::{
    ActionPolicy, GateTable, Holders, Limits, Policy, Right, SprintPolicy,
};
use crate::domain::role::Role;
use crate::domain::routes::Routes;
use crate::domain::run_by::run_by;
use crate::platform::{files, machine};

/// A workspace whose files have been read and found right.
#[derive(Debug)]
pub struct Workspace {
    /// Its folder, absolute.
    pub root: PathBuf,
    /// `team_runtime.yaml`.
    pub runtime: RuntimeConfig,
    /// `discord_agents_config.yaml`.
    pub discord: DiscordConfig,
    /// What requests go by that begin from now on.
    pub lifecycle: Arc<Lifecycle>,
    /// Which of its steps they take.
    pub routes: Arc<Routes>,
    /// Reviews of one request, where `policy.yaml` says so.
    pub review_cycles: Option<u32>,
    /// Why `policy.yaml` is not in force, where it is there and wrong.
    pub policy_problem: Option<ConfigError>,
    /// Variables of the process and the nearest `.env`.
    pub environment: Environment,
}

/// Whether there is a workspace at `root`: one line says what is missing, and its hint what to do.
///
/// # Errors
/// [`ConfigError::NotAWorkspace`].
pub fn must_exist(root: &Path) -> Result<(), ConfigError> {
    if files::exists(&root.join(RESET_FILE)) {
        return Err(ConfigError::HalfReset { root: root.to_owned() });
    }
    for file in [RUNTIME_FILE, DISCORD_FILE] {
        match files::metadata(&root.join(file)) {
            Err(error) if error.is_missing() && !files::is_there(&root.join(file))? => {
                return Err(ConfigError::NotAWorkspace { root: root.to_owned(), file });
            }
            // One that may not be entered is no absent one.
            found => found?,
        };
    }
    Ok(())
}

/// Reads and checks both files, the lifecycle, the routes, the policy file and the nearest `.env`. Ids that the scaffold
/// wrote are let through here and refused by [`Workspace::refuse_placeholders`].
pub fn load(root: &Path) -> Result<Workspace, ConfigError> {
    must_exist(root)?;
    let runtime = read(&root.join(RUNTIME_FILE), RuntimeConfig::check)?;
    let discord = read(&root.join(DISCORD_FILE), DiscordConfig::check)?;
    with_config(root, runtime, discord)
}

/// The workspace with these two files, whatever they are at `root`.
pub(super) fn with_texts(
    root: &Path,
    discord: &str,
    runtime: &str,
) -> Result<Workspace, ConfigError> {
    let runtime = parse(&root.join(RUNTIME_FILE), runtime, RuntimeConfig::check)?;
    let discord = parse(&root.join(DISCORD_FILE), discord, DiscordConfig::check)?;
    with_config(root, runtime, discord)
}

fn with_config(
    root: &Path,
    runtime: RuntimeConfig,
    discord: DiscordConfig,
) -> Result<Workspace, ConfigError> {
    let (review_cycles, policy_problem) = policy_file::review_cycles(&root.join(POLICY_FILE));
    let lifecycle = lifecycle::read(root)?;
    runtime.profiles.check(&lifecycle).map_err(|problem| {
        let path = root.join(RUNTIME_FILE);
        let text = files::read_text(&path).unwrap_or_default();
        ConfigError::problem_in(&path, &text, problem)
    })?;
    Ok(Workspace {
        root: root.to_owned(),
        runtime,
        discord,
        routes: routes::read(root, &lifecycle)?,
        lifecycle,
        review_cycles,
        policy_problem,
        environment: Environment::read(root)?,
    })
}

/// Reads and checks `team_runtime.yaml` alone, as it is now.
pub fn read_runtime(root: &Path) -> Result<RuntimeConfig, ConfigError> {
    read(&root.join(RUNTIME_FILE), RuntimeConfig::check)
}

/// SHA-256 of what the outcome of checks depends on beside the commit.
#[must_use]
pub fn checks_digest(runtime: &RuntimeConfig) -> String {
    let RuntimeConfig { checks, carry, prepare, allow_unisolated_checks, sandbox, .. } = runtime;
    let all = (checks, carry, allow_unisolated_checks, &sandbox.readable);
    // Words, numbers and lists can always be written as JSON.
    let mut text = serde_json::to_vec(&all).unwrap_or_default();
    if !prepare.is_empty() {
        text.extend(serde_json::to_vec(prepare).unwrap_or_default());
    }
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One configuration file: size, syntax, types, then what only shows beside other values.
pub(super) fn read<T: DeserializeOwned>(
    path: &Path,
    check: fn(&T) -> Result<(), Problem>,
) -> Result<T, ConfigError> {
    parse(path, &yaml::text(path)?, check)
}

/// The same for a text that has been read already.
pub(super) fn parse<T: DeserializeOwned>(
    path: &Path,
    text: &str,
    check: fn(&T) -> Result<(), Problem>,
) -> Result<T, ConfigError> {
    let value: T = from_yaml(path, text)?;
    check(&value).map_err(|problem| ConfigError::problem_in(path, text, problem))?;
    Ok(value)
}

impl Workspace {
    /// The repository that the team works on.
    #[must_use]
    pub fn project_root(&self) -> PathBuf {
        match &self.runtime.project.path {
            Some(path) => resolve::resolve(Some(path), &self.root),
            None => resolve::project_default(&self.root),
        }
    }

    /// The branch that finished work goes to, where one is configured.
    #[must_use]
    pub fn branch(&self) -> Option<&str> {
        self.runtime.project.branch.as_ref().map(|name| name.as_str())
    }

    /// The team's own folder of state.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.root.join(".teams_runtime")
    }

    /// Roles, prompts and documents, with this workspace's overrides.
    #[must_use]
    pub fn lookup(&self) -> Lookup {
        Lookup::of_workspace(&self.root)
    }

    /// A role with this workspace's charter, model and reasoning.
    pub fn role(&self, role: Role) -> Result<RoleSpec, ConfigError> {
        let mut spec = self.lookup().role(role)?;
        if let Some(set) = self.runtime.role_defaults.get(&role) {
            if let Some(model) = &set.model {
                spec.model.clone_from(model);
            }
            if let Some(reasoning) = set.reasoning {
                spec.reasoning = reasoning;
            }
        }
        Ok(spec)
    }

    /// What needs a person, by this version of `team_runtime.yaml`. The files of the project that the commands of checks and
    /// of `prepare` name are what they run by, and so guarded: whatever is checked out, in a command of a shell as well.
    #[must_use]
    pub fn gates(&self, runtime: &RuntimeConfig) -> GateTable {
        let mut table = runtime.gates.table();
        let project = self.project_root();
        let checks = runtime.checks.iter().map(|check| (&check.command, None));
        // The files that decide what is prepared have a gate of their own.
        let prepare = runtime.prepare.iter().map(|it| (&it.command, Some(&it.files)));
        for (command, decide) in checks.chain(prepare) {
            let run_by = run_by(command.as_slice(), &project);
            let (names, parts) = match decide {
                None => run_by.of_check(),
                Some(_) => run_by.of_named(),
            };
            table.guarded_names.extend(names.into_iter().map(str::to_owned));
            table.guarded_parts.extend(parts);
            let has_gate = |word: &String| {
                table.prepare != Stance::Allow
                    && decide.into_iter().flatten().any(|file| file.as_str() == word)
            };
            let words = run_by.words.into_iter().filter(|word| !has_gate(word));
            table.command_words.extend(words);
        }
        table
    }

    /// How much goes on at the same time: as configured, or what the machine bears.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        let machine = machine::this();
        let usual = Capacity::of(machine.cores, machine.memory_gib);
        let own = |said: Option<Positive>, usual| said.map_or(usual, Positive::as_usize);
        let limits = &self.runtime.limits;
        Capacity {
            todos: own(self.runtime.sprint.wip_limit, usual.todos),
            runs: own(limits.parallel_runs, usual.runs),
            checks: own(limits.check_runs, usual.checks),
        }
    }

    /// The keys of [`Workspace::capacity`] that are configured; the others are what the machine bears.
    #[must_use]
    pub fn capacity_set(&self) -> Vec<&'static str> {
        let limits = &self.runtime.limits;
        let all = [
            ("sprint.wip_limit", self.runtime.sprint.wip_limit),
            ("limits.parallel_runs", limits.parallel_runs),
            ("limits.check_runs", limits.check_runs),
        ];
        all.into_iter().filter(|(_, said)| said.is_some()).map(|(key, _)| key).collect()
    }

    /// Who may do what, server roles in each of these servers.
    #[must_use]
    pub fn rights(&self, guilds: &BTreeSet<GuildId>) -> BTreeMap<Right, Holders> {
        let people = &self.runtime.people;
        let holders = |named: &RightHolders| Holders {
            users: named.users.clone(),
            roles: guilds
                .iter()
                .flat_map(|guild| named.roles.iter().map(|role| (*guild, *role)))
                .collect(),
        };
        let mut administer = holders(&people.administer);
        administer.users.extend(people.owner);
        BTreeMap::from([
            (Right::Ask, holders(&people.ask)),
            (Right::Approve, holders(&people.approve)),
            (Right::Administer, administer),
        ])
    }

    /// The servers that the team lives in, as far as the configuration names any.
    #[must_use]
    pub fn guilds(&self) -> BTreeSet<GuildId> {
        let allowed = self.runtime.allowed_guild_ids.clone();
        if allowed.is_empty() { self.discord.guild_id.into_iter().collect() } else { allowed }
    }

    /// The channels, with the values of variables.
    pub fn channels(&self) -> Result<Channels, ConfigError> {
        self.discord
            .channels(|name| self.environment.get(name))
            .map_err(|problem| self.in_discord_file(problem))
    }

    /// The bots' tokens; the error names the variable that is missing.
    pub fn tokens(&self) -> Result<Tokens, ConfigError> {
        self.environment.tokens(&self.discord)
    }

    /// Refuses the example ids of the scaffold, unless `TEAMS_RUNTIME_ALLOW_PLACEHOLDER_IDS` is set
    /// (`spec/teams.md` C16).
    pub fn refuse_placeholders(&self) -> Result<(), ConfigError> {
        let allowed = self
            .environment
            .get("TEAMS_RUNTIME_ALLOW_PLACEHOLDER_IDS")
            .is_some_and(|value| !matches!(value.to_lowercase().as_str(), "0" | "false" | "no"));
        if allowed {
            return Ok(());
        }
        self.discord.refuse_placeholders().map_err(|problem| self.in_discord_file(problem))
    }

    fn in_discord_file(&self, problem: Problem) -> ConfigError {
        let path = self.root.join(DISCORD_FILE);
        let text = files::read_text(&path).unwrap_or_default();
        ConfigError::problem_in(&path, &text, problem)
    }

    /// What the engine may decide. The caller adds what only it knows: the ids of the bots that
    /// logged in, and the checked-out branch where [`Workspace::branch`] is `None`.
    pub fn policy(&self, serves: BTreeSet<Role>, relay_debug: bool) -> Result<Policy, ConfigError> {
        let runtime = &self.runtime;
        let guilds = self.guilds();
        let rights = self.rights(&guilds);
        let actions = runtime
            .actions
            .iter()
            .map(|(name, action)| {
                let policy = ActionPolicy {
                    command: action.command.as_slice().to_vec(),
                    foreground: action.lifecycle == ActionMode::Foreground,
                    domain: action.domain.clone(),
                    allowed_params: action.allowed_params.clone(),
                };
                (name.clone(), policy)
            })
            .collect();
        let capacity = self.capacity();
        let limits = runtime.limits.apply(Limits {
            review_cycles: self.review_cycles,
            parallel_runs: capacity.runs,
            check_runs: capacity.checks,
            ..Limits::default()
        });
        Ok(Policy {
            guilds,
            dm: runtime.ingress.dm,
            mentions: runtime.ingress.mentions,
            refusals: runtime.refusals,
            rights,
            four_eyes: runtime.people.four_eyes,
            gates: self.gates(runtime),
            trusted_bots: self.discord.trusted_bot_ids.clone(),
            own_ids: self.discord.own_ids(),
            relay_channel: Some(self.channels()?.relay),
            actions,
            check_names: runtime.checks.iter().map(|check| check.name.clone()).collect(),
            shown_checks: CheckProposal::default(),
            checks_digest: checks_digest(runtime),
            proves_base: runtime.prove_base,
            project: self
                .project_root()
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            agents: Role::ALL.map(|role| (role, runtime.agents.of(role))).into(),
            branch: self.branch().unwrap_or("main").to_owned(),
            serves,
            relay_debug,
            language: runtime.language,
            limits,
            budgets: runtime.budgets.clone(),
            prices: runtime.prices.clone(),
            planning: runtime.planning.mode,
            lifecycle: Arc::clone(&self.lifecycle),
            routes: Arc::clone(&self.routes),
            train: runtime.train.policy(),
            sprint: SprintPolicy {
                interval_minutes: runtime.sprint.interval_minutes.get(),
                zone: runtime.sprint.timezone,
                mode: runtime.sprint.mode,
                start_mode: runtime.sprint.start_mode,
                cutoff: runtime.sprint.cutoff_time.clone(),
                wip_limit: u32::try_from(capacity.todos).unwrap_or(u32::MAX),
                discovery_scope: runtime.sprint.discovery_scope,
                discovery_actions: runtime.sprint.discovery_actions.clone(),
                research: runtime.research_defaults.web,
                publish: runtime.sprint.publish_issues,
            },
        })
    }
}
