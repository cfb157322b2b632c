//! Tests of writing a workspace; the rows are those of `spec/teams.md` 14.1.

use std::path::Path;

use super::*;
use crate::platform::files;

fn run(root: &Path, mode: Mode) -> Result<Report, InitError> {
    init(root, &Options { mode, ..Options::default() })
}

fn text(root: &Path, name: &str) -> String {
    files::read_text(&root.join(name)).unwrap()
}

fn count(folder: &Path) -> usize {
    files::list(folder)
        .unwrap()
        .iter()
        .map(|path| if path.is_dir() { count(path) } else { 1 })
        .sum()
}

#[test]
fn into_an_empty_folder_c06() {
    let folder = tempfile::tempdir().unwrap();
    let report = run(folder.path(), Mode::Auto).unwrap();
    assert_eq!((report.refreshed, report.written), (false, 107));
    // Beyond the scaffold: the record of what was written, and when the workspace was made.
    assert_eq!(count(folder.path()), 109);
    assert!(!files::exists(&folder.path().join("docs")));
    let report = run(folder.path(), Mode::Auto).unwrap();
    assert_eq!((report.refreshed, report.written), (true, 0));
}

#[test]
fn a_refresh_keeps_an_edit_and_puts_the_newer_text_beside_it_c07() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    run(root, Mode::Auto).unwrap();
    let builtin = text(root, "planner/AGENTS.md");
    files::write(&root.join("planner/AGENTS.md"), "Mine.\n").unwrap();
    files::write(&root.join("team_runtime.yaml"), "sprint: {id: mine}\n").unwrap();
    files::write(&root.join("planner/history.md"), "ours\n").unwrap();
    files::remove_file(&root.join("qa/AGENTS.md")).unwrap();
    // As an older version would have written it, unedited since.
    files::write(&root.join("designer/AGENTS.md"), "old\n").unwrap();
    let mut record = Written::read(root).unwrap();
    record.note(Path::new("designer/AGENTS.md"), "old\n");
    record.save(root).unwrap();

    let report = run(root, Mode::Refresh).unwrap();
    assert_eq!(report.written, 2);
    assert_eq!(report.beside.len(), 1);
    assert_eq!(text(root, "planner/AGENTS.md"), "Mine.\n");
    assert_eq!(text(root, "planner/AGENTS.md.new"), builtin);
    assert!(text(root, "designer/AGENTS.md").starts_with("You are the designer"));
    assert_eq!(text(root, "team_runtime.yaml"), "sprint: {id: mine}\n");
    assert_eq!(text(root, "planner/history.md"), "ours\n");
}

#[test]
fn a_workspace_of_the_older_runtime_keeps_every_text() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    run(root, Mode::Auto).unwrap();
    files::remove_dir_all(&root.join(".teams_runtime")).unwrap();
    files::write(&root.join("qa/AGENTS.md"), "as it was\n").unwrap();
    run(root, Mode::Auto).unwrap();
    assert_eq!(text(root, "qa/AGENTS.md"), "as it was\n");
}

#[test]
fn a_reset_keeps_history_discord_and_policy_c08() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    run(root, Mode::Auto).unwrap();
    let history = root.join("shared_workspace/sprint_history");
    files::write(
        &history.join("old.md"),
        "# Sprint History\n\n- sprint_id: old\n- status: completed\n### a\n### b\n",
    )
    .unwrap();
    files::write(&history.join("index.md"), "| older | completed | 2025-01-01 | x | 4 | abc |\n")
        .unwrap();
    files::create_dir_all(&root.join(".teams_runtime/requests")).unwrap();
    files::write(&root.join(".teams_runtime/requests/r.json"), "{}").unwrap();
    files::write(&root.join("discord_agents_config.yaml"), "token_env: T\n").unwrap();
    files::write(&root.join("COMMIT_POLICY.md"), "ours\n").unwrap();
    let runtime = "sprint: {id: mine}\nproject: {path: /srv/mine, branch: trunk}\n";
    files::write(&root.join("team_runtime.yaml"), runtime).unwrap();
    let report = run(root, Mode::Reset).unwrap();
    assert!(!report.refreshed);
    assert!(!files::exists(&root.join(".teams_runtime/requests")));
    assert!(text(root, "shared_workspace/sprint_history/old.md").contains("### a"));
    let index = text(root, "shared_workspace/sprint_history/index.md");
    assert!(index.contains("| old | completed | N/A |  |  | 2 |  |"), "{index}");
    assert!(index.contains("| older | completed | N/A | 2025-01-01 | x | 4 | abc |"), "{index}");
    assert_eq!(text(root, "discord_agents_config.yaml"), "token_env: T\n");
    assert_eq!(text(root, "COMMIT_POLICY.md"), "ours\n");
    let settings = super::super::read_runtime(root).unwrap();
    assert!(text(root, "team_runtime.yaml").contains("id: main"));
    assert_eq!(settings.project.path.as_deref(), Some(Path::new("/srv/mine")));
    assert_eq!(settings.project.branch.map(|it| it.to_string()).as_deref(), Some("trunk"));
    let kept = report.backup.unwrap();
    assert_eq!(files::read_text(&kept.join("team_runtime.yaml")).unwrap(), runtime);
    assert_eq!(files::read_text(&kept.join(".teams_runtime/requests/r.json")).unwrap(), "{}");
    // As if it had been cut off before its end: nothing but another reset goes on, and into the same folder.
    files::write(&root.join(".reset"), kept.file_name().unwrap().as_encoded_bytes()).unwrap();
    files::write(&root.join("shared_workspace/new.md"), "new\n").unwrap();
    let half = |error: &ConfigError| matches!(error, ConfigError::HalfReset { .. });
    assert!(matches!(run(root, Mode::Auto), Err(InitError::Config(error)) if half(&error)));
    assert!(super::super::must_exist(root).is_err_and(|error| half(&error)));
    let again = run(root, Mode::Reset).unwrap();
    assert_eq!(again.backup.as_deref(), Some(kept.as_path()));
    assert_eq!(files::read_text(&kept.join("team_runtime.yaml")).unwrap(), runtime);
    assert!(text(root, "shared_workspace/sprint_history/old.md").contains("### a"));
    super::super::must_exist(root).unwrap();
}

