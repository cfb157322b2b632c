//! How a connection ends, and what that asks for (`spec/discord.md` 5). Pure.

use std::time::Duration;

use crate::platform::ids;

const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Connect again; the reason is for people.
    Again(String),
    /// The address did not answer: another one may.
    Unreached(String),
    /// Connect again without the session.
    Anew(String),
    /// The message-content intent is not granted.
    WithoutContent,
    /// Never again.
    Never(String),
    /// Nobody listens any more.
    Unheard,
    /// The listener is too slow: go on behind the last event that it took.
    Overflow,
}

/// What a close code asks for.
pub(super) fn after_close(code: u16, reason: &str) -> End {
    match code {
        4004 => End::Never(
            "the bot token is not valid (4004); put a current one into its variable and start again"
                .to_owned(),
        ),
        4010 | 4011 => End::Never(format!(
            "discord wants the bot to be sharded ({code}); teams serves one server, use a bot of its own"
        )),
        4012 => End::Never("discord no longer speaks gateway version 10 (4012); update teams".to_owned()),
        4013 => End::Never("discord does not know the requested intents (4013); update teams".to_owned()),
        4014 => End::WithoutContent,
        4003 | 4007 | 4009 => End::Anew(format!("the session ended ({code})")),
        _ => End::Again(format!("closed by discord ({code}) {reason}").trim_end().to_owned()),
    }
}

/// The wait before attempt number `failures` + 1; the first is immediate.
pub(super) fn wait_before(failures: u32) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let seconds = 1u64 << (failures - 1).min(6);
    // Up to a quarter more, so that several bots do not knock together.
    let jitter = u64::from_str_radix(&ids::random_hex(2), 16).unwrap_or(0);
    Duration::from_millis(seconds * 1_000 + seconds * jitter).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_codes_end_as_documented() {
        for code in [4004, 4010, 4011, 4012, 4013] {
            assert!(
                matches!(after_close(code, ""), End::Never(reason) if reason.contains(&code.to_string()))
            );
        }
        for code in [4003, 4007, 4009] {
            assert!(matches!(after_close(code, ""), End::Anew(_)), "{code}");
        }
        for code in [1000, 1001, 1006, 4000, 4001, 4002, 4005, 4008, 4999] {
            assert!(matches!(after_close(code, ""), End::Again(_)), "{code}");
        }
        assert_eq!(after_close(4014, ""), End::WithoutContent);
    }

    #[test]
    fn waits_grow_and_stay_bounded() {
        assert_eq!(wait_before(0), Duration::ZERO);
        for failures in 1..100 {
            let wait = wait_before(failures);
            assert!(wait >= Duration::from_secs(1) && wait <= LONGEST_WAIT);
        }
        assert!(wait_before(4) >= Duration::from_secs(8));
    }
}
