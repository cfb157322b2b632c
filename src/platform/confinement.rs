//! What this machine can confine programs by.

use std::path::PathBuf;

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

/// Finds out what works here, by trying it.
pub async fn find() -> Confinement {
    let refused = match bubblewrap::find().await {
        Ok(program) => return Confinement::Bubblewrap(program),
        Err(reason) => reason,
    };
    match landlock::strength() {
        Some(strength) => Confinement::Landlock(strength, refused),
        None => Confinement::Nothing(refused),
    }
}
