//! Texts as they are compared.

/// Lower case, white space collapsed.
#[must_use]
pub fn flat(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}
