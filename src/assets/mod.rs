//! Embedded roles, prompts, scaffold files and message catalogs, and their look-up order.

pub mod catalog;
