//! The composition: one hub that owns the records, workers that do what is planned, and the ways in
//! and out. Rules are the engine's; here is only the order in which things happen.

mod archive;
mod contract;
mod control;
mod delivery;
mod documents;
mod effects;
mod hub;
mod inbound;
pub mod logs;
mod papers;
mod relay;
mod run;
mod sprint_effects;
mod task;
mod team;
mod workers;

pub use control::{ControlError, call};
pub use effects::check_spec;
pub use hub::HubError;
pub use run::{RunError, RunOptions, SERVES_FILE, run};
