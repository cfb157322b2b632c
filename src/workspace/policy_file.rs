//! `policy.yaml`: overrides of governed routing (`spec/teams.md` 7.6).

use std::path::Path;

use super::error::{ConfigError, MAX_CONFIG_BYTES};
use super::open::from_yaml;
use crate::domain::routing::RoutingPolicy;
use crate::platform::files;

/// The routing policy of a workspace. A file that cannot be read leaves the built-in policy, with the
/// reason as the second part, because routing must go on.
pub(super) fn read(path: &Path) -> (RoutingPolicy, Option<ConfigError>) {
    let builtin = RoutingPolicy::default();
    let text = match files::read_text_if_present(path) {
        Ok(None) => return (builtin, None),
        Ok(Some(text)) => text,
        Err(error) => return (builtin, Some(error.into())),
    };
    if text.len() > MAX_CONFIG_BYTES {
        let error = ConfigError::TooLarge { path: path.to_owned(), bytes: text.len() };
        return (builtin, Some(error));
    }
    if serde_yaml::from_str::<serde_yaml::Value>(&text).is_ok_and(|value| value.is_null()) {
        return (builtin, None);
    }
    match from_yaml::<RoutingPolicy>(path, &text) {
        Err(error) => (builtin, Some(error)),
        Ok(mut policy) => {
            for (role, capability) in builtin.roles {
                policy.roles.entry(role).or_insert(capability);
            }
            (policy, None)
        }
    }
}
