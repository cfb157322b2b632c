//! What ships inside the binary: roles, prompts, scaffold and catalogs; looked up in the room, then
//! in the workspace, then here.

pub mod catalog;
mod lookup;
mod role;
mod template;

pub use lookup::{
    AssetError, AssetKind, Lookup, avatar, role_folder, scaffold_files, scaffold_text,
};
pub use role::{Capability, RoleSpec, Sandbox};
pub use template::{render, render_document};

#[cfg(test)]
mod tests;
