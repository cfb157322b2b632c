//! The tokens that setup keeps: a file of the workspace that only its owner can read, in a folder that git
//! does not see wherever the workspace lies.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

use super::environment::{TOKENS_FILE, parse};
use crate::platform::files::{self, FileError};

/// The folder of everything that setup keeps.
pub const FOLDER: &str = ".teams_setup";

/// The file of the tokens.
#[must_use]
pub fn tokens_file(root: &Path) -> PathBuf {
    root.join(TOKENS_FILE)
}

/// Makes the folder, for this user alone and hidden from git.
pub fn prepare(root: &Path) -> Result<PathBuf, FileError> {
    let folder = root.join(FOLDER);
    files::create_dir_all(&folder)?;
    files::set_mode(&folder, 0o700)?;
    let ignore = folder.join(".gitignore");
    if !files::exists(&ignore) {
        files::write_durable(&ignore, "*\n")?;
    }
    Ok(folder)
}

/// Keeps a token under the name of its variable.
pub fn keep(root: &Path, name: &str, token: &SecretString) -> Result<(), FileError> {
    prepare(root)?;
    let mut lines = others(root, name)?;
    lines.push_str(&format!("{name}={}\n", token.expose_secret()));
    files::write_private_durable(&tokens_file(root), lines)
}

/// Forgets a token; the file goes with the last one.
pub fn forget(root: &Path, name: &str) -> Result<(), FileError> {
    let lines = others(root, name)?;
    let path = tokens_file(root);
    if lines.is_empty() {
        files::remove_file(&path)
    } else {
        files::write_private_durable(&path, lines)
    }
}

fn others(root: &Path, name: &str) -> Result<String, FileError> {
    let text = files::read_text_if_present(&tokens_file(root))?.unwrap_or_default();
    // The other lines stay as they are written.
    let kept = text.lines().filter(|line| !parse(line).contains_key(name));
    Ok(kept.map(|line| format!("{line}\n")).collect())
}

/// Whether a text can be a bot token: three parts of letters, digits, `-` and `_` with dots between. What
/// people paste by mistake (the client secret, a webhook's address) is none.
#[must_use]
pub fn looks_like_a_token(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let word = |part: &&str| {
        part.len() >= 5 && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    parts.len() == 3 && text.len() >= 50 && parts.iter().all(word)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::workspace::Environment;

    #[test]
    fn a_token_is_kept_for_its_owner_alone_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        keep(root, "T4_ONE", &SecretString::from("first.token.a")).unwrap();
        keep(root, "T4_TWO", &SecretString::from("second.token.b")).unwrap();
        let text = files::read_text(&tokens_file(root)).unwrap();
        files::write_private(&tokens_file(root), format!("# ours\nO=\"a # b\"\n{text}")).unwrap();
        keep(root, "T4_ONE", &SecretString::from("third.token.c")).unwrap();
        let text = files::read_text(&tokens_file(root)).unwrap();
        assert!(text.starts_with("# ours\nO=\"a # b\"\n"), "{text}");
        files::write_private(&tokens_file(root), text.replace("# ours\nO=\"a # b\"\n", ""))
            .unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&tokens_file(root)), 0o600);
        assert_eq!(mode(&root.join(FOLDER)), 0o700);
        let environment = Environment::read(root).unwrap();
        assert_eq!(environment.get("T4_ONE").as_deref(), Some("third.token.c"));
        assert_eq!(environment.get("T4_TWO").as_deref(), Some("second.token.b"));
        assert!(!format!("{environment:?}").contains("token.c"));
        forget(root, "T4_ONE").unwrap();
        assert!(Environment::read(root).unwrap().get("T4_ONE").is_none());
        forget(root, "T4_TWO").unwrap();
        assert!(!files::exists(&tokens_file(root)));
    }

    #[test]
    fn what_is_pasted_by_mistake_is_no_token() {
        let good = format!("{}.{}.{}", "M".repeat(24), "G".repeat(6), "k".repeat(38));
        assert!(looks_like_a_token(&good));
        for bad in ["", "abc", "aaaa-client-secret-of-thirty-two-chars", &good[..20]] {
            assert!(!looks_like_a_token(bad), "{bad}");
        }
        assert!(!looks_like_a_token(&format!("Bot {good}")));
        assert!(!looks_like_a_token(&format!("{good}\n")));
    }
}
