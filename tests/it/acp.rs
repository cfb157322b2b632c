//! The Agent Client Protocol through the driver: a scripted agent of our own, and a real one.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use teams::agents::acp::AcpSettings;
use teams::agents::{
    Agent, AgentOutcome, Driver, Event, RunSpec, Sandbox, Watch, WriteAccess, conversation,
};
use teams::domain::ids::MessageId;
use teams::domain::run::{FailKind, RunOutcome};

use crate::support::CONTRACT;
use crate::support::acp_agent::{ENTRY, MODE};
use crate::support::agent_run::{Place, failure, in_time, result, words};

/// The scripted agent as a process: this test binary, asked for the one test that plays it. What the
/// harness prints around it is no JSON, and noise like any other.
fn scripted(place: &Place, run: &str, mode: &str) -> RunSpec {
    let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let words = ["--exact", ENTRY, "--nocapture", "--test-threads=1"].map(str::to_owned);
    let agent = Agent::Acp(AcpSettings {
        command: [own].into_iter().chain(words).collect(),
        env: [(MODE.to_owned(), mode.to_owned())].into(),
        sandbox: Sandbox::Off,
        ..AcpSettings::default()
    });
    place.spec(agent, run)
}

async fn place() -> Place {
    Place::new(Box::new(|_, _| json!({"say": result()}))).await
}

#[tokio::test]
async fn an_agent_works_asks_and_answers() {
    let place = place().await;
    let spec = scripted(&place, "work", "work");
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let outcome = in_time(place.watched(&spec, &watch)).await;
    let RunOutcome::Result(done) = &outcome.outcome else { panic!("{outcome:?}") };
    assert_eq!(done.summary, "did it");
    assert_eq!(outcome.agent, "scripted 1.0");
    assert_eq!(outcome.session_id.as_deref(), Some("s-1"));
    assert_eq!((outcome.usage.input_tokens, outcome.usage.cached_tokens), (150, 50));
    assert!((outcome.usage.cost_usd - 0.25).abs() < 1e-9, "{:?}", outcome.usage);
    // It was allowed to write in its worktree, and refused to write beside it or to use our files.
    assert_eq!(place.file("made.txt"), "made\n");
    assert!(!place.folder.path().join("beside.txt").exists());
    let mut warnings = Vec::new();
    while let Ok(event) = seen.try_recv() {
        if let Event::Warning(text) = event {
            warnings.push(text);
        }
    }
    assert!(warnings.iter().any(|it| it.contains("fs/read_text_file")), "{warnings:?}");
    assert!(warnings.iter().any(|it| it.contains("refused: beside.txt")), "{warnings:?}");
    let told = std::fs::read_to_string(spec.run_dir.join("turn-0/stdin")).unwrap();
    assert!(told.contains("say good day") && told.contains("\"workspace-write\""), "{told}");
}

#[tokio::test]
async fn a_role_that_reads_may_do_nothing_else() {
    let place = place().await;
    let mut spec = scripted(&place, "reader", "work");
    spec.access = WriteAccess::ReadOnly;
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert!(!spec.worktree.join("made.txt").exists());
    let told = std::fs::read_to_string(spec.run_dir.join("turn-0/stdin")).unwrap();
    assert!(told.contains("\"read-only\""), "{told}");
}

#[tokio::test]
async fn an_earlier_conversation_is_gone_on_with_and_its_playback_is_not_the_answer() {
    let place = place().await;
    let mut spec = scripted(&place, "again", "work");
    spec.resume = Some("s-0".to_owned());
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert_eq!(outcome.session_id.as_deref(), Some("s-0"));
    let mut spec = scripted(&place, "lost", "work");
    spec.resume = Some("unknown".to_owned());
    let outcome = place.run(&spec).await;
    assert_eq!(outcome.session_id.as_deref(), Some("s-1"), "{outcome:?}");
}

#[tokio::test]
async fn a_wrong_answer_is_repaired_in_the_same_conversation() {
    let place = place().await;
    let outcome = place.run(&scripted(&place, "prose", "prose")).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert_eq!((outcome.repairs, outcome.session_id.as_deref()), (1, Some("s-1")));
}

#[tokio::test]
async fn failures_have_their_kinds() {
    let table = [
        ("429", FailKind::RateLimit),
        ("auth", FailKind::Auth),
        ("refusal", FailKind::Refusal),
        ("max_tokens", FailKind::MaxTurns),
        ("version", FailKind::BadRequest),
        ("gone", FailKind::NoTerminal),
        ("stopped", FailKind::Other),
    ];
    for (mode, kind) in table {
        let place = place().await;
        let outcome = place.run(&scripted(&place, mode, mode)).await;
        assert_eq!(failure(&outcome), kind, "{mode}: {outcome:?}");
    }
}

