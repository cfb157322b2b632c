//! Merging into the backlog: the rows S34 to S37 of `spec/teams.md` 14.7, what is better than its defects, and
//! properties.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::{ids, now, sprint};
use crate::domain::ids::{ItemId, RequestId};
use crate::domain::sprint::{Phase, SprintStatus};
use crate::domain::text::flat;

#[derive(Default)]
struct Store {
    known: BTreeMap<ItemId, Item>,
    settled: BTreeMap<ItemId, String>,
    seed: u128,
    sprint: Option<Sprint>,
    source: ItemSource,
}

impl Store {
    fn merge(&mut self, payload: &Value) -> Result<MergeResult, String> {
        self.seed += 1_000_000;
        let request = RequestId::parse("20260324-00000001").unwrap();
        let context = MergeContext {
            source: self.source,
            request_id: Some(&request),
            sprint: self.sprint.as_ref(),
            now: now().plus_seconds(u64::try_from(self.seed).unwrap() / 1_000_000),
            zone: chrono_tz::Asia::Seoul,
            fixed: &BTreeSet::new(),
        };
        let known = self.known.iter().collect();
        let settled = self.settled.iter().map(|(id, print)| (id, print.as_str())).collect();
        let merged = merge(&known, &settled, payload, &context, &mut ids(self.seed));
        let merged = merged.map_err(|error| error.to_string())?;
        for item in &merged.items {
            self.put(item.clone());
        }
        Ok(merged)
    }

    fn put(&mut self, item: Item) {
        let id = item.backlog_id.clone();
        if item.status.is_active() {
            self.settled.remove(&id);
            self.known.insert(id, item);
        } else {
            self.known.remove(&id);
            self.settled.insert(id, item.fingerprint.clone());
        }
    }

    fn added(&mut self, payload: &Value) -> Item {
        self.merge(payload).unwrap().items.remove(0)
    }
}

fn counts(merged: &MergeResult) -> (usize, usize) {
    (merged.added, merged.updated)
}

#[test]
fn s34_the_same_item_twice_is_one() {
    let mut store = Store::default();
    let payload = json!({"backlog_item": {"title": "Log in", "scope": "the page", "kind": "bug"}});
    let first = store.merge(&payload).unwrap();
    assert_eq!(counts(&first), (1, 0));
    let second = store.merge(&payload).unwrap();
    assert_eq!(counts(&second), (0, 1));
    assert_eq!(first.items, second.items, "nothing changed, so not even the time");
}

#[test]
fn s35_pending_clears_the_blockers() {
    let mut store = Store::default();
    let mut item = store.added(&json!({"title": "Pay", "status": "blocked",
        "blocked_reason": "no key", "required_inputs": ["the key"], "blocked_by_role": "developer",
        "recommended_next_step": "ask"}));
    assert_eq!((item.status, item.required_inputs.len()), (ItemStatus::Blocked, 1));
    let id = item.backlog_id.clone();
    item = store.added(&json!({"backlog_id": id.as_str(), "status": "pending"}));
    assert_eq!(item.status, ItemStatus::Pending);
    assert_eq!((item.blocked_reason.as_str(), item.blocked_by_role.as_str()), ("", ""));
    assert_eq!((item.required_inputs.len(), item.recommended_next_step.as_str()), (0, ""));
}

#[test]
fn s36_other_keys_bring_nothing() {
    let mut store = Store::default();
    for payload in [
        json!({"planned_backlog_updates": [{"title": "x"}]}),
        json!({}),
        json!([]),
        json!(null),
        json!({"backlog_items": []}),
    ] {
        assert_eq!(counts(&store.merge(&payload).unwrap()), (0, 0), "S36 {payload}");
    }
}

#[test]
fn s37_a_patch_leaves_what_it_does_not_name() {
    let mut store = Store::default();
    let before = store.added(&json!({"title": "Export", "scope": "csv", "kind": "feature",
        "summary": "as a file", "acceptance_criteria": ["opens"], "milestone_title": "M",
        "origin": {"spec_refs": ["a"]}}));
    let id = before.backlog_id.as_str();
    let after = store.added(&json!({"backlog_id": id, "priority_rank": 3, "title": null,
        "scope": "", "kind": "", "acceptance_criteria": [], "origin": {"milestone_ref": "m"}}));
    let mut expected = before.clone();
    expected.priority_rank = 3;
    expected.origin.set("milestone_ref", "m");
    expected.updated_at = after.updated_at;
    assert_eq!(after, expected);
    assert!(after.updated_at > before.updated_at);
}

