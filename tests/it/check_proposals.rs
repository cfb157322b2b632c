//! What manifests show about checks, how a person accepts it, and the checks run by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use teams::git::{self, Project};
use teams::onboarding::proposals::propose;

use crate::git_repo::git_in;
use crate::support::house::teams;
use crate::support::terminal::typed;
use crate::support::yard::Yard;

/// A project of these files, with one commit.
fn project(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
    let project = folder.join("project");
    std::fs::create_dir_all(&project).unwrap();
    for (name, text) in files {
        let path = project.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    git::create::create(&project, "main", "first").unwrap();
    project
}

/// The commands that are proposed for a project of these files, a line each.
#[track_caller]
fn shows(files: &[(&str, &str)], commands: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let mut all = vec![("README.md", "x\n")];
    all.extend(files);
    let found = propose(&Project::open(&project(folder.path(), &all), "").unwrap()).unwrap();
    let found: Vec<String> = found.checks.iter().map(|it| it.command.join(" ")).collect();
    assert_eq!(found, commands, "{files:?}");
}

const NPM: &str = r#"{"scripts": {"test": "mocha"}}"#;

#[test]
fn only_what_manifests_show_is_proposed() {
    let package = "[package]\nname = \"x\"\n";
    shows(&[("Cargo.toml", package)], &["cargo test --no-fail-fast"]);
    shows(
        &[("Cargo.toml", "[package]\nname = \"x\"\n[workspace]\n"), ("Cargo.lock", "")],
        &["cargo test --no-fail-fast --workspace --locked"],
    );
    shows(&[("Cargo.toml", "# nothing\n")], &[]);

    let test = ("tests/test_a.py", "def test_a(): pass\n");
    let project = "[project]\nname = \"x\"\n";
    shows(&[("pyproject.toml", project)], &[]);
    shows(&[("pyproject.toml", project), ("tests/helper.py", "")], &[]);
    shows(&[test], &[]);
    shows(&[("requirements-dev.txt", "pytest\n"), test], &["python3 -m pytest -rA"]);
    shows(
        &[("pyproject.toml", "[tool.pytest.ini_options]\n"), ("uv.lock", "")],
        &["uv run --no-sync pytest -rA"],
    );
    shows(&[("pyproject.toml", "[tool.poetry]\n"), test], &["poetry run pytest -rA"]);
    shows(&[("setup.cfg", "[tool:pytest]\n")], &["python3 -m pytest -rA"]);

    shows(&[("package.json", NPM)], &["npm test"]);
    shows(&[("package.json", NPM), ("pnpm-lock.yaml", "")], &["pnpm test"]);
    shows(&[("package.json", NPM), ("yarn.lock", "")], &["yarn test"]);
    let pinned = r#"{"packageManager": "yarn@4.1.0", "scripts": {"test": "jest"}}"#;
    shows(&[("package.json", pinned)], &["yarn test"]);
    let default =
        r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1", "build": "tsc"}}"#;
    shows(&[("package.json", default)], &[]);
    shows(&[("package.json", r#"{"scripts": {"build": "tsc"}}"#)], &[]);
    shows(&[("package.json", "{ broken")], &[]);

    shows(&[("go.mod", "module x\n")], &[]);
    shows(&[("go.mod", "module x\n"), ("a/b_test.go", "package a\n")], &["go test -v ./..."]);
    shows(&[("pom.xml", "<project/>"), ("src/main/A.java", "")], &[]);
    shows(
        &[("pom.xml", "<project/>"), ("core/src/test/A.java", "")],
        &["mvn --batch-mode --offline test"],
    );
    shows(
        &[("build.gradle.kts", ""), ("src/test/kotlin/A.kt", "")],
        &["gradle --no-daemon --offline --no-build-cache cleanTest test"],
    );
    shows(&[("CMakeLists.txt", "# enable_testing()\nproject(x)\n")], &[]);
    shows(
        &[("CMakeLists.txt", "project(x)\n  Enable_Testing ()\n")],
        &[
            "cmake -S . -B build",
            "cmake --build build",
            "ctest --test-dir build --output-on-failure",
        ],
    );

    shows(&[("Makefile", "all:\n\techo\n")], &[]);
    shows(&[("Makefile", "test := yes\n.PHONY: test\nall:\n\ttest: x\n")], &[]);
    shows(&[("Makefile", ".PHONY: test\nall test: build\n\techo\ncheck:\n")], &["make test"]);
    shows(&[("GNUmakefile", "check: all\n"), ("Makefile", "test:\n")], &["make check"]);
    shows(&[("justfile", "build:\n  x\n@test *args: build\n  y\n")], &["just test"]);
    shows(&[("justfile", "test := \"x\"\nbuild:\n  test\n")], &[]);
    // A Makefile beside a manifest that says more runs the same.
    shows(&[("Makefile", "test:\n\tnpm test\n"), ("package.json", NPM)], &["npm test"]);
}

/// What is proposed to be prepared for a project of these files: the command, and what decides about it.
#[track_caller]
fn prepares(files: &[(&str, &str)], expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let found = propose(&Project::open(&project(folder.path(), files), "").unwrap()).unwrap();
    let line = |it: &teams::domain::check_proposal::ProposedCommand| {
        format!("{} [{}]", it.command.join(" "), it.files.join(", "))
    };
    let found: Vec<String> = found.prepare.iter().map(line).collect();
    assert_eq!(found.join("; "), expected, "{files:?}");
}

#[test]
fn lock_files_show_what_is_prepared() {
    let package = ("Cargo.toml", "[package]\nname = \"x\"\n");
    prepares(&[package, ("Cargo.lock", "[[package]]\nname = \"x\"\n")], "");
    prepares(
        &[package, ("Cargo.lock", "[[package]]\nname = \"y\"\nsource = \"registry\"\n")],
        "cargo fetch --locked [Cargo.lock, Cargo.toml]",
    );
    let test = ("tests/test_a.py", "def test_a(): pass\n");
    let pyproject = ("pyproject.toml", "[project]\nname = \"x\"\n");
    prepares(&[pyproject, test, ("uv.lock", "")], "uv sync --locked [uv.lock, pyproject.toml]");
    prepares(
        &[("pyproject.toml", "[tool.poetry]\n"), test, ("poetry.lock", "")],
        "poetry install --no-interaction [poetry.lock, pyproject.toml]",
    );
    let ignored = (".gitignore", ".venv/\nnode_modules/\n");
    prepares(&[test, ("requirements.txt", "pytest\n")], "");
    prepares(
        &[test, ignored, ("requirements-dev.txt", ""), ("requirements.txt", "pytest\n")],
        "sh -c python3 -m venv .venv && .venv/bin/pip install -r requirements-dev.txt -r requirements.txt \
         [requirements-dev.txt, requirements.txt]",
    );
    let install = "sh -c python3 -m venv .venv && .venv/bin/pip install pytest -e";
    prepares(&[pyproject, test, ignored], &format!("{install} '.' [pyproject.toml]"));
    let more = "[project]\nname = \"x\"\n[project.optional-dependencies]\ndocs = []\ntesting = [\"pytest\"]\n";
    prepares(
        &[("pyproject.toml", more), ("setup.cfg", ""), test, ignored],
        &format!("{install} '.[testing]' [pyproject.toml, setup.cfg]"),
    );
    prepares(&[("setup.py", ""), test, ignored], &format!("{install} '.' [setup.py]"));
    prepares(&[("pyproject.toml", "[tool.black]\n"), test, ignored], "");
    let npm = ("package.json", NPM);
    prepares(&[npm], "");
    let asks = r#"{"scripts": {"test": "mocha"}, "devDependencies": {"mocha": "^10"}}"#;
    prepares(&[("package.json", asks)], "");
    prepares(&[("package.json", asks), ignored], "npm install --no-package-lock [package.json]");
    prepares(&[npm, ("package-lock.json", "")], "npm ci [package-lock.json, package.json]");
    prepares(
        &[npm, ("pnpm-lock.yaml", "")],
        "pnpm install --frozen-lockfile [pnpm-lock.yaml, package.json]",
    );
    prepares(&[npm, ("yarn.lock", "")], "yarn install --frozen-lockfile [yarn.lock, package.json]");
    let berry = r#"{"packageManager": "yarn@4.1.0", "scripts": {"test": "jest"}}"#;
    prepares(
        &[("package.json", berry), ("yarn.lock", "")],
        "yarn install --immutable [yarn.lock, package.json]",
    );
    let go = [("go.mod", "module x\n"), ("a_test.go", "package x\n"), ("go.sum", "")];
    prepares(&go, "go mod download [go.sum, go.mod]");
    prepares(
        &[("pom.xml", "<project/>"), ("core/pom.xml", ""), ("core/src/test/A.java", "")],
        "mvn --batch-mode -Dmaven.test.failure.ignore test [core/pom.xml, pom.xml]",
    );
    prepares(
        &[("build.gradle", ""), ("gradle/libs.versions.toml", ""), ("src/test/A.java", "")],
        "sh -c gradle --no-daemon --continue test || gradle --no-daemon --continue testClasses \
         [build.gradle, gradle/libs.versions.toml]",
    );
    prepares(&[("CMakeLists.txt", "enable_testing()\n")], "");
}

#[test]
fn dependencies_that_git_ignores_are_lent() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        (".gitignore", "node_modules/\n.venv/\n"),
        ("package.json", NPM),
        ("requirements.txt", "pytest\n"),
        ("tests/test_a.py", "def test_a(): pass\n"),
    ];
    let path = project(folder.path(), &files);
    let project = Project::open(&path, "").unwrap();
    assert_eq!(propose(&project).unwrap().carry, Vec::<String>::new());
    for lent in ["node_modules", ".venv"] {
        std::fs::create_dir_all(path.join(lent)).unwrap();
    }
    let found = propose(&project).unwrap();
    assert_eq!(found.carry, [".venv", "node_modules"]);
    assert_eq!(found.checks[0].command[0], ".venv/bin/python");
}

/// A project whose tests `make test` runs, with its workspace beside it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    async fn new(files: &[(&str, &str)]) -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        project(place.folder.path(), files);
        let (code, _, error) = place.teams(&["init"]).await;
        assert_eq!(code, 0, "{error}");
        let config = place.config();
        let named = config.replace("  # path: ..\n", "  path: ../project\n");
        let named =
            named.replace("# allow_unisolated_checks: true", "allow_unisolated_checks: true");
        assert_ne!(config, named);
        std::fs::write(place.root().join("team_runtime.yaml"), named).unwrap();
        place
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.root().join("team_runtime.yaml")).unwrap()
    }

    async fn teams(&self, arguments: &[&str]) -> (i32, String, String) {
        let root = self.root();
        let mut all = arguments.to_vec();
        all.extend(["--workspace-root", root.to_str().unwrap()]);
        let env = BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]);
        teams(&all, &env).await
    }

    fn commit(&self, path: &str, text: &str) -> String {
        let project = self.folder.path().join("project");
        std::fs::write(project.join(path), text).unwrap();
        let repository = git2::Repository::open(&project).unwrap();
        let mut index = repository.index().unwrap();
        index.add_path(Path::new(path)).unwrap();
        index.write().unwrap();
        let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
        let me = git2::Signature::now("x", "x@example.org").unwrap();
        let head = repository.head().unwrap().peel_to_commit().unwrap();
        let made = repository.commit(Some("HEAD"), &me, &me, "next", &tree, &[&head]);
        made.unwrap().to_string()
    }
}

