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

macro_rules! words {
    ($type:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $crate::domain::word::Word for $type {
            const ALL: &'static [Self] = &[$($type::$variant),+];
            fn as_str(self) -> &'static str {
                match self { $($type::$variant => $text),+ }
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::domain::word::Word::as_str(*self))
            }
        }
    };
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
