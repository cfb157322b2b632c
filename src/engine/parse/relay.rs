//! The line that shows a hand-off where operators watch.

use crate::domain::ids::RequestId;

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
