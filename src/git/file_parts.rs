//! The parts of a file that is for many programs by which checks may run: tables, sections and fields.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::run_by::PROGRAMS;

/// Files whose parts count also where the file is new: it may stand before another one that says the same.
const STANDS_BEFORE: [&str; 3] = ["pyproject.toml", "setup.cfg", "tox.ini"];

/// The parts of a file which say something else now, are new or are gone, by their names. A new crate or package takes
/// nothing away from checks.
pub(super) fn changed_parts(path: &str, before: Option<&[u8]>, now: &[u8]) -> Vec<&'static str> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let known = PROGRAMS.iter().flat_map(|program| program.parts);
    let mut known: Vec<&str> = known.filter(|it| it.0 == file).map(|it| it.1).collect();
    known.sort_unstable();
    known.dedup();
    if known.is_empty() || before.is_none() && !STANDS_BEFORE.contains(&file) {
        return Vec::new();
    }
    let read = |content: &[u8]| {
        let text = std::str::from_utf8(content).ok()?;
        read(file, text.trim_start_matches('\u{feff}'))
    };
    let (before, now) = (before.and_then(read), read(now));
    let part = |of: &Option<Value>, name: &str| {
        of.as_ref().and_then(|it| find(it, name)).unwrap_or_default()
    };
    known.retain(|name| part(&before, name) != part(&now, name));
    known
}

fn read(file: &str, text: &str) -> Option<Value> {
    match file.rsplit('.').next()? {
        "toml" => serde_json::to_value(text.parse::<toml::Table>().ok()?).ok(),
        "json" => serde_json::from_str(text).ok(),
        _ => serde_json::to_value(sections(text)).ok(),
    }
}

/// What stands at a name, with what goes further (the sections `mypy-x` and `coverage:run`).
fn find(all: &Value, name: &str) -> Option<BTreeMap<String, Value>> {
    let (above, last) = name.rsplit_once('.').unwrap_or(("", name));
    let mut above = above.split('.').filter(|key| !key.is_empty());
    let place = above.try_fold(all, |at, key| at.get(key))?;
    let is_meant = |key: &str| {
        key.strip_prefix(last)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '.']))
    };
    let found = place.as_object()?.iter().filter(|(key, _)| is_meant(key));
    Some(found.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// The lines of each section, without comments.
fn sections(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines().map(str::trim_end) {
        if let Some((name, _)) = line.strip_prefix('[').and_then(|it| it.rsplit_once(']')) {
            name.trim().clone_into(&mut section);
        } else if !line.is_empty() && !line.trim_start().starts_with(['#', ';']) {
            let at = line.find(['=', ':']).unwrap_or(line.len());
            let (key, value) = line.split_at(at);
            let line = format!("{} {}", key.trim_end(), value.trim_start_matches(['=', ':', ' ']));
            all.entry(section.clone()).or_default().push(line);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(file: &str, before: &str, now: &str) -> Vec<&'static str> {
        changed_parts(file, Some(before.as_bytes()), now.as_bytes())
    }

    #[test]
    fn what_of_a_file_checks_run_by() {
        let before = "[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n[tool.ruff]\nselect = [\"E\"]\n";
        let is_none: [&str; 0] = [];
        assert_eq!(changed("pyproject.toml", before, &before.replace("\"a\"", "\"b\"")), is_none);
        let quiet = before.replace("-q", "-q --ignore tests");
        assert_eq!(changed("sub/pyproject.toml", before, &quiet), ["tool.pytest"]);
        let gone = before.split("[tool.ruff]").next().unwrap();
        assert_eq!(changed("pyproject.toml", before, gone), ["tool.ruff"]);
        assert_eq!(changed("pyproject.toml", before, "[tool"), ["tool.pytest", "tool.ruff"]);
        let new = changed_parts("pyproject.toml", None, before.as_bytes());
        assert_eq!(new, ["tool.pytest", "tool.ruff"]);

        let before =
            "[metadata]\nname = a\n[mypy]\nstrict = True\n[mypy-x.*]\n# why\nstrict = True\n";
        assert_eq!(changed("setup.cfg", before, &before.replace("# why\n", "\n")), is_none);
        assert_eq!(changed("setup.cfg", before, &before.replace("= a", "= b")), is_none);
        let lax = before.replace("# why\nstrict", "ignore_errors");
        assert_eq!(changed("setup.cfg", before, &lax), ["mypy"]);
        let shown =
            before.replace("[mypy]", "[mypy] # all of it").replace("strict = True", "strict=True");
        assert_eq!(changed("setup.cfg", before, &shown), is_none);
        assert_eq!(changed("setup.cfg", before, &shown.replace("True", "False")), ["mypy"]);

        let before = r#"{"version": "1", "jest": {"bail": true}}"#;
        assert_eq!(
            changed("package.json", before, r#"{"version": "2", "jest": {"bail": true}}"#),
            is_none
        );
        assert_eq!(changed("package.json", before, r#"{"version": "1"}"#), ["jest"]);
        let before = "[package]\nname = \"a\"\n[lints.rust]\nunsafe_code = \"deny\"\n";
        assert_eq!(
            changed("Cargo.toml", before, &format!("{before}[lib]\ntest = false\n")),
            ["lib.test"]
        );
        assert_eq!(changed("Cargo.toml", before, &before.replace("deny", "allow")), ["lints"]);
        assert_eq!(changed_parts("new/Cargo.toml", None, before.as_bytes()), is_none);
        assert_eq!(changed("setup.py", "a", "b"), is_none);
    }
}
