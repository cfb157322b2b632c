//! `teams prepare`: what checks and agents need, made ready before they need it.

use serde_json::json;

use super::checks::{failure, printer, tell_prepared};
use super::output::say_json;
use super::{Failure, Global};
use crate::service::proofs;
use crate::workspace;

/// Prepare what checks and agents need at the tip of the project's branch, as `prepare` in team_runtime.yaml says
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Make it anew where it is there already
    #[arg(long)]
    fresh: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let root = global.existing()?;
    let printer = printer(&workspace::load(&root)?, args.json)?;
    let prepared =
        super::until_interrupt(async |stop| proofs::prepare(&root, args.fresh, &stop).await)?;
    let prepared = prepared.map_err(failure)?;
    if args.json {
        say_json(&json!(prepared), true);
    } else {
        tell_prepared(&printer, &prepared);
    }
    Ok(())
}
