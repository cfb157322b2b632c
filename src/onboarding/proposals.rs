//! What a project's manifests and lock files say about how it is tested and what that needs, as checks and preparations
//! that a person may accept.
//!
//! Nothing is guessed: npm is proposed only where a `test` script stands that runs something, make and just only
//! where there is such a target, pytest only where its settings or its files are. The files are those of the commit at
//! the tip of the branch, since that is what checks see.

use std::path::Path;

use crate::domain::check_proposal::{CheckProposal, ProposedCommand};
use crate::domain::config::RuntimeConfig;
use crate::git::{CommitFiles, GitError, InTree, Project};
use crate::platform::files;
use crate::workspace::settings::{CommandEntry, Setting};

/// What of it is not configured yet. Where checks are, something that brings them what they depend on is offered where
/// nothing does, and they would find it: in the folder that their commands name.
#[must_use]
pub fn missing(found: &CheckProposal, runtime: &RuntimeConfig) -> CheckProposal {
    let mut found = found.clone();
    if !runtime.checks.is_empty() {
        found.checks.clear();
        let mut words = runtime.checks.iter().flat_map(|check| check.command.as_slice());
        let needs_venv = |one: &ProposedCommand| one.command.iter().any(|it| it.contains(VENV));
        let has_venv = words.any(|word| word.contains(VENV));
        found.prepare.retain(|one| !needs_venv(one) || has_venv);
        found.carry.retain(|folder| folder != ".venv" || has_venv);
    }
    let brings = !runtime.prepare.is_empty() || !runtime.carry.is_empty();
    let has_checks = !runtime.checks.is_empty();
    if !runtime.prepare.is_empty() || (has_checks && brings) {
        found.prepare.clear();
    }
    if !runtime.carry.is_empty() || (has_checks && brings) {
        found.carry.clear();
    }
    found
}

/// What is written where that is accepted.
#[must_use]
pub fn settings(missing: &CheckProposal) -> Vec<(&'static str, Setting)> {
    let entries = |all: &[ProposedCommand]| {
        let entry = |one: &ProposedCommand| CommandEntry {
            name: one.name.clone(),
            command: one.command.clone(),
            files: one.files.clone(),
        };
        Setting::Commands(all.iter().map(entry).collect())
    };
    let mut all = Vec::new();
    for (key, commands) in [("checks", &missing.checks), ("prepare", &missing.prepare)] {
        if !commands.is_empty() {
            all.push((key, entries(commands)));
        }
    }
    if !missing.carry.is_empty() {
        all.push(("carry", Setting::List(missing.carry.clone())));
    }
    all
}

/// Where the programs of a project's own Python are.
const VENV: &str = ".venv/bin/";

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn check(found: &mut CheckProposal, because: &str, name: &str, command: &[&str]) {
    found.checks.push(ProposedCommand {
        name: name.to_owned(),
        command: words(command),
        files: Vec::new(),
        because: because.to_owned(),
    });
}

/// The first of `files` is why.
fn prepare(found: &mut CheckProposal, name: &str, command: &[&str], files: &[&str]) {
    found.prepare.push(ProposedCommand {
        name: name.to_owned(),
        command: words(command),
        files: words(files),
        because: files.first().copied().unwrap_or_default().to_owned(),
    });
}

/// Looks at the project.
///
/// # Errors
/// Where the repository cannot be read.
pub fn propose(project: &Project) -> Result<CheckProposal, GitError> {
    let files = CommitFiles::at_head(project)?;
    let mut found = CheckProposal::default();
    cargo(&files, &mut found)?;
    python(&files, project, &mut found)?;
    node(&files, project, &mut found)?;
    go(&files, &mut found);
    jvm(&files, project, &mut found)?;
    cmake(&files, &mut found)?;
    // A Makefile beside them mostly runs the same once more.
    if found.checks.is_empty() {
        runner(&files, "make", MAKEFILES, &mut found)?;
        runner(&files, "just", JUSTFILES, &mut found)?;
    }
    Ok(found)
}

