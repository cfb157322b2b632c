//! `teams verify`: what has landed and waits for a person who looks.

use super::{Failure, Global, command};
use crate::domain::commands::Question;
use crate::domain::incoming::Command;
use crate::domain::verification::{CriterionRef, ManualVerdict};

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The criterion, such as 20260324-1a2b3c4d.2; without one, those that wait are listed
    #[arg(value_name = "CRITERION", requires = "verdict")]
    criterion: Option<CriterionRef>,
    /// How it is: pass, issue, skip or blocked
    #[arg(value_name = "VERDICT")]
    verdict: Option<ManualVerdict>,
    /// What is wrong, for an issue: it becomes an item of the backlog
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let (Some(criterion), Some(verdict)) = (args.criterion.clone(), args.verdict) else {
        return command::say_call(global, Question::Verify);
    };
    let words = args.words.join(" ");
    if words.trim().is_empty() && verdict == ManualVerdict::Issue {
        return Err(Failure::usage("say what is wrong behind `issue`".to_owned()));
    }
    command::say_call(global, Command::Verify { criterion, verdict, words })
}
