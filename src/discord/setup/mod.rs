//! What the team needs to find in Discord, and how it comes to be there: permissions, intents, channels,
//! roles and webhooks. What is wanted, what is there and what has to be made are values; [`Builder`] makes
//! and undoes, one thing at a time, so that being cut off anywhere loses nothing and doubles nothing.

pub mod build;
mod calls;
pub mod intents;
pub mod journal;
pub mod permissions;
pub mod plan;
pub mod seen;
pub mod thing;

pub use build::{BuildError, Builder, Undone};
pub use calls::{Application, GuildName, TeamOwner};
pub use journal::{BotPages, Journal, JournalError};
pub use plan::{Standing, Wanted};
pub use seen::{Seen, ServerChannel, ServerRole};
pub use thing::{Place, Thing};

#[cfg(test)]
mod tests;
