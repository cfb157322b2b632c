//! What an agent may do when it asks: the role's access decides, never a person in passing.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use serde_json::{Value, json};

use super::calls::Call;
use crate::agents::codec::text;
use crate::agents::sandbox::WriteAccess;
use crate::agents::tools;

/// What a role may do.
pub(super) struct Policy<'a> {
    pub(super) access: &'a WriteAccess,
    pub(super) worktree: &'a Path,
    pub(super) web: bool,
    /// Whether a sandbox, or the operator's word that this machine is one, stands behind it.
    pub(super) confined: bool,
}

impl Policy<'_> {
    /// Whether a tool call may go on, by all that is known of it.
    pub(super) fn allows(&self, call: &Call) -> bool {
        match call.kind.as_str() {
            "read" | "search" | "think" => true,
            // The tools of the team know themselves what the role may.
            "other" | "" if tools::is_ours(&call.title) => true,
            "execute" if call.served && tools::is_ours(&call.title) => true,
            "fetch" => self.web,
            "edit" | "delete" | "move" => self.may_write(&call.paths),
            // Commands, and whatever we do not know: only where something else sets the bounds.
            _ => self.confined,
        }
    }

    fn may_write(&self, paths: &BTreeSet<String>) -> bool {
        let folder = match self.access {
            WriteAccess::ReadOnly => return false,
            WriteAccess::Worktree => self.worktree,
            WriteAccess::Documents(folder) => folder,
        };
        let within = |path: &String| {
            let path = self.worktree.join(path);
            path.starts_with(folder) && !path.components().any(|part| part == Component::ParentDir)
        };
        paths.iter().all(within) && (self.confined || !paths.is_empty())
    }
}

/// The outcome for a request for permission, and whether it could be the one that was wanted. Nothing is
/// ever allowed for more than once.
pub(super) fn choose(params: &Value, allow: bool) -> (Value, bool) {
    let options = params.get("options").and_then(Value::as_array);
    let kind = if allow { "allow_once" } else { "reject_once" };
    let fits = |option: &&Value| text(option, "kind") == kind;
    let chosen =
        options.into_iter().flatten().filter(fits).find_map(|it| it.get("optionId")?.as_str());
    match chosen {
        Some(id) => (json!({"outcome": "selected", "optionId": id}), true),
        None => (cancelled(), !allow),
    }
}

/// The outcome for every request once the prompt was cancelled: the protocol has no other one then.
pub(super) fn cancelled() -> Value {
    json!({"outcome": "cancelled"})
}

#[cfg(test)]
mod tests {
    use super::super::calls::Calls;
    use super::*;

    fn allows(access: &WriteAccess, confined: bool, call: Value) -> bool {
        let worktree = Path::new("/tree");
        Policy { access, worktree, web: false, confined }.allows(Calls::default().learn(&call))
    }

    #[test]
    fn a_role_does_what_its_access_says() {
        let edit = |path: &str| json!({"kind": "edit", "locations": [{"path": path}]});
        let documents = WriteAccess::Documents("/docs".into());
        let table = [
            (&WriteAccess::ReadOnly, edit("/tree/a"), false),
            (&WriteAccess::Worktree, edit("/tree/a"), true),
            (&WriteAccess::Worktree, edit("a"), true),
            (&WriteAccess::Worktree, edit("/tree/../etc/passwd"), false),
            (&WriteAccess::Worktree, edit("/etc/passwd"), false),
            (&documents, edit("/docs/plan.md"), true),
            (&documents, edit("/tree/a"), false),
            (&WriteAccess::Worktree, json!({"kind": "edit"}), false),
            (&WriteAccess::Worktree, json!({"kind": "execute"}), false),
            (&WriteAccess::Worktree, json!({"kind": "new_kind"}), false),
            (&WriteAccess::ReadOnly, json!({"kind": "read"}), true),
            (&WriteAccess::ReadOnly, json!({"kind": "fetch"}), false),
            (
                &WriteAccess::ReadOnly,
                json!({"kind": "other", "title": "teams.submit_result"}),
                true,
            ),
            (
                &WriteAccess::ReadOnly,
                json!({"kind": "execute", "title": "teams.submit_result"}),
                false,
            ),
            (
                &WriteAccess::ReadOnly,
                json!({"kind": "other", "title": "teams.submit_result; rm x"}),
                false,
            ),
        ];
        for (access, call, wanted) in table {
            assert_eq!(allows(access, false, call.clone()), wanted, "{access:?} {call}");
        }
        assert!(allows(&WriteAccess::Worktree, true, json!({"kind": "execute"})));
        assert!(!allows(&WriteAccess::ReadOnly, true, edit("/tree/a")));
    }

    #[test]
    fn a_call_is_what_was_told_of_it_before() {
        let mut calls = Calls::default();
        let policy =
            |access| Policy { access, worktree: "/tree".as_ref(), web: false, confined: true };
        calls.learn(&json!({"toolCallId": "1", "kind": "edit", "title": "Editing files"}));
        let asked = json!({"toolCallId": "1", "locations": [{"path": "/tree/a"}]});
        assert!(!policy(&WriteAccess::ReadOnly).allows(calls.learn(&asked)));
        assert!(policy(&WriteAccess::Worktree).allows(calls.learn(&asked)));
        let more = json!({"toolCallId": "1", "locations": [{"path": "/etc/passwd"}]});
        assert!(!policy(&WriteAccess::Worktree).allows(calls.learn(&more)));
        assert!(
            !policy(&WriteAccess::Worktree).allows(calls.learn(&asked)),
            "it is still about both"
        );
    }

    #[test]
    fn a_tool_of_the_team_may_be_called_as_codex_calls_it_and_no_command_of_its_name() {
        let call =
            |title: &str, meta: Value| json!({"kind": "execute", "title": title, "_meta": meta});
        let ours = call("mcp.teams.submit_result", json!({"is_mcp_tool_call": true}));
        assert!(allows(&WriteAccess::ReadOnly, false, ours));
        for (title, meta) in [
            ("mcp.teams.submit_result", json!({})),
            ("mcp.teams.submit_result", json!({"is_mcp_tool_call": "true"})),
            ("mcp.teams.approve", json!({"is_mcp_tool_call": true})),
            ("mcp.other.status", json!({"is_mcp_tool_call": true})),
        ] {
            assert!(!allows(&WriteAccess::ReadOnly, false, call(title, meta)), "{title}");
        }
    }

    #[test]
    fn nothing_is_allowed_for_ever() {
        let params = json!({"options": [{"optionId": "a", "kind": "allow_always"},
            {"optionId": "o", "kind": "allow_once"}, {"optionId": "r", "kind": "reject_once"}]});
        assert_eq!(choose(&params, true).0["optionId"], "o");
        assert_eq!(choose(&params, false).0["optionId"], "r");
        let (outcome, chosen) = choose(&json!({"options": [{"kind": "allow_always"}]}), true);
        assert_eq!((outcome["outcome"].as_str(), chosen), (Some("cancelled"), false));
        let nameless = json!({"options": [{"kind": "allow_once"}]});
        assert_eq!(choose(&nameless, true), (cancelled(), false));
    }
}
