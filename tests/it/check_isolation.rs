//! What a check sees: the commit that it proves, and nothing else of the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use teams::domain::config::CheckNetwork;
use teams::domain::evidence::{CheckVerdict, Evidence, Isolation};
use teams::git::GitError;
use teams::git::checks::{CheckPlan, CheckSpec};
use teams::platform::confinement::{self, Confinement};
use teams::platform::landlock;

use crate::git_checks::{check, checked_by, outcome, plan, shell};
use crate::git_repo::{Repo, git_in, put, set_mode};
use crate::support::skipped;

async fn bubblewrap() -> Option<Confinement> {
    let found = confinement::find().await;
    if matches!(found, Confinement::Bubblewrap(_)) {
        return Some(found);
    }
    skipped(&format!("{found:?}"));
    None
}

fn the_kernel() -> Option<Confinement> {
    let Some(strength) = landlock::strength() else {
        skipped("this kernel has no landlock");
        return None;
    };
    Some(Confinement::Landlock(strength, "bubblewrap is not used in this test".to_owned()))
}

fn is_green(evidence: &Evidence) {
    let red: Vec<_> =
        evidence.checks.iter().filter(|run| run.verdict != CheckVerdict::Passed).collect();
    assert!(red.is_empty(), "{red:#?}");
}

/// A project with a workspace in it, a worktree of another request, a file of secrets, and a neighbour.
fn surrounded() -> (Repo, CheckPlan) {
    let repo = Repo::with_workspace_inside();
    let workspace = repo.path.join("ws");
    repo.write(".git/info/exclude", "/ws/\n/.env\n");
    repo.write(".env", "KEY=of the person\n");
    repo.write("README.md", "edited by the person, not committed\n");
    put(&workspace.join(".teams_runtime/control.secret"), "secret of the team\n");
    put(&repo.root.join("other/tree/notes.md"), "of another request\n");
    put(&repo.path.parent().unwrap().join("neighbour/file"), "of somebody else\n");
    (repo, CheckPlan { hidden: vec![workspace], ..plan(&[]) })
}

/// One check for each try, named by its script; it is green where the try fails.
fn fails(script: &str) -> CheckSpec {
    shell(script, &format!("if ({script}) 2> /dev/null; then echo done; exit 1; fi"))
}

#[tokio::test]
async fn a_check_sees_the_tree_that_it_proves_at_the_projects_path_and_nothing_else() {
    let Some(bubblewrap) = bubblewrap().await else { return };
    let (repo, around) = surrounded();
    let neighbour = repo.path.parent().unwrap().join("neighbour");
    let project = repo.path.display();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<> /dev/tcp/127.0.0.1/{port}");
    let mark = format!("teams-check-{}", std::process::id());
    let checks = [
        shell(
            "place",
            &format!("test \"$(pwd -P)\" = {project} && test \"$(cat README.md)\" = hello"),
        ),
        shell(
            "home",
            &format!(
                "echo x > \"$HOME/{mark}\" && echo x > \"$TMPDIR/{mark}\" && echo x > /var/tmp/{mark}"
            ),
        ),
        shell("tree", &format!("echo x > README.md && echo x > {project}/made && rm -r src")),
        shell("dev", "echo x > /dev/null && echo x > /dev/shm/x"),
        fails("cat .env"),
        fails("ls ws"),
        fails(&format!("ls {}", repo.root.display())),
        fails(&format!("ls {}", neighbour.display())),
        fails("ls \"$HOME/.ssh\" \"$HOME/.bashrc\""),
        fails("grep . /etc/shadow"),
        fails("echo x > /usr/teams-check"),
        fails("echo x > /run/x"),
        fails("grep -l 'deps/i[t]-' /proc/[0-9]*/cmdline"),
        check("network", &["bash", "-c", &format!("! ({connect})")]),
        CheckSpec {
            network: CheckNetwork::Host,
            ..check("the machine's network", &["bash", "-c", &connect])
        },
        shell("loopback", "grep -q 127.0.0.1 /proc/net/fib_trie"),
    ];
    let around = CheckPlan { checks: checks.into(), ..around };
    let evidence = checked_by(&repo, &around, &bubblewrap, |_| {}).await.unwrap();
    is_green(&evidence);
    assert_eq!(evidence.isolation, Isolation::Bubblewrap);
    // Nothing of what they wrote is the person's.
    assert_eq!(repo.read("README.md"), "edited by the person, not committed\n");
    assert!(!repo.path.join("made").exists() && repo.path.join("src/app.py").exists());
    for folder in
        [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), std::env::home_dir().unwrap()]
    {
        assert!(!folder.join(&mark).exists());
    }
}

