//! Keeps the papers of sprints, plans and backlog up to date (`spec/teams.md` 3.4, 3.5). They follow from the
//! records, so they are written after the fact; a restart writes what a crash left out.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::effect_error::EffectError;
use super::team::Team;
use crate::domain::ids::{ItemId, RequestId, SprintId};
use crate::domain::item::Item;
use crate::domain::plan_review::PlanReview;
use crate::domain::request::Request;
use crate::domain::request_plan::PlanVersion;
use crate::domain::sprint::Sprint;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::platform::beneath::Folder;
use crate::platform::{files, tasks};
use crate::store::{self, StoreError};
use crate::workspace::papers::{self, Keep, Paper, Reports, RoleReport};

/// Times that a document is looked at anew because somebody else wrote it at the same moment.
const TRIES: usize = 5;

/// One writer at a time: the keeper and the archive write the same files.
static WRITING: Mutex<()> = Mutex::new(());

/// What was written last, so that only what changed is made anew.
#[derive(Default)]
struct Written {
    backlog: Option<BTreeMap<ItemId, Arc<Item>>>,
    current: Option<Option<Arc<Sprint>>>,
    sprints: BTreeMap<SprintId, Arc<Sprint>>,
    reports: BTreeMap<RequestId, RequestReports>,
    planned: BTreeMap<RequestId, (PlanVersion, PlanReview)>,
}

/// The reports of a request, and how its record stood when they were read.
struct RequestReports {
    stamp: Option<Timestamp>,
    reports: Vec<RoleReport>,
}

/// What there is to write about.
struct Subject {
    backlog: BTreeMap<ItemId, Arc<Item>>,
    active: Option<SprintId>,
    sprints: BTreeMap<SprintId, Arc<Sprint>>,
    stamps: BTreeMap<RequestId, Option<Timestamp>>,
    planned: Vec<Arc<Request>>,
}

/// Writes whenever something changed, until the team closes, and then once more.
pub(super) async fn keep(team: Arc<Team>) {
    let mut written = Written::default();
    loop {
        let last = team.closing.is_cancelled();
        // What could not be written is tried again at the next change.
        if let Err(trouble) = write(&team, &mut written).await {
            tracing::warn!(%trouble, "papers of the sprint or the backlog were not written");
        }
        if last {
            return;
        }
        tokio::select! {
            () = team.closing.cancelled() => {}
            () = team.signals.papers.notified() => {}
        }
    }
}

fn subject(state: &State) -> Subject {
    let requests = state.sprints.values().flat_map(|it| requests_of(it));
    let stamps = requests
        .map(|id| (id.clone(), state.requests.get(id).map(|request| request.updated_at)))
        .collect();
    Subject {
        backlog: state.backlog.clone(),
        active: state.scheduler.active_sprint_id.clone(),
        sprints: state.sprints.clone(),
        stamps,
        planned: state
            .requests
            .values()
            .filter(|it| it.work.planned.is_some() && it.duty().is_none())
            .cloned()
            .collect(),
    }
}

fn requests_of(sprint: &Sprint) -> impl Iterator<Item = &RequestId> {
    sprint.work.todos.iter().filter_map(|todo| todo.progress.request_id.as_ref())
}

async fn write(team: &Arc<Team>, written: &mut Written) -> Result<(), EffectError> {
    let subject = team.hub.read(subject);
    let language = team.workspace.runtime.language;
    let zone = team.workspace.runtime.sprint.timezone.0;
    let mut ready: Vec<Paper> = Vec::new();

    let stale: Vec<RequestId> = subject
        .stamps
        .iter()
        .filter(|(id, stamp)| written.reports.get(id).is_none_or(|heard| heard.stamp != **stamp))
        .map(|(id, _)| id.clone())
        .collect();
    let mut fresh = hear(team, &stale).await?;
    for id in &stale {
        let stamp = subject.stamps.get(id).copied().flatten();
        let reports = fresh.remove(id).unwrap_or_default();
        written.reports.insert(id.clone(), RequestReports { stamp, reports });
    }
    written.reports.retain(|id, _| subject.stamps.contains_key(id));

    if written.backlog.as_ref() != Some(&subject.backlog) {
        ready.push(papers::backlog(&subject.backlog, language)?);
    }
    let current = subject.active.as_ref().and_then(|id| subject.sprints.get(id)).cloned();
    if written.current.as_ref() != Some(&current) {
        ready.push(papers::current_sprint(current.as_deref(), language)?);
    }
    for (id, sprint) in &subject.sprints {
        let news = requests_of(sprint).any(|request| stale.contains(request));
        if !news && written.sprints.get(id) == Some(sprint) {
            continue;
        }
        let reports: Reports = requests_of(sprint)
            .filter_map(|id| Some((id.clone(), written.reports.get(id)?.reports.clone())))
            .collect();
        ready.extend(papers::sprint_papers(sprint, zone, &reports)?);
    }

    let version = |request: &Request| {
        let plan = request.work.planned.as_ref()?;
        let seen = (plan.version.clone(), request.work.plan_review.clone());
        Some((request.request_id.clone(), seen))
    };
    let planned: BTreeMap<_, _> = subject.planned.iter().filter_map(|it| version(it)).collect();
    // One that has ended meanwhile may have been decided about since it was written.
    let gone = written.planned.keys().filter(|id| !planned.contains_key(*id)).cloned();
    let ended = ended(team, gone.collect()).await?;
    for request in subject.planned.iter().map(Arc::as_ref).chain(&ended) {
        let id = &request.request_id;
        if version(request).map(|(_, it)| it).as_ref() != written.planned.get(id) {
            ready.extend(papers::request_plan(request, zone)?);
        }
    }

    let root = team.root().to_owned();
    let put_all = move || {
        let mut done = Ok(());
        for paper in &ready {
            // One that cannot be written keeps no other from it.
            done = done.and(put(&root, paper).map(|_| ()));
        }
        done
    };
    let done = tasks::blocking(put_all).await;
    if !matches!(done, Ok(Ok(()))) {
        // They are heard again.
        written.reports.retain(|id, _| !stale.contains(id));
    }
    done??;
    written.backlog = Some(subject.backlog);
    written.current = Some(current);
    written.sprints = subject.sprints;
    written.planned = planned;
    Ok(())
}

