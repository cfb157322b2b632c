//! What a member may do, computed as Discord documents it: the roles' rights, then the overwrites of
//! the channel. A thread takes those of the channel above it.

use super::error::Refusal;
use super::ids::Id;
use super::model::{Channel, ChannelKind, Overwrite, User};
use super::right;
use super::state::State;

/// The right to write in a place.
pub(crate) fn speaking(place: &Channel) -> u64 {
    if place.thread().is_some() { right::SEND_MESSAGES_IN_THREADS } else { right::SEND_MESSAGES }
}

/// The rights that this server acts on, by name; the others are kept and shown.
pub(crate) const NAMES: [(&str, u64); 19] = [
    ("ADMINISTRATOR", right::ADMINISTRATOR),
    ("MANAGE_CHANNELS", right::MANAGE_CHANNELS),
    ("ADD_REACTIONS", right::ADD_REACTIONS),
    ("VIEW_CHANNEL", right::VIEW_CHANNEL),
    ("SEND_MESSAGES", right::SEND_MESSAGES),
    ("MANAGE_MESSAGES", right::MANAGE_MESSAGES),
    ("EMBED_LINKS", right::EMBED_LINKS),
    ("ATTACH_FILES", right::ATTACH_FILES),
    ("READ_MESSAGE_HISTORY", right::READ_MESSAGE_HISTORY),
    ("MENTION_EVERYONE", right::MENTION_EVERYONE),
    ("CHANGE_NICKNAME", right::CHANGE_NICKNAME),
    ("MANAGE_NICKNAMES", right::MANAGE_NICKNAMES),
    ("MANAGE_ROLES", right::MANAGE_ROLES),
    ("MANAGE_WEBHOOKS", right::MANAGE_WEBHOOKS),
    ("MANAGE_THREADS", right::MANAGE_THREADS),
    ("CREATE_PUBLIC_THREADS", right::CREATE_PUBLIC_THREADS),
    ("CREATE_PRIVATE_THREADS", right::CREATE_PRIVATE_THREADS),
    ("SEND_MESSAGES_IN_THREADS", right::SEND_MESSAGES_IN_THREADS),
    ("PIN_MESSAGES", right::PIN_MESSAGES),
];

