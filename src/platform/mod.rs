//! What the rest of the house may not do itself: files, processes, clock, randomness, tasks.

pub mod clock;
pub mod files;
pub mod ids;
pub mod redact;
pub mod spawn;
pub mod supervise;
pub mod tasks;
