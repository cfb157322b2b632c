//! Documents that follow from the records: each role's `todo.md` (`spec/teams.md` 3.4). Derived, so
//! written after the fact and without a sync; a restart writes them anew.

use std::sync::Arc;

use super::team::Team;
use crate::assets::role_folder;
use crate::domain::role::Role;
use crate::platform::{files, tasks};
use crate::workspace::documents::role_todo;

/// Keeps the roles' todo files up to date until the team closes.
pub(super) async fn keep_todos(team: Arc<Team>) {
    loop {
        let writing = Arc::clone(&team);
        // A file that could not be written is written at the next change.
        if let Err(error) = tasks::blocking(move || write_todos(&writing)).await {
            tracing::warn!(%error, "the todo files were not written");
        }
        tokio::select! {
            () = team.closing.cancelled() => return,
            () = team.signals.todos.notified() => {}
        }
    }
}

fn write_todos(team: &Team) {
    let texts: Vec<_> = team
        .hub
        .read(|state| Role::PUBLIC.map(|role| (role, role_todo(role, state))))
        .into_iter()
        .collect();
    for (role, text) in texts {
        let path = team.root().join(role_folder(role)).join("todo.md");
        let written = text.map_err(|error| error.to_string()).and_then(|text| {
            let old = files::read_text_if_present(&path).ok().flatten();
            if old.as_deref() == Some(&text) {
                return Ok(());
            }
            files::write_atomic(&path, text).map_err(|error| error.to_string())
        });
        if let Err(reason) = written {
            tracing::warn!(%role, %reason, "a todo file was not written");
        }
    }
}
