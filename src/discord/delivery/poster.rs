//! Who posts a message.

use crate::discord::personas::Hook;
use crate::discord::speakers::Speaker;
use crate::domain::ids::ChannelId;

/// Who posts and how it is recognised afterwards.
pub(super) enum Poster<'a> {
    Bot(&'a Speaker),
    Hook {
        speaker: &'a Speaker,
        hook: Hook,
        name: &'a str,
        parent: ChannelId,
        thread: Option<ChannelId>,
    },
}
