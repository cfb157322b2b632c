//! The words of the house: types and their invariants. No I/O, clock, randomness or async.

pub mod role;
pub mod workflow;
