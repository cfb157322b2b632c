//! What durability costs, as ratios measured in the same run: the hand-off between two roles against a
//! bare append and `fdatasync`, and a workspace with 100,000 finished requests against one with 100.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods
)]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use teams::domain::change::Change;
use teams::domain::envelope::{
    Envelope, EnvelopeBody, EnvelopeFolder, EnvelopeKind, EnvelopeParams,
};
use teams::domain::ids::{EnvelopeId, IdSupply, RequestId, RunId};
use teams::domain::record::RecordId;
use teams::domain::request::{Request, RequestStatus, fingerprint};
use teams::domain::role::Role;
use teams::domain::run::Run;
use teams::domain::state::State;
use teams::domain::time::Timestamp;
use teams::platform::disk::RealDisk;
use teams::store::{OpenedStore, Store, read_only, read_request};
use teams::workspace::init::{self, Options};
use tokio::sync::Notify;

/// About the size of an envelope with its context.
const BODY: usize = 1_400;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    runtime.block_on(one_at_a_time(place.path()));
    runtime.block_on(in_flight(place.path()));
    many_against_few(place.path());
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn line(what: &str, ours: Duration, other: Duration, goal: &str) {
    let ratio = ours.as_secs_f64() / other.as_secs_f64();
    println!("{what:<58} {ours:>10.1?} / {other:>10.1?} = {ratio:>5.2}   (goal {goal})");
}

fn open(root: &Path) -> OpenedStore {
    Store::open(root, Arc::new(RealDisk)).unwrap()
}

struct Letters(IdSupply, Timestamp);

impl Letters {
    fn new() -> Self {
        let at = Timestamp::from_millis(1_774_310_400_000);
        Self(IdSupply::new(uuid::Uuid::from_u128(1 << 64)), at)
    }

    fn envelope(&mut self, kind: EnvelopeKind, from: Role, to: Role) -> Envelope {
        Envelope {
            relay_id: self.0.envelope(),
            transport: "internal".to_owned(),
            created_at: self.1,
            sender_role: from,
            target_role: to,
            kind,
            envelope: EnvelopeBody {
                request_id: RequestId::parse("20260324-00000001").unwrap(),
                intent: "implement".to_owned(),
                urgency: "normal".to_owned(),
                scope: "s".to_owned(),
                artifacts: Vec::new(),
                params: EnvelopeParams::default(),
                body: "x".repeat(BODY),
                from,
                to,
            },
            place: EnvelopeFolder::Inbox,
            attempts: 0,
            not_before: None,
            step: None,
            report: None,
            reason: None,
        }
    }

    fn run(&mut self, envelope: &EnvelopeId) -> (RunId, Change) {
        let run = Run {
            agent: teams::domain::config::AgentKind::Rehearsal,
            ..Run::new(
                RunId::parse(self.0.effect().as_str()).unwrap(),
                RequestId::parse("20260324-00000001").unwrap(),
                (Role::Developer, None),
                envelope.clone(),
                self.1,
            )
        };
        (run.run_id.clone(), Change::save(run))
    }
}

fn put(envelope: &Envelope) -> Change {
    Change::save(envelope.clone())
}

fn archived(envelope: &Envelope) -> Change {
    let place = EnvelopeFolder::Archive;
    Change::save(Envelope { place, ..envelope.clone() })
}

/// The four appends of a hand-off: enqueue, claim, finish with a report, report consumed.
fn hand_off(letters: &mut Letters) -> [Vec<Change>; 4] {
    use EnvelopeKind::{Delegate, Report};
    let order = letters.envelope(Delegate, Role::Orchestrator, Role::Developer);
    let (run_id, run) = letters.run(&order.relay_id);
    let report = letters.envelope(Report, Role::Developer, Role::Orchestrator);
    [
        vec![put(&order)],
        vec![run],
        vec![put(&report), archived(&order), Change::Remove(RecordId::Run(run_id))],
        vec![archived(&report)],
    ]
}

struct Bare(File, Vec<u8>);

impl Bare {
    fn new(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        let mut letters = Letters::new();
        let bytes: usize = hand_off(&mut letters)
            .iter()
            .flatten()
            .map(|change| match change.saved() {
                Some(record) => record.encode().unwrap().to_string().len(),
                None => format!("{change:?}").len(),
            })
            .sum();
        Self(file, vec![b'x'; bytes / 4])
    }

    fn append(&mut self, records: usize) {
        let bytes = self.1.repeat(records);
        self.0.write_all(&bytes).unwrap();
        self.0.sync_data().unwrap();
    }
}

