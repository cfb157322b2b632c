//! The Discord link: gateway, REST, personas, cards, ingress and delivery (`spec/discord.md`).
//!
//! What comes in is turned into facts of [`crate::domain::incoming`]; who may do what is the engine's
//! business. What goes out is an [`crate::domain::outgoing::Outgoing`], delivered at most once as far as
//! Discord allows, and at least once always.

pub mod access;
mod archive;
pub mod attachments;
mod bot;
pub mod commands;
mod compose;
pub mod delivery;
pub mod endpoints;
pub mod error;
mod forms;
mod gateway;
pub mod governor;
mod history;
pub mod identity;
mod inbound;
pub mod ingress;
mod intake;
pub mod link;
mod outbound_files;
pub mod person_request;
mod personas;
mod presence;
mod problems;
mod repeat;
pub mod rest;
pub mod send_order;
mod sessions;
pub mod setup;
pub mod speakers;
pub mod split;
pub mod standing;
mod token_lock;

pub use access::{Access, Form};
pub use delivery::{Delivery, Destination};
pub use governor::{ConnectionLimits, Limits};
pub use identity::Identity;
pub use inbound::{DroppedPlan, Inbound, InteractionReply, Suggest, Suggestion};
pub use intake::TakenMessage;
pub use link::{FoundChannels, Link, LinkConfig, LinkError};
pub use person_request::Typing;
pub use personas::persona_names;
pub use presence::Presence;
pub use problems::{LinkProblem, LinkProblems};
pub use sessions::Facts;
pub use speakers::VoiceMode;
pub use token_lock::is_taken;
