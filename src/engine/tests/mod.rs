//! The engine as a whole: scenes that name what people see, and random histories.

mod after_failure;
mod approvals;
mod bases;
mod budgets;
mod edges;
mod gate;
mod histories;
mod lanes;
mod lifecycles;
mod plan_reviews;
mod plans;
mod preparations;
mod questions;
mod revising;
mod rows;
mod scenes;
mod splits;
mod sprint_ends;
mod sprint_histories;
mod sprint_waits;
mod sprints;
mod steering;
mod train;
mod world;

pub(in crate::engine) use steering::report_of;
pub(in crate::engine) use world::{candidate, evidence, verdict};