#[tokio::test]
async fn what_was_handed_in_counts_whatever_becomes_of_the_last_words() {
    for mode in ["auth", "max_tokens", "gone", "stopped"] {
        let place = place().await;
        let spec = scripted(&place, mode, mode);
        std::fs::create_dir_all(&spec.run_dir).unwrap();
        teams::agents::submit(&spec.run_dir, &result()).unwrap();
        let outcome = place.run(&spec).await;
        let RunOutcome::Result(done) = &outcome.outcome else { panic!("{mode}: {outcome:?}") };
        assert_eq!(done.summary, "did it");
    }
}

#[tokio::test]
async fn words_cancel_the_prompt_and_are_the_next_one() {
    let place = place().await;
    let spec = scripted(&place, "steered", "waits");
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let steering = async {
        while !matches!(seen.recv().await, Some(Event::ToolStart { .. })) {}
        watch.words.put(words(7, "and make it blue"));
    };
    let (outcome, ()) =
        in_time(async { tokio::join!(place.watched(&spec, &watch), steering) }).await;
    let RunOutcome::Result(done) = &outcome.outcome else { panic!("{outcome:?}") };
    assert_eq!(done.summary, "it is blue");
    assert_eq!(outcome.heard, [MessageId(7)]);
    assert!(!spec.run_dir.join("turn-1").exists(), "it was ended for them");
}

#[tokio::test]
async fn a_cancelled_run_is_asked_to_stop() {
    let place = place().await;
    let spec = scripted(&place, "cancelled", "waits");
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let cancel = async {
        while !matches!(seen.recv().await, Some(Event::ToolStart { .. })) {}
        watch.cancel.cancel();
    };
    let (outcome, ()) = in_time(async { tokio::join!(place.watched(&spec, &watch), cancel) }).await;
    assert_eq!(failure(&outcome), FailKind::Cancelled);
    let told = std::fs::read_to_string(spec.run_dir.join("turn-0/stdin")).unwrap();
    assert!(told.contains("session/cancel"), "{told}");
}

/// A tool is at work.
fn at_work(event: &Event) -> bool {
    matches!(event, Event::ToolStart { .. })
}

/// Starts a run, and drops it as soon as this has come: what a killed team does.
async fn abandoned(spec: &RunSpec, is_it: impl Fn(&Event) -> bool) {
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let driver = Driver::default();
    let has_come = async { while !seen.recv().await.is_some_and(|event| is_it(&event)) {} };
    tokio::select! {
        outcome = driver.run(spec, &CONTRACT, &watch) => panic!("over already: {outcome:?}"),
        () = in_time(has_come) => {}
    }
}

async fn adopt(spec: &RunSpec) -> Option<AgentOutcome> {
    let driver = Driver::default();
    in_time(driver.adopt(&spec.run_dir, &CONTRACT, &Watch::default())).await.unwrap()
}

#[tokio::test]
async fn an_agent_cut_off_with_the_team_is_gone_and_its_conversation_goes_on() {
    let place = place().await;
    let spec = scripted(&place, "cut", "waits");
    abandoned(&spec, at_work).await;
    assert_eq!(adopt(&spec).await, None);
    assert_eq!(crate::scenarios::left_in(place.folder.path()), Vec::<String>::new());
    let session = conversation(&spec.run_dir, &spec.agent);
    assert_eq!(session.as_deref(), Some("s-1"));
    let other = scripted(&place, "other", "work");
    assert_eq!(conversation(&spec.run_dir, &other.agent), None, "of another agent");
    // It goes on there, and when it is cut off again, there once more.
    let mut again = scripted(&place, "cut-again", "waits");
    again.resume = session;
    abandoned(&again, at_work).await;
    assert_eq!(adopt(&again).await, None);
    assert_eq!(conversation(&again.run_dir, &again.agent).as_deref(), Some("s-1"));
}

/// What it had handed in and was told that it is kept counts, unless it was at work again.
#[tokio::test]
async fn what_an_agent_that_is_cut_off_had_handed_in_counts() {
    let place = place().await;
    for (mode, counts) in [("thinks", true), ("waits", false)] {
        let spec = scripted(&place, mode, mode);
        abandoned(&spec, |event| match counts {
            true => matches!(event, Event::ToolEnd { .. }),
            false => matches!(event, Event::ToolStart { .. }),
        })
        .await;
        teams::agents::submit(&spec.run_dir, &result()).unwrap();
        let adopted = adopt(&spec).await;
        let summary = adopted.map(|adopted| match adopted.outcome {
            RunOutcome::Result(done) => done.summary.clone(),
            RunOutcome::Failed { .. } => panic!("{adopted:?}"),
        });
        assert_eq!(summary.as_deref(), counts.then_some("did it"));
    }
}

