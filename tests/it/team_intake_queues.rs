//! What takes time before a message can be taken in (rights, files) holds up nobody else, and loses nothing.

use serde_json::{Value, json};

use crate::support::guild::Caller;
use crate::support::house::{House, Plan, words};

/// The answers to a message in #general.
async fn answers(house: &House, message: &str) -> Vec<String> {
    let all = house.messages("general").await;
    let to = |it: &&Value| it["message_reference"]["message_id"] == message;
    all.iter().filter(to).map(words).collect()
}

async fn is_answered(house: &House, message: &str) {
    let fits = |it: &Value| it["message_reference"]["message_id"] == message;
    house.heard("general", "an answer", fits).await;
}

/// Somebody whose right to ask comes with a server role.
async fn guest_by_role(house: &mut House) {
    let bot = Caller::bot(&house.running.info, "teams");
    let home = format!("/guilds/{}", house.running.info.guild_id);
    let role = bot.ok("POST", &format!("{home}/roles"), json!({"name": "askers"})).await;
    let guest = house.running.info.users["guest"].id.clone();
    let path = format!("{home}/members/{guest}");
    bot.ok("PATCH", &path, json!({"roles": [role["id"]]})).await;
    house.allow(&format!("ask: {{roles: [{}]}}", role["id"]));
}

#[tokio::test]
async fn who_may_ask_is_looked_up_until_there_is_an_answer_and_holds_nobody_up() {
    let mut house = House::built(Plan::default()).await;
    guest_by_role(&mut house).await;
    house.start();
    house.reads("startup", "The team is up").await;
    house.quiet().await;
    house.stop().await;
    let words_of = |text: &str| json!({"channel": "general", "content": text});
    let status = format!("{} status", house.mention());
    // While the team is away, the one whose rights cannot be looked up writes first.
    let first = house.write(&house.guest, words_of(&status)).await;
    let owners = house.ask("status").await;
    let down = json!({"rest": [
        {"method": "GET", "path_contains": "/members/", "status": 503, "times": 100_000},
    ]});
    house.faults(down.clone()).await;
    house.start();
    is_answered(&house, &owners).await;
    assert_eq!(answers(&house, &first).await, Vec::<String>::new(), "nothing is known of them");
    house.logs("the rights of a message's author are not known yet", 1).await;
    let (_, health, _) = house.teams(&["health"]).await;
    assert!(health.contains("cannot be looked up"), "{health}");
    house.quiet().await;
    // A restart forgets nobody, and answers nobody twice.
    house.stop().await;
    house.start();
    let again = house.ask("status").await;
    is_answered(&house, &again).await;
    assert_eq!(answers(&house, &first).await, Vec::<String>::new());
    house.faults(json!({"clear": true})).await;
    is_answered(&house, &first).await;
    let (_, health, _) = house.teams(&["health"]).await;
    assert!(!health.contains("cannot be looked up"), "{health}");
    house.quiet().await;
    for message in [&first, &owners, &again] {
        let said = answers(&house, message).await;
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("open"), "{said:?}");
    }
    house.close().await;
}

#[tokio::test]
async fn a_file_that_does_not_come_holds_up_no_other_person_and_is_read_again_after_a_restart() {
    let mut house = House::built(Plan::default()).await;
    let guest = house.running.info.users["guest"].id.clone();
    house.allow(&format!("ask: {{users: [\"{guest}\"]}}"));
    house.start();
    house.reads("startup", "The team is up").await;
    house
        .faults(json!({"rest": [
            {"path_contains": "/attachments/", "trouble": "hang", "times": 100},
        ]}))
        .await;
    let upload =
        house.owner.request("POST", "/_local/upload?filename=notes.md").body("x".repeat(70_000));
    let file: Value = upload.send().await.unwrap().json().await.unwrap();
    let content = format!("{} status", house.mention());
    let body = json!({"channel": "general", "content": content, "attachments": [file["id"]]});
    let slow = house.write(&house.owner, body).await;
    let after = house.ask("status").await;
    let body = json!({"channel": "general", "content": content});
    let guests = house.write(&house.guest, body).await;
    is_answered(&house, &guests).await;
    assert_eq!(answers(&house, &slow).await, Vec::<String>::new(), "its file is not there");
    assert_eq!(
        answers(&house, &after).await,
        Vec::<String>::new(),
        "a person's words keep their order"
    );
    house.quiet().await;
    house.stop().await;
    house.faults(json!({"clear": true})).await;
    house.start();
    is_answered(&house, &after).await;
    house.quiet().await;
    let all = house.messages("general").await;
    let order: Vec<&str> =
        all.iter().filter_map(|it| it["message_reference"]["message_id"].as_str()).collect();
    assert_eq!(order, [guests.as_str(), &slow, &after], "each once, and in order");
    let folder = house.root().join("shared_workspace/attachments");
    let kept: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1, "whole, and no piece of it beside: {kept:?}");
    assert_eq!(kept[0].metadata().unwrap().len(), 70_000);
    house.close().await;
}
