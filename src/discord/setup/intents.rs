//! The one privileged intent that the team asks for, as the application's flags say it.
//!
//! An application of fewer than 10,000 reachable people needs no review for it, and its bot may switch the
//! limited form on by itself (`spec/field.md` 4).

/// The application may read message content after Discord's review.
const MESSAGE_CONTENT: u64 = 1 << 18;
/// The same for small applications: what the switch on the developer page sets.
pub const MESSAGE_CONTENT_LIMITED: u64 = 1 << 19;

/// Whether an application with these flags is told what people write.
#[must_use]
pub const fn reads_messages(flags: u64) -> bool {
    flags & (MESSAGE_CONTENT | MESSAGE_CONTENT_LIMITED) != 0
}

/// The page on which a person switches the intent on.
#[must_use]
pub fn page(application: u64) -> String {
    format!("https://discord.com/developers/applications/{application}/bot")
}
