//! The command line: one file a command.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::agents::rehearsal;
use crate::platform::{spawn, supervise};

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    if let Some(code) = hidden() {
        return code;
    }
    ExitCode::SUCCESS
}

/// The subcommands by which our binary is its own helper process; no part of the public command line.
fn hidden() -> Option<ExitCode> {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (name, rest) = args.split_first()?;
    match name.to_str()? {
        spawn::SUPERVISE => Some(supervise::main(rest)),
        spawn::REHEARSE => Some(rehearsal::main(rest)),
        _ => None,
    }
}
