//! Looking for work that nobody asked for: requests that failed, files that nobody committed, errors in the
//! logs, actions that look for themselves (`spec/teams.md` 10.2).
//!
//! Each source has a watermark, so that a trace is found once: requests by the instant up to which they were
//! read, files by their names, logs by their position, actions by how they ended last.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use crate::domain::finding::{Finding, Signal};
use crate::domain::ids::RequestId;
use crate::domain::modes::DiscoveryScope;
use crate::domain::origin::Origin;
use crate::domain::request::{Request, RequestStatus};
use crate::domain::result::ResultStatus;
use crate::domain::time::Timestamp;
use crate::git::{self, GitError, Project};
use crate::platform::supervise::{self, EndedBy, Spec, SuperviseError};
use crate::platform::{files, ids, tasks};
use crate::store::{self, StoreError};

mod finding;
mod logs;

pub use finding::Watermarks;
use finding::{PER_SOURCE, REQUESTS, finding, newest, short_digest};

/// How far back the first look goes, in milliseconds.
const FIRST_LOOK: i64 = 7 * 24 * 60 * 60 * 1_000;
/// What was decided this long before a look may not be durable yet and is looked at again, in milliseconds.
const OVERLAP: i64 = 10_000;
/// How long an action may take, in milliseconds.
const ACTION_WALL: u64 = 10 * 60 * 1_000;

/// Where to look.
#[derive(Debug)]
pub struct DiscoveryInput {
    /// The workspace.
    pub root: PathBuf,
    /// The project.
    pub project: Project,
    /// Folders that are no part of the project, relative to it.
    pub excluded: Vec<PathBuf>,
    /// Held by whoever changes the project, so that no landing under way is taken for a person's change.
    pub git: Arc<tokio::sync::Mutex<()>>,
    /// How far to look.
    pub scope: DiscoveryScope,
    /// Actions that look, by name, with their commands.
    pub actions: Vec<(String, Vec<String>)>,
    /// Their environment.
    pub env: BTreeMap<String, String>,
    /// A folder for their output.
    pub scratch: PathBuf,
    /// The present instant.
    pub now: Timestamp,
}

