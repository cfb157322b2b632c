//! Every trouble that the platform can make, while a request is under way: the request ends once, and its
//! room tells one coherent story.

use serde_json::{Value, json};
use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, EDITED, House, Plan, words};

/// What happens in a room, in order.
const STORY: [&str; 8] = [
    "**Intake**",
    "**Research**",
    "**First plan**",
    "**Guidance**",
    "**Building**",
    "The checks pass",
    "**Review**",
    "**QA**",
];

/// A house whose requests change the greeting, each from the word of the one before.
struct Greeting {
    house: House,
    word: String,
    number: u32,
}

impl Greeting {
    async fn open() -> Greeting {
        let mut house = House::open(Plan::default()).await;
        // Trouble may be told as a refusal that the team gets over.
        house.expects_complaints();
        Greeting { house, word: "hello".to_owned(), number: 0 }
    }

    /// Asks, orders the trouble once the work is under way, and looks at how it was told.
    async fn through(&mut self, trouble: &[Value]) {
        self.number += 1;
        let next = format!("word{}", self.number);
        let ask = format!("in greet.sh replace \"{}\" with \"{next}\"", self.word);
        self.word = next;
        let house = &self.house;
        let asked = house.ask(&ask).await;
        house.reads(&asked, STORY[0]).await;
        for order in trouble {
            house.faults(order.clone()).await;
        }
        let request = house.becomes(&asked, RequestStatus::Committed).await;
        // What hangs goes on with the next order.
        house.faults(json!({})).await;
        house.quiet().await;
        let room: Vec<String> = house.messages(&asked).await.iter().map(words).collect();
        let places: Vec<usize> = STORY
            .iter()
            .map(|part| {
                let found: Vec<usize> =
                    (0..room.len()).filter(|at| room[*at].contains(part)).collect();
                assert_eq!(found.len(), 1, "{trouble:?}: {part} in {room:#?}\n{}", house.log());
                found[0]
            })
            .collect();
        assert!(places.is_sorted(), "{trouble:?}: {room:#?}");
        let id = format!("`{}`", request.request_id);
        let general: Vec<String> = house.messages("general").await.iter().map(words).collect();
        let ends = general.iter().filter(|it| it.contains("**Done.**") && it.contains(&id));
        assert_eq!(ends.count(), 1, "{trouble:?}: {general:#?}");
        let receipts = general.iter().filter(|it| it.contains("Got it.") && it.contains(&id));
        assert_eq!(receipts.count(), 1, "{trouble:?}: {general:#?}");
        assert_eq!(house.on_branch("greet.sh"), format!("echo {}\n", self.word));
        house.faults(json!({"clear": true})).await;
    }
}

/// A fault that meets the next few posts, whoever makes them.
fn posts(fault: Value) -> Value {
    let mut rest = json!({"method": "POST", "path_contains": "", "times": 2});
    for (key, value) in fault.as_object().unwrap() {
        rest[key] = value.clone();
    }
    json!({ "rest": [rest] })
}

#[tokio::test]
async fn a_request_ends_once_whatever_calls_come_to() {
    let mut greeting = Greeting::open().await;
    for fault in [
        json!({"status": 429, "retry_after": 0.3}),
        json!({"status": 429, "retry_after": 0.3, "scope": "shared"}),
        json!({"status": 429, "retry_after": 0.3, "scope": "global"}),
        json!({"status": 429, "retry_after": 1.0, "html": true}),
        json!({"status": 500}),
        json!({"status": 502, "after": true}),
        json!({"trouble": "drop"}),
        json!({"trouble": "drop", "after": true}),
        json!({"trouble": "slow", "delay_ms": 400}),
        json!({"trouble": "hang", "times": 1}),
    ] {
        greeting.through(&[posts(fault)]).await;
    }
    let limits = json!({"limits": {"per_route": 3, "seconds": 0.5, "global": 200}});
    greeting.through(&[limits]).await;
    greeting.through(&[json!({"edits": {"older_than_seconds": 0, "most": 0}})]).await;
    greeting.house.close().await;
}

#[tokio::test]
async fn a_request_ends_once_whatever_the_connection_does() {
    let mut greeting = Greeting::open().await;
    let close = |code: u16| json!({"gateway": {"close": {"code": code}}});
    let invalid =
        |resumable: bool| json!({"gateway": {"invalid_session": {"resumable": resumable}}});
    let fast = json!({"heartbeat_ms": 300, "gateway": "drop"});
    let login = |at: &str, trouble: Value| json!({"login": [{"at": at, "trouble": trouble}]});
    for trouble in [
        vec![json!({"gateway": "drop"})],
        vec![json!({"gateway": "reconnect"})],
        vec![close(4000)],
        vec![close(4003)],
        vec![close(4007)],
        vec![close(4009)],
        vec![invalid(true)],
        vec![invalid(false)],
        vec![fast.clone(), json!({"gateway": "zombie"})],
        vec![json!({"heartbeat_ms": 300, "mute_acks": true, "gateway": "drop"})],
        vec![login("resume", json!({"invalid_session": {"resumable": false}})), close(4000)],
        vec![login("identify", json!({"invalid_session": {"resumable": false}})), close(4009)],
        vec![json!({"lose_events": 3})],
        vec![json!({"duplicate_events": 5})],
        vec![json!({"garble_events": 3})],
        vec![json!({"deny_message_content": true, "gateway": {"close": {"code": 4009}}})],
    ] {
        greeting.through(&trouble).await;
    }
    greeting.house.close().await;
}

