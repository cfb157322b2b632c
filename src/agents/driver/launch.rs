//! How an agent's process is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::keep::TurnPurpose;
use crate::agents::confine;
use crate::agents::error::RunError;
use crate::agents::run::{Agent, RunSpec};
use crate::agents::run_folder::SCHEMA;
use crate::agents::sandbox::{ProxyAddress, RUN_SOCKET, Sandbox, WriteAccess};
use crate::agents::tools::Tools;
use crate::agents::{claude, codex, login, project_settings};
use crate::platform::beneath::Folder;
use crate::platform::confinement::Confinement;
use crate::platform::places::tools_environment;
use crate::platform::supervise::{self, OnEof, STDOUT_SPOOL, Spec};
use crate::platform::{files, ids, spawn};

/// Wall time of a repair turn, which runs no tools, in milliseconds.
const REPAIR_WALL_MS: u64 = 10 * 60 * 1000;

/// What a turn may write: a repair has nothing to write.
pub(super) fn access(spec: &RunSpec, purpose: TurnPurpose) -> &WriteAccess {
    if purpose.repairing { &WriteAccess::ReadOnly } else { &spec.access }
}

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
pub(super) struct LaunchInput<'a> {
    pub(super) purpose: TurnPurpose,
    pub(super) resume: Option<&'a str>,
    pub(super) schema: &'a Value,
    pub(super) confinement: Option<&'a Confinement>,
    /// Where rules for the sandbox can be written.
    pub(super) rules: &'a Path,
}

impl LaunchInput<'_> {
    /// Whether the agent is put into a sandbox of ours.
    fn walled(&self) -> bool {
        match self.confinement {
            Some(Confinement::Bubblewrap(_) | Confinement::Landlock(..)) => true,
            Some(Confinement::Nothing(_)) | None => false,
        }
    }
}

