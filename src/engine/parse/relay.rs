//! Who a relay message is for, and what to do with it.

use crate::domain::ids::RequestId;
use crate::domain::role::Role;

/// What a role's service does with an envelope (`spec/teams.md` 5.5 and 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayAction {
    /// The orchestrator applies a report.
    Report,
    /// The orchestrator takes in what a person said to another role.
    Forward,
    /// The role works.
    Delegate,
    /// The orchestrator takes no such kind.
    IgnoreUnsupported,
    /// A role takes nothing but delegations.
    IgnoreMissingDelegate,
    /// The delegation is for somebody else.
    IgnoreTargetMismatch,
}

impl RelayAction {
    /// The code in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            RelayAction::Report => "report",
            RelayAction::Forward => "forward",
            RelayAction::Delegate => "delegate",
            RelayAction::IgnoreUnsupported => "ignore_unsupported",
            RelayAction::IgnoreMissingDelegate => "ignore_missing_delegate",
            RelayAction::IgnoreTargetMismatch => "ignore_target_mismatch",
        }
    }
}

/// What `current_role` does with an envelope of `kind` for `envelope_target`. Names as they stand in
/// the file, because a foreign file may name anybody.
#[must_use]
pub fn resolve_internal_relay_action(
    current_role: &str,
    kind: &str,
    envelope_target: &str,
) -> RelayAction {
    let current = current_role.trim();
    match (current == Role::Orchestrator.as_str(), kind.trim()) {
        (true, "report") => RelayAction::Report,
        (true, "forward") => RelayAction::Forward,
        (true, _) => RelayAction::IgnoreUnsupported,
        (false, "delegate") if envelope_target.trim() == current => RelayAction::Delegate,
        (false, "delegate") => RelayAction::IgnoreTargetMismatch,
        (false, _) => RelayAction::IgnoreMissingDelegate,
    }
}

/// How the older runtime begins the line of a hand-off.
const OLDER_HAND_OFF: &str = "내부 relay 요약:";

/// Whether a text is the line that a team writes of a hand-off where operators watch: one of the older
/// runtime, or of ours, `A → B · …` with a request's id (`spec/teams.md` 5.5, I10).
#[must_use]
pub fn is_hand_off(text: &str) -> bool {
    let line = text.trim_start().lines().next().unwrap_or_default();
    let ours = || {
        let (route, rest) = line.split_once(" · ")?;
        let id = rest.split('`').nth(1)?;
        let (day, _) = id.split_once('-')?;
        let is_id = day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit());
        (route.contains(" → ") && is_id && RequestId::parse(id).is_ok()).then_some(())
    };
    line.starts_with(OLDER_HAND_OFF) || ours().is_some()
}

/// The first role of `bots` (in its order) that a text mentions as `<@id>` or `<@!id>`.
#[must_use]
pub fn detect_target_role(content: &str, bots: &[(Role, String)]) -> Option<Role> {
    bots.iter()
        .find(|(_, id)| {
            !id.is_empty()
                && (content.contains(&format!("<@{id}>")) || content.contains(&format!("<@!{id}>")))
        })
        .map(|(role, _)| *role)
}

/// A text without the mentions of `bots`; everything else stays as it is (`spec/teams.md` 13.A
/// #12), except the blanks that stood around a mention at the start of a line.
#[must_use]
pub fn strip_mentions(content: &str, bots: &[(Role, String)]) -> String {
    let mut text = content.to_owned();
    for (_, id) in bots.iter().filter(|(_, id)| !id.is_empty()) {
        for mention in [format!("<@{id}>"), format!("<@!{id}>")] {
            while let Some(at) = text.find(&mention) {
                let (before, after) = text.split_at(at);
                let after = after.get(mention.len()..).unwrap_or_default();
                let starts_line =
                    before.rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
                let after = if starts_line { after.trim_start_matches([' ', '\t']) } else { after };
                text = format!("{before}{after}");
            }
        }
    }
    text
}
