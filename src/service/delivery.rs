//! The outbox: what waits for Discord, in order, for as long as it takes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::team::{Team, now, until};
use crate::discord::{Place, lanes};
use crate::domain::event::Event;
use crate::domain::outgoing::{Act, NamedChannel, Outgoing, OutgoingOutcome, Target};
use crate::domain::state::State;
use crate::engine::Answer;
use crate::platform::plug::{self, Point};
use crate::platform::tasks;

/// Lanes that are sent to at the same time.
const PARALLEL_LANES: usize = 4;

type Busy = Arc<Mutex<BTreeSet<Target>>>;

/// Sends until the team closes.
pub(super) async fn send(team: Arc<Team>) {
    let busy = Busy::default();
    while !team.closing.is_cancelled() {
        let (next, due) = team.hub.read(|state| {
            let taken = busy.lock().unwrap_or_else(PoisonError::into_inner);
            if taken.len() >= PARALLEL_LANES {
                return (None, None);
            }
            let now = now();
            let lane = |outgoing: &Outgoing| lane(state, outgoing);
            let next = lanes::next(state.outgoing.values(), now, lane, &taken);
            let next = next.and_then(|id| state.outgoing.get(&id).cloned());
            let times = state.outgoing.values().filter_map(|outgoing| outgoing.not_before);
            (next.map(|next| (lane(&next), next)), times.filter(|at| *at > now).min())
        });
        let Some((lane, outgoing)) = next else {
            tokio::select! {
                () = team.closing.cancelled() => return,
                () = team.signals.outbox.notified() => {}
                () = until(due) => {}
            }
            continue;
        };
        busy.lock().unwrap_or_else(PoisonError::into_inner).insert(lane.clone());
        let (team, busy) = (Arc::clone(&team), Arc::clone(&busy));
        tasks::spawn("send", async move {
            one(&team, &outgoing).await;
            busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&lane);
            team.signals.outbox.notify_one();
        });
    }
}

/// Where a message ends up, as far as that is known: what is written into one room or to one person
/// keeps its order, whichever way it is addressed.
fn lane(state: &State, outgoing: &Outgoing) -> Target {
    let Target::Room(id) = &outgoing.target else {
        return outgoing.target.clone();
    };
    let request = state.requests.get(id);
    let thread = request.and_then(|request| request.room.as_ref()).and_then(|room| room.thread_id);
    let here = request.map(|request| &request.reply_route).filter(|route| route.is_dm);
    match thread.or(here.and_then(|route| route.channel_id)) {
        Some(channel) => Target::Channel(channel),
        None => outgoing.target.clone(),
    }
}

async fn one(team: &Arc<Team>, outgoing: &Outgoing) {
    let id = outgoing.outgoing_id.clone();
    let starting = |parts_done| Event::OutgoingStarting { outgoing_id: id.clone(), parts_done };
    match team.insist(starting(0)).await {
        Ok(Answer::Accepted) => {}
        // Superseded meanwhile, or the team is stopping: the next start sends it.
        Ok(Answer::Ignored(_) | Answer::Say(_)) | Err(_) => return,
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
            team.link.deliver(outgoing, &place, progress).await
        }
        Err(outcome) => outcome,
    };
    plug::point(Point::AfterEffect);
    if let OutgoingOutcome::Refused { reason } = &outcome {
        tracing::warn!(%reason, "Discord refused a message");
    }
    let finished = Event::OutgoingFinished { outgoing_id: outgoing.outgoing_id.clone(), outcome };
    // A closed hub means that the next start looks whether it was sent.
    let _ = team.insist(finished).await;
}

async fn place(team: &Team, outgoing: &Outgoing) -> Result<Place, OutgoingOutcome> {
    if let Target::Dm(user) = &outgoing.target {
        return team.link.dm_place(*user, outgoing.attempts).await;
    }
    let report = team.channels.report;
    Ok(team.hub.read(|state| resolve(team, state, outgoing)).unwrap_or(Place {
        channel: report,
        card: None,
        parent: None,
    }))
}

fn resolve(team: &Team, state: &State, outgoing: &Outgoing) -> Option<Place> {
    let plain = |channel| Place { channel, card: None, parent: None };
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
            let room = request.room.as_ref();
            let origin = request.reply_route.channel_id;
            let thread = room.and_then(|room| room.thread_id);
            Some(Place {
                channel: thread.or(origin)?,
                card: room.and_then(|room| room.card_id),
                // Asked for in the room itself: then its parent is not known here, and Discord is asked.
                parent: thread.and(origin.filter(|origin| Some(*origin) != thread)),
            })
        }
    }
}