#[test]
fn row_13a_14_a_recurrence_is_a_new_item() {
    let mut store = Store::default();
    let payload = json!({"title": "Crash on start", "scope": "main"});
    let mut done = store.added(&payload);
    done.status = ItemStatus::Done;
    store.put(done.clone());
    let again = store.merge(&payload).unwrap();
    assert_eq!(counts(&again), (1, 0));
    assert_ne!(again.items[0].backlog_id, done.backlog_id);
    assert_eq!(again.items[0].origin.text("recurrence_of"), Some(done.backlog_id.as_str()));
    assert_eq!(again.items[0].status, ItemStatus::Pending);
    assert_eq!(counts(&store.merge(&payload).unwrap()), (0, 1), "and that one is known then");
    let by_id = json!({"backlog_id": done.backlog_id.as_str(), "title": "Crash on start, on arm"});
    let by_id = store.merge(&by_id).unwrap();
    assert_eq!(by_id.items[0].origin.text("recurrence_of"), Some(done.backlog_id.as_str()));
}

#[test]
fn refusals_name_item_field_and_value_and_change_nothing() {
    let mut store = Store { sprint: Some(sprint("M")), ..Store::default() };
    let good = store.added(&json!({"title": "Good"}));
    let id = good.backlog_id.as_str();
    let many: Vec<Value> = (0..201).map(|n| json!({"title": n.to_string()})).collect();
    let cases = [
        (json!(5), "item 1: expected an object"),
        (json!([{"title": "a"}, 7]), "item 2: expected an object"),
        (json!({"backlog_items": many}), "201 items"),
        (json!([{"title": "  ", "summary": "s"}]), "item 1: title: blank"),
        (
            json!([{"title": "a"}, {"backlog_id": "backlog-x", "title": "b"}]),
            "item backlog-x: backlog_id",
        ),
        (json!([{"backlog_id": "../x", "title": "b"}]), "item ../x: backlog_id"),
        (
            json!([{"title": "a", "priority_rank": "high"}]),
            "item a: priority_rank: expected a whole",
        ),
        (json!([{"title": "a", "priority_rank": -1}]), "found -1"),
        (json!([{"title": "a", "priority_rank": 1.5}]), "found 1.5"),
        (json!([{"title": "a", "kind": "epic"}]), "item a: kind: expected bug"),
        (json!([{"title": "a", "status": "ready"}]), "item a: status: expected pending"),
        (json!([{"title": "a", "status": "done"}]), "item a: status: expected pending, blocked"),
        (json!([{"title": "a", "source": "me"}]), "item a: source"),
        (json!([{"title": ["a"]}]), "item 1: title: expected a text, found [\"a\"]"),
        (
            json!([{"title": "a", "acceptance_criteria": {"x": 1}}]),
            "acceptance_criteria: expected a list",
        ),
        (json!([{"title": "a", "origin": "x"}]), "origin: expected an object"),
        (
            json!([{"title": "a", "planned_in_sprint_id": "260101-Sprint-09:00"}]),
            "planned_in_sprint_id",
        ),
        (json!([{"title": "a", "depends_on": ["nobody"]}]), "depends_on: \"nobody\" is neither"),
        (json!([{"title": "a", "depends_on": ["a"]}]), "wait for each other: "),
        (
            json!([{"title": "a", "allowed_paths": ["src/**", "../b"]}]),
            "item a: allowed_paths: \"../b\" leaves the project; paths are relative",
        ),
        (json!([{"title": "a", "allowed_paths": {"b": 1}}]), "expected a list of texts"),
        (
            json!([{"title": "a", "scope": "x".repeat(16_001)}]),
            "item a: scope: 16001 characters, and at most 16000 are taken; say less",
        ),
        (
            json!([{"title": "a", "acceptance_criteria": ["ok", "x".repeat(2_001)]}]),
            "item a: acceptance_criteria: 2001 characters in one entry",
        ),
        (json!([{"title": "a", "acceptance_criteria": vec!["x"; 51]}]), ": 51 entries"),
        (
            json!([{"title": "a", "effort": -1}]),
            "item a: effort: expected a whole number from 1 to",
        ),
        (
            json!([{"title": "a", "depends_on": ["b"]}, {"title": "b", "depends_on": [id]},
                {"backlog_id": id, "depends_on": ["a"]}]),
            "(a) → ",
        ),
    ];
    for (payload, words) in cases {
        let known = store.known.clone();
        let error = store.merge(&payload).unwrap_err();
        assert!(error.contains(words), "{payload}: {error}");
        assert_eq!(store.known, known, "{payload}");
    }
}

