//! `teams mcp`: the tools of a run for the agent that works on it. Agents start it by themselves, told how
//! by the team; for anybody else there is nothing behind it.

use std::path::Path;

use super::Failure;
use crate::service::{self, RUN_SOCKET};

/// Serves standard input until it ends.
pub(super) fn run() -> Result<(), Failure> {
    let socket = std::env::var_os(RUN_SOCKET).filter(|path| !path.is_empty());
    let runtime = super::runtime()?;
    let ask = |wanted| match &socket {
        None => Err("these tools are there within a run of the team only".to_owned()),
        Some(socket) => runtime
            .block_on(service::call_of_run(Path::new(socket), wanted))
            .map(|reply| reply.text)
            .map_err(|error| error.to_string()),
    };
    service::mcp::serve(std::io::stdin().lock(), std::io::stdout().lock(), ask)
        .map_err(|error| Failure::new(format!("the conversation broke off: {error}")))
}
