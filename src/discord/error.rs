//! What a REST call can come to, sorted by what the caller can do about it.

use std::time::Duration;

/// Whom a rate limit meets (`spec/discord.md` 5, row "429").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitScope {
    /// This bot on this route.
    User,
    /// This bot everywhere.
    Global,
    /// Everybody on this resource; does not count as our mistake.
    Shared,
}

impl LimitScope {
    /// Reads `X-RateLimit-Scope`; an unknown word is taken as [`LimitScope::User`].
    #[must_use]
    pub fn read(text: &str) -> LimitScope {
        match text {
            "global" => LimitScope::Global,
            "shared" => LimitScope::Shared,
            _ => LimitScope::User,
        }
    }
}

/// Error codes of Discord that the team acts on.
pub mod code {
    /// Unknown channel.
    pub const UNKNOWN_CHANNEL: u32 = 10003;
    /// Unknown message.
    pub const UNKNOWN_MESSAGE: u32 = 10008;
    /// Unknown interaction: its three seconds are over.
    pub const UNKNOWN_INTERACTION: u32 = 10062;
    /// Unknown webhook.
    pub const UNKNOWN_WEBHOOK: u32 = 10015;
    /// The channel has all the webhooks it may have.
    pub const WEBHOOKS_FULL: u32 = 30007;
    /// The message is too old to be edited this often.
    pub const EDITS_LIMITED: u32 = 30046;
    /// Payload too large.
    pub const TOO_LARGE: u32 = 40005;
    /// No access.
    pub const NO_ACCESS: u32 = 50001;
    /// The message is another author's.
    pub const NOT_AUTHOR: u32 = 50005;
    /// A permission is missing.
    pub const NO_PERMISSION: u32 = 50013;
    /// The thread is archived.
    pub const ARCHIVED: u32 = 50083;
    /// The message has a thread already.
    pub const THREAD_EXISTS: u32 = 160_004;
}

/// Why a call gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestError {
    /// No answer: refused, cut off, timed out, name not found.
    #[error("discord cannot be reached: {0}")]
    Network(String),
    /// An answer of 500 and above.
    #[error("discord answered {status}")]
    Server {
        /// The HTTP status.
        status: u16,
    },
    /// Too many calls.
    #[error("discord asks to wait {} ms", retry_after.as_millis())]
    Limited {
        /// How long.
        retry_after: Duration,
        /// Whom it meets.
        scope: LimitScope,
    },
    /// So many refused calls that another one endangers the machine's address.
    #[error(
        "too many refused calls in ten minutes, waiting {} s before the next; see the log for the \
         first refusals",
        retry_after.as_secs()
    )]
    Breaker {
        /// Until the oldest of them no longer counts.
        retry_after: Duration,
    },
    /// The token does not count (any more).
    #[error("the token was refused; set a valid bot token and start again")]
    Unauthorized,
    /// The thing is not there.
    #[error("not found ({code}): {message}")]
    Gone {
        /// Discord's code.
        code: u32,
        /// Discord's words.
        message: String,
    },
    /// It will never work this way.
    #[error("refused ({status}, {code}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Discord's code.
        code: u32,
        /// Discord's words.
        message: String,
    },
    /// An answer that is not what the API promises.
    #[error("unreadable answer to {0}")]
    Unreadable(String),
}

impl RestError {
    /// Whether the same call may work later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Network(_)
            | Self::Server { .. }
            | Self::Limited { .. }
            | Self::Breaker { .. } => true,
            Self::Unauthorized | Self::Gone { .. } | Self::Refused { .. } | Self::Unreadable(_) => {
                false
            }
        }
    }

    /// How long Discord, or our own breaker, asks to wait.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Limited { retry_after, .. } | Self::Breaker { retry_after } => Some(*retry_after),
            Self::Network(_)
            | Self::Server { .. }
            | Self::Unauthorized
            | Self::Gone { .. }
            | Self::Refused { .. }
            | Self::Unreadable(_) => None,
        }
    }

    /// Discord's error code, where it gave one.
    #[must_use]
    pub const fn code(&self) -> Option<u32> {
        match self {
            Self::Gone { code, .. } | Self::Refused { code, .. } => Some(*code),
            Self::Network(_)
            | Self::Server { .. }
            | Self::Limited { .. }
            | Self::Breaker { .. }
            | Self::Unauthorized
            | Self::Unreadable(_) => None,
        }
    }
}
