//! What kind of failure an agent's words report. They are made for people and change, hence no answer
//! where nothing fits.

use std::sync::LazyLock;

use regex::Regex;

use crate::domain::run::FailKind;

/// First match wins.
static FAILURES: LazyLock<Vec<(FailKind, Regex)>> = LazyLock::new(|| {
    PATTERNS
        .iter()
        .filter_map(|(kind, pattern)| Regex::new(pattern).ok().map(|regex| (*kind, regex)))
        .collect()
});

const PATTERNS: [(FailKind, &str); 10] = [
    // What the team's own door says (`service::models`).
    (FailKind::Budget, "budget of this run is used up"),
    (
        FailKind::Quota,
        r"(?i)usage limit|quota|insufficient_quota|usage_limit_reached|billing|credit balance|limit reached",
    ),
    (
        FailKind::Auth,
        r"(?i)\b40[13]\b|unauthorized|not logged in|please run /login|missing environment variable|invalid (?:x-)?api.?key|authenticat",
    ),
    (
        FailKind::Context,
        r"(?i)context window|context_length_exceeded|prompt is too long|prompt_too_long",
    ),
    (FailKind::RateLimit, r"(?i)\b429\b|rate.?limit|too many requests"),
    (
        FailKind::Overloaded,
        r"(?i)at capacity|overloaded|high demand|\b5(?:00|02|03|29)\b|internal server error",
    ),
    (
        FailKind::Transport,
        r"(?i)stream disconnected|connection|network|error sending request|idle timeout|timed out",
    ),
    (FailKind::Refusal, r"(?i)refus|content.?policy|safety"),
    (FailKind::MaxTurns, r"(?i)max_output_tokens|incomplete response|maximum number of turns"),
    (
        FailKind::BadRequest,
        r"(?i)\b400\b|invalid_request|bad request|unexpected argument|error parsing|no rollout found|unknown option",
    ),
];

/// The kind of failure that a message reports.
pub(super) fn classify(message: &str) -> Option<FailKind> {
    FAILURES.iter().find(|(_, pattern)| pattern.is_match(message)).map(|(kind, _)| *kind)
}
