//! What comes before a team runs: `teams setup` with its undo, and `teams doctor`.

pub mod doctor;
mod project;
pub mod proposals;
pub mod setup;

pub use project::{beside, open_project, place_outside};
