//! The whole team with the real Claude Code at every step, against a scripted model on loopback.

use serde_json::{Value, json};

use crate::claude::claude;
use crate::support::model_server::ModelServer;
use crate::support::whole::{Whole, field};
use crate::team_codex::{self, IN, OUT, SECRETS, answer, can_confine, moves, step};

const OPTION: &str = "    -*) echo \"greet: unknown option $1\" >&2; exit 2 ;;";
const SHOUT: &str = "    --shout) shout=yes; shift ;;";
const PRINT: &str = "printf '%s\\n' \"$line\"";
const LOUDER: &str = "if [ \"$shout\" = yes ]; then
  line=$(printf '%s' \"$line\" | tr '[:lower:]' '[:upper:]')
fi";

/// How often the model has called a tool since it was given its step.
pub(crate) fn tools_used(messages: &Value) -> usize {
    let all = messages.as_array().unwrap().iter().rev();
    let own = all.take_while(|message| !message.to_string().contains("# Your step: "));
    own.flat_map(|message| message["content"].as_array().into_iter().flatten())
        .filter(|block| block["type"] == "tool_result")
        .count()
}

/// The model: what it says for Codex, in the tools of this CLI.
pub(crate) fn model(body: &Value, index: usize) -> Value {
    let messages = &body["messages"];
    let body = json!({"input": messages});
    let mut play = if step(&body) == "build it" {
        let edit = |old: &str, new: String| json!({"tool": "Edit", "args": {"file_path": "greet.sh", "old_string": old, "new_string": new}});
        match tools_used(messages) {
            0 => json!({"tool": "Read", "args": {"file_path": "greet.sh"}}),
            1 => edit(OPTION, format!("{SHOUT}\n{OPTION}")),
            2 => edit(PRINT, format!("{LOUDER}\n{PRINT}")),
            3 => {
                json!({"tool": "Bash", "args": {"command": "sh test.sh; env", "description": "look"}})
            }
            _ => answer(
                "greet.sh --shout prints the greeting in capital letters.",
                json!({"workflow_transition": moves("advance", "implementation", "architect_review"),
                    "implementation_report": "One case and one filter.", "suggested_next_step": null}),
            ),
        }
    } else {
        team_codex::model(&body, index)
    };
    if play["say"].is_object() {
        play = json!({"tool": "StructuredOutput", "args": play["say"]});
    }
    play["usage"] = json!({"in": IN, "cached": 0, "out": OUT});
    play
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_becomes_a_commit_through_claude_code() {
    let Some(binary) = claude() else { return };
    let server = ModelServer::choosing(Box::new(model)).await;
    let agents = format!(
        "  default: claude\n  claude: {{binary: {}, model_url: {}, sandbox: {}}}",
        json!(binary),
        json!(server.base),
        if can_confine().await { "auto" } else { "\"off\"" },
    );
    let mut team = Whole::start(&agents, &SECRETS).await;
    let (_, card) = team.commits("let greet.sh --shout print capital letters").await;
    assert!(field(&card, "Agent").contains("Claude Code 2.1"), "{card}");
    let requests = server.requests();
    let tokens = (requests.len() as u64 * (IN + OUT)).to_string();
    assert!(field(&card, "Spent").contains(&tokens), "{tokens}: {card}");
    team.told_no_secret(&server, &SECRETS);
}
