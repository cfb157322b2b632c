//! Which permissions the bot needs and what for, and which it has: the one table that the invite link, the
//! checks and their texts are made from.

use std::collections::BTreeMap;

use crate::discord::setup::snapshot::{
    Overwrite, OverwriteKind, ServerChannel, ServerRole, ServerSnapshot,
};
use crate::domain::ids::{GuildId, ServerRoleId, UserId};

/// When a permission is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// All the time.
    Always,
    /// Where the roles speak through webhooks.
    Personas,
    /// To pin the board of a sprint, which is read without that as well.
    Pin,
    /// To make channels and roles; it may be taken away afterwards.
    Setup,
}

/// A permission of Discord that the team uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// Its bit.
    pub bit: u64,
    /// Its name on Discord's English pages, which is the one that people look for.
    pub name: &'static str,
    /// When it is used.
    pub used: Use,
    /// What for; a key of the catalog.
    pub why: &'static str,
}

/// Holders may do everything, whatever a channel says.
const ADMINISTRATOR: u64 = 1 << 3;
/// Without it nothing else counts in a channel.
const VIEW_CHANNEL: u64 = 1 << 10;
/// Making and removing channels.
pub const MANAGE_CHANNELS: u64 = 1 << 4;
/// Making and removing roles.
pub const MANAGE_ROLES: u64 = 1 << 28;
/// Making and removing webhooks.
pub const MANAGE_WEBHOOKS: u64 = 1 << 29;

/// Everything that the team uses, and nothing else.
pub const TABLE: [Permission; 12] = [
    always(VIEW_CHANNEL, "View Channels", "permission.view"),
    always(1 << 11, "Send Messages", "permission.send"),
    always(1 << 38, "Send Messages in Threads", "permission.send_threads"),
    always(1 << 35, "Create Public Threads", "permission.threads"),
    always(1 << 14, "Embed Links", "permission.embed"),
    always(1 << 15, "Attach Files", "permission.attach"),
    always(1 << 16, "Read Message History", "permission.history"),
    always(1 << 6, "Add Reactions", "permission.react"),
    Permission { bit: 1 << 51, name: "Pin Messages", used: Use::Pin, why: "permission.pin" },
    Permission {
        bit: MANAGE_WEBHOOKS,
        name: "Manage Webhooks",
        used: Use::Personas,
        why: "permission.webhooks",
    },
    Permission {
        bit: MANAGE_CHANNELS,
        name: "Manage Channels",
        used: Use::Setup,
        why: "permission.channels",
    },
    Permission {
        bit: MANAGE_ROLES,
        name: "Manage Roles",
        used: Use::Setup,
        why: "permission.roles",
    },
];

const fn always(bit: u64, name: &'static str, why: &'static str) -> Permission {
    Permission { bit, name, used: Use::Always, why }
}

/// The permissions for these uses as the number that an invite link carries.
#[must_use]
pub fn bits(uses: &[Use]) -> u64 {
    TABLE.iter().filter(|it| uses.contains(&it.used)).fold(0, |all, it| all | it.bit)
}

/// What is missing from `has`, in the order of the table.
#[must_use]
pub fn missing(has: u64, wanted: u64) -> Vec<Permission> {
    TABLE.into_iter().filter(|it| it.bit & wanted & !has != 0).collect()
}

/// The link by which a person brings the bot into a server.
#[must_use]
pub fn invite(
    base_url: &str,
    application: u64,
    permissions: u64,
    guild: Option<GuildId>,
) -> String {
    let mut link = format!(
        "{}/oauth2/authorize?client_id={application}&permissions={permissions}\
         &scope=bot%20applications.commands",
        base_url.trim_end_matches('/')
    );
    if let Some(guild) = guild {
        link.push_str(&format!("&guild_id={guild}&disable_guild_select=true"));
    }
    link
}

/// A member as far as permissions go.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// Who.
    pub user: UserId,
    /// The roles, that of everyone left out.
    pub roles: &'a [ServerRoleId],
    /// Whether the server is theirs.
    pub owner: bool,
}

impl ServerSnapshot {
    fn member(&self) -> Member<'_> {
        Member { user: self.me, roles: &self.my_roles, owner: self.mine }
    }

    /// What the bot may do in the server.
    #[must_use]
    pub fn may(&self) -> u64 {
        in_guild(self.guild, &self.roles, self.member())
    }

    /// What the bot may do in a channel.
    #[must_use]
    pub fn may_in(&self, channel: &ServerChannel) -> u64 {
        in_channel(self.guild, &self.roles, self.member(), channel)
    }
}

/// What a member may do in a server as such: that of everyone and of each role together.
#[must_use]
pub fn in_guild(
    guild: GuildId,
    roles: &BTreeMap<ServerRoleId, ServerRole>,
    member: Member<'_>,
) -> u64 {
    if member.owner {
        return u64::MAX;
    }
    let everyone = ServerRoleId(guild.0);
    let held = std::iter::once(&everyone).chain(member.roles);
    let all = held.filter_map(|id| roles.get(id)).fold(0, |all, role| all | role.permissions);
    if all & ADMINISTRATOR != 0 { u64::MAX } else { all }
}

/// What a member may do in a channel: the server's, changed by the channel for everyone, then for the roles
/// together, then for the member.
#[must_use]
pub fn in_channel(
    guild: GuildId,
    roles: &BTreeMap<ServerRoleId, ServerRole>,
    member: Member<'_>,
    channel: &ServerChannel,
) -> u64 {
    let base = in_guild(guild, roles, member);
    if base == u64::MAX {
        return base;
    }
    let of = |kind: OverwriteKind, id: u64| {
        channel.permission_overwrites.iter().find(move |it| it.kind == kind && it.id == id)
    };
    let change = |has: u64, by: Option<&Overwrite>| {
        by.map_or(has, |overwrite| (has & !overwrite.deny) | overwrite.allow)
    };
    let mut has = change(base, of(OverwriteKind::Role, guild.0));
    let held = member.roles.iter().filter_map(|role| of(OverwriteKind::Role, role.0));
    let (allow, deny) = held.fold((0, 0), |(allow, deny), it| (allow | it.allow, deny | it.deny));
    has = (has & !deny) | allow;
    has = change(has, of(OverwriteKind::Member, member.user.0));
    if has & VIEW_CHANNEL == 0 { 0 } else { has }
}
