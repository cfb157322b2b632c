//! Commit messages (`spec/teams.md` 11.4). Pure.

use crate::domain::evidence::ChangedPath;
use crate::domain::ids::{ItemId, RequestId, SprintId, TodoId};

/// What is known about the work when it is committed. Texts may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageParts {
    /// The sprint, where the work is part of one.
    pub sprint: Option<SprintId>,
    /// The todo that the sprint made of it.
    pub todo: Option<TodoId>,
    /// The backlog item that it comes from.
    pub backlog: Option<ItemId>,
    /// The request; also written as a trailer, so that a commit leads back to its room.
    pub request: Option<RequestId>,
    /// What changes for a user of the project, in a few words.
    pub functional_title: String,
    /// The title of the request or item.
    pub title: String,
    /// Lines at its end, beside the one that names the request.
    pub trailers: Vec<String>,
    /// What the last report said.
    pub summary: String,
}

/// The longest behaviour text in a subject line, in characters.
const MAX_BEHAVIOUR: usize = 100;
const NO_BEHAVIOUR: &str = "complete task changes";

/// Words that describe the paperwork of a change instead of what it does. Korean ones match as stems,
/// because endings follow them; English ones match as whole words.
const META_STEMS: [&str; 10] = [
    "정리",
    "구체화",
    "반영",
    "동기화",
    "재구성",
    "업데이트",
    "개선",
    "프롬프트",
    "문서",
    "라우팅",
];
const META_KOREAN_PHRASES: [&str; 1] = ["회귀 테스트"];
const META_WORDS: [&str; 2] = ["prompt", "regression test"];

/// `[<sprint>] <todo|backlog|request|task> <file>: <behaviour>`.
#[must_use]
pub fn subject(parts: &MessageParts, paths: &[ChangedPath]) -> String {
    let mut line = String::new();
    if let Some(sprint) = &parts.sprint {
        line.push_str(&format!("[{sprint}] "));
    }
    let todo = parts.todo.as_ref().map(TodoId::as_str);
    let backlog = parts.backlog.as_ref().map(ItemId::as_str);
    let request = parts.request.as_ref().map(RequestId::as_str);
    line.push_str(todo.or(backlog).or(request).unwrap_or("task"));
    line.push(' ');
    line.push_str(&one_line(main_file(paths)));
    line.push_str(": ");
    line.push_str(&behaviour(parts));
    line
}

/// The subject and, below it, trailers; the last one names the request.
#[must_use]
pub fn message(parts: &MessageParts, paths: &[ChangedPath]) -> String {
    let request = parts.request.as_ref().map(|request| format!("Request: {request}"));
    let trailers = parts.trailers.iter().cloned().chain(request);
    let trailers: String = trailers.map(|line| format!("\n{line}")).collect();
    let gap = if trailers.is_empty() { "" } else { "\n" };
    format!("{}{gap}{trailers}\n", subject(parts, paths))
}

/// The request that a commit's message names in the trailer that [`message`] writes.
#[must_use]
pub fn request_of(message: &str) -> Option<RequestId> {
    let last = message.trim_end().lines().last()?;
    RequestId::parse(last.strip_prefix("Request: ")?.trim()).ok()
}

