//! `teams setup`: from a token to a server in which the team can work. Each step looks first and does only
//! what is missing; what it makes goes into a journal, so that it can be cut off, repeated and undone.

mod bots;
mod error;
mod flow;
mod journal;
mod local;
mod options;
pub(super) mod requirements;
mod server;
mod undo;

pub use error::SetupError;
pub use flow::setup;
pub(super) use flow::{done_key, write};
pub(super) use journal::{journal, journal_file, lock};
pub use options::{DISCORD, Options, Outcome, SetupDialog, SetupStep, tokens};
pub use undo::{Undoable, undo, undoable};
