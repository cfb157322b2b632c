//! What sprints cost: a step of the engine and all documents of a big sprint (1,000 backlog items, 200
//! todos), the same after 1,000 finished sprints, and 10,000 whole sprints.
//! `TEAMS_BENCH_SPRINTS` (10,000) makes the last one shorter. Times are of the processor, but the last.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm
)]

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::Value;
use teams::domain::change::Change;
use teams::domain::ids::{PlanId, RequestId};
use teams::domain::incoming::Command;
use teams::domain::language::Language;
use teams::domain::request::RequestEvent;
use teams::domain::sprint::{Sprint, SprintStatus, TodoStatus};
use teams::domain::state::State;
use teams::engine::plan::check;
use teams::engine::{Input, decide};
use teams::import::plan::PlanFile;
use teams::workspace::papers::{self, Reports};

use world::{Watch, World, item, policy, processor};

/// No step and no round of documents may take longer.
const LIMIT: Duration = Duration::from_millis(50);
const ITEMS: usize = 1_000;
const TODOS: usize = 200;
/// Items of a plan that a person brings.
const PLANNED: usize = 500;
/// Items that the planner's own result brings.
const FOUND: usize = 50;
const FINISHED: usize = 1_000;
/// The steps that are compared with and without a history.
const COMPARED: [&str; 4] = [
    "planning result: backlog_definition",
    "planning result: todo_finalization",
    "a todo ends",
    "result of ongoing_review",
];

fn main() {
    plans();
    let fresh = big(World::new(0));
    steps(&fresh);
    documents(&fresh, "");
    let start = Instant::now();
    let old = big(after(FINISHED));
    println!("(made {FINISHED} finished sprints and the big one in {:.1?})", start.elapsed());
    compare(&fresh, &old);
    whole();
}

