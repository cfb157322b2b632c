//! The backlog: what a todo makes of its item, which items belong to a sprint, their order and counts.

use serde_json::{Value, json};
use teams::domain::ids::{ItemId, SprintId};
use teams::domain::item::{Item, ItemKind, ItemSource, ItemStatus, ItemTodo};
use teams::domain::lenient;
use teams::domain::sprint::TodoStatus;
use teams::domain::time::Timestamp;
use teams::engine::sprint::backlog;

use super::sprint::{sprint, todo};
use super::{Rule, Subject, text, whole};

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "apply_backlog_state_from_todo",
        ours: |args| {
            let before = item(&args["backlog_item"]);
            let mut after = before.clone();
            if !apply(&mut after, args) {
                return Value::Null;
            }
            json!({"changed": after != before, "item": state(&after)})
        },
        theirs: |theirs| json!({"changed": theirs["ret"], "item": state(&item(&theirs["after"]["backlog_item"]))}),
        rules: &[
            NO_STATUS,
            FAILED,
            Rule {
                row: "9.7",
                instead: "an item whose commit is missing says so",
                applies: is_silently_uncommitted,
                expected: |_, theirs| {
                    let mut expected = theirs.clone();
                    expected["item"]["blocked_reason"] = json!(NO_COMMIT);
                    expected
                },
            },
        ],
    },
    Subject {
        name: "build_sprint_selected_backlog_item",
        ours: |args| {
            let known = [&args["backlog_item"], &args["selected_item"]];
            let known = known.into_iter().find(|item| lenient::truthy(Some(item)));
            let mut item = match known {
                Some(known) => item(known),
                None => {
                    let id = ItemId::parse(text(args, "backlog_id")).unwrap();
                    again(id, args)
                }
            };
            if apply(&mut item, args) { facts(&item) } else { Value::Null }
        },
        theirs: |theirs| facts(&item(theirs)),
        rules: &[
            FAILED,
            Rule {
                row: "4.4, 9.7",
                instead: "a status that is no word of ours does not parse, and a missing commit is a reason",
                applies: |args| status(args).is_none() || is_silently_uncommitted(args),
                expected: |args, theirs| {
                    let mut expected = theirs.clone();
                    if status(args).is_none() {
                        return Value::Null;
                    }
                    expected["blocked_reason"] = json!(NO_COMMIT);
                    expected
                },
            },
        ],
    },
    Subject {
        name: "backlog_priority_key",
        ours: |args| {
            let (status, rank, other, kind, _) = backlog::priority_key(&item(&args["item"]));
            let kind = ItemKind::ALL.iter().position(|known| *known == kind);
            let rank = if rank == u32::MAX { 1_000_000_000 } else { rank };
            json!([status, rank, u8::from(other), kind, text(&args["item"], "created_at")])
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "backlog_status_counts",
        ours: |args| counted(&items(&args["items"])),
        theirs: whole,
        rules: &[Rule {
            row: "4.3",
            instead: "a status counts in capitals as well",
            applies: has_capitals,
            expected: |args, theirs| with_capitals(args, theirs),
        }],
    },
    Subject {
        name: "backlog_status_report_context",
        ours: |args| {
            let items = items(&args["items"]);
            let overview = backlog::overview(&items);
            let of = |entries: Vec<(&str, usize)>| -> Value {
                entries.into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect()
            };
            json!({
                "active": overview.active.iter().map(|item| name(item)).collect::<Vec<_>>(),
                "counts": counted(&items),
                "kinds": of(overview.kinds.iter().map(|(kind, n)| (kind.as_str(), *n)).collect()),
                "sources": of(overview.sources.iter().map(|(from, n)| (from.as_str(), *n)).collect()),
            })
        },
        theirs: |theirs| {
            let active = theirs["active_items"].as_array().unwrap();
            json!({
                "active": active.iter().map(|value| name(&item(value))).collect::<Vec<_>>(),
                "counts": theirs["counts"],
                "kinds": theirs["kind_counts"],
                "sources": theirs["source_counts"],
            })
        },
        rules: &[Rule {
            row: "4.3",
            instead: "a status counts in capitals as well, and no kind means enhancement",
            applies: |args| {
                has_capitals(args)
                    || args["items"].as_array().unwrap().iter().any(|item| item["kind"] == "")
            },
            expected: |args, theirs| {
                let mut expected = theirs.clone();
                expected["counts"] = with_capitals(args, &theirs["counts"]);
                let active = |item: &&Value| {
                    let status = text(item, "status").to_lowercase();
                    item["kind"] == ""
                        && ["pending", "selected", "blocked"].contains(&status.as_str())
                };
                let blank = args["items"].as_array().unwrap().iter().filter(active).count();
                if blank > 0 {
                    let known = theirs["kinds"]["enhancement"].as_u64().unwrap_or(0);
                    expected["kinds"]["enhancement"] = json!(known + blank as u64);
                }
                expected
            },
        }],
    },
    Subject {
        name: "collect_sprint_relevant_backlog_items",
        ours: |args| {
            let items = items(&args["backlog_items"]);
            let found = backlog::relevant(&items, &sprint(&args["sprint_state"]));
            found.into_iter().map(|item| item.backlog_id.as_str()).collect()
        },
        theirs: |theirs| {
            theirs.as_array().unwrap().iter().map(|item| item["backlog_id"].clone()).collect()
        },
        rules: &[],
    },
];

const NO_COMMIT: &str = "the commit could not be brought to the branch";

const NO_STATUS: Rule = Rule {
    row: "4.4",
    instead: "a todo whose status is no word of ours does not parse",
    applies: |args| status(args).is_none(),
    expected: |_, _| Value::Null,
};

fn status(args: &Value) -> Option<TodoStatus> {
    text(&args["todo"], "status").trim().to_lowercase().parse().ok()
}

