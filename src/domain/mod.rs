//! The words of the house: types and their invariants. No I/O, clock, randomness or async.

pub mod backlog;
pub mod change;
pub mod config;
pub mod effect;
pub mod envelope;
pub mod event;
pub mod evidence;
pub mod finding;
pub mod gate;
pub mod ids;
pub mod incoming;
pub mod ingress;
pub mod lenient;
pub mod operation;
pub mod outgoing;
pub mod policy;
pub mod request;
pub mod result;
pub mod role;
pub mod routing;
pub mod run;
pub mod schedule;
pub mod sprint;
pub mod state;
pub mod time;
pub mod workflow;
