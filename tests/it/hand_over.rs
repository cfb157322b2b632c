//! Conversations with the real agents: how full they are, everything passed again when they go on, and how
//! one that is nearly full hands over to a fresh one. The model is scripted.

use std::path::Path;

use serde_json::{Value, json};
use teams::agents::acp::AcpSettings;
use teams::agents::claude::ClaudeSettings;
use teams::agents::codex::CodexSettings;
use teams::agents::{Agent, AgentOutcome, Handover, RunSpec, Sandbox, Why, sent};
use teams::domain::conversation::{ContextLevel, FillUnit, HandedOver};
use teams::domain::run::RunOutcome;

use crate::claude::claude;
use crate::codex::codex;
use crate::support::acp_agent::{ENTRY, MODE};
use crate::support::agent_run::{Place, result};
use crate::support::model_server::{Choose, Request};

const ASKED: &str = "This conversation is nearly full";

/// A model that fills most of the window, and hands over when it is asked to; `answer` is how it ends a turn.
fn model(answer: fn(Value) -> Value, refuses: bool) -> Choose {
    Box::new(move |body, _| {
        let body = body.to_string();
        let usage = json!({"in": 160_000, "cached": 100_000, "out": 500});
        let mut step = match (body.contains(ASKED), refuses) {
            (true, true) => {
                let error = json!({"type": "invalid_request_error", "message": "no", "code": "no"});
                return json!({"status": 400, "body": {"type": "error", "error": error}});
            }
            (true, false) => answer(json!({"summary": "I chose the loop; the tests are slow."})),
            (false, _) => answer(result()),
        };
        step["usage"] = usage;
        step
    })
}

/// The same run once more, by a conversation that takes over from the one before.
fn takes_over(place: &Place, agent: Agent, earlier: &AgentOutcome) -> RunSpec {
    let mut spec = place.spec(agent, "second");
    spec.resume.clone_from(&earlier.session_id);
    spec.task.work.handover = Some(Handover {
        session: earlier.session_id.clone().unwrap(),
        can_answer: true,
        records: "completed: built it".to_owned(),
        summary: String::new(),
    });
    spec
}

fn done(outcome: &AgentOutcome) {
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
}

async fn hands_over(place: &Place, agent: &Agent, refuses: bool) -> Vec<Request> {
    let mut spec = place.spec(agent.clone(), "first");
    if matches!(agent, Agent::Claude(_)) {
        // What the operator says outweighs what the agent says of its model.
        spec.limits.context_window = Some(200_000);
    }
    let first = place.run(&spec).await;
    done(&first);
    let fill = first.fill.expect("how full it is");
    match agent {
        Agent::Claude(_) => {
            assert_eq!((fill.used, fill.size, fill.measured), (160_500, 200_000, FillUnit::Tokens));
            assert_eq!(ContextLevel::after(Some(fill), false), ContextLevel::HandOver);
        }
        Agent::Codex(_) | Agent::Acp(_) | Agent::Rehearsal(_) => {
            assert_eq!((fill.used, fill.size, fill.measured), (160_500, 258_400, FillUnit::Tokens));
        }
    }
    let before = place.server.requests().len();
    let spec = takes_over(place, agent.clone(), &first);
    let second = place.run(&spec).await;
    done(&second);
    assert_ne!(second.session_id, first.session_id, "the old conversation goes on");
    let from = first.session_id.clone().unwrap();
    assert_eq!(second.handed_over, Some(HandedOver { from, by_itself: !refuses }));
    // Both turns were paid for.
    let turns = if refuses { 1 } else { 2 };
    assert_eq!(second.usage.input_tokens, 160_000 * turns, "{:?}", second.usage);
    let (record, texts) = sent(&spec.run_dir).unwrap().unwrap();
    assert_eq!(record.resumes, None);
    let why: Vec<Why> = texts.iter().map(|text| text.why).collect();
    assert_eq!(why, [Why::HandOver, Why::Prompt]);
    let prompt = &texts[1].text;
    assert!(prompt.contains("# What you did on this request before"), "{prompt}");
    assert!(prompt.contains("built it"));
    assert_eq!(prompt.contains("I chose the loop; the tests are slow."), !refuses);
    assert!(record.sections.iter().any(|section| section.name == "handover"));

    // The fresh one goes on by itself.
    let mut third = place.spec(agent.clone(), "third");
    third.resume.clone_from(&second.session_id);
    let third = place.run(&third).await;
    done(&third);
    assert_eq!((third.session_id, third.handed_over), (second.session_id, None));
    assert_eq!(third.usage.input_tokens, 160_000);
    place.server.requests()[before..].to_vec()
}

