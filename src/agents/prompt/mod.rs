//! What an agent is told: named sections in order of priority, within a budget of bytes.
//!
//! The parts that stay the same from turn to turn come first, so that a provider's prompt cache is of
//! use. What people and other agents wrote is quoted and attributed, never mixed with instructions.
//! The charter, the contract, the rules of the step and the request are never cut; of the rest the
//! last section goes first, and what was cut is said.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, context};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::evidence::Evidence;
use crate::domain::incoming::Attachment;
use crate::domain::lifecycle::{Lifecycle, StepKind, StepName};
use crate::domain::role::Role;
use crate::domain::run::{Approach, FailKind};

mod fit;
mod quote;
mod templates;
mod work;

pub use fit::Section;
use fit::{Cut, Part};
use quote::Found;
pub use work::{ConflictBrief, Handover, OtherChange, SprintBrief, Work};

/// Something that a person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Who, as people see them.
    pub author: String,
    /// What.
    pub text: String,
    /// Whether it takes the place of what was asked before.
    #[serde(default)]
    pub replaces: bool,
}

impl Said {
    /// Words that are said beside others.
    #[must_use]
    pub fn new(author: &str, text: &str) -> Self {
        Self { author: author.to_owned(), text: text.to_owned(), replaces: false }
    }
}

/// A request that ended in the room in which this one was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRequest {
    /// Its id.
    pub request_id: String,
    /// What was asked.
    pub request: Said,
    /// How it ended.
    pub status: String,
    /// The team's last word on it.
    pub summary: String,
    /// The commit on the branch; blank where there is none.
    pub commit: String,
    /// The files of its change.
    pub files: Vec<String>,
    /// What was seen of its checks.
    pub evidence: Option<Evidence>,
}

/// What a role handed back earlier on this request; the latest of each role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Upstream {
    /// The role.
    pub role: Role,
    /// Its step.
    pub step: Option<StepName>,
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
    pub step: Option<StepName>,
    /// What that step is for.
    #[serde(default)]
    pub kind: Option<StepKind>,
    /// The name of its template in `steps/`; blank for that of the step's own name.
    #[serde(default)]
    pub template: String,
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
    /// What it asked for before it was edited, oldest first.
    #[serde(default)]
    pub earlier: Vec<String>,
    /// The role that the people wrote to, where they named one.
    #[serde(default)]
    pub addressed: Option<Role>,
    /// What ended in the room in which it was written.
    #[serde(default)]
    pub continues: Option<EndedRequest>,
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
    /// How the step is gone about this time.
    #[serde(default)]
    pub approach: Approach,
    /// Why the attempt before this one failed, where it did.
    #[serde(default)]
    pub failed: Option<FailKind>,
    /// What the other roles handed back.
    #[serde(default)]
    pub upstream: Vec<Upstream>,
    /// What the runtime saw itself.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// The acceptance criteria that it is held against, in the order in which they are numbered.
    #[serde(default)]
    pub criteria: Vec<String>,
    /// What the branch changed in the same places, where that is to be solved.
    #[serde(default)]
    pub conflict: Option<ConflictBrief>,
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

impl Task {
    /// The first attempt of a step of the lifecycle that is built in, with nothing to build on.
    #[must_use]
    pub fn first(role: Role, step: Option<StepName>, request_id: &str, request: Said) -> Self {
        Self {
            role,
            step,
            kind: step.and_then(|name| Lifecycle::built_in().step(name)).map(|step| step.kind),
            template: String::new(),
            request_id: request_id.to_owned(),
            attempt: 1,
            charter: String::new(),
            language: "en".to_owned(),
            request,
            earlier: Vec::new(),
            addressed: None,
            continues: None,
            attachments: Vec::new(),
            followups: Vec::new(),
            again: Vec::new(),
            approach: Approach::Usual,
            failed: None,
            upstream: Vec::new(),
            evidence: None,
            criteria: Vec::new(),
            conflict: None,
            diff: String::new(),
            documents: Vec::new(),
            history: String::new(),
            work: Work::default(),
        }
    }
}

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

/// The sections in order of priority, which is also the order in which they stand. The first two are the
/// same for every request, so that what a provider keeps of them is of use.
const SECTIONS: [(&str, Cut); 19] = [
    ("charter", Cut::Never),
    ("contract", Cut::Never),
    ("step", Cut::Never),
    ("request", Cut::Never),
    ("criteria", Cut::Never),
    ("edited", Cut::KeepEnd),
    ("continues", Cut::KeepBeginning),
    ("again", Cut::KeepBeginning),
    ("conflict", Cut::KeepBeginning),
    ("handover", Cut::KeepBeginning),
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
    let found = Arc::new(Found::default());
    let environment = environment(&found);
    let requirements = task.work.sprint.as_ref().map(|it| it.requirements.as_slice());
    let requirements = requirements.unwrap_or_default();
    let values = context! {
        task => Serde(task),
        worktree => making.worktree,
        schema => serde_json::to_string_pretty(making.schema).unwrap_or_default(),
        submit => making.submit,
        criteria => numbered('C', &task.criteria),
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
    let words = [Said::new("", "")];
    let task = Task::first(Role::Developer, None, "", words[0].clone());
    let values = context! {
        task => Serde(&task), worktree => "", schema => "{}", submit => false,
        criteria => "", requirements => "", issues => [""], words => Serde(&words), what => "",
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
    let schema = serde_json::to_string_pretty(schema).unwrap_or_default();
    let values = context! { issues => Serde(issues), schema => schema, submit => submit };
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
pub fn steer(words: &[Said], overrides: &BTreeMap<String, String>) -> Result<String, PromptError> {
    alone("steer.md", overrides, &context! { words => Serde(words) })
}

/// What an agent at work is told that goes in circles; `what` it did fits behind "you".
///
/// # Errors
/// [`PromptError::Template`] where the workspace's template does not render.
pub fn hint(what: &str, overrides: &BTreeMap<String, String>) -> Result<String, PromptError> {
    alone("hint.md", overrides, &context! { what => what })
}

fn environment(found: &Arc<Found>) -> Environment<'static> {
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
    let with = |filter: fn(&Found, &str) -> String| {
        let found = Arc::clone(found);
        move |text: String| filter(&found, &text)
    };
    environment.add_filter("quoted", with(Found::quoted));
    environment.add_filter("asked", with(Found::asked));
    environment.add_filter("name", with(Found::name));
    environment.add_filter("line", with(Found::line));
    environment
}

#[cfg(test)]
mod tests;
