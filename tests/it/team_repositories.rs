//! Repositories as people have them, through the whole team: filters and large files, signatures, names, links, partial
//! and sparse ones, and folders of earlier builds.

use serde_json::json;
use teams::domain::request::RequestStatus;

use crate::git_repo::git_in;
use crate::support::house::{EDIT, EDITED, House, Plan};

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Lets git run filters of these names for the team.
fn allow(house: &House, filters: &str) {
    let config = house.root().join("team_runtime.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains("project: {"), "{text}");
    let allowed = text.replace("project: {", &format!("project: {{filters: [{filters}], "));
    std::fs::write(&config, allowed).unwrap();
}

/// Commits a file as a person does, with the filters of their settings.
fn commit(house: &House, path: &str, text: &str) {
    crate::git_repo::put(&house.project().join(path), text);
    git_in(&house.project(), &["add", path]);
    git_in(&house.project(), &["commit", "-qm", path]);
}

/// Whether a program that may not be there does this; a test without it is skipped.
fn runs(program: &str, arguments: &[&str]) -> bool {
    let ran = std::process::Command::new(program).args(arguments).output();
    let runs = ran.is_ok_and(|output| output.status.success());
    if !runs {
        crate::support::skipped(&format!("{program} does not run"));
    }
    runs
}

/// A filter, line ends, a sparse checkout, odd names and a link.
#[tokio::test]
async fn a_request_goes_to_its_commit_in_a_repository_as_people_have_them() {
    let check = "cmp a.pic plain && test -L link && test -e 'blank name.txt' && test -e left/out.txt && echo 1 passed";
    let house = House::built(Plan {
        checks: format!("[{{name: kinds, command: [bash, -c, {}]}}]", json!(check)),
        ..Plan::default()
    })
    .await;
    let project = house.project();
    let git = |words: &[&str]| git_in(&project, words);
    git(&["config", "filter.swap.clean", "sed s/plain/stored/"]);
    git(&["config", "filter.swap.smudge", "sed s/stored/plain/"]);
    git(&["config", "core.autocrlf", "input"]);
    let put = |name: &str, text: &str| {
        let path = project.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put(".gitattributes", "*.pic filter=swap\n");
    for (name, text) in [
        ("a.pic", "plain\n"),
        ("plain", "plain\n"),
        ("blank name.txt", "x\n"),
        ("new\nline.txt", "x\n"),
        ("left/out.txt", "x\n"),
        ("crlf.txt", "one\r\ntwo\r\n"),
    ] {
        put(name, text);
    }
    std::os::unix::fs::symlink("plain", project.join("link")).unwrap();
    git(&["add", "-A"]);
    git(&["commit", "-qm", "Kinds"]);
    git(&["sparse-checkout", "set", "--no-cone", "/*", "!/left/"]);
    assert!(!project.join("left").exists());
    allow(&house, "swap");
    let mut house = house;
    house.start();
    let asked = house.ask(EDIT).await;
    let done = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(done.work.candidate.unwrap().paths.len(), 1, "nothing else is called changed");
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert!(!project.join("left").exists(), "what is left out stays left out");
    assert_eq!(std::fs::read_to_string(project.join("a.pic")).unwrap(), "plain\n");
    assert_eq!(git(&["show", "main:a.pic"]), "stored");
    house.quiet().await;
    // What stays of it is little, and no tree.
    let id = done.request_id.to_string();
    let mut bytes = 0;
    let mut folders = vec![house.root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && path.to_str().unwrap().contains(&id) {
                // What is written beside and renamed may be gone.
                bytes += entry.metadata().map_or(0, |it| it.len());
            }
        }
    }
    assert!(bytes > 0 && bytes <= 50_000, "{bytes} bytes stay");
    // Whatever a person clears away in the project is not the team's.
    git(&["clean", "-xfdq"]);
    let next = house.ask("in greet.sh replace \"good morning\" with \"good evening\"").await;
    house.becomes(&next, RequestStatus::Committed).await;
    house.close().await;
}

/// A partial clone in which a person has a worktree and a key to sign with, and a file that gets another
/// name by case alone and another mode.
#[tokio::test]
async fn a_partial_clone_with_a_worktree_of_its_person_gets_a_signed_commit() {
    let renames = json!([
        {"role": "planner", "do": "propose", "proposals": {"allowed_paths": null}},
        {"role": "developer", "contains": "greet.sh", "times": 1, "do": "run", "commands": [
            ["bash", "-c", "mv notes.md Notes.md && chmod +x notes.sh && ln -s notes.sh link && mkdir $'caf\\xe9' && echo x > $'caf\\xe9/new'"]
        ]},
    ]);
    let more = "commits: {sign: ssh}\n".to_owned();
    let script = Some(renames.to_string());
    let mut house = House::built(Plan { script, more, ..Plan::default() }).await;
    let (project, origin) = (house.project(), house.beside("origin"));
    for (name, text) in [("notes.md", "notes\n"), ("notes.sh", "#!/bin/sh\n")] {
        std::fs::write(project.join(name), text).unwrap();
    }
    git_in(&project, &["add", "-A"]);
    git_in(&project, &["commit", "-qm", "Notes"]);
    git_in(&project, &["config", "uploadpack.allowFilter", "true"]);
    std::fs::rename(&project, &origin).unwrap();
    let from = format!("file://{}", origin.display());
    git_in(&origin, &["clone", "-q", "--filter=blob:none", &from, project.to_str().unwrap()]);
    let git = |words: &[&str]| git_in(&project, words);
    let key = house.beside("key");
    let text = key.to_str().unwrap();
    if !runs("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", text]) {
        return;
    }
    git(&["config", "gpg.format", "ssh"]);
    git(&["config", "user.signingKey", &format!("{}.pub", key.display())]);
    let own = house.beside("own");
    git(&["worktree", "add", "-q", "-b", "mine", own.to_str().unwrap()]);
    std::fs::write(own.join("draft.txt"), "mine\n").unwrap();
    house.start();
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    assert!(git(&["cat-file", "commit", "main"]).contains("BEGIN SSH SIGNATURE"));
    let files = git(&["ls-tree", "-r", "main"]);
    assert!(files.contains("\tNotes.md") && !files.contains("\tnotes.md"), "{files}");
    assert!(
        files.lines().any(|it| it.starts_with("100755") && it.ends_with("\tnotes.sh")),
        "{files}"
    );
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert!(files.contains("120000") && files.contains(r"caf\351/new"), "{files}");
    assert!(house.transcript().await.contains(r"caf\xE9/new"));
    // In the person's checkout too it has the other name alone.
    let names: Vec<String> = names(&project).into_iter().filter(|it| it.ends_with(".md")).collect();
    assert!(names.contains(&"Notes.md".to_owned()) && !names.contains(&"notes.md".to_owned()));
    assert_eq!(git_in(&own, &["status", "--porcelain"]), "?? draft.txt");
    house.close().await;
}

#[tokio::test]
async fn a_commit_is_signed_with_the_persons_gpg_key_and_not_made_without_it() {
    let more = "commits: {sign: gpg}\n".to_owned();
    let mut house = House::built(Plan { more, ..Plan::default() }).await;
    // A socket of gpg's agent has a short path or none.
    let keys = tempfile::Builder::new().prefix("gpg").tempdir_in("/tmp").unwrap();
    let home = keys.path().to_str().unwrap().to_owned();
    crate::git_repo::set_mode(keys.path(), 0o700);
    let make = "--quick-generate-key".to_owned();
    let own = ["--homedir", &home, "--batch", "--pinentry-mode", "loopback", "--passphrase", ""];
    let new = [make.as_str(), "Person <person@localhost>", "ed25519", "sign", "never"];
    if !runs("gpg", &[&own[..], &new[..]].concat()) {
        return;
    }
    let git = |words: &[&str]| git_in(&house.project(), words);
    // As a person's settings name their program.
    let program = house.beside("sign");
    let text = format!("#!/bin/sh\nexec env LC_ALL=C gpg --homedir '{home}' \"$@\"\n");
    std::fs::write(&program, text).unwrap();
    crate::git_repo::set_mode(&program, 0o755);
    git(&["config", "gpg.program", program.to_str().unwrap()]);
    git(&["config", "user.signingKey", "person@localhost"]);
    house.start();
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    git_in(&house.project(), &["verify-commit", "main"]);
    git_in(&house.project(), &["config", "user.signingKey", "nobody@localhost"]);
    let next = house.ask("in greet.sh replace \"good morning\" with \"good evening\"").await;
    house.becomes(&next, RequestStatus::Blocked).await;
    house.reads("general", "signing failed: No secret key").await;
    assert_eq!(house.on_branch("greet.sh"), EDITED, "nothing is committed unsigned");
    assert!(runs("gpgconf", &["--homedir", &home, "--kill", "gpg-agent"]));
    house.close().await;
}

#[tokio::test]
async fn a_large_file_of_git_lfs_is_changed_checked_and_lands_as_one() {
    if !runs("git-lfs", &["version"]) {
        return;
    }
    let check = json!("grep -qx two large.bin && echo 1 passed");
    let checks = format!("[{{name: large, command: [sh, -c, {check}]}}]");
    let mut house = House::built(Plan { checks, ..Plan::default() }).await;
    let project = house.project();
    let git = |words: &[&str]| git_in(&project, words);
    for (key, value) in [
        ("clean", "git-lfs clean -- %f"),
        ("smudge", "git-lfs smudge -- %f"),
        ("process", "git-lfs filter-process"),
        ("required", "true"),
    ] {
        git(&["config", &format!("filter.lfs.{key}"), value]);
    }
    commit(&house, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    commit(&house, "large.bin", "one\n");
    assert!(git(&["show", "main:large.bin"]).contains("git-lfs"));
    allow(&house, "lfs");
    house.start();
    let asked = house.ask("in large.bin replace \"one\" with \"two\"").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    let stored = git(&["show", "main:large.bin"]);
    assert!(stored.contains("git-lfs") && stored.contains("size 4"), "{stored}");
    assert_eq!(std::fs::read_to_string(project.join("large.bin")).unwrap(), "two\n");
    assert_eq!(git(&["status", "--porcelain"]), "");
    house.close().await;
}

/// git-crypt by what git knows of it: a filter that turns text both ways with a key, and fails without.
#[tokio::test]
async fn what_git_crypt_hides_is_edited_with_its_key_and_left_alone_without() {
    let check = json!("cat secret.txt && grep -q . greet.sh && echo 1 passed");
    let checks = format!("[{{name: secret, command: [sh, -c, {check}]}}]");
    let mut house = House::built(Plan { checks, ..Plan::default() }).await;
    let (project, key) = (house.project(), house.beside("key"));
    let git = |words: &[&str]| git_in(&project, words);
    std::fs::write(&key, "").unwrap();
    let turn = format!("test -e '{}' && tr a-zA-Z n-za-mN-ZA-M", key.display());
    for (name, value) in [("clean", turn.as_str()), ("smudge", &turn), ("required", "true")] {
        git(&["config", &format!("filter.git-crypt.{name}"), value]);
    }
    commit(&house, ".gitattributes", "secret.txt filter=git-crypt\n");
    commit(&house, "secret.txt", "password one\n");
    assert_eq!(git(&["show", "main:secret.txt"]), "cnffjbeq bar");
    allow(&house, "git-crypt");
    house.start();
    let asked = house.ask("in secret.txt replace \"one\" with \"two\"").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(git(&["show", "main:secret.txt"]), "cnffjbeq gjb");
    assert_eq!(std::fs::read_to_string(project.join("secret.txt")).unwrap(), "password two\n");
    // Locked, it stays as it is, and the rest goes on.
    house.quiet().await;
    std::fs::remove_file(&key).unwrap();
    let asked = house.ask(EDIT).await;
    let done = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(done.work.candidate.unwrap().paths.len(), 1);
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    assert_eq!(git(&["show", "main:secret.txt"]), "cnffjbeq gjb");
    assert_eq!(std::fs::read_to_string(project.join("secret.txt")).unwrap(), "password two\n");
    house.close().await;
}

#[tokio::test]
async fn a_file_behind_a_filter_that_may_not_run_is_never_called_edited_and_an_edit_of_it_is_refused()
 {
    let mut house = House::built(Plan::default()).await;
    let project = house.project();
    let git = |words: &[&str]| git_in(&project, words);
    git(&["config", "filter.swap.clean", "sed s/plain/stored/"]);
    git(&["config", "filter.swap.smudge", "sed s/stored/plain/"]);
    commit(&house, ".gitattributes", "*.pic filter=swap\n");
    commit(&house, "a.pic", "plain\n");
    house.start();
    let asked = house.ask(EDIT).await;
    let done = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(done.work.candidate.unwrap().paths.len(), 1);
    assert_eq!(git(&["status", "--porcelain"]), "");
    let asked = house.ask("in a.pic replace \"stored\" with \"other\"").await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await.blocked.unwrap();
    assert!(blocked.detail.contains("filters: [swap]"), "{}", blocked.detail);
    assert_eq!(git(&["show", "main:a.pic"]), "stored");
    house.close().await;
}

#[tokio::test]
async fn line_ends_stay_those_of_the_persons_settings_and_an_edit_of_the_same_size_and_time_is_seen()
 {
    let edits = "touch -r crlf.txt /tmp/kept && printf two | dd of=crlf.txt conv=notrunc status=none && \
                 touch -r /tmp/kept crlf.txt";
    let script = json!([
        {"role": "planner", "do": "propose", "proposals": {"allowed_paths": null}},
        {"role": "developer", "do": "run", "commands": [["sh", "-c", edits]]},
    ]);
    let check = json!("grep -q . greet.sh && echo 1 passed");
    let checks = format!("[{{name: there, command: [sh, -c, {check}]}}]");
    let script = Some(script.to_string());
    let mut house = House::built(Plan { checks, script, ..Plan::default() }).await;
    git_in(&house.project(), &["config", "core.autocrlf", "true"]);
    commit(&house, "crlf.txt", "one\r\nmore\r\n");
    assert_eq!(git_in(&house.project(), &["cat-file", "-s", "main:crlf.txt"]), "9");
    house.start();
    let asked = house.ask(EDIT).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(git_in(&house.project(), &["show", "main:crlf.txt"]), "two\nmore");
    let lies = std::fs::read_to_string(house.project().join("crlf.txt")).unwrap();
    assert_eq!(lies, "two\r\nmore\r\n");
    assert_eq!(git_in(&house.project(), &["status", "--porcelain"]), "");
    house.close().await;
}

/// What was built of cargo, make and Python at one commit is brought to the checks of another one, whose files were written
/// before that: builders that compare times would take it for theirs.
#[tokio::test]
async fn build_folders_of_the_base_turn_no_breaking_change_green() {
    let script = |text: &str| format!("[sh, -ec, {}]", json!(text));
    let made = [
        ("make", "make out/word"),
        ("cargo", "cargo build --offline --quiet --tests"),
        ("python", "python3 -m compileall -q lib"),
    ];
    let prepare = made.map(|(name, text)| {
        format!("{{name: {name}, command: {}, files: [Makefile], network: off}}", script(text))
    });
    let checks = [
        ("make", "make test"),
        ("cargo", "cargo test --offline"),
        ("python", "python3 -c 'from lib import word; assert word.WORD == \"hello\"'"),
    ];
    let checks = checks.map(|(name, text)| {
        format!("{{name: {name}, timeout_seconds: 300, command: {}}}", script(text))
    });
    let mut house =
        House::built(Plan { checks: format!("[{}]", checks.join(", ")), ..Plan::default() }).await;
    let lib = "pub fn word() -> &'static str { \"hello\" }\n\
               #[test]\nfn says() { assert!(word().starts_with('h')); }\n";
    for (path, text) in [
        (".gitignore", "/out/\n/target/\n__pycache__/\n"),
        (
            "Makefile",
            "test: out/word\n\tgrep -q hello out/word\nout/word: greet.sh\n\tmkdir -p out; cp greet.sh out/word\n",
        ),
        ("Cargo.toml", "[package]\nname = \"word\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"),
        (
            "Cargo.lock",
            "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 4\n\n[[package]]\nname = \"word\"\nversion = \"1.0.0\"\n",
        ),
        ("src/lib.rs", lib),
        ("lib/word.py", "WORD = \"hello\"\n"),
    ] {
        commit(&house, path, text);
    }
    let project = house.project();
    git_in(&project, &["checkout", "-q", "-b", "bad"]);
    for path in ["greet.sh", "src/lib.rs", "lib/word.py"] {
        let text = std::fs::read_to_string(project.join(path)).unwrap();
        commit(&house, path, &text.replace("hello", "nello"));
    }
    git_in(&project, &["checkout", "-q", "main"]);
    let bad = ["checks", "run", "--commit", "bad", "--json"];
    let (code, said, error) = house.teams(&bad).await;
    assert_eq!(code, 1, "{said}{error}");
    // Its tree is put back after the others are built.
    let trees = house.root().join(".teams_runtime/trees");
    let [old] = names(&trees).try_into().unwrap();
    std::fs::rename(trees.join(&old), house.beside("aside")).unwrap();
    let config = house.root().join("team_runtime.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}\nprepare: [{}]\n", prepare.join(", "))).unwrap();
    let (code, said, error) = house.teams(&["prepare"]).await;
    assert_eq!(code, 0, "{said}{error}");
    for kept in names(&trees) {
        std::fs::remove_dir_all(trees.join(kept)).unwrap();
    }
    std::fs::rename(house.beside("aside"), trees.join("ffffffff-old")).unwrap();
    let (code, said, error) = house.teams(&bad).await;
    assert_eq!(code, 1, "{said}{error}");
    let evidence: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(evidence["environments"].as_array().unwrap().len(), 3, "{said}");
    for at in 0..3 {
        assert_eq!(evidence["checks"][at]["verdict"], "failed", "{said}");
        assert!(evidence["environments"][at]["prepared_ms"].is_null(), "{said}");
    }
    let (code, said, error) = house.teams(&["checks", "run"]).await;
    assert_eq!(code, 0, "{said}{error}");
    house.start();
    house.close().await;
}