#[test]
fn paths_and_effort_are_declared_and_stay_until_they_are_declared_otherwise() {
    let mut store = Store::default();
    let said = json!([{"title": "a", "allowed_paths": ["src/a/**", "tests/"], "effort": 3}]);
    let item = store.added(&said);
    assert_eq!((item.allowed_paths.len(), item.effort), (2, 3));
    let id = item.backlog_id;
    store.merge(&json!([{"backlog_id": id, "effort": null, "scope": "more"}])).unwrap();
    for (source, left) in
        [(ItemSource::Sourcer, (2, 3)), (ItemSource::Planner, (2, 9)), (ItemSource::User, (0, 9))]
    {
        store.source = source;
        let said = json!([{"backlog_id": id, "allowed_paths": [], "effort": 9}]);
        let item = store.merge(&said).unwrap().items.remove(0);
        assert_eq!((item.allowed_paths.len(), item.effort), left, "{source:?}");
    }
}

#[test]
fn a_todo_at_work_keeps_its_item() {
    let mut store = Store::default();
    let mut item = store.added(&json!({"title": "Pay"}));
    item.status = ItemStatus::Selected;
    store.put(item.clone());
    let id = item.backlog_id.as_str();
    for same in ["pending", "selected"] {
        let after = store.added(&json!({"backlog_id": id, "status": same}));
        assert_eq!(after.status, ItemStatus::Selected, "{same}");
    }
    let other = store.added(&json!({"title": "Export"}));
    let other = other.backlog_id.as_str();
    assert!(store.merge(&json!({"backlog_id": other, "status": "selected"})).is_err(), "no sprint");
    for other in ["blocked", "dropped", "done"] {
        let error = store.merge(&json!({"backlog_id": id, "status": other})).unwrap_err();
        assert!(error.contains(other), "{error}");
    }
}

#[test]
fn a_person_may_say_done_and_keeps_the_own_words() {
    let mut store = Store { source: ItemSource::User, ..Store::default() };
    let item = store.added(&json!({"title": "backlog 정리", "summary": "remove what is done"}));
    assert_eq!((item.title.as_str(), item.source), ("backlog 정리", ItemSource::User));
    let item = store.added(&json!({"backlog_id": item.backlog_id.as_str(), "status": "done"}));
    assert_eq!(item.status, ItemStatus::Done);
}

#[test]
fn titles_that_only_name_upkeep_are_replaced() {
    for (title, summary, scope, kept) in [
        ("backlog 정리", "두 항목을 합친다", "", "두 항목을 합친다"),
        ("Update the docs", "Sync the plan", "Explain the flags", "Explain the flags"),
        ("Update the docs", "", "", "Update the docs"),
        ("Prompt the user for a password", "s", "", "Prompt the user for a password"),
        ("문서 업로드 기능", "s", "", "문서 업로드 기능"),
    ] {
        let mut store = Store::default();
        let item = store.added(&json!({"title": title, "summary": summary, "scope": scope}));
        assert_eq!(item.title, kept, "{title}");
    }
}

#[test]
fn what_planning_writes_belongs_to_the_sprint() {
    let mut store = Store { sprint: Some(sprint("M")), ..Store::default() };
    let payload = json!({"backlog_items": [
        {"title": "b", "depends_on": ["a"], "priority_rank": "2",
            "planned_in_sprint_id": "260324-Sprint-09:00"},
        {"title": "a", "origin": {"request_id": "own"}},
    ]});
    let merged = store.merge(&payload).unwrap();
    let sprint = store.sprint.clone().unwrap();
    let [b, a] = &merged.items[..] else { panic!("two items") };
    assert_eq!(b.depends_on.as_slice(), std::slice::from_ref(&a.backlog_id));
    assert_eq!(b.priority_rank, 2);
    assert_eq!(b.planned_in_sprint_id.as_ref(), Some(&sprint.sprint_id));
    assert_eq!(relevant([a, b], &sprint), [b, a], "by rank, the unranked last");
    assert!(!a.added_during_active_sprint);
    assert_eq!(
        (a.origin.text("request_id"), b.origin.text("request_id")),
        (Some("own"), Some("20260324-00000001"))
    );
    let mut running = sprint;
    running.phase = Phase::Ongoing;
    running.status = SprintStatus::Running;
    store.sprint = Some(running.clone());
    let late = store.added(&json!({"title": "late", "status": "selected"}));
    assert_eq!(late.status, ItemStatus::Pending, "the todo selects, not the word");
    assert!(late.added_during_active_sprint && relevant([&late], &running).is_empty());
}

