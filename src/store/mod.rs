//! The journal, the records it makes durable, and the lock of the workspace.
