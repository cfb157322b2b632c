//! What people write: where the team listens, to whom, and what it does with words that are no plain
//! request.

use serde_json::{Value, json};
use teams::domain::ids::RequestId;
use teams::domain::language::Language;
use teams::domain::request::RequestStatus;
use teams::domain::role::Role;

use crate::support::guild::Caller;
use crate::support::house::{EDIT, EDITED, House, Plan, words};

/// Agents that wait a little, so that there is time to write something in between. The test waits
/// for events, not for this.
const SLOW_INTAKE: &str = "- {role: orchestrator, times: 1, do: hang}\n";

#[tokio::test]
async fn a_question_is_answered_without_a_commit() {
    let house = House::open(Plan::default()).await;
    let asked = house.ask("what files are there?").await;
    let request = house.becomes(&asked, RequestStatus::Completed).await;
    let answer = house.reads("general", "no file changed").await;
    assert!(words(&answer).contains("greet.sh"), "{}", words(&answer));
    assert_eq!(answer["message_reference"]["message_id"], asked);
    assert_eq!(request.work.candidate, None);
    assert!(house.commits().is_empty());
    house.close().await;
}

#[tokio::test]
async fn a_direct_message_is_a_request_of_its_own() {
    let house = House::open(Plan::default()).await;
    let here = house.ask("what files are there?").await;
    house.becomes(&here, RequestStatus::Completed).await;
    house.quiet().await;
    let before = house.messages("general").await.len();
    let dm = house.owner.ok("POST", "/_local/dm", json!({"bot": "teams"})).await;
    let channel = dm["id"].as_str().unwrap();
    let asked = house.say(channel, EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert!(request.conversation.reply_route.is_dm);
    house.reads(channel, "**Done.**").await;
    assert_eq!(house.messages("general").await.len(), before);
    house.close().await;
}

#[tokio::test]
async fn a_role_is_addressed_by_its_server_role_and_a_room_takes_plain_words() {
    let house = House::open(Plan::default()).await;
    let state = house.owner.ok("GET", "/_local/state", Value::Null).await;
    let roles = state["guild"]["roles"].as_array().unwrap();
    let planner = roles.iter().find(|role| role["name"] == "planner").unwrap();
    let words_to_planner = format!("<@&{}> what tasks are open?", planner["id"].as_str().unwrap());
    let asked = house.say("general", &words_to_planner).await;
    let request = house.becomes(&asked, RequestStatus::Completed).await;
    assert_eq!(request.params.user_requested_role, Some(Role::Planner));
    assert_eq!(request.body, "what tasks are open?");
    house.quiet().await;
    // The request has ended: words in its room begin another one there.
    let again = house.say(&asked, EDIT).await;
    let second = house.becomes(&again, RequestStatus::Committed).await;
    assert_eq!(second.conversation.room.unwrap().thread_id.unwrap().to_string(), asked);
    // Whoever it was for is told so, and who takes in words in an ended room what ended there.
    let told = async |id: &RequestId, role: &str| {
        let (code, text, error) = house.teams(&["prompt", "show", id.as_str(), "--json"]).await;
        assert_eq!(code, 0, "{text}\n{error}");
        let runs: Vec<Value> = serde_json::from_str(&text).unwrap();
        let first = runs.iter().find(|run| run["prompt"]["role"] == role).unwrap();
        first["sent"][0]["text"].as_str().unwrap().to_owned()
    };
    house.quiet().await;
    assert_eq!(request.work.spent.turns, 1, "the planner answers it");
    let first = told(&request.request_id, "planner").await;
    let then = told(&second.request_id, "orchestrator").await;
    assert!(first.contains("# Your step: somebody wrote to you"), "{first}");
    assert!(!first.contains("# What it goes on from"), "{first}");
    let (_, ended) = then.split_once("# What it goes on from").expect("what ended there");
    assert!(ended.contains(request.request_id.as_str()) && ended.contains("what tasks are open?"));
    assert!(ended.contains("It ended as completed"), "{ended}");
    house.close().await;
}

#[tokio::test]
async fn an_ended_request_is_gone_on_from_anywhere_by_its_id() {
    let house = House::open(Plan::default()).await;
    let asked = house.ask(EDIT).await;
    let first = house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    let words = format!("{} resume {}, what files are there?", house.mention(), first.request_id);
    let again = house.say("general", &words).await;
    let second = house.becomes(&again, RequestStatus::Completed).await;
    assert_eq!(second.params.follows_request_id, Some(first.request_id.clone()));
    house.quiet().await;
    let (_, text, _) = house.teams(&["prompt", "show", second.request_id.as_str(), "--json"]).await;
    let commit = first.outcome.commit_sha.unwrap();
    assert!(text.contains("# What it goes on from") && text.contains(&commit), "{text}");
    house.close().await;
}

#[tokio::test]
async fn what_a_role_does_not_answer_goes_the_usual_way_and_says_so() {
    let house = House::open(Plan::default()).await;
    let state = house.owner.ok("GET", "/_local/state", Value::Null).await;
    let roles = state["guild"]["roles"].as_array().unwrap();
    let qa = roles.iter().find(|role| role["name"] == "qa").unwrap();
    let words = format!("<@&{}> {EDIT}", qa["id"].as_str().unwrap());
    let asked = house.say("general", &words).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.reads(&asked, "QA looked at this").await;
    house.close().await;
}

#[tokio::test]
async fn a_mention_in_a_thread_of_somebody_is_answered_there() {
    let house = House::open(Plan::default()).await;
    let body = json!({"channel": "general", "name": "chat"});
    let thread = house.owner.ok("POST", "/_local/thread", body).await;
    let thread = thread["id"].as_str().unwrap();
    let asked = house.say(thread, &format!("{} {EDIT}", house.mention())).await;
    house.becomes(&asked, RequestStatus::Committed).await;
    house.reads(thread, "**Done.**").await;
    house.reads(thread, "**QA**").await;
    house.close().await;
}

#[tokio::test]
async fn who_may_not_ask_is_told_so_and_nothing_else_happens() {
    let house = House::open(Plan::default()).await;
    let file = upload(&house.guest).await;
    let content = format!("{} {EDIT}", house.mention());
    let body = json!({"channel": "general", "content": content, "attachments": [file]});
    house.write(&house.guest, body).await;
    house.reads("general", "You may not ask").await;
    let kept = house.root().join("shared_workspace/attachments");
    assert!(!kept.exists() || kept.read_dir().unwrap().next().is_none(), "a stranger's file");
    // Not even a word where the team was not addressed, and none in the rooms of others.
    house.write(&house.guest, json!({"channel": "general", "content": "hello there"})).await;
    let asked = house.ask("what files are there?").await;
    house.becomes(&asked, RequestStatus::Completed).await;
    house.quiet().await;
    let body = json!({"channel": asked, "content": EDIT});
    house.write(&house.guest, body).await;
    let second = house.ask("what tasks are open?").await;
    house.becomes(&second, RequestStatus::Completed).await;
    assert_eq!(house.requests().len(), 2);
    house.close().await;
}

#[tokio::test]
async fn somebody_named_may_ask_and_no_more() {
    let mut house = House::built(Plan::default()).await;
    let guest = house.running.info.users["guest"].id.clone();
    house.allow(&format!("ask: {{users: [\"{guest}\"]}}"));
    house.start();
    let body = json!({"channel": "general", "content": format!("{} {EDIT}", house.mention())});
    let asked = house.write(&house.guest, body).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    // What the guest asked, the guest may not approve or administer for others.
    assert_eq!(request.conversation.reply_route.author_name, "Guest");
    house.close().await;
}

#[tokio::test]
async fn empty_endless_and_hollow_messages_get_a_word_and_no_request() {
    let more = "limits: {message_chars: 200}\n".to_owned();
    let house = House::open(Plan { more, ..Plan::default() }).await;
    house.say("general", &house.mention()).await;
    house.reads("general", "There is nothing to work on").await;
    house.ask(&"long ".repeat(100)).await;
    house.reads("general", "at most 200 characters").await;
    let planner = format!("{0} {0} {0}", house.mention());
    house.say("general", &planner).await;
    house
        .until("a second word about nothing", async |house: &House| {
            let general = house.messages("general").await;
            let hollow = general.iter().filter(|it| words(it).contains("nothing to work on"));
            (hollow.count() == 2).then_some(())
        })
        .await;
    assert!(house.requests().is_empty());
    house.close().await;
}

/// A file whose name would like to be elsewhere; its id.
async fn upload(person: &crate::support::guild::Caller) -> String {
    let upload = person
        .request("POST", "/_local/upload?filename=..%2Fnotes%20final.txt")
        .header("content-type", "text/plain")
        .body("the notes");
    let (status, file) = crate::support::guild::answer(upload.send().await.unwrap()).await;
    assert_eq!(status, 200, "{file}");
    file["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_file_comes_along() {
    let house = House::open(Plan::default()).await;
    let file = upload(&house.owner).await;
    let content = format!("{} {EDIT}", house.mention());
    let body = json!({"channel": "general", "content": content, "attachments": [file]});
    let asked = house.write(&house.owner, body).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    let [path] = request.artifacts.as_slice() else { panic!("{:?}", request.artifacts) };
    assert!(path.starts_with("shared_workspace/attachments/"), "{path}");
    assert_eq!(std::fs::read_to_string(house.root().join(path)).unwrap(), "the notes");
    house.close().await;
}

#[tokio::test]
async fn the_same_words_again_are_the_same_request() {
    let mut house = House::built(Plan::script(SLOW_INTAKE)).await;
    house.start();
    let asked = house.ask(EDIT).await;
    let request = house.request(&asked, "it is taken in", |_| true).await;
    house.ask(EDIT).await;
    let word = house.reads("general", "already being worked on").await;
    assert!(words(&word).contains(request.request_id.as_str()));
    // Words in its room, while it works, are read by the next run.
    house.say(&asked, "and be kind").await;
    let steered =
        house.request(&asked, "the words are noted", |it| !it.params.followups.is_empty()).await;
    assert_eq!(steered.params.followups[0].body, "and be kind");
    assert_eq!(house.requests().len(), 1);
    let (code, text, error) =
        house.teams(&["request", "cancel", request.request_id.as_str()]).await;
    assert_eq!(code, 0, "{text}{error}");
    house.becomes(&asked, RequestStatus::Cancelled).await;
    house.close().await;
}

#[tokio::test]
async fn a_queued_message_can_be_edited_and_withdrawn() {
    // Nobody serves the orchestrator at first, so that both wait.
    let plan = Plan { arguments: vec!["--agent".into(), "qa".into()], ..Plan::default() };
    let mut house = House::open(plan).await;
    let edited = house.ask("what files are there?").await;
    let deleted = house.ask("what tasks are open?").await;
    for message in [&edited, &deleted] {
        house.request(message, "it is taken in", |_| true).await;
    }
    house.quiet().await;
    let content = format!("{} {EDIT}", house.mention());
    let body = json!({"channel": "general", "message": edited, "content": content});
    house.owner.ok("POST", "/_local/edit", body).await;
    let gone = house.request(&deleted, "it is taken in", |_| true).await;
    let body = json!({"channel": "general", "message": deleted});
    house.owner.ok("POST", "/_local/delete", body).await;
    house
        .until("it is withdrawn", async |house: &House| {
            let all = house.requests();
            let found = all.into_iter().find(|it| it.request_id == gone.request_id)?;
            (found.status == RequestStatus::Cancelled).then_some(())
        })
        .await;
    house.request(&edited, "it has the new words", |it| it.body == EDIT).await;
    house.quiet().await;
    house.stop().await;
    house.arguments(&[]);
    house.start();
    house.becomes(&edited, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn korean_words_get_korean_words() {
    let house = House::open(Plan::default()).await;
    let asked = house.ask("greet.sh에서 \"hello\"를 \"good morning\"로 바꿔줘").await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(request.conversation.language, Language::Ko);
    house.quiet().await;
    for place in ["general", &asked] {
        for message in house.messages(place).await {
            let text = words(&message);
            let plain = message["author"]["id"] == house.running.info.users["owner"].id.as_str();
            let korean = text.chars().any(|c| ('가'..='힣').contains(&c));
            assert!(plain || text.trim().is_empty() || korean, "{text}");
        }
    }
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    house.close().await;
}

#[tokio::test]
async fn another_bot_is_heard_only_where_it_is_trusted() {
    let house = House::open(Plan::default()).await;
    let bot = Caller::bot(&house.running.info, "designer");
    let general = &house.running.info.channels["general"];
    let body = json!({"content": format!("{} {EDIT}", house.mention())});
    bot.ok("POST", &format!("/channels/{general}/messages"), body).await;
    let asked = house.ask("what files are there?").await;
    house.becomes(&asked, RequestStatus::Completed).await;
    assert_eq!(house.requests().len(), 1);
    house.close().await;
}
