//! Reading text: what people and roles write becomes facts. Pure; no regex where a loop says it.

pub mod terms;

mod paths;

pub use paths::normalize_artifact_hint;
