//! What is done in the world for a sprint: baseline, inspection, leftovers, archive, publishing, findings.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::archive;
use super::assignment;
use super::discover::{self, Look};
use super::effects::{Trouble, begin, begun, request, workspace_inside, worktree};
use super::publish::{self, Gh, Publication};
use super::team::{Team, now};
use crate::domain::effect::{Effect, EffectKind, EffectOutcome};
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::sprint::Sprint;
use crate::git;
use crate::platform::{files, tasks};

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

/// Does one of the effects that name a sprint.
pub(super) async fn perform(
    team: &Arc<Team>,
    kind: &EffectKind,
    sprint: &SprintId,
) -> Result<EffectOutcome, Trouble> {
    match kind {
        EffectKind::Baseline { .. } => baseline(team).await,
        EffectKind::Inspect { .. } => inspect(team, sprint).await,
        EffectKind::Publish { .. } => publish(team, sprint).await,
        EffectKind::Archive { .. } => archive::archive(team, sprint).await,
        EffectKind::Commit { .. }
        | EffectKind::Checks { .. }
        | EffectKind::Merge { .. }
        | EffectKind::Rebase { .. }
        | EffectKind::Action { .. }
        | EffectKind::Release { .. }
        | EffectKind::Collect { .. }
        | EffectKind::Discover { .. } => Ok(EffectOutcome::Failed {
            message: format!("{} is no effect of a sprint", kind.name()),
        }),
    }
}

fn find(team: &Team, sprint: &SprintId) -> Option<Sprint> {
    team.hub.read(|state| state.sprints.get(sprint).cloned())
}

fn no_such_sprint(sprint: &SprintId) -> EffectOutcome {
    EffectOutcome::Failed { message: format!("there is no sprint {sprint}") }
}

async fn baseline(team: &Arc<Team>) -> Result<EffectOutcome, Trouble> {
    let _one = team.git.lock().await;
    let (project, excluded) = (team.project.clone(), workspace_inside(team));
    let found = tasks::blocking(move || git::sprint::baseline(&project, &excluded)).await??;
    Ok(EffectOutcome::Baselined(found))
}

async fn inspect(team: &Arc<Team>, id: &SprintId) -> Result<EffectOutcome, Trouble> {
    let Some(sprint) = find(team, id) else {
        return Ok(no_such_sprint(id));
    };
    let _one = team.git.lock().await;
    let (project, excluded, id) = (team.project.clone(), workspace_inside(team), id.clone());
    let inspection = tasks::blocking(move || {
        git::sprint::inspect(&project, sprint.git_baseline.as_ref(), &id, &excluded)
    })
    .await?;
    Ok(EffectOutcome::Inspected(inspection))
}

/// Copies leftovers of a sprint into the worktree of its closeout request. What they are like is made
/// durable first: where one is another after a crash, nothing of it is taken.
pub(super) async fn collect(
    team: &Arc<Team>,
    effect: &Effect,
    id: &RequestId,
    paths: &[String],
) -> Result<EffectOutcome, Trouble> {
    let _one = team.git.lock().await;
    let excluded = workspace_inside(team);
    let seen: git::sprint::Dirty = match begun(effect)? {
        Some(seen) => seen,
        None => {
            let sprint = request(team, id)?.sprint_id.and_then(|sprint| find(team, &sprint));
            let baseline = sprint.and_then(|sprint| sprint.git_baseline).unwrap_or_default();
            let (project, folders, paths) =
                (team.project.clone(), excluded.clone(), paths.to_vec());
            let seen =
                tasks::blocking(move || git::sprint::pick(&project, &baseline, &paths, &folders))
                    .await??;
            begin(team, effect, &seen).await?;
            seen
        }
    };
    let worktree = worktree(team, id).await?;
    tasks::blocking(move || git::sprint::collect(&worktree, &seen, &excluded)).await??;
    Ok(EffectOutcome::Collected)
}

/// Looks for findings.
pub(super) async fn discover(
    team: &Arc<Team>,
    watermarks: &BTreeMap<String, String>,
) -> Result<EffectOutcome, Trouble> {
    let runtime = &team.workspace.runtime;
    let actions = runtime.sprint.discovery_actions.iter().filter_map(|name| {
        let action = runtime.actions.get(name)?;
        Some((name.clone(), action.command.as_slice().to_vec()))
    });
    let scratch = team.workspace.state_dir().join("operations");
    files::create_dir_all(&scratch)?;
    let look = Look {
        root: team.root().to_owned(),
        project: team.project.clone(),
        excluded: workspace_inside(team),
        open: team.hub.read(|state| state.requests.values().cloned().collect()),
        scope: runtime.sprint.discovery_scope,
        actions: actions.collect(),
        env: environment(team, &["PATH", "HOME", "LANG"]),
        scratch,
        now: now(),
    };
    let (findings, watermarks) = discover::look(look, watermarks.clone()).await?;
    Ok(EffectOutcome::Discovered { findings, watermarks })
}

async fn publish(team: &Arc<Team>, id: &SprintId) -> Result<EffectOutcome, Trouble> {
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
    let folder = team.root().join(assignment::folder(&sprint));
    let mut documents = Vec::new();
    for name in PUBLISHED {
        if let Some(text) = files::read_text_if_present(&folder.join(name))? {
            documents.push((name.to_owned(), text));
        }
    }
    let gh = match Gh::find(team.project.path().to_owned(), env, scratch) {
        Ok(gh) => gh,
        Err(error) => return Ok(EffectOutcome::Failed { message: error.to_string() }),
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
        Err(error) => EffectOutcome::Failed { message: error.to_string() },
    })
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