#[tokio::test]
async fn where_only_the_kernel_confines_the_checkout_cannot_be_opened() {
    let Some(kernel) = the_kernel() else { return };
    let (repo, around) = surrounded();
    let project = repo.path.display();
    let neighbour = repo.path.parent().unwrap().join("neighbour");
    let checks = [
        shell("place", "test \"$(cat README.md)\" = hello && test \"$(git ls-files | wc -l)\" = 5"),
        shell("home", "echo x > \"$HOME/x\" && echo x > \"$TMPDIR/x\" && echo x > made"),
        fails(&format!("cat {project}/.env")),
        fails(&format!("cat {project}/README.md")),
        fails(&format!("ls {project}/ws")),
        fails(&format!("ls {}", repo.root.display())),
        fails(&format!("ls {}", neighbour.display())),
        fails(&format!("echo x > {project}/made")),
    ];
    let around = CheckPlan { checks: checks.into(), ..around };
    let evidence = checked_by(&repo, &around, &kernel, |_| {}).await.unwrap();
    is_green(&evidence);
    assert_eq!(evidence.isolation, Isolation::Landlock);
    assert!(!repo.path.join("made").exists());
    // A person has to allow it.
    let refused = CheckPlan { allow_unisolated: false, ..around };
    let error = checked_by(&repo, &refused, &kernel, |tree| put(&tree.join("x"), "x\n"));
    let error = error.await.unwrap_err();
    assert!(matches!(error, GitError::NotIsolated { .. }), "{error}");
    assert!(error.to_string().contains("allow_unisolated_checks: true"), "{error}");
}

/// Fails below a hidden folder, as programs do that leave hidden files out.
const HIDDEN: &str = "pwd -P; case \"$(pwd -P)\" in */.*) exit 1;; esac";

#[tokio::test]
async fn no_tree_lies_below_a_hidden_folder() {
    for confinement in [bubblewrap().await, the_kernel()].into_iter().flatten() {
        let (repo, around) = surrounded();
        let around = CheckPlan { checks: vec![shell("place", HIDDEN)], ..around };
        let evidence = checked_by(&repo, &around, &confinement, |_| {}).await.unwrap();
        is_green(&evidence);
        // Where it lay outside of the workspace, it is gone.
        let place = Path::new(&evidence.checks[0].log_tail);
        assert_eq!(place == repo.path, evidence.isolation == Isolation::Bubblewrap);
        assert!(place == repo.path || (place.is_absolute() && !place.exists()), "{place:?}");
    }
}

