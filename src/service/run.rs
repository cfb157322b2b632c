//! A team from start to stop.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::hub::Hub;
use super::models::{DoorError, Models};
use super::team::{Signals, Team};
use super::{
    clock as timer, control, delivery, documents, doors, effects, inbound, papers, presence, relay,
    workers,
};
use crate::agents::{Confinement, Driver, Sandbox};
use crate::assets::catalog::Catalog;
use crate::discord::{Link, LinkConfig, LinkError, VoiceMode, WantsFiles};
use crate::domain::config::{AgentKind, AgentSandbox, Voice};
use crate::domain::event::Event;
use crate::domain::ids::MessageId;
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::git::{GitError, Project};
use crate::platform::clock;
use crate::platform::files;
use crate::platform::forgetful_disk;
use crate::platform::plug;
use crate::platform::redact;
use crate::platform::spawn;
use crate::platform::tasks;
use crate::store::{Opened, Store, StoreError};
use crate::workspace::{self, ConfigError, Workspace};

/// How long a stop waits for workers.
const LET_GO: std::time::Duration = std::time::Duration::from_secs(3);
/// Where Discord is.
const DISCORD: &str = "https://discord.com";

/// Where the running team writes down which roles it serves, for `teams why`.
pub const SERVES_FILE: &str = ".teams_runtime/serves.json";

/// What to run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The workspace.
    pub root: PathBuf,
    /// Serve only this role; all of them where absent.
    pub only: Option<Role>,
    /// Also post whole relay envelopes to the relay channel.
    pub relay_debug: bool,
    /// Stop when standard input ends.
    pub parent_pipe: bool,
}

