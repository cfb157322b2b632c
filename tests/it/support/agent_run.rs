//! One run of a real agent through the driver, against a scripted model.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use teams::agents::{
    Agent, AgentOutcome, Driver, Limits, PersonMessage, RunSpec, Task, Watch, Words, WriteAccess,
};
use teams::domain::budget::{Allowance, SharedBudgets};
use teams::domain::config::ModelApi;
use teams::domain::ids::{MessageId, RunId};
use teams::domain::lifecycle::StepName;
use teams::domain::role::Role;
use teams::domain::run::{FailKind, RunOutcome};
use teams::domain::time::Timestamp;
use teams::model_proxy::{
    AllowedHosts, ModelProxy, ModelServers, ProxyOptions, RunAllowance, Server,
};
use teams::platform::spawn::set_own_binary;

use super::CONTRACT;
use super::model_server::{Choose, ModelServer};

/// A generous bound: reached only by a failure.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened")
}

/// A worktree with one file, and a model.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: ModelServer,
    /// What a run may spend.
    pub(crate) allowance: Allowance,
}

impl Place {
    /// With a model that plays these steps.
    pub(crate) async fn playing(steps: Value) -> Place {
        Place::with(ModelServer::start(steps).await)
    }

    pub(crate) async fn new(choose: Choose) -> Place {
        Place::with(ModelServer::choosing(choose).await)
    }

    fn with(server: ModelServer) -> Place {
        set_own_binary(env!("CARGO_BIN_EXE_teams").into());
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tree")).unwrap();
        std::fs::write(folder.path().join("tree/hello.txt"), "hello\n").unwrap();
        Place { folder, server, allowance: Allowance::default() }
    }

    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join("tree").join(name)).unwrap()
    }

    /// A run of the developer.
    pub(crate) fn spec(&self, agent: Agent, run: &str) -> RunSpec {
        let root = self.folder.path();
        RunSpec {
            run_id: RunId::parse(run).unwrap(),
            run_dir: root.join("runs").join(run),
            session_dir: root.join("session"),
            worktree: root.join("tree"),
            access: WriteAccess::Worktree,
            agent,
            task: Task {
                charter: "You say \"quoted\" things.\nOn two lines.".to_owned(),
                ..Task::first(
                    Role::Developer,
                    Some(StepName::of("developer_build")),
                    "20260101-00000001",
                    PersonMessage::new("Mina", "say good day"),
                )
            },
            resume: None,
            limits: Limits::default(),
            socket: None,
            surroundings: Default::default(),
            templates: Default::default(),
        }
    }

    /// See [`proxy_to`].
    pub(crate) async fn proxy(&self, spec: &mut RunSpec) -> ModelProxy {
        proxy_to(&self.server, spec, self.allowance).await
    }

    pub(crate) async fn run(&self, spec: &RunSpec) -> AgentOutcome {
        in_time(self.watched(spec, &Watch::default())).await
    }

    pub(crate) async fn watched(&self, spec: &RunSpec, watch: &Watch) -> AgentOutcome {
        let outcome = Driver::default().run(spec, &CONTRACT, watch).await;
        capture(spec);
        outcome
    }
}

/// How the recordings in `tests/data` were made: with `TEAMS_CAPTURE`, what an agent wrote in each turn of a run
/// is put there, its first turn under the run's name.
fn capture(spec: &RunSpec) {
    let Some(folder) = std::env::var_os("TEAMS_CAPTURE").map(PathBuf::from) else { return };
    let name = spec.run_id.as_str();
    for turn in 0.. {
        let spool = spec.run_dir.join(format!("turn-{turn}/stdout.spool"));
        if !spool.exists() {
            return;
        }
        let name = if turn == 0 { format!("{name}.jsonl") } else { format!("{name}-{turn}.jsonl") };
        std::fs::copy(spool, folder.join(name)).unwrap();
    }
}

/// The proxy of a run to the model, as the team would open it; its agent has no other way.
pub(crate) async fn proxy_to(
    server: &ModelServer,
    spec: &mut RunSpec,
    allowance: Allowance,
) -> ModelProxy {
    let (name, api, base_url) = match &mut spec.agent {
        Agent::Codex(config) => {
            config.server = Some("codex".to_owned());
            ("codex", ModelApi::Responses, server.url.clone())
        }
        Agent::Claude(config) => {
            config.server = Some("claude".to_owned());
            ("claude", ModelApi::Messages, server.base.clone())
        }
        Agent::Acp(_) => ("acp", ModelApi::Responses, server.url.clone()),
        Agent::Rehearsal(_) => panic!("it needs no model"),
    };
    let behind = Server { api, base_url, key: None };
    let models = ModelServers::new([(name.to_owned(), behind)].into(), Default::default()).unwrap();
    let sockets = spec.session_dir.with_file_name(format!("proxy-{}", spec.run_id.as_str()));
    std::fs::create_dir(&sockets).unwrap();
    let confinement = Driver::default().confinement(spec.agent.sandbox()).await.cloned();
    let opening = ProxyOptions {
        socket: sockets.join("door.sock"),
        port: !confinement.is_some_and(|it| it.has_own_network()),
        run_dir: spec.run_dir.clone(),
        servers: [name.to_owned()].into(),
        outside: AllowedHosts::Nothing,
        run: RunAllowance {
            run_id: spec.run_id.clone(),
            generation: 1,
            began: Timestamp::from_millis(0),
            model: String::new(),
            window: 200_000,
            allowance,
            shared: SharedBudgets::default(),
        },
        refused: tokio::sync::mpsc::channel(1).0,
    };
    let proxy = Arc::new(models).open(opening).await.unwrap();
    spec.surroundings.proxy = Some(proxy.address().clone());
    proxy
}

/// A result that the small contract takes.
pub(crate) fn result() -> Value {
    json!({"status": "completed", "summary": "did it", "proposals": {"workflow_transition": {}}})
}

pub(crate) fn failure(outcome: &AgentOutcome) -> FailKind {
    match &outcome.outcome {
        RunOutcome::Failed { kind, .. } => *kind,
        RunOutcome::Result(result) => panic!("a result: {result:?}"),
    }
}

pub(crate) fn words(id: u64, text: &str) -> Words {
    Words { id: MessageId(id), said: PersonMessage::new("Mina", text) }
}
