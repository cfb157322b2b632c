//! What is said when this program itself is at fault: one line on standard error and in the log, with secrets
//! taken out, because a panic's words are made of whatever was at hand.

use std::io::{self, Write as _};
use std::panic::PanicHookInfo;

use super::redact::redact;

/// From here on panics of this process are told so.
pub fn tell_cleanly() {
    std::panic::set_hook(Box::new(|panic| {
        let line = words(panic);
        tracing::error!("{line}");
        // There is nobody else to tell where standard error is gone.
        let _ = writeln!(io::stderr(), "{line}");
    }));
}

fn words(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let payload = panic.payload();
    let said = payload.downcast_ref::<&str>().copied();
    let said = said.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let said = said.unwrap_or("without words");
    let place = panic.location().map(|at| format!(" at {at}")).unwrap_or_default();
    redact(&format!("a fault of this program (thread {name}{place}): {said}")).into_owned()
}