/// A plan of many items: read, held against the rules, and taken into the backlog.
fn plans() {
    let mut text = "# Parts\n".to_owned();
    for number in 1..=PLANNED {
        let before = number.saturating_sub(7);
        let on = if before == 0 { String::new() } else { format!("EPIC-{before:04}") };
        text.push_str(&format!(
            "\n## EPIC-{number:04}: Part {number}\nObjective: part {number} prints its name.\nFiles: src/part_{number}/**\n\
             depends_on: [{on}]\n\n#### Acceptance Criteria\n- [ ] `part {number}` prints ok\n- [ ] `part {number} x` fails\n"
        ));
    }
    let plan = PlanFile::read(text.as_bytes()).unwrap().plan;
    assert_eq!(plan.items.len(), PLANNED);
    let read = repeat(20, || drop(black_box(PlanFile::read(text.as_bytes()))));
    let rules = repeat(20, || drop(black_box(check::check(&plan, &BTreeSet::new()))));
    let taken = repeat(20, || {
        let mut world = World::new(0);
        let plan_id = PlanId::parse("parts").unwrap();
        world.command(Command::PlanImport { plan_id, plan: Box::new(plan.clone()), approve: None });
        assert_eq!(world.state.backlog.len(), PLANNED);
    });
    let mut world = World::new(0);
    let plan_id = PlanId::parse("parts").unwrap();
    world.command(Command::PlanImport { plan_id, plan: Box::new(plan), approve: None });
    let mut number = 0;
    let decision = repeat(51, || {
        number += 1;
        world.add(&[item("feature", number, false)]);
    });
    println!("a plan of {PLANNED} items:");
    for (name, time, limit) in [
        ("read", read, 100),
        ("held against the rules", rules, 50),
        ("taken in", taken, 100),
        ("a decision beside it: a person adds an item", decision, 5),
    ] {
        let over = if time > Duration::from_millis(limit) { "   OVER" } else { "" };
        println!("  {name:<56} {time:>10.1?} (limit {limit} ms){over}");
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn repeat(times: usize, mut work: impl FnMut()) -> Duration {
    let times = (0..times).map(|_| {
        let start = processor();
        work();
        processor() - start
    });
    median(times.collect())
}

/// A world in which so many small sprints are over.
fn after(sprints: usize) -> World {
    let mut world = World::new(3);
    for _ in 0..sprints {
        one(&mut world);
    }
    world
}

fn one(world: &mut World) {
    world.kickoff();
    world.play(|_| false);
    assert!(!world.is_running());
}

/// The big sprint, worked to its end.
struct Big {
    world: World,
    /// The records when the plan was made.
    planned: State,
    /// The sprint with all todos done, and how it ended.
    worked: Sprint,
    ended: Sprint,
    histories: BTreeMap<RequestId, Vec<RequestEvent>>,
}

fn big(mut world: World) -> Big {
    let waiting: Vec<Value> =
        (0..ITEMS - FOUND).map(|number| item("known", number, number < TODOS - FOUND)).collect();
    world.add(&waiting);
    world.finds = FOUND;
    world.watch = Some(Watch::default());
    world.kickoff();
    world.play(|world| world.state.active_sprint().is_none_or(|it| !it.work.todos.is_empty()));
    let planned = world.state.clone();
    assert_eq!(planned.backlog.len(), ITEMS);
    assert_eq!(planned.active_sprint().unwrap().work.todos.len(), TODOS);
    world.play(|world| {
        world.state.active_sprint().is_none_or(|sprint| sprint.status != SprintStatus::Running)
    });
    let worked = world.state.active_sprint().unwrap().clone();
    world.play(|_| false);
    let ended = Sprint::clone(&world.state.sprints[&worked.sprint_id]);
    assert_eq!(ended.status, SprintStatus::Completed);
    assert!(ended.work.todos.iter().all(|todo| todo.progress.status == TodoStatus::Committed));
    let histories = std::mem::take(&mut world.watch.as_mut().unwrap().histories);
    Big { world, planned, worked, ended, histories }
}

/// Every kind of step of the big sprint, its changes applied to memory.
fn steps(big: &Big) {
    println!(
        "a step with {ITEMS} backlog items and {TODOS} todos: median, worst (limit {LIMIT:?})"
    );
    for (name, times) in &big.world.watch.as_ref().unwrap().times {
        let worst = *times.iter().max().unwrap();
        let over = if worst > LIMIT { "   OVER" } else { "" };
        let (median, many) = (median(times.clone()), times.len());
        println!("  {name:<56} {median:>10.1?} {worst:>10.1?}   ({many}){over}");
    }
}

/// All documents, as they are made when something changed, and when the sprint is put into the archive.
fn documents(big: &Big, index: &str) {
    let start = Instant::now();
    let reports: Reports =
        big.histories.iter().map(|(id, all)| (id.clone(), papers::role_reports(all))).collect();
    println!(
        "(read {} reports of {} requests in {:.1?})",
        reports.values().map(Vec::len).sum::<usize>(),
        reports.len(),
        start.elapsed()
    );
    let backlog = &big.planned.backlog;
    let delivered: Vec<Change> = backlog
        .values()
        .take(1)
        .map(|item| {
            let mut item = teams::domain::item::Item::clone(item);
            item.status = teams::domain::item::ItemStatus::Done;
            Change::save(item)
        })
        .collect();
    let line = |what: &str, work: &mut dyn FnMut()| {
        let time = repeat(15, work);
        let over = if time > LIMIT { "   OVER" } else { "" };
        println!("  {what:<56} {time:>10.1?}{over}");
    };
    println!("documents of the same: median of 15 (limit {LIMIT:?})");
    line("backlog", &mut || {
        black_box(papers::backlog(backlog, Language::En).unwrap());
    });
    line("completed backlog, an item", &mut || {
        black_box(papers::completed(&delivered, &big.planned).unwrap());
    });
    line("current sprint", &mut || {
        black_box(papers::current_sprint(Some(&big.worked), Language::En).unwrap());
    });
    line("the sprint's folder", &mut || {
        black_box(papers::sprint_papers(&big.worked, chrono_tz::Asia::Seoul, &reports).unwrap());
    });
    line("all of them", &mut || {
        black_box(papers::backlog(backlog, Language::En).unwrap());
        black_box(papers::completed(&delivered, &big.planned).unwrap());
        black_box(papers::current_sprint(Some(&big.worked), Language::En).unwrap());
        black_box(papers::sprint_papers(&big.worked, chrono_tz::Asia::Seoul, &reports).unwrap());
    });
    line("burndown", &mut || {
        black_box(papers::burndown(&big.ended, chrono_tz::Asia::Seoul).unwrap());
    });
    line("report, summary, history, burndown and row of the archive", &mut || {
        archive(big, &reports, index);
    });
}

fn archive(big: &Big, reports: &Reports, index: &str) {
    let report = papers::final_report(&big.ended, chrono_tz::Asia::Seoul, reports).unwrap();
    black_box(papers::machine_summary(&big.ended).unwrap());
    black_box(papers::sprint_history(&big.ended, &report).unwrap());
    black_box(papers::burndown(&big.ended, chrono_tz::Asia::Seoul).unwrap());
    black_box(papers::index_with_row(Some(index), &big.ended));
}

fn ratio(what: &str, ours: Duration, other: Duration) {
    let ratio = ours.as_secs_f64() / other.as_secs_f64();
    println!("{what:<58} {ours:>10.1?} / {other:>10.1?} = {ratio:>5.2}   (goal <= 1.2)");
}

/// The same steps with and without a history, by turns.
fn compare(fresh: &Big, old: &Big) {
    let policy = policy();
    for name in COMPARED {
        let moment = |big: &Big| big.world.watch.as_ref().unwrap().moments[name].clone();
        let moments: [(State, Input); 2] = [moment(fresh), moment(old)];
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..101 {
            for ((state, input), times) in moments.iter().zip(&mut times) {
                let input = input.clone();
                let start = processor();
                black_box(decide(state, &policy, input));
                times.push(processor() - start);
            }
        }
        let [without, with] = times.map(median);
        ratio(&format!("{name}, {FINISHED} / no finished sprints"), with, without);
    }
    let index = (0..FINISHED).fold(String::new(), |index, number| {
        let mut sprint = old.ended.clone();
        sprint.sprint_id = format!("260324-Sprint-09:00-{number}").parse().unwrap();
        papers::index_with_row(Some(&index), &sprint)
    });
    let reports = Reports::new();
    let with = repeat(31, || archive(old, &reports, &index));
    let without = repeat(31, || archive(fresh, &reports, ""));
    ratio(&format!("archive, {FINISHED} / no finished sprints"), with, without);
    let row = repeat(31, || {
        black_box(papers::index_with_row(Some(&index), &old.ended));
    });
    println!("  of it the row of the index: {row:.1?}, once a sprint");
}

/// Whole sprints, one after the other.
fn whole() {
    let sprints = std::env::var("TEAMS_BENCH_SPRINTS").ok().and_then(|it| it.parse().ok());
    let sprints = sprints.unwrap_or(10_000);
    let (start, began) = (Instant::now(), processor());
    let world = after(sprints);
    let (all, own, decisions) = (start.elapsed(), processor() - began, world.decisions);
    println!("{:<58} {all:>10.1?}   (goal < 60 s)", format!("{sprints} whole sprints of 3 todos"));
    let each = own / u32::try_from(decisions).unwrap();
    println!("  {decisions} decisions, {each:.1?} of the processor each, {own:.1?} in all");
}
