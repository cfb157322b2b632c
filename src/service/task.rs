//! What a role is told about its step, gathered from the records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::assignment::SprintDocuments;
use super::team::Team;
use super::{agent, assignment, earlier_work};
use crate::agents::{
    ActionBrief, ConflictBrief, EndedRequest, Handover, Limits, OtherChange, PersonMessage,
    RunSpec, Surroundings, Task, Upstream, WriteAccess,
};
use crate::assets::{AssetError, AssetKind, Capability, RoleSpec};
use crate::domain::attachment::{ATTACHMENTS, Attachment};
use crate::domain::config::AgentKind;
use crate::domain::conflict::Conflict;
use crate::domain::conversation::ContextLevel;
use crate::domain::envelope::Envelope;
use crate::domain::ids::RequestId;
use crate::domain::lifecycle::{Step, StepAccess, StepName};
use crate::domain::plan_decision::PlanDecision;
use crate::domain::request::{Request, RequestEvent};
use crate::domain::request_plan::RequestPlan;
use crate::domain::role::Role;
use crate::domain::run::{Approach, Run};
use crate::domain::session::Session;
use crate::domain::state::session_key;
use crate::engine::{contract, may_ask};
use crate::git::{self, GitError, Worktree};
use crate::platform::beneath::Folder;
use crate::platform::files::{self, FileError};
use crate::store::{self, StoreError};
use crate::workspace::ConfigError;
use crate::workspace::documents;

/// Lines of a diff that go into a prompt.
const DIFF_LINES: usize = 400;
/// Bytes of a role's own history that go into a prompt.
const HISTORY_BYTES: usize = 4_000;
/// Reports of a role on its request that a fresh conversation of it is told.
const REPORTS: usize = 3;

