//! `teams board`: the sprint's todos by what they wait for, and the queue to the branch.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::output::{is_read, say_json};
use super::plain::plain;
use super::{Failure, Global, records, say};
use crate::assets::catalog::Catalog;
use crate::domain::outgoing::Content;
use crate::domain::time::Timestamp;
use crate::engine::board::board;
use crate::platform::clock;

/// How often `--watch` looks.
const PACE: Duration = Duration::from_secs(1);

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show it again whenever it changes, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let root = global.existing()?;
    let (values, text) = look(&root)?;
    if args.json {
        say_json(&values, true);
        return Ok(());
    }
    say(&text);
    let mut shown = text;
    while args.watch && is_read() {
        std::thread::sleep(PACE);
        let (_, text) = look(&root)?;
        if text != shown {
            say(format_args!("\n{text}"));
            shown = text;
        }
    }
    Ok(())
}

fn look(root: &Path) -> Result<(Value, String), Failure> {
    let (state, policy) = (records::state(root)?, records::policy(root)?);
    let values = board(&state, &policy, Timestamp::new(clock::now()));
    let content = Content {
        key: "board".to_owned(),
        values: values.as_object().cloned().unwrap_or_default(),
        language: policy.language,
    };
    let rendered = Catalog::builtin()?.render(&content);
    Ok((values, plain(&rendered.map(|rendered| rendered.text).unwrap_or(content.key))))
}
