//! What an agent is told: named sections in order of priority, within a budget of bytes.
//!
//! The parts that stay the same from turn to turn come first, so that a provider's prompt cache is of
//! use. What people and other agents wrote is quoted and attributed, never mixed with instructions.
//! The charter, the contract, the rules of the step and the request are never cut; of the rest the
//! last section goes first, and what was cut is said.

use std::collections::BTreeMap;
use std::path::PathBuf;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, context};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::evidence::Evidence;
use crate::domain::incoming::Attachment;
use crate::domain::role::Role;
use crate::domain::workflow::Step;

mod templates;
mod work;

pub use work::{SprintBrief, Work};

/// Something that a person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Who, as people see them.
    pub author: String,
    /// What.
    pub text: String,
}

/// What a role handed back earlier on this request; the latest of each role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Upstream {
    /// The role.
    pub role: Role,
    /// Its step.
    pub step: Option<Step>,
    /// `completed`, `blocked`, `failed`.
    pub status: String,
    /// Its summary.
    pub summary: String,
    /// Its proposals.
    pub proposals: Value,
    /// Its documents.
    #[serde(default)]
    pub artifacts: Vec<String>,
}

/// A document that the role may want.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// As results name it: relative to the workspace.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What it is for.
    pub purpose: String,
    /// Whether this role writes it.
    pub writable: bool,
}

/// Everything that a role is told about its step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The role.
    pub role: Role,
    /// The step; none for the orchestrator's intake and for internal work.
    pub step: Option<Step>,
    /// The request.
    pub request_id: String,
    /// Attempt of the step, from 1.
    pub attempt: u32,
    /// What the role is, from `roles/` or its `AGENTS.md`.
    pub charter: String,
    /// The language of the people, `en` or `ko`.
    pub language: String,
    /// What was asked for.
    pub request: Said,
    /// Files that came with it.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// What was added since, oldest first.
    #[serde(default)]
    pub followups: Vec<Said>,
    /// Why this step is done again: the reviewer's findings, the checks, QA's verdict, the failure of
    /// the attempt before.
    #[serde(default)]
    pub again: Vec<String>,
    /// What the other roles handed back.
    #[serde(default)]
    pub upstream: Vec<Upstream>,
    /// What the runtime saw itself.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// The change so far, as a diff.
    #[serde(default)]
    pub diff: String,
    /// Documents.
    #[serde(default)]
    pub documents: Vec<Document>,
    /// The end of the role's own history.
    #[serde(default)]
    pub history: String,
    /// The sprint and the backlog, where the step has to do with them.
    #[serde(default)]
    pub work: Work,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its text.
    pub text: String,
    /// The sections that were cut, for the log and the run's record.
    pub cut: Vec<String>,
}

/// Why there is no prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// A template does not render; an override of the workspace usually.
    #[error("the prompt template {name} does not render: {source}")]
    Template {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: minijinja::Error,
    },
    /// What must not be cut is too much already.
    #[error(
        "the request and the rules take {needed} bytes and the limit is {budget}; raise `limits.prompt_bytes`"
    )]
    TooLong {
        /// What would be needed.
        needed: usize,
        /// The limit.
        budget: usize,
    },
}

/// How a section may be shortened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Never,
    KeepBeginning,
    KeepEnd,
}

/// The sections in order of priority, which is also the order in which they stand.
const SECTIONS: [(&str, Cut); 14] = [
    ("charter", Cut::Never),
    ("contract", Cut::Never),
    ("step", Cut::Never),
    ("request", Cut::Never),
    ("again", Cut::KeepBeginning),
    ("sprint", Cut::KeepBeginning),
    ("facts", Cut::KeepBeginning),
    ("followups", Cut::KeepEnd),
    ("evidence", Cut::KeepEnd),
    ("upstream", Cut::KeepBeginning),
    ("backlog", Cut::KeepBeginning),
    ("diff", Cut::KeepBeginning),
    ("documents", Cut::KeepBeginning),
    ("history", Cut::KeepEnd),
];

/// Makes the prompt of a task. `overrides` are templates of the workspace by name; `budget` is in
/// bytes.
pub fn assemble(
    task: &Task,
    worktree: &str,
    schema: &Value,
    budget: usize,
    overrides: &BTreeMap<String, String>,
) -> Result<Prompt, PromptError> {
    let environment = environment();
    let values = context! {
        task => Serde(task),
        worktree => worktree,
        schema => serde_json::to_string_pretty(schema).unwrap_or_default(),
    };
    let render = |name: &str| {
        let source = overrides.get(name).map(String::as_str);
        let source = source.or_else(|| templates::built_in(name)).unwrap_or_default();
        environment
            .render_str(source, &values)
            .map(|text| text.trim().to_owned())
            .map_err(|source| PromptError::Template { name: name.to_owned(), source })
    };
    let mut sections = Vec::new();
    for (name, cut) in SECTIONS {
        let file = match name {
            "step" => templates::step(task.role, task.step, &task.work),
            name => format!("{name}.md"),
        };
        sections.push((name, cut, render(&file)?));
    }
    let cut = fit(&mut sections, budget)?;
    let mut text = String::new();
    for (_, _, section) in sections.iter().filter(|(_, _, text)| !text.is_empty()) {
        text.push_str(section);
        text.push_str("\n\n");
    }
    if !cut.is_empty() {
        text.push_str("Shortened for length: ");
        text.push_str(&cut.join(", "));
        text.push_str(".\n");
    }
    Ok(Prompt { text, cut })
}

