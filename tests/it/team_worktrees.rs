//! What a team holds of a repository while it works, waits and when it has ended.

use serde_json::json;
use teams::domain::request::RequestStatus;

use crate::git_repo::git_in;
use crate::support::house::{EDIT, EDITED, House, Plan, words};

const EDIT_AGAIN: &str = "in greet.sh replace \"good morning\" with \"good night\"";

fn names(folder: &std::path::Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_blocked_request_gives_its_worktree_back_and_goes_on_with_what_it_held() {
    // The developer's work fails QA for good: there is a worktree with a commit when the request blocks.
    let script = "- {role: qa, times: 1, do: block}\n";
    let mut house = House::open(Plan::script(script)).await;
    let asked = house.ask(EDIT).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    house.logs("its worktree was put away", 1).await;
    let runtime = house.root().join(".teams_runtime");
    assert_eq!(names(&runtime.join("worktrees")), Vec::<String>::new());
    assert!(names(&runtime.join("trees")).len() <= 3);
    let project = house.project();
    let kept = git_in(&project, &["for-each-ref", "--format=%(refname)", "refs/teams/kept"]);
    assert!(kept.ends_with(blocked.request_id.as_str()), "{kept}");
    assert_eq!(git_in(&project, &["worktree", "list"]).lines().count(), 1);
    // Also after another start.
    house.stop().await;
    house.start();
    house.say(&asked, "go on, it is fine").await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    assert_eq!(git_in(&project, &["for-each-ref", "refs/teams"]), "");
    assert_eq!(names(&runtime.join("worktrees")), Vec::<String>::new());
    house.close().await;
}

#[tokio::test]
async fn another_branch_in_the_checkout_changes_nothing_and_is_told_once() {
    let house = House::open(Plan::default()).await;
    let project = house.project();
    git_in(&project, &["checkout", "-q", "-b", "persons-own"]);
    let before = std::fs::read_to_string(project.join("greet.sh")).unwrap();
    let mut told = Vec::new();
    for edit in [EDIT, EDIT_AGAIN] {
        let asked = house.ask(edit).await;
        house.becomes(&asked, RequestStatus::Committed).await;
        house.quiet().await;
        let general = house.messages("general").await;
        let answers = general.iter().filter(|it| it["message_reference"]["message_id"] == asked);
        told.push(answers.filter(|it| words(it).contains("persons-own")).count());
    }
    assert_eq!(told, [1, 0]);
    assert_eq!(house.commits().len(), 2);
    assert_eq!(std::fs::read_to_string(project.join("greet.sh")).unwrap(), before);
    assert_eq!(git_in(&project, &["status", "--porcelain"]), "");
    house.close().await;
}

#[tokio::test]
async fn commits_carry_the_configured_trailers_and_settings_say_that_hooks_are_not_run() {
    let house = House::open(Plan {
        more: "commits: {trailers: {Reviewed-by: Nobody <n@example.org>}}\n".to_owned(),
        ..Plan::default()
    })
    .await;
    let hook = house.project().join(".git/hooks/post-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\ntouch ran\n").unwrap();
    crate::git_repo::set_mode(&hook, 0o755);
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    let message = git_in(&house.project(), &["log", "-1", "--format=%B", "main"]);
    let end = format!("Reviewed-by: Nobody <n@example.org>\nRequest: {}", request.request_id);
    assert!(message.ends_with(&end), "{message}");
    assert!(!message.contains("ook"), "{message}");
    assert!(!house.project().join("ran").exists());
    let (_, settings, _) = house.teams(&["settings"]).await;
    assert!(settings.contains("Hooks of the project are not run"), "{settings}");
    house.close().await;
}

#[tokio::test]
async fn a_change_in_a_submodule_is_put_back_and_the_developer_is_told_why() {
    let (library, _) = crate::git_repo::Repo::with_submodules();
    let edits = json!({"role": "developer", "contains": "greet.sh", "times": 1, "do": "run", "commands": [
        ["bash", "-c", "cat vendor/lib/vendor/lib/lib.c && echo mine > vendor/lib/vendor/lib/lib.c"]
    ]});
    let mut house = House::built(Plan::script(&json!([edits]).to_string())).await;
    let from = library.path.to_str().unwrap();
    let fetch = ["-c", "protocol.file.allow=always", "submodule", "-q"];
    git_in(&house.project(), &[&fetch[..], &["add", from, "vendor/lib"]].concat());
    git_in(&house.project(), &[&fetch[..], &["update", "--init", "--recursive"]].concat());
    git_in(&house.project(), &["commit", "-qm", "A library"]);
    house.start();
    let asked = house.ask(EDIT).await;
    let done = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&done, "attempt_failed"), 1);
    let room = house.transcript().await;
    let why = "vendor/lib/vendor/lib/lib.c lies in the submodule vendor/lib/vendor/lib";
    assert!(room.contains(why), "{room}");
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

/// Repositories as people have them, through the whole team: a filter, line ends, a sparse checkout, odd names and a
/// link, and a branch that is checked out in a worktree of a person's own.
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
    let config = house.root().join("team_runtime.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains("project: {"), "{text}");
    std::fs::write(&config, text.replace("project: {", "project: {filters: [swap], ")).unwrap();
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
                bytes += entry.metadata().unwrap().len();
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

/// More of them: a partial clone in which a person has a worktree and a key to sign with, and a file that gets another
/// name by case alone and another mode.
#[tokio::test]
async fn a_partial_clone_with_a_worktree_of_its_person_gets_a_signed_commit() {
    let renames = json!([
        {"role": "planner", "do": "propose", "proposals": {"allowed_paths": null}},
        {"role": "developer", "contains": "greet.sh", "times": 1, "do": "run", "commands": [
            ["bash", "-c", "mv notes.md Notes.md && chmod +x notes.sh"]
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
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return crate::support::skipped("there is no ssh-keygen");
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
    assert_eq!(git_in(&own, &["status", "--porcelain"]), "?? draft.txt");
    house.close().await;
}
