//! Files that people send.

use serde::{Deserialize, Serialize};

/// Where files lie that came with messages, or to the team from outside the workspace; relative to that.
pub const ATTACHMENTS: &str = "shared_workspace/attachments";

/// A file that came with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its name, for people.
    pub filename: String,
    /// Its size in bytes.
    pub size: u64,
    /// Where it was saved, workspace-relative; none where saving failed.
    pub saved: Option<String>,
}
