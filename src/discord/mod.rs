//! The Discord link: gateway, REST, personas, cards, ingress and delivery (`spec/discord.md`).
//!
//! What comes in is turned into facts of [`crate::domain::incoming`]; who may do what is the engine's
//! business. What goes out is an [`crate::domain::outgoing::Outgoing`], delivered at most once as far as
//! Discord allows, and at least once always.

pub mod attachments;
pub mod endpoints;
pub mod error;
mod gateway;
pub mod governor;
pub mod identity;
pub mod ingress;
pub mod lanes;
pub mod rest;
pub mod split;