/// Why a task could not be put together.
#[derive(Debug, thiserror::Error)]
pub(super) enum TaskError {
    #[error("the request is gone")]
    Gone,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Asset(#[from] AssetError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The run of an envelope. Blocks: it reads git, and the records, for which the store has to have settled.
pub(super) fn spec(
    team: &Team,
    envelope: &Envelope,
    worktree: &Worktree,
    run: &Run,
    run_dir: PathBuf,
) -> Result<RunSpec, TaskError> {
    let (request, known) = team.hub.read(|state| {
        let key = session_key(run.role, &run.request_id);
        (state.requests.get(&run.request_id).cloned(), state.sessions.get(&key).cloned())
    });
    let request = request.ok_or(TaskError::Gone)?;
    let role = team.workspace.role(run.role)?;
    let session_dir = session_dir(team, run.role, &request.request_id);
    snapshot(team, &request, run.role)?;
    let step = step_of(team, run);
    let limits = limits(team, step.as_ref());
    let access = match step.as_ref().map(|step| step.access) {
        Some(StepAccess::Write) => WriteAccess::Worktree,
        Some(StepAccess::Read) | None => WriteAccess::ReadOnly,
    };
    let mut surroundings = surroundings(team, run, &request);
    let (access, documents) = match sprint_documents(team, &request, run.role)? {
        Some(own) => {
            surroundings.read_only.extend(own.read_only);
            (WriteAccess::Documents(own.folder), own.documents)
        }
        None => (access, Vec::new()),
    };
    let choice = team.workspace.choice(run.role, run.step, run.approach)?;
    let put_back = known.as_ref().is_some_and(|session| session.put_back);
    // A conversation goes on only with the agent and the model that it was begun with, and another approach
    // begins anew.
    let session = known.filter(|it| {
        let command = &team.workspace.runtime.agents.acp.command.join(" ");
        let same = it.agent == choice.agent
            && it.model == choice.model
            && (it.command.is_empty() || it.command == *command);
        // Claude Code finds a conversation only in the folder in which it was begun.
        let moved = choice.agent == AgentKind::Claude
            && worktree.own_since().is_some_and(|since| it.last_used_at < since);
        same && !moved && run.approach != Approach::Different
    });
    let handover = match &session {
        Some(session) if !session.room.hands_over() => None,
        session => left_by(team, &request.request_id, run.role, session.as_deref())?,
    };
    let goes_on = session.is_some() && handover.is_none();
    let limits = Limits { context_window: agent::window(team, run.role, choice.agent), ..limits };
    let mut task = Task { documents, ..task(team, envelope, &request, run, &role, goes_on)? };
    task.kind = step.as_ref().map(|step| step.kind);
    task.template = step.as_ref().map(|step| step.prompt.clone()).unwrap_or_default();
    let ways = step.iter().flat_map(Step::edges);
    task.ways = ways.map(|(outcome, edge)| (outcome, edge.to)).collect();
    task.work.handover = handover;
    task.put_back = put_back;
    Ok(RunSpec {
        run_id: run.run_id.clone(),
        run_dir,
        session_dir,
        worktree: worktree.path(),
        access,
        agent: agent::of(team, &choice),
        task,
        // One that hands over is asked for a summary, and then a fresh one begins.
        resume: session.map(|session| session.session_id.clone()),
        limits,
        socket: None,
        surroundings,
        templates: templates(team, run.role, step.as_ref())?,
    })
}

/// What a role brings into a fresh conversation on a request: its own reports, as the records have them. Whether the one
/// before can still be asked itself depends on its room; none where it is gone, and nothing where there was none.
fn left_by(
    team: &Team,
    id: &RequestId,
    role: Role,
    session: Option<&Session>,
) -> Result<Option<Handover>, TaskError> {
    let events = store::read_settled_events(team.root(), id)?;
    let records = own_reports(&events, role);
    if session.is_none() && records.is_empty() {
        return Ok(None);
    }
    Ok(Some(Handover {
        session: session.map(|session| session.session_id.clone()).unwrap_or_default(),
        can_answer: session.is_some_and(|session| session.room != ContextLevel::Full),
        records,
        summary: String::new(),
    }))
}

/// The last reports of a role, oldest first, a paragraph each.
fn own_reports(events: &[RequestEvent], role: Role) -> String {
    let own = events.iter().filter(|event| event.actor == role.as_str());
    let results = own.filter_map(RequestEvent::result).filter(|result| result.role == role);
    let paragraphs: Vec<String> = results
        .map(|result| {
            let lines = [result.summary].into_iter().chain(result.insights).chain(result.artifacts);
            let text = lines.collect::<Vec<_>>().join("\n- ");
            format!("{}: {text}", result.status.as_str())
        })
        .collect();
    let last = paragraphs.iter().skip(paragraphs.len().saturating_sub(REPORTS));
    let text = last.map(String::as_str).collect::<Vec<_>>().join("\n\n");
    let from = text.len().saturating_sub(HISTORY_BYTES);
    (from..=text.len()).find_map(|at| text.get(at..)).unwrap_or_default().to_owned()
}

/// What a role sees of the workspace: the documents that all share, the request as it was written down for
/// it, and what was attached to that request.
fn surroundings(team: &Team, run: &Run, request: &Request) -> Surroundings {
    let root = team.root();
    let own = documents::request_snapshot_path(run.role, &request.request_id);
    let before = ended_before(team, request);
    let attached = files_of(request, before.as_ref());
    let attached = attached.filter(|path| path.starts_with("shared_workspace/"));
    let shared = ["shared_workspace".to_owned(), own].into_iter().chain(attached.cloned());
    Surroundings {
        readable: shared.filter(|path| !path.contains("..")).map(|path| root.join(path)).collect(),
        shared: Some(root.join("shared_workspace")),
        read_only: Vec::new(),
        repository: Some(team.project.common_dir().to_owned()),
        hidden: vec![root.to_owned(), team.project.path().to_owned(), root.join(ATTACHMENTS)],
        tools: team.workspace.runtime.sandbox.readable.clone(),
        project: None,
        prepared: BTreeMap::new(),
        proxy: None,
        pinned: {
            let set = &team.workspace.runtime.sandbox.project_settings;
            set.iter().map(|(path, hash)| (path.to_string(), hash.to_string())).collect()
        },
    }
}

/// The files of a request, and those of the one that it goes on from: "the same" may be about them.
fn files_of<'r>(
    request: &'r Request,
    before: Option<&'r Request>,
) -> impl Iterator<Item = &'r String> {
    let own = &request.artifacts;
    let sent = |path: &&String| path.starts_with(ATTACHMENTS) && !own.contains(path);
    own.iter().chain(before.into_iter().flat_map(|it| &it.artifacts).filter(sent))
}

