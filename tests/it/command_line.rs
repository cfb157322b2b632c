//! The command line as somebody meets it who has never used it: what fails says so by its exit code, words are
//! those of a terminal, and whoever asks there gets the answer there.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use serde_json::{Value, json};
use teams::domain::request::RequestStatus;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::house::{EDIT, House, Plan, teams};

const NO_SUCH: &str = "20260324-ffffffff";
/// What the rehearsal cannot do: it asks a person.
const POEM: &str = "write me a poem";

fn unproven() -> Plan {
    Plan { checks: "[]".to_owned(), ..Plan::default() }
}

async fn up(plan: Plan) -> House {
    let house = House::open(plan).await;
    house.reads("startup", "The team is up").await;
    house
}

/// `teams` in the workspace of the house, with what it says to be read line by line.
pub(crate) fn begun(house: &House, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_teams"))
        .args(arguments)
        .arg("--workspace-root")
        .arg(house.root())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn outside_of_a_workspace_every_command_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let commands: [&[&str]; 24] = [
        &["run"],
        &["status"],
        &["status", "--json"],
        &["list"],
        &["why", NO_SUCH],
        &["ask", "which tasks are left?"],
        &["ask", "--wait", "which tasks are left?"],
        &["request", "cancel", NO_SUCH],
        &["request", "retry", NO_SUCH],
        &["request", "steer", NO_SUCH, "louder"],
        &["approve"],
        &["approve", NO_SUCH],
        &["approve", NO_SUCH, "--content", "1234567"],
        &["models"],
        &["cost"],
        &["health"],
        &["settings"],
        &["sprint", "start", "--milestone", "M"],
        &["sprint", "stop"],
        &["sprint", "status"],
        &["backlog", "list"],
        &["backlog", "add", "--title", "x"],
        &["prompt", "show", NO_SUCH],
        &["config", "role", "set", "--agent", "planner", "--model", "m"],
    ];
    for command in commands {
        let arguments = [command, &["--workspace-root", nowhere.to_str().unwrap()]].concat();
        let (code, out, error) = teams(&arguments, &BTreeMap::new()).await;
        assert_eq!((code, out.as_str()), (1, ""), "{command:?}: {error}");
        assert!(
            error.contains("no workspace here") && error.contains("teams setup"),
            "{command:?}: {error}"
        );
        assert!(!error.contains("teams run"), "{command:?}: {error}");
    }
    assert!(!nowhere.exists());
}

#[tokio::test]
async fn what_there_is_not_is_a_failure() {
    let house = up(unproven()).await;
    for command in [
        &["request", "cancel", NO_SUCH][..],
        &["request", "retry", NO_SUCH],
        &["request", "steer", NO_SUCH, "louder"],
        &["why", NO_SUCH],
        &["approve", NO_SUCH],
        &["approve", NO_SUCH, "--content", "1234567"],
        &["status", "--request-id", NO_SUCH],
        &["list", "--request-id", NO_SUCH],
    ] {
        let (code, out, error) = house.teams(command).await;
        assert_eq!((code, out.as_str()), (1, ""), "{command:?}: {error}");
        assert!(error.contains("there is no request"), "{command:?}: {error}");
    }
    // What has ended is not what there is not.
    let asked = house.ask("which tasks are left?").await;
    let ended = house.becomes(&asked, RequestStatus::Completed).await;
    let (code, _, error) = house.teams(&["request", "cancel", ended.request_id.as_str()]).await;
    assert_eq!((code, error.contains("has ended already: completed")), (1, true), "{error}");
    let decide = ["approve", ended.request_id.as_str(), "--content", "1234567"];
    let (code, _, error) = house.teams(&decide).await;
    assert_eq!((code, error.contains("decided already")), (1, true), "{error}");
    let (code, _, error) = house.teams(&["ask", "  "]).await;
    assert_eq!((code, error.contains("nothing to work on")), (1, true), "{error}");
    let (code, _, error) = house.teams(&["backlog", "add", "--title", "x", "--rank", "-1"]).await;
    assert_eq!((code, error.contains("a whole number from 0")), (2, true), "{error}");
    // Somebody in Discord who makes an id up is not told that something changed.
    let options = json!([
        {"type": 3, "name": "what", "value": format!("{NO_SUCH}@1234567")},
        {"type": 3, "name": "decision", "value": "approve"},
    ]);
    let command =
        json!({"channel": "general", "command": "approve", "options": options, "locale": "en-US"});
    house.owner.ok("POST", "/_local/slash", command).await;
    house
        .until("the answer", async |house: &House| {
            let told = house.told("owner");
            let mine =
                |it: &Value| it["d"]["content"].as_str().is_some_and(|text| text.contains(NO_SUCH));
            let found = told.into_iter().find(mine)?;
            assert!(!found["d"].to_string().contains("changed since"), "{found}");
            Some(())
        })
        .await;
    house.close().await;
}

