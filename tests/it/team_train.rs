//! The train to the branch: changes that are ready at the same time are composed one on the other, proven side by
//! side, and land in their order, each as what was proven.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use teams::domain::effect::EffectKind;
use teams::domain::request::{Request, RequestStatus};
use teams::domain::role::Role;
use teams::domain::sprint::{Sprint, Todo, TodoStatus};
use teams::domain::state::State;
use teams::platform::forgetful_disk::{self, FORGET_VARIABLE};
use teams::platform::plug::{COUNT_VARIABLE, PLUG_VARIABLE, Point};

use crate::command_line::begun;
use crate::git_repo::{git_in, set_mode};
use crate::support::house::{House, Plan, words};
use crate::support::{earlier, fifo};
use crate::team_commands::told;
use crate::team_sprint::{sprint_that, start};
use tokio::io::{AsyncBufReadExt, BufReader};

const CARS: usize = 4;

/// Checks of more than one note wait until the gate is open: so many changes are ready meanwhile as the test wants.
struct Gate {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Gate {
    fn new() -> Gate {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("go");
        fifo(&path);
        Gate { path, _folder: folder }
    }

    /// A house whose checks are those of `rule`, behind the gate.
    fn plan(&self, rule: &str, train: &str) -> Plan {
        let gate = self.path.display();
        let script = format!("set -- note*.md; [ $# -lt 2 ] || : < {gate}; {rule}");
        let script = serde_json::json!(script);
        Plan {
            checks: format!("[{{name: notes, command: [sh, -c, {script}], read: [{gate}]}}]"),
            more: format!("limits: {{parallel_runs: 8, check_runs: 8}}\ntrain: {train}\n"),
            ..Plan::script("- {role: developer, times: 1, do: listen, text: go on}\n")
        }
    }

