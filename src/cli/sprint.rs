//! `teams sprint`: begin, end, go on with and look at a sprint. The running team does it and answers at
//! once; looking needs no team.

use std::path::{Path, PathBuf};

use super::plain::plain;
use super::{Failure, Global, records, say};
use crate::domain::attachment::ATTACHMENTS;
use crate::domain::ids::RequestId;
use crate::domain::incoming::Command as Order;
use crate::domain::language::Language;
use crate::domain::request::ReplyRoute;
use crate::domain::sprint::{Kickoff, Sprint};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::platform::files;
use crate::workspace;

/// Bytes of the largest file that goes with a kickoff from outside the workspace.
const LARGEST: u64 = 25 << 20;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Begin a sprint
    Start(Start),
    /// End the active sprint when its running todos are through
    Stop {
        /// Release the running todos instead of waiting for them
        #[arg(long)]
        now: bool,
    },
    /// Go on with the last sprint from where it stopped
    Restart,
    /// Show the active sprint, or the last one
    Status,
}

/// What a sprint is begun with.
#[derive(Debug, clap::Args)]
pub(super) struct Start {
    /// What is to be reached
    #[arg(long, value_name = "WORDS")]
    milestone: String,
    /// What it is about
    #[arg(long, value_name = "WORDS", default_value = "")]
    brief: String,
    /// What has to hold at the end; may be given several times
    #[arg(long = "requirement", value_name = "WORDS")]
    requirements: Vec<String>,
    /// A file that goes with it; may be given several times
    #[arg(long = "artifact", value_name = "FILE")]
    artifacts: Vec<PathBuf>,
    /// The request that asked for it
    #[arg(long, value_name = "REQUEST")]
    source_request_id: Option<RequestId>,
}

/// Runs it.
pub(super) fn run(global: &Global, command: &Command) -> Result<(), Failure> {
    let root = global.workspace()?;
    let order = match command {
        Command::Start(start) => {
            workspace::must_exist(&root)?;
            Order::SprintStart { kickoff: Box::new(kickoff(&root, start)?) }
        }
        Command::Stop { now } => Order::SprintStop { now: *now },
        Command::Restart => Order::SprintRestart,
        Command::Status => {
            return show(&records::state(&global.existing()?)?);
        }
    };
    say(plain(&super::command::call(&root, order)?.text));
    Ok(())
}

fn kickoff(root: &Path, start: &Start) -> Result<Kickoff, Failure> {
    let milestone = start.milestone.trim();
    if milestone.is_empty() {
        return Err(Failure::usage("--milestone is blank: a sprint needs a milestone"));
    }
    let brief = start.brief.trim();
    let mut requirements: Vec<String> = Vec::new();
    for words in start.requirements.iter().map(|words| words.trim()) {
        if words.is_empty() {
            return Err(Failure::usage(
                "--requirement is blank: leave it out, or say what has to hold",
            ));
        }
        if !requirements.iter().any(|known| known == words) {
            requirements.push(words.to_owned());
        }
    }
    // Every file is looked at before any is copied.
    let found =
        start.artifacts.iter().map(|file| find(root, file)).collect::<Result<Vec<_>, _>>()?;
    let artifacts =
        found.into_iter().map(|file| within(root, &file)).collect::<Result<Vec<_>, _>>()?;
    let mut kickoff = Kickoff {
        milestone: milestone.to_owned(),
        brief: brief.to_owned(),
        requirements,
        artifacts,
        missing_files: 0,
        request_text: String::new(),
        source_request_id: start.source_request_id.clone(),
        reply_route: ReplyRoute { author_name: "operator".to_owned(), ..ReplyRoute::default() },
        language: Language::of(&format!("{milestone} {brief}")),
    };
    kickoff.request_text = kickoff.written();
    Ok(kickoff)
}

/// The file as it was named: from here, or from the workspace.
fn find(root: &Path, named: &Path) -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().unwrap_or_default().join(named);
    let found = [here, root.join(named)].into_iter().find(|path| files::exists(path));
    let wrong = |why: &str| Failure::new(format!("--artifact {}: {why}", named.display()));
    let Some(path) = found else {
        let hint = "paths are taken from the current folder, then from the workspace";
        return Err(wrong("there is no such file").hint(Some(hint.to_owned())));
    };
    let meta = files::metadata(&path)?;
    if !meta.is_file() {
        return Err(wrong("it is not a file"));
    }
    if meta.len() > LARGEST {
        return Err(wrong("it is larger than 25 MiB"));
    }
    Ok(files::canonicalize(&path)?)
}

/// The path relative to the workspace; a file from outside is copied into it first.
fn within(root: &Path, file: &Path) -> Result<String, Failure> {
    let root = files::canonicalize(root)?;
    if let Ok(inside) = file.strip_prefix(&root) {
        return Ok(inside.to_string_lossy().into_owned());
    }
    use sha2::{Digest, Sha256};
    let bytes = files::read(file)?;
    let digest: String =
        Sha256::digest(&bytes).iter().take(6).map(|b| format!("{b:02x}")).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let kept = format!("{ATTACHMENTS}/{digest}_{}", crate::discord::attachments::safe_name(&name));
    files::create_dir_all(&root.join(ATTACHMENTS))?;
    files::write_private_durable(&root.join(&kept), bytes)?;
    Ok(kept)
}

/// `teams sprint status` and `teams status --sprint` (`spec/teams.md` 1.2): one field a line.
pub(super) fn show(state: &State) -> Result<(), Failure> {
    let (view, sprint) = match (state.active_sprint(), state.last_sprint()) {
        (Some(active), _) => ("active", active),
        (None, Some(latest)) => ("latest", latest),
        (None, None) => {
            return Err(Failure::new("no sprint record found")
                .hint(Some("begin one with `teams sprint start --milestone …`".to_owned())));
        }
    };
    for (name, value) in fields(view, sprint, state.scheduler.slots.next_slot_at) {
        say(format_args!("{name}={value}"));
    }
    Ok(())
}

fn fields(
    view: &str,
    sprint: &Sprint,
    next_slot: Option<Timestamp>,
) -> Vec<(&'static str, String)> {
    let time = |at: Option<Timestamp>| at.map_or_else(|| "N/A".to_owned(), |at| at.to_string());
    let closeout = sprint.closing.status.map_or("N/A", |status| status.as_str());
    let counts: Vec<String> =
        sprint.todo_counts().iter().map(|(status, n)| format!("{}:{n}", status.as_str())).collect();
    vec![
        ("view", view.to_owned()),
        ("sprint_id", sprint.sprint_id.to_string()),
        ("sprint_name", sprint.sprint_name.clone()),
        ("phase", sprint.phase.to_string()),
        ("milestone_title", sprint.milestone_title.clone()),
        ("status", sprint.status.to_string()),
        ("trigger", sprint.trigger.to_string()),
        ("started_at", time(sprint.started_at)),
        ("ended_at", time(sprint.ended_at)),
        ("closeout_status", closeout.to_owned()),
        ("next_slot_at", time(next_slot)),
        ("todos", if counts.is_empty() { "none".to_owned() } else { counts.join(",") }),
    ]
}
