//! The ways to sprints and the backlog: command line, slash commands with their form, and the tools of an
//! agent's run.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use teams::domain::item::ItemSource;

use crate::support::house::{House, Plan, teams, words};

/// What the owner was told by the team and nobody else saw.
fn answers(house: &House) -> Vec<String> {
    let told = house.told("owner");
    let mine = told.iter().filter(|it| it["d"]["flags"].as_u64().unwrap_or(0) & 64 != 0);
    mine.map(|it| words(&it["d"])).filter(|text| !text.is_empty()).collect()
}

async fn answered(house: &House, part: &str) {
    house
        .until(part, async |house: &House| {
            answers(house).iter().any(|text| text.contains(part)).then_some(())
        })
        .await;
}

fn sub(name: &str, options: Value) -> Value {
    json!([{"name": name, "type": 1, "options": options}])
}

async fn slash(house: &House, command: &str, options: Value) {
    let body = json!({"channel": "general", "command": command, "options": options});
    house.owner.ok("POST", "/_local/slash", body).await;
}

#[tokio::test]
async fn the_command_line_names_what_is_wrong_and_reads_without_a_team() {
    let mut house = House::open(Plan::default()).await;
    house.reads("startup", "The team is up").await;
    let (code, _, error) = house.teams(&["sprint", "start"]).await;
    assert_eq!(code, 2, "{error}");
    let (code, _, error) = house.teams(&["sprint", "start", "--milestone", "  "]).await;
    assert_eq!(code, 2);
    assert!(error.contains("--milestone is blank"), "{error}");
    let wrong = ["sprint", "start", "--milestone", "x", "--artifact", "no/such.md"];
    let (code, _, error) = house.teams(&wrong).await;
    assert_eq!(code, 1);
    assert!(error.contains("--artifact no/such.md: there is no such file"), "{error}");
    let (code, _, error) =
        house.teams(&["sprint", "start", "--milestone", "x", "--artifact", "/"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("not a file"), "{error}");
    let (code, _, error) = house.teams(&["backlog", "add", "--title", " "]).await;
    assert_eq!((code, error.contains("--title is blank")), (2, true), "{error}");
    let (code, _, error) = house.teams(&["backlog", "add", "--title", "x", "--kind", "wish"]).await;
    assert_eq!((code, error.contains("bug, feature, enhancement, chore")), (2, true), "{error}");
    let (code, _, error) = house.teams(&["backlog", "add", "--title", "x", "--rank", "-1"]).await;
    assert_eq!(code, 2, "{error}");
    let (code, _, error) = house.teams(&["backlog", "set", "backlog-20260324-1a2b3c4d"]).await;
    assert_eq!((code, error.contains("nothing to change")), (2, true), "{error}");
    let items = house.beside("items.json");
    std::fs::write(&items, "{").unwrap();
    let merge = ["backlog", "merge", "--input-file", items.to_str().unwrap()];
    let (code, _, error) = house.teams(&merge).await;
    assert_eq!((code, error.contains("items.json is not JSON")), (1, true), "{error}");
    house.quiet().await;
    house.stop().await;

    // Without a team there is nobody to change anything, and everything can be read.
    let (code, _, error) = house.teams(&["sprint", "stop"]).await;
    assert_eq!((code, error.contains("teams run")), (1, true), "{error}");
    // Row C20.
    let (code, _, error) = house.teams(&["sprint", "status"]).await;
    assert_eq!((code, error.contains("no sprint record found")), (1, true), "{error}");
    let (code, text, _) = house.teams(&["status", "--backlog"]).await;
    assert_eq!(code, 0);
    let none = "backlog_pending=0 backlog_selected=0 backlog_blocked=0 backlog_done=0 \
                backlog_carried_over=0";
    assert_eq!(text.trim(), none);
    let (code, text, _) = house.teams(&["list"]).await;
    assert_eq!(code, 0);
    assert!(text.contains("planner: status=stopped sprint_id=N/A"), "{text}");
    assert!(text.contains("active_sprint_id="), "{text}");
    house.start();
    house.close().await;
}

#[tokio::test]
async fn slash_commands_show_change_and_open_a_form_with_files() {
    let house = House::open(Plan::default()).await;
    house.reads("startup", "The team is up").await;
    house
        .until("the commands are there", async |house: &House| {
            let state = house.owner.ok("GET", "/_local/state", Value::Null).await;
            let commands = state["commands"].as_array()?.clone();
            commands.iter().any(|it| it["name"] == "backlog").then_some(())
        })
        .await;
    slash(&house, "sprint", sub("status", json!([]))).await;
    answered(&house, "No sprint is running").await;
    slash(&house, "backlog", sub("list", json!([]))).await;
    answered(&house, "Nothing is waiting").await;

    // A stranger is told no, and sees nothing.
    let body =
        json!({"channel": "general", "command": "sprint", "options": sub("status", json!([]))});
    house.guest.ok("POST", "/_local/slash", body).await;
    house
        .until("the guest is told no", async |house: &House| {
            let told = house.told("guest");
            told.iter().any(|it| words(&it["d"]).contains("You may not ask")).then_some(())
        })
        .await;

    // The form comes instead of an answer; its file is kept while it is filled in.
    let upload = house.owner.request("POST", "/_local/upload?filename=brief.md").body("the brief");
    let file: Value = upload.send().await.unwrap().json().await.unwrap();
    let option = json!([{"name": "file", "type": 11, "value": file["id"]}]);
    slash(&house, "sprint", sub("start", option)).await;
    let form = house
        .until("the form", async |house: &House| {
            house.told("owner").into_iter().find(|it| it["t"] == "DIALOG").map(|it| it["d"].clone())
        })
        .await;
    let custom_id = form["data"]["custom_id"].as_str().unwrap();
    assert!(custom_id.contains(file["id"].as_str().unwrap()), "{custom_id}");
    let kept = house
        .root()
        .join(format!("shared_workspace/attachments/{}_brief.md", file["id"].as_str().unwrap()));
    let values =
        json!({"milestone": "Greet in Korean", "brief": "", "requirements": "- 안녕하세요"});
    let filled = json!({"interaction": form["id"], "custom_id": custom_id, "values": values});
    house.owner.ok("POST", "/_local/modal", filled).await;
    answered(&house, "begins: **Greet in Korean**").await;
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "the brief");

    // The kickoff is what was filled in; a second sprint has to wait; this one ends when told to.
    let state = house.state().unwrap();
    let sprint = state.sprints.values().next().unwrap();
    assert_eq!(sprint.kickoff.milestone, "Greet in Korean");
    assert_eq!(sprint.kickoff.requirements, ["안녕하세요"]);
    assert!(sprint.kickoff.request_text.starts_with("start sprint\nmilestone: Greet in Korean"));
    // Its file lies in the sprint's own folder when the sprint goes on.
    let moved = house
        .until("the file lies in the sprint's folder", async |house: &House| {
            let state = house.state()?;
            let sprint = state.sprints.values().next()?;
            let path = sprint.kickoff.artifacts.first()?.clone();
            path.starts_with(&format!("{}/attachments/", sprint.sprint_folder)).then_some(path)
        })
        .await;
    assert_eq!(std::fs::read_to_string(house.root().join(moved)).unwrap(), "the brief");
    let (code, _, error) = house.teams(&["sprint", "start", "--milestone", "another"]).await;
    assert_eq!((code, error.contains(sprint.sprint_id.as_str())), (1, true), "{error}");
    let (code, text, _) = house.teams(&["sprint", "status"]).await;
    assert_eq!(code, 0);
    assert!(text.starts_with("view=active\nsprint_id="), "{text}");
    assert!(text.contains("\nmilestone_title=Greet in Korean\n"), "{text}");
    let now = json!([{"name": "now", "type": 5, "value": true}]);
    slash(&house, "sprint", sub("stop", now)).await;
    answered(&house, "will end").await;
    house
        .until("the slot is free", async |house: &House| {
            house.state()?.scheduler.active_sprint_id.is_none().then_some(())
        })
        .await;
    // What was typed does not go with files that are not there.
    let values = json!({"milestone": "x", "brief": "", "requirements": ""});
    let filled =
        json!({"interaction": form["id"], "custom_id": "k:1,2", "values": values, "forged": true});
    house.owner.ok("POST", "/_local/modal", filled).await;
    answered(&house, "2 files could not be kept; the sprint begins without them").await;
    house.close().await;
}