#[tokio::test]
async fn what_needs_a_person_is_in_status_and_the_request_ends_all_the_same() {
    let mut greeting = Greeting::open().await;
    for code in [4004, 4010, 4011, 4012, 4013] {
        greeting.through(&[json!({"gateway": {"close": {"code": code}}})]).await;
        let (exit, text, _) = greeting.house.teams(&["status"]).await;
        assert_eq!(exit, 0);
        let line = text.lines().find(|line| line.starts_with("Discord: needs you:"));
        assert!(line.is_some_and(|line| line.contains(&code.to_string())), "{code}: {text}");
        greeting.house.stop().await;
        greeting.house.start();
    }
    greeting.through(&[]).await;
    let (_, text, _) = greeting.house.teams(&["status"]).await;
    assert!(text.contains("Discord: connected"), "{text}");
    greeting.house.close().await;
}

/// The tasks that a team has from its start to its end.
const TASKS: [&str; 14] = [
    "hub",
    "role",
    "reports",
    "clock",
    "effects",
    "outbox",
    "todos",
    "papers",
    "presence",
    "inbound",
    "drops",
    "control",
    "discord-intake",
    "discord-sessions",
];

/// Lets a task of the team panic, and looks how the team ends: in order, with the task's name.
async fn breaks_off(house: &mut House, task: &str) {
    let said_before = std::fs::read_to_string(house.beside("stderr.txt")).unwrap_or_default();
    house.start_with(&[("TEAMS_PULL_PLUG", &format!("panic:{task}:1"))]);
    let status = house.ends().await;
    let said = std::fs::read_to_string(house.beside("stderr.txt")).unwrap();
    let said = &said[said_before.len()..];
    assert_eq!(status.code(), Some(70), "{task}: {status}\n{}", house.log());
    let reason = format!("the task `{task}` panicked");
    assert!(said.contains(&format!("error: {reason}")), "{task}: {said}");
    assert!(house.whole_log().contains(&reason), "{task}: {}", house.log());
}

#[tokio::test]
async fn a_task_that_panics_takes_the_team_down_in_order_and_nothing_is_lost() {
    const UP: &str = "the team is up";
    let mut house = House::open(Plan::default()).await;
    house.logs(UP, 1).await;
    house.quiet().await;
    house.stop().await;
    for task in TASKS {
        breaks_off(&mut house, task).await;
        // The journal was closed: nothing is left for the next start to replay.
        let before = house.whole_log().matches(UP).count();
        house.start();
        house.logs(UP, before + 1).await;
        house.quiet().await;
        let log = house.whole_log();
        let opened = log.lines().rfind(|line| line.contains("the store is open")).unwrap();
        assert!(opened.contains("replayed=0"), "{task}: {opened}");
        house.stop().await;
    }
    // While somebody works, and with what is being sent.
    let asked = house.ask(EDIT).await;
    for task in ["run", "send", "effect", "discord-connection"] {
        if task == "discord-connection" {
            // It is kept by a task of its own, which makes it anew.
            house.start_with(&[("TEAMS_PULL_PLUG", "panic:discord-connection:1")]);
        } else {
            breaks_off(&mut house, task).await;
        }
    }
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn a_team_without_free_descriptors_listens_again_when_there_are_some() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let house = House::open(Plan::default()).await;
    house.logs("the team is up", 1).await;
    house.quiet().await;
    let team = Pid::from_raw(house.team_pid().try_into().unwrap());
    let files = |limit: Rlimit| prlimit(team, Resource::Nofile, limit).unwrap();
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let usual = files(Rlimit { current: Some(1), maximum });
    // The system takes the connection; the team cannot.
    let asked = house.teams(&["health"]);
    let (asked, ()) = tokio::join!(asked, async {
        house.logs("cannot accept", 1).await;
        files(usual);
    });
    assert_eq!(asked.0, 0, "{asked:?}\n{}", house.log());
    assert_eq!(house.whole_log().matches("cannot accept").count(), 1, "{}", house.log());
    house.close().await;
}

#[tokio::test]
async fn a_team_whose_workspace_is_removed_stops_and_says_so() {
    let mut house = House::open(Plan::default()).await;
    house.logs("the team is up", 1).await;
    house.quiet().await;
    // Out of the way first: what the team writes meanwhile would be in the way of removing it.
    std::fs::rename(house.root(), house.beside("gone")).unwrap();
    std::fs::remove_dir_all(house.beside("gone")).unwrap();
    house.ask(EDIT).await;
    let ended = house.ends().await;
    assert!(!ended.success());
    let said = std::fs::read_to_string(house.beside("stderr.txt")).unwrap();
    let told = said.lines().filter(|line| line.contains("the workspace is gone")).count();
    assert_eq!(told, 1, "{said}");
    assert!(house.commits().is_empty());
}