#[tokio::test]
async fn git_answers_as_in_a_clone_and_what_is_written_to_it_stays_there() {
    for confinement in [bubblewrap().await, the_kernel()].into_iter().flatten() {
        let repo = Repo::new();
        repo.git(&["tag", "-am", "one", "v1.0"]);
        repo.git(&["tag", "light"]);
        repo.git(&["remote", "add", "origin", "https://example.com/secret.git"]);
        repo.git(&["config", "alias.x", "status"]);
        repo.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
        set_mode(&repo.path.join(".git/hooks/pre-commit"), 0o755);
        let before = repo.git(&["for-each-ref"]).lines().count();
        let me = "git -c user.name=a -c user.email=b";
        let checks = [
            shell(
                "files",
                "test \"$(git ls-files | tr '\\n' ' ')\" = '.gitignore README.md ok.sh src/app.py src/old.py '",
            ),
            shell(
                "describe",
                "git describe | grep -qx 'v1.0-1-g[0-9a-f]*' && test \"$(git describe --tags light)\" = v1.0",
            ),
            shell("status", "test -z \"$(git status --porcelain --ignored)\""),
            shell(
                "log",
                "test \"$(git log --oneline | wc -l)\" = 2 && git show HEAD^:README.md | grep hello",
            ),
            shell("head", "! git symbolic-ref -q HEAD"),
            shell(
                "nothing else",
                "test -z \"$(git remote)\" && test -z \"$(git branch --list '[a-z]*')\" && ! git config alias.x",
            ),
            shell("fsck", "git fsck --connectivity-only"),
            shell(
                "writes",
                &format!(
                    "echo x >> README.md && {me} commit -qam more && git tag evil && git gc -q && git describe | grep v1.0-2"
                ),
            ),
        ];
        let evidence = checked_by(&repo, &plan(&checks), &confinement, |_| {}).await.unwrap();
        is_green(&evidence);
        // The commit that was proven has its own branch.
        assert_eq!(repo.git(&["for-each-ref"]).lines().count(), before + 1);
        assert!(!repo.git(&["tag"]).contains("evil"));
    }
}

/// Builds an editable wheel by itself, so that pip has nothing to download.
const BACKEND: &str = r#"
import os, zipfile

NAME = "greeter-1.0.dist-info"

def build_editable(folder, config_settings=None, metadata_directory=None):
    files = {
        "greeter.pth": os.path.join(os.getcwd(), "src") + "\n",
        NAME + "/METADATA": "Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n",
        NAME + "/WHEEL": "Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(name + ",,\n" for name in files) + NAME + "/RECORD,,\n"
    wheel = "greeter-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, wheel), "w") as made:
        for name, text in {**files, NAME + "/RECORD": record}.items():
            made.writestr(name, text)
    return wheel
"#;
const PYPROJECT: &str = "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n\
    [project]\nname = \"greeter\"\nversion = \"1.0\"\n";

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(output.status.success(), "{command:?}: {text:?}");
}

fn works(program: &str, arguments: &[&str]) -> bool {
    let tried = Command::new(program).args(arguments).output();
    let works = tried.is_ok_and(|output| output.status.success());
    if !works {
        skipped(&format!("{program} {arguments:?} does not work"));
    }
    works
}

/// A project with a virtual environment in which it is installed as its person does: editable.
fn python() -> Repo {
    let repo = Repo::new();
    repo.write(".gitignore", ".venv/\n__pycache__/\n*.egg-info/\n");
    repo.write("backend.py", BACKEND);
    repo.write("pyproject.toml", PYPROJECT);
    repo.write("src/greeter/__init__.py", "def answer():\n    return 42\n");
    repo.write(
        "tests/test_greeter.py",
        "import greeter\nassert greeter.answer() == 42\nprint('1 passed')\n",
    );
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "a package"]);
    done(Command::new("python3").args(["-m", "venv", ".venv"]).current_dir(&repo.path));
    let words =
        ["-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", "-e", "."];
    done(Command::new(repo.path.join(".venv/bin/python")).args(words).current_dir(&repo.path));
    repo
}

/// The file that a change breaks, in a plain checkout elsewhere.
fn breaks(tree: &Path, path: &str, text: &str) {
    put(&tree.join(path), text);
}