/// These requests, which have ended, as far as they can be read: one that cannot keeps no other document from being
/// written.
async fn ended(team: &Arc<Team>, requests: Vec<RequestId>) -> Result<Vec<Request>, EffectError> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    team.store.settled().await?;
    let root = team.root().to_owned();
    let read = tasks::blocking(move || {
        let read = |id: &RequestId| {
            let request = store::read_settled(&root, &format!("requests/{id}.json"));
            request.unwrap_or_else(|error| {
                tracing::warn!(%error, request = %id, "the plan of a request that has ended is not written");
                None
            })
        };
        requests.iter().filter_map(read).collect()
    });
    Ok(read.await?)
}

/// What the roles reported on these requests, out of their histories.
pub(super) async fn hear(team: &Arc<Team>, requests: &[RequestId]) -> Result<Reports, EffectError> {
    if requests.is_empty() {
        return Ok(Reports::new());
    }
    // The files show what memory shows once the store has settled.
    team.store.settled().await?;
    let (root, requests) = (team.root().to_owned(), requests.to_vec());
    let heard = tasks::blocking(move || {
        let read = requests.into_iter().map(|id| {
            let events = store::read_settled_events(&root, &id)?;
            Ok((id, papers::role_reports(&events)))
        });
        read.collect::<Result<Reports, StoreError>>()
    });
    Ok(heard.await??)
}

/// Bytes of the largest document that is kept up to date.
const LARGEST: u64 = 16 << 20;

/// Writes a paper where it is not so already; says whether its text is there now. A document whose marks
/// do not match is left alone, and the log names it. Agents write in the same folders: nothing is read or
/// written through a link of theirs, and what is no file makes way for the document.
pub(super) fn put(root: &Path, paper: &Paper) -> Result<bool, files::FileError> {
    let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let (folder, name) = folder_of(root, &paper.path)?;
    for _ in 0..TRIES {
        let old = match folder.read_text_if_present(name, LARGEST) {
            Ok(old) => old,
            Err(error) if !folder.has_file(name) => {
                tracing::warn!(%error, "what stands in a document's place makes way for it");
                None
            }
            Err(error) => {
                tracing::warn!(%error, "a document is left alone: it is not text");
                return Ok(false);
            }
        };
        let text = match paper.keep {
            Keep::Once if old.is_some() => return Ok(true),
            Keep::Once => paper.text.clone() + "\n",
            Keep::Part => {
                match papers::splice(old.as_deref(), paper.heading, paper.name, &paper.text) {
                    Ok(Some(text)) => text,
                    Ok(None) => return Ok(true),
                    Err(error) => {
                        tracing::warn!(path = %paper.path, %error, "a document is left alone");
                        return Ok(false);
                    }
                }
            }
        };
        // Whoever wrote in the meantime is not overwritten.
        let same = match folder.read_text_if_present(name, LARGEST) {
            Ok(now) => now == old,
            Err(_) => old.is_none() && !folder.has_file(name),
        };
        if same {
            match folder.write_atomic(name, text) {
                Ok(()) => return Ok(true),
                // It would be in its way again and again, and in that of all the others.
                Err(error) if folder.metadata(name).is_ok_and(|it| it.is_dir()) => {
                    tracing::warn!(%error, "a document is not written: a folder has its name");
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
    }
    tracing::warn!(path = %paper.path, "a document changes all the time; it is brought up to date later");
    Ok(false)
}

/// The folder of a document, made where it is missing, and the document's name in it.
pub(super) fn folder_of<'a>(
    root: &Path,
    path: &'a str,
) -> Result<(Folder, &'a str), files::FileError> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    Ok((Folder::open(root)?.make_folder(folder)?, name))
}
