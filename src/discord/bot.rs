//! One of the team's bots.

use crate::domain::role::Role;

/// Whose session it is; `None` is the bot that listens for the team.
pub(crate) type Bot = Option<Role>;
