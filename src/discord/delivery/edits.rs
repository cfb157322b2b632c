//! Edits of old messages, which Discord counts.

use std::collections::{BTreeMap, VecDeque};

use crate::domain::ids::MessageId;
use crate::domain::time::Timestamp;

/// From this age on edits are counted, in seconds; Discord counts from an hour on.
const OLD: u64 = 55 * 60;
/// Edits of an old message that are made within [`WINDOW`].
const EDITS: usize = 5;
/// Seconds.
const WINDOW: u64 = 60 * 60;
/// Messages whose edits are remembered.
const REMEMBERED: usize = 500;

/// Edits of messages that are old.
#[derive(Debug, Default)]
pub(super) struct Edits(BTreeMap<MessageId, VecDeque<Timestamp>>);

impl Edits {
    /// Whether one more edit is still cheap; counts it.
    pub(super) fn one_more(&mut self, message: MessageId, now: Timestamp) -> bool {
        if !is_old(message, now) {
            return true;
        }
        let times = self.0.entry(message).or_default();
        while times.front().is_some_and(|at| now.seconds_since(*at) > WINDOW) {
            times.pop_front();
        }
        if times.len() >= EDITS {
            return false;
        }
        times.push_back(now);
        if self.0.len() > REMEMBERED {
            self.0.pop_first();
        }
        true
    }
}

pub(super) fn is_old(message: MessageId, now: Timestamp) -> bool {
    now.seconds_since(message.written_at()) > OLD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_card_is_edited_a_few_times_an_hour() {
        let written = Timestamp::from_millis(1_800_000_000_000);
        let card = MessageId::at(written);
        let mut edits = Edits::default();
        let at = |minutes: u64| written.plus_seconds(minutes * 60);
        for minute in 0..50 {
            assert!(edits.one_more(card, at(minute)), "young at {minute}");
        }
        for minute in 60..65 {
            assert!(edits.one_more(card, at(minute)));
        }
        assert!(!edits.one_more(card, at(70)));
        assert!(edits.one_more(card, at(121)), "the first of them is more than an hour ago");
        assert!(edits.one_more(MessageId::at(at(70)), at(70)), "its new copy is young");
    }
}
