//! What `init` wrote, as digests: a file whose text still has its digest was not edited.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::platform::files::{self, FileError};

/// `.teams_runtime/scaffold.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Written {
    #[serde(default)]
    version: u32,
    /// Path → sha-256 of the text as it was written.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

impl Written {
    /// Reads the record. Without one, or with one that does not parse, every text counts as edited:
    /// that loses nothing.
    pub(super) fn read(root: &Path) -> Result<Written, FileError> {
        let text = files::read_text_if_present(&place(root))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    /// Whether this text of the file is what was written.
    pub(super) fn wrote(&self, path: &Path, text: &str) -> bool {
        self.files.get(&key(path)) == Some(&digest(text))
    }

    /// Remembers a text.
    pub(super) fn note(&mut self, path: &Path, text: &str) {
        self.files.insert(key(path), digest(text));
    }

    /// Writes the record.
    pub(super) fn save(&mut self, root: &Path) -> Result<(), FileError> {
        self.version = 1;
        let path = place(root);
        files::create_dir_all(path.parent().unwrap_or(root))?;
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        files::write_durable(&path, text)
    }
}

fn place(root: &Path) -> PathBuf {
    root.join(".teams_runtime/scaffold.json")
}

fn key(path: &Path) -> String {
    path.display().to_string()
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
