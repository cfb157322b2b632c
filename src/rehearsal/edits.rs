//! Literal edits: reading them out of a text and doing them.
//!
//! A task list writes them as blocks (``In `path` replace:`` and a fenced block, `with:` and another;
//! ``Create `path`:`` or ``Append to `path`:`` and a block); people may also write them in a line
//! (`in path replace "a" with "b"`), in English or Korean.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::platform::files;

/// One edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    /// Relative to the worktree.
    pub(super) path: String,
    pub(super) change: Change,
}

/// What an edit does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Replace { old: String, new: String },
    Create { text: String },
    Append { text: String },
}

/// Why an edit cannot be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum EditError {
    #[error("the path {0:?} leads out of the project")]
    Outside(String),
    #[error("{path} does not contain the text to be replaced")]
    NotFound { path: String },
    #[error("there is no file {path}")]
    Missing { path: String },
    #[error("{path} already exists with other content")]
    Exists { path: String },
    #[error(transparent)]
    File(#[from] files::FileError),
}

impl Edit {
    /// Whether its outcome is already there.
    pub(super) fn is_done(&self, root: &Path) -> bool {
        let Ok(path) = inside(root, &self.path) else {
            return false;
        };
        let Ok(Some(content)) = files::read_text_if_present(&path) else {
            return false;
        };
        match &self.change {
            // What the new text has of the old one stays.
            Change::Replace { old, new } if new.contains(old) => {
                content.contains(new) && !content.replace(new, "\0").contains(old)
            }
            Change::Replace { old, new } => content.contains(new) && !content.contains(old),
            Change::Create { text } => content.trim_end() == text.trim_end(),
            Change::Append { text } => {
                let (all, own): (Vec<_>, Vec<_>) =
                    (content.lines().collect(), text.trim_end().lines().collect());
                own.is_empty() || all.windows(own.len()).any(|lines| lines == own)
            }
        }
    }

    /// Does it; one that is already done is left as it is.
    pub(super) fn apply(&self, root: &Path) -> Result<(), EditError> {
        if self.is_done(root) {
            return Ok(());
        }
        let path = inside(root, &self.path)?;
        let before = files::read_text_if_present(&path)?;
        let after = match (&self.change, before) {
            (Change::Replace { old, new }, Some(content)) if content.contains(old) => {
                content.replace(old, new)
            }
            (Change::Replace { .. }, Some(_)) => {
                return Err(EditError::NotFound { path: self.path.clone() });
            }
            (Change::Replace { .. }, None) => {
                return Err(EditError::Missing { path: self.path.clone() });
            }
            (Change::Create { .. }, Some(_)) => {
                return Err(EditError::Exists { path: self.path.clone() });
            }
            (Change::Create { text } | Change::Append { text }, None) => lines(text),
            (Change::Append { text }, Some(content)) if content.is_empty() => lines(text),
            (Change::Append { text }, Some(content)) => lines(&content) + &lines(text),
        };
        if let Some(folder) = path.parent() {
            files::create_dir_all(folder)?;
        }
        files::write(&path, after)?;
        Ok(())
    }

    /// The edit in a few words.
    pub(super) fn describe(&self, language: &str) -> String {
        let path = &self.path;
        let ko = language == "ko";
        match &self.change {
            Change::Replace { old, new } if is_short(old) && is_short(new) => {
                if ko {
                    format!("{path}: `{old}` → `{new}`")
                } else {
                    format!("replace `{old}` with `{new}` in {path}")
                }
            }
            Change::Replace { .. } if ko => format!("{path}: 내용 바꾸기"),
            Change::Replace { .. } => format!("replace text in {path}"),
            Change::Create { .. } if ko => format!("{path}: 새로 만들기"),
            Change::Create { .. } => format!("create {path}"),
            Change::Append { .. } if ko => format!("{path}: 덧붙이기"),
            Change::Append { .. } => format!("append to {path}"),
        }
    }
}

