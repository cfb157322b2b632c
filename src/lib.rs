//! `teams`: a software team that lives in a Discord server.
//!
//! Each folder is a module; what it may use is fixed in `tests/it/tidy.rs`. The way of a message is
//! discord → engine → store → relay → worker → agents → git → discord; `service` composes it.

pub mod agents;
pub mod assets;
pub mod cli;
pub mod discord;
pub mod domain;
pub mod engine;
pub mod git;
pub mod import;
pub mod local_guild;
pub mod model_proxy;
pub mod onboarding;
pub mod platform;
pub mod rehearsal;
pub mod relay;
pub mod service;
pub mod store;
pub mod worker;
pub mod workspace;
