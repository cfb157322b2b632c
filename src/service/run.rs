//! A team from start to stop.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use secrecy::SecretString;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::access::HubAccess;
use super::contract::CONTRACT;
use super::hub::{Hub, HubError};
use super::proof_records::ProofRecords;
use super::run_inboxes::RunInboxes;
use super::signals::Signals;
use super::team::Team;
use super::{
    clock as timer, control, delivery, dispatch, documents, early_proofs, effects, inbound, papers,
    presence, put_away, relay, retention,
};
use crate::agents::Confinement;
use crate::assets::catalog::Catalog;
use crate::discord::{Link, LinkConfig, LinkError, VoiceMode};
use crate::domain::attachment::ATTACHMENTS;
use crate::domain::config::{AgentKind, Sandbox, Voice};
use crate::domain::event::Event;
use crate::domain::ids::{BootId, IdError, MessageId};
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::git::GitError;
use crate::import::older;
use crate::model_proxy::{self, ModelProxyError, ModelServers};
use crate::onboarding;
use crate::platform::bad_transport;
use crate::platform::clock;
use crate::platform::files;
use crate::platform::forgetful_disk;
use crate::platform::ids;
use crate::platform::plug;
use crate::platform::redact;
use crate::platform::spawn;
use crate::platform::tasks::{self, TaskFailure, TaskFailures, TaskGroup};
use crate::store::{self, OpenedStore, Store, StoreError};
use crate::worker::{self, HUB, LOCAL_WORKER, Worker, WorkerParts};
use crate::workspace::{self, ConfigError, Workspace};

/// How long a stop waits for workers.
const LET_GO: std::time::Duration = std::time::Duration::from_secs(3);
/// How long a start waits for a team that may be ending, and how often it looks.
const DYING: std::time::Duration = std::time::Duration::from_secs(5);
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(50);
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
    /// Take over the records of an older runtime, where that is what there is.
    pub take_over: bool,
}

