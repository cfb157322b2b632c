//! The whole team with the real Codex CLI at every step, against a scripted model on loopback: the
//! model edits a file with the CLI's own tools, and what it changed becomes a verified commit.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use teams::agents::codex::CodexSettings;
use teams::git::create;
use tokio::process::Command;

use crate::support::house::button;
use crate::support::model_server::{ModelServer, Request};
use crate::support::whole::{Whole, field, is_by, words};

/// What a step costs; the card has to count it.
pub(crate) const IN: u64 = 1_000;
pub(crate) const OUT: u64 = 50;

/// What must never reach a model or an agent's commands.
pub(crate) const SECRETS: [(&str, &str); 4] = [
    ("GITHUB_TOKEN", "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"),
    ("OPENAI_API_KEY", "sk-proj-0123456789abcdefghijklmnop"),
    ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1"),
    ("SSH_AUTH_SOCK", "/nowhere/agent.1234567890"),
];

const PATCH: &str = "*** Begin Patch
*** Update File: greet.sh
@@
-    -*) echo \"greet: unknown option $1\" >&2; exit 2 ;;
+    --shout) shout=yes; shift ;;
+    -*) echo \"greet: unknown option $1\" >&2; exit 2 ;;
@@
-printf '%s\\n' \"$line\"
+if [ \"$shout\" = yes ]; then
+  line=$(printf '%s' \"$line\" | tr '[:lower:]' '[:upper:]')
+fi
+printf '%s\\n' \"$line\"
*** End Patch
";

#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub(crate) fn codex() -> Option<PathBuf> {
    match CodexSettings::default().program() {
        Ok(path) => Some(path),
        Err(error) => {
            assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "{error}");
            eprintln!("skipped: codex not installed");
            None
        }
    }
}

