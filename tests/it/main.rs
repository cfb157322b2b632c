//! The one integration-test binary. Each file is a subject.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod conformance;
mod git;
mod git_checks;
mod git_merge;
mod supervise;
mod tidy;
