//! The supervisor: nothing is left behind, limits hold, a killed parent loses nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use teams::platform::folder_lock;
use teams::platform::spawn::set_own_binary;
use teams::platform::supervise::{
    EndedBy, OnCap, OnEof, RunFolderState, STDOUT_SPOOL, Spec, SuperviseError, SupervisedProgram,
    adopt, run, stderr_tail,
};

/// A generous bound: reached only by a failure.
const PATIENCE: Duration = Duration::from_secs(60);
const MARK: &str = "TEAMS_TEST_MARK";

async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened")
}

/// A shell script in a folder of its own, marked so that its processes can be told from others.
fn shell(folder: &Path, script: &str) -> (Spec, PathBuf) {
    set_own_binary(env!("CARGO_BIN_EXE_teams").into());
    let run_dir = folder.join("run");
    let mut spec = Spec::new("/bin/sh", folder);
    spec.args = vec!["-c".to_owned(), script.to_owned()];
    spec.env = [
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        (MARK.to_owned(), folder.display().to_string()),
    ]
    .into();
    (spec, run_dir)
}

/// Processes that carry the mark of the folder.
fn marked(folder: &Path) -> Vec<String> {
    let mark = format!("{MARK}={}", folder.display());
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            std::fs::read(path.join("environ"))
                .is_ok_and(|env| env.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes()))
        })
        .map(|path| path.display().to_string())
        .collect()
}

fn stdout(run_dir: &Path) -> String {
    std::fs::read_to_string(run_dir.join(STDOUT_SPOOL)).unwrap()
}

async fn line(supervised: &mut SupervisedProgram, wanted: &str) {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        let piece = in_time(supervised.read()).await.unwrap();
        let piece = piece.unwrap_or_else(|| panic!("ended after {seen:?}"));
        seen.push_str(&String::from_utf8_lossy(&piece));
    }
}

/// Five processes that try to stay: ignored signals, own sessions, orphans of two forks.
const STUBBORN: &str = "
    trap '' INT TERM HUP
    setsid sh -c 'trap \"\" INT TERM HUP; while :; do sleep 100; done' &
    (setsid sh -c 'trap \"\" INT TERM HUP; sleep 1000 & sleep 1000' &)
    (sh -c 'sleep 1000 & sleep 1000' &)
    echo ready
    while :; do sleep 100; done";

#[tokio::test]
async fn output_code_and_both_streams_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spec, run_dir) = shell(folder.path(), "cat; nice; echo warn >&2; exit 3");
    let input = folder.path().join("input");
    std::fs::write(&input, "hello\n").unwrap();
    spec.stdin = Some(input);
    let mut supervised = SupervisedProgram::start(&spec, &run_dir).unwrap();
    let mut seen = Vec::new();
    while let Some(piece) = in_time(supervised.read()).await.unwrap() {
        seen.extend(piece);
    }
    let exit = in_time(supervised.wait()).await.unwrap();
    assert_eq!((exit.ended_by, exit.code), (EndedBy::Exit, Some(3)));
    let seen = String::from_utf8(seen).unwrap();
    let niceness = seen.strip_prefix("hello\n").unwrap();
    assert!(niceness.trim().parse::<i32>().unwrap() >= 10);
    assert_eq!(stderr_tail(&run_dir, 100), "warn\n");
}

