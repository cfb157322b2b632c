//! An operator's login, as the runs of an agent have it. Its program renews it, so all of them work with the same
//! files; what else the program keeps is a session's own: its conversations are nobody else's to read, and no run
//! leaves settings for the next one.

use std::path::{Path, PathBuf};

use crate::platform::beneath::Folder;
use crate::platform::files;

/// The login of Codex in its home, and the lock under which it is renewed. Codex follows links to both.
const CODEX: [&str; 2] = ["auth.json", "auth.lock"];

/// What of Claude Code's folder belongs to a conversation. The login itself is exchanged by name, so that a link
/// would be replaced: these lie elsewhere instead, where the sandbox can show one folder at the place of another.
const CLAUDE_CONVERSATION: [&str; 9] = [
    "debug",
    "file-history",
    "plans",
    "projects",
    "session-env",
    "sessions",
    "shell-snapshots",
    "tasks",
    "todos",
];

/// Makes `home` a home of Codex with the login that lies in `shared`; whatever else stood at its place goes. What lies
/// beside that login Codex does not read; no name of it may become a mount, because an agent chose it.
pub(super) fn link_codex(home: &Folder, shared: &Path) -> files::Result<()> {
    files::create_dir_all(shared)?;
    CODEX.iter().try_for_each(|name| home.put_link(name, &shared.join(name)))
}

/// Makes the folders of a session that are seen in place of those in `shared`, Claude Code's folder with the
/// login: each with its place there. `own` is the session's folder for Claude Code. Where something else stands at
/// such a place, it stays as it is.
pub(super) fn claude_conversation(
    own: &Folder,
    shared: &Path,
) -> files::Result<Vec<(PathBuf, PathBuf)>> {
    let login = Folder::open(shared)?;
    let is_free = |name: &&str| match login.make_folder(name) {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(%error, "conversations are kept beside the login");
            false
        }
    };
    let folder = |name: &str| Ok((own.claim_folder(name)?.path().to_owned(), shared.join(name)));
    CLAUDE_CONVERSATION.into_iter().filter(is_free).map(folder).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_session_has_the_login_and_nothing_else_of_the_shared_folder() {
        let folder = tempfile::tempdir().unwrap();
        let [shared, home] = ["shared", "home"].map(|name| folder.path().join(name));
        files::create_dir_all(&shared).unwrap();
        files::create_dir_all(&home).unwrap();
        for name in ["auth.json", "config.toml", "AGENTS.md"] {
            files::write(&shared.join(name), name).unwrap();
        }
        let opened = Folder::open(&home).unwrap();
        // An agent put something of its own there.
        files::create_dir_all(&home.join("auth.json/inner")).unwrap();
        symlink("/etc/passwd", home.join("auth.lock")).unwrap();
        for _ in 0..2 {
            link_codex(&opened, &shared).unwrap();
            assert_eq!(files::read_text(&home.join("auth.json")).unwrap(), "auth.json");
            assert_eq!(
                files::read_link(&home.join("auth.lock")).unwrap(),
                shared.join("auth.lock")
            );
            assert!(!files::exists(&home.join("config.toml")));
        }
    }

    #[test]
    fn a_link_in_the_place_of_conversations_stays_and_is_no_place() {
        let folder = tempfile::tempdir().unwrap();
        let [shared, own] = ["shared", "own"].map(|name| folder.path().join(name));
        files::create_dir_all(&shared).unwrap();
        files::create_dir_all(&own).unwrap();
        symlink("/etc", shared.join("projects")).unwrap();
        symlink("/etc", own.join("projects")).unwrap();
        let places = claude_conversation(&Folder::open(&own).unwrap(), &shared).unwrap();
        assert!(places.contains(&(own.join("todos"), shared.join("todos"))));
        assert_eq!(places.len(), CLAUDE_CONVERSATION.len() - 1);
        assert_eq!(files::read_link(&shared.join("projects")).unwrap(), Path::new("/etc"));
    }
}