#[tokio::test]
async fn what_is_proposed_is_accepted_run_and_told_with_its_times() {
    let place =
        Place::new(&[("Makefile", "test:\n\t@sh test.sh\n"), ("test.sh", "echo '2 passed'\n")])
            .await;
    let (code, said, _) = place.teams(&["checks", "run"]).await;
    assert_eq!((code, said.as_str()), (1, ""), "there is nothing to run");

    let before = place.config();
    let (code, said, error) = place.teams(&["checks", "propose"]).await;
    assert_eq!(code, 0, "{error}");
    assert!(said.contains("  - name: make test\n    command: [make, test]   # Makefile"), "{said}");
    assert_eq!(place.config(), before, "looking changes nothing");
    let (code, said, error) = place.teams(&["checks", "propose", "--accept", "--json"]).await;
    assert_eq!(code, 0, "{error}");
    let told: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(told["accepted"], true);
    assert_eq!(told["checks"][0]["command"], json!(["make", "test"]));
    let config = place.config();
    assert!(
        config.contains("checks:\n  - name: \"make test\"\n    command: [make, test]\n"),
        "{config}"
    );
    assert!(config.contains("# A command is a list of words"), "comments stay");
    let (code, _, error) = place.teams(&["checks", "propose", "--accept"]).await;
    assert_eq!(code, 1, "what is configured is not replaced");
    assert!(error.contains("1 checks are configured already"), "{error}");
    // A person at the terminal is asked.
    std::fs::write(place.root().join("team_runtime.yaml"), &before).unwrap();
    let words = format!("checks propose --workspace-root '{}'", place.root().display());
    let (shown, well) = typed(&words, &place.root(), "Type yes", "no\r").await;
    assert!(well && place.config() == before, "{shown}");
    let (shown, well) = typed(&words, &place.root(), "Type yes", "yes\r").await;
    assert!(well && place.config() == config, "{shown}");
    // What they depend on is written beside them.
    let fetched = "[[package]]\nname = \"y\"\nsource = \"registry\"\n";
    place.commit("Cargo.toml", "[package]\nname = \"x\"\n");
    place.commit("Cargo.lock", fetched);
    let (code, said, error) = place.teams(&["checks", "propose", "--accept"]).await;
    assert_eq!(code, 0, "{said}{error}");
    assert!(!said.contains("cargo test") && said.contains("command: [cargo, fetch"), "{said}");
    let both = place.config();
    assert!(both.contains("[make, test]") && both.contains("[cargo, fetch"), "{both}");
    std::fs::write(place.root().join("team_runtime.yaml"), &config).unwrap();
    place.commit("Cargo.toml", "");

    let first = git2::Repository::open(place.folder.path().join("project")).unwrap();
    let first = first.head().unwrap().target().unwrap().to_string();
    // What is not committed is not seen.
    std::fs::write(place.folder.path().join("project/test.sh"), "exit 9\n").unwrap();
    let (code, said, error) = place.teams(&["checks", "run", "--json"]).await;
    assert_eq!(code, 0, "{said}{error}");
    let told: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&told["green"], &told["commit"]), (&json!(true), &json!(first)));
    assert_eq!(told["checks"][0]["verdict"], "passed");
    assert!(told["tree_ms"].is_u64() && told["checks"][0]["duration_ms"].is_u64(), "{told}");
    assert_ne!(told["checks_digest"], "");

    place.commit("test.sh", "echo 'the sky fell'; exit 3\n");
    let (code, said, _) = place.teams(&["checks", "run"]).await;
    assert_eq!(code, 1, "{said}");
    for part in ["tree", "failed     make test: ", "exit code 2", "the sky fell", "Not green"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (code, said, error) = place.teams(&["checks", "run", "--commit", &first[..10]]).await;
    assert_eq!(code, 0, "{said}{error}");
    let (code, _, error) = place.teams(&["checks", "run", "--commit", "no-such-name"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("names no commit of the project"), "{error}");
    let left = place.root().join(".teams_runtime/checks/by-hand");
    let left: Vec<_> = std::fs::read_dir(left).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["1-make-test.log"], "only logs stay");
}