#[tokio::test]
async fn a_cancelled_program_leaves_no_process() {
    for kill in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (mut spec, run_dir) = shell(folder.path(), STUBBORN);
        spec.grace_ms = 50;
        let mut supervised = SupervisedProgram::start(&spec, &run_dir).unwrap();
        line(&mut supervised, "ready").await;
        assert!(marked(folder.path()).len() > 2);
        if kill {
            supervised.kill().await;
        } else {
            supervised.interrupt().await;
        }
        let exit = in_time(supervised.wait()).await.unwrap();
        assert_eq!(exit.ended_by, EndedBy::Cancelled);
        assert_eq!(marked(folder.path()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_outlives_the_program_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "(setsid sh -c 'trap \"\" HUP INT TERM; echo up; sleep 1000' &); read x; echo over";
    let (mut spec, run_dir) = shell(folder.path(), script);
    // The orphan says that it is up before the program may end.
    let fifo = folder.path().join("go");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    spec.args[1] = script.replace("read x", "read x <go");
    let mut supervised = SupervisedProgram::start(&spec, &run_dir).unwrap();
    line(&mut supervised, "up").await;
    std::fs::write(&fifo, "go\n").unwrap();
    let exit = in_time(supervised.wait()).await.unwrap();
    assert_eq!((exit.ended_by, exit.code), (EndedBy::Exit, Some(0)));
    assert!(exit.swept > 0);
    assert!(stdout(&run_dir).ends_with("over\n"));
    assert_eq!(marked(folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn limits_end_the_program() {
    type Change = fn(&mut Spec);
    let table: [(&str, Change, EndedBy); 3] = [
        ("trap '' INT; while :; do sleep 9; done", |spec| spec.wall_ms = Some(50), EndedBy::Wall),
        ("sleep 1000", |spec| spec.idle_ms = Some(50), EndedBy::Idle),
        ("yes", |spec| spec.max_stdout_bytes = 10_000, EndedBy::OutputCap),
    ];
    for (script, change, ended_by) in table {
        let folder = tempfile::tempdir().unwrap();
        let (mut spec, run_dir) = shell(folder.path(), script);
        spec.grace_ms = 50;
        change(&mut spec);
        let exit = in_time(run(&spec, &run_dir)).await.unwrap();
        assert_eq!(exit.ended_by, ended_by, "{script}");
        assert!(stdout(&run_dir).len() <= 10_000);
        assert_eq!(marked(folder.path()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_busy_program_is_not_idle() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo up; while [ ! -e enough ]; do :; done; echo counted";
    let (mut busy, run_dir) = shell(folder.path(), script);
    busy.idle_ms = Some(200);
    let mut busy = SupervisedProgram::start(&busy, &run_dir).unwrap();
    line(&mut busy, "up").await;
    // Another one that only waits, with the same limit: when it has been ended twice, the limit was over
    // for the busy one as well.
    for _ in 0..2 {
        let other = tempfile::tempdir().unwrap();
        let (mut waits, waits_in) = shell(other.path(), "sleep 1000");
        waits.idle_ms = Some(200);
        let exit = in_time(run(&waits, &waits_in)).await.unwrap();
        assert_eq!(exit.ended_by, EndedBy::Idle);
    }
    std::fs::write(folder.path().join("enough"), "").unwrap();
    line(&mut busy, "counted").await;
    let exit = in_time(busy.wait()).await.unwrap();
    assert!(exit.success(), "{exit:?}");
}

#[tokio::test]
async fn a_silent_program_to_which_something_comes_is_not_idle() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &go, mode).unwrap();
    let (mut waits, run_dir) = shell(folder.path(), "echo up; read x <go; echo answered");
    let traffic = folder.path().join("traffic");
    // Longer than a busy machine leaves a program waiting.
    waits.idle_ms = Some(1_000);
    waits.traffic = Some(traffic.clone());
    let mut waits = SupervisedProgram::start(&waits, &run_dir).unwrap();
    line(&mut waits, "up").await;
    let comes = async {
        let mut pieces = tokio::time::interval(std::time::Duration::from_millis(20));
        loop {
            pieces.tick().await;
            std::fs::write(&traffic, "").unwrap();
        }
    };
    // Another one to which nothing comes, with the same limit, is ended twice meanwhile.
    let others = async {
        for _ in 0..2 {
            let other = tempfile::tempdir().unwrap();
            let (mut idle, idle_in) = shell(other.path(), "sleep 1000");
            idle.idle_ms = Some(1_000);
            idle.traffic = Some(other.path().join("traffic"));
            let exit = in_time(run(&idle, &idle_in)).await.unwrap();
            assert_eq!(exit.ended_by, EndedBy::Idle);
        }
        // Where nobody reads any more, opening it fails instead of waiting.
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
        let to = rustix::fs::open(&go, flags, rustix::fs::Mode::empty()).unwrap();
        rustix::io::write(&to, b"go\n").unwrap();
        line(&mut waits, "answered").await;
    };
    tokio::select! {
        () = comes => {}
        () = others => {}
    }
    let exit = in_time(waits.wait()).await.unwrap();
    assert!(exit.success(), "{exit:?}");
}

#[tokio::test]
async fn too_much_output_may_be_dropped_instead() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spec, run_dir) = shell(folder.path(), "yes | head -c 300000; echo; echo last");
    spec.max_stdout_bytes = 1000;
    spec.on_cap = OnCap::Drop;
    let exit = in_time(run(&spec, &run_dir)).await.unwrap();
    assert!(exit.success());
    assert!(exit.dropped_stdout > 200_000);
    let text = stdout(&run_dir);
    assert!(text.contains("bytes dropped]") && text.ends_with("\nlast\n"));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spec, run_dir) = shell(folder.path(), "");
    spec.program = "/no/such/program".into();
    let exit = in_time(run(&spec, &run_dir)).await.unwrap();
    assert_eq!(exit.ended_by, EndedBy::NotStarted);
    assert!(exit.error.unwrap().contains("/no/such/program"));
}

#[tokio::test]
async fn an_outcome_that_went_with_the_power_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, run_dir) = shell(folder.path(), "true");
    in_time(run(&spec, &run_dir)).await.unwrap();
    assert!(matches!(adopt(&run_dir).unwrap(), RunFolderState::Finished(_)));
    std::fs::write(run_dir.join("exit.json"), "").unwrap();
    assert!(matches!(adopt(&run_dir).unwrap(), RunFolderState::Never));
}

/// A program, and the process that looks after it.
fn program_and_supervisor(run_dir: &Path) -> [rustix::process::Pid; 2] {
    let started = std::fs::read(run_dir.join("started.json")).unwrap();
    let started: serde_json::Value = serde_json::from_slice(&started).unwrap();
    let program = i32::try_from(started["child_pid"].as_i64().unwrap()).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{program}/stat")).unwrap();
    let parent = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse();
    [program, parent.unwrap()].map(|pid| rustix::process::Pid::from_raw(pid).unwrap())
}

#[tokio::test]
async fn a_program_does_not_go_on_whose_supervisor_was_killed() {
    // With its supervisor the kernel may have ended the program itself, and left what that had begun.
    for (waits, ends) in [(true, false), (false, false), (true, true)] {
        let folder = tempfile::tempdir().unwrap();
        let stays = "setsid sleep 1000 & sleep 1000 & echo up; sleep 1000";
        let (spec, run_dir) = shell(folder.path(), stays);
        let mut supervised = SupervisedProgram::start(&spec, &run_dir).unwrap();
        line(&mut supervised, "up").await;
        assert!(marked(folder.path()).len() > 1);
        let [program, supervisor] = program_and_supervisor(&run_dir);
        for pid in [Some(supervisor), ends.then_some(program)].into_iter().flatten() {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        if waits {
            let lost = in_time(supervised.wait()).await.unwrap_err();
            assert!(matches!(lost, SuperviseError::Lost { .. }), "{lost}");
        } else {
            // The next team comes while nobody waits.
            while in_time(supervised.read()).await.unwrap().is_some() {}
            assert!(matches!(adopt(&run_dir).unwrap(), RunFolderState::Never));
        }
        assert_eq!(marked(folder.path()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_run_folder_has_one_supervisor_and_one_life() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, run_dir) = shell(folder.path(), "echo up; sleep 1000");
    assert!(matches!(adopt(&run_dir).unwrap(), RunFolderState::Never));
    let mut supervised = SupervisedProgram::start(&spec, &run_dir).unwrap();
    assert!(matches!(SupervisedProgram::start(&spec, &run_dir), Err(SuperviseError::Locked(_))));
    line(&mut supervised, "up").await;
    let RunFolderState::Running(adoption) = adopt(&run_dir).unwrap() else {
        panic!("it runs");
    };
    adoption.kill().unwrap();
    let exit = in_time(adoption.wait()).await.unwrap();
    assert_eq!(exit.signal, Some(9));
    in_time(supervised.wait()).await.unwrap();
    assert!(matches!(adopt(&run_dir).unwrap(), RunFolderState::Finished(same) if same == exit));
    assert!(matches!(SupervisedProgram::start(&spec, &run_dir), Err(SuperviseError::Over(_))));
}

/// Not a test of its own: the parent that the next test kills. It is this binary once more.
#[tokio::test]
async fn parent_to_be_killed() {
    let Some(folder) = std::env::var_os("TEAMS_TEST_PARENT").map(PathBuf::from) else {
        return;
    };
    let stubborn = STUBBORN.replace("ready", "up");
    let script = match std::env::var_os("TEAMS_TEST_STUBBORN") {
        Some(_) => stubborn.as_str(),
        None => "echo up; read x <go; echo finished",
    };
    let (mut spec, run_dir) = shell(&folder, script);
    if std::env::var_os("TEAMS_TEST_FINISH").is_some() {
        spec.on_eof = OnEof::Finish;
    }
    spec.locks = vec![folder.join("used")];
    std::fs::create_dir(&spec.locks[0]).unwrap();
    let mut supervised = SupervisedProgram::start(&spec, &run_dir).unwrap();
    line(&mut supervised, "up").await;
    std::fs::write(folder.join("ready"), "").unwrap();
    supervised.wait().await.unwrap();
}

async fn killed_parent(folder: &Path, variable: Option<&str>) {
    let fifo = folder.join("go");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    // The parent reports through a fifo, so that nothing has to be polled.
    let ready = folder.join("ready");
    rustix::fs::mkfifoat(rustix::fs::CWD, &ready, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "supervise::parent_to_be_killed"])
        .env("TEAMS_TEST_PARENT", folder)
        .stdout(std::process::Stdio::null());
    command.envs(variable.map(|name| (name, "1")));
    let mut parent = command.spawn().unwrap();
    in_time(tokio::fs::read(&ready)).await.unwrap();
    parent.kill().await.unwrap();
}

#[tokio::test]
async fn when_the_parent_is_killed_a_check_ends_with_it() {
    for variable in [None, Some("TEAMS_TEST_STUBBORN")] {
        let folder = tempfile::tempdir().unwrap();
        killed_parent(folder.path(), variable).await;
        let run_dir = folder.path().join("run");
        let exit = match adopt(&run_dir).unwrap() {
            RunFolderState::Running(adoption) => in_time(adoption.wait()).await.unwrap(),
            RunFolderState::Finished(exit) => exit,
            RunFolderState::Never => panic!("it was started"),
        };
        assert_eq!(exit.ended_by, EndedBy::ParentGone);
        assert_eq!(marked(folder.path()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn when_the_parent_is_killed_an_agent_finishes_and_is_adopted() {
    let folder = tempfile::tempdir().unwrap();
    killed_parent(folder.path(), Some("TEAMS_TEST_FINISH")).await;
    let run_dir = folder.path().join("run");
    let RunFolderState::Running(adoption) = adopt(&run_dir).unwrap() else {
        panic!("it goes on without its parent");
    };
    let used = folder_lock::unused(&folder.path().join("used"), || true).unwrap();
    assert!(used.is_none(), "nobody removes what it uses");
    std::fs::write(folder.path().join("go"), "go\n").unwrap();
    let exit = in_time(adoption.wait()).await.unwrap();
    assert!(exit.success());
    assert_eq!(stdout(&run_dir), "up\nfinished\n");
    assert_eq!(marked(folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_said_later_reaches_a_live_input_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spec, run_dir) =
        shell(folder.path(), "while read -r line; do echo \"got $line\"; done; echo over");
    let stdin = folder.path().join("stdin");
    std::fs::write(&stdin, "one\n").unwrap();
    spec.stdin = Some(stdin.clone());
    spec.live_stdin = true;
    let mut program = SupervisedProgram::start(&spec, &run_dir).unwrap();
    line(&mut program, "got one").await;
    program.say(&stdin, b"two\n").await.unwrap();
    line(&mut program, "got two").await;
    program.end_input().await;
    line(&mut program, "over").await;
    let exit = in_time(program.wait()).await.unwrap();
    assert!(exit.success(), "{exit:?}");
    assert_eq!(stdout(&run_dir), "got one\ngot two\nover\n");
}

#[tokio::test]
async fn a_program_that_stays_after_its_input_is_ended_as_if_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spec, run_dir) = shell(folder.path(), "echo up; trap '' INT; sleep 1000");
    let stdin = folder.path().join("stdin");
    std::fs::write(&stdin, "").unwrap();
    spec.stdin = Some(stdin);
    spec.live_stdin = true;
    spec.grace_ms = 50;
    let mut program = SupervisedProgram::start(&spec, &run_dir).unwrap();
    line(&mut program, "up").await;
    program.end_input().await;
    let exit = in_time(program.wait()).await.unwrap();
    assert_eq!((exit.ended_by, exit.signal), (EndedBy::Exit, Some(9)));
    assert_eq!(marked(folder.path()), Vec::<String>::new());
}
