//! How wide a text is where every letter takes the same room: on terminals.

use unicode_width::UnicodeWidthStr;

/// Columns that a text takes: two for Hangul and other wide letters and for an emoji, also for one that is
/// put together of several; none for combining marks.
#[must_use]
pub fn display_width(text: &str) -> usize {
    text.width()
}
