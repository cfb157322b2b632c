//! Listening goes on after an accept that failed: the process was out of file descriptors, or somebody hung up
//! before their turn. Neither is a reason to be gone for everybody who comes later.

use std::io;
use std::time::Duration;

/// Milliseconds of the first wait, and of the longest.
const FIRST: u64 = 10;
const LONGEST: u64 = 1_000;

/// Takes what a listener accepts; after a failure it waits, longer with each in a row, and says so once.
#[derive(Debug)]
pub struct AcceptRetry {
    what: &'static str,
    failures: u32,
}

impl AcceptRetry {
    /// For a listener; `what` names it in the log.
    #[must_use]
    pub const fn new(what: &'static str) -> AcceptRetry {
        AcceptRetry { what, failures: 0 }
    }

    /// What was accepted. After a failure `None`, once it is time to try again.
    pub async fn settle<T>(&mut self, accepted: io::Result<T>) -> Option<T> {
        match accepted {
            Ok(stream) => {
                if self.failures > 0 {
                    tracing::info!(socket = self.what, tries = self.failures, "accepting again");
                    self.failures = 0;
                }
                Some(stream)
            }
            Err(error) => {
                if self.failures == 0 {
                    tracing::warn!(socket = self.what, %error, "cannot accept; trying again");
                }
                let wait = wait_after(self.failures);
                self.failures = self.failures.saturating_add(1);
                tokio::time::sleep(wait).await;
                None
            }
        }
    }
}

fn wait_after(failures: u32) -> Duration {
    Duration::from_millis(FIRST.saturating_mul(1 << failures.min(10)).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_with_each_failure_in_a_row_up_to_a_second() {
        let waits: Vec<_> = (0..9).map(|failures| wait_after(failures).as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
        assert_eq!(wait_after(u32::MAX).as_millis(), 1_000);
    }

    #[tokio::test]
    async fn a_success_ends_the_burst() {
        let mut retry = AcceptRetry::new("a test");
        let failure = Err::<u8, _>(io::ErrorKind::ConnectionAborted.into());
        assert_eq!(retry.settle(failure).await, None);
        assert_eq!(retry.settle(Ok(7)).await, Some(7));
        assert_eq!(retry.failures, 0);
    }
}
