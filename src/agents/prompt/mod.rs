//! What an agent is told: named sections in order of priority, within a budget of bytes.
//!
//! The parts that stay the same from turn to turn come first, so that a provider's prompt cache is of
//! use. What people and other agents wrote is quoted and attributed, never mixed with instructions.
//! The charter, the contract, the rules of the step and the request are never cut; of the rest the
//! last section goes first, and what was cut is said.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, context};
use serde_json::Value;

use crate::domain::criterion;
use crate::domain::role::Role;

mod error;
mod fit;
mod quote;
mod task;
mod templates;
mod work;

pub use error::PromptError;
pub use fit::Section;
use fit::{Cut, Part};
use quote::QuoteFindings;
pub use task::{EndedRequest, PersonMessage, Task, TaskDocument, Upstream};
pub use work::{
    ActionBrief, ConflictBrief, EarlierWork, Handover, OpenRequest, OtherChange, SprintBrief, Work,
};

/// What a prompt is made from.
#[derive(Debug, Clone, Copy)]
pub struct PromptInput<'a> {
    /// What it is about.
    pub task: &'a Task,
    /// Where the project is.
    pub worktree: &'a str,
    /// What the answer has to follow.
    pub schema: &'a Value,
    /// Bytes that it may have.
    pub budget: usize,
    /// Templates of the workspace by name.
    pub templates: &'a BTreeMap<String, String>,
    /// Whether the result is handed in by the tool for it.
    pub submit: bool,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its text.
    pub text: String,
    /// Its sections in order, for the log and the run's record.
    pub sections: Vec<Section>,
}

impl Prompt {
    /// The sections of which something is missing.
    #[must_use]
    pub fn cut(&self) -> Vec<String> {
        self.sections.iter().filter(|it| it.is_cut()).map(|it| it.name.clone()).collect()
    }
}

