//! Facts from Discord on their way to the engine.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::answers;
use super::ended::with_ended;
use super::hub::HubError;
use super::plan_file;
use super::team::{Team, now};
use crate::discord::{Facts, Inbound, InteractionReply};
use crate::domain::actor::Actor;
use crate::domain::event::Event;
use crate::domain::ids::GuildId;
use crate::domain::incoming::Command;
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
                tasks::spawn("catch-up", async move { team.begin_look_back().await });
            }
            return Ok(());
        }
        Inbound::Live => {
            tracing::debug!("caught up with Discord");
            let team = Arc::clone(team);
            tasks::spawn("caught-up", async move { team.end_look_back().await });
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
        Inbound::ChannelDeleted(channel_id) => Event::ChannelDeleted { channel_id },
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

pub(super) async fn tell(team: &Team, event: Event) -> Result<(), HubError> {
    let answer = team.insist(event).await.inspect_err(
        |error| tracing::warn!(%error, "a message was not taken in; it is read again later"),
    )?;
    if let Answer::Ignored(why) = answer {
        tracing::debug!(why, "ignored");
    }
    Ok(())
}
