//! The steps, in their order.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::requirements;
use super::{DISCORD, Options, Outcome, SetupDialog, SetupError, SetupStep, journal, local, lock};
use crate::discord::endpoints::SeenUser;
use crate::discord::error::RestError;
use crate::discord::rest::{Pool, Rest};
use crate::discord::setup::permissions::{self, Permission};
use crate::discord::setup::{
    Application, Builder, Journal, ServerObject, ServerRequirements, ServerSnapshot, Standing,
    intents,
};
use crate::domain::config::Voice;
use crate::domain::ids::UserId;
use crate::domain::role::Role;
use crate::local_guild::GuildInfo;
use crate::onboarding::{open_project, place_outside, proposals};
use crate::platform::{files, full_disk, redact};
use crate::workspace::settings::{self, ConfigFile, Setting};
use crate::workspace::{self, Origin, Workspace, init, secrets};

/// Sets up; see the module.
pub async fn setup<'a>(
    options: &'a Options,
    mut dialog: SetupDialog<'a>,
) -> Result<(), SetupError> {
    refuse_doubles(options)?;
    let branch = refuse_project(options)?;
    let _alone = if options.dry_run { None } else { Some(prepare(options, &branch, &mut dialog)?) };
    let root = &options.root;
    let workspace = match (workspace::is_workspace(root), options.dry_run) {
        (false, true) => blank(options, &mut dialog)?,
        (true | false, _) => workspace::load(root)?,
    };
    let mut steps = Steps::begin(options, workspace, dialog).await?;
    steps.intents().await?;
    steps.bots().await?;
    let Some(guild) = steps.server().await? else {
        return Ok(());
    };
    let Some((seen, wanted)) = steps.permissions(guild).await? else {
        return Ok(());
    };
    steps.bots_join(guild).await?;
    if !options.dry_run {
        steps.write_config(&seen, &wanted)?;
    }
    let seen = steps.things(seen, &wanted).await?;
    steps.config(&seen, &wanted)?;
    steps.checks()?;
    steps.ready(&seen, &wanted);
    Ok(())
}

/// A token belongs to one bot, and a bot to one role. Seen before anything is made.
fn refuse_doubles(options: &Options) -> Result<(), SetupError> {
    let mut seen: Vec<(Role, String)> = Vec::new();
    for (role, token) in &options.tokens {
        let token = clean(token)?.expose_secret().to_owned();
        if let Some((one, _)) = seen.iter().find(|(_, other)| *other == token) {
            return Err(SetupError::SameBot { one: *one, other: *role });
        }
        seen.push((*role, token));
    }
    Ok(())
}

/// A project in which the team could not begin is refused before anything is made, in the words of `teams run`.
fn refuse_project(options: &Options) -> Result<String, SetupError> {
    let root = &options.root;
    if workspace::is_workspace(root) {
        return Ok(open_project(&workspace::load(root)?)?.branch().to_owned());
    }
    let project = open_project(&imagined(options)?)?;
    project.refuse_unready()?;
    let place = root.ancestors().find(|at| files::exists(at)).unwrap_or(root);
    let mut disks = [place, project.common_dir()].into_iter();
    if let Some(full) = disks.find(|disk| full_disk::is_nearly_full(disk)) {
        return Err(full_disk::no_room(full).into());
    }
    Ok(project.branch().to_owned())
}

/// The workspace that would be written.
fn imagined(options: &Options) -> Result<Workspace, SetupError> {
    Ok(workspace::imagine(&options.root, &written(options, None))?)
}

/// What a new workspace is made from.
fn written(options: &Options, branch: Option<&str>) -> init::Options {
    init::Options {
        project: options.project.clone(),
        branch: branch.map(str::to_owned),
        owner: options.owner,
        agent: options.agent,
        acp_command: options.acp_command.clone(),
        language: options.language,
        ..init::Options::default()
    }
}

