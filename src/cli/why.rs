//! `teams why <id>`: what a request, an item, a todo, a sprint or a gate waits for.

use super::plain::plain;
use super::{Failure, Global, records, say};
use crate::assets::catalog::Catalog;
use crate::domain::commands::Question;
use crate::domain::ids::{RequestId, SubjectId};
use crate::domain::time::Timestamp;
use crate::engine::why;
use crate::platform::clock;
use crate::store;

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A request, an item, a todo, a sprint or a gate; an item also by what its plan calls it, such as US-001
    #[arg(value_name = "ID")]
    id: SubjectId,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let root = global.existing()?;
    let state = records::state(&root)?;
    let policy = match records::policy(&root) {
        Ok(policy) => policy,
        // The running team has read a configuration that is right, and knows.
        Err(error) if store::is_owned(&root) => {
            let question = Question::Why(args.id.clone());
            say(plain(&super::command::call(&root, question)?.text));
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    let now = Timestamp::new(clock::now());
    let open = why::about(&state, &policy, &args.id, now);
    let is_open = open.is_some();
    let ended = || match RequestId::parse(args.id.as_str()) {
        Ok(id) => records::request(&root, &id),
        Err(_) => Ok(None),
    };
    let content = match open {
        Some(content) => content,
        None => match ended()? {
            Some(request) => why::why(&state, &policy, &request, now),
            None => return Err(unknown(&args.id)),
        },
    };
    let rendered = Catalog::builtin()?.render(&content);
    say(plain(&rendered.map(|rendered| rendered.text).unwrap_or(content.key)));
    if !store::is_owned(&root) && is_open {
        say("The team is not running; `teams run` starts it.");
    }
    Ok(())
}

fn unknown(id: &SubjectId) -> Failure {
    if let Some(id) = RequestId::parse(id.as_str()).ok().filter(RequestId::looks_made) {
        return super::command::unknown(&id);
    }
    let hint = "`teams status` lists the requests, `teams backlog list` the items, `teams board` the todos";
    Failure::new(format!("nothing here has the id {id}")).hint(Some(hint.to_owned()))
}
