//! What of a project the commands of checks and of `prepare` run by.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Programs and words of a shell behind which the name of what is run comes later.
const LEAD_ON: [&str; 37] = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "node", "deno", "bun", "ruby", "perl", "php",
    "env", "exec", "source", ".", "time", "timeout", "nice", "xargs", "sudo", "npx", "uv",
    "poetry", "pipenv", "run", "!", "{", "if", "then", "elif", "else", "do", "while", "until",
    "command", "eval",
];

/// A program by which checks run.
#[derive(Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Its own files, in any folder.
    pub files: &'static [&'static str],
    /// What it reads of files that are for others as well: the file's name, and the table, section or field.
    pub parts: &'static [(&'static str, &'static str)],
}

const fn with_files(name: &'static str, files: &'static [&'static str]) -> Program {
    Program { name, files, parts: &[] }
}

/// Those that are known, by their own documentation.
pub const PROGRAMS: [Program; 44] = [
    with_files("make", &["Makefile", "makefile", "GNUmakefile"]),
    with_files("just", &["justfile", "Justfile", ".justfile"]),
    with_files("task", &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "Taskfile.dist.yml"]),
    with_files("go", &[]),
    with_files("mvn", &[]),
    with_files("mvnw", &[]),
    with_files("gradle", &[]),
    with_files("gradlew", &[]),
    with_files("cmake", &[]),
    with_files("ctest", &[]),
    with_files("nox", &["noxfile.py"]),
    with_files("pre-commit", &[]),
    Program {
        name: "tox",
        files: &["tox.ini", "tox.toml"],
        parts: &[("pyproject.toml", "tool.tox"), ("setup.cfg", "tox"), ("setup.cfg", "testenv")],
    },
    Program { name: "poe", files: &["poe_tasks.toml"], parts: &[("pyproject.toml", "tool.poe")] },
    Program {
        name: "hatch",
        files: &["hatch.toml"],
        parts: &[("pyproject.toml", "tool.hatch.envs")],
    },
    Program { name: "pdm", files: &[], parts: &[("pyproject.toml", "tool.pdm.scripts")] },
    Program {
        name: "cargo",
        files: &["clippy.toml", ".clippy.toml", "rustfmt.toml", ".rustfmt.toml", "deny.toml"],
        parts: &[
            ("Cargo.toml", "lints"),
            ("Cargo.toml", "workspace.lints"),
            ("Cargo.toml", "lib.test"),
            ("Cargo.toml", "lib.doctest"),
            ("Cargo.toml", "lib.harness"),
            ("Cargo.toml", "test"),
            ("Cargo.toml", "package.autotests"),
        ],
    },
    Program {
        name: "pytest",
        files: &["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", ".coveragerc"],
        parts: &[
            ("pyproject.toml", "tool.pytest"),
            ("pyproject.toml", "tool.coverage"),
            ("setup.cfg", "tool:pytest"),
            ("setup.cfg", "coverage"),
            ("tox.ini", "pytest"),
            ("tox.ini", "coverage"),
        ],
    },
    Program {
        name: "coverage",
        files: &[".coveragerc"],
        parts: &[
            ("pyproject.toml", "tool.coverage"),
            ("setup.cfg", "coverage"),
            ("tox.ini", "coverage"),
        ],
    },
    Program {
        name: "ruff",
        files: &["ruff.toml", ".ruff.toml"],
        parts: &[("pyproject.toml", "tool.ruff")],
    },
    Program {
        name: "mypy",
        files: &["mypy.ini", ".mypy.ini"],
        parts: &[("pyproject.toml", "tool.mypy"), ("setup.cfg", "mypy")],
    },
    Program {
        name: "pyright",
        files: &["pyrightconfig.json"],
        parts: &[("pyproject.toml", "tool.pyright")],
    },
    Program {
        name: "basedpyright",
        files: &["pyrightconfig.json"],
        parts: &[("pyproject.toml", "tool.basedpyright")],
    },
    Program {
        name: "flake8",
        files: &[".flake8"],
        parts: &[("setup.cfg", "flake8"), ("tox.ini", "flake8")],
    },
    Program {
        name: "pylint",
        files: &["pylintrc", ".pylintrc", "pylintrc.toml", ".pylintrc.toml"],
        parts: &[("pyproject.toml", "tool.pylint"), ("setup.cfg", "pylint")],
    },
    Program { name: "black", files: &[], parts: &[("pyproject.toml", "tool.black")] },
    Program {
        name: "isort",
        files: &[".isort.cfg"],
        parts: &[("pyproject.toml", "tool.isort"), ("setup.cfg", "isort"), ("tox.ini", "isort")],
    },
    Program {
        name: "eslint",
        files: &["eslint.config.*", ".eslintrc", ".eslintrc.*", ".eslintignore"],
        parts: &[("package.json", "eslintConfig"), ("package.json", "eslintIgnore")],
    },
    with_files("biome", &["biome.json", "biome.jsonc"]),
    Program {
        name: "prettier",
        files: &["prettier.config.*", ".prettierrc", ".prettierrc.*", ".prettierignore"],
        parts: &[("package.json", "prettier")],
    },
    with_files("tsc", &["tsconfig.json", "tsconfig.*.json"]),
    Program { name: "jest", files: &["jest.config.*"], parts: &[("package.json", "jest")] },
    with_files("vitest", &["vitest.config.*", "vitest.workspace.*", "vite.config.*"]),
    Program { name: "mocha", files: &[".mocharc.*"], parts: &[("package.json", "mocha")] },
    Program { name: "ava", files: &["ava.config.*"], parts: &[("package.json", "ava")] },
    Program {
        name: "nyc",
        files: &[".nycrc", ".nycrc.*", "nyc.config.*"],
        parts: &[("package.json", "nyc")],
    },
    Program { name: "c8", files: &[".c8rc", ".c8rc.*"], parts: &[("package.json", "c8")] },
    with_files("playwright", &["playwright.config.*"]),
    with_files("golangci-lint", &[".golangci.*"]),
    with_files("rspec", &[".rspec"]),
    with_files("rubocop", &[".rubocop.yml"]),
    with_files("phpunit", &["phpunit.xml", "phpunit.xml.dist"]),
    with_files("phpstan", &["phpstan.neon", "phpstan.neon.dist"]),
    with_files("shellcheck", &[".shellcheckrc"]),
];

