//! Facts from Discord on their way to the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::answers;
use super::ended::with_ended;
use super::hub::HubError;
use super::plan_file;
use super::team::{Team, now};
use crate::discord::{Facts, Inbound, InteractionReply, TakenMessage};
use crate::domain::actor::Actor;
use crate::domain::event::Event;
use crate::domain::ids::{ChannelId, GuildId, MessageId, UserId};
use crate::domain::incoming::Command;
use crate::domain::request::Request;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::{Answer, is_addressed_by_edit, standing};
use crate::platform::tasks;

/// Takes facts in until the team closes. Returns earlier only where the link broke off.
pub(super) async fn listen(team: Arc<Team>, mut facts: Facts) {
    let mut given_up = false;
    loop {
        let fact = tokio::select! {
            () = team.closing.cancelled() => return,
            fact = facts.recv() => fact,
        };
        let Some(fact) = fact else { break };
        given_up |= matches!(fact, Inbound::Fatal { role: None, .. });
        if take(&team, fact).await.is_err() {
            // Asking for the next fact would say that this one is dealt with; it is read again by the next start.
            return team.closing.cancelled().await;
        }
    }
    if given_up {
        // A person has to do something about Discord; the command line still reaches the team.
        team.closing.cancelled().await;
    }
}

async fn take(team: &Arc<Team>, fact: Inbound) -> Result<(), HubError> {
    let event = match fact {
        Inbound::Connected { fresh, identity } => {
            tracing::info!(fresh, "connected to Discord");
            team.hub.know_ourselves(identity.own_ids());
            if team.workspace.guilds().is_empty() {
                find_home(team, &identity.guilds);
            }
            if fresh {
                let team = Arc::clone(team);
                tasks::spawn("catch-up", async move {
                    tokio::select! {
                        () = catch_up(&team) => {}
                        () = team.closing.cancelled() => {}
                    }
                });
            }
            return Ok(());
        }
        Inbound::Live => {
            tracing::debug!("caught up with Discord");
            return Ok(());
        }
        Inbound::Disconnected { reason } => {
            tracing::info!(%reason, "Discord is away; trying again");
            return Ok(());
        }
        Inbound::Degraded { reason } => {
            tracing::warn!(%reason, "Discord works with less");
            return Ok(());
        }
        Inbound::Fatal { role, reason } => {
            let who = role.map_or("the team's bot", crate::domain::role::Role::as_str);
            tracing::error!(%who, %reason, "Discord will not be tried again until a restart");
            return Ok(());
        }
        Inbound::ChannelsChanged => {
            if !team.hub.read(|state| standing::refused(state).next().is_some()) {
                return Ok(());
            }
            Event::ChannelsChanged
        }
        Inbound::Message(message) => Event::Message(message),
        // What was written before this workspace began was not said to it, whoever it is addressed to now.
        Inbound::Edited(message)
            if message.message_id < team.born
                && team.hub.read(|state| is_addressed_by_edit(state, now(), &message)) =>
        {
            return Ok(());
        }
        Inbound::Edited(message) => Event::MessageEdited(message),
        Inbound::Deleted { channel_id, message_id } => {
            Event::MessageDeleted { channel_id, message_id }
        }
        Inbound::CaughtUp { channel_id, message_id } => {
            let news = team.hub.read(|state| {
                state.channels.get(&channel_id).is_none_or(|mark| mark.watermark < message_id)
            });
            if !news {
                return Ok(());
            }
            Event::Seen { channel_id, message_id }
        }
        Inbound::Command { actor, command, reply } => {
            let command = with_ended(team, command).await;
            return carry_out(team, actor, command, reply).await;
        }
        Inbound::Plan { actor, dropped, reply } => {
            return match plan_file::command(team, dropped, reply.language()).await {
                Ok(command) => carry_out(team, actor, command, reply).await,
                Err(content) => {
                    tasks::spawn("command", async move {
                        match content {
                            Some(content) => reply.say(&content).await,
                            None => reply.not_carried_out().await,
                        }
                    });
                    Ok(())
                }
            };
        }
        Inbound::Question { actor, question, reply } => {
            let team = Arc::clone(team);
            tasks::spawn("question", async move {
                let language = reply.language();
                let content =
                    tasks::blocking(move || answers::answer(&team, &actor, &question, language));
                match content.await {
                    Ok(Ok(content) | Err(content)) => reply.say(&content).await,
                    Err(error) => {
                        tracing::warn!(%error, "a question was not answered");
                        reply.not_carried_out().await;
                    }
                }
            });
            return Ok(());
        }
        Inbound::Typing { typing, suggest } => {
            let suggestions = answers::suggest(team, &typing);
            tasks::spawn("suggest", async move { suggest.say(&suggestions).await });
            return Ok(());
        }
    };
    tell(team, event).await
}

