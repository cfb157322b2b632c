//! `--script sprint`: a milestone to its end, as a person would ask for it, and the proof.

use std::time::Duration;

use super::home::{BRANCH, Home, broken};
use super::person::Person;
use super::request::checks;
use super::team::Team;
use crate::cli::{Failure, say, told};
use crate::domain::language::Language;
use crate::domain::record::RUNTIME;
use crate::domain::sprint::{Sprint, SprintStatus, Todo, TodoStatus};
use crate::git;
use crate::local_guild::GuildInfo;
use crate::platform::files;
use crate::store::StateReader;

/// How long the sprint may take in all.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// What the person writes.
const fn words(language: Language) -> &'static str {
    match language {
        Language::En => {
            "start sprint\nmilestone: Everything on the task list\n\
             brief: one task after the other\nrequirements:\n- the checks stay green"
        }
        Language::Ko => {
            "스프린트 시작\n마일스톤: 작업 목록 전부 끝내기\n\
             설명: 하나씩 차례로\n요구사항:\n- 검사는 계속 통과해야 한다"
        }
    }
}

/// Plays it. `Ok` only with every todo committed, green and archived.
pub(super) async fn play(home: &Home, guild: &GuildInfo, team: &mut Team) -> Result<(), Failure> {
    let person = Person::new(guild)?;
    let sprint = deliver(home, team, &person, words(told::language(Language::En))).await?;
    prove(home, &sprint).await
}

/// Asks for a sprint, unless it was asked for before, and waits until it has ended.
pub(super) async fn deliver(
    home: &Home,
    team: &mut Team,
    person: &Person<'_>,
    words: &str,
) -> Result<Sprint, Failure> {
    let mut reader = StateReader::new(&home.workspace());
    let (message, said_before) = person.ask(words).await?;
    if said_before && let Some(sprint) = ended(home, &mut reader, &message)? {
        person.tell("The sprint was finished before.");
        return Ok(sprint);
    }
    if said_before {
        person.tell("The sprint was begun before; going on.");
    } else {
        person.tell(&format!("owner: @Teams {}", words.replace('\n', " · ")));
    }
    let is_over = || Ok(ended(home, &mut reader, &message)?.is_some());
    let watched = person.watch(team, is_over);
    tokio::time::timeout(PATIENCE, watched)
        .await
        .map_err(|_| Failure::new("the sprint did not end in time"))??;
    ended(home, &mut reader, &message)?.ok_or_else(|| Failure::new("the sprint has not ended"))
}

/// The sprint that the message asked for, once it has ended and everything about it was said.
fn ended(home: &Home, reader: &mut StateReader, message: &str) -> Result<Option<Sprint>, Failure> {
    let root = home.workspace();
    if !files::exists(&root.join(RUNTIME)) {
        return Ok(None);
    }
    // A team that opens or stops moves files under a reader; the next look is complete.
    let Ok(state) = reader.read() else {
        return Ok(None);
    };
    let mine = state.sprints.values().find(|sprint| {
        sprint.kickoff.reply_route.message_id.is_some_and(|id| id.to_string() == message)
    });
    let Some(sprint) = mine else { return Ok(None) };
    let sent = state.outgoing.values().all(|it| it.refused.is_some());
    let told = !sprint.closing.report_path.is_empty() && sent;
    match sprint.status {
        SprintStatus::Completed => Ok(told.then(|| Sprint::clone(sprint))),
        SprintStatus::Failed | SprintStatus::Blocked | SprintStatus::Cancelled => {
            Err(Failure::new(format!("the sprint is {}", sprint.status))
                .detail(Some(sprint.closing.message.clone())))
        }
        SprintStatus::Planning | SprintStatus::Running | SprintStatus::Closeout => Ok(None),
    }
}

/// What the script promises: a commit a todo and nothing else, green at each, and the sprint in the history.
async fn prove(home: &Home, sprint: &Sprint) -> Result<(), Failure> {
    let is_open = |todo: &&Todo| todo.progress.status != TodoStatus::Committed;
    if let Some(open) = sprint.work.todos.iter().find(is_open) {
        return Err(Failure::new(format!("{} is {}", open.title, open.progress.status)));
    }
    let mut commits = git::create::first_parents(&home.project(), BRANCH).map_err(broken)?;
    let first = commits.pop();
    if commits.len() != sprint.work.todos.len() || first.is_none() {
        return Err(Failure::new(format!(
            "expected {} commits on {BRANCH} after the first, found {}",
            sprint.work.todos.len(),
            commits.len()
        )));
    }
    for commit in commits.iter().rev() {
        let id = commit.to_string();
        let todo = sprint.work.todos.iter().find(|todo| todo.progress.commit_sha == id);
        let todo = todo.ok_or_else(|| Failure::new(format!("no todo names the commit {id}")))?;
        if !checks(home, *commit).await?.is_green() {
            return Err(Failure::new(format!("the checks are red at {id}: {}", todo.title)));
        }
        say(format_args!("green at {}: {}", &id[..10], todo.title));
    }
    for path in [&sprint.closing.report_path, &history(sprint)] {
        if !files::exists(&home.workspace().join(path)) {
            return Err(Failure::new(format!("{path} was not written")));
        }
    }
    say(format_args!(
        "Done: {} todos, a commit each on {BRANCH}, the checks green at each. The report: {}",
        sprint.work.todos.len(),
        home.workspace().join(&sprint.closing.report_path).display()
    ));
    Ok(())
}

fn history(sprint: &Sprint) -> String {
    format!("shared_workspace/sprint_history/{}.md", sprint.sprint_folder_name)
}
