//! Declared paths: which globs may mean the same file.

/// The parts of a glob, of which a folder means what lies in it.
fn parts(glob: &str) -> Vec<&str> {
    let glob = glob.trim().trim_start_matches("./");
    let mut parts: Vec<&str> = glob.split('/').filter(|part| !part.is_empty()).collect();
    if glob.ends_with('/') {
        parts.push("**");
    }
    parts
}

/// Whether a name may fit both parts: they begin and end alike as far as they are literal.
fn names_meet(one: &str, other: &str) -> bool {
    const WILD: [char; 3] = ['*', '?', '['];
    if !one.contains(WILD) && !other.contains(WILD) {
        return one == other;
    }
    let begin = |part: &str| part.find(WILD).unwrap_or(part.len());
    let end = |part: &str| part.rfind(['*', '?', ']']).map_or(0, |at| at + 1);
    let (begins, begins_too) = (&one[..begin(one)], &other[..begin(other)]);
    let (ends, ends_too) = (&one[end(one)..], &other[end(other)..]);
    (begins.starts_with(begins_too) || begins_too.starts_with(begins))
        && (ends.ends_with(ends_too) || ends_too.ends_with(ends))
}

/// Whether a file may fit both globs. What could be in any depth, or has alternatives, may be anything.
fn globs_overlap(one: &[&str], other: &[&str]) -> bool {
    let is_open = |part: &str| part.contains("**") || part.contains('{');
    match (one, other) {
        ([], []) => true,
        ([part, ..], _) | (_, [part, ..]) if is_open(part) => true,
        ([one, rest @ ..], [other, others @ ..]) => {
            names_meet(one, other) && globs_overlap(rest, others)
        }
        ([], _) | (_, []) => false,
    }
}

/// Whether two lists of globs may mean the same file; what declares nothing overlaps nothing.
#[must_use]
pub fn overlap(one: &[String], other: &[String]) -> bool {
    one.iter().any(|one| other.iter().any(|other| globs_overlap(&parts(one), &parts(other))))
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
            ("src/*.rs", "src/*.py", false),
            ("src/*.rs", "src/a*", true),
            ("tests/cache*", "tests/mail*.rs", false),
            ("tests/c?che.rs", "tests/cache.rs", true),
            ("src/{a,b/c}.rs", "src/b/c.rs", true),
            ("**/a.rs", "src/b.rs", true),
            ("src/a", "src/a/**", true),
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
