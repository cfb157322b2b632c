//! Declared paths: which globs stay in the project, and which may mean the same file.

/// The part of a glob before its first wildcard, in whole folders.
fn fixed(glob: &str) -> (Vec<&str>, bool) {
    let glob = glob.trim().trim_start_matches("./");
    let parts: Vec<&str> = glob.split('/').filter(|part| !part.is_empty()).collect();
    let wild = parts.iter().position(|part| part.contains(['*', '?', '[', '{']));
    match wild {
        Some(at) => (parts[..at].to_vec(), true),
        // A folder means what lies in it.
        None => (parts, glob.ends_with('/')),
    }
}

/// Whether a file may fit both globs. Wildcards are not compared: `src/*.rs` and `src/*.py` count as overlapping.
fn globs_overlap(one: &str, other: &str) -> bool {
    let ((one, one_open), (other, other_open)) = (fixed(one), fixed(other));
    let common = one.len().min(other.len());
    one[..common] == other[..common]
        && (one.len() == other.len() || if one.len() < other.len() { one_open } else { other_open })
}

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

/// Whether two lists of globs may mean the same file; what declares nothing overlaps nothing.
#[must_use]
pub fn overlap(one: &[String], other: &[String]) -> bool {
    one.iter().any(|one| other.iter().any(|other| globs_overlap(one, other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_the_same_file() {
        for (one, other, same) in [
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/b.rs", false),
            ("src/**", "src/a/b.rs", true),
            ("src/", "src/a/b.rs", true),
            ("src", "src/a/b.rs", false),
            ("**", "docs/x.md", true),
            ("src/*.rs", "src/*.py", true),
            ("src/*/a.rs", "tests/*/a.rs", false),
            ("./src/a.rs", "src/a.rs", true),
            ("source/**", "src/**", false),
        ] {
            let list = |glob: &str| vec![glob.to_owned()];
            assert_eq!(overlap(&list(one), &list(other)), same, "{one} {other}");
            assert_eq!(overlap(&list(other), &list(one)), same, "{other} {one}");
        }
        assert!(!overlap(&[], &["**".to_owned()]));
    }
}
