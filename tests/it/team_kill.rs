//! `kill -9` of the team at every point of a request's life: it is started again, and the request ends as
//! if nothing had happened. `TEAMS_EVERY_POINT=1` visits every point instead of a spread of them.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use futures_util::stream;
use teams::platform::plug::{COUNT_VARIABLE, PLUG_VARIABLE, Point};

use super::support::life::{Life, Outcome, Went};

/// Lives at the same time.
const PARALLEL: usize = 2;
/// Lives that a run of the test has at least.
const AT_LEAST: usize = 40;

fn pull(point: Point, at: u64) -> (&'static str, String) {
    (PLUG_VARIABLE, format!("{}:{at}", point.as_str()))
}

/// A life in which nothing happens: what it comes to, and how often each point was reached.
async fn undisturbed() -> (Outcome, BTreeMap<String, u64>) {
    let life = Life::new().await;
    let counts = life.folder.path().join("counts");
    let count = (COUNT_VARIABLE, counts.to_string_lossy().into_owned());
    assert_eq!(life.live(&[count]).await, Went::Done);
    let counts = std::fs::read_to_string(counts).unwrap();
    let counts = counts.lines().map(|line| {
        let (point, count) = line.split_once(' ').unwrap();
        (point.to_owned(), count.parse().unwrap())
    });
    let counts = counts.collect();
    (life.outcome().await, counts)
}

/// The points to visit: every one, or an even spread of them.
fn points(counts: &BTreeMap<String, u64>) -> Vec<(Point, u64)> {
    let all: Vec<(Point, u64)> = Point::ALL
        .into_iter()
        .flat_map(|point| (1..=counts[point.as_str()]).map(move |at| (point, at)))
        .collect();
    let step = match std::env::var_os("TEAMS_EVERY_POINT") {
        Some(_) => 1,
        None => all.len() / AT_LEAST,
    };
    all.into_iter().step_by(step.max(1)).collect()
}

/// How the lives of a visit went.
struct Visited {
    label: String,
    killed: u64,
    outcome: Outcome,
}

/// A life that is killed at each of the points in turn, each counted from its own start, and is then left
/// alone.
async fn visit(kills: Vec<(Point, u64)>) -> Visited {
    let label = format!("{kills:?}");
    let life = Life::new().await;
    let mut killed = 0;
    for (point, at) in kills {
        match life.live(&[pull(point, at)]).await {
            Went::Killed => killed += 1,
            // Appends are grouped as they come, so that a life can be a little shorter than another.
            Went::Done => return Visited { label, killed, outcome: life.outcome().await },
        }
    }
    assert_eq!(life.live(&[]).await, Went::Done, "{label}");
    Visited { label, killed, outcome: life.outcome().await }
}

/// Lives through all of it; returns the lives that differ and how many were killed as often as they should.
async fn visit_all(all: Vec<Vec<(Point, u64)>>, expected: &Outcome) -> (Vec<String>, usize) {
    let mut lives = stream::iter(all)
        .map(|kills| {
            let wanted = kills.len() as u64;
            async move { (wanted, tokio::spawn(visit(kills)).await) }
        })
        .buffer_unordered(PARALLEL);
    let mut wrong = Vec::new();
    let mut killed = 0;
    while let Some((wanted, life)) = lives.next().await {
        match life {
            Ok(life) => {
                killed += usize::from(life.killed == wanted);
                let difference = difference(expected, &life.outcome);
                if !difference.is_empty() {
                    wrong.push(format!("{}:\n  {}", life.label, difference.join("\n  ")));
                }
            }
            Err(panic) => wrong.push(panic.to_string()),
        }
    }
    (wrong, killed)
}

/// What one has and the other has not.
fn difference(expected: &Outcome, found: &Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    let mut count: BTreeMap<&str, i64> = BTreeMap::new();
    for message in &expected.messages {
        *count.entry(message).or_default() -= 1;
    }
    for message in &found.messages {
        *count.entry(message).or_default() += 1;
    }
    for (message, count) in count.into_iter().filter(|(_, count)| *count != 0) {
        lines.push(format!("{count:+} {message}"));
    }
    if expected.events != found.events {
        lines.push(format!("events {:?}", found.events));
    }
    if expected.envelopes != found.envelopes {
        lines.push(format!("envelopes {:?}", found.envelopes));
    }
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_ends_the_same_wherever_the_team_is_killed() {
    let (expected, counts) = undisturbed().await;
    let points = points(&counts);
    assert!(points.len() >= AT_LEAST, "{counts:?}");
    let number = points.len();
    let all = points.into_iter().map(|point| vec![point]).collect();
    let (wrong, killed) = visit_all(all, &expected).await;
    assert!(wrong.is_empty(), "{} of {number} lives:\n{}", wrong.len(), wrong.join("\n"));
    assert!(killed * 10 >= number * 9, "only {killed} of {number} were killed");
}
