//! What an agent may do when it asks: the role's access decides, never a person in passing.

use std::path::{Component, Path};

use serde_json::{Value, json};

use crate::agents::codec::text;
use crate::agents::run::Access;
use crate::agents::tools;

/// What a role may do.
pub(super) struct Policy<'a> {
    pub(super) access: &'a Access,
    pub(super) worktree: &'a Path,
    pub(super) web: bool,
    /// Whether a sandbox, or the operator's word that this machine is one, stands behind it.
    pub(super) confined: bool,
}

impl Policy<'_> {
    /// Whether a tool call may go on.
    pub(super) fn allows(&self, call: &Value) -> bool {
        match text(call, "kind").as_str() {
            "read" | "search" | "think" => true,
            // The tools of the team know themselves what the role may.
            "other" | "" if tools::is_ours(&text(call, "title")) => true,
            "fetch" => self.web,
            "edit" | "delete" | "move" => self.may_write(&paths(call)),
            // Commands, and whatever we do not know: only where something else sets the bounds.
            _ => self.confined,
        }
    }

    fn may_write(&self, paths: &[String]) -> bool {
        let folder = match self.access {
            Access::ReadOnly => return false,
            Access::Worktree => self.worktree,
            Access::Documents(folder) => folder,
        };
        let within = |path: &String| {
            let path = self.worktree.join(path);
            path.starts_with(folder) && !path.components().any(|part| part == Component::ParentDir)
        };
        paths.iter().all(within) && (self.confined || !paths.is_empty())
    }
}

/// The files that a tool call names.
fn paths(call: &Value) -> Vec<String> {
    let list = |key: &str| call.get(key).and_then(Value::as_array).into_iter().flatten();
    list("locations")
        .chain(list("content"))
        .map(|part| text(part, "path"))
        .filter(|path| !path.is_empty())
        .collect()
}

/// The outcome for a request for permission, and whether it could be the one that was wanted. Nothing is
/// ever allowed for more than once.
pub(super) fn choose(params: &Value, allow: bool) -> (Value, bool) {
    let options = params.get("options").and_then(Value::as_array);
    let kind = if allow { "allow_once" } else { "reject_once" };
    let option = options.into_iter().flatten().find(|option| text(option, "kind") == kind);
    match option {
        Some(option) => (json!({"outcome": "selected", "optionId": option.get("optionId")}), true),
        None => (json!({"outcome": "cancelled"}), !allow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(access: &Access, confined: bool, call: Value) -> bool {
        let worktree = Path::new("/tree");
        Policy { access, worktree, web: false, confined }.allows(&call)
    }

    #[test]
    fn a_role_does_what_its_access_says() {
        let edit = |path: &str| json!({"kind": "edit", "locations": [{"path": path}]});
        let documents = Access::Documents("/docs".into());
        let table = [
            (&Access::ReadOnly, edit("/tree/a"), false),
            (&Access::Worktree, edit("/tree/a"), true),
            (&Access::Worktree, edit("a"), true),
            (&Access::Worktree, edit("/tree/../etc/passwd"), false),
            (&Access::Worktree, edit("/etc/passwd"), false),
            (&documents, edit("/docs/plan.md"), true),
            (&documents, edit("/tree/a"), false),
            (&Access::Worktree, json!({"kind": "edit"}), false),
            (&Access::Worktree, json!({"kind": "execute"}), false),
            (&Access::Worktree, json!({"kind": "new_kind"}), false),
            (&Access::ReadOnly, json!({"kind": "read"}), true),
            (&Access::ReadOnly, json!({"kind": "fetch"}), false),
            (&Access::ReadOnly, json!({"kind": "other", "title": "teams.submit_result"}), true),
            (&Access::ReadOnly, json!({"kind": "execute", "title": "teams.submit_result"}), false),
            (
                &Access::ReadOnly,
                json!({"kind": "other", "title": "teams.submit_result; rm x"}),
                false,
            ),
        ];
        for (access, call, wanted) in table {
            assert_eq!(allows(access, false, call.clone()), wanted, "{access:?} {call}");
        }
        assert!(allows(&Access::Worktree, true, json!({"kind": "execute"})));
        assert!(!allows(&Access::ReadOnly, true, edit("/tree/a")));
    }

    #[test]
    fn nothing_is_allowed_for_ever() {
        let params = json!({"options": [{"optionId": "a", "kind": "allow_always"},
            {"optionId": "o", "kind": "allow_once"}, {"optionId": "r", "kind": "reject_once"}]});
        assert_eq!(choose(&params, true).0["optionId"], "o");
        assert_eq!(choose(&params, false).0["optionId"], "r");
        let (outcome, chosen) = choose(&json!({"options": [{"kind": "allow_always"}]}), true);
        assert_eq!((outcome["outcome"].as_str(), chosen), (Some("cancelled"), false));
    }
}