/// The prompt of a repair turn: what was wrong, and the schema once more.
pub fn repair(
    issues: &[String],
    schema: &Value,
    overrides: &BTreeMap<String, String>,
) -> Result<String, PromptError> {
    let name = "repair.md";
    let source = overrides.get(name).map(String::as_str);
    let source = source.or_else(|| templates::built_in(name)).unwrap_or_default();
    let schema = serde_json::to_string_pretty(schema).unwrap_or_default();
    environment()
        .render_str(source, context! { issues => Serde(issues), schema => schema })
        .map_err(|source| PromptError::Template { name: name.to_owned(), source })
}

/// What people wrote while the role is at work, as it is told.
pub fn steer(words: &[Said], overrides: &BTreeMap<String, String>) -> Result<String, PromptError> {
    let name = "steer.md";
    let source = overrides.get(name).map(String::as_str);
    let source = source.or_else(|| templates::built_in(name)).unwrap_or_default();
    environment()
        .render_str(source, context! { words => Serde(words) })
        .map(|text| text.trim().to_owned())
        .map_err(|source| PromptError::Template { name: name.to_owned(), source })
}

/// What an agent at work is told that goes in circles; `what` it did fits behind "you".
pub fn hint(what: &str, overrides: &BTreeMap<String, String>) -> Result<String, PromptError> {
    let name = "hint.md";
    let source = overrides.get(name).map(String::as_str);
    let source = source.or_else(|| templates::built_in(name)).unwrap_or_default();
    environment()
        .render_str(source, context! { what => what })
        .map(|text| text.trim().to_owned())
        .map_err(|source| PromptError::Template { name: name.to_owned(), source })
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // A misspelt name in a workspace's template is an error, not a hole.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Tags stand on lines of their own and leave no trace of them.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.add_filter("json", |value: minijinja::Value| {
        serde_json::to_string(&value).unwrap_or_default()
    });
    environment.add_filter("quoted", |text: String| quoted(&text));
    environment.add_filter("name", |text: String| name(&text));
    environment
}

/// A name that somebody chose, as one short line without markup: it stands among our own words.
fn name(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|char| if char.is_control() || "`#*<>[]".contains(char) { ' ' } else { char })
        .take(80)
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A fenced block that its own content cannot close.
fn quoted(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for char in text.chars() {
        run = if char == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

/// Shortens sections from the last on until all fit; the names of those that were.
fn fit(
    sections: &mut [(&'static str, Cut, String)],
    budget: usize,
) -> Result<Vec<String>, PromptError> {
    /// Room for blank lines and the closing remark.
    const SPARE: usize = 256;
    /// Less of a section than this is of no use.
    const LEAST: usize = 400;
    let size = |sections: &[(&str, Cut, String)]| {
        sections.iter().map(|(_, _, text)| text.len()).sum::<usize>() + SPARE
    };
    let needed: usize = sections
        .iter()
        .filter(|(_, cut, _)| *cut == Cut::Never)
        .map(|(_, _, text)| text.len())
        .sum();
    if needed + SPARE > budget {
        return Err(PromptError::TooLong { needed: needed + SPARE, budget });
    }
    let mut names = Vec::new();
    for index in (0..sections.len()).rev() {
        let over = size(sections).saturating_sub(budget);
        if over == 0 {
            break;
        }
        let (name, cut, text) = &mut sections[index];
        if *cut == Cut::Never || text.is_empty() {
            continue;
        }
        let keep = text.len().saturating_sub(over);
        *text = if keep < LEAST { String::new() } else { shorten(text, keep - 40, *cut) };
        names.push((*name).to_owned());
    }
    Ok(names)
}

fn shorten(text: &str, keep: usize, cut: Cut) -> String {
    match cut {
        Cut::Never => text.to_owned(),
        Cut::KeepBeginning => {
            format!("{}\n[… cut …]", beginning(text, keep))
        }
        Cut::KeepEnd => {
            // The heading stays, so that what follows is known for what it is.
            let (heading, rest) = text.split_once('\n').unwrap_or(("", text));
            let from = rest.len().saturating_sub(keep.saturating_sub(heading.len()));
            format!("{heading}\n[… cut …]\n{}", end(rest, from))
        }
    }
}

/// The text up to a byte, whole characters only.
fn beginning(text: &str, bytes: usize) -> &str {
    (0..=bytes).rev().find_map(|at| text.get(..at)).unwrap_or_default()
}

/// The text from a byte on, whole characters only.
fn end(text: &str, from: usize) -> &str {
    (from..=text.len()).find_map(|at| text.get(at..)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
