//! Links, pipes and devices that an agent leaves where it may write, for the team to read, write, mount or send.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use teams::domain::request::{RequestEvent, RequestStatus};
use teams::domain::sprint::{Sprint, SprintStatus};

use super::scene::{MODEL_KEY, PASSWORD, Scene, Wall, files};
use crate::git_repo::git_in;
use crate::support::house::{EDIT, House, Plan, words};
use crate::support::{broken_bubblewrap, without_landlock};
use crate::team_sprint::{sprint_that, start};

/// The files of all messages of a channel as a reader downloads them.
async fn downloads(house: &House, channel: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for message in house.messages(channel).await {
        for file in message["attachments"].as_array().into_iter().flatten() {
            let answer = reqwest::get(file["url"].as_str().unwrap()).await.unwrap();
            let bytes = answer.error_for_status().unwrap().bytes().await.unwrap();
            found.push((file["filename"].as_str().unwrap().to_owned(), bytes.to_vec()));
        }
    }
    found
}

fn holds(bytes: &[u8], text: &str) -> bool {
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    [text.as_bytes(), &wide].iter().any(|part| bytes.windows(part.len()).any(|at| at == *part))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_names_is_sent_only_where_it_is_a_file_and_nothing_else() {
    let scene = Scene::new(Wall::Bubblewrap, "").await;
    let house = &scene.house;
    // As a role of a sprint could have left it.
    let folder = house.root().join("shared_workspace/sprints/left");
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.join(name)).unwrap();
    std::fs::create_dir_all(folder.join(".hidden")).unwrap();
    put("plain.md", format!("a plain file that says {PASSWORD}").as_bytes());
    put("torn.md", &[b"\xff\xfe\xfd ", PASSWORD.as_bytes(), b" \xff"].concat());
    let wide: Vec<u8> = PASSWORD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    put("wide.md", &wide);
    put(".hidden/file.md", b"hidden");
    link("../../../.env", "x.md");
    link("../../..", "up");
    link(".hidden", "seen");
    link("/dev/zero", "zero.md");
    std::fs::hard_link(house.root().join(".env"), folder.join("hard.md")).unwrap();
    let pipe = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("pipe.md"), pipe).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket.md")).unwrap();
    let names = [
        "plain.md",
        "torn.md",
        "wide.md",
        "x.md",
        "up/.env",
        "up/left/plain.md",
        "seen/file.md",
        "zero.md",
        "hard.md",
        "pipe.md",
        "socket.md",
        "../../../.env",
        "../left/../../../.env",
    ];
    let artifacts = names.map(|name| format!("shared_workspace/sprints/left/{name}"));
    let commands = [["true"]];
    scene.script(&json!([{"role": "developer", "contains": "greet.sh", "times": 1, "do": "run",
        "commands": commands, "artifacts": artifacts}]));
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;

    let sent = downloads(house, &asked).await;
    let sent_names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(sent_names, ["plain.md", "torn.md", "wide.md"]);
    for (name, bytes) in &sent {
        for secret in [PASSWORD, MODEL_KEY] {
            assert!(!holds(bytes, secret), "{secret} was sent in {name}");
        }
        assert!(holds(bytes, "[redacted]"), "{name}: {bytes:?}");
    }
    // The others are no documents, and people are told that they were named.
    for name in ["x.md", "pipe.md"] {
        let room = house.messages(&asked).await;
        assert!(room.iter().any(|it| words(it).contains(name)), "{name} is not told of");
    }
    for name in ["hard.md", "plain.md", "torn.md", "wide.md"] {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    scene.nothing_leaked().await;
    house.press(&house.owner, &scene.asked, "May this go", "Turn down").await;
    scene.house.close().await;
}

/// One task of one file.
const TASK: &str = "# Tasks\n\n## 1. Say goodbye\n\nCreate `bye.sh`:\n\n```sh\necho bye\n```\n";
/// What the state of the team has.
const KEPT: &str = "canary-of-the-state-5d20c7";

