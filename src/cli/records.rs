//! What commands read of a workspace, which may still be as the older runtime left it: then as taking it over will
//! leave it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::output::Failure;
use crate::domain::ids::RequestId;
use crate::domain::item::Item;
use crate::domain::policy::Policy;
use crate::domain::record::AnyRecord;
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::import::older;
use crate::platform::files;
use crate::service::SERVES_FILE;
use crate::{store, workspace};

/// Everything that is open.
pub(super) fn state(root: &Path) -> Result<State, Failure> {
    Ok(match older::preview(root)? {
        Some(converted) => State::from_records(&converted.records),
        None => store::read_only(root)?,
    })
}

/// One request, open or ended; `None` where there is none.
pub(super) fn request(root: &Path, id: &RequestId) -> Result<Option<Request>, Failure> {
    let Some(converted) = older::preview(root)? else { return Ok(store::read_request(root, id)?) };
    let mut records = converted.records.into_iter();
    Ok(records.find_map(|record| {
        let AnyRecord::Request(request) = record else { return None };
        (request.request_id == *id).then(|| Arc::unwrap_or_clone(request))
    }))
}

/// Every backlog item, in the order of their ids.
pub(super) fn backlog_items(root: &Path) -> Result<Vec<Item>, Failure> {
    let Some(converted) = older::preview(root)? else { return Ok(store::backlog_items(root)?) };
    let items = converted.records.into_iter().filter_map(|record| {
        let AnyRecord::Backlog(item) = record else { return None };
        Some(Arc::unwrap_or_clone(item))
    });
    let mut items: Vec<Item> = items.collect();
    items.sort_by(|one, other| one.backlog_id.cmp(&other.backlog_id));
    Ok(items)
}

/// What the running team goes by, or would.
pub(super) fn policy(root: &Path) -> Result<Policy, Failure> {
    let workspace = workspace::load(root)?;
    Ok(workspace.policy(served(root), false)?)
}

/// The roles that the running team serves, as it wrote them down at its start.
fn served(root: &Path) -> BTreeSet<Role> {
    let path = root.join(SERVES_FILE);
    let text = files::read_text_if_present(&path).ok().flatten();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| Role::ALL.into())
}
