//! What an agent's commands can do from within the sandbox: a script that stands for Codex tries everything.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use teams::agents::claude::ClaudeSettings;
use teams::agents::codex::CodexSettings;
use teams::agents::{
    Agent, AgentOutcome, Confinement, Driver, Event, ProxyAddress, RunSpec, Sandbox, Surroundings,
    Watch, WriteAccess,
};
use teams::domain::ids::RequestId;
use teams::domain::run::{FailKind, RunOutcome};
use teams::git::{Project, create};

use crate::git_repo::set_mode;
use crate::support::CONTRACT;
use crate::support::agent_run::{Place, failure, in_time, result};

/// Asks this binary, in a process without bubblewrap in its `PATH`, for the test of Landlock.
const LANDLOCK: &str = "TEAMS_TEST_LANDLOCK";

/// A workspace, a project and a worktree with the usual things lying around.
struct Yard {
    place: Place,
    spec: RunSpec,
    _listener: std::net::TcpListener,
}

impl Yard {
    async fn new(run: &str, access: WriteAccess, script: &str) -> Yard {
        let place = Place::new(Box::new(|_, _| json!({"say": "nobody asks"}))).await;
        let root = place.folder.path().canonicalize().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("project/hello.txt", "hello\n");
        create::create(&root.join("project"), "main", "begin").unwrap();
        put("project/.env", "SECRET=1\n");
        put("workspace/.env", "SECRET=1\n");
        put("workspace/.teams_setup/tokens.env", "TOKEN=secret\n");
        put("workspace/.teams_runtime/control.secret", "secret\n");
        put("workspace/.teams_runtime/journal/1", "secret\n");
        put("workspace/developer/sessions/other/home/notes", "secret\n");
        put("workspace/shared_workspace/plan.md", "the plan\n");
        put("workspace/shared_workspace/attachments/other.txt", "secret\n");
        put("workspace/shared_workspace/sprints/s/todos/1/spec.md", "the plan of one\n");
        put("elsewhere.txt", "secret\n");
        std::fs::create_dir(root.join("sockets")).unwrap();
        let project = Project::open(&root.join("project"), "main").unwrap();
        let id = RequestId::parse("20260101-00000001").unwrap();
        let worktree = project.worktree(&id, &root.join("workspace/.teams_runtime/worktrees"));
        put("agent/codex", script);
        set_mode(&root.join("agent/codex"), 0o755);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        put(
            "agent/places",
            &format!("root={} port={port} team={}\n", root.display(), std::process::id()),
        );
        let said = json!({"type": "agent_message", "text": result().to_string()});
        let answer = [
            json!({"type": "thread.started", "thread_id": "t"}),
            json!({"type": "item.completed", "item": said}),
            json!({"type": "turn.completed", "usage": {}}),
        ];
        put("agent/answer", &answer.map(|line| format!("{line}\n")).concat());
        let agent = Agent::Codex(CodexSettings {
            binary: Some(root.join("agent/codex")),
            ..CodexSettings::default()
        });
        let spec = RunSpec {
            run_dir: root.join("workspace/.teams_runtime/runs").join(run),
            session_dir: root.join("workspace/developer/sessions/own"),
            worktree: worktree.unwrap().path(),
            access,
            surroundings: Surroundings {
                readable: vec![root.join("workspace/shared_workspace")],
                shared: Some(root.join("workspace/shared_workspace")),
                repository: Some(root.join("project/.git")),
                hidden: vec![
                    root.join("workspace"),
                    root.join("project"),
                    root.join("workspace/shared_workspace/attachments"),
                ],
                proxy: Some(ProxyAddress {
                    socket: root.join("sockets/door.sock"),
                    port: std::env::var_os(LANDLOCK).map(|_| 9),
                    token: "run-token".to_owned(),
                    leads_out: false,
                    traffic: None,
                }),
                ..Surroundings::default()
            },
            ..place.spec(agent, run)
        };
        Yard { place, spec, _listener: listener }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.folder.path().join(name)
    }

