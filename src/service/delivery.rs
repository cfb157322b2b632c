//! The outbox: what waits for Discord, in order, for as long as it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::busy::Busy;
use super::team::{Team, now, until};
use crate::discord::{Destination, send_order};
use crate::domain::event::Event;
use crate::domain::ids::{ChannelId, OutgoingId, RequestId, UserId};
use crate::domain::outgoing::{
    Act, NamedChannel, Outgoing, OutgoingOutcome, Post, Priority, Target,
};
use crate::domain::request::Request;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::Answer;
use crate::git;
use crate::platform::plug::{self, Point};
use crate::platform::tasks;

/// Lanes that are sent to at the same time. Many of them only wait for the budget of their channel.
const PARALLEL_PLACES: usize = 16;
/// The same where something other than progress waits for the place.
const URGENT_PLACES: usize = 24;
/// Lanes whose turn is remembered.
const TURNS: usize = 1_000;

/// Lines and characters of a difference that goes out as a file.
const LINES: usize = 100_000;
const DIFFERENCE: usize = 4_000_000;

/// Seconds after which an answer to somebody who may not ask no longer waits for the work of the others.
const COURTESY_WAITS: u64 = 300;

/// What has a send under way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum DeliveryLane {
    /// To a place.
    To(Target),
    /// To somebody who may not ask: in nobody's way, wherever it goes.
    Refusal,
}

/// Sends until the team closes.
pub(super) async fn send(team: Arc<Team>) {
    let busy: Busy<DeliveryLane> = Busy::default();
    // When each place had its turn last, so that one with much to say holds no other up.
    let (mut turns, mut turn) = (BTreeMap::new(), 0_u64);
    while !team.closing.is_cancelled() {
        let (begin, due) = team.hub.read(|state| begin(state, &busy.keys(), &turns));
        if turns.len() > TURNS {
            turns.clear();
        }
        for (place, outgoing) in begin {
            turn += 1;
            turns.insert(place.clone(), turn);
            let signals = Arc::clone(&team.signals);
            let mark = busy.mark(place, move || signals.outbox.notify_one());
            let team = Arc::clone(&team);
            tasks::spawn("send", async move {
                let _mark = mark;
                one(&team, &outgoing).await;
            });
        }
        tokio::select! {
            () = team.closing.cancelled() => return,
            () = team.signals.outbox.notified() => {}
            () = until(due) => {}
        }
    }
}

/// What to send now, and when to look again.
fn begin(
    state: &State,
    busy: &BTreeSet<DeliveryLane>,
    turns: &BTreeMap<DeliveryLane, u64>,
) -> (Vec<(DeliveryLane, Outgoing)>, Option<Timestamp>) {
    let now = now();
    let coming = rooms_to_come(state);
    let heads = refused_heads(state, now);
    let waiting = state.outgoing.values().map(Arc::as_ref).filter(|it| {
        let refused = it.refused.is_some() && !heads.contains(&it.outgoing_id);
        it.priority < Priority::Refusal && !refused && !waits_for_room(it, &coming)
    });
    let to = |sending: &'_ DeliveryLane| match sending {
        DeliveryLane::To(target) => Some(target.clone()),
        DeliveryLane::Refusal => None,
    };
    let taken: Vec<Target> = busy.iter().filter_map(to).collect();
    let taken = taken.iter().map(Place::of).collect();
    let ready = send_order::ready(waiting.clone(), now, |it| place_of(state, it), &taken);
    let mut ready: Vec<_> = ready
        .into_iter()
        .map(|(most, outgoing)| {
            (most, DeliveryLane::To(place_of(state, outgoing).target()), outgoing)
        })
        .collect();
    ready.sort_by_key(|(most, place, _)| (*most, turns.get(place).copied().unwrap_or(0)));
    let mut begin = Vec::new();
    // The urgent ones come first, so that whoever finds no place ends it.
    for (under_way, (most, place, outgoing)) in (busy.len()..).zip(ready) {
        let limit = if most < Priority::Progress { URGENT_PLACES } else { PARALLEL_PLACES };
        if under_way >= limit {
            break;
        }
        begin.push((place, outgoing.clone()));
    }
    if begin.is_empty() && busy.is_empty() {
        begin.extend(refusal(state, now, waiting.clone().next().is_none()));
    }
    let later = state.outgoing.values().filter_map(|outgoing| outgoing.not_before);
    let patience = (state.outgoing.values())
        .filter(|it| it.priority == Priority::Refusal)
        .map(|it| it.created_at.plus_seconds(COURTESY_WAITS));
    (begin, later.chain(patience).filter(|at| *at > now).min())
}