/// Keeps others out, and writes the workspace where there is none.
fn prepare(
    options: &Options,
    branch: &str,
    dialog: &mut SetupDialog<'_>,
) -> Result<Box<dyn crate::platform::disk::FileLock>, SetupError> {
    let root = &options.root;
    let place = json!({"path": root.display().to_string()});
    if workspace::is_workspace(root) {
        (dialog.tell)(SetupStep::new("workspace", Outcome::Kept, "setup.workspace.kept", place));
        return lock(root);
    }
    init::init(root, &written(options, Some(branch)))?;
    (dialog.tell)(SetupStep::new("workspace", Outcome::Done, "setup.workspace.done", place));
    let workspace = workspace::load(root)?;
    let project = workspace.project_root();
    if let Some(outside) = place_outside(root, &project) {
        let values = json!({
            "path": root.display().to_string(),
            "project": project.display().to_string(),
            "outside": outside.display().to_string(),
        });
        (dialog.tell)(SetupStep::new("place", Outcome::Open, "setup.workspace.inside", values));
    }
    let opened = open_project(&workspace)?;
    let filters = opened.filters_missing()?;
    if !filters.is_empty() {
        let values = json!({ "filters": filters });
        (dialog.tell)(SetupStep::new("filters", Outcome::Open, "setup.filters.missing", values));
    }
    let missing = opened.submodules_missing()?;
    if !missing.is_empty() {
        let values = json!({ "path": project.display().to_string(), "missing": missing });
        (dialog.tell)(SetupStep::new(
            "submodules",
            Outcome::Open,
            "setup.submodules.missing",
            values,
        ));
    }
    lock(root)
}

/// The workspace that would be written, for a dry run without one.
fn blank(options: &Options, dialog: &mut SetupDialog<'_>) -> Result<Workspace, SetupError> {
    let place = json!({"path": options.root.display().to_string()});
    (dialog.tell)(SetupStep::new("workspace", Outcome::Planned, "setup.workspace.planned", place));
    imagined(options)
}

/// The bot of a role.
pub(super) struct RoleBot {
    pub(super) role: Role,
    pub(super) rest: Rest,
    pub(super) me: UserId,
    pub(super) name: String,
    pub(super) application: Application,
}

/// What the steps share.
pub(super) struct Steps<'a> {
    pub(super) options: &'a Options,
    pub(super) workspace: Workspace,
    pub(super) dialog: SetupDialog<'a>,
    /// In `voice: bots`, those of the other roles.
    pub(super) bots: Vec<RoleBot>,
    pub(super) here: Option<GuildInfo>,
    pub(super) journal: Journal,
    pub(super) rest: Rest,
    pub(super) base_url: String,
    pub(super) me: UserId,
    pub(super) application: Application,
    owner: Option<UserId>,
    /// The keys that were written so far, by file.
    written: BTreeMap<&'static str, BTreeSet<String>>,
}

/// The values of one file.
fn of_file(all: &[(ConfigFile, String, Setting)], file: ConfigFile) -> Vec<(&str, Setting)> {
    let mine = all.iter().filter(|(where_, _, _)| *where_ == file);
    mine.map(|(_, key, value)| (key.as_str(), value.clone())).collect()
}

impl<'a> Steps<'a> {
    pub(super) fn tell(
        &mut self,
        step: &'static str,
        outcome: Outcome,
        key: &'static str,
        values: serde_json::Value,
    ) {
        (self.dialog.tell)(SetupStep::new(step, outcome, key, values));
    }

