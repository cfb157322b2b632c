//! The local guild as a server.
