//! What the driver finds out once and remembers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use tokio::sync::OnceCell;

use crate::agents::sandbox::Sandbox;
use crate::platform::confinement::{self, Confinement};

/// Runs agents. One for the whole team; it remembers the agents' versions.
#[derive(Debug, Default)]
pub struct Driver {
    pub(super) versions: Mutex<BTreeMap<PathBuf, String>>,
    /// What this machine confines agents by.
    confinement: OnceCell<Confinement>,
}

impl Driver {
    /// What confines agents here; found out once. `None` where the operator wants nothing of the kind.
    pub async fn confinement(&self, wanted: Sandbox) -> Option<&Confinement> {
        match wanted {
            Sandbox::Off => None,
            Sandbox::Auto => Some(self.confinement.get_or_init(confinement::find).await),
        }
    }

    /// The same, where it has been looked for already.
    #[must_use]
    pub fn known_confinement(&self) -> Option<&Confinement> {
        self.confinement.get()
    }
}
