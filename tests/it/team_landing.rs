//! The queue to the branch: requests that end at the same time, and two that change the same line.

use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;

use serde_json::Value;
use teams::domain::effect::{Effect, EffectState};
use teams::domain::request::{Request, RequestStatus};
use teams::domain::role::Role;
use teams::domain::time::Timestamp;
use teams::platform::plug::{PLUG_VARIABLE, Point};

use crate::support::house::{House, Plan, words};

/// Works as soon as somebody says so.
const WAITS: &str = "- {role: developer, contains: evening, times: 1, do: listen, text: go on}\n";
const MORNING: &str = "in greet.sh replace \"hello\" with \"good morning\"";
const EVENING: &str = "in greet.sh replace \"hello\" with \"good evening\"";

/// Waits until the developer of a request is at work.
async fn developer_waits(house: &House, asked: &str) {
    house
        .request(asked, "the developer is at work", |request| {
            request.work.active_run.is_some() && request.route.current_role == Some(Role::Developer)
        })
        .await;
}

/// Tells the developer who waits to go on.
async fn lets_it_go_on(house: &House, asked: &str) {
    developer_waits(house, asked).await;
    house.say(asked, "go on").await;
}

/// The prompts that a role was given on an ended request, in order.
pub(crate) async fn prompts(house: &House, request: &Request, role: &str) -> Vec<String> {
    let id = request.request_id.as_str();
    let (code, text, error) = house.teams(&["prompt", "show", id, "--json"]).await;
    assert_eq!(code, 0, "{text}\n{error}");
    let runs: Vec<Value> = serde_json::from_str(&text).unwrap();
    let of_role = runs.iter().filter(|run| run["prompt"]["role"] == role);
    of_role.map(|run| run["sent"][0]["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_requests_at_once_on_ten_files_end_in_ten_commits() {
    let house = House::open(Plan::default()).await;
    let mut asked = Vec::new();
    for number in 0..10 {
        asked.push(house.ask(&format!("create notes{number}.md with \"note {number}\"")).await);
    }
    // On a busy machine all of them take long before the first one is there.
    let moves = |house: &House| -> Vec<(RequestStatus, Timestamp)> {
        house.requests().iter().map(|it| (it.status, it.updated_at)).collect()
    };
    let mut moved = Vec::new();
    while !house.requests().iter().all(|request| request.status == RequestStatus::Committed) {
        moved = house
            .until("one of them moves on", async |house: &House| {
                Some(moves(house)).filter(|now| *now != moved)
            })
            .await;
        let blocked = house.requests().into_iter().find_map(|request| request.blocked);
        assert_eq!(blocked, None);
    }
    let mut commits = Vec::new();
    for (number, asked) in asked.iter().enumerate() {
        let request = house.becomes(asked, RequestStatus::Committed).await;
        // What landed is what was proven.
        let commit = request.outcome.commit_sha.clone().unwrap();
        assert_eq!(request.work.evidence.unwrap().commit, commit);
        assert_eq!(house.on_branch(&format!("notes{number}.md")), format!("note {number}\n"));
        assert!(!commits.contains(&commit));
        commits.push(commit);
    }
    assert_eq!(house.commits().len(), 10);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_requests_that_change_the_same_line_both_land_and_each_is_told_of_the_other() {
    let house = House::open(Plan::script(WAITS)).await;
    let evening = house.ask(EVENING).await;
    developer_waits(&house, &evening).await;
    let morning = house.ask(MORNING).await;
    let first = house.becomes(&morning, RequestStatus::Committed).await;
    lets_it_go_on(&house, &evening).await;
    let second = house.becomes(&evening, RequestStatus::Committed).await;
    house.quiet().await;
    assert_eq!(house.on_branch("greet.sh"), "echo good evening\n");
    assert_eq!(house.commits().len(), 2);
    assert_eq!(
        second.work.evidence.as_ref().unwrap().commit,
        second.outcome.commit_sha.clone().unwrap()
    );
    assert_eq!((house.times(&second, "conflict"), second.work.conflict.is_none()), (1, true));
    // What it costs to bring them together is charged to the later one.
    let turns = |request: &Request| request.work.spent.turns;
    assert!(turns(&second) > turns(&first));
    // The room is told what is so: it stands on the new head, with both versions to be brought together.
    let room: Vec<String> = house.messages(&evening).await.iter().map(words).collect();
    let told = |part: &str| room.iter().filter(|it| it.contains(part)).count();
    assert_eq!(
        (told("both versions marked"), told("and the checks run again")),
        (1, 0),
        "{room:#?}"
    );
    // Whoever brings them together wrote neither, and has both sides' changes, words and criteria.
    let built = prompts(&house, &second, "developer").await;
    assert!(built.len() == 1 && !built[0].contains("# What the branch changed meanwhile"));
    let solved = prompts(&house, &second, "conflict_resolver").await;
    assert_eq!(solved.len(), 1);
    let criterion = first.work.criteria.first().unwrap().to_string();
    assert_eq!(second.work.others_criteria, first.work.criteria);
    let judged = prompts(&house, &second, "qa").await;
    assert!(judged.last().unwrap().contains(&criterion), "{judged:#?}");
    let wanted = [
        "# What the branch changed meanwhile",
        "+echo good morning",
        "+echo good evening",
        first.request_id.as_str(),
        "replace \"hello\" with \"good morning\"",
        "replace \"hello\" with \"good evening\"",
    ];
    for wanted in wanted.into_iter().chain([criterion.as_str()]) {
        assert!(solved[0].contains(wanted), "{wanted:?} is missing in {}", solved[0]);
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_that_nobody_solves_never_reach_the_branch() {
    let script = format!("{WAITS}- {{role: conflict_resolver, do: idle}}\n");
    let house = House::open(Plan::script(&script)).await;
    let asked = house.ask(EVENING).await;
    developer_waits(&house, &asked).await;
    house.commit_by_hand("greet.sh", "echo hello there\n", "Greet more warmly");
    lets_it_go_on(&house, &asked).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "unsolved_conflict");
    assert_eq!(house.times(&blocked, "attempt_failed"), 2);
    // Whoever has to decide reads both versions, as they stand in the file.
    let told = words(&house.reads("general", "<<<<<<<").await);
    for line in ["```", "echo hello there", "=======", "echo good evening", ">>>>>>>"] {
        assert!(told.contains(line), "{line:?} is missing in {told}");
    }
    house.quiet().await;
    assert_eq!(house.on_branch("greet.sh"), "echo hello there\n");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_moving_the_base_and_noting_it_the_conflict_is_solved_once() {
    let mut house = House::built(Plan::script(WAITS)).await;
    house.start_with(&[(PLUG_VARIABLE, format!("{}:1", Point::AfterRebase.as_str()))]);
    let asked = house.ask(EVENING).await;
    developer_waits(&house, &asked).await;
    house.commit_by_hand("greet.sh", "echo hello there\n", "Greet more warmly");
    lets_it_go_on(&house, &asked).await;
    assert_eq!(house.ends().await.signal(), Some(9));
    let request = house.request(&asked, "it is known", |_| true).await;
    assert!(
        request.work.conflict.is_none() && request.work.candidate.is_some(),
        "it was not noted yet"
    );
    let note = house.root().join(".teams_runtime/worktrees").join(request.request_id.as_str());
    let note = std::fs::read_to_string(note.join("worktree.json")).unwrap();
    let head = git2::Repository::open(house.project()).unwrap();
    let head = head.head().unwrap().target().unwrap().to_string();
    assert!(note.contains(&head), "the base had moved: {note}");
    house.start();
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.times(&request, "conflict"), 1);
    assert_eq!(house.on_branch("greet.sh"), "echo good evening there\n");
    assert_eq!(house.commits().len(), 2);
    house.quiet().await;
    let prompts = prompts(&house, &request, "conflict_resolver").await;
    let told = prompts.last().unwrap();
    assert!(told.contains("Greet more warmly") && told.contains("Mina"), "{told}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_solves_a_conflict_changes_nothing_that_neither_side_had() {
    let more =
        "- {role: conflict_resolver, do: run, commands: [[sh, -c, \"echo more > other.md\"]]}\n";
    let house = House::open(Plan::script(&format!("{WAITS}{more}"))).await;
    let asked = house.ask(EVENING).await;
    developer_waits(&house, &asked).await;
    house.commit_by_hand("greet.sh", "echo hello there\n", "Greet more warmly");
    lets_it_go_on(&house, &asked).await;
    let blocked = house.becomes(&asked, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "beyond_conflict");
    assert_eq!(house.times(&blocked, "attempt_failed"), 2);
    let told = words(&house.reads("general", "other.md").await);
    assert!(told.contains("neither side"), "{told}");
    assert_eq!(house.on_branch("greet.sh"), "echo hello there\n");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_a_person_committed_does_not_vanish_in_a_conflict_without_a_word() {
    let drops = "- {role: conflict_resolver, do: run, commands: [[sh, -c, \"echo echo good evening > greet.sh\"]]}\n";
    let house = House::open(Plan::script(&format!("{WAITS}{drops}"))).await;
    let asked = house.ask(EVENING).await;
    developer_waits(&house, &asked).await;
    house.commit_by_hand("greet.sh", "echo hello there\n", "Greet more warmly");
    lets_it_go_on(&house, &asked).await;
    let card = words(&house.reads(&asked, "May this go to the branch?").await);
    let wanted = "**Undoes what a person committed meanwhile:** `greet.sh (- echo hello there ";
    assert!(card.contains(wanted), "{card}");
    assert_eq!(house.on_branch("greet.sh"), "echo hello there\n");
    house.press(&house.owner, &asked, "May this go to the branch?", "Approve").await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!((house.times(&request, "gate_opened"), request.work.conflicts_since), (1, None));
    assert_eq!(house.on_branch("greet.sh"), "echo good evening\n");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_qa_sends_back_is_mended_by_whoever_solved_the_conflict_and_held_to_both_sides() {
    // The second time each of the two does otherwise.
    let more = "- {role: qa, times: 1, do: run, commands: [['true']]}
- {role: qa, times: 1, do: revise}
- {role: conflict_resolver, times: 1, do: run, commands: [['true']]}
- {role: conflict_resolver, do: run, commands: [[sh, -c, \"echo more > other.md\"]]}\n";
    let house = House::open(Plan::script(&format!("{WAITS}{more}"))).await;
    let evening = house.ask(EVENING).await;
    developer_waits(&house, &evening).await;
    let morning = house.ask(MORNING).await;
    house.becomes(&morning, RequestStatus::Committed).await;
    lets_it_go_on(&house, &evening).await;
    let blocked = house.becomes(&evening, RequestStatus::Blocked).await;
    assert_eq!(blocked.blocked.as_ref().unwrap().code.word(), "beyond_conflict");
    // The place can be read on the card, also now that it is solved.
    let told = words(&house.reads("general", "other.md").await);
    for line in ["echo good morning", "=======", "echo good evening"] {
        assert!(told.contains(line), "{line:?} is missing in {told}");
    }
    assert_eq!(house.on_branch("greet.sh"), "echo good morning\n");
    assert_eq!(prompts(&house, &blocked, "developer").await.len(), 1);
    let solving = prompts(&house, &blocked, "conflict_resolver").await;
    assert_eq!((solving.len(), house.times(&blocked, "attempt_failed")), (3, 2));
    assert!(solving[0].contains("sides changed: greet.sh."), "{}", solving[0]);
    // It is charged to the later of the two.
    assert!(blocked.work.spent.turns > 8, "{:?}", blocked.work.spent);
    house.close().await;
}

/// Runs git in the project as a person would.
fn git(house: &House, args: &[&str]) {
    crate::git_repo::git_in(&house.project(), args);
}

async fn is_told_to_wait(house: &House, asked: &str) {
    house.request(asked, "it is to land", |request| request.work.landing_since.is_some()).await;
    house
        .until("the room says what it waits for", async |house: &House| {
            let room = house.messages(asked).await;
            let is_told =
                |it: &Value| words(it).contains("goes on by itself when that is finished");
            room.iter().any(is_told).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_persons_merge_waits_through_a_restart_and_can_be_withdrawn() {
    let mut house = House::open(Plan::default()).await;
    git(&house, &["switch", "-qc", "other"]);
    git(&house, &["commit", "-qm", "Theirs", "--allow-empty"]);
    git(&house, &["switch", "-q", "main"]);
    git(&house, &["merge", "-q", "--no-commit", "--no-ff", "other"]);
    let asked = house.ask(EVENING).await;
    is_told_to_wait(&house, &asked).await;
    house.stop().await;
    house.start();
    let landing = house.request(&asked, "it waits", |it| it.status == RequestStatus::Delegated);
    let id = landing.await.request_id;
    house
        .until("it says what it waits for", async |house: &House| {
            let (_, why, _) = house.teams(&["why", id.as_str()]).await;
            why.contains("waits for the merge or rebase in").then_some(())
        })
        .await;
    house.ask(&format!("cancel {id}")).await;
    house.becomes(&asked, RequestStatus::Cancelled).await;
    git(&house, &["merge", "--abort"]);
    assert_eq!(house.on_branch("greet.sh"), "echo hello\n");
    house.close().await;
}

/// While a rebase is under way nothing is checked out, and the branch is the rebase's all the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_persons_rebase_lands_after_it_and_a_lock_of_nobody_is_named() {
    let house = House::open(Plan::default()).await;
    house.commit_by_hand("mine.md", "mine\n", "Mine");
    git(&house, &["-c", "sequence.editor=sed -i 1ibreak", "rebase", "-qi", "HEAD~1"]);
    let asked = house.ask(EVENING).await;
    is_told_to_wait(&house, &asked).await;
    assert_eq!(house.commits(), ["Mine"]);
    git(&house, &["commit", "-q", "--amend", "-m", "A greeter, as it was"]);
    git(&house, &["rebase", "--continue"]);
    house.becomes(&asked, RequestStatus::Committed).await;
    assert_eq!(house.on_branch("greet.sh"), "echo good evening\n");
    assert_eq!(house.on_branch("mine.md"), "mine\n");
    assert_eq!(house.commits().last().unwrap(), "Mine", "theirs is before it");
    git(&house, &["diff", "--exit-code", "HEAD"]);
    // Its owner has died: it is told after half a minute, since usual commands are over by then.
    let lock = house.project().join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let next = house.ask("create note.md with \"a note\"").await;
    house.reads(&next, "If no git command is running, remove that file.").await;
    let id = house.request(&next, "it waits", |_| true).await.request_id;
    let (_, why, _) = house.teams(&["why", id.as_str()]).await;
    assert!(why.contains("waits for the git command that holds"), "{why}");
    assert!(why.contains(".git/index.lock`, and goes on by itself"), "{why}");
    std::fs::remove_file(&lock).unwrap();
    house.becomes(&next, RequestStatus::Committed).await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persons_git_command_is_waited_for_and_nobody_has_to_press_anything() {
    let house = House::open(Plan::script(WAITS)).await;
    git(&house, &["switch", "-qc", "other"]);
    std::fs::write(house.project().join("other.md"), "theirs\n").unwrap();
    git(&house, &["add", "other.md"]);
    git(&house, &["commit", "-qm", "Theirs"]);
    git(&house, &["switch", "-q", "main"]);
    let asked = house.ask(EVENING).await;
    developer_waits(&house, &asked).await;
    // In the middle of a merge of their own.
    git(&house, &["merge", "-q", "--no-commit", "--no-ff", "other"]);
    lets_it_go_on(&house, &asked).await;
    is_told_to_wait(&house, &asked).await;
    git(&house, &["commit", "-qm", "Merged by hand"]);
    house.becomes(&asked, RequestStatus::Committed).await;
    // In the middle of a command.
    let lock = house.project().join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let next = house.ask("create note.md with \"a note\"").await;
    house
        .until("it is on its way to the branch", async |house: &House| {
            let effects = house.state()?.effects;
            let lands = |it: &Arc<Effect>| {
                matches!(it.state, EffectState::Started { .. }) && !it.kind.lands().is_empty()
            };
            effects.values().any(lands).then_some(())
        })
        .await;
    std::fs::remove_file(&lock).unwrap();
    house.becomes(&next, RequestStatus::Committed).await;
    house.quiet().await;
    assert_eq!(house.on_branch("greet.sh"), "echo good evening\n");
    assert_eq!(house.on_branch("other.md"), "theirs\n");
    assert_eq!(house.on_branch("note.md"), "a note\n");
    assert!(house.commits().iter().any(|it| it == "Merged by hand"), "{:?}", house.commits());
    git(&house, &["diff", "--exit-code", "HEAD"]);
    house.close().await;
}
