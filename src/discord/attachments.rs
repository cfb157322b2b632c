//! Files that people send: fetched at once, because their links expire, and kept under a name that can
//! only be inside the folder.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::discord::ingress::InboundMessage;
use crate::platform::machine::free_bytes;
use crate::platform::{files, tasks};

/// Bytes of one file.
pub const LARGEST: u64 = 25 * 1024 * 1024;
/// Files of one message.
pub const MOST: usize = 10;
const TIME: Duration = Duration::from_secs(30);
/// Files that are fetched at the same time, whosever they are.
static DOWNLOADS: Semaphore = Semaphore::const_new(40);
/// Bytes of a file that are in memory at once.
const PIECE: usize = 64 * 1024;
/// Bytes of the disk that people's files leave to the team's own work.
const RESERVE: u64 = 1 << 30;
/// Bytes of a saved name, without the id before it and its ending.
const NAME_LIMIT: usize = 120;

/// Where files of people are kept.
#[derive(Debug, Clone)]
pub struct AttachmentFolder {
    /// The workspace.
    pub root: PathBuf,
    /// The folder, relative to the workspace.
    pub folder: PathBuf,
}

/// Why a file was not kept.
#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error("larger than {} MiB", LARGEST / 1024 / 1024)]
    TooLarge,
    #[error("more than {MOST} files in one message")]
    TooMany,
    #[error("less than {} GiB is left on the disk", RESERVE >> 30)]
    NoRoom,
    #[error("not fetched: {0}")]
    Fetch(String),
    #[error(transparent)]
    Disk(#[from] files::FileError),
}

impl AttachmentFolder {
    /// Fetches the files of a message side by side, each within 30 s, and notes where each was kept. A file
    /// that could not be kept stays without a place; the engine says so to the person.
    pub async fn fill(&self, http: &reqwest::Client, heard: &mut InboundMessage) {
        let fetches = heard.files.iter().enumerate().map(|(at, file)| {
            let attachment = heard.message.attachments.get(at);
            let name = attachment.map(|it| it.filename.as_str()).unwrap_or_default();
            let size = attachment.map_or(0, |it| it.size);
            let name = format!("{}_{}", file.id, safe_name(name));
            async move {
                let kept = async {
                    if at >= MOST {
                        return Err(NotKept::TooMany);
                    }
                    if size > LARGEST {
                        return Err(NotKept::TooLarge);
                    }
                    // Never closed.
                    let _place = DOWNLOADS.acquire().await;
                    self.keep(http, &file.url, &name).await
                };
                match kept.await {
                    Ok(path) => Some(path),
                    Err(reason) => {
                        tracing::warn!(file = name, %reason, "attachment not kept");
                        None
                    }
                }
            }
        });
        let saved = futures_util::future::join_all(fetches).await;
        for (attachment, saved) in heard.message.attachments.iter_mut().zip(saved) {
            attachment.saved = saved;
        }
    }

    /// Where the files of these ids were kept, those that are there, in the same order.
    pub(crate) async fn find(&self, ids: &[u64]) -> Vec<String> {
        if ids.is_empty() {
            return Vec::new();
        }
        let (folder, short) = (self.root.join(&self.folder), self.folder.clone());
        let ids = ids.to_vec();
        let found = tasks::blocking(move || {
            let names: Vec<String> = files::list(&folder)
                .unwrap_or_default()
                .iter()
                .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
                .collect();
            let of = |id: &u64| names.iter().find(|name| name.starts_with(&format!("{id}_")));
            let kept = ids.iter().filter_map(of);
            kept.map(|name| short.join(name).to_string_lossy().into_owned()).collect()
        });
        found.await.unwrap_or_default()
    }

