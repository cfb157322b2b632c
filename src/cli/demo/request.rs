//! `--script request`: one request to its end, as a person would do it, and the proof.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::home::{BRANCH, Home, broken};
use super::person::Person;
use super::team::Team;
use crate::cli::told::{self, Printer};
use crate::cli::{Failure, say};
use crate::domain::evidence::Evidence;
use crate::domain::language::Language;
use crate::domain::record::RUNTIME;
use crate::domain::request::Request;
use crate::git::{self, CommitId, PreparationOwner, Project};
use crate::local_guild::GuildInfo;
use crate::platform::{confinement, files};
use crate::store::StateReader;
use crate::workspace;

/// What the person writes.
const WORDS: &str = "do task 1";
/// How long the request may take in all.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Plays it. `Ok` only with exactly one commit more and the checks, red before, green there.
pub(super) async fn play(home: &Home, guild: &GuildInfo, team: &mut Team) -> Result<(), Failure> {
    let person = Person::new(guild)?;
    let mut reader = StateReader::new(&home.workspace());
    let (message, said_before) = person.ask(WORDS).await?;
    if said_before && ended(home, &mut reader, &message)?.is_some() {
        say("The request was finished before.");
    } else {
        if said_before {
            say("The request was begun before; going on.");
        } else {
            say(format_args!("owner: @Teams {WORDS}"));
        }
        let is_over = || Ok(ended(home, &mut reader, &message)?.is_some());
        let watched = person.watch(team, is_over);
        tokio::time::timeout(PATIENCE, watched)
            .await
            .map_err(|_| Failure::new("the request did not end in time"))??;
        person.last_answer(&message).await?;
    }
    prove(home, &message).await
}

/// The request of the message, once it has ended and nothing about it waits any more.
fn ended(home: &Home, reader: &mut StateReader, message: &str) -> Result<Option<Request>, Failure> {
    let root = home.workspace();
    if !files::exists(&root.join(RUNTIME)) {
        return Ok(None);
    }
    let asked = |request: &Request| {
        request.conversation.reply_route.message_id.is_some_and(|id| id.to_string() == message)
    };
    // A team that opens or stops moves files under a reader; the next look is complete.
    let Ok(state) = reader.read() else {
        return Ok(None);
    };
    if let Some(open) = state.requests.values().find(|request| asked(request)) {
        use crate::domain::request::RequestStatus;
        if open.status == RequestStatus::Blocked {
            return Err(waits(open)?);
        }
        return Ok(None);
    }
    for path in files::list(&root.join(".teams_runtime/requests"))? {
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let text = files::read_text_if_present(&path)?.unwrap_or_default();
        if let Ok(request) = serde_json::from_str::<Request>(&text)
            && asked(&request)
            && request.status.is_terminal()
        {
            return Ok(Some(request));
        }
    }
    Ok(None)
}

/// Nobody sits at the page while the script plays: what a person would be asked for is how it ends.
fn waits(open: &Request) -> Result<Failure, Failure> {
    let why = open.blocked.as_ref();
    let code = why.map(|blocked| blocked.code.word()).unwrap_or_default();
    let detail = why.map(|blocked| blocked.detail.clone()).unwrap_or_default();
    let id = open.request_id.as_str();
    let values = [("request_id", id), ("code", code), ("detail", ""), ("who", "")];
    let values = values.map(|(name, value)| (name.to_owned(), value.into())).into_iter().collect();
    let words = Printer::new(told::language(Language::En), false)?.words("why.blocked", &values);
    let hint = "the same command without --script goes on here, with the page to press it on";
    Ok(Failure::new(words).detail(Some(detail)).hint(Some(hint.to_owned())))
}

/// What the script promises: one commit more, red before it, green at it.
async fn prove(home: &Home, message: &str) -> Result<(), Failure> {
    let mut reader = StateReader::new(&home.workspace());
    let request = ended(home, &mut reader, message)?
        .ok_or_else(|| Failure::new("the request has not ended"))?;
    let commits = git::create::first_parents(&home.project(), BRANCH).map_err(broken)?;
    let [head, base] = commits.as_slice() else {
        return Err(Failure::new(format!(
            "expected exactly one commit on {BRANCH} after the first, found {}",
            commits.len().saturating_sub(1)
        )));
    };
    if request.outcome.commit_sha.as_deref() != Some(head.to_string().as_str()) {
        return Err(Failure::new(format!(
            "the record names {:?}, not {head}",
            request.outcome.commit_sha
        )));
    }
    let before = checks(home, *base).await?;
    let after = checks(home, *head).await?;
    if !after.isolation.is_isolated() {
        say(format_args!("the checks are not isolated here: `teams doctor` says why"));
    }
    let word = |evidence: &Evidence| if evidence.is_green() { "green" } else { "red" };
    say(format_args!(
        "checks before: {}   at {}: {}",
        word(&before),
        &head.to_string()[..10],
        word(&after)
    ));
    if before.is_green() || !after.is_green() {
        return Err(Failure::new("the checks do not prove the commit"));
    }
    say(format_args!("Done: one commit on {BRANCH}, and the checks are green at it."));
    Ok(())
}

pub(super) async fn checks(home: &Home, commit: CommitId) -> Result<Evidence, Failure> {
    let workspace = workspace::load(&home.workspace())?;
    let plan =
        crate::service::check_plan(&workspace.root, &workspace.runtime, &workspace.environment);
    let project = Project::open(&home.project(), BRANCH).map_err(broken)?;
    files::create_dir_all(&home.scratch())?;
    let (scratch, stop) = (home.scratch(), CancellationToken::new());
    let confinement = confinement::find().await;
    let whose = PreparationOwner::trusting(commit);
    let evidence = git::checks::run(&project, commit, &plan, &confinement, &scratch, &whose, &stop);
    evidence.await.map_err(broken)
}