/// A program that passes for Codex: it tries its tools, writes down what they say, says so through one
/// pipe, waits at another, and ends without an answer.
fn tool_user(house: &House, script: &str) -> String {
    let (path, tools) = (house.beside("tool-user"), house.beside("tools"));
    std::fs::create_dir(&tools).unwrap();
    for pipe in ["tried", "gate"] {
        let made = std::process::Command::new("mkfifo").arg(tools.join(pipe)).status().unwrap();
        assert!(made.success());
    }
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo codex-cli 1.0.0; exit 0; }}\n\
         cat > /dev/null\ncd {}\nteams() {{ {} \"$@\"; }}\n{script}\n\
         ls -la \"$TEAMS_RUN_SOCKET\" > socket\necho \"$TEAMS_RUN_SOCKET\" > path\n\
         echo yes > tried\nread word < gate\n",
        tools.display(),
        env!("CARGO_BIN_EXE_teams"),
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Blocks on a pipe, off the async threads, for no longer than a failure takes.
async fn at_pipe<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let work = tokio::task::spawn_blocking(work);
    tokio::time::timeout(Duration::from_secs(240), work).await.expect("the agent comes").unwrap()
}

#[tokio::test]
async fn an_agent_has_the_tools_of_its_role_and_nothing_else() {
    // What it adds to the backlog begins no sprint by itself.
    let sprint = "start_mode: manual_daily".to_owned();
    let mut house = House::built(Plan { sprint, ..Plan::default() }).await;
    let script = "teams backlog add --title 'Say goodbye' --json > add 2>&1; echo $? >> add\n\
                  teams sprint stop > stop 2>&1; echo $? >> stop\n\
                  teams request cancel 20260324-1a2b3c4d > cancel 2>&1; echo $? >> cancel";
    let planner = tool_user(&house, script);
    house.agents(&format!(
        // What it tried is written down outside of any sandbox.
        "{{default: rehearsal, roles: {{planner: codex}}, codex: {{binary: {planner}, sandbox: \"off\"}}}}"
    ));
    house.start();
    let asked = house.ask("make a plan for greeting").await;
    let out = |name: &str| house.beside("tools").join(name);
    let tried = out("tried");
    at_pipe(move || std::fs::read_to_string(tried).unwrap()).await;
    let read = |name: &str| std::fs::read_to_string(out(name)).unwrap();
    let add = read("add");
    assert!(add.starts_with("{\"added\":1,") && add.trim_end().ends_with('0'), "{add}");
    let state = house.state().unwrap();
    let item = state.backlog.values().next().unwrap();
    assert_eq!((item.title.as_str(), item.source), ("Say goodbye", ItemSource::Planner));
    let stop = read("stop");
    assert!(
        stop.contains("`sprint stop` is for people") && stop.trim_end().ends_with('1'),
        "{stop}"
    );
    let cancel = read("cancel");
    assert!(cancel.contains("`cancel` is for people"), "{cancel}");
    assert!(read("socket").starts_with("srw-------"), "{}", read("socket"));

    // Whoever else finds the socket is not of that run, though it is the same user.
    let path = read("path").trim().to_owned();
    let env = [("TEAMS_RUN_SOCKET".to_owned(), path.clone())].into();
    let (code, _, error) = teams(&["backlog", "add", "--title", "mine"], &env).await;
    assert_eq!((code, error.contains("the tools of another run")), (1, true), "{error}");

    let request =
        house.request(&asked, "the planner works", |it| it.work.active_run.is_some()).await;
    house.teams(&["request", "cancel", request.request_id.as_str()]).await;
    house.quiet().await;
    assert!(!std::path::Path::new(&path).exists(), "{path}");
    house.close().await;
}

#[tokio::test]
async fn a_plan_is_dropped_and_its_faults_are_told_with_their_lines() {
    let house = House::open(Plan::default()).await;
    house.reads("startup", "The team is up").await;
    house
        .until("the commands are there", async |house: &House| {
            let state = house.owner.ok("GET", "/_local/state", Value::Null).await;
            state["commands"].as_array()?.iter().any(|it| it["name"] == "plan").then_some(())
        })
        .await;
    let drop = async |text: &str, approve: Option<&str>| {
        let upload = house.owner.request("POST", "/_local/upload?filename=letters.md");
        let file: Value = upload.body(text.to_owned()).send().await.unwrap().json().await.unwrap();
        let mut options = vec![json!({"name": "file", "type": 11, "value": file["id"]})];
        options.extend(approve.map(|it| json!({"name": "approve", "type": 3, "value": it})));
        slash(&house, "plan", sub("import", json!(options))).await;
    };
    drop("# Letters\n\n## EPIC-001: Write\n", None).await;
    answered(&house, "line 3: EPIC-001 has no criterion").await;
    let plan = "# Letters\n\n## EPIC-001: Write\n#### Acceptance Criteria\n- `a` is there\n";
    drop(plan, None).await;
    answered(&house, "is in the backlog").await;
    drop(&format!("{plan}- `b` is there\n"), None).await;
    answered(&house, "Nothing was changed yet").await;
    let stored = |house: &House| house.state().unwrap().plans.values().next().unwrap().clone();
    assert_eq!(stored(&house).version, 1);
    let mut newer = stored(&house).plan.clone();
    newer.items[0].criteria.push("`b` is there".into());
    let approval = stored(&house).approval_of(&newer.digest());
    drop(&format!("{plan}- `b` is there\n"), Some(&approval[..12])).await;
    house
        .until("the newer version is taken in", async |house: &House| {
            (stored(house).version == 2).then_some(())
        })
        .await;
    house.close().await;
}