#[tokio::test]
async fn a_breaking_edit_is_red_although_the_project_is_installed_editable() {
    if !works("python3", &["-c", "import ensurepip, venv"]) {
        return;
    }
    let repo = python();
    let program = repo.path.join(".venv/bin/python").to_str().unwrap().to_owned();
    let checks = [
        check("by its path", &[&program, "tests/test_greeter.py"]),
        check("in the tree", &[".venv/bin/python", "tests/test_greeter.py"]),
    ];
    let around = CheckPlan { carry: vec![".venv".into()], ..plan(&checks) };
    let broken = "def answer():\n    return 41\n";
    // In a plain checkout at another path the same command is green: it imports the person's files.
    let elsewhere = repo.root.join("elsewhere");
    git_in(&repo.path, &["worktree", "add", "-q", "--detach", elsewhere.to_str().unwrap()]);
    breaks(&elsewhere, "src/greeter/__init__.py", broken);
    done(Command::new(&program).arg("tests/test_greeter.py").current_dir(&elsewhere));

    if let Some(bubblewrap) = bubblewrap().await {
        let change = |tree: &Path| breaks(tree, "src/greeter/__init__.py", broken);
        let evidence = checked_by(&repo, &around, &bubblewrap, change).await.unwrap();
        for run in &evidence.checks {
            assert_eq!(run.verdict, CheckVerdict::Failed, "{run:#?}");
            assert!(run.log_tail.contains("AssertionError"), "{}", run.log_tail);
        }
        let change = |tree: &Path| {
            breaks(tree, "src/greeter/__init__.py", "def answer():\n    return 40 + 2\n")
        };
        is_green(&checked_by(&repo, &around, &bubblewrap, change).await.unwrap());
    }
    // Where the tree cannot lie at the project's path, it is nobody's change that is at fault.
    if let Some(kernel) = the_kernel() {
        let change = |tree: &Path| breaks(tree, "src/greeter/__init__.py", broken);
        let evidence = checked_by(&repo, &around, &kernel, change).await.unwrap();
        for run in &evidence.checks {
            assert_eq!(run.verdict, CheckVerdict::EnvironmentFault, "{run:#?}");
            assert!(run.log_tail.contains("bubblewrap"), "{}", run.log_tail);
        }
    }
}