#[tokio::test]
async fn what_standard_output_does_not_take_is_a_failure() {
    let house = House::built(Plan::default()).await;
    let run = async |arguments: &[&str], stdout: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_teams"));
        command.args(arguments).arg("--workspace-root").arg(house.root());
        let child = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().await.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for command in [&["status"][..], &["list"], &["status", "--json"], &["--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (code, error) = run(command, full.into()).await;
        assert_eq!(code, Some(1), "{command:?}: {error}");
        assert!(
            error.contains("cannot write to standard output: No space left"),
            "{command:?}: {error}"
        );
        // Whoever has read enough closes the pipe.
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert_eq!(run(command, OwnedFd::from(theirs).into()).await, (Some(0), String::new()));
    }
}

#[tokio::test]
async fn a_terminal_is_shown_no_markup_of_discord_and_nothing_hidden() {
    let house = up(unproven()).await;
    let asked = house.ask(&format!("{EDIT} \u{202e}gnp\u{200b}")).await;
    let card = house.reads(&asked, "May this go to the branch?").await;
    assert!(card.to_string().contains("<t:"), "Discord shows the time itself: {card}");
    let request = house.request(&asked, "the request", |_| true).await;
    let id = request.request_id.as_str();
    let mut all = String::new();
    for command in [
        &["status"][..],
        &["list"],
        &["why", id],
        &["approve"],
        &["approve", id],
        &["settings"],
        &["models"],
        &["cost"],
        &["health"],
        &["backlog", "list"],
        &["status", "--request-id", id],
        &["status", "--json"],
        &["prompt", "show", id],
        &["prompt", "show", id, "--json"],
    ] {
        let (code, out, error) = house.teams(command).await;
        assert_eq!((code, error.as_str()), (0, ""), "{command:?}");
        for hidden in ['\u{202e}', '\u{200b}'] {
            assert!(!out.contains(hidden), "{command:?}: {out:?}");
        }
        if !command.contains(&"--json") && !command.contains(&"--request-id") {
            for mark in ["**", "-# ", "<@", "<t:", "```"] {
                assert!(!out.contains(mark), "{command:?} has {mark}: {out}");
            }
        }
        all.push_str(&out);
    }
    assert!(all.contains("<U+202E>gnp<U+200B>"), "people see that it is there: {all}");
    let (_, out, _) = house.teams(&["status", "--request-id", id]).await;
    let record: Value = serde_json::from_str(&out).unwrap();
    assert!(
        record["scope"].as_str().unwrap().contains("\u{202e}gnp\u{200b}"),
        "as it was: {record}"
    );
    let (code, _, error) = house.teams(&["why", "2026\u{202e}"]).await;
    assert_eq!(code, 2);
    assert!(error.contains("<U+202E>") && !error.contains('\u{202e}'), "{error:?}");
    house.close().await;
}

#[tokio::test]
async fn whoever_asks_there_is_told_where_the_answer_will_be_or_waits_for_it() {
    let house = up(Plan::default()).await;
    let (code, out, error) = house.teams(&["ask", "which tasks are left?"]).await;
    assert_eq!(code, 0, "{error}");
    let report = &house.running.info.channels["report"];
    assert!(out.contains("report channel") && out.contains(report), "{out}");
    assert!(out.contains("teams why ") && !out.contains("comes here"), "{out}");

    let (code, out, error) = house.teams(&["ask", "--wait", EDIT]).await;
    assert_eq!(code, 0, "{out}\n{error}");
    let steps =
        ["Planner · ", "Developer · Building", "The checks pass.", "Done.", "all checks green"];
    let mut rest = out.as_str();
    for step in steps {
        rest = rest.split_once(step).unwrap_or_else(|| panic!("no {step} in its place: {out}")).1;
    }
    assert!(!out.contains("**") && !out.contains('\u{1b}'), "{out}");

    // Nobody sees a line that is written over and over where no terminal is.
    let mut child = begun(&house, &["ask", "--wait", POEM]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = Vec::new();
    let id = loop {
        let line = lines.next_line().await.unwrap().expect("it goes on");
        if let Some((id, _)) = line.split_once(" waits for ") {
            break id.to_owned();
        }
        told.push(line);
    };
    let (code, _, error) = house.teams(&["request", "cancel", &id]).await;
    assert_eq!(code, 0, "{error}");
    while let Some(line) = lines.next_line().await.unwrap() {
        told.push(line);
    }
    assert_eq!(child.wait().await.unwrap().code(), Some(1), "{told:#?}");
    assert!(told.join("\n").contains("was withdrawn"), "{told:#?}");
    house.close().await;
}

#[tokio::test]
async fn whoever_stops_waiting_leaves_the_request_going() {
    let house = up(Plan::default()).await;
    let mut child = begun(&house, &["ask", "--wait", POEM]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = String::new();
    while !told.contains(" waits for ") {
        told.push_str(&lines.next_line().await.unwrap().expect("it goes on"));
    }
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    while let Some(line) = lines.next_line().await.unwrap() {
        told.push_str(&line);
    }
    assert_eq!(child.wait().await.unwrap().code(), Some(130), "{told}");
    assert!(told.contains("goes on"), "{told}");
    let open = house.requests().into_iter().find(|it| it.status == RequestStatus::Blocked);
    let id = open.expect("it is still there").request_id;

    // The team ends while somebody waits.
    let mut child = begun(&house, &["ask", "--wait", POEM]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next_line().await.unwrap().expect("it goes on").contains(" waits for ") {}
    let mut house = house;
    house.quiet().await;
    house.stop().await;
    let output = child.wait_with_output().await.unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("The team has stopped") && error.contains(id.as_str()), "{error}");
}

#[tokio::test]
async fn a_broken_configuration_hides_no_team_that_runs() {
    let house = up(Plan::default()).await;
    let asked = house.ask(POEM).await;
    let request = house.becomes(&asked, RequestStatus::Blocked).await;
    let id = request.request_id.as_str();
    let file = house.root().join("team_runtime.yaml");
    let before = std::fs::read_to_string(&file).unwrap();
    let line = 1 + before.lines().position(|line| line.starts_with("language:")).unwrap();
    let place = format!("team_runtime.yaml:{line}:11: this `[` is never closed");
    std::fs::write(&file, before.replace("language: en", "language: [en")).unwrap();
    for (command, part) in [
        (&["status"][..], "team: running"),
        (&["status"], id),
        (&["status", "--json"], "\"running\": true"),
        (&["status", "--agent", "qa"], "qa: status=running"),
        (&["list"], id),
        (&["why", id], "waits for"),
    ] {
        let (code, out, error) = house.teams(command).await;
        assert_eq!(code, 1, "{command:?}: {out}\n{error}");
        assert!(out.contains(part), "{command:?}: {out}");
        assert!(error.contains(&place), "{command:?}: {error}");
    }
    for command in
        [&["status", "--request-id", id][..], &["sprint", "status"], &["approve"], &["health"]]
    {
        let (_, out, error) = house.teams(command).await;
        assert!(
            !error.contains("team_runtime.yaml"),
            "{command:?} needs no configuration: {out}\n{error}"
        );
    }
    std::fs::write(&file, before).unwrap();
    let (code, _, error) = house.teams(&["request", "cancel", id]).await;
    assert_eq!(code, 0, "{error}");
    house.close().await;
}

#[tokio::test]
async fn a_role_that_rehearses_has_no_model() {
    let house = House::built(Plan::default()).await;
    let (_, out, _) = house.teams(&["status", "--agent", "developer"]).await;
    assert!(out.contains("model=N/A reasoning=N/A"), "{out}");
    let thinks = Plan {
        agents: "{default: rehearsal, roles: {developer: codex}}".to_owned(),
        ..Plan::default()
    };
    let house = House::built(thinks).await;
    let (_, out, _) = house.teams(&["status", "--agent", "developer"]).await;
    assert!(!out.contains("model=N/A"), "{out}");
}

/// A bot is called as people write it, whether or not they choose it from the list.
#[tokio::test]
async fn the_team_hears_its_name_however_it_is_written() {
    let house = up(Plan::default()).await;
    for name in ["@teams", "@Teams", "@TEAMS,"] {
        let asked = house.say("general", &format!("{name} which tasks are left?")).await;
        let request = house.becomes(&asked, RequestStatus::Completed).await;
        assert!(request.scope.contains("which tasks"), "{}", request.scope);
    }
    for other in ["@teamsters which tasks are left?", "tell @teams which tasks are left?"] {
        house.say("general", other).await;
    }
    let last = house.ask("which tasks are left now?").await;
    house.becomes(&last, RequestStatus::Completed).await;
    assert_eq!(house.requests().len(), 4, "the others were not for the team");
    house.close().await;
}

/// Whoever asks reads where they asked.
#[tokio::test]
async fn whoever_asked_is_told_where_the_card_is() {
    let house = up(unproven()).await;
    let asked = house.ask(EDIT).await;
    house.reads(&asked, "May this go to the branch?").await;
    let told = house.reads("general", "waits for a decision").await;
    assert_eq!(told["message_reference"]["message_id"], asked.as_str());
    assert!(told["content"].as_str().unwrap().contains(&format!("<#{asked}>")), "{told}");
    house.press(&house.owner, &asked, "May this go to the branch?", "Turn down").await;
    house.becomes(&asked, RequestStatus::Completed).await;
    house.close().await;
}

/// A terminal that is closed ends the team as a person would.
#[tokio::test]
async fn a_hangup_ends_the_team_in_order() {
    let mut house = up(Plan::default()).await;
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    let pid = i32::try_from(house.team_pid()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    // It looks at the exit code, and that nothing is left to replay.
    house.stop().await;
    let opened = teams::store::Store::open(
        &house.root(),
        std::sync::Arc::new(teams::platform::disk::RealDisk),
    );
    assert_eq!(opened.unwrap().report.replayed, 0, "{}", house.log());
}

/// The lock is held here: by a team that is ending, and by one that is not.
#[tokio::test]
async fn a_start_waits_for_a_team_that_is_ending() {
    let house = House::built(Plan::default()).await;
    let path = house.root().join(".teams_runtime/lock");
    let lock = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
    lock.lock().unwrap();
    let (code, _, error) = house.teams(&["run", "--quiet"]).await;
    assert_eq!(code, 1, "{error}");
    let us = format!("(process {})", std::process::id());
    assert!(error.contains("another process owns the workspace") && error.contains(&us), "{error}");
    // A second one, which is let in while it waits.
    let mut child = Command::new(env!("CARGO_BIN_EXE_teams"))
        .args(["run", "--workspace-root"])
        .arg(house.root())
        .env("TEAMS_TEST_TEAMS", &house.running.info.bots["teams"].token)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lock = Some(lock);
    let mut told = String::new();
    loop {
        let line = lines.next_line().await.unwrap().unwrap_or_else(|| panic!("it ended: {told}"));
        told.push_str(&format!("{line}\n"));
        if line.contains("another process still has the workspace") {
            drop(lock.take().expect("it says so once"));
        } else if line.contains("the team is up") {
            break;
        }
    }
    assert!(lock.is_none(), "{told}");
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    while lines.next_line().await.unwrap().is_some() {}
    assert!(child.wait().await.unwrap().success());
}