/// Carries a command out, and answers. Until what came of it is durable, Discord counts as not heard: the next start hears
/// it again, and the records know whether it was done.
async fn carry_out(
    team: &Team,
    actor: Actor,
    command: Command,
    reply: InteractionReply,
) -> Result<(), HubError> {
    let interaction = reply.interaction();
    if team.hub.read(|state| state.interactions.knows(interaction)) {
        tasks::spawn("command", reply.told_again());
        return Ok(());
    }
    let event = Event::Command { actor, command, interaction: Some(interaction) };
    let answer = team.hub.submit(event).await;
    if let Err(error @ HubError::Closed) = answer {
        return Err(error);
    }
    tasks::spawn("command", async move {
        match answer {
            Ok(Answer::Say(content) | Answer::Refused(content)) => reply.say(&content).await,
            // What came of it is seen where it was pressed.
            Ok(Answer::Accepted | Answer::Ignored(_)) => reply.nothing().await,
            Err(error) => {
                tracing::warn!(%error, "a command was not carried out");
                reply.not_carried_out().await;
            }
        }
    });
    Ok(())
}

/// Older workspaces name no server: the one that the bot is in is home. Where there are several, a person has to
/// say which.
fn find_home(team: &Team, guilds: &BTreeSet<GuildId>) {
    match guilds.iter().copied().collect::<Vec<_>>()[..] {
        [home] => team.hub.live_in(home, team.workspace.rights(guilds)),
        [] => {}
        _ => tracing::warn!(
            "the bot is in {} servers, and the team listens in none: name one as `guild_id` in \
             discord_agents_config.yaml",
            guilds.len()
        ),
    }
}

/// A day in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Asks for what was written while nobody listened: in the channels that were read before from where
/// that ended, in the others from when the team was last there. What is older was not said to it.
async fn catch_up(team: &Arc<Team>) {
    let mut marks: BTreeMap<ChannelId, MessageId> = team.hub.read(|state| {
        let read = state.channels.values().map(|mark| (mark.channel_id, mark.watermark));
        // A room in which nobody has written yet: a thread on a message has the message's id, so
        // everything in it comes after that.
        let open = state.rooms.iter().filter(|(_, id)| state.requests.contains_key(*id));
        let rooms = open.map(|(room, _)| (*room, MessageId(room.0)));
        rooms.chain(read).collect()
    });
    // The team was there when the latest of these was written. A look back may have been cut short: a day more.
    let latest = marks.values().max().map_or(team.born, |latest| team.born.max(*latest));
    let away = Timestamp::from_millis(latest.written_at().millis() - DAY_MS);
    let unread = team.born.max(MessageId::at(away));
    let homes = team.hub.consult(|_, policy| policy.guilds.clone());
    let mut listed: BTreeSet<ChannelId> = BTreeSet::new();
    let mut all = !homes.is_empty();
    for guild in &homes {
        let (channels, is_all) = team.link.text_channels(*guild, away).await;
        all &= is_all;
        listed.extend(channels);
    }
    for channel in &listed {
        marks.entry(*channel).or_insert(unread);
    }
    if all {
        for thread in team.hub.read(|state| archived(state, &homes, &listed, MessageId::at(away))) {
            marks.remove(&thread);
        }
    }
    // A first direct message: only of those who are named, because a bot can ask for nobody else's channel.
    let (takes_dms, people) = team.hub.consult(|_, policy| {
        let named = policy.rights.values().flat_map(|holders| holders.users.iter().copied());
        (policy.dm, named.collect::<BTreeSet<UserId>>())
    });
    if takes_dms {
        for channel in team.link.direct_channels(&people).await {
            marks.entry(channel).or_insert(unread);
        }
        // Only now it is known whose bot writes in which of them.
        if team.hub.read(|state| standing::refused(state).next().is_some())
            && let Err(error) = tell(team, Event::ChannelsChanged).await
        {
            tracing::debug!(%error, "what was refused is tried again by the next start");
        }
    }
    let taken = team.hub.read(|state| {
        let open = state.requests.values().filter(|it| !it.status.is_terminal());
        open.flat_map(|request| taken_by(request)).collect()
    });
    team.link.catch_up(&marks, &taken);
}

