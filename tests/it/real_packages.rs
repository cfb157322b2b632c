//! Packages of the registries as people have them: their own tests, what those need prepared, a request to its commit,
//! and a breaking edit to red. `.ci/run` keeps them in a folder; nothing is fetched here.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use teams::domain::request::RequestStatus;

use crate::git_repo::git_in;
use crate::support::house::{House, Plan};

/// The folder with the packages.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
fn packages() -> Option<PathBuf> {
    let folder = std::env::var_os("TEAMS_PACKAGES").map(PathBuf::from).filter(|it| it.is_dir());
    if folder.is_none() {
        assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "TEAMS_PACKAGES names no folder");
        eprintln!("skipped: TEAMS_PACKAGES names no folder with packages; `.ci/run` makes one");
    }
    folder
}

/// A package, and what its team is told.
struct Package {
    /// The archive, in the folder of packages.
    archive: &'static str,
    /// Files that its authors did not publish.
    files: Vec<(&'static str, Vec<u8>)>,
    prepare: serde_json::Value,
    checks: serde_json::Value,
    /// An edit after which its tests pass: file, old, new.
    good: [&'static str; 3],
    /// What the new text is replaced with so that they fail.
    bad: &'static str,
}

impl Package {
    /// Takes one request to its commit, and a breaking one to red.
    async fn take_through(self, packages: &Path) {
        let more =
            format!("prove_base: true\ngates: {{red_base: allow}}\nprepare: {}\n", self.prepare);
        let plan = Plan { checks: self.checks.to_string(), more, ..Plan::default() };
        let mut house = House::built(plan).await;
        let project = house.project();
        let archive = packages.join(self.archive);
        let unpacked = Command::new("tar")
            .args(["--strip-components=1", "-xzf"])
            .arg(&archive)
            .arg("-C")
            .arg(&project)
            .status();
        assert!(unpacked.unwrap().success(), "{}", archive.display());
        for (name, bytes) in &self.files {
            std::fs::write(project.join(name), bytes).unwrap();
        }
        git_in(&project, &["add", "-A"]);
        git_in(&project, &["commit", "-qm", "The package"]);
        let npm = packages.join("npm-cache");
        let cache = house.root().join(".teams_runtime/environments/cache/npm");
        std::fs::create_dir_all(cache.parent().unwrap()).unwrap();
        let copied = Command::new("cp").arg("-r").args([&npm, &cache]).status();
        assert!(copied.unwrap().success());
        house.start();

        let [file, old, new] = self.good;
        let asked = house.ask(&format!("in {file} replace \"{old}\" with \"{new}\"")).await;
        let request = house.becomes(&asked, RequestStatus::Committed).await;
        let evidence = request.work.evidence.as_ref().unwrap();
        // Some are red before, with a Python that is younger than they are.
        assert!(evidence.is_green() || evidence.is_red_before(), "{evidence:?}");
        assert_eq!(evidence.environments.len(), 1, "{evidence:?}");
        let passed = evidence.checks[0].tests_passed.unwrap_or_default();
        assert!(passed >= 1, "{evidence:?}");
        assert!(house.on_branch(file).contains(new));

        let breaks = format!("in {file} replace \"{new}\" with \"{}\"", self.bad);
        let asked = house.ask(&breaks).await;
        let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
        assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "checks_failing");
        assert!(house.on_branch(file).contains(new) && !house.on_branch(file).contains(self.bad));
        assert_eq!(house.commits().len(), 2, "the package and the request's");
        house.close().await;
    }
}

#[tokio::test]
async fn an_sdist_with_its_tests() {
    let Some(packages) = packages() else { return };
    let wheels = packages.join("wheels");
    let install = format!(
        "python3 -m venv .venv && .venv/bin/pip install --no-index --find-links {} -r requirements.txt",
        wheels.display()
    );
    let six = Package {
        archive: "six-1.16.0.tar.gz",
        files: vec![
            (".gitignore", b"/.venv/\n__pycache__/\n".to_vec()),
            ("requirements.txt", b"pytest\n".to_vec()),
        ],
        prepare: json!([{"name": "packages", "command": ["sh", "-c", install],
            "files": ["requirements.txt"], "network": "off", "read": [wheels]}]),
        checks: json!([{"name": "pytest", "command": [".venv/bin/python", "-m", "pytest", "-rA", "-q"]}]),
        good: ["six.py", "PY3 = sys.version_info[0] == 3", "PY3 = sys.version_info[0] >= 3"],
        bad: "PY3 = sys.version_info[0] >= 4",
    };
    six.take_through(&packages).await;
}

#[tokio::test]
async fn an_npm_package_with_mocha() {
    let Some(packages) = packages() else { return };
    let read = |name: &str| std::fs::read(packages.join("npm").join(name)).unwrap();
    let sprintf = Package {
        archive: "sprintf-js-1.0.3.tgz",
        files: vec![
            (".gitignore", b"/node_modules/\n".to_vec()),
            ("package.json", read("package.json")),
            ("package-lock.json", read("package-lock.json")),
        ],
        prepare: json!([{"name": "packages", "network": "off",
            "command": ["npm", "ci", "--offline", "--no-audit", "--no-fund"],
            "files": ["package-lock.json", "package.json"]}]),
        checks: json!([{"name": "npm test", "command": ["npm", "test"]}]),
        good: ["src/sprintf.js", "arg.toString(8)", "arg.toString( 8 )"],
        bad: "arg.toString( 9 )",
    };
    sprintf.take_through(&packages).await;
}

#[tokio::test]
async fn a_crate_with_its_build_folder() {
    let Some(packages) = packages() else { return };
    let fnv = Package {
        archive: "fnv-1.0.7.crate",
        files: vec![(".gitignore", b"/target/\nCargo.lock\n".to_vec())],
        prepare: json!([{"name": "build", "network": "off",
            "command": ["cargo", "test", "--offline", "--no-run"], "files": ["Cargo.toml"]}]),
        checks: json!([{"name": "cargo test", "command": ["cargo", "test", "--offline", "--no-fail-fast"]}]),
        good: ["lib.rs", "hash.wrapping_mul(0x100000001b3)", "hash.wrapping_mul(0x1_0000_0001_b3)"],
        bad: "hash.wrapping_mul(0x1_0000_0001_b5)",
    };
    fnv.take_through(&packages).await;
}
