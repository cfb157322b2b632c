//! What a role is told about the sprint and the backlog that its request belongs to.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::agents::{OpenRequest, SprintBrief, TaskDocument, Work};
use crate::domain::criterion::Criterion;
use crate::domain::ids::TodoId;
use crate::domain::item::Item;
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::sprint::{Duty, DutyDetails, Sprint, Todo, TodoStatus};
use crate::domain::state::State;
use crate::engine::contract;

/// Open requests of one person that are named.
const OPEN: usize = 10;

/// Items of the backlog that a role is shown.
const ITEMS: usize = 60;
/// Todos of a sprint that whoever does one of them is told of.
const TODOS_TOLD: usize = 20;
/// Findings, candidates or blocked items that a role is shown.
const FACTS: usize = 60;
/// Where sprints have their documents, in the workspace.
const SPRINTS: &str = "shared_workspace/sprints";

/// The sprint and the backlog as the request's role needs them; blank for a person's request outside a
/// sprint. `web` says whether the role may read the web.
pub(super) fn work(state: &State, request: &Request, root: &Path, web: bool) -> Work {
    let duty = request.duty();
    let sprint = request
        .sprint_id
        .as_ref()
        .and_then(|id| state.sprints.get(id).map(Arc::as_ref))
        .or_else(|| state.active_sprint().filter(|_| duty.is_some()));
    let item = request.backlog_id.as_ref().and_then(|id| state.backlog.get(id));
    let mut work = Work {
        duty,
        planning_step: request.planning_step(),
        reopens: reopens(request),
        sprint: sprint.map(|sprint| match (duty, &request.todo_id) {
            (None, Some(own)) => brief_of_todo(sprint, own, root),
            (Some(_), _) | (None, None) => brief(sprint, root),
        }),
        item: item.map(|item| item.without_todo()),
        web,
        ..Work::default()
    };
    match &request.params.duty {
        Some(DutyDetails::Sourcing { findings }) => work.findings = some(findings),
        Some(DutyDetails::SourcerReview { findings, candidates }) => {
            work.findings = some(findings);
            work.candidates = some(candidates);
        }
        Some(DutyDetails::BlockedReview { blocked_items }) => {
            work.blocked_items = some(blocked_items);
        }
        Some(
            DutyDetails::ResearchPrepass
            | DutyDetails::Planning { .. }
            | DutyDetails::PlanReview
            | DutyDetails::OngoingReview
            | DutyDetails::ClosingReport { .. },
        )
        | None => {}
    }
    if request.params.workflow.is_none() && duty.is_none() {
        work.open_requests = open_requests(state, request);
    }
    if duty.is_some_and(wants_backlog) {
        let mut items: Vec<&Item> = state.backlog.values().map(Arc::as_ref).collect();
        items.sort_by_key(|item| {
            let rank = if item.priority_rank == 0 { u32::MAX } else { item.priority_rank };
            (!work.is_of_the_sprint(item), rank, item.created_at, item.backlog_id.clone())
        });
        work.backlog_left_out = items.len().saturating_sub(ITEMS);
        // What came of an item's todo is told with the sprint.
        work.backlog = items.into_iter().take(ITEMS).map(Item::without_todo).collect();
    }
    work
}

/// What else whoever asked has open, the newest first; what was said directly only where this was as well.
fn open_requests(state: &State, request: &Request) -> Vec<OpenRequest> {
    let asked = &request.conversation.reply_route;
    let is_mine = |other: &&Arc<Request>| {
        let route = &other.conversation.reply_route;
        let is_same = route.author_id.is_some() && route.author_id == asked.author_id;
        let is_open = !other.status.is_terminal() && other.request_id != request.request_id;
        is_same && is_open && (asked.is_dm || !route.is_dm)
    };
    let mut mine: Vec<&Arc<Request>> = state.requests.values().filter(is_mine).collect();
    mine.sort_by_key(|other| std::cmp::Reverse(other.created_at));
    let mine = mine.into_iter().filter(|other| other.duty().is_none() && other.todo_id.is_none());
    let open = mine.take(OPEN).map(|other| OpenRequest {
        request_id: other.request_id.to_string(),
        scope: other.scope.clone(),
    });
    open.collect()
}

