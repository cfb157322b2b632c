//! Finding a file: the room's, else the workspace's, else the built-in one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use rust_embed::RustEmbed;

use super::role::RoleSpec;
use crate::domain::role::Role;
use crate::platform::files::{self, FileError};

#[derive(RustEmbed)]
#[folder = "roles"]
struct Roles;

#[derive(RustEmbed)]
#[folder = "roles/avatars"]
struct Avatars;

#[derive(RustEmbed)]
#[folder = "prompts"]
struct Prompts;

#[derive(RustEmbed)]
#[folder = "scaffold"]
struct Scaffold;

/// Why an asset cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum AssetError {
    /// There is none of that name.
    #[error("there is no {kind} called {name:?}")]
    Unknown {
        /// What was looked for.
        kind: &'static str,
        /// Under which name.
        name: String,
    },
    /// An override could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It does not parse.
    #[error("{origin} is not a role: {message}")]
    Malformed {
        /// The file.
        origin: String,
        /// What the parser says.
        message: String,
    },
    /// A template could not be rendered.
    #[error("the template {name} cannot be rendered: {message}")]
    Template {
        /// The template.
        name: String,
        /// What the engine says.
        message: String,
    },
    /// It is not UTF-8.
    #[error("the built-in {0} is not text")]
    NotText(String),
}

/// The families of assets that can be overridden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AssetKind {
    /// `roles/<role>.yaml`
    Role,
    /// `prompts/…`
    Prompt,
}

impl AssetKind {
    const fn folder(self) -> &'static str {
        match self {
            AssetKind::Role => "roles",
            AssetKind::Prompt => "prompts",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            AssetKind::Role => "role file",
            AssetKind::Prompt => "prompt",
        }
    }

    fn builtin(self, name: &str) -> Option<rust_embed::EmbeddedFile> {
        match self {
            AssetKind::Role => Roles::get(name),
            AssetKind::Prompt => Prompts::get(name),
        }
    }

    fn names(self) -> Vec<String> {
        let mut names: Vec<String> = match self {
            // The pictures below them are not for people to override.
            AssetKind::Role => {
                Roles::iter().map(Cow::into_owned).filter(|name| name.ends_with(".yaml")).collect()
            }
            AssetKind::Prompt => Prompts::iter().map(Cow::into_owned).collect(),
        };
        names.sort();
        names
    }
}

/// The picture of a public role: a PNG of 128 × 128 pixels.
#[must_use]
pub fn avatar(role: Role) -> Option<Cow<'static, [u8]>> {
    Avatars::get(&format!("{role}.png")).map(|file| file.data)
}

/// A chain of places to look in.
#[derive(Debug, Clone, Default)]
pub struct Lookup {
    /// Nearest first: the role's folder, then the workspace.
    layers: Vec<PathBuf>,
    workspace: Option<PathBuf>,
}

impl Lookup {
    /// The built-in assets alone.
    #[must_use]
    pub fn builtin() -> Lookup {
        Lookup::default()
    }

    /// A workspace over the built-in assets.
    #[must_use]
    pub fn of_workspace(root: &Path) -> Lookup {
        Lookup { layers: vec![root.to_owned()], workspace: Some(root.to_owned()) }
    }

    /// The same with a role's own folder in front, where the workspace has one.
    #[must_use]
    pub fn in_room(mut self, role: Role) -> Lookup {
        if let Some(root) = &self.workspace {
            self.layers.insert(0, root.join(role_folder(role)));
        }
        self
    }

    /// The text of an asset. `name` is relative to its family's folder.
    pub fn text(&self, kind: AssetKind, name: &str) -> Result<String, AssetError> {
        let unknown = || AssetError::Unknown { kind: kind.word(), name: name.to_owned() };
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !plain {
            return Err(unknown());
        }
        if let Some(text) = self.over(kind, name)? {
            return Ok(text);
        }
        let file = kind.builtin(name).ok_or_else(unknown)?;
        as_text(name, file)
    }

    /// The names of the built-in assets of a family, sorted.
    #[must_use]
    pub fn names(kind: AssetKind) -> Vec<String> {
        kind.names()
    }

    /// The texts of a family that stand in a layer in place of the built-in ones, by name.
    pub fn overrides(&self, kind: AssetKind) -> Result<BTreeMap<String, String>, AssetError> {
        let mut found = BTreeMap::new();
        for name in kind.names() {
            if let Some(text) = self.over(kind, &name)? {
                found.insert(name, text);
            }
        }
        Ok(found)
    }

    /// Files in the layers' folders of a family that stand for nothing, because no built-in asset is called so.
    pub fn strays(&self, kind: AssetKind) -> Result<Vec<PathBuf>, AssetError> {
        let known: BTreeSet<PathBuf> = kind.names().into_iter().map(PathBuf::from).collect();
        let mut strays = Vec::new();
        for layer in &self.layers {
            let root = layer.join(kind.folder());
            let mut folders = vec![root.clone()];
            while let Some(folder) = folders.pop() {
                for path in files::list(&folder)? {
                    if files::symlink_metadata(&path)?.is_dir() {
                        folders.push(path);
                    } else if path.strip_prefix(&root).is_ok_and(|name| !known.contains(name)) {
                        strays.push(path);
                    }
                }
            }
        }
        Ok(strays)
    }

    fn over(&self, kind: AssetKind, name: &str) -> Result<Option<String>, AssetError> {
        for layer in &self.layers {
            let path = layer.join(kind.folder()).join(name);
            if let Some(text) = files::read_text_if_present(&path)? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// A role. `AGENTS.md` in the role's folder of the workspace is its charter, over any role file;
    /// a blank one is as none.
    pub fn role(&self, role: Role) -> Result<RoleSpec, AssetError> {
        let name = format!("{role}.yaml");
        let malformed =
            |message: String| AssetError::Malformed { origin: format!("roles/{name}"), message };
        let text = self.text(AssetKind::Role, &name)?;
        let mut spec: RoleSpec =
            serde_yaml::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        if spec.role != role {
            return Err(malformed(format!("it describes {}", spec.role)));
        }
        if let Some(root) = &self.workspace {
            let path = root.join(role_folder(role)).join("AGENTS.md");
            if let Some(text) = files::read_text_if_present(&path)?
                && !text.trim().is_empty()
            {
                spec.charter = text;
            }
        }
        Ok(spec)
    }
}

/// A role's folder in the workspace (`spec/teams.md` 3.1).
#[must_use]
pub fn role_folder(role: Role) -> PathBuf {
    if role.is_public() {
        PathBuf::from(role.as_str())
    } else {
        Path::new("internal").join(role.as_str())
    }
}

/// The names of all files of the scaffold, sorted.
#[must_use]
pub fn scaffold_files() -> Vec<String> {
    let mut names: Vec<String> = Scaffold::iter().map(Cow::into_owned).collect();
    names.sort();
    names
}

/// A file of the scaffold.
pub fn scaffold_text(name: &str) -> Result<String, AssetError> {
    let file = Scaffold::get(name)
        .ok_or_else(|| AssetError::Unknown { kind: "scaffold file", name: name.to_owned() })?;
    as_text(name, file)
}

fn as_text(name: &str, file: rust_embed::EmbeddedFile) -> Result<String, AssetError> {
    String::from_utf8(file.data.into_owned()).map_err(|_| AssetError::NotText(name.to_owned()))
}
