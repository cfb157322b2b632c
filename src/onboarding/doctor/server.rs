//! What is in the server, judged: permissions in each channel, channels, roles, webhooks.

use std::collections::BTreeMap;

use serde_json::json;

use super::discord::ServerView;
use super::finding::{Check, Finding, Health, Repair};
use crate::discord::setup::permissions::{self, Permission, Use};
use crate::discord::setup::{ServerObject, ServerSnapshot, Standing, TeamChannel};
use crate::domain::config::Voice;
use crate::domain::ids::{ChannelId, ServerRoleId};
use crate::domain::role::Role;
use crate::onboarding::setup::requirements;
use crate::workspace::Workspace;

/// Judges it all.
pub(super) fn judge(workspace: &Workspace, met: &ServerView, found: &mut Vec<Finding>) {
    permissions(workspace, met, found);
    channels(workspace, met, found);
    roles(workspace, met, found);
    webhooks(met, found);
}

fn standing(met: &ServerView, thing: ServerObject) -> Standing {
    met.wanted.standing(thing, &met.seen, &met.journal)
}

/// Whether setup made a thing: then it is missed when it is gone.
fn was_made(met: &ServerView, thing: ServerObject) -> bool {
    met.journal.made(thing).is_some() || met.journal.intended(thing).is_some()
}

fn names(missing: &[Permission]) -> Vec<&'static str> {
    missing.iter().map(|it| it.name).collect()
}

/// The channels in use: the named ones, and where people ask.
fn in_use(met: &ServerView) -> Vec<ChannelId> {
    let mut all: Vec<ChannelId> = Vec::new();
    for place in TeamChannel::ALL {
        if let Standing::There(id) = standing(met, ServerObject::Channel(place))
            && !all.contains(&ChannelId(id))
        {
            all.push(ChannelId(id));
        }
    }
    all
}

fn permissions(workspace: &Workspace, met: &ServerView, found: &mut Vec<Finding>) {
    let mut uses = vec![Use::Always];
    if workspace.discord.voice() == Voice::Personas {
        uses.push(Use::Personas);
    }
    let needed = permissions::bits(&uses);
    let team = (String::new(), &met.seen);
    let others = met.others.iter().map(|(role, seen)| (role.to_string(), seen));
    let mut good = Vec::new();
    let mut bad = false;
    for (role, seen) in std::iter::once(team).chain(others) {
        let everywhere = permissions::missing(seen.may(), needed);
        if !everywhere.is_empty() {
            bad = true;
            let link = permissions::invite(
                workspace.discord.base_url.as_deref().unwrap_or(crate::onboarding::setup::DISCORD),
                met.wanted.application,
                requirements::asked_for(),
                Some(seen.guild),
            );
            let values = json!({"missing": names(&everywhere), "link": link, "role": role});
            found.push(Finding::problem(Check::Permissions, "doctor.permissions.server", values));
        }
        for channel in in_use(met) {
            let Some(channel) = seen.channels.get(&channel) else {
                continue;
            };
            let missing: Vec<_> = permissions::missing(seen.may_in(channel), needed)
                .into_iter()
                // What is missing everywhere was said.
                .filter(|it| !everywhere.contains(it))
                .collect();
            if missing.is_empty() {
                if role.is_empty() {
                    good.push(channel.name.clone());
                }
            } else {
                bad = true;
                let values =
                    json!({"channel": channel.name, "missing": names(&missing), "role": role});
                found.push(Finding::problem(
                    Check::Permissions,
                    "doctor.permissions.channel",
                    values,
                ));
            }
        }
    }
    if !bad {
        let values = json!({"channels": good});
        found.push(Finding::ok(Check::Permissions, "doctor.permissions.ok", values));
    }
}

fn channels(workspace: &Workspace, met: &ServerView, found: &mut Vec<Finding>) {
    let mut there = BTreeMap::new();
    for place in TeamChannel::ALL {
        match standing(met, ServerObject::Channel(place)) {
            Standing::There(id) => {
                let name = met.seen.channels.get(&ChannelId(id)).map(|it| it.name.clone());
                there.insert(place, format!("#{}", name.unwrap_or_default()));
            }
            Standing::Missing => {
                let key = place.key().unwrap_or_default();
                let id = met.wanted.places.get(&place).copied().flatten();
                let values = json!({
                    "place": place.as_str(), "key": key,
                    "id": id.map(|id| id.to_string()).unwrap_or_default(),
                });
                let finding = Finding::problem(Check::Channels, "doctor.channels.missing", values);
                found.push(finding.repaired_by(Repair::Thing(ServerObject::Channel(place))));
            }
            Standing::NotNeeded => {
                if !requirements::is_named(&workspace.discord, place)
                    && place != TeamChannel::General
                {
                    let values = json!({"place": place.as_str()});
                    found.push(Finding::not_needed(
                        Check::Channels,
                        "doctor.channels.unnamed",
                        values,
                    ));
                }
            }
        }
    }
    if !there.is_empty() {
        let names: Vec<_> = there.into_values().collect();
        found.push(Finding::ok(Check::Channels, "doctor.channels.ok", json!({"names": names})));
    }
}