/// An answer to somebody who may not ask: the last thing to say, so it goes where nothing else waits for Discord
/// and nobody is at work who will have something to say, or has waited for that long enough.
fn refusal(state: &State, now: Timestamp, alone: bool) -> Option<(DeliveryLane, Outgoing)> {
    let works = !state.runs.is_empty() || !state.envelopes.is_empty() || !state.effects.is_empty();
    let waited = |it: &Outgoing| {
        now.seconds_since(it.created_at.min(now)) >= COURTESY_WAITS || (alone && !works)
    };
    let due = |it: &Outgoing| it.not_before.is_none_or(|at| at <= now);
    let first = (state.outgoing.values().map(Arc::as_ref))
        .find(|it| it.priority == Priority::Refusal && due(it) && waited(it))?;
    Some((DeliveryLane::Refusal, first.clone()))
}

/// The messages that Discord refused and that are tried now: where a place refuses, the oldest of it stands for
/// all, since each refusal counts against the machine.
fn refused_heads(state: &State, now: Timestamp) -> BTreeSet<OutgoingId> {
    let mut places = BTreeSet::new();
    (state.outgoing.values())
        .filter_map(|it| Some((it, it.refused.as_ref()?)))
        .filter(|(it, refused)| !refused.place || places.insert(&it.target))
        .filter(|(it, _)| it.not_before.is_none_or(|at| at <= now))
        .map(|(it, _)| it.outgoing_id.clone())
        .collect()
}

/// Where a message ends up, as far as that is known: what is written into one room or to one person
/// keeps its order, whichever way it is addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place<'a> {
    Channel(ChannelId),
    Named(NamedChannel),
    Dm(UserId),
    Room(&'a RequestId),
}

impl<'a> Place<'a> {
    const fn of(target: &'a Target) -> Place<'a> {
        match target {
            Target::Channel(channel) => Place::Channel(*channel),
            Target::Named(name) => Place::Named(*name),
            Target::Dm(user) => Place::Dm(*user),
            Target::Room(request) => Place::Room(request),
        }
    }

    fn target(self) -> Target {
        match self {
            Place::Channel(channel) => Target::Channel(channel),
            Place::Named(name) => Target::Named(name),
            Place::Dm(user) => Target::Dm(user),
            Place::Room(request) => Target::Room(request.clone()),
        }
    }
}

fn place_of<'a>(state: &State, outgoing: &'a Outgoing) -> Place<'a> {
    let Target::Room(id) = &outgoing.target else {
        return Place::of(&outgoing.target);
    };
    let request = state.requests.get(id).map(Arc::as_ref);
    if let Act::OpenRoom { channel_id, .. } = &outgoing.act
        && !asked_somewhere(request)
    {
        // It is what the others of its room wait for.
        return Place::Channel(*channel_id);
    }
    let thread = request
        .and_then(|request| request.conversation.room.as_ref())
        .and_then(|room| room.thread_id);
    let here = request.map(|request| &request.conversation.reply_route).filter(|route| route.is_dm);
    match thread.or(here.and_then(|route| route.channel_id)) {
        Some(channel) => Place::Channel(channel),
        None => Place::Room(id),
    }
}

/// Whether the request was asked in a place of its own: where it has no room, it is answered there.
fn asked_somewhere(request: Option<&Request>) -> bool {
    request.is_some_and(|it| {
        let route = &it.conversation.reply_route;
        route.is_dm || (route.channel_id.is_some() && route.message_id.is_some())
    })
}

