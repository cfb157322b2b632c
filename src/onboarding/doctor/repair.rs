//! Putting right what can be put right without asking anybody.

use std::path::Path;

use serde_json::json;

use super::discord;
use super::finding::{Check, Finding, Health, Repair, safe};
use crate::discord::setup::{Builder, ServerObject, Standing, intents};
use crate::onboarding::setup::{self, SetupError, requirements};
use crate::platform::files;
use crate::store;
use crate::workspace::settings::ConfigFile;
use crate::workspace::{self, Workspace};

/// Does the repairs of the findings; what it did, or why it could not.
pub async fn repair(root: &Path, findings: &[Finding]) -> Vec<Finding> {
    let mut done = Vec::new();
    let mut things = Vec::new();
    let mut switch = false;
    for finding in findings {
        match &finding.repair {
            None => {}
            Some(Repair::Private(path)) => done.push(private(path)),
            Some(Repair::Records) => done.extend(records(root)),
            Some(Repair::Thing(thing)) => things.push((finding.check, *thing)),
            Some(Repair::Intents) => switch = true,
        }
    }
    if !things.is_empty() || switch {
        let outcome = match workspace::load(root) {
            Ok(workspace) => in_discord(&workspace, &things, switch, &mut done).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = outcome {
            let values = json!({"error": safe(&error)});
            done.push(Finding::problem(Check::Config, "doctor.fix.failed", values));
        }
    }
    done
}

fn private(path: &Path) -> Finding {
    let values = json!({"path": path.display().to_string()});
    match files::set_mode(path, 0o600) {
        Ok(()) => Finding::new(Check::Folders, Health::Fixed, "doctor.fix.private", values),
        Err(error) => {
            let values = json!({"error": safe(&error)});
            Finding::problem(Check::Folders, "doctor.fix.failed", values)
        }
    }
}

/// What was done about the records; nothing where they turned out to be as they should be.
fn records(root: &Path) -> Option<Finding> {
    match store::repair(root) {
        Ok(None) => None,
        Ok(Some(repair)) => {
            let values = json!({
                "copy": repair.copy,
                "requests": repair.requests,
                "aside": repair.set_aside.iter().map(|it| it.now.as_str()).collect::<Vec<_>>(),
                "missing": repair.missing,
            });
            Some(Finding::new(Check::Records, Health::Fixed, "doctor.fix.records", values))
        }
        Err(error) => {
            let values = json!({"error": safe(&error)});
            Some(Finding::problem(Check::Records, "doctor.fix.failed", values))
        }
    }
}

async fn in_discord(
    workspace: &Workspace,
    things: &[(Check, ServerObject)],
    switch: bool,
    done: &mut Vec<Finding>,
) -> Result<(), SetupError> {
    let _alone = setup::lock(&workspace.root)?;
    let (met, _) = discord::look(workspace, &mut Vec::new()).await;
    let Some(mut met) = met else { return Ok(()) };
    if let Some(made) = met.journal.other_guild(met.seen.guild) {
        return Err(SetupError::OtherServer { made, wanted: met.seen.guild });
    }
    if switch {
        intents_on(&mut met, done).await?;
    }
    for (check, thing) in things {
        let needs_category = matches!(thing, ServerObject::Channel(_))
            && met.wanted.standing(ServerObject::Category, &met.seen, &met.journal)
                == Standing::Missing;
        let mut builder = Builder {
            rest: &met.rest,
            wanted: &met.wanted,
            seen: &mut met.seen,
            journal: &mut met.journal,
        };
        builder.journal.begin(builder.wanted.application, builder.seen.guild)?;
        let made = async {
            if needs_category {
                builder.make(ServerObject::Category).await?;
            }
            builder.make(*thing).await
        };
        match made.await {
            Ok(id) => {
                let values = json!({"name": met.wanted.name(*thing), "id": id.to_string()});
                let key = setup::done_key(*thing);
                done.push(Finding::new(*check, Health::Fixed, key, values));
            }
            Err(error) => {
                let values = json!({"error": safe(&error)});
                done.push(Finding::problem(*check, "doctor.fix.failed", values));
            }
        }
    }
    let all = requirements::settings(&workspace.runtime, &met.wanted, &met.seen, &met.journal);
    for file in ConfigFile::ALL {
        let mine: Vec<_> = all
            .iter()
            .filter(|(place, _, _)| *place == file)
            .map(|(_, key, value)| (*key, value.clone()))
            .collect();
        if let Some(keys) = setup::write(&workspace.root, file, &mine, &mut met.journal)? {
            let values = json!({"file": file.name(), "keys": keys});
            done.push(Finding::new(Check::Config, Health::Fixed, "setup.config.written", values));
        }
    }
    Ok(())
}

async fn intents_on(
    met: &mut discord::ServerView,
    done: &mut Vec<Finding>,
) -> Result<(), SetupError> {
    let flags = met.rest.whole_application().await?.flags;
    let switch = intents::MESSAGE_CONTENT_LIMITED;
    met.journal.note_flags(met.wanted.application, met.journal.flags() | switch)?;
    let tried = met.rest.set_flags(flags | switch).await;
    let now = met.rest.whole_application().await?.flags;
    if intents::reads_messages(now) {
        done.push(Finding::new(Check::Intents, Health::Fixed, "setup.intents.switched", json!({})));
    } else {
        met.journal.note_flags(met.wanted.application, met.journal.flags() & !switch)?;
        let error = tried.err().map(|error| safe(&error)).unwrap_or_default();
        done.push(Finding::problem(Check::Intents, "doctor.fix.failed", json!({"error": error})));
    }
    Ok(())
}