    /// Fetches a file to the disk as it comes, under a name that nobody looks for until it is whole.
    async fn keep(&self, http: &reqwest::Client, url: &str, name: &str) -> Result<String, NotKept> {
        let folder = self.root.join(&self.folder);
        let (part, path) = (folder.join(format!(".{name}.part")), folder.join(name));
        let begun = part.clone();
        let file = blocking(move || {
            files::create_dir_all(&folder)?;
            if free_bytes(&folder).is_ok_and(|free| free < RESERVE) {
                return Err(NotKept::NoRoom);
            }
            // Of an attempt that was cut off.
            files::remove_file(&begun)?;
            Ok(files::create_new(&begun)?)
        });
        let written = stream(http, url, file.await?).await;
        let (whole, target) = (written.is_ok(), path.clone());
        blocking(move || {
            if !whole {
                files::remove_file(&part)?;
                return Ok(());
            }
            files::sync_file(&part)?;
            files::rename(&part, &target)?;
            target.parent().map_or(Ok(()), files::sync_dir)?;
            Ok(())
        })
        .await?;
        written?;
        Ok(self.folder.join(name).to_string_lossy().into_owned())
    }
}

/// Blocking work, off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NotKept> + Send + 'static,
) -> Result<T, NotKept> {
    tasks::blocking(work).await.map_err(|error| NotKept::Fetch(error.to_string()))?
}

/// Writes what a server sends into a file, a piece at a time.
async fn stream<W>(http: &reqwest::Client, url: &str, mut file: W) -> Result<(), NotKept>
where
    W: std::io::Write + Send + 'static,
{
    let failed = |error: reqwest::Error| NotKept::Fetch(error.without_url().to_string());
    let mut response = http
        .get(url)
        .timeout(TIME)
        .send()
        .await
        .and_then(reqwest::Response::error_for_status)
        .map_err(failed)?;
    let (mut total, mut piece) = (0_u64, Vec::with_capacity(PIECE));
    loop {
        let chunk = response.chunk().await.map_err(failed)?;
        total += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if total > LARGEST {
            return Err(NotKept::TooLarge);
        }
        let ended = chunk.is_none();
        piece.extend_from_slice(chunk.as_deref().unwrap_or_default());
        if piece.len() >= PIECE || ended {
            (file, piece) = blocking(move || {
                file.write_all(&piece).map_err(|error| NotKept::Fetch(error.to_string()))?;
                piece.clear();
                Ok((file, piece))
            })
            .await?;
        }
        if ended {
            return Ok(());
        }
    }
}

/// A file name that is one path component, visible and harmless: letters, digits and `-_.` of any
/// script; everything else becomes `_`.
#[must_use]
pub fn safe_name(name: &str) -> String {
    let flat: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
        .collect();
    let flat = flat.trim_matches(['.', '_']);
    let (stem, extension) = match flat.rsplit_once('.') {
        Some((stem, extension)) if extension.chars().count() <= 12 => (stem, Some(extension)),
        Some(_) | None => (flat, None),
    };
    let ends = stem.char_indices().map(|(at, c)| at + c.len_utf8());
    let stem = stem[..ends.take_while(|end| *end <= NAME_LIMIT).last().unwrap_or(0)].to_owned();
    let stem = if stem.is_empty() { "file".to_owned() } else { stem };
    match extension {
        Some(extension) if !extension.is_empty() => format!("{stem}.{extension}"),
        Some(_) | None => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_their_folder() {
        let table = [
            ("notes.md", "notes.md"),
            ("../../etc/passwd", "etc_passwd"),
            ("..", "file"),
            ("", "file"),
            (".bashrc", "bashrc"),
            ("a/b\\c\0d\n.txt", "a_b_c_d_.txt"),
            ("회의록 1.pdf", "회의록_1.pdf"),
            ("x; rm -rf $HOME.sh", "x__rm_-rf__HOME.sh"),
        ];
        for (name, safe) in table {
            assert_eq!(safe_name(name), safe, "{name:?}");
        }
        assert!(safe_name(&"가".repeat(300)).len() <= NAME_LIMIT);
    }
}