    /// From now on nothing waits, as long as what this returns is held.
    fn open(&self) -> File {
        // Both ends are its own: it waits for nobody.
        File::options().read(true).write(true).open(&self.path).unwrap()
    }
}

/// Requests for a note each, whose developers are all at work before the first one goes on and lands.
async fn ask_for_notes(house: &House, cars: usize) -> Vec<String> {
    let mut asked = Vec::new();
    for number in 0..cars {
        asked.push(house.ask(&format!("create note{number}.md with \"note {number}\"")).await);
    }
    for one in &asked {
        house
            .request(one, "the developer is at work", |request| {
                request.work.active_run.is_some()
                    && request.route.current_role == Some(Role::Developer)
            })
            .await;
    }
    for one in &asked {
        house.say(one, "go on").await;
        if one == &asked[0] {
            house.becomes(one, RequestStatus::Committed).await;
        }
    }
    asked
}

/// Requests for a note each, all of which grew from the same commit, ready at the same time. The first one has landed,
/// the others are composed, and the checks of `proving` of them wait.
async fn ready(house: &House, cars: usize, proving: usize) -> Vec<String> {
    let asked = ask_for_notes(house, cars).await;
    house
        .until("the train is composed", async |house: &House| {
            let state = house.state()?;
            let queued = state.requests.values().filter(|it| it.work.landing_since.is_some());
            // The one behind the first may have been put onto what the first one left on the branch.
            let composed = queued.clone().filter(|it| it.work.behind.is_some()).count();
            let checks = state.effects.values();
            let checks = checks.filter(|it| matches!(it.kind, EffectKind::Checks { .. })).count();
            let all = queued.count() == cars - 1 && composed + 2 >= cars;
            (all && checks == proving && state.effects.len() == checks).then_some(())
        })
        .await;
    asked
}

async fn all_ended(house: &House, asked: &[String]) -> Vec<Request> {
    let mut all = Vec::new();
    for one in asked {
        let ended = |it: &Request| it.status.is_terminal() || it.status == RequestStatus::Blocked;
        all.push(house.request(one, "it has ended", ended).await);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn cars_are_proven_side_by_side_and_composed_anew_when_a_person_commits() {
    let gate = Gate::new();
    let house = House::open(gate.plan("true", "{prove: each}")).await;
    let asked = ready(&house, CARS, CARS - 1).await;
    // The board says it in the terminal, to the asker in Discord, and whenever it changes to whoever watches.
    let queue = queued(&house);
    let (first, last) = (note(&queue[0]), note(&queue[2]));
    let (code, board, _) = house.teams(&["board"]).await;
    assert!(code == 0 && board.contains(&first) && board.contains(&last), "{board}");
    let slash = serde_json::json!({"channel": "general", "command": "board", "locale": "en-US"});
    house.owner.ok("POST", "/_local/slash", slash).await;
    told(&house, "owner", &last).await;
    let mut watched = begun(&house, &["board", "--watch"]);
    let mut lines = BufReader::new(watched.stdout.take().unwrap()).lines();
    while !lines.next_line().await.unwrap().unwrap().contains(&last) {}
    house.commit_by_hand("hand.md", "by hand\n", "By hand");
    let _open = gate.open();
    while !lines.next_line().await.unwrap().unwrap().contains("no sprint yet") {}
    drop(watched);
    for request in all_ended(&house, &asked).await {
        assert_eq!(request.status, RequestStatus::Committed);
        // The commit that was proven is the one that landed.
        let evidence = request.work.evidence.as_ref().unwrap();
        assert_eq!(request.outcome.commit_sha.as_ref(), Some(&evidence.commit));
        assert!(evidence.is_green() && request.outcome.proven_through.is_none());
    }
    for number in 0..CARS {
        assert_eq!(house.on_branch(&format!("note{number}.md")), format!("note {number}\n"));
    }
    assert_eq!(house.on_branch("hand.md"), "by hand\n");
    assert_eq!(house.commits().len(), CARS + 1);
    house.close().await;
}

/// What is kept of the proofs of trees.
fn proofs(house: &House) -> Vec<Value> {
    let folder = house.root().join(".teams_runtime/proofs/trees");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    // One that is just being replaced is read next time.
    files.filter_map(|it| serde_json::from_slice(&std::fs::read(it.path()).ok()?).ok()).collect()
}

/// A request whose change is proven and whose QA is at work until it hears a word.
async fn judged(house: &House) -> String {
    let asked = house.ask("create note0.md with \"note 0\"").await;
    house
        .request(&asked, "its QA is at work", |request| {
            request.work.active_run.is_some() && request.route.current_role == Some(Role::Qa)
        })
        .await;
    asked
}

const QA_LISTENS: &str = "- {role: qa, contains: note0.md, times: 1, do: listen, text: go on}\n";

#[tokio::test]
async fn while_qa_looks_at_a_change_it_is_proven_where_it_will_stand() {
    let checks = "[{name: all, command: [cat, /proc/sys/kernel/random/uuid]}]".to_owned();
    let mut house = House::open(Plan { checks, ..Plan::script(QA_LISTENS) }).await;
    house.watch(".teams_runtime/proofs");
    let first = judged(&house).await;
    let known = proofs(&house).len();
    let second = house.ask("create note1.md with \"note 1\"").await;
    let second = house.becomes(&second, RequestStatus::Committed).await;
    // The second one alone, and both.
    let all = house
        .until("it is proven behind the other one", async |house: &House| {
            Some(proofs(house)).filter(|all| all.len() == known + 2)
        })
        .await;
    house.say(&first, "go on").await;
    let first = house.becomes(&first, RequestStatus::Committed).await;
    let evidence = first.work.evidence.as_ref().unwrap();
    assert_eq!(first.outcome.commit_sha.as_ref(), Some(&evidence.commit));
    assert_eq!(first.work.candidate.as_ref().unwrap().base, second.outcome.commit_sha.unwrap());
    let own = json!(evidence.checks[0].log_digest);
    let its = all.iter().filter(|proof| proof["green"]["checks"][0]["log_digest"] == own);
    assert_eq!(its.count(), 1, "it had run before QA was through: {all:#?}");
    house.close().await;
}

#[tokio::test]
async fn whoever_needs_the_place_of_an_early_proof_gets_it() {
    // Both notes together are never done with.
    let script = json!("[ -e note0.md ] && [ -e note1.md ] && exec tail -f /dev/null; true");
    let mut house = House::open(Plan {
        checks: format!("[{{name: notes, command: [sh, -c, {script}], timeout_seconds: 3600}}]"),
        more: "limits: {check_runs: 1}\n".to_owned(),
        ..Plan::script(QA_LISTENS)
    })
    .await;
    house.watch(".teams_runtime/checks");
    let first = judged(&house).await;
    let early = house.root().join(".teams_runtime/checks/early/run-1/started.json");
    for number in 1..3 {
        let asked = house.ask(&format!("create note{number}.md with \"note\"")).await;
        house.becomes(&asked, RequestStatus::Committed).await;
        house.until("an early proof is under way", async |_| early.exists().then_some(())).await;
    }
    // Nobody expects it any more.
    let first = house.request(&first, "it is there", |_| true).await.request_id;
    let (code, _, error) = house.teams(&["request", "cancel", first.as_str()]).await;
    assert_eq!((code, error.as_str()), (0, ""));
    house.until("it is called off", async |_| (!early.exists()).then_some(())).await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_cars_that_are_red_only_together_the_later_one_goes_back() {
    let gate = Gate::new();
    let rule = "test ! -e note1.md || test ! -e note3.md";
    let house = House::open(gate.plan(rule, "{prove: each, batch: 4}")).await;
    let asked = ready(&house, CARS, CARS - 1).await;
    let _open = gate.open();
    let all = all_ended(&house, &asked).await;
    let landed = |it: &&Request| it.status == RequestStatus::Committed;
    assert_eq!(all.iter().filter(landed).count(), CARS - 1, "{all:#?}");
    let back = all.iter().find(|it| !landed(it)).unwrap();
    assert_eq!(back.blocked.as_ref().unwrap().code.word(), "checks_failing");
    let names: String = house.commits().concat();
    let pair = [1, 3].map(|number| names.contains(&format!("note{number}.md")));
    assert_eq!(pair.iter().filter(|it| **it).count(), 1, "{names}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_eight_cars_with_one_red_among_them_seven_land() {
    let gate = Gate::new();
    let house =
        House::open(gate.plan("test ! -e note4.md || test $# -lt 2", "{prove: each}")).await;
    let asked = ready(&house, 8, 7).await;
    let _open = gate.open();
    let all = all_ended(&house, &asked).await;
    for (number, request) in all.iter().enumerate() {
        let code = request.blocked.as_ref().map(|blocked| blocked.code.word());
        assert_eq!(code, (number == 4).then_some("checks_failing"), "{request:#?}");
        let proof = request.work.evidence.as_ref().unwrap();
        let landed = request.outcome.commit_sha.as_ref();
        assert!(landed.is_none() || proof.is_green() && landed == Some(&proof.commit));
    }
    assert_eq!(house.commits().len(), 7);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn red_and_then_green_in_the_train_is_flaky_told_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let fifos = ["two", "begun", "go"].map(|name| folder.path().join(name));
    fifos.iter().for_each(|path| fifo(path));
    let [two, begun, go] = fifos;
    // With two notes they wait, with three they are as they are told.
    let script = format!(
        "set -- note*.md; case $# in 2) : < {};; 3) echo up > {}; read line < {}; test $line = ok;; esac",
        two.display(),
        begun.display(),
        go.display()
    );
    let (script, path) = (json!(script), folder.path().display());
    let house = House::open(Plan {
        checks: format!("[{{name: notes, command: [sh, -c, {script}], read: [{path}]}}]"),
        more: "limits: {parallel_runs: 8, check_runs: 8}\n".to_owned(),
        ..Plan::script("- {role: developer, times: 1, do: listen, text: go on}\n")
    })
    .await;
    let asked = ask_for_notes(&house, 3).await;
    let tell = async |line: &'static str| {
        let (begun, go) = (begun.clone(), go.clone());
        let told = move || {
            assert_eq!(std::fs::read_to_string(begun).unwrap(), "up\n");
            std::fs::write(go, line).unwrap();
        };
        tokio::task::spawn_blocking(told).await.unwrap();
    };
    tell("no\n").await;
    // It counts for nothing as long as the one before it is on its way.
    house
        .until("the red one is held", async |house: &House| {
            let state = house.state()?;
            state.requests.values().any(|it| it.work.held.is_some()).then_some(())
        })
        .await;
    let _open = File::options().read(true).write(true).open(&two).unwrap();
    tell("ok\n").await;
    let mut flaky = Vec::new();
    for request in all_ended(&house, &asked).await {
        assert_eq!(request.status, RequestStatus::Committed);
        let compared = request.work.evidence.unwrap().checks.remove(0).compared;
        flaky.extend(compared.into_iter().flat_map(|it| it.flaky.first));
    }
    assert_eq!(flaky, ["notes"]);
    house.reads("general", "Flaky: ").await;
    let (code, said, error) = house.teams(&["checks", "flaky", "--json"]).await;
    assert_eq!(code, 0, "{error}");
    let counted: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(counted["notes: notes"]["times"], 1, "{said}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_train_that_is_proven_at_its_tip_lands_at_once_and_says_through_what() {
    let gate = Gate::new();
    let house = House::open(gate.plan("true", "{prove: tip}")).await;
    let asked = ready(&house, CARS, 1).await;
    let _open = gate.open();
    let all = all_ended(&house, &asked).await;
    assert!(all.iter().all(|it| it.status == RequestStatus::Committed), "{all:#?}");
    let tips: Vec<&String> = all.iter().filter_map(|it| it.outcome.commit_sha.as_ref()).collect();
    let mut inner = 0;
    for request in &all {
        let Some(through) = &request.outcome.proven_through else { continue };
        inner += 1;
        assert!(tips.contains(&through) && request.outcome.commit_sha.as_ref() != Some(through));
        let commit = request.outcome.commit_sha.as_ref().unwrap();
        let told = words(&house.reads("general", &commit[..7]).await);
        assert!(told.contains(&format!("proven through `{}", &through[..7])), "{told}");
        assert!(!told.contains("green"), "{told}");
        let thread = &request.conversation.room.as_ref().unwrap().thread_id.unwrap().0.to_string();
        house
            .reads(thread, &format!("`{}`, proven through `{}`", &commit[..10], &through[..10]))
            .await;
    }
    assert!(inner >= 1, "{all:#?}");
    assert_eq!(house.commits().len(), CARS);
    house.close().await;
}

/// In the first round one of the changes is red behind the others. In the third one a person commits whenever the team
/// has died, so at many moments of the train.
#[tokio::test(flavor = "multi_thread")]
async fn a_train_lands_once_however_often_the_team_is_killed_and_the_power_fails() {
    let rounds = [
        ("{prove: each}", RED, false),
        ("{prove: tip}", "true", false),
        ("{prove: each}", "true", true),
    ];
    for (train, rule, by_hand) in rounds {
        let gate = Gate::new();
        let mut house = House::open(gate.plan(&format!("[ $# -lt 2 ] || {rule}"), train)).await;
        let asked = ready(&house, CARS, if train.contains("each") { CARS - 1 } else { 1 }).await;
        let _open = gate.open();
        house.stop().await;
        let (mut killed, mut hands) = (0, 0);
        loop {
            let left = house.beside("left");
            // Each life is a little longer than the one before: it dies often, also where appends are grouped, and gets there
            // though a start by itself takes some.
            let at = 2 + killed;
            let kill = (PLUG_VARIABLE, format!("{}:{at}", Point::AfterSync.as_str()));
            let forget = (FORGET_VARIABLE, format!("{killed}:{}", left.display()));
            house.start_with(&[kill, forget]);
            if house.lives_until(is_over).await {
                // It may be struck once more as it stops.
                house.halt().await;
                break;
            }
            forgetful_disk::apply(&left).unwrap();
            // Where the team died with git's own lock on the index, a person cannot commit either.
            if by_hand && !house.project().join(".git/index.lock").exists() {
                hands += 1;
                let name = format!("hand{killed}.md");
                house.commit_by_hand(&name, "by hand\n", &format!("By hand {killed}"));
            }
            killed += 1;
            assert!(killed < 200, "it never gets there");
        }
        assert!(killed > 3, "{killed}");
        house.start();
        assert!(!by_hand || hands > 3, "{hands} of {killed}");
        landed_once(&house, &asked, rule == RED, hands).await;
        house.close().await;
    }
}

/// Red where the third change is there.
const RED: &str = "test ! -e note2.md";

/// Whether nothing is under way any more: what is not on the branch waits for a person.
fn is_over(house: &House) -> bool {
    let is_empty = |state: State| {
        let mut open = state.requests.values();
        let done = open.all(|it| it.status == RequestStatus::Blocked);
        done && state.effects.is_empty() && state.outgoing.is_empty()
    };
    house.state().is_some_and(is_empty)
}

/// Every change is on the branch, once, beside so many commits of a person; but the third one, where it is red, never
/// was.
async fn landed_once(house: &House, asked: &[String], is_third_red: bool, hands: usize) {
    let mut landed = 0;
    for (number, request) in all_ended(house, asked).await.into_iter().enumerate() {
        let code = request.blocked.as_ref().map(|blocked| blocked.code.word());
        let is_red = is_third_red && number == 2;
        assert_eq!(code, is_red.then_some("checks_failing"), "{request:#?}");
        if !is_red {
            assert_eq!(request.status, RequestStatus::Committed);
            let note = format!("note {number}\n");
            assert_eq!(house.on_branch(&format!("note{number}.md")), note);
            landed += 1;
        }
    }
    // No commit of the branch, at any time, has the red one.
    let subjects = house.commits();
    assert!(!is_third_red || !subjects.concat().contains("note2"), "{subjects:?}");
    let each: BTreeSet<&String> = subjects.iter().collect();
    let wanted = landed + hands;
    assert_eq!((subjects.len(), each.len()), (wanted, wanted), "{subjects:?}");
}

/// One end of the team while its train is under way.
#[derive(Debug, Clone, Copy)]
struct Death {
    /// The how-manieth durable append since the start.
    at: u64,
    /// Whether what was not synced is lost as well.
    power: bool,
}

/// A train that dies like this and is then left alone; how many durable appends its last start made, and whether it
/// died.
async fn train_of_four(
    train: &'static str,
    is_third_red: bool,
    death: Option<Death>,
) -> (u64, bool) {
    let gate = Gate::new();
    let rule = if is_third_red { RED } else { "true" };
    let mut house = House::open(gate.plan(&format!("[ $# -lt 2 ] || {rule}"), train)).await;
    let proving = if train.contains("each") { CARS - 1 } else { 1 };
    let asked = ready(&house, CARS, proving).await;
    let _open = gate.open();
    house.stop().await;
    let (left, counts) = (house.beside("left"), house.beside("counts"));
    let mut died = false;
    if let Some(Death { at, power }) = death {
        let mut variables = vec![(PLUG_VARIABLE, format!("{}:{at}", Point::AfterSync.as_str()))];
        variables.extend(power.then(|| (FORGET_VARIABLE, format!("{at}:{}", left.display()))));
        house.start_with(&variables);
        died = !house.lives_until(is_over).await;
        if !died {
            // It may be struck as it stops.
            died = house.halt().await.signal() == Some(9);
        }
        if died && power {
            forgetful_disk::apply(&left).unwrap();
        }
    }
    house.start_with(&[(COUNT_VARIABLE, counts.display().to_string())]);
    landed_once(&house, &asked, is_third_red, 0).await;
    house.quiet().await;
    house.stop().await;
    let counts = std::fs::read_to_string(counts).unwrap();
    let appends = counts.lines().find_map(|line| line.strip_prefix(Point::AfterSync.as_str()));
    house.start();
    house.close().await;
    (appends.unwrap().trim().parse().unwrap(), died)
}

/// A train that dies there, or earlier where it is over before.
async fn train_that_dies(train: &'static str, is_third_red: bool, mut death: Death) {
    while !train_of_four(train, is_third_red, Some(death)).await.1 {
        death.at = earlier(death.at);
    }
}

/// At a few of the appends of a train of four; `TEAMS_EVERY_POINT=1` visits every one, with a team of its own each.
#[tokio::test(flavor = "multi_thread")]
async fn a_train_lands_once_wherever_the_team_is_killed_or_the_power_fails() {
    const FEW: u64 = 2;
    for (train, is_third_red) in [("{prove: each}", true), ("{prove: tip}", false)] {
        let (appends, _) = train_of_four(train, is_third_red, None).await;
        let step = match std::env::var_os("TEAMS_EVERY_POINT") {
            Some(_) => 1,
            None => usize::try_from(appends / FEW).unwrap(),
        };
        let most = if step == 1 { usize::MAX } else { usize::try_from(FEW).unwrap() };
        let deaths = (1..=appends).step_by(step).take(most);
        let deaths = deaths.flat_map(|at| [false, true].map(|power| Death { at, power }));
        let deaths: Vec<Death> = deaths.collect();
        let number = deaths.len();
        let mut lives = futures_util::stream::iter(deaths)
            .map(|death| async move {
                let life = train_that_dies(train, is_third_red, death);
                (death, AssertUnwindSafe(life).catch_unwind().await)
            })
            .buffer_unordered(2);
        let mut wrong = Vec::new();
        while let Some((death, life)) = lives.next().await {
            if life.is_err() {
                wrong.push(format!("{death:?}, see above"));
            }
        }
        assert!(wrong.is_empty(), "{train}, {} of {number}:\n{}", wrong.len(), wrong.join("\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_gone_is_named_and_nothing_is_lost() {
    let gate = Gate::new();
    let house = House::open(gate.plan("true", "{prove: each}")).await;
    let asked = ready(&house, CARS, CARS - 1).await;
    let tip = git_in(&house.project(), &["rev-parse", "main"]);
    git_in(&house.project(), &["checkout", "-q", "--detach"]);
    git_in(&house.project(), &["branch", "-qD", "main"]);
    let _open = gate.open();
    let stopped = all_ended(&house, &asked).await;
    let stopped: Vec<&Request> =
        stopped.iter().filter(|it| it.status == RequestStatus::Blocked).collect();
    assert_eq!(stopped.len(), CARS - 1);
    for request in &stopped {
        let blocked = request.blocked.as_ref().unwrap();
        assert!(blocked.detail.contains("main"), "{}", blocked.detail);
        assert!(request.work.candidate.is_some());
    }
    git_in(&house.project(), &["checkout", "-q", "-b", "main", &tip]);
    retried(&house, &stopped, &asked).await;
    assert_eq!(house.commits().len(), CARS);
    house.close().await;
}

/// Ten todos side by side, of which each two change one file: in eight cases other lines of it, in the last two the
/// same one.
#[tokio::test(flavor = "multi_thread")]
async fn ten_todos_of_which_each_two_change_one_file_all_land() {
    let line = |number: usize| if number == 9 { 0 } else { number % 2 * 8 };
    let task = |number: usize| {
        let (part, line) = (number / 2, line(number));
        format!(
            "## {}. Change part {part} for the {number}th\n\nIn `part{part}.md` replace:\n\n\
             ```\nline {line}\n```\n\nwith:\n\n```\nline {line} of {number}\n```\n\n",
            number + 1
        )
    };
    let tasks: String = (0..10).map(task).collect();
    let mut house = House::built(Plan {
        sprint: "wip_limit: 4".to_owned(),
        more: "limits: {parallel_runs: 4, check_runs: 4}\n".to_owned(),
        ..Plan::default()
    })
    .await;
    std::fs::write(house.project().join("TASKS.md"), format!("# Tasks\n\n{tasks}")).unwrap();
    let text: String = (0..9).map(|number| format!("line {number}\n")).collect();
    for part in 0..5 {
        std::fs::write(house.project().join(format!("part{part}.md")), &text).unwrap();
    }
    git_in(&house.project(), &["add", "."]);
    git_in(&house.project(), &["commit", "-qm", "What is to be done"]);
    house.start();
    house.reads("startup", "The team is up").await;
    start(&house).await;
    for done in 1..=10 {
        let delivered = |todo: &&Todo| todo.progress.status.is_success();
        let so_many = |it: &Sprint| it.work.todos.iter().filter(delivered).count() >= done;
        sprint_that(&house, "another todo is delivered", so_many).await;
    }
    let ended = |sprint: &Sprint| sprint.status.is_terminal();
    let sprint = sprint_that(&house, "the sprint ends", ended).await;
    let committed = |todo: &&Todo| todo.progress.status == TodoStatus::Committed;
    let todos = &sprint.work.todos;
    assert_eq!(todos.iter().filter(committed).count(), 10, "{todos:#?}");
    for number in 0..8 {
        let file = house.on_branch(&format!("part{}.md", number / 2));
        assert!(file.contains(&format!("line {} of {number}\n", line(number))), "{file}");
    }
    let last = house.on_branch("part4.md");
    assert!(last.starts_with("line 0 of 8\n") || last.starts_with("line 0 of 9\n"), "{last}");
    assert_eq!(house.commits().len(), 11);
    house.close().await;
}

/// The requests in the queue to the branch, the first one first.
fn queued(house: &House) -> Vec<Request> {
    let all = house.state().unwrap().requests.into_values();
    let mut queue: Vec<Request> =
        all.filter(|it| it.work.landing_since.is_some()).map(|it| (*it).clone()).collect();
    queue.sort_by_key(|request| request.work.landing_since);
    queue
}

/// The file that the request makes.
fn note(request: &Request) -> String {
    let names = (0..CARS).map(|number| format!("note{number}.md"));
    names.into_iter().find(|name| request.body.contains(name.as_str())).unwrap()
}

/// All that were asked for have ended, and all but one are committed: that one.
async fn all_but_one(house: &House, asked: &[String]) -> Request {
    let mut all = all_ended(house, asked).await;
    all.retain(|it| it.status != RequestStatus::Committed);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

/// A person lets those that are stopped go on: then all are committed.
async fn retried(house: &House, stopped: &[&Request], asked: &[String]) {
    for request in stopped {
        let id = request.request_id.as_str();
        let (code, _, error) = house.teams(&["request", "retry", id]).await;
        assert_eq!(code, 0, "{error}");
    }
    for one in asked {
        house.becomes(one, RequestStatus::Committed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_amended_branch_and_a_file_in_the_way_stop_nothing_else() {
    let gate = Gate::new();
    let house = House::open(gate.plan("true", "{prove: each}")).await;
    let asked = ready(&house, CARS, CARS - 1).await;
    let project = house.project();
    let subject = format!("By hand: {}", house.commits()[0]);
    git_in(&project, &["commit", "-q", "--amend", "-m", &subject]);
    let victim = queued(&house).remove(1);
    let mine = project.join(note(&victim));
    std::fs::write(&mine, "mine\n").unwrap();
    let _open = gate.open();
    let stopped = all_but_one(&house, &asked).await;
    assert_eq!(stopped.request_id, victim.request_id);
    let blocked = stopped.blocked.as_ref().unwrap();
    assert_eq!(
        (blocked.code.word(), blocked.detail.as_str()),
        ("person_edits", note(&victim).as_str())
    );
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine\n");
    std::fs::remove_file(&mine).unwrap();
    retried(&house, &[&stopped], &asked).await;
    let commits = house.commits();
    assert_eq!(commits.len(), CARS);
    assert_eq!(commits.last(), Some(&subject));
    assert_eq!(git_in(&project, &["status", "--porcelain"]), "");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_reset_while_another_is_checked_out_is_followed() {
    let gate = Gate::new();
    let mut house = House::open(gate.plan("true", "{prove: tip}")).await;
    let asked = ready(&house, CARS, 1).await;
    let project = house.project();
    git_in(&project, &["checkout", "-q", "-b", "side"]);
    house.commit_by_hand("side.md", "aside\n", "Aside");
    std::fs::write(project.join("greet.sh"), "echo not yet\n").unwrap();
    let before = git_in(&project, &["rev-parse", "HEAD"]);
    // What has landed is taken from the branch again.
    git_in(&project, &["branch", "-q", "-f", "main", "main~1"]);
    let _open = gate.open();
    for one in &asked {
        house.becomes(one, RequestStatus::Committed).await;
    }
    assert_eq!(house.commits().len(), CARS - 1, "what a person took away stays away");
    assert_eq!(git_in(&project, &["rev-parse", "HEAD"]), before);
    assert_eq!(git_in(&project, &["status", "--porcelain"]).trim(), "M greet.sh");
    house.stop().await;
}

/// Where two of the notes are there, the checks wait for ever: the later of the two is told to a person.
#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_never_ends_stops_one_change_and_no_other() {
    let gate = Gate::new();
    let rule = "if [ -e note1.md ] && [ -e note2.md ]; then sleep 1000; fi";
    let plan = gate.plan(rule, "{prove: each}");
    let checks = plan.checks.replace("read:", "timeout_seconds: 10, read:");
    let _open = gate.open();
    let house = House::open(Plan { checks, ..plan }).await;
    let asked = ask_for_notes(&house, CARS).await;
    let stopped = all_but_one(&house, &asked).await;
    let blocked = stopped.blocked.as_ref().unwrap();
    assert_eq!(blocked.code.word(), "checks_inconclusive", "{}", blocked.detail);
    assert!(blocked.detail.starts_with("notes (time limit)"), "{}", blocked.detail);
    assert!(["note1.md", "note2.md"].contains(&note(&stopped).as_str()), "{}", stopped.body);
    assert_eq!(house.commits().len(), CARS - 1);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_object_stops_the_change_that_needs_it_and_no_other() {
    let gate = Gate::new();
    let house = House::open(gate.plan("true", "{prove: each}")).await;
    let asked = ready(&house, CARS, CARS - 1).await;
    let project = house.project();
    let victim = queued(&house).remove(1);
    let commit = &victim.work.candidate.as_ref().unwrap().commit;
    let blob = git_in(&project, &["rev-parse", &format!("{commit}:{}", note(&victim))]);
    let (folder, name) = blob.trim().split_at(2);
    let object = project.join(".git/objects").join(folder).join(name);
    let whole = std::fs::read(&object).unwrap();
    set_mode(&object, 0o644);
    std::fs::write(&object, "no object\n").unwrap();
    let _open = gate.open();
    let stopped = all_but_one(&house, &asked).await;
    assert_eq!(stopped.request_id, victim.request_id);
    let blocked = stopped.blocked.as_ref().unwrap();
    assert_eq!(blocked.code.word(), "commit_failed");
    let named = format!("the object {} cannot be read, which is {} of", blob.trim(), note(&victim));
    assert!(blocked.detail.starts_with(&named), "{}", blocked.detail);
    assert_eq!(house.commits().len(), CARS - 1);
    std::fs::write(&object, whole).unwrap();
    retried(&house, &[&stopped], &asked).await;
    git_in(&project, &["fsck", "--strict"]);
    house.close().await;
}
