//! `teams setup`, as an operator runs it, against the local guild.

use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;

use serde_json::{Value, json};
use teams::domain::role::Role;

use crate::git_repo::git_in;
use crate::support::guild::{Caller, fresh, text};
use crate::support::house::EDIT;
use crate::support::terminal::typed;
use crate::support::whole::{Feed, words};
use crate::support::yard::{PATIENCE, Yard};

/// Everything that setup makes in an empty server.
const CHANNELS: [&str; 6] = ["Teams", "general", "lobby", "relay", "report", "startup"];
const HOOKS: [&str; 8] =
    ["Architect", "Designer", "Developer", "Orchestrator", "Planner", "QA", "Research", "Team"];

fn result<'a>(lines: &'a [Value], step: &str) -> &'a str {
    let found = lines.iter().rfind(|line| line["step"] == step);
    text(&found.unwrap_or_else(|| panic!("no {step} in {lines:#?}"))["result"])
}

/// The team that was set up runs with nothing in its environment, and its owner is answered by that bot.
async fn is_answered(yard: &Yard, bot: &str) {
    runs(yard, bot, false).await;
}

/// The same, and a role speaks under its name.
async fn is_answered_by_roles(yard: &Yard) {
    runs(yard, &yard.bot, true).await;
}

async fn runs(yard: &Yard, bot: &str, roles_speak: bool) {
    let mut feed = Feed::open(&yard.running.info).await;
    let mut team = yard
        .command(&["run", "--quiet", "--parent-pipe"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let content = format!("<@{bot}> which tasks are left?");
    let asked = yard
        .owner
        .ok("POST", "/_local/say", json!({"channel": "general", "content": content}))
        .await;
    let answer = feed.until(|message| {
        message["message_reference"]["message_id"] == asked["id"] && words(message).contains("task")
    });
    let answer = tokio::time::timeout(PATIENCE, answer).await.expect("an answer comes");
    assert_eq!(answer["author"]["id"], bot);
    if roles_speak {
        // By a webhook, or through the bot with the name in the text.
        let content = format!("<@{bot}> {EDIT}");
        let body = json!({"channel": "general", "content": content});
        yard.owner.ok("POST", "/_local/say", body).await;
        let spoken = feed.until(|message| {
            message["author"]["username"] == "Orchestrator"
                || words(message).starts_with("**Orchestrator**")
        });
        tokio::time::timeout(PATIENCE, spoken).await.expect("a role speaks");
    }
    drop(team.stdin.take());
    assert!(team.wait().await.unwrap().success());
}

#[tokio::test]
async fn from_a_token_to_an_answer_with_one_click() {
    let yard = Yard::empty().await;
    let lines = yard.setup_with_a_click().await;
    let waited = lines.iter().find(|line| line["result"] == "waiting").unwrap();
    assert!(text(&waited["link"]).contains("permissions=2252109856754768"), "{waited}");
    for step in ["intents", "category", "channel", "role", "webhook", "config"] {
        assert_eq!(result(&lines, step), "done", "{step}");
    }
    assert_eq!(result(&lines, "ready"), "kept");
    assert_eq!(yard.names("channels").await, CHANNELS);
    assert_eq!(yard.names("webhooks").await, HOOKS);

    is_answered_by_roles(&yard).await;
    assert_eq!(
        yard.names("webhooks").await,
        HOOKS,
        "the team speaks through those that setup made"
    );

    // Nobody was told the token, and one file has it.
    let doctor = yard.teams(&["doctor"]).await.well();
    assert!(doctor.out.contains("Everything is as it should be"), "{}", doctor.out);
    assert!(!yard.said.lock().unwrap().contains(&yard.token));
    assert_eq!(yard.files_with_the_token(), ["teams_generated/.teams_setup/tokens.env"]);
    let repository = git2::Repository::open(yard.project()).unwrap();
    assert!(repository.statuses(None).unwrap().iter().all(|it| it.status().is_ignored()));
    yard.running.shutdown().await;
}

/// Another team's webhooks in #general, and that many of them.
async fn others(yard: &Yard, count: usize) {
    let teams = Caller::bot(&yard.running.info, "teams");
    let guild = format!("/guilds/{}/channels", yard.running.info.guild_id);
    let general = teams.ok("POST", &guild, json!({"name": "general"})).await;
    let path = format!("/channels/{}/webhooks", text(&general["id"]));
    for number in 0..count {
        teams.ok("POST", &path, json!({"name": format!("theirs {number}")})).await;
    }
}

#[tokio::test]
async fn a_second_team_gets_along_with_the_webhooks_that_are_free() {
    for (taken, says) in [(14, "share one"), (15, "speak through the bot")] {
        let yard = Yard::empty().await;
        others(&yard, taken).await;
        yard.invited().await;
        let lines = yard.setup(&[], &[]).await.well().lines();
        let voices = |result: &str| {
            let all = lines.iter().filter(|it| it["step"] == "webhook" && it["result"] == result);
            all.count()
        };
        assert_eq!((voices("done"), voices("open")), (15 - taken, 8 - (15 - taken)), "{lines:#?}");
        assert_eq!(result(&lines, "ready"), "kept");
        is_answered_by_roles(&yard).await;
        assert_eq!(yard.names("webhooks").await.len(), 15);
        let doctor = yard.teams(&["doctor"]).await.well();
        assert!(doctor.out.contains(says), "{}", doctor.out);
        yard.running.shutdown().await;
    }
}

#[tokio::test]
async fn voices_are_used_however_their_names_are_written() {
    let yard = Yard::empty().await;
    others(&yard, 0).await;
    yard.invited().await;
    let made = Caller::token(&yard.running.info, &yard.token);
    let channels = &yard.picture().await["channels"];
    let general = channels.as_array().unwrap().iter().find(|it| it["name"] == "general").unwrap();
    let path = format!("/channels/{}/webhooks", text(&general["id"]));
    let names = ["ORCHESTRATOR", "research", "planner", "designer", "architect", "developer", "qa"];
    for name in names {
        made.ok("POST", &path, json!({"name": name})).await;
    }
    made.ok("POST", &path, json!({"name": "team"})).await;
    let lines = yard.setup(&[], &[]).await.well().lines();
    assert!(
        !lines.iter().any(|it| it["step"] == "webhook" && it["result"] != "kept"),
        "{lines:#?}"
    );
    is_answered_by_roles(&yard).await;
    assert_eq!(yard.names("webhooks").await.len(), 8);
    yard.running.shutdown().await;
}

#[tokio::test]
async fn a_refused_picture_or_voice_costs_only_itself_and_is_named() {
    let yard = Yard::empty().await;
    yard.invited().await;
    let refused = json!({"rest": [{
        "method": "POST", "path_contains": "/webhooks", "status": 400, "code": 50035, "times": 3,
    }]});
    yard.owner.ok("POST", "/_local/faults", refused).await;
    let lines = yard.setup(&[], &[]).await.well().lines();
    let open: Vec<&str> = lines
        .iter()
        .filter(|it| it["step"] == "webhook" && it["result"] == "open")
        .map(|it| text(&it["name"]))
        .collect();
    assert_eq!(open, ["Orchestrator"], "neither with a picture nor without");
    assert_eq!(yard.names("webhooks").await.len(), 7);
    let doctor = yard.teams(&["doctor"]).await.well();
    assert!(doctor.out.contains("without one: Research"), "{}", doctor.out);
    is_answered_by_roles(&yard).await;
    yard.running.shutdown().await;
}

#[tokio::test]
async fn what_is_known_is_written_down_although_setup_breaks_off_and_is_undone_at_another_server() {
    let yard = Yard::empty().await;
    yard.teams(&["init"]).await.well();
    yard.invited().await;
    let (server, config) = (yard.picture().await, yard.config());
    let broken = json!({"rest": [
        {"method": "POST", "path_contains": "/roles", "status": 500, "times": 1_000},
    ]});
    yard.owner.ok("POST", "/_local/faults", broken).await;
    let stopped = yard.setup(&[], &[]).await;
    assert_eq!(stopped.code, Some(1), "{}", stopped.out);
    let picture = yard.picture().await;
    let id = |name: &str| {
        let all = picture["channels"].as_array().unwrap();
        text(&all.iter().find(|it| it["name"] == name).unwrap()["id"]).to_owned()
    };
    let [discord, _] = yard.config();
    for known in [&yard.running.info.guild_id, &id("relay"), &id("startup"), &id("report")] {
        assert!(discord.contains(known.as_str()), "{known} in {discord}");
    }
    yard.owner.ok("POST", "/_local/faults", json!({"clear": true})).await;
    let base = yard.running.info.base_url.clone();
    yard.teams(&["setup", "--undo", "--yes", "--base-url", &base]).await.well();
    assert_eq!((yard.picture().await, yard.config()), (server, config));
    yard.running.shutdown().await;
}

#[tokio::test]
async fn a_second_setup_changes_nothing_and_undo_takes_all_of_it_back() {
    let yard = Yard::empty().await;
    yard.teams(&["init"]).await.well();
    yard.invited().await;
    let (server, config) = (yard.picture().await, yard.config());
    yard.setup(&[], &[]).await.well();
    let (made, written) = (yard.picture().await, yard.config());
    assert_ne!(server, made);
    let journal = std::fs::read(yard.root().join(".teams_setup/made.json")).unwrap();
    let lines = yard.teams(&["setup", "--json"]).await.well().lines();
    assert!(lines.iter().all(|line| line["result"] == "kept"), "{lines:#?}");
    assert_eq!((yard.picture().await, yard.config()), (made, written));
    let again = std::fs::read(yard.root().join(".teams_setup/made.json")).unwrap();
    assert_eq!(journal, again);

    // What a workspace says already is not overwritten, and nobody is left to think that it was.
    let other = yard.teams(&["setup", "--agent", "codex"]).await;
    assert_eq!((other.code, other.err.contains("set `agents`")), (Some(2), true), "{}", other.err);
    let other = yard.teams(&["init", "--language", "ko"]).await;
    assert_eq!(
        (other.code, other.err.contains("set `language`")),
        (Some(2), true),
        "{}",
        other.err
    );
    let planned = yard.teams(&["setup", "--undo", "--dry-run", "--json"]).await.well().lines();
    assert!(planned.iter().all(|line| line["result"] == "planned"), "{planned:?}");
    let is_at = |line: &&Value, steps: &[&str]| steps.iter().any(|step| line["step"] == *step);
    let beside: Vec<&Value> =
        planned.iter().filter(|it| is_at(it, &["intents", "config", "token"])).collect();
    // The settings of both files, the token and the intent, beside what is in the server.
    assert_eq!((planned.len() - beside.len(), beside.len()), (21, 4), "{planned:?}");
    // Somebody else's things of the same name are not touched, and what is gone already is fine.
    let teams = Caller::bot(&yard.running.info, "teams");
    let path = format!("/guilds/{}/channels", yard.running.info.guild_id);
    let other = teams.ok("POST", &path, json!({"name": "relay"})).await;
    let hook = &yard.picture().await["webhooks"][0]["id"];
    yard.owner.ok("POST", "/_local/remove", json!({"webhook": hook})).await;
    // Channels go with what was written in them, so nobody's silence is a yes.
    let unasked = yard.teams(&["setup", "--undo"]).await;
    assert!(unasked.err.contains("--undo --yes"), "{}", unasked.err);
    yard.teams(&["setup", "--undo", "--yes"]).await.well();
    yard.owner.ok("POST", "/_local/remove", json!({"channel": other["id"]})).await;
    assert_eq!((yard.picture().await, yard.config()), (server, config));
    assert!(!yard.root().join(".teams_setup").exists());
    let nothing = yard.teams(&["setup", "--undo", "--yes"]).await.well();
    assert!(nothing.out.contains("nothing to undo"), "{}", nothing.out);
    yard.running.shutdown().await;
}

#[tokio::test]
async fn what_discord_refuses_to_take_away_is_told_and_taken_away_by_the_next_undo() {
    let yard = Yard::empty().await;
    yard.teams(&["init"]).await.well();
    yard.invited().await;
    let (server, config) = (yard.picture().await, yard.config());
    yard.setup(&[], &[]).await.well();
    let refused = json!({"rest": [{
        "method": "DELETE", "path_contains": "/roles/", "status": 403, "code": 50013, "times": 1_000,
    }]});
    yard.owner.ok("POST", "/_local/faults", refused).await;
    let stopped = yard.teams(&["setup", "--undo", "--yes"]).await;
    assert_eq!(stopped.code, Some(1), "{}", stopped.out);
    assert!(stopped.err.contains("still there") && stopped.err.contains("Manage Roles"));
    assert!(yard.names("webhooks").await.is_empty(), "the rest is gone");
    yard.owner.ok("POST", "/_local/faults", json!({"clear": true})).await;
    yard.teams(&["setup", "--undo", "--yes"]).await.well();
    assert_eq!((yard.picture().await, yard.config()), (server, config));
    assert!(!yard.root().join(".teams_setup").exists());
    yard.running.shutdown().await;
}

/// Runs a command again and again, killed at another point of its life each time, until it ends.
async fn through_kills(yard: &Yard, arguments: &[&str]) -> usize {
    let plugs = ["after_sync:1", "after_effect:1", "before_append:2", "after_sync:2"];
    for (killed, plug) in plugs.iter().cycle().take(400).enumerate() {
        let came = yard.with(arguments, &[("TEAMS_PULL_PLUG", plug)]).await;
        match came.code {
            // A signal.
            None => {}
            Some(0) => return killed,
            Some(_) => panic!("{plug}: {}\n{}", came.out, came.err),
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn killed_at_every_step_it_goes_on_and_makes_and_removes_everything_once() {
    let yard = Yard::empty().await;
    yard.teams(&["init"]).await.well();
    yard.invited().await;
    let (server, config) = (yard.picture().await, yard.config());
    let (file, base) = (yard.token_file(), yard.running.info.base_url.clone());
    let setup = ["setup", "--token-file", &file, "--base-url", &base];
    let killed = through_kills(&yard, &setup).await;
    assert!(killed > 30, "it was killed {killed} times only");
    assert_eq!(yard.names("channels").await, CHANNELS);
    assert_eq!(yard.names("webhooks").await, HOOKS);
    let roles = yard.names("roles").await;
    for role in ["approver", "planner", "qa"] {
        assert_eq!(roles.iter().filter(|name| *name == role).count(), 1, "{roles:?}");
    }
    yard.teams(&["doctor"]).await.well();
    let killed = through_kills(&yard, &["setup", "--undo", "--yes"]).await;
    assert!(killed > 20, "it was killed {killed} times only");
    assert_eq!((yard.picture().await, yard.config()), (server, config));
    yard.running.shutdown().await;
}

/// Sets up at a terminal.
async fn at_a_terminal(yard: &Yard, until: &str, keys: &str) -> (String, bool) {
    let words = format!("setup --base-url {}", yard.running.info.base_url);
    typed(&words, &yard.project(), until, keys).await
}

#[tokio::test]
async fn a_token_that_is_typed_is_not_shown() {
    let yard = Yard::empty().await;
    yard.invited().await;
    let (shown, well) = at_a_terminal(&yard, "it is not shown:", "\x03").await;
    assert!(!well && shown.contains("there is no token"), "{shown}");
    let keys = format!("{}\r", yard.token);
    let (shown, well) = at_a_terminal(&yard, "it is not shown:", &keys).await;
    assert!(well && shown.contains("Ready in teams"), "{shown}");
    assert!(!shown.contains(&yard.token));
    assert_eq!(yard.files_with_the_token(), ["teams_generated/.teams_setup/tokens.env"]);
    yard.running.shutdown().await;
}

#[tokio::test]
async fn a_local_guild_that_is_gone_does_not_keep_the_workspace() {
    let yard = Yard::furnished().await;
    let page = yard.running.info.page_url.clone();
    yard.teams(&["setup", "--local", &page]).await.well();
    let written = yard.config();
    let Yard { running, owner, folder, token, bot, env, said } = yard;
    running.shutdown().await;
    let yard = Yard { running: fresh().await, owner, folder, token, bot, env, said };
    let page = yard.running.info.page_url.clone();
    let moved = yard.teams(&["setup", "--local", &page]).await;
    assert!(moved.err.contains("teams setup --undo"), "{}", moved.err);
    let lines = yard.teams(&["setup", "--undo", "--yes", "--json"]).await.well().lines();
    assert_eq!(result(&lines, "channel"), "left");
    assert_ne!(yard.config(), written);
    yard.teams(&["setup", "--local", &page]).await.well();
    yard.teams(&["doctor"]).await.well();
    yard.running.shutdown().await;
}

#[tokio::test]
async fn with_a_local_guild_no_token_is_needed() {
    let yard = Yard::furnished().await;
    let base = yard.running.info.base_url.clone();
    let page = yard.running.info.page_url.clone();
    let planned = yard.teams(&["setup", "--local", &page, "--dry-run", "--json"]).await.well();
    assert!(!yard.root().exists(), "a dry run writes nothing");
    assert_eq!(result(&planned.lines(), "channel"), "planned");
    // Without the key it is anybody's word.
    let closed = yard.teams(&["setup", "--local", &base]).await;
    assert!(closed.err.contains("the whole address"), "{}", closed.err);
    let lines = yard.teams(&["setup", "--local", &page, "--json"]).await.well().lines();
    assert_eq!(result(&lines, "ready"), "kept");
    let [discord, runtime] = yard.config();
    assert!(discord.contains(&base) && discord.contains("# With `voice: bots`"), "{discord}");
    assert!(runtime.contains(&format!("owner: \"{}\"", yard.running.info.users["owner"].id)));
    yard.teams(&["doctor"]).await.well();
    yard.running.shutdown().await;
}

#[tokio::test]
async fn what_a_person_refuses_is_done_without() {
    let yard = Yard::empty().await;
    yard.invited().await;
    let take = json!({"bot": "newcomer", "take": ["MANAGE_WEBHOOKS", "ADD_REACTIONS"]});
    yard.owner.ok("POST", "/_local/rights", take).await;
    let lines = yard.setup(&["--wait", "0"], &[]).await.well().lines();
    assert_eq!((result(&lines, "permissions"), result(&lines, "ready")), ("open", "kept"));
    assert_eq!(yard.names("channels").await, CHANNELS);
    assert_eq!(yard.names("webhooks").await, Vec::<String>::new());
    let doctor = yard.teams(&["doctor"]).await;
    assert!(doctor.out.contains("lacks Add Reactions, Manage Webhooks"), "{}", doctor.out);
    yard.running.shutdown().await;
}

#[tokio::test]
async fn what_cannot_work_is_refused_with_what_to_do() {
    let mut yard = Yard::empty().await;
    let base = yard.running.info.base_url.clone();
    let wrong = yard.folder.path().join("wrong.txt");
    let wrong = wrong.to_str().unwrap();
    for (content, said) in [
        ("not a token at all", "not a bot token"),
        (&format!("{}.{}.{}", "M".repeat(24), "G".repeat(6), "k".repeat(38)), "does not accept"),
    ] {
        std::fs::write(wrong, content).unwrap();
        let came = yard.teams(&["setup", "--token-file", wrong, "--base-url", &base]).await;
        assert_eq!(came.code, Some(1));
        assert!(came.err.contains(said) && came.err.contains("hint"), "{}", came.err);
        assert!(!came.err.contains(content), "{}", came.err);
    }
    let nobody = yard.teams(&["setup", "--base-url", &base]).await;
    assert!(
        nobody.err.contains("no token") && nobody.err.contains("--token-file"),
        "{}",
        nobody.err
    );

    // Nobody opens the link: it says so, and a later run goes on.
    let late = yard.setup(&["--wait", "0"], &[]).await;
    assert_eq!(late.code, Some(1));
    assert_eq!(late.lines().last().unwrap()["step"], "stopped");
    assert!(late.err.contains("teams setup"), "{}", late.err);

    // Too few rights: they are named, and the link asks for them again.
    let few = json!({"bot": "newcomer", "permissions": (1 << 10).to_string()});
    yard.owner.ok("POST", "/_local/invite", few).await;
    let short = yard.setup(&["--wait", "0"], &[]).await;
    let lines = short.lines();
    let waiting = lines.iter().find(|line| line["step"] == "permissions").unwrap();
    assert!(text(&waiting["text"]).contains("Manage Webhooks"), "{waiting}");
    yard.press(text(&waiting["link"])).await;
    // A kept token that Discord no longer takes is asked for anew, where somebody can be asked.
    let other = format!("{}.{}.{}", "M".repeat(24), "G".repeat(6), "k".repeat(38));
    let tokens = yard.root().join(".teams_setup/tokens.env");
    std::fs::write(&tokens, format!("TEAMS_DISCORD_TOKEN={other}\n")).unwrap();
    let stale = yard.teams(&["setup", "--base-url", &base]).await;
    assert!(stale.err.contains("does not accept"), "{}", stale.err);
    let (shown, well) =
        at_a_terminal(&yard, "it is not shown:", &format!("{}\r", yard.token)).await;
    assert!(well && shown.contains("Ready in teams"), "{shown}");
    // One in the environment that is another than the handed one would win: that is said.
    let lines = yard.setup(&[], &[("TEAMS_DISCORD_TOKEN", &other)]).await.well().lines();
    assert!(lines.iter().any(|it| it["result"] == "open" && it["step"] == "token"), "{lines:#?}");
    // A token in the environment is used and not written down.
    yard.env.insert("TEAMS_DISCORD_TOKEN".to_owned(), yard.token.clone());
    std::fs::remove_dir_all(yard.root()).unwrap();
    yard.teams(&["setup", "--base-url", &base]).await.well();
    assert_eq!(yard.files_with_the_token(), Vec::<String>::new());
    assert!(!yard.said.lock().unwrap().contains(&yard.token));
    yard.running.shutdown().await;
}

#[tokio::test]
async fn with_a_bot_a_role_each_is_checked_invited_and_named_and_undo_forgets_them() {
    let yard = Yard::empty().await;
    yard.teams(&["init"]).await.well();
    let path = yard.root().join("discord_agents_config.yaml");
    let (mut config, mut tokens) = ("voice: bots\nagents:\n".to_owned(), String::new());
    let mut ids = Vec::new();
    for role in Role::PUBLIC {
        let made = yard.owner.ok("POST", "/_local/bot", json!({"name": format!("our-{role}")}));
        let made = made.await;
        config.push_str(&format!(
            "  {role}:\n    token_env: T_{}\n    bot_id: '111111111111111111'\n",
            role.as_str().to_uppercase()
        ));
        tokens.push_str(&format!("{role}={}\n", text(&made["token"])));
        ids.push((role, text(&made["id"]).to_owned()));
    }
    config.push_str("relay_channel_id: '111111111111111112'\n");
    std::fs::write(&path, &config).unwrap();
    let file = yard.folder.path().join("tokens.txt");
    std::fs::write(&file, &tokens).unwrap();
    let file = file.to_str().unwrap();
    let (server, before) = (yard.picture().await, yard.config());

    // One token for two roles is one bot too few.
    let (first, second) = (tokens.lines().next().unwrap(), tokens.lines().nth(1).unwrap());
    let doubled = tokens.replace(second, &format!("research={}", first.split_once('=').unwrap().1));
    let wrong = yard.folder.path().join("wrong.txt");
    std::fs::write(&wrong, doubled).unwrap();
    let base = yard.running.info.base_url.clone();
    let refused = ["setup", "--token-file", wrong.to_str().unwrap(), "--base-url", &base];
    let refused = yard.teams(&refused).await;
    assert!(refused.err.contains("have the token of one bot"), "{}", refused.err);
    assert!(!yard.root().join(".teams_setup").exists(), "nothing was begun");

    let lines = yard.setup_with_clicks(file).await;
    let waiting: Vec<&Value> = lines.iter().filter(|it| it["result"] == "waiting").collect();
    let links = waiting.last().unwrap()["bots"].as_array().unwrap();
    assert_eq!(links.len(), 6, "{waiting:#?}");
    let stored = lines.iter().filter(|it| it["step"] == "token" && it["result"] == "done").count();
    let switched = lines.iter().filter(|it| it["step"] == "intents" && it["result"] == "done");
    assert_eq!((stored, switched.count()), (7, 7), "{lines:#?}");
    assert_eq!(result(&lines, "ready"), "kept");
    let written = std::fs::read_to_string(&path).unwrap();
    for (role, id) in &ids {
        assert!(written.contains(id), "{role} in {written}");
    }
    assert_eq!(yard.names("webhooks").await, [""; 0], "each speaks for itself");
    let doctor = yard.teams(&["doctor"]).await.well();
    assert!(doctor.out.contains("Everything is as it should be"), "{}", doctor.out);
    let again = yard.teams(&["setup", "--json"]).await.well().lines();
    assert!(again.iter().all(|line| line["result"] == "kept"), "{again:#?}");
    let orchestrator = ids.iter().find(|(role, _)| *role == Role::Orchestrator).unwrap();
    is_answered(&yard, &orchestrator.1).await;
    let said = yard.said.lock().unwrap().clone();
    let mut secrets = tokens.lines().map(|line| line.split_once('=').unwrap().1);
    assert!(secrets.all(|token| !said.contains(token)), "a token was shown");

    yard.teams(&["setup", "--undo", "--yes"]).await.well();
    assert_eq!((yard.config(), yard.root().join(".teams_setup").exists()), (before, false));
    let left = yard.picture().await;
    assert_eq!((&left["channels"], &left["webhooks"]), (&server["channels"], &server["webhooks"]));
    yard.running.shutdown().await;
}

/// What `teams run` would refuse is refused before anything is made, in the same words.
#[tokio::test]
async fn a_project_in_which_the_team_could_not_work_is_refused_at_once() {
    let yard = Yard::furnished().await;
    yard.invited().await;
    let project = yard.project();
    let open = || git2::Repository::open(&project).unwrap();
    let first = open().head().unwrap().peel_to_commit().unwrap().id();
    let git = project.join(".git");
    let aside = yard.folder.path().join("aside.git");

    let refused = async |part: &str| {
        let before = yard.picture().await;
        for more in [&[][..], &["--dry-run"]] {
            let came = yard.setup(more, &[]).await;
            assert_eq!(came.code, Some(1), "{part}: {}", came.out);
            assert!(came.err.contains(part), "{part}: {}", came.err);
        }
        assert!(!yard.root().exists(), "{part}: nothing is made");
        assert_eq!(yard.picture().await, before, "{part}");
    };
    std::fs::rename(&git, &aside).unwrap();
    refused("is not a git repository; run `git init` there").await;
    git2::Repository::init(&project).unwrap();
    refused("has no commit yet; make a first commit").await;
    std::fs::remove_dir_all(&git).unwrap();
    git_in(&project, &["init", "-q", "--object-format=sha256"]);
    refused("which the team cannot read; it needs a repository with SHA-1").await;
    std::fs::remove_dir_all(&git).unwrap();
    git_in(&project, &["init", "-q", "--bare", ".git"]);
    refused("bare").await;
    std::fs::remove_dir_all(&git).unwrap();
    std::fs::rename(&aside, &git).unwrap();
    open().set_head_detached(first).unwrap();
    refused("is on no branch (detached HEAD)").await;
    // A person in the middle of a rebase has no branch either, and needs other advice.
    std::fs::create_dir(git.join("rebase-merge")).unwrap();
    refused("a merge or rebase is in progress").await;
    std::fs::remove_dir(git.join("rebase-merge")).unwrap();
    open().set_head("refs/heads/main").unwrap();
    std::fs::write(git.join("MERGE_HEAD"), format!("{first}\n")).unwrap();
    refused("a merge or rebase is in progress").await;
    std::fs::remove_file(git.join("MERGE_HEAD")).unwrap();
    // A damaged repository, and one of somebody else.
    let tree = open().find_commit(first).unwrap().tree_id().to_string();
    let object = git.join("objects").join(&tree[..2]).join(&tree[2..]);
    std::fs::rename(&object, yard.folder.path().join("object")).unwrap();
    refused("`git fsck` tells what is damaged").await;
    std::fs::rename(yard.folder.path().join("object"), &object).unwrap();
    let own = std::fs::metadata(&project).unwrap().uid();
    if own == 0 {
        let of = |uid| {
            for folder in [&project, &git] {
                std::os::unix::fs::chown(folder, Some(uid), None).unwrap();
            }
        };
        of(4_242);
        refused("safe.directory").await;
        of(0);
    }

    // And `run` says the same of a workspace that was set up before.
    yard.setup(&[], &[]).await.well();
    // What is checked out does not matter any more: the branch was written down.
    assert!(yard.config()[1].contains("branch: \"main\""), "{}", yard.config()[1]);
    open().set_head_detached(first).unwrap();
    open().find_reference("refs/heads/main").unwrap().delete().unwrap();
    let (run, setup) = (yard.teams(&["run", "--quiet"]).await, yard.setup(&[], &[]).await);
    let said = |err: &str| err.lines().next().unwrap().to_owned();
    assert_eq!((run.code, setup.code), (Some(1), Some(1)));
    assert_eq!(said(&run.err), said(&setup.err));
    yard.running.shutdown().await;
}

/// The address as it stands in a browser, and any agent of the protocol by its command.
#[tokio::test]
async fn a_local_guild_needs_no_scheme_and_an_agent_of_the_protocol_its_command() {
    let yard = Yard::furnished().await;
    let address = yard.running.info.page_url.trim_start_matches("http://").to_owned();
    let came = yard.teams(&["setup", "--agent", "acp"]).await;
    assert_eq!((came.code, came.err.contains("acp:opencode acp")), (Some(2), true), "{}", came.err);
    let setup = ["setup", "--local", &address, "--agent", "acp:my-agent --acp", "--json"];
    yard.teams(&setup).await.well();
    let runtime = &yard.config()[1];
    assert!(runtime.contains("default: acp"), "{runtime}");
    assert!(runtime.contains("acp: {command: [\"my-agent\",\"--acp\"]}"), "{runtime}");
    let models = yard.teams(&["list"]).await.well();
    assert!(models.out.contains("developer"), "{}", models.out);
    let nobody = yard.teams(&["setup", "--local", "127.0.0.1:1"]).await;
    assert!(nobody.err.contains("no local guild answers at 127.0.0.1:1"), "{}", nobody.err);
    yard.running.shutdown().await;
}
