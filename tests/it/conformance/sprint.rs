//! Sprints: slots, names, todos, times.

use std::collections::BTreeSet;

use chrono::{DateTime, FixedOffset, MappedLocalTime, NaiveDateTime, TimeDelta, TimeZone};
use chrono_tz::Tz;
use serde_json::{Value, json};
use teams::domain::config::{CutoffTime, IntervalMinutes};
use teams::domain::ids::{SprintId, TodoId};
use teams::domain::language::Language;
use teams::domain::lenient;
use teams::domain::lifecycle::{Lifecycle, SprintStep, StepKind, StepOutcome};
use teams::domain::request::Request;
use teams::domain::sprint::{Kickoff, Phase, PlanningStep, Sprint, Todo, TodoStatus, Trigger};
use teams::domain::time::Timestamp;
use teams::engine::parse::display_width;
use teams::engine::sprint::{closeout, names, slots, todos};

use super::{Rule, Subject, text, whole};

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "compute_next_slot_at",
        ours: |args| {
            let interval = args["interval_minutes"].as_i64().unwrap();
            let interval = IntervalMinutes::try_from(interval);
            let (Ok(interval), Some(zone)) = (interval, zone(args)) else { return Value::Null };
            json!(slots::next_slot(now(args), interval.get(), zone).to_string())
        },
        theirs: instant,
        rules: &[
            Rule {
                row: "13.A #21",
                instead: "an interval that does not divide a day is counted on over midnight",
                applies: |args| interval(args) > 0 && 1_440 % interval(args) != 0,
                expected: |args, _| {
                    let wall = wall(now(args), args);
                    let minutes = wall.and_utc().timestamp().div_euclid(60);
                    let slot = (minutes / interval(args) + 1) * interval(args);
                    let wall = DateTime::from_timestamp(slot * 60, 0).unwrap().naive_utc();
                    json!(at_wall(wall, args).to_string())
                },
            },
            Rule {
                row: "2.2",
                instead: "an interval below one minute is refused",
                applies: |args| interval(args) < 1,
                expected: |_, _| Value::Null,
            },
            Rule {
                row: "13.A #21",
                instead: "in a skipped hour the slot is the end of it, in a repeated one the next that is ahead",
                applies: |args| {
                    let around = [-2_i64, 0, 2].map(|hours| {
                        let at = now(args).millis() + hours * 3_600_000;
                        offset(Timestamp::from_millis(at), args)
                    });
                    around.iter().collect::<BTreeSet<_>>().len() > 1
                },
                expected: |args, _| {
                    // By the definition: the first minute whose wall clock is a slot or follows a jump over one,
                    // not counting what the clock shows again.
                    let zone = zone(args).unwrap();
                    let first = now(args).millis().div_euclid(60_000) + 1;
                    let at = |minute: i64| Timestamp::from_millis(minute * 60_000);
                    let slots_until = |minute: i64| {
                        let wall = wall(at(minute), args).and_utc().timestamp().div_euclid(60);
                        wall.div_euclid(interval(args))
                    };
                    let is_repeat = |minute: i64| {
                        let wall = wall(at(minute), args);
                        matches!(zone.from_local_datetime(&wall),
                            MappedLocalTime::Ambiguous(first, _) if first.timestamp() < minute * 60)
                    };
                    let seen = (first - 180..first).map(slots_until).max().unwrap();
                    let slot =
                        (first..).find(|minute| slots_until(*minute) > seen && !is_repeat(*minute));
                    json!(at(slot.unwrap()).to_string())
                },
            },
        ],
    },
    Subject {
        name: "build_sprint_cutoff_at",
        ours: |args| {
            let Ok(cutoff) = CutoffTime::try_from(text(args, "cutoff_time").to_owned()) else {
                return Value::Null;
            };
            json!(slots::cutoff_at(now(args), &cutoff, chrono_tz::Asia::Seoul).to_string())
        },
        theirs: instant,
        rules: &[Rule {
            row: "2.2",
            instead: "a time of day has two digits for each part; without one the day has no end",
            applies: |args| {
                let digits =
                    |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
                !text(args, "cutoff_time").split(':').all(digits)
            },
            expected: |_, _| Value::Null,
        }],
    },
    Subject {
        name: "build_active_sprint_id",
        ours: |args| {
            json!(names::sprint_id(now(args), chrono_tz::Asia::Seoul, &BTreeSet::new()).as_str())
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "build_daily_sprint_display_name",
        ours: |args| {
            // Where no time was given, the cases were recorded on this day.
            let recorded = || Timestamp::parse("2026-04-05T12:00:00+09:00").unwrap();
            let now = if args["now"].is_null() { recorded() } else { now(args) };
            json!(names::display_name(now, chrono_tz::Asia::Seoul, text(args, "milestone_title")))
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "build_sprint_artifact_folder_name",
        ours: |args| json!(names::slug(text(args, "sprint_id"))),
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "normalize_sprint_label",
        ours: |args| json!(names::sprint_label(text(args, "value"))),
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "is_terminal_todo_status",
        ours: |args| json!(todo_status(text(args, "status")).is_some_and(TodoStatus::is_terminal)),
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "successful_todo_status",
        ours: |args| json!(todo_status(text(args, "status")).is_some_and(TodoStatus::is_success)),
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "next_initial_phase_step",
        ours: |args| {
            let step = text(args, "step").trim().to_lowercase().parse::<PlanningStep>().ok();
            let lifecycle = Lifecycle::of(teams::domain::lifecycle::Subject::Sprint);
            let planning = |step| StepKind::Sprint(SprintStep::Planning(step));
            let at = step.and_then(|step| lifecycle.step_of(planning(step)));
            let next = at.and_then(|step| lifecycle.step(step.on(StepOutcome::Done)?.to));
            let is_next = |it: &PlanningStep| next.is_some_and(|next| next.kind == planning(*it));
            json!(PlanningStep::ALL.into_iter().find(is_next).map_or("", PlanningStep::as_str))
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "is_resumable_blocked_sprint",
        ours: |args| json!(closeout::is_resumable(&sprint(&args["sprint_state"]))),
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "sort_sprint_todos",
        ours: |args| {
            let todos = todo_list(&args["todos"]);
            let ordered = todos::order(&todos);
            ordered.into_iter().map(|index| todos[index].progress.todo_id.as_str()).collect()
        },
        theirs: |theirs| {
            theirs.as_array().unwrap().iter().map(|todo| todo["todo_id"].clone()).collect()
        },
        rules: &[],
    },
    Subject {
        name: "todo_status_from_request_record",
        ours: |args| {
            let record = &args["request_record"];
            let Ok(status) = serde_json::from_value(record["status"].clone()) else {
                return Value::Null;
            };
            json!(TodoStatus::of(&Request { status, ..Request::default() }).as_str())
        },
        theirs: whole,
        rules: &[
            Rule {
                row: "S08, 13.A #1",
                instead: "what a role reported on the way does not end a todo, nor upgrades a failure",
                applies: |args| {
                    let record = &args["request_record"];
                    let status = record["status"].as_str().unwrap_or_default();
                    !status.is_empty() && record["result"]["status"] != record["status"]
                },
                expected: |args, _| match args["request_record"]["status"].as_str().unwrap() {
                    "delegated" => json!("running"),
                    status => json!(status),
                },
            },
            Rule {
                row: "4.2",
                instead: "a record without a status does not parse",
                applies: |args| args["request_record"]["status"] == "",
                expected: |_, _| Value::Null,
            },
        ],
    },
    Subject {
        name: "display_width",
        ours: |args| json!(display_width(text(args, "value"))),
        theirs: whole,
        rules: &[
            Rule {
                row: "conformance/README",
                instead: "an emoji put together of several is shown as one",
                applies: |args| text(args, "value").contains(['\u{200d}', '\u{fe0f}']),
                expected: |args, theirs| {
                    let value = text(args, "value");
                    // What is joined to an emoji takes no room; a presentation selector makes one wide.
                    let joined = value.matches('\u{200d}').count();
                    let widened = value.matches('\u{fe0f}').count();
                    json!(theirs.as_u64().unwrap() - 2 * joined as u64 + widened as u64)
                },
            },
            Rule {
                row: "conformance/README",
                instead: "the parts of a Hangul syllable stand in one place",
                applies: |args| {
                    text(args, "value").contains(|c| ('\u{1160}'..='\u{11ff}').contains(&c))
                },
                expected: |args, theirs| {
                    let parts = text(args, "value")
                        .chars()
                        .filter(|c| ('\u{1160}'..='\u{11ff}').contains(c));
                    json!(theirs.as_u64().unwrap() - parts.count() as u64)
                },
            },
        ],
    },
    Subject {
        name: "normalize_runtime_timestamps",
        ours: |args| with_times(&args["payload"]),
        theirs: with_times,
        rules: &[Rule {
            row: "4.1",
            instead: "a time at the ends of the calendar is read if it can be, and else stays as it is",
            applies: |args| {
                let text = text(&args["payload"], "created_at");
                text.starts_with("0001-") || text.starts_with("9999-")
            },
            expected: |args, _| {
                let written = text(&args["payload"], "created_at");
                json!({ "created_at": written.replace("00:00:00+", "00:00:00.000000+") })
            },
        }],
    },
];

fn interval(args: &Value) -> i64 {
    args["interval_minutes"].as_i64().unwrap()
}

fn now(args: &Value) -> Timestamp {
    Timestamp::parse(text(args, "now")).unwrap()
}

fn zone(args: &Value) -> Option<Tz> {
    text(args, "timezone_name").parse().ok()
}

fn offset(at: Timestamp, args: &Value) -> i64 {
    (wall(at, args) - at.utc().naive_utc()).num_seconds()
}

/// What the clock in the zone of the case shows.
fn wall(at: Timestamp, args: &Value) -> NaiveDateTime {
    zone(args).map_or(at.utc().naive_utc(), |zone| at.utc().with_timezone(&zone).naive_local())
}

/// When it first shows that, or what it shows next.
fn at_wall(wall: NaiveDateTime, args: &Value) -> Timestamp {
    let zone = zone(args).unwrap();
    let shown = (0..3_000).map(|minutes| wall + TimeDelta::minutes(minutes));
    let at = shown.filter_map(|wall| zone.from_local_datetime(&wall).earliest()).next().unwrap();
    Timestamp::new(at.to_utc())
}

/// An instant in whatever zone it was written.
fn instant(theirs: &Value) -> Value {
    let at = theirs.as_str().map(|text| DateTime::<FixedOffset>::parse_from_rfc3339(text).unwrap());
    at.map_or(Value::Null, |at| json!(Timestamp::new(at.to_utc()).to_string()))
}

fn todo_status(word: &str) -> Option<TodoStatus> {
    word.trim().to_lowercase().parse().ok()
}

/// A todo with the fields that count; words that are none of ours read as the nearest.
pub(super) fn todo(value: &Value) -> Todo {
    let id = value["todo_id"].as_str().unwrap_or("todo");
    let mut todo =
        Todo::new(TodoId::parse(id).unwrap(), text(value, "title"), Timestamp::from_millis(0));
    let time = |key: &str| value[key].as_str().and_then(|text| Timestamp::parse(text).ok());
    todo.progress.status = todo_status(text(value, "status")).unwrap_or(TodoStatus::Queued);
    todo.priority_rank = lenient::integer(value.get("priority_rank"))
        .and_then(|rank| u32::try_from(rank).ok())
        .unwrap_or(0);
    todo.progress.created_at = time("created_at");
    todo.progress.started_at = time("started_at");
    text(value, "milestone_title").clone_into(&mut todo.milestone_title);
    text(value, "summary").clone_into(&mut todo.progress.summary);
    text(value, "dependency_gate_bypass").clone_into(&mut todo.progress.dependency_gate_bypass);
    todo.acceptance_criteria =
        lenient::list(value.get("acceptance_criteria")).into_iter().map(Into::into).collect();
    todo
}

fn todo_list(value: &Value) -> Vec<Todo> {
    value.as_array().unwrap().iter().map(todo).collect()
}

/// A sprint with the fields that count.
pub(super) fn sprint(value: &Value) -> Sprint {
    let id = SprintId::parse(text(value, "sprint_id"));
    let id = id.unwrap_or_else(|_| SprintId::parse("nameless").unwrap());
    let kickoff =
        Kickoff { milestone: text(value, "milestone_title").to_owned(), ..Kickoff::default() };
    let mut sprint = Sprint::new(id, Trigger::ManualStart, kickoff, Language::Ko);
    if let Ok(status) = text(value, "status").parse() {
        sprint.status = status;
    }
    sprint.phase = text(value, "phase").parse().unwrap_or(Phase::Initial);
    sprint.closing.status = text(value, "closeout_status").parse().ok();
    text(value, "report_body").clone_into(&mut sprint.closing.report_body);
    sprint
}

/// The value with the times of `spec/teams.md` 4.1 as we write them.
fn with_times(value: &Value) -> Value {
    const TIMES: [&str; 11] = [
        "timestamp",
        "created_at",
        "updated_at",
        "last_used_at",
        "started_at",
        "ended_at",
        "last_started_at",
        "last_completed_at",
        "last_skipped_at",
        "next_slot_at",
        "deferred_slot_at",
    ];
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                let time = value.as_str().filter(|_| TIMES.contains(&key.as_str()));
                let time = time.and_then(|text| Timestamp::parse(text).ok());
                (key.clone(), time.map_or_else(|| with_times(value), |at| json!(at.to_string())))
            })
            .collect(),
        Value::Array(entries) => entries.iter().map(with_times).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
