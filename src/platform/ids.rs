//! The only place that makes random or time-ordered identifiers.

use uuid::Uuid;

/// A time-ordered uuid: names made from it sort by arrival within one process.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this module owns identifiers")]
pub fn uuid_v7() -> Uuid {
    Uuid::now_v7()
}

/// The identifier that follows one in the order; `None` where that is no uuid.
#[must_use]
pub fn uuid_after(uuid: &str) -> Option<Uuid> {
    Uuid::parse_str(uuid).ok().map(|uuid| Uuid::from_u128(uuid.as_u128().wrapping_add(1)))
}

/// `digits` random lowercase hexadecimal characters, at most 32.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this module owns identifiers")]
pub fn random_hex(digits: usize) -> String {
    let mut text = Uuid::new_v4().simple().to_string();
    text.truncate(digits);
    text
}

/// A 256-bit random secret as 64 hexadecimal characters.
#[must_use]
pub fn secret() -> String {
    // Two v4 uuids hold 244 random bits; hashing spreads them over the whole word.
    use sha2::{Digest, Sha256};
    let mut hasher = Sha256::new();
    for _ in 0..3 {
        hasher.update(random_hex(32));
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_later_and_reads() {
        let first = uuid_v7().to_string();
        let next = uuid_after(&first).unwrap().to_string();
        assert!(next > first && uuid_after(&next).is_some());
        assert_eq!(uuid_after("boot-1"), None);
    }
}
