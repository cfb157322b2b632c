//! Everything that goes wrong between an agent and its model, with each real agent: the run ends as what it
//! is, with a reason that a person understands, in a bounded number of requests, and leaves no process.
//!
//! A row is played by a scripted model in the words of each agent's API; `TEAMS_SCENARIO` names those to be
//! played alone: `quota`, or `CodexAcp` for all of one agent.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use teams::agents::claude::ClaudeSettings;
use teams::agents::codex::CodexSettings;
use teams::agents::{Agent, AgentOutcome, Limits, Patience, RunSpec, Sandbox};
use teams::domain::run::{AnswerFault, FailKind, RunOutcome};
use tokio::sync::Semaphore;

use crate::acp::{codex_acp, real};
use crate::claude::claude;
use crate::codex::codex;
use crate::support::agent_run::{Place, result};

/// Runs at the same time: they mostly wait.
const AT_ONCE: usize = 4;
/// How often an agent repeats a request by itself.
const RETRIES: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Codex,
    Claude,
    CodexAcp,
}

const ALL: [Who; 3] = [Who::Codex, Who::Claude, Who::CodexAcp];

/// How a run is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Result,
    Repaired,
    Fails(FailKind),
}

use End::{Fails, Repaired, Result as Good};

struct Row {
    name: &'static str,
    /// What the model does at its nth request.
    step: fn(Who, usize) -> Value,
    /// How it ends for Codex, Claude Code and codex-acp.
    ends: [End; 3],
    /// A word that the reason holds.
    reason: &'static str,
    /// What the model's answer was, and how it began, where the run ends for it.
    answer: Option<(AnswerFault, &'static str)>,
    /// Requests at most.
    requests: usize,
}

fn answer() -> Value {
    json!({"answer": result(), "usage": {"in": 100, "cached": 0, "out": 5}})
}

fn error(status: u16, kind: &str, message: &str) -> Value {
    json!({"status": status, "error": kind, "message": message})
}

fn then(first: Value, index: usize) -> Value {
    if index == 0 { first } else { answer() }
}

fn limited() -> Value {
    let mut step = error(429, "rate_limit_error", "slow down");
    step["headers"] = json!({"retry-after": "1"});
    step
}

fn row(name: &'static str, ends: [End; 3], step: fn(Who, usize) -> Value) -> Row {
    Row { name, step, ends, reason: "", answer: None, requests: 8 }
}

fn rows() -> Vec<Row> {
    use FailKind as F;
    let all = |end| [end; 3];
    vec![
        row("success", all(Good), |_, at| then(json!({"shell": "echo made > made.txt"}), at)),
        row("tool-error", all(Good), |_, at| then(json!({"shell": "echo no >&2; exit 3"}), at)),
        row("schema", all(Repaired), |_, at| {
            then(json!({"answer": {"status": "completed", "summary": "no transition"}}), at)
        }),
        Row {
            reason: "prose",
            answer: Some((AnswerFault::Prose, "I am done.")),
            ..row("prose", all(Fails(F::Contract)), |_, _| json!({"say": "I am done."}))
        },
        Row {
            reason: "empty",
            answer: Some((AnswerFault::Empty, "")),
            // Claude Code asks twice more by itself, in each of the three turns.
            requests: 9,
            ..row("empty", all(Fails(F::Contract)), |_, _| json!({"say": ""}))
        },
        Row {
            reason: "JSON",
            answer: Some((AnswerFault::NotJson, "{\"status\"")),
            ..row("half", all(Fails(F::Contract)), |_, _| json!({"say": "{\"status\": \"comp"}))
        },
        Row {
            reason: "too large",
            answer: Some((AnswerFault::TooLarge, "word word")),
            ..row("huge", all(Fails(F::Contract)), |_, _| json!({"say": "word ".repeat(100_000)}))
        },
        row("429-once", all(Good), |_, at| then(limited(), at)),
        Row {
            reason: "429",
            requests: 16,
            ..row("429-always", all(Fails(F::RateLimit)), |_, _| limited())
        },
        row("500-twice", all(Good), |_, at| match at {
            0 | 1 => error(500, "server_error", "oops"),
            _ => answer(),
        }),
        Row {
            requests: 16,
            ..row("500-always", all(Fails(F::Overloaded)), |_, _| {
                error(500, "server_error", "oops")
            })
        },
        Row { requests: 16, ..row("quota", all(Fails(F::Quota)), quota) },
        Row {
            requests: 16,
            ..row("401", all(Fails(F::Auth)), |_, _| {
                error(401, "authentication_error", "who are you")
            })
        },
        row("400", all(Fails(F::BadRequest)), |_, _| error(400, "invalid_request_error", "no")),
        row("context", all(Fails(F::Context)), |who, _| match who {
            Who::Claude => error(400, "invalid_request_error", "prompt is too long: 300000 tokens"),
            Who::Codex | Who::CodexAcp => {
                json!({"failed": {"code": "context_length_exceeded", "message": "too long"}})
            }
        }),
        row("cut-once", all(Good), |_, at| then(json!({"say": "half", "cut": true}), at)),
        Row {
            requests: 16,
            ..row(
                "cut-always",
                all(Fails(F::Transport)),
                |_, _| json!({"say": "half", "cut": true}),
            )
        },
        Row {
            reason: "too long",
            ..row("stalled", all(Fails(F::Stuck)), |_, _| json!({"say": "half", "stall": true}))
        },
        row("giant", all(Good), |_, at| {
            then(json!({"shell": "head -c 3000000 /dev/zero | tr '\\0' x"}), at)
        }),
        Row {
            reason: "same call",
            requests: 12,
            ..row("loop", all(Fails(F::Stuck)), |_, _| json!({"shell": "echo again"}))
        },
        Row {
            requests: 16,
            ..row(
                "max-tokens",
                all(Fails(F::MaxTurns)),
                |_, _| json!({"say": "and so it went on", "stop": "max_tokens"}),
            )
        },
        row("refusal", [Fails(F::Contract), Fails(F::Refusal), Fails(F::Contract)], |who, _| {
            match who {
                Who::Claude => json!({"say": "I will not.", "stop": "refusal"}),
                // There it is a kind of text.
                Who::Codex | Who::CodexAcp => json!({"refusal": "I will not."}),
            }
        }),
    ]
}

fn quota(who: Who, _: usize) -> Value {
    match who {
        Who::Claude => {
            let at = chrono::DateTime::from_timestamp(resets_at(), 0).unwrap();
            let at = at.format("%Y-%m-%d at %H:%M UTC");
            let message = format!(
                "You have reached your specified API usage limits. You will regain access on {at}."
            );
            error(400, "invalid_request_error", &message)
        }
        Who::Codex | Who::CodexAcp => {
            let mut step = error(429, "usage_limit_reached", "The usage limit has been reached");
            step["more"] = json!({"resets_at": resets_at(), "plan_type": "plus"});
            step
        }
    }
}

/// When the limit of these tests ends, to the minute, in seconds since 1970: the same for the model that says
/// it and for whoever judges what was understood, though a minute ends in between.
fn resets_at() -> i64 {
    static AT: LazyLock<i64> = LazyLock::new(|| {
        let now = teams::platform::clock::now().timestamp();
        now - now % 60 + 2 * 86_400
    });
    *AT
}

struct Agents {
    codex: PathBuf,
    claude: PathBuf,
    acp: PathBuf,
}

fn agents() -> Option<Agents> {
    let (codex, claude) = (codex()?, claude()?);
    let (acp, _) = codex_acp()?;
    Some(Agents { codex, claude, acp })
}

impl Agents {
    fn spec(&self, who: Who, place: &Place, name: &str) -> RunSpec {
        let folder = place.folder.path();
        let agent = match who {
            Who::Codex => Agent::Codex(CodexSettings {
                binary: Some(self.codex.clone()),
                model_url: Some(place.server.url.clone()),
                // What the tests run is scripted, and containers often have no user namespaces.
                sandbox: Sandbox::Off,
                retries: RETRIES,
                ..CodexSettings::default()
            }),
            Who::Claude => Agent::Claude(ClaudeSettings {
                binary: Some(self.claude.clone()),
                model_url: Some(place.server.base.clone()),
                sandbox: Sandbox::Off,
                retries: RETRIES,
                ..ClaudeSettings::default()
            }),
            Who::CodexAcp => {
                Agent::Acp(real(folder, &place.server.url, self.acp.clone(), self.codex.clone()))
            }
        };
        let mut spec = place.spec(agent, &format!("{name}-{who:?}"));
        spec.limits = Limits {
            wall_ms: 150_000,
            idle_ms: if name == "stalled" { 4_000 } else { 60_000 },
            patience: Patience { same_calls: 4, ..Patience::default() },
            ..spec.limits
        };
        spec
    }
}

/// Processes that were started below a folder.
pub(crate) fn left_in(folder: &Path) -> Vec<String> {
    let text = folder.display().to_string();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.file_name().is_some_and(|it| it != "self" && it != "thread-self"))
        .filter(|path| {
            let env = std::fs::read(path.join("environ")).unwrap_or_default();
            let here =
                std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
            here || String::from_utf8_lossy(&env).contains(&text)
        })
        .map(|path| std::fs::read_to_string(path.join("cmdline")).unwrap_or_default())
        .collect()
}

