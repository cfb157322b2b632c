//! Confinement by the kernel's Landlock, for machines on which bubblewrap does not work: a process gives
//! up, for itself and whatever it starts, every file and every TCP port that is not listed.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use serde::{Deserialize, Serialize};

use super::beneath::Folder;
use super::files::{self, FileError};

/// What is asked for where the kernel can; older kernels do less, which [`strength`] tells.
const WANTED: ABI = ABI::V6;

/// What may be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Files and folders for reading and running.
    pub read: Vec<PathBuf>,
    /// And for writing.
    pub write: Vec<PathBuf>,
    /// What lies in folders that somebody who is confined may write.
    #[serde(default)]
    pub below: Vec<Below>,
    /// TCP ports to connect to.
    pub ports: Vec<u16>,
    /// Whether every port may be used, to connect and to listen: then `ports` says nothing.
    #[serde(default)]
    pub any_port: bool,
}

/// Devices that every program may use.
pub const DEVICES: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What of `path` can be given where the kernel can only give, not take away: a folder with something of
/// `hidden` below it piece by piece.
pub fn pieces(path: &Path, hidden: &[&Path], into: &mut Vec<PathBuf>) {
    if hidden.contains(&path) {
        return;
    }
    if !hidden.iter().any(|one| one.starts_with(path)) {
        into.push(path.to_owned());
        return;
    }
    for inner in files::list(path).unwrap_or_default() {
        pieces(&inner, hidden, into);
    }
}

/// A file or folder that is opened from a folder above it, and through no link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// The folder; nobody who is confined can change its own path.
    pub folder: PathBuf,
    /// Where it lies below that.
    pub below: PathBuf,
    /// Whether it may be written.
    pub writable: bool,
}

/// Why a process could not be confined.
#[derive(Debug, thiserror::Error)]
pub enum RestrictError {
    /// The rules cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The rules are none.
    #[error("the rules do not parse: {0}")]
    Json(#[from] serde_json::Error),
    /// The kernel refuses them.
    #[error("landlock: {0}")]
    Ruleset(#[from] landlock::RulesetError),
    /// What was opened cannot be looked at.
    #[error("cannot look at what is opened: {0}")]
    Look(#[source] rustix::io::Errno),
    /// What root may do cannot be given up.
    #[error("cannot give up the capabilities: {0}")]
    Capabilities(#[source] rustix::io::Errno),
    /// The kernel has none of it.
    #[error("this kernel does not confine by landlock")]
    NotEnforced,
}

/// How much of it the kernel does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Strength {
    /// Files only.
    Files,
    /// Files and TCP ports.
    FilesAndTcp,
    /// And neither signals nor abstract sockets to others.
    FilesTcpAndSignals,
}

/// What this kernel does; `None` where it has no Landlock, or has it switched off.
#[must_use]
pub fn strength() -> Option<Strength> {
    let hard = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let files = hard().handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create);
    files.ok()?;
    let tcp = hard().handle_access(AccessNet::ConnectTcp).and_then(Ruleset::create);
    if tcp.is_err() {
        return Some(Strength::Files);
    }
    let signals = hard().scope(Scope::Signal).and_then(Ruleset::create);
    Some(match signals {
        Ok(_) => Strength::FilesTcpAndSignals,
        Err(_) => Strength::FilesAndTcp,
    })
}

/// Confines this process for good.
///
/// # Errors
/// Where the kernel refuses: then nothing may be started. What is listed and does not exist is left out.
pub fn restrict(rules: &Rules) -> Result<(), RestrictError> {
    let ruleset = Ruleset::default().handle_access(AccessFs::from_all(WANTED))?;
    let ruleset = if rules.any_port {
        ruleset
    } else {
        ruleset.handle_access(AccessNet::from_all(WANTED))?
    };
    let mut ruleset = ruleset.scope(Scope::from_all(WANTED))?.create()?;
    let (read, all) = (AccessFs::from_read(WANTED), AccessFs::from_all(WANTED));
    let listed = rules.read.iter().map(|path| (path, read));
    for (path, access) in listed.chain(rules.write.iter().map(|path| (path, all))) {
        let Ok(opened) = PathFd::new(path) else { continue };
        // What only folders can be asked for is left out for files.
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(WANTED) };
        ruleset = ruleset.add_rule(PathBeneath::new(opened, access))?;
    }
    for place in &rules.below {
        let opened = match Folder::open(&place.folder).and_then(|it| it.handle(&place.below)) {
            Ok(opened) => opened,
            Err(error) if error.is_missing() => continue,
            Err(error) => return Err(error.into()),
        };
        let found = rustix::fs::fstat(&opened).map_err(RestrictError::Look)?;
        let access = if place.writable { all } else { read };
        let is_dir = rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir();
        let access = if is_dir { access } else { access & AccessFs::from_file(WANTED) };
        ruleset = ruleset.add_rule(PathBeneath::new(opened, access))?;
    }
    if !rules.any_port {
        // Tests of servers listen where the kernel says. On a port of its own choice a program could be taken
        // for another one: for the proxy of a run, while the team starts again.
        ruleset = ruleset.add_rule(NetPort::new(0, AccessNet::BindTcp))?;
        for port in &rules.ports {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    // What root may do beside files would lead around the rules: into other processes, for one.
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(RestrictError::Capabilities)?;
    match ruleset.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(RestrictError::NotEnforced),
    }
}
