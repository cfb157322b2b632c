//! Which waiting message goes next. Pure.
//!
//! Within a place (the channel, thread or person that a message goes to) the order of writing holds. Across
//! places the one goes first that holds the most important message, wherever in it that stands: otherwise an
//! outcome would wait for the progress of all other rooms, because one line of progress is before it in its
//! own. Progress that a newer message of the same slot replaces is not sent at all.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::OutgoingId;
use crate::domain::outgoing::{Outgoing, OutgoingState, Priority};
use crate::domain::time::Timestamp;

/// Queued messages that a newer queued one with the same slot in the same place replaces. The caller
/// finishes them as done.
#[must_use]
pub fn superseded<'a, L: Ord>(
    outgoing: impl IntoIterator<Item = &'a Outgoing>,
    place: impl Fn(&'a Outgoing) -> L,
) -> BTreeSet<OutgoingId> {
    let mut newest: BTreeMap<(L, &str), &OutgoingId> = BTreeMap::new();
    let mut old = BTreeSet::new();
    for item in outgoing {
        let (OutgoingState::Queued, Some(slot)) = (item.state, item.slot.as_deref()) else {
            continue;
        };
        let newest = newest.entry((place(item), slot)).or_insert(&item.outgoing_id);
        if item.outgoing_id > **newest {
            old.insert((*newest).clone());
            *newest = &item.outgoing_id;
        } else if item.outgoing_id < **newest {
            old.insert(item.outgoing_id.clone());
        }
    }
    old
}

/// The messages that may be sent now, the first of each place, in the order in which to begin. With each
/// comes the priority of its place.
///
/// `place` names where a message goes once resolved; places in `busy` have a send under way. The first
/// message of a place holds it back until its own time has come, so that a room reads in order.
#[must_use]
pub fn ready<'a, L: Ord>(
    outgoing: impl Iterator<Item = &'a Outgoing> + Clone,
    now: Timestamp,
    place: impl Fn(&'a Outgoing) -> L,
    busy: &BTreeSet<L>,
) -> Vec<(Priority, &'a Outgoing)> {
    let old = superseded(outgoing.clone(), &place);
    let mut places: BTreeMap<L, (Priority, &Outgoing)> = BTreeMap::new();
    for item in outgoing {
        if old.contains(&item.outgoing_id) {
            continue;
        }
        let (most, head) = places.entry(place(item)).or_insert((item.priority, item));
        *most = (*most).min(item.priority);
        if item.outgoing_id < head.outgoing_id {
            *head = item;
        }
    }
    let mut ready: Vec<_> = places
        .into_iter()
        .filter(|(place, (_, head))| {
            !busy.contains(place) && head.not_before.is_none_or(|time| time <= now)
        })
        .map(|(_, place)| place)
        .collect();
    ready.sort_by_key(|(most, head)| (*most, head.priority, &head.outgoing_id));
    ready
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{ChannelId, MessageId};
    use crate::domain::outgoing::{Act, Priority, Target, Voice};

    fn item(id: &str, channel: u64, priority: Priority, slot: Option<&str>) -> Outgoing {
        Outgoing {
            outgoing_id: OutgoingId::parse(id).unwrap(),
            target: Target::Channel(ChannelId(channel)),
            voice: Voice::Team,
            priority,
            act: Act::React { message_id: MessageId(1), emoji: "x".to_owned() },
            request_id: None,
            slot: slot.map(str::to_owned),
            state: OutgoingState::Queued,
            attempts: 0,
            own_failures: 0,
            not_before: None,
            refused: None,
            created_at: Timestamp::from_millis(0),
        }
    }

    fn pick(items: &[Outgoing], busy: &[u64]) -> Vec<String> {
        let busy = busy.iter().map(|id| Target::Channel(ChannelId(*id))).collect();
        let now = Timestamp::from_millis(1_000);
        let ready = ready(items.iter(), now, |item| item.target.clone(), &busy);
        ready.into_iter().map(|(_, item)| item.outgoing_id.to_string()).collect()
    }

    #[test]
    fn across_rooms_importance_within_a_room_order() {
        let items = [
            item("a", 1, Priority::Progress, None),
            item("b", 1, Priority::Final, None),
            item("c", 2, Priority::Error, None),
            item("d", 3, Priority::Approval, None),
        ];
        assert_eq!(pick(&items, &[]), ["a", "d", "c"], "a stands before an outcome");
        assert_eq!(pick(&items[2..], &[]), ["d", "c"]);
        assert_eq!(pick(&items[..1], &[]), ["a"]);
        assert_eq!(pick(&items, &[3, 2]), ["a"], "b waits behind a");
        assert!(pick(&items, &[1, 2, 3]).is_empty());
    }

    #[test]
    fn replaced_progress_is_skipped_and_named() {
        let mut items = vec![
            item("a", 1, Priority::Progress, Some("card")),
            item("b", 1, Priority::Progress, None),
            item("c", 1, Priority::Progress, Some("card")),
            item("d", 2, Priority::Progress, Some("card")),
        ];
        assert_eq!(pick(&items, &[2]), ["b"]);
        let old = superseded(items.iter(), |item| item.target.clone());
        assert_eq!(old.into_iter().map(String::from).collect::<Vec<_>>(), ["a"]);
        // What is being sent is not taken back.
        items[0].state = OutgoingState::Sending { since: Timestamp::from_millis(0), parts_done: 0 };
        assert_eq!(pick(&items, &[2]), ["a"]);
    }

    #[test]
    fn a_waiting_head_holds_its_room_only() {
        let mut items = vec![
            item("a", 1, Priority::Final, None),
            item("b", 1, Priority::Final, None),
            item("c", 2, Priority::Progress, None),
        ];
        items[0].not_before = Some(Timestamp::from_millis(2_000));
        assert_eq!(pick(&items, &[]), ["c"]);
        items[0].not_before = Some(Timestamp::from_millis(1_000));
        assert_eq!(pick(&items, &[]), ["a", "c"]);
    }
}
