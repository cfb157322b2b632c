//! The workspace folder: configuration, scaffold and generated documents.
