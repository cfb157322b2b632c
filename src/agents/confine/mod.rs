//! The one sandbox around every agent (`spec/agents.md` 5.5): bubblewrap where it works, the kernel's Landlock
//! where it does not.
//!
//! What an agent sees is a list of what it needs and nothing else ([`mounts`]): the system's programs, its own
//! program, the worktree, its session, what its role reads. The home of whoever runs the team, the workspace
//! and the rest of the project are not there at all, so that nothing has to be remembered to be hidden.

use std::path::{Path, PathBuf};

use crate::agents::sandbox::PROXY_PORT;
use crate::platform::confinement::Confinement;
use crate::platform::landlock::Rules;
use crate::platform::{files, layers, places, spawn};

mod bubblewrap;
mod mounts;

pub(crate) use mounts::REPOSITORY;
pub(super) use mounts::{SandboxMounts, around};

/// A program with its arguments.
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// Whether interrupts are for what is inside.
    pub(super) holds_inside: bool,
}

/// A program in its sandbox. `rules` is where rules can be written for it.
pub(super) fn within(
    confinement: &Confinement,
    mounts: &SandboxMounts,
    rules: &Path,
    launch: Launch,
) -> Result<Launch, super::RunError> {
    let own = spawn::own_binary().map_err(super::RunError::OwnBinary)?;
    let program = launch.program.to_string_lossy().into_owned();
    Ok(match confinement {
        Confinement::Bubblewrap(bwrap) => {
            let proxy = mounts.proxy.as_deref().map(|socket| (PROXY_PORT, socket));
            let (opened, told) = bubblewrap::arguments(mounts, &own);
            let mut args = crate::platform::bind::arguments(&opened);
            args.push(bwrap.to_string_lossy().into_owned());
            args.extend(told);
            args.extend(crate::platform::inside::arguments(proxy, None, true));
            args.push(program);
            args.extend(launch.args);
            let layers = mounts.project.as_ref().and_then(|project| project.layers.clone());
            if let Some(layers) = layers {
                let own = own.to_string_lossy().into_owned();
                args = layers::arguments(&[layers]).into_iter().chain([own]).chain(args).collect();
            }
            Launch { program: own, args, holds_inside: true }
        }
        Confinement::Landlock(..) => {
            let wanted = Rules { ports: mounts.port.into_iter().collect(), ..mounts.rules(&own) };
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
