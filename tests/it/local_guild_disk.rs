//! What the local guild keeps: over a kill, over a clean end, and for one server at a time.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use teams::local_guild::{Config, GuildError, GuildInfo, serve};

use crate::support::agent_run::in_time;
use crate::support::gateway::{self, Connection};
use crate::support::guild::{Caller, answer, text};

/// The real binary, so that it can be killed.
struct Process {
    child: Child,
    info: GuildInfo,
}

impl Process {
    fn start(dir: &Path) -> Process {
        Process::started(Command::new(env!("CARGO_BIN_EXE_teams")), dir)
    }

    /// In a file system of its own, where the folder has room for `size`; words in `more` make it larger.
    fn on_a_small_disk(dir: &Path, size: &str, more: &Path) -> Process {
        rustix::fs::mkfifoat(rustix::fs::CWD, more, 0o600.into()).unwrap();
        let script = "mount -t tmpfs -o size=$1 small \"$0\" || exit 1; more=$2; \
                      (read size < \"$more\"; mount -o remount,size=$size \"$0\") & shift 2; exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["-Um", "--map-current-user", "--keep-caps", "sh", "-c", script]);
        command.arg(dir).arg(size).arg(more).arg(env!("CARGO_BIN_EXE_teams"));
        Process::started(command, dir)
    }

    fn started(mut command: Command, dir: &Path) -> Process {
        let mut child = command
            .args(["local-guild", "--json", "--parent-pipe", "--dir"])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Process { child, info: serde_json::from_str(&line).unwrap() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_full_disk_refuses_what_it_has_no_room_for_and_there_may_be_room_later() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, more) = (dir.path().join("guild"), dir.path().join("more"));
    std::fs::create_dir(&folder).unwrap();
    let guild = Process::on_a_small_disk(&folder, "256k", &more);
    let bot = Caller::bot(&guild.info, "teams");
    let send = format!("/channels/{}/messages", guild.info.channels["general"]);
    let mut said = 0;
    let post = async |number: usize| {
        let body = json!({"content": format!("{number} {}", "x".repeat(1_900))});
        answer(bot.request("POST", &send).json(&body).send().await.unwrap()).await
    };
    let refused = loop {
        match post(said).await {
            (200, _) => said += 1,
            refused => break refused,
        }
    };
    assert!(said > 3 && refused.0 == 507, "{said} {refused:?}");
    assert!(text(&refused.1["message"]).contains("disk is full"), "{refused:?}");
    assert_eq!(post(said).await.0, 507, "and says so each time");
    tokio::task::spawn_blocking(move || std::fs::write(more, "16m\n").unwrap()).await.unwrap();
    let there_is_room = async { while post(said).await.0 != 200 {} };
    in_time(there_is_room).await;
    let kept = bot.ok("GET", &format!("{send}?limit=2"), Value::Null).await;
    let begins =
        |at: usize, number: usize| text(&kept[at]["content"]).starts_with(&format!("{number} x"));
    assert!(begins(0, said) && begins(1, said - 1), "{kept}");
}

#[tokio::test]
async fn what_was_answered_outlives_kill_and_a_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    let first = Process::start(dir.path());
    let bot = Caller::bot(&first.info, "teams");
    let channel = format!("/channels/{}", first.info.channels["general"]);
    let send = format!("{channel}/messages");
    let body = json!({"content": "kept", "nonce": "n-1", "enforce_nonce": true});
    let kept = bot.ok("POST", &send, body.clone()).await;
    bot.ok("POST", &format!("{send}/{}/threads", text(&kept["id"])), json!({"name": "room"})).await;
    let hook = bot.ok("POST", &format!("{channel}/webhooks"), json!({"name": "voices"})).await;
    let part = reqwest::multipart::Part::bytes(b"bytes".as_slice()).file_name("a.txt");
    let form = reqwest::multipart::Form::new().part("files[0]", part);
    let (_, filed) = answer(bot.request("POST", &send).multipart(form).send().await.unwrap()).await;
    let before = first.info.clone();
    drop(first);

