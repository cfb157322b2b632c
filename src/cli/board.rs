//! `teams board`: the sprint's todos by what they wait for, and the queue to the branch.

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::plain::plain;
use super::{Failure, Global, records, say};
use crate::assets::catalog::Catalog;
use crate::domain::outgoing::Content;
use crate::domain::time::Timestamp;
use crate::engine::board::board;
use crate::platform::clock;

/// How often `--watch` looks.
const PACE: Duration = Duration::from_secs(1);
/// Clears the screen, and goes to its upper left.
const CLEAR: &str = "\x1b[2J\x1b[H";

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
        say(serde_json::to_string_pretty(&values).unwrap_or_default());
        return Ok(());
    }
    let is_screen = std::io::stdout().is_terminal();
    let show = |text: &str| {
        say(if is_screen && args.watch { format!("{CLEAR}{text}") } else { format!("{text}\n") })
    };
    if !args.watch {
        say(text);
        return Ok(());
    }
    show(&text);
    let mut shown = text;
    loop {
        std::thread::sleep(PACE);
        let (_, text) = look(&root)?;
        if text != shown {
            show(&text);
            shown = text;
        }
    }
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
