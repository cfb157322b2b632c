//! Every file of a workspace with its text.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::super::routes::ROUTES_FILE;
use super::super::{DISCORD_FILE, RUNTIME_FILE};
use super::options::Options;
use crate::assets::{self, AssetError, Capability, Lookup, RoleSpec};
use crate::domain::config::AgentKind;
use crate::domain::role::Role;

/// One file.
pub(super) struct PlannedFile {
    /// Relative to the workspace.
    pub(super) path: PathBuf,
    /// Its text.
    pub(super) text: String,
    /// Whether a refresh brings newer texts of it.
    pub(super) is_prompt: bool,
}

impl PlannedFile {
    fn new(path: impl Into<PathBuf>, text: String) -> PlannedFile {
        let path = path.into();
        let is_prompt = path.components().any(|part| part.as_os_str() == ".agents")
            || path.ends_with("AGENTS.md")
            || path.ends_with("GEMINI.md");
        PlannedFile { path, text, is_prompt }
    }

    /// Whether it is one of the configuration files, which are people's to edit.
    pub(super) fn is_config(&self) -> bool {
        [RUNTIME_FILE, DISCORD_FILE, ROUTES_FILE].iter().any(|file| self.path == Path::new(file))
    }
}

/// All files, in the order in which they are written: the configuration last.
pub(super) fn plan(options: &Options) -> Result<Vec<PlannedFile>, AssetError> {
    let mut files = Vec::new();
    for name in assets::scaffold_files() {
        if let Some(path) = name.strip_prefix("workspace/") {
            files.push(PlannedFile::new(path, static_text(&name, path, options)?));
        }
    }
    for role in Role::ALL {
        let spec = Lookup::builtin().role(role)?;
        let folder = assets::role_folder(role);
        for name in ["AGENTS.md", "GEMINI.md"] {
            files.push(PlannedFile::new(folder.join(name), spec.charter.clone()));
        }
        for name in ["todo.md", "history.md", "journal.md", "sources/README.md"] {
            let source = format!("role/{name}");
            let text = assets::scaffold_text(&source)?;
            let text = assets::render(&source, &text, json!({ "role": role }))?;
            files.push(PlannedFile::new(folder.join(name), text));
        }
        let manifest = manifest(&spec);
        files.push(PlannedFile::new(folder.join("workspace_manifest.json"), manifest));
    }
    files.sort_by_key(|file| file.is_config());
    Ok(files)
}

fn static_text(name: &str, path: &str, options: &Options) -> Result<String, AssetError> {
    let text = assets::scaffold_text(name)?;
    match path {
        RUNTIME_FILE => match &options.runtime_yaml {
            Some(text) => Ok(text.clone()),
            None => {
                let owner = options.owner.map(|owner| owner.to_string());
                let agent = options.agent.unwrap_or(AgentKind::Rehearsal);
                // Values go in as JSON, which is YAML.
                let context = json!({
                    "owner": json!(owner).to_string(),
                    "project": options.project.as_ref().map(|path| json!(path.to_string_lossy()).to_string()),
                    "branch": options.branch.as_ref().map(|name| json!(name).to_string()),
                    "agent": agent.as_str(),
                    "command": match options.acp_command.as_slice() {
                        [] => json!(null),
                        command => json!(json!(command).to_string()),
                    },
                    "language": options.language.as_str(),
                });
                assets::render(name, &text, context)
            }
        },
        DISCORD_FILE => Ok(options.discord_yaml.clone().unwrap_or(text)),
        _ => Ok(text),
    }
}

/// `workspace_manifest.json` (`spec/teams.md` 3.1): for people and tools; nothing is enforced by it.
fn manifest(spec: &RoleSpec) -> String {
    let folder = assets::role_folder(spec.role);
    let at = |name: &str| folder.join(name).display().to_string();
    let manifest = json!({
        "agent": spec.role,
        "description": spec.description,
        "permissions": {
            "write_private": true,
            "write_shared_planning": spec.can(Capability::WritePlanning),
            "write_shared_decisions": spec.can(Capability::RecordDecisions),
            "write_shared_history": true,
        },
        "artifacts": {
            "charter": at("AGENTS.md"),
            "todo": at("todo.md"),
            "history": at("history.md"),
            "journal": at("journal.md"),
            "sources": at("sources"),
        },
    });
    format!("{manifest:#}\n")
}
