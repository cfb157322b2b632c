//! One live connection for each bot of this machine, whichever workspaces use its token.

use std::path::PathBuf;

use secrecy::ExposeSecret as _;

use crate::discord::rest::Rest;
use crate::discord::sessions::fingerprint;
use crate::platform::disk::{Disk as _, FileLock, RealDisk};
use crate::platform::files::{self, FileError};

/// A folder of this user alone.
fn folder() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("teams-{user}"))
}

fn path(fingerprint: &str) -> PathBuf {
    folder().join(format!("bot-{fingerprint}.lock"))
}

/// Whether some process of this user on this machine holds the live connection of a bot.
#[must_use]
pub fn is_taken(rest: &Rest) -> bool {
    let name = fingerprint(rest.pool().base_url(), rest.token().expose_secret());
    files::is_locked(&path(&name))
}

/// Takes the lock of a token, by its fingerprint; `None` where another connection has it. It ends with
/// what is returned, and with the process however that ends.
pub(crate) fn take(fingerprint: &str) -> Result<Option<Box<dyn FileLock>>, FileError> {
    files::create_private_dir(&folder())?;
    RealDisk.lock(&path(fingerprint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_one_holder() {
        let name = crate::platform::ids::random_hex(24);
        let held = take(&name).unwrap();
        assert!(held.is_some());
        assert!(take(&name).unwrap().is_none());
        drop(held);
        assert!(take(&name).unwrap().is_some());
        files::remove_file(&path(&name)).unwrap();
    }
}
