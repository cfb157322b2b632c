//! The interactions that were dealt with: Discord may tell of one again, and people are answered once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ids::InteractionId;
use super::time::Timestamp;

/// How long they are remembered, in milliseconds. An interaction can be answered for 15 minutes, and a session goes on
/// for fewer.
const KEPT: u64 = 30 * 60 * 1_000;

/// Interactions that were carried out or refused, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interactions {
    done: BTreeMap<InteractionId, Timestamp>,
}

impl Interactions {
    /// Whether one was dealt with, or is so old that nobody knows any more.
    #[must_use]
    pub fn knows(&self, id: InteractionId) -> bool {
        self.done.contains_key(&id) || id < self.oldest()
    }

    /// One is dealt with.
    pub fn note(&mut self, id: InteractionId, now: Timestamp) {
        self.done.insert(id, now);
        let oldest = self.oldest();
        self.done.retain(|id, _| *id >= oldest);
    }

    /// The oldest that is still remembered, by Discord's own clock: milliseconds stand above the lowest 22 bits of an id.
    fn oldest(&self) -> InteractionId {
        let newest = self.done.last_key_value().map_or(0, |(id, _)| id.0 >> 22);
        InteractionId(newest.saturating_sub(KEPT) << 22)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: u64) -> InteractionId {
        InteractionId((minute * 60_000) << 22)
    }

    #[test]
    fn what_is_too_old_to_be_known_counts_as_done() {
        let mut all = Interactions::default();
        assert!(!all.knows(at(1)));
        for minute in [100, 90, 125] {
            assert!(!all.knows(at(minute)), "{minute}");
            all.note(at(minute), Timestamp::from_millis(0));
            assert!(all.knows(at(minute)));
        }
        assert_eq!(all.done.len(), 2, "90 is forgotten");
        assert!(all.knows(at(90)) && !all.knows(at(110)));
    }
}