async fn one_at_a_time(place: &Path) {
    let store = Arc::new(open(&place.join("one")).store);
    let mut bare = Bare::new(&place.join("bare"));
    let mut letters = Letters::new();
    let (mut ours, mut others, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..600 {
        let [enqueue, claim, finish, consume] = hand_off(&mut letters);
        let arrived = Arc::new(Notify::new());
        let worker = {
            let (store, arrived) = (store.clone(), arrived.clone());
            tokio::spawn(async move {
                arrived.notified().await;
                store.append(claim).await.unwrap();
                store.append(finish).await.unwrap();
            })
        };
        let start = Instant::now();
        store.append(enqueue).await.unwrap();
        alone.push(start.elapsed());
        arrived.notify_one();
        worker.await.unwrap();
        store.append(consume).await.unwrap();
        ours.push(start.elapsed() / 4);
        let start = Instant::now();
        for _ in 0..4 {
            bare.append(1);
        }
        others.push(start.elapsed() / 4);
    }
    let (ours, others) = (median(ours), median(others));
    line("hand-off, one at a time: an append / bare append+fdatasync", ours, others, "<= 2");
    println!("  enqueue acknowledged after {:.1?}, whole hand-off {:.1?}", median(alone), ours * 4);
}

async fn in_flight(place: &Path) {
    const ROUNDS: usize = 60;
    let store = Arc::new(open(&place.join("many")).store);
    let mut bare = Bare::new(&place.join("bare64"));
    let start = Instant::now();
    for _ in 0..ROUNDS * 4 {
        bare.append(64);
    }
    let other = start.elapsed() / (ROUNDS * 4 * 64) as u32;
    let mut lanes = Vec::new();
    let start = Instant::now();
    for lane in 0..64_u128 {
        let store = store.clone();
        let mut letters = Letters::new();
        letters.0 = IdSupply::new(uuid::Uuid::from_u128((lane + 2) << 64));
        lanes.push(tokio::spawn(async move {
            for _ in 0..ROUNDS {
                for changes in hand_off(&mut letters) {
                    store.append(changes).await.unwrap();
                }
            }
        }));
    }
    for lane in lanes {
        lane.await.unwrap();
    }
    let all = start.elapsed();
    store.settled().await.unwrap();
    let shown = start.elapsed();
    let ours = all / (ROUNDS * 4 * 64) as u32;
    let rate = |each: Duration| 1.0 / each.as_secs_f64();
    println!(
        "{:<58} {:>8.0}/s / {:>8.0}/s = {:>5.2}   (goal >= 0.5)",
        "64 hand-offs in flight: appends / bare, 64 a sync",
        rate(ours),
        rate(other),
        rate(ours) / rate(other)
    );
    let hand_offs = ROUNDS * 64;
    println!(
        "  {hand_offs} hand-offs durable after {all:.1?}, shown by the files after {shown:.1?}"
    );
}

fn request(number: usize, status: RequestStatus) -> Request {
    Request {
        request_id: RequestId::parse(&format!("20260324-{number:08x}")).unwrap(),
        status,
        body: "x".repeat(600),
        fingerprint: fingerprint("1", "2", "route", &number.to_string()),
        ..Request::default()
    }
}

fn fill(root: &Path, finished: usize) {
    init::init(root, &Options::default()).unwrap();
    let opened = open(root);
    let mut last = None;
    for number in 0..finished {
        let request = request(number, RequestStatus::Completed);
        let id = request.request_id.clone();
        let changes = vec![Change::save(request), Change::Remove(RecordId::Request(id))];
        last = Some(opened.store.append(changes));
    }
    for number in 0..20 {
        let open = request(finished + number, RequestStatus::Delegated);
        last = Some(opened.store.append(vec![Change::save(open)]));
    }
    last.unwrap().wait().unwrap();
    opened.store.close().unwrap();
}

struct Costs {
    open: Duration,
    save: Duration,
    duplicate: Duration,
    status: Duration,
    command: Duration,
    one: Duration,
}

fn costs(root: &Path, finished: usize) -> Costs {
    let start = Instant::now();
    let opened = open(root);
    let open = start.elapsed();
    let wanted = request(finished + 7, RequestStatus::Delegated);
    let repeat = |times: usize, work: &mut dyn FnMut()| {
        let times = (0..times).map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        });
        median(times.collect())
    };
    let times = |work: &mut dyn FnMut()| repeat(300, work);
    let find = |state: &State| {
        (state.requests.values())
            .filter(|request| request.fingerprint == wanted.fingerprint)
            .count()
    };
    let costs = Costs {
        open,
        save: times(&mut || {
            let change = Change::save(wanted.clone());
            opened.store.append(vec![change]).wait().unwrap();
        }),
        duplicate: times(&mut || assert_eq!(std::hint::black_box(find(&opened.state)), 1)),
        status: times(&mut || {
            std::hint::black_box(read_only(root).unwrap());
        }),
        command: repeat(31, &mut || {
            let mut status = Command::new(env!("CARGO_BIN_EXE_teams"));
            let output = status.arg("status").arg("--workspace-root").arg(root).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains(&format!("20 open, {finished} ended")), "{said}");
        }),
        one: times(&mut || {
            std::hint::black_box(read_request(root, &wanted.request_id).unwrap());
        }),
    };
    opened.store.close().unwrap();
    costs
}

fn many_against_few(place: &Path) {
    let (few, many) = (place.join("few"), place.join("lots"));
    fill(&few, 100);
    let start = Instant::now();
    fill(&many, 100_000);
    println!("(made 100,000 finished requests in {:.1?})", start.elapsed());
    let (few, many) = (costs(&few, 100), costs(&many, 100_000));
    line("request save, 100,000 / 100 finished", many.save, few.save, "<= 1.2");
    line("duplicate check, 100,000 / 100 finished", many.duplicate, few.duplicate, "<= 1.2");
    line("status (read-only open), 100,000 / 100 finished", many.status, few.status, "<= 1.2");
    line("`teams status`, the whole command, 100,000 / 100", many.command, few.command, "<= 1.2");
    line("one finished or open request, 100,000 / 100", many.one, few.one, "<= 1.2");
    println!(
        "{:<58} {:>10.1?}   (goal <= 300 ms)",
        "opening with 100,000 finished requests", many.open
    );
}