/// Writes a file with the branch's side of each place that a conflict marks, so that the edits are done to what landed
/// meanwhile, and gives it with the side of the request; `None` where the file is not there.
pub(super) fn take_branch_side(root: &Path, path: &str) -> Result<Option<String>, EditError> {
    let path = inside(root, path)?;
    let Some(text) = files::read_text_if_present(&path)? else { return Ok(None) };
    let (mut branch, mut own) = (String::new(), String::new());
    let (mut marked, mut of_branch) = (false, false);
    for line in text.split_inclusive('\n') {
        if !marked && line.starts_with("<<<<<<< ") {
            (marked, of_branch) = (true, true);
        } else if marked && line.trim_end() == "=======" {
            of_branch = false;
        } else if marked && line.starts_with(">>>>>>> ") {
            marked = false;
        } else {
            if !marked || of_branch {
                branch.push_str(line);
            }
            if !(marked && of_branch) {
                own.push_str(line);
            }
        }
    }
    files::write(&path, branch)?;
    Ok(Some(own))
}

/// Writes a file with the side of the request, where its edits find nothing in the branch's.
pub(super) fn take_own_side(root: &Path, path: &str, own: &str) -> Result<(), EditError> {
    Ok(files::write(&inside(root, path)?, own)?)
}

/// Whether a text can be quoted within a sentence.
fn is_short(text: &str) -> bool {
    text.chars().count() <= 30 && !text.is_empty() && !text.contains(['\n', '`'])
}

/// The text, ended by one newline.
fn lines(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// The path within the worktree; links that lead out of it are refused as well.
fn inside(root: &Path, relative: &str) -> Result<PathBuf, EditError> {
    let outside = || EditError::Outside(relative.to_owned());
    let path = Path::new(relative);
    let plain = path.components().all(|part| match part {
        Component::Normal(name) => name != ".git",
        Component::CurDir => true,
        Component::Prefix(_) | Component::RootDir | Component::ParentDir => false,
    });
    if !plain || relative.is_empty() {
        return Err(outside());
    }
    let full = root.join(path);
    let root = files::canonicalize(root)?;
    let existing = full.ancestors().find(|part| files::symlink_metadata(part).is_ok());
    let real = existing.and_then(|part| files::canonicalize(part).ok());
    match real {
        Some(real) if real.starts_with(&root) => Ok(full),
        Some(_) | None => Err(outside()),
    }
}

/// A line of text, or the content of a fenced block.
#[derive(Debug, PartialEq)]
pub(super) enum Part<'a> {
    Line(&'a str),
    Block(String),
}

/// Splits a text into lines and fenced blocks.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for line in text.lines() {
        let fence = line.trim_start().chars().take_while(|c| *c == '`').count();
        match &mut open {
            Some((length, _)) if fence >= *length && line.trim().len() == fence => {
                if let Some((_, block)) = open.take() {
                    parts.push(Part::Block(block));
                }
            }
            Some((_, block)) => {
                block.push_str(line);
                block.push('\n');
            }
            // What follows the fence is the language, which holds no backtick.
            None if fence >= 3 && !line.trim_start()[fence..].contains('`') => {
                open = Some((fence, String::new()));
            }
            None => parts.push(Part::Line(line)),
        }
    }
    if let Some((_, block)) = open {
        parts.push(Part::Block(block));
    }
    parts
}

const FILE: &str = r#"[`"']?(?P<file>[^\s`"']+?)[`"']?"#;

/// A quoted text as a group: straight, typographic or code quotes.
fn quote(name: &str) -> String {
    format!(
        r#"(?:"(?P<{name}1>[^"]*)"|`(?P<{name}2>[^`]*)`|“(?P<{name}3>[^”]*)”|'(?P<{name}4>[^']*)')"#
    )
}

fn quoted(found: &Captures<'_>, name: &str) -> String {
    (1..=4)
        .find_map(|index| found.name(&format!("{name}{index}")))
        .map_or_else(String::new, |part| part.as_str().to_owned())
}

/// The forms in which edits are written; each pattern is compiled once and a test holds that all do.
struct Forms {
    replace_line: Vec<Regex>,
    create_line: Vec<Regex>,
    append_line: Vec<Regex>,
    replace_block: Vec<Regex>,
    with_block: Vec<Regex>,
    create_block: Vec<Regex>,
    append_block: Vec<Regex>,
}

