//! Where things lie on a machine: the system, what belongs to a program, the tools in the home of
//! whoever runs the team, and what among them is nobody's business.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::files;

/// Folders of the system, shown to what is confined for reading where they are there.
pub const SYSTEM: [&str; 12] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix",
    "/snap", "/sys",
];

/// What lies in the system's folders and is nobody's business there: keys, passwords, this team's own.
pub const SYSTEM_SECRETS: [&str; 13] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/letsencrypt",
    "/etc/wireguard",
    "/etc/NetworkManager/system-connections",
    "/etc/krb5.keytab",
    "/etc/teams",
];

/// Tools that people keep in their home, shown for reading where nothing else is configured.
const TOOLS: [&str; 14] = [
    ".cargo",
    ".rustup",
    ".nvm",
    ".npm",
    ".pyenv",
    ".rbenv",
    ".asdf",
    ".volta",
    ".bun",
    ".deno",
    ".sdkman",
    ".local/share/mise",
    "go/bin",
    GO_MODULES,
];

/// Where Go keeps the modules that it has downloaded, in a home.
pub const GO_MODULES: &str = "go/pkg/mod";

/// What lies among tools and is a secret.
const TOOL_SECRETS: [&str; 7] = [
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".npm/_logs",
    ".nvm/.npmrc",
    ".bun/.npmrc",
    ".deno/credentials.json",
    ".sdkman/etc",
];

/// Settings among tools that may hold one.
const SETTINGS: [&str; 2] = [".cargo/config", ".cargo/config.toml"];

/// The home of whoever runs the team.
#[must_use]
pub fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// A path that begins with `~` is in the home of whoever runs the team.
#[must_use]
pub fn expand(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_), None) | (Err(_), _) => path.to_owned(),
    }
}

/// The tools in that home.
#[must_use]
pub fn tools() -> Vec<PathBuf> {
    let Some(home) = home() else { return Vec::new() };
    // Some have the whole of Go there.
    let go = home.join("go");
    let go = files::exists(&go.join("src/runtime")).then_some(go);
    let all = TOOLS.iter().map(|name| home.join(name)).chain(go);
    all.filter(|path| files::exists(path)).collect()
}

/// What is hidden among them.
#[must_use]
pub fn tool_secrets() -> Vec<PathBuf> {
    let Some(home) = home() else { return Vec::new() };
    let always = TOOL_SECRETS.iter().map(|name| home.join(name));
    // Needed to build, unless somebody wrote a token into it.
    let tells = |path: &PathBuf| files::read_text(path).is_ok_and(|text| text.contains("token"));
    let settings = SETTINGS.iter().map(|name| home.join(name)).filter(tells);
    always.chain(settings).filter(|path| files::exists(path)).collect()
}

/// What tools must be told where the home is another one: where they were installed.
#[must_use]
pub fn tools_environment() -> BTreeMap<String, String> {
    let Some(home) = home() else { return BTreeMap::new() };
    [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")]
        .into_iter()
        .map(|(name, usual)| {
            let named = std::env::var_os(name).map(PathBuf::from);
            (name, named.unwrap_or_else(|| home.join(usual)))
        })
        .filter(|(_, path)| files::exists(path))
        .map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()))
        .collect()
}

/// Whether a path is a symbolic link.
#[must_use]
pub fn is_link(path: &Path) -> bool {
    files::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink())
}

/// What a program needs of its own installation: the tree of packages that it lies in, else its folder, one
/// further up where that is a `bin`. Never a home or a folder that holds one.
#[must_use]
pub fn installation(program: &Path) -> Vec<PathBuf> {
    let real = files::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let mut found = vec![real.clone()];
    let modules = real.ancestors().filter(|at| at.ends_with("node_modules")).last();
    let folder = real.parent();
    let wanted = match (modules, folder) {
        (Some(modules), _) => Some(modules),
        (None, Some(folder)) if folder.ends_with("bin") => folder.parent(),
        (None, folder) => folder,
    };
    let holds_home = |at: &Path| home().is_some_and(|home| home.starts_with(at));
    match wanted {
        Some(wanted) if wanted.parent().is_some() && !holds_home(wanted) => {
            found.push(wanted.to_owned());
        }
        Some(_) | None => {}
    }
    if program != real {
        found.push(program.to_owned());
    }
    found
}
