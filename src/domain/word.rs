//! Closed sets of words that files and agents spell in snake case.

use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;

use crate::domain::role::Role;

/// A closed set of words that files and agents spell in snake case; the blank word means "none".
pub trait Word: Copy + Sized + 'static {
    /// Every member.
    const ALL: &'static [Self];
    /// The spelling in files.
    fn as_str(self) -> &'static str;
    /// Reads a word, whatever its case and the blanks around it; `None` for anything else.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        Self::ALL.iter().copied().find(|word| word.as_str() == text)
    }
    /// Reads a word out of a JSON string; `None` for anything else.
    fn of(value: Option<&Value>) -> Option<Self> {
        value.and_then(Value::as_str).and_then(Self::read)
    }
}

/// Enums of words, each with its spelling: in files, messages and schemas it is the same.
macro_rules! words {
    ($($(#[$about:meta])* $vis:vis enum $name:ident {
        $($(#[$detail:meta])* $variant:ident = $text:literal,)+
    })+) => {$(
        $(#[$about])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        $vis enum $name { $($(#[$detail])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every one, in their order.
            $vis const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Its spelling.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl $crate::domain::word::Word for $name {
            const ALL: &'static [Self] = &Self::ALL;
            fn as_str(self) -> &'static str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.into_iter().find(|word| word.as_str() == text);
                found.ok_or_else(|| format!("expected one of {}", [$($text),+].join(", ")))
            }
        }
    )+};
}

pub(crate) use words;

impl Word for Role {
    const ALL: &'static [Self] = &Role::ALL;
    fn as_str(self) -> &'static str {
        Role::as_str(self)
    }
}

/// Serialises `None` as the empty string and back, as the older files have it.
pub(crate) mod blank {
    use super::{Deserialize, Deserializer, Serializer, Word};

    pub(crate) fn serialize<W: Word, S: Serializer>(
        word: &Option<W>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(word.map_or("", Word::as_str))
    }

    pub(crate) fn deserialize<'de, W: Word, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<W>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.as_deref().and_then(W::read))
    }
}
