//! Files of the workspace that go out with a message.

use std::path::{Component, Path, PathBuf};

use crate::discord::rest::Upload;
use crate::platform::beneath::Folder;
use crate::platform::files::FileError;
use crate::platform::redact::redact_bytes;
use crate::platform::tasks;

/// Bytes of the files of one message; what every server takes.
const LARGEST: u64 = 8 * 1024 * 1024;
/// Files of one message.
const MOST: usize = 10;
/// Messages with files.
const LOTS: usize = 5;

/// The files of one message of the team.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outbound {
    /// What fits into one message each, in order.
    pub(crate) lots: Vec<Vec<Upload>>,
    /// What no message takes, with its size.
    pub(crate) too_much: Vec<String>,
    /// What is not there, is empty, or may not go out.
    pub(crate) missing: Vec<String>,
}

/// Whether one message takes both.
pub(crate) fn fit_together(some: &[Upload], more: &[Upload]) -> bool {
    let bytes: usize = some.iter().chain(more).map(|file| file.bytes.len()).sum();
    some.len() + more.len() <= MOST && bytes as u64 <= LARGEST
}

/// Reads the files that may go out. The words go out whatever becomes of the files.
pub(crate) async fn read(workspace: &Path, paths: &[String]) -> Outbound {
    if paths.is_empty() {
        return Outbound::default();
    }
    let (workspace, paths) = (workspace.to_owned(), paths.to_vec());
    tasks::blocking(move || all(&workspace, &paths)).await.unwrap_or_default()
}

fn all(workspace: &Path, paths: &[String]) -> Outbound {
    let mut outbound = Outbound::default();
    let mut room = 0;
    for path in paths {
        let read = match one(workspace, path) {
            Ok(upload) if upload.bytes.is_empty() => {
                Err(LeftOut::Missing("it is empty".to_owned()))
            }
            read => read,
        };
        match read {
            Ok(upload) => {
                let size = upload.bytes.len() as u64;
                let lots = outbound.lots.len();
                match outbound.lots.last_mut() {
                    Some(lot) if lot.len() < MOST && size <= room => lot.push(upload),
                    Some(_) | None if lots < LOTS => {
                        outbound.lots.push(vec![upload]);
                        room = LARGEST;
                    }
                    Some(_) | None => {
                        outbound.too_much.push(path.clone());
                        continue;
                    }
                }
                room = room.saturating_sub(size);
            }
            Err(LeftOut::TooLarge(bytes)) => {
                let mib = bytes.div_ceil(1024 * 1024);
                outbound.too_much.push(format!("{path} ({mib} MiB)"));
            }
            Err(LeftOut::Missing(reason)) => {
                tracing::warn!(path, reason, "file left out");
                outbound.missing.push(path.clone());
            }
        }
    }
    outbound
}

/// Why a file does not go out.
#[derive(Debug)]
enum LeftOut {
    TooLarge(u64),
    Missing(String),
}

impl From<&str> for LeftOut {
    fn from(reason: &str) -> LeftOut {
        LeftOut::Missing(reason.to_owned())
    }
}

impl From<FileError> for LeftOut {
    fn from(error: FileError) -> LeftOut {
        LeftOut::Missing(error.to_string())
    }
}

/// Whether a path is of what people attached, to any message or to the kickoff of a sprint: that is never said again.
fn is_attached(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    matches!(
        parts.as_slice(),
        ["shared_workspace", "attachments", ..]
            | ["shared_workspace", "sprints", _, "attachments", ..]
    )
}