    /// What the script found out, one line a question.
    async fn found(&self) -> Vec<String> {
        let (found, outcome) = self.tried().await;
        assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
        assert!(!found.is_empty(), "the script found nothing out");
        found
    }

    /// The same, however it ends.
    async fn tried(&self) -> (Vec<String>, AgentOutcome) {
        let (events, mut seen) = tokio::sync::mpsc::channel(64);
        let watch = Watch { events: Some(events), ..Watch::default() };
        let outcome = in_time(self.place.watched(&self.spec, &watch)).await;
        let mut found = Vec::new();
        while let Ok(event) = seen.try_recv() {
            if let Event::Thought(text) = event {
                found.push(text);
            }
        }
        (found, outcome)
    }
}

/// Tries each thing, and says what worked as thoughts of the agent.
const TRIES: &str = r#"#!/bin/bash
export PATH=/usr/bin:/bin
here=$(dirname "$0")
if [ "$1" = --version ]; then echo "codex-cli 0.0.1"; exit; fi
cat > /dev/null
. "$here/places"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
try() {
  name=$1; shift
  if (eval "$@") > /dev/null 2>&1; then answer=yes; else answer=no; fi
  echo "{\"type\":\"item.completed\",\"item\":{\"type\":\"reasoning\",\"text\":\"$name: $answer\"}}"
}
ws=$root/workspace
try reads-the-tokens-of-the-team 'grep . $ws/.teams_setup/tokens.env'
try reads-the-env-file-of-the-workspace 'grep . $ws/.env'
try reads-the-env-file-of-the-project 'grep . $root/project/.env'
try reads-the-secret-of-the-control-socket 'grep . $ws/.teams_runtime/control.secret'
try reads-the-journal 'grep -r . $ws/.teams_runtime/journal'
try reads-another-session 'grep . $ws/developer/sessions/other/home/notes'
try reads-what-was-attached-elsewhere 'grep . $ws/shared_workspace/attachments/other.txt'
try reads-what-lies-beside 'grep . $root/elsewhere.txt'
try reads-the-passwords-of-the-machine 'grep . /etc/shadow'
try reads-the-ssh-keys-of-the-operator 'ls ~root/.ssh ~root/.config ~root/.codex ~root/.claude ~root/.gitconfig'
try reads-the-run-folder 'grep . $ws/.teams_runtime/runs/*/spec.json $ws/.teams_runtime/runs/*/turn-0/*'
try reads-the-environment-of-the-team 'grep -z . /proc/$team/environ'
try sees-the-team '[ -d /proc/$team ]'
(echo x > $root/outside; echo x > $ws/outside) 2> /dev/null
try writes-to-the-shared-documents 'echo x >> $ws/shared_workspace/plan.md'
try writes-a-hook 'echo x > $root/project/.git/hooks/post-commit'
try writes-the-settings-of-the-repository 'echo x >> $root/project/.git/config'
try commits 'echo x > committed.txt; git add committed.txt && git commit -m x'
try writes-to-the-system 'echo x > /usr/bin/teams-was-here'
try reaches-the-network-of-the-machine 'exec 3<>/dev/tcp/127.0.0.1/$port'
try reaches-a-socket-of-the-system 'ls /run/docker.sock /run/user /var/run/docker.sock'
try writes-to-the-worktree 'echo made > made.txt'
try changes-a-file 'echo changed >> hello.txt'
try asks-git-for-the-state 'git status --porcelain && git diff && git log -1'
try writes-to-its-home 'echo x > $HOME/x'
try writes-to-its-temporary-folder 'echo x > $TMPDIR/x'
try writes-to-a-temporary-folder-of-its-own 'echo x > /tmp/of-a-sandbox-of-teams'
try reads-the-shared-documents 'grep . $ws/shared_workspace/plan.md'
try runs-programs 'git --version && bash --version'
try listens-where-the-kernel-says 'perl -MSocket -e "socket(S, AF_INET, SOCK_STREAM, 0) or die; bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or die; listen(S, 1) or die"'
try writes-among-the-devices 'echo x > /dev/of-a-sandbox'
try fills-the-memory 'for at in /dev/shm $ws/.teams_runtime; do [ $(df -k --output=size $at | tail -1) -gt 3000000 ] && echo x > $at/x && exit 0; done; exit 1'
try writes-the-link-to-the-repository 'echo gitdir: /tmp > .git'
cat "$here/answer"
"#;

