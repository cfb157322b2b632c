//! What does not work at Discord although the rest does: each costs only itself, and is named in `health`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::domain::ids::{ChannelId, GuildId, UserId};
use crate::domain::role::Role;

/// Something that does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkProblem {
    /// Slash commands of a server that are not registered.
    Commands(GuildId),
    /// Roles have no voices of their own in a channel: they share some, or the bot speaks for them.
    Voices(ChannelId),
    /// A role's picture was refused; its voice goes without.
    Picture(Role),
    /// Somebody's rights could not be looked up so far: what they and others in their room wrote waits for that.
    Rights(UserId),
}

/// The problems as they stand.
#[derive(Debug, Default)]
pub struct LinkProblems(Mutex<BTreeMap<LinkProblem, String>>);

impl LinkProblems {
    /// Notes a problem with what Discord said, or with `None` that there is none any more.
    pub(crate) fn set(&self, problem: LinkProblem, reason: Option<String>) {
        let mut problems = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match reason {
            Some(reason) => problems.insert(problem, reason),
            None => problems.remove(&problem),
        };
    }

    /// The problems, in the values that `health` shows.
    #[must_use]
    pub fn lines(&self) -> Vec<Value> {
        let problems = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |(problem, reason): (&LinkProblem, &String)| match problem {
            LinkProblem::Commands(_) => json!({ "kind": "commands", "of": "", "reason": reason }),
            LinkProblem::Voices(channel) => {
                json!({ "kind": "voices", "of": format!("<#{channel}>"), "reason": reason })
            }
            LinkProblem::Rights(user) => {
                json!({ "kind": "rights", "of": format!("<@{user}>"), "reason": reason })
            }
            LinkProblem::Picture(role) => {
                json!({ "kind": "picture", "of": role, "reason": reason })
            }
        };
        problems.iter().map(line).collect()
    }
}
