//! The composition: one hub that owns the records, workers that do what is planned, and the ways in
//! and out. Rules are the engine's; here is only the order in which things happen.

mod access;
mod agent;
mod agent_command;
mod answers;
mod archive;
mod assignment;
mod busy;
mod checks;
mod clock;
mod contract;
mod control;
mod delivery;
pub mod discover;
mod dispatch;
mod documents;
mod effect_error;
mod effects;
mod hub;
mod inbound;
mod job;
pub mod logs;
pub mod mcp;
mod papers;
mod presence;
pub mod prompts;
pub mod proofs;
pub mod publish;
mod refusals;
mod relay;
mod retention;
mod run;
mod run_calls;
mod run_inboxes;
mod run_tools;
mod signals;
mod sprint_effects;
mod task;
mod team;
mod tool;

pub use checks::check_plan;
pub use control::{CallSubject, ControlError, Reply, call};
pub use hub::HubError;
pub use run::{RunError, RunOptions, SERVES_FILE, run};
pub use run_calls::{RUN_SOCKET, call as call_of_run};
pub use tool::Tool;
