//! What several subjects share.

pub(crate) mod chromium;
pub(crate) mod gateway;
pub(crate) mod guild;
pub(crate) mod model_server;
pub(crate) mod team;
