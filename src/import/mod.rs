//! Readers of what others wrote, into our types: workspaces of the older runtime, and plans.

pub mod older;
pub mod plan;