/// The requests that have no place yet and get one: the message that their room is to hang on is still to
/// be posted, or the room to be opened. Where either is refused, nothing holds their words any longer, and
/// they go to the report channel.
fn rooms_to_come(state: &State) -> BTreeSet<RequestId> {
    let hangs = |outgoing: &Outgoing| match (&outgoing.act, &outgoing.target) {
        (Act::Post(Post { room_of: Some(id), .. }), _)
        | (Act::OpenRoom { .. }, Target::Room(id)) => Some(id.clone()),
        (
            Act::Post(Post { room_of: None, .. })
            | Act::Card { .. }
            | Act::Board { .. }
            | Act::Pin { .. }
            | Act::OpenRoom { .. }
            | Act::React { .. }
            | Act::Unbutton { .. }
            | Act::Envelope { .. },
            _,
        ) => None,
    };
    let placeless = |id: &RequestId| {
        let request = state.requests.get(id).map(Arc::as_ref);
        let room = request.and_then(|request| request.conversation.room.as_ref());
        room.is_some_and(|room| room.thread_id.is_none()) && !asked_somewhere(request)
    };
    // One that Discord refused holds nothing up.
    let coming = state.outgoing.values().map(Arc::as_ref).filter(|it| it.refused.is_none());
    coming.filter_map(hangs).filter(placeless).collect()
}

/// Whether the room that this belongs into is not open yet, and will be.
fn waits_for_room(outgoing: &Outgoing, coming: &BTreeSet<RequestId>) -> bool {
    match (&outgoing.target, &outgoing.act) {
        (Target::Room(id), Act::Post(Post { room_of: None, .. }))
        | (
            Target::Room(id),
            Act::Card { .. }
            | Act::Board { .. }
            | Act::Pin { .. }
            | Act::React { .. }
            | Act::Unbutton { .. }
            | Act::Envelope { .. },
        ) => coming.contains(id),
        // The message that a room hangs on cannot wait for it.
        (Target::Room(id), Act::Post(Post { room_of: Some(other), .. })) => {
            id != other && coming.contains(id)
        }
        (Target::Room(_), Act::OpenRoom { .. })
        | (Target::Channel(_) | Target::Named(_) | Target::Dm(_), _) => false,
    }
}

async fn one(team: &Arc<Team>, outgoing: &Outgoing) {
    let id = outgoing.outgoing_id.clone();
    let starting = |parts_done| Event::OutgoingStarting { outgoing_id: id.clone(), parts_done };
    match team.insist(starting(0)).await {
        Ok(Answer::Accepted) => {}
        // Superseded meanwhile, or the team is stopping: the next start sends it.
        Ok(Answer::Ignored(_) | Answer::Say(_) | Answer::Refused(_)) | Err(_) => return,
    }
    let outcome = match place(team, outgoing).await {
        Ok(place) => {
            let hub = team.hub.clone();
            let progress = |parts_done| {
                let (hub, event) = (hub.clone(), starting(parts_done));
                async move {
                    // Not noting a part costs a look at the channel after a crash, no more.
                    let _ = hub.submit(event).await;
                }
            };
            let outgoing = with_difference(team, outgoing).await;
            team.link.deliver(&outgoing, &place, progress).await
        }
        Err(outcome) => outcome,
    };
    plug::point(Point::AfterEffect);
    if let OutgoingOutcome::Refused { reason, .. } = &outcome {
        tracing::warn!(%reason, "Discord refused a message");
    }
    let failed = match &outcome {
        OutgoingOutcome::Later { reason, .. } => Some(reason.clone()),
        OutgoingOutcome::Posted { .. }
        | OutgoingOutcome::RoomOpened { .. }
        | OutgoingOutcome::Done
        | OutgoingOutcome::Refused { .. } => None,
    };
    let finished = Event::OutgoingFinished { outgoing_id: outgoing.outgoing_id.clone(), outcome };
    // A closed hub means that the next start looks whether it was sent.
    let _ = team.insist(finished).await;
    if let Some(reason) = failed
        && !team.hub.read(|state| state.outgoing.contains_key(&id))
    {
        tracing::warn!(outgoing = %id, target = ?outgoing.target, %reason, "a message was set aside");
    }
}