/// What must work for whoever may write.
const ALLOWED: [&str; 9] = [
    "writes-to-the-worktree",
    "changes-a-file",
    "asks-git-for-the-state",
    "writes-to-its-home",
    "writes-to-its-temporary-folder",
    "writes-to-a-temporary-folder-of-its-own",
    "reads-the-shared-documents",
    "runs-programs",
    "listens-where-the-kernel-says",
];

fn answers(found: &[String], allowed: &[&str]) {
    answers_of(found, TRIES.matches("\ntry ").count(), allowed);
}

fn answers_of(found: &[String], count: usize, allowed: &[&str]) {
    let all: Vec<(&str, &str)> = found.iter().map(|line| line.split_once(": ").unwrap()).collect();
    assert_eq!(all.len(), count, "{found:?}");
    for (name, answer) in all {
        let expected = if allowed.contains(&name) { "yes" } else { "no" };
        assert_eq!(answer, expected, "{name}");
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub(crate) async fn bubblewrap() -> bool {
    let found = Driver::default().confinement(Sandbox::Auto).await.cloned();
    let works = matches!(found, Some(Confinement::Bubblewrap(_)));
    if !works {
        assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "{found:?}");
        eprintln!("skipped: bubblewrap does not work here");
    }
    works
}

#[tokio::test]
async fn an_agent_sees_and_reaches_what_its_role_needs_and_nothing_else() {
    if !bubblewrap().await {
        return;
    }
    let yard = Yard::new("writer", WriteAccess::Worktree, TRIES).await;
    answers(&yard.found().await, &ALLOWED);
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(yard.spec.worktree.join("made.txt")), "made\n");
    assert!(!Path::new("/tmp/of-a-sandbox-of-teams").exists() && !yard.path("outside").exists());
    assert!(!yard.path("workspace/outside").exists());
}

#[tokio::test]
async fn who_only_reads_writes_nothing_that_lasts() {
    if !bubblewrap().await {
        return;
    }
    let yard = Yard::new("reader", WriteAccess::ReadOnly, TRIES).await;
    let allowed: Vec<&str> = ALLOWED.iter().skip(2).copied().collect();
    answers(&yard.found().await, &allowed);
    assert!(!yard.spec.worktree.join("made.txt").exists());
}

#[tokio::test]
async fn whoever_writes_documents_writes_those_and_not_the_work() {
    if !bubblewrap().await {
        return;
    }
    let mut yard = Yard::new("documents", WriteAccess::ReadOnly, TRIES).await;
    yard.spec.access = WriteAccess::Documents(yard.path("workspace/shared_workspace"));
    let mut allowed: Vec<&str> = ALLOWED.iter().skip(2).copied().collect();
    allowed.push("writes-to-the-shared-documents");
    let found = yard.found().await;
    answers(&found, &allowed);
}

/// Puts links where its own folder was, in a session that is gone on with, and looks what has opened.
const LINKS: &str = r#"#!/bin/bash
export PATH=/usr/bin:/bin
here=$(dirname "$0")
if [ "$1" = --version ]; then echo "codex-cli 0.0.1"; exit; fi
cat > /dev/null
. "$here/places"
try() {
  name=$1; shift
  if (eval "$@") > /dev/null 2>&1; then answer=yes; else answer=no; fi
  echo "{\"type\":\"item.completed\",\"item\":{\"type\":\"reasoning\",\"text\":\"$name: $answer\"}}"
}
try reads-the-tokens-of-the-team 'grep . $root/workspace/.teams_setup/tokens.env'
try reads-the-secret-of-the-control-socket 'grep . $root/workspace/.teams_runtime/control.secret'
(echo x > $root/workspace/.teams_runtime/x) 2> /dev/null
try leaves-a-link 'rm -rf $CODEX_HOME; ln -s ../../.. $CODEX_HOME && [ -d $CODEX_HOME/developer ]'
cd ${HOME%/home}
try leaves-more-of-them 'rm -rf tmp; ln -s ../../../.teams_runtime/made tmp; rm -rf home; ln -s /dev/zero home'
try leaves-pipes 'for one in usage.json context.json; do rm -f $one; mkfifo $one || exit 1; done'
cat "$here/answer"
"#;

