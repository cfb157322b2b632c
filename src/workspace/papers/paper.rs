//! A document of the shared workspace.

use crate::assets::{self, AssetError, Values};
use crate::domain::language::Language;
use crate::domain::sprint::Sprint;

/// Where the folders of all sprints lie.
const SPRINTS: &str = "shared_workspace/sprints";

/// A document with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paper {
    /// Workspace-relative.
    pub path: String,
    /// The heading of a new document.
    pub heading: &'static str,
    /// The name in the marks.
    pub name: &'static str,
    /// The generated part.
    pub text: String,
    /// How it is kept.
    pub keep: Keep,
}

/// How a document is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The part between the marks follows the records.
    Part,
    /// Written once, whole, and never changed.
    Once,
}

/// The folder of a sprint's documents, relative to the workspace and always below
/// `shared_workspace/sprints`, whatever an older record says.
#[must_use]
pub fn sprint_folder(sprint: &Sprint) -> String {
    format!("{SPRINTS}/{}", folder_name(sprint))
}

/// The name of that folder.
#[must_use]
pub fn folder_name(sprint: &Sprint) -> String {
    let name = match sprint.sprint_folder_name.as_str() {
        "" => sprint.sprint_id.as_str(),
        name => name,
    };
    let unsafe_in_names = |c: char| c.is_control() || "<>:\"/\\|?*".contains(c);
    let spaced: String = name.chars().map(|c| if unsafe_in_names(c) { ' ' } else { c }).collect();
    let parts = spaced.split(|c: char| c == '-' || c.is_whitespace());
    let parts: Vec<&str> =
        parts.map(|part| part.trim_start_matches('.')).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "sprint".to_owned() } else { parts.join("-") }
}

/// Renders one of the templates in `scaffold/documents/sprint`.
pub(super) fn fill(name: &str, context: serde_json::Value) -> Result<String, AssetError> {
    fill_with(name, &Values::of(context))
}

pub(super) fn fill_with(name: &str, values: &Values) -> Result<String, AssetError> {
    let name = format!("documents/sprint/{name}.md");
    assets::render_document(&name, &assets::scaffold_text(&name)?, values)
}

pub(super) const fn is_korean(language: Language) -> bool {
    match language {
        Language::Ko => true,
        Language::En => false,
    }
}

/// What stands where there is nothing.
pub(super) const fn nothing(language: Language) -> &'static str {
    match language {
        Language::Ko => "없음",
        Language::En => "none",
    }
}