/// Where a role keeps its conversation about a request.
pub(super) fn session_dir(team: &Team, role: Role, id: &RequestId) -> PathBuf {
    let folder = team.root().join(crate::assets::role_folder(role));
    folder.join("sessions").join(id.as_str())
}

/// The step of a run, as the lifecycle of its request, its sprint or sourcing defines it.
pub(super) fn step_of(team: &Team, run: &Run) -> Option<Step> {
    step_at(team, &run.request_id, run.step)
}

fn step_at(team: &Team, id: &RequestId, step: Option<StepName>) -> Option<Step> {
    team.hub.read(|state| {
        let request = state.requests.get(id)?;
        match &request.params.workflow {
            Some(workflow) => state.lifecycle(&workflow.lifecycle).step(step?).cloned(),
            None => state.duty_step(request).cloned(),
        }
    })
}

/// The files that a step of a request works in, or only reads. Blocks.
pub(super) fn tree_for(
    team: &Team,
    id: &RequestId,
    step: Option<StepName>,
) -> Result<Worktree, GitError> {
    let access = step_at(team, id, step).map(|step| step.access);
    team.project.tree_for(id, &team.worktrees(), access == Some(StepAccess::Write))
}

/// The templates of the workspace in place of those that are built in, and the step's own.
fn templates(
    team: &Team,
    role: Role,
    step: Option<&Step>,
) -> Result<BTreeMap<String, String>, TaskError> {
    let lookup = team.workspace.lookup().in_room(role);
    let mut templates = lookup.overrides(AssetKind::Prompt)?;
    if let Some(name) = step.map(Step::template) {
        let text = lookup.text(AssetKind::Prompt, &name)?;
        templates.insert(name, text);
    }
    Ok(templates)
}

fn limits(team: &Team, step: Option<&Step>) -> Limits {
    let set = &team.workspace.runtime.limits;
    let mut limits = Limits::default();
    if let Some(step) = step {
        limits.wall_ms = step.timeout_seconds * 1_000;
    }
    if let Some(seconds) = set.wall_seconds {
        limits.wall_ms = seconds.get() * 1_000;
    }
    if let Some(seconds) = set.idle_seconds {
        limits.idle_ms = seconds.get() * 1_000;
    }
    if let Some(bytes) = set.prompt_bytes {
        limits.prompt_bytes = bytes.as_usize();
    }
    limits
}

fn task(
    team: &Team,
    envelope: &Envelope,
    request: &Request,
    run: &Run,
    role: &RoleSpec,
    resumes: bool,
) -> Result<Task, TaskError> {
    let events = store::read_settled_events(team.root(), &request.request_id)?;
    let mut again = Vec::new();
    if !envelope.envelope.body.trim().is_empty() && run.step.is_some() {
        again.push(envelope.envelope.body.clone());
    }
    let reason = assignment::reopen_reason(request);
    if !reason.is_empty() && !again.iter().any(|known| known.contains(reason)) {
        again.push(reason.to_owned());
    }
    let evidence = request.work.evidence.clone();
    let web = run.role == Role::Research
        && role.can(Capability::UseWeb)
        && team.workspace.runtime.research_defaults.web;
    let mut work = team.hub.read(|state| assignment::work(state, request, team.root(), web));
    work.builds_on = earlier_work::of(team, request);
    if run.role == Role::Orchestrator && run.step.is_none() {
        let actions = team.workspace.runtime.actions.iter();
        work.actions = actions
            .map(|(name, action)| ActionBrief {
                name: name.clone(),
                parameters: action.allowed_params.iter().cloned().collect(),
            })
            .collect();
    }
    let planned = request.work.planned.as_ref().filter(|_| request.todo_id.is_none());
    let before = ended_before(team, request);
    Ok(Task {
        role: run.role,
        step: run.step,
        kind: None,
        template: String::new(),
        ways: BTreeMap::new(),
        request_id: request.request_id.to_string(),
        attempt: request.work.spent.step_failures.max(assignment::reopens(request)) + 1,
        charter: role.charter.clone(),
        language: request.conversation.language.as_str().to_owned(),
        request: PersonMessage::new(&request.conversation.reply_route.author_name, &request.body),
        earlier: request.params.earlier_bodies.clone(),
        addressed: request
            .params
            .user_requested_role
            .filter(|role| run.step.is_none() && *role != run.role),
        attachments: files_of(request, before.as_ref())
            .map(|path| attachment(team, path))
            .collect(),
        continues: before.map(continues),
        followups: request
            .params
            .followups
            .iter()
            // What it took while it worked stands in the conversation that it goes on with.
            .filter(|followup| !(resumes && followup.heard_by.contains(&run.role)))
            .map(|followup| PersonMessage::new(&followup.author_name, &followup.body))
            .collect(),
        again,
        put_back: false,
        approach: run.approach,
        failed: request.work.spent.last_failure,
        upstream: upstream(&events, run.role),
        evidence,
        criteria: team.hub.read(|state| assignment::criteria(state, request)),
        decisions: (request.work.decisions.iter())
            .map(|it| it.line().unwrap_or_else(|| it.open_line()))
            .collect(),
        plan_findings: match request.work.plan_review.is_open() {
            true => request.work.plan_review.findings.clone(),
            false => Vec::new(),
        },
        allowed_paths: planned.map(|plan| plan.allowed_paths.clone()).unwrap_or_default(),
        excluded_paths: planned.map(|plan| plan.excluded_paths.clone()).unwrap_or_default(),
        left_out: planned.map(RequestPlan::left_out).unwrap_or_default(),
        checks: team.hub.consult(|_, policy| policy.check_names.clone()),
        may_ask: run.role == Role::Planner
            && team.hub.consult(|_, policy| may_ask(policy, request)),
        conflict: conflict(team, request, run.role)?,
        diff: diff(team, request)?,
        documents: Vec::new(),
        history: history(team, run.role)?,
        work,
    })
}