/// Reads rights as Discord writes them: a decimal string. Numbers are taken too.
pub(crate) fn bits(value: &serde_json::Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

impl State {
    /// What a member may do, in one channel or in the guild as a whole. Nothing for those outside.
    pub(crate) fn rights(&self, user: Id, channel: Option<&Channel>) -> u64 {
        let (Some(meta), Some(user)) = (&self.guild, self.users.get(&user)) else {
            return 0;
        };
        if !user.member {
            return 0;
        }
        let held = std::iter::once(&meta.id).chain(&user.roles);
        let base =
            held.filter_map(|id| self.roles.get(id)).fold(0, |sum, role| sum | role.permissions);
        if meta.owner == user.id || base & right::ADMINISTRATOR != 0 {
            return right::ALL;
        }
        let Some(place) = channel.and_then(|it| self.place_of_rights(it)) else {
            return base;
        };
        let rights = overwritten(base, &place.overwrites, meta.id, user);
        if rights & right::VIEW_CHANNEL == 0 { 0 } else { rights }
    }

    /// The channel whose overwrites count: the one above, for a thread.
    fn place_of_rights<'a>(&'a self, channel: &'a Channel) -> Option<&'a Channel> {
        match &channel.kind {
            ChannelKind::Thread(thread) => self.channels.get(&thread.parent),
            ChannelKind::Text { .. } | ChannelKind::Category { .. } | ChannelKind::Dm { .. } => {
                Some(channel)
            }
        }
    }

    /// Whether a user sees a channel at all.
    pub(crate) fn sees(&self, user: Id, channel: &Channel) -> bool {
        if let Some(recipients) = channel.recipients() {
            return recipients.contains(&user);
        }
        let rights = self.rights(user, Some(channel));
        let invited = channel.thread().is_none_or(|it| !it.private || it.members.contains(&user));
        rights & right::VIEW_CHANNEL != 0 && (invited || rights & right::MANAGE_THREADS != 0)
    }

    /// The channel, if the user sees it and holds the rights there. Direct conversations know none.
    pub(crate) fn may(&self, user: Id, channel: Id, wanted: u64) -> Result<&Channel, Refusal> {
        let channel = self.channel_for(channel, user)?;
        if channel.recipients().is_some() || self.rights(user, Some(channel)) & wanted == wanted {
            Ok(channel)
        } else {
            Err(Refusal::MissingPermissions)
        }
    }

    /// Refuses any guild but the one there is, those outside, and members without the rights.
    pub(crate) fn may_in_guild(&self, user: Id, guild: Id, wanted: u64) -> Result<(), Refusal> {
        self.check_member(guild, user)?;
        if self.rights(user, None) & wanted == wanted {
            Ok(())
        } else {
            Err(Refusal::MissingPermissions)
        }
    }

    /// The bots that hear what happens in a channel.
    pub(crate) fn listeners(&self, channel: Id) -> Vec<Id> {
        let Some(channel) = self.channels.get(&channel) else {
            return self.member_bots();
        };
        let bots = self.users.values().filter(|user| user.bot && self.sees(user.id, channel));
        bots.map(|user| user.id).collect()
    }

    /// The bots in the guild.
    pub(crate) fn member_bots(&self) -> Vec<Id> {
        self.users.values().filter(|user| user.bot && user.member).map(|user| user.id).collect()
    }

    /// The highest role of a member; the owner stands above all.
    pub(crate) fn rank(&self, user: Id) -> u32 {
        let Some(found) = self.users.get(&user) else {
            return 0;
        };
        if self.guild.as_ref().is_some_and(|meta| meta.owner == user) {
            return u32::MAX;
        }
        let roles = found.roles.iter().filter_map(|id| self.roles.get(id));
        roles.map(|role| role.position).max().unwrap_or(0)
    }
}

fn overwritten(base: u64, overwrites: &[Overwrite], everyone: Id, user: &User) -> u64 {
    let mut rights = base;
    if let Some(all) = overwrites.iter().find(|it| it.id == everyone) {
        rights = rights & !all.deny | all.allow;
    }
    let (mut allow, mut deny) = (0, 0);
    for overwrite in overwrites.iter().filter(|it| it.id != everyone) {
        if user.roles.contains(&overwrite.id) {
            allow |= overwrite.allow;
            deny |= overwrite.deny;
        }
    }
    rights = rights & !deny | allow;
    if let Some(own) = overwrites.iter().find(|it| it.id == user.id) {
        rights = rights & !own.deny | own.allow;
    }
    rights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> Id {
        number.to_string().parse().unwrap()
    }

    #[test]
    fn a_members_own_overwrite_beats_roles_and_those_beat_everyone() {
        let user: User = serde_json::from_value(serde_json::json!({
            "id": "9", "name": "bot", "display": "Bot", "bot": true, "token": "t", "roles": ["2", "3"],
        }))
        .unwrap();
        let over =
            |number, allow, deny| Overwrite { id: id(number), member: number == 9, allow, deny };
        let (a, b, c) = (1, 2, 4);
        let all = [over(1, 0, a | b | c), over(2, a | b, 0), over(3, 0, b), over(9, c, a)];
        // Everyone loses all three; role 2 gives back a and b, which beats role 3; the member's own
        // overwrite gives c and takes a.
        assert_eq!(overwritten(a | b | c, &all, id(1), &user), b | c);
        assert_eq!(overwritten(a | b | c, &all[..1], id(1), &user), 0);
        assert_eq!(overwritten(a, &all[2..3], id(1), &user), a);
    }
}
