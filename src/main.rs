//! The `teams` binary: everything lives in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    teams::cli::main()
}