    /// The token: where it comes from, whether Discord takes it, where it is kept.
    async fn begin(
        options: &'a Options,
        workspace: Workspace,
        mut dialog: SetupDialog<'a>,
    ) -> Result<Steps<'a>, SetupError> {
        let root = &options.root;
        let mut journal = journal(root)?;
        let variable = variable(&workspace)?;
        let here = match &options.local {
            Some(address) => Some(local::info(address).await?),
            None => None,
        };
        let base_url = here
            .as_ref()
            .map(|info| info.base_url.clone())
            .or_else(|| options.base_url.clone())
            .or_else(|| workspace.discord.base_url.clone())
            .unwrap_or_else(|| DISCORD.to_owned());
        let bots = workspace.discord.voice() == Voice::Bots;
        let name = if bots { Role::Orchestrator.as_str() } else { "teams" };
        let own = here.as_ref().and_then(|info| info.bots.get(name));
        let known = workspace.environment.get(&variable).map(SecretString::from);
        let handed = if let Some(bot) = own {
            Some(SecretString::from(bot.token.clone()))
        } else {
            let main = options.tokens.get(&Role::Orchestrator).filter(|_| bots);
            main.or(options.token.as_ref()).map(clean).transpose()?
        };
        let pool = Pool::new(&base_url)?;
        let role = bots.then_some(Role::Orchestrator);
        let BotLogin { rest, me, handed } =
            enter(&mut dialog, &pool, (role, &variable), handed, known).await?;
        let application = rest.whole_application().await?;
        let values = json!({"bot": me.username, "application": application.id.to_string()});
        (dialog.tell)(SetupStep::new("token", Outcome::Kept, "setup.token.accepted", values));
        keep_token(options, &workspace, &variable, handed.as_ref(), &mut journal, &mut dialog)?;
        let owner = options.owner.or_else(|| application.person().map(|(id, _)| id));
        Ok(Steps {
            options,
            workspace,
            dialog,
            bots: Vec::new(),
            here,
            journal,
            rest,
            base_url,
            me: me.id,
            application,
            owner,
            written: BTreeMap::new(),
        })
    }

    /// What the bot may read: switched on by itself where Discord lets it.
    async fn intents(&mut self) -> Result<(), SetupError> {
        let flags = self.application.flags;
        if intents::reads_messages(flags) {
            self.tell("intents", Outcome::Kept, "setup.intents.on", json!({}));
            return Ok(());
        }
        if self.options.dry_run {
            self.tell("intents", Outcome::Planned, "setup.intents.would_switch", json!({}));
            return Ok(());
        }
        let switch = intents::MESSAGE_CONTENT_LIMITED;
        self.journal.note_flags(self.application.id.0, self.journal.flags() | switch)?;
        let tried = self.rest.set_flags(flags | switch).await;
        let now = self.rest.whole_application().await?.flags;
        if intents::reads_messages(now) {
            self.application.flags = now;
            self.tell("intents", Outcome::Done, "setup.intents.switched", json!({}));
            return Ok(());
        }
        self.journal.note_flags(self.application.id.0, self.journal.flags() & !switch)?;
        if let Err(error) = tried {
            tracing::debug!(%error, "the message content intent was not switched on");
        }
        let page = json!({"page": intents::page(self.application.id.0)});
        self.tell("intents", Outcome::Open, "setup.intents.by_hand", page);
        Ok(())
    }

    /// Category, channels, roles, webhooks.
    async fn things(
        &mut self,
        mut seen: ServerSnapshot,
        wanted: &ServerRequirements,
    ) -> Result<ServerSnapshot, SetupError> {
        for thing in ServerObject::all() {
            let mut builder =
                Builder { rest: &self.rest, wanted, seen: &mut seen, journal: &mut self.journal };
            let name = wanted.name(thing);
            let (outcome, key, values) = match builder.standing(thing) {
                Standing::NotNeeded => continue,
                Standing::There(id) => {
                    (Outcome::Kept, kept_key(thing), json!({"name": name, "id": id.to_string()}))
                }
                Standing::Missing if self.options.dry_run => {
                    (Outcome::Planned, planned_key(thing), json!({"name": name}))
                }
                Standing::Missing => match builder.make(thing).await {
                    Ok(id) => {
                        let values = json!({"name": name, "id": id.to_string()});
                        (Outcome::Done, done_key(thing), values)
                    }
                    Err(error) => {
                        let Some(refusal) = error.dispensable() else {
                            return Err(error.into());
                        };
                        let values = json!({"name": name, "error": refusal.to_string()});
                        (Outcome::Open, "setup.thing.refused", values)
                    }
                },
            };
            self.tell(thing.kind(), outcome, key, values);
            if outcome == Outcome::Done {
                // Whatever cuts the next step off, this one is known.
                self.write_config(&seen, wanted)?;
            }
        }
        Ok(seen)
    }

    /// The values that the configuration gets, as far as they are known.
    fn settings(
        &self,
        seen: &ServerSnapshot,
        wanted: &ServerRequirements,
    ) -> Vec<(ConfigFile, String, Setting)> {
        let runtime = &self.workspace.runtime;
        let mut all = requirements::settings(runtime, wanted, seen, &self.journal);
        if runtime.people.owner.is_none()
            && let Some(owner) = self.owner
        {
            all.push((ConfigFile::Runtime, "people.owner", Setting::Word(owner.to_string())));
        }
        let present = self.workspace.discord.base_url.as_deref().unwrap_or(DISCORD);
        if present != self.base_url {
            let url = Setting::Word(self.base_url.clone());
            all.push((ConfigFile::Discord, "base_url", url));
        }
        let all = all.into_iter().map(|(file, key, value)| (file, key.to_owned(), value));
        let bots = self.bot_ids().into_iter();
        all.chain(bots.map(|(key, value)| (ConfigFile::Discord, key, value))).collect()
    }

    /// Writes what is known into the configuration, and remembers what that changed.
    fn write_config(
        &mut self,
        seen: &ServerSnapshot,
        wanted: &ServerRequirements,
    ) -> Result<(), SetupError> {
        // A person may have written there while an invitation was waited for.
        self.workspace = workspace::load(&self.options.root)?;
        let all = self.settings(seen, wanted);
        for file in ConfigFile::ALL {
            let mine = of_file(&all, file);
            if let Some(keys) = write(&self.options.root, file, &mine, &mut self.journal)? {
                self.written.entry(file.name()).or_default().extend(keys);
            }
        }
        Ok(())
    }

    /// The ids into the configuration, and what was written there.
    fn config(
        &mut self,
        seen: &ServerSnapshot,
        wanted: &ServerRequirements,
    ) -> Result<(), SetupError> {
        if !self.options.dry_run {
            self.write_config(seen, wanted)?;
        }
        let all = self.settings(seen, wanted);
        for file in ConfigFile::ALL {
            let keys: Vec<String> = if self.options.dry_run {
                let mine = of_file(&all, file);
                let there = workspace::is_workspace(&self.options.root);
                let planned = match there {
                    true => settings::plan(&self.options.root, file, &mine, None)?,
                    false => None,
                };
                match planned {
                    Some(change) => change.keys,
                    None if there => Vec::new(),
                    None => mine.iter().map(|(key, _)| (*key).to_owned()).collect(),
                }
            } else {
                let written = self.written.get(file.name());
                written.into_iter().flatten().cloned().collect()
            };
            let (outcome, key) = match (keys.is_empty(), self.options.dry_run) {
                (true, _) => (Outcome::Kept, "setup.config.kept"),
                (false, true) => (Outcome::Planned, "setup.config.would_write"),
                (false, false) => (Outcome::Done, "setup.config.written"),
            };
            let values = match keys.is_empty() {
                true => json!({"file": file.name()}),
                false => json!({"file": file.name(), "keys": keys}),
            };
            self.tell("config", outcome, key, values);
        }
        Ok(())
    }

    /// Checks that the project shows, where none are configured: a person accepts them.
    fn checks(&mut self) -> Result<(), SetupError> {
        let (options, runtime) = (self.options, &self.workspace.runtime);
        if !runtime.checks.is_empty() {
            return Ok(());
        }
        let found = proposals::propose(&open_project(&self.workspace)?)?;
        let found = proposals::missing(&found, runtime);
        if found.checks.is_empty() {
            return Ok(());
        }
        let values = json!(found);
        if options.dry_run {
            self.tell("checks", Outcome::Planned, "setup.checks.planned", values);
            return Ok(());
        }
        let accepted = options.accept_checks
            || (self.dialog.accept)(&found).map_err(SetupError::Terminal)? == Some(true);
        if !accepted {
            self.tell("checks", Outcome::Open, "setup.checks.proposed", values);
            return Ok(());
        }
        let settings = proposals::settings(&found);
        // What somebody wrote there before they answered stays.
        let now = proposals::missing(&found, &workspace::load(&options.root)?.runtime);
        if proposals::settings(&now) != settings {
            self.tell("checks", Outcome::Open, "setup.checks.proposed", json!(now));
            return Ok(());
        }
        write(&options.root, ConfigFile::Runtime, &settings, &mut self.journal)?;
        self.tell("checks", Outcome::Done, "setup.checks.written", values);
        Ok(())
    }

    /// The last word: what is still open in channels, and what comes next.
    fn ready(&mut self, seen: &ServerSnapshot, wanted: &ServerRequirements) {
        if self.options.dry_run {
            return;
        }
        for place in crate::discord::setup::TeamChannel::ALL {
            let standing = wanted.standing(ServerObject::Channel(place), seen, &self.journal);
            let Standing::There(id) = standing else { continue };
            let Some(channel) = seen.channels.get(&crate::domain::ids::ChannelId(id)) else {
                continue;
            };
            let needed = permissions::bits(&[permissions::Use::Always]);
            let missing = permissions::missing(seen.may_in(channel), needed);
            if !missing.is_empty() {
                let values = json!({"channel": channel.name, "missing": names(&missing)});
                self.tell("permissions", Outcome::Open, "setup.permissions.in_channel", values);
            }
        }
        let owner = self.workspace.runtime.people.owner.or(self.owner);
        if owner.is_none() {
            self.tell("config", Outcome::Open, "setup.owner.unknown", json!({}));
        }
        let values = json!({
            "server": seen.name,
            "root": self.options.root.display().to_string(),
            "running": crate::store::is_owned(&self.options.root),
        });
        self.tell("ready", Outcome::Kept, "setup.ready", values);
    }
}