/// Why a team stops with an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The project.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Discord.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The words.
    #[error(transparent)]
    Catalog(#[from] crate::assets::catalog::CatalogError),
    /// A file.
    #[error(transparent)]
    File(#[from] files::FileError),
    /// The door to the models.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// Signals, threads.
    #[error("the system refused: {0}")]
    System(#[from] std::io::Error),
    /// A work was cut off.
    #[error("a part of the team broke off: {0}")]
    Cut(#[from] tokio::task::JoinError),
}

/// Runs a team until it is told to stop.
pub async fn run(options: RunOptions) -> Result<(), RunError> {
    spawn::hide_ourselves()?;
    let workspace = workspace::load(&options.root)?;
    workspace.refuse_placeholders()?;
    if let Some(problem) = &workspace.routing_problem {
        tracing::warn!(%problem, "policy.yaml is not in force; the built-in policy is");
    }
    let serves = served(options.only);
    let project = Project::open(&workspace.project_root(), workspace.branch().unwrap_or_default())?;
    let mut policy = workspace.policy(serves.clone(), options.relay_debug)?;
    policy.branch = project.branch().to_owned();
    let channels = workspace.channels()?;
    let catalog = Catalog::builtin()?;
    let born = born(&options.root)?;
    let root = options.root.clone();
    let opened = tasks::blocking(move || Store::open(&root, forgetful_disk::disk())).await??;
    let Opened { store, state, report } = opened;
    tell(&report);
    let store = Arc::new(store);
    let signals = Arc::new(Signals::new());
    let (hub, mut failure) = Hub::start(Arc::clone(&store), state, policy, Arc::clone(&signals));
    let asked = hub.clone();
    let wants_files = WantsFiles::when(move |message| asked.would_take_in(message));
    let config = link_config(&workspace, wants_files)?;
    let models = Models::new(doors::servers(&workspace), workspace.runtime.prices.clone())?;
    let (link, facts) = Link::start(config, catalog.clone())?;
    let slots = Team::slots(&workspace);
    let team = Arc::new(Team {
        hub,
        store: Arc::clone(&store),
        signals,
        workspace,
        project,
        channels,
        driver: Driver::default(),
        models: Arc::new(models),
        link,
        catalog,
        born,
        serves: serves.clone(),
        slots,
        git: tokio::sync::Mutex::new(()),
        closing: CancellationToken::new(),
    });
    files::write_atomic(
        &options.root.join(SERVES_FILE),
        serde_json::to_vec(&serves).unwrap_or_default(),
    )?;
    say_confinement(&team).await;
    start_workers(&team, facts);
    let started = Event::Started { announce: true, serves: serves.into_iter().collect() };
    // A hub that closed already has put its reason into `failure`.
    let _ = team.hub.submit(started).await;
    tracing::info!(workspace = %options.root.display(), "the team is up");
    let ended = wait(&mut failure, options.parent_pipe).await;
    team.closing.cancel();
    team.link.close();
    drop(team);
    // The hub ends when the last worker has let go; an agent under way keeps its worker, and is
    // adopted by the next start.
    let _ = tokio::time::timeout(LET_GO, failure).await;
    if let Err(error) = plug::write_counts() {
        tracing::warn!(%error, "the counts of kill points were not written");
    }
    ended?;
    close(store).await
}

/// When the workspace was made, as a message id: what was written before is not for this team.
fn born(root: &Path) -> Result<MessageId, RunError> {
    let path = root.join(workspace::BORN_FILE);
    let now = Timestamp::new(clock::now());
    let at = match files::read_text_if_present(&path)? {
        Some(text) => Timestamp::parse(&text).unwrap_or(now),
        None => {
            // A workspace of before this file was kept: from now on.
            files::write_durable(&path, now.to_string())?;
            now
        }
    };
    Ok(MessageId::at(at))
}

fn served(only: Option<Role>) -> BTreeSet<Role> {
    match only {
        Some(role) => [role].into(),
        None => Role::ALL.into(),
    }
}

fn link_config(workspace: &Workspace, wants_files: WantsFiles) -> Result<LinkConfig, RunError> {
    let tokens = workspace.tokens()?;
    redact::register(secrecy::ExposeSecret::expose_secret(&tokens.main));
    for token in tokens.roles.values() {
        redact::register(secrecy::ExposeSecret::expose_secret(token));
    }
    let discord = &workspace.discord;
    let voice = match discord.voice() {
        Voice::Personas => VoiceMode::Personas { token: tokens.main },
        Voice::Bots => VoiceMode::Bots { tokens: tokens.roles },
    };
    let names = discord
        .agents
        .iter()
        .filter_map(|(role, identity)| identity.name.clone().map(|name| (*role, name)))
        .collect();
    Ok(LinkConfig {
        voice,
        base_url: discord.base_url.clone().unwrap_or_else(|| DISCORD.to_owned()),
        gateway_url: discord.gateway_url.clone(),
        names,
        language: workspace.runtime.language,
        workspace: workspace.root.clone(),
        attachments: PathBuf::from("shared_workspace/attachments"),
        guilds: workspace.guilds(),
        limits: None,
        wants_files,
    })
}

/// Says what opening the store found.
fn tell(report: &crate::store::OpenReport) {
    tracing::info!(seq = report.seq, replayed = report.replayed, "the store is open");
    if let Some(older) = &report.older {
        tracing::warn!(
            backup = %older.backup,
            changed = older.repaired.len(),
            left = older.left.len(),
            "the records of an older runtime were taken over; .teams_runtime/import.json names everything"
        );
        for line in &older.repaired {
            tracing::info!(%line, "changed while taking over");
        }
        for line in &older.left {
            tracing::warn!(%line, "not carried over");
        }
    }
    for bad in &report.set_aside {
        tracing::warn!(path = %bad.path, now = %bad.now, reason = %bad.reason, "a record does not parse and was set aside");
    }
    for path in &report.overridden {
        tracing::warn!(%path, "an edit from outside was overridden by the journal after a crash");
    }
    for path in &report.missing {
        tracing::warn!(%path, "an open record is gone");
    }
}

/// Says what agents are confined by, where some agent is to be.
async fn say_confinement(team: &Team) {
    let agents = &team.workspace.runtime.agents;
    let off = |kind| match kind {
        AgentKind::Codex => agents.codex.sandbox == AgentSandbox::Off,
        AgentKind::Claude => agents.claude.sandbox == AgentSandbox::Off,
        AgentKind::Acp => agents.acp.sandbox == AgentSandbox::Off,
        AgentKind::Rehearsal => agents.rehearsal.sandbox == AgentSandbox::Off,
    };
    let kinds: BTreeSet<AgentKind> = team.serves.iter().map(|role| agents.of(*role)).collect();
    for kind in kinds.iter().filter(|kind| off(**kind)) {
        tracing::warn!(
            agent = kind.as_str(),
            "not confined: the configuration says that this machine is a sandbox"
        );
    }
    if kinds.iter().all(|kind| off(*kind)) {
        return;
    }
    match team.driver.confinement(Sandbox::Auto).await {
        Some(Confinement::Bubblewrap(_)) => tracing::info!("agents are confined by bubblewrap"),
        Some(Confinement::Landlock(strength, reason)) => {
            tracing::warn!(?strength, %reason, "agents are confined by Landlock, less strictly than by bubblewrap: `teams doctor` says what stays open to them");
        }
        Some(Confinement::Nothing(reason)) => {
            tracing::warn!(%reason, "agents cannot be confined here: Codex confines itself where it can, the others run no commands");
        }
        None => {}
    }
}

fn start_workers(team: &Arc<Team>, facts: crate::discord::Facts) {
    for role in &team.serves {
        tasks::spawn("role", workers::serve(Arc::clone(team), *role));
    }
    if team.serves.contains(&Role::Orchestrator) {
        tasks::spawn("reports", relay::apply_reports(Arc::clone(team)));
        tasks::spawn("clock", timer::keep(Arc::clone(team)));
    }
    tasks::spawn("effects", effects::execute(Arc::clone(team)));
    tasks::spawn("outbox", delivery::send(Arc::clone(team)));
    tasks::spawn("todos", documents::keep_todos(Arc::clone(team)));
    tasks::spawn("papers", papers::keep(Arc::clone(team)));
    tasks::spawn("presence", presence::keep(Arc::clone(team)));
    tasks::spawn("inbound", inbound::listen(Arc::clone(team), facts));
    tasks::spawn("drops", relay::watch(Arc::clone(team)));
    let socket = Arc::clone(team);
    tasks::spawn("control", async move {
        if let Err(error) = control::listen(socket).await {
            tracing::warn!(%error, "the control socket is closed; the command line cannot reach the team");
        }
    });
}

/// Until somebody says stop, or the store fails.
async fn wait(
    failure: &mut tokio::sync::oneshot::Receiver<StoreError>,
    parent_pipe: bool,
) -> Result<(), RunError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = parent_gone(), if parent_pipe => {}
        Ok(error) = failure => return Err(error.into()),
    }
    tracing::info!("stopping");
    Ok(())
}

/// Returns when standard input ends.
async fn parent_gone() {
    use tokio::io::AsyncReadExt as _;
    let mut input = tokio::io::stdin();
    let mut scrap = [0; 64];
    // An error says as well that nobody is there.
    while input.read(&mut scrap).await.is_ok_and(|bytes| bytes > 0) {}
}

/// A last checkpoint, once every worker has let go.
async fn close(store: Arc<Store>) -> Result<(), RunError> {
    match Arc::try_unwrap(store) {
        Ok(store) => tasks::blocking(move || store.close()).await??,
        // Something still runs; then the stop is like a crash, and the next start replays.
        Err(_) => tracing::warn!("stopped without a last checkpoint"),
    }
    Ok(())
}
