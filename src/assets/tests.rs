//! Tests of look-ups.

use super::*;
use crate::domain::role::Role;
use crate::platform::files;

#[test]
fn every_role_has_a_file_that_parses_and_a_charter() {
    for role in Role::ALL {
        let spec = Lookup::builtin().role(role).unwrap();
        assert!(spec.charter.len() > 100, "{role}");
        let writes = spec.sandbox == Sandbox::WorktreeWrite;
        assert_eq!(writes, spec.can(Capability::EditProject), "{role}");
        assert_eq!(writes, role == Role::Developer, "{role}");
    }
}

#[test]
fn the_room_comes_first_then_the_workspace_then_the_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let (root, room) = (folder.path().join("ws"), folder.path().join("room"));
    let builtin = Lookup::builtin().text(AssetKind::Role, "qa.yaml").unwrap();
    let lookup = Lookup::of_workspace(&root).in_room(&room);
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
