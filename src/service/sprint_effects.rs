//! What is done in the world for a sprint: baseline, inspection, archive, publishing, findings.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::archive;
use super::assignment;
use super::discover::{self, DiscoveryInput};
use super::effect_error::EffectError;
use super::publish::{self, Gh, Publication};
use super::team::{Team, now};
use crate::discord::attachments;
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::ids::SprintId;
use crate::domain::sprint::Sprint;
use crate::git;
use crate::platform::beneath::Folder;
use crate::platform::files::{self, FileError};
use crate::platform::tasks;

/// Documents of a sprint that are published, in order; those that are not there are left out.
const PUBLISHED: [&str; 7] = [
    "report.md",
    "kickoff.md",
    "milestone.md",
    "plan.md",
    "spec.md",
    "todo_backlog.md",
    "iteration_log.md",
];

/// Bytes of the largest of them.
const LARGEST: u64 = 16 << 20;

/// Does one of the effects that name a sprint.
pub(super) async fn perform(
    team: &Arc<Team>,
    kind: &EffectKind,
    sprint: &SprintId,
) -> Result<EffectOutcome, EffectError> {
    match kind {
        EffectKind::Baseline { .. } => baseline(team, sprint).await,
        EffectKind::Inspect { .. } => inspect(team, sprint).await,
        EffectKind::Publish { .. } => publish(team, sprint).await,
        EffectKind::Archive { .. } => archive::archive(team, sprint).await,
        EffectKind::Commit { .. }
        | EffectKind::Base { .. }
        | EffectKind::Checks { .. }
        | EffectKind::UseChecks { .. }
        | EffectKind::Merge { .. }
        | EffectKind::Rebase { .. }
        | EffectKind::Action { .. }
        | EffectKind::Release { .. }
        | EffectKind::Discover { .. } => {
            Ok(EffectOutcome::failed(format!("{} is no effect of a sprint", kind.name())))
        }
    }
}

fn find(team: &Team, sprint: &SprintId) -> Option<Arc<Sprint>> {
    team.hub.read(|state| state.sprints.get(sprint).cloned())
}

fn no_such_sprint(sprint: &SprintId) -> EffectOutcome {
    EffectOutcome::failed(format!("there is no sprint {sprint}"))
}

async fn baseline(team: &Arc<Team>, id: &SprintId) -> Result<EffectOutcome, EffectError> {
    if let Some(sprint) = find(team, id) {
        let root = team.root().to_owned();
        tasks::blocking(move || take_along(&root, &sprint)).await??;
    }
    let _one = team.git.lock().await;
    let (project, excluded) = (team.project.clone(), team.workspace_inside());
    let found = tasks::blocking(move || git::sprint::baseline(&project, &excluded)).await??;
    Ok(EffectOutcome::Baselined(found))
}

/// Copies the files of a kickoff into the folder of its sprint. One that is gone stays gone.
fn take_along(root: &Path, sprint: &Sprint) -> Result<(), FileError> {
    let root = Folder::open(root)?;
    for (old, new) in sprint.kickoff.attachments(&sprint.sprint_folder) {
        let bytes = match root.file(&old).and_then(|file| file.read(attachments::LARGEST)) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!(file = %old, %error, "a file of the kickoff is not taken along");
                continue;
            }
        };
        if let Some((folder, name)) = new.rsplit_once('/') {
            root.make_folder(folder)?.write_durable(name, bytes)?;
        }
    }
    Ok(())
}

async fn inspect(team: &Arc<Team>, id: &SprintId) -> Result<EffectOutcome, EffectError> {
    let Some(sprint) = find(team, id) else {
        return Ok(no_such_sprint(id));
    };
    let _one = team.git.lock().await;
    let (project, excluded, id) = (team.project.clone(), team.workspace_inside(), id.clone());
    let inspection = tasks::blocking(move || {
        git::sprint::inspect(&project, sprint.work.git_baseline.as_ref(), &id, &excluded)
    })
    .await?;
    Ok(EffectOutcome::Inspected(inspection))
}

