//! `teams setup --undo`: takes away what the journal says was made, and nothing else.

use std::path::Path;

use serde_json::json;

use super::bots::variable_of;
use super::flow::variable;
use super::{DISCORD, Outcome, SetupDialog, SetupError, SetupStep, journal, lock, requirements};
use crate::discord::error::RestError;
use crate::discord::rest::{Pool, Rest, is_loopback};
use crate::discord::setup::{
    BotPages, BuildError, Builder, Journal, ServerObject, ServerSnapshot, Undone,
};
use crate::platform::files;
use crate::platform::redact;
use crate::workspace::settings::{self, ConfigFile};
use crate::workspace::{self, Workspace, secrets};

/// What an undo would take away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Undoable {
    /// Things in the server, as words: `channel.general`.
    pub things: Vec<String>,
    /// Whether anything was made at all.
    pub anything: bool,
}

/// Looks what an undo would take away.
pub fn undoable(root: &Path) -> Result<Undoable, SetupError> {
    let journal = journal(root)?;
    let things = journal.things().map(|thing| thing.to_string()).collect();
    Ok(Undoable { things, anything: !journal.is_empty() })
}

/// Undoes; what could not be taken away is told and stays in the journal where trying again may help. `base_url`
/// is the REST server, where it is another than the configuration's.
pub async fn undo(
    root: &Path,
    dry_run: bool,
    base_url: Option<&str>,
    mut dialog: SetupDialog<'_>,
) -> Result<(), SetupError> {
    let nothing = || SetupStep::new("ready", Outcome::Kept, "setup.undo.nothing", json!({}));
    if !files::is_there(&super::journal_file(root))? {
        (dialog.tell)(nothing());
        return Ok(());
    }
    let workspace = workspace::load(root)?;
    let base_url = base_url.or(workspace.discord.base_url.as_deref()).unwrap_or(DISCORD);
    let mut journal = journal(root)?;
    if dry_run {
        for thing in journal.things() {
            let values = json!({"name": thing.to_string()});
            (dialog.tell)(SetupStep::new(
                thing.kind(),
                Outcome::Planned,
                "setup.undo.would_remove",
                values,
            ));
        }
        let mut planned = |step, key, values| {
            (dialog.tell)(SetupStep::new(step, Outcome::Planned, key, values));
        };
        if journal.flags() != 0 {
            planned("intents", "setup.undo.would_intents", json!({}));
        }
        for role in journal.bots().keys() {
            // Nobody speaks for it any more.
            if variable_of(&workspace, *role)?.is_none() {
                continue;
            }
            planned("token", "setup.undo.would_bot", json!({"role": role}));
        }
        for file in ConfigFile::ALL.into_iter().filter(|file| journal.file(file.name()).is_some()) {
            planned("config", "setup.undo.would_config", json!({"file": file.name()}));
        }
        if journal.keeps_token() {
            planned("token", "setup.undo.would_token", json!({}));
        }
        return Ok(());
    }
    if crate::store::is_owned(root) {
        return Err(SetupError::Running(root.to_owned()));
    }
    let _alone = lock(root)?;
    if journal.things().next().is_some() || journal.flags() != 0 {
        in_discord(&workspace, base_url, &mut journal, &mut dialog).await?;
    }
    let left = journal.things().count();
    if left > 0 {
        // The rest goes with the token and the settings that there are.
        return Err(SetupError::Left { things: left });
    }
    bots(&workspace, base_url, &mut journal, &mut dialog).await?;
    configuration(root, &mut journal, &mut dialog)?;
    if journal.keeps_token() {
        secrets::forget(root, &variable(&workspace)?)?;
        journal.note_token(false)?;
        (dialog.tell)(SetupStep::new("token", Outcome::Undone, "setup.undo.token", json!({})));
    }
    journal.close()?;
    let tokens = secrets::tokens_file(root);
    if files::exists(&tokens) {
        // Under names that the configuration has no more, or written by a person.
        let values = json!({"path": tokens.display().to_string()});
        (dialog.tell)(SetupStep::new("token", Outcome::Left, "setup.undo.tokens_left", values));
    } else {
        files::remove_dir_all(&root.join(secrets::FOLDER))?;
    }
    (dialog.tell)(SetupStep::new("ready", Outcome::Undone, "setup.undo.done", json!({})));
    Ok(())
}

/// The server and the application.
async fn in_discord(
    workspace: &Workspace,
    base_url: &str,
    journal: &mut Journal,
    dialog: &mut SetupDialog<'_>,
) -> Result<(), SetupError> {
    let rest = rest(workspace, base_url)?;
    let application = match rest.whole_application().await {
        Ok(application) => application,
        Err(RestError::Unauthorized) => return Err(SetupError::Refused),
        // A local guild that was closed took everything with it.
        Err(RestError::Network(_)) if is_loopback(base_url) => {
            journal.forget_flags()?;
            return out_of_reach(journal, dialog);
        }
        Err(error) => return Err(error.into()),
    };
    things(&rest, workspace, application.id.0, journal, dialog).await?;
    let ours = journal.flags();
    if ours != 0 && !journal.flags_are_of(application.id.0) {
        // The token is another application's by now, which has its own from somebody else.
        journal.forget_flags()?;
        let key = "setup.undo.intents_left";
        (dialog.tell)(SetupStep::new("intents", Outcome::Left, key, json!({})));
    } else if ours != 0 {
        if application.flags & ours != 0 {
            rest.set_flags(application.flags & !ours).await?;
        }
        journal.forget_flags()?;
        (dialog.tell)(SetupStep::new("intents", Outcome::Undone, "setup.undo.intents", json!({})));
    }
    Ok(())
}