/// Whether this machine lets a process confine its children; many containers do not.
pub(crate) async fn can_confine() -> bool {
    let tried = Command::new("unshare")
        .args(["-Ur", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await;
    tried.is_ok_and(|status| status.success())
}

/// The step that a request is about: the last heading of its kind in the conversation.
pub(crate) fn step(body: &Value) -> String {
    let said = body["input"].to_string();
    let heading = said.rsplit("# Your step: ").next().unwrap();
    heading.split("\\n").next().unwrap().to_owned()
}

/// How often the model has called a tool since it was last spoken to.
fn tools_used(body: &Value) -> usize {
    let items = body["input"].as_array().unwrap();
    let own = items.iter().rev().take_while(|item| item["role"] != "user");
    own.filter(|item| item["type"].as_str().unwrap_or_default().ends_with("_output")).count()
}

pub(crate) fn moves(outcome: &str, phase: &str, step: &str) -> Value {
    json!({"outcome": outcome, "target_phase": phase, "target_step": step, "reopen_category": null,
        "reason": "it fits", "unresolved_items": [], "finalize_phase": false})
}

pub(crate) fn answer(summary: &str, proposals: Value) -> Value {
    json!({"say": {"status": "completed", "summary": summary, "insights": [], "artifacts": [],
        "error": "", "proposals": proposals}})
}

/// The model: every role's answer, by the step that the prompt names.
pub(crate) fn model(body: &Value, _index: usize) -> Value {
    let mut play = match step(body).as_str() {
        "take in a message" => answer(
            "Add the option --shout to greet.sh.",
            json!({"request_handling": {"mode": "route"}, "request_intent": null, "request_parts": null, "control_action": null}),
        ),
        "facts from outside, before the plan" => answer(
            "Nothing outside the project is needed.",
            json!({"workflow_transition": moves("advance", "planning", "planner_draft"), "research_report": null, "research_signal": null}),
        ),
        "the plan" => answer(
            "greet.sh learns --shout; the test for it is there.",
            json!({"workflow_transition": moves("advance", "implementation", "architect_guidance"), "planning_note": null,
                "root_cause_contract": null, "acceptance_criteria": ["--shout prints capital letters"],
                "requirements": null, "allowed_paths": null, "excluded_paths": null, "questions": null, "todo_brief": "--shout prints capital letters",
                "backlog_items": [], "required_inputs": [], "suggested_next_step": null}),
        ),
        "tell the developer how" => {
            // Prose first: the contract has to be asked for again.
            let asked_again = body["input"].to_string().contains("could not be taken");
            if asked_again {
                answer(
                    "Handle the option where the others are.",
                    json!({"workflow_transition": moves("advance", "implementation", "developer_build"),
                        "plan_findings": null, "implementation_guidance": "In the loop over options of greet.sh.",
                        "code_review": [], "suggested_next_step": null}),
                )
            } else {
                json!({"say": "Put it beside the other options, it is easy."})
            }
        }
        "build it" => match tools_used(body) {
            0 => json!({"custom": "apply_patch", "input": PATCH}),
            1 => json!({"tool": "exec_command", "args": {"cmd": LOOK_AROUND}}),
            _ => answer(
                "greet.sh --shout prints the greeting in capital letters.",
                json!({"workflow_transition": moves("advance", "implementation", "architect_review"),
                    "implementation_report": "One case and one filter.", "suggested_next_step": null}),
            ),
        },
        "review the change" => answer(
            "The change does what was asked, and no more.",
            json!({"workflow_transition": moves("advance", "validation", "qa_validation"),
                "plan_findings": null, "implementation_guidance": null, "code_review": [], "suggested_next_step": null}),
        ),
        "decide whether it is what was asked for" => answer(
            "The greeting comes in capital letters; the checks are green.",
            json!({"workflow_transition": moves("advance", "closeout", "closeout"), "qa_validation": {
                "methodology": "evidence_matrix", "decision": "pass",
                "evidence_matrix": [{"criterion": "--shout prints capital letters", "source": "request",
                    "evidence": "the check `tests` passed", "result": "pass"}],
                "passed_checks": ["tests"], "findings": [], "residual_risks": [], "not_checked": []}}),
        ),
        _ => {
            // The end of it says what it was.
            let mut end: Vec<char> = body.to_string().chars().rev().take(2_000).collect();
            end.reverse();
            panic!("nobody asked for this: {}", end.into_iter().collect::<String>())
        }
    };
    play["usage"] = json!({"in": IN, "cached": 0, "out": OUT});
    play
}

/// What a curious command could find: its own environment and that of the agent above it.
const LOOK_AROUND: &str = "sh test.sh; env; tr '\\0' '\\n' < /proc/$PPID/environ; true";

/// Whether a value has exactly the shape that a strict schema asks for.
fn conforms(value: &Value, schema: &Value) -> bool {
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().any(|one| conforms(value, one));
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.contains(value);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let one = &schema["type"];
    let allowed = match one.as_array() {
        Some(kinds) => kinds.iter().any(|one| one == kind),
        None => one == kind,
    };
    allowed
        && match value {
            Value::Array(items) => items.iter().all(|item| conforms(item, &schema["items"])),
            Value::Object(fields) => {
                let names = schema["properties"].as_object().unwrap();
                fields.len() == names.len()
                    && names.iter().all(|(name, inner)| {
                        fields.get(name).is_some_and(|field| conforms(field, inner))
                    })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
}

/// No secret in what the model was told, no key on the way, and every answer by the schema of its
/// request, except the one that is wrong on purpose.
fn judge(requests: &[Request], secrets: &[String]) {
    let mut prose = 0;
    for request in requests {
        assert!(!request.authorized);
        let text = request.body.to_string();
        for secret in secrets {
            assert!(!text.contains(secret.as_str()), "{secret} reached the model");
        }
        let schema = &request.body["text"]["format"]["schema"];
        assert_eq!(schema["type"], "object", "{}", request.body["text"]);
        let said = &model(&request.body, 0)["say"];
        if said.is_string() {
            prose += 1;
        } else if said.is_object() {
            assert!(conforms(said, schema), "{said}\n{schema}");
        }
    }
    assert_eq!(prose, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_becomes_a_commit_through_the_real_cli() {
    let Some(binary) = codex() else { return };
    let server = ModelServer::choosing(Box::new(model)).await;
    let agents = format!(
        "  default: codex\n  codex: {{binary: {}, model_url: {}, sandbox: {}}}",
        json!(binary),
        json!(server.url),
        if can_confine().await { "auto" } else { "\"off\"" },
    );
    let mut team = Whole::start(&agents, &SECRETS).await;
    let (last, card) = team.commits("let greet.sh --shout print capital letters").await;

    assert!(words(&last).contains("greet.sh"), "{last}");
    assert!(words(&last).contains("Codex 0.169.0"), "{last}");

    // The card counts what the model did: seven roles' turns, a repair and two tool calls.
    let requests = server.requests();
    assert_eq!(requests.len(), 10);
    let tokens = (requests.len() as u64 * (IN + OUT)).to_string();
    assert!(field(&card, "Spent").contains(&tokens), "{card}");
    assert!(field(&card, "Agent").contains("Codex"), "{card}");
    assert!(field(&card, "Checks").contains("tests"), "{card}");
    let room = team.history(card["channel_id"].as_str().unwrap()).await;
    for name in ["Research", "Planner", "Architect", "Developer", "QA"] {
        assert!(room.iter().any(|said| is_by(said, name)), "{name} said nothing");
    }

    // The developer's command ran in the worktree, and saw no secret.
    let seen = requests
        .iter()
        .flat_map(|request| request.body["input"].as_array().unwrap())
        .find(|item| item["type"] == "function_call_output")
        .unwrap()["output"]
        .to_string();
    assert!(seen.contains("ok") && seen.contains("PATH="), "{seen}");
    let info = &team.running.info;
    let tokens = info.bots.values().chain(info.users.values()).map(|one| one.token.clone());
    let secrets = SECRETS.iter().map(|(_, value)| (*value).to_owned());
    let all: Vec<String> = tokens.chain(secrets).collect();
    judge(&requests, &all);
}

/// A row of QA's about a criterion.
fn row(criterion: &str) -> Value {
    json!({"criterion": criterion, "source": "plan", "evidence": "the check `tests` passed", "result": "pass"})
}

/// The same model with a planner that promises too much at first, and then names what it will touch wrongly.
fn model_with_plans(body: &Value, index: usize) -> Value {
    let is_first = !body["input"].to_string().contains("What was found in the plan");
    let criteria = if is_first {
        json!(["it works well"])
    } else {
        json!(["--shout prints capital letters", "(check: tests) the project's tests pass"])
    };
    let plan = json!({
        "workflow_transition": moves("advance", "implementation", "architect_guidance"),
        "planning_note": null, "root_cause_contract": null, "acceptance_criteria": criteria,
        "requirements": [{"text": "--shout prints capital letters", "when": "now"},
            {"text": "--whisper", "when": "later"}],
        "allowed_paths": ["docs/**"], "excluded_paths": null, "questions": null,
        "todo_brief": "--shout prints capital letters", "backlog_items": [], "required_inputs": [],
        "suggested_next_step": null,
    });
    let mut play = match step(body).as_str() {
        "the plan" | "settle the plan" => answer("greet.sh learns --shout.", plan),
        "decide whether it is what was asked for" => answer(
            "It prints capital letters.",
            json!({"workflow_transition": moves("advance", "closeout", "closeout"), "qa_validation": {
                "methodology": "evidence_matrix", "decision": "pass",
                "evidence_matrix": [row("C-1"), row("C-2")],
                "passed_checks": ["tests"], "findings": [], "residual_risks": [], "not_checked": []}}),
        ),
        _ => model(body, index),
    };
    play["usage"] = json!({"in": IN, "cached": 0, "out": OUT});
    play
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_mended_approved_and_held_against_through_the_real_cli() {
    let Some(binary) = codex() else { return };
    let server = ModelServer::choosing(Box::new(model_with_plans)).await;
    let agents = format!(
        "  default: codex\n  codex: {{binary: {}, model_url: {}, sandbox: {}}}\ngates: {{plan: ask, scope: ask}}",
        json!(binary),
        json!(server.url),
        if can_confine().await { "auto" } else { "\"off\"" },
    );
    let mut team = Whole::start(&agents, &[]).await;
    team.ask("let the greeting shout where --shout is given").await;

    // What nobody can see went back to the planner; what it made of that waits for a person.
    let asks = |text: &'static str| {
        move |said: &Value| words(said).contains(text) && button(said, "Approve").is_some()
    };
    let card = team.until(asks("May this plan be built?")).await;
    for part in ["capital letters", "the project's tests pass", "docs/**", "--whisper"] {
        assert!(words(&card).contains(part), "{part}: {}", words(&card));
    }
    let built = |request: &Request| step(&request.body) == "build it";
    assert!(!server.requests().iter().any(built), "nothing is built before");
    press(&team, &card).await;

    // The change touches what the plan does not name: a person sees which file.
    let card = team.until(asks("May this go to the branch?")).await;
    assert!(words(&card).contains("greet.sh"), "{}", words(&card));
    assert_eq!(create::first_parents(&team.project(), "main").unwrap().len(), 1);
    press(&team, &card).await;

    let last = team.until(|said| words(said).contains("**Done.**")).await;
    assert!(words(&last).contains("--whisper"), "what is left for later is said: {last}");
    assert!(button(&last, "Request changes").is_some(), "{last}");
    team.stop().await;
    let request = &team.requests()[0];
    assert_eq!(request["planned"]["version"]["number"], 2, "{}", request["planned"]);
    let told = server.requests();
    let steps: Vec<String> = told.iter().map(|request| step(&request.body)).collect();
    let plans = steps.iter().filter(|it| matches!(it.as_str(), "the plan" | "settle the plan"));
    assert_eq!(plans.count(), 2, "{steps:?}");
}

/// Somebody with the right approves at a card.
async fn press(team: &Whole, card: &Value) {
    let body = json!({
        "channel": card["channel_id"], "message": card["id"], "custom_id": button(card, "Approve"),
    });
    team.owner.ok("POST", "/_local/click", body).await;
}
