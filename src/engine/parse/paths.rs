//! Paths as roles write them.

/// A path in the one spelling that comparisons use: forward slashes, no leading `./`, no blanks
/// around it. Absolute paths stay absolute.
#[must_use]
pub fn normalize_artifact_hint(value: &str) -> String {
    let path = value.trim().replace('\\', "/");
    let mut path = path.as_str();
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start();
    }
    path.to_owned()
}