/// Whether the roles of a request may read the words of another one: what somebody said to the team alone is for nobody else.
fn may_read(request: &Request, other: &Request) -> bool {
    let (route, whose) = (&request.conversation.reply_route, &other.conversation.reply_route);
    !whose.is_dm || (whose.author_id == route.author_id && route.is_dm)
}

/// What ended in the room in which the request was written. A record that is gone by now is nothing to go on from.
fn ended_before(team: &Team, request: &Request) -> Option<Request> {
    let id = request.params.follows_request_id.as_ref()?;
    let old = store::read_request(team.root(), id).unwrap_or_else(|error| {
        tracing::warn!(request = %id, %error, "what a request goes on from cannot be read");
        None
    });
    old.filter(|old| may_read(request, old))
}

/// Further words of an ended request that are told: the last ones.
const LAST_WORDS: usize = 5;

fn continues(old: Request) -> EndedRequest {
    let files = old.work.candidate.iter().flat_map(|candidate| &candidate.paths);
    let words = old.params.followups.iter().filter(|it| it.asks_for_something());
    let words: Vec<_> = words.map(|it| PersonMessage::new(&it.author_name, &it.body)).collect();
    let from = words.len().saturating_sub(LAST_WORDS);
    EndedRequest {
        request_id: old.request_id.to_string(),
        request: PersonMessage::new(&old.conversation.reply_route.author_name, &old.body),
        followups: words.into_iter().skip(from).collect(),
        status: old.status.as_str().to_owned(),
        criteria: contract::criteria(&old, None),
        decisions: old.work.decisions.iter().filter_map(PlanDecision::line).collect(),
        summary: old.work.result.map(|result| result.summary.clone()).unwrap_or_default(),
        files: files.map(|changed| changed.path.clone()).collect(),
        commit: old.outcome.commit_sha.unwrap_or_default(),
        evidence: old.work.evidence,
    }
}

/// The folder and the documents that the role writes for the request's sprint. The folders are made, or taken
/// back where an agent put something else in their place.
fn sprint_documents(
    team: &Team,
    request: &Request,
    role: Role,
) -> Result<Option<SprintDocuments>, TaskError> {
    let sprint = team
        .hub
        .read(|state| request.sprint_id.as_ref().and_then(|id| state.sprints.get(id)).cloned());
    let Some(sprint) = sprint else { return Ok(None) };
    let found = assignment::documents(team.root(), &sprint, request, role);
    if let Some(own) = &found {
        let sprint = Folder::open(team.root())?.make_folder(assignment::folder(&sprint))?;
        for folder in own.read_only.iter().chain([&own.folder]) {
            let below = folder.strip_prefix(sprint.path()).map_err(|_| TaskError::Gone)?;
            sprint.claim_folder(below)?;
        }
    }
    Ok(found)
}