/// A team in whose file system `folder` is a disk of its own with room for `size`; words in `more` make it larger.
fn on_a_small_disk(house: &mut House, folder: &str, size: &str, more: &std::path::Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, more, 0o600.into()).unwrap();
    let folder = house.root().join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let script = "mount -t tmpfs -o size=$1 small \"$0\" || exit 1; more=$2; \
                  (read size < \"$more\"; mount -o remount,size=$size \"$0\") & shift 2; exec \"$@\"";
    let own = ["unshare", "-Um", "--map-current-user", "--keep-caps", "sh", "-c", script];
    let mut starter: Vec<String> = own.map(str::to_owned).into();
    starter.extend([folder.to_str().unwrap(), size, more.to_str().unwrap()].map(str::to_owned));
    house.started_by(&starter);
}

#[tokio::test]
async fn a_full_disk_is_told_with_its_path_and_the_work_goes_on_when_there_is_room() {
    for folder in ["worktrees", "checks"] {
        let mut house = House::built(Plan::default()).await;
        let large: String = (0..200_000).map(|number| format!("{number:x}")).collect();
        house.commit_by_hand("large.txt", &large, "Something large");
        let more = house.beside("more");
        on_a_small_disk(&mut house, &format!(".teams_runtime/{folder}"), "256k", &more);
        house.start();
        let asked = house.ask(EDIT).await;
        let told = house.reads(&asked, "is full. As soon as there is space").await;
        assert!(words(&told).contains(&format!(".teams_runtime/{folder}")), "{}", words(&told));
        assert!(house.commits().len() == 1 && !words(&told).contains("needs"));
        tokio::task::spawn_blocking(move || std::fs::write(more, "64m\n").unwrap()).await.unwrap();
        house.becomes(&asked, RequestStatus::Committed).await;
        house.close().await;
    }
}

#[tokio::test]
async fn a_check_that_met_a_full_disk_is_repeated_when_there_is_room() {
    let fills = json!("head -c 40000000 /dev/zero > filler && echo 1 passed");
    let checks = format!("[{{name: build, command: [sh, -c, {fills}]}}]");
    let mut house =
        House::built(Plan { checks, more: "prove_base: false\n".to_owned(), ..Plan::default() })
            .await;
    let more = house.beside("more");
    on_a_small_disk(&mut house, ".teams_runtime/checks", "20m", &more);
    house.start();
    let asked = house.ask(EDIT).await;
    let told = house.reads(&asked, "is full. As soon as there is space").await;
    assert!(words(&told).contains(".teams_runtime/checks"), "{}", words(&told));
    tokio::task::spawn_blocking(move || std::fs::write(more, "256m\n").unwrap()).await.unwrap();
    let done = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&done, "checks"), 1, "the one that came to its end");
    house.close().await;
}

#[tokio::test]
async fn what_an_agent_did_waits_for_room_to_be_put_in_order_and_the_room_says_so() {
    let script = "- {role: developer, do: run, commands: [[sh, -c, \"head -c 80000000 /dev/zero > out/filler\"]]}\n";
    let mut house = House::built(Plan::script(script)).await;
    house.commit_by_hand(".gitignore", "/out/*\n", "What is built");
    std::fs::create_dir(house.project().join("out")).unwrap();
    house.commit_by_hand("out/.keep", "", "Where it is built");
    let more = house.beside("more");
    on_a_small_disk(&mut house, ".teams_runtime/worktrees", "12m", &more);
    house.start();
    let asked = house.ask(EDIT).await;
    let told = words(&house.reads(&asked, "is full. As soon as there is space").await);
    assert!(told.contains(".teams_runtime/worktrees"), "{told}");
    tokio::task::spawn_blocking(move || std::fs::write(more, "256m\n").unwrap()).await.unwrap();
    house.becomes(&asked, RequestStatus::Committed).await;
    house.close().await;
}

#[tokio::test]
async fn an_agent_that_met_a_full_disk_begins_again_when_there_is_room_and_no_attempt_is_counted() {
    let mut house = House::built(Plan::default()).await;
    let line = "a".repeat(1_000) + "\n";
    house.commit_by_hand("large.txt", &line.repeat(6_000), "Something large");
    let more = house.beside("more");
    on_a_small_disk(&mut house, ".teams_runtime/worktrees", "20m", &more);
    house.start();
    let asked = house.ask("in large.txt replace \"aaaa\" with \"bbbbbbbbbbbbbbbb\"").await;
    let told = words(&house.reads(&asked, "was cut off").await);
    assert!(told.contains("Developer") && told.contains(".teams_runtime/worktrees"), "{told}");
    tokio::task::spawn_blocking(move || std::fs::write(more, "256m\n").unwrap()).await.unwrap();
    let done = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&done, "attempt_failed"), 0);
    assert!(house.times(&done, "waits") > 0);
    assert_eq!(house.on_branch("large.txt").len(), 6_000 * 4_001);
    house.close().await;
}