static FORMS: LazyLock<Forms> = LazyLock::new(|| {
    let (a, b) = (quote("a"), quote("b"));
    let compile = |patterns: &[String]| {
        let compiled = patterns.iter().filter_map(|text| Regex::new(text).ok());
        compiled.collect()
    };
    Forms {
        replace_line: compile(&[
            format!(
                r"(?i)\bin\s+(?:the\s+file\s+)?{FILE},?\s+(?:please\s+)?(?:replace|change)\s+{a}\s+(?:with|by|to)\s+{b}"
            ),
            format!(
                r"(?i)\b(?:replace|change)\s+{a}\s+(?:with|by|to)\s+{b}\s+in\s+(?:the\s+file\s+)?{FILE}[.,;!]?(?:\s|$)"
            ),
            format!(
                r"{FILE}\s*(?:파일)?\s*에서\s*{a}\s*(?:을|를)?\s*{b}\s*(?:으로|로)\s*(?:바꿔|바꾸|변경|교체|수정)"
            ),
        ]),
        create_line: compile(&[
            format!(r"(?i)\bcreate\s+(?:the\s+file\s+)?{FILE}\s+with\s+(?:the\s+text\s+)?{a}"),
            format!(r"{FILE}\s*(?:파일)?\s*(?:을|를)\s*{a}\s*(?:으로|로|내용으로)\s*(?:만들|생성)"),
        ]),
        append_line: compile(&[
            format!(r"(?i)\bappend\s+{a}\s+to\s+(?:the\s+file\s+)?{FILE}[.,;!]?(?:\s|$)"),
            format!(r"{FILE}\s*(?:파일)?\s*에\s*{a}\s*(?:을|를)?\s*(?:추가|덧붙)"),
        ]),
        replace_block: compile(&[
            format!(r"(?i)^\W*in\s+{FILE},?\s+replace\s*:\s*$"),
            format!(
                r"^\s*[-*]?\s*{FILE}\s*(?:파일)?\s*에서\s*(?:다음을\s*)?(?:바꾸기|바꿔|변경|교체)[^:]*:\s*$"
            ),
        ]),
        with_block: compile(&[
            r"(?i)^\W*with\s*:\s*$".to_owned(),
            r"^\s*(?:다음으로|이것으로|아래로)\s*:\s*$".to_owned(),
        ]),
        create_block: compile(&[
            format!(
                r"(?i)^\W*create\s+(?:the\s+file\s+)?{FILE}(?:\s+with(?:\s+the\s+text)?)?\s*:\s*$"
            ),
            format!(r"^\s*[-*]?\s*{FILE}\s*(?:파일)?\s*(?:을|를)?\s*(?:만들|생성)[^:]*:\s*$"),
        ]),
        append_block: compile(&[
            format!(r"(?i)^\W*append\s+to\s+(?:the\s+file\s+)?{FILE}\s*:\s*$"),
            format!(r"^\s*[-*]?\s*{FILE}\s*(?:파일)?\s*에\s*(?:다음을\s*)?(?:추가|덧붙)[^:]*:\s*$"),
        ]),
    }
});

fn first<'t>(forms: &[Regex], line: &'t str) -> Option<Captures<'t>> {
    forms.iter().find_map(|form| form.captures(line))
}

