//! Sprints: when they begin, how they are planned, worked on and closed (`spec/teams.md` 9 and 10).
//!
//! A sprint goes by its lifecycle ([`position`]). Every decision ends in [`follow`]: items, and with them todos, are brought
//! in line with the requests that this decision changed, and then what is next is done. Nothing else moves a todo.

pub mod backlog;
pub mod closeout;
pub(in crate::engine) mod commands;
pub mod names;
pub mod planning;
pub mod slots;
pub mod todos;

pub(super) use queue::{add_items, hand_over_dependents, is_in_work, release_todo};

mod advance;
mod closing;
mod coverage;
mod duties;
mod effects;
mod follow;
mod initial;
mod invariant;
mod next_slot;
mod plan_items;
mod plan_review;
mod position;
mod queue;
mod research;
mod running;
mod say;
mod schedule;
mod sourcing;
mod start;
mod todo_progress;

pub(in crate::engine) use advance::{advance, tick};
pub(in crate::engine) use closing::{withdraw_older, withdraw_replaced};
pub(in crate::engine) use commands::out_of_budget;
pub(in crate::engine) use duties::result as duty_result;
pub(in crate::engine) use effects::effect_finished;
pub(in crate::engine) use follow::follow;
pub use invariant::consistent;
pub(in crate::engine) use next_slot::go_by_settings;
pub(in crate::engine) use plan_items::{replace_with_items, start_with_items};
pub use running::slots as slots_of;
pub use schedule::due;
pub(in crate::engine) use sourcing::{answered, bring_back, drop_item, put_aside_with};
pub(in crate::engine) use todo_progress::without_request;