#[test]
fn a_folder_that_is_not_ours_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    files::write(&root.join("README.md"), "somebody's\n").unwrap();
    assert!(matches!(run(root, Mode::Auto), Err(InitError::Conflict(_))));
    for mode in [Mode::Refresh, Mode::Reset] {
        assert!(matches!(run(root, mode), Err(InitError::NotAWorkspace(_))));
    }
    assert_eq!(count(root), 1);
}

#[test]
fn a_run_that_was_cut_off_anywhere_is_finished_by_the_next() {
    let whole = tempfile::tempdir().unwrap();
    run(whole.path(), Mode::Auto).unwrap();
    let plan = plan(&Options::default()).unwrap();
    for cut in [0, 1, 50, plan.len() - 2, plan.len() - 1] {
        let folder = tempfile::tempdir().unwrap();
        for file in &plan[..cut] {
            write(folder.path(), file).unwrap();
        }
        run(folder.path(), Mode::Auto).unwrap();
        assert_eq!(count(folder.path()), count(whole.path()), "{cut}");
    }
}

#[test]
fn a_workspace_inside_a_project_is_hidden_from_git() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("teams_generated");
    run(&inside, Mode::Auto).unwrap();
    assert_eq!(text(&inside, ".gitignore"), "*\n");
}

#[test]
fn the_demos_templates_make_files_that_load() {
    use crate::assets::{render, scaffold_text};
    let values = serde_json::json!({
        "project": "\"/d/project\"", "owner": "\"1\"", "agent": "rehearsal", "model_url": "null", "command": "[]",
        "script": "null", "slots": null, "command": "[]", "language": "ko", "guild_id": "\"2\"", "relay_channel_id": "\"3\"",
        "startup_channel_id": "\"3\"", "report_channel_id": "\"3\"", "base_url": "\"http://127.0.0.1:1\"",
        "gateway_url": "\"ws://127.0.0.1:1\"",
    });
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str| Some(render(name, &scaffold_text(name).unwrap(), &values).unwrap());
    let options = Options {
        runtime_yaml: made("demo/team_runtime.yaml"),
        discord_yaml: made("demo/discord_agents_config.yaml"),
        ..Options::default()
    };
    init(folder.path(), &options).unwrap();
    let workspace = crate::workspace::load(folder.path()).unwrap();
    assert_eq!(workspace.runtime.checks.len(), 1);
    assert_eq!(workspace.project_root(), Path::new("/d/project"));
}

#[test]
fn a_reset_keeps_the_project_and_the_mode_of_settings_that_cannot_be_read_whole() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    run(root, Mode::Auto).unwrap();
    let runtime = root.join(RUNTIME_FILE);
    files::write(&runtime, "project: {path: /somewhere, branch: dev}\nno_such_key: 1\n").unwrap();
    files::set_mode(&runtime, 0o600).unwrap();
    run(root, Mode::Reset).unwrap();
    let read = super::super::open::read_runtime(root).unwrap();
    assert_eq!(read.project.path.as_deref(), Some(Path::new("/somewhere")));
    assert_eq!(read.project.branch.map(|it| it.to_string()).as_deref(), Some("dev"));
    assert_eq!(files::metadata(&runtime).unwrap().permissions().mode() & 0o777, 0o600);
    // Of which nothing can be read is not reset to another project.
    files::write(&runtime, "project: [\n").unwrap();
    let refused = run(root, Mode::Reset).unwrap_err();
    assert!(matches!(refused, InitError::UnknownProject(_)), "{refused}");
    assert!(!files::exists(&root.join(RESET_FILE)));
}

#[test]
fn a_reset_takes_the_lifecycles_along_and_goes_on_in_a_folder_of_its_own_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    run(root, Mode::Auto).unwrap();
    files::create_dir_all(&root.join("lifecycles")).unwrap();
    files::write(&root.join("lifecycles/request.yaml"), "mine\n").unwrap();
    for mark in ["", "."] {
        files::write(&root.join(RESET_FILE), mark).unwrap();
        files::write(&root.join(RUNTIME_FILE), "language: ko\n").unwrap();
        let backup = run(root, Mode::Reset).unwrap().backup.unwrap();
        assert_ne!(backup, root);
        assert_eq!(files::read_text(&backup.join(RUNTIME_FILE)).unwrap(), "language: ko\n");
        assert!(!files::exists(&root.join("lifecycles")));
    }
    assert_eq!(
        super::super::load(root).map(|it| it.lifecycle.steps().count() > 3).ok(),
        Some(true)
    );
}

#[test]
fn what_lies_on_another_disk_is_seen_before_a_reset_moves_anything() {
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    if files::disk_of(other.path()).unwrap() == files::disk_of(root).unwrap() {
        return;
    }
    run(root, Mode::Auto).unwrap();
    let state = root.join(STATE);
    files::remove_dir_all(&state).unwrap();
    files::write(&other.path().join("journal"), "what it knows").unwrap();
    files::symlink(other.path(), &state).unwrap();
    let refused = run(root, Mode::Reset).unwrap_err();
    assert!(matches!(refused, InitError::OtherDisk(_)), "{refused}");
    assert!(!files::exists(&root.join(RESET_FILE)) && files::exists(&root.join("README.md")));
}
