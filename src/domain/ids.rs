//! Typed identifiers. What does not parse here never reaches a path, a query or a message.

use serde::{Deserialize, Serialize};

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing was given.
    #[error("an id cannot be empty")]
    Empty,
    /// More than [`MAX_ID_LEN`] bytes.
    #[error("an id has at most {MAX_ID_LEN} characters")]
    TooLong,
    /// A character that could mean something to a path or a shell.
    #[error(
        "an id has only letters, digits and `-_.:`, and does not begin with a dot (found {0:?})"
    )]
    Character(char),
    /// Not a decimal number of Discord's kind.
    #[error("a Discord id is a whole number of up to 20 digits, such as 1034567890123456789")]
    Snowflake,
}

/// The longest textual identifier, in bytes.
pub const MAX_ID_LEN: usize = 100;

fn check(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > MAX_ID_LEN {
        return Err(IdError::TooLong);
    }
    if let Some(bad) =
        text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':')))
    {
        return Err(IdError::Character(bad));
    }
    if text.starts_with('.') || text.contains("..") {
        return Err(IdError::Character('.'));
    }
    Ok(())
}

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks a text from outside.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                check(text)?;
                Ok(Self(text.to_owned()))
            }

            /// The identifier as it stands in files and messages.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                check(&text)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

text_id! {
    /// One thing a person or a sprint asked for: `YYYYMMDD-<8 hex>` by the date in the workspace's zone.
    RequestId;
    /// One relay message: a uuid v7, so that names sort by arrival.
    EnvelopeId;
    /// One attempt of one role on one step.
    RunId;
    /// One start of a worker: a uuid v7, so that of two starts the later one is greater.
    BootId;
    /// One call of a run to the hub.
    CallId;
    /// One decision that a person is asked for.
    GateId;
    /// One thing to do in Discord.
    OutgoingId;
    /// One change to the world outside: commit, checks, merge, action.
    EffectId;
    /// One execution of a registered action.
    OperationId;
    /// `YYMMDD-Sprint-HH:MM`.
    SprintId;
    /// `backlog-YYYYMMDD-<8 hex>`.
    ItemId;
    /// `todo-HHMMSS-<6 hex>`.
    TodoId;
    /// A plan: the name of its file without the ending.
    PlanId;
    /// What the author of a plan calls an item: `US-001`.
    PlanItemId;
    /// What the author of a plan calls a requirement: `R-1`.
    RequirementId;
    /// The id of a request, an item, a todo, a sprint or a gate, whichever it is.
    SubjectId;
}

impl From<RequestId> for SubjectId {
    fn from(id: RequestId) -> Self {
        Self(id.0)
    }
}

impl RequestId {
    /// Whether it has the form of the ids that are made for requests: `YYYYMMDD-<8 hex>`.
    #[must_use]
    pub fn looks_made(&self) -> bool {
        self.0.split_once('-').is_some_and(|(date, tail)| {
            date.len() == 8
                && date.bytes().all(|byte| byte.is_ascii_digit())
                && tail.len() == 8
                && tail.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }

    /// The value of a record that was read without its id; never written.
    pub(crate) fn unset() -> Self {
        Self("unset".to_owned())
    }
}

impl SprintId {
    /// The `nth` sprint that begins within the minute of `at` in the zone of the workspace, counted from 1
    /// (`spec/teams.md` 4.1): from the second on it has a suffix, so that no two share an id.
    #[must_use]
    pub fn at(at: crate::domain::time::Timestamp, zone: chrono_tz::Tz, nth: u32) -> Self {
        let minute = at.format_in(zone, "%y%m%d-Sprint-%H:%M");
        Self(if nth > 1 { format!("{minute}-{nth}") } else { minute })
    }
}

/// The first millisecond that Discord's ids count from.
const SNOWFLAKE_EPOCH_MS: i64 = 1_420_070_400_000;

macro_rules! snowflake {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "SnowflakeText", into = "String")]
        pub struct $name(pub u64);