/// The threads of these servers, rooms or not, that went into the archive before the team was last there, or are gone:
/// there is nothing new in them, and they grow in number with time.
fn archived(
    state: &State,
    homes: &BTreeSet<GuildId>,
    listed: &BTreeSet<ChannelId>,
    away: MessageId,
) -> Vec<ChannelId> {
    // A private one in which somebody wrote of late may be in the archive and not listed.
    let marked = state.channels.values().filter(|mark| mark.watermark < away);
    let marked = marked.filter(|mark| mark.guild_id.is_some_and(|guild| homes.contains(&guild)));
    let is_open =
        |room: &ChannelId| state.rooms.get(room).is_some_and(|id| state.requests.contains_key(id));
    let threads = state.rooms.keys().copied().chain(marked.map(|mark| mark.channel_id));
    threads.filter(|thread| !listed.contains(thread) && !is_open(thread)).collect()
}

/// The messages that a request hangs on.
fn taken_by(request: &Request) -> Vec<(MessageId, TakenMessage)> {
    let conversation = &request.conversation;
    let asked = conversation.reply_route.channel_id;
    // One that is several requests now is not one of them.
    let first = conversation.reply_route.message_id.filter(|_| request.params.parts.len() != 1);
    let first = asked.zip(first).map(|(channel, id)| (id, TakenMessage { channel, is_sure: true }));
    let room = conversation.place();
    let words = request.params.followups.iter().filter_map(|words| {
        let (id, is_sure) = (words.message_id?, words.channel_id.is_some());
        Some((id, TakenMessage { channel: words.channel_id.or(room)?, is_sure }))
    });
    words.chain(first).collect()
}

async fn tell(team: &Team, event: Event) -> Result<(), HubError> {
    let answer = team.insist(event).await.inspect_err(
        |error| tracing::warn!(%error, "a message was not taken in; it is read again later"),
    )?;
    if let Answer::Ignored(why) = answer {
        tracing::debug!(why, "ignored");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::change::{Change, ChannelMark};

    #[test]
    fn threads_in_the_archive_are_not_read_and_direct_channels_are() {
        let mut state = State::default();
        for (channel, guild) in [(1, Some(7)), (2, Some(7)), (3, None), (4, Some(8))] {
            state.apply(&Change::Channel(ChannelMark {
                channel_id: ChannelId(channel),
                guild_id: guild.map(GuildId),
                watermark: MessageId(50),
                recent: Vec::new(),
                refused: BTreeMap::new(),
            }));
        }
        let (homes, listed) = (BTreeSet::from([GuildId(7)]), BTreeSet::from([ChannelId(1)]));
        assert_eq!(archived(&state, &homes, &listed, MessageId(40)), []);
        assert_eq!(archived(&state, &homes, &listed, MessageId(60)), [ChannelId(2)]);
    }
}
