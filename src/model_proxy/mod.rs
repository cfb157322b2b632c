//! The model proxy: the way of agents to their models, and out.
//!
//! Real keys are here and nowhere else. Each run gets a socket of its own and a token that opens nothing but
//! that; the proxy takes the token off, puts the key on, lets through what a model server is asked for and
//! nothing else, counts the tokens on their way back, and says no when the run has spent what it may. What
//! passes is neither kept nor logged.

mod answer;
mod api;
mod configured;
mod error;
mod forward;
mod limit;
mod meter;
mod outside;
mod proxy;
mod servers;
mod shared_budgets;
mod traffic;
mod usage;

pub use configured::{configured, server_of};
pub use error::ModelProxyError;
pub use meter::{MeterReading, RateLimitSign, is_kept, usage_in};
pub use outside::AllowedHosts;
pub use proxy::{ModelProxy, ProxyOptions, RefusedCall, socket_in};
pub use servers::{ModelServers, Server};
pub use shared_budgets::RunAllowance;