/// The card of a commit holds the beginning of its difference; who decides gets all of it.
async fn with_difference(team: &Arc<Team>, outgoing: &Outgoing) -> Outgoing {
    let mut outgoing = outgoing.clone();
    let Act::Post(Post { gate_id: Some(gate_id), content, .. }) = &mut outgoing.act else {
        return outgoing;
    };
    let Some(Value::String(shown)) = content.values.get_mut("diff") else {
        return outgoing;
    };
    let candidate = team.hub.read(|state| {
        let request = state.requests.get(&state.gates.get(gate_id)?.request_id)?;
        request.work.candidate.clone()
    });
    let Some(candidate) = candidate else { return outgoing };
    let project = team.project.clone();
    let whole = tasks::blocking(move || git::diff_excerpt(&project, &candidate, LINES)).await;
    match whole {
        Ok(Ok(whole)) => *shown = whole.chars().take(DIFFERENCE).collect(),
        // The beginning, which the record holds, is better than no card.
        Ok(Err(error)) => tracing::warn!(%error, "the whole difference is not attached"),
        Err(error) => tracing::warn!(%error, "the whole difference is not attached"),
    }
    outgoing
}

async fn place(team: &Team, outgoing: &Outgoing) -> Result<Destination, OutgoingOutcome> {
    if let Target::Dm(user) = &outgoing.target {
        return team.link.dm_place(*user, outgoing).await;
    }
    let report = team.channels.report;
    Ok(team.hub.read(|state| resolve(team, state, outgoing)).unwrap_or(Destination {
        channel: report,
        card: None,
        parent: None,
    }))
}

