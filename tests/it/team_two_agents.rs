//! The whole team with two real CLIs at work at the same time: Claude Code builds what was asked for first while Codex
//! plans what was asked for second, and both changes land.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};
use teams::git::create;

use crate::claude::claude;
use crate::git_repo::git_in;
use crate::support::model_server::ModelServer;
use crate::support::whole::{PATIENCE, Whole, words};
use crate::team_claude::{self, tools_used};
use crate::team_codex::{self, IN, OUT, SECRETS, answer, can_confine, codex, moves, step};

/// Where two models wait for each other.
#[derive(Default)]
struct Meeting {
    here: Mutex<usize>,
    came: Condvar,
}

impl Meeting {
    fn wait_for_the_other(&self) {
        tokio::task::block_in_place(|| {
            let mut here = self.here.lock().unwrap();
            *here += 1;
            self.came.notify_all();
            let waited = self.came.wait_timeout_while(here, PATIENCE, |here| *here < 2).unwrap();
            assert!(!waited.1.timed_out(), "the two were never at work at the same time");
        });
    }
}

const NOTES: &str = "NOTES.md";

/// Claude Code's model: it builds either.
fn builds(body: &Value, index: usize) -> Value {
    let messages = &body["messages"];
    let is_build = step(&json!({"input": messages})) == "build it";
    if !is_build || !messages.to_string().contains(NOTES) {
        return team_claude::model(body, index);
    }
    let mut play = match tools_used(messages) {
        0 => {
            json!({"tool": "Write", "args": {"file_path": NOTES, "content": "Greets whoever is named.\n"}})
        }
        _ => {
            let report = json!({"workflow_transition": moves("advance", "implementation", "architect_review"),
                "implementation_report": "One file.", "suggested_next_step": null});
            json!({"tool": "StructuredOutput", "args": answer("NOTES.md says what it does.", report)["say"]})
        }
    };
    play["usage"] = json!({"in": IN, "cached": 0, "out": OUT});
    play
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_clis_work_at_the_same_time_and_both_changes_land() {
    let (Some(codex), Some(claude)) = (codex(), claude()) else { return };
    let meeting = Arc::new(Meeting::default());
    let once = |meeting: &Arc<Meeting>| {
        let (meeting, met) = (Arc::clone(meeting), AtomicBool::new(false));
        move |is_now: bool| {
            if is_now && !met.swap(true, Ordering::SeqCst) {
                meeting.wait_for_the_other();
            }
        }
    };
    let (first, second) = (once(&meeting), once(&meeting));
    let anthropic = ModelServer::choosing(Box::new(move |body, index| {
        let messages = &body["messages"];
        first(
            step(&json!({"input": messages})) == "build it"
                && !messages.to_string().contains(NOTES),
        );
        builds(body, index)
    }))
    .await;
    let openai = ModelServer::choosing(Box::new(move |body, index| {
        second(step(body) == "the plan" && body["input"].to_string().contains(NOTES));
        team_codex::model(body, index)
    }))
    .await;
    let sandbox = if can_confine().await { "auto" } else { "\"off\"" };
    let agents = format!(
        "  default: codex\n  roles: {{developer: claude}}\n\
         \x20 codex: {{binary: {}, model_url: {}, sandbox: {sandbox}}}\n\
         \x20 claude: {{binary: {}, model_url: {}, sandbox: {sandbox}}}\n\
         limits: {{parallel_runs: 2}}",
        json!(codex),
        json!(openai.url),
        json!(claude),
        json!(anthropic.base),
    );
    // Its own test is red until the option is there; either change is to be green by itself.
    let green = |project: &Path| {
        std::fs::write(project.join("test.sh"), "sh -n greet.sh && sh greet.sh\n").unwrap();
        git_in(project, &["commit", "-qam", "Only that it runs"]);
    };
    let mut team = Whole::start_with(&agents, &SECRETS, green).await;
    team.ask("let greet.sh --shout print capital letters").await;
    team.ask("write NOTES.md, which says what greet.sh does").await;
    let mut done = BTreeSet::new();
    team.until(|said| {
        if words(said).contains("**Done.**") {
            done.insert(said["id"].to_string());
        }
        done.len() == 2
    })
    .await;
    team.stop().await;
    let requests = team.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!(request["status"], "committed", "{request:#}");
        assert_eq!(request["evidence"]["commit"], request["commit_sha"]);
    }
    assert_eq!(create::first_parents(&team.project(), "main").unwrap().len(), 4);
    team.told_no_secret(&anthropic, &SECRETS);
    assert!(!openai.requests().iter().any(|request| request.authorized));
}
