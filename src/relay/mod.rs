//! The file queue between roles, its watcher, and the transport trait.
