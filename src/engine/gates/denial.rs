//! What is to be done may not be.

/// Why nobody agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial {
    /// A person said no.
    Rejected,
    /// Nobody decided in time.
    Expired,
    /// The configuration does not allow it.
    Refused,
}

impl Denial {
    /// The word for it, as the texts know it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Denial::Rejected => "rejected",
            Denial::Expired => "expired",
            Denial::Refused => "refused",
        }
    }
}