/// How the agent's process is started for a turn.
pub(super) fn launch(
    spec: &RunSpec,
    launching: &LaunchInput<'_>,
    stdin: PathBuf,
) -> Result<Spec, RunError> {
    let mut env = environment(spec)?;
    let access = access(spec, launching.purpose);
    let web = spec.task.work.web && !launching.purpose.repairing;
    let tools = Tools::of(spec.socket.as_deref())?;
    let confined = launching.walled() || spec.agent.sandbox() == Sandbox::Off;
    if launching.walled() {
        env.extend(tools_environment());
        env.extend(spec.surroundings.prepared.clone());
    }
    let pinned = project_settings::are_pinned(&spec.worktree, &spec.surroundings.pinned);
    let proxy = spec.surroundings.proxy.as_ref();
    if let Some(proxy) = proxy.filter(|proxy| proxy.leads_out) {
        env.extend(proxies(proxy));
    }
    // What the agent keeps beside its session's folder.
    let mut keeps = Vec::new();
    // What it sees at another place than its own.
    let mut placed = Vec::new();
    let (program, args) = match &spec.agent {
        Agent::Codex(config) => {
            let home = Folder::open(&spec.session_dir)?.claim_folder(codex::HOME)?;
            env.insert("CODEX_HOME".to_owned(), home.path().to_string_lossy().into_owned());
            if let Some(shared) = &config.login_home {
                login::link_codex(&home, shared)?;
                keeps.push(shared.clone());
            }
            env.extend(config.environment(proxy));
            let schema = spec.run_dir.join(SCHEMA);
            let args = codex::arguments(
                config,
                &codex::Turn {
                    worktree: spec.worktree_seen(),
                    access,
                    schema: &schema,
                    charter: &spec.task.charter,
                    env: &env,
                    prepared: &spec.surroundings.prepared,
                    tools: tools.as_ref(),
                    resume: launching.resume,
                    web,
                    confined,
                    pinned,
                    proxy,
                },
            );
            (config.program()?, args)
        }
        Agent::Claude(config) => {
            let own = Folder::open(&spec.session_dir)?.claim_folder(claude::HOME)?;
            if let Some(shared) = &config.login_home {
                files::create_dir_all(shared)?;
                if matches!(launching.confinement, Some(Confinement::Bubblewrap(_))) {
                    placed = login::claude_conversation(&own, shared)?;
                }
                keeps.push(shared.clone());
            }
            env.extend(config.environment(&spec.session_dir, confined, proxy));
            let turn = claude::Turn {
                access,
                worktree: spec.worktree_seen(),
                has_servers: files::exists(&spec.worktree.join(claude::SERVERS)),
                schema: launching.schema,
                charter: &spec.task.charter,
                resume: launching.resume,
                web,
                confined,
                tools: tools.as_ref(),
                pinned,
            };
            (config.program()?, claude::arguments(config, &turn))
        }
        Agent::Acp(config) => {
            if let Some(home) = &config.login_home {
                env.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
                keeps.push(home.clone());
            }
            env.extend(config.environment(proxy));
            let args = config.command.iter().skip(1).cloned().collect();
            (config.program()?, args)
        }
        Agent::Rehearsal(_) => {
            let own = spawn::own_binary().map_err(RunError::OwnBinary)?;
            (own, vec![spawn::REHEARSE.to_owned()])
        }
    };
    let plain = confine::Launch { program, args, holds_inside: false };
    let started = match launching.confinement {
        None => plain,
        Some(confinement) => {
            // A script that an interpreter plays, and what is named by path, belongs to the program.
            let named = plain.args.iter().map(PathBuf::from).filter(|path| path.is_absolute());
            let programs: Vec<PathBuf> = match &spec.agent {
                Agent::Acp(_) => {
                    let told = env.values().map(PathBuf::from).filter(|path| path.is_absolute());
                    let told =
                        told.filter(|path| files::metadata(path).is_ok_and(|it| it.is_file()));
                    [plain.program.clone()].into_iter().chain(named).chain(told).collect()
                }
                Agent::Codex(_) | Agent::Claude(_) => vec![plain.program.clone()],
                Agent::Rehearsal(_) => Vec::new(),
            };
            // A script is a file, and what lies beside it belongs to somebody else.
            let script = match &spec.agent {
                Agent::Rehearsal(config) => config.script.clone(),
                Agent::Codex(_) | Agent::Claude(_) | Agent::Acp(_) => None,
            };
            let mut mounts = confine::around(spec, access, &keeps, &programs)
                .with_file(script)
                .with_folders(placed);
            // The others are told not to read them.
            if matches!(spec.agent, Agent::Acp(_)) && !pinned {
                mounts = mounts.without(project_settings::places(&spec.worktree));
            }
            confine::within(confinement, &mounts, launching.rules, plain)?
        }
    };
    let wall = spec.limits.wall_ms;
    let mut launch = Spec::new(started.program, &spec.worktree);
    launch.args = started.args;
    launch.holds_inside = started.holds_inside;
    launch.env = env;
    launch.stdin = Some(stdin);
    let repair = wall.min(REPAIR_WALL_MS);
    launch.wall_ms = Some(if launching.purpose.repairing { repair } else { wall });
    launch.idle_ms = Some(spec.limits.idle_ms);
    launch.traffic = spec.surroundings.proxy.as_ref().and_then(|proxy| proxy.traffic.clone());
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
    let project = spec.surroundings.project.as_ref();
    launch.locks = project.map(|view| view.locks.clone()).unwrap_or_default();
    Ok(launch)
}

/// How programs are told of the way out. What is on the sandbox's own loopback needs none.
fn proxies(proxy: &ProxyAddress) -> Vec<(String, String)> {
    let names =
        ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    let local = ["NO_PROXY", "no_proxy"].map(|name| (name, "127.0.0.1,localhost,::1".to_owned()));
    let all = names.map(|name| (name, proxy.proxy_url())).into_iter().chain(local);
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The agent's whole environment. It hands all of it to the commands that it runs, so nothing
/// secret is in it; home and temporary folder are the session's own (`spec/agents.md` 5.6).
pub(super) fn environment(spec: &RunSpec) -> Result<BTreeMap<String, String>, RunError> {
    files::create_dir_all(&spec.session_dir)?;
    let session = Folder::open(&spec.session_dir)?;
    // An earlier run may have left a link in their place.
    let [home, temp] = [session.claim_folder("home")?, session.claim_folder("tmp")?];
    session.set_mode(0o700)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let socket = spec.socket.as_deref().map(|path| (RUN_SOCKET, text(path)));
    // The times that it tells are times of our zone.
    let zone = std::env::var("TZ").ok().map(|zone| ("TZ", zone));
    Ok([
        ("PATH", std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("HOME", text(home.path())),
        ("TMPDIR", text(temp.path())),
    ]
    .into_iter()
    .chain(socket)
    .chain(zone)
    .map(|(name, value)| (name.to_owned(), value))
    .collect())
}
