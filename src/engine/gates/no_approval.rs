//! Why there is no approval.

use crate::domain::word::words;

words! {
    /// Why something is not approved.
    pub(super) enum NoApproval {
        /// A person said no.
        Rejected = "rejected",
        /// Nobody decided in time.
        Expired = "expired",
        /// The configuration does not allow it.
        Refused = "refused",
    }
}
