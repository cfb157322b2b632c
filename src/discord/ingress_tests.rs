//! What people write becomes facts: tables.

use serde_json::{Value, json};

use super::*;

const US: u64 = 900;
const APP: u64 = 901;
const DEVELOPER: u64 = 902;
const PLANNER_ROLE: u64 = 950;
const OWN_ROLE: u64 = 953;
const OTHER_ROLE: u64 = 954;

fn us() -> Identity {
    let mut us = Identity::default();
    us.bots.insert(UserId(US), None);
    us.bots.insert(UserId(DEVELOPER), Some(Role::Developer));
    us.applications.insert(APP);
    us.persona_names.insert("planner".to_owned(), Role::Planner);
    us.note_server_role(ServerRoleId(PLANNER_ROLE), "Planner", None);
    us.note_server_role(ServerRoleId(OWN_ROLE), "teams", Some(UserId(US)));
    us.note_server_role(ServerRoleId(OTHER_ROLE), "another", Some(UserId(7)));
    us
}

fn user(id: u64, bot: bool) -> Value {
    json!({"id": id.to_string(), "username": format!("u{id}"), "discriminator": "0", "avatar": null, "bot": bot})
}

fn payload(content: &str, more: Value) -> Payload {
    let mut value = json!({
        "id": "1000", "channel_id": "10", "guild_id": "20", "author": user(7, false),
        "content": content, "timestamp": "2026-03-24T00:00:00Z", "edited_timestamp": null,
        "tts": false, "mention_everyone": false, "mentions": [], "mention_roles": [],
        "attachments": [], "embeds": [], "pinned": false, "type": 0,
    });
    for (key, field) in more.as_object().unwrap() {
        value[key] = field.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn heard(content: &str, more: Value) -> Message {
    let payload = payload(content, more);
    message(&payload, &Origin::default(), &us()).unwrap().message
}

fn mentions(ids: &[u64]) -> Value {
    json!({"mentions": ids.iter().map(|id| user(*id, *id >= US)).collect::<Vec<_>>()})
}

#[test]
fn the_role_that_discord_made_for_our_bot_addresses_the_team() {
    let own = heard("<@&953> fix it", json!({ "mention_roles": ["953"] }));
    assert!(own.addressed && own.role.is_none());
    assert_eq!(own.content, "fix it");
    let other = heard("<@&954> fix it", json!({ "mention_roles": ["954"] }));
    assert!(!other.addressed && other.content.starts_with("<@&954>"));
}

#[test]
fn what_somebody_forwards_is_read_as_a_quotation() {
    let file = json!({ "id": "5", "filename": "shot.png", "size": 3, "url": "http://a/b", "proxy_url": "http://a/b" });
    let original = json!({
        "content": "It crashes\nat once", "timestamp": "2026-03-24T00:00:00Z", "edited_timestamp": null,
        "mentions": [], "attachments": [file], "embeds": [], "type": 0,
    });
    let message = heard("", json!({ "message_snapshots": [{ "message": original }] }));
    assert_eq!(message.content, "> It crashes\n> at once");
    assert_eq!(message.attachments[0].filename, "shot.png");
}

#[test]
fn only_addressing_mentions_at_the_edges_go() {
    let table = [
        ("<@900> do it", "do it"),
        ("<@!900>   do it", "do it"),
        ("do it <@900>", "do it"),
        ("<@900><@900> do it", "do it"),
        ("do <@900> it", "do <@900> it"),
        ("<@900>\n\tindented\n  more", "\tindented\n  more"),
        ("<@900> ", ""),
        ("<@7> do it", "<@7> do it"),
        ("  a: 1\n    b: 2", "  a: 1\n    b: 2"),
    ];
    for (content, body) in table {
        assert_eq!(heard(content, mentions(&[US])).content, body, "{content:?}");
    }
    // What Discord does not list as a mention is text.
    assert_eq!(heard("<@900> x", json!({})).content, "<@900> x");
}

#[test]
fn who_is_addressed() {
    let nobody = heard("hello", json!({}));
    assert!(!nobody.addressed && nobody.role.is_none());
    let bot = heard("<@900> x", mentions(&[US]));
    assert!(bot.addressed && bot.role.is_none());
    let developer = heard("x <@902>", mentions(&[DEVELOPER]));
    assert!(developer.addressed);
    assert_eq!(developer.role, Some(Role::Developer));
    let planner = heard("<@&950> x", json!({"mention_roles": ["950"]}));
    assert!(planner.addressed && planner.content == "x");
    assert_eq!(planner.role, Some(Role::Planner));
    let mut both = mentions(&[DEVELOPER]);
    both["mention_roles"] = json!(["950"]);
    assert_eq!(heard("<@&950> and <@902>", both.clone()).role, Some(Role::Planner));
    assert_eq!(heard("<@902> and <@&950>", both).role, Some(Role::Developer));
    let foreign = heard("<@&951> x", json!({"mention_roles": ["951"]}));
    assert!(!foreign.addressed);
    // Content is withheld, the mention is not.
    assert!(heard("", mentions(&[US])).addressed);
}

#[test]
fn an_answer_addresses_who_spoke() {
    let reply = |author: Value, more: Value| {
        let mut original = serde_json::to_value(payload("said", more)).unwrap();
        original["author"] = author;
        heard("thanks", json!({"type": 19, "referenced_message": original}))
    };
    let bot = reply(user(US, true), json!({}));
    assert!(bot.addressed && bot.role.is_none());
    assert_eq!(reply(user(DEVELOPER, true), json!({})).role, Some(Role::Developer));
    let mut persona = user(55, true);
    persona["username"] = json!("Planner");
    let hook = json!({"webhook_id": "55", "application_id": "901"});
    assert_eq!(reply(persona.clone(), hook).role, Some(Role::Planner));
    let foreign = json!({"webhook_id": "55", "application_id": "999"});
    assert!(!reply(persona, foreign).addressed);
    assert!(!reply(user(8, false), json!({})).addressed);
}

#[test]
fn ours_and_discords_own_are_not_told_and_bots_are_marked() {
    let read = |more: Value| message(&payload("x", more), &Origin::default(), &us());
    assert_eq!(read(json!({"author": user(US, true)})), Err(NotForUs::Own));
    let hook = json!({"webhook_id": "55", "application_id": "901"});
    assert_eq!(read(hook), Err(NotForUs::Own));
    for kind in [6, 7, 18, 21] {
        assert_eq!(read(json!({"type": kind})), Err(NotForUs::System));
    }
    assert!(read(json!({"author": user(8, true)})).unwrap().message.author.is_bot);
    assert!(read(json!({"webhook_id": "55"})).unwrap().message.author.is_bot);
}

#[test]
fn a_direct_message_is_addressed_and_rest_answers_are_completed() {
    let mut direct = serde_json::to_value(payload("x", json!({}))).unwrap();
    direct.as_object_mut().unwrap().remove("guild_id");
    let direct: Payload = serde_json::from_value(direct).unwrap();
    let heard = message(&direct, &Origin::default(), &us()).unwrap().message;
    assert!(heard.addressed && heard.guild_id.is_none());
    let origin = Origin { guild_id: Some(GuildId(20)), server_roles: vec![ServerRoleId(5)] };
    let heard = message(&direct, &origin, &us()).unwrap().message;
    assert!(!heard.addressed);
    assert_eq!(heard.author.server_roles, [ServerRoleId(5)]);
}

#[test]
fn a_name_that_is_written_out_addresses_the_team_like_a_mention() {
    let table = [
        ("@teams do it", true, "do it"),
        ("  @Teams\ndo it", true, "do it"),
        ("@TEAMS", true, ""),
        ("@teams, do it", true, "do it"),
        ("@teamsters do it", false, "@teamsters do it"),
        ("@teams.example do it", false, "@teams.example do it"),
        ("tell @teams", false, "tell @teams"),
        ("@팀 do it", false, "@팀 do it"),
        ("```\n@teams do it\n```", false, "```\n@teams do it\n```"),
    ];
    for (text, addressed, content) in table {
        let message = heard(text, json!({}));
        assert_eq!((message.addressed, message.content.as_str()), (addressed, content), "{text:?}");
    }
}