fn behaviour(parts: &MessageParts) -> String {
    let functional = one_line(&parts.functional_title);
    let candidates = [
        if is_meta(&functional) { String::new() } else { functional },
        one_line(&parts.title),
        one_line(&parts.summary),
    ];
    let text = candidates
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_else(|| NO_BEHAVIOUR.to_owned());
    if text.chars().count() <= MAX_BEHAVIOUR {
        return text;
    }
    let mut cut: String = text.chars().take(MAX_BEHAVIOUR - 1).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_meta(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    META_STEMS.iter().any(|stem| lower.contains(stem))
        || META_KOREAN_PHRASES.iter().any(|phrase| lower.contains(phrase))
        || META_WORDS.iter().any(|meta| {
            let meta: Vec<&str> = meta.split(' ').collect();
            words.windows(meta.len()).any(|run| run == meta)
        })
}

/// The file that names the change best: code before other files before tests before Markdown, then by path.
fn main_file(paths: &[ChangedPath]) -> &str {
    let best =
        paths.iter().map(|changed| changed.path.as_str()).min_by_key(|path| (class(path), *path));
    best.map_or("project", base_name)
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

const CODE: [&str; 38] = [
    "bash", "c", "cc", "clj", "cpp", "cs", "css", "dart", "ex", "exs", "go", "h", "hpp", "hs",
    "html", "java", "js", "jsx", "kt", "lua", "m", "mjs", "ml", "php", "pl", "py", "r", "rb", "rs",
    "scala", "scss", "sh", "sql", "svelte", "swift", "ts", "tsx", "vue",
];

fn class(path: &str) -> u8 {
    let lower = path.to_lowercase();
    let name = base_name(&lower);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if matches!(extension, "md" | "markdown" | "mdx") {
        3
    } else if is_test(&lower) {
        2
    } else if CODE.contains(&extension) {
        0
    } else {
        1
    }
}

fn is_test(path: &str) -> bool {
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    folders
        .iter()
        .any(|folder| matches!(*folder, "test" | "tests" | "__tests__" | "spec" | "specs"))
        || stem == "test"
        || stem == "tests"
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || name.contains(".test.")
        || name.contains(".spec.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::evidence::ChangeKind;

    fn paths(names: &[&str]) -> Vec<ChangedPath> {
        names
            .iter()
            .map(|path| ChangedPath { path: (*path).to_owned(), kind: ChangeKind::Modified })
            .collect()
    }

    #[test]
    fn subjects_name_sprint_item_file_and_behaviour() {
        let g01 = MessageParts {
            sprint: Some(SprintId::parse("260324-Sprint-09:00").unwrap()),
            todo: Some(TodoId::parse("todo-164900-abc123").unwrap()),
            title: "record  commit\npaths".into(),
            ..MessageParts::default()
        };
        assert_eq!(
            subject(&g01, &paths(&["docs/a.md", "workflows/orchestration.py", "tests/test_x.py"])),
            "[260324-Sprint-09:00] todo-164900-abc123 orchestration.py: record commit paths"
        );
        let g02 = MessageParts {
            backlog: Some(ItemId::parse("backlog-1").unwrap()),
            functional_title: "README 문서를 정리한다".into(),
            summary: "say how to install".into(),
            ..MessageParts::default()
        };
        assert_eq!(
            subject(&g02, &paths(&["README.md", "a/AGENTS.md"])),
            "backlog-1 README.md: say how to install"
        );
        let g03 =
            MessageParts { sprint: Some(SprintId::parse("S").unwrap()), ..MessageParts::default() };
        assert_eq!(
            subject(&g03, &paths(&["tests/test_a.py", "team_runtime.yaml"])),
            "[S] task team_runtime.yaml: complete task changes"
        );
    }

    #[test]
    fn meta_words_match_as_words_and_korean_ones_as_stems() {
        for meta in
            ["Prompt for planner", "add a regression test", "회귀 테스트 추가", "라우팅을 개선"]
        {
            assert!(is_meta(meta), "{meta}");
        }
        for plain in ["respond promptly", "regression in test order", "로그인 추가"] {
            assert!(!is_meta(plain), "{plain}");
        }
    }

    #[test]
    fn a_plain_request_names_itself_and_leaves_a_trailer() {
        let parts = MessageParts {
            request: Some(RequestId::parse("20260324-0a1b2c3d").unwrap()),
            title: "x".repeat(300),
            ..MessageParts::default()
        };
        let text = message(&parts, &paths(&["src/한글 -> b.rs"]));
        assert!(text.starts_with("20260324-0a1b2c3d 한글 -> b.rs: xxx"));
        assert!(text.ends_with("x…\n\nRequest: 20260324-0a1b2c3d\n"));
        assert_eq!(request_of(&text), parts.request);
        for other in ["", "by hand\n", "Request: nobody's\n\nand more", "Request: ../x\n"] {
            assert_eq!(request_of(other), None, "{other:?}");
        }
    }
}
