//! `teams checks`: what the project shows, and what the checks say about a commit.

use std::io;
use std::process::ExitCode;

use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::output::say_json;
use super::plain::plain;
use super::told::{Printer, language, object};
use super::{Failure, Global, say};
use crate::domain::check_proposal::CheckProposal;
use crate::domain::evidence::{CheckRun, CheckVerdict, Evidence, UsedEnvironment};
use crate::git::{Consent, GitError};
use crate::onboarding::{open_project, proposals};
use crate::platform::{tasks, terminal};
use crate::service::proofs::{self, ManualRun, ProofError};
use crate::workspace::settings::{self, ConfigFile};
use crate::workspace::{self, Workspace};

/// What about them.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Look at the manifests of the project, and propose checks
    Propose(Propose),
    /// Run the configured checks as the team would, in a clean tree of a commit; 1 where something is red
    Run(Run),
    /// Count what was red and green without a change
    Flaky(Flaky),
}

/// The options of the count.
#[derive(Debug, clap::Args)]
pub(super) struct Flaky {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// The options of a proposal.
#[derive(Debug, clap::Args)]
pub(super) struct Propose {
    /// Write what is not configured yet into team_runtime.yaml
    #[arg(long)]
    accept: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// The options of a run.
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// A commit, branch or tag [default: the tip of the project's branch]
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,
    /// Prepare what the commit asks for without asking, which runs the code that its lock files name
    #[arg(long)]
    prepare: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(global: &Global, command: &Command) -> ExitCode {
    let outcome = match command {
        Command::Propose(args) => propose(global, args).map(|()| true),
        Command::Run(args) => prove(global, args),
        Command::Flaky(args) => flaky(global, args).map(|()| true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => failure.report(),
    }
}

pub(super) fn printer(workspace: &Workspace, json: bool) -> Result<Printer, Failure> {
    Printer::new(language(workspace.runtime.language), json)
}

fn propose(global: &Global, args: &Propose) -> Result<(), Failure> {
    let root = global.existing()?;
    let workspace = workspace::load(&root)?;
    let printer = printer(&workspace, args.json)?;
    let wrong = |error: &dyn std::fmt::Display| Failure::new(plain(&error.to_string()));
    let project = open_project(&workspace).map_err(|error| wrong(&error))?;
    let found = proposals::propose(&project).map_err(|error| wrong(&error))?;
    let configured = workspace.runtime.checks.len();
    let missing = proposals::missing(&found, &workspace.runtime);
    let chosen = proposals::settings(&missing);
    let tell = |key: &str, told: &CheckProposal, accepted: bool| {
        let mut values = object(json!(told));
        values.insert("configured".to_owned(), json!(configured));
        values.insert("missing".to_owned(), json!(!chosen.is_empty()));
        if printer.is_json() {
            printer.object(vec![("accepted", json!(accepted))], &values);
        } else {
            say(printer.words(key, &values));
        }
    };
    if found.checks.is_empty() && args.accept {
        let hint = "write `checks` into team_runtime.yaml; the example there says how";
        let message = "no file of the project shows how it is tested: there is nothing to accept";
        return Err(Failure::new(message).hint(Some(hint.to_owned())));
    }
    if found.checks.is_empty() {
        tell("checks.nothing_shown", &found, false);
        return Ok(());
    }
    if chosen.is_empty() && args.accept {
        let message = format!("{configured} checks are configured already; they stay as they are");
        let hint = "`teams checks propose` shows the others; write them into team_runtime.yaml";
        return Err(Failure::new(message).hint(Some(hint.to_owned())));
    }
    let asks = !chosen.is_empty() && !printer.is_json() && terminal::is_there();
    let question = || printer.words("setup.checks.ask", &object(json!(missing)));
    let accepted = args.accept || (asks && agrees(&question())?);
    if !accepted {
        let told = if configured == 0 { &missing } else { &found };
        tell("checks.proposed", told, false);
        return Ok(());
    }
    let _alone = workspace::edit::alone(&root)?;
    let now = proposals::missing(&found, &workspace::load(&root)?.runtime);
    if proposals::settings(&now) != chosen {
        let message = "team_runtime.yaml was changed meanwhile, and stays as it is";
        let hint = "`teams checks propose` looks again";
        return Err(Failure::new(message).hint(Some(hint.to_owned())));
    }
    if let Some(change) = settings::plan(&root, ConfigFile::Runtime, &chosen, None)? {
        change.write(&root)?;
    }
    tell("setup.checks.written", &missing, true);
    Ok(())
}

fn flaky(global: &Global, args: &Flaky) -> Result<(), Failure> {
    let workspace = workspace::load(&global.existing()?)?;
    let counted = proofs::flaky(&workspace);
    let counted = counted.map_err(|error| Failure::new(plain(&error.to_string())))?;
    if args.json {
        say_json(&json!(counted), true);
        return Ok(());
    }
    let printer = printer(&workspace, false)?;
    let times = counted.iter().map(|(name, it)| json!({ "name": name, "times": it.times }));
    let values = json!({ "counted": times.collect::<Vec<_>>() });
    say(printer.words("checks.flaky", &object(values)));
    Ok(())
}

fn agrees(question: &str) -> Result<bool, Failure> {
    Ok(terminal::line(&format!("{question} ")).map_err(unread)? == "yes")
}

/// The same, unless it is told to stop before: that is a no. Its thread may wait for an answer until the process ends.
async fn agrees_unless(stop: &CancellationToken, question: String) -> Result<bool, Failure> {
    let (answered, answer) = oneshot::channel();
    tasks::thread("question", move || drop(answered.send(agrees(&question)))).map_err(unread)?;
    tokio::select! {
        answer = answer => answer.unwrap_or(Ok(false)),
        () = stop.cancelled() => Ok(false),
    }
}

fn unread(error: io::Error) -> Failure {
    Failure::new(format!("the terminal cannot be read: {error}"))
}

fn prove(global: &Global, args: &Run) -> Result<bool, Failure> {
    let root = global.existing()?;
    let printer = printer(&workspace::load(&root)?, args.json)?;
    // Ctrl-C ends the checks with all that they started, and removes their tree.
    let proof: Result<_, Failure> = super::until_interrupt(async |stop| {
        let prove =
            async |consent| proofs::by_hand(&root, args.commit.clone(), consent, &stop).await;
        match prove(if args.prepare { Consent::Operator } else { Consent::None }).await {
            Err(ProofError::Git(GitError::PreparationAsked(asked)))
                if !printer.is_json() && terminal::is_there() =>
            {
                let question = printer.words("checks.prepare.ask", &object(json!(asked)));
                match agrees_unless(&stop, question).await? {
                    true => Ok(prove(Consent::To(asked.digest)).await),
                    false => Ok(Err(ProofError::Git(GitError::PreparationAsked(asked)))),
                }
            }
            proof => Ok(proof),
        }
    })?;
    let ManualRun { evidence, logs } = proof?.map_err(failure)?;
    let green = evidence.is_green();
    if printer.is_json() {
        let mut value = json!(evidence);
        value["green"] = json!(green);
        value["logs"] = json!(logs);
        say_json(&value, true);
        return Ok(green);
    }
    tell(&printer, &evidence);
    let values = json!({"commit": evidence.commit, "logs": logs.display().to_string()});
    let key = if green { "checks.green" } else { "checks.red" };
    say(printer.words(key, &object(values)));
    Ok(green)
}

fn tell(printer: &Printer, evidence: &Evidence) {
    tell_prepared(printer, &evidence.environments);
    let values = json!({
        "commit": evidence.commit,
        "isolated": evidence.isolation.is_isolated(),
        "seconds": seconds(evidence.tree_ms),
    });
    printer.line("checks.mark.tree", &printer.words("checks.tree", &object(values)));
    for check in &evidence.checks {
        let values = json!({
            "name": check.name,
            "command": check.command,
            "exit_code": check.exit_code,
            "passed": check.tests_passed,
            "failed": check.tests_failed,
            "seconds": seconds(check.duration_ms),
        });
        printer.line(mark(check), &printer.words("checks.check", &object(values)));
        if check.verdict != CheckVerdict::Passed {
            for line in check.log_tail.lines() {
                say(format_args!("    {line}"));
            }
        }
    }
}

/// What was prepared, and how long that took.
pub(super) fn tell_prepared(printer: &Printer, environments: &[UsedEnvironment]) {
    for one in environments {
        let values = json!({ "name": one.name, "seconds": one.prepared_ms.map(seconds) });
        printer.line("checks.mark.prepare", &printer.words("checks.prepared", &object(values)));
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:02}", milliseconds / 1_000, milliseconds % 1_000 / 10)
}

const fn mark(check: &CheckRun) -> &'static str {
    match check.verdict {
        CheckVerdict::Passed => "checks.mark.passed",
        CheckVerdict::Failed => "checks.mark.failed",
        CheckVerdict::TimedOut => "checks.mark.timed_out",
        CheckVerdict::CutOff => "checks.mark.cut_off",
        CheckVerdict::NotStarted => "checks.mark.not_started",
        CheckVerdict::EnvironmentFault => "checks.mark.environment_fault",
    }
}

pub(super) fn failure(error: ProofError) -> Failure {
    let hint = match &error {
        ProofError::NoChecks(_) => Some("`teams checks propose` looks what the project shows"),
        ProofError::NothingToPrepare(_) => Some("docs/checks.md shows an entry of `prepare`"),
        ProofError::Busy(_) => Some("wait for it, or end it with Ctrl-C"),
        ProofError::Git(GitError::PreparationAsked(_)) => Some(
            "they name code that others wrote; `--prepare` runs it, apart from everything else",
        ),
        ProofError::Config(_) | ProofError::Git(_) | ProofError::File(_) | ProofError::Cut(_) => {
            None
        }
    };
    if let ProofError::Config(error) = error {
        return error.into();
    }
    Failure::new(plain(&error.to_string())).hint(hint.map(str::to_owned))
}
