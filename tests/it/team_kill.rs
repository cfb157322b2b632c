//! `kill -9` of the team at every point of a request's life, and the power failing there: it is started
//! again, and the request ends as if nothing had happened. `TEAMS_EVERY_POINT=1` visits every point instead of
//! a spread of them.

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::StreamExt as _;
use futures_util::stream;
use teams::platform::forgetful_disk::{self, FORGET_VARIABLE};
use teams::platform::plug::{COUNT_VARIABLE, PLUG_VARIABLE, Point};

use super::support::earlier;
use super::support::life::{FREE, Life, Outcome, PLANS, Variable, Went};

/// Lives at the same time.
const PARALLEL: usize = 2;
/// Lives that a run of the test has at least.
const AT_LEAST: usize = 40;

/// The points that every such life meets often.
const MET: [Point; 3] = [Point::BeforeAppend, Point::AfterSync, Point::AfterEffect];

/// One end of the team's process.
#[derive(Debug, Clone, Copy)]
struct Kill {
    point: Point,
    /// The how-manieth time that the point is reached after the start.
    at: u64,
    /// What was not synced is lost as well, as far as this seed says.
    forget: Option<u64>,
}

impl Kill {
    fn variables(self, left: &Path) -> Vec<Variable> {
        let order = format!("{}:{}", self.point.as_str(), self.at);
        let left = |seed| (FORGET_VARIABLE, format!("{seed}:{}", left.display()));
        let forget = self.forget.map(left);
        std::iter::once((PLUG_VARIABLE, order)).chain(forget).collect()
    }
}

impl Kill {
    /// Lets the team work until it is killed like this, and loses what a power failure loses.
    async fn strikes(self, life: &Life) -> Went {
        let left = life.folder.path().join("left");
        let went = life.live(&self.variables(&left)).await;
        if went == Went::Killed && self.forget.is_some() {
            forgetful_disk::apply(&left).unwrap();
        }
        went
    }
}

