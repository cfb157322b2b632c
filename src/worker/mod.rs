//! The worker: carries out runs, in this process or later on another machine. It learns from the hub what to do and
//! tells it what came of it, over a transport and nothing else: it has neither the records nor the rules.

mod carry_out;
mod job;
mod messages;
mod project_view;
mod rate_limits;
mod refused_calls;
mod run_agent;
mod run_error;
mod run_socket;
mod serve;
mod spool;
#[expect(clippy::module_inception, reason = "the type that the module is named after")]
mod worker;

pub use job::{JobEnvironments, JobProxy, JobSpec, RUNS, run_folder};
pub use messages::{HUB, LOCAL_WORKER, MessageError, decode, encode, pack, remove, unpack};
pub use serve::serve;
pub use worker::{Worker, WorkerParts};
