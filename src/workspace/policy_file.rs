//! `policy.yaml`: what an older workspace says about its workflow. Everything else in it has no meaning any more:
//! steps, roles and ways stand in the lifecycle.

use std::path::Path;

use serde::Deserialize;

use super::error::ConfigError;
use super::yaml::{from_yaml, text_if_present};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PolicyFile {
    workflow_contract: Contract,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Contract {
    implementation_review_cycle_limit: Option<u32>,
}

/// Reviews of one request, where the file says so. One that cannot be read says nothing, and the reason is the
/// second part.
pub(super) fn review_cycles(path: &Path) -> (Option<u32>, Option<ConfigError>) {
    let text = match text_if_present(path) {
        Ok(None) => return (None, None),
        Ok(Some(text)) => text,
        Err(error) => return (None, Some(error)),
    };
    if serde_yaml::from_str::<serde_yaml::Value>(&text).is_ok_and(|value| value.is_null()) {
        return (None, None);
    }
    match from_yaml::<PolicyFile>(path, &text) {
        Err(error) => (None, Some(error)),
        Ok(file) => (file.workflow_contract.implementation_review_cycle_limit, None),
    }
}
