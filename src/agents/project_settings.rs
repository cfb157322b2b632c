//! Settings, hooks and tool servers that a repository brings along for agents.
//!
//! They are ignored, because whoever may write to the repository would otherwise say what runs beside the
//! agent. The operator can pin them by the hash of their content (`sandbox.project_settings`); they are read
//! only while each one of them is what was pinned, since half of them is another thing than what was looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::platform::beneath::Folder;
use crate::platform::files::FileError;

/// Where agents look for them, at the top of a tree.
const NAMES: [&str; 8] = [
    ".claude",
    ".codex",
    ".gemini",
    ".opencode",
    ".qwen",
    ".mcp.json",
    "opencode.json",
    "opencode.jsonc",
];
/// Files that are looked at; nobody looks at more before pinning them.
const MOST: usize = 200;
/// Bytes of the largest of them.
const LARGEST: u64 = 1 << 20;

/// What stands in a hash's place for what cannot be pinned: links, large files, too many of them.
const NOT_PINNABLE: &str = "";

/// The files by their path in the tree, with `/`, and the SHA-256 of each in lower-case hexadecimal digits; blank
/// for what cannot be pinned.
///
/// # Errors
/// [`FileError`] where one cannot be read.
pub fn in_tree(tree: &Path) -> Result<BTreeMap<String, String>, FileError> {
    let root = Folder::open(tree)?;
    let mut found = BTreeMap::new();
    let mut todo: Vec<PathBuf> = NAMES.iter().map(PathBuf::from).collect();
    while let Some(below) = todo.pop() {
        // What cannot be looked at is a link, or gone.
        let meta = match root.metadata(&below) {
            Ok(meta) => Some(meta),
            Err(error) if error.is_missing() => continue,
            Err(_) => None,
        };
        let name = below.to_string_lossy().into_owned();
        if found.len() >= MOST {
            found.insert(name, NOT_PINNABLE.to_owned());
            break;
        }
        match meta {
            Some(meta) if meta.is_dir() => {
                let inner = root.folder(&below)?.list()?;
                todo.extend(inner.into_iter().map(|name| below.join(name)));
            }
            Some(meta) if meta.is_file() && meta.len() <= LARGEST => {
                let hash = Sha256::digest(root.file(&below)?.read(LARGEST)?);
                found.insert(name, hash.iter().map(|byte| format!("{byte:02x}")).collect());
            }
            Some(_) | None => {
                found.insert(name, NOT_PINNABLE.to_owned());
            }
        }
    }
    Ok(found)
}

/// Where they lie in a tree, whether there are any or not.
pub(super) fn places(tree: &Path) -> impl Iterator<Item = PathBuf> {
    NAMES.into_iter().map(move |name| tree.join(name))
}

/// Whether a tree brings some, and each of them is as it was pinned.
#[must_use]
pub fn are_pinned(tree: &Path, pinned: &BTreeMap<String, String>) -> bool {
    let found = match in_tree(tree) {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "settings that the project brings along cannot be read; they are ignored");
            return false;
        }
    };
    let right =
        |(path, hash): (&String, &String)| !hash.is_empty() && pinned.get(path) == Some(hash);
    !found.is_empty() && found.iter().all(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::files;

    #[test]
    fn they_count_as_pinned_while_each_one_of_them_is() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path();
        assert!(!are_pinned(tree, &BTreeMap::new()), "there are none");
        files::create_dir_all(&tree.join(".claude/hooks")).unwrap();
        files::write(&tree.join(".claude/settings.json"), "{}").unwrap();
        files::write(&tree.join("settings.json"), "of the project itself").unwrap();
        let pinned = in_tree(tree).unwrap();
        let hash = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(pinned, BTreeMap::from([(".claude/settings.json".to_owned(), hash.to_owned())]));
        assert!(are_pinned(tree, &pinned));
        files::write(&tree.join(".claude/hooks/one.sh"), "echo").unwrap();
        assert!(!are_pinned(tree, &pinned), "one more");
        files::remove_file(&tree.join(".claude/hooks/one.sh")).unwrap();
        files::write(&tree.join(".claude/settings.json"), "{ }").unwrap();
        assert!(!are_pinned(tree, &pinned), "another content");
        files::remove_file(&tree.join(".claude/settings.json")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", tree.join(".mcp.json")).unwrap();
        let linked = in_tree(tree).unwrap();
        assert_eq!(linked.get(".mcp.json").map(String::as_str), Some(""));
        assert!(!are_pinned(tree, &linked), "a link says nothing about what it leads to");
    }
}
