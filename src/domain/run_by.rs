//! What of a project the commands of checks and of `prepare` run by.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Programs and words of a shell behind which the name of what is run comes later.
const LEAD_ON: [&str; 37] = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "node", "deno", "bun", "ruby", "perl", "php",
    "env", "exec", "source", ".", "time", "timeout", "nice", "xargs", "sudo", "npx", "uv",
    "poetry", "pipenv", "run", "!", "{", "if", "then", "elif", "else", "do", "while", "until",
    "command", "eval",
];

/// What a command runs by.
#[derive(Debug, Default)]
pub struct RunBy {
    /// Words that may name a file of the project; with `./` before it in any folder, because a text for a shell may go
    /// there first.
    pub words: Vec<String>,
    /// Names of files by which one of its programs runs, in any folder.
    pub files: Vec<&'static str>,
    /// Parts of files by which one of its programs runs.
    pub parts: Vec<FilePart>,
}

/// A part of a file that is for many programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePart {
    /// The file's name, in any folder.
    pub file: String,
    /// The table, section or field.
    pub name: String,
}

/// Programs by which checks may run, each with a file that is for others as well and what of it this program reads.
pub const PARTS: [(&str, &str, &str); 28] = [
    ("pytest", "pyproject.toml", "tool.pytest"),
    ("pytest", "setup.cfg", "tool:pytest"),
    ("pytest", "tox.ini", "pytest"),
    ("coverage", "pyproject.toml", "tool.coverage"),
    ("coverage", "setup.cfg", "coverage"),
    ("ruff", "pyproject.toml", "tool.ruff"),
    ("mypy", "pyproject.toml", "tool.mypy"),
    ("mypy", "setup.cfg", "mypy"),
    ("pyright", "pyproject.toml", "tool.pyright"),
    ("basedpyright", "pyproject.toml", "tool.basedpyright"),
    ("flake8", "setup.cfg", "flake8"),
    ("flake8", "tox.ini", "flake8"),
    ("pylint", "pyproject.toml", "tool.pylint"),
    ("black", "pyproject.toml", "tool.black"),
    ("isort", "pyproject.toml", "tool.isort"),
    ("tox", "pyproject.toml", "tool.tox"),
    ("tox", "setup.cfg", "tox"),
    ("jest", "package.json", "jest"),
    ("mocha", "package.json", "mocha"),
    ("ava", "package.json", "ava"),
    ("eslint", "package.json", "eslintConfig"),
    ("eslint", "package.json", "eslintIgnore"),
    ("prettier", "package.json", "prettier"),
    ("cargo", "Cargo.toml", "lints"),
    ("cargo", "Cargo.toml", "workspace.lints"),
    ("cargo", "Cargo.toml", "lib.test"),
    ("cargo", "Cargo.toml", "lib.doctest"),
    ("cargo", "Cargo.toml", "package.autotests"),
];

/// Those that the scripts of a `package.json` run, without a word about it in the command of a check.
const BY_SCRIPT: [&str; 5] = ["jest", "mocha", "ava", "eslint", "prettier"];
/// The programs that run such scripts.
const SCRIPT_RUNNERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

/// What the command of a project that lies there runs by.
#[must_use]
pub fn run_by(command: &[String], project: &Path) -> RunBy {
    let mut found = RunBy::default();
    for argument in command {
        let is_text = argument.contains(char::is_whitespace);
        let words = if is_text { of_text(argument) } else { argument.split(is_sign).collect() };
        for word in words {
            found.files.extend(files_of(word));
            found.parts.extend(parts_of(word));
            let word =
                Path::new(word).strip_prefix(project).ok().and_then(Path::to_str).unwrap_or(word);
            let name = word.trim_start_matches("./");
            if !name.is_empty() {
                let anywhere = if is_text { "./" } else { "" };
                found.words.push(format!("{anywhere}{name}"));
            }
        }
    }
    found
}

/// What stands between words of a shell, the blank left aside.
fn is_sign(sign: char) -> bool {
    ";&|()<>\"'`=$\n".contains(sign)
}

/// Of a text for a shell the paths, and what stands where a command does or behind what leads on to one. Other words are
/// data.
fn of_text(text: &str) -> Vec<&str> {
    let parts = text.split(|sign| ";&|()<>`\n".contains(sign));
    let named = parts.flat_map(|part| {
        let mut is_run = true;
        part.split_whitespace().filter_map(move |word| {
            let word = word.trim_matches(['"', '\'']);
            let is_option = word.starts_with('-') || word.contains('=');
            let name = word.rsplit('=').next().unwrap_or(word);
            let is_named = name.contains('/') || is_run && !is_option;
            is_run &= is_option || leads_on(word);
            is_named.then_some(name)
        })
    });
    named.collect()
}

fn leads_on(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = if name == "." {
        name
    } else {
        name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.')
    };
    // A number is the time that is given to what follows.
    name.is_empty() || LEAD_ON.contains(&name)
}

