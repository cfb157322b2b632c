//! Readers of what other programs wrote, into our records.

pub mod older;