/// The edits that a text asks for, in its order.
pub(super) fn read(text: &str) -> Vec<Edit> {
    let forms = &*FORMS;
    let all: Vec<Part<'_>> = parts(text)
        .into_iter()
        .filter(|part| !matches!(part, Part::Line(line) if line.trim().is_empty()))
        .collect();
    let mut edits = Vec::new();
    for (index, part) in all.iter().enumerate() {
        let Part::Line(line) = part else { continue };
        let file =
            |found: &Captures<'_>| found.name("file").map_or("", |part| part.as_str()).to_owned();
        let block = |ahead: usize| match all.get(index + ahead) {
            Some(Part::Block(text)) => Some(text.clone()),
            Some(Part::Line(_)) | None => None,
        };
        let says_with = matches!(all.get(index + 2), Some(Part::Line(line)) if first(&forms.with_block, line).is_some());
        let edit = if let Some(found) = first(&forms.replace_block, line) {
            match (block(1), block(3)) {
                (Some(old), Some(new)) if says_with => {
                    Some((file(&found), Change::Replace { old, new }))
                }
                (Some(_) | None, Some(_) | None) => None,
            }
        } else if let Some(found) = first(&forms.create_block, line) {
            block(1).map(|text| (file(&found), Change::Create { text }))
        } else if let Some(found) = first(&forms.append_block, line) {
            block(1).map(|text| (file(&found), Change::Append { text }))
        } else if let Some(found) = first(&forms.replace_line, line) {
            let (old, new) = (quoted(&found, "a"), quoted(&found, "b"));
            Some((file(&found), Change::Replace { old, new }))
                .filter(|_| !quoted(&found, "a").is_empty())
        } else if let Some(found) = first(&forms.create_line, line) {
            Some((file(&found), Change::Create { text: quoted(&found, "a") }))
        } else {
            first(&forms.append_line, line)
                .map(|found| (file(&found), Change::Append { text: quoted(&found, "a") }))
        };
        edits.extend(edit.map(|(path, change)| Edit { path, change }));
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(path: &str, change: Change) -> Edit {
        Edit { path: path.to_owned(), change }
    }

    fn replace(old: &str, new: &str) -> Change {
        Change::Replace { old: old.to_owned(), new: new.to_owned() }
    }

    #[test]
    fn every_form_is_read() {
        let text = |text: &str| text.to_owned();
        let table = [
            (
                r#"Please in src/a.sh replace "hello" with "good day""#,
                edit("src/a.sh", replace("hello", "good day")),
            ),
            ("replace `x` with `y` in `notes.txt`.", edit("notes.txt", replace("x", "y"))),
            ("greet.sh에서 \"hello\"를 \"hi\"로 바꿔줘", edit("greet.sh", replace("hello", "hi"))),
            ("In `a b`? no", edit("", replace("", ""))),
            (
                "Create `n.txt` with:\n```\none\ntwo\n```\n",
                edit("n.txt", Change::Create { text: text("one\ntwo\n") }),
            ),
            (
                "append to `n.txt`:\n\n````md\n```\nx\n```\n````",
                edit("n.txt", Change::Append { text: text("```\nx\n```\n") }),
            ),
            (
                "n.txt에 추가해줘:\n```\nend\n```",
                edit("n.txt", Change::Append { text: text("end\n") }),
            ),
            (
                "n.txt 파일을 만들어줘:\n```\nend\n```",
                edit("n.txt", Change::Create { text: text("end\n") }),
            ),
            (
                "In `a.sh` replace:\n```sh\nold\n```\nwith:\n```sh\nnew\n```",
                edit("a.sh", replace("old\n", "new\n")),
            ),
            (
                "`a.sh`에서 바꾸기:\n```\nold\n```\n다음으로:\n```\nnew\n```",
                edit("a.sh", replace("old\n", "new\n")),
            ),
        ];
        for (text, expected) in table {
            let found = read(text);
            if expected.path.is_empty() {
                assert!(found.is_empty(), "{text}: {found:?}");
            } else {
                assert_eq!(found, [expected], "{text}");
            }
        }
    }

    #[test]
    fn an_edit_is_done_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let edits = [
            edit("d/n.txt", Change::Create { text: "one".to_owned() }),
            edit("d/n.txt", Change::Append { text: "two".to_owned() }),
            edit("d/n.txt", replace("one", "one and a half")),
        ];
        for edit in &edits {
            assert!(!edit.is_done(root));
            edit.apply(root).unwrap();
            assert!(edit.is_done(root));
            edit.apply(root).unwrap();
        }
        let text = files::read_text(&root.join("d/n.txt")).unwrap();
        assert_eq!(text, "one and a half\ntwo\n");
        for (edit, after) in [
            (edit("d/n.txt", replace(" and a half", "")), "one\ntwo\n"),
            (edit("d/n.txt", replace("one\ntwo", "one")), "one\n"),
        ] {
            assert!(!edit.is_done(root));
            edit.apply(root).unwrap();
            assert!(edit.is_done(root));
            assert_eq!(files::read_text(&root.join("d/n.txt")).unwrap(), after);
        }
        assert!(matches!(
            edit("d/n.txt", replace("three", "four")).apply(root),
            Err(EditError::NotFound { .. })
        ));
    }

    #[test]
    fn nothing_outside_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        files::create_dir_all(&root).unwrap();
        std::os::unix::fs::symlink(folder.path(), root.join("link")).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", root.join("dangling")).unwrap();
        for path in ["../x", "/tmp/x", "a/../../x", ".git/config", "link/x", "dangling", ""] {
            let create = edit(path, Change::Create { text: "x".to_owned() });
            assert!(matches!(create.apply(&root), Err(EditError::Outside(_))), "{path}");
        }
    }
}