/// What an agent leaves in its session does not lead its next run out of the sandbox.
async fn links_lead_nowhere(run: &str) {
    let mut yard = Yard::new(run, WriteAccess::Worktree, LINKS).await;
    for again in ["first", "second"] {
        yard.spec.run_id = teams::domain::ids::RunId::parse(&format!("{run}-{again}")).unwrap();
        yard.spec.run_dir = yard.path("runs").join(yard.spec.run_id.as_str());
        let own = ["leaves-a-link", "leaves-more-of-them", "leaves-pipes"];
        answers_of(&yard.found().await, 5, &own);
        // The next one goes on with the conversation: what it had used is looked up in the session.
        yard.spec.resume = Some("t".to_owned());
    }
    for made in ["x", "made"] {
        assert!(!yard.path("workspace/.teams_runtime").join(made).exists(), "{made}");
    }
}

#[tokio::test]
async fn a_link_that_is_left_in_a_session_does_not_lead_out_of_the_next_sandbox() {
    if bubblewrap().await {
        links_lead_nowhere("links").await;
    }
}

/// Looks where its folder of documents leads to.
const DOCUMENTS: &str = r#"#!/bin/bash
export PATH=/usr/bin:/bin
here=$(dirname "$0")
if [ "$1" = --version ]; then echo "codex-cli 0.0.1"; exit; fi
cat > /dev/null
. "$here/places"
try() {
  name=$1; shift
  if (eval "$@") > /dev/null 2>&1; then answer=yes; else answer=no; fi
  echo "{\"type\":\"item.completed\",\"item\":{\"type\":\"reasoning\",\"text\":\"$name: $answer\"}}"
}
ws=$root/workspace
own=$ws/shared_workspace/sprints/s/todos/1
try reads-a-secret-in-its-folder 'grep -rs secret $own/ $own/journal/'
try reads-the-secret-of-the-control-socket 'grep secret $ws/.teams_runtime/control.secret'
(echo x > $own/x; echo x > $own/control.secret; echo x > $ws/.teams_runtime/x) 2> /dev/null
cat "$here/answer"
"#;

/// A run that writes the documents of a todo, with a link to the state of the team beside its folder.
async fn writes_documents(run: &str) -> Yard {
    let mut yard = Yard::new(run, WriteAccess::ReadOnly, DOCUMENTS).await;
    let todos = yard.todos();
    std::os::unix::fs::symlink("../../../../.teams_runtime", todos.join("other")).unwrap();
    yard.spec.access = WriteAccess::Documents(todos.join("1"));
    yard
}

impl Yard {
    fn todos(&self) -> PathBuf {
        self.spec.surroundings.shared.as_ref().unwrap().join("sprints/s/todos")
    }

    /// The state of the team is as it was.
    fn state_is_kept(&self) {
        let state = self.path("workspace/.teams_runtime");
        assert_eq!(std::fs::read_to_string(state.join("control.secret")).unwrap(), "secret\n");
        assert!(!state.join("x").exists(), "something was written there");
    }
}

/// A link in the place of the folder that a run may write is not followed.
async fn a_link_in_its_place_opens_nothing(run: &str) {
    let yard = writes_documents(run).await;
    std::fs::rename(yard.todos().join("1"), yard.todos().join("aside")).unwrap();
    std::fs::rename(yard.todos().join("other"), yard.todos().join("1")).unwrap();
    answers_of(&yard.found().await, 2, &[]);
    yard.state_is_kept();
}

