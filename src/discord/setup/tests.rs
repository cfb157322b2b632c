//! The plan and the permissions, as values.

use std::collections::{BTreeMap, BTreeSet};

use super::permissions::{self, MANAGE_CHANNELS, MANAGE_WEBHOOKS, Use};
use super::snapshot::{Overwrite, OverwriteKind};
use super::*;
use crate::discord::endpoints::Webhook;
use crate::domain::ids::{ChannelId, GuildId, ServerRoleId, UserId};
use crate::domain::role::Role;

const GUILD: GuildId = GuildId(1);
const ME: UserId = UserId(9);

fn role(id: u64, name: &str, permissions: u64) -> (ServerRoleId, ServerRole) {
    let id = ServerRoleId(id);
    let name = name.to_owned();
    (id, ServerRole { id, name, permissions, mentionable: true, managed: false })
}

fn channel(id: u64, kind: u8, name: &str) -> (ChannelId, ServerChannel) {
    let id = ChannelId(id);
    let overwrites = Vec::new();
    let name = name.to_owned();
    (id, ServerChannel { id, kind, name, parent_id: None, permission_overwrites: overwrites })
}

fn seen() -> ServerSnapshot {
    ServerSnapshot {
        guild: GUILD,
        name: "g".to_owned(),
        me: ME,
        my_roles: vec![ServerRoleId(2)],
        mine: false,
        roles: BTreeMap::from([role(1, "@everyone", 0), role(2, "Teams", 0)]),
        channels: BTreeMap::new(),
        hooks: Some(Vec::new()),
    }
}

fn wanted() -> ServerRequirements {
    ServerRequirements {
        application: 7,
        places: TeamChannel::ALL.map(|place| (place, None)).into(),
        hooks: true,
        approver: true,
        ..ServerRequirements::default()
    }
}

fn journal() -> (tempfile::TempDir, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(&folder.path().join("made.json")).unwrap();
    (folder, journal)
}

#[test]
fn the_invite_link_carries_exactly_the_table() {
    let all = permissions::bits(&[Use::Always, Use::Pin, Use::Personas, Use::Setup]);
    // View, send, threads, embed, attach, history, react, pin; webhooks; channels, roles.
    assert_eq!(all, 310_043_069_520 + (1 << 51));
    let personas = permissions::bits(&[Use::Always, Use::Personas]);
    assert_eq!(personas & MANAGE_CHANNELS, 0);
    assert_eq!(all & (1 << 3), 0, "never Administrator");
    assert_eq!(
        permissions::invite("https://discord.com/", 7, 64, Some(GUILD)),
        "https://discord.com/oauth2/authorize?client_id=7&permissions=64&scope=bot%20applications.commands\
         &guild_id=1&disable_guild_select=true"
    );
    let names: Vec<_> =
        permissions::missing(all & !MANAGE_WEBHOOKS, all).into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["Manage Webhooks"]);
}

#[test]
fn permissions_are_those_that_discord_computes() {
    const VIEW: u64 = 1 << 10;
    const SEND: u64 = 1 << 11;
    let mut seen = seen();
    seen.roles.insert(ServerRoleId(1), role(1, "@everyone", VIEW).1);
    seen.roles.insert(ServerRoleId(2), role(2, "Teams", SEND).1);
    assert_eq!(seen.may(), VIEW | SEND);
    let (_, mut room) = channel(5, 0, "x");
    assert_eq!(seen.may_in(&room), VIEW | SEND);
    let overwrite = |id, kind, allow, deny| Overwrite { id, kind, allow, deny };
    room.permission_overwrites = vec![overwrite(1, OverwriteKind::Role, 0, SEND)];
    assert_eq!(seen.may_in(&room), VIEW);
    room.permission_overwrites.push(overwrite(2, OverwriteKind::Role, SEND, 0));
    assert_eq!(seen.may_in(&room), VIEW | SEND);
    room.permission_overwrites.push(overwrite(ME.0, OverwriteKind::Member, 0, SEND));
    assert_eq!(seen.may_in(&room), VIEW);
    room.permission_overwrites.push(overwrite(3, OverwriteKind::Role, 0, VIEW));
    assert_eq!(seen.may_in(&room), VIEW, "another role's exception is not ours");
    room.permission_overwrites[0].deny = VIEW;
    assert_eq!(seen.may_in(&room), 0, "without a view there is nothing");
    seen.roles.insert(ServerRoleId(2), role(2, "Teams", 1 << 3).1);
    assert_eq!(seen.may_in(&room), u64::MAX, "administrators are above channels");
    seen.roles.insert(ServerRoleId(2), role(2, "Teams", 0).1);
    seen.mine = true;
    assert_eq!(seen.may(), u64::MAX);
}

