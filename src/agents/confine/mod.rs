//! The one sandbox around every agent (`spec/agents.md` 5.5): bubblewrap where it works, the kernel's Landlock
//! where it does not.
//!
//! What an agent sees is a list of what it needs and nothing else ([`walls`]): the system's programs, its own
//! program, the worktree, its session, what its role reads. The home of whoever runs the team, the workspace
//! and the rest of the project are not there at all, so that nothing has to be remembered to be hidden.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agents::run::RunSpec;
use crate::platform::ask::ask;
use crate::platform::landlock::{self, Rules, Strength};
use crate::platform::{files, redact, spawn};

mod bubblewrap;
mod places;
mod walls;

pub(super) use places::tools_environment;
pub(super) use walls::{Walls, around};

/// The port of a sandbox's own loopback on which the team's door is.
pub(super) const DOOR_PORT: u16 = 7_414;
/// How long bubblewrap may take to show that it works.
const LIMIT: Duration = Duration::from_secs(30);

/// What this machine confines agents by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// Bubblewrap: files, processes, network.
    Bubblewrap(PathBuf),
    /// Landlock: files, and with newer kernels TCP and signals. Why bubblewrap is not used comes along.
    Landlock(Strength, String),
    /// Neither; why.
    Nothing(String),
}

impl Confinement {
    /// Whether agents have a network of their own, from which the team's door is the only way out.
    #[must_use]
    pub const fn has_own_network(&self) -> bool {
        match self {
            Confinement::Bubblewrap(_) => true,
            Confinement::Landlock(..) | Confinement::Nothing(_) => false,
        }
    }
}

/// Finds out what works here, by trying it.
pub async fn find() -> Confinement {
    let refused = match bubblewrap_works().await {
        Ok(program) => return Confinement::Bubblewrap(program),
        Err(reason) => reason,
    };
    match landlock::strength() {
        Some(strength) => Confinement::Landlock(strength, refused),
        None => Confinement::Nothing(refused),
    }
}

async fn bubblewrap_works() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH");
    let program = spawn::find_program("bwrap", path.as_deref())
        .ok_or_else(|| "bubblewrap (bwrap) is not installed".to_owned())?;
    match ask(&program, &bubblewrap::TRIAL, &BTreeMap::new(), LIMIT).await {
        Ok(said) if said.code == Some(bubblewrap::TRIAL_CODE) => Ok(program),
        Ok(said) => {
            let line = said.stderr.lines().next().unwrap_or("it gave no reason");
            let line: String = redact::redact(line).chars().take(200).collect();
            Err(format!("bubblewrap does not work: {line}"))
        }
        Err(error) => Err(format!("bubblewrap could not be tried: {error}")),
    }
}

/// A program with its arguments.
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// Whether interrupts are for what is inside.
    pub(super) holds_inside: bool,
}

/// A program within the walls. `rules` is where rules can be written for it.
pub(super) fn within(
    confinement: &Confinement,
    walls: &Walls,
    rules: &Path,
    launch: Launch,
) -> Result<Launch, super::RunError> {
    let own = spawn::own_binary().map_err(super::RunError::OwnBinary)?;
    let program = launch.program.to_string_lossy().into_owned();
    Ok(match confinement {
        Confinement::Bubblewrap(bwrap) => {
            let door = walls.door.as_deref().map(|socket| (DOOR_PORT, socket));
            let mut args = bubblewrap::arguments(walls, &own);
            args.extend(crate::platform::inside::arguments(door, None, true));
            args.push(program);
            args.extend(launch.args);
            Launch { program: bwrap.clone(), args, holds_inside: true }
        }
        Confinement::Landlock(..) => {
            let wanted = Rules { ports: walls.port.into_iter().collect(), ..walls.rules(&own) };
            let text = serde_json::to_vec(&wanted)
                .map_err(|source| super::RunError::Json { what: "the sandbox", source })?;
            files::write_private(rules, text)?;
            let mut args = crate::platform::inside::arguments(None, Some(rules), false);
            args.push(program);
            args.extend(launch.args);
            Launch { program: own, args, holds_inside: false }
        }
        Confinement::Nothing(_) => launch,
    })
}

/// What a run keeps its sandbox's rules in, in a turn's folder.
pub(super) const RULES: &str = "rules.json";

/// The session's own folders of a run, which its agent may write.
pub(super) fn session_folders(spec: &RunSpec) -> [PathBuf; 1] {
    [spec.session_dir.clone()]
}