#[tokio::test]
async fn doctor_knows_that_what_is_prepared_or_lent_is_brought_to_checks() {
    let files = [
        (".gitignore", ".venv/\n"),
        ("requirements.txt", "pytest\n"),
        ("tests/test_a.py", "def test_a(): pass\n"),
    ];
    for is_lent in [false, true] {
        let place = Place::new(&files).await;
        let python = place.folder.path().join("project/.venv/bin/python");
        if is_lent {
            std::fs::create_dir_all(python.parent().unwrap()).unwrap();
            std::fs::write(&python, "#!/bin/sh\n").unwrap();
            crate::git_repo::set_mode(&python, 0o755);
        }
        let (code, said, error) = place.teams(&["checks", "propose", "--accept"]).await;
        assert_eq!(code, 0, "{said}{error}");
        assert!(place.config().contains(if is_lent { "carry: [" } else { "pip install" }));
        let programs = async || {
            let (_, said, _) = place.teams(&["doctor", "--json"]).await;
            let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines
                .filter(|it| it["check"] == "programs")
                .map(|it| it["result"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(programs().await, ["ok"]);
        // And that what prepares them has to be there.
        let config = place.config().replace("command: [sh,", "command: [no-such-shell,");
        std::fs::write(place.root().join("team_runtime.yaml"), config).unwrap();
        assert_eq!(programs().await, [if is_lent { "ok" } else { "problem" }]);
    }
}

#[tokio::test]
async fn setup_and_doctor_propose_and_undo_takes_it_back() {
    let yard = Yard::empty().await;
    let manifest = yard.project().join("package.json");
    std::fs::write(&manifest, NPM).unwrap();
    std::fs::remove_dir_all(yard.project().join(".git")).unwrap();
    git::create::create(&yard.project(), "main", "A greeter").unwrap();
    yard.teams(&["init"]).await.well();
    yard.invited().await;
    let before = yard.config();
    let step = |lines: Vec<Value>| lines.into_iter().find(|line| line["step"] == "checks").unwrap();
    let told = step(yard.setup(&[], &[]).await.well().lines());
    assert_eq!(told["result"], "open", "nobody can be asked: {told}");
    assert_eq!(told["checks"][0]["command"], json!(["npm", "test"]));

    let doctor = yard.teams(&["doctor", "--json"]).await.well();
    let advice = doctor
        .lines()
        .into_iter()
        .find(|line| line["result"] == "advice" && line["check"] == "git")
        .unwrap();
    assert!(advice["text"].as_str().unwrap().contains("npm"), "{advice}");
    assert!(advice["fix"].as_str().unwrap().contains("teams checks propose"), "{advice}");

    let told = step(yard.setup(&["--yes"], &[]).await.well().lines());
    assert_eq!(told["result"], "done");
    assert!(yard.config().iter().any(|it| it.contains("    command: [npm, test]")));
    assert!(yard.setup(&[], &[]).await.well().lines().iter().all(|it| it["step"] != "checks"));
    yard.teams(&["setup", "--undo", "--yes"]).await.well();
    assert_eq!(yard.config(), before);
    yard.running.shutdown().await;
}

#[tokio::test]
async fn a_submodule_that_was_not_fetched_and_a_filter_that_is_not_run_are_told() {
    let yard = Yard::empty().await;
    yard.invited().await;
    let head = git_in(&yard.project(), &["rev-parse", "HEAD"]);
    let link = format!("160000,{head},vendor/lib");
    git_in(&yard.project(), &["update-index", "--add", "--cacheinfo", &link]);
    std::fs::write(yard.project().join(".gitattributes"), "*.bin filter=lfs\n").unwrap();
    std::fs::write(yard.project().join("a.bin"), "a pointer\n").unwrap();
    git_in(&yard.project(), &["-c", "filter.lfs.required=false", "add", ".gitattributes", "a.bin"]);
    git_in(&yard.project(), &["commit", "-qm", "submodule"]);
    let told = yard.setup(&[], &[]).await.well().lines();
    let filters = told.iter().find(|line| line["step"] == "filters").unwrap();
    assert_eq!(filters["filters"], json!(["lfs"]));
    let told = told.iter().find(|line| line["step"] == "submodules").unwrap();
    assert_eq!((&told["result"], &told["missing"]), (&json!("open"), &json!(["vendor/lib"])));
    let doctor = yard.teams(&["doctor", "--json"]).await.well().lines();
    let advice = doctor.iter().find(|line| line["missing"] == json!(["vendor/lib"])).unwrap();
    assert_eq!(advice["result"], "advice");
    assert!(advice["fix"].as_str().unwrap().contains("submodule update --init"), "{advice}");
    let advice = doctor.iter().find(|line| line["filters"] == json!(["lfs"])).unwrap();
    assert!(advice["fix"].as_str().unwrap().contains("filters: [lfs]"), "{advice}");
    yard.running.shutdown().await;
}

#[tokio::test]
async fn a_workspace_inside_the_project_is_offered_a_place_outside() {
    let yard = Yard::empty().await;
    yard.invited().await;
    let place = |lines: Vec<Value>| lines.into_iter().find(|line| line["step"] == "place");
    let told = place(yard.setup(&[], &[]).await.well().lines()).unwrap();
    assert_eq!(told["result"], "open", "{told}");
    let outside = yard.folder.path().canonicalize().unwrap().join("project-team");
    assert_eq!(told["outside"], outside.to_str().unwrap());
    yard.teams(&["setup", "--undo", "--yes"]).await.well();
    let lines = yard.setup(&["--project", "."], &[]).await.well().lines();
    assert!(place(lines).is_none());
    let root = outside.to_str().unwrap();
    let doctor = yard.teams(&["doctor", "--json", "--workspace-root", root]).await.well();
    assert!(doctor.lines().iter().all(|line| line["result"] != "advice"), "{}", doctor.out);
    assert!(doctor.lines().iter().any(|it| it["check"] == "git" && it["branch"] == "main"));
    let inside = yard.teams(&["doctor", "--json"]).await.out;
    assert!(inside.contains("git clean -xfd"), "{inside}");
    yard.running.shutdown().await;
}
