//! The composition: event loop, effect executor, role workers, sockets.