/// What whoever plans tries in the folder of its sprint, and whether it comes through; `None` where that says
/// nothing, because the sandbox has a folder of its own at that place.
fn attempts(root: &str, wall: Wall) -> Vec<(Option<bool>, String)> {
    let names = "report.md todo_backlog.md report.json burndown.png .report.md.tmp";
    let bubblewrap = wall == Wall::Bubblewrap;
    // Under Landlock nothing that lies in what may be written can be taken out of it.
    let others = Some(!bubblewrap);
    let outside = if bubblewrap { None } else { Some(false) };
    let tries = [
        (Some(true), format!("for n in {names}; do ln -sfn ../../../.env $n || exit 1; done")),
        (Some(true), "rm -f kickoff.md && mkfifo kickoff.md".to_owned()),
        (Some(true), "ln -sfn ../../../.teams_runtime state".to_owned()),
        (Some(false), format!("ln {root}/shared_workspace/README.md hard.md")),
        (Some(false), format!("ln {root}/.env hard.md")),
        (Some(false), "mknod device$$ c 1 5 && head -c 1 device$$".to_owned()),
        (Some(false), "grep canary ../../../.env report.md state/kept".to_owned()),
        (outside, "echo x > state/mark || echo x > ../../../mark".to_owned()),
        (Some(false), "echo x > ../mark".to_owned()),
        (others, "echo x > todos/mark".to_owned()),
        (others, "mv todos aside$$ && ln -s ../../../.teams_runtime todos".to_owned()),
        // Goes on with it for as long as its agent lives.
        (
            Some(true),
            "(while ln -sfn ../../../.env iteration_log.md; do sleep 0.01; done) > /dev/null 2>&1 &"
                .to_owned(),
        ),
    ];
    let here = format!("cd {root}/shared_workspace/sprints/2*; ");
    tries.map(|(through, tried)| (through, format!("{here}{tried}"))).to_vec()
}

/// The lines of the reports of a role on a command, over all requests.
fn reported(house: &House, role: &str, command: &str) -> Vec<String> {
    let shown: String = format!("`bash -c {command}").chars().take(120).collect();
    let mut lines = Vec::new();
    let requests = house.root().join(".teams_runtime/requests");
    for path in files(&requests).iter().filter(|it| it.to_string_lossy().ends_with("events.jsonl"))
    {
        let text = std::fs::read_to_string(path).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<RequestEvent>(line).unwrap());
        for event in events.filter(|it| it.kind.as_str() == "role_report" && it.actor == role) {
            let said = event.payload["result"]["summary"].as_str().unwrap_or_default();
            lines.extend(said.lines().filter(|it| it.starts_with(&shown)).map(str::to_owned));
        }
    }
    assert!(!lines.is_empty(), "nobody tried {command}");
    lines
}

/// A sprint whose planner means harm.
async fn harmful_sprint(wall: Wall) {
    let mut house = House::built(Plan::script("[]")).await;
    wall.around(&mut house);
    let root = house.root();
    std::fs::write(house.project().join("TASKS.md"), TASK).unwrap();
    git_in(&house.project(), &["add", "TASKS.md"]);
    git_in(&house.project(), &["commit", "-qm", "What is to be done"]);
    let env = format!("OPENAI_API_KEY={MODEL_KEY}\nDEPLOY_PASSWORD={PASSWORD}\n");
    std::fs::write(root.join(".env"), &env).unwrap();
    let state = root.join(".teams_runtime");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("kept"), KEPT).unwrap();
    let tries = attempts(root.to_str().unwrap(), wall);
    let bash = |text: &String| json!(["bash", "-c", text]);
    let commands: Vec<Value> = tries.iter().map(|(_, command)| bash(command)).collect();
    // The planner of the todo looks what its own folder leads to.
    let own = format!(
        "cd {}/shared_workspace/sprints/2*/todos/*/ && echo x > mark; grep -rs canary . kept ../../state/",
        root.display()
    );
    let script = json!([
        {"duty": "planning", "times": 1, "do": "run", "commands": commands},
        {"role": "planner", "contains": "goodbye", "do": "run", "commands": [bash(&own)]},
    ]);
    std::fs::write(root.join("script.yaml"), script.to_string()).unwrap();
    house.start();
    house.reads("startup", "The team is up").await;
    wall.is_used(&house);
    start(&house).await;
    let ended =
        sprint_that(&house, "the sprint ends", |it| !it.closing.report_path.is_empty()).await;
    house.quiet().await;

    assert_eq!(ended.status, SprintStatus::Completed);
    for (through, tried) in &tries {
        for line in reported(&house, "planner", tried) {
            if let Some(through) = through {
                assert_eq!(line.contains(": exit code 0:"), *through, "{line}");
            }
        }
    }
    for line in reported(&house, "planner", &own) {
        assert!(!line.contains(": exit code 0:"), "{line}");
    }
    nothing_went_out(&house, &ended, &env).await;
    house.close().await;
}

