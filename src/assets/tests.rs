//! Tests of look-ups.

use super::*;
use crate::domain::role::Role;
use crate::platform::files;

#[test]
fn every_role_has_a_file_that_parses_and_a_charter() {
    for role in Role::ALL {
        let spec = Lookup::builtin().role(role).unwrap();
        assert!(spec.charter.len() > 100, "{role}");
        let edits = matches!(role, Role::Developer | Role::ConflictResolver);
        assert_eq!(spec.can(Capability::EditProject), edits, "{role}");
    }
}

#[test]
fn the_room_comes_first_then_the_workspace_then_the_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let room = root.join("qa");
    let builtin = Lookup::builtin().text(AssetKind::Role, "qa.yaml").unwrap();
    let lookup = Lookup::of_workspace(&root).in_room(Role::Qa);
    assert_eq!(lookup.text(AssetKind::Role, "qa.yaml").unwrap(), builtin);
    for (place, words) in [(&root, "of the workspace"), (&room, "of the room")] {
        files::create_dir_all(&place.join("roles")).unwrap();
        files::write(&place.join("roles/qa.yaml"), builtin.replace("You are QA.", words)).unwrap();
        assert!(lookup.role(Role::Qa).unwrap().charter.starts_with(words));
    }
    files::create_dir_all(&root.join("qa")).unwrap();
    files::write(&root.join("qa/AGENTS.md"), " \n").unwrap();
    assert!(lookup.role(Role::Qa).unwrap().charter.starts_with("of the room"));
    files::write(&root.join("qa/AGENTS.md"), "Mine.\n").unwrap();
    assert_eq!(lookup.role(Role::Qa).unwrap().charter, "Mine.\n");
}

#[test]
fn the_prompts_of_a_workspace_are_those_that_stand_for_a_built_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        files::create_dir_all(path.parent().unwrap()).unwrap();
        files::write(&path, text).unwrap();
    };
    put("prompts/charter.md", "for all");
    put("prompts/steps/developer_build.md", "build");
    put("prompts/steps/develop.md", "of no use");
    put("developer/prompts/charter.md", "for one");
    let workspace = Lookup::of_workspace(folder.path());
    let told = |lookup: &Lookup| {
        let all = lookup.overrides(AssetKind::Prompt).unwrap();
        (all.len(), all["charter.md"].clone())
    };
    assert_eq!(told(&workspace), (2, "for all".to_owned()));
    let developer = workspace.clone().in_room(Role::Developer);
    assert_eq!(told(&developer), (2, "for one".to_owned()));
    let stray = folder.path().join("prompts/steps/develop.md");
    assert_eq!(developer.strays(AssetKind::Prompt).unwrap(), [stray]);
    assert_eq!(Lookup::builtin().overrides(AssetKind::Prompt).unwrap().len(), 0);
}

#[test]
fn names_do_not_leave_their_folder() {
    let lookup = Lookup::builtin();
    for name in ["", "../Cargo.toml", "/etc/passwd", "a/../../b", "no.yaml"] {
        let found = lookup.text(AssetKind::Role, name);
        assert!(matches!(found, Err(AssetError::Unknown { .. })), "{name}");
    }
}

#[test]
fn a_template_does_not_render_with_a_name_missing() {
    let context = serde_json::json!({ "a": "<&>" });
    assert_eq!(render("t", "{{ a }}\n", &context).unwrap(), "<&>\n");
    let error = render("t", "{{ b }}", &context).unwrap_err().to_string();
    assert!(error.contains("template t"), "{error}");
}
