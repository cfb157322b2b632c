//! The home that checks have: empty, theirs alone, and with what tools must be told to get along in it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::git::Result;
use crate::platform::{files, places};

/// Where cargo's home is, in the home of the checks.
const CARGO: &str = ".cache/cargo";

/// Furnishes `home`, which checks see as `seen`, and gives the words for their environment. What cargo has downloaded
/// is brought where the tree `has_crates`: that is a link for each crate, on each run.
pub(super) fn furnish(
    home: &Path,
    seen: &Path,
    has_crates: bool,
) -> Result<BTreeMap<String, String>> {
    let mut env = places::tools_environment();
    let text = |path: &str| seen.join(path).to_string_lossy().into_owned();
    env.insert("HOME".to_owned(), seen.to_string_lossy().into_owned());
    // npm's own is in the tools, which cannot be written.
    env.insert("npm_config_cache".to_owned(), text(".cache/npm"));
    if let Some(real) = env.insert("CARGO_HOME".to_owned(), text(CARGO)) {
        let (real, made) = (Path::new(&real), home.join(CARGO));
        cargo_home(real, &made)?;
        if has_crates {
            cargo_downloads(real, &made)?;
        }
    }
    env.insert("CARGO_CACHE_AUTO_CLEAN_FREQUENCY".to_owned(), "never".to_owned());
    files::create_dir_all(&home.join(".cache"))?;
    Ok(env)
}

/// A home for cargo that it may write: it locks its home, and notes what it used.
fn cargo_home(real: &Path, made: &Path) -> Result<()> {
    files::create_dir_all(made)?;
    for name in ["bin", "config", "config.toml"] {
        link(&real.join(name), &made.join(name))?;
    }
    Ok(())
}

/// What the real home of cargo has downloaded, as links: cargo unpacks what was only downloaded.
fn cargo_downloads(real: &Path, made: &Path) -> Result<()> {
    // `registry/src/<registry>/<crate>`: the registries' folders are its own, what is in them is not.
    for (folder, is_sorted) in [
        ("registry/index", false),
        ("registry/cache", true),
        ("registry/src", true),
        ("git/db", false),
        ("git/checkouts", false),
    ] {
        files::create_dir_all(&made.join(folder))?;
        for entry in files::list(&real.join(folder))? {
            let Some(name) = entry.file_name() else { continue };
            let own = made.join(folder).join(name);
            if is_sorted && files::symlink_metadata(&entry)?.is_dir() {
                files::create_dir_all(&own)?;
                for item in files::list(&entry)? {
                    if let Some(name) = item.file_name() {
                        link(&item, &own.join(name))?;
                    }
                }
            } else {
                link(&entry, &own)?;
            }
        }
    }
    Ok(())
}

fn link(target: &Path, link: &Path) -> Result<()> {
    // What a preparation left there is the same, or more.
    let is_there = files::symlink_metadata(link).is_ok();
    if files::exists(target) && !is_there { Ok(files::symlink(target, link)?) } else { Ok(()) }
}