fn attachment(team: &Team, path: &str) -> Attachment {
    let found = Folder::open(team.root()).and_then(|root| root.metadata(path));
    let filename = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
    Attachment {
        filename: filename.unwrap_or_default(),
        size: found.map(|found| found.len()).unwrap_or(0),
        saved: Some(team.root().join(path).display().to_string()),
    }
}

/// The latest result of each other role on this request, oldest first.
fn upstream(events: &[RequestEvent], own: Role) -> Vec<Upstream> {
    let mut latest: Vec<Upstream> = Vec::new();
    for event in events {
        let Some(result) = event.result() else { continue };
        latest.retain(|other| other.role != result.role);
        if result.role != own {
            latest.push(Upstream {
                role: result.role,
                step: event
                    .payload
                    .get("step")
                    .and_then(|step| serde_json::from_value(step.clone()).ok()),
                status: result.status.as_str().to_owned(),
                summary: result.summary,
                proposals: serde_json::to_value(&result.proposals).unwrap_or_default(),
                artifacts: result.artifacts,
            });
        }
    }
    latest
}

fn diff(team: &Team, request: &Request) -> Result<String, TaskError> {
    match &request.work.candidate {
        Some(candidate) => Ok(git::diff_excerpt(&team.project, candidate, DIFF_LINES)?),
        None => Ok(String::new()),
    }
}

/// What a request and the branch both changed, and in whose words. Of one that is solved only whoever mends the solution
/// is told.
fn conflict(
    team: &Team,
    request: &Request,
    role: Role,
) -> Result<Option<ConflictBrief>, TaskError> {
    let builds = matches!(role, Role::Developer | Role::ConflictResolver);
    let is_told = |it: &&Conflict| !it.solved || builds;
    let Some(conflict) = request.work.conflict.as_ref().filter(is_told) else { return Ok(None) };
    let sides = git::conflict::sides(&team.project, conflict, DIFF_LINES)?;
    let mut others = Vec::new();
    for commit in sides.commits {
        let of = match &commit.request {
            Some(id) => store::read_request(team.root(), id)?,
            None => None,
        };
        others.push(match of {
            Some(of) if may_read(request, &of) => OtherChange {
                plan: plan_of(team, &of.request_id),
                request_id: of.request_id.to_string(),
                author: of.conversation.reply_route.author_name,
                words: of.body,
            },
            Some(_) | None => OtherChange {
                request_id: String::new(),
                author: commit.author,
                words: commit.message,
                plan: String::new(),
            },
        });
    }
    Ok(Some(ConflictBrief {
        head: conflict.head.clone(),
        paths: conflict.paths.clone(),
        own: sides.own,
        branch: sides.branch,
        others,
        criteria: [&request.work.others_criteria[..], &conflict.criteria].concat(),
        changed: sides.changed,
        solved: conflict.solved,
    }))
}

/// What the planner of another request made of it, in the summary of its latest report.
fn plan_of(team: &Team, id: &RequestId) -> String {
    let events = store::read_settled_events(team.root(), id).unwrap_or_else(|error| {
        tracing::warn!(request = %id, %error, "the plan of the other side cannot be read");
        Vec::new()
    });
    let mut reports = upstream(&events, Role::ConflictResolver).into_iter();
    reports.find(|one| one.role == Role::Planner).map(|one| one.summary).unwrap_or_default()
}

/// The end of the role's own history file.
fn history(team: &Team, role: Role) -> Result<String, TaskError> {
    let path = team.root().join(crate::assets::role_folder(role)).join("history.md");
    Ok(files::read_end(&path, HISTORY_BYTES)?.unwrap_or_default())
}

/// The request as the role finds it in its sources folder.
fn snapshot(team: &Team, request: &Request, role: Role) -> Result<(), TaskError> {
    let path = team.root().join(documents::request_snapshot_path(role, &request.request_id));
    if let Some(folder) = path.parent() {
        files::create_dir_all(folder)?;
    }
    let text = documents::request_snapshot(request)?;
    // The sandbox of an earlier start may just be opening it.
    if files::read_text_if_present(&path)?.as_deref() != Some(text.as_str()) {
        files::write_atomic(&path, text)?;
    }
    Ok(())
}
