//! `teams doctor`, as an operator runs it: each failure is made on purpose, named with its fix, and put
//! right where that is safe.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::guild::text;
use crate::support::house::{House, Plan};
use crate::support::yard::{BOT, Came, Yard};

/// A yard that is set up, with a team that would run.
async fn ready() -> Yard {
    let yard = Yard::empty().await;
    yard.teams(&["init"]).await.well();
    yard.invited().await;
    yard.setup(&[], &[]).await.well();
    yard
}

fn problems(came: &Came) -> Vec<Value> {
    came.lines().into_iter().filter(|line| line["result"] == "problem").collect()
}

/// The one problem there is, with its words and what to do about it.
#[track_caller]
fn only(came: &Came, check: &str, said: &str, fix: &str) {
    let found = problems(came);
    assert_eq!(found.len(), 1, "{found:#?}\n{}", came.err);
    assert_eq!(came.code, Some(1));
    assert_eq!(found[0]["check"], check, "{found:#?}");
    assert!(text(&found[0]["text"]).contains(said), "{found:#?}");
    assert!(text(&found[0]["fix"]).contains(fix), "{found:#?}");
}

async fn doctor(yard: &Yard) -> Came {
    yard.teams(&["doctor", "--json"]).await
}

async fn rights(yard: &Yard, order: Value) {
    let mut order = order;
    order["bot"] = json!(BOT);
    yard.owner.ok("POST", "/_local/rights", order).await;
}

#[tokio::test]
async fn each_failure_in_the_server_is_named_with_its_fix() {
    let yard = ready().await;
    assert_eq!(problems(&doctor(&yard).await.well()), Vec::<Value>::new());

    rights(&yard, json!({"take": ["MANAGE_WEBHOOKS"]})).await;
    only(
        &doctor(&yard).await,
        "permissions",
        "lacks Manage Webhooks",
        "/oauth2/authorize?client_id=",
    );
    rights(&yard, json!({"give": ["MANAGE_WEBHOOKS"]})).await;
    // What only setup needs may be taken away.
    rights(&yard, json!({"take": ["MANAGE_CHANNELS", "MANAGE_ROLES"]})).await;
    doctor(&yard).await.well();
    rights(&yard, json!({"give": ["MANAGE_CHANNELS", "MANAGE_ROLES"]})).await;

    rights(&yard, json!({"take": ["SEND_MESSAGES", "EMBED_LINKS"], "channel": "relay"})).await;
    only(
        &doctor(&yard).await,
        "permissions",
        "In #relay the bot lacks Send Messages, Embed Links",
        "#relay, Edit Channel, Permissions",
    );
    rights(&yard, json!({"give": ["SEND_MESSAGES", "EMBED_LINKS"], "channel": "relay"})).await;

    yard.owner.ok("POST", "/_local/flags", json!({"bot": BOT, "flags": 0})).await;
    only(&doctor(&yard).await, "intents", "Message Content", "/bot");
    let fixed = yard.teams(&["doctor", "--fix", "--json"]).await.well();
    assert!(fixed.lines().iter().any(|it| it["result"] == "fixed" && it["check"] == "intents"));

    yard.owner.ok("POST", "/_local/kick", json!({"bot": BOT})).await;
    only(&doctor(&yard).await, "server", "is not in the server", "press Authorize");
    let unfixed = yard.teams(&["doctor", "--fix", "--json"]).await;
    assert_eq!(unfixed.code, Some(1), "inviting is for a person");
    yard.invited().await;
    doctor(&yard).await.well();

    yard.owner.ok("POST", "/_local/faults", json!({"down": true})).await;
    only(&doctor(&yard).await, "token", "does not answer", "network");
    yard.owner.ok("POST", "/_local/faults", json!({"clear": true, "down": false})).await;
    assert!(!yard.said.lock().unwrap().contains(&yard.token));
    yard.running.shutdown().await;
}