/// The files of a project by which a program runs, and that say what of the project it looks at.
fn files_of(program: &str) -> &'static [&'static str] {
    match program.rsplit('/').next().unwrap_or_default() {
        "make" | "gmake" => &["Makefile", "makefile", "GNUmakefile"],
        "just" => &["justfile", "Justfile", ".justfile"],
        "task" => &["Taskfile.yml", "Taskfile.yaml"],
        "tox" => &["tox.ini"],
        "nox" => &["noxfile.py"],
        "cargo" => &["clippy.toml", ".clippy.toml", "rustfmt.toml", ".rustfmt.toml", "deny.toml"],
        "pytest" | "py.test" => &["pytest.ini", ".pytest.ini"],
        "ruff" => &["ruff.toml", ".ruff.toml"],
        "mypy" => &["mypy.ini", ".mypy.ini"],
        "pyright" | "basedpyright" => &["pyrightconfig.json"],
        "flake8" => &[".flake8"],
        "pylint" => &["pylintrc", ".pylintrc"],
        "eslint" => &["eslint.config.*", ".eslintrc", ".eslintrc.*", ".eslintignore"],
        "biome" => &["biome.json", "biome.jsonc"],
        "prettier" => &["prettier.config.*", ".prettierrc", ".prettierrc.*", ".prettierignore"],
        "tsc" => &["tsconfig.json", "tsconfig.*.json"],
        "jest" => &["jest.config.*"],
        "vitest" => &["vitest.config.*", "vitest.workspace.*"],
        "mocha" => &[".mocharc.*"],
        "golangci-lint" => &[".golangci.*"],
        "rspec" => &[".rspec"],
        "rubocop" => &[".rubocop.yml"],
        "phpunit" => &["phpunit.xml", "phpunit.xml.dist"],
        "shellcheck" => &[".shellcheckrc"],
        _ => &[],
    }
}

/// The parts of files by which a program runs.
fn parts_of(program: &str) -> impl Iterator<Item = FilePart> {
    let program = match program.rsplit('/').next().unwrap_or_default() {
        "py.test" => "pytest",
        name => name,
    };
    let runs_scripts = SCRIPT_RUNNERS.contains(&program);
    let is_run = move |it: &str| it == program || runs_scripts && BY_SCRIPT.contains(&it);
    let found = PARTS.into_iter().filter(move |(program, ..)| is_run(program));
    found.map(|(_, file, name)| FilePart { file: file.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_runs_is_named_and_its_data_is_not() {
        let run_by = |command: &[&str]| {
            let command: Vec<String> = command.iter().map(|it| (*it).to_owned()).collect();
            run_by(&command, Path::new("/srv/project"))
        };
        for (command, word) in [
            (&["bash", "scripts/ci.sh"][..], "scripts/ci.sh"),
            (&["./ci.sh"], "ci.sh"),
            (&["/srv/project/run.py"], "run.py"),
            (&["jest", "--config=ci/jest.config.js"], "ci/jest.config.js"),
            (&["sh", "-c", "make&&scripts/x.sh"], "scripts/x.sh"),
            (&["bash", "-c", "cd web && ./ci.sh"], "./ci.sh"),
            (&["bash", "-c", "cd web && python3 -u ci.py data.json"], "./ci.py"),
            (&["bash", "-c", "bash -euo pipefail scripts/ci.sh"], "./scripts/ci.sh"),
            (&["bash", "-c", "cd web; .venv/bin/python3.12 ci.py"], "./ci.py"),
            (&["bash", "-c", "A=1 timeout 600 bash ci.sh"], "./ci.sh"),
            (&["bash", "-c", "uv run python ci.py"], "./ci.py"),
            (&["bash", "-c", "bash < scripts/ci.sh"], "./scripts/ci.sh"),
            (&["bash", "-c", "jest --config=ci/jest.js"], "./ci/jest.js"),
        ] {
            let found = run_by(command).words;
            assert!(found.iter().any(|one| one == word), "{command:?}: {found:?}");
        }
        let found = run_by(&["sh", "-c", "grep -q ok state.txt && test -e notes.md"]).words;
        assert!(
            !found.iter().any(|one| one.contains("state") || one.contains("notes")),
            "{found:?}"
        );
        for command in
            [&["env", "A=1", "make", "test"][..], &["sh", "-c", "timeout 60 make -C sub"]]
        {
            assert_eq!(run_by(command).files[..1], ["Makefile"], "{command:?}");
        }
        for (command, file) in [
            (&["python", "-m", "pytest", "-q"][..], "pytest.ini"),
            (&["sh", "-c", "cd web && npx eslint ."], ".eslintignore"),
            (&["uv", "run", "ruff", "check", "."], "ruff.toml"),
        ] {
            assert!(run_by(command).files.contains(&file), "{command:?}");
        }
        for (command, part) in [
            (&["python", "-m", "pytest", "-q"][..], Some("tool.pytest")),
            (&["sh", "-c", "cd web && npm test"], Some("jest")),
            (&["cargo", "test"], Some("lints")),
            (&["echo", "pytest.ini"], None),
        ] {
            let parts = run_by(command).parts;
            match part {
                Some(part) => {
                    assert!(parts.iter().any(|it| it.name == part), "{command:?}: {parts:?}")
                }
                None => assert!(parts.is_empty(), "{command:?}: {parts:?}"),
            }
        }
    }
}