    let log = dir.path().join("guild.jsonl");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes.extend_from_slice(b"[{\"c\":\"message\",\"v\":{\"id\":\"1");
    std::fs::write(&log, bytes).unwrap();

    let second = Process::start(dir.path());
    assert_eq!(second.info.guild_id, before.guild_id);
    assert_eq!(second.info.channels, before.channels);
    assert_eq!(second.info.bots["qa"].token, before.bots["qa"].token);
    let bot = Caller::bot(&second.info, "teams");
    assert_eq!(bot.ok("POST", &send, body).await["id"], kept["id"]);
    let thread = bot.ok("GET", &format!("/channels/{}", text(&kept["id"])), Value::Null).await;
    assert_eq!(thread["name"], "room");
    let hook = format!("/webhooks/{}/{}?wait=true", text(&hook["id"]), text(&hook["token"]));
    let later = bot.ok("POST", &hook, json!({"content": "still here"})).await;
    let number = |value: &Value| text(value).parse::<u64>().unwrap();
    assert!(number(&later["id"]) > number(&filed["id"]));
    let found = bot.ok("GET", &format!("{send}/{}", text(&filed["id"])), Value::Null).await;
    let file = reqwest::get(text(&found["attachments"][0]["url"])).await.unwrap();
    assert_eq!(file.bytes().await.unwrap(), b"bytes".as_slice());
    // A second server on the folder is refused.
    let busy =
        serve(Config { port: 0, dir: Some(dir.path().to_owned()), ..Config::default() }).await;
    assert!(matches!(busy, Err(GuildError::Busy { .. })));
}

#[tokio::test]
async fn rights_roles_categories_and_members_outlive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let first = Process::start(dir.path());
    let bot = Caller::bot(&first.info, "teams");
    let owner = Caller::person(&first.info, "owner");
    let guild = format!("/guilds/{}", first.info.guild_id);
    let made = owner.ok("POST", "/_local/bot", json!({"name": "newcomer"})).await;
    owner.ok("POST", "/_local/invite", json!({"bot": "newcomer", "permissions": "16"})).await;
    owner.ok("POST", "/_local/kick", json!({"bot": "qa"})).await;
    let take = json!({"bot": "planner", "channel": "general", "take": ["VIEW_CHANNEL"]});
    owner.ok("POST", "/_local/rights", take).await;
    let newcomer = Caller::token(&first.info, text(&made["token"]));
    newcomer.ok("PATCH", "/applications/@me", json!({"flags": 1 << 19})).await;
    let role = bot.ok("POST", &format!("{guild}/roles"), json!({"name": "approver"})).await;
    let gone = bot.ok("POST", &format!("{guild}/roles"), json!({"name": "gone"})).await;
    let guest = first.info.users["guest"].id.clone();
    let given = format!("{guild}/members/{guest}/roles");
    for role in [&role, &gone] {
        bot.ok("PUT", &format!("{given}/{}", text(&role["id"])), Value::Null).await;
    }
    bot.ok("DELETE", &format!("{guild}/roles/{}", text(&gone["id"])), Value::Null).await;
    let category = json!({"name": "Team", "type": 4});
    let category = bot.ok("POST", &format!("{guild}/channels"), category).await;
    let room = json!({"name": "room", "parent_id": category["id"]});
    let room = bot.ok("POST", &format!("{guild}/channels"), room).await;
    let picture = async |caller: &Caller| {
        let mut all = Vec::new();
        for path in ["", "/roles", "/channels", "/members?limit=100"] {
            all.push(caller.ok("GET", &format!("{guild}{path}"), Value::Null).await);
        }
        all
    };
    let before = picture(&bot).await;
    drop(first);

    let second = Process::start(dir.path());
    let bot = Caller::bot(&second.info, "teams");
    assert_eq!(picture(&bot).await, before);
    let newcomer = Caller::token(&second.info, text(&made["token"]));
    assert_eq!(newcomer.ok("GET", "/applications/@me", Value::Null).await["flags"], 1 << 19);
    newcomer.ok("POST", &format!("{guild}/channels"), json!({"name": "theirs"})).await;
    let qa = Caller::bot(&second.info, "qa");
    assert_eq!(qa.ok("GET", "/users/@me/guilds", Value::Null).await, json!([]));
    let planner = Caller::bot(&second.info, "planner");
    let general = format!("/channels/{}", second.info.channels["general"]);
    assert_eq!(planner.call("GET", &general, Value::Null).await.0, 403);
    let member = bot.ok("GET", &format!("{guild}/members/{guest}"), Value::Null).await;
    assert_eq!(member["roles"], json!([role["id"]]));
    let room = bot.ok("GET", &format!("/channels/{}", text(&room["id"])), Value::Null).await;
    assert_eq!(room["parent_id"], category["id"]);
}

