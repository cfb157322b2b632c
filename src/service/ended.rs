//! The ended request that a command is about, from where it was put away.

use std::sync::Arc;

use super::team::Team;
use crate::domain::incoming::Command;
use crate::platform::tasks;
use crate::store;

/// The command with the request that it is about, where that has left memory.
pub(super) async fn with_ended(team: &Arc<Team>, command: Command) -> Command {
    let Command::RequestChanges { request_id, text, ended: _ } = command else { return command };
    let (reading, id) = (Arc::clone(team), request_id.clone());
    let read = tasks::blocking(move || store::read_request(reading.root(), &id)).await;
    let ended = match read {
        Ok(Ok(ended)) => ended.map(Box::new),
        Ok(Err(error)) => {
            tracing::warn!(%error, request = %request_id, "an ended request cannot be read");
            None
        }
        Err(_) => None,
    };
    Command::RequestChanges { request_id, text, ended }
}