#[tokio::test]
async fn what_is_gone_is_made_again_and_named_in_the_configuration() {
    let yard = ready().await;
    let before = yard.picture().await;
    let named = |what: &str, name: &str| {
        let all = before[what].as_array().unwrap();
        all.iter().find(|it| it["name"] == name).unwrap()["id"].clone()
    };
    let remove = async |order: Value| {
        yard.owner.ok("POST", "/_local/remove", order).await;
    };
    remove(json!({"channel": named("channels", "report")})).await;
    remove(json!({"role": named("roles", "planner")})).await;
    remove(json!({"role": named("roles", "approver")})).await;
    remove(json!({"webhook": named("webhooks", "QA")})).await;
    let tokens = yard.root().join(".teams_setup/tokens.env");
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o644)).unwrap();
    let found = doctor(&yard).await;
    let all = problems(&found);
    let checks: Vec<_> = all.iter().map(|it| text(&it["check"])).collect();
    assert_eq!(checks, ["channels", "roles", "roles", "webhooks", "folders"], "{all:#?}");
    assert!(all.iter().all(|it| it["fixable"] == true && text(&it["fix"]).contains("--fix")));

    yard.teams(&["doctor", "--fix"]).await.well();
    let mode = std::fs::metadata(&tokens).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let after = yard.picture().await;
    let id = |what: &str, name: &str| {
        let all = after[what].as_array().unwrap();
        let found: Vec<_> = all.iter().filter(|it| it["name"] == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        text(&found[0]["id"]).to_owned()
    };
    let [discord, runtime] = yard.config();
    assert!(discord.contains(&format!("report_channel_id: \"{}\"", id("channels", "report"))));
    assert!(runtime.contains(&id("roles", "approver")), "{runtime}");
    let gone = named("roles", "approver");
    assert!(!runtime.contains(text(&gone)), "{runtime}");
    assert_eq!(yard.names("webhooks").await.len(), 8);
    // And undo knows all of it.
    yard.teams(&["setup", "--undo", "--yes", "--json"]).await.well();
    assert_eq!(yard.names("channels").await, ["lobby"]);
    yard.running.shutdown().await;
}

#[tokio::test]
async fn each_failure_of_this_machine_is_named_with_its_fix() {
    let mut yard = ready().await;
    let runtime = yard.root().join("team_runtime.yaml");
    let good = std::fs::read_to_string(&runtime).unwrap();

    let other = format!("{}.{}.{}", "M".repeat(24), "G".repeat(6), "k".repeat(38));
    yard.env.insert("TEAMS_DISCORD_TOKEN".to_owned(), other.clone());
    only(
        &doctor(&yard).await,
        "token",
        "does not accept the token from $TEAMS_DISCORD_TOKEN",
        "Reset Token",
    );
    yard.env.clear();

    std::fs::write(&runtime, good.replace("interval_minutes: 180", "interval_minutes: soon"))
        .unwrap();
    only(&doctor(&yard).await, "config", "sprint.interval_minutes", "comments");
    std::fs::write(
        &runtime,
        good.replace("  owner: \"", "  # owner: \"").replace("roles: [\"", "users: [] # [\""),
    )
    .unwrap();
    let came = doctor(&yard).await;
    assert!(!problems(&came).is_empty(), "{}", came.out);
    std::fs::write(&runtime, &good).unwrap();

    let servers = yard.project().join(".mcp.json");
    std::fs::write(&servers, "{}").unwrap();
    doctor(&yard).await.well();
    let hash = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    let pin = format!("{good}\nsandbox: {{project_settings: {{\".mcp.json\": \"{hash}\"}}}}\n");
    std::fs::write(&runtime, pin).unwrap();
    doctor(&yard).await.well();
    std::fs::write(&servers, "{ }").unwrap();
    only(
        &doctor(&yard).await,
        "agent",
        "not what was pinned",
        "project_settings: {\".mcp.json\": \"",
    );
    std::fs::remove_file(&servers).unwrap();
    std::fs::write(&runtime, &good).unwrap();

    let own = yard.root().join("prompts/steps");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("build.md"), "Build.").unwrap();
    only(
        &doctor(&yard).await,
        "config",
        "has that name: prompts/steps/build.md",
        "docs/prompts.md",
    );
    std::fs::rename(own.join("build.md"), own.join("developer_build.md")).unwrap();
    doctor(&yard).await.well();
    std::fs::write(own.join("developer_build.md"), "Build {{ task.reqest }}.").unwrap();
    only(&doctor(&yard).await, "config", "steps/developer_build.md", "or delete it");
    std::fs::remove_dir_all(yard.root().join("prompts")).unwrap();

    let (git, aside) = (yard.project().join(".git"), yard.folder.path().join("git"));
    std::fs::rename(&git, &aside).unwrap();
    only(&doctor(&yard).await, "git", "is not a git repository", "project.path");
    std::fs::rename(&aside, &git).unwrap();
    std::fs::write(git.join("MERGE_HEAD"), format!("{}\n", "0".repeat(40))).unwrap();
    only(&doctor(&yard).await, "git", "merge or rebase is in progress", "project.branch");
    std::fs::remove_file(git.join("MERGE_HEAD")).unwrap();

    // Somebody runs the team: that is well. Somebody of the older runtime does: that is not.
    let folder = yard.root().join(".teams_runtime/agents/planner");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = std::fs::File::create(folder.join("service.lock")).unwrap();
    lock.lock().unwrap();
    only(&doctor(&yard).await, "service", "older runtime", "Stop it first");
    drop(lock);
    doctor(&yard).await.well();

    let empty = yard.folder.path().join("nowhere");
    let root = empty.to_str().unwrap();
    let came = yard.teams(&["doctor", "--json", "--workspace-root", root]).await;
    only(&came, "config", "no workspace here", "teams setup");
    assert!(!yard.said.lock().unwrap().contains(&other));
    yard.running.shutdown().await;
}

