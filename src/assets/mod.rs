//! What ships inside the binary: roles, prompts, scaffold and catalogs; looked up in the room, then
//! in the workspace, then here.

pub mod catalog;
mod lookup;
mod role;
mod template;

pub use lookup::{
    AssetError, AssetKind, Lookup, avatar, role_folder, scaffold_files, scaffold_text,
};
pub use role::{Capability, Network, RoleSpec};
pub use template::{Values, render, render_document};

/// The letters of charts: Latin, and the few words in Korean that a chart has. See `fonts/README.md`.
pub const CHART_FONT: &[u8] = include_bytes!("fonts/chart.ttf");

#[cfg(test)]
mod tests;