/// Whether a folder of dependencies lies in the checkout and can be lent.
fn lent(project: &Project, folder: &str) -> Result<bool, GitError> {
    Ok(files::exists(&project.path().join(folder)) && project.is_ignored(Path::new(folder))?)
}

/// Whether a line of a TOML or INI file opens this table.
fn has_table(text: &str, name: &str) -> bool {
    text.lines()
        .any(|line| line.trim().strip_prefix('[').and_then(|it| it.strip_suffix(']')) == Some(name))
}

/// Whether a table of a TOML file has a key at the beginning of a line.
fn has_key(text: &str, table: &str, key: &str) -> bool {
    let opens = format!("[{table}]");
    let lines = text.lines().map(str::trim).skip_while(|line| *line != opens).skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    lines.any(|line| line.split_once('=').is_some_and(|(name, _)| name.trim() == key))
}

fn cargo(files: &CommitFiles, found: &mut CheckProposal) -> Result<(), GitError> {
    let Some(manifest) = files.text("Cargo.toml")? else { return Ok(()) };
    let (package, workspace) = (has_table(&manifest, "package"), has_table(&manifest, "workspace"));
    if !package && !workspace {
        return Ok(());
    }
    // Later test binaries are missing from the output where an earlier one fails, unless it goes on.
    let mut command = vec!["cargo", "test", "--no-fail-fast"];
    if workspace && package {
        command.push("--workspace");
    }
    if files.has("Cargo.lock") {
        command.push("--locked");
    }
    check(found, "Cargo.toml", "cargo test", &command);
    // Packages of its own need nothing from elsewhere.
    if files.text("Cargo.lock")?.is_some_and(|lock| lock.contains("\nsource = ")) {
        prepare(found, "crates", &["cargo", "fetch", "--locked"], &["Cargo.lock", "Cargo.toml"]);
    }
    Ok(())
}

/// The file that shows that pytest runs the tests.
fn pytest(files: &CommitFiles) -> Result<Option<String>, GitError> {
    let tables = [
        ("pytest.ini", "pytest"),
        ("pyproject.toml", "tool.pytest.ini_options"),
        ("tox.ini", "pytest"),
        ("setup.cfg", "tool:pytest"),
    ];
    for (file, table) in tables {
        if files.text(file)?.is_some_and(|text| has_table(&text, table)) {
            return Ok(Some(file.to_owned()));
        }
    }
    let is_test = |path: &&str| {
        let folder = path.starts_with("tests/") || path.starts_with("test/");
        let name = path.rsplit('/').next().unwrap_or_default();
        folder
            && ((name.starts_with("test_") && name.ends_with(".py")) || name.ends_with("_test.py"))
    };
    Ok(files.paths().find(is_test).map(str::to_owned))
}

/// What pip is to install where no lock file says it, and the files that do: all that is required, else the project
/// itself with what its tests need.
fn pip<'a>(
    files: &CommitFiles,
    required: &[&'a str],
) -> Result<Option<(String, Vec<&'a str>)>, GitError> {
    if !required.is_empty() {
        let all: Vec<_> = required.iter().map(|file| format!("-r {file}")).collect();
        return Ok(Some((all.join(" "), required.to_vec())));
    }
    let pyproject = files.text("pyproject.toml")?.unwrap_or_default();
    let setup: Vec<&str> =
        ["setup.py", "setup.cfg"].into_iter().filter(|it| files.has(it)).collect();
    if !has_table(&pyproject, "project") && setup.first() != Some(&"setup.py") {
        return Ok(None);
    }
    let extras = ["test", "tests", "testing", "dev"];
    let has = |extra: &&str| has_key(&pyproject, "project.optional-dependencies", extra);
    let extra = extras.into_iter().find(has).map(|extra| format!("[{extra}]"));
    let manifests = ["pyproject.toml"].into_iter().filter(|_| !pyproject.is_empty()).chain(setup);
    Ok(Some((format!("pytest -e '.{}'", extra.unwrap_or_default()), manifests.collect())))
}