/// Why it was not possible to look.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The records.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The project.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file.
    #[error(transparent)]
    File(#[from] files::FileError),
    /// The supervisor of an action.
    #[error(transparent)]
    Supervise(#[from] SuperviseError),
    /// A look that did not come to its end.
    #[error("looking was cut off: {0}")]
    Cut(#[from] tokio::task::JoinError),
}

/// Everything that is new since the watermarks, and the new ones.
pub async fn look(
    look: DiscoveryInput,
    before: Watermarks,
) -> Result<(Vec<Finding>, Watermarks), LookError> {
    let actions = match look.scope {
        DiscoveryScope::BroadScan => look.actions.clone(),
        DiscoveryScope::Off | DiscoveryScope::WorkspaceOnly | DiscoveryScope::PlusGit => Vec::new(),
    };
    let (env, scratch, root) = (look.env.clone(), look.scratch.clone(), look.root.clone());
    let (mut found, mut marks) = tasks::blocking(move || at_rest(&look, before)).await??;
    for (name, command) in actions {
        let ended = act(&command, &env, &scratch, &root).await?;
        found.extend(judge(&name, ended, &mut marks));
    }
    Ok((found, marks))
}

/// What can be read from files.
fn at_rest(
    look: &DiscoveryInput,
    mut marks: Watermarks,
) -> Result<(Vec<Finding>, Watermarks), LookError> {
    let mut found = requests(look, &mut marks)?;
    match look.scope {
        DiscoveryScope::Off | DiscoveryScope::WorkspaceOnly => {}
        DiscoveryScope::PlusGit => found.extend(uncommitted_files(look, &mut marks)?),
        DiscoveryScope::BroadScan => {
            found.extend(uncommitted_files(look, &mut marks)?);
            found.extend(logs::errors(&look.root.join("logs"), &mut marks)?);
        }
    }
    Ok((found, marks))
}

/// Requests that ended without success.
fn requests(look: &DiscoveryInput, marks: &mut Watermarks) -> Result<Vec<Finding>, LookError> {
    let since = marks.get("requests").and_then(|text| text.parse().ok());
    // A clock that was ahead has been put right.
    let since = since.unwrap_or(look.now.millis() - FIRST_LOOK).min(look.now.millis() - OVERLAP);
    let told: BTreeSet<RequestId> = marks
        .get("requests_told")
        .map(|list| list.split(',').filter_map(|id| id.parse().ok()).collect())
        .unwrap_or_default();
    let ended = store::requests_ended_since(&look.root, Timestamp::from_millis(since))?;
    let mut findings = Vec::new();
    // Those that may be met again by the next look, because they are within the overlap.
    let mut tell_not_again = BTreeSet::new();
    let overlap = look.now.millis() - OVERLAP;
    let failed = ended.iter().filter(|request| request.status == RequestStatus::Failed);
    for request in failed {
        // What somebody said to the team alone stays there.
        if is_a_sprints_or_planned(request) || request.conversation.reply_route.is_dm {
            continue;
        }
        let at = request.outcome.ended_at.unwrap_or(request.updated_at).millis();
        if at >= overlap {
            tell_not_again.insert(request.request_id.clone());
        }
        if !told.contains(&request.request_id) {
            findings.push(of_request(request, look.scope));
        }
    }
    marks.insert("requests".to_owned(), overlap.max(since).to_string());
    let list: Vec<&str> = tell_not_again.iter().map(RequestId::as_str).collect();
    marks.insert("requests_told".to_owned(), list.join(","));
    Ok(newest(findings, REQUESTS))
}

/// What a sprint or the backlog looks after itself.
fn is_a_sprints_or_planned(request: &Request) -> bool {
    request.backlog_id.is_some()
        || request.sprint_id.is_some()
        || request.duty().is_some()
        || request.params.kind.as_deref().is_some_and(|kind| kind.starts_with("sprint_"))
}

fn of_request(request: &Request, scope: DiscoveryScope) -> Finding {
    let result = request.work.result.as_ref();
    let failure = result.filter(|result| {
        result.status == ResultStatus::Failed && scope == DiscoveryScope::BroadScan
    });
    let what = if request.scope.trim().is_empty() { &request.body } else { &request.scope };
    let id = request.request_id.as_str();
    let mut origin = Origin::default().with("request_id", id);
    let (signal, title, summary) = match failure {
        Some(result) => {
            origin.set("role", result.role.as_str());
            let why = if result.error.is_empty() { &result.summary } else { &result.error };
            (Signal::RoleFailure, format!("{} failed: {what}", result.role), why.clone())
        }
        None => {
            let summary = result.map(|result| result.summary.clone()).unwrap_or_default();
            (Signal::OpenRequest, format!("Request failed: {what}"), summary)
        }
    };
    finding(signal, format!("request:{id}"), &title, &summary, origin)
}

/// Files of the project that nobody committed, and that were not there at the last look.
fn uncommitted_files(
    look: &DiscoveryInput,
    marks: &mut Watermarks,
) -> Result<Vec<Finding>, LookError> {
    let one = look.git.blocking_lock();
    let now = git::sprint::uncommitted(&look.project, &look.excluded)?;
    drop(one);
    let before: BTreeSet<String> =
        marks.get("git").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    marks.insert("git".to_owned(), json!(now).to_string());
    let new: Vec<&str> = now.difference(&before).map(String::as_str).collect();
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let paths: Vec<String> = new.iter().take(PER_SOURCE).map(|&path| path.to_owned()).collect();
    let origin = Origin::default().with("paths", paths);
    let title = match new.as_slice() {
        [one] => format!("Uncommitted change: {one}"),
        [first, rest @ ..] => format!("Uncommitted changes: {first} and {} more", rest.len()),
        [] => String::new(),
    };
    let trace = format!("git:{}", short_digest(&new.join("\n")));
    Ok(vec![finding(Signal::GitDirty, trace, &title, &new.join(", "), origin)])
}

/// How an action ended.
enum ActionEnd {
    Passed,
    NotPassed(String),
    NotRun(String),
}

async fn act(
    command: &[String],
    env: &BTreeMap<String, String>,
    scratch: &Path,
    root: &Path,
) -> Result<ActionEnd, LookError> {
    let Some((program, args)) = command.split_first() else {
        return Ok(ActionEnd::NotRun("its command is empty".to_owned()));
    };
    if command.iter().any(|word| word.contains('{') && word.contains('}')) {
        return Ok(ActionEnd::NotRun(
            "it takes parameters, and nobody is there to give them".to_owned(),
        ));
    }
    let mut spec = Spec::new(program, root);
    spec.args = args.to_vec();
    spec.env.clone_from(env);
    spec.wall_ms = Some(ACTION_WALL);
    spec.max_stdout_bytes = 1 << 20;
    spec.on_cap = supervise::OnCap::Drop;
    let dir = scratch.join(format!("discover-{}", ids::random_hex(8)));
    let exit = supervise::run(&spec, &dir).await?;
    let mut text = files::read(&dir.join(supervise::STDOUT_SPOOL))?;
    text.extend(files::read(&dir.join(supervise::STDERR_SPOOL))?);
    files::remove_dir_all(&dir)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(match exit.ended_by {
        EndedBy::Exit if exit.success() => ActionEnd::Passed,
        EndedBy::Exit => ActionEnd::NotPassed(text),
        EndedBy::Wall => ActionEnd::NotRun("it took longer than ten minutes".to_owned()),
        EndedBy::NotStarted => ActionEnd::NotRun(exit.error.unwrap_or_default()),
        EndedBy::Idle | EndedBy::OutputCap | EndedBy::Cancelled | EndedBy::ParentGone => {
            ActionEnd::NotRun("it was ended from outside".to_owned())
        }
    })
}

/// An action that ends as it did the last time has nothing new to say.
fn judge(name: &str, ended: ActionEnd, marks: &mut Watermarks) -> Option<Finding> {
    let (word, signal, title, summary) = match ended {
        ActionEnd::Passed => ("passed", None, String::new(), String::new()),
        ActionEnd::NotPassed(text) => {
            let title = format!("{name} does not pass");
            ("not_passed", Some(Signal::DiscoveryActionCheck), title, text)
        }
        ActionEnd::NotRun(why) => {
            let title = format!("{name} could not run");
            ("not_run", Some(Signal::DiscoveryActionFailure), title, why)
        }
    };
    let before = marks.insert(format!("action:{name}"), word.to_owned());
    let signal = signal.filter(|_| before.as_deref() != Some(word))?;
    let origin = Origin::default().with("action", name);
    Some(finding(signal, format!("action:{name}"), &title, &summary, origin))
}

#[cfg(test)]
mod tests {
    use super::finding::SUMMARY;
    use super::*;

    #[test]
    fn an_action_is_told_when_it_begins_to_fail_and_not_while_it_does() {
        let mut marks = Watermarks::new();
        let mut told = |ended| judge("lint", ended, &mut marks).map(|it| (it.signal, it.trace));
        let trace = "action:lint".to_owned();
        assert_eq!(told(ActionEnd::Passed), None);
        let check = Some((Signal::DiscoveryActionCheck, trace.clone()));
        assert_eq!(told(ActionEnd::NotPassed("a".to_owned())), check);
        assert_eq!(told(ActionEnd::NotPassed("b".to_owned())), None);
        let failure = Some((Signal::DiscoveryActionFailure, trace));
        assert_eq!(told(ActionEnd::NotRun("gone".to_owned())), failure);
        assert_eq!(told(ActionEnd::Passed), None);
        assert_eq!(told(ActionEnd::NotPassed("a".to_owned())), check);
    }

    #[test]
    fn a_finding_is_short_and_holds_no_secret() {
        let key = format!("sk-{}", "a1".repeat(20));
        let text = format!("{} {key}", "x".repeat(100));
        let found = finding(
            Signal::GitDirty,
            "t".to_owned(),
            "a\n## b",
            &text.repeat(20),
            Origin::default(),
        );
        assert_eq!(found.title, "a ## b");
        assert!(found.summary.chars().count() <= SUMMARY && !found.summary.contains(&key));
        assert_eq!(found.origin.text("signal"), Some("git_dirty"));
    }
}