#[test]
fn in_an_empty_server_everything_is_made() {
    let (_folder, journal) = journal();
    for thing in ServerObject::all() {
        assert_eq!(wanted().standing(thing, &seen(), &journal), Standing::Missing, "{thing}");
    }
    let hooks = ServerObject::all().filter(|thing| thing.kind() == "webhook").count();
    assert!(hooks <= 8, "of the fifteen that a channel may have");
}

#[test]
fn what_is_there_is_used_and_what_is_somebody_elses_is_not() {
    let (_folder, journal) = journal();
    let mut seen = seen();
    seen.channels.extend([
        channel(10, 0, "general"),
        channel(11, 0, "report"),
        channel(12, 0, "log"),
        channel(13, 4, "Teams"),
    ]);
    seen.roles.extend([role(20, "Planner", 0), role(21, "approver", 0)]);
    let mut wanted = wanted();
    wanted.places.insert(TeamChannel::Relay, Some(ChannelId(12)));
    let standing = |thing| wanted.standing(thing, &seen, &journal);
    assert_eq!(standing(ServerObject::Channel(TeamChannel::General)), Standing::There(10));
    assert_eq!(standing(ServerObject::Channel(TeamChannel::Relay)), Standing::There(12));
    // A channel called report may hold anything.
    assert_eq!(standing(ServerObject::Channel(TeamChannel::Report)), Standing::Missing);
    assert_eq!(standing(ServerObject::Category), Standing::Missing);
    assert_eq!(standing(ServerObject::Role(Role::Planner)), Standing::There(20));
    // Whoever holds a role of that name was not asked to decide for the team.
    assert_eq!(standing(ServerObject::Approver), Standing::Missing);
    let mut configured = wanted.clone();
    configured.approvers = BTreeSet::from([ServerRoleId(21)]);
    assert_eq!(configured.standing(ServerObject::Approver, &seen, &journal), Standing::There(21));
    configured.approver = false;
    assert_eq!(configured.standing(ServerObject::Approver, &seen, &journal), Standing::NotNeeded);
}

#[test]
fn only_our_webhooks_in_the_right_channel_count() {
    let (_folder, journal) = journal();
    let mut seen = seen();
    seen.channels.extend([channel(10, 0, "general"), channel(11, 0, "other")]);
    let hook = |id, application: &str, channel| Webhook {
        id: UserId(id),
        name: Some("planner".to_owned()),
        token: None,
        application_id: Some(application.to_owned()),
        channel_id: Some(ChannelId(channel)),
        avatar: None,
    };
    seen.hooks = Some(vec![hook(30, "8", 10), hook(31, "7", 11)]);
    let thing = ServerObject::Hook(Role::Planner);
    assert_eq!(wanted().standing(thing, &seen, &journal), Standing::Missing);
    seen.hooks = Some(vec![hook(32, "7", 10)]);
    assert_eq!(wanted().standing(thing, &seen, &journal), Standing::There(32));
}

#[test]
fn no_category_is_made_for_channels_that_are_there() {
    let (_folder, journal) = journal();
    let mut seen = seen();
    seen.channels.extend([channel(10, 0, "general"), channel(12, 0, "log")]);
    let mut wanted = wanted();
    wanted.places =
        BTreeMap::from([(TeamChannel::General, None), (TeamChannel::Relay, Some(ChannelId(12)))]);
    assert_eq!(wanted.standing(ServerObject::Category, &seen, &journal), Standing::NotNeeded);
    assert_eq!(
        wanted.standing(ServerObject::Channel(TeamChannel::Startup), &seen, &journal),
        Standing::NotNeeded
    );
}

#[test]
fn the_journal_tells_what_was_made_and_what_may_have_been() {
    let (folder, mut journal) = journal();
    assert!(journal.is_empty());
    journal.begin(7, GUILD).unwrap();
    journal.intend(ServerObject::Category, vec![3]).unwrap();
    journal.note(ServerObject::Approver, 5).unwrap();
    let path = folder.path().join("made.json");
    let mut again = Journal::open(&path).unwrap();
    assert_eq!(again.intended(ServerObject::Category), Some(&[3][..]));
    assert_eq!(
        (again.made(ServerObject::Category), again.made(ServerObject::Approver)),
        (None, Some(5))
    );
    assert_eq!(
        again.things().collect::<Vec<_>>(),
        [ServerObject::Approver, ServerObject::Category]
    );
    assert_eq!(again.guild(), Some(GUILD));
    again.forget(ServerObject::Approver).unwrap();
    again.forget(ServerObject::Category).unwrap();
    assert!(again.is_empty());
    crate::platform::files::write(&path, "{").unwrap();
    assert!(matches!(Journal::open(&path), Err(JournalError::Broken { .. })));
}