#[tokio::test]
async fn a_breaking_edit_is_red_although_a_package_of_the_project_is_linked() {
    let Some(bubblewrap) = bubblewrap().await else { return };
    if !works("npm", &["--version"]) {
        return;
    }
    let repo = Repo::with_workspace_inside();
    repo.write(".gitignore", "node_modules/\n");
    repo.write("package.json", "{\"name\": \"app\", \"version\": \"1.0.0\"}\n");
    repo.write(
        "packages/greeter/package.json",
        "{\"name\": \"greeter\", \"version\": \"1.0.0\"}\n",
    );
    repo.write("packages/greeter/index.js", "module.exports = 42;\n");
    repo.write("test.js", "if (require('greeter') !== 42) throw new Error('it is broken');\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "a package"]);
    let npm = repo.path.parent().unwrap().join("npm");
    std::fs::create_dir_all(npm.join("prefix/lib")).unwrap();
    done(
        Command::new("npm")
            .args(["link", "--offline", "--silent", "--no-audit", "./packages/greeter"])
            .env("npm_config_prefix", npm.join("prefix"))
            .env("npm_config_cache", npm.join("cache"))
            .current_dir(&repo.path),
    );
    assert!(repo.path.join("node_modules/greeter").is_symlink());
    // A plain checkout within the project finds the person's package.
    let elsewhere = repo.root.join("elsewhere");
    git_in(&repo.path, &["worktree", "add", "-q", "--detach", elsewhere.to_str().unwrap()]);
    breaks(&elsewhere, "packages/greeter/index.js", "module.exports = 41;\n");
    done(Command::new("node").arg("test.js").current_dir(&elsewhere));

    let checks = [check("tests", &["node", "test.js"])];
    let around = CheckPlan { carry: vec!["node_modules".into()], ..plan(&checks) };
    let change = |tree: &Path| breaks(tree, "packages/greeter/index.js", "module.exports = 41;\n");
    let evidence = checked_by(&repo, &around, &bubblewrap, change).await.unwrap();
    let run = outcome(&evidence, "tests");
    assert_eq!(run.verdict, CheckVerdict::Failed, "{run:#?}");
    assert!(run.log_tail.contains("it is broken"), "{}", run.log_tail);
    let change =
        |tree: &Path| breaks(tree, "packages/greeter/index.js", "module.exports = 40 + 2;\n");
    is_green(&checked_by(&repo, &around, &bubblewrap, change).await.unwrap());
}

#[tokio::test]
async fn what_is_lent_to_checks_is_ignored_by_git_lies_in_the_project_and_is_read_only() {
    for confinement in [bubblewrap().await, the_kernel()].into_iter().flatten() {
        let repo = Repo::new();
        repo.write(".gitignore", "deps/\nlink\nfile\nkept/\nws/\n");
        repo.write("kept/tracked", "x\n");
        repo.git(&["add", "-A"]);
        repo.git(&["add", "-f", "kept/tracked"]);
        repo.git(&["commit", "-qm", "more"]);
        repo.write("web/deps/package", "lent\n");
        repo.write("file", "x\n");
        repo.write("plain/x", "x\n");
        repo.write("ws/secret", "x\n");
        std::os::unix::fs::symlink("..", repo.path.join("link")).unwrap();
        let around = CheckPlan { hidden: vec![repo.path.join("ws")], ..plan(&[]) };
        for (folder, words) in [
            ("gone", "there is no"),
            ("link", "is a symbolic link"),
            ("link/project", "is a symbolic link"),
            ("../neighbour", "it leaves the project"),
            ("file", "is no folder"),
            ("kept", "git tracks files in it"),
            ("plain", "git does not ignore it"),
            ("ws", "the team's workspace is there"),
        ] {
            let around = CheckPlan { carry: vec![folder.into()], ..around.clone() };
            let text = folder.to_owned();
            let change = move |tree: &Path| put(&tree.join("change"), &text);
            let error = checked_by(&repo, &around, &confinement, change).await.unwrap_err();
            let text = error.to_string();
            assert!(text.contains(words) && text.contains(folder), "{folder}: {text}");
        }
        let checks = [
            shell(
                "reads",
                "test \"$(cat web/deps/package)\" = lent && test -z \"$(git status --porcelain)\"",
            ),
            fails("echo x > web/deps/package"),
            fails("rm -f web/deps/package && test ! -e web/deps/package"),
            // Another check's way out through what it leaves behind.
            shell("moves", "mv web away && ln -s / web; true"),
            shell("reads again", "test ! -L web && test \"$(cat web/deps/package)\" = lent"),
        ];
        let isolated = matches!(confinement, Confinement::Bubblewrap(_));
        let checks = if isolated { &checks[..] } else { &checks[..3] };
        let around = CheckPlan { checks: checks.into(), carry: vec!["web/deps".into()], ..around };
        let change = |tree: &Path| put(&tree.join("change"), "last\n");
        is_green(&checked_by(&repo, &around, &confinement, change).await.unwrap());
        assert_eq!(repo.read("web/deps/package"), "lent\n");
        assert!(!Path::new("/deps").exists());
    }
}

#[tokio::test]
async fn a_check_has_the_words_and_files_of_its_configuration_and_no_other_check_has_them() {
    for confinement in [bubblewrap().await, the_kernel()].into_iter().flatten() {
        let repo = Repo::new();
        let beside = repo.path.parent().unwrap().join("sdk");
        put(&beside.join("version"), "7\n");
        let script =
            format!("test \"$MODE\" = strict && test \"$(cat {}/version)\" = 7", beside.display());
        let mut with = shell("with", &script);
        with.env.insert("MODE".to_owned(), "strict".to_owned());
        with.read.push(beside.clone());
        let checks = [
            with.clone(),
            fails(&format!("cat {}/version", beside.display())),
            fails("test -n \"$MODE\""),
        ];
        is_green(&checked_by(&repo, &plan(&checks), &confinement, |_| {}).await.unwrap());
        let home = std::env::home_dir().unwrap();
        let up = repo.path.parent().unwrap().to_owned();
        for (path, words) in [
            (beside.join("gone"), "it is not there"),
            (repo.path.join("src"), "it is in the project"),
            (up, "it holds the project"),
            (home, "it holds the home"),
            (PathBuf::from("/"), "it holds the home"),
        ] {
            let checks = [CheckSpec { read: vec![path.clone()], ..with.clone() }];
            let text = path.display().to_string();
            let change = move |tree: &Path| put(&tree.join("change"), &text);
            let error = checked_by(&repo, &plan(&checks), &confinement, change).await.unwrap_err();
            assert!(error.to_string().contains(words), "{}: {error}", path.display());
        }
    }
}

#[tokio::test]
async fn why_a_program_did_not_start_is_said_whole_with_the_remedy() {
    for confinement in [bubblewrap().await, the_kernel()].into_iter().flatten() {
        let repo = Repo::new();
        repo.write(".gitignore", ".venv/\ntarget/\n");
        repo.git(&["commit", "-qam", "ignored"]);
        repo.write(".venv/bin/pytest", "#!/bin/sh\n");
        set_mode(&repo.path.join(".venv/bin/pytest"), 0o755);
        let deep =
            format!("{}/program", "a-folder-with-a-long-name/".repeat(8).trim_end_matches('/'));
        let checks = [
            check("ignored", &[".venv/bin/pytest", "-q"]),
            check("built", &["target/debug/app"]),
            check("gone", &[&deep]),
            check("nowhere", &["no-such-program-anywhere"]),
            check("no interpreter", &["./script"]),
        ];
        let change = |tree: &Path| {
            put(&tree.join("script"), "#!/no/such/interpreter\n");
            set_mode(&tree.join("script"), 0o755);
        };
        let evidence = checked_by(&repo, &plan(&checks), &confinement, change).await.unwrap();
        for (name, words) in [
            (
                "ignored",
                &[".venv/bin/pytest: No such file", "git ignores .venv", "`carry: [.venv]`"][..],
            ),
            ("built", &["target/debug/app: No such file", "let the check build it"]),
            ("gone", &[&deep, "No such file"]),
            ("nowhere", &["no-such-program-anywhere: No such file", "PATH"]),
            ("no interpreter", &["script: No such file", "/no/such/interpreter"]),
        ] {
            let run = outcome(&evidence, name);
            assert_eq!(run.verdict, CheckVerdict::NotStarted, "{run:#?}");
            for words in words {
                assert!(run.log_tail.contains(words), "{words:?} in {}", run.log_tail);
            }
        }
        if evidence.isolation == Isolation::Bubblewrap {
            let path = repo.path.join(".venv/bin/pytest").display().to_string();
            assert!(outcome(&evidence, "ignored").log_tail.contains(&path));
        }
    }
}

#[tokio::test]
async fn a_check_that_misses_the_network_is_told_how_to_get_one() {
    let Some(bubblewrap) = bubblewrap().await else { return };
    let repo = Repo::new();
    let script = "echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6";
    let with = CheckSpec { network: CheckNetwork::Host, ..shell("with", script) };
    let checks = [shell("without", script), with, shell("red", "exit 1")];
    let evidence = checked_by(&repo, &plan(&checks), &bubblewrap, |_| {}).await.unwrap();
    let told = |name: &str| outcome(&evidence, name).log_tail.contains("network: host");
    assert_eq!(["without", "with", "red"].map(told), [true, false, false]);
}

#[tokio::test]
async fn a_check_that_meets_the_checkout_is_no_red_change() {
    let Some(kernel) = the_kernel() else { return };
    let repo = Repo::new();
    let checks = [
        shell("meets it", &format!("cat {}/README.md", repo.path.display())),
        shell("red", "exit 1"),
    ];
    let evidence = checked_by(&repo, &plan(&checks), &kernel, |_| {}).await.unwrap();
    assert_eq!(outcome(&evidence, "meets it").verdict, CheckVerdict::EnvironmentFault);
    assert_eq!(outcome(&evidence, "red").verdict, CheckVerdict::Failed);
}

#[tokio::test]
async fn cargo_works_in_the_home_of_the_checks() {
    for confinement in [bubblewrap().await, the_kernel()].into_iter().flatten() {
        let repo = Repo::new();
        repo.write(
            "Cargo.toml",
            "[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
        );
        repo.write("src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "a crate"]);
        let mut test = check("tests", &["cargo", "test", "-q", "--lib"]);
        test.timeout = std::time::Duration::from_secs(300);
        let checks = [
            test,
            fails("echo x > \"$HOME/.cargo/x\""),
            shell("home", "echo x > \"$CARGO_HOME/x\""),
        ];
        let evidence = checked_by(&repo, &plan(&checks), &confinement, |_| {}).await.unwrap();
        is_green(&evidence);
        assert_eq!(evidence.checks[0].tests_passed, Some(1));
    }
}