/// One file, which must lie in the workspace: no `..`, nothing hidden, and no link anywhere, so that what its
/// name says is what it is. Most of these are written and named by agents.
fn one(workspace: &Path, path: &str) -> Result<Upload, LeftOut> {
    let relative = Path::new(path);
    let plain = relative.components().all(|part| match part {
        Component::Normal(name) => !name.to_string_lossy().starts_with('.'),
        Component::CurDir => true,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    });
    if !plain || path.is_empty() {
        return Err("not a visible path below the workspace".into());
    }
    let named: PathBuf = relative.components().filter(|it| *it != Component::CurDir).collect();
    if is_attached(&named) {
        return Err("what people attached is not sent anywhere".into());
    }
    let file = Folder::open(workspace)?.file(relative)?;
    if file.links() > 1 {
        return Err("it is also another file".into());
    }
    if file.len() > LARGEST {
        return Err(LeftOut::TooLarge(file.len()));
    }
    let bytes = redact_bytes(file.read(LARGEST)?);
    let filename = relative
        .file_name()
        .map_or_else(|| "file".to_owned(), |name| name.to_string_lossy().into_owned());
    Ok(Upload { filename, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::files;

    #[test]
    fn only_visible_files_below_the_workspace_go_out() {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("w"), folder.path().join("secret"));
        for inner in ["docs", "shared_workspace/attachments", ".hidden"] {
            files::create_dir_all(&root.join(inner)).unwrap();
        }
        let links = |to: &str, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        files::write(&outside, "s").unwrap();
        files::write(&root.join("docs/plan.md"), "plan").unwrap();
        files::write(&root.join("docs/linked.md"), "s").unwrap();
        files::hard_link(&root.join("docs/linked.md"), &root.join("docs/other.md")).unwrap();
        files::write(&root.join("shared_workspace/attachments/1_photo.png"), "s").unwrap();
        for hidden in [".env", ".hidden/file.md"] {
            files::write(&root.join(hidden), "s").unwrap();
        }
        links("../secret", "link");
        links("../.env", "docs/x.md");
        links(".hidden", "seen");
        links("docs", "also-docs");
        let pipe = root.join("docs/pipe.md");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        let _ = std::os::unix::net::UnixListener::bind(root.join("docs/socket.md")).unwrap();
        assert_eq!(one(&root, "docs/plan.md").unwrap().filename, "plan.md");
        assert_eq!(one(&root, "./docs/./plan.md").unwrap().bytes, b"plan");
        for bad in [
            "",
            "../secret",
            "docs/../../secret",
            "link",
            ".env",
            "docs",
            "/etc/passwd",
            "gone",
            "docs/x.md",
            "seen/file.md",
            "also-docs/plan.md",
            "docs/linked.md",
            "docs/pipe.md",
            "docs/socket.md",
            "shared_workspace/attachments/1_photo.png",
            "./shared_workspace/./attachments/1_photo.png",
        ] {
            assert!(one(&root, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_goes_out_in_no_encoding() {
        let folder = tempfile::tempdir().unwrap();
        let secret = "canary-of-outbound-files-71";
        crate::platform::redact::register(secret);
        let wide: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let cases =
            [secret.as_bytes().to_vec(), [b"\xff", secret.as_bytes()].concat(), wide.clone()];
        for bytes in cases {
            files::write(&folder.path().join("x.txt"), &bytes).unwrap();
            let sent = one(folder.path(), "x.txt").unwrap().bytes;
            let holds = |part: &[u8]| sent.windows(part.len()).any(|at| at == part);
            assert!(!holds(secret.as_bytes()) && !holds(&wide), "{sent:?}");
        }
    }

    #[test]
    fn many_files_go_in_lots_and_huge_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for n in 0..13 {
            let name = format!("f{n}.txt");
            files::write(&folder.path().join(&name), "x").unwrap();
            paths.push(name);
        }
        for (name, mib) in [("five.bin", 5), ("six.bin", 6), ("huge.bin", 500), ("empty", 0)] {
            let path = folder.path().join(name);
            files::write(&path, "").unwrap();
            // No bytes are written: a file of that size with nothing in it takes no space.
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(mib * 1024 * 1024).unwrap();
            paths.push(name.to_owned());
        }
        let read = all(folder.path(), &paths);
        let sizes: Vec<usize> = read.lots.iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 4, 1]);
        assert_eq!(read.too_much, ["huge.bin (500 MiB)"]);
        assert_eq!(read.missing, ["empty"]);
        let many: Vec<String> = (0..60).map(|n| format!("f{}.txt", n % 13)).collect();
        let read = all(folder.path(), &many);
        assert_eq!((read.lots.len(), read.too_much.len()), (5, 10));
    }
}