fn judge(row: &Row, who: Who, outcome: &AgentOutcome, requests: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let wanted = row.ends[ALL.iter().position(|it| *it == who).unwrap()];
    match (&outcome.outcome, wanted) {
        (RunOutcome::Result(_), Good) => {}
        // Claude Code has its model repair the answer within the turn.
        (RunOutcome::Result(_), Repaired) => {
            if outcome.repairs == 0 && requests < 2 {
                wrong.push("it was not repaired".to_owned());
            }
        }
        (RunOutcome::Failed { kind, message, until, answer }, Fails(wanted)) => {
            if *kind != wanted {
                wrong.push(format!("{kind:?}, not {wanted:?}"));
            }
            if message.len() < 8 || message.contains("panicked") || !message.contains(row.reason) {
                wrong.push("no reason that helps".to_owned());
            }
            if let Some((fault, beginning)) = row.answer
                && !answer
                    .as_ref()
                    .is_some_and(|it| it.fault == fault && it.beginning.starts_with(beginning))
            {
                wrong.push(format!("not {fault:?}: {answer:?}"));
            }
            let seconds = until.map(|at| at.millis() / 1000 - resets_at());
            if row.name == "quota" && !seconds.is_some_and(|it| (0..=120).contains(&it)) {
                wrong.push(format!("the reset is not known: {until:?}"));
            }
        }
        (_, wanted) => wrong.push(format!("not {wanted:?}")),
    }
    if requests > row.requests {
        wrong.push(format!("more than {} requests", row.requests));
    }
    wrong
}

