//! Settings, hooks and tool servers that a repository brings along: what is not pinned does nothing, with the real
//! agents in the sandbox.

use serde_json::{Value, json};
use teams::agents::acp::AcpSettings;
use teams::agents::claude::ClaudeSettings;
use teams::agents::codex::CodexSettings;
use teams::agents::{Agent, project_settings};
use teams::domain::run::RunOutcome;

use crate::sandbox::bubblewrap;
use crate::support::agent_run::{Place, result};

/// One run of an agent with `files` in the tree, pinned or not.
async fn run(agent: &Agent, name: &str, pinned: bool, files: &[(&str, Value)]) -> Place {
    let place = Place::new(Box::new(|_: &Value, index| match index {
        0 => json!({"shell": "cat .codex/config.toml .claude/settings.json > seen.txt"}),
        _ => json!({"answer": result()}),
    }))
    .await;
    let mut spec = place.spec(agent.clone(), name);
    let tree = spec.worktree.clone();
    for (path, content) in files {
        let path = tree.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        std::fs::write(path, text.replace("{tree}", &tree.to_string_lossy())).unwrap();
    }
    if pinned {
        spec.surroundings.pinned = project_settings::in_tree(&tree).unwrap();
    }
    let _proxy = place.proxy(&mut spec).await;
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{name}: {outcome:?}");
    place
}

fn is_there(place: &Place, name: &str) -> bool {
    place.folder.path().join("tree").join(name).exists()
}

fn marks(name: &str) -> Value {
    json!({"command": "/bin/sh", "args": ["-c", format!("touch {{tree}}/{name}")]})
}

#[tokio::test]
async fn codex_starts_no_server_of_the_project_unless_it_is_pinned() {
    let Some(binary) = crate::codex::codex() else { return };
    if !bubblewrap().await {
        return;
    }
    let agent = Agent::Codex(CodexSettings { binary: Some(binary), ..CodexSettings::default() });
    let config =
        "[mcp_servers.mark]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"touch {tree}/served\"]\n";
    let files = [(".codex/config.toml", json!(config))];
    for pinned in [false, true] {
        let place = run(&agent, "codex", pinned, &files).await;
        assert_eq!(is_there(&place, "served"), pinned);
    }
}

#[tokio::test]
async fn claude_code_runs_no_hook_and_no_server_of_the_project_unless_they_are_pinned() {
    let Some(binary) = crate::claude::claude() else { return };
    if !bubblewrap().await {
        return;
    }
    let agent = Agent::Claude(ClaudeSettings { binary: Some(binary), ..ClaudeSettings::default() });
    let hook = json!({"type": "command", "command": "touch {tree}/hooked"});
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
    let files = [
        (".claude/settings.json", settings),
        (".mcp.json", json!({"mcpServers": {"mark": marks("served")}})),
    ];
    for pinned in [false, true] {
        let place = run(&agent, "claude", pinned, &files).await;
        assert_eq!((is_there(&place, "hooked"), is_there(&place, "served")), (pinned, pinned));
    }
}

#[tokio::test]
async fn an_agent_of_the_protocol_does_not_see_them_unless_they_are_pinned() {
    let Some((script, _)) = crate::acp::codex_acp() else { return };
    if !bubblewrap().await {
        return;
    }
    let agent = Agent::Acp(AcpSettings {
        command: vec!["node".to_owned(), script.to_string_lossy().into_owned()],
        server: Some("acp".to_owned()),
        mode: Some("agent-full-access".to_owned()),
        ..AcpSettings::default()
    });
    let files = [(".codex/config.toml", json!("# ours\n"))];
    for pinned in [false, true] {
        let place = run(&agent, "acp", pinned, &files).await;
        assert_eq!(place.file("seen.txt").contains("# ours"), pinned);
        let own = std::fs::read_to_string(place.folder.path().join("tree/.codex/config.toml"));
        assert_eq!(own.unwrap(), "# ours\n", "the tree itself is as it was");
    }
}
