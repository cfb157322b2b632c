//! Globs of paths in a project, as people and agents write them.

/// What is wrong with a glob of a path in the project; none where it stays in it.
#[must_use]
pub fn fault(path: &str) -> Option<&'static str> {
    let path = path.trim();
    let has = |wrong: fn(&str) -> bool| path.split('/').any(wrong);
    let is_drive = path.as_bytes().get(1) == Some(&b':');
    if path.is_empty() {
        Some("is blank")
    } else if path.starts_with('/') || path.starts_with('~') || path.contains('\\') || is_drive {
        Some("is no path below the project")
    } else if has(|part| part == "..") {
        Some("leaves the project")
    } else if has(|part| part.eq_ignore_ascii_case(".git")) {
        Some("is inside of git's own folder")
    } else if path.chars().any(char::is_control) {
        Some("has a control character in it")
    } else {
        None
    }
}