fn roles(workspace: &Workspace, met: &ServerView, found: &mut Vec<Finding>) {
    let (mut there, mut absent) = (Vec::new(), Vec::new());
    for thing in ServerObject::all().filter(|thing| matches!(thing, ServerObject::Role(_))) {
        match standing(met, thing) {
            Standing::There(_) => there.push(met.wanted.name(thing)),
            Standing::Missing if was_made(met, thing) => {
                let values = json!({"name": met.wanted.name(thing)});
                let finding = Finding::problem(Check::Roles, "doctor.roles.missing", values);
                found.push(finding.repaired_by(Repair::Thing(thing)));
            }
            Standing::Missing | Standing::NotNeeded => absent.push(met.wanted.name(thing)),
        }
    }
    if !there.is_empty() {
        found.push(Finding::ok(Check::Roles, "doctor.roles.ok", json!({"names": there})));
    }
    if !absent.is_empty() {
        found.push(Finding::not_needed(
            Check::Roles,
            "doctor.roles.unused",
            json!({"names": absent}),
        ));
    }
    gone_holders(workspace, &met.seen, met, found);
}

/// Rights of server roles that are no longer there: nobody has them.
fn gone_holders(
    workspace: &Workspace,
    seen: &ServerSnapshot,
    met: &ServerView,
    found: &mut Vec<Finding>,
) {
    let people = &workspace.runtime.people;
    let ours = met.journal.made(ServerObject::Approver).map(ServerRoleId);
    for (right, holders) in
        [("ask", &people.ask), ("approve", &people.approve), ("administer", &people.administer)]
    {
        for id in holders.roles.iter().filter(|id| !seen.roles.contains_key(*id)) {
            let values = json!({"right": right, "id": id.to_string()});
            let finding = Finding::problem(Check::Roles, "doctor.roles.gone", values);
            found.push(if right == "approve" && ours == Some(*id) {
                finding.repaired_by(Repair::Thing(ServerObject::Approver))
            } else {
                finding
            });
        }
    }
}

/// The most webhooks that a channel has.
const WEBHOOKS: usize = 15;

fn webhooks(met: &ServerView, found: &mut Vec<Finding>) {
    if !met.wanted.hooks {
        found.push(Finding::not_needed(Check::Webhooks, "doctor.webhooks.unused", json!({})));
        return;
    }
    if met.seen.hooks.is_none() {
        // That the permission is missing was said.
        return;
    }
    let (mut there, mut later) = (0, 0);
    for thing in ServerObject::all().filter(|thing| thing.kind() == "webhook") {
        match standing(met, thing) {
            Standing::There(_) => there += 1,
            Standing::Missing if was_made(met, thing) => {
                let values = json!({"name": met.wanted.name(thing)});
                let finding = Finding::problem(Check::Webhooks, "doctor.webhooks.missing", values);
                found.push(finding.repaired_by(Repair::Thing(thing)));
            }
            Standing::Missing | Standing::NotNeeded => later += 1,
        }
    }
    let Some(channel) = met.wanted.hook_channel(&met.seen, &met.journal) else { return };
    let all = met.seen.hooks.iter().flatten();
    let others = all.filter(|it| it.channel_id == Some(channel)).count() - there;
    let name = met.seen.channels.get(&channel).map(|it| it.name.as_str()).unwrap_or_default();
    let free = WEBHOOKS.saturating_sub(others);
    if there + later > free && later > 0 {
        // The team gets along: those without one share another's, or the bot speaks for them.
        let own = free.min(there + later);
        let values = json!({"channel": name, "own": own, "others": there + later - own});
        found.push(Finding::ok(Check::Webhooks, "doctor.webhooks.shared", values));
    } else if there > 0 || later > 0 {
        let health = if there > 0 { Health::Ok } else { Health::NotNeeded };
        let values = json!({"there": there, "later": later});
        found.push(Finding::new(Check::Webhooks, health, "doctor.webhooks.ok", values));
    }
    let bare: Vec<String> = Role::PUBLIC
        .into_iter()
        .map(ServerObject::Hook)
        .filter(|thing| {
            let voice = met.wanted.voice(*thing, channel, &met.seen);
            voice.is_some_and(|hook| hook.avatar.is_none())
        })
        .map(|thing| met.wanted.name(thing))
        .collect();
    if !bare.is_empty() {
        let values = json!({"names": bare});
        found.push(Finding::not_needed(Check::Webhooks, "doctor.webhooks.bare", values));
    }
}
