//! Files that come with messages: kept, named safely, described.

use std::path::Path;

use serde_json::Value;

use super::error::Refusal;
use super::guild::Guild;
use super::model::Attachment;
use super::payload::ATTACHMENT_LIMIT;
use super::rest::body::Upload;

/// The number by which an entry of `attachments` refers to a file of the form.
pub(crate) fn number_of(entry: &Value) -> Option<u64> {
    let id = entry.get("id")?;
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

/// Stores a file and describes it.
pub(crate) fn store(
    guild: &Guild,
    upload: &Upload,
    entry: Option<&Value>,
) -> Result<Attachment, Refusal> {
    if upload.bytes.len() as u64 > ATTACHMENT_LIMIT {
        return Err(Refusal::TooLarge);
    }
    let id = guild.change(|draft| Ok(draft.id()))?;
    guild.blobs.put(&id.to_string(), upload.bytes.clone()).map_err(Refusal::unkept)?;
    let renamed = entry.and_then(|entry| entry["filename"].as_str());
    let sent = renamed.unwrap_or(&upload.filename);
    let filename = plain_name(sent);
    let content_type = match upload.content_type.as_deref() {
        None | Some("application/octet-stream") => guess_type(&filename).to_owned(),
        Some(kind) => kind.to_owned(),
    };
    Ok(Attachment {
        id,
        content_type,
        description: entry.and_then(|it| it["description"].as_str()).map(str::to_owned),
        size: upload.bytes.len() as u64,
        pixels: png_size(&upload.bytes),
        title: title_of(sent, &filename),
        filename,
    })
}

/// A file name without anything that a path or a header could stumble over.
fn plain_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .take(100)
        .collect();
    let plain = plain.trim_start_matches('.');
    if plain.is_empty() { "file".to_owned() } else { plain.to_owned() }
}

/// The name without its ending, where it has letters that `filename` lacks.
fn title_of(name: &str, filename: &str) -> Option<String> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let has_others = stem.chars().any(|c| c.is_alphanumeric() && !c.is_ascii());
    let shown = || stem.chars().filter(|c| !c.is_control()).take(100).collect();
    (name != filename && has_others).then(shown)
}

fn guess_type(name: &str) -> &'static str {
    let extension = Path::new(name).extension().and_then(|it| it.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "md" | "txt" | "log" | "rs" | "py" | "js" | "ts" | "toml" | "yaml" | "yml" | "diff"
        | "patch" | "csv" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.get(..24)?;
    if !header.starts_with(b"\x89PNG\r\n\x1a\n") {
        return None;
    }
    let number = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    Some((number(16)?, number(20)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_lose_paths_and_odd_characters() {
        assert_eq!(plain_name("../../etc/passwd"), "passwd");
        assert_eq!(plain_name("a b\"c.png"), "a_b_c.png");
        assert_eq!(plain_name("..."), "file");
        assert_eq!(plain_name("요구사항.md"), "____.md");
        assert_eq!(title_of("docs/요구사항.md", "____.md").as_deref(), Some("요구사항"));
        assert_eq!(title_of("a b\"c.png", "a_b_c.png"), None);
    }
}