#[tokio::test]
async fn an_agents_program_that_is_missing_old_strange_or_logged_out_is_named() {
    let mut yard = ready().await;
    let runtime = yard.root().join("team_runtime.yaml");
    let good = std::fs::read_to_string(&runtime).unwrap();
    let program = yard.folder.path().join("codex");
    let is = |words: &str| {
        std::fs::write(&program, format!("#!/bin/sh\n{words}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let path = program.to_str().unwrap().to_owned();
    let agents = |more: &str| {
        let text =
            good.replace("default: rehearsal", &format!("default: codex\n  codex: {{{more}}}"));
        std::fs::write(&runtime, text).unwrap();
    };
    yard.env.insert("TEAMS_CODEX".to_owned(), path);
    agents("sandbox: off, model_url: \"http://127.0.0.1:9/v1\"");
    only(&doctor(&yard).await, "agent", "not installed", "npm install -g @openai/codex@");
    is("echo codex-cli 0.120.3");
    only(&doctor(&yard).await, "agent", "0.120.3 is too old", "@openai/codex@0.169.0");
    is("echo GNU bash, version 5");
    only(&doctor(&yard).await, "agent", "does not say that it is Codex", "agents.codex.binary");
    is("echo codex-cli 0.175.0");
    let newer = doctor(&yard).await.well();
    assert!(newer.out.contains("newer than the tested"), "{}", newer.out);

    is("[ \"$1\" = login ] && { echo Not logged in >&2; exit 1; }; echo codex-cli 0.169.0");
    agents("sandbox: off");
    only(&doctor(&yard).await, "agent", "no login", "login_home");
    agents("sandbox: off, login_home: codex");
    only(&doctor(&yard).await, "agent", "not logged in", "CODEX_HOME=");
    let home = yard.root().join("codex");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("auth.json"), "a login that nobody shows").unwrap();
    let out = doctor(&yard).await;
    only(&out, "agent", "not logged in", "login");
    is("[ \"$1\" = login ] && { [ -r \"$CODEX_HOME/auth.json\" ]; exit; }; echo codex-cli 0.169.0");
    let well = doctor(&yard).await.well();
    assert!(well.out.contains("says that it is logged in"), "{}", well.out);
    assert!(!yard.said.lock().unwrap().contains("nobody shows"));
    yard.running.shutdown().await;
}

#[tokio::test]
async fn claude_code_that_is_missing_old_strange_or_logged_out_is_named() {
    let mut yard = ready().await;
    let runtime = yard.root().join("team_runtime.yaml");
    let good = std::fs::read_to_string(&runtime).unwrap();
    let program = yard.folder.path().join("claude");
    let is = |words: &str| script(&program, words);
    let agents = |more: &str| {
        let text =
            good.replace("default: rehearsal", &format!("default: claude\n  claude: {{{more}}}"));
        std::fs::write(&runtime, text).unwrap();
    };
    yard.env.insert("TEAMS_CLAUDE".to_owned(), program.to_str().unwrap().to_owned());
    agents("sandbox: off, model_url: \"http://127.0.0.1:9\"");
    let install = "npm install -g @anthropic-ai/claude-code@2.1.329";
    only(&doctor(&yard).await, "agent", "Claude Code is not installed", install);
    is("echo '2.1.197 (Claude Code)'");
    only(&doctor(&yard).await, "agent", "2.1.197 is too old", install);
    is("echo codex-cli 0.169.0");
    only(&doctor(&yard).await, "agent", "does not say that it is Claude", "agents.claude.binary");
    is("echo '2.3.0 (Claude Code)'");
    let newer = doctor(&yard).await.well();
    assert!(newer.out.contains("newer than the tested"), "{}", newer.out);

    let status = r#"if [ "$2 $3" = "auth status" ]; then
  if [ -e "$CLAUDE_CONFIG_DIR/in" ]; then echo '{"loggedIn": true}'; exit; fi
  echo '{"loggedIn": false}'; exit 1
fi
echo '2.1.329 (Claude Code)'"#;
    is(status);
    agents("sandbox: off");
    only(&doctor(&yard).await, "agent", "no login", "login_home: claude");
    agents("sandbox: off, login_home: claude");
    only(&doctor(&yard).await, "agent", "not logged in", "CLAUDE_CONFIG_DIR=");
    let home = yard.root().join("claude");
    std::fs::create_dir(&home).unwrap();
    only(&doctor(&yard).await, "agent", "not logged in", "auth login");
    std::fs::write(home.join("in"), "").unwrap();
    let well = doctor(&yard).await.well();
    assert!(well.out.contains("Claude Code says that it is logged in"), "{}", well.out);
    is("[ \"$2\" = auth ] && exit 2; echo '2.1.329 (Claude Code)'");
    let unknown = doctor(&yard).await.well();
    assert!(unknown.out.contains("does not say whether"), "{}", unknown.out);
    yard.running.shutdown().await;
}

#[tokio::test]
async fn an_acp_agent_that_is_missing_old_strange_or_of_another_version_is_named() {
    let yard = ready().await;
    let runtime = yard.root().join("team_runtime.yaml");
    let good = std::fs::read_to_string(&runtime).unwrap();
    let program = yard.folder.path().join("agent");
    let agents = |more: &str| {
        let acp = format!(
            "default: acp\n  acp: {{command: [{}, acp], sandbox: off{more}}}",
            json!(program.to_str().unwrap())
        );
        std::fs::write(&runtime, good.replace("default: rehearsal", &acp)).unwrap();
    };
    agents("");
    only(&doctor(&yard).await, "agent", "is not installed", "agents.acp.command");
    script(&program, "echo usage: agent COMMAND >&2; exit 2");
    only(&doctor(&yard).await, "agent", "usage: agent COMMAND", "gemini --acp");
    // Greeted once, it stays until it is ended, with whatever it began.
    let answers = |result: Value| {
        let line = json!({"jsonrpc": "2.0", "id": 0, "result": result});
        script(
            &program,
            &format!("read greeting\necho noise\necho '{line}'\nsetsid sleep 1000 &\nsleep 1000"),
        );
    };
    let info = |name: &str, version: &str| {
        json!({"protocolVersion": 1, "agentInfo": {"name": name, "version": version},
            "authMethods": [{"id": "key", "name": "API key"}]})
    };
    answers(json!({"protocolVersion": 2}));
    only(&doctor(&yard).await, "agent", "speaks version 2", "speaks 1");
    answers(info("@agentclientprotocol/codex-acp", "2.5.1"));
    only(&doctor(&yard).await, "agent", "2.5.1 is too old", "@agentclientprotocol/codex-acp@2.6.0");
    answers(info("somebody", "7.0"));
    let well = doctor(&yard).await.well();
    assert!(well.out.contains("somebody 7.0 answers"), "{}", well.out);
    assert!(
        well.out.contains("only at work whether it is logged in. Its ways: API key"),
        "{}",
        well.out
    );
    agents(", login_home: agent-home");
    only(&doctor(&yard).await, "agent", "has no login", "HOME=");
    assert_eq!(crate::scenarios::left_in(yard.folder.path()), Vec::<String>::new());
    yard.running.shutdown().await;
}

#[tokio::test]
async fn the_real_agents_are_recognised() {
    let (Some(claude), Some((acp, codex))) = (crate::claude::claude(), crate::acp::codex_acp())
    else {
        return;
    };
    let mut yard = ready().await;
    let runtime = yard.root().join("team_runtime.yaml");
    let good = std::fs::read_to_string(&runtime).unwrap();
    yard.env.insert("TEAMS_CLAUDE".to_owned(), claude.to_str().unwrap().to_owned());
    let agents = |more: &str| {
        let text = format!(
            "default: acp\n  roles: {{developer: claude}}\n  \
             acp: {{command: [node, {}], env: {{CODEX_PATH: {}}}, sandbox: off}}\n  \
             claude: {{sandbox: off{more}}}",
            json!(acp.to_str().unwrap()),
            json!(codex.to_str().unwrap()),
        );
        std::fs::write(&runtime, good.replace("default: rehearsal", &text)).unwrap();
    };
    agents(", login_home: claude");
    let home = yard.root().join("claude");
    std::fs::create_dir(&home).unwrap();
    let came = doctor(&yard).await;
    only(&came, "agent", "Claude Code is not logged in", "auth login");
    assert!(came.out.contains("Claude Code 2.1.329 is there"), "{}", came.out);
    assert!(came.out.contains("codex-acp 2.6.0 is there"), "{}", came.out);
    yard.running.shutdown().await;
}

fn script(program: &std::path::Path, words: &str) {
    std::fs::write(program, format!("#!/bin/sh\n{words}\n")).unwrap();
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_bot_a_role_is_checked_bot_by_bot_while_the_team_runs() {
    let house = House::open(Plan { bots: true, ..Plan::default() }).await;
    house.reads("startup", "The team is up").await;
    let (_, out, err) = house.teams(&["doctor", "--json"]).await;
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |check: &str, result: &str| {
        lines.iter().filter(|it| it["check"] == check && it["result"] == result).count()
    };
    assert_eq!(of("token", "ok"), 7, "{out}{err}");
    assert_eq!((of("service", "ok"), of("webhooks", "not_needed")), (1, 1), "{out}");
    assert!(lines.iter().all(|it| it["result"] != "problem"), "{out}");
    // The same bots from another workspace of this machine.
    let other = house.beside("other");
    std::fs::create_dir(&other).unwrap();
    for name in ["discord_agents_config.yaml", "team_runtime.yaml"] {
        std::fs::copy(house.root().join(name), other.join(name)).unwrap();
    }
    let (_, out, _) = house.elsewhere(&other, &["doctor"]).await;
    assert!(out.contains("connected from another workspace"), "{out}");
    let order = json!({"bot": "qa", "take": ["ADD_REACTIONS"], "channel": "relay"});
    house.owner.ok("POST", "/_local/rights", order).await;
    let (code, out, _) = house.teams(&["doctor"]).await;
    assert!(code == 1 && out.contains("qa: In #relay the bot lacks Add Reactions"), "{out}");
    house.close().await;
}

/// What a check is started with is looked for as the check will find it.
#[tokio::test]
async fn programs_that_checks_and_actions_cannot_find_are_named() {
    let yard = ready().await;
    let path = yard.root().join("team_runtime.yaml");
    let before = std::fs::read_to_string(&path).unwrap();
    let put = |name: &str, text: &str, mode: u32| {
        let path = yard.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    put(".gitignore", ".venv/\nteams_generated/\n", 0o644);
    put("run.sh", "#!/bin/sh\n", 0o755);
    put("text.sh", "#!/bin/sh\n", 0o644);
    let repository = git2::Repository::open(yard.project()).unwrap();
    let mut index = repository.index().unwrap();
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let who = git2::Signature::now("Mina", "mina@example.com").unwrap();
    let head = repository.head().unwrap().peel_to_commit().unwrap();
    repository.commit(Some("HEAD"), &who, &who, "Scripts", &tree, &[&head]).unwrap();
    put(".venv/bin/pytest", "#!/bin/sh\n", 0o755);
    put("new.sh", "#!/bin/sh\n", 0o755);

    let with = async |lines: &str| {
        let kept: Vec<&str> = before
            .lines()
            .filter(|it| !it.starts_with("checks:") && !it.starts_with("actions:"))
            .collect();
        std::fs::write(&path, format!("{}\n{lines}\n", kept.join("\n"))).unwrap();
        doctor(&yard).await
    };
    let check = |program: &str| format!("checks: [{{name: tests, command: [\"{program}\", x]}}]");
    for (program, said, fix) in [
        ("no-such-program", "no folder of PATH has no-such-program", "Install it"),
        ("./gone.sh", "there is no ./gone.sh", "Correct `checks`"),
        (".venv/bin/pytest", "git ignores .venv/bin/pytest", "Correct `checks`"),
        ("./new.sh", "./new.sh is not committed", "Commit it"),
        ("./text.sh", "./text.sh may not be executed", "--chmod=+x"),
        ("/no/such", "there is no /no/such", "Correct `checks`"),
    ] {
        only(&with(&check(program)).await, "programs", said, fix);
    }
    for program in ["sh", "./run.sh", "/bin/sh"] {
        with(&check(program)).await.well();
    }
    let action = "actions: {deploy: {command: [./deploy.sh]}}";
    only(&with(action).await, "programs", "The action deploy cannot start", "Correct `actions`");
    with("actions: {deploy: {command: [sh, -c, x]}, any: {command: [\"{tool}\"], allowed_params: [tool]}}")
        .await
        .well();
    yard.running.shutdown().await;
}

/// One file system, one line: what mends it mends every folder on it.
#[tokio::test]
async fn a_read_only_file_system_is_one_problem() {
    let folder = tempfile::tempdir().unwrap();
    let (project, root) =
        (folder.path().join("project"), folder.path().join("project/teams_generated"));
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join("a.txt"), "a").unwrap();
    teams::git::create::create(&project, "main", "A").unwrap();
    teams::workspace::init::init(&root, &teams::workspace::init::Options::default()).unwrap();
    let output = tokio::process::Command::new("bwrap")
        .args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"])
        .arg("--ro-bind")
        .args([folder.path(), folder.path()])
        .arg(env!("CARGO_BIN_EXE_teams"))
        .args(["doctor", "--json", "--workspace-root"])
        .arg(&root)
        .output()
        .await
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let closed = |it: &&Value| it["check"] == "folders" && it["result"] == "problem";
    let folders: Vec<&Value> = lines.iter().filter(closed).collect();
    assert_eq!(folders.len(), 1, "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text(&folders[0]["text"]).contains("takes no writes"), "{out}");
    assert!(!text(&folders[0]["fix"]).contains("chown"), "{out}");
}
