//! The command line: one file a command.

use std::process::ExitCode;

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
