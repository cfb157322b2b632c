//! Pure decisions: no I/O, clock, randomness or async.
//!
//! [`decide`] is the only way from an event to a change. It reads the open records, the policy, the
//! time and a supply of ids from its input, so that the same history always gives the same decisions.

pub mod authorize;
pub mod board;
pub mod contract;
pub mod intent;
pub mod lifecycle;
pub mod parse;
pub mod plan;
pub mod standing;
pub mod why;

mod actions;
mod after_failure;
mod attempts;
mod base;
mod budget;
mod claims;
mod clock;
mod closeout;
mod commands;
mod decide;
mod decision;
mod deleted_cards;
mod effects;
mod end_question;
mod ending;
mod followup;
mod gates;
mod handoff;
mod intake;
mod lanes;
mod message;
mod outbox;
mod parts;
mod pinned_board;
mod plan_items;
mod planning_changes;
mod progress;
mod proof;
mod question_answers;
mod questions;
mod recovery;
mod reports;
mod request_changes;
mod retry;
mod revise;
mod routes;
mod runs;
mod say;
mod split;
pub mod sprint;
mod status_card;
#[cfg(test)]
mod tests;
mod train;
mod turn;
pub mod verify;
mod withdrawal;
mod words;

pub use budget::{amount, plan_is_full, plan_limit};
pub use clock::due;
pub use decide::{Input, decide};
pub use decision::{Answer, Decision, Wake};
pub use gates::{budget_on_card, by_guard, command_lines, content_of, needs_reason};
pub use intake::{depends_on_roles, is_addressed_by_edit, would_take_in};
pub use lanes::{advice_of, choose as choose_lane, with_signals};
pub use questions::may_ask;
pub use runs::is_wanted;
pub use say::red_before;
pub use train::{expected, place};
pub use words::are_a_command;