/// Those that run whatever a file of the project says.
const RUNNERS: [&str; 9] =
    ["make", "just", "task", "nox", "tox", "pre-commit", "poe", "hatch", "pdm"];
/// Those that run the scripts of a `package.json`, and what such scripts run.
const SCRIPT_RUNNERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];
const BY_SCRIPT: [&str; 10] =
    ["eslint", "biome", "prettier", "jest", "vitest", "mocha", "ava", "nyc", "c8", "playwright"];
/// What is edited for other reasons as well: only where it is named.
const WHERE_NAMED: [&str; 7] = ["make", "just", "task", "poe", "hatch", "pdm", "tsc"];
/// The same of a program's files.
const FILES_WHERE_NAMED: [&str; 1] = ["vite.config.*"];
/// Behind these stands what something is about, and no program.
const BEFORE_DATA: [&str; 4] = ["-p", "--package", "-k", "cd"];

/// What a command runs by.
#[derive(Debug, Default)]
pub struct RunBy {
    /// Words that may name a file of the project; with `./` before it in any folder, because a text for a shell may go
    /// there first.
    pub words: Vec<String>,
    /// Its programs that are known.
    programs: Vec<&'static Program>,
    /// Whether it runs scripts of a `package.json`.
    runs_scripts: bool,
    /// Whether it runs what a file of the project says.
    runs_anything: bool,
}

/// A part of a file that is for many programs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FilePart {
    /// The file's name, in any folder.
    pub file: String,
    /// The table, section or field.
    pub name: String,
}

impl RunBy {
    /// Names of the files, and the parts of files, by which a check runs: by its own programs, and by whatever those and
    /// its scripts may run. One that names no program that is known is a script itself.
    #[must_use]
    pub fn of_check(&self) -> (BTreeSet<&'static str>, BTreeSet<FilePart>) {
        let runs_anything = self.runs_anything || self.programs.is_empty() && !self.runs_scripts;
        let may_run = PROGRAMS.iter().filter(|it| {
            let by_script = self.runs_scripts && BY_SCRIPT.contains(&it.name);
            by_script || runs_anything && !WHERE_NAMED.contains(&it.name)
        });
        let (mut files, mut parts) = self.of_named();
        for program in may_run {
            files.extend(program.files.iter().filter(|file| !FILES_WHERE_NAMED.contains(file)));
            parts.extend(program.file_parts());
        }
        (files, parts)
    }

    /// The same by the programs that it names alone.
    #[must_use]
    pub fn of_named(&self) -> (BTreeSet<&'static str>, BTreeSet<FilePart>) {
        let files = self.programs.iter().flat_map(|program| program.files).copied();
        (files.collect(), self.programs.iter().flat_map(|program| program.file_parts()).collect())
    }

