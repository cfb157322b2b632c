//! The rows S21, S22, S33, S38 and S39 of `spec/teams.md` 14.7: what an item is, and what a todo makes of it.

mod merging;

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::domain::ids::IdSupply;
use crate::domain::ids::{SprintId, TodoId};
use crate::domain::language::Language;
use crate::domain::origin::Origin;
use crate::domain::request::{Blocked, RequestRoute};
use crate::domain::result::NextStep;
use crate::domain::sprint::{Kickoff, TodoProgress, Trigger};

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn now() -> Timestamp {
    at("2026-03-24T09:00:00+09:00")
}

fn ids(seed: u128) -> IdSupply {
    IdSupply::new(uuid::Uuid::from_u128(seed))
}

fn sprint(milestone: &str) -> Sprint {
    let kickoff = Kickoff { milestone: milestone.to_owned(), ..Kickoff::default() };
    let id = SprintId::parse("260324-Sprint-09:00").unwrap();
    Sprint::new(id, Trigger::ManualStart, kickoff, Language::En)
}

#[test]
fn s38_kinds() {
    for (text, kind) in [
        ("login error", ItemKind::Bug),
        ("add export feature", ItemKind::Feature),
        ("update docs", ItemKind::Chore),
        ("make it faster", ItemKind::Enhancement),
        ("a prefix for the Debugger", ItemKind::Enhancement),
        ("로그 오류를 고쳐줘", ItemKind::Bug),
        ("내보내기 기능 추가", ItemKind::Feature),
        ("문서를 다듬기", ItemKind::Chore),
    ] {
        assert_eq!(classify(text), kind, "S38 {text:?}");
    }
}

#[test]
fn s39_echoes_are_not_actionable() {
    let mut item =
        Item::new(ids(1).backlog("20260324"), "Nightly check", "", ItemKind::Chore, now());
    assert!(is_actionable(&item));
    item.source = ItemSource::Discovery;
    assert!(is_echo(&item) && !is_actionable(&item), "S39");
    item.kind = ItemKind::Bug;
    assert!(is_actionable(&item));
    item.origin.set("_teams_kind", "sprint_internal");
    assert!(!is_actionable(&item));
    item.source = ItemSource::User;
    assert!(is_actionable(&item));
    item.status = ItemStatus::Blocked;
    assert!(!is_actionable(&item));
}

#[test]
fn s33_trace() {
    let origin = json!({"signal": "runtime_log_error", "request_id": "req-1",
        "related_request_id": "req-2", "operation_id": ["op-2", "op-1"], "note": "x", "role": ""});
    assert_eq!(
        serde_json::from_value::<Origin>(origin).unwrap().trace(),
        "operation_id=op-1,op-2|related_request_id=req-2|request_id=req-1|signal=runtime_log_error"
    );
}

fn set_by(item: &mut Item, status: TodoStatus, request: Option<&Request>, now: Timestamp) {
    let mut progress = TodoProgress::new(TodoId::parse("todo-090000-abcdef").unwrap(), now);
    progress.status = status;
    let sprint_id = SprintId::parse("260324-Sprint-09:00").unwrap();
    item.todo = Some(ItemTodo { sprint_id, progress });
    set_by_todo(item, request, now);
}

#[test]
fn s21_s22_every_todo_leaves_its_item_consistent() {
    let sprint = SprintId::parse("260324-Sprint-09:00").unwrap();
    let mut cancelled = Request { status: RequestStatus::Cancelled, ..Request::default() };
    cancelled.route.current_role = Some(Role::Developer);
    let cases = [
        (TodoStatus::Queued, None, ItemStatus::Selected, true),
        (TodoStatus::Running, None, ItemStatus::Selected, true),
        (TodoStatus::Uncommitted, None, ItemStatus::Blocked, false),
        (TodoStatus::Committed, None, ItemStatus::Done, true),
        (TodoStatus::Completed, None, ItemStatus::Done, true),
        (TodoStatus::Blocked, None, ItemStatus::Blocked, false),
        (TodoStatus::Failed, None, ItemStatus::Blocked, false),
        (TodoStatus::Cancelled, None, ItemStatus::Pending, false),
        (TodoStatus::Cancelled, Some(&cancelled), ItemStatus::Dropped, false),
    ];
    for (status, request, expected, selected) in cases {
        let mut item = Item::new(ids(1).backlog("20260324"), "t", "s", ItemKind::Bug, now());
        item.status = ItemStatus::Selected;
        item.selected_in_sprint_id = Some(sprint.clone());
        item.required_inputs = vec!["old".to_owned()];
        set_by(&mut item, status, request, now());
        assert_eq!(item.status, expected, "{status}");
        assert_eq!(item.selected_in_sprint_id.is_some(), selected, "{status}");
        assert_eq!(item.completed_in_sprint_id.is_some(), expected == ItemStatus::Done);
        let once = item.clone();
        set_by_todo(&mut item, request, now().plus_seconds(60));
        assert_eq!(item, once, "{status}: saying it again changes nothing");
    }
}

#[test]
fn s21_a_blocked_item_says_what_would_unblock_it() {
    let mut item = Item::new(ids(1).backlog("20260324"), "t", "s", ItemKind::Bug, now());
    let mut request = Request {
        status: RequestStatus::Blocked,
        blocked: Some(Blocked {
            code: crate::domain::block::BlockCode::RoleBlocked,
            detail: "no account to test with".to_owned(),
            required_inputs: vec!["a test account".to_owned()],
            since: now(),
            paused_by: None,
            card: None,
        }),
        route: RequestRoute { current_role: Some(Role::Qa), ..RequestRoute::default() },
        ..Request::default()
    };
    let mut result = crate::domain::result::RoleResult::new(Role::Qa, "r");
    result.proposals.suggested_next_step =
        Some(NextStep { owner: None, reason: "run qa again".to_owned() });
    request.work.result = Some(Arc::new(result));
    set_by(&mut item, TodoStatus::Blocked, Some(&request), now());
    assert_eq!(item.blocked_reason, "no account to test with");
    assert_eq!(item.blocked_by_role, "qa");
    assert_eq!(item.required_inputs, ["a test account"]);
    assert_eq!(item.recommended_next_step, "run qa again");
    set_by(&mut item, TodoStatus::Uncommitted, Some(&request), now());
    assert_eq!(item.blocked_by_role, "version_controller", "G11");
}

#[test]
fn priority_order() {
    let item = |rank: u32, source: ItemSource, kind: ItemKind| {
        let mut item = Item::new(ids(1).backlog("20260324"), "t", "s", kind, now());
        (item.priority_rank, item.source) = (rank, source);
        item
    };
    let ordered = [
        item(1, ItemSource::Planner, ItemKind::Chore),
        item(2, ItemSource::User, ItemKind::Chore),
        item(2, ItemSource::Planner, ItemKind::Bug),
        item(2, ItemSource::Planner, ItemKind::Feature),
        item(0, ItemSource::User, ItemKind::Bug),
    ];
    assert!(ordered.is_sorted_by_key(priority_key));
}
