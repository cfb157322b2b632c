//! What the team needs to find in Discord, and how it comes to be there: permissions, intents, channels,
//! roles and webhooks. What is wanted, what is there and what has to be made are values; [`Builder`] makes
//! and undoes, one thing at a time, so that being cut off anywhere loses nothing and doubles nothing.

pub mod build;
mod calls;
pub mod intents;
pub mod journal;
pub mod object;
pub mod permissions;
pub mod plan;
pub mod snapshot;

pub use build::{BuildError, Builder, Undone};
pub use calls::{Application, GuildName, TeamOwner};
pub use journal::{BotPages, Journal, JournalError};
pub use object::{ServerObject, TeamChannel};
pub use plan::{ServerRequirements, Standing};
pub use snapshot::{ServerChannel, ServerRole, ServerSnapshot};

#[cfg(test)]
mod tests;
