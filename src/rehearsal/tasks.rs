//! The project's task list, `TASKS.md`, and what a request asks for.
//!
//! A task is a heading `## <number>. <title>`, some prose, and edit blocks. Whether it is done is not
//! noted anywhere: it is done when the outcome of each of its edits is in the files. A line such as
//! `After 1 and 3.` in it names the tasks that come before.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::edits::{self, Edit, Part};
use crate::platform::files;

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskItem {
    pub(super) number: u32,
    pub(super) title: String,
    pub(super) edits: Vec<Edit>,
    /// Tasks that come before it.
    pub(super) after: Vec<u32>,
}

impl TaskItem {
    pub(super) fn is_done(&self, root: &Path) -> bool {
        self.edits.iter().all(|edit| edit.is_done(root))
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Job {
    /// A task of the list.
    Task(TaskItem),
    /// Edits that the message spells out.
    Literal(Vec<Edit>),
    /// The list has nothing left, or not the task that was named.
    NoSuchTask,
    /// Something that takes understanding.
    Unknown,
}

impl Job {
    pub(super) fn edits(&self) -> &[Edit] {
        match self {
            Job::Task(item) => &item.edits,
            Job::Literal(edits) => edits,
            Job::NoSuchTask | Job::Unknown => &[],
        }
    }

    pub(super) fn title(&self, language: &str) -> String {
        match self {
            Job::Task(item) if language == "ko" => format!("작업 {}: {}", item.number, item.title),
            Job::Task(item) => format!("task {}: {}", item.number, item.title),
            Job::Literal(edits) => {
                let words: Vec<String> = edits.iter().map(|edit| edit.describe(language)).collect();
                words.join(", ")
            }
            Job::NoSuchTask | Job::Unknown => "nothing that can be rehearsed".to_owned(),
        }
    }
}

static HEADING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^##\s+(\d{1,6})[.)]\s+(.+?)\s*$").ok());
static NUMBERED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\btask\s*(?:no\.?|number)?\s*#?(\d{1,6})\b|(?:작업|태스크|과제)\s*(\d{1,6})|(\d{1,6})\s*번\s*(?:째\s*)?(?:작업|태스크|과제)").ok()
});
static NEXT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\bnext\s+(?:open\s+)?task\b|다음\s*(?:작업|태스크|과제|할\s*일)").ok()
});

static AFTER: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let list = r"(\d{1,6}(?:\s*(?:,\s*and|,|and|&|와|과)\s*\d{1,6})*)";
    let forms = [
        format!(r"(?i)^\s*after\s+(?:tasks?\s+)?{list}\s*\.?\s*$"),
        format!(r"^\s*{list}\s*번?\s*(?:작업)?\s*(?:뒤에|다음에|후에)\s*\.?\s*$"),
    ];
    forms.iter().filter_map(|form| Regex::new(form).ok()).collect()
});
static NAMED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let list = r"(#?\d{1,6}(?:(?:\s*번)?\s*(?:,\s*and|,|and|to|&|-|–|와|과|~|부터)\s*#?\d{1,6})*)";
    let forms = [
        format!(r"(?i)\btasks?\s*(?:no\.?|numbers?)?\s*{list}\b"),
        format!(r"(?:작업|태스크|과제)\s*{list}"),
        format!(r"{list}\s*번\s*(?:째\s*)?(?:작업|태스크|과제)"),
    ];
    forms.iter().filter_map(|form| Regex::new(form).ok()).collect()
});
static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\d+").ok());

fn numbers(text: &str) -> Vec<u32> {
    let found = NUMBER.iter().flat_map(|number| number.find_iter(text));
    found.filter_map(|number| number.as_str().parse().ok()).collect()
}

fn after(body: &str) -> Vec<u32> {
    let mut all = Vec::new();
    for part in edits::parts(body) {
        if let Part::Line(line) = part {
            let found = AFTER.iter().find_map(|form| form.captures(line));
            all.extend(found.iter().flat_map(|found| numbers(&found[1])));
        }
    }
    all
}

/// The tasks that a text names, by number (`tasks 1, 2 and 4`, `tasks 1 to 3`, `3번 작업`) or by title, in
/// the order of the list.
pub(super) fn named<'i>(text: &str, items: &'i [TaskItem]) -> Vec<&'i TaskItem> {
    let mut wanted = std::collections::BTreeSet::new();
    for found in NAMED.iter().flat_map(|form| form.captures_iter(text)) {
        let list = &found[1];
        let numbers = numbers(list);
        match numbers.as_slice() {
            [from, to] if ["to", "-", "–", "~", "부터"].iter().any(|word| list.contains(word)) =>
            {
                wanted
                    .extend(items.iter().map(|item| item.number).filter(|n| n >= from && n <= to));
            }
            numbers => wanted.extend(numbers),
        }
    }
    let lower = text.to_lowercase();
    let is_named = |item: &&TaskItem| {
        wanted.contains(&item.number) || lower.contains(&item.title.to_lowercase())
    };
    items.iter().filter(is_named).collect()
}

/// Reads the task list of a project; empty where there is none.
pub(super) fn list(root: &Path) -> Vec<TaskItem> {
    let text = files::read_text(&root.join("TASKS.md")).unwrap_or_default();
    parse(&text)
}

