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

/// Makes `home` a home of Codex with the login that lies in `shared`; whatever else stood at its place goes.
/// Returns what lies beside that login, which is for nobody to see: it is of runs of an earlier build, or of one
/// that wants to leave something for another.
pub(super) fn link_codex(home: &Folder, shared: &Path) -> files::Result<Vec<PathBuf>> {
    files::create_dir_all(shared)?;
    CODEX.iter().try_for_each(|name| home.put_link(name, &shared.join(name)))?;
    let mut beside = files::list(shared)?;
    beside.retain(|path| {
        path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with("auth."))
    });
    Ok(beside)
}

/// Makes the folders of a session that are seen in place of those in `shared`, Claude Code's folder with the
/// login: each with its place there. `own` is the session's folder for Claude Code.
pub(super) fn claude_conversation(
    own: &Folder,
    shared: &Path,
) -> files::Result<Vec<(PathBuf, PathBuf)>> {
    files::create_dir_all(shared)?;
    let login = Folder::open(shared)?;
    let folder = |name: &str| {
        login.claim_folder(name)?;
        Ok((own.claim_folder(name)?.path().to_owned(), shared.join(name)))
    };
    CLAUDE_CONVERSATION.into_iter().map(folder).collect()
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
            let beside = link_codex(&opened, &shared).unwrap();
            assert_eq!(beside, ["AGENTS.md", "config.toml"].map(|name| shared.join(name)));
            assert_eq!(files::read_text(&home.join("auth.json")).unwrap(), "auth.json");
            assert_eq!(
                files::read_link(&home.join("auth.lock")).unwrap(),
                shared.join("auth.lock")
            );
            assert!(!files::exists(&home.join("config.toml")));
        }
    }

    #[test]
    fn a_link_in_the_place_of_conversations_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let [shared, own] = ["shared", "own"].map(|name| folder.path().join(name));
        files::create_dir_all(&shared).unwrap();
        files::create_dir_all(&own).unwrap();
        symlink("/etc", shared.join("projects")).unwrap();
        symlink("/etc", own.join("projects")).unwrap();
        let places = claude_conversation(&Folder::open(&own).unwrap(), &shared).unwrap();
        assert!(places.contains(&(own.join("projects"), shared.join("projects"))));
        for (from, to) in places {
            assert!(files::symlink_metadata(&from).unwrap().is_dir());
            assert!(files::symlink_metadata(&to).unwrap().is_dir());
        }
    }
}
