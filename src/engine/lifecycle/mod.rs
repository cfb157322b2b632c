//! What happens after a role's report: the mover of requests and sprints along their lifecycle (`spec/teams.md` 7).
//!
//! [`decide`] takes the state and the facts of a report and gives the next state, so that the same
//! history always gives the same decisions. The lifecycle says where an outcome leads; what a result means, and
//! what no lifecycle can switch off, stands here. Where the older contract lost work or closed what was
//! not proven (`spec/teams.md` 13.A), the better rule stands here.

mod decision;
mod guard;
mod mover;
mod moves;
mod outcome;
mod report;
mod surfaces;

pub use decision::{BlockReason, ReportChange, WorkflowDecision};
pub use guard::{decide, drop_foreign_documents};
pub use mover::{MoveResult, follow_sprint, place_sprint, reopen};
pub use moves::{
    Observation, again, begin, build_again, lengthen, observed, plan_again, plan_taken, resume,
    resume_at_its_step, resume_with_words, route, solve_again,
};
pub use outcome::close_in_planning;
pub use report::{DocumentRule, StepReport};
pub use surfaces::{is_planner_document, is_planning_surface};

#[cfg(test)]
mod histories;
#[cfg(test)]
pub(in crate::engine) mod steps;
#[cfg(test)]
mod tests;