/// Looks for findings.
pub(super) async fn discover(
    team: &Arc<Team>,
    watermarks: &BTreeMap<String, String>,
) -> Result<EffectOutcome, EffectError> {
    let runtime = &team.workspace.runtime;
    let actions = runtime.sprint.discovery_actions.iter().filter_map(|name| {
        let action = runtime.actions.get(name)?;
        Some((name.clone(), action.command.as_slice().to_vec()))
    });
    let scratch = team.workspace.state_dir().join("operations");
    files::create_dir_all(&scratch)?;
    let look = DiscoveryInput {
        root: team.root().to_owned(),
        project: team.project.clone(),
        git: Arc::clone(&team.git),
        excluded: team.workspace_inside(),
        scope: runtime.sprint.discovery_scope,
        actions: actions.collect(),
        env: environment(team, &["PATH", "HOME", "LANG"]),
        scratch,
        now: now(),
    };
    let (findings, watermarks) = discover::look(look, watermarks.clone()).await?;
    Ok(EffectOutcome::Discovered { findings, watermarks })
}

async fn publish(team: &Arc<Team>, id: &SprintId) -> Result<EffectOutcome, EffectError> {
    let Some(sprint) = find(team, id) else {
        return Ok(no_such_sprint(id));
    };
    let env = environment(
        team,
        &[
            "PATH",
            "HOME",
            "LANG",
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "GH_HOST",
            "GH_CONFIG_DIR",
            "XDG_CONFIG_HOME",
        ],
    );
    let scratch = team.workspace.state_dir().join("operations");
    files::create_dir_all(&scratch)?;
    let (root, folder) = (team.root().to_owned(), assignment::folder(&sprint));
    let mut documents = tasks::blocking(move || published(&root, &folder)).await??;
    let gh = match Gh::find(team.project.path().to_owned(), env, scratch) {
        Ok(gh) => gh,
        Err(error) => return Ok(EffectOutcome::failed(error.to_string())),
    };
    // The report is what the issue says; only one that is too long for that goes into comments.
    let fits = |(name, text): &(String, String)| {
        name == PUBLISHED[0] && text.chars().count() <= publish::PART_CHARS
    };
    let body = match documents.first().is_some_and(fits) {
        true => documents.remove(0).1,
        false => format!("{} · {}", sprint.milestone_title, sprint.status),
    };
    let what = Publication {
        sprint_id: id.to_string(),
        title: format!("[{id}] {}", sprint.milestone_title),
        body,
        documents,
        since: sprint.started_at,
    };
    Ok(match publish::publish(&gh, &what).await {
        Ok(url) => EffectOutcome::Published { url },
        Err(error) => EffectOutcome::failed(error.to_string()),
    })
}

/// The documents of a sprint's folder that are published, those that are there. Agents write in it.
fn published(root: &Path, folder: &str) -> Result<Vec<(String, String)>, FileError> {
    let folder = match Folder::open(root)?.folder(folder) {
        Ok(folder) => folder,
        Err(error) if error.is_missing() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut documents = Vec::new();
    for name in PUBLISHED {
        match folder.read_text_if_present(name, LARGEST) {
            Ok(text) => documents.extend(text.map(|text| (name.to_owned(), text))),
            Err(error) => tracing::warn!(%error, "a document is not published"),
        }
    }
    Ok(documents)
}

/// These variables and no others; and nothing may ask a question that nobody hears.
fn environment(team: &Team, names: &[&str]) -> BTreeMap<String, String> {
    let given = names.iter().filter_map(|name| {
        team.workspace.environment.get(name).map(|value| ((*name).to_owned(), value))
    });
    let quiet = [("GH_PROMPT_DISABLED", "1"), ("NO_COLOR", "1"), ("CI", "1")];
    let quiet = quiet.map(|(name, value)| (name.to_owned(), value.to_owned()));
    given.chain(quiet).collect()
}
