//! Files of the workspace that go out with a message.

use std::path::{Component, Path, PathBuf};

use crate::discord::rest::Upload;
use crate::platform::{files, tasks};

/// Bytes of one file; what every server takes.
const LARGEST: u64 = 8 * 1024 * 1024;
/// Files of one message.
const MOST: usize = 10;

/// Reads the files that may go out. One that may not is left out and logged: the words go out anyway.
pub(crate) async fn read(workspace: &Path, paths: &[String]) -> Vec<Upload> {
    if paths.is_empty() {
        return Vec::new();
    }
    let (workspace, paths) = (workspace.to_owned(), paths.to_vec());
    let reading = tasks::blocking(move || {
        let mut uploads = Vec::new();
        let mut total = 0;
        for path in paths.iter().take(MOST) {
            match one(&workspace, path) {
                Ok(upload) if total + upload.bytes.len() as u64 <= LARGEST => {
                    total += upload.bytes.len() as u64;
                    uploads.push(upload);
                }
                Ok(_) => tracing::warn!(path, "file left out: too much for one message"),
                Err(reason) => tracing::warn!(path, reason, "file left out"),
            }
        }
        uploads
    });
    reading.await.unwrap_or_default()
}

/// One file, which must lie in the workspace: no `..`, nothing hidden, no link that leads out.
fn one(workspace: &Path, path: &str) -> Result<Upload, String> {
    let relative = PathBuf::from(path);
    let plain = relative.components().all(|part| match part {
        Component::Normal(name) => !name.to_string_lossy().starts_with('.'),
        Component::CurDir => true,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    });
    if !plain || path.is_empty() {
        return Err("not a visible path below the workspace".to_owned());
    }
    let root = files::canonicalize(workspace).map_err(|error| error.to_string())?;
    let full = files::canonicalize(&root.join(&relative)).map_err(|error| error.to_string())?;
    if !full.starts_with(&root) {
        return Err("it leads out of the workspace".to_owned());
    }
    let facts = files::metadata(&full).map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("not a file".to_owned());
    }
    if facts.len() > LARGEST {
        return Err("larger than 8 MiB".to_owned());
    }
    let bytes = files::read(&full).map_err(|error| error.to_string())?;
    let filename = relative
        .file_name()
        .map_or_else(|| "file".to_owned(), |name| name.to_string_lossy().into_owned());
    Ok(Upload { filename, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_files_below_the_workspace_go_out() {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("w"), folder.path().join("secret"));
        files::create_dir_all(&root.join("docs")).unwrap();
        files::write(&outside, "s").unwrap();
        files::write(&root.join("docs/plan.md"), "plan").unwrap();
        files::write(&root.join(".env"), "s").unwrap();
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        assert_eq!(one(&root, "docs/plan.md").unwrap().filename, "plan.md");
        for bad in
            ["", "../secret", "docs/../../secret", "link", ".env", "docs", "/etc/passwd", "gone"]
        {
            assert!(one(&root, bad).is_err(), "{bad}");
        }
    }
}
