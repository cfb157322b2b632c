//! The plan of one part of a phase: a head in YAML, then an objective and tasks between tags.

use serde::Deserialize;

use super::reader::Reader;
use crate::domain::ids::{PlanItemId, RequirementId};
use crate::domain::plan::{PlanPart, Requirement, RequirementTime};

/// The head. What it says beside this is not used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head {
    phase: Option<serde_yaml::Value>,
    plan: Option<serde_yaml::Value>,
    depends_on: Vec<serde_yaml::Value>,
    files_modified: Vec<String>,
    requirements: Vec<String>,
    must_haves: MustHaves,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MustHaves {
    truths: Vec<String>,
}

fn word(value: &serde_yaml::Value) -> String {
    let number = || value.as_u64().map(|number| format!("{number:02}"));
    let text = value.as_str().map(|text| text.trim().to_owned());
    text.or_else(number).unwrap_or_default()
}

/// Reads one; none where it has no such head.
pub(super) fn read(text: &str) -> Option<Reader> {
    let rest = text.strip_prefix("---\n")?;
    let (head, body) = rest.split_once("\n---")?;
    let mut reader = Reader::default();
    let head: Head = match serde_yaml::from_str(head) {
        Ok(head) => head,
        Err(error) if head.contains("phase:") && head.contains("plan:") => {
            let line = error.location().map_or(1, |at| at.line());
            let line = u32::try_from(line).unwrap_or(1) + 1;
            reader.fault(line, format!("the head does not parse: {error}"), "write it as YAML");
            return Some(reader);
        }
        Err(_) => return None,
    };
    let (phase, plan) = (word(head.phase.as_ref()?), word(head.plan.as_ref()?));
    let own = format!("{}-{plan}", phase_number(&phase));
    // Some name a plan in full.
    let id = if plan.contains('-') { plan } else { own };
    let first = |key: &str| line_with(text, key).unwrap_or(1);
    let objective = between(body, "objective").map(|(_, words)| words).unwrap_or_default();
    let title =
        objective.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(&id).to_owned();
    match PlanItemId::parse(&id) {
        Ok(id) => reader.item(id, &title, first("plan:")),
        Err(error) => {
            let message = format!("\"{}\" is no id: {error}", id.escape_debug());
            reader.fault(first("plan:"), message, "write `phase: 01-name` and `plan: 01`");
            return Some(reader);
        }
    }
    title.clone_into(&mut reader.plan.title);
    reader.scope(objective.trim());
    let on: Vec<String> = head.depends_on.iter().map(word).collect();
    reader.depends_on(&on, first("depends_on:"));
    reader.allowed(head.files_modified, first("files_modified:"));
    for name in &head.requirements {
        if let Ok(id) = RequirementId::parse(name) {
            let part = PlanPart::Requirement(reader.plan.requirements.len());
            reader.lines.insert(part, first("requirements:"));
            let (text, when) = (String::new(), RequirementTime::Now);
            reader.plan.requirements.push(Requirement { id, text, when });
        }
    }
    reader.serves(&head.requirements, first("requirements:"));
    for truth in &head.must_haves.truths {
        reader.criterion(truth, 0, line_with(text, truth).unwrap_or_else(|| first("truths:")));
    }
    tasks(&mut reader, text);
    Some(reader)
}

/// `01-foundation` is phase `01`.
fn phase_number(phase: &str) -> &str {
    let end = phase.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    match end {
        Some(0) | None => phase,
        Some(end) => &phase[..end],
    }
}

fn line_with(text: &str, words: &str) -> Option<u32> {
    let at = text.lines().position(|line| line.contains(words))?;
    u32::try_from(at + 1).ok()
}

/// What stands between a tag and its end, and where it begins.
fn between<'t>(text: &'t str, tag: &str) -> Option<(usize, &'t str)> {
    let open = text.find(&format!("<{tag}"))?;
    let from = open + text[open..].find('>')? + 1;
    let end = text[from..].find(&format!("</{tag}>"))?;
    Some((from, &text[from..from + end]))
}

fn tasks(reader: &mut Reader, text: &str) {
    let mut at = 0;
    while let Some((from, task)) = text.get(at..).and_then(|rest| between_task(rest)) {
        let line = text[..at + from].matches('\n').count() + 1;
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        let part =
            |tag: &str| between(task, tag).map(|(_, words)| words.trim()).unwrap_or_default();
        let name = part("name").split_whitespace().collect::<Vec<_>>().join(" ");
        reader.scope(&format!("{name}: {}", lines_of(part("action"))));
        let (behavior, verify) = (lines_of(part("behavior")), verified(part("verify")));
        for (label, words) in [("Behavior", behavior), ("Verify", verify)] {
            if !words.is_empty() {
                reader.scope(&format!("{label}: {words}"));
            }
        }
        for criteria in [part("acceptance_criteria"), part("done")] {
            for criterion in criteria.lines().map(|line| line.trim().trim_start_matches("- ")) {
                reader.criterion(criterion, 0, line);
            }
        }
        at += from + task.len();
    }
    let after = text.get(at..).unwrap_or_default();
    if let Some((_, words)) = between(after, "verification") {
        reader.scope(&format!("Verify: {}", verified(words)));
    }
    if let Some((from, words)) = between(after, "success_criteria") {
        let line = text[..at + from].matches('\n').count() + 1;
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        for criterion in lines_of(words).lines() {
            let criterion = ["- ", "[ ] ", "[x] "]
                .iter()
                .fold(criterion, |text, mark| text.strip_prefix(mark).unwrap_or(text));
            reader.criterion(criterion, 0, line);
        }
    }
}

/// How something is verified: the lines of it, without the tags that say by whom.
fn verified(text: &str) -> String {
    let tags = ["automated", "manual", "human"].into_iter();
    let tags = tags.flat_map(|tag| [format!("<{tag}>"), format!("</{tag}>")]);
    lines_of(&tags.fold(text.to_owned(), |text, tag| text.replace(&tag, "")))
}

/// The lines of a text as they are written, without blank lines and what all are indented by.
fn lines_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|it| !it.is_empty()).collect();
    let indent = |line: &&str| line.len() - line.trim_start().len();
    // The first line stands behind its tag.
    let least = lines.iter().skip(1).map(indent).min().unwrap_or_default();
    let cut = lines.iter().map(|line| line.get(least.min(indent(line))..).unwrap_or(line));
    cut.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// A `<task …>`, and not the `<tasks>` around them.
fn between_task(text: &str) -> Option<(usize, &str)> {
    let open = [text.find("<task "), text.find("<task>")].into_iter().flatten().min()?;
    let (from, task) = between(&text[open..], "task")?;
    Some((open + from, task))
}