/// A life in which nothing happens: what it comes to, and how often each point was reached.
async fn undisturbed(gates: &'static str) -> (Outcome, BTreeMap<String, u64>) {
    let life = Life::new(gates).await;
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

/// The points of a life.
fn points(counts: &BTreeMap<String, u64>) -> Vec<(Point, u64)> {
    let all: Vec<(Point, u64)> = Point::ALL
        .into_iter()
        .flat_map(|point| (1..=counts[point.as_str()]).map(move |at| (point, at)))
        .collect();
    assert!(all.len() >= AT_LEAST, "{counts:?}");
    all
}

/// An even spread of so many of them, or every one.
fn spread(all: Vec<(Point, u64)>, number: usize) -> impl Iterator<Item = (Point, u64)> {
    let step = match std::env::var_os("TEAMS_EVERY_POINT") {
        Some(_) => 1,
        None => (all.len() / number).max(1),
    };
    all.into_iter().step_by(step)
}

/// How the lives of a visit went.
struct Visited {
    label: String,
    killed: usize,
    outcome: Outcome,
}

/// A life that is killed so often and is then left alone. Where it is over before, another is killed earlier.
async fn visit(gates: &'static str, mut kills: Vec<Kill>) -> Vec<Visited> {
    let mut lives = Vec::new();
    loop {
        let label = format!("{kills:?}");
        let life = Life::new(gates).await;
        let killed = times_killed(&kills, &life).await;
        if killed == kills.len() {
            assert_eq!(life.live(&[]).await, Went::Done, "{label}");
        }
        lives.push(Visited { label, killed, outcome: life.outcome().await });
        if killed == kills.len() {
            return lives;
        }
        kills[0].at = earlier(kills[0].at);
    }
}

/// How often the life was killed by these, one after the other.
async fn times_killed(kills: &[Kill], life: &Life) -> usize {
    for (killed, kill) in kills.iter().enumerate() {
        if kill.strikes(life).await == Went::Done {
            return killed;
        }
    }
    kills.len()
}

/// Lives through all of them. Each must come to what was expected.
async fn visit_all(gates: &'static str, all: Vec<Vec<Kill>>, expected: &Outcome) {
    let number = all.len();
    let mut lives =
        stream::iter(all).map(|kills| tokio::spawn(visit(gates, kills))).buffer_unordered(PARALLEL);
    let mut wrong = Vec::new();
    let mut interruptions = 0;
    while let Some(visited) = lives.next().await {
        let visited = match visited {
            Ok(visited) => visited,
            Err(panic) => {
                wrong.push(panic.to_string());
                continue;
            }
        };
        for life in visited {
            let told = life.outcome.interruptions;
            interruptions += told;
            if told > life.killed {
                wrong.push(format!("{}: told {told} times that it was cut off", life.label));
            }
            let difference = difference(expected, &life.outcome);
            if !difference.is_empty() {
                wrong.push(format!("{}:\n  {}", life.label, difference.join("\n  ")));
            }
        }
    }
    assert_eq!(expected.interruptions, 0);
    assert!(interruptions > 0, "no room heard that anything was cut off");
    assert!(wrong.is_empty(), "{} of {number} lives:\n{}", wrong.len(), wrong.join("\n"));
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
    let (expected, counts) = undisturbed(FREE).await;
    let kills = spread(points(&counts), AT_LEAST)
        .map(|(point, at)| vec![Kill { point, at, forget: None }])
        .collect();
    visit_all(FREE, kills, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_ends_the_same_wherever_the_power_fails() {
    let (expected, counts) = undisturbed(FREE).await;
    let kills = spread(points(&counts), AT_LEAST / 2)
        .map(|(point, at)| vec![Kill { point, at, forget: Some(at) }])
        .collect();
    visit_all(FREE, kills, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_plan_is_asked_about_ends_the_same_wherever_the_team_is_killed() {
    let (expected, counts) = undisturbed(PLANS).await;
    let asked = expected.events.iter().filter(|event| event.starts_with("gate_")).count();
    assert!(asked >= 2, "the plan is asked about and approved: {:?}", expected.events);
    let kills = spread(points(&counts), AT_LEAST / 2)
        .map(|(point, at)| vec![Kill { point, at, forget: (at % 2 == 0).then_some(at) }])
        .collect();
    visit_all(PLANS, kills, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_kill_while_the_first_is_recovered_from_changes_nothing() {
    let (expected, counts) = undisturbed(FREE).await;
    let first = spread(points(&counts), AT_LEAST / 3);
    // The second comes soon after the start, so that a life that was nearly over still meets it, and with a power failure
    // every other time.
    let kills = first.enumerate().map(|(number, (point, at))| {
        let number = number as u64;
        let soon = Kill {
            point: MET[(number as usize + 1) % MET.len()],
            at: 1 + number * 5 % 4,
            forget: number.is_multiple_of(2).then_some(number),
        };
        vec![Kill { point, at, forget: None }, soon]
    });
    visit_all(FREE, kills.collect(), &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_team_that_is_killed_again_and_again_gets_there() {
    let (mut expected, _) = undisturbed(FREE).await;
    // Something that is no envelope stays a dead letter, with its reason beside it, through all of it.
    expected.envelopes.insert("dead/orchestrator".to_owned(), 2);
    for every in [7, 12] {
        let kill = |number| Kill { point: Point::AfterSync, at: every, forget: Some(number) };
        let life = Life::new(FREE).await;
        life.drop_letter("no envelope");
        let mut number = 0;
        while kill(number).strikes(&life).await == Went::Killed {
            number += 1;
            assert!(number < 100, "it never gets there");
        }
        assert!(number > 3, "killed {number} times");
        let found = life.outcome().await;
        let difference = difference(&expected, &found);
        assert!(difference.is_empty(), "every {every}:\n  {}", difference.join("\n  "));
    }
}