/// The bots of roles: what they may read as before, and their tokens forgotten.
async fn bots(
    workspace: &Workspace,
    base_url: &str,
    journal: &mut Journal,
    dialog: &mut SetupDialog<'_>,
) -> Result<(), SetupError> {
    for (role, pages) in journal.bots().clone() {
        let Some(variable) = variable_of(workspace, role)? else {
            // The role has no bot any more; nobody can speak for it.
            journal.note_bot(role, BotPages::default())?;
            continue;
        };
        if let (1.., Some(token)) = (pages.flags, workspace.environment.get(&variable)) {
            redact::register(&token);
            let rest = Rest::new(Pool::new(base_url)?, token.into());
            match rest.whole_application().await {
                Ok(application) if application.flags & pages.flags != 0 => {
                    rest.set_flags(application.flags & !pages.flags).await?;
                }
                // A bot that is gone, or its place, reads nothing any more.
                Ok(_) | Err(RestError::Unauthorized) => {}
                Err(RestError::Network(_)) if is_loopback(base_url) => {}
                Err(error) => return Err(error.into()),
            }
            journal.note_bot(role, BotPages { flags: 0, ..pages })?;
        }
        if pages.token {
            secrets::forget(&workspace.root, &variable)?;
        }
        journal.note_bot(role, BotPages::default())?;
        let values = json!({ "role": role });
        (dialog.tell)(SetupStep::new("token", Outcome::Undone, "setup.undo.bot", values));
    }
    Ok(())
}

/// Nothing can be removed any more.
fn out_of_reach(journal: &mut Journal, dialog: &mut SetupDialog<'_>) -> Result<(), SetupError> {
    let all: Vec<ServerObject> = journal.things().collect();
    for thing in all {
        journal.forget(thing)?;
        let values = json!({"name": thing.to_string()});
        (dialog.tell)(SetupStep::new(
            thing.kind(),
            Outcome::Left,
            "setup.undo.out_of_reach",
            values,
        ));
    }
    Ok(())
}

/// A thing as people know it.
fn shown(thing: ServerObject, name: &str) -> String {
    match thing {
        ServerObject::Channel(_) => format!("#{name}"),
        ServerObject::Role(_) | ServerObject::Approver => format!("@{name}"),
        ServerObject::Category | ServerObject::Hook(_) | ServerObject::SharedHook => {
            format!("{} {name}", thing.kind())
        }
    }
}

fn rest(workspace: &Workspace, base_url: &str) -> Result<Rest, SetupError> {
    let variable = variable(workspace)?;
    let token = workspace.environment.get(&variable);
    let token = token.ok_or(SetupError::NoToken { variable })?;
    redact::register(&token);
    Ok(Rest::new(Pool::new(base_url)?, token.into()))
}

async fn things(
    rest: &Rest,
    workspace: &Workspace,
    application: u64,
    journal: &mut Journal,
    dialog: &mut SetupDialog<'_>,
) -> Result<(), SetupError> {
    let all: Vec<ServerObject> = journal.things().collect();
    let Some(guild) = journal.guild().filter(|_| !all.is_empty()) else {
        return Ok(());
    };
    let me = rest.me().await?.id;
    let mut seen = match ServerSnapshot::look(rest, guild, me).await {
        Ok(seen) => seen,
        // The bot was removed from the server: nothing there is in its reach any more.
        Err(RestError::Gone { .. } | RestError::Refused { .. }) => {
            return out_of_reach(journal, dialog);
        }
        Err(error) => return Err(error.into()),
    };
    let wanted = requirements::everything(workspace, application, Some(&seen), journal);
    for thing in all {
        let mut builder = Builder { rest, wanted: &wanted, seen: &mut seen, journal };
        let undone = match builder.undo(thing).await {
            Err(BuildError::Rest { source: error @ RestError::Refused { .. }, .. }) => {
                // A right was taken from the bot, or the thing stands above it: the others go.
                let name = shown(thing, &wanted.name(thing));
                let values = json!({"name": name, "error": error.to_string()});
                (dialog.tell)(SetupStep::new(
                    thing.kind(),
                    Outcome::Left,
                    "setup.undo.refused",
                    values,
                ));
                continue;
            }
            undone => undone?,
        };
        let (outcome, key) = match undone {
            Undone::Removed(_) => (Outcome::Undone, "setup.undo.removed"),
            Undone::Gone => (Outcome::Kept, "setup.undo.gone"),
        };
        (dialog.tell)(SetupStep::new(
            thing.kind(),
            outcome,
            key,
            json!({"name": shown(thing, &wanted.name(thing))}),
        ));
    }
    Ok(())
}

fn configuration(
    root: &Path,
    journal: &mut Journal,
    dialog: &mut SetupDialog<'_>,
) -> Result<(), SetupError> {
    for file in ConfigFile::ALL {
        let changed = journal.file(file.name()).cloned();
        let Some(changed) = changed.and_then(|value| serde_json::from_value(value).ok()) else {
            continue;
        };
        let kept = settings::take_back(root, file, &changed)?;
        journal.note_file(file.name(), None)?;
        let values = json!({"file": file.name(), "kept": kept});
        let (outcome, key) = if kept.is_empty() {
            (Outcome::Undone, "setup.undo.config")
        } else {
            (Outcome::Left, "setup.undo.config_kept")
        };
        (dialog.tell)(SetupStep::new("config", outcome, key, values));
    }
    Ok(())
}