/// The sections in order of priority, which is also the order in which they stand. The first two are the
/// same for every request, so that what a provider keeps of them is of use.
const SECTIONS: [(&str, Cut); 22] = [
    ("charter", Cut::Never),
    ("contract", Cut::Never),
    ("step", Cut::Never),
    ("request", Cut::Never),
    ("criteria", Cut::Never),
    ("decisions", Cut::Never),
    ("edited", Cut::KeepEnd),
    ("continues", Cut::KeepBeginning),
    ("again", Cut::KeepBeginning),
    ("plan_findings", Cut::KeepBeginning),
    ("conflict", Cut::KeepBeginning),
    ("handover", Cut::KeepBeginning),
    ("builds_on", Cut::KeepBeginning),
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

/// Makes the prompt of a task.
///
/// # Errors
/// [`PromptError::TooLong`] where what is never cut does not fit, [`PromptError::Template`] where a template
/// of the workspace does not render.
pub fn assemble(making: &PromptInput<'_>) -> Result<Prompt, PromptError> {
    let task = making.task;
    let found = Arc::new(QuoteFindings::default());
    let environment = environment(&found);
    let requirements = task.work.sprint.as_ref().map(|it| it.requirements.as_slice());
    let requirements = requirements.unwrap_or_default();
    let values = context! {
        task => Serde(task),
        worktree => making.worktree,
        schema => making.schema.to_string(),
        submit => making.submit,
        criteria => numbered('C', &criterion::written(&task.criteria)),
        decisions => numbered('D', &task.decisions),
        judged => task.criteria.iter().any(|criterion| !criterion.is_manual()),
        requirements => numbered('R', requirements),
    };
    let mut parts = Vec::new();
    for (name, cut) in SECTIONS {
        let file = match name {
            "step" => templates::step(task),
            name => format!("{name}.md"),
        };
        let text = render(&environment, making.templates, &file, &values)?;
        let (orders, hidden) = found.take();
        let (bytes, name) = (text.len(), name.to_owned());
        let section = Section { name, bytes, whole: bytes, orders, hidden };
        parts.push(Part { section, cut, text });
    }
    fit::fit(&mut parts, making.budget)?;
    let mut text = String::new();
    for part in parts.iter().filter(|part| !part.text.is_empty()) {
        text.push_str(&part.text);
        text.push_str("\n\n");
    }
    parts.retain(|part| part.section.whole > 0);
    let sections: Vec<Section> = parts.into_iter().map(|part| part.section).collect();
    let cut = sections.iter().filter(|section| section.is_cut());
    let cut: Vec<String> =
        cut.map(|it| format!("{} ({} of {} bytes)", it.name, it.bytes, it.whole)).collect();
    if !cut.is_empty() {
        text.push_str(&format!("Shortened for length: {}.\n", cut.join(", ")));
    }
    Ok(Prompt { text, sections })
}

/// A line each, with the number by which answers name it.
fn numbered(letter: char, texts: &[String]) -> String {
    let flat = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = (1..).zip(texts).map(|(number, text)| format!("{letter}-{number}: {}", flat(text)));
    lines.collect::<Vec<_>>().join("\n")
}

fn render(
    environment: &Environment<'_>,
    overrides: &BTreeMap<String, String>,
    name: &str,
    values: &minijinja::Value,
) -> Result<String, PromptError> {
    let source = overrides.get(name).map(String::as_str);
    let source = source.or_else(|| templates::built_in(name)).unwrap_or_default();
    environment
        .render_str(source, values)
        .map(|text| text.trim().to_owned())
        .map_err(|source| PromptError::Template { name: name.to_owned(), source })
}

/// Whether the templates of a workspace can be filled in, tried with a task that has nothing to say.
///
/// # Errors
/// [`PromptError::Template`] of the first that cannot.
pub fn check(templates: &BTreeMap<String, String>) -> Result<(), PromptError> {
    let words = [PersonMessage::new("", "")];
    let task = Task::first(Role::Developer, None, "", words[0].clone());
    let values = context! {
        task => Serde(&task), worktree => "", schema => "{}", submit => false,
        criteria => "", decisions => "", judged => false, requirements => "", issues => [""],
        words => Serde(&words), what => "",
    };
    let environment = environment(&Arc::default());
    for name in templates.keys() {
        render(&environment, templates, name, &values)?;
    }
    Ok(())
}

/// A template that stands for itself.
fn alone(
    name: &str,
    overrides: &BTreeMap<String, String>,
    values: &minijinja::Value,
) -> Result<String, PromptError> {
    render(&environment(&Arc::default()), overrides, name, values)
}

/// The prompt of a repair turn: what was wrong, and the schema once more.
///
/// # Errors
/// [`PromptError::Template`] where the workspace's template does not render.
pub fn repair(
    issues: &[String],
    schema: &Value,
    submit: bool,
    overrides: &BTreeMap<String, String>,
) -> Result<String, PromptError> {
    let values =
        context! { issues => Serde(issues), schema => schema.to_string(), submit => submit };
    alone("repair.md", overrides, &values)
}

/// What a conversation is asked before it ends: what whoever goes on has to know.
///
/// # Errors
/// [`PromptError::Template`] where the workspace's template does not render.
pub fn hand_over(overrides: &BTreeMap<String, String>) -> Result<String, PromptError> {
    alone("hand_over.md", overrides, &context! {})
}

/// What an agent is told about a tool of the team; blank for one that is none.
#[must_use]
pub fn about_tool(name: &str) -> &'static str {
    templates::built_in(&format!("tools/{name}.md")).unwrap_or_default().trim_ascii_end()
}

/// What people wrote while the role is at work, as it is told.
pub fn steer(
    words: &[PersonMessage],
    overrides: &BTreeMap<String, String>,
) -> Result<String, PromptError> {
    alone("steer.md", overrides, &context! { words => Serde(words) })
}

/// What an agent at work is told that goes in circles; `what` it did fits behind "you".
///
/// # Errors
/// [`PromptError::Template`] where the workspace's template does not render.
pub fn hint(what: &str, overrides: &BTreeMap<String, String>) -> Result<String, PromptError> {
    alone("hint.md", overrides, &context! { what => what })
}

fn environment(found: &Arc<QuoteFindings>) -> Environment<'static> {
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
    // Our own.
    environment.add_filter("fenced", |text: String| quote::fenced(&text));
    // Others' words: fenced, of those who decide what is wanted, a name, a line.
    let with = |filter: fn(&QuoteFindings, &str) -> String| {
        let found = Arc::clone(found);
        move |text: String| filter(&found, &text)
    };
    environment.add_filter("quoted", with(QuoteFindings::quoted));
    environment.add_filter("asked", with(QuoteFindings::asked));
    environment.add_filter("name", with(QuoteFindings::name));
    environment.add_filter("line", with(QuoteFindings::line));
    environment
}

#[cfg(test)]
mod tests;