#[expect(clippy::print_stderr, reason = "how long each took is read when a row is added")]
async fn play(agents: &Agents, row: &Row, who: Who) -> Vec<String> {
    let begun = std::time::Instant::now();
    let step = row.step;
    let place = Place::new(Box::new(move |_, index| step(who, index))).await;
    let spec = agents.spec(who, &place, row.name);
    let outcome = place.run(&spec).await;
    let requests = place.server.requests().len();
    let mut wrong = judge(row, who, &outcome, requests);
    let left = left_in(place.folder.path());
    if !left.is_empty() {
        wrong.push(format!("left behind: {left:?}"));
    }
    let name = format!("{} {who:?}", row.name);
    eprintln!("{name}: {:?}, {requests} requests", begun.elapsed());
    wrong.into_iter().map(|it| format!("{name}: {it}: {:?}", outcome.outcome)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_trouble_with_a_model_is_what_it_is_with_every_agent() {
    let Some(agents) = agents() else { return };
    let only = std::env::var("TEAMS_SCENARIO").unwrap_or_default();
    let rows = rows();
    let free = Arc::new(Semaphore::new(AT_ONCE));
    let runs = rows.iter().flat_map(|row| ALL.map(|who| (row, who)));
    let runs = runs.filter(|(row, who)| format!("{} {who:?}", row.name).contains(&only));
    let runs = runs.map(|(row, who)| {
        let (free, agents) = (Arc::clone(&free), &agents);
        async move {
            let _place = free.acquire().await.unwrap();
            play(agents, row, who).await
        }
    });
    let wrong = futures_util::future::join_all(runs).await.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
