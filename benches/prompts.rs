//! How long the prompts of one request are, in workspaces that have finished one request, 100 and 10,000: whole
//! teams with rehearsal agents. `TEAMS_BENCH_FINISHED` (10,000) makes it fewer.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use teams::domain::change::Change;
use teams::domain::ids::{ItemId, RequestId};
use teams::domain::item::{Item, ItemKind, ItemStatus};
use teams::domain::record::RUNTIME;
use teams::domain::record::RecordId;
use teams::domain::request::{Request, RequestStatus};
use teams::domain::time::Timestamp;
use teams::platform::disk::RealDisk;
use teams::service::prompts;
use teams::store::Store;
use teams::workspace::init::{self, Options};

fn main() {
    let many = std::env::var("TEAMS_BENCH_FINISHED").ok().and_then(|text| text.parse().ok());
    let many = many.unwrap_or(10_000);
    let (few, some, much) = (told(1), told(100), told(many));
    for (((role, few), (_, some)), (_, much)) in few.iter().zip(&some).zip(&much) {
        println!("{role:<14} {few:>8} {some:>8} {much:>8} bytes, after 1, 100, {many} requests");
    }
    let all = |told: &[(String, usize)]| told.iter().map(|(_, bytes)| bytes).sum::<usize>();
    let (few, some, much) = (all(&few), all(&some), all(&much));
    let ratio = |one: usize, other: usize| one as f64 / other as f64;
    println!("{:<14} {few:>8} {some:>8} {much:>8} bytes", "together");
    // The end of a role's own history is told, up to 4,000 bytes of it: until that is full, a prompt grows.
    println!("{many} against 100: {:.2}   (goal <= 1.2)", ratio(much, some));
    println!("{many} against 1: {:.2}", ratio(much, few));
}

/// The prompts of one request after so many others: the role and the bytes of each.
fn told(finished: usize) -> Vec<(String, usize)> {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = place.path().join("workspace");
    fill(&root, finished);
    let demo = Command::new(env!("CARGO_BIN_EXE_teams"))
        .args(["demo", "--script", "request", "--dir"])
        .arg(place.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(demo.status.success(), "{}", String::from_utf8_lossy(&demo.stderr));
    let kept = std::fs::read_dir(root.join(RUNTIME).join("prompts")).unwrap();
    let names = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let runs = names.flat_map(|request| prompts::told(&root, &request).unwrap());
    runs.map(|run| {
        let bytes = run.record.sections.iter().map(|section| section.bytes).sum();
        (run.record.role.to_string(), bytes)
    })
    .collect()
}

/// A workspace whose team has finished so much.
fn fill(root: &Path, finished: usize) {
    init::init(root, &Options::default()).unwrap();
    let opened = Store::open(root, Arc::new(RealDisk)).unwrap();
    let at = Timestamp::from_millis(1_774_310_400_000);
    let mut last = None;
    for number in 0..finished {
        let id = RequestId::parse(&format!("20260324-{number:08x}")).unwrap();
        let status = RequestStatus::Completed;
        let body = "greet louder ".repeat(40);
        let request = Request { request_id: id.clone(), status, body, ..Request::default() };
        let item = ItemId::parse(&format!("backlog-20260324-{number:08x}")).unwrap();
        let mut item = Item::new(item, "Louder", "as loud as can be", ItemKind::Bug, at);
        item.status = ItemStatus::Done;
        let mut changes = vec![
            Change::save(request),
            Change::Remove(RecordId::Request(id.clone())),
            Change::save(item),
        ];
        for role in ["orchestrator", "research", "planner", "architect", "developer", "qa"] {
            let text =
                format!("\n## {at} role_report\n\n- request: `{id}`\n- summary: it is loud\n");
            changes.push(Change::Append { file: format!("{role}/history.md"), text });
        }
        last = Some(opened.store.append(changes));
    }
    last.unwrap().wait().unwrap();
    opened.store.close().unwrap();
}
