//! `teams answer`: what the planner asks before anything is built.

use super::{Failure, Global, command};
use crate::domain::ids::RequestId;
use crate::domain::incoming::Command;
use crate::domain::plan_decision::NumberedAnswer;

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The request
    #[arg(value_name = "REQUEST")]
    request: RequestId,
    /// The number of a question and its answer: `1=2` for its second option, `1=you-decide`, or `1=` and words
    #[arg(value_name = "NUMBER=ANSWER", required_unless_present = "rest")]
    answers: Vec<NumberedAnswer>,
    /// Leave the other questions to the planner
    #[arg(long)]
    rest: bool,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let (request_id, answers) = (args.request.clone(), args.answers.clone());
    let (rest, card) = (args.rest, None);
    command::say_call(global, Command::AnswerQuestions { request_id, answers, rest, card })
}
