//! How an agent's process is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{RunError, SCHEMA};
use crate::agents::codex;
use crate::agents::run::{Access, Agent, RUN_SOCKET, RunSpec};
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

/// How the agent's process is started for a turn.
pub(super) fn launch(
    spec: &RunSpec,
    number: u32,
    resume: Option<&str>,
    stdin: PathBuf,
) -> Result<Spec, RunError> {
    let mut env = environment(spec)?;
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
                    // A repair has nothing to write.
                    access: if number == 0 { &spec.access } else { &Access::ReadOnly },
                    schema: &schema,
                    charter: &spec.task.charter,
                    socket: spec.socket.as_deref(),
                    resume,
                    web: spec.task.work.web && number == 0,
                },
            );
            (config.program()?, args)
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
    launch.wall_ms = Some(if number == 0 { wall } else { wall.min(REPAIR_WALL_MS) });
    launch.idle_ms = Some(spec.limits.idle_ms);
    launch.grace_ms = spec.limits.grace_ms;
    launch.max_line_bytes = spec.limits.line_bytes;
    launch.max_stdout_bytes = spec.limits.output_bytes;
    // A run whose team was killed may end and be adopted.
    launch.on_eof = OnEof::Finish;
    Ok(launch)
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
    Ok([
        ("PATH", std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("HOME", text(&home)),
        ("TMPDIR", text(&temp)),
    ]
    .into_iter()
    .chain(socket)
    .map(|(name, value)| (name.to_owned(), value))
    .collect())
}
