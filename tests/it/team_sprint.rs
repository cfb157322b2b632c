//! Whole sprints: six todos by rehearsal agents in the local guild, begun by a person's words in either
//! language; stopped; and with a todo that waits for a person.

use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use teams::domain::config::CheckNetwork;
use teams::domain::item::{Item, ItemStatus};
use teams::domain::language::Language;
use teams::domain::sprint::{Sprint, SprintStatus, Todo, TodoStatus};
use teams::domain::work_span::WorkKind;
use teams::engine::sprint::consistent;
use teams::platform::confinement;
use teams::platform::spawn::set_own_binary;
use teams::{assets, git};
use tokio_util::sync::CancellationToken;

use crate::git_repo::git_in;
use crate::support::house::{House, Plan, author, words};
use crate::team_landing::prompts;

/// The demo's tasks, in the order in which they depend on one another.
const TITLES: [&str; 6] = [
    "Add --shout",
    "Greet in Korean",
    "Say how it is used",
    "Take the name from the environment",
    "Greet a whole list",
    "Write down what changed",
];

/// What a person reads in a language.
struct Words {
    start: &'static str,
    begins: &'static str,
    plan: &'static str,
    step: &'static str,
    todo_begins: &'static str,
    todo_done: &'static str,
    done: &'static str,
    summary: &'static str,
    /// The first line of its board at the end.
    all_done: &'static str,
}

const EN: Words = Words {
    start: "start sprint\nmilestone: Everything on the task list\nbrief: one task after the other\n\
            requirements:\n- the checks stay green",
    begins: "[Work report] Sprint",
    plan: "[Work report] The plan of sprint",
    step: "Planning",
    todo_begins: "begins: ",
    todo_done: "[Work report] Todo",
    done: "**Done.**",
    summary: "[Work report] Sprint complete",
    all_done: "6 of 6 done",
};

const KO: Words = Words {
    start: "스프린트 시작\n마일스톤: 작업 목록 전부 끝내기\n설명: 하나씩 차례로\n\
            요구사항:\n- 검사는 계속 통과해야 한다",
    begins: "[작업 보고] 스프린트 시작",
    plan: "[작업 보고] 스프린트 계획",
    step: "계획",
    todo_begins: "시작**: ",
    todo_done: "[작업 보고] 할 일",
    done: "**완료했습니다.**",
    summary: "[작업 보고] 스프린트 완료",
    all_done: "6개 중 6개 완료",
};

/// A house whose project is the demo's, with its six tasks.
async fn house(plan: Plan) -> House {
    let mut house = House::built(plan).await;
    for name in assets::scaffold_files() {
        if let Some(relative) = name.strip_prefix("demo/project/") {
            let path = house.project().join(relative);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, assets::scaffold_text(&name).unwrap()).unwrap();
        }
    }
    git_in(&house.project(), &["add", "."]);
    git_in(&house.project(), &["commit", "-qm", "A greeting program"]);
    house.start();
    house.reads("startup", "The team is up").await;
    house
}

/// The newest sprint.
fn sprint(house: &House) -> Option<Sprint> {
    house.state()?.last_sprint().cloned()
}

/// Waits until the newest sprint fits, and the records agree at every look.
pub(crate) async fn sprint_that(
    house: &House,
    what: &str,
    fits: impl Fn(&Sprint) -> bool,
) -> Sprint {
    house
        .until(what, async |house: &House| {
            let state = house.state()?;
            consistent(&state).unwrap();
            sprint(house).filter(|sprint| fits(sprint))
        })
        .await
}