        impl TryFrom<SnowflakeText> for $name {
            type Error = IdError;
            fn try_from(text: SnowflakeText) -> Result<Self, IdError> {
                match text {
                    SnowflakeText::Number(number) => Ok(Self(number)),
                    SnowflakeText::Text(text) => text.parse(),
                }
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.to_string()
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(IdError::Snowflake);
                }
                text.parse().map(Self).map_err(|_| IdError::Snowflake)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

/// A snowflake as configuration files write it: quoted or bare.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum SnowflakeText {
    /// `1034567890123456789`
    Number(u64),
    /// `"1034567890123456789"`
    Text(String),
}

snowflake! {
    /// A channel or thread.
    ChannelId;
    /// A person or bot.
    UserId;
    /// A message; grows with time within and across channels.
    MessageId;
    /// A server.
    GuildId;
    /// A slash command, a press of a button or a form; grows with time.
    InteractionId;
    /// A role of the server, as opposed to a role of the team.
    ServerRoleId;
}

impl MessageId {
    /// The smallest id of a message written at `at`: Discord counts milliseconds since 2015 above the
    /// lowest 22 bits.
    #[must_use]
    pub fn at(at: crate::domain::time::Timestamp) -> MessageId {
        MessageId(u64::try_from(at.millis() - SNOWFLAKE_EPOCH_MS).unwrap_or(0) << 22)
    }

    /// When the message was written, by Discord's clock.
    #[must_use]
    pub fn written_at(self) -> crate::domain::time::Timestamp {
        let since = i64::try_from(self.0 >> 22).unwrap_or(0);
        crate::domain::time::Timestamp::from_millis(since + SNOWFLAKE_EPOCH_MS)
    }
}

impl EnvelopeId {
    /// When it was made, which a uuid v7 says.
    #[must_use]
    pub fn written_at(&self) -> Option<crate::domain::time::Timestamp> {
        let (seconds, nanos) = uuid::Uuid::parse_str(&self.0).ok()?.get_timestamp()?.to_unix();
        let millis = i64::try_from(seconds).ok()?.checked_mul(1_000)?;
        Some(crate::domain::time::Timestamp::from_millis(millis + i64::from(nanos / 1_000_000)))
    }
}

/// Fresh identifiers for one decision, derived from one random seed, so that a decision can be
/// repeated exactly.
#[derive(Debug, Clone)]
pub struct IdSupply {
    next: u128,
}

impl IdSupply {
    /// A supply seeded with one uuid v7: its ids sort after those of earlier seeds.
    #[must_use]
    pub fn new(seed: uuid::Uuid) -> Self {
        Self { next: seed.as_u128() }
    }

    fn uuid(&mut self) -> uuid::Uuid {
        let uuid = uuid::Uuid::from_u128(self.next);
        self.next = self.next.wrapping_add(1);
        uuid
    }

    fn hex8(&mut self) -> String {
        use sha1::{Digest, Sha1};
        let digest = Sha1::digest(self.uuid().as_bytes());
        digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// A new request id; `date` is the one in the workspace's zone, as `YYYYMMDD`.
    pub fn request(&mut self, date: &str) -> RequestId {
        RequestId(format!("{date}-{}", self.hex8()))
    }

    /// A new operation id (`spec/teams.md` 4.1).
    pub fn operation(&mut self, request: &RequestId, action: &str) -> OperationId {
        let safe: String =
            action.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect();
        OperationId(format!("{request}-{safe}-{}", &self.hex8()[..6]))
    }

    /// A new backlog id; `date` is the one in the workspace's zone, as `YYYYMMDD`.
    pub fn backlog(&mut self, date: &str) -> ItemId {
        ItemId(format!("backlog-{date}-{}", self.hex8()))
    }

    /// A new todo id; `time` is the one in the workspace's zone, as `HHMMSS`.
    pub fn todo(&mut self, time: &str) -> TodoId {
        TodoId(format!("todo-{time}-{}", &self.hex8()[..6]))
    }

    /// A new envelope id.
    pub fn envelope(&mut self) -> EnvelopeId {
        EnvelopeId(self.uuid().to_string())
    }

    /// A new gate id.
    pub fn gate(&mut self) -> GateId {
        GateId(self.uuid().to_string())
    }

    /// A new outgoing id.
    pub fn outgoing(&mut self) -> OutgoingId {
        OutgoingId(self.uuid().to_string())
    }

    /// A new effect id.
    pub fn effect(&mut self) -> EffectId {
        EffectId(self.uuid().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_leave_their_folder_do_not_parse() {
        for bad in ["", "..", "a/b", "../evil", ".hidden", "a..b", "a\nb", "a b", "é", "a\0"] {
            assert!(RequestId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(SprintId::parse("260324-Sprint-09:00").is_ok());
        assert!(RequestId::parse(&"x".repeat(101)).is_err());
    }

    #[test]
    fn a_supply_repeats_itself_and_sorts() {
        let seed = uuid::Uuid::from_u128(7);
        let (mut a, mut b) = (IdSupply::new(seed), IdSupply::new(seed));
        assert_eq!(a.request("20260324"), b.request("20260324"));
        let (first, second) = (a.envelope(), a.envelope());
        assert!(first < second);
    }
}