fn python(
    files: &CommitFiles,
    project: &Project,
    found: &mut CheckProposal,
) -> Result<(), GitError> {
    let pyproject = files.text("pyproject.toml")?;
    let requirements =
        files.paths().any(|path| path.starts_with("requirements") && path.ends_with(".txt"));
    let is_python = pyproject.is_some()
        || requirements
        || ["setup.py", "setup.cfg", "uv.lock", "poetry.lock"].iter().any(|it| files.has(it));
    let Some(because) = pytest(files)?.filter(|_| is_python) else { return Ok(()) };
    let poetry =
        files.has("poetry.lock") || pyproject.is_some_and(|text| has_table(&text, "tool.poetry"));
    let named: Vec<&str> = files
        .paths()
        .filter(|path| {
            path.starts_with("requirements") && path.ends_with(".txt") && !path.contains('/')
        })
        .collect();
    // `-rA` names each test and how it came out.
    let in_venv: &[&str] = &[".venv/bin/python", "-m", "pytest", "-rA"];
    let mut command: &[&str] = &["python3", "-m", "pytest", "-rA"];
    if files.has("uv.lock") {
        prepare(found, "packages", &["uv", "sync", "--locked"], &["uv.lock", "pyproject.toml"]);
        command = &["uv", "run", "--no-sync", "pytest", "-rA"];
    } else if poetry {
        if files.has("poetry.lock") {
            let install = ["poetry", "install", "--no-interaction"];
            prepare(found, "packages", &install, &["poetry.lock", "pyproject.toml"]);
        }
        command = &["poetry", "run", "pytest", "-rA"];
    } else if lent(project, ".venv")? {
        found.carry.push(".venv".to_owned());
        command = in_venv;
    } else if project.is_ignored_folder(Path::new(".venv"))?
        && let Some((words, because)) = pip(files, &named)?
    {
        let script = format!("python3 -m venv .venv && .venv/bin/pip install {words}");
        prepare(found, "packages", &["sh", "-c", &script], &because);
        command = in_venv;
    }
    check(found, &because, "pytest", command);
    Ok(())
}

fn node(files: &CommitFiles, project: &Project, found: &mut CheckProposal) -> Result<(), GitError> {
    let Some(text) = files.text("package.json")? else { return Ok(()) };
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let script = manifest["scripts"]["test"].as_str().unwrap_or_default();
    // What `npm init` writes fails always.
    if script.trim().is_empty() || script.contains("no test specified") {
        return Ok(());
    }
    let named = manifest["packageManager"].as_str().unwrap_or_default();
    let program = if files.has("pnpm-lock.yaml") || named.starts_with("pnpm@") {
        "pnpm"
    } else if files.has("yarn.lock") || named.starts_with("yarn@") {
        "yarn"
    } else {
        "npm"
    };
    check(found, "package.json", &format!("{program} test"), &[program, "test"]);
    let locks: [(&str, &[&str]); 4] = [
        ("pnpm-lock.yaml", &["pnpm", "install", "--frozen-lockfile"]),
        (
            "yarn.lock",
            if is_old_yarn(named) {
                &["yarn", "install", "--frozen-lockfile"]
            } else {
                &["yarn", "install", "--immutable"]
            },
        ),
        ("package-lock.json", &["npm", "ci"]),
        ("npm-shrinkwrap.json", &["npm", "ci"]),
    ];
    let lock =
        locks.iter().find(|(lock, install)| files.has(lock) && install.first() == Some(&program));
    match lock {
        Some((lock, install)) => prepare(found, "packages", install, &[lock, "package.json"]),
        None if lent(project, "node_modules")? => found.carry.push("node_modules".to_owned()),
        // Without a lock file, what the manifest asks for as it is on that day.
        None if program == "npm"
            && ["dependencies", "devDependencies"].iter().any(|key| manifest[*key].is_object())
            && project.is_ignored_folder(Path::new("node_modules"))? =>
        {
            let install = ["npm", "install", "--no-package-lock"];
            prepare(found, "packages", &install, &["package.json"]);
        }
        None => {}
    }
    Ok(())
}

/// Whether it is yarn's first version, which has another word for keeping to its lock file.
fn is_old_yarn(named: &str) -> bool {
    named.strip_prefix("yarn@").is_none_or(|version| version.starts_with("1."))
}