fn resolve(team: &Team, state: &State, outgoing: &Outgoing) -> Option<Destination> {
    let plain = |channel| Destination { channel, card: None, parent: None };
    match &outgoing.target {
        Target::Channel(channel) => Some(plain(*channel)),
        Target::Named(NamedChannel::Relay) => Some(plain(team.channels.relay)),
        Target::Named(NamedChannel::Startup) => Some(plain(team.channels.startup)),
        Target::Named(NamedChannel::Report) => Some(plain(team.channels.report)),
        Target::Dm(_) => None,
        Target::Room(id) => {
            if let Act::OpenRoom { channel_id, .. } = &outgoing.act {
                return Some(plain(*channel_id));
            }
            let request = state.requests.get(id)?;
            let origin = request.conversation.reply_route.channel_id;
            let thread = request.conversation.thread();
            Some(Destination {
                channel: request.conversation.place()?,
                card: request.conversation.status_card(),
                // Asked for in the room itself: then its parent is not known here, and Discord is asked.
                parent: thread.and(origin.filter(|origin| Some(*origin) != thread)),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::ids::MessageId;
    use crate::domain::outgoing::{Content, OutgoingState, Voice};
    use crate::domain::request::{RequestConversation, Room};

    const ID: &str = "20260324-1a2b3c4d";

    fn request(thread: Option<u64>) -> Request {
        Request {
            request_id: RequestId::parse(ID).unwrap(),
            conversation: RequestConversation {
                room: Some(Room {
                    thread_id: thread.map(ChannelId),
                    card_id: None,
                    card_digest: String::new(),
                }),
                ..RequestConversation::default()
            },
            ..Request::default()
        }
    }

    fn outgoing(id: &str, target: Target, act: Act) -> Outgoing {
        Outgoing {
            outgoing_id: OutgoingId::parse(id).unwrap(),
            target,
            voice: Voice::Team,
            priority: Priority::Progress,
            act,
            request_id: Some(RequestId::parse(ID).unwrap()),
            slot: None,
            state: OutgoingState::Queued,
            attempts: 0,
            own_failures: 0,
            not_before: None,
            refused: None,
            created_at: Timestamp::from_millis(0),
        }
    }

    fn post(room_of: Option<&str>) -> Act {
        let content = Content {
            key: "empty".to_owned(),
            values: serde_json::from_value(json!({})).unwrap(),
            language: crate::domain::language::Language::En,
        };
        let room_of = room_of.map(|id| RequestId::parse(id).unwrap());
        Act::Post(Post { room_of, ..Post::new(content) })
    }

    fn room() -> Target {
        Target::Room(RequestId::parse(ID).unwrap())
    }

    fn state(request: Request, outbox: Vec<Outgoing>) -> State {
        State {
            requests: [(request.request_id.clone(), Arc::new(request))].into(),
            outgoing: outbox.into_iter().map(|it| (it.outgoing_id.clone(), Arc::new(it))).collect(),
            ..State::default()
        }
    }

    /// The ids that go out one after the other, as if each were sent and gone.
    fn order(mut state: State) -> Vec<String> {
        let mut sent = Vec::new();
        loop {
            let coming = rooms_to_come(&state);
            let ready =
                state.outgoing.values().map(Arc::as_ref).filter(|it| !waits_for_room(it, &coming));
            let now = Timestamp::from_millis(1);
            let next = send_order::ready(ready, now, |it| place_of(&state, it), &BTreeSet::new());
            let next = next.first().map(|(_, it)| it.outgoing_id.clone());
            let Some(next) = next else { return sent };
            state.outgoing.remove(&next);
            sent.push(next.to_string());
        }
    }

    #[test]
    fn what_is_for_a_room_waits_until_it_hangs_and_is_open() {
        let report = Target::Named(NamedChannel::Report);
        let words = outgoing("b", room(), post(None));
        let hook = outgoing("c", report, post(Some(ID)));
        let asked = state(request(None), vec![words.clone(), hook]);
        assert_eq!(order(asked), ["c", "b"], "refused or lost, the words still go somewhere");
        let open = Act::OpenRoom {
            channel_id: ChannelId(1),
            message_id: MessageId(2),
            name: "a todo".to_owned(),
        };
        let opening = state(request(None), vec![words.clone(), outgoing("d", room(), open)]);
        assert_eq!(order(opening), ["d", "b"], "the room opens before what was written earlier");
        assert_eq!(order(state(request(Some(7)), vec![words])), ["b"]);
    }

    #[test]
    fn a_request_with_a_place_of_its_own_waits_for_nothing() {
        let mut asked = request(None);
        asked.conversation.reply_route.channel_id = Some(ChannelId(9));
        asked.conversation.reply_route.message_id = Some(MessageId(8));
        let report = Target::Named(NamedChannel::Report);
        let outbox = vec![outgoing("b", room(), post(None)), outgoing("c", report, post(Some(ID)))];
        assert_eq!(order(state(asked, outbox)), ["b", "c"]);
    }

    #[test]
    fn a_room_with_much_to_say_takes_turns_and_an_outcome_has_a_place_kept() {
        let say = |id: String, channel, priority| Outgoing {
            priority,
            ..outgoing(&id, Target::Channel(ChannelId(channel)), post(None))
        };
        let mut outbox: Vec<Outgoing> =
            (0..40).map(|n| say(format!("a{n:02}"), n % 20, Priority::Progress)).collect();
        outbox.push(say("z".to_owned(), 99, Priority::Final));
        let state = state(request(None), outbox);
        let (mut busy, turns) = (BTreeSet::new(), BTreeMap::new());
        let channels = |begun: &[(DeliveryLane, Outgoing)]| {
            let id = |sending: &DeliveryLane| match sending {
                DeliveryLane::To(Target::Channel(channel)) => channel.0,
                DeliveryLane::To(Target::Named(_) | Target::Dm(_) | Target::Room(_))
                | DeliveryLane::Refusal => 0,
            };
            begun.iter().map(|(target, _)| id(target)).collect::<Vec<u64>>()
        };
        let begun = begin(&state, &busy, &turns).0;
        assert_eq!(begun.len(), PARALLEL_PLACES);
        assert_eq!(channels(&begun)[0], 99, "the outcome goes first");
        // All places of progress are taken, and the outcome has one.
        busy.extend((0..16).map(|n| DeliveryLane::To(Target::Channel(ChannelId(n)))));
        assert_eq!(channels(&begin(&state, &busy, &turns).0), [99]);
        // Whoever had a turn lets the others go first.
        busy.insert(DeliveryLane::To(Target::Channel(ChannelId(99))));
        let busy: BTreeSet<DeliveryLane> = busy.into_iter().skip(8).collect();
        let turns =
            (0..8).map(|n| (DeliveryLane::To(Target::Channel(ChannelId(n))), 9 - n)).collect();
        assert_eq!(channels(&begin(&state, &busy, &turns).0), [16, 17, 18, 19, 7, 6, 5]);
    }

    #[test]
    fn a_room_keeps_the_order_of_writing_over_its_opening() {
        let words = || vec![outgoing("b", room(), post(None)), outgoing("c", room(), post(None))];
        assert_eq!(order(state(request(Some(7)), words())), ["b", "c"]);
        assert_eq!(order(state(request(None), words())), ["b", "c"]);
    }
}