fn parse(text: &str) -> Vec<TaskItem> {
    let mut sections: Vec<(u32, String, String)> = Vec::new();
    for part in edits::parts(text) {
        match part {
            Part::Line(line) => {
                let found = HEADING.as_ref().and_then(|heading| heading.captures(line));
                match found.map(|found| (found[1].parse(), found[2].to_owned())) {
                    Some((Ok(number), title)) => sections.push((number, title, String::new())),
                    Some((Err(_), _)) | None => append(&mut sections, line),
                }
            }
            Part::Block(block) => {
                // Written back with a fence that the block cannot close.
                append(&mut sections, "``````````");
                if let Some((_, _, body)) = sections.last_mut() {
                    body.push_str(&block);
                }
                append(&mut sections, "``````````");
            }
        }
    }
    sections
        .into_iter()
        .map(|(number, title, body)| TaskItem {
            number,
            title,
            edits: edits::read(&body),
            after: after(&body),
        })
        .filter(|item| !item.edits.is_empty())
        .collect()
}

fn append(sections: &mut [(u32, String, String)], line: &str) {
    if let Some((_, _, body)) = sections.last_mut() {
        body.push_str(line);
        body.push('\n');
    }
}

/// What a message asks for: an edit that it spells out, a task by number or title, or the next task
/// that is not done. `chosen` is the task that this request was already found to be about.
pub(super) fn job(text: &str, root: &Path, chosen: Option<u32>) -> Job {
    let literal = edits::read(text);
    if !literal.is_empty() {
        return Job::Literal(literal);
    }
    let items = list(root);
    if let [first, others @ ..] = &named(text, &items)[..]
        && !others.is_empty()
    {
        return Job::Task(together(first, others));
    }
    let by_number = |number: u32| items.iter().find(|item| item.number == number).cloned();
    let named = NUMBERED.as_ref().and_then(|pattern| pattern.captures(text)).and_then(|found| {
        let digits = found.iter().skip(1).flatten().next()?;
        digits.as_str().parse().ok()
    });
    if let Some(number) = named {
        return by_number(number).map_or(Job::NoSuchTask, Job::Task);
    }
    let lower = text.to_lowercase();
    if let Some(item) = items.iter().find(|item| lower.contains(&item.title.to_lowercase())) {
        return Job::Task(item.clone());
    }
    if NEXT.as_ref().is_some_and(|next| next.is_match(text)) {
        let next = match chosen {
            Some(number) => by_number(number),
            None => items.iter().find(|item| !item.is_done(root)).cloned(),
        };
        return next.map_or(Job::NoSuchTask, Job::Task);
    }
    Job::Unknown
}

/// Several tasks as the first of them, with the edits of all.
fn together(first: &TaskItem, others: &[&TaskItem]) -> TaskItem {
    let mut all = first.clone();
    for other in others {
        all.title = format!("{}; {}: {}", all.title, other.number, other.title);
        all.edits.extend(other.edits.iter().cloned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# Tasks\n\n## 1. Say goodbye\n\nThe program only greets.\n\nIn `g.sh` replace:\n```sh\n## 9. not a heading\n```\nwith:\n```sh\nbye\n```\n\n## 2. Explain it\n\nCreate `DOC.md`:\n```\ntext\n```\n";

    #[test]
    fn what_comes_before_a_task_and_which_tasks_a_text_names() {
        let text = "## 1. Say one\n\nCreate `a`:\n```\nafter 9\n```\n## 2. Say two\nAfter 1.\nCreate `b`:\n```\nb\n```\n## 3. Say three\nAfter tasks 1 and 2\nCreate `c`:\n```\nc\n```\n## 4. Say four\n1, 3번 작업 뒤에\nCreate `d`:\n```\nd\n```\n";
        let items = parse(text);
        let after: Vec<&[u32]> = items.iter().map(|item| item.after.as_slice()).collect();
        assert_eq!(after, [&[][..], &[1], &[1, 2], &[1, 3]]);
        for (text, wanted) in [
            ("finish tasks 1, 2 and 4", vec![1, 2, 4]),
            ("tasks 2 to 4 are done", vec![2, 3, 4]),
            ("1번 작업과 3번 작업", vec![1, 3]),
            ("작업 2~3을 끝낸다", vec![2, 3]),
            ("say THREE, please", vec![3]),
            ("make it faster in 2 days", vec![]),
        ] {
            let found: Vec<u32> = named(text, &items).iter().map(|item| item.number).collect();
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn tasks_are_found_by_number_title_and_turn() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        files::write(&root.join("TASKS.md"), LIST).unwrap();
        files::write(&root.join("g.sh"), "a\n## 9. not a heading\nb\n").unwrap();
        let number = |text: &str, chosen| match job(text, root, chosen) {
            Job::Task(item) => Some(item.number),
            Job::Literal(_) | Job::NoSuchTask | Job::Unknown => None,
        };
        assert_eq!(list(root).len(), 2);
        for text in ["do task 2", "Task #2 please", "2번 작업 해줘", "explain it, please"] {
            assert_eq!(number(text, None), Some(2), "{text}");
        }
        for text in ["do task 1 and task 2", "1번, 2번 작업 해줘", "do tasks 1 and 2"] {
            let all = job(text, root, None);
            assert_eq!(
                (all.edits().len(), &*all.title("en")),
                (2, "task 1: Say goodbye; 2: Explain it"),
                "{text}"
            );
        }
        assert_eq!(number("do the next task", None), Some(1));
        list(root)[0].edits[0].apply(root).unwrap();
        assert_eq!(files::read_text(&root.join("g.sh")).unwrap(), "a\nbye\nb\n");
        assert_eq!(number("다음 작업 진행해줘", None), Some(2));
        assert_eq!(number("the next task", Some(1)), Some(1));
        assert_eq!(job("do task 7", root, None), Job::NoSuchTask);
        assert_eq!(job("make it faster", root, None), Job::Unknown);
    }
}
