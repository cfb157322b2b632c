//! The papers of sprints and backlog that the team keeps in the shared workspace (`spec/teams.md` 3.4,
//! 3.5, 9.9). Pure: texts and pictures out of records; whoever calls decides when they are written.

mod backlog;
mod burndown;
pub(in crate::workspace) mod history;
mod marks;
mod report;
mod reports;
mod sprint;
mod values;

pub use backlog::{backlog, completed, current_sprint};
pub use burndown::{ChartError, burndown};

pub use history::{INDEX, index_with_row, sprint_history};
pub use marks::{BrokenMarks, splice};
pub use report::{final_report, machine_summary};
pub use reports::{Reports, RoleReport, role_reports};
pub use sprint::{report_paper, sprint_papers};

use crate::assets::{self, AssetError, Values};
use crate::domain::request::Language;
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
fn fill(name: &str, context: serde_json::Value) -> Result<String, AssetError> {
    fill_with(name, &Values::of(context))
}

fn fill_with(name: &str, values: &Values) -> Result<String, AssetError> {
    let name = format!("documents/sprint/{name}.md");
    assets::render_document(&name, &assets::scaffold_text(&name)?, values)
}

const fn is_korean(language: Language) -> bool {
    match language {
        Language::Ko => true,
        Language::En => false,
    }
}

/// What stands where there is nothing.
const fn nothing(language: Language) -> &'static str {
    match language {
        Language::Ko => "없음",
        Language::En => "none",
    }
}

#[cfg(test)]
mod tests;