fn entry() -> impl Strategy<Value = Value> {
    let title = prop::sample::select(vec!["Log in", "log  IN", "Export", "Pay", "문서 정리", "x"]);
    let scope = prop::option::of(prop::sample::select(vec!["", "page", "csv"]));
    let kind = prop::option::of(prop::sample::select(vec!["bug", "chore", ""]));
    let rank = prop::option::of(0_u32..4);
    let status = prop::option::of(prop::sample::select(vec!["pending", "blocked", "dropped"]));
    (title, scope, kind, rank, status).prop_map(|(title, scope, kind, rank, status)| {
        json!({"title": title, "scope": scope, "kind": kind, "priority_rank": rank,
            "status": status, "summary": "what it is for"})
    })
}

proptest! {
    #[test]
    fn merging_again_changes_nothing(payload in prop::collection::vec(entry(), 0..12)) {
        let mut store = Store::default();
        // What is dropped leaves the open items and comes again as a recurrence, and two entries of one title
        // may mean one item or two: both left aside.
        let mut titles = BTreeSet::new();
        let payload: Vec<Value> = payload
            .into_iter()
            .filter(|entry| entry["status"] != "dropped")
            .filter(|entry| titles.insert(flat(entry["title"].as_str().unwrap())))
            .collect();
        let payload = json!({"backlog_items": payload});
        let first = store.merge(&payload).unwrap();
        let known = store.known.clone();
        let second = store.merge(&payload).unwrap();
        prop_assert_eq!(second.added, 0);
        prop_assert_eq!(second.updated, first.added);
        prop_assert_eq!(&store.known, &known);
    }

    #[test]
    fn no_two_items_share_an_id_and_counts_agree(
        payloads in prop::collection::vec(prop::collection::vec(entry(), 0..8), 1..6)
    ) {
        let mut store = Store::default();
        let mut seen = BTreeSet::new();
        for payload in payloads {
            let before = store.known.clone();
            let merged = store.merge(&Value::from(payload)).unwrap();
            prop_assert_eq!(merged.items.len(), merged.added + merged.updated);
            for item in &merged.items {
                let fresh = seen.insert(item.backlog_id.clone());
                prop_assert_eq!(fresh, !before.contains_key(&item.backlog_id));
                let print = crate::domain::item::fingerprint(&item.title, &item.scope, item.kind);
                prop_assert_eq!(&item.fingerprint, &print);
            }
        }
    }

    #[test]
    fn the_backlog_never_waits_for_itself(
        payloads in prop::collection::vec(
            prop::collection::vec((0_usize..6, prop::collection::vec(0_usize..6, 0..3)), 1..4), 1..6)
    ) {
        let mut store = Store::default();
        for payload in payloads {
            let entries = payload.iter().map(|(title, on)| {
                let on: Vec<String> = on.iter().map(|on| format!("t{on}")).collect();
                json!({"title": format!("t{title}"), "depends_on": on})
            });
            let payload = Value::from(entries.collect::<Vec<_>>());
            let before = store.known.clone();
            if store.merge(&payload).is_err() {
                prop_assert_eq!(&store.known, &before);
            }
            let graph: Vec<_> = store
                .known
                .values()
                .map(|item| (item.backlog_id.clone(), item.depends_on.clone()))
                .collect();
            prop_assert_eq!(crate::engine::plan::graph::cycle(&graph), None);
            for id in graph.iter().flat_map(|(_, on)| on) {
                prop_assert!(store.known.contains_key(id));
            }
        }
    }

    #[test]
    fn any_json_is_answered(text in "\\PC{0,40}", depth in 0_usize..4) {
        let mut value = json!({"title": text, "origin": {"a": [text, {"b": text}]}, "depends_on": text});
        for _ in 0..depth {
            value = json!({"backlog_items": [value]});
        }
        let _ = Store::default().merge(&value);
    }
}
