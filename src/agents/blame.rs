//! What kind of failure an agent's words report. They are made for people and change, hence no answer
//! where nothing fits.

use std::sync::LazyLock;

use regex::Regex;

use crate::agents::codec::Event;
use crate::agents::until::until;
use crate::domain::run::FailKind;
use crate::domain::time::Timestamp;
use crate::platform::clock;

/// First match wins.
static FAILURES: LazyLock<Vec<(FailKind, Regex)>> = LazyLock::new(|| {
    PATTERNS
        .iter()
        .filter_map(|(kind, pattern)| Regex::new(pattern).ok().map(|regex| (*kind, regex)))
        .collect()
});

const PATTERNS: [(FailKind, &str); 11] = [
    // What the team's own proxy says (`model_proxy::answer`).
    (FailKind::Budget, "budget of this run is used up"),
    // Of a minute or a day of requests, also where the words name the plan or the bill besides.
    (
        FailKind::RateLimit,
        r"(?i)hit your (?:[\w-]+ )*rate.?limit|rate.?limit(?:s|_error|_exceeded| (?:was |is |has been )?(?:reached|exceeded|error))|(?:requests|tokens|quota[^.]*) ?per[ _-]?(?:second|minute|min|hour)|\((?:rpm|tpm)\)",
    ),
    (
        FailKind::Quota,
        r"(?i)usage limit|quota|insufficient_quota|usage_limit_reached|billing|credit balance|limit reached|hit your (?:[\w-]+ )*limit|out of (?:extra )?usage",
    ),
    (
        FailKind::Auth,
        r"(?i)\b40[13]\b|unauthorized|not logged in|please run /login|missing environment variable|invalid (?:x-)?api.?key|authenticat",
    ),
    // A full conversation and one that is gone are gone about the same way: with a new one.
    (
        FailKind::Context,
        r"(?i)context window|context_length_exceeded|prompt is too long|prompt_too_long|no rollout found|no conversation found",
    ),
    (FailKind::RateLimit, r"(?i)\b429\b|rate.?limit|too many requests"),
    (
        FailKind::Overloaded,
        r"(?i)at capacity|overloaded|high demand|\b5(?:0[0234]|2\d)\b|internal server error",
    ),
    (
        FailKind::Transport,
        r"(?i)stream disconnected|connection|network|error sending request|idle timeout|timed out",
    ),
    (FailKind::Refusal, r"(?i)refus|content.?policy|safety"),
    (FailKind::MaxTurns, r"(?i)max_output_tokens|incomplete response|maximum number of turns"),
    (
        FailKind::BadRequest,
        r"(?i)\b400\b|invalid_request|bad request|unexpected argument|error parsing|unknown option",
    ),
];

/// The kind of failure that a message reports.
pub(super) fn classify(message: &str) -> Option<FailKind> {
    FAILURES.iter().find(|(_, pattern)| pattern.is_match(message)).map(|(kind, _)| *kind)
}

/// Whether a model's server says that the plan or the credit is used up, rather than that it is asked too often.
#[must_use]
pub fn is_used_up(message: &str) -> bool {
    classify(message) == Some(FailKind::Quota)
}

/// What an event of an agent, heard at `now`, tells of a rate limit: `Some(Some(_))` that it met one, with the
/// instant until which it waits where that is told; `Some(None)` that its model answers; `None` nothing.
#[must_use]
pub fn rate_limit(event: &Event, now: Timestamp) -> Option<Option<Option<Timestamp>>> {
    match event {
        Event::Retry(reason) => (classify(reason) == Some(FailKind::RateLimit))
            .then(|| Some(until(reason, now, &clock::zone()))),
        Event::Text(_) | Event::Thought(_) | Event::ToolStart { .. } | Event::Done => Some(None),
        Event::Session(_)
        | Event::Call { .. }
        | Event::ToolEnd { .. }
        | Event::Files(_)
        | Event::LimitEnds(_)
        | Event::Warning(_)
        | Event::Context { .. }
        | Event::Usage(_)
        | Event::Used(_)
        | Event::Agent(_)
        | Event::Heard(_)
        | Event::UsageTotal(_)
        | Event::Failed { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_is_no_plan_that_is_used_up() {
        use FailKind::{Context, Quota, RateLimit};
        for (message, kind) in [
            (
                "Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, Used \
                 29000. Please try again in 6s. You can increase your limit at https://platform.openai.com/account/billing.",
                RateLimit,
            ),
            (
                "429 rate_limit_error: This request would exceed your account's rate limit",
                RateLimit,
            ),
            ("Quota exceeded for quota metric 'Generate requests per minute'", RateLimit),
            ("exceeded retry limit, last status: 429 Too Many Requests", RateLimit),
            ("429 rate_limit", RateLimit),
            ("You've hit your usage limit. Upgrade to Pro, or try again at 3:05 PM.", Quota),
            ("5-hour limit reached ∙ resets 11pm", Quota),
            ("You've hit your session limit · resets 8:30am (Asia/Seoul)", Quota),
            ("You've hit your limit · resets Oct 3", Quota),
            ("You've hit your rate limit, try again in 20s", RateLimit),
            ("You're out of extra usage · resets 3am", Quota),
            ("no rollout found for thread id 0199", Context),
            ("You exceeded your current quota, please check your plan and billing details.", Quota),
            ("{\"error\":{\"type\":\"usage_limit_reached\",\"plan_type\":\"plus\"}}", Quota),
            ("Your credit balance is too low", Quota),
        ] {
            assert_eq!(classify(message), Some(kind), "{message}");
        }
    }
}
