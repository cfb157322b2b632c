//! The one integration-test binary. Each file is a subject.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod agents;
mod codex;
mod supervise;
mod support;