fn go(files: &CommitFiles, found: &mut CheckProposal) {
    if files.has("go.mod") && files.paths().any(|path| path.ends_with("_test.go")) {
        check(found, "go.mod", "go test", &["go", "test", "-v", "./..."]);
        if files.has("go.sum") {
            prepare(found, "modules", &["go", "mod", "download"], &["go.sum", "go.mod"]);
        }
    }
}

fn jvm(files: &CommitFiles, project: &Project, found: &mut CheckProposal) -> Result<(), GitError> {
    if !files.paths().any(|path| format!("/{path}").contains("/src/test/")) {
        return Ok(());
    }
    let wrapper =
        |name: &str| Ok::<_, GitError>(project.in_tree(Path::new(name))? == InTree::Program);
    if files.has("pom.xml") {
        let program = if wrapper("mvnw")? { "./mvnw" } else { "mvn" };
        check(found, "pom.xml", "maven test", &[program, "--batch-mode", "--offline", "test"]);
        // All that the tests need is there once they have been run; whether they pass is no matter here.
        let resolve = [program, "--batch-mode", "-Dmaven.test.failure.ignore", "test"];
        let manifests: Vec<&str> =
            files.paths().filter(|it| it.rsplit('/').next() == Some("pom.xml")).collect();
        prepare(found, "packages", &resolve, &manifests);
    }
    let builds = ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];
    if let Some(build) = builds.into_iter().find(|it| files.has(it)) {
        let program = if wrapper("gradlew")? { "./gradlew" } else { "gradle" };
        check(
            found,
            build,
            "gradle test",
            &[program, "--no-daemon", "--offline", "--no-build-cache", "cleanTest", "test"],
        );
        let ends = [".gradle", ".gradle.kts", "gradle.lockfile", "libs.versions.toml"];
        let manifests: Vec<&str> =
            files.paths().filter(|it| ends.iter().any(|end| it.ends_with(end))).collect();
        // As above; tests that fail must not fail it.
        let run = format!("{program} --no-daemon --continue");
        let resolve = format!("{run} test || {run} testClasses");
        prepare(found, "packages", &["sh", "-c", &resolve], &manifests);
    }
    Ok(())
}

fn cmake(files: &CommitFiles, found: &mut CheckProposal) -> Result<(), GitError> {
    let Some(text) = files.text("CMakeLists.txt")? else { return Ok(()) };
    let shows_tests = text.lines().any(|line| {
        let line: String = line.split('#').next().unwrap_or_default().to_lowercase();
        let line: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        line.starts_with("enable_testing(") || line.starts_with("include(ctest)")
    });
    if shows_tests {
        // One after the other in the same tree.
        let file = "CMakeLists.txt";
        check(found, file, "cmake configure", &["cmake", "-S", ".", "-B", "build"]);
        check(found, file, "cmake build", &["cmake", "--build", "build"]);
        let ctest = ["ctest", "--test-dir", "build", "--output-on-failure"];
        check(found, file, "ctest", &ctest);
    }
    Ok(())
}

/// The order in which make looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];

/// The first file that is there, where it has a target for tests.
fn runner(
    files: &CommitFiles,
    program: &str,
    names: [&str; 3],
    found: &mut CheckProposal,
) -> Result<(), GitError> {
    let Some(file) = names.into_iter().find(|name| files.has(name)) else { return Ok(()) };
    let text = files.text(file)?.unwrap_or_default();
    if let Some(target) = target(&text) {
        check(found, file, &format!("{program} {target}"), &[program, target]);
    }
    Ok(())
}

/// `test`, else `check`, where a line that begins at its first column defines it.
fn target(text: &str) -> Option<&'static str> {
    ["test", "check"].into_iter().find(|wanted| {
        text.lines().filter(|line| !line.starts_with([' ', '\t', '#', '.'])).any(|line| {
            let rule = line.split_once(':').filter(|(_, after)| !after.starts_with('='));
            // A recipe of just may take parameters, and be quiet by `@`; a rule of make may have several targets.
            let mut names = rule.map(|(names, _)| names).unwrap_or_default().split_whitespace();
            names.any(|name| name.trim_start_matches('@') == *wanted)
        })
    })
}