/// What the planner pointed at is as it was, and nothing of it has become a document or a message.
async fn nothing_went_out(house: &House, sprint: &Sprint, env: &str) {
    let root = house.root();
    let state = root.join(".teams_runtime");
    assert_eq!(std::fs::read_to_string(root.join(".env")).unwrap(), env);
    assert_eq!(std::fs::read_to_string(state.join("kept")).unwrap(), KEPT);
    let strange = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name == "mark" && !path.starts_with(root.join("shared_workspace"))) || name == "hard.md"
    };
    let found: Vec<PathBuf> = files(&root).into_iter().filter(strange).collect();
    assert_eq!(found, Vec::<PathBuf>::new());
    for todo in &sprint.work.todos {
        let folder = root.join(Path::new(&sprint.closing.report_path).parent().unwrap());
        let plan = folder.join("todos").join(todo.progress.todo_id.as_str()).join("spec.md");
        assert!(plan.symlink_metadata().unwrap().is_file(), "{}", plan.display());
        let below = plan.canonicalize().unwrap();
        assert!(below.starts_with(root.canonicalize().unwrap().join("shared_workspace")));
        assert!(!state.join(todo.progress.todo_id.as_str()).exists());
    }
    let report = root.join(&sprint.closing.report_path);
    assert!(report.symlink_metadata().unwrap().is_file(), "it is a file again");
    let own = [".env", "kept", "script.yaml"];
    for path in files(&root) {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for secret in [MODEL_KEY, PASSWORD, KEPT].iter().filter(|_| !own.contains(&name.as_str())) {
            assert!(!holds(&bytes, secret), "{secret} stands in {}", path.display());
        }
    }
    let mut sent = 0;
    for channel in house.channels().await {
        for (name, bytes) in downloads(house, &channel).await {
            sent += 1;
            for secret in [MODEL_KEY, PASSWORD, KEPT] {
                assert!(!holds(&bytes, secret), "{secret} was sent in {name}");
            }
        }
    }
    assert!(sent > 0, "the report goes out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_that_a_planner_leaves_in_its_sprint_lead_nowhere() {
    harmful_sprint(Wall::Bubblewrap).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_that_a_planner_leaves_lead_nowhere_where_landlock_confines() {
    if let Some(wall) = Wall::landlock() {
        harmful_sprint(wall).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_confines_no_agent_of_a_model_is_begun_and_people_are_told_what_helps() {
    let mut house = House::built(Plan::default()).await;
    let programs = house.beside("programs");
    broken_bubblewrap(&programs);
    let agent = programs.join("codex");
    let mark = house.beside("begun");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec echo codex-cli 0.169.0\ntouch {}\n",
        mark.display()
    );
    std::fs::write(&agent, text).unwrap();
    crate::git_repo::set_mode(&agent, 0o755);
    house.finds_programs_in(programs);
    house.started_by(&without_landlock());
    let agents = format!(
        "{{default: rehearsal, roles: {{developer: codex}}, codex: {{binary: {:?}}}}}",
        agent.display().to_string()
    );
    house.agents(&agents);
    house.start();
    let asked = house.ask(EDIT).await;
    // The rehearsal works, as far as it goes; the agent of a model is not begun.
    let told = house.reads(&asked, "agents cannot be confined on this machine").await;
    for part in ["install bubblewrap", "agents.codex.sandbox: \"off\"", "a person is asked"] {
        assert!(words(&told).contains(part), "{part}: {}", words(&told));
    }
    house.reads("general", "Nothing on this machine confines agents").await;
    house.becomes(&asked, RequestStatus::Blocked).await;
    assert!(!mark.exists(), "it was begun");
    let (_, health, _) = house.teams(&["health"]).await;
    for part in ["none but the rehearsal is started", "Install bubblewrap", "sandbox: \"off\""] {
        assert!(health.contains(part), "{part}: {health}");
    }
    let starter = without_landlock();
    let doctor = tokio::process::Command::new(&starter[0])
        .args(&starter[1..])
        .args([env!("CARGO_BIN_EXE_teams"), "doctor", "--workspace-root"])
        .arg(house.root())
        .env("PATH", house.path())
        .output();
    let told = doctor.await.unwrap();
    let told = String::from_utf8([told.stdout, told.stderr].concat()).unwrap();
    for part in
        ["None but the rehearsal is started", "apt-get install bubblewrap", "sandbox: \"off\""]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    house.close().await;
}