fn claude_agent(place: &Place, binary: &Path) -> Agent {
    Agent::Claude(ClaudeSettings {
        binary: Some(binary.to_owned()),
        model_url: Some(place.server.base.clone()),
        sandbox: Sandbox::Off,
        retries: 1,
        ..ClaudeSettings::default()
    })
}

fn codex_agent(place: &Place, binary: &Path) -> Agent {
    Agent::Codex(CodexSettings {
        binary: Some(binary.to_owned()),
        model_url: Some(place.server.url.clone()),
        sandbox: Sandbox::Off,
        retries: 1,
        ..CodexSettings::default()
    })
}

#[tokio::test]
async fn claude_code_hands_a_full_conversation_over_with_its_own_summary() {
    let Some(binary) = claude() else { return };
    let answer = |args: Value| json!({"tool": "StructuredOutput", "args": args});
    let place = Place::new(model(answer, false)).await;
    let requests = hands_over(&place, &claude_agent(&place, &binary), false).await;
    let asked: Vec<bool> =
        requests.iter().map(|it| it.body["messages"].to_string().contains(ASKED)).collect();
    assert_eq!(asked, [true, false, false]);
    let last = requests[2].body.to_string();
    assert!(last.contains("On two lines."), "the charter is not passed again: {last}");
}

#[tokio::test]
async fn codex_hands_a_full_conversation_over_with_its_own_summary() {
    let Some(binary) = codex() else { return };
    let place = Place::new(model(|said| json!({"say": said}), false)).await;
    let requests = hands_over(&place, &codex_agent(&place, &binary), false).await;
    let asked: Vec<bool> =
        requests.iter().map(|it| it.body["input"].to_string().contains(ASKED)).collect();
    assert_eq!(asked, [true, false, false]);
    for request in &requests {
        let body = request.body.to_string();
        assert!(body.contains("On two lines."), "the charter is not passed again: {body}");
        assert_eq!(request.body["text"]["format"]["type"], "json_schema");
    }
}

#[tokio::test]
async fn where_a_conversation_does_not_answer_any_more_the_records_have_to_do() {
    let Some(binary) = codex() else { return };
    let place = Place::new(model(|said| json!({"say": said}), true)).await;
    hands_over(&place, &codex_agent(&place, &binary), true).await;
}

#[tokio::test]
async fn an_agent_of_the_protocol_is_given_the_tools_and_the_folder_again_and_says_how_full_it_is()
{
    let place = Place::new(Box::new(|_, _| json!({}))).await;
    let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let words = ["--exact", ENTRY, "--nocapture", "--test-threads=1"].map(str::to_owned);
    let agent = Agent::Acp(AcpSettings {
        command: [own].into_iter().chain(words).collect(),
        env: [(MODE.to_owned(), "nearly_full".to_owned())].into(),
        sandbox: Sandbox::Off,
        ..AcpSettings::default()
    });
    for (run, resume, method) in
        [("fresh", None, "session/new"), ("resumed", Some("s-0".to_owned()), "session/load")]
    {
        let mut spec = place.spec(agent.clone(), run);
        spec.resume = resume;
        spec.socket = Some("/nowhere/run.sock".into());
        let outcome = place.run(&spec).await;
        done(&outcome);
        let fill = outcome.fill.unwrap();
        assert_eq!((fill.used, fill.size, fill.measured), (80_000, 100_000, FillUnit::Tokens));
        let told = std::fs::read_to_string(spec.run_dir.join("turn-0/stdin")).unwrap();
        let opened = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let opened = opened.into_iter().find(|line| line["method"] == method).expect(method);
        assert_eq!(opened["params"]["cwd"], json!(spec.worktree));
        let server = &opened["params"]["mcpServers"][0];
        assert_eq!((&server["name"], &server["args"]), (&json!("teams"), &json!(["mcp"])));
        assert_eq!(server["env"][0]["value"], "/nowhere/run.sock");
        assert!(told.contains("submit_result"), "it is not told of the tool");
    }
}
