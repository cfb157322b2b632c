//! What the link asks the team before it does anything for somebody: rights are looked at before files are
//! fetched, forms opened and ids suggested.

use crate::domain::actor::Actor;
use crate::domain::ids::ChannelId;
use crate::domain::incoming::Message;

/// A form that can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The one that begins a sprint.
    Kickoff,
    /// The one that asks something before deciding.
    Question,
    /// The one that says what is wrong with what a person looked at.
    Issue,
    /// One with words about a request: what should be different, what to try, why nobody does it.
    AboutRequest,
}

/// The rules of the team as far as the link needs them.
pub trait Access: Send + Sync + std::fmt::Debug {
    /// Whether the team would take a message in: before that, nothing of it is fetched or kept.
    fn takes_in(&self, message: &Message) -> bool;

    /// Whether the team takes a message in only now, because an edit has addressed it.
    fn is_addressed_by_edit(&self, message: &Message) -> bool;

    /// Whether the server roles of its author decide what becomes of a message: then they have to be known
    /// first.
    fn depends_on_roles(&self, message: &Message) -> bool;

    /// Whether a channel is the room of a request: what is written there keeps its order, whoever writes it.
    fn is_room(&self, channel: ChannelId) -> bool;

    /// Whether somebody holds any right. Who holds none sees no form and no id.
    fn is_known(&self, actor: &Actor) -> bool;

    /// Whether a form opens for somebody.
    fn opens(&self, actor: &Actor, form: Form) -> bool;
}