/// The first of what a role is given, as its prompt shows it.
fn some<T: serde::Serialize>(given: &[T]) -> Vec<Value> {
    given.iter().take(FACTS).map(|it| json!(it)).collect()
}

/// The acceptance criteria that a request is held against.
pub(super) fn criteria(state: &State, request: &Request) -> Vec<Criterion> {
    let item = request.backlog_id.as_ref().and_then(|id| state.backlog.get(id));
    contract::criteria(request, item.map(Arc::as_ref))
}

/// How often the step of planning was given back before this request.
pub(super) fn reopens(request: &Request) -> u32 {
    match request.params.duty {
        Some(DutyDetails::Planning { initial_phase_reopen_count, .. }) => {
            initial_phase_reopen_count
        }
        Some(_) | None => 0,
    }
}

/// Why the step of planning was given back; blank where it was not.
pub(super) fn reopen_reason(request: &Request) -> &str {
    match &request.params.duty {
        Some(DutyDetails::Planning { initial_phase_reopen_reason, .. }) => {
            initial_phase_reopen_reason.trim()
        }
        Some(_) | None => "",
    }
}

const fn wants_backlog(duty: Duty) -> bool {
    match duty {
        Duty::Planning
        | Duty::PlanReview
        | Duty::OngoingReview
        | Duty::Sourcing
        | Duty::SourcerReview
        | Duty::BlockedReview => true,
        Duty::ResearchPrepass | Duty::ClosingReport => false,
    }
}

fn brief(sprint: &Sprint, root: &Path) -> SprintBrief {
    SprintBrief {
        // Agents work in the project, from where nothing leads to the workspace.
        root: root.display().to_string(),
        sprint_id: sprint.sprint_id.to_string(),
        folder: folder(sprint),
        status: sprint.status.as_str().to_owned(),
        plan_approved: sprint.planning.is_approved,
        requested_milestone: sprint.kickoff.milestone.clone(),
        milestone: sprint.milestone_title.clone(),
        brief: sprint.kickoff.brief.clone(),
        requirements: sprint.kickoff.requirements.clone(),
        request_text: sprint.kickoff.request_text.clone(),
        artifacts: sprint.kickoff.artifacts.clone(),
        research: sprint.planning.research.clone(),
        todos: sprint.work.todos.clone(),
        todos_left_out: 0,
        commits: sprint.work.commits.clone(),
        closeout: sprint.closing.status.map(|it| it.as_str().to_owned()).unwrap_or_default(),
        uncommitted_paths: sprint.closing.uncommitted_paths.clone(),
    }
}

/// For whoever does one of its todos: of the others those that it depends on or that depend on it, what is under
/// way beside it, and what ended last. A long sprint makes no prompt longer.
fn brief_of_todo(sprint: &Sprint, own: &TodoId, root: &Path) -> SprintBrief {
    let id = |todo: &Todo| todo.progress.todo_id.clone();
    let on = sprint.work.todos.iter().find(|todo| todo.progress.todo_id == *own);
    let on = on.map(|todo| todo.depends_on.as_slice()).unwrap_or_default();
    let mut nearest: Vec<&Todo> = sprint.work.todos.iter().collect();
    nearest.sort_by_key(|todo| {
        let progress = &todo.progress;
        let near = match progress.status {
            _ if progress.todo_id == *own => 0,
            _ if on.contains(&progress.todo_id) || todo.depends_on.contains(own) => 1,
            TodoStatus::Running | TodoStatus::Uncommitted => 2,
            TodoStatus::Queued
            | TodoStatus::Committed
            | TodoStatus::Completed
            | TodoStatus::Blocked
            | TodoStatus::Failed
            | TodoStatus::Cancelled => 3,
        };
        (near, Reverse(progress.ended_at))
    });
    let told: BTreeSet<TodoId> = nearest.into_iter().take(TODOS_TOLD).map(id).collect();
    let mut brief = brief(sprint, root);
    brief.commits.clear();
    brief.todos.retain(|todo| told.contains(&todo.progress.todo_id));
    brief.todos_left_out = sprint.work.todos.len() - brief.todos.len();
    brief
}