/// Writes values into a file of the configuration, remembered before. The keys that got another value.
pub(in crate::onboarding) fn write(
    root: &std::path::Path,
    file: ConfigFile,
    values: &[(&str, Setting)],
    journal: &mut Journal,
) -> Result<Option<Vec<String>>, SetupError> {
    let _alone = workspace::edit::alone(root)?;
    let earlier =
        journal.file(file.name()).and_then(|value| serde_json::from_value(value.clone()).ok());
    let Some(change) = settings::plan(root, file, values, earlier)? else {
        return Ok(None);
    };
    let changed = serde_json::to_value(&change.changed).unwrap_or_default();
    journal.note_file(file.name(), Some(changed))?;
    change.write(root)?;
    Ok(Some(change.keys))
}

/// A token that Discord takes.
pub(super) struct BotLogin {
    pub(super) rest: Rest,
    pub(super) me: SeenUser,
    /// The token, where it is new here.
    pub(super) handed: Option<SecretString>,
}

/// Goes in with a token that was handed over, else with the one that is known, else with one that is asked for.
pub(super) async fn enter(
    dialog: &mut SetupDialog<'_>,
    pool: &Pool,
    (role, variable): (Option<Role>, &str),
    mut handed: Option<SecretString>,
    known: Option<SecretString>,
) -> Result<BotLogin, SetupError> {
    loop {
        let Some(token) = handed.as_ref().or(known.as_ref()) else {
            handed = Some(asked(dialog, role, variable)?);
            continue;
        };
        redact::register(token.expose_secret());
        let rest = Rest::new(pool.clone(), token.clone());
        match rest.me().await {
            Ok(me) => return Ok(BotLogin { rest, me, handed }),
            Err(RestError::Unauthorized) if handed.is_some() => {
                return Err(SetupError::Refused);
            }
            // The one that is set is of no use any more.
            Err(RestError::Unauthorized) => {
                let nobody = |error: &SetupError| matches!(error, SetupError::NoToken { .. });
                let token = asked(dialog, role, variable);
                let token = token
                    .map_err(|error| if nobody(&error) { SetupError::Refused } else { error })?;
                handed = Some(token);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The token as a person types it.
fn asked(
    dialog: &mut SetupDialog<'_>,
    role: Option<Role>,
    variable: &str,
) -> Result<SecretString, SetupError> {
    let said = (dialog.ask)(role).map_err(SetupError::Terminal)?;
    clean(&said.ok_or_else(|| SetupError::NoToken { variable: variable.to_owned() })?)
}

/// Keeps a token that was handed over, and says where the one that counts stands.
fn keep_token(
    options: &Options,
    workspace: &Workspace,
    variable: &str,
    handed: Option<&SecretString>,
    journal: &mut Journal,
    dialog: &mut SetupDialog<'_>,
) -> Result<(), SetupError> {
    let root = &options.root;
    let path = secrets::tokens_file(root).display().to_string();
    let set = workspace.environment.get(variable);
    let new = handed.filter(|token| set.as_deref() != Some(token.expose_secret()));
    let origin = workspace.environment.origin(variable);
    if let Some(token) = new {
        let values = json!({"path": path});
        if options.dry_run {
            let key = "setup.token.would_keep";
            (dialog.tell)(SetupStep::new("token", Outcome::Planned, key, values));
        } else {
            journal.note_token(true)?;
            secrets::keep(root, variable, token)?;
            (dialog.tell)(SetupStep::new("token", Outcome::Done, "setup.token.stored", values));
        }
        if origin == Some(Origin::Process) {
            let values = json!({"name": variable});
            (dialog.tell)(SetupStep::new("token", Outcome::Open, "setup.token.shadowed", values));
        }
        return Ok(());
    }
    let (key, values) = match origin {
        Some(Origin::Process) => ("setup.token.variable", json!({"name": variable})),
        Some(Origin::File(path)) => {
            ("setup.token.file", json!({"path": path.display().to_string()}))
        }
        Some(Origin::Kept) | None => ("setup.token.file", json!({"path": path})),
    };
    (dialog.tell)(SetupStep::new("token", Outcome::Kept, key, values));
    Ok(())
}

/// The variable that holds the bot's token.
pub(super) fn variable(workspace: &Workspace) -> Result<String, SetupError> {
    let names = workspace.discord.token_names();
    let names = names.map_err(workspace::ConfigError::problem)?;
    Ok(names.main.to_string())
}

/// A token without what people paste around it.
pub(super) fn clean(token: &SecretString) -> Result<SecretString, SetupError> {
    let text = token.expose_secret().trim().trim_matches(['"', '\'']);
    let text = text.strip_prefix("Bot ").unwrap_or(text).trim();
    if secrets::looks_like_a_token(text) {
        Ok(SecretString::from(text.to_owned()))
    } else {
        Err(SetupError::NotAToken)
    }
}

pub(super) fn names(missing: &[Permission]) -> Vec<&'static str> {
    missing.iter().map(|it| it.name).collect()
}

const fn kept_key(thing: ServerObject) -> &'static str {
    match thing {
        ServerObject::Category => "setup.category.kept",
        ServerObject::Channel(_) => "setup.channel.kept",
        ServerObject::Role(_) | ServerObject::Approver => "setup.role.kept",
        ServerObject::Hook(_) | ServerObject::SharedHook => "setup.webhook.kept",
    }
}

pub(in crate::onboarding) const fn done_key(thing: ServerObject) -> &'static str {
    match thing {
        ServerObject::Category => "setup.category.done",
        ServerObject::Channel(_) => "setup.channel.done",
        ServerObject::Role(_) => "setup.role.done",
        ServerObject::Approver => "setup.approver.done",
        ServerObject::Hook(_) | ServerObject::SharedHook => "setup.webhook.done",
    }
}

pub(super) const fn planned_key(thing: ServerObject) -> &'static str {
    match thing {
        ServerObject::Category => "setup.category.planned",
        ServerObject::Channel(_) => "setup.channel.planned",
        ServerObject::Role(_) | ServerObject::Approver => "setup.role.planned",
        ServerObject::Hook(_) | ServerObject::SharedHook => "setup.webhook.planned",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_as_people_paste_it() {
        let good = format!("{}.{}.{}", "M".repeat(24), "G".repeat(6), "k".repeat(38));
        for pasted in [good.clone(), format!(" Bot {good}\n"), format!("\"{good}\"")] {
            assert_eq!(clean(&pasted.into()).unwrap().expose_secret(), good);
        }
        let wrong = clean(&"not-a-token".into()).unwrap_err();
        assert!(!wrong.to_string().contains("not-a-token"));
    }
}
