//! Rules about plans: what is wrong with one, and in which order its items can be delivered.

pub mod check;
pub mod graph;
pub(super) mod import;
pub mod paths;
pub(super) mod review;