/// The sprint's folder, relative to the workspace. Made of the name alone: a record of the older runtime
/// may hold a path of another machine.
pub(super) fn folder(sprint: &Sprint) -> String {
    format!("{SPRINTS}/{}", sprint.sprint_folder_name)
}

/// What a role writes of a sprint's documents.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SprintDocuments {
    /// The folder that may be written.
    pub(super) folder: PathBuf,
    /// Folders in it that others write.
    pub(super) read_only: Vec<PathBuf>,
    /// The documents that are written, or have to be known.
    pub(super) documents: Vec<TaskDocument>,
}

/// Where the todos of a sprint have their own documents, in its folder.
const TODOS: &str = "todos";

/// The documents of a sprint that a role writes for a request, or has to know; `None` where it writes none.
pub(super) fn documents(
    root: &Path,
    sprint: &Sprint,
    request: &Request,
    role: Role,
) -> Option<SprintDocuments> {
    let name = sprint.sprint_folder_name.as_str();
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        return None;
    }
    let folder = folder(sprint);
    let document = |name: String, purpose: &str, writable| TaskDocument {
        path: root.join(&name),
        name,
        purpose: format!("{purpose}."),
        writable,
    };
    let own = |list: &[(&str, &str)]| -> Vec<TaskDocument> {
        let all = list.iter();
        all.map(|(name, purpose)| document(format!("{folder}/{name}"), purpose, true)).collect()
    };
    let documents = match (request.duty(), &request.todo_id) {
        (Some(Duty::Planning), _) => own(&[
            ("milestone.md", "the milestone and its framing"),
            ("plan.md", "the plan of the sprint"),
            ("spec.md", "what the sprint has to bring about, in numbered parts"),
        ]),
        (Some(Duty::OngoingReview), _) => own(&[("plan.md", "the plan of the sprint")]),
        (Some(Duty::ResearchPrepass), _) => {
            own(&[("research.md", "the long version of the research")])
        }
        (
            Some(
                Duty::PlanReview
                | Duty::ClosingReport
                | Duty::Sourcing
                | Duty::SourcerReview
                | Duty::BlockedReview,
            ),
            _,
        )
        | (None, None) => return None,
        (None, Some(_)) if role != Role::Planner => return None,
        // Two todos at a time do not write into one document.
        (None, Some(todo)) => {
            let own = format!("{folder}/{TODOS}/{todo}");
            let kept = "kept by the runtime; after QA sent the work back, list it once you read it";
            let mut documents =
                vec![document(format!("{own}/spec.md"), "the plan of this todo", true)];
            for name in ["todo_backlog.md", "iteration_log.md"] {
                documents.push(document(format!("{folder}/{name}"), kept, false));
            }
            documents.push(document("shared_workspace/current_sprint.md".to_owned(), kept, false));
            return Some(SprintDocuments {
                folder: root.join(own),
                read_only: Vec::new(),
                documents,
            });
        }
    };
    let folder = root.join(&folder);
    Some(SprintDocuments { read_only: vec![folder.join(TODOS)], folder, documents })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::change::Change;
    use crate::domain::ids::{ItemId, SprintId, UserId};
    use crate::domain::item::{ItemKind, ItemStatus};
    use crate::domain::language::Language;
    use crate::domain::sprint::{Kickoff, PlanningStep, Trigger};
    use crate::domain::time::Timestamp;

    fn sprint() -> Sprint {
        let id = SprintId::parse("260324-Sprint-09:00").unwrap();
        let kickoff = Kickoff { milestone: "Greet everybody".to_owned(), ..Kickoff::default() };
        let mut sprint = Sprint::new(id, Trigger::ManualStart, kickoff, Language::En);
        sprint.sprint_folder_name = "260324-Sprint-09-00".to_owned();
        sprint
    }

    fn planning() -> Request {
        let mut request = Request { sprint_id: Some(sprint().sprint_id), ..Request::default() };
        request.params.duty = Some(DutyDetails::Planning {
            initial_phase_step: PlanningStep::BacklogDefinition,
            initial_phase_reopen_count: 1,
            initial_phase_reopen_reason: "no items".to_owned(),
            reopen_of_request_id: None,
        });
        request
    }

    #[test]
    fn a_planning_request_knows_its_sprint_and_the_backlog_with_the_own_items_first() {
        let mut state = State::default();
        state.apply(&Change::save(sprint()));
        for (id, milestone, rank) in [("backlog-a", "", 1), ("backlog-b", "Greet everybody", 0)] {
            let at = Timestamp::from_millis(0);
            let id = ItemId::parse(id).unwrap();
            let mut item = Item::new(id, "x", "y", ItemKind::Chore, at);
            item.milestone_title = milestone.to_owned();
            item.priority_rank = rank;
            state.apply(&Change::save(item));
        }
        let request = planning();
        let work = work(&state, &request, Path::new("/team"), false);
        assert_eq!(work.planning_step, Some(PlanningStep::BacklogDefinition));
        assert_eq!((work.reopens, reopen_reason(&request)), (1, "no items"));
        let names: Vec<&str> = work.backlog.iter().map(|item| item.backlog_id.as_str()).collect();
        assert_eq!(names, ["backlog-b", "backlog-a"]);
        let brief = work.sprint.unwrap();
        assert_eq!(brief.folder, "shared_workspace/sprints/260324-Sprint-09-00");
        assert_eq!(brief.milestone, "Greet everybody");
        let mut sourcing = planning();
        let trace = json!({"signal": "git_dirty", "trace": "a", "title": "t", "summary": "s"});
        let findings = vec![serde_json::from_value(trace).unwrap()];
        sourcing.params.duty = Some(DutyDetails::Sourcing { findings });
        assert_eq!(super::work(&state, &sourcing, Path::new("/team"), false).findings.len(), 1);
        let outside = super::work(&state, &Request::default(), Path::new("/team"), false);
        assert_eq!(outside, Work::default());
    }

    #[test]
    fn the_intake_knows_what_else_the_person_has_open() {
        let mut state = State::default();
        let by = |id: &str, author: u64, is_dm: bool| {
            let mut request = Request {
                request_id: id.parse().unwrap(),
                scope: format!("do {id}"),
                ..Request::default()
            };
            request.conversation.reply_route.author_id = Some(UserId(author));
            request.conversation.reply_route.is_dm = is_dm;
            request
        };
        let new = by("20260324-00000009", 7, false);
        let others = [("20260324-00000001", 7, false), ("20260324-00000002", 8, false)];
        for (id, author, is_dm) in others.into_iter().chain([("20260324-00000003", 7, true)]) {
            state.apply(&Change::save(by(id, author, is_dm)));
        }
        let status = crate::domain::request::RequestStatus::Committed;
        state.apply(&Change::save(Request { status, ..by("20260324-00000004", 7, false) }));
        state.apply(&Change::save(new.clone()));
        let open = work(&state, &new, Path::new("/team"), false).open_requests;
        let named: Vec<&str> = open.iter().map(|it| it.request_id.as_str()).collect();
        assert_eq!(
            named,
            ["20260324-00000001"],
            "no other's, nor what was said directly or has ended"
        );
    }

    #[test]
    fn ten_thousand_items_make_no_longer_prompt_than_sixty() {
        use crate::agents::prompt::{PromptInput, assemble};
        use crate::agents::{PersonMessage, Task};

        let size = |items: usize| {
            let mut state = State::default();
            state.apply(&Change::save(sprint()));
            for number in 0..items {
                let at = Timestamp::from_millis(0);
                let id = ItemId::parse(&format!("backlog-{number:06}")).unwrap();
                let item = Item::new(id, "Louder", "say it louder", ItemKind::Chore, at);
                state.apply(&Change::save(item.clone()));
                let status = ItemStatus::Done;
                let id = ItemId::parse(&format!("backlog-done-{number:06}")).unwrap();
                let done = Item { backlog_id: id, status, ..item };
                state.apply(&Change::save(done));
            }
            let task = Task {
                charter: "You plan.".to_owned(),
                work: work(&state, &planning(), Path::new("/team"), false),
                ..Task::first(
                    Role::Planner,
                    None,
                    "20260324-00000001",
                    PersonMessage::new("Mina", "plan it"),
                )
            };
            let making = PromptInput {
                task: &task,
                worktree: "/w",
                schema: &json!({}),
                budget: 160 << 10,
                templates: &Default::default(),
                submit: false,
            };
            assemble(&making).unwrap().text.len()
        };
        let (sixty, all) = (size(ITEMS), size(10_000));
        assert!(all.abs_diff(sixty) < 100, "{sixty} and {all} bytes");
    }

    #[test]
    fn a_long_sprint_makes_no_todos_prompt_longer() {
        let todo = |number: usize, status| {
            let at = Timestamp::from_millis(i64::try_from(number).unwrap());
            let mut todo =
                Todo::new(TodoId::parse(&format!("todo-{number:06}")).unwrap(), "Louder", at);
            todo.progress.status = status;
            todo.progress.ended_at = status.is_terminal().then_some(at);
            todo
        };
        let mut sprint = sprint();
        let numbers = 0..200;
        sprint.work.todos = numbers.map(|number| todo(number, TodoStatus::Committed)).collect();
        sprint.work.todos.extend([todo(200, TodoStatus::Running), todo(201, TodoStatus::Running)]);
        sprint.work.todos.extend((202..300).map(|number| todo(number, TodoStatus::Queued)));
        sprint.work.todos[200].depends_on = vec![TodoId::parse("todo-000003").unwrap()];
        sprint.work.todos[250].depends_on = vec![TodoId::parse("todo-000200").unwrap()];
        let request = Request {
            sprint_id: Some(sprint.sprint_id.clone()),
            todo_id: Some(TodoId::parse("todo-000200").unwrap()),
            ..Request::default()
        };
        let mut state = State::default();
        state.apply(&Change::save(sprint));
        let brief = work(&state, &request, Path::new("/team"), false).sprint.unwrap();
        let told: Vec<String> =
            brief.todos.iter().map(|todo| todo.progress.todo_id.to_string()).collect();
        assert_eq!((told.len(), brief.todos_left_out), (TODOS_TOLD, 300 - TODOS_TOLD));
        for near in ["todo-000003", "todo-000199", "todo-000200", "todo-000201", "todo-000250"] {
            assert!(told.contains(&near.to_owned()), "{near} of {told:?}");
        }
        let whole = work(&state, &Request { todo_id: None, ..request }, Path::new("/team"), false);
        assert_eq!(whole.sprint.unwrap().todos.len(), 300);
    }

    #[test]
    fn each_duty_and_each_todo_writes_its_own_documents() {
        let sprint = sprint();
        let root = Path::new("/w");
        let names = |request: &Request, role| {
            let found = documents(root, &sprint, request, role)?;
            let own = found.documents.iter().filter(|document| document.writable);
            let writes = |path: &Path| {
                path.starts_with(&found.folder)
                    && !found.read_only.iter().any(|other| path.starts_with(other))
            };
            assert!(own.clone().all(|document| writes(&document.path)));
            let names = own.map(|document| document.name.rsplit('/').next().unwrap().to_owned());
            Some(names.collect::<Vec<_>>().join(" "))
        };
        let mut request = planning();
        let plan = Some("milestone.md plan.md spec.md".to_owned());
        assert_eq!(names(&request, Role::Planner), plan);
        request.params.duty = Some(DutyDetails::ClosingReport {
            closeout_status: crate::domain::sprint::CloseoutStatus::Verified,
        });
        assert_eq!(names(&request, Role::Planner), None);
        request.params.duty = None;
        assert_eq!(names(&request, Role::Planner), None);
        request.todo_id = Some(crate::domain::ids::TodoId::parse("todo-1").unwrap());
        assert_eq!(names(&request, Role::Planner).as_deref(), Some("spec.md"));
        assert_eq!(names(&request, Role::Developer), None);
        let folder = documents(root, &sprint, &request, Role::Planner).unwrap().folder;
        assert!(folder.ends_with("260324-Sprint-09-00/todos/todo-1"), "{folder:?}");
    }

    #[test]
    fn only_a_plain_folder_name_is_written_to() {
        let mut sprint = sprint();
        for bad in ["", "../x", "/etc", ".hidden", "a/b"] {
            sprint.sprint_folder_name = bad.to_owned();
            let found = documents(Path::new("/w"), &sprint, &planning(), Role::Planner);
            assert!(found.is_none(), "{bad}");
        }
    }
}
