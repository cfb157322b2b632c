//! What several subjects share.

pub(crate) mod chromium;
pub(crate) mod guild;