#[tokio::test]
async fn two_hundred_commands_are_created_a_day_and_a_restart_begins_no_new_day() {
    let dir = tempfile::tempdir().unwrap();
    let config = || Config { port: 0, dir: Some(dir.path().to_owned()), ..Config::default() };
    let first = serve(config()).await.unwrap();
    let bot = Caller::bot(&first.info, "teams");
    let app = &first.info.bots["teams"].id;
    let here = format!("/applications/{app}/guilds/{}/commands", first.info.guild_id);
    let everywhere = format!("/applications/{app}/commands");
    let named = |name: String| json!({"name": name, "description": "One of many"});
    let many = |of: &str| Value::Array((0..100).map(|at| named(format!("{of}-{at}"))).collect());
    bot.ok("PUT", &here, many("one")).await;
    // What is there already is not created again, however often it is sent.
    for _ in 0..3 {
        bot.ok("PUT", &here, many("one")).await;
    }
    bot.ok("PUT", &here, many("two")).await;
    let over = (400, Some(30034));
    let refused = async |bot: &Caller, method: &str, body: Value| {
        let (status, refused) = bot.call(method, &here, body).await;
        (status, refused["code"].as_u64())
    };
    // All or nothing, and removing gives nothing back.
    assert_eq!(refused(&bot, "PUT", many("three")).await, over);
    assert_eq!(refused(&bot, "POST", named("another".to_owned())).await, over);
    bot.ok("PUT", &here, json!([named("two-1".to_owned())])).await;
    assert_eq!(refused(&bot, "POST", named("another".to_owned())).await, over);
    first.shutdown().await;

    let second = serve(config()).await.unwrap();
    let bot = Caller::bot(&second.info, "teams");
    assert_eq!(refused(&bot, "POST", named("another".to_owned())).await, over);
    bot.ok("POST", &here, named("two-1".to_owned())).await;
    // Everywhere is a place of its own, and so is another application.
    bot.ok("POST", &everywhere, named("another".to_owned())).await;
    let qa = &second.info.bots["qa"].id;
    let theirs = format!("/applications/{qa}/guilds/{}/commands", second.info.guild_id);
    Caller::bot(&second.info, "qa").ok("POST", &theirs, named("another".to_owned())).await;
    second.shutdown().await;
}

#[tokio::test]
async fn a_clean_end_frees_the_folder_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let config = || Config { port: 0, dir: Some(dir.path().to_owned()), ..Config::default() };
    let first = serve(config()).await.unwrap();
    let owner = Caller::person(&first.info, "owner");
    owner.ok("POST", "/_local/say", json!({"channel": "general", "content": "kept"})).await;
    // An open gateway connection and an open feed must not hold the end up.
    let mut gateway = Connection::open(&first.info, "teams", gateway::ALL).await;
    gateway.until("GUILD_CREATE").await;
    let feed = owner.request("GET", "/_local/events").send().await.unwrap();
    assert_eq!(feed.status(), 200);
    first.shutdown().await;
    let second = serve(config()).await.unwrap();
    let owner = Caller::person(&second.info, "owner");
    let messages = owner.ok("GET", "/_local/messages?channel=general", Value::Null).await;
    assert_eq!(messages[0]["content"], "kept");
    second.shutdown().await;
}

#[test]
fn it_ends_with_the_process_that_started_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::start(dir.path());
    drop(process.child.stdin.take());
    assert!(process.child.wait().unwrap().success());
}