/// Lets the other thread go however the test ends.
struct Ends(Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Nor one that takes its place again and again while the sandbox is set up. At worst the agent finds its own folder,
/// with what earlier runs wrote there, where the link leads within its own view; never what lies there outside.
async fn a_link_that_comes_and_goes_opens_nothing(run: &str) {
    let mut yard = writes_documents(run).await;
    let over = Arc::new(AtomicBool::new(false));
    let ends = Ends(Arc::clone(&over));
    let both = ["1", "other"].map(|name| yard.todos().join(name));
    let swaps = std::thread::spawn(move || {
        let cwd = rustix::fs::CWD;
        while !over.load(Ordering::Relaxed) {
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(cwd, &both[0], cwd, &both[1], exchange).unwrap();
        }
    });
    for nth in 0..8 {
        yard.spec.run_id = teams::domain::ids::RunId::parse(&format!("{run}-{nth}")).unwrap();
        yard.spec.run_dir = yard.path("runs").join(yard.spec.run_id.as_str());
        let (found, outcome) = yard.tried().await;
        match outcome.outcome {
            RunOutcome::Result(_) => answers_of(&found, 2, &[]),
            RunOutcome::Failed { message, .. } => {
                let why = ["the sandbox could not be set up", "bwrap:"];
                assert!(why.iter().any(|part| message.contains(part)), "{message}");
                assert_eq!(found, Vec::<String>::new());
            }
        }
        yard.state_is_kept();
    }
    drop(ends);
    swaps.join().unwrap();
}

#[tokio::test]
async fn a_folder_that_became_a_link_does_not_lead_out_of_the_sandbox() {
    if bubblewrap().await {
        a_link_in_its_place_opens_nothing("documents-link").await;
        a_link_that_comes_and_goes_opens_nothing("documents-swap").await;
    }
}

/// Says that it was begun.
const MARKS: &str = r#"#!/bin/bash
export PATH=/usr/bin:/bin
here=$(dirname "$0")
if [ "$1" = --version ]; then echo "codex-cli 0.0.1"; exit; fi
touch "$here/begun"
cat > /dev/null
cat "$here/answer"
"#;

/// Asks this binary, in a process on a machine that confines nothing.
const NOTHING: &str = "TEAMS_TEST_NOTHING";

/// Runs where neither bubblewrap nor Landlock is to be found; see the test below.
#[tokio::test]
async fn within_nothing() {
    if std::env::var_os(NOTHING).is_none() {
        return;
    }
    let found = Driver::default().confinement(Sandbox::Auto).await.cloned();
    assert!(matches!(found, Some(Confinement::Nothing(_))), "{found:?}");
    let mut yard = Yard::new("nothing", WriteAccess::ReadOnly, MARKS).await;
    let (_, outcome) = yard.tried().await;
    let RunOutcome::Failed { kind, message, .. } = outcome.outcome else { panic!("it began") };
    assert_eq!(kind, FailKind::NoSandbox);
    for part in ["install bubblewrap", "agents.codex.sandbox: \"off\"", "is not installed"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!yard.path("agent/begun").exists());
    // Unless the operator says so.
    if let Agent::Codex(config) = &mut yard.spec.agent {
        config.sandbox = Sandbox::Off;
    }
    yard.spec.run_dir = yard.path("runs/allowed");
    let (_, outcome) = yard.tried().await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert!(yard.path("agent/begun").exists());
}

#[tokio::test]
async fn without_any_sandbox_no_agent_of_a_model_is_begun() {
    let empty = tempfile::tempdir().unwrap();
    let starter = crate::support::without_landlock();
    let perl =
        teams::platform::spawn::find_program(&starter[0], std::env::var_os("PATH").as_deref());
    let child = tokio::process::Command::new(perl.expect("perl is there"))
        .args(&starter[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::within_nothing", "--nocapture"])
        .env(NOTHING, "1")
        .env("PATH", empty.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let said = in_time(child).await.unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

/// Ignores what it can; leaves a process of a session of its own behind.
const STUBBORN: &str = r#"#!/bin/bash
if [ "$1" = --version ]; then echo "codex-cli 0.0.1"; exit; fi
cat > /dev/null
setsid sh -c 'trap "" INT TERM; while :; do sleep 1000; done' &
trap 'echo "{\"type\":\"item.completed\",\"item\":{\"type\":\"reasoning\",\"text\":\"interrupted\"}}"; exit 1' INT
echo '{"type":"item.started","item":{"id":"1","type":"command_execution","command":"wait"}}'
while :; do sleep 0.1; done
"#;

#[tokio::test]
async fn an_interrupt_reaches_the_agent_within_and_nothing_of_it_is_left() {
    if !bubblewrap().await {
        return;
    }
    let mut yard = Yard::new("stubborn", WriteAccess::Worktree, STUBBORN).await;
    yard.spec.limits.grace_ms = 60_000;
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let mut interrupted = false;
    let cancel = async {
        while let Some(event) = seen.recv().await {
            if matches!(event, Event::ToolStart { .. }) {
                watch.cancel.cancel();
            }
            if let Event::Thought(text) = event {
                interrupted = text == "interrupted";
                return;
            }
        }
    };
    let driver = Driver::default();
    let run = driver.run(&yard.spec, &CONTRACT, &watch);
    let (outcome, ()) = in_time(async { tokio::join!(run, cancel) }).await;
    assert_eq!(failure(&outcome), FailKind::Cancelled);
    assert!(interrupted, "it was killed and not asked");
}

/// Runs where bubblewrap is not to be found; see the test below.
#[tokio::test]
async fn within_landlock() {
    if std::env::var_os(LANDLOCK).is_none() {
        return;
    }
    let found = Driver::default().confinement(Sandbox::Auto).await.cloned();
    assert!(matches!(found, Some(Confinement::Landlock(..))), "{found:?}");
    let yard = Yard::new("landlock", WriteAccess::Worktree, TRIES).await;
    let mut found = yard.found().await;
    // What it cannot do: hide processes, give a temporary folder, keep a file within the worktree.
    found.retain(|line| {
        let known = [
            "sees-the-team",
            "writes-to-a-temporary-folder-of-its-own",
            "writes-the-link-to-the-repository",
        ];
        !known.iter().any(|name| line.starts_with(name))
    });
    assert_eq!(found.len(), TRIES.matches("\ntry ").count() - 3, "{found:?}");
    for line in found {
        let (name, answer) = line.split_once(": ").unwrap();
        let expected = if ALLOWED.contains(&name) { "yes" } else { "no" };
        assert_eq!(answer, expected, "{name}");
    }
    assert!(!yard.path("outside").exists() && !yard.path("workspace/outside").exists());
    links_lead_nowhere("landlock-links").await;
    a_link_in_its_place_opens_nothing("landlock-documents").await;
    a_link_that_comes_and_goes_opens_nothing("landlock-swap").await;
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
async fn without_bubblewrap_the_kernel_confines() {
    if teams::platform::landlock::strength().is_none() {
        assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "no landlock");
        eprintln!("skipped: this kernel has no landlock");
        return;
    }
    let empty = tempfile::tempdir().unwrap();
    let child = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::within_landlock", "--nocapture"])
        .env(LANDLOCK, "1")
        .env("PATH", empty.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let said = in_time(child).await.unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

/// What a model has a real agent's command try.
const FROM_WITHIN: &str = "echo made > made.txt; ls -A / $HOME; \
    env; cat /proc/*/environ | tr '\\0' '\\n'; \
    curl -sS -m 2 https://example.com 2>&1; echo the end";

/// What the model was told of the command that it had run.
fn told(place: &Place) -> String {
    place.server.requests()[1].body.to_string()
}

#[tokio::test]
async fn codex_works_within_the_sandbox_and_reaches_its_model_by_the_proxy() {
    let Some(binary) = crate::codex::codex() else { return };
    if !bubblewrap().await {
        return;
    }
    let usage = json!({"in": 1000, "cached": 400, "out": 20});
    let place = Place::new(Box::new(move |_, index| match index {
        0 => json!({"tool": "exec_command", "usage": usage,
            "args": {"cmd": FROM_WITHIN, "yield_time_ms": 30_000}}),
        _ => json!({"say": result(), "usage": usage}),
    }))
    .await;
    let agent = Agent::Codex(CodexSettings { binary: Some(binary), ..CodexSettings::default() });
    let mut spec = place.spec(agent, "codex");
    let proxy = place.proxy(&mut spec).await;
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert_eq!(place.file("made.txt"), "made\n");
    let (told, token) = (told(&place), &proxy.address().token);
    assert!(told.contains("the end") && told.contains("CODEX_HOME="), "{told}");
    assert!(!told.contains("CARGO_MANIFEST"), "the environment leaks: {told}");
    assert!(!place.server.requests().iter().any(|request| request.authorized));
    // The agent's own environment shows it; it opens this run's proxy and nothing else.
    assert!(told.contains(token.as_str()));
    let counted = proxy.counted();
    assert_eq!((counted.requests, counted.last_input), (2, 1000));
    assert_eq!(counted.usage, outcome.usage, "it counts as the agent does");
    assert_eq!(proxy.settle(outcome.usage), outcome.usage);
}

#[tokio::test]
async fn claude_works_within_the_sandbox_and_reaches_its_model_by_the_proxy() {
    let Some(binary) = crate::claude::claude() else { return };
    if !bubblewrap().await {
        return;
    }
    let usage = json!({"in": 1000, "cached": 400, "out": 20});
    let place = Place::new(Box::new(move |_, index| match index {
        0 => json!({"tool": "Bash", "usage": usage,
            "args": {"command": FROM_WITHIN, "description": "look"}}),
        _ => json!({"tool": "StructuredOutput", "args": result(), "usage": usage}),
    }))
    .await;
    let agent = Agent::Claude(ClaudeSettings { binary: Some(binary), ..ClaudeSettings::default() });
    let mut spec = place.spec(agent, "claude");
    let proxy = place.proxy(&mut spec).await;
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert_eq!(place.file("made.txt"), "made\n");
    assert!(told(&place).contains("the end"), "{}", told(&place));
    assert!(!place.server.requests().iter().any(|request| request.authorized));
    let counted = proxy.counted();
    assert_eq!(counted.usage.tokens(), outcome.usage.tokens());
    assert_eq!(counted.requests, 2);
}

#[tokio::test]
async fn a_run_that_has_spent_its_budget_ends_as_that() {
    let mut agents = Vec::new();
    if let Some(binary) = crate::codex::codex() {
        let binary = Some(binary);
        agents.push(Agent::Codex(CodexSettings { binary, ..CodexSettings::default() }));
    }
    if let Some(binary) = crate::claude::claude() {
        let binary = Some(binary);
        agents.push(Agent::Claude(ClaudeSettings { binary, ..ClaudeSettings::default() }));
    }
    for agent in agents {
        let usage = json!({"in": 1000, "cached": 0, "out": 20});
        let look = match &agent {
            Agent::Codex(_) => {
                json!({"tool": "exec_command", "args": {"cmd": "true"}, "usage": usage})
            }
            Agent::Claude(_) | Agent::Acp(_) | Agent::Rehearsal(_) => {
                json!({"tool": "Read", "args": {"file_path": "hello.txt"}, "usage": usage})
            }
        };
        let mut place = Place::new(Box::new(move |_, _| look.clone())).await;
        place.allowance.tokens = Some(2_500);
        let mut spec = place.spec(agent, "spent");
        let proxy = place.proxy(&mut spec).await;
        let outcome = place.run(&spec).await;
        assert_eq!(failure(&outcome), FailKind::Budget, "{outcome:?}");
        assert_eq!((place.server.requests().len(), proxy.counted().requests), (3, 3));
    }
}