/// Why a team stops with an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The records are those of an older runtime, and nobody has said that they are to be taken over.
    #[error(
        "the records here are of an older runtime: taking them over makes {changes} changes and leaves {left} behind"
    )]
    Older {
        /// Records that would be changed.
        changes: usize,
        /// Records that would not be carried over.
        left: usize,
    },
    /// The records of an older runtime.
    #[error(transparent)]
    Import(#[from] older::ImportError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The project.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Discord.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// An id.
    #[error("no id could be made: {0}")]
    Id(#[from] IdError),
    /// The words.
    #[error(transparent)]
    Catalog(#[from] crate::assets::catalog::CatalogError),
    /// A file.
    #[error(transparent)]
    File(#[from] files::FileError),
    /// The way to the models.
    #[error(transparent)]
    ModelProxy(#[from] ModelProxyError),
    /// Signals, threads.
    #[error("the system refused: {0}")]
    System(#[from] std::io::Error),
    /// A work was cut off.
    #[error("a part of the team broke off: {0}")]
    Cut(#[from] tokio::task::JoinError),
    /// A task that the team cannot do without; it has stopped in order.
    #[error("{0} of the team; it has stopped, and goes on with the next start")]
    Task(TaskFailure),
}

/// Why a team stops.
enum Stop {
    /// Somebody said so.
    Told,
    /// The store failed: the next start recovers.
    Store(StoreError),
    /// A task broke off.
    Task(TaskFailure),
}

/// Runs a team until it is told to stop, or one of its tasks breaks off.
pub async fn run(options: RunOptions) -> Result<(), RunError> {
    let closing = CancellationToken::new();
    let (group, failures) = TaskGroup::new(closing.clone());
    group.run(serve(options, closing, failures)).await
}

async fn serve(
    options: RunOptions,
    closing: CancellationToken,
    mut failures: TaskFailures,
) -> Result<(), RunError> {
    spawn::hide_ourselves()?;
    let workspace = workspace::load(&options.root)?;
    workspace.refuse_placeholders()?;
    if let Some(problem) = &workspace.policy_problem {
        tracing::warn!(%problem, "policy.yaml cannot be read and is not in force");
    }
    let serves = served(options.only);
    let project = onboarding::open_project(&workspace)?;
    let mut policy = workspace.policy(serves.clone(), options.relay_debug)?;
    policy.branch = project.branch().to_owned();
    let channels = workspace.channels()?;
    let catalog = Catalog::builtin()?;
    // Before anything is changed: what would stop the start below.
    workspace.tokens()?;
    let key = |name: &str| workspace.environment.get(name).map(SecretString::from);
    let servers = model_proxy::configured(&workspace.runtime, key);
    let models = ModelServers::new(servers, workspace.runtime.prices.clone())?;
    if !options.take_over {
        refuse_older(&options.root)?;
    }
    let opened = open_store(&options.root).await?;
    let born = born(&options.root)?;
    let OpenedStore { store, state, report } = opened;
    tell(&report);
    let store = Arc::new(store);
    let signals = Arc::new(Signals::new());
    let (in_use, mut released) = mpsc::channel(1);
    let (hub, failed) =
        Hub::start(Arc::clone(&store), state, policy, Arc::clone(&signals), in_use.clone());
    let asked = hub.clone();
    let config = link_config(&workspace, Arc::new(HubAccess(asked)))?;
    let (link, facts) = Link::start(config, catalog.clone())?;
    let capacity = workspace.capacity();
    let proofs = ProofRecords::of(&workspace.state_dir());
    let team = Arc::new(Team {
        hub,
        store: Arc::clone(&store),
        signals,
        workspace,
        project,
        channels,
        driver: Arc::default(),
        transport: bad_transport::transport(),
        inboxes: RunInboxes::default(),
        models: Arc::new(models),
        link,
        catalog,
        born,
        look_back: Mutex::default(),
        serves: serves.clone(),
        slots: Arc::new(Semaphore::new(capacity.runs)),
        check_slots: Semaphore::new(capacity.checks),
        git: Arc::default(),
        elsewhere: tokio::sync::Mutex::default(),
        base: tokio::sync::Mutex::default(),
        proofs,
        closing,
        _in_use: in_use,
    });
    let told = serde_json::to_vec(&serves).unwrap_or_default();
    if let Err(error) = files::write_atomic(&options.root.join(SERVES_FILE), told) {
        tracing::warn!(%error, "`teams why` does not know which roles are served");
    }
    say_confinement(&team).await;
    // Before anybody is told that the team is up: whoever is may tell it to stop.
    let stop_signals = StopSignals::listen()?;
    start_workers(&team, facts)?;
    let started = Event::Started { announce: true, serves: serves.into_iter().collect() };
    // A hub that closed already has said why; where the journal has no room, it is said until there is.
    if let Err(HubError::NoSpace) = team.hub.submit(started.clone()).await {
        let team = Arc::clone(&team);
        tasks::spawn("started", async move { team.insist(started).await.map(drop) });
    }
    tracing::info!(workspace = %options.root.display(), "the team is up");
    let stop = wait(failed, &mut failures, stop_signals, options.parent_pipe).await;
    team.closing.cancel();
    team.link.close();
    drop(team);
    // An agent under way keeps its worker, and is adopted by the next start.
    let _ = tokio::time::timeout(LET_GO, released.recv()).await;
    if let Err(error) = plug::write_counts() {
        tracing::warn!(%error, "the counts of kill points were not written");
    }
    match stop {
        Stop::Store(error) => Err(error.into()),
        Stop::Told => close(store).await,
        Stop::Task(failure) => {
            if let Err(error) = close(store).await {
                tracing::error!(%error, "the store was not closed");
            }
            Err(RunError::Task(failures.cause_of(failure)))
        }
    }
}

fn refuse_older(root: &Path) -> Result<(), RunError> {
    match older::preview(root)?.map(|converted| converted.notes) {
        // One that was begun goes on by itself.
        Some(notes) if notes.backup.is_empty() => {
            let (changes, left) = (notes.repaired.len(), notes.left.len());
            Err(RunError::Older { changes, left })
        }
        Some(_) | None => Ok(()),
    }
}

/// Opens the store, once what an older runtime left is taken over. A team that was killed just now may still be ending: it is waited for.
async fn open_store(root: &Path) -> Result<OpenedStore, RunError> {
    let until = tokio::time::Instant::now() + DYING;
    let mut told = false;
    loop {
        let place = root.to_owned();
        let opened = tasks::blocking(move || open_records(&place)).await?;
        match opened {
            Err(RunError::Store(StoreError::Locked { by, .. }))
                if tokio::time::Instant::now() < until =>
            {
                if !std::mem::replace(&mut told, true) {
                    let seconds = DYING.as_secs();
                    tracing::warn!(
                        ?by,
                        "another process still has the workspace; it may be ending, so up to {seconds} s are waited"
                    );
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            opened => return opened,
        }
    }
}

fn open_records(root: &Path) -> Result<OpenedStore, RunError> {
    let disk = forgetful_disk::disk();
    let lock = store::hold(root, &*disk)?;
    if let Some(notes) = older::take_over(&*disk, root)? {
        tell_older(&notes);
    }
    Ok(Store::open_held(lock, root, disk)?)
}

/// When the workspace was made, as a message id: what was written before is not for this team.
fn born(root: &Path) -> Result<MessageId, RunError> {
    let path = root.join(workspace::BORN_FILE);
    let now = Timestamp::new(clock::now());
    let at = match files::read_text_if_present(&path)? {
        // The clock may have been ahead when it was made.
        Some(text) => Timestamp::parse(&text).unwrap_or(now).min(now),
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

fn link_config(workspace: &Workspace, access: Arc<HubAccess>) -> Result<LinkConfig, RunError> {
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
        zone: workspace.runtime.sprint.timezone,
        workspace: workspace.root.clone(),
        attachments: PathBuf::from(ATTACHMENTS),
        guilds: workspace.guilds(),
        limits: None,
        access,
    })
}

/// Says what was taken over from the older runtime.
fn tell_older(notes: &older::Notes) {
    tracing::warn!(
        backup = %notes.backup,
        changed = notes.repaired.len(),
        left = notes.left.len(),
        "the records of an older runtime were taken over; .teams_runtime/import.json names everything"
    );
    for line in &notes.repaired {
        tracing::info!(%line, "changed while taking over");
    }
    for line in &notes.left {
        tracing::warn!(%line, "not carried over");
    }
}

/// Says what opening the store found.
fn tell(report: &crate::store::OpenReport) {
    tracing::info!(seq = report.seq, replayed = report.replayed, "the store is open");
    if let Some(backup) = &report.migrated {
        tracing::warn!(%backup, "the records of an earlier build were brought up to date; this is a copy of them as they were");
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
        AgentKind::Codex => agents.codex.sandbox == Sandbox::Off,
        AgentKind::Claude => agents.claude.sandbox == Sandbox::Off,
        AgentKind::Acp => agents.acp.sandbox == Sandbox::Off,
        AgentKind::Rehearsal => agents.rehearsal.sandbox == Sandbox::Off,
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
            tracing::warn!(%reason, "agents cannot be confined here, and none but the rehearsal is started: install bubblewrap, or set `sandbox: \"off\"` where the machine is a sandbox itself");
        }
        None => {}
    }
}

fn start_workers(team: &Arc<Team>, facts: crate::discord::Facts) -> Result<(), RunError> {
    start_worker(team)?;
    let messages = team.transport.listen(HUB);
    tasks::spawn_needed("reports-of-runs", dispatch::listen(Arc::clone(team), messages));
    for role in &team.serves {
        tasks::spawn_needed("role", dispatch::serve(Arc::clone(team), *role));
    }
    if team.serves.contains(&Role::Orchestrator) {
        tasks::spawn_needed("reports", relay::apply_reports(Arc::clone(team)));
        tasks::spawn_needed("clock", timer::keep(Arc::clone(team)));
    }
    tasks::spawn_needed("effects", effects::execute(Arc::clone(team)));
    tasks::spawn_needed("early-proofs", early_proofs::keep(Arc::clone(team)));
    tasks::spawn_needed("outbox", delivery::send(Arc::clone(team)));
    tasks::spawn_needed("todos", documents::keep_todos(Arc::clone(team)));
    tasks::spawn_needed("papers", papers::keep(Arc::clone(team)));
    tasks::spawn_needed("presence", presence::keep(Arc::clone(team)));
    tasks::spawn_needed("put_away", put_away::keep(Arc::clone(team)));
    tasks::spawn_needed("retention", retention::keep(Arc::clone(team)));
    tasks::spawn_needed("inbound", inbound::listen(Arc::clone(team), facts));
    tasks::spawn_needed("drops", relay::watch(Arc::clone(team)));
    // Whoever hears that the team is up may call it.
    let control = control::bind(team);
    tasks::spawn_needed("control", control::listen(Arc::clone(team), control));
    Ok(())
}

/// The worker of this process.
fn start_worker(team: &Arc<Team>) -> Result<(), RunError> {
    let worker = Worker::new(WorkerParts {
        boot: next_boot(team)?,
        driver: Arc::clone(&team.driver),
        models: Arc::clone(&team.models),
        contract: CONTRACT,
        project: team.project.clone(),
        git: Arc::clone(&team.git),
        transport: Arc::clone(&team.transport),
        closing: team.closing.clone(),
    });
    let messages = team.transport.listen(LOCAL_WORKER);
    tasks::spawn_needed("worker", worker::serve(Arc::new(worker), messages));
    Ok(())
}

/// A start that is later than each that holds a run, also where the clock of the machine was set back since.
fn next_boot(team: &Team) -> Result<BootId, IdError> {
    let fresh = BootId::parse(&ids::uuid_v7().to_string())?;
    let holders = |state: &State| state.runs.values().filter_map(|run| run.granted.clone()).max();
    let held = team.hub.read(holders).filter(|held| *held >= fresh);
    match held.and_then(|held| ids::uuid_after(held.as_str())) {
        Some(next) => BootId::parse(&next.to_string()),
        None => Ok(fresh),
    }
}

/// The signals by which a team is told to stop.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed, or the connection to it.
    hangup: Signal,
}

impl StopSignals {
    fn listen() -> std::io::Result<StopSignals> {
        Ok(StopSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// Until somebody says stop, the store fails, or a task breaks off.
async fn wait(
    failed: oneshot::Receiver<StoreError>,
    failures: &mut TaskFailures,
    mut signals: StopSignals,
    parent_pipe: bool,
) -> Stop {
    let stop = tokio::select! {
        biased;
        Ok(error) = failed => Stop::Store(error),
        failure = failures.next() => Stop::Task(failure),
        _ = signals.interrupt.recv() => Stop::Told,
        _ = signals.hangup.recv() => Stop::Told,
        _ = signals.terminate.recv() => Stop::Told,
        () = parent_gone(), if parent_pipe => Stop::Told,
    };
    tracing::info!("stopping");
    stop
}

/// Returns when standard input ends.
async fn parent_gone() {
    use tokio::io::AsyncReadExt as _;
    let mut input = tokio::io::stdin();
    let mut scrap = [0; 64];
    // An error says as well that nobody is there.
    while input.read(&mut scrap).await.is_ok_and(|bytes| bytes > 0) {}
}

/// A last checkpoint, also where something still runs that has not let go: what it would tell is looked at by the next
/// start, as after a crash.
async fn close(store: Arc<Store>) -> Result<(), RunError> {
    tasks::blocking(move || match Arc::try_unwrap(store) {
        Ok(store) => store.close(),
        Err(store) => store.finish(),
    })
    .await??;
    Ok(())
}
