//! A look at an agent that speaks the Agent Client Protocol: it is started, greeted, and ended before any
//! conversation is begun.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::known::{self, Age};
use super::login::{Login, environment};
use crate::agents::acp::{AcpSettings, VERSION, hello};
use crate::agents::codec::{number, text};
use crate::agents::error::RunError;
use crate::platform::redact::redact;
use crate::platform::supervise::{self, Spec, SupervisedProgram};
use crate::platform::{files, ids};

/// How long it may take to answer; the slowest one that was tried takes ten seconds.
const LIMIT: Duration = Duration::from_secs(60);
/// More than this before its answer is no answer.
const MOST: usize = 1 << 20;
/// Bytes of its stderr that are quoted.
const QUOTED: usize = 300;

/// What it answers to a greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It speaks our version of the protocol.
    Speaks {
        /// What it calls itself.
        name: String,
        /// Its version.
        version: String,
        /// Against the tried ones; `None` where it is not one of them.
        tried: Option<(known::TestedAgent, Age)>,
        /// The ways in which it can be logged in.
        ways: Vec<String>,
    },
    /// It speaks another version of the protocol.
    Version(u64),
    /// It is something else; what it said or did instead.
    Strange(String),
}

/// An agent that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcpProbe {
    /// Its program.
    pub program: PathBuf,
    /// What it answers.
    pub answer: Answer,
    /// Its login, as far as that can be known without a conversation.
    pub login: Login,
}

/// Greets the agent.
///
/// # Errors
/// Where its program is not there, or no scratch folder can be made.
pub async fn acp(settings: &AcpSettings) -> Result<AcpProbe, RunError> {
    let program = settings.program()?;
    let scratch = std::env::temp_dir().join(format!("teams-doctor-{}", ids::random_hex(12)));
    files::create_private_dir(&scratch)?;
    let mut env = environment(&scratch);
    env.extend(settings.env.clone());
    let stdin = scratch.join("greeting");
    files::write_private(&stdin, format!("{}\n", hello()))?;
    let mut spec = Spec::new(&program, "/");
    spec.args = settings.command.iter().skip(1).cloned().collect();
    spec.env = env;
    spec.stdin = Some(stdin);
    spec.live_stdin = true;
    spec.grace_ms = 1000;
    let answer = greet(&spec, &scratch.join("run")).await;
    files::remove_dir_all(&scratch)?;
    let answer = answer?;
    let login = match (&answer, &settings.login_home) {
        (_, Some(home)) if !files::exists(home) => Login::No(home.clone()),
        (Answer::Speaks { ways, .. }, _) if ways.is_empty() => Login::NotNeeded,
        // Only a conversation would tell.
        (_, _) => Login::Unknown,
    };
    Ok(AcpProbe { program, answer, login })
}

async fn greet(spec: &Spec, folder: &std::path::Path) -> Result<Answer, RunError> {
    let mut program = SupervisedProgram::start(spec, folder)?;
    let answered = tokio::time::timeout(LIMIT, async {
        let mut said = Vec::new();
        while let Some(piece) = program.read().await? {
            said.extend(piece);
            if let Some(answer) = answer(&said) {
                return Ok(Some(answer));
            }
            if said.len() > MOST {
                break;
            }
        }
        Ok::<_, RunError>(None)
    })
    .await;
    program.kill().await;
    let exit = program.wait().await?;
    let tail = supervise::stderr_tail(folder, QUOTED);
    let tail = redact(tail.trim()).split_whitespace().collect::<Vec<_>>().join(" ");
    let behind = if tail.is_empty() { String::new() } else { format!(": {tail}") };
    Ok(match answered {
        Ok(answer) => answer?.unwrap_or_else(|| {
            let error = exit.error.unwrap_or_else(|| "it ended without an answer".to_owned());
            Answer::Strange(format!("{error}{behind}"))
        }),
        Err(_) => Answer::Strange(format!("no answer within {} s{behind}", LIMIT.as_secs())),
    })
}

/// The answer to our greeting in what it has said, once it is there. Other lines are noise.
fn answer(said: &[u8]) -> Option<Answer> {
    let lines = said.split_inclusive(|byte| *byte == b'\n').filter(|it| it.ends_with(b"\n"));
    let line = lines
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .find(|line| line.get("id").and_then(Value::as_u64) == Some(0))?;
    if let Some(error) = line.get("error") {
        return Some(Answer::Strange(redact(&text(error, "message")).into_owned()));
    }
    let result = line.get("result").unwrap_or(&Value::Null);
    let version = number(result, "protocolVersion");
    if version != VERSION {
        return Some(Answer::Version(version));
    }
    let info = result.get("agentInfo").unwrap_or(&Value::Null);
    let (name, version) = (text(info, "name"), text(info, "version"));
    let ways = result.get("authMethods").and_then(Value::as_array);
    let ways = ways.into_iter().flatten().map(|way| text(way, "name"));
    let tried = known::acp(&name).zip(known::number(&version));
    Some(Answer::Speaks {
        tried: tried.map(|(tried, number)| (tried, tried.age(number))),
        ways: ways.filter(|name| !name.is_empty()).collect(),
        name,
        version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_among_other_lines() {
        let noise = "starting\n{\"jsonrpc\":\"2.0\",\"method\":\"hello\"}\n";
        assert_eq!(answer(noise.as_bytes()), None);
        let said = format!(
            "{noise}{{\"id\":0,\"result\":{{\"protocolVersion\":1,\"agentInfo\":{{\"name\":\"gemini-cli\",\
             \"version\":\"0.60.1\"}},\"authMethods\":[{{\"id\":\"k\",\"name\":\"A key\"}}]}}}}"
        );
        assert_eq!(answer(said.as_bytes()), None, "half a line");
        let Some(Answer::Speaks { tried: Some((tried, age)), ways, .. }) =
            answer(format!("{said}\n").as_bytes())
        else {
            panic!("no answer");
        };
        assert_eq!((tried.package, age), ("@google/gemini-cli", Age::TooOld));
        assert_eq!(ways, ["A key"]);
        let other = b"{\"id\":0,\"result\":{\"protocolVersion\":2}}\n";
        assert_eq!(answer(other), Some(Answer::Version(2)));
        let error = b"{\"id\":0,\"error\":{\"code\":1,\"message\":\"no\"}}\n";
        assert_eq!(answer(error), Some(Answer::Strange("no".to_owned())));
    }
}
