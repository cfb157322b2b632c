//! Reads that are repeated while they may work yet.

use std::time::Duration;

use super::error::RestError;

/// Reads in a row, and the pause after the first one, which doubles.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Repeats a read a few times while it may work yet.
///
/// # Errors
/// That of the last time.
pub(crate) async fn patiently<T, Fut>(read: impl Fn() -> Fut) -> Result<T, RestError>
where
    Fut: Future<Output = Result<T, RestError>>,
{
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match read().await {
            Err(error) if error.is_retryable() => {
                tracing::warn!(%error, "a read waits");
                tokio::time::sleep(error.retry_after().unwrap_or(pause)).await;
                pause *= 2;
            }
            outcome => return outcome,
        }
    }
    read().await
}
