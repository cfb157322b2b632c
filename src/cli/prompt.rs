//! `teams prompt`: what agents were told, word for word. It reads what lies in the workspace, so it works
//! without a running team as well.

use serde_json::json;

use super::output::say_json;
use super::{Failure, Global, say};
use crate::agents::{SentText, Why};
use crate::domain::lifecycle::StepName;
use crate::platform::redact::redact;
use crate::service::prompts::{self, RunPrompts};

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show what the agents of a request were told, or all that was sent in one run
    Show {
        /// A request lists its runs; a run, or how its id begins, is shown whole
        #[arg(value_name = "REQUEST|RUN")]
        what: String,
        /// JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Runs it.
pub(super) fn run(global: &Global, command: &Command) -> Result<(), Failure> {
    let Command::Show { what, json } = command;
    let root = global.existing()?;
    let told = prompts::told(&root, what).map_err(|error| Failure::new(error.to_string()))?;
    let one = match told.as_slice() {
        [] => {
            return Err(Failure::new(format!("nothing was sent in a run or for a request {what}"))
                .hint(Some("`teams list` names the open requests".to_owned())));
        }
        _ if told.iter().all(|it| it.record.request_id == *what) => None,
        [one] => Some(one),
        [.., last] if same_run(&told) => Some(last),
        _ => {
            let runs: Vec<&str> = told.iter().map(|it| it.run.as_str()).collect();
            return Err(Failure::new(format!("{what} could be {}", runs.join(", "))));
        }
    };
    match (one, json) {
        (Some(one), true) => say_json(&as_json(one), true),
        (Some(one), false) => say(redact(&whole(one))),
        (None, true) => say_json(&told.iter().map(as_json).collect::<Vec<_>>().into(), true),
        (None, false) => say(redact(&told.iter().map(line).collect::<Vec<_>>().join("\n"))),
    }
    Ok(())
}

/// Whether these are lives of one run.
fn same_run(told: &[RunPrompts]) -> bool {
    let id = |it: &RunPrompts| it.run.rsplit_once('.').map(|(id, _)| id.to_owned());
    told.iter().all(|it| id(it) == told.first().and_then(id))
}

fn as_json(told: &RunPrompts) -> serde_json::Value {
    json!({"run": told.run, "prompt": told.record, "sent": told.sent})
}

/// A run in a line.
fn line(told: &RunPrompts) -> String {
    let record = &told.record;
    let step = record.step.as_ref().map_or("-", StepName::as_str);
    let bytes: usize = told.sent.iter().map(|sent| sent.text.len()).sum();
    let cut = record.sections.iter().filter(|it| it.is_cut()).map(|it| it.name.as_str());
    let cut: Vec<&str> = cut.collect();
    let cut = if cut.is_empty() { "-".to_owned() } else { cut.join(",") };
    format!(
        "{} {} step={step} attempt={} agent={} texts={} bytes={bytes} cut={cut}",
        told.run,
        record.role,
        record.attempt,
        record.agent,
        told.sent.len()
    )
}

/// A run with everything that was sent.
fn whole(told: &RunPrompts) -> String {
    let record = &told.record;
    let mut out = line(told);
    if let Some(session) = &record.resumes {
        out.push_str(&format!("\ngoes on with the conversation {session}"));
    }
    out.push_str("\n\nsections, in bytes:");
    for section in &record.sections {
        out.push_str(&format!("\n  {:<10} {:>7}", section.name, section.bytes));
        if section.is_cut() {
            out.push_str(&format!(" of {}, cut", section.whole));
        }
        if section.orders > 0 {
            out.push_str(&format!(", {} quoted texts give instructions", section.orders));
        }
        if section.hidden > 0 {
            out.push_str(&format!(", {} hidden characters shown", section.hidden));
        }
    }
    let total: usize = record.sections.iter().map(|section| section.bytes).sum();
    out.push_str(&format!("\n  {:<10} {total:>7} of {} allowed\n", "all", record.budget));
    if record.agent == "rehearsal" {
        out.push_str("\nThe rehearsal agent reads the same as data.\n");
    }
    if !record.instructions.is_empty() {
        out.push_str("\n===== instructions of the agent itself, with every turn\n");
        out.push_str(&record.instructions);
        out.push('\n');
    }
    for sent in &told.sent {
        out.push_str(&format!("\n===== {}\n{}\n", heading(sent), sent.text));
    }
    out
}

fn heading(sent: &SentText) -> String {
    let why = match sent.why {
        Why::HandOver => return "to the earlier conversation: hand over".to_owned(),
        Why::Prompt => "the prompt",
        Why::Repair => "the answer has to be put right",
        Why::Words => "interrupted for words",
        Why::ToldAtWork => "told while it worked",
    };
    format!("turn {}: {why}", sent.turn.unwrap_or_default())
}
