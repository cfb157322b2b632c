//! `teams checks`: what the project shows, and what the checks say about a commit.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::output::say_json;
use super::plain::plain;
use super::told::{Teller, language, object};
use super::{Failure, Global, say};
use crate::domain::evidence::{CheckRun, CheckVerdict, Evidence, UsedEnvironment};
use crate::git::{Consent, GitError};
use crate::onboarding::{open_project, proposals};
use crate::platform::terminal;
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
    /// Write them into team_runtime.yaml, where no checks stand yet
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

pub(super) fn teller(workspace: &Workspace, json: bool) -> Result<Teller, Failure> {
    Teller::new(language(workspace.runtime.language), json)
}

fn propose(global: &Global, args: &Propose) -> Result<(), Failure> {
    let root = global.existing()?;
    let workspace = workspace::load(&root)?;
    let teller = teller(&workspace, args.json)?;
    let wrong = |error: &dyn std::fmt::Display| Failure::new(plain(&error.to_string()));
    let project = open_project(&workspace).map_err(|error| wrong(&error))?;
    let found = proposals::propose(&project).map_err(|error| wrong(&error))?;
    let configured = workspace.runtime.checks.len();
    let mut values = object(json!(found));
    values.insert("configured".to_owned(), json!(configured));
    let tell = |key: &str, accepted: bool| {
        if teller.is_json() {
            teller.object(vec![("accepted", json!(accepted))], &values);
        } else {
            say(teller.words(key, &values));
        }
    };
    if found.checks.is_empty() {
        tell("checks.nothing_shown", false);
        return Ok(());
    }
    if configured > 0 && args.accept {
        let message = format!("{configured} checks are configured already; they stay as they are");
        let hint = "`teams checks propose` shows the others; write them into team_runtime.yaml";
        return Err(Failure::new(message).hint(Some(hint.to_owned())));
    }
    let asked = !args.accept && configured == 0 && !teller.is_json() && terminal::is_there();
    let accepted = args.accept || (asked && agrees(&teller, "setup.checks.ask", &values)?);
    if !accepted {
        tell("checks.proposed", false);
        return Ok(());
    }
    let chosen = proposals::settings(&found, &workspace.runtime);
    if let Some(change) = settings::plan(&root, ConfigFile::Runtime, &chosen, None)? {
        change.write(&root)?;
    }
    tell("setup.checks.written", true);
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
    let teller = teller(&workspace, false)?;
    let times = counted.iter().map(|(name, it)| json!({ "name": name, "times": it.times }));
    let values = json!({ "counted": times.collect::<Vec<_>>() });
    say(teller.words("checks.flaky", &object(values)));
    Ok(())
}

fn agrees(teller: &Teller, key: &str, values: &Map<String, Value>) -> Result<bool, Failure> {
    let question = teller.words(key, values);
    let answer = terminal::line(&format!("{question} "));
    let unread = |error| Failure::new(format!("the terminal cannot be read: {error}"));
    Ok(answer.map_err(unread)? == "yes")
}

fn prove(global: &Global, args: &Run) -> Result<bool, Failure> {
    let root = global.existing()?;
    let teller = teller(&workspace::load(&root)?, args.json)?;
    // Ctrl-C ends the checks with all that they started, and removes their tree.
    let prove = |consent: Consent| {
        super::until_interrupt(async |stop| {
            proofs::by_hand(&root, args.commit.clone(), consent.clone(), &stop).await
        })
    };
    let proof = match prove(if args.prepare { Consent::Operator } else { Consent::None })? {
        Err(ProofError::Git(GitError::PreparationAsked(question)))
            if !teller.is_json() && terminal::is_there() =>
        {
            match agrees(&teller, "checks.prepare.ask", &object(json!(question)))? {
                true => prove(Consent::To(question.digest))?,
                false => Err(ProofError::Git(GitError::PreparationAsked(question))),
            }
        }
        proof => proof,
    };
    let ManualRun { evidence, logs } = proof.map_err(failure)?;
    let green = evidence.is_green();
    if teller.is_json() {
        let mut value = json!(evidence);
        value["green"] = json!(green);
        value["logs"] = json!(logs);
        say_json(&value, true);
        return Ok(green);
    }
    tell(&teller, &evidence);
    let values = json!({"commit": evidence.commit, "logs": logs.display().to_string()});
    let key = if green { "checks.green" } else { "checks.red" };
    say(teller.words(key, &object(values)));
    Ok(green)
}

fn tell(teller: &Teller, evidence: &Evidence) {
    tell_prepared(teller, &evidence.environments);
    let values = json!({
        "commit": evidence.commit,
        "isolated": evidence.isolation.is_isolated(),
        "seconds": seconds(evidence.tree_ms),
    });
    teller.line("checks.mark.tree", &teller.words("checks.tree", &object(values)));
    for check in &evidence.checks {
        let values = json!({
            "name": check.name,
            "command": check.command,
            "exit_code": check.exit_code,
            "passed": check.tests_passed,
            "failed": check.tests_failed,
            "seconds": seconds(check.duration_ms),
        });
        teller.line(mark(check), &teller.words("checks.check", &object(values)));
        if check.verdict != CheckVerdict::Passed {
            for line in check.log_tail.lines() {
                say(format_args!("    {}", plain(line)));
            }
        }
    }
}

/// What was prepared, and how long that took.
pub(super) fn tell_prepared(teller: &Teller, environments: &[UsedEnvironment]) {
    for one in environments {
        let values = json!({ "name": one.name, "seconds": one.prepared_ms.map(seconds) });
        teller.line("checks.mark.prepare", &teller.words("checks.prepared", &object(values)));
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
            "what they name is the code of others; `--prepare` runs it, apart from everything else",
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
