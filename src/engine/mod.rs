//! Pure decisions: no I/O, clock, randomness or async.

pub mod contract;
pub mod parse;
pub mod routing;
pub mod workflow;