    /// Takes in the programs of an argument, or of a text for a shell.
    fn look_at(&mut self, argument: &str, before: &mut [String; 2]) {
        for word in argument.split(|it: char| it.is_whitespace() || is_sign(it)) {
            if word.is_empty() {
                continue;
            }
            let [second, last] = &*before;
            let is_script_name = last == "run" && SCRIPT_RUNNERS.contains(&second.as_str());
            if !is_script_name && !BEFORE_DATA.contains(&last.as_str()) {
                let name = program_name(word);
                self.programs.extend(PROGRAMS.iter().filter(|it| it.name == name));
                self.runs_scripts |= SCRIPT_RUNNERS.contains(&name);
                self.runs_anything |= RUNNERS.contains(&name) || is_script(word);
            }
            before.rotate_left(1);
            word.clone_into(&mut before[1]);
        }
    }
}

/// The name of the program that a word stands for, where it may be one: a folder of the project has names of its own.
fn program_name(word: &str) -> &str {
    let name = match word.rsplit_once('/') {
        None => word,
        Some((folder, name)) if folder.ends_with("bin") => name,
        Some((".", name)) => name,
        Some(_) => "",
    };
    match name {
        "py.test" => "pytest",
        "gmake" => "make",
        name => name,
    }
}

/// Whether a word stands for a script, which may run anything.
fn is_script(word: &str) -> bool {
    word == "xtask" || [".sh", ".bash"].iter().any(|end| word.ends_with(end))
}

impl Program {
    /// What it reads of files that are for others as well.
    pub fn file_parts(&self) -> impl Iterator<Item = FilePart> {
        let parts = self.parts.iter();
        parts.map(|(file, name)| FilePart { file: (*file).to_owned(), name: (*name).to_owned() })
    }
}

/// What the command of a project that lies there runs by.
#[must_use]
pub fn run_by(command: &[String], project: &Path) -> RunBy {
    let mut found = RunBy::default();
    let mut before = [String::new(), String::new()];
    for argument in command {
        let is_text = argument.contains(char::is_whitespace);
        let words = if is_text { of_text(argument) } else { argument.split(is_sign).collect() };
        // An option's value may stand before a program.
        found.look_at(argument, &mut before);
        for word in words {
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
            assert_eq!(run_by(command).programs[0].name, "make", "{command:?}");
        }
        for (command, file, part) in [
            (&["python", "-m", "pytest", "-q"][..], "pytest.ini", "tool.pytest"),
            (&["sh", "-c", "uv run --group test pytest"], ".coveragerc", "tool.coverage"),
            (&["sh", "-c", "cd web && npx eslint ."], ".eslintignore", "eslintConfig"),
            (&["sh", "-c", "cd web && npm test"], "playwright.config.*", "jest"),
            (&["uv", "run", "ruff", "check", "."], "ruff.toml", "tool.ruff"),
            (&["make", "test"], "Makefile", "tool.ruff"),
            (&["tox", "-e", "py"], "tox.ini", "tool.pytest"),
            (&["cargo", "test"], "clippy.toml", "lints"),
            // Nobody knows what it runs.
            (&["sh", "ci.sh"], ".flake8", "tool.mypy"),
        ] {
            let (files, parts) = run_by(command).of_check();
            assert!(files.contains(file), "{command:?} {file}");
            assert!(parts.iter().any(|it| it.name == part), "{command:?} {part}");
        }
        let reads = |command: &[&str], file: &str| run_by(command).of_check().0.contains(file);
        for command in [
            &["cargo", "test", "-p", "task"][..],
            &["go", "test", "./cmd/make"],
            &["sh", "-c", "cd services/task && go test ./..."],
            &["pytest", "tests/black", "-k", "make"],
            &["npm", "run", "make"],
        ] {
            assert!(!reads(command, "Makefile") && !reads(command, "Taskfile.yml"), "{command:?}");
            assert!(!reads(command, ".golangci.*"), "{command:?}");
        }
        assert!(reads(&["vitest"], "vite.config.*") && !reads(&["npm", "test"], "vite.config.*"));
        for command in
            [&["sh", "-c", "uv run pytest && bash lint.sh"][..], &["cargo", "xtask", "ci"]]
        {
            assert!(reads(command, ".flake8") && !reads(command, "Makefile"), "{command:?}");
        }
        assert!(
            reads(&[".venv/bin/pytest"], "pytest.ini") && !reads(&[".venv/bin/pytest"], ".flake8")
        );
        let prepares = run_by(&["npm", "ci"]).of_named();
        assert_eq!(prepares, Default::default());
        assert!(
            RUNNERS
                .iter()
                .chain(&BY_SCRIPT)
                .chain(&WHERE_NAMED)
                .all(|name| { PROGRAMS.iter().any(|it| it.name == *name) })
        );
    }
}
