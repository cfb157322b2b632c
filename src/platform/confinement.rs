//! What this machine can confine programs by.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

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

/// How long what has worked is believed to work.
const BELIEVED: Duration = Duration::from_secs(60);

/// Finds out what works here, by trying it. What has just worked is not tried again; what did not is: it may have been
/// installed, or allowed, meanwhile.
pub async fn find() -> Confinement {
    static WORKED: Mutex<Option<(PathBuf, Instant)>> = Mutex::new(None);
    let worked = || WORKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((program, at)) = worked().clone()
        && at.elapsed() < BELIEVED
    {
        return Confinement::Bubblewrap(program);
    }
    let refused = match bubblewrap::find().await {
        Ok(program) => {
            *worked() = Some((program.clone(), Instant::now()));
            return Confinement::Bubblewrap(program);
        }
        Err(reason) => reason,
    };
    match landlock::strength() {
        Some(strength) => Confinement::Landlock(strength, refused),
        None => Confinement::Nothing(refused),
    }
}