fn is_silently_uncommitted(args: &Value) -> bool {
    status(args) == Some(TodoStatus::Uncommitted) && text(&args["todo"], "summary").is_empty()
}

const FAILED: Rule = Rule {
    row: "9.7",
    instead: "what failed waits for a person under its own id",
    applies: |args| status(args) == Some(TodoStatus::Failed),
    expected: |args, theirs| {
        let mut expected = theirs.clone();
        let is_within = expected["item"].is_object();
        let item = if is_within { &mut expected["item"] } else { &mut expected };
        item["status"] = json!(ItemStatus::Blocked);
        item["blocked_reason"] = json!(text(&args["todo"], "summary"));
        expected
    },
};

fn again(id: ItemId, args: &Value) -> Item {
    let todo = todo(&args["todo"]);
    let kind = backlog::classify(&todo.title);
    todo.item_again(id, kind, (&sprint_id(args), &[]), Timestamp::from_millis(0))
}

fn sprint_id(args: &Value) -> SprintId {
    SprintId::parse(text(args, "sprint_id")).unwrap()
}

/// Whether the todo has a status to apply.
fn apply(item: &mut Item, args: &Value) -> bool {
    item.todo =
        Some(ItemTodo { sprint_id: sprint_id(args), progress: todo(&args["todo"]).progress });
    backlog::set_by_todo(item, None, item.updated_at);
    item.todo = None;
    status(args).is_some()
}

fn item(value: &Value) -> Item {
    let word = |key: &str| text(value, key).trim().to_lowercase();
    let time = |key: &str| {
        let text = text(value, key);
        let day = format!("{text}T00:00:00");
        Timestamp::parse(text)
            .or_else(|_| Timestamp::parse(&day))
            .unwrap_or(Timestamp::from_millis(0))
    };
    let sprint = |key: &str| SprintId::parse(text(value, key)).ok();
    let id = ItemId::parse(text(value, "backlog_id"));
    let mut item = Item::new(
        id.unwrap_or_else(|_| ItemId::parse("nameless").unwrap()),
        text(value, "title"),
        text(value, "scope"),
        word("kind").parse::<ItemKind>().unwrap_or_default(),
        time("created_at"),
    );
    item.source = word("source").parse::<ItemSource>().unwrap_or_default();
    item.status = word("status").parse::<ItemStatus>().unwrap_or(ItemStatus::Pending);
    item.priority_rank = lenient::integer(value.get("priority_rank"))
        .and_then(|rank| u32::try_from(rank).ok())
        .unwrap_or(0);
    text(value, "milestone_title").clone_into(&mut item.milestone_title);
    item.acceptance_criteria =
        lenient::list(value.get("acceptance_criteria")).into_iter().map(Into::into).collect();
    item.origin = serde_json::from_value(value["origin"].clone()).unwrap_or_default();
    item.planned_in_sprint_id = sprint("planned_in_sprint_id");
    item.selected_in_sprint_id = sprint("selected_in_sprint_id");
    item.completed_in_sprint_id = sprint("completed_in_sprint_id");
    text(value, "blocked_reason").clone_into(&mut item.blocked_reason);
    text(value, "blocked_by_role").clone_into(&mut item.blocked_by_role);
    item.required_inputs = lenient::list(value.get("required_inputs"));
    text(value, "recommended_next_step").clone_into(&mut item.recommended_next_step);
    item
}

fn items(value: &Value) -> Vec<Item> {
    value.as_array().unwrap().iter().map(item).collect()
}

/// What a todo changes in an item. The words of the next step are ours; that there are some is compared.
fn state(item: &Item) -> Value {
    json!({
        "status": item.status.as_str(),
        "selected_in": item.selected_in_sprint_id,
        "completed_in": item.completed_in_sprint_id,
        "blocked_reason": item.blocked_reason,
        "blocked_by_role": item.blocked_by_role,
        "required_inputs": item.required_inputs,
        "has_next_step": !item.recommended_next_step.is_empty(),
    })
}

/// The same with what a restored item has from its todo.
fn facts(item: &Item) -> Value {
    let mut facts = state(item);
    facts["backlog_id"] = json!(item.backlog_id);
    facts["title"] = json!(item.title);
    facts["milestone_title"] = json!(item.milestone_title);
    facts["priority_rank"] = json!(item.priority_rank);
    facts["acceptance_criteria"] = json!(item.acceptance_criteria);
    facts
}

fn name(item: &Item) -> String {
    format!("{} {}", item.backlog_id, item.title)
}

fn counted(items: &[Item]) -> Value {
    let counts = backlog::counts(items);
    let of = |status: ItemStatus| counts.get(&status).copied().unwrap_or(0);
    let open = ItemStatus::ALL.into_iter().filter(|status| status.is_active()).map(of);
    json!({
        "pending": of(ItemStatus::Pending),
        "selected": of(ItemStatus::Selected),
        "blocked": of(ItemStatus::Blocked),
        "done": of(ItemStatus::Done),
        "total": open.sum::<usize>(),
    })
}

fn in_capitals(item: &Value) -> bool {
    let status = text(item, "status");
    status != status.to_lowercase()
}

fn has_capitals(args: &Value) -> bool {
    args["items"].as_array().unwrap().iter().any(in_capitals)
}

/// The recorded counts, and those that they left out.
fn with_capitals(args: &Value, counts: &Value) -> Value {
    let mut counts = counts.clone();
    for item in args["items"].as_array().unwrap().iter().filter(|item| in_capitals(item)) {
        let status = text(item, "status").to_lowercase();
        for key in [status.as_str(), "total"] {
            let count = counts[key].as_u64().unwrap();
            counts[key] = json!(count + 1);
        }
    }
    counts
}
