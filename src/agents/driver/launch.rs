//! How an agent's process is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::follow::access;
use super::keep::Mark;
use super::{RunError, SCHEMA};
use crate::agents::run::{Agent, RUN_SOCKET, RunSpec, Sandbox};
use crate::agents::tools::Tools;
use crate::agents::{claude, codex, confine};
use crate::platform::supervise::{self, OnEof, STDOUT_SPOOL, Spec};
use crate::platform::{files, ids, spawn};

/// Wall time of a repair turn, which runs no tools, in milliseconds.
const REPAIR_WALL_MS: u64 = 10 * 60 * 1000;

/// Asks a program for its version: `codex-cli 0.169.0` becomes `codex 0.169.0`.
pub(super) async fn probe(spec: &RunSpec, program: &Path) -> Option<String> {
    let folder = spec.run_dir.join(format!("probe-{}", ids::random_hex(8)));
    let mut probe = Spec::new(program, "/");
    probe.args = vec!["--version".to_owned()];
    probe.env = environment(spec).ok()?;
    probe.wall_ms = Some(60_000);
    let exit = supervise::run(&probe, &folder).await.ok()?;
    let text = files::read_text(&folder.join(STDOUT_SPOOL)).ok()?;
    let version = text.split_whitespace().last().filter(|_| exit.success())?;
    Some(format!("codex {version}"))
}

/// What the start of a turn depends on, beside its run.
pub(super) struct Launching<'a> {
    pub(super) mark: Mark,
    pub(super) resume: Option<&'a str>,
    pub(super) schema: &'a Value,
    pub(super) confiner: Option<&'a Path>,
}

/// How the agent's process is started for a turn.
pub(super) fn launch(
    spec: &RunSpec,
    launching: &Launching<'_>,
    stdin: PathBuf,
) -> Result<Spec, RunError> {
    let mut env = environment(spec)?;
    let access = access(spec, launching.mark);
    let web = spec.task.work.web && !launching.mark.repairing;
    let tools = Tools::of(spec)?;
    let confined = |sandbox| launching.confiner.is_some() || sandbox == Sandbox::Off;
    let (program, args) = match &spec.agent {
        Agent::Codex(config) => {
            let home = config.home(&spec.session_dir);
            files::create_dir_all(&home)?;
            env.insert("CODEX_HOME".to_owned(), home.to_string_lossy().into_owned());
            let schema = spec.run_dir.join(SCHEMA);
            let args = codex::arguments(
                config,
                &codex::Turn {
                    worktree: &spec.worktree,
                    access,
                    schema: &schema,
                    charter: &spec.task.charter,
                    socket: spec.socket.as_deref(),
                    tools: tools.as_ref(),
                    resume: launching.resume,
                    web,
                },
            );
            (config.program()?, args)
        }
        Agent::Claude(config) => {
            let home = config.home(&spec.session_dir);
            files::create_dir_all(&home)?;
            env.extend(config.environment(&spec.session_dir, confined(config.sandbox)));
            let turn = claude::Turn {
                access,
                worktree: &spec.worktree,
                schema: launching.schema,
                charter: &spec.task.charter,
                resume: launching.resume,
                web,
                confined: confined(config.sandbox),
                tools: tools.as_ref(),
            };
            let args = claude::arguments(config, &turn);
            confine(spec, launching, Some(&home), config.program()?, args)
        }
        Agent::Acp(config) => {
            if let Some(home) = &config.login_home {
                env.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
            }
            env.extend(config.env.clone());
            let args = config.command.iter().skip(1).cloned().collect();
            confine(spec, launching, config.login_home.as_deref(), config.program()?, args)
        }
        Agent::Rehearsal(_) => {
            (spawn::own_binary().map_err(RunError::OwnBinary)?, vec![spawn::REHEARSE.to_owned()])
        }
    };
    let wall = spec.limits.wall_ms;
    let mut launch = Spec::new(program, &spec.worktree);
    launch.args = args;
    launch.env = env;
    launch.stdin = Some(stdin);
    let repair = wall.min(REPAIR_WALL_MS);
    launch.wall_ms = Some(if launching.mark.repairing { repair } else { wall });
    launch.idle_ms = Some(spec.limits.idle_ms);
    launch.grace_ms = spec.limits.grace_ms;
    launch.max_line_bytes = spec.limits.line_bytes;
    launch.max_stdout_bytes = spec.limits.output_bytes;
    launch.live_stdin = match &spec.agent {
        Agent::Codex(_) => false,
        Agent::Claude(_) | Agent::Acp(_) | Agent::Rehearsal(_) => true,
    };
    launch.on_eof = match &spec.agent {
        // A run whose team was killed may end and be adopted.
        Agent::Codex(_) | Agent::Claude(_) | Agent::Rehearsal(_) => OnEof::Finish,
        // This one asks questions on its way, and there is nobody to answer.
        Agent::Acp(_) => OnEof::Kill,
    };
    Ok(launch)
}

/// A program within the sandbox, where there is one.
fn confine(
    spec: &RunSpec,
    launching: &Launching<'_>,
    home: Option<&Path>,
    program: PathBuf,
    args: Vec<String>,
) -> (PathBuf, Vec<String>) {
    match launching.confiner {
        None => (program, args),
        Some(confiner) => {
            let access = access(spec, launching.mark);
            let args = confine::arguments(spec, access, home, &program, args);
            (confiner.to_owned(), args)
        }
    }
}

/// The agent's whole environment. It hands all of it to the commands that it runs, so nothing
/// secret is in it; home and temporary folder are the session's own (`spec/agents.md` 5.6).
pub(super) fn environment(spec: &RunSpec) -> Result<BTreeMap<String, String>, RunError> {
    let home = spec.session_dir.join("home");
    let temp = spec.session_dir.join("tmp");
    files::create_dir_all(&home)?;
    files::create_dir_all(&temp)?;
    files::set_mode(&spec.session_dir, 0o700)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let socket = spec.socket.as_deref().map(|path| (RUN_SOCKET, text(path)));
    // The times that it tells are times of our zone.
    let zone = std::env::var("TZ").ok().map(|zone| ("TZ", zone));
    Ok([
        ("PATH", std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("HOME", text(&home)),
        ("TMPDIR", text(&temp)),
    ]
    .into_iter()
    .chain(socket)
    .chain(zone)
    .map(|(name, value)| (name.to_owned(), value))
    .collect())
}
