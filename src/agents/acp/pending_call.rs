//! What the agent was asked last.

/// What the request under way asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PendingCall {
    Initialize,
    /// An earlier conversation.
    Earlier,
    New,
    Mode,
    Prompt,
    Nothing,
}
