//! What this machine can confine programs by.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::bubblewrap;
use super::landlock::{self, Strength};

/// What this machine confines agents and checks by.
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
    /// Whether what is confined has a network of its own, from which a socket that it is shown is the only way
    /// out.
    #[must_use]
    pub const fn has_own_network(&self) -> bool {
        match self {
            Confinement::Bubblewrap(_) => true,
            Confinement::Landlock(..) | Confinement::Nothing(_) => false,
        }
    }
}

/// Finds out what works here, by trying it. What has worked once is not tried again; what did not is: it may have been
/// installed, or allowed, meanwhile.
pub async fn find() -> Confinement {
    static WORKS: OnceLock<PathBuf> = OnceLock::new();
    if let Some(program) = WORKS.get() {
        return Confinement::Bubblewrap(program.clone());
    }
    let refused = match bubblewrap::find().await {
        Ok(program) => return Confinement::Bubblewrap(WORKS.get_or_init(|| program).clone()),
        Err(reason) => reason,
    };
    match landlock::strength() {
        Some(strength) => Confinement::Landlock(strength, refused),
        None => Confinement::Nothing(refused),
    }
}
