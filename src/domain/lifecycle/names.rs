//! Names that a lifecycle gives.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes of the longest name.
const LONGEST: usize = 32;

/// Small letters, digits and `_`, beginning with a letter; filled up with zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ShortName([u8; LONGEST]);

impl ShortName {
    const fn new(text: &str) -> Option<ShortName> {
        let text = text.as_bytes();
        if text.is_empty() || text.len() > LONGEST || !text[0].is_ascii_lowercase() {
            return None;
        }
        let mut name = [0; LONGEST];
        let mut at = 0;
        while at < text.len() {
            if !matches!(text[at], b'a'..=b'z' | b'0'..=b'9' | b'_') {
                return None;
            }
            name[at] = text[at];
            at += 1;
        }
        Some(ShortName(name))
    }

    fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(LONGEST);
        std::str::from_utf8(&self.0[..end]).unwrap_or_default()
    }
}

/// Why a text is no name of a lifecycle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name: up to {LONGEST} small letters, digits and `_`, beginning with a letter")]
pub struct NotAName(String);

macro_rules! names {
    ($($(#[$doc:meta])* $type:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(ShortName);

        impl $type {
            /// A name that stands in the source; one that is none does not compile.
            #[must_use]
            pub const fn of(text: &'static str) -> Self {
                match ShortName::new(text) {
                    Some(name) => Self(name),
                    None => panic!("no name"),
                }
            }

            /// Reads a name, whatever its case and the blanks around it.
            ///
            /// # Errors
            /// Where the text is none.
            pub fn parse(text: &str) -> Result<Self, NotAName> {
                let word = text.trim().to_lowercase();
                ShortName::new(&word).map(Self).ok_or_else(|| NotAName(text.to_owned()))
            }

            /// The name as it stands in files.
            #[must_use]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl TryFrom<String> for $type {
            type Error = NotAName;
            fn try_from(text: String) -> Result<Self, NotAName> {
                Self::parse(&text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.as_str().to_owned()
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    )+};
}

names! {
    /// The name of a step.
    StepName
    /// The name of a counter.
    CounterName
}

/// Serialises no name as the empty string and back, as the older files have it.
pub(crate) mod blank {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::StepName;

    pub(crate) fn serialize<S: Serializer>(
        name: &Option<StepName>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(name.as_ref().map_or("", StepName::as_str))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<StepName>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.as_deref().and_then(|text| StepName::parse(text).ok()))
    }
}
