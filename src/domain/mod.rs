//! The words of the house: types and their invariants. No I/O, clock, randomness or async.

pub mod lenient;
pub mod result;
pub mod role;
pub mod routing;
pub mod workflow;