/// The item of a todo, settled or not.
fn item(house: &House, todo: &Todo) -> Option<Item> {
    let id = todo.backlog_id.as_ref()?;
    if let Some(item) = house.state()?.backlog.get(id) {
        return Some(Item::clone(item));
    }
    let path = house.root().join(format!(".teams_runtime/backlog/{id}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

fn delivered(sprint: &Sprint) -> usize {
    sprint.work.todos.iter().filter(|todo| todo.progress.status == TodoStatus::Committed).count()
}

/// Ids, times, durations and commits become placeholders.
fn still(text: &str, root: &std::path::Path) -> String {
    let text = text.replace(root.to_str().unwrap(), "<root>");
    [
        (r"\d{6}-Sprint-\d\d:\d\d", "<sprint>"),
        (r"\d{6}-Sprint-\d\d-\d\d", "<folder>"),
        (r"todo-\d{6}-[0-9a-f]{6}", "<todo>"),
        (r"backlog-\d{8}-[0-9a-f]{8}", "<item>"),
        (r"\d{8}-[0-9a-f]{8}", "<request>"),
        (r"\d{4}-\d\d-\d\dT[0-9:.]+\+09:00", "<time>"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d", "<time>"),
        (r"\d{4}-\d\d-\d\d", "<day>"),
        (r"\d+(?: h| min| s|시간|분|초)\b(?: \d+(?: min| s|분|초)\b)?", "<span>"),
        (r"\([^()]* → [^()]*\)", "(<chain>)"),
        (r"\b[0-9a-f]{40}\b", "<commit>"),
        (r"\b[0-9a-f]{10}\b", "<commit>"),
    ]
    .into_iter()
    .fold(text, |text, (pattern, name)| {
        regex::Regex::new(pattern).unwrap().replace_all(&text, name).into_owned()
    })
}

/// The six tasks are six green commits, oldest first, each named by its todo.
async fn six_commits(house: &House, sprint: &Sprint) {
    let subjects = house.commits();
    assert_eq!(subjects.len(), 7, "{subjects:?}");
    set_own_binary(env!("CARGO_BIN_EXE_teams").into());
    let project = git::Project::open(&house.project(), "main").unwrap();
    let check = git::CheckSpec {
        name: "tests".to_owned(),
        command: ["sh", "test.sh"].map(str::to_owned).into(),
        timeout: Duration::from_secs(60),
        output_limit: 1 << 20,
        env: [].into(),
        read: Vec::new(),
        report: None,
        network: CheckNetwork::Off,
    };
    let plan = git::CheckPlan {
        checks: vec![check],
        prepare: Vec::new(),
        environments: house.root().join(".teams_runtime/environments"),
        carry: Vec::new(),
        tools: None,
        hidden: Vec::new(),
        trees: house.root().join(".teams_runtime/trees"),
        allow_unisolated: true,
        digest: String::new(),
    };
    let confinement = confinement::find().await;
    let commits = git::create::first_parents(&house.project(), "main").unwrap();
    for (at, title) in TITLES.iter().enumerate() {
        let subject = &subjects[5 - at];
        assert!(subject.ends_with(title), "{at}: {subject}");
        let commit = commits[5 - at];
        let todo = sprint.work.todos.iter().find(|todo| todo.title == *title).unwrap();
        assert_eq!(todo.progress.commit_sha, commit.to_string());
        let scratch = house.beside("scratch");
        std::fs::create_dir_all(&scratch).unwrap();
        let evidence = git::checks::run(
            &project,
            commit,
            &plan,
            &confinement,
            &scratch,
            &git::PreparationOwner::trusting(commit),
            &CancellationToken::new(),
        )
        .await
        .unwrap();
        assert!(evidence.is_green(), "{title}");
    }
}

async fn texts(house: &House, channel: &str) -> Vec<(String, String)> {
    let all = house.messages(channel).await;
    all.iter().map(|message| (author(message).to_owned(), words(message))).collect()
}

fn count(texts: &[(String, String)], part: &str) -> usize {
    texts.iter().filter(|(_, text)| text.contains(part)).count()
}

/// Each todo has its room: its card, what the personas said, one last word.
async fn rooms(house: &House, sprint: &Sprint, said: &Words) {
    for todo in &sprint.work.todos {
        let id = todo.progress.request_id.as_ref().unwrap();
        let requests = house.requests();
        let request = requests.iter().find(|request| request.request_id == *id).unwrap();
        let room = request.conversation.room.as_ref().and_then(|room| room.thread_id).unwrap();
        let texts = texts(house, &room.to_string()).await;
        assert_eq!(
            texts.iter().filter(|(_, text)| text.contains(said.done)).count(),
            1,
            "{texts:#?}"
        );
        assert!(texts.iter().any(|(who, text)| who == "Teams" && text.contains(&todo.title)));
        for role in ["Planner", "Architect", "Developer", "QA"] {
            assert!(texts.iter().any(|(who, _)| who == role), "{role}: {texts:#?}");
        }
        // A card that was renewed before it could be posted stands where its newest version was written.
        let last = texts.iter().rposition(|(_, text)| text.contains(said.done)).unwrap();
        assert!(texts[last..].iter().all(|(who, _)| who == "Teams"), "{texts:#?}");
    }
}

/// The reports, each once and in its channel.
async fn reports(house: &House, said: &Words) {
    let startup = texts(house, "startup").await;
    let report = texts(house, "report").await;
    for (part, times) in
        [(said.begins, 1), (said.plan, 1), (said.todo_begins, 6), (said.todo_done, 6)]
    {
        assert_eq!(count(&startup, part), times, "{part}: {startup:#?}");
    }
    for at in 1..=6 {
        assert_eq!(count(&startup, &format!("{at}/6")), 2, "{startup:#?}");
    }
    let steps = report.iter().filter(|(who, text)| who == "Planner" && text.contains(said.step));
    assert_eq!(steps.count(), 5, "{report:#?}");
    assert_eq!(count(&report, said.summary), 1, "{report:#?}");
    let messages = house.messages("report").await;
    let summary = messages.iter().find(|message| words(message).contains(said.summary)).unwrap();
    let files: Vec<&str> = summary["attachments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["filename"].as_str().unwrap())
        .collect();
    assert_eq!(files, ["report.md", "burndown.png", "lanes.png"]);
    let relay = texts(house, "relay").await;
    assert_eq!(relay.iter().filter(|(_, text)| text.contains("/sprint start")).count(), 1);
}

/// The papers of the sprint, and where it stands in the history.
fn papers(house: &House, sprint: &Sprint) {
    let root = house.root();
    let folder = root.join(&sprint.sprint_folder);
    for name in [
        "index.md",
        "kickoff.md",
        "milestone.md",
        "plan.md",
        "spec.md",
        "todo_backlog.md",
        "iteration_log.md",
        "report.md",
        "report.json",
    ] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(!text.trim().is_empty(), "{name}");
    }
    for name in ["burndown.png", "lanes.png"] {
        let chart = std::fs::read(folder.join(name)).unwrap();
        assert!(chart.starts_with(b"\x89PNG\r\n"), "{name}");
    }
    // Whoever worked has a bar, and the time between is grey.
    for todo in &sprint.work.todos {
        let kinds: Vec<WorkKind> = todo.progress.spans.iter().map(|span| span.kind).collect();
        for kind in [WorkKind::Building, WorkKind::Reviewing, WorkKind::Checking] {
            assert!(kinds.contains(&kind), "{kinds:?}");
        }
        assert!(
            todo.progress
                .spans
                .iter()
                .all(|span| span.from <= span.to && Some(span.to) <= todo.progress.ended_at)
        );
    }
    let machine = std::fs::read_to_string(folder.join("report.json")).unwrap();
    let machine: Value = serde_json::from_str(&machine).unwrap();
    assert_eq!(machine["sprint_id"], sprint.sprint_id.as_str());
    let chain = machine["critical_path"].as_array().unwrap();
    let titles: Vec<&str> = chain
        .iter()
        .map(|id| sprint.todo(&id.as_str().unwrap().parse().unwrap()).unwrap().title.as_str())
        .collect();
    assert!(titles.len() >= 2, "{titles:?}");
    assert!(machine["makespan_seconds"].as_u64() > Some(0), "{machine}");
}

async fn whole(language: Language, said: &Words) {
    let house = house(Plan::default()).await;
    house.ask(said.start).await;
    let board = house
        .until("its board is pinned", async |house: &House| {
            let startup = house.messages("startup").await;
            startup.iter().find(|it| it["pinned"] == true).map(|it| it["id"].clone())
        })
        .await;
    for done in 1..=6 {
        sprint_that(&house, "a todo is delivered", |sprint| delivered(sprint) >= done).await;
    }
    let sprint =
        sprint_that(&house, "the sprint ends", |it| !it.closing.report_path.is_empty()).await;
    assert_eq!((sprint.status, sprint.language), (SprintStatus::Completed, language));
    house.quiet().await;
    let state = house.state().unwrap();
    assert!(state.scheduler.active_sprint_id.is_none());
    for todo in &sprint.work.todos {
        assert_eq!(item(&house, todo).unwrap().status, ItemStatus::Done);
    }
    six_commits(&house, &sprint).await;
    rooms(&house, &sprint, said).await;
    reports(&house, said).await;
    let startup = house.messages("startup").await;
    let last = startup.iter().find(|message| message["id"] == board).unwrap();
    assert!(words(last).contains(said.all_done), "{}", words(last));
    assert!(startup.iter().all(|message| message["pinned"] != true), "{startup:#?}");
    papers(&house, &sprint);
    let history = house.root().join("shared_workspace/sprint_history");
    let archived = history.join(format!("{}.md", sprint.sprint_folder_name));
    let archive = std::fs::read_to_string(archived).unwrap();
    let index = std::fs::read_to_string(history.join("index.md")).unwrap();
    if let Some(path) = std::env::var_os("TEAMS_TRANSCRIPT") {
        std::fs::write(path, house.transcript().await).unwrap();
    }
    insta::assert_snapshot!(
        format!("history_{}", language.as_str()),
        still(&format!("{archive}\n==== index.md\n\n{index}"), &house.root())
    );
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_todos_in_english() {
    whole(Language::En, &EN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_todos_in_korean() {
    whole(Language::Ko, &KO).await;
}

/// Three tasks of one file each, the second and third after the first.
const SHORT: &str = "# Tasks\n\n\
    ## 1. Say goodbye\n\nCreate `bye.sh`:\n\n```sh\necho bye\n```\n\n\
    ## 2. Explain it\n\nAfter 1.\n\nCreate `DOC.md`:\n\n```\nIt greets.\n```\n\n\
    ## 3. Thank people\n\nAfter 1.\n\nCreate `THANKS.md`:\n\n```\nThank you.\n```\n";

/// A house with these tasks.
async fn short(plan: Plan) -> House {
    let mut house = House::built(plan).await;
    std::fs::write(house.project().join("TASKS.md"), SHORT).unwrap();
    git_in(&house.project(), &["add", "TASKS.md"]);
    git_in(&house.project(), &["commit", "-qm", "What is to be done"]);
    house.start();
    house.reads("startup", "The team is up").await;
    house
}

/// Begins a sprint at the command line.
pub(crate) async fn start(house: &House) {
    let (code, said, error) = house.teams(&["sprint", "start", "--milestone", "Say more"]).await;
    assert_eq!(code, 0, "{said}{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sprint_that_is_stopped_ends_its_todo_and_begins_no_other() {
    let house = short(Plan::default()).await;
    start(&house).await;
    let at_work = |sprint: &Sprint| {
        sprint.work.todos.iter().any(|it| it.progress.status == TodoStatus::Running)
    };
    sprint_that(&house, "a todo is at work", at_work).await;
    let (code, said, error) = house.teams(&["sprint", "stop"]).await;
    assert_eq!(code, 0, "{said}{error}");
    let stopped = sprint(&house).unwrap();
    let begun: Vec<_> =
        stopped.work.todos.iter().filter_map(|it| it.progress.request_id.clone()).collect();
    let id = stopped.sprint_id.clone();
    let ended =
        sprint_that(&house, "the sprint ends", |it| !it.closing.report_path.is_empty()).await;
    house.quiet().await;
    assert_eq!((&ended.sprint_id, ended.status), (&id, SprintStatus::Completed));
    let state = house.state().unwrap();
    // Nobody begins another one but a person, though there is work left.
    assert_eq!(state.scheduler.active_sprint_id, None);
    assert_eq!(state.sprints.len(), 1);
    for todo in &ended.work.todos {
        let item = item(&house, todo).unwrap();
        if todo.progress.request_id.as_ref().is_some_and(|id| begun.contains(id)) {
            assert_eq!(
                (todo.progress.status, item.status),
                (TodoStatus::Committed, ItemStatus::Done)
            );
        } else {
            assert_eq!(
                (todo.progress.status, item.status),
                (TodoStatus::Cancelled, ItemStatus::Pending)
            );
            assert!(todo.progress.request_id.is_none() && item.selected_in_sprint_id.is_none());
        }
    }
    assert!(delivered(&ended) < 3, "{:?}", ended.work.todos);
    let (code, text, _) = house.teams(&["sprint", "status"]).await;
    assert_eq!(code, 0);
    for line in [
        "view=latest".to_owned(),
        format!("sprint_id={id}"),
        "status=completed".to_owned(),
        format!("todos=committed:{},cancelled:{}", delivered(&ended), 3 - delivered(&ended)),
    ] {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
    assert_eq!(
        house.messages("report").await.iter().filter(|it| words(it).contains("Todos: ")).count(),
        1
    );

    // What was left is there for the next one.
    start(&house).await;
    let next = sprint_that(&house, "the rest is done", |it| {
        it.sprint_id != id && !it.closing.report_path.is_empty()
    })
    .await;
    assert_eq!(next.status, SprintStatus::Completed);
    assert_eq!(delivered(&next), 3 - delivered(&ended));
    assert_eq!(house.on_branch("THANKS.md"), "Thank you.\n");
    // What it depends on was delivered by the sprint before, and is told all the same.
    let after = next.work.todos.iter().find(|todo| todo.title == "Thank people").unwrap();
    let mut requests = house.requests().into_iter();
    let after =
        requests.find(|it| Some(&it.request_id) == after.progress.request_id.as_ref()).unwrap();
    let told = prompts(&house, &after, "developer").await.concat();
    assert!(told.contains("## Say goodbye: committed, commit "), "{told}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_todo_that_waits_for_a_person_waits_as_an_item_and_goes_on_by_the_answer() {
    let script = "- {role: developer, contains: Explain it, do: block}\n";
    let plan = Plan { sprint: "start_mode: manual_daily".to_owned(), ..Plan::script(script) };
    let house = short(plan).await;
    start(&house).await;
    let ended =
        sprint_that(&house, "the sprint ends", |it| !it.closing.report_path.is_empty()).await;
    house.quiet().await;
    assert_eq!((ended.status, delivered(&ended)), (SprintStatus::Completed, 2));
    // Whoever works on what depends on something knows what came of that.
    let after = ended.work.todos.iter().find(|todo| todo.title == "Thank people").unwrap();
    let mut requests = house.requests().into_iter();
    let after =
        requests.find(|it| Some(&it.request_id) == after.progress.request_id.as_ref()).unwrap();
    let told = prompts(&house, &after, "developer").await.concat();
    for part in ["# What it builds on", "## Say goodbye: committed, commit ", "Files: bye.sh"] {
        assert!(told.contains(part), "{part:?} is missing in {told}");
    }
    let todo = ended.work.todos.iter().find(|todo| todo.title == "Explain it").unwrap();
    assert_eq!(todo.progress.status, TodoStatus::Blocked);
    let waiting = item(&house, todo).unwrap();
    assert_eq!(waiting.status, ItemStatus::Blocked);
    assert!(!waiting.blocked_reason.is_empty(), "{waiting:?}");
    let summary = house.reads("report", "2 of 3 done").await;
    assert!(words(&summary).contains("Explain it"), "{}", words(&summary));

    let request = house
        .requests()
        .into_iter()
        .find(|it| Some(&it.request_id) == todo.progress.request_id.as_ref());
    let room = request.unwrap().conversation.room.and_then(|room| room.thread_id).unwrap();
    house.say(&room.to_string(), "Say that it greets; no more is needed.").await;
    let free = house
        .until("the item is free", async |house: &House| {
            item(house, todo).filter(|item| item.status == ItemStatus::Pending)
        })
        .await;
    assert!(free.answers.iter().any(|it| it.contains("no more is needed")), "{free:?}");
    house.quiet().await;
    std::fs::write(house.root().join("script.yaml"), "[]\n").unwrap();
    start(&house).await;
    let next = sprint_that(&house, "it is done", |it| {
        it.sprint_id != ended.sprint_id && !it.closing.report_path.is_empty()
    })
    .await;
    assert_eq!(delivered(&next), 1, "{:?}", next.work.todos);
    assert_eq!(house.on_branch("DOC.md"), "It greets.\n");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_plan_of_a_sprint_is_read_by_the_architect_and_waits_for_a_person() {
    let remark = json!({"part": "R-1", "problem": "no item measures it", "wanted": "a check"});
    let script = json!([{"role": "architect", "duty": "plan_review", "do": "propose",
        "proposals": {"plan_findings": [remark]}}]);
    let more = "gates: {sprint_plan: ask}\n".to_owned();
    let house = short(Plan { script: Some(script.to_string()), more, ..Plan::default() }).await;
    start(&house).await;
    house.reads("report", "R-1: no item measures it").await;
    let gate = house.until("a gate", async |house| house.state()?.gates.into_values().next()).await;
    let card = words(&house.reads("report", "May this plan be built?").await);
    assert!(card.contains("Still to come:") && card.contains("C-1"), "{card}");
    let waits = sprint(&house).unwrap();
    assert_eq!(waits.step.unwrap().as_str(), "plan_review");
    assert!(waits.work.todos.iter().all(|todo| todo.progress.status == TodoStatus::Queued));
    let (_, why, _) = house.teams(&["why", waits.sprint_id.as_str()]).await;
    assert!(why.contains("may its plan be built?"), "{why}");
    let request = gate.request_id.to_string();
    let content = gate.artifact.get(..10).unwrap();
    // It was planned once more, and nothing was better.
    assert!(card.contains("Something in it does not hold"), "{card}");
    let anyway = ["approve", &request, "--content", content, "--anyway", "we measure it by hand"];
    let (code, out, err) = house.teams(&anyway).await;
    assert_eq!(code, 0, "{out}{err}");
    let ended =
        sprint_that(&house, "the sprint ends", |it| !it.closing.report_path.is_empty()).await;
    assert_eq!(ended.status, SprintStatus::Completed);
    assert!(delivered(&ended) > 0);
    let kept = ended.planning.review.accepted.unwrap();
    assert_eq!(kept.reason, "we measure it by hand");
    house.close().await;
}
