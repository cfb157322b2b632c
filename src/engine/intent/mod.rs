//! What a message asks for, by rules. They are there to be safe, not clever: they answer or say that they are unsure.

use crate::domain::intent::Intent;

/// What the rules take a message for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The intent; none where they are unsure.
    pub intent: Option<Intent>,
    /// The signs that counted.
    pub why: Vec<String>,
    /// The texts of its separate pieces of work: one, or two.
    pub parts: Vec<String>,
}

/// Reads a message.
#[must_use]
pub fn read(_text: &str) -> Reading {
    Reading::default()
}
