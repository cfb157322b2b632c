//! What is to be done may not be.

/// Why nobody agrees.
#[derive(Debug, Clone, Copy)]
pub(super) enum Denial<'a> {
    /// This person said no.
    Rejected(&'a str),
    /// Nobody decided in time.
    Expired,
    /// The configuration does not allow it.
    Refused,
}

impl Denial<'_> {
    /// The word for it, as the texts know it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Denial::Rejected(_) => "rejected",
            Denial::Expired => "expired",
            Denial::Refused => "refused",
        }
    }
}
