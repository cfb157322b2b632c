//! `teams why <id>`: one line about what a request waits for.

use super::plain::plain;
use super::{Failure, Global, records, say};
use crate::assets::catalog::Catalog;
use crate::domain::commands::Question;
use crate::domain::ids::RequestId;
use crate::domain::request::Request;
use crate::domain::time::Timestamp;
use crate::engine::why;
use crate::platform::{clock, files};
use crate::store;
use crate::workspace;

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The request, such as 20260324-1a2b3c4d
    #[arg(value_name = "REQUEST")]
    request: RequestId,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let root = global.existing()?;
    let state = records::state(&root)?;
    let request = match state.requests.get(&args.request) {
        Some(request) => Some(Request::clone(request)),
        None => store::read_request(&root, &args.request)?,
    };
    let Some(request) = request else {
        return Err(super::command::unknown(&args.request));
    };
    let workspace = match workspace::load(&root) {
        Ok(workspace) => workspace,
        // The running team has read a configuration that is right, and knows.
        Err(error) if store::is_owned(&root) => {
            let question = Question::Why(args.request.clone());
            say(plain(&super::command::call(&root, question)?.text));
            return Err(error.into());
        }
        Err(error) => return Err(error.into()),
    };
    let served = served(&root);
    let policy = workspace.policy(served, false)?;
    let content = why::why(&state, &policy, &request, Timestamp::new(clock::now()));
    let rendered = Catalog::builtin()?.render(&content);
    say(plain(&rendered.map(|rendered| rendered.text).unwrap_or(content.key)));
    if !store::is_owned(&root) && !request.status.is_terminal() {
        say("The team is not running; `teams run` starts it.");
    }
    Ok(())
}

/// The roles that the running team serves, as it wrote them down at its start.
fn served(root: &std::path::Path) -> std::collections::BTreeSet<crate::domain::role::Role> {
    let path = root.join(crate::service::SERVES_FILE);
    let text = files::read_text_if_present(&path).ok().flatten();
    text.and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_else(|| crate::domain::role::Role::ALL.into())
}
