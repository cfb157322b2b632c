//! Snowflakes: Discord's time-ordered identifiers.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds of the first second of 2015, where Discord's identifiers start to count.
const EPOCH_MS: u64 = 1_420_070_400_000;

/// The bits below the time.
const SEQUENCE_BITS: u32 = 22;

/// A Discord identifier. Its wire form is a decimal string; zero never occurs.
///
/// One type serves every kind of object, because Discord reuses one number across kinds: a thread has
/// the id of the message it started from, an application that of its bot user, and the role of
/// everyone that of the guild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(u64);

impl Id {
    /// When the identifier was made, to the millisecond.
    pub(crate) fn time(self) -> DateTime<Utc> {
        let ms = (self.0 >> SEQUENCE_BITS) + EPOCH_MS;
        i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis).unwrap_or_default()
    }

    /// The lowest identifier that could have been made at that instant; a bound for searches.
    pub(crate) fn at(time: DateTime<Utc>) -> Id {
        let ms = u64::try_from(time.timestamp_millis()).unwrap_or(EPOCH_MS);
        Id((ms.saturating_sub(EPOCH_MS) << SEQUENCE_BITS).max(1))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Text that is no identifier.
#[derive(Debug, thiserror::Error)]
#[error("not a snowflake: a decimal number above zero is expected")]
pub(crate) struct BadId;

impl FromStr for Id {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Id, BadId> {
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BadId);
        }
        match text.parse() {
            Ok(0) | Err(_) => Err(BadId),
            Ok(number) => Ok(Id(number)),
        }
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a snowflake")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Id, E> {
                text.parse().map_err(E::custom)
            }

            // Every client library sends some identifiers as numbers.
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Id, E> {
                if number == 0 { Err(E::custom(BadId)) } else { Ok(Id(number)) }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Makes identifiers that grow strictly, also when the clock stands still or steps back.
#[derive(Debug, Default)]
pub(crate) struct Snowflakes {
    last: u64,
}

impl Snowflakes {
    /// Counts an identifier that exists already, so that the next is above it.
    pub(crate) fn saw(&mut self, id: Id) {
        self.last = self.last.max(id.0);
    }

    /// The next identifier.
    pub(crate) fn next(&mut self, now: DateTime<Utc>) -> Id {
        self.last = Id::at(now).0.max(self.last + 1);
        Id(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_when_the_clock_does_not() {
        let mut made = Snowflakes::default();
        let now = DateTime::from_timestamp_millis(1_700_000_000_000).unwrap();
        let first = made.next(now);
        let second = made.next(now);
        let third = made.next(now - chrono::Duration::hours(1));
        assert!(first < second && second < third);
        assert_eq!(first.time(), now);
    }

    #[test]
    fn only_decimal_numbers_above_zero_are_ids() {
        for text in ["", "0", "-1", "+1", "1a", "99999999999999999999999"] {
            assert!(text.parse::<Id>().is_err(), "{text}");
        }
        assert_eq!("17".parse::<Id>().unwrap().to_string(), "17");
        assert_eq!(serde_json::from_str::<Id>("17").unwrap().to_string(), "17");
    }
}