/// The work is done and paid for; only its answer is asked for again.
#[tokio::test]
async fn work_is_kept_when_the_team_goes_while_its_answer_is_repaired() {
    for has_outcome in [true, false] {
        let place = place().await;
        let spec = scripted(&place, "cut-repair", "prose");
        let outcome = place.run(&spec).await;
        assert_eq!(outcome.repairs, 1);
        std::fs::remove_file(spec.run_dir.join("result.json")).unwrap();
        // As if the repair had been under way still.
        let repair = spec.run_dir.join("turn-1");
        let exit = repair.join("exit.json");
        if has_outcome {
            let text = std::fs::read_to_string(&exit).unwrap();
            std::fs::write(&exit, text.replace("\"exit\"", "\"parent_gone\"")).unwrap();
            std::fs::write(repair.join("stdout.spool"), "").unwrap();
        } else {
            for file in ["exit.json", "stdout.spool"] {
                std::fs::remove_file(repair.join(file)).unwrap();
            }
        }
        let adopted = adopt(&spec).await.expect("an outcome");
        assert_eq!(adopted.outcome, outcome.outcome);
        assert_eq!((adopted.session_id, adopted.usage), (outcome.session_id, outcome.usage));
        assert!(spec.run_dir.join("turn-2").exists(), "it was asked again");
    }
}

#[tokio::test]
async fn a_finished_turn_of_a_killed_team_is_adopted_also_after_words() {
    let place = place().await;
    let spec = scripted(&place, "finished", "waits");
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let steering = async {
        while !matches!(seen.recv().await, Some(Event::ToolStart { .. })) {}
        watch.words.put(words(7, "and make it blue"));
    };
    let (outcome, ()) =
        in_time(async { tokio::join!(place.watched(&spec, &watch), steering) }).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    // As if the team had been killed before it could judge it.
    std::fs::remove_file(spec.run_dir.join("result.json")).unwrap();
    let exit = spec.run_dir.join("turn-0/exit.json");
    let text = std::fs::read_to_string(&exit).unwrap();
    assert!(text.contains("\"exit\""), "{text}");
    std::fs::write(&exit, text.replace("\"exit\"", "\"parent_gone\"")).unwrap();
    let adopted = adopt(&spec).await.expect("an outcome");
    assert_eq!(adopted.outcome, outcome.outcome);
    assert_eq!((adopted.session_id, adopted.usage), (outcome.session_id, outcome.usage));
}

/// The agent of `TEAMS_CODEX_ACP`: `dist/index.js` of `@agentclientprotocol/codex-acp`, played by Node.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub(crate) fn codex_acp() -> Option<(PathBuf, PathBuf)> {
    let codex = crate::codex::codex()?;
    let script = std::env::var_os("TEAMS_CODEX_ACP").map(PathBuf::from);
    if script.is_none() {
        assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "TEAMS_CODEX_ACP is not set");
        eprintln!("skipped: codex-acp not installed");
    }
    Some((script?, codex))
}

/// A home in which Codex talks to the scripted model.
pub(crate) fn codex_home(home: &Path, url: &str) {
    let provider = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\n\
         base_url = {}\nwire_api = \"responses\"\nrequest_max_retries = 2\n\
         stream_max_retries = 2\n[analytics]\nenabled = false\n[features]\nplugins = false\napps = false\n",
        json!(url)
    );
    std::fs::write(home.join("config.toml"), provider).unwrap();
}

/// Its settings, with its state in a folder of its own and a model at that address.
pub(crate) fn real(folder: &Path, url: &str, script: PathBuf, codex: PathBuf) -> AcpSettings {
    let home = folder.join("codex-home");
    std::fs::create_dir(&home).unwrap();
    codex_home(&home, url);
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    AcpSettings {
        command: vec!["node".to_owned(), text(script)],
        env: [("CODEX_HOME".to_owned(), text(home)), ("CODEX_PATH".to_owned(), text(codex))].into(),
        mode: Some("agent-full-access".to_owned()),
        sandbox: Sandbox::Off,
        ..AcpSettings::default()
    }
}

#[tokio::test]
async fn a_real_agent_works_and_is_steered() {
    let Some((script, codex)) = codex_acp() else { return };
    let place = Place::new(Box::new(|body: &Value, index| {
        let usage = json!({"in": 100, "cached": 40, "out": 5});
        if body.to_string().contains("make it blue") {
            json!({"say": result(), "usage": usage})
        } else if index == 0 {
            json!({"tool": "exec_command", "args": {"cmd": "echo made > made.txt"}, "usage": usage})
        } else {
            json!({"hang": true})
        }
    }))
    .await;
    let settings = real(place.folder.path(), &place.server.url, script, codex);
    let spec = place.spec(Agent::Acp(settings), "real-acp");
    let watch = Watch::default();
    let steering = async {
        place.server.asked(2).await;
        watch.words.put(words(7, "and make it blue"));
    };
    let (outcome, ()) =
        in_time(async { tokio::join!(place.watched(&spec, &watch), steering) }).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert!(outcome.agent.contains("codex"), "{}", outcome.agent);
    assert_eq!(outcome.heard, [MessageId(7)]);
    assert_eq!(place.file("made.txt"), "made\n");
    assert_eq!(place.server.requests().len(), 3);
}
